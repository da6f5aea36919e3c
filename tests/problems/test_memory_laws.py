"""Laws that remember: integrated and sampled with the motion, by every method and every verb."""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import axode as ax
from emulated_gpu import install
from tests.problems import machines

METHODS = ("auto", "dopri5", "radau9", "rodas5p", "rk4")
EXACT = 1e-12  # closed forms of what is constant between samples
CLOSE = 1e-9  # of integrations with the tolerances that runs have unless others are given
PERIOD = 0.05


def options(method, step=0.002):
    return {"method": method} | ({"step": step} if method == "rk4" else {})


def speed_control(**changes):
    """Hold a cart's speed at 1 m/s by a PI controller."""
    block = {"kp": 2.0, "ki": 3.0} | changes
    return ax.Law(
        lambda s, pi: {"rail": pi(1.0 - s["rail.rate"])},
        pi=ax.blocks.PI(block.pop("kp"), block.pop("ki"), **block),
    )


def sampled_speed(count, kp=2.0, ki=3.0, limit=np.inf, period=PERIOD):
    """Speeds and forces of that cart under a sampled controller, by recursion."""
    v, total, speeds, forces = 0.0, 0.0, [], []
    for _ in range(count + 1):
        e = 1.0 - v
        wanted = kp * e + total
        force = np.clip(wanted, -limit, limit)
        if (wanted - force) * ki * e <= 0:
            total += ki * period * e
        speeds.append(v)
        forces.append(force)
        v += period * force
    return np.array(speeds), np.array(forces)


# closed forms -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_pi_controller_on_an_integrator_has_its_closed_form(method):
    run = ax.simulate(machines.slider(), 4.0, input=speed_control(), **options(method))
    decay = np.array([[-2.0, 1.0], [-3.0, 0.0]])  # of speed - 1 and integral
    exact = np.array([[1.0, 0.0] + expm(decay * t) @ [-1.0, 0.0] for t in run.time])
    np.testing.assert_allclose(run["rail.rate"], exact[:, 0], atol=CLOSE)
    np.testing.assert_allclose(run["pi.integral"], exact[:, 1], atol=CLOSE)


def test_filters_follow_a_step_and_a_ramp():
    lag, period = 0.3, 0.01
    law = ax.Law(
        lambda s, step, ramp, rate, each: {
            "rail": 0.0 * (step(1.0) + ramp(s.t) + rate(s.t) + each(s.t))
        },
        step=ax.blocks.LowPass(lag),
        ramp=ax.blocks.LowPass(lag),
        rate=ax.blocks.Derivative(lag),
        each=ax.blocks.Derivative(lag, period=period),
    )
    run = ax.simulate(machines.slider(), 1.0, input=law, save_every=period)
    t, rest = run.time, 1.0 - np.exp(-run.time / lag)
    np.testing.assert_allclose(run["step.filtered"], rest, atol=CLOSE)
    np.testing.assert_allclose(run["ramp.filtered"], t - lag * rest, atol=CLOSE)
    np.testing.assert_allclose((t - run["rate.filtered"]) / lag, rest, atol=CLOSE / lag)
    expected, y, keep = [], 0.0, np.exp(-period / lag)
    for k in range(len(t)):
        after = keep * y + (1 - keep) * k * period
        expected.append((after - y) / period)
        y = after
    np.testing.assert_allclose(run["each.output"], expected, atol=EXACT)


@pytest.mark.parametrize("method", METHODS)
def test_a_sampled_controller_is_its_recursion(method):
    limits = {} if method == "auto" else {"limit": 1.5}
    run = ax.simulate(
        machines.slider(),
        2.0,
        input=speed_control(period=PERIOD, **limits),
        save_every=PERIOD,
        **options(method, PERIOD / 5),
    )
    speeds, forces = sampled_speed(40, **limits)
    np.testing.assert_allclose(run["rail.rate"], speeds, atol=EXACT)
    np.testing.assert_allclose(run["rail.force"], forces, atol=EXACT)


