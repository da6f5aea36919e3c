"""Tapes: what the builder simplifies, what is refused, and the byte form."""

from __future__ import annotations

import hashlib

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Port, Tape, TapeFileError, UnsupportedOperation
from axode.errors import AxodeError
from tests.targets import functions
from tests.targets.agreement import assert_agree, interpreter, samples

EXAMPLES = {
    "every_operation": functions.every_operation,
    "planar": lambda: functions.planar_chain(3),
    "arm": functions.spatial_arm,
    "solve": functions.factored_solve,
}


def tape_of(expression, *symbols) -> Tape:
    return Tape.from_casadi(ca.Function("f", list(symbols), [expression]))


@pytest.mark.parametrize("name", EXAMPLES)
def test_tape_evaluates_like_casadi(name):
    function = EXAMPLES[name]()
    tape = Tape.from_casadi(function)
    arrays = samples(tape, 200)
    assert_agree(tape.evaluate(*arrays), interpreter(function, arrays), tape, name)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(functions.random_function())
def test_random_tapes_evaluate_like_casadi(function):
    tape = Tape.from_casadi(function)
    arrays = samples(tape, 20)
    assert_agree(tape.evaluate(*arrays), interpreter(function, arrays), tape, "random")
    again = Tape.from_bytes(tape.to_bytes())
    assert again == tape and again.digest == tape.digest


