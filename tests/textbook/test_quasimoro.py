"""Quasimoro, a wheeled pendulum whose body hangs below the axle.

Staicu, "Dynamics of the mobile wheeled pendulum", *Rev. Roum. Sci. Techn. - Méc. Appl.* 56, 2011:
A_ij and b_i of equations (24) to (29), with J3 (about the axle) where A33 prints J2. Moments J are
about the middle of the axle.

The source's wheel angles are absolute and its body angle runs about -y; Axode's wheel rates are
relative to the body. The two sets of speeds are tied by a constant matrix S.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close, quaternion

MW, MB, J1, J2, J3, R, D, G = 0.5, 5.0, 0.2, 0.4, 0.4, 0.3, 0.2, 9.81
RHO = 0.5  # radius over track
TRACK = R / RHO
# (left relative to body, right relative to body, body's pitch rate) = S (theta_1, theta_2, theta_3)
S = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, -1.0]])
SPEEDS = ["left.rate", "right.rate", "base.wy"]


@pytest.fixture(scope="module")
def equations() -> ax.Equations:
    mechanism = ax.Mechanism("quasimoro", gravity=(0, 0, -G))
    about_centre = (J2 - MB * D**2, J3 - MB * D**2, J1)
    body = mechanism.add_body("body", mass=MB, com=(0, 0, -D), inertia=about_centre)
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=body)
    for name, side in (("left", TRACK / 2), ("right", -TRACK / 2)):
        mechanism.add_wheel(
            name, ax.Rolling(radius=R), on=body, at=(0, side, 0), mass=MW, motor=True
        )
    mechanism.set_home({"base.z": R})
    return mechanism.derive(independent=SPEEDS)


@pytest.fixture(scope="module")
def model(equations: ax.Equations) -> ax.Model:
    return equations.compile("interpreter")


def posture(psi: float, theta3: float) -> np.ndarray:
    """Coordinates: heading psi, body swung forward by theta3, on the ground."""
    return np.array([*quaternion(("z", psi), ("y", -theta3)), 0.2, -0.4, R, 0.3, -0.5])


def closed_form(theta3: float, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The source's inertia and bias, gravity included."""
    c, s = np.cos(theta3), np.sin(theta3)
    w1, w2, w3 = rates
    yaw = J1 * c**2 + J2 * s**2
    a11 = MW * R**2 * (3 + RHO**2) / 2 + RHO**2 * yaw + MB * R**2 / 4
    a12 = -MW * R**2 * RHO**2 / 2 - RHO**2 * yaw + MB * R**2 / 4
    a13 = MB * R * D * c / 2
    A = np.array([[a11, a12, a13], [a12, a11, a13], [a13, a13, J3]])
    mrd, spread = MB * R * D, 2 * RHO**2 * (J1 - J2) * s * c * (w2 - w1) * w3
    centrifugal = -mrd / 2 * s * w3**2
    b1 = mrd * RHO**2 * s * (w1 * w2 - w2**2) + spread + centrifugal
    b2 = mrd * RHO**2 * s * (w1 * w2 - w1**2) - spread + centrifugal
    b3 = (J1 - J2) * RHO**2 * s * c * (w1 - w2) ** 2 + MB * G * D * s
    return A, np.array([b1, b2, b3])


STATES = [
    (0.3, 0.4, (3.0, 1.0, -0.8)),
    (-2.0, -1.1, (-2.0, 4.0, 1.5)),
    (0.0, 0.0, (1.0, -1.0, 0.5)),
]


@pytest.mark.slow
def test_mobility(equations: ax.Equations):
    """Three freedoms for two motors; the heading integrates."""
    mobility = equations.mobility
    assert (len(mobility.speeds), mobility.rows, mobility.rank) == (8, 6, 5)
    assert (mobility.mobility, mobility.motors) == (3, 2)
    assert mobility.actuation == "underactuated"
    assert mobility.integrable == 1 and not mobility.holonomic
    assert mobility.indeterminate == ("left.lateral", "right.lateral")


@pytest.mark.parametrize(("psi", "theta3", "rates"), STATES)
def test_closed_form(model: ax.Model, psi: float, theta3: float, rates: tuple[float, ...]):
    q, w = posture(psi, theta3), np.array(rates)
    A, b = closed_form(theta3, w)
    nu = S @ w
    assert_close(S.T @ model.mass_matrix(q) @ S, A)
    assert_close(S.T @ (model.bias(q, nu) - model.potential_force(q)), b)
    M1, M2 = torque = np.array([0.1, 0.05])
    wanted = np.linalg.solve(A, np.array([M1, M2, M1 + M2]) - b)
    assert_close(model.forward_dynamics(q, nu, torque), S @ wanted)
    assert_close(_yaw_rate(model, q, nu), RHO * (w[1] - w[0]))


def _yaw_rate(model: ax.Model, q: np.ndarray, nu: np.ndarray) -> float:
    return model.twists(q, nu)[model.bodies.index("body"), 2]


def test_the_table(model: ax.Model):
    """A case computed with six coordinates and multipliers."""
    found = model.forward_dynamics(posture(0.3, 0.4), S @ [3.0, 1.0, -0.8], [0.1, 0.05])
    wanted = [6.996343231039748, 7.351520241542081, -13.951867344347491]
    assert_close(np.linalg.solve(S, found), wanted, TABLE_TOLERANCE)


def test_printed_a33_is_wrong_when_moments_differ():
    """With J3 unlike J2 the body's own entry is J3, the moment about the axle."""
    mechanism = ax.Mechanism("thin", gravity=(0, 0, -G))
    inertia = (J2 - MB * D**2, J3 / 2, J1)
    body = mechanism.add_body("body", mass=MB, com=(0, 0, -D), inertia=inertia)
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=body)
    for name, side in (("left", TRACK / 2), ("right", -TRACK / 2)):
        mechanism.add_wheel(name, ax.Rolling(radius=R), on=body, at=(0, side, 0), mass=MW)
    mechanism.set_home({"base.z": R})
    model = mechanism.derive(independent=SPEEDS).compile("interpreter")
    A = S.T @ model.mass_matrix(posture(0.0, 0.6)) @ S
    assert_close(A[2, 2], J3 / 2 + MB * D**2)


def test_turning_on_the_spot(model: ax.Model):
    """Equation (39): opposite torques turn the robot and leave the body hanging."""
    effective = MW * R**2 * (1.5 + RHO**2) + 2 * RHO**2 * J1
    found = model.forward_dynamics(posture(0.5, 0.0), S @ [0.7, -0.7, 0.0], [0.1, -0.1])
    assert_close(np.linalg.solve(S, found), [0.1 / effective, -0.1 / effective, 0.0])
