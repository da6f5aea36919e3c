"""Chaplygin's sleigh: a body on a knife edge.

Neimark and Fufaev, *Dynamics of Nonholonomic Systems*, 1972; Bloch, *Nonholonomic Mechanics and
Control*, section 1.7: with the mass centre a distance a ahead of the edge,
v_dot = a w^2 and (J + m a^2) w_dot = -m a v w.
"""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axode as ax
from tests.textbook.closed_forms import assert_close

M, J, A = 3.0, 0.2, 0.35


@pytest.fixture(scope="module")
def model() -> ax.Model:
    mechanism = ax.Mechanism("sleigh")
    body = mechanism.add_body("body", mass=M, com=(A, 0, 0), inertia=(0.15, 0.12, J))
    mechanism.add_joint("base", ax.Planar(), parent=mechanism.ground, child=body)
    mechanism.add_contact("edge", ax.Skate(), body=body, axis="y")
    independent = ["base.surge", "base.yaw_rate"]
    return mechanism.derive(independent=independent).compile("interpreter")


@pytest.mark.parametrize(("v", "w"), [(1.2, 0.7), (-0.4, 2.0), (0.0, -1.0)])
def test_accelerations_and_side_force(model: ax.Model, v: float, w: float):
    w_dot = -M * A * v * w / (J + M * A**2)
    found = model.forward_dynamics({"base.yaw": 0.6}, [v, w])
    assert_close(found, [A * w**2, w_dot])
    side = M * (v * w + A * w_dot)
    assert_close(model.multipliers({"base.yaw": 0.6}, [v, w]), [side])


def test_it_ends_up_sliding_straight(model: ax.Model):
    """The turning dies out, and all energy goes into sliding with the mass centre ahead."""
    start = np.array([-0.3, 1.0])  # edge ahead: unstable

    def rates(_: float, nu: np.ndarray) -> np.ndarray:
        return model.forward_dynamics(None, nu)

    end = solve_ivp(rates, (0, 40), start, rtol=1e-10, atol=1e-12).y[:, -1]
    energy = 0.5 * (M * start[0] ** 2 + (J + M * A**2) * start[1] ** 2)
    drift = 1e-7  # of the integrator at the tolerances above, over 40 s
    assert_close(end, [np.sqrt(2 * energy / M), 0.0], drift)