@settings(max_examples=150, deadline=None)
@given(functions.random_function(whole=True))
def test_random_tapes_of_integers_are_exact(function):
    tape = Tape.from_casadi(function)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 10, (20, *port.shape)).astype(float) for port in tape.inputs]
    for got, expected in zip(tape.evaluate(*arrays), interpreter(function, arrays), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_common_subexpressions_appear_once():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    tape = tape_of(ca.vertcat(ca.sin(x * y) + 1, ca.sin(y * x) + 2), x, y)
    assert tape.operations == {"add": 2, "mul": 1, "sin": 1}


@pytest.mark.parametrize(
    ("build", "operations"),
    [
        (lambda x, y: x + (-y), {"sub": 1}),
        (lambda x, y: (-x) * (-y), {"mul": 1}),
        (lambda x, y: (-x) * y + ca.sin(x * y), {"mul": 1, "sin": 1, "sub": 1}),
        (lambda x, y: 3 - (-(x * y)), {"mul": 1, "add": 1}),
        (lambda x, y: ca.cos(-x) * y, {"mul": 1, "cos": 1}),
        (lambda x, y: ca.if_else(x < y, x, y), {"lt": 1, "select": 1}),
        (lambda x, y: (x / 4) * y, {"mul": 2}),
        (lambda x, y: (2 * (x * y)) * 0.3, {"mul": 2}),
        (lambda x, y: 3 * (-x) + y, {"mul": 1, "sub": 1}),
        (lambda x, y: x**4 + y, {"mul": 2, "add": 1}),
        (lambda x, y: x + y + (y + x), {"add": 1, "mul": 1}),
        (lambda x, y: ca.sin(ca.SX(1)) * x * y, {"mul": 2}),
    ],
)
def test_exact_algebra(build, operations):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    tape = tape_of(build(x, y), x, y)
    assert tape.operations == operations
    assert tape.n_operations == sum(operations.values())


def test_dead_code_and_unused_inputs_vanish():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    z = ca.SX.sym("z")
    ca_function = ca.Function("f", [x, y, z], [x - x * y, ca.sin(z)])
    only_first = ca.Function("g", [x, y, z], [ca_function(x, y, z)[0]])
    tape = Tape.from_casadi(only_first)
    assert tape.operations == {"sub": 1, "mul": 1}
    assert [p.name for p in tape.inputs] == only_first.name_in()


def test_outputs_are_dense_and_in_c_order():
    x = ca.SX.sym("x", 2, 3)
    lower = ca.SX(ca.Sparsity.lower(2), ca.vertcat(x[0, 1], x[1, 0], x[1, 2]))
    function = ca.Function("f", [x], [lower, ca.sum1(ca.vec(x)), x[0, :], x.T], ["x"], list("abcd"))
    tape = Tape.from_casadi(function)
    assert tape.inputs == (Port("x", (2, 3)),)
    assert [p.shape for p in tape.outputs] == [(2, 2), (), (1, 3), (3, 2)]
    value = np.arange(6.0).reshape(2, 3)
    a, b, c, d = tape.evaluate(value)
    assert a.tolist() == [[1.0, 0.0], [3.0, 5.0]]
    assert b == 15 and c.tolist() == [[0.0, 1.0, 2.0]]
    np.testing.assert_array_equal(d, value.T)


def test_sparse_inputs_read_the_right_elements():
    x = ca.SX.sym("x", ca.Sparsity.lower(2))
    tape = Tape.from_casadi(ca.Function("f", [x], [ca.vertcat(*x.nonzeros())]))
    assert tape.evaluate([[1.0, 9.0], [2.0, 3.0]])[0].tolist() == [1.0, 2.0, 3.0]


def test_every_scalar_opcode_is_compiled_or_refused_by_name():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    refused = set()
    for name in sorted(n for n in dir(ca) if n.startswith("OP_")):
        code = getattr(ca, name)
        try:
            function = ca.Function("f", [x, y], [ca.SX.binary(code, x, y)])
            function(0.5, 0.25)
        except Exception:  # CasADi itself cannot make such an SX expression
            continue
        try:
            Tape.from_casadi(function)
        except UnsupportedOperation as error:
            assert name[3:].lower() in str(error) and "x" in str(error)
            refused.add(name)
    assert refused == {"OP_ERFINV", "OP_PRINTME"}


def test_refusals_name_the_cause():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    free = ca.Function("f", [x], [x * y], {"allow_free": True})
    with pytest.raises(UnsupportedOperation, match="'f' depends on y, not among its inputs"):
        Tape.from_casadi(free)
    m = ca.MX.sym("m")
    with pytest.raises(UnsupportedOperation, match=r"expand\(\)"):
        Tape.from_casadi(ca.Function("f", [m], [ca.sin(m)]))
    inner = ca.Function("inner", [x], [ca.sin(x)], {"never_inline": True})
    if not ca.CasadiMeta.version().startswith("3.6"):  # which puts functions in their calls' place
        with pytest.raises(UnsupportedOperation, match=r"uses 'call'[\s\S]*inner"):
            Tape.from_casadi(ca.Function("f", [x], [2 * inner(x)]))
    assert issubclass(UnsupportedOperation, AxodeError)


@pytest.mark.parametrize("cut", [0, 5, 11, 30, 200, -33, -1])
def test_truncated_tapes_are_refused(cut):
    data = Tape.from_casadi(functions.planar_chain(2)).to_bytes()
    with pytest.raises(TapeFileError):
        Tape.from_bytes(data[:cut])


def test_changed_tapes_are_refused():
    data = Tape.from_casadi(functions.planar_chain(2)).to_bytes()
    rng = np.random.default_rng(1)
    for position in rng.integers(0, len(data), 200):
        changed = bytearray(data)
        changed[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(TapeFileError):
            Tape.from_bytes(bytes(changed))


def test_bad_indices_with_a_good_checksum_are_refused():
    tape = Tape.from_casadi(functions.planar_chain(2))
    for field in ("operands", "results"):
        array = getattr(tape, field).copy()
        array[-1] = 10**6
        broken = Tape(**(tape.__dict__ | {"inputs": tape.inputs, field: array}))
        with pytest.raises(TapeFileError, match="do not exist"):
            Tape.from_bytes(broken.to_bytes())
    other_version = bytearray(tape.to_bytes()[:-32])
    other_version[11] = 9
    with pytest.raises(TapeFileError, match="format 9"):
        Tape.from_bytes(bytes(other_version) + hashlib.sha256(other_version).digest())


def test_tapes_are_immutable_values():
    tape, same = (Tape.from_casadi(functions.planar_chain(2)) for _ in range(2))
    assert tape == same and hash(tape) == hash(same) and tape != 3
    assert tape != Tape.from_casadi(functions.planar_chain(3))
    with pytest.raises(ValueError, match="read-only"):
        tape.kinds[0] = Kind.ADD
    assert "planar(q[2], v[2], a[2], lengths[2])" in repr(tape)
