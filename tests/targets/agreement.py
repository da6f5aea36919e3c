"""How targets are compared: the interpreter, samples, and the ulp budget."""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Port, Tape

# Different roundings of the same sums; the largest intermediate term sets the scale.
ULP_OF_LARGEST_TERM = 16

# Samples a function: many where rounding accumulates, fewer where every result is short.
MANY = {"arm": 20_000, "solve": 20_000, "planar": 4_000, "every_operation": 4_000}


def samples(tape: Tape, count: int, seed: int = 0) -> list[np.ndarray]:
    """Normal random inputs of a tape, one batch axis."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(count, *port.shape)) for port in tape.inputs]


def interpreter(function: ca.Function, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """CasADi's own evaluation of a batch, in our layout."""
    count = len(arrays[0])
    mapped = function.map(count)
    columns = []
    for k, array in enumerate(arrays):
        rows, width = function.size_in(k)
        columns.append(array.reshape(count, rows, width).transpose(1, 0, 2).reshape(rows, -1))
    results = mapped.call([ca.DM(c) for c in columns])
    outputs = []
    for k, result in enumerate(results):
        rows, width = function.size_out(k)
        full = np.array(result.full()).reshape(rows, count, width).transpose(1, 0, 2)
        shape = (rows, width) if width > 1 else (() if rows == 1 else (rows,))
        outputs.append(full.reshape(count, *shape))
    return outputs


def largest_terms(tape: Tape, arrays: list[np.ndarray]) -> np.ndarray:
    """Largest sum or product of each sample: what rounding is relative to."""
    sums = np.flatnonzero(np.isin(tape.kinds, (Kind.ADD, Kind.SUB, Kind.MUL)))
    probe = Tape(
        tape.name,
        tape.inputs,
        (Port("terms", (len(sums),)),),
        tape.kinds.copy(),
        tape.operands.copy(),
        tape.constants.copy(),
        sums.astype(np.int32),
    )
    blocks = range(0, len(arrays[0]), 2000)
    terms = (probe.evaluate(*(a[k : k + 2000] for a in arrays))[0] for k in blocks)
    return np.concatenate([np.max(np.abs(t), axis=-1) for t in terms])


def assert_agree(got, expected, tape: Tape, what: str, scale: float | np.ndarray = 1.0) -> None:
    """Equal up to the ulp budget of the largest term, given as a number or one a sample."""
    for port, a, b in zip(tape.outputs, got, expected, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=f"{what}.{port.name}")
        finite = np.isfinite(b)
        np.testing.assert_array_equal(a[~finite], b[~finite], err_msg=f"{what}.{port.name}")
        terms = np.asarray(scale, dtype=float)
        terms = terms.reshape(terms.shape + (1,) * (b.ndim - terms.ndim))
        largest = np.maximum(np.abs(b), terms)[finite]
        error = np.abs(a[finite] - b[finite]) / np.spacing(largest)
        worst = float(np.max(error, initial=0.0))
        assert worst <= ULP_OF_LARGEST_TERM, f"{what}.{port.name} differs by {worst:.1f} ulp"
