"""Wheels of robots from URDF files as the packages of ROS write them."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.cli import main
from axode.errors import InvalidArgument, OmissionWarning
from mechanism import wheeled_urdf as files

PLACE = 1e-7  # [m] of contacts at home: files have angles of three digits


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    return path


def proposed(tmp_path: Path, text: str, base: str = "floating") -> ax.Mechanism:
    return ax.load(written(tmp_path, text), base=base, wheels="proposed")


def bodies(robot: ax.Mechanism) -> list[str]:
    return [contact.body for contact in robot.contacts]


@pytest.mark.parametrize("base", ["floating", "planar"])
@pytest.mark.parametrize(
    "casters", [("-0.081 0 -0.004",), ("-0.177 -0.064 -0.004", "-0.177 0.064 -0.004")]
)
def test_casters_that_reach_below_the_wheels_keep_no_wheel_from_rolling(tmp_path, casters, base):
    """TurtleBot3's caster boxes end 4 mm below its wheels of 33 mm: the wheels stand on z = 0."""
    robot = proposed(tmp_path, files.turtlebot(casters), base)
    assert bodies(robot) == ["wheel_left_link", "wheel_right_link"]
    assert all(contact.wheel == ax.Rolling(0.033) for contact in robot.contacts)
    np.testing.assert_allclose([c.plane.point for c in robot.contacts], 0, atol=PLACE)


def doubts(path: Path, **given) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ax.load(path, **given)
    return [str(w.message) for w in caught if issubclass(w.category, ax.PlausibilityWarning)]


@pytest.mark.slow
def test_a_base_that_may_tip_names_the_caster_and_the_call_that_holds_it(tmp_path):
    """With the ball, TurtleBot3 keeps two motions; its wheels alone leave the pitch free."""
    path = written(tmp_path, files.turtlebot())
    tips, motors = doubts(path, base="floating", wheels="proposed")
    assert "touches the ground by wheel_left_link, wheel_right_link alone" in tips
    assert "caster_0_link: box: its lowest point is 4 mm below the ground" in tips
    assert "base_link: box: its lowest point is 8.5 mm above" in tips and "base_scan" not in tips
    assert "robot.add_motor('wheel_left_link_joint', 'wheel_left_link_joint'" in motors
    robot = ax.load(path, base="floating", wheels="proposed")
    assert robot.derive().mobility.mobility == 3
    (call,) = re.findall(r"robot\.add_contact.*", tips)
    exec(call, {"ax": ax, "robot": robot})
    assert robot.contacts[-1].wheel.radius == pytest.approx(0.006, abs=PLACE)
    assert robot.derive().mobility.mobility == 2
    table = tips.split("extends this one:\n")[1].split("if it balances")[0].replace("    ", "")
    head = '[extends]\nfile = "robot.urdf"\nbase = "floating"\nwheels = "proposed"\n'
    (tmp_path / "bare.toml").write_text(head)
    (tmp_path / "held.toml").write_text(head + table)
    assert doubts(tmp_path / "bare.toml")[0] == tips
    assert doubts(tmp_path / "held.toml") == [motors.replace("robot.urdf", "held.toml", 1)]


def test_who_stands_or_balances_on_purpose_is_not_doubted(tmp_path):
    path = written(tmp_path, files.turtlebot())
    wheels = ["wheel_left_link", "wheel_right_link"]
    assert doubts(path, base="floating", wheels=wheels) == []
    assert len(doubts(path, base="planar", wheels="proposed")) == 1  # of motors
    for text in (files.ball_caster_robot(), files.omni_robot(), files.ackermann()):
        path.write_text(text)
        assert not any("tip" in doubt for doubt in doubts(path, base="floating", wheels="proposed"))
    path.write_text(files.turtlebot(casters=("0 0 -0.004",)))  # between the wheels
    (tips,) = (x for x in doubts(path, base="floating", wheels="proposed") if "tip" in x)
    assert "ax.Ball(RADIUS" in tips


@pytest.mark.parametrize("toe, contradict", [(0.0, False), (1e-6, True)])
def test_axles_of_a_file_contradict_each_other_from_a_size_that_matters(tmp_path, toe, contradict):
    """Both lean as -1.57 says, on a base that 1e-8 m of their height pitches by 6e-8."""
    text = files.turtlebot(("-0.177 0 -0.004",))
    place = '0 -0.08 0.023" rpy="-1.57 0 0'
    assert place in text
    robot = proposed(tmp_path, text.replace(place, f'0 -0.08 0.023" rpy="-1.57 0 {toe}'))
    ball = ax.Ball(0.006, longitudinal="free", lateral="free")
    robot.add_contact("caster_0_link", ball, body="caster_0_link")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mobility = robot.derive(self_check=False).mobility
    assert mobility.mobility == 2
    assert any("wheel_right_link.lateral" in row and "to within" in row for row in mobility.dropped)
    assert any("contradict" in str(w.message) for w in caught) == contradict


