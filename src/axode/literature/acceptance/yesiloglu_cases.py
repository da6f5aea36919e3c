"""Cases of arms with a common load and of the two-wheeled cart (Yesiloglu and others)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from axode.gallery import build
from axode.literature.acceptance.adapters import (
    Adapter,
    Array,
    Instant,
    acceleration,
    adapter,
    column,
    quantity,
)
from axode.mechanism.mechanism import Mechanism
from axode.model.model import Model
from axode.model.state import State
from axode.problems.assemble.assemble import assemble
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.formulations.deficient_arms import PseudoJointFormulation

ARMS = (1, 2)


@adapter("D2_cooperating_arms")
class CooperatingArms(Adapter):
    """Planar vectors are ordered moment, x, y, in the world's axes."""

    independent = ("along", "across", "F_dot")

    @property
    def _joints(self) -> int:
        return sum(name[0] == "L" and name[1:].isdigit() for name in self.case.parameters)

    def _named(self, pattern: str) -> list[str]:
        """Names of the joints of both arms: `theta{}` gives theta11, theta12, ..."""
        return [pattern.format(f"{arm}{k}") for arm in ARMS for k in range(1, self._joints + 1)]

    def _options(self) -> dict[str, Any]:
        state = self.case.state
        return {
            "joints": self._joints,
            "pose": state["load_X_Y_F"],
            "elbow": state.get("elbow", (1, -1)),
        }

    def mechanism(self) -> Mechanism:
        return build("cooperating_arms", **self._options(), **self.case.parameters)

    def start(self) -> State:
        X, Y, F = self.case.state["load_X_Y_F"]
        x_dot, y_dot, F_dot = self.case.state.get("load_rate", (0.0, 0.0, 0.0))
        along = x_dot * np.cos(F) + y_dot * np.sin(F)
        across = y_dot * np.cos(F) - x_dot * np.sin(F)
        near = {"X": X, "Y": Y, "F": F, "along": along, "across": across, "F_dot": F_dot}
        return assemble(self.model, near, fix=("X", "Y", "F"))

    def signals(self) -> Mapping[str, Any]:
        names = self._named("tau{}")
        return dict(zip(names, self.case.input.get("tau", [0.0] * len(names)), strict=True))

    theta = quantity(lambda self, now: now.several(*self._named("theta{}")))
    theta_dot = quantity(lambda self, now: now.several(*self._named("theta{}_dot")))

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return [now.accelerations[name] for name in self._named("theta{}_dot")]

    # the load -------------------------------------------------------------------------------------

    load_X_Y_F = column("X", "Y", "F")
    load_rate = quantity(lambda _, now: now.rates("X", "Y", "F"))
    load_acc_alpha_ax_ay = quantity(lambda _, now: now.second_rates("F", "X", "Y"))

    def _tip(self, now: Instant, arm: int) -> Array:
        """What an arm exerts on the load, at its tip; the grip's multipliers act on the arm."""
        moment, along, across = (-now.forces[f"grip{arm}.{row}"] for row in ("rz", "x", "y"))
        c, s = np.cos(now["F"]), np.sin(now["F"])
        return np.array([moment, c * along - s * across, s * along + c * across])

    @quantity
    def tip_forces_on_load(self, now: Instant) -> Any:
        return np.concatenate([self._tip(now, arm) for arm in ARMS])

    @quantity
    def F_c(self, now: Instant) -> Any:
        """What arm 1 exerts on the load, at the load's centre."""
        moment, x, y = self._tip(now, 1)
        lc, F = self.case.parameters["lc"], now["F"]
        return [moment - lc * (np.cos(F) * y - np.sin(F) * x), x, y]

    # the arms let loose ---------------------------------------------------------------------------

    @cached_property
    def _free(self) -> Model:
        arms = build("cooperating_arms", load=False, **self._options(), **self.case.parameters)
        return arms.derive(independent=self._named("theta{}_dot")).compile("interpreter")

    def _arms(self, now: Instant) -> tuple[Array, Array, Array]:
        torques = now.several(*self._named("tau{}"))
        return np.array(self.theta(now)), np.array(self.theta_dot(now)), np.array(torques)

    def _inertia_of(self, now: Instant, arm: int) -> Array:
        own = slice((arm - 1) * self._joints, arm * self._joints)
        return self._free.mass_matrix(self._arms(now)[0])[own, own]

    mass_matrix_arm1 = quantity(lambda self, now: self._inertia_of(now, 1))
    mass_matrix_arm2 = quantity(lambda self, now: self._inertia_of(now, 2))

    @quantity
    def bias_C(self, now: Instant) -> Any:
        q, nu, _ = self._arms(now)
        return self._free.bias(q, nu) - self._free.potential_force(q)

    free_theta_ddot = quantity(lambda self, now: self._free.forward_dynamics(*self._arms(now)))


