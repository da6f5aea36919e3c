"""Conditions, limits and absolute values: in traced functions, formulas, motions, files, prints."""

import re
import warnings

import casadi as ca
import numpy as np
import pytest

import axode as ax
from tests.problems import machines

EXACT = 1e-12
START = {"rail": 0.3}


def pulse(s):
    """One newton from half a second on, for a second."""
    return [np.where((s.t > 0.5) & (s.t < 1.5), 1.0, 0.0)]


SAME = {
    "and": pulse,
    "or": lambda s: [np.where((s.t < 0.5) | (s.t > 1.5), 0.0, 1.0)],
    "not": lambda s: [np.where(~(s.t > 0.5) | ~(s.t < 1.5), 0.0, 1.0)],
    "a product": lambda s: [1.0 * ((s.t > 0.5) & (s.t < 1.5))],
    "step": lambda s: [np.heaviside(s.t - 0.5, 1) - np.heaviside(s.t - 1.5, 1)],
    "text": {"rail.force": "where(0.5 < t < 1.5, 1, 0)"},
    "text of steps": {"rail.force": "step(t - 0.5) - step(t - 1.5)"},
    "text of limits": {"rail.force": "max(sign(min(t, 2 - t) - 0.5), 0)"},
    "text beside a function": {"rail.force": "(t > 0.5) * step(1.5 - t)"},
}


@pytest.mark.parametrize("name", SAME)
def test_a_pulse_written_in_many_ways(name: str):
    """The step ends where the pulse does, so that a fixed step is exact."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ax.simulate(
            machines.slider(), 2.0, input=SAME[name], method="rk4", step=0.3, save_every=0.25
        )
    forces = {0.25: 0.0, 0.75: 1.0, 1.25: 1.0, 1.75: 0.0}
    for t, force in forces.items():
        assert run.at(t)["rail.force"] == force


def test_conditions_in_measures_and_events():
    bot = machines.slider().equations.system.mechanism.copy()
    bot.measure("inside", lambda s: (s["rail"] > 0.1) & (np.abs(s["rail"]) < 0.4), unit="1")
    bot.measure("angle", lambda s: np.arctan2(np.sign(s["rail"]), np.maximum(s["rail"], 1)))
    model = bot.derive().compile()
    assert model.measures({"rail": 0.3}, {})[0] == 1.0
    assert model.measures({"rail": 0.5}, {})[0] == 0.0
    assert model.measures({"rail": 0.5}, {})[1] == pytest.approx(np.pi / 4)


MOTIONS = {
    "a function": lambda t: np.clip(t, 0.25, 1) ** 2,
    "a function of symbols": lambda t: np.interp(t, [0.25, 1.0], [0.25, 1.0]) ** 2,
    "text": "clip(t, 0.25, 1)**2",
    "limits": "max(0.25, min(t, 1))**2",
    "conditions": "where(t < 0.25, 0.25**2, where((t >= 0.25) and (t <= 1), t*t, 1))",
}


@pytest.mark.parametrize("name", MOTIONS)
def test_motions_with_corners_have_exact_derivatives(name: str):
    times = np.array([0.1, 0.3, 0.6, 0.9, 1.2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = ax.inverse_dynamics(machines.slider(), {"rail": MOTIONS[name]}, times=times)
    moving = (times > 0.25) & (times < 1)
    np.testing.assert_allclose(run["rail"], np.clip(times, 0.25, 1) ** 2, atol=EXACT)
    np.testing.assert_allclose(run["rail.rate"], np.where(moving, 2 * times, 0.0), atol=EXACT)
    np.testing.assert_allclose(run["rail.force"], np.where(moving, 2.0, 0.0), atol=EXACT)


def led(motion) -> ax.Mechanism:
    """A pendulum on a cart that is led."""
    bot = ax.Mechanism("led")
    cart = bot.add_body("cart", mass=1.0, inertia=(0.1, 0.1, 0.1))
    rod = bot.add_body(
        "rod", mass=ax.Parameter("m", 1.0), com=(0, 0, -1.0), inertia=(0.1, 0.1, 0.1)
    )
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("pin", ax.Revolute("y"), parent=cart, child=rod)
    bot.prescribe("rail", motion)
    return bot


@pytest.mark.slow
def test_a_prescribed_motion_with_corners_reaches_files_and_prints(tmp_path):
    """The check at `derive` differentiates the motion a second time, by other means."""
    bot = led(lambda t: np.clip(t, 0, 1) ** 2 + abs(0.1 * t) - np.minimum(t, 2) + np.arctan2(t, 3))
    path = tmp_path / "led.toml"
    bot.save(path)
    assert "clip(t, 0.0, 1.0) ** 2.0 + abs(0.1 * t)" in path.read_text()
    again = ax.load(path)
    assert again == bot
    equations = again.derive()
    assert r"\operatorname{where}" in equations.latex(["energy", "bias"])  # by the side after
    model = equations.to_sympy()
    at = {model.t: 0.6, model.q[-1]: 0.2, model.nu[0]: 0.3, model.p[0]: 2.0}
    F = ca.Function("E", [equations.q, equations.nu, equations.t, equations.p], [equations.energy])
    q = [0.36 + 0.06 - 0.6 + np.arctan2(0.6, 3.0), 0.2][-len(equations.coordinates) :]
    kinetic = float(F(q, [0.3], 0.6, [2.0])[0])
    assert float(model.kinetic.subs({**at, **dict(zip(model.q, q, strict=True))})) == pytest.approx(
        kinetic
    )


def test_minima_in_parameters_are_checked_and_computed():
    """A mass that a formula limits, in one run and in a batch of values."""
    bot = ax.Mechanism("limited", gravity=(0, 0, 0))
    m = ax.Parameter("m", 3.0)
    cart = bot.add_body("cart", mass=np.maximum(np.abs(m), 0.5), inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_motor("rail", "rail")
    model = bot.derive().compile(parameters="free")
    runs = ax.simulate(model, 0.1, input=[1.0], parameters={"m": [-4.0, 0.1, 2.0]}, rtol=1e-10)
    accelerations = runs["rail.rate"][:, -1] / 0.1
    assert accelerations == pytest.approx([1 / 4, 1 / 0.5, 1 / 2])


def test_branches_on_symbols_name_the_remedy():
    words = re.escape("numpy.where, numpy.minimum, numpy.maximum, & and |")
    with pytest.raises(ax.InvalidArgument, match=rf"prescribe 'rail': the condition .*{words}"):
        led(lambda t: max(t, 0.0))
    with pytest.raises(ax.InvalidArgument, match="the function is called once, with symbols"):
        ax.simulate(machines.slider(), 1.0, input=lambda s: [1.0 if 0 < s.t < 1 else 0.0])
