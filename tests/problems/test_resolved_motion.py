"""Resolved rates and resolved motion: speeds for wanted velocities, motions along targets."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import lsq_linear

import axode as ax


@cache
def robot(name):
    return ax.gallery.build(name).derive(self_check=False).compile()


def columns(run, names):
    return np.stack([run[name] for name in names], axis=-1)


def jacobian(model, q, body):
    """Angular velocity and velocity of the origin for unit speeds of a serial arm."""
    k = model.bodies.index(body)
    turn = model.jacobian("twists", "nu", q, np.zeros_like(q))[..., k, :3, :]
    return np.concatenate([turn, model.jacobian("poses", "q", q)[..., k, :3, 3, :]], axis=-2)


def test_rates_are_those_of_the_pseudo_inverse():
    model = robot("seven_axis_arm")
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-2, 2, size=(30, 7)), rng.normal(size=(30, 6))
    weights = {"q2_dot": 4.0}
    found = ax.resolved_rates(model, {"link7": v}, q, weights=weights, damping=0.0)
    J, W = jacobian(model, q, "link7"), np.diag([1.0, 0.25, 1, 1, 1, 1, 1])
    wanted = W @ np.swapaxes(J, 1, 2) @ np.linalg.inv(J @ W @ np.swapaxes(J, 1, 2))
    assert np.abs(found.nu - (wanted @ v[..., np.newaxis])[..., 0]).max() < 1e-6
    assert np.abs(found.errors["link7"]).max() < 1e-9


def test_rates_within_limits_are_least_squares():
    model = robot("seven_axis_arm")
    rng = np.random.default_rng(1)
    q, v = rng.uniform(-2, 2, size=(30, 7)), rng.normal(size=(30, 6))
    limits = {f"q{k}": 1.0 for k in range(1, 8)}
    found = ax.resolved_rates(model, {"link7": v}, q, limits=limits, damping=0.0)
    assert (np.abs(found.nu) <= 1).all() and found.at_limit.any()
    J = jacobian(model, q, "link7")
    for k in range(len(q)):
        other = lsq_linear(J[k], v[k], (-1, 1), tol=1e-14)
        own = ((J[k] @ found.nu[k] - v[k]) ** 2).sum() / 2
        assert own <= other.cost + 1e-9


def test_damping_keeps_speeds_finite_at_singular_postures():
    model = robot("seven_axis_arm")
    q = np.zeros(7) + np.array([0, 0.5, 0, 1e-7, 0, 0.3, 0])
    outward = jacobian(model, q, "link7") @ np.zeros(7)
    outward[3:] = (np.sin(0.5), 0, np.cos(0.5))
    wild = ax.resolved_rates(model, {"link7": outward}, q, damping=0.0)
    calm = ax.resolved_rates(model, {"link7": outward}, q)
    assert np.abs(wild.nu).max() > 1e4 > 100 > np.abs(calm.nu).max()
    assert calm.manipulability < 1e-6


def test_rates_of_a_rolling_robot_and_of_loops():
    mobile = robot("mobile_manipulator")
    found = ax.resolved_rates(mobile, {"gripper": (0.3, 0.1, -0.05), "theta1": 0.2})
    k = mobile.bodies.index("gripper")
    step = 1e-7 * mobile.rates(mobile.home, found.nu)
    there, here = mobile.poses(mobile.home + step), mobile.poses(mobile.home)
    assert np.abs((there - here)[k, :3, 3] / 1e-7 - (0.3, 0.1, -0.05)).max() < 1e-6
    delta = robot("delta_robot")
    tool = {"tool.x": 0.1, "tool.y": -0.2, "tool.z": 0.3}
    found = ax.resolved_rates(delta, tool)
    velocity = delta.twists(delta.home, found.nu)[delta.bodies.index("platform"), 3:]
    assert np.abs(velocity - (0.1, -0.2, 0.3)).max() < 1e-9
    assert abs(found.errors["tool.x"]) < 1e-9


TIMES = np.linspace(0, 2, 81)


def test_motion_of_an_arm_along_a_circle():
    model = robot("seven_axis_arm")
    path = np.broadcast_to(model.poses(model.home)[6], (81, 4, 4)).copy()
    path[:, 0, 3] += 0.1 * np.sin(np.pi * TIMES)
    path[:, 1, 3] += 0.1 * (1 - np.cos(np.pi * TIMES))
    run = ax.resolved_motion(model, {"link7": path}, TIMES)
    q, nu = columns(run, model.coordinates), columns(run, model.independent)
    assert run.info["missed"] == 0
    assert np.abs(model.poses(q)[:, 6] - path).max() < 1e-9
    assert np.abs(np.gradient(q, TIMES, axis=0, edge_order=2) - nu).max() < 2e-2
    needed = ax.inverse_dynamics(model, run)
    assert np.isfinite(needed["tau1"]).all()
    # two paths at once are each what they are alone; one is too fast for its limits
    both = np.stack([path, path])
    limits = {"q1": 0.1}
    slow = ax.resolved_motion(model, {"link7": both}, TIMES, speed_limits=limits)
    assert np.array_equal(slow["q3"][0], slow["q3"][1]) and slow.batch == (2,)
    assert np.abs(slow["q1_dot"]).max() <= 0.1
    kept = ax.resolved_motion(model, {"link7": path}, TIMES, limits={"q2": (0.45, 0.52)})
    assert kept["q2"].min() >= 0.45 - 1e-12 and kept["q2"].max() <= 0.52 + 1e-12


def test_motion_of_a_mobile_manipulator_rolls():
    model = robot("mobile_manipulator")
    k = model.bodies.index("gripper")
    here = model.poses(model.home)[k, :3, 3]
    path = here + np.stack([0.5 * TIMES, 0.3 * np.sin(TIMES), 0 * TIMES], axis=-1)
    run = ax.resolved_motion(model, {"gripper": path}, TIMES, start=model.home)
    q, nu = columns(run, model.coordinates), columns(run, model.independent)
    assert run.info["missed"] == 0
    assert np.abs(model.poses(q)[:, k, :3, 3] - path).max() < 1e-9
    rates = np.gradient(q, TIMES, axis=0, edge_order=2)
    assert np.abs(rates - model.rates(q, nu))[2:-2].max() < 2e-2 * np.abs(rates).max()
    assert abs(run["phi_R"][-1]) > 1.0  # the wheels turn


@pytest.mark.slow
def test_motion_of_a_closed_loop():
    model = robot("delta_robot")
    path = np.stack([0.1 * np.sin(TIMES), 0.1 * np.cos(TIMES) - 0.1, -0.45 + 0 * TIMES], axis=-1)
    run = ax.resolved_motion(model, {"platform": path}, TIMES)
    q = columns(run, model.coordinates)
    assert np.abs(model.residual(q)).max() < 1e-10
    assert np.abs(columns(run, ("tool.x", "tool.y", "tool.z")) - path).max() < 1e-9


def test_mistakes():
    model = robot("seven_axis_arm")
    with pytest.raises(ax.InvalidArgument, match=r"or \(..., 6\) with the angular velocity first"):
        ax.resolved_rates(model, {"link7": (1.0, 2.0)})
    with pytest.raises(ax.UnknownName, match="body, coordinate or measure 'hand'"):
        ax.resolved_rates(model, {"hand": (1.0, 2.0, 3.0)})
    with pytest.raises(ax.InvalidArgument, match="velocities: give at least one by name"):
        ax.resolved_rates(model, {})
    with pytest.raises(ax.InvalidArgument, match="damping: must be at least 0 and below 1"):
        ax.resolved_rates(model, {"q1": 1.0}, damping=1.0)
    with pytest.raises(ax.InvalidArgument, match="limits, 'q1_dot': must be > 0"):
        ax.resolved_rates(model, {"q1": 1.0}, limits={"q1": -1.0})
    text = "samples are needed along its last batch axis, got 4"
    with pytest.raises(ax.InvalidArgument, match=text):
        ax.resolved_motion(model, {"link7": np.zeros((4, 3))}, np.arange(5.0))
    with pytest.raises(ax.InvalidArgument, match="their batch axes do not fit together"):
        start = np.zeros((3, 7))
        ax.resolved_motion(model, {"link7": np.zeros((2, 5, 3))}, np.arange(5.0), start=start)
    with pytest.raises(ax.InvalidArgument, match="is no independent speed; derive the mechanism"):
        x = np.linspace(0, 0.1, 5)
        ax.resolved_motion(
            robot("delta_robot"), {"tool.x": x}, np.arange(5.0), limits={"hinge1": (-3, 3)}
        )


def test_robots_that_speeds_or_time_lead():
    bot = ax.Mechanism("led")
    bot.add_body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_body("tip", mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("turn", ax.Revolute("z"), parent="ground", child="arm")
    bot.add_joint("bend", ax.Revolute("z"), parent="arm", child="tip", at=(1, 0, 0))
    bot.prescribe("turn", lambda t: 0.5 * t)
    bot.measure("way", "velocity", body="tip")
    model = bot.derive(self_check=False).compile("interpreter")
    found = ax.resolved_rates(model, {"tip": (0.0, 0.5, 0.0)})  # as the arm goes anyway
    assert np.abs(found.errors["tip"]).max() < 1e-9
    with pytest.raises(ax.NotApplicable, match="is led by time; resolved motion takes"):
        ax.resolved_motion(model, {"bend": np.zeros(5)}, np.arange(5.0))
    with pytest.raises(ax.InvalidArgument, match="it is a speed itself; give a position's rate"):
        ax.resolved_rates(model, {"way.vx": 1.0})
