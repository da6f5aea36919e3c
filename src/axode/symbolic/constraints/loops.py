r"""Loop closures: any joint between two bodies that the tree holds already (C).

A joint with k freedoms leaves 6 - k directions in which its two frames may not move apart. They are
taken on the side deeper in the tree, where they are constant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import casadi as ca

from axode.mechanism.elements.joints import (
    AbstractJoint,
    Cylindrical,
    Fixed,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from axode.mechanism.mechanism import Connection
from axode.symbolic.algebra.spatial import SX, cross, dot
from axode.symbolic.constraints.rows import (
    LinkState,
    Row,
    UnitWrench,
    cheaper_bias,
    held_entries,
    port_at,
    row_entries,
    side_entries,
    state_at,
)
from axode.symbolic.tree.frames import Pose, align, placement, symbolic_scalar, unit_vector
from axode.symbolic.tree.kinematics import Motion, Tree


class Closure:
    """Geometry of one loop: both joint frames, seen from the side deeper in the tree."""

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
        self.tree, self.joint, self.name = tree, loop.joint, loop.name
        turn = SX.eye(3)
        if loop.joint.directions == ("axis",):
            turn = align(unit_vector(loop.joint.axis, tree.values))  # type: ignore[attr-defined]
        self.frame_1 = Pose(frame_1.R @ turn, frame_1.p)  # in the first link's frame
        self.frame_2 = Pose(frame_2.R @ turn, frame_2.p)  # in the second link's frame
        if isinstance(loop.joint, Universal):
            axes = [unit_vector(a, tree.values) for a in (loop.joint.axis, loop.joint.second)]
            mine, other = axes if self.parent_first else axes[::-1]
            self.axis_1, self.axis_2 = frame_1.R @ mine, frame_2.R @ other

    @property
    def b(self) -> list[SX]:
        """Directions x, y, z of the joint in the first link's axes."""
        return [self.frame_1.R[:, i] for i in range(3)]

    def relative_rotation(self) -> SX:
        """The second joint frame's axes in the first joint frame's."""
        carried = self.tree.carry(self.frame_2.R, self.second, self.first)
        return self.frame_1.R.T @ carried

    def gap(self) -> SX:
        """From the first joint frame's origin to the second's, in the first joint frame's axes."""
        there = self.tree.carry_point(self.frame_2.p, self.second, self.first)
        return self.frame_1.R.T @ (there - self.frame_1.p)

    def first_point_in_second(self) -> SX:
        """The first joint frame's origin in the second link's frame: both move past it."""
        return self.tree.carry_point(self.frame_1.p, self.first, self.second)

    def cross_axis(self) -> SX:
        """Normal to both axes of a universal joint, in the first link's axes."""
        return cross(self.axis_1, self.tree.carry(self.axis_2, self.second, self.first))


def loop_rows(tree: Tree, loop: Connection, motion: Motion, u: list[SX]) -> Iterator[Row]:
    """The rows of one loop, in the order of the joint's `closure_names`."""
    closure = Closure(tree, loop)
    wrenches = dict(_wrenches(closure))
    residuals = _residuals(closure)
    coincident = isinstance(loop.joint, (Revolute, Universal, Spherical, Fixed))
    met = closure.frame_2.p if coincident else closure.first_point_in_second()
    states = (
        state_at(tree, motion, u, closure.first, closure.frame_1.p, closure.first),
        state_at(tree, motion, u, closure.second, met, closure.first),
    )
    meet = tree.common_ancestor(closure.first, closure.second)
    port = port_at(tree, closure.second, meet, closure.frame_2.p)
    for name, unit in zip(loop.joint.closure_names, loop.joint.closure_units, strict=True):
        wrench = wrenches[name]
        held: dict[str, Any] = {}
        if coincident and name in "xyz":  # both sides at their own point, which are one
            direction = tree.carry(wrench.f, closure.first, closure.second)
            own = side_entries(tree, closure.first, meet, wrench)
            entries = held_entries(own, port, direction)
            held = {"port": port, "direction": direction}
        else:
            entries = row_entries(tree, closure.first, closure.second, wrench)
        closed_form = _bias(closure, name, wrench, *states, coincident=coincident)
        bias = cheaper_bias(tree, entries, closed_form)
        yield Row(
            f"{loop.name}.{name}",
            loop.name,
            "loop",
            unit,
            entries,
            bias,
            residual=residuals[name],
            **held,
        )


