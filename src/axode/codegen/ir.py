"""Writes LLVM IR as text, for one number or for a vector of them.

Text is the fastest way into LLVM and gives the best error messages. The same
calls write ``double``, ``float`` or ``<4 x double>``, for any LLVM target, so a recipe is
written once. Values are the strings that name them.
"""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

# Sums may be fused and regrouped; NaN and infinity keep their meaning.
MODEL_FLAGS = "reassoc contract "


@dataclass(frozen=True)
class Format:
    """How a real number is kept.

    Attributes:
        name: As NumPy calls it.
        real: LLVM's name of it.
        integer: LLVM's name of an integer of the same size.
        bits: Size of a number.
        digits: Binary ones, the hidden one included.
    """

    name: str
    real: str
    integer: str
    bits: int
    digits: int

    @property
    def bytes(self) -> int:
        """Size of a number in bytes."""
        return self.bits // 8

    @property
    def sign_bit(self) -> int:
        """An integer that has only the sign bit of a real."""
        return -(1 << (self.bits - 1))

    @property
    def rounder(self) -> float:
        """Adding this leaves the nearest integer in the low bits of the sum."""
        return 1.5 * 2.0 ** (self.digits - 1)

    @property
    def rounder_bits(self) -> int:
        """The bit pattern of `rounder`."""
        real, whole = ("<d", "<q") if self.bits == 64 else ("<f", "<i")
        return int(struct.unpack(whole, struct.pack(real, self.rounder))[0])

    def literal(self, value: float) -> str:
        """The nearest number of this format in LLVM's exact hexadecimal notation."""
        nearest = value if self.bits == 64 else ctypes.c_float(value).value
        return f"0x{struct.unpack('<Q', struct.pack('<d', nearest))[0]:016X}"


DOUBLE = Format("float64", "double", "i64", 64, 53)
SINGLE = Format("float32", "float", "i32", 32, 24)
FORMATS = {item.name: item for item in (DOUBLE, SINGLE)}


