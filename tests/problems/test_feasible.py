"""Loads, friction and tipping against closed forms of carts, a disk, a balancer, a platform."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq

import axode as ax
import random_mechanisms as rm
from axode.motions import paths
from axode.problems.feasible.feasible import feasible
from axode.problems.inverse.inverse import inverse_dynamics
from tests.problems.carts import MW, SPIN, G, M, R, cart
from variants import further, slow

B = 0.25  # half the track
L = 0.5  # from the axle to the support
W = (M + 2 * MW) * G


def three_loads(com, r, v, a):
    """Loads of left and right wheel and support: the axle's middle at v, v_dot = a, on radius r.

    Moments about the ground below the axle's middle: weight, inertia of chassis and wheels, and
    the wheels' spin, which turns with the cart.
    """
    cx, cy, h = com
    turn, spun = v / r, a / r
    a_x = a - cx * turn**2 - cy * spun
    a_y = v * turn + cx * spun - cy * turn**2
    support = (cx * M * G - M * h * a_x - 2 * MW * R * a - 2 * SPIN * a / R) / L
    roll = M * h * a_y + 2 * MW * R * v * turn + 2 * SPIN * v / R * turn
    difference = (cy * M * G - roll) / B
    both = W - support
    return np.stack([(both + difference) / 2, (both - difference) / 2, support + 0 * both], axis=-1)


@pytest.fixture(scope="module", params=["planar", "floating"])
def leaning(request) -> tuple[ax.Model, tuple[float, ...]]:
    com = (0.15, 0.03, 0.2)
    return cart(com, base=request.param).derive().compile(), com


def standing(model: ax.Model) -> ax.Trajectory:
    return inverse_dynamics(model, {"left": "0", "right": "0"}, times=[0.0, 1.0])


def test_static_loads_of_three_contacts(leaning):
    model, com = leaning
    found = feasible(model, standing(model), friction=0.5)
    wanted = three_loads(com, 1.0, 0.0, 0.0)
    np.testing.assert_allclose(found.normal, [wanted, wanted], rtol=1e-10)
    assert found.ok and found.notes[0] == "loads are unique"
    assert np.abs(found.share).max() < 1e-9


def test_loads_of_a_cart_that_turns_and_speeds_up(leaning):
    """Centrifugal force, load transfer, gyroscopic moments of the wheels: all in closed form."""
    model, com = leaning
    r, T = 3.0, 2.0
    path = paths.circle(r, T, turns=0.1, start="smooth")
    run = paths.follow(model, path, save_every=0.05)
    pose = path(run.time)
    v = r * pose["heading_rate"]
    a = r * pose["heading_acceleration"]
    found = feasible(model, run, friction=0.9)
    np.testing.assert_allclose(found.normal, three_loads(com, r, v, a), rtol=1e-9)
    across = M * (v**2 / r + com[0] * a / r - com[1] * (v / r) ** 2) + 2 * MW * v**2 / r
    np.testing.assert_allclose(found.lateral.sum(axis=-1), across, atol=1e-9)
    np.testing.assert_allclose(found.lateral[:, 0], found.lateral[:, 1], atol=1e-9)


def test_braking_moves_load_to_the_front():
    com = (0.2, 0.0, 0.3)
    model = cart(com).derive().compile()
    run = inverse_dynamics(
        model,
        {"left.rate": "20 - 30 * t", "right.rate": "20 - 30 * t"},
        times=np.linspace(0, 0.5, 11),
    )
    found = feasible(model, run, friction=0.9)
    a = -30 * R
    gained = -(M * com[2] + 2 * MW * R + 2 * SPIN / R) * a / L
    np.testing.assert_allclose(found.normal[:, 2], com[0] * M * G / L + gained, rtol=1e-9)
    force = (M + 2 * MW) * a + 0 * run.time
    np.testing.assert_allclose(found.longitudinal.sum(axis=-1), force, rtol=1e-9)


def test_braking_too_hard_lifts_the_wheels():
    """The weight's moment about the support is used up: both driven wheels lift at once."""
    com = (0.4, 0.0, 0.3)
    model = cart(com).derive().compile()
    high = M * com[2] + 2 * MW * R + 2 * SPIN / R
    limit = (W * L - com[0] * M * G) / high
    for part, tips in ((0.99, False), (1.01, True)):
        rate = f"100 - {limit * part / R} * t"
        run = inverse_dynamics(
            model, {"left.rate": rate, "right.rate": rate}, times=np.linspace(0, 0.1, 6)
        )
        found = feasible(model, run, friction=1e3)
        assert (found.tips_at is not None) == tips
        assert found.ok == (not tips)


