"""Gradients and sensitivities where inputs are cut, events stop runs, and batches have two axes."""

import pickle
from functools import cache

import casadi as ca
import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.reversal import part_of_tape
from axode.model.model_parts import function_tape

DIFFERENCES = 1e-8  # relative: differences of order four of runs in doubles
START = {"hinge": 0.3, "elbow": -0.4, "hinge.rate": 0.5}
STOP = ax.Event("level", "hinge - 1", stop=True)


@cache
def lever() -> ax.Model:
    """Two links; the first motor has a limit of 2 N m."""
    bot = ax.Mechanism("lever")
    mass = ax.Parameter("mass", 2.0)
    upper = bot.add_body("upper", mass=mass, com=(0.5, 0, 0), inertia=(0.01, 0.02, 0.02))
    bot.add_joint("hinge", ax.Revolute("y"), parent=bot.ground, child=upper)
    lower = bot.add_body("lower", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))
    bot.add_joint("elbow", ax.Revolute("y"), parent=upper, child=lower, at=(1.0, 0, 0))
    bot.add_motor("first", "hinge", limit=2.0)
    bot.add_motor("second", "elbow")
    return bot.derive().compile()


def cost_of(**options):
    given = {"start": START, "final": "hinge**2 + elbow", "step": 0.02}
    return ax.Cost(lever(), 0.6, **(given | options))


def difference(f, x, h=1e-3):
    return (f(x - 2 * h) - 8 * f(x - h) + 8 * f(x + h) - f(x + 2 * h)) / (12 * h)


def ramp():
    return ax.Sampled({"first.torque": np.linspace(0.1, 1.0, 6)}, 0.2, between="linear")


@pytest.mark.parametrize("given", [[5.0, 0.1], {"first.torque": 5.0, "second.torque": 0.1}])
def test_an_input_beyond_its_limit_changes_nothing(given):
    names = list(lever().inputs)
    found = ax.gradient(cost_of(input=given), names)
    assert found["first.torque"] == 0.0 and found["second.torque"] != 0.0
    run = ax.simulate(
        lever(), 0.6, start=START, input=given, method="rk4", step=0.02, sensitivities=names
    )
    assert not run.sensitivity("elbow", "first.torque").any()
    assert not run.sensitivity("first.torque", "first.torque").any()
    assert run.sensitivity("second.torque", "second.torque").all()


def test_limits_in_batches_of_two_axes():
    hinge, torques = np.array([[0.1], [0.2]]), np.array([0.1, 5.0, 0.3])
    cost = cost_of(start={**START, "hinge": hinge}, input={"first.torque": torques})
    found = ax.gradient(cost, ["first.torque", "mass", "start.hinge"])["first.torque"]
    assert found.shape == (2, 3) and not found[:, 1].any()
    wanted = difference(lambda x: cost.value({"first.torque": np.minimum(torques, 2) + x}), 0.0)
    assert np.abs(found - wanted)[:, ::2].max() < DIFFERENCES
    samples = np.array([[0.1, 0.2, 0.3], [5.0, 0.1, 0.2]])[:, np.newaxis]
    cost = cost_of(
        start={**START, "hinge": hinge[:, 0]}, input=ax.Sampled({"first.torque": samples}, 0.2)
    )
    found = ax.gradient(cost, "first.torque")["first.torque"]
    assert found.shape == (2, 2, 3)
    assert not found[1, :, 0].any() and found[0].all() and found[1, :, 1:].all()


@pytest.mark.parametrize("method", ["rk4", "dopri5"])
def test_samples_change_with_the_time_of_an_event(method):
    """The last step ends sooner or later, and the samples are joined by lines."""
    given = {"method": method, "step": 0.02 if method == "rk4" else None}
    cost = cost_of(events=STOP, running=lambda s: s["first.torque"] ** 2, input=ramp(), **given)
    wanted = difference(lambda mass: cost.value({"mass": mass}), 2.0)
    assert abs(ax.gradient(cost, "mass")["mass"] - wanted) < DIFFERENCES


