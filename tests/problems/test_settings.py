"""When samples are taken, how long steps are, and what is refused."""

import functools
from decimal import Decimal
from fractions import Fraction
from typing import Any

import casadi
import numpy as np
import pytest

import axode as ax
from tests.problems import machines


def test_samples_are_where_they_were_asked_for():
    """Every 0.3 s and at the end, whatever the method; its steps are never longer than asked."""
    for options in ({}, {"method": "rk4", "step": 0.07}):
        run = ax.simulate(
            machines.slider(), 1.0, start={"rail.rate": 2.0}, save_every=0.3, **options
        )
        assert run.time == pytest.approx([0, 0.3, 0.6, 0.9, 1.0], abs=1e-15)
        assert run["rail"] == pytest.approx(2 * run.time, abs=1e-14)
    assert run.info["step"] == pytest.approx(0.06)


def test_a_last_step_may_be_shorter():
    """The step is the one asked for, 0.3 s, and the end is the end."""
    run = ax.simulate(machines.slider(), 1.0, start={"rail.rate": 1.0}, method="rk4", step=0.3)
    assert run.info["step"] == 0.3 and run.info["steps"] == 4
    assert run.time == pytest.approx([0, 0.3, 0.6, 0.9, 1.0], abs=1e-15)
    assert run.final["rail"] == pytest.approx(1.0, abs=1e-15)


def test_time_does_not_drift():
    """A million steps of a tenth of a millisecond end at a hundred seconds."""
    run = ax.simulate(machines.slider(), 100.0, start={"rail.rate": 1.0}, method="rk4", step=1e-4)
    assert run.info["steps"] == 1_000_000 and run.time[-1] == 100.0
    assert run["rail"] == pytest.approx(run.time, abs=1e-8)  # half an ulp a step, at most


def test_default_samples():
    run = ax.simulate(machines.slider(), 2.0)
    assert len(run) == 501 and run.time[-1] == 2.0
    short = ax.simulate(machines.slider(), 1e-4, method="rk4")
    assert short.time[-1] == 1e-4


@pytest.mark.parametrize("options", [{}, {"method": "rk4", "step": 0.013}])
def test_backwards(options: dict):
    given = {"t0": 5.0, "start": {"rail.rate": 1.0}, "save_every": 0.25, **options}
    with pytest.raises(ax.InvalidArgument, match=r"-1 s is negative.*\n.*backwards=True"):
        ax.simulate(machines.slider(), -1.0, **given)
    with pytest.raises(ax.InvalidArgument, match="duration 1 s goes forwards"):
        ax.simulate(machines.slider(), 1.0, backwards=True, **given)
    run = ax.simulate(machines.slider(), -1.0, backwards=True, **given)
    assert run.time == pytest.approx([5, 4.75, 4.5, 4.25, 4.0])
    assert run.final["rail"] == pytest.approx(-1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "euler"}, "no method 'euler'"),
        ({"rtol": 0.0}, "rtol: must be > 0"),
        ({"atol": -1.0}, "atol: must be > 0"),
        ({"duration": 0.0}, "must not be zero"),
        ({"duration": np.inf}, "duration: must be a finite"),
        ({"save_every": 0.0}, "save_every"),
        ({"step": 1e-3}, "chooses its own steps"),
        ({"method": "rk4", "step": np.nan}, "step: must"),
        ({"method": "rk4", "atol": 1e-6}, "atol: rk4 takes steps of a fixed length"),
        ({"t0": np.nan}, "t0: must be"),
        ({"threads": 0}, "threads: must be a whole number > 0"),
        ({"threads": -1}, "threads: must"),
        ({"threads": 1.5}, "threads: must be a whole number"),
        ({"events": [3]}, "expected Event"),
        ({"events": 3}, "expected Event"),
        ({"events": [ax.Event("a", time=1.0)]}, "'a' has no function to look at"),
        ({"events": [ax.Event("a", "rail", direction=2)]}, "-1"),
        ({"events": [ax.Event("a", "rail"), ax.Event("a", "rail")]}, "called 'a'"),
    ],
)
def test_what_makes_no_sense(options: dict, words: str):
    with pytest.raises(ax.AxodeError, match=words):
        ax.simulate(machines.slider(), options.pop("duration", 1.0), **options)


