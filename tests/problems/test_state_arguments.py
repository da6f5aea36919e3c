"""Every verb takes a state in every form: names, arrays, states, trajectories."""

import pickle
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

import axode as ax
from tests.problems import machines

START = {"crank": 1.0, "crank.rate": 1.5}
SAME = 1e-9


@cache
def model() -> ax.Model:
    return machines.four_bar()


@cache
def run() -> ax.Trajectory:
    return ax.simulate(model(), 0.2, start=START, save_every=0.02)


@cache
def found() -> ax.State:
    return ax.assemble(model(), START)


FORMS = {
    "names": lambda: START,
    "State": found,
    "arrays": lambda: (found().q, found().nu),
    "lists": lambda: (found().q.tolist(), found().nu.tolist()),
    "at": lambda: run().at(0.0),
    "final": lambda: run().between(0.0, 0.0).final,
    "trajectory": lambda: run().between(0.0, 0.0),
}

VERBS = {
    "simulate": lambda s: ax.simulate(model(), 0.01, start=s).final["crank"],
    "sweep": lambda s: ax.sweep(model(), 0.01, start=s, outputs={"x": ("last", "crank")})["x"],
    "assemble": lambda s: ax.assemble(model(), s)["rocker.rate"],
    "linearize": lambda s: linear(s).A[1, 0],
    "inverse": lambda s: ax.inverse_dynamics(
        model(), {"crank.rate": "1.5 + t"}, times=0.02, save_every=0.01, start=s
    )["crank.torque"][0],
}


def linear(state: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # it is at no equilibrium
        return ax.linearize(model(), state, states=["crank", "crank.rate"])


@cache
def expected(verb: str) -> Any:
    return VERBS[verb](found())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("verb", VERBS)
def test_verbs_take_every_form(verb: str, form: str):
    start = FORMS[form]()
    if verb == "inverse" and form == "names":
        start = {"crank": START["crank"]}  # speeds follow from the motion
    assert VERBS[verb](start) == pytest.approx(expected(verb), abs=SAME)


@pytest.mark.parametrize("verb", VERBS)
def test_coordinates_alone_are_at_rest(verb: str):
    at_rest = ax.assemble(model(), {"crank": 1.0})
    assert VERBS[verb](found().q) == pytest.approx(VERBS[verb](at_rest), abs=SAME)


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_starts_from_interpolated_values(verb: str):
    coarse = ax.simulate(model(), 2.0, start=START, save_every=0.1)
    between = coarse.at(0.55, method="interpolate")
    picture = coarse.resample([0.0, 0.55], method="cubic")
    for state in (between, picture, picture.final, pickle.loads(pickle.dumps(between))):
        with pytest.raises(ax.InvalidArgument, match=r"are no state.*\n  Remedy: a sample"):
            VERBS[verb](state)
    guess = {name: between[name] for name in ("crank", "crank.rate")}
    end = ax.assemble(model(), guess)
    assert np.abs(model().residual(end.q)).max() < 1e-9


def test_a_state_of_other_independent_speeds_is_read_by_name():
    other = machines.four_bar("rocker")
    start = ax.assemble(other, START)
    assert other.independent != model().independent
    assert ax.assemble(model(), start)["crank.rate"] == pytest.approx(1.5, abs=SAME)


FUNCTIONS = {
    "forward_dynamics": lambda m, *state: m.forward_dynamics(*state, u=[0.3]),
    "inverse_dynamics": lambda m, *state: m.inverse_dynamics(*state, nu_dot=[2.0]),
    "energy": lambda m, *state: m.energy(*state),
    "mass_matrix": lambda m, q, *_: m.mass_matrix(q),
    "poses": lambda m, q, *_: m.poses(q),
    "multipliers": lambda m, *state: m.multipliers(*state),
    "jacobian": lambda m, *state: m.jacobian("energy", "q", *state),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_of_the_model_take_states(function: str):
    call, state = FUNCTIONS[function], found()
    wanted = call(model(), state.q, state.nu)
    for form in (state, run().at(0.0), run().between(0.0, 0.0).final, state.as_dict()):
        np.testing.assert_allclose(call(model(), form), wanted, rtol=1e-9, atol=1e-12)


def test_a_state_brings_its_time_and_parameters():
    bot = ax.Mechanism("driven", gravity=(0, 0, -machines.G))
    length = ax.Parameter("length", 1.0)
    bot.add_body("rod", mass=1.0, com=(0, 0, -length), inertia=(1e-3,) * 3)
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child="rod")
    bot.prescribe("pin", lambda t: 0.3 * t)
    model = bot.derive().compile("interpreter")
    state = ax.assemble(model, t=2.0, parameters={"length": 2.0})
    assert state["pin"] == pytest.approx(0.6)
    known = {"t": 2.0, "parameters": {"length": 2.0}}
    np.testing.assert_array_equal(model.energy(state), model.energy(state.q, state.nu, **known))
    default = {"parameters": {"length": 1.0}}
    np.testing.assert_array_equal(
        model.energy(state, **default), model.energy(state.q, state.nu, t=2.0, **default)
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("home", "expected coordinates, speeds and measures by name, arrays q"),
        ([0.1, 0.2], "of sizes 3 and 1 is needed, got"),
        ((1.0, 2.0), "expected coordinates, speeds and measures by name, arrays q"),
        (([0.1] * 3, [0.0], [0.0]), "of sizes 3 and 1 is needed, got"),
        (([np.nan] * 3, [0.0]), "every number must be finite"),
        ((np.zeros(3) + 1j, [0.0]), "expected coordinates, speeds and measures by name"),
        ({"crank": "fast"}, "'crank': expected numbers"),
        ({"crank": np.inf}, "'crank': must be finite"),
    ],
)
@pytest.mark.parametrize("verb", VERBS)
def test_what_is_no_state(verb: str, state: Any, words: str):
    name = "state" if verb == "linearize" else "start"
    with pytest.raises(ax.InvalidArgument, match=f"{name}.*{words}"):
        VERBS[verb](state)


