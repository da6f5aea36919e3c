"""Parameters for ROS 2: odometry of moving robots, and accelerations that `feasible` confirms."""

import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from mechanism.wheeled_urdf import turtlebot

TRACK, RADIUS, MU = 0.4, 0.08, 0.5
HEIGHT, AHEAD = 0.15, 0.0  # of the mass centre


def carrier(
    left=RADIUS, right=RADIUS, *, lean=0.0, shift=0.0, offset=0.0, limit=5.0, height=HEIGHT
):
    """A box on two driven wheels and two sliding balls, one ahead and one behind."""
    bot = ax.Mechanism("carrier")
    box = bot.add_body("base_link", mass=10.0, com=(shift, 0, height), inertia=(0.1, 0.2, 0.3))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=box, at=(0, 0, RADIUS))
    for name, y, radius in (("left", TRACK / 2, RADIUS), ("right", -TRACK / 2, right)):
        side = np.sign(y)
        bot.add_wheel(
            f"{name}_joint", ax.Rolling(radius), on=box,
            at=(shift, y + offset, radius * np.cos(lean) - RADIUS),
            axis=(0, np.cos(lean), side * np.sin(lean)), mass=0.5, motor=ax.Motor(limit=limit),
        )  # fmt: skip
    free = ax.Ball(0.02, longitudinal="free", lateral="free")
    for name, x in (("front", 0.2), ("back", -0.2)):
        bot.add_contact(name, free, body=box, at=(x, 0, 0.02 - RADIUS))
    return bot.derive().compile()


def test_odometry_by_the_parameters_is_the_motion_of_the_robot():
    """What the controller computes from wheel rates is what a simulated robot does."""
    model = carrier(right=0.082)
    found = ax.ros.differential_drive(model)
    assert (found.left, found.right, found.base) == ("left_joint", "right_joint", "base_link")
    assert found.separation == pytest.approx(TRACK) and found.radius == RADIUS
    assert found.right_multiplier == pytest.approx(0.082 / RADIUS)
    rates = {"left_joint.rate": 2.0, "right_joint.rate": 3.0}
    start = ax.assemble(model, rates)
    l, r = (
        rate * found.radius * multiplier
        for rate, multiplier in zip(
            rates.values(), (found.left_multiplier, found.right_multiplier), strict=True
        )
    )
    wide = found.separation * found.separation_multiplier
    assert start["yaw_rate"] == pytest.approx((r - l) / wide, rel=1e-4)
    assert start["surge"] == pytest.approx((r + l) / 2, rel=1e-4)


def test_numbers_of_a_drive_have_no_rounding_of_their_computation():
    found = ax.ros.differential_drive(carrier())
    assert found.separation_multiplier == found.left_multiplier == 1.0


def test_wheels_that_lean_touch_the_ground_farther_apart():
    """Their contacts are r sin(lean) farther out, and that is where the robot turns about."""
    lean = 0.2
    found = ax.ros.differential_drive(carrier(lean=lean))
    assert found.left_multiplier == pytest.approx(1.0)
    assert found.right_multiplier == pytest.approx(1.0)
    assert found.separation == pytest.approx(TRACK)
    assert found.separation_multiplier == pytest.approx(1 + 2 * RADIUS * np.sin(lean) / TRACK)


def test_a_frame_off_the_axle_is_named():
    assert ax.ros.differential_drive(carrier(shift=-0.1)).ahead == pytest.approx(0.1)
    assert "0.1 m behind the frame" in ax.ros.controllers(carrier(shift=-0.1))
    with pytest.raises(ax.NotApplicable, match=r"0\.05 m beside the middle"):
        ax.ros.differential_drive(carrier(offset=0.05))
    with pytest.raises(ax.NotApplicable, match=r"0\.0048 m beside.*0\.012 of"):
        ax.ros.differential_drive(carrier(offset=0.0048))
    with pytest.raises(ax.NotApplicable, match="needs two driven wheels, and has none"):
        ax.ros.controllers(ax.gallery.build("ballbot").derive().compile())
    with pytest.raises(ax.NotApplicable, match=r"needs driven wheels left and right of x"):
        ax.ros.controllers(ax.gallery.build("caster_robot").derive().compile())
    with pytest.raises(ax.NotApplicable, match="no moving base"):
        ax.ros.controllers(ax.gallery.build("five_bar").derive().compile())


