"""Runs of one model advanced together: compiled steps, and what Python does when they stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.model.model import Model, Options
from axode.model.signal_values import state_values
from axode.names import NamedValues
from axode.problems.simulate.inputs import InputPlan, callback_inputs, limited
from axode.problems.simulate.settings import ROUNDING, Settings
from axode.problems.singular.other_models import ROUNDED_PIVOT, is_rounded
from axode.problems.steps.adaptive import SHARE
from axode.problems.steps.compiled import dynamics_of, rollout_of
from axode.problems.steps.methods import EXPLICIT
from axode.problems.steps.stages import FINISHED, RUNNING
from axode.problems.steps.stiffness import stiff_slope

if TYPE_CHECKING:
    from axode.results.event import Event

Array = npt.NDArray[np.float64]
SLICE = 0.1  # [s] of computing between looks at the clock, the keyboard and the progress bar
FIRST_SLICE = 1e6  # operations of the model in the first one, well below SLICE
SMALLEST_PIVOT = 0.05  # of a solve: nearer to singular, other speeds are considered
STATE = ("q", "nu", "w")  # what is recorded of a run
FIRST_COUNT = 15.0  # explicit steps at the limit of stability before a run asks what to do
FIRST_STEP = 0.01  # of the time in which a state changes by itself


@dataclass
class Outcome:
    """What became of one run."""

    status: int = RUNNING
    time: float = 0.0
    word: str = ""  # the event that stopped it, or the cause of its failure
    last: Array | None = None  # its state then
    model: int = 0  # number of the model whose speeds that state is in


class Batch:
    """Runs of one model.

    Args:
        model: What moves.
        plan: Its input.
        settings: How to integrate.
        watches: What to look for.
        members: Numbers of these runs among all that are simulated.
        start: q and nu, (runs, size) each; other buffers of the state to start with, by name.
        p: Free parameters, (size,) or (runs, size).
        out: Where saved states go, (runs, rows, size).
        speeds: What the user calls nu, where the model has other independent speeds.
    """

    def __init__(
        self,
        model: Model,
        plan: InputPlan,
        settings: Settings,
        watches: Sequence[Event],
        members: npt.NDArray[np.intp],
        start: dict[str, Array],
        p: Array | None,
        out: Array,
        speeds: Sequence[str] | None = None,
    ) -> None:
        self.model, self.plan, self.settings, self.watches = model, plan, settings, tuple(watches)
        self.members, self.p, self.out = members, p, out
        self.count = len(members)
        place = settings.place
        explicit = settings.stepper == EXPLICIT
        self.dynamics = dynamics_of(
            model, plan, self.watches, speeds, single=place.single, stiffness=explicit
        )
        self.rollout = rollout_of(model, settings.stepper, self.dynamics, place)
        self.outcomes = [Outcome() for _ in range(self.count)]
        self._open = np.ones(self.count, dtype=bool)  # runs without an outcome
        self.calls: list[tuple[int, float, Array]] = []  # run, time, inputs that a callback gave
        self._saved: dict[tuple[int, int], Array] = {}  # states that no compiled step wrote
        self._called = np.full(self.count, np.nan)
        self.buffers = self._buffers(start)
        self.tables = self._tables()
        if settings.adaptive and "h" not in start:
            self.buffers["h"][...] = self._first_step()

    def _buffers(self, start: dict[str, Array]) -> dict[str, Array]:
        s, n = self.settings, self.count
        b = {name: np.zeros((n, size)) for name, size in self.rollout.program.state.items()}
        b["t"][...], b["index"][...] = s.t0, 1.0
        for name, value in start.items():
            b[name][...] = value
        numbers = {"t_end": s.t_end}
        if s.method == "rk4":
            numbers |= {
                "h": s.way * s.length,
                "t0": s.t0,
                "n_steps": s.n_steps,
                "save_steps": s.save_steps,
            }
        else:
            numbers |= {
                "way": s.way,
                "longest": abs(s.duration),
                "rtol": s.rtol,
                "atol": s.atol,
                "rows": len(s.times),
            }
            numbers |= dict(zip(("solve_rtol", "solve_atol"), s.solve_tolerances, strict=True))
        sampled = self.plan.sampled
        if sampled is not None:
            numbers |= {
                "sample_start": sampled.start,
                "sample_period": sampled.period,
                "sample_count": sampled.count,
            }
        b |= {name: np.array([float(value)]) for name, value in numbers.items()}
        if s.adaptive and self.plan.callback:
            b["longest"] = np.full((n, 1), abs(s.times[1] - s.t0))  # a step ends at every sample
        if "p" in self.rollout.program.given:
            assert self.p is not None
            b["p"] = np.ascontiguousarray(self.p)
        if "least_pivot" in self.rollout.program.given:
            least = ROUNDED_PIVOT if is_rounded(self.model) else SMALLEST_PIVOT
            b["least_pivot"] = np.full((n, 1), least)
        if "review" in self.rollout.program.given:
            b["review"] = b["steps"] + self.settings.review
        if "stiff_limit" in self.rollout.program.given:
            b["stiff_limit"] = np.full((n, 1), FIRST_COUNT)
            b["stiff_slope"] = np.array([stiff_slope(SHARE * s.rtol)])
        if "u" in self.rollout.program.given:
            u = np.zeros(self.dynamics.n_u) if self.plan.constant is None else self.plan.constant
            b["u"] = np.array(np.broadcast_to(u, (n, self.dynamics.n_u)), order="C")
        return b

    def _tables(self) -> dict[str, Array]:
        tables = {"out": self.out}
        if self.settings.adaptive:
            tables["times"] = np.ascontiguousarray(self.settings.times[:, np.newaxis])
        if self.plan.sampled is not None:
            tables["samples"] = self.plan.sampled.table
        return tables

    def _first_step(self) -> Array:
        """Length of the first step.

        From how fast the state and its rate change: E. Hairer, S. P. Norsett, G. Wanner, *Solving
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
            moved = x + s.way * h[:, np.newaxis] * f
            b["q"][...], b["nu"][...] = np.split(moved, [self.dynamics.n_q], axis=1)
            b["t"][...] += s.way * h[:, np.newaxis]
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
        """Rates of the state as it is, into k1: a call without steps."""
        kept = self.buffers["status"].copy()
        self.rollout(self.buffers, self.tables, budget=0, threads=self.settings.threads)
        self.buffers["status"][...] = kept

    # the loop ----------------------------------------------------------------------------------

    def advance(self, look: Callable[[Batch], None], stopped: Callable[[Batch, int], None]) -> None:
        """Run until every run has an outcome.

        Args:
            look: Told now and then how things are.
            stopped: Called for a run whose steps stopped to ask for something; it gives the run an
                outcome or sets its status back to running.
        """
        budget = 1 if self.plan.callback else self._first_budget()
        steps = self.rollout.bind(self.buffers, self.tables)
        try:
            self._loop(steps, budget, look, stopped)
        finally:
            steps.fetch()  # also the table `out`, where it was elsewhere
            for place, state in self._saved.items():
                self.out[place] = state

    def _loop(
        self,
        steps: Any,
        budget: int,
        look: Callable[[Batch], None],
        stopped: Callable[[Batch, int], None],
    ) -> None:
        while self._open.any():
            left = self._open.copy()
            if self.plan.callback:
                self._call_back()
            started = time.perf_counter()
            steps(budget, self.settings.threads)
            seconds = time.perf_counter() - started
            status = self.buffers["status"][:, 0].copy()
            self._finish(np.flatnonzero(left & (status == FINISHED)))
            for run in np.flatnonzero(left & (status != RUNNING) & (status != FINISHED)).tolist():
                stopped(self, run)
            look(self)
            if not self.plan.callback:
                budget = _next_budget(budget, seconds)

    def _first_budget(self) -> int:
        groups = 1 if self.count == 1 else -(-self.count // self.rollout.lanes)
        return max(1, int(FIRST_SLICE / (groups * (100 + len(self.dynamics.rate.kinds)))))

    def _finish(self, runs: npt.NDArray[np.intp]) -> None:
        """Runs that came to their end, all at once: there may be a million."""
        states = np.concatenate([self.buffers[name][runs] for name in STATE], axis=1)
        times = self.buffers["t"][runs, 0].tolist()
        for run, t, state in zip(runs.tolist(), times, states, strict=True):
            self.outcomes[run] = Outcome(FINISHED, t, "", state)
        self._open[runs] = False

    def resolve(
        self, run: int, status: int, word: str = "", at: Array | None = None, t: float | None = None
    ) -> None:
        """A run has come to its end, where it is or at a given state."""
        now = float(self.buffers["t"][run, 0]) if t is None else t
        state = self.state(run) if at is None else at
        self.outcomes[run] = Outcome(status, now, word, state)
        self._open[run] = False
        self.buffers["status"][run] = status

    def save(self, run: int, index: int, state: Array) -> None:
        """Save a state that was found between compiled steps, in the order of the samples."""
        self.out[run, index] = self._saved[run, index] = state

    def state(self, run: int) -> Array:
        """q, nu and w of a run."""
        return np.concatenate([self.buffers[name][run] for name in STATE])

    def _call_back(self) -> None:
        """Ask the user's function for inputs where a step has been taken since."""
        assert self.plan.callback is not None
        for run in np.flatnonzero(self._open).tolist():
            t = float(self.buffers["t"][run, 0])
            if t == self._called[run]:
                continue
            given = self.plan.callback.function(t, self.values(run))
            u = limited(self.model, callback_inputs(self.model, given))
            self.buffers["u"][run] = u
            self._called[run] = t
            if self.settings.adaptive:
                self.buffers["longest"][run] = self._until_next_sample(t)
            self.calls.append((int(self.members[run]), t, u))

    def _until_next_sample(self, t: float) -> float:
        times, way = self.settings.times, self.settings.way
        spacing = abs(times[1] - times[0])
        ahead = way * (times - t)
        left = ahead[ahead > ROUNDING * spacing]
        return float(left[0]) if len(left) else spacing

    @cached_property
    def watching(self) -> CompiledFunction | None:
        """Watched functions, to be called from Python."""
        return None if self.dynamics.events is None else CompiledFunction(self.dynamics.events)

    def values(self, run: int) -> NamedValues:
        """Coordinates, speeds and measures of a run by name."""
        b = self.buffers
        return state_values(self.model, b["q"][run], b["nu"][run], self.options(run))

    def options(self, run: int, t: float | None = None) -> Options:
        """Time and parameters of a run, as the model's functions take them."""
        now = float(self.buffers["t"][run, 0]) if t is None else t
        own = self.parameters(run)
        return {"t": now} if own is None else {"t": now, "parameters": own}

    def parameter_values(self, run: int) -> Array:
        """Free parameters of a run, in order; none if there are none."""
        if self.p is None:
            return np.zeros(0)
        return self.p if self.p.ndim == 1 else self.p[run]

    def parameters(self, run: int) -> dict[str, float] | None:
        """Free parameters of a run by name."""
        if self.p is None:
            return None
        p = self.p if self.p.ndim == 1 else self.p[run]
        return dict(zip(self.model.parameters, p.tolist(), strict=True))

    def input_at(self, run: int, t: float, q: Array, nu: Array) -> Array:
        """Inputs of a run at a time and a state."""
        if self.plan.sampled is not None:
            table = self.plan.sampled.table
            return self.plan.sampled.at(np.array([t]), table if table.ndim == 2 else table[run])[0]
        if self.plan.tape is None:
            held: Array = self.buffers["u"][run]
            return held
        known = {"t": np.array([t]), "q": q, "nu": nu}
        if self.p is not None:
            known["p"] = self.p if self.p.ndim == 1 else self.p[run]
        u: Array = CompiledFunction(self.plan.tape)(*(known[x.name] for x in self.plan.tape.inputs))
        return u


def _next_budget(budget: int, seconds: float) -> int:
    if seconds < SLICE / 4:
        return min(2 * budget, 1 << 40)
    return max(1, budget // 2) if seconds > 2 * SLICE else budget
