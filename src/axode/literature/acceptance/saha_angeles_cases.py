"""Systems of Saha and Angeles, *J. Applied Mechanics* 58, 1991."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import brentq, newton

from axode.errors import InvalidArgument
from axode.gallery import build
from axode.literature.acceptance.adapters import Adapter, Array, Instant, adapter, column, quantity
from axode.literature.acceptance.angeles_cases import CasterRobot, first_of
from axode.mechanism.elements.joints import Floating
from axode.mechanism.elements.wheels import Rolling
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.state import State
from axode.motions.paths import Path, along
from axode.problems.arguments import StateArgument
from axode.problems.assemble.assemble import assemble
from axode.problems.inverse.motions import DesiredMotion, MotionSamples, TimeSignal, rows_by_name
from axode.symbolic.analysis.twist_constraints import TwistConstraints
from axode.symbolic.constraints.redundant_rows import rank_of

UP = np.array([0.0, 0.0, 1.0])
LEAD = 0.1  # [s] that a path is followed beyond the last time asked about
QUATERNION = ("base.qw", "base.qx", "base.qy", "base.qz")


def axis_quaternion(n: Any) -> list[float]:
    """A turn that brings y to n: w, x, y, z."""
    n = np.array(n, float) / np.linalg.norm(n)
    w = 1.0 + n[1]
    turn = np.array([w, *np.cross([0.0, 1.0, 0.0], n)]) if w > 1e-9 else np.array([0.0, 1, 0, 0])
    return [float(x) for x in turn / np.linalg.norm(turn)]


def disk_state(model: Model, n: Any, omega: Any, contact: Any = (0.0, 0.0, 0.0)) -> State:
    """The disk with its axis along n, turning by omega in the world, touching at a point."""
    turn = dict(zip(QUATERNION, axis_quaternion(n), strict=True))
    place = {"rim.contact.x": float(contact[0]), "rim.contact.y": float(contact[1])}
    closed = assemble(model, {**turn, **place}, fix=QUATERNION)
    R = model.poses(closed.q)[0, :3, :3]
    nu = dict(zip(("base.wx", "base.wy", "base.wz"), R.T @ np.array(omega, float), strict=True))
    return assemble(
        model, {**dict(zip(model.coordinates, closed.q, strict=True)), **nu}, fix=QUATERNION
    )


def cart(r: float, l: float) -> Mechanism:
    """Two wheels on a load that is free in space: three bodies, as the count of rows wants them."""
    mechanism = Mechanism("cart")
    load = mechanism.add_body("load", mass=1.0, inertia=(0.1, 0.1, 0.1))
    mechanism.add_joint("base", Floating(), parent=mechanism.ground, child=load)
    for k, side in ((1, l / 2), (2, -l / 2)):
        mechanism.add_wheel(f"wheel{k}", Rolling(radius=r), on=load, at=(0, side, 0), mass=1.0)
    mechanism.set_home({"base.z": r})
    return mechanism


@adapter("B1_NOC_nonholonomic")
class TwistMatrix(Adapter):
    """B1: rows and rank of A on the twists of all bodies, for whichever vehicle is described."""

    @property
    def kind(self) -> str:
        """Which vehicle the parameters are of."""
        given = {*self.case.parameters, *self.case.state}
        if given & {"psi", "psi0", "d", "mb"}:
            return "caster"
        return "disk" if given & {"n", "R"} else "cart"

    @property
    def _psi(self) -> list[float]:
        """Angles of one caster or of two."""
        given = first_of(self.case.state, "psi", "psi0", default=math.pi / 2)
        return given if isinstance(given, list) else [given]

    def mechanism(self) -> Mechanism:
        given = dict(self.case.parameters)
        if self.kind == "caster":
            if len(self._psi) == 2:
                return build("two_caster_robot", **given)
            given.pop("X2", None)
            return build("caster_robot", **given)
        if self.kind == "disk":
            known = {key: given[key] for key in ("m", "R", "A", "C", "g") if key in given}
            if "R" in self.case.state:
                known["R"] = self.case.state["R"]
            return build("rolling_disk", **known)
        return cart(given["r"], given["l"])

    def start(self) -> Mapping[str, float] | State:
        if self.kind == "caster":
            marks = ("1", "2") if len(self._psi) == 2 else ("",)
            return {f"psi{mark}": psi for mark, psi in zip(marks, self._psi, strict=True)}
        if self.kind == "disk":
            n = first_of({**self.case.parameters, **self.case.state}, "n", default=[0.0, 1.0, 0.0])
            return disk_state(self.model, n, [0.0, 0.0, 0.0])
        return {}

    @cached_property
    def _matrices(self) -> tuple[Array, Array]:
        return TwistConstraints(self.equations).at(self.initial.q)

    rows = quantity(lambda self, now: self._matrices[0].shape[0])
    cols = quantity(lambda self, now: self._matrices[0].shape[1])
    rank = quantity(lambda self, now: rank_of(self._matrices[0]))
    nullity = quantity(lambda self, now: self._matrices[0].shape[1] - rank_of(self._matrices[0]))

    @quantity
    def max_abs_AT(self, now: Instant) -> float:
        A, T = self._matrices
        return float(np.abs(A @ T).max())

    mobility = quantity(lambda self, now: len(self.model.independent))

    @quantity
    def T_caster_block(self, now: Instant) -> Any:
        """Twist of the caster's wheel for unit rates of the driven wheels, in platform axes."""
        R = now.model.poses(now.q)[now.model.bodies.index("platform"), :3, :3]
        wheels = [now.model.independent.index(f"theta{k}_dot") for k in (1, 2)]
        units = np.eye(len(now.model.independent))[wheels]
        twists = now.model.twists(now.q, units)[:, now.model.bodies.index("caster")]
        return np.concatenate([twists[:, :3] @ R, twists[:, 3:] @ R], axis=-1).T


