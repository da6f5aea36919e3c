"""Newton's method on many systems at once: masks, units, limits, redundant and impossible rows."""

import numpy as np
import pytest

from axode.numerics.newton import (
    difference_jacobian,
    find_roots,
    quick_step,
    truncated_step,
    unit_length,
)
from axode.numerics.tolerances import CLOSED

RADII = np.array([1.0, 2.0, 0.5, 3.0])


class Circles:
    """Each run: a point on a circle about the origin, of a radius of its own."""

    def __init__(self, radii=RADII, copies=1):
        self.radii, self.copies = np.asarray(radii), copies
        self.evaluated: list[list[int]] = []

    def residual(self, x, runs):
        self.evaluated.append(runs.tolist())
        radii = self.radii[runs, np.newaxis]
        row = (x**2).sum(axis=1, keepdims=True) / radii - radii
        return np.repeat(row, self.copies, axis=1)

    def jacobian(self, x, runs):
        row = 2 * x[:, np.newaxis] / self.radii[runs, np.newaxis, np.newaxis]
        return np.repeat(row, self.copies, axis=1)


@pytest.mark.parametrize("step", [truncated_step, quick_step])
@pytest.mark.parametrize("copies", [1, 3])
def test_every_run_goes_to_the_nearest_root(step, copies):
    """Steps of least norm stay on the ray through the guess; rows may be redundant."""
    guess = np.array([[0.9, 0.0], [1.0, 1.0], [0.1, 0.3], [-2.0, 1.0]])
    circles = Circles(copies=copies)
    x, error = find_roots(circles.residual, circles.jacobian, guess, step=step)
    along = guess / np.linalg.norm(guess, axis=1, keepdims=True)
    assert x == pytest.approx(RADII[:, np.newaxis] * along, abs=1e-12)
    assert (error < CLOSED).all()


def test_runs_that_are_finished_are_not_evaluated_again():
    guess = np.array([[1.0, 0.0], [2.1, 0.0], [0.0, 0.5], [0.0, 30.0]])
    circles = Circles()
    find_roots(circles.residual, circles.jacobian, guess)
    assert circles.evaluated[0] == [0, 1, 2, 3] and circles.evaluated[1] == [1, 3]
    assert circles.evaluated[-1] == [3]


def test_a_run_without_a_root_leaves_the_others_alone():
    """x^2 = -1 has none: its best residual is reported."""
    offset = np.array([1.0, -4.0, np.nan])
    x, error = find_roots(
        lambda x, runs: x**2 + offset[runs, np.newaxis],
        lambda x, runs: 2 * x[..., np.newaxis],
        np.array([[3.0], [3.0], [3.0]]),
    )
    assert x[1] == pytest.approx(2.0) and error[1] < CLOSED
    assert error[0] == pytest.approx(1.0, abs=1e-6) and np.isnan(error[2])


def test_unknowns_of_no_unit_are_held():
    circles = Circles([1.0])
    x, _ = find_roots(
        circles.residual, circles.jacobian, np.array([[0.6, 0.1]]), columns=np.array([0.0, 1.0])
    )
    assert x[0] == pytest.approx([0.6, 0.8], abs=1e-12) and x[0, 0] == 0.6


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e4])
def test_accuracy_is_relative_to_the_units(length):
    """Lengths of micrometres and of kilometres take the same steps."""
    small = find_roots(Circles([1.0]).residual, Circles([1.0]).jacobian, np.array([[0.3, 0.1]]))
    circles = Circles([length])
    scaled = find_roots(
        circles.residual,
        circles.jacobian,
        length * np.array([[0.3, 0.1]]),
        rows=length,
        columns=length,
    )
    assert scaled[0] / length == pytest.approx(small[0], abs=1e-12)


def test_no_step_is_longer_than_the_limit():
    visited = []

    def residual(x, runs):
        visited.append(x[0, 0])
        return x - 5.0

    find_roots(residual, lambda x, runs: np.ones((1, 1, 1)), np.array([[0.0]]), max_step=0.5)
    assert visited == pytest.approx([0.5 * k for k in range(11)])


def test_rows_that_contradict_are_fitted():
    """Least squares where no root exists, and no drift along what nothing determines."""
    A = np.array([[1.0, 0.0], [1.0, 0.0]])
    x, _ = find_roots(
        lambda x, runs: x @ A.T - [1.0, 3.0], lambda x, runs: A[np.newaxis], np.array([[0.0, 7.0]])
    )
    assert x[0, 0] == pytest.approx(2.0, abs=1e-9) and x[0, 1] == 7.0


def test_derivatives_by_differences():
    circles, runs = Circles(), np.arange(4)
    x = np.random.default_rng(0).normal(size=(4, 2))
    found = difference_jacobian(circles.residual, 1e-5)(x, runs)
    assert found == pytest.approx(circles.jacobian(x, runs), abs=1e-9)


def test_machines_of_about_a_metre_are_measured_in_metres():
    assert [unit_length(x) for x in (1e-3, 0.1, 0.7, 1.0, 12.0)] == [1e-3, 1.0, 1.0, 1.0, 12.0]


def test_a_step_where_lapack_gives_up(monkeypatch):
    """It does so on a few matrices of sound numbers, and not on their transposes."""
    J = np.random.default_rng(2).normal(size=(3, 5, 4))
    r, damping = np.ones((3, 5)), np.zeros(3)
    wanted = truncated_step(J, r, damping)
    svd = np.linalg.svd

    def weak(A, **options):
        if A.ndim > 2 or np.array_equal(A, J[1]):
            raise np.linalg.LinAlgError
        return svd(A, **options)

    monkeypatch.setattr(np.linalg, "svd", weak)
    assert np.allclose(truncated_step(J, r, damping), wanted, rtol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        truncated_step(np.full((1, 2, 2), np.nan), np.ones((1, 2)), np.zeros(1))
