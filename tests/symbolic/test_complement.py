"""Blocks of the complement: a detour by way of cheaper speeds must be accurate everywhere."""

import casadi as ca
import numpy as np
import pytest

from axode.symbolic.algebra.linear import Block
from axode.symbolic.constraints.complement import Complement
from axode.symbolic.constraints.redundant_rows import RankReport

SHARED = np.array([[1.0, 0.5], [-0.3, 0.8]])  # both rows mention the last two speeds
SAMPLE = np.hstack([np.eye(2), SHARED])


@pytest.mark.parametrize(("own", "detour"), [(1.0, True), (1e-3, False)])
def test_a_detour_is_taken_only_if_it_is_accurate_at_home(own, detour):
    """Each row's own speed makes a block of one, unless that speed nearly vanishes at home."""
    home = np.hstack([own * np.eye(2), SHARED])
    report = RankReport((0, 1), (), (), (), (SAMPLE,), home_matrix=(home,))
    zero = ca.SX.zeros(2)

    complement = Complement.of(ca.SX(SAMPLE), zero, zero, report, [0, 1])

    assert complement.base.independent == ((2, 3) if detour else (0, 1))
    assert complement.is_direct is not detour


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_pivots_change_sign_with_the_determinant(size: int):
    """A step that leads across a singular matrix of any size is noticed."""
    entries = ca.SX.sym("A", size, size)
    pivot = ca.Function("pivot", [entries], [Block.of(entries).pivot])
    given = np.random.default_rng(size).normal(size=(40, size, size))
    found = np.array([float(pivot(A)) for A in given])
    np.testing.assert_array_equal(np.sign(found), np.sign(np.linalg.det(given)))
    assert (found > 0).any() and (found < 0).any() and np.abs(found).max() <= 1 + 1e-12
