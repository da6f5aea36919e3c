"""Sensitivities of runs: against gradients, against differences of runs, on a GPU."""

import numpy as np
import pytest

import axode as ax
from emulated_gpu import install
from tests.problems import machines
from tests.problems.gradient_robots import four_bar, pendulum, swing
from variants import further


@pytest.mark.slow
@pytest.mark.parametrize("method", ["rk4", further("dopri5")])
def test_sensitivities_are_the_gradients_of_every_sample(method):
    law, model = ax.Law(swing, kp=60.0, kd=15.0), pendulum()
    of = ["kp", "mass", "start.pitch"]
    given = {"start": {"pitch": 0.2}, "input": law, "method": method}
    step = {"step": 2e-3} if method == "rk4" else {}
    run = ax.simulate(model, 0.4, save_every=0.1, sensitivities=of, **given, **step)
    for signal in ("pitch", "base.surge"):
        found = ax.gradient(ax.Cost(model, 0.4, final=signal, **given, **step), of)
        for name in of:
            assert run.sensitivity(signal, name)[-1] == pytest.approx(
                float(found[name]), rel=1e-7 if method == "dopri5" else 1e-11, abs=1e-13
            )
    plain = [
        ax.simulate(model, 0.4, save_every=0.1, **(given | {"input": law.changed(kp=kp)}), **step)
        for kp in (59.99, 60.01)
    ]
    assert np.isnan(run.sensitivity("left.normal", "kp")).all()  # a force that nobody can tell
    for signal in ("left.torque", "kinetic", "left.longitudinal", "base.x"):
        expected = (plain[1][signal] - plain[0][signal]) / 0.02
        scale = np.abs(expected).max()
        assert np.abs(run.sensitivity(signal, "kp") - expected).max() < 1e-5 * scale, signal


@pytest.mark.slow
@pytest.mark.parametrize("method", [further("rk4"), "auto"])
def test_sensitivities_of_batches_events_and_changed_speeds(method):
    step = 2e-4 if method == "rk4" else None
    model, rates = machines.four_bar("rocker"), np.array([17.0, 20.0])
    given = {"method": method, "step": step, "save_every": 0.1}
    run = ax.simulate(
        model, 0.5, start={"crank.rate": rates}, sensitivities=["start.crank.rate"], **given
    )
    assert run.info["switches"] >= 1
    ends = [
        ax.simulate(model, 0.5, start={"crank.rate": rates + k}, **given) for k in (-1e-4, 1e-4)
    ]
    for signal in ("rocker", "rocker.rate", "crank.rate"):
        expected = (ends[1][signal] - ends[0][signal]) / 2e-4
        found = run.sensitivity(signal, "start.crank.rate")
        assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()
    stop = ax.Event("turned", lambda s: s["crank"] - 2.0, stop=True)
    one = ax.simulate(
        model,
        5.0,
        start={"crank.rate": 17.0},
        sensitivities=["start.crank.rate"],
        events=stop,
        **given,
    )
    two = [
        ax.simulate(model, 5.0, start={"crank.rate": 17.0 + k}, events=stop, **given)
        for k in (-1e-4, 1e-4)
    ]
    expected = (two[1].final["crank.rate"] - two[0].final["crank.rate"]) / 2e-4
    assert one.sensitivity("crank.rate", "start.crank.rate")[-1] == pytest.approx(
        expected, rel=1e-5
    )
    assert one.sensitivity("crank", "start.crank.rate")[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("method", ["rk4", further("dopri5")])
def test_a_gpu_follows_the_same_changes(monkeypatch, method):
    install(monkeypatch)
    given = {"start": {"theta1": np.linspace(0.7, 0.9, 5)}, "method": method}
    runs = [
        ax.simulate(four_bar(), 0.2, sensitivities=["m2"], save_every=0.06, target=place, **given)
        for place in ("cpu", "cuda")
    ]
    here, there = (run.sensitivity("theta1", "m2") for run in runs)
    np.testing.assert_allclose(there, here, rtol=1e-8, atol=1e-12)
    assert np.abs(here[:, 1:]).min() > 0.0
