"""Arms with a common load: numbers of the acceptance cases by the source's three methods."""

import numpy as np
import pytest

import axode as ax
from axode.gallery import build
from axode.literature.acceptance.cases import load_cases
from axode.literature.reproduce.arms_with_load import arms_in_grip
from laws.cases import agree

CASES = {case.id: case for case in load_cases() if case.id.startswith("D")}
TOLERANCE = 1e-9  # relative: a matrix of condition 1e4 is inverted twice


@pytest.fixture(params=["spatial_operators", "pseudo_joints", "reduced_order"])
def method(request):
    return request.param


def solved(mechanism, method, start, torques):
    """Accelerations of all joints and forces of all rows, by name."""
    model = mechanism.derive(method).compile("interpreter")
    state = ax.assemble(model, start)
    nu_dot = model.forward_dynamics(state.q, state.nu, torques)
    found = model.accelerations(state.q, state.nu, nu_dot)
    forces = model.multipliers(state.q, state.nu, torques)
    return dict(zip((*model.speed_names, *model.rows), [*found, *forces], strict=True))


@pytest.mark.parametrize("case", ["D5-1", "D5-2", "D5-5"])
def test_the_cart_as_two_arms(case, method):
    """Joints and turning of the wheels, and what the ground exerts along the axle."""
    case = CASES[case]
    first, second = case.state["wheel_rates"]
    pitch, rate = case.state["load_pitch"], case.state["load_pitch_rate"]
    start = {"q1": pitch, "q2": pitch, "q1_dot": rate - first, "q2_dot": rate - second}
    torques = [case.input["tau1"], case.input["tau2"]]
    cart = build("two_wheeled_cart", arms=True, **case.parameters)
    found = solved(cart, method, start | {"ground1.wy": first}, torques)
    e = case.expected
    for arm in (1, 2):
        agree(found[f"q{arm}_dot"], e[f"arm{arm}_q_ddot"], TOLERANCE, "joint")
        spin, yaw = e["wheel_spin_acc"][arm - 1], e["yaw_acc"]
        agree([found[f"ground{arm}.{x}"] for x in ("wy", "wz")], [spin, yaw], TOLERANCE, "wheel")
    lateral = sum(force for row, force in found.items() if row.endswith(".lateral"))
    agree(lateral, e["total_lateral_ground_force"], TOLERANCE, "ground")


def test_two_arms_with_a_load(method):
    case = CASES["D2-1"]
    X, Y, F = case.state["load_X_Y_F"]
    theta = {
        f"theta{a}{k}": case.expected["theta"][3 * a + k - 4] for a in (1, 2) for k in (1, 2, 3)
    }
    x_dot, y_dot, F_dot = case.state["load_rate"]
    c, s = np.cos(F), np.sin(F)
    speeds = {"along": c * x_dot + s * y_dot, "across": c * y_dot - s * x_dot, "F_dot": F_dot}
    arms = build("cooperating_arms", **case.parameters)
    start = {"X": X, "Y": Y, "F": F} | theta | speeds
    found = solved(arms, method, start, case.input["tau"])
    agree([found[f"{j}_dot"] for j in theta], case.expected["theta_ddot"], TOLERANCE, "joints")
    forces = []
    for arm in (1, 2):  # rows are along the load and across it, and what the arm feels
        moment, along, across = (-found[f"grip{arm}.{row}"] for row in ("rz", "x", "y"))
        forces += [moment, c * along - s * across, s * along + c * across]
    agree(forces, case.expected["tip_forces_on_load"], TOLERANCE, "tip forces")


def test_two_arms_with_a_load_that_weighs_nothing(method):
    """They grip each other where it would be."""
    case = CASES["D2-2"]
    arms = arms_in_grip(**case.parameters)
    start = {
        f"theta{a}{k}": case.expected["theta"][3 * a + k - 4] for a in (1, 2) for k in (1, 2, 3)
    }
    found = solved(arms, method, start, case.input["tau"])
    agree([found[f"{j}_dot"] for j in start], case.expected["theta_ddot"], TOLERANCE, "joints")
