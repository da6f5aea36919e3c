"""Numbers out of a tape and into it.

Numbers of a tape become one of its arguments, so that code made for one gain serves all gains.
Constants of a program go into its tapes, where they simplify what is computed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from axode.codegen.tape.builder import TapeBuilder
from axode.codegen.tape.operations import ARITY, Array, Kind
from axode.codegen.tape.program import Evaluate, JacobianColumns, Operation, Program, While
from axode.codegen.tape.tape import Port, Tape

# Numbers that stay in the code: most of them belong to a formula's structure and never change.
STRUCTURAL = frozenset((0.0, 1.0, -1.0, 2.0, 0.5))
KEPT_TAPES = 256  # tapes of which it is remembered


@dataclass(frozen=True)
class ExtractedNumbers:
    """A tape without numbers of its own, and those numbers.

    Attributes:
        tape: The tape, with one more argument if there are any.
        numbers: Values of that argument by its name; empty if there are none.
    """

    tape: Tape
    numbers: dict[str, Array]


@lru_cache(maxsize=KEPT_TAPES)
def extract_numbers(tape: Tape, most: int) -> ExtractedNumbers:
    """Make the numbers of a tape an argument `<name>_numbers`.

    Two tapes that differ only in these numbers become the same one. Equal numbers share a place,
    and places are counted in the order of use.

    Args:
        tape: What to take the numbers from.
        most: How many an argument may hold; a tape with more stays as it is.
    """
    builder = TapeBuilder()
    port = len(tape.inputs)
    places: dict[int, int] = {}  # of constants of the tape, in the order of use
    values: list[int | None] = []

    def value(number: int) -> int:
        known = values[number]
        if known is None:
            constant = int(tape.operands[number, 0])
            known = builder.input(port, places.setdefault(constant, len(places)))
            values[number] = known
        return known

    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            values.append(builder.input(row[0], row[1]))
        elif kind == Kind.CONSTANT:
            number = float(tape.constants[row[0]])
            stays = number in STRUCTURAL or not math.isfinite(number)
            values.append(builder.constant(number) if stays else None)
        else:
            operands = [value(i) for i in row[: ARITY[Kind(kind)]]]
            values.append(builder.apply(Kind(kind), *operands))
    results = [value(i) for i in tape.results.tolist()]
    if not 0 < len(places) <= most:
        return ExtractedNumbers(tape, {})
    name = f"{tape.name}_numbers"
    inputs = (*tape.inputs, Port(name, (len(places),)))
    numbers = np.array([tape.constants[place] for place in places])
    numbers.setflags(write=False)
    return ExtractedNumbers(
        Tape.build(tape.name, inputs, tape.outputs, builder, results), {name: numbers}
    )


Constants = Mapping[str, Mapping[int, float]]


def inline_constants(program: Program) -> Program:
    """Replace what tapes read of the program's constants by these numbers."""
    if not program.constants:
        return program
    tapes: dict[tuple[str, tuple[str, ...]], Tape] = {}

    def inlined(operation: Operation) -> Operation:
        match operation:
            case Evaluate(tape, buffers):
                key = tape.digest, buffers[: len(tape.inputs)]
                if key not in tapes:
                    tapes[key] = _inline(tape, buffers, program.constants)
                return replace(operation, tape=tapes[key])
            case While():
                return replace(operation, body=all_inlined(operation.body))
            case JacobianColumns():
                body = tuple(
                    replace(e, tape=_inline(e.tape, e.buffers, program.constants))
                    for e in operation.body
                )
                return replace(operation, body=body)
            case _:
                return operation

    def all_inlined(operations: Sequence[Operation]) -> tuple[Operation, ...]:
        return tuple(map(inlined, operations))

    return replace(program, operations=all_inlined(program.operations))


def _inline(tape: Tape, buffers: Sequence[str], constants: Constants) -> Tape:
    own = [constants.get(buffer, {}) for buffer in buffers[: len(tape.inputs)]]
    if not any(own):
        return tape
    builder = TapeBuilder()
    arguments = [
        [
            builder.constant(known[k]) if k in known else builder.input(place, k)
            for k in range(port.size)
        ]
        for place, (port, known) in enumerate(zip(tape.inputs, own, strict=True))
    ]
    results = builder.replay(tape, arguments)
    return Tape.build(tape.name, tape.inputs, tape.outputs, builder, results)
