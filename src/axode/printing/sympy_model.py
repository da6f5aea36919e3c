"""The model in SymPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axode.errors import NotApplicable, require_package
from axode.printing.exact import Ratio, exact_number
from axode.printing.latex_names import distinct_names
from axode.printing.layout import Product, Sum
from axode.printing.parts import is_first_kind

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.printing.parts import ExactPart
    from axode.symbolic.equations import Equations


TERMS = ("I", "C", "bias", "tau", "gamma", "delta", "Theta", "A", "energy")


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


def sympy_model(equations: Equations) -> SympyModel:
    """Exact fractions of polynomials as SymPy expressions; the computed terms where they are long.

    Where a body turns freely, they hold for quaternions of unit length.
    """
    sympy = require_package("sympy", "to_sympy needs SymPy", "sym")
    from axode.printing.parts import exact_part, tape_of

    e = equations
    speeds = e.speeds if is_first_kind(e) else e.independent
    q, v, u, p = distinct_names([e.coordinates, speeds, e.inputs, tuple(e.parameters)])
    names = (q, v, u, ("t",), p)
    symbols = [tuple(sympy.Symbol(name, real=True) for name in group) for group in names]
    matrices = []
    for part in TERMS:
        found = exact_part(e, part)
        if found is None:
            tape = tape_of(e, [part])
            rows, columns = (*tape.outputs[0].shape, 1, 1)[:2]
            values = _sympy_values(tape, symbols)
            entries = [values[int(v)] for v in tape.results]
        else:
            rows, columns = found.shape
            writer = SympyWriter(found, symbols)
            entries = [writer.value(found.layout.ratio(x)) for x in found.exact.results]
        matrices.append(sympy.ImmutableMatrix(rows, columns, entries))
    q, v, u, (t,), p = symbols
    nu = tuple(v[speeds.index(name)] for name in e.independent)
    return SympyModel(q, nu, u, t, p, *matrices[:-1], *matrices[-1])


class SympyWriter:
    """Values in SymPy of what was laid out."""

    def __init__(self, found: ExactPart, symbols: Sequence[Sequence[Any]]) -> None:
        self.found, self.symbols = found, symbols
        self.meaning = _sympy_meaning()

    def value(self, node: Product | Sum) -> Any:
        """A sum or product."""
        import sympy

        if isinstance(node, Sum):
            return sympy.Add(*map(self.value, node.terms))
        number = sympy.Rational(node.number.numerator, node.number.denominator)
        factors = [
            (self.atom(f) if isinstance(f, int) else self.value(f)) ** e for f, e in node.factors
        ]
        return sympy.Mul(number, *factors)

    def atom(self, k: int) -> Any:
        """A generator."""
        import sympy

        atom = self.found.exact.atoms[k]
        match atom.label:
            case "input":
                return self.symbols[atom.place[0]][atom.place[1]]
            case "sin" | "cos":
                terms = [self.value(Product(x, ((g, 1),))) for g, x in atom.angle]
                return self.meaning[atom.label](sympy.Add(*terms))
            case "root":
                return sympy.sqrt(atom.number)
            case "pi":
                return sympy.pi
        of = [self.value(self.found.layout.ratio(Ratio(a, b))) for a, b in atom.arguments]
        if atom.label == "name":
            return of[0]
        return _meaning_of(atom.label.removesuffix(" of"), self.meaning)(*of)


def _meaning_of(label: str, meaning: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    if label not in meaning:
        raise NotApplicable(f"to_sympy: SymPy has no counterpart of '{label}'.")
    return meaning[label]


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
        else:
            of = (values[v] for v in row[: ARITY[kind]])
            values.append(_meaning_of(kind.label, meaning)(*of))
    return values


def _sympy_number(number: float) -> Any:
    """A rounded number as what it was before, if that is simple."""
    import sympy

    found = exact_number(number)
    if found is None:
        return sympy.Float(number)
    fraction, k, power = found
    return (
        sympy.Rational(fraction.numerator, fraction.denominator) * sympy.sqrt(k) * sympy.pi**power
    )


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
