r"""Recursions on the tree: inverse dynamics, inertia matrix, forward dynamics (D).

Everything is kept in link frames about link origins, on accelerations instead of spatial vectors,
because that is where the operations are fewest.
"""

from __future__ import annotations

import casadi as ca

from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.spatial import SX, RigidInertia, cross, skew, symmetric
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


def _gyroscopic(tensor: SX, U: SX) -> SX:
    r"""I \dot\omega + \omega \times I \omega from U alone.

    With :math:`J = \tfrac12 \operatorname{tr}(I) 1 - I` it is the axial vector of
    :math:`U J - J U^T`.                                                          \tag{D3}
    """
    I = tensor
    half = (I[0, 0] + I[1, 1] + I[2, 2]) / 2
    J = [half - I[k, k] for k in range(3)]

    def component(i: int, j: int, k: int) -> SX:
        return (
            J[j] * U[k, j]
            - J[k] * U[j, k]
            - I[i, j] * U[k, i]
            + I[i, k] * U[j, i]
            + I[j, k] * (U[j, j] - U[k, k])
        )

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
    r"""B about the link's origin: X^T diag(w^ I_c + I_c w^, m w^) X summed over the link's bodies.

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
