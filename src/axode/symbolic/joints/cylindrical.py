"""Cylindrical: turns about its axis and slides along it."""

from __future__ import annotations

from typing import ClassVar

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.joints.base import ZERO, SymbolicJoint, Z, along_z


class SymbolicCylindrical(SymbolicJoint):
    """Angle about z, then a shift along it."""

    twists: ClassVar = [(Z, ZERO), (ZERO, Z)]

    def displacement(self, q: SX) -> tuple[SX, SX]:
        """The angle, and the slide along z."""
        return q[0], along_z(q[1])
