r"""The Coriolis matrix with every pair of joints in the same axes (D).

Carrying a column from link to link costs a rotation and a shift for every pair of joints on one
path. Here each joint's motion and each composite body is brought once into the axes of the
tree's first link (the ground's, if several links are joined to it), frozen at the instant; a pair
then costs a product of two columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.spatial import SX, RigidInertia, Rotation, cross, skew
from axode.symbolic.tree.kinematics import Tree
from axode.symbolic.tree.recursions import momentum_of


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
    """A tree in one set of axes."""

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

    def _ancestors(self, i: int) -> Iterator[int]:
        path = self._tree.path(i)
        next(path)
        return path

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
            for i in self._ancestors(j):
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
