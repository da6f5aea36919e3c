"""Sweep: simulate very many runs and keep a few numbers of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.model.model import Model
from axode.names import NamedValues
from axode.problems.arguments import GivenState, read_state, require_model
from axode.problems.session import Session, check_on_interrupt
from axode.problems.simulate.inputs import InputPlan, inputs_of_sample, plan_input
from axode.problems.simulate.record import STATUS_WORDS
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.starts import shared_batch
from axode.problems.steps.compiled import Place
from axode.problems.steps.step_acceptance import FINISHED, LEFT
from axode.problems.sweep.accumulate import check_outputs
from axode.problems.sweep.axes import Axes
from axode.problems.sweep.chunk import (
    ChunkResult,
    PreparedJob,
    Sources,
    SweepJob,
    default_chunk,
    spans,
)

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep

Array = npt.NDArray[np.float64]
ROWS_AT_ONCE = {"cpu": 1, "cuda": 1 << 22}  # chunks are joined up to so many rows


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
    chunk: int | None = None,
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
        chunk: How many rows are computed together; it depends on the study alone unless given.
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
    job = _make_job(model.on_cpu(), settings, (start, parameters, input), outputs, combine, chunk)
    table = _Table(job)
    with Session(model.name, settings, 0, progress) as session, session.keep_results():
        prepared = PreparedJob(job)
        for rows in spans(job, ROWS_AT_ONCE[place.target]):
            session.begin(len(rows), rows[0] / job.count, len(rows) / job.count)
            table.add(prepared.compute(rows, session))
            if session.interrupted:
                break
    return session.deliver(table.result(session.seconds), on_interrupt)


def _make_job(
    model: Model,
    settings: Settings,
    given: tuple[Any, Any, Any],
    outputs: Any,
    combine: str,
    chunk: int | None,
) -> SweepJob:
    """Check what the user gave, and trace their functions."""
    start, parameters, input = given
    wanted = check_outputs(model, outputs)
    input = inputs_of_sample(model, input)
    samples = Axes(combine)
    samples.collect("start", start)
    samples.collect("parameter", parameters)
    samples.collect("input", input)
    state = read_state(model, _shared(start, samples), "start")
    parameters = _shared(parameters, samples)
    inputs = _shared(input, samples) if "input" in samples.groups.values() else None
    plan = InputPlan() if inputs is not None else plan_input(model, input)
    if plan.callback is not None:
        raise InvalidArgument(
            "input: a Callback runs in Python, one run after the other; give a sweep formulas, "
            "functions of the state or Sampled(...), or use simulate"
        )
    _refuse_mixture(samples, state, plan)
    shapes = [*state.shapes, *map(np.shape, samples.values.values())]
    if combine == "zip":
        samples.batch = shared_batch(plan.batch, shapes)
    shape = samples.shape if samples.values else shared_batch(plan.batch, shapes)
    if chunk is not None and chunk < 1:
        raise InvalidArgument(f"chunk: must be > 0 rows, got {chunk}")
    rows = default_chunk(model, settings, plan) if chunk is None else chunk
    return SweepJob(
        model,
        settings,
        wanted.named,
        wanted.trace(model),
        plan,
        inputs,
        state,
        parameters,
        samples,
        shape,
        rows,
        Sources(input, wanted),
    )


def _shared(given: Any, samples: Axes) -> Any:
    """What a mapping gives to all rows alike; anything else as it is."""
    if not isinstance(given, Mapping) or isinstance(given, NamedValues):
        return given
    return {name: value for name, value in given.items() if name not in samples.names}


def _refuse_mixture(samples: Axes, start: GivenState, plan: InputPlan) -> None:
    """Refuse a grid of named values beside arrays whose runs have no names."""
    arrays = start.q is not None and any(start.shapes)
    if samples.combine == "grid" and samples.values and (arrays or plan.batch):
        raise InvalidArgument(
            f"sweep: {', '.join(samples.names)} make a grid, but "
            f"{'start' if arrays else 'input'} is an array of runs; use combine='zip', or names"
        )


class _Table:
    """Numbers of all rows, in memory."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job
        self.values = np.full((job.count, len(job.outputs)), np.nan)
        self.status = np.full(job.count, LEFT, dtype=np.int8)

    def add(self, part: ChunkResult) -> None:
        """Keep the numbers of some rows."""
        self.values[part.rows], self.status[part.rows] = part.values, part.status

    def result(self, seconds: float) -> Sweep:
        """Name the numbers and count how runs ended."""
        from axode.results.sweep_result import Sweep

        job, settings = self.job, self.job.settings
        arrays = {name: self.values[:, k].reshape(job.shape) for k, name in enumerate(job.outputs)}
        codes, times = np.unique(self.status, return_counts=True)
        pairs = zip(codes.tolist(), times.tolist(), strict=True)
        info = {
            "model": job.model.name,
            "runs": job.count,
            "step": settings.step_size,
            "steps": settings.n_steps,
            "seconds": seconds,
            "target": settings.place.target,
            "precision": settings.place.precision,
        }
        return Sweep(
            arrays,
            dict(job.samples.values) if job.samples.combine == "grid" else {},
            (self.status == FINISHED).reshape(job.shape),
            {STATUS_WORDS[code]: n for code, n in pairs},
            info,
        )
