"""What each joint does: where its child is, in which directions it moves and is held.

A joint's two frames stand on its parent and on its child. Directions are in world axes; a moving
direction is a pair (angular velocity, velocity of the child's joint frame), both relative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.mechanism.elements.joints import (
    AbstractJoint,
    Cylindrical,
    Fixed,
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from axode.mechanism.mechanism import Connection
from axode.mechanism.values.expressions import evaluate
from axode.oracle.numbers import (
    Array,
    axes_along,
    axis_turn,
    cross,
    direction,
    dot,
    matvec,
    numbers,
    quaternion_turn,
    rotation_of,
)


@dataclass(frozen=True)
class Placed:
    """A joint on its two bodies, in numbers."""

    name: str
    joint: AbstractJoint
    parent: int  # bodies by number, the ground is 0
    child: int
    at: Array
    rotation: Array
    child_at: Array
    child_rotation: Array
    axis: Array  # its directions in the joint's frame; zeros where it has none
    second: Array
    axes: Array  # z along its only axis, or its frame's own
    pitch: float
    q: slice  # its coordinates and speeds among those of the tree
    v: slice


def place(
    connection: Connection,
    bodies: Mapping[str, int],
    parameters: Mapping[str, Any],
    q: slice = slice(0, 0),
    v: slice = slice(0, 0),
) -> Placed:
    """A joint of a description at values of the parameters."""
    joint = connection.joint
    along, second = (getattr(joint, name, (0.0, 0.0, 0.0)) for name in ("axis", "second"))
    return Placed(
        connection.name,
        joint,
        bodies[connection.parent],
        bodies[connection.child],
        numbers(connection.at, parameters),
        rotation_of(connection.rotation, parameters),
        numbers(connection.child_at, parameters),
        rotation_of(connection.child_rotation, parameters),
        direction(along, parameters),
        direction(second, parameters),
        axes_along(along, parameters) if joint.directions == ("axis",) else np.eye(3),
        float(evaluate(getattr(joint, "pitch", 0.0), parameters)),
        q,
        v,
    )


def joint_pose(placed: Placed, q: Array) -> tuple[Array, Array]:
    """Rotation and shift of the child's joint frame in the parent's, at coordinates q."""
    axis, still = placed.axis, np.zeros((*q.shape[:-1], 3))
    match placed.joint:
        case Revolute():
            return axis_turn(axis, q[..., 0]), still
        case Prismatic():
            return np.eye(3), axis * q[..., 0:1]
        case Screw():
            return axis_turn(axis, q[..., 0]), axis * placed.pitch * q[..., 0:1]
        case Cylindrical():
            return axis_turn(axis, q[..., 0]), axis * q[..., 1:2]
        case Universal():
            return axis_turn(axis, q[..., 0]) @ axis_turn(placed.second, q[..., 1]), still
        case Spherical():
            return quaternion_turn(q), still
        case Planar():
            return axis_turn(axis, q[..., 2]), q[..., 0:2] @ placed.axes[:, 0:2].T
        case Floating():
            return quaternion_turn(q), q[..., 4:7]
    return np.eye(3), still


def rate_matrix(placed: Placed, q: Array) -> Array:
    """N with q_dot = N v of one joint: coordinates x speeds."""
    match placed.joint:
        case Planar():
            return axis_turn(np.array([0.0, 0.0, 1.0]), q[..., 2])
        case Spherical():
            return _quaternion_rate(q)
        case Floating():
            N = np.zeros((*q.shape[:-1], 7, 6), dtype=q.dtype)
            N[..., :4, :3], N[..., 4:, 3:] = _quaternion_rate(q), quaternion_turn(q)
            return N
    return np.eye(placed.joint.dof)


def _quaternion_rate(q: Array) -> Array:
    w, x, y, z = (q[..., i] for i in range(4))
    rows = [[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2) / 2


def moving_directions(placed: Placed, parent: Array, child: Array) -> tuple[Array, Array]:
    """Angular and linear directions of unit speeds, 3 x dof each; frames' axes are given."""
    dof = placed.joint.dof
    W, V = (np.zeros((*child.shape[:-2], 3, dof), dtype=child.dtype) for _ in range(2))
    axis = matvec(parent, placed.axis)
    match placed.joint:
        case Revolute():
            W[..., 0] = axis
        case Prismatic():
            V[..., 0] = axis
        case Screw():
            W[..., 0], V[..., 0] = axis, placed.pitch * axis
        case Cylindrical():
            W[..., 0], V[..., 1] = axis, axis
        case Universal():
            W[..., 0], W[..., 1] = axis, matvec(child, placed.second)
        case Spherical():
            W[...] = child
        case Planar():
            in_plane = child @ placed.axes
            V[..., 0:2], W[..., 2] = in_plane[..., 0:2], axis
        case Floating():
            W[..., 0:3], V[..., 3:6] = child, child
    return W, V


def speed_directions(placed: Placed, parent: Array, child: Array) -> list[tuple[Array, Array]]:
    """Pairs (n, f): each speed is n . w + f . v of the relative motion that the joint allows."""
    zero = np.zeros(3)
    axis = matvec(parent, placed.axis)
    match placed.joint:
        case Revolute() | Screw():
            return [(axis, zero)]
        case Prismatic():
            return [(zero, axis)]
        case Cylindrical():
            return [(axis, zero), (zero, axis)]
        case Universal():
            second = matvec(child, placed.second)
            normal = cross(axis, second)
            size = dot(normal, normal)[..., np.newaxis]
            return [(cross(second, normal) / size, zero), (cross(normal, axis) / size, zero)]
        case Spherical():
            return [(child[..., i], zero) for i in range(3)]
        case Planar():
            in_plane = child @ placed.axes
            return [(zero, in_plane[..., 0]), (zero, in_plane[..., 1]), (axis, zero)]
        case Floating():
            return [
                *((child[..., i], zero) for i in range(3)),
                *((zero, child[..., i]) for i in range(3)),
            ]
    return []


def constrained_directions(
    placed: Placed, first: Array, second: Array, parent_first: bool
) -> dict[str, tuple[Array, Array]]:
    """Pairs (n, f) by name, with n . w + f . v = 0 of the first frame relative to the second.

    Directions x, y, z are those of the first frame, z along the joint's axis if it has just one.
    """
    zero = np.zeros(3)
    joint = placed.joint
    b = first @ placed.axes
    pairs = {f"r{e}": (b[..., i], zero) for i, e in enumerate("xyz")}
    pairs |= {e: (zero, b[..., i]) for i, e in enumerate("xyz")}
    if isinstance(joint, Universal):
        mine, other = placed.axis, placed.second
        if not parent_first:
            mine, other = other, mine
        pairs["cross"] = (cross(matvec(first, mine), matvec(second, other)), zero)
    if isinstance(joint, Screw):
        pairs["advance"] = (-placed.pitch * b[..., 2], b[..., 2])
    return {name: pairs[name] for name in joint.closure_names}


def links_of(joint: AbstractJoint) -> int:
    """How many moves a joint is made of, which decides which side of a loop is the deeper one."""
    return 0 if isinstance(joint, Fixed) else 2 if isinstance(joint, Universal) else 1
