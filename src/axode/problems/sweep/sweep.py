"""Sweep: simulate very many runs and keep a few numbers of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.lowering.program import Program
from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.problems.arguments import GivenState, read_state, require_model
from axode.problems.parameter_arguments import checked_parameters
from axode.problems.session import CompiledRuns, Session, Task, check_on_interrupt
from axode.problems.simulate.batch import SMALLEST_PIVOT
from axode.problems.simulate.inputs import InputPlan, inputs_of_sample, plan_input
from axode.problems.simulate.record import STATUS_WORDS
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.starts import starts
from axode.problems.singular.other_models import translate_speeds
from axode.problems.singular.switching import choose_models
from axode.problems.steps.compiled import Place, compiled
from axode.problems.steps.explicit import fixed_step_program
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import FINISHED, LEFT, SINGULAR
from axode.problems.steps.tableaus import RK4
from axode.problems.sweep.accumulate import Output, check_outputs, gather_outputs
from axode.problems.sweep.axes import Axes

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
GOOD_PIVOT = 0.2  # of the user's model, from which on runs stay with it
LEAST_PIVOT = 1e-3  # below it the motion is no longer determined by the speeds that were chosen
RESET_BUFFERS = ("q", "nu", "status", "near", "flat")  # where a run changes its model


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
    on_interrupt: str = "raise",
) -> Sweep:
    """Simulate many runs and keep only a few numbers of each.

    Args:
        model: What moves.
        duration: How long [s].
        start: State to start from, as `simulate` takes it; lists of values by name are swept.
        parameters: Values by name; lists are swept.
        input: As `simulate` takes it, but no callback; lists of constants are swept.
        outputs: By name, a pair: how ("last", "min", "max", "largest", "integral", "crossing",
            "rising", "falling") and of what: a column of a trajectory by name, a formula such as
            "pitch**2" or a function of the state's symbols. The last state and the largest error of
            the energy balance unless given. A crossing is the time of the first one, NaN if there
            is none.
        step: Step size of rk4 [s], 1 ms unless given; extremes and crossings are looked for at
            every step.
        combine: "grid" makes every list an axis of the result, in the order of start, parameters
            and input; "zip" pairs lists of equal length, as `simulate` does.
        t0: Time at the start [s].
        threads: How many threads share the runs.
        progress: Show a bar; unless given, after a second on a terminal.
        target: "cpu" or "cuda"; where the model's functions run unless given.
        precision: "float64" or, on a GPU, "float32"; the model's unless given.
        on_interrupt: What Ctrl-C does: "raise" an `Interrupted` error, a `KeyboardInterrupt` that
            carries the result so far, or "return" that result; runs that had not finished are NaN.

    Raises:
        Interrupted: after Ctrl-C.
    """
    check_arguments(sweep, locals())
    require_model("sweep", model)
    check_on_interrupt("sweep", on_interrupt)
    place = Place.of(model, target, precision)
    settings = Settings("rk4", t0, duration, step, None, 1e-8, 1e-10, threads, place)
    model = model.on_cpu()
    wanted = check_outputs(model, outputs)
    given, input = read_state(model, start, "start"), inputs_of_sample(model, input)
    axes = _axes(combine, given.named, parameters, input)
    plan = plan_input(model, axes.spread(input))
    if plan.callback is not None:
        raise InvalidArgument(
            "input: a Callback runs in Python, one run after the other; give a sweep formulas, "
            "functions of the state or Sampled(...), or use simulate"
        )
    _refuse_mixture(axes, given, input, plan)
    p = checked_parameters(model, axes.spread(parameters))
    given = replace(given, named=axes.spread(given.named))
    q, nu, p, batch = starts(model, given, settings.t0, p, plan.batch)
    with Session(model.name, settings, len(q), progress) as session:
        task = Task(model, plan.spread(batch), settings)
        runs = _Runs(
            task,
            list(wanted.values()),
            {"q": q, "nu": nu},
            p,
            lambda other: plan_input(other, axes.spread(input), model.independent).spread(batch),
        )
        with session.keep_results():
            runs.advance(session)
    return session.deliver(_result(runs, wanted, axes, batch, session.seconds), on_interrupt)


def _axes(combine: str, start: Any, parameters: Any, input: Any) -> Axes:
    axes = Axes(combine)
    axes.collect("start", start)
    axes.collect("parameter", parameters)
    axes.collect("input", input)
    return axes


def _refuse_mixture(axes: Axes, start: GivenState, input: Any, plan: InputPlan) -> None:
    """A grid of named values, and arrays whose runs have no names."""
    arrays = start.q is not None and any(start.shapes)
    tables = bool(plan.batch) and not isinstance(input, Mapping)
    if axes.values and (arrays or tables):
        raise InvalidArgument(
            f"sweep: {', '.join(axes.values)} make a grid, but "
            f"{'start' if arrays else 'input'} is an array of runs; use combine='zip', or names"
        )


class _Batch(CompiledRuns):
    """Runs of one model, the numbers gathered from each, and how small their pivots may become."""

    def __init__(
        self,
        task: Task,
        outputs: Sequence[Output],
        members: Numbers,
        start: dict[str, Array],
        p: Array | None,
        least_pivot: float,
    ) -> None:
        self.outputs, self.least_pivot = outputs, least_pivot
        self.dynamics = d = task.dynamics()
        rollout = _compile_sweep(task, d, tuple(outputs))
        super().__init__(task, rollout, members, start, p, {"least_pivot": least_pivot})

    def advance(self, session: Session) -> None:
        """Run until every run has ended or stopped."""
        session.advance(self, self.first_budget(len(self.dynamics.rate.kinds)))


def _compile_sweep(task: Task, d: Dynamics, outputs: tuple[Output, ...]) -> Any:
    """Compile steps that gather outputs, once for all sweeps that ask for the same."""

    def program() -> Program:
        return fixed_step_program(RK4, d, gather_outputs(task.model, d, outputs, task.speeds))

    if all(isinstance(output.what, str) for output in outputs):
        traced = None if d.input is None else d.input.digest
        return compiled(
            task.model, ("sweep", outputs, d.samples, traced), task.settings.place, program
        )
    made = program()  # functions are traced again: they may have changed
    return compiled(task.model, ("sweep", made.digest), task.settings.place, lambda: made)


class _Runs:
    """All runs: a batch of them, and batches of those that changed to other rows and speeds.

    Args:
        task: What the steps are made of, with the user's model.
        outputs: What is gathered.
        start: q and nu, (runs, size) each.
        p: Free parameters, (size,) or (runs, size).
        plan: Makes the input of all runs for another model.
    """

    def __init__(
        self,
        task: Task,
        outputs: Sequence[Output],
        start: dict[str, Array],
        p: Array | None,
        plan: Callable[[Model], InputPlan],
    ) -> None:
        self.task, self.outputs, self._plan = task, outputs, plan
        self.count = len(start["q"])
        self.first = _Batch(task, outputs, np.arange(self.count), start, p, SMALLEST_PIVOT)
        self._stopped_at = np.full(self.count, -1.0)  # steps that a run had taken

    def advance(self, session: Session) -> None:
        """Run all to an end, or until Ctrl-C."""
        waiting = [self.first]
        while waiting:
            batch = waiting.pop()
            try:
                batch.advance(session)
            except KeyboardInterrupt:  # what to do with runs that stopped is still open
                status = batch.buffers["status"]
                status[status == SINGULAR] = LEFT
                raise
            finally:
                self._deliver(batch)
            for model, which, least_pivot in self._elsewhere(batch):
                waiting.append(self._move(batch, model, which, least_pivot))

    def _deliver(self, batch: _Batch) -> None:
        """Keep what a batch has done."""
        if batch is not self.first:
            for name in ("status", "made", "step"):
                self.first.buffers[name][batch.members] = batch.buffers[name]

    def _elsewhere(self, batch: _Batch) -> Iterator[tuple[Model, Numbers, float]]:
        """Choose models for runs that stopped: which runs, and how small pivots may become."""
        b, members = batch.buffers, batch.members
        steps, status = b["step"][:, 0], b["status"][:, 0]
        stopped = np.flatnonzero(status == SINGULAR)
        fresh = steps[stopped] > self._stopped_at[members[stopped]]
        self._stopped_at[members[stopped]] = steps[stopped]
        found = np.zeros(stopped.size, dtype=bool)
        if fresh.any() and not self._names_forces():
            own = self.task.model
            conditions = batch.conditions(stopped)
            described = choose_models(own, b["q"][stopped], conditions, GOOD_PIVOT)
            stays = np.flatnonzero(~described.elsewhere)
            for model, (k, *_) in [(own, (stays,)), *described.others()]:
                k = k[fresh[k]]
                if model is not batch.model and k.size:
                    found[k] = True
                    yield model, stopped[k], SMALLEST_PIVOT
        left = stopped[~found]
        if left.size and batch.least_pivot > LEAST_PIVOT:
            yield batch.model, left, LEAST_PIVOT

    def _names_forces(self) -> bool:
        """Check whether forces of rows are asked for, which other rows do not have."""
        signals = self.task.model.signals
        named = (output.what for output in self.outputs if isinstance(output.what, str))
        return any(signals.resolve(name).function == "multipliers" for name in named)

    def _move(self, batch: _Batch, model: Model, which: Numbers, least_pivot: float) -> _Batch:
        """Move some runs to another model, from where they are."""
        own, members, conditions = batch.buffers, batch.members[which], batch.conditions(which)
        self.first.buffers["status"][members] = LEFT  # until the other batch has run
        q = own["q"][which]
        nu = translate_speeds(batch.model, model.independent, q, own["nu"][which], conditions)
        task = replace(
            self.task,
            model=model,
            plan=self._plan(model).part(members),
            speeds=self.task.model.independent,
        )
        start = {
            name: own[name][which]
            for name in own
            if name in batch.rollout.program.state and name not in RESET_BUFFERS
        }
        start |= {"q": q, "nu": nu}
        return _Batch(task, self.outputs, members, start, conditions.p, least_pivot)


def _result(
    runs: _Runs, wanted: Mapping[str, Output], axes: Axes, batch: tuple[int, ...], seconds: float
) -> Sweep:
    from axode.results.sweep_result import Sweep

    buffers = runs.first.buffers
    status = buffers["status"][:, 0].astype(int)
    finished = (status == FINISHED).reshape(batch)
    made = buffers["made"].reshape(*batch, len(wanted))
    values = {name: np.where(finished, made[..., k], np.nan) for k, name in enumerate(wanted)}
    codes, times = np.unique(status, return_counts=True)
    counts = {STATUS_WORDS[code]: n for code, n in zip(codes.tolist(), times.tolist(), strict=True)}
    s, place = runs.task.settings, runs.task.settings.place
    info = {
        "model": runs.task.model.name,
        "runs": runs.count,
        "step": s.step_size,
        "steps": s.n_steps,
        "seconds": seconds,
        "target": place.target,
        "precision": place.precision,
    }
    return Sweep(values, dict(axes.values), finished, counts, info)
