"""Compute chunks of a sweep: a job that can be sent to other processes, and its prepared form."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.model.function_source import JACOBIAN
from axode.model.memory import ModelWithMemory, with_memory, without_memory
from axode.model.model import Model
from axode.model.model_file import decode_model, encode_model
from axode.model.model_parts import facts_of, row_numbers_of
from axode.problems.assemble.closure import MAX_INTERPRETED
from axode.problems.assemble.start_warnings import collect_warnings
from axode.problems.inputs.inputs import InputPlan, Updates, plan_input
from axode.problems.runs.session import Session
from axode.problems.runs.settings import Settings
from axode.problems.simulate.starts import find_starts, refuse_sunk, take_first_samples
from axode.problems.steps.compiled import CONTACT_FUNCTIONS, STEPS, tape_of
from axode.problems.steps.step_acceptance import (
    FINISHED,
    INACCURATE,
    RUNNING,
    SINGULAR,
    STIFF,
    UNASSEMBLED,
)
from axode.problems.sweep.accumulate import Output, Outputs
from axode.problems.sweep.gpu_rows import numbers_there
from axode.problems.sweep.sweep_rows import SweepRows
from axode.problems.sweep.sweep_runs import SweepBatch, SweepRuns, SweepTask, names_forces
from axode.results.columns import describe_inaccuracy
from axode.results.sweep_arrays import RowTexts
from axode.runtime.resident_buffers import ResidentBuffers, read_rows

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.intp]
CHUNK_OPERATIONS = 4e9  # about a second of one core
STAGES = 4  # evaluations of the rates in a step
MIN_CHUNK = 512  # rows; fewer do not fill a machine of many cores
MAX_CHUNK = {"cpu": 1 << 16, "cuda": 1 << 21}  # rows
MAX_NUMBERS = {"cpu": 1 << 23, "cuda": 1 << 28}  # that the rows of a chunk take
# functions that starts and steps are made of
FUNCTIONS = {
    "state_rate",
    "projection",
    "pivots",
    "residual",
    "residual_jacobian",
    "dropped_rows",
    "measures",
    "measures_jacobian",
    "joint_speeds",
    "speed_map",
    "energy",
}


@dataclass(frozen=True)
class Sources:
    """Input and outputs as the user gave them, to be traced again for models on other speeds."""

    input: Any
    outputs: Outputs


@dataclass(frozen=True)
class SweepJob:
    """What every row of a sweep does, without the values that rows differ in.

    A copy in another process has the model as a file would have it: its functions, not its
    equations. It leaves runs that need other rows and speeds to the process that called `sweep`.

    Attributes:
        model: What moves.
        settings: How to integrate.
        outputs: Numbers of every run by name.
        functions: Functions of the state among these, traced.
        input: Input that depends on time or the state, traced.
        updates: What a law samples of the state, traced.
        gains: Numbers that these read, where rows differ in some.
        defaults: Parameters that keep their defaults in all rows.
        sources: What the user gave; it stays with the process that called `sweep`.
        leaves_runs: Whether runs are left to the process that has the equations.
    """

    model: Model
    settings: Settings
    outputs: Mapping[str, Output]
    functions: Tape | None
    input: Tape | None
    updates: Updates | None = None
    gains: Array | None = None
    defaults: tuple[str, ...] = ()
    sources: Sources | None = None
    leaves_runs: bool = False

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__) | {
            "sources": None,
            "leaves_runs": row_numbers_of(self.model) is not None,
        }
        memory = self.model.memory if isinstance(self.model, ModelWithMemory) else ()
        return state | {"model": self._encode(), "memory": memory}

    def __setstate__(self, state: dict[str, Any]) -> None:
        model = with_memory(decode_model(state["model"]), state["memory"])
        known = {name: value for name, value in state.items() if name != "memory"}
        known |= {"model": model}
        for name, value in known.items():
            object.__setattr__(self, name, value)

    def _encode(self) -> bytes:
        signals, model = self.model.signals, without_memory(self.model)
        named = (output.what for output in self.outputs.values() if isinstance(output.what, str))
        wanted = FUNCTIONS | {signals.resolve(name).function for name in named}
        if not model.has_equations:  # else stiff runs are left to this process
            wanted.add(JACOBIAN)
        tapes = {name: tape_of(model, name) for name in model.functions if name in wanted}
        if self.settings.method == STEPS:
            tapes |= {name: tape_of(model, name) for name in CONTACT_FUNCTIONS}
        return encode_model(facts_of(model), model.scene, tapes)


@dataclass(frozen=True)
class ChunkResult:
    """Numbers of the rows of a chunk.

    Attributes:
        first: Number of the first row.
        values: Outputs, (rows, outputs); NaN for runs that did not finish. On a GPU if asked for.
        status: How each run ended, a code of `step_acceptance`; on a GPU where values are there
            and statuses differ.
        reasons: Why runs failed, by place in the chunk, where more is known than the status.
        left: Runs that are left to the process that called `sweep`.
        worker: Machine and process that computed it.
        seconds: How long it took.
        counts: How many rows have each status, by its code; known where values are on a GPU.
        warnings: Texts about starts that differ from the request.
    """

    first: int
    values: Any
    status: Any
    reasons: RowTexts
    left: Flags | None = None
    worker: str = ""
    seconds: float = 0.0
    counts: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()

    def finished_by(self, other: ChunkResult) -> ChunkResult:
        """Return these numbers with those of another process for the runs that were left to it."""
        left = self.left
        assert left is not None
        return replace(
            self,
            values=np.where(left[:, np.newaxis], other.values, self.values),
            status=np.where(left, other.status, self.status),
            reasons=self.reasons.replaced(other.reasons),
            left=None,
        )


@dataclass(frozen=True)
class ChunkStarts:
    """Starts of the rows of a chunk.

    Attributes:
        first: Number of the first row.
        q, nu: Coordinates and speeds, (rows, size) each.
        p: Free parameters, (size,) or (rows, size).
        plan: Input.
        status: `UNASSEMBLED` for rows without a start, (rows, 1).
        reasons: Why they have none.
        seconds: How long it took to find them.
        warnings: Texts about starts that differ from the request.
    """

    first: int
    q: Array
    nu: Array
    p: Array | None
    plan: InputPlan
    status: Array
    reasons: RowTexts
    seconds: float
    warnings: tuple[str, ...] = ()


class PreparedJob:
    """A job whose steps are compiled once, for any rows."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job
        self._own = SweepTask(
            job.model,
            InputPlan(tape=job.input, updates=job.updates, gains=job.gains),
            job.settings,
            outputs=tuple(job.outputs.values()),
            functions=job.functions,
            gathered=() if job.functions is None else (job.functions,),
            defaults=job.defaults,
        )
        self._leaves = job.leaves_runs and not names_forces(job.model, self._own.outputs)
        self._others: dict[Model, SweepTask] = {}

    def begin(self, rows: SweepRows, first: int, last: int) -> ChunkStarts:
        """Find the starts of the rows `first` ... `last - 1`, which may be done ahead of time."""
        began, job = time.perf_counter(), self.job
        given = rows.values(job.model, first, last)
        plan = given.plan
        if job.input is not None:
            plan = replace(self._own.plan, gains=given.plan.gains)
        target, batch = job.settings.place.target, (last - first,)
        t0, many = job.settings.t0, rows.count > MAX_INTERPRETED
        with collect_warnings() as warnings:
            begun = find_starts(
                job.model, given.start, t0, given.p, batch, many=many, target=target
            )
            begun = take_first_samples(plan, refuse_sunk(job.model, begun, t0), t0)
        if last - first == rows.count:
            begun.require_some()
        status: Array = np.broadcast_to(float(RUNNING), (last - first, 1))
        reasons = begun.failed.reasons(last - first)
        if len(begun.failed):
            status = status.copy()
            status[begun.failed.runs] = UNASSEMBLED
        if given.impossible is not None and len(given.impossible):
            status = status.copy()
            status[given.impossible.codes >= 0] = UNASSEMBLED
            reasons = reasons.replaced(given.impossible)
        seconds = time.perf_counter() - began
        made = first, begun.q, begun.nu, begun.p, plan, status, reasons, seconds
        return ChunkStarts(*made, tuple(warnings))

    def compute(
        self,
        begun: ChunkStarts,
        session: Session,
        only: Flags | None = None,
        *,
        on_gpu: bool = False,
    ) -> ChunkResult:
        """Compute rows that were begun; after Ctrl-C those that had not ended are NaN.

        Args:
            begun: Their starts.
            session: Shows the progress and answers Ctrl-C.
            only: Which of them; all unless given. All are started in any case, since the last bit
                of a start may depend on the others.
            on_gpu: Leave the numbers of all rows on the GPU, unless they do not fit there.
        """
        began, count = time.perf_counter(), len(begun.q)
        members = None if only is None else np.flatnonzero(only)
        batch = self._advance(begun, session, members).first
        left: Flags | None = None
        counts: tuple[int, ...] = ()
        if on_gpu and isinstance(batch.buffers, ResidentBuffers):
            values, codes, counts = numbers_there(batch.buffers, batch.summary)
        else:
            values = batch.buffers["made"]
            codes = batch.buffers["status"][:, 0].astype(np.int8)
            unfinished = np.flatnonzero((codes != FINISHED) & (codes != INACCURATE))
            if unfinished.size:
                values[unfinished] = np.nan
            if members is not None:
                some, codes_of_some = values, codes
                values = np.full((count, some.shape[1]), np.nan)
                codes = np.zeros(count, dtype=np.int8)
                values[members], codes[members] = some, codes_of_some
            if self._leaves:
                left = np.isin(codes, (SINGULAR, STIFF))
                left[batch.stuck_at_start()] = True
        seconds = begun.seconds + time.perf_counter() - began
        reasons = begun.reasons.replaced(_inaccuracies(batch, members, count))
        made = begun.first, values, codes, reasons, left, process_name(), seconds, counts
        return ChunkResult(*made, begun.warnings)

    def _advance(self, begun: ChunkStarts, session: Session, members: Numbers | None) -> SweepRuns:
        """Run rows to their ends, or until Ctrl-C; all of those begun, or some."""
        plan, q, nu, p, status = begun.plan, begun.q, begun.nu, begun.p, begun.status
        if members is not None:
            plan, q, nu, status = plan.part(members), q[members], nu[members], status[members]
            p = p if p is None or p.ndim == 1 else p[members]
        runs = SweepRuns(
            replace(self._own, plan=plan),
            {"q": q, "nu": nu, "status": status},
            p,
            lambda model, some: self._elsewhere(model, plan.part(some)),
            leave=self._leaves,
        )
        with session.keep_results():
            runs.advance(session)
        return runs

    def _elsewhere(self, model: Model, plan: InputPlan) -> SweepTask:
        """Make the steps of a model on other rows or speeds; `plan` is the input of its runs."""
        if model not in self._others:
            self._others[model] = self._trace_again(model)
        task = self._others[model]
        return replace(task, plan=replace(plan, tape=task.plan.tape))

    def _trace_again(self, model: Model) -> SweepTask:
        job, speeds = self.job, self.job.model.independent
        task = replace(self._own, model=model, speeds=speeds)
        if job.sources is None or model is job.model:
            return task
        if job.input is not None:
            task = replace(
                task, plan=plan_input(model, job.sources.input, speeds, gains=job.gains is not None)
            )
        return replace(task, functions=job.sources.outputs.trace(model, speeds))


