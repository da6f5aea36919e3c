"""Systems of Angeles, *Fundamentals of Robotic Mechanical Systems*, chapter 12."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from axode.errors import InvalidArgument
from axode.gallery import build
from axode.gallery.six_legged_platform import BETA, roman
from axode.kinematics.velocities.velocity_jacobians import characteristic_length
from axode.literature.acceptance.adapters import Adapter, Array, Instant, adapter, column, quantity
from axode.mechanism.mechanism import Mechanism
from axode.model.state import State
from axode.problems.assemble.assemble import assemble


def numbered(given: Mapping[str, Any], name: str, count: int) -> dict[str, Any]:
    """Entries name1, name2, ... of a list `name`, or those given separately."""
    if name in given:
        items = given[name] if isinstance(given[name], list) else [given[name]]
        if len(items) != count:
            raise InvalidArgument(f"{name}: expected {count} entries, got {len(items)}")
        return {f"{name}{k}": item for k, item in enumerate(items, start=1)}
    return {key: given[key] for k in range(1, count + 1) if (key := f"{name}{k}") in given}


def first_of(given: Mapping[str, Any], *names: str, default: Any = None) -> Any:
    """Return the entry of the first name present."""
    return next((given[name] for name in names if name in given), default)


def damping_of(now: Instant) -> Array:
    """D, with delta = -D nu: the dissipative force of unit speeds."""
    n = len(now.model.independent)
    columns: Array = -now.model.dissipative_force(now.q, np.eye(n)).T
    return columns


@adapter("A1_holonomic_NOC_fourbar")
class FourBar(Adapter):
    """A1: one freedom, three joint rates."""

    independent = ("theta1_dot",)

    @property
    def crank(self) -> float:
        """The crank's angle."""
        return float(first_of(self.case.state, "theta1", "theta10", default=0.7))

    def mechanism(self) -> Mechanism:
        return build("four_bar", **self.case.parameters, theta1=self.crank)

    def start(self) -> State:
        rate = first_of(self.case.state, "theta1_dot", "theta1_dot0", default=0.0)
        near = {"theta1": self.crank, "theta1_dot": rate}
        return assemble(self.model, near, fix=("theta1",))

    Theta = quantity(lambda _, now: now.model.speed_map(now.q)[:, 0])
    I = quantity(lambda _, now: float(now.inertia[0, 0]))
    C_thetadot = quantity(lambda _, now: float(now.bias[0]))
    gamma = quantity(lambda _, now: float(now.gravity[0]))

    @quantity
    def tau(self, now: Instant) -> float:
        if "theta1_ddot" not in self.case.input:
            return now["tau"]
        wanted = [self.case.input["theta1_ddot"]]
        return float(now.model.inverse_dynamics(now.q, now.nu, wanted)[0])

    theta1_ddot = quantity(lambda _, now: float(now.nu_dot[0]))


