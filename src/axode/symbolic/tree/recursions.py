"""Recursions on the tree: inverse dynamics, inertia and Coriolis matrix, forward dynamics (D).

Everything is kept in link frames about link origins, on accelerations instead of spatial vectors,
because that is where the operations are fewest. Twists of links serve several motions of the joints
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import casadi as ca

from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import (
    ROOT,
    SX,
    RigidInertia,
    Rotation,
    cross,
    is_zero,
    minus,
    plus,
    skew,
    symmetric,
    times,
)
from axode.symbolic.tree.kinematics import Link, Motion, Tree


def newton_euler(tree: Tree, inertias: list[RigidInertia], motion: Motion) -> SX:
    """Joint forces that the motion needs: I~ v_dot + h~, gravity in it."""
    return link_wrenches(tree, inertias, motion)[0]


def link_wrenches(
    tree: Tree, inertias: list[RigidInertia], motion: Motion
) -> tuple[SX, list[tuple[SX, SX]]]:
    r"""Joint forces, and moment and force that each link with all it carries needs.

    With :math:`U = \hat{\dot\omega} + \hat\omega\hat\omega`,

    .. math:: f = m a + U h, \qquad n = I \dot\omega + \omega \times I \omega + h \times a,
              \qquad \tau = S_w^T n + S_v^T f.                                    \tag{D2}
    """
    f: list[SX] = []
    n: list[SX] = []
    for i, own in enumerate(inertias):
        U, a = motion.U[i], motion.a[i]
        f.append(own.mass * a + U @ own.moment)
        if own.is_axial:
            n.append(_spinning(own.tensor[2, 2], motion.w[i], motion.w_dot[i]))
        else:
            n.append(_gyroscopic(own.tensor, U) + cross(own.moment, a))  # (D2)
    forces = SX.zeros(tree.v.shape[0])
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        forces[link.speeds.start : link.speeds.stop] = link.S_w.T @ n[i] + link.S_v.T @ f[i]
        if link.parent != ROOT:
            outward_f = link.rotation.outward(f[i])
            f[link.parent] += outward_f
            n[link.parent] += link.rotation.outward(n[i]) + cross(link.p, outward_f)
    return forces, list(zip(n, f, strict=True))


def _spinning(C: SX, w: SX, w_dot: SX) -> SX:
    """Return I w_dot + w x I w for I = diag(0, 0, C).  (D2)"""
    return ca.vertcat(times(C, times(w[1], w[2])), -times(C, times(w[0], w[2])), times(C, w_dot[2]))


def _gyroscopic(tensor: SX, U: SX) -> SX:
    r"""I \dot\omega + \omega \times I \omega from U alone.

    With :math:`J = \tfrac12 \operatorname{tr}(I) 1 - I` it is the axial vector of
    :math:`U J - J U^T`.                                                          \tag{D3}
    """
    I = tensor
    half = (I[0, 0] + I[1, 1] + I[2, 2]) / 2
    J = [half - I[k, k] for k in range(3)]

    def component(i: int, j: int, k: int) -> SX:
        found = minus(times(J[j], U[k, j]), times(J[k], U[j, k]))
        found = plus(minus(found, times(I[i, j], U[k, i])), times(I[i, k], U[j, i]))
        return plus(found, times(I[j, k], minus(U[j, j], U[k, k])))

    return ca.vertcat(component(0, 1, 2), component(1, 2, 0), component(2, 0, 1))  # (D3)


def composite_inertia(tree: Tree, inertias: list[RigidInertia]) -> SX:
    r"""I~ = U^T M U by composite bodies.

    .. math:: \bar I_i = I_i + \sum_{children} X^T \bar I X, \qquad
              \tilde I_{ij} = S_i^T X^T \bar I_j S_j.                             \tag{D4}
    """
    size = tree.v.shape[0]
    whole = composites(tree, inertias)
    matrix = SX.zeros(size, size)
    for j, link in enumerate(tree.links):
        n, f = momentum(whole[j], link)
        for i, n_i, f_i in inward(tree, j, n, f):
            block = tree.links[i].S_w.T @ n_i + tree.links[i].S_v.T @ f_i
            rows, columns = tree.links[i].speeds, link.speeds
            if i == j:
                block = symmetric(block)
            matrix[rows.start : rows.stop, columns.start : columns.stop] = block
            matrix[columns.start : columns.stop, rows.start : rows.stop] = block.T
    return matrix


def composites(tree: Tree, inertias: list[RigidInertia]) -> list[RigidInertia]:
    """Inertia of every link with all it carries, held still."""
    whole = list(inertias)
    for i in reversed(range(len(whole))):
        link = tree.links[i]
        if link.parent != ROOT:
            whole[link.parent] = whole[link.parent] + whole[i].moved(link.rotation, link.p)
    return whole


def momentum(inertia: RigidInertia, link: Link) -> tuple[SX, SX]:
    """Angular and linear momentum of a body for unit joint speeds, one column each."""
    return momentum_of(inertia, link.S_w, link.S_v)


def momentum_of(inertia: RigidInertia, w: SX, u: SX) -> tuple[SX, SX]:
    """Angular and linear momentum of a body for twists (w, u), one column each."""
    columns = range(w.shape[1])
    n = [inertia.tensor @ w[:, c] + cross(inertia.moment, u[:, c]) for c in columns]
    f = [inertia.mass * u[:, c] + cross(w[:, c], inertia.moment) for c in columns]
    return ca.horzcat(*n), ca.horzcat(*f)


def inward(tree: Tree, link: int, n: SX, f: SX) -> list[tuple[int, SX, SX]]:
    """Wrenches on a link as its ancestors feel them: (link, moments, forces)."""
    felt = [(link, n, f)]
    while tree.links[link].parent != ROOT:
        own = tree.links[link]
        f = own.rotation.outward(f)
        n = own.rotation.outward(n) + skew(own.p) @ f
        link = own.parent
        felt.append((link, n, f))
    return felt


def without_axis(I_a: SX, H_a: SX) -> tuple[SX, SX]:
    """Remove what rounding leaves of a revolute's articulated inertia about its axis."""
    I_a[2, :], I_a[:, 2], H_a[2, :] = 0, 0, 0
    return I_a, H_a


