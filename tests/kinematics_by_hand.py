"""Poses of a described mechanism by plain NumPy, independent of the package's own kinematics.

Written from the words of the description alone: a joint's frame stands at `at`, turned by
`rotation`, in the parent, and at `child_at`, turned by `child_rotation`, in the child.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import axode as ax
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import rotation_matrix

Array = np.ndarray


def numbers(values: Any) -> Array:
    """A vector of a description at the parameters' defaults."""
    return np.array([numeric(value) for value in values])


def matrix(rotation: Any) -> Array:
    """A rotation of a description as a matrix."""
    return np.array([numbers(row) for row in rotation_matrix(rotation)])


def pose(at: Any, rotation: Any) -> Array:
    """A placement as a homogeneous matrix."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = matrix(rotation), numbers(at)
    return X


def turn(axis: Array, angle: float) -> Array:
    """Rodrigues' formula."""
    x, y, z = axis / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def quaternion_turn(q: Array) -> Array:
    """Rotation of a quaternion w, x, y, z by its axis and angle."""
    q = q / np.linalg.norm(q)
    sine = np.linalg.norm(q[1:])
    return np.eye(3) if sine < 1e-15 else turn(q[1:] / sine, 2 * np.arctan2(sine, q[0]))


def shortest_turn(axis: Array) -> Array:
    """The shortest turn that takes z to the axis."""
    across = np.cross([0.0, 0.0, 1.0], axis)
    sine = np.linalg.norm(across)
    if sine < 1e-12:
        return np.eye(3) if axis[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return turn(across / sine, np.arctan2(sine, axis[2]))


def joint_motion(joint: Any, q: Array) -> Array:
    """The joint's frame in the child as its frame in the parent sees it, at coordinates q."""
    X = np.eye(4)
    match joint:
        case ax.Revolute():
            X[:3, :3] = turn(numbers(joint.axis), q[0])
        case ax.Prismatic():
            X[:3, 3] = numbers(joint.axis) * q[0]
        case ax.Screw():
            X[:3, :3] = turn(numbers(joint.axis), q[0])
            X[:3, 3] = numbers(joint.axis) * numeric(joint.pitch) * q[0]
        case ax.Cylindrical():
            X[:3, :3] = turn(numbers(joint.axis), q[0])
            X[:3, 3] = numbers(joint.axis) * q[1]
        case ax.Universal():
            X[:3, :3] = turn(numbers(joint.axis), q[0]) @ turn(numbers(joint.second), q[1])
        case ax.Spherical():
            X[:3, :3] = quaternion_turn(q)
        case ax.Planar():
            X[:3, :3] = turn(numbers(joint.axis), q[2])
            X[:3, 3] = shortest_turn(numbers(joint.axis)) @ [q[0], q[1], 0.0]
        case ax.Floating():
            X[:3, :3], X[:3, 3] = quaternion_turn(q[:4]), q[4:7]
    return X


def coordinates_by_hand(joint: Any, X: Array) -> Array:
    """Coordinates at which a joint's motion comes closest to X, for joints of every kind."""
    R, p = X[:3, :3], X[:3, 3]
    axial = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    axis = numbers(getattr(joint, "axis", (0.0, 0.0, 1.0)))
    angle = np.arctan2(axis @ axial, np.trace(R) - 1)
    match joint:
        case ax.Screw():  # the angle is known but for whole turns, which the advance tells
            turns = np.round((axis @ p / numeric(joint.pitch) - angle) / (2 * np.pi))
            return np.array([angle + 2 * np.pi * turns])
        case ax.Revolute():
            return np.array([angle])
        case ax.Prismatic():
            return np.array([axis @ p])
        case ax.Cylindrical():
            return np.array([angle, axis @ p])
        case ax.Planar():
            return np.array([*(shortest_turn(axis).T @ p)[:2], angle])
        case ax.Universal():
            return _universal_angles(joint, R)
        case ax.Spherical():
            sine = np.linalg.norm(axial)
            half = np.arctan2(sine, np.trace(R) - 1) / 2
            return np.array([np.cos(half), *(np.sin(half) * axial / max(sine, 1e-300))])
    return np.zeros(0)


def _universal_angles(joint: Any, R: Array) -> Array:
    """First and second angle: the first is the one that brings `second` where R says it is."""
    axis, second = numbers(joint.axis), numbers(joint.second)
    along = (second @ axis) * axis
    x, y = second - along, R @ second - along
    first = np.arctan2(axis @ np.cross(x, y), x @ y)
    rest = turn(axis, first).T @ R
    axial = [rest[2, 1] - rest[1, 2], rest[0, 2] - rest[2, 0], rest[1, 0] - rest[0, 1]]
    return np.array([first, np.arctan2(second @ axial, np.trace(rest) - 1)])


def poses_by_hand(mechanism: ax.Mechanism, q: Mapping[str, float]) -> dict[str, Array]:
    """Homogeneous matrix of every body in the world, from coordinates by name."""
    poses = {"ground": np.eye(4)}
    for connection in tree_order(mechanism):
        own = np.array([q[name] for name in connection.coordinates])
        in_child = pose(connection.child_at, connection.child_rotation)
        X = poses[connection.parent] @ pose(connection.at, connection.rotation)
        poses[connection.child] = X @ joint_motion(connection.joint, own) @ np.linalg.inv(in_child)
    return poses
