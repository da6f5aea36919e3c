r"""Derivatives of the joint forces of a tree by coordinates, speeds and accelerations (D).

A displacement along a joint turns everything that the joint carries as one body: seen from there
nothing changes but the parent's motion, which is now seen from turned axes. So a column costs what
the parent's twist and acceleration do to the joint's axes, one composite body and a product of two
columns for every pair of joints on one path, and nothing is differentiated.

All quantities stay in link frames, where the joints' axes are numbers and most entries of what they
are multiplied with vanish. What a link's columns are to others is carried inward, link by link.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from axode.symbolic.algebra.spatial import ROOT, SX, RigidInertia, cross, skew, spread, symmetric
from axode.symbolic.tree.kinematics import Link, Motion, Tree, acceleration_matrix
from axode.symbolic.tree.recursions import composites, link_wrenches, momentum_of


@dataclass(frozen=True)
class ForceDerivatives:
    """Joint forces that a motion needs, and how they change; speeds x speeds, sparse.

    Attributes:
        force: I~ v_dot + h~, gravity in it.
        inertia: I~, by the accelerations.
        by_q: For unit displacements along the joints' axes, as unit speeds make them.
        by_v: For unit changes of the speeds.
        gravity: Joint forces that hold the tree at rest.
    """

    force: SX
    inertia: SX
    by_q: SX
    by_v: SX
    gravity: SX

    def without_accelerations(self, v: SX) -> SX:
        r"""Forces h~ of speeds and gravity: those of speeds are quadratic in them.

        .. math:: \tilde h = \tfrac12 \frac{\partial\tau}{\partial v} v + g              \tag{X10}
        """
        return ca.densify(self.by_v @ v) / 2 + self.gravity


@dataclass(frozen=True)
class Pairs:
    """Twists or wrenches, one column each: angular and linear parts, or moments and forces."""

    a: SX
    b: SX

    def __add__(self, other: Pairs) -> Pairs:
        return Pairs(self.a + other.a, self.b + other.b)

    def carried(self, link: Link) -> Pairs:
        """Wrenches as the link's parent feels them, in its frame."""
        b = link.rotation.outward(self.b)
        return Pairs(link.rotation.outward(self.a) + skew(link.p) @ b, b)

    def power(self, twists: Pairs) -> SX:
        """Products with twists: own columns x theirs."""
        return self.a.T @ twists.a + self.b.T @ twists.b


@dataclass(frozen=True)
class _Rates:
    """Momentum of a composite body about a link's origin, and the rate of its inertia there."""

    l: SX  # moment of momentum
    P: SX  # momentum
    J_dot: SX  # rate of the tensor about the origin, which stands still

    @classmethod
    def of(cls, own: RigidInertia, w: SX, u: SX) -> _Rates:
        r"""Find those of one link that turns by w, its origin moving by u.

        .. math:: l = J \omega + h \times u, \quad P = m u + \omega \times h, \quad
                  \dot J = \hat\omega J - J \hat\omega + 2 (u \cdot h) 1 - u h^T - h u^T \tag{X1}
        """
        l, P = momentum_of(own, w, u)
        turned = skew(w) @ own.tensor
        return cls(l, P, symmetric(turned + turned.T + 2 * spread(u, own.moment)))  # (X1)

    def __add__(self, other: _Rates) -> _Rates:
        return _Rates(self.l + other.l, self.P + other.P, self.J_dot + other.J_dot)

    def moved(self, link: Link) -> _Rates:
        """As the parent has it, about its own origin."""
        P = link.rotation.outward(self.P)
        l = link.rotation.outward(self.l) + cross(link.p, P)
        J_dot = link.rotation.outward_symmetric(self.J_dot)
        return _Rates(l, P, symmetric(J_dot + 2 * spread(link.p, P)))


@dataclass(frozen=True)
class InwardColumns:
    """What a link's columns are to those inward of it: each carries them on in its own frame."""

    weight: Pairs  # M S
    twist: SX  # (2 B)^T S, its angular part; the linear one vanishes
    by_q: Pairs | None  # wrenches on the composite body for unit displacements; None: it is blind
    by_v: Pairs  # and for unit speeds

    def carried(self, link: Link) -> InwardColumns:
        """As the link's parent feels them."""
        return InwardColumns(
            self.weight.carried(link),
            link.rotation.outward(self.twist),
            None if self.by_q is None else self.by_q.carried(link),
            self.by_v.carried(link),
        )


