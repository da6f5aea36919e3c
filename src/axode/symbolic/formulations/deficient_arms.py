"""Loops of arms that lack freedoms, with all their rows.

Some rows of such a loop follow from others, so that the matrix of the six steps is singular. The
other formulations drop rows; the source has joints that are only imagined, or a smaller task space.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.numerics.rank import EQUALLY_FAR, null_space, rank
from axode.numerics.tolerances import ROUNDING, ROW_RANK
from axode.symbolic.algebra.linear import Factor, orthonormal_columns
from axode.symbolic.algebra.spatial import SX, symbolic_scalar
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.spatial_operators import SpatialOperatorFormulation
from axode.symbolic.tree.rows import Row


class DeficientArmsFormulation(SpatialOperatorFormulation):
    """Six steps with every row of every loop and contact."""

    def __init__(self, system: System) -> None:
        if not system.mechanism.loops:
            raise NotApplicable(
                f"formulation '{self.name}' closes loops of arms, and mechanism "
                f"'{system.mechanism.name}' has none (mechanism.add_loop).\n"
                "  Use another formulation, such as 'spatial_operators'."
            )
        off = {row.name for row in system.report.dropped if row.disagreement}
        off |= {system.rows[r].name for r in system.report.loose}
        loose = [row.name for row in system.rows if row.name in off and not row.on_joints]
        if loose:
            raise NotApplicable(
                f"formulation '{self.name}' drops no row of a loop, and some contradict others by "
                f"more than rounding errors: {', '.join(loose)}.\n"
                "  Give dimensions with more digits, or use another formulation."
            )
        super().__init__(system)

    @cached_property
    def _closing(self) -> tuple[int, ...]:
        kept = self.system.report.kept
        others = [r for r, row in enumerate(self.system.rows) if r not in kept]
        return (*kept, *(r for r in others if not self.system.rows[r].on_joints))

    @cached_property
    def closing_rows(self) -> list[Row]:
        """The kept rows, then the other rows of loops and contacts."""
        return [self.system.rows[r] for r in self._closing]

    @property
    def dependent_rows(self) -> range:
        """Rows that follow from the kept ones."""
        return range(len(self.system.kept), len(self.closing_rows))


@dataclass(frozen=True)
class PseudoJoint:
    """A joint that is only imagined, between the last link of an arm and the loop it closes.

    Attributes:
        row: Name of the row along which it would move.
        body: Body of the link that it is on.
        is_held: Whether a force holds it still; if not, the closure does.
    """

    row: str
    body: str
    is_held: bool


class PseudoJointFormulation(DeficientArmsFormulation):
    r"""Arms given the freedoms that they lack, by joints that are then held still.

    .. math:: \begin{bmatrix} \ddot\theta \\ 0 \end{bmatrix} = \begin{bmatrix} d_1 & d_2 \\
              d_3 & d_4 \end{bmatrix} \begin{bmatrix} \bar{\mathcal T} \\ \bar{\mathcal T}_p
              \end{bmatrix} + \ddot\theta_0                                       \tag{F27}

    Every row that others imply gets a joint at one end of its loop, which makes the closure
    regular and cannot move; then the end of every arm gets those that it lacks besides.
    """

    name: ClassVar[str] = "pseudo_joints"

    @cached_property
    def pseudo_joints(self) -> tuple[PseudoJoint, ...]:
        """First those that the closure holds, then those that forces hold.  (F33)"""
        names = {link: name for name, link in reversed(self.system.tree.body_link.items())}
        return tuple(
            PseudoJoint(self.closing_rows[r].name, names[self._ends[end][1]], is_held)
            for end, r, is_held in self._places
        )

    @cached_property
    def _places(self) -> list[tuple[int, int, bool]]:
        """End and row of every pseudo joint, and whether a force must hold it."""
        lacking = {end: _Lacking(motions) for end, motions in self._motions_of_ends.items()}
        found = []
        for r in self.dependent_rows:
            ends = [end for end, _ in self._tips_of(self.closing_rows[r].owner)]
            part = [lacking[end].share(self._own(end, r)) if end in lacking else 0 for end in ends]
            end = ends[int(np.argmax(part))]
            if max(part) > ROW_RANK:
                lacking[end].give(self._own(end, r))
            found.append((end, r, False))
        for end, missing in lacking.items():
            rows = self._rows_of(self._ends[end][0])
            found += [(end, rows[own], True) for own in missing.fill()]
        return found

    def _rows_of(self, owner: str) -> list[int]:
        return [r for r, row in enumerate(self.closing_rows) if row.owner == owner]

    def _own(self, end: int, r: int) -> int:
        return self._rows_of(self._ends[end][0]).index(r)

    @property
    def _motions_of_ends(self) -> dict[int, np.ndarray]:
        """How each end of a loop moves along its rows: (samples, rows, motions of its arm)."""
        system, units, found = self.system, self.system.report.units, {}
        loops = {loop.name for loop in system.mechanism.loops}
        others = [r for r, row in enumerate(system.kept) if row.kind != "loop"]
        for end, (owner, _) in enumerate(self._ends):
            if owner in loops:
                J, rows = self.J[6 * end : 6 * end + 6, :], self._rows_of(owner)
                directions = [self._direction(self.closing_rows[r]).T for r in rows]
                found[end] = ca.vertcat(*directions) @ J
        given = [system.tree.q, system.tree.t, system.tree.parameters]
        function = ca.Function("G", given, [ca.densify(x) for x in (*found.values(), system.A)])
        numbers: dict[int, list[np.ndarray]] = {end: [] for end in found}
        for q in (system.home, *system.samples):
            *each, A = (np.array(x) for x in function.call([q, 0.0, system.defaults]))
            A = units.of_rows(system.report.kept).measure(A) if units else A
            free = null_space(A[others], ROW_RANK) if others else np.eye(A.shape[1])
            for end, G in zip(found, each, strict=True):
                rows = [self._closing[r] for r in self._rows_of(self._ends[end][0])]
                numbers[end].append((units.of_rows(rows).measure(G) if units else G) @ free)
        return {end: np.array(G) for end, G in numbers.items()}

    @cached_property
    def _mobilities(self) -> SX:
        """Inverse inertia of the pseudo joints: any will do, that of the closure scales well."""
        system, tree = self.system, self.system.tree
        mass = SX(0)
        for body in system.mechanism.bodies:
            mass += symbolic_scalar(body.mass, tree.values)
        compliance = ca.densify(ca.diag(self.closure_compliance))
        function = ca.Function("c", [tree.q, tree.t, tree.parameters], [compliance, mass])
        found = function(system.home, 0.0, system.defaults)
        at_home, total = (np.array(x).ravel() for x in found)
        lighter = total[0] / mass if total[0] > 0.0 else SX(1)  # as parameters make it
        arms = [system.assembly.extent if row.unit == "rad" else 1.0 for row in self.closing_rows]
        tips = [r for r, row in enumerate(self.closing_rows) if not row.on_joints]
        usual = 1.0 / total[0] if total[0] > 0.0 else 1.0
        largest = max(at_home[r] * arms[r] ** 2 for r in tips)
        if largest < ROUNDING * usual:  # no tip can move against its rows
            largest = usual
        return SX([largest / arms[r] ** 2 for _, r, _ in self._places]) * lighter

    @cached_property
    def _columns(self) -> SX:
        """Closure rows for unit rates of the pseudo joints."""
        S = SX(len(self.closing_rows), len(self._places))
        for k, (end, r, _) in enumerate(self._places):
            S[r, k] = dict(self._tips_of(self.closing_rows[r].owner))[end]
        return S

    @cached_property
    def _augmented(self) -> Factor:
        """Compliance of the closure, pseudo joints included: regular wherever kept rows are."""
        S = self._columns
        return Factor.of(self.closure_compliance + S @ ca.diag(self._mobilities) @ S.T)  # (F32)

    @cached_property
    def _augmented_spread(self) -> SX:
        """What unit closure forces do to real and then pseudo joints."""
        return ca.vertcat(self.spread, ca.diag(self._mobilities) @ self._columns.T)

    @cached_property
    def D(self) -> SX:
        """Accelerations of real and then pseudo joints for unit forces on them.  (F32)"""
        free, spread = self._factor.inverse(), self._augmented_spread
        free = ca.diagcat(free, ca.diag(self._mobilities))
        return ca.densify(free - spread @ self._augmented.solve(spread.T))

    @cached_property
    def bias_accelerations(self) -> SX:
        """Accelerations of real and then pseudo joints without any forces."""
        return -ca.densify(self._augmented_spread @ self._augmented.solve(self.closure[1]))

    @cached_property
    def holding_forces(self) -> SX:
        """Forces that hold pseudo joints still, in their order; none on those that cannot move."""
        T_p = self._columns.T @ self.six_steps.F_c
        return ca.vertcat(
            SX.zeros(0), *[T_p[k] if held else 0 for k, (*_, held) in enumerate(self._places)]
        )

    def _close(self, free: SX) -> tuple[SX, SX]:
        """Steps four and five; the second pass makes up for digits that (F27) loses."""
        B, beta = self.closure
        F_c = self._with_locked(ca.densify(B @ free) + beta)
        if self._locked_columns.shape[1]:
            F_c += self._with_locked(B @ (free - self.spread @ F_c) + beta)
        return F_c, -self.spread @ F_c

    def _with_locked(self, violation: SX) -> SX:
        """Closure forces against accelerations that violate the closure, pseudo joints held."""
        F_c = self._augmented.solve(violation)
        answer, d4 = self._locked_answer
        return F_c + answer @ d4.solve(ca.densify(self._locked_columns.T @ F_c))  # (F27)

    @cached_property
    def _locked_columns(self) -> SX:
        """Violation by unit forces on the pseudo joints that are held."""
        held = [k for k, (*_, is_held) in enumerate(self._places) if is_held]
        return ca.densify(self._columns[:, held] @ ca.diag(self._mobilities[held]))

    @cached_property
    def _locked_answer(self) -> tuple[SX, Factor]:
        """Closure forces for these, and d4 of the joints: regular wherever the kept rows are."""
        held = [k for k, (*_, is_held) in enumerate(self._places) if is_held]
        answer = self._augmented.solve(self._locked_columns)
        d4 = ca.diag(self._mobilities[held]) - self._locked_columns.T @ answer
        return answer, Factor.of(d4)


class _Lacking:
    """Directions in which the end of an arm cannot move, at several configurations."""

    def __init__(self, motions: np.ndarray) -> None:
        ranks = rank(motions, ROW_RANK)
        self._motions = list(motions[ranks == ranks.max()])

    def _rests(self) -> np.ndarray:
        """Part of each unit direction that it lacks, where it lacks least of it."""
        missing = [null_space(G.T, ROW_RANK) for G in self._motions]
        rests: np.ndarray = np.min([np.linalg.norm(L, axis=1) for L in missing], axis=0)
        return rests

    def share(self, own: int) -> float:
        """Part of a unit direction that it lacks."""
        return float(self._rests()[own])

    def give(self, own: int) -> None:
        """Give it one direction."""
        unit = np.eye(len(self._motions[0]))[:, own : own + 1]
        self._motions = [np.hstack([G, unit]) for G in self._motions]

    def fill(self) -> Iterator[int]:
        """Give it what it still lacks, the clearest first."""
        while (rests := self._rests()).max() > ROW_RANK:
            best = int(np.flatnonzero(rests > EQUALLY_FAR * rests.max())[0])
            self.give(best)
            yield best


class ReducedOrderFormulation(DeficientArmsFormulation):
    r"""The six steps in the directions in which tips can go, and closures can be violated.

    .. math:: J = R^T J_r, \qquad J_r = R J, \qquad A_r = \tilde A R^T            \tag{F26}

    R are orthonormal rows by Householder reflections, without singular vectors or decisions on
    rank: they span what the columns of J may span at all. The closure is reduced likewise.
    """

    name: ClassVar[str] = "reduced_order"

    @cached_property
    def task_space(self) -> tuple[SX, SX]:
        """R and J_r, tip by tip."""
        bases, reduced = [], []
        for i in range(len(self.tips)):
            J = ca.sparsify(self.J[6 * i : 6 * i + 6, :])
            rows = sorted(set(J.sparsity().row()))
            columns = [j for j in range(J.shape[1]) if J[:, j].nnz()]
            R, J_r = SX.eye(6)[rows, :], J[rows, :]
            if len(columns) < len(rows):
                Q, triangle = orthonormal_columns(J[rows, columns])
                R, J_r = Q.T @ R, SX(len(columns), J.shape[1])
                J_r[:, columns] = triangle
            bases.append(R)
            reduced.append(J_r)
        return ca.diagcat(*bases), ca.vertcat(*reduced)

    @property
    def R(self) -> SX:
        """Orthonormal rows that span what the tips can do."""
        return self.task_space[0]

    @property
    def J_r(self) -> SX:
        """Jacobian of the tips in these directions."""
        return self.task_space[1]

    @property
    def A_r(self) -> SX:
        """Closure in these directions: A_r J_r theta_dot = 0."""
        return self.annihilator @ self.R.T

    @property
    def tip_closure(self) -> SX:
        """A_r J_r, which is A~ J."""
        return self.A_r @ self.J_r

    @cached_property
    def reduced_closure(self) -> tuple[SX, SX]:
        """Orthonormal rows that span violations of the closure, and it in these.  (F31)"""
        B = self.closure[0]
        if not self.dependent_rows:
            return SX.eye(B.shape[0]), B
        columns = [j for _, block in self.system.complement.base.blocks for j in block]
        Q, triangle = orthonormal_columns(B[:, columns])
        reduced = ca.densify(Q.T @ B)
        reduced[:, columns] = triangle
        return Q.T, ca.sparsify(reduced)

    def _close(self, free: SX) -> tuple[SX, SX]:
        R, B = self.reduced_closure
        spread = self._factor.solve(ca.densify(B).T)
        bias = ca.densify(R @ self.closure[1])
        force = Factor.of(ca.densify(B @ spread)).solve(B @ free + bias)
        return ca.densify(R.T @ force), -spread @ force

    def multipliers(self) -> SX:
        """Forces of the kept rows alone that do what the least forces of all rows do."""
        force = ca.densify(self.closure[0].T @ self.six_steps.F_c)
        return ca.densify(self.system.complement.solve_transposed(-force))
