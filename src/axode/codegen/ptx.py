"""Programs and tapes as PTX: one thread a run, everything it works on in registers.

The instructions are those of the CPU: the same tapes are lowered by the same code, inlined into one
kernel, and LLVM's optimiser turns the buffers into registers. Arrays stay where the caller has
them, addressed by the bytes between runs and between elements, so that any layout is read without a
copy; coalescing wants the runs next to each other.

The same kernel can be written for the CPU, where a test can run it without a GPU.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from axode.codegen.lowering import ChunkLowering, Plan, plan
from axode.codegen.program import (
    ENTRY,
    Evaluate,
    Operation,
    Program,
    ProgramWriter,
    ReadRow,
    WriteRow,
)
from axode.codegen.tape import Tape
from axode.errors import InvalidArgument

FORMAT = 1
CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0")
UNCUT = 1_000_000_000  # a kernel is one function, however long
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


@dataclass(frozen=True)
class Kernel:
    """PTX of a program and what its caller must know.

    Attributes:
        ptx: The text that a driver loads.
        header: Name, capability, sizes of buffers, widths of tables, in JSON's own types.
    """

    ptx: str
    header: dict[str, Any]

    def export(self, path: str | Path) -> tuple[Path, Path]:
        """Write `x.ptx` and `x.json`; `axode.runtime.cuda` loads them with CuPy alone."""
        from axode.codegen.modelfile import write_atomically

        place = Path(path)
        if place.suffix != ".ptx":
            raise InvalidArgument(f"a kernel is written to a .ptx file, got '{place.name}'")
        text = place.with_suffix(".json")
        write_atomically(place, self.ptx.encode())
        write_atomically(text, json.dumps(self.header, indent=1).encode())
        return place, text


def map_program(tape: Tape) -> Program:
    """One evaluation of a tape a run."""
    names = [port.name for port in tape.inputs]
    outputs = {f"out.{port.name}": port.size for port in tape.outputs}
    given = {port.name: port.size for port in tape.inputs}
    call = Evaluate(tape, (*names, *outputs))
    return Program(tape.name, state=outputs, given=given, tables={}, operations=(call,))


def kernel(program: Program, capability: str = "7.5") -> Kernel:
    """A program as PTX for one generation of GPUs and all later ones.

    Args:
        program: What one thread does.
        capability: Oldest compute capability it must run on.
    """
    if capability not in CAPABILITIES:
        known = ", ".join(CAPABILITIES)
        raise InvalidArgument(f"capability must be one of {known}, got {capability!r}")
    ptx = _emitted(_thread_module(program, host=False), capability)
    header = {
        "format": FORMAT, "name": program.name, "entry": ENTRY, "capability": capability,
        "state": program.state, "given": program.given, "tables": program.tables,
        "operations": sum(tape.n_operations for tape in program.tapes),
    }  # fmt: skip
    return Kernel(ptx, header)


def closest_capability(own: str) -> str:
    """The newest capability that a GPU understands.

    Raises:
        InvalidArgument: for GPUs older than all of them.
    """
    known = [c for c in CAPABILITIES if float(c) <= float(own)]
    if not known:
        raise InvalidArgument(f"compute capability {own} is older than {CAPABILITIES[0]}")
    return known[-1]


def host_module(program: Program) -> str:
    """The same kernel for the CPU: ``void rollout(ptr table, i64 count, i64 i)``."""
    return _thread_module(program, host=True)


def _emitted(ir: str, capability: str) -> str:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=f"sm_{capability.replace('.', '')}", opt=3)
    module = llvm.parse_assembly(ir, llvm.create_context())
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return str(machine.emit_assembly(module))


def _thread_module(program: Program, *, host: bool) -> str:
    declarations: set[str] = {"declare i64 @llvm.fptosi.sat.i64.f64(double)"}
    functions: list[str] = []
    plans: dict[str, tuple[int, Plan]] = {}
    for number, tape in enumerate(program.tapes):
        cut = plan(tape, longest=UNCUT)
        plans[tape.digest] = (number, cut)
        chunk = ChunkLowering(cut, 0, 1)
        functions.append(chunk.text(f"tape{number}_0"))
        declarations |= chunk.w.declarations
    head = [] if host else ['target triple = "nvptx64-nvidia-cuda"', _THREAD]
    body = _ThreadWriter(program, plans, host=host).text()
    attributes = "attributes #0 = { nounwind alwaysinline }\nattributes #1 = { nounwind }\n"
    return "\n".join([*head, *sorted(declarations), *functions, body, attributes])


class _ThreadWriter(ProgramWriter):
    """Writes the kernel: one run, its buffers in registers, arrays by strides.

    The table holds, for every external buffer, address, bytes between runs and bytes between
    elements; for every table, address, bytes between runs, rows and elements, and number of rows;
    then the budget.
    """

    def __init__(self, program: Program, plans: dict[str, tuple[int, Plan]], *, host: bool) -> None:
        super().__init__(program, 1, plans)
        self.host = host
        self.space = "" if host else GLOBAL
        self._strides: dict[str, tuple[str, ...]] = {}

    def text(self) -> str:
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
        return "\n".join([
            f"define {convention}void @{ENTRY}(ptr{self.space} %table, i64 %count{own}) #1 {{",
            "entry:", index, *first, "  %inside = icmp slt i64 %i, %count",
            "  br i1 %inside, label %group, label %done", "group:", *self.lines,
            "  br label %done", "done:", "  ret void", "}", "",
        ])  # fmt: skip

    def _prologue(self) -> None:
        position = 0
        for name in self.program.external:
            self._strides[name] = self._entry(position, 2)
            position += 3
        for name in self.program.tables:
            self._strides[name] = self._entry(position, 4)
            position += 5
        self.budget = self._item(position, "i64")
        self.spent = self.emit("alloca i64")
        for name, size in {**self.program.local, **self.program.external}.items():
            self._places[name] = self.emit(f"alloca [{max(size, 1)} x double], align 8")
        self.slots = "null"
        for operation in self.program.flattened():
            if isinstance(operation, Evaluate):
                size = len(operation.buffers)
                self._bases[id(operation)] = self.emit(f"alloca ptr, i64 {size}")

    def _entry(self, position: int, numbers: int) -> tuple[str, ...]:
        address = self._item(position, f"ptr{self.space}")
        return (address, *(self._item(position + 1 + k, "i64") for k in range(numbers)))

    def _item(self, position: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr{self.space} %table, i64 {position}")
        return self.emit(f"load {kind}, ptr{self.space} {place}")

    def _enter_group(self) -> None:
        for name, size in self.program.external.items():
            address, runs, elements = self._strides[name]
            self._unrolled(self._offset(address, "%i", runs), elements, name, size, fetch=True)
        self._store_bases()
        self.line(f"store i64 0, ptr {self.spent}")

    def _leave_group(self) -> None:
        for name, size in self.program.state.items():
            address, runs, elements = self._strides[name]
            self._unrolled(self._offset(address, "%i", runs), elements, name, size, fetch=False)

    def _offset(self, address: str, count: str, stride: str) -> str:
        bytes_ = self.emit(f"mul i64 {count}, {stride}")
        return self.emit(f"getelementptr i8, ptr{self.space} {address}, i64 {bytes_}")

    def _unrolled(self, row: str, stride: str, buffer: str, size: int, *, fetch: bool) -> None:
        """Copy element by element: only constant places can become registers."""
        for e in range(size):
            far = self._offset(row, str(e), stride)
            near = self.emit(f"getelementptr double, ptr {self._places[buffer]}, i64 {e}")
            if fetch:
                x = self.emit(f"load double, ptr{self.space} {far}, align 8")
                self.line(f"store double {x}, ptr {near}, align 8")
            else:
                x = self.emit(f"load double, ptr {near}, align 8")
                self.line(f"store double {x}, ptr{self.space} {far}, align 8")

    def _operation(self, operation: Operation) -> None:
        if isinstance(operation, ReadRow):
            row, stride = self._row_of(operation.table, operation.index)
            width = self.program.tables[operation.table]
            self._unrolled(row, stride, operation.buffer, width, fetch=True)
        else:
            super()._operation(operation)

    def _row_of(self, table: str, index: str) -> tuple[str, str]:
        address, runs, rows, elements, count = self._strides[table]
        start = self._offset(address, "%i", runs)
        return self._offset(start, self._whole(index, 0, count), rows), elements

    def _write_one(self, operation: WriteRow, lane: int, run: str) -> None:
        row, stride = self._row_of(operation.table, operation.index)
        width = self.program.tables[operation.table]
        self._unrolled(row, stride, operation.buffer, width, fetch=False)
