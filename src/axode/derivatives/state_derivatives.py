r"""Derivatives of the rate of a state by all coordinates, speeds, inputs and time (X).

The stages of an implicit step open loops a little, so that its Jacobian is one by every coordinate.
The equations (X5) hold there as well. Displacements are those of all joints, not of the tangents
alone, and

.. math:: \frac{\partial f}{\partial q} = \frac{\partial f}{\partial\xi}\, N^+ .    \tag{X14}

Lengths of quaternions stay.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.derivatives.lifted_derivatives import Direction, ForwardDerivatives
from axode.numerics.tolerances import NEGLIGIBLE
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX
from axode.symbolic.constraints.system import System
from axode.symbolic.equations import Equations
from axode.symbolic.functions import state_rate


class RateDerivatives(ForwardDerivatives):
    """Derivatives of the rates of q and nu and of the two powers, as in `state_rate`."""

    def __init__(self, equations: Equations) -> None:
        super().__init__(equations)
        system, v = self.system, self.system.tree.v
        supplied = ca.dot(ca.densify(system.forces.B @ system.u), v)
        if system.rheonomic:
            supplied += ca.dot(self.lifted.force, system.b)
        self._powers = ca.vertcat(supplied, -ca.dot(system.forces.dissipative, v))

    def jacobian(self) -> SX:
        """Columns by coordinates, independent speeds, inputs and time, everything else held."""
        n, t = self.system.tree.v.shape[0], self.system.tree.t
        directions = {
            "joints": self.lifted.displaced(SX.eye(n)),
            "nu": self.lifted.along_speeds,
            "u": self.lifted.along_inputs(),
            "clock": self.lifted.displaced(SX(n, 1), t),
        }
        changes = {name: self._change(name, d) for name, d in directions.items()}
        changes["u"][-2:, :] += ca.jacobian(self._powers, self.system.u)
        found = self.lifted.put_together(changes, directions)
        found["joints"] @= displacements(self.system)  # (X14)
        return self._resolved(ca.densify(ca.horzcat(*found.values())))

    def _change(self, name: str, d: Direction) -> SX:
        """Changes of all rates along a direction, at fixed speeds of the base."""
        lifted, tree, c = self.lifted, self.system.tree, self.complement
        moved, work = tree.N @ d.v, ca.jacobian(self._powers, tree.v) @ d.v
        if d.q is not None:
            moved += lifted.along_q(tree.N @ tree.v) @ d.q
            work += lifted.along_q(self._powers) @ d.q
        if d.beside is not None:
            work += ca.jacobian(self._powers, d.beside)
        if self.system.rheonomic:
            solved = self._accelerations(lifted.project(d))
            felt = c.solve_transposed(d.G + lifted.inertia @ (c.Theta_0 @ solved))
            work += ca.jacobian(self._powers, lifted.force) @ felt
        return ca.vertcat(moved, self._accelerated(name, d), work)

    def _accelerated(self, name: str, d: Direction) -> SX:
        """Changes of the accelerations asked for; in a tree the tangents are all joints."""
        if self.branches is None:
            return self._rates(d)
        if name in ("joints", "nu"):
            return self._of_branches(self.branches, "nu" if name == "nu" else "q")
        return -(self.branches.by_force @ ca.sparsify(d.G))


def displacements(system: System) -> SX:
    """N^+: displacements of all joints for unit changes of the coordinates.

    Bases that contacts keep from tilting do not read what would tilt them.
    """
    found = _inverse_rates(system)
    for base in system.level:
        turning = list(system.tree.links[base.link].speeds)[:3]
        b = base.joint.in_child
        found[turning, :] = SX(ca.DM(np.outer(b, b))) @ found[turning, :]
    return ca.sparsify(found)


def _inverse_rates(system: System) -> SX:
    N = ca.sparsify(system.tree.N)
    joints = system.W.shape[1]
    square = N.T @ N + ca.diag(SX([float(j >= joints) for j in range(N.shape[1])]))
    gram = ca.Function("gram", [system.tree.q], [ca.densify(square)])
    first, *others = (np.array(gram(q)) for q in (system.home, *system.samples))
    if all(np.abs(other - first).max(initial=0.0) < NEGLIGIBLE for other in others):
        return ca.sparsify(ca.DM(np.linalg.inv(np.round(first, 8)))) @ N.T
    return Factor.of(square).solve(N.T)


def state_rate_jacobian(equations: Equations) -> SX:
    """Derivatives of `state_rate` by q, nu, u and t, lengths of quaternions held.

    Formulations agree where the constraints hold. Off them, where implicit steps look too, others
    than the recursive one are functions of their own.
    """
    equations.require_inertia()
    if equations.formulation == "recursive" and equations.pitching_rate is None:
        return RateDerivatives(equations).jacobian()
    e, N = equations, ca.sparsify(equations.system.tree.N)
    by_q, by_others = (ca.jacobian(state_rate(e), x) for x in (e.q, ca.vertcat(e.nu, e.u, e.t)))
    return ca.densify(ca.horzcat(by_q @ N @ displacements(e.system), by_others))
