"""A run may start where another one ended."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import axode as ax
from random_mechanisms import MECHANISMS

SAME = 1e-7  # two tolerances of 1e-9 along the way
EXACT = 2e-9  # of motions of about one, at the default tolerance


def test_a_trajectory_goes_on_where_it_ended():
    model = MECHANISMS["balancer"]().derive().compile()
    start = {"base.pitch": 0.1, "base.yaw_rate": 0.2}
    whole = ax.simulate(model, 0.4, start=start, save_every=0.1, rtol=1e-9)
    first = ax.simulate(model, 0.2, start=start, save_every=0.1, rtol=1e-9)
    second = ax.simulate(model, 0.2, start=first, t0=0.2, save_every=0.1, rtol=1e-9)
    joined = first + second
    np.testing.assert_allclose(joined.time, whole.time, atol=1e-12)
    for name in (*model.coordinates, *model.speed_names):
        np.testing.assert_allclose(joined[name], whole[name], atol=SAME, err_msg=name)
    assert np.isnan(first.final["left.lateral"])  # what statics cannot tell is no hindrance


def test_a_batch_goes_on_as_a_batch():
    model = MECHANISMS["caster_robot"]().derive().compile()
    speed = model.independent[0]
    first = ax.simulate(model, 0.1, start={speed: np.array([0.5, 1.0, 2.0])}, save_every=0.05)
    second = ax.simulate(model, 0.1, start=first, save_every=0.05)
    assert second.batch == (3,)
    for name in model.coordinates:
        np.testing.assert_allclose(second[name][:, 0], first[name][:, -1], atol=1e-9)


@cache
def shaken(led: bool = False) -> ax.Model:
    """A damped pendulum on a cart that a force or a prescribed motion shakes."""
    machine = ax.Mechanism("shaken")
    cart = machine.add_body("cart", mass=2.0, inertia=(1, 1, 1))
    bob = machine.add_body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(0.02, 0.02, 0.02))
    machine.add_joint("rail", ax.Prismatic("x"), parent=machine.ground, child=cart)
    machine.add_joint("pin", ax.Revolute("y"), parent=cart, child=bob)
    machine.add_damper("drag", "pin", coefficient=0.2)
    if led:
        machine.prescribe("rail", lambda t: 0.3 * np.sin(3.0 * t))
    else:
        machine.add_motor("rail", "rail")
    return machine.derive().compile()


SAMPLES = ax.Sampled({"rail.force": [0.0, 4.0, -3.0, 2.0, 5.0, -1.0, 0.0]}, 0.3, between="linear")
WAVE = {"rail.force": "5 * sin(3 * t)"}
LAW = {"rail.force": lambda s: 5.0 * np.sin(3.0 * s.t) - s["pin.rate"]}


@pytest.mark.parametrize("input", [WAVE, SAMPLES, LAW, None], ids=["wave", "samples", "law", "led"])
def test_a_second_and_a_second_are_two_seconds(input: Any):
    model, options = shaken(led=input is None), {"input": input, "save_every": 0.25}
    whole = ax.simulate(model, 2.0, start={"pin": 0.4}, **options)
    first = ax.simulate(model, 1.0, start={"pin": 0.4}, **options)
    for start in (first, first.final, first.at(1.0), ax.assemble(model, first)):
        second = ax.simulate(model, 1.0, start=start, **options)
        assert second.time[0] == 1.0
        joined = first + second
        for name in whole:
            np.testing.assert_allclose(joined[name], whole[name], atol=EXACT, err_msg=name)
    back = ax.simulate(model, -1.0, backwards=True, start=whole, **options)
    np.testing.assert_allclose(back["pin"][-1], first["pin"][-1], atol=EXACT)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_verb_goes_on_at_the_time_of_its_start():
    model, half = shaken(), 0.5
    first = ax.simulate(model, half, start={"pin": 0.4}, input=WAVE)
    second = ax.simulate(model, half, start=first, input=WAVE)
    assert ax.assemble(model, first).conditions.t == half
    swept = ax.sweep(model, half, start=first, input=WAVE, outputs={"end": ("last", "pin")})
    np.testing.assert_allclose(swept["end"], second["pin"][-1], atol=SAME)
    cost = ax.Cost(model, half, final="pin", start=first.final, input=WAVE)
    np.testing.assert_allclose(cost.value(), second["pin"][-1], atol=SAME)
    led = shaken(led=True)
    run = ax.simulate(led, half, start={"pin": 0.4})
    again = ax.linearize(led, run, t=half)
    np.testing.assert_array_equal(ax.linearize(led, run).A, again.A)
    found = ax.inverse_dynamics(led, {"pin": "0.1 * t"}, times=0.2, start=run.at(half))
    assert found.time[0] == half and found["rail"][0] == pytest.approx(run["rail"][-1], abs=EXACT)


def test_runs_that_ended_at_different_times_do_not_go_on_together():
    model, stop = shaken(), ax.Event("down", "pin", stop=True)
    ended = ax.simulate(model, 1.0, start={"pin": [0.4, 0.2, 0.1]}, events=stop, input=WAVE)
    with pytest.raises(ax.InvalidArgument, match=r"(?s)different times, .*start=run\.run\(i\)"):
        ax.simulate(model, 0.1, start=ended, input=WAVE)
    assert ax.simulate(model, 0.1, start=ended, input=WAVE, t0=0.0).time[0] == 0.0
    one = ended.run(1)
    assert ax.simulate(model, 0.1, start=one, input=WAVE).time[0] == one.time[-1]
