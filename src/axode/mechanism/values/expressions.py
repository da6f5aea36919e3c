"""Parameters and the small algebra that lets one stand wherever a number may.

An `Expression` is a plain tree of operations on parameters and time. It can be
evaluated with floats or with symbols of any library, printed as text and read
back, so that `Parameter("l", 0.4) / 2` survives a file unchanged.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, ClassVar, TypeAlias

import numpy as np

from axode.argument_types import real_number
from axode.errors import InvalidArgument, shortened, suggest

# functions on numbers ----------------------------------------------------------------------


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


# formulas ----------------------------------------------------------------------------------


# levels of brackets, as Python has them
_PRECEDENCE = {"or": 1, "and": 2, "not": 3, **dict.fromkeys(COMPARISONS, 4)}
_PRECEDENCE |= {"+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "neg": 7, "**": 8}
_AST_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
    ast.BitAnd: "and",
    ast.BitOr: "or",
}
TIME = "t"
CONSTANTS = {"pi": math.pi}
LONGEST_FORMULA = 10_000  # characters; more than this is not a formula but an accident


def _operator(kind: str, *, reflected: bool = False) -> Callable[[Any, Any], Expression]:
    """Return the method of `Expression` that builds an operation with another value."""

    def build(self: Expression, other: Any) -> Expression:
        try:
            x = self, as_scalar(other)
        except TypeError:
            return NotImplemented
        return Operation(kind, x[::-1] if reflected else x)

    return build


class Expression:
    """A formula of parameters and time; operators and functions of NumPy build larger ones."""

    __slots__ = ()
    __array_priority__: ClassVar[float] = 1000.0

    __add__, __radd__ = _operator("+"), _operator("+", reflected=True)
    __sub__, __rsub__ = _operator("-"), _operator("-", reflected=True)
    __mul__, __rmul__ = _operator("*"), _operator("*", reflected=True)
    __truediv__, __rtruediv__ = _operator("/"), _operator("/", reflected=True)
    __mod__, __rmod__ = _operator("%"), _operator("%", reflected=True)
    __pow__, __rpow__ = _operator("**"), _operator("**", reflected=True)
    __and__, __rand__ = _operator("and"), _operator("and", reflected=True)
    __or__, __ror__ = _operator("or"), _operator("or", reflected=True)
    __lt__, __le__ = _operator("<"), _operator("<=")
    __gt__, __ge__ = _operator(">"), _operator(">=")

    def __invert__(self) -> Expression:
        return Operation("not", (self,))

    def __neg__(self) -> Expression:
        return Operation("neg", (self,))

    def __abs__(self) -> Expression:
        return Operation("abs", (self,))

    def __pos__(self) -> Expression:
        return self

    def __float__(self) -> float:
        raise TypeError(
            f"the formula '{self}' is not a number yet; use functions such as numpy.sin on it, not "
            "those of math"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let `numpy.sin(expression)` and `numpy.array(...) * expression` build formulas."""
        build = _NUMPY.get(ufunc.__name__)
        if method != "__call__" or kwargs or build is None:
            raise TypeError(self._no_function(ufunc))
        if any(isinstance(item, np.ndarray) and item.ndim for item in inputs):
            boxed = [np.array(item, dtype=object) for item in inputs]
            return np.frompyfunc(build, len(boxed), 1)(*boxed)
        return build(*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Let `numpy.where`, `numpy.select` and `numpy.clip` build formulas."""
        builders: dict[str, Callable[..., Any]] = {
            "where": _where,
            "select": _select,
            "clip": _clip,
        }
        build = builders.get(func.__name__)
        if build is not None:
            return build(*args, **kwargs)
        try:
            return func._implementation(*args, **kwargs)
        except (AttributeError, TypeError):
            raise TypeError(self._no_function(func)) from None

    def _no_function(self, func: Any) -> str:
        return (
            f"numpy.{func.__name__} cannot act on the formula '{self}'; available are "
            f"{OPERATORS}, numpy.where, numpy.select, numpy.clip and {', '.join(_NUMPY)}"
        )


@dataclass(frozen=True, eq=True, repr=False, slots=True)
class Operation(Expression):
    """One operation and the values it acts on."""

    kind: str
    operands: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        first, *others = self.operands
        if self.kind in ("/", "%") and isinstance(first, Expression) and others == [0.0]:
            raise InvalidArgument(f"'{self}' divides by zero")

    def __repr__(self) -> str:
        return f"Expression('{format_scalar(self)}')"

    def __str__(self) -> str:
        return format_scalar(self)

    def __bool__(self) -> bool:
        if self.kind in CONDITIONS:
            raise TypeError(
                f"the condition '{self}' is not decided yet, so `if`, `and`, `min` and `max` "
                "cannot act on it; use numpy.where, numpy.minimum, numpy.maximum, & and |"
            )
        return True


ONE_SYMBOL = (
    r"a symbol in math mode, such as \hat m_p, with braces that match and without $, &, %, #, \\ "
    "and line breaks"
)


@dataclass(frozen=True, slots=True)
class Parameter(Expression):
    r"""A named physical number that may stay free until the model is compiled.

    Args:
        name: Its name, unique in a mechanism: letters, digits and underscores.
        default: Its value unless another is given, in SI units.
        latex: How it is set in equations, such as `r"\hat m_p"`; by its name unless given.
    """

    name: str
    default: float
    latex: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidArgument(f"a Parameter's name is text, got {shortened(self.name)}")
        # formulas are read the way Python reads names, which takes the micro sign for a mu
        name = unicodedata.normalize("NFKC", self.name)
        reserved = name in NAMES or name in CONSTANTS or name == TIME
        if reserved or not name.isidentifier() or keyword.iskeyword(name):
            raise InvalidArgument(
                f"'{self.name}' cannot name a Parameter: use letters, digits and underscores, and "
                f"none of {', '.join([TIME, *CONSTANTS, *NAMES])} or of Python's own words"
            )
        object.__setattr__(self, "name", name)
        if isinstance(self.default, Expression):
            raise InvalidArgument(f"the default of Parameter '{name}' must be a number")
        object.__setattr__(self, "default", as_scalar(self.default))
        if not (isinstance(self.latex, str) and is_symbol(self.latex)):
            given = shortened(self.latex)
            raise InvalidArgument(f"Parameter '{name}': LaTeX must be {ONE_SYMBOL}; got {given}")

    def __str__(self) -> str:
        return self.name


def is_symbol(latex: str) -> bool:
    """Return whether LaTeX can stand in an equation: braces match, nothing ends a line or cell."""
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", latex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0 and latex == latex.strip() and not re.search(r"[$&%#\n\r]|\\\\", latex)


@dataclass(frozen=True, slots=True)
class Time(Expression):
    """Time itself, in seconds: the argument of a prescribed motion."""

    def __str__(self) -> str:
        return TIME


@dataclass(frozen=True, slots=True)
class Coordinate(Expression):
    """A coordinate of a joint, or a joint that has one: an argument of a coupling's function."""

    name: str

    def __str__(self) -> str:
        parts, read = self.name.split("."), unicodedata.normalize("NFKC", self.name)
        if self.name in _RESERVED or read != self.name or any(map(keyword.iskeyword, parts)):
            parts = [""]
        plain = all(map(str.isidentifier, parts))
        return self.name if plain else f"q[{json.dumps(self.name, ensure_ascii=False)}]"


_RESERVED = (TIME, *CONSTANTS, *NAMES)
Scalar: TypeAlias = "float | Expression"


class JointNames(dict[str, Expression]):
    """Names of formulas in which whatever is no parameter means a joint or its coordinate."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name not in _RESERVED

    def __missing__(self, name: str) -> Coordinate:
        return Coordinate(name)


def _function(name: str) -> Callable[..., Scalar]:
    """Return what builds the formula of a function or of an operator."""

    def build(*inputs: Any) -> Scalar:
        operation = Operation(name, tuple(map(as_scalar, inputs)))
        if any(isinstance(x, Expression) for x in operation.operands):
            return operation
        return float(evaluate(operation, {}))  # a function of numbers is one

    return build


def _where(condition: Any, a: Any, b: Any) -> Any:
    if any(np.ndim(item) for item in (condition, a, b)):
        boxed = (np.array(item, dtype=object) for item in (condition, a, b))
        return np.frompyfunc(_where, 3, 1)(*boxed)
    if not isinstance(condition, Expression):
        return a if condition else b
    return Operation("where", (condition, as_scalar(a), as_scalar(b)))


def _select(conditions: Any, choices: Any, default: Any = 0.0) -> Any:
    for condition, choice in reversed(list(zip(conditions, choices, strict=True))):
        default = _where(condition, choice, default)
    return default


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **limits: Any) -> Any:
    low, high = limits.get("min", a_min), limits.get("max", a_max)
    if np.ndim(a):
        return np.array([_clip(item, low, high) for item in a], dtype=object)
    if low is not None and high is not None:
        return _function("clip")(a, low, high)
    a = a if low is None else _function("max")(a, low)
    return a if high is None else _function("min")(a, high)


# NumPy's names of functions and operators, and what each makes of formulas.
_NUMPY: dict[str, Callable[..., Any]] = {
    **{name: _function(kind) for name, kind in UFUNCS.items()},
    **{name: lambda x: x * (math.pi / 180) for name in ("deg2rad", "radians")},
    **{name: lambda x: x * (180 / math.pi) for name in ("rad2deg", "degrees")},
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "square": lambda x: x * x,
    "reciprocal": lambda x: 1.0 / x,
    "ceil": lambda x: -np.floor(-x),
    "heaviside": lambda x, at_zero: as_scalar(_select([x > 0, x < 0], [1.0, 0.0], at_zero)),
}
OPERATORS = "+ - * / % **, < <= > >=, & | ~"


def as_scalar(value: Any) -> Scalar:
    """A float, or the formula it is.

    Raises:
        InvalidArgument: if the value is neither a real number nor a formula.
    """
    if type(value) is float or isinstance(value, Expression):
        return value  # type: ignore[no-any-return]
    if not isinstance(value, bool | np.bool_) and not getattr(value, "ndim", 0):
        try:
            return real_number(value)
        except (TypeError, ValueError, OverflowError):
            pass
    hint = "; formulas are written with Parameters, as in Parameter('l', 0.4) / 2"
    hint = hint if isinstance(value, str) else ""
    raise InvalidArgument(f"expected a number or a Parameter, got {shortened(value)}{hint}")


def apply(name: str, value: Scalar) -> Scalar:
    """Apply a named function of one argument to a number or a formula."""
    return Operation(name, (value,)) if isinstance(value, Expression) else FUNCTIONS[name](value)


def evaluate(
    scalar: Scalar,
    values: Mapping[str, Any],
    functions: Mapping[str, Callable[..., Any]] = FUNCTIONS,
) -> Any:
    """Return the value of a formula.

    Args:
        scalar: The formula, or a number.
        values: Values of all parameters by name, of coordinates as they are written, and of time
            as "t": numbers, or any symbols that have the operators of Python.
        functions: What the names of `FUNCTIONS` do to such symbols.
    """
    if not isinstance(scalar, Expression):
        return scalar
    if isinstance(scalar, Parameter):
        return values[scalar.name]
    if isinstance(scalar, Time):
        return values[TIME]
    if isinstance(scalar, Coordinate):
        return values[str(scalar)]
    assert isinstance(scalar, Operation)
    x = [evaluate(operand, values, functions) for operand in scalar.operands]

    def call(name: str, *operands: Any) -> Any:
        on_numbers = all(isinstance(item, int | float) for item in operands)
        return (FUNCTIONS if on_numbers else functions)[name](*operands)

    match scalar.kind:
        case "+":
            return x[0] + x[1]
        case "-":
            return x[0] - x[1]
        case "*":
            return x[0] * x[1]
        case "/":
            return x[0] / x[1]
        case "%":
            return x[0] - x[1] * call("floor", x[0] / x[1])
        case "**":
            power = x[0] ** x[1]
            return math.nan if isinstance(power, complex) else power
        case "neg":
            return -x[0]
        case "step":
            return 1.0 * (x[0] >= 0)
        case kind if kind in COMPARISONS:
            return 1.0 * COMPARISONS[kind](*x)
        case "where" if isinstance(x[0], int | float):
            return x[1] if x[0] else x[2]
        case "clip":
            return call("min", call("max", x[0], x[1]), x[2])
        case "min" | "max":
            return reduce(partial(call, scalar.kind), x)
        case name:
            return call(name, *x)


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
    """A value as messages show it: the number, and the formula it came from."""
    origin = f" ('{scalar}')" if isinstance(scalar, Expression) else ""
    return f"{numeric(scalar):g}{origin}"


def parameters_in(scalar: Scalar) -> Iterator[Parameter]:
    """Every parameter a formula mentions, in order, possibly repeated."""
    if isinstance(scalar, Parameter):
        yield scalar
    elif isinstance(scalar, Operation):
        for operand in scalar.operands:
            yield from parameters_in(operand)


def coordinates_in(scalar: Scalar) -> tuple[str, ...]:
    """Names of the coordinates and joints that a formula mentions, each once."""
    if isinstance(scalar, Coordinate):
        return (scalar.name,)
    inner = map(coordinates_in, scalar.operands) if isinstance(scalar, Operation) else ()
    return tuple(dict.fromkeys(name for names in inner for name in names))


def depends_on_time(scalar: Scalar) -> bool:
    """Return whether the formula mentions time."""
    if isinstance(scalar, Operation):
        return any(map(depends_on_time, scalar.operands))
    return isinstance(scalar, Time)


def format_scalar(scalar: Scalar, outer: int = 0) -> str:
    """Text that `parse_scalar` reads back to the same formula."""
    if not isinstance(scalar, Operation):
        text = str(scalar) if isinstance(scalar, Expression) else repr(float(scalar))
        text = text.replace("inf", "1e999") if isinstance(scalar, float) else text
        return f"({text})" if text.startswith("-") and outer > _PRECEDENCE["+"] else text
    if scalar.kind not in _PRECEDENCE:
        return f"{scalar.kind}({', '.join(map(format_scalar, scalar.operands))})"
    level = _PRECEDENCE[scalar.kind]
    if len(scalar.operands) == 1:
        word, inner = ("-", level + 1) if scalar.kind == "neg" else ("not ", level)
        text = word + format_scalar(scalar.operands[0], inner)
    else:
        # ** binds to the right, comparisons to neither side, the others to the left
        left_too = scalar.kind == "**" or scalar.kind in COMPARISONS
        left = format_scalar(scalar.operands[0], level + left_too)
        right = format_scalar(scalar.operands[1], level + (scalar.kind != "**"))
        text = f"{left} {scalar.kind} {right}"
    return f"({text})" if level < outer else text


def parse_scalar(text: str, parameters: Mapping[str, Expression]) -> Scalar:
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


def _parse_node(node: ast.expr, text: str, parameters: Mapping[str, Expression]) -> Scalar:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number) if abs(number) < 1e308 else float(ast.unparse(node))
        case ast.Name(id=name) if name in parameters:
            return parameters[name]
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Name(id="t"):
            return Time()
        case ast.Attribute() if (name := ast.unparse(node)) in parameters:
            return parameters[name]
        case ast.Subscript(value=ast.Name(id="q"), slice=ast.Constant(value=str(name))) if (
            isinstance(parameters, JointNames)
        ):
            return Coordinate(name)
        case ast.Name(id=name):
            known = [*parameters, *CONSTANTS, TIME]
            hint = suggest("name", name, known)
            raise ValueError(f"'{name}' in '{text}' is not a parameter. {hint}")
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            value = _parse_node(operand, text, parameters)
            return -value if isinstance(node.op, ast.USub) else value
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            return _parsed("not", [operand], node, text, parameters)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _AST_OPERATORS:
            return _parsed(_AST_OPERATORS[type(op)], [left, right], node, text, parameters)
        case ast.BoolOp(op=op, values=[*first, last]):
            left = first[0] if len(first) == 1 else ast.BoolOp(op, first)
            return _parsed(_AST_OPERATORS[type(op)], [left, last], node, text, parameters)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _AST_OPERATORS:
            return _parsed(_AST_OPERATORS[type(op)], [left, right], node, text, parameters)
        case ast.Compare(left=left, ops=[op, *ops], comparators=[middle, *rest]) if ops:
            pairs: list[ast.expr] = [
                ast.Compare(left, [op], [middle]),
                ast.Compare(middle, ops, rest),
            ]
            return _parse_node(ast.BoolOp(ast.And(), pairs), text, parameters)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if (
            name in NAMES and takes(name, len(arguments))
        ):
            return _parsed(name, arguments, node, text, parameters)
        case _:
            part = ast.unparse(node)
            power = (
                "; write ** for powers" if isinstance(getattr(node, "op", 0), ast.BitXor) else ""
            )
            available = f"numbers, {OPERATORS}, {', '.join(NAMES)}"
            raise ValueError(f"'{part}' is not understood ({available}){power}")


def _parsed(
    kind: str,
    operands: Sequence[ast.expr],
    node: ast.expr,
    text: str,
    parameters: Mapping[str, Expression],
) -> Scalar:
    """Return an operation that was read; on numbers alone, its value, which has to exist."""
    operation = Operation(kind, tuple(_parse_node(x, text, parameters) for x in operands))
    if any(isinstance(x, Expression) for x in operation.operands):
        return operation
    value = numeric(operation)
    if math.isnan(value):
        raise ValueError(f"'{ast.unparse(node)}' has no value")
    return value
