"""The motion between saved states: runs go on from them to other times, as exact as before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.problems.runs.session import Session, Task
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.saved_states import Correction, SavedStates
from axode.problems.simulate.starts import Starts
from axode.problems.steps.compiled import AUTOMATIC, Place
from axode.results.columns import time_rounding

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


@dataclass(frozen=True)
class KnownMotion:
    """Steps, inputs and starts of runs, from which they are continued.

    Attributes:
        task: What their steps were made of.
        given: Their input as the user gave it.
        start: q, nu and w at the first sample of all of them, (runs, size).
        p: Their free parameters, (size,) or (runs, size).
        members: Numbers of the runs that are here, among all of these.
    """

    task: Task
    given: Any
    start: Array
    p: Array | None
    members: Numbers

    @classmethod
    def of(cls, task: Task, given: Any, begun: Starts) -> KnownMotion | None:
        """Keep what moves runs from their starts; None where it is a Python function."""
        if task.plan.callback is not None:
            return None
        task = task if task.log is None else replace(task, log=None)
        start = np.concatenate([begun.q, begun.nu, np.zeros((len(begun.q), 2))], axis=1)
        return cls(task, given, start, begun.p, np.arange(len(start)))

    def part(self, runs: slice) -> KnownMotion:
        """Keep what moves some of the runs."""
        return replace(self, members=self.members[runs])

    def go_on(self, saved: SavedStates, lengths: Numbers, times: Array) -> SavedStates:
        """Find the states of all runs at other times, from the nearest samples before them.

        Args:
            saved: Samples, of whose times the first and the last enclose the others.
            lengths: How many samples each run has.
            times: (T,), in the direction of the samples [s].

        Returns:
            States (runs, T, size), NaN where a run had ended.

        Raises:
            InvalidArgument: where the motion cannot be computed again.
        """
        time, forward = saved.conditions.t[0], self.task.settings.direction
        after = np.clip(np.searchsorted(forward * time, forward * times), 1, max(len(time) - 1, 1))
        near = after - (np.abs(times - time[after - 1]) <= np.abs(times - time[after % len(time)]))
        between = np.abs(times - time[near]) > time_rounding(time)
        merged = _Merged(saved, times, np.flatnonzero(~between), near[~between])
        if between.any():
            merged.add(self._find(saved, lengths, times[between]), np.flatnonzero(between))
        return merged.saved

    def _find(
        self, saved: SavedStates, lengths: Numbers, times: Array
    ) -> tuple[Numbers, SavedStates]:
        """Find states between the samples: of which runs, and what they are."""
        time, forward = saved.conditions.t[0], self.task.settings.direction
        row = int(np.searchsorted(forward * time, forward * times[0], "right")) - 1
        elsewhere = {int(row) for part in saved.corrections for row in part.places[1]}
        ends = forward * time[np.maximum(lengths - 1, 0)]
        there = np.flatnonzero((lengths > 0) & (ends >= forward * times[0]))
        for first in (max(set(range(row + 1)) - elsewhere, default=0), 0):
            made = self._advance(saved, first, there, ends[there], times)
            if made is not None:
                return there, made
        raise InvalidArgument(
            f"'{self.task.model.name}': its motion after t = {time[0]:g} s cannot be computed "
            'again.\n  Remedy: method="interpolate" interpolates between the samples'
        )

    def _advance(
        self, saved: SavedStates, first: int, there: Numbers, ends: Array, times: Array
    ) -> SavedStates | None:
        """Go on from one sample of the runs that are `there`; None if one ends too early."""
        from axode.problems.simulate.record import saved_states

        own, t0 = self.members[there], float(saved.conditions.t[0, first])
        begun = saved.states[there, first]
        if t0 == self.task.settings.t0:
            begun = self.start[own]
        duration = float(times[-1]) - t0
        settings = replace(self.task.settings, place=Place(), save_every=None)
        if settings.method == "rk4":  # other times lie between its steps
            settings = replace(settings, method=AUTOMATIC, step=None)
        at = tuple(times.tolist())
        settings = replace(settings, t0=t0, duration=duration, at=at)
        events = tuple(replace(event, stop=False) for event in self.task.events)
        task = replace(self.task, plan=self.task.plan.part(own), settings=settings, events=events)
        p = self.p if self.p is None or self.p.ndim == 1 else self.p[own]
        n = len(task.model.coordinates)
        with Session(task.model.name, settings, len(own), False) as session:
            runs = Runs(task, self.given, begun[:, :n], begun[:, n:-2], p)
            runs.advance(session)
        past = settings.direction * settings.times > ends[:, np.newaxis]
        reached = np.arange(len(settings.times)) < runs.lengths[:, np.newaxis]
        if not (past | reached).all():
            return None
        runs.out[past] = np.nan
        made = saved_states(runs, settings.times, runs.out, runs.made_by)
        found = made.part(slice(None), slice(1, None))
        found.arrays["w"][...] += begun[:, np.newaxis, -2:]  # what was supplied and lost before
        for part in found.corrections:
            part.signals.w[part.rows] += begun[part.places[0], -2:]
        return found


class _Merged:
    """States at given times, some of them samples.

    Args:
        saved: Samples of all runs.
        times: All times.
        places: Which of them are samples.
        rows: Numbers of these samples.
    """

    def __init__(self, saved: SavedStates, times: Array, places: Numbers, rows: Numbers) -> None:
        shape = (len(saved.states), len(times))

        def place(array: Array) -> Array:
            made = np.full((*shape, array.shape[-1]), np.nan)
            made[:, places] = array[:, rows]
            return made

        self._inputs = place(saved.inputs) if isinstance(saved.inputs, np.ndarray) else None
        self.saved = SavedStates(
            saved.model,
            place(saved.states),
            replace(saved.conditions, t=np.broadcast_to(times, shape)),
            saved.inputs if self._inputs is None else self._inputs,
        )
        for part in saved.corrections:
            run, row = part.places
            for k, sample in zip(places, rows, strict=True):
                here = np.flatnonzero(row == sample)
                if here.size:
                    self._correct(part.part(here, (run[here], np.full(here.size, k))))

    def add(self, found: tuple[Numbers, SavedStates], places: Numbers) -> None:
        """Add states of some runs at some of the times."""
        runs, states = found
        self.saved.states[np.ix_(runs, places)] = states.states
        if self._inputs is not None and isinstance(states.inputs, np.ndarray):
            self._inputs[np.ix_(runs, places)] = states.inputs
        for part in states.corrections:
            run, row = part.places
            self._correct(part.part(slice(None), (runs[run], places[row])))

    def _correct(self, correction: Correction) -> None:
        corrections = (*self.saved.corrections, correction)
        self.saved = replace(self.saved, corrections=corrections)
