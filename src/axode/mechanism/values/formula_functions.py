"""The functions that formulas may use: on numbers, and under the names that NumPy has for them."""

from __future__ import annotations

import keyword
import math
import operator
from collections.abc import Callable
from typing import Any


def _smaller(a: float, b: float) -> float:
    return a if a < b or math.isnan(a) else b


def _larger(a: float, b: float) -> float:
    return a if a > b or math.isnan(a) else b


# Functions of formulas on numbers. Other kinds of value have a table with the same names, which
# `evaluate` takes; `clip`, `step` and `min` or `max` of more than two follow from these.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "abs": abs,
    "sign": lambda x: x if x == 0 or math.isnan(x) else math.copysign(1.0, x),
    "floor": lambda x: float(math.floor(x)) if math.isfinite(x) else x,
    "atan2": math.atan2,
    "hypot": math.hypot,
    "min": _smaller,
    "max": _larger,
    "where": lambda condition, a, b: a if condition else b,
    "and": lambda a, b: float(bool(a and b)),
    "or": lambda a, b: float(bool(a or b)),
    "not": lambda a: float(not a),
}
NAMES = (*(name for name in FUNCTIONS if not keyword.iskeyword(name)), "step", "clip")
_ARGUMENTS = {"atan2": 2, "hypot": 2, "min": 2, "max": 2, "where": 3, "clip": 3}  # others take one
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
CONDITIONS = (*COMPARISONS, "and", "or", "not")
# NumPy's names of them; of several the last is what acts on arrays
UFUNCS = {name: name for name in ("sin", "cos", "tan", "sqrt", "exp", "log")}
UFUNCS |= {name: name for name in ("sinh", "cosh", "tanh", "sign", "floor", "hypot")}
UFUNCS |= {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "absolute": "abs",
    "fabs": "abs",
    "fmin": "min",
    "minimum": "min",
    "fmax": "max",
    "maximum": "max",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "remainder": "%",
    "power": "**",
    "float_power": "**",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "bitwise_and": "and",
    "logical_and": "and",
    "bitwise_or": "or",
    "logical_or": "or",
    "invert": "not",
    "logical_not": "not",
}


def takes(name: str, count: int) -> bool:
    """Return whether a function takes this number of arguments."""
    need = _ARGUMENTS.get(name, 1)
    return count >= need if name in ("min", "max") else count == need
