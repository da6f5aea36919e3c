"""Tapes and programs as WebAssembly: one module that a browser runs without a server.

Arithmetic is that of IEEE 754, in the order of the tape: everywhere the same bits, those of
`Tape.evaluate`. Elementary functions are the recipes of the other targets, without fused steps.
Memory holds a place for every array; `layout` says where.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from axode.codegen.lowering.chunk_plan import Plan, plan
from axode.codegen.lowering.wasm_writer import F64, I32, WasmFunction, WasmWriter, signed, unsigned
from axode.codegen.math.elementary import COMPARISONS, NEAR, RECIPES, fma, near_sin_cos
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.operations import ARITY, LOGICAL, Kind
from axode.codegen.tape.program import (
    Evaluate,
    MaskedCopy,
    Operation,
    Program,
    ReadRow,
    While,
    WriteRow,
)
from axode.codegen.tape.tape import Tape
from axode.errors import NotApplicable

MAGIC = b"\0asm\1\0\0\0"
PAGE = 65536  # bytes by which memory is counted
FIRST = 16  # bytes at the beginning of memory that hold nothing
SECTION = "axode"  # of the module, with the layout as JSON

# Written where they are used: a call would be longer.
_INLINE = frozenset(
    (
        *(Kind.ADD, Kind.SUB, Kind.MUL, Kind.DIV, Kind.NEG, Kind.SQRT, Kind.FLOOR, Kind.CEIL),
        *(Kind.FABS, Kind.COPYSIGN, Kind.SIGN, Kind.FMIN, Kind.FMAX),
    )
)
_TURNS = (Kind.SIN, Kind.COS)
_BLOCK, _LOOP, _IF, _END, _BR, _BR_IF, _RETURN = 0x02, 0x03, 0x04, 0x0B, 0x0C, 0x0D, 0x0F
_EMPTY = 0x40  # type of a block without results


@dataclass
class WasmModule:
    """A module that grows by tapes and programs.

    Attributes:
        layout: Addresses and sizes of arrays in memory, and what is exported, for the caller.
    """

    layout: dict[str, Any] = field(
        default_factory=lambda: {"buffers": {}, "tables": {}, "functions": {}, "programs": {}}
    )
    _types: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    _functions: dict[str, WasmFunction | None] = field(default_factory=dict)
    _tapes: dict[str, tuple[str, Plan]] = field(default_factory=dict)
    _exports: dict[str, str] = field(default_factory=dict)
    _end: int = FIRST
    _slots: int = 0

    # what is in it ----------------------------------------------------------------------------

    def place(self, name: str, size: int) -> int:
        """Address of an array of numbers, made once for a name."""
        buffers = self.layout["buffers"]
        if name not in buffers:
            buffers[name] = {"address": self._end, "size": size}
            self._end += 8 * size
        elif buffers[name]["size"] != size:
            raise ValueError(f"array '{name}' has two sizes, {buffers[name]['size']} and {size}")
        return int(buffers[name]["address"])

    def add_tape(self, name: str, tape: Tape, buffers: Sequence[str]) -> None:
        """Export a tape as a function without arguments that works on arrays in memory.

        Args:
            name: Name of the exported function.
            tape: What it computes.
            buffers: Names of the arrays of its inputs, then of its outputs.
        """
        code = bytearray(b"\0")
        self.call_tape(code, Evaluate(tape, tuple(buffers)))
        self._add(name, WasmFunction((), (), bytes(code) + bytes([_END])))
        self._exports[name] = name
        ports = (*tape.inputs, *tape.outputs)
        self.layout["functions"][name] = {
            "inputs": list(buffers[: len(tape.inputs)]),
            "outputs": list(buffers[len(tape.inputs) :]),
            "shapes": {b: list(p.shape) for b, p in zip(buffers, ports, strict=True)},
        }

    def add_program(
        self, name: str, program: Program, buffers: Mapping[str, str], rows: Mapping[str, int]
    ) -> None:
        """Export a program as a function of the number of turns that its loop may take.

        Args:
            name: Name of the exported function.
            program: What it does to one run.
            buffers: Names of arrays for the program's own ones; those without have its name
                before their own.
            rows: How many rows each table has.
        """
        writer = _ProgramWriter(self, name, program, buffers, rows)
        self._add(name, writer.function())
        self._exports[name] = name
        self.layout["programs"][name] = {
            "state": {key: writer.names[key] for key in program.state},
            "given": {key: writer.names[key] for key in program.given},
        }

    def to_bytes(self, facts: Mapping[str, Any] | None = None) -> bytes:
        """The module, with its layout and `facts` as JSON in a section of their own."""
        slots = self.place("work", max(1, self._slots))
        text = json.dumps({**self.layout, **(facts or {})}, separators=(",", ":")).encode()
        functions = list(self._functions.values())
        assert all(function is not None for function in functions)
        made = [f for f in functions if f is not None]
        numbers = [self._type(f.parameters, f.results) for f in made]
        types = [
            b"\x60" + _vector([bytes([t]) for t in a]) + _vector([bytes([t]) for t in r])
            for a, r in self._types
        ]
        order = {name: k for k, name in enumerate(self._functions)}
        exports = [_name("memory") + b"\2\0"]
        exports += [_name(e) + b"\0" + unsigned(order[f]) for e, f in self._exports.items()]
        pages = -(-self._end // PAGE)
        table = b"\x41" + signed(slots) + bytes([_END])
        sections = {
            1: _vector(types),
            3: _vector([unsigned(n) for n in numbers]),
            5: _vector([b"\0" + unsigned(pages)]),
            6: _vector([bytes([I32, 0]) + table]),
            7: _vector(exports),
            10: _vector([unsigned(len(f.body)) + f.body for f in made]),
        }
        parts = [bytes([key]) + unsigned(len(data)) + data for key, data in sections.items()]
        own = _name(SECTION) + text
        return MAGIC + b"".join(parts) + b"\0" + unsigned(len(own)) + own

    # functions --------------------------------------------------------------------------------

    def _add(self, name: str, function: WasmFunction) -> int:
        self._functions[name] = function
        self._type(function.parameters, function.results)
        return list(self._functions).index(name)

    def _type(self, parameters: tuple[int, ...], results: tuple[int, ...]) -> int:
        key = (parameters, results)
        if key not in self._types:
            self._types.append(key)
        return self._types.index(key)

    def number(self, name: str) -> int:
        """Number of an elementary function, which is written when first needed."""
        if name not in self._functions:
            self._functions[name] = None  # its number is taken
            self._functions[name] = self._elementary(name)
        return list(self._functions).index(name)

    def _elementary(self, name: str) -> WasmFunction:
        if name == "sin_cos":
            w = WasmWriter((F64,), self.number)
            code, variables = w.code(near_sin_cos(w, w.parameter(0)))
            return WasmFunction((F64,), (F64, F64), variables + self._far_exit() + code + b"\x0b")
        if name == "far_sin_cos":
            w = WasmWriter((F64,), self.number)
            return w.function(*sin_cos(w, w.parameter(0)))
        if name == "fma":
            w = WasmWriter((F64, F64, F64), self.number)
            return w.function(fma(w, *(w.parameter(k) for k in range(3))))
        kind = Kind[name.upper()]
        w = WasmWriter((F64,) * ARITY[kind], self.number)
        return w.function(RECIPES[kind](w, *(w.parameter(k) for k in range(ARITY[kind]))))

    def _far_exit(self) -> bytes:
        """Leave a function of an angle with the results of another, where the angle is large."""
        w = WasmWriter((F64,), self.number)
        near = w.compare("olt", w.fabs(w.parameter(0)), w.constant(NEAR))
        test, _ = w.code([w.negate(near)])
        call = bytes([0x20, 0, 0x10]) + unsigned(self.number("far_sin_cos"))
        return test + bytes([_IF, _EMPTY]) + call + bytes([_RETURN, _END])

    # tapes ------------------------------------------------------------------------------------

    def call_tape(self, code: bytearray, operation: Evaluate) -> None:
        """Append the calls of a tape's functions on arrays in memory."""
        tape = operation.tape
        if tape.digest not in self._tapes:
            name, cut = f"tape {len(self._tapes)}", plan(tape, stores=len(tape.results))
            self._tapes[tape.digest] = (name, cut)
            self._slots = max(self._slots, cut.n_slots)
            for part in range(len(cut.chunks)):
                self._add(f"{name}.{part}", _TapeWriter(cut, part, self).function())
        name, cut = self._tapes[tape.digest]
        order = list(self._functions)
        ports = (*tape.inputs, *tape.outputs)
        places = [self.place(b, p.size) for b, p in zip(operation.buffers, ports, strict=True)]
        for part in range(len(cut.chunks)):
            for place in places:
                code += b"\x41" + signed(place)
            code += bytes([0x23, 0])  # where values between functions are
            code += bytes([0x10]) + unsigned(order.index(f"{name}.{part}"))


