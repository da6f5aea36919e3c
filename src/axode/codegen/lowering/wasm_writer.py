"""Writes functions of WebAssembly: expressions of numbers, as bytes.

A value is a node of a graph. One that is used once is written where it is used, as the machine has
a stack; others go into local variables, which are used again after their last reader. WebAssembly
has no fused multiplication and addition: polynomials take two roundings, and `fma` is a function of
the module that has one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from axode.codegen.ir import DOUBLE, Writer

F64, I64, I32 = 0x7C, 0x7E, 0x7F

_REAL = {"fadd": 0xA0, "fsub": 0xA1, "fmul": 0xA2, "fdiv": 0xA3}
_INTRINSIC = {
    "fabs": 0x99,
    "ceil": 0x9B,
    "floor": 0x9C,
    "trunc": 0x9D,
    "rint": 0x9E,
    "sqrt": 0x9F,
    "copysign": 0xA6,
}
_COMPARE = {"oeq": 0x61, "une": 0x62, "olt": 0x63, "ogt": 0x64, "ole": 0x65, "oge": 0x66}
_COMPARE_WHOLE = {"eq": 0x51, "ne": 0x52, "slt": 0x53}
_WHOLE = {"add": 0x7C, "sub": 0x7D, "and": 0x83, "or": 0x84, "xor": 0x85, "shl": 0x86, "lshr": 0x88}
_BIT = {"and": 0x71, "or": 0x72, "xor": 0x73}
_NEG, _SELECT, _LOAD, _STORE, _CALL, _GET, _SET, _TEE, _DROP = (
    *(0x9A, 0x1B, 0x2B, 0x39, 0x10),
    *(0x20, 0x21, 0x22, 0x1A),
)
_BITS, _FROM_BITS, _EQZ = 0xBD, 0xBF, 0x45
_EIGHT_BYTES = 3  # alignment of numbers in memory, as a power of two


def unsigned(value: int) -> bytes:
    """A whole number in LEB128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed(value: int) -> bytes:
    """A whole number with a sign in LEB128."""
    out = bytearray()
    while not -64 <= value < 64:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value & 0x7F)
    return bytes(out)


@dataclass(frozen=True)
class _Node:
    """A value: an operation, what it is applied to, and the types of its results."""

    code: bytes
    operands: tuple[str, ...]
    types: tuple[int, ...]
    constant: bool = False


@dataclass(frozen=True)
class WasmFunction:
    """A function of a module.

    Attributes:
        parameters: Types of the arguments.
        results: Types of the results.
        body: Its code: local variables, then instructions.
    """

    parameters: tuple[int, ...]
    results: tuple[int, ...]
    body: bytes


