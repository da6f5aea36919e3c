"""Switch to an implicit method where explicit steps become too many."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from axode.errors import StiffSystemWarning
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import Numbers
from axode.problems.steps.compiled import IMPLICIT, can_take_over
from axode.problems.steps.step_acceptance import RUNNING

Array = npt.NDArray[np.float64]
RETRY_FACTOR = 4.0  # times as many stiff steps before a run is looked at again
MIN_STEPS_LEFT = 5000  # explicit steps still to come that are worth an implicit method
REVIEW = 40  # implicit steps after which their length is compared with explicit ones
COST_RATIO = 20.0  # explicit steps that take as long as an implicit one of a few coordinates


class StiffRuns:
    """Runs whose explicit steps became too many.

    Attributes:
        time: When [s]; NaN for the others.
        step: How long their explicit steps were then [s].
        returned: How often an implicit method gave a run back; each time more steps must pass.
    """

    def __init__(self, count: int) -> None:
        self.time, self.step = np.full(count, np.nan), np.zeros(count)
        self.returned = np.zeros(count, dtype=np.intp)

    @property
    def times(self) -> Array:
        """When explicit steps became too many, of the runs in which they did [s]."""
        return self.time[~np.isnan(self.time)]

    def find(self, batch: Batch, runs: Numbers) -> Numbers:
        """Decide what to do with runs whose explicit steps are short because of stability.

        An implicit method takes over if enough steps are still to come; else a run goes on as it is
        and is looked at again later.

        Args:
            batch: Where they run.
            runs: Their numbers there.

        Returns:
            Those that an implicit method takes over, or would if no explicit one had been asked
            for.
        """
        b, settings, members = batch.buffers, batch.settings, batch.members[runs]
        t, step, stiff = (b[name][runs, 0] for name in ("t", "h", "stiff"))
        b["status"][runs] = RUNNING
        again = self.returned[members]
        patience = np.where(again > 0, MIN_STEPS_LEFT * RETRY_FACTOR ** (again - 1.0), 0.0)
        early = stiff < patience
        few = np.abs(settings.t_end - t) / np.maximum(step, 1e-300) < MIN_STEPS_LEFT
        few |= not can_take_over(batch.task.model, settings.place, batch.dynamics)
        limit = np.where(few, RETRY_FACTOR * stiff, np.inf)
        b["stiff_limit"][runs, 0] = np.where(early, patience, limit)
        found = ~early & ~few
        self.time[members[found]], self.step[members[found]] = t[found], step[found]
        return runs[found]

    def find_not_worth_their_cost(self, batch: Batch, runs: Numbers) -> Numbers:
        """Find runs whose implicit steps are not longer than explicit ones by what they cost."""
        batch.buffers["status"][runs] = RUNNING
        members = batch.members[runs]
        back = ~(batch.buffers["h"][runs, 0] > COST_RATIO * self.step[members])
        self.time[members[back]] = np.nan
        self.returned[members[back]] += 1
        return runs[back]


def warn_of_stiffness(name: str, stiff: StiffRuns, method: str) -> None:
    """Warn that an explicit method which was asked for takes many short steps."""
    times = stiff.times
    if not times.size:
        return
    runs = "" if times.size == 1 else f" in {times.size} runs"
    warnings.warn(
        f"'{name}' is stiff{runs}: from t = {times.min():.6g} s on, stability, not the "
        f"tolerances, keeps the steps of {method} short; use method='auto' or '{IMPLICIT}'",
        StiffSystemWarning,
        stacklevel=3,
    )
