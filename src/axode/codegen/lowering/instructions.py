"""Tape instructions to IR, one function of a plan at a time, and packed tapes as one function.

Many results, such as those of a large matrix, are copied by a loop unless they are stored where
they are computed: stores one by one in one function take LLVM a time that grows with the square of
their number. Squares of numbers are transposed in registers, so that samples of row-major arrays
become vectors and back. A packed tape has numbers and vectors side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from axode.codegen.ir import DOUBLE, Format, Writer
from axode.codegen.lowering.chunk_plan import (
    LONGEST_FUNCTION,
    PARTNER,
    UNCUT,
    Plan,
    plan,
    plan_with_columns,
)
from axode.codegen.math.elementary import COMPARISONS, MODEL_OPERATIONS, RECIPES
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.operations import LEAVES, LOGICAL, Kind
from axode.codegen.tape.packing import (
    LANES_PER_INSTRUCTION,
    MISSING,
    ColumnSet,
    ColumnStep,
    Group,
    Packing,
    Vector,
    best_packing,
)
from axode.codegen.tape.rewriting import SHARED_DIVISIONS
from axode.codegen.tape.tape import Tape

# The number of an element of a sample: known, or a value of the code.
Element = int | str


def blocks(first: int, size: int, widest: int) -> Iterator[tuple[int, int]]:
    """First element and width of blocks that cover a sample from an element on.

    Widths are powers of two.
    """
    width = widest
    while first < size:
        while width > size - first:
            width //= 2
        yield first, width
        first += width


class Transposes:
    """Writes transposes of ``lanes`` samples.

    Args:
        emit: Appends an instruction and names its result.
        lines: Instructions so far.
        lanes: Samples that one vector holds.
    """

    def __init__(self, emit: Callable[[str], str], lines: list[str], lanes: int) -> None:
        self._emit, self._lines, self._lanes = emit, lines, lanes
        self._vector = f"<{lanes} x double>"

    def load_rows(self, rows: list[str], element: Element, width: int) -> list[str]:
        """``width`` elements of every sample; vector i holds samples i, i + width, ..."""
        kind = _vector(width)
        pieces = []
        for row in rows:
            place = self._emit(f"getelementptr double, ptr {row}, i64 {element}")
            pieces.append(self._emit(f"load {kind}, ptr {place}, align 8"))
        return [self._join(pieces[i::width], width) for i in range(width)]

    def store_rows(self, rows: list[str], element: Element, stacked: list[str]) -> None:
        """Store what ``load_rows`` loads."""
        width = len(stacked)
        kind = _vector(width)
        for lane, row in enumerate(rows):
            value = self._part(stacked[lane % width], lane // width, width)
            place = self._emit(f"getelementptr double, ptr {row}, i64 {element}")
            self._lines.append(f"  store {kind} {value}, ptr {place}, align 8")

    def _join(self, pieces: list[str], width: int) -> str:
        """Join pieces of one width in one vector."""
        if width == 1:
            value = "poison"
            for lane, piece in enumerate(pieces):
                value = self._emit(
                    f"insertelement {self._vector} {value}, double {piece}, i64 {lane}"
                )
            return value
        while len(pieces) > 1:
            every = range(2 * width)
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self._shuffle(a, b, every, width) for a, b in pairs]
            width *= 2
        return pieces[0]

    def _part(self, value: str, number: int, width: int) -> str:
        """Return a piece of a vector."""
        if width == self._lanes:
            return value
        if width == 1:
            return self._emit(f"extractelement {self._vector} {value}, i64 {number}")
        picks = range(number * width, (number + 1) * width)
        return self._shuffle(value, "poison", picks, self._lanes)

    def transpose(self, vectors: list[str]) -> list[str]:
        """Transpose squares of numbers, side by side in as many vectors as a side has.

        It swaps ever larger off-diagonal blocks.
        """
        vectors, block = list(vectors), 1
        lanes = range(self._lanes)
        while block < len(vectors):
            upper = [j if not j & block else self._lanes + j - block for j in lanes]
            lower = [j + block if not j & block else self._lanes + j for j in lanes]
            for i in range(len(vectors)):
                if not i & block:
                    a, b = vectors[i], vectors[i + block]
                    vectors[i] = self._shuffle(a, b, upper, self._lanes)
                    vectors[i + block] = self._shuffle(a, b, lower, self._lanes)
            block *= 2
        return vectors

    def _shuffle(self, a: str, b: str, picks: Sequence[int], width: int) -> str:
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        kind = _vector(width)
        return self._emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")


def _vector(width: int) -> str:
    return "double" if width == 1 else f"<{width} x double>"


# Lines after which a value is read from its slot again: LLVM would keep a copy on the stack.
READ_AGAIN = 150

# Bytes of a vector, and slots that an address with a displacement of one byte reaches; with four
# bytes, code is a seventh longer.
LONGEST_VECTOR, PAGE = 64, 256


def attributes(widest: int) -> str:
    """Return the attributes of functions on vectors of this many numbers."""
    width = min(512, max(128, 64 << (widest - 1).bit_length()))
    # A target that prefers narrow vectors would split ours; a stack that is found through a frame
    # pointer is aligned, so that no vector on it straddles two cache lines.
    frame = '"frame-pointer"="all" ' if width > 128 else ""
    return (
        f'attributes #0 = {{ nounwind {frame}"prefer-vector-width"="{width}" '
        f'"min-legal-vector-width"="{width}" }}\n'
    )


_COPY = """define internal void @{name}_results{output}(ptr %bases, ptr %work) #0 {{
entry:
  %place = getelementptr ptr, ptr %bases, i64 {base}
  %out = load ptr, ptr %place
  br label %copy
