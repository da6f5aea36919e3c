"""Breaks: steps end where formulas of time switch, whatever the method, and where motions jump."""

from functools import cache

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.formulas import TAPE_FUNCTIONS, formula_tape
from axode.codegen.tape.switching import find_switches, switching_times
from emulated_gpu import install
from tests.problems import machines

METHODS = ("auto", "dopri5", "radau9", "rodas5p", "rk4")
EXACT = 1e-12  # closed forms of a cart under a force that is constant between breaks
PULSE = "where(t > 0.5 and t < 0.502, 80, 0)"
IMPULSE = 80 * 0.002  # [N s]
FUNCTIONS = TAPE_FUNCTIONS


def options(method):
    """Steps of rk4 far longer than any pulse, and none of them ends at a break."""
    return {"method": method} | ({"step": 0.0701} if method == "rk4" else {})


def switches(function, end=1.0, begin=0.0, **kept):
    sizes = {"t": 1} | {name: array.shape[-1] for name, array in kept.items()}
    tape = formula_tape("law", sizes, lambda **v: {"y": [function(**v)]})
    found = find_switches(tape, tuple(kept))
    return switching_times(found, begin, end, kept)


# where something switches -------------------------------------------------------------------------


def modulo(x, period):
    return x - period * FUNCTIONS["floor"](x / period)


LAWS = {
    "pulse": (lambda t: (t[0] > 0.3) & (t[0] < 0.3 + 1e-9), [0.3, 0.3 + 1e-9]),
    "wave": (
        lambda t: FUNCTIONS["sin"](7 * np.pi * t[0] - 0.1) > 0.0,
        (np.arange(7) + 0.1 / np.pi) / 7,
    ),
    "train": (
        lambda t: modulo(t[0], 0.1) < 1e-7,
        np.sort([*np.arange(1, 11) / 10, *np.arange(10) / 10 + 1e-7]),
    ),
    "kinks": (
        lambda t: abs(t[0] - 0.2) + (2 * t[0]).least(1.0) + (t[0] - 0.7).most(0.0),
        [0.2, 0.5, 0.7],
    ),
    "sign": (lambda t: FUNCTIONS["sign"](t[0] ** 2.0 - 0.25), [0.5]),
    "nested": (
        lambda t: ((t[0] < 0.4).then(t[0], 1.0 - t[0]) > 0.3).then(1.0, 0.0),
        [0.3, 0.4, 0.7],
    ),
    "parabola": (lambda t: t[0] * t[0] - t[0] + 0.25 < 1e-10, [0.5 - 1e-5, 0.5 + 1e-5]),
    "thousands": (lambda t: FUNCTIONS["floor"](4000 * t[0]), np.arange(1, 4001) / 4000),
}


@pytest.mark.parametrize("name", LAWS)
def test_switching_times_of_laws_of_time(name):
    law, expected = LAWS[name]
    _, found = switches(law)
    for t in expected:
        assert np.abs(found - t).min() < 1e-10, t
    for t in found:
        assert np.abs(np.asarray(expected) - t).min() < 1e-10, t


def test_switching_times_are_neighbouring_floating_point_times_for_every_run():
    at = np.linspace(0.1, 0.9, 1001)[:, np.newaxis]
    run, time = switches(lambda t, gains: 3.0 * t[0] <= 3.0 * gains[0], gains=at)
    assert (run == np.arange(len(at))).all()
    before = np.nextafter(time, 0.0)
    assert (3.0 * before <= 3.0 * at[:, 0]).all() and not (3.0 * time <= 3.0 * at[:, 0]).any()


def test_laws_of_time_that_switch_without_end_are_searched_in_bounded_time():
    _, found = switches(lambda t: FUNCTIONS["sin"](1.0 / t[0]) > 0.0)
    for k in range(1, 100):
        assert np.abs(found - 1 / (k * np.pi)).min() < 1e-10


@pytest.mark.parametrize(
    "law",
    ["floor(1 / t)", "t % (t - 0.5)", "floor(1e9 * t)", "floor(1e300 * t)", "floor(exp(1000 * t))"],
)
def test_laws_of_time_with_too_many_steps_are_refused(law, monkeypatch):
    monkeypatch.setattr("axode.codegen.tape.switching.EVALUATIONS", (1 << 20, 0))
    with pytest.raises(ax.InvalidArgument, match="formulas of time switch too often near t ="):
        ax.simulate(machines.slider(), 1.0, input={"rail": law})


