"""Every run is audited: who ends with an energy that is not what it must be is not finished."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import axode as ax
from axode.cli import run
from axode.errors import RunsInaccurateWarning
from axode.numerics.tolerances import ENERGY_TOLERANCE
from axode.results.columns import describe_inaccuracy, largest_inaccuracy
from emulated_gpu import install
from tests.problems import machines

TOO_LONG = 0.1  # [s] for a pendulum of a metre
START = {"pin": np.array([0.1, 1.0, 2.5]), "pin.rate": 3.0}
SWEPT = {"start": START, "combine": "zip", "outputs": {"pin": ("last", "pin")}}


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RunsInaccurateWarning)
        yield


def warned():
    return pytest.warns(RunsInaccurateWarning, match="balance of energy")


@pytest.mark.parametrize("step", [1e-3, 0.02, 0.05, TOO_LONG])
@pytest.mark.parametrize("damping", [None, 0.3])
def test_a_run_is_inaccurate_if_its_balance_is_off(step, damping):
    """Columns of energy, computed in another way, say which runs are to be marked."""
    model = machines.pendulum() if damping is None else machines.pendulum(damping=damping)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsInaccurateWarning)
        run = ax.simulate(
            model, 2.0, start=START, input={"pin": 2.0}, method="rk4", step=step, save_every=step
        )
    change = abs(run["potential"] - run["potential"][:, :1])
    others = [run[name] for name in ("kinetic", "supplied", "dissipated")]
    size = np.max([change, *map(abs, others)], axis=(0, 2))
    off = abs(run["error"]).max(axis=1) / size
    assert run.info["energy_tolerance"] == ENERGY_TOLERANCE
    for error, status in zip(off, run.statuses, strict=True):
        if (
            not ENERGY_TOLERANCE / 3 < error < 3 * ENERGY_TOLERANCE
        ):  # samples of the audit are fewer
            assert status.startswith("inaccurate") == (error > ENERGY_TOLERANCE), (error, status)
    assert ("inaccurate" in run.status) == (off.max() > ENERGY_TOLERANCE)


def test_fixed_steps_that_are_too_long_are_reported_by_every_verb(tmp_path):
    model = machines.pendulum()
    with warned():
        run = ax.simulate(model, 2.0, start={"pin": 1.0}, method="rk4", step=TOO_LONG)
    assert run.status.startswith("inaccurate: energy off by ")
    run.save(tmp_path / "run.npz")
    assert ax.Trajectory.load(tmp_path / "run.npz").status == run.status
    with warned():
        cost = ax.Cost(model, 2.0, final="pin**2", start={"pin": 1.0}, step=TOO_LONG)
        assert cost.value() == run.final["pin"] ** 2
    with warned():
        assert np.isfinite(ax.gradient(cost, ["start.pin"])["start.pin"])
    with warned():
        made = ax.sweep(model, 2.0, **SWEPT, step=TOO_LONG)
    assert made.statuses == {"inaccurate": 3} and not made.finished.any()
    assert np.isfinite(made["pin"]).all()  # numbers are kept
    assert "3 inaccurate (energy off by" in repr(made)
    assert 1e-4 < largest_inaccuracy(made.reasons.values()) < 1.0


def test_the_command_line_counts_inaccurate_rows_and_exits_with_an_error(capsys):
    line = "{} --time 1 --json --step 0.05 {}"
    swept = line.format("sweep five_axis_arm", "--over theta1_dot=0:3:2").split()
    simulated = line.format("simulate five_axis_arm", "--method rk4").split()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunsInaccurateWarning)
        assert run(swept) == 0
        made = json.loads(capsys.readouterr().out)
        assert made["statuses"] == {"inaccurate": 2} and "energy off by" in made["ended"]
        assert run(simulated) == 1
    assert json.loads(capsys.readouterr().out)["status"].startswith("inaccurate")


def test_an_event_may_end_an_inaccurate_run():
    event = ax.Event("low", lambda s: s["pin"], stop=True)
    with warned():
        run = ax.simulate(
            machines.pendulum(), 2.0, start=START, method="rk4", step=TOO_LONG, events=event
        )
    assert run.statuses[0].startswith("stopped by event 'low', inaccurate: energy off by ")


@pytest.mark.parametrize("engine", ["store", "processes", "gpu", "single"])
def test_the_status_is_that_of_the_row_whatever_computes_and_keeps_it(
    engine, tmp_path, monkeypatch
):
    """Slow pendulums take the same steps well; one that turns over and over does not."""
    start = {"pin": START["pin"], "pin.rate": np.array([0.0, 150.0, 1.0])}
    options = SWEPT | {"step": 0.04, "start": start}

    def sweep(**more):
        return ax.sweep(machines.pendulum(), 2.0, **options, **more)

    with warned():
        expected = sweep()
    assert expected.statuses == {"finished": 2, "inaccurate": 1}
    assert not expected.finished[1]
    folder = tmp_path / "store"
    more = {
        "store": {"store": folder, "chunk": 2},
        "processes": {"executor": 1, "chunk": 2},
        "gpu": {"target": "cuda"},
        "single": {"target": "cuda", "precision": "float32"},
    }[engine]
    if engine in ("gpu", "single"):
        install(monkeypatch)
    with warned():
        made = sweep(**more)
    np.testing.assert_array_equal(made.finished, expected.finished)
    if engine != "single":  # errors are the same but for rounding
        assert dict(made.reasons) == dict(expected.reasons)
    if engine == "store":
        loaded = ax.Sweep.load(folder)
        assert repr(loaded) == repr(made) and loaded.endings == expected.endings
        with warned():  # all rows are there
            assert sweep(**more).endings == expected.endings


@pytest.mark.parametrize("pendulum", ["period", "rest", "high up", "backwards"])
def test_correct_runs_are_not_marked(pendulum):
    """Not where kinetic energy is zero at both ends, all is at rest, or potentials are large."""
    height = 1e6 if pendulum == "high up" else 0.0
    bot = ax.Mechanism("pendulum", gravity=(0, 0, -machines.G))
    rod = bot.add_body("rod", mass=1.0, com=(0, 0, -1.0), inertia=ax.Inertia.point())
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=rod, at=(0, 0, height))
    model = bot.derive().compile()
    angle = {"period": 0.5, "rest": 0.0, "high up": 1e-4, "backwards": 0.5}[pendulum]
    period = 2 * np.pi / np.sqrt(machines.G) * (1 + angle**2 / 16 + 11 * angle**4 / 3072)
    back = pendulum == "backwards"
    duration = -period if back else period
    for options in ({}, {"method": "rk4"}, {"method": "radau9"}, {"rtol": 1e-6}):
        run = ax.simulate(model, duration, backwards=back, start={"pin": angle}, **options)
        assert run.status == "finished"
        if pendulum != "high up":
            assert run["kinetic"][-1] < 1e-6
    swept = {"pin": np.array([angle, 0.9 * angle, 0.8 * angle])}
    assert ax.sweep(model, period, start=swept).finished.all()


def test_a_model_without_its_energy_is_not_audited(tmp_path):
    """A file may have been written without it."""
    model = machines.pendulum()
    names = [name for name in model.functions if name != "energy"]
    model.save(tmp_path / "small.axm", names)
    made = ax.sweep(ax.load_model(tmp_path / "small.axm"), 2.0, **SWEPT, step=TOO_LONG)
    assert made.finished.all() and made.info["energy_tolerance"] is None


@pytest.mark.soak
@pytest.mark.parametrize("name", ["gough_stewart", "dietmaier_platform", "cooperating_arms"])
def test_platforms_near_singular_poses_do_not_finish_with_wrong_energies(name):
    """With steps of a millisecond many rows were off by more than a joule and called finished."""
    model = ax.gallery.build(name).derive().compile()
    speeds = np.random.default_rng(0).uniform(-0.3, 0.3, (len(model.independent), 24))
    start = dict(zip(model.independent, speeds, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = ax.sweep(
            model,
            0.5,
            start=start,
            combine="zip",
            step=1e-3,
            outputs={"error": ("largest", "error")},
        )
    assert (made["error"][made.finished] < 1e-3).all()


def test_errors_are_told_by_few_texts():
    """One digit of each: as many texts as rows would not fit into a column of a store."""
    errors = np.random.default_rng(0).uniform(1e-5, 1.0, 10_000)
    texts = describe_inaccuracy(errors)
    assert len(set(texts)) < 60
    assert largest_inaccuracy([*texts, "something else"]) == pytest.approx(errors.max(), rel=0.1)
