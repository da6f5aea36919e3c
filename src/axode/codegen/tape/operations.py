"""The scalar operations a tape is made of, and what each one means.

Every target implements exactly this list. The NumPy functions here are the
definition: targets are tested against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


class Kind(IntEnum):
    """Kind of one tape instruction.

    The numbers are private to a process: files carry the names.
    """

    INPUT = 0
    CONSTANT = 1
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    NEG = 6
    SQRT = 7
    SIN = 8
    COS = 9
    TAN = 10
    ASIN = 11
    ACOS = 12
    ATAN = 13
    ATAN2 = 14
    EXP = 15
    EXPM1 = 16
    LOG = 17
    LOG1P = 18
    POW = 19
    SINH = 20
    COSH = 21
    TANH = 22
    ASINH = 23
    ACOSH = 24
    ATANH = 25
    ERF = 26
    HYPOT = 27
    FLOOR = 28
    CEIL = 29
    FMOD = 30
    REMAINDER = 31
    FABS = 32
    SIGN = 33
    COPYSIGN = 34
    FMIN = 35
    FMAX = 36
    LT = 37
    LE = 38
    EQ = 39
    NE = 40
    NOT = 41
    AND = 42
    OR = 43
    SELECT = 44

    @property
    def label(self) -> str:
        """Lower-case name, used in files and in operation counts."""
        return self.name.lower()


LEAVES = (Kind.INPUT, Kind.CONSTANT)

COMMUTATIVE = frozenset(
    (Kind.ADD, Kind.MUL, Kind.HYPOT, Kind.FMIN, Kind.FMAX, Kind.EQ, Kind.NE, Kind.AND, Kind.OR)
)

# Results that are exactly 0.0 or 1.0; targets may keep them as bits.
LOGICAL = frozenset((Kind.LT, Kind.LE, Kind.EQ, Kind.NE, Kind.NOT, Kind.AND, Kind.OR))


def _truth(x: Array) -> npt.NDArray[np.bool_]:
    """C's truth: everything but zero, NaN included."""
    return np.not_equal(x, 0.0)


def _choice(condition: Array, x: Array, y: Array) -> Array:
    return np.asarray(np.where(_truth(condition), x, y), dtype=np.float64)


def _as_float(function: Callable[..., npt.NDArray[np.bool_]]) -> Callable[..., Array]:
    return lambda *arguments: np.asarray(function(*arguments), dtype=np.float64)


def _elementwise(function: Callable[..., float], count: int) -> Callable[..., Array]:
    """A ``math`` function over arrays; its domain errors become NaN."""

    def safe(*numbers: float) -> float:
        try:
            return function(*numbers)
        except ValueError:
            return math.nan

    ufunc = np.frompyfunc(safe, count, 1)
    return lambda *arguments: np.asarray(ufunc(*arguments), dtype=np.float64)


# Minimum and maximum let NaN through (C's fmin drops it): a NaN must never vanish.
MEANING: dict[Kind, Callable[..., Array]] = {
    Kind.ADD: np.add,
    Kind.SUB: np.subtract,
    Kind.MUL: np.multiply,
    Kind.DIV: np.divide,
    Kind.NEG: np.negative,
    Kind.SQRT: np.sqrt,
    Kind.SIN: np.sin,
    Kind.COS: np.cos,
    Kind.TAN: np.tan,
    Kind.ASIN: np.arcsin,
    Kind.ACOS: np.arccos,
    Kind.ATAN: np.arctan,
    Kind.ATAN2: np.arctan2,
    Kind.EXP: np.exp,
    Kind.EXPM1: np.expm1,
    Kind.LOG: np.log,
    Kind.LOG1P: np.log1p,
    Kind.POW: np.power,
    Kind.SINH: np.sinh,
    Kind.COSH: np.cosh,
    Kind.TANH: np.tanh,
    Kind.ASINH: np.arcsinh,
    Kind.ACOSH: np.arccosh,
    Kind.ATANH: np.arctanh,
    Kind.ERF: _elementwise(math.erf, 1),
    Kind.HYPOT: np.hypot,
    Kind.FLOOR: np.floor,
    Kind.CEIL: np.ceil,
    Kind.FMOD: np.fmod,
    Kind.REMAINDER: _elementwise(math.remainder, 2),
    Kind.FABS: np.fabs,
    Kind.SIGN: lambda x: np.where(x < 0, -1.0, np.where(x > 0, 1.0, x)),
    Kind.COPYSIGN: np.copysign,
    Kind.FMIN: np.minimum,
    Kind.FMAX: np.maximum,
    Kind.LT: _as_float(np.less),
    Kind.LE: _as_float(np.less_equal),
    Kind.EQ: _as_float(np.equal),
    Kind.NE: _as_float(np.not_equal),
    Kind.NOT: lambda x: np.asarray(np.equal(x, 0.0), dtype=np.float64),
    Kind.AND: lambda x, y: np.asarray(_truth(x) & _truth(y), dtype=np.float64),
    Kind.OR: lambda x, y: np.asarray(_truth(x) | _truth(y), dtype=np.float64),
    Kind.SELECT: _choice,
}

ARITY: dict[Kind, int] = {kind: 1 for kind in MEANING} | {
    kind: 2
    for kind in (
        *(Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.ATAN2, Kind.POW, Kind.HYPOT),
        *(Kind.FMOD, Kind.REMAINDER, Kind.COPYSIGN, Kind.FMIN, Kind.FMAX),
        *(Kind.LT, Kind.LE, Kind.EQ, Kind.NE, Kind.AND, Kind.OR),
    )
}
ARITY[Kind.SELECT] = 3
ARITY[Kind.INPUT] = ARITY[Kind.CONSTANT] = 0
