"""Platform manipulators leg by leg, as the book models them.

First which body is the platform, and the chains that lead to it; then their equations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import Body
from axode.mechanism.elements.parts import Connection
from axode.numerics.tolerances import NEGLIGIBLE, SPANNING
from axode.symbolic.algebra.linear import Block
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    cross,
    dot,
    skew,
    symbolic_scalar,
    symbolic_vector,
    symmetric,
)
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.base import AbstractFormulation, projected
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.tree.generalized_forces import BodyLoad, body_loads, joint_forces
from axode.symbolic.tree.inertia import body_tensor
from axode.symbolic.tree.kinematics import Tree


@dataclass(frozen=True)
class LegEdge:
    """A joint between two links, of the tree or closing a loop."""

    name: str
    ends: tuple[int, int]
    speeds: tuple[str, ...]
    link: int | None = None  # of the tree: the link that it carries
    loop: Connection | None = None

    def beyond(self, link: int) -> int:
        """Link at the other end."""
        return self.ends[1] if self.ends[0] == link else self.ends[0]


@dataclass(frozen=True)
class LegTopology:
    """Joints of one leg in order from the ground, and the links that they pass.

    Attributes:
        name: Name of its joint on the ground.
        steps: Joints, each with the link before it.
        links: Links between ground and platform, each with the freedoms that lie before it.
    """

    name: str
    steps: tuple[tuple[LegEdge, int], ...]
    links: tuple[tuple[int, int], ...]

    @property
    def speeds(self) -> tuple[str, ...]:
        """Names of the freedoms, those of the joint that closes a loop included."""
        return tuple(name for edge, _ in self.steps for name in edge.speeds)


@dataclass(frozen=True)
class PlatformTopology:
    """A platform and the paths of its legs."""

    link: int
    floats: bool  # whether the tree holds it by a joint of its own that constrains nothing
    body: str
    legs: tuple[LegTopology, ...]


def platform_topology(tree: Tree) -> PlatformTopology:
    """Find the platform of a mechanism and its legs.

    Raises:
        NotApplicable: saying what is in the way.
    """
    mechanism = tree.mechanism
    if mechanism.contacts:
        raise refusal(f"'{mechanism.contacts[0].name}' rolls, and legs only have joints")
    if mechanism.prescribed:
        raise refusal(f"'{mechanism.prescribed[0].coordinate}' is prescribed")
    if mechanism.couplings:
        raise refusal(f"coupling '{mechanism.couplings[0].name}' relates joints outside the legs")
    edges = _edges(tree)
    link, floats = _platform_link(tree, edges)
    if floats:
        edges = [edge for edge in edges if edge.link != link]
    legs = tuple(_leg_path(tree, edges, edge, link) for edge in _touching(edges, ROOT))
    if not legs:
        raise refusal(f"nothing carries '{_name(tree, link)}'")
    reached = {link} | {i for leg in legs for i, _ in leg.links}
    for i in range(len(tree.links)):
        if i not in reached:
            raise refusal(f"'{_name(tree, i)}' belongs to no leg from the ground to the platform")
    return PlatformTopology(link, floats, _name(tree, link), legs)


def refusal(reason: str) -> NotApplicable:
    """Error for a mechanism without a platform on legs."""
    return NotApplicable(
        "formulation 'legs' and model.legs take a platform that is carried by legs from the "
        f"ground: {reason}.\n  Other formulations and functions do not need legs."
    )


def _edges(tree: Tree) -> list[LegEdge]:
    owners = {
        speed: connection.name
        for connection in tree.mechanism.connections
        for speed in connection.speeds
    }
    found = []
    for i, link in enumerate(tree.links):
        speeds = tuple(tree.speed_names[j] for j in link.speeds)
        found.append(LegEdge(owners[speeds[0]], (link.parent, i), speeds, link=i))
    for loop in tree.mechanism.loops:
        ends = (tree.body_link[loop.parent], tree.body_link[loop.child])
        found.append(LegEdge(loop.name, ends, loop.speeds, loop=loop))
    return found


def _touching(edges: list[LegEdge], link: int) -> list[LegEdge]:
    return [edge for edge in edges if link in edge.ends]


def _name(tree: Tree, link: int) -> str:
    bodies = [body for body, own in tree.body_link.items() if own == link]
    return bodies[0] if bodies else tree.speed_names[tree.links[link].speeds.start]


def _platform_link(tree: Tree, edges: list[LegEdge]) -> tuple[int, bool]:
    """The link that is free in the tree, else the one that three or more joints hold."""
    free = [i for i, link in enumerate(tree.links) if link.joint.description.is_free]
    if len(free) > 1:
        raise refusal(f"'{_name(tree, free[0])}' and '{_name(tree, free[1])}' both move freely")
    if free and tree.links[free[0]].parent != ROOT:
        raise refusal(f"'{_name(tree, free[0])}' moves freely, but not on the ground")
    if free:
        return free[0], True
    busy = [i for i in range(len(tree.links)) if len(_touching(edges, i)) > 2]
    if len(busy) == 1:
        return busy[0], False
    if not busy:
        raise refusal("no body is held by three joints or more, nor moves freely in the tree")
    raise refusal(f"'{_name(tree, busy[0])}' and '{_name(tree, busy[1])}' both branch")


def _leg_path(tree: Tree, edges: list[LegEdge], first: LegEdge, platform: int) -> LegTopology:
    """The chain that begins with a joint on the ground."""
    steps: list[tuple[LegEdge, int]] = []
    links: list[tuple[int, int]] = []
    here, edge, freedoms = ROOT, first, 0
    while True:
        steps.append((edge, here))
        freedoms += len(edge.speeds)
        here = edge.beyond(here)
        if here == platform:
            return LegTopology(first.name, tuple(steps), tuple(links))
        onward = [other for other in _touching(edges, here) if other is not edge]
        if here == ROOT or len(onward) != 1 or here in {i for i, _ in links}:
            where = "the ground" if here == ROOT else f"'{_name(tree, here)}'"
            raise refusal(f"the leg of '{first.name}' does not continue from {where}")
        links.append((here, freedoms))
        edge = onward[0]


FREEDOMS = 6  # of a leg that constrains nothing: as many as a free body has
PERTURBATION = 0.01  # change of parameters that shows whether axes meet only at their defaults


@dataclass(frozen=True)
class LegJoint:
    """One freedom of a leg: what a unit rate adds to the velocity of all that lies beyond it."""

    speed: int | None  # among all speeds; None for a freedom of the joint that closes the loop
    e: SX  # turning, world axes
    s: SX  # sliding, at the point
    at: SX

    def column(self, point: SX) -> SX:
        r"""Twist at a point for a unit rate.

        .. math:: \begin{bmatrix} e \\ s + e \times (c - p) \end{bmatrix}         \tag{F13}
        """
        return ca.vertcat(self.e, self.s + cross(self.e, point - self.at))  # (F13)


@dataclass(frozen=True)
class ClosingJoint:
    """The joint of a leg that closes a loop, seen on the way to the platform."""

    name: str
    closure: Closure
    towards: int  # the link behind it
    beyond: tuple[int, ...]  # links from there to the platform, which is not among them


@dataclass(frozen=True)
class Leg:
    """A chain of joints from the ground to the platform."""

    name: str
    joints: tuple[LegJoint, ...]
    links: tuple[tuple[int, int], ...]  # link, and how many of the joints lie before it
    closing: ClosingJoint | None  # None for the leg that the tree goes through

    def columns(self, point: SX, before: int | None = None) -> SX:
        """Twists at a point for unit rates of the first joints."""
        found = SX(6, len(self.joints))
        for k, joint in enumerate(self.joints[:before]):
            found[:, k] = joint.column(point)
        return found


@dataclass(frozen=True)
class Platform:
    """A body that several legs carry."""

    link: int
    floats: bool  # whether the tree holds it by a joint of its own that constrains nothing
    legs: tuple[Leg, ...]
    centre: SX  # C_M in the world


def find_platform(system: System) -> Platform:
    """The platform of a mechanism, or a refusal that says what is in the way."""
    tree = system.tree
    paths = platform_topology(tree)
    legs = tuple(_leg(tree, path) for path in paths.legs)
    return Platform(paths.link, paths.floats, legs, _centre(tree, paths.link))


def require_six_freedoms(system: System, platform: Platform) -> None:
    """Refuse platforms whose legs, or which themselves, have not six freedoms.

    Raises:
        NotApplicable: naming the first leg with more or fewer, or the quasi-velocities.
    """
    for leg in platform.legs:
        if len(leg.joints) != FREEDOMS:
            raise NotApplicable(
                "formulation 'legs' and the matrices Y and Z take legs of six freedoms: the leg of "
                f"'{leg.name}' has {len(leg.joints)} freedoms from the ground to the platform.\n"
                "  Other formulations take it; model.legs has its Jacobian and its wrench."
            )
    if system.definitions:
        names = ", ".join(row.owner for row in system.definitions)
        raise NotApplicable(
            "formulation 'legs' and the matrices Y and Z take speeds of joints as independent "
            f"ones, and no quasi-velocities: {names}.\n  Use another formulation."
        )
    if len(system.independent) != FREEDOMS:
        raise NotApplicable(
            f"formulation 'legs' takes platforms with six freedoms; '{system.mechanism.name}' "
            f"has {len(system.independent)}.\n  Use another formulation."
        )


def _leg(tree: Tree, path: LegTopology) -> Leg:
    joints: list[LegJoint] = []
    closing = None
    for k, (edge, before) in enumerate(path.steps):
        if edge.loop is not None:  # which way its motions count matters to nothing
            closure = Closure(tree, edge.loop)
            beyond = tuple(link for link, _ in path.links[k:])
            closing = ClosingJoint(edge.name, closure, edge.beyond(before), beyond)
            free = closure.joint.free_directions(closure)
            joints += [LegJoint(None, e, s, closure.world_point) for e, s in free]
        else:
            joints += _joints(tree, edge, before)
    return Leg(path.name, tuple(joints), path.links, closing)


def _joints(tree: Tree, edge: LegEdge, start: int) -> list[LegJoint]:
    assert edge.link is not None
    link, pose = tree.links[edge.link], tree.pose(edge.link)
    sign = 1 if start == link.parent else -1  # seen from beyond, the parent moves the other way
    return [
        LegJoint(j, sign * (pose.R @ link.S_w[:, k]), sign * (pose.R @ link.S_v[:, k]), pose.p)
        for k, j in enumerate(link.speeds)
    ]


def _centre(tree: Tree, link: int) -> SX:
    """Mass centre of the platform; its origin if it weighs nothing."""
    bodies = [b for b in tree.mechanism.bodies if tree.body_link[b.name] == link]
    places = [
        tree.body_world_pose(b.name).point(symbolic_vector(b.com, tree.values)) for b in bodies
    ]
    if len(bodies) == 1:
        return places[0]
    masses = [symbolic_scalar(b.mass, tree.values) for b in bodies]
    whole = sum(masses, SX(0))
    if whole.is_zero():
        return tree.pose(link).p
    return sum((m * c for m, c in zip(masses, places, strict=True)), SX.zeros(3)) / whole


def spherical_joints(system: System, leg: Leg) -> tuple[tuple[int, int, int], SX] | None:
    """Three joints one after the other that turn about a common point, and that point.

    They must do so at all configurations that were looked at, and whatever the parameters are.
    """
    tree, count = system.tree, len(leg.joints)
    stacked = ca.horzcat(*[ca.vertcat(joint.e, joint.s, joint.at) for joint in leg.joints])
    function = ca.Function("axes", [tree.q, tree.t, tree.parameters], [stacked])
    usual = system.defaults
    other = usual + PERTURBATION * (1 + np.abs(usual)) * (1 + np.arange(usual.size) / 7)
    seen = [
        np.array(function(q, 0.0, p))
        for q in (*system.samples, system.home)
        for p in (usual, other)
    ]
    for first in range(count - 2):
        three = (first, first + 1, first + 2)
        for k in three:
            if all(_concurrent(axes[:, list(three)], axes[6:9, k]) for axes in seen):
                return three, leg.joints[k].at
    return None


def _concurrent(axes: np.ndarray, point: np.ndarray) -> bool:
    e, s, at = axes[0:3], axes[3:6], axes[6:9]
    if np.abs(s).max() > 0 or abs(np.linalg.det(e)) < SPANNING:
        return False
    return bool(np.abs(np.cross(e.T, (point[:, np.newaxis] - at).T)).max() < NEGLIGIBLE)


@dataclass(frozen=True)
class Elimination:
    """A leg's twist equation with all rates but one eliminated: zeta q_dot = y . t_M.  (F15)"""

    u: SX | None  # of a leg with a spherical joint
    zeta: SX
    y: SX  # 6