class NumberedLines:
    """Lines of a function, whose results are numbered."""

    prefix = "v"  # of the numbers

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def emit(self, text: str) -> str:
        """Append an instruction and name its result."""
        self._count += 1
        name = f"%{self.prefix}{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def line(self, text: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        """Begin a block."""
        self.lines.append(f"{name}:")
        self._block = name


class Writer:
    """Straight-line IR over vectors of ``lanes`` reals (1: scalars)."""

    def __init__(self, lanes: int, number: Format = DOUBLE) -> None:
        self.lanes, self.format = lanes, number
        self.real, self.integer, self.bit = (
            self._vector(name) for name in (number.real, number.integer, "i1")
        )
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._suffix = f"f{number.bits}" if lanes == 1 else f"v{lanes}f{number.bits}"
        self._numbers = itertools.count(1)
        self._constants: dict[tuple[str, float | int], str] = {}

    def _vector(self, name: str) -> str:
        return name if self.lanes == 1 else f"<{self.lanes} x {name}>"

    def alongside(self, lanes: int, number: Format) -> Writer:
        """A writer of other reals into the same function."""
        other = Writer(lanes, number)
        other.lines, other.declarations = self.lines, self.declarations
        other._numbers = self._numbers
        return other

    def double_writer(self) -> Writer:
        """A writer of double precision that goes on where this one stands, and back."""
        return self.alongside(self.lanes, DOUBLE)

    def widen(self, a: str) -> str:
        """A real in double precision, exactly."""
        return self.emit(f"fpext {self.real} {a} to {self._vector(DOUBLE.real)}")

    def narrow(self, a: str) -> str:
        """A real of double precision as the nearest one of ours."""
        return self.emit(f"fptrunc {self._vector(DOUBLE.real)} {a} to {self.real}")

    def emit(self, text: str) -> str:
        """Append an instruction and name its result."""
        name = f"%{next(self._numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: float) -> str:
        """A real number in every lane."""
        key = ("d", struct.unpack("<q", struct.pack("<d", value))[0])
        if key not in self._constants:
            self._constants[key] = self._splat(self.format.real, self.format.literal(value))
        return self._constants[key]

    def whole(self, value: int) -> str:
        """An integer as long as a real in every lane."""
        key = ("i", value)
        if key not in self._constants:
            self._constants[key] = self._splat(self.format.integer, str(value))
        return self._constants[key]

    def _splat(self, element: str, literal: str) -> str:
        if self.lanes == 1:
            return literal
        return "<" + ", ".join(f"{element} {literal}" for _ in range(self.lanes)) + ">"

    # Numbers into vectors and out of them.
    def constants(self, values: Sequence[float]) -> str:
        """A vector of numbers that are known."""
        return "<" + ", ".join(f"{self.format.real} {self.format.literal(v)}" for v in values) + ">"

    def gather(self, numbers: Sequence[str]) -> str:
        """A vector of numbers; if all are the same, it is put into every lane."""
        value, same = "poison", len(set(numbers)) == 1
        for lane, number in enumerate(numbers[:1] if same else numbers):
            value = self.emit(
                f"insertelement {self.real} {value}, {self.format.real} {number}, i64 {lane}"
            )
        if same:
            mask = f"<{self.lanes} x i32> zeroinitializer"
            value = self.emit(f"shufflevector {self.real} {value}, {self.real} poison, {mask}")
        return value

    def element(self, vector: str, lane: int) -> str:
        """The number in a lane."""
        return self.emit(f"extractelement {self.real} {vector}, i64 {lane}")

    def add_up(self, vector: str) -> str:
        """The sum of all lanes."""
        function, real = f"@llvm.vector.reduce.fadd.{self._suffix}", self.format.real
        self.declarations.add(f"declare {real} {function}({real}, {self.real})")
        start = f"{real} {self.format.literal(-0.0)}"
        return self.emit(f"call {MODEL_FLAGS}{real} {function}({start}, {self.real} {vector})")

    # Arithmetic of the model: may be fused and regrouped.
    def model(self, operation: str, a: str, b: str) -> str:
        """``fadd``, ``fsub``, ``fmul`` or ``fdiv`` under the model's freedoms."""
        name = f"%{next(self._numbers)}"
        self.lines.append(f"  {name} = {operation} {MODEL_FLAGS}{self.real} {a}, {b}")
        return name

    # Exact arithmetic, for recipes whose error analysis depends on the order.
    def add(self, a: str, b: str) -> str:
        return self.emit(f"fadd {self.real} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self.emit(f"fsub {self.real} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self.emit(f"fmul {self.real} {a}, {b}")

    def div(self, a: str, b: str) -> str:
        return self.emit(f"fdiv {self.real} {a}, {b}")

    def neg(self, a: str) -> str:
        return self.emit(f"fneg {self.real} {a}")

    def intrinsic(self, name: str, *arguments: str) -> str:
        """An LLVM intrinsic on reals: fma, sqrt, fabs, floor, ceil, trunc, rint, copysign."""
        function = f"@llvm.{name}.{self._suffix}"
        types = ", ".join([self.real] * len(arguments))
        self.declarations.add(f"declare {self.real} {function}({types})")
        operands = ", ".join(f"{self.real} {a}" for a in arguments)
        return self.emit(f"call {self.real} {function}({operands})")

    def fma(self, a: str, b: str, c: str) -> str:
        """a b + c with one rounding."""
        return self.intrinsic("fma", a, b, c)

    def fabs(self, a: str) -> str:
        return self.intrinsic("fabs", a)

    def sqrt(self, a: str) -> str:
        return self.intrinsic("sqrt", a)

    def copysign(self, magnitude: str, sign: str) -> str:
        return self.intrinsic("copysign", magnitude, sign)

    def polynomial(self, x: str, coefficients: tuple[float, ...]) -> str:
        """Horner's rule with fused steps, lowest power first."""
        value = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.fma(value, x, self.constant(coefficient))
        return value

    # Comparisons and choices.
    def compare(self, predicate: str, a: str, b: str) -> str:
        """A bit; ordered predicates (olt, ...) are false for NaN, unordered ones true."""
        return self.emit(f"fcmp {predicate} {self.real} {a}, {b}")

    def compare_whole(self, predicate: str, a: str, b: str) -> str:
        return self.emit(f"icmp {predicate} {self.integer} {a}, {b}")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.emit(f"select {self.bit} {condition}, {self.real} {a}, {self.real} {b}")

    def combine(self, operation: str, a: str, b: str) -> str:
        """``and``, ``or`` or ``xor`` of two bits."""
        return self.emit(f"{operation} {self.bit} {a}, {b}")

    def negate(self, condition: str) -> str:
        ones = self._splat("i1", "true")
        return self.emit(f"xor {self.bit} {condition}, {ones}")

    # Bit patterns.
    def whole_operation(self, operation: str, a: str, b: str) -> str:
        """``add``, ``sub``, ``and``, ``or``, ``xor``, ``shl``, ``lshr`` on integers."""
        return self.emit(f"{operation} {self.integer} {a}, {b}")

    def bits(self, a: str) -> str:
        """The bit pattern of a real."""
        return self.emit(f"bitcast {self.real} {a} to {self.integer}")

    def from_bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.integer} {a} to {self.real}")
