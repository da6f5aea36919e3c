"""Simulate the runs of a cost, and keep the log of their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.host import host
from axode.codegen.tape.tape import Tape
from axode.codegen.targets.cpu import cpu_count
from axode.errors import InvalidArgument, NotApplicable
from axode.model.model import Model
from axode.problems.gradients.steps_of_cost import TABLEAUS
from axode.problems.inputs.inputs import InputPlan
from axode.problems.runs.session import Session, Task
from axode.problems.runs.settings import Settings
from axode.problems.runs.step_log import StepLog
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.scenario import Scenario
from axode.problems.simulate.simulate import raise_if_failed
from axode.problems.simulate.starts import Starts
from axode.problems.steps.compiled import log_width
from axode.problems.steps.step_acceptance import EVENT, FINISHED
from axode.problems.steps.tableaus import EXPLICIT_METHODS

if TYPE_CHECKING:
    from axode.results.columns import Event

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
LOG_BYTES = 1 << 26  # of the log of runs that are computed together, on the CPU
ENDED = (FINISHED, EVENT)  # statuses of runs whose end is known


@dataclass(frozen=True)
class EndsOnly(Settings):
    """Settings of runs of which only the end is saved, besides the log of their steps."""

    @property
    def save_steps(self) -> int:
        """Number of steps of rk4 between samples: all of them."""
        return self.n_steps

    @cached_property
    def times(self) -> Array:
        """Times of the start and of the end [s]."""
        return np.array([self.t0, self.t_end])


def check_method(method: Any, precision: str) -> None:
    """Check that steps of a method can be differentiated.

    Raises:
        NotApplicable: for methods and precisions without gradients.
    """
    if isinstance(method, str) and method not in TABLEAUS:
        raise NotApplicable(
            f"method='{method}' has no gradients; use {' or '.join(map(repr, TABLEAUS))}"
        )
    if precision != "float64":
        raise NotApplicable(
            f"precision='{precision}' has no gradients: seven digits are too few for sums of many "
            "steps; use precision='float64'"
        )


def check_input(plan: InputPlan) -> None:
    """Check that an input can be differentiated.

    Raises:
        InvalidArgument: for functions that Python calls.
    """
    if plan.callback is not None:
        raise InvalidArgument(
            "input: a Callback runs in Python and cannot be differentiated; give a function of "
            "the state, a Law with gains, or Sampled(...)"
        )


@dataclass(frozen=True)
class EndedRuns:
    """Runs that have ended, and the log of their steps.

    Attributes:
        runs: The runs.
        starts: Where they started.
        log: Their steps.
        model: What moves.
        numbers: Which ones of the batch they are; all of them unless given.
    """

    runs: Runs
    starts: Starts
    log: StepLog
    model: Model
    numbers: Numbers | None = None

    @cached_property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Which runs came to an end that has a value."""
        return np.isin(self.runs.outcomes.status, ENDED)


@dataclass(frozen=True)
class LoggedRuns:
    """Runs whose steps are logged, some of them at a time.

    Attributes:
        model: What moves.
        starts: Where the runs start.
        plan: Their input, one row per run or one for all.
        given: The input as the user gave it.
        settings: How to integrate.
        events: Zero crossings to locate.
        quadrature: By model, the rate of a number whose error adaptive steps limit.
    """

    model: Model
    starts: Starts
    plan: InputPlan
    given: Any
    settings: Settings
    events: tuple[Event, ...]
    quadrature: Callable[[Model], Tape | None] | None = None

    def parts(self) -> list[Numbers]:
        """Numbers of runs whose log fits into memory that is used again and again.

        New memory takes longer to allocate than to fill, and steps that were not kept have to
        be computed twice.
        """
        count, settings = len(self.starts.q), self.settings
        every = np.arange(count)
        if settings.adaptive or settings.place.target != "cpu":
            return [every]
        method = EXPLICIT_METHODS[settings.stepper]
        one = 8 * settings.n_steps * log_width(self.model, method.used_stages)
        least = host().lanes * (settings.threads or cpu_count())  # all threads have work
        together = max(LOG_BYTES // one // least, 1) * least
        return [every[k : k + together] for k in range(0, max(count, 1), together)]

    def run(self, log: StepLog, session: Session, numbers: Numbers | None = None) -> EndedRuns:
        """Run to the end and keep the steps.

        Args:
            log: Where the steps go.
            session: The call that this is part of.
            numbers: Which runs; all of them unless given.

        Raises:
            SimulationFailed, SingularConfiguration: for a single run that fails.
        """
        starts, plan = self.starts, self.plan
        if numbers is not None and len(numbers) < len(starts.q):
            starts, plan = starts.part(numbers), plan.part(numbers)
        task = Task(
            self.model, plan, self.settings, self.events, log=log, quadrature=self.quadrature
        )
        runs = Runs(task, self.given, starts.q, starts.nu, starts.p)
        if len(starts.failed):
            runs.end_unassembled(starts.failed)
        runs.advance(session)
        if not starts.batch:
            raise_if_failed(runs, None)
        return EndedRuns(runs, starts, log, self.model, numbers)


def begin_runs(scenario: Scenario, settings: Settings, others: tuple[int, ...] = ()) -> LoggedRuns:
    """Find the starts of the runs of a scenario; `others` is the batch that measurements make."""
    begun = scenario.starts_beside(others) if others else scenario.starts
    spread = scenario.plan.spread(begun.batch)
    return LoggedRuns(scenario.model, begun, spread, scenario.input, settings, scenario.events)


def as_ends_only(settings: Settings) -> EndsOnly:
    """Return the same settings for runs of which only the end is saved."""
    return EndsOnly(**{name: getattr(settings, name) for name in Settings.__dataclass_fields__})