class LegInverse:
    """The inverse of a leg's Jacobian at the platform's mass centre."""

    def __init__(self, system: System, leg: Leg, centre: SX) -> None:
        self.leg, self.centre = leg, centre
        self.J = leg.columns(centre)
        self.spherical = spherical_joints(system, leg)

    @property
    def closed_form(self) -> bool:
        """Return whether three by three blocks suffice."""
        return self.spherical is not None

    @cached_property
    def matrix(self) -> SX:
        r"""J^{-1}, through the centre O of a spherical joint if the leg has one.

        .. math:: J^{-1} = \begin{bmatrix} K_{11}^{-1} - K_{11}^{-1} K_{12} K_{22}^{-1} D &
                  -K_{11}^{-1} K_{12} K_{22}^{-1} \\ K_{22}^{-1} D & K_{22}^{-1} \end{bmatrix},
                  \qquad D = \widehat{c_M - o}                                    \tag{F14}
        """
        if self.spherical is None:
            return Block.of(ca.densify(self.J)).solve(SX.eye(FREEDOMS))
        three, O = self.spherical
        rest = self._rest
        K = self.leg.columns(O)
        K11, K12, K22 = K[0:3, list(three)], K[0:3, rest], K[3:6, rest]
        D = skew(self.centre - O)
        others = Block.of(ca.densify(K22)).solve(ca.horzcat(D, SX.eye(3)))
        turning = ca.horzcat(SX.eye(3), SX(3, 3)) - K12 @ others
        inverse = SX(FREEDOMS, FREEDOMS)
        inverse[list(three), :] = Block.of(ca.densify(K11)).solve(turning)  # (F14)
        inverse[rest, :] = others
        return ca.densify(inverse)

    @property
    def _rest(self) -> list[int]:
        assert self.spherical is not None
        return [k for k in range(FREEDOMS) if k not in self.spherical[0]]

    def eliminate(self, k: int) -> Elimination:
        r"""All rates but the k-th gone from J theta_dot = t_M.

        .. math:: u = w_l \times w_m, \quad \zeta = u \cdot w_k, \quad
                  y = \begin{bmatrix} -r \times u \\ u \end{bmatrix}, \quad
                  \zeta \dot\theta_k = y^T t_M                                    \tag{F15}

        w are the velocities that the three other joints give to O, r leads from O to C_M.
        """
        if self.spherical is None or k in self.spherical[0]:
            return Elimination(None, SX(1), self.matrix[k, :].T)
        O, rest = self.spherical[1], self._rest
        place = rest.index(k)
        l, m = rest[(place + 1) % 3], rest[(place + 2) % 3]
        w_k, w_l, w_m = (self.leg.joints[j].column(O)[3:6] for j in (k, l, m))
        u = cross(w_l, w_m)
        return Elimination(u, dot(u, w_k), ca.vertcat(-cross(self.centre - O, u), u))  # (F15)


