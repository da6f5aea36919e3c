r"""Shortest solutions of sparse linear systems with more unknowns than rows.

.. math:: \begin{bmatrix} 1 & J^T \\ J & -\epsilon 1 \end{bmatrix}
          \begin{bmatrix} x \\ \lambda \end{bmatrix} = \begin{bmatrix} 0 \\ r \end{bmatrix}

is factorized without pivoting whatever the rank of J, for the small term keeps rows that depend on
each other from giving infinite results; corrections undo its effect. Legs that
meet in one platform stay apart in it, where :math:`J J^T` and everything orthogonal fill up.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

DAMPING = 1e-8  # of the mean squared row length
CORRECTIONS = 4  # each takes away all but DAMPING of the error, in rows far from dependent


class LeastNorm:
    """Solves with matrices of one pattern."""

    def __init__(self, pattern: ca.Sparsity) -> None:
        self._pattern = pattern
        self._entries = tuple(np.array(places) for places in pattern.get_triplet())
        self._rows, self._columns = pattern.shape
        ones = self._matrix(ca.DM(pattern, 1.0), 1.0)
        self._solver = ca.Linsol("least_norm", "ldl", ones.sparsity())

    def solve(self, J: np.ndarray, r: np.ndarray, damping: float = 0.0) -> np.ndarray:
        """Find the shortest x with J x = r, or nearly so where the rows contradict each other.

        Args:
            J: Matrix of the pattern.
            r: Right-hand side.
            damping: Part of the mean squared row length that corrections do not undo.
        """
        sparse = ca.DM(self._pattern, J[self._entries])
        size = max(float(ca.sumsqr(sparse)) / max(self._rows, 1), 1e-300)
        matrix = self._matrix(sparse, max(DAMPING, damping) * size)
        self._solver.sfact(matrix)
        self._solver.nfact(matrix)
        wanted = right = ca.vertcat(ca.DM.zeros(self._columns), ca.DM(r))
        undamped = self._matrix(sparse, damping * size)
        x = ca.DM.zeros(right.shape)
        for _ in range(1 + CORRECTIONS):
            x += self._solver.solve(matrix, right)
            right = wanted - undamped @ x
        solution: np.ndarray = np.array(x).ravel()[: self._columns]
        return solution

    def _matrix(self, J: ca.DM, damping: float) -> ca.DM:
        upper = ca.horzcat(ca.DM.eye(self._columns), J.T)
        return ca.vertcat(upper, ca.horzcat(J, -damping * ca.DM.eye(self._rows)))
