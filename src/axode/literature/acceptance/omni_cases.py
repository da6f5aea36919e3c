"""Wheels with rollers: A5 and A6, after Angeles, chapter 12."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from axode.gallery import build
from axode.literature.acceptance.adapters import Instant, adapter, quantity
from axode.literature.acceptance.angeles_cases import RollingRobot, damping_of, first_of, numbered
from axode.mechanism.mechanism import Mechanism
from axode.model.state import State
from axode.problems.assemble.assemble import assemble


class RollerWheels(RollingRobot):
    """What the two arrays share: wheels theta1, theta2, ..., platform x, y, sigma."""

    @property
    def count(self) -> int:
        """How many wheels there are."""
        return 3

    def start(self) -> State:
        state = self.case.state
        x, y = first_of(state, "c", "c0", default=[0.0, 0.0])
        near = {"x": x, "y": y, "sigma": first_of(state, "sigma", "sigma0", default=0.0)}
        rates = first_of(state, "theta_dot", "theta_dot0")
        body = first_of(state, "u_body", "u_body0")
        speeds: dict[str, float] = {}
        if body is not None:
            speeds = {name: body[name] for name in ("omega", "vx", "vy")}
        elif rates is not None:
            speeds = {f"theta{k}_dot": rate for k, rate in enumerate(rates, start=1)}
        return assemble(self.model, {**near, **speeds}, fix=("x", "y", "sigma"))

    def signals(self) -> Mapping[str, Any]:
        return numbered(self.case.input, "tau", self.count)

    def _wheels(self, ending: str) -> list[str]:
        return [f"theta{k}{ending}" for k in range(1, self.count + 1)]

    @quantity
    def theta_dot(self, now: Instant) -> Any:
        return now.several(*self._wheels("_dot"))

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return [now.accelerations[name] for name in self._wheels("_dot")]

    @quantity
    def theta(self, now: Instant) -> Any:
        return now.several(*self._wheels(""))

    @quantity
    def c(self, now: Instant) -> Any:
        return now.several("x", "y")

    @quantity
    def twist_body(self, now: Instant) -> Any:
        return {name: now[name] for name in ("omega", "vx", "vy")}

    @quantity
    def u_body(self, now: Instant) -> Any:
        return self.twist_body(now)

    def _tractions(self, now: Instant, row: str) -> Any:
        forces = now.model.multipliers(now.q, now.nu, now.u)
        wanted = [f"wheel{k}.{row}" for k in range(1, self.count + 1)]
        return np.array([forces[now.model.rows.index(name)] for name in wanted])


@adapter("A5_mekanum_delta")
class DeltaArray(RollerWheels):
    """A5: the independent speeds are those of the wheels."""

    independent = ("theta1_dot", "theta2_dot", "theta3_dot")

    def mechanism(self) -> Mechanism:
        return build("delta_array", **self.case.parameters)

    @quantity
    def alpha(self, now: Instant) -> float:
        return float(now.model.mass_matrix(now.q)[0, 0])

    @quantity
    def beta(self, now: Instant) -> float:
        return float(now.model.mass_matrix(now.q)[0, 1])

    @quantity
    def multipliers(self, now: Instant) -> Any:
        return -self._tractions(now, "longitudinal")  # the source's f is k x e, ours is e x k

    @quantity
    def eigenvalues(self, now: Instant) -> Any:
        return np.linalg.eigvalsh(now.model.mass_matrix(now.q))

    @quantity
    def alpha_minus_beta(self, now: Instant) -> float:
        return self.alpha(now) - self.beta(now)

    @quantity
    def alpha_plus_2beta(self, now: Instant) -> float:
        return self.alpha(now) + 2 * self.beta(now)

    @quantity
    def k_ex12_7(self, now: Instant) -> float:
        """Decay of the yaw rate: friction over inertia of equal wheel rates."""
        return float(damping_of(now).sum() / now.model.mass_matrix(now.q).sum())

    @quantity
    def f_ex12_7(self, now: Instant) -> float:
        """Part of the yaw acceleration due to the torques."""
        row = now.model.speed_map(now.q)[now.model.speed_names.index("omega")]
        force = now.model.input_force(now.q, now.u)
        return float(row @ np.linalg.solve(now.model.mass_matrix(now.q), force))

    @quantity
    def H_for_isotropy(self, now: Instant) -> float:
        """The platform's yaw inertia, which enters linearly, at which beta vanishes."""
        H = now.model.parameters["H"]
        at = [
            float(now.model.mass_matrix(now.q, parameters={"H": value})[0, 1])
            for value in (H, 2 * H)
        ]
        return H - at[0] * H / (at[1] - at[0])

    @quantity
    def alpha_at_isotropy(self, now: Instant) -> float:
        isotropic = {"H": self.H_for_isotropy(now)}
        return float(now.model.mass_matrix(now.q, parameters=isotropic)[0, 0])


@adapter("A6_mekanum_n")
class MecanumPlatform(RollerWheels):
    """A6: the independent speeds are the platform's, in its own axes."""

    independent = ("omega", "vx", "vy")

    @property
    def count(self) -> int:
        return len(self.case.parameters["wheels_px_py_axisAngle_rollerAngle"])

    def mechanism(self) -> Mechanism:
        given = dict(self.case.parameters)
        wheels = given.pop("wheels_px_py_axisAngle_rollerAngle")
        return build("mecanum_platform", wheels=wheels, **given)

    @quantity
    def u_dot_body(self, now: Instant) -> Any:
        return now.nu_dot

    @quantity
    def M_u(self, now: Instant) -> Any:
        return now.model.mass_matrix(now.q)

    @quantity
    def c_u(self, now: Instant) -> Any:
        return now.model.bias(now.q, now.nu)

    @quantity
    def multipliers(self, now: Instant) -> Any:
        return self._tractions(now, "roller")