@adapter("A2_platform_6R_legs")
class LeggedPlatform(Adapter):
    """A2: the independent speeds are the elbows', legs I, II, ..."""

    @property
    def legs(self) -> list[str]:
        """Names of the legs."""
        return [roman(k + 1) for k in range(len(self.case.parameters.get("beta", BETA)))]

    @property
    def elbows(self) -> list[str]:
        """Names of the elbows' speeds."""
        return [f"theta_{leg}4_dot" for leg in self.legs]

    def mechanism(self) -> Mechanism:
        state = {key: self.case.state[key] for key in ("c_M", "rpy_zyx") if key in self.case.state}
        return build("six_legged_platform", **self.case.parameters, **state)

    def start(self) -> State:
        given = self.case.input.get("q_dot", self.case.state.get("q_dot"))
        rates = np.zeros(len(self.legs)) if given is None else np.array(given, float)
        Theta = self.model.speed_map(self.model.home)
        rows = [self.model.speed_names.index(name) for name in self.elbows]
        nu = np.linalg.solve(Theta[rows], rates)
        return State(self.model.home, nu, 0.0, self.model)

    def signals(self) -> Mapping[str, Any]:
        wrench = self.case.input.get("w_W", [0.0] * 6)
        names = [f"w_W.{axis}" for axis in ("mx", "my", "mz", "fx", "fy", "fz")]
        given = dict(zip(names, wrench, strict=True))
        forces = self.case.input.get("phi", [])
        return given | {f"f_{leg}": f for leg, f in zip(self.legs, forces, strict=False)}

    def _elbows(self, now: Instant) -> Array:
        """Independent speeds for unit rates of the elbows: a permutation, in general."""
        rows = [now.model.speed_names.index(name) for name in self.elbows]
        return np.asarray(np.linalg.inv(now.model.speed_map(now.q)[rows]), dtype=float)

    def _twists(self, now: Instant) -> Array:
        """Twists of all bodies for unit rates of the elbows: (legs, bodies, 6)."""
        return now.model.twists(now.q, self._elbows(now).T)

    def _forces(self, now: Instant, q_ddot: Any) -> Array:
        E = self._elbows(now)
        # differentiating rates = E^-1 nu: the elbows' accelerations are speeds' own
        still = now.model.accelerations(now.q, now.nu, np.zeros(len(now.nu)))
        own = np.array([still[now.model.speed_names.index(name)] for name in self.elbows])
        nu_dot = E @ (np.array(q_ddot, float) - own)
        u = now.model.inverse_dynamics(now.q, now.nu, nu_dot, u=now.u)
        return np.array([u[now.model.inputs.index(f"f_{leg}")] for leg in self.legs])

    @quantity
    def t_M(self, now: Instant) -> Any:
        return now.model.twists(now.q, now.nu)[now.model.bodies.index("platform")]

    T = quantity(lambda self, now: self._twists(now)[:, now.model.bodies.index("platform")].T)

    @quantity
    def M_q(self, now: Instant) -> Any:
        E = self._elbows(now)
        return E.T @ now.inertia @ E

    @quantity
    def phi(self, now: Instant) -> Any:
        return self._forces(now, self.case.input.get("q_ddot", np.zeros(len(self.legs))))

    @quantity
    def bias_Nqd_minus_gravity_minus_TtwW(self, now: Instant) -> Any:
        return self._forces(now, np.zeros(len(self.legs)))

    q_ddot = quantity(lambda self, now: [now.accelerations[name] for name in self.elbows])
    q_dot = quantity(lambda self, now: now.several(*self.elbows))

    def _geometry(self, now: Instant, leg: str) -> tuple[Array, Array]:
        """Axes 1 to 6 of a leg and the points they pass through, in the world."""
        poses = dict(zip(now.model.bodies, now.model.poses(now.q), strict=True))
        links = [poses[f"{leg}{k}"] for k in range(1, 6)]
        # each axis as the body after the joint shows it; the last as the body before
        axes = [link[:3, "xyz".index(axis)] for link, axis in zip(links, "zyxyy", strict=True)]
        axes.append(links[4][:3, 0])
        points = [link[:3, 3] for link in links] + [links[4][:3, 3]]
        return np.array(axes), np.array(points)

    def _K22(self, now: Instant, leg: str) -> Array:
        e, o = self._geometry(now, leg)
        # from an axis to the platform's mass centre; the spherical centre is the first point
        centre = np.array([now[f"c_M.{axis}"] for axis in "xyz"])
        r = centre - o
        s4, s5 = r[3] - r[0], r[4] - r[0]
        columns = [np.cross(e[3], s4), np.cross(e[4], s5), np.cross(e[5], s5)]
        return np.array(columns).T

    @quantity
    def zeta(self, now: Instant) -> Any:
        found = []
        for leg in self.legs:
            K = self._K22(now, leg)
            found.append(float(np.cross(K[:, 1], K[:, 2]) @ K[:, 0]))
        return found

    @quantity
    def det_K22_equals_zeta(self, now: Instant) -> bool:
        dets = [np.linalg.det(self._K22(now, leg)) for leg in self.legs]
        return bool(np.allclose(dets, self.zeta(now), rtol=self.case.rel, atol=self.case.abs))

    def of(self, name: str, now: Instant) -> Any:
        """Also `L_leg1`, `L_leg2`, ...: all joint rates of a leg for unit rates of the elbows."""
        match = re.fullmatch(r"L_leg(\d+)", name)
        if not match or not 1 <= int(match[1]) <= len(self.legs):
            return super().of(name, now)
        leg = roman(int(match[1]))
        axes, _ = self._geometry(now, leg)
        twists = self._twists(now)
        chain = [f"{leg}{k}" for k in range(1, 6)] + ["platform"]
        before = np.zeros((len(self.legs), 3))
        rows = []
        for axis, body in zip(axes, chain, strict=True):
            omega = twists[:, now.model.bodies.index(body), :3]
            rows.append((omega - before) @ axis)
            before = omega
        return np.array(rows)


class RollingRobot(Adapter):
    """What robots on wheels share: inertia and bias on the speeds of the driven wheels."""

    I = quantity(lambda _, now: now.inertia)
    C = quantity(lambda _, now: now.model.coriolis(now.q, now.nu))
    C_thetadot = quantity(lambda _, now: now.bias)


