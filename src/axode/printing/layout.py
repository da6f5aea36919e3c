r"""Lay out exact fractions: the shortest of several ways to write each, as LaTeX or as text.

A fraction is factored; sums inside are written out or split by the factor that most of their terms
share; $\sin^2$ and $\cos^2$ are exchanged, or terms brought to the same degree in them, where that
makes factors appear.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar, cast

from axode.printing.exact import ExactTape, Generator, Poly, Ratio, as_fraction

PARAMETERS = 4  # number of the argument that they are
EFFORT = 6_000  # terms of sums that are tried; then they are written as they are
EXCHANGED = 40  # terms of a sum up to which squares of sines and cosines are exchanged
FACTORED = 60  # terms of a sum up to which its factors are sought
LARGEST = 60_000  # terms that a sum of its degrees could have, up to which factors are sought
EFFORT_OF_ONE = 2_000  # the same, of one entry
SPLIT = 60  # terms of a sum up to which shared factors are sought
TRIED = 4  # generators by which a sum may be split, those of most terms


@dataclass(frozen=True)
class Sum:
    """Terms to add."""

    terms: tuple[Product, ...]

    @cached_property
    def cost(self) -> int:
        """Symbols that it takes to write it: letters, numbers, brackets."""
        return sum(term.cost for term in self.terms) + len(self.terms) - 1


@dataclass(frozen=True)
class Product:
    """A number times powers of generators and sums."""

    number: Fraction
    factors: tuple[tuple[int | Sum, int], ...]

    @cached_property
    def cost(self) -> int:
        """Symbols that it takes to write it."""
        total = int(abs(self.number) != 1 or not self.factors)
        for factor, power in self.factors:
            total += 1 if isinstance(factor, int) else factor.cost + 1
            total += abs(power) != 1
        return total


ZERO = Product(Fraction(0), ())
cost = attrgetter("cost")


Written = TypeVar("Written", Product, Sum)


def _once(
    way: Callable[[FractionLayout, Poly], Written],
) -> Callable[[FractionLayout, Poly], Written]:
    """Write every polynomial in this way once, unless effort ran out meanwhile."""

    def again(self: FractionLayout, poly: Poly) -> Written:
        key = way.__name__, poly
        if key in self._written:
            return cast("Written", self._written[key])
        found = way(self, poly)
        if self._left >= 0:
            self._written[key] = found
        return found

    return again


class FractionLayout:
    """Chooses how to write the results of an exact tape."""

    def __init__(self, exact: ExactTape) -> None:
        self.exact, self.ring = exact, exact.ring
        self._written: dict[tuple[str, Poly], Any] = {}
        self._products: dict[Poly, Product] = {}
        self._left = self._total = EFFORT

    def ratio(self, value: Ratio) -> Product:
        """The shortest of the ways to write a fraction."""
        if value.is_zero:
            return ZERO
        above, below = self._roots_below(value.above, value.below)
        self._left = given = min(self._total, EFFORT_OF_ONE)
        written = _quotient(self._shortest(above), self._shortest(below))
        self._total -= given - self._left
        return written

    @_once
    def _shortest(self, poly: Poly) -> Product:
        """A polynomial in the powers of sines and cosines in which it is shortest."""
        return min(map(self._factored, self._forms(poly)), key=cost)

    def _roots_below(self, above: Poly, below: Poly) -> tuple[Poly, Poly]:
        """Write a root over what it is of as one over the root."""
        for k, atom in enumerate(self.exact.atoms):
            if atom.label != "sqrt" or len(below) == 1 or not all(m[k] for m in above.itermonoms()):
                continue
            rest, remainder = below.div(atom.arguments[0][0])
            if not remainder:
                above, below = above.quo(self.ring.gens[k]), rest * self.ring.gens[k]
        return above, below

    def matrix(self, values: Sequence[Ratio]) -> tuple[Product, list[Product]]:
        """Entries of a matrix, and what all of them share, 1 if that is nothing."""
        plain = [self.ratio(value) for value in values]
        some = [value for value in values if not value.is_zero]
        if len(some) < 2:
            return Product(Fraction(1), ()), plain
        if sum(len(value.above) for value in some) > SPLIT:
            return Product(Fraction(1), ()), plain
        above, below = some[0].above, some[0].below
        for value in some[1:]:
            above = self.exact.cofactors(above, value.above)[0]
            below = below * self.exact.cofactors(below, value.below)[2]
        content = [as_fraction(v.above.content()) / as_fraction(v.below.content()) for v in some]
        above, below = above.monic(), below.monic()
        shared = self.ratio(Ratio(above, below))
        number = content[0] if len({*content}) == 1 else Fraction(1)
        if shared.number < 0:
            above, shared = -above, Product(-shared.number, shared.factors)
        shared = Product(number * shared.number, shared.factors)
        if not shared.factors and shared.number in (1, -1):
            return Product(Fraction(1), ()), plain
        scale = self.ring.ground_new(self.ring.domain(number.numerator, number.denominator))
        inner = []
        for value in values:
            if value.is_zero:
                inner.append(ZERO)
                continue
            over, under = value.above * below, value.below * above * scale
            _, over, under = self.exact.cofactors(over, under)
            inner.append(self.ratio(Ratio(over.quo_ground(under.LC), under.monic())))
        if sum(node.number < 0 for node in inner) > sum(node.number > 0 for node in inner):
            shared = Product(-shared.number, shared.factors)
            inner = [_without_sign(Product(-node.number, node.factors)) for node in inner]
        if cost(shared) + sum(map(cost, inner)) < sum(map(cost, plain)):
            return shared, inner
        return Product(Fraction(1), ()), plain

    # polynomials -------------------------------------------------------------------------------

    def _forms(self, poly: Poly) -> list[Poly]:
        """Equal polynomials in other powers of sines, cosines and components of the vertical."""
        found = [poly]
        if len(poly) > EXCHANGED or self._left < 0:
            return found
        used = [k for k, e in enumerate(_degrees(poly)) if e]
        for n in self.exact.verticals:
            for k in (n[0], n[2]):
                others = 1 - sum(self.ring.gens[j] ** 2 for j in n if j != k)
                form = self.exact.reduce(poly, {((k, 2),): others})
                if form not in found:
                    found.append(form)
        for s, c in self._pairs(used):
            best = min(found, key=lambda form: cost(self._factored(form)))
            for form in (self._by_sine(best, s, c), self._of_one_degree(best, s, c)):
                if form is not None and form not in found:
                    found.append(form)
        return found

    def _pairs(self, used: Sequence[int]) -> list[tuple[int, int]]:
        """Sine and cosine of each angle of which one is used."""
        angles = {
            self.exact.atoms[k].angle: None
            for k in used
            if self.exact.atoms[k].label in ("sin", "cos")
        }
        return [self.exact.pair(angle) for angle in angles]

    def _by_sine(self, poly: Poly, s: int, c: int) -> Poly | None:
        """Squares of a cosine replaced by the sine's."""
        return self.exact.reduce(poly, {((c, 2),): 1 - self.ring.gens[s] ** 2})

    def _of_one_degree(self, poly: Poly, s: int, c: int) -> Poly | None:
        """All terms brought to the same degree in a sine and cosine; None if they cannot be."""
        degrees = {m[s] + m[c] for m, _ in poly.terms()}
        highest = max(degrees)
        if len(degrees) == 1 or any((highest - d) % 2 for d in degrees) or highest > 4:
            return None
        one = self.ring.gens[s] ** 2 + self.ring.gens[c] ** 2
        total = self.ring.zero
        for monomial, number in poly.terms():
            missing = (highest - monomial[s] - monomial[c]) // 2
            total += self.ring.from_dict({monomial: number}) * one**missing
        return total

    def _factored(self, poly: Poly) -> Product:
        """A polynomial as a product of its factors."""
        if poly not in self._products:
            self._products[poly] = self._factors(poly)
        return self._products[poly]

    def _factors(self, poly: Poly) -> Product:
        self._left -= len(poly)
        if len(poly) == 1:
            return self._term(*poly.terms()[0])
        if len(poly) > FACTORED or _size(poly) > LARGEST or self._left < 0:
            monomial = tuple(min(column) for column in zip(*poly.itermonoms(), strict=True))
            rest = poly.quo(self.ring.from_dict({monomial: self.ring.domain.one}))
            shared = self._term(monomial, self.ring.domain.one)
            return self._in_order(_times(shared, self._power(rest, 1)))
        number, factors = self.exact.factors(poly)
        if number.denominator % 5 == 0:  # a decimal rather stands in front of the terms of a sum
            for k, (factor, power) in enumerate(factors):
                if len(factor) > 1 == power and any(abs(x) != 1 for x in factor.coeffs()):
                    scale = self.ring.domain(number.numerator, number.denominator)
                    factors[k], number = (factor * scale, 1), Fraction(1)
                    break
        made = Product(number, ())
        for factor, power in factors:
            made = _times(made, self._power(factor, power))
        return self._in_order(made)

    def _in_order(self, node: Product) -> Product:
        """Parameters first, sums last."""

        def rank(factor: tuple[int | Sum, int]) -> tuple[int, int]:
            return self._rank(factor[0]) if isinstance(factor[0], int) else (9, cost(factor[0]))

        return _without_sign(Product(node.number, tuple(sorted(node.factors, key=rank))))

    def _power(self, poly: Poly, power: int) -> Product:
        """A power of a polynomial, the first term of a sum positive."""
        if len(poly) == 1:
            term = self._term(*poly.terms()[0])
            return Product(term.number**power, tuple((f, e * power) for f, e in term.factors))
        inner, sign = self._sum(poly), 1
        if sum(term.number < 0 for term in inner.terms) * 2 > len(inner.terms):
            terms = [Product(-t.number, t.factors) for t in inner.terms]
            inner, sign = Sum(positive_first(terms)), (-1) ** power
        return Product(Fraction(sign), ((inner, power),))

    def _term(self, monomial: tuple[int, ...], number: Any) -> Product:
        used = sorted((k for k, e in enumerate(monomial) if e), key=self._rank)
        return Product(as_fraction(number), tuple((k, monomial[k]) for k in used))

    @_once
    def _sum(self, poly: Poly) -> Sum:
        """Terms of a polynomial, written out or collected, whichever is shorter."""
        terms = sorted((self._term(*term) for term in poly.terms()), key=self._order)
        plain = Sum(positive_first(terms))
        if len(poly) < 3:
            return plain
        count = Counter(k for monomial, _ in poly.terms() for k, e in enumerate(monomial) if e)
        tried = [k for k, n in count.most_common(TRIED) if n > 1]
        groups = self._groups(poly)
        if len(poly) > SPLIT or self._left < 0:
            groups, tried = groups[:1], [] if groups else tried[:1]
        made = [self._collected(poly, group) for group in groups]
        made += [self._split(poly, k) for k in tried]
        return min([plain, *made], key=cost)

    def _groups(self, poly: Poly) -> list[list[int]]:
        """Sets of parameters in which a sum is linear, as it is in masses and moments."""
        parameters = [
            k
            for k, degree in enumerate(_degrees(poly))
            if degree == 1 and self.exact.atoms[k].place[0] == PARAMETERS
        ]
        monomials = list(poly.itermonoms())
        together = {
            (a, b) for m in monomials for a in parameters if m[a] for b in parameters if m[b]
        }
        groups = []
        for first in parameters:
            group = [first]
            group += [k for k in parameters if all((k, g) not in together for g in group)]
            if len(group) > 1 and sorted(group) not in groups:
                groups.append(sorted(group))
        return sorted(groups, key=len, reverse=True)[:2]

    def _collected(self, poly: Poly, group: Sequence[int]) -> Sum:
        """Terms with each of some generators, that generator taken out, and the rest."""
        parts: dict[int, Poly] = {}
        for monomial, number in poly.terms():
            own = next((k for k in group if monomial[k]), -1)
            parts.setdefault(own, self.ring.zero)[monomial] = number
        rest = parts.pop(-1, None)
        write = self._shortest if len(poly) <= EXCHANGED else self._factored
        terms = [write(part) for part in parts.values()]
        terms += self._sum(rest).terms if rest else ()
        return Sum(positive_first(sorted(terms, key=self._order)))

    def _split(self, poly: Poly, k: int) -> Sum:
        """Terms with a generator, the generator taken out, and the rest."""
        with_it, rest = self.ring.zero, self.ring.zero
        for monomial, number in poly.terms():
            if monomial[k]:
                with_it[monomial] = number
            else:
                rest[monomial] = number
        parts = [self._factored(with_it)]
        if rest:
            other = self._sum(rest) if len(rest) > 1 else Sum((self._term(*rest.terms()[0]),))
            alone = self._factored(rest) if len(rest) > 1 else other.terms[0]
            parts += [alone] if cost(alone) < cost(other) else other.terms
        return Sum(positive_first(sorted(parts, key=self._order)))

    # order -------------------------------------------------------------------------------------

    def _rank(self, k: int) -> tuple[int, int]:
        return rank(self.exact.atoms, k)

    def _order(self, term: Product) -> tuple[Any, ...]:
        """Sort terms of inputs before sums, numbers last."""
        plain = [f for f, _ in term.factors if isinstance(f, int)]
        return not term.factors, len(plain) < len(term.factors), [self._rank(k) for k in plain]


