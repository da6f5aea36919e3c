"""Code that is not optimised until that pays: the same bits, and how long it is used."""

from __future__ import annotations

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import CompiledFunction
from axode.model.model_parts import library_of
from tests.targets import functions

needs_quick = pytest.mark.skipif(not jit.quick_is_exact(), reason="code is optimised at once here")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AXODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def samples(tape: Tape, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [rng.standard_normal((count, *port.shape)) for port in tape.inputs]


def is_quick(compiled: CompiledFunction) -> dict[int, bool]:
    return {lanes: kernel.native.quick for lanes, kernel in compiled._kernels.items()}


def evaluated(tape: Tape, count: int, quick: bool) -> np.ndarray:
    compiled = CompiledFunction(tape)
    kernel = compiled._kernel(1 if count == 1 else compiled.lanes, quick=quick)
    assert kernel.native.quick == quick
    inputs = samples(tape, count)
    outputs = [np.empty((count, *port.shape)) for port in tape.outputs]
    kernel.run(compiled._places(inputs, outputs), 0, count)
    return np.concatenate([out.reshape(count, -1) for out in outputs], axis=1)


def tapes(name: str) -> list[Tape]:
    library = library_of(ax.gallery.build(name).derive().compile())
    made = [library.tape(function) for function in library.names()]
    return [tape for tape in made if 0 < tape.n_operations < 4000]


@needs_quick
@pytest.mark.slow
@pytest.mark.parametrize("name", ["wheeled_pendulum", "four_bar", "seven_axis_arm", "delta_robot"])
@pytest.mark.parametrize("count", [1, 40])
def test_functions_have_the_same_bits(folder, name, count):
    for tape in tapes(name):
        np.testing.assert_array_equal(evaluated(tape, count, True), evaluated(tape, count, False))


@needs_quick
def test_arms_have_the_same_bits(folder):
    for function in (functions.spatial_arm(3), functions.planar_chain(4)):
        tape = Tape.from_casadi(function)
        for count in (1, 19):
            quick, optimised = (evaluated(tape, count, kind) for kind in (True, False))
            np.testing.assert_array_equal(quick, optimised)


@needs_quick
def test_batches_are_optimised_once_that_pays(folder, monkeypatch):
    tape = Tape.from_casadi(functions.spatial_arm(3))
    compiled, inputs = CompiledFunction(tape), samples(tape, 50)
    monkeypatch.setattr(jit, "OPTIMISING", 1e6)  # a busy machine may be slow
    first = compiled(*inputs)
    assert is_quick(compiled) == {compiled.lanes: True}
    compiled(*(x[0] for x in inputs))
    assert is_quick(compiled) == {compiled.lanes: True, 1: False}
    monkeypatch.setattr(jit, "OPTIMISING", 0.0)
    np.testing.assert_array_equal(compiled(*inputs), first)
    assert not any(is_quick(compiled).values())
    again = CompiledFunction(tape)  # finds better code than it asks for
    monkeypatch.undo()
    monkeypatch.setenv("AXODE_CACHE", str(folder))
    np.testing.assert_array_equal(again(*inputs), first)
    assert is_quick(again) == {again.lanes: False}


@needs_quick
def test_many_small_calls_pay_too(folder):
    tape = Tape.from_casadi(functions.planar_chain(2))
    compiled, inputs = CompiledFunction(tape), samples(tape, 3)
    calls = int(jit.OPTIMISING * tape.n_operations / jit.LEAST_CALL) + 5
    for _ in range(calls):
        compiled(*inputs)
    assert not any(is_quick(compiled).values())


def test_what_is_prepared_is_optimised(folder):
    tape = Tape.from_casadi(functions.planar_chain(2))
    compiled = CompiledFunction(tape)
    compiled(*samples(tape, 3))
    compiled.prepare()
    assert not any(is_quick(compiled).values())


@needs_quick
@pytest.mark.parametrize("start", [0.3, [0.3, 0.4, 0.5]])
def test_runs_have_the_same_bits(folder, monkeypatch, start):
    """Those that change to optimised code on the way as well."""

    def simulated() -> np.ndarray:
        model = ax.gallery.build("wheeled_pendulum").derive().compile()
        return np.array(ax.simulate(model, 2.0, start={"theta3": start}).values)

    expected = simulated()
    for seconds in (0.0, 1e-9):
        monkeypatch.setattr(jit, "OPTIMISING", seconds)
        monkeypatch.setenv("AXODE_CACHE", str(folder / str(seconds)))
        np.testing.assert_array_equal(simulated(), expected)


@needs_quick
@pytest.mark.slow
@pytest.mark.parametrize("start", [0.3, [0.3, 0.4, 0.5]])
def test_long_tapes_stand_apart(folder, monkeypatch, start):
    """The rest of their program is optimised; compiled, read again and compiled once more."""

    def simulated() -> np.ndarray:
        model = ax.gallery.build("wheeled_pendulum").derive().compile()
        run = ax.simulate(model, 0.5, start={"theta3": start}, method="radau9", rtol=1e-6)
        return np.array(run.values)

    expected = simulated()
    assert not any(jit.OBJECTS in path.read_bytes() for path in folder.rglob("*") if path.is_file())
    monkeypatch.setattr(jit, "MOST_OPTIMISED", 500)
    monkeypatch.setenv("AXODE_CACHE", str(folder / "apart"))
    for seconds in (1e6, 1e6, 0.0, 0.0):
        monkeypatch.setattr(jit, "OPTIMISING", seconds)
        np.testing.assert_array_equal(simulated(), expected)
    assert any(jit.OBJECTS in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_the_longest_tapes_are_too_long(monkeypatch):
    monkeypatch.setattr(jit, "MOST_OPTIMISED", 100)
    assert jit.too_long({"a": 60, "b": 40}) == frozenset()
    assert jit.too_long({"a": 60, "b": 300, "c": 30}) == {"b"}
    assert jit.too_long({"a": 101, "b": 300, "c": 30}) == {"a", "b"}