@adapter("A3_caster_robot", "A4_two_caster_robot")
class CasterRobot(RollingRobot):
    """A3 and A4: the independent speeds are those of the driven wheels."""

    independent = ("theta1_dot", "theta2_dot")

    @property
    def marks(self) -> list[str]:
        """What ends the casters' names."""
        return ["1", "2"] if self.case.system.startswith("A4") else [""]

    def mechanism(self) -> Mechanism:
        given = dict(self.case.parameters)
        if self.marks == [""]:
            given.pop("X2", None)  # there is one caster only
            return build("caster_robot", **given)
        return build("two_caster_robot", **given)

    def start(self) -> State:
        state = self.case.state
        angles = first_of(state, "psi", "psi0", default=[math.pi / 2] * len(self.marks))
        angles = angles if isinstance(angles, list) else [angles]
        rates = first_of(state, "theta_dot", "theta_dot0", default=[0.0, 0.0])
        near = {f"psi{mark}": psi for mark, psi in zip(self.marks, angles, strict=True)}
        near["phi"] = first_of(state, "phi", "phi0", default=0.0)
        place = {
            "C.x": first_of(state, "x_C", "x_C0", default=0.0),
            "C.y": first_of(state, "y_C", "y_C0", default=0.0),
        }
        speeds = {f"theta{k}_dot": rate for k, rate in zip((1, 2), rates, strict=True)}
        return assemble(self.model, {**near, **place, **speeds}, fix=tuple(near))

    def signals(self) -> Mapping[str, Any]:
        return numbered(self.case.input, "tau", 2)

    def _at(self, now: Instant, psi: float) -> Array:
        """The configuration with all casters at one angle."""
        q = now.q.copy()
        for mark in self.marks:
            q[now.model.coordinates.index(f"psi{mark}")] = psi
        return q

    def _spins(self) -> list[tuple[str, str]]:
        return [(f"theta3{'_' * bool(m)}{m}_dot", f"psi{m}_dot") for m in self.marks]

    @quantity
    def Theta(self, now: Instant) -> Any:
        rows = now.model.speed_map(now.q)
        names = now.model.speed_names
        return [[rows[names.index(name)] for name in pair] for pair in self._spins()]

    @quantity
    def I_dot(self, now: Instant) -> Any:
        return now.model.jacobian("mass_matrix", "q", now.q) @ now.model.rates(now.q, now.nu)

    D = quantity(lambda _, now: damping_of(now))
    theta_dot = column("theta1_dot", "theta2_dot")
    theta_ddot = quantity(lambda _, now: now.nu_dot)

    @quantity
    def tau(self, now: Instant) -> Any:
        if "theta_ddot" not in self.case.input:
            return now.several("tau1", "tau2")
        return now.model.inverse_dynamics(now.q, now.nu, self.case.input["theta_ddot"])

    theta3_dot_psi_dot = quantity(lambda self, now: [now.several(*pair) for pair in self._spins()])
    psi = quantity(lambda self, now: now.several(*(f"psi{mark}" for mark in self.marks)))
    x_C = column("C.x")
    y_C = column("C.y")

    # exercises 12.3 to 12.5 -----------------------------------------------------------------------

    def of(self, name: str, now: Instant) -> Any:
        """Also inertias of two manoeuvres at an angle: `rotation_inertia_psi_0p3`, `..._pi_2`."""
        match = re.fullmatch(r"(translation|rotation)_inertia_psi_(m?)(pi_)?(\d+(?:p\d+)?)", name)
        if not match:
            return super().of(name, now)
        number = float(match[4].replace("p", "."))
        psi = (math.pi / number if match[3] else number) * (-1.0 if match[2] else 1.0)
        rates = np.array([1.0, 1.0 if match[1] == "translation" else -1.0])
        return float(rates @ now.model.mass_matrix(self._at(now, psi)) @ rates)

    @quantity
    def steady_caster_psi(self, now: Instant) -> float:
        """Where a caster rests on its bracket while the axle's midpoint stands still."""
        index = now.model.speed_names.index(f"psi{self.marks[0]}_dot")

        def rate(psi: float) -> float:
            return float(now.model.joint_speeds(self._at(now, psi), np.array([1.0, -1.0]))[index])

        low, high = -math.pi / 2, math.pi / 2
        if rate(low) * rate(high) > 0:
            raise InvalidArgument("no caster angle is steady: the trail exceeds its distance")
        return float(brentq(rate, low, high, xtol=1e-15, rtol=1e-15))

    @quantity
    def rotation_inertia_steady_caster(self, now: Instant) -> float:
        rates = np.array([1.0, -1.0])
        q = self._at(now, self.steady_caster_psi(now))
        return float(rates @ now.model.mass_matrix(q) @ rates)

    def _unit_motions(self, now: Instant, at_C: bool) -> tuple[Array, Array]:
        """Yaw rates (2,) and velocities (2, 3) of the platform for unit wheel rates."""
        if at_C:
            twists = now.model.twists(now.q, np.eye(2))[:, now.model.bodies.index("platform")]
            return twists[:, 2], twists[:, 3:]
        rows = {n: now.model.speed_map(now.q)[k] for k, n in enumerate(now.model.speed_names)}
        return rows["omega"], np.stack([rows["v_i"], rows["v_j"], 0 * rows["v_i"]], axis=-1)

    def _characteristic_length(self, now: Instant, at_C: bool) -> float:
        """The L for which (L omega, v) depends on the wheel rates as evenly as possible."""
        omega, v = self._unit_motions(now, at_C)
        turning = (True, False, False, False)
        return float(characteristic_length(np.column_stack([omega, v]).T, turning))

    @quantity
    def characteristic_length_axle_midpoint(self, now: Instant) -> float:
        return self._characteristic_length(now, at_C=False)

    @quantity
    def characteristic_length_at_C(self, now: Instant) -> float:
        return self._characteristic_length(now, at_C=True)

    @quantity
    def Ip_for_isotropic_platform_term(self, now: Instant) -> float:
        """Where the platform's part of I has no entry off its diagonal."""
        return float(now.model.parameters["mp"]) * self._characteristic_length(now, at_C=True) ** 2


