"""All runs of a simulation, from their start to whatever ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.model import Model
from axode.problems.batch import Batch, Outcome
from axode.problems.crossings import locate
from axode.problems.failures import cause_of
from axode.problems.inputs import InputPlan, plan_input
from axode.problems.integrators import AUTOMATIC, IMPLICIT
from axode.problems.settings import Settings
from axode.problems.steps import EVENT, LEFT, RUNNING, SINGULAR, STIFF
from axode.problems.switching import near_singular
from axode.problems.takeover import REVIEW, TakeOver, answer_stiffness, is_worth_its_price
from axode.problems.watches import Watch

if TYPE_CHECKING:
    from axode.results.trajectory import Event

Array = npt.NDArray[np.float64]
CARRIED = ("w", "t", "index", "step", "h", "steps", "rejected")  # to another choice of speeds


class Runs:
    """Runs of one mechanism: a batch of them, and batches of those that changed speeds or method.

    Attributes:
        out: Saved states of all runs, (runs, rows, size), in the model's own speeds.
        outcomes: What became of each.
        steps, rejected: How many each took, and how many more it tried.
        stiff: When explicit steps became too many, by run.
    """

    def __init__(
        self, model: Model, given: Any, plan: InputPlan, settings: Settings,
        watches: Sequence[Watch], q: Array, nu: Array, p: Array | None,
    ) -> None:  # fmt: skip
        self.model, self.plan, self.settings, self.watches = model, plan, settings, tuple(watches)
        self.p, self._given = p, given
        self.count = q.shape[0]
        self.outcomes = [Outcome() for _ in range(self.count)]
        self.events: list[Event] = []
        self.calls: list[tuple[int, float, Array]] = []
        self.switched: dict[int, list[tuple[str, ...]]] = {}  # speeds that each run changed to
        self.stiff: dict[int, TakeOver] = {}  # runs whose explicit steps became too many
        self.returned: set[int] = set()  # those for which implicit steps were no better
        self.steps, self.rejected = (np.zeros(self.count, dtype=np.int64) for _ in range(2))
        start = np.concatenate([q, nu, np.zeros((self.count, 2))], axis=1)
        self.out = np.full((self.count, len(settings.times), start.shape[1]), np.nan)
        self.out[:, 0] = start
        self._share = np.zeros(self.count)
        self._waiting: list[Batch] = []
        self._leaving: dict[tuple[Model, Settings], list[int]] = {}
        everyone = np.arange(self.count)
        self._first = Batch(model, plan, settings, self.watches, everyone, {"q": q, "nu": nu}, p,
                            self.out)  # fmt: skip

    @property
    def n_q(self) -> int:
        """How many coordinates a saved state has."""
        return len(self.model.coordinates)

    def advance(self, look: Callable[[float], None]) -> None:
        """Run all to an end; `look` is told now and then which share is done."""

        def looked(batch: Batch) -> None:
            done = np.abs(batch.buffers["t"][:, 0] - self.settings.t0)
            self._share[batch.members] = done / abs(self.settings.duration)
            look(float(self._share.mean()))

        self._waiting.append(self._first)
        while self._waiting:
            batch = self._waiting[-1]
            try:
                batch.advance(looked, self._stopped)
            finally:
                self._deliver(batch)
            self._waiting.pop()
            for (model, settings), runs in self._leaving.items():
                self._waiting.append(self._moved(batch, model, settings, np.array(runs)))
            self._leaving = {}

    def _stopped(self, batch: Batch, run: int) -> None:
        status = int(batch.buffers["status"][run, 0])
        if status == EVENT:
            self.events += locate(batch, run)
        elif status == SINGULAR:
            model = near_singular(batch, run, self.model)
            if model is not None:
                self._leave(batch, run, model, batch.settings)
        elif status == STIFF:
            self._answer(batch, run)
        else:
            batch.resolve(run, status, cause_of(batch, run))

    def _leave(self, batch: Batch, run: int, model: Model, settings: Settings) -> None:
        """A run leaves a batch and waits for another."""
        self._leaving.setdefault((model, settings), []).append(run)
        batch.resolve(run, LEFT)

    def _answer(self, batch: Batch, run: int) -> None:
        """A stiff run goes on with an implicit method, unless an explicit one was asked for.

        It comes back, once and for all, if implicit steps turn out to be too short for their price.
        """
        member = int(batch.members[run])
        if batch.settings.method == IMPLICIT:
            if not is_worth_its_price(batch, run, self.stiff[member]):
                del self.stiff[member]
                self.returned.add(member)
                self._leave(batch, run, batch.model, self.settings)
            return
        found = answer_stiffness(batch, run)
        if found is None or member in self.returned:
            return
        self.stiff[member] = found
        if self.settings.method == AUTOMATIC:
            settings = replace(self.settings, method=found.method, review=REVIEW)
            self._leave(batch, run, batch.model, settings)

    def _moved(
        self, batch: Batch, model: Model, settings: Settings, runs: npt.NDArray[np.intp]
    ) -> Batch:
        """Some runs of a batch on other independent speeds or by another method."""
        members = batch.members[runs]
        p = batch.p if batch.p is None or batch.p.ndim == 1 else batch.p[runs]
        start = {name: batch.buffers[name][runs] for name in ("q", *CARRIED)
                 if name in batch.rollout.program.state}  # fmt: skip
        start["nu"] = _speeds(batch.model, model.independent, start["q"], batch.buffers["nu"][runs],
                              start["t"][:, 0], p)  # fmt: skip
        own = self.model.independent
        plan = self.plan if model is self.model else plan_input(model, self._given, own)
        if plan is not self.plan:
            plan = plan.spread((self.count,))
        for run in members.tolist():
            self.outcomes[run] = Outcome()
            if model is not batch.model:
                self.switched.setdefault(run, []).append(model.independent)
        out = np.full((len(members), *self.out.shape[1:]), np.nan)
        return Batch(model, plan.part(members), settings, self.watches, members, start, p, out,
                     own)  # fmt: skip

    def _deliver(self, batch: Batch) -> None:
        """Take over what a batch has done, in the model's own speeds."""
        self.calls += batch.calls
        for run, (member, outcome) in enumerate(zip(batch.members, batch.outcomes, strict=True)):
            if outcome.status == RUNNING:  # interrupted
                outcome.time = float(batch.buffers["t"][run, 0])
                outcome.last = batch.state(run)
            if batch.out is not self.out:
                self._translate(batch, run, outcome)
            self.outcomes[member] = outcome
        if self.settings.method == "rk4":
            self.steps[batch.members] = batch.buffers["step"][:, 0]
        else:
            self.steps[batch.members] = batch.buffers["steps"][:, 0]
            self.rejected[batch.members] = batch.buffers["rejected"][:, 0]

    def _translate(self, batch: Batch, run: int, outcome: Outcome) -> None:
        rows = np.flatnonzero(~np.isnan(batch.out[run, :, 0]))
        x, times = batch.out[run, rows], self.settings.times[rows]
        if outcome.last is not None:
            x, times = np.vstack([x, outcome.last]), np.append(times, outcome.time)
        nu = slice(self.n_q, x.shape[1] - 2)
        p = batch.p if batch.p is None or batch.p.ndim == 1 else batch.p[run]
        own = self.model.independent
        x[:, nu] = _speeds(batch.model, own, x[:, : self.n_q], x[:, nu], times, p)
        self.out[batch.members[run], rows] = x[: len(rows)]
        if outcome.last is not None:
            outcome.last = x[-1]


def _speeds(
    model: Model, names: Sequence[str], q: Array, nu: Array, t: Array, p: Array | None
) -> Array:
    """Some of the joint speeds of a model's states."""
    if not len(q):
        return np.zeros((0, len(names)))
    options: dict[str, Any] = {"t": t}
    if p is not None:
        options["parameters"] = dict(zip(model.parameters, p.T, strict=True))
    v = model.speeds(np.ascontiguousarray(q), np.ascontiguousarray(nu), **options)
    return np.ascontiguousarray(v[:, [model.speed_names.index(name) for name in names]])
