"""Derivatives of tapes, and linear systems inside programs."""

import numpy as np
import pytest

import axode as ax
from axode.codegen.tape.derivatives import forward_tape, jacobian_tape, reads
from axode.codegen.tape.formulas import formula_tape
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.program import (
    Evaluate,
    FactorMatrix,
    JacobianColumns,
    LargestElement,
    MaskedCopy,
    Program,
    Solve,
    WeightedSum,
    slices,
    stride,
)
from axode.codegen.targets.cpu import CompiledFunction
from axode.codegen.targets.cpu_rollout import Rollout
from axode.model.model_parts import function_tape
from complex_step import derivatives_along

STEP, DIFFERENCES = 1e-6, 1e-8  # of central differences, and what they are good for
EXACT = 1e-12  # relative, against complex steps
SOLVED = 1e-9  # relative, of systems whose condition numbers are up to 1e4
OPERATIONS = [kind for kind in Kind if kind not in LEAVES]


@pytest.mark.parametrize("kind", OPERATIONS, ids=[kind.label for kind in OPERATIONS])
def test_every_operation(kind: Kind):
    n, rng = ARITY[kind], np.random.default_rng(int(kind))
    tape = formula_tape("f", {"z": n}, lambda z: {"y": [z[0]._apply(kind, *z)]})
    along = forward_tape(tape, {"z": ("v", 0)}, {"v": n})
    for _ in range(5):
        z = rng.uniform(0.2, 0.8, n) + (1.5 if kind == Kind.ACOSH else 0.0)
        v = rng.normal(size=n)
        ahead, back = (tape.evaluate(z + sign * STEP * v)[0] for sign in (1, -1))
        assert along.evaluate(z, v)[0] == pytest.approx(
            (ahead - back) / (2 * STEP), abs=DIFFERENCES
        )


def test_lengths_at_zero_have_no_slope():
    """sqrt(x x + y y) at zero is a corner: its derivative is finite."""
    for make in (
        lambda z: (z[0] * z[0] + z[1] * z[1]).sqrt(),
        lambda z: z[0]._apply(Kind.HYPOT, *z),
    ):
        tape = formula_tape("f", {"z": 2}, lambda z, make=make: {"y": [make(z)]})
        along = forward_tape(tape, {"z": ("v", 0)}, {"v": 2})
        assert along.evaluate([0.0, 0.0], [1.0, 2.0])[0] == 0.0


def test_arguments_that_stay_and_arguments_that_are_not_read():
    tape = formula_tape("f", {"a": 1, "b": 1, "c": 1}, lambda a, b, c: {"y": [a[0] * b[0]]})
    assert reads(tape, "a") and reads(tape, "b") and not reads(tape, "c")
    assert not reads(tape, "t")
    along = forward_tape(tape, {"b": ("v", 1)}, {"v": 2})
    assert along.evaluate([3.0], [5.0], [7.0], [11.0, 13.0])[0] == 3.0 * 13.0


@pytest.mark.parametrize("name", ["four_bar", "rolling_disk", "mecanum_rover"])
def test_functions_of_models_against_complex_steps(name: str):
    """Loops, quaternions, wheels; matrices column by column, and row by row in reverse."""
    model, rng = ax.gallery.build(name).derive().compile(), np.random.default_rng(3)
    known = {"q": model.home + 0.1 * rng.normal(size=len(model.coordinates))}
    known |= {
        "nu": rng.normal(size=len(model.independent)),
        "u": rng.normal(size=len(model.inputs)),
    }
    known["p"] = np.array(list(model.parameters.values()))
    for function, by in (
        ("state_rate", "q"),
        ("state_rate", "nu"),
        ("energy", "q"),
        ("poses", "q"),
    ):
        tape, size = function_tape(model, function), known[by].size
        arrays = [known[port.name] for port in tape.inputs]
        wanted = derivatives_along(tape, known, {by: np.eye(size)})
        along = CompiledFunction(forward_tape(tape, {by: ("v", 0)}, {"v": size}))
        columns = np.stack([along(*arrays, v).ravel() for v in np.eye(size)], axis=-1)
        matrix = CompiledFunction(jacobian_tape(tape, by))(*arrays)
        assert matrix.shape == (*tape.outputs[0].shape, size)
        for found in (columns, matrix.reshape(wanted.shape)):
            assert np.abs(found - wanted).max() < EXACT * max(1.0, np.abs(wanted).max())


def linear_program(n: int, x: int, pair: bool, eliminated: int = 0) -> Program:
    """f_i = sum_j c_ij z_j^2 / 2: its Jacobian, and a solution of scale - J."""
    columns = x + eliminated
    order = (2 if pair else 1) * (n + eliminated)
    f = formula_tape(
        "f",
        {"z": columns, "c": n * columns},
        lambda z, c: {
            "f": [
                sum((0.5 * c[i * columns + j] * z[j] * z[j] for j in range(columns)), 0.0 * z[0])
                for i in range(n)
            ]
        },
    )
    along = forward_tape(f, {"z": ("d", 0)}, {"d": columns})
    copy = formula_tape("copy", {"b": order}, lambda b: {"b": list(b)})
    system = FactorMatrix("J", "scale", "M", "work", n, x, pair, eliminated)
    places = stride(n + eliminated)
    return Program(
        "linear",
        state={"b": order},
        given={"z": columns, "c": n * columns, "scale": 2 if pair else 1},
        tables={},
        operations=(
            JacobianColumns((Evaluate(along, ("z", "c", "d", "df")),), "d", "df", "J", places),
            system,
            Evaluate(copy, ("b", "y")),
            Solve(system, "y"),
            Evaluate(copy, ("y", "b")),
        ),
    )


