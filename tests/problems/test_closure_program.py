"""Newton's method in compiled code finds what the one in NumPy finds, on the CPU and on a GPU."""

from functools import cache

import numpy as np
import pytest

import axode as ax
import coupled_mechanisms
from axode.model.conditions import Conditions
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import CLOSED
from axode.problems.arguments import coordinate_units
from axode.problems.assemble import closure
from axode.problems.assemble.closure import ClosureSystem
from emulated_gpu import install
from tests.problems import machines

RUNS = 60


@cache
def model(name: str) -> ax.Model:
    if name == "gripper":
        return coupled_mechanisms.gripper_arm(n=1).derive().compile()
    if hasattr(machines, name):
        return getattr(machines, name)()
    return ax.gallery.build(name).derive().compile()


def near_home(name: str, spread: float, seed: int = 0) -> np.ndarray:
    m = model(name)
    off = np.random.default_rng(seed).normal(size=(RUNS, len(m.home)))
    return m.home + spread * off * coordinate_units(m)


def both(monkeypatch, system, guess, named=()):
    """Configurations and what they leave open, by NumPy and by compiled code."""
    made = []
    for most in (10**9, 0):
        monkeypatch.setattr(closure, "MAX_INTERPRETED", most)
        made.append(system.find(guess, named))
    return made


@pytest.mark.parametrize(
    ("name", "spread", "named"),
    [
        ("four_bar", 0.3, [0]),
        ("five_bar", 0.2, [0, 2]),
        ("delta_robot", 0.05, [0]),
        ("ballbot", 0.3, []),
        ("gripper", 0.1, [0]),
    ],
)
def test_the_same_configurations(monkeypatch, name, spread, named):
    """Redundant rows, quaternions, couplings; parameters of each run, or the defaults."""
    m = model(name)
    p = m.parameter_vector()
    for given in [None, *([np.tile(p, (RUNS, 1))] if p.size and not facts_of(m).fixed else [])]:
        system = ClosureSystem(m, {}, [], Conditions(0.0, given))
        (q, error), (q_c, error_c) = both(monkeypatch, system, near_home(name, spread), named)
        assert (error <= CLOSED).all() and (error_c <= CLOSED).all()
        assert np.abs(q - q_c).max() < 1e-10


def test_wanted_measures_are_met(monkeypatch):
    m, rng = model("five_bar"), np.random.default_rng(1)
    home = dict(zip(m.measure_names, m.measures(m.home, np.zeros(2)), strict=True))
    wanted = {n: home[n] + 0.02 * rng.normal(size=RUNS) for n in ("tip.x", "tip.y")}
    system = ClosureSystem(m, wanted, [], Conditions())
    (q, error), (q_c, error_c) = both(monkeypatch, system, np.tile(m.home, (RUNS, 1)))
    assert (error <= CLOSED).all() and (error_c <= CLOSED).all()
    assert np.abs(q - q_c).max() < 1e-11


def test_nearly_singular_poses(monkeypatch):
    """A parallelogram all but flat: rows become dependent, and Newton's method converges slowly."""
    m = model("parallelogram")
    off = np.random.default_rng(2).normal(size=(RUNS, 3)) * np.logspace(-7, -2, RUNS)[:, None]
    system = ClosureSystem(m, {}, [], Conditions())
    (q, error), (q_c, error_c) = both(monkeypatch, system, off)
    assert (error <= CLOSED).all() and (error_c <= CLOSED).all()
    assert np.abs(q - q_c).max() < 1e-4  # what a residual of 1e-10 says of a configuration there


def test_the_same_runs_fail(monkeypatch):
    """Crank and rocker held apart too far: some close, and the best of the others is the same."""
    m = model("four_bar")
    guess = near_home("four_bar", 0.0)
    guess[:, 0] += np.linspace(0.0, 2.0, RUNS)
    system = ClosureSystem(m, {}, [0, 2], Conditions())
    (_, error), (q_c, error_c) = both(monkeypatch, system, guess)
    assert ((error <= CLOSED) == (error_c <= CLOSED)).all() and not (error <= CLOSED).all()
    assert error == pytest.approx(error_c, abs=1e-6)
    failed, reason = system.failures(q_c, error_c)
    assert len(failed) == (error > CLOSED).sum()
    assert reason.row in ("hinge.x", "hinge.y") and failed.describe(0).endswith(" m")


def test_a_run_has_the_same_bits_whatever_others_are_closed_with_it():
    m, guess = model("four_bar"), near_home("four_bar", 0.1)

    def close(rows, many=True):
        return ClosureSystem(m, {}, [], Conditions(), many=many).close(guess[rows], [0])

    every = close(slice(None))
    for part in (slice(0, 1), slice(3, 5), slice(10, 58)):
        assert (close(part) == every[part]).all() and (close(part, False) == every[part]).all()


@pytest.mark.parametrize("name", ["gripper", "ballbot", "delta_robot"])
def test_both_ways_have_the_same_bits(monkeypatch, name):
    """Couplings, quaternions, redundant rows: whether compiling pays decides nothing else."""
    system = ClosureSystem(model(name), {}, [], Conditions())
    (q, error), (q_c, error_c) = both(monkeypatch, system, near_home(name, 0.1), [0])
    assert (q == q_c).all() and (error == error_c).all()


@pytest.mark.parametrize("name", ["four_bar", "ballbot"])
def test_on_a_gpu(monkeypatch, name):
    """One launch for all runs; the caller's guesses are kept."""
    gpu = install(monkeypatch)
    m, guess = model(name), near_home(name, 0.1)
    p, named = m.parameter_vector(), [0] if name == "four_bar" else []
    system = ClosureSystem(m, {}, [], Conditions(0.0, p if p.size else None))
    before = guess.copy()
    on_gpu = ClosureSystem(m, {}, [], system.conditions, many=True, target="cuda")
    q, error = on_gpu.find(guess, named)
    assert len(gpu.launches) == 1 and (guess == before).all()
    assert (error <= CLOSED).all()
    expected, _ = system.find(guess, named)
    assert np.abs(q - expected).max() < 1e-11
