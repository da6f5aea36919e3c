"""Derivatives of assembled starts: by equations and steps of the search, and by differences."""

from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.model.signals import STATE_KINDS
from axode.problems.arguments import checked_parameters, read_state
from axode.problems.gradients.start_derivatives import StartDerivatives
from axode.problems.simulate.starts import find_starts
from tests.problems.test_gradients import balancer
from variants import further

DIFFERENCES = 3e-9  # relative: of what differences of `assemble` are exact to, at the least


@cache
def model_of(name):
    return balancer() if name == "balancer" else ax.gallery.build(name).derive().compile()


def derivatives_of(name, start, parameters):
    model = model_of(name)
    given = read_state(model, start, "start")
    p = checked_parameters(model, parameters)
    starts = find_starts(model, given, 0.0, p, ())
    values = list(model.signals.names(*STATE_KINDS).by_full_name(given.named))
    return StartDerivatives(model, given.named, starts, 0.0, values, list(model.parameters))


HOME = 0.2  # [m]: length of the five-bar's first links
SOLVED = [
    ("five_bar", {}, {}),  # home, which is closed
    ("five_bar", {}, {"l1": 1.04 * HOME}),  # from home, open at this length: steps decide
    ("five_bar", {"theta1": 1.5}, {"l1": 1.04 * HOME}),
    ("five_bar", {"theta1": 1.5, "theta2": 1.7, "phi1_dot": 0.3, "phi2_dot": -0.2}, {}),
    ("balancer", {"pitch": 0.2}, {"radius": 0.11}),  # quaternion, wheels, a measure
    ("balancer", {"pitch": 0.2, "left.rate": 0.6, "right.rate": 0.3}, {}),
    ("balancer", {"pitch": 0.2, "surge": 0.6}, {}),  # what is not named rests if it can
    further("gough_stewart", {"position.x": 0.02, "pitch": 0.05}, {"b1x": 0.51}),
]


@pytest.mark.parametrize(("name", "start", "parameters"), SOLVED)
def test_equations_and_steps_of_the_search(name, start, parameters):
    """They tell what differences of `assemble` approach."""
    found = derivatives_of(name, start, parameters)
    assert found._exact.exact.all()
    wanted, n = found._differences(np.arange(1)), found.starts.q.shape[1]
    largest = max(np.abs(change).max() for change in wanted.values())
    for key, change in wanted.items():
        both = np.concatenate([found.along[key][part] for part in ("q", "nu")], axis=1)
        assert np.abs(both - change).max() < DIFFERENCES * largest, key
    assert n == found.along[next(iter(wanted))]["q"].shape[1]


def test_gradients_of_batches():
    """Weights of every run, with starts of its own or shared, those of rest by differences."""
    lengths = HOME * np.array([1.0, 1.02, 1.04, 1.0])
    rng = np.random.default_rng(0)
    for start, exact in (
        ({"theta1": 1.5, "phi1_dot": np.array([0.2, 0.1, 0.0, 0.0])}, 2),
        ({"theta1": np.array([1.5, 1.4, 1.6, 1.5]), "theta1_dot": 0.2}, 4),
        ({"theta1": 1.5}, 4),
    ):
        found = derivatives_of("five_bar", start, {"l1": lengths})
        assert found._exact.exact.sum() == exact
        weights = {"q": rng.normal(size=(4, 4)), "nu": rng.normal(size=(4, 2))}
        sums = found.pull_back(weights)
        for key, change in found.along.items():
            wanted = sum((weights[part] * change[part]).sum(axis=1) for part in ("q", "nu"))
            assert np.allclose(sums[key], wanted, rtol=1e-9, atol=1e-9), key
    masses = {"m1": np.linspace(0.5, 0.7, 16)}
    many = derivatives_of("five_bar", {"theta1": np.repeat([1.5, 1.6], 8)}, masses)
    assert len(many._different[0]) == 2  # and their slopes are found once
    weights = {"q": rng.normal(size=(16, 4)), "nu": np.zeros((16, 2))}
    sums = many._picked(many._exact.pull_back(weights))
    assert all(np.allclose(sum, sums[key]) for key, sum in many.pull_back(weights).items())


def test_starts_that_fail_beside_others():
    """A run without a start leaves the derivatives of the others as they are."""
    found = derivatives_of("five_bar", {"theta1": 1.5}, {"c": np.array([0.12, 5.0, 0.13])})
    assert list(found.starts.failed.runs) == [1] and list(found._exact.exact) == [True, False, True]
    alone = derivatives_of("five_bar", {"theta1": 1.5}, {"c": 0.13})
    assert np.allclose(found.along["l1"]["q"][2], alone.along["l1"]["q"][0], rtol=1e-12)
    weights = {"q": np.full((3, 4), np.nan), "nu": np.zeros((3, 2))}
    weights["q"][::2] = 1.0
    assert np.isfinite(found.pull_back(weights)["l1"][::2]).all()
