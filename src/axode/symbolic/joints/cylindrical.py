"""Cylindrical: turns about its axis and slides along it."""

from __future__ import annotations

from collections.abc import Sequence

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.joints.base import ZERO, SymbolicJoint, Twist, Z, along_z


class SymbolicCylindrical(SymbolicJoint):
    """Angle about z, then a shift along it."""

    @property
    def twists(self) -> Sequence[Twist]:
        """Turning about z, and sliding along it."""
        return [(Z, ZERO), (ZERO, Z)]

    def angle(self, q: SX) -> SX:
        """The first coordinate."""
        return q[0]

    def shift(self, q: SX) -> SX:
        """The second coordinate along z."""
        return along_z(q[1])
