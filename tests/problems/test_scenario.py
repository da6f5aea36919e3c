"""A scenario: one description of a run that is checked, traced and started once."""

import copy
import pickle

import numpy as np
import pytest

import axode as ax
from axode.errors import InvalidArgument, NotApplicable, UnknownName


@pytest.fixture(scope="module")
def model():
    return ax.gallery.build("wheeled_pendulum").derive().compile(parameters="free")


def push(s):
    return {"M1": -0.1 * s["theta3_dot"], "M2": 0.02}


def same(a, b):
    return a.names == b.names and np.array_equal(a.values, b.values, equal_nan=True)


def test_a_scenario_runs_as_the_keywords_do_first_and_second_time(model):
    given = {"start": {"theta3": 0.3}, "input": push, "parameters": {"m": 11.0}, "rtol": 1e-8}
    run = ax.simulate(model, 0.5, **given)
    scenario = ax.Scenario(model, 0.5, **given)
    assert same(ax.simulate(scenario), run) and same(ax.simulate(scenario), run)


def test_a_law_is_traced_once(model):
    calls = []

    def law(s):
        calls.append(s)
        return push(s)

    scenario = ax.Scenario(model, 0.1, start={"theta3": 0.3}, input=law)
    ax.simulate(scenario)
    traced = len(calls)
    ax.simulate(scenario)
    ax.simulate(scenario, 0.2, rtol=1e-6)
    ax.Cost(scenario, final="theta3**2").value()
    assert len(calls) == traced


def test_changes_are_those_of_the_keywords(model):
    scenario = ax.Scenario(model, 0.2, start={"theta3": 0.3}, input=push, rtol=1e-8)
    ax.simulate(scenario)
    for change in (
        {"start": {"theta3": [0.1, 0.2]}},
        {"parameters": {"m": 12.0}},
        {"input": {"M1": 0.1}},
        {"t0": 1.0},
        {"method": "rk4", "step": 1e-3},
    ):
        options = {"start": {"theta3": 0.3}, "input": push} | change
        options |= {} if "method" in change else {"rtol": 1e-8}
        assert same(ax.simulate(scenario, **change), ax.simulate(model, 0.2, **options))
    longer = ax.simulate(scenario, 0.4)
    assert longer.time[-1] == 0.4 and ax.simulate(scenario).time[-1] == 0.2


def test_gains_change_without_tracing(model):
    calls = []

    def law(s, k):
        calls.append(k)
        return {"M1": -k * s["theta3_dot"]}

    scenario = ax.Scenario(model, 0.2, start={"theta3": 0.3}, input=ax.Law(law, k=0.1))
    ax.simulate(scenario)
    traced = len(calls)
    other = scenario.changed(input=scenario.input.changed(k=0.4))
    run = ax.simulate(other)
    assert len(calls) == traced
    assert same(run, ax.simulate(model, 0.2, start={"theta3": 0.3}, input=ax.Law(law, k=0.4)))


def test_what_the_caller_changes_later_changes_nothing(model):
    start = {"theta3": 0.3}
    scenario = ax.Scenario(model, 0.2, start=start)
    run = ax.simulate(scenario)
    start["theta3"] = 0.9
    assert same(ax.simulate(scenario), run) and same(ax.simulate(scenario.changed(0.2)), run)


@pytest.mark.slow
def test_sweeps_costs_and_copies(model):
    scenario = ax.Scenario(model, 0.2, start={"theta3": [0.1, 0.2, 0.3]}, input={"M1": 0.1})
    outputs = {"end": ("last", "theta3")}
    given = {"start": {"theta3": [0.1, 0.2, 0.3]}, "input": {"M1": 0.1}}
    swept = ax.sweep(scenario, outputs=outputs)
    np.testing.assert_array_equal(
        swept["end"], ax.sweep(model, 0.2, outputs=outputs, **given)["end"]
    )
    value = ax.Cost(scenario, final="theta3").value()
    np.testing.assert_array_equal(value, ax.Cost(model, 0.2, final="theta3", **given).value())
    assert same(ax.simulate(copy.deepcopy(scenario)), ax.simulate(scenario))
    assert same(ax.simulate(pickle.loads(pickle.dumps(scenario))), ax.simulate(scenario))


def test_pages_take_scenarios(model, tmp_path):
    given = {"start": {"theta3": 0.3}, "parameters": {"m": 11.0}}
    law = {"M1": "-0.1 * theta3_dot"}
    scenario = ax.Scenario(model, 1.0, input=law, step=2e-3, method="rk4", **given)
    made = ax.page(scenario, tmp_path / "scenario.html", title="page")
    other = ax.page(model, tmp_path / "model.html", title="page", input=law, step=2e-3, **given)
    assert made.read_bytes() == other.read_bytes()


def test_mistakes(model):
    with pytest.raises(UnknownName, match=r"(?s)sart.*start"):
        ax.simulate(model, 1.0, sart={"theta3": 0.1})
    with pytest.raises(InvalidArgument, match="duration"):
        ax.simulate(model)
    with pytest.raises(InvalidArgument, match="compile"):
        ax.Scenario(ax.gallery.build("wheeled_pendulum"), 1.0)
    with pytest.raises(InvalidArgument, match="rtol"):
        ax.Scenario(model, 1.0, rtol="tight")
    with pytest.raises(NotApplicable, match="events"):
        ax.sweep(model, 1.0, events=ax.Event("up", lambda s: s["theta3"]))
    with pytest.raises(NotApplicable, match="singular"):
        ax.Cost(model, 1.0, final="theta3", singular="pass")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda model: ax.simulate(model, 1.0, teval=[0.5]), "t_eval"),
        (lambda model: ax.sweep(model, 1.0, sample={}), "samples"),
        (lambda model: ax.Cost(model, 1.0, finall="x"), "final"),
    ],
)
def test_unknown_keywords_are_compared_with_those_of_the_verb_too(model, call, meant):
    with pytest.raises(UnknownName, match=f"Did you mean '{meant}'"):
        call(model)


def test_gains_in_another_order_keep_their_values(model):
    def law(s, kp, kd):
        return {"M1": -kp * s["theta3"] - kd * s["theta3_dot"], "M2": 0.0}

    scenario = ax.Scenario(model, 0.5, start={"theta3": 0.3}, input=ax.Law(law, kp=0.5, kd=0.02))
    wanted = ax.simulate(scenario)
    assert same(ax.simulate(scenario, input=ax.Law(law, kd=0.02, kp=0.5)), wanted)
