"""Programs as kernels: one thread per run, everything it works on in registers.

The instructions are those of the CPU: the same tapes are lowered by the same code, inlined into one
function, and LLVM's optimizer turns the buffers into registers. Arrays stay where the caller has
them, addressed by the bytes between runs and between elements, so that any layout is read without a
copy; coalescing wants the runs next to each other.

Arguments are passed by value, so that a launch copies nothing. A kernel of runs also counts them by
status and adds up times, so that the caller need not read those of all runs.

The same kernel can be written for the CPU, where a test can run it without a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axode.codegen.ir import Format
from axode.codegen.lowering.chunk_plan import UNCUT, Plan, plan
from axode.codegen.lowering.instructions import ChunkLowering
from axode.codegen.lowering.matrix_loops import column_functions
from axode.codegen.lowering.program_loop import ProgramWriter
from axode.codegen.tape.program import Operation, Program, ReadRow, WriteRow

GLOBAL = " addrspace(1)"
STATUS, TIME = "status", "t"  # buffers of runs that are summed up
STATUSES = 16  # counted, from zero on
WARP = 32  # threads that vote together
_THREAD = """declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
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
    """IR of kernels ``void entry(table, i64 count)``, the table by value, by name of their entry.

    Args:
        programs: What one thread does, by entry.
        number: Format of all arrays and of the arithmetic.
        host: For the CPU, where the table is an address and the number of the run a third argument.
    """
    declarations = {f"declare i64 @llvm.fptosi.sat.i64.f{number.bits}({number.real})"}
    functions: list[str] = []
    if any(program.has_matrices for program in programs.values()):
        pairs = any(program.has_pairs for program in programs.values())
        texts, needed = column_functions(1, 1, number, pairs=pairs)
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


def sums_up(program: Program) -> bool:
    """Return whether a program's kernel counts its runs by status."""
    return STATUS in program.state


