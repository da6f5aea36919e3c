"""Directions and rotations with as many digits as drawings have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import axode as ax


def skew(digits: int | None) -> ax.Mechanism:
    """Build an arm whose directions and rotations are rounded."""
    turn = Rotation.from_rotvec([0.3, -0.8, 1.1])
    wxyz, R = turn.as_quat(scalar_first=True), turn.as_matrix()
    if digits is not None:
        wxyz, R = np.round(wxyz, digits), np.round(R, digits)
    bot = ax.Mechanism("skew")
    bot.add_body("a", mass=1.0, shape=ax.Cylinder(0.1, 0.5, axis=R[:, 1]))
    bot.add_body("b", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
    bot.add_body("c", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
    bot.add_joint("p", ax.Revolute(R[:, 0]), parent=bot.ground, child="a", rotation=R)
    bot.add_joint("q", ax.Universal(R[:, 1], R[:, 2]), parent="a", child="b", rotation=wxyz)
    bot.add_joint("r", ax.Prismatic(R[:, 2]), parent="b", child="c", at=(0.1, 0.2, 0.3))
    return bot


def test_directions_of_four_digits_are_made_unit_vectors():
    q = [0.3, 0.5, -0.4, 0.2]
    exact, rounded = (skew(digits).derive().compile("interpreter") for digits in (None, 4))
    poses = rounded.poses(q)[..., :3, :3]
    np.testing.assert_allclose(poses @ np.swapaxes(poses, -1, -2), [np.eye(3)] * 3, atol=1e-14)
    # the directions themselves are known to four digits
    np.testing.assert_allclose(rounded.mass_matrix(q), exact.mass_matrix(q), atol=5e-4)


@pytest.mark.parametrize("digits", [2, 3])
def test_directions_of_fewer_digits_are_refused(digits):
    with pytest.raises(ax.MechanismError, match=r"\[joint.p\] axis: must be a unit vector"):
        skew(digits).check()


def test_directions_of_parameters_are_held_to_seven_digits():
    """Values given later are not made unit vectors, so that an error would go unnoticed."""
    bot = ax.Mechanism("leaning")
    bot.add_body("body", mass=1.0, inertia=(0.1, 0.2, 0.25))
    axis = (ax.Parameter("x", 0.7071), 0.0, 0.7071)
    bot.add_joint("hinge", ax.Revolute(axis), parent=bot.ground, child="body")
    with pytest.raises(ax.MechanismError, match=r"got length 0\.99999"):
        bot.check()
