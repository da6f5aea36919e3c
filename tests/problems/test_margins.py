"""Margins of slipping and tipping inside a sweep are those that `feasible` finds afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

import axode as ax
import random_mechanisms as rm
from tests.problems.carts import cart
from variants import slow

ROUNDING = 1e-9  # two ways of solving for the loads
INSIDE = 1e-5  # relative: samples miss an extreme by a little
STEP, DURATION = 0.02, 0.4
COM = (0.2, 0.05, 0.2)
FOUR = ((0.5, 0.2), (0.5, -0.2))


@cache
def small_cart() -> ax.Model:
    return cart(COM).derive().compile()


def outputs(model: ax.Model) -> dict[str, tuple[str, str]]:
    wheels = {f"{w}.load": ("min", f"{w}.load") for w in model.contacts}
    wheels |= {f"{w}.share": ("max", f"{w}.share") for w in model.contacts}
    return wheels | {name: ("min", name) for name in ("slipping_margin", "tipping_margin")}


def assert_same(model: ax.Model, friction, **study) -> ax.Feasibility:
    """Compare a sweep of one run with what `feasible` finds along the same run.

    A sweep looks inside the steps: it finds what a run does that is saved often.
    """
    many = ax.sweep(model, DURATION, outputs=outputs(model), friction=friction, **study)
    ends = {f"{how} {c}": ("last", c) for how, c in outputs(model).values()}
    last = ax.sweep(model, DURATION, step=STEP, outputs=ends, friction=friction, **study)
    run = ax.simulate(model, DURATION, method="rk4", step=STEP, save_every=STEP, **study)
    often = ax.simulate(
        model, DURATION, method="rk4", step=STEP / 50, save_every=STEP / 50, **study
    )
    found, close = (
        ax.feasible(model, each, friction, parameters=study.get("parameters"))
        for each in (run, often)
    )
    for name, (how, column) in outputs(model).items():
        assert float(many[name]) == pytest.approx(
            getattr(close.trajectory[column], how)(), rel=INSIDE, abs=INSIDE
        ), name
        assert float(last[f"{how} {column}"]) == pytest.approx(
            found.trajectory[column][-1], rel=ROUNDING, abs=ROUNDING
        )
    return found


@pytest.mark.parametrize("wheels", slow([3, 4], 4))
def test_carts(wheels):
    """Three wheels, whose loads are unique, and four, whose most even loads are found in a line."""
    model = small_cart() if wheels == 3 else cart(COM, supports=FOUR).derive().compile()
    friction = {name: 0.3 + 0.1 * k for k, name in enumerate(model.contacts)}
    start = {"left.rate": 4.0, "right.rate": 6.0}
    found = assert_same(model, friction, start=start, input={"left.torque": "3*sin(9*t)"})
    assert 0 < found.tipping_margin.min() < found.tipping_margin.max() < 1


@pytest.mark.slow
def test_margins_below_zero():
    """A cart that tips in a turn: no load, no friction, and margins below zero."""
    model = cart((0.1, 0.0, 0.8), supports=((0.5, 0.0),)).derive().compile()
    start = {"left.rate": 40.0, "right.rate": 60.0}
    found = assert_same(model, 0.5, start=start)
    assert found.slipping_margin.min() == -np.inf and found.tipping_margin.min() < 0


@pytest.mark.slow
def test_a_random_vehicle():
    """Slopes, moving ground, leaning wheels, parameters."""
    model = rm.random_vehicle(np.random.default_rng(4), "planar").derive().compile()
    inputs = {name: 0.1 * (k + 1) for k, name in enumerate(model.inputs)}
    assert_same(model, 0.7, start={model.independent[0]: 0.3}, input=inputs)


@pytest.mark.slow
def test_a_share_without_friction_is_the_friction_needed():
    model = ax.gallery.build("mecanum_rover").derive().compile()
    study = {"start": {"phi1_dot": 1.0}, "step": STEP, "input": {model.inputs[0]: [0.5, 1.0]}}
    one = {"share": ("max", "wheel1.share")}
    needed = ax.sweep(model, 0.1, outputs=one, **study)["share"]
    used = ax.sweep(model, 0.1, outputs=one, friction=0.25, **study)["share"]
    np.testing.assert_allclose(used, 4 * needed, rtol=ROUNDING)
    assert needed[0] < needed[1]


def test_executors_need_no_equations():
    """Workers read the model from a file; what the ground gives is sent along."""
    model = small_cart()
    study = {"start": {"left.rate": [4.0, 6.0]}, "step": STEP, "outputs": outputs(model)}
    here = ax.sweep(model, 0.1, **study)
    with ThreadPoolExecutor(1) as executor:
        there = ax.sweep(model, 0.1, executor=executor, **study)
    for name in here:
        np.testing.assert_array_equal(here[name], there[name])


def test_units_of_what_is_swept_and_kept():
    model = small_cart()
    made = ax.sweep(
        model,
        0.1,
        step=STEP,
        start={"left.rate": [1.0, 2.0]},
        outputs={
            "load": ("min", "left.load"),
            "margin": ("min", "tipping_margin"),
            "angle": ("integral", "left"),
            "shared": ("integral", "left.share"),
            "when": ("crossing", lambda s: s["left"] - 0.1),
            "square": ("max", "left.rate**2"),
            "left.rate": ("last", "left.rate"),
        },
    )
    units = {"load": "N", "angle": "rad s", "shared": "s", "when": "s"}
    assert made.info["units"] == units | {"left.rate": "rad/s", "start.left.rate": "rad/s"}


def test_what_is_refused():
    model = rm.random_vehicle(np.random.default_rng(5), "planar").derive().compile()
    with pytest.raises(ax.NotApplicable, match=r"shared in 2 .*\n*.*feasible on a trajectory"):
        ax.sweep(model, 0.1, outputs={"tip": ("min", "tipping_margin")})
    two = cart(supports=()).derive().compile()
    with pytest.raises(ax.NotApplicable, match=r"cannot hold it: nothing balances base\.wy"):
        ax.sweep(two, 0.1, outputs={"load": ("min", "left.load")})
    with pytest.raises(ax.UnknownName, match="slipping_margin"):
        ax.sweep(two, 0.1, outputs={"slip": ("min", "slip_margin")})
    with pytest.raises(ax.UnknownName, match="'leeft'"):
        ax.sweep(two, 0.1, outputs={"load": ("min", "left.load")}, friction={"leeft": 0.3})
