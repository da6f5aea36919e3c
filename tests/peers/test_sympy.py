"""Rolling against Kane's method in SymPy.

SymPy derives its own equations from its own description; numbers go in before anything is
simplified, so that each takes a few seconds at most.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import axode as ax
from benchmarks.peers.kane_disk import kane_disk
from tests.peers.trees import relative_error

# Both evaluate exact equations in float64; a wrong term is larger than 1e-3.
TOLERANCE = 1e-9


# a disk that leans --------------------------------------------------------------------------------

MASS, RADIUS, GRAVITY = 2.0, 0.3, 9.81
ACROSS, ALONG = 0.05, 0.09  # moments of inertia [kg m^2]: not a uniform disk, for generality


@dataclass(frozen=True)
class DiskState:
    """Yaw, lean and spin, and the angular velocity along the axes that lean but do not spin."""

    yaw: float
    lean: float
    spin: float
    rates: tuple[float, float, float]

    @property
    def R_lean(self) -> np.ndarray:
        """Axes that yaw about z and lean about x: their y is the disk's axis."""
        cy, sy, cl, sl = np.cos(self.yaw), np.sin(self.yaw), np.cos(self.lean), np.sin(self.lean)
        Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
        return Rz @ np.array([[1, 0, 0], [0, cl, -sl], [0, sl, cl]])


DISK_STATES = [
    DiskState(0.0, 0.0, 0.0, (0.3, 4.0, 0.5)),
    DiskState(0.4, 0.3, 1.1, (0.2, 8.0, 0.5)),
    DiskState(-1.2, -0.7, 2.0, (-0.8, -5.0, 1.5)),
    DiskState(2.5, 1.1, -0.3, (1.0, 2.0, -2.0)),
]


class KaneDisk:
    """Accelerations of the disk by Kane's equations: three speeds, the contact at rest."""

    def __init__(self) -> None:
        self._evaluate = kane_disk(MASS, RADIUS, ACROSS, ALONG, GRAVITY)

    def accelerations(self, state: DiskState) -> tuple[np.ndarray, np.ndarray]:
        """Angular acceleration and the centre's acceleration, in the world."""
        q, u = (state.yaw, state.lean, state.spin), np.array(state.rates)
        M, forcing, _, w_L = self._evaluate(q, u, (0.0, 0.0, 0.0))
        u_dot = np.linalg.solve(M, forcing).ravel()
        _, _, acceleration, _ = self._evaluate(q, u, u_dot)
        angular = state.R_lean @ (u_dot + np.cross(w_L.ravel(), u))
        return angular, acceleration.ravel()


@pytest.fixture(scope="module")
def kane() -> KaneDisk:
    return KaneDisk()


@pytest.fixture(scope="module")
def axode_disk() -> ax.Model:
    mechanism = ax.Mechanism("disk", gravity=(0, 0, -GRAVITY))
    inertia = ax.Inertia.axial(ALONG, ACROSS, "y")
    disk = mechanism.add_body("disk", mass=MASS, inertia=inertia)
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=disk)
    mechanism.add_contact("rim", ax.Rolling(radius=RADIUS), body=disk, axis="y")
    mechanism.set_home({"base.z": RADIUS})
    return mechanism.derive(independent=["base.wx", "base.wy", "base.wz"]).compile("interpreter")