@adapter("B2_rolling_disk")
class RollingDisk(Adapter):
    """B2: vectors in the world; the model's speeds are the angular velocity in the disk's axes."""

    independent = ("base.wx", "base.wy", "base.wz")

    def mechanism(self) -> Mechanism:
        return build("rolling_disk", **self.case.parameters)

    def start(self) -> State:
        state = self.case.state
        if "yaw_rate" in state and "omega" not in state:
            return self._steady()
        contact = first_of(state, "q", "q0", "contact_point", default=[0.0, 0.0, 0.0])
        omega = first_of(state, "omega", "omega0")
        return disk_state(self.model, first_of(state, "n", "n0"), omega, contact)

    def _steady(self) -> State:
        """Rolling on a circle: the spin at which omega only turns about the vertical."""
        lean, turn = float(self.case.state["theta"]), float(self.case.state["yaw_rate"])
        n = np.array([0.0, math.cos(lean), math.sin(lean)])

        def state(spin: float) -> State:
            return disk_state(self.model, n, spin * n + turn * (UP - (UP @ n) * n))

        def excess(spin: float) -> float:
            s = state(spin)
            R = self.model.poses(s.q)[0, :3, :3]
            change = R @ (self.model.forward_dynamics(s.q, s.nu))
            return float((change - turn * np.cross(UP, R @ s.nu))[0])

        # the balance is linear in the spin
        return state(float(newton(excess, 0.0, x1=1.0, tol=1e-13)))

    def _R(self, now: Instant) -> Array:
        R: Array = now.model.poses(now.q)[0, :3, :3]
        return R

    def _rates(self, now: Instant, name: str) -> Array:
        """Rates of a measure's three components."""
        endings = ("vx", "vy", "vz") if name == "c" else ("x", "y", "z")
        rows = [now.model.measure_names.index(f"{name}.{ending}") for ending in endings]
        slope = now.model.measures_jacobian(now.q, now.nu)[rows]
        change = np.concatenate([now.model.rates(now.q, now.nu), now.nu_dot])
        rates: Array = slope @ change
        return rates

    def _s(self, now: Instant) -> Array:
        """Vector from the centre to the contact."""
        centre = now.model.poses(now.q)[0, :3, 3]
        return np.array(self.contact_point(now)) - centre

    n = quantity(lambda self, now: self._R(now)[:, 1])
    omega = quantity(lambda self, now: self._R(now) @ now.nu)
    omega_dot = quantity(lambda self, now: self._R(now) @ now.nu_dot)
    contact_point = column("rim.contact.x", "rim.contact.y", "rim.contact.z")
    q = quantity(lambda self, now: self.contact_point(now))
    c_dot = quantity(lambda _, now: np.array(now.several("c.vx", "c.vy", "c.vz")))
    q_dot = quantity(lambda self, now: self._rates(now, "rim.contact"))
    c_ddot = quantity(lambda self, now: self._rates(now, "c"))

    @quantity
    def contact_force(self, now: Instant) -> Any:
        along, across, up = now.model.contact_forces(now.q, now.nu)[0]
        heading = np.cross(self.n(now), UP)
        heading = heading / np.linalg.norm(heading)
        return along * heading + across * np.cross(UP, heading) + up * UP

    @quantity
    def I_Q(self, now: Instant) -> Any:
        R = self._R(now)
        return R @ now.inertia @ R.T

    @quantity
    def missing_term_m_s_dot_omega_qdot(self, now: Instant) -> Any:
        m = now.model.parameters["m"]
        return m * (self._s(now) @ self.omega(now)) * self.q_dot(now)

    @quantity
    def omega_dot_as_printed(self, now: Instant) -> Any:
        """Rate of omega without the contact's own motion, as printed."""
        missing = np.linalg.solve(self.I_Q(now), self.missing_term_m_s_dot_omega_qdot(now))
        return self.omega_dot(now) - missing

    @quantity
    def spin_rate(self, now: Instant) -> float:
        """Rate about the disk's own axis."""
        return float(self.omega(now) @ self.n(now))

    @quantity
    def centre_circle_radius(self, now: Instant) -> float:
        """Radius in a steady motion, whose velocity turns with the yaw rate."""
        return float(np.linalg.norm(self.c_dot(now)) / abs(self.case.state["yaw_rate"]))


