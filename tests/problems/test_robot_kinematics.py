"""Kinematics of a robot: its output body and its driven coordinates."""

import pytest

import axode as ax

ELBOWS = tuple(f"theta_{leg}4" for leg in ("I", "II", "III", "IV", "V", "VI"))


def test_output_and_driven_coordinates_are_found():
    robot = ax.Kinematics(ax.gallery.build("six_legged_platform"))
    assert robot.output == "platform"
    assert robot.driven == ELBOWS
    assert "move 'platform'" in repr(robot)


def test_the_end_of_a_serial_chain_is_its_output():
    robot = ax.Kinematics(ax.gallery.build("seven_axis_arm"))
    assert robot.output == robot.mechanism.bodies[-1].name
    assert len(robot.driven) == 7


def test_coordinates_may_be_named_by_their_joints():
    robot = ax.Kinematics(ax.gallery.build("five_bar"), "tool", driven=["shoulder1", "theta2"])
    assert robot.driven == ("theta1", "theta2")
    assert robot.mobility == 2
    assert robot.model.coordinates == robot.equations.coordinates


def test_what_cannot_be_found_must_be_named():
    with pytest.raises(ax.InvalidArgument, match=r"name the output body, output=.*coupler"):
        ax.Kinematics(ax.gallery.build("four_bar"))
    bar = ax.gallery.build("five_bar")
    with pytest.raises(ax.UnknownName, match="has no body 'toool'"):
        ax.Kinematics(bar, "toool")
    with pytest.raises(ax.UnknownName, match=r"unknown joint or coordinate 'phi3'.*'sholder1'"):
        ax.Kinematics(bar, "tool", driven=["phi3", "sholder1"])
    with pytest.raises(
        ax.InvalidArgument, match="Kinematics, driven: expected a list of names, got 'theta1'"
    ):
        ax.Kinematics(bar, "tool", driven="theta1")
    with pytest.raises(ax.InvalidArgument, match="names one of them twice"):
        ax.Kinematics(bar, "tool", driven=["theta1", "shoulder1"])
    with pytest.raises(
        ax.InvalidArgument, match="Kinematics, mechanism: expected a Mechanism, got 3"
    ):
        ax.Kinematics(3)
    with pytest.raises(ax.InvalidArgument, match=r"ball_I\.qw are parts of quaternions, which no"):
        ax.Kinematics(ax.gallery.build("flight_simulator"), driven=["l_I", "ball_I.qw"])
    bar.drives.clear()
    with pytest.raises(ax.InvalidArgument, match="no coordinate has a motor; name those"):
        ax.Kinematics(bar, "tool")
