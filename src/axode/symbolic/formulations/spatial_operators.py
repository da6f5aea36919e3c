"""Spatial operator algebra: arms propagated from base to tip, loops closed by tip forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.errors import NotApplicable
from axode.mechanism.elements.wheels import Contact
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import ROOT, SX, RigidInertia, Rotation, cross, dot, skew
from axode.symbolic.constraints.loops import Closure
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.base import AbstractFormulation, projected, with_definitions
from axode.symbolic.formulations.multipliers import regular_inertia
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import Row
from axode.symbolic.wheels.contacts import contact_geometry


def propagation(reach: SX) -> SX:
    r"""Takes the velocity of one point of a body to another, `reach` away.

    .. math:: \phi = \begin{bmatrix} 1 & 0 \\ -\hat l & 1 \end{bmatrix}           \tag{F20}
    """
    phi = SX.eye(6)
    phi[3:6, 0:3] = -skew(reach)  # (F20)
    return phi


@dataclass(frozen=True)
class OperatorLink:
    """A link: its joint's directions, constant in the link itself, and its inertia about O."""

    parent: int  # ROOT for those on the base
    origin: SX
    H: SX  # 6 x k
    rates: SX  # k
    inertia: RigidInertia


@dataclass(frozen=True)
class Base:
    """What the arms stand on: where, its velocity and its acceleration, gravity in it."""

    origin: SX = field(default_factory=lambda: SX.zeros(3))
    V: SX = field(default_factory=lambda: SX.zeros(6))
    alpha: SX = field(default_factory=lambda: SX.zeros(6))


@dataclass(frozen=True)
class Tip:
    """A point of a link that touches something else."""

    link: int
    point: SX


