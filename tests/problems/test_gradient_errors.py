"""What cannot be differentiated is reported by name, with what can be."""

import os
import signal
import threading
import warnings

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.problems.gradients import backward
from tests.problems import machines

HINGE = {"hinge": 0.4}


@pytest.fixture(scope="module")
def lever() -> ax.Model:
    bot = ax.Mechanism("lever")
    mass = ax.Parameter("mass", 2.0)
    arm = bot.add_body("arm", mass=mass, com=(0.3, 0, 0), inertia=(0.01, 0.05, 0.05))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=arm)
    bot.add_motor("drive", "hinge")
    return bot.derive().compile()


def cost_of(model, duration=0.2, **options):
    given = {"start": HINGE, "final": "hinge**2", "step": 0.01}
    return ax.Cost(model, duration, **(given | options))


def refused(text, call, *arguments, error=ax.errors.InvalidArgument, **options):
    with pytest.raises(error) as found:
        call(*arguments, **options)
    assert text in str(found.value)
    return str(found.value)


def test_names_of_variables(lever):
    cost = cost_of(lever)
    unknown = ax.errors.UnknownName
    text = refused("has no variable 'mas'", ax.gradient, cost, ["mas"], error=unknown)
    assert "mass" in text and "start.hinge" in text and "drive.torque" in text
    assert cost.names == ("mass", *lever.inputs, "start.hinge")
    refused(
        "is not among what `start` gives by name", ax.gradient, cost, "start.rate", error=unknown
    )
    refused("a name is needed, not 3", ax.gradient, cost, [3], error=unknown)
    refused("'mass' is given twice", ax.gradient, cost, ["mass", "mass"])
    refused("by: expected names, or values by name, got 7", ax.gradient, cost, 7)
    refused("gradient: expected a Cost, got", ax.gradient, lever, ["mass"])
    found = ax.gradient(cost, "mass")
    refused("the gradient has no variable 'kp'", lambda: found["kp"], error=unknown)


def test_variables_with_a_remedy(lever):
    unknown = ax.errors.UnknownName
    fixed = lever.equations.compile(parameters="fixed")
    text = "'mass' is fixed in the code; use compile(parameters='free')"
    refused(text, ax.gradient, cost_of(fixed), ["mass"], error=unknown)
    by_law = cost_of(lever, input=lambda s: [-s["hinge"]])
    text = "is computed by a function; give it gains, Law(function, kp=...)"
    refused(text, ax.gradient, by_law, ["drive"], error=unknown)
    law = ax.Law(lambda s, mass: [mass * s["hinge"]], mass=1.0)
    text = "is the name of a gain and of something in the model; rename the gain"
    refused(text, cost_of, lever, input=law)


def test_several_meanings(lever):
    bot = ax.Mechanism("two")
    for side in ("left", "right"):
        arm = bot.add_body(side, mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.05, 0.05))
        bot.add_joint(f"{side}.hinge", ax.Revolute("y"), parent=bot.ground, child=arm)
        bot.add_motor(f"{side}.drive", f"{side}.hinge")
    model = bot.derive().compile()
    cost = ax.Cost(model, 0.1, final="left.hinge")
    text = "'torque' may mean several variables"
    refused(text, ax.gradient, cost, ["torque"], error=ax.errors.UnknownName)


@pytest.mark.parametrize("method", ["radau9", "rodas5p", "auto"])
def test_methods_without_gradients(lever, method):
    text = f"method='{method}' has no gradients; use 'rk4' or 'dopri5'"
    refused(text, cost_of, lever, method=method, step=None, error=ax.errors.NotApplicable)


def test_costs_of_nothing_and_wrong_functions(lever):
    refused("Cost: give at least one of running, final and match", ax.Cost, lever, 1.0)
    text = "expected a function of the state, the name of a signal or a formula, got 3"
    refused(f"final: {text}", cost_of, lever, final=3)
    text = "final: the function must give one number, not (2, 1)"
    refused(text, cost_of, lever, final=lambda s: ca.vertcat(s.q, s.nu))
    refused("has no", cost_of, lever, final="hing", error=ax.errors.UnknownName)
    refused("a model is needed, got Mechanism", ax.Cost, ax.Mechanism("x"), 1.0, final="t")
    refused("duration: must not be zero", cost_of, lever, 0.0)
    refused("duration: expected a number of seconds", cost_of, lever, "long")
    text = "input: a Callback runs in Python and cannot be differentiated"
    refused(text, cost_of, lever, input=ax.Callback(lambda t, s: [0.0]))
    refused("'mass': an array without values", cost_of(lever).value, {"mass": []})
    refused("'mass': must be finite", cost_of(lever).value, {"mass": np.nan})
    refused("'mass': expected numbers, got 'heavy'", cost_of(lever).value, {"mass": "heavy"})


