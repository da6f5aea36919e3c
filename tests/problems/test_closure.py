"""Loops stay closed, quaternions unit, prescribed motions on their way; and what that costs."""

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from tests.problems import machines
from variants import further

OPEN = 1e-10  # [m] at any time
TIGHT = {"rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize(
    ("name", "duration"),
    [further("platform", 40.0), further("platform", 200.0), ("four_bar", 1000.0)],
)
def test_loops_stay_closed(name: str, duration: float):
    """A million steps of a four-bar, and fewer of a platform."""
    model = getattr(machines, name)()
    start = {"base.vx": 0.1, "base.wz": 0.2} if name == "platform" else {"crank.rate": 15.0}
    run = ax.simulate(model, duration, start=start, method="rk4", step=1e-3, save_every=0.5)
    assert run.info["steps"] == round(1000 * duration) and run["residual"].max() < OPEN
    assert run.energy_error < 1e-5  # the method's own, at this step
    moving = np.ptp(run["base.x"]) > 0.01 if name == "platform" else run["crank"][-1] > 100
    assert moving


def test_steps_themselves_are_closed():
    """Not only the samples: what the last step leaves is closed before it is recorded."""
    model = machines.four_bar()
    states: list[dict[str, float]] = []
    given = ax.Callback(lambda t, s: states.append(dict(s)) or [0.0])
    ax.simulate(model, 0.5, start={"crank.rate": 15.0}, method="rk4", step=1e-3, input=given)
    q = np.array([[state[name] for name in model.coordinates] for state in states])
    assert len(q) == 500 and np.abs(model.residual(q)).max() < OPEN


def test_quaternions_stay_unit():
    run = ax.simulate(
        machines.rolling_disk(),
        60.0,
        method="rk4",
        step=1e-3,
        start={"base.wx": 0.3, "base.wy": 8.0, "base.wz": 0.4},
    )
    four = np.stack([run[f"base.q{c}"] for c in "wxyz"])
    assert np.abs(np.linalg.norm(four, axis=0) - 1).max() < 1e-14
    assert run["residual"].max() < OPEN and np.ptp(four, axis=1).min() > 0.5


def test_prescribed_motion_and_its_force():
    """A pivot shaken along a line: the drive's force is what moves the masses, and it does work."""
    bot = random_mechanisms.shaken_pendulum()
    model = bot.derive().compile()
    run = ax.simulate(model, 4.0, start={"pin0": 0.6}, **TIGHT)
    t = run.time
    assert run["shake"] == pytest.approx(0.1 * np.sin(7 * t) + 0.05 * t**2, abs=OPEN)
    assert run["shake.rate"] == pytest.approx(0.7 * np.cos(7 * t) + 0.1 * t, abs=1e-9)
    assert run.energy_error < 1e-9 and run["dissipated"][-1] > 0.01
    # power of the drive: its force times its speed; integrated, what was supplied
    power = run["shake.prescribed.force"] * run["shake.rate"]
    work = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * np.diff(t))])
    assert run["supplied"] == pytest.approx(work, abs=2e-3 * np.abs(work).max())
    assert np.abs(run["shake.prescribed.force"]).max() > 1.0


@pytest.mark.slow
def test_prescribed_loops_on_wheels():
    """A crank driven by the clock inside a loop on a rolling base; free parameters too."""
    model = random_mechanisms.driven_five_bar().derive().compile()
    run = ax.simulate(model, 3.0, start={"base.surge": 0.3}, **TIGHT)
    assert run["ja"] == pytest.approx(-1.9 + 0.4 * np.sin(3 * run.time), abs=OPEN)
    assert run["residual"].max() < OPEN and run.energy_error < 1e-8
    assert np.abs(run["supplied"]).max() > 0.1


def test_time_and_parameters_together():
    """The depth of the shaking is a parameter: a batch of depths."""
    model = random_mechanisms.shaken_pendulum().derive().compile(parameters="free")
    depths = np.array([0.0, 0.1, 0.2])
    run = ax.simulate(model, 2.0, parameters={"depth": depths}, **TIGHT)
    exact = depths[:, None] * np.sin(7 * run.time) + 0.05 * run.time**2
    assert run["shake"] == pytest.approx(exact, abs=OPEN)
    assert run.energy_error.max() < 1e-9
    late = ax.simulate(model, 1.0, t0=1.0, parameters={"depth": 0.1}, **TIGHT)
    assert late["shake"] == pytest.approx(
        0.1 * np.sin(7 * late.time) + 0.05 * late.time**2, abs=OPEN
    )
