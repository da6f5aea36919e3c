"""Derivatives warn where the time of a jump by the state would contribute to them."""

import warnings

import numpy as np
import pytest

import axode as ax


def slider():
    """A body of 1 kg that slides along x without friction."""
    bot = ax.Mechanism("slider")
    body = bot.add_body("body", mass=ax.Parameter("mass", 1.0), inertia=(1.0, 1.0, 1.0))
    bot.add_joint("x", ax.Prismatic((1, 0, 0)), parent=bot.ground, child=body)
    bot.add_motor("push", "x")
    return bot.derive().compile()


def jump(s, gain):
    return {"push": gain * np.where(s["x"] > 0.5, 1.0, 0.0)}


def kink(s, gain):
    return {"push": gain * np.where(s["x"] > 0.5, s["x"] - 0.5, 0.0)}


def limit(s, gain):
    return {"push": gain * np.clip(s["x"], -0.1, 0.1) + np.abs(s["x"])}


def cost_of(law, start=0.0, **options):
    start = {"x": start, "x.rate": 1.0}
    return ax.Cost(slider(), 1.0, start=start, input=ax.Law(law, gain=2.0), final="x", **options)


FOUND = "the input jumps by the state, at t = 0.5 s"


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
@pytest.mark.parametrize("by", ["gain", "start.x"])
def test_a_law_that_jumps_is_reported(by, method):
    options = {"method": "rk4", "step": 1e-3} if method == "rk4" else {"method": method}
    with pytest.warns(ax.errors.RequestNotMetWarning, match=FOUND):
        ax.gradient(cost_of(jump, **options), [by])


@pytest.mark.parametrize("law", [kink, limit])
def test_kinks_are_not_reported(law):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.gradient(cost_of(law), ["gain", "start.x"])


def test_a_jump_that_is_not_met_is_not_reported():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.gradient(cost_of(jump, start=0.6), ["gain", "start.x"])
        assert cost_of(jump).value() == pytest.approx(1.25, abs=1e-6)  # values are right


def test_what_is_left_out_is_not_small():
    """x is 1 + gain (1 - t)^2 / 2 with t = 0.5 - x0; the time's share by x0 is gain / 2 = 1."""
    with pytest.warns(ax.errors.RequestNotMetWarning):
        found = ax.gradient(cost_of(jump), ["start.x"])
    assert found["start.x"] == pytest.approx(1.0, abs=1e-6)  # and not 2


def test_runs_of_a_batch_are_counted():
    start = {"x": np.linspace(-0.6, 0.6, 13), "x.rate": 1.0}  # 11 of them come past 0.5
    cost = ax.Cost(slider(), 1.0, start=start, input=ax.Law(jump, gain=0.1), final="x")
    with pytest.warns(ax.errors.RequestNotMetWarning, match="in 10 of 13 runs, as in run 2 at"):
        ax.gradient(cost, ["gain"])


@pytest.mark.parametrize("running, jumps", [("sign(x - 0.5)", True), ("abs(x - 0.5)", False)])
def test_running_terms_that_jump_are_reported(running, jumps):
    cost = ax.Cost(slider(), 1.0, start={"x.rate": 1.0}, running=running)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ax.gradient(cost, ["mass"])
    texts = [str(w.message) for w in told]
    assert any("`running` jumps by the state" in text for text in texts) == jumps


def test_sensitivities_report_them_too():
    options = {"start": {"x.rate": 1.0}, "input": ax.Law(jump, gain=2.0), "method": "dopri5"}
    with pytest.warns(ax.errors.RequestNotMetWarning, match=f"sensitivities: {FOUND}"):
        ax.simulate(slider(), 1.0, sensitivities=["gain"], **options)


def test_long_runs_are_looked_through_whole():
    """The jump is some thousand steps from the start, in a later slice of the log."""
    law = ax.Law(lambda s, gain: {"push": gain * np.where(s["x"] > 3.9, 1.0, 0.0)}, gain=0.1)
    cost = ax.Cost(
        slider(), 5.0, start={"x.rate": 1.0}, input=law, final="x", method="rk4", step=1e-3
    )
    with pytest.warns(ax.errors.RequestNotMetWarning, match=r"at t = 3\.9 s"):
        ax.gradient(cost, ["gain"])


def held_jump(s, hold):
    return {"push": np.where(hold(s["x"]) > 0.5, 1.0, 0.0)}


def held_and_jump(s, hold):
    return {"push": hold(s["x"]) - np.where(s["x"] > 0.5, 1.0, 0.0)}


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_a_law_that_takes_samples_jumps_between_them(method):
    """What is sampled changes at samples, whose times do not depend on the state; the rest does."""
    options = {"method": "rk4", "step": 1e-2} if method == "rk4" else {"method": method}
    hold, start = ax.blocks.Hold(0.09), {"x.rate": 1.0}
    cost = ax.Cost(
        slider(), 1.0, start=start, input=ax.Law(held_and_jump, hold=hold), final="x", **options
    )
    with pytest.warns(ax.errors.RequestNotMetWarning, match="the input jumps by the state"):
        ax.gradient(cost, ["start.x"])
    held = ax.Law(held_jump, hold=hold)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax.gradient(
            ax.Cost(slider(), 1.0, start=start, input=held, final="x", **options), ["start.x"]
        )
    running = "push**2 + where(x > 0.5, 1, 0)"
    with pytest.warns(ax.errors.RequestNotMetWarning, match="`running` jumps by the state"):
        ax.gradient(
            ax.Cost(slider(), 1.0, start=start, input=held, running=running, **options), ["start.x"]
        )