class Operators:
    r"""The stacked operators of links given parents first.

    .. math:: V = \phi (H \dot\theta + \sigma_b V_b), \qquad
              \alpha = \phi (H \ddot\theta + a + \sigma_b \alpha_b)               \tag{F21}
    """

    def __init__(self, links: Sequence[OperatorLink], base: Base | None = None) -> None:
        self.links = tuple(links)
        self.base = base or Base()

    @cached_property
    def phi(self) -> SX:
        """From every link to all that it carries."""
        phi = SX.eye(6 * len(self.links))
        for k, link in enumerate(self.links):
            j = link.parent
            while j != ROOT:
                reach = link.origin - self.links[j].origin
                phi[6 * k : 6 * k + 6, 6 * j : 6 * j + 6] = propagation(reach)
                j = self.links[j].parent
        return phi

    @cached_property
    def H(self) -> SX:
        """Directions of all joints."""
        return ca.diagcat(*[link.H for link in self.links])

    @cached_property
    def M(self) -> SX:
        """Inertia of all links about their origins."""
        blocks = []
        for link in self.links:
            h = skew(link.inertia.moment)
            mass = link.inertia.mass * SX.eye(3)
            blocks.append(ca.blockcat(link.inertia.tensor, h, h.T, mass))
        return ca.diagcat(*blocks)

    @cached_property
    def sigma_b(self) -> SX:
        """From the base to the links that stand on it."""
        rows = [
            propagation(link.origin - self.base.origin) if link.parent == ROOT else SX(6, 6)
            for link in self.links
        ]
        return ca.vertcat(*rows)

    @cached_property
    def rates(self) -> SX:
        """theta_dot."""
        return ca.vertcat(*[link.rates for link in self.links])

    @cached_property
    def phi_H(self) -> SX:
        """Velocities of all links for unit joint rates."""
        return self.phi @ self.H

    @cached_property
    def V(self) -> SX:
        """Velocities of all links.  (F21)"""
        return ca.densify(self.phi_H @ self.rates + self.phi @ (self.sigma_b @ self.base.V))

    def velocity(self, link: int) -> tuple[SX, SX]:
        """Velocity of one link or of the base: angular, and of its origin."""
        V = self.base.V if link == ROOT else self.V[6 * link : 6 * link + 6]
        return V[0:3], V[3:6]

    @cached_property
    def a(self) -> SX:
        r"""Accelerations that velocities alone cause, joint by joint.

        .. math:: a_k = \begin{bmatrix} \omega_p \times \omega_r \\ \omega_p \times (\omega_p
                  \times l) + (\omega_p + \omega_k) \times u_r \end{bmatrix}      \tag{F22}
        """
        found = []
        for k, link in enumerate(self.links):
            w_p = self.velocity(link.parent)[0]
            w_k = self.velocity(k)[0]
            relative = link.H @ link.rates
            before = self.base if link.parent == ROOT else self.links[link.parent]
            l = link.origin - before.origin
            linear = cross(w_p, cross(w_p, l)) + cross(w_p + w_k, relative[3:6])
            found.append(ca.vertcat(cross(w_p, relative[0:3]), linear))  # (F22)
        return ca.densify(ca.vertcat(*found))

    @cached_property
    def b(self) -> SX:
        """Forces that velocities alone need: (w x I w, w x (w x m l_c))."""
        found = []
        for k, link in enumerate(self.links):
            w = self.velocity(k)[0]
            h = cross(w, cross(w, link.inertia.moment))
            found.append(ca.vertcat(cross(w, link.inertia.tensor @ w), h))
        return ca.densify(ca.vertcat(*found))

    @cached_property
    def mass_matrix(self) -> SX:
        r"""H^T phi^T M phi H, the first part of

        .. math:: \mathcal T = \mathcal M \ddot\theta + \mathcal C + \mathcal L \alpha_b
                  + J^T F_t                                                       \tag{F23}
        """
        return ca.densify(self.phi_H.T @ (self.M @ self.phi_H))

    @cached_property
    def bias(self) -> SX:
        """C = H^T phi^T (M phi a + b), the base's acceleration not in it.  (F23)"""
        return ca.densify(self.phi_H.T @ (self.M @ (self.phi @ self.a) + self.b))

    @cached_property
    def L(self) -> SX:
        """H^T phi^T M phi sigma_b: what the base's acceleration asks of the joints.  (F23)"""
        return ca.densify(self.phi_H.T @ (self.M @ (self.phi @ self.sigma_b)))

    @cached_property
    def required(self) -> SX:
        """C + L alpha_b."""
        return self.bias + self.L @ self.base.alpha

    def sigma_t(self, tips: Sequence[Tip]) -> SX:
        """From the links to the tips: blocks phi_{t,n}."""
        sigma = SX(6 * len(tips), 6 * len(self.links))
        for i, tip in enumerate(tips):
            reach = tip.point - self.links[tip.link].origin
            sigma[6 * i : 6 * i + 6, 6 * tip.link : 6 * tip.link + 6] = propagation(reach)
        return sigma

    def jacobian(self, tips: Sequence[Tip]) -> SX:
        """J = sigma_t phi H."""
        return self.sigma_t(tips) @ self.phi_H

    def tip_velocities(self, tips: Sequence[Tip]) -> SX:
        """V_t."""
        return ca.densify(self.sigma_t(tips) @ self.V)

    def tip_accelerations(self, tips: Sequence[Tip], theta_dd: SX | None = None) -> SX:
        """alpha_t = J theta_dd + sigma_t phi (a + sigma_b alpha_b) + a_t."""
        inner = self.a + self.sigma_b @ self.base.alpha
        if theta_dd is not None:
            inner += self.H @ theta_dd
        own = []
        for tip in tips:
            w = self.velocity(tip.link)[0]
            reach = tip.point - self.links[tip.link].origin
            own.append(ca.vertcat(SX.zeros(3), cross(w, cross(w, reach))))
        return ca.densify(self.sigma_t(tips) @ (self.phi @ inner) + ca.vertcat(*own))


