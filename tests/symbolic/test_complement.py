"""Blocks of the complement: a detour by way of cheaper speeds must be accurate everywhere."""

import casadi as ca
import numpy as np
import pytest

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
