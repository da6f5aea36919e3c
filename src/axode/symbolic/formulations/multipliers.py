"""Euler-Lagrange equations of the first kind: multipliers kept, no choice of speeds."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca

from axode.symbolic.formulations.base import projected
from axode.symbolic.formulations.complement import ComplementFormulation
from axode.symbolic.linear import Factor
from axode.symbolic.spatial import SX


class MultiplierFormulation(ComplementFormulation):
    r"""All speeds and the constraint forces, solved together.

    .. math:: \tilde I \dot v + \tilde h = \tilde\tau + A^T \lambda, \qquad
              A \dot v = \dot b - \dot A v,                                       \tag{F8}

    by eliminating :math:`\dot v`; rows are differentiated automatically and no partition of the
    speeds is needed, so that it works where a choice of independent speeds is singular.
    """

    name: ClassVar[str] = "multipliers"

    @cached_property
    def tree_inertia(self) -> SX:
        """I~ = U^T M U."""
        return projected(self.U, self.M)

    def inertia(self) -> SX:
        """I = Theta^T I~ Theta."""
        return projected(self.Theta, self.tree_inertia)

    @cached_property
    def _solution(self) -> tuple[SX, SX]:
        """v_dot and lambda for the inputs u.  (F8)"""
        system, tree = self.system, self.system.tree
        size = tree.v.shape[0]
        force = ca.densify(system.forces.B @ system.u) - self.tree_forces(SX.zeros(size))
        factor = Factor.of(self.tree_inertia)
        free = factor.solve(force)
        if system.is_tree:
            return free, SX.zeros(0)
        A = ca.densify(system.A)
        rate = tree.time_derivative(A @ tree.v) - tree.time_derivative(system.b)
        compliance = factor.solve(A.T)  # I~^-1 A^T
        lam = -Factor.of(A @ compliance).solve(A @ free + rate)
        return free + compliance @ lam, lam

    def forward_dynamics(self) -> SX:
        """The independent entries of v_dot."""
        return self._solution[0][list(self.system.independent)]

    def multipliers(self) -> SX:
        """Constraint forces of the kept rows."""
        return self._solution[1]
