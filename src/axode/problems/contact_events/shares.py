r"""Shares of forces among rows that follow from others, in NumPy.

Forces may be moved along the null space of the rows without any change of the motion. What sticks
goes on sticking as long as *some* share keeps every contact within its cone. The best one,

.. math:: \max_{z, t} t: \quad
          \mu \lambda_n - |\lambda_t| \ge t\, s, \quad \lambda_n \ge t\, s, \quad
          \lambda = \lambda_0 + N z,                                  \tag{L8}

with scales s of the contacts, is found by Newton's method with logarithmic barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.numerics.rank import least_norm
from axode.numerics.tolerances import TINY

Array = npt.NDArray[np.float64]
LEAST_SCALE = 1e-3  # of the largest limit: scale of contacts that bear less
CLOSE = 1e-10  # of the limits: how near the margin comes to the largest
GOOD = 0.3  # of the margin: what may be missing while there is one
LEASH = 1e-4  # weight of forces that no contact bounds
COOLING = 0.1  # of the weight of the barriers, from one problem to the next
ITERATIONS = 12  # of Newton's method per problem
ARMIJO = 0.1  # of the decrease that a step of Newton's method promises


@dataclass(frozen=True)
class Cone:
    """Forces of rows that lie in a disk, or of a row that presses.

    Attributes:
        rows: Rows that rub; none if only the normal force is bound.
        normal: Normal row; -1 where the limit is itself the radius.
        limit: Coefficient, or the radius.
    """

    rows: tuple[int, ...]
    normal: int
    limit: float = 1.0

    def bound(self, x: Array) -> float:
        """Radius of the disk, or the normal force."""
        return self.limit * (1.0 if self.normal < 0 else float(x[self.normal]))

    def margin(self, x: Array) -> float:
        """How far the forces are within."""
        return self.bound(x) - float(np.linalg.norm(x[list(self.rows)]))


def best_share(x: Array, null: Array, cones: Sequence[Cone]) -> tuple[Array, float]:
    """Return forces whose least margin is nearly the largest, and that margin.

    Margins are parts of the limits. The largest one is found closely only where there is hardly
    any or none.

    Args:
        x: Forces of all rows, (m,).
        null: Changes of forces that change no motion, (m, k).
        cones: What bounds the forces.
    """
    bounds = np.array([cone.bound(x) for cone in cones])
    scales = np.maximum(bounds, LEAST_SCALE * max(float(np.abs(bounds).max()), TINY))
    t = min(cone.margin(x) / s for cone, s in zip(cones, scales, strict=True))
    if not null.shape[1]:
        return x, float(t)
    barriers = _Barriers(x, null * float(np.abs(x).max()), cones, scales)
    y, weight = np.append(np.zeros(null.shape[1]), t - 1.0), 1.0
    gap = 2.0 * len(cones) + 1.0  # of the least margin, per weight
    while True:
        y = barriers.minimized(y, weight)
        if weight * gap < max(CLOSE, GOOD * y[-1]) or y[-1] + weight * gap < 0:
            return barriers.forces(y), float(y[-1])
        weight *= COOLING


class _Barriers:
    """-t / weight and the barriers of all cones, over y = (z, t)."""

    def __init__(self, x: Array, null: Array, cones: Sequence[Cone], scales: Array) -> None:
        k = null.shape[1]
        self.x, self.null = x, null
        self.parts: list[tuple[float, Array, Array, Array]] = []
        for cone, scale in zip(cones, scales, strict=True):
            slope = (
                np.zeros(k + 1) if cone.normal < 0 else cone.limit * np.append(null[cone.normal], 0)
            )
            slope[-1] -= scale
            rows = list(cone.rows)
            across = np.hstack([null[rows], np.zeros((len(rows), 1))]) / scale
            self.parts.append((cone.bound(x) / scale, slope / scale, x[rows] / scale, across))

    def forces(self, y: Array) -> Array:
        """Forces of all rows."""
        return np.asarray(self.x + self.null @ y[:-1])

    def value(self, y: Array, weight: float) -> float:
        """What is minimized; infinite outside."""
        if y[-1] >= 1.0:
            return np.inf
        total = -y[-1] / weight - np.log(1.0 - y[-1]) + LEASH * float(y[:-1] @ y[:-1])
        for bound, slope, force, across in self.parts:
            s, f = bound + slope @ y, force + across @ y
            inside = s * s - f @ f
            if s <= 0 or inside <= 0:
                return np.inf
            total -= np.log(inside) if len(f) else np.log(s)
        return float(total)

    def derivatives(self, y: Array, weight: float) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        k = len(y)
        g, H = 2.0 * LEASH * y, 2.0 * LEASH * np.eye(k)
        rest = 1.0 - y[-1]
        g[-1], H[-1, -1] = 1.0 / rest - 1.0 / weight, 1.0 / rest**2
        for bound, slope, force, across in self.parts:
            s, f = bound + slope @ y, force + across @ y
            if not len(f):
                g -= slope / s
                H += np.outer(slope, slope) / s**2
                continue
            inside = s * s - f @ f
            d = 2.0 * (s * slope - across.T @ f) / inside
            g -= d
            H += np.outer(d, d) - 2.0 * (np.outer(slope, slope) - across.T @ across) / inside
        return g, H

    def minimized(self, y: Array, weight: float) -> Array:
        """Minimize from a point inside."""
        value = self.value(y, weight)
        for _ in range(ITERATIONS):
            g, H = self.derivatives(y, weight)
            step = -least_norm(H, g)
            promised, part = float(g @ step), 1.0
            if -promised < 1e-6:
                break
            while part > 1e-10:
                found = self.value(y + part * step, weight)
                if found <= value + ARMIJO * part * promised:
                    y, value = y + part * step, found
                    break
                part *= 0.5
            else:
                break
        return y
