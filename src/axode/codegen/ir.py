"""Writes LLVM IR as text, for one number or for a vector of them.

Text is the fastest way into LLVM and gives the best error messages. The same
calls write ``double`` or ``<4 x double>``, for any LLVM target, so a recipe is
written once. Values are the strings that name them.
"""

from __future__ import annotations

import struct

# Sums may be fused and regrouped; NaN and infinity keep their meaning.
MODEL_FLAGS = "reassoc contract "


def double_literal(value: float) -> str:
    """A double in LLVM's exact hexadecimal notation."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Writer:
    """Straight-line IR over vectors of ``lanes`` doubles (1: scalars)."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.real, self.integer, self.bit = (
            name if lanes == 1 else f"<{lanes} x {name}>" for name in ("double", "i64", "i1")
        )
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._suffix = "f64" if lanes == 1 else f"v{lanes}f64"
        self._count = 0
        self._constants: dict[tuple[str, float | int], str] = {}

    def emit(self, text: str) -> str:
        """Appends an instruction and names its result."""
        self._count += 1
        name = f"%{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: float) -> str:
        """A real number in every lane."""
        key = ("d", struct.unpack("<q", struct.pack("<d", value))[0])
        if key not in self._constants:
            self._constants[key] = self._splat("double", double_literal(value))
        return self._constants[key]

    def whole(self, value: int) -> str:
        """A 64-bit integer in every lane."""
        key = ("i", value)
        if key not in self._constants:
            self._constants[key] = self._splat("i64", str(value))
        return self._constants[key]

    def _splat(self, element: str, literal: str) -> str:
        if self.lanes == 1:
            return literal
        return "<" + ", ".join(f"{element} {literal}" for _ in range(self.lanes)) + ">"

    # Arithmetic of the model: may be fused and regrouped.
    def model(self, operation: str, a: str, b: str) -> str:
        """``fadd``, ``fsub``, ``fmul`` or ``fdiv`` under the model's freedoms."""
        return self.emit(f"{operation} {MODEL_FLAGS}{self.real} {a}, {b}")

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
