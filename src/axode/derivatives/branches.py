r"""Accelerations of a branched tree and their derivatives, branch by branch (X).

A branch is a run of links without a fork; it grows from the last link of another one, or from the
ground. Its joints are eliminated together. What is left of it at the fork that it grows from, as an
articulated body, and how its joints answer accelerations of this fork are small matrices. Columns
of a branch then need the pairs of its own joints, one wrench and one acceleration at every fork, in
place of all pairs of joints on one path.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from axode.derivatives.force_derivatives import (
    InwardColumns,
    LinkColumns,
    PairBlocks,
    Pairs,
    link_columns,
)
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import ROOT, SX, RigidInertia, skew, symmetric
from axode.symbolic.tree.kinematics import Link, Tree


def branches_of(tree: Tree) -> list[list[int]]:
    """Links of every branch, from its fork outward; branches after those they grow from."""
    children = [0] * len(tree.links)
    for link in tree.links:
        if link.parent != ROOT:
            children[link.parent] += 1
    found: list[list[int]] = []
    home: dict[int, int] = {}
    for i, link in enumerate(tree.links):
        goes_on = link.parent != ROOT and children[link.parent] == 1
        home[i] = home[link.parent] if goes_on else len(found)
        if not goes_on:
            found.append([])
        found[home[i]].append(i)
    return found


@dataclass(frozen=True)
class _Turning:
    """What columns of a branch do to those that grow from it, at the fork where they do."""

    angular: SX
    twists: SX


@dataclass(frozen=True)
class _Columns:
    """Columns of a branch for one kind of argument.

    Attributes:
        rows: Forces of the branch's own joints.
        wrenches: At the fork that the branch grows from.
        turning: What they do to branches that grow from it.
    """

    rows: SX
    wrenches: SX
    turning: _Turning


@dataclass(frozen=True)
class _Branch:
    """A branch with all that grows from it, eliminated.

    Attributes:
        links: Its links.
        speeds: Their speeds.
        F: Momenta of its unit speeds at the fork that it grows from.
        T: The same for what turns this fork.
        S: Axes of its joints at the fork at its end.
        Q: Minus the inverse of its inertia.
        Q_S: Q S^T.
        K: Accelerations of its joints for accelerations of the fork before it.
        Z: The same for what turns that fork.
        N: Wrenches at the fork at its end for accelerations there: what outer joints take away.
        E: The same for what turns it. Both are empty where nothing grows.
        N_felt: Wrenches at the fork before it.
        E_felt: The same.
        by_q: Columns for displacements.
        by_v: Columns for speeds.
    """

    links: tuple[Link, ...]
    speeds: list[int]
    F: SX
    T: SX
    S: SX
    Q: SX
    Q_S: SX
    K: SX
    Z: SX
    N: SX | None
    E: SX | None
    N_felt: SX
    E_felt: SX
    by_q: _Columns
    by_v: _Columns


class BranchDynamics:
    r"""Accelerations of a tree without constraints, and their derivatives.

    With M the inertia of a branch, F the momenta of its unit speeds at the fork that it grows from,
    S its axes at the fork at its end, X what brings twists from the one to the other, and N the sum
    of what outer branches leave there,

    .. math:: \hat M = M + S^T N S, \quad \hat F = F + X^T N S, \quad
              K = -\hat M^{-1} \hat F^T, \quad N' = \hat F K + X^T N X,          \tag{X15}

    and the same with E, T and Z for what turns the fork, on which wrenches of (X4) depend.

    Args:
        tree: Its links.
        inertias: Inertia of every link.
        armature: What rotors add to the inertia of every speed.
        v_dot: Symbols of the accelerations, on which derivatives by displacements depend.
    """

    def __init__(self, tree: Tree, inertias: list[RigidInertia], armature: SX, v_dot: SX) -> None:
        self._size, self._v, self._upward = tree.v.shape[0], tree.v, -tree.gravity
        columns = link_columns(tree, inertias, v_dot)[1]
        runs = branches_of(tree)
        home = {i: number for number, run in enumerate(runs) for i in run}
        self._parents = [home.get(tree.links[run[0]].parent, ROOT) for run in runs]
        found: dict[int, _Branch] = {}
        for number in reversed(range(len(runs))):
            outer = [found[c] for c, p in enumerate(self._parents) if p == number]
            found[number] = _eliminate(tree, runs[number], columns, armature, outer)
        self._branches = [found[number] for number in range(len(runs))]

    @cached_property
    def by_q(self) -> SX:
        """Accelerations for unit displacements; joint forces stay."""
        return self._gather([self._along(b, x.by_q) for b, x in enumerate(self._branches)])

    @cached_property
    def by_v(self) -> SX:
        """Accelerations for unit speeds; joint forces stay."""
        return self._gather([self._along(b, x.by_v) for b, x in enumerate(self._branches)])

    @cached_property
    def by_force(self) -> SX:
        """Accelerations for unit joint forces: the inverse of the inertia, each entry once."""
        found = SX(self._size, self._size)
        for b, branch in enumerate(self._branches):
            n = len(branch.speeds)
            for d, x in self._solve({b: -SX.eye(n)}, {}, {}).items():
                rows = self._branches[d].speeds
                if d == b:
                    found[rows, rows] = symmetric(x)
                elif d < b:
                    found[rows, branch.speeds], found[branch.speeds, rows] = x, x.T
        return found

    @cached_property
    def bias(self) -> SX:
        r"""Joint forces of speeds and gravity.

        .. math:: \tilde h = \tfrac12 \frac{\partial\tau}{\partial v} v + g              \tag{X10}
        """
        count = len(self._branches)
        speeds = [self._v[own.speeds] for own in self._branches]
        felt: dict[int, SX] = {}
        rows = [own.by_v.rows @ v for own, v in zip(self._branches, speeds, strict=True)]
        for b in reversed(range(count)):
            own, parent = self._branches[b], self._parents[b]
            if b in felt:
                rows[b] += own.S.T @ felt[b]
            if parent != ROOT:
                _add(felt, parent, own.by_v.wrenches @ speeds[b])
                if b in felt:
                    felt[parent] += _carried(felt[b], own.links)
        ends = {ROOT: (SX(3, 1), ca.vertcat(SX(3, 1), 2 * self._upward))}
        for b, (own, parent) in enumerate(zip(self._branches, self._parents, strict=True)):
            angular, twist = ends[parent]
            rows[b] += own.T.T @ angular + own.F.T @ twist
            turning = own.by_v.turning
            ends[b] = (
                _turned_outward(angular, own.links) + turning.angular @ speeds[b],
                _moved(twist, own.links) + turning.twists @ speeds[b],
            )
        found = SX.zeros(self._size)
        for own, row in zip(self._branches, rows, strict=True):
            found[own.speeds] = row / 2
        return found

    def accelerations(self, force: SX) -> SX:
        """Accelerations that joint forces give, those of speeds and gravity taken off."""
        rows = {b: -force[branch.speeds] for b, branch in enumerate(self._branches)}
        return self._gather([self._solve(rows, {}, {})], 1)

    def _along(self, b: int, columns: _Columns) -> dict[int, SX]:
        return self._solve({b: columns.rows}, {b: columns.wrenches}, {b: columns.turning})

    def _gather(self, blocks: list[dict[int, SX]], width: int = 0) -> SX:
        """Blocks of rows, for all columns or for those of each branch, as one matrix."""
        found = SX(self._size, width or self._size)
        for own, columns in zip(self._branches, blocks, strict=False):
            at = list(range(width)) if width else own.speeds
            for d, x in columns.items():
                found[self._branches[d].speeds, at] = x
        return found

    def _solve(
        self, rows: Mapping[int, SX], wrenches: Mapping[int, SX], turning: Mapping[int, _Turning]
    ) -> dict[int, SX]:
        """Accelerations of the joints of branches, as far as anything moves them.

        Args:
            rows: Forces that joints of branches need.
            wrenches: That are needed at the forks from which branches grow.
            turning: What columns do to outer branches.
        """
        felt: dict[int, SX] = {}  # wrenches at the ends of branches
        needed = dict(rows)
        for b in reversed(range(len(self._branches))):
            own, parent = self._branches[b], self._parents[b]
            if b in turning and own.N is not None and own.E is not None:
                _add(felt, b, own.E @ turning[b].angular + own.N @ turning[b].twists)
            if b in felt and (b in rows or parent != ROOT):
                _add(needed, b, own.S.T @ felt[b])
            if parent != ROOT and b in needed:
                _add(felt, parent, own.K.T @ needed[b])
                if b in felt:
                    felt[parent] += _carried(felt[b], own.links)
                if b in wrenches:
                    felt[parent] += wrenches[b]
        found = {b: self._branches[b].Q @ x for b, x in needed.items() if b in rows}
        carrying = {b: x for b, x in felt.items() if b not in rows}
        found |= {b: self._branches[b].Q_S @ x for b, x in carrying.items()}
        return self._outward(found, carrying, turning)

    @cached_property
    def _answers(self) -> dict[int, SX]:
        """Accelerations of branches for wrenches at the fork where they leave one on the ground."""
        found = {}
        for b, parent in enumerate(self._parents):
            if parent != ROOT and self._parents[parent] == ROOT:
                inner = self._branches[parent]
                found[b] = self._branches[b].K @ symmetric(inner.S @ inner.Q_S)
        return found

    def _outward(
        self, found: dict[int, SX], carrying: Mapping[int, SX], turning: Mapping[int, _Turning]
    ) -> dict[int, SX]:
        """Add what accelerations of inner branches do to outer ones.

        Args:
            found: Accelerations at resting forks.
            carrying: Wrenches at the ends of branches that do nothing but carry them.
            turning: What columns do to outer branches.
        """
        twists: dict[int, SX] = {}  # accelerations of the ends of branches
        angular: dict[int, SX] = {}  # what turns them
        for b, (own, parent) in enumerate(zip(self._branches, self._parents, strict=True)):
            if b in self._answers and parent in carrying:
                _add(found, b, self._answers[b] @ carrying[parent])
            elif parent in twists:
                _add(found, b, own.K @ twists[parent])
            if parent in angular:
                _add(found, b, own.Z @ angular[parent])
            if own.N is None:
                continue
            if parent in twists:
                twists[b] = _moved(twists[parent], own.links)
            if parent in angular:
                angular[b] = _turned_outward(angular[parent], own.links)
            if b in found:
                _add(twists, b, own.S @ found[b])
            if b in turning:
                angular[b] = turning[b].angular
                _add(twists, b, turning[b].twists)
        return found


def _add(sums: dict[int, SX], key: int, x: SX) -> None:
    sums[key] = sums[key] + x if key in sums else x


def _eliminate(
    tree: Tree, run: list[int], columns: list[LinkColumns], armature: SX, outer: list[_Branch]
) -> _Branch:
    """Eliminate a branch from which others grow that have been eliminated.  (X15)"""
    links = tuple(tree.links[i] for i in run)
    speeds = [k for link in links for k in link.speeds]
    pairs = PairBlocks(tree, columns)
    felt = [pairs.add(i, run[0]).carried(links[0]) for i in run]
    F, T = _stacked([x.weight for x in felt]), ca.horzcat(*[x.twist for x in felt])
    alone = F, T
    M = pairs.inertia[speeds, speeds] + ca.diag(armature[speeds])
    S = _at_end([columns[i].S for i in run], links)
    N = E = None
    N_felt, E_felt = SX(6, 6), SX(6, 3)
    if outer:
        N, E = _total([x.N_felt for x in outer]), _total([x.E_felt for x in outer])
        N_S = N @ S
        M, F = M + symmetric(S.T @ N_S), F + _carried(N_S, links)
        T = T + _turned_inward(E.T @ S, links)
        N_felt = _carried(_carried(N, links).T, links)
        E_felt = _turned_inward(_carried(E, links).T, links).T
    Q = -Factor.of(M).inverse()
    K, Z = Q @ F.T, Q @ T.T
    own = [columns[i] for i in run]
    return _Branch(
        links=links,
        speeds=speeds,
        F=alone[0],
        T=alone[1],
        S=S,
        Q=Q,
        Q_S=Q @ S.T,
        K=K,
        Z=Z,
        N=N,
        E=E,
        N_felt=symmetric(F @ K + N_felt),
        E_felt=F @ Z + E_felt,
        by_q=_by_q(own, links, felt, pairs.by_q[speeds, speeds]),
        by_v=_by_v(own, links, felt, pairs.by_v[speeds, speeds]),
    )


def _by_q(
    own: list[LinkColumns], links: tuple[Link, ...], felt: list[InwardColumns], rows: SX
) -> _Columns:
    """Columns for displacements; those of blind links vanish."""
    none = [Pairs(SX(*x.S.a.shape), SX(*x.S.b.shape)) for x in own]
    blind = [x.felt.by_q is None for x in own]
    wrenches = [x.by_q or zero for x, zero in zip(felt, none, strict=True)]
    angular = [z.a if b else x.Psi_dot.a for x, z, b in zip(own, none, blind, strict=True)]
    twists = [z if b else x.Psi_ddot for x, z, b in zip(own, none, blind, strict=True)]
    turning = _Turning(_axes_at_end(angular, links), _at_end(twists, links))
    return _Columns(rows, _stacked(wrenches), turning)


def _by_v(
    own: list[LinkColumns], links: tuple[Link, ...], felt: list[InwardColumns], rows: SX
) -> _Columns:
    """Columns for speeds."""
    angular = _axes_at_end([x.S.a for x in own], links)
    twists = _at_end([x.sum_dot for x in own], links)
    return _Columns(rows, _stacked([x.by_v for x in felt]), _Turning(angular, twists))


def _total(terms: list[SX]) -> SX:
    return sum(terms[1:], terms[0])


def _stacked(pairs: list[Pairs]) -> SX:
    """Twists or wrenches, one column each, six rows."""
    return ca.horzcat(*[ca.vertcat(x.a, x.b) for x in pairs])


def _at_end(twists: list[Pairs], links: tuple[Link, ...]) -> SX:
    """Twists of links as the last one has them."""
    found = SX(6, 0)
    for own, link in zip(twists, links, strict=True):
        found = ca.horzcat(_moved(found, (link,)), _stacked([own]))
    return found


def _axes_at_end(axes: list[SX], links: tuple[Link, ...]) -> SX:
    """Directions in the axes of links, in those of the last one."""
    found = SX(3, 0)
    for own, link in zip(axes, links, strict=True):
        found = ca.horzcat(_turned_outward(found, (link,)), own)
    return found


def _carried(wrenches: SX, links: tuple[Link, ...]) -> SX:
    """Wrenches at the end of links as the fork before them feels them."""
    for link in reversed(links):
        b = link.rotation.outward(wrenches[3:, :])
        wrenches = ca.vertcat(link.rotation.outward(wrenches[:3, :]) + skew(link.p) @ b, b)
    return wrenches


def _moved(twists: SX, links: tuple[Link, ...]) -> SX:
    """Twists of the fork before links as their end has them."""
    for link in links:
        a, b = twists[:3, :], twists[3:, :]
        b = b - skew(link.p) @ a
        twists = ca.vertcat(link.rotation.inward(a), link.rotation.inward(b))
    return twists


def _turned_inward(x: SX, links: tuple[Link, ...]) -> SX:
    """Directions in the axes of the last link, in those before the first."""
    for link in reversed(links):
        x = link.rotation.outward(x)
    return x


def _turned_outward(x: SX, links: tuple[Link, ...]) -> SX:
    """Directions in the axes before the first link, in those of the last."""
    for link in links:
        x = link.rotation.inward(x)
    return x
