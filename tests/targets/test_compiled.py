"""Compiled functions: agreement of all targets, shapes, errors, threads, large tapes."""

from __future__ import annotations

import os
import re
import signal
import threading
import warnings
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

from axode.codegen.host import Host
from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.lowering import chunk_plan as lowering
from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape
from axode.codegen.targets import cpu as llvm
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.fastcall import layout_is_known
from axode.errors import InvalidArgument
from tests.targets import accuracy, functions
from tests.targets.agreement import MANY, assert_agree, interpreter, largest_terms, samples
from variants import further

EXAMPLES = {
    "every_operation": functions.every_operation,
    "planar": lambda: functions.planar_chain(3),
    "arm": functions.spatial_arm,
    "solve": functions.factored_solve,
}


def doubled() -> Tape:
    """Two inputs, two outputs, one of them a matrix: enough for every shape rule."""
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p")
    outer = ca.mtimes(x, x.T) * p
    return Tape.from_casadi(ca.Function("f", [x, p], [outer, ca.sum1(x)], ["x", "p"], ["xx", "s"]))


@pytest.fixture(scope="module")
def function() -> CompiledFunction:
    return CompiledFunction(doubled())


@pytest.mark.parametrize("times", [1, further(5)])
@pytest.mark.parametrize("name", EXAMPLES)
def test_all_widths_agree_with_the_interpreter(name, times):
    source = EXAMPLES[name]()
    tape = Tape.from_casadi(source)
    arrays = samples(tape, times * MANY[name])
    expected = interpreter(source, arrays)
    scale = largest_terms(tape, arrays)
    for lanes in (1, 2, 4, 8):
        got = CompiledFunction(tape, lanes=lanes)(*arrays)
        got = got if isinstance(got, tuple) else (got,)
        assert_agree(got, expected, tape, f"{name}, {lanes} lanes", scale)
    few = [e[:2000] for e in expected]
    numpy = tape.evaluate(*(a[:2000] for a in arrays))
    assert_agree(numpy, few, tape, f"{name}, NumPy", scale[:2000])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(functions.random_function(whole=True))
def test_random_functions_of_integers_are_exact(source):
    tape = Tape.from_casadi(source)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 10, (67, *port.shape)).astype(float) for port in tape.inputs]
    expected = interpreter(source, arrays)
    compiled = CompiledFunction(tape)
    for k, result in enumerate(compiled(*arrays)):
        np.testing.assert_array_equal(result, expected[k])
    for k, result in enumerate(compiled(*(a[0] for a in arrays))):
        np.testing.assert_array_equal(result, expected[k][0])


@pytest.mark.parametrize("kind", [Kind.SIN, Kind.EXP, Kind.LOG, Kind.ATAN2, Kind.POW, Kind.ERF])
def test_functions_have_the_same_digits_in_every_width(kind):
    tape = accuracy.single_operation(kind).tape
    arrays = [np.abs(a) for a in samples(tape, 500)]
    first = CompiledFunction(tape, lanes=1)(*arrays)
    for lanes in (2, 4, 8):
        np.testing.assert_array_equal(CompiledFunction(tape, lanes=lanes)(*arrays), first)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 7, 8, 9, 31])
@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_tails_of_every_length(count, lanes):
    tape = doubled()
    arrays = samples(tape, count)
    guard = np.full((count + 2, 3, 3), 7.0)
    sums = np.empty(count)
    CompiledFunction(tape, lanes=lanes)(*arrays, out=(guard[1:-1], sums))
    np.testing.assert_allclose(guard[1:-1], tape.evaluate(*arrays)[0], rtol=1e-15)
    assert (guard[0] == 7).all() and (guard[-1] == 7).all()


