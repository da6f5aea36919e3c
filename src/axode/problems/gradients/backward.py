"""Gradients of logged runs: from their ends, step by step, to their starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.program import Program
from axode.codegen.tape.rewriting import FusionLimits
from axode.codegen.tape.tape import Tape
from axode.errors import NotApplicable
from axode.model.model import Model
from axode.numerics.tolerances import ROUNDING
from axode.problems.gradients.ended_runs import EndedRuns
from axode.problems.gradients.reverse_program import LENGTH, reverse_program, value_program
from axode.problems.gradients.single_states import FirstSamples, pull_back
from axode.problems.gradients.state_jumps import StateJumps
from axode.problems.gradients.steps_of_cost import TABLEAUS, CostTapes, StepOfCost
from axode.problems.other_models import is_rounded
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import Session
from axode.problems.runs.step_log import BatchLog
from axode.problems.steps.break_times import refuse_switching_times
from axode.problems.steps.compiled import adjoints_of, compiled, tape_of
from axode.problems.steps.step_acceptance import EVENT, FINISHED

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
LIMITS = FusionLimits(part=3000, whole=24000)  # above, stages are compiled once and called in turn
ALL_STEPS = 1 << 62  # a budget that no loop spends


@dataclass(frozen=True)
class EndCosts:
    """Costs of single states.

    Attributes:
        final: t, q, nu (p) to the cost of the end; None if there is none.
        tapes: What each step adds, and the cost of one measured instant.
        measured: Measured numbers, (..., instants, size), with axes of the batch of runs.
    """

    final: Tape | None
    tapes: CostTapes
    measured: Array | None = None


Costs = Callable[[Model], EndCosts]  # of the user's model, or of one on other speeds


@dataclass
class Totals:
    """Value and gradient of every run.

    Attributes:
        value: The cost, (runs,).
        shared: Gradients by buffers that all steps share, (runs, elements) each.
        samples: Gradients by samples of the input, (runs, samples, inputs); None unless asked for.
        start: Gradients by q and nu at the start.
    """

    value: Array
    shared: dict[str, Array]
    samples: Array | None = None
    start: dict[str, Array] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence[Totals]) -> Totals:
        """Join those of runs that were computed one after the other."""
        if len(parts) == 1:
            return parts[0]
        samples = [part.samples for part in parts if part.samples is not None]

        def join(groups: Sequence[dict[str, Array]]) -> dict[str, Array]:
            return {name: np.concatenate([group[name] for group in groups]) for name in groups[0]}

        return cls(
            np.concatenate([part.value for part in parts]),
            join([part.shared for part in parts]),
            np.concatenate(samples) if samples else None,
            join([part.start for part in parts]),
        )


class _Way(NamedTuple):
    """Steps that are gone back through: where they were made, what they cost, and what one is."""

    batch: Batch
    ends: EndCosts
    step: StepOfCost


class Backward:
    """One pass backwards through logged runs.

    Args:
        run: The runs and the log of their steps.
        costs: What they cost, for each model that they used.
        of: Buffers that the steps read, and the elements of each by which to differentiate; None
            for the value alone.
        session: The call that this is part of.
        jumps: Where jumps by the state are collected, if they are.
    """

    def __init__(
        self,
        run: EndedRuns,
        costs: Costs,
        of: Mapping[str, tuple[int, ...]] | None,
        session: Session,
        jumps: StateJumps | None = None,
    ) -> None:
        self.run, self.costs, self.session, self.jumps = run, costs, session, jumps
        self.of, self.values_only = dict(of or {}), of is None
        runs = run.runs
        self.settings = runs.settings
        count, plan = runs.count, runs.plan
        by_samples = plan.sampled is not None and "u" in self.of
        shared = {n: np.zeros((count, len(e))) for n, e in self.of.items() if n != "u"}
        samples = None
        if by_samples:
            assert plan.sampled is not None
            samples = np.zeros((count, plan.sampled.count, len(run.model.inputs)))
        elif "u" in self.of:
            shared["u"] = np.zeros((count, len(self.of["u"])))
        self.totals = Totals(np.zeros(count), shared, samples)
        self._waiting: dict[Batch, dict[str, Array]] = {}  # gradients after runs left a batch

    def compute(self) -> Totals:
        """Compute value and gradients."""
        for log in reversed(self.run.log.batches):
            self._go_back(log)
        first = self.run.log.batches[0].batch
        if not self.values_only:
            run, begin = self.run, self.settings.t0
            first_samples = FirstSamples(run.model, run.runs.plan, run.starts, begin)
            after = self._waiting.pop(first)
            self.totals.start = first_samples.pull_back(after, self.totals.shared, self.of)
        failed = ~self.run.ended
        self.totals.value[failed] = np.nan
        return self.totals

    # one batch ----------------------------------------------------------------------------------

    def _go_back(self, log: BatchLog) -> None:
        batch = log.batch
        ends = self.costs(batch.model)
        adjoints = {} if self.values_only else adjoints_of(batch.model)
        method = TABLEAUS[self.settings.stepper]
        step = StepOfCost(method, batch.dynamics, ends.tapes, adjoints)
        sizes = {"q": batch.dynamics.n_q, "nu": batch.dynamics.n_nu}
        weights = self._waiting.pop(batch, None)
        if weights is None:
            weights = {name: np.zeros((batch.count, size)) for name, size in sizes.items()}
        way = _Way(batch, ends, step)
        self._end_runs(way, weights)
        for one in reversed(log.slices):
            self.session.check()
            if one.counts.any():
                rows = log.steps(one)
                if self.jumps is not None and not self.values_only:
                    self.jumps.look(log, one, rows, ends.tapes.running)
                self._walk(way, rows, one.counts, weights)
                log.release(rows)
        if self.values_only:
            return
        if log.parent is None:
            self._waiting[batch] = weights
        else:
            self._leave_through(batch, *log.parent, weights)

    def _walk(
        self,
        way: _Way,
        rows: Array,
        counts: Numbers,
        weights: dict[str, Array],
        runs: Numbers | None = None,
        *,
        with_length: bool = False,
    ) -> Array:
        """Take gradients back through steps, in place; returns those by the last step's length.

        Args:
            way: The steps.
            rows: Logged steps, (runs, rows, size).
            counts: How many there are of each run.
            weights: Gradients after the steps, by q and nu.
            runs: Numbers of these runs in the batch; all of them unless given.
            with_length: Whether the length of the last step counts.
        """
        batch, ends, step = way
        rollout = self._rollout(batch.model, step, with_length)
        program = rollout.program
        members = batch.members if runs is None else batch.members[runs]
        start: dict[str, Any] = {"index": _last_rows(counts, rollout.lanes_of(len(counts)))}
        if not self.values_only:
            start |= {f"a_{name}": array for name, array in weights.items()}
        buffers = rollout.new_state(len(counts), start, resident=True)
        for name in program.given:
            buffers[name] = self._value_of(batch, name, counts, runs)
        tables = {"log": rows}
        measured = self._measured(ends)
        if "samples" in program.tables:
            tables["samples"] = _own(batch.tables["samples"], runs, 2)
        if "match" in program.tables and measured is not None:
            tables["match"] = _own(measured, members, 2)
        samples = self.totals.samples
        if samples is not None:
            tables["out"] = np.ascontiguousarray(samples[members])
        rollout(buffers, tables, budget=ALL_STEPS, threads=self.settings.threads)
        self.totals.value[members] += buffers["cost"][:, 0]
        if samples is not None:
            samples[members] = tables["out"]
        for name, total in self.totals.shared.items():
            total[members] += buffers[f"g_{name}"]
        if not self.values_only:
            for name, array in weights.items():
                array[...] = buffers[f"a_{name}"]
        return buffers[f"g_{LENGTH}"][:, 0] if with_length else np.zeros(0)

    def _value_of(self, batch: Batch, name: str, counts: Numbers, runs: Numbers | None) -> Array:
        """What steps read besides their state."""
        if name == "count":
            return np.ascontiguousarray(counts[:, np.newaxis], dtype=float)
        grid = self.run.log.grid
        if name.startswith("grid_") and grid is not None:
            return np.array([grid.numbers()[name]])
        return _own(batch.buffers[name], runs, 1)

    def _rollout(self, model: Model, step: StepOfCost, with_length: bool) -> Any:
        of = dict(self.of) | ({LENGTH: (0,)} if with_length else {})

        def program() -> Program:
            return value_program(step) if self.values_only else reverse_program(step, of)

        d = step.d
        refuse_switching_times(model, d, self.of)
        traced = None if d.input is None else d.input.digest
        chosen = None if self.values_only else tuple(of.items())
        kind = (step.method.name, d.samples, d.logged_stages, d.interleaved, *d.breaks_key, traced)
        key = ("gradient", *kind, step.cost.key, chosen)
        return compiled(model, key, self.settings.place, program, limits=LIMITS)

    # ends ---------------------------------------------------------------------------------------

    def _end_runs(self, way: _Way, weights: dict[str, Array]) -> None:
        """Begin with the costs of the ends; runs that events stopped also with their last step."""
        batch, ends, _ = way
        status = batch.outcomes.status
        finished = np.flatnonzero(status == FINISHED)
        found = self._final(batch, ends, finished)
        for name, array in weights.items():
            array[finished] = found.get(name, 0.0)
        stopped = np.flatnonzero(status == EVENT)
        if stopped.size:
            found = self._stop(way, stopped)
            for name, array in weights.items():
                array[stopped] = found[name]

    def _states(self, batch: Batch, runs: Numbers) -> dict[str, Array]:
        """Ends of runs, and all that functions of them depend on."""
        n = batch.dynamics.n_q
        last, time = batch.outcomes.last[runs], batch.outcomes.time[runs, np.newaxis]
        known = {"q": last[:, :n], "nu": last[:, n:-2], "t": time}
        known |= {k: _own(batch.buffers[k], runs, 1) for k in batch.dynamics.numbers}
        p = batch.conditions(runs).p
        return known | ({} if p is None else {"p": p})

    def _final(self, batch: Batch, ends: EndCosts, runs: Numbers) -> dict[str, Array]:
        """Add the costs of ends to the value, and those by parameters; returns the others."""
        known = self._states(batch, runs)
        total: dict[str, Array] = {}
        members, one = batch.members[runs], np.ones((len(runs), 1))
        if ends.final is not None:
            value, total = pull_back(ends.final, known, one)
            self.totals.value[members] += value[:, 0]
        if ends.tapes.match is not None:
            value, more = self._match_end(ends, known, members)
            self.totals.value[members] += value
            total |= {n: total[n] + a if n in total else a for n, a in more.items()}
        self._add_by_parameters(members, total)
        return total

    def _match_end(
        self, ends: EndCosts, known: dict[str, Array], members: Numbers
    ) -> tuple[Array, dict[str, Array]]:
        """Cost of an instant that was measured where a run ends."""
        grid, tape, table = self.run.log.grid, ends.tapes.match, self._measured(ends)
        assert grid is not None and tape is not None and table is not None
        place = (known["t"][:, 0] - grid.start) / grid.period
        row = np.floor(place + 0.5).astype(np.intp)
        due = (row >= 0) & (row < grid.count) & (np.abs(place - row) < 1e-6)
        row = np.clip(row, 0, grid.count - 1)
        y = table[row] if table.ndim == 2 else table[members, row]
        value, found = pull_back(tape, {**known, "y": y}, due[:, np.newaxis].astype(float))
        return value[:, 0] * due, found

    def _measured(self, ends: EndCosts) -> Array | None:
        """Measured numbers of all runs, (instants, size), or of each of them."""
        table, batch = ends.measured, self.run.starts.batch
        if table is None or table.ndim == 2:
            return table
        shape, numbers = table.shape[-2:], self.run.numbers
        every = np.broadcast_to(table, (*batch, *shape)).reshape(-1, *shape)
        return np.ascontiguousarray(every if numbers is None else every[numbers])

    def _add_by_parameters(self, members: Numbers, found: Mapping[str, Array]) -> None:
        total = self.totals.shared.get("p")
        if total is not None and "p" in found:
            total[members] += found["p"][:, list(self.of["p"])]

    def _stop(self, way: _Way, runs: Numbers) -> dict[str, Array]:
        """Take gradients back through last steps, whose length an event decided.

        The event function vanishes at the end, whatever changes: the length changes by what keeps
        it so. With L the cost and g the event function after a step of length h, the cost changes
        as L - (dL/dh)/(dg/dh) g does at fixed h.
        """
        batch, ends, step = way
        d, count = batch.dynamics, len(runs)
        single = replace(d, logged_stages=0, interleaved=False)
        step = replace(step, d=replace(single, jump=None, update=None, periods=()))  # at no break
        way = _Way(batch, ends, step)
        known = self._states(batch, runs)
        t = batch.buffers["t"][runs]
        state = [batch.buffers[name][runs] for name in ("q", "nu")]
        rows = np.concatenate([*state, t, known["t"] - t], axis=1)[:, np.newaxis]
        rows = np.ascontiguousarray(rows)
        ones = np.ones(count, dtype=np.intp)

        def by_length(weights: Mapping[str, Any]) -> Array:
            """Derivative by the length of a weighted sum of the new state, and of dc."""
            own = {n: np.array(weights.get(n, np.zeros_like(known[n]))) for n in ("q", "nu")}
            kept, self.totals = self.totals, _scratch(self.totals)
            try:
                return self._walk(way, rows, ones, own, runs, with_length=True)
            finally:
                self.totals = kept

        total = self._final(batch, ends, runs)
        if self.values_only:
            self._walk(way, rows, ones, {}, runs)
            return {name: np.zeros_like(known[name]) for name in ("q", "nu")}
        assert d.events is not None
        names = [event.name for event in batch.watches]
        which = np.array([names.index(cause) for cause in batch.outcomes.cause[runs]])
        picked = np.eye(d.n_events)[which]
        crossing = pull_back(d.events, known, picked)[1]
        alone = by_length({})
        slope = by_length(crossing) - alone + crossing.get("t", np.zeros((count, 1)))[:, 0]
        change = by_length(total) + total.get("t", np.zeros((count, 1)))[:, 0]
        self._check_slopes(batch, slope, runs)
        with np.errstate(all="ignore"):
            share = -(change / slope)[:, np.newaxis]
        self._add_by_parameters(batch.members[runs], {n: share * a for n, a in crossing.items()})
        weights = {
            n: np.zeros_like(known[n]) + total.get(n, 0.0) + share * crossing.get(n, 0.0)
            for n in ("q", "nu")
        }
        self._walk(way, rows, ones, weights, runs)
        return weights

    def _check_slopes(self, batch: Batch, slope: Array, runs: Numbers) -> None:
        """Refuse to differentiate a single run by an event that it only touches."""
        grazes = ~(np.abs(slope) > ROUNDING)
        if grazes.any() and self.run.runs.count == 1:
            name = batch.outcomes.cause[runs][int(np.argmax(grazes))]
            raise NotApplicable(
                f"event '{name}' only touches zero where it stops the run: the time of its end "
                "does not depend smoothly on anything; choose another event or a fixed duration"
            )

    # changes of independent speeds --------------------------------------------------------------

    def _leave_through(
        self, batch: Batch, parent: Batch, runs: Numbers, weights: dict[str, Array]
    ) -> None:
        """Take gradients back through a change of independent speeds."""
        if is_rounded(parent.model):
            raise NotApplicable(
                f"'{parent.model.name}' left out constraint rows that contradict others by "
                "rounding errors, and a run changed its rows; such changes have no gradient. Make "
                "its loops close exactly, or start elsewhere"
            )
        model, sizes = parent.model, {"q": parent.dynamics.n_q, "nu": parent.dynamics.n_nu}
        waiting = self._waiting.setdefault(
            parent, {name: np.zeros((parent.count, size)) for name, size in sizes.items()}
        )
        first = batch.log.slices[0].state if batch.log is not None else batch.buffers
        q, nu = (parent.buffers[name][runs] for name in ("q", "nu"))
        known = {"q": q, "nu": nu, "t": first["t"]}
        p = batch.conditions(np.arange(batch.count)).p
        known |= {} if p is None else {"p": p}
        chosen = [model.speed_names.index(name) for name in batch.model.independent]
        tape = tape_of(model, "joint_speeds")
        found = pull_back(tape, known, weights["nu"], chosen)[1]
        self._add_by_parameters(batch.members, found)
        waiting["q"][runs] = weights["q"] + found.get("q", 0.0)
        waiting["nu"][runs] = found["nu"]


def _own(array: Array, runs: Numbers | None, axes: int) -> Array:
    """Rows of some runs, where each run has its own."""
    if runs is None or array.ndim == axes:
        return array
    return np.ascontiguousarray(array[runs])


def _last_rows(counts: Numbers, lanes: int) -> Array:
    """Last row of runs in lockstep: that of the longest of them, (runs, 1)."""
    padded = np.concatenate([counts, np.zeros(-len(counts) % lanes, dtype=np.intp)])
    last = np.repeat(padded.reshape(-1, lanes).max(axis=1), lanes)[: len(counts)] - 1.0
    return np.asarray(last[:, np.newaxis])


def _scratch(totals: Totals) -> Totals:
    """Return totals that are discarded."""
    samples = None if totals.samples is None else np.zeros_like(totals.samples)
    shared = {name: np.zeros_like(array) for name, array in totals.shared.items()}
    return Totals(np.zeros_like(totals.value), shared, samples)
