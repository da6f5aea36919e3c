"""Motions without inertia: named, every one of them, also where they are only nearly without."""

import warnings

import numpy as np
import pytest

import axode as ax
from axode.errors import PlausibilityWarning

POINT = ax.Inertia.point()


def planar_platform(mass, moment):
    """A body that slides and turns on the ground, and a heavy one that spins on it.

    Without the platform's own inertia, its turning alone meets no resistance.
    """
    cart = ax.Mechanism("cart")
    cart.add_body("platform", mass=mass, inertia=ax.Inertia.planar(moment))
    cart.add_body("load", mass=1.0, inertia=(1.0, 1.0, 1.0))
    cart.add_joint("slide", ax.Planar(), parent=cart.ground, child="platform")
    cart.add_joint("spin", ax.Revolute("z"), parent="platform", child="load", at=(0.1, 0, 0))
    for speed in ("slide.surge", "slide.sway", "slide.yaw_rate", "spin.rate"):
        cart.add_motor(speed, speed)
    return cart


def arms(*kinds):
    """Arms on a trunk; a letter each: h for a heavy arm, l for one without inertia."""
    bot = ax.Mechanism("arms")
    bot.add_body("trunk", mass=3.0, inertia=(1, 1, 1))
    bot.add_joint("turn", ax.Revolute("z"), parent=bot.ground, child="trunk")
    for k, kind in enumerate(kinds):
        inertia = (1, 1, 1) if kind == "h" else POINT
        bot.add_body(f"arm{k}", mass=1.0 if kind == "h" else 0.0, inertia=inertia)
        bot.add_joint(f"lift{k}", ax.Revolute("x"), parent="trunk", child=f"arm{k}", at=(1, k, 0))
    return bot


def direct_dynamics(mechanism):
    """Which is asked for after a warning of the same."""
    with pytest.warns(PlausibilityWarning, match="nothing resists the motion of"):
        equations = mechanism.derive()
    return equations.forward_dynamics


def test_every_motion_without_inertia_is_named_with_its_own_bodies():
    with pytest.raises(ax.MechanismError) as caught:
        direct_dynamics(arms("l", "h", "l"))
    found = [(fault.name, fault.message.split(" (")[0]) for fault in caught.value.faults]
    assert found == [
        ("arm0", "nothing resists the motion of lift0.rate"),
        ("arm2", "nothing resists the motion of lift2.rate"),
    ]


def test_long_lists_of_bodies_are_cut_short():
    bot = arms("l")
    for k in range(20):
        bot.add_body(f"frame{k}", mass=0.0, inertia=POINT)
        bot.add_joint(f"frame{k}", ax.Fixed(), parent="arm0", child=f"frame{k}")
    with pytest.raises(ax.MechanismError) as caught:
        direct_dynamics(bot)
    assert caught.value.faults[0].name.endswith("frame6, and 13 more")


@pytest.mark.parametrize("mass", [0.0, 1e-30, 1e-16, 1e-13])
def test_a_body_that_weighs_nothing_but_for_rounding_is_massless(mass):
    cart = planar_platform(mass, 0.01 * mass)
    if mass == 0.0:
        cart.bodies[0] = ax.Mechanism("m").add_body("platform", mass=0.0, inertia=POINT)
    with pytest.raises(ax.MechanismError, match=r"platform.*nothing resists the motion of"):
        direct_dynamics(cart)


@pytest.mark.parametrize(("moment", "digits"), [(1e-11, 5), (1e-10, 6)])
def test_lost_digits_are_warned_of(moment, digits):
    words = f"leave forward dynamics about {digits} digits; check plat"
    with pytest.warns(PlausibilityWarning, match=words) as caught:
        model = planar_platform(1e-9, moment).derive().compile("interpreter")
    assert caught[0].filename == __file__
    error = direct_after_inverse(model)
    assert error < 10.0 ** (1 - digits)