copy:
  %e = phi i64 [ 0, %entry ], [ %next, %copy ]
  %entry.e = getelementptr [2 x i32], ptr @{name}_slots{output}, i64 %e
  %slot = load i32, ptr %entry.e
  %wide = zext i32 %slot to i64
  %from = getelementptr {real}, ptr %work, i64 %wide
  %x = load {real}, ptr %from, align {align}
  %entry.p = getelementptr i32, ptr %entry.e, i64 1
  %place.e = load i32, ptr %entry.p
  %wide.p = zext i32 %place.e to i64
  %to = getelementptr {real}, ptr %out, i64 %wide.p
  store {real} %x, ptr %to, align {align}
  %next = add i64 %e, 1
  %more = icmp slt i64 %next, {size}
  br i1 %more, label %copy, label %done
done:
  ret void
}}
"""


class ChunkLowering:
    """Writes one chunk: ``void name(ptr bases, ptr work)``.

    ``bases`` holds a pointer for each input, then for each output, to its first
    element; elements are of the writer's type, one after the other.
    """

    def __init__(self, plan: Plan, number: int, lanes: int, format: Format = DOUBLE) -> None:
        self.plan, self.number, self.widest = plan, number, lanes
        self.w = Writer(lanes, format)
        self.in_rows = False  # outputs are addresses of samples, one per lane, not of vectors
        self._alignment = format.bytes * lanes
        self._values: dict[int, str] = {}
        self._bits: dict[int, str] = {}
        self._bases: dict[int, str] = {}
        self._reciprocals: dict[int, str] = {}
        self._kept: set[int] = set()  # values that were stored into their slots
        self._pages: dict[int, str] = {}
        self._read: dict[int, int] = {}  # line after which values of slots were at hand

    def text(self, name: str, linkage: str = "internal ") -> str:
        """The IR of the function."""
        self._lower_all()
        before = ""
        if self.number == len(self.plan.chunks) - 1:
            if self.plan.copied:
                self._keep_results()
                before = self._copy_loop(name)
                self.w.lines.append(f"  call void @{name}_results(ptr %bases, ptr %work)")
            else:
                self._store_results()
        body = "\n".join(self.w.lines)
        return (
            f"{before}define {linkage}void @{name}(ptr %bases, ptr %work) #0 {{\n{body}\n"
            "  ret void\n}\n"
        )

    def _lower_all(self) -> None:
        for value in self.plan.chunks[self.number]:
            self._lower(value)
            if value in self.plan.slots:
                self._keep(value)
            for output, element in self.plan.direct.get(value, ()):
                place = self._element(len(self.plan.tape.inputs) + output, element)
                self._store(place, self._value(value), "volatile ")
            if self.plan.columns is not None:
                for slot in self.plan.columns.seed_slots.get(value, ()):
                    self._store(self._slot(slot), self._value(value), "volatile ")

    def _keep(self, value: int) -> None:
        """Store a value into its slot."""
        # Volatile keeps LLVM from comparing every pair of stores: four times faster.
        self._store(self._slot(self.plan.slots[value]), self._value(value), "volatile ")
        self._kept.add(value)
        self._read[value] = len(self.w.lines)

    def _keep_results(self) -> None:
        """Store the results that no chunk has stored: inputs and constants, usually."""
        earlier = {v for chunk in self.plan.chunks[: self.number] for v in chunk}
        for value in dict.fromkeys(self.plan.tape.results.tolist()):
            if value not in self._kept and value not in earlier and value not in self.plan.direct:
                self._keep(value)

    def _lower(self, number: int) -> None:
        kind, operands = self.plan.rows[number]
        w = self.w
        operation = MODEL_OPERATIONS.get(kind)
        if operation is not None and (kind != Kind.DIV or not self._is_shared(operands[1])):
            first, second = operands
            a, b = self._values.get(first), self._values.get(second)
            if a is None or first in self._read:
                a = self._value(first)
            if b is None or second in self._read:
                b = self._value(second)
            self._values[number] = w.model(operation, a, b)
        elif kind in PARTNER:
            if number not in self._values:
                self._turn(operands[0])
        elif kind in COMPARISONS:
            a, b = map(self._value, operands)
            self._bits[number] = w.compare(COMPARISONS[kind], a, b)
        elif kind in LOGICAL:
            bits = list(map(self._bit, operands))
            if kind == Kind.NOT:
                self._bits[number] = w.negate(bits[0])
            else:
                self._bits[number] = w.combine(kind.label, bits[0], bits[1])
        elif kind == Kind.SELECT:
            condition, x, y = operands
            self._values[number] = w.select(self._bit(condition), self._value(x), self._value(y))
        elif kind == Kind.DIV:
            a, reciprocal = self._value(operands[0]), self._reciprocal(operands[1])
            self._values[number] = w.model("fmul", a, reciprocal)
        else:
            self._values[number] = RECIPES[kind](w, *map(self._value, operands))

    @cached_property
    def _divisions(self) -> Counter[int]:
        """How often each value divides another in this chunk."""
        rows = map(self.plan.rows.__getitem__, self.plan.chunks[self.number])
        return Counter([operands[1] for kind, operands in rows if kind == Kind.DIV])

    def _is_shared(self, divisor: int) -> bool:
        """Return whether one reciprocal serves several divisions."""
        return self._divisions.get(divisor, 0) >= SHARED_DIVISIONS

    def _reciprocal(self, number: int) -> str:
        known = self._reciprocals.get(number)
        if known is None:
            known = self.w.model("fdiv", self.w.constant(1.0), self._value(number))
            self._reciprocals[number] = known
        return known

    def _turn(self, angle: int) -> None:
        """Sine and cosine of one angle; whichever the tape has are recorded."""
        sine, cosine = sin_cos(self.w, self._value(angle))
        for number in self._turns.get(angle, ()):
            is_sine = self.plan.rows[number][0] == Kind.SIN
            self._values[number] = sine if is_sine else cosine

    @cached_property
    def _turns(self) -> dict[int, list[int]]:
        turns: dict[int, list[int]] = {}
        for number in self.plan.chunks[self.number]:
            kind, operands = self.plan.rows[number]
            if kind in PARTNER:
                turns.setdefault(operands[0], []).append(number)
        return turns

    def _value(self, number: int) -> str:
        """A value as a real, fetched or made from a bit if need be."""
        known = self._values.get(number)
        if known is not None:
            at = self._read.get(number)
            if at is None or len(self.w.lines) - at <= READ_AGAIN:
                return known
        known = self._values[number] = self._fetch(number)
        if number in self.plan.slots:
            self._read[number] = len(self.w.lines)
        return known

    def _fetch(self, number: int) -> str:
        kind, operands = self.plan.rows[number]
        if kind == Kind.CONSTANT:
            return self.w.constant(float(self.plan.tape.constants[operands[0]]))
        if kind == Kind.INPUT:
            argument, element = operands
            return self._load(self._element(argument, element))
        if number in self._bits:
            w = self.w
            return w.select(self._bits[number], w.constant(1.0), w.constant(0.0))
        return self._load(self._slot(self.plan.slots[number]))

    def _bit(self, number: int) -> str:
        """C's truth of a value: not zero."""
        known = self._bits.get(number)
        if known is None:
            known = self.w.compare("une", self._value(number), self.w.constant(0.0))
            self._bits[number] = known
        return known

    def _store_results(self) -> None:
        tape = self.plan.tape
        # All values first: a store may overwrite an input that is a result itself.
        values = [self._value(int(number)) for number in tape.results]
        first = 0
        for k, port in enumerate(tape.outputs):
            own, argument = values[first : first + port.size], len(tape.inputs) + k
            if self.in_rows:
                self._store_rows(argument, own)
            else:
                for element, value in enumerate(own):
                    self._store(self._element(argument, element), value)
            first += port.size

    def _store_rows(self, argument: int, values: list[str]) -> None:
        """Store results to the samples of all lanes."""
        w = self.w
        transposes = Transposes(w.emit, w.lines, w.lanes)
        rows = w.emit(f"load ptr, ptr {w.emit(f'getelementptr ptr, ptr %bases, i64 {argument}')}")
        places = [w.emit(f"getelementptr ptr, ptr {rows}, i64 {lane}") for lane in range(w.lanes)]
        starts = [w.emit(f"load ptr, ptr {place}") for place in places]
        for first, width in blocks(0, len(values), w.lanes):
            transposed = transposes.transpose(values[first : first + width])
            transposes.store_rows(starts, first, transposed)

    def _copy_loop(self, name: str) -> str:
        """A function that copies results from their slots, one loop per output."""
        tape, direct, real = self.plan.tape, self.plan.direct, self.w.real
        parts, first = [], 0
        for k, port in enumerate(tape.outputs):
            values = tape.results[first : first + port.size].tolist()
            pairs = [(self.plan.slots[v], e) for e, v in enumerate(values) if v not in direct]
            first += port.size
            if not pairs:
                continue
            listed = ", ".join(f"[2 x i32] [i32 {slot}, i32 {e}]" for slot, e in pairs)
            kind = f"[{len(pairs)} x [2 x i32]]"
            table = f"@{name}_slots{k} = internal constant {kind} [{listed}]\n"
            loop = _COPY.format(
                name=name,
                output=k,
                base=len(tape.inputs) + k,
                size=len(pairs),
                real=real,
                align=self._alignment,
            )
            parts.append((table, loop, f"  call void @{name}_results{k}(ptr %bases, ptr %work)\n"))
        calls = "".join(call for _, _, call in parts)
        every = f"define internal void @{name}_results(ptr %bases, ptr %work) #0 {{\n{calls}"
        return "".join(table + loop for table, loop, _ in parts) + f"{every}  ret void\n}}\n"

    def _slot(self, slot: int) -> str:
        start, place = "%work", slot
        if self._alignment == LONGEST_VECTOR:
            page, place = divmod(slot, PAGE)
            start, place = self._page(page), place - PAGE // 2
        return self.w.emit(f"getelementptr {self.w.real}, ptr {start}, i64 {place}")

    def _page(self, page: int) -> str:
        """Return the middle of a page of slots, which LLVM cannot analyse."""
        if page not in self._pages:
            middle, mask = page * PAGE + PAGE // 2, "@llvm.ptrmask.p0.i64"
            self.w.declarations.add(f"declare ptr {mask}(ptr, i64)")
            place = self.w.emit(f"getelementptr {self.w.real}, ptr %work, i64 {middle}")
            self._pages[page] = self.w.emit(f"call ptr {mask}(ptr {place}, i64 -{self._alignment})")
        return self._pages[page]

    def _element(self, argument: int, element: int) -> str:
        base = self._bases.get(argument)
        if base is None:
            place = self.w.emit(f"getelementptr ptr, ptr %bases, i64 {argument}")
            base = self._bases[argument] = self.w.emit(f"load ptr, ptr {place}")
        return self.w.emit(f"getelementptr {self.w.real}, ptr {base}, i64 {element}")

    def _load(self, address: str) -> str:
        return self.w.emit(f"load {self.w.real}, ptr {address}, align {self._alignment}")

    def _store(self, address: str, value: str, flag: str = "") -> None:
        typed = f"{flag}{self.w.real} {value}"
        self.w.lines.append(f"  store {typed}, ptr {address}, align {self._alignment}")


