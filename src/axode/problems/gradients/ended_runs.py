"""Run what a cost needs, and keep the log of its steps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, RunsFailed
from axode.model.model import Model
from axode.problems.arguments import GivenState
from axode.problems.gradients.steps_of_cost import TABLEAUS
from axode.problems.session import Session, Task
from axode.problems.simulate.inputs import InputPlan
from axode.problems.simulate.runs import Runs
from axode.problems.simulate.settings import Settings
from axode.problems.simulate.simulate import raise_if_failed
from axode.problems.simulate.starts import Starts, find_starts, require_runs, shared_batch
from axode.problems.simulate.step_log import StepLog
from axode.problems.steps.step_acceptance import EVENT, FINISHED

if TYPE_CHECKING:
    from axode.results.event import Event

Array = npt.NDArray[np.float64]
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
    """

    runs: Runs
    starts: Starts
    log: StepLog
    model: Model

    @cached_property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Which runs came to an end that has a value."""
        return np.isin(self.runs.outcomes.status, ENDED)


def run_logged(
    model: Model,
    start: GivenState,
    plan: InputPlan,
    given: Any,
    p: Array | None,
    settings: Settings,
    events: Sequence[Event],
    log: StepLog,
    session: Session,
    others: tuple[int, ...] = (),
) -> EndedRuns:
    """Run to the end and keep the steps.

    Args:
        model: What moves.
        start: Its start, as the user gave it.
        plan: Its input.
        given: The input as the user gave it.
        p: Free parameters, (*batch, size).
        settings: How to integrate.
        events: Zero crossings to locate.
        log: Where the steps go.
        session: The call that this is part of.
        others: Shape of the batch that measurements make.

    Raises:
        SimulationFailed, SingularConfiguration: for a single run that fails.
    """
    target = settings.place.target
    batch = shared_batch(plan.batch, [others])
    begun = find_starts(model, start, settings.t0, p, batch, target=target)
    require_runs(begun.batch)
    begun.require_some()
    session.begin(len(begun.q), 0.0, 1.0)
    task = Task(model, plan.spread(begun.batch), settings, tuple(events), log=log)
    runs = Runs(task, given, begun.q, begun.nu, begun.p)
    if len(begun.failed):
        runs.end_unassembled(begun.failed)
    runs.advance(session)
    made = EndedRuns(runs, begun, log, model)
    if not begun.batch:
        raise_if_failed(runs, None)
    elif not made.ended.all():
        failed = int((~made.ended).sum())
        warnings.warn(
            f"{failed} of {len(made.ended)} runs failed; their values and derivatives are NaN",
            RunsFailed,
            stacklevel=5,
        )
    return made


def as_ends_only(settings: Settings) -> EndsOnly:
    """Return the same settings for runs of which only the end is saved."""
    return EndsOnly(**{name: getattr(settings, name) for name in Settings.__dataclass_fields__})
