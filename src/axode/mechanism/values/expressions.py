"""Parameters and the small algebra that lets one stand wherever a number may.

An `Expression` is a plain tree of operations on parameters and time. It can be
evaluated with floats or with symbols of any library, printed as text and read
back, so that `Parameter("l", 0.4) / 2` survives a file unchanged.
"""

from __future__ import annotations

import ast
import keyword
import math
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np

from axode.errors import InvalidArgument, suggest

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
}
# The names NumPy gives the same things when it meets an object.
_UFUNC_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_METHOD_NAMES = {name: method for method, name in _UFUNC_NAMES.items()}
_UFUNC_OPERATORS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "**": 4}
_AST_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
TIME = "t"
CONSTANTS = {"pi": math.pi}
LONGEST_FORMULA = 10_000  # characters; more than this is not a formula but an accident


class Expression:
    """A formula of parameters and time; supports `+ - * / **` and the usual functions."""

    __slots__ = ()
    __array_priority__: ClassVar[float] = 1000.0

    def __add__(self, other: Any) -> Expression:
        return _binary("+", self, other)

    def __radd__(self, other: Any) -> Expression:
        return _binary("+", other, self)

    def __sub__(self, other: Any) -> Expression:
        return _binary("-", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return _binary("-", other, self)

    def __mul__(self, other: Any) -> Expression:
        return _binary("*", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return _binary("*", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return _binary("/", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return _binary("/", other, self)

    def __pow__(self, other: Any) -> Expression:
        return _binary("**", self, other)

    def __rpow__(self, other: Any) -> Expression:
        return _binary("**", other, self)

    def __neg__(self) -> Expression:
        return Operation("neg", (self,))

    def __pos__(self) -> Expression:
        return self

    def __float__(self) -> float:
        raise TypeError(
            f"the formula '{self}' is not a number yet; use functions such as numpy.sin on it, not "
            "those of math"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let `numpy.sin(expression)` and `numpy.array(...) * expression` build formulas."""
        name = _UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__)
        known = name in _UFUNC_OPERATORS or name in FUNCTIONS or name in ("negative", "positive")
        if method != "__call__" or kwargs or not known:
            raise TypeError(
                f"numpy.{ufunc.__name__} cannot act on the formula '{self}'; available are "
                f"+ - * / ** and {', '.join(FUNCTIONS)}"
            )
        if any(isinstance(item, np.ndarray) and item.ndim for item in inputs):
            boxed = [np.array(item, dtype=object) for item in inputs]
            return np.frompyfunc(lambda *items: _of_ufunc(name, *items), len(boxed), 1)(*boxed)
        return _of_ufunc(name, *inputs)


@dataclass(frozen=True, eq=True, repr=False, slots=True)
class Operation(Expression):
    """One operation and the values it acts on."""

    kind: str
    operands: tuple[Scalar, ...]

    def __repr__(self) -> str:
        return f"Expression('{format_scalar(self)}')"

    def __str__(self) -> str:
        return format_scalar(self)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    """A named physical number that may stay free until the model is compiled.

    Args:
        name: Its name, unique in a mechanism: letters, digits and underscores.
        default: Its value unless another is given, in SI units.
    """

    name: str
    default: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidArgument(f"a Parameter's name is text, got {self.name!r}")
        # formulas are read the way Python reads names, which takes the micro sign for a mu
        name = unicodedata.normalize("NFKC", self.name)
        reserved = name in FUNCTIONS or name in CONSTANTS or name == TIME
        if reserved or not name.isidentifier() or keyword.iskeyword(name):
            raise InvalidArgument(
                f"'{self.name}' cannot name a Parameter: use letters, digits and underscores, and "
                f"none of {', '.join([TIME, *CONSTANTS, *FUNCTIONS])} or of Python's own words"
            )
        object.__setattr__(self, "name", name)
        if isinstance(self.default, Expression):
            raise InvalidArgument(f"the default of Parameter '{name}' must be a number")
        object.__setattr__(self, "default", as_scalar(self.default))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Time(Expression):
    """Time itself, in seconds: the argument of a prescribed motion."""

    def __str__(self) -> str:
        return TIME


Scalar: TypeAlias = "float | Expression"


def _binary(kind: str, left: Any, right: Any) -> Expression:
    try:
        return Operation(kind, (as_scalar(left), as_scalar(right)))
    except TypeError:
        return NotImplemented


def _of_ufunc(name: str, *inputs: Any) -> Any:
    """What a NumPy function makes of numbers and formulas."""
    x = [as_scalar(item) for item in inputs]
    if name in _UFUNC_OPERATORS:
        mixed = any(isinstance(item, Expression) for item in x)
        operation = Operation(_UFUNC_OPERATORS[name], tuple(x))
        return operation if mixed else evaluate(operation, {})
    if name in FUNCTIONS:
        return apply(name, x[0])
    return -x[0] if name == "negative" else x[0]


def as_scalar(value: Any) -> Scalar:
    """A float, or the formula it is.

    Raises:
        InvalidArgument: if the value is neither a real number nor a formula.
    """
    if isinstance(value, Expression):
        return value
    not_numbers = bool, np.bool_, str, bytes, complex
    if not isinstance(value, not_numbers) and not getattr(value, "ndim", 0):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    hint = "; formulas are written with Parameters, as in Parameter('l', 0.4) / 2"
    hint = hint if isinstance(value, str) else ""
    raise InvalidArgument(f"expected a number or a Parameter, got {value!r}{hint}")


def apply(name: str, value: Any) -> Any:
    """A named function of a float, of a formula, or of a foreign symbol."""
    if isinstance(value, Expression):
        return Operation(name, (value,))
    if isinstance(value, (int, float)):
        return FUNCTIONS[name](value)
    if hasattr(value, "function"):
        return value.function(name)
    return getattr(value, _METHOD_NAMES.get(name, name))()


def evaluate(scalar: Scalar, values: Mapping[str, Any]) -> Any:
    """The value of a formula, each parameter (and "t") taken from `values`."""
    if not isinstance(scalar, Expression):
        return scalar
    if isinstance(scalar, Parameter):
        return values[scalar.name]
    if isinstance(scalar, Time):
        return values[TIME]
    assert isinstance(scalar, Operation)
    x = [evaluate(operand, values) for operand in scalar.operands]
    match scalar.kind:
        case "+":
            return x[0] + x[1]
        case "-":
            return x[0] - x[1]
        case "*":
            return x[0] * x[1]
        case "/":
            return x[0] / x[1]
        case "**":
            power = x[0] ** x[1]
            return math.nan if isinstance(power, complex) else power
        case "neg":
            return -x[0]
        case name:
            return apply(name, x[0])


def numeric(scalar: Scalar) -> float:
    """The value at the parameters' defaults (and time zero); NaN where there is none."""
    if not isinstance(scalar, Expression):
        return scalar
    values: dict[str, float] = {p.name: p.default for p in parameters_in(scalar)}
    try:
        value = evaluate(scalar, values | {TIME: 0.0})
    except (ArithmeticError, ValueError):  # 1 / 0, log(0), a power beyond the largest float
        return math.nan
    return float(value)


def shown(scalar: Scalar) -> str:
    """A value as messages tell it: the number, and the formula it came from."""
    origin = f" ('{scalar}')" if isinstance(scalar, Expression) else ""
    return f"{numeric(scalar):g}{origin}"


def parameters_in(scalar: Scalar) -> Iterator[Parameter]:
    """Every parameter a formula mentions, in order, possibly repeated."""
    if isinstance(scalar, Parameter):
        yield scalar
    elif isinstance(scalar, Operation):
        for operand in scalar.operands:
            yield from parameters_in(operand)


def depends_on_time(scalar: Scalar) -> bool:
    """Whether the formula mentions time."""
    if isinstance(scalar, Operation):
        return any(map(depends_on_time, scalar.operands))
    return isinstance(scalar, Time)


def format_scalar(scalar: Scalar, outer: int = 0) -> str:
    """Text that `parse_scalar` reads back to the same formula."""
    if not isinstance(scalar, Operation):
        text = str(scalar) if isinstance(scalar, Expression) else repr(float(scalar))
        text = text.replace("inf", "1e999") if isinstance(scalar, float) else text
        return f"({text})" if text.startswith("-") and outer > 1 else text
    if scalar.kind not in _PRECEDENCE:
        return f"{scalar.kind}({format_scalar(scalar.operands[0])})"
    level = _PRECEDENCE[scalar.kind]
    if scalar.kind == "neg":
        text = "-" + format_scalar(scalar.operands[0], level + 1)
    else:
        # ** binds to the right, the others to the left
        right_associative = scalar.kind == "**"
        left = format_scalar(scalar.operands[0], level + right_associative)
        right = format_scalar(scalar.operands[1], level + (not right_associative))
        text = f"{left} {scalar.kind} {right}"
    return f"({text})" if level < outer else text


def parse_scalar(text: str, parameters: Mapping[str, Parameter]) -> Scalar:
    """Read a formula such as "l / 2 + 0.1" or "0.3 * sin(2 * pi * t)"; never executes it.

    Raises:
        ValueError: naming the part that is not understood.
    """
    line = " ".join(text.split())
    start = line if len(line) <= 60 else line[:57] + "..."
    if len(line) > LONGEST_FORMULA:
        raise ValueError(f"a formula of {len(line)} characters is too long")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Python thinks of the style of "1if x"
            tree = ast.parse(line, mode="eval").body
        return _parse_node(tree, start, parameters)
    except (RecursionError, MemoryError):
        raise ValueError(f"'{start}' is nested too deeply") from None
    except SyntaxError:
        raise ValueError(f"'{start}' is not a formula") from None


def _parse_node(node: ast.expr, text: str, parameters: Mapping[str, Parameter]) -> Scalar:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number) if abs(number) < 1e308 else float(ast.unparse(node))
        case ast.Name(id=name) if name in parameters:
            return parameters[name]
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Name(id="t"):
            return Time()
        case ast.Name(id=name):
            known = [*parameters, *CONSTANTS, TIME]
            hint = suggest("name", name, known)
            raise ValueError(f"'{name}' in '{text}' is not a parameter. {hint}")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            value = _parse_node(operand, text, parameters)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _AST_OPERATORS:
            a, b = (_parse_node(side, text, parameters) for side in (left, right))
            operation = Operation(_AST_OPERATORS[type(op)], (a, b))
            constant = isinstance(a, float) and isinstance(b, float)
            return _constant(operation, node) if constant else operation
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            operation = Operation(name, (_parse_node(argument, text, parameters),))
            constant = isinstance(operation.operands[0], float)
            return _constant(operation, node) if constant else operation
        case _:
            part = ast.unparse(node)
            power = (
                "; write ** for powers" if isinstance(getattr(node, "op", 0), ast.BitXor) else ""
            )
            available = f"numbers, + - * / **, {', '.join(FUNCTIONS)}"
            raise ValueError(f"'{part}' is not understood ({available}){power}")


def _constant(operation: Operation, node: ast.expr) -> float:
    """The value of an operation on numbers alone, which is a fault where there is none."""
    value = numeric(operation)
    if math.isnan(value):
        raise ValueError(f"'{ast.unparse(node)}' has no value")
    return value
