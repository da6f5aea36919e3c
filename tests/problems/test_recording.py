"""Columns of a simulation: computed when asked for, the same however they are asked for."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import axode as ax
from axode.model.function_source import SymbolicLibrary
from tests.problems import machines

RK4 = {"method": "rk4", "step": 0.01, "save_every": 0.02}


def finished() -> ax.Trajectory:
    """Forces that statics cannot tell, sampled inputs of each run, two axes of runs."""
    torque = np.linspace(-1.0, 1.0, 60).reshape(3, 2, 10)
    return ax.simulate(
        machines.wheeled_pendulum(),
        0.3,
        start={"pitch": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]]},
        input=ax.Sampled({"left": torque}, period=0.03),
        **RK4,
    )


def stopped() -> ax.Trajectory:
    """Runs of different lengths and parameters, under a function of the state."""
    return ax.simulate(
        machines.slider(),
        1.0,
        start={"rail": [0.0, 0.4, 0.9]},
        parameters={"mass": [1.0, 2.0, 3.0]},
        input=lambda s: [2.0 - s["rail"]],
        events=[ax.Event("far", lambda s: s["rail"] - 1.0, stop=True)],
    )


def changed() -> ax.Trajectory:
    """A loop that changes its independent speed on the way round."""
    run = ax.simulate(machines.four_bar("rocker"), 0.6, start={"crank.rate": [6.0, 9.0]})
    assert run.info["switches"] > 0
    return run


@pytest.fixture(scope="module", params=[finished, stopped, changed], ids=lambda f: f.__name__)
def twice(request: pytest.FixtureRequest) -> tuple[ax.Trajectory, ax.Trajectory]:
    """A run of which nothing was computed, and the same with all columns."""
    run, whole = request.param(), request.param()
    assert whole.values.shape == (*run.batch, len(run), len(run.names))
    return run, whole


def same(a: object, b: object) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_one_by_one_or_all_at_once(twice: tuple[ax.Trajectory, ax.Trajectory]):
    run, whole = twice
    for k, name in enumerate(run.names):
        same(run[name], whole.values[..., k])
        assert not run[name].flags.writeable
    same(run.energy_error, whole.energy_error)


def test_parts_have_the_numbers_of_the_whole(twice: tuple[ax.Trajectory, ax.Trajectory]):
    """The balance of energies counts from the start of the run in parts of it too."""
    run, whole = (one.changed() for one in twice)
    t0, t1 = float(run.time[5]), float(run.time[9])
    same(run.between(t0, t1)["error"], whole["error"][..., 5:10])
    same(run.between(t0, t1).values, whole.values[..., 5:10, :])
    for name, value in run.final.items():
        same(value, whole.final[name])
    last = whole.run(-1)
    assert len(last) == whole.lengths.flat[-1] and last.status == whole.statuses[-1]
    same(run.run(-1).values, last.values)
    same(run.run(-1).between(t0, t1)["error"], last["error"][5:10])
    between = 0.5 * (run.time[5] + run.time[6])
    for name, value in run.at(between).items():
        same(value, whole.at(between)[name])
        same(run.resample([t0, between])[name][..., 1], value)
    joined = run.between(run.time[0], t1) + run.between(t1, run.time[-1])
    same(joined["error"], whole["error"])
    same(joined.values, whole.values)
    wider = run.with_columns({"one": 1.0})
    same(wider["error"], whole["error"])
    same(wider[["one", "kinetic"]].values[..., 1], whole["kinetic"])


def test_copies_keep_everything(twice: tuple[ax.Trajectory, ax.Trajectory]):
    run, whole = twice
    for other in (copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run))):
        same(other.values, whole.values)
        assert other.statuses == whole.statuses and other.events == whole.events


def test_only_what_is_asked_for_is_computed(monkeypatch: pytest.MonkeyPatch):
    """States need no function of the model, an energy needs one."""
    asked = []
    model = machines.wheeled_pendulum()
    evaluate = type(model).evaluate

    def watch(self: ax.Model, function: str, *arguments: object) -> object:
        asked.append(function)
        return evaluate(self, function, *arguments)

    run = ax.simulate(model, 0.1, start={"pitch": [0.1, 0.2]}, **RK4)
    monkeypatch.setattr(type(model), "evaluate", watch)
    assert run["pitch"].shape == run["left.torque"].shape == run["pitch.rate"].shape
    assert run.unit("left.normal") == "N" and len(run.statuses) == 2 and asked == []
    assert np.isnan(run["left.normal"]).all() and asked == []
    assert run.energy_error.max() < 1e-6 and asked == ["energy"]
    assert run["left.rate"].shape == run["right.rate"].shape and asked == ["energy", "joint_speeds"]


@pytest.mark.slow
def test_forces_of_other_models_are_computed_when_read(monkeypatch: pytest.MonkeyPatch):
    """A run that changed its speeds derives no forces on them until one is asked for."""
    asked = []
    make = SymbolicLibrary._graph

    def watch(self: SymbolicLibrary, name: str) -> object:
        asked.append(name)
        return make(self, name)

    monkeypatch.setattr(SymbolicLibrary, "_graph", watch)
    monkeypatch.setenv("AXODE_CACHE", "off")
    model = machines.four_bar.__wrapped__("rocker")  # of which nothing is known yet
    run = ax.simulate(model, 0.6, start={"crank.rate": 6.0})
    assert run.info["switches"] > 0 and run.energy_error < 1e-6
    assert "state_rate" in asked and "multipliers" not in asked
    forces = [name for name in run.names if name.endswith(".force")]
    assert np.isfinite(run[forces[0]]).all() and asked.count("multipliers") == 2


def test_states_are_released_with_the_run():
    """At once, not when garbage is collected: they may fill the memory."""
    run = finished()
    assert run["left.rate"].shape == (3, 2, len(run)) and run.resample([0.1])["pitch"].size == 6
    states = run["pitch"]
    while states.base is not None:
        states = states.base
    kept = weakref.ref(states)
    gc.disable()
    try:
        del run, states
        assert kept() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("method", ["auto", "dopri5", "radau9"])
def test_samples_at_given_times(method):
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    given = {"start": {"theta1": [0.6, 0.7], "theta1_dot": 1.0}, "method": method}
    run = ax.simulate(model, -1.0, backwards=True, t0=2.0, t_eval=[1.9, 1.5, 1.25], **given)
    assert run.time.tolist() == [2.0, 1.9, 1.5, 1.25, 1.0]
    finer = ax.simulate(model, -1.0, backwards=True, t0=2.0, **given).resample(run.time)
    np.testing.assert_allclose(run["theta1"], finer["theta1"], atol=1e-8)


@pytest.mark.parametrize(
    "given",
    [
        {"t_eval": [0.2, 0.1]},
        {"t_eval": [0.5, 1.5]},
        {"t_eval": [[0.1, 0.2]]},
        {"t_eval": [float("nan")]},
        {"t_eval": [0.5], "save_every": 0.1},
        {"t_eval": [0.5], "method": "rk4"},
        {"t_eval": [0.5], "sensitivities": ["start.theta1"]},
    ],
)
def test_impossible_times_of_samples(given):
    model = ax.gallery.build("four_bar").derive().compile("interpreter")
    with pytest.raises(ax.InvalidArgument, match="t_eval: "):
        ax.simulate(model, 1.0, start={"theta1": 0.6}, **given)
