"""Tapes of sums, products and quotients on other numbers: complex ones and truncated series.

A real straight-line function that is rational means the same thing for any numbers that can be
added, multiplied and divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import Formula, Vector
from axode.codegen.tape.operations import ARITY, Kind
from axode.codegen.tape.tape import Tape
from axode.errors import InvalidArgument

Indices = npt.NDArray[np.intp]
RATIONAL = (Kind.INPUT, Kind.CONSTANT, Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.NEG)


class Number(Protocol):
    """What a rational tape can be evaluated on."""

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def __mul__(self, other: Self) -> Self: ...
    def __truediv__(self, other: Self) -> Self: ...
    def __neg__(self) -> Self: ...


T = TypeVar("T", bound=Number)
_MEANING: dict[Kind, Callable[..., Any]] = {
    Kind.ADD: lambda a, b: a + b,
    Kind.SUB: lambda a, b: a - b,
    Kind.MUL: lambda a, b: a * b,
    Kind.DIV: lambda a, b: a / b,
    Kind.NEG: lambda a: -a,
}


def check_rational(tape: Tape, name: str) -> None:
    """Check that a tape is rational.

    Raises:
        InvalidArgument: listing the operations that are not.
    """
    others = sorted({Kind(kind).label for kind in tape.kinds.tolist()} - _LABELS)
    if others:
        raise InvalidArgument(
            f"family '{name}' uses {', '.join(others)}; polynomials are made of + - * / and "
            "constants.\n  Replace sines and cosines of an angle by rational functions of the "
            "tangent of its half, and roots by further unknowns."
        )


_LABELS = {kind.label for kind in RATIONAL}


def evaluate_rational(
    tape: Tape, arguments: Sequence[Sequence[T]], constant: Callable[[float], T]
) -> list[T]:
    """Evaluate a rational tape.

    Args:
        tape: Sums, differences, products, quotients.
        arguments: Elements of each input.
        constant: Makes a number of a real one.
    """
    numbers: list[T] = []
    for kind, row in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
        if kind == Kind.INPUT:
            numbers.append(arguments[row[0]][row[1]])
        elif kind == Kind.CONSTANT:
            numbers.append(constant(float(tape.constants[row[0]])))
        else:
            operands = (numbers[i] for i in row[: ARITY[Kind(kind)]])
            numbers.append(_MEANING[Kind(kind)](*operands))
    return [numbers[i] for i in tape.results.tolist()]


@dataclass(frozen=True)
class LevelOperations:
    """Operations of one kind whose operands are all known: they can be done together.

    Attributes:
        kind: What they do.
        results: Their places among the tape's values.
        operands: Places of the first operands, and of the second ones if there are any.
    """

    kind: Kind
    results: Indices
    operands: tuple[Indices, ...]

    def apply(self, values: Any) -> Any:
        """Return the results for values by place."""
        return _MEANING[self.kind](*(values[places] for places in self.operands))


@lru_cache(maxsize=256)
def tape_levels(tape: Tape) -> tuple[LevelOperations, ...]:
    """Operations of a rational tape in an order in which few calls of NumPy do all of them."""
    depth = np.zeros(len(tape.kinds), dtype=np.intp)
    for number, (kind, row) in enumerate(zip(tape.kinds.tolist(), tape.operands, strict=True)):
        if kind > Kind.CONSTANT:
            depth[number] = 1 + depth[row[: ARITY[Kind(kind)]]].max()
    made = []
    for level in range(1, int(depth.max(initial=0)) + 1):
        here = np.flatnonzero(depth == level)
        for kind in np.unique(tape.kinds[here]).tolist():
            results = here[tape.kinds[here] == kind]
            operands = tape.operands[results, : ARITY[Kind(kind)]].astype(np.intp)
            made.append(LevelOperations(Kind(kind), results, tuple(operands.T)))
    return tuple(made)


def filled_leaves(tape: Tape, arguments: Sequence[Any], kind: npt.DTypeLike) -> Any:
    """Array for the values of a tape, (..., values, points), with inputs and constants in place.

    Args:
        tape: The tape.
        arguments: Its arguments, (..., points, elements) each.
        kind: Kind of the numbers.
    """
    *batch, points, _ = arguments[0].shape
    made = np.empty((*batch, len(tape.kinds), points), dtype=kind)
    leaves = np.flatnonzero(tape.kinds == Kind.INPUT)
    numbers, elements = tape.operands[leaves, 0], tape.operands[leaves, 1].astype(np.intp)
    for number, given in enumerate(arguments):
        own = numbers == number
        made[..., leaves[own], :] = np.swapaxes(given, -1, -2)[..., elements[own], :]
    leaves = np.flatnonzero(tape.kinds == Kind.CONSTANT)
    made[..., leaves, :] = tape.constants[tape.operands[leaves, 0].astype(np.intp), np.newaxis]
    return made


@dataclass(frozen=True)
class Complex:
    """A complex value of a tape under construction."""

    re: Formula
    im: Formula

    def __add__(self, other: Complex) -> Complex:
        return Complex(self.re + other.re, self.im + other.im)

    def __sub__(self, other: Complex) -> Complex:
        return Complex(self.re - other.re, self.im - other.im)

    def __mul__(self, other: Complex) -> Complex:
        if self == other:
            return Complex(self.re * self.re - self.im * self.im, 2.0 * (self.re * self.im))
        return Complex(
            self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re
        )

    def __truediv__(self, other: Complex) -> Complex:
        if other.im.is_zero():
            return Complex(self.re / other.re, self.im / other.re)
        return self * other.inverse()

    def __neg__(self) -> Complex:
        return Complex(-self.re, -self.im)

    def inverse(self) -> Complex:
        """Return the reciprocal."""
        scale = 1.0 / self.square()
        return Complex(self.re * scale, -(self.im * scale))

    def square(self) -> Formula:
        """Return the square of its absolute value."""
        return self.re * self.re + self.im * self.im

    def scaled(self, factor: Formula | float) -> Complex:
        """Return a real multiple of it."""
        return Complex(self.re * factor, self.im * factor)

    def then(self, flag: Formula, other: Complex) -> Complex:
        """Return it where a flag is up, else the other one."""
        return Complex(flag.then(self.re, other.re), flag.then(self.im, other.im))

    def real(self, value: float) -> Complex:
        """Return a real number as a value of the same tape."""
        zero = self.re.like(0.0)
        return Complex(zero if value == 0.0 else self.re.like(value), zero)


def pairs(vector: Vector) -> list[Complex]:
    """Complex numbers of a vector that holds real and imaginary parts in turn."""
    return [Complex(a, b) for a, b in zip(vector[::2], vector[1::2], strict=True)]


def parts(numbers: Sequence[Complex]) -> Vector:
    """Real and imaginary parts in turn, as NumPy lays complex numbers out."""
    return [part for number in numbers for part in (number.re, number.im)]


@dataclass(frozen=True)
class Series:
    """A power series of complex values, cut after as many terms as it has."""

    terms: tuple[Complex, ...]

    def __add__(self, other: Series) -> Series:
        return Series(tuple(a + b for a, b in zip(self.terms, other.terms, strict=True)))

    def __sub__(self, other: Series) -> Series:
        return Series(tuple(a - b for a, b in zip(self.terms, other.terms, strict=True)))

    def __mul__(self, other: Series) -> Series:
        return Series(tuple(self._product(other, k) for k in range(len(self.terms))))

    def __truediv__(self, other: Series) -> Series:
        inverse = other.terms[0].inverse()
        made: list[Complex] = []
        for k, term in enumerate(self.terms):
            for i in range(k):
                term = term - made[i] * other.terms[k - i]
            made.append(term * inverse)
        return Series(tuple(made))

    def __neg__(self) -> Series:
        return Series(tuple(-a for a in self.terms))

    def real(self, value: float) -> Series:
        """Return a real number as a series of the same tape."""
        first = self.terms[0]
        return Series((first.real(value), *[first.real(0.0)] * (len(self.terms) - 1)))

    def _product(self, other: Series, k: int) -> Complex:
        """Return term k of a product; the terms of a square come in equal pairs."""
        if self == other:
            total = self.terms[k // 2] * self.terms[k // 2] if k % 2 == 0 else None
            for i in range((k + 1) // 2):
                twice = (self.terms[i] * self.terms[k - i]).scaled(2.0)
                total = twice if total is None else total + twice
            assert total is not None
            return total
        total = self.terms[0] * other.terms[k]
        for i in range(1, k + 1):
            total = total + self.terms[i] * other.terms[k - i]
        return total
