"""Forces over the workspace against statics by hand and against inverse dynamics of motions."""

import numpy as np
import pytest

import axode as ax
from tests.design.designed_robots import arm, hexapod

X, Y = ("one", 0.2, 1.4), ("two", 0.3, 2.0)
G = 9.81


def test_an_arm_at_rest_holds_its_weight_and_its_load():
    found = ax.design.force_map(
        arm(), X, Y, points=7, load={"fx": 3.0, "fy": -20.0, "mz": 2.0}, at=(0.1, 0, 0)
    )
    one, two = np.meshgrid(found.x, found.y)
    tip = 0.4 + 0.1
    elbow = 1.0 * G * 0.3 * np.cos(one + two) + 20.0 * tip * np.cos(one + two)
    elbow += 3.0 * tip * np.sin(one + two) - 2.0
    shoulder = elbow + G * (2.0 * 0.5 + 1.0) * np.cos(one) + 20.0 * np.cos(one) + 3.0 * np.sin(one)
    assert found["elbow.torque"] == pytest.approx(elbow, rel=1e-9, abs=1e-9)
    assert found["shoulder.torque"] == pytest.approx(shoulder, rel=1e-9, abs=1e-9)
    assert found.largest == pytest.approx(np.maximum(np.abs(shoulder), np.abs(elbow)))
    worst = found.worst
    assert abs(worst["force"]) == pytest.approx(found.largest.max())
    assert found.share == pytest.approx(np.abs(elbow) / 5.0)
    assert "shoulder" in repr(found)
    with pytest.raises(ax.UnknownName, match="shoulder"):
        found["wrist"]


@pytest.mark.slow
def test_a_moving_platform_takes_the_forces_of_its_motion():
    """At each point of the grid a motion passes with the given velocity and acceleration."""
    robot = hexapod()
    twist, rate = {"vx": 0.3, "vz": -0.2}, {"vx": 2.0, "vy": -1.5, "vz": 3.0}
    found = ax.design.force_map(
        robot, ("free.x", -0.1, 0.1), ("free.y", -0.1, 0.1), points=3,
        state={"free.z": 0.72}, twist=twist, acceleration=rate, load={"fz": -50.0},
    )  # fmt: skip
    load = robot.mechanism.copy()
    load.add_wrench("load", "platform")
    model = load.derive().compile()
    for row, y in enumerate(found.y):
        for column, x in enumerate(found.x):
            motion = {
                "free.x": f"{x} + 0.3 * t + 1.0 * t**2",
                "free.y": f"{y} - 0.75 * t**2",
                "free.z": "0.72 - 0.2 * t + 1.5 * t**2",
                "roll": 0.0, "pitch": 0.0, "yaw": 0.0,
            }  # fmt: skip
            times = np.array([0.0, 0.01, 0.02])
            run = ax.inverse_dynamics(model, motion, times=times, wrenches={"load.fz": -50.0})
            for name in found.forces:
                assert found[name][row, column] == pytest.approx(run[name][0], rel=1e-7)


def test_turning_with_a_point_beside_the_mass_centre():
    """A tool point that stands while the output turns, and accelerates towards the axis."""
    at, w = (0.2, 0.1, 0.0), 3.0
    found = ax.design.force_map(
        arm(), X, Y, points=4, twist={"vx": 0.4, "vy": -0.3}, acceleration={"vx": 1.0, "vy": 2.0},
        components=("vx", "vy"), at=at,
    )  # fmt: skip
    model = arm().model
    one, two = np.meshgrid(found.x, found.y)
    r, angle = np.hypot(0.4 + at[0], at[1]), np.arctan2(at[1], 0.4 + at[0])
    s, q2 = one, one + two + angle
    J = np.array([[-np.sin(s), -r * np.sin(q2)], [np.cos(s), r * np.cos(q2)]])  # by s and q2
    J = np.moveaxis(J, (0, 1), (-2, -1))
    rates = np.linalg.solve(J, np.broadcast_to([0.4, -0.3], (4, 4, 2))[..., None])[..., 0]
    turn = np.stack([np.cos(s), np.sin(s)], axis=-1) * rates[..., :1] ** 2
    turn += r * np.stack([np.cos(q2), np.sin(q2)], axis=-1) * rates[..., 1:] ** 2
    second = np.linalg.solve(J, (np.array([1.0, 2.0]) + turn)[..., None])[..., 0]
    nu, nu_dot = (np.stack([x[..., 0], x[..., 1] - x[..., 0]], axis=-1) for x in (rates, second))
    q = np.stack([one, two], axis=-1)
    assert model.independent == ("one.rate", "two.rate") and w
    u = model.inverse_dynamics(q, nu, nu_dot)
    assert found["shoulder.torque"] == pytest.approx(u[..., 0], rel=1e-8, abs=1e-9)
    assert found["elbow.torque"] == pytest.approx(u[..., 1], rel=1e-8, abs=1e-9)


