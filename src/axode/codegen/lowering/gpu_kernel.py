"""Programs as kernels: one thread per run, everything it works on in registers.

The instructions are those of the CPU: the same tapes are lowered by the same code, inlined into one
function, and LLVM's optimizer turns the buffers into registers. Arrays stay where the caller has
them, addressed by the bytes between runs and between elements, so that any layout is read without a
copy; coalescing wants the runs next to each other.

The same kernel can be written for the CPU, where a test can run it without a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping

from axode.codegen.lowering.derivative_columns import column_functions
from axode.codegen.lowering.instructions import UNCUT, ChunkLowering, Plan, plan
from axode.codegen.lowering.ir import Format
from axode.codegen.lowering.program import Operation, Program, ReadRow, WriteRow
from axode.codegen.lowering.program_loop import ProgramWriter

GLOBAL = " addrspace(1)"
_THREAD = """declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
"""
_INDEX = """  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %width = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide_block = zext i32 %block to i64
  %wide_width = zext i32 %width to i64
  %wide_thread = zext i32 %thread to i64
  %first = mul i64 %wide_block, %wide_width
  %i = add i64 %first, %wide_thread
"""


def thread_module(programs: Mapping[str, Program], number: Format, *, host: bool) -> str:
    """IR of kernels ``void entry(ptr table, i64 count)`` by the name of their entry.

    Args:
        programs: What one thread does, by entry.
        number: Format of all arrays and of the arithmetic.
        host: For the CPU, where the number of the run is a third argument.
    """
    declarations = {f"declare i64 @llvm.fptosi.sat.i64.f{number.bits}({number.real})"}
    functions: list[str] = []
    if any(program.columns for program in programs.values()):
        texts, needed = column_functions(1, 1, number)
        functions += texts
        declarations |= needed
    for place, (entry, program) in enumerate(programs.items()):
        plans: dict[str, tuple[int, Plan]] = {}
        for count, tape in enumerate(program.tapes):
            cut = plan(tape, longest=UNCUT, stores=UNCUT)
            plans[tape.digest] = (count, cut)
            chunk = ChunkLowering(cut, 0, 1, number)
            functions.append(chunk.text(f"k{place}_tape{count}_0"))
            declarations |= chunk.w.declarations
        writer = ThreadWriter(program, plans, number, host=host)
        writer.tape_prefix = f"k{place}_tape"
        functions.append(writer.kernel(entry))
    head = [] if host else ['target triple = "nvptx64-nvidia-cuda"', _THREAD]
    attributes = "attributes #0 = { nounwind alwaysinline }\nattributes #1 = { nounwind }\n"
    return "\n".join([*head, *sorted(declarations), *functions, attributes])


class ThreadWriter(ProgramWriter):
    """Writes a kernel: one run, its buffers in registers, arrays by strides.

    The table holds, for every external buffer, address, bytes between runs and bytes between
    elements; for every table, address, bytes between runs, rows and elements, and number of rows;
    then the budget.
    """

    def __init__(
        self, program: Program, plans: dict[str, tuple[int, Plan]], number: Format, *, host: bool
    ) -> None:
        super().__init__(program, 1, plans, number)
        self.host, self.columns = host, 1
        self.space = "" if host else GLOBAL
        self._strides: dict[str, tuple[str, ...]] = {}

    def kernel(self, entry: str) -> str:
        """The IR of the exported function."""
        self._prologue()
        first, self.lines = self.lines, []  # buffers made in the entry block can become registers
        self._enter_group()
        for operation in self.program.operations:
            self._operation(operation)
        self._leave_group()
        convention = "" if self.host else "ptx_kernel "
        own = ", i64 %i" if self.host else ""
        index = "" if self.host else _INDEX
        return "\n".join(
            [
                f"define {convention}void @{entry}(ptr{self.space} %table, i64 %count{own}) #1 {{",
                "entry:",
                index,
                *first,
                "  %inside = icmp slt i64 %i, %count",
                "  br i1 %inside, label %group, label %done",
                "group:",
                *self.lines,
                "  br label %done",
                "done:",
                "  ret void",
                "}",
                "",
            ]
        )

    def _prologue(self) -> None:
        position = 0
        for name in self.program.external:
            self._strides[name] = self._entry(position, 2)
            position += 3
        for name in self.program.tables:
            self._strides[name] = self._entry(position, 4)
            position += 5
        self.budget = self._item(position, "i64")
        self.spent, self.turn = self.emit("alloca i64"), self.emit("alloca i64")
        for name, size in {**self.program.local, **self.program.external}.items():
            kind = f"[{max(size, 1)} x {self.number}], align {self.format.bytes}"
            self.places[name] = self.emit(f"alloca {kind}")
        self.slots = "null"
        self._make_bases()

    def _entry(self, position: int, numbers: int) -> tuple[str, ...]:
        address = self._item(position, f"ptr{self.space}")
        return (address, *(self._item(position + 1 + k, "i64") for k in range(numbers)))

    def _item(self, position: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr{self.space} %table, i64 {position}")
        return self.emit(f"load {kind}, ptr{self.space} {place}")

    def _enter_group(self) -> None:
        for name, size in self.program.external.items():
            address, runs, elements = self._strides[name]
            self._unroll(self._offset(address, "%i", runs), elements, name, size, fetch=True)
        self._store_bases()
        self.line(f"store i64 0, ptr {self.spent}")

    def _leave_group(self) -> None:
        for name, size in self.program.state.items():
            address, runs, elements = self._strides[name]
            self._unroll(self._offset(address, "%i", runs), elements, name, size, fetch=False)

    def _offset(self, address: str, count: str, stride: str) -> str:
        bytes_ = self.emit(f"mul i64 {count}, {stride}")
        return self.emit(f"getelementptr i8, ptr{self.space} {address}, i64 {bytes_}")

    def _unroll(self, row: str, stride: str, buffer: str, size: int, *, fetch: bool) -> None:
        """Copy element by element: only constant places can become registers."""
        kind, align = self.number, f"align {self.format.bytes}"
        for e in range(size):
            far = self._offset(row, str(e), stride)
            near = self.emit(f"getelementptr {kind}, ptr {self.places[buffer]}, i64 {e}")
            if fetch:
                x = self.emit(f"load {kind}, ptr{self.space} {far}, {align}")
                self.line(f"store {kind} {x}, ptr {near}, {align}")
            else:
                x = self.emit(f"load {kind}, ptr {near}, {align}")
                self.line(f"store {kind} {x}, ptr{self.space} {far}, {align}")

    def _operation(self, operation: Operation) -> None:
        if isinstance(operation, ReadRow):
            row, stride = self._row_of(operation.table, operation.index)
            width = self.program.tables[operation.table]
            self._unroll(row, stride, operation.buffer, width, fetch=True)
        else:
            super()._operation(operation)

    def _row_of(self, table: str, index: str) -> tuple[str, str]:
        address, runs, rows, elements, count = self._strides[table]
        start = self._offset(address, "%i", runs)
        return self._offset(start, self._whole(index, 0, count), rows), elements

    def _write_one(self, operation: WriteRow, lane: int, run: str) -> None:
        row, stride = self._row_of(operation.table, operation.index)
        width = self.program.tables[operation.table]
        self._unroll(row, stride, operation.buffer, width, fetch=False)
