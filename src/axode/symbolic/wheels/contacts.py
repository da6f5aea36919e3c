"""Rows of rolling contacts (C).

Touch: n.(Q - p_0) = 0. Rolling: the material velocity at Q, wheel minus ground, has no component
along t_1 (longitudinal) and t_2 (lateral). Everything is kept in the axes of the body that carries
the wheel, where its centre and axis are constant and the spin angle never appears.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import casadi as ca

from axode.mechanism.elements.wheels import Contact
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    align,
    cross,
    dot,
    is_constant,
    snap_rotation,
    symbolic_scalar,
    symbolic_vector,
    unit_vector,
)
from axode.symbolic.tree.kinematics import Link, Motion, Tree
from axode.symbolic.tree.rows import Row, UnitWrench, cheaper_bias, row_entries
from axode.symbolic.wheels import symbolic_wheel
from axode.symbolic.wheels.base import SymbolicWheel


@dataclass(frozen=True)
class ContactGeometry:
    """One contact in the axes of the link that carries the wheel."""

    tree: Tree
    kind: SymbolicWheel
    wheel: int  # the link that rolls
    spins: tuple[tuple[int, float], ...]  # links that turn about the wheel's axis, and which way
    carrier: int  # the link whose axes are used: the last one before those
    ground: int
    centre: SX  # in the carrier's frame
    axis: SX | None
    radius: SX
    normal: SX  # ground's normal in the carrier's axes
    touched: SX  # a point of the ground plane, in the carrier's frame
    tangent: SX  # for a ball: a direction of the ground plane

    def directions(self, normal: SX) -> tuple[SX, dict[str, SX]]:
        """Direction to the lowest point and those of all rows, for a ground normal.  (C5)"""
        return self.kind.directions(normal, self.axis, self.tangent)

    def in_world(self) -> tuple[SX, dict[str, SX]]:
        """Contact point and directions of all rows, in world axes."""
        pose = self.tree.pose(self.carrier)
        axis = None if self.axis is None else pose.R @ self.axis
        down, rows = self.kind.directions(pose.R @ self.normal, axis, pose.R @ self.tangent)
        return pose.point(self.centre) + self.radius * down, rows


def contact_geometry(tree: Tree, contact: Contact) -> ContactGeometry:
    """Where a wheel is and what it touches, spin left out where that is possible."""
    values = tree.values
    wheel = tree.body_link[contact.body]
    pose = tree.body_pose[contact.body]
    centre = pose.point(symbolic_vector(contact.at, values))
    axis = None
    if contact.wheel.has_axis:
        axis = snap_rotation(pose.R @ unit_vector(contact.axis, values))
    carrier = wheel
    spins: list[tuple[int, float]] = []
    # turns about one axis add up; a ball's second one would turn the first, and is the carrier's
    while (
        carrier != ROOT
        and not (axis is None and spins)
        and _spins_on_axis(tree, carrier, centre, axis)
    ):
        own = tree.links[carrier]
        spins.append((carrier, 1.0 if axis is None else float(axis[2])))
        centre = own.p + _on_axis(own, centre)
        axis = _on_axis(own, axis) if axis is not None else None
        carrier = own.parent
    ground = tree.body_link[contact.plane.on]
    ground_pose = tree.body_pose[contact.plane.on]
    upright = unit_vector(contact.plane.normal, values)
    normal = ground_pose.R @ upright
    point = ground_pose.point(symbolic_vector(contact.plane.point, values))
    return ContactGeometry(
        tree,
        symbolic_wheel(contact.wheel, values),
        wheel,
        tuple(spins),
        carrier,
        ground,
        centre,
        axis,
        symbolic_scalar(contact.wheel.radius, values),
        tree.carry(normal, ground, carrier),
        tree.carry_point(point, ground, carrier),
        # a ball's two directions are the ground body's own, whatever frame its link is kept in
        tree.carry(ground_pose.R @ align(upright)[:, 0], ground, carrier)
        if axis is None
        else SX.zeros(3),
    )


def _spins_on_axis(tree: Tree, wheel: int, centre: SX, axis: SX | None) -> bool:
    """Return whether the wheel's own joint turns it about its axis, or a ball about its centre."""
    link = tree.links[wheel]
    if axis is None:
        return bool(link.k == 3 and link.S_v.is_zero() and centre.is_zero())
    if not (link.turns_only and is_constant(axis) and is_constant(centre)):
        return False
    return bool(axis[:2].is_zero() and centre[:2].is_zero())


