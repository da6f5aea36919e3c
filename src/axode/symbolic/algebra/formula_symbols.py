"""Formulas of a description in CasADi's symbols, and conditions as traced functions write them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import casadi as ca

from axode.mechanism.values.expressions import Scalar, evaluate

SYMBOLIC: dict[str, Callable[..., Any]] = {
    "sin": ca.sin,
    "cos": ca.cos,
    "tan": ca.tan,
    "asin": ca.asin,
    "acos": ca.acos,
    "atan": ca.atan,
    "sqrt": ca.sqrt,
    "exp": ca.exp,
    "log": ca.log,
    "sinh": ca.sinh,
    "cosh": ca.cosh,
    "tanh": ca.tanh,
    "abs": ca.fabs,
    "sign": ca.sign,
    "floor": ca.floor,
    "atan2": ca.atan2,
    "hypot": ca.hypot,
    "min": ca.fmin,
    "max": ca.fmax,
    "where": ca.if_else,
    "and": ca.logic_and,
    "or": ca.logic_or,
    "not": ca.logic_not,
}


def symbolic_value(scalar: Scalar, values: Mapping[str, Any]) -> Any:
    """Return a formula of symbols, or the number it is."""
    return evaluate(scalar, values, SYMBOLIC)


@contextmanager
def numpy_on_symbols() -> Iterator[None]:
    """Let a function call NumPy on symbols without CasADi's FutureWarning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=FutureWarning, message="(?s).*casadi value")
        yield


def _add_operators() -> None:
    """Give CasADi's conditions the operators that NumPy's have: `(s.t > 1) & (s.t < 2)`.

    CasADi knows them as `logic_and`, `logic_or` and `logic_not` only.
    """
    operators: dict[str, Callable[..., Any]] = {
        "__and__": ca.logic_and,
        "__rand__": lambda self, other: ca.logic_and(other, self),
        "__or__": ca.logic_or,
        "__ror__": lambda self, other: ca.logic_or(other, self),
        "__invert__": ca.logic_not,
    }
    for name, operator in operators.items():
        if not any(name in vars(base) for base in ca.SX.__mro__):
            setattr(ca.SX, name, lambda *operands, operator=operator: operator(*operands))


_add_operators()
