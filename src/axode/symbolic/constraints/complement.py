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

from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from axode.symbolic.algebra.linear import Block
from axode.symbolic.algebra.rank import smallest_singular_value
from axode.symbolic.algebra.spatial import SX, is_zero, symmetric
from axode.symbolic.constraints.redundant_rows import RankReport, Units

PIVOT_TOLERANCE = 1e-3  # how well conditioned, relative to the best, speeds of small blocks must be
DETOUR_TOLERANCE = 0.1  # and relative to those asked for, before a detour by way of them is taken
MENTIONED = 1e-12  # of the largest entry of a row: less than this is rounding


@dataclass(frozen=True)
class Partition:
    """Independent speeds, and the dependent ones in blocks that are solved one after the other."""

    independent: tuple[int, ...]
    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]  # rows and speeds of each

    @property
    def cost(self) -> int:
        """Work of its solves: the sum of cubes of the blocks' sizes."""
        return sum(len(rows) ** 3 for rows, _ in self.blocks)


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
    found: np.ndarray = sizes > MENTIONED * sizes.max(axis=1, keepdims=True, initial=0.0)
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
    for threshold in (PIVOT_TOLERANCE, 1e-6, 1e-9):
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


@dataclass(frozen=True)
class HeldLoop:
    """Rows of one loop whose far side is held at a point: A x = own x - F (J x).

    Where nothing else mentions the leg's own speeds, they follow from the point's velocity alone.
    """

    rows: tuple[int, ...]
    F: SX  # rows x 3
    J: SX  # 3 x speeds


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
    legs: tuple[HeldLoop, ...] = ()

    @classmethod
    def of(
        cls,
        A: SX,
        b: SX,
        bias: SX,
        report: RankReport,
        independent: list[int],
        legs: tuple[HeldLoop, ...] = (),
    ) -> Complement:
        """Choose blocks for the speeds asked for, directly or by way of cheaper ones (N3).

        A detour has singular configurations of its own, so that it must be worth it, and hold
        at all samples and at home.
        """
        direct = partition(report, independent)
        cheap = cheapest_partition(report)
        worth = cheap.cost + len(independent) ** 3 // 2 < direct.cost
        base = cheap if worth and _is_accurate(cheap, direct, report) else direct
        units = report.units and report.units.of_rows(report.kept)
        measured = [units.measure(M) for M in report.matrices] if units else report.matrices
        lengths = [np.linalg.norm(M, axis=1) for M in measured]
        scales = tuple(_rounded(np.max(lengths, axis=0)))
        whole = cls(A, b, bias, tuple(independent), base, scales, report.matrices, units)
        return replace(whole, legs=tuple(leg for leg in legs if whole._stands_alone(leg)))

    def _stands_alone(self, leg: HeldLoop) -> bool:
        """Return whether a leg's speeds follow from its point's velocity and serve nothing else."""
        blocks = [block for block in self.base.blocks if set(block[0]) & set(leg.rows)]
        own = {j for _, columns in blocks for j in columns}
        far = {j for j in range(self.size) if any(leg.J.has_nz(i, j) for i in range(3))}
        inside = all(set(rows) <= set(leg.rows) for rows, _ in blocks)
        closed = set(self._mentioned(leg.rows)) <= own | far and not own & far
        elsewhere = [r for r in range(self.A.shape[0]) if r not in leg.rows]
        return inside and closed and not own & set(self._mentioned(tuple(elsewhere)))

    @cached_property
    def factors(self) -> tuple[SX, SX]:
        r"""Theta_0 = L Y, by way of the velocities of the points that legs are held at.

        .. math:: Y = \begin{bmatrix} \Theta_r \\ J \Theta_r \end{bmatrix}, \qquad
                  L = \operatorname{diag}(1, A_d^{-1} F)                           \tag{N6}

        Projecting a leg's inertia to its point first, three by three, costs less than projecting
        it to all independent speeds.
        """
        leg_rows = {r for leg in self.legs for r in leg.rows}
        rest = SX(self.size, len(self.base.independent))
        for k, j in enumerate(self.base.independent):
            rest[j, k] = 1
        for block, (rows, columns) in zip(self.blocks, self.base.blocks, strict=True):
            if not set(rows) & leg_rows:
                self._place(rest, block, rows, columns)
        L = SX(self.size, self.size + 3 * len(self.legs))
        own_speeds = {
            j for rows, columns in self.base.blocks if set(rows) & leg_rows for j in columns
        }
        for j in range(self.size):
            if j not in own_speeds:
                L[j, j] = 1
        Y = [rest]
        for number, leg in enumerate(self.legs):
            first = self.size + 3 * number
            L[:, first : first + 3] = self._leg_speeds(leg)
            Y.append(leg.J @ rest)
        return L, ca.vertcat(*Y)

    def _leg_speeds(self, leg: HeldLoop) -> SX:
        """A leg's speeds for unit velocities of its point: speeds x 3."""
        x = SX(self.size, 3)
        for block, (rows, columns) in zip(self.blocks, self.base.blocks, strict=True):
            if set(rows) <= set(leg.rows):
                F = leg.F[[leg.rows.index(r) for r in rows], :]
                others = [j for j in self._mentioned(rows) if j not in columns]
                known = _part(self.A, rows, others) @ _rows(x, others)
                x = _place_rows(x, columns, block.solve(F - known))
        return x

    def project(self, force: SX) -> SX:
        """Project a force on the base's speeds: Theta_0^T force."""
        L, Y = self.factors
        return ca.densify(Y.T @ (L.T @ force))

    def project_inertia(self, inertia: SX) -> SX:
        """Project an inertia: Theta_0^T inertia Theta_0, each entry formed once."""
        L, Y = self.factors
        inner = L.T @ (ca.sparsify(inertia) @ L)
        inner = ca.triu(inner) + ca.triu(inner, False).T
        return symmetric(ca.densify(Y.T @ (inner @ Y)))

    def expand(self, nu_0: SX) -> SX:
        """Expand the base's speeds to all: Theta_0 nu_0."""
        if not self.base.independent:
            return SX.zeros(self.size)
        L, Y = self.factors
        return ca.densify(L @ (Y @ nu_0))

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
        return [Block.of(_part(self.A, rows, columns)) for rows, columns in self.base.blocks]

    @cached_property
    def A_read(self) -> SX:
        """A as the blocks read it: without later speeds, whose entries vanish where rows hold."""
        A, known = SX(self.A), set(self.base.independent)
        for rows, columns in self.base.blocks:
            known |= set(columns)
            for j in set(self._mentioned(rows)) - known:
                A[list(rows), j] = 0
        return ca.sparsify(A)

    @cached_property
    def Theta_0(self) -> SX:
        """Complement on the base's speeds.  (N2)"""
        L, Y = self.factors
        return L @ Y

    def _place(self, x: SX, block: Block, rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
        """Fill in the rows of x that one block determines, so that A x = 0 there."""
        others = [j for j in self._mentioned(rows) if j not in columns]
        known = _part(self.A, rows, others) @ _rows(x, others)
        _place_rows(x, columns, -block.solve(known))

    def _mentioned(self, rows: tuple[int, ...]) -> list[int]:
        return [j for j in range(self.size) if any(self.A.has_nz(r, j) for r in rows)]

    def particular(self, right: SX) -> SX:
        """Solve A x = right, column by column, with zero independent speeds of the base."""
        x = SX(self.size, right.shape[1])
        every = list(range(right.shape[1]))
        for block, (rows, columns) in zip(self.blocks, self.base.blocks, strict=True):
            others = [j for j in self._mentioned(rows) if j not in columns]
            rest = _part(right, rows, every) - _part(self.A, rows, others) @ _rows(x, others)
            x = _place_rows(x, columns, block.solve(rest))
        return x

    def solve_transposed(self, right: SX) -> SX:
        """Solve (A^T lambda)_d = right_d on the base's dependent speeds, column by column."""
        lam = SX(self.A.shape[0], right.shape[1])
        for block, (rows, columns) in reversed(
            list(zip(self.blocks, self.base.blocks, strict=True))
        ):
            others = [r for r in range(self.A.shape[0]) if r not in rows]
            rest = _rows(right, list(columns)) - _part(self.A, others, columns).T @ _rows(
                lam, others
            )
            _place_rows(lam, rows, block.solve_transposed(rest))
        return lam

    @cached_property
    def s_0(self) -> SX:
        """Speeds that explicit time forces, with zero base speeds."""
        return SX.zeros(self.size) if is_zero(self.b) else ca.densify(self.particular(self.b))

    @cached_property
    def sigma_0(self) -> SX:
        r"""Accelerations with zero base accelerations: A sigma_0 = -bias.  (N4)"""
        return ca.densify(self.particular(-self.bias))

    @cached_property
    def B(self) -> Block:
        """The square matrix from base speeds to those asked for.  (N3)"""
        return Block.of(ca.densify(_rows(self.Theta_0, list(self.asked))))

    def to_base(self, nu: SX) -> SX:
        """Convert the speeds asked for to the base's, nu_0."""
        if self.is_direct:
            return nu
        return self.B.solve(nu - _rows(self.s_0, list(self.asked)))

    def to_base_acceleration(self, nu_dot: SX) -> SX:
        """Convert accelerations of the speeds asked for to the base's, nu_0_dot."""
        if self.is_direct:
            return nu_dot
        return self.B.solve(nu_dot - _rows(self.sigma_0, list(self.asked)))

    def speeds(self, nu: SX) -> SX:
        """v = Theta nu + s.  (N1)"""
        return self.expand(self.to_base(nu)) + self.s_0

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
        for M in self.matrices:
            Theta_0 = np.zeros((self.size, len(ind)))
            Theta_0[ind] = np.eye(len(ind))
            Theta_0[dep] = -np.linalg.solve(M[:, dep], M[:, ind])
            usual.append(Theta_0[list(self.asked)])
        return self.B.pivot_against(_usual_columns(usual))


def _usual_columns(matrices: list[np.ndarray]) -> list[float]:
    """Median lengths of the columns; a sample near a singular one would make means too long."""
    return _rounded(np.median([np.linalg.norm(M, axis=0) for M in matrices], axis=0))


def _rounded(lengths: np.ndarray) -> list[float]:
    """Lengths to twelve digits: what is one but for rounding costs no operation."""
    return [float(f"{length:.12g}") for length in lengths.clip(1e-300)]


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