@pytest.mark.parametrize("runs", [1, 19])
@pytest.mark.parametrize(
    ("n", "x", "pair"),
    [(1, 1, False), (5, 3, False), (5, 3, True), (12, 10, False), (11, 9, True), (34, 32, False)],
)
def test_systems_against_numpy(n: int, x: int, pair: bool, runs: int):
    """Every run has its own matrix and order of rows; a complex scale is two real ones."""
    rng = np.random.default_rng(n)
    z, c = rng.normal(size=(runs, x)), rng.normal(size=(runs, n * x))
    c[0, 0] = 0.0  # a pivot that has to be exchanged
    scale = rng.normal(size=(runs, 2 if pair else 1))
    scale[0, 0] = 1e-3
    b = rng.normal(size=(runs, 2 * n if pair else n))
    buffers = {"b": b.copy(), "z": z, "c": c, "scale": scale}
    Rollout(linear_program(n, x, pair))(buffers, {}, budget=1)
    J = np.zeros((runs, n, n))
    J[:, :, :x] = c.reshape(runs, n, x) * z[:, np.newaxis, :]
    number = scale[:, 0] + 1j * scale[:, 1] if pair else scale[:, 0]
    M = number[:, np.newaxis, np.newaxis] * np.eye(n) - J
    right = b[:, :n] + 1j * b[:, n:] if pair else b
    wanted = np.linalg.solve(M, right[..., np.newaxis])[..., 0]
    found = buffers["b"][:, :n] + 1j * buffers["b"][:, n:] if pair else buffers["b"]
    sizes = np.abs(wanted).max(axis=1, keepdims=True)
    assert (np.abs(found - wanted) < SOLVED * sizes).all()


@pytest.mark.parametrize("runs", [1, 19])
@pytest.mark.parametrize(
    ("n", "x", "eliminated", "pair"),
    [(2, 2, 1, False), (5, 3, 3, True), (14, 11, 9, False), (14, 11, 9, True)],
)
def test_unknowns_eliminated_beforehand(n: int, x: int, eliminated: int, pair: bool, runs: int):
    """s z_k = r_k + z_j for the last unknowns, each after one of the first."""
    rng = np.random.default_rng(n + pair)
    columns, whole = x + eliminated, n + eliminated
    z, c = rng.normal(size=(runs, columns)), rng.normal(size=(runs, n * columns))
    scale = rng.normal(size=(runs, 2 if pair else 1))
    number = scale[:, :1] + 1j * scale[:, 1:] if pair else scale
    M = number[:, :, np.newaxis] * np.eye(whole)
    J = c.reshape(runs, n, columns) * z[:, np.newaxis, :]
    M[:, :n, :x] -= J[..., :x]
    M[:, :n, n:] -= J[..., x:]
    M[:, n:, :eliminated] -= np.eye(eliminated)
    right = rng.normal(size=(runs, whole)) + (1j * rng.normal(size=(runs, whole)) if pair else 0.0)
    wanted = np.linalg.solve(M, right[..., np.newaxis])[:, :n, 0]
    right[:, n:] /= number
    b = np.hstack([right.real, right.imag]) if pair else right
    buffers = {"b": np.ascontiguousarray(b), "z": z, "c": c, "scale": scale}
    Rollout(linear_program(n, x, pair, eliminated))(buffers, {}, budget=1)
    found = buffers["b"][:, :n] + (1j * buffers["b"][:, whole : whole + n] if pair else 0.0)
    sizes = np.abs(wanted).max(axis=1, keepdims=True)
    assert (np.abs(found - wanted) < SOLVED * sizes).all()


def test_a_singular_system_gives_no_numbers():
    """What is not finite is noticed by the steps."""
    buffers = {
        "b": np.ones((1, 2)),
        "z": np.ones((1, 2)),
        "c": np.zeros((1, 4)),
        "scale": np.zeros((1, 1)),
    }
    Rollout(linear_program(2, 2, False))(buffers, {}, budget=1)
    assert not np.isfinite(buffers["b"]).all()


@pytest.mark.parametrize("runs", [1, 5])
@pytest.mark.parametrize("size", [1, 8, 21])
def test_sums_largest_numbers_and_what_is_kept(runs: int, size: int):
    rng = np.random.default_rng(size)
    program = Program(
        "sums",
        state={"total": size + 1, "size": 1, "kept": size},
        given={"a": size, "b": size + 2, "weights": 3, "flag": 1},
        tables={},
        operations=(
            WeightedSum(("weights", 1), (("a", 0), ("b", 2)), ("total", 1), size),
            LargestElement((("a", 0), ("b", 2)), "a", "size", size),
            MaskedCopy("flag", "a", "kept"),
        ),
    )
    a, b = rng.normal(size=(runs, size)), rng.normal(size=(runs, size + 2))
    weights, flag = rng.normal(size=(runs, 3)), np.arange(runs)[:, np.newaxis] % 2 * 1.0
    buffers = {
        "total": np.zeros((runs, size + 1)),
        "size": np.zeros((runs, 1)),
        "kept": np.full((runs, size), -7.0),
        "a": a,
        "b": b,
        "weights": weights,
        "flag": flag,
    }
    if runs > 1:
        b[2, -1] = np.nan
    Rollout(program)(buffers, {}, budget=1)
    total = weights[:, 1:2] * a + weights[:, 2:] * b[:, 2:]
    np.testing.assert_allclose(buffers["total"][:, 1:], total, rtol=1e-14)
    largest = np.maximum(np.abs(a) * a, np.abs(b[:, 2:]) * a).max(axis=1)
    np.testing.assert_allclose(buffers["size"][:, 0], np.maximum(largest, 0.0), rtol=1e-14)
    assert np.array_equal(buffers["kept"], np.where(flag, a, -7.0))
    assert slices("a", "b") == (("a", 0), ("b", 0))
