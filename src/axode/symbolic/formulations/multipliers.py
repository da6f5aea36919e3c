"""Euler-Lagrange equations of the first kind: multipliers kept, no choice of speeds."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.numerics.tolerances import ROUNDING
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.base import projected, with_definitions
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.formulations.recursive import RecursiveFormulation


class MultiplierFormulation(ComplementFormulation):
    r"""All speeds and the constraint forces, solved together.

    .. math:: \tilde I \dot v + \tilde h = \tilde\tau + A^T \lambda, \qquad
              A \dot v = \dot b - \dot A v,                                       \tag{F8}

    by eliminating :math:`\dot v`; rows are differentiated automatically and no partition of the
    speeds is needed, so that it works where a choice of independent speeds is singular.
    """

    name: ClassVar[str] = "multipliers"

    def __init__(self, system: System) -> None:
        super().__init__(system)
        ideal = [body.name for body in system.mechanism.bodies if body.is_idealised]
        if ideal and not regular_inertia(system):
            raise NotApplicable(
                f"formulation '{self.name}' inverts the inertia of the tree before its loops "
                f"close, and nothing resists some motion of it: check {', '.join(ideal)}.\n"
                "  Give these bodies an inertia, or use another formulation."
            )

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
        inertia, force = with_definitions(system, self.tree_inertia, force)
        factor = Factor.of(inertia)
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
        return self.system.chosen(self._solution[0])

    def multipliers(self) -> SX:
        """Constraint forces of the kept rows."""
        return self._solution[1]


def regular_inertia(system: System) -> bool:
    """Return whether the tree has inertia in every direction, somewhere."""
    tree = system.tree
    joints = list(range(system.W.shape[1]))
    inertia = RecursiveFormulation(system).tree_inertia[joints, joints]
    function = ca.Function("I", [tree.q, tree.t, tree.parameters], [inertia])
    for q in system.samples:
        matrix = np.array(function(q, 0.0, system.defaults))
        scale = np.sqrt(np.diag(matrix).clip(1e-300))
        if np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] > ROUNDING:
            return True
    return False