def carried_inward(
    link: Link, inertia: tuple[SX, SX, SX], wrench: tuple[SX, SX]
) -> tuple[SX, SX, SX, SX, SX]:
    """An articulated inertia and a wrench as the parent feels them, in the parent's frame.  (D5)"""
    rotation, p = link.rotation, skew(link.p)
    I_r = rotation.outward_symmetric(inertia[0])
    H_r = rotation.outward_matrix(inertia[1])
    M_r = rotation.outward_symmetric(inertia[2])
    H_p = H_r + p @ M_r
    f_r = rotation.outward(wrench[1])
    n_r = rotation.outward(wrench[0]) + p @ f_r
    return symmetric(I_r - H_r @ p + p @ H_p.T), H_p, M_r, n_r, f_r


def coriolis_matrix(tree: Tree, inertias: list[RigidInertia], spreads: list[SX]) -> SX:
    r"""C~ = U^T M U_dot + U^T W M U, the book's matrix, by composite bodies.

    In a link's own axes, about its origin, the derivative of a column :math:`X S` is
    :math:`X \operatorname{ad}(V) S - \operatorname{ad}(V_b) X S`, so with
    :math:`D_b = B_b - M_b \operatorname{ad}(V_b)` and both composites carried inward,

    .. math:: \tilde C_{ij} = S_i^T X^T (\bar M_j \operatorname{ad}(V_j) S_j + \bar D_j S_j), \quad
              \tilde C_{ji} = S_j^T (\bar M_j X \operatorname{ad}(V_i) S_i + \bar D_j X S_i),
                                                                                  \tag{D6}

    :math:`B_b` being :math:`\hat\omega I_c + I_c \hat\omega` and :math:`m \hat\omega` at the mass
    centre: the skew part that a C right only as C v does not have.
    """
    w, u = tree.velocities(tree.v)
    M_bar = [spatial_matrix(x) for x in inertias]
    D_bar = [
        _skew_part(x, spread, w_i) - M @ _ad(w_i, u_i)
        for x, spread, M, w_i, u_i in zip(inertias, spreads, M_bar, w, u, strict=True)
    ]
    X = [_inward_transform(link) for link in tree.links]
    for i in reversed(range(len(tree.links))):
        parent = tree.links[i].parent
        if parent != ROOT:
            M_bar[parent] = M_bar[parent] + X[i].T @ M_bar[i] @ X[i]
            D_bar[parent] = D_bar[parent] + X[i].T @ D_bar[i] @ X[i]
    S = [ca.vertcat(link.S_w, link.S_v) for link in tree.links]
    S_dot = [_ad(w_i, u_i) @ S_i for w_i, u_i, S_i in zip(w, u, S, strict=True)]
    C = SX.zeros(tree.v.shape[0], tree.v.shape[0])
    for j, link_j in enumerate(tree.links):
        column = M_bar[j] @ S_dot[j] + D_bar[j] @ S[j]
        row_M, row_D = S[j].T @ M_bar[j], S[j].T @ D_bar[j]
        i, rows_j = j, link_j.speeds
        while i != ROOT:
            rows_i = tree.links[i].speeds
            C[rows_i.start : rows_i.stop, rows_j.start : rows_j.stop] = S[i].T @ column
            if i != j:
                C[rows_j.start : rows_j.stop, rows_i.start : rows_i.stop] = (
                    row_M @ S_dot[i] + row_D @ S[i]
                )
            column, row_M, row_D = X[i].T @ column, row_M @ X[i], row_D @ X[i]
            i = tree.links[i].parent
    return C  # (D6)


