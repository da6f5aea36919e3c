"""Runs of one model that are advanced together, and what each came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.model.signal_values import state_values
from axode.names import NamedValues
from axode.problems.session import CompiledRuns, Numbers, Session, Task
from axode.problems.simulate.inputs import callback_inputs, limit_inputs
from axode.problems.simulate.settings import ROUNDING
from axode.problems.singular.other_models import ROUNDED_PIVOT, is_rounded
from axode.problems.steps.adaptive import ERROR_SHARE
from axode.problems.steps.compiled import rollout_of
from axode.problems.steps.methods import EXPLICIT
from axode.problems.steps.step_acceptance import FINISHED, RUNNING
from axode.problems.steps.stiffness import stiff_slope
from axode.problems.tracing import TracedFunction, call_traced, compile_tape

Array = npt.NDArray[np.float64]
SMALLEST_PIVOT = 0.05  # of a solve: nearer to singular, other speeds are considered
STATE = ("q", "nu", "w")  # what is recorded of a run
FIRST_STIFF_LIMIT = 15.0  # explicit steps at the limit of stability before a run stops
FIRST_STEP = 0.01  # of the time in which a state changes by itself


@dataclass
class Outcome:
    """How one run ended."""

    status: int = RUNNING
    time: float = 0.0
    cause: str = ""  # the event that stopped it, or what made it fail
    last: Array | None = None  # its state then
    model: int = 0  # number of the model whose speeds that state is in


class Batch(CompiledRuns):
    """Runs of one model, and how each ended.

    Args:
        task: What the steps are made of.
        members: Numbers of these runs among all that are simulated.
        start: q and nu, (runs, size) each; other buffers of the state to start with, by name.
        p: Free parameters, (size,) or (runs, size).
        out: Where saved states go, (runs, rows, size).
    """

    def __init__(
        self, task: Task, members: Numbers, start: dict[str, Array], p: Array | None, out: Array
    ) -> None:
        settings = task.settings
        d = task.dynamics(stiffness=settings.stepper == EXPLICIT)
        rollout = rollout_of(task.model, settings.stepper, d, settings.place)
        first = {"index": np.ones((len(members), 1))} | start
        given = self._given(task, len(members), first)
        super().__init__(task, d, rollout, members, first, p, given)
        self.watches, self.out = task.events, out
        self.outcomes = [Outcome() for _ in range(self.count)]
        self._open = np.ones(self.count, dtype=bool)  # runs without an outcome
        self.calls: list[tuple[int, float, Array]] = []  # run, time, inputs that a callback gave
        self._saved: dict[tuple[int, int], Array] = {}  # states that no compiled step wrote
        self._called = np.full(self.count, np.nan)
        self.tables["out"] = out
        if settings.adaptive:
            self.tables["times"] = np.ascontiguousarray(settings.times[:, np.newaxis])
            if "h" not in start:
                self.buffers["h"][...] = self._first_step()

    @staticmethod
    def _given(task: Task, count: int, start: dict[str, Array]) -> dict[str, Array | float]:
        """What Python changes between steps, one row per run, and what only this method reads."""
        s = task.settings
        least = ROUNDED_PIVOT if is_rounded(task.model) else SMALLEST_PIVOT
        given: dict[str, Array | float] = {
            "least_pivot": np.full((count, 1), least),
            "review": start.get("steps", np.zeros((count, 1))) + s.review,
            "stiff_limit": np.full((count, 1), FIRST_STIFF_LIMIT),
            "stiff_slope": stiff_slope(ERROR_SHARE * s.rtol),
        }
        if task.plan.callback is not None:
            given["u"] = np.zeros((count, len(task.model.inputs)))
            if s.adaptive:  # a step ends at every sample
                given["longest"] = np.full((count, 1), abs(s.times[1] - s.t0))
        return given

    def _first_step(self) -> Array:
        """Estimate the length of the first step from how fast the state and its rate change.

        E. Hairer, S. P. Norsett, G. Wanner, *Solving
        Ordinary Differential Equations I*, section II.4.
        """
        s, b = self.settings, self.buffers
        longest = abs(s.duration)
        b["h"][...] = min(FIRST_STEP * longest, 1e-3)
        n = self.dynamics.n_q + self.dynamics.n_nu
        with np.errstate(all="ignore"):
            self._rates()
            x, f = np.concatenate([b["q"], b["nu"]], axis=1), b["k1"][:, :n].copy()
            scale = s.atol + s.rtol * np.abs(x)
            size, speed = (np.abs(v / scale).max(axis=1, initial=0.0) for v in (x, f))
            small = ~((size > 1e-5) & (speed > 1e-5))
            h = np.where(small, 1e-6, FIRST_STEP * size / np.where(small, 1.0, speed))
            h = np.minimum(h, longest)
            kept = {name: b[name].copy() for name in ("q", "nu", "t")}
            moved = x + s.direction * h[:, np.newaxis] * f
            b["q"][...], b["nu"][...] = np.split(moved, [self.dynamics.n_q], axis=1)
            b["t"][...] += s.direction * h[:, np.newaxis]
            self._rates()
            bend = np.abs((b["k1"][:, :n] - f) / scale).max(axis=1, initial=0.0) / h
            for name, value in kept.items():
                b[name][...] = value
            fastest = np.maximum(speed, bend)
            longer = np.where(
                fastest <= 1e-15,
                np.maximum(1e-6, 1e-3 * h),
                (FIRST_STEP / np.maximum(fastest, 1e-300)) ** 0.2,
            )
        guess = np.minimum(np.minimum(100 * h, longer), longest)
        return np.where(np.isfinite(guess), guess, 1e-6 * longest)[:, np.newaxis]

    def _rates(self) -> None:
        """Evaluate the rates of the present state into k1, by a call without steps."""
        kept = self.buffers["status"].copy()
        self.rollout(self.buffers, self.tables, budget=0, threads=self.settings.threads)
        self.buffers["status"][...] = kept

    def advance(self, session: Session, stopped: Callable[[Batch, int], None]) -> None:
        """Run until every run has an outcome.

        Args:
            session: The call that this is part of.
            stopped: Called for a run whose steps have stopped; it gives the run an outcome or sets
                its status back to running.
        """

        def resolve_stopped() -> bool:
            status = self.buffers["status"][:, 0].copy()
            left = self._open.copy()
            self._finish(np.flatnonzero(left & (status == FINISHED)))
            for run in np.flatnonzero(left & (status != RUNNING) & (status != FINISHED)).tolist():
                stopped(self, run)
            return bool(self._open.any())

        budget = self.first_budget(len(self.dynamics.rate.kinds))
        ask = self._call_back if self.plan.callback else None
        try:
            session.advance(self, budget, resolve_stopped, ask)
        finally:
            for place, state in self._saved.items():
                self.out[place] = state

    def _finish(self, runs: Numbers) -> None:
        """Record runs that have finished, all at once: there may be a million."""
        states = np.concatenate([self.buffers[name][runs] for name in STATE], axis=1)
        times = self.buffers["t"][runs, 0].tolist()
        for run, t, state in zip(runs.tolist(), times, states, strict=True):
            self.outcomes[run] = Outcome(FINISHED, t, "", state)
        self._open[runs] = False

    def resolve(
        self,
        run: int,
        status: int,
        cause: str = "",
        at: Array | None = None,
        t: float | None = None,
    ) -> None:
        """End a run where it is, or at a given state and time."""
        now = float(self.buffers["t"][run, 0]) if t is None else t
        state = self.state(run) if at is None else at
        self.outcomes[run] = Outcome(status, now, cause, state)
        self._open[run] = False
        self.buffers["status"][run] = status

    def save(self, run: int, index: int, state: Array) -> None:
        """Save a state that was found between compiled steps, in the order of the samples."""
        self.out[run, index] = self._saved[run, index] = state

    def state(self, run: int) -> Array:
        """q, nu and w of a run."""
        return np.concatenate([self.buffers[name][run] for name in STATE])

    def _call_back(self) -> None:
        """Call the user's function for inputs of runs that have taken a step since."""
        assert self.plan.callback is not None
        for run in np.flatnonzero(self._open).tolist():
            t = float(self.buffers["t"][run, 0])
            if t == self._called[run]:
                continue
            given = self.plan.callback.function(t, self.values(run))
            u = limit_inputs(self.model, callback_inputs(self.model, given))
            self.buffers["u"][run] = u
            self._called[run] = t
            if self.settings.adaptive:
                self.buffers["longest"][run] = self._until_next_sample(t)
            self.calls.append((int(self.members[run]), t, u))

    def _until_next_sample(self, t: float) -> float:
        times, direction = self.settings.times, self.settings.direction
        spacing = abs(times[1] - times[0])
        ahead = direction * (times - t)
        left = ahead[ahead > ROUNDING * spacing]
        return float(left[0]) if len(left) else spacing

    @cached_property
    def event_functions(self) -> CompiledFunction | None:
        """Functions of events, to be called from Python."""
        return None if self.dynamics.events is None else compile_tape(self.dynamics.events)

    def values(self, run: int) -> NamedValues:
        """Coordinates, speeds and measures of a run by name."""
        b = self.buffers
        return state_values(self.model, b["q"][run], b["nu"][run], self.conditions(run))

    def input_at(self, run: int, t: float, q: Array, nu: Array) -> Array:
        """Inputs of a run at a time and a state."""
        if self.plan.sampled is not None:
            table = self.plan.sampled.table
            return self.plan.sampled.at(np.array([t]), table if table.ndim == 2 else table[run])[0]
        if self.plan.tape is None:
            held = self.buffers["u"]
            return held if held.ndim == 1 else np.asarray(held[run])
        return call_traced(TracedFunction(self.plan.tape), q, nu, self.conditions(run, t))
