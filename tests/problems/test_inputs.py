"""Every way to say what the motors do, and every way to say it wrong."""

import warnings

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.mechanism.values.expressions import Time
from tests.problems import machines
from tests.problems.machines import G

EXACT = 1e-12  # polynomials of low degree are integrated exactly but for rounding
METHODS = [{"method": "rk4", "step": 0.05}, {}, {"method": "rk4", "step": 0.25}]
METHODS += [{"method": "dopri5"}]
LIMIT = 2.0
VALUES = np.array([1.0, -2.0, 3.0, 0.5])


def held(t: float, values: np.ndarray = VALUES, period: float = 0.25) -> tuple[float, float]:
    """Place and speed of a kilogram under held forces."""
    x = v = 0.0
    for k, u in enumerate(values):
        dt = max(t - k * period, 0.0)
        dt = dt if k == len(values) - 1 else min(dt, period)
        x, v = x + v * dt + u * dt**2 / 2, v + u * dt
    return x, v


@pytest.mark.parametrize("options", METHODS)
def test_held_samples(options: dict):
    """Within a step the sample that began it holds, also at the step's last stage."""
    run = ax.simulate(
        machines.slider(),
        1.3,
        input=ax.Sampled({"rail.force": VALUES}, 0.25),
        save_every=0.05,
        **options,
    )
    exact = np.array([held(t) for t in run.time])
    assert run["rail"] == pytest.approx(exact[:, 0], abs=EXACT)
    assert run["rail.rate"] == pytest.approx(exact[:, 1], abs=EXACT)
    assert set(run["rail.force"]) == set(VALUES) and np.abs(run["error"]).max() < EXACT


@pytest.mark.parametrize("options", METHODS[:2])
def test_held_samples_backwards(options: dict):
    x, v = held(1.0)
    run = ax.simulate(
        machines.slider(),
        -1.0,
        backwards=True,
        t0=1.0,
        start={"rail": x, "rail.rate": v},
        input=ax.Sampled(VALUES[:, np.newaxis], 0.25),
        save_every=0.05,
        **options,
    )
    assert run.final["rail"] == pytest.approx(0, abs=EXACT)
    assert run.final["rail.rate"] == pytest.approx(0, abs=EXACT)


@pytest.mark.parametrize("options", METHODS)
def test_joined_samples(options: dict):
    """A force that rises as t gives t^3 / 6; before and after the table it is constant."""
    ramp = ax.Sampled({"rail.force": [0.0, 0.5, 1.0]}, 0.5, start=1.0, between="linear")
    run = ax.simulate(machines.slider(), 1.0, t0=1.0, input=ramp, save_every=0.25, **options)
    assert run["rail"] == pytest.approx((run.time - 1) ** 3 / 6, abs=EXACT)
    assert run["rail.force"] == pytest.approx(run.time - 1, abs=EXACT)
    late = ax.simulate(machines.slider(), 1.0, t0=3.0, input=ramp, save_every=0.25, **options)
    assert late["rail"] == pytest.approx((late.time - 3) ** 2 / 2, abs=EXACT)
    early = ax.simulate(machines.slider(), 1.0, input=ramp, save_every=0.25, **options)
    assert np.abs(early["rail"]).max() == 0


def test_samples_of_each_run():
    forces = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 0.5]])
    run = ax.simulate(machines.slider(), 2.0, input=ax.Sampled({"rail.force": forces}, 1.0))
    for k in range(3):
        assert run.final["rail"][k] == pytest.approx(held(2.0, forces[k], 1.0)[0], abs=EXACT)
        assert run["rail.force"][k, -1] == forces[k, 1]


SAME = {
    "formula": {"pin.torque": "2*sin(3*t)"},
    "function of time": {"pin.torque": lambda s: 2 * ca.sin(3 * s.t)},
    "function of the state": lambda s: [2 * ca.sin(3 * s.t)],
    "mapping from a function": lambda s: {"pin.torque": 2 * ca.sin(3 * s.t)},
    "expression": {"pin.torque": 2.0 * np.sin(3.0 * Time())},
    "casadi": lambda model: {"pin.torque": 2 * ca.sin(3 * model.equations.t)},
    "casadi vector": lambda model: 2 * ca.sin(3 * model.equations.t),
}