@pytest.mark.parametrize(
    "given",
    [ramp(), ax.Law(lambda s, k: {"first.torque": k * ca.sin(3 * s.t)}, k=0.5)],
    ids=["samples", "law"],
)
def test_sensitivities_at_the_time_of_an_event(given):
    """Inputs that depend on time change with the time at which a run ends."""
    options = {"start": START, "step": 0.02, "method": "rk4", "events": STOP, "input": given}
    run = ax.simulate(lever(), 0.6, sensitivities=["mass"], **options)
    for signal in ("first.torque", "elbow.rate", "kinetic"):

        def end(mass, signal=signal):
            return ax.simulate(lever(), 0.6, parameters={"mass": mass}, **options).final[signal]

        found = run.sensitivity(signal, "mass")
        assert abs(found[-1] - difference(end, 2.0)) < DIFFERENCES * max(1.0, abs(found[-1]))


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-4])
def test_starts_of_mechanisms_of_any_size(size):
    """A start is moved by less than a small mechanism can be moved by."""
    bot = ax.Mechanism("slider_crank")
    crank_length, rod_length = ax.Parameter("crank_length", size), 3 * size
    crank = bot.add_body("crank", mass=0.1, com=(0.5 * size, 0, 0), inertia=(size**2,) * 3)
    rod = bot.add_body("rod", mass=0.1, com=(1.5 * size, 0, 0), inertia=(size**2,) * 3)
    slider = bot.add_body("slider", mass=0.2, inertia=(size**2,) * 3)
    bot.add_joint("a", ax.Revolute("y"), parent=bot.ground, child=crank)
    bot.add_joint("b", ax.Revolute("y"), parent=crank, child=rod, at=(crank_length, 0, 0))
    bot.add_joint("x", ax.Prismatic("x"), parent=bot.ground, child=slider)
    bot.add_joint("pin", ax.Revolute("y"), parent=rod, child=slider, at=(rod_length, 0, 0))
    bot.set_home(a=0.7, b=-0.9, x=3.7 * size)
    model = bot.derive().compile()
    cost = ax.Cost(model, 1e-9, start={"x": 3.7 * size}, final="a")
    a = float(cost.value())
    x, sine = 3.7, np.sin(a)  # the rod's length stays: (x - cos a)^2 + sin(a)^2 = 9
    by_x = -(x - np.cos(a)) / (x * sine)
    found = ax.gradient(cost, ["start.x", "crank_length"])
    assert np.isclose(found["start.x"] * size, by_x, rtol=1e-12)
    by_length = -(1 - x * np.cos(a)) / (x * sine)
    assert np.isclose(found["crank_length"] * size, by_length, rtol=1e-12)


def test_batches_of_no_runs():
    nobody = {**START, "hinge": np.zeros(0)}
    for call in (
        cost_of(start=nobody).value,
        lambda: ax.gradient(cost_of(start=nobody), "mass"),
        lambda: ax.simulate(lever(), 0.1, start=nobody),
        lambda: ax.simulate(lever(), 0.1, parameters={"mass": []}),
    ):
        with pytest.raises(ax.errors.InvalidArgument, match="make a batch of no runs"):
            call()


def test_costs_and_gradients_travel_to_other_processes():
    given = {"input": {"second.torque": "0.1 * sin(3 * t)"}, "running": "elbow**2"}
    cost = cost_of(events=STOP, **given)
    there = pickle.loads(pickle.dumps(cost))
    found, same = ax.gradient(cost, "mass"), ax.gradient(there, "mass")
    assert same.value == found.value and same["mass"] == found["mass"]
    sent = pickle.loads(pickle.dumps(found))
    assert sent["mass"] == found["mass"] and (sent.by_tangents == found.by_tangents).all()


def test_parts_of_tapes_are_made_once():
    tape = function_tape(lever(), "joint_speeds")
    assert part_of_tape(tape, [0]) is part_of_tape(tape, range(1))


def test_changes_that_outgrow_all_numbers():
    """Two links that tumble without damping; small changes grow by a factor per second."""
    start = {"hinge": np.array([-1.2, np.pi / 2]), "elbow": np.array([-0.4, 0.0])}
    chaos = ax.Cost(lever(), 1500.0, start=start, final="hinge.rate", step=0.01)
    with pytest.warns(
        ax.errors.RunsFailedWarning, match="derivatives of 1 of 2 runs are not finite"
    ):
        found = ax.gradient(chaos, "mass")
    assert np.isfinite(found.value).all()
    assert np.isfinite(found["mass"]).tolist() == [False, True]
