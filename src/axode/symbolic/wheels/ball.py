"""A ball: touches the ground right below its centre."""

from __future__ import annotations

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.wheels.base import SymbolicWheel


class SymbolicBall(SymbolicWheel):
    """A sphere; its tangents are fixed in the ground."""

    def lowest(self, n: SX, axis: SX | None, tangent: SX) -> tuple[SX, SX]:
        """Against the normal, and the ground's own tangent."""
        return -n, tangent