def rover(kind, *, friction=None, at=0.0, names=("fl", "fr", "rl", "rr"), radii=(0.1,) * 4):
    """A box on four driven wheels, its frame `at` ahead of their middle."""
    bot = ax.Mechanism("rover")
    box = bot.add_body("box", mass=20.0, com=(-at, 0, 0.1), inertia=(0.5, 0.8, 1.0))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=box)
    places = ((0.3, 0.25, 1), (0.3, -0.25, -1), (-0.3, 0.25, -1), (-0.3, -0.25, 1))
    for name, radius, (x, y, way) in zip(names, radii, places, strict=True):
        wheel = (
            ax.Mecanum(radius, roller_angle=way * np.pi / 4, friction=friction)
            if kind == "mecanum"
            else ax.Rolling(radius, friction=friction)
        )
        bot.add_wheel(name, wheel, on=box, at=(x - at, y, radius - 0.1), mass=0.5, motor=True)
    return bot.derive().compile()


@pytest.mark.slow
def test_four_mecanum_wheels_have_the_odometry_of_their_controller():
    """Its formulas with these numbers give the velocity of the base's frame, off the middle too."""
    model = rover("mecanum", at=0.1)
    found = ax.ros.mecanum_drive(model)
    joints = (found.front_left, found.front_right, found.rear_right, found.rear_left)
    assert joints == ("fl", "fr", "rr", "rl")
    assert found.radius == pytest.approx(0.1) and found.reach == pytest.approx(0.55)
    assert found.offset == pytest.approx((0.1, 0.0))
    state = ax.assemble(model, {"fl.rate": 2.0, "fr.rate": -1.0, "rr.rate": 0.5})
    fl, fr, rr, rl = (state[f"{joint}.rate"] for joint in joints)
    r, (x, y) = found.radius, found.offset
    turn = 0.25 * r / found.reach * (-fl - rl + rr + fr)
    assert state["yaw_rate"] == pytest.approx(turn)
    assert state["surge"] == pytest.approx(0.25 * r * (fl + rl + rr + fr) - y * turn)
    assert state["sway"] == pytest.approx(0.25 * r * (-fl + rl - rr + fr) + x * turn)
    yaml = pytest.importorskip("yaml")
    own = yaml.safe_load(ax.ros.controllers(rover("mecanum", at=0.1, friction=0.7)))
    own = own["mecanum_drive_controller"]["ros__parameters"]
    assert own["rear_left_wheel_command_joint_name"] == "rl"
    assert own["kinematics"]["base_frame_offset"]["x"] == pytest.approx(0.1)
    with pytest.raises(ax.NotApplicable, match="equal wheels with rollers at 45 degrees"):
        ax.ros.mecanum_drive(rover("mecanum", radii=(0.1, 0.1, 0.1, 0.12)))


@pytest.mark.slow
@pytest.mark.parametrize(("count", "first"), [(3, 0.0), (4, np.pi / 4), (3, np.pi / 6)])
def test_omni_wheels_have_the_odometry_of_their_controller(count, first):
    """Radius times rate is sin(angle) vx - cos(angle) vy - distance w, wheel by wheel."""

    def robot(outwards, shift=0.0):
        bot = ax.Mechanism("omni")
        disk = bot.add_body("disk", mass=5.0, inertia=(0.1, 0.1, 0.2))
        bot.add_joint("base", ax.Planar(), parent=bot.ground, child=disk, at=(0, 0, 0.05))
        for k in range(count):
            a = first + 2 * np.pi * k / count
            bot.add_wheel(
                f"wheel{k}", ax.Omni(0.05), on=disk, mass=0.2, motor=True,
                at=(0.2 * np.cos(a) + shift, 0.2 * np.sin(a), 0),
                axis=(outwards * np.cos(a), outwards * np.sin(a), 0),
            )  # fmt: skip
        return bot.derive().compile()

    model = robot(1.0)
    found = ax.ros.omni_drive(model)
    assert found.joints == tuple(f"wheel{k}" for k in range(count))
    assert found.radius == pytest.approx(0.05) and found.reach == pytest.approx(0.2)
    assert found.offset == pytest.approx(first)
    state = ax.assemble(model, {"base.surge": 0.3, "base.sway": -0.2, "base.yaw_rate": 0.5})
    for k, joint in enumerate(found.joints):
        a = found.offset + 2 * np.pi * k / count
        speed = 0.3 * np.sin(a) + 0.2 * np.cos(a) - found.reach * 0.5
        assert found.radius * state[f"{joint}.rate"] == pytest.approx(speed)
    assert 'wheel_names: ["wheel0", "wheel1", "wheel2"' in ax.ros.controllers(model)
    for other in (robot(-1.0), robot(1.0, shift=0.05)):
        with pytest.raises(ax.NotApplicable, match="equal wheels at equal angles"):
            ax.ros.omni_drive(other)