@dataclass(frozen=True)
class Meeting:
    """Where two links meet: the point, and the directions that rows hold there, world axes.

    A direction (n, f) holds n . (w_1 - w_2) + f . (v_1 - v_2), velocities of the two material
    points at the place where they meet.
    """

    first: int
    second: int
    point: SX
    directions: dict[str, SX]  # 6 x 1, by the row's name

    @property
    def links(self) -> list[int]:
        """Those of the two that move."""
        return [link for link in (self.first, self.second) if link != ROOT]


@dataclass(frozen=True)
class SixSteps:
    """Forward dynamics step by step, as the source counts them."""

    free: SX  # 1: accelerations with open loops
    tips: SX  # 2: those of the tips
    compliance: SX  # 3: J M^-1 J^T
    F_c: SX  # 4: closure forces, what the arms exert
    error: SX  # 5: what they change
    total: SX  # 6


class SpatialOperatorFormulation(AbstractFormulation):
    r"""Arms of the tree by (F21) to (F23); tip forces F_t = A~^T F_c hold loops and contacts.

    .. math:: \tilde A V_t = 0, \qquad F_c = (\tilde A \Lambda \tilde A^T)^{-1}
              (\tilde A \alpha^f + \dot{\tilde A} V_t + \tilde A \beta)           \tag{F25}

    Rows that follow from others were dropped before, so that the matrix in brackets is regular
    also for arms that lack freedoms.
    """

    name: ClassVar[str] = "spatial_operators"

    def __init__(self, system: System) -> None:
        super().__init__(system)
        ideal = [body.name for body in system.mechanism.bodies if body.is_idealised]
        if ideal and not regular_inertia(system):
            raise NotApplicable(
                f"formulation '{self.name}' opens the loops first, and nothing resists some "
                f"motion of the open tree: check {', '.join(ideal)}.\n"
                "  Give these bodies an inertia, or use another formulation."
            )

    @cached_property
    def operators(self) -> Operators:
        """phi, H, M, V, a, b of the tree; gravity as an upward acceleration of the base."""
        up = ca.vertcat(SX.zeros(3), -self.system.tree.gravity)
        return self.on_base(Base(alpha=up))

    def on_base(self, base: Base) -> Operators:
        """Return the same arms on a base that moves.  (F21)"""
        tree = self.system.tree
        links = []
        for i, (link, own) in enumerate(zip(tree.links, self.system.inertias, strict=True)):
            pose = tree.pose(i)
            turned = own.moved(Rotation.from_matrix(pose.R), SX.zeros(3))
            H = ca.vertcat(pose.R @ link.S_w, pose.R @ link.S_v)
            rates = tree.v[link.speeds.start : link.speeds.stop]
            if link is tree.links[-1]:  # quasi-velocities come last, and move nothing
                others = ca.vertsplit(tree.v)[self.system.W.shape[1] :]
                H, rates = ca.horzcat(H, SX(6, len(others))), ca.vertcat(rates, *others)
            links.append(OperatorLink(link.parent, pose.p, H, rates, turned))
        return Operators(links, base)

    # closure -----------------------------------------------------------------------------------

    @cached_property
    def _meetings(self) -> dict[str, Meeting]:
        tree = self.system.tree
        found = {loop.name: loop_meeting(Closure(tree, loop)) for loop in tree.mechanism.loops}
        return found | {c.name: contact_meeting(tree, c) for c in tree.mechanism.ideal_contacts}

    @cached_property
    def _ends(self) -> list[tuple[str, int]]:
        """Loop or contact and link of every tip; those without rows are left out."""
        owners = dict.fromkeys(row.owner for row in self._tip_rows)
        return [(owner, link) for owner in owners for link in self._meetings[owner].links]

    @property
    def closing_rows(self) -> list[Row]:
        """Rows that closure forces stand for; the kept ones come first."""
        return self.system.kept

    @property
    def _tip_rows(self) -> list[Row]:
        return [row for row in self.closing_rows if not row.on_joints]

    @cached_property
    def tips(self) -> list[Tip]:
        """Ends of all loops and contacts on links that move."""
        return [Tip(link, self._meetings[owner].point) for owner, link in self._ends]

    @cached_property
    def J(self) -> SX:
        """Jacobian of the tips."""
        return self.operators.jacobian(self.tips)

    @cached_property
    def annihilator(self) -> SX:
        """A~, rows by tips: A~ V_t = 0."""
        A = SX(len(self._tip_rows), 6 * len(self.tips))
        for r, row in enumerate(self._tip_rows):
            for i, sign in self._tips_of(row.owner):
                A[r, 6 * i : 6 * i + 6] = sign * self._direction(row).T
        return A

    def _tips_of(self, owner: str) -> list[tuple[int, int]]:
        meeting = self._meetings[owner]
        ends = [i for i, (name, _) in enumerate(self._ends) if name == owner]
        return [(i, 1 if self._ends[i][1] == meeting.first else -1) for i in ends]

    def _direction(self, row: Row) -> SX:
        return self._meetings[row.owner].directions[row.name.removeprefix(f"{row.owner}.")]

    @cached_property
    def closure(self) -> tuple[SX, SX]:
        r"""B and beta of the rows: B theta_dd + beta = 0.

        The place where two links meet may wander on both. With :math:`\dot q` its velocity,

        .. math:: \beta = \tilde A (\sigma_t \phi a + a_t) + \dot{\tilde A} V_t
                  + f \cdot [\omega_1 \times (\dot q - v_1) - \omega_2 \times (\dot q - v_2)]
                                                                                  \tag{F24}

        which for a wheel on firm ground, v_1 = 0, is the contact's own acceleration.
        """
        tree, ops = self.system.tree, self.operators
        rows, size = self.closing_rows, tree.v.shape[0]
        B, beta = SX(len(rows), size), SX.zeros(len(rows))
        held = [r for r, row in enumerate(rows) if not row.on_joints]
        if held:
            still = Operators(ops.links)  # no gravity: it moves both sides alike
            V_t, alpha_t = still.tip_velocities(self.tips), still.tip_accelerations(self.tips)
            A = self.annihilator
            B[held, :] = self.tip_closure
            rate = tree.time_derivative(ca.densify(A))
            beta[held] = A @ alpha_t + rate @ V_t + self.wandering(V_t)  # (F24)
        for r, row in enumerate(rows):
            if row.on_joints:
                beta[r] = row.bias
                for j, value in row.entries.items():
                    B[r, j] = value
        return B, beta

    @property
    def tip_closure(self) -> SX:
        """A~ J."""
        return self.annihilator @ self.J

    def wandering(self, V_t: SX) -> SX:
        """What the place where two links meet adds as it wanders on them.  (F24)"""
        found = []
        for row in self._tip_rows:
            q_dot = self.system.tree.time_derivative(self._meetings[row.owner].point)
            f, added = self._direction(row)[3:6], SX(0)
            for i, sign in self._tips_of(row.owner):
                w, v = V_t[6 * i : 6 * i + 3], V_t[6 * i + 3 : 6 * i + 6]
                added += sign * dot(f, cross(w, q_dot - v))
            found.append(added)
        return ca.vertcat(*found)

    # dynamics ----------------------------------------------------------------------------------

    @cached_property
    def mass_matrix(self) -> SX:
        """M of all joints, rotors included."""
        return self.operators.mass_matrix + ca.diag(self.system.forces.armature)

    @cached_property
    def _factor(self) -> Factor:
        return Factor.of(with_definitions(self.system, self.mass_matrix, self._no_force)[0])

    @property
    def _no_force(self) -> SX:
        return SX.zeros(self.system.tree.v.shape[0])

    @cached_property
    def six_steps(self) -> SixSteps:
        """Accelerations and closure forces for the inputs u.  (F25)"""
        forces = self.system.forces
        T = ca.densify(forces.B @ self.system.u) + forces.dissipative + forces.elastic
        T = with_definitions(self.system, self.mass_matrix, T)[1]
        free = self._factor.solve(T - self.operators.required)
        J = ca.densify(self.J)
        tips = self.operators.tip_accelerations(self.tips, free) if self.tips else SX.zeros(0)
        compliance = J @ self._factor.solve(J.T) if self.tips else SX(0, 0)
        if self.system.is_tree:
            return SixSteps(free, tips, compliance, SX.zeros(0), self._no_force, free)
        F_c, error = self._close(free)
        return SixSteps(free, tips, compliance, F_c, error, free + error)

    @cached_property
    def spread(self) -> SX:
        """M^-1 B^T: what unit closure forces do to the open arms."""
        return self._factor.solve(ca.densify(self.closure[0]).T)

    @cached_property
    def closure_compliance(self) -> SX:
        """B M^-1 B^T."""
        return ca.densify(self.closure[0] @ self.spread)

    def _close(self, free: SX) -> tuple[SX, SX]:
        """Closure forces and what they change, for the accelerations with open loops."""
        B, beta = self.closure
        F_c = Factor.of(self.closure_compliance).solve(B @ free + beta)  # (F25)
        return F_c, -self.spread @ F_c

    def forward_dynamics(self) -> SX:
        """The independent entries of step six."""
        return self.system.chosen(self.six_steps.total)

    def multipliers(self) -> SX:
        """Constraint forces of the kept rows: the arms feel the opposite of what they exert."""
        return -self.six_steps.F_c[: len(self.system.kept)]

    def accelerations(self, nu_dot: SX) -> SX:
        """All accelerations, from the independent ones and this closure's own bias."""
        if self.system.is_tree:
            return super().accelerations(nu_dot)
        bias = self.closure[1][: len(self.system.kept)]
        some = ca.densify(self.system.complement.particular(-bias))
        return ca.densify(self.Theta @ (nu_dot - self.system.chosen(some))) + some

    def inertia(self) -> SX:
        """Theta^T M Theta."""
        return projected(self.Theta, self.mass_matrix)

    def bias(self) -> SX:
        """Theta^T (M theta_dd + C) at zero nu_dot."""
        rest = self.accelerations(SX.zeros(len(self.system.independent)))
        return ca.densify(self.Theta.T @ (self.mass_matrix @ rest + self.operators.bias))

    def gravity(self) -> SX:
        """-Theta^T L alpha_b, the base accelerating upwards."""
        return -ca.densify(self.Theta.T @ (self.operators.L @ self.operators.base.alpha))

    def tree_forces(self, v_dot: SX) -> SX:
        """M v_dot + C + L alpha_b minus springs and dampers.  (F23)"""
        forces = self.system.forces
        need = self.mass_matrix @ v_dot + self.operators.required
        return need - forces.dissipative - forces.elastic


def loop_meeting(closure: Closure) -> Meeting:
    """Where a loop's joint holds its two links, and in which directions."""
    R, pairs = closure.tree.pose(closure.first).R, closure.directions
    turned = {id(x): R @ x for pair in pairs.values() for x in pair}  # once, though rows share some
    directions = {name: ca.vertcat(turned[id(n)], turned[id(f)]) for name, (n, f) in pairs.items()}
    return Meeting(closure.first, closure.second, closure.world_point, directions)


def contact_meeting(tree: Tree, contact: Contact) -> Meeting:
    """Where a wheel touches the ground, by (C5) in world axes."""
    g = contact_geometry(tree, contact)
    point, held = g.in_world()
    directions = {name: ca.vertcat(SX.zeros(3), t) for name, t in held.items()}
    return Meeting(g.wheel, g.ground, point, directions)
