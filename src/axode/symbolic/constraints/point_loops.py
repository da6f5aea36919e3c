"""Loops that constrain a point: legs, if nothing else constrains their links (N)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from axode.symbolic.algebra.spatial import SX, skew
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import LinkPoint, Row, link_twist


@dataclass(frozen=True)
class PointLoop:
    """Rows of one loop whose far side is held at a point: A x = E (J_near x - turn J x).

    Where nothing else mentions the leg's own speeds, they follow from the point's velocity alone.
    """

    rows: tuple[int, ...]
    near: LinkPoint  # the leg's end
    far: LinkPoint
    E: SX  # rows x 3: directions of the rows, in the near link's axes
    turn: SX  # from the far link's axes to the near link's
    far_twist: SX  # of the far link, for unit speeds: 6 x speeds
    near_twist: SX
    turned: bool = False  # whether directions are constant in the far link's axes instead

    @cached_property
    def f(self) -> SX:
        """Directions, constant in the near link's axes, in which its point follows."""
        return SX.eye(3) if self.turned else self.E

    @cached_property
    def F(self) -> SX:
        """Directions in the far link's axes."""
        return self.f @ self.turn

    @property
    def far_side(self) -> tuple[int, int]:
        """The far link, and the ancestor against which it moves."""
        return self.far.link, self.far.meet

    @cached_property
    def P(self) -> SX:
        """Velocity of the far point for unit twists of its link: 3 x 6."""
        return ca.sparsify(ca.horzcat(-skew(self.far.point), SX.eye(3)))

    def reversed(self) -> PointLoop:
        """Exchange the sides of a loop with three rows."""
        twists = self.near_twist, self.far_twist
        return PointLoop(self.rows, self.far, self.near, -self.F, self.turn.T, *twists, turned=True)


def point_loops(tree: Tree, kept: Sequence[Row]) -> tuple[PointLoop, ...]:
    """Find loops all of whose rows constrain a point, seen from either side where three rows do.

    Args:
        tree: The tree.
        kept: Independent rows.
    """
    twists: dict[tuple[int, int], SX] = {}
    found: list[PointLoop] = []
    for owner in dict.fromkeys(row.owner for row in kept if row.port is not None):
        rows = tuple(r for r, row in enumerate(kept) if row.owner == owner)
        far, near = kept[rows[0]].port, kept[rows[0]].own
        directions = [kept[r].direction for r in rows]
        if far is None or near is None or any(f is None for f in directions):
            continue  # other rows of this loop hold more than the point
        for side in (far, near):
            key = side.link, side.meet
            twists[key] = twists[key] if key in twists else link_twist(tree, *key)
        E = ca.sparsify(ca.vertcat(*[f.T for f in directions if f is not None]))
        turn = tree.carry(SX.eye(3), near.link, far.link).T
        sides = twists[far.link, far.meet], twists[near.link, near.meet]
        found.append(PointLoop(rows, near, far, E, turn, *sides))
        if len(rows) == 3:
            found.append(found[-1].reversed())
    return tuple(found)