def test_a_planar_turtlebot_drives_as_its_wheels_turn(tmp_path):
    """Both wheels at 1 rad/s: one radius per second straight ahead."""
    robot = proposed(tmp_path, files.turtlebot(), "planar")
    rates = {f"wheel_{side}_link_joint.rate": 1.0 for side in ("left", "right")}
    model = robot.derive(independent=list(rates)).compile()
    run = ax.simulate(model, 1.0, start=rates)
    assert run.final["base.x"] == pytest.approx(0.033, rel=1e-9)


def test_fixed_spheres_that_touch_the_ground_are_balls_that_slide(tmp_path):
    """They hold the robot level, and take nothing of its two motions on the ground."""
    robot = proposed(tmp_path, files.ball_caster_robot())
    assert bodies(robot) == ["left_wheel", "right_wheel", "base_link", "rear_caster"]
    for contact in robot.contacts[2:]:
        assert contact.wheel == ax.Ball(0.02, longitudinal="free", lateral="free")
    assert robot.contacts[2].at == (0.12, 0.0, -0.03)
    mobility = robot.derive().mobility
    assert mobility.mobility == 2
    assert "never move     base.wx, base.wy, base.vy, base.vz" in str(mobility)


def test_a_sphere_beside_the_ground_of_the_wheels_reaches_it_as_a_ball(tmp_path):
    """A caster that is 2 mm long does not contradict the others: its ball has another radius."""
    robot = proposed(tmp_path, files.ball_caster_robot(drop=-2e-3))
    assert robot.contacts[2].wheel.radius == pytest.approx(0.022, abs=PLACE)
    assert robot.derive().mobility.mobility == 2


def test_spheres_on_a_level_base_hold_up_nothing(tmp_path):
    robot = proposed(tmp_path, files.ball_caster_robot(), "planar")
    assert bodies(robot) == ["left_wheel", "right_wheel"]


def test_sliding_spheres_are_given_as_toml_and_as_calls_that_work(tmp_path):
    path = written(tmp_path, files.ball_caster_robot())
    with pytest.warns(OmissionWarning, match="look like wheels") as caught:
        robot = ax.load(path, base="floating")
    text = str(caught[0].message)
    for call in re.findall(r"robot\.add_contact.*", text):
        exec(call, {"ax": ax, "robot": robot})
    table = text.split("in a TOML file:\n")[1].split("one by one")[0].replace("    ", "")
    (tmp_path / "robot.toml").write_text(table)
    assert ax.load(tmp_path / "robot.toml") == robot
    assert robot == ax.load(path, base="floating", wheels="proposed")


WHEELS = [f"{end}_{side}_wheel" for end in ("front", "rear") for side in ("left", "right")]


@pytest.mark.slow
def test_four_wheels_that_do_not_steer_roll_as_the_user_says(tmp_path):
    """As Husky: four wheels that roll only go straight; with wheels that slip sideways it turns."""
    text = files.four_wheels("husky", 0.1651, 0.256, 0.2854, 0.03282, mass=46.0)
    robot = proposed(tmp_path, text)
    assert bodies(robot) == WHEELS
    assert robot.derive().mobility.mobility == 1
    slips = ax.Rolling(0.1651, lateral="free", longitudinal="free")
    kinds = {name: ax.Rolling(0.1651) for name in WHEELS[2:]} | dict.fromkeys(WHEELS[:2], slips)
    robot = ax.load(tmp_path / "robot.urdf", base="floating", wheels=kinds)
    assert robot.derive().mobility.mobility == 4  # two motions, and two wheels that spin idly


def test_links_become_mecanum_wheels(tmp_path):
    """A platform of three motions: turning all wheels alike drives it straight."""
    text = files.four_wheels("mecanum", 0.0762, 0.18, 0.2, 0.0, mass=18.0)
    angles = (1, -1, -1, 1)
    kinds = {
        name: ax.Mecanum(0.0762, roller_angle=sign * math.pi / 4)
        for name, sign in zip(WHEELS, angles, strict=True)
    }
    robot = ax.load(written(tmp_path, text), base="planar", wheels=kinds)
    mobility = robot.derive().mobility
    assert mobility.mobility == 3
    assert [type(contact.wheel) for contact in robot.contacts] == [ax.Mecanum] * 4


