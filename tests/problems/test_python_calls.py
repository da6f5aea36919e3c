"""What Python does between a call and its result does not grow with the number of runs."""

import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import axode as ax
from axode.codegen.targets import jit
from axode.problems.runs import session
from tests.problems import machines

RK4 = {"method": "rk4", "step": 0.01, "save_every": 0.02, "progress": False}
ADAPTIVE = {"method": "dopri5", "save_every": 0.02, "progress": False}


@pytest.fixture(autouse=True)
def one_slice(monkeypatch: pytest.MonkeyPatch):
    """Slices and optimised code do not depend on the clock, which would change the calls."""
    monkeypatch.setattr(session, "FIRST_SLICE", 1e15)
    monkeypatch.setattr(jit, "OPTIMISING", 0.0)


def count_calls(function: Callable[[], object]) -> int:
    """Calls of functions, of Python's and of compiled ones, and resumed generators."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sys.setprofile(count)
        try:
            function()
        finally:
            sys.setprofile(None)
    return calls


def check(call: Callable[[int], object], few: int = 10) -> None:
    """Compare the calls of a few runs with those of a hundred times as many, once compiled.

    A few more are made where a larger batch is shared among threads.
    """
    for runs in (2 * few, 100 * few):  # code for many runs may be other than that for few
        count_calls(lambda n=runs: call(n))
    less, more = (count_calls(lambda n=n: call(n)) for n in (few, 100 * few))
    assert more < less + 100


def starts(runs: int) -> dict[str, np.ndarray]:
    return {"pin": np.tile(np.linspace(0.2, 1.1, 10), runs // 10)}


@pytest.mark.parametrize("options", [RK4, ADAPTIVE], ids=["rk4", "dopri5"])
def test_runs_that_finish(options: dict):
    def call(runs: int) -> None:
        run = ax.simulate(machines.pendulum(), 0.2, start=starts(runs), **options)
        assert run.final["pin"].shape == run.ended.shape == run.energy_error.shape == (runs,)
        assert run["tip.x"].shape == run["kinetic"].shape == (runs, len(run))
        assert run.status == "finished" and len(run.statuses) == runs
        assert run.between(0.05, 0.1)["tip.x"].shape[0] == runs
        assert run.run(3)["tip.x"].shape == (len(run),) and run.at(0.1)["pin"].shape == (runs,)
        assert run.values.shape == (runs, len(run), len(run.names))

    check(call)


@pytest.mark.parametrize("options", [RK4, ADAPTIVE], ids=["rk4", "dopri5"])
def test_runs_that_events_stop(options: dict):
    """Crossings of different runs are located together; `run.events` lists them when it is read."""
    watches = [ax.Event("slow", lambda s: s["pin.rate"] + 0.2), ax.Event("down", "pin", stop=True)]

    def call(runs: int) -> None:
        run = ax.simulate(machines.pendulum(), 1.0, start=starts(runs), events=watches, **options)
        assert run.status == "stopped by event 'down'" and run.ended.max() < 0.6
        assert run.final["pin"].shape == (runs,) and np.isnan(run["tip.x"][:, -1]).any()

    check(call)


@pytest.mark.parametrize("options", [RK4, ADAPTIVE], ids=["rk4", "dopri5"])
def test_runs_that_fail(options: dict):
    def call(runs: int) -> None:
        run = ax.simulate(
            machines.slider(),
            1.0,
            start={"rail": np.tile(np.linspace(0.5, 0.9, 10), runs // 10), "rail.rate": 1.0},
            parameters={"mass": np.linspace(1.0, 2.0, runs)},
            input=lambda s: [(1 - s["rail"]) ** 0.5],
            **options,
        )
        assert "not finite, the input rail.force is nan" in run.status
        assert run.final["rail"].shape == (runs,)

    check(call)


def test_sweeps():
    def call(runs: int) -> None:
        done = ax.sweep(machines.pendulum(), 0.2, start=starts(runs), step=0.01, progress=False)
        assert done["pin"].shape == (runs,)

    check(call)


def test_starts_that_close_loops():
    def call(runs: int) -> None:
        begin = {"rocker": 1.9 + 0.1 * starts(runs)["pin"], "rocker.rate": 0.1}
        run = ax.simulate(machines.four_bar(), 0.02, start=begin, **RK4)
        assert run["coupler"].shape == (runs, 2)

    check(call)


@pytest.mark.slow
def test_runs_that_change_their_independent_speed():
    def call(runs: int) -> None:
        begin = {"crank": 0.4 + 0.1 * starts(runs)["pin"], "crank.rate": 8.0}
        run = ax.simulate(machines.four_bar("rocker"), 0.3, start=begin, **RK4)
        assert run.info["switches"] >= runs and run["coupler"].shape[0] == runs

    check(call, few=100)  # of fewer, those that change are computed without compiled code
