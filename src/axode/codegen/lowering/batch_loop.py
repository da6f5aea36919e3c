"""The loop over a batch around a tape: one IR module per target and width.

The exported function is ``void map(ptr table, i64 begin, i64 end)``. For every
input, then every output, ``table`` holds the address of the first sample and
the bytes from one sample to the next (0 repeats a sample); then comes the
address of the work array. A SIMD loop reads and writes the user's row-major
arrays through register transposes; lanes beyond the end repeat the last sample.
Few results are transposed where they are computed, many from a buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from axode.codegen.ir import NumberedLines
from axode.codegen.lowering.chunk_plan import MOST_STORES, Plan, plan_with_columns
from axode.codegen.lowering.instructions import Element, Transposes, attributes, blocks, lower_tape
from axode.codegen.tape.tape import MAX_PORTS, Port, Tape
from axode.errors import NotApplicable

ENTRY = "map"

# Alignment of the work array; the widest vector of any CPU.
WORK_ALIGNMENT = 64


def work_size(tape: Tape, lanes: int) -> int:
    """Bytes of the work array that ``map`` needs."""
    buffers = 0 if lanes == 1 else sum(port.size for port in (*tape.inputs, *tape.outputs))
    return (plan_with_columns(tape, lanes > 1).n_slots + buffers) * lanes * 8


def module(tape: Tape, lanes: int) -> str:
    """IR of the batch loop over a tape, ``lanes`` samples at a time.

    Raises:
        NotApplicable: if there are more ports than the loop has room for on the stack.
    """
    n_ports = len(tape.inputs) + len(tape.outputs)
    if n_ports > 2 * MAX_PORTS:
        raise NotApplicable(
            f"'{tape.name}' has {n_ports} inputs and outputs, and at most {2 * MAX_PORTS} can be "
            "compiled; gather them into vectors"
        )
    parts = lower_tape(tape, lanes)
    cut = parts[0].plan
    parts[-1].in_rows = lanes > 1  # unless they are copied
    functions: list[str] = []
    declarations: set[str] = set()
    for number, part in enumerate(parts):
        functions.append(part.text(f"chunk{number}"))
        declarations |= part.w.declarations
    loop = _ScalarLoop(cut) if lanes == 1 else _SimdLoop(cut, lanes)
    widest = max(part.widest for part in parts)
    text = loop.text()
    return "\n".join([*sorted(declarations), *functions, *loop.helpers, text, attributes(widest)])


class _ScalarLoop(NumberedLines):
    """One sample at a time, straight from and to the user's arrays."""

    lanes = 1
    prefix = ""

    def __init__(self, cut: Plan) -> None:
        super().__init__()
        self.cut = cut
        self.ports: tuple[Port, ...] = (*cut.tape.inputs, *cut.tape.outputs)
        self.helpers: list[str] = []  # functions of its own

    def text(self) -> str:
        """The IR of the exported function."""
        bases = self.emit(f"alloca ptr, i64 {max(1, len(self.ports))}")
        entries = [self._entry(2 * k) for k in range(len(self.ports))]
        work = self._item(2 * len(self.ports), "ptr")
        self.prepare(bases, work)
        self.lines += [
            "  %last = sub i64 %end, 1",
            "  br label %check",
            "check:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %sample ]",
            "  %more = icmp slt i64 %i, %end",
            "  br i1 %more, label %sample, label %done",
            "sample:",
        ]
        self.read(bases, entries)
        for number in range(len(self.cut.chunks)):
            self.lines.append(f"  call void @chunk{number}(ptr {bases}, ptr {work})")
        self.write(entries)
        return "\n".join(
            [
                f"define void @{ENTRY}(ptr %table, i64 %begin, i64 %end) #0 {{",
                "entry:",
                *self.lines,
                f"  %next = add i64 %i, {self.lanes}",
                "  br label %check",
                "done:",
                "  ret void",
                "}",
            ]
        )

    def prepare(self, bases: str, work: str) -> None:
        """Write what precedes the loop."""

    def read(self, bases: str, entries: list[tuple[str, str]]) -> None:
        """Write what precedes the arithmetic: addresses of the samples."""
        for k, (address, stride) in enumerate(entries):
            self.set_base(bases, k, self.sample(address, stride, "%i"))

    def write(self, entries: list[tuple[str, str]]) -> None:
        """Write what follows the arithmetic."""

    def sample(self, address: str, stride: str, index: str) -> str:
        offset = self.emit(f"mul i64 {index}, {stride}")
        return self.emit(f"getelementptr i8, ptr {address}, i64 {offset}")

    def set_base(self, bases: str, k: int, address: str) -> None:
        place = self.emit(f"getelementptr ptr, ptr {bases}, i64 {k}")
        self.lines.append(f"  store ptr {address}, ptr {place}")

    def _entry(self, position: int) -> tuple[str, str]:
        return self._item(position, "ptr"), self._item(position + 1, "i64")

    def _item(self, position: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr %table, i64 {position}")
        return self.emit(f"load {kind}, ptr {place}")


class _SimdLoop(_ScalarLoop):
    """``lanes`` samples at a time, through buffers of vectors in the work array."""

    def __init__(self, cut: Plan, lanes: int) -> None:
        super().__init__(cut)
        self.lanes = lanes
        self.vector = f"<{lanes} x double>"
        self._transposes = Transposes(self.emit, self.lines, lanes)
        self._buffers: list[str] = []
        self._lane_numbers: list[str] = []

    def prepare(self, bases: str, work: str) -> None:
        first = self.cut.n_slots
        for k, port in enumerate(self.ports):
            buffer = self.emit(f"getelementptr {self.vector}, ptr {work}, i64 {first}")
            self._buffers.append(buffer)
            self.set_base(bases, k, buffer)
            first += port.size
        if not self.cut.copied:
            for k in range(len(self.cut.tape.inputs), len(self.ports)):
                self._buffers[k] = self.emit(f"alloca ptr, i64 {self.lanes}")
                self.set_base(bases, k, self._buffers[k])

    def read(self, bases: str, entries: list[tuple[str, str]]) -> None:
        for lane in range(self.lanes):
            number = self.emit(f"add i64 %i, {lane}")
            beyond = self.emit(f"icmp sgt i64 {number}, %last")
            number = self.emit(f"select i1 {beyond}, i64 %last, i64 {number}")
            self._lane_numbers.append(number)
        for k, port in enumerate(self.cut.tape.inputs):
            rows = [self.sample(*entries[k], number) for number in self._lane_numbers]
            for element, width in self._blocks(k, port.size, rows, _SimdLoop._read_block):
                self._read_block(rows, self._buffers[k], element, width)
        if not self.cut.copied:
            for k in range(len(self.cut.tape.inputs), len(self.ports)):
                for lane, number in enumerate(self._lane_numbers):
                    row = self.sample(*entries[k], number)
                    self.set_base(self._buffers[k], lane, row)

    def write(self, entries: list[tuple[str, str]]) -> None:
        if not self.cut.copied:
            return
        first = len(self.cut.tape.inputs)
        for k, port in enumerate(self.cut.tape.outputs, start=first):
            rows = [self.sample(*entries[k], number) for number in self._lane_numbers]
            for element, width in self._blocks(k, port.size, rows, _SimdLoop._write_block):
                self._write_block(rows, self._buffers[k], element, width)

    def _read_block(self, rows: list[str], buffer: str, element: Element, width: int) -> None:
        stacked = self._transposes.load_rows(rows, element, width)
        for column, value in enumerate(self._transposes.transpose(stacked)):
            self._store_vector(buffer, self._sum(element, column), value)

    def _write_block(self, rows: list[str], buffer: str, element: Element, width: int) -> None:
        columns = [self._load_vector(buffer, self._sum(element, j)) for j in range(width)]
        self._transposes.store_rows(rows, element, self._transposes.transpose(columns))

    def _sum(self, element: Element, more: int) -> Element:
        """The number of an element, known now or when the code runs."""
        if isinstance(element, int):
            return element + more
        return self.emit(f"add i64 {element}, {more}") if more else element

    def _roll(self, k: int, size: int, rows: list[str], block: Callable[..., None]) -> int:
        """Call a loop over the whole blocks of a long sample; returns how many elements it does."""
        whole = size - size % self.lanes
        body = _SimdLoop(self.cut, self.lanes)
        body._count = len(rows)  # numbers below are those of the arguments
        names = [f"%row{lane}" for lane in range(self.lanes)]
        block(body, names, "%buffer", "%e", self.lanes)
        lines = "\n".join(body.lines)
        arguments = ", ".join(f"ptr {name}" for name in names)
        self.helpers.append(
            f"define internal void @port{k}({arguments}, ptr %buffer) #0 {{\nentry:\n"
            "  br label %block\nblock:\n"
            f"  %e = phi i64 [ 0, %entry ], [ %e.next, %block ]\n{lines}\n"
            f"  %e.next = add i64 %e, {self.lanes}\n  %more = icmp slt i64 %e.next, {whole}\n"
            "  br i1 %more, label %block, label %done\ndone:\n  ret void\n}\n"
        )
        given = ", ".join(f"ptr {row}" for row in rows)
        self.lines.append(f"  call void @port{k}({given}, ptr {self._buffers[k]})")
        return whole

    def _blocks(
        self, k: int, size: int, rows: list[str], block: Callable[..., None]
    ) -> Iterator[tuple[int, int]]:
        """First element and width of blocks that cover a sample; widths are powers of two.

        A long sample's whole blocks are left to a loop.
        """
        first = self._roll(k, size, rows, block) if size > MOST_STORES else 0
        yield from blocks(first, size, self.lanes)

    def _load_vector(self, buffer: str, element: Element) -> str:
        place = self.emit(f"getelementptr {self.vector}, ptr {buffer}, i64 {element}")
        return self.emit(f"load {self.vector}, ptr {place}, align {8 * self.lanes}")

    def _store_vector(self, buffer: str, element: Element, value: str) -> None:
        place = self.emit(f"getelementptr {self.vector}, ptr {buffer}, i64 {element}")
        alignment = 8 * self.lanes
        self.lines.append(f"  store {self.vector} {value}, ptr {place}, align {alignment}")
