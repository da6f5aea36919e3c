r"""First derivatives of forward and inverse dynamics, from the structure of the equations (X).

Speeds, accelerations and constraint forces are symbols of their own here. What is differentiated
are the short equations that tie them to each other,

.. math:: G = \tilde I \dot v + \tilde h - Q - B u - A^T \lambda = 0, \qquad
          A v = b, \qquad A \dot v + \beta = 0,                                   \tag{X5}

never the long expressions that solve them. Along changes of the arguments the solved quantities
follow by the factors that solved the equations in the first place.

The stages of an implicit step open loops a little, so that the Jacobian of the rate of a state is
one by every coordinate. The equations (X5) hold there as well. Displacements are those of all
joints, not of the tangents alone, and

.. math:: \frac{\partial f}{\partial q} = \frac{\partial f}{\partial\xi}\, N^+ .    \tag{X14}

Lengths of quaternions stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from axode.derivatives.branches import BranchDynamics, branches_of
from axode.derivatives.force_derivatives import ForceDerivatives, force_derivatives
from axode.derivatives.leg_derivatives import (
    Change,
    LegAttachment,
    LegSymbols,
    TreeDerivatives,
    keep_rows,
)
from axode.numerics.tolerances import NEGLIGIBLE
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, is_zero, symmetric
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.system import System, position_rows
from axode.symbolic.equations import Equations
from axode.symbolic.functions import state_rate
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import column_of

FEWEST_IN_BRANCHES = 12  # speeds; of fewer, one factorization takes as few operations


def uses_branches(tree: Tree) -> bool:
    """Return whether branches take fewer operations than one factorization.

    They meet in wrenches of six numbers: where fewer speeds lead from fork to fork, these are less.
    """
    runs = branches_of(tree)
    inner = {tree.links[run[0]].parent for run in runs}
    lengths = [sum(tree.links[i].k for i in run) for run in runs if run[-1] in inner]
    enough = tree.v.shape[0] >= FEWEST_IN_BRANCHES
    return enough and bool(lengths) and min(lengths) >= 6


LED = frozenset(("p", "t"))  # arguments that may move loops, which coordinates then follow


@dataclass(frozen=True)
class Direction:
    """Changes of an argument, one column each, and what follows at fixed base speeds.

    Attributes:
        v: Change of the speeds.
        v_dot: Change of the accelerations at fixed accelerations of the base's speeds.
        G: Change of G for these.
        q: Displacement, in speeds; None where the configuration stays.
        beside: Parameters, or time, that change by one in one column each.
        projected: Theta_0^T G, where it was found with fewer operations than from G.
    """

    v: SX
    v_dot: SX
    G: SX
    q: SX | None = None
    beside: SX | None = None
    projected: SX | None = None


class LiftedDynamics:
    """The equations (X5) of a mechanism and their derivatives.

    Args:
        equations: Their system is differentiated, whatever their formulation.
    """

    def __init__(self, equations: Equations) -> None:
        self.equations = equations
        self.system = system = equations.system
        self.tree, self.complement = system.tree, system.complement
        self.v_dot = SX.sym("v_dot", self.tree.v.shape[0])
        self.force = SX.sym("lambda", len(system.kept))

    # the equations (X5) --------------------------------------------------------------------------

    @cached_property
    def of_tree(self) -> ForceDerivatives:
        """Forces of the tree at the accelerations v_dot, and their derivatives."""
        system = self.system
        return force_derivatives(system.still_tree, system.regrouped, self.v_dot)

    @cached_property
    def inertia(self) -> SX:
        """I~, rotors included."""
        return self.of_tree.inertia + ca.diag(ca.sparsify(self.system.forces.armature))

    @cached_property
    def applied(self) -> SX:
        """What acts but for constraints: Q + B u."""
        forces = self.system.forces
        return forces.dissipative + forces.elastic + ca.densify(forces.B @ self.system.u)

    @cached_property
    def acting(self) -> SX:
        """Everything that acts: Q + B u + A^T lambda."""
        return self.applied + ca.densify(self.complement.A_read.T @ self.force)

    @cached_property
    def needed(self) -> SX:
        """I~ v_dot + h~ - Q: what inputs and constraints must give."""
        forces = self.system.forces
        need = self.of_tree.force + forces.armature * self.v_dot
        return need - forces.dissipative - forces.elastic

    @cached_property
    def rate(self) -> SX:
        """A v - b."""
        return ca.densify(self.complement.A_read @ self.tree.v) - self.system.b

    @cached_property
    def rate_change(self) -> SX:
        """A v_dot + beta."""
        return ca.densify(self.complement.A_read @ self.v_dot) + self.complement.bias

    def along_q(self, x: SX) -> SX:
        """Derivative by displacements, in speeds, everything else held."""
        return ca.sparsify(ca.jacobian(x, self.tree.q)) @ ca.sparsify(self.tree.N)

    @cached_property
    def G_q(self) -> SX:
        """Derivative of G by displacements."""
        return self.of_tree.by_q - self.along_q(self.acting)

    @cached_property
    def G_v(self) -> SX:
        """Derivative of G by all speeds."""
        return self.of_tree.by_v - ca.jacobian(self.acting, self.tree.v)

    def project(self, direction: Direction) -> SX:
        """Theta_0^T G of a direction."""
        if direction.projected is not None:
            return ca.sparsify(direction.projected)
        L, P, Y = self.complement.stages
        return ca.sparsify(Y.T @ (P.T @ (L.T @ direction.G)))

    # directions ----------------------------------------------------------------------------------

    @cached_property
    def along_tangents(self) -> Direction:
        """Unit displacements of the tangents' base."""
        q = self.system.tangents.Theta_0
        return self._followed_by_legs(q) if self.complement.legs else self.displaced(q)

    @cached_property
    def along_parameters(self) -> Direction:
        """Unit changes of parameters, closed by the coordinates that depend on the tangents."""
        return self.displaced(self._following(self.tree.parameters), self.tree.parameters)

    @cached_property
    def along_time(self) -> Direction:
        """A unit of time, closed in the same way."""
        return self.displaced(self._following(self.tree.t), self.tree.t)

    def _following(self, beside: SX) -> SX:
        """Displacements that close loops again at fixed coordinates of the tangents' base."""
        rows = position_rows(self.system)
        drift = column_of([row.drift for row in rows])
        return self.system.tangents.particular(-ca.jacobian(drift, beside))

    def _followed_by_legs(self, q: SX | None) -> Direction:
        """What displacements, or unit speeds of the base, change where legs follow links."""
        c, of = self.complement, self._of_others
        rows = [r for r in range(len(self.system.kept)) if r not in c.leg_rows]
        outside = [j for j in range(c.size) if j not in c.leg_speeds]
        v = c.rest if q is None else self._solve_others(rows, self.along_q(self.rate[rows]) @ q)
        change = Change(None if q is None else keep_rows(q, outside), v, SX(*v.shape))
        v_all = sum((link.speeds(change) for link in self.leg_attachments), v)
        off = ca.jacobian(self.rate_change[rows], self.tree.v) @ v_all
        if q is not None:
            off += self.along_q(self.rate_change[rows]) @ q
        change = replace(change, v_dot=self._solve_others(rows, off))
        v_dot = sum((link.accelerations(change) for link in self.leg_attachments), change.v_dot)
        G = of.by_v @ v + of.inertia @ change.v_dot
        if change.q is not None:
            G += of.by_q @ change.q
        L, P, Y = c.stages
        inner = P.T @ (L.T @ G)
        felt, wrenches = inner[: c.size, :], [inner[c.size :, :]]
        for link in self.leg_attachments:
            own, others, wrench = link.forces(of, change)
            G, felt = G + own, felt + others
            wrenches.append(wrench)
        felt = ca.vertcat(felt, wrenches[0] + ca.vertcat(*wrenches[1:]))
        return Direction(v_all, v_dot, G, q, projected=Y.T @ felt)

    def _solve_others(self, rows: list[int], off: SX) -> SX:
        """Solve the rows of no leg for the dependent speeds that undo some velocities."""
        right = SX(len(self.system.kept), off.shape[1])
        if rows:
            right[rows, :] = -off
        return self.complement.particular(right, self.complement.leg_rows)

    @cached_property
    def leg_attachments(self) -> list[LegAttachment]:
        """Links that legs are held at, in the order of the complement's."""
        c, symbols = self.complement, LegSymbols(self.tree, self.v_dot, self.force)
        legs = {key: [leg for leg in c.legs if leg.far_side == key] for key in c.far_links}
        return [LegAttachment(symbols, c, own) for own in legs.values()]

    @cached_property
    def _of_others(self) -> TreeDerivatives:
        """Derivatives of G without the forces of legs."""
        kept = [r for r in range(len(self.system.kept)) if r not in self.complement.leg_rows]
        acting = self.applied + ca.densify(self.complement.A_read[kept, :].T @ self.force[kept])
        by_q = self.of_tree.by_q - self.along_q(acting)
        return TreeDerivatives(by_q, self.G_v, self.inertia)

    def displaced(self, q: SX, beside: SX | None = None) -> Direction:
        r"""What a displacement changes at fixed speeds and accelerations of the base.

        .. math:: A\,\delta v = -\frac{\partial (A v - b)}{\partial q}\,\delta q, \qquad
                  A\,\delta\dot v = -\frac{\partial (A \dot v + \beta)}{\partial q}\,\delta q
                  - \frac{\partial\beta}{\partial v}\,\delta v                    \tag{X6}
        """
        c, v = self.complement, self.tree.v
        off = self.along_q(self.rate) @ q
        if beside is not None:
            off += ca.jacobian(self.rate, beside)
        dv = c.particular(-off)
        off = self.along_q(self.rate_change) @ q + ca.jacobian(self.rate_change, v) @ dv
        if beside is not None:
            off += ca.jacobian(self.rate_change, beside)
        dv_dot = c.particular(-off)  # (X6)
        G = self.G_q @ q + self.G_v @ dv + self.inertia @ dv_dot
        if beside is not None:
            G += ca.jacobian(self._recursed - ca.densify(c.A_read.T @ self.force), beside)
        return Direction(dv, dv_dot, G, q, beside)

    @cached_property
    def _recursed(self) -> SX:
        """G without constraint forces, by the recursion that is shortest to differentiate."""
        from axode.symbolic.formulations.recursive import RecursiveFormulation

        need = RecursiveFormulation(self.system).tree_forces(self.v_dot)
        return need - ca.densify(self.system.forces.B @ self.system.u)

    @cached_property
    def along_speeds(self) -> Direction:
        """Unit changes of the base's speeds."""
        if self.complement.legs:
            return self._followed_by_legs(None)
        c = self.complement
        v = c.Theta_0
        v_dot = c.particular(-(ca.jacobian(self.rate_change, self.tree.v) @ v))
        return Direction(v, v_dot, self.G_v @ v + self.inertia @ v_dot)

    @cached_property
    def along_accelerations(self) -> Direction:
        """Unit changes of the accelerations of the base's speeds."""
        v_dot = self.complement.Theta_0
        return Direction(SX(*v_dot.shape), v_dot, self.inertia @ v_dot)

    def along_inputs(self, first: int = 0) -> Direction:
        """Unit changes of inputs, from one of them on."""
        B = self.system.forces.B[:, first:]
        return Direction(SX(*B.shape), SX(*B.shape), -B)

    # asked for instead of the base ---------------------------------------------------------------

    def asked(self, x: SX) -> SX:
        """Entries of columns of all speeds that belong to the independent ones."""
        return self.system.chosen(x)

    def by_asked(self, changes: SX, complement: Complement) -> SX:
        """Changes for unit speeds of a base as those for unit speeds asked for.  (N3)"""
        if complement.is_direct or not complement.asked:
            return changes
        return ca.densify(changes) @ complement.B_inverse

    def put_together(
        self, changes: dict[str, SX], directions: dict[str, Direction]
    ) -> dict[str, SX]:
        r"""Changes by the arguments asked for, from those at fixed speeds of the base.

        A direction moves the speeds asked for by their entries of its columns; as much is taken
        back by their own derivatives.                                           \tag{X7}

        Args:
            changes: Changes of some quantity, by argument: "nu" and "nu_dot" of the base, "q" of
                the tangents' base.
            directions: That they belong to.
        """
        found = dict(changes)
        for name in ("nu_dot", "nu"):
            if name not in found:
                continue
            found[name] = own = self.by_asked(found[name], self.complement)
            if self.complement.is_direct:
                continue
            later = [n for n in found if n != name and not (name == "nu" and n == "nu_dot")]
            for other in later:
                moved = directions[other].v_dot if name == "nu_dot" else directions[other].v
                found[other] = found[other] - own @ self.asked(moved)
        tangents = self.system.tangents
        if "q" in found:
            found["q"] = self.by_asked(found["q"], tangents)
        for name in found.keys() & LED:
            q = directions[name].q
            assert q is not None
            if not tangents.is_direct:
                found[name] = found[name] - found["q"] @ q[list(tangents.asked), :]  # (X7)
        return found


