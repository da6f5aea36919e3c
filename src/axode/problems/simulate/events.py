"""What to watch for during a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.problems.tracing import traced_tape


@dataclass(frozen=True)
class Watch:
    """A zero crossing to be located, and perhaps to stop at.

    It is noticed if the function's sign differs at the two ends of a step; a function that is zero
    at the start crosses only later. Two crossings within one step go unnoticed.

    Args:
        name: What the event is called.
        function: Of the state's symbols: `lambda s: s["pitch"] - 0.5`; or the name of a
            coordinate, speed or measure.
        stop: Whether the run ends there.
        direction: 1 for rising, -1 for falling crossings only, 0 for both.
    """

    name: str
    function: Callable[[Any], Any] | str
    stop: bool = False
    direction: int = 0

    def expression(self, state: Any) -> Any:
        """Its value in symbols."""
        value = state[self.function] if isinstance(self.function, str) else self.function(state)
        if getattr(value, "shape", ()) not in ((), (1, 1)):
            raise InvalidArgument(f"watch '{self.name}': one number is needed, not {value.shape}")
        return value


def checked_watches(watches: Sequence[Watch]) -> tuple[Watch, ...]:
    """The watches, if that is what they are."""
    if isinstance(watches, Watch):
        return (watches,)
    try:
        watches = tuple(watches)
    except TypeError:
        raise InvalidArgument(
            f"events: expected Watch(name, function), got {watches!r:.200}"
        ) from None
    names: set[str] = set()
    for watch in watches:
        if not isinstance(watch, Watch):
            raise InvalidArgument(f"events: expected Watch(name, function), got {watch!r}")
        if watch.direction not in (-1, 0, 1):
            raise InvalidArgument(f"watch '{watch.name}': direction must be -1, 0 or 1")
        if watch.name in names:
            raise InvalidArgument(f"two watches are called '{watch.name}'")
        names.add(watch.name)
    return tuple(watches)


def watch_tape(
    model: Model, watches: Sequence[Watch], speeds: Sequence[str] | None = None
) -> Tape | None:
    """All watched functions as one tape; `speeds` names what they call nu, as in `traced_tape`."""
    if not watches:
        return None
    expressions = lambda s: [watch.expression(s) for watch in watches]  # noqa: E731
    return traced_tape(model, "events", expressions, speeds)
