r"""The natural orthogonal complement: all speeds from the independent ones (N).

.. math:: v = \Theta(q) \nu + s(q, t), \qquad A \Theta = 0, \qquad A s = b.       \tag{N1}

With the speeds split into dependent and independent ones, :math:`A_d \Theta_d = -A_i`, solved block
by block: after the rows and dependent speeds are brought to block triangular form a platform with
many legs costs one small solve per leg.                                            (N2)

The speeds that make the blocks small need not be the ones asked for. :math:`\Theta_0` is built on
the former, :math:`\nu_0`; the latter follow from the square matrix :math:`B = \Theta_0[\nu]`:

.. math:: \Theta = \Theta_0 B^{-1}, \qquad \nu_0 = B^{-1} (\nu - s_\nu).          \tag{N3}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import casadi as ca
import numpy as np

from axode.numerics.rank import pseudo_inverse, smallest_singular_value
from axode.numerics.tolerances import POLISHED, ROUNDING, SMALL_PIVOT
from axode.symbolic.algebra.linear import CLOSED_FORM, Block
from axode.symbolic.algebra.spatial import SX, is_zero, symmetric
from axode.symbolic.constraints.long_chains import (
    Anchor,
    Wrenches,
    anchors_of,
    is_long,
    speeds_left_by_depth,
)
from axode.symbolic.constraints.loops import PointLoop
from axode.symbolic.constraints.redundant_rows import RankReport, Units, null_basis
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import Twists
from axode.symbolic.tree.rows import Row, Side

DETOUR_TOLERANCE = 0.1  # and relative to those asked for, before a detour by way of them is taken


@dataclass(frozen=True)
class Partition:
    """Independent speeds, and the dependent ones in blocks that are solved one after the other."""

    independent: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]  # rows and speeds of each

    @property
    def cost(self) -> int:
        """Work of its solves: the sum of cubes of the blocks' sizes."""
        return sum(len(rows) ** 3 for rows, _ in self.blocks)

    @property
    def largest(self) -> int:
        """Rows of the largest block."""
        return max((len(rows) for rows, _ in self.blocks), default=0)


def partition(report: RankReport, independent: list[int]) -> Partition:
    """Bring A to block triangular form for given independent speeds.  (N2)"""
    size = report.matrices[0].shape[1]
    dependent = [j for j in range(size) if j not in set(independent)]
    pattern = _mentions(report)[:, dependent]
    order = _block_order(pattern)
    blocks = [(tuple(rows), tuple(dependent[c] for c in columns)) for rows, columns in order]
    return Partition(tuple(independent), tuple(blocks))


def _mentions(report: RankReport) -> np.ndarray:
    """Return whether a row mentions a speed, at any sample: rows x speeds."""
    sizes = np.max([np.abs(A) for A in report.matrices], axis=0)
    least = min(ROUNDING, report.weakest)
    found: np.ndarray = sizes > least * sizes.max(axis=1, keepdims=True, initial=0.0)
    return found