class Bodies:
    """Some bodies and their twists for unit rates: what they add to I, C and gravity."""

    def __init__(self, tree: Tree, columns: list[tuple[Body, SX]], rates: SX) -> None:
        self.tree, self.rates, self.bodies = tree, rates, [body for body, _ in columns]
        self.U = ca.densify(ca.vertcat(SX(0, rates.shape[0]), *[U for _, U in columns]))

    @cached_property
    def M(self) -> SX:
        """diag(I_i, m_i 1)."""
        blocks = []
        for body in self.bodies:
            R, values = self.tree.body_world_pose(body.name).R, self.tree.values
            mass = symbolic_scalar(body.mass, values)
            blocks += [symmetric(R @ body_tensor(body, values) @ R.T), mass * SX.eye(3)]
        return ca.diagcat(*blocks) if blocks else SX(0, 0)

    @cached_property
    def W(self) -> SX:
        """diag(w_i^, 0)."""
        twists = self.U @ self.rates
        blocks = [
            ca.diagcat(skew(twists[6 * i : 6 * i + 3]), SX(3, 3)) for i in range(len(self.bodies))
        ]
        return ca.diagcat(*blocks) if blocks else SX(0, 0)

    @cached_property
    def inertia(self) -> SX:
        """U^T M U."""
        return projected(self.U, self.M)

    @cached_property
    def coriolis(self) -> SX:
        """U^T M U_dot + U^T W M U."""
        U_dot = self.tree.time_derivative(self.U)
        return ca.densify(self.U.T @ (self.M @ U_dot + self.W @ self.M @ self.U))

    @cached_property
    def weight(self) -> SX:
        """Gravity on the rates."""
        blocks = [SX.zeros(0)]
        for body in self.bodies:
            mass = symbolic_scalar(body.mass, self.tree.values)
            blocks += [SX.zeros(3), mass * self.tree.gravity]
        return ca.densify(self.U.T @ ca.vertcat(*blocks))