def test_tolerances_that_fixed_steps_would_ignore_are_refused():
    model = machines.slider()
    for run in (ax.sweep, lambda *a, **given: ax.Cost(*a, final="rail", **given)):
        with pytest.raises(ax.InvalidArgument, match="rtol: rk4 takes steps of a fixed length"):
            run(model, 0.1, step=0.01, rtol=1e-6)
    adaptive = ax.Scenario(model, 0.1, rtol=1e-6)
    assert ax.sweep(adaptive, step=0.01).finished.all()
    assert ax.simulate(adaptive, method="rk4").status == "finished"


@pytest.mark.parametrize("kind", [np.float32, np.array, Fraction, Decimal, casadi.DM])
def test_every_kind_of_number(kind: Any):
    model, half = machines.slider(), kind(0.5)
    run = ax.simulate(model, half, t0=half, save_every=half, step=half, method="rk4")
    assert run.time.tolist() == [0.5, 1.0]
    assert ax.simulate(model, half, rtol=half, atol=half, progress=np.array(0)).time[-1] == 0.5
    assert ax.sweep(model, half, t0=half, step=half).finished.all()
    assert ax.linearize(model, t=half).discretized(half).dt == 0.5
    assert ax.assemble(model, t=half, fix=iter(["rail"])).conditions.t == 0.5


@functools.cache
def oscillator() -> ax.Model:
    """x'' = -x."""
    bot = ax.Mechanism("oscillator", gravity=(0, 0, 0))
    bot.add_body("block", mass=1.0, inertia=(1e-3,) * 3)
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child="block")
    bot.add_spring("spring", "rail", stiffness=1.0)
    return bot.derive().compile()


@pytest.mark.parametrize("method", ["dopri5", "radau9", "rodas5p"])
@pytest.mark.parametrize(
    ("rtol", "atol", "size"),
    [(1e-4, 1e-4, 1.0), (1e-7, 1e-7, 1.0), (1e-6, 1e-3, 1e3), (1e-12, 1e-4, 1e3)],
)
def test_tolerances_are_those_of_the_motion(method: str, rtol: float, atol: float, size: float):
    """Over ten seconds of x = cos(t) errors stay below the tolerance, and near it."""
    run = ax.simulate(oscillator(), 10.0, start={"rail": size}, method=method, rtol=rtol, atol=atol)
    exact = size * np.array([np.cos(run.time), -np.sin(run.time)])
    error = np.abs([run["rail"], run["rail.rate"]] - exact).max()
    assert 0.01 < error / (rtol * size + atol) < 1.0


def test_the_end_of_a_run_is_a_state_in_the_order_of_the_model():
    model = machines.wheeled_pendulum()
    run = ax.simulate(model, 0.1, start={"pitch": [0.1, 0.2]}, save_every=0.05)
    assert run.final.q.shape == (2, len(model.coordinates))
    for k, name in enumerate(model.coordinates):
        np.testing.assert_array_equal(run.final.q[:, k], run.final[name])
    for k, name in enumerate(model.independent):
        np.testing.assert_array_equal(run.run(1).final.nu[k], run.final[name][1])
    again = ax.simulate(model, 0.1, start=(run.final.q, run.final.nu), t0=0.1, save_every=0.05)
    np.testing.assert_array_equal(again["pitch"][:, 0], run["pitch"][:, -1])
    with pytest.raises(ax.errors.UnknownName):
        _ = run[["pitch"]].final.q
    bare = ax.simulate(model, 0.1, start={"pitch": 0.1}).changed(origin=None)
    with pytest.raises(ax.InvalidArgument, match=r"model\.independent"):
        _ = bare.final.nu