def test_batch_axes_broadcast(function):
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(4, 1, 3)), rng.normal(size=(5,))
    outer, total = function(x, p)
    assert outer.shape == (4, 5, 3, 3) and total.shape == (4, 5)
    expected = np.einsum("aij,aik,b->abjk", x, x, p)
    np.testing.assert_allclose(outer, expected, rtol=1e-14)
    outer, total = function(x[:, 0], 2.0)
    np.testing.assert_allclose(outer, 2 * np.einsum("ai,aj->aij", x[:, 0], x[:, 0]), rtol=1e-14)
    assert function(np.empty((0, 3)), 1.0)[0].shape == (0, 3, 3)


def test_single_samples_and_their_types(function):
    outer, total = function(np.array([1.0, 2.0, 3.0]), np.array(2.0))
    assert outer.shape == (3, 3) and isinstance(total, float) and total == 6
    for x in ([1, 2, 3], np.array([1, 2, 3], dtype=np.int8), np.float32([1, 2, 3]), (1, 2, 3)):
        np.testing.assert_array_equal(function(x, 2)[0], outer)
    strided = np.arange(6.0)[::2]
    np.testing.assert_array_equal(function(strided, 1.0)[0], np.outer(strided, strided))
    unaligned = np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype=np.uint8)[1:].view(np.float64)
    np.testing.assert_array_equal(function(unaligned, 1.0)[0], np.outer(*[np.arange(3.0)] * 2))
    swapped = np.arange(3.0).astype(">f8")
    np.testing.assert_array_equal(function(swapped, 1.0)[0], np.outer(*[np.arange(3.0)] * 2))


def test_out_is_filled_and_returned(function):
    x, p = np.arange(3.0), np.array(2.0)
    out = (np.empty((3, 3)), np.empty(()))
    assert function(x, p, out=out) is out and out[1] == 3
    batch = (np.empty((6, 3, 3)), np.empty(6))
    assert function(np.ones((6, 3)), p, out=batch) is batch and (batch[0] == 2).all()
    wrong = (
        (np.empty((3, 3)), np.empty((), dtype=np.float32)),
        (np.empty((3, 3)).T[:, :2], np.empty(())),
        (np.empty((3, 3)),),
        np.empty(()),
    )
    for bad in wrong:
        with pytest.raises(InvalidArgument, match="out"):
            function(x, p, out=bad)
    locked = np.empty((3, 3))
    locked.setflags(write=False)
    with pytest.raises(InvalidArgument, match="'xx' must be a writable"):
        function(x, p, out=(locked, np.empty(())))


@pytest.mark.parametrize("count", [None, 13])
def test_output_may_be_an_input(count):
    x = ca.SX.sym("x", 3)
    turn = ca.Function("turn", [x], [ca.vertcat(x[1], x[2], x[0])])
    compiled = CompiledFunction(Tape.from_casadi(turn))
    array = np.arange(3.0) if count is None else np.arange(3.0 * count).reshape(count, 3)
    expected = np.roll(array, -1, axis=-1)
    np.testing.assert_array_equal(compiled(array, out=array), expected)


