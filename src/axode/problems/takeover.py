"""An implicit method takes over where explicit steps become too many."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from axode.errors import StiffSystem
from axode.problems.batch import Batch
from axode.problems.integrators import IMPLICIT
from axode.problems.rollouts import takes
from axode.problems.steps import RUNNING

ASK_LATER = 4.0  # times the count of steps, where the answer was to go on
WORTH = 5000  # explicit steps still to come that are worth an implicit method


@dataclass(frozen=True)
class TakeOver:
    """When explicit steps became too many, and the method that is better there."""

    method: str
    time: float


def answer_stiffness(batch: Batch, run: int) -> TakeOver | None:
    """What to do with a run whose steps are at the limit of stability.

    An implicit method takes over if the user left the choice of the method open and enough steps
    are still to come; else the run goes on, and is asked later again.

    Args:
        batch: Where it runs.
        run: Its number there.

    Returns:
        The method that takes over, or would: whoever asked for an explicit one keeps it.
    """
    b, settings = batch.buffers, batch.settings
    t = float(b["t"][run, 0])
    left = abs(settings.t_end - t) / max(float(b["h"][run, 0]), 1e-300)
    b["status"][run] = RUNNING
    if left < WORTH or not takes(settings.place, IMPLICIT, batch.dynamics):
        b["stiff_limit"][run] = ASK_LATER * b["stiff"][run]
        return None
    b["stiff_limit"][run] = float("inf")
    return TakeOver(IMPLICIT, t)


def advise(name: str, found: Mapping[int, TakeOver]) -> None:
    """Warn whoever asked for an explicit method of what it costs."""
    if not found:
        return
    first = min(found.values(), key=lambda item: item.time)
    runs = "" if len(found) == 1 else f" in {len(found)} runs"
    warnings.warn(
        f"'{name}' is stiff{runs}: from t = {first.time:.6g} s on the steps of dopri5 are as short "
        f"as its stability demands, not the tolerances; use method='auto' or '{first.method}'",
        StiffSystem,
        stacklevel=3,
    )