def _part(path: Path, k: int, shift: float) -> TimeSignal:
    """x, y or phi of a path with two derivatives, phi shifted."""

    def values(times: Array) -> Array:
        found: Array = path.pose(times)[k].copy()
        found[0] += shift
        return found

    return TimeSignal(("x", "y", "phi")[k], values)


@adapter("B3_AGV_paths")
class PathRobot(CasterRobot):
    """B3: the caster robot on a circle of its mass centre, or on a path of its axle's midpoint."""

    @property
    def on_circle(self) -> bool:
        """Return whether the case is a steady turn."""
        return "path_of_axle_midpoint" not in self.case.input

    @property
    def way(self) -> float:
        """1 for driving along +y, -1 for driving along -y."""
        axis = str(self.case.state.get("forward_axis", "+j"))
        if axis not in ("+j", "j", "-j"):
            raise InvalidArgument(f"forward_axis: expected +j or -j, got '{axis}'")
        return -1.0 if axis == "-j" else 1.0

    def start(self) -> State:
        if not self.on_circle:
            return assemble(self.model, {})
        state = self.case.state
        radius, omega = float(state["path_radius_of_mass_centre"]), float(state["omega"])
        a = self.model.parameters["a"]
        if not radius > abs(a):
            raise InvalidArgument(f"the mass centre cannot follow a circle of {radius:g} m")
        forward = self.way * abs(omega) * math.sqrt(radius**2 - a**2)
        speeds = {"omega": omega, "v_j": forward}
        return assemble(self.model, {"psi": self._steady_psi(speeds), **speeds}, fix=("psi",))

    def _steady_psi(self, speeds: Mapping[str, float]) -> float:
        """The trailing caster's angle at which it does not swivel."""
        trailing = self.way * math.pi / 2

        def swivel(psi: float) -> float:
            return assemble(self.model, {"psi": psi, **speeds}, fix=("psi",))["psi_dot"]

        return float(brentq(swivel, trailing - math.pi / 2, trailing + math.pi / 2, xtol=1e-14))

    # along a path ---------------------------------------------------------------------------------

    @cached_property
    def _motion(self) -> MotionSamples:
        given = self.case.input["path_of_axle_midpoint"]
        times = np.array(self.case.input["times"], float)
        end = float(times.max()) + LEAD
        path = along(given["X"], given["Y"], end)
        turned = -self.way * math.pi / 2  # from the heading of +y or -y to phi, that of x
        signals = [_part(path, k, turned if k == 2 else 0.0) for k in range(3)]
        rows = rows_by_name(self.model, [signal.name for signal in signals])
        motion = DesiredMotion(self.model, rows, signals, Conditions())
        psi = first_of(self.case.state, "psi0", "psi", default=self.way * math.pi / 2)
        start = {"psi": np.asarray(psi[0] if isinstance(psi, list) else psi, dtype=float)}
        grid, back = np.unique(np.concatenate([[0.0, end], times]), return_inverse=True)
        found = motion.solve(grid, StateArgument(named=start))
        chosen = np.ravel(back)[2:]
        return MotionSamples(times, found.q[chosen], found.nu[chosen], found.nu_dot[chosen])

    def _along(self) -> list[Instant]:
        m = self._motion
        u = self.model.inverse_dynamics(m.q, m.nu, m.nu_dot)
        return [Instant(self.model, *sample) for sample in zip(m.times, m.q, m.nu, u, strict=True)]

    def of(self, name: str, now: Instant) -> Any:
        """On a path, a list over the times asked for."""
        if self.on_circle:
            return super().of(name, now)
        return [super(PathRobot, self).of(name, moment) for moment in self._along()]

    psi = column("psi")
    theta3_dot = column("theta3_dot")

    @quantity
    def tau(self, now: Instant) -> Any:
        """Torques of the motion: steady on a circle, as given on a path."""
        if not self.on_circle:
            return now.u
        return now.model.inverse_dynamics(now.q, now.nu, np.zeros(2))

    @quantity
    def theta_ddot(self, now: Instant) -> Any:
        return now.model.forward_dynamics(now.q, now.nu, self.tau(now))
