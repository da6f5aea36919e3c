"""How often code is compiled, and how long it is kept: once per structure, not per gain."""

import gc
import threading
import time
import weakref

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.formulas import formula_tape
from axode.codegen.tape.rewriting import extract_numbers
from axode.codegen.targets import jit
from axode.problems.inputs import tracing
from axode.problems.steps import compiled
from emulated_gpu import install
from tests.problems import machines

EXACT = 1e-12
SOLVED = 1e-8  # by adaptive methods at their tolerances
RK4 = {"method": "rk4", "step": 0.01, "save_every": 0.5}


class Loads(list):
    """Weak references to all machine code that was loaded."""

    @property
    def alive(self) -> int:
        gc.collect()
        return sum(native() is not None for native in self)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    load, made = jit.load, Loads()

    def remember(*arguments):
        native = load(*arguments)
        made.append(weakref.ref(native))
        return native

    monkeypatch.setattr(jit, "load", remember)
    monkeypatch.setattr(jit, "OPTIMISING", 1e6)  # a busy machine may be slow
    return made


def spring(stiffness: float):
    return lambda s: {"rail.force": -stiffness * s["rail"] - 0.3 * s["rail.rate"]}


def text(stiffness: float):
    return {"rail.force": f"-{float(stiffness)}*rail - 0.3*rail.rate"}


@pytest.mark.parametrize("law", [spring, text])
@pytest.mark.parametrize("options", [RK4, {}, {"method": "radau9"}])
def test_a_new_gain_compiles_nothing(loads: Loads, law, options: dict):
    gains, ends = np.array([2.3, 3.1, 5.7, 9.7]), []
    for gain in gains:
        run = ax.simulate(machines.slider(), 1.0, start={"rail": 1.0}, input=law(gain), **options)
        ends.append(run.final["rail"])
        if gain == gains[0]:
            loads.clear()
    assert not loads
    decay, frequency = 0.15, np.sqrt(gains - 0.15**2)
    turned = np.cos(frequency) + decay / frequency * np.sin(frequency)
    assert ends == pytest.approx(np.exp(-decay) * turned, abs=SOLVED)


def test_two_hundred_gains_compile_once(loads: Loads):
    gains = np.random.default_rng(0).uniform(20, 60, 200)
    for gain in gains:
        run = ax.simulate(machines.slider(), 0.02, start={"rail": 1.0}, input=spring(gain), **RK4)
        if gain == gains[0]:
            loads.clear()
    assert not loads
    expected = -gain * run["rail"] - 0.3 * run["rail.rate"]
    assert run["rail.force"] == pytest.approx(expected, rel=EXACT)


def test_numbers_in_the_code_and_as_arguments_give_the_same_bits(monkeypatch: pytest.MonkeyPatch):
    model = machines.wheeled_pendulum()
    options = {"start": {"pitch": np.linspace(0, 0.3, 9)}, **RK4}
    law = lambda s: [(25.0 * s["pitch"] - s["pitch.rate"] / 3.0) * s["pitch"] ** 2] * 2  # noqa: E731
    lifted = ax.simulate(model, 0.5, input=law, **options)
    monkeypatch.setattr(compiled.Place, "max_numbers", 0)
    monkeypatch.setattr(tracing, "MAX_NUMBERS", 0)
    same = ax.simulate(model, 0.5, input=law, **options)
    assert np.array_equal(same.values, lifted.values, equal_nan=True)


def test_a_new_threshold_of_an_event_compiles_nothing(loads: Loads):
    model = machines.slider()

    def run(threshold: float):
        event = ax.Event("there", lambda s: s["rail"] - threshold, stop=True)
        return ax.simulate(model, 2.0, input={"rail.force": 1.0}, events=event)

    run(0.3)
    loads.clear()
    for threshold in (0.4, 0.55, 0.6):
        found = run(threshold)
        assert found.events[0].time == pytest.approx(np.sqrt(2 * threshold), abs=SOLVED)
    assert not loads


def test_a_new_gain_of_a_model_from_a_file_compiles_nothing(loads: Loads, tmp_path):
    machines.slider().save(tmp_path / "slider.axm")
    model = ax.load_model(tmp_path / "slider.axm")
    ends = []
    for gain in (2.3, 3.7, 4.9):
        ends.append(
            ax.simulate(model, 1.0, start={"rail": 1.0}, input=text(gain), **RK4).final["rail"]
        )
        if gain == 2.3:
            loads.clear()
    assert not loads and ends[0] > ends[1] > ends[2]


def test_a_new_gain_of_a_sweep_compiles_nothing(loads: Loads):
    model, starts = machines.slider(), [0.5, 1.0, 2.0]
    options = {"start": {"rail": starts}, "step": 0.01}
    made = ax.sweep(model, 0.5, input=spring(2.3), **options)
    loads.clear()
    other = ax.sweep(model, 0.5, input=spring(3.9), **options)
    assert not loads and (other["rail"] < made["rail"]).all()
    alone = ax.simulate(model, 0.5, start={"rail": 2.0}, input=spring(3.9), **RK4)
    assert other["rail"][2] == pytest.approx(alone.final["rail"], rel=EXACT)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_new_number_in_an_output_compiles_nothing(
    loads: Loads, target: str, monkeypatch: pytest.MonkeyPatch
):
    install(monkeypatch)
    options = {"start": {"rail": [0.5, 1.5]}, "step": 0.01, "target": target}
    for place in (0.7, 0.9):
        loads.clear()
        outputs = {"far": ("max", f"(rail - {place})**2"), "there": ("last", "rail > 1.1")}
        made = ax.sweep(machines.slider(), 0.1, outputs=outputs, **options)
        assert made["far"] == pytest.approx([(0.5 - place) ** 2, (1.5 - place) ** 2])
        assert made["there"].tolist() == [0, 1]
    assert not loads


