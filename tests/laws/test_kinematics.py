"""Poses, twists and accelerations of the tree."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.symbolic.algebra.spatial import symbolic_vector
from kinematics_by_hand import poses_by_hand
from laws.cases import ROUNDING, agree, case_of
from random_mechanisms import MECHANISMS


def unskew(S):
    return ca.vertcat(S[2, 1], S[0, 2], S[1, 0])


@pytest.mark.parametrize("name", MECHANISMS)
def test_poses_are_those_of_the_description(name):
    case = case_of(name)
    e = case.equations
    for state in case.states:
        by_hand = poses_by_hand(case.mechanism, dict(zip(e.coordinates, state.q, strict=True)))
        for body, pose in e.poses.items():
            R, p = case.at(state, pose.R, pose.p)
            agree(R, by_hand[body][:3, :3], ROUNDING, f"orientation of {body}")
            agree(p.ravel(), by_hand[body][:3, 3], ROUNDING, f"position of {body}")


@pytest.mark.parametrize("name", MECHANISMS)
def test_twists_are_the_rates_of_poses(name):
    case = case_of(name)
    e = case.equations
    for body in case.mechanism.bodies:
        pose = e.poses[body.name]
        centre = pose.point(symbolic_vector(body.com, case.tree.values))
        rate = ca.vertcat(unskew(case.along(pose.R) @ pose.R.T), case.along(centre))
        for state in case.states:
            mine, right = case.at(state, e.twists[body.name], rate)
            agree(mine, right, ROUNDING, f"twist of {body.name}")


@pytest.mark.parametrize("name", MECHANISMS)
def test_accelerations_are_the_rates_of_speeds(name):
    """Of the dependent speeds: theirs follow from differentiating v = Theta nu + s."""
    case = case_of(name)
    e = case.equations
    for state in case.states:
        mine, right = case.at(state, e.accelerations, case.along(e.v, e.nu_dot))
        agree(mine, right, ROUNDING, "v_dot")


@pytest.mark.parametrize("name", MECHANISMS)
def test_link_accelerations_are_the_rates_of_link_velocities(name):
    """The recursion's w_dot and a against differentiating w and u in the turning axes."""
    case = case_of(name)
    tree = case.tree
    v_dot = ca.SX.sym("v_dot", tree.v.shape[0])
    motion = tree.motion(tree.v, v_dot, gravity=False)
    w, u = tree.velocities(tree.v)
    values = np.random.default_rng(1).normal(size=v_dot.shape[0])

    def rate(x):
        return tree.time_derivative(x) + ca.jtimes(x, tree.v, v_dot)

    exact = ca.vertcat(
        *[
            ca.vertcat(rate(w_i), rate(u_i) + ca.cross(w_i, u_i))
            for w_i, u_i in zip(w, u, strict=True)
        ]
    )
    mine = ca.vertcat(*[ca.vertcat(a, b) for a, b in zip(motion.w_dot, motion.a, strict=True)])
    both = ca.substitute(ca.horzcat(mine, exact), v_dot, ca.DM(values))
    for state in case.states:
        result = case.at(state, both)[0]
        agree(result[:, 0], result[:, 1], ROUNDING, "accelerations of links")


@pytest.mark.parametrize("name", MECHANISMS)
def test_motion_keeps_quaternions_unit(name):
    case = case_of(name)
    for four in case.tree.quaternions:
        q = ca.vertcat(*[case.tree.q[i] for i in four])
        for state in case.states:
            agree(case.vector(state, case.along(ca.sumsqr(q))), [0.0], ROUNDING, "rate of |q|^2")


@pytest.mark.parametrize("tilt", [0.0, 1.1, np.pi])
@pytest.mark.parametrize("across", [(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)])
def test_an_axis_of_parameters_may_point_anywhere(tilt, across):
    """Also straight down: by default, and when a parameter takes it there."""

    def pendulum(angle):
        axis = (across[0] * np.sin(angle), across[1] * np.sin(angle), np.cos(angle))
        bot = ax.Mechanism("pendulum", gravity=(0, -9.81, 0))
        body = bot.add_body("body", mass=1.0, com=(0.3, 0.2, 0.1), inertia=(0.01, 0.02, 0.025))
        bot.add_joint("hinge", ax.Revolute(axis), parent=bot.ground, child=body)
        return bot.derive().compile("interpreter", parameters="free")

    plain = pendulum(tilt)
    there, elsewhere = (pendulum(ax.Parameter("tilt", angle)) for angle in (tilt, 0.7))
    for model, options in ((there, {}), (elsewhere, {"parameters": {"tilt": tilt}})):
        agree(model.poses([0.4], **options), plain.poses([0.4]), ROUNDING, "poses")
        agree(
            model.forward_dynamics([0.4], [0.5], **options),
            plain.forward_dynamics([0.4], [0.5]),
            ROUNDING,
            "acceleration",
        )
