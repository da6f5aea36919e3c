"""Frames and joints of a description as files of other programs have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.mechanism.elements import joints as kinds
from axode.mechanism.elements.parts import Connection
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.rotations import RigidPose, from_quaternions, to_quaternions
from axode.numerics.tolerances import ROUNDING, TWO_ROUNDINGS

# poses ----------------------------------------------------------------------------------------


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


# joints ---------------------------------------------------------------------------------------


NATIVE: dict[type, str] = {
    kinds.Revolute: "hinge",
    kinds.Prismatic: "slide",
    kinds.Screw: "screw",
    kinds.Cylindrical: "cylindrical",
    kinds.Universal: "universal",
    kinds.Spherical: "ball",
    kinds.Planar: "planar",
    kinds.Floating: "free",
    kinds.Fixed: "fixed",
}


class JointStep(NamedTuple):
    """One of the simple joints that make up another."""

    suffix: str  # "" for the joint's own name
    kind: str
    axis: Array
    coordinates: tuple[int, ...]  # of the joint, which it takes
    speeds: tuple[int | None, ...]  # of the joint, which are its rates


def steps_of(
    connection: Connection, native: frozenset[str]
) -> tuple[list[JointStep], Array | None]:
    """Return the simple joints that make up a joint, and the turn of its frame to their axes.

    Args:
        connection: The joint on its two bodies.
        native: Kinds of joints that the format has.
    """
    joint: Any = connection.joint
    kind = kind_of(connection)
    axis = unit_axis(joint.axis) if "axis" in joint.directions else Z
    align = turn_to(axis) if kind == "planar" else None
    # the axes of a format's universal joint are at right angles
    leans = kind == "universal" and abs(float(axis @ unit_axis(joint.second))) > ROUNDING
    if kind in native and not leans:
        whole, rates = range(len(joint.coordinate_names)), range(joint.dof)
        direction = Z if align is not None else axis
        return [JointStep("", kind, direction, tuple(whole), tuple(rates))], align
    return _SIMPLE[kind](joint, axis), align


def _single(suffix: str, kind: str, axis: Array, k: int) -> JointStep:
    return JointStep(suffix, kind, axis, (k,), (k,))


_SIMPLE: dict[str, Callable[[Any, Array], list[JointStep]]] = {
    "cylindrical": lambda joint, axis: [
        _single("angle", "hinge", axis, 0),
        _single("slide", "slide", axis, 1),
    ],
    "universal": lambda joint, axis: [
        _single("first", "hinge", axis, 0),
        _single("second", "hinge", unit_axis(joint.second), 1),
    ],
    "screw": lambda joint, axis: [
        _single("", "hinge", axis, 0),
        JointStep("advance", "slide", axis, (), (None,)),
    ],
    "planar": lambda joint, axis: [
        JointStep("x", "slide", X, (0,), (None,)),
        JointStep("y", "slide", Y, (1,), (None,)),
        _single("yaw", "hinge", Z, 2),
    ],
    "ball": lambda joint, axis: [
        JointStep(f"turn_{name}", "hinge", direction, (), (None,))
        for name, direction in (("x", X), ("y", Y), ("z", Z))
    ],
    "free": lambda joint, axis: [
        JointStep("x", "slide", X, (4,), (None,)),
        JointStep("y", "slide", Y, (5,), (None,)),
        JointStep("z", "slide", Z, (6,), (None,)),
        JointStep("turn", "ball", Z, (0, 1, 2, 3), (0, 1, 2)),
    ],
}


def kind_of(connection: Connection) -> str:
    """Return the kind of a joint.

    Raises:
        NotApplicable: for joints of classes that are not Axode's own.
    """
    for kind in type(connection.joint).__mro__:
        if kind in NATIVE:
            return NATIVE[kind]
    raise NotApplicable(
        f"joint '{connection.name}': files of other programs have no joints of class "
        f"{type(connection.joint).__name__}"
    )


def joint_values(connection: Connection, relative: FramePose) -> list[float]:
    """Coordinates of a joint nearest to a pose of its child's frame in its parent's.

    A planar joint has the normal of its plane as z of its frame.
    """
    joint: Any = connection.joint
    axis = unit_axis(joint.axis) if "axis" in joint.directions else Z
    return list(map(float, _VALUES[kind_of(connection)](joint, axis, relative)))


def _universal_values(joint: Any, axis: Array, relative: FramePose) -> tuple[float, float]:
    second, R = unit_axis(joint.second), relative.R
    a, b = (v - axis * (axis @ v) for v in (second, R @ second))
    first = float(np.arctan2(axis @ np.cross(a, b), a @ b))
    return first, angle_about(second, turn(axis, -first) @ R)


def _screw_values(joint: Any, axis: Array, relative: FramePose) -> tuple[float]:
    pitch = numeric(joint.pitch)
    return (float(axis @ relative.p) / pitch if pitch else angle_about(axis, relative.R),)


_VALUES: dict[str, Callable[[Any, Array, FramePose], Sequence[float]]] = {
    "hinge": lambda joint, axis, at: [angle_about(axis, at.R)],
    "slide": lambda joint, axis, at: [float(axis @ at.p)],
    "screw": _screw_values,
    "cylindrical": lambda joint, axis, at: [angle_about(axis, at.R), float(axis @ at.p)],
    "universal": _universal_values,
    "ball": lambda joint, axis, at: at.quaternion,
    "planar": lambda joint, axis, at: [at.p[0], at.p[1], angle_about(Z, at.R)],
    "free": lambda joint, axis, at: [*at.quaternion, *at.p],
    "fixed": lambda joint, axis, at: [],
}


def reversed_joint(loop: Connection) -> Connection:
    """Return the same joint with parent and child exchanged."""
    joint: Any = loop.joint
    if "second" in joint.directions:
        joint = replace(joint, axis=joint.second, second=joint.axis)
    return replace(
        loop,
        joint=joint,
        parent=loop.child,
        child=loop.parent,
        at=loop.child_at,
        rotation=loop.child_rotation,
        child_at=loop.at,
        child_rotation=loop.rotation,
    )


def unit_axis(axis: Any) -> Array:
    numbers = np.array(numbers_of(axis), dtype=float)
    length = float(np.linalg.norm(numbers))
    return numbers if abs(length - 1.0) < TWO_ROUNDINGS else numbers / length


def three_angles(quaternion: list[float]) -> tuple[float, float, float]:
    """Angles about x, y and z, one after the other, of a rotation."""
    R = from_quaternions(quaternion) if any(quaternion) else np.eye(3)
    first = float(np.arctan2(-R[1, 2], R[2, 2]))
    R = turn(X, -first) @ R
    second = float(np.arctan2(R[0, 2], R[2, 2]))
    R = turn(Y, -second) @ R
    return first, second, float(np.arctan2(R[1, 0], R[0, 0]))
