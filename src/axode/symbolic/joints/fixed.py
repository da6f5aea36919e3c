"""Fixed: no relative motion; the two bodies are one link."""

from __future__ import annotations

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.joints.base import Move, SymbolicJoint


class SymbolicFixed(SymbolicJoint):
    """Nothing moves."""

    def moves(self) -> tuple[list[Move], SX]:
        """No link."""
        return [], SX.eye(3)