@pytest.mark.parametrize("name", SAME)
def test_ways_to_say_the_same(name: str):
    model = machines.pendulum()
    given = SAME[name](model) if name.startswith("casadi") else SAME[name]
    run = ax.simulate(model, 2.0, start={"pin": 0.4}, input=given, rtol=1e-10)
    same = ax.simulate(model, 2.0, start={"pin": 0.4}, input=SAME["formula"], rtol=1e-10)
    assert run["pin"] == pytest.approx(same["pin"], abs=1e-9)
    assert run["pin.torque"] == pytest.approx(2 * np.sin(3 * run.time), abs=EXACT)
    assert run.energy_error < 1e-9


def test_feedback_from_state_measures_and_parameters():
    """A spring made of a motor: x = cos(sqrt(k/m) t)."""
    model = machines.slider()
    run = ax.simulate(
        model,
        3.0,
        start={"rail": 1.0},
        parameters={"mass": 2.0},
        rtol=1e-11,
        input=lambda s: [-3.0 * s["mass"] * s["rail"]],
    )
    assert run["rail"] == pytest.approx(np.cos(np.sqrt(3.0) * run.time), abs=1e-9)
    e = model.equations
    damped = ax.simulate(
        model, 3.0, start={"rail.rate": 1.0}, input={"rail.force": -e.nu[0]}, rtol=1e-11
    )
    assert damped["rail.rate"] == pytest.approx(np.exp(-damped.time), abs=1e-9)
    balanced = ax.simulate(
        machines.pendulum(),
        1.0,
        start={"pin": 0.5},
        input={"pin.torque": lambda s: -G * s["tip.x"]},
    )
    assert np.abs(balanced["pin"] - 0.5).max() < EXACT  # the motor carries the weight


def test_constants():
    model = machines.slider()
    for given in ({"rail.force": 3.0}, [3.0], np.array([3.0])):
        assert ax.simulate(model, 2.0, input=given).final["rail"] == pytest.approx(6.0, abs=EXACT)
    batch = ax.simulate(model, 2.0, input={"rail.force": [1.0, 2.0, -3.0]})
    assert batch.final["rail"] == pytest.approx([2.0, 4.0, -6.0], abs=EXACT)


@pytest.mark.parametrize("options", [{"method": "rk4", "step": 0.01}, {}])
def test_callback(options: dict):
    """Called once a step, in order, with the state there; its input is held during the step."""
    times, model = [], machines.slider()

    def force(t: float, state: dict[str, float]) -> dict[str, float]:
        assert set(state) >= {"rail", "rail.rate"}
        times.append(t)
        return {"rail.force": 1.0 if t < 0.5 - 1e-9 else -1.0}

    run = ax.simulate(model, 1.0, input=ax.Callback(force), save_every=0.01, **options)
    assert times[0] == 0.0 and (np.diff(times) > 0).all() and len(times) == run.info["steps"]
    assert run.final["rail"] == pytest.approx(0.25, abs=1e-9)
    assert run.final["rail.rate"] == pytest.approx(0.0, abs=1e-9)
    assert (run["rail.force"][:50] == 1).all() and (run["rail.force"][50:] == -1).all()


def test_callback_in_a_batch_with_events():
    """Runs are asked for by turns, and not twice for a step in which something was located."""
    asked: list[tuple[float, float]] = []

    def force(t: float, state: dict[str, float]) -> list[float]:
        asked.append((t, state["rail.rate"]))
        return [-state["rail.rate"]]

    run = ax.simulate(
        machines.slider(),
        1.0,
        start={"rail.rate": [1.0, 2.0, 4.0]},
        method="rk4",
        step=0.01,
        input=ax.Callback(force),
        events=[ax.Event("there", lambda s: s["rail"] - 0.5)],
    )
    assert len(asked) == len(set(asked)) == 300
    assert len(run.events) == 3
    decay = (1 - 0.01) ** 100  # of an input held for a step
    assert run.final["rail.rate"] == pytest.approx(np.array([1, 2, 4]) * decay, abs=1e-12)
    assert run["rail.force"][:, 0] == pytest.approx([-1.0, -2.0, -4.0])


