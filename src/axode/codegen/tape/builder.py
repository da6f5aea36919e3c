"""Builds tapes: value numbering, constant folding and exact algebra.

A value is an index into the growing list of instructions. Asking twice for
the same operation on the same values gives the same index, so common
subexpressions never appear twice. All rewrites are exact in floating point
for finite values, up to the sign of zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import COMMUTATIVE, LOGICAL, MEANING, Kind

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape

Instruction = tuple[int, int, int, int]
NONE = -1

# Looked up once per instruction of every tape: as plain numbers, in a table and by name.
_INPUT, _CONSTANT, _NEG, _SELECT = map(int, (Kind.INPUT, Kind.CONSTANT, Kind.NEG, Kind.SELECT))
_ADD, _SUB, _MUL, _DIV = map(int, (Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV))
_COMMUTES = [kind in COMMUTATIVE for kind in Kind]

# Largest integer power that is multiplied out (at most 8 multiplications).
LARGEST_MULTIPLIED_POWER = 32


# Products of constants in this range cannot make an intermediate result over- or underflow
# that did not before, for any quantity of a machine.
MERGED_FACTORS = (2.0**-100, 2.0**100)


def _is_power_of_two(number: float) -> bool:
    return abs(math.frexp(number)[0]) == 0.5


class TapeBuilder:
    """Append-only list of instructions with value numbering."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        self.constants: list[float] = []
        self._values: dict[int, float] = {}  # of constants
        self._minus: dict[int, int] = {}  # x of each value that is -x
        self._special: set[int] = set()  # constants, negatives, choices: what sums simplify
        self._numbers: dict[Instruction, int] = {}
        self._constant_numbers: dict[bytes, int] = {}
        rules: dict[int, Callable[[Kind, int, int, int], int | None]] = {
            Kind.ADD: self._add,
            Kind.SUB: self._sub,
            Kind.MUL: self._mul,
            Kind.DIV: self._div,
            Kind.NEG: self._neg,
            Kind.POW: self._pow,
            Kind.SIN: self._odd,
            Kind.TAN: self._odd,
            Kind.ATAN: self._odd,
            Kind.COS: self._even,
            Kind.FABS: self._even,
            Kind.SELECT: self._select,
            Kind.AND: self._and,
        }
        self._rules = list(map(rules.get, range(len(Kind))))

    def input(self, argument: int, element: int) -> int:
        """Element of an input, elements counted in C order."""
        return self._number((Kind.INPUT, argument, element, NONE))

    def constant(self, value: float) -> int:
        """A number; equal bit patterns are one value."""
        bits = struct.pack("<d", value)
        known = self._constant_numbers.get(bits)
        if known is None:
            self.constants.append(value)
            known = self._number((Kind.CONSTANT, len(self.constants) - 1, NONE, NONE))
            self._values[known] = value
            self._special.add(known)
            self._constant_numbers[bits] = known
        return known

    def apply(self, kind: Kind, a: int, b: int = NONE, c: int = NONE) -> int:
        """The value of an operation, simplified where that is exact."""
        values, special = self._values, self._special
        if (  # no rule can hold, as in `replay`
            _ADD <= kind <= _DIV
            and a != b
            and a not in special
            and b not in special
            and (kind != _SUB or (_SUB, b, a, NONE) not in self._numbers)
        ):
            if a > b and kind in (_ADD, _MUL):
                a, b = b, a
            return self._number((kind, a, b, NONE))
        if a in values and (b < 0 or b in values) and (c < 0 or c in values):
            return self._fold(kind, a, b, c)
        if a > b >= 0 and _COMMUTES[kind]:
            a, b = b, a
        rule = self._rules[kind]
        if rule is not None:
            simpler = rule(kind, a, b, c)
            if simpler is not None:
                return simpler
        return self._number((kind, a, b, c))

    def value(self, number: int) -> float | None:
        """The number behind a value, if it is a constant."""
        return self._values.get(number)

    def replay(self, tape: Tape, arguments: Sequence[Sequence[int]]) -> list[int]:
        """A tape's operations again on other values; gives its results."""
        known, special, constants = self._numbers, self._special, tape.constants.tolist()
        numbers: list[int] = []
        for kind, (a, b, c) in zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True):
            if kind == _INPUT:
                numbers.append(arguments[a][b])
                continue
            if kind == _CONSTANT:
                numbers.append(self.constant(constants[a]))
                continue
            a, b, c = numbers[a], numbers[b] if b >= 0 else b, numbers[c] if c >= 0 else c
            # `apply` without its rules, where none of them can hold
            if (
                _ADD <= kind <= _DIV
                and a != b
                and a not in special
                and b not in special
                and (kind != _SUB or (_SUB, b, a, NONE) not in known)
            ):
                if a > b and kind in (_ADD, _MUL):
                    a, b = b, a
                instruction = (kind, a, b, NONE)
                number = known.get(instruction)
                if number is None:
                    number = known[instruction] = len(self.instructions)
                    self.instructions.append(instruction)
                numbers.append(number)
            else:
                numbers.append(self.apply(kind, a, b, c))  # type: ignore[arg-type]
        return [numbers[i] for i in tape.results.tolist()]

    def _number(self, instruction: Instruction) -> int:
        known = self._numbers.get(instruction)
        if known is None:
            known = self._numbers[instruction] = len(self.instructions)
            self.instructions.append(instruction)
            if instruction[0] == _NEG:
                self._minus[known] = instruction[1]
                self._special.add(known)
            elif instruction[0] == _SELECT:
                self._special.add(known)
        return known

    def _fold(self, kind: Kind, *operands: int) -> int:
        numbers = [self.value(v) for v in operands if v != NONE]
        with np.errstate(all="ignore"):
            folded = MEANING[kind](*(np.float64(x) for x in numbers if x is not None))
        return self.constant(float(folded))

    def _add(self, _: Kind, a: int, b: int, __: int) -> int | None:
        if self._values.get(a) == 0:
            return b
        if self._values.get(b) == 0:
            return a
        if a == b:
            return self.apply(Kind.MUL, a, self.constant(2.0))
        minus_a, minus_b = self._minus.get(a, NONE), self._minus.get(b, NONE)
        if minus_a >= 0 and minus_b >= 0:
            return self.apply(Kind.NEG, self.apply(Kind.ADD, minus_a, minus_b))
        if minus_b >= 0:
            return self.apply(Kind.SUB, a, minus_b)
        if minus_a >= 0:
            return self.apply(Kind.SUB, b, minus_a)
        return self._merge_choices(a, b)

    def _merge_choices(self, a: int, b: int) -> int | None:
        """(c ? x : 0) + (c ? 0 : y), CasADi's if_else, is one choice."""
        kind_a, c, then_a, else_a = self.instructions[a]
        kind_b, d, then_b, else_b = self.instructions[b]
        if kind_a != Kind.SELECT or kind_b != Kind.SELECT or c != d:
            return None
        if self._values.get(else_a) == 0 and self._values.get(then_b) == 0:
            return self.apply(Kind.SELECT, c, then_a, else_b)
        if self._values.get(then_a) == 0 and self._values.get(else_b) == 0:
            return self.apply(Kind.SELECT, c, then_b, else_a)
        return None

    def _sub(self, _: Kind, a: int, b: int, __: int) -> int | None:
        if self._values.get(b) == 0:
            return a
        if self._values.get(a) == 0:
            return self.apply(Kind.NEG, b)
        minus_a, minus_b = self._minus.get(a, NONE), self._minus.get(b, NONE)
        if minus_b >= 0:
            return self.apply(Kind.ADD, a, minus_b)
        if minus_a >= 0:
            return self.apply(Kind.NEG, self.apply(Kind.ADD, minus_a, b))
        reverse = self._numbers.get((Kind.SUB, b, a, NONE))
        return self.apply(Kind.NEG, reverse) if reverse is not None else None

    def _mul(self, _: Kind, a: int, b: int, __: int) -> int | None:
        number, other = self._values.get(a), b
        if number is None:
            number, other = self._values.get(b), a
        if number == 1:
            return other
        if number == -1:
            return self.apply(Kind.NEG, other)
        if number == 0:  # CasADi drops such terms when it can see them; so do we
            return self.constant(0.0)
        if number is not None:
            return self._merge_factors(number, other)
        minus_a, minus_b = self._minus.get(a, NONE), self._minus.get(b, NONE)
        if minus_a >= 0 or minus_b >= 0:
            product = self._absorb_signs(a, b, minus_a, minus_b)
            if product is not None:
                return product
        return None

    def _merge_factors(self, factor: float, other: int) -> int | None:
        """c (d x) and c (-x) as one product, the former where a power of two keeps it exact."""
        kind, a, b, _ = self.instructions[other]
        if kind == Kind.NEG:
            return self.apply(Kind.MUL, a, self.constant(-factor))
        if kind != Kind.MUL:
            return None
        for inner, rest in ((a, b), (b, a)):
            number = self._values.get(inner)
            if number is not None and (_is_power_of_two(factor) or _is_power_of_two(number)):
                product = factor * number
                if MERGED_FACTORS[0] <= abs(product) <= MERGED_FACTORS[1]:
                    return self.apply(Kind.MUL, rest, self.constant(product))
        return None

    def _absorb_signs(self, a: int, b: int, minus_a: int, minus_b: int) -> int | None:
        """Signs out of products, where sums absorb them."""
        if minus_a >= 0 and minus_b >= 0:
            return self.apply(Kind.MUL, minus_a, minus_b)
        negated, other = (minus_a, b) if minus_a >= 0 else (minus_b, a)
        return self.apply(Kind.NEG, self.apply(Kind.MUL, negated, other))

    def _div(self, _: Kind, a: int, b: int, __: int) -> int | None:
        number = self._values.get(b)
        if number is not None and number != 0 and math.isfinite(number):
            reciprocal = 1.0 / number
            if _is_power_of_two(number) and math.isfinite(reciprocal) and reciprocal != 0:
                return self.apply(Kind.MUL, a, self.constant(reciprocal))
        minus_a, minus_b = self._minus.get(a, NONE), self._minus.get(b, NONE)
        if minus_a >= 0 and minus_b >= 0:
            return self.apply(Kind.DIV, minus_a, minus_b)
        if minus_a >= 0:
            return self.apply(Kind.NEG, self.apply(Kind.DIV, minus_a, b))
        if minus_b >= 0:
            return self.apply(Kind.NEG, self.apply(Kind.DIV, a, minus_b))
        return None

    def _neg(self, _: Kind, a: int, __: int = NONE, ___: int = NONE) -> int | None:
        minus_a = self._minus.get(a, NONE)
        return minus_a if minus_a >= 0 else self._number((Kind.NEG, a, NONE, NONE))

    def _odd(self, kind: Kind, a: int, _: int, __: int) -> int | None:
        minus_a = self._minus.get(a, NONE)
        return self.apply(Kind.NEG, self.apply(kind, minus_a)) if minus_a >= 0 else None

    def _even(self, kind: Kind, a: int, _: int, __: int) -> int | None:
        minus_a = self._minus.get(a, NONE)
        return self.apply(kind, minus_a) if minus_a >= 0 else None

    def _pow(self, _: Kind, a: int, b: int, __: int) -> int | None:
        exponent = self._values.get(b)
        if exponent is None:
            return None
        if exponent == 0.5:
            return self.apply(Kind.SQRT, a)
        if exponent != int(exponent if math.isfinite(exponent) else 0.5):
            return None
        if exponent == 0 or abs(exponent) > LARGEST_MULTIPLIED_POWER:
            return self.constant(1.0) if exponent == 0 else None
        power = self._multiply_out(a, int(abs(exponent)))
        return power if exponent > 0 else self.apply(Kind.DIV, self.constant(1.0), power)

    def _multiply_out(self, a: int, exponent: int) -> int:
        """a to a positive integer power by repeated squaring."""
        power, square = NONE, a
        while exponent:
            if exponent & 1:
                power = square if power == NONE else self.apply(Kind.MUL, power, square)
            exponent >>= 1
            if exponent:
                square = self.apply(Kind.MUL, square, square)
        return power

    def _select(self, _: Kind, c: int, x: int, y: int) -> int | None:
        if x == y:
            return x
        condition = self._values.get(c)
        if condition is not None:
            return x if condition != 0 else y
        kind, inner, _b, _c = self.instructions[c]
        return self.apply(Kind.SELECT, inner, y, x) if kind == Kind.NOT else None

    def _and(self, _: Kind, a: int, b: int, __: int) -> int | None:
        return a if a == b and self.instructions[a][0] in LOGICAL else None

    def live_instructions(
        self, results: list[int]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Instructions that the results need, renumbered, with their constants.

        Returns:
            instructions, shape (n, 4); the renumbered results; the constants.
        """
        marks = bytearray(len(self.instructions))
        for number in results:
            marks[number] = True
        for number in range(len(marks) - 1, -1, -1):
            if marks[number]:
                kind, a, b, c = self.instructions[number]
                if kind > _CONSTANT:
                    marks[a] = True
                    if b >= 0:
                        marks[b] = True
                    if c >= 0:
                        marks[c] = True
        live = np.frombuffer(marks, dtype=bool)
        renumbered = np.cumsum(live) - 1
        table = np.array(self.instructions, dtype=np.int64).reshape(-1, 4)[live]
        is_constant = table[:, 0] == Kind.CONSTANT
        constants = np.array(self.constants, dtype=np.float64)[table[is_constant, 1]]
        table[is_constant, 1] = np.arange(len(constants))
        operations = table[:, 0] > Kind.CONSTANT
        operands = table[operations, 1:]
        table[operations, 1:] = np.where(operands >= 0, renumbered[operands], NONE)
        return table, renumbered[np.array(results, dtype=np.int64)], constants
