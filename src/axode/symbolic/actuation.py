r"""Inputs from the force a motion needs (D).

The map G from motor inputs to generalised force may be square, tall or wide.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.symbolic.linear import Block, Factor
from axode.symbolic.spatial import SX


def classify(ranks: list[int], motors: int, mobility: int) -> str:
    """Which of none, under, full and redundant actuation the motors give."""
    rank = max(ranks, default=0)
    if mobility == 0:
        return "driven by time alone"
    if motors == 0:
        return "unactuated"
    if rank < mobility:
        return "underactuated"
    return "fully actuated" if motors == mobility else "redundantly actuated"


def solve_inputs(G: SX, need: SX, inertia: SX, weights: SX, independent: list[int]) -> SX:
    r"""Motor inputs u with G u = need, or the nearest.

    Square: solved. Wide: least weighted effort, :math:`u = W^{-1} G^T (G W^{-1} G^T)^{-1} r`. Tall:
    least residual in the norm of the inverse inertia,
    :math:`u = (G^T I^{-1} G)^{-1} G^T I^{-1} r`, the one norm that does not depend on the choice of
    independent speeds. Motors that repeat each other and yet cannot give every motion: both, by way
    of the `independent` ones, G = F K.                                           \tag{D10}
    """
    n, m = G.shape
    rank = len(independent)
    if m == 0 or n == 0 or rank == 0:  # nothing to drive with, to drive, or that motors move
        return SX.zeros(m)
    if rank == n:
        return Block.of(G).solve(need) if m == n else _least_effort(G, need, weights)
    F = G if rank == m else G[:, independent]
    reduced = Factor.of(inertia).solve(ca.horzcat(G, need))  # I^-1 [G r]
    metric = Factor.of(F.T @ (reduced[:, :m] if rank == m else reduced[:, independent]))
    nearest = metric.solve(F.T @ reduced[:, m])  # (D10)
    return nearest if rank == m else _least_effort(
        metric.solve(F.T @ reduced[:, :m]), nearest, weights)  # fmt: skip


def _least_effort(G: SX, need: SX, weights: SX) -> SX:
    scaled = G.T / weights  # W^-1 G^T
    return scaled @ Factor.of(G @ scaled).solve(need)


def actuation_ranks(G: list[np.ndarray]) -> list[int]:
    """Rank of the input map at several configurations."""
    return [_rank(g) for g in G]


def independent_motors(G: list[np.ndarray]) -> list[int]:
    """Motors none of which repeats the others, as many as there are, at a generic configuration."""
    g = max(G, key=_rank)
    chosen: list[int] = []
    for motor in range(g.shape[1]):
        if _rank(g[:, [*chosen, motor]]) > len(chosen):
            chosen.append(motor)
    return chosen


def _rank(g: np.ndarray) -> int:
    if not g.size:
        return 0
    return int(np.linalg.matrix_rank(g, tol=1e-9 * max(1.0, np.abs(g).max())))
