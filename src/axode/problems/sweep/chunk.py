"""Compute rows of a sweep: a job, and its prepared form, which computes any rows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.model.model import Model
from axode.problems.arguments import GivenState
from axode.problems.parameter_arguments import checked_parameters
from axode.problems.session import Session
from axode.problems.simulate.inputs import InputPlan, plan_input
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.starts import starts
from axode.problems.steps.compiled import tape_of
from axode.problems.steps.step_acceptance import FINISHED
from axode.problems.sweep.accumulate import Output, Outputs
from axode.problems.sweep.axes import Axes
from axode.problems.sweep.sweep_runs import SweepRuns, SweepTask

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
Codes = npt.NDArray[np.int8]
CHUNK_OPERATIONS = 4e9  # about a second of one core
STAGES = 4  # evaluations of the rates in a step
MIN_CHUNK, MAX_CHUNK = 512, 1 << 16  # rows; fewer do not fill a machine of many cores
CHUNK_NUMBERS = 1 << 23  # numbers that the rows of a chunk take, 64 MB


@dataclass(frozen=True)
class Sources:
    """Input and outputs as the user gave them, to be traced again for models on other speeds."""

    input: Any
    outputs: Outputs


@dataclass(frozen=True)
class SweepJob:
    """Everything that the rows of a sweep are computed from.

    Attributes:
        model: What moves.
        settings: How to integrate.
        outputs: Numbers of every run by name.
        functions: Functions of the state among these, traced.
        plan: Input, with leading axes where it is an array of runs.
        inputs: Inputs by name that all rows share, where others are swept; they replace the plan.
        start: State to start from: values by name that all rows share, or arrays, with leading
            axes where they are arrays of runs.
        parameters: Parameters by name that all rows share; None if none are given.
        samples: Values that are swept, row by row.
        shape: Shape of the rows.
        chunk: How many rows are computed, sent and stored together.
        sources: What the user gave; it stays with the process that called `sweep`.
    """

    model: Model
    settings: Settings
    outputs: Mapping[str, Output]
    functions: Tape | None
    plan: InputPlan
    inputs: Mapping[str, Any] | None
    start: GivenState
    parameters: Mapping[str, Any] | None
    samples: Axes
    shape: tuple[int, ...]
    chunk: int
    sources: Sources | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.count // self.chunk)

    def span(self, number: int) -> tuple[int, int]:
        """First row of a chunk, and the first after it."""
        return number * self.chunk, min((number + 1) * self.chunk, self.count)

    def given(self, rows: Numbers) -> Given:
        """Start, parameters and input of some rows, in ascending order."""
        drawn = self.samples.rows(int(rows[0]), int(rows[-1]) + 1)
        drawn = {name: values[rows - rows[0]] for name, values in drawn.items()}
        groups: dict[str, dict[str, Any]] = {"start": {}, "parameter": {}, "input": {}}
        for name, values in drawn.items():
            groups[self.samples.groups[name]][name] = values
        parameters = None
        if self.parameters is not None:
            parameters = {**self.parameters, **groups["parameter"]}
        if self.inputs is not None:
            plan = plan_input(self.model, {**self.inputs, **groups["input"]})
        else:
            plan = self._plan_of(rows)
        p = checked_parameters(self.model, parameters)
        return Given(self._start_of(rows, groups["start"]), p, plan)

    def _start_of(self, rows: Numbers, drawn: Mapping[str, Array]) -> GivenState:
        s = self.start
        if s.q is None or s.nu is None:
            return replace(s, named={**s.named, **drawn})
        time = None if s.time is None else self._rows_of(np.asarray(s.time), 0, rows)
        q, nu = (self._rows_of(a, 1, rows) for a in (s.q, s.nu))
        return replace(s, q=q, nu=nu, time=time)

    def _plan_of(self, rows: Numbers) -> InputPlan:
        plan = self.plan
        if plan.constant is not None:
            return replace(plan, constant=self._rows_of(plan.constant, 1, rows))
        if plan.sampled is None:
            return plan
        table = self._rows_of(plan.sampled.table, 2, rows)
        return replace(plan, sampled=replace(plan.sampled, table=table))

    def _rows_of(self, array: Array, own_axes: int, rows: Numbers) -> Array:
        """Some rows of an array that is broadcast to all of them; itself if they share it."""
        axes = array.ndim - own_axes
        if not axes:
            return array
        whole = np.broadcast_to(array, (*self.shape, *array.shape[axes:]))
        return np.ascontiguousarray(whole[np.unravel_index(rows, self.shape)])


@dataclass(frozen=True)
class Given:
    """Start, parameters and input of some rows."""

    start: GivenState
    p: Array | None
    plan: InputPlan


@dataclass(frozen=True)
class ChunkResult:
    """Numbers of some rows.

    Attributes:
        rows: Which rows.
        values: Outputs, (rows, outputs); NaN for runs that did not finish.
        status: How each run ended, a code of `step_acceptance`.
        reasons: Why runs failed, by place among the rows, where more is known than the status.
    """

    rows: Numbers
    values: Array
    status: Codes
    reasons: dict[int, str] = field(default_factory=dict)


class PreparedJob:
    """A job whose steps are compiled once, for any number of its rows."""

    def __init__(self, job: SweepJob) -> None:
        self.job = job
        self._own = SweepTask(
            job.model,
            job.plan,
            job.settings,
            outputs=tuple(job.outputs.values()),
            functions=job.functions,
        )
        self._others: dict[Model, SweepTask] = {}

    def compute(self, rows: Numbers, session: Session) -> ChunkResult:
        """Compute some rows, in ascending order; after Ctrl-C those that had not finished are NaN.

        Args:
            rows: Which.
            session: Shows the progress and answers Ctrl-C.
        """
        job = self.job
        given = job.given(rows)
        q, nu, p, _ = starts(job.model, given.start, job.settings.t0, given.p, (len(rows),))
        task = replace(self._own, plan=given.plan)
        runs = SweepRuns(
            task,
            {"q": q, "nu": nu},
            p,
            lambda model, members: self._elsewhere(model, given.plan.part(members)),
        )
        with session.keep_results():
            runs.advance(session)
        buffers = runs.first.buffers
        status = buffers["status"][:, 0].astype(np.int8)
        finished = status == FINISHED
        values = np.where(finished[:, np.newaxis], buffers["made"], np.nan)
        return ChunkResult(rows, values, status)

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
        if job.plan.tape is not None:
            task = replace(task, plan=plan_input(model, job.sources.input, speeds))
        return replace(task, functions=job.sources.outputs.trace(model, speeds))


def default_chunk(model: Model, settings: Settings, plan: InputPlan) -> int:
    """Number of rows per chunk: it depends on the study alone and not on the machine."""
    operations = STAGES * len(tape_of(model, "state_rate").kinds) * settings.n_steps
    numbers = 10 * (len(model.coordinates) + len(model.independent) + len(model.parameters) + 10)
    if plan.sampled is not None and plan.sampled.table.ndim > 2:
        numbers += plan.sampled.table.shape[-1] * plan.sampled.table.shape[-2]
    rows = min(CHUNK_OPERATIONS / operations, CHUNK_NUMBERS / numbers)
    return 1 << int(np.log2(max(MIN_CHUNK, min(rows, MAX_CHUNK))))


def spans(job: SweepJob, rows: int) -> Iterator[Numbers]:
    """Rows that are computed together: chunks, or groups of chunks with up to so many rows."""
    step = job.chunk * max(1, rows // job.chunk)
    for first in range(0, job.count, step):
        yield np.arange(first, min(first + step, job.count))
