"""Events to locate during a simulation: checked, and as one tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument, shortened
from axode.model.model import Model
from axode.problems.tracing import traced_tape

if TYPE_CHECKING:
    from axode.results.event import Event


def check_events(events: Event | Sequence[Event]) -> tuple[Event, ...]:
    """Return the events as a tuple, if they are such as can be looked for.

    Raises:
        InvalidArgument: for other objects, events without a function, and repeated names.
    """
    from axode.results.event import Event

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
    return events


def event_tape(
    model: Model, events: Sequence[Event], speeds: Sequence[str] | None = None
) -> Tape | None:
    """All functions of events as one tape; `speeds` names what they call nu."""
    if not events:
        return None
    expressions = lambda s: [event.expression(s) for event in events]  # noqa: E731
    return traced_tape(model, "events", expressions, speeds)
