"""Formulas of a description in CasADi's symbols, and conditions as traced functions write them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import casadi as ca

from axode.errors import InvalidArgument
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


def right_continuous(x: ca.SX, t: ca.SX) -> ca.SX:
    """Write a function of time so that, where it switches, it is what it is right after that time.

    There, derivatives of `min`, `max` and `abs` would be the mean of both sides, and `t > 0` would
    be false at zero. Slopes show what comes next.
    """
    arguments = ca.symvar(x)
    function = ca.Function("law", arguments, [x])
    work = [ca.SX(0)] * function.sz_w()

    def less(x: ca.SX, y: ca.SX) -> ca.SX:
        """Compare x < y right after the time; differences would be rounded in other ways."""
        falls = ca.jtimes(x - y, t, ca.SX(1)) < 0
        if falls.is_constant() and falls.is_zero():
            return x < y
        return ca.logic_or(x < y, ca.logic_and(falls, x <= y))

    made = ca.SX(0)
    for k in range(function.n_instructions()):
        code, put = function.instruction_id(k), function.instruction_output(k)
        operands = [work[i] for i in function.instruction_input(k)] if code != ca.OP_INPUT else []
        a, b = (*operands, ca.SX(0), ca.SX(0))[:2]
        match code:
            case ca.OP_OUTPUT:
                made = a
                continue
            case ca.OP_INPUT:
                value = arguments[function.instruction_input(k)[0]]
            case ca.OP_CONST:
                value = ca.SX(function.instruction_constant(k))
            case ca.OP_LT:
                value = less(a, b)
            case ca.OP_LE:
                value = ca.logic_not(less(b, a))
            case ca.OP_FMIN:
                value = ca.if_else(less(a, b), a, b)
            case ca.OP_FMAX:
                value = ca.if_else(less(a, b), b, a)
            case ca.OP_FABS:
                value = ca.if_else(less(a, ca.SX(0)), -a, a)
            case ca.OP_SIGN:
                value = ca.if_else(less(a, ca.SX(0)), -1, ca.if_else(less(ca.SX(0), a), 1, 0))
            case ca.OP_FLOOR:
                falls = ca.jtimes(a, t, ca.SX(1)) < 0
                value = ca.if_else(falls, ca.ceil(a) - 1, ca.floor(a))
            case _ if len(operands) == 1:
                value = ca.SX.unary(code, a)
            case _:
                value = ca.SX.binary(code, a, b)
        work[put[0]] = value
    return made


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


def trace(owner: str, function: Callable[[Any], Any], state: Any) -> Any:
    """A function's value on symbols; NumPy's functions may be used in it, without CasADi's notice
    of how it takes them.

    Raises:
        InvalidArgument: for a function that asks which value a symbol has, or takes other arguments
            than the state.
    """
    try:
        with numpy_on_symbols():
            return function(state)
    except RuntimeError as error:
        if "not defined for" in str(error):
            raise InvalidArgument(
                f"{owner}: the function is called once, with symbols, which int() cannot take for "
                "numbers; write numpy.floor, numpy.ceil or numpy.where(condition, a, b)"
            ) from None
        if "truth value" not in str(error):
            raise
        raise InvalidArgument(
            f"{owner}: the function is called once, with symbols, which `if`, `and`, `max` and "
            "`while` cannot decide on; write numpy.where(condition, a, b), numpy.maximum or "
            "numpy.clip"
        ) from None
    except TypeError as error:
        if "no implementation found for" in str(error):
            used = str(error).split("'")[1]
            raise InvalidArgument(
                f"{owner}: the function is called once, with symbols, on which {used} cannot act; "
                "write numpy.where(condition, a, b), numpy.select or numpy.clip"
            ) from None
        if "positional argument" not in str(error):
            raise
        raise InvalidArgument(
            f"{owner}: a function of the state takes one argument, the state s (time is s.t): "
            f"{error}"
        ) from None
