"""Where functions are between their switches, as a tape, for steps that find switches themselves.

A place changes wherever something switches. A slope changes its sign where a number that switches
turns back, so that one which comes and goes within a step is seen there.
"""

from __future__ import annotations

from collections.abc import Sequence

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.derivatives import changes_along
from axode.codegen.tape.formulas import Formula
from axode.codegen.tape.switching import TIME, Switches
from axode.codegen.tape.tape import Port, Tape


def places_tape(found: Sequence[Switches]) -> Tape:
    """Make a tape of time, and of what a run keeps, to `places` and to the signs of `slopes`."""
    ports = {port.name: port for some in found for port in some.tape.inputs}
    builder = TapeBuilder()
    one = Formula(builder, builder.constant(1.0))
    given = {
        name: [Formula(builder, builder.input(k, i)) for i in range(port.size)]
        for k, (name, port) in enumerate(ports.items())
    }
    places: dict[int, None] = {}
    slopes: dict[int, None] = {}
    for some in found:
        names = [port.name for port in some.tape.inputs]
        numbers = builder.replay(some.tape, [[x.number for x in given[n]] for n in names])
        along = [[one if n == TIME else None for _ in given[n]] for n in names]
        changes = changes_along(some.tape, [given[n] for n in names], along)
        for number, change, whole in zip(numbers, changes, some.whole, strict=True):
            x = Formula(builder, number)
            places[(x.floor() if whole else x < 0.0).number] = None
            if change is not None and builder.value(change.number) is None:
                slopes[(change < 0.0).number] = None
    outputs = Port("places", (len(places),)), Port("slopes", (len(slopes),))
    return Tape.build("places", tuple(ports.values()), outputs, builder, [*places, *slopes])
