"""Tapes in multiprecision: derivatives by differences that are exact to far more than a double."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath as mp
import numpy as np

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape

DIGITS = 70
STEP = mp.mpf(10) ** -20  # of central differences: their error is 1e-40


def _remainder(x, y):
    n = mp.nint(x / y)
    return x - n * y


MEANING = {
    Kind.ADD: lambda x, y: x + y,
    Kind.SUB: lambda x, y: x - y,
    Kind.MUL: lambda x, y: x * y,
    Kind.DIV: lambda x, y: x / y if y else mp.nan,
    Kind.NEG: lambda x: -x,
    Kind.SQRT: mp.sqrt,
    Kind.SIN: mp.sin,
    Kind.COS: mp.cos,
    Kind.TAN: mp.tan,
    Kind.ASIN: mp.asin,
    Kind.ACOS: mp.acos,
    Kind.ATAN: mp.atan,
    Kind.ATAN2: mp.atan2,
    Kind.EXP: mp.exp,
    Kind.EXPM1: mp.expm1,
    Kind.LOG: mp.log,
    Kind.LOG1P: mp.log1p,
    Kind.POW: mp.power,
    Kind.SINH: mp.sinh,
    Kind.COSH: mp.cosh,
    Kind.TANH: mp.tanh,
    Kind.ASINH: mp.asinh,
    Kind.ACOSH: mp.acosh,
    Kind.ATANH: mp.atanh,
    Kind.ERF: mp.erf,
    Kind.HYPOT: mp.hypot,
    Kind.FLOOR: mp.floor,
    Kind.CEIL: mp.ceil,
    Kind.FMOD: lambda x, y: x - y * (mp.floor(x / y) if x / y > 0 else mp.ceil(x / y)),
    Kind.REMAINDER: _remainder,
    Kind.FABS: abs,
    Kind.SIGN: mp.sign,
    Kind.COPYSIGN: lambda x, y: abs(x) * (1 if y >= 0 else -1),
    Kind.FMIN: min,
    Kind.FMAX: max,
    Kind.LT: lambda x, y: mp.mpf(x < y),
    Kind.LE: lambda x, y: mp.mpf(x <= y),
    Kind.EQ: lambda x, y: mp.mpf(x == y),
    Kind.NE: lambda x, y: mp.mpf(x != y),
    Kind.NOT: lambda x: mp.mpf(x == 0),
    Kind.AND: lambda x, y: mp.mpf(x != 0 and y != 0),
    Kind.OR: lambda x, y: mp.mpf(x != 0 or y != 0),
    Kind.SELECT: lambda c, x, y: x if c != 0 else y,
}


def evaluate(tape: Tape, arrays: Sequence[Sequence]) -> list:
    """Results of a tape, element by element."""
    flat = [list(np.ravel(np.asarray(a, dtype=object))) for a in arrays]
    with mp.workdps(DIGITS):
        return tape.fold(
            lambda argument, element: mp.mpf(flat[argument][element]),
            mp.mpf,
            lambda kind, *operands: MEANING[kind](*operands),
        )


def change(tape: Tape, arrays: Sequence[Sequence], directions: Sequence[Sequence]) -> np.ndarray:
    """Derivative of the results along a direction of all arguments, as doubles."""
    with mp.workdps(DIGITS):
        ahead, back = (
            evaluate(
                tape,
                [
                    [mp.mpf(x) + sign * STEP * mp.mpf(d) for x, d in zip(a, v, strict=True)]
                    for a, v in zip(arrays, directions, strict=True)
                ],
            )
            for sign in (1, -1)
        )
        pairs = zip(ahead, back, strict=True)
        return np.array([float((a - b) / (2 * STEP)) for a, b in pairs])
