"""Determinant and condition number of a square matrix in symbols, without pivots.

They are evaluated at very many poses in straight-line code, in which no order of elimination would
suit all of them.
"""

from __future__ import annotations

from itertools import combinations

import casadi as ca

SX = ca.SX
SQUARINGS = 7  # the largest eigenvalue of six from traces of 128th and 129th powers: within 0.7 %
LEAST_PIVOT = 1e-16  # relative to the trace: condition numbers end at 1e8


def determinant(A: SX) -> SX:
    """Determinant by minors that are shared, for matrices of a few rows."""
    n = A.shape[0]
    minors: dict[tuple[int, ...], SX] = {(): SX(1)}
    for row in reversed(range(n)):
        larger: dict[tuple[int, ...], SX] = {}
        for columns in combinations(range(n), n - row):
            total = SX(0)
            for k, column in enumerate(columns):
                rest = (*columns[:k], *columns[k + 1 :])
                total += (-1) ** k * A[row, column] * minors[rest]
            larger[columns] = total
        minors = larger
    return minors[tuple(range(n))]


def reciprocal_condition(J: SX) -> SX:
    """Smallest by largest singular value of a matrix with at least as many rows as columns.

    From the largest eigenvalues of J'J and of its inverse; within 1 %, and better the farther the
    singular values are apart. Values below 1e-8 are rounding.
    """
    gram = ca.mtimes(J.T, J)
    inverse, trace = _inverse(gram)
    return 1 / ca.sqrt(_largest_eigenvalue(gram / trace) * _largest_eigenvalue(inverse * trace))


def _inverse(A: SX) -> tuple[SX, SX]:
    """Inverse of a symmetric positive definite matrix by L D L', and the trace of the matrix."""
    n = A.shape[0]
    trace = ca.trace(A)
    lower = SX.eye(n)
    pivots: list[SX] = []
    for i in range(n):
        for j in range(i):
            total = A[i, j] - sum((lower[i, k] * lower[j, k] * pivots[k] for k in range(j)), SX(0))
            lower[i, j] = total / pivots[j]
        left = A[i, i] - sum((lower[i, k] ** 2 * pivots[k] for k in range(i)), SX(0))
        pivots.append(ca.fmax(left, LEAST_PIVOT * trace))
    # the inverse of L, column by column below its diagonal
    back = SX.eye(n)
    for j in range(n):
        for i in range(j + 1, n):
            back[i, j] = -sum((lower[i, k] * back[k, j] for k in range(j, i)), SX(0))
    scaled = ca.vertcat(*[back[i, :] / pivots[i] for i in range(n)])
    return ca.mtimes(back.T, scaled), trace


def _largest_eigenvalue(A: SX) -> SX:
    """Largest eigenvalue of a symmetric positive definite matrix: tr A^129 / tr A^128."""
    n = A.shape[0]
    if n == 1:
        return A[0, 0]
    scale = ca.trace(A)
    unit = power = A / scale
    for _ in range(SQUARINGS):
        power = _symmetric_square(power)
        power = power / ca.trace(power)
    return (
        scale
        * sum((unit[i, j] * power[i, j] for i in range(n) for j in range(n)), SX(0))
        / ca.trace(power)
    )


def _symmetric_square(A: SX) -> SX:
    n = A.shape[0]
    made = SX(n, n)
    for i in range(n):
        for j in range(i + 1):
            made[i, j] = made[j, i] = ca.dot(A[i, :], A[j, :])
    return made