def _wrenches(closure: Closure) -> Iterator[tuple[str, UnitWrench]]:
    """Unit wrenches of the directions that the joint does not leave free, by row name.  (C2)"""
    zero, p = SX.zeros(3), closure.frame_1.p
    for i, axis in enumerate("xyz"):
        yield f"r{axis}", UnitWrench(closure.b[i], zero)
        yield axis, UnitWrench(cross(p, closure.b[i]), closure.b[i])
    if isinstance(closure.joint, Universal):
        yield "cross", UnitWrench(closure.cross_axis(), zero)
    if isinstance(closure.joint, Screw):
        z, pitch = closure.b[2], symbolic_scalar(closure.joint.pitch, closure.tree.values)
        yield "advance", UnitWrench(cross(p, z) - pitch * z, z)


def _bias(
    closure: Closure,
    name: str,
    wrench: UnitWrench,
    one: LinkState,
    two: LinkState,
    *,
    coincident: bool,
) -> SX:
    r"""What differentiating a row adds to A v_dot.

    Directions b and the point turn with the first link, so that

    .. math:: \dot b \cdot \Delta\omega + b \cdot \Delta\dot\omega
                = b \cdot (\dot\omega_1 - \dot\omega_2 + \omega_1 \times \omega_2), \\
              \frac{d}{dt}(b \cdot \Delta u)
                = b \cdot (a_1 - a_2 - (\omega_1 + \omega_2) \times \Delta u).    \tag{C3}

    Both velocities are those of the material points at the first joint frame's origin, which
    slides along the second link; :math:`\Delta u` vanishes where the joint holds the two together.
    """
    angular = one.w_dot - two.w_dot + cross(one.w, two.w)
    linear = one.acceleration - two.acceleration
    if not coincident:
        linear -= cross(one.w + two.w, one.velocity - two.velocity)  # (C3)
    if name == "cross":
        # its direction turns with both links: the exact derivative of n . (w1 - w2)
        a1, a2 = closure.axis_1, closure.tree.carry(closure.axis_2, closure.second, closure.first)
        n_dot = cross(cross(one.w, a1), a2) + cross(a1, cross(two.w, a2))
        return dot(wrench.n, one.w_dot - two.w_dot) + dot(n_dot, one.w - two.w)
    if name == "advance":
        pitch = symbolic_scalar(closure.joint.pitch, closure.tree.values)  # type: ignore[attr-defined]
        return dot(closure.b[2], linear - pitch * angular)
    if name.startswith("r"):
        return dot(wrench.n, angular)
    return dot(wrench.f, linear)


def _residuals(closure: Closure) -> dict[str, SX]:
    r"""Position residuals whose rates are the rows once the loop is closed.  (C4)"""
    gap = closure.gap()
    residuals = {axis: -gap[i] for i, axis in enumerate("xyz")}
    joint: AbstractJoint = closure.joint
    if isinstance(joint, Universal):
        a2 = closure.tree.carry(closure.axis_2, closure.second, closure.first)
        values = closure.tree.values
        across = dot(unit_vector(joint.axis, values), unit_vector(joint.second, values))
        return residuals | {"cross": dot(closure.axis_1, a2) - across}
    if isinstance(joint, Spherical):
        return residuals
    R = closure.relative_rotation()
    # tangents of half angles, because sines also vanish half a turn away
    if isinstance(joint, (Prismatic, Fixed)):  # all of the small rotation
        half = 2 / (1 + ca.trace(R))
        residuals |= {
            "rx": half * (R[1, 2] - R[2, 1]),
            "ry": half * (R[2, 0] - R[0, 2]),
            "rz": half * (R[0, 1] - R[1, 0]),
        }
    elif isinstance(joint, (Revolute, Screw, Cylindrical, Planar)):  # only how z leans
        half = 2 / (1 + R[2, 2])
        residuals |= {"rx": half * R[1, 2], "ry": -half * R[0, 2]}
    if isinstance(joint, Screw):
        residuals["advance"] = _advance(closure, R, gap)
    return residuals


def _advance(closure: Closure, R: SX, gap: SX) -> SX:
    """How far a screw's advance is from its pitch times its angle, whichever turn it is in."""
    pitch = symbolic_scalar(closure.joint.pitch, closure.tree.values)  # type: ignore[attr-defined]
    if pitch.is_zero():
        return -gap[2]
    turns = gap[2] / pitch
    sine = ca.sin(turns) * R[0, 0] - ca.cos(turns) * R[1, 0]
    cosine = ca.cos(turns) * R[0, 0] + ca.sin(turns) * R[1, 0]
    return -2 * pitch * sine / (1 + cosine)