@pytest.mark.parametrize("count", [None, 1, 13])
@pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
def test_an_output_may_share_any_memory(count, shift):
    """Written over an input, or a part of one, it is what it would be elsewhere."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    mixed = ca.Function("mixed", [x, y], [ca.vertcat(x[2], x[1] + y[0], x[0] * y[1], x[1])])
    compiled = CompiledFunction(Tape.from_casadi(mixed)).prepare()
    lead = () if count is None else (count,)
    n = count or 1
    memory = np.random.default_rng(0).normal(size=4 * n + 4)
    array = memory[2 : 2 + 3 * n].reshape(*lead, 3)
    out = memory[2 + shift : 2 + shift + 4 * n].reshape(*lead, 4)
    other = np.array([0.5, 2.0])
    expected = compiled(array.copy(), other)
    assert compiled(array, other, out=out) is out
    np.testing.assert_array_equal(out, expected)
    # one sample for all runs, in the memory that they are written to
    whole = np.arange(1.0, 1 + 4 * n).reshape(*lead, 4)
    shared = whole.reshape(-1)[:3]
    others = np.tile(other, (*lead, 1))
    expected = compiled(shared.copy(), others)
    np.testing.assert_array_equal(compiled(shared, others, out=whole), expected)


def test_outputs_must_not_share_memory(function):
    memory = np.empty(9)
    with pytest.raises(InvalidArgument, match="share memory"):
        function.prepare()(np.arange(3.0), 1.0, out=(memory.reshape(3, 3), memory[4:5].reshape(())))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((np.zeros(4), 1.0), r"f: 'x' has shape \(4,\), expected \(..., 3\)\."),
        ((np.zeros((3, 2)), 1.0), r"f: 'x' has shape \(3, 2\)"),
        ((1.0, 1.0), r"f: 'x' has shape \(\), expected \(..., 3\)\."),
        ((np.zeros(3),), r"f takes 2 arrays \(x, p\), got 1\."),
        ((np.zeros(3), 1.0, 2.0), r"f takes 2 arrays \(x, p\), got 3\."),
        (
            (np.zeros((2, 3)), np.zeros(5)),
            r"batch axes do not fit together: 'x' \(2,\), 'p' \(5,\)",
        ),
        ((np.zeros(3) * 1j, 1.0), r"f: 'x' holds complex128, expected real numbers"),
        ((["a", "b", "c"], 1.0), r"f: 'x' holds list, expected real numbers"),
        (([[1.0], [2.0, 3.0]], 1.0), r"f: 'x' holds list"),
        ((None, 1.0), r"f: 'x' holds NoneType"),
    ],
)
def test_mistakes_are_named(function, arrays, message):
    with pytest.raises(InvalidArgument, match=message):
        function(*arrays)


def test_nan_and_infinity_pass_through(function):
    for bad in (np.nan, np.inf):
        x = np.zeros((9, 3))
        x[4, 1] = bad
        outer, total = function(x, 1.0)
        assert not np.isfinite(total[4]) and np.isfinite(np.delete(total, 4)).all()
        assert np.isfinite(outer[3]).all() and not np.isfinite(outer[4, 1, 1])
        assert not np.isfinite(function(x[4], 1.0)[1])


def test_threads_give_the_same_numbers():
    tape = Tape.from_casadi(functions.spatial_arm())
    compiled = CompiledFunction(tape)
    arrays = samples(tape, 10_007)
    one = compiled(*arrays, threads=1)
    for threads in (None, 2, 3, 64):
        np.testing.assert_array_equal(compiled(*arrays, threads=threads), one)


@pytest.mark.slow
def test_two_threads_may_call_one_function():
    tape = Tape.from_casadi(functions.long_function(9_000))
    compiled = CompiledFunction(tape)  # long enough to use a work array
    arrays = samples(tape, 400)[0] * 0.1
    expected = compiled(arrays)
    singles = [compiled(x) for x in arrays[:50]]
    wrong = []

    def work() -> None:
        for _ in range(5):
            batch = compiled(arrays, threads=2)
            wrong.extend(not np.array_equal(a, b) for a, b in zip(batch, expected, strict=True))
            for x, single in zip(arrays, singles, strict=False):
                wrong.append(not np.array_equal(compiled(x)[1], single[1]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wrong) == 4 * 5 * 52 and not any(wrong)


def cut_into(monkeypatch, longest, chunk):
    """Cut tapes shorter than usual, in the IR and in the size of the work array alike."""
    plan = lowering.plan

    def shorter(tape, on_vectors=False, **uncut):
        return plan(tape, **uncut) if uncut else plan(tape, longest, chunk)

    monkeypatch.setattr("axode.codegen.lowering.batch_loop.plan_with_columns", shorter)
    monkeypatch.setattr("axode.codegen.lowering.instructions.plan_with_columns", shorter)
    monkeypatch.setattr("axode.codegen.lowering.instructions.plan", shorter)
    monkeypatch.setenv("AXODE_CACHE", "off")


@pytest.mark.slow
def test_long_tapes_are_cut_without_changing_the_result(monkeypatch):
    tape = Tape.from_casadi(functions.long_function(4000))
    arrays = [samples(tape, 100)[0] * 0.3]
    whole = CompiledFunction(tape)(*arrays)
    scale = largest_terms(tape, arrays)
    for longest, chunk in ((100, 50), (1000, 400)):
        cut_into(monkeypatch, longest, chunk)
        assert kernel.module(tape, 4).count("define internal void @chunk") > 1
        for lanes in (1, 4):
            cut = CompiledFunction(tape, lanes=lanes)(*arrays)
            assert_agree(cut, whole, tape, f"chunks of {chunk}", scale)


def test_functions_are_bounded_in_lines_not_only_in_operations():
    """A sine is one operation and 43 lines: 4000 of them took LLVM a minute as one function."""
    tape = Tape.from_casadi(functions.many_sines(1000))
    for lanes in (1, 4):
        bodies = re.findall(r"define [^{]*\{\n(.*?)\n\}", kernel.module(tape, lanes), re.DOTALL)
        assert max(body.count("\n") for body in bodies) <= 4 * lowering.CHUNK


@pytest.mark.soak
def test_a_very_long_tape_compiles():
    tape = Tape.from_casadi(functions.long_function(30_000))
    arrays = [samples(tape, 8)[0] * 0.3]
    compiled = CompiledFunction(tape, lanes=4)
    scale = largest_terms(tape, arrays)
    assert_agree(compiled(*arrays), tape.evaluate(*arrays), tape, "long", scale)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows starts processes from nothing")
def test_a_child_process_has_its_own_threads():
    tape = doubled()
    compiled = CompiledFunction(tape)
    arrays = samples(tape, 1000)
    compiled(*arrays, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons: fork with threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        compiled(*(np.tile(a, (20,) + (1,) * (a.ndim - 1)) for a in arrays), threads=2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_comparisons_survive_being_cut(monkeypatch):
    source = functions.every_operation()
    tape = Tape.from_casadi(source)
    cut_into(monkeypatch, 4, 4)
    arrays = samples(tape, 50)
    compiled = CompiledFunction(tape, lanes=4)
    scale = largest_terms(tape, arrays)
    assert_agree([compiled(*arrays)], tape.evaluate(*arrays), tape, "chunks of 4", scale)


def test_fast_path_is_taken(function):
    assert layout_is_known()
    x, p = np.arange(3.0), np.array(1.0)
    function(x, p)
    results = np.empty((3, 3)), np.empty(())
    assert function._fast(x, p, *results) == 1
    assert function._fast(x.astype(np.float32), p, *results) == 0
    assert function._fast(x[:2], p, *results) == 0
    assert function._fast(x, 1.0, *results) == 0
    assert function._fast(x, p) == 0 and function._fast() == 0


def test_fast_path_takes_small_batches(function):
    function.prepare()
    rng = np.random.default_rng(0)
    x, p = rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5))
    expected = doubled().evaluate(x, p)
    results = np.empty((2, 5, 3, 3)), np.empty((2, 5))
    assert function._fast(x, p, *results) == 1
    for got, value in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-14)
    assert function._fast(x, np.array(2.0), *results) == 1
    np.testing.assert_allclose(results[0], doubled().evaluate(x, 2.0)[0], rtol=1e-14)
    refused = [
        (x.reshape(10, 3), p, *results),  # other batch axes
        (x, p.reshape(5, 2), *results),
        (x, p, results[0], np.empty(10)),
        (x, p, results[0], np.empty(())),  # an output is never shared by samples
        (x, p, np.empty((10, 3, 3)), results[1]),
        (x, p, np.empty(3), results[1]),  # too few axes
    ]
    assert [function._fast(*arguments) for arguments in refused] == [0] * len(refused)
    many = np.empty((10**6, 3))
    large = np.empty((10**6, 3, 3)), np.empty(10**6)
    assert function._fast(many, p[0, :1].reshape(()), *large) == 0  # left to threads


def test_code_for_arm_reaches_tables_wherever_the_linker_puts_them(monkeypatch):
    """Tables more than 4 GiB away ended the process."""
    asked = {}
    target = SimpleNamespace(create_target_machine=lambda **given: asked.update(given))
    monkeypatch.setattr(jit.llvm.Target, "from_triple", lambda triple: target)
    monkeypatch.setattr(jit, "host", lambda: Host("aarch64-linux-gnu", "generic", "", 2))
    jit._target_machine.__wrapped__()
    assert (asked["reloc"], asked["codemodel"]) == ("static", "large")


def test_careful_path_serves_when_the_array_layout_is_unknown(monkeypatch):
    monkeypatch.setattr("axode.codegen.targets.fastcall.layout_is_known", lambda: False)
    compiled = CompiledFunction(doubled())
    assert compiled(np.arange(3.0), np.array(1.0))[1] == 3


def test_functions_without_inputs_or_operations():
    x = ca.SX.sym("x", 0)
    constant = ca.Function("c", [], [ca.SX([1, 2])])
    assert CompiledFunction(Tape.from_casadi(constant))().tolist() == [1.0, 2.0]
    empty = ca.Function("e", [x], [ca.SX(0, 1), ca.SX(3)])
    nothing, three = CompiledFunction(Tape.from_casadi(empty))(np.empty(0))
    assert nothing.shape == (0,) and three == 3
    batch = CompiledFunction(Tape.from_casadi(empty))(np.empty((5, 0)))
    assert batch[0].shape == (5, 0) and batch[1].tolist() == [3.0] * 5


def test_report_and_repr(function):
    function.prepare()
    assert set(function.compile_seconds) == {1, function.lanes}
    assert all(0 < s < 5 for s in function.compile_seconds.values())
    assert all(b > 100 for b in function.code_bytes.values())
    assert "Tape f(x[3], p[])" in repr(function)
    with pytest.raises(InvalidArgument, match="lanes is 3"):
        CompiledFunction(doubled(), lanes=3)


def test_small_batches_do_not_start_threads(monkeypatch):
    monkeypatch.setattr(llvm, "pool", lambda: pytest.fail("a thread for ten samples"))
    CompiledFunction(doubled())(np.ones((10, 3)), 1.0)


def test_rows_of_a_wider_array(function):
    """Evenly spaced samples are read and written where they are; others are copied or refused."""
    wide = np.arange(2.0 * 7 * 8).reshape(2, 7, 8)
    x, p = wide[..., 1:4], np.array(2.0)
    expected = function(x.copy(), p)
    for rows in (x, np.broadcast_to(x[0, 0], (2, 7, 3)), x[:, ::-1]):
        np.testing.assert_array_equal(function(rows, p)[0], function(rows.copy(), p)[0])
    results = np.zeros((2, 7, 12))
    out = (results[..., 2:11].reshape(2, 7, 3, 3), np.zeros((2, 14))[:, ::2])
    assert np.shares_memory(out[0], results) and function(x, p, out=out) is out
    np.testing.assert_array_equal(out[0], expected[0])
    assert (results[..., :2] == 0).all() and (results[..., 11] == 0).all()
    np.testing.assert_array_equal(out[1], expected[1])
    for bad in (np.zeros((2, 9, 3, 3))[:, 1:8], np.zeros((2, 7, 3, 4))[..., :3]):
        with pytest.raises(InvalidArgument, match="evenly spaced rows"):
            function(x, p, out=(bad, np.empty((2, 7))))
    square = ca.SX.sym("x", 3)
    squared = CompiledFunction(Tape.from_casadi(ca.Function("square", [square], [square**2])))
    squared(x, out=x)
    np.testing.assert_array_equal(wide[..., 1:4], np.arange(112.0).reshape(2, 7, 8)[..., 1:4] ** 2)
