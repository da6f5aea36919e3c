"""How much slower a motion has to be for its motors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.motions.path_dynamics import PathDynamics
from axode.motions.path_limits import read_path_limits
from axode.motions.planned_motion import desired_motion
from axode.motions.waypoint_curves import SplineCurve
from axode.problems.arguments import read_state

Array = npt.NDArray[np.float64]
SAMPLES = 100  # of an interval between waypoints


def slower_by(model: Model, curve: SplineCurve, torque: Any, start: Any) -> float:
    """Factor of all times with which motors keep their limits; one if they do so already.

    Efforts are quadratic in the speed of the whole motion: at rest, friction, inertia.

    Args:
        model: What moves.
        curve: The motion, its parameter the time.
        torque: Limits of the motors, as for `time_optimal`.
        start: State at the start, as for `inverse_dynamics`.

    Raises:
        InvalidArgument: if motors cannot even hold the model at rest, with the time and excess.
    """
    given = {"speed": None, "acceleration": None, "torque": torque}
    limits = read_path_limits("through", model, (), given)
    state = read_state(model, start, "start")
    state.require_one("start")
    count = SAMPLES * (curve.knots.size - 1)
    grid = np.interp(np.arange(count + 1) / SAMPLES, np.arange(curve.knots.size), curve.knots)
    conditions = Conditions.of(model)
    motion = desired_motion(model, curve.waypoints, curve.at, conditions)
    dynamics = PathDynamics(model, [motion], grid[np.newaxis], state, conditions, None)
    dynamics.require_motors()
    columns = [model.inputs.index(name) for name in limits.effort]
    strength = np.array(list(limits.effort.values()))
    rest, half, full = (dynamics.efforts(x, 0.0)[0][:, columns] / strength for x in (0, 0.5, 1))
    held = np.abs(rest)
    if held.max() > 1:
        sample, j = np.unravel_index(int(np.argmax(held)), held.shape)
        name = model.inputs[columns[int(j)]]
        raise InvalidArgument(
            f"through: standing still takes {rest[sample, j] * strength[j]:.4g} of '{name}' at t = "
            f"{grid[sample]:.4g} s, {(held[sample, j] - 1) * strength[j]:.3g} more than its limit"
        )
    inertia = 2 * (full - 2 * half + rest)
    friction = full - rest - inertia
    speeds = [_smallest_root(sign * inertia, sign * friction, sign * rest - 1) for sign in (1, -1)]
    return float(1 / min(1.0, *(speed.min() for speed in speeds)))


def _smallest_root(a: Array, b: Array, c: Array) -> Array:
    """Smallest positive root of a x^2 + b x + c for c <= 0; infinity if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - 4 * a * c)
        q = -(b + np.where(b >= 0, root, -root)) / 2
        both = np.stack([q / a, c / q])
    both[~(both > 0)] = np.inf
    return np.asarray(both.min(axis=0))
