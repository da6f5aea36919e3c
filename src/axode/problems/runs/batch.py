"""Runs of one model that are advanced together, and how each ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.model.model import Model
from axode.model.state import StateReader, state_values
from axode.names import NamedValues
from axode.numerics.tolerances import ON_TIME
from axode.problems.inputs.inputs import InputReader
from axode.problems.inputs.tracing import TracedFunction, call_traced, compile_tape
from axode.problems.other_models import ROUNDED_PIVOT, is_rounded
from axode.problems.runs.session import CompiledRuns, Numbers, Session, Task
from axode.problems.steps.adaptive import ERROR_SHARE
from axode.problems.steps.compiled import rollout_of
from axode.problems.steps.explicit import stiff_slope
from axode.problems.steps.step_acceptance import EVENT, FINISHED, INACCURATE, RUNNING

Array = npt.NDArray[np.float64]
SMALLEST_PIVOT = 0.05  # of a solve: nearer to singular, other speeds are considered
STATE = ("q", "nu", "w")  # what is recorded of a run
FIRST_STIFF_LIMIT = 15.0  # explicit steps at the limit of stability before a run stops


def first_least_pivot(model: Model) -> float:
    """Return how small pivots of a model may become before others are considered."""
    return ROUNDED_PIVOT if is_rounded(model) else SMALLEST_PIVOT


class Outcomes:
    """How runs ended.

    Attributes:
        status: Status of each; RUNNING until it has ended.
        time: When it ended [s].
        cause: The event that stopped it, or what made it fail; text.
        inaccuracy: How far its energy is off, relative to its largest one; zero if that passes.
        last: Its state then, (runs, size).
        model: Number of the model whose speeds that state is in.
    """

    def __init__(self, count: int, size: int) -> None:
        self.status = np.full(count, RUNNING, dtype=np.intp)
        self.time = np.zeros(count)
        self.cause = np.full(count, "", dtype=object)
        self.inaccuracy = np.zeros(count)
        self.last = np.zeros((count, size))
        self.model = np.zeros(count, dtype=np.intp)

    @property
    def inaccuracies(self) -> Array:
        """How far energies of runs that came to an end are off; zero where that passes."""
        ended = (self.status == FINISHED) | (self.status == EVENT)
        return np.where(ended, self.inaccuracy, 0.0)

    def keep(self, members: Numbers, others: Outcomes, model: int) -> None:
        """Keep how some of the runs ended elsewhere, with another model."""
        for name in ("status", "time", "cause", "inaccuracy", "last"):
            getattr(self, name)[members] = getattr(others, name)
        self.model[members] = model


class Batch(CompiledRuns):
    """Runs of one model, and how each ended.

    Args:
        task: What the steps are made of.
        members: Numbers of these runs among all that are simulated.
        start: q and nu, (runs, size) each; other buffers of the state to start with, by name.
        p: Free parameters, (size,) or (runs, size).
        out: Where saved states go, (runs, rows, size).
        alike: Whether a run must have the same bits whatever others it is computed with.
    """

    def __init__(
        self,
        task: Task,
        members: Numbers,
        start: dict[str, Array],
        p: Array | None,
        out: Array,
        alike: bool = False,
    ) -> None:
        settings = task.settings
        d = task.dynamics(stiffness=settings.explicit and task.log is None)
        rollout = rollout_of(task.model, settings.stepper, d, settings.place, alike=alike)
        first = {"index": np.ones((len(members), 1))} | start
        given = self._read_buffers(task, len(members), first)
        super().__init__(task, d, rollout, members, first, p, given)
        self.watches, self.out = task.events, out
        self.outcomes = Outcomes(self.count, out.shape[-1])
        self._open = np.ones(self.count, dtype=bool)  # runs without an outcome
        self._first_rows = self.rows_saved
        self.calls: list[tuple[int, float, Array]] = []  # run, time, inputs that a callback gave
        self._saved: list[tuple[Any, Any, Array]] = []  # states that no compiled step wrote
        self._called = np.full(self.count, np.nan)
        self.tables["out"] = out
        self.log = None if task.log is None else task.log.add(self)
        if settings.adaptive:
            self.tables["times"] = np.ascontiguousarray(settings.times[:, np.newaxis])

    @staticmethod
    def _read_buffers(task: Task, count: int, start: dict[str, Array]) -> dict[str, Array | float]:
        """What Python changes between steps, one row per run, and what only this method reads."""
        s = task.settings
        given: dict[str, Array | float] = {
            "least_pivot": np.full((count, 1), first_least_pivot(task.model)),
            "review": start.get("steps", np.zeros((count, 1))) + s.review,
            "stiff_limit": np.full((count, 1), FIRST_STIFF_LIMIT),
            "stiff_slope": stiff_slope(ERROR_SHARE * s.rtol, s.stepper),
        }
        if task.plan.callback is not None:
            given["u"] = np.zeros((count, len(task.model.inputs)))
            if s.adaptive:  # a step ends at every sample
                given["longest"] = np.full((count, 1), abs(s.times[1] - s.t0))
        return given

    @property
    def rows_saved(self) -> Numbers:
        """Number of rows of `out` that each run has passed."""
        return self.buffers["index"][:, 0].astype(np.intp)

    def written(self) -> tuple[Numbers, Numbers]:
        """Runs and rows of the states that were saved here."""
        row = np.arange(self.out.shape[1])
        first, last = self._first_rows[:, np.newaxis], self.rows_saved[:, np.newaxis]
        run, rows = np.nonzero((row >= first) & (row < last))
        return run, rows

    def advance(self, session: Session, stopped: Callable[[Batch, Numbers], None]) -> None:
        """Run until every run has an outcome.

        Args:
            session: The call that this is part of.
            stopped: Called for runs whose steps have stopped; it gives each of them an outcome or
                sets its status back to running.
        """

        def resolve_stopped() -> bool:
            if self.log is not None:
                self.log.end()
            status = self.buffers["status"][:, 0]
            done = (status == FINISHED) | (status == INACCURATE)
            self.resolve(np.flatnonzero(self._open & done), FINISHED)
            others = np.flatnonzero(self._open & (status != RUNNING))
            if others.size:
                stopped(self, others)
            return bool(self._open.any())

        budget = self.first_budget(len(self.dynamics.rate.kinds))
        ask = self._call_back if self.plan.callback else None
        try:
            session.advance(self, budget, resolve_stopped, ask)
        finally:
            for runs, rows, states in self._saved:
                self.out[runs, rows] = states
            running = np.flatnonzero(self._open)  # interrupted
            self.outcomes.time[running] = self.buffers["t"][running, 0]
            self.outcomes.last[running] = self.state(running)

    def begin_slice(self) -> int:
        """Prepare the next slice of a batch whose steps are logged."""
        return 0 if self.log is None else self.log.begin()

    def resolve(
        self,
        runs: Any,
        status: int | Numbers,
        cause: Any = "",
        at: Array | None = None,
        t: Any = None,
    ) -> None:
        """End a run or several where they are, or at given states and times."""
        ended = self.outcomes
        ended.status[runs], ended.cause[runs] = status, cause
        ended.time[runs] = self.buffers["t"][runs, 0] if t is None else t
        ended.last[runs] = self.state(runs) if at is None else at
        if "inaccuracy" in self.buffers:
            ended.inaccuracy[runs] = self.buffers["inaccuracy"][runs, 0]
        self._open[runs] = False
        self.buffers["status"][runs, 0] = status

    def save(self, runs: Any, rows: Any, states: Array) -> None:
        """Save states that were found between compiled steps, in the order of the samples."""
        self.out[runs, rows] = states
        self._saved.append((runs, rows, states))

    def state(self, runs: Any) -> Array:
        """q, nu and w of a run or of several."""
        return np.concatenate([self.buffers[name][runs] for name in STATE], axis=-1)

    def _call_back(self) -> None:
        """Call the user's function for inputs of runs that have taken a step since."""
        assert self.plan.callback is not None
        b, p, function = self.buffers, self.p, self.plan.callback.function
        for run, goes_on in enumerate(self._open.tolist()):
            if not goes_on:
                continue
            t = b["t"].item(run)
            if t == self._called[run]:
                continue
            own = p if p is None or p.ndim == 1 else p[run]
            state = self._read_state(b["q"][run], b["nu"][run], b["t"][run], own)
            u = self._read_inputs(function(t, state))
            b["u"][run] = u
            self._called[run] = t
            if self.settings.adaptive:
                self.buffers["longest"][run] = self._until_next_sample(t)
            self.calls.append((int(self.members[run]), t, u))

    def _until_next_sample(self, t: float) -> float:
        times, direction = self.settings.times, self.settings.direction
        spacing = abs(times[1] - times[0])
        ahead = direction * (times - t)
        left = ahead[ahead > ON_TIME * spacing]
        return float(left[0]) if len(left) else spacing

    @cached_property
    def _read_state(self) -> StateReader:
        return StateReader(self.model)

    @cached_property
    def _read_inputs(self) -> InputReader:
        return InputReader(self.model)

    @cached_property
    def event_functions(self) -> CompiledFunction | None:
        """Functions of events, to be called from Python."""
        return None if self.dynamics.events is None else compile_tape(self.dynamics.events)

    def values(self, run: int) -> NamedValues:
        """Coordinates, speeds and measures of a run by name."""
        b = self.buffers
        return state_values(self.model, b["q"][run], b["nu"][run], self.conditions(run))

    def input_at(self, runs: Any, t: Any, q: Array, nu: Array) -> Array:
        """Inputs of a run or of several, at a time and a state of each."""
        if self.plan.sampled is not None:
            return self.plan.sampled.at(np.asarray(t), runs)
        if self.plan.tape is None:
            held = self.buffers["u"]
            return held if held.ndim == 1 else np.asarray(held[runs])
        return call_traced(TracedFunction(self.plan.tape), q, nu, self.conditions(runs, t))
