"""The catalogue of signals: what it holds, and the one rule for short names."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, UnknownName
from axode.model.signals import KINDS, Signal
from axode.names import NamedValues, Names
from tests.problems.linear_machines import balancer, built, pendulum


def test_a_catalogue_lists_every_signal_with_unit_kind_and_origin():
    signals = {signal.name: signal for signal in balancer().signals}
    assert signals["base.x"] == Signal("base.x", "m", "coordinate", "q", 4)
    assert signals["base.pitch"].unit == "rad"
    assert signals["base.pitch"].function == "measures"
    assert signals["left.torque"] == Signal("left.torque", "N m", "input", "u", 0)
    assert signals["right.normal"] == Signal("right.normal", "N", "force", "contact_forces", 5)
    assert signals["error"].function == "energy_balance"
    assert {signal.kind for signal in signals.values()} <= set(KINDS)
    loop = {signal.name: signal for signal in built("four_bar").signals}
    assert loop["hinge4.x.force"] == Signal("hinge4.x.force", "N", "force", "multipliers", 0)


def test_independent_speeds_are_read_from_nu_and_others_from_the_speeds():
    model = balancer()
    for signal in model.signals.of_kind("independent"):
        assert model.independent[signal.index] == signal.name
        assert signal.function == "nu"
    for signal in model.signals.of_kind("speed"):
        assert model.speed_names[signal.index] == signal.name
        assert signal.function == "joint_speeds"


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("base.pitch", "base.pitch"),
        ("pitch", "base.pitch"),
        ("pitch_rate", "base.pitch_rate"),
        ("left.contact.x", "left.contact.x"),
        ("qw", "base.qw"),
    ],
)
def test_short_names_mean_the_only_signal_that_ends_in_them(short: str, full: str):
    assert balancer().signals.resolve(short).name == full


def test_a_short_name_may_be_the_beginning_of_the_only_one():
    assert built("four_bar").signals.resolve("hinge4.x").name == "hinge4.x.force"


def test_signals_of_the_state_come_before_those_that_depend_on_inputs():
    names = Names("it", "signal", ("arm.pitch",), ("motor.pitch", "motor.torque"))
    assert names.resolve("pitch") == "arm.pitch"
    assert names.resolve("torque") == "motor.torque"


def test_an_ambiguous_short_name_lists_its_full_names():
    with pytest.raises(UnknownName) as caught:
        balancer().signals.resolve("torque")
    assert caught.value.known == ("left.torque", "right.torque")
    assert str(caught.value) == (
        "model 'balancer' has several signals that 'torque' may mean.\n"
        "  Signals: left.torque, right.torque."
    )


def test_an_unknown_name_comes_with_a_suggestion():
    with pytest.raises(UnknownName, match=r"no signal 'pich'(.|\n)*Did you mean 'base.pitch'"):
        balancer().signals.resolve("pich")
    with pytest.raises(UnknownName, match="no signal '7'"):
        balancer().signals.resolve(7)


def test_kinds_narrow_what_a_name_may_mean():
    signals = balancer().signals
    assert signals.resolve("left", "input").name == "left.torque"
    with pytest.raises(UnknownName, match="no coordinate 'pitch'"):
        signals.resolve("pitch", "coordinate")
    with pytest.raises(
        UnknownName, match=r"'left.torque' of model 'balancer' is an input, not a coordinate"
    ):
        signals.resolve("left.torque", "coordinate")


def test_joints_and_coordinates_name_their_speed_where_speeds_are_meant():
    signals = balancer().signals
    assert signals.resolve("left").name.startswith("left")
    assert signals.resolve("left", "speed", "independent").name == "left.rate"


def test_names_are_unique():
    bot = ax.Mechanism("twice")
    rod = bot.add_body("rod", mass=1.0, inertia=(1, 1, 1))
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=rod)
    bot.measure("kinetic", lambda s: s["pin"])
    with pytest.raises(InvalidArgument, match="a measure and an energy are both called 'kinetic'"):
        bot.derive().compile("interpreter")


def test_named_values_take_short_names_and_list_full_ones():
    numbers = {"base.x": 1.0, "left.x": 2.0, "pitch": 3.0}
    values = NamedValues(numbers, Names("the run", "column", numbers))
    assert values["pitch"] == 3.0
    assert values["base"] == 1.0
    assert dict(values) == numbers
    with pytest.raises(UnknownName, match="the run has several columns that 'x' may mean"):
        values["x"]
    assert pickle.loads(pickle.dumps(values))["base"] == 1.0
    assert NamedValues(values.items())["base"] == 1.0


def test_models_from_files_have_the_same_catalogue(tmp_path):
    model = balancer()
    model.save(tmp_path / "model.axm", ["forward_dynamics"])
    assert tuple(ax.load_model(tmp_path / "model.axm").signals) == tuple(model.signals)


def test_a_state_by_measures_is_solved_for_in_batches_of_parameters():
    model, state = balancer(), {"pitch": [0.1, 0.2], "pitch_rate": 0.3}
    found = model.forward_dynamics(state)
    for pitch, row in zip(state["pitch"], found, strict=True):
        there = ax.assemble(model, {"pitch": pitch, "pitch_rate": 0.3})
        np.testing.assert_allclose(row, model.forward_dynamics(there.q, there.nu), atol=1e-9)
        by_name = model.forward_dynamics(there.q, {"pitch_rate": 0.3})
        np.testing.assert_allclose(row, by_name, atol=1e-9)
    slope = built("pendulum_on_slope")
    several = slope.energy({"pitch": 0.1}, parameters={"m": [0.5, 0.6]})
    alone = slope.energy({"pitch": 0.1}, parameters={"m": 0.6})
    np.testing.assert_allclose(several[1], alone, rtol=1e-9)


def test_a_state_given_twice_is_refused():
    model = balancer()
    with pytest.raises(InvalidArgument, match=r"q has the speed base\.pitch_rate, and nu is given"):
        model.energy({"pitch_rate": 0.1}, np.zeros(3))
    with pytest.raises(InvalidArgument, match="t: give one time where measures describe the state"):
        model.energy({"pitch": 0.1}, t=[0.0, 1.0])
    with pytest.raises(InvalidArgument, match=r"'pitch' means base\.pitch, which is given twice"):
        model.energy({"base.pitch": 0.1, "pitch": 0.2})
    with pytest.raises(InvalidArgument, match="the batch axes do not fit together"):
        model.energy({"pitch": [0.1, 0.2], "yaw": [0.1, 0.2, 0.3]})


def test_a_sample_of_a_run_is_a_state():
    model = pendulum()
    run = ax.simulate(model, 0.02, start={"pin.rate": 1.0}, method="rk4", step=0.01)
    kinetic, potential = model.energy(run.at(0.01))
    assert (kinetic, potential) == pytest.approx((run["kinetic"][1], run["potential"][1]))


def rail(mass: str, **measures: object) -> ax.Equations:
    machine = ax.Mechanism("rail")
    cart = machine.add_body("cart", mass=ax.Parameter(mass, 2.0), inertia=ax.Inertia.point())
    machine.add_joint("x", ax.Prismatic("x"), parent=machine.ground, child=cart)
    machine.add_motor("x", "x")
    for name, function in measures.items():
        machine.measure(name.replace("_", "."), function)
    return machine.derive()


@pytest.mark.parametrize("name", ["x", "x_rate", "x_force"])
def test_a_measure_cannot_have_the_name_of_a_coordinate_speed_or_input(name):
    with pytest.raises(
        InvalidArgument, match="a measure and a coordinate, speed or input are both"
    ):
        rail("m", **{name: lambda s: 5 * s["x"]}).compile("interpreter")


def test_a_parameter_called_as_a_coordinate_means_the_same_with_and_without_equations(tmp_path):
    model = rail("x").compile(parameters="free")
    model.save(tmp_path / "rail.axm")
    for one in (model, ax.load_model(tmp_path / "rail.axm")):

        def force(given: object, one: ax.Model = one) -> float:
            return float(ax.simulate(one, 0.01, start={"x": 0.3}, input=given)["x.force"][0])

        assert force(lambda s: {"x.force": s["x"]}) == 0.3
        assert force({"x.force": "x"}) == force({"x.force": "x + 0 * x.rate"}) == 2.0
