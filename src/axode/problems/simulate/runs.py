"""All runs of a simulation, from their start to their end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.model import Model
from axode.problems.session import Numbers, Session, Task
from axode.problems.simulate.batch import Batch, Outcome
from axode.problems.simulate.crossings import locate
from axode.problems.simulate.failures import cause_of
from axode.problems.simulate.inputs import InputPlan, plan_input
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.takeover import REVIEW, TakeOver, answer_stiffness, is_worth_its_cost
from axode.problems.singular.other_models import is_rounded, keep_kinetic_energy, translate_speeds
from axode.problems.singular.passing import Candidates, Landing, find_events, land_beyond
from axode.problems.singular.pivots import LIES_FLAT, find_flattest_wheel
from axode.problems.singular.switching import find_start_elsewhere, near_singular
from axode.problems.steps.methods import AUTOMATIC, IMPLICIT
from axode.problems.steps.step_acceptance import EVENT, FINISHED, LEFT, RUNNING, SINGULAR, STIFF

if TYPE_CHECKING:
    from axode.results.event import Event

Array = npt.NDArray[np.float64]
LAST = -1  # number of the sample at which a run ended, among those of a passage
KEPT_BUFFERS = (
    "w",
    "t",
    "index",
    "step",
    "h",
    "steps",
    "rejected",
)  # where a run changes its model or method


@dataclass(frozen=True)
class Passage:
    """A singular configuration that a run was taken across."""

    run: int
    landing: Landing
    description: str  # what is lost there


class Runs:
    """Runs of one mechanism: a batch of them, and batches of those that changed model or method.

    Attributes:
        out: Saved states of all runs, (runs, rows, size), each in the speeds of the model that
            made it.
        models, plans: The models that runs have used, the user's first, and their inputs.
        made_by: Number of the model that made each saved state, (runs, rows).
        outcomes: How each ended.
        steps, rejected: How many each took, and how many more it tried.
        stiff: When explicit steps became too many, by run.
    """

    def __init__(self, task: Task, given: Any, q: Array, nu: Array, p: Array | None) -> None:
        model, settings = task.model, task.settings
        self.task, self.model, self.plan, self.settings = task, model, task.plan, settings
        self.p, self.given = p, given
        self.count = q.shape[0]
        self.outcomes = [Outcome() for _ in range(self.count)]
        self.events: list[Event] = []
        self.calls: list[tuple[int, float, Array]] = []
        self.switched: dict[int, list[tuple[str, ...]]] = {}  # speeds that each run changed to
        self.stiff: dict[int, TakeOver] = {}  # runs whose explicit steps became too many
        self.returned: dict[int, int] = {}  # how often implicit steps were no better for a run
        self.steps, self.rejected = (np.zeros(self.count, dtype=np.int64) for _ in range(2))
        start = np.concatenate([q, nu, np.zeros((self.count, 2))], axis=1)
        self.out = np.full((self.count, len(settings.times), start.shape[1]), np.nan)
        self.out[:, 0] = start
        self.models, self.plans = [model], [task.plan]
        self.made_by = np.zeros(self.out.shape[:2], dtype=np.intp)
        self.passages: list[Passage] = []
        self.passed: dict[tuple[int, int], Array] = {}  # q, v and w of samples, by run and row
        self._candidates = Candidates()
        self._waiting: list[Batch] = []
        self._leaving: dict[tuple[Model, Settings], list[int]] = {}
        self._begun: set[int] = set()  # runs whose start is in the speeds of another model already

    @property
    def n_q(self) -> int:
        """Number of coordinates of a saved state."""
        return len(self.model.coordinates)

    @cached_property
    def _first(self) -> Batch:
        """All runs, from their start; steps are compiled now."""
        q, nu, _ = np.split(self.out[:, 0], [self.n_q, self.out.shape[2] - 2], axis=1)
        return Batch(self.task, np.arange(self.count), {"q": q, "nu": nu}, self.p, self.out)

    def advance(self, session: Session) -> None:
        """Run all to an end, or until Ctrl-C."""
        self._waiting.append(self._first)
        while self._waiting:
            batch = self._waiting[-1]
            try:
                batch.advance(session, self._resolve)
            finally:
                self._deliver(batch)
            self._waiting.pop()
            for (model, settings), runs in self._leaving.items():
                self._waiting.append(self._move(batch, model, settings, np.array(runs)))
            self._leaving = {}

    def _resolve(self, batch: Batch, run: int) -> None:
        status = int(batch.buffers["status"][run, 0])
        if status == EVENT:
            self.events += locate(batch, run)
        elif (begun := self._elsewhere(batch, run)) is not None:
            self._begun.add(run)
            batch.buffers["nu"][run] = begun[1]
            self._leave(batch, run, begun[0], batch.settings)
        elif status == SINGULAR:
            across = self._pass if self.settings.singular == "pass" else None
            model = near_singular(batch, run, self.model, across)
            if model is not None:
                self._leave(batch, run, model, batch.settings)
        elif status == STIFF:
            self._answer_stiffness(batch, run)
        else:
            flat, cause = find_flattest_wheel(
                batch.model, batch.buffers["q"][run], batch.conditions(run)
            )
            if flat < LIES_FLAT:
                status = SINGULAR
            batch.resolve(run, status, cause if flat < LIES_FLAT else cause_of(batch, run))

    def _pass(self, batch: Batch, run: int, description: str) -> bool:
        """Take a run beyond a singular configuration, if its motion goes on there."""
        s, member = self.settings, int(batch.members[run])
        now = float(batch.buffers["t"][run, 0])
        landing = self._candidates.better(member, land_beyond(batch, run), now)
        if landing is None:
            return False
        self.passages.append(Passage(member, landing, description))
        end, status, cause = landing.time, RUNNING, ""
        if s.direction * (end - s.t_end) >= 0:
            end, status = s.t_end, FINISHED
        for t, k, values in find_events(landing, batch, run, self.model.independent):
            if s.direction * (t - end) <= 0:
                self.events.append(batch.watches[k].located(t, member, values))
                if batch.watches[k].stop:
                    end, status, cause = t, EVENT, batch.watches[k].name
                    break
        self._save_passed(batch, run, landing, end)
        if status == RUNNING:
            self._land(batch, run, landing)
        else:
            x = landing.path(end)
            self.passed[member, LAST] = x
            batch.resolve(run, status, cause, self._in_speeds(batch.model, x), end)
        return True

    def _save_passed(self, batch: Batch, run: int, landing: Landing, end: float) -> None:
        """Save samples inside a passage, up to a time."""
        s, index = self.settings, int(batch.buffers["index"][run, 0])
        while index < len(s.times) and s.direction * (s.times[index] - end) <= 0:
            x = landing.path(float(s.times[index]))
            self.passed[int(batch.members[run]), index] = x
            batch.save(run, index, self._in_speeds(batch.model, x))
            index += 1
        batch.buffers["index"][run] = index

    def _land(self, batch: Batch, run: int, landing: Landing) -> None:
        """Continue with compiled steps beyond the passage."""
        b, s = batch.buffers, self.settings
        parts = np.split(landing.state, [self.n_q, landing.state.size - 2])
        b["q"][run], b["nu"][run], b["w"][run] = parts
        b["t"][run], b["status"][run] = landing.time, RUNNING
        if s.method == "rk4":
            b["step"][run] = round(abs(landing.time - s.t0) / s.step_size)
        else:
            b["steps"][run] += 1
        b["least_pivot"][run] = 0.5 * landing.pivots[1]

    def _in_speeds(self, model: Model, x: Array) -> Array:
        """Select q, nu and w of a model from q, all speeds and w."""
        chosen = [self.n_q + model.speed_names.index(name) for name in model.independent]
        return np.concatenate([x[: self.n_q], x[chosen], x[-2:]])

    def _elsewhere(self, batch: Batch, run: int) -> tuple[Model, Array] | None:
        """Find a model for a run that does not leave a singular start, and its speeds there."""
        begins = batch is self._first and float(batch.buffers["t"][run, 0]) == self.settings.t0
        return find_start_elsewhere(batch, run, self.model) if begins else None

    def _leave(self, batch: Batch, run: int, model: Model, settings: Settings) -> None:
        """Take a run out of its batch, to wait for another."""
        self._leaving.setdefault((model, settings), []).append(run)
        batch.resolve(run, LEFT)

    def _answer_stiffness(self, batch: Batch, run: int) -> None:
        """Continue a stiff run with an implicit method, unless an explicit one was asked for.

        It returns to the explicit method if implicit steps turn out to be too short for their cost,
        and is looked at again after many more explicit steps.
        """
        member = int(batch.members[run])
        if batch.settings.method == IMPLICIT:
            if not is_worth_its_cost(batch, run, self.stiff[member]):
                del self.stiff[member]
                self.returned[member] = self.returned.get(member, 0) + 1
                self._leave(batch, run, batch.model, self.settings)
            return
        found = answer_stiffness(batch, run, self.returned.get(member, 0))
        if found is None:
            return
        self.stiff[member] = found
        if self.settings.method == AUTOMATIC:
            settings = replace(self.settings, method=found.method, review=REVIEW)
            self._leave(batch, run, batch.model, settings)

    def _move(self, batch: Batch, model: Model, settings: Settings, runs: Numbers) -> Batch:
        """Move some runs of a batch to other independent speeds or to another method."""
        plan = self._plan_of(model)
        members, conditions = batch.members[runs], batch.conditions(runs)
        start = {
            name: batch.buffers[name][runs]
            for name in ("q", *KEPT_BUFFERS)
            if name in batch.rollout.program.state
        }
        q, old = start["q"], batch.buffers["nu"][runs]
        nu = translate_speeds(batch.model, model.independent, q, old, conditions)
        if is_rounded(self.model) and model is not batch.model:
            nu = keep_kinetic_energy(batch.model, model, q, old, nu, conditions)
        start["nu"] = nu
        begun = np.isin(members, list(self._begun)) if batch is self._first else None
        if begun is not None and begun.any():
            nu[begun] = old[begun]
            self.out[members[begun], 0, self.n_q : -2] = nu[begun]
            self.made_by[members[begun], 0] = self.models.index(model)
        for run in members.tolist():
            self.outcomes[run] = Outcome()
            if model is not batch.model:
                self.switched.setdefault(run, []).append(model.independent)
        out = np.full((len(members), *self.out.shape[1:]), np.nan)
        task = Task(model, plan.part(members), settings, self.task.events, self.model.independent)
        return Batch(task, members, start, conditions.p, out)

    def _deliver(self, batch: Batch) -> None:
        """Keep what a batch has done."""
        self.calls += batch.calls
        for run, (member, outcome) in enumerate(zip(batch.members, batch.outcomes, strict=True)):
            if outcome.status == RUNNING:  # interrupted
                outcome.time = float(batch.buffers["t"][run, 0])
                outcome.last = batch.state(run)
            if batch.out is not self.out:
                outcome.model = self.models.index(batch.model)
                rows = np.flatnonzero(~np.isnan(batch.out[run, :, 0]))
                self.out[member, rows] = batch.out[run, rows]
                self.made_by[member, rows] = outcome.model
            self.outcomes[member] = outcome
        if self.settings.method == "rk4":
            self.steps[batch.members] = batch.buffers["step"][:, 0]
        else:
            self.steps[batch.members] = batch.buffers["steps"][:, 0]
            self.rejected[batch.members] = batch.buffers["rejected"][:, 0]

    def _plan_of(self, model: Model) -> InputPlan:
        """Plan the input for a model on other speeds, once."""
        if model not in self.models:
            self.models.append(model)
            plan = plan_input(model, self.given, self.model.independent)
            self.plans.append(plan.spread((self.count,)))
        return self.plans[self.models.index(model)]