@pytest.mark.slow
def test_a_wheel_that_drives_and_steers_has_the_odometry_of_its_controller():
    model = ax.gallery.build("tricycle", L=0.9, r=0.2).derive().compile()
    found = ax.ros.tricycle_drive(model)
    assert (found.traction, found.steering) == ("front", "steer")
    assert found.radius == pytest.approx(0.2) and found.wheelbase == pytest.approx(0.9)
    state = ax.assemble(model, {"delta": 0.7, "phi_F_dot": 3.0})
    assert state["v"] == pytest.approx(3.0 * found.radius * np.cos(0.7))
    assert state["theta_dot"] == pytest.approx(3.0 * found.radius * np.sin(0.7) / found.wheelbase)
    assert "wheelbase: 0.9" in ax.ros.controllers(model)


@pytest.mark.slow
def test_a_robot_that_skids_has_several_wheels_per_side():
    """Straight on it rolls by these numbers; in a turn it scrubs, and turns by less."""
    model = rover("plain", friction=(0.5, 0.5))
    found = ax.ros.differential_drive(model)
    assert found.left_joints == ("fl", "rl") and found.right_joints == ("fr", "rr")
    assert found.separation == pytest.approx(0.5) and found.skids
    assert found.separation_multiplier == pytest.approx(1.0)
    assert found.ahead == pytest.approx(0.0, abs=1e-12)
    assert ax.ros.differential_drive(rover("plain", at=0.1)).ahead == pytest.approx(0.1)
    run = ax.simulate(
        model, 3.0, step=1e-3, start={"base.z": 0.1},
        input=lambda s: {
            f"{name}.torque": 20.0 * (rate - s[f"{name}.rate"])
            for name, rate in (("fl", 3.0), ("rl", 3.0), ("fr", 6.0), ("rr", 6.0))
        },
    )  # fmt: skip
    rates = {name: run.final[f"{name}.rate"] for name in ("fl", "fr")}
    turn = (rates["fr"] - rates["fl"]) * found.radius / found.separation
    assert 0.05 * turn < run.final["yaw_rate"] < 0.95 * turn
    assert run.final["surge"] == pytest.approx(found.radius * sum(rates.values()) / 2, rel=0.02)
    with pytest.raises(ax.NotApplicable, match="'fl', 'rl' of 'rover' turn at different rates"):
        ax.ros.differential_drive(rover("plain", radii=(0.1, 0.1, 0.12, 0.12)))


def test_files_without_motors_have_a_controller_of_the_wheels_that_roll(tmp_path):
    """Those of published robots often name none."""
    path = tmp_path / "robot.urdf"
    path.write_text(turtlebot())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ax.load(path, base="planar", wheels="proposed").derive().compile()
    found = ax.ros.differential_drive(model)
    assert (found.left, found.right) == ("wheel_left_link_joint", "wheel_right_link_joint")
    assert found.separation * found.separation_multiplier == pytest.approx(0.16, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [1e-4, -1e-4, 2e-3])
def test_a_frame_a_little_off_the_middle_is_served(offset):
    """Radii and separation are those of the robot, and the file says where odometry is from."""
    model = carrier(right=0.082, offset=offset)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ax.ros.differential_drive(model)
    noticed = [w for w in caught if issubclass(w.category, ax.PlausibilityWarning)]
    assert bool(noticed) == (abs(offset) > 1e-3 * TRACK)
    assert all("0.002 m beside" in str(w.message) for w in noticed)
    assert found.aside == pytest.approx(-offset, rel=1e-6)
    assert found.left_multiplier == pytest.approx(1.0, rel=1e-9)
    assert found.right_multiplier == pytest.approx(0.082 / RADIUS, rel=1e-9)
    assert found.separation_multiplier == pytest.approx(1.0, rel=1e-9)
    if not noticed:
        side = "left" if offset > 0 else "right"
        assert f"0.0001 m to the {side} of the frame" in ax.ros.controllers(model)


def test_a_urdf_with_rounded_angles_has_controllers(tmp_path):
    """Wheels turned by rpy="-1.57 0 0" lean by 8e-4, and touch 26 micrometres off the middle."""
    path = tmp_path / "robot.urdf"
    path.write_text(turtlebot())
    robot = ax.load(path, base="planar", wheels="proposed")
    for side in ("left", "right"):
        robot.add_motor(side, f"wheel_{side}_link_joint")
    model = robot.derive().compile()
    found = ax.ros.differential_drive(model)
    assert abs(found.aside) == pytest.approx(0.033 * (np.pi / 2 - 1.57), rel=1e-3)
    assert found.separation * found.separation_multiplier == pytest.approx(0.16, rel=1e-5)
    assert "2.63e-05 m to the" in ax.ros.controllers(model)