@dataclass(frozen=True)
class LinkColumns:
    """What a link contributes to every pair it is in, in its own frame."""

    S: Pairs  # the joint's axes
    Psi_dot: Pairs  # the parent's twist x S
    Psi_ddot: Pairs
    sum_dot: Pairs  # Psi_dot + S_dot
    felt: InwardColumns


def force_derivatives(
    tree: Tree, inertias: list[RigidInertia], v_dot: SX | None
) -> ForceDerivatives:
    r"""Joint forces and their derivatives, by composite bodies.

    With S the axes of a joint, V and A twist and acceleration of the link before it, gravity in A,

    .. math:: \dot\Psi = V \times S, \quad \ddot\Psi = A \times S + V \times \dot\Psi, \quad
              \dot S = \dot\Psi + (S v) \times S,                                 \tag{X2}

    M, B and f inertia, Christoffel's matrix and wrench of the composite body of link i,

    .. math:: 2 B = \begin{bmatrix} \dot J - \hat l & 0 \\ -2 \hat P & 0 \end{bmatrix},  \tag{X3}

    for j inward of i or i itself, the last two only for j inward of i:

    .. math::
        \partial\tau_i/\partial q_j &= S_i^T (2 B_i \dot\Psi_j + M_i \ddot\Psi_j), \\
        \partial\tau_i/\partial v_j &= S_i^T (2 B_i S_j + M_i (\dot\Psi_j + \dot S_j)), \\
        \partial\tau_j/\partial q_i &= S_j^T (2 B_i \dot\Psi_i + M_i \ddot\Psi_i
                                     + S_i \times^* f_i), \\
        \partial\tau_j/\partial v_i &= S_j^T (2 B_i S_i + M_i (\dot\Psi_i + \dot S_i)).  \tag{X4}
    """
    force, columns = link_columns(tree, inertias, v_dot)
    pairs = PairBlocks(tree, columns)
    gravity = SX.zeros(tree.v.shape[0])
    for i in range(len(columns)):
        *_, last = tree.path(i)
        felt, first = pairs.add(i, last), tree.links[last]
        gravity[entries(tree, i)] = felt.weight.b.T @ first.rotation.inward(-tree.gravity)
    inertia, by_q, by_v = map(ca.sparsify, (pairs.inertia, pairs.by_q, pairs.by_v))
    return ForceDerivatives(force, inertia, by_q, by_v, gravity)


class PairBlocks:
    """Entries of all pairs of joints on one path, as far as they were added.  (X4)"""

    def __init__(self, tree: Tree, columns: list[LinkColumns]) -> None:
        size = tree.v.shape[0]
        self._tree, self._columns = tree, columns
        self.inertia, self.by_q, self.by_v = (SX(size, size) for _ in range(3))

    def add(self, i: int, last: int) -> InwardColumns:
        """Add a link's pairs with all up to the last; return its columns as that one has them."""
        tree, felt, rows = self._tree, self._columns[i].felt, entries(self._tree, i)
        for j in tree.path(i):
            inner, at = self._columns[j], entries(tree, j)
            M = felt.weight.power(inner.S)
            self.inertia[rows, at] = symmetric(M) if i == j else M
            if inner.felt.by_q is not None:
                by_q = felt.twist.T @ inner.Psi_dot.a + felt.weight.power(inner.Psi_ddot)
                self.by_q[rows, at] = by_q
            self.by_v[rows, at] = felt.twist.T @ inner.S.a + felt.weight.power(inner.sum_dot)
            if i != j:
                self.inertia[at, rows] = M.T
                if felt.by_q is not None:
                    self.by_q[at, rows] = inner.S.power(felt.by_q)
                self.by_v[at, rows] = inner.S.power(felt.by_v)
            if j == last:
                break
            felt = felt.carried(tree.links[j])
        return felt


def entries(tree: Tree, i: int) -> slice:
    """Entries of a link's speeds."""
    speeds = tree.links[i].speeds
    return slice(speeds.start, speeds.stop)


