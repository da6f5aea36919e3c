"""Motions that physics or mathematics knows: energy, reversal, order, another integrator."""

from collections.abc import Mapping

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import ellipk

import axode as ax
from axode.problems.runs.settings import Settings
from tests.problems import machines
from tests.problems.machines import G
from variants import slow

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
CONSERVED = 1e-9  # relative, over 90 s at rtol 1e-10
MOTIONS = {
    "rolling_disk": {"base.wx": 0.3, "base.wy": 8.0, "base.wz": 0.4},
    "wheeled_pendulum": {"pitch": 0.7, "left.rate": 3.0, "pitch.rate": 1.0},
    "caster_robot": {"left.rate": 3.0, "right.rate": 1.0, "caster_bracket": 1.0},
    "platform": {"base.vx": 0.1, "base.wz": 0.2, "base.vz": 0.05},
}


@pytest.mark.parametrize("name", slow(MOTIONS, "platform"))
def test_energy_is_conserved(name: str):
    """Nothing supplies or dissipates: kinetic and potential energy keep their sum."""
    run = ax.simulate(getattr(machines, name)(), 90.0, start=MOTIONS[name], **TIGHT)
    total = run["kinetic"] + run["potential"]
    size = max(np.abs(run["kinetic"]).max(), np.abs(run["potential"]).max())
    assert np.ptp(total) < CONSERVED * size
    assert np.abs(run["supplied"]).max() == np.abs(run["dissipated"]).max() == 0
    assert run.energy_error < CONSERVED


@pytest.mark.parametrize("name", MOTIONS)
def test_back_in_time_to_the_start(name: str):
    """From the end backwards: the start again, but for what both ways' errors do (1e-7)."""
    model = getattr(machines, name)()
    there = ax.simulate(model, 3.0, start=MOTIONS[name], **TIGHT)
    end = (state_of(model, there, -1), np.array([there[n][-1] for n in model.independent]))
    back = ax.simulate(model, -3.0, backwards=True, start=end, t0=3.0, **TIGHT)
    assert back.time[-1] == 0.0
    for column in (*model.coordinates, *model.independent):
        assert abs(back[column][-1] - there[column][0]) < 1e-7, column


def state_of(model: ax.Model, run: ax.Trajectory, k: int) -> np.ndarray:
    return np.array([run[name][k] for name in model.coordinates])


@pytest.mark.parametrize("name", MOTIONS)
def test_agrees_with_another_integrator(name: str):
    """DOP853 at 1e-12 drives the same rates without projection; two seconds differ by 1e-8."""
    model = getattr(machines, name)()
    run = ax.simulate(model, 2.0, start=MOTIONS[name], **TIGHT)
    n_q, n = len(model.coordinates), len(model.coordinates) + len(model.independent)
    x0 = [run[c][0] for c in (*model.coordinates, *model.independent)]

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        return model.evaluate("state_rate", {"q": x[:n_q], "nu": x[n_q:]})[:n]

    other = solve_ivp(rate, (0, 2), x0, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=run.time)
    for k, column in enumerate((*model.coordinates, *model.independent)):
        assert np.abs(run[column] - other.y[k]).max() < 1e-8, column


@pytest.mark.parametrize(
    ("method", "order", "counts"),
    [
        ("rk4", 4, (16, 32, 64)),
        ("dopri5", 5, (16, 32, 64)),
        ("dop853", 8, (6, 12)),
        ("rodas5p", 5, (64, 128, 256)),
        ("radau9", 9, (6, 12)),
    ],
)
def test_order_of_convergence(method: str, order: int, counts: tuple[int, ...], monkeypatch):
    """Half the step, 2^-order of the error: within 0.35 of the order.

    Adaptive methods are held to equal steps by samples of an input that does nothing.
    """
    monkeypatch.setattr(Settings, "solve_tolerances", (1e-13, 1e-14))  # of implicit stages
    model, errors = machines.pendulum(), []
    exact = ax.simulate(model, 1.0, start={"pin": 2.0}, rtol=1e-13, atol=1e-14).final["pin"]
    for count in counts:
        options: dict = {"step": 1.0 / count, "method": "rk4"}
        if method != "rk4":
            idle = ax.Sampled({"pin.torque": np.zeros(count + 1)}, period=1.0 / count)
            options = {"rtol": 1e6, "atol": 1e6, "input": idle, "method": method}
        run = ax.simulate(model, 1.0, start={"pin": 2.0}, save_every=1.0, **options)
        assert run.info["steps"] == pytest.approx(count, abs=6)  # the first ones grow to the sample
        errors.append(abs(run.final["pin"] - exact))
    measured = np.diff(-np.log2(errors))
    assert np.abs(measured - order).max() < 0.35, measured


@pytest.mark.parametrize("amplitude", [0.1, 1.0, 3.0])
def test_period_of_a_pendulum(amplitude: float):
    """T = 4 sqrt(l/g) K(sin^2(a/2)): one period on it is where it was, to 1e-9 rad."""
    period = 4 * np.sqrt(1 / G) * ellipk(np.sin(amplitude / 2) ** 2)
    run = ax.simulate(machines.pendulum(), period, start={"pin": amplitude}, **TIGHT)
    assert abs(run.final["pin"] - amplitude) < 1e-9
    assert abs(run.final["pin.rate"]) < 1e-8
    quarter = run.at(period / 2)
    assert abs(quarter["pin"] + amplitude) < 1e-7  # between samples: by splines


def test_tolerance_means_something():
    """A hundred times tighter, at least thirty times more exact."""
    model, errors = machines.pendulum(), []
    exact = ax.simulate(model, 5.0, start={"pin": 2.0}, rtol=1e-13, atol=1e-14).final["pin"]
    for rtol in (1e-5, 1e-7, 1e-9):
        run = ax.simulate(model, 5.0, start={"pin": 2.0}, rtol=rtol, atol=rtol)
        errors.append(abs(run.final["pin"] - exact))
    assert errors[0] > 30 * errors[1] > 900 * errors[2]


def test_dissipation_is_accounted_for():
    """What the damper takes is what the pendulum loses; what the motor gives, it gains."""
    model = machines.pendulum(damping=0.3)
    run = ax.simulate(model, 5.0, start={"pin": 1.0}, input={"pin.torque": "sin(3*t)"}, **TIGHT)
    assert run["dissipated"][-1] > 0.1 and np.abs(run["supplied"]).max() > 0.1
    assert run.energy_error < CONSERVED


def test_first_step_is_chosen_from_the_motion():
    """Slow motions start with long steps, fast ones with short ones; neither wastes many."""
    model = machines.slider()
    slow = ax.simulate(model, 1000.0, start={"rail.rate": 1e-3})
    assert slow.info["steps"] < 20 and slow.final["rail"] == pytest.approx(1.0, abs=1e-9)
    fast = ax.simulate(machines.pendulum(), 1e-3, start={"pin.rate": 5000.0})
    assert fast.info["rejected"] <= 2


def test_default_start_is_home_at_rest():
    run = ax.simulate(machines.pendulum(), 1.0)
    assert np.abs(run["pin"]).max() == 0 and run.status == "finished"
    assert isinstance(run.info, Mapping) and run.info["method"] == "dop853"
