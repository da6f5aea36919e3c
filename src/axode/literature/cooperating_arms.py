r"""Arms that hold a common load, at one state, in numbers: what needs a rank or a pseudo-inverse.

Arms with too few freedoms cannot be closed by the plain six steps, because the matrix in (F25) is
singular then. The source knows two remedies, a smaller task space and joints that are only
imagined; both take a rank that only numbers have. The operators are those of `operators`. Grasp
wrenches of any mechanism are those of `axode.Cooperation`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from axode.problems.cooperation.cooperation import grasp_matrix
from axode.symbolic.algebra.spatial import SX, RigidInertia
from axode.symbolic.formulations.operators import (
    Base,
    OperatorLink,
    Operators,
    Tip,
    contact_acceleration,
)
from axode.symbolic.tree.frames import ROOT

Array = np.ndarray
RANK = 1e-9  # singular values below this share of the largest are none


@dataclass(frozen=True)
class Lump:
    """A rigid mass: its centre in the world, and its inertia about the centre in world axes."""

    mass: float
    centre: Sequence[float]
    tensor: Array

    def about(self, origin: Sequence[float]) -> RigidInertia:
        """Inertia about another point."""
        reach = np.asarray(self.centre, float) - np.asarray(origin, float)
        return RigidInertia.at_centre(SX(self.mass), SX(reach), SX(np.asarray(self.tensor, float)))


@dataclass(frozen=True)
class ArmLink:
    """A link of an arm; without mass if it only connects two joints."""

    origin: Sequence[float]
    H: Array  # 6 x k, world axes, at the origin
    rates: Sequence[float]
    lumps: Sequence[Lump] = ()
    rolls_at: Sequence[float] | None = None  # velocity of the contact, if its joint is one


@dataclass(frozen=True)
class Arm:
    """Links one after the other, and the tip's place on the last."""

    links: Sequence[ArmLink]
    tip: Sequence[float]


@dataclass(frozen=True)
class Steps:
    """The six steps in numbers."""

    free: Array
    tips: Array
    compliance: Array
    F_c: Array
    error: Array
    total: Array


@dataclass(frozen=True)
class ReducedOrder:
    """A task space without the directions in which the tips cannot go.  (F26)"""

    R: Array  # orthonormal rows that span the range of J
    J_r: Array
    A_r: Array


@dataclass(frozen=True)
class PseudoJoints:
    """Accelerations of the real joints, forces that hold the pseudo joints, rank of d4.  (F27)"""

    accelerations: Array
    forces: Array
    d4: Array

    @property
    def rank(self) -> int:
        """Rank of d4."""
        return rank_of(self.d4)


