"""Maps of velocities of a platform on legs, whatever freedoms its legs have."""

from __future__ import annotations

from functools import cached_property

import casadi as ca

from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, cross, skew
from axode.symbolic.formulations.leg_chains import Leg, find_platform
from axode.symbolic.formulations.legs import motor_map
from axode.symbolic.system import System


class PlatformMaps:
    """Jacobians of the legs, and what unit independent speeds move.

    Everything refers to the platform's mass centre C_M and to world axes.

    Args:
        system: Mechanism with one platform that legs carry from the ground.

    Raises:
        NotApplicable: for any other mechanism, saying what is in the way.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        self.platform = find_platform(system)

    @cached_property
    def T(self) -> SX:
        """Twist of the platform for unit independent speeds: t_M = T nu."""
        tree, columns = self.system.tree, SX(6, self.system.tree.v.shape[0])
        for i in tree.path(self.platform.link):
            link, pose = tree.links[i], tree.pose(i)
            for k, j in enumerate(link.speeds):
                e, s = pose.R @ link.S_w[:, k], pose.R @ link.S_v[:, k]
                columns[:, j] = ca.vertcat(e, s + cross(e, self.platform.centre - pose.p))
        return ca.densify(columns @ self.system.complement.Theta)

    @cached_property
    def jacobians(self) -> SX:
        """Jacobians J_J of all legs side by side: 6 rows, a column for every freedom.  (F13)"""
        centre = self.platform.centre
        return ca.densify(ca.horzcat(*[leg.columns(centre) for leg in self.platform.legs]))

    @cached_property
    def speed_maps(self) -> SX:
        """Rates of all legs' freedoms for unit independent speeds: L_J, one below the other."""
        return ca.densify(ca.vertcat(*[self._speed_map(leg) for leg in self.platform.legs]))

    def _speed_map(self, leg: Leg) -> SX:
        """L_J: rows of Theta, and for the joint that closes the loop what is left of T.

        That joint's twists are taken at its own point, where axes through it have no linear part.
        """
        Theta = self.system.complement.Theta
        rows = [SX(1, Theta.shape[1]) if j.speed is None else Theta[j.speed, :] for j in leg.joints]
        closing = [k for k, joint in enumerate(leg.joints) if joint.speed is None]
        L = ca.vertcat(*rows)
        if closing:
            at = leg.joints[closing[0]].at
            J = leg.columns(at)
            arm = skew(at - self.platform.centre)
            T = ca.vertcat(self.T[0:3, :], self.T[3:6, :] - arm @ self.T[0:3, :])
            own = ca.densify(J[:, closing])
            L[closing, :] = Factor.of(own.T @ own).solve(ca.densify(own.T @ (T - J @ L)))
        return L

    @cached_property
    def motor_map(self) -> SX:
        """Forces on the independent speeds of unit forces on the motors' joints: Lambda."""
        return motor_map(self.system, self.system.complement.Theta)