@pytest.mark.parametrize("mu", [0.3, 0.8])
def test_slipping_in_a_turn(mu):
    """No load transfer at this height of the mass centre: slipping begins at v^2 / r = mu g."""
    h = -(2 * MW * R + 2 * SPIN / R) / M
    model, r = cart((0.0, 0.0, h)).derive().compile(), 2.0
    for part in (0.999, 1.001):
        v = np.sqrt(r * mu * G * part)
        run = paths.follow(model, paths.circle(r, speed=v, turns=0.05), save_every=0.02)
        found = feasible(model, run, friction=mu)
        np.testing.assert_allclose(found.share[:, :2], part, rtol=1e-9)
        assert (found.slips_at is None) == (part < 1)
        assert found.tips_at is None


def test_tipping_in_a_turn():
    """v^2 / r = g track / (2 h), h being the mean height with the wheels' spin in it."""
    model, r = cart((0.0, 0.0, 0.8)).derive().compile(), 4.0
    high = (M * 0.8 + 2 * MW * R + 2 * SPIN / R) / (M + 2 * MW)
    for part in (0.999, 1.001):
        v = np.sqrt(r * G * 2 * B / (2 * high) * part)
        run = paths.follow(model, paths.circle(r, speed=v, turns=0.05), save_every=0.05)
        found = feasible(model, run, friction=5.0)
        assert (found.normal[:, 0] > 0).all() == (part < 1)
        assert (found.tips_at is None) == (part < 1)


def test_when_it_tips():
    """Ever faster round a circle: the inner wheel lifts when the closed form says so."""
    com, r, turn = (0.1, 0.0, 0.8), 4.0, 0.1
    model = cart(com).derive().compile()
    angle = f"{turn} * t**2"
    path = paths.along(f"{r} * sin({angle})", f"{r} * (1 - cos({angle}))", 6.0, heading=angle)
    found = feasible(model, paths.follow(model, path, save_every=0.01), friction=5.0)

    def inner(t: float) -> float:
        return three_loads(com, r, 2 * turn * r * t, 2 * turn * r)[0]

    assert inner(0.0) > 0 > inner(6.0)
    assert abs(found.tips_at - brentq(inner, 0.0, 6.0)) < 1e-4
    # half of the lateral force on a wheel that loses its load: it slips before it lifts
    assert found.lifts == found.slips == "left" and found.slips_at < found.tips_at


def test_sum_of_forces_is_mass_times_acceleration_minus_weight(leaning):
    model, _ = leaning
    path = paths.along("0.8 * t", "0.4 * sin(2 * t)", 3.0)
    run = paths.follow(model, path, save_every=0.01)
    found = feasible(model, run, friction=0.9)
    masses = np.array([M, MW, MW])
    q = np.stack([run[name] for name in model.coordinates], axis=-1)
    nu = np.stack([run[name] for name in model.independent], axis=-1)
    momentum = (model.twists(q, nu)[..., 3:] * masses[:, np.newaxis]).sum(axis=1)
    rate = make_interp_spline(run.time, momentum, k=5).derivative()(run.time)
    c, s = np.cos(run["path.heading"]), np.sin(run["path.heading"])
    along, across = found.longitudinal.sum(axis=-1), found.lateral.sum(axis=-1)
    total = np.stack(
        [c * along - s * across, s * along + c * across, found.normal.sum(axis=-1) - W], axis=-1
    )
    assert np.abs(total - rate).max() < 1e-6 * np.abs(rate).max()
    assert np.abs(total[:, 2]).max() < 1e-9 and np.abs(rate[:, :2]).max() > 10


FOUR = ((0.5, 0.2), (0.5, -0.2))


def elastic_loads(com, places, k):
    """Wheels of stiffness k under a rigid chassis: N_i = k_i (c0 + c1 x_i + c2 y_i)."""
    P = np.c_[np.ones(len(places)), places]
    balance = P.T @ (k[:, np.newaxis] * P)
    right = np.array([W, M * G * com[0], M * G * com[1]])
    return k * (P @ np.linalg.solve(balance, right))