@pytest.mark.parametrize(
    "given",
    [
        {"rail.force": 9.0},
        [9.0],
        {"rail.force": "9 + t"},
        lambda s: [9.0 + s["rail"] ** 2],
        ax.Sampled({"rail.force": [9.0, 9.0]}, 1.0),
        ax.Callback(lambda t, s: [9.0]),
        ax.Sampled({"rail.force": [9.0, 10.0]}, 1.0, between="linear"),
    ],
    ids=["number", "vector", "formula", "function", "samples", "callback", "joined"],
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_motors_saturate(given, sign: float):
    """Whatever is asked for, the motor gives its limit."""
    model = machines.slider(limit=LIMIT)
    if sign < 0:
        given = {"rail.force": "-9 - t"}
    run = ax.simulate(model, 1.0, input=given)
    assert run.final["rail"] == pytest.approx(sign * LIMIT / 2, abs=1e-9)
    assert (run["rail.force"] == sign * LIMIT).all()


WRONG = [
    ({"rail.farce": 1.0}, r"no input 'rail\.farce'.*\n.*Did you mean 'rail\.force'"),
    ({"rail.force": np.nan}, r"'rail\.force': every number must be finite"),
    (np.full(1, 1j), "input: expected numbers, got array.*complex"),
    ({"rail.force": np.datetime64("2026-01-01")}, r"expected numbers, got .*they are times"),
    ([np.inf], r"'rail\.force': every number must be finite"),
    ([1.0, 2.0], r"expected 1 numbers \(rail\.force\), got shape \(2,\)"),
    (3.0, r"expected 1 numbers"),
    ("sin(t)", r"needs the name of an input"),
    ({"rail.force": "sin(x)"}, r"'x' in 'sin\(x\)'"),
    ({"rail.force": "sin("}, r"input 'rail\.force': 'sin\(' is not a formula"),
    ({"rail.force": object()}, r"'rail\.force': expected numbers"),
    (ax.Sampled([1.0, 2.0], 0.1), r"expected arrays of samples for rail\.force, got shape \(2,\)"),
    (ax.Sampled({"rail.force": [1.0, np.nan]}, 0.1), r"must be finite"),
    (ax.Sampled({"rail.force": [1.0]}, 0.0), r"period must be > 0"),
    (ax.Sampled({"rail.force": [1.0]}, 1.0, start=np.nan), r"start must be finite"),
    (ax.Sampled({"rail.force": [1.0]}, 1.0, between="cubic"), r"neither 'hold' nor 'linear'"),
    (ax.Sampled({"rail.force": [1.0]}, "1.0"), r"period: expected a number of seconds, got '1\.0'"),
    (ax.Sampled({"rail.force": [1.0]}, 1.0, start=np.complex64(1j)), r"start: expected a number"),
    (ax.Sampled({"rail.force": [1.0]}, 1.0, between=np.zeros(2)), r"neither 'hold' nor 'linear'"),
    (ax.Sampled({"left": [1.0]}, 1.0), r"no input 'left'"),
    (ax.Callback(lambda t, s: [1.0, 2.0]), r"callback: expected 1 inputs"),
    (ax.Callback(lambda t, s: None), r"callback: expected 1 inputs"),
    (ax.Callback(lambda t, s: [np.datetime64("2020")]), r"callback: expected numbers"),
    ([np.timedelta64(1), 0.5], r"expected numbers"),
    (ax.Callback(lambda t, s: b"1.0"), r"callback: expected numbers, got b'1\.0' \(they are bytes"),
    (ax.Callback(lambda t, s: bytearray(b"1")), r"callback: expected numbers"),
    (ax.Callback(lambda t, s: ["1.0"]), r"callback: expected numbers.*they are texts"),
    ({"rail.force": np.array([(1.0,)], "f8,")}, r"expected numbers.*they are records"),
    ([b"1.0"], r"expected numbers.*they are bytes"),
    (np.ma.masked_array([1.0], [True]), r"'rail\.force': every number must be finite"),
    (ax.Callback(lambda t, s: {"left": 1.0}), r"no input 'left'"),
    ({"rail.force": ca.SX.sym("z")}, r"symbol 'z' is not of this model"),
    (lambda s: [s["railing"]], r"no signal 'railing'"),
    (lambda s: [bytearray(b"1")], r"where one number or expression is needed"),
    (lambda s: [1.0, 2.0], r"gives 2 values, the model takes 1"),
    ({"rail.force": [1.0, 2.0], "push": 1}, r"no input 'push'"),
]


@pytest.mark.parametrize(("given", "words"), WRONG)
def test_wrong_inputs(given, words: str):
    with pytest.raises(ax.AxodeError, match=words):
        ax.simulate(machines.slider(), 1.0, input=given)


def test_numbers_of_other_precisions():
    """CasADi ends the process at a `longdouble`."""
    runs = [ax.simulate(machines.slider(), 0.1, input=lambda s, x=x: [x]) for x in PRECISIONS]
    assert len({float(run.final["rail"]) for run in runs}) == 1
    with pytest.raises(ax.InvalidArgument, match="where one number or expression is needed"):
        ax.simulate(machines.slider(), 0.1, input=lambda s: [[[1.0], [1.0, 2.0]]])


PRECISIONS = (0.5, np.longdouble(0.5), np.array(0.5, np.longdouble), np.float16(0.5))


def test_errors_of_a_callback_come_through():
    def broken(t: float, state: dict[str, float]) -> list[float]:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        ax.simulate(machines.slider(), 1.0, input=ax.Callback(broken))


# trajectories ------------------------------------------------------------------------------------

SPREAD = np.concatenate([np.linspace(0.0, 0.4, 200), np.linspace(0.4, 1.0, 101)[1:]])


@pytest.mark.parametrize("times", [1.0, SPREAD], ids=["equal intervals", "others"])
def test_inputs_of_inverse_make_the_motion(times):
    """What `inverse` finds, `simulate` follows, up to the error of linear interpolation."""
    model = machines.pendulum()
    wanted = ax.inverse_dynamics(model, {"pin": "0.3 * sin(2*t)"}, times=times)
    run = ax.simulate(model, 1.0, start=wanted.at(0.0), input=wanted)
    assert run["pin"] == pytest.approx(0.3 * np.sin(2 * run.time), abs=2e-5)
    np.testing.assert_allclose(run.at(0.4)["pin.torque"], wanted.at(0.4)["pin.torque"], atol=1e-4)
    swept = ax.sweep(
        model, 1.0, start=wanted.at(0.0), input=wanted, outputs={"end": ("last", "pin")}
    )
    assert swept["end"] == pytest.approx(run.final["pin"], abs=1e-8)


def test_inputs_of_a_trajectory_hold_at_its_ends_and_run_backwards():
    model = machines.slider()
    ramp = ax.simulate(model, 1.0, input={"rail.force": "1 + t"}, save_every=0.1)
    run = ax.simulate(model, 2.0, t0=-0.5, input=ramp)
    assert run["rail.force"] == pytest.approx(1 + np.clip(run.time, 0.0, 1.0), abs=1e-12)
    backwards = ax.simulate(
        model, -1.0, backwards=True, t0=1.0, start=ramp, input={"rail.force": "1 + t"}
    )
    again = ax.simulate(model, 1.0, start=backwards, input=backwards)
    assert again.final["rail"] == pytest.approx(ramp.final["rail"], abs=1e-9)


def test_inputs_of_a_sample_are_those_of_its_instant():
    model = machines.slider()
    ramp = ax.simulate(model, 1.0, input={"rail.force": "1 + t"}, save_every=0.5)
    assert ax.simulate(model, 1.0, input=ramp.at(0.5)).final["rail"] == pytest.approx(0.75)
    assert ax.sweep(model, 1.0, input=ramp.at(0.5))["rail"] == pytest.approx(0.75)
    with warnings.catch_warnings(action="ignore"):  # it is at no equilibrium
        assert ax.linearize(model, input=ramp.at(0.5)).u0 == pytest.approx([1.5])


def test_inputs_of_a_batch_of_trajectories():
    model = machines.slider()
    made = ax.simulate(model, 1.0, input={"rail.force": [1.0, 2.0]}, save_every=0.5)
    run = ax.simulate(model, 1.0, input=made)
    np.testing.assert_allclose(run.final["rail"], [0.5, 1.0], atol=1e-12)


def test_motors_that_a_trajectory_lacks():
    model = machines.slider()
    run = ax.simulate(model, 1.0, save_every=0.5)
    with pytest.raises(ax.InvalidArgument, match=r"has no columns of rail\.force; give"):
        ax.simulate(model, 1.0, input=run[["rail", "rail.rate"]])
    uneven = ax.simulate(model, 10.0, save_every=1.0).resample([0.0, 1e-7, 10.0])
    with pytest.raises(
        ax.InvalidArgument, match=r"input: samples 1e-07 s apart would make 100000001"
    ):
        ax.simulate(model, 1.0, input=uneven)


@pytest.mark.parametrize(
    "wrong", [lambda s: "full", lambda s: None, lambda s: [s["rail"]], lambda s: np.ones(2)]
)
def test_functions_that_give_no_numbers(wrong):
    with pytest.raises(ax.InvalidArgument, match="where one number or expression is needed"):
        ax.simulate(machines.slider(), 0.1, input=lambda s: [wrong(s)])


def test_a_callback_reads_coordinates_speeds_and_measures_of_every_run():
    model, seen = ax.gallery.build("wheeled_pendulum").derive().compile(), {}
    held = np.zeros(2)

    def torques(t, state):
        seen[round(t, 9), state["theta3"]] = dict(state)
        held[:] = 0.1 * state["theta3_dot"], 0.02  # an array that the loop reuses
        return held if t < 0.05 else {"M2": 0.02, "M1": float(held[0])} if t < 0.08 else [*held]

    given = {"start": {"theta3": [0.1, 0.3]}, "parameters": {"m": [11.0, 12.0]}}
    options = {"method": "rk4", "step": 1e-3, "save_every": 1e-2}
    run = ax.simulate(model, 0.1, input=ax.Callback(torques), **given, **options)
    assert len(seen) == 200
    for t in (0.0, 0.03, 0.06, 0.09):
        now = run.at(t)
        for k in range(2):
            state = seen[t, now["theta3"][k]]
            assert all(state[name] == now[name][k] for name in state)
            if t:
                assert abs(now["M1"][k] - 0.1 * state["theta3_dot"]) < 1e-14
                assert now["M2"][k] == 0.02


def test_samples_of_a_loop_over_time_have_time_first():
    model, rng = machines.slider(), np.random.default_rng(0)
    forces = rng.normal(size=(4, 3))  # samples of three runs
    usual = ax.simulate(model, 1.0, input=ax.Sampled(forces.T[..., np.newaxis], 0.25))
    whole = ax.Sampled(forces[..., np.newaxis], 0.25, time_first=True)
    named = ax.Sampled({"rail.force": forces}, 0.25, time_first=True)
    single = ax.Sampled({"rail.force": forces[:, 0]}, 0.25, time_first=True)
    for given in (whole, named):
        run = ax.simulate(model, 1.0, input=given)
        assert run.batch == (3,)
        np.testing.assert_array_equal(run["rail.rate"], usual["rail.rate"])
    run = ax.simulate(model, 1.0, input=single)
    np.testing.assert_allclose(run["rail.rate"], usual["rail.rate"][0], atol=EXACT)
