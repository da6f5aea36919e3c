"""All runs of a simulation, from their start to their end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.model import Model
from axode.model.model_parts import row_numbers_of
from axode.numerics.tolerances import LIES_FLAT, RANK
from axode.problems.assemble.start_warnings import FailedStarts
from axode.problems.inputs.inputs import InputPlan, plan_input
from axode.problems.other_models import carry_speeds
from axode.problems.runs.batch import Batch, Outcomes
from axode.problems.runs.session import Numbers, Session, Task
from axode.problems.runs.settings import Settings
from axode.problems.simulate.crossings import Crossings, locate
from axode.problems.simulate.failures import find_causes
from axode.problems.simulate.switch_to_implicit import REVIEW, StiffRuns
from axode.problems.singular.pivots import (
    find_flattest_wheels,
    find_smallest_pivots,
    has_lost_pivots,
)
from axode.problems.steps.compiled import AUTOMATIC, IMPLICIT
from axode.problems.steps.step_acceptance import (
    EVENT,
    FINISHED,
    LEFT,
    NOT_FINITE,
    RUNNING,
    SINGULAR,
    STIFF,
    UNASSEMBLED,
)

if TYPE_CHECKING:
    from axode.problems.singular.continuation import Candidates, Landing
    from axode.results.columns import Event

Array = npt.NDArray[np.float64]
DESCRIBED = 100  # runs of a batch whose singular rows are named
LAST = -1  # number of the sample at which a run ended, among those of a passage
KEPT_BUFFERS = (
    "w",
    "c",
    "t",
    "index",
    "step",
    "h",
    "steps",
    "rejected",
    "audit",
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
        lengths: How many samples each has.
        steps, rejected: How many each took, and how many more it tried.
        crossings, events: Events that were located by steps, and in passages.
        impulses: Times at which prescribed rates jumped in any run.
        switches: How often runs changed to other speeds.
        stiff: Runs whose explicit steps became too many.
        contact_work: Work of every contact row on each run [J], of steps through contacts.
    """

    def __init__(self, task: Task, given: Any, q: Array, nu: Array, p: Array | None) -> None:
        model, settings = task.model, task.settings
        self.task, self.model, self.plan, self.settings = task, model, task.plan, settings
        self.p, self.given = p, given
        self.count = q.shape[0]
        self.events: list[Event] = []
        self.crossings: list[Crossings] = []
        self.calls: list[tuple[int, float, Array]] = []
        self.impulses: set[float] = set()
        self.switches, self.stiff = 0, StiffRuns(self.count)
        self.contact_work: Array | None = None
        self.steps, self.rejected = (np.zeros(self.count, dtype=np.int64) for _ in range(2))
        self._start = np.concatenate([q, nu, np.zeros((self.count, 2))], axis=1)
        size = self._start.shape[1]
        self.outcomes = Outcomes(self.count, size)
        self.lengths = np.ones(self.count, dtype=np.intp)
        # first written by the threads of the steps, each to its own part
        self.out = np.zeros((self.count, len(settings.times), size))
        self.models, self.plans = [model], [task.plan]
        self.made_by = np.zeros(self.out.shape[:2], dtype=np.intp)
        self.passages: list[Passage] = []
        # run, time, coordinates and pivot where one was small
        self.approaches: list[tuple[Numbers, Array, Array, Array]] = []
        self.passed: dict[tuple[int, int], Array] = {}  # q, v and w of samples, by run and row
        self._candidates: Candidates | None = None
        self._everyone: Batch | None = None
        self._waiting: list[Batch] = []
        self._leaving: dict[tuple[Model, Settings], list[int]] = {}
        self._begun: set[int] = set()  # runs whose start is in the speeds of another model already

    def end_unassembled(self, failed: FailedStarts) -> None:
        """End runs that have no start, with no sample."""
        self._first.buffers["index"][failed.runs] = 0.0
        self._first.resolve(failed.runs, UNASSEMBLED, failed.texts())

    @property
    def n_q(self) -> int:
        """Number of coordinates of a saved state."""
        return len(self.model.coordinates)

    @property
    def _alike(self) -> bool:
        """Return whether a run has the same bits whatever others share its model just then."""
        return self.count > 1

    @property
    def _first(self) -> Batch:
        """All runs, from their start; steps are compiled when it is first asked for."""
        if self._everyone is None:
            q, nu = self._start[:, : self.n_q], self._start[:, self.n_q : -2]
            runs = np.arange(self.count)
            try:
                start = {"q": q, "nu": nu}
                self._everyone = Batch(self.task, runs, start, self.p, self.out, self._alike)
            except KeyboardInterrupt:
                self.out[:, 0] = self._start
                raise
        return self._everyone

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

    def _resolve(self, batch: Batch, runs: Numbers) -> None:
        """Decide what to do with runs whose steps have stopped."""
        status = batch.buffers["status"][runs, 0]
        crossing = status == EVENT
        if crossing.any():
            self.crossings.append(locate(batch, runs[crossing]))
        runs = self._begin_elsewhere(batch, runs[~crossing])
        status = batch.buffers["status"][runs, 0]
        self._leave_singular(batch, runs[status == SINGULAR])
        self._answer_stiffness(batch, runs[status == STIFF])
        failed = runs[(status != SINGULAR) & (status != STIFF)]
        if failed.size:
            flat, causes = find_flattest_wheels(
                batch.model, batch.buffers["q"][failed], batch.conditions(failed)
            )
            lies = flat < LIES_FLAT
            upright = np.flatnonzero(~lies)
            if upright.size:
                causes[upright] = find_causes(batch, failed[upright])
            status = batch.buffers["status"][failed, 0].astype(np.intp)
            lost = self._name_losses(batch, failed, causes, ~lies & (status == NOT_FINITE))
            batch.resolve(failed, np.where(lies | lost, SINGULAR, status), causes)

    def _name_losses(
        self, batch: Batch, runs: Numbers, causes: Any, among: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Find runs that stand where constraints lose rank, and enter the rows as causes."""
        from axode.problems.singular.switching import describe_own_loss

        q = batch.buffers["q"][runs]
        lost = among & has_lost_pivots(batch.model, q, batch.conditions(runs))
        causes[lost] = "the rows or the speeds are singular there"
        for k in np.flatnonzero(lost)[:DESCRIBED]:
            causes[k] = describe_own_loss(self.model, q[k], batch.conditions(runs[k]))[0]
        return np.asarray(lost)

    def _leave_singular(self, batch: Batch, runs: Numbers) -> None:
        """Let runs near a singular configuration change their model, go on or end."""
        if not runs.size:
            return
        from axode.problems.singular.switching import near_singular

        across = self._pass if self.settings.singular == "pass" else None
        self._note_approaches(batch, runs)
        for model, which in near_singular(batch, runs, self.model, across):
            self._leave(batch, which.tolist(), model, batch.settings)

    def warn_of_approaches(self) -> None:
        """Warn of runs that went on though they came near a singular configuration."""
        if not self.approaches:
            return
        from axode.problems.singular.approaches import MAX_SAMPLES, Approach, warn_of_rows

        members, times, q, pivots = map(np.concatenate, zip(*self.approaches, strict=True))
        ended = np.asarray(self.outcomes.status).ravel() == SINGULAR
        ended[[passage.run for passage in self.passages]] = True
        nearest = np.flatnonzero(~ended[members])
        nearest = nearest[np.argsort(pivots[nearest], kind="stable")[:MAX_SAMPLES]]
        p = self.p
        stops = [
            Approach(
                float(times[k]),
                q[k],
                p if p is None or p.ndim == 1 else p[members[k]],
                float(pivots[k]),
            )
            for k in nearest.tolist()
        ]
        warn_of_rows(self.model, stops)

    def _note_approaches(self, batch: Batch, runs: Numbers) -> None:
        """Note states at which a pivot is small."""
        b = batch.buffers
        pivots = np.abs(b["near"][runs, 0])
        self.approaches.append((batch.members[runs], b["t"][runs, 0], b["q"][runs], pivots))

    def _pass(self, batch: Batch, run: int, description: str) -> bool:
        """Take a run beyond a singular configuration, if its motion goes on there."""
        from axode.problems.singular.continuation import Candidates, find_events, land_beyond

        s, member = self.settings, int(batch.members[run])
        self._candidates = self._candidates or Candidates()
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
        if not s.adaptive:
            b["step"][run] = round(abs(landing.time - s.t0) / s.step_size)
        else:
            b["steps"][run] += 1
        b["least_pivot"][run] = 0.5 * landing.pivots[1]
        if batch.breaks is not None:
            past = np.broadcast_to(batch.breaks.past(landing.time), (batch.count, 1))
            b["segment"][run] = past[run]

    def _in_speeds(self, model: Model, x: Array) -> Array:
        """Select q, nu and w of a model from q, all speeds and w."""
        chosen = [self.n_q + model.speed_names.index(name) for name in model.independent]
        return np.concatenate([x[: self.n_q], x[chosen], x[-2:]])

    def _begin_elsewhere(self, batch: Batch, runs: Numbers) -> Numbers:
        """Let runs that do not leave a singular start begin with another model; gives the rest."""
        begins = runs[batch.buffers["t"][runs, 0] == self.settings.t0]
        if batch is not self._first or not begins.size or row_numbers_of(self.model) is None:
            return runs
        from axode.problems.singular.switching import find_start_elsewhere

        q = batch.buffers["q"][begins]
        pivots = find_smallest_pivots(self.model, q, batch.conditions(begins))
        gone = []
        for run in begins[~(pivots > RANK)].tolist():
            begun = find_start_elsewhere(batch, run, self.model)
            if begun is not None:
                self._begun.add(run)
                batch.buffers["nu"][run] = begun[1]
                self._leave(batch, [run], begun[0], batch.settings)
                gone.append(run)
        return np.setdiff1d(runs, gone) if gone else runs

    def _leave(self, batch: Batch, runs: Sequence[int], model: Model, settings: Settings) -> None:
        """Remove runs from their batch until they join another."""
        self._leaving.setdefault((model, settings), []).extend(runs)
        batch.resolve(runs, LEFT)

    def _answer_stiffness(self, batch: Batch, runs: Numbers) -> None:
        """Continue stiff runs with an implicit method, unless an explicit one was asked for.

        They return to the explicit method if implicit steps turn out to be too short for their
        cost, and are looked at again after many more explicit steps.
        """
        if not runs.size:
            return
        if batch.settings.method == IMPLICIT:
            back = self.stiff.find_not_worth_their_cost(batch, runs)
            if back.size:
                self._leave(batch, back.tolist(), batch.model, self.settings)
            return
        found = self.stiff.find(batch, runs)
        if found.size and self.settings.method == AUTOMATIC:
            settings = replace(self.settings, method=IMPLICIT, review=REVIEW)
            self._leave(batch, found.tolist(), batch.model, settings)

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
        nu = carry_speeds(batch.model, model, q, old, conditions)
        start["nu"] = nu
        begun = np.isin(members, list(self._begun)) if batch is self._first else None
        if begun is not None and begun.any():
            nu[begun] = old[begun]
            if "audit" in start:
                start["audit"][begun] = 0.0  # energies in speeds that do not describe the start
            self.out[members[begun], 0, self.n_q : -2] = nu[begun]
            self.made_by[members[begun], 0] = self.models.index(model)
        self.outcomes.status[members] = RUNNING
        if model is not batch.model:
            self.switches += len(members)
        out = np.zeros((len(members), *self.out.shape[1:]))
        task = replace(
            self.task,
            model=model,
            plan=plan.part(members),
            settings=settings,
            speeds=self.model.independent,
        )
        made = Batch(task, members, start, conditions.p, out, self._alike)
        if made.log is not None:
            made.log.parent = (batch, runs)
        return made

    def _deliver(self, batch: Batch) -> None:
        """Keep what a batch has done."""
        if "contact_work" in batch.buffers:
            self.contact_work = batch.buffers["contact_work"]
        self.calls += batch.calls
        number = self.models.index(batch.model)
        self.outcomes.keep(batch.members, batch.outcomes, number)
        self.lengths[batch.members] = batch.rows_saved
        if batch.breaks is not None:
            self.impulses.update(
                batch.breaks.impulses(self.settings.t0, batch.outcomes.time).tolist()
            )
        if batch is self._first:
            self.out[:, 0] = self._start
        else:
            run, row = batch.written()
            self.out[batch.members[run], row] = batch.out[run, row]
            self.made_by[batch.members[run], row] = number
        if not self.settings.adaptive:
            self.steps[batch.members] = batch.buffers["step"][:, 0]
        else:
            self.steps[batch.members] = batch.buffers["steps"][:, 0]
            self.rejected[batch.members] = batch.buffers["rejected"][:, 0]

    def _plan_of(self, model: Model) -> InputPlan:
        """Plan the input for a model on other speeds, once."""
        if model not in self.models:
            self.models.append(model)
            plan = self.plan
            if plan.tape is not None:  # all else is the same whatever the speeds
                made = plan_input(model, self.given, self.model.independent, gains=True)
                plan = replace(plan, tape=made.tape)
            self.plans.append(plan)
        return self.plans[self.models.index(model)]