def test_a_new_gain_on_a_gpu_compiles_nothing(loads: Loads, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    model = machines.slider()
    options = {"start": {"rail": [0.5, 1.0]}, **RK4}
    ax.simulate(model, 0.5, input=spring(2.3), target="cuda", **options)
    loads.clear()
    there = ax.simulate(model, 0.5, input=spring(3.9), target="cuda", **options)
    assert not loads
    here = ax.simulate(model, 0.5, input=spring(3.9), **options)
    assert there["rail"] == pytest.approx(here["rail"], rel=EXACT)


def test_a_new_amplitude_of_a_motion_compiles_nothing(loads: Loads):
    model = machines.slider()
    for amplitude in (1.3, 1.7):
        loads.clear()
        run = ax.inverse_dynamics(
            model, {"rail": f"{amplitude}*sin(3*t)"}, times=np.linspace(0, 1, 5)
        )
        assert run["rail.force"] == pytest.approx(-9 * amplitude * np.sin(3 * run.time), abs=SOLVED)
    assert not loads


def test_a_new_gain_of_runs_that_change_their_speeds_compiles_nothing(loads: Loads):
    options = {"start": {"crank.rate": 20.0}, "method": "rk4", "step": 0.005, "save_every": 0.5}
    model = machines.four_bar("rocker")
    for gain in (0.13, 0.17):
        loads.clear()
        law = lambda s: {"crank.torque": -gain * s["crank.rate"]}  # noqa: B023, E731
        run = ax.simulate(model, 1.0, input=law, **options)
        assert run.info["switches"] and np.abs(run["error"]).max() < 1e-3
        assert run["crank.torque"] == pytest.approx(-gain * run["crank.rate"], rel=1e-9)
    assert not loads


@pytest.mark.slow
def test_programs_beyond_the_limit_are_unloaded(loads: Loads, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiled, "MAX_PROGRAMS", 3)
    monkeypatch.setattr(tracing, "compile_tape", tracing.CompiledFunction)
    model, powers = machines.slider.__wrapped__(), range(3, 10)
    start = {"rail": 1.0}
    for power in powers:
        ax.simulate(model, 0.1, start=start, input={"rail.force": f"-rail**{power}"}, **RK4)
        assert len(compiled._ROLLOUTS[model]) <= 3
    before = loads.alive
    for power in powers:
        ax.simulate(model, 0.1, start=start, input={"rail.force": f"-rail**{power}"}, **RK4)
    assert loads.alive == before and len(loads) >= 2 * len(powers)


@pytest.mark.slow
def test_a_model_takes_its_code_along(loads: Loads):
    for _ in range(3):
        model = machines.slider.__wrapped__()
        ax.simulate(model, 0.1, start={"rail": 1.0}, input={"rail.force": 1.3}, **RK4)
        ax.linearize(model)
        left = [weakref.ref(model), weakref.ref(model.equations)]
        del model
        assert loads.alive <= 1  # the entry that Python calls, of all functions
        assert all(item() is None for item in left)


def test_threads_that_begin_together_load_a_program_once(
    loads: Loads, monkeypatch: pytest.MonkeyPatch
):
    """What one of them loaded twice would be unloaded while another runs it."""
    model = machines.slider.__wrapped__()
    ax.simulate(model, 0.02, start={"rail": 1.0}, **RK4)
    (rollout,) = compiled._ROLLOUTS[model].values()
    rollout._native.clear()
    loads.clear()
    load, together = jit.load, threading.Barrier(2)

    def wait_and_load(*arguments):
        time.sleep(0.05)  # long enough for the other one to look
        return load(*arguments)

    monkeypatch.setattr(jit, "load", wait_and_load)

    def use():
        together.wait()
        rollout.function(1)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loads) == 1


def test_functions_beyond_the_limit_are_unloaded(loads: Loads):
    for power in range(3, 4 + tracing.MAX_FUNCTIONS):
        made = tracing.TracedFunction(_power(power))
    assert tracing.compile_tape.cache_info().currsize <= tracing.MAX_FUNCTIONS
    assert made(np.array([1.0])) == pytest.approx(1.7)


@pytest.mark.slow
def test_code_that_was_unloaded_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch):
    """An engine remembers every library it ever had: it serves a few and is replaced."""
    engines: list = []
    make = jit.llvm.create_lljit_compiler

    def remember(*arguments, **options):
        engines.append(make(*arguments, **options))
        return engines[-1]

    monkeypatch.setattr(jit.llvm, "create_lljit_compiler", remember)
    ir = "define double @f(double %x) {\n  ret double %x\n}\n"
    code = jit.compile_here("f", ir)
    kept = [jit._link("f", "f", code) for _ in range(3 * jit.LIBRARIES_PER_ENGINE)]
    assert len(engines) >= 3
    alive = [weakref.ref(engine) for engine in engines]
    engines.clear()
    gc.collect()
    assert sum(engine() is not None for engine in alive) == 1
    assert all(library["f"] for library in kept)


def _power(exponent: int, factor: float = 1.7):
    return formula_tape("law", {"x": 1}, lambda x: {"y": [factor * x[0] ** exponent]})


def test_numbers_of_a_tape_become_an_argument():
    tape, other = _power(3, 1.7), _power(3, 1.9)
    lifted, same = extract_numbers(tape, 10), extract_numbers(other, 10)
    assert lifted.tape == same.tape != tape
    assert lifted.numbers["law_numbers"].tolist() == [1.7]
    assert lifted.tape.evaluate([2.0], [1.9]) == other.evaluate([2.0])
    assert extract_numbers(tape, 0).tape is tape
    assert extract_numbers(_power(3, 2.0), 10).numbers == {}  # part of the structure
