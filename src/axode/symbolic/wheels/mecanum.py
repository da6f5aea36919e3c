"""A Mecanum wheel: only the velocity along the axis of the roller on the ground vanishes."""

from __future__ import annotations

import casadi as ca

from axode.symbolic.algebra.spatial import SX, is_constant, symbolic_scalar
from axode.symbolic.wheels.disk import SymbolicDisk


class SymbolicMecanum(SymbolicDisk):
    """A disk with the row `roller`, at an angle to the wheel's axis."""

    @property
    def components(self) -> dict[str, tuple[SX, SX, SX]]:
        """With the roller's axis: cos(angle) t_2 - sin(angle) t_1.  (C6)"""
        angle = symbolic_scalar(self.description.roller_angle, self.values)  # type: ignore[attr-defined]
        roller = -_exact(ca.sin(angle)), _exact(ca.cos(angle)), SX(0)  # (C6)
        return super().components | {"roller": roller}


def _exact(x: SX) -> SX:
    """A sine or cosine, exact at multiples of a right angle."""
    if is_constant(x) and abs(float(x) - round(float(x))) < 4e-16:
        return SX(round(float(x)))
    return x
