"""Floating: free in space, by a unit quaternion and a position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import casadi as ca
import numpy as np

from axode.symbolic.algebra.spatial import SX, Rotation, cross, quaternion_matrix
from axode.symbolic.joints.base import ZERO, X, Y, Z
from axode.symbolic.joints.spherical import SymbolicSpherical

if TYPE_CHECKING:
    from axode.symbolic.tree.kinematics import Frame


class SymbolicFloating(SymbolicSpherical):
    """A spherical joint whose point moves; speeds are in the child's axes."""

    twists: ClassVar = [*SymbolicSpherical.twists, *((ZERO, e) for e in (X, Y, Z))]

    def transform(self, frame: Frame, q: SX) -> tuple[Rotation, SX]:
        """That of a spherical joint, and the position in the parent's joint frame."""
        return super().transform(frame, q)[0], frame.base.point(q[4:7])

    def rate_matrix(self, q: SX) -> SX:
        """That of the quaternion, and the child's axes in the parent's for the velocity."""
        R = quaternion_matrix(*ca.vertsplit(q[:4]))
        return ca.diagcat(super().rate_matrix(q[:4]), R)

    def turns_in_parent(self, q: SX, axes: dict[str, SX]) -> Iterator[tuple[str, SX]]:
        """About any axis, which carries the position too."""
        for name, turned in super().turns_in_parent(q, axes):
            yield name, ca.vertcat(turned, cross(axes[name], q[4:7]))

    def turn_in_child(self, q: SX, axis: np.ndarray, offset: np.ndarray) -> SX:
        """About any axis; the origin moves where the axis misses it."""
        shift = quaternion_matrix(*ca.vertsplit(q[:4])) @ SX((-offset).tolist())
        return ca.vertcat(self._spin(q, axis), shift)