def test_motions_that_an_arm_cannot_have_and_other_mistakes_are_named():
    with pytest.raises(ax.InvalidArgument, match="components"):
        ax.design.force_map(arm(), X, Y, points=3, twist={"vx": 0.4, "vy": -0.3})
    with pytest.raises(ax.UnknownName, match="fz"):
        ax.design.force_map(arm(), X, Y, points=3, load={"f": 1.0})
    with pytest.raises(ax.InvalidArgument, match="finite"):
        ax.design.force_map(arm(), X, Y, points=3, load={"fx": np.nan})
    with pytest.raises(ax.InvalidArgument, match="two numbers"):
        ax.design.force_map(arm(), ("one", 1.0, 0.0), Y)
    with pytest.raises(ax.UnknownName, match="three"):
        ax.design.force_map(arm(), ("three", 0.0, 1.0), Y)
    with pytest.raises(ax.UnknownName, match="c"):
        ax.design.force_map(arm(), X, Y, parameters={"c": 1.0})


@pytest.mark.slow
def test_parameters_change_the_map_and_what_is_out_of_reach_is_unknown(tmp_path):
    pytest.importorskip("matplotlib")
    bar = ax.Kinematics(ax.gallery.build("five_bar"))
    found = ax.design.force_map(bar, ("tip.x", -0.9, 0.9), ("tip.y", 0.05, 0.9), points=15)
    reached = np.isfinite(found.largest)
    assert 0.1 < reached.mean() < 0.9
    found.plot(save=tmp_path / "map.png")
    found.plot(next(iter(found.forces)), save=tmp_path / "one.svg")
    longer = ax.design.force_map(arm(), X, Y, points=3, load={"fy": -20}, parameters={"a": 1.5})
    shorter = ax.design.force_map(arm(), X, Y, points=3, load={"fy": -20})
    more = longer["shoulder.torque"] - shorter["shoulder.torque"]
    assert more == pytest.approx(np.tile((20 + G) * 0.5 * np.cos(longer.x), (3, 1)))


def test_pose_coordinates_of_the_output_are_taken_as_signals_of_the_state():
    """The tool of planar_3rrr turns by yaw, which its measure calls heading."""
    robot = ax.Kinematics(ax.gallery.build("planar_3rrr"))
    x, y = ("x", -0.04, 0.04), ("y", -0.04, 0.04)
    load = {"fx": 10.0, "mz": 1.0}
    by_pose, by_measure = (
        ax.design.force_map(robot, x, y, points=2, state={name: 0.1}, load=load)
        for name in ("yaw", "heading")
    )
    for motor, force in by_pose.forces.items():
        assert np.isfinite(force).all()
        np.testing.assert_array_equal(force, by_measure[motor])
    pose = {"x": 0.02, "y": 0.03, "yaw": 0.3}
    posed, driven = robot.jacobians(pose), robot.jacobians(dict(robot.inverse(pose)))
    np.testing.assert_allclose(posed.forward, driven.forward, atol=1e-9)
    assert np.isfinite(robot.singularity_map(x, y, points=2, state={"yaw": 0.1}).side).all()
    with pytest.raises(ax.InvalidArgument, match="'heading' is given twice"):
        robot.jacobians({"yaw": 0.1, "heading": 0.2})


def test_a_pose_coordinate_that_no_signal_equals_is_refused():
    tip = ax.Kinematics(ax.gallery.build("five_bar"))
    with pytest.raises(ax.UnknownName, match="equals yaw of"):
        tip.jacobians({"yaw": 0.1})
