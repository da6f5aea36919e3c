"""Numbers read off curves."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]


def largest(values: npt.ArrayLike) -> float:
    """Largest absolute value; NaN if any is."""
    return float(np.abs(values).max(initial=0.0))


def apart(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Largest difference between two curves at the same times."""
    return largest(np.asarray(first) - np.asarray(second))


def at(run: Trajectory, name: str, time: float) -> float:
    """A column at a time."""
    return float(run.at(time)[name])


def swing(times: Array, values: Array, since: float) -> float:
    """Largest absolute value from a time on, a parabola through its sample and its neighbours."""
    y = np.abs(values[times >= since])
    k = int(np.clip(np.argmax(y), 1, len(y) - 2))
    left, top, right = y[k - 1 : k + 2]
    bend = left - 2 * top + right
    return float(top - (right - left) ** 2 / (8 * bend)) if bend < 0 else float(top)
