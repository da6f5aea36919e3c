"""Coordinates from their rates: closed forms, jumps, both ways of time."""

import numpy as np
import pytest

from axode.problems.inverse.quadrature import integrate

T = np.linspace(0.0, 10.0, 101)


def run(rates, times=T, start=1.0):
    """Rates of t and q, from a start."""
    return integrate(
        lambda t: lambda q: rates(t[:, np.newaxis], q), times, np.array([start]), 1e-11
    )


CLOSED_FORMS = {
    "decay": (lambda t, q: -q, lambda t: np.exp(-t)),
    "growth": (lambda t, q: 0.5 * q, lambda t: np.exp(0.5 * t)),
    "waves": (lambda t, q: np.cos(30 * t) + 0 * q, lambda t: 1 + np.sin(30 * t) / 30),
    "stiff": (
        lambda t, q: -20 * (q - np.sin(t)),
        lambda t: (400 * np.sin(t) - 20 * np.cos(t) + 421 * np.exp(-20 * t)) / 401,
    ),
    "logistic": (lambda t, q: q * (2 - q), lambda t: 2 / (1 + np.exp(-2 * t))),
    "jump": (lambda t, q: (t > np.pi) + 0 * q, lambda t: 1 + np.maximum(t - np.pi, 0)),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms(name):
    rates, exact = CLOSED_FORMS[name]
    found, reached = run(rates)
    assert reached == T[-1]
    np.testing.assert_allclose(found[:, 0], exact(T), rtol=1e-10, atol=1e-10)


def test_backwards_in_time_and_at_few_times():
    rates, exact = CLOSED_FORMS["logistic"]
    back, reached = run(rates, np.array([1.0, 0.9, 0.05, 0.0]), float(exact(1.0)))
    assert reached == 0.0
    np.testing.assert_allclose(back[:, 0], exact(np.array([1.0, 0.9, 0.05, 0.0])), rtol=1e-11)
    ends, _ = run(rates, T[[0, -1]])
    np.testing.assert_allclose(ends[:, 0], exact(T[[0, -1]]), rtol=1e-11)


def test_what_grows_without_bound_tells_where():
    _, reached = run(lambda t, q: q**2)  # 1 / (1 - t)
    assert abs(reached - 1.0) < 1e-6


def test_what_falls_into_line_quickly_takes_few_calls():
    """Newton's method where repeated sweeps converge on very short intervals only."""
    calls = 0

    def rates(t, q):
        nonlocal calls
        calls += 1
        return -400 * (q - np.sin(t)) + np.cos(t)

    found, reached = run(rates, start=0.0)
    assert reached == T[-1] and calls < 400
    np.testing.assert_allclose(found[:, 0], np.sin(T), atol=1e-9)
