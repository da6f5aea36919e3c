"""Motions that are steady in axes which turn along: poles against closed forms.

Rolling disk: Neimark and Fufaev, *Dynamics of Nonholonomic Systems*, 1972, chapter 6. Tops:
Goldstein, *Classical Mechanics*, chapter 5.
"""

import functools
import warnings

import numpy as np
import pytest

import axode as ax
from axode.errors import NotAnEquilibriumWarning
from tests.textbook.closed_forms import quaternion, rotation

M, R, ACROSS, ALONG, G = 2.0, 0.3, 0.045, 0.09, 9.81  # of the gallery's disk
EXACT = 1e-7  # of the fastest pole: double ones at zero are good to half the digits
NONE = 1e-4  # [1/s] below which a pole is one of those


@functools.cache
def disk() -> ax.Model:
    return ax.gallery.build("rolling_disk").derive().compile("interpreter")


def moving(lin: ax.linearize) -> np.ndarray:
    """Poles that are not zero, in the upper half of the plane."""
    poles = lin.poles[np.abs(lin.poles) > NONE]
    upper = poles[(poles.imag > NONE) | (np.abs(poles.imag) <= NONE)]
    return np.array(sorted(upper, key=lambda p: (abs(p), p.real)))


@pytest.mark.parametrize("angle", [0.0, 0.3, 1.0, 1.57, 3.0])
@pytest.mark.parametrize("spin", [1.5, 3.0, 5.0])
def test_a_disk_that_rolls_straight_on(spin, angle):
    """However far it has turned; it stops falling above w^2 = g / 3R."""
    half = angle / 2
    q = np.array([np.cos(half), 0, np.sin(half), 0, 0, 0, R])
    lin = ax.linearize(disk(), (q, np.array([0.0, spin, 0.0])))
    assert lin.steady and not lin.equilibrium
    square = M * G * R - ALONG * (ALONG + M * R**2) * spin**2 / ACROSS
    root = np.sqrt(complex(square / (ACROSS + M * R**2)))
    expected = [root] if root.imag else [-root, root]
    assert np.allclose(sorted(moving(lin), key=lambda p: p.real), expected, atol=EXACT * 10)
    assert (square > 0) == (spin**2 < G / (3 * R))
    assert lin.axes.rates == {"disk about its own y": pytest.approx(spin)}
    assert "rotating axes: disk about its own y" in str(lin)


def circling(lean: float, turn: float, spin: float) -> tuple[np.ndarray, np.ndarray]:
    """A state of steady precession, the disk turned by an angle about its own axis."""
    c, s = np.cos(lean), np.sin(lean)
    rate = (ACROSS * turn**2 * s * c - M * G * R * s) / ((ALONG + M * R**2) * turn * c)
    up, n = np.array([0.0, 0.0, 1.0]), np.array([0.0, c, s])
    omega = rate * n + turn * (up - s * n)
    attitude = rotation("x", lean) @ rotation("y", spin)
    q = np.array([*quaternion(("x", lean), ("y", spin)), 0.4, -0.1, R * c])
    return q, attitude.T @ omega


def test_a_disk_in_a_circle():
    """Poles do not depend on the spin angle, and a small disturbance swings as they say."""
    lean, turn = 0.3, 1.2
    found = [moving(ax.linearize(disk(), circling(lean, turn, spin))) for spin in (0.0, 0.8, 2.5)]
    assert all(np.allclose(poles, found[0], atol=1e-5) for poles in found)
    slow, fast = found[0]
    assert slow == pytest.approx(1j * turn, abs=1e-6)
    model = ax.gallery.build("rolling_disk").derive().compile()
    q, nu = circling(lean, turn, 0.0)
    period = 2 * np.pi / fast.imag
    run = ax.simulate(
        model,
        2 * period,
        start=(q, nu + np.array([1e-4, 0, 0])),
        save_every=period / 200,
        progress=False,
    )
    sine = 2 * (run["base.qy"] * run["base.qz"] + run["base.qw"] * run["base.qx"])  # n_z
    swing = np.arcsin(sine) - lean
    t = run.time
    basis = np.column_stack([np.cos(fast.imag * t), np.sin(fast.imag * t), np.ones_like(t)])
    left = swing - basis @ np.linalg.lstsq(basis, swing, rcond=None)[0]
    assert np.ptp(swing) > 1e-5 and np.abs(left).max() < 1e-3 * np.ptp(swing)


@functools.cache
def free_body(*moments: float) -> ax.Model:
    bot = ax.Mechanism("free", gravity=(0, 0, 0))
    bot.add_body("body", mass=1.0, inertia=moments)
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="body")
    return bot.derive().compile("interpreter")