class _ColumnFunction(ChunkLowering):
    """Writes ``void name(ptr bases, ptr work, i64 column)`` of one set of columns.

    A batch calls it once per column, with as many samples as a vector has lanes. A single sample
    has the columns in the lanes instead. Values of one step lie side by side, column after column.
    """

    def __init__(self, plan: Plan, columns: ColumnSet, seeds: dict[Group, int], lanes: int) -> None:
        super().__init__(plan, 0, lanes)
        self._columns, self._seeds = columns, seeds
        self._side_by_side = columns.lanes if lanes == 1 else 1
        self.widest = max(lanes, self._side_by_side)
        self._wide = self.w.alongside(self.widest, self.w.format)
        self._groups: dict[Group, str] = {}

    def function(self, name: str) -> str:
        """Write the whole function."""
        for step in self._columns.steps:
            self._groups[step.group] = value = self._compute(step)
            if step.group[0] in self.plan.direct:
                self._store_result(step.group, value)
            if step.group[0] in self.plan.slots:
                place = self._place(self.plan.slots[step.group[0]])
                kind, align = self._wide.real, self._alignment
                self.w.lines.append(f"  store {kind} {value}, ptr {place}, align {align}")
        body = "\n".join(self.w.lines)
        return (
            f"define internal void @{name}(ptr %bases, ptr %work, i64 %column, i64 %place) #0 {{\n"
            f"{body}\n  ret void\n}}\n"
        )

    def place(self, column: int) -> int:
        """How far a column of the results is from the first one."""
        direct = self.plan.direct
        group = next((s.group for s in self._columns.steps if s.group[0] in direct), None)
        return 0 if group is None else direct[group[column]][0][1] - direct[group[0]][0][1]

    def _store_result(self, group: Group, value: str) -> None:
        """Store a result in every column; columns that are neighbours in one piece."""
        output, first = self.plan.direct[group[0]][0]
        start = self._element(len(self.plan.tape.inputs) + output, first)
        to = self.w.emit(f"getelementptr {self.w.real}, ptr {start}, i64 %place")
        if self._side_by_side == 1:
            self.w.lines.append(
                f"  store {self._wide.real} {value}, ptr {to}, align {self._alignment}"
            )
            return
        places = [self.place(column) for column in range(len(group))]
        breaks = [c for c in range(1, len(places)) if places[c] != places[c - 1] + 1]
        for a, b in pairwise((0, *breaks, len(places))):
            mask = ", ".join(f"i32 {lane}" for lane in range(a, b))
            kind = self._wide.real
            piece = self.w.emit(
                f"shufflevector {kind} {value}, {kind} poison, <{b - a} x i32> <{mask}>"
            )
            at = self.w.emit(f"getelementptr {self.w.real}, ptr {to}, i64 {places[a]}")
            self.w.lines.append(f"  store <{b - a} x double> {piece}, ptr {at}, align 8")

    def _compute(self, step: ColumnStep) -> str:
        if step.kind == Kind.DIV and len(set(step.operands[1])) == 1:
            reciprocal = self._everywhere(self._reciprocal(step.operands[1][0]))
            return self._wide.model("fmul", self._operand(step.operands[0]), reciprocal)
        return RECIPES[step.kind](self._wide, *map(self._operand, step.operands))

    def _operand(self, group: Group) -> str:
        if len(set(group)) == 1:
            return self._everywhere(self._value(group[0]))
        if group not in self._groups:
            self._groups[group] = self._seed(group)
        return self._groups[group]

    def _seed(self, group: Group) -> str:
        place = self._place(self._seeds[group])
        return self._wide.emit(f"load {self._wide.real}, ptr {place}, align {self._alignment}")

    def _everywhere(self, number: str) -> str:
        return self._wide.gather([number] * self.widest) if self._side_by_side > 1 else number

    def _place(self, slot: int) -> str:
        first = self.w.emit(f"getelementptr {self.w.real}, ptr %work, i64 {slot}")
        return self.w.emit(f"getelementptr {self.w.real}, ptr {first}, i64 %column")