@pytest.mark.parametrize("moment", [1e-8, 1e-6, 1e-3, 1.0])
def test_light_bodies_are_computed_with(moment):
    """Direct after inverse dynamics is the identity, up to what the inertias' ratio costs."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = planar_platform(moment, moment).derive().compile("interpreter")
    assert direct_after_inverse(model) < 1e-14 / min(moment, 1e-1)


def direct_after_inverse(model):
    rng = np.random.default_rng(5)
    q, v, v_dot = rng.uniform(-1, 1, (3, 4))
    again = model.forward_dynamics(q, v, model.inverse_dynamics(q, v, v_dot))
    return np.abs(again - v_dot).max()


def test_negative_energy_is_warned_of_and_computed():
    bot = arms("h")
    bot.bodies[1] = ax.Mechanism("m").add_body(
        "arm0", mass=1.0, inertia=ax.Inertia(-2.0, 1.0, 1.0, unphysical=True)
    )
    bot.add_motor("lift", "lift0")
    bot.add_motor("turn", "turn")
    with pytest.warns(
        PlausibilityWarning, match=r"energy of some motions is negative.*inertia of arm0"
    ):
        model = bot.derive().compile("interpreter")
    found = model.forward_dynamics([0, 0], [0, 0], [1.0, 0.0])
    assert found[model.independent.index("lift0.rate")] == pytest.approx(-0.5)


def test_what_needs_no_inertia_is_computed_without_it():
    """A massless arm has no mass and needs no force; everything else is as if it were not there."""
    with pytest.warns(PlausibilityWarning) as caught:
        model = motors_everywhere(arms("h", "l")).derive().compile("interpreter")
    assert caught[0].filename == __file__
    alone = motors_everywhere(arms("h")).derive().compile("interpreter")
    rng = np.random.default_rng(2)
    value = {name: rng.uniform(-1, 1, 3) for name in ("turn", "lift0", "lift1")}

    def states(m):
        q = [value[name][0] for name in m.coordinates]
        return q, *np.array([value[name.removesuffix(".rate")][1:] for name in m.independent]).T

    there = [model.independent.index(name) for name in alone.independent]
    M = np.zeros((3, 3))
    M[np.ix_(there, there)] = alone.mass_matrix(states(alone)[0])
    np.testing.assert_allclose(model.mass_matrix(states(model)[0]), M, atol=1e-15)
    torques = dict(zip(model.inputs, model.inverse_dynamics(*states(model)), strict=True))
    wanted = dict(zip(alone.inputs, alone.inverse_dynamics(*states(alone)), strict=True))
    assert torques == pytest.approx({**wanted, "lift1.torque": 0.0})
    q, v, _ = states(model)
    with pytest.raises(ax.MechanismError, match=r"resists the motion of lift1\.rate"):
        model.forward_dynamics(q, v, np.zeros(3))
    with pytest.raises(ax.MechanismError, match=r"resists the motion of lift1\.rate"):
        ax.simulate(model, 1.0)
    with pytest.raises(ax.MechanismError, match=r"resists the motion of lift1\.rate"):
        ax.linearize(model)


def motors_everywhere(bot):
    for connection in bot.connections:
        bot.add_motor(connection.name, connection.name)
    return bot


@pytest.mark.parametrize("multiplier", [2.0, -0.3, 1e-3])
def test_a_coupling_gives_inertia_to_a_massless_body(multiplier):
    """What follows a heavy arm has its inertia, and adds nothing to it."""
    geared = motors_everywhere(arms("h", "l"))
    geared.drives.pop()
    geared.add_mimic("gear", "lift1", "lift0", multiplier=multiplier, offset=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PlausibilityWarning)
        equations = geared.derive(independent=["turn.rate", "lift0.rate"])
    model = equations.compile("interpreter")
    alone = motors_everywhere(arms("h")).derive(independent=list(equations.independent))
    alone = alone.compile("interpreter")
    lift = 0.4
    value = {"turn": 0.2, "lift0": lift, "lift1": multiplier * lift + 0.1}
    q, short = ([value[name] for name in m.coordinates] for m in (model, alone))
    nu, u = [0.3, -0.7], [0.5, 0.2]
    np.testing.assert_allclose(
        model.forward_dynamics(q, nu, u), alone.forward_dynamics(short, nu, u), rtol=1e-12
    )
