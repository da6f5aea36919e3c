r"""Forward dynamics of a tree by articulated bodies at rest, joints free or coupled (D).

Velocity products are in the forces already, from :func:`newton_euler` at zero acceleration, so that
only the inertia is left to invert, at a cost linear in the links:

.. math:: D = S^T I^A S, \quad u = f - S^T p^A, \quad
          I^A_p \mathrel{+}= X^T (I^A - I^A S D^{-1} S^T I^A) X, \quad
          p^A_p \mathrel{+}= X^T (p^A + I^A S D^{-1} u).                          \tag{D5}

Joints that rows tie together are taken as one joint of several links, with composite bodies inside
such a cluster and articulated bodies between clusters. With :math:`\Theta_c` the cluster's own part
of the complement, P the momenta at the link that carries the cluster and H its joint inertia,

.. math:: D = \Theta_c^T (H + J_a) \Theta_c, \quad U = P \Theta_c, \quad
          I^A \mathrel{+}= \bar I - U D^{-1} U^T, \quad
          \dot\nu_c = D^{-1} (\Theta_c^T f - U^T a).                              \tag{D18}

A body without mass may be part of a cluster: only D has to be regular. A joint that does not give
way, because a motor holds it, carries what lies beyond it rigidly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import casadi as ca

from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, RigidInertia, cross, is_zero, skew, symmetric
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import carried_inward, momentum, without_axis
from axode.symbolic.tree.rows import Row

_Felt = tuple[SX, SX, SX, SX, SX]  # angular, mixed and linear inertia, moment and force
Cluster = tuple[int, ...]  # links, parents first; all joints to links outside lead to one


def find_clusters(tree: Tree, rows: Iterable[Row]) -> list[Cluster]:
    """Links that rows on joints tie together, with those between them; every link is in one."""
    owner = {j: i for i, link in enumerate(tree.links) for j in link.speeds}
    merged = [{i} for i in range(len(tree.links))]
    for row in rows:
        tied = _with_paths(tree, {owner[j] for j in row.entries})
        apart = [cluster for cluster in merged if not cluster & tied]
        merged = [*apart, tied.union(*(cluster for cluster in merged if cluster & tied))]
    return sorted(tuple(sorted(cluster)) for cluster in merged)


def _with_paths(tree: Tree, links: set[int]) -> set[int]:
    """Links and all that lie between them and the last link that carries them all."""
    chains = [list(tree.path(i)) for i in links]
    carriers = set.intersection(*map(set, chains)) - links
    return {i for chain in chains for i in chain if i not in carriers}


@dataclass(frozen=True)
class _Solved:
    """What the outward pass needs of a cluster."""

    links: Cluster
    speeds: list[int]
    Theta: SX
    N_U: SX  # momenta for unit independent speeds, at the carrying link
    F_U: SX
    factor: Factor
    u: SX
    joint: _OwnJoint | None = None  # of a link on its own: momenta are at that link


@dataclass(frozen=True)
class _OwnJoint:
    """A joint that no row ties to another, with momenta of its link for unit speeds of it."""

    N_S: SX
    F_S: SX
    felt: SX  # S^T p^A: the force that the wrench from beyond exerts on it
    held: list[int]  # which of its speeds do not give way


def _chosen_rows(Theta: SX) -> list[int] | None:
    """The rows that each column of Theta picks, if it does nothing else."""
    rows = list(Theta.sparsity().row())
    picks = len(rows) == Theta.shape[1] == len(set(Theta.sparsity().get_col()))
    return rows if picks and is_zero(Theta.nz[:] - 1) else None


class ClusterSolve:
    """One solve of Theta_0^T (I~ v_dot - forces) = 0, v_dot = Theta_0 nu_dot, by (D18)."""

    def __init__(
        self, tree: Tree, inertias: Sequence[RigidInertia], armature: SX, Theta_0: SX, forces: SX
    ) -> None:
        self.tree = tree
        self.armature = armature
        self.Theta_0 = ca.sparsify(Theta_0)
        self.forces = forces
        self.rigid = list(inertias)  # with all that moves rigidly along
        self.extra: list[_Felt | None] = [None for _ in inertias]  # of what gives way beyond

    def accelerations(self, clusters: list[Cluster]) -> SX:
        """Compute all joint accelerations; a cluster comes before all links beyond it."""
        return self._solve(clusters)[0]

    def holding_forces(self, clusters: list[Cluster]) -> SX:
        r"""Forces that keep the speeds which Theta_0 leaves out at rest, on links on their own.

        .. math:: a_h = 0, \qquad (\tilde I a)_f = r_f, \qquad h = r_h - (\tilde I a)_h   \tag{D20}

        Returns:
            A column of all speeds, h in the held ones and zero in the others.
        """
        return self._solve(clusters)[1]

    def _solve(self, clusters: list[Cluster]) -> tuple[SX, SX]:
        solved = [self._inward(cluster) for cluster in reversed(clusters)]
        return self._outward(solved[::-1])

    def _inward(self, cluster: Cluster) -> _Solved:
        links = self.tree.links
        speeds = [j for i in cluster for j in links[i].speeds]
        Theta = self._own_part(speeds)
        free = _chosen_rows(Theta)
        if len(cluster) == 1 and free is not None:
            return self._inward_alone(cluster, free)
        if Theta.shape[1] == 0:
            return self._inward_held(cluster, speeds, Theta)
        place = {j: k for k, j in enumerate(speeds)}
        carrier = links[cluster[0]].parent
        H_c, P = SX.zeros(len(speeds), len(speeds)), SX.zeros(6, len(speeds))
        u = SX.zeros(len(speeds))
        for i in reversed(cluster):
            link = links[i]
            own = [place[j] for j in link.speeds]
            I, H, M, n, f = self._whole(i)
            momenta = I @ link.S_w + H @ link.S_v, H.T @ link.S_w + M @ link.S_v
            u[own] = self.forces[list(link.speeds)] - link.S_w.T @ n - link.S_v.T @ f
            P[:, own] = self._felt(cluster, i, place, momenta, H_c)
            self._carry_rigidly(i)
        H_c += ca.diag(self.armature[speeds])
        factor = Factor.of(symmetric(ca.densify(Theta.T @ (H_c @ Theta))))  # (D18)
        U, u = ca.densify(P @ Theta), ca.densify(Theta.T @ u)
        N_U, F_U = U[:3, :], U[3:, :]
        if carrier != ROOT:
            G_N, G_F, y = factor.solve(N_U.T), factor.solve(F_U.T), factor.solve(u)
            lost = (-symmetric(N_U @ G_N), -(N_U @ G_F), -symmetric(F_U @ G_F), N_U @ y, F_U @ y)
            self._add(carrier, lost)
        return _Solved(cluster, speeds, Theta, N_U, F_U, factor, u)

    def _own_part(self, speeds: list[int]) -> SX:
        """Theta_c: the rows of a cluster's speeds, and the columns that they mention."""
        rows = self.Theta_0[speeds, :]
        return rows[:, sorted(set(rows.sparsity().get_col()))]

    def _felt(
        self, cluster: Cluster, link: int, place: dict[int, int], wrench: tuple[SX, SX], H_c: SX
    ) -> SX:
        """Put momenta of a link, as those before it feel them, into H_c; return the carrier's."""
        n, f = wrench
        columns = [place[j] for j in self.tree.links[link].speeds]
        while link in cluster:
            own = self.tree.links[link]
            rows = [place[j] for j in own.speeds]
            block = own.S_w.T @ n + own.S_v.T @ f
            H_c[rows, columns] = block
            H_c[columns, rows] = block.T
            f = own.rotation.outward(f)
            n = own.rotation.outward(n) + skew(own.p) @ f
            link = own.parent
        return ca.vertcat(n, f)

    def _whole(self, i: int) -> _Felt:
        """Inertia and wrench of a link and all beyond it, in its own frame."""
        own = self.rigid[i]
        h, m, extra = skew(own.moment), own.mass * SX.eye(3), self.extra[i]
        if extra is None:
            return own.tensor, h, m, SX.zeros(3), SX.zeros(3)
        I, H, M, n, f = extra
        return own.tensor + I, h + H, m + M, n, f

    def _add(self, i: int, felt: _Felt) -> None:
        known = self.extra[i]
        if known is not None:
            I, H, M, n, f = (x + part for x, part in zip(known, felt, strict=True))
            felt = (I, H, M, n, f)
        self.extra[i] = felt

    def _carry_rigidly(self, i: int) -> None:
        """Give a link and all beyond it to its parent, their joint held still."""
        link, extra = self.tree.links[i], self.extra[i]
        if link.parent == ROOT:
            return
        moved = self.rigid[i].moved(link.rotation, link.p)
        self.rigid[link.parent] = self.rigid[link.parent] + moved
        if extra is not None:
            self._add(link.parent, carried_inward(link, extra[:3], extra[3:]))

    def _inward_held(self, cluster: Cluster, speeds: list[int], Theta: SX) -> _Solved:
        """Links none of whose joints give way."""
        for i in reversed(cluster):
            self._carry_rigidly(i)
        none = SX.zeros(3, 0)
        return _Solved(cluster, speeds, Theta, none, none, Factor.of(SX(0, 0)), SX.zeros(0))

    def _inward_alone(self, cluster: Cluster, free: list[int]) -> _Solved:
        """A link some of whose joint's speeds give way: (D5), on the link's own side."""
        i = cluster[0]
        link, (I, H, M, n, f) = self.tree.links[i], self._whole(i)
        speeds = [link.speeds[c] for c in free]
        N_S, F_S = I @ link.S_w + H @ link.S_v, H.T @ link.S_w + M @ link.S_v
        if not free:  # numbers stay numbers longest this way
            N_S, F_S = momentum(self.rigid[i], link)
            if (extra := self.extra[i]) is not None:
                N_S += extra[0] @ link.S_w + extra[1] @ link.S_v
                F_S += extra[1].T @ link.S_w + extra[2] @ link.S_v
        felt = link.S_w.T @ n + link.S_v.T @ f
        held = [c for c in range(link.k) if c not in free]
        joint = _OwnJoint(N_S, F_S, felt, held)
        N_U, F_U = N_S[:, free], F_S[:, free]
        D = symmetric(link.S_w[:, free].T @ N_U + link.S_v[:, free].T @ F_U)
        factor = Factor.of(D + ca.diag(self.armature[speeds]))
        u = self.forces[speeds, :] - felt[free, :]
        if not free:
            self._carry_rigidly(i)
        elif link.parent != ROOT:
            G_N, G_F, y = factor.solve(N_U.T), factor.solve(F_U.T), factor.solve(u)
            I_a, H_a, M_a = symmetric(I - N_U @ G_N), H - N_U @ G_F, symmetric(M - F_U @ G_F)
            if link.turns_only and ca.is_equal(self.armature[speeds], SX(0), 1):
                I_a, H_a = without_axis(I_a, H_a)
            wrench = n + N_U @ y, f + F_U @ y
            self._add(link.parent, carried_inward(link, (I_a, H_a, M_a), wrench))
        return _Solved(cluster, speeds, SX.eye(len(free)), N_U, F_U, factor, u, joint)

    def _outward(self, solved: list[_Solved]) -> tuple[SX, SX]:
        """All accelerations, and the force that every held joint transmits."""
        w_dot: dict[int, SX] = {ROOT: SX.zeros(3)}
        a: dict[int, SX] = {ROOT: SX.zeros(3)}
        v_dot, holding = (SX.zeros(self.tree.v.shape[0]) for _ in range(2))
        for cluster in solved:
            joint, first = cluster.joint, self.tree.links[cluster.links[0]]
            w, at = w_dot[first.parent], a[first.parent]
            if joint:
                w, at = first.rotation.inward(w), first.rotation.inward(at + cross(w, first.p))
            nu_dot = cluster.factor.solve(cluster.u - cluster.N_U.T @ w - cluster.F_U.T @ at)
            v_dot[cluster.speeds] = ca.densify(cluster.Theta @ nu_dot)  # (D18)
            for i in cluster.links:
                link = self.tree.links[i]
                own = v_dot[list(link.speeds)]
                if not joint:
                    w, at = w_dot[link.parent], a[link.parent]
                    w, at = link.rotation.inward(w), link.rotation.inward(at + cross(w, link.p))
                w_dot[i], a[i] = w + link.S_w @ own, at + link.S_v @ own
            if joint:  # (D20)
                force = joint.N_S.T @ w_dot[i] + joint.F_S.T @ a[i] + joint.felt
                for c in joint.held:
                    holding[first.speeds[c]] = self.forces[first.speeds[c]] - force[c]
        return v_dot, holding
