"""Rounding errors of tapes: what they can be at most, and what they are.

A tape is a straight line: an operation rounds its value by a known part of it, and the derivative
of a result by that value says what the rounding does to the result. The sum over all operations
bounds the error to first order, for any compiler, contracted or not (running error analysis with
adjoints: S. Linnainmaa, "Taylor expansion of the accumulated rounding error", BIT 16, 1976).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.derivatives import FLAT, PARTIALS, SLOPES
from axode.codegen.tape.formulas import Formula, formula_tape
from axode.codegen.tape.operations import ARITY, LEAVES, LOGICAL, MEANING, Array, Kind
from axode.codegen.tape.tape import Tape

# Roundings that a function of a mathematical library may make: two units in the last place.
LIBRARY_ROUNDINGS = 4.0
SWEEP_SIZE = 8192  # adjoints of a value that are computed at a time, results times samples

DTYPES: dict[str, type[np.float64] | type[np.float32]] = {
    "float64": np.float64,
    "float32": np.float32,
}
ROUNDED_ONCE = frozenset((Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.SQRT))
EXACT = LOGICAL | {
    *(Kind.NEG, Kind.FABS, Kind.SIGN, Kind.FLOOR, Kind.CEIL, Kind.FMIN, Kind.FMAX),
    *(Kind.SELECT, Kind.COPYSIGN, Kind.FMOD, Kind.REMAINDER),
}


@dataclass(frozen=True)
class RoundedSamples:
    """Samples of a function, one per row of each array.

    Attributes:
        inputs: Arguments, rounded to the precision.
        results: Results in double precision.
        bounds: What rounding changes in them at most, to first order.
    """

    inputs: tuple[Array, ...]
    results: tuple[Array, ...]
    bounds: tuple[Array, ...]

    def relative(self, errors: Sequence[Array]) -> Array:
        """Largest error of each sample, by the largest entry of the same result."""
        count = len(self.results[0]) if self.results else 0
        worst = np.zeros(count)
        for result, error in zip(self.results, errors, strict=True):
            with np.errstate(all="ignore"):
                known = np.where(np.isfinite(result), np.abs(result), 0.0).reshape(count, -1)
                size = known.max(1, initial=0.0)
                off = np.where(np.isnan(result), 0.0, error).reshape(count, -1).max(1, initial=0.0)
                part = np.where(off == 0.0, 0.0, off / size)
            worst = np.maximum(worst, np.where(np.isnan(part), np.inf, part))
        return worst


def round_numbers(array: npt.ArrayLike, precision: str) -> Array:
    """Nearest numbers of a precision, as doubles."""
    with np.errstate(over="ignore"):
        return np.asarray(array).astype(DTYPES[precision]).astype(np.float64)


def round_constant(value: float, precision: str) -> float:
    """Nearest number of a precision; one that is not zero stays so, as it may be a divisor."""
    rounded = float(round_numbers(value, precision))
    least = float(np.finfo(DTYPES[precision]).tiny)
    return math.copysign(least, value) if value and abs(rounded) < least else rounded


def evaluate_rounded(
    tape: Tape, arrays: Sequence[npt.ArrayLike], precision: str
) -> tuple[Array, ...]:
    """Run a tape in NumPy with every operation in a precision.

    Args:
        tape: What to run.
        arrays: One array per input, any leading batch axes.
        precision: "float64" or "float32".
    """
    dtype = DTYPES[precision]
    values, batch = tape.input_elements(arrays)
    with np.errstate(all="ignore"):
        inputs = [array.astype(dtype) for array in values]
        numbers = tape.fold(
            lambda argument, element: inputs[argument][..., element],
            lambda constant: np.asarray(round_constant(constant, precision)).astype(dtype),
            lambda kind, *operands: np.asarray(MEANING[kind](*operands)).astype(dtype),
        )
    return tape.gather(numbers, batch)


def rounding_bounds(tape: Tape, arrays: Sequence[npt.ArrayLike], precision: str) -> RoundedSamples:
    """Bound to first order what rounding in a precision changes in the results of a tape.

    The bounds hold for correctly rounded operations, fused or not, for functions of the
    mathematical library within two units in the last place and for constants rounded to the
    precision, at inputs that it has. They do not cover comparisons whose outcome depends on
    rounding.

    Args:
        tape: What is computed.
        arrays: One array per input, with one leading axis: the samples.
        precision: "float64" or "float32".
    """
    given = [round_numbers(array, precision) for array in arrays]
    inputs, (count,) = tape.input_elements(given)
    with np.errstate(all="ignore"):
        values = _values(tape, inputs, count)
        local = _local_roundings(tape, values, precision)
        size = max(1, SWEEP_SIZE // max(1, count))
        parts = [
            _sweep(tape, values, local, tape.results[first : first + size].tolist())
            for first in range(0, len(tape.results), size)
        ]
    bounds = np.concatenate(parts) if parts else np.zeros((0, count))
    results = [values[i] for i in tape.results.tolist()]
    bounds = np.where(np.isnan(bounds), np.inf, bounds)
    both = (tape.gather(found, (count,)) for found in (results, list(bounds)))
    return RoundedSamples(tuple(given), *both)


def _values(tape: Tape, inputs: list[Array], count: int) -> list[Array]:
    """Values of all instructions, one row per instruction."""
    values: list[Array] = []
    for code, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if code == Kind.INPUT:
            value = inputs[row[0]][..., row[1]]
        elif code == Kind.CONSTANT:
            value = tape.constants[row[0]]
        else:
            value = MEANING[Kind(code)](*(values[v] for v in row[: ARITY[Kind(code)]]))
        values.append(np.broadcast_to(value, (count,)))
    return values


def _local_roundings(tape: Tape, values: list[Array], precision: str) -> list[Array | None]:
    """Largest rounding of each instruction; None where there is none."""
    limits = np.finfo(DTYPES[precision])
    unit, least = float(limits.eps) / 2, float(limits.tiny)
    made: list[Array | None] = []
    for code, value in zip(tape.kinds.tolist(), values, strict=True):
        kind = Kind(code)
        if kind == Kind.INPUT or kind in EXACT:
            made.append(None)
        elif kind == Kind.CONSTANT:
            error = np.abs(value - round_constant(float(value[0]), precision))
            made.append(error if np.any(error > 0) else None)
        else:
            roundings = 1.0 if kind in ROUNDED_ONCE else LIBRARY_ROUNDINGS
            made.append(roundings * unit * np.abs(value) + least)
    return made


def _sweep(tape: Tape, values: list[Array], local: list[Array | None], results: list[int]) -> Array:
    """Bounds of some results, one row per result: a sweep from the results to the inputs."""
    shape = (len(results), len(values[0]) if values else 0)
    bounds = np.zeros(shape)
    adjoints: dict[int, Array] = {}
    for k, number in enumerate(results):
        adjoints.setdefault(number, np.zeros(shape))[k] = 1.0
    kinds, operands = tape.kinds.tolist(), tape.operands.tolist()
    for number in range(max(results, default=-1), -1, -1):
        adjoint = adjoints.pop(number, None)
        if adjoint is None:
            continue
        rounding = local[number]
        if rounding is not None:
            bounds += _times(np.abs(adjoint), rounding)
        kind = kinds[number]
        if kind in LEAVES:
            continue
        used = operands[number][: ARITY[kind]]
        for operand, slope in zip(used, _slopes(kind, values, used, number), strict=True):
            if slope is None or kinds[operand] == Kind.INPUT:
                continue
            term = _times(adjoint, slope)
            known = adjoints.get(operand)
            adjoints[operand] = term if known is None else known + term
    return bounds


def _times(adjoint: Array, factor: Array | float) -> Array:
    """Multiply so that zero derivatives give zero, also with infinite factors."""
    product = adjoint * factor
    if np.isfinite(product).all():
        return product
    return np.where(adjoint == 0.0, 0.0, product)


def _slopes(
    kind: Kind, values: list[Array], used: list[int], number: int
) -> Sequence[Array | float | None]:
    """Derivatives of an operation by its operands; None where they are zero."""
    if kind in (Kind.ADD, Kind.SUB):
        return 1.0, 1.0 if kind == Kind.ADD else -1.0
    if kind == Kind.MUL:
        return values[used[1]], values[used[0]]
    if kind == Kind.DIV:
        inverse = 1.0 / values[used[1]]
        return inverse, -values[number] * inverse
    if kind in FLAT:
        return (None,) * len(used)
    x = [values[v] for v in used]
    if kind == Kind.SELECT:
        yes = x[0] != 0.0
        return None, yes.astype(float), (~yes).astype(float)
    if kind in (Kind.FMIN, Kind.FMAX):
        first = x[0] <= x[1] if kind == Kind.FMIN else x[0] >= x[1]
        return first.astype(float), (~first).astype(float)
    if kind == Kind.COPYSIGN:
        return np.sign(x[0]) * np.sign(values[number]), None
    if kind in (Kind.FMOD, Kind.REMAINDER):
        return 1.0, (values[number] - x[0]) / x[1]
    return [
        slope[..., 0]
        for slope in _slope_tape(Kind(kind)).evaluate(
            *(v[..., np.newaxis] for v in (*x, values[number]))
        )
    ]


@cache
def _slope_tape(kind: Kind) -> Tape:
    """Derivatives of an operation as a tape of its operands and its value."""
    rules: tuple[Callable[..., Formula | float], ...]
    rules = (SLOPES[kind],) if kind in SLOPES else PARTIALS[kind]
    names = [*"xyz"[: ARITY[kind]], "r"]

    def write(**given: list[Formula]) -> dict[str, list[Formula]]:
        x = [given[name][0] for name in names]
        slopes = [rule(*x) for rule in rules]
        return {
            f"slope{k}": [s if isinstance(s, Formula) else x[0].like(s)]
            for k, s in enumerate(slopes)
        }

    return formula_tape(f"slopes_of_{kind.label}", dict.fromkeys(names, 1), write)
