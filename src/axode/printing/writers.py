"""What was laid out, as LaTeX or as text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from axode.printing.exact import Generator, Ratio
from axode.printing.layout import FractionLayout, Product, Sum, positive_first, rank

DIGITS = 6  # of numbers that are no short fractions
DENOMINATORS = (2, 3, 4, 6, 8, 9, 12, 16, 18, 24, 27, 32, 36, 48, 64)
LARGEST = 1000  # numerator of a fraction
LONGEST = 10**6  # numerator or denominator that is written in full
LATEX_FUNCTIONS = {
    "sin": r"\sin",
    "cos": r"\cos",
    "tan": r"\tan",
    "sinh": r"\sinh",
    "cosh": r"\cosh",
    "tanh": r"\tanh",
    "exp": r"\exp",
    "log": r"\ln",
    "asin": r"\arcsin",
    "acos": r"\arccos",
    "atan": r"\arctan",
}
RELATIONS = {"lt": "<", "le": r"\le", "eq": "=", "ne": r"\ne", "and": r"\land", "or": r"\lor"}
# written before their arguments and never raised to a power there, as \sin is
LATEX_OPERATORS = {
    "fmin": r"\min",
    "fmax": r"\max",
    "not": r"\lnot",
    "select": r"\operatorname{where}",
}


@dataclass(frozen=True)
class FractionWriter:
    """Writes sums and products; subclasses know the notation.

    Attributes:
        atoms: The generators.
        layout: Lays out arguments of functions, where they are fractions.
        names: Names of the inputs, by argument and element.
        vertical: Name of the vertical in the axes of a body.
    """

    atoms: Sequence[Generator]
    layout: FractionLayout | None
    names: Sequence[Sequence[str]]
    vertical: str = "n"

    times: ClassVar[str] = " "
    pi: ClassVar[str] = "pi"

    def write(self, node: Product | Sum) -> str:
        """Text of a sum or product."""
        if isinstance(node, Product):
            match node:
                case Product(Fraction(numerator=1, denominator=1), ((Sum() as only, 1),)):
                    return self.write(only)
            return self.product(node)
        text = ""
        for term in node.terms:
            piece = self.product(Product(abs(term.number), term.factors))
            sign = "-" if term.number < 0 else "+" if text else ""
            text += f" {sign} {piece}" if text else f"{sign}{piece}"
        return text

    def product(self, node: Product) -> str:
        """Text of a product, its sign first."""
        if not node.number:
            return "0"
        sign = "-" if node.number < 0 else ""
        number = abs(node.number)
        above = [(f, e) for f, e in node.factors if e > 0]
        below = [(f, -e) for f, e in node.factors if e < 0]
        if not below:
            written = [self.power(f, e) for f, e in above]
            if number != 1 or not above:
                written = [self.number(number), *written]
            return sign + self.times.join(written)
        rounded = number.denominator % 5 == 0 or max(number.as_integer_ratio()) > LONGEST
        top = number if rounded else Fraction(number.numerator)
        bottom = top / number
        return sign + self.quotient(Product(top, tuple(above)), Product(bottom, tuple(below)))

    def number(self, x: Fraction) -> str:
        """A positive number: a fraction where it is a simple one, else a decimal."""
        raise NotImplementedError

    def quotient(self, above: Product, below: Product) -> str:
        """A fraction."""
        raise NotImplementedError

    def power(self, factor: int | Sum, power: int) -> str:
        """A power of a generator or sum, in brackets where it needs them."""
        raise NotImplementedError

    def component(self, owner: str, axis: str) -> str:
        """A component of the vertical in the axes of a body; the owner is empty if there is one."""
        raise NotImplementedError

    def function(self, label: str, arguments: Sequence[str], *, single: bool = False) -> str:
        """Write a function, perhaps of a single symbol."""
        raise NotImplementedError

    def atom(self, k: int) -> str:
        """Write a generator."""
        atom = self.atoms[k]
        match atom.label:
            case "input":
                return self.names[atom.place[0]][atom.place[1]]
            case "sin" | "cos":
                angle, single = self.angle(atom)
                return self.function(atom.label, [angle], single=single)
            case "root":
                return self.function("sqrt", [str(atom.number)])
            case "pi":
                return self.pi
            case "name":
                return self.component(*atom.name)
        return self.function(atom.label.removesuffix(" of"), self.arguments(atom))

    def is_symbol(self, k: int) -> bool:
        """Return whether a generator is a single symbol."""
        return self.atoms[k].label in ("input", "name", "pi", "root")

    def angle(self, atom: Generator) -> tuple[str, bool]:
        """Write what a sine or cosine is of; return whether that is a single symbol."""
        ordered = sorted(atom.angle, key=lambda term: rank(self.atoms, term[0]))
        terms = [Product(x, ((g, 1),)) for g, x in ordered]
        single = len(terms) == 1 and terms[0].number == 1
        return self.write(Sum(positive_first(terms))), single

    def arguments(self, atom: Generator) -> list[str]:
        """Write the arguments of a function."""
        assert self.layout is not None
        return [self.write(self.layout.ratio(Ratio(a, b))) for a, b in atom.arguments]


class LatexWriter(FractionWriter):
    """Writes LaTeX."""

    times: ClassVar[str] = r" \, "
    pi: ClassVar[str] = r"\pi"

    def number(self, x: Fraction) -> str:
        """Write a positive number."""
        return latex_number(x)

    def quotient(self, above: Product, below: Product) -> str:
        """A fraction."""
        return rf"\frac{{{self.write(above)}}}{{{self.write(below)}}}"

    def power(self, factor: int | Sum, power: int) -> str:
        """A power."""
        exponent = "" if power == 1 else f"^{{{power}}}"
        if isinstance(factor, Sum):
            return rf"\left({self.write(factor)}\right){exponent}"
        atom, text = self.atoms[factor], self.atom(factor)
        name = LATEX_FUNCTIONS.get(atom.label)
        if name and exponent:  # \sin^{2} x
            return text.replace(name, name + exponent, 1)
        if not exponent or self.is_symbol(factor) or atom.label == "fabs":
            return raised(text, exponent)
        return rf"\left({text}\right){exponent}"

    def component(self, owner: str, axis: str) -> str:
        """A component of the vertical."""
        of = rf"\mathrm{{{owner}}}," if owner else ""
        return rf"{self.vertical}_{{{of}{axis}}}"

    def function(self, label: str, arguments: Sequence[str], *, single: bool = False) -> str:
        """A function."""
        match label:
            case "sqrt":
                return rf"\sqrt{{{arguments[0]}}}"
            case "fabs":
                return rf"\left|{arguments[0]}\right|"
            case "pow":
                return rf"\left({arguments[0]}\right)^{{{arguments[1]}}}"
            case label if label in RELATIONS:
                return rf"\left[{arguments[0]} {RELATIONS[label]} {arguments[1]}\right]"
        name = (LATEX_FUNCTIONS | LATEX_OPERATORS).get(label, rf"\operatorname{{{label}}}")
        return f"{name} {arguments[0]}" if single else rf"{name}\left({', '.join(arguments)}\right)"


class TextWriter(FractionWriter):
    """Writes text with the model's own names."""

    def number(self, x: Fraction) -> str:
        """A positive number."""
        if x.denominator == 1 or _is_simple(x):
            return str(x)
        return f"{float(x):.{DIGITS}g}"

    def quotient(self, above: Product, below: Product) -> str:
        """A fraction."""
        over, under = self.write(above), self.write(below)
        over = over if re.fullmatch(r"[^+/-]+", over) else f"({over})"
        return f"{over} / {under if re.fullmatch(r'[^ +/-]+', under) else f'({under})'}"

    def power(self, factor: int | Sum, power: int) -> str:
        """A power."""
        text = f"({self.write(factor)})" if isinstance(factor, Sum) else self.atom(factor)
        return text if power == 1 else f"{text}^{power}"

    def component(self, owner: str, axis: str) -> str:
        """A component of the vertical."""
        return ".".join(filter(None, (self.vertical, owner, axis)))

    def function(self, label: str, arguments: Sequence[str], *, single: bool = False) -> str:
        """A function."""
        text = ", ".join(arguments)
        return f"|{text}|" if label == "fabs" else f"{label}({text})"


def raised(symbol: str, exponent: str) -> str:
    """A symbol with an exponent; one that has one already stays whole."""
    return f"{{{symbol}}}{exponent}" if exponent and "^" in symbol else symbol + exponent


def _is_simple(x: Fraction) -> bool:
    return x.denominator in DENOMINATORS and x.numerator < LARGEST


def latex_number(x: Fraction) -> str:
    """A number with few digits: integers and simple fractions exactly, others rounded."""
    sign, x = "-" if x < 0 else "", abs(x)
    if x.denominator == 1 and x < 10**DIGITS:
        return f"{sign}{x}"
    if _is_simple(x):
        return rf"{sign}\tfrac{{{x.numerator}}}{{{x.denominator}}}"
    digits, _, exponent = f"{float(x):.{DIGITS}g}".partition("e")
    if not exponent:
        return sign + digits
    power = rf"10^{{{int(exponent)}}}"
    return sign + (power if digits == "1" else rf"{digits} \cdot {power}")
