"""Locate the zero crossings of event functions inside a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.model.signal_values import state_values
from axode.names import NamedValues
from axode.problems.simulate.batch import Batch
from axode.problems.steps.step_acceptance import EVENT, RUNNING

if TYPE_CHECKING:
    from axode.results.event import Event

Array = npt.NDArray[np.float64]
RESOLUTION = 4e-16  # of a crossing, relative to its time and to one second


class Probe:
    """The next step of one run, repeated to any time inside it."""

    def __init__(self, batch: Batch, run: int) -> None:
        self.batch, self.run = batch, run
        mine = {
            name: np.array(array[run : run + 1] if array.ndim > 1 else array)
            for name, array in batch.buffers.items()
        }
        mine["status"][...], mine["seen"][...] = RUNNING, 1.0
        if "least_pivot" in mine:
            mine["least_pivot"][...] = -1.0
        self.start, self.now = mine, {name: array.copy() for name, array in mine.items()}
        self.t = float(mine["t"][0, 0])
        self.length = float(mine["h_s"][0, 0])
        self.tables = {"out": np.zeros((1, 1, batch.dynamics.n_k)), "times": np.zeros((1, 1))}
        if "samples" in batch.tables:
            table = batch.tables["samples"]
            self.tables["samples"] = table if table.ndim == 2 else table[run : run + 1]
        self._events = batch.event_functions
        self._step = batch.rollout.bind(self.now, self.tables)

    def go_to(self, t: float) -> None:
        """Go from the start of the step to a time inside it, in one step of the method."""
        for name, array in self.start.items():
            self.now[name][...] = array
        now = self.now
        now["t_end"][...] = t
        if self.batch.settings.method == "rk4":
            now["n_steps"][...], now["step"][...] = 1.0, 0.0
        else:
            now["h"][...], now["longest"][...] = abs(t - self.t), np.inf
            now["rtol"][...], now["atol"][...], now["rows"][...] = 0.0, 1e300, 0.0
        self._step(1, 1)

    def event_values(self) -> Array:
        """Values of the event functions at the present state."""
        assert self._events is not None
        arrays = (
            a[0] if a.ndim > 1 else a
            for a in (self.now[port.name] for port in self._events.tape.inputs)
        )
        return np.atleast_1d(self._events(*arrays))

    @property
    def state(self) -> Array:
        """q, nu and w at the present state."""
        return np.concatenate([self.now[name][0] for name in ("q", "nu", "w")])

    def values(self) -> NamedValues:
        """Coordinates, speeds and measures of the present state by name."""
        conditions = self.batch.conditions(self.run, float(self.now["t"][0, 0]))
        return state_values(self.batch.model, self.now["q"][0], self.now["nu"][0], conditions)

    def end_at(self, end: float, status: int, cause: str) -> None:
        """End the run inside the step and save the samples up to there."""
        batch, times, direction = (
            self.batch,
            self.batch.settings.times,
            self.batch.settings.direction,
        )
        index = int(batch.buffers["index"][self.run, 0])
        while index < len(times) and direction * (times[index] - end) <= 0:
            self.go_to(float(times[index]))
            batch.save(self.run, index, self.state)
            index += 1
        batch.buffers["index"][self.run] = index
        self.go_to(end)
        batch.resolve(self.run, status, cause, self.state, end)

    def crossing(self, k: int) -> float:
        """Time from the start of the step to the crossing of a function."""

        from scipy.optimize import brentq  # takes half a second to import

        def value(offset: float) -> float:
            self.go_to(self.t + offset)
            return float(self.event_values()[k])

        before, after = value(0.0), value(self.length)
        if not before * after < 0:  # on zero at the end, or a hair away from it there
            return self.length if abs(after) <= abs(before) else 0.0
        closest = RESOLUTION * max(1.0, abs(self.t))
        return float(brentq(value, 0.0, self.length, xtol=closest, rtol=RESOLUTION * 4))


def locate(batch: Batch, run: int) -> list[Event]:
    """Locate the crossings of a step before which a run has stopped, and let it go on or end."""
    probe = Probe(batch, run)
    crossed = np.flatnonzero(batch.buffers["crossed"][run]).tolist()
    found = sorted(((probe.crossing(k), k) for k in crossed), key=lambda pair: abs(pair[0]))
    stops = [abs(offset) for offset, k in found if batch.watches[k].stop]
    last = min(stops, default=np.inf)
    events = []
    for offset, k in found:
        if abs(offset) <= last:
            probe.go_to(probe.t + offset)
            member = int(batch.members[run])
            events.append(batch.watches[k].located(probe.t + offset, member, probe.values()))
    if not stops:
        batch.buffers["seen"][run], batch.buffers["status"][run] = 1.0, RUNNING
        return events
    end, cause = next((o, batch.watches[k].name) for o, k in found if batch.watches[k].stop)
    probe.end_at(probe.t + end, EVENT, cause)
    return events