def test_links_become_omni_wheels(tmp_path):
    kinds = {f"wheel_{number}": ax.Omni(0.04) for number in range(3)}
    path = written(tmp_path, files.omni_robot())
    assert ax.load(path, base="planar", wheels=kinds).derive().mobility.mobility == 3
    robot = ax.load(path, base="planar", wheels="proposed")
    assert bodies(robot) == list(kinds)


def test_wheels_of_a_car_steer_and_its_lidar_is_no_wheel(tmp_path):
    robot = proposed(tmp_path, files.ackermann())
    names = [f"{side}_{end}_wheel" for side in ("left", "right") for end in ("rear", "front")]
    assert sorted(bodies(robot)) == sorted(names)
    with pytest.raises(InvalidArgument, match=r"'lidar' is not proposed: cylinder of radius 30 mm"):
        ax.load(tmp_path / "robot.urdf", base="floating", wheels=["lidar"])


REASONS = {
    "far below": (
        files.turtlebot(("-0.081 0 -0.03",)),
        "'caster_0_link' reaches 30 mm below the lowest wheel",
    ),
    "upright": (
        files.turtlebot().replace("-1.57 0 0", "0 0 0"),
        "wheel_left_link: cylinder of radius 33 mm: its axis is upright",
    ),
    "across": (
        files.turtlebot().replace('<axis xyz="0 0 1"/>', '<axis xyz="0 1 0"/>'),
        "its axis is 90 degrees off joint 'wheel_left_link_joint'",
    ),
    "beside": (
        files.turtlebot().replace(
            files.cylinder(0.033, 0.018), files.cylinder(0.033, 0.018, "0.01 0 0")
        ),
        "its centre is 10 mm beside joint 'wheel_left_link_joint'",
    ),
    "mesh": (
        files.turtlebot().replace(files.cylinder(0.033, 0.018), ""),
        "wheel_left_link: has only meshes",
    ),
    "slider": (
        files.turtlebot().replace("continuous", "prismatic"),
        "joint 'wheel_left_link_joint' is no hinge",
    ),
    "fixed": (
        files.turtlebot().replace("continuous", "fixed"),
        "wheel_left_link: cylinder of radius 33 mm: turns with the base",
    ),
}


@pytest.mark.parametrize("case", REASONS)
def test_every_candidate_is_listed_with_the_reason_why_it_is_none(tmp_path, case):
    text, reason = REASONS[case]
    with pytest.raises(InvalidArgument, match="no link looks like a wheel") as refused:
        proposed(tmp_path, text)
    assert reason in str(refused.value)


def test_a_wheel_above_the_others_is_named_with_its_gap(tmp_path):
    text = files.turtlebot().replace('xyz="0 0.08 0.023"', 'xyz="0 0.08 0.035"')
    with pytest.raises(InvalidArgument, match=r"its lowest point is 12 mm above the ground"):
        ax.load(written(tmp_path, text), base="floating", wheels=["wheel_left_link"])


def test_a_fixed_base_names_the_wheels_that_would_roll(tmp_path, capsys):
    path = written(tmp_path, files.turtlebot())
    with pytest.warns(OmissionWarning, match='base="floating"') as caught:
        ax.load(path)
    assert caught[0].filename == __file__
    assert "wheel_left_link, wheel_right_link" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.load(path, base="fixed")
        ax.load(path, wheels=())
    with pytest.raises(InvalidArgument, match=r"is fixed to the ground; base = .floating."):
        ax.load(path, wheels="proposed")
    with pytest.raises(SystemExit, match="0"):
        main(["check", str(path)])
    said = capsys.readouterr()
    assert "base=floating" in said.out + said.err


def test_an_arm_on_a_table_has_no_wheels(tmp_path):
    """Cylinders about horizontal hinges, above a foot: nothing is proposed, and nothing warns."""
    parts = [files.link("foot", files.box("0.2 0.2 0.1"), mass=5.0, moment=0.05)]
    for name, parent in (("upper", "foot"), ("lower", "upper")):
        solid = files.cylinder(0.05, 0.1, rpy="1.5708 0 0")
        parts.append(files.link(name, solid, mass=1.0, moment=0.01))
        parts.append(files.joint(parent, name, "revolute", "0 0 0.3", axis="0 1 0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.load(written(tmp_path, files.robot("arm", *parts)))


@pytest.mark.parametrize("wrong", [{"wheel_left_link": 0.1}, {3: ax.Omni(0.1)}])
def test_kinds_of_wheels_are_checked(tmp_path, wrong):
    with pytest.raises(InvalidArgument, match="wheels must be 'proposed' or names of links"):
        ax.load(written(tmp_path, files.turtlebot()), base="planar", wheels=wrong)
