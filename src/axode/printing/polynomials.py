r"""A tape as polynomials in few atoms, collected for reading.

An atom is an input, a function of polynomials, or a sum that is used as a whole. Short products are
multiplied out so that like terms meet and cancel, long ones are kept as they are; what is used
often or grows long becomes an atom, which LaTeX then gives a name.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from axode.numerics.tolerances import ROUNDING
from axode.printing.exact import ROOTS, Generator, exact_number

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape

MULTIPLIED_OUT = 4  # terms up to which a product of sums is expanded
LONGEST_SUM = 8  # terms of a sum before a part of it becomes an atom
SHARED_WEIGHT = 4  # symbols in a value used twice before it becomes an atom
LARGEST = 10**30  # common denominator that is taken out of a sum

Monomial = tuple[tuple[int, int], ...]  # atoms and their exponents; () is one
Polynomial = dict[Monomial, Fraction]
Frozen = tuple[tuple[Monomial, Fraction], ...]
ONE = Fraction(1)


class Polynomials:
    """The results of a tape, and the atoms they are made of."""

    def __init__(self, tape: Tape) -> None:
        self.atoms: list[Generator] = []
        self._numbers: dict[Generator, int] = {}
        self.results = self._results(tape)

    def _results(self, tape: Tape) -> list[Polynomial]:
        from axode.codegen.tape.operations import ARITY, Kind

        kinds = [Kind(kind) for kind in tape.kinds]
        operands = [row[: ARITY[k]].tolist() for k, row in zip(kinds, tape.operands, strict=True)]
        uses = Counter(v for row in operands for v in row)
        values: list[Polynomial] = []
        for number, (kind, own) in enumerate(zip(kinds, operands, strict=True)):
            first, second, _ = tape.operands[number].tolist()
            if kind == Kind.INPUT:
                value = self._single(Generator("input", place=(first, second)))
            elif kind == Kind.CONSTANT:
                value = self._constant(float(tape.constants[first]))
            else:
                value = self._apply(kind.label, [values[v] for v in own])
            if uses[number] > 1 and weight(value) > SHARED_WEIGHT:
                value = self._whole(value)
            values.append(value)
        return [values[int(v)] for v in tape.results]

    def _apply(self, label: str, arguments: list[Polynomial]) -> Polynomial:
        match label:
            case "add":
                return self._add(arguments[0], arguments[1])
            case "sub":
                return self._add(arguments[0], scale(arguments[1], -ONE))
            case "neg":
                return scale(arguments[0], -ONE)
            case "mul":
                return self._multiply(*arguments)
            case "div":
                return self._divide(*arguments)
            case "sin" | "cos":
                return self._turned(label, arguments[0])
        return self._single(Generator(label, arguments=tuple(frozen(a) for a in arguments)))

    def _single(self, atom: Generator) -> Polynomial:
        if atom not in self._numbers:
            self._numbers[atom] = len(self.atoms)
            self.atoms.append(atom)
        return {((self._numbers[atom], 1),): ONE}

    def _constant(self, x: float) -> Polynomial:
        """A rounded number as what it was: a fraction, perhaps times a root or a power of pi."""
        found = exact_number(x)
        if found is None or not found[0]:
            return constant(Fraction(x))
        fraction, k, power = found
        value = constant(fraction)
        for prime in ROOTS:
            if k % prime == 0:
                value = self._multiply(value, self._single(Generator("root", number=prime)))
        if power:
            (((pi, _),),) = self._single(Generator("pi"))
            value = {multiply(monomial, ((pi, power),)): x for monomial, x in value.items()}
        return value

    def _whole(self, value: Polynomial) -> Polynomial:
        """What the terms of a sum share, times the rest as one atom; a single term as it is."""
        if len(value) < 2:
            return value
        number, shared = content(frozen(value))
        rest = divided(frozen(value), number, shared)
        if rest[0][1] < 0:
            number, rest = -number, frozen(scale(dict(rest), -ONE))
        (atom,) = self._single(Generator("sum", arguments=(rest,)))
        return {multiply(atom, shared): number}

    def _add(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if len(a) + len(b) > LONGEST_SUM and min(len(a), len(b)) > 0:
            shared = len(a.keys() & b.keys())
            if len(a) + len(b) - 2 * shared > LONGEST_SUM:
                a, b = (self._whole(a), b) if len(a) >= len(b) else (a, self._whole(b))
        return self._pythagoras(add(a, b))

    def _multiply(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if not a or not b:
            return {}
        if len(a) * len(b) > MULTIPLIED_OUT and not (is_number(a) or is_number(b)):
            a, b = (self._whole(a), b) if len(a) >= len(b) else (a, self._whole(b))
            if len(a) * len(b) > MULTIPLIED_OUT:
                a, b = self._whole(a), self._whole(b)
        product: Polynomial = {}
        for left, x in a.items():
            for right, y in b.items():
                product = add(product, self._without_squares(multiply(left, right), x * y))
        return self._pythagoras(product)

    def _without_squares(self, monomial: Monomial, number: Fraction) -> Polynomial:
        """A term with roots of numbers at most once, and above."""
        kept = []
        for atom, exponent in monomial:
            k = self.atoms[atom].number
            if k:
                number *= Fraction(k) ** (exponent // 2)
                exponent %= 2
            if exponent:
                kept.append((atom, exponent))
        return {tuple(kept): number}

    def _divide(self, a: Polynomial, b: Polynomial) -> Polynomial:
        if not b:
            return self._single(Generator("div", arguments=(frozen(a), frozen(b))))
        ((monomial, number),) = self._whole(b).items()
        return self._multiply(a, {inverse(monomial): 1 / number})

    def _turned(self, label: str, angle: Polynomial) -> Polynomial:
        """Sine and cosine with constant quarter turns taken out of the angle."""
        pi = ((self._numbers.get(Generator("pi"), -1), 1),)
        quarters = 2 * angle.get(pi, Fraction(0))
        whole = round(quarters)
        if quarters != whole:
            return self._single(Generator(label, arguments=(frozen(angle),)))
        rest = {monomial: number for monomial, number in angle.items() if monomial != pi}
        turns = (whole + (label == "cos")) % 4  # sin(x), cos(x), -sin(x), -cos(x)
        if not rest:
            return constant(Fraction((0, 1, 0, -1)[turns]))
        function = self._single(Generator("cos" if turns % 2 else "sin", arguments=(frozen(rest),)))
        return scale(function, -ONE if turns >= 2 else ONE)

    def _pythagoras(self, value: Polynomial) -> Polynomial:
        """Equal multiples of sine squared and cosine squared become one term."""
        for monomial in list(value):
            for position, (atom, exponent) in enumerate(monomial):
                if self.atoms[atom].label != "sin" or exponent < 2 or monomial not in value:
                    continue
                rest = (*monomial[:position], (atom, exponent - 2), *monomial[position + 1 :])
                rest = tuple(factor for factor in rest if factor[1])
                partner = self._numbers.get(Generator("cos", arguments=self.atoms[atom].arguments))
                if partner is None:
                    continue
                other = multiply(rest, ((partner, 2),))
                a, b = value[monomial], value.get(other, Fraction(0))
                if abs(a - b) <= ROUNDING * abs(a):
                    pair = {monomial: -a, other: -b}
                    value = add(add(value, pair), {rest: a})
        return value

    @cached_property
    def reachable(self) -> Counter[int]:
        """How often each atom is written, by what the results and other atoms say."""
        count: Counter[int] = Counter()
        waiting = [atom for poly in self.results for monomial in poly for atom, _ in monomial]
        while waiting:
            atom = waiting.pop()
            count[atom] += 1
            if count[atom] == 1:
                waiting += members(self.atoms[atom])
        return count


def members(atom: Generator) -> Iterable[int]:
    """Atoms that the arguments of an atom are made of."""
    return (k for poly in atom.arguments for monomial, _ in poly for k, _ in monomial)


def constant(number: Fraction) -> Polynomial:
    """A number."""
    return {(): number} if number else {}


def is_number(value: Polynomial) -> bool:
    """Return whether nothing but a number is left."""
    return value.keys() <= {()}


def scale(value: Polynomial, number: Fraction) -> Polynomial:
    """Number times value."""
    return value if number == 1 else {m: number * x for m, x in value.items()}


def add(a: Polynomial, b: Polynomial) -> Polynomial:
    """Add two polynomials; terms that cancel are removed."""
    total = dict(a)
    for monomial, number in b.items():
        old = total.get(monomial, Fraction(0))
        if abs(old + number) <= ROUNDING * abs(number):
            total.pop(monomial, None)
        else:
            total[monomial] = old + number
    return total


def multiply(a: Monomial, b: Monomial) -> Monomial:
    """Product of two monomials."""
    exponents = dict(a)
    for atom, exponent in b:
        exponents[atom] = exponents.get(atom, 0) + exponent
    return tuple(sorted((atom, e) for atom, e in exponents.items() if e))


def inverse(monomial: Monomial) -> Monomial:
    """One over a monomial."""
    return tuple((atom, -e) for atom, e in monomial)


def content(poly: Frozen) -> tuple[Fraction, Monomial]:
    """Number and factors that the terms of a polynomial share, denominators of most terms too."""
    exponents = [dict(monomial) for monomial, _ in poly]
    shared = []
    for atom in sorted({a for own in exponents for a in own}):
        least = min(own.get(atom, 0) for own in exponents)
        if least > 0 or 2 * sum(own.get(atom, 0) < 0 for own in exponents) > len(poly):
            shared.append((atom, least))
    sizes = {abs(x) for _, x in poly}
    above, below = zip(*(x.as_integer_ratio() for x in sizes), strict=True)
    number = ONE
    common = math.lcm(*below)
    short = common < LARGEST and all(n % 5 for n in below)
    if len(sizes) == 1 or (short and len({n == 1 for n in below}) == 1):
        number = Fraction(math.gcd(*above), common)
    return -number if all(x < 0 for _, x in poly) else number, tuple(shared)


def divided(poly: Frozen, number: Fraction, monomial: Monomial) -> Frozen:
    """A polynomial over a number and a monomial."""
    return frozen({multiply(m, inverse(monomial)): x / number for m, x in poly})


def frozen(value: Polynomial) -> Frozen:
    """Return a form that can be compared and hashed."""
    return tuple(sorted(value.items()))


def weight(value: Polynomial) -> int:
    """Count the symbols that it takes to write a polynomial."""
    return sum(
        len(monomial) + (abs(number) != 1 or not monomial) for monomial, number in value.items()
    )