def test_numbers_that_are_not_known_before_a_time_do_not_switch_there():
    """The root of what is negative is not used before 0.5 s; then force is 1 from 0.75 s on."""
    law = "where(t < 0.5, 0, floor(2 * sqrt(t - 0.5)))"
    run = ax.simulate(machines.slider(), 1.0, input={"rail": law})
    assert run.final["rail.rate"] == pytest.approx(0.25, rel=EXACT)


def test_the_search_ends_at_ctrl_c():
    def check():
        raise KeyboardInterrupt

    tape = formula_tape("law", {"t": 1}, lambda t: {"y": [FUNCTIONS["floor"](1.0 / t[0])]})
    with pytest.raises(KeyboardInterrupt):
        switching_times(find_switches(tape, ()), 0.0, 1.0, {}, check)


def test_times_far_from_zero_are_resolved_to_their_spacing():
    law = lambda t: FUNCTIONS["sin"](t[0] - 1e9) > 1.0 - 1e-17  # noqa: E731  # at its peak
    _, found = switches(lambda t: law(t) | (t[0] > 1e9 + 1), 1e9 + 2, 1e9)
    assert np.abs(found - (1e9 + 1)).min() < 1e-6
    assert all(min(abs(t - 1e9 - 1), abs(t - 1e9 - np.pi / 2)) < 1e-6 for t in found)


# inputs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", ["formula", "function"])
def test_no_method_steps_over_a_pulse(method, law):
    slider = machines.slider()
    given = {"rail": PULSE} if law == "formula" else lambda s: 80 * ((s.t > 0.5) & (s.t < 0.502))
    run = ax.simulate(slider, 1.0, input=given, **options(method))
    assert run.final["rail.rate"] == pytest.approx(IMPULSE, rel=EXACT)
    assert run.final["rail"] == pytest.approx(IMPULSE * 0.499, rel=EXACT)
    back = ax.simulate(slider, -1.0, backwards=True, t0=1.0, input=given, **options(method))
    assert back.final["rail.rate"] == pytest.approx(-IMPULSE, rel=EXACT)