@pytest.mark.parametrize("period", [0.1, 0.02, 0.07, 1 / 3])
@pytest.mark.parametrize("step", [None, 1 / 3, 0.7])
def test_no_sample_is_lost_or_taken_twice(period, step):
    speeds, _ = sampled_speed(40, period=period)
    law = speed_control(period=period)
    how = {} if step is None else {"method": "rk4", "step": step * period}
    run = None
    for k in range(1, 11):  # runs that go on from each other, at times that only rounding tells
        run = ax.simulate(machines.slider(), 4 * period, input=law, start=run, **how)
        assert abs(run.final["rail.rate"] - speeds[4 * k]) < EXACT


def test_a_delayed_signal_comes_later():
    law = ax.Law(
        lambda s, hold, delay: {"rail": delay(hold(np.sin(s.t)))},
        hold=ax.blocks.Hold(PERIOD),
        delay=ax.blocks.Delay(0.2, PERIOD),
    )
    run = ax.simulate(machines.slider(), 1.0, input=law, save_every=PERIOD)
    before = run.time < 0.2 - EXACT
    late = np.where(before, 0.0, np.sin(run.time - 0.2))
    np.testing.assert_allclose(run["rail.force"], late, atol=EXACT)


def test_blocks_of_different_periods_share_their_samples():
    law = ax.Law(
        lambda s, slow, fast: {"rail": fast(slow(s.t))},
        slow=ax.blocks.Hold(0.3),
        fast=ax.blocks.Hold(0.1),
    )
    run = ax.simulate(machines.slider(), 3.0, input=law, save_every=0.05)
    held = 0.3 * np.floor((run.time + 1e-9) / 0.3)
    np.testing.assert_allclose(run["rail.force"], held, atol=EXACT)


# independent integration --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_balancer_with_a_saturated_controller_and_an_observer_agrees_with_scipy():
    model, limit = machines.wheeled_pendulum(), 0.8

    def control(s, speed, lag, gain):
        push = lag(speed(0.3 - s["base.surge"]))
        torque = -push - 0.5 * s["rate"]
        return {"left.torque": torque, "right.torque": torque}, {
            "rate": gain * (s["pitch.rate"] - s["rate"])
        }

    law = ax.Law(
        control,
        states={"rate": 0.1},
        speed=ax.blocks.PI(1.0, 2.0, limit=limit),
        lag=ax.blocks.LowPass(0.05),
        gain=30.0,
    )
    start = {"pitch": 0.2}
    run = ax.simulate(model, 2.0, start=start, input=law, save_every=0.1)
    n, m = len(model.coordinates), len(model.independent)
    surge = model.speed_names.index("base.surge")
    pitch = model.speed_names.index("pitch.rate")

    def rhs(t, x):
        q, nu, (total, filtered, rate) = x[:n], x[n : n + m], x[n + m :]
        v = model.joint_speeds(q, nu)
        e = 0.3 - v[surge]
        wanted = e + total
        given = np.clip(wanted, -limit, limit)
        torque = -filtered - 0.5 * rate
        u = np.clip([torque, torque], -4.0, 4.0)
        rates = model.rhs(t, x[: n + m], u)
        memory = [2.0 * (e - (wanted - given)), (given - filtered) / 0.05, 30 * (v[pitch] - rate)]
        return np.concatenate([rates, memory])

    first = ax.assemble(model, start)
    x0 = np.concatenate([first.q, first.nu, [0.0, 0.0, 0.1]])
    exact = solve_ivp(rhs, (0, 2.0), x0, "DOP853", run.time, rtol=1e-11, atol=1e-12).y
    for k, name in enumerate((*model.coordinates, *model.independent)):
        np.testing.assert_allclose(run[name], exact[k], atol=1e-7, err_msg=name)
    for k, name in enumerate(("speed.integral", "lag.filtered", "rate")):
        np.testing.assert_allclose(run[name], exact[n + m + k], atol=1e-7, err_msg=name)


