"""Inverse dynamics with fewer motors than speeds: the motors hold what they drive."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from laws.cases import SOLVED, Case, agree
from variants import further


def dense_nearest(G, need, I):
    """The third line of (D10) as it stands, through the whole inertia."""
    reduced = np.linalg.solve(I, G)
    return np.linalg.solve(G.T @ reduced, reduced.T @ need)


@pytest.mark.parametrize(
    "passive", ["", further("shoulder1"), "elbow0 elbow1", further("shoulder0 elbow1 wrist1")]
)
@pytest.mark.parametrize("base", ["floating", "spherical", "planar", "fixed"])
def test_holding_the_driven_joints_is_the_nearest_in_the_norm_of_the_inverse_inertia(base, passive):
    """Two arms on a base, some joints without motors, rotors and a motor on part of the base."""
    bot = floating_arms(base, passive.split())
    turned = list(bot.derive().independent)[::-1]
    for case in (Case(bot), Case(bot, independent=turned)):
        assert_nearest(case)


def assert_nearest(case):
    e = case.equations
    for state in case.states:
        u, missing = (case.vector(state, x) for x in (e.inverse_dynamics, e.inverse_residual))
        I, bias, gamma, delta = (case.at(state, x)[0] for x in (e.I, e.bias, e.gamma, e.delta))
        G = case.at(state, ca.jacobian(e.tau, e.u))[0]
        need = I @ state.nu_dot + (bias - gamma - delta).ravel()
        agree(u, dense_nearest(G, need, I), SOLVED, "inputs")
        agree(missing, need - G @ u, SOLVED, "what is missing")


def floating_arms(base: str, passive: list[str]) -> ax.Mechanism:
    bot = ax.Mechanism("arms")
    rng = np.random.default_rng(5)
    joints = {
        "floating": ax.Floating(),
        "spherical": ax.Spherical(),
        "planar": ax.Planar(),
        "fixed": ax.Revolute("x"),
    }
    trunk = bot.add_body("trunk", mass=3.0, com=rng.normal(size=3) / 9, inertia=(0.1, 0.2, 0.25))
    bot.add_joint("base", joints[base], parent=bot.ground, child=trunk)
    if base == "planar":
        bot.add_motor("skid", "base.surge")
    for arm in range(2):
        parent = trunk
        for k, name in enumerate(("shoulder", "elbow", "wrist")):
            link = bot.add_body(
                f"{name}{arm}", mass=1.0 + k, com=rng.normal(size=3) / 9, inertia=(0.1, 0.2, 0.25)
            )
            joint = ax.Prismatic("y") if name == "wrist" else ax.Revolute("zyx"[k])
            bot.add_joint(
                f"{name}{arm}", joint, parent=parent, child=link, at=rng.normal(size=3) / 5
            )
            if f"{name}{arm}" not in passive:
                motor = ax.Motor(gear=rng.uniform(1, 5), rotor_inertia=0.01)
                bot.add_motor(f"{name}{arm}", f"{name}{arm}", motor=motor)
            parent = link
    return bot


def test_motors_that_repeat_each_other_on_a_floating_base_share_their_effort():
    """They cannot give every motion either: the model takes weights all the same."""
    bot = floating_arms("floating", [])
    bot.add_motor("second", "elbow0", motor=ax.Motor(gear=2.0))
    model = bot.derive().compile("interpreter")
    assert model.actuation == "underactuated"
    rng = np.random.default_rng(1)
    nu, nu_dot = rng.normal(size=(2, len(model.independent)))
    weights = {"second.torque": 0.0625}
    even, _ = model.inverse_dynamics_with_residual(model.home, nu, nu_dot)
    lighter, _ = model.inverse_dynamics_with_residual(model.home, nu, nu_dot, weights=weights)
    first, second = (model.inputs.index(f"{m}.torque") for m in ("elbow0", "second"))
    gear = float(bot.drives[[d.name for d in bot.drives].index("elbow0")].motor.gear)
    assert lighter[second] / lighter[first] == pytest.approx(16 * even[second] / even[first])
    total = gear * even[first] + 2 * even[second]
    assert gear * lighter[first] + 2 * lighter[second] == pytest.approx(total)


def test_results_go_where_they_are_wanted():
    """One function gives inputs and residual; the array that was handed over holds the inputs."""
    model = floating_arms("floating", ["elbow0"]).derive().compile("interpreter")
    rng = np.random.default_rng(2)
    q = np.tile(model.home, (3, 1))
    nu, nu_dot = rng.normal(size=(2, 3, len(model.independent)))
    expected, missing = model.inverse_dynamics_with_residual(q, nu, nu_dot)
    np.testing.assert_array_equal(
        missing, model.evaluate("inverse_residual", {"q": q, "nu": nu, "nu_dot": nu_dot})
    )
    out = np.empty_like(expected)
    with pytest.warns(ax.UnderactuatedMotionWarning, match="is missing on"):
        assert model.inverse_dynamics(q, nu, nu_dot, out=out) is out
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(ax.InvalidArgument, match="shape"):
        model.inverse_dynamics(q, nu, nu_dot, out=np.empty((3, 1)))