class WasmWriter(Writer):
    """Expressions of one function.

    Args:
        parameters: Types of its arguments; the values `parameter(k)`.
        function: Gives the number of a function of the module by its name, such as "fma".
    """

    def __init__(self, parameters: Sequence[int], function: Callable[[str], int]) -> None:
        super().__init__(1, DOUBLE)
        self.parameters = tuple(parameters)
        self._function = function
        self._nodes: dict[str, _Node] = {}
        self._stores: list[tuple[str, int, str]] = []
        self._known: dict[_Node, str] = {}

    # values -----------------------------------------------------------------------------------

    def _make(
        self, code: bytes, operands: tuple[str, ...], *types: int, constant: bool = False
    ) -> str:
        node = _Node(code, operands, types, constant)
        name = self._known.get(node)
        if name is None:
            name = f"n{len(self._nodes)}"
            self._nodes[name] = node
            self._known[node] = name
        return name

    def parameter(self, number: int) -> str:
        """An argument of the function."""
        code = bytes([_GET]) + unsigned(number)
        return self._make(code, (), self.parameters[number], constant=True)

    def constant(self, value: float) -> str:
        return self._make(b"\x44" + struct.pack("<d", value), (), F64, constant=True)

    def whole(self, value: int) -> str:
        wrapped = (value + 2**63) % 2**64 - 2**63
        return self._make(b"\x42" + signed(wrapped), (), I64, constant=True)

    def load(self, address: str, element: int) -> str:
        """A number in memory."""
        code = bytes([_LOAD, _EIGHT_BYTES]) + unsigned(8 * element)
        return self._make(code, (address,), F64)

    def store(self, address: str, element: int, value: str) -> None:
        """Put a value into memory once all values of the function are known."""
        self._stores.append((address, element, value))

    def call(self, name: str, *arguments: str, results: int = 1) -> tuple[str, ...]:
        """Results of a function of the module on numbers."""
        code = bytes([_CALL]) + unsigned(self._function(name))
        made = self._make(code, arguments, *[F64] * results)
        return tuple(f"{made}.{k}" for k in range(results)) if results > 1 else (made,)

    def _binary(self, code: int, a: str, b: str, type: int = F64) -> str:
        return self._make(bytes([code]), (a, b), type)

    def model(self, operation: str, a: str, b: str) -> str:
        return self._binary(_REAL[operation], a, b)

    def add(self, a: str, b: str) -> str:
        return self._binary(_REAL["fadd"], a, b)

    def sub(self, a: str, b: str) -> str:
        return self._binary(_REAL["fsub"], a, b)

    def mul(self, a: str, b: str) -> str:
        return self._binary(_REAL["fmul"], a, b)

    def div(self, a: str, b: str) -> str:
        return self._binary(_REAL["fdiv"], a, b)

    def neg(self, a: str) -> str:
        return self._make(bytes([_NEG]), (a,), F64)

    def intrinsic(self, name: str, *arguments: str) -> str:
        if name == "fma":
            return self.call("fma", *arguments)[0]
        return self._make(bytes([_INTRINSIC[name]]), arguments, F64)

    def polynomial(self, x: str, coefficients: tuple[float, ...]) -> str:
        value = self.constant(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            value = self.add(self.mul(value, x), self.constant(coefficient))
        return value

    def compare(self, predicate: str, a: str, b: str) -> str:
        if predicate in ("ord", "uno"):
            code, join = ("oeq", "and") if predicate == "ord" else ("une", "or")
            return self.combine(join, self.compare(code, a, a), self.compare(code, b, b))
        if predicate == "one":
            return self.combine("or", self.compare("olt", a, b), self.compare("ogt", a, b))
        return self._binary(_COMPARE[predicate], a, b, I32)

    def compare_whole(self, predicate: str, a: str, b: str) -> str:
        return self._binary(_COMPARE_WHOLE[predicate], a, b, I32)

    def select(self, condition: str, a: str, b: str) -> str:
        return self._make(bytes([_SELECT]), (a, b, condition), *self._types(a))

    def combine(self, operation: str, a: str, b: str) -> str:
        return self._binary(_BIT[operation], a, b, I32)

    def negate(self, condition: str) -> str:
        return self._make(bytes([_EQZ]), (condition,), I32)

    def whole_operation(self, operation: str, a: str, b: str) -> str:
        return self._binary(_WHOLE[operation], a, b, I64)

    def bits(self, a: str) -> str:
        return self._make(bytes([_BITS]), (a,), I64)

    def from_bits(self, a: str) -> str:
        return self._make(bytes([_FROM_BITS]), (a,), F64)

    # code -------------------------------------------------------------------------------------

    def function(self, *results: str) -> WasmFunction:
        """The function that makes all stores and returns these values."""
        code, locals_ = self.code(results)
        types = tuple(self._types(value)[0] for value in results)
        return WasmFunction(self.parameters, types, locals_ + code + b"\x0b")

    def code(self, results: Sequence[str]) -> tuple[bytes, bytes]:
        """Instructions that leave values on the stack, and the local variables that they need."""
        roots = [part for address, _, value in self._stores for part in (address, value)]
        roots += results
        uses = self._count_uses(roots)
        steps = _Steps(self._nodes, uses)
        for name, node in self._nodes.items():
            if name in uses and not node.constant and (uses[name] > 1 or len(node.types) > 1):
                steps.keep(name, node)
        for root in roots:
            steps.push(root)
        for _, element, _ in reversed(self._stores):
            steps.write(bytes([_STORE, _EIGHT_BYTES]) + unsigned(8 * element))
        return steps.finish(len(self.parameters))

    def _types(self, value: str) -> tuple[int, ...]:
        name, _, place = value.partition(".")
        types = self._nodes[name].types
        return (types[int(place)],) if place else types

    def _count_uses(self, roots: Sequence[str]) -> dict[str, int]:
        """How often each value that is needed is used, by its node."""
        uses: dict[str, int] = {}
        waiting = [root.partition(".")[0] for root in roots]
        while waiting:
            name = waiting.pop()
            uses[name] = uses.get(name, 0) + 1
            if uses[name] == 1:
                waiting += [operand.partition(".")[0] for operand in self._nodes[name].operands]
        return uses


class _Steps:
    """Instructions in order, with local variables by the names of the values they hold."""

    def __init__(self, nodes: dict[str, _Node], uses: dict[str, int]) -> None:
        self._nodes, self._uses = nodes, uses
        self._kept: dict[str, int] = {}  # values in local variables, and their types
        self._steps: list[tuple[int, str] | bytes] = []

    def write(self, code: bytes) -> None:
        """Append an instruction that has no value of its own."""
        self._steps.append(code)

    def keep(self, name: str, node: _Node) -> None:
        """Compute a value into local variables."""
        self._compute(name)
        several = len(node.types) > 1
        for place, type in reversed(list(enumerate(node.types))):
            part = f"{name}.{place}" if several else name
            self._kept[part] = type
            self._steps.append((_SET, part))

    def push(self, name: str) -> None:
        """Leave a value on the stack."""
        if name in self._kept:
            self._steps.append((_GET, name))
        else:
            self._compute(name)

    def _compute(self, name: str) -> None:
        waiting: list[str | bytes] = [name]
        while waiting:
            item = waiting.pop()
            if isinstance(item, bytes):
                self._steps.append(item)
            elif item in self._kept:
                self._steps.append((_GET, item))
            else:
                node = self._nodes[item]
                waiting.append(node.code)
                waiting += reversed(node.operands)

    def finish(self, parameters: int) -> tuple[bytes, bytes]:
        """Bytes of the instructions, and of the local variables before them."""
        last = {step[1]: k for k, step in enumerate(self._steps) if not isinstance(step, bytes)}
        free: dict[int, list[int]] = {F64: [], I64: [], I32: []}
        places: dict[str, int] = {}
        types: list[int] = []
        out = bytearray()
        before: tuple[int, str] | bytes = b""
        before_size = 0
        for k, step in enumerate(self._steps):
            size = len(out)
            if isinstance(step, bytes):
                out += step
            else:
                code, name = step
                if name not in places:
                    type = self._kept[name]
                    if free[type]:
                        places[name] = free[type].pop()
                    else:
                        types.append(type)
                        places[name] = parameters + len(types) - 1
                if code == _GET and before == (_SET, name):  # set and get at once
                    del out[before_size:]
                    code, size = _TEE, before_size
                out += bytes([code]) + unsigned(places[name])
                if last[name] == k:
                    if code == _TEE:
                        del out[before_size:]  # it is not read again
                    free[self._kept[name]].append(places[name])
            before, before_size = step, size
        return bytes(out), _declare(types)


def _declare(types: Sequence[int]) -> bytes:
    """Local variables, neighbours of one type together."""
    groups: list[list[int]] = []
    for type in types:
        if groups and groups[-1][1] == type:
            groups[-1][0] += 1
        else:
            groups.append([1, type])
    return unsigned(len(groups)) + b"".join(unsigned(n) + bytes([t]) for n, t in groups)
