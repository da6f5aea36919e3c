"""Double pendulum: two rods in a plane.

Any text on analytical mechanics; here with relative angles, as in Spong, Hutchinson and Vidyasagar,
*Robot Modeling and Control*, section on the planar elbow manipulator.
"""

import numpy as np
import pytest

import axode as ax
from tests.textbook.closed_forms import assert_close

M1, M2, L1, C1, C2, J1, J2, G = 1.3, 0.8, 0.7, 0.3, 0.25, 0.04, 0.02, 9.81
FORMULATIONS = ("recursive", "complement", "multipliers", "lagrange")


def pendulum() -> ax.Mechanism:
    """Gravity along -y, angles about z, links along their own x."""
    mechanism = ax.Mechanism("double_pendulum", gravity=(0, -G, 0))
    upper = mechanism.add_body("upper", mass=M1, com=(C1, 0, 0), inertia=(J1, J1, J1))
    lower = mechanism.add_body("lower", mass=M2, com=(C2, 0, 0), inertia=(J2, J2, J2))
    mechanism.add_joint("shoulder", ax.Revolute("z"), parent=mechanism.ground, child=upper)
    mechanism.add_joint("elbow", ax.Revolute("z"), parent=upper, child=lower, at=(L1, 0, 0))
    mechanism.add_motor("shoulder", "shoulder")
    mechanism.add_motor("elbow", "elbow")
    return mechanism


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_closed_form(formulation: str):
    model = pendulum().derive(formulation).compile("interpreter")
    q, nu, u = np.array([0.4, -1.1]), np.array([1.5, -0.7]), np.array([0.3, 0.2])
    k = M2 * L1 * C2
    d22 = M2 * C2**2 + J2
    d12 = d22 + k * np.cos(q[1])
    d11 = M1 * C1**2 + J1 + M2 * L1**2 + d22 + 2 * k * np.cos(q[1])
    D = np.array([[d11, d12], [d12, d22]])
    h = -k * np.sin(q[1])
    C = np.array([[h * nu[1], h * (nu[0] + nu[1])], [-h * nu[0], 0.0]])
    reach = M2 * C2 * G * np.cos(q.sum())
    gravity = np.array([(M1 * C1 + M2 * L1) * G * np.cos(q[0]) + reach, reach])
    assert_close(model.mass_matrix(q), D)
    assert_close(model.coriolis(q, nu) @ nu, C @ nu)
    assert_close(model.potential_force(q), -gravity)
    assert_close(model.forward_dynamics(q, nu, u), np.linalg.solve(D, u - C @ nu - gravity))


def test_coriolis_matrix_by_itself():
    """With relative angles about parallel axes Christoffel's symbols give the same matrix."""
    model = pendulum().derive().compile("interpreter")
    q, nu = np.array([0.4, -1.1]), np.array([1.5, -0.7])
    h = -M2 * L1 * C2 * np.sin(q[1])
    wanted = np.array([[h * nu[1], h * (nu[0] + nu[1])], [-h * nu[0], 0.0]])
    assert_close(model.coriolis(q, nu), wanted)
