"""Prismatic: slides along its axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from axode.symbolic.algebra.spatial import SX, RigidInertia, Rotation
from axode.symbolic.joints.base import ZERO, SymbolicJoint, Z

if TYPE_CHECKING:
    from axode.symbolic.tree.kinematics import Frame


class SymbolicPrismatic(SymbolicJoint):
    """Shift q along z; the link keeps its parent's axes, in which the joint's axis is constant."""

    twists: ClassVar = [(ZERO, Z)]
    slides_only: ClassVar = True

    def transform(self, frame: Frame, q: SX) -> tuple[Rotation, SX]:
        """No turn, and a shift along the axis."""
        return Rotation(), frame.axis * q

    def motion_axes(self, frame: Frame) -> tuple[SX, SX]:
        """The axis in the link's axes, which are the parent's."""
        return SX.zeros(3), frame.axis

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        """All second moments: a link that slides does not turn against its parent.  (D1)"""
        return RigidInertia(SX(0), ZERO, inertia.tensor)
