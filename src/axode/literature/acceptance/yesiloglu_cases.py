"""Cases of arms with a common load and of the two-wheeled cart (Yesiloglu and others)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from axode.gallery import build
from axode.literature.acceptance.adapters import Adapter, Array, Instant, adapter, quantity
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

    def _names(self, arms: tuple[int, ...] = ARMS) -> list[str]:
        return [f"{arm}{k}" for arm in arms for k in range(1, self._joints + 1)]

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
        torques = self.case.input.get("tau", [0.0] * len(self._names()))
        return {f"tau{name}": torque for name, torque in zip(self._names(), torques, strict=True)}

    @quantity
    def theta(self, now: Instant) -> Any:
        return now.several(*(f"theta{name}" for name in self._names()))

    @quantity
    def theta_dot(self, now: Instant) -> Any:
        return now.several(*(f"theta{name}_dot" for name in self._names()))

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return [now.accelerations[f"theta{name}_dot"] for name in self._names()]

    @quantity
    def energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu).sum()

    # the load -------------------------------------------------------------------------------------

    @quantity
    def load_X_Y_F(self, now: Instant) -> Any:
        return now.several("X", "Y", "F")

    @quantity
    def load_rate(self, now: Instant) -> Any:
        return _coordinate_rates(now, ("X", "Y", "F"))

    @quantity
    def load_acc_alpha_ax_ay(self, now: Instant) -> Any:
        x, y, F = coordinate_accelerations(now, ("X", "Y", "F"))
        return [F, x, y]

    def _tip(self, now: Instant, arm: int) -> Array:
        """What an arm exerts on the load, at its tip; the grip's multipliers act on the arm."""
        force = dict(zip(now.model.rows, now.model.multipliers(now.q, now.nu, now.u), strict=True))
        moment, along, across = (-force[f"grip{arm}.{row}"] for row in ("rz", "x", "y"))
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
        names = tuple(f"theta{name}_dot" for name in self._names())
        arms = build("cooperating_arms", load=False, **self._options(), **self.case.parameters)
        return arms.derive(independent=names).compile("interpreter")

    def _arms(self, now: Instant) -> tuple[Array, Array, Array]:
        torques = now.several(*(f"tau{name}" for name in self._names()))
        return np.array(self.theta(now)), np.array(self.theta_dot(now)), np.array(torques)

    @quantity
    def mass_matrix_arm1(self, now: Instant) -> Any:
        return self._free.mass_matrix(self._arms(now)[0])[: self._joints, : self._joints]

    @quantity
    def mass_matrix_arm2(self, now: Instant) -> Any:
        return self._free.mass_matrix(self._arms(now)[0])[self._joints :, self._joints :]

    @quantity
    def bias_C(self, now: Instant) -> Any:
        q, nu, _ = self._arms(now)
        return self._free.bias(q, nu) - self._free.potential_force(q)

    @quantity
    def free_theta_ddot(self, now: Instant) -> Any:
        return self._free.forward_dynamics(*self._arms(now))


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

    @quantity
    def load_pitch(self, now: Instant) -> Any:
        return now["pitch"]

    @quantity
    def load_pitch_rate(self, now: Instant) -> Any:
        return now["pitch_rate"]

    @quantity
    def wheel_rates(self, now: Instant) -> Any:
        return now.several("wheel1_rate", "wheel2_rate")

    @quantity
    def load_pitch_acc(self, now: Instant) -> Any:
        return now.accelerations["pitch_rate"]

    @quantity
    def yaw_acc(self, now: Instant) -> Any:
        return now.accelerations["psi_dot"]

    @quantity
    def arm1_q_ddot(self, now: Instant) -> Any:
        return now.accelerations["q1_dot"]

    @quantity
    def arm2_q_ddot(self, now: Instant) -> Any:
        return now.accelerations["q2_dot"]

    @quantity
    def wheel_spin_acc(self, now: Instant) -> Any:
        return [self._wheel_turning(now, arm)[1] for arm in ARMS]

    @quantity
    def arm1_omega_dot_platform_axes(self, now: Instant) -> Any:
        return self._wheel_turning(now, 1)

    @quantity
    def arm2_omega_dot_platform_axes(self, now: Instant) -> Any:
        return self._wheel_turning(now, 2)

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

    @quantity
    def total_lateral_ground_force(self, now: Instant) -> Any:
        """Along +e; the wheels turn about -e, and so do their sideways rows point."""
        rows = zip(now.model.rows, now.model.multipliers(now.q, now.nu, now.u), strict=True)
        return -sum(value for row, value in rows if row.endswith(".lateral"))

    @quantity
    def energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu).sum()

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


def _coordinate_rates(now: Instant, names: tuple[str, ...]) -> list[float]:
    rates = now.model.rates(now.q, now.nu)
    return [float(rates[now.model.coordinates.index(name)]) for name in names]


def coordinate_accelerations(now: Instant, names: tuple[str, ...]) -> list[float]:
    """Second derivatives of coordinates."""
    model = now.model
    by_q = model.jacobian("rates", "q", now.q, now.nu)
    by_nu = model.jacobian("rates", "nu", now.q, now.nu)
    found = by_q @ model.rates(now.q, now.nu) + by_nu @ now.nu_dot
    return [float(found[model.coordinates.index(name)]) for name in names]
