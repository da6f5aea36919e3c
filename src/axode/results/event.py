"""A zero crossing: what to look for in a simulation, and where it was found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from axode.errors import InvalidArgument
from axode.names import NamedValues


@dataclass(frozen=True)
class Event:
    """A zero crossing to locate during a simulation, or one that was located.

    `simulate(events=[Event("fallen", lambda s: s["pitch"] - 1.0)])` takes what to look for;
    `run.events` holds an `Event` of the same name for every crossing, with its time and state.

    Crossings are looked for inside every step, at five nodes and the extremes between them; a
    function that is zero at the start crosses only later. One that never changes its sign, such as
    a comparison or a square, is refused: give "pitch - 1" for "pitch > 1".

    Args:
        name: What the event is called.
        function: Function of the state's symbols, the name of a coordinate, speed or measure, or a
            formula such as "pitch - 1". Events that were located have none.
        stop: Whether the run ends there.
        direction: 1 for rising, -1 for falling crossings only, 0 for both.
        time: When it happened [s]; NaN for an event to look for.
        index_of_run: In which run of a batch, counted through all its axes; None if there is one.
        state: Values by name at that time; short names will do.
    """

    name: str
    function: Callable[[Any], Any] | str | None = field(default=None, compare=False, repr=False)
    stop: bool = field(default=False, compare=False, repr=False)
    direction: int = field(default=0, compare=False, repr=False)
    time: float = math.nan
    index_of_run: int | None = None
    state: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        run = None if self.index_of_run is None else int(self.index_of_run)
        object.__setattr__(self, "time", float(self.time))
        object.__setattr__(self, "index_of_run", run)
        values = {str(name): float(value) for name, value in self.state.items()}
        object.__setattr__(self, "state", NamedValues(values, time=self.time))

    def located(self, time: float, index_of_run: int | None, state: Mapping[str, float]) -> Event:
        """Event of the same name at the time it happened, without its function."""
        return Event(self.name, time=time, index_of_run=index_of_run, state=state)

    def expression(self, state: Any) -> Any:
        """Expression of its function in symbols."""
        assert self.function is not None
        value = state[self.function] if isinstance(self.function, str) else self.function(state)
        if getattr(value, "shape", ()) not in ((), (1, 1)):
            raise InvalidArgument(f"event '{self.name}': one number is needed, not {value.shape}")
        return value