class _TapeWriter:
    """One function of a tape: addresses of its arrays and of the values between its functions."""

    def __init__(self, cut: Plan, part: int, module: WasmModule) -> None:
        self._plan, self._part = cut, part
        tape = cut.tape
        self._count = len(tape.inputs) + len(tape.outputs)
        self._w = WasmWriter((I32,) * (self._count + 1), module.number)
        self._values: dict[int, str] = {}
        self._bits: dict[int, str] = {}

    def function(self) -> WasmFunction:
        w, tape = self._w, self._plan.tape
        for number in self._plan.chunks[self._part]:
            self._lower(number)
            if number in self._plan.slots:
                w.store(w.parameter(self._count), self._plan.slots[number], self._value(number))
        if self._part == len(self._plan.chunks) - 1:
            first = 0
            for k, port in enumerate(tape.outputs):
                for element in range(port.size):
                    value = self._value(int(tape.results[first + element]))
                    w.store(w.parameter(len(tape.inputs) + k), element, value)
                first += port.size
        return w.function()

    def _lower(self, number: int) -> None:
        kind, operands = self._plan.rows[number]
        w = self._w
        if kind in _TURNS:
            pair = w.call("sin_cos", self._value(operands[0]), results=2)
            self._values[number] = pair[_TURNS.index(kind)]
        elif kind in COMPARISONS:
            a, b = (self._value(v) for v in operands)
            self._bits[number] = w.compare(COMPARISONS[kind], a, b)
        elif kind in LOGICAL:
            bits = [self._bit(v) for v in operands]
            join = kind.label
            self._bits[number] = (
                w.negate(bits[0]) if kind == Kind.NOT else w.combine(join, bits[0], bits[1])
            )
        elif kind == Kind.SELECT:
            condition, x, y = operands
            self._values[number] = w.select(self._bit(condition), self._value(x), self._value(y))
        elif kind in _INLINE:
            self._values[number] = RECIPES[kind](w, *(self._value(v) for v in operands))
        else:
            self._values[number] = w.call(kind.label, *(self._value(v) for v in operands))[0]

    def _value(self, number: int) -> str:
        known = self._values.get(number)
        if known is None:
            known = self._values[number] = self._fetch(number)
        return known

    def _fetch(self, number: int) -> str:
        kind, operands = self._plan.rows[number]
        w = self._w
        if kind == Kind.CONSTANT:
            return w.constant(float(self._plan.tape.constants[operands[0]]))
        if kind == Kind.INPUT:
            return w.load(w.parameter(operands[0]), operands[1])
        if number in self._bits:
            return w.select(self._bits[number], w.constant(1.0), w.constant(0.0))
        return w.load(w.parameter(self._count), self._plan.slots[number])

    def _bit(self, number: int) -> str:
        known = self._bits.get(number)
        if known is None:
            known = self._w.compare("une", self._value(number), self._w.constant(0.0))
            self._bits[number] = known
        return known


