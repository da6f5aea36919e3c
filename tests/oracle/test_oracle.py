"""The oracle itself: closed forms, its own two ways, and the derived equations."""

import math

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.oracle.body_laws import Oracle
from axode.oracle.machine import real
from axode.oracle.numbers import Jet, motion_at
from axode.oracle.twist_rows import matrix_of, speed_forms
from laws.cases import ROUNDING, SOLVED, agree, case_of

G = 9.81
# One of each joint, loop, wheel, ground and relation.
NAMES = (
    "all_joints_tree",
    "massless_coupler",
    "loop_screw",
    "loop_planar",
    "rolling_disk",
    "disk_on_plate",
    "fixed_wheel",
    "vehicle_3",
    "prescribed_yaw",
    "steered_plate",
    "coupled_tree",
    "parametric_loop",
)


def test_a_pendulum():
    bot = ax.Mechanism("pendulum")
    rod = bot.add_body("rod", mass=2.0, com=(0, 0, -0.3), inertia=(0.05, 0.05, 0.01))
    bot.add_joint("pin", ax.Revolute("x"), parent=bot.ground, child=rod)
    angle = 0.7
    expected = -2.0 * G * 0.3 * math.sin(angle) / (0.05 + 2.0 * 0.3**2)
    found = Oracle(bot).forward(np.array([angle]), np.array([1.3]), np.zeros(0))
    np.testing.assert_allclose(found, [expected], rtol=1e-13)


def test_a_ball_that_rolls_down_a_slope():
    """a = g sin(slope) / (1 + I / m r^2), whatever point of the ball its frame is at."""
    slope, r, m = 0.4, 0.2, 1.5
    bot = ax.Mechanism("ball")
    ball = bot.add_body("ball", mass=m, inertia=ax.Inertia.sphere(m, r))
    normal = (math.sin(slope), 0.0, math.cos(slope))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=ball)
    bot.add_contact("skin", ax.Ball(r), body=ball, ground=ax.Plane(normal=normal))
    q = np.array([1.0, 0, 0, 0, *(r * np.array(normal))])
    found = Oracle(bot).forward(q, np.zeros(6), np.zeros(0))
    along = np.array([math.cos(slope), 0.0, -math.sin(slope)])
    np.testing.assert_allclose(found[3:], G * math.sin(slope) / 1.4 * along, atol=1e-12)


def test_a_body_that_tumbles():
    """Euler's equations of a free body."""
    bot = ax.Mechanism("top", gravity=(0, 0, 0))
    top = bot.add_body("top", mass=2.0, inertia=(0.1, 0.15, 0.2))
    bot.add_joint("free", ax.Floating(), parent=bot.ground, child=top)
    w, inertia = np.array([0.3, -1.1, 2.0]), np.array([0.1, 0.15, 0.2])
    q = np.array([0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0])
    found = Oracle(bot).forward(q, np.array([*w, 0, 0, 0]), np.zeros(0))
    np.testing.assert_allclose(found[:3], -np.cross(w, inertia * w) / inertia, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_derived_equations(name):
    """Inverse dynamics by virtual power, forward dynamics by all bodies at once, all rows."""
    case = case_of(name)
    e, system, oracle = case.equations, case.system, Oracle(case.mechanism)
    v_dot = ca.SX.sym("v_dot", system.tree.v.shape[0])
    forces = ca.Function("f", [e.q, system.tree.v, v_dot, e.t, e.p], [e._by.tree_forces(v_dot)])
    accelerations = ca.substitute(e.accelerations, e.nu_dot, e.forward_dynamics)
    for state in case.states:
        some = np.random.default_rng(1).normal(size=len(state.v))
        need = oracle.inverse(state.q, state.v, some)
        mine = np.array(forces(state.q, state.v, some, state.t, state.p)).ravel()
        assert (np.abs(mine - need.value) <= ROUNDING * need.size).all()
        found = oracle.forward(state.q, state.v, state.u, state.t)
        agree(case.vector(state, accelerations), found, SOLVED, "accelerations")
        rows = oracle.rows(state.q, state.v, state.t)
        assert rows.names == tuple(row.name for row in system.rows)
        agree(rows.A[list(system.report.kept)] @ state.v, rows.b[list(system.report.kept)])


@pytest.mark.parametrize("name", ["all_joints_tree", "platform"])
def test_speeds_are_read_off_the_motion_that_they_cause(name):
    """Forms that read joint speeds off twists undo the directions that make these."""
    case = case_of(name)
    oracle, q = Oracle(case.mechanism), case.states[0].q
    forms = matrix_of(speed_forms(oracle, real(oracle.frames(q))), len(oracle.body_names) - 1)
    agree(forms @ oracle.jacobian(q), np.eye(len(oracle.speeds)))


def test_motions_are_differentiated():
    """Two derivatives of every function a formula may hold, by differences."""
    t = ax.Mechanism("t")
    t.prescribe(
        "x",
        lambda s: (
            np.sin(s) ** 2 / (1 + np.exp(-s))
            - np.tanh(s) * np.sqrt(s) ** 3
            + np.arctan(s)
            + np.log(s) * np.cos(s)
            + np.arcsin(s / 9)
            - np.arccos(s / 8)
            + np.tan(s / 3)
            + 2.0**s
            + s**-1.5
        ),
    )
    motion, at, h = t.prescribed[0].motion, 0.8, 1e-4
    before, here, after = (motion_at(motion, {}, at + d) for d in (-h, 0.0, h))
    assert isinstance(here, Jet)
    # central differences are off by h^2 of a third derivative, and by rounding
    assert abs((after.x - before.x) / (2 * h) - here.d) < 1e-6
    assert abs((after.d - before.d) / (2 * h) - here.dd) < 1e-6
