"""What every formulation offers, and what follows from its inertia and bias alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import casadi as ca

from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, symmetric
from axode.symbolic.constraints.system import System
from axode.symbolic.tree.rows import column_of, matrix_of


class AbstractFormulation(ABC):
    r"""One derivation of :math:`I \dot\nu + C \nu = \tau + \gamma + \delta`.

    Expressions are of q, all speeds v, t, the inputs and the parameters; v = Theta nu + s is put in
    afterwards. Where time is explicit, `bias` holds more than C nu.             (F1)
    """

    name: ClassVar[str]

    def __init__(self, system: System) -> None:
        self.system = system

    @abstractmethod
    def inertia(self) -> SX:
        """I, n x n."""

    @abstractmethod
    def bias(self) -> SX:
        """C nu and what explicit time adds, n."""

    @abstractmethod
    def gravity(self) -> SX:
        """Generalized gravity on the independent speeds, n."""

    def coriolis(self) -> SX:
        r"""C = T^T M \dot T + T^T W M T, n x n: the one matrix all formulations share.  (F2)"""
        from axode.symbolic.formulations.explicit_complement import ComplementFormulation

        return ComplementFormulation(self.system).coriolis()

    @property
    def Theta(self) -> SX:
        """Complement on the independent speeds."""
        return self.system.complement.Theta

    def tau(self) -> SX:
        """Generalized force of the inputs: Theta^T B u."""
        return _dense(self.Theta.T @ (self.system.forces.B @ self.system.u))

    def gamma(self) -> SX:
        """Generalized conservative force: gravity and springs."""
        return self.gravity() + _dense(self.Theta.T @ self.system.forces.elastic)

    def delta(self) -> SX:
        """Generalized dissipative force."""
        return _dense(self.Theta.T @ self.system.forces.dissipative)

    def forward_dynamics(self) -> SX:
        """Independent accelerations for the inputs u."""
        force = self.tau() + self.gamma() + self.delta() - self.bias()
        return Factor.of(self.inertia()).solve(force)

    def required(self, nu_dot: SX) -> tuple[SX, SX]:
        """Generalized force that inputs must give for accelerations, and the map they give it by.

        Both on whatever independent speeds the formulation finds cheap.
        """
        need = self.inertia() @ nu_dot + self.bias() - self.gamma() - self.delta()
        return need, _dense(self.Theta.T @ self.system.forces.B)

    def required_inertia(self) -> SX:
        """Inertia on the same independent speeds as `required`."""
        return self.inertia()

    def hold(self, held: list[int], force: SX) -> SX:
        r"""Forces that keep some of these speeds at rest while a force moves the others.

        :math:`r_h - I_{hf} I_{ff}^{-1} r_f`, one for each held speed.            (D20)
        """
        inertia = self.required_inertia()
        free = [j for j in range(inertia.shape[0]) if j not in set(held)]
        yielding = Factor.of(inertia[free, free]).solve(force[free])
        return force[held] - inertia[held, free] @ yielding  # (D20)

    def on_independent(self, force: SX) -> SX:
        """A force on the speeds of `required` as one on the independent speeds."""
        return force

    def accelerations(self, nu_dot: SX) -> SX:
        """All accelerations, from the independent ones."""
        c = self.system.complement
        return c.expand(c.to_base_acceleration(nu_dot)) + c.sigma_0

    @abstractmethod
    def tree_forces(self, v_dot: SX) -> SX:
        """I~ v_dot + h~ minus everything that acts but the inputs: what u and lambda must give."""

    def multipliers(self) -> SX:
        r"""Constraint forces of the kept rows: :math:`A^T \lambda = \tilde I \dot v + \tilde h
        - \tilde\tau`.                                                            \tag{F3}
        """
        v_dot = self.accelerations(self.forward_dynamics())
        force = self.tree_forces(v_dot) - _dense(self.system.forces.B @ self.system.u)
        return _dense(self.system.complement.solve_transposed(force))


def _dense(x: SX) -> SX:
    return ca.densify(x)


def with_definitions(system: System, inertia: SX, force: SX) -> tuple[SX, SX]:
    r"""Make the inertia of all speeds regular on quasi-velocities, which nothing resists.

    With the rows that define them, :math:`D \dot v = -\beta`, motion and multipliers stay:

    .. math:: (\tilde I + D^T D)\, \dot v = f - D^T \beta + A^T \lambda.            \tag{F38}
    """
    if not system.definitions:
        return inertia, force
    D = matrix_of(system.definitions, system.tree.v.shape[0])
    beta = column_of([row.bias for row in system.definitions])
    return inertia + _dense(D.T @ D), force - _dense(D.T @ beta)


def projected(Theta: SX, matrix: SX) -> SX:
    """Theta^T matrix Theta for a symmetric matrix, each entry formed once."""
    return symmetric(ca.densify(Theta.T @ (ca.sparsify(matrix) @ Theta)))