@pytest.mark.parametrize("base", ["planar", "floating"])
def test_static_loads_of_four_contacts(base):
    com = (0.2, 0.05, 0.2)
    model = cart(com, base=base, supports=FOUR).derive().compile()
    places = np.array([(0, B), (0, -B), *FOUR])
    run = standing(model)
    found = feasible(model, run, friction=0.5)
    np.testing.assert_allclose(found.normal[0], elastic_loads(com, places, np.ones(4)), rtol=1e-9)
    assert "least norm" in found.notes[0] and "left, right, support0, support1" in found.notes[0]
    k = {"left": 2e4, "right": 2e4, "support0": 5e4, "support1": 1e4}
    found = feasible(model, run, friction=0.5, stiffness=k)
    wanted = elastic_loads(com, places, np.array(list(k.values())))
    np.testing.assert_allclose(found.normal[0], wanted, rtol=1e-9)
    assert "given stiffnesses" in found.notes[0]


def test_a_wheel_cannot_pull():
    """The mass centre near a corner: equal springs would pull at the far one; it lifts instead."""
    com = (0.47, 0.19, 0.2)
    model = cart(com, supports=FOUR, half_track=0.2).derive().compile()
    places = np.array([(0, 0.2), (0, -0.2), *FOUR])
    assert elastic_loads(com, places, np.ones(4)).min() < -1.0
    found = feasible(model, standing(model), friction=0.5)
    loads = found.normal[0]
    assert loads.min() > -1e-6 and found.ok
    np.testing.assert_allclose(loads.sum(), W, rtol=1e-6)
    np.testing.assert_allclose(loads @ places, M * G * np.array(com[:2]), rtol=1e-5)
    assert any("pull" in note for note in found.notes)


def test_a_mass_centre_outside_tips_at_once():
    model = cart((0.6, 0.0, 0.2), supports=FOUR).derive().compile()
    found = feasible(model, standing(model), friction=0.5)
    assert found.tips_at == 0.0 and found.tipping_margin.max() < 0
    assert "from t = 0 s" in repr(found)


def test_two_wheels_do_not_hold_a_cart_up():
    model = cart((0.1, 0.0, 0.2), supports=()).derive().compile()
    found = feasible(model, standing(model), friction=0.5)
    assert found.tips_at == 0.0 and found.tipping_margin.max() == -np.inf
    assert any("base.wy" in note for note in found.notes)


def test_rolling_disk():
    """One contact: its three forces are all there is."""
    bot = ax.Mechanism("disk")
    disk = bot.add_body("disk", mass=2.0, inertia=ax.Inertia.axial(0.09, 0.045, "y"))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact("rim", ax.Rolling(radius=0.3), body=disk, axis="y")
    bot.set_home({"base.z": 0.3})
    model = bot.derive().compile()
    run = ax.simulate(model, 0.5, start={"roll": 0.3, "base.wy": 8.0, "base.wz": 0.5})
    found = feasible(model, run, friction=0.4)
    for part in ("longitudinal", "lateral", "normal"):
        np.testing.assert_allclose(getattr(found, part)[:, 0], run[f"rim.{part}"], atol=1e-8)
    used = np.hypot(run["rim.longitudinal"], run["rim.lateral"]) / run["rim.normal"]
    assert used.max() > 0.1
    np.testing.assert_allclose(found.share[:, 0], used / 0.4, rtol=1e-8)
    np.testing.assert_allclose(found.tipping_margin, 1.0)


def balancer() -> ax.Mechanism:
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    bot.set_home({"base.z": 0.1})
    return bot


@pytest.mark.slow
def test_two_wheel_balancer_falls_without_tipping_over():
    """Pitch is free, so that nothing has to hold it; loads are those the rows tell."""
    model = balancer().derive().compile()
    run = ax.simulate(model, 0.4, start={"pitch": 0.2}, input={"left.torque": 0.3})
    found = feasible(model, run, friction=0.6)
    for k, side in enumerate(("left", "right")):
        np.testing.assert_allclose(found.normal[:, k], run[f"{side}.normal"], atol=1e-7)
        np.testing.assert_allclose(found.longitudinal[:, k], run[f"{side}.longitudinal"], atol=1e-7)
    np.testing.assert_allclose(found.lateral[:, 0], found.lateral[:, 1], atol=1e-8)
    assert np.abs(found.lateral).max() > 1e-3
    at_rest = feasible(
        model,
        inverse_dynamics(model, {"left": "0", "right": "0", "pitch": "0"}, times=[0.0, 1.0]),
        friction=0.6,
    )
    np.testing.assert_allclose(at_rest.normal, 9.0 * 9.81 / 2, rtol=1e-10)


