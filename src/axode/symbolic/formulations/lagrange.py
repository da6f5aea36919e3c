"""Energies, and Lagrange's equations from them by automatic differentiation."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.symbolic.algebra.spatial import SX, cross, dot
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.base import AbstractFormulation, projected
from axode.symbolic.tree.kinematics import Tree


def kinetic_energy(system: System) -> SX:
    r"""Kinetic energy of all links and rotors at the speeds v.

    .. math:: \sum \tfrac12 m u^2 + u \cdot (\omega \times h) + \tfrac12 \omega^T I \omega \tag{D8}
    """
    tree = system.tree
    w, u = tree.velocities(tree.v)
    energy = SX(0)
    for own, w_i, u_i in zip(system.inertias, w, u, strict=True):
        energy += own.mass * dot(u_i, u_i) / 2 + dot(u_i, cross(w_i, own.moment))
        energy += dot(w_i, own.tensor @ w_i) / 2  # (D8)
    return energy + dot(system.forces.armature, tree.v * tree.v) / 2


def potential_energy(system: System, *, springs: bool = True) -> SX:
    r"""Potential energy of gravity, zero with all mass centres at the origin, and of springs.

    .. math:: -\sum g \cdot (m p + R h)                                           \tag{D9}
    """
    tree = system.tree
    energy = SX(0)
    for i, own in enumerate(system.inertias):
        pose = tree.pose(i)
        energy -= dot(tree.gravity, own.mass * pose.p + pose.R @ own.moment)  # (D9)
    return energy + (system.forces.elastic_energy if springs else 0)


def energies(system: System) -> SX:
    """Kinetic and potential energy, stacked."""
    return ca.vertcat(kinetic_energy(system), potential_energy(system))


class LagrangeFormulation(AbstractFormulation):
    r"""Energies differentiated on the coordinates, then carried to the speeds by N.

    With v = N^+ q_dot put into the kinetic energy,

    .. math:: N^T \left( \frac{d}{dt} \frac{\partial L}{\partial \dot q}
              - \frac{\partial L}{\partial q} \right) = \tilde\tau + \tilde\delta + A^T \lambda.
                                                                                  \tag{F9}

    Unit quaternions are one coordinate too many; the force that keeps them unit is normal to them
    and N^T removes it.
    """

    name: ClassVar[str] = "lagrange"

    @cached_property
    def _derivatives(self) -> tuple[SX, SX, SX]:
        """I~, h~ at zero acceleration and the gravity force on all speeds, from the energies."""
        system = self.system.free
        tree = system.tree
        q, v, N = tree.q, tree.v, tree.N
        q_dot = SX.sym("q_dot", q.shape[0])
        energy = kinetic_energy(system)
        energy = ca.substitute(energy, v, ca.densify(rate_inverse(tree) @ q_dot))
        momentum = ca.gradient(energy, q_dot)
        mass = ca.hessian(energy, q_dot)[0]
        N_dot_v = tree.time_derivative(N @ v)
        h = ca.jtimes(momentum, q, q_dot) + mass @ N_dot_v - ca.gradient(energy, q)  # (F9)
        inertia, h = (ca.substitute(x, q_dot, N @ v) for x in (mass, h))
        inertia = projected(N, inertia) if q.shape[0] else inertia
        weight = -N.T @ ca.gradient(potential_energy(system, springs=False), q)
        return inertia, ca.densify(N.T @ h), ca.densify(weight)

    @property
    def tree_inertia(self) -> SX:
        """I~, the second derivative of kinetic energy."""
        return self._derivatives[0]

    def inertia(self) -> SX:
        """I = Theta^T I~ Theta."""
        return projected(self.Theta, self.tree_inertia)

    def bias(self) -> SX:
        """Theta^T (I~ sigma + h~), sigma by differentiating Theta nu + s."""
        system = self.system
        nu = system.chosen(system.tree.v)
        held = SX.sym("nu", nu.shape[0])
        sigma = system.tree.time_derivative(system.complement.speeds(held))
        sigma = ca.substitute(sigma, held, nu)
        return ca.densify(self.Theta.T @ (self.tree_inertia @ sigma + self._derivatives[1]))

    def gravity(self) -> SX:
        """-Theta^T N^T dV/dq."""
        return ca.densify(self.Theta.T @ self._derivatives[2])

    def tree_forces(self, v_dot: SX) -> SX:
        """I~ v_dot + h~ minus gravity, springs and dampers."""
        inertia, h, weight = self._derivatives
        forces = self.system.forces
        return inertia @ v_dot + h - weight - forces.elastic - forces.dissipative


def rate_inverse(tree: Tree) -> SX:
    """N^+ with N^+ N = 1 on unit quaternions: (N^T N)^{-1} N^T.

    Columns of N are orthogonal: those of a quaternion have length one half, all others length one.
    """
    quaternion_rows = {i for four in tree.quaternions for i in four}
    N = ca.sparsify(tree.N)
    columns = range(N.shape[1])
    scale = [4.0 if any(N.has_nz(i, j) for i in quaternion_rows) else 1.0 for j in columns]
    return ca.diag(ca.DM(scale)) @ N.T
