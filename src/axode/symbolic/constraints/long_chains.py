r"""Rows read at inner links, so that chains cost what they are long (N).

A wheel far out on a chain feels every joint between it and the ground. Where the speeds of an inner
link's path are known, all that they do to the row is the twist of that link, its *anchor*,

.. math:: A_r v = \sum_{j \text{ outward of } a} A_{rj} v_j + n_a \cdot \omega_a + f_a \cdot u_a,
                                                                                  \tag{N12}

with :math:`(n_a, f_a)` the wrench of (C1) there. Twists go outward once for all rows, and wrenches
of transposed solves inward once.

Dependent speeds are chosen row by row from the ground outwards: each row takes the outermost speed
that it can be solved for and no row before it has taken. A chain on wheels is solved link by link
then, in blocks of one, however its freedoms are counted and whatever its home looks like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from axode.symbolic.algebra.spatial import SX, skew
from axode.symbolic.constraints.redundant_rows import RankReport
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import Twists
from axode.symbolic.tree.rows import Row, Side

LONG = 50  # links of all rows' paths together: of fewer, the entries themselves cost less


@dataclass(frozen=True)
class Anchor:
    """Where a row is read: at a link, for all speeds of its path.

    Attributes:
        link: The link.
        meet: Ancestor against which it moves.
        n: Moment of the row's wrench there, in the link's frame.
        f: Force.
        speeds: Speeds of the path, whose entries are not read.
    """

    link: int
    meet: int
    n: SX
    f: SX
    speeds: frozenset[int]

    def read(self, twists: Twists) -> SX:
        """What the row reads there: 1 x columns.  (N12)"""
        w, u = twists.at(self.link, self.meet)
        return self.n.T @ w + self.f.T @ u


def anchors_of(
    tree: Tree,
    sides: Sequence[Side | None],
    blocks: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    independent: Sequence[int],
    least: int = LONG,
) -> dict[int, Anchor]:
    """Find the outermost link at which each row can be read when its turn comes.

    Args:
        tree: The tree.
        sides: Wrenches of the rows along their near sides, if they have such.
        blocks: Rows and speeds of each solve, in order.
        independent: Speeds that are known beforehand.
        least: Links of all rows' paths; where there are fewer no row is read at an anchor.
    """
    known, found = set(independent), dict[int, Anchor]()
    reach: dict[tuple[int, int], int] = {}  # links whose paths are known, and how long these are
    total = 0
    for rows, columns in blocks:
        for r in rows:
            side = sides[r]
            if side is not None:
                anchor, length = _anchor(tree, side, known, reach)
                if length:
                    found[r], total = anchor, total + length
        known |= set(columns)
    return found if total >= least else {}


def _anchor(
    tree: Tree, side: Side, known: set[int], reach: dict[tuple[int, int], int]
) -> tuple[Anchor, int]:
    """Return the outermost link of a side whose path is known, and how many links this has."""
    length, place = 0, len(side.felt) - 1
    for k in range(len(side.felt) - 2, -1, -1):  # outward, as far as all is known
        link = side.felt[k][0]
        if (link, side.meet) not in reach:
            if not set(tree.links[link].speeds) <= known:
                break
            reach[link, side.meet] = length + 1
        length, place = reach[link, side.meet], k
    path = [link for link, _ in side.felt[place:-1]]
    speeds = frozenset(j for link in path for j in tree.links[link].speeds)
    link, wrench = side.felt[place]
    return Anchor(link, side.meet, wrench.n, wrench.f, speeds), length


class Wrenches:
    """Wrenches of anchored rows, carried inward: the transpose of :class:`Twists`.

    Each link's is final when it is asked for, as rows are anchored at known links only.

    Args:
        tree: The tree.
        anchors: Anchors by row.
    """

    def __init__(self, tree: Tree, anchors: dict[int, Anchor]) -> None:
        self._tree = tree
        self._own: dict[tuple[int, int], list[tuple[int, Anchor]]] = {}
        self._before: dict[tuple[int, int], list[int]] = {}  # links beyond that feel something
        self._joints: dict[int, list[tuple[int, int]]] = {}  # by speed: link and meet
        for r, anchor in anchors.items():
            self._own.setdefault((anchor.link, anchor.meet), []).append((r, anchor))
            link = anchor.link
            while link != anchor.meet:
                key, parent = (link, anchor.meet), tree.links[link].parent
                known = self._before.setdefault((parent, anchor.meet), [])
                for j in tree.links[link].speeds:
                    places = self._joints.setdefault(j, [])
                    if key not in places:
                        places.append(key)
                if link in known:
                    break
                known.append(link)
                link = parent
        self._found: dict[tuple[int, int], tuple[SX, SX]] = {}

    def _at(self, key: tuple[int, int], force: SX) -> tuple[SX, SX]:
        stack, meet = [key], key[1]
        while stack:
            link = stack[-1][0]
            beyond = self._before.get(stack[-1], [])
            missing = [(i, meet) for i in beyond if (i, meet) not in self._found]
            if missing:
                stack += missing
                continue
            n, f = SX(3, force.shape[1]), SX(3, force.shape[1])
            for r, anchor in self._own.get((link, meet), []):
                n, f = n + anchor.n @ force[r, :], f + anchor.f @ force[r, :]
            for i in beyond:
                own, (n_i, f_i) = self._tree.links[i], self._found[i, meet]
                outward = own.rotation.outward(f_i)
                f, n = f + outward, n + own.rotation.outward(n_i) + skew(own.p) @ outward
            self._found[stack.pop()] = ca.sparsify(n), ca.sparsify(f)
        return self._found[key]

    def felt(self, speed: int, force: SX) -> SX:
        """What anchored rows do to a speed, by their forces: 1 x columns.

        Args:
            speed: The speed.
            force: Forces of all rows; those anchored beyond the speed's link must be there.
        """
        total = SX(1, force.shape[1])
        for link, meet in self._joints.get(speed, []):
            n, f = self._at((link, meet), force)
            own = self._tree.links[link]
            k = speed - own.speeds.start
            total += own.S_w[:, k].T @ n + own.S_v[:, k].T @ f
        return total


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