class ArmsOfSource:
    """Arms with one load at a point, all in numbers.

    Args:
        arms: Two or more, of one base.
        meet: Point of the load to which all tip velocities are brought.
        gravity: Acceleration of free fall.
        load: The load's own mass; left out where it is lumped on the arms' last links.
        base: What the arms stand on, if it moves.
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        meet: Sequence[float],
        gravity: Sequence[float],
        load: Lump | None = None,
        base: Base | None = None,
    ) -> None:
        self.arms, self.meet, self.load = tuple(arms), np.asarray(meet, float), load
        base = base or Base()
        up = ca.vertcat(SX.zeros(3), -SX(np.asarray(gravity, float)))
        links, self.tips = [], []
        for arm in self.arms:
            parent = ROOT
            for link in arm.links:
                links.append(_operator_link(link, parent))
                parent = len(links) - 1
            self.tips.append(Tip(parent, SX(np.asarray(arm.tip, float))))
        self.operators = Operators(links, Base(base.origin, base.V, base.alpha + up))
        self.g = np.asarray(gravity, float)

    @cached_property
    def M(self) -> Array:
        """Inertia of all joints, arm by arm."""
        return _numbers(self.operators.mass_matrix)

    @cached_property
    def C(self) -> Array:
        """Velocity and gravity forces of all joints."""
        return _numbers(self.operators.required).ravel()

    @cached_property
    def J(self) -> Array:
        """Jacobian of all tips."""
        return _numbers(self.operators.jacobian(self.tips))

    @cached_property
    def _reaches(self) -> Array:
        return np.array([np.asarray(arm.tip, float) - self.meet for arm in self.arms])

    @cached_property
    def grasp(self) -> Array:
        """A: tip velocities for a velocity of the load, V_t = A V_c."""
        return grasp_matrix(self._reaches).T

    @cached_property
    def annihilator(self) -> Array:
        """A~ with A~ A = 0: the first tip's velocity at the load, minus each other's."""
        first, *others = np.split(grasp_matrix(-self._reaches).T, len(self.arms))
        zero = np.zeros((6, 6))
        return np.block(
            [
                [first, *(-back if k == i else zero for k in range(len(others)))]
                for i, back in enumerate(others)
            ]
        )

    @cached_property
    def B(self) -> Array:
        """Closure on the joints: A~ J."""
        return self.annihilator @ self.J

    @cached_property
    def tip_bias(self) -> Array:
        """Tip accelerations at zero joint accelerations, without gravity."""
        alpha = _numbers(self.operators.tip_accelerations(self.tips)).ravel()
        return alpha + np.tile(np.concatenate([np.zeros(3), self.g]), len(self.arms))

    @cached_property
    def beta(self) -> Array:
        """B theta_dd + beta = 0."""
        bias = self.tip_bias.reshape(-1, 6).copy()
        velocities = _numbers(self.operators.tip_velocities(self.tips)).reshape(-1, 6)
        at_load = []
        for arm, alpha, V in zip(self.arms, bias, velocities, strict=True):
            reach, w = self.meet - np.asarray(arm.tip, float), V[:3]
            linear = alpha[3:] + np.cross(alpha[:3], reach) + np.cross(w, np.cross(w, reach))
            at_load.append(np.concatenate([alpha[:3], linear]))
        return np.concatenate([at_load[0] - other for other in at_load[1:]])

    @property
    def rank_of_closure(self) -> int:
        """Rank of the closure on the joints."""
        return rank_of(self.B)

    @property
    def mobility(self) -> int:
        """Number of joints less the rank of the closure."""
        return self.B.shape[1] - self.rank_of_closure

    def six_steps(self, torques: Sequence[float], rows: Sequence[int] | None = None) -> Steps:
        """Forward dynamics with a load that weighs nothing, or is lumped on the arms.  (F25)

        Args:
            torques: Torques of all joints.
            rows: Closure rows to keep. All of them by default; redundant ones then share their
                force as equally as can be, and nothing else depends on how.
        """
        kept = list(range(len(self.beta))) if rows is None else list(rows)
        B, beta = self.B[kept], self.beta[kept]
        free = np.linalg.solve(self.M, np.asarray(torques, float) - self.C)
        compliance = self.J @ np.linalg.solve(self.M, self.J.T)
        spread = np.linalg.solve(self.M, B.T)
        F_c = np.linalg.pinv(B @ spread, rcond=RANK, hermitian=True) @ (B @ free + beta)  # (F25)
        error = -spread @ F_c
        return Steps(free, self.J @ free + self.tip_bias, compliance, F_c, error, free + error)

    def equation_9(self, torques: Sequence[float]) -> Array:
        """Joint accelerations by (9) as the source prints it: no closure bias (erratum D-2).

        Of its errata it lacks D-3 only: `annihilator` stands for its A.
        """
        free = np.linalg.solve(self.M, np.asarray(torques, float) - self.C)
        spread = np.linalg.solve(self.M, self.B.T)
        inner = np.linalg.pinv(self.B @ spread, rcond=RANK, hermitian=True)
        found: Array = free - spread @ (inner @ (self.B @ free))
        return found

    def with_load(self, torques: Sequence[float]) -> tuple[Array, Array, Array]:
        r"""Joint accelerations, the load's acceleration and tip forces, the load having mass.

        .. math:: \begin{bmatrix} \mathcal M & 0 & J^T \\ 0 & M_c & -A^T \\ J & -A & 0 \end{bmatrix}
                  \begin{bmatrix} \ddot\theta \\ \alpha_c \\ F_t \end{bmatrix} =
                  \begin{bmatrix} \mathcal T - \mathcal C \\ -b_c \\ \beta_A - \beta_J
                  \end{bmatrix}                                                   \tag{F28}
        """
        n, t = self.J.shape[1], self.J.shape[0]
        M_c, b_c = self._load()
        V = np.linalg.lstsq(self.grasp, self._tip_velocities, rcond=None)[0]
        w, A_bias = V[:3], []
        for arm in self.arms:
            reach = np.asarray(arm.tip, float) - self.meet
            A_bias.append(np.concatenate([np.zeros(3), np.cross(w, np.cross(w, reach))]))
        A = self.grasp
        K = np.block(
            [
                [self.M, np.zeros((n, 6)), self.J.T],
                [np.zeros((6, n)), M_c, -A.T],
                [self.J, -A, np.zeros((t, t))],
            ]
        )
        right = np.concatenate(
            [np.asarray(torques, float) - self.C, -b_c(w), np.concatenate(A_bias) - self.tip_bias]
        )
        x = np.linalg.lstsq(K, right, rcond=RANK)[0]  # (F28)
        return x[:n], x[n : n + 6], x[n + 6 :]

    @property
    def _tip_velocities(self) -> Array:
        return _numbers(self.operators.tip_velocities(self.tips)).ravel()

    def _load(self) -> tuple[Array, LoadBias]:
        load = self.load or Lump(0.0, tuple(self.meet), np.zeros((3, 3)))
        own = load.about(tuple(self.meet))
        link = OperatorLink(ROOT, SX(self.meet), SX.eye(6), SX.zeros(6), own)
        return _numbers(Operators([link]).M), LoadBias(own, self.g)

    @cached_property
    def reduced_order(self) -> ReducedOrder:
        r"""Directions in which the tips can go, and the closure in them.

        .. math:: J = R^T J_r, \qquad J_r = R J, \qquad A_r = \tilde A R^T        \tag{F26}
        """
        U, s, _ = np.linalg.svd(self.J)
        R = U[:, : int((s > RANK * s[0]).sum())].T
        return ReducedOrder(R, R @ self.J, self.annihilator @ R.T)  # (F26)

    def by_reduced_order(self, torques: Sequence[float]) -> Array:
        """Joint accelerations by the six steps in the smaller task space.  (F26)"""
        order = self.reduced_order
        free = np.linalg.solve(self.M, np.asarray(torques, float) - self.C)
        spread = np.linalg.solve(self.M, order.J_r.T)
        compliance = order.A_r @ (order.J_r @ spread) @ order.A_r.T
        alpha = order.A_r @ (order.J_r @ free) + self.beta
        F_c = np.linalg.pinv(compliance, rcond=RANK, hermitian=True) @ alpha
        return free - spread @ (order.A_r.T @ F_c)

    def pseudo_joints(self, torques: Sequence[float], pseudo: Sequence[int]) -> PseudoJoints:
        r"""Forward dynamics when some joints are only imagined and must not move.

        .. math:: \begin{bmatrix} \ddot\theta \\ 0 \end{bmatrix} = \begin{bmatrix} d_1 & d_2 \\
                  d_3 & d_4 \end{bmatrix} \begin{bmatrix} \bar{\mathcal T} \\ \bar{\mathcal T}_p
                  \end{bmatrix} + \ddot\theta_0, \qquad \bar{\mathcal T}_p = -d_4^{+}
                  (d_3 \bar{\mathcal T} + \ddot\theta_{0p})                       \tag{F27}

        Args:
            torques: Torques of all joints; entries of pseudo joints are not read.
            pseudo: Which joints are imagined.
        """
        n = len(self.C)
        real = [j for j in range(n) if j not in set(pseudo)]
        inverse = np.linalg.inv(self.M)
        hold = (
            inverse
            @ self.B.T
            @ np.linalg.pinv(self.B @ inverse @ self.B.T, rcond=RANK, hermitian=True)
        )
        D, start = inverse - hold @ self.B @ inverse, -hold @ self.beta
        p = list(pseudo)
        d3, d4 = D[np.ix_(p, real)], D[np.ix_(p, p)]
        given = (np.asarray(torques, float) - self.C)[real]
        held = -np.linalg.pinv(d4, rcond=RANK, hermitian=True) @ (d3 @ given + start[p])  # (F27)
        accelerations = D[np.ix_(real, real)] @ given + D[np.ix_(real, p)] @ held + start[real]
        return PseudoJoints(accelerations, held + self.C[p], d4)


@dataclass(frozen=True)
class LoadBias:
    """What a load needs at zero acceleration: velocity forces less its weight."""

    own: RigidInertia
    g: Array

    def __call__(self, w: Array) -> Array:
        """Bias for an angular velocity."""
        I, h, m = (_numbers(x) for x in (self.own.tensor, self.own.moment, self.own.mass))
        h = h.ravel()
        moment = np.cross(w, I @ w) - np.cross(h, self.g)
        return np.concatenate([moment, np.cross(w, np.cross(w, h)) - float(m[0, 0]) * self.g])


def rank_of(matrix: Array) -> int:
    """Numerical rank."""
    s = np.linalg.svd(matrix, compute_uv=False)
    return int((s > RANK * s[0]).sum()) if s.size and s[0] > 0 else 0


def _operator_link(link: ArmLink, parent: int) -> OperatorLink:
    inertia = RigidInertia.zero()
    for lump in link.lumps:
        inertia = inertia + lump.about(link.origin)
    H, rates = SX(np.asarray(link.H, float)), SX(np.asarray(link.rates, float))
    push = SX.zeros(6)
    if link.rolls_at is not None:
        push = contact_acceleration((H @ rates)[0:3], SX(np.asarray(link.rolls_at, float)))
    return OperatorLink(parent, SX(np.asarray(link.origin, float)), H, rates, inertia, push)


def _numbers(x: SX) -> Array:
    return np.array(ca.DM(ca.densify(SX(x))))
