"""Platforms on Mecanum wheels with rollers at any angle.

After Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.2, for n wheels:
hub i at p_i, axis e_i, roller axis g_i = cos(alpha_i) e_i + sin(alpha_i) k x e_i. With
u = (omega, v) in platform axes, theta_dot = G u and
M_u = [J, (k x S)^T; k x S, m 1] + I G^T G, where S is the wheels' first moment of mass.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close

A = 0.05  # wheel radius [m]
MW, SPIN, TURN = 0.4, 0.0005, 0.0003
MP, H = 6.0, 0.12
DAMPING = 0.01
QUARTER, THIRD = np.pi / 2, 2 * np.pi / 3


@dataclass(frozen=True)
class Wheel:
    """Where a wheel stands, where its axis points, and how its rollers lie."""

    x: float
    y: float
    axis_angle: float
    roller_angle: float

    @property
    def p(self) -> np.ndarray:
        return np.array([self.x, self.y])

    @property
    def e(self) -> np.ndarray:
        return np.array([np.cos(self.axis_angle), np.sin(self.axis_angle)])

    @property
    def g(self) -> np.ndarray:
        return np.cos(self.roller_angle) * self.e + np.sin(self.roller_angle) * turned(self.e)


def turned(v: np.ndarray) -> np.ndarray:
    """k x v."""
    return np.array([-v[1], v[0]])


CAR = tuple(
    Wheel(x, y, QUARTER, sign * np.pi / 4)
    for x, y, sign in ((0.2, 0.15, 1), (0.2, -0.15, -1), (-0.2, 0.15, -1), (-0.2, -0.15, 1))
)
DELTA = tuple(
    Wheel(0.2 * np.cos(k * THIRD), 0.2 * np.sin(k * THIRD), k * THIRD, QUARTER) for k in range(3)
)
ODD = (
    Wheel(0.25, 0.1, 0.3, 1.1),
    Wheel(-0.1, 0.2, 2.0, -0.6),
    Wheel(-0.2, -0.15, -1.2, 0.9),
    Wheel(0.15, -0.2, 1.0, 2.2),
    Wheel(0.0, 0.3, -0.4, 0.7),
)
ARRAYS = {"car": CAR, "delta": DELTA, "odd": ODD}
SPEEDS = ["base.yaw_rate", "base.surge", "base.sway"]


def vehicle(wheels: tuple[Wheel, ...]) -> ax.Equations:
    mechanism = ax.Mechanism("mecanum")
    platform = mechanism.add_body("platform", mass=MP, inertia=(0.07, 0.08, H))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=platform, at=(0, 0, A))
    for k, wheel in enumerate(wheels):
        e = (*wheel.e, 0.0)
        mechanism.add_wheel(
            f"wheel{k}",
            ax.Mecanum(radius=A, roller_angle=wheel.roller_angle),
            on=platform,
            at=(*wheel.p, 0.0),
            axis=e,
            mass=MW,
            inertia=ax.Inertia.axial(SPIN, TURN, e),
            motor=True,
        )
        mechanism.add_damper(f"damper{k}", f"wheel{k}", coefficient=DAMPING)
    return mechanism.derive(independent=SPEEDS)


class ClosedForm:
    """M_u, c_u and G of a set of wheels."""

    def __init__(self, wheels: tuple[Wheel, ...]) -> None:
        n = len(wheels)
        K = np.array([[w.g @ turned(w.p), *w.g] for w in wheels])
        self.sines = np.array([np.sin(w.roller_angle) for w in wheels])
        self.G = -K / (A * self.sines[:, None])
        self.mass = MP + n * MW
        self.S = MW * sum(w.p for w in wheels)
        yaw = H + sum(TURN + MW * w.p @ w.p for w in wheels)
        kS = turned(self.S)
        carried = np.block([[np.array([[yaw]]), kS[None]], [kS[:, None], self.mass * np.eye(2)]])
        self.M = carried + SPIN * self.G.T @ self.G

    def bias(self, u: np.ndarray) -> np.ndarray:
        omega, v = u[0], u[1:]
        turning = omega * turned(v)
        linear = self.mass * turning - omega**2 * self.S
        return np.array([turned(self.S) @ turning, *linear])


@pytest.mark.parametrize("name", ARRAYS)
def test_closed_form(name: str):
    wheels = ARRAYS[name]
    equations = vehicle(wheels)
    model, form = equations.compile("interpreter"), ClosedForm(wheels)
    q, u = {"base.yaw": 0.3}, np.array([0.5, 0.8, -0.3])
    torque = np.linspace(-0.1, 0.2, len(wheels))
    assert_close(model.mass_matrix(q), form.M)
    assert_close(model.bias(q, u), form.bias(u))
    rates = form.G @ u
    assert_close(model.joint_speeds(q, u)[3:], rates)
    applied = torque - DAMPING * rates
    u_dot = np.linalg.solve(form.M, form.G.T @ applied - form.bias(u))
    assert_close(model.forward_dynamics(q, u, torque), u_dot)
    traction = (SPIN * form.G @ u_dot - applied) / (A * form.sines)
    assert_close(model.multipliers(q, u, torque), traction)


def test_four_wheels_drive_three_speeds():
    """Four motors for three freedoms; least effort gives back the motion that was asked for."""
    equations = vehicle(CAR)
    model = equations.compile("interpreter")
    assert equations.mobility.mobility == 3
    assert equations.actuation == "redundantly actuated"
    q, u, u_dot = {"base.yaw": -0.9}, [0.2, -0.4, 0.7], [1.0, 0.5, -0.8]
    torque = model.inverse_dynamics(q, u, u_dot)
    assert_close(model.forward_dynamics(q, u, torque), u_dot)
    idle = np.linalg.svd(ClosedForm(CAR).G.T)[2][-1]  # torques that fight each other
    assert abs(idle @ torque) < 1e-12


def test_the_table():
    """A case computed with coordinates x, y, yaw, wheel angles and multipliers."""
    model = vehicle(CAR).compile("interpreter")
    state = {"base.yaw": 0.3}, [0.5, 0.8, -0.3], [0.1, 0.2, -0.1, 0.05]
    u_dot = [2.412280701754387, -1.0642857142857145, 0.09047619047619038]
    forces = [1.8387434607020114, 1.8751089523058904, -4.1526662227562765, 5.710463222251511]
    assert_close(model.forward_dynamics(*state), u_dot, TABLE_TOLERANCE)
    assert_close(model.multipliers(*state), forces, TABLE_TOLERANCE)
