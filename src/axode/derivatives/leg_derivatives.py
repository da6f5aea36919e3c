"""How legs follow the links that they are held at (X).

A leg that nothing else holds answers to the displacement, the velocity and the acceleration of its
point alone, three numbers each, however many speeds move the point. So its changes are formed for
these, in the axes of its last link. What legs of one link give is added up there, and multiplied
with what the independent speeds do to the link when everything about legs has become small.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import casadi as ca

from axode.symbolic.algebra.spatial import SX, cross, skew, symmetric
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.loops import PointLoop
from axode.symbolic.tree.kinematics import Tree, acceleration_matrix
from axode.symbolic.tree.rows import LinkPoint

ANGULAR = ca.horzcat(SX.eye(3), SX(3, 3))  # of a twist


@dataclass(frozen=True)
class LinkMotion:
    """Motion of a link against an ancestor, as if that stood still, in the link's axes.

    Attributes:
        T: Twist for unit speeds: 6 x speeds.
        w: Angular velocity.
        u: Velocity of the origin.
        a: Acceleration of the origin.
        U: Matrix that gives the acceleration of points.  (K5)
    """

    T: SX
    w: SX
    u: SX
    a: SX
    U: SX

    @classmethod
    def of(cls, symbols: LegSymbols, place: LinkPoint, T: SX) -> LinkMotion:
        """Find the motion of a point's link."""
        tree, v_dot = symbols.tree, symbols.v_dot
        w = w_dot = u = a = SX.zeros(3)
        U = SX.zeros(3, 3)
        for i in tree.path_between(place.meet, place.link):
            link = tree.links[i]
            own = slice(link.speeds.start, link.speeds.stop)
            w_in, inward = link.rotation.inward(w), link.rotation.inward
            w_own, u_own = link.S_w @ tree.v[own], link.S_v @ tree.v[own]
            u = inward(u + cross(w, link.p)) + u_own
            a = inward(a + U @ link.p) + cross(2 * w_in + w_own, u_own) + link.S_v @ v_dot[own]
            w_dot = inward(w_dot) + cross(w_in, w_own) + link.S_w @ v_dot[own]
            w = w_in + w_own
            U = acceleration_matrix(w, w_dot)
        return cls(T, w, u, a, U)

    def velocity(self, point: SX) -> SX:
        """Velocity of a point of the link."""
        return self.u + cross(self.w, point)

    def acceleration(self, point: SX) -> SX:
        """Acceleration of a point of the link."""
        return self.a + self.U @ point


@dataclass(frozen=True)
class LegSymbols:
    """What expressions of legs are made of.

    Attributes:
        tree: The tree that they are part of.
        v_dot: Symbols of all accelerations.
        force: Symbols of the forces of all rows.
    """

    tree: Tree
    v_dot: SX
    force: SX

    def along_q(self, x: SX) -> SX:
        """Derivative by displacements, in speeds, everything else held."""
        return ca.sparsify(ca.jacobian(x, self.tree.q)) @ ca.sparsify(self.tree.N)

    def along_q_of_product(self, matrix: SX, x: SX) -> SX:
        """Derivative of matrix times x by displacements, x held."""
        held = SX.sym("x", x.shape[0])
        return ca.substitute(self.along_q(ca.densify(matrix @ held)), held, ca.densify(x))


@dataclass(frozen=True)
class Change:
    """Changes of the configuration, of speeds and of accelerations, in speeds, one column each."""

    q: SX | None
    v: SX
    v_dot: SX


@dataclass(frozen=True)
class TreeDerivatives:
    """Derivatives of G but for the forces of legs, by displacements, speeds and accelerations."""

    by_q: SX
    by_v: SX
    inertia: SX


@dataclass(frozen=True)
class ByTwist:
    """Matrices that multiply changes of a link, six columns each.

    Attributes:
        D: Its displacement.
        V: Change of its twist, in its own axes.
        V_dot: Change of the rate of its twist, in its own axes.
    """

    D: SX
    V: SX
    V_dot: SX

    @classmethod
    def by_displacement(cls, D: SX) -> ByTwist:
        """Those of something that does not depend on velocities."""
        return cls(D, SX(*D.shape), SX(*D.shape))

    def __add__(self, other: ByTwist) -> ByTwist:
        return ByTwist(self.D + other.D, self.V + other.V, self.V_dot + other.V_dot)

    def along(self, link: ByTwist) -> SX:
        """Sum of products with changes of the link."""
        return self.D @ link.D + self.V @ link.V + self.V_dot @ link.V_dot


