"""Parameters and the small algebra that lets one stand wherever a number may.

An `Expression` is a plain tree of operations on parameters and time. It can be
evaluated with floats or with symbols of any library, printed as text and read
back, so that `Parameter("l", 0.4) / 2` survives a file unchanged.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

FUNCTIONS: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "sqrt": math.sqrt, "exp": math.exp, "log": math.log, "tanh": math.tanh,
}  # fmt: skip
# The names NumPy gives the same functions when it meets an object.
_UFUNC_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}
_METHOD_NAMES = {name: method for method, name in _UFUNC_NAMES.items()}
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "**": 4}
TIME = "t"


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
            f"the formula '{self}' is not a number yet; use functions such as numpy.sin or "
            "axode.sin on it, not math.sin"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let `numpy.sin(expression)` and `numpy.float64(2) * expression` build formulas."""
        operators = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
        name = _UFUNC_NAMES.get(ufunc.__name__, ufunc.__name__)
        if method == "__call__" and not kwargs:
            if name in operators:
                return _binary(operators[name], *inputs)
            if name in FUNCTIONS:
                return Operation(name, (as_scalar(inputs[0]),))
            if name == "negative":
                return -self
        return NotImplemented


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
        name: Its name, unique in a mechanism.
        default: Its value unless another is given, in SI units.
    """

    name: str
    default: float

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


def as_scalar(value: Any) -> Scalar:
    """A float, or the formula it is.

    Raises:
        TypeError: if the value is neither a real number nor a formula.
    """
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool) or isinstance(value, (str, bytes, complex)):
        raise TypeError(f"expected a number or a Parameter, got {value!r}")
    return float(value)


def apply(name: str, value: Any) -> Any:
    """A named function of a float, of a formula, or of a foreign symbol."""
    if isinstance(value, Expression):
        return Operation(name, (value,))
    if isinstance(value, (int, float)):
        return FUNCTIONS[name](value)
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
            return x[0] ** x[1]
        case "neg":
            return -x[0]
        case name:
            return apply(name, x[0])


def numeric(scalar: Scalar) -> float:
    """The value at the parameters' defaults (and time zero)."""
    if not isinstance(scalar, Expression):
        return scalar
    values: dict[str, float] = {p.name: p.default for p in parameters_in(scalar)}
    return float(evaluate(scalar, values | {TIME: 0.0}))


def parameters_in(scalar: Scalar) -> Iterator[Parameter]:
    """Every parameter a formula mentions, in order, possibly repeated."""
    if isinstance(scalar, Parameter):
        yield scalar
    elif isinstance(scalar, Operation):
        for operand in scalar.operands:
            yield from parameters_in(operand)


def format_scalar(scalar: Scalar, outer: int = 0) -> str:
    """Text that `parse_scalar` reads back to the same formula."""
    if not isinstance(scalar, Operation):
        text = str(scalar) if isinstance(scalar, Expression) else repr(scalar)
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
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(f"'{text}' is not a formula") from None
    return _parse_node(tree, text, parameters)


def _parse_node(node: ast.expr, text: str, parameters: Mapping[str, Parameter]) -> Scalar:
    operators = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return float(value)
        case ast.Name(id=name) if name in parameters:
            return parameters[name]
        case ast.Name(id="pi"):
            return math.pi
        case ast.Name(id="t"):
            return Time()
        case ast.Name(id=name):
            known = ", ".join([*parameters, "pi", TIME])
            raise ValueError(f"'{name}' in '{text}' is not a parameter (known: {known})")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _parse_node(operand, text, parameters)
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in operators:
            a, b = (_parse_node(side, text, parameters) for side in (left, right))
            kind = operators[type(op)]
            if isinstance(a, float) and isinstance(b, float):
                return float(evaluate(Operation(kind, (a, b)), {}))
            return Operation(kind, (a, b))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            return apply(name, _parse_node(argument, text, parameters))  # type: ignore[no-any-return]
        case _:
            part = ast.unparse(node)
            functions = ", ".join(FUNCTIONS)
            raise ValueError(f"'{part}' is not understood (numbers, + - * / **, {functions})")
