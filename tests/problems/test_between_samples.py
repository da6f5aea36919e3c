"""Between the samples of a run is the motion itself, to the run's own tolerance."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import axode as ax
from tests.problems import machines
from tests.problems.test_continuation import LAW, SAMPLES, WAVE, shaken

EXACT = 2e-9  # of motions of about one, at the default tolerance
START = {"pin": 0.4}


def fine_and_coarse(model: ax.Model, duration: float, **options: Any) -> Any:
    """One motion with many samples and with few."""
    every = abs(duration) / 40
    fine = ax.simulate(model, duration, save_every=every, **options)
    return fine, ax.simulate(model, duration, save_every=13 * every, **options)


@pytest.mark.parametrize("input", [WAVE, SAMPLES, LAW, None], ids=["wave", "samples", "law", "led"])
@pytest.mark.parametrize("duration", [2.0, -2.0])
def test_all_signals_are_those_of_a_finer_run(input: Any, duration: float):
    options = {"t0": 0.3, "start": START, "input": input, "backwards": duration < 0}
    fine, coarse = fine_and_coarse(shaken(led=input is None), duration, **options)
    found = coarse.resample(fine.time)
    for name in fine:
        np.testing.assert_allclose(found[name], fine[name], atol=EXACT, err_msg=name)
    assert found.energy_error < EXACT
    one = coarse.between(coarse.time[1], coarse.time[3]).at(fine.time[20])
    assert max(abs(one[name] - fine[name][20]) for name in fine) < EXACT
    again = found.resample(fine.time[5:9])
    np.testing.assert_array_equal(again["pin"], found["pin"][5:9])
    assert coarse.at(coarse.time[1])["pin"] == coarse["pin"][1]


def test_loops_stay_closed():
    model, start = machines.four_bar(), {"crank": 1.0, "crank.rate": 9.0}
    fine, coarse = fine_and_coarse(model, 2.0, start=start)
    between = coarse.at(fine.time[17])
    q = np.array([between[name] for name in model.coordinates])
    assert np.abs(model.residual(q)).max() < 1e-12
    for name in (*model.coordinates, *model.speed_names):
        assert between[name] == pytest.approx(fine[name][17], abs=100 * EXACT)
    went_on = ax.simulate(model, 0.05, start=between)
    assert went_on.energy_error < EXACT


def test_runs_that_changed_their_speeds_go_on():
    """The rocker's rate vanishes while the crank goes round."""
    model, start = machines.four_bar("rocker"), {"crank": 1.0, "crank.rate": 9.0}
    fine, coarse = fine_and_coarse(model, 1.0, start=start)
    assert coarse.info["switches"]
    found = coarse.resample(fine.time)
    for name in (*model.coordinates, "kinetic", "supplied", "error"):
        np.testing.assert_allclose(found[name], fine[name], atol=100 * EXACT, err_msg=name)


def test_batches_are_nan_beyond_their_ends():
    stop = ax.Event("down", "pin", stop=True)
    options = {"input": WAVE, "events": stop, "start": {"pin": [0.4, -0.5, 0.2]}}
    fine = ax.simulate(shaken(), 2.0, save_every=0.02, **options)
    coarse = ax.simulate(shaken(), 2.0, save_every=0.1, **options)
    time = fine.time[fine.time <= coarse.ended.max()]
    found = coarse.resample(time)
    assert not found.energy_error.max() > EXACT and len(set(coarse.lengths)) > 1
    for run in range(3):
        last = int((time <= coarse.ended[run]).sum())
        assert np.isnan(found["pin"][run, last:]).all()
        np.testing.assert_allclose(found["pin"][run, :last], fine["pin"][run, :last], atol=EXACT)
        alone = coarse.run(run).resample(time[:last])
        np.testing.assert_allclose(alone["error"], found["error"][run, :last], atol=EXACT)


def test_fixed_steps_lose_nothing_between_them():
    fixed = ax.simulate(shaken(), 1.0, start=START, input=WAVE, method="rk4", save_every=0.25)
    exact = ax.simulate(shaken(), 0.6007, start=START, input=WAVE)
    assert fixed.at(0.6007)["pin"] == pytest.approx(exact["pin"][-1], abs=EXACT)


def test_joined_runs_go_on_in_their_pieces():
    first = ax.simulate(shaken(), 1.0, start=START, input=WAVE, save_every=0.5)
    joined = first + ax.simulate(shaken(), 1.0, start=first, input=WAVE, save_every=0.5)
    whole = ax.simulate(shaken(), 2.0, start=START, input=WAVE, save_every=0.1)
    found = joined.resample(whole.time)
    for name in ("pin", "supplied", "dissipated", "error"):
        np.testing.assert_allclose(found[name], whole[name], atol=EXACT, err_msg=name)


def test_what_does_not_know_the_motion_refuses(tmp_path: Path):
    run = ax.simulate(shaken(), 1.0, start=START, save_every=0.25)
    run.save(tmp_path / "run.npz")
    shifted = run.changed(time=run.time + 1.0)
    pushed = ax.simulate(shaken(), 1.0, input=ax.Callback(lambda t, s: [1.0]), save_every=0.25)
    for lacking in (ax.Trajectory.load(tmp_path / "run.npz"), copy.copy(run), shifted, pushed):
        with pytest.raises(ax.InvalidArgument, match=r'(?s)between its samples.*"interpolate"'):
            lacking.at(lacking.time[1] + 0.1)
        assert lacking.at(lacking.time[1])["pin"] == lacking["pin"][1]
        assert np.isfinite(lacking.at(lacking.time[1] + 0.1, method="interpolate")["pin"])


def test_batches_of_any_shape_take_their_inputs_to_other_speeds():
    """Inputs that differ from run to run, along two axes, go along where runs change speeds."""
    model, torques = machines.four_bar("rocker"), np.array([0.0, 0.1, 0.2])
    start = {"crank": 1.0, "crank.rate": np.array([[8.0], [9.0]])}
    input = {model.inputs[0]: torques}
    many = ax.simulate(model, 1.0, start=start, input=input, save_every=0.1)
    assert many.info["switches"] and many.batch == (2, 3)
    start["crank.rate"] = 9.0
    alone = ax.simulate(model, 1.0, start=start, input={model.inputs[0]: 0.2}, save_every=0.1)
    last = many.run((1, 2))
    for name in (*model.coordinates, "supplied"):
        np.testing.assert_allclose(last[name], alone[name], atol=100 * EXACT, err_msg=name)
    between = last.at(0.123)
    assert between["supplied"] == pytest.approx(alone.at(0.123)["supplied"], abs=100 * EXACT)