# verbs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", [None, PERIOD])
def test_sweeps_batches_steppers_and_runs_agree(period):
    model, law = machines.slider(), speed_control(period=period, limit=1.5)
    masses = [0.5, 1.0, 2.0]
    runs = ax.simulate(model, 1.02, input=law, parameters={"mass": masses})
    outputs = {"v": ("last", "rail.rate"), "most": ("max", "pi.integral")}
    made = ax.sweep(model, 1.02, input=law, parameters={"mass": masses}, outputs=outputs)
    np.testing.assert_allclose(made["v"], runs["rail.rate"][:, -1], atol=CLOSE)
    np.testing.assert_allclose(made["most"], runs["pi.integral"].max(axis=1), atol=1e-4)
    single = ax.simulate(model, 1.02, input=law, method="rk4", step=0.01)
    stepper = model.stepper(0.01, input=law)
    for _ in range(102):
        stepper.step()
    assert stepper["rail.rate"] == single.final["rail.rate"]
    assert stepper["pi.integral"] == single.final["pi.integral"]
    gains = ax.simulate(model, 1.02, input=law.changed(**{"pi.ki": [1.0, 3.0]}))
    np.testing.assert_allclose(gains["rail.rate"][1], runs["rail.rate"][1], atol=CLOSE)
    begun = ax.simulate(model, 1.02, input=law, start={"pi.integral": [0.0, 0.5]})
    assert begun["pi.integral"][1, 0] == 0.5


@pytest.mark.slow
def test_other_processes_know_the_memory():
    law = speed_control(period=PERIOD)
    given = {"input": law, "parameters": {"mass": [0.5, 1.0]}}
    outputs = {"i": ("last", "pi.integral")}
    here = ax.sweep(machines.slider(), 1.0, outputs=outputs, **given)
    there = ax.sweep(machines.slider(), 1.0, outputs=outputs, executor=2, **given)
    np.testing.assert_array_equal(here["i"], there["i"])


