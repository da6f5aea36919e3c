"""Events to locate during a simulation: checked, and as one tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, shortened
from axode.model.model import Model
from axode.model.model_parts import memory_of
from axode.problems.inputs.state_formulas import name_or_function
from axode.problems.inputs.tracing import require_sign_changes, traced_tape

if TYPE_CHECKING:
    from axode.results.columns import Event


def check_events(model: Model, events: Event | Sequence[Event]) -> tuple[Event, ...]:
    """Return the events as a tuple, with functions in place of formulas.

    Raises:
        InvalidArgument: for other objects, events without a function, repeated names, and formulas
            that cannot be read.
    """
    from axode.results.columns import Event

    expected = "events: expected Event(name, function)"
    try:
        events = (events,) if isinstance(events, Event) else tuple(events)
    except TypeError:
        raise InvalidArgument(f"{expected}, got {shortened(events)}") from None
    names: set[str] = set()
    for event in events:
        if not isinstance(event, Event):
            raise InvalidArgument(f"{expected}, got {shortened(event)}")
        if event.function is None:
            raise InvalidArgument(f"{expected}; '{event.name}' has no function to look at")
        if event.direction not in (-1, 0, 1):
            raise InvalidArgument(f"event '{event.name}': direction must be -1, 0 or 1")
        if event.name in names:
            raise InvalidArgument(f"two events are called '{event.name}'")
        names.add(event.name)
    return tuple(
        replace(e, function=name_or_function(model, e.function, f"event '{e.name}'"))
        for e in events
    )


def event_tape(
    model: Model, events: Sequence[Event], speeds: Sequence[str] | None = None
) -> Tape | None:
    """All functions of events as one tape; `speeds` names what they call nu.

    Raises:
        InvalidArgument: for functions that never change their sign.
    """
    if not events:
        return None
    memory, key = memory_of(model), ("events", *map(id, events), speeds)
    if key in memory:
        return memory[key][1]
    expressions = lambda s: [event.expression(s) for event in events]  # noqa: E731
    tape = traced_tape(model, "events", expressions, speeds)
    require_sign_changes(tape, {f"event '{e.name}'": k for k, e in enumerate(events)})
    memory[key] = events, tape  # they keep their numbers as long as they are here
    return tape
