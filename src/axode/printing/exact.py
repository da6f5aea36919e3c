r"""The results of a tape as exact fractions of polynomials.

Numbers are read as what they were before rounding: decimals, fractions, roots, parts of pi. Sines,
cosines, roots and functions are generators of a ring, with the relations between them
($\sin^2 + \cos^2 = 1$, unit quaternions); products that make sines and cosines of sums of angles
are written as these, and components of the vertical in a body's axes as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from axode.numerics.tolerances import PRODUCT_ROUNDING

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape

MOST_TERMS = 300  # of one intermediate value
MOST_PASSES = 40  # over a polynomial, to apply the relations
EFFORT = 20_000  # terms of all values of a tape together
DIGITS = 10  # of a decimal that a description may hold
ULPS = 64  # by which a folded number may miss the one that was meant
ROOTS = (2, 3, 5)
OTHERS = 16  # generators: pi, verticals, halves of angles
MOST_TWISTED = 60  # terms of a value in which products of sines and cosines are looked for

Angle = tuple[tuple[int, Fraction], ...]  # generators of inputs and their multiples
Rule = tuple[tuple[int, int], ...]  # generators and exponents that are replaced together
Poly = Any  # sympy.polys.rings.PolyElement
Monomial = tuple[int, ...]


class TooLong(Exception):
    """The exact form grows beyond what can be read, or takes too long."""


@dataclass(frozen=True)
class Generator:
    """A generator: an input, a sine or cosine, a root, a function, a sum, or a named quantity.

    Attributes:
        label: "input", "sin", "cos", "root", "pi", "sqrt", "fabs", "name", or a function's name.
        place: Argument and element of an input.
        angle: What a sine or cosine is of.
        number: What a root is of.
        arguments: What a function or sum is of, as fractions or, of `Polynomials`, sums of terms;
            the definition of a named quantity.
        name: Name and component of a named quantity.
    """

    label: str
    place: tuple[int, int] = (0, 0)
    angle: Angle = ()
    number: int = 0
    arguments: tuple[Any, ...] = ()
    name: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Ratio:
    """A fraction of polynomials, without common factors."""

    above: Poly
    below: Poly

    @property
    def is_zero(self) -> bool:
        """True if it vanishes identically."""
        return not self.above


def as_fraction(x: Any) -> Fraction:
    """Return a coefficient of a polynomial, with or without gmpy2, as a fraction."""
    return Fraction(int(x.numerator), int(x.denominator))


@cache
def exact_number(x: float) -> tuple[Fraction, int, int] | None:
    """Read a rounded number as fraction * sqrt(k) * pi^e; None if it is none of these."""
    if x == 0.0 or abs(x) < PRODUCT_ROUNDING:
        decimal = Fraction(f"{x:.{DIGITS}g}")
        return (decimal, 1, 0) if float(decimal) == x else (Fraction(0), 1, 0)
    near = ULPS * math.ulp(x)
    decimal = Fraction(f"{x:.{DIGITS}g}")
    if abs(float(decimal) - x) <= near:
        return decimal, 1, 0
    for k, power in ((1, 0), (2, 0), (3, 0), (6, 0), (5, 0), (1, 1), (1, 2), (1, -1)):
        unit = math.sqrt(k) * math.pi**power
        for limit in (60, 2000):
            simple = Fraction(x / unit).limit_denominator(limit)
            if simple and abs(float(simple) * unit - x) <= near:
                return simple, k, power
        decimal = Fraction(f"{x / unit:.6g}")
        if unit != 1.0 and abs(float(decimal) * unit - x) <= near:
            return decimal, k, power
    return None


class ExactTape:
    """The results of a tape as fractions of polynomials in atoms.

    Args:
        tape: What to read.
        verticals: Elements of the first argument that are a unit quaternion, and the name of the
            vertical in the axes that it turns: quadruples of qw, qx, qy, qz.

    Raises:
        TooLong: if the polynomials become too long.
    """

    def __init__(
        self, tape: Tape, verticals: Iterable[tuple[str, tuple[int, int, int, int]]] = ()
    ) -> None:
        from sympy import QQ
        from sympy.polys.rings import ring

        self.exact = True  # no number had to be taken as its digits
        self.untwists = True
        self.ring = ring([f"g{k}" for k in range(_count_atoms(tape))], QQ)[0]
        self.atoms: list[Generator] = []
        self._numbers: dict[Any, int] = {}
        self._small_rings: dict[tuple[int, ...], Any] = {}
        self._rules: dict[Rule, Poly] = {}
        self.verticals: list[tuple[int, ...]] = []
        self.quaternions: list[tuple[int, int, int, int]] = []
        self.one = self.ring.one
        for name, places in verticals:
            self._add_vertical(name, places)
        self.results = self._results(tape)

    # atoms -------------------------------------------------------------------------------------

    def _generator(self, atom: Generator) -> int:
        key = (atom.label, atom.place, atom.angle, atom.number, atom.name, _key(atom.arguments))
        if key not in self._numbers:
            if len(self.atoms) >= self.ring.ngens:
                raise TooLong
            self._numbers[key] = len(self.atoms)
            self.atoms.append(atom)
        return self._numbers[key]

    def _atom(self, atom: Generator) -> Ratio:
        return Ratio(self.ring.gens[self._generator(atom)], self.one)

    def _add_vertical(self, name: str, places: tuple[int, int, int, int]) -> None:
        """Name the components of the vertical in the axes that a unit quaternion turns."""
        numbers = [self._generator(Generator("input", (0, k))) for k in places]
        w, x, y, z = (self.ring.gens[k] for k in numbers)
        components = (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * x**2 - 2 * y**2)
        made = []
        for axis, poly in zip("xyz", components, strict=True):
            atom = Generator("name", arguments=((poly, self.one),), name=(name, axis))
            made.append(self._generator(atom))
        n = [self.ring.gens[k] for k in made]
        kw, kx, ky, _ = numbers
        half = self._number(Fraction(1, 2))
        self._rules |= {
            ((made[1], 2),): 1 - n[0] ** 2 - n[2] ** 2,
            ((kw, 1), (kx, 1)): half * n[1] - y * z,
            ((kw, 1), (ky, 1)): x * z - half * n[0],
            ((kx, 2),): half * (1 - n[2]) - y**2,
            ((kw, 2),): half * (1 + n[2]) - z**2,
            ((kx, 1), (made[0], 1)): z * (1 - n[2]) - y * n[1],
            ((kw, 1), (made[0], 1)): z * n[1] - y * (1 + n[2]),
            ((kx, 1), (made[1], 1)): w * (1 - n[2]) + y * n[0],
            ((kw, 1), (made[1], 1)): x * (1 + n[2]) - z * n[0],
        }
        self.verticals.append(tuple(made))
        self.quaternions.append(places)

    def sine(self, label: str, angle: Angle) -> Poly:
        """The generator of a sine or cosine of an angle, its first multiple positive."""
        if not angle:
            return self.one * (label == "cos")
        sign = 1
        if angle[0][1] < 0:
            angle = tuple((k, -x) for k, x in angle)
            sign = -1 if label == "sin" else 1
        s, c = (self._generator(Generator(name, angle=angle)) for name in ("sin", "cos"))
        self._rules.setdefault(((s, 2),), 1 - self.ring.gens[c] ** 2)
        return sign * self.ring.gens[s if label == "sin" else c]

    # values ------------------------------------------------------------------------------------

    def _results(self, tape: Tape) -> list[Ratio]:
        from axode.codegen.tape.operations import ARITY, Kind

        values: list[Ratio] = []
        effort = 0
        for code, row in zip(tape.kinds, tape.operands.tolist(), strict=True):
            kind = Kind(code)
            if kind == Kind.INPUT:
                value = self._atom(Generator("input", (row[0], row[1])))
            elif kind == Kind.CONSTANT:
                value = self._constant(float(tape.constants[row[0]]))
            else:
                value = self._apply(kind.label, [values[v] for v in row[: ARITY[kind]]])
            size = len(value.above) + len(value.below)
            effort += size
            if size > MOST_TERMS or effort > EFFORT:
                raise TooLong
            values.append(value)
        return [values[int(v)] for v in tape.results]

    def _constant(self, x: float) -> Ratio:
        if not math.isfinite(x):
            raise TooLong
        found = exact_number(x)
        if found is None:
            self.exact = False
            return Ratio(self._number(Fraction(x)), self.one)
        fraction, k, power = found
        value = Ratio(self._number(fraction), self.one)
        for prime in ROOTS:
            if k % prime == 0:
                value = self.multiply(value, Ratio(self._root(prime), self.one))
        if power:
            pi = self._atom(Generator("pi")).above ** abs(power)
            pair = Ratio(pi, self.one) if power > 0 else Ratio(self.one, pi)
            value = self.multiply(value, pair)
        return value

    def _number(self, x: Fraction) -> Poly:
        from sympy import QQ

        return self.ring.ground_new(QQ(x.numerator, x.denominator))

    def _root(self, k: int) -> Poly:
        number = self._generator(Generator("root", number=k))
        self._rules.setdefault(((number, 2),), self._number(Fraction(k)))
        return self.ring.gens[number]

    def _apply(self, label: str, arguments: list[Ratio]) -> Ratio:
        a = arguments[0]
        match label:
            case "add" | "sub":
                return self.add(a, arguments[1], 1 if label == "add" else -1)
            case "neg":
                return Ratio(-a.above, a.below)
            case "mul":
                return self.multiply(a, arguments[1])
            case "div" if not arguments[1].is_zero:
                b = arguments[1]
                return self.multiply(a, Ratio(b.below, b.above))
            case "sin" | "cos":
                return self._turned(label, a)
            case "tan":
                s, c = self._turned("sin", a), self._turned("cos", a)
                return self.multiply(s, Ratio(c.below, c.above))
            case "sqrt":
                return self._square_root(a)
            case "pow" if (power := self._integer(arguments[1])) is not None and 0 <= power <= 4:
                value = Ratio(self.one, self.one)
                for _ in range(power):
                    value = self.multiply(value, a)
                return value
            case "fabs":
                return self._magnitude(a)
        return self._atom(Generator(label, arguments=tuple((x.above, x.below) for x in arguments)))

    def _integer(self, a: Ratio) -> int | None:
        if a.below == self.one and (not a.above or a.above.is_ground):
            number = as_fraction(a.above.LC) if a.above else Fraction(0)
            return int(number) if number.denominator == 1 else None
        return None

    def add(self, a: Ratio, b: Ratio, sign: int = 1) -> Ratio:
        """Sum or difference."""
        if a.below == b.below:
            return self._tidy(a.above + sign * b.above, a.below)
        g, x, y = self.cofactors(a.below, b.below)
        return self._tidy(a.above * y + sign * b.above * x, x * y * g)

    def multiply(self, a: Ratio, b: Ratio) -> Ratio:
        """Product."""
        if not a.above or not b.above:
            return Ratio(self.ring.zero, self.one)
        if len(a.above) * len(b.above) > 8 * MOST_TERMS:
            raise TooLong
        return self._tidy(a.above * b.above, a.below * b.below)

    def _tidy(self, above: Poly, below: Poly) -> Ratio:
        """Apply the relations, cancel common factors, write products of sines as sums."""
        above, below = self.reduce(above), self.reduce(below)
        if not above:
            return Ratio(above, self.one)
        if len(below) == 1:
            above, below = self._rationalize(above, below)
        if below != self.one:
            _, above, below = self.cofactors(above, below)
            lead = below.LC
            above, below = above.quo_ground(lead), below.quo_ground(lead)
        if self.untwists and 1 < len(above) <= MOST_TWISTED:
            above = self._untwist(above)
        return Ratio(above, below)

    def reduce(self, poly: Poly, rules: dict[Rule, Poly] | None = None) -> Poly:
        """Replace products of generators by what they are, as long as there are any."""
        rules = self._rules if rules is None else rules
        for _ in range(MOST_PASSES):
            kept, replaced = self.ring.zero, self.ring.zero
            for monomial, number in poly.terms():
                rule = next((r for r in rules if all(monomial[k] >= e for k, e in r)), None)
                if rule is None:
                    kept[monomial] = number
                else:
                    rest = list(monomial)
                    for k, e in rule:
                        rest[k] -= e
                    replaced += self.ring.from_dict({tuple(rest): number}) * rules[rule]
            if not replaced:
                return kept
            poly = kept + replaced
            if len(poly) > 4 * MOST_TERMS:
                raise TooLong
        raise TooLong

    def factors(self, poly: Poly) -> tuple[Fraction, list[tuple[Poly, int]]]:
        """Factors of a polynomial and their powers; sought among the generators that it has."""
        small, used = self._small_ring(poly)
        if not used:
            return as_fraction(poly.LC), []
        number, found = _factor(self._into(small, used, poly))
        back = [(self._back(factor, used), power) for factor, power in found]
        return as_fraction(number), back

    def cofactors(self, a: Poly, b: Poly) -> tuple[Poly, Poly, Poly]:
        """Greatest common divisor and what is left of both, sought as `factors` are."""
        small, used = self._small_ring(a, b)
        if len(a) == 1 or len(b) == 1 or not used:
            return a.cofactors(b)
        found = self._into(small, used, a).cofactors(self._into(small, used, b))
        g, x, y = (self._back(poly, used) for poly in found)
        return g, x, y

    def _small_ring(self, *polys: Poly) -> tuple[Any, list[int]]:
        """Return a ring of the generators that some polynomials have, and which they are."""
        from sympy.polys.rings import ring

        columns = zip(*(m for poly in polys for m in poly.itermonoms()), strict=True)
        used = [k for k, column in enumerate(columns) if any(column)]
        if (key := tuple(used)) not in self._small_rings:
            self._small_rings[key] = ring([f"g{k}" for k in used] or ["g"], self.ring.domain)[0]
        return self._small_rings[key], used

    def _into(self, small: Any, used: Sequence[int], poly: Poly) -> Poly:
        return small.from_dict({tuple(m[k] for k in used): x for m, x in poly.terms()})

    def _back(self, poly: Poly, used: Sequence[int]) -> Poly:
        made, zeros = {}, [0] * self.ring.ngens
        for monomial, x in poly.terms():
            whole = zeros.copy()
            for k, e in zip(used, monomial, strict=True):
                whole[k] = e
            made[tuple(whole)] = x
        return self.ring.from_dict(made)

    def _rationalize(self, above: Poly, below: Poly) -> tuple[Poly, Poly]:
        """Take roots out of a denominator of one term."""
        (monomial, _) = below.terms()[0]
        for g, e in enumerate(monomial):
            if e and self.atoms[g].label in ("root", "sqrt"):
                x = self.ring.gens[g]
                above, below = self.reduce(above * x), self.reduce(below * x)
        return above, below

    # functions ---------------------------------------------------------------------------------

    def _turned(self, label: str, a: Ratio) -> Ratio:
        """Sine or cosine of multiples of inputs and of parts of pi."""
        angle: dict[int, Fraction] = {}
        turn = Fraction(0)  # of pi
        for monomial, number in a.above.terms() if a.below == self.one else ():
            factors = [(k, e) for k, e in enumerate(monomial) if e]
            value = as_fraction(number)
            match [(self.atoms[k].label, k, e) for k, e in factors]:
                case [("input", k, 1)]:
                    angle[k] = value
                case [("pi", _, 1)]:
                    turn = value
                case _:
                    break
        else:
            if a.below == self.one and (12 * turn).denominator == 1:
                return self._sum_of_angles(label, tuple(sorted(angle.items())), turn)
        return self._atom(Generator(f"{label} of", arguments=((a.above, a.below),)))

    def _sum_of_angles(self, label: str, angle: Angle, turn: Fraction) -> Ratio:
        sine, cosine = self.sine("sin", angle), self.sine("cos", angle)
        s, c = (self._of_turn(name, turn) for name in ("sin", "cos"))
        made = sine * c + cosine * s if label == "sin" else cosine * c - sine * s
        return Ratio(self.reduce(made), self.one)

    def _of_turn(self, label: str, turn: Fraction) -> Poly:
        """Sine or cosine of a multiple of 15 degrees."""
        k = int(12 * (turn if label == "sin" else turn + Fraction(1, 2))) % 24
        sign = 1 if k < 12 else -1
        k = min(k % 12, 12 - k % 12)
        half = self._number(Fraction(1, 2))
        match k:
            case 0:
                value = self.ring.zero
            case 2:
                value = half
            case 3:
                value = half * self._root(2)
            case 4:
                value = half * self._root(3)
            case 6:
                value = self.one
            case _:
                r2, r3 = self._root(2), self._root(3)
                value = half * half * (r2 * r3 + (r2 if k == 5 else -r2))
        return sign * value

    def _square_root(self, a: Ratio) -> Ratio:
        if a.is_zero:
            return a
        fraction, factors = self.factors(self.reduce(a.above * a.below))
        sign = 1 if fraction > 0 else -1
        outer, inner = _squares_of(abs(fraction.numerator * fraction.denominator))
        value = Ratio(self._number(Fraction(outer, fraction.denominator)), a.below)
        rest = self.one * sign
        for poly, e in factors:
            for _ in range(e // 2):
                value = self.multiply(value, self._magnitude(Ratio(poly, self.one)))
            rest = rest * poly if e % 2 else rest
        for prime in ROOTS:
            if inner % prime == 0:
                inner //= prime
                value = self.multiply(value, Ratio(self._root(prime), self.one))
        rest = rest * inner
        if rest == self.one:
            return value
        g = self._generator(Generator("sqrt", arguments=((rest, self.one),)))
        self._rules.setdefault(((g, 2),), rest)
        return self.multiply(value, Ratio(self.ring.gens[g], self.one))

    def _magnitude(self, a: Ratio) -> Ratio:
        if a.below != self.one or a.above.is_ground:
            if a.above.is_ground and a.below.is_ground:
                return Ratio(abs(a.above.LC) * self.one if a.above else a.above, a.below)
            return self._atom(Generator("fabs", arguments=((a.above, a.below),)))
        poly = a.above if a.above.LC > 0 else -a.above
        if len(poly) == 1 and all(
            self.atoms[k].label in ("root", "sqrt", "pi")
            for k, e in enumerate(poly.terms()[0][0])
            if e
        ):
            return Ratio(poly, self.one)
        g = self._generator(Generator("fabs", arguments=((poly, self.one),)))
        self._rules.setdefault(((g, 2),), self.reduce(poly * poly))
        return Ratio(self.ring.gens[g], self.one)

    def _untwist(self, poly: Poly) -> Poly:
        """Write sin a cos b + cos a sin b as sin(a + b), wherever two terms are such a pair."""
        while True:
            found = self._twisted(poly)
            if found is None:
                return poly
            poly = self.reduce(poly + found)

    def _twisted(self, poly: Poly) -> Poly | None:
        """What to add to a polynomial to replace one pair of terms, None if there is no pair."""
        known: dict[Any, Any] = {}
        for monomial, number in poly.terms():
            turned = [
                k
                for k, e in enumerate(monomial)
                if e == 1 and self.atoms[k].label in ("sin", "cos")
            ]
            for i, a in enumerate(turned):
                for b in turned[i + 1 :]:
                    first, second = sorted((a, b), key=lambda k: self.atoms[k].angle)
                    one, two = self.atoms[first], self.atoms[second]
                    if one.angle == two.angle:
                        continue
                    rest = tuple(e - (k in (a, b)) for k, e in enumerate(monomial))
                    pair = (one.angle, two.angle)
                    labels = one.label[0] + two.label[0]
                    partner = {"sc": "cs", "cs": "sc", "cc": "ss", "ss": "cc"}[labels]
                    other = known.get((rest, pair, partner))
                    if other is not None and abs(other) == abs(number):
                        return self._untwisted(rest, pair, {labels: number, partner: other})
                    known[rest, pair, labels] = number
        return None

    def _untwisted(
        self, rest: Monomial, pair: tuple[Angle, Angle], numbers: dict[str, Any]
    ) -> Poly:
        a, b = pair
        factor = self.ring.from_dict({rest: self.ring.domain.one})
        old = sum(
            (
                number
                * factor
                * self.sine("sin" if label[0] == "s" else "cos", a)
                * self.sine("sin" if label[1] == "s" else "cos", b)
                for label, number in numbers.items()
            ),
            self.ring.zero,
        )
        if "sc" in numbers:  # sin a cos b +- cos a sin b
            sign = 1 if numbers["sc"] == numbers["cs"] else -1
            new = numbers["sc"] * factor * self.sine("sin", _sum(a, b, sign))
        else:  # cos a cos b -+ sin a sin b
            sign = 1 if numbers["cc"] == -numbers["ss"] else -1
            new = numbers["cc"] * factor * self.sine("cos", _sum(a, b, sign))
        return new - old

    def pair(self, angle: Angle) -> tuple[int, int]:
        """Generators of the sine and cosine of an angle."""
        return (
            self._generator(Generator("sin", angle=angle)),
            self._generator(Generator("cos", angle=angle)),
        )

    def generators(self, value: Ratio) -> set[int]:
        """Generators that a fraction is written with, those inside functions too."""
        found: set[int] = set()
        waiting = [value.above, value.below]
        while waiting:
            used = {k for m in waiting.pop().itermonoms() for k, e in enumerate(m) if e} - found
            found |= used
            for k in used:
                if self.atoms[k].label != "name":
                    waiting += [poly for pair in self.atoms[k].arguments for poly in pair]
        return found

    # derivatives -------------------------------------------------------------------------------

    def coriolis_forces(
        self, inertia: Sequence[Ratio], speeds: Sequence[Ratio], maps: Sequence[Ratio]
    ) -> list[Ratio]:
        """Rate of I nu less half the gradient of nu^T I nu, for speeds that are rates of some q.

        Args:
            inertia: I, row by row.
            speeds: nu.
            maps: Rates of all coordinates for unit nu, row by row.

        Raises:
            TooLong: also for functions of coordinates other than sines and cosines.
        """
        self.untwists = False  # products of sines have factors in common that sums have not
        n = len(speeds)
        slopes = [[self._along(value, maps[k::n]) for value in inertia] for k in range(n)]
        half = Ratio(self._number(Fraction(1, 2)), self.one)
        forces = []
        for i in range(n):
            total = Ratio(self.ring.zero, self.one)
            for j in range(n):
                for k in range(n):
                    slope = self.add(
                        slopes[k][i * n + j], self.multiply(half, slopes[i][j * n + k]), -1
                    )
                    if not slope.is_zero:
                        pair = self.multiply(speeds[j], speeds[k])
                        total = self.add(total, self.multiply(slope, pair))
            forces.append(total)
        return forces

    def _along(self, value: Ratio, direction: Sequence[Ratio]) -> Ratio:
        """Derivative of a fraction by all coordinates along a direction."""
        total = Ratio(self.ring.zero, self.one)
        for k, speed in enumerate(direction):
            if not speed.is_zero:
                above, below = self._slope(value.above, k), self._slope(value.below, k)
                over = self.reduce(above * value.below - value.above * below)
                part = self._tidy(over, self.reduce(value.below**2))
                total = self.add(total, self.multiply(part, speed))
        return total

    def _slope(self, poly: Poly, k: int) -> Poly:
        """Derivative of a polynomial by a coordinate."""
        total = self.ring.zero
        for g, degree in enumerate(_degrees(poly)):
            if not degree:
                continue
            atom, outer = self.atoms[g], poly.diff(self.ring.gens[g])
            if atom.label in ("sin", "cos"):
                own = (x for key, x in atom.angle if self.atoms[key].place == (0, k))
                inner = sum(own, Fraction(0))
                sine = self.sine("cos" if atom.label == "sin" else "sin", atom.angle)
                total += self._number(inner if atom.label == "sin" else -inner) * outer * sine
            elif atom.label == "input":
                total += outer * int(atom.place == (0, k))
            elif atom.label not in ("root", "pi"):
                raise TooLong
        return self.reduce(total)

    # numbers -----------------------------------------------------------------------------------

    def evaluate(self, inputs: Sequence[Sequence[float]]) -> Callable[[Poly], float]:
        """A function that evaluates polynomials at values of the tape's inputs."""
        values: list[float] = []

        def value(poly: Poly) -> float:
            return math.fsum(
                float(number) * math.prod(values[k] ** e for k, e in enumerate(monomial) if e)
                for monomial, number in poly.terms()
            )

        for atom in self.atoms:
            values.append(self._atom_value(atom, inputs, values, value))
        return value

    def _atom_value(
        self,
        atom: Generator,
        inputs: Sequence[Sequence[float]],
        values: list[float],
        value: Callable[[Poly], float],
    ) -> float:
        match atom.label:
            case "input":
                return float(inputs[atom.place[0]][atom.place[1]])
            case "sin" | "cos":
                angle = math.fsum(float(x) * values[k] for k, x in atom.angle)
                return math.sin(angle) if atom.label == "sin" else math.cos(angle)
            case "root":
                return math.sqrt(atom.number)
            case "pi":
                return math.pi
        from axode.codegen.tape.operations import MEANING, Kind

        own = [value(above) / value(below) for above, below in atom.arguments]
        if atom.label == "name":
            return own[0]
        label = atom.label.removesuffix(" of").upper()
        return float(MEANING[Kind[label]](*own))