@pytest.mark.parametrize("period", [None, PERIOD])
@pytest.mark.parametrize("how", [{"method": "dopri5"}, {"step": 0.01}])
def test_gradients_are_those_of_differences(period, how):
    kinks = period is not None or "step" in how  # else steps that differ locate them differently
    law = ax.Law(
        lambda s, pi, lag, kd: {"rail": pi(1.0 - s["rail.rate"]) - kd * lag(s["rail"])},
        pi=ax.blocks.PI(2.0, 3.0, limit=1.2 if kinks else None, period=period),
        lag=ax.blocks.LowPass(0.1, period=period),
        kd=0.7,
    )
    cost = ax.Cost(
        machines.slider(),
        1.03,
        running="rail**2",
        final="rail.rate**2 + pi.integral",
        input=law,
        start={"rail": 0.2, "lag.filtered": 0.1},
        **how,
    )
    found = ax.gradient(cost, cost.names)
    assert {"pi.kp", "pi.ki", "lag.lag", "kd", "mass"} < {*cost.names}
    for name in cost.names:
        at, h = float(cost.present(name)), 1e-5
        slope = (cost.value({name: at + h}) - cost.value({name: at - h})) / (2 * h)
        assert found[name] == pytest.approx(slope, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("period", [None, PERIOD])
def test_sensitivities_are_those_of_differences(period):
    law, h = speed_control(period=period), 1e-5
    how = {"method": "rk4", "step": 0.01}
    run = ax.simulate(machines.slider(), 1.0, input=law, sensitivities=["pi.kp"], **how)
    more, less = (
        ax.simulate(machines.slider(), 1.0, input=law.changed(**{"pi.kp": 2.0 + d}), **how)
        for d in (h, -h)
    )
    for name in ("rail.rate", "pi.integral"):
        slope = (more[name] - less[name]) / (2 * h)
        np.testing.assert_allclose(run.sensitivity(name, "pi.kp"), slope, atol=1e-8)


def test_events_and_times_between_samples_see_the_memory():
    law = speed_control()
    event = ax.Event("charged", "pi.integral - 0.5", stop=True)
    run = ax.simulate(machines.slider(), 2.0, input=law, events=event)
    assert run.final["pi.integral"] == pytest.approx(0.5, abs=1e-9)
    exact = ax.simulate(machines.slider(), 2.0, input=law, t_eval=[0.1234])
    again = ax.simulate(machines.slider(), 2.0, input=law)
    assert again.at(0.1234)["pi.integral"] == pytest.approx(exact["pi.integral"][1], abs=CLOSE)


def test_models_from_files_know_memory(tmp_path):
    machines.slider().save(tmp_path / "slider.axm")
    law = speed_control(period=PERIOD)
    run = ax.simulate(ax.load_model(tmp_path / "slider.axm"), 1.0, input=law, save_every=PERIOD)
    np.testing.assert_allclose(run["rail.rate"], sampled_speed(20)[0], atol=EXACT)


def test_scenarios_with_memory_change_gains_and_travel():
    scenario = ax.Scenario(machines.slider(), 1.0, input=speed_control())
    first = ax.simulate(scenario).final["rail.rate"]
    other = scenario.changed(input=speed_control(ki=1.0))
    assert ax.simulate(other).final["rail.rate"] != first
    copied = pickle.loads(pickle.dumps(ax.simulate(scenario)))
    assert copied.final["rail.rate"] == first


# refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "words"),
    [
        (ax.Law(lambda s, pi: {"rail": pi(1) + pi(2)}, pi=ax.blocks.PI(1, 1)), "2 times"),
        (ax.Law(lambda s, pi: {"rail": 0.0}, pi=ax.blocks.PI(1, 1)), "0 times"),
        (ax.Law(lambda s: {"rail": s["x"]}, states={"x": 0}), "rates of the states"),
        (ax.Law(lambda s: ({"rail": 0}, {"y": 0}), states={"x": 0}), "rates of x"),
    ],
)
def test_a_law_that_does_not_say_what_it_remembers_is_refused(law, words):
    with pytest.raises(ax.errors.InvalidArgument, match=words):
        ax.simulate(machines.slider(), 1.0, input=law)


def test_blocks_and_samples_in_the_wrong_place_are_refused_with_a_remedy():
    """A block that no law has been given, and samples of one input by name."""
    model = machines.slider()
    pi = ax.blocks.PI(1.0, 1.0)
    for law in (
        lambda s: {"rail": pi(s["rail.rate"])},
        ax.Law(lambda s: {"rail": ax.blocks.PI(1.0, 1.0)(s["rail.rate"])}),
        pi,
    ):
        with pytest.raises(ax.InvalidArgument, match=r"PI: a block is called inside the law"):
            ax.simulate(model, 1.0, input=law)
    twice = ax.Law(lambda s, pi: {"rail": pi(s["rail"]) + pi(1.0)}, pi=pi)
    with pytest.raises(ax.InvalidArgument, match=r"calls block 'pi' 2 times.*give two blocks"):
        ax.simulate(model, 1.0, input=twice)
    for given in (ax.Sampled([0.0, 1.0], 0.5), ax.Callback(lambda t, s: [0.0])):
        with pytest.raises(ax.InvalidArgument, match=r"gives all inputs; input=ax\.(.|\n)*stepper"):
            ax.simulate(model, 1.0, input={"rail": given})


def test_a_law_beside_samples_is_refused_with_a_remedy_and_without_addresses():
    samples = ax.Sampled({"rail": [0.0, 1.0]}, 0.5)
    for law, shown in ((lambda s: {"rail": 0.0}, "a function"), (speed_control, "speed_control")):
        with pytest.raises(ax.InvalidArgument, match=r"by name.*model\.stepper") as caught:
            ax.simulate(machines.slider(), 1.0, input=(law, samples))
        assert shown in str(caught.value) and "0x" not in str(caught.value)