@pytest.mark.parametrize("verb", ["assemble", "linearize", "inverse"])
def test_many_states_where_one_is_needed(verb: str):
    with pytest.raises(ax.InvalidArgument, match=r"each of crank\n  Remedy: .*batch=N"):
        VERBS[verb]({"crank": [0.1, 0.2]})
    with pytest.raises(ax.InvalidArgument, match=r"one state is needed(.|\n)*batch=N"):
        VERBS[verb](np.tile(found().q, (2, 1)))


def test_a_batch_of_states_goes_to_a_model_with_other_independent_speeds():
    one = found()
    many = ax.State(np.stack([one.q] * 2), np.stack([one.nu, 2 * one.nu]), 0.0, model())
    rate = one["rocker.rate"]
    np.testing.assert_allclose(many["rocker.rate"], [rate, 2 * rate], rtol=SAME)
    other = machines.four_bar("rocker")
    np.testing.assert_allclose(many.vectors(other)[1], [[rate], [2 * rate]], rtol=SAME)
    assert other.energy(many).shape == (2, 2)


def test_parameters_of_a_state_go_by_name():
    def pendulum(mass: str, length: str) -> ax.Model:
        machine = ax.Mechanism("pendulum")
        com = (0, 0, ax.Parameter(length, 0.5))
        bob = machine.add_body("bob", mass=ax.Parameter(mass, 1.0), com=com, inertia=(1, 1, 1))
        machine.add_joint("pin", ax.Revolute("y"), parent=machine.ground, child=bob)
        return machine.derive().compile("interpreter", parameters="free")

    first, second = pendulum("a", "b"), pendulum("b", "a")
    assert list(first.parameters) == list(second.parameters)[::-1]
    state = ax.assemble(first, {"pin": 0.3}, parameters={"a": 0.7})
    expected = second.energy(state.q, state.nu, parameters={"a": 0.7, "b": 0.5})
    np.testing.assert_allclose(second.energy(state), expected, rtol=SAME)


@cache
def driven() -> ax.Model:
    """A pendulum on a cart, turned by the clock."""
    machine = ax.Mechanism("driven")
    cart = machine.add_body("cart", mass=1.0, inertia=(1, 1, 1))
    bob = machine.add_body("bob", mass=1.0, com=(0, 0, -0.5), inertia=(1, 1, 1))
    machine.add_joint("rail", ax.Prismatic("x"), parent=machine.ground, child=cart)
    machine.add_joint("pin", ax.Revolute("y"), parent=cart, child=bob)
    machine.prescribe("pin", lambda t: 0.3 * np.sin(3 * t))
    return machine.derive().compile()


def test_a_sample_knows_its_time():
    motion = ax.simulate(driven(), 1.0, start={"rail.rate": 0.1}, save_every=0.1)
    expected = driven().forward_dynamics(motion.at(0.55), t=0.55)
    np.testing.assert_array_equal(driven().forward_dynamics(motion.at(0.55)), expected)
    assert ax.simulate(driven(), 0.1, start=motion.at(0.55)).time[0] == 0.55
    with pytest.raises(ax.LoopNotClosed, match=r"pin\.prescribed"):
        ax.simulate(driven(), 0.1, t0=0.0, start=motion.at(0.55))
    with pytest.raises(ax.InvalidArgument, match="open by"):
        ax.linearize(driven(), motion.at(0.55), t=0.0)