class _ProgramWriter:
    """A program of one run: arrays are where the module has put them."""

    def __init__(
        self,
        module: WasmModule,
        name: str,
        program: Program,
        buffers: Mapping[str, str],
        rows: Mapping[str, int],
    ) -> None:
        self._module, self._program, self._rows = module, program, dict(rows)
        sizes = {**program.external, **program.local}
        self.names = {key: buffers.get(key, f"{name}.{key}") for key in sizes}
        for key, size in sizes.items():
            module.place(self.names[key], size)
        self._tables = {}
        for key, width in program.tables.items():
            self._tables[key] = module.place(f"{name}.{key}", width * self._rows[key])
            module.layout["tables"][f"{name}.{key}"] = {"rows": self._rows[key], "width": width}
        self._code = bytearray()

    def function(self) -> WasmFunction:
        for operation in self._program.operations:
            self._operation(operation)
        spent = unsigned(1) + unsigned(1) + bytes([I32])
        return WasmFunction((I32,), (), spent + bytes(self._code) + bytes([_END]))

    def _address(self, buffer: str) -> int:
        return int(self._module.layout["buffers"][self.names[buffer]]["address"])

    def _operation(self, operation: Operation) -> None:
        match operation:
            case Evaluate(tape, buffers):
                named = tuple(self.names[b] for b in buffers)
                self._module.call_tape(self._code, Evaluate(tape, named))
            case ReadRow(table, index, buffer):
                self._integer(self._address(buffer))
                self._row(table, index)
                self._copy(8 * self._program.tables[table])
            case WriteRow(table, index, buffer, flag):
                self._flag(flag)
                self._code += bytes([_IF, _EMPTY])
                self._row(table, index)
                self._integer(self._address(buffer))
                self._copy(8 * self._program.tables[table])
                self._code.append(_END)
            case MaskedCopy(flag, buffer, kept):
                self._flag(flag)
                self._code += bytes([_IF, _EMPTY])
                self._integer(self._address(kept))
                self._integer(self._address(buffer))
                self._copy(8 * self._program.size(buffer))
                self._code.append(_END)
            case While():
                self._while(operation)
            case _:
                raise NotApplicable(
                    f"'{self._program.name}' solves linear systems, and WebAssembly modules hold "
                    "explicit methods only: rk4 or dopri5"
                )

    def _while(self, operation: While) -> None:
        self._code += bytes([_BLOCK, _EMPTY, _LOOP, _EMPTY])
        self._flag(operation.flag)
        if operation.counted:  # and as long as fewer turns are spent than allowed
            self._code += bytes([0x20, 1, 0x20, 0, 0x48, 0x71])
            self._code += bytes([0x20, 1, 0x41, 1, 0x6A, 0x21, 1])
        self._code += bytes([0x45, _BR_IF, 1])
        for inner in operation.body:
            self._operation(inner)
        self._code += bytes([_BR, 0, _END, _END])

    def _flag(self, buffer: str) -> None:
        """Test whether the first number of an array is not zero."""
        self._number(buffer)
        self._code += b"\x44" + bytes(8) + b"\x62"

    def _number(self, buffer: str) -> None:
        self._integer(self._address(buffer))
        self._code += bytes([0x2B, 3, 0])

    def _integer(self, value: int) -> None:
        self._code += b"\x41" + signed(value)

    def _row(self, table: str, index: str) -> None:
        """Address of a row, its number cut to those that the table has."""
        self._integer(self._tables[table])
        self._number(index)
        self._code += b"\x44" + bytes(8) + b"\xa5"  # at least 0
        self._code += _double(float(self._rows[table] - 1)) + b"\xa4"  # at most the last
        self._code += b"\xfc\x02"  # to a whole number; NaN is 0
        self._integer(8 * self._program.tables[table])
        self._code += bytes([0x6C, 0x6A])

    def _copy(self, size: int) -> None:
        self._integer(size)
        self._code += bytes([0xFC, 0x0A, 0, 0])


def _double(value: float) -> bytes:
    return b"\x44" + struct.pack("<d", value)


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _name(text: str) -> bytes:
    data = text.encode()
    return unsigned(len(data)) + data
