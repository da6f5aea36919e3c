"""Runs of some rows of a sweep, and their change to other rows and speeds where needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.program import Program
from axode.codegen.tape.rewriting import ExtractedNumbers, extract_numbers
from axode.codegen.tape.tape import Tape
from axode.model.model import Model
from axode.numerics.tolerances import SHORTEST_STEP
from axode.problems.other_models import carry_speeds
from axode.problems.runs.batch import FIRST_STIFF_LIMIT, first_least_pivot
from axode.problems.runs.session import CompiledRuns, Session, Task
from axode.problems.runs.settings import Settings
from axode.problems.simulate.switch_to_implicit import MIN_STEPS_LEFT, RETRY_FACTOR
from axode.problems.singular.switching import find_changes, find_start_elsewhere
from axode.problems.steps.adaptive import ERROR_SHARE
from axode.problems.steps.compiled import AUTOMATIC, IMPLICIT, can_take_over, compiled, program_of
from axode.problems.steps.explicit import stiff_slope
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import LEFT, NOT_FINITE, RUNNING, SINGULAR, STIFF
from axode.problems.sweep.accumulate import Output
from axode.problems.sweep.gathering import gather_outputs, looks_inside
from axode.runtime.resident_buffers import read_rows, write_rows

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
_SWITCHING = threading.RLock()  # equations are derived by one thread at a time
# where a run changes its model
RESET_BUFFERS = ("q", "nu", "status", "near", "flat", "h", "h_s", "k1", "y")
LOOKS = 64  # least number of steps of a run inside which outputs are searched for


@dataclass(frozen=True)
class SweepTask(Task):
    """What the steps of a sweep are made of.

    Attributes:
        outputs: What is gathered.
        functions: Functions of the state to which the outputs refer.
        defaults: Parameters that keep their defaults in all runs; kernels of a GPU hold them.
    """

    outputs: tuple[Output, ...] = ()
    functions: Tape | None = None
    defaults: tuple[str, ...] = ()

    @property
    def _extracted(self) -> ExtractedNumbers | None:
        """Those functions, with their numbers as an argument."""
        if self.functions is None:
            return None
        return extract_numbers(self.functions, self.settings.place.max_numbers)

    @property
    def counter(self) -> str:
        """Buffer that counts the steps of a run."""
        return "steps" if self.settings.adaptive else "step"

    def dynamics(self, *, stiffness: bool = False) -> Dynamics:
        """Collect the tapes that the steps are made of, and the numbers of all functions."""
        d, lifted = super().dynamics(stiffness=stiffness), self._extracted
        return d if lifted is None else replace(d, numbers=d.numbers | lifted.numbers)

    def compile(self, d: Dynamics) -> Any:
        """Compile steps that gather the outputs, once for all sweeps that ask for the same."""
        functions = None if self._extracted is None else self._extracted.tape

        def program() -> Program:
            gathering = gather_outputs(self.model, d, self.outputs, functions, self.counter)
            made = program_of(self.model, self.settings.stepper, d, gathering)
            return replace(made, constants={"p": constants}) if constants else made

        constants = self._constants() if "p" in d.given else {}
        traced = (None if tape is None else tape.digest for tape in (d.input, functions))
        kind = ("sweep", self.settings.stepper, d.samples, d.stiffness, *d.breaks_key)
        key = (*kind, self.outputs, tuple(constants), *traced)
        return compiled(self.model, key, self.settings.place, program, alike=True)

    def _constants(self) -> dict[int, float]:
        """Parameters that a kernel holds, by place: with all of them it is 1.5 times as fast."""
        if self.settings.place.target != "cuda":
            return {}
        known = enumerate(self.model.parameters.items())
        return {k: value for k, (name, value) in known if name in self.defaults}


class SweepBatch(CompiledRuns):
    """Runs of one model, the numbers gathered from each, and how small their pivots may become."""

    resident = True

    def __init__(
        self,
        task: SweepTask,
        members: Numbers,
        start: dict[str, Array],
        p: Array | None,
        least_pivot: Array | float,
    ) -> None:
        settings = task.settings
        d = task.dynamics(stiffness=settings.method == AUTOMATIC)
        rollout = task.compile(d)
        looked = any(looks_inside(task.model, output) for output in task.outputs)
        given: dict[str, Array | float] = {
            "least_pivot": np.full((len(members), 1), least_pivot),
            "longest": abs(settings.duration) / (LOOKS if looked else 1),
            "review": np.inf,
            "stiff_limit": np.full((len(members), 1), FIRST_STIFF_LIMIT),
            "stiff_slope": stiff_slope(ERROR_SHARE * settings.rtol, settings.stepper),
        }
        first = {name: value for name, value in start.items() if name in rollout.program.state}
        super().__init__(task, d, rollout, members, first, p, given)
        here = settings.place.target == "cpu"
        self.regrouped = here and settings.adaptive and self.count > rollout.lanes

    def advance(self, session: Session) -> None:
        """Run until every run has ended or stopped."""
        session.advance(self, self.first_budget(len(self.dynamics.rate.kinds)))

    def stopped_by(self, status: int) -> Numbers:
        """Numbers of the runs that have a status, without fetching that of all if none has."""
        if self.summary is not None and not self.summary.counts[status]:
            return np.zeros(0, dtype=np.intp)
        return np.flatnonzero(self.buffers["status"][:, 0] == status)

    def stuck_at_start(self) -> Numbers:
        """Numbers of the runs that found no finite rates at their start."""
        stuck = self.stopped_by(NOT_FINITE)
        if not stuck.size:  # nothing is fetched from a GPU
            return stuck
        return stuck[read_rows(self.buffers, "t", stuck)[:, 0] == self.settings.t0]

    def resume(self, runs: Numbers) -> None:
        """Let runs go on that have stopped; `advance` does the rest."""
        if runs.size:
            write_rows(self.buffers, "status", runs, np.full((runs.size, 1), float(RUNNING)))
            self.begun = float(np.mean(self.buffers["t"]))

    def shorten(self, runs: Numbers) -> bool:
        """Try shorter steps where a long one meets a small pivot; returns whether there are any."""
        if not self.settings.adaptive:
            return False
        length = np.abs(read_rows(self.buffers, "h_s", runs))
        long = length[:, 0] > SHORTEST_STEP
        write_rows(self.buffers, "h", runs[long], 0.5 * length[long])
        self.resume(runs[long])
        return bool(long.any())

    def find_stiff(self, *, leave: bool) -> tuple[Numbers, bool]:
        """Find runs that an implicit method is to continue.

        Returns:
            Their numbers, and whether others that stopped go on because few steps are left, or for
            want of the implicit method.
        """
        stuck = self.stopped_by(STIFF)
        if not stuck.size:
            return stuck, False
        t, h, stiff = (read_rows(self.buffers, name, stuck)[:, 0] for name in ("t", "h", "stiff"))
        stays = np.abs(self.settings.t_end - t) / np.maximum(h, 1e-300) < MIN_STEPS_LEFT
        if not leave:
            stays |= not can_take_over(self.model, self.settings.place, self.dynamics)
        self.buffers["stiff_limit"][stuck[stays], 0] = RETRY_FACTOR * stiff[stays]
        self.resume(stuck[stays])
        return stuck[~stays], bool(stays.any())


class SweepRuns:
    """Runs of some rows: a batch of them, and batches of those that changed to other models.

    Args:
        task: What the steps are made of, with the user's model.
        start: q and nu, (runs, size) each.
        p: Free parameters, (size,) or (runs, size).
        elsewhere: Makes the steps of some of the runs for another model.
        leave: Leave runs that stop where another model may be needed as they are.
    """

    def __init__(
        self,
        task: SweepTask,
        start: dict[str, Array],
        p: Array | None,
        elsewhere: Callable[[Model, Numbers], SweepTask],
        *,
        leave: bool = False,
    ) -> None:
        self.task, self._task_elsewhere, self._leave = task, elsewhere, leave
        self.count = len(start["q"])
        least = first_least_pivot(task.model)
        self.first = SweepBatch(task, np.arange(self.count), start, p, least)

    def advance(self, session: Session) -> None:
        """Run all to an end, or until Ctrl-C."""
        waiting = [self.first]
        while waiting:
            batch = waiting.pop()
            try:
                batch.advance(session)
            except KeyboardInterrupt:  # what to do with runs that stopped is still open
                status = batch.buffers["status"]
                status[np.isin(status, (SINGULAR, STIFF))] = LEFT
                raise
            finally:
                self._deliver(batch)
            stiff, again = batch.find_stiff(leave=self._leave)
            if not self._leave:
                if batch is self.first:
                    waiting += self._begin_elsewhere()
                if stiff.size:
                    implicit = replace(batch.settings, method=IMPLICIT)
                    waiting.append(self._move(batch, batch.model, stiff, implicit))
                with _SWITCHING:
                    moved, more = self._leave_singular(batch)
                waiting += moved
                again |= more
            if again:
                waiting.append(batch)

    def _begin_elsewhere(self) -> list[SweepBatch]:
        """Let runs that do not leave a singular start begin with other models."""
        batch, own = self.first, self.task.model
        if names_forces(own, self.task.outputs):
            return []
        begun: dict[Model, dict[int, Array]] = {}
        with _SWITCHING:
            for run in batch.stuck_at_start().tolist():
                found = find_start_elsewhere(batch, run, own)
                if found is not None:
                    begun.setdefault(found[0], {})[run] = found[1]
        moved = []
        for model, speeds in begun.items():
            which = np.array(list(speeds))
            members, conditions = batch.members[which], batch.conditions(which)
            write_rows(batch.buffers, "status", which, np.full((which.size, 1), float(LEFT)))
            start = {"q": read_rows(batch.buffers, "q", which), "nu": np.array([*speeds.values()])}
            task = self._task_elsewhere(model, members)
            least = first_least_pivot(model)
            moved.append(SweepBatch(task, members, start, conditions.p, least))
        return moved

    def _deliver(self, batch: SweepBatch) -> None:
        """Keep what a batch has done."""
        if batch is not self.first:
            for name in ("status", "made", self.task.counter, "inaccuracy"):
                if name in batch.buffers:
                    write_rows(self.first.buffers, name, batch.members, batch.buffers[name])

    def _leave_singular(self, batch: SweepBatch) -> tuple[list[SweepBatch], bool]:
        """Let runs that stopped near a singular configuration change their model, go on or end.

        Returns:
            Batches of those that changed, and whether others go on.
        """
        stopped, own = batch.stopped_by(SINGULAR), self.task.model
        if not stopped.size:
            return [], False
        changes = find_changes(batch, stopped, own, change=not names_forces(own, self.task.outputs))
        moved = [self._move(batch, model, which) for model, which in changes.models]
        on = changes.least_pivot > 0.0
        batch.buffers["least_pivot"][changes.stay[on], 0] = changes.least_pivot[on]
        batch.resume(changes.stay[on])
        return moved, batch.shorten(changes.stay[~on]) or bool(on.any())

    def _move(
        self, batch: SweepBatch, model: Model, which: Numbers, settings: Settings | None = None
    ) -> SweepBatch:
        """Move some runs to another model or method, from where they are."""
        own, members, conditions = batch.buffers, batch.members[which], batch.conditions(which)
        self.first.buffers["status"][members] = LEFT  # until the other batch has run
        write_rows(own, "status", which, np.full((which.size, 1), float(LEFT)))
        q, speeds = read_rows(own, "q", which), read_rows(own, "nu", which)
        nu = carry_speeds(batch.model, model, q, speeds, conditions)
        start = {
            name: read_rows(own, name, which)
            for name in own
            if name in batch.rollout.program.state and name not in RESET_BUFFERS
        }
        start |= {"q": q, "nu": nu}
        task = replace(self._task_elsewhere(model, members), settings=settings or batch.settings)
        least: Array | float = first_least_pivot(model)
        if model is batch.model and "least_pivot" in own:
            least = own["least_pivot"][which]
        return SweepBatch(task, members, start, conditions.p, least)


def names_forces(model: Model, outputs: Sequence[Output]) -> bool:
    """Check whether forces of rows are asked for, which other rows do not have."""
    named = (output.what for output in outputs if isinstance(output.what, str))
    return any(model.signals.resolve(name).function == "multipliers" for name in named)