@adapter("D5_two_wheeled_cart")
class TwoWheeledCart(Adapter):
    """The cart for its motion; the same as two arms for the source's closure."""

    independent = ("q1_dot", "q2_dot", "pitch_rate")

    def mechanism(self) -> Mechanism:
        return build("two_wheeled_cart", **self.case.parameters)

    def start(self) -> Mapping[str, float]:
        state = self.case.state
        wheels = state.get("wheel_rates", (0.0, 0.0))
        return {
            "psi": state.get("psi", 0.0),
            "pitch": state.get("load_pitch", 0.0),
            "x": state.get("x", 0.0),
            "y": state.get("y", 0.0),
            "pitch_rate": state.get("load_pitch_rate", 0.0),
            "wheel1_rate": wheels[0],
            "wheel2_rate": wheels[1],
        }

    load_pitch = column("pitch")
    load_pitch_rate = column("pitch_rate")
    wheel_rates = column("wheel1_rate", "wheel2_rate")
    load_pitch_acc = acceleration("pitch_rate")
    yaw_acc = acceleration("psi_dot")
    arm1_q_ddot = acceleration("q1_dot")
    arm2_q_ddot = acceleration("q2_dot")
    wheel_spin_acc = quantity(lambda self, now: [self._wheel_turning(now, arm)[1] for arm in ARMS])
    arm1_omega_dot_platform_axes = quantity(lambda self, now: self._wheel_turning(now, 1))
    arm2_omega_dot_platform_axes = quantity(lambda self, now: self._wheel_turning(now, 2))

    def _wheel_turning(self, now: Instant, arm: int) -> Array:
        """Angular acceleration of a wheel, in the platform's axes."""
        model = now.model
        wheel = 6 * model.bodies.index(f"wheel{arm}")
        by_q = model.jacobian("twists", "q", now.q, now.nu).reshape(-1, len(now.q))
        by_nu = model.jacobian("twists", "nu", now.q, now.nu).reshape(-1, len(now.nu))
        turning = by_q @ model.rates(now.q, now.nu) + by_nu @ now.nu_dot
        axes = model.poses(now.q)[model.bodies.index("axle"), :3, :3]
        found: Array = axes.T @ turning[wheel : wheel + 3]
        return found

    # along +e; the wheels turn about -e, and so do their sideways rows point
    total_lateral_ground_force = quantity(lambda _, now: -now.lateral_force)

    # closure of the two arms ----------------------------------------------------------------------

    @cached_property
    def _pseudo(self) -> PseudoJointFormulation:
        robot = build("two_wheeled_cart", arms=True, **self.case.parameters)
        return PseudoJointFormulation(robot.derive().system)

    @quantity
    def mobility(self, _: Instant) -> Any:
        return len(self._pseudo.system.independent)

    @quantity
    def rank_closure_real(self, _: Instant) -> Any:
        """Rank of the grip, on the motions that the wheels' contacts leave to the arms."""
        contacts = [row for row in self._pseudo.closing_rows if row.owner.startswith("contact")]
        return len(self._pseudo.system.kept) - len(contacts)

    @quantity
    def rank_d4(self, _: Instant) -> Any:
        """Rank of the map to the accelerations of the pseudo joints for forces on them."""
        system = self._pseudo.system
        given = [system.tree.q, system.tree.t, system.tree.parameters]
        function = ca.Function("D", given, [self._pseudo.D])
        D = np.array(function(system.home, 0.0, system.defaults))
        real = len(system.tree.speed_names)
        return rank_of(D[real:, real:])
