"""Rotations that loops leave open: the angle from zero to half a turn, refused if constant."""

import math
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import axode as ax
from axode.errors import LoopNotClosed

NEAR = [0.0, 1e-15, 1e-9, 3e-8, 1e-5, 0.01]
ANGLES = [*NEAR, 1.0, math.pi / 2, 2.0, *(math.pi - angle for angle in NEAR)]
ROUNDING = 3e-8  # near half a turn, where sine and cosine do not say more


def rows_of(matrix):
    return tuple(map(tuple, matrix.tolist()))


def held(joint):
    """A body in space, held by a loop, and a slide that moves."""
    bot = ax.Mechanism("held")
    body = bot.add_body("body", mass=1.0, inertia=(1.0, 2.0, 2.5))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    slide = bot.add_body("slide", mass=1.0, inertia=(1.0, 2.0, 2.5))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child=slide)
    bot.add_loop("loop", joint, parent=bot.ground, child=body)
    return bot.derive()


@pytest.fixture(scope="module")
def models():
    return {
        type(joint): held(joint).compile()
        for joint in (ax.Fixed(), ax.Revolute("z"), ax.Cylindrical("z"), ax.Screw("z", pitch=0.1))
    }


def configuration(turn):
    x, y, z, w = turn.as_quat()
    return np.array([w, x, y, z, 0.0, 0.0, 0.0, 0.0])


def opening(model, q, rows):
    r = dict(zip(model.residual_rows, model.residual(q), strict=True))
    return np.array([r[f"loop.{row}"] for row in rows])


@pytest.mark.parametrize("angle", ANGLES)
def test_a_weld_is_open_by_the_angle_of_its_rotation(models, angle):
    generator = np.random.default_rng(int(1e3 * angle))
    for axis in (*np.eye(3), *generator.normal(size=(3, 3))):
        turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis))
        r = opening(models[ax.Fixed], configuration(turn), ("rx", "ry", "rz"))
        assert np.linalg.norm(r) == pytest.approx(angle, abs=ROUNDING, rel=1e-14)
        if angle < 3.0:
            assert np.abs(np.abs(r) - np.abs(turn.as_rotvec())).max() < ROUNDING


@pytest.mark.parametrize("joint", [ax.Revolute, ax.Cylindrical])
@pytest.mark.parametrize("angle", ANGLES)
def test_a_hinge_is_open_by_the_angle_between_its_axes(models, joint, angle):
    for phase in (0.0, 0.3, math.pi / 2, 2.0):
        turn = Rotation.from_euler("zxz", [phase, angle, 0.7])
        r = opening(models[joint], configuration(turn), ("rx", "ry"))
        assert np.linalg.norm(r) == pytest.approx(angle, abs=ROUNDING, rel=1e-14)


@pytest.mark.parametrize("angle", ANGLES)
def test_a_screw_is_open_by_the_advance_of_its_angle(models, angle):
    (r,) = opening(
        models[ax.Screw], configuration(Rotation.from_rotvec([0, 0, angle])), ["advance"]
    )
    assert abs(r) == pytest.approx(0.1 * angle, abs=1e-16, rel=1e-14)


@pytest.mark.parametrize("angle", [*NEAR, 1.0, math.pi / 2, 2.5])
def test_derivatives_are_those_of_the_residual(models, angle):
    """Central differences, next to zero too: there Newton's method needs them most."""
    turn = Rotation.from_rotvec(angle * np.array([0.48, -0.6, 0.64]))
    q, h = configuration(turn), 1e-6
    for model in models.values():
        J = model.residual_jacobian(q)
        assert np.isfinite(J).all()
        steps = [
            (model.residual(q + off) - model.residual(q - off)) / (2 * h) for off in h * np.eye(8)
        ]
        assert np.abs(J - np.stack(steps, axis=-1)).max() < 1e-8


@pytest.mark.parametrize("angle", NEAR)
@pytest.mark.parametrize("joint", [ax.Fixed(), ax.Revolute("z"), ax.Prismatic("z"), ax.Planar()])
def test_homes_that_are_half_a_turn_open_are_refused(joint, angle):
    """Links that slide along each other never turn: nothing closes what rotations leave open."""
    for seed in range(2):
        first, second = Rotation.random(2, random_state=seed)
        axis = np.array([1.0, -0.3, 0.0])
        turn = Rotation.from_rotvec((math.pi - angle) * axis / np.linalg.norm(axis))
        bot = ax.Mechanism("slides")
        outer, inner = (
            bot.add_body(name, mass=1.0, inertia=(1.0, 2.0, 2.5)) for name in ("outer", "inner")
        )
        ways = rows_of(first.as_matrix()), rows_of(second.as_matrix())
        bot.add_joint("out", ax.Prismatic("x"), parent=bot.ground, child=outer, rotation=ways[0])
        bot.add_joint("in", ax.Prismatic("z"), parent=outer, child=inner, rotation=ways[1])
        frame = rows_of((second * turn).as_matrix())
        bot.add_loop("loop", joint, parent=outer, child=inner, rotation=frame)
        with pytest.raises(LoopNotClosed) as caught:
            bot.derive()
        text = str(caught.value)
        assert "check rotation and child_rotation of 'loop'" in text
        assert "loop_tolerance" not in text
        degrees = float(re.search(r"by ([\d.]+) degrees", text).group(1))
        assert degrees == pytest.approx(math.degrees(math.pi - angle), rel=1e-3)


def test_a_home_half_a_turn_away_is_closed_by_turning():
    """Two cranks on one axis: the weld at their tips closes when one has made half a turn."""
    bot = ax.Mechanism("cranks")
    for name in ("one", "other"):
        body = bot.add_body(name, mass=1.0, inertia=(1.0, 2.0, 2.5))
        bot.add_joint(name, ax.Revolute("z"), parent=bot.ground, child=body)
    bot.add_loop("weld", ax.Fixed(), parent="one", child="other")
    bot.set_home(one=0.0, other=math.pi)
    with pytest.warns(ax.errors.RequestNotMetWarning):
        equations = bot.derive()
    one, other = equations.system.home
    assert math.cos(one - other) == pytest.approx(1.0)
    assert equations.mobility.mobility == 1