def link_columns(
    tree: Tree, inertias: list[RigidInertia], v_dot: SX | None
) -> tuple[SX, list[LinkColumns]]:
    """Joint forces, and the columns of every link."""
    motion = tree.motion(tree.v, v_dot)
    force, wrenches = link_wrenches(tree, inertias, motion)
    w, u = tree.velocities(tree.v)
    rates = [_Rates.of(x, *twist) for x, *twist in zip(inertias, w, u, strict=True)]
    for i in reversed(range(len(rates))):
        parent = tree.links[i].parent
        if parent != ROOT:
            rates[parent] = rates[parent] + rates[i].moved(tree.links[i])
    whole = composites(tree, inertias)
    found = []
    for i, link in enumerate(tree.links):
        before = _Before.of(tree, link, motion, u)
        body = _Body(whole[i], rates[i], *wrenches[i])
        found.append(_columns(tree, link, before, body))
    return force, found


@dataclass(frozen=True)
class _Before:
    """Motion of the link before a joint at the joint, in the axes of the link after it."""

    w: SX
    u: SX
    a: SX
    U: SX

    @classmethod
    def of(cls, tree: Tree, link: Link, motion: Motion, u: list[SX]) -> _Before:
        """Find that of one joint; gravity is an upward acceleration of the ground."""
        k, zero, inward = link.parent, SX.zeros(3), link.rotation.inward
        if k == ROOT:
            return cls(zero, zero, inward(-tree.gravity), SX.zeros(3, 3))
        w = inward(motion.w[k])
        return cls(
            w,
            inward(u[k] + cross(motion.w[k], link.p)),
            inward(motion.a[k] + motion.U[k] @ link.p),
            acceleration_matrix(w, inward(motion.w_dot[k])),
        )


@dataclass(frozen=True)
class _Body:
    """A link with all it carries: inertia, its rates, and the wrench that it needs."""

    inertia: RigidInertia
    rates: _Rates
    n: SX
    f: SX

    def weigh(self, twists: Pairs) -> Pairs:
        """M times twists."""
        return Pairs(*momentum_of(self.inertia, twists.a, twists.b))

    def twist(self, twists: Pairs) -> Pairs:
        """2 B times twists.  (X3)"""
        x = self.rates
        return Pairs(x.J_dot @ twists.a - skew(x.l) @ twists.a, -2 * (skew(x.P) @ twists.a))


def _columns(tree: Tree, link: Link, before: _Before, body: _Body) -> LinkColumns:
    """Columns of a link in its own frame.  (X2)"""
    S = Pairs(link.S_w, link.S_v)
    v = tree.v[link.speeds.start : link.speeds.stop]
    Psi_dot = _ad(before.w, before.u, S)
    # a is the acceleration of a point; less w x u, that of A, both terms leave this
    linear = skew(before.a) @ S.a + 2 * (skew(before.u) @ Psi_dot.a) + before.U @ S.b
    Psi_ddot = Pairs(before.U @ S.a, linear)
    turned = _ad(S.a @ v, S.b @ v, S)
    by_q = None
    if ca.depends_on(ca.vertcat(ca.vec(link.rotation.matrix), link.p), tree.q):
        carried = Pairs(-(skew(body.n) @ S.a) - skew(body.f) @ S.b, -(skew(body.f) @ S.a))
        by_q = body.twist(Psi_dot) + body.weigh(Psi_ddot) + carried
    x = body.rates
    twist = x.J_dot @ S.a + skew(x.l) @ S.a + 2 * (skew(x.P) @ S.b)
    sum_dot = Pairs(2 * Psi_dot.a + turned.a, 2 * Psi_dot.b + turned.b)
    by_v = body.twist(S) + body.weigh(sum_dot)
    return LinkColumns(
        S, Psi_dot, Psi_ddot, sum_dot, InwardColumns(body.weigh(S), twist, by_q, by_v)
    )


def _ad(w: SX, u: SX, twists: Pairs) -> Pairs:
    """Motion cross product of the twist (w, u) with others."""
    return Pairs(skew(w) @ twists.a, skew(u) @ twists.a + skew(w) @ twists.b)
