"""Poses of frames in numbers, and the joint values between them, for files of other programs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.rotations import RigidPose, to_quaternions
from axode.numerics.tolerances import TWO_ROUNDINGS

Array = npt.NDArray[np.float64]
X, Y, Z = np.eye(3)


def cleaned_numbers(values: npt.ArrayLike) -> Array:
    """Return numbers without what rounding leaves of zeros, and without negative zeros."""
    numbers = np.asarray(values, float)
    size = float(np.abs(numbers).max(initial=0.0))
    return np.where(np.abs(numbers) <= TWO_ROUNDINGS * size, 0.0, numbers)


def numbers_of(value: Any) -> Any:
    """Return nested tuples of numbers and formulas as tuples of numbers."""
    return tuple(map(numbers_of, value)) if isinstance(value, tuple) else numeric(value)


@dataclass(frozen=True, eq=False)
class FramePose(RigidPose):
    """A pose whose zeros stay zeros; `given` is roll, pitch, yaw where a description has them."""

    given: tuple[float, ...] | None = None

    @classmethod
    def of(cls, at: Any, rotation: Any) -> FramePose:
        """Make a pose from a position and any form of rotation, at the parameters' defaults."""
        turned = numbers_of(rotation)
        angles = turned if len(turned) == 3 and not isinstance(turned[0], tuple) else None
        R = np.array(rotation_matrix(turned), dtype=float)
        return cls(R, np.array(numbers_of(at), dtype=float), angles)

    def __matmul__(self, other: FramePose) -> FramePose:  # type: ignore[override]
        if other.is_identity:
            return self
        if (np.eye(3) == self.R).all():
            return FramePose(other.R, self.p + other.p, other.given)
        if (np.eye(3) == other.R).all():
            return FramePose(self.R, cleaned_numbers(self.point(other.p)), self.given)
        R = cleaned_numbers(self.R @ other.R)
        return FramePose(R, cleaned_numbers(self.point(other.p)))

    @property
    def is_identity(self) -> bool:
        """Return whether the two frames are the same."""
        return bool((np.eye(3) == self.R).all() and not self.p.any())

    def inverse(self) -> FramePose:
        """Return the pose of the outer frame in the inner one."""
        if (np.eye(3) == self.R).all():
            return FramePose(self.R, 0.0 - self.p, NO_OFFSET.given)
        return FramePose(self.R.T, cleaned_numbers(-self.R.T @ self.p))

    @property
    def angles(self) -> tuple[float, ...]:
        """Roll, pitch, yaw about fixed axes [rad].

        Each is found after the ones before it are taken off, so that those which are uncertain
        near a pitch of a right angle still make up the rotation.
        """
        if self.given is not None:
            return self.given
        R = cleaned_numbers(self.R)
        yaw = math.atan2(R[1, 0], R[0, 0]) if R[0, 0] or R[1, 0] else 0.0
        R = turn(Z, -yaw) @ R
        pitch = math.atan2(-R[2, 0], R[0, 0])
        R = turn(Y, -pitch) @ R
        return math.atan2(R[2, 1], R[1, 1]), pitch, yaw

    @property
    def quaternion(self) -> tuple[float, ...]:
        """Unit quaternion w, x, y, z of the rotation."""
        return tuple((cleaned_numbers(to_quaternions(self.R)) + 0.0).tolist())


NO_OFFSET = FramePose(np.eye(3), np.zeros(3), (0.0, 0.0, 0.0))


def turn(axis: Array, angle: float) -> Array:
    """Compute the rotation about a unit axis (Rodrigues' formula)."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + math.sin(angle) * K + 2 * math.sin(angle / 2) ** 2 * (K @ K)


def turn_to(axis: Array) -> Array:
    """Compute the shortest turn that takes z to a unit axis; half a turn about x for -z."""
    sine = math.hypot(axis[0], axis[1])
    if sine == 0.0:
        return np.diag([1.0, *(2 * [math.copysign(1.0, axis[2])])])
    about = np.array([-axis[1], axis[0], 0.0]) / sine
    return cleaned_numbers(turn(about, math.atan2(sine, axis[2])))


def angle_about(axis: Array, R: Array) -> float:
    """Angle of the turn about an axis that is nearest to a rotation [rad]."""
    sine = axis @ [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]] / 2
    cosine = (np.trace(R) - axis @ R @ axis) / 2
    return math.atan2(sine, cosine)
