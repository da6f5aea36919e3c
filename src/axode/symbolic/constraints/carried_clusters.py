r"""Clusters of links whose rows need nothing of the rest but the twist of the link before (N).

With the rows of a cluster read at the link that carries it,

.. math:: v_c = \Theta_c\, y + \Gamma_c\, t_p, \qquad
          A_c \Theta_c = 0, \qquad A_c \Gamma_c = -W_c,                             \tag{N13}

y being the independent speeds among its own, :math:`t_p` the carrier's twist and :math:`W_c` the
wrenches of the rows there. A chain on wheels has as many clusters as links, however few freedoms it
has, and a row of four-bars one per loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from axode.symbolic.algebra.spatial import ROOT, SX
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.long_chains import anchors_of
from axode.symbolic.tree.recursions import Cluster, find_clusters


@dataclass(frozen=True)
class CarriedClusters:
    """Clusters, and how their speeds follow.

    Attributes:
        clusters: Links of each, the innermost cluster first.
        Theta: Speeds for unit independent speeds of their cluster: speeds x base speeds.
        Gamma: Speeds for unit twists of the link before their cluster, in its axes: speeds x 6.
    """

    clusters: list[Cluster]
    Theta: SX
    Gamma: SX


def carried_clusters(c: Complement) -> CarriedClusters:
    """Find the clusters of a complement whose rows are about links of its tree."""
    tree = c.tree
    assert tree is not None
    anchors = anchors_of(tree, c.sides, c.base.blocks, c.base.independent, least=1)
    near = [
        {j for j in mentioned if r not in anchors or j not in anchors[r].speeds}
        for r, mentioned in enumerate(c.mentions)
    ]
    clusters = find_clusters(tree, near)
    Theta, Gamma = SX(c.size, len(c.base.independent)), SX(c.size, 6)
    place = {j: k for k, j in enumerate(c.base.independent)}
    number = {j: n for n, own in enumerate(clusters) for i in own for j in tree.links[i].speeds}
    solves: list[list[int]] = [[] for _ in clusters]
    for b, (_, columns) in enumerate(c.base.blocks):
        solves[number[columns[0]]].append(b)
    for links, own in zip(clusters, solves, strict=True):
        speeds = sorted(j for i in links for j in tree.links[i].speeds)
        free = [j for j in speeds if j in place]
        x = SX(c.size, len(free) + 6)
        for k, j in enumerate(free):
            x[j, k] = 1
        carrier = tree.links[links[0]].parent
        for b in own:
            rows, columns = c.base.blocks[b]
            others = [j for j in speeds if j not in columns]
            known = c.A[list(rows), others] @ x[others, :]
            for i, r in enumerate(rows):
                known[i, len(free) :] += _felt_at(c, r, carrier)
            solved = ca.sparsify(c.blocks[b].solve(-known))
            for i, j in enumerate(columns):
                x[j, :] = solved[i, :]
        Theta[speeds, [place[j] for j in free]] = x[speeds, : len(free)]
        Gamma[speeds, :] = x[speeds, len(free) :]
    return CarriedClusters(clusters, ca.sparsify(Theta), ca.sparsify(Gamma))


def _felt_at(c: Complement, row: int, link: int) -> SX:
    """A row's wrench at a link before its cluster: 1 x 6; nothing where its sides meet or end."""
    side = c.sides[row]
    if side is not None and link != ROOT:
        for at, wrench in side.felt[:-1]:
            if at == link:
                return ca.horzcat(wrench.n.T, wrench.f.T)
    return SX(1, 6)