def spatial_matrix(x: RigidInertia) -> SX:
    """6 x 6 inertia about the link's origin, (angular, linear)."""
    h = skew(x.moment)
    return ca.blockcat(x.tensor, h, h.T, x.mass * SX.eye(3))


def _skew_part(x: RigidInertia, spread: SX, w: SX) -> SX:
    """B about the link's origin: X^T diag(w^ I_c + I_c w^, m w^) X summed over the link's bodies.

    Written on origin quantities it is w^ I + I w^ - spread w^, `spread` being the sum of m c^2.
    """
    W, h = skew(w), skew(x.moment)
    angular = W @ x.tensor + x.tensor @ W - spread * W
    return ca.blockcat(angular, h @ W, -(W @ h), x.mass * W)


def _ad(w: SX, u: SX) -> SX:
    """Motion cross product of the twist (w, u)."""
    return ca.blockcat(skew(w), SX.zeros(3, 3), skew(u), skew(w))


def _inward_transform(link: Link) -> SX:
    """A parent's twist as the link's: 6 x 6."""
    R_T = link.rotation.matrix.T
    return ca.blockcat(R_T, SX.zeros(3, 3), -(R_T @ skew(link.p)), R_T)


_Felt = tuple[SX, SX, SX, SX, SX]  # angular, mixed and linear inertia, moment and force
Cluster = tuple[int, ...]  # links, parents first; all joints to links outside lead to one


