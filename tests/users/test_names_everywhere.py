"""A name that is accepted in one place is accepted in all: places times names.

A pendulum on a wheel and an arm whose joint has a name of two parts, as compiled and as read from
files. Every place takes full and short names of signals and finds the same for both.
"""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import axode as ax
from axode.cli import app

ROUNDING = 1e-9  # of numbers that are found in two ways
DURATION, STEP = 0.01, 0.005  # [s]
ONE_METHOD = {"method": "rk4", "step": STEP, "save_every": STEP}


@functools.cache
def cart() -> ax.Model:
    """A pole on a cart with a wheel; the pole's lean as measures of the user's."""
    bot = ax.Mechanism("cart")
    frame = bot.add_body("frame", mass=1.0, inertia=(0.02, 0.02, 0.03))
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=frame)
    bot.add_joint("pin", ax.Revolute("y"), parent=frame, child=pole, at=(0, 0, 0.1))
    bot.add_wheel("left", ax.Rolling(0.1), on=frame, at=(0, 0, 0.1), mass=0.5, motor=True)
    bot.measure("pole.twice", lambda s: 2.0 * s["base.pitch"], unit="rad")
    bot.measure("base.pitch", "pitch", body=pole)
    bot.measure("base.pitch_rate", "pitch_rate", body=pole)
    return bot.derive().compile()


@functools.cache
def arm() -> ax.Model:
    bot = ax.Mechanism("arm")
    upper = bot.add_body("upper", mass=2.0, com=(0, 0, -0.2), inertia=(0.1, 0.1, 0.1))
    lower = bot.add_body("lower", mass=1.0, com=(0, 0, -0.2), inertia=(0.1, 0.1, 0.1))
    bot.add_joint("arm.shoulder", ax.Revolute("y"), parent=bot.ground, child=upper)
    bot.add_joint("elbow", ax.Revolute("y"), parent=upper, child=lower, at=(0, 0, -0.4))
    bot.add_motor("arm.shoulder", "arm.shoulder")
    return bot.derive().compile()


@functools.cache
def model_of(name: str, source: str) -> ax.Model:
    made = {"cart": cart, "arm": arm}[name]()
    if source == "mechanism":
        return made
    with tempfile.TemporaryDirectory() as folder:
        made.save(Path(folder) / "model.axm")
        return ax.load_model(Path(folder) / "model.axm")


# full name, short name, unit, value at the start
NAMES = {
    "cart": [
        ("base.pitch", "pitch", "rad", 0.1),
        ("base.pitch_rate", "pitch_rate", "rad/s", 0.3),
        ("pole.twice", "twice", "rad", 0.2),
    ],
    "arm": [
        ("arm.shoulder", "shoulder", "rad", 0.4),
        ("arm.shoulder.rate", "shoulder.rate", "rad/s", 0.5),
    ],
}
INPUTS = {"cart": ("left.torque", "torque"), "arm": ("arm.shoulder.torque", "shoulder.torque")}


def start_of(model: ax.Model) -> dict[str, float]:
    """Values that a state is given by; the third of the cart follows."""
    return {full: value for full, _, _, value in NAMES[model.name][:2]}


def given_names(model: ax.Model) -> list[str]:
    return [name for full, short, _, _ in NAMES[model.name] for name in (full, short)]


def simulate(model: ax.Model, **options: Any) -> ax.Trajectory:
    return ax.simulate(model, DURATION, **{"start": start_of(model), **ONE_METHOD, **options})


@functools.cache
def run_of(model: ax.Model) -> ax.Trajectory:
    return simulate(model)


# places: each finds the value at the start of every name that is given ---------------------------


def column(model, given):
    run = run_of(model)
    return {name: run[name][0] for name in given}


def list_of_columns(model, given):
    run = run_of(model)
    return {name: run[[name]].values[0, 0] for name in given}


def sample_at_a_time(model, given):
    sample = run_of(model).at(0.0)
    return {name: sample[name] for name in given}


def final_sample(model, given):
    final = run_of(model).between(0.0, 0.0).final
    return {name: final[name] for name in given}


def column_of_a_plot(model, given):
    from axode.show.plot.choice import columns_of

    run = run_of(model)
    return {name: run[columns_of(run, name)[0]][0] for name in given}


def start_of_a_run(model, given):
    values = expected(model)
    return {name: simulate(model, start={name: values[name]})[name][0] for name in given}


def assembled_state(model, given):
    values = expected(model)
    return {name: ax.assemble(model, {name: values[name]})[name] for name in given}


def state_of_a_function(model, given):
    """Measures of a state that is given by name, evaluated by the model."""
    values = expected(model)
    found = {}
    for name in given:
        q = {name: values[name]}
        state = ax.assemble(model, q)
        np.testing.assert_allclose(model.energy(q), model.energy(state.q, state.nu), rtol=ROUNDING)
        found[name] = values[name]
    return found


