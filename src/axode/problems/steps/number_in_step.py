"""Numbers inside a step: polynomials through their values at the nodes of Lobatto's quadrature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from axode.codegen.tape.formulas import Formula

NODES = 0.5 + 0.5 * np.array([-1.0, -((3 / 7) ** 0.5), 0.0, (3 / 7) ** 0.5, 1.0])
PARTS = range(len(NODES) - 1)  # of a step, between neighbouring nodes
# from values at the nodes to the coefficients of powers, and to slopes at the nodes
_POWERS = np.linalg.inv(np.vander(NODES, increasing=True))
_SLOPES = np.vander(NODES, 4, increasing=True) @ (np.arange(1.0, 5.0)[:, np.newaxis] * _POWERS[1:])


class NumberInStep:
    """A number inside a step, as a polynomial in the part s of the step.

    Args:
        values: At the nodes.
    """

    def __init__(self, values: Sequence[Formula]) -> None:
        self.values = values
        rises = [value - values[0] for value in values[1:]]  # zero where the number stays the same

        def weighted(row: Sequence[float]) -> Formula:
            terms = [float(w) * rise for w, rise in zip(row[1:], rises, strict=True)]
            return reduce(Formula.__add__, terms)

        self.slopes = [weighted(row) for row in _SLOPES]
        self.powers = [weighted(row) for row in _POWERS[1:]]

    def at(self, s: Formula) -> Formula:
        """Value."""
        a, b, c, d = self.powers
        return self.values[0] + s * (a + s * (b + s * (c + s * d)))

    def slope(self, s: Formula) -> Formula:
        """Derivative by s."""
        a, b, c, d = self.powers
        return a + s * (2.0 * b + s * (3.0 * c + s * (4.0 * d)))

    def bend(self, s: Formula) -> Formula:
        """Second derivative."""
        _, b, c, d = self.powers
        return 2.0 * b + s * (6.0 * c + s * (12.0 * d))

    def turns(self, k: int) -> Formula:
        """Return whether there is an extreme between a node and the next."""
        return self.slopes[k] * self.slopes[k + 1] < 0.0

    def reach(self, k: int) -> Formula:
        """Return how far an extreme between two nodes may be beyond the values there."""
        a, b = abs(self.slopes[k]), abs(self.slopes[k + 1])
        width = 2.0 * float(NODES[k + 1] - NODES[k])  # twice what tangents allow
        return self.turns(k).then(width * a * b / (a + b), 0.0)

    def extreme(self, k: int) -> Formula:
        """Place of the extreme between two nodes."""
        a, b = self.slopes[k], self.slopes[k + 1]
        low, high = float(NODES[k]), float(NODES[k + 1])
        s = low + (high - low) * (a / (a - b))
        for _ in range(2):
            s = (s - self.slope(s) / self.bend(s)).most(low).least(high)
        return s

    def zero(self, k: int) -> Formula:
        """Place of the zero between two nodes with values of opposite signs."""
        a, b = self.values[k], self.values[k + 1]
        low, high = float(NODES[k]), float(NODES[k + 1])
        s = low + (high - low) * (a / (a - b))
        for _ in range(2):
            s = (s - self.at(s) / self.slope(s)).most(low).least(high)
        return s