def test_single_precision(lever):
    gpu = lever.equations.compile()
    text = "precision='float32' has no gradients"
    refused(text, cost_of, gpu, target="cuda", precision="float32", error=ax.errors.NotApplicable)


def test_measurements(lever):
    run = ax.simulate(lever, 0.2, start=HINGE, save_every=0.05)
    refused("match: expected a trajectory, got", cost_of, lever, match=np.zeros(3))
    refused("has no column of a coordinate", cost_of, lever, match=run[["kinetic"]])
    named = run[["hinge"]].changed(names=("hing",), kinds={"hing": "coordinate"})
    unknown = ax.errors.UnknownName
    refused("has no signal 'hing'", cost_of, lever, match=named, error=unknown)
    text = "scales: differences to `match` are scaled, which is not given"
    refused(text, cost_of, lever, scales={"hinge": 0.1})
    odd = run.resample([0.0, 0.05, 0.2])
    text = "match: samples must be equally spaced; resample the run first: run.resample(times)"
    refused(text, cost_of, lever, match=odd)
    text = "match: samples every 0.05 s from 0 s on are not at times of a run from 0.02 s on"
    refused(text, cost_of, lever, match=run, t0=0.02)
    refused("match: no sample of", cost_of, lever, match=run, t0=10.0)
    values = run[["hinge"]].values.copy()
    values[2] = np.nan
    bad = run[["hinge"]].changed(values=values)
    refused("match: column 'hinge' is not all finite", cost_of, lever, match=bad)
    for scale in (-1, [1.0, 2.0], range(2)):
        text = f"scales: 'hinge' must be one number > 0, got {scale}"
        refused(text, cost_of, lever, match=run, scales={"hinge": scale})
    unknown = ax.errors.UnknownName
    refused(
        "match has no column 'hing'", cost_of, lever, match=run, scales={"hing": 1}, error=unknown
    )


def test_laws(lever):
    def law(s, kp, kd=1.0):
        return [kp * s["hinge"] + kd * s["hinge.rate"]]

    refused("Law: expected a function of the state and of its gains, got 3", ax.Law, 3)
    refused("law has no gain 'ki'", ax.Law, law, kp=1.0, ki=2.0, error=ax.errors.UnknownName)
    refused("Law: the function also takes kp; give each a value", ax.Law, law)
    refused("Law: gain 'kp' must be finite", ax.Law, law, kp=np.inf)
    refused("Law, gain 'kp': expected numbers, got 'x'", ax.Law, law, kp="x")
    text = "Law: shapes of gains do not fit each other"
    refused(text, ax.Law, law, kp=[1.0, 2.0], kd=[1.0, 2.0, 3.0])
    vector = ax.Law(lambda s, k: [k[0] * s["hinge"] + k[1]], k=[1.0, 2.0])
    text = "a gain is one number, and an array of them makes a batch of runs; give"
    refused(text, ax.simulate, lever, 0.1, input=vector)
    made = ax.Law(law, kp=[1.0, 2.0])
    assert made.batch == (2,) and repr(made) == "Law(law, kp: (2,))"
    assert repr(made.changed(kp=3.0)) == "Law(law, kp=3)"
    refused("law has no gain 'kd'", made.changed, kd=3.0, error=ax.errors.UnknownName)
    runs = ax.simulate(lever, 0.1, start=HINGE, input=made)
    one = ax.simulate(lever, 0.1, start=HINGE, input=lambda s: law(s, 2.0))
    assert runs["hinge"][1] == pytest.approx(one["hinge"], abs=1e-12)
    text = "one number is needed for each of kp here; arrays of gains make batches"
    refused(text, made, {"hinge": 0.0, "hinge.rate": 0.0})
    rows = ax.sweep(lever, 0.1, start=HINGE, input=made)
    assert rows["hinge"] == pytest.approx(runs["hinge"][:, -1], abs=1e-9)
    swept = ax.sweep(lever, 0.1, start={"hinge": [0.1, 0.4]}, input=ax.Law(law, kp=2.0))
    assert swept["hinge"][1] == pytest.approx(one["hinge"][-1], abs=1e-9)


def test_runs_that_fail(lever):
    """A single run raises; of a batch the others have values."""
    fast = lambda s: [0.1 * s["hinge.rate"] ** 3]  # noqa: E731
    start = {"hinge": 0.4, "hinge.rate": 30.0}
    refused(
        "failed at t =",
        cost_of(lever, 1.0, start=start, input=fast).value,
        error=ax.errors.SimulationFailed,
    )
    start["hinge.rate"] = np.array([0.0, 30.0])
    cost = cost_of(lever, 0.2, start=start, input=fast)
    with pytest.warns(
        ax.errors.RunsFailedWarning,
        match="1 of 2 runs failed; their values and derivatives are NaN",
    ):
        found = ax.gradient(cost, ["mass", "start.hinge"])
    for array in (found.value, *found.values()):
        assert np.isfinite(array[0]) and np.isnan(array[1])


