"""Cases of the mobile manipulator's arm and platform (Valencia and others 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from axode.gallery import build
from axode.literature.acceptance.adapters import (
    Adapter,
    Instant,
    acceleration,
    adapter,
    column,
    quantity,
)
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

    theta = column(*(f"theta{k}" for k in AXES))
    theta_dot = quantity(lambda self, now: now.several(*self.independent[:4]))
    theta_ddot = quantity(lambda _, now: now.nu_dot[:4])
    M = quantity(lambda _, now: now.inertia[:4, :4])
    V_coriolis = quantity(lambda _, now: now.bias[:4])
    G = quantity(lambda _, now: -now.gravity[:4])
    friction = quantity(lambda _, now: -now.model.dissipative_force(now.q, now.nu)[:4])

    @quantity
    def tau(self, now: Instant) -> Any:
        """Torques of the motion that is asked for, or else those that act."""
        if "theta_ddot" not in self.case.input:
            return now.several(*(f"tau{k}" for k in AXES))
        wanted = [*self.case.input["theta_ddot"], 0.0]
        return now.model.inverse_dynamics(now.q, now.nu, wanted)[:4]


@adapter("E2_valencia_platform")
class PlatformCase(Adapter):
    """Platform of the source; wheels in the order right, left."""

    independent = ("phi_R_dot", "phi_L_dot")

    def mechanism(self) -> Mechanism:
        return build("six_wheel_platform", **self.case.parameters)

    def start(self) -> Mapping[str, float]:
        state = self.case.state
        names = {"x": "x_c", "y": "y_c"} | {n: n for n in ("theta", "phi_R", "phi_L", "v", "w")}
        start = {own: state[name] for name, own in names.items() if name in state}
        rates = state.get("wheel_rates_R_L", ())
        return start | {f"phi_{side}_dot": rate for side, rate in zip(SIDES, rates, strict=False)}

    x = column("x_c")
    y = column("y_c")
    wheel_rates_R_L = quantity(lambda self, now: now.several(*self.independent))
    wheel_acc_R_L = quantity(lambda _, now: now.nu_dot)

    q_ddot_x_y_theta = quantity(lambda _, now: now.second_rates("x_c", "y_c", "theta"))
    v_dot = acceleration("v")
    w_dot = acceleration("w")
    reduced_inertia = quantity(lambda _, now: now.inertia)

    @quantity
    def multipliers_lat_R_L(self, now: Instant) -> Any:
        """Multipliers of the source's rows.

        They are sideways as ours, along the wheels against ours, all subtracted.
        """
        return [-now.lateral_force, *(now.forces[f"wheel_{s}.longitudinal"] for s in SIDES)]
