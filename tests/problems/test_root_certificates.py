"""Interval arithmetic contains what it should, and certificates prove what they say."""

from fractions import Fraction
from operator import add, mul, sub, truediv

import casadi as ca
import numpy as np
import pytest

import polynomial_families
from axode.kinematics.polynomials.polynomial_family import (
    IntervalArray,
    PolynomialFamily,
    certify_roots,
    polish_roots,
)


def random_intervals(rng, count):
    middle = rng.normal(size=count) * 10.0 ** rng.integers(-8, 8, count)
    width = np.abs(middle) * 10.0 ** rng.integers(-17, 1, count)
    return IntervalArray.between(middle - width, middle + width)


@pytest.mark.parametrize("operation", [add, sub, mul, truediv])
def test_intervals_contain_the_exact_result_at_all_ends(operation):
    rng = np.random.default_rng(1)
    a, b = random_intervals(rng, 300), random_intervals(rng, 300)
    made = operation(a, b)
    for k in range(300):
        low, high = made.ends[:, k]
        if not np.isfinite([low, high]).all():
            assert operation is truediv and b.ends[0, k] <= 0 <= b.ends[1, k]
            continue
        for x in a.ends[:, k]:
            for y in b.ends[:, k]:
                exact = operation(Fraction(x), Fraction(y))
                assert Fraction(low) <= exact <= Fraction(high)
    assert ((-a).ends == -a.ends[::-1]).all()


def circle_and_line(distance):
    """x^2 + y^2 = 1 and y = p: two real roots, one double one, or none."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p")
    rows = ca.vertcat(ca.sumsqr(x) - 1, x[1] - p)
    family = PolynomialFamily("test circle", ca.Function("r", [x, p], [rows]), 2, 1, None)
    return family, np.array([[distance]])


@pytest.mark.parametrize("distance", [0.0, 0.6, 1 - 1e-5, 1 - 1e-9])
def test_regular_roots_are_certified(distance):
    family, p = circle_and_line(distance)
    x, error = polish_roots(family, [[np.sqrt(1 - distance**2) * (1 + 1e-9), distance]], p)
    assert error.max() < 1e-15
    made = certify_roots(family, x, p)
    assert made.certified.all()
    exact = np.sqrt((1 - distance) * (1 + distance))
    assert abs(x[0, 0] - exact) <= made.radius[0, 0] < 1e-4


@pytest.mark.parametrize(
    ("distance", "point"), [(1.0, (0.0, 1.0)), (1.0 + 1e-9, (0.0, 1.0)), (0.6, (0.4, 0.6))]
)
def test_double_roots_and_points_beside_roots_are_not(distance, point):
    family, p = circle_and_line(distance)
    made = certify_roots(family, [point], p)
    inside = made.certified & (np.abs(made.radius[:, 0]) >= 0.4)
    assert not made.certified.any() or inside.all()


def test_complex_roots_are_polished():
    family = polynomial_families.parabola()
    x, error = polish_roots(family, [[1j + 1e-5], [-1j]], [[1, 0, 1], [1, 0, 1]])
    assert x[:, 0] == pytest.approx([1j, -1j]) and error.max() < 1e-15


def test_where_there_is_no_inverse_nothing_is_proved():
    family = polynomial_families.parabola()
    _, error = polish_roots(family, [[1.0]], [[1.0, -2.0, 1.0]])
    assert np.isnan(error).all()
    assert not certify_roots(family, [[1.0]], [[1.0, -2.0, 1.0]]).certified.any()
