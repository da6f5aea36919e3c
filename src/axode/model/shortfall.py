"""Whether motors fall short of a motion: one test for every verb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]
SHORT = 1e-9  # of the forces that balance: a larger force is missing
SMALLEST = 1e-300  # [N or N m]: of no force at all nothing is missing


def force_size(model: Model, q: Array, nu: Array, u: Array, missing: Array, options: Any) -> float:
    """Size of the generalised forces that balance along a motion [N or N m].

    It is the sum of the largest entries of every term, dissipation included, so that terms that
    cancel each other count.
    """
    terms = (
        model.input_force(q, u, **options) + missing,
        model.bias(q, nu, **options),
        model.potential_force(q, **options),
        model.dissipative_force(q, nu, **options),
    )
    return sum(float(np.nanmax(np.abs(term), initial=0.0)) for term in terms)


def find_shortfall(model: Model, missing: Array, size: float) -> tuple[float, str] | None:
    """Find the largest force that the motors cannot give, and the speed that it is missing on.

    Args:
        model: Whose motors they are.
        missing: Generalised forces on the independent speeds, (..., speeds).
        size: Of the forces that balance, as `force_size` gives it.

    Returns:
        None if the motors give everything.
    """
    worst = np.nanmax(np.abs(missing).reshape(-1, missing.shape[-1]), axis=0, initial=0.0)
    if worst.max(initial=0.0) <= SHORT * max(float(size), SMALLEST):
        return None
    lacking = int(np.argmax(worst))
    return float(worst[lacking]), model.independent[lacking]