def test_what_memory_cannot_do_is_refused_with_a_remedy():
    law, model = speed_control(period=PERIOD), machines.slider()
    with pytest.raises(ax.errors.NotApplicable, match="forwards in time"):
        ax.simulate(model, -1.0, backwards=True, input=law)
    with pytest.raises(ax.errors.NotApplicable, match="singular"):
        ax.simulate(model, 1.0, input=law, singular="pass")
    with pytest.raises(ax.errors.NotApplicable, match=r"remembers pi\.integral"):
        law({"rail.rate": 0.0})
    with pytest.raises(ax.errors.InvalidArgument, match="kp is zero"):
        ax.blocks.PI(0.0, 1.0, limit=1.0)
    with pytest.raises(ax.errors.InvalidArgument, match="whole number of periods"):
        ax.blocks.Delay(0.13, 0.05)
    with pytest.raises(ax.errors.InvalidArgument, match="period must be"):
        ax.blocks.Hold(0.0)
    with pytest.raises(ax.errors.InvalidArgument, match="lag must be"):
        ax.blocks.LowPass(0.0)


def test_the_end_of_a_run_with_dependent_speeds_has_its_memory():
    model, lag = machines.wheeled_pendulum(), 0.1
    law = ax.Law(lambda s, lag: {"left.torque": 0.0 * lag(1.0)}, lag=ax.blocks.LowPass(lag))
    run = ax.simulate(model, 0.2, input=law, start={"pitch": 0.1})
    assert run.final["lag.filtered"] == pytest.approx(1.0 - np.exp(-0.2 / lag), abs=CLOSE)
    assert run.final.nu.shape == (len(model.independent),)


@pytest.mark.parametrize("period", [None, PERIOD])
def test_gpus_remember(monkeypatch, period):
    install(monkeypatch)
    law, model, masses = speed_control(period=period, limit=1.5), machines.slider(), [0.5, 1.0, 2.0]
    given = {"input": law, "parameters": {"mass": masses}, "method": "rk4", "step": 0.01}
    here = ax.simulate(model, 1.02, **given)
    there = ax.simulate(model, 1.02, target="cuda", **given)
    for name in ("rail.rate", "pi.integral"):
        np.testing.assert_allclose(there[name], here[name], atol=EXACT)
    outputs = {"v": ("last", "rail.rate"), "i": ("max", "pi.integral")}
    swept = ax.sweep(model, 1.02, target="cuda", outputs=outputs, **given)
    np.testing.assert_allclose(swept["v"], here["rail.rate"][:, -1], atol=EXACT)
    stepper = model.stepper(
        0.01, batch=3, target="cuda", **{k: given[k] for k in ("input", "parameters")}
    )
    for _ in range(102):
        stepper.step()
    np.testing.assert_allclose(
        np.asarray(stepper["rail.rate"]), here["rail.rate"][:, -1], atol=EXACT
    )


@pytest.mark.parametrize(
    ("block", "gain", "value", "words"),
    [
        (ax.blocks.PI(1.0, 1.0, limit=1.0), "limit", -1.0, "PI: limit must be >= 0, got -1"),
        (ax.blocks.PI(1.0, 1.0, limit=1.0), "kp", 0.0, "PI: kp must be != 0"),
        (ax.blocks.LowPass(0.1), "lag", 0.0, "LowPass: lag must be > 0"),
        (ax.blocks.Derivative(0.1, period=0.1), "lag", [0.1, -0.1], "must be > 0, got -0.1"),
    ],
)
def test_changed_gains_are_checked_as_those_of_new_blocks(block, gain, value, words):
    law = ax.Law(lambda s, z: {"push": z(s["x"])}, z=block)
    with pytest.raises(ax.errors.InvalidArgument, match=words):
        law.changed(**{f"z.{gain}": value})
