"""Let an implicit method take over where explicit steps become too many."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from axode.errors import StiffSystem
from axode.problems.simulate.batch import Batch
from axode.problems.steps.compiled import is_available
from axode.problems.steps.methods import IMPLICIT
from axode.problems.steps.step_acceptance import RUNNING

RETRY_FACTOR = 4.0  # times as many stiff steps before a run is looked at again
MIN_STEPS_LEFT = 5000  # explicit steps still to come that are worth an implicit method
REVIEW = 40  # implicit steps after which their length is compared with that of explicit ones
COST_RATIO = 20.0  # explicit steps that take as long as an implicit one of a few coordinates


@dataclass(frozen=True)
class TakeOver:
    """When explicit steps became too many, how long they were, and the method that took over."""

    method: str
    time: float
    step: float


def answer_stiffness(batch: Batch, run: int, returned: int = 0) -> TakeOver | None:
    """Decide what to do with a run whose explicit steps are short because of stability.

    An implicit method takes over if enough steps are still to come; else the run goes on as it is
    and is looked at again later.

    Args:
        batch: Where it runs.
        run: Its number there.
        returned: How often an implicit method gave it back; each time more steps must pass.

    Returns:
        The method that takes over, or would if no explicit one had been asked for.
    """
    b, settings = batch.buffers, batch.settings
    t, step = float(b["t"][run, 0]), float(b["h"][run, 0])
    left = abs(settings.t_end - t) / max(step, 1e-300)
    b["status"][run] = RUNNING
    patience = MIN_STEPS_LEFT * RETRY_FACTOR ** (returned - 1) if returned else 0.0
    if b["stiff"][run, 0] < patience:
        b["stiff_limit"][run] = patience
        return None
    if left < MIN_STEPS_LEFT or not is_available(settings.place, IMPLICIT, batch.dynamics):
        b["stiff_limit"][run] = RETRY_FACTOR * b["stiff"][run]
        return None
    b["stiff_limit"][run] = np.inf
    return TakeOver(IMPLICIT, t, step)


def is_worth_its_cost(batch: Batch, run: int, found: TakeOver) -> bool:
    """Check whether implicit steps are longer than explicit ones by more than they cost."""
    batch.buffers["status"][run] = RUNNING
    return bool(batch.buffers["h"][run, 0] > COST_RATIO * found.step)


def advise(name: str, found: Mapping[int, TakeOver]) -> None:
    """Warn that an explicit method which was asked for takes many short steps."""
    if not found:
        return
    first = min(found.values(), key=lambda item: item.time)
    runs = "" if len(found) == 1 else f" in {len(found)} runs"
    warnings.warn(
        f"'{name}' is stiff{runs}: from t = {first.time:.6g} s on, stability and not the "
        f"tolerances keeps the steps of dopri5 short; use method='auto' or '{first.method}'",
        StiffSystem,
        stacklevel=3,
    )