def _on_axis(link: Link, x: SX) -> SX:
    """A vector along the link's z axis, in the parent's axes: the spin cannot turn it."""
    return x[2] * link.rotation_at_rest.outward(SX([0.0, 0.0, 1.0]))


def contact_point(tree: Tree, contact: Contact) -> SX:
    """Where a wheel touches the ground, in the world."""
    g = contact_geometry(tree, contact)
    d, _ = g.directions(g.normal)
    return tree.pose(g.carrier).point(g.centre + g.radius * d)


def axis_in_ground(tree: Tree, contact: Contact) -> SX:
    r"""Resolve a wheel's axis along two directions of the ground plane, two by one.

    .. math:: (e_1 \cdot a, \; e_2 \cdot a), \qquad \text{length } |a \times n|     \tag{C11}

    Both vanish where the wheel lies flat: no point of its rim is the lowest, and (C5) divides by
    their length.
    """
    g = contact_geometry(tree, contact)
    assert g.axis is not None
    normal = tree.carry(g.normal, g.carrier, g.ground)
    return align(normal)[:, :2].T @ tree.carry(g.axis, g.carrier, g.ground)


def axis_along_normal(tree: Tree, contact: Contact) -> SX:
    """Cosine of the angle between a wheel's axis and the ground's normal."""
    g = contact_geometry(tree, contact)
    assert g.axis is not None
    return dot(g.axis, g.normal)


def contact_rows(tree: Tree, contact: Contact, motion: Motion, u: list[SX]) -> Iterator[Row]:
    """Touch row, then the velocities that vanish, or that friction opposes."""
    g = contact_geometry(tree, contact)
    d, directions = g.directions(g.normal)
    Q = g.centre + g.radius * d
    residual = dot(g.normal, Q - g.touched)
    derivative = _Derivative(g, motion, u, d, Q)
    names = ("touch", *contact.wheel.rolling_rows)
    sticks = contact.wheel.is_ideal and set(names) >= {"touch", "longitudinal", "lateral"}
    wrenches = [UnitWrench(cross(Q, directions[name]), directions[name]) for name in names]
    found = row_entries(tree, g.carrier, g.ground, wrenches)
    for name, (entries, side) in zip(names, found, strict=True):
        t = directions[name]
        for link, way in g.spins:
            spin = tree.links[link]
            S_w = spin.rotation.outward(spin.S_w) if g.axis is None else way * g.axis
            values = S_w.T @ (g.radius * cross(d, t))
            for k, speed in enumerate(spin.speeds):
                if not values[k].is_zero():
                    entries[speed] = values[k]
        bias = cheaper_bias(tree, entries, derivative.row_bias(name, t, sticks))
        yield Row(
            f"{contact.name}.{name}",
            contact.name,
            "touch" if name == "touch" else "rolling",
            "m",
            entries,
            bias,
            residual=residual if name == "touch" else None,
            side=side,
        )