def rank(atoms: Sequence[Generator], k: int) -> tuple[int, int]:
    """Roots, parameters, then coordinates and their functions, then sums, speeds and inputs."""
    atom = atoms[k]
    if atom.label == "input":
        return (2, 5, 6, 1, 0)[atom.place[0]], atom.place[1]
    return {"root": -1, "pi": -1, "sum": 4}.get(atom.label, 3), k


def _size(poly: Poly) -> int:
    """Terms that a polynomial of these degrees could have."""
    return math.prod(degree + 1 for degree in _degrees(poly))


def _degrees(poly: Poly) -> tuple[int, ...]:
    return tuple(max(column) for column in zip(*poly.itermonoms(), strict=True))


def positive_first(terms: Sequence[Product]) -> tuple[Product, ...]:
    """Put the first positive term first."""
    lead = next((term for term in terms if term.number > 0), terms[0])
    return (lead, *(term for term in terms if term is not lead))


def _without_sign(node: Product) -> Product:
    """Turn a sum with terms of both signs around rather than write a sign before it."""
    if node.number >= 0:
        return node
    for k, (factor, power) in enumerate(node.factors):
        if isinstance(factor, Sum) and power % 2 and any(t.number < 0 for t in factor.terms):
            terms = [Product(-term.number, term.factors) for term in factor.terms]
            turned = (Sum(positive_first(terms)), power)
            return Product(-node.number, (*node.factors[:k], turned, *node.factors[k + 1 :]))
    return node


def _times(a: Product, b: Product) -> Product:
    return Product(a.number * b.number, (*a.factors, *b.factors))


def _quotient(above: Product, below: Product) -> Product:
    over: dict[int | Sum, int] = {}
    for factors, sign in ((above.factors, 1), (below.factors, -1)):
        for factor, power in factors:
            over[factor] = over.get(factor, 0) + sign * power
    factors = tuple((factor, power) for factor, power in over.items() if power)
    return _without_sign(Product(above.number / below.number, factors))
