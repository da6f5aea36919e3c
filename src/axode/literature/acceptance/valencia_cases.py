"""Cases of the mobile manipulator's arm and platform (Valencia and others 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axode.gallery import build
from axode.literature.acceptance.adapters import Adapter, Instant, adapter, quantity
from axode.literature.acceptance.yesiloglu_cases import coordinate_accelerations
from axode.mechanism.mechanism import Mechanism

AXES = (1, 2, 3, 4)
SIDES = ("R", "L")


@adapter("E1_valencia_arm")
class ArmCase(Adapter):
    """The source's model has four axes; the gripper's, the fifth, is at rest."""

    independent = (*(f"theta{k}_dot" for k in AXES), "theta5_dot")

    def mechanism(self) -> Mechanism:
        return build("five_axis_arm", **self.case.parameters)

    def start(self) -> Mapping[str, float]:
        state = self.case.state
        rates = state.get("theta_dot", [0.0] * len(AXES))
        places = state.get("theta", [0.0] * len(AXES))
        angles = dict(zip((f"theta{k}" for k in AXES), places, strict=True))
        return angles | dict(zip(self.independent, [*rates, 0.0], strict=True))

    def signals(self) -> Mapping[str, Any]:
        torques = self.case.input.get("tau", [0.0] * len(AXES))
        return {f"tau{k}": torque for k, torque in zip(AXES, torques, strict=True)}

    @quantity
    def theta(self, now: Instant) -> Any:
        return now.several(*(f"theta{k}" for k in AXES))

    @quantity
    def theta_dot(self, now: Instant) -> Any:
        return now.several(*self.independent[:4])

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return now.nu_dot[:4]

    @quantity
    def M(self, now: Instant) -> Any:
        return now.model.mass_matrix(now.q)[:4, :4]

    @quantity
    def V_coriolis(self, now: Instant) -> Any:
        return now.model.bias(now.q, now.nu)[:4]

    @quantity
    def G(self, now: Instant) -> Any:
        return -now.model.potential_force(now.q)[:4]

    @quantity
    def friction(self, now: Instant) -> Any:
        return -now.model.dissipative_force(now.q, now.nu)[:4]

    @quantity
    def tau(self, now: Instant) -> Any:
        """Torques of the motion that is asked for, or else those that act."""
        if "theta_ddot" not in self.case.input:
            return now.several(*(f"tau{k}" for k in AXES))
        wanted = [*self.case.input["theta_ddot"], 0.0]
        return now.model.inverse_dynamics(now.q, now.nu, wanted)[:4]

    @quantity
    def energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu).sum()

    @quantity
    def kinetic_energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu)[0]

    @quantity
    def potential_energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu)[1]


@adapter("E2_valencia_platform")
class PlatformCase(Adapter):
    """Platform of the source; wheels in the order right, left."""

    independent = ("phi_R_dot", "phi_L_dot")

    def mechanism(self) -> Mechanism:
        return build("six_wheel_platform", **self.case.parameters)

    def start(self) -> Mapping[str, float]:
        state = self.case.state
        start = {
            own: state[name]
            for own, name in (
                ("x_c", "x"),
                ("y_c", "y"),
                ("theta", "theta"),
                ("phi_R", "phi_R"),
                ("phi_L", "phi_L"),
                ("v", "v"),
                ("w", "w"),
            )
            if name in state
        }
        rates = state.get("wheel_rates_R_L", ())
        return start | {f"phi_{side}_dot": rate for side, rate in zip(SIDES, rates, strict=False)}

    @quantity
    def x(self, now: Instant) -> Any:
        return now["x_c"]

    @quantity
    def y(self, now: Instant) -> Any:
        return now["y_c"]

    @quantity
    def wheel_rates_R_L(self, now: Instant) -> Any:
        return now.several(*self.independent)

    @quantity
    def wheel_acc_R_L(self, now: Instant) -> Any:
        return now.nu_dot

    @quantity
    def q_ddot_x_y_theta(self, now: Instant) -> Any:
        return coordinate_accelerations(now, ("x_c", "y_c", "theta"))

    @quantity
    def v_dot(self, now: Instant) -> Any:
        return now.accelerations["v"]

    @quantity
    def w_dot(self, now: Instant) -> Any:
        return now.accelerations["w"]

    @quantity
    def reduced_inertia(self, now: Instant) -> Any:
        return now.model.mass_matrix(now.q)

    @quantity
    def multipliers_lat_R_L(self, now: Instant) -> Any:
        """Multipliers of the source's rows.

        They are sideways as ours, along the wheels against ours, all subtracted.
        """
        force = dict(zip(now.model.rows, now.model.multipliers(now.q, now.nu, now.u), strict=True))
        sideways = sum(value for row, value in force.items() if row.endswith(".lateral"))
        return [-sideways, *(force[f"wheel_{side}.longitudinal"] for side in SIDES)]

    @quantity
    def energy(self, now: Instant) -> Any:
        return now.model.energy(now.q, now.nu).sum()
