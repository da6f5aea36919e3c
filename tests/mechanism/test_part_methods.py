"""Parts of a mechanism by name, and numbers of an imported robot that become parameters."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import axode as ax
from axode.gallery import build

DIFFDRIVE = Path(__file__).parents[2] / "examples" / "diffdrive.urdf"


def loaded() -> ax.Mechanism:
    return ax.load(DIFFDRIVE, base="floating", wheels="proposed")


def test_parts_are_found_by_name():
    robot = loaded()
    assert robot.body("left_wheel").mass == 0.8
    assert robot.body("ground") is robot.ground
    assert robot.joint("left_wheel_joint").child == "left_wheel"
    assert robot.contact("slider").wheel.radius == 0.03
    assert build("four_bar").joint(build("four_bar").loops[0].name)
    for look, name in ((robot.body, "left_weel"), (robot.joint, "left"), (robot.contact, "x")):
        with pytest.raises(ax.errors.UnknownName, match="mechanism 'diffdrive' has no"):
            look(name)
    with pytest.raises(ax.errors.UnknownName, match="has no body 'ground'"):
        robot.change_body("ground", mass=1.0)


def test_an_imported_mass_becomes_a_parameter():
    """The mass matrix at another value is that of the file with that mass."""
    robot, other = loaded(), loaded()
    robot.change_body("base_link", mass=ax.Parameter("m", 12.0))
    other.change_body("base_link", mass=15.0)
    model, fixed = robot.derive().compile(), other.derive().compile()
    assert list(model.parameters) == ["m"]
    ours = model.mass_matrix(model.home, parameters={"m": 15.0})
    np.testing.assert_allclose(ours, fixed.mass_matrix(fixed.home), rtol=1e-12)


def test_a_body_of_another_density_has_its_inertia_scaled():
    robot = loaded()
    changed = robot.change_body("base_link", mass=24.0, inertia="scaled")
    assert changed.inertia.entries == (0.34, 0.42, 0.7, 0.0, 0.0, 0.0)
    assert robot.change_body("base_link", mass=12.0).inertia == changed.inertia
    with pytest.raises(ax.errors.InvalidArgument, match="'slider' has no mass to scale"):
        robot.change_body("slider", mass=1.0, inertia="scaled")


def test_an_imported_length_becomes_a_parameter():
    """A longer track turns slower at the same rates of the wheels: r (w_r - w_l) / track."""
    robot = ax.load(DIFFDRIVE, base="planar", wheels="proposed")
    half = ax.Parameter("half", 0.2)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        robot.change_joint(f"{side}_wheel_joint", at=(0.0, sign * half, 0.0))
    rates = ("left_wheel_joint.rate", "right_wheel_joint.rate")
    model = robot.derive(independent=rates).compile()
    for value in (0.2, 0.3):
        start = dict(zip(rates, (-1.0, 1.0), strict=True))
        run = ax.simulate(model, 0.1, start=start, parameters={"half": value})
        assert run["base.yaw_rate"][0] == pytest.approx(0.08 * 2 / (2 * value), rel=1e-9)


def test_what_is_not_given_stays():
    robot = loaded()
    joint, contact = robot.joint("left_wheel_joint"), robot.contact("left_wheel")
    assert robot.change_joint("left_wheel_joint") == joint
    assert robot.change_contact("left_wheel") == contact
    changed = robot.change_contact("left_wheel", wheel=ax.Omni(0.08))
    assert (changed.at, changed.axis, changed.plane) == (contact.at, contact.axis, contact.plane)
    assert robot.joint("left_wheel_joint").rotation == joint.rotation


def test_joints_that_close_loops_change_in_their_place():
    bar = build("four_bar")
    loop = bar.loops[0]
    changed = bar.change_joint(loop.name, at=(0.1, 0.2, 0.0))
    assert bar.loops[0] is changed and changed.at == (0.1, 0.2, 0.0)
    assert changed.joint == loop.joint and len(bar.loops) == 1


def test_wrong_values_are_named():
    with pytest.raises(ax.errors.InvalidArgument, match="body 'base_link', mass"):
        loaded().change_body("base_link", mass=[1, 2])