@pytest.mark.parametrize("method", METHODS)
def test_a_break_is_where_a_run_split_by_hand_ends(method):
    model = machines.pendulum()
    law = lambda s: np.where(s.t < 0.3, 5.0, -s["pin"])  # noqa: E731
    whole = ax.simulate(model, 1.0, start={"pin": 0.5}, input=law, **options(method))
    first = ax.simulate(model, 0.3, start={"pin": 0.5}, input={"pin": 5.0}, **options(method))
    state = {name: first.final[name] for name in ("pin", "pin.rate")}
    rest = ax.simulate(model, 0.7, start=state, input=lambda s: -s["pin"], **options(method))
    tolerance = 2e-5 if method == "rk4" else 1e-9
    assert whole.final["pin"] == pytest.approx(rest.final["pin"], abs=tolerance)
    assert abs(whole.energy_error) < (1e-3 if method == "rk4" else 1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_breaks_at_the_start_at_the_end_and_at_the_same_time(method):
    slider = machines.slider()
    law = (
        "where(t >= 0, 1, 50) + where(t < 0.25, 0, 2) + where(t <= 0.25, 0, 4) + where(t < 1, 0, 9)"
    )
    run = ax.simulate(slider, 1.0, input={"rail": law}, **options(method))
    assert run.final["rail.rate"] == pytest.approx(1 + 0.75 * 6, rel=EXACT)


@pytest.mark.parametrize("method", METHODS)
def test_switching_times_may_be_gains_that_differ_from_run_to_run(method):
    at = np.linspace(0.05, 0.9, 7)
    law = ax.Law(lambda s, at: {"rail": np.where((s.t > at) & (s.t < at + 1e-3), 90.0, 0.0)}, at=at)
    run = ax.simulate(machines.slider(), 1.0, input=law, **options(method))
    np.testing.assert_allclose(run.final["rail.rate"], 0.09, rtol=EXACT)
    np.testing.assert_allclose(run.final["rail"], 0.09 * (1 - at - 5e-4), rtol=EXACT)


def test_sweeps_and_costs_end_steps_at_breaks():
    slider = machines.slider()
    law = lambda s: np.where((s.t > 0.5) & (s.t < 0.502), 80.0, 0.0)  # noqa: E731
    swept = ax.sweep(
        slider,
        1.0,
        step=0.0701,
        input=law,
        parameters={"mass": [1.0, 2.0]},
        outputs={"v": ("last", "rail.rate")},
    )
    np.testing.assert_allclose(swept["v"], [IMPULSE, IMPULSE / 2], rtol=EXACT)
    cost = ax.Cost(slider, 1.0, step=0.0701, input=law, final=lambda s: s["rail.rate"] ** 2)
    assert cost.value() == pytest.approx(IMPULSE**2, rel=EXACT)
    found = ax.gradient(cost, {"mass": 1.0})
    assert found["mass"] == pytest.approx(-2 * IMPULSE**2, rel=1e-10)


GATHERED = {  # and their closed forms, for a run of 1 s from t = 0
    "level": (("integral", "where(t < 0.3, 1, 0)"), 0.3),
    "pulse": (("integral", lambda s: np.where(abs(s.t - 0.777) < 1e-4, 1e4, 0)), 2.0),
    "stairs": (("integral", "floor(10 * t)"), 4.5),
    "before": (("max", "where(t < 0.3, t, 0)"), 0.3),
    "after": (("max", "where(t > 0.3, 1 - t, 0)"), 0.7),
    "dip": (("min", "where(abs(t - 0.777) < 1e-4, -5, t)"), -5.0),
    "first": (("crossing", "where(t < 0.3, -1, 1)"), 0.3),
    "last": (("last", "where(t < 1, 0, 5)"), 5.0),
}


@pytest.mark.parametrize("place", [*METHODS, "backwards", "cuda"])
def test_what_sweeps_gather_may_switch_with_time(place, monkeypatch):
    outputs, expected = ({k: pair[i] for k, pair in GATHERED.items()} for i in (0, 1))
    given = options(place) if place in METHODS else {}
    duration, t0 = 1.0, 0.0
    if place == "cuda":
        install(monkeypatch)
        given = {"target": "cuda", "step": 0.0701}
    if place == "backwards":
        duration, t0, given = -1.0, 1.0, {"backwards": True}
        outputs = {name: outputs[name] for name in ("level", "pulse", "before", "first")}
        expected |= {"level": -0.3, "pulse": -2.0}
    masses = {"mass": [1.0, 2.0]}
    swept = ax.sweep(
        machines.slider(), duration, t0=t0, parameters=masses, outputs=outputs, **given
    )
    for name in outputs:
        np.testing.assert_allclose(swept[name], expected[name], rtol=1e-11, err_msg=name)


def test_sweeps_gather_what_switches_at_a_parameter():
    masses = np.linspace(0.1, 0.9, 5)
    swept = ax.sweep(
        machines.slider(),
        1.0,
        parameters={"mass": masses},
        outputs={"level": ("integral", "where(t < mass, 1, 0)")},
    )
    np.testing.assert_allclose(swept["level"], masses, rtol=EXACT)


@pytest.mark.parametrize("step", [None, 0.01])
def test_what_costs_add_up_may_switch_with_time(step):
    for name in ("level", "pulse", "stairs"):
        (_, running), expected = GATHERED[name]
        cost = ax.Cost(machines.slider(), 1.0, step=step, running=running)
        assert cost.value() == pytest.approx(expected, rel=1e-11)
    until = ax.Cost(machines.slider(), 1.0, step=step, running="where(t < mass, 1, 0)")
    with pytest.raises(ax.NotApplicable, match="switches at times that depend on 'mass'"):
        ax.gradient(until, {"mass": 0.5})


@pytest.mark.parametrize("method", METHODS)
def test_events_that_switch_with_time_are_found(method):
    event = ax.Event("pulse", "where(abs(t - 0.777) < 1e-9, 1, -1)")
    run = ax.simulate(machines.slider(), 1.0, events=event, **options(method))
    times = [found.time for found in run.events]
    np.testing.assert_allclose(times, [0.777 - 1e-9, 0.777 + 1e-9], rtol=EXACT)


def test_derivatives_by_switching_times_are_refused():
    law = ax.Law(lambda s, at: {"rail": np.where(s.t < at, 1.0, 0.0)}, at=0.3)
    cost = ax.Cost(machines.slider(), 1.0, step=0.01, input=law, final="rail**2")
    assert cost.value() > 0
    with pytest.raises(ax.NotApplicable, match="switches at times that depend"):
        ax.gradient(cost, {"at": 0.3})
    with pytest.raises(ax.NotApplicable, match="switches at times that depend"):
        ax.simulate(machines.slider(), 1.0, input=law, sensitivities=["at"])


def test_steps_of_fixed_length_end_at_samples():
    """A staircase of forces, 0.1 s each, by steps of 7 ms: exact where every step has one force."""
    force = np.random.default_rng(3).normal(size=11)
    given = ax.Sampled({"rail": force}, 0.1)
    run = ax.simulate(machines.slider(), 1.0, input=given, method="rk4", step=0.007)
    assert run.final["rail.rate"] == pytest.approx(0.1 * force[:10].sum(), abs=1e-14)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("between", ["hold", "linear"])
def test_samples_that_begin_late_or_end_early_are_not_stepped_over(method, between):
    """A pulse of 2 ms in four samples: a second of nothing before it, and behind it."""
    given = ax.Sampled({"rail": [0.0, 80.0, 0.0, 0.0]}, 0.002, start=0.5, between=between)
    run = ax.simulate(machines.slider(), 1.0, input=given, **options(method))
    assert run.final["rail.rate"] == pytest.approx(IMPULSE, rel=1e-9)
    back = ax.simulate(
        machines.slider(), -1.0, backwards=True, t0=1.0, input=given, **options(method)
    )
    assert back.final["rail.rate"] == pytest.approx(-IMPULSE, rel=1e-9)


@pytest.mark.parametrize("step", [None, 0.01])
def test_measured_instants_that_begin_late_all_count(step):
    start, model = {"rail.rate": 1.0}, machines.slider()
    run = ax.simulate(model, 1.0, start=start, save_every=0.01)
    part = run.resample(run.time[60:80])
    cost = ax.Cost(model, 1.0, start={"rail.rate": 2.0}, match=part[["rail"]], step=step)
    assert cost.value() == pytest.approx((run.time[60:80] ** 2).mean(), rel=1e-9)


def test_a_gpu_ends_steps_at_breaks_too(monkeypatch):
    install(monkeypatch)
    law = ax.Law(
        lambda s, at: {"rail": np.where((s.t > at) & (s.t < at + 2e-3), 80.0, 0.0)},
        at=np.array([0.1, 0.5, 0.7]),
    )
    for method in ("rk4", "dopri5"):
        run = ax.simulate(machines.slider(), 1.0, input=law, target="cuda", **options(method))
        np.testing.assert_allclose(run.final["rail.rate"], IMPULSE, rtol=1e-10)


# prescribed motions -------------------------------------------------------------------------------


@cache
def driven(motion):
    """A pole hangs from a cart whose place is prescribed."""
    bot = ax.Mechanism("driven cart", gravity=(0, 0, -9.81))
    cart = bot.add_body("cart", mass=3.0, inertia=ax.Inertia.point())
    pole = bot.add_body("pole", mass=2.0, com=(0, 0, -0.4), inertia=(0.11, 0.11, 0.01))
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("theta", ax.Revolute("y"), parent=cart, child=pole)
    bot.prescribe("x", motion)
    return bot.derive().compile(parameters="free")


def starts_to_move(t):
    return np.where(t < 0.3, 0.0, t - 0.3)


KICK = 2.0 * 0.4 / (0.11 + 2.0 * 0.4**2)  # [rad/s] per m/s: m l / (I + m l^2)


@pytest.mark.parametrize("method", METHODS)
def test_a_jump_of_a_prescribed_rate_applies_its_impulse(method):
    given = options(method) | ({"step": 0.007} if method == "rk4" else {})
    run = ax.simulate(driven(starts_to_move), 0.6, save_every=0.1, **given)
    rate = run["theta.rate"]
    assert (rate[:3] == 0).all()
    assert rate[3] == pytest.approx(KICK, rel=1e-9)
    assert run.info["impulses"] == [0.3]
    assert abs(run.energy_error) < (1e-6 if method == "rk4" else 1e-10)
    # then energy in the frame of the cart
    T, V = 0.5 * (0.11 + 0.32) * run["theta.rate"] ** 2, -2 * 9.81 * 0.4 * np.cos(run["theta"])
    np.testing.assert_allclose((T + V)[3:], (T + V)[3], rtol=1e-6 if method == "rk4" else 1e-9)
    back = ax.simulate(
        driven(starts_to_move),
        -0.6,
        backwards=True,
        t0=0.6,
        start={"theta": run.final["theta"], "theta.rate": run.final["theta.rate"]},
        **given,
    )
    assert back.final["theta"] == pytest.approx(0.0, abs=1e-5 if method == "rk4" else 1e-9)
    assert back.final["theta.rate"] == pytest.approx(0.0, abs=1e-5 if method == "rk4" else 1e-8)


@pytest.mark.parametrize("duration", [0.6, -0.6])
def test_jumps_of_prescribed_rates_are_refused_on_request(duration):
    begin = {"t0": 0.6, "backwards": True} if duration < 0 else {}
    with pytest.raises(ax.InvalidArgument, match=r"x\.rate jump by -?1 at t = 0\.3 s.*ax\.motions"):
        ax.simulate(driven(starts_to_move), duration, jumps="refuse", **begin)
    with pytest.raises(ax.UnknownName, match="impulse"):
        ax.simulate(driven(starts_to_move), 0.6, jumps="ignore")
    refused = ax.Scenario(driven(starts_to_move), duration, jumps="refuse", **begin)
    for run in (lambda: ax.sweep(refused), lambda: ax.Cost(refused, final="theta").value()):
        with pytest.raises(ax.InvalidArgument, match="no impulses"):
            run()
    before = ax.simulate(driven(starts_to_move), 0.25, jumps="refuse")  # ends before the jump
    smooth = ax.simulate(driven(lambda t: np.maximum(0, t - 0.3) ** 2), 0.6, jumps="refuse")
    assert before.status == smooth.status == "finished"


CORNERS = {
    "max(0, t - {})": (0.0, 1.0),
    "max(t - {}, 0)": (0.0, 1.0),
    "min({} - t, 0)": (0.0, -1.0),
    "abs(t - {})": (-1.0, 1.0),
    "(t - {0}) * sign(t - {0})": (-1.0, 1.0),
    "where(t > {0}, t - {0}, 0)": (0.0, 1.0),
    "where(t <= {0}, 0, t - {0})": (0.0, 1.0),
    "where(t < {0}, 0, t - {0})": (0.0, 1.0),
}


def carrier(motion):
    """A slider that is moved, with a slider of 2 kg on a spring on it: x'' = -25 x."""
    made = ax.Mechanism("carrier", gravity=(0, 0, 0))
    a = made.add_body("a", mass=1.0, inertia=(0.1, 0.1, 0.1))
    b = made.add_body("b", mass=2.0, inertia=(0.1, 0.1, 0.1))
    made.add_joint("y", ax.Prismatic("x"), parent=made.ground, child=a)
    made.add_joint("x", ax.Prismatic("x"), parent=a, child=b)
    made.add_spring("s", "x", stiffness=50)
    made.prescribe("y", motion)
    return made.derive().compile()


@pytest.mark.slow
@pytest.mark.parametrize("motion", CORNERS)
def test_at_a_corner_of_a_motion_its_rate_is_that_after_it(motion):
    before, after = CORNERS[motion]
    at_zero, at = carrier(motion.format(0)), carrier(motion.format(0.3))
    for method in ("auto", "radau9"):
        start = ax.simulate(at_zero, 0.1, method=method)  # from its corner
        assert start["y.rate"][0] == after and not start.info.get("impulses")
        assert start.final["x.rate"] == pytest.approx(0.0, abs=1e-9)
        back = ax.simulate(at_zero, -0.1, backwards=True, method=method)
        assert back["y.rate"][-1] == before
        kicked = (after - before) * np.cos(0.5)
        assert back.final["x.rate"] == pytest.approx(kicked, abs=1e-9)
        for run in (start, back):
            assert run.status == "finished" and abs(run.energy_error) < 1e-9
    whole = ax.simulate(at, 0.5, save_every=0.1)  # over it, with a sample there
    first = ax.simulate(at, 0.3)  # up to it
    rest = ax.simulate(at, 0.2, start=first.final)
    for run in (whole, first):
        k = np.flatnonzero(np.abs(run.time - 0.3) < 1e-9)[0]
        assert run["y.rate"][k] == after
        assert run["x.rate"][k] == pytest.approx(before - after, abs=1e-9)
        np.testing.assert_allclose(run.info["impulses"], [0.3], rtol=1e-15)
    assert rest.final["x.rate"] == pytest.approx(whole.final["x.rate"], abs=1e-9)
    for run in (whole, first, rest):
        assert run.status == "finished" and abs(run.energy_error) < 1e-9


def test_samples_of_rk4_next_to_corners_are_on_the_side_of_their_times():
    run = ax.simulate(carrier("abs(t % 0.4 - 0.2)"), 1.0, method="rk4", step=5e-4)
    assert abs(run.energy_error) < 1e-9  # 0.6 s is a sample, and the corner one rounding later


@pytest.mark.parametrize("law", ["where(t > 0, 1, 100)", "where(t <= 0, 100, 1)", "sign(t)"])
@pytest.mark.parametrize("method", METHODS)
def test_a_jump_of_an_input_at_the_start_is_before_it(method, law):
    run = ax.simulate(machines.slider(), 1.0, input={"rail": law}, **options(method))
    assert run.final["rail.rate"] == pytest.approx(1.0, rel=EXACT)
    law = {"rail": "where(t < 0, 1, 50)"}
    back = ax.simulate(machines.slider(), -1.0, backwards=True, input=law)
    assert back.final["rail.rate"] == pytest.approx(-1.0, rel=EXACT)


def test_sweeps_and_gradients_apply_impulses():
    at = ax.Parameter("speed", 1.0)
    model = driven(lambda t: np.where(t < 0.3, 0.0, at * (t - 0.3)))
    law = dict(step=0.003)
    swept = ax.sweep(
        model,
        0.3003,
        parameters={"speed": [1.0, -2.0]},
        outputs={"rate": ("last", "theta.rate")},
        **law,
    )
    np.testing.assert_allclose(swept["rate"], [KICK, -2 * KICK], rtol=1e-4)
    swept = ax.sweep(model, 0.4, parameters={"speed": [1.0]}, outputs={"e": ("largest", "error")})
    assert swept["e"][0] < 1e-9 and swept.finished.all()
    cost = ax.Cost(model, 0.5, final=lambda s: s["theta"], **law)
    found = ax.gradient(cost, {"speed": 1.0})["speed"]
    step = 1e-4
    high, low = (cost.value({"speed": 1.0 + k * step}) for k in (1, -1))
    assert found == pytest.approx((high - low) / (2 * step), rel=1e-6)


def test_a_prescribed_position_cannot_jump():
    model = driven(lambda t: np.where(t < 0.3, 0.0, 0.1))
    with pytest.raises(
        ax.InvalidArgument, match=r"prescribe 'x': the motion jumps by 0.1 at t = 0.3"
    ):
        ax.simulate(model, 1.0)
    assert ax.simulate(model, 0.2).final["theta"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("t0", [0.0, 1e9])
def test_small_jumps_of_positions_are_told_from_rounding(t0):
    at = t0 + 0.25
    for jump in (1e-15, 1e-9):
        with pytest.raises(ax.InvalidArgument, match=f"jumps by {jump:g} at t = {at:.15g} s"):
            ax.simulate(driven(lambda t, jump=jump: np.where(t < at, 0.0, jump)), 1.0, t0=t0)
    for motion in (
        lambda t: 0.7 * np.maximum(0.0, t - at),  # moves within the resolution of time
        lambda t: np.where(t < at, 0.1 * np.sin(t - at + 1), 0.1 * np.sin(1.0) + 0 * t),
        lambda t: np.where(t < at, 0.1 * np.sin(t - at + 1), 0.0841470984808 + 0 * t),
    ):
        run = ax.simulate(driven(motion), 1.0, t0=t0)
        assert len(run.info["impulses"]) == 1 and abs(run.energy_error) < 1e-6


def test_times_that_are_too_far_apart_for_a_run():
    model = driven(lambda t: 0.1 * np.sin(t - 1e12))
    with pytest.raises(ax.InvalidArgument, match=r"times are 0.12 s apart; make it longer, or t0"):
        ax.simulate(model, 0.5, t0=1e15)
    with pytest.raises(ax.SimulationFailed, match=r"they are 0.00012 s apart; make t0 smaller"):
        ax.simulate(model, 0.5, t0=1e12)


@pytest.mark.parametrize("law", ["t % 0", "1 / 0.0", "t / (1 - 1)", "1 - t % (0 * 3)"])
def test_what_divides_by_zero_is_no_formula(law):
    with pytest.raises(ax.InvalidArgument, match=r"divides by zero|no value"):
        ax.simulate(machines.slider(), 1.0, input={"rail": law})
    with pytest.raises(ax.InvalidArgument, match="divides by zero"):
        driven(lambda t: t % 0)


def test_a_file_without_the_momentum_refuses_jumps(tmp_path):
    model = driven(starts_to_move)
    model.save(tmp_path / "without.axm", functions=model.functions)
    with pytest.raises(ax.NotApplicable, match="Save it with the model"):
        ax.simulate(ax.load_model(tmp_path / "without.axm"), 1.0)
    model.save(tmp_path / "with.axm", functions=[*model.functions, "momentum_speeds"])
    run = ax.simulate(ax.load_model(tmp_path / "with.axm"), 0.3)
    assert run.final["theta.rate"] == pytest.approx(KICK, rel=1e-9)