class LegModel:
    """One leg in motion, on its own six rates."""

    def __init__(self, system: System, platform: Platform, leg: Leg) -> None:
        self.system, self.leg = system, leg
        self.inverse = LegInverse(system, leg, platform.centre)
        self.J = ca.densify(self.inverse.J)

    def connect(self, T: SX, nu: SX) -> None:
        """Say what moves the platform: t_M = T nu."""
        self.L = self.inverse.matrix @ T  # (F16)
        self.rates = self.L @ nu

    @cached_property
    def J_dot(self) -> SX:
        """Rate of J along the motion."""
        return self.system.tree.time_derivative(self.J)

    @cached_property
    def bodies(self) -> Bodies:
        """Bodies of the leg without the platform."""
        tree, found = self.system.tree, []
        before = dict(self.leg.links)
        for body in tree.mechanism.bodies:
            link = tree.body_link[body.name]
            if link in before:
                at = tree.body_world_pose(body.name).point(symbolic_vector(body.com, tree.values))
                found.append((body, self.leg.columns(at, before[link])))
        return Bodies(tree, found, self.rates)

    def forces(self, on_speeds: SX, loads: list[BodyLoad]) -> SX:
        """Forces tau_J on the leg's joints, given those on all speeds, and loads on its bodies."""
        tree, before = self.system.tree, dict(self.leg.links)
        own = [SX(0) if j.speed is None else on_speeds[j.speed] for j in self.leg.joints]
        tau = ca.vertcat(*own)
        for load in loads:
            link = tree.body_link[load.body]
            if link in before:
                columns = self.leg.columns(load.point, before[link])
                tau += columns.T @ ca.vertcat(load.moment, load.force)
        return ca.densify(tau)

    @cached_property
    def I(self) -> SX:  # noqa: E743
        """I_J, rotors included."""
        armature = self.system.forces.armature
        own = [SX(0) if j.speed is None else armature[j.speed] for j in self.leg.joints]
        return self.bodies.inertia + ca.diag(ca.vertcat(*own))

    @property
    def C(self) -> SX:
        """C_J."""
        return self.bodies.coriolis

    def accelerations(self, t_dot: SX) -> SX:
        """theta_dd of the leg for an acceleration of the platform."""
        return self.inverse.matrix @ (t_dot - self.J_dot @ self.rates)

    def wrench(self, t_dot: SX, tau: SX) -> SX:
        r"""What the leg exerts on the platform at C_M, given forces tau on its six joints.

        .. math:: w_J = J_J^{-T} (\tau_J + \gamma_J - I_J \ddot\theta_J - C_J \dot\theta_J)
                                                                                  \tag{F19}
        """
        left = tau + self.bodies.weight - self.I @ self.accelerations(t_dot) - self.C @ self.rates
        return self.inverse.matrix.T @ left  # (F19)


