r"""Coefficients of Radau IIA methods: collocation at the nodes of a Radau quadrature.

E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, sections IV.5 and IV.8. The
stages' increments z solve z = h A f(x + z). In the basis of A^{-1}'s eigenvectors, z = T w, the
linear systems of Newton's method decouple into one real system and pairs of complex ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Legendre, Polynomial

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Radau:
    """The method with a number of stages, an odd one; its order is twice that less one."""

    stages: int

    @cached_property
    def nodes(self) -> Array:
        """Where the stages are, parts of a step; the last one is its end."""
        n = self.stages
        polynomial = Legendre.basis(n) - Legendre.basis(n - 1)
        roots = polynomial.roots().real
        for _ in range(3):  # to the last digit
            roots = roots - polynomial(roots) / polynomial.deriv()(roots)
        nodes = np.sort((roots + 1) / 2)
        nodes[-1] = 1.0
        return np.asarray(nodes, dtype=float)

    @cached_property
    def lagrange(self) -> list[Polynomial]:
        """Polynomials in the part of a step, one at a node and zero at the others and at 0."""
        made = []
        for i, node in enumerate(self.nodes):
            others = [0.0, *np.delete(self.nodes, i)]
            whole = Polynomial.fromroots(others)
            made.append(whole / whole(node))
        return made

    @cached_property
    def A(self) -> Array:
        """Weights of the rates in the stages."""
        powers = np.arange(self.stages)
        values = self.nodes[:, np.newaxis] ** powers
        integrals = self.nodes[:, np.newaxis] ** (powers + 1) / (powers + 1)
        return np.asarray(np.linalg.solve(values.T, integrals.T).T)

    @cached_property
    def _basis(self) -> tuple[Array, Array]:
        """T and the blocks of T^-1 A^-1 T: a number, then pairs [[a, -b], [b, a]]."""
        inverse = np.linalg.inv(self.A)
        values, vectors = np.linalg.eig(inverse)
        real = int(np.argmin(np.abs(values.imag)))
        columns = [vectors[:, real].real]
        for k in np.argsort(values.imag):
            if values[k].imag < -1e-9:  # a - i b: of v = r + i s, A^-1 r = a r + b s
                columns += [vectors[:, k].real, vectors[:, k].imag]
        T = np.stack(columns, axis=1)
        T = T / np.abs(T).max(axis=0)[[0, *np.repeat(np.arange(1, self.stages, 2), 2)]]
        return T, np.linalg.solve(T, inverse @ T)

    @property
    def T(self) -> Array:
        """Stages from transformed ones."""
        return self._basis[0]

    @property
    def blocks(self) -> Array:
        """T^-1 A^-1 T, zero outside of its blocks."""
        mask = np.zeros((self.stages, self.stages))
        mask[0, 0] = 1.0
        for k in range(1, self.stages, 2):
            mask[k : k + 2, k : k + 2] = 1.0
        return np.asarray(mask * self._basis[1])

    @cached_property
    def error(self) -> Array:
        """Weights of the stages' increments in the error of a step.

        A quadrature of the same nodes and of the start, weighted by the real number's reciprocal,
        less the method itself.
        """
        n, first = self.stages, 1 / self.blocks[0, 0]
        powers = self.nodes ** np.arange(n)[:, np.newaxis]
        wanted = 1 / np.arange(1, n + 1)
        wanted[0] -= first
        embedded = np.linalg.solve(powers, wanted)
        return np.asarray((embedded - self.A[-1]) @ np.linalg.inv(self.A))

    def extrapolation(self) -> list[list[Polynomial]]:
        """Transformed stages of the next step from the increments of the last one.

        Entry (k, j) is a polynomial in the ratio of the lengths of the two steps.
        """
        inverse = np.linalg.inv(self.T)
        ahead = [
            [
                p(Polynomial([1.0, node])) - float(j == self.stages - 1)
                for j, p in enumerate(self.lagrange)
            ]
            for node in self.nodes
        ]
        return [
            [
                sum((inverse[k, i] * ahead[i][j] for i in range(self.stages)), Polynomial([0.0]))
                for j in range(self.stages)
            ]
            for k in range(self.stages)
        ]