def _block_order(pattern: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Diagonal blocks of a structurally regular matrix, each before those that need it."""
    m = pattern.shape[0]
    if m == 0:
        return []
    match, label = _strong_blocks(pattern)
    depends = {c: set() for c in range(label.max() + 1)}  # type: dict[int, set[int]]
    for i, k in np.argwhere(pattern[:, match]):  # row i needs what row k determines
        if label[i] != label[k]:
            depends[label[i]].add(label[k])
    done: list[int] = []
    waiting = sorted(depends, key=lambda c: int(np.flatnonzero(label == c)[0]))
    while waiting:
        ready = next(c for c in waiting if depends[c] <= set(done))
        waiting.remove(ready)
        done.append(ready)
    return [
        (
            [int(i) for i in np.flatnonzero(label == c)],
            [int(match[i]) for i in np.flatnonzero(label == c)],
        )
        for c in done
    ]


def _strong_blocks(pattern: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The column matched to each row, and the block that it is in."""
    rows, columns = np.nonzero(pattern)
    sparsity = ca.Sparsity.triplet(len(pattern), len(pattern), rows.tolist(), columns.tolist())
    count, row_order, column_order, starts, *_ = sparsity.btf()
    match, label = np.empty(len(pattern), dtype=int), np.empty(len(pattern), dtype=int)
    match[row_order] = column_order
    label[row_order] = np.repeat(np.arange(count), np.diff(starts))
    return match, label


def cheapest_partition(report: RankReport) -> Partition:
    """Choose independent speeds that leave the smallest blocks.

    Speeds that few rows mention (a leg's own joints, a wheel's spin) are made dependent first.
    """
    A = max(report.matrices, key=smallest_singular_value)
    size = A.shape[1]
    mentions = _mentions(report).sum(axis=0)
    order = sorted(range(size), key=lambda j: (mentions[j] == 0, mentions[j]))
    dependent: list[int] = []
    residual = A / np.abs(A).max(axis=1, keepdims=True).clip(1e-300)
    for threshold in (SMALL_PIVOT, 1e-6, 1e-9, 0.1 * report.weakest):
        for j in order:
            if len(dependent) == A.shape[0]:
                break
            column = residual[:, j]
            if j in dependent or np.linalg.norm(column) < threshold:
                continue
            direction = column / np.linalg.norm(column)
            residual = residual - np.outer(direction, direction @ residual)
            dependent.append(j)
    return partition(report, [j for j in range(size) if j not in set(dependent)])


def is_worth_a_detour(cheap: Partition, direct: Partition) -> bool:
    """Return whether small blocks and the change of speeds cost less than direct solves."""
    return cheap.cost + len(direct.independent) ** 3 // 2 < direct.cost


def _is_accurate(cheap: Partition, direct: Partition, report: RankReport) -> bool:
    """Return whether speeds of small blocks do nearly as well as those asked for, at home too."""

    def smallest(A: np.ndarray, chosen: Partition) -> float:
        dependent = [j for _, columns in chosen.blocks for j in columns]
        scaled = A[:, dependent] / np.abs(A).max(axis=1, keepdims=True).clip(1e-300)
        return float(smallest_singular_value(scaled))

    return all(
        smallest(A, cheap) >= DETOUR_TOLERANCE * smallest(A, direct)
        for A in (*report.matrices, *report.home_matrix)
    )


def _by_depth(
    tree: Tree, rows: Sequence[Row], report: RankReport, asked: list[int]
) -> Partition | None:
    """Small blocks from link to link, if they find all speeds accurately at home."""
    left = speeds_left_by_depth(tree, rows, report, asked)
    if left is None:
        return None
    found = partition(report, left)
    if found.largest > CLOSED_FORM or _error(found, asked, report) > POLISHED:
        return None
    return found


def _error(chosen: Partition, asked: list[int], report: RankReport) -> float:
    """Error at home of all speeds for unit speeds asked for, of the largest, by such solves."""
    A = (report.home_matrix or report.matrices)[0]
    free, size = list(chosen.independent), A.shape[1]
    x = np.zeros((size, len(free)))
    x[free] = np.eye(len(free))
    for rows, columns in chosen.blocks:
        others = [j for j in range(size) if j not in columns]
        known = A[np.ix_(rows, others)] @ x[others]
        x[list(columns)] = -np.linalg.solve(A[np.ix_(rows, columns)], known)
    Z = null_basis(A, len(free), report.weakest)
    if Z is None or not np.isfinite(x).all():
        return np.inf
    x = x / np.linalg.norm(x, axis=0)
    found, wanted = (y @ pseudo_inverse(y[asked]) for y in (x, Z))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


@dataclass(frozen=True)
class Complement:
    """Theta, s and the solves behind them, for one choice of independent speeds."""

    A: SX  # kept rows
    b: SX
    bias: SX  # A v_dot + bias = 0
    asked: tuple[int, ...]  # the independent speeds that were asked for
    base: Partition  # the ones the blocks are built on
    scales: tuple[float, ...]  # usual lengths of the rows
    matrices: tuple[np.ndarray, ...]  # A of the kept rows, at samples
    units: Units | None = None  # in which pivots are measured; metres if none
    legs: tuple[PointLoop, ...] = ()
    tree: Tree | None = None
    sides: tuple[Side | None, ...] = ()  # wrenches of the rows along paths of the tree
    anchors: dict[int, Anchor] = field(default_factory=dict)  # rows read at inner links

    @classmethod
    def of(
        cls,
        A: SX,
        b: SX,
        bias: SX,
        report: RankReport,
        independent: list[int],
        legs: tuple[PointLoop, ...] = (),
        speeds_of_blocks: Sequence[int] | None = None,
        tree: Tree | None = None,
        rows: Sequence[Row] = (),
    ) -> Complement:
        """Choose blocks for the speeds asked for, directly or by way of cheaper ones (N3).

        A detour has singular configurations of its own, so that it must save operations, and hold
        at all samples and at home; unless the speeds that the blocks are built on are given. Long
        chains with few freedoms take one from link to link if it is accurate at home: how far it is
        from singular depends on the products of all their angles.
        """
        if speeds_of_blocks is None:
            direct = partition(report, independent)
            cheap = cheapest_partition(report)
            worth = is_worth_a_detour(cheap, direct)
            base = cheap if worth and _is_accurate(cheap, direct, report) else direct
            few = len(independent) <= CLOSED_FORM < base.largest
            if tree is not None and few and is_long(rows):
                base = _by_depth(tree, rows, report, independent) or base
        else:
            base = partition(report, list(speeds_of_blocks))
        units = report.units and report.units.of_rows(report.kept)
        measured = [units.measure(M) for M in report.matrices] if units else report.matrices
        sides = tuple(row.side for row in rows)
        anchors: dict[int, Anchor] = {}
        if tree is not None and base.largest <= CLOSED_FORM:
            anchors = anchors_of(tree, sides, base.blocks, base.independent)
        lengths = [np.linalg.norm(M, axis=1) for M in measured]
        for r, anchor in anchors.items():  # as it is read: a unit force at the anchor
            near = [j for j in range(A.shape[1]) if j not in anchor.speeds]
            for M, length in zip(measured, lengths, strict=True):
                length[r] = np.hypot(1.0, np.linalg.norm(M[r, near]))
        scales = tuple(_rounded(np.max(lengths, axis=0)))
        whole = cls(
            A,
            b,
            bias,
            tuple(independent),
            base,
            scales,
            report.matrices,
            units,
            tree=tree,
            sides=sides,
            anchors=anchors,
        )
        return replace(whole, legs=tuple(leg for leg in legs if whole._stands_alone(leg)))

    def _stands_alone(self, leg: PointLoop) -> bool:
        """Return whether a leg's speeds follow from its point's velocity and serve nothing else."""
        blocks = [block for block in self.base.blocks if set(block[0]) & set(leg.rows)]
        own = {j for _, columns in blocks for j in columns}
        far = {j for j in range(self.size) if leg.far_twist[:, j].nnz()}
        inside = all(set(rows) <= set(leg.rows) for rows, _ in blocks)
        closed = set(self._mentioned(leg.rows)) <= own | far and not own & far
        elsewhere = [r for r in range(self.A.shape[0]) if r not in leg.rows]
        whole = len(blocks) == 1 and len(own) == 3 if leg.turned else True
        return inside and closed and whole and not own & set(self._mentioned(tuple(elsewhere)))

    @cached_property
    def leg_rows(self) -> frozenset[int]:
        """Rows of all legs."""
        return frozenset(r for leg in self.legs for r in leg.rows)

    @cached_property
    def leg_speeds(self) -> frozenset[int]:
        """Speeds of all legs."""
        blocks = [columns for rows, columns in self.base.blocks if set(rows) & self.leg_rows]
        return frozenset(j for columns in blocks for j in columns)

    @cached_property
    def far_links(self) -> tuple[tuple[int, int], ...]:
        """Links that legs are held at, each with the ancestor against which it moves."""
        return tuple(dict.fromkeys(leg.far_side for leg in self.legs))

    @cached_property
    def rest(self) -> SX:
        """Rows of Theta_0 that are not a leg's."""
        rest = SX(self.size, len(self.base.independent))
        for k, j in enumerate(self.base.independent):
            rest[j, k] = 1
        self._solve(rest, None, self.leg_rows)
        return rest

    @cached_property
    def stages(self) -> tuple[SX, SX, SX]:
        r"""Theta_0 = L P Y, by way of the points that legs are held at and the links they are of.

        .. math:: Y = \begin{bmatrix} \Theta_r \\ T \Theta_r \end{bmatrix}, \qquad
                  P = \operatorname{diag}(1, [-\hat p, 1]), \qquad
                  L = \operatorname{diag}(1, A_d^{-1} F)                           \tag{N6}

        T are twists of these links for unit speeds, p the points. Projecting a leg's inertia to its
        point first, three by three, costs less than projecting it to all independent speeds, and
        legs of one link are added up there.
        """
        others = SX(self.size, self.size)
        for j in set(range(self.size)) - self.leg_speeds:
            others[j, j] = 1
        L = ca.horzcat(others, *[self.leg_inverse(leg) @ leg.F for leg in self.legs])
        links = {key: k for k, key in enumerate(self.far_links)}
        twists = {links[leg.far_side]: leg.far_twist for leg in self.legs}
        P = SX(self.size + 3 * len(self.legs), self.size + 6 * len(links))
        P[: self.size, : self.size] = SX.eye(self.size)
        for k, leg in enumerate(self.legs):
            row = self.size + 3 * k
            column = self.size + 6 * links[leg.far_side]
            P[row : row + 3, column : column + 6] = leg.P
        Y = ca.vertcat(self.rest, *[twists[k] @ self.rest for k in range(len(links))])
        return L, ca.sparsify(P), Y

    def leg_inverse(self, leg: PointLoop) -> SX:
        """A leg's speeds for unit velocities of its point along its directions: speeds x these."""
        x = SX(self.size, len(leg.rows))
        if leg.turned:
            J = leg.near.matrix(self.size)
            own = [j for j in range(self.size) if J[:, j].nnz()]
            return _place_rows(x, tuple(own), _sparse_inverse(J[:, own]))
        for block, (rows, columns) in zip(self.blocks, self.base.blocks, strict=True):
            if set(rows) <= set(leg.rows):
                unit = SX.eye(len(leg.rows))[[leg.rows.index(r) for r in rows], :]
                others = [j for j in self._mentioned(rows) if j not in columns]
                known = _part(self.A, rows, others) @ _rows(x, others)
                x = _place_rows(x, columns, block.solve(unit - known))
        return x

    def project(self, force: SX) -> SX:
        """Project a force on the base's speeds: Theta_0^T force."""
        if self.anchors and force.shape[1] == 1:
            return ca.densify(self._transposed(force)[1])
        L, P, Y = self.stages
        return ca.densify(Y.T @ (P.T @ (L.T @ force)))

    def project_inertia(self, inertia: SX) -> SX:
        """Project an inertia: Theta_0^T inertia Theta_0, each entry formed once."""
        inner = ca.sparsify(inertia)
        for stage in self.stages:
            inner = symmetric(stage.T @ (inner @ stage))
        return ca.densify(inner)

    def expand(self, nu_0: SX) -> SX:
        """Expand the base's speeds to all: Theta_0 nu_0."""
        if not self.base.independent:
            return SX.zeros(self.size)
        if self.anchors:
            x = SX(self.size, 1)
            x[list(self.base.independent)] = nu_0
            self._solve(x, None)
            return ca.densify(x)
        L, P, Y = self.stages
        return ca.densify(L @ (P @ (Y @ nu_0)))

    @property
    def size(self) -> int:
        """Number of all speeds."""
        return int(self.A.shape[1])

    @property
    def is_direct(self) -> bool:
        """Return whether the blocks are built on the speeds asked for."""
        return self.asked == self.base.independent

    @cached_property
    def blocks(self) -> list[Block]:
        """The solves, in order."""
        found = [Block.of(_part(self.A, rows, columns)) for rows, columns in self.base.blocks]
        for leg in self.legs:
            if leg.turned:  # its own matrix, in its own axes, has more zeros
                place = next(
                    k for k, b in enumerate(self.base.blocks) if set(b[0]) == set(leg.rows)
                )
                rows, columns = self.base.blocks[place]
                order = [leg.rows.index(r) for r in rows]
                inverse = self.leg_inverse(leg)[list(columns), :] @ leg.E.T[:, order]
                found[place] = replace(found[place], inverse=inverse)
        return found

    @cached_property
    def A_read(self) -> SX:
        """A as the blocks read it: without later speeds, whose entries vanish where rows hold."""
        A, known = SX(self.A), set(self.base.independent)
        for rows, columns in self.base.blocks:
            known |= set(columns)
            for j in set(self._mentioned(rows)) - known:
                A[list(rows), j] = 0
        return ca.sparsify(A)

    def read(self, x: SX) -> SX:
        """A_read x for columns of all speeds, by twists where rows are read at anchors.  (N12)"""
        found = ca.densify(self._without_anchored(self.A_read) @ x)
        if self.anchors:
            twists = Twists(self._own_tree, x)
            for r, anchor in self.anchors.items():
                found[r, :] += anchor.read(twists)
        return found

    def felt(self, force: SX) -> SX:
        """A_read^T force: what forces of the rows do to all speeds."""
        found = ca.densify(self._without_anchored(self.A_read).T @ force)
        if self.anchors:
            wrenches = Wrenches(self._own_tree, self.anchors)
            for j in range(self.size):
                found[j, :] += wrenches.felt(j, force)
        return found

    @cached_property
    def Theta_0(self) -> SX:
        """Complement on the base's speeds.  (N2)"""
        L, P, Y = self.stages
        return L @ (P @ Y)

    @cached_property
    def near(self) -> SX:
        """A without what anchors read."""
        return self._without_anchored(self.A)

    def _without_anchored(self, A: SX) -> SX:
        if not self.anchors:
            return A
        near = SX(A)
        for r, anchor in self.anchors.items():
            near[r, list(anchor.speeds)] = 0
        return ca.sparsify(near)

    @property
    def _own_tree(self) -> Tree:
        assert self.tree is not None
        return self.tree

    @cached_property
    def _read(self) -> list[list[int]]:
        """Speeds that each row of `near` mentions."""
        return _speeds_of_rows(self.near)

    @cached_property
    def mentions(self) -> list[list[int]]:
        """Speeds that each row of A mentions."""
        return _speeds_of_rows(self.A)

    def _mentioned(self, rows: tuple[int, ...]) -> list[int]:
        return sorted({j for r in rows for j in self.mentions[r]})

    def _solve(self, x: SX, right: SX | None, skip: frozenset[int] = frozenset()) -> None:
        """Fill in the rows of x that blocks determine, so that A x = right there, or zero."""
        every = list(range(x.shape[1]))
        twists = Twists(self._own_tree, x) if self.anchors else None
        for block, (rows, columns) in zip(self.blocks, self.base.blocks, strict=True):
            if skip & set(rows):
                continue
            others = sorted({j for r in rows for j in self._read[r]} - set(columns))
            known = _part(self.near, rows, others) @ _rows(x, others)
            for i, r in enumerate(rows):
                if twists is not None and r in self.anchors:
                    known[i, :] += self.anchors[r].read(twists)
            if right is None:
                solved = -block.solve(known)
            else:
                solved = block.solve(_part(right, rows, every) - known)
            _place_rows(x, columns, solved)

    def particular(self, right: SX, skip: frozenset[int] = frozenset()) -> SX:
        """Solve A x = right, column by column, with zero independent speeds of the base.

        Args:
            right: One row per row of A.
            skip: Rows that are not solved: what they determine stays zero.
        """
        x = SX(self.size, right.shape[1])
        self._solve(x, right, skip)
        return x

    def solve_transposed(self, right: SX) -> SX:
        """Solve (A^T lambda)_d = right_d on the base's dependent speeds, column by column."""
        return self._transposed(right)[0]

    def _transposed(self, right: SX) -> tuple[SX, SX]:
        """Return these forces of rows, and what remains of `right` on the base's speeds."""
        lam = SX(self.A.shape[0], right.shape[1])
        wrenches = Wrenches(self._own_tree, self.anchors) if self.anchors else None
        by_speed = self.near.sparsity()
        starts, holders = by_speed.colind(), by_speed.row()

        def left(columns: Sequence[int], rows: Sequence[int] = ()) -> SX:
            others = sorted({r for j in columns for r in holders[starts[j] : starts[j + 1]]})
            others = [r for r in others if r not in rows]
            known = _part(self.near, others, list(columns)).T @ _rows(lam, others)
            rest = _rows(right, list(columns)) - known
            for i, j in enumerate(columns):
                if wrenches is not None:
                    rest[i, :] = rest[i, :] - wrenches.felt(j, lam)
            return rest

        for block, (rows, columns) in reversed(
            list(zip(self.blocks, self.base.blocks, strict=True))
        ):
            _place_rows(lam, rows, block.solve_transposed(left(columns, rows)))
        return lam, left(self.base.independent)

    @cached_property
    def s_0(self) -> SX:
        """Speeds that explicit time forces, with zero base speeds."""
        return SX.zeros(self.size) if is_zero(self.b) else ca.densify(self.particular(self.b))

    @cached_property
    def sigma_0(self) -> SX:
        """Accelerations with zero base accelerations: A sigma_0 = -bias.  (N4)"""
        return ca.densify(self.particular(-self.bias))

    @property
    def _to_asked(self) -> SX:
        """The square matrix from base speeds to those asked for.  (N3)"""
        return ca.densify(_rows(self.Theta_0, list(self.asked)))

    @cached_property
    def B(self) -> Block:
        """The solves with that matrix, whose rows are alike where they are legs'."""
        return Block.of_rows(self._to_asked)

    @cached_property
    def B_inverse(self) -> SX:
        """Its inverse, for many right-hand sides."""
        return Block.of(self._to_asked).inverted()

    def to_base(self, nu: SX, by_inverse: bool = False) -> SX:
        """Convert the speeds asked for to the base's, nu_0; by `B_inverse` if it is there."""
        if self.is_direct:
            return nu
        return self._from_asked(nu - _rows(self.s_0, list(self.asked)), by_inverse)

    def to_base_acceleration(self, nu_dot: SX, by_inverse: bool = False) -> SX:
        """Convert accelerations of the speeds asked for to the base's, nu_0_dot."""
        if self.is_direct:
            return nu_dot
        return self._from_asked(nu_dot - _rows(self.sigma_0, list(self.asked)), by_inverse)

    def _from_asked(self, x: SX, by_inverse: bool) -> SX:
        return self.B_inverse @ x if by_inverse else self.B.solve(x)

    def speeds(self, nu: SX, by_inverse: bool = False) -> SX:
        """v = Theta nu + s.  (N1)"""
        return self.expand(self.to_base(nu, by_inverse)) + self.s_0

    @cached_property
    def Theta(self) -> SX:
        """Complement on the speeds asked for.  (N1)"""
        if self.is_direct:
            return self.Theta_0
        return self.B.solve_transposed(ca.densify(self.Theta_0).T).T

    @cached_property
    def pivots(self) -> SX:
        """One number per solve that vanishes where it becomes singular, one at best."""
        found = [
            self._pivot(block, *place)
            for block, place in zip(self.blocks, self.base.blocks, strict=True)
        ]
        if not self.is_direct:
            found.append(self._pivot_of_B())
        return ca.vertcat(*found) if found else SX.zeros(0)

    def _pivot(self, block: Block, rows: tuple[int, ...], columns: tuple[int, ...]) -> SX:
        """A block's pivot against the usual length of its rows.

        Against their present length a block of one, or a row that vanishes as a whole, would
        never seem small.
        """
        A, matrices = self.A, self.matrices
        if self.units is not None:  # the same block in these units: no other solve uses it
            A = ca.diag(ca.DM(self.units.rows)) @ A @ ca.diag(ca.DM(self.units.speeds))
            matrices = tuple(self.units.measure(M) for M in matrices)
            block = Block.of(_part(A, rows, columns))
        if block.inverse is None:
            parts = [M[np.ix_(rows, columns)] for M in matrices]
            return block.pivot_against(_usual_columns(parts))
        length = SX(1)
        for r in rows:
            length = length * ca.norm_2(_part(A, (r,), columns).T) / self.scales[r]
        return block.pivot * length

    def _pivot_of_B(self) -> SX:
        """Pivot of the change of speeds, against its usual columns.

        Several of them may vanish together: the legs of a platform that lies flat no longer move
        it up and down, nor tilt it.
        """
        if self.B.inverse is not None:
            if self.units is None:
                return self.B.pivot
            speeds = self.units.speeds[list(self.base.independent)]
            return Block.of(_rows(self.Theta_0, list(self.asked)) @ ca.diag(ca.DM(speeds))).pivot
        ind = list(self.base.independent)
        dep = [j for j in range(self.size) if j not in ind]
        usual = []
        regular = [M for M in self.matrices if smallest_singular_value(M[:, dep]) > ROUNDING]
        for M in regular or [np.eye(len(dep), self.size)]:
            Theta_0 = np.zeros((self.size, len(ind)))
            Theta_0[ind] = np.eye(len(ind))
            Theta_0[dep] = -np.linalg.solve(M[:, dep], M[:, ind])
            usual.append(Theta_0[list(self.asked)])
        return Block.of(self._to_asked).pivot_against(_usual_columns(usual))


def _sparse_inverse(matrix: SX) -> SX:
    """Inverse of a small matrix, block by block."""
    n = matrix.shape[0]
    pattern = np.array([[matrix.has_nz(i, j) for j in range(n)] for i in range(n)])
    x = SX(n, n)
    for rows, columns in _block_order(pattern):
        others = [j for j in range(n) if j not in columns]
        known = _part(matrix, rows, others) @ _rows(x, others)
        block = Block.of(_part(matrix, rows, columns))
        x = _place_rows(x, tuple(columns), block.solve(_rows(SX.eye(n), rows) - known))
    return x


def _usual_columns(matrices: list[np.ndarray]) -> list[float]:
    """Median lengths of the columns; a sample near a singular one would make means too long."""
    return _rounded(np.median([np.linalg.norm(M, axis=0) for M in matrices], axis=0))


def _rounded(lengths: np.ndarray) -> list[float]:
    """Lengths to twelve digits: what is one but for rounding costs no operation."""
    return [float(f"{length:.12g}") for length in lengths.clip(1e-300)]


def _speeds_of_rows(A: SX) -> list[list[int]]:
    by_rows = A.sparsity().T
    speeds = by_rows.row()
    return [list(speeds[i:j]) for i, j in pairwise(by_rows.colind())]


def _part(x: SX, rows: tuple[int, ...] | list[int], columns: tuple[int, ...] | list[int]) -> SX:
    return (
        x[list(rows), list(columns)] if len(rows) and len(columns) else SX(len(rows), len(columns))
    )


def _rows(x: SX, rows: list[int]) -> SX:
    return x[list(rows), :] if len(rows) else SX(0, x.shape[1])


def _place_rows(x: SX, rows: tuple[int, ...], values: SX) -> SX:
    values = ca.sparsify(values)
    for i, r in enumerate(rows):
        x[r, :] = values[i, :]
    return x
