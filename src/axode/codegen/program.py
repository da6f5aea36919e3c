"""Loops of tapes: what runs without Python between steps.

A program is a few buffers and a list of operations on them: evaluate a tape, read or write a row of
a table, repeat while a flag is up. Each run (lane) has its own buffers; flags are numbers, zero for
no. The same program is compiled for one run or for a vector of runs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from axode.codegen.ir import DOUBLE, Format
from axode.codegen.lowering import Plan, attributes, plan
from axode.codegen.packed import lowered
from axode.codegen.tape import Tape

ENTRY = "rollout"


@dataclass(frozen=True)
class Evaluate:
    """A tape on buffers: one an input, then one an output; an output may be an input."""

    tape: Tape
    buffers: tuple[str, ...]


@dataclass(frozen=True)
class ReadRow:
    """Row `index` of a table into a buffer; the index is cut to what the table has."""

    table: str
    index: str
    buffer: str


@dataclass(frozen=True)
class WriteRow:
    """A buffer into row `index` of a table, for the runs whose flag is up."""

    table: str
    index: str
    buffer: str
    flag: str


@dataclass(frozen=True)
class While:
    """Operations repeated while any run's flag is up, at most `budget` times if one is named."""

    flag: str
    body: tuple[Operation, ...]
    counted: bool = False  # by the program's budget


Operation = Evaluate | ReadRow | WriteRow | While


@dataclass(frozen=True)
class Program:
    """Buffers and operations.

    Attributes:
        name: For messages.
        state: Buffers that live between calls, name to size: read before, written after.
        given: Buffers that are only read, one a run or shared.
        tables: Arrays of rows, one a run or shared, name to row width.
        operations: What is done, in order.
    """

    name: str
    state: dict[str, int]
    given: dict[str, int]
    tables: dict[str, int]
    operations: tuple[Operation, ...]

    @cached_property
    def external(self) -> dict[str, int]:
        """Buffers that come from outside, in the order of the call's table."""
        return {**self.state, **self.given}

    @cached_property
    def local(self) -> dict[str, int]:
        """Buffers that only the operations know, with their sizes."""
        sizes: dict[str, int] = {}
        for operation in self.flattened():
            if isinstance(operation, Evaluate):
                ports = (*operation.tape.inputs, *operation.tape.outputs)
                for name, port in zip(operation.buffers, ports, strict=True):
                    known = self.external.get(name, sizes.get(name, port.size))
                    if known != port.size:
                        raise ValueError(f"buffer '{name}' has two sizes, {known} and {port.size}")
                    if name not in self.external:
                        sizes[name] = port.size
            elif isinstance(operation, ReadRow) and operation.buffer not in self.external:
                sizes.setdefault(operation.buffer, self.tables[operation.table])
        return sizes

    def flattened(self, operations: Sequence[Operation] | None = None) -> Iterator[Operation]:
        """All operations, loops opened."""
        for operation in self.operations if operations is None else operations:
            yield operation
            if isinstance(operation, While):
                yield from self.flattened(operation.body)

    @cached_property
    def tapes(self) -> list[Tape]:
        """Every tape once."""
        found: dict[str, Tape] = {}
        for operation in self.flattened():
            if isinstance(operation, Evaluate):
                found.setdefault(operation.tape.digest, operation.tape)
        return list(found.values())

    @cached_property
    def digest(self) -> str:
        """Names the program uniquely."""
        text = repr((self.state, self.given, self.tables, _shape(self.operations)))
        return hashlib.sha256(text.encode()).hexdigest()

    def work_size(self, lanes: int) -> int:
        """Bytes of the work array that one thread needs."""
        external = 0 if lanes == 1 else sum(self.external.values())
        slots = max((plan(tape).n_slots for tape in self.tapes), default=0)
        return (sum(self.local.values()) + external + slots) * lanes * 8


def _shape(operations: Sequence[Operation]) -> list[object]:
    described: list[object] = []
    for operation in operations:
        match operation:
            case Evaluate(tape, buffers):
                described.append((tape.digest, buffers))
            case While(flag, body, counted):
                described.append((flag, counted, _shape(body)))
            case _:
                described.append(repr(operation))
    return described


def program_module(program: Program, lanes: int) -> str:
    """IR of ``void rollout(ptr table, i64 begin, i64 end)``.

    ``table`` holds address and bytes between runs of every external buffer; address, bytes between
    runs and number of rows of every table; the budget; the address of the work array.
    """
    declarations: set[str] = {"declare i64 @llvm.fptosi.sat.i64.f64(double)"}
    functions: list[str] = [_COPIES.replace("LANES", str(lanes))]
    plans: dict[str, tuple[int, Plan]] = {}
    widest = lanes
    for number, tape in enumerate(program.tapes):
        parts = lowered(tape, lanes)
        plans[tape.digest] = (number, parts[0].plan)
        for place, part in enumerate(parts):
            functions.append(part.text(f"tape{number}_{place}"))
            declarations |= part.w.declarations
            widest = max(widest, part.widest)
    loop = ProgramWriter(program, lanes, plans).text()
    return "\n".join([*sorted(declarations), *functions, loop, attributes(widest)])


