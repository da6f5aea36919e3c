"""Past configurations at which the independent speeds stop describing the motion, and into ones
at which nothing does."""

import gc
import math
import weakref

import numpy as np
import pytest

import axode as ax
import random_mechanisms
from axode.model.conditions import Conditions
from axode.problems.singular.switching import smallest_pivot
from tests.problems import machines

TIGHT = {"rtol": 1e-10, "atol": 1e-12}
ENERGY = 2e-8  # relative: near a dead point the speed that carries the motion is a tenth of it
SAME = 1e-6  # [rad] after twenty turns


@pytest.fixture(scope="module")
def by_the_crank() -> ax.Trajectory:
    """A crank-rocker through nineteen turns; its crank describes all of them."""
    run = ax.simulate(machines.four_bar(), 6.0, start={"crank.rate": 20.0}, **TIGHT)
    assert run.final["crank"] > 18 * 2 * math.pi and "switches" not in run.info
    return run


@pytest.mark.parametrize(
    "options", [TIGHT, {"method": "rk4", "step": 1e-4}, TIGHT | {"method": "radau9"}]
)
def test_rocker_through_its_dead_points(by_the_crank: ax.Trajectory, options: dict):
    """The rocker stands still twice a turn; described by it, the motion is the same."""
    run = ax.simulate(machines.four_bar("rocker"), 6.0, start={"crank.rate": 20.0}, **options)
    assert run.status == "finished" and run.info["switches"] >= 1
    assert run.energy_error < ENERGY
    for name in ("crank", "rocker", "rocker.rate", "hinge.x.force"):
        scale = np.abs(by_the_crank[name]).max()
        assert np.abs(run[name] - by_the_crank[name]).max() < SAME * max(scale, 1.0), name
    assert run.kinds["rocker.rate"] == "independent"
    turning = np.sign(run["rocker.rate"])
    assert (turning[1:] != turning[:-1]).sum() > 30  # twice a turn


def test_input_and_events_after_a_change(by_the_crank: ax.Trajectory):
    """A function of the state means the same on other speeds; so does one of nu."""

    def by_name(s):
        return [-0.02 * s["rocker.rate"]]

    model = machines.four_bar("rocker")
    watch = ax.Event("turn", lambda s: np.sin(s["crank"] / 2))
    start = {"crank.rate": 20.0}
    wanted = ax.simulate(
        machines.four_bar(), 3.0, start=start, input=by_name, events=[watch], **TIGHT
    )
    e = model.equations
    for given in (by_name, lambda s: -0.02 * s.nu, {"crank.torque": -0.02 * e.nu[0]}):
        run = ax.simulate(model, 3.0, start=start, input=given, events=[watch], **TIGHT)
        assert run.info["switches"] >= 1
        assert np.abs(run["crank"] - wanted["crank"]).max() < SAME
        times = [e.time for e in run.events]
        assert times == pytest.approx([e.time for e in wanted.events], abs=1e-8)
        assert len(times) > 8
        assert run.energy_error < ENERGY
    assert np.abs(wanted["crank"] - by_the_crank.resample(wanted.time)["crank"]).max() > 1e-3


def test_batches_change_together():
    """Every run comes to a dead point at its own time; inputs and parameters stay its own."""
    model, rates = machines.four_bar("rocker"), np.linspace(12.0, 20.0, 6)
    torque = np.linspace(-0.1, 0.1, 6)
    batch = ax.simulate(
        model, 1.0, start={"crank.rate": rates}, input={"crank.torque": torque}, **TIGHT
    )
    assert set(batch.statuses) == {"finished"} and batch.info["switches"] >= 6
    for k in (0, 3, 5):
        alone = ax.simulate(
            machines.four_bar(),
            1.0,
            start={"crank.rate": rates[k]},
            input={"crank.torque": torque[k]},
            **TIGHT,
        )
        assert np.abs(batch["crank"][k] - alone["crank"]).max() < SAME


def test_slider_crank_through_its_dead_points():
    run = ax.simulate(machines.slider_crank("slide"), 3.0, start={"turn.rate": 20.0}, **TIGHT)
    same = ax.simulate(machines.slider_crank("turn"), 3.0, start={"turn.rate": 20.0}, **TIGHT)
    assert run.info["switches"] >= 1 and "switches" not in same.info
    assert run.energy_error < ENERGY and same.energy_error < 1e-9
    assert np.abs(run["turn"] - same["turn"]).max() < SAME
    # the closed form of the mechanism itself
    turn = run["turn"]
    assert run["slide"] == pytest.approx(
        0.1 * np.cos(turn) + np.sqrt(0.09 - 0.01 * np.sin(turn) ** 2), abs=1e-9
    )


