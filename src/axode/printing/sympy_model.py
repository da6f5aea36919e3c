"""The model in SymPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axode.errors import NotApplicable
from axode.printing.latex_names import distinct_names

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.equations import Equations


PRINTED = ("I", "C", "bias", "tau", "gamma", "delta", "Theta", "A", "energy")


@dataclass(frozen=True)
class SympyModel:
    """The model in SymPy: I nu_dot + C nu = tau + gamma + delta.

    `q`, `nu`, `u` and `p` are tuples of real symbols that carry the model's own names, `t` is time;
    the rest are immutable matrices and expressions of them.
    """

    q: tuple[Any, ...]
    nu: tuple[Any, ...]
    u: tuple[Any, ...]
    t: Any
    p: tuple[Any, ...]
    I: Any
    C: Any
    bias: Any
    tau: Any
    gamma: Any
    delta: Any
    Theta: Any
    A: Any
    kinetic: Any
    potential: Any


def sympy_model(equations: Equations, tape: Tape) -> SympyModel:
    """The outputs `PRINTED` of a tape in SymPy; a repeated term is one object."""
    try:
        import sympy
    except ModuleNotFoundError as missing:
        raise NotApplicable(
            "to_sympy needs SymPy, which is not installed.\n  Remedy: pip install 'axode[sym]'"
        ) from missing
    e = equations
    q, nu, u, p = distinct_names([e.coordinates, e.independent, e.inputs, tuple(e.parameters)])
    names = (q, nu, u, ("t",), p)
    symbols = [tuple(sympy.Symbol(name, real=True) for name in group) for group in names]
    values = _sympy_values(tape, symbols)
    matrices, first = [], 0
    for port in tape.outputs:
        rows, columns = (*port.shape, 1, 1)[:2]
        entries = [values[int(v)] for v in tape.results[first : first + port.size]]
        matrices.append(sympy.ImmutableMatrix(rows, columns, entries))
        first += port.size
    q, nu, u, (t,), p = symbols
    return SympyModel(q, nu, u, t, p, *matrices[:-1], *matrices[-1])


def _sympy_values(tape: Tape, symbols: Sequence[Sequence[Any]]) -> list[Any]:
    from axode.codegen.tape.operations import ARITY, Kind

    meaning = _sympy_meaning()
    values: list[Any] = []
    for code, row in zip(tape.kinds, tape.operands.tolist(), strict=True):
        kind = Kind(code)
        if kind == Kind.INPUT:
            values.append(symbols[row[0]][row[1]])
        elif kind == Kind.CONSTANT:
            values.append(_sympy_number(float(tape.constants[row[0]])))
        elif kind.label in meaning:
            values.append(meaning[kind.label](*(values[v] for v in row[: ARITY[kind]])))
        else:
            raise NotApplicable(f"to_sympy: SymPy has no counterpart of '{kind.label}'.")
    return values


def _sympy_number(number: float) -> Any:
    import sympy

    return sympy.Integer(int(number)) if number == int(number) else sympy.Float(number)


def _sympy_meaning() -> dict[str, Callable[..., Any]]:
    import operator

    import sympy

    same = (
        "sqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "exp",
        "log",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "sign",
    )

    def truth(x: Any) -> Any:
        return sympy.Ne(x, 0)

    def indicator(relation: Any) -> Any:
        return sympy.Piecewise((1, relation), (0, True))

    return {name: getattr(sympy, name) for name in same} | {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": operator.truediv,
        "neg": operator.neg,
        "pow": sympy.Pow,
        "fabs": sympy.Abs,
        "floor": sympy.floor,
        "ceil": sympy.ceiling,
        "hypot": lambda x, y: sympy.sqrt(x * x + y * y),
        "expm1": lambda x: sympy.exp(x) - 1,
        "log1p": lambda x: sympy.log(1 + x),
        "fmin": sympy.Min,
        "fmax": sympy.Max,
        "copysign": lambda x, y: sympy.Piecewise((sympy.Abs(x), y >= 0), (-sympy.Abs(x), True)),
        "lt": lambda x, y: indicator(x < y),
        "le": lambda x, y: indicator(x <= y),
        "eq": lambda x, y: indicator(sympy.Eq(x, y)),
        "ne": lambda x, y: indicator(sympy.Ne(x, y)),
        "not": lambda x: indicator(sympy.Eq(x, 0)),
        "and": lambda x, y: indicator(sympy.And(truth(x), truth(y))),
        "or": lambda x, y: indicator(sympy.Or(truth(x), truth(y))),
        "select": lambda c, x, y: sympy.Piecewise((x, truth(c)), (y, True)),
    }
