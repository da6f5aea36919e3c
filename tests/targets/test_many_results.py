"""Functions with many results: the same numbers, and code that does not grow with them."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.lowering import chunk_plan as lowering
from axode.codegen.lowering.chunk_plan import MOST_STORES
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import CompiledFunction

SIZE = 27  # of a square matrix: more entries than are stored one by one, and no multiple of eight
SAMPLES = 21  # no multiple of any number of lanes
LANES = (1, 2, 4, 8)
DIGITS = 1e-15  # products and sums of two numbers of size one, rounded in another order


def matrices() -> Tape:
    """A symmetric matrix with zeros, one of inputs and constants alone, a long input, a number."""
    x, y = ca.SX.sym("x", SIZE), ca.SX.sym("y", SIZE * SIZE)
    full = ca.densify(ca.diag(ca.sin(x)) + ca.tril(x @ x.T, False) + ca.tril(x @ x.T, False).T)
    full[0, 3:] = 0
    plain = ca.diag(x) + ca.SX.eye(SIZE)
    plain[1:, 0] = 2.5
    plain[0, 1:] = x[1:].T
    outputs = [full, ca.densify(plain), 3 * y, ca.sum1(y)]
    function = ca.Function("f", [x, y], outputs, ["x", "y"], ["full", "plain", "three", "sum"])
    return Tape.from_casadi(function)


@pytest.fixture(scope="module")
def tape() -> Tape:
    return matrices()


def samples(tape, count):
    rng = np.random.default_rng(3)
    return [rng.uniform(-1, 1, size=(count, *port.shape)) for port in tape.inputs]


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("lanes", LANES)
def test_all_widths_agree_with_numpy(tape, lanes, cut, monkeypatch):
    if cut:
        for place in (
            "batch_loop.plan_with_columns",
            "instructions.plan_with_columns",
            "instructions.plan",
        ):
            monkeypatch.setattr(
                f"axode.codegen.lowering.{place}",
                lambda t, on_vectors=False, **uncut: lowering.plan(
                    t, **uncut or {"longest": 100, "chunk": 300}
                ),
            )
    monkeypatch.setenv("AXODE_CACHE", "off")
    arrays = samples(tape, SAMPLES)
    expected = tape.evaluate(*arrays)
    compiled = CompiledFunction(tape, lanes=lanes)
    for got, right in zip(compiled(*arrays), expected, strict=True):
        np.testing.assert_allclose(got, right, rtol=0, atol=SIZE * DIGITS)
    for got, right in zip(compiled(*(a[4] for a in arrays)), expected, strict=True):
        np.testing.assert_allclose(got, right[4], rtol=0, atol=SIZE * DIGITS)


@pytest.mark.parametrize("count", [1, SAMPLES])
def test_results_may_overwrite_what_they_are_computed_from(count):
    """The first result needs the input that the last one overwrites."""
    x = ca.SX.sym("x", MOST_STORES + 5)
    tape = Tape.from_casadi(ca.Function("turned", [x], [x[::-1] * 2 + ca.sum1(x)]))
    array = samples(tape, count)[0]
    expected = tape.evaluate(array)[0]
    CompiledFunction(tape)(array, out=array)
    np.testing.assert_allclose(array, expected, rtol=0, atol=len(array[0]) * DIGITS)


@pytest.mark.parametrize("lanes", [1, 8])
def test_results_are_stored_at_once_when_all_inputs_were_read(lanes, monkeypatch):
    """Those computed before wait in slots, also if the output is the input."""
    monkeypatch.setattr(lowering, "LONGEST_FUNCTION", 100)
    monkeypatch.setattr(lowering, "CHUNK", 100)
    monkeypatch.setenv("AXODE_CACHE", "off")
    x = ca.SX.sym("x", MOST_STORES + 5)
    early, late = ca.cos(x[:5]), ca.sqrt(1 + x[5:] * x[5:])
    tape = Tape.from_casadi(ca.Function("f", [x], [ca.vertcat(early, late[::-1] * ca.sum1(late))]))
    lowering.plan_with_columns.cache_clear()
    cut = lowering.plan_with_columns(tape)
    assert MOST_STORES - lowering.CHUNK <= len(cut.direct) <= MOST_STORES
    array = samples(tape, SAMPLES)[0]
    expected = tape.evaluate(array)[0]
    CompiledFunction(tape, lanes=lanes)(array, out=array)
    lowering.plan_with_columns.cache_clear()
    np.testing.assert_allclose(array, expected, rtol=len(array[0]) * DIGITS, atol=0)


@pytest.mark.parametrize("lanes", LANES)
def test_the_code_does_not_grow_with_the_results(lanes):
    """A result more costs an entry of a table, not cutting."""

    def lines(size: int) -> int:
        x = ca.SX.sym("x")
        tape = Tape.from_casadi(ca.Function("eye", [x], [ca.densify(x * ca.SX.eye(size))]))
        return kernel.module(tape, lanes).count("\n")

    assert lines(64) == lines(96) < 500


@pytest.mark.parametrize("lanes", LANES)
def test_code_without_optimization_gives_the_same_numbers(tape, lanes, monkeypatch):
    """What very long tapes get."""
    efforts = []
    machine = jit._target_machine
    monkeypatch.setattr(jit, "MOST_OPTIMISED", 10)
    monkeypatch.setattr(jit, "_target_machine", lambda *e: efforts.append(e) or machine(*e))
    monkeypatch.setenv("AXODE_CACHE", "off")
    arrays = samples(tape, SAMPLES)
    for got, right in zip(
        CompiledFunction(tape, lanes=lanes)(*arrays), tape.evaluate(*arrays), strict=True
    ):
        np.testing.assert_allclose(got, right, rtol=0, atol=SIZE * DIGITS)
    assert (0,) in efforts