class LegChanges:
    r"""Changes of a leg's speeds, accelerations and forces along changes of the link it is held at.

    With R from the far link's axes to the near one's, c and a velocity and acceleration of the
    point on either side and f directions that are constant on the near one,

    .. math:: f (c_1 - R c_2) = 0, \qquad f (a_1 - R a_2) = 0.                       \tag{X16}

    Args:
        symbols: What it is made of.
        complement: Solves the leg's rows.
        leg: The leg.
        far: Motion of the link that it is held at.
    """

    def __init__(
        self, symbols: LegSymbols, complement: Complement, leg: PointLoop, far: LinkMotion
    ) -> None:
        self.leg, self._far = leg, far
        along_q = symbols.along_q
        near = LinkMotion.of(symbols, leg.near, leg.near_twist)
        self._K = K = complement.leg_inverse(leg)  # own speeds for unit velocities along f
        self._L = K @ leg.F
        self._W, self._J = W, J = near.T[:3, :], leg.near.matrix(complement.size)
        c, a = near.velocity(leg.near.point), near.acceleration(leg.near.point)
        f, by_v = leg.f, ca.sparsify(ca.jacobian(a, symbols.tree.v))
        # along f: what unit displacements change, seen from axes that stand still, and unit speeds
        self._c_x, self._a_x = (f @ ((along_q(y) - skew(y) @ W) @ K) for y in (c, a))
        self._a_c = f @ (by_v @ K)
        self._pull = pull = leg.E.T @ symbols.force[list(leg.rows)]  # of the rows, on the near link
        self._own_pull = symbols.along_q_of_product(J.T, pull) @ K
        self._turned_pull = -skew(pull) @ (W @ K)
        self._back = leg.turn.T @ pull  # on the far link, in its axes

    @property
    def wrench(self) -> SX:
        """What the rows do to the far link, with the sign that it has in G: a wrench."""
        return self.leg.P.T @ self._back

    def _follow(self, X: SX, C: SX, A: SX) -> ByTwist:
        """Matrices of what happens to the point, as axes that do not turn show it.

        Args:
            X: Multiplies the displacement, in the far link's axes.
            C: Multiplies the change of the velocity.
            A: Multiplies the change of the acceleration.
        """
        link, P = self._far, self.leg.P
        c, a = (of(self.leg.far.point) for of in (link.velocity, link.acceleration))
        return ByTwist(  # (X19)
            X @ P - (C @ skew(c) + A @ skew(a)) @ ANGULAR,
            (C + A @ skew(link.w)) @ P - (A @ skew(c)) @ ANGULAR,
            A @ P,
        )

    @property
    def speeds(self) -> ByTwist:
        """Changes of the leg's speeds, among all."""
        by_x = -self._K @ self._c_x
        return self._follow(by_x @ self.leg.F, self._L, SX(*self._L.shape))

    @property
    def accelerations(self) -> ByTwist:
        """Changes of the leg's accelerations, among all."""
        K, F = self._K, self.leg.F
        by_x, by_c = K @ (self._a_c @ self._c_x - self._a_x), -K @ self._a_c  # (X17)
        return self._follow(by_x @ F, by_c @ F, self._L)

    def forces(self, tree: TreeDerivatives) -> tuple[ByTwist, ByTwist, ByTwist]:
        """Changes of G on all speeds, on those of others alone, and of the wrench on the far link.

        The first are at fixed forces of the rows. The wrench is what those on the leg's own speeds
        are at its point, and it has what the rows do to the far link.
        """
        K, L, F, turn, f = self._K, self._L, self.leg.F, self.leg.turn, self.leg.f
        weight, by_a = tree.inertia @ K, tree.inertia @ L
        by_c = tree.by_v @ K - weight @ self._a_c
        by_x = tree.by_q @ K - self._own_pull - weight @ self._a_x - by_c @ self._c_x  # (X18)
        outside = [i for i in range(K.shape[0]) if K[i, :].nnz() == 0]
        own = self._follow(by_x @ F, by_c @ F, by_a)
        rest = self._follow(*(keep_rows(x, outside) for x in (by_x @ F, by_c @ F, by_a)))
        X = turn.T @ ((f.T @ (K.T @ by_x) + self._turned_pull) @ F)
        port = self._follow(X, F.T @ ((K.T @ by_c) @ F), symmetric(L.T @ by_a))
        back = skew(self._back) @ ANGULAR
        P = self.leg.P
        turned = turn.T @ (self._turned_pull @ (F @ P)) + back
        own += ByTwist.by_displacement(self._far.T.T @ (P.T @ turned))
        if self.leg.turned:
            own += self._forces_of_turned_rows()
        wrench = ByTwist(P.T @ (port.D + back), P.T @ port.V, symmetric(P.T @ port.V_dot))
        return own, rest, wrench

    def _forces_of_turned_rows(self) -> ByTwist:
        """What forces of rows that turn with the far link do more than such of the near one's."""
        leg = self.leg
        angle = leg.turn @ ANGULAR - (self._W @ self._K) @ (leg.F @ leg.P)
        change = -skew(self._pull) @ angle
        felt = self._far.T.T @ (leg.P.T @ (leg.turn.T @ change)) - self._J.T @ change
        return ByTwist.by_displacement(felt)