class _Derivative:
    r"""What differentiating the rows of one contact adds to A v_dot.

    The contact point moves: :math:`\dot Q - \dot c = R \dot d`, so that

    .. math:: \frac{d}{dt}[u_c + \omega \times R d] = a_c + \dot\omega \times R d
                                                      + \omega \times R \dot d,   \tag{C7}

    not the acceleration of the material point, which has :math:`\omega \times (\omega \times R d)`
    instead. Where all three velocities vanish the turning of t itself adds nothing.
    """

    def __init__(self, g: ContactGeometry, motion: Motion, u: list[SX], d: SX, Q: SX) -> None:
        tree = g.tree
        self.g = g
        zero = SX.zeros(3)

        def shown(x: list[SX], link: int) -> SX:
            return tree.carry(x[link], link, g.carrier) if link != ROOT else zero

        w_c = shown(motion.w, g.carrier)  # of the axes in which everything is shown
        self.w, w_dot = self._spinning(motion, w_c)
        w_g, w_dot_g = shown(motion.w, g.ground), shown(motion.w_dot, g.ground)
        self.w_c, self.w_g = w_c, w_g
        n_rate = cross(w_g - w_c, g.normal)  # as the carrier sees the normal turn
        self.rates = _direction_rates(g, n_rate, cross(w_g - w_c, g.tangent))
        d_dot = self.rates["d"] + cross(w_c, d)
        arm, arm_dot = g.radius * d, g.radius * d_dot
        centre_velocity = shown(u, g.carrier) + cross(w_c, g.centre)
        U_c = motion.U[g.carrier] if g.carrier != ROOT else SX.zeros(3, 3)
        centre_acceleration = shown(motion.a, g.carrier) + U_c @ g.centre
        wheel = centre_acceleration + cross(w_dot, arm) + cross(self.w, arm_dot)
        slip = centre_velocity + cross(self.w, arm)
        if g.ground != ROOT:
            origin = tree.carry_point(zero, g.ground, g.carrier)
            u_g = shown(u, g.ground)
            reach = Q - origin
            reach_dot = centre_velocity + arm_dot - u_g
            wheel -= shown(motion.a, g.ground) + cross(w_dot_g, reach) + cross(w_g, reach_dot)
            slip -= u_g + cross(w_g, reach)
        self.change, self.slip = wheel, slip  # (C7)

    def _spinning(self, motion: Motion, w_c: SX) -> tuple[SX, SX]:
        """Angular velocity and acceleration of the wheel, without its spin angle."""
        g = self.g
        relative = SX.zeros(3)
        for link, way in g.spins:
            spin = g.tree.links[link]
            own = g.tree.v[spin.speeds.start : spin.speeds.stop]
            relative += (
                spin.rotation.outward(spin.S_w @ own) if g.axis is None else way * g.axis * own
            )
        w_dot_c = motion.w_dot[g.carrier] if g.carrier != ROOT else SX.zeros(3)
        return w_c + relative, w_dot_c + cross(w_c, relative)

    def row_bias(self, name: str, t: SX, sticks: bool) -> SX:
        """Bias of one row; the direction's own turning counts unless nothing slips."""
        bias = dot(t, self.change)
        if sticks:
            return bias
        return bias + dot(self.rates[name] + cross(self.w_c, t), self.slip)


def _direction_rates(g: ContactGeometry, n_rate: SX, tangent_rate: SX) -> dict[str, SX]:
    """Rates of d and of all directions in the carrier's axes, by differentiating (C5)."""
    if g.axis is None:
        n, t1 = g.normal, g.tangent
        lateral = cross(n_rate, t1) + cross(n, tangent_rate)
        return {"d": -n_rate, "touch": n_rate, "longitudinal": tangent_rate, "lateral": lateral}
    if n_rate.is_zero():
        return dict.fromkeys(["d", *g.kind.components], SX.zeros(3))
    n = SX.sym("n", 3)
    d, directions = g.directions(n)
    stacked = ca.horzcat(d, *directions.values())
    n_dot = SX.sym("n_dot", 3)
    rate = ca.reshape(ca.jtimes(ca.vec(stacked), n, n_dot), stacked.shape)
    values = ca.substitute(rate, ca.vertcat(n, n_dot), ca.vertcat(g.normal, n_rate))
    return {name: values[:, i] for i, name in enumerate(["d", *directions])}


def turning_rows(tree: Tree, contact: Contact) -> dict[str, dict[int, SX]]:
    r"""Turning of a wheel against the ground, as entries of rows by speed.

    About the ground's normal, `scrub`, and about t_2, `rolling`, of a ball about t_1 too:

    .. math:: w_s = n \cdot (\omega - \omega_g), \qquad w_r = t_2 \cdot (\omega - \omega_g).
              \tag{C15}
    """
    g = contact_geometry(tree, contact)
    _, directions = g.directions(g.normal)
    t1, zero = directions["longitudinal"], SX.zeros(3)
    about = {"scrub": g.normal, "rolling": cross(g.normal, t1)}
    if g.axis is None:
        about["rolling_across"] = t1
    # about the carrier's origin: the wheel's own turns are added, as in the rows of its velocities
    wrenches = [UnitWrench(axis, zero) for axis in about.values()]
    found = row_entries(tree, g.carrier, g.ground, wrenches)
    rows = {}
    for (name, axis), (entries, _) in zip(about.items(), found, strict=True):
        for link, way in g.spins:
            spin = tree.links[link]
            S_w = spin.rotation.outward(spin.S_w) if g.axis is None else way * g.axis
            values = S_w.T @ axis
            for k, speed in enumerate(spin.speeds):
                if not values[k].is_zero():
                    entries[speed] = values[k]
        rows[name] = entries
    return rows