def disk_coordinates(state: DiskState) -> tuple[dict[str, float], np.ndarray]:
    """The same state for Axode, and the disk's orientation."""
    quaternion = np.array([1.0, 0.0, 0.0, 0.0])
    for angle, axis in ((state.yaw, 3), (state.lean, 1), (state.spin, 2)):
        turn = np.zeros(4)
        turn[0], turn[axis] = np.cos(angle / 2), np.sin(angle / 2)
        quaternion = _product(quaternion, turn)
    named = dict(zip(("qw", "qx", "qy", "qz"), quaternion, strict=True))
    named["z"] = RADIUS * np.cos(state.lean)
    c, s = np.cos(state.spin), np.sin(state.spin)
    R = state.R_lean @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return {f"base.{name}": float(value) for name, value in named.items()}, R


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([w, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


@pytest.mark.parametrize("state", DISK_STATES, ids=lambda s: f"lean{s.lean}")
def test_rolling_disk(kane: KaneDisk, axode_disk: ax.Model, state: DiskState):
    """Angular acceleration and contact force of a free body with one rolling contact."""
    angular, acceleration = kane.accelerations(state)
    q, R = disk_coordinates(state)
    nu = R.T @ state.R_lean @ np.array(state.rates)
    assert abs(axode_disk.residual(q)).max() < 1e-15, "the disk does not touch the ground"
    found = R @ axode_disk.forward_dynamics(q, nu)
    assert relative_error(found, angular) < TOLERANCE

    force = MASS * (acceleration + np.array([0, 0, GRAVITY]))
    heading = np.array([np.cos(state.yaw), np.sin(state.yaw), 0.0])
    across = np.array([-np.sin(state.yaw), np.cos(state.yaw), 0.0])
    wanted = np.array([[force @ heading, force @ across, force[2]]])
    assert relative_error(axode_disk.contact_forces(q, nu), wanted) < TOLERANCE


# a cart with its mass centre off the axle ---------------------------------------------------------

CART = {
    "m": 12.0,
    "J": 0.7,
    "cx": 0.15,
    "cy": -0.04,
    "mw": 1.1,
    "spin": 0.006,
    "turn": 0.004,
    "r": 0.1,
    "half": 0.25,
}


class KaneCart:
    """A differential drive: five coordinates, three rolling constraints, two motors."""

    def __init__(self) -> None:
        import sympy as sm
        import sympy.physics.mechanics as me

        p = CART
        x, y, yaw, right, left = q = me.dynamicsymbols("x y yaw right left")
        u = me.dynamicsymbols("u1:6")
        torques = me.dynamicsymbols("T1:3")
        N = me.ReferenceFrame("N")
        B = N.orientnew("B", "Axis", [yaw, N.z])
        origin = me.Point("O")
        origin.set_vel(N, 0)
        axle = origin.locatenew("P", x * N.x + y * N.y)
        axle.set_vel(N, u[0] * B.x + u[1] * B.y)
        B.set_ang_vel(N, u[2] * N.z)
        centre = axle.locatenew("C", p["cx"] * B.x + p["cy"] * B.y)
        centre.v2pt_theory(axle, N, B)
        tensor = (me.inertia(B, 0, 0, p["J"]), centre)
        bodies = [me.RigidBody("cart", centre, B, p["m"], tensor)]
        loads, rows = [], []
        wheels = (("right", right, u[3], -p["half"]), ("left", left, u[4], p["half"]))
        for (name, angle, rate, side), torque in zip(wheels, torques, strict=True):
            W = B.orientnew(name, "Axis", [angle, B.y])
            W.set_ang_vel(B, rate * B.y)
            W.set_ang_vel(N, u[2] * N.z + rate * B.y)
            hub = axle.locatenew(f"hub_{name}", side * B.y)
            hub.v2pt_theory(axle, N, B)
            touching = hub.locatenew(f"touch_{name}", -p["r"] * N.z)
            slip = hub.vel(N) + W.ang_vel_in(N).cross(touching.pos_from(hub))
            rows.append(slip.dot(B.x))
            disk = me.inertia(B, p["turn"], p["spin"], p["turn"])
            bodies.append(me.RigidBody(name, hub, W, p["mw"], (disk, hub)))
            loads += [(W, torque * B.y), (B, -torque * B.y)]
        rows.append(axle.vel(N).dot(B.y))
        rates = [x.diff() - axle.vel(N).dot(N.x), y.diff() - axle.vel(N).dot(N.y)]
        rates += [q[k].diff() - u[k] for k in (2, 3, 4)]
        method = me.KanesMethod(
            N, q_ind=q, u_ind=u[3:], u_dependent=u[:3], kd_eqs=rates, velocity_constraints=rows
        )
        method.kanes_equations(bodies, loads)
        self._evaluate = sm.lambdify(
            [q, u, torques], [method.mass_matrix, method.forcing], cse=True
        )

    def wheel_accelerations(self, yaw: float, rates: np.ndarray, torques: np.ndarray) -> np.ndarray:
        """Of the right and the left wheel."""
        p = CART
        surge = p["r"] * rates.mean()
        turning = p["r"] * (rates[0] - rates[1]) / (2 * p["half"])
        M, forcing = self._evaluate(
            (0.3, -0.2, yaw, 0.1, 0.2), (surge, 0.0, turning, *rates), torques
        )
        return np.linalg.solve(M, forcing).ravel()[:2]  # Kane's equations keep these first


def cart() -> ax.Mechanism:
    p = CART
    mechanism = ax.Mechanism("cart")
    body = mechanism.add_body(
        "body", mass=p["m"], com=(p["cx"], p["cy"], 0.05), inertia=(0.5, 0.6, p["J"])
    )
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=body, at=(0, 0, p["r"]))
    for name, side in (("right", -p["half"]), ("left", p["half"])):
        inertia = ax.Inertia.axial(p["spin"], p["turn"], "y")
        mechanism.add_wheel(
            name,
            ax.Rolling(radius=p["r"]),
            on=body,
            at=(0, side, 0),
            mass=p["mw"],
            inertia=inertia,
            motor=True,
        )
    return mechanism


def test_differential_drive():
    kane, model = KaneCart(), cart().derive().compile("interpreter")
    assert model.independent == ("right.rate", "left.rate")
    rng = np.random.default_rng(3)
    for _ in range(5):
        yaw = rng.uniform(-3, 3)
        rates, torques = rng.uniform(-9, 9, 2), rng.uniform(-2, 2, 2)
        wanted = kane.wheel_accelerations(yaw, rates, torques)
        found = model.forward_dynamics({"base.yaw": yaw}, rates, torques)
        assert relative_error(found, wanted) < TOLERANCE
