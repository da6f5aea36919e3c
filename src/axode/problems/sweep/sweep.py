"""Sweep: a few numbers of very many runs, none of which is stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.problems.arguments import refuse_no_model, seconds
from axode.problems.interrupt import Interrupt
from axode.problems.parameter_arguments import checked_parameters
from axode.problems.progress import Progress
from axode.problems.simulate.batch import SMALLEST_PIVOT
from axode.problems.simulate.inputs import InputPlan, plan_input
from axode.problems.simulate.record import STATUS_WORDS
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.starts import starts
from axode.problems.singular.other_models import translate_speeds
from axode.problems.singular.switching import choose_models
from axode.problems.steps.compiled import Place, compiled, dynamics_of
from axode.problems.steps.methods import rk4_program
from axode.problems.steps.stages import FINISHED, RUNNING, SINGULAR
from axode.problems.sweep.accumulate import Output, checked_outputs, gathering
from axode.problems.sweep.axes import Axes

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
ENOUGH = 0.2  # pivot of the user's model from which on runs stay with it
LEAST_PIVOT = 1e-3  # below it the motion is no longer determined by the speeds that were chosen
SLICE = 0.2  # [s] of computing between looks at the keyboard and the progress bar
FIRST_BUDGET = 16  # steps before the first look


def sweep(
    model: Model,
    duration: float,
    *,
    start: Any = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    input: Any = None,
    outputs: Mapping[str, tuple[str, Any]] | None = None,
    step: float | None = None,
    combine: Literal["grid", "zip"] = "grid",
    t0: float = 0.0,
    threads: int | None = None,
    progress: bool | None = None,
    target: str | None = None,
    precision: str | None = None,
) -> Sweep:
    """Simulate many runs and keep only a few numbers of each.

    Args:
        model: What moves.
        duration: How long [s].
        start: Coordinates, speeds and measures by name, as `simulate` takes them; lists of values
            are swept.
        parameters: Values by name; lists are swept.
        input: As `simulate` takes it, but no callback; lists of constants are swept.
        outputs: By name, a pair: how ("last", "min", "max", "largest", "integral", "crossing",
            "rising", "falling") and of what, a column of a trajectory by name or a function of the
            state's symbols. The last state and the largest error of the energy balance unless
            given. A crossing is the time of the first one, NaN if there is none.
        step: Of rk4 [s], 1 ms unless given; extremes and crossings are looked for at every step.
        combine: "grid" makes every list an axis of the result, in the order of start, parameters
            and input; "zip" pairs lists of equal length, as `simulate` does.
        t0: Time at the start [s].
        threads: How many threads share the runs.
        progress: Show a bar; by itself after a second on a terminal.
        target: "cpu" or "cuda"; where the model's functions run unless given.
        precision: "float64" or, on a GPU, "float32"; the model's unless given.
    """
    refuse_no_model("sweep", model)
    place = Place.of(model, target, precision)
    start_time, length = seconds("t0", t0), seconds("duration", duration)
    settings = Settings("rk4", start_time, length, step, None, 1e-8, 1e-10, threads, place)
    model = model.on_cpu()
    wanted = checked_outputs(model, outputs)
    axes = _axes(combine, start, parameters, input)
    plan = plan_input(model, axes.spread(input))
    if plan.callback is not None:
        raise InvalidArgument(
            "input: a Callback runs in Python, one run after the other; give a sweep formulas, "
            "functions of the state or Sampled(...), or use simulate"
        )
    _refuse_mixture(axes, start, input, plan)
    p = checked_parameters(model, axes.spread(parameters))
    q, nu, p, batch = starts(model, axes.spread(start), t0, p, plan.batch)
    started = time.perf_counter()
    runs = _Runs(
        model,
        plan.spread(batch),
        settings,
        list(wanted.values()),
        q,
        nu,
        p,
        least_pivot=SMALLEST_PIVOT,
    )
    changes = _Changes(
        runs, lambda other: plan_input(other, axes.spread(input), model.independent).spread(batch)
    )
    with Progress(model.name, progress) as bar, Interrupt() as interrupt:

        def look(share: float) -> None:
            interrupt.check()
            bar.update(share)

        with suppress(KeyboardInterrupt):  # runs that were not finished are NaN
            changes.advance(look)
    return _result(runs, wanted, axes, batch, time.perf_counter() - started)


def _axes(combine: str, start: Any, parameters: Any, input: Any) -> Axes:
    axes = Axes(combine)
    axes.collect("start", start)
    axes.collect("parameter", parameters)
    axes.collect("input", input)
    return axes


def _refuse_mixture(axes: Axes, start: Any, input: Any, plan: InputPlan) -> None:
    """A grid of named values, and arrays whose runs have no names."""
    arrays = isinstance(start, tuple) and any(np.ndim(a) > 1 for a in start)
    tables = bool(plan.batch) and not isinstance(input, Mapping)
    if axes.values and (arrays or tables):
        raise InvalidArgument(
            f"sweep: {', '.join(axes.values)} make a grid, but "
            f"{'start' if arrays else 'input'} is an array of runs; use combine='zip', or names"
        )


class _Runs:
    """All runs of a sweep: a program that gathers, and the arrays it works on."""

    def __init__(
        self,
        model: Model,
        plan: InputPlan,
        settings: Settings,
        outputs: list[Output],
        q: Array,
        nu: Array,
        p: Array | None,
        speeds: Sequence[str] | None = None,
        least_pivot: float = LEAST_PIVOT,
    ) -> None:
        self.model, self.settings, self.outputs, self.p = model, settings, outputs, p
        self.least_pivot = least_pivot
        d = dynamics_of(model, plan, (), single=settings.place.single)
        program = rk4_program(d, gathering(model, d, outputs, speeds))
        key = ("sweep", program.digest)
        self.rollout = compiled(model, key, settings.place, lambda: program)
        self.count = len(q)
        s = settings
        b = {name: np.zeros((self.count, size)) for name, size in program.state.items()}
        b["q"][...], b["nu"][...], b["t"][...] = q, nu, s.t0
        numbers = {
            "t_end": s.t_end,
            "h": s.way * s.length,
            "t0": s.t0,
            "n_steps": s.n_steps,
            "least_pivot": least_pivot,
        }
        self.tables = {}
        if plan.sampled is not None:
            table = plan.sampled
            numbers |= {
                "sample_start": table.start,
                "sample_period": table.period,
                "sample_count": table.count,
            }
            self.tables["samples"] = table.table
        arrays = {"p": p, "u": plan.constant}
        for name in program.given:
            known = arrays.get(name)
            b[name] = np.ascontiguousarray([float(numbers[name])] if known is None else known)
            b[name] = b[name].view()
            b[name].setflags(write=False)  # carried to a GPU once
        self.buffers = b

    def advance(self, look: Callable[[float], None]) -> None:
        """Run all to an end; `look` is told now and then which share is done."""
        steps, budget = self.rollout.bind(self.buffers, self.tables), FIRST_BUDGET
        status, taken = self.buffers["status"], self.buffers["step"]
        while (status == RUNNING).any():
            began = time.perf_counter()
            steps(budget, self.settings.threads)
            seconds = time.perf_counter() - began
            budget *= 4 if seconds < SLICE / 4 else 2 if seconds < SLICE else 1
            look(float(taken.mean()) / self.settings.n_steps)


class _Changes:
    """Runs that change to other rows and speeds of the same mechanism, where theirs are singular.

    Args:
        runs: All of them, on the user's model.
        plan: The input of all runs, for another model.
    """

    def __init__(self, runs: _Runs, plan: Callable[[Model], InputPlan]) -> None:
        self.runs, self._plan = runs, plan
        self._stopped_at = np.full(runs.count, -1.0)  # steps that a run had taken

    def advance(self, look: Callable[[float], None]) -> None:
        """Run all to an end; `look` receives the share that is done, now and then."""
        waiting = [(self.runs, np.arange(self.runs.count))]
        while waiting:
            part, members = waiting.pop()
            part.advance(look)
            self._deliver(part, members)
            for other, which, least in self._elsewhere(part, members):
                moved = self._moved(part, other, which, members[which], least)
                waiting.append((moved, members[which]))

    def _deliver(self, part: _Runs, members: Numbers) -> None:
        if part is not self.runs:
            for name in ("status", "made", "step"):
                self.runs.buffers[name][members] = part.buffers[name]

    def _elsewhere(self, part: _Runs, members: Numbers) -> Iterator[tuple[Model, Numbers, float]]:
        """Choose models for runs that stopped: which runs, and how small pivots may become."""
        b = part.buffers
        steps, status = b["step"][:, 0], b["status"][:, 0]
        stopped = np.flatnonzero(status == SINGULAR)
        fresh = steps[stopped] > self._stopped_at[members[stopped]]
        self._stopped_at[members[stopped]] = steps[stopped]
        found = np.zeros(stopped.size, dtype=bool)
        if fresh.any() and not self._names_forces():
            options: dict[str, Any] = {"t": b["t"][stopped, 0]}
            if part.p is not None:
                p = part.p if part.p.ndim == 1 else part.p[stopped]
                options["parameters"] = dict(zip(part.model.parameters, p.T, strict=True))
            described = choose_models(self.runs.model, b["q"][stopped], options, ENOUGH)
            own = np.flatnonzero(~described.elsewhere)
            for model, (k, *_) in [(self.runs.model, (own,)), *described.others()]:
                k = k[fresh[k]]
                if model is not part.model and k.size:
                    found[k] = True
                    yield model, stopped[k], SMALLEST_PIVOT
        left = stopped[~found]
        if left.size and part.least_pivot > LEAST_PIVOT:
            yield part.model, left, LEAST_PIVOT

    def _names_forces(self) -> bool:
        """Check whether forces of rows are asked for, which other rows do not have."""
        signals = self.runs.model.signals
        named = (output.what for output in self.runs.outputs if isinstance(output.what, str))
        return any(signals.resolve(name).function == "multipliers" for name in named)

    def _moved(
        self, part: _Runs, model: Model, which: Numbers, members: Numbers, least_pivot: float
    ) -> _Runs:
        """Move some runs to another model, from where they are."""
        own = part.buffers
        p = part.p if part.p is None or part.p.ndim == 1 else part.p[which]
        q = own["q"][which]
        nu = translate_speeds(
            part.model, model.independent, q, own["nu"][which], own["t"][which, 0], p
        )
        plan = self._plan(model).part(members)
        speeds = self.runs.model.independent
        moved = _Runs(model, plan, part.settings, part.outputs, q, nu, p, speeds, least_pivot)
        for name in moved.rollout.program.state:
            if name in own and name not in ("q", "nu", "status", "near", "flat"):
                moved.buffers[name][...] = own[name][which]
        return moved


def _result(
    runs: _Runs, wanted: Mapping[str, Output], axes: Axes, batch: tuple[int, ...], seconds: float
) -> Sweep:
    from axode.results.sweep_result import Sweep

    status = runs.buffers["status"][:, 0].astype(int)
    finished = (status == FINISHED).reshape(batch)
    made = runs.buffers["made"].reshape(*batch, len(wanted))
    values = {name: np.where(finished, made[..., k], np.nan) for k, name in enumerate(wanted)}
    codes, times = np.unique(status, return_counts=True)
    counts = {STATUS_WORDS[code]: n for code, n in zip(codes.tolist(), times.tolist(), strict=True)}
    s, place = runs.settings, runs.settings.place
    info = {
        "model": runs.model.name,
        "runs": runs.count,
        "step": s.length,
        "steps": s.n_steps,
        "seconds": seconds,
        "target": place.target,
        "precision": place.precision,
    }
    return Sweep(values, dict(axes.values), finished, counts, info)
