"""Where the links are at home, in numbers: for readers that look at the geometry of a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import NO_ROTATION, ORIGIN, rotation_matrix, unit
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import ROUNDING

_QUATERNION = ("qw", "qx", "qy", "qz")


@dataclass(frozen=True)
class HomePoses:
    """The links at home, and the frame of each joint on its parent."""

    links: dict[str, RigidPose]
    joints: dict[str, RigidPose]


def home_poses(mechanism: Mechanism) -> HomePoses:
    """Place all links that joints connect to the ground; parameters have their defaults."""
    links = {GROUND.name: RigidPose(np.eye(3), np.zeros(3))}
    joints: dict[str, RigidPose] = {}
    for connection in tree_order(mechanism):
        placed = RigidPose(matrix(connection.rotation), vector(connection.at))
        pose = joints[connection.name] = links[connection.parent] @ placed
        if any(name in mechanism.home_coordinates for name in connection.coordinates):
            pose = pose @ RigidPose(*displacement(connection, mechanism.home_coordinates))
        if (connection.child_rotation, connection.child_at) != (NO_ROTATION, ORIGIN):
            on_child = RigidPose(matrix(connection.child_rotation), vector(connection.child_at))
            pose = pose @ on_child.inverse()
        links[connection.child] = pose
    return HomePoses(links, joints)


def vector(values: Any) -> np.ndarray:
    """Return three scalars as numbers; parameters have their defaults."""
    return np.array([numeric(value) for value in values])


def matrix(rotation: Any) -> np.ndarray:
    """Return the matrix of a rotation in numbers; parameters have their defaults."""
    return np.array([[numeric(x) for x in row] for row in rotation_matrix(rotation)])


def displacement(connection: Connection, home: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Turn and shift of a joint at home, coordinate by coordinate."""
    joint = connection.joint
    axis = vector(unit(getattr(joint, "axis", (0.0, 0.0, 1.0))))
    plane = _aligned(axis)  # whose z is the axis
    names = dict(zip(joint.coordinate_names, connection.coordinates, strict=True))
    values = {short: home.get(name, float(short == "qw")) for short, name in names.items()}
    R, p = np.eye(3), np.zeros(3)
    for short, unit_ in zip(joint.coordinate_names, joint.coordinate_units, strict=True):
        value = values[short]
        if short in ("x", "y", "z"):
            p = p + plane[:, "xyz".index(short)] * value
        elif unit_ == "m":
            p = p + axis * value
        elif short not in _QUATERNION:
            turned = vector(unit(joint.second)) if short == "second" else axis  # type: ignore[attr-defined]
            R = R @ _turn(turned, value)
            p = p + axis * numeric(getattr(joint, "pitch", 0.0)) * value
    if joint.has_quaternion:
        quaternion = np.array([values[short] for short in _QUATERNION])
        if quaternion.any():
            R = matrix(tuple(map(float, quaternion / np.linalg.norm(quaternion))))
    return R, p


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    half = angle / 2
    return matrix((float(np.cos(half)), *map(float, np.sin(half) * axis)))


def _aligned(axis: np.ndarray) -> np.ndarray:
    """Return the shortest turn of z to an axis."""
    w = 1.0 + axis[2]
    if w < ROUNDING:
        return np.diag([1.0, -1.0, -1.0])
    quaternion = np.array([w, -axis[1], axis[0], 0.0])
    return matrix(tuple(map(float, quaternion / np.linalg.norm(quaternion))))