def test_a_motion_with_missing_force_keeps_its_own_loads():
    """Held upright by a force that no motor gives, a balancer's wheels carry its weight evenly."""
    model = balancer().derive().compile()
    with pytest.warns(ax.UnderactuatedMotionWarning):
        run = inverse_dynamics(
            model,
            {"left.rate": "5 * t", "right.rate": "5 * t", "pitch": "0"},
            times=np.linspace(0, 1, 21),
        )
    found = feasible(model, run, friction=0.6)
    np.testing.assert_allclose(found.normal, 9.0 * 9.81 / 2, rtol=1e-8)
    np.testing.assert_allclose(run["left.normal"], 9.0 * 9.81 / 2, rtol=1e-8)
    pushed = run["base.vx.missing"] + run["left.longitudinal"] + run["right.longitudinal"]
    np.testing.assert_allclose(pushed, 9.0 * 0.5, rtol=1e-8)


@pytest.mark.parametrize("seed", slow([1, further(3), 4, further(5), further(7), 8, 10], 8, 10))
def test_random_vehicles_on_planar_bases(seed):
    """Slopes, moving ground, leaning wheels, balls, skates, motors on the base: what the rows of
    the planar model tell, the vehicle set free tells too."""
    model = rm.random_vehicle(np.random.default_rng(seed), "planar").derive().compile()
    inputs = {name: 0.1 * (k + 1) for k, name in enumerate(model.inputs)}
    run = ax.simulate(
        model, 0.05, input=inputs, save_every=0.01, start={model.independent[0]: 0.3}
    ).between(0.005, 0.05)
    found = feasible(model, run, friction=0.5)
    known = [
        (k, part, run[f"{name}.{part}"])
        for k, name in enumerate(model.contacts)
        for part in ("longitudinal", "lateral", "normal")
    ]
    known = [(k, part, force) for k, part, force in known if not np.isnan(force).any()]
    assert max(np.abs(force).max() for *_, force in known) > 0.1
    for k, part, force in known:
        np.testing.assert_allclose(getattr(found, part)[:, k], force, atol=1e-7)


def test_columns_table_and_friction_by_wheel():
    model = cart(supports=((L, 0.0),)).derive().compile()
    run = paths.follow(model, paths.circle(2.0, speed=3.0, turns=0.1), save_every=0.05)
    mu = {"left": 0.2, "right": 0.4, "support0": 0.1}
    found = feasible(model, run, friction=mu)
    twice = feasible(model, run, friction=0.4)
    np.testing.assert_allclose(found.share[:, 0], 2 * twice.share[:, 0], rtol=1e-10)
    table = found.trajectory
    np.testing.assert_array_equal(table["left.load"], found.normal[:, 0])
    np.testing.assert_array_equal(table["slipping_margin"], 1 - found.share.max(axis=-1))
    text = repr(found)
    assert "friction 0.1 to 0.4" in text and "support0" in text and "slipping: from t = 0 s" in text
    bare = run[[*model.coordinates, *model.speed_names]]  # inputs found again by splines
    again = feasible(model, bare, friction=mu)
    np.testing.assert_allclose(again.normal, found.normal, rtol=1e-5)


def test_what_is_refused():
    model = cart().derive().compile()
    run = standing(model)
    with pytest.raises(ax.UnknownName, match=r"'leeft'.*\n.*left"):
        feasible(model, run, friction={"leeft": 0.3})
    with pytest.raises(ax.InvalidArgument, match="wheel 'right' has none"):
        feasible(model, run, friction={"left": 0.3})
    with pytest.raises(ax.InvalidArgument, match=r"friction.*> 0"):
        feasible(model, run, friction=-0.3)
    arm = ax.Mechanism("arm")
    link = arm.add_body("link", mass=1.0, inertia=(0.1, 0.1, 0.1))
    arm.add_joint("pin", ax.Revolute(), parent=arm.ground, child=link)
    still = arm.derive().compile()
    with pytest.raises(ax.NotApplicable, match="no wheels"):
        feasible(still, ax.simulate(still, 1.0), friction=0.5)
    many = ax.simulate(model, 0.1, start={"left.rate": [0.0, 1.0]})
    with pytest.raises(ax.InvalidArgument, match=r"run\(0\)"):
        feasible(model, many, friction=0.5)
