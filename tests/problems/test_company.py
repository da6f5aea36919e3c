"""Runs have the same bits alone and in company, the first time and after others, in any order."""

import numpy as np
import pytest

import axode as ax
from axode.model.conditions import Conditions
from axode.problems.arguments import read_state
from axode.problems.assemble.assemble import assemble_many
from axode.problems.simulate.starts import find_starts
from axode.problems.singular import switching
from tests.problems import machines
from variants import slow

OUTPUTS = {"error": ("largest", "error"), "last": ("last", "kinetic")}
TIMES = {"cooperating_arms": 0.5, "four_bar": 0.9}


def made_anew(name: str) -> ax.Model:
    """A model for which no other was made yet."""
    if name == "four_bar":
        return machines.four_bar.__wrapped__("rocker")
    return ax.gallery.build(name).derive().compile()


def drawn(model: ax.Model, name: str, count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    if name == "four_bar":
        return {"crank.rate": rng.uniform(14.0, 24.0, count)}
    return {speed: rng.uniform(-0.3, 0.3, count) for speed in model.independent}


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMES)
def test_rows_of_a_sweep(name: str):
    model, time = made_anew(name), TIMES[name]
    start = drawn(model, name, 16)

    def swept(model: ax.Model, rows: np.ndarray, **options) -> tuple[np.ndarray, np.ndarray]:
        chosen = {speed: v[rows] for speed, v in start.items()}
        made = ax.sweep(model, time, start=chosen, combine="zip", outputs=OUTPUTS, **options)
        return np.array([made[o] for o in OUTPUTS]), made.finished

    every, fresh = np.arange(16), made_anew(name)
    for how in ({"step": 2e-4}, {}):
        wanted, finished = swept(model, every, **how)
        assert finished.all()
        reverse = swept(model, every[::-1], chunk=5, **how)[0]
        np.testing.assert_array_equal(reverse, wanted[:, ::-1])
        for rows in (every[7:8], every[7:2:-1]):
            np.testing.assert_array_equal(swept(fresh, rows, **how)[0], wanted[:, rows])


@pytest.mark.parametrize("name", slow(TIMES, "cooperating_arms"))
def test_runs_of_a_batch(name: str):
    """Two of them at least: code for a single run rounds differently."""
    model, time = made_anew(name), TIMES[name]
    start = drawn(model, name, 6)

    def simulated(model: ax.Model, rows: np.ndarray, **options) -> np.ndarray:
        chosen = {speed: v[rows] for speed, v in start.items()}
        run = ax.simulate(model, time, start=chosen, save_every=0.05, **options)
        assert set(run.statuses) == {"finished"} and run.info["switches"] > 0
        return np.stack([run[c] for c in (*model.coordinates, *model.speed_names)])

    every = np.arange(6)
    for options in ({}, {"method": "rk4", "step": 2e-4}):
        wanted = simulated(model, every, **options)
        np.testing.assert_array_equal(simulated(model, every[::-1], **options), wanted[:, ::-1])
        rows = every[2:4]
        np.testing.assert_array_equal(simulated(made_anew(name), rows, **options), wanted[:, rows])


@pytest.mark.parametrize("name", TIMES)
def test_starts(name: str):
    """Alone, among a few, where compiling pays, and of a run: coordinates and dependent speeds."""
    model = made_anew(name)
    first = model.coordinates[0]
    speed = next(s for s in model.speed_names if s not in model.independent)
    rng = np.random.default_rng(3)
    near = {first: model.home[0] + rng.uniform(-0.1, 0.1, 3000), speed: rng.uniform(0.1, 1, 3000)}

    def started(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        some = {key: values[rows] for key, values in near.items()}
        return assemble_many(model, some, len(some[first]), Conditions())

    q, nu = started(slice(None))
    for rows in (slice(1), slice(2, 10), slice(300)):
        for found, wanted in zip(started(rows), (q[rows], nu[rows]), strict=True):
            np.testing.assert_array_equal(found, wanted)
    for k in range(2):
        start = {key: float(values[k]) for key, values in near.items()}
        state = ax.assemble(model, start)
        begun = find_starts(model, read_state(model, start, "start"), 0.0, None, ())
        for found in (state, begun):  # `simulate` begins there
            np.testing.assert_array_equal(found.q.ravel(), q[k])
            np.testing.assert_array_equal(found.nu.ravel(), nu[k])


@pytest.mark.slow
def test_models_that_are_kept_decide_nothing(monkeypatch: pytest.MonkeyPatch):
    """Where only one is kept, others are made again when they are needed."""
    wanted, fewer = (made_anew("cooperating_arms") for _ in range(2))
    start = drawn(wanted, "cooperating_arms", 4)

    def simulated(model: ax.Model) -> np.ndarray:
        run = ax.simulate(model, 0.5, start=start, save_every=0.1)
        assert run.info["switches"] > 1
        return np.stack([run[c] for c in model.coordinates])

    first = simulated(wanted)
    monkeypatch.setattr(switching, "MAX_MODELS", 1)
    for _ in range(2):
        np.testing.assert_array_equal(simulated(fewer), first)
