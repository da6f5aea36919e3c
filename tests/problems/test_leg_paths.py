"""Legs in numbers: products of constant matrices and motions, as the model has them."""

import numpy as np
import pytest

import axode as ax
from posture_robots import gallery_robot
from variants import further


def motion(joint, values):
    """Motion of one joint of a leg."""
    T, (q, *rest) = np.eye(4), values
    c, s = np.cos(q), np.sin(q)
    if joint.kind == "spherical":
        x, y, z = rest
        K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
        R = np.eye(3) + 2 * q * K + 2 * K @ K
        T[:3, :3] = R.T if joint.inverted else R
    elif joint.kind == "parallelogram":
        T[:2, 3] = joint.size * c, joint.size * s
    else:
        if joint.kind != "prismatic":
            T[:2, :2] = [[c, -s], [s, c]]
        T[2, 3] = {"prismatic": q, "screw": joint.size * q}.get(joint.kind, 0.0)
    return T


def pose_along(leg, named):
    T = leg.constants[0]
    for joint, constant in zip(leg.joints, leg.constants[1:], strict=True):
        T = T @ motion(joint, [named[name] for name in joint.coordinates]) @ constant
    return T


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        further("six_legged_platform", ["RRRR_RR"] * 6),
        further("flight_simulator", ["RRP_S"] * 6),
        ("delta_robot", ["R_RQR"] * 3),
        ("five_bar", ["R_R", "R_RR"]),
        further("five_axis_arm", ["R_R_R_R_R_"]),
        ("dietmaier_platform", ["RRP_S"] * 6),
    ],
)
def test_legs_of_the_gallery_lead_to_the_output(name, letters):
    robot = gallery_robot(name)
    assert [leg.letters for leg in robot.legs] == letters
    named = dict(zip(robot.model.coordinates, robot.model.home, strict=True))
    T = pose_along(robot.legs[0], named)  # the leg in the tree: all its coordinates have names
    assert np.abs(T - robot.home_poses[robot.output]).max() < 1e-12


def every_joint():
    """A chain of every kind of joint, turned and placed at random, some against its direction."""
    rng = np.random.default_rng(4)
    bot = ax.Mechanism("every")
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    joints = [
        ax.Cylindrical(axis),
        ax.Universal("x", "z"),
        ax.Spherical(),
        ax.Screw("y", 0.1),
        ax.Planar("x"),
        ax.Prismatic(axis),
        ax.Revolute("-z"),
    ]
    parent = bot.ground
    for k, joint in enumerate(joints):
        body = bot.add_body(f"b{k}", mass=1, inertia=(1, 1, 1))
        where = {
            "at": rng.normal(size=3),
            "rotation": rng.normal(size=3),
            "child_at": rng.normal(size=3),
            "child_rotation": rng.normal(size=3),
        }
        bot.add_joint(f"j{k}", joint, parent=parent, child=body, **where)
        parent = body
    return bot


def test_every_joint_moves_as_in_the_model():
    robot = ax.Kinematics(every_joint(), driven=["j0.slide", "j4.yaw"])
    model = robot.model
    assert robot.legs[0].letters == "RP_RRSHPPR_PR"
    q = np.random.default_rng(1).normal(size=len(model.coordinates))
    four = [model.coordinates.index(f"j2.q{part}") for part in "wxyz"]
    q[four] /= np.linalg.norm(q[four])
    T = pose_along(robot.legs[0], dict(zip(model.coordinates, q, strict=True)))
    assert np.abs(T - model.poses(q)[-1]).max() < 1e-12


def test_a_leg_may_be_described_from_its_far_end():
    from axode.kinematics.motion_graph import motion_graph

    joints = motion_graph(every_joint()).joints
    for joint in joints:
        again = joint.reverse().reverse()
        assert again.inverted == joint.inverted
        assert (again.first, again.second) == (joint.first, joint.second)


def test_branches_before_the_output_are_refused():
    robot = ax.Kinematics(ax.gallery.build("delta_robot"), "lower1")
    with pytest.raises(ax.NotApplicable, match="a chain of joints ends on 'platform', which is"):
        _ = robot.legs


def test_wheels_are_refused():
    with pytest.raises(ax.NotApplicable, match="bodies may be held by joints only, there are"):
        _ = ax.Kinematics(ax.gallery.build("mobile_manipulator")).legs