def state_of_an_event(model, given):
    at_once = ax.Event("at once", lambda s: s.t - 1e-9)
    state = simulate(model, events=[at_once]).events[0].state
    return {name: state[name] for name in given}


def event_by_name(model, given):
    """Events of full and short names are found at the same time."""
    start = dict(zip(start_of(model), (-1e-4, 0.3), strict=True))
    events = [ax.Event(name, name) for name in given]
    found = {event.name: event.time for event in simulate(model, start=start, events=events).events}
    for full, short, _, _ in NAMES[model.name]:
        assert found.get(full) == found.get(short)
    assert given[0] in found
    return expected(model)


def state_of_a_callback(model, given):
    seen: list[dict[str, float]] = []

    def callback(t, s):
        seen.append({name: s[name] for name in given})
        return {}

    simulate(model, input=ax.Callback(callback))
    return seen[0]


def _read_by_an_input(model, given, made):
    """Inputs are sums of signals with weights: powers of ten tell them apart."""
    name = INPUTS[model.name][0]
    found = simulate(model, input=made(name))[name][0]
    total = sum(10.0**-k * value for k, value in enumerate(expected(model).values()))
    assert found == pytest.approx(total, abs=ROUNDING)
    return expected(model)


def traced_input(model, given):
    def made(name):
        return lambda s: {name: sum(10.0**-k * s[g] for k, g in enumerate(given))}

    return _read_by_an_input(model, given, made)


def formula_of_the_state(model, given):
    def made(name):
        return {name: " + ".join(f"1e-{k}*{g}" for k, g in enumerate(given))}

    return _read_by_an_input(model, given, made)


def _swept(model, outputs):
    made = ax.sweep(model, DURATION, start=start_of(model), outputs=outputs, step=STEP)
    return {name: float(made[name]) for name in outputs}


def output_of_a_sweep(model, given):
    found = _swept(model, {name: ("last", name) for name in given})
    final = run_of(model).final
    return {name: found[name] - final[name] + expected(model)[name] for name in given}


def function_of_a_sweep(model, given):
    outputs = {name: ("last", lambda s, name=name: s[name]) for name in given}
    found, final = _swept(model, outputs), run_of(model).final
    return {name: found[name] - final[name] + expected(model)[name] for name in given}


def start_of_a_sweep(model, given):
    found = {}
    for name in given:
        value = expected(model)[name]
        outputs = {"seen": ("min", given[0])}
        made = ax.sweep(model, STEP, start={name: [value]}, outputs=outputs, step=STEP)
        found[name] = made.axes[name][0]
    return found


PLACES = [
    column,
    list_of_columns,
    sample_at_a_time,
    final_sample,
    column_of_a_plot,
    start_of_a_run,
    assembled_state,
    state_of_a_function,
    state_of_an_event,
    event_by_name,
    state_of_a_callback,
    traced_input,
    formula_of_the_state,
    output_of_a_sweep,
    function_of_a_sweep,
    start_of_a_sweep,
]


def expected(model: ax.Model) -> dict[str, float]:
    return {name: v for full, short, _, v in NAMES[model.name] for name in (full, short)}


@pytest.mark.parametrize("name", ["cart", "arm"])
@pytest.mark.parametrize("source", ["mechanism", "file"])
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_has_its_name_everywhere(place, source, name):
    model = model_of(name, source)
    found = place(model, given_names(model))
    assert found == pytest.approx(expected(model), abs=1e-7)


@pytest.mark.parametrize("name", ["cart", "arm"])
@pytest.mark.parametrize("source", ["mechanism", "file"])
def test_a_signal_has_its_unit_everywhere(source, name):
    model = model_of(name, source)
    for full, short, unit, _ in NAMES[name]:
        for given in (full, short):
            assert model.signals.resolve(given).name == full
            assert model.signals.resolve(given).unit == run_of(model).unit(given) == unit


@pytest.mark.parametrize("name", ["cart", "arm"])
@pytest.mark.parametrize("source", ["mechanism", "file"])
def test_an_input_has_its_name_everywhere(name, source):
    model = model_of(name, source)
    full, short = INPUTS[name]
    inputs = {
        "number": lambda given: {given: 0.1},
        "formula": lambda given: {given: "0.1*cos(0*t)"},
        "function": lambda given: lambda s: {given: 0.1},
        "callback": lambda given: ax.Callback(lambda t, s: {given: 0.1}),
        "samples": lambda given: ax.Sampled({given: [0.1, 0.1]}, 1.0),
    }
    for kind, made in inputs.items():
        for given in (full, short):
            run = simulate(model, input=made(given))
            assert run[given][0] == pytest.approx(0.1), (kind, given)
    q, nu = model.home, np.zeros(len(model.independent))
    by_name = (model.forward_dynamics(q, nu, {given: 0.1}) for given in (full, short))
    np.testing.assert_array_equal(*by_name)
    made = ax.sweep(model, STEP, input={short: [0.1, 0.2]}, outputs={"y": ("last", full)})
    np.testing.assert_allclose(made["y"], [0.1, 0.2])


