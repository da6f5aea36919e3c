"""Fixed: no relative motion; the two bodies are one link."""

from __future__ import annotations

from collections.abc import Sequence

from axode.symbolic.algebra.spatial import SX
from axode.symbolic.joints.base import Move, SymbolicJoint, Twist


class SymbolicFixed(SymbolicJoint):
    """Nothing moves."""

    @property
    def twists(self) -> Sequence[Twist]:
        """None."""
        return []

    def moves(self) -> tuple[list[Move], SX]:
        """No link."""
        return [], SX.eye(3)
