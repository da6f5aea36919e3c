"""Inverse kinematics of parallel robots: driven coordinates of poses, leg by leg, closed form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.codegen.targets.cpu import CompiledFunction
from axode.errors import UnknownName
from axode.kinematics.workspaces.closed_form import ClosedFormLegs, closed_form_legs
from axode.kinematics.workspaces.pose_arguments import ALLOWED, as_poses, by_rows, raise_off_motion
from axode.model.function_source import shaped_tape

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
BRANCHES = ("home", "all")
TOUCHES = 1e-14  # of a discriminant: what rounding makes of zero
COMPLETED = 1e-9  # error of a pose that Newton's method completed, relative


def pose_tape(legs: ClosedFormLegs, name: str, values: Any, numbers: Any = None) -> Tape:
    """Tape from position r, rotation R (by rows) and numbers to values in symbols of these.

    The last value is the error of a pose that had to be completed, relative to the robot's size.
    """
    pose = [legs.pose.r, legs.pose.R]
    more = [] if numbers is None else [numbers]
    error = ca.SX(0)
    if legs.motion.kind == "restricted":
        r, R, error = legs.completed
        values = ca.Function("at", [*pose, *more], [values])(r, R, *more)
    values = ca.densify(ca.vertcat(values, error))
    sizes = {"r": 3, "R": 9} | ({} if numbers is None else {"numbers": numbers.shape[0]})
    function = ca.Function(name, [*pose, *more], [values], list(sizes), [name])
    return shaped_tape(function, sizes, name, (values.shape[0],))


_SOLUTIONS: WeakKeyDictionary[ClosedFormLegs, CompiledFunction] = WeakKeyDictionary()


def leg_solutions(legs: ClosedFormLegs) -> CompiledFunction:
    """Compile the two solutions of every leg, how far they are reached, and the pose's error."""
    if legs not in _SOLUTIONS:
        columns = []
        for leg in legs.legs:
            first, _, _, reach = leg.solve()
            columns += [first, leg.solve(-1.0)[0] if leg.has_two else ca.SX(np.nan), reach]
        tape = pose_tape(legs, "leg_solutions", ca.vertcat(*columns))
        _SOLUTIONS[legs] = CompiledFunction(tape)
    return _SOLUTIONS[legs]


def inverse(
    robot: Kinematics, pose: Any, branch: Literal["home", "all"] = "home"
) -> dict[str, Array]:
    """Find the driven coordinates of poses of the output; see `Kinematics.inverse`."""
    if branch not in BRANCHES:
        raise UnknownName("inverse", "branch", branch, BRANCHES)
    legs = closed_form_legs(robot)
    r, R = as_poses(legs.motion, pose)
    if legs.motion.kind == "restricted" and not isinstance(pose, Mapping):
        _check_completed(legs, r, R)
    batch = r.shape[:-1]
    values = leg_solutions(legs)(np.ascontiguousarray(r), by_rows(R))
    made = values[..., :-1].reshape(*batch, len(legs.legs), 3)
    known = np.isfinite(r).all(axis=-1, keepdims=True) & (values[..., -1:] < COMPLETED)
    missed = (made[..., 2] < -TOUCHES) | ~known
    solutions = np.where(missed[..., np.newaxis], np.nan, made[..., :2])
    if branch == "home":
        solutions = solutions[..., 0]
        return {leg.coordinate: solutions[..., k] for k, leg in enumerate(legs.legs)}
    return {leg.coordinate: solutions[..., k, :] for k, leg in enumerate(legs.legs)}


_OFFSETS: WeakKeyDictionary[ClosedFormLegs, CompiledFunction] = WeakKeyDictionary()


def _check_completed(legs: ClosedFormLegs, r: Array, R: Array) -> None:
    """Check that whole poses are those that follow from their freely chosen coordinates.

    Raises:
        InvalidArgument: if the output cannot have one of them.
    """
    if legs not in _OFFSETS:
        place, turn, error = legs.completed
        off = ca.norm_inf(ca.veccat((place - legs.pose.r) / legs.size, turn - legs.pose.R))
        pose, values = [legs.pose.r, legs.pose.R], ca.densify(ca.vertcat(off, error))
        function = ca.Function("offsets", pose, [values], ["r", "R"], ["offsets"])
        _OFFSETS[legs] = CompiledFunction(shaped_tape(function, {"r": 3, "R": 9}, "offsets", (2,)))
    off, error = np.moveaxis(_OFFSETS[legs](np.ascontiguousarray(r), by_rows(R)), -1, 0)
    worst = float(np.max(off, where=error < COMPLETED, initial=0.0))
    if worst > ALLOWED:
        raise_off_motion(legs.motion, worst)
