"""Programs as IR: a loop over groups of runs around calls of tapes and loops over buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property

from axode.codegen.host import host
from axode.codegen.ir import DOUBLE, MODEL_FLAGS, Format, NumberedLines
from axode.codegen.lowering.chunk_plan import Plan, slots_needed
from axode.codegen.lowering.instructions import ChunkLowering, attributes, lower_tape
from axode.codegen.lowering.matrix_loops import (
    column_functions,
    write_columns,
    write_combination,
    write_keeping,
    write_largest,
)
from axode.codegen.tape.program import (
    ENTRY,
    Evaluate,
    FactorMatrix,
    JacobianColumns,
    LargestElement,
    MaskedCopy,
    Operation,
    Program,
    ReadRow,
    Solve,
    WeightedSum,
    While,
    WriteRow,
)


def row_copies(lanes: int, *, interleaved: bool) -> tuple[list[str], set[str]]:
    """Functions that copy rows, and what they need declared.

    Args:
        lanes: Runs per vector.
        interleaved: Whether a table holds each number of a group of runs side by side.
    """
    vector = f"<{lanes} x double>"
    place = [f"%first = mul i64 %e, {lanes}", "%place = add i64 %first, %lane"]
    # one run's row of plain numbers to and from a buffer, whose lanes lie next to each other
    functions = [
        _loop(
            "fetch(ptr %row, ptr %buffer, i64 %lane", [*place, *_move("row", "buffer", "e place")]
        ),
        _loop("put(ptr %row, ptr %buffer, i64 %lane", [*place, *_move("buffer", "row", "place e")]),
    ]
    if not interleaved or lanes == 1:
        return functions, set()
    ask = [
        f"%there = getelementptr {vector}, ptr %row, i64 %e",
        "call void @llvm.prefetch.p0(ptr %there, i32 0, i32 2, i32 1)",
    ]
    # a row of all runs of a group at once, and the numbers of one of them
    functions += [
        _loop("announce(ptr %row", ask),
        _loop("copy(ptr %from, ptr %to", _move("from", "to", "e e", vector)),
        _loop("pick(ptr %from, ptr %to, i64 %lane", [*place, *_move("from", "to", "place place")]),
    ]
    return functions, {"declare void @llvm.prefetch.p0(ptr, i32, i32, i32)"}


def _move(source: str, target: str, places: str, kind: str = "double") -> list[str]:
    """Load a number or a vector here, and store it there."""
    here, there = places.split()
    return [
        f"%loaded = getelementptr {kind}, ptr %{source}, i64 %{here}",
        f"%x = load {kind}, ptr %loaded, align 8",
        f"%stored = getelementptr {kind}, ptr %{target}, i64 %{there}",
        f"store {kind} %x, ptr %stored, align 8",
    ]


def _loop(head: str, body: list[str]) -> str:
    """A function that does something for every number of a row, %e."""
    lines = [
        *("entry:", "  br label %check", "check:"),
        "  %e = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %e, %size",
        "  br i1 %more, label %body, label %done",
        "body:",
        *(f"  {line}" for line in body),
        *("  %next = add i64 %e, 1", "  br label %check", "done:", "  ret void"),
    ]
    return "\n".join([f"\ndefine internal void @{head}, i64 %size) #0 {{", *lines, "}\n"])


INLINE = 3  # numbers of a row that are copied without a call


class ProgramModules:
    """Writes the IR of a program, that of its longest tapes apart.

    Args:
        program: The program.
        lanes: Runs per vector.
        apart: Digests of the tapes that stand in a module of their own.
    """

    def __init__(self, program: Program, lanes: int, apart: Collection[str] = ()) -> None:
        self._program, self._lanes, self._apart = program, lanes, frozenset(apart)

    @cached_property
    def _tapes(self) -> dict[str, tuple[int, list[ChunkLowering]]]:
        """Number and functions of each tape."""
        side_by_side, program = self._side_by_side, self._program
        return {
            tape.digest: (
                number,
                lower_tape(tape, side_by_side if tape.digest in program.along else self._lanes),
            )
            for number, tape in enumerate(program.tapes)
        }

    @property
    def _side_by_side(self) -> int:
        return host().lanes if self._lanes == 1 else self._lanes

    def main(self) -> str:
        """IR of ``void rollout(ptr table, i64 begin, i64 end)``.

        ``table`` holds address and bytes between runs of every external buffer; address, bytes
        between runs and number of rows of every table; the budget; the addresses of the work array
        and of the numbers of the runs, of which those from ``begin`` to ``end`` are advanced.
        """
        program, lanes = self._program, self._lanes
        declarations: set[str] = {"declare i64 @llvm.fptosi.sat.i64.f64(double)"}
        functions, needed = row_copies(lanes, interleaved=bool(program.interleaved))
        declarations |= needed
        if program.has_matrices:
            pairs = program.has_pairs
            texts, needed = column_functions(lanes, self._side_by_side, pairs=pairs)
            functions += texts
            declarations |= needed
        plans = {digest: (k, parts[0].plan) for digest, (k, parts) in self._tapes.items()}
        for digest in self._apart:
            number, parts = self._tapes[digest]
            declarations |= {
                f"declare void @tape{number}_{place}(ptr, ptr)" for place in range(len(parts))
            }
        own = [digest for digest in self._tapes if digest not in self._apart]
        texts, needed, widest = self._functions(own, "internal ")
        loop = ProgramWriter(program, lanes, plans).text()
        return self._module(declarations | needed, [*functions, *texts, loop], widest)

    def further(self) -> str:
        """IR of the tapes that stand apart."""
        texts, needed, widest = self._functions(self._apart, "")
        return self._module(needed, texts, widest)

    def _functions(self, digests: Iterable[str], linkage: str) -> tuple[list[str], set[str], int]:
        """Functions of some tapes, what they need declared, and their widest vector."""
        texts, needed, widest = [], set[str](), self._lanes
        for digest in digests:
            number, parts = self._tapes[digest]
            for place, part in enumerate(parts):
                texts.append(part.text(f"tape{number}_{place}", linkage))
                needed |= part.w.declarations
                widest = max(widest, part.widest)
        return texts, needed, widest

    def _module(self, declarations: set[str], functions: Sequence[str], widest: int) -> str:
        text = "\n".join([*sorted(declarations), *functions, attributes(widest)])
        return text.replace(MODEL_FLAGS, "") if self._program.in_order else text


class ProgramWriter(NumberedLines):
    """Writes the exported function: a loop over groups of runs around the program."""

    def __init__(
        self,
        program: Program,
        lanes: int,
        plans: dict[str, tuple[int, Plan]],
        number: Format = DOUBLE,
    ) -> None:
        super().__init__()
        self.program, self.lanes, self.plans, self.format = program, lanes, plans, number
        self.number = number.real
        self.real = self.number if lanes == 1 else f"<{lanes} x {self.number}>"
        self.width = host().lanes if lanes == 1 else lanes
        self.columns = self.width if lanes == 1 else 1  # numbers of one run in a vector
        self.tape_prefix = "tape"
        self._labels = 0
        self.places: dict[str, str] = {}  # address of every buffer
        self.wide_places: dict[str, str] = {}  # of those that have a vector for every number
        self._wide_slots = ""
        self._bases: dict[int, str] = {}  # address list of every evaluation
        self._rows: dict[str, tuple[str, str]] = {}
        self._tables: dict[str, tuple[str, str, str]] = {}
        self._runs: list[str] = []
        self._order = ""

    def labels(self, *names: str) -> list[str]:
        """Labels that are not used yet."""
        self._labels += 1
        return [f"{name}{self._labels}" for name in names]

    def text(self) -> str:
        """The IR of the exported function."""
        self._prologue()
        self.lines += [
            "  %last = sub i64 %end, 1",
            "  br label %check",
            "check:",
            "  %i = phi i64 [ %begin, %entry ], [ %next, %tail ]",
            "  %more = icmp slt i64 %i, %end",
            "  br i1 %more, label %group, label %done",
            "group:",
        ]
        self._enter_group()
        for operation in self.program.operations:
            self._operation(operation)
        self._leave_group()
        self.line("br label %tail")
        return "\n".join(
            [
                f"define void @{ENTRY}(ptr %table, i64 %begin, i64 %end) #0 {{",
                "entry:",
                *self.lines,
                "tail:",
                f"  %next = add i64 %i, {self.lanes}",
                "  br label %check",
                "done:",
                "  ret void",
                "}",
                "",
            ]
        )

    def _prologue(self) -> None:
        """Addresses that do not change from group to group."""
        position = 0
        for name in self.program.external:
            self._rows[name] = (self._item(position, "ptr"), self._item(position + 1, "i64"))
            position += 2
        for name in self.program.tables:
            entry = (
                self._item(position, "ptr"),
                self._item(position + 1, "i64"),
                self._item(position + 2, "i64"),
            )
            self._tables[name] = entry
            position += 3
        self.budget = self._item(position, "i64")
        self.spent, self.turn = self.emit("alloca i64"), self.emit("alloca i64")
        offset, work = 0, self._item(position + 1, "ptr")
        self._order = self._item(position + 2, "ptr")
        if self.lanes == 1 and self.program.columns:
            work = self._place_wide(work)
        owned = dict(self.program.local)
        if self.lanes > 1:
            owned |= self.program.external
        for name, size in owned.items():
            self.places[name] = self.emit(f"getelementptr {self.real}, ptr {work}, i64 {offset}")
            offset += size
        self.slots = self.emit(f"getelementptr {self.real}, ptr {work}, i64 {offset}")
        self._make_bases()

    def _make_bases(self) -> None:
        for operation in self.program.flatten():
            if isinstance(operation, Evaluate):
                size = len(operation.buffers)
                self._bases[id(operation)] = self.emit(f"alloca ptr, i64 {size}")

    def _place_wide(self, work: str) -> str:
        """Addresses of what has a vector for every number, first because vectors are aligned."""
        vector, offset = f"<{self.width} x {self.number}>", 0
        for name, size in self.program.wide.items():
            self.wide_places[name] = self.emit(f"getelementptr {vector}, ptr {work}, i64 {offset}")
            offset += size
        self._wide_slots = self.emit(f"getelementptr {vector}, ptr {work}, i64 {offset}")
        offset += max(map(slots_needed, self.program.along.values()))
        return self.emit(f"getelementptr {vector}, ptr {work}, i64 {offset}")

    def _item(self, position: int, kind: str) -> str:
        place = self.emit(f"getelementptr i64, ptr %table, i64 {position}")
        return self.emit(f"load {kind}, ptr {place}")

    def _enter_group(self) -> None:
        self._runs = []
        for lane in range(self.lanes):
            number = self.emit(f"add i64 %i, {lane}")
            beyond = self.emit(f"icmp sgt i64 {number}, %last")
            place = self.emit(f"select i1 {beyond}, i64 %last, i64 {number}")
            run = self.emit(f"getelementptr i64, ptr {self._order}, i64 {place}")
            self._runs.append(self.emit(f"load i64, ptr {run}"))
        for name, size in self.program.external.items():
            rows = [self._row(*self._rows[name], run) for run in self._runs]
            if self.lanes == 1:
                self.places[name] = rows[0]  # one run works where the caller's numbers are
                continue
            for lane, row in enumerate(rows):
                self._copy("fetch", row, self.places[name], lane, size)
        self._store_bases()
        self.line(f"store i64 0, ptr {self.spent}")

    def _store_bases(self) -> None:
        """Pass every evaluation the addresses of its buffers."""
        for operation in self.program.flatten():
            if isinstance(operation, Evaluate):
                wide = self.wide_places if operation.tape.digest in self.program.along else {}
                for k, name in enumerate(operation.buffers):
                    slot = f"getelementptr ptr, ptr {self._bases[id(operation)]}, i64 {k}"
                    place = wide.get(name, self.places[name])
                    self.line(f"store ptr {place}, ptr {self.emit(slot)}")

    def _leave_group(self) -> None:
        if self.lanes == 1:
            return
        for name, size in self.program.state.items():
            for lane, run in enumerate(self._runs):
                self._copy("put", self._row(*self._rows[name], run), self.places[name], lane, size)

    def _row(self, address: str, stride: str, run: str) -> str:
        offset = self.emit(f"mul i64 {run}, {stride}")
        return self.emit(f"getelementptr i8, ptr {address}, i64 {offset}")

    def _copy(self, function: str, row: str, buffer: str, lane: int, size: int) -> None:
        if size > INLINE or self.format is not DOUBLE:
            self.line(f"call void @{function}(ptr {row}, ptr {buffer}, i64 {lane}, i64 {size})")
            return
        for e in range(size):
            pair = [
                self.emit(f"getelementptr double, ptr {row}, i64 {e}"),
                self.emit(f"getelementptr double, ptr {buffer}, i64 {e * self.lanes + lane}"),
            ]
            if function == "put":
                pair.reverse()
            number = self.emit(f"load double, ptr {pair[0]}, align 8")
            self.line(f"store double {number}, ptr {pair[1]}, align 8")

    def _operation(self, operation: Operation) -> None:
        match operation:
            case Evaluate():
                self.evaluate(operation)
            case ReadRow(table, index, _):
                if self._is_interleaved(table):
                    together = self._all(self._are_equal(index))
                    self._by_vectors(operation, together, lambda: self._read_row(operation))
                else:
                    self._read_row(operation)
            case WriteRow(table, index, _, flag):
                if self._is_interleaved(table):
                    both = self.emit(
                        f"and <{self.lanes} x i1> {self._are_equal(index)}, {self._are_up(flag)}"
                    )
                    self._by_vectors(operation, self._all(both), lambda: self._write_row(operation))
                else:
                    self._write_row(operation)
            case While():
                self._while(operation)
            case JacobianColumns():
                write_columns(self, operation)
            case FactorMatrix():
                names = operation.jacobian, operation.scale, operation.matrix, operation.work
                self._eliminate("factor", operation, names)
            case Solve(system, vector):
                names = system.jacobian, system.matrix, system.work, vector
                self._eliminate("solve", system, names)
            case WeightedSum():
                write_combination(self, operation)
            case LargestElement():
                write_largest(self, operation)
            case MaskedCopy():
                write_keeping(self, operation)

    def _eliminate(self, name: str, system: FactorMatrix, buffers: Sequence[str]) -> None:
        given = [f"ptr {self.places[b]}" for b in buffers] + [f"i64 {n}" for n in system.sizes]
        self.line(f"call void @{name}{'_pair' * system.pair}({', '.join(given)})")

    def evaluate(self, operation: Evaluate, *, wide: bool = False) -> None:
        """Call the functions of a tape."""
        number, cut = self.plans[operation.tape.digest]
        slots = self._wide_slots if wide else self.slots
        for part in range(len(cut.chunks)):
            self.line(
                f"call void @{self.tape_prefix}{number}_{part}"
                f"(ptr {self._bases[id(operation)]}, ptr {slots})"
            )

    # tables of which each number of a group of runs lies side by side ---------------------------

    def _is_interleaved(self, table: str) -> bool:
        return self.lanes > 1 and table in self.program.interleaved

    def _vector(self, buffer: str) -> str:
        align = self.format.bytes * self.lanes
        return self.emit(f"load {self.real}, ptr {self.places[buffer]}, align {align}")

    def _are_equal(self, buffer: str) -> str:
        """Which lanes have the number of the first one."""
        value = self._vector(buffer)
        mask = f"<{self.lanes} x i32> zeroinitializer"
        first = self.emit(f"shufflevector {self.real} {value}, {self.real} poison, {mask}")
        return self.emit(f"fcmp oeq {self.real} {value}, {first}")

    def _are_up(self, flag: str) -> str:
        return self.emit(f"fcmp une {self.real} {self._vector(flag)}, zeroinitializer")

    def _all(self, bits: str) -> str:
        packed = self.emit(f"bitcast <{self.lanes} x i1> {bits} to i{self.lanes}")
        return self.emit(f"icmp eq i{self.lanes} {packed}, -1")

    def _by_vectors(
        self, operation: ReadRow | WriteRow, together: str, otherwise: Callable[[], None]
    ) -> None:
        """Copy a row of all runs as it is where they are at the same one, else run by run."""
        fast, slow, after = self.labels("together", "apart", "copied")
        self.line(f"br i1 {together}, label %{fast}, label %{slow}")
        self.label(fast)
        row = self._table_row(operation.table, operation.index, 0, "%i")
        pair = [row, self.places[operation.buffer]]
        if isinstance(operation, WriteRow):
            pair.reverse()
        width = self.program.tables[operation.table]
        self.line(f"call void @copy(ptr {pair[0]}, ptr {pair[1]}, i64 {width})")
        if isinstance(operation, ReadRow):  # rows are read downwards
            before = self.emit(f"getelementptr {self.real}, ptr {row}, i64 {-width}")
            self.line(f"call void @announce(ptr {before}, i64 {width})")
        self.line(f"br label %{after}")
        self.label(slow)
        otherwise()
        self.line(f"br label %{after}")
        self.label(after)

    def _read_row(self, operation: ReadRow) -> None:
        width = self.program.tables[operation.table]
        for lane, run in enumerate(self._runs):
            self._copy_row("fetch", operation, lane, run, width)

    def _copy_row(
        self, function: str, operation: ReadRow | WriteRow, lane: int, run: str, width: int
    ) -> None:
        """Copy the row of one run."""
        table, place = operation.table, self.places[operation.buffer]
        if not self._is_interleaved(table):
            row = self._table_row(table, operation.index, lane, run)
            self._copy(function, row, place, lane, width)
            return
        row = self._table_row(table, operation.index, lane, "%i")
        pair = (row, place) if function == "fetch" else (place, row)
        self.line(f"call void @pick(ptr {pair[0]}, ptr {pair[1]}, i64 {lane}, i64 {width})")

    def _table_row(self, table: str, index: str, lane: int, run: str) -> str:
        """Address of a row of a run, or of a group of them that begins with it."""
        address, stride, rows = self._tables[table]
        whole = self._whole(index, lane, rows)
        start = self._row(address, stride, run)
        width = self.program.tables[table] * (self.lanes if self._is_interleaved(table) else 1)
        size = self.emit(f"mul i64 {whole}, {width}")
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
        place = self.emit(f"getelementptr {self.number}, ptr {self.places[buffer]}, i64 {lane}")
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
        self._copy_row("put", operation, lane, run, self.program.tables[operation.table])

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
        value = self.emit(f"load {self.real}, ptr {self.places[buffer]}, align {align}")
        if self.lanes == 1:
            return self.emit(f"fcmp une {self.number} {value}, 0.0")
        zero = "zeroinitializer"
        bits = self.emit(f"fcmp une {self.real} {value}, {zero}")
        packed = self.emit(f"bitcast <{self.lanes} x i1> {bits} to i{self.lanes}")
        return self.emit(f"icmp ne i{self.lanes} {packed}, 0")


def program_work_size(program: Program, lanes: int) -> int:
    """Bytes of the work array that one thread needs for a program."""
    external = 0 if lanes == 1 else sum(program.external.values())
    slots = max(map(slots_needed, program.tapes), default=0)
    own = (sum(program.local.values()) + external + slots) * lanes * 8
    if lanes > 1 or not program.columns:
        return own
    return own + (sum(program.wide.values()) + slots) * host().lanes * 8