def find_clusters(tree: Tree, ties: Iterable[Iterable[int]]) -> list[Cluster]:
    """Links whose speeds are tied together, with those between them; every link is in one."""
    owner = {j: i for i, link in enumerate(tree.links) for j in link.speeds}
    merged = [{i} for i in range(len(tree.links))]
    for speeds in ties:
        tied = _with_paths(tree, {owner[j] for j in speeds})
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
    r"""One solve of Theta_0^T (I~ v_dot - forces) = 0, v_dot = Theta_0 nu_dot, by (D18).

    Velocity products are in the forces already, from :func:`newton_euler` at zero acceleration, so
    that only the inertia is left to invert, at a cost linear in the links:

    .. math:: D = S^T I^A S, \quad u = f - S^T p^A, \quad
              I^A_p \mathrel{+}= X^T (I^A - I^A S D^{-1} S^T I^A) X, \quad
              p^A_p \mathrel{+}= X^T (p^A + I^A S D^{-1} u).                          \tag{D5}

    Joints that rows tie together are taken as one joint of several links, with composite bodies
    inside such a cluster and articulated bodies between clusters. With :math:`\Theta_c` the
    cluster's own part of the complement, P the momenta at the link that carries the cluster and H
    its joint inertia,

    .. math:: D = \Theta_c^T (H + J_a) \Theta_c, \quad U = P \Theta_c, \quad
              I^A \mathrel{+}= \bar I - U D^{-1} U^T, \quad
              \dot\nu_c = D^{-1} (\Theta_c^T f - U^T a).                              \tag{D18}

    A body without mass may be part of a cluster: only D has to be regular. A joint that does not
    give way, because a motor holds it, carries what lies beyond it rigidly.

    Where rows, as those of wheels, make a cluster follow the link that carries it,
    :math:`v_c = \Theta_c y + \Gamma a`, that link feels more, J being :math:`H + J_a`:

    .. math:: U = (P + \Gamma^T J) \Theta_c, \quad
              I^A \mathrel{+}= P \Gamma + \Gamma^T P^T + \Gamma^T J \Gamma, \quad
              p^A \mathrel{+}= -\Gamma^T f.                                          \tag{D23}

    Args:
        tree: The tree.
        inertias: Inertia of its links.
        armature: Rotor inertia that each speed feels.
        Theta_0: Speeds for unit independent ones; of clusters that follow, these at rest.
        forces: Forces on the joints.
        Gamma: Speeds for unit twists of the links before their clusters: speeds x 6.
    """

    def __init__(
        self,
        tree: Tree,
        inertias: Sequence[RigidInertia],
        armature: SX,
        Theta_0: SX,
        forces: SX,
        Gamma: SX | None = None,
    ) -> None:
        self.tree = tree
        self.armature = armature
        self.Theta_0 = ca.sparsify(Theta_0)
        self.forces = forces
        self.Gamma = SX(Theta_0.shape[0], 6) if Gamma is None else Gamma
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
        rows = self.Theta_0[speeds, :]
        Theta = rows[:, sorted(set(rows.sparsity().get_col()))]
        free = _chosen_rows(Theta)
        Gamma = self.Gamma[speeds, :]
        if len(cluster) == 1 and free is not None and not Gamma.nnz():
            return self._inward_alone(cluster, free)
        if Theta.shape[1] == 0 and not Gamma.nnz():
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
        if Gamma.nnz():
            P = self._lead(carrier, Gamma, P, H_c, u)
        U, u = ca.densify(P @ Theta), ca.densify(Theta.T @ u)
        N_U, F_U = U[:3, :], U[3:, :]
        if carrier != ROOT:
            G_N, G_F, y = factor.solve(N_U.T), factor.solve(F_U.T), factor.solve(u)
            lost = (-symmetric(N_U @ G_N), -(N_U @ G_F), -symmetric(F_U @ G_F), N_U @ y, F_U @ y)
            self._add(carrier, lost)
        return _Solved(cluster, speeds, Theta, N_U, F_U, factor, u)

    def _lead(self, carrier: int, Gamma: SX, P: SX, J: SX, u: SX) -> SX:
        """Give the carrier what it feels of a cluster that follows it; return U's P.  (D23)"""
        J_led = ca.sparsify(J @ Gamma)
        whole = ca.densify((P + J_led.T / 2) @ Gamma)
        whole = symmetric(whole + whole.T)
        wrench = -ca.densify(Gamma.T @ u)
        self._add(carrier, (whole[:3, :3], whole[:3, 3:], whole[3:, 3:], wrench[:3], wrench[3:]))
        return P + J_led.T

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
            own = cluster.Theta @ nu_dot  # (D18)
            if not joint:
                own += self.Gamma[cluster.speeds, :] @ ca.vertcat(w, at)
            v_dot[cluster.speeds] = ca.densify(own)
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


@dataclass(frozen=True)
class _Placed:
    """A link in the common axes, its own origin kept."""

    R: SX
    p: SX  # origin, from the common one
    e: SX  # 3 x k: axes of its joint
    s: SX  # 3 x k: velocities of the origin for unit speeds
    inertia: RigidInertia

    @property
    def s_common(self) -> SX:
        """Velocities at the common origin for unit speeds."""
        return self.s + skew(self.p) @ self.e


