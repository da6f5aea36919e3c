"""Runs of some rows of a sweep, and what becomes of those that need other rows and speeds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.lowering.program import Program
from axode.codegen.tape.lifting import Lifted, lift_numbers
from axode.codegen.tape.tape import Tape
from axode.model.model import Model
from axode.problems.session import CompiledRuns, Session, Task
from axode.problems.simulate.batch import SMALLEST_PIVOT
from axode.problems.singular.other_models import translate_speeds
from axode.problems.singular.switching import choose_models
from axode.problems.steps.compiled import compiled
from axode.problems.steps.explicit import fixed_step_program
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import LEFT, SINGULAR
from axode.problems.steps.tableaus import RK4
from axode.problems.sweep.accumulate import Output, gather_outputs
from axode.runtime.resident_buffers import read_rows, write_rows

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
GOOD_PIVOT = 0.2  # of the user's model, from which on runs stay with it
LEAST_PIVOT = 1e-3  # below it the motion is no longer determined by the speeds that were chosen
_SWITCHING = threading.RLock()  # equations are derived by one thread at a time
RESET_BUFFERS = ("q", "nu", "status", "near", "flat")  # where a run changes its model


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
    def _lifted(self) -> Lifted | None:
        """Those functions, with their numbers as an argument."""
        if self.functions is None:
            return None
        return lift_numbers(self.functions, self.settings.place.max_numbers)

    def dynamics(self, *, stiffness: bool = False) -> Dynamics:
        """Collect the tapes that the steps are made of, and the numbers of all functions."""
        d, lifted = super().dynamics(stiffness=stiffness), self._lifted
        return d if lifted is None else replace(d, numbers=d.numbers | lifted.numbers)

    def compile(self, d: Dynamics) -> Any:
        """Compile steps that gather the outputs, once for all sweeps that ask for the same."""
        functions = None if self._lifted is None else self._lifted.tape

        def program() -> Program:
            gathering = gather_outputs(self.model, d, self.outputs, functions)
            made = fixed_step_program(RK4, d, gathering)
            return replace(made, constants={"p": constants}) if constants else made

        constants = self._constants() if "p" in d.given else {}
        traced = (None if tape is None else tape.digest for tape in (d.input, functions))
        key = ("sweep", self.outputs, d.samples, *d.breaks_key, tuple(constants), *traced)
        return compiled(self.model, key, self.settings.place, program, alike=True)

    def _constants(self) -> dict[int, float]:
        """Parameters that a kernel holds, by place: it is faster by half with all of them."""
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
        least_pivot: float,
    ) -> None:
        self.least_pivot = least_pivot
        d = task.dynamics()
        given = {"least_pivot": least_pivot}
        super().__init__(task, d, task.compile(d), members, start, p, given)

    def advance(self, session: Session) -> None:
        """Run until every run has ended or stopped."""
        session.advance(self, self.first_budget(len(self.dynamics.rate.kinds)))


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
        self.first = SweepBatch(task, np.arange(self.count), start, p, SMALLEST_PIVOT)
        self._stopped_at: Array | None = None  # steps that a run had taken, once one stopped

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
            if not self._leave:
                with _SWITCHING:
                    waiting += [self._move(batch, *found) for found in self._find_models(batch)]

    def _deliver(self, batch: SweepBatch) -> None:
        """Keep what a batch has done."""
        if batch is not self.first:
            for name in ("status", "made", "step"):
                write_rows(self.first.buffers, name, batch.members, batch.buffers[name])

    def _find_models(self, batch: SweepBatch) -> Iterator[tuple[Model, Numbers, float]]:
        """Choose models for runs that stopped: which runs, and how small pivots may become."""
        b, members = batch.buffers, batch.members
        if batch.summary is not None and not batch.summary.counts[SINGULAR]:
            return  # without fetching the status of all runs
        stopped = np.flatnonzero(b["status"][:, 0] == SINGULAR)
        if not stopped.size:
            return
        steps = b["step"][:, 0]
        if self._stopped_at is None:
            self._stopped_at = np.full(self.count, -1.0)
        fresh = steps[stopped] > self._stopped_at[members[stopped]]
        self._stopped_at[members[stopped]] = steps[stopped]
        found = np.zeros(stopped.size, dtype=bool)
        own = self.task.model
        if fresh.any() and not names_forces(own, self.task.outputs):
            conditions = batch.conditions(stopped)
            described = choose_models(own, read_rows(b, "q", stopped), conditions, GOOD_PIVOT)
            stays = np.flatnonzero(~described.elsewhere)
            for model, (k, *_) in [(own, (stays,)), *described.others()]:
                k = k[fresh[k]]
                if model is not batch.model and k.size:
                    found[k] = True
                    yield model, stopped[k], SMALLEST_PIVOT
        left = stopped[~found]
        if left.size and batch.least_pivot > LEAST_PIVOT:
            yield batch.model, left, LEAST_PIVOT

    def _move(
        self, batch: SweepBatch, model: Model, which: Numbers, least_pivot: float
    ) -> SweepBatch:
        """Move some runs to another model, from where they are."""
        own, members, conditions = batch.buffers, batch.members[which], batch.conditions(which)
        self.first.buffers["status"][members] = LEFT  # until the other batch has run
        q, speeds = read_rows(own, "q", which), read_rows(own, "nu", which)
        nu = translate_speeds(batch.model, model.independent, q, speeds, conditions)
        start = {
            name: read_rows(own, name, which)
            for name in own
            if name in batch.rollout.program.state and name not in RESET_BUFFERS
        }
        start |= {"q": q, "nu": nu}
        task = self._task_elsewhere(model, members)
        return SweepBatch(task, members, start, conditions.p, least_pivot)


def names_forces(model: Model, outputs: Sequence[Output]) -> bool:
    """Check whether forces of rows are asked for, which other rows do not have."""
    named = (output.what for output in outputs if isinstance(output.what, str))
    return any(model.signals.resolve(name).function == "multipliers" for name in named)
