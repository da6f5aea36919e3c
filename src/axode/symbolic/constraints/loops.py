"""Loop closures: any joint between two bodies that the tree holds already (C).

A joint with k freedoms leaves 6 - k directions in which its two frames may not move apart. They are
taken on the side deeper in the tree, where they are constant.

Loops that constrain a point are legs, if nothing else constrains their links (N).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from axode.mechanism.mechanism import Connection
from axode.symbolic.algebra.spatial import SX, Pose, cross, placement, skew
from axode.symbolic.joints import symbolic_joint
from axode.symbolic.tree.kinematics import Motion, Tree
from axode.symbolic.tree.rows import (
    LinkPoint,
    LinkState,
    Row,
    UnitWrench,
    cheaper_bias,
    link_twist,
    point_row_entries,
    port_at,
    row_entries,
    side_entries,
    state_at,
)


class Closure:
    """Geometry of one joint between two links, seen from the side deeper in the tree."""

    def __init__(self, tree: Tree, loop: Connection) -> None:
        sides = [
            (tree.body_link[body], tree.body_pose[body] @ placement(at, rotation, tree.values))
            for body, at, rotation in (
                (loop.parent, loop.at, loop.rotation),
                (loop.child, loop.child_at, loop.child_rotation),
            )
        ]
        depth = [len(list(tree.path(link))) for link, _ in sides]
        self.parent_first = depth[0] > depth[1]
        (self.first, frame_1), (self.second, frame_2) = sides if self.parent_first else sides[::-1]
        self.tree, self.joint = tree, symbolic_joint(loop.joint, tree.values)
        turn = self.joint.turn
        self.frame_1 = Pose(frame_1.R @ turn, frame_1.p)  # in the first link's frame
        self.frame_2 = Pose(frame_2.R @ turn, frame_2.p)  # in the second link's frame

    @property
    def b(self) -> list[SX]:
        """Directions x, y, z of the joint in the first link's axes."""
        return [self.frame_1.R[:, i] for i in range(3)]

    @cached_property
    def axes(self) -> Sequence[SX]:
        """Axes of the joint that are fixed in one link each, in that link's axes."""
        return self.joint.closure_axes(self)

    @cached_property
    def directions(self) -> dict[str, tuple[SX, SX]]:
        """Angular and linear directions of the joint's rows, in the first link's axes."""
        return self.joint.closure_directions(self)

    @property
    def world_point(self) -> SX:
        """The first joint frame's origin in the world."""
        return self.tree.pose(self.first).point(self.frame_1.p)

    @cached_property
    def relative_rotation(self) -> SX:
        """The second joint frame's axes in the first joint frame's."""
        carried = self.tree.carry(self.frame_2.R, self.second, self.first)
        return self.frame_1.R.T @ carried

    @cached_property
    def gap(self) -> SX:
        """From the first joint frame's origin to the second's, in the first joint frame's axes."""
        there = self.tree.carry_point(self.frame_2.p, self.second, self.first)
        return self.frame_1.R.T @ (there - self.frame_1.p)

    def first_point_in_second(self) -> SX:
        """The first joint frame's origin in the second link's frame: both move past it."""
        return self.tree.carry_point(self.frame_1.p, self.first, self.second)


@dataclass(frozen=True)
class RelativeMotion:
    r"""States of a closure's two links, and what differentiating the rows adds.

    Directions b and the point turn with the first link, so that

    .. math:: \dot b \cdot \Delta\omega + b \cdot \Delta\dot\omega
                = b \cdot (\dot\omega_1 - \dot\omega_2 + \omega_1 \times \omega_2), \\
              \frac{d}{dt}(b \cdot \Delta u)
                = b \cdot (a_1 - a_2 - (\omega_1 + \omega_2) \times \Delta u).    \tag{C3}

    Both velocities are those of the material points at the first joint frame's origin, which
    slides along the second link; :math:`\Delta u` vanishes where the joint holds the two together.
    """

    first: LinkState
    second: LinkState
    coincident: bool  # whether the joint holds the two points together

    @property
    def angular(self) -> SX:
        """What multiplies angular directions."""
        one, two = self.first, self.second
        return one.w_dot - two.w_dot + cross(one.w, two.w)

    @property
    def linear(self) -> SX:
        """What multiplies linear directions."""
        one, two = self.first, self.second
        linear = one.acceleration - two.acceleration
        if not self.coincident:
            linear -= cross(one.w + two.w, one.velocity - two.velocity)  # (C3)
        return linear


def loop_rows(tree: Tree, loop: Connection, motion: Motion, u: list[SX]) -> Iterator[Row]:
    """The rows of one loop, in the order of the joint's `closure_names`."""
    closure = Closure(tree, loop)
    residuals = closure.joint.closure_residuals(closure)
    sines, _ = closure.joint.closure_turn(closure)
    nearly = dict(zip(("rx", "ry", "rz"), ca.vertsplit(sines), strict=False))
    coincident = loop.joint.holds_point
    p, met = closure.frame_1.p, closure.frame_2.p
    if not coincident:
        met = closure.first_point_in_second()
    relative = RelativeMotion(
        state_at(tree, motion, u, closure.first, p, closure.first),
        state_at(tree, motion, u, closure.second, met, closure.first),
        coincident,
    )
    meet = tree.common_ancestor(closure.first, closure.second)
    port = port_at(tree, closure.second, meet, closure.frame_2.p)
    own_point = port_at(tree, closure.first, meet, p)
    for name, unit in zip(loop.joint.closure_names, loop.joint.closure_units, strict=True):
        n, f = closure.directions[name]
        wrench = UnitWrench(cross(p, f) + n, f)  # (C2)
        held: dict[str, Any] = {}
        if coincident and name in "xyz":  # both sides at their own point, which are one
            direction = tree.carry(f, closure.first, closure.second)
            own = side_entries(tree, closure.first, meet, wrench)
            entries = point_row_entries(own, port, direction)
            held = {"port": port, "own": own_point, "direction": f}
        else:
            (entries, _), *_ = row_entries(tree, closure.first, closure.second, [wrench])
        closed_form = closure.joint.closure_bias(closure, name, relative)
        bias = cheaper_bias(tree, entries, closed_form)
        yield Row(
            f"{loop.name}.{name}",
            loop.name,
            "loop",
            unit,
            entries,
            bias,
            residual=residuals[name],
            sine=nearly.get(name),
            sides=(own_point, port),
            **held,
        )


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
