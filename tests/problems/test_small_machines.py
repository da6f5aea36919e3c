"""Machines of millimetres and less: the same motion as large ones have, in their own time."""

import math

import numpy as np
import pytest

import axode as ax
from tests.problems.machines import four_bar_angles
from variants import further

SAME = 1e-7  # of lengths and angles after one unit of time: errors of steps and their growth


def cart(length: float) -> ax.Mechanism:
    """Two driven wheels and a caster on a floating base, all lengths a multiple of a metre."""
    s, mass = length, length**3
    bot = ax.Mechanism("cart")
    inertia = tuple(x * mass * s**2 for x in (0.3, 0.4, 0.5))
    bot.add_body("body", mass=10 * mass, com=(0.05 * s, 0, 0.1 * s), inertia=inertia)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="body")
    for side, y in (("left", 0.2), ("right", -0.2)):
        at = (0, y * s, 0.1 * s)
        bot.add_wheel(side, ax.Rolling(0.1 * s), on="body", at=at, mass=0.5 * mass, motor=True)
    bot.add_caster(
        "caster",
        ax.Rolling(0.05 * s),
        on="body",
        at=(0.3 * s, 0, 0.12 * s),
        drop=0.07 * s,
        trail=0.06 * s,
        mass=0.4 * mass,
    )
    bot.set_home({"caster_bracket": 0.4})
    return bot


def moved(length: float, equations: ax.Equations) -> ax.Trajectory:
    """By one unit of time, which is that of falling through the unit of length."""
    unit = math.sqrt(length)
    start = {"left.rate": 2.0 / unit, "right.rate": 0.5 / unit}
    return ax.simulate(equations.compile(), unit, start=start)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("length", [1e-2, further(3e-3), further(1e-3), 1e-5])
def test_small_vehicles_keep_their_rows_and_move_as_large_ones_do(length):
    large, small = cart(1.0).derive(), cart(length).derive()

    assert [row.name for row in small.system.kept] == [row.name for row in large.system.kept]
    assert small.independent == large.independent
    a, b = moved(1.0, large), moved(length, small)
    assert b.final["base.x"] / length == pytest.approx(a.final["base.x"], abs=SAME)
    assert b.final["base.y"] / length == pytest.approx(a.final["base.y"], abs=SAME)
    assert b.final["caster_bracket"] == pytest.approx(a.final["caster_bracket"], abs=SAME)


def four_bar(length: float) -> ax.Mechanism:
    bot = ax.Mechanism("four-bar", gravity=(0, -9.81, 0))
    a, b, c, frame = (length * x for x in (0.1, 0.35, 0.3, 0.4))
    for link, x in (("crank", a), ("coupler", b), ("rocker", c)):
        bot.add_body(link, mass=1.0, com=(x / 2, 0, 0), inertia=(x**2 / 99, x**2 / 12, x**2 / 12))
    bot.add_joint("crank", ax.Revolute("z"), parent=bot.ground, child="crank")
    bot.add_joint("coupler", ax.Revolute("z"), parent="crank", child="coupler", at=(a, 0, 0))
    bot.add_joint("rocker", ax.Revolute("z"), parent=bot.ground, child="rocker", at=(frame, 0, 0))
    hinge = {"parent": "coupler", "child": "rocker", "at": (b, 0, 0), "child_at": (c, 0, 0)}
    bot.add_loop("hinge", ax.Revolute("z"), **hinge)
    bot.set_home(four_bar_angles(1.2))
    return bot


def test_loops_of_micrometres_close_to_their_own_size():
    large, small = four_bar(1.0).derive().compile(), four_bar(1e-6).derive().compile()

    expected = large.forward_dynamics(large.home, [3.0])  # gravity 1e6 times as strong, time 1e3
    found = small.forward_dynamics(small.home, [3.0e3])
    assert found / 1e6 == pytest.approx(expected, rel=1e-9)


RELATIVE = 1e-12  # of the length: what both closers leave open


@pytest.mark.parametrize("length", [1e-6, 1e3])
def test_both_closers_close_to_the_same_relative_accuracy(length):
    """Loops of micrometres and of kilometres, at derivation and by assembling."""
    equations = four_bar(length).derive()
    model, system = equations.compile(), equations.system
    guess = model.home + np.array([1e-4, 2e-4, -1e-4])
    derived, error = system.assembly.close(guess)
    state = ax.assemble(model, guess)

    assert system.assembly.is_exact(error)
    for q in (derived, state.q):
        assert np.abs(model.residual(q)).max() < RELATIVE * length
    assert state.q == pytest.approx(derived, abs=1e-9)
    with pytest.raises(ax.LoopNotClosed):  # beyond reach by much less than the old tolerance
        ax.assemble(model, fix={"crank": 0.0, "rocker": four_bar_angles(0.0)["rocker"] + 1e-5})


def test_a_start_of_micrometres_that_is_open_is_refused():
    """By a hundredth of the length, which is far below a micrometre."""
    model = four_bar(1e-6).derive().compile()
    q = model.home + np.array([0.01, 0.0, 0.0])
    with pytest.raises(ax.LoopNotClosed, match="hinge"):
        ax.simulate(model, 1e-6, start=(q, [0.0]))
    with pytest.raises(ax.InvalidArgument, match="open by"):
        ax.linearize(model, (q, [0.0]))
