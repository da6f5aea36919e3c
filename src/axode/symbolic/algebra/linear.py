r"""Small linear systems on symbols, branch-free, and functions of numbers.

Pivots cannot be chosen when code is generated, so symmetric positive definite systems are factored
as L D L^T, blocks up to three by three are inverted by cofactors, and larger ones go through
Householder reflections, which need no pivoting.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.symbolic.algebra.spatial import SX, is_zero, minus, over, times

CLOSED_FORM = 3  # largest block solved by cofactors


@dataclass(frozen=True)
class Factor:
    """A symmetric positive definite matrix as L D L^T, structural zeros kept.

    Rows are taken in an order that keeps more of them, if there is one: outer links first, the
    inertia of a branched tree has no more entries in L than it has itself.
    """

    columns: list[dict[int, SX]]  # of L below its unit diagonal, by row
    inverse_d: list[SX]
    order: tuple[int, ...]  # row of the matrix that each row of L belongs to

    @classmethod
    def of(cls, matrix: SX) -> Factor:
        """Factor a matrix; only its lower triangle is read."""
        n = matrix.shape[0]
        triangle = {(i, j): matrix[i, j] for j in range(n) for i in range(j, n)}
        lower = {place: x for place, x in triangle.items() if not is_zero(x)}
        order = elimination_order(n, lower)
        columns: list[dict[int, SX]] = []
        rows: list[list[tuple[int, SX]]] = [[] for _ in range(n)]  # of L: column and entry
        by_d: list[dict[int, SX]] = []  # columns of L D, so that each product is formed once
        inverse_d: list[SX] = []
        zero, one = SX(0), SX(1)
        for j in range(n):
            entries = {}
            for i in range(j, n):
                a, b = order[i], order[j]
                place = (max(a, b), min(a, b))
                if place in lower:
                    entries[i] = lower[place]
            for k, entry in rows[j]:
                for i, product in by_d[k].items():
                    if i >= j:
                        entries[i] = minus(entries.get(i, zero), times(product, entry))
            inverse_d.append(over(one, entries.get(j, zero)))
            by_d.append(entries)
            columns.append({i: times(x, inverse_d[j]) for i, x in sorted(entries.items()) if i > j})
            for i, x in columns[j].items():
                rows[i].append((j, x))
        return cls(columns, inverse_d, order)

    def solve(self, b: SX, sign: int = 1) -> SX:
        """Solve L D L^T x = b, or -b, for one or several right-hand sides.

        Sums absorb a sign that stands before them; negated results would be operations.
        """
        n = len(self.inverse_d)
        if n == 0:
            return SX(b)
        x = [b[i, :] for i in self.order]
        for k in range(n):
            for i, entry in self.columns[k].items():
                x[i] = minus(x[i], times(entry, x[k]))
        x = [times(SX(sign), times(x[i], self.inverse_d[i])) for i in range(n)]
        for i in reversed(range(n)):
            for k, entry in reversed(self.columns[i].items()):  # the one known last comes last
                x[i] = minus(x[i], times(entry, x[k]))
        place = {row: i for i, row in enumerate(self.order)}
        return ca.vertcat(*[x[place[row]] for row in range(n)])

    def inverse(self) -> SX:
        """The inverse, symmetric: each entry is formed once.

        :math:`L^T Z = D^{-1} L^{-1}`, whose right side is known above its diagonal: nothing.
        """
        n = len(self.inverse_d)
        Z: dict[tuple[int, int], SX] = {}
        for k in reversed(range(n)):
            for i in reversed(range(k + 1)):
                entries = reversed(self.columns[i].items())  # the product known last comes last
                terms = [x * Z[max(j, k), min(j, k)] for j, x in entries]
                known = sum(terms, SX(0))
                Z[k, i] = self.inverse_d[k] - known if i == k else -known
        place = {row: i for i, row in enumerate(self.order)}
        rows = [
            [Z[max(place[r], place[c]), min(place[r], place[c])] for c in range(n)]
            for r in range(n)
        ]
        return ca.vertcat(SX(0, n), *[ca.horzcat(*row) for row in rows])


def elimination_order(n: int, pattern: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """The order of rows in which a symmetric matrix is factored with fewest operations.

    As they stand, unless always taking the row with the fewest neighbours does better.
    """
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for i, j in pattern:
        if i != j:
            neighbours[i].add(j)
            neighbours[j].add(i)
    natural = tuple(range(n))
    if sum(map(len, neighbours)) == n * (n - 1):
        return natural
    plain, _ = _eliminated(neighbours, natural)
    cost, order = _eliminated(neighbours, None)
    return order if cost < plain else natural


def _eliminated(
    neighbours: list[set[int]], order: tuple[int, ...] | None
) -> tuple[int, tuple[int, ...]]:
    """Operations of a factorization in an order, or in that of fewest neighbours; the order."""
    left = {i: set(others) for i, others in enumerate(neighbours)}
    cost, taken = 0, []
    for step in range(len(neighbours)):
        i = order[step] if order is not None else min(left, key=lambda r: (len(left[r]), r))
        others = left.pop(i)
        cost += len(others) * (len(others) + 5)  # its entries, their products, two substitutions
        for j in others:
            left[j] |= others
            left[j] -= {i, j}
        taken.append(i)
    return cost, tuple(taken)


@dataclass(frozen=True)
class Block:
    """A square system that can be solved, also transposed, and its pivot, which vanishes with rank.

    The pivot does not depend on units: one for orthogonal rows, zero where rank is lost.
    """

    size: int
    pivot: SX
    inverse: SX | None = None  # up to three by three
    reflections: tuple[Reflection, ...] = ()  # larger: they turn the matrix into R
    R: SX | None = None
    transposed: bool = False  # whether they turn its transpose into R

    @classmethod
    def of(cls, matrix: SX) -> Block:
        """Prepare a square matrix for solving."""
        n = matrix.shape[0]
        if n <= CLOSED_FORM:
            adjugate, determinant = _cofactors(matrix)
            lengths = [ca.norm_2(matrix[i, :].T) for i in range(n)]
            pivot = determinant / ca.fmax(_product(lengths), 1e-300)
            return cls(n, pivot, inverse=adjugate * (1 / determinant))
        reflections, R = householder(matrix)
        sign = (-1.0) ** len(reflections)
        pivot = _least_share(R, [1e-300] * n, sign)
        return cls(n, pivot, reflections=reflections, R=R)

    @classmethod
    def of_rows(cls, matrix: SX) -> Block:
        """Prepare a square matrix for solving, rows of which are computed alike.

        Rows of equal limbs are then columns that are reflected side by side.
        """
        block = cls.of(matrix.T)
        if block.inverse is not None:
            return cls.of(matrix)
        return replace(block, transposed=True)

    def pivot_against(self, lengths: Sequence[float]) -> SX:
        """The pivot against usual lengths of the columns, of a block too large for a closed form.

        Columns that vanish as a whole seem small only against what they are elsewhere.
        """
        assert self.R is not None
        return _least_share(self.R, lengths, (-1.0) ** len(self.reflections))

    def solve(self, b: SX) -> SX:
        """Solve matrix x = b."""
        if self.inverse is not None:
            return self.inverse @ b
        return self._solve_across(b) if self.transposed else self._solve_along(b)

    def solve_transposed(self, b: SX) -> SX:
        """Solve matrix^T x = b."""
        if self.inverse is not None:
            return self.inverse.T @ b
        return self._solve_along(b) if self.transposed else self._solve_across(b)

    def inverted(self) -> SX:
        """The inverse, for as many right-hand sides as there are rows or more."""
        if self.inverse is not None:
            return self.inverse
        assert self.R is not None
        x = _back_substitute(self.R, SX.eye(self.size)).T
        for reflection in reversed(self.reflections):
            reflection.apply(x)
        return x if self.transposed else x.T

    def _solve_along(self, b: SX) -> SX:
        """Solve with what the reflections turn into R."""
        assert self.R is not None
        x = SX(ca.densify(b))
        for reflection in self.reflections:
            reflection.apply(x)
        return _back_substitute(self.R, x)

    def _solve_across(self, b: SX) -> SX:
        """Solve with its transpose."""
        assert self.R is not None
        x = _forward_substitute(self.R.T, b)
        for reflection in reversed(self.reflections):
            reflection.apply(x)
        return x


def _least_share(R: SX, lengths: Sequence[float], sign: float) -> SX:
    """Least part of a column's length, or of a given one, that stands on the diagonal.

    It has the sign of the determinant; `sign` is that of the reflections. Shares do not change
    theirs where it vanishes: a step may lead from one side to the other.
    """
    shares = [
        ca.fabs(R[i, i]) / ca.fmax(ca.norm_2(R[:, i]), length) for i, length in enumerate(lengths)
    ]
    negative = _product([ca.copysign(1.0, R[i, i]) for i in range(len(lengths))])
    return ca.mmin(ca.vertcat(*shares)) * (sign * negative)


def _product(values: list[SX]) -> SX:
    product = SX(1)
    for value in values:
        product = product * value
    return product


def _cofactors(m: SX) -> tuple[SX, SX]:
    """Adjugate and determinant of a matrix of size one, two or three."""
    n = m.shape[0]
    if n == 1:
        return SX(1), m
    if n == 2:
        adjugate = ca.blockcat(m[1, 1], -m[0, 1], -m[1, 0], m[0, 0])
        return adjugate, m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]
    rows = [m[i, :].T for i in range(3)]
    columns = [ca.cross(rows[(i + 1) % 3], rows[(i + 2) % 3]) for i in range(3)]
    return ca.horzcat(*columns), ca.dot(rows[0], columns[0])


@dataclass(frozen=True)
class Reflection:
    """One reflection 1 - scale v v^T, on the rows where v is not zero."""

    rows: tuple[int, ...]
    v: tuple[SX, ...]
    scale: SX

    def apply(self, x: SX, first_column: int = 0) -> None:
        """Reflect the columns of a matrix in place."""
        place = list(self.rows), slice(first_column, x.shape[1])
        reflected, v = x[place], ca.vertcat(*self.v)
        x[place] = reflected - v @ ((v.T @ reflected) * self.scale)


def householder(matrix: SX, least: float = 0.0) -> tuple[tuple[Reflection, ...], SX]:
    """Reflections that turn a matrix into an upper triangle R, structural zeros skipped.

    Args:
        matrix: The matrix.
        least: Squares of columns are no less, for matrices that may lose rank.

    The sign of each avoids cancellation, so that nothing divides by zero unless the matrix is
    singular. They are kept apart: one right-hand side is cheaper reflected than multiplied by Q.
    """
    n = matrix.shape[0]
    R = SX(matrix)
    reflections: list[Reflection] = []
    for k in range(n - 1):
        rows = tuple(i for i in range(k, n) if i == k or not is_zero(R[i, k]))
        if len(rows) == 1:
            continue
        x = [R[i, k] for i in rows]
        signed = ca.copysign(ca.sqrt(ca.sumsqr(ca.vertcat(*x))), x[0])
        v = (x[0] + signed, *x[1:])
        square = signed * v[0]  # v.v / 2
        scale = 1 / (ca.fmax(square, least) if least else square)
        reflections.append(Reflection(rows, v, scale))
        reflections[-1].apply(R, k + 1)
        R[k, k] = -signed
        for i in rows[1:]:
            R[i, k] = 0
    return tuple(reflections), R


def orthonormal_columns(matrix: SX) -> tuple[SX, SX]:
    """Q with orthonormal columns and an upper triangle R, matrix = Q R, of a tall matrix.

    The diagonal of R is positive, so that Q is smooth. Where the matrix loses rank Q spans more
    than its columns do.
    """
    m, n = matrix.shape
    reflections, R = householder(ca.horzcat(matrix, SX(m, m - n)), least=1e-300)
    Q = SX.eye(m)[:, :n]
    for reflection in reversed(reflections):
        reflection.apply(Q)
    signs = ca.diag(ca.vertcat(*[ca.copysign(1.0, R[k, k]) for k in range(n)]))
    return ca.sparsify(Q @ signs), ca.sparsify(signs @ R[:n, :n])


def _back_substitute(R: SX, b: SX) -> SX:
    n = R.shape[0]
    x: list[SX] = [SX(0)] * n
    for i in reversed(range(n)):
        rest = b[i, :]
        for k in range(i + 1, n):
            rest = minus(rest, times(R[i, k], x[k]))
        x[i] = over(rest, R[i, i])
    return ca.vertcat(*x)


def _forward_substitute(L: SX, b: SX) -> SX:
    n = L.shape[0]
    x: list[SX] = []
    for i in range(n):
        rest = b[i, :]
        for k in range(i):
            rest = minus(rest, times(L[i, k], x[k]))
        x.append(over(rest, L[i, i]))
    return ca.vertcat(*x)


# functions of numbers -----------------------------------------------------------------------------


Array = npt.NDArray[np.float64]


class NumericFunction:
    """A function of vectors that gives matrices, evaluated again and again.

    Args:
        name: Its name.
        arguments: Symbols of its arguments.
        results: What it gives, by name.
    """

    def __init__(self, name: str, arguments: list[SX], results: Mapping[str, SX]) -> None:
        dense = [ca.densify(result) for result in results.values()]
        self._function = ca.Function(name, arguments, dense)
        self._buffer, self._evaluate = self._function.buffer()
        self._given = [np.zeros(symbols.numel()) for symbols in arguments]
        self._made = {n: np.zeros(x.shape[::-1]) for n, x in zip(results, dense, strict=True)}
        for k, array in enumerate(self._given):
            if array.size:
                self._buffer.set_arg(k, array.data)  # type: ignore[call-arg]
        for k, array in enumerate(self._made.values()):
            if array.size:
                self._buffer.set_res(k, array.data)  # type: ignore[call-arg]
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> dict[str, Array]:
        """Evaluate it at numbers."""
        with self._lock:
            for array, value in zip(self._given, arguments, strict=True):
                array[...] = value
            self._evaluate()
            return {name: array.T.copy() for name, array in self._made.items()}
