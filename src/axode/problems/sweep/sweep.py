"""Sweep: simulate very many runs and keep a few numbers of each."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Unpack

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, RequestNotMetWarning, SweepFailed
from axode.model.model import Model
from axode.problems.arguments import start_time
from axode.problems.runs.session import Session, check_on_interrupt
from axode.problems.simulate.scenario import RunOptions, Scenario
from axode.problems.steps.audit import warn_of_inaccurate
from axode.problems.steps.compiled import AUTOMATIC
from axode.problems.sweep.accumulate import Gaps, check_outputs
from axode.problems.sweep.chunk import Sources, SweepJob, default_chunk
from axode.problems.sweep.collecting import (
    AbstractCollector,
    GpuCollector,
    MemoryCollector,
    StoreCollector,
)
from axode.problems.sweep.engines import Tally, check_executor, compute_elsewhere, compute_here
from axode.problems.sweep.samples import Group
from axode.problems.sweep.study import Study
from axode.problems.sweep.sweep_rows import SweepRows, plan_rows
from axode.results.columns import INACCURATE_TEXT, largest_inaccuracy
from axode.runtime.arrays import check_library
from axode.runtime.device import cupy

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep


def sweep(
    model: Model | Scenario,
    duration: float | None = None,
    *,
    outputs: Mapping[str, tuple[str, Any]] | None = None,
    friction: float | Mapping[str, float] | None = None,
    combine: Literal["grid", "zip"] = "grid",
    samples: Any = None,
    sampler: Literal["random", "latin_hypercube", "sobol"] = "random",
    seed: int = 0,
    store: str | PathLike[str] | None = None,
    executor: Any = None,
    chunk: int | None = None,
    progress: bool | None = None,
    asarray: str | None = None,
    on_interrupt: str = "raise",
    **options: Unpack[RunOptions],
) -> Sweep:
    """Simulate many runs and keep only a few numbers of each.

    Lists and distributions among the values of `start`, `parameters` and `input` are swept:
    `Uniform`, `Normal`, `LogUniform`, or frozen ones of SciPy. Gains of a `Law` count among the
    parameters, by their names. The input may be no `Callback`.

    Args:
        model: What moves, or a `Scenario`.
        duration: How long [s].
        outputs: By name, a pair: how ("last" or "final", "min", "max", "largest", "integral",
            "crossing", "rising", "falling") and of what: a column of a trajectory by name, a
            formula such as "pitch**2" or a function of the state's symbols. The last state and the
            largest error of the energy balance unless given. A crossing is the time of the first
            one, NaN if there is none. Wheels also have the columns of `feasible`: `<wheel>.load`,
            `<wheel>.share`, `slipping_margin` and `tipping_margin`.
        friction: Coefficient of friction, one or by wheel; one unless given, so that a share is the
            coefficient that a wheel needs.
        combine: "grid" makes every list an axis of the result, in the order of start, parameters
            and input; "zip" pairs lists of equal length, as `simulate` does.
        samples: How many rows to draw from distributions; or a table of all rows: columns by name,
            a DataFrame, or the path of a .csv or .parquet file.
        sampler: How rows are drawn; each row is the same whatever the engine and the chunks.
        seed: Which of all possible draws.
        store: Folder of a Parquet dataset, one file per finished chunk; the same call resumes
            there and computes only what is missing.
        executor: Where rows are computed: in this process unless given. A number of processes, or
            "processes" for one per core; an executor with the interface of `concurrent.futures`,
            such as one of `mpi4py.futures`; a `dask.distributed.Client`; or the module `ray`.
        chunk: How many rows are computed, sent and stored together; unless given, it depends on the
            study and not on the machine.
        progress: Show a bar; unless given, after a second on a terminal.
        asarray: Hand out results as arrays on the GPU, of "cupy", "torch" or "jax".
        on_interrupt: What Ctrl-C does: "raise" an `Interrupted` error, a `KeyboardInterrupt` that
            carries the result so far, or "return" that result; runs that had not finished are NaN.
        options: Those of `RunOptions`, but `events` and `singular`. `method` is "auto" unless
            given, or rk4 if `step` is. Extremes, crossings and integrals are found inside the
            steps, to about the error of the motion. `target` may be several GPUs, "cuda:0,1" or
            "cuda:all". One thread per process of an executor unless given.

    Raises:
        Interrupted: after Ctrl-C.
        SweepFailed: if the executor stops computing; it carries the result so far.
    """
    check_arguments(sweep, locals())
    check_on_interrupt("sweep", on_interrupt)
    check_executor(executor)
    if asarray is not None:
        check_library(asarray)
        cupy()  # now rather than after all the computing
    scenario = Scenario.read(
        "sweep", model, duration, options, refused=("events", "singular"), own=sweep
    )
    asked, model, place = scenario.options, scenario.model, scenario.place
    given: dict[Group, Any] = {
        "start": asked.get("start"),
        "parameter": asked.get("parameters"),
        "input": scenario.input,
    }
    rows, traced, planned = plan_rows(
        model, given, combine, samples=samples, sampler=sampler, seed=seed
    )
    t0 = start_time(asked.get("t0"), rows.start)
    settings = scenario.settings(AUTOMATIC if asked.get("step") is None else "rk4", t0=t0)
    wanted = check_outputs(model, outputs, friction)
    job = SweepJob(
        model,
        settings,
        wanted.named,
        wanted.trace(model),
        traced,
        rows.plan.updates,
        rows.plan.gains,
        rows.untouched(model),
        Sources(planned, wanted),
    )
    study = Study(job, rows, _check_chunk(chunk, job, rows))
    stays = asarray is not None and executor is None and place.target == "cuda"
    collector = _collector(study, store, on_gpu=stays)
    session = Session(model.name, settings, 0, progress)
    try:
        made = _compute(collector, executor, session)
        made.library = asarray
        if not session.interrupted and INACCURATE_TEXT in made.statuses:
            worst = largest_inaccuracy(made.reasons.texts)
            warn_of_inaccurate(made.statuses[INACCURATE_TEXT], made.runs, worst)
        kept = "" if store is None else f" and in '{store}'; the same call computes the rest"
        result: Sweep = session.deliver(made, on_interrupt, kept)
    finally:
        collector.close()
    return result


def _compute(collector: AbstractCollector, executor: Any, session: Session) -> Sweep:
    """Compute all chunks that are missing.

    Raises:
        SweepFailed: if the executor stops computing.
    """
    study, done = collector.study, collector.finished()
    rows = sum(last - first for first, last in map(study.span, done))
    missing = (number for number in range(study.chunks) if number not in done)
    tally = Tally(session, study.job.model.name, study.rows.count, rows)

    gaps = Gaps(study.job.outputs)

    def result() -> Sweep:
        return collector.result({"seconds": session.seconds, "computed": tally.computed})

    with session, session.keep_results():
        if executor is None:
            made = compute_here(study, missing, session, tally, on_gpu=collector.on_gpu)
        else:
            made = compute_elsewhere(executor, study, missing, session, tally)
        noticed: tuple[str, ...] = ()
        try:
            for number, part in made:
                collector.add(number, part)
                gaps.look(part)
                if part.warnings and not noticed:
                    noticed = part.warnings
                    warnings.warn("\n  ".join(noticed), RequestNotMetWarning, stacklevel=3)
        except SweepFailed as error:
            error.result = result()
            raise
    gaps.warn()
    return result()


def _collector(
    study: Study, store: str | PathLike[str] | None, *, on_gpu: bool
) -> AbstractCollector:
    """Choose where the numbers go: a folder, the GPU, or the memory."""
    if store is not None:
        return StoreCollector(study, store)
    return GpuCollector(study) if on_gpu else MemoryCollector(study)


def _check_chunk(chunk: int | None, job: SweepJob, rows: SweepRows) -> int:
    if chunk is None:
        return default_chunk(job.model, job.settings, rows)
    if chunk < 1:
        raise InvalidArgument(f"chunk: must be >= 1 row, got {chunk}")
    return chunk