@pytest.mark.slow
def test_the_files_are_yaml_that_ros_reads():
    yaml = pytest.importorskip("yaml")
    model = carrier()
    made = yaml.safe_load(ax.ros.controllers(model))
    own = made["diff_drive_controller"]["ros__parameters"]
    assert own["left_wheel_names"] == ["left_joint"] and own["base_frame_id"] == "base_link"
    assert own["wheel_separation"] == pytest.approx(TRACK)
    assert own["wheel_radius"] == RADIUS and own["wheel_separation_multiplier"] == 1.0
    doubles = [value for value in own.values() if isinstance(value, int | float)]
    assert all(isinstance(value, float) for value in doubles)  # ROS refuses 1 where 1.0 is meant
    limits = ax.ros.velocity_limits(model, 0.5, 1.0, MU)
    smoother = yaml.safe_load(limits.nav2())["velocity_smoother"]["ros__parameters"]
    assert smoother["max_velocity"] == [0.5, 0.0, 1.0]
    assert smoother["min_velocity"] == [-0.5, 0.0, -1.0]
    assert smoother["max_decel"][0] == pytest.approx(-limits.deceleration, rel=1e-6)


@pytest.mark.slow
def test_motors_limit_a_robot_that_starts_gently():
    """At low speed weak motors decide; at a corner each of them carries both at its limit."""
    model = carrier(limit=0.2)
    found = ax.ros.velocity_limits(model, 1e-3, 1e-3, 5.0, share=0.5)
    inertia = 10.0 + 2 * 0.5 * 1.5  # the wheels are disks, which turn: I / r^2 = m / 2
    alone = 2 * 0.5 * 0.2 / RADIUS / inertia
    both = found.acceleration / alone + found.turn_acceleration / _turn_alone(model)
    assert both == pytest.approx(1.0, rel=1e-3)
    assert found.acceleration == pytest.approx(found.deceleration, rel=1e-3)


def _turn_alone(model):
    u = model.inverse_dynamics(model.home, nu_dot=np.array([-1.0, 1.0]))
    rate = ax.assemble(model, {"left_joint.rate": -1.0, "right_joint.rate": 1.0})["yaw_rate"]
    return 0.5 * 0.2 / abs(u[0]) * rate


@pytest.mark.slow
@pytest.mark.parametrize("height", [0.05, 0.4])
def test_feasible_agrees_at_the_corners_and_not_beyond(height):
    """The same limits by `ax.feasible` along motions that pass the corners."""
    model = carrier(height=height)
    found = ax.ros.velocity_limits(model, 0.6, 1.0, MU, share=1.0)
    drive = ax.ros.differential_drive(model)

    def ok(factor):
        results = []
        for v in (-0.6, 0.0, 0.6):
            for a in (found.deceleration if v < 0 else found.acceleration,
                      -found.deceleration if v > 0 else -found.acceleration):  # fmt: skip
                for w in (-1.0, 1.0):
                    for b in (-found.turn_acceleration, found.turn_acceleration):
                        rates = {
                            name: f"{(v + s * w * drive.separation / 2) / RADIUS} + "
                            f"{factor * (a + s * b * drive.separation / 2) / RADIUS} * t"
                            for name, s in (("left_joint.rate", -1), ("right_joint.rate", 1))
                        }
                        motion = ax.inverse_dynamics(model, rates, times=[0.0, 1e-4])
                        results.append(ax.feasible(model, motion, friction=MU).ok)
        return all(results)

    assert ok(0.99)
    assert not ok(1.01)


def test_speeds_that_are_too_much_and_other_mistakes_are_named():
    model = carrier()
    with pytest.raises(ax.InvalidArgument, match=r"friction, and may use 80%: lower speed or turn"):
        ax.ros.velocity_limits(model, 3.0, 4.0, MU)
    with pytest.raises(ax.InvalidArgument, match="share above 0"):
        ax.ros.velocity_limits(model, 1.0, 1.0, MU, share=0.0)
    with pytest.raises(ax.InvalidArgument, match="> 0 and finite"):
        ax.ros.velocity_limits(model, np.inf, 1.0, MU)
    with pytest.raises(ax.NotApplicable, match="moving base"):
        ax.ros.velocity_limits(ax.gallery.build("five_bar").derive().compile(), 1.0, 1.0, MU)


def test_the_command_line_writes_them(tmp_path, capsys):
    yaml = pytest.importorskip("yaml")
    source = str(Path(__file__).parents[2] / "examples" / "diffdrive.toml")
    out = tmp_path / "robot.yaml"
    assert run(["ros", source, "--speed", "0.5", "--turn", "1", "--out", str(out)]) == 0
    made = yaml.safe_load(out.read_text(encoding="utf-8"))
    assert set(made) == {"controller_manager", "diff_drive_controller", "velocity_smoother"}
    assert run(["ros", source, "--speed", "0.5"]) == 2
    assert run(["ros", source, "--out", "robot.txt"]) == 2
    assert run(["ros", "four_bar"]) == 1
    assert "moving base" in capsys.readouterr().err
