r"""Small linear systems on symbols, branch-free.

Pivots cannot be chosen when code is generated, so symmetric positive definite systems are factored
as L D L^T, blocks up to three by three are inverted by cofactors, and larger ones go through
Householder reflections, which need no pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from axode.symbolic.spatial import SX, is_zero

CLOSED_FORM = 3  # largest block solved by cofactors


@dataclass(frozen=True)
class Factor:
    """A symmetric positive definite matrix as L D L^T, structural zeros kept."""

    L: SX  # unit lower triangle
    inverse_d: list[SX]

    @classmethod
    def of(cls, matrix: SX) -> Factor:
        """Factor a matrix; only its lower triangle is read."""
        n = matrix.shape[0]
        L, inverse_d = SX.eye(n), []
        LD = SX.zeros(n, n)  # L D, so that each product is formed once
        for j in range(n):
            for i in range(j, n):
                x = matrix[i, j]
                for k in range(j):
                    x = x - LD[i, k] * L[j, k]
                LD[i, j] = x
            inverse_d.append(1 / LD[j, j])
            for i in range(j + 1, n):
                L[i, j] = LD[i, j] * inverse_d[j]
        return cls(L, inverse_d)

    def solve(self, b: SX) -> SX:
        """x with L D L^T x = b, one or several right-hand sides."""
        n = len(self.inverse_d)
        if n == 0:
            return SX(b)
        x = [b[i, :] for i in range(n)]
        for i in range(n):
            for k in range(i):
                if not is_zero(self.L[i, k]):
                    x[i] = x[i] - self.L[i, k] * x[k]
        x = [x[i] * self.inverse_d[i] for i in range(n)]
        for i in reversed(range(n)):
            for k in range(i + 1, n):
                if not is_zero(self.L[k, i]):
                    x[i] = x[i] - self.L[k, i] * x[k]
        return ca.vertcat(*x)


@dataclass(frozen=True)
class Block:
    """A square system that can be solved, also transposed, and its pivot for watching rank.

    The pivot does not depend on units: one for orthogonal rows, zero where rank is lost.
    """

    size: int
    pivot: SX
    inverse: SX | None = None  # up to three by three
    reflections: tuple[Reflection, ...] = ()  # larger: they turn the matrix into R
    R: SX | None = None

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
        return cls(n, _least_share(R, [1e-300] * n), reflections=reflections, R=R)

    def pivot_against(self, lengths: Sequence[float]) -> SX:
        """The pivot against usual lengths of the columns, of a block too large for a closed form.

        Columns that vanish as a whole seem small only against what they are elsewhere.
        """
        assert self.R is not None
        return _least_share(self.R, lengths)

    def solve(self, b: SX) -> SX:
        """x with matrix x = b."""
        if self.inverse is not None:
            return self.inverse @ b
        assert self.R is not None
        x = SX(ca.densify(b))
        for reflection in self.reflections:
            reflection.apply(x)
        return _back_substitute(self.R, x)

    def solve_transposed(self, b: SX) -> SX:
        """x with matrix^T x = b."""
        if self.inverse is not None:
            return self.inverse.T @ b
        assert self.R is not None
        x = _forward_substitute(self.R.T, b)
        for reflection in reversed(self.reflections):
            reflection.apply(x)
        return x


def _least_share(R: SX, lengths: Sequence[float]) -> SX:
    """How much of its column, or of a length, stands on the diagonal, where that is least."""
    shares = [ca.fabs(R[i, i]) / ca.fmax(ca.norm_2(R[:, i]), length)
              for i, length in enumerate(lengths)]  # fmt: skip
    return ca.mmin(ca.vertcat(*shares))


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
        for column in range(first_column, x.shape[1]):
            pairs = list(zip(self.rows, self.v, strict=True))
            product = sum((v * x[i, column] for i, v in pairs), SX(0))
            if is_zero(product):
                continue
            product = product * self.scale
            for i, v in pairs:
                x[i, column] = x[i, column] - v * product


def householder(matrix: SX) -> tuple[tuple[Reflection, ...], SX]:
    """Reflections that turn a matrix into an upper triangle R, structural zeros skipped.

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
        reflections.append(Reflection(rows, v, 1 / (signed * v[0])))  # 2 / v.v
        reflections[-1].apply(R, k + 1)
        R[k, k] = -signed
        for i in rows[1:]:
            R[i, k] = 0
    return tuple(reflections), R


def _back_substitute(R: SX, b: SX) -> SX:
    n = R.shape[0]
    x: list[SX] = [SX(0)] * n
    for i in reversed(range(n)):
        rest = b[i, :]
        for k in range(i + 1, n):
            rest = rest - R[i, k] * x[k]
        x[i] = rest / R[i, i]
    return ca.vertcat(*x)


def _forward_substitute(L: SX, b: SX) -> SX:
    n = L.shape[0]
    x: list[SX] = []
    for i in range(n):
        rest = b[i, :]
        for k in range(i):
            rest = rest - L[i, k] * x[k]
        x.append(rest / L[i, i])
    return ca.vertcat(*x)
