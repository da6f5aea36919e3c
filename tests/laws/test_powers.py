"""Powers of motors: what they supply, less what is lost, is the rate of the energy."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode import gallery
from laws.cases import SOLVED, agree, case_of

DRIVEN = ("balancer", "car", "four_bar", "parametric_arm", "parametric_loop", "geared_five_bar")


@pytest.mark.parametrize("name", DRIVEN)
def test_powers_less_losses_are_the_rate_of_the_energy(name):
    case = case_of(name)
    e, motors = case.equations, case.system.forces.motors
    assert motors
    assert not case.system.rheonomic
    nu_dot = ca.substitute(e.forward_dynamics, e.u[motors:], 0)  # no wrenches
    rate = case.along(ca.sum1(e.energy), nu_dot)
    supplied = ca.sum1(e.motor_powers) + ca.dot(e.delta, e.nu)
    for state in case.states:
        agree(case.vector(state, supplied), case.vector(state, rate), SOLVED)


@pytest.mark.slow
def test_every_run_inverse_and_sweep_has_powers(tmp_path):
    model = gallery.build("wheeled_pendulum").derive().compile()
    push = {"start": {"theta3": 0.2, "surge": 0.5}, "input": {"M1": "0.1 * sin(t)", "M2": 0.3}}
    run = ax.simulate(model, 1.0, save_every=0.05, **push)
    assert run.unit("motor1.power") == "W"
    spin = run["phi1_dot"]
    assert np.abs(run["motor1.power"] - run["M1"] * spin).max() < 1e-12
    needed = ax.inverse_dynamics(model, run)
    assert np.abs(needed["motor2.power"] - run["motor2.power"]).max() < 1e-9
    outputs = {
        "work": ("integral", "motor1.power + motor2.power"),
        "supplied": ("last", "supplied"),
        "most": ("largest", "motor2.power"),
    }
    model.save(tmp_path / "m.axm")
    for each in (model, ax.load_model(tmp_path / "m.axm")):
        sweep = ax.sweep(each, 1.0, outputs=outputs, progress=False, **push)
        assert abs(float(sweep["work"] - sweep["supplied"])) < 1e-9
        assert abs(float(sweep["work"] - run["supplied"][-1])) < 1e-8
        assert float(sweep["most"]) >= np.abs(run["motor2.power"]).max() - 1e-12
