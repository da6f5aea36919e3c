"""Rotations in batches: matrices, quaternions, angles, turns about an axis; poses of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.numerics.rank import least_squares, singular_vectors
from axode.numerics.tolerances import FIVE_DIGITS, HALF_DIGITS

Array = npt.NDArray[np.float64]


def as_rotations(name: str, values: Array) -> Array:
    """Read rotation matrices (..., 3, 3) in any form.

    Args:
        name: What is given, for messages.
        values: Matrices (..., 3, 3), quaternions w x y z (..., 4) or roll, pitch, yaw (..., 3).

    Raises:
        InvalidArgument: for other shapes, and for matrices and quaternions that are no rotations.
    """
    if values.shape[-2:] == (3, 3):
        return _nearest(name, values)
    if values.shape[-1:] == (4,):
        lengths = np.linalg.norm(values, axis=-1)
        if not (np.abs(lengths - 1) <= FIVE_DIGITS).all():
            raise InvalidArgument(f"{name}: a quaternion w x y z has the length 1")
        return from_quaternions(values)
    if values.shape[-1:] == (3,):
        return from_angles(values)
    raise InvalidArgument(
        f"{name}: expected matrices (..., 3, 3), quaternions w x y z (..., 4) or roll, pitch, yaw "
        f"(..., 3), got shape {values.shape}"
    )


def _nearest(name: str, matrices: Array) -> Array:
    """Rotations nearest to matrices that are rotations but for rounding."""
    off = np.abs(np.swapaxes(matrices, -1, -2) @ matrices - np.eye(3)).max(initial=0.0)
    if not (off <= FIVE_DIGITS and (np.linalg.det(matrices) > 0).all()):
        raise InvalidArgument(
            f"{name}: not a rotation matrix: its columns are unit vectors at right angles, "
            "right-handed"
        )
    U, _, Vt = singular_vectors(matrices)
    return np.asarray(U @ Vt)


def from_angles(angles: Array) -> Array:
    """Rotation matrices Rz Ry Rx of roll, pitch and yaw."""
    (cr, cp, cy), (sr, sp, sy) = (
        np.moveaxis(function(angles), -1, 0) for function in (np.cos, np.sin)
    )
    rows = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def to_angles(R: Array) -> Array:
    """Roll, pitch, yaw of rotation matrices (..., 3, 3); no yaw at pitches of 90 degrees."""
    cosine = np.hypot(R[..., 0, 0], R[..., 1, 0])
    pitch = np.arctan2(-R[..., 2, 0], cosine)
    locked = cosine < HALF_DIGITS
    roll = np.where(
        locked, np.arctan2(-R[..., 1, 2], R[..., 1, 1]), np.arctan2(R[..., 2, 1], R[..., 2, 2])
    )
    yaw = np.where(locked, 0.0, np.arctan2(R[..., 1, 0], R[..., 0, 0]))
    return np.stack([roll, pitch, yaw], axis=-1)


def about_axis(axis: Array, angle: npt.ArrayLike) -> Array:
    """Rotation matrices about unit vectors (..., 3) by angles (...) [rad]."""
    turn = np.asarray(angle, float)[..., np.newaxis, np.newaxis]
    K = cross_matrix(axis)
    return np.asarray(np.eye(3) + np.sin(turn) * K + (1 - np.cos(turn)) * (K @ K))


def cross_matrix(a: Array) -> Array:
    """Matrices of cross products a x of vectors (..., 3)."""
    K = np.zeros((*a.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        K[..., i, j], K[..., j, i] = -a[..., k], a[..., k]
    return K


def perpendiculars(axis: Array) -> tuple[Array, Array]:
    """Two unit vectors that complete a unit vector to a right-handed frame."""
    u = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    u /= np.linalg.norm(u)
    return u, np.cross(axis, u)


def nearest_point(points: Array, axes: Array) -> tuple[Array, Array]:
    """Point that is nearest to lines, given by points and unit vectors, and how far each is."""
    across = np.eye(3) - axes[:, :, np.newaxis] * axes[:, np.newaxis]
    centre = least_squares(across.sum(axis=0), np.einsum("kij,kj->i", across, points))
    off = np.einsum("kij,kj->ki", across, points - centre)
    return centre, np.asarray(np.linalg.norm(off, axis=1))


def from_quaternions(q: npt.ArrayLike) -> Array:
    """Rotation matrices of quaternions w x y z of any length."""
    q = np.asarray(q, float)
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def to_quaternions(R: Array) -> Array:
    """Unit quaternions w x y z of rotation matrices, by their largest components; w >= 0."""
    d = np.diagonal(R, axis1=-2, axis2=-1)
    trace = d.sum(axis=-1)
    squares = np.stack([trace, *(2 * d[..., k] - trace for k in range(3))], axis=-1) + 1.0
    a, b, c = (R[..., i, j] - R[..., j, i] for i, j in ((2, 1), (0, 2), (1, 0)))
    e, f, g = (R[..., i, j] + R[..., j, i] for i, j in ((1, 0), (2, 0), (2, 1)))
    s = squares
    table = np.stack(
        [
            np.stack([s[..., 0], a, b, c], axis=-1),
            np.stack([a, s[..., 1], e, f], axis=-1),
            np.stack([b, e, s[..., 2], g], axis=-1),
            np.stack([c, f, g, s[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = np.argmax(squares, axis=-1)[..., np.newaxis, np.newaxis]
    q = np.take_along_axis(table, best, axis=-2)[..., 0, :]
    q = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return np.asarray(np.where(q[..., :1] < 0, -q, q))


def angles_between(R: Array, S: Array) -> Array:
    """Angle of the rotation from one orientation to the other [rad]."""
    sine = np.linalg.norm(R - S, axis=(-2, -1)) / np.sqrt(8.0)
    return np.asarray(2 * np.arcsin(np.clip(sine, 0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class RigidPose:
    """Orientation and position of one frame in another: axes in columns of `R`, origin `p` [m]."""

    R: Array
    p: Array

    def __matmul__(self, other: RigidPose) -> Self:
        return type(self)(self.R @ other.R, self.point(other.p))

    def inverse(self) -> Self:
        """Return the pose of the outer frame in the inner one."""
        return type(self)(self.R.T, -self.R.T @ self.p)

    def point(self, at: Any) -> Array:
        """Return a point of the inner frame in the outer one."""
        return self.p + self.R @ np.asarray(at, float)

    def direction(self, axis: Any) -> Array:
        """Return a direction of the inner frame in the outer one."""
        return np.asarray(self.R @ np.asarray(axis, float))
