"""Motions for arms and platforms: from place to place, smoothly, within limits.

A place is given by name: coordinates and measures as numbers, poses of bodies as pairs of a
position [m] and a rotation (roll-pitch-yaw, quaternion w, x, y, z, or matrix), or as homogeneous
matrices. Limits are given by name too, or as one number for everything that is a number; a body has
a pair of them, for its position and for its rotation.

`ax.inverse_dynamics(model, motion)` makes a `Trajectory` of a motion: all coordinates of the model,
and the torques of its motors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, shortened
from axode.model.model import Model
from axode.motions.planned_motion import (
    PEAKS,
    PlannedMotion,
    TimeLaw,
    minimum_jerk_law,
    trapezoidal_law,
)
from axode.motions.time_optimal import slower_by, time_optimal
from axode.motions.time_optimum import TimeOptimum
from axode.motions.waypoint_curves import SegmentTimes, StraightCurve, timed_spline
from axode.motions.waypoints import Waypoints, raise_faults, read_limits, read_waypoints
from axode.problems.arguments import require_model
from axode.problems.inverse.motions import check_times

__all__ = ["PlannedMotion", "TimeOptimum", "minimum_jerk", "through", "time_optimal", "trapezoidal"]

Array = npt.NDArray[np.float64]
Limits = float | Mapping[str, Any]
TINY = 1e-100  # limits of a distance of one that are smaller make numbers overflow


def minimum_jerk(
    start: Mapping[str, Any],
    end: Mapping[str, Any],
    duration: float | None = None,
    *,
    speed: Limits | None = None,
    acceleration: Limits | None = None,
    jerk: Limits | None = None,
    model: Model | None = None,
) -> PlannedMotion:
    """Move straight from one place to another with the least integral of squared jerk.

    Speed and acceleration vanish at both ends. Bodies turn about one axis.

    Args:
        start, end: Coordinates, measures and poses by name.
        duration: [s]; the shortest that the limits allow unless given.
        speed, acceleration, jerk: Limits instead of a duration.
        model: Whose names they are; names are checked, and columns have units.

    Raises:
        InvalidArgument: with everything that is wrong with the arguments.
    """
    check_arguments(minimum_jerk, locals())
    verb = "minimum_jerk"
    given, faults = {"speed": speed, "acceleration": acceleration, "jerk": jerk}, list[str]()
    waypoints, limits, most = _line(verb, [start, end], given, model, faults)
    if (duration is None) == all(limit is None for limit in given.values()):
        faults.append("give either duration or limits: speed, acceleration or jerk")
    elif duration is not None and not (np.isfinite(float(duration)) and duration > 0):
        faults.append(f"duration: must be finite and > 0 s, got {duration}")
    elif duration is None and not np.isfinite(list(most.values())).any():
        faults.append(_unlimited(waypoints, given))
    raise_faults(verb, faults)
    if duration is None:
        peaks = zip(most.values(), PEAKS, (1, 2, 3), strict=True)
        duration = max((peak / limit) ** (1 / order) for limit, peak, order in peaks)
    law = minimum_jerk_law(float(duration))
    return PlannedMotion(waypoints, StraightCurve(waypoints), law, "minimum jerk", limits)


def trapezoidal(
    start: Mapping[str, Any],
    end: Mapping[str, Any],
    *,
    speed: Limits | None = None,
    acceleration: Limits | None = None,
    jerk: Limits | None = None,
    model: Model | None = None,
) -> PlannedMotion:
    """Move straight from one place to another in the least time that limits allow.

    All parts start and stop together. The speed is a trapezoid over time, or a triangle where the
    distance is too short to reach the limit of the speed; with a limit of the jerk, the
    acceleration consists of trapezoids, and the motion has seven pieces.

    Args:
        start, end: Coordinates, measures and poses by name.
        speed: Largest speeds [rad/s, m/s]; none unless given.
        acceleration: Largest accelerations [rad/s^2, m/s^2]; none unless given, if the jerk has a
            limit.
        jerk: Largest rates of the accelerations; none unless given.
        model: Whose names they are; names are checked, and columns have units.

    Raises:
        InvalidArgument: with everything that is wrong with the arguments.
    """
    check_arguments(trapezoidal, locals())
    verb = "trapezoidal"
    given, faults = {"speed": speed, "acceleration": acceleration, "jerk": jerk}, list[str]()
    waypoints, limits, most = _line(verb, [start, end], given, model, faults)
    if not faults and not np.isfinite([most["acceleration"], most["jerk"]]).any():
        faults.append(_unlimited(waypoints, {"acceleration": acceleration, "jerk": jerk}))
    raise_faults(verb, faults)
    name = "trapezoidal" if np.isinf(most["jerk"]) else "seven pieces"
    law = trapezoidal_law(most["speed"], most["acceleration"], most["jerk"])
    return PlannedMotion(waypoints, StraightCurve(waypoints), law, name, limits)


def through(
    waypoints: Sequence[Mapping[str, Any]],
    *,
    times: npt.ArrayLike | None = None,
    speed: Limits | None = None,
    acceleration: Limits | None = None,
    torque: Limits | None = None,
    stops: Sequence[int] = (),
    model: Model | None = None,
    start: Any = None,
) -> PlannedMotion:
    """Pass through places without stopping, by a spline whose acceleration is smooth.

    The spline is of fifth degree in time, at rest at both ends. Under limits, times are as short as
    they allow: in every interval between waypoints a limit is reached, or nearly so. A motion that
    uses its limits all the time is that of `time_optimal`.

    Args:
        waypoints: Two or more, each with the same names. Neighbours that are equal to six digits
            count once, unless `times` are given.
        times: Time of each waypoint [s], from zero; instead of limits.
        speed: Largest speeds [rad/s, m/s]; none unless given.
        acceleration: Largest accelerations [rad/s^2, m/s^2].
        torque: Largest efforts of the motors of the model [N m, N], by their inputs, or one number
            for all: where they take more, the whole motion is slower.
        stops: Numbers of waypoints to stop at, counted from zero; negative from the end.
        model: Whose names they are; names are checked, and columns have units.
        start: State of the model at the start, as for `inverse_dynamics`, for limits of torques.

    Raises:
        InvalidArgument: with everything that is wrong with the arguments.
    """
    check_arguments(through, locals())
    verb, faults = "through", list[str]()
    if model is not None:
        require_model(verb, model, contacts=torque is None)
    if isinstance(waypoints, Mapping) or len(waypoints) < 2:
        raise InvalidArgument(f"{verb}: a list of two waypoints or more is needed")
    labels = [f"waypoint {k}" for k in range(len(waypoints))]
    points = read_waypoints(verb, waypoints, labels, model)
    limits = {
        name: read_limits(name, limit, points, faults)
        for name, limit in (("speed", speed), ("acceleration", acceleration))
    }
    stopped = _stops(stops, len(points.values), faults)
    moves = points.distances().max(axis=0) > 0
    if (times is None) == (speed is None and acceleration is None):
        faults.append("give either times or limits: speed, acceleration")
    elif torque is not None and (model is None or times is not None):
        faults.append("torque: needs a model, and limits of speed and acceleration")
    elif times is None and not faults:
        loose = moves & np.isinf(limits["acceleration"])
        names = [part for part, no in zip(points.parts, loose, strict=True) if no]
        if not moves.any():
            faults.append("all waypoints are the same place, so that nothing moves")
        elif names:
            faults.append(f"acceleration: no limit for {', '.join(names)}")
    if times is not None:
        at, count = np.zeros(1), len(points.values)
        try:
            at = check_times(times)
        except (TypeError, ValueError, OverflowError) as error:
            faults.append(str(error))
        else:
            if at.size != count or at[0] != 0:
                got = f"{at.size} from {at[0]:g} s for {count} waypoints"
                faults.append(f"times: one per waypoint is needed, the first zero; got {got}")
    raise_faults(verb, faults)
    if times is None:
        points, number = points.without_repeats()
        stopped = [int(number[k]) for k in stopped]
        at = SegmentTimes(points, stopped, limits["speed"], limits["acceleration"]).shortest()
        if torque is not None and model is not None:
            at = at * slower_by(model, timed_spline(points, at, stopped), torque, start)
    curve = timed_spline(points, at, stopped)
    law = TimeLaw(np.array([0.0, curve.end]), np.array([[0.0, 1.0]]))
    return PlannedMotion(points, curve, law, "waypoints", limits)


# arguments ---------------------------------------------------------------------------------------


def _stops(given: Sequence[int], count: int, faults: list[str]) -> list[int]:
    """Numbers of waypoints from the first."""
    found = []
    for k in given:
        if not isinstance(k, int | np.integer) or not -count <= k < count:
            faults.append(f"stops: {shortened(k)} is none of the waypoints 0 to {count - 1}")
        else:
            found.append(int(k) % count)
    return found


def _line(
    verb: str, ends: Sequence[Any], given: Mapping[str, Any], model: Model | None, faults: list[str]
) -> tuple[Waypoints, dict[str, Array], dict[str, float]]:
    """Two places, limits of the parts, and those of a parameter that goes from 0 to 1."""
    if model is not None:
        require_model(verb, model, contacts=True)
    waypoints = read_waypoints(verb, ends, ["start", "end"], model)
    distances = waypoints.distances()[0]
    moves = distances > 0
    if not moves.any():
        raise InvalidArgument(f"{verb}: start and end are the same place, so that nothing moves")
    limits = {name: read_limits(name, value, waypoints, faults) for name, value in given.items()}
    with np.errstate(over="ignore", under="ignore"):
        most = {name: float((x[moves] / distances[moves]).min()) for name, x in limits.items()}
    faults += [
        f"{name}: {given[name]} is too little for the distance"
        for name, x in most.items()
        if given[name] is not None and not x > TINY
    ]
    return waypoints, limits, most


def _unlimited(waypoints: Waypoints, given: Mapping[str, Any]) -> str:
    parts = [part for part, d in zip(waypoints.parts, waypoints.distances()[0], strict=True) if d]
    return (
        f"{' or '.join(given)}: nothing limits {', '.join(parts)}, which would move at once; give "
        "limits by name, or one number"
    )