@pytest.mark.parametrize(("options", "near"), [(TIGHT, 2e-3), ({"method": "rk4"}, 0.03)])
def test_parallelogram_at_its_change_point(options: dict, near: float):
    """Stretched out, its row along the links vanishes: two motions are possible from there."""
    model = machines.parallelogram()
    with pytest.raises(ax.SingularConfiguration) as caught:
        ax.simulate(model, 5.0, start={"crank.rate": 20.0}, save_every=0.01, **options)
    error, run = caught.value, caught.value.trajectory
    assert isinstance(run, ax.Trajectory)
    assert abs(run.final["crank"] - math.pi) < near  # [rad] within a step of it
    assert run.time[-1] == pytest.approx(error.time) and f"t = {error.time:.6g} s" in str(error)
    assert "the row hinge.x vanishes there" in str(error) and "rocker.rate +1" in str(error)
    assert run.energy_error < 1e-8 and np.abs(run["crank"] - run["rocker"]).max() < 1e-9
    assert "singular configuration" in run.status
    assert len(run) == 12  # samples every 10 ms, and where it ended


def test_parallelograms_in_a_batch():
    """Those that reach the change point say so; the others go on."""
    model = machines.parallelogram()
    run = ax.simulate(model, 0.2, start={"crank.rate": [20.0, 1.0, 30.0, 0.5]}, **TIGHT)
    assert [s.startswith("failed: singular") for s in run.statuses] == [True, False, True, False]
    assert run.statuses[1] == "finished" and "hinge.x" in run.statuses[0]
    assert not np.isnan(run["crank"][1]).any() and run.ended[0] < 0.11


def test_parallelograms_in_a_sweep():
    """Steps would cross the change point without noticing; runs end before it.

    The last one starts where a pivot is small and no other choice is better: it goes on.
    """
    angles, rates = np.array([1.0, 1.0, 1.0, math.pi - 0.03]), [20.0, 1.0, 30.0, -9.0]
    start = {"crank": angles, "coupler": -angles, "rocker": angles, "crank.rate": rates}
    made = ax.sweep(machines.parallelogram(), 0.2, start=start, combine="zip", step=1e-3)
    assert made.finished.tolist() == [False, True, False, True]
    assert made.statuses == {"finished": 2, "failed: singular configuration": 2}
    assert np.isnan(made["crank"][0]) and made["energy_error"][3] < 1e-8


def test_parameters_of_the_run_decide():
    """Where a solve is singular depends on the parameters: those of the run count."""
    bot = random_mechanisms.caster_robot()
    model = bot.derive(independent=["left.rate", "right.rate"]).compile(parameters="free")
    run = ax.simulate(
        model,
        3.0,
        start={"left.rate": 3.0, "right.rate": 1.0},
        parameters={"trail": [0.06, 0.11]},
        **TIGHT,
    )
    assert set(run.statuses) == {"finished"} and run.energy_error.max() < ENERGY


def test_models_are_forgotten_with_what_was_made_for_them():
    """A loop over designs does not fill the memory."""
    model = machines.four_bar.__wrapped__("rocker")
    run = ax.simulate(model, 0.4, start={"crank.rate": 20.0}, save_every=0.1)
    assert run.info["switches"] >= 1
    known = weakref.ref(model)
    del model, run
    gc.collect()
    assert known() is None


@pytest.mark.slow
def test_a_platform_that_lies_flat_is_seen_to():
    """In the plane of its legs three motions of the platform leave all elbows at rest: columns of
    the change of speeds vanish together, and none of them seems small beside itself."""
    model, flat = (
        ax.gallery.build("six_legged_platform", **pose).derive().compile("interpreter")
        for pose in ({}, {"c_M": (0.0, 0.0, 0.05)})
    )
    assert np.abs(model.speed_map(flat.home)).max() > 1e6
    assert smallest_pivot(model, model.home, Conditions()) > 0.2
    assert smallest_pivot(model, flat.home, Conditions()) < 1e-6