def test_an_event_that_only_touches(lever):
    """The top of a swing: the event function does not cross, or it does and time says nothing."""
    stop = ax.Event("still", lambda s: (s.t - 0.1) ** 3, stop=True)
    cost = cost_of(lever, 1.0, events=stop)
    text = "only touches zero where it stops the run: the time of its end does not depend smoothly"
    refused(text, ax.gradient, cost, ["mass"], error=ax.errors.NotApplicable)


def test_ctrl_c(lever):
    """It ends the runs, between slices, and the way back; there is no result."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(ax.errors.Interrupted) as caught:
            ax.gradient(cost_of(lever, 50.0, step=1e-6), ["mass"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.result is None


def test_sensitivities(lever):
    of = {"sensitivities": ["mass"], "start": HINGE}
    simulate, inapplicable = ax.simulate, ax.errors.NotApplicable
    run = simulate(lever, 0.1, **of)
    refused(
        "has no sensitivity by 'start.hinge'",
        run.sensitivity,
        "hinge",
        "start.hinge",
        error=ax.errors.UnknownName,
    )
    text = "has no sensitivity: it sums up the whole run; coordinates, speeds, measures"
    refused(text, run.sensitivity, "error", "mass", error=inapplicable)
    text = "has no sensitivities; they come with simulate(..., sensitivities=[...])"
    refused(text, run.between(0.0, 0.05).sensitivity, "hinge", "mass")
    text = "method='radau9' has no gradients"
    refused(text, simulate, lever, 0.1, method="radau9", **of, error=inapplicable)
    text = "runs that pass singular configurations have none; use singular"
    refused(text, simulate, lever, 0.1, singular="pass", **of, error=inapplicable)
    samples = ax.Sampled({"drive": [0.0, 1.0]}, 0.1)
    text = "sensitivities: 'drive' has 2 samples; gradient differentiates by all of them"
    refused(text, simulate, lever, 0.1, input=samples, sensitivities=["drive"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run.sensitivity("hinge", "mass").shape == run["hinge"].shape


def test_starts_without_a_derivative():
    """A measure at the end of its reach cannot be asked for more."""
    bot = ax.Mechanism("reach")
    arm = bot.add_body("arm", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.05, 0.05))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=arm)
    bot.measure("tip", "position", body=arm, at=(1, 0, 0))
    model = bot.derive().compile()
    cost = ax.Cost(model, 0.1, start={"tip.z": 1.0}, final="hinge")
    text = "start: it cannot be assembled a little beside where it is, along 'tip.z'"
    refused(text, ax.gradient, cost, "start.tip.z", error=ax.errors.NotApplicable)
    for height, exact in ((0.9, 1e-14), (0.999, 1e-12), (1 - 1e-7, 1e-9)):
        inside = ax.Cost(model, 1e-9, start={"tip.z": height}, final="hinge")
        wanted = -1 / np.sqrt(1 - height**2)  # the hinge turns down
        assert np.isclose(ax.gradient(inside, "start.tip.z")["start.tip.z"], wanted, rtol=exact)


def test_rows_that_contradict_each_other(monkeypatch):
    """Where such rows change, kinetic energy is corrected by what has no derivative."""
    monkeypatch.setattr(backward, "is_rounded", lambda model: True)
    cost = ax.Cost(machines.four_bar("rocker"), 0.3, start={"crank.rate": 20.0}, final="crank")
    text = "left out constraint rows that contradict others by rounding errors, and a run changed"
    refused(text, ax.gradient, cost, "start.crank.rate", error=ax.errors.NotApplicable)


@pytest.mark.parametrize("part", ["running", "final"])
@pytest.mark.parametrize("start", [-1.0, [1.0, -1.0]])
def test_costs_without_a_value_are_reported(part, start):
    """The logarithm of a negative number: NaN, with derivatives that looked like numbers."""
    cost = ax.Cost(machines.slider(), 0.1, start={"rail": start}, **{part: "log(rail)"})
    lost = np.array(start) < 0
    told = pytest.warns(ax.errors.RunsFailedWarning, match=f"costs of 1 of {lost.size} runs .* nan")
    with told:
        assert (np.isnan(cost.value()) == lost).all()
    with told:
        found = ax.gradient(cost, ["start.rail"])
    assert (np.isnan(found["start.rail"]) == lost).all()
    assert (np.isnan(found.value) == lost).all()
    assert (np.isnan(found.by_tangents[..., 0]) == lost).all()


def test_derivatives_without_a_value_are_reported():
    cost = ax.Cost(
        machines.slider(), 0.1, start={"rail": 0.0}, input={"rail": 0.0}, final="asin(1 + rail)"
    )
    with pytest.warns(ax.errors.RunsFailedWarning, match="not finite, those by the start, rail"):
        assert not np.isfinite(ax.gradient(cost, ["rail"])["rail"])
