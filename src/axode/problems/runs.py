"""Runs in progress: compiled steps, and what Python does when they stop to ask."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from axode.codegen.llvm import CompiledFunction
from axode.codegen.model import Model
from axode.codegen.rollout import Rollout
from axode.problems import integrators
from axode.problems.inputs import InputPlan, _as_array, limited
from axode.problems.integrators import EVENT, FINISHED, METHODS, RUNNING, SINGULAR, Dynamics
from axode.problems.switching import switched_model
from axode.problems.watches import Watch, watch_tape
from axode.results.trajectory import Event

Array = npt.NDArray[np.float64]
SLICE = 0.1  # [s] of computing between looks at the clock, the keyboard and the progress bar


@dataclass(frozen=True)
class Settings:
    """How to integrate."""

    method: str
    t0: float
    duration: float
    step: float
    save_every: float
    rtol: float
    atol: float
    threads: int | None

    @property
    def samples(self) -> int:
        """How many states are saved after the first."""
        return max(1, round(abs(self.duration) / self.save_every))

    @property
    def times(self) -> Array:
        """When they are saved."""
        return self.t0 + self.duration * np.arange(self.samples + 1) / self.samples


@dataclass
class Outcome:
    """What became of one run."""

    status: int = RUNNING
    time: float = 0.0
    stopped_by: str | None = None
    last: Array | None = None  # state at a stop between samples
    model: Model | None = None  # whose speeds that state has


@dataclass
class Runs:
    """A batch of runs of one model, advanced together."""

    model: Model
    plan: InputPlan
    settings: Settings
    watches: Sequence[Watch]
    q: Array
    nu: Array
    p: Array | None
    out: Array = field(init=False)
    events: list[Event] = field(default_factory=list)
    switches: list[tuple[int, int, int, Model]] = field(default_factory=list)
    calls: list[tuple[float, Array]] = field(default_factory=list)  # inputs of callbacks

    def __post_init__(self) -> None:
        self.count = self.q.shape[0]
        self.outcomes = [Outcome() for _ in range(self.count)]
        self.dynamics = dynamics_of(self.model, self.plan, self.watches)
        self.rollout = Rollout(METHODS[self.settings.method](self.dynamics))
        self.out = np.full((self.count, self.settings.samples + 1, self.dynamics.n_k), np.nan)
        self.out[:, 0] = np.concatenate([self.q, self.nu, np.zeros((self.count, 2))], axis=1)
        self.buffers = self._buffers()
        self.tables = self._tables()

    def _buffers(self) -> dict[str, Array]:
        s, d, n = self.settings, self.dynamics, self.count

        def each(value: float) -> Array:
            return np.full((n, 1), float(value))

        way = 1.0 if s.duration >= 0 else -1.0
        b: dict[str, Array] = {
            "q": self.q.copy(), "nu": self.nu.copy(), "w": np.zeros((n, 2)), "t": each(s.t0),
            "status": each(RUNNING), "index": each(1.0),
        }  # fmt: skip
        if s.method == "rk4":
            per_save = max(1, round(s.save_every / s.step))
            h = s.duration / (s.samples * per_save)
            b |= {"step": each(0), "h": np.array([h]), "t0": np.array([s.t0]),
                  "n_steps": np.array([float(s.samples * per_save)]),
                  "save_steps": np.array([float(per_save)])}  # fmt: skip
        else:
            b |= {"h": self._first_step(), "steps": each(0), "rejected": each(0),
                  "t_end": np.array([s.t0 + s.duration]), "way": np.array([way]),
                  "longest": np.array([abs(s.duration)]), "rtol": np.array([s.rtol]),
                  "atol": np.array([s.atol]), "rows": np.array([float(s.samples + 1)])}  # fmt: skip
        if self.p is not None:
            b["p"] = self.p
        if self.plan.sampled is not None:
            b |= {"sample_start": np.array([self.plan.sampled.start]),
                  "sample_period": np.array([self.plan.sampled.period])}  # fmt: skip
        elif d.input is None:
            constant = self.plan.constant
            b["u"] = (np.zeros((n, d.n_u)) if constant is None
                      else np.ascontiguousarray(np.broadcast_to(constant, (n, d.n_u))))  # fmt: skip
        return b

    def _first_step(self) -> Array:
        """A cautious guess; the control corrects it within a few steps."""
        s = self.settings
        return np.full((self.count, 1), min(abs(s.duration), 1e-3, s.save_every))

    def _tables(self) -> dict[str, Array]:
        tables = {"out": self.out}
        if self.settings.method != "rk4":
            tables["times"] = np.ascontiguousarray(self.settings.times[:, np.newaxis])
        if self.plan.sampled is not None:
            tables["samples"] = np.ascontiguousarray(self.plan.sampled.table(self.model))
        return tables

    # the loop ----------------------------------------------------------------------------------

    def advance(self, look: Callable[[float], None]) -> None:
        """Run to the end, to a stop or to a failure; `look` is told the share done now and then."""
        budget = 1 if self.plan.callback else 200
        while self._running():
            if self.plan.callback:
                self._call_back()
            started = time.perf_counter()
            self.rollout(self.buffers, self.tables, budget=budget, threads=self.settings.threads)
            seconds = time.perf_counter() - started
            for run in np.flatnonzero(self.buffers["status"][:, 0] != RUNNING):
                if self.outcomes[run].status == RUNNING:
                    self._stopped(int(run))
            look(self._share())
            if not self.plan.callback and seconds < SLICE / 2:
                budget = min(2 * budget, 50_000_000)

    def _running(self) -> bool:
        return bool((self.buffers["status"][:, 0] == RUNNING).any())

    def _share(self) -> float:
        done = np.abs(self.buffers["t"][:, 0] - self.settings.t0)
        return float(done.mean() / max(abs(self.settings.duration), 1e-300))

    def _call_back(self) -> None:
        assert self.plan.callback is not None
        for run in range(self.count):
            if self.outcomes[run].status != RUNNING:
                continue
            t = float(self.buffers["t"][run, 0])
            state = self.state_of(run)
            u = limited(self.model, _as_array(self.model, self.plan.callback.function(t, state)))
            self.buffers["u"][run] = u
            self.calls.append((t, u))

    def state_of(self, run: int) -> dict[str, float]:
        """Coordinates, speeds and measures of a run now."""
        m, q, nu = self.model, self.buffers["q"][run], self.buffers["nu"][run]
        more = self._options(run)
        values = dict(zip(m.coordinates, q.tolist(), strict=True))
        values |= dict(zip(m.speed_names, m.speeds(q, nu, **more).tolist(), strict=True))
        measured = m.measures(q, nu, **more).tolist()
        return values | dict(zip(m.measure_names, measured, strict=True))

    def _options(self, run: int) -> dict[str, Any]:
        more: dict[str, Any] = {"t": float(self.buffers["t"][run, 0])}
        if self.p is not None:
            p = np.broadcast_to(self.p, (self.count, self.p.shape[-1]))[run]
            more["parameters"] = dict(zip(self.model.parameters, p.tolist(), strict=True))
        return more

    def _stopped(self, run: int) -> None:
        """A run's steps stopped to ask for something."""
        status = int(self.buffers["status"][run, 0])
        if status == EVENT:
            self._locate(run)
        elif status == SINGULAR:
            self._switch(run)
        else:
            self.outcomes[run].status = status
            self.outcomes[run].time = float(self.buffers["t"][run, 0])

    # events ------------------------------------------------------------------------------------

    def _locate(self, run: int) -> None:
        """Find the crossings inside the step that the run stopped before, and go on after it."""
        quiet = self._alone(run)
        start = quiet.snapshot()
        t = float(start["t"][0, 0])
        length = quiet.step_length()

        def watched(part: float) -> Array:
            quiet.restore(start)
            quiet.advance_by(part * length)
            return quiet.watched(self._watching)

        before, after = watched(0.0), watched(1.0)
        found: list[tuple[float, Watch]] = []
        for k, watch in enumerate(self.watches):
            crossed = before[k] * after[k] < 0 or (before[k] != 0 and after[k] == 0)
            if not crossed or watch.direction * (after[k] - before[k]) < 0:
                continue
            part = 1.0 if after[k] == 0 else float(
                brentq(lambda x, k=k: watched(x)[k], 0.0, 1.0, xtol=1e-14, rtol=1e-14))  # fmt: skip
            found.append((part, watch))
        stops = [part for part, watch in found if watch.stop]
        last = min(stops, default=1.0)
        for part, watch in sorted((pair for pair in found if pair[0] <= last), key=lambda x: x[0]):
            quiet.restore(start)
            quiet.advance_by(part * length)
            index = run if self.count > 1 else None
            self.events.append(Event(watch.name, t + part * length, index, quiet.state_of(0)))
        self._go_on(run, quiet, start, last * length, bool(stops), found)

    def _go_on(
        self, run: int, quiet: Runs, start: dict[str, Array], length: float, stop: bool,
        found: list[tuple[float, Watch]],
    ) -> None:  # fmt: skip
        """Take the step (or the part up to a stop) with its samples saved."""
        quiet.restore(start)
        quiet.advance_by(length, saving=self.out[run : run + 1])
        for name in self.rollout.program.state:
            if name in quiet.buffers:
                self.buffers[name][run] = quiet.buffers[name][0]
        self.buffers["status"][run] = FINISHED if stop else RUNNING
        if self.settings.method == "rk4" and not stop:
            self.buffers["step"][run] += 1
        outcome = self.outcomes[run]
        if stop:
            outcome.status, outcome.time = EVENT, float(self.buffers["t"][run, 0])
            outcome.stopped_by = min(found, key=lambda pair: (pair[0], not pair[1].stop))[1].name
            outcome.last = np.concatenate(
                [self.buffers[n][run] for n in ("q", "nu", "w")])  # fmt: skip
            outcome.model = self.model
        elif self._at_end(run):
            outcome.status, outcome.time = FINISHED, float(self.buffers["t"][run, 0])
            self.buffers["status"][run] = FINISHED

    def _at_end(self, run: int) -> bool:
        end = self.settings.t0 + self.settings.duration
        return abs(float(self.buffers["t"][run, 0]) - end) <= 1e-13 * max(1.0, abs(end))

    @property
    def _watching(self) -> CompiledFunction:
        tape = self.dynamics.events
        assert tape is not None
        return CompiledFunction(tape)

    def _alone(self, run: int) -> Runs:
        """One run by itself, without events, at the state it is in."""
        settings = replace(self.settings, method="dopri5", threads=1)
        p = None if self.p is None else np.ascontiguousarray(
            np.broadcast_to(self.p, (self.count, self.p.shape[-1]))[run : run + 1])  # fmt: skip
        plan = self.plan
        if plan.constant is not None or plan.callback is not None:
            plan = InputPlan(constant=self.buffers["u"][run])
        one = Runs(self.model, plan, settings, (), self.buffers["q"][run : run + 1],
                   self.buffers["nu"][run : run + 1], p)  # fmt: skip
        for name in ("w", "t", "index"):
            one.buffers[name][0] = self.buffers[name][run]
        if self.settings.method == "dopri5":
            one.buffers["h"][0] = self.buffers["h"][run]
        else:
            one.buffers["h"][0] = abs(self.buffers["h"][0])
        return one

    def step_length(self) -> float:
        """The step it is about to take, with its sign."""
        t, h = float(self.buffers["t"][0, 0]), float(self.buffers["h"][0, 0])
        left = self.settings.t0 + self.settings.duration - t
        return float(np.copysign(min(h, abs(left)), left))

    def snapshot(self) -> dict[str, Array]:
        """Its state, to come back to."""
        return {name: self.buffers[name].copy() for name in self.rollout.program.state}

    def restore(self, snapshot: dict[str, Array]) -> None:
        """Back to a state."""
        for name, value in snapshot.items():
            self.buffers[name][...] = value

    def advance_by(self, length: float, saving: Array | None = None) -> None:
        """Integrate over a short time; save samples only if told where."""
        if length == 0.0:
            return
        tables = dict(self.tables)
        if saving is None:
            self.buffers["rows"][0] = 0.0
        else:
            tables["out"] = saving
            self.buffers["rows"][0] = float(self.settings.samples + 1)
        kept = self.buffers["h"].copy()
        self.buffers["t_end"][0] = self.buffers["t"][0, 0] + length
        self.buffers["status"][...] = RUNNING
        self.rollout(self.buffers, tables, budget=100_000, threads=1)
        self.buffers["h"][...] = kept
        self.buffers["t_end"][0] = self.settings.t0 + self.settings.duration

    def watched(self, function: CompiledFunction) -> Array:
        """Watched functions at its state."""
        names = [port.name for port in function.tape.inputs]
        values: Array = function(*(self.buffers[name][0] if self.buffers[name].ndim > 1
                                   else self.buffers[name] for name in names))  # fmt: skip
        return values

    # singular choices --------------------------------------------------------------------------

    def _switch(self, run: int) -> None:
        """Go on with other independent speeds; the run goes its own way from here."""
        t = float(self.buffers["t"][run, 0])
        q, nu = self.buffers["q"][run], self.buffers["nu"][run]
        v = self.model.speeds(q, nu, **self._options(run))
        model = switched_model(self.model, q, t)
        if model is None:
            self.outcomes[run].status, self.outcomes[run].time = SINGULAR, t
            return
        other = np.array([v[model.speed_names.index(name)] for name in model.independent])
        p = None if self.p is None else np.ascontiguousarray(
            np.broadcast_to(self.p, (self.count, self.p.shape[-1]))[run : run + 1])  # fmt: skip
        plan = self.plan if self.plan.constant is None else InputPlan(
            constant=self.buffers["u"][run])  # fmt: skip
        rest = Runs(model, plan, self.settings, self.watches, q[np.newaxis].copy(),
                    other[np.newaxis], p)  # fmt: skip
        first = int(self.buffers["index"][run, 0])
        for name in ("w", "t", "index", "step", "h", "steps", "rejected"):
            if name in rest.rollout.program.state:
                rest.buffers[name][0] = self.buffers[name][run]
        rest.advance(lambda share: None)
        self.out[run, first:] = rest.out[0, first:]
        self.switches.append((run, first, self.settings.samples + 1, model))
        self.switches += [(run, a, b, m) for _, a, b, m in rest.switches]
        self.events += [replace(e, index_of_run=run if self.count > 1 else None)
                        for e in rest.events]  # fmt: skip
        self.outcomes[run] = rest.outcomes[0]
        for name in ("w", "t", "index"):
            self.buffers[name][run] = rest.buffers[name][0]


def dynamics_of(model: Model, plan: InputPlan, watches: Sequence[Watch]) -> Dynamics:
    """The tapes that a model's steps are made of."""
    facts = model.facts
    can_open = bool(facts.residual_rows or facts.quaternions)
    pivots = model.tape("pivots")
    rate = model.tape("state_rate")
    given = {"p": len(facts.parameters)} if "p" in {port.name for port in rate.inputs} else {}
    return Dynamics(
        len(facts.coordinates), len(facts.independent), len(facts.inputs), rate,
        projection=model.tape("projection") if can_open else None,
        pivots=pivots if pivots.outputs[0].size else None, input=plan.tape,
        events=watch_tape(model, watches), given=given,
        samples=None if plan.sampled is None else plan.sampled.between,
    )  # fmt: skip


__all__ = ["Outcome", "Runs", "Settings", "integrators"]
