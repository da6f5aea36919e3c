"""Dependent speeds of long chains, row by row from the ground outwards (N).

Each row takes the outermost speed that it can be solved for and no row before it has taken. A chain
on wheels is solved link by link then, in blocks of one, however its freedoms are counted and
whatever its home looks like.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axode.symbolic.constraints.anchored_rows import LONG
from axode.symbolic.constraints.redundant_rows import RankReport
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.rows import Row

USABLE = 0.05  # of a unit velocity: what a unit speed must give its row at home


def is_long(rows: Sequence[Row]) -> bool:
    """Return whether rows reach over so many links that reading them at inner links pays."""
    return sum(len(row.side.felt) - 1 for row in rows if row.side is not None) >= LONG


def speeds_left_by_depth(
    tree: Tree, rows: Sequence[Row], report: RankReport, preferred: Sequence[int]
) -> list[int] | None:
    """Find independent speeds that leave each row one speed to be solved for.

    Args:
        tree: The tree.
        rows: Kept rows.
        report: Their entries at home.
        preferred: Speeds in the order in which they make good independent ones.

    Returns:
        None where some row finds no speed.
    """
    units = report.units and report.units.of_rows(report.kept)
    there = report.home_matrix or report.matrices[:1]
    usual = np.max([np.abs(units.measure(A) if units else A) for A in there], axis=0)
    depth = [0] * len(tree.links)
    owner: dict[int, int] = {}
    for i, link in enumerate(tree.links):
        depth[i] = depth[link.parent] + 1 if link.parent >= 0 else 1
        owner |= dict.fromkeys(link.speeds, i)
    rank = {j: k for k, j in enumerate(preferred)}
    reach = [
        {j: (depth[owner[j]], rank.get(j, len(rank))) for j in row.entries if j in owner}
        for row in rows
    ]
    taken: set[int] = set()
    for r in sorted(range(len(rows)), key=lambda r: max(reach[r].values(), default=(0, 0))[0]):
        usable = [j for j in reach[r] if j not in taken and usual[r, j] >= USABLE]
        if not usable:
            return None
        taken.add(max(usable, key=reach[r].__getitem__))
    return [j for j in range(tree.v.shape[0]) if j not in taken]
