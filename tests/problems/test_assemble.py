"""Configurations that close, speeds that keep them closed, and the words where none do."""

import math
import warnings

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from axode.errors import RequestNotMetWarning
from tests.problems import machines
from tests.problems.machines import four_bar_angles

CLOSED = 1e-10


@pytest.mark.parametrize("crank", [0.0, 0.9, 3.0])
def test_a_crank_held_at_an_angle(crank: float):
    state = ax.assemble(machines.four_bar(), {"crank": crank}, fix=["crank"])
    exact = four_bar_angles(crank)
    assert state["crank"] == crank and state.residual < CLOSED
    for name, angle in exact.items():
        assert math.remainder(state[name] - angle, 2 * math.pi) == pytest.approx(0, abs=1e-9)


def test_fix_by_value():
    state = ax.assemble(machines.four_bar(), fix={"crank": 0.3})
    assert state["crank"] == 0.3 and state.residual < CLOSED


def test_nearest_where_nothing_is_fixed():
    """A guess that is nearly closed moves little."""
    model = machines.platform()
    guess = model.home + np.random.default_rng(1).normal(0, 1e-3, model.home.size)
    state = ax.assemble(model, guess)
    assert state.residual < CLOSED and np.abs(state.q - guess).max() < 1e-2
    assert np.linalg.norm(state.q[:4]) == pytest.approx(1, abs=1e-12)


def test_from_far_away():
    """Any start closes after a few tries."""
    model = machines.four_bar()
    for seed in range(10):
        guess = np.random.default_rng(seed).uniform(-3, 3, 3)
        assert ax.assemble(model, guess, attempts=20).residual < CLOSED


def test_from_a_singular_guess():
    """Stretched out, derivatives alone do not tell the way."""
    model = machines.parallelogram()
    state = ax.assemble(model, {"crank": 0.0, "coupler": 0.0, "rocker": 0.1})
    assert state.residual < CLOSED


OVERRULED = [
    ({"pitch": 0.1, "base.qy": 0.5}, "base.qy = 0.5 was asked for, 0.04998 is what base.pitch"),
    ({"base.z": 1.0}, "base.z = 1 was asked for, 0.1 is where (left|right) touches the ground"),
    ({"base.qx": 0.3}, "base.qx = 0.3 was asked for, .* touches the ground"),
]


@pytest.mark.parametrize(("start", "words"), OVERRULED)
@pytest.mark.parametrize("verb", ["assemble", "simulate"])
def test_a_coordinate_that_is_not_kept_is_told(start, words, verb):
    model = random_mechanisms.balancer().derive().compile()
    with pytest.warns(RequestNotMetWarning, match=words) as told:
        if verb == "assemble":
            ax.assemble(model, start)
        else:  # of many runs that ask for the same kind of thing, one is told
            many = {name: value * np.array([1.0, 1.01]) for name, value in start.items()}
            ax.simulate(model, 1e-3, start=many, progress=False)
    assert len(told) == 1


@pytest.mark.parametrize(
    "start",
    [
        {"pitch": 0.1, "base.x": 2.0},
        {"base.z": 0.1004},
        {"base.z": 0.1, "left": 30.0},
        {"base.qw": 2.0, "base.qz": 2.0},
        {"left.rate": 3.0},
    ],
)
def test_a_coordinate_that_is_kept_is_not_told(start):
    model = random_mechanisms.balancer().derive().compile()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RequestNotMetWarning)
        ax.assemble(model, start)


def test_a_guess_for_a_loop_is_a_guess():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RequestNotMetWarning)
        state = ax.assemble(machines.four_bar(), {"crank": 0.9, "coupler": 0.0})
    assert state["coupler"] != 0.0


@pytest.mark.slow
def test_measures_as_start_values():
    """The pitch of a balancer on a floating base, while its wheels touch the ground."""
    model = random_mechanisms.balancer().derive().compile()
    state = ax.assemble(model, {"pitch": 0.3, "yaw": 1.0, "surge": 0.7, "yaw_rate": -0.4})
    assert state["pitch"] == pytest.approx(0.3, abs=CLOSED)
    assert state["base.yaw"] == pytest.approx(1.0, abs=CLOSED)
    assert state["surge"] == pytest.approx(0.7, abs=1e-9)
    assert state["yaw_rate"] == pytest.approx(-0.4, abs=1e-9)
    assert np.abs(model.residual(state.q)).max() < CLOSED
    run = ax.simulate(model, 0.1, start={"pitch": 0.3, "surge": 0.7})
    assert run["base.pitch"][0] == pytest.approx(0.3, abs=CLOSED)


