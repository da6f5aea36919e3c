"""Right-hand sides of models for integrators of other libraries."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import axode as ax
from tests.problems import machines

PRECISE = {"rtol": 1e-11, "atol": 1e-12}


@pytest.mark.parametrize(
    ("name", "start", "u"),
    [
        ("four_bar", {"theta1": 0.6, "theta1_dot": 1.0}, None),
        ("wheeled_pendulum", {"theta3": 0.3, "psi_dot": 0.5}, [0.1, -0.2]),
    ],
)
def test_solve_ivp_agrees_with_simulate(name, start, u):
    model = ax.gallery.build(name).derive().compile("interpreter")
    state = ax.assemble(model, start)
    x = np.concatenate([state.q, state.nu])
    given = {} if u is None else {"input": dict(zip(model.inputs, u, strict=True))}
    times = [0.0, 0.1, 0.45, 1.0]
    run = ax.simulate(model, 1.0, start=state, method="dopri5", t_eval=times, **PRECISE, **given)
    assert run.time.tolist() == times
    found = solve_ivp(model.rhs, (0.0, 1.0), x, "DOP853", t_eval=run.time, args=(u,), **PRECISE)
    names = (*model.coordinates, *model.independent)
    np.testing.assert_allclose(found.y, [run[name] for name in names], atol=1e-9)
    assert np.abs(found.y[:, -1] - x).max() > 0.01


def test_time_parameters_and_columns_of_states():
    bot = ax.Mechanism("driven")
    mass = bot.add_body("mass", mass=ax.Parameter("m", 2.0), com=(0, 0, 0), inertia=(1, 1, 1))
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=mass)
    bot.add_body("base", mass=1.0, com=(0, 0, 0), inertia=(1, 1, 1))
    bot.add_joint("shake", ax.Prismatic("x"), parent=bot.ground, child="base")
    bot.prescribe("shake", "0.1 * t**2")
    bot.add_motor("rail", "rail")
    model = bot.derive().compile("interpreter")
    x = np.array([0.0, 0.9, 1.0])  # rail, shake, rate of the rail
    found = model.rhs(3.0, x, {"rail.force": 4.0}, parameters={"m": 8.0})
    np.testing.assert_allclose(found, [1.0, 0.6, 0.5], atol=1e-14)
    both = model.rhs(3.0, np.stack([x, 2 * x], axis=1))
    np.testing.assert_allclose(both[:, 0], model.rhs(3.0, x))
    np.testing.assert_allclose(both[:, 1], model.rhs(3.0, 2 * x))
    with pytest.raises(ax.InvalidArgument, match=r"2 coordinates and 1 speeds are needed"):
        model.rhs(0.0, [1.0, 2.0])


@pytest.mark.parametrize("x", [np.array([1j, 0.0]), ["1", "2"], b"ab"])
def test_what_is_no_number_is_refused(x):
    model = machines.slider()
    with pytest.raises(ax.InvalidArgument, match="x"):
        model.rhs(0.0, x)