# One run's row of plain numbers to and from a buffer, whose lanes lie next to each other.
_COPIES = """
define internal void @fetch(ptr %row, ptr %buffer, i64 %lane, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr double, ptr %row, i64 %e
  %x = load double, ptr %from
  %first = mul i64 %e, LANES
  %place = add i64 %first, %lane
  %to = getelementptr double, ptr %buffer, i64 %place
  store double %x, ptr %to
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
define internal void @put(ptr %row, ptr %buffer, i64 %lane, i64 %size) #0 {
entry:
  br label %check
check:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %more = icmp slt i64 %e, %size
  br i1 %more, label %copy, label %done
copy:
  %first = mul i64 %e, LANES
  %place = add i64 %first, %lane
  %from = getelementptr double, ptr %buffer, i64 %place
  %x = load double, ptr %from
  %to = getelementptr double, ptr %row, i64 %e
  store double %x, ptr %to
  %next = add i64 %e, 1
  br label %check
done:
  ret void
}
"""


class ProgramWriter:
    """Writes the exported function: a loop over groups of runs around the program."""

    def __init__(
        self, program: Program, lanes: int, plans: dict[str, tuple[int, Plan]],
        number: Format = DOUBLE,
    ) -> None:  # fmt: skip
        self.program, self.lanes, self.plans, self.format = program, lanes, plans, number
        self.number = number.real
        self.real = self.number if lanes == 1 else f"<{lanes} x {self.number}>"
        self.tape_prefix = "tape"
        self.lines: list[str] = []
        self._count = 0
        self._labels = 0
        self._places: dict[str, str] = {}  # address of every buffer
        self._bases: dict[int, str] = {}  # address list of every evaluation
        self._rows: dict[str, tuple[str, str]] = {}
        self._tables: dict[str, tuple[str, str, str]] = {}
        self._runs: list[str] = []

    def emit(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def text(self) -> str:
        """The IR of the exported function."""
        self._prologue()
        self.lines += [
            "  %last = sub i64 %end, 1", "  br label %check", "check:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %tail ]",
            "  %more = icmp slt i64 %i, %end", "  br i1 %more, label %group, label %done",
            "group:",
        ]  # fmt: skip
        self._enter_group()
        for operation in self.program.operations:
            self._operation(operation)
        self._leave_group()
        self.line("br label %tail")
        return "\n".join([
            f"define void @{ENTRY}(ptr %table, i64 %begin, i64 %end) #0 {{", "entry:", *self.lines,
            "tail:", f"  %next = add i64 %i, {self.lanes}", "  br label %check", "done:",
            "  ret void", "}", "",
        ])  # fmt: skip

    def _prologue(self) -> None:
        """Addresses that do not change from group to group."""
        position = 0
        for name in self.program.external:
            self._rows[name] = (self._item(position, "ptr"), self._item(position + 1, "i64"))
            position += 2
        for name in self.program.tables:
            entry = (self._item(position, "ptr"), self._item(position + 1, "i64"),
                     self._item(position + 2, "i64"))  # fmt: skip
            self._tables[name] = entry
            position += 3
        self.budget = self._item(position, "i64")
        self.spent = self.emit("alloca i64")
        offset, work = 0, self._item(position + 1, "ptr")
        owned = dict(self.program.local)
        if self.lanes > 1:
            owned |= self.program.external
        for name, size in owned.items():
            self._places[name] = self.emit(f"getelementptr {self.real}, ptr {work}, i64 {offset}")
            offset += size
        self.slots = self.emit(f"getelementptr {self.real}, ptr {work}, i64 {offset}")
        for operation in self.program.flattened():
            if isinstance(operation, Evaluate):
                size = len(operation.buffers)
                self._bases[id(operation)] = self.emit(f"alloca ptr, i64 {size}")

    def _item(self, position: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr %table, i64 {position}")
        return self.emit(f"load {kind}, ptr {place}")

    def _enter_group(self) -> None:
        self._runs = []
        for lane in range(self.lanes):
            number = self.emit(f"add i64 %i, {lane}")
            beyond = self.emit(f"icmp sgt i64 {number}, %last")
            self._runs.append(self.emit(f"select i1 {beyond}, i64 %last, i64 {number}"))
        for name, size in self.program.external.items():
            rows = [self._row(*self._rows[name], run) for run in self._runs]
            if self.lanes == 1:
                self._places[name] = rows[0]  # one run works where the caller's numbers are
                continue
            for lane, row in enumerate(rows):
                self._copy("fetch", row, self._places[name], lane, size)
        self._store_bases()
        self.line(f"store i64 0, ptr {self.spent}")

    def _store_bases(self) -> None:
        """Tell every evaluation where its buffers are."""
        for operation in self.program.flattened():
            if isinstance(operation, Evaluate):
                for k, name in enumerate(operation.buffers):
                    slot = f"getelementptr ptr, ptr {self._bases[id(operation)]}, i64 {k}"
                    self.line(f"store ptr {self._places[name]}, ptr {self.emit(slot)}")

    def _leave_group(self) -> None:
        if self.lanes == 1:
            return
        for name, size in self.program.state.items():
            for lane, run in enumerate(self._runs):
                self._copy("put", self._row(*self._rows[name], run), self._places[name], lane, size)

    def _row(self, address: str, stride: str, run: str) -> str:
        offset = self.emit(f"mul i64 {run}, {stride}")
        return self.emit(f"getelementptr i8, ptr {address}, i64 {offset}")

    def _copy(self, function: str, row: str, buffer: str, lane: int, size: int) -> None:
        self.line(f"call void @{function}(ptr {row}, ptr {buffer}, i64 {lane}, i64 {size})")

    def _operation(self, operation: Operation) -> None:
        match operation:
            case Evaluate(tape, _):
                number, cut = self.plans[tape.digest]
                bases = self._bases[id(operation)]
                for part in range(len(cut.chunks)):
                    self.line(
                        f"call void @{self.tape_prefix}{number}_{part}(ptr {bases}, "
                        f"ptr {self.slots})"
                    )
            case ReadRow(table, index, buffer):
                for lane, run in enumerate(self._runs):
                    row = self._table_row(table, index, lane, run)
                    self._copy("fetch", row, self._places[buffer], lane, self.program.tables[table])
            case WriteRow():
                self._write_row(operation)
            case While():
                self._while(operation)

    def _table_row(self, table: str, index: str, lane: int, run: str) -> str:
        address, stride, rows = self._tables[table]
        whole = self._whole(index, lane, rows)
        start = self._row(address, stride, run)
        size = self.emit(f"mul i64 {whole}, {self.program.tables[table]}")
        return self.emit(f"getelementptr double, ptr {start}, i64 {size}")

    def _whole(self, index: str, lane: int, rows: str) -> str:
        """A row's number, cut to what the table has; NaN is the first row."""
        number = self._number(index, lane)
        convert = f"@llvm.fptosi.sat.i64.f{self.format.bits}({self.number} {number})"
        whole = self.emit(f"call i64 {convert}")
        below = self.emit(f"icmp slt i64 {whole}, 0")
        whole = self.emit(f"select i1 {below}, i64 0, i64 {whole}")
        last = self.emit(f"sub i64 {rows}, 1")
        above = self.emit(f"icmp sgt i64 {whole}, {last}")
        return self.emit(f"select i1 {above}, i64 {last}, i64 {whole}")

    def _number(self, buffer: str, lane: int) -> str:
        place = self.emit(f"getelementptr {self.number}, ptr {self._places[buffer]}, i64 {lane}")
        return self.emit(f"load {self.number}, ptr {place}")

    def _write_row(self, operation: WriteRow) -> None:
        for lane, run in enumerate(self._runs or ["%i"]):
            flag = self._number(operation.flag, lane)
            up = self.emit(f"fcmp une {self.number} {flag}, 0.0")
            self._labels += 1
            write, after = f"write{self._labels}", f"written{self._labels}"
            self.line(f"br i1 {up}, label %{write}, label %{after}")
            self.label(write)
            self._write_one(operation, lane, run)
            self.line(f"br label %{after}")
            self.label(after)

    def _write_one(self, operation: WriteRow, lane: int, run: str) -> None:
        row = self._table_row(operation.table, operation.index, lane, run)
        width = self.program.tables[operation.table]
        self._copy("put", row, self._places[operation.buffer], lane, width)

    def _while(self, operation: While) -> None:
        self._labels += 1
        again, body, after = (f"{part}{self._labels}" for part in ("again", "body", "after"))
        self.line(f"br label %{again}")
        self.label(again)
        go = self._any(operation.flag)
        if operation.counted:
            spent = self.emit(f"load i64, ptr {self.spent}")
            more = self.emit(f"add i64 {spent}, 1")
            self.line(f"store i64 {more}, ptr {self.spent}")
            within = self.emit(f"icmp slt i64 {spent}, {self.budget}")
            go = self.emit(f"and i1 {go}, {within}")
        self.line(f"br i1 {go}, label %{body}, label %{after}")
        self.label(body)
        for inner in operation.body:
            self._operation(inner)
        self.line(f"br label %{again}")
        self.label(after)

    def _any(self, buffer: str) -> str:
        align = self.format.bytes * self.lanes
        value = self.emit(f"load {self.real}, ptr {self._places[buffer]}, align {align}")
        if self.lanes == 1:
            return self.emit(f"fcmp une {self.number} {value}, 0.0")
        zero = "zeroinitializer"
        bits = self.emit(f"fcmp une {self.real} {value}, {zero}")
        packed = self.emit(f"bitcast <{self.lanes} x i1> {bits} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {packed}, 0")
