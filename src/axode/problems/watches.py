"""What to watch for during a simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from axode.codegen.model import Model
from axode.codegen.tape import Tape
from axode.errors import InvalidArgument
from axode.problems.inputs import traced_tape


@dataclass(frozen=True)
class Watch:
    """A zero crossing to be located, and perhaps to stop at.

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
        return state[self.function] if isinstance(self.function, str) else self.function(state)


def watch_tape(model: Model, watches: Sequence[Watch]) -> Tape | None:
    """All watched functions as one tape."""
    for watch in watches:
        if not isinstance(watch, Watch):
            raise InvalidArgument(f"events: expected Watch(name, function), got {watch!r}")
        if watch.direction not in (-1, 0, 1):
            raise InvalidArgument(f"watch '{watch.name}': direction must be -1, 0 or 1")
    if not watches:
        return None
    return traced_tape(model, "events", lambda s: [watch.expression(s) for watch in watches])