# wheels with rollers ------------------------------------------------------------------------------


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

    theta_dot = quantity(lambda self, now: now.several(*self._wheels("_dot")))

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return [now.accelerations[name] for name in self._wheels("_dot")]

    theta = quantity(lambda self, now: now.several(*self._wheels("")))
    c = column("x", "y")
    twist_body = quantity(lambda _, now: {name: now[name] for name in ("omega", "vx", "vy")})
    u_body = quantity(lambda self, now: self.twist_body(now))

    def _tractions(self, now: Instant, row: str) -> Any:
        return np.array([now.forces[f"wheel{k}.{row}"] for k in range(1, self.count + 1)])


@adapter("A5_mekanum_delta")
class DeltaArray(RollerWheels):
    """A5: the independent speeds are those of the wheels."""

    independent = ("theta1_dot", "theta2_dot", "theta3_dot")

    def mechanism(self) -> Mechanism:
        return build("delta_array", **self.case.parameters)

    alpha = quantity(lambda _, now: float(now.inertia[0, 0]))
    beta = quantity(lambda _, now: float(now.inertia[0, 1]))

    # the source's f is k x e, ours is e x k
    multipliers = quantity(lambda self, now: -self._tractions(now, "longitudinal"))
    eigenvalues = quantity(lambda _, now: np.linalg.eigvalsh(now.inertia))
    alpha_minus_beta = quantity(lambda self, now: self.alpha(now) - self.beta(now))
    alpha_plus_2beta = quantity(lambda self, now: self.alpha(now) + 2 * self.beta(now))

    @quantity
    def k_ex12_7(self, now: Instant) -> float:
        """Decay of the yaw rate: friction over inertia of equal wheel rates."""
        return float(damping_of(now).sum() / now.inertia.sum())

    @quantity
    def f_ex12_7(self, now: Instant) -> float:
        """Part of the yaw acceleration due to the torques."""
        row = now.model.speed_map(now.q)[now.model.speed_names.index("omega")]
        force = now.model.input_force(now.q, now.u)
        return float(row @ np.linalg.solve(now.inertia, force))

    @quantity
    def H_for_isotropy(self, now: Instant) -> float:
        """The platform's yaw inertia, which enters linearly, at which beta vanishes."""
        H = now.model.parameters["H"]
        at, at_double = (
            float(now.model.mass_matrix(now.q, parameters={"H": value})[0, 1])
            for value in (H, 2 * H)
        )
        return H - at * H / (at_double - at)

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

    u_dot_body = quantity(lambda _, now: now.nu_dot)
    M_u = quantity(lambda _, now: now.inertia)
    c_u = quantity(lambda _, now: now.bias)
    multipliers = quantity(lambda self, now: self._tractions(now, "roller"))
