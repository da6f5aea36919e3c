r"""Spatial operators of a tree of arms: phi, H, sigma, and what they give.

Vectors are in world axes, spatial pairs (angular, linear) are taken at link origins. Nothing here
knows where the links come from: :class:`SpatialOperatorFormulation` makes them of a mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import casadi as ca

from axode.symbolic.algebra.frames import ROOT
from axode.symbolic.algebra.spatial import SX, RigidInertia, cross, skew


def propagation(reach: SX) -> SX:
    r"""Takes the velocity of one point of a body to another, `reach` away.

    .. math:: \phi = \begin{bmatrix} 1 & 0 \\ -\hat l & 1 \end{bmatrix}           \tag{F20}
    """
    phi = SX.eye(6)
    phi[3:6, 0:3] = -skew(reach)  # (F20)
    return phi


@dataclass(frozen=True)
class OperatorLink:
    """A link: its joint's directions, constant in the link itself, and its inertia about O."""

    parent: int  # ROOT for those on the base
    origin: SX
    H: SX  # 6 x k
    rates: SX  # k
    inertia: RigidInertia


@dataclass(frozen=True)
class Base:
    """What the arms stand on: where, its velocity and its acceleration, gravity in it."""

    origin: SX = field(default_factory=lambda: SX.zeros(3))
    V: SX = field(default_factory=lambda: SX.zeros(6))
    alpha: SX = field(default_factory=lambda: SX.zeros(6))


@dataclass(frozen=True)
class Tip:
    """A point of a link that touches something else."""

    link: int
    point: SX


class Operators:
    r"""The stacked operators of links given parents first.

    .. math:: V = \phi (H \dot\theta + \sigma_b V_b), \qquad
              \alpha = \phi (H \ddot\theta + a + \sigma_b \alpha_b)               \tag{F21}
    """

    def __init__(self, links: Sequence[OperatorLink], base: Base | None = None) -> None:
        self.links = tuple(links)
        self.base = base or Base()

    @cached_property
    def phi(self) -> SX:
        """From every link to all that it carries."""
        phi = SX.eye(6 * len(self.links))
        for k, link in enumerate(self.links):
            j = link.parent
            while j != ROOT:
                reach = link.origin - self.links[j].origin
                phi[6 * k : 6 * k + 6, 6 * j : 6 * j + 6] = propagation(reach)
                j = self.links[j].parent
        return phi

    @cached_property
    def H(self) -> SX:
        """Directions of all joints."""
        return ca.diagcat(*[link.H for link in self.links])

    @cached_property
    def M(self) -> SX:
        """Inertia of all links about their origins."""
        blocks = []
        for link in self.links:
            h = skew(link.inertia.moment)
            mass = link.inertia.mass * SX.eye(3)
            blocks.append(ca.blockcat(link.inertia.tensor, h, h.T, mass))
        return ca.diagcat(*blocks)

    @cached_property
    def sigma_b(self) -> SX:
        """From the base to the links that stand on it."""
        rows = [
            propagation(link.origin - self.base.origin) if link.parent == ROOT else SX(6, 6)
            for link in self.links
        ]
        return ca.vertcat(*rows)

    @cached_property
    def rates(self) -> SX:
        """theta_dot."""
        return ca.vertcat(*[link.rates for link in self.links])

    @cached_property
    def phi_H(self) -> SX:
        """Velocities of all links for unit joint rates."""
        return self.phi @ self.H

    @cached_property
    def V(self) -> SX:
        """Velocities of all links.  (F21)"""
        return ca.densify(self.phi_H @ self.rates + self.phi @ (self.sigma_b @ self.base.V))

    def velocity(self, link: int) -> tuple[SX, SX]:
        """Velocity of one link or of the base: angular, and of its origin."""
        V = self.base.V if link == ROOT else self.V[6 * link : 6 * link + 6]
        return V[0:3], V[3:6]

    @cached_property
    def a(self) -> SX:
        r"""Accelerations that velocities alone cause, joint by joint.

        .. math:: a_k = \begin{bmatrix} \omega_p \times \omega_r \\ \omega_p \times (\omega_p
                  \times l) + (\omega_p + \omega_k) \times u_r \end{bmatrix}      \tag{F22}
        """
        found = []
        for k, link in enumerate(self.links):
            w_p = self.velocity(link.parent)[0]
            w_k = self.velocity(k)[0]
            relative = link.H @ link.rates
            before = self.base if link.parent == ROOT else self.links[link.parent]
            l = link.origin - before.origin
            linear = cross(w_p, cross(w_p, l)) + cross(w_p + w_k, relative[3:6])
            found.append(ca.vertcat(cross(w_p, relative[0:3]), linear))  # (F22)
        return ca.densify(ca.vertcat(*found))

    @cached_property
    def b(self) -> SX:
        """Forces that velocities alone need: (w x I w, w x (w x m l_c))."""
        found = []
        for k, link in enumerate(self.links):
            w = self.velocity(k)[0]
            h = cross(w, cross(w, link.inertia.moment))
            found.append(ca.vertcat(cross(w, link.inertia.tensor @ w), h))
        return ca.densify(ca.vertcat(*found))

    @cached_property
    def mass_matrix(self) -> SX:
        r"""H^T phi^T M phi H, the first part of

        .. math:: \mathcal T = \mathcal M \ddot\theta + \mathcal C + \mathcal L \alpha_b
                  + J^T F_t                                                       \tag{F23}
        """
        return ca.densify(self.phi_H.T @ (self.M @ self.phi_H))

    @cached_property
    def bias(self) -> SX:
        """C = H^T phi^T (M phi a + b), the base's acceleration not in it.  (F23)"""
        return ca.densify(self.phi_H.T @ (self.M @ (self.phi @ self.a) + self.b))

    @cached_property
    def L(self) -> SX:
        """H^T phi^T M phi sigma_b: what the base's acceleration asks of the joints.  (F23)"""
        return ca.densify(self.phi_H.T @ (self.M @ (self.phi @ self.sigma_b)))

    @cached_property
    def required(self) -> SX:
        """C + L alpha_b."""
        return self.bias + self.L @ self.base.alpha

    def sigma_t(self, tips: Sequence[Tip]) -> SX:
        """From the links to the tips: blocks phi_{t,n}."""
        sigma = SX(6 * len(tips), 6 * len(self.links))
        for i, tip in enumerate(tips):
            reach = tip.point - self.links[tip.link].origin
            sigma[6 * i : 6 * i + 6, 6 * tip.link : 6 * tip.link + 6] = propagation(reach)
        return sigma

    def jacobian(self, tips: Sequence[Tip]) -> SX:
        """J = sigma_t phi H."""
        return self.sigma_t(tips) @ self.phi_H

    def tip_velocities(self, tips: Sequence[Tip]) -> SX:
        """V_t."""
        return ca.densify(self.sigma_t(tips) @ self.V)

    def tip_accelerations(self, tips: Sequence[Tip], theta_dd: SX | None = None) -> SX:
        """alpha_t = J theta_dd + sigma_t phi (a + sigma_b alpha_b) + a_t."""
        inner = self.a + self.sigma_b @ self.base.alpha
        if theta_dd is not None:
            inner += self.H @ theta_dd
        own = []
        for tip in tips:
            w = self.velocity(tip.link)[0]
            reach = tip.point - self.links[tip.link].origin
            own.append(ca.vertcat(SX.zeros(3), cross(w, cross(w, reach))))
        return ca.densify(self.sigma_t(tips) @ (self.phi @ inner) + ca.vertcat(*own))