class ColumnLowering(ChunkLowering):
    """Writes the chunk that calls the functions of all columns."""

    def __init__(self, plan: Plan, number: int, lanes: int) -> None:
        super().__init__(plan, number, lanes)
        assert plan.columns is not None
        self._columns = plan.columns
        self._functions = [
            _ColumnFunction(plan, columns, seeds, lanes)
            for columns, seeds in zip(plan.columns.sets, plan.columns.seeds, strict=True)
        ]
        self.widest = max(function.widest for function in self._functions)

    def text(self, name: str, linkage: str = "internal ") -> str:
        """The IR of the functions and of their calls."""
        functions = [f.function(f"{name}_set{k}") for k, f in enumerate(self._functions)]
        for function in self._functions:
            self.w.declarations |= function.w.declarations
        self._name = name
        return "".join(functions) + super().text(name, linkage)

    def _lower_all(self) -> None:
        for value, slots in self._columns.seed_slots.items():
            if self.plan.rows[value][0] in LEAVES:
                for slot in slots:
                    self._store(self._slot(slot), self._value(value))
        for k, columns in enumerate(self._columns.sets):
            for column in range(columns.lanes if self.w.lanes > 1 else 1):
                self.w.lines.append(
                    f"  call void @{self._name}_set{k}(ptr %bases, ptr %work, i64 {column}, "
                    f"i64 {self._functions[k].place(column)})"
                )
        self._kept |= set(self.plan.chunks[self.number])