class CommonAxes:
    """A tree in one set of axes.

    Carrying a column from link to link costs a rotation and a shift for every pair of joints on one
    path. Here each joint's motion and each composite body is brought once into the axes of the
    tree's first link (the ground's, if several links are joined to it), frozen at the instant; a
    pair then costs a product of two columns.
    """

    def __init__(self, tree: Tree, inertias: list[RigidInertia], spreads: list[SX]) -> None:
        self._tree, self._spreads = tree, spreads
        roots = [i for i, link in enumerate(tree.links) if link.parent == ROOT]
        self._reference = roots[0] if len(roots) == 1 else ROOT
        self._links: list[_Placed] = []
        for i, inertia in enumerate(inertias):
            self._links.append(self._placed(i, inertia))

    def _placed(self, i: int, inertia: RigidInertia) -> _Placed:
        link = self._tree.links[i]
        if i == self._reference:
            return _Placed(SX.eye(3), SX.zeros(3), link.S_w, link.S_v, inertia)
        outer = (SX.eye(3), SX.zeros(3))
        if link.parent != ROOT:
            outer = (self._links[link.parent].R, self._links[link.parent].p)
        R, p = outer[0] @ link.rotation.matrix, outer[1] + outer[0] @ link.p
        turned = inertia.moved(Rotation.from_matrix(R), SX.zeros(3))
        return _Placed(R, p, R @ link.S_w, R @ link.S_v, turned)

    @cached_property
    def _composites(self) -> list[RigidInertia]:
        """Inertia of every link with all it carries, about its own origin."""
        whole = [link.inertia for link in self._links]
        for i in reversed(range(len(whole))):
            parent = self._tree.links[i].parent
            if parent != ROOT:
                whole[parent] = whole[parent] + whole[i].moved(Rotation(), self._arm(i))
        return whole

    def _arm(self, i: int) -> SX:
        """From the parent's origin to the link's."""
        return self._links[i].p - self._links[self._tree.links[i].parent].p

    def _entries(self, i: int) -> slice:
        speeds = self._tree.links[i].speeds
        return slice(speeds.start, speeds.stop)

    def coriolis(self) -> SX:
        r"""C~ = U^T M U_dot + U^T W M U, the book's matrix.

        In axes that are frozen at the instant :math:`\dot J = \operatorname{ad}(V) J`, and the
        derivative of the shift to the mass centre joins the skew part:

        .. math:: D = \begin{bmatrix} \hat\omega (I - \textstyle\sum m c^2 1) - \hat h \hat u & 0 \\
                  -\hat P & 0 \end{bmatrix}, \qquad P = m u + \omega \times h,

        summed over composite bodies as :math:`\bar D`; for i inward of j

        .. math:: \tilde C_{ij} = J_i^T (\bar M_j \dot J_j + \bar D_j J_j), \qquad
                  \tilde C_{ji} = J_j^T (\bar M_j \dot J_i + \bar D_j J_i).        \tag{D21}
        """
        w, u = self._velocities()
        A, P = self._skew_parts(w, u)
        size = self._tree.v.shape[0]
        C = SX.zeros(size, size)
        rates = [
            self._rates(link, w_i, u_i) for link, w_i, u_i in zip(self._links, w, u, strict=True)
        ]
        for j, (link, whole) in enumerate(zip(self._links, self._composites, strict=True)):
            own = self._entries(j)
            e_dot, s_dot, _ = rates[j]
            n, f = momentum_of(whole, e_dot, s_dot)
            n, f = n + A[j] @ link.e, f - skew(P[j]) @ link.e
            n_M, f_M = momentum_of(whole, link.e, link.s)
            row_D = link.e.T @ A[j] - link.s.T @ skew(P[j])
            C[own, own] = link.e.T @ n + link.s.T @ f
            n, n_M = n + skew(link.p) @ f, n_M + skew(link.p) @ f_M
            for i in islice(self._tree.path(j), 1, None):
                inner, (e_dot, _, s_dot) = self._links[i], rates[i]
                C[self._entries(i), own] = inner.e.T @ n + inner.s_common.T @ f  # (D21)
                C[own, self._entries(i)] = n_M.T @ e_dot + f_M.T @ s_dot + row_D @ inner.e
        return C

    def _velocities(self) -> tuple[list[SX], list[SX]]:
        """Angular velocity and velocity of the origin of every link."""
        w: list[SX] = []
        u: list[SX] = []
        for i, (own, link) in enumerate(zip(self._links, self._tree.links, strict=True)):
            w_p, u_p, arm = SX.zeros(3), SX.zeros(3), SX.zeros(3)
            if link.parent != ROOT:
                w_p, u_p, arm = w[link.parent], u[link.parent], self._arm(i)
            v = self._tree.v[self._entries(i)]
            w.append(w_p + own.e @ v)
            u.append(u_p + cross(w_p, arm) + own.s @ v)
        return w, u

    def _skew_parts(self, w: list[SX], u: list[SX]) -> tuple[list[SX], list[SX]]:
        """Blocks of D of the composite bodies, each about its link's origin."""
        A, P = [], []
        for i, link in enumerate(self._links):
            x = link.inertia
            shape = x.tensor - self._spreads[i] * SX.eye(3)
            A.append(skew(w[i]) @ shape - skew(x.moment) @ skew(u[i]))
            P.append(x.mass * u[i] + cross(w[i], x.moment))
        for i in reversed(range(len(self._links))):
            parent = self._tree.links[i].parent
            if parent != ROOT:
                A[parent] = A[parent] + A[i] - skew(self._arm(i)) @ skew(P[i])
                P[parent] = P[parent] + P[i]
        return A, P

    @staticmethod
    def _rates(link: _Placed, w: SX, u: SX) -> tuple[SX, SX, SX]:
        """ad(V) J: of the axes, of the velocities at the link's origin and at the common one."""
        e_dot = skew(w) @ link.e
        s_dot = skew(w) @ link.s + skew(u) @ link.e
        return e_dot, s_dot, s_dot + skew(link.p) @ e_dot


