"""A joint in symbols: what the tree, the loops and the formulations ask of it (K, C).

A joint's frame stands at its origin with its axis along z. There its free motions are constant: the
child moves, seen from the parent, by the sum of `twists` times the speeds. For most joints these
and `displacement` are all: the rows in a loop follow from `closure_names` of the description.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import casadi as ca
import numpy as np

from axode.mechanism.elements.joints import AbstractJoint
from axode.mechanism.mechanism import Connection
from axode.symbolic.algebra.spatial import (
    SX,
    RigidInertia,
    Rotation,
    Turn,
    Values,
    align,
    constant_turns,
    dot,
    principal_angle,
    turned_by,
    unit_vector,
)

if TYPE_CHECKING:
    from axode.symbolic.constraints.loops import Closure, RelativeMotion
    from axode.symbolic.tree.kinematics import Frame

Twist = tuple[SX, SX]  # angular, linear
ZERO = SX.zeros(3)
X, Y, Z = (SX(axis.tolist()) for axis in np.eye(3))


@dataclass(frozen=True)
class Move:
    """A motion that carries a link: the joint, where its numbers start, and the turn to its axes.

    `first` counts coordinates and speeds within the joint of the description. `turn` leads from the
    frame before the move to one whose z is the axis of the move.
    """

    joint: SymbolicJoint
    first: int
    turn: SX


@dataclass(frozen=True, eq=False)
class SymbolicJoint:
    """A joint of a description with symbols for its parameters."""

    description: AbstractJoint
    values: Values
    twists: ClassVar[Sequence[Twist]] = ()  # motion of the child for unit speeds, joint's frame
    turns_only: ClassVar[bool] = False  # a revolute about its own z
    slides_only: ClassVar[bool] = False  # a prismatic: its link keeps the axes of the parent

    # the tree ----------------------------------------------------------------------------------

    @cached_property
    def turn(self) -> SX:
        """Rotation from the frame of the description to one whose z is the joint's axis."""
        if self.description.directions != ("axis",):
            return SX.eye(3)
        return align(unit_vector(self.description.axis, self.values))  # type: ignore[attr-defined]

    def moves(self) -> tuple[list[Move], SX]:
        """Motions with constant directions, one link each, and the turn back after them."""
        return [Move(self, 0, self.turn)], self.turn.T

    def displacement(self, q: SX) -> tuple[SX, SX]:
        """Angle about z and position of the child's origin in the joint's frame."""
        raise NotImplementedError

    def transform(self, frame: Frame, q: SX) -> tuple[Rotation, SX]:
        """Rotation and origin of a link in its parent, at coordinates q."""
        turns, offset = constant_turns(frame.base.R), frame.angle_offset
        if turns and turns[-1].axis == "z":  # a constant turn about the axis adds to the angle
            R = turns.pop().matrix
            offset += float(np.arctan2(float(R[1, 0]), float(R[0, 0])))
        angle, shift = self.displacement(q)
        rotation = Rotation.of(*turns, Turn.about("z", angle + principal_angle(offset)))
        return rotation, frame.base.point(shift + frame.slide_offset * Z)

    def motion_axes(self, frame: Frame) -> tuple[SX, SX]:
        """S of a link's joint in the link's own axes: angular and linear directions."""
        angular, linear = zip(*self.twists, strict=True)
        return ca.densify(ca.horzcat(*angular)), ca.densify(ca.horzcat(*linear))

    def rate_matrix(self, q: SX) -> SX:
        """N of the joint: rates of its coordinates from its speeds."""
        return SX.eye(self.description.dof)

    def regroupable(self, inertia: RigidInertia) -> RigidInertia | None:
        """The part of a link's inertia that may belong to the link before it.  (D1)"""
        return None

    # loops -------------------------------------------------------------------------------------

    def closure_axes(self, closure: Closure) -> Sequence[SX]:
        """Axes of the joint that are fixed in one link each, in that link's axes."""
        return ()

    def closure_directions(self, closure: Closure) -> dict[str, Twist]:
        """What each row multiplies: (n, f), with n . (w_1 - w_2) + f . (v_1 - v_2) = 0.  (C2)

        In the first link's axes; velocities are those at the first joint frame's origin.
        """
        found: dict[str, Twist] = {}
        for axis, b in zip("xyz", closure.b, strict=True):
            found[axis], found[f"r{axis}"] = (ZERO, b), (b, ZERO)
        return found

    def closure_bias(self, closure: Closure, name: str, motion: RelativeMotion) -> SX:
        """What differentiating a row adds to A v_dot; its directions turn with the first link."""
        n, f = closure.directions[name]
        return dot(n, motion.angular) + dot(f, motion.linear)

    def closure_turn(self, closure: Closure) -> tuple[SX, SX]:
        """How far the frames are turned where they may not: sines along rows, and the cosine."""
        R, names = closure.relative_rotation, self.description.closure_names
        if "rz" in names:  # all of the rotation
            sines = ca.vertcat(R[1, 2] - R[2, 1], R[2, 0] - R[0, 2], R[0, 1] - R[1, 0]) / 2
            return sines, (ca.trace(R) - 1) / 2
        return ca.vertcat(R[1, 2], -R[0, 2]) if "rx" in names else SX(0, 1), R[2, 2]

    def closure_residuals(self, closure: Closure) -> dict[str, SX]:
        """Position residuals whose rates are the rows once the loop is closed.  (C4)"""
        sines, cosine = self.closure_turn(closure)
        found = {axis: -closure.gap[i] for i, axis in enumerate("xyz")}
        if sines.numel():
            found |= zip(("rx", "ry", "rz"), ca.vertsplit(turned_by(sines, cosine)), strict=False)
        return found

    def free_directions(self, closure: Closure) -> Sequence[Twist]:
        """Motions that the joint leaves its two links, in world axes, up to their sign."""
        pose, R = closure.tree.pose(closure.first), closure.frame_1.R
        return [(pose.R @ (R @ e), pose.R @ (R @ s)) for e, s in self.twists]

    # symmetries and bases ----------------------------------------------------------------------

    def turns_in_parent(self, q: SX, axes: dict[str, SX]) -> Iterator[tuple[str, SX]]:
        """Rates of q that turn the child about axes through the parent's joint frame, by name.

        `axes` are directions in that frame; a joint that has an axis of its own names it.
        """
        return iter(())

    def turn_in_child(self, q: SX, axis: np.ndarray, offset: np.ndarray) -> SX | None:
        """Rates of q that turn the child about an axis of its own; None if the joint cannot.

        `offset` is the axis crossed with the vector from the joint to it, in the child's joint
        frame.
        """
        return None

    def floating_equivalent(self, connection: Connection) -> Connection | None:
        """The joint of a base that only the ground keeps in its plane, free in space."""
        return None


def along_z(distance: SX) -> SX:
    """A shift along the joint's axis."""
    return ca.vertcat(0, 0, distance)