@pytest.mark.parametrize("moments", [(1.0, 1.0, 1.8), (1.0, 1.4, 1.8), (2.0, 2.0, 1.0)])
def test_a_body_that_nothing_turns(moments):
    """Euler: i W sqrt((I3 - I1)(I3 - I2) / I1 I2) in its own axes; what stands still, i W."""
    spin = 3.0
    one, two, three = moments
    lin = ax.linearize(free_body(*moments), {"wz": spin})
    euler = spin * np.sqrt((three - one) * (three - two) / (one * two))
    poles = lin.poles.imag
    assert np.abs(lin.poles.real).max() < 1e-5
    assert np.min(np.abs(poles - euler)) < 1e-6
    assert (np.abs(np.abs(poles) - spin) < 1e-3).sum() == 6  # attitude, place and velocity
    own = ax.linearize(free_body(*moments), {"wz": spin}, states=["wx", "wy", "wz"])
    assert np.allclose(sorted(own.poles.imag), [-euler, 0, euler], atol=1e-9)


def test_between_two_moments_it_tumbles():
    lin = ax.linearize(free_body(1.0, 1.4, 1.8), {"wy": 2.0}, states=["wx", "wy", "wz"])
    growth = 2.0 * np.sqrt((1.8 - 1.4) * (1.4 - 1.0) / (1.0 * 1.8))
    assert lin.poles.real.max() == pytest.approx(growth, abs=1e-9)


@pytest.mark.parametrize("spin", [10.0, 30.0, 50.0])
def test_a_sleeping_top(spin):
    """I1 s^2 - i I3 W s - m g l = 0 in space, less i W in axes that turn along."""
    mass, height, about, pivot = 0.5, 0.1, 0.01, 0.02
    bot = ax.Mechanism("top")
    across = pivot - mass * height**2
    bot.add_body("top", mass=mass, com=(0, 0, height), inertia=(across, across, about))
    bot.add_joint("tip", ax.Spherical(), parent=bot.ground, child="top")
    lin = ax.linearize(bot.derive().compile("interpreter"), {"tip.wz": spin})
    roots = np.roots([pivot, -1j * about * spin, -mass * G * height]) - 1j * spin
    for root in roots:
        assert np.abs(lin.poles - root).min() < EXACT * spin
    falls = about**2 * spin**2 < 4 * pivot * mass * G * height
    assert (lin.poles.real.max() > 1e-3) == falls
    assert (spin == 10.0) == falls


def test_a_car_in_a_circle():
    """Steady, with its place on a circle: +-i W; speeds as they are without axes."""
    car = ax.gallery.build("differential_drive").derive().compile("interpreter")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotAnEquilibriumWarning)
        lin = ax.linearize(car, {"v": 1.0, "w": 0.5}, input="hold")
    assert np.abs(lin.poles - 0.5j).min() < 1e-6
    rest = ax.linearize(car, {"v": 1.0, "w": 0.5}, input="hold", states=car.independent)
    inner = np.ix_(
        [lin.states.index(n) for n in car.independent],
        [lin.states.index(n) for n in car.independent],
    )
    assert np.allclose(lin.A[inner], rest.A, atol=1e-12)
    assert set(lin.carried) == {"x", "y"}
    straight = ax.linearize(car, {"v": 1.0}, input="hold")
    assert straight.steady and not straight.axes.rates and straight.drift[0] == pytest.approx(1.0)


def test_a_snakeboard_rides_in_a_circle():
    """At home its wheelsets are steered: it turns, and its place has the poles of that."""
    board = ax.gallery.build("snakeboard").derive().compile("interpreter")
    lin = ax.linearize(board, {board.independent[0]: 1.0}, input="hold")
    assert lin.steady
    (turn,) = lin.axes.rates.values()
    assert np.abs(lin.poles - 1j * abs(turn)).min() < 1e-5


def test_a_lopsided_body_is_not_steady():
    """Moments that differ, in flight and spinning: no axes make that an equilibrium."""
    with pytest.warns(NotAnEquilibriumWarning):
        lin = ax.linearize(free_body(1.0, 1.4, 1.8), {"wz": 3.0, "vx": 1.0})
    assert not lin.steady and not lin.equilibrium


def test_a_wheel_out_of_round_is_periodic_and_said_so():
    """A disk whose moments across its axis differ: no axes, and the matrix changes as it turns."""
    bot = ax.Mechanism("oval")
    bot.add_body("disk", mass=M, inertia=(0.04, ALONG, 0.05))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="disk")
    bot.add_contact("rim", ax.Rolling(radius=R), body="disk")
    bot.set_home({"base.z": R})
    model = bot.derive(independent=["base.wx", "base.wy", "base.wz"]).compile("interpreter")
    with pytest.warns(NotAnEquilibriumWarning, match="how the rates depend on the states"):
        lin = ax.linearize(model, {"base.wy": 5.0})
    assert not lin.steady and not lin.equilibrium


def test_a_law_does_not_read_states_in_turning_axes():
    lin = ax.linearize(disk(), {"base.wy": 5.0})
    assert "base.roll" in lin.carried
    bot = ax.gallery.build("rolling_disk")
    bot.add_wrench("push", "disk")
    pushed = ax.linearize(bot.derive().compile("interpreter"), {"base.wy": 5.0})
    gains = {"push.mx": {"base.roll": 1.0}}
    with pytest.raises(ax.AxodeError, match=r"cannot read base\.roll: .* rotating axes"):
        pushed.state_feedback(gains)