class Twists:
    """Twists of links for columns of all speeds, each found once, when it is asked for.

    Args:
        tree: The tree.
        x: Speeds x columns. Those of a link's path must be there when its twist is asked for.
    """

    def __init__(self, tree: Tree, x: SX) -> None:
        self._tree, self._x = tree, x
        self._found: dict[tuple[int, int], tuple[SX, SX]] = {}

    def at(self, link: int, meet: int) -> tuple[SX, SX]:
        """Angular velocities and velocities of a link's origin against an ancestor, in its axes."""
        none = SX(3, self._x.shape[1])
        missing = [link]
        while missing[-1] != meet and (missing[-1], meet) not in self._found:
            missing.append(self._tree.links[missing[-1]].parent)
        w, u = self._found.get((missing.pop(), meet), (none, none))
        for i in reversed(missing):
            own = self._tree.links[i]
            v = self._x[own.speeds.start : own.speeds.stop, :]
            u = ca.sparsify(own.rotation.inward(u - skew(own.p) @ w) + own.S_v @ v)
            w = ca.sparsify(own.rotation.inward(w) + own.S_w @ v)
            self._found[i, meet] = w, u
        return w, u


def inertia_of_twists(tree: Tree, inertias: Sequence[RigidInertia], armature: SX, x: SX) -> SX:
    r"""Project the inertia of all speeds link by link.

    .. math:: x^T \tilde I x = \sum_i T_i^T M_i T_i + x^T J_a x, \qquad
              T_i = X_i T_{p(i)} + S_i x_i                                          \tag{D22}

    For few columns this is linear in the links, as :math:`\tilde I` itself is not.

    Args:
        tree: The tree.
        inertias: Inertia of its links.
        armature: Rotor inertia that each speed feels.
        x: Speeds x columns.
    """
    twists = Twists(tree, x)
    total = ca.densify(x.T @ (ca.diag(ca.sparsify(armature)) @ x))
    for i, own in enumerate(inertias):
        w, u = (ca.densify(part) for part in twists.at(i, ROOT))
        n, f = momentum_of(own, w, u)
        total += ca.densify(w.T @ n + u.T @ f)  # (D22)
    return symmetric(total)
