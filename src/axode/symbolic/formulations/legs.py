"""Platform manipulators leg by leg, as the book models them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.errors import NotApplicable
from axode.mechanism.elements.bodies import Body
from axode.symbolic.algebra.frames import symbolic_scalar, symbolic_vector
from axode.symbolic.algebra.linear import Block
from axode.symbolic.algebra.spatial import SX, cross, dot, skew, symmetric
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.base import AbstractFormulation, projected
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.formulations.leg_chains import (
    FREEDOMS,
    Leg,
    Platform,
    find_platform,
    require_six_freedoms,
    spherical_joints,
)
from axode.symbolic.tree.generalized_forces import BodyLoad, body_loads, joint_forces
from axode.symbolic.tree.inertia import body_tensor
from axode.symbolic.tree.kinematics import Tree


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
