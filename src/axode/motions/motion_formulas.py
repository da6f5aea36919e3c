"""Motions as formulas of time, for inputs that are traced into machine code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.motions.time_laws import TimeLaw
from axode.motions.waypoint_curves import SplineCurve, StraightCurve, WaypointCurve

Array = npt.NDArray[np.float64]
MAX_PIECES = 64  # of a formula


def motion_formulas(
    names: Sequence[str], curve: WaypointCurve, law: TimeLaw, t: Any
) -> dict[str, Any]:
    """Columns of a motion with `_rate` and `_acceleration`, as formulas of time.

    Args:
        names: Names of the columns.
        curve: The columns by a parameter.
        law: The parameter by time.
        t: Time: a symbol, a formula or a number, of anything that adds, multiplies and compares.

    Raises:
        NotApplicable: for motions that are no polynomials of time, or of too many pieces.
    """
    breaks, pieces = _polynomials(curve, law)
    if pieces is None or len(pieces) > MAX_PIECES:
        raise NotApplicable(
            f"a motion of poses, a time-optimal one or one of more than {MAX_PIECES} pieces is no "
            "formula of time; give its trajectory of ax.inverse_dynamics as input, or ax.Callback"
        )
    end = float(breaks[-1])
    inside = (t >= 0.0) * (t <= end)
    clipped = t * inside + end * (t > end)
    chosen = [1.0, *(clipped >= float(x) for x in breaks[1:-1])]
    h = clipped - sum(
        on * float(step) for on, step in zip(chosen, np.diff(breaks, prepend=0), strict=False)
    )
    changes = np.diff(pieces, axis=0, prepend=0.0)  # of the coefficients, from piece to piece
    found: dict[str, Any] = {}
    for k, name in enumerate(names):
        value: Any = 0.0
        rate: Any = 0.0
        second: Any = 0.0
        for power in range(pieces.shape[1] - 1, -1, -1):
            factor = sum(
                on * float(change)
                for on, change in zip(chosen, changes[:, power, k], strict=True)
                if change != 0
            )
            second = second * h + 2 * rate
            rate = rate * h + value
            value = value * h + factor
        found |= {
            name: value,
            f"{name}_rate": rate * inside,
            f"{name}_acceleration": second * inside,
        }
    return found


def _polynomials(curve: WaypointCurve, law: TimeLaw) -> tuple[Array, Array | None]:
    """Breaks and coefficients (pieces, powers, columns) of the columns by time."""
    if isinstance(curve, StraightCurve) and not curve.has_poses:
        first, last = curve.ends
        pieces = law.coefficients[:, :, np.newaxis] * (last - first)
        pieces[:, 0] += first
        return law.breaks, pieces
    is_timed = law.coefficients.shape == (1, 2) and law.coefficients[0, 1] == 1.0
    if isinstance(curve, SplineCurve) and is_timed and len(curve.polynomials) == 1:
        ((_, spline),) = curve.polynomials
        return spline.x, np.moveaxis(spline.c[::-1], 0, 1)
    return law.breaks, None