# Most instructions of a packed tape, moves counted: it cannot be cut.
LONGEST_PACKED = 2 * LONGEST_FUNCTION


class PackedLowering(ChunkLowering):
    """Writes a whole tape with the operations of equal limbs in vectors."""

    def __init__(self, tape: Tape, packing: Packing) -> None:
        super().__init__(plan(tape, longest=UNCUT), 0, 1)
        self.packing = packing
        self.wide = self.w.alongside(packing.lanes, self.w.format)
        self.widest = packing.lanes
        self._vectors: dict[Vector, str] = {}
        self._wide_turns: dict[str, tuple[str, str]] = {}
        self._wide_reciprocals: dict[str, str] = {}
        vectors = [unit for unit in packing.units if not isinstance(unit, int)]
        self._wide_divisions = Counter(
            packing.operands(vector)[1] for vector in vectors if self._divides(vector)
        )

    def _divides(self, vector: Vector) -> bool:
        return len(set(vector)) > 1 and self.packing.first(vector).kind == Kind.DIV

    def _lower_all(self) -> None:
        for unit in self.packing.units:
            if isinstance(unit, int):
                self._lower_number(unit)
            else:
                self._vectors[unit] = self._lower_vector(unit)

    def _lower_number(self, number: int) -> None:
        node = self.packing.nodes[number]
        if node.kind in LEAVES:
            return  # fetched when used
        if self.packing.in_vector(number):
            vector, lane = self.packing.home[number]
            self._values[number] = self.wide.element(self._vectors[vector], lane)
        elif node.kind == Kind.ADD:
            whole, rest = self.packing.split_sum(number)
            terms = [(sign, self._value(value)) for sign, value in rest]
            if whole:
                vectors = [(sign, self._vectors[vector]) for sign, vector in whole]
                terms.insert(0, (1, self.wide.add_up(_total(self.wide, vectors))))
            self._values[number] = _total(self.w, terms)
        else:
            self._lower(number)

    def _lower_vector(self, vector: Vector) -> str:
        node = self.packing.first(vector)
        if node.kind == Kind.CONSTANT:
            constants = self.plan.tape.constants
            nodes = self.packing.nodes
            return self.wide.constants([float(constants[nodes[v].operands[0]]) for v in vector])
        if len(set(vector)) == 1 or vector in self.packing.gathered:
            there = next(v for v in vector if v != MISSING)
            return self.wide.gather([self._value(there if v == MISSING else v) for v in vector])
        operands = self.packing.operands(vector)
        names = [self._vectors[operand] for operand in operands]
        if node.kind == Kind.ADD:
            return _total(self.wide, list(zip(node.signs, names, strict=True)))
        if node.kind in (Kind.SIN, Kind.COS):
            if names[0] not in self._wide_turns:
                self._wide_turns[names[0]] = sin_cos(self.wide, names[0])
            return self._wide_turns[names[0]][node.kind == Kind.COS]
        if node.kind == Kind.DIV and self._wide_divisions[operands[1]] >= SHARED_DIVISIONS:
            divisor = names[1]
            if divisor not in self._wide_reciprocals:
                one = self.wide.constant(1.0)
                self._wide_reciprocals[divisor] = self.wide.model("fdiv", one, divisor)
            return self.wide.model("fmul", names[0], self._wide_reciprocals[divisor])
        return RECIPES[node.kind](self.wide, *names)


def _total(w: Writer, terms: Sequence[tuple[int, str]]) -> str:
    """Write a sum of terms with signs, a positive term first where one exists."""
    start = next((k for k, (sign, _) in enumerate(terms) if sign > 0), None)
    if start is None:
        return w.neg(_total(w, [(1, name) for _, name in terms]))
    total = terms[start][1]
    for sign, name in (*terms[:start], *terms[start + 1 :]):
        total = w.model("fadd" if sign > 0 else "fsub", total, name)
    return total


def lower_tape(tape: Tape, lanes: int) -> list[ChunkLowering]:
    """The functions of a tape, limbs in vectors where samples are not."""
    # a vector does at most this many operations at once: longer tapes do not become short enough
    short = tape.n_operations <= LANES_PER_INSTRUCTION * LONGEST_FUNCTION
    packing = best_packing(tape) if lanes == 1 and short else None
    if packing is not None and packing.cost <= LONGEST_PACKED:
        return [PackedLowering(tape, packing)]
    cut = plan_with_columns(tape, lanes > 1)
    own = None if cut.columns is None else cut.columns.chunk
    return [
        ColumnLowering(cut, number, lanes) if number == own else ChunkLowering(cut, number, lanes)
        for number in range(len(cut.chunks))
    ]