def _degrees(poly: Poly) -> tuple[int, ...]:
    return tuple(max(column) for column in zip(*poly.itermonoms(), strict=True))


def _factor(poly: Poly) -> tuple[Any, list[tuple[Poly, int]]]:
    """Number and factors; one that is linear in a generator is what its two parts share, and one.

    For that the greatest common divisor is enough, and most polynomials here are.
    """
    ring = poly.ring
    if len(poly) == 1:
        ((monomial, number),) = poly.terms()
        return number, [(ring.gens[k], e) for k, e in enumerate(monomial) if e]
    columns = list(zip(*poly.itermonoms(), strict=True))
    linear = [k for k, own in enumerate(columns) if max(own) == 1 and not min(own)]
    if linear:
        k = min(linear, key=lambda k: sum(columns[k]))
        with_it = ring.from_dict({m: n for m, n in poly.terms() if m[k]})
        shared = with_it.quo(ring.gens[k]).gcd(poly - with_it)
        number, whole = poly.quo(shared).primitive()
        if whole.LC < 0:
            number, whole = -number, -whole
        more, found = _factor(shared)
        return number * more, [*found, (whole, 1)]
    number, found = poly.factor_list()
    return number, found


def _count_atoms(tape: Tape) -> int:
    """Most generators that a tape may need, sums of angles included."""
    from axode.codegen.tape.operations import LEAVES, Kind

    kinds = [Kind(kind) for kind in tape.kinds]
    turns = sum(kind in (Kind.SIN, Kind.COS, Kind.TAN) for kind in kinds)
    plain = {
        Kind.ADD,
        Kind.SUB,
        Kind.MUL,
        Kind.DIV,
        Kind.NEG,
        Kind.SIN,
        Kind.COS,
        Kind.TAN,
        *LEAVES,
    }
    functions = sum(kind not in plain for kind in kinds)
    inputs = sum(kind == Kind.INPUT for kind in kinds)
    return inputs + min(4 * turns, 80) + 2 * functions + len(ROOTS) + OTHERS


def _squares_of(n: int) -> tuple[int, int]:
    """Write n as outer^2 * inner, for small factors."""
    outer = 1
    for k in (2, 3, 5, 7, 11, 13):
        while n % (k * k) == 0:
            outer, n = outer * k, n // (k * k)
    if (root := math.isqrt(n)) ** 2 == n:
        return outer * root, 1
    return outer, n


def _sum(a: Angle, b: Angle, sign: int) -> Angle:
    total = dict(a)
    for k, x in b:
        total[k] = total.get(k, Fraction(0)) + sign * x
    return tuple(sorted((k, x) for k, x in total.items() if x))


def _key(value: Any) -> Any:
    """Something hashable that polynomials, and pairs of them, are equal by."""
    if isinstance(value, tuple):
        return tuple(_key(x) for x in value)
    return frozenset(value.items())