def test_a_linear_model_takes_short_names():
    lin = ax.linearize(cart(), states=["pitch", "pitch_rate"], outputs=["twice", "torque"])
    assert lin.states == ("base.pitch", "base.pitch_rate")
    assert lin.outputs == ("pole.twice", "left.torque")
    np.testing.assert_allclose(lin.C, [[2.0, 0.0], [0.0, 0.0]], atol=ROUNDING)
    np.testing.assert_allclose(lin.D, [[0.0], [1.0]], atol=ROUNDING)
    law = lin.state_feedback({"torque": {"pitch": 3.0}})
    assert law.K[0, 0] == 3.0
    assert law.at({"pitch": 0.1}).readings[0].value == 0.1
    assert lin.lqr({"pitch": 1.0}, {"torque": 1.0}).K.shape == (1, 2)
    assert lin.reduced(["pitch", "pitch_rate"]).states == lin.states


def test_the_viewer_takes_short_names():
    from axode.show.viewer.drawing import check_trails

    assert check_trails(cart().scene, ["left.contact", "pole"]) == ("left contact", "pole")


def test_the_command_line_takes_short_names(tmp_path):
    path = tmp_path / "arm.axm"
    arm().save(path)
    command = (
        f"simulate {path} --time {DURATION} --method rk4 --step {STEP} --start shoulder=0.4 "
        "--until shoulder.rate=9 --input shoulder.torque=-2*shoulder --columns shoulder --json"
    )
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    assert '"arm.shoulder": 0.4' in done.output


def test_a_measure_may_use_any_signal_and_not_itself():
    bot = ax.Mechanism("pair")
    rod = bot.add_body("rod", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=rod)
    bot.measure("late", lambda s: s["early"] + s["pitch"] + 0.0 * s["kinetic"])
    bot.measure("early", lambda s: 3.0 * s["base.pitch"])
    state = ax.assemble(bot.derive().compile("interpreter"), {"pitch": 0.1})
    assert state["late"] == pytest.approx(0.4)
    bot.measure("loop", lambda s: s["loop"] + 1.0)
    with pytest.raises(ax.errors.InvalidArgument, match="'loop' depends on itself: loop, loop"):
        bot.derive().compile("interpreter")


def test_membership_and_get_follow_the_same_rule():
    run = ax.simulate(cart(), DURATION, start={"pitch": 0.1}, **ONE_METHOD)
    for holder in (run, run.final, run.at(0.0), ax.assemble(cart(), {"pitch": 0.1}).as_dict()):
        assert "pitch" in holder and "base.pitch" in holder
        assert "yaw" not in holder and 3 not in holder
    assert run.final.get("pitch") == run.final["base.pitch"]
    assert run.final.get("yaw", 7.0) == 7.0


def test_a_state_is_printed_by_name():
    text = repr(ax.assemble(arm(), {"shoulder": 0.25}))
    assert text.startswith("State of 'arm': arm.shoulder=0.25, elbow=0")


def test_a_state_has_the_energies_that_functions_of_it_have():
    state = ax.assemble(cart(), {"pitch": 0.1, "pitch_rate": 0.5})
    kinetic, potential = cart().energy(state)
    assert state["kinetic"] == kinetic > 0
    assert state["potential"] == potential


@pytest.mark.parametrize(
    "name", ["kinetic", "potential", "pin", "pole.twice", "t", "pi", "left.torque", "nonsense"]
)
@pytest.mark.parametrize("place", ["final", "running", "outputs", "events"])
def test_a_name_alone_means_what_it_means_in_a_formula(place, name):
    """`Cost(final="kinetic")` was refused, and `"kinetic**2"` was not."""

    def value(text):
        options = {"start": {"pin": 0.1, "pin.rate": 0.3}, "step": STEP}
        if place == "outputs":
            return float(ax.sweep(cart(), DURATION, outputs={"x": ("last", text)}, **options)["x"])
        if place == "events":
            event = ax.Event("x", text)
            return len(ax.simulate(cart(), DURATION, start=options["start"], events=event).events)
        return float(ax.Cost(cart(), DURATION, **{place: text}, **options).value())

    try:
        expected = value(f"{name} + 0*t")
    except ax.AxodeError:
        with pytest.raises(ax.AxodeError):
            value(name)
    else:
        assert value(name) == pytest.approx(expected, rel=1e-12)
