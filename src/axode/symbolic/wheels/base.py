"""A wheel in symbols: the directions at its contact and the forces along them (C).

The directions are d, from the wheel's centre to its lowest point, the ground's normal n, and the
tangents t_1 along the heading and t_2 = n x t_1 across it.
"""

from __future__ import annotations

from dataclasses import dataclass

from axode.mechanism.elements.wheels import AbstractWheel
from axode.symbolic.algebra.spatial import SX, Values, cross


@dataclass(frozen=True, eq=False)
class SymbolicWheel:
    """A wheel of a description with symbols for its parameters."""

    description: AbstractWheel
    values: Values

    @property
    def components(self) -> dict[str, tuple[SX, SX, SX]]:
        """Direction of each row along t_1 (longitudinal), t_2 (lateral) and n (touch)."""
        one, zero = SX(1), SX(0)
        return {
            "touch": (zero, zero, one),
            "longitudinal": (one, zero, zero),
            "lateral": (zero, one, zero),
        }

    def lowest(self, n: SX, axis: SX | None, tangent: SX) -> tuple[SX, SX]:
        """Direction d from the wheel's centre to its lowest point, and t_1."""
        raise NotImplementedError

    def directions(self, n: SX, axis: SX | None, tangent: SX) -> tuple[SX, dict[str, SX]]:
        """Direction d and the direction of each row, in the axes of the arguments.  (C5)"""
        d, t1 = self.lowest(n, axis, tangent)
        t2 = cross(n, t1)
        return d, {row: c[1] * t2 + c[0] * t1 + c[2] * n for row, c in self.components.items()}

    def force(self, rows: dict[str, SX]) -> list[SX]:
        """Longitudinal, lateral and normal force from the forces of some rows."""
        terms = [(rows[row], c) for row, c in self.components.items() if row in rows]
        return [sum((force * c[i] for force, c in terms), SX(0)) for i in range(3)]