class LegAttachment:
    r"""A link that legs are held at: how it moves along changes of speeds, and its legs with it.

    Its twist is :math:`V = T v`, whose rate in its own axes is :math:`T \dot v + \dot T v`.
    """

    def __init__(self, symbols: LegSymbols, complement: Complement, legs: list[PointLoop]) -> None:
        tree, T = symbols.tree, legs[0].far_twist
        self._motion = LinkMotion.of(symbols, legs[0].far, T)
        self._legs = [LegChanges(symbols, complement, leg, self._motion) for leg in legs]
        V = ca.densify(T @ tree.v)
        T_dot_v = ca.jtimes(V, tree.q, tree.q_dot)
        self._V_q = symbols.along_q(V)
        self._V_dot_q = symbols.along_q(ca.densify(T @ symbols.v_dot) + T_dot_v)
        self._V_dot_v = ca.sparsify(ca.jacobian(T_dot_v, tree.v))
        wrench = sum((leg.wrench for leg in self._legs), SX(6, 1))
        self._turned_pull = symbols.along_q_of_product(T.T, wrench)

    def _along(self, of: Change) -> ByTwist:
        """Changes of displacement, twist and its rate."""
        T = self._motion.T
        V, V_dot = T @ of.v, T @ of.v_dot + self._V_dot_v @ of.v
        if of.q is None:
            return ByTwist(SX(*V.shape), V, V_dot)
        return ByTwist(T @ of.q, V + self._V_q @ of.q, V_dot + self._V_dot_q @ of.q)

    def speeds(self, of: Change) -> SX:
        """Changes of the legs' speeds, among all."""
        return total([leg.speeds for leg in self._legs]).along(self._along(of))

    def accelerations(self, of: Change) -> SX:
        """Changes of the legs' accelerations, among all."""
        return total([leg.accelerations for leg in self._legs]).along(self._along(of))

    def forces(self, tree: TreeDerivatives, of: Change) -> tuple[SX, SX, SX]:
        """Changes of G, of its part on speeds of no leg, and of the wrench on this link."""
        link, of_legs = self._along(of), [leg.forces(tree) for leg in self._legs]
        own, others, wrench = (total(list(x)).along(link) for x in zip(*of_legs, strict=True))
        if of.q is not None:
            turned = self._turned_pull @ of.q
            own, others = own + turned, others + turned
        return own, others, wrench


def total(parts: list[ByTwist]) -> ByTwist:
    """Sum of matrices of several legs."""
    found = parts[0]
    for part in parts[1:]:
        found = found + part
    return found


def keep_rows(x: SX, rows: Iterable[int]) -> SX:
    """A matrix with nothing in the other rows."""
    kept, places = SX(*x.shape), list(rows)
    kept[places, :] = x[places, :]
    return ca.sparsify(kept)
