r"""Small linear systems on symbols, branch-free.

Pivots cannot be chosen when code is generated, so symmetric positive definite systems are factored
as L D L^T, blocks up to three by three are inverted by cofactors, and larger ones go through
Householder reflections, which need no pivoting.
"""

from __future__ import annotations

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
    Q: SX | None = None  # larger: matrix = Q R
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
        Q, R = householder(matrix)
        shares = [ca.fabs(R[i, i]) / ca.fmax(ca.norm_2(R[:, i]), 1e-300) for i in range(n)]
        return cls(n, ca.mmin(ca.vertcat(*shares)), Q=Q, R=R)

    def solve(self, b: SX) -> SX:
        """x with matrix x = b."""
        if self.inverse is not None:
            return self.inverse @ b
        assert self.Q is not None and self.R is not None
        return _back_substitute(self.R, self.Q.T @ b)

    def solve_transposed(self, b: SX) -> SX:
        """x with matrix^T x = b."""
        if self.inverse is not None:
            return self.inverse.T @ b
        assert self.Q is not None and self.R is not None
        return self.Q @ _forward_substitute(self.R.T, b)


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


def householder(matrix: SX) -> tuple[SX, SX]:
    """Q, R by reflections that skip structural zeros.

    The sign of each reflection avoids cancellation, so that nothing divides by zero unless the
    matrix is singular.
    """
    n = matrix.shape[0]
    R, turned = SX(matrix), SX.eye(n)  # the reflections turn the identity into Q^T
    for k in range(n - 1):
        rows = [i for i in range(k, n) if i == k or not is_zero(R[i, k])]
        if len(rows) == 1:
            continue
        x = [R[i, k] for i in rows]
        norm = ca.sqrt(ca.sumsqr(ca.vertcat(*x)))
        signed = ca.copysign(norm, x[0])
        v = [x[0] + signed, *x[1:]]
        scale = 1 / (signed * v[0])  # 2 / v.v
        for j in range(k + 1, n):
            _reflect(R, rows, j, v, scale)
        for j in range(n):
            _reflect(turned, rows, j, v, scale)
        R[k, k] = -signed
        for i in rows[1:]:
            R[i, k] = 0
    return turned.T, R


def _reflect(R: SX, rows: list[int], column: int, v: list[SX], scale: SX) -> None:
    product = sum((v_i * R[i, column] for i, v_i in zip(rows, v, strict=True)), SX(0))
    if is_zero(product):
        return
    product = product * scale
    for i, v_i in zip(rows, v, strict=True):
        R[i, column] = R[i, column] - v_i * product


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
