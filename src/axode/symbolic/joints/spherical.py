"""Spherical: turns freely about a point, by a unit quaternion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import casadi as ca
import numpy as np

from axode.numerics.tolerances import ROUNDING
from axode.symbolic.algebra.spatial import (
    SX,
    Rotation,
    Turn,
    constant_turns,
    quaternion_matrix,
    quaternion_rate,
)
from axode.symbolic.joints.base import ZERO, SymbolicJoint, Twist, X, Y, Z

if TYPE_CHECKING:
    from axode.symbolic.constraints.loops import Closure
    from axode.symbolic.tree.kinematics import Frame


class SymbolicSpherical(SymbolicJoint):
    """A unit quaternion; the speeds are the angular velocity in the child's axes."""

    twists: ClassVar = [(X, ZERO), (Y, ZERO), (Z, ZERO)]

    def transform(self, frame: Frame, q: SX) -> tuple[Rotation, SX]:
        """The quaternion's rotation after the constant one."""
        turn = Turn("matrix", quaternion_matrix(*ca.vertsplit(q[:4])))
        return Rotation.of(*constant_turns(frame.base.R), turn), frame.base.p

    def rate_matrix(self, q: SX) -> SX:
        """Half the product of the quaternion and the angular velocity."""
        return quaternion_rate(*ca.vertsplit(q))

    def free_directions(self, closure: Closure) -> Sequence[Twist]:
        """Turning about the world's axes: any three do."""
        return self.twists

    def turns_in_parent(self, q: SX, axes: dict[str, SX]) -> Iterator[tuple[str, SX]]:
        """About any axis."""
        for name, a in axes.items():
            yield name, 0.5 * _left(a) @ q[:4]

    def turn_in_child(self, q: SX, axis: np.ndarray, offset: np.ndarray) -> SX | None:
        """About any axis through the joint's point."""
        if np.linalg.norm(offset) > ROUNDING:
            return None
        return self._spin(q, axis)

    def _spin(self, q: SX, axis: np.ndarray) -> SX:
        return quaternion_rate(*ca.vertsplit(q[:4])) @ SX(axis.tolist())


def _left(a: SX) -> SX:
    """The matrix of the product of the quaternion (0, a) with another."""
    x, y, z = ca.vertsplit(a)
    return ca.vertcat(
        ca.horzcat(0, -x, -y, -z),
        ca.horzcat(x, 0, -z, y),
        ca.horzcat(y, z, 0, -x),
        ca.horzcat(z, -y, x, 0),
    )
