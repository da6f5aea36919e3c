"""Screw: turns about its axis and advances by the pitch times the angle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import casadi as ca

from axode.symbolic.algebra.spatial import SX, symbolic_scalar
from axode.symbolic.joints.base import SymbolicJoint, Twist, Z, along_z

if TYPE_CHECKING:
    from axode.symbolic.constraints.loops import Closure


class SymbolicScrew(SymbolicJoint):
    """Angle q about z and a shift of pitch times q along it."""

    @property
    def pitch(self) -> SX:
        """Advance per angle."""
        return symbolic_scalar(self.description.pitch, self.values)  # type: ignore[attr-defined]

    @property
    def twists(self) -> Sequence[Twist]:  # type: ignore[override]
        """Turning about z and advancing along it."""
        return [(Z, along_z(self.pitch))]

    def displacement(self, q: SX) -> tuple[SX, SX]:
        """The coordinate is the angle; the advance follows."""
        return q[0], along_z(self.pitch * q[0])

    def closure_directions(self, closure: Closure) -> dict[str, Twist]:
        """With the row `advance`: sliding along z less the pitch times turning about it.  (C2)"""
        z = closure.b[2]
        return super().closure_directions(closure) | {"advance": (-self.pitch * z, z)}

    def closure_residuals(self, closure: Closure) -> dict[str, SX]:
        """With how far the advance is from pitch times angle, whichever turn it is in.  (C4)"""
        R, gap, pitch = closure.relative_rotation, closure.gap, self.pitch
        advance = -gap[2]
        if not pitch.is_zero():
            turns = gap[2] / pitch
            sine = ca.sin(turns) * R[0, 0] - ca.cos(turns) * R[1, 0]
            cosine = ca.cos(turns) * R[0, 0] + ca.sin(turns) * R[1, 0]
            advance = -pitch * ca.atan2(sine, cosine)
        return super().closure_residuals(closure) | {"advance": advance}
