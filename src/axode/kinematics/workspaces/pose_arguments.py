"""Poses of a robot's output as users give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.kinematics.workspaces.output_motion import NAMES, OutputMotion
from axode.kinematics.workspaces.serial_legs import turn_matrix
from axode.numerics.rotations import from_angles, from_quaternions, to_angles

Array = npt.NDArray[np.float64]
ALLOWED = 1e-6  # how far a pose may be from the motions of the output: rounding of given numbers
EXPECTED = (
    "a dictionary of pose coordinates, 4 x 4 matrices, or (position, rotation) with the rotation "
    "as matrix, quaternion (w, x, y, z) or roll, pitch, yaw"
)


def home_coordinates(motion: OutputMotion) -> dict[str, float]:
    """Pose coordinates at home, by name."""
    values = [*motion.r_home, *to_angles(motion.R_home)]
    known = dict(zip(NAMES, map(float, values), strict=True))
    if motion.kind == "planar":
        first, second = motion.in_plane
        R, n = motion.R_home, motion.normal
        # the turn about the normal that is nearest to the rotation
        spin = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        turn = float(np.arctan2(n @ spin, np.trace(R) - n @ R @ n))
        values = [motion.r_home @ first, motion.r_home @ second, turn]
        known |= dict(zip(motion.names, map(float, values), strict=True))
    return {name: known[name] for name in (*motion.names, *NAMES) if name in known}


def poses_at(motion: OutputMotion, coordinates: Mapping[str, Any]) -> tuple[Array, Array]:
    """Positions and rotations for pose coordinates, which are broadcast.

    Args:
        motion: How the output moves.
        coordinates: Numbers or arrays by name; what is left out is home.

    Raises:
        UnknownName: for a coordinate that cannot be chosen.
        InvalidArgument: for values that are not numbers or do not fit together.
    """
    for name in coordinates:
        if name not in motion.names:
            raise UnknownName(f"the {motion.kind} output", "pose coordinate", name, motion.names)
    home = home_coordinates(motion)
    names = list(motion.names if motion.kind == "planar" else NAMES)
    try:
        given = [np.asarray(coordinates.get(name, home[name]), float) for name in names]
        values = dict(zip(names, np.broadcast_arrays(*given), strict=True))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"pose: {error}") from None
    if motion.kind == "planar":
        u, v, _ = values.values()
        return _planar_poses(motion, u, v, given[2] - home[motion.names[2]])
    r = np.stack([values[name] for name in NAMES[:3]], axis=-1)
    if motion.kind in ("translational", "point"):
        return r, np.broadcast_to(motion.R_home, (*r.shape[:-1], 3, 3))
    angles = np.stack(np.broadcast_arrays(*given[3:]), axis=-1)
    R = np.broadcast_to(
        from_angles(angles), (*r.shape[:-1], 3, 3)
    )  # computed once where they are one
    if motion.kind == "spherical":
        arm = motion.R_home.T @ (motion.r_home - motion.centre)
        r = motion.centre + R @ arm
    return r, R


def _planar_poses(motion: OutputMotion, u: Array, v: Array, turn: Array) -> tuple[Array, Array]:
    """Poses in the plane; turns are counted from home."""
    first, second = motion.in_plane
    height = motion.normal * (motion.normal @ motion.r_home)
    r = height + u[..., np.newaxis] * first + v[..., np.newaxis] * second
    angle = np.asarray(turn)[..., np.newaxis, np.newaxis]
    K = turn_matrix(motion.normal, np.pi / 2) - np.outer(motion.normal, motion.normal)
    R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    return r, np.broadcast_to(R @ motion.R_home, (*r.shape[:-1], 3, 3))


def by_rows(R: Array) -> Array:
    """Nine numbers per rotation, (..., 9); of rotations that are all the same only one, (9,)."""
    batch = R.shape[:-2]
    if R.size and not any(step for step, n in zip(R.strides[:-2], batch, strict=True) if n > 1):
        return np.ascontiguousarray(R[(0,) * len(batch)]).reshape(9)
    return np.ascontiguousarray(R).reshape(*batch, 9)


def as_poses(motion: OutputMotion, pose: Any) -> tuple[Array, Array]:
    """Positions (..., 3) and rotations (..., 3, 3) of whatever a user gives.

    Raises:
        UnknownName: for a coordinate that cannot be chosen.
        InvalidArgument: for anything that is no pose, and for poses that the output cannot have.
    """
    if isinstance(pose, Mapping):
        return poses_at(motion, pose)
    if isinstance(pose, tuple) and len(pose) == 2:
        r, R = _numbers(pose[0]), _rotation(pose[1])
        if r.shape[-1:] != (3,):
            raise InvalidArgument(f"pose: a position has three numbers, got {shortened(pose[0])}")
    else:
        matrix = _numbers(pose)
        if matrix.shape[-2:] != (4, 4):
            raise InvalidArgument(f"pose: expected {EXPECTED}, got {shortened(pose)}")
        r, R = matrix[..., :3, 3], matrix[..., :3, :3]
    batch = np.broadcast_shapes(r.shape[:-1], R.shape[:-2])
    r, R = np.broadcast_to(r, (*batch, 3)), np.broadcast_to(R, (*batch, 3, 3))
    _check_rotation(R)
    _check_motion(motion, r, R)
    return r, R


def _numbers(value: Any) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"pose: not numbers: {shortened(value)}; expected {EXPECTED}"
        ) from None


def _rotation(value: Any) -> Array:
    given = _numbers(value)
    if given.shape[-2:] == (3, 3):
        return given
    if given.shape[-1:] == (4,):
        return from_quaternions(given)
    if given.shape[-1:] == (3,):
        return from_angles(given)
    raise InvalidArgument(
        "pose: a rotation is a 3 x 3 matrix, a quaternion (w, x, y, z) or roll, pitch, yaw; "
        f"got {shortened(value)}"
    )


def _check_rotation(R: Array) -> None:
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not error < ALLOWED or (np.linalg.det(R) < 0).any():
        raise InvalidArgument(
            f"pose: the rotation is no rotation matrix: R R' differs from one by {error:.2g}"
        )


def _check_motion(motion: OutputMotion, r: Array, R: Array) -> None:
    """Check that the output can have these poses, as far as its kind of motion determines it."""
    D = R @ motion.R_home.T
    size = 1.0 + float(np.abs(motion.r_home).max())
    match motion.kind:
        case "planar":
            off = [(r - motion.r_home) @ motion.normal / size, D @ motion.normal - motion.normal]
        case "translational":
            off = [D - np.eye(3)]
        case "spherical":
            arm = motion.r_home - motion.centre
            off = [(r - motion.centre - D @ arm) / size]
        case _:
            return
    worst = max(float(np.abs(part).max(initial=0.0)) for part in off)
    if not worst < ALLOWED:
        raise_off_motion(motion, worst)


def raise_off_motion(motion: OutputMotion, worst: float) -> None:
    """Report a pose that the output cannot have, and by how much it is off.

    Raises:
        InvalidArgument: always.
    """
    raise InvalidArgument(
        f"pose: the output's motion is {motion.kind}, and a given pose is off it by "
        f"{worst:.2g}; give it by {', '.join(motion.names)}, as a dictionary"
    )
