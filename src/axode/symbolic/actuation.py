r"""Inputs from the force a motion needs (D).

The map G from motor inputs to generalised force may be square, tall or wide.
"""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.errors import NotApplicable
from axode.symbolic.linear import Block, Factor
from axode.symbolic.spatial import SX


def classify(ranks: list[int], motors: int, mobility: int) -> str:
    """Which of none, under, full and redundant actuation the motors give."""
    rank = max(ranks, default=0)
    if motors == 0:
        return "unactuated"
    if rank < mobility:
        return "underactuated"
    return "fully actuated" if motors == mobility else "redundantly actuated"


def solve_inputs(G: SX, need: SX, inertia: SX, actuation: str, weights: SX) -> SX:
    r"""Motor inputs u with G u = need, or the nearest.

    Square: solved. Wide: least weighted effort, :math:`u = W^{-1} G^T (G W^{-1} G^T)^{-1} r`. Tall:
    least residual in the norm of the inverse inertia,
    :math:`u = (G^T I^{-1} G)^{-1} G^T I^{-1} r`, the one norm that does not depend on the choice of
    independent speeds.                                                           \tag{D10}
    """
    n, m = G.shape
    if actuation == "unactuated":
        return SX.zeros(0)
    if actuation == "fully actuated":
        return Block.of(G).solve(need)
    if actuation == "redundantly actuated":
        scaled = G.T / weights  # W^-1 G^T
        return scaled @ Factor.of(G @ scaled).solve(need)
    if m > n:
        raise NotApplicable(
            f"inverse dynamics: {m} motors, yet they cannot produce every motion of {n} speeds; "
            "remove the motors that repeat each other"
        )
    reduced = Factor.of(inertia).solve(ca.horzcat(G, need))  # I^-1 [G r]
    return Factor.of(G.T @ reduced[:, :m]).solve(G.T @ reduced[:, m])  # (D10)


def actuation_ranks(G: list[np.ndarray]) -> list[int]:
    """Rank of the input map at several configurations."""
    return [int(np.linalg.matrix_rank(g, tol=1e-9 * max(1.0, np.abs(g).max(initial=0.0))))
            if g.size else 0 for g in G]  # fmt: skip
