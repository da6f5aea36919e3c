"""All roots of polynomial families, by parameter homotopy."""

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.problems.kinematics.polynomial_family import PolynomialFamily
from axode.problems.kinematics.solve_family import solve_family
from benchmarks.platform_numbers import dietmaier, platforms
from benchmarks.platforms import gough_stewart


@pytest.fixture(scope="module")
def six_legs():
    return gough_stewart()


def residuals(family, parameters, roots):
    """Largest residual at each root, relative to the derivatives by the unknowns."""
    x, p = np.moveaxis(roots, -1, 0), np.moveaxis(parameters[:, np.newaxis], -1, 0)
    from axode.problems.kinematics.tape_algebra import evaluate_rational

    r = np.abs(evaluate_rational(family.residual_tape, (list(x), list(p)), complex))
    return r.max(axis=0)


def test_platforms_of_six_legs_have_forty_postures(six_legs):
    targets = platforms(8, np.random.default_rng(1))
    found = solve_family(six_legs, targets)
    assert found.count.tolist() == [40] * 8
    assert found.complete.all()
    assert found.error.max() < 1e-9
    assert residuals(six_legs, targets, found.roots).max() < 1e-8


def test_dietmaiers_platform_has_forty_real_postures(six_legs):
    chart = np.random.default_rng(0).normal(size=16)  # a real one, in which they are real
    found = solve_family(six_legs, dietmaier(chart))
    assert found.count.tolist() == [40]
    assert np.abs(found.roots.imag).max() < 1e-8


def test_what_is_no_polynomial_is_refused():
    x, p = ca.SX.sym("x"), ca.SX.sym("p")
    family = PolynomialFamily("wave", ca.Function("r", [x, p], [ca.sin(x) - p]), 1, 1, None)
    with pytest.raises(ax.InvalidArgument, match="uses sin; polynomials are made of"):
        solve_family(family, [[0.0]])
    with pytest.raises(ax.InvalidArgument, match=r"arguments of sizes \(1, 1\), expected \(2, 1\)"):
        PolynomialFamily("wave", family.residual, 2, 1, None)
