"""Rotations in batches, in all forms in which they are given."""

import numpy as np
import pytest

import axode as ax
from axode.numerics.rotations import angles_between, as_rotations, from_quaternions, to_quaternions
from problems.holding_arms import rotation


def test_every_form_is_the_same_rotation():
    rng = np.random.default_rng(1)
    angles = rng.uniform(-3, 3, size=(50, 3))
    R = as_rotations("r", angles)
    assert np.allclose(R, [rotation(a) for a in angles])
    q = to_quaternions(R)
    assert np.allclose(np.linalg.norm(q, axis=-1), 1)
    assert np.allclose(from_quaternions(q), R)
    assert np.allclose(as_rotations("r", q), R)
    assert np.allclose(as_rotations("r", np.round(R, 6)), R, atol=2e-6)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 1.0, np.pi - 1e-6, np.pi])
def test_angles_between_rotations(angle):
    start = rotation((0.3, -1.0, 2.0))
    turned = start @ rotation((0, angle, 0))
    assert abs(angles_between(start, turned) - angle) < 1e-7
    assert np.allclose(from_quaternions(to_quaternions(turned)), turned)


def test_what_is_no_rotation():
    with pytest.raises(ax.InvalidArgument, match="not a rotation matrix: its columns are unit"):
        as_rotations("r", np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ax.InvalidArgument, match="a quaternion w x y z has the length 1"):
        as_rotations("r", np.array([1.0, 1.0, 0.0, 0.0]))
    with pytest.raises(ax.InvalidArgument, match=r"quaternions w x y z \(..., 4\) or roll"):
        as_rotations("r", np.array([1.0, 1.0]))