def motor_map(system: System, Theta: SX) -> SX:
    """Forces on the independent speeds of unit forces on the motors' joints."""
    B = system.forces.B[:, : system.forces.motors]
    driven = [next(j for j in range(B.shape[0]) if B.has_nz(j, m)) for m in range(B.shape[1])]
    return ca.densify(Theta[driven, :].T)


class LegsFormulation(AbstractFormulation):
    r"""t_M = T nu moves the platform, L_J = J_J^{-1} T each leg.

    .. math:: M(q) = T^T M_M T + \sum_J L_J^T I_J L_J, \qquad
              N = T^T (M_M \dot T + W_M M_M T) + \sum_J L_J^T (I_J \dot L_J + C_J L_J) \tag{F17}

    so that :math:`M \dot\nu + N \nu = \tau^W + \gamma + \Lambda \phi`, Lambda being the identity
    where the independent speeds are those of the motors.
    """

    name: ClassVar[str] = "legs"

    def __init__(self, system: System) -> None:
        super().__init__(system)
        self.platform = find_platform(system)
        require_six_freedoms(system, self.platform)
        own = system.tree.links[self.platform.link].speeds
        if self.platform.floats and not system.forces.armature[own.start : own.stop].is_zero():
            raise NotApplicable(
                "formulation 'legs' takes rotors on the joints of legs; one turns with a speed of "
                "the free platform itself.\n  Use another formulation."
            )

    @cached_property
    def legs(self) -> list[LegModel]:
        """J, L, I, C and the rest, leg by leg."""
        for model in self._unconnected:
            model.connect(self.T, self._nu)
        return self._unconnected

    @cached_property
    def _unconnected(self) -> list[LegModel]:
        return [LegModel(self.system, self.platform, leg) for leg in self.platform.legs]

    @property
    def _nu(self) -> SX:
        return self.system.chosen(self.system.tree.v)

    # how the independent speeds move the platform ----------------------------------------------

    @cached_property
    def _where(self) -> dict[int, tuple[int, int]]:
        """Leg and place in it of every speed of a leg."""
        return {
            joint.speed: (number, k)
            for number, leg in enumerate(self.platform.legs)
            for k, joint in enumerate(leg.joints)
            if joint.speed is not None
        }

    @cached_property
    def free_speeds(self) -> SX:
        """The free platform's own speeds for a unit twist t_M: 6 x 6."""
        pose = self.system.tree.pose(self.platform.link)
        arm = skew(self.platform.centre - pose.p)
        return ca.blockcat(pose.R.T, SX(3, 3), pose.R.T @ arm, pose.R.T)

    @cached_property
    def eliminations(self) -> list[Elimination]:
        """u, zeta and y of every independent speed.  (F15)"""
        found = []
        for j in self.system.independent:
            if j in self._where:
                number, k = self._where[j]
                found.append(self._unconnected[number].inverse.eliminate(k))
            else:
                first = self.system.tree.links[self.platform.link].speeds.start
                found.append(Elimination(None, SX(1), self.free_speeds[j - first, :].T))
        return found

    @cached_property
    def Y(self) -> SX:
        """Rows y^T: Z nu = Y t_M."""
        return ca.densify(ca.vertcat(*[e.y.T for e in self.eliminations]))

    @cached_property
    def Z(self) -> SX:
        """diag(zeta)."""
        return ca.diag(ca.vertcat(*[e.zeta for e in self.eliminations]))

    @cached_property
    def T(self) -> SX:
        r"""t_M = T nu.

        .. math:: T = Y^{-1} Z, \qquad L_J = J_J^{-1} T                           \tag{F16}
        """
        return Block.of(self.Y).solve(ca.densify(self.Z))  # (F16)

    @property
    def t_M(self) -> SX:
        """Twist of the platform at its mass centre, world axes."""
        return self.T @ self._nu

    @cached_property
    def _turning(self) -> SX:
        r"""E with T_dot = T E, row by row without differentiating an inverse.

        .. math:: E_j = \zeta_j^{-1} y_j^T \dot J_J L_J, \qquad \dot T = T E, \qquad
                  \dot L_J = J_J^{-1} (\dot T - \dot J_J L_J)                     \tag{F18}
        """
        rows = []
        for j, e in zip(self.system.independent, self.eliminations, strict=True):
            if j in self._where:
                leg = self.legs[self._where[j][0]]
                rows.append((e.y.T @ leg.J_dot) @ leg.L / e.zeta)  # (F18)
            else:
                rows.append(-self.system.tree.time_derivative(e.y.T) @ self.T)
        return ca.densify(ca.vertcat(*rows))

    @cached_property
    def T_dot(self) -> SX:
        """Rate of T."""
        return self.T @ self._turning

    def L_dot(self, leg: LegModel) -> SX:
        """Rate of L_J.  (F18)"""
        return leg.inverse.matrix @ (self.T_dot - leg.J_dot @ leg.L)

    def twist_rate(self, nu_dot: SX) -> SX:
        """t_M_dot for accelerations of the independent speeds."""
        return self.T @ (nu_dot + self._turning @ self._nu)

    # dynamics ----------------------------------------------------------------------------------

    @cached_property
    def platform_bodies(self) -> Bodies:
        """What rides on the platform, on its twist."""
        tree, found = self.system.tree, []
        for body in tree.mechanism.bodies:
            if tree.body_link[body.name] == self.platform.link:
                pose = tree.body_world_pose(body.name)
                reach = pose.point(symbolic_vector(body.com, tree.values)) - self.platform.centre
                columns = ca.blockcat(SX.eye(3), SX(3, 3), -skew(reach), SX.eye(3))
                found.append((body, columns))
        return Bodies(tree, found, self.t_M)

    def inertia(self) -> SX:
        """M(q).  (F17)"""
        whole = projected(self.T, self.platform_bodies.inertia)
        for leg in self.legs:
            whole += projected(leg.L, leg.I)
        return whole

    @cached_property
    def N(self) -> SX:
        """N(q, nu), the book's matrix.  (F17)"""
        top = self.platform_bodies
        whole = self.T.T @ (top.inertia @ self.T_dot + top.coriolis @ self.T)
        for leg in self.legs:
            whole += leg.L.T @ (leg.I @ self.L_dot(leg) + leg.C @ leg.L)
        return ca.densify(whole)

    def coriolis(self) -> SX:
        """N."""
        return self.N

    def bias(self) -> SX:
        """N nu, without forming N."""
        t_dot = self.twist_rate(SX.zeros(FREEDOMS))
        top = self.platform_bodies
        force = self.T.T @ (top.inertia @ t_dot + top.coriolis @ self.t_M)
        for leg in self.legs:
            force += leg.L.T @ (leg.I @ leg.accelerations(t_dot) + leg.C @ leg.rates)
        return ca.densify(force)

    def gravity(self) -> SX:
        """T^T of the platform's weight and L_J^T of the legs'."""
        force = self.T.T @ self.platform_bodies.weight
        for leg in self.legs:
            force += leg.L.T @ leg.bodies.weight
        return ca.densify(force)

    @cached_property
    def Lambda(self) -> SX:
        """Columns L_J^T e_k of the motors: forces of unit motor forces on nu."""
        return motor_map(self.system, self._theta)

    def wrenches(self, nu_dot: SX) -> SX:
        """What every leg exerts on the platform at C_M, one row each, under the inputs u.  (F19)"""
        system, motors = self.system, self.system.forces.motors
        on_speeds = joint_forces(system.tree)
        on_speeds += ca.densify(system.forces.B[:, :motors] @ system.u[:motors])
        loads = body_loads(system.tree, system.u[motors:])
        t_dot = self.twist_rate(nu_dot)
        rows = [leg.wrench(t_dot, leg.forces(on_speeds, loads)).T for leg in self.legs]
        return ca.densify(ca.vertcat(*rows))

    @property
    def Theta(self) -> SX:
        """All speeds for unit independent ones, from the legs."""
        return self._theta

    @cached_property
    def _theta(self) -> SX:
        return self._all_speeds([leg.L for leg in self.legs], self.free_speeds @ self.T)

    def _all_speeds(self, legs: list[SX], free: SX) -> SX:
        """Rows of every speed, picked from those of the legs and of the free platform."""
        tree = self.system.tree
        rows = []
        first = tree.links[self.platform.link].speeds.start
        for j in range(tree.v.shape[0]):
            if j in self._where:
                number, k = self._where[j]
                rows.append(legs[number][k, :])
            else:
                rows.append(free[j - first, :])
        return ca.densify(ca.vertcat(*rows))

    def accelerations(self, nu_dot: SX) -> SX:
        """All accelerations, leg by leg."""
        t_dot = self.twist_rate(nu_dot)
        free = self.free_speeds @ t_dot
        if self.platform.floats:
            free += self.system.tree.time_derivative(ca.densify(self.free_speeds)) @ self.t_M
        return self._all_speeds([leg.accelerations(t_dot) for leg in self.legs], free)

    def tree_forces(self, v_dot: SX) -> SX:
        """Force on the opened mechanism, which no single leg has, by the book's U."""
        return ComplementFormulation(self.system).tree_forces(v_dot)