class ThreadWriter(ProgramWriter):
    """Writes a kernel: one run, its buffers in registers, arrays by strides.

    The table holds, for every external buffer, address, bytes between runs and bytes between
    elements; for every table, address, bytes between runs, rows and elements, and number of rows;
    then the budget; last the address where runs are summed up, or zero: how many have each status,
    `STATUSES` whole numbers, and the sum of the times of every `WARP`-th run, a double.
    """

    def __init__(
        self, program: Program, plans: dict[str, tuple[int, Plan]], number: Format, *, host: bool
    ) -> None:
        super().__init__(program, 1, plans, number)
        self.host, self.columns = host, 1
        self.space = "" if host else GLOBAL
        self._strides: dict[str, tuple[str, ...]] = {}
        self._last = 0  # place of the last item of the table

    def kernel(self, entry: str) -> str:
        """The IR of the exported function."""
        self._prologue()
        first, self.lines = self.lines, []  # buffers made in the entry block can become registers
        self._enter_group()
        for operation in self.program.operations:
            self._operation(operation)
        self._leave_group()
        group, self.lines = self.lines, []
        self._sum_up()
        return "\n".join(
            [
                f"define {self._signature(entry)} #1 {{",
                "entry:",
                "" if self.host else _INDEX,
                *first,
                "  %inside = icmp slt i64 %i, %count",
                "  br i1 %inside, label %group, label %outside",
                "group:",
                *group,
                "  br label %outside",
                "outside:",
                *self.lines,
                "  br label %done",
                "done:",
                "  ret void",
                "}",
                "",
            ]
        )

    def _signature(self, entry: str) -> str:
        if self.host:
            return f"void @{entry}(ptr %table, i64 %count, i64 %i)"
        items = 3 * len(self.program.external) + 5 * len(self.program.tables) + 2
        table = f"ptr byval([{items} x i64]) align 8 %table"
        return f"ptx_kernel void @{entry}({table}, i64 %count)"

    def _sum_up(self) -> None:
        """Count the runs of a warp by status, and add the time of the first, if asked to.

        All threads of a warp vote, so those without a run come here as well.
        """
        if not sums_up(self.program):
            return
        address = self._item(self._last, f"ptr{self.space}")
        wanted = self.emit(f"icmp ne ptr{self.space} {address}, null")
        self.line(f"br i1 {wanted}, label %sum_up, label %done")
        self.label("sum_up")
        status = self.emit(f"load {self.number}, ptr {self.places[STATUS]}")
        lane = "%i" if self.host else "%wide_thread"
        leads = self.emit(f"icmp eq i64 {self.emit(f'and i64 {lane}, {WARP - 1}')}, 0")
        for code in range(STATUSES):
            equal = self.emit(f"fcmp oeq {self.number} {status}, {float(code)}")
            flag = self.emit(f"and i1 {equal}, %inside")
            if self.host:
                count, adds = self.emit(f"zext i1 {flag} to i64"), flag
            else:
                votes = self.emit(f"call i32 @llvm.nvvm.vote.ballot.sync(i32 -1, i1 {flag})")
                raised = self.emit(f"call i32 @llvm.ctpop.i32(i32 {votes})")
                count = self.emit(f"zext i32 {raised} to i64")
                adds = self.emit(f"and i1 {leads}, {self.emit(f'icmp ne i32 {votes}, 0')}")
            self._add(address, code, f"add{{}} i64 {count}", adds)
        if TIME in self.program.state:
            t = self.emit(f"load {self.number}, ptr {self.places[TIME]}")
            if self.number != "double":
                t = self.emit(f"fpext {self.number} {t} to double")
            adds = self.emit(f"and i1 {leads}, %inside")
            self._add(address, STATUSES, f"fadd{{}} double {t}", adds)

    def _add(self, address: str, place: int, what: str, flag: str) -> None:
        add, after = self.labels("add", "added")
        self.line(f"br i1 {flag}, label %{add}, label %{after}")
        self.label(add)
        there = self.emit(f"getelementptr i64, ptr{self.space} {address}, i64 {place}")
        self.emit(f"atomicrmw {what.format(f' ptr{self.space} {there},')} monotonic")
        self.line(f"br label %{after}")
        self.label(after)

    def _prologue(self) -> None:
        position = 0
        for name in self.program.external:
            self._strides[name] = self._entry(position, 2)
            position += 3
        for name in self.program.tables:
            self._strides[name] = self._entry(position, 4)
            position += 5
        self.budget, self._last = self._item(position, "i64"), position + 1
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
        place = self.emit(f"getelementptr i64, ptr %table, i64 {position}")
        return self.emit(f"load {kind}, ptr {place}")

    def _enter_group(self) -> None:
        for name in self.program.external:
            address, runs, elements = self._strides[name]
            row, places = self._offset(address, "%i", runs), self.program.varying(name)
            self._unroll(row, elements, name, places, fetch=True)
            for place, value in self.program.constants.get(name, {}).items():
                near = self._element(name, place)
                self.line(f"store {self.number} {self.format.literal(value)}, ptr {near}")
        self._store_bases()
        self.line(f"store i64 0, ptr {self.spent}")

    def _leave_group(self) -> None:
        for name, size in self.program.state.items():
            address, runs, elements = self._strides[name]
            row = self._offset(address, "%i", runs)
            self._unroll(row, elements, name, range(size), fetch=False)

    def _offset(self, address: str, count: str, stride: str) -> str:
        bytes_ = self.emit(f"mul i64 {count}, {stride}")
        return self.emit(f"getelementptr i8, ptr{self.space} {address}, i64 {bytes_}")

    def _element(self, buffer: str, place: int) -> str:
        return self.emit(f"getelementptr {self.number}, ptr {self.places[buffer]}, i64 {place}")

    def _unroll(
        self, row: str, stride: str, buffer: str, places: Sequence[int], *, fetch: bool
    ) -> None:
        """Copy element by element: only constant places can become registers."""
        kind, align = self.number, f"align {self.format.bytes}"
        for e, place in enumerate(places):
            far = self._offset(row, str(e), stride)
            near = self._element(buffer, place)
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
            self._unroll(row, stride, operation.buffer, range(width), fetch=True)
        else:
            super()._operation(operation)

    def _row_of(self, table: str, index: str) -> tuple[str, str]:
        address, runs, rows, elements, count = self._strides[table]
        start = self._offset(address, "%i", runs)
        return self._offset(start, self._whole(index, 0, count), rows), elements

    def _write_one(self, operation: WriteRow, lane: int, run: str) -> None:
        row, stride = self._row_of(operation.table, operation.index)
        width = self.program.tables[operation.table]
        self._unroll(row, stride, operation.buffer, range(width), fetch=False)
