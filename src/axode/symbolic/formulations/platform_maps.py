"""Velocities and wrenches of a platform on legs, whatever freedoms its legs have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import casadi as ca

from axode.errors import NotApplicable
from axode.symbolic.algebra.linear import Factor
from axode.symbolic.algebra.spatial import SX, cross, skew, symbolic_vector
from axode.symbolic.constraints.system import System
from axode.symbolic.formulations.explicit_complement import ComplementFormulation
from axode.symbolic.formulations.legs import ClosingJoint, Leg, find_platform, motor_map
from axode.symbolic.tree.generalized_forces import BodyLoad, body_loads


class PlatformMaps:
    """Jacobians of the legs, what unit independent speeds move, and what the legs exert.

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

    def wrenches(self, nu_dot: SX) -> SX:
        r"""What every leg exerts on the platform at C_M, one row each, under the inputs u.

        At the joint that closes a leg's loop the multipliers act; from there to the platform each
        body takes what its motion needs beyond its loads. A leg of the tree gives what the
        platform still lacks.

        .. math:: w_J = w_{cut} + \sum_b (w_b - M_b \dot t_b - W_b M_b t_b)         \tag{F30}
        """
        book, loads = ComplementFormulation(self.system), self._loads
        v_dot = book.accelerations(nu_dot)
        need = book.required_wrenches(v_dot)
        forces = self._loop_forces(book.tree_forces(v_dot))
        found = [
            None
            if leg.closing is None
            else self._closing_wrench(leg.closing, forces)
            + self._net_wrenches(leg.closing.beyond, need, loads)  # (F30)
            for leg in self.platform.legs
        ]
        others = sum((w for w in found if w is not None), SX.zeros(6))
        lacking = -self._net_wrenches([self.platform.link], need, loads) - others
        return ca.densify(ca.vertcat(*[(lacking if w is None else w).T for w in found]))

    @property
    def _loads(self) -> list[BodyLoad]:
        return body_loads(self.system.tree, self.system.u[self.system.forces.motors :])

    def _loop_forces(self, force: SX) -> dict[str, SX]:
        """Multipliers by the names of their rows, given the force on the opened mechanism."""
        system = self.system
        unknown = {*system.report.indeterminate, *(row.name for row in system.report.dropped)}
        if unknown:
            raise NotApplicable(
                f"the legs of '{system.mechanism.name}' hold each other: statics leaves open "
                f"the forces in {', '.join(sorted(unknown))}.\n  Give a joint more freedom, such "
                "as a spherical one for a revolute."
            )
        given = ca.densify(system.forces.B @ system.u) if system.u.shape[0] else SX(0)
        multipliers = ca.densify(system.complement.solve_transposed(force - given))
        names = [row.name for row in system.kept]
        return dict(zip(names, ca.vertsplit(multipliers), strict=True))

    def _closing_wrench(self, closing: ClosingJoint, forces: dict[str, SX]) -> SX:
        """What the joint that closes a leg's loop exerts towards the platform, at C_M."""
        closure = closing.closure
        R, arm = self.system.tree.pose(closure.first).R, closure.world_point - self.platform.centre
        wrench = SX.zeros(6)
        for row, (n, f) in closure.directions.items():
            size = forces.get(f"{closing.name}.{row}")
            if size is not None:
                wrench += size * ca.vertcat(R @ n + cross(arm, R @ f), R @ f)
        return wrench if closure.first == closing.towards else -wrench

    def _net_wrenches(self, links: Sequence[int], need: SX, loads: list[BodyLoad]) -> SX:
        """Loads on the bodies of some links less what their motion needs, at C_M."""
        tree, centre, total = self.system.tree, self.platform.centre, SX.zeros(6)
        for k, body in enumerate(tree.mechanism.bodies):
            if tree.body_link[body.name] in links:
                at = tree.body_world_pose(body.name).point(symbolic_vector(body.com, tree.values))
                n, f = need[6 * k : 6 * k + 3], need[6 * k + 3 : 6 * k + 6]
                total -= ca.vertcat(n + cross(at - centre, f), f)
        for load in loads:
            if tree.body_link[load.body] in links:
                moment = load.moment + cross(load.point - centre, load.force)
                total += ca.vertcat(moment, load.force)
        return total

    @cached_property
    def motor_map(self) -> SX:
        """Forces on the independent speeds of unit forces on the motors' joints: Lambda."""
        return motor_map(self.system, self.system.complement.Theta)
