"""Inertia that joints have by themselves, as of rotors that nothing drives."""

import numpy as np
import pytest

import axode as ax


def arm(armature=0.0, motor=None) -> ax.Mechanism:
    """A shoulder that turns, a slide on it and a ball at the end."""
    robot = ax.Mechanism("arm")
    joints = (ax.Revolute("y"), ax.Prismatic("x"), ax.Spherical())
    for name, parent, joint in zip("abc", ("ground", "a", "b"), joints, strict=True):
        robot.add_body(name, mass=1.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.2, 0.3))
        robot.add_joint(name, joint, parent=parent, child=name, at=(0.5, 0, 0), armature=armature)
    for speed in ("a.rate", "b.rate", "c.wx", "c.wy", "c.wz") if motor else ():
        robot.add_motor(speed, speed, rotor_inertia=motor)
    return robot


def test_armature_is_a_rotor_without_an_input():
    rotor, plain = arm(motor=0.7).derive().compile(), arm(0.7).derive()
    model = plain.compile()
    assert not model.inputs and plain.mobility.actuation == "unactuated"
    q, nu = model.home + 0.0, np.linspace(-1, 1, 5)
    q[:2] = 0.4, 0.1
    for function in ("mass_matrix", "potential_force"):
        assert np.abs(getattr(model, function)(q) - getattr(rotor, function)(q)).max() < 1e-14
    theirs = rotor.forward_dynamics(q, nu, np.zeros(5))
    assert np.abs(model.forward_dynamics(q, nu) - theirs).max() < 1e-13


def test_armature_of_every_speed_adds_to_the_mass_matrix():
    bare, model = (arm(value).derive().compile("interpreter") for value in (0.0, 0.7))
    added = model.mass_matrix(model.home) - bare.mass_matrix(bare.home)
    assert np.abs(added - 0.7 * np.eye(5)).max() < 1e-14


def test_a_file_keeps_armature(tmp_path):
    robot = arm(ax.Parameter("I_r", 0.2) * 2)
    robot.save(tmp_path / "arm.toml")
    assert ax.load(tmp_path / "arm.toml") == robot


def test_armature_that_nothing_can_have_is_reported():
    robot = arm(-1.0)
    ends = {"parent": "ground", "child": "c"}
    robot.add_joint("d", ax.Spherical(), **ends, armature=0.1)
    with pytest.raises(ax.MechanismError) as caught:
        robot.check()
    text = str(caught.value)
    assert text.count("armature: must be >= 0 kg m^2, got -1") == 3
    assert "[loop.d] armature: a joint that closes a loop has no speeds to feel it" in text