def _inaccuracies(batch: SweepBatch, members: Numbers | None, count: int) -> RowTexts:
    """Describe the energy errors of inaccurate runs, by place among `count` rows."""
    buffers, summary = batch.buffers, batch.summary
    there = isinstance(buffers, ResidentBuffers) and not buffers.was_read("status")
    if there and summary is not None and not summary.counts[INACCURATE]:
        return RowTexts.from_rows(count, {})  # without fetching the status of all runs
    rows = np.flatnonzero(buffers["status"][:, 0] == INACCURATE)
    texts = describe_inaccuracy(read_rows(buffers, "inaccuracy", rows)[:, 0]) if rows.size else ()
    places = rows if members is None else members[rows]
    return RowTexts.from_rows(count, dict(zip(places.tolist(), texts, strict=True)))


def process_name() -> str:
    """Name of the machine, and number of this process on it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def default_chunk(model: Model, settings: Settings, rows: SweepRows) -> int:
    """Number of rows per chunk: it depends on the study alone and not on the machine."""
    target = settings.place.target
    operations = STAGES * len(tape_of(model, "state_rate").kinds) * settings.n_steps
    numbers = 10 * (len(model.coordinates) + len(model.independent) + len(model.parameters) + 10)
    sampled = rows.plan.sampled
    if sampled is not None and sampled.table.ndim > 2:
        numbers += sampled.table.shape[-1] * sampled.table.shape[-2]
    most = min(MAX_NUMBERS[target] / numbers, MAX_CHUNK[target])
    wanted = most if target == "cuda" else min(CHUNK_OPERATIONS / operations, most)
    return 1 << int(np.log2(max(MIN_CHUNK, wanted)))
