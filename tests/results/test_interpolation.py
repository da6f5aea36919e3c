"""Values between samples: order of convergence, samples to the bit, quaternions, ends, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from axode.errors import InvalidArgument
from axode.results.interpolation import REACH
from tests.results import runs

ROUNDING = 1e-14
QUATERNION = ["base.qw", "base.qx", "base.qy", "base.qz"]


def largest_error(samples: int, name: str, method: str | None = None) -> float:
    run = runs.one(np.linspace(0, 2, samples))
    asked = np.linspace(0, 2, 777)
    return float(np.abs(run.resample(asked, method=method)[name] - runs.motion(asked)[name]).max())


def test_cubic_splines_are_of_fourth_order_and_lines_of_second():
    order = np.log2(largest_error(41, "pitch") / largest_error(81, "pitch"))
    assert 3.7 < order < 4.3
    order = np.log2(largest_error(41, "pitch", "linear") / largest_error(81, "pitch", "linear"))
    assert 1.8 < order < 2.2
    assert largest_error(41, "pitch") < 2e-6


def test_what_jumps_does_not_overshoot():
    asked = np.linspace(0, 2, 777)
    lines = runs.one().resample(asked)["left.torque"]
    assert lines.min() == 0.0 and lines.max() == 3.0
    curves = runs.one().resample(asked, method="cubic")["left.torque"]
    assert curves.min() < -0.1 and curves.max() > 3.1


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), min_size=1, unique=True).map(sorted), st.booleans())
@settings(deadline=None, max_examples=40)
def test_samples_are_given_back_to_the_bit(chosen, backwards):
    run = runs.one(np.linspace(0, 2, 41)[:: -1 if backwards else 1])
    again = run.resample(run.time[chosen])
    assert again.values.tobytes() == run.values[chosen].tobytes()
    assert again.time.tobytes() == run.time[chosen].tobytes()


def test_one_time_by_name():
    run = runs.one()
    there = run.at(0.777)
    assert list(there) == list(run.names) and isinstance(there["pitch"], float)
    assert there["pitch"] == pytest.approx(np.sin(0.777), abs=1e-6)
    assert run.at(0.05)["pitch"] == run["pitch"][1]
    many = runs.batch((2, 2))
    scaled = np.array([[1, 2], [3, 4]]) * np.sin(0.777)
    np.testing.assert_allclose(many.at(0.777)["pitch"], scaled, rtol=1e-5)


def test_a_far_sample_is_not_felt():
    time = np.linspace(0, 60, 1201)
    run = runs.one(time)
    assert len(time) / 2 > 2 * REACH  # or the window would be all of it
    for t in (0.01, 17.33, 59.99):
        whole = CubicSpline(time, run["pitch"])(t)
        assert run.at(t)["pitch"] == pytest.approx(float(whole), abs=ROUNDING)


def test_quaternions_stay_unit():
    run = runs.one(np.linspace(0, 12, 9))  # coarse: the splines alone are far from unit
    asked = np.linspace(0, 12, 321)
    norms = np.linalg.norm(run.resample(asked)[QUATERNION].values, axis=-1)
    np.testing.assert_allclose(norms, 1.0, atol=ROUNDING)
    loose = runs.one(run.time, quaternions=()).resample(asked)[QUATERNION].values
    assert np.abs(np.linalg.norm(loose, axis=-1) - 1).max() > 1e-3


def test_quaternions_by_other_names():
    run = runs.one(np.linspace(0, 12, 9))
    names = tuple(name.replace("base.q", "turn ") for name in run.names)
    kinds = dict(zip(names, run.kinds.values(), strict=True))
    group = ("turn w", "turn x", "turn y", "turn z")
    renamed = runs.one(run.time, names=names, kinds=kinds, quaternions=[group])
    asked = np.linspace(0, 12, 50)
    assert renamed.resample(asked).values.tobytes() == run.resample(asked).values.tobytes()


def test_a_quaternion_that_changes_sign_is_the_same_orientation():
    run = runs.one()
    values = run.values.copy()
    values[20:, 1:5] *= -1
    flipped, asked = runs.one(values=values), np.linspace(0.01, 1.99, 100)
    got = flipped.resample(asked)[QUATERNION].values
    want = run.resample(asked)[QUATERNION].values
    np.testing.assert_allclose(np.abs((got * want).sum(axis=-1)), 1.0, atol=ROUNDING)


def test_backwards_in_time():
    run = runs.one(np.linspace(2, 0, 41))
    np.testing.assert_allclose(run.resample([1.9, 0.333])["pitch"], np.sin([1.9, 0.333]), atol=2e-6)
    assert run.ended == 0.0 and len(run.between(1.5, 0.5)) == 21


def test_nothing_beyond_the_end_of_a_run():
    many = runs.batch((3,), lengths=[41, 11, 0])
    asked = np.linspace(0, 2, 101)
    again = many.resample(asked)
    np.testing.assert_array_equal(again.lengths, [101, 26, 0])
    np.testing.assert_array_equal(np.isnan(again.values).all(axis=-1).sum(axis=-1), [0, 75, 101])
    np.testing.assert_allclose(again["pitch"][1, :26], 2 * np.sin(asked[:26]), atol=1e-5)
    alone = many.run(1).resample(asked[:26])
    np.testing.assert_array_equal(alone.values, again.values[1, :26])


def test_nan_stays_in_its_column_and_place():
    values = runs.one().values.copy()
    values[10, 0] = np.nan
    values[:, 1] = np.inf
    again = runs.one(values=values, quaternions=()).resample(np.linspace(0, 2, 81))
    assert set(np.flatnonzero(np.isnan(again["pitch"]))) == {19, 20, 21}
    assert np.isfinite(again["pitch.rate"]).all()


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_few_samples(samples):
    run = runs.one(np.linspace(0, 1, samples) if samples > 1 else [0.0])
    assert run.at(0.0)["pitch"] == 0.0
    if samples == 2:
        assert run.at(0.25)["pitch"] == pytest.approx(0.25 * np.sin(1), rel=1e-14)


def test_no_columns():
    assert runs.one()[[]].resample([0.1, 0.2]).values.shape == (2, 0)


def test_times_outside_are_refused():
    run = runs.one()
    for ask in (lambda: run.resample([0.5, 2.5]), lambda: run.at(2.5)):
        with pytest.raises(InvalidArgument) as caught:
            ask()
        assert str(caught.value) == (
            "2.5 s lies outside trajectory of 'balancer'; its time goes from 0 s to 2 s."
        )
    with pytest.raises(InvalidArgument, match="nan s lies outside"):
        run.at(np.nan)
    assert run.at(2.0 * (1 + 1e-15))["pitch"] == run.final["pitch"]  # rounding is forgiven


def test_other_refusals():
    run = runs.one()
    with pytest.raises(InvalidArgument, match="'quintic' is none of 'interpolate'"):
        run.resample([1.0], method="quintic")
    for times in ([1.0, 0.5], [1.0, 1.0]):
        with pytest.raises(InvalidArgument, match="times: they have to go one way"):
            run.resample(times)
    for times in ([], 1.0, [[1.0]]):
        with pytest.raises(InvalidArgument, match="times: a list of times is needed, not shape"):
            run.resample(times)
