"""Linear systems of complex values as straight-line code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from axode.codegen.tape.formulas import Formula
from axode.kinematics.polynomials.tape_algebra import Complex


@dataclass(frozen=True)
class EliminatedMatrix:
    """A square matrix after elimination with exchanges of rows.

    Attributes:
        upper: Rows of the upper triangle, each from its diagonal on.
        inverses: Reciprocals of the diagonal.
        exchanges: By column, for each lower row whether it was exchanged with the pivot's.
        factors: By column, multiples of the pivot's row that were taken from the lower ones.
    """

    upper: list[list[Complex]]
    inverses: list[Complex]
    exchanges: list[list[Formula]]
    factors: list[list[Complex]]

    def solve(self, right: Sequence[Complex]) -> list[Complex]:
        """Solve for one right side."""
        x = list(right)
        n = len(x)
        for k in range(n):
            for i, flag in enumerate(self.exchanges[k], k + 1):
                x[k], x[i] = x[i].then(flag, x[k]), x[k].then(flag, x[i])
            for i, factor in enumerate(self.factors[k], k + 1):
                x[i] = x[i] - factor * x[k]
        for k in reversed(range(n)):
            for j, value in enumerate(self.upper[k][1:], k + 1):
                x[k] = x[k] - value * x[j]
            x[k] = x[k] * self.inverses[k]
        return x


def eliminate(matrix: Sequence[Sequence[Complex]]) -> EliminatedMatrix:
    """Eliminate a square matrix; the pivot of each column is its largest number."""
    rows = [list(row) for row in matrix]
    n = len(rows)
    made = EliminatedMatrix([], [], [], [])
    for k in range(n):
        size, flags = rows[k][0].square(), []
        for i in range(k + 1, n):
            other = rows[i][0].square()
            flag = other > size
            size = flag.then(other, size)
            flags.append(flag)
            upper = [b.then(flag, a) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[i] = [a.then(flag, b) for a, b in zip(rows[k], rows[i], strict=True)]
            rows[k] = upper
        pivot = rows[k][0]
        scale = 1.0 / size
        inverse = Complex(pivot.re * scale, -(pivot.im * scale))
        factors = []
        for i in range(k + 1, n):
            factor = rows[i][0] * inverse
            factors.append(factor)
            rows[i] = [b - factor * a for a, b in zip(rows[k][1:], rows[i][1:], strict=True)]
        made.upper.append(rows[k])
        made.inverses.append(inverse)
        made.exchanges.append(flags)
        made.factors.append(factors)
    return made