class ForwardDerivatives:
    """Forward dynamics, constraint forces, and all their first derivatives."""

    def __init__(self, equations: Equations) -> None:
        self.lifted = lifted = LiftedDynamics(equations)
        self.system, self.complement = lifted.system, lifted.complement

    @cached_property
    def factor(self) -> Factor:
        """Factors of the inertia of the base's speeds."""
        return Factor.of(self.complement.project_inertia(self.lifted.inertia))

    @cached_property
    def branches(self) -> BranchDynamics | None:
        """Find the branches of a tree without constraints, where using them saves operations."""
        system, c, every = self.system, self.complement, tuple(range(self.lifted.v_dot.shape[0]))
        if system.kept or not every == tuple(c.asked) == tuple(system.tangents.asked):
            return None
        if not uses_branches(system.still_tree):
            return None
        armature = system.forces.armature
        return BranchDynamics(system.still_tree, system.regrouped, armature, self.lifted.v_dot)

    @cached_property
    def _value(self) -> SX:
        """All accelerations."""
        c, system, lifted = self.complement, self.system, self.lifted
        if self.branches is not None:
            return self.branches.accelerations(lifted.acting - self.branches.bias)
        need = lifted.of_tree.without_accelerations(system.tree.v) - system.forces.dissipative
        if system.kept:
            need += ca.densify(lifted.inertia @ c.sigma_0)
        force = ca.densify(system.forces.B @ system.u) + system.forces.elastic - need
        return c.expand(self.factor.solve(c.project(force))) + c.sigma_0

    def table(self, by: Sequence[str], multipliers: bool) -> SX:
        """Value and derivatives side by side, rows of constraint forces below if asked for.

        Args:
            by: Arguments, of "q", "nu", "u", "p" and "t", in the order of the columns.
            multipliers: Whether constraint forces follow.
        """
        lifted, c = self.lifted, self.complement
        if self.branches is not None:
            changes = {name: self._of_branches(self.branches, name) for name in by}
            return self._resolved(self._row(lifted.v_dot, changes, {}, by))
        directions = {name: self._direction(name) for name in dict.fromkeys((*by, *self._more(by)))}
        rates = {n: self._rates(d) for n, d in directions.items()}
        rows = [self._row(self.system.chosen(lifted.v_dot), rates, directions, by)]
        if multipliers:
            solved = {n: self._accelerations(lifted.project(d)) for n, d in directions.items()}
            felt = {
                n: c.solve_transposed(d.G + lifted.inertia @ (c.Theta_0 @ solved[n]))
                for n, d in directions.items()
            }
            rows.append(self._row(lifted.force, felt, directions, by))
        return self._resolved(ca.vertcat(*rows))

    def _of_branches(self, branches: BranchDynamics, name: str) -> SX:
        """Accelerations of a branched tree by an argument: those of its links, and of what acts."""
        lifted = self.lifted
        if name == "q":
            return branches.by_q + branches.by_force @ lifted.along_q(lifted.acting)
        if name == "nu":
            acting = ca.sparsify(ca.jacobian(lifted.acting, lifted.tree.v))
            return branches.by_v + branches.by_force @ acting
        return -(branches.by_force @ ca.sparsify(self._direction(name).G))

    def _more(self, by: Sequence[str]) -> list[str]:
        """Arguments by which it must be known as well: those that others move."""
        if self.complement.is_direct and self.system.tangents.is_direct:
            return []
        return ["nu", "q"] if LED & set(by) else ["nu"]

    def _direction(self, name: str) -> Direction:
        lifted = self.lifted
        if name == "u":
            return lifted.along_inputs()
        return {
            "q": lambda: lifted.along_tangents,
            "nu": lambda: lifted.along_speeds,
            "p": lambda: lifted.along_parameters,
            "t": lambda: lifted.along_time,
        }[name]()

    def _accelerations(self, right: SX) -> SX:
        """Accelerations of the base's speeds for which columns of projected forces vanish."""
        n, columns = right.shape
        single = right.nnz() == columns and 2 * columns > n  # motors on a joint each
        return -(self.factor.inverse() @ right) if single else self.factor.solve(right, -1)

    def _rates(self, direction: Direction) -> SX:
        """Changes of the accelerations asked for, at fixed speeds of the base."""
        felt = self.lifted.project(direction)
        if self.complement.is_direct:
            return self._accelerations(felt)
        if direction.q is None and self._drives_asked(direction.G):
            return symmetric(self._response @ felt)
        return self.system.chosen(direction.v_dot) + self._response @ felt

    @cached_property
    def _response(self) -> SX:
        """Accelerations asked for that undo unit forces on the base's speeds."""
        return self.factor.solve(self.system.chosen(self.complement.Theta_0).T, -1).T

    def _drives_asked(self, G: SX) -> bool:
        """Return whether inputs are unit forces on the speeds asked for, one each."""
        unit = SX(G.shape[0], len(self.system.independent))
        for k, j in enumerate(self.system.independent):
            unit[j, k] = -1
        return G.shape == unit.shape and is_zero(G - unit)

    def _row(
        self, value: SX, changes: dict[str, SX], directions: dict[str, Direction], by: Sequence[str]
    ) -> SX:
        found = self.lifted.put_together(changes, directions)
        return ca.densify(ca.horzcat(value, *[found[name] for name in by]))

    def _resolved(self, table: SX) -> SX:
        """The table with speeds, accelerations and forces put in."""
        lifted, system = self.lifted, self.system
        if system.kept:
            force = lifted.needed - ca.densify(system.forces.B @ system.u)
            lam = ca.densify(self.complement.solve_transposed(force))
            table = ca.substitute(table, lifted.force, lam)
        table = ca.substitute(table, lifted.v_dot, self._value)
        return system.at_speeds(table, by_inverse=True)


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