def test_parameters_and_time_count():
    model = random_mechanisms.balancer().derive().compile(parameters="free")
    state = ax.assemble(model, {"pitch": 0.1}, parameters={"radius": 0.2})
    assert state["base.z"] == pytest.approx(0.2, abs=1e-9)
    rolling = ax.assemble(model, {"surge": 1.0}, parameters={"radius": 0.2})
    assert rolling["left.rate"] == pytest.approx(5.0, abs=1e-9)
    shaken = random_mechanisms.shaken_pendulum().derive().compile()
    at = ax.assemble(shaken, t=0.5)
    assert at["shake"] == pytest.approx(0.1 * math.sin(3.5) + 0.0125, abs=CLOSED)
    assert at["shake.rate"] == pytest.approx(0.7 * math.cos(3.5) + 0.05, abs=1e-9)


def test_consistent_speeds():
    """Any joint's speed may be given; impossible ones are refused."""
    model = machines.four_bar()
    state = ax.assemble(model, {"rocker.rate": 2.0})
    assert state["rocker.rate"] == pytest.approx(2.0, abs=1e-12)
    v = model.joint_speeds(state.q, state.nu)
    assert np.abs(model.residual_jacobian(state.q) @ v).max() < 1e-12
    with pytest.raises(
        ax.InvalidArgument, match=r"do not allow.*give fewer, for instance only crank\.rate"
    ):
        ax.assemble(model, {"rocker.rate": 2.0, "crank.rate": -50.0})


def test_what_does_not_close_is_named():
    """Crank and rocker held too far apart for the coupler: metres, and the best there is."""
    model = machines.four_bar()
    with pytest.raises(ax.LoopNotClosed, match=r"'hinge\.[xy]' is open by 0\.\d+ m\.") as caught:
        ax.assemble(model, fix={"crank": math.pi, "rocker": 0.0}, attempts=3)
    best = caught.value.configuration
    assert (best["crank"], best["rocker"]) == (math.pi, 0.0)
    # the coupler's end points at the hinge as well as it can: 0.8 m away from a reach of 0.35 m
    q = [best[name] for name in model.coordinates]
    assert np.linalg.norm(model.residual(q)) == pytest.approx(0.45, abs=1e-6)
    assert "attempts=20" in str(caught.value)


def test_units_come_from_the_model():
    """An angle that does not close is in radians; a measure has its own unit."""
    bot = ax.Mechanism("two hinges")
    for name in ("a", "b"):
        bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    bot.add_joint("first", ax.Universal("x", "y"), parent=bot.ground, child="a")
    bot.add_joint("second", ax.Spherical(), parent="a", child="b")
    bot.add_loop("weld", ax.Revolute("z"), parent=bot.ground, child="b")
    bot.measure("lean", lambda s: s["first.first"], unit="rad")
    model = bot.derive().compile()
    with pytest.raises(ax.LoopNotClosed, match=r"'weld\.r[xy]' is open by .* rad\."):
        ax.assemble(
            model,
            fix={
                "second.qw": 0.5,
                "second.qx": 0.5,
                "second.qy": 0.5,
                "second.qz": 0.5,
                "first.first": 0.0,
                "first.second": 0.0,
            },
        )
    with pytest.raises(ax.LoopNotClosed, match=r"'lean' is open by 1 rad\."):
        ax.assemble(model, {"lean": 1.0}, fix={"first.first": 0.0})


def test_wrong_names_and_numbers():
    model = machines.four_bar()
    with pytest.raises(ax.UnknownName, match=r"no signal 'krank'.*\n.*Did you mean 'crank'"):
        ax.assemble(model, {"krank": 1.0})
    with pytest.raises(ax.UnknownName, match=r"'crank\.rate'"):
        ax.assemble(model, fix=["crank.rate"])
    with pytest.raises(ax.InvalidArgument, match="of sizes 3 and 1 is needed, got"):
        ax.assemble(model, [1.0, 2.0])
    with pytest.raises(ax.InvalidArgument, match="'crank': must be finite"):
        ax.assemble(model, {"crank": math.nan})


@pytest.mark.parametrize("tolerance", [1e-4, 0.0])
def test_a_loop_open_by_half_a_turn_that_nothing_closes_is_reported(tolerance):
    """Tangents of half angles have no value at home."""
    two = ax.Mechanism("two arms", loop_tolerance=tolerance)
    for name, x in (("a", 0), ("b", 3)):
        two.add_body(name, mass=1, inertia=(1, 1, 1))
        two.add_joint(name, ax.Revolute("z"), parent="ground", child=name, at=(x, 0, 0))
    ends = {"parent": "a", "child": "b", "at": (1, 0, 0), "child_at": (1, 0, 0)}
    two.add_loop("weld", ax.Fixed(), **ends, child_rotation=(0, 0, math.pi))
    with pytest.raises(ax.errors.LoopNotClosed, match=r"(?s)weld.*No configuration near home"):
        two.derive()
