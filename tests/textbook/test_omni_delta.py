"""Three omni wheels in a Delta array.

Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.2 and exercises 12.6 to
12.11: constant inertia, a Coriolis matrix proportional to the yaw rate, and one constraint that
integrates. Wheel i stands at r e_i and turns about e_i; the rollers are massless.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import TABLE_TOLERANCE, assert_close

A, R = 0.05, 0.2  # wheel radius, distance from the centre [m]
MW, SPIN, TURN = 0.4, 0.0005, 0.0003
MP, H = 6.0, 0.12
DAMPING = 0.01
RATIO = A / (3 * R)
SHUFFLE = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])


@pytest.fixture(scope="module")
def equations() -> ax.Equations:
    mechanism = ax.Mechanism("delta")
    platform = mechanism.add_body("platform", mass=MP, inertia=(0.07, 0.08, H))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=platform, at=(0, 0, A))
    for k in range(3):
        angle = 2 * np.pi * k / 3
        e = np.array([np.cos(angle), np.sin(angle), 0.0])
        mechanism.add_wheel(
            f"wheel{k}",
            ax.Omni(radius=A),
            on=platform,
            at=R * e,
            axis=e,
            mass=MW,
            inertia=ax.Inertia.axial(SPIN, TURN, e),
            motor=True,
        )
        mechanism.add_damper(f"damper{k}", f"wheel{k}", coefficient=DAMPING)
    return mechanism.derive()


@pytest.fixture(scope="module")
def model(equations: ax.Equations) -> ax.Model:
    return equations.compile("interpreter")


def alpha_beta() -> tuple[float, float]:
    """Entries of the inertia matrix, on its diagonal and off it."""
    common = H + 3 * TURN
    alpha = SPIN + RATIO**2 * (common + 15 * MW * R**2 + 4 * MP * R**2)
    return alpha, RATIO**2 * (common - 3 * MW * R**2 - 2 * MP * R**2)


STATES = [(0.4, (3.0, -1.0, 5.0)), (-1.0, (2.0, 2.0, 2.0)), (2.0, (1.0, -2.0, 1.0))]


@pytest.mark.parametrize(("yaw", "rates"), STATES)
def test_closed_form(model: ax.Model, yaw: float, rates: tuple[float, ...]):
    q, nu = {"base.yaw": yaw}, np.array(rates)
    alpha, beta = alpha_beta()
    I = (alpha - beta) * np.eye(3) + beta
    omega = -RATIO * nu.sum()
    C = 2 * np.sqrt(3) * RATIO**2 * (3 * MW + MP) * R**2 * omega * SHUFFLE
    assert_close(model.mass_matrix(q), I)
    assert_close(model.coriolis(q, nu), C)
    torque = np.array([0.1, 0.2, -0.05])
    wanted = np.linalg.solve(I, torque - C @ nu - DAMPING * nu)
    found = model.forward_dynamics(q, nu, torque)
    assert_close(found, wanted)
    # Exercise 12.11: the traction that the ground gives each wheel
    traction = (SPIN * wanted - torque + DAMPING * nu) / A
    along = model.multipliers(q, nu, torque)  # Axode's heading is e x k = -f
    assert_close(along, -traction)


def test_one_constraint_integrates(equations: ax.Equations, model: ax.Model):
    """3 r sigma + a (theta_1 + theta_2 + theta_3) = const: five of six coordinates in reach."""
    mobility = equations.mobility
    assert (mobility.mobility, mobility.configuration_dof) == (3, 6)
    assert mobility.integrable == 1
    assert equations.actuation == "fully actuated"
    nu = np.array([3.0, -1.0, 5.0])
    speeds = dict(zip(model.speed_names, model.joint_speeds({"base.yaw": 0.7}, nu), strict=True))
    assert_close(3 * R * speeds["base.yaw_rate"], -A * nu.sum())


def test_the_table(model: ax.Model):
    """A case computed with six coordinates and multipliers."""
    found = model.forward_dynamics({"base.yaw": 0.4}, [3.0, -1.0, 5.0], [0.1, 0.2, -0.05])
    wanted = [17.66991245657668, 26.283383250607155, 0.8367509491147717]
    assert_close(found, wanted, TABLE_TOLERANCE)


def test_principal_motions(model: ax.Model):
    """Exercise 12.10: turning on the spot, and translations, are the principal directions."""
    alpha, beta = alpha_beta()
    values = np.linalg.eigvalsh(model.mass_matrix(None))
    assert_close(values, sorted([alpha - beta, alpha - beta, alpha + 2 * beta]))
