"""Tape instructions to IR, cut into functions of bounded length.

LLVM's time grows faster than the length of a function, so a long tape becomes
several functions; a value that a later one needs travels through a slot of a
work array. All results are stored by the last function, so that an output may
overwrite an input. Many results, such as those of a large matrix, also go into
slots, and a loop copies them from there: stores one by one take LLVM a time that
grows with the square of their number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise

import numpy as np

from axode.codegen.lowering.ir import DOUBLE, Format, Writer
from axode.codegen.math.elementary import COMPARISONS, RECIPES
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.equal_columns import ColumnSet, Group, last_columns
from axode.codegen.tape.operations import ARITY, LEAVES, LOGICAL, Kind
from axode.codegen.tape.reciprocals import SHARED_DIVISIONS, share_reciprocals
from axode.codegen.tape.tape import Tape

# One function is fastest to run; beyond this length it takes too long to compile.
LONGEST_FUNCTION = 8000
# Operations per function of a longer tape: compile time then grows with the length only, and values
# that are used near by stay in registers. More made batches up to a fifth slower.
CHUNK = 500
# Lines of IR per operation that these limits allow for: a sine is one operation and 43 lines.
LINES_PER_OPERATION = 3
UNCUT = 1_000_000_000  # for what has to be one function, however long

# Columns that are computed alike get functions of their own if they are one operation in so many.
FEWEST_IN_COLUMNS = 5

# More results than this are copied by a loop.
MOST_STORES = 512

_PARTNER = {Kind.SIN: Kind.COS, Kind.COS: Kind.SIN}


@dataclass(frozen=True)
class Columns:
    """Where columns that are computed alike are kept: values of one group side by side.

    Attributes:
        sets: Columns alike.
        chunk: Number of the chunk that they are.
        seeds: First slot of every seed of every set.
        seed_slots: Slots of each value that columns begin with.
    """

    sets: tuple[ColumnSet, ...]
    chunk: int
    seeds: tuple[dict[Group, int], ...]
    seed_slots: dict[int, list[int]]


@dataclass(frozen=True)
class Plan:
    """How a tape is cut: instructions of each chunk, slots of values that cross.

    Attributes:
        tape: What is compiled.
        chunks: Instruction numbers of each chunk, in order of evaluation.
        slots: Slot of each value that is used in a later chunk or copied by the loop.
        n_slots: Size of the work array, in values.
        copied: Whether a loop copies the results from their slots.
        columns: Columns that are computed alike, by functions of their own.
    """

    tape: Tape
    chunks: tuple[tuple[int, ...], ...]
    slots: dict[int, int]
    n_slots: int
    copied: bool = False
    columns: Columns | None = None

    @cached_property
    def rows(self) -> list[tuple[Kind, tuple[int, ...]]]:
        """Kind and operands of every instruction, as plain Python."""
        kinds = [Kind(k) for k in self.tape.kinds.tolist()]
        return [
            (kind, tuple(row[: ARITY[kind] or 2]))
            for kind, row in zip(kinds, self.tape.operands.tolist(), strict=True)
        ]


@lru_cache(maxsize=8)
def plan_with_columns(tape: Tape) -> Plan:
    """Cut a tape into chunks, columns of its result that are computed alike in one of them."""
    plain = _cut(tape, LONGEST_FUNCTION, CHUNK)
    if len(plain) == 1:
        return plan(tape)
    tape = share_reciprocals(tape)  # otherwise each function would divide anew
    sets = last_columns(tape)
    if sum(len(columns.values) for columns in sets) * FEWEST_IN_COLUMNS < tape.n_operations:
        return plan(tape)
    own = set().union(*(columns.values for columns in sets))
    late = _depending(tape, own)
    order, counts = _order(tape)
    lines = dict(zip(order, counts, strict=True))
    before = [v for v in order if v not in own and v not in late]
    after = [v for v in order if v in late and v not in own]
    inside = [v for v in order if v in own]
    first, last = (_pieces(part, [lines[v] for v in part], CHUNK) for part in (before, after))
    cut = plan(tape, stores=MOST_STORES, chunks=(*first, tuple(inside), *last))
    slots, total = dict(cut.slots), cut.n_slots
    needed = {*slots, *tape.results.tolist()}
    seeds: list[dict[Group, int]] = []
    seed_slots: dict[int, list[int]] = {}
    for columns in sets:
        seeds.append({})
        for seed in columns.seeds:
            seeds[-1][seed] = total
            for lane, value in enumerate(seed):
                seed_slots.setdefault(value, []).append(total + lane)
            total += columns.lanes
        for step in columns.steps:
            if any(value in needed for value in step.group):
                slots |= {value: total + lane for lane, value in enumerate(step.group)}
                total += columns.lanes
    kept = Columns(tuple(sets), len(first), tuple(seeds), seed_slots)
    return replace(cut, slots=slots, n_slots=total, columns=kept)


def _depending(tape: Tape, values: set[int]) -> set[int]:
    """Values that some values lead to."""
    found: set[int] = set()
    leaves = set(map(int, LEAVES))
    rows = zip(tape.kinds.tolist(), tape.operands.tolist(), strict=True)
    for number, (kind, row) in enumerate(rows):
        if kind not in leaves and not (values.isdisjoint(row) and found.isdisjoint(row)):
            found.add(number)
    return found - values


def plan(
    tape: Tape,
    longest: int = LONGEST_FUNCTION,
    chunk: int = CHUNK,
    stores: int = MOST_STORES,
    chunks: tuple[tuple[int, ...], ...] | None = None,
) -> Plan:
    """Cut a tape into chunks, unless these are given, and give slots to the values that cross."""
    chunks = chunks or _cut(tape, longest, chunk)
    count = len(chunks)
    copied = len(tape.results) > stores
    if count == 1 and not copied:
        return Plan(tape, chunks, {}, 0)
    home = np.zeros(len(tape.kinds), dtype=np.int64)
    for number, members in enumerate(chunks):
        home[list(members)] = number
    last = home.copy()
    for column in range(3):
        operand = tape.operands[:, column]
        used = (tape.kinds > Kind.CONSTANT) & (operand >= 0)
        np.maximum.at(last, operand[used], home[used])
    last[tape.results] = count if copied else count - 1
    crossing = (last > home) & (tape.kinds > Kind.CONSTANT)
    slots, total = _slots(chunks, crossing, last)
    if copied:  # inputs and constants among the results too
        for value in dict.fromkeys(tape.results.tolist()):
            if value not in slots:
                slots[value], total = total, total + 1
    return Plan(tape, chunks, slots, total, copied)


def _cut(tape: Tape, longest: int, chunk: int) -> tuple[tuple[int, ...], ...]:
    """Operations of each function, bounded in number and in lines of IR."""
    order, counts = _order(tape)
    if len(order) <= longest and sum(counts) <= LINES_PER_OPERATION * longest:
        return (tuple(order),)
    return _pieces(order, counts, chunk)


def _pieces(order: list[int], counts: list[int], chunk: int) -> tuple[tuple[int, ...], ...]:
    """Equal parts of some operations, bounded in number and in lines of IR."""
    if not order:
        return ()
    lines = np.cumsum(counts)
    size = -(-len(order) // -(-len(order) // chunk))  # equal parts
    starts = [0]
    while starts[-1] < len(order):
        begin = starts[-1]
        allowed = LINES_PER_OPERATION * chunk + (lines[begin - 1] if begin else 0)
        fitting = int(np.searchsorted(lines, allowed, side="right"))
        starts.append(max(begin + 1, min(begin + size, fitting)))
    return tuple(tuple(order[a:b]) for a, b in pairwise(starts))


@cache
def _lines(kind: Kind) -> int:
    """Lines of IR of an operation on its own."""
    w = Writer(1)
    if kind in _PARTNER:
        sin_cos(w, "%x")
    elif kind in RECIPES:
        RECIPES[kind](w, *["%x"] * ARITY[kind])
    return max(1, len(w.lines))


def _order(tape: Tape) -> tuple[list[int], list[int]]:
    """Operations in tape order, sine and cosine of one angle together, and the lines of each."""
    kinds, operands = tape.kinds.tolist(), tape.operands[:, 0].tolist()
    turns = {
        (kinds[i], operands[i]): i
        for i in np.flatnonzero((tape.kinds == Kind.SIN) | (tape.kinds == Kind.COS)).tolist()
    }
    order: list[int] = []
    lines: list[int] = []
    placed: set[int] = set()
    lengths = {kind: 0 if kind in LEAVES else _lines(Kind(kind)) for kind in set(kinds)}
    turning = {int(kind) for kind in _PARTNER}
    for number, kind in enumerate(kinds):
        if not lengths[kind] or number in placed:
            continue
        order.append(number)
        lines.append(lengths[kind])
        if kind in turning:
            partner = turns.get((_PARTNER[Kind(kind)], operands[number]))
            if partner is not None:
                order.append(partner)
                lines.append(1)
                placed.add(partner)
    return order, lines


def _slots(
    chunks: tuple[tuple[int, ...], ...], crossing: np.ndarray, last: np.ndarray
) -> tuple[dict[int, int], int]:
    """Slots, reused once the last chunk that reads them has run."""
    slots: dict[int, int] = {}
    free: list[int] = []
    released: dict[int, list[int]] = {}
    total = 0
    for number, members in enumerate(chunks):
        free.extend(released.pop(number - 1, []))
        for value in members:
            if crossing[value]:
                if free:
                    slot = free.pop()
                else:
                    slot, total = total, total + 1
                slots[value] = slot
                released.setdefault(int(last[value]), []).append(slot)
    return slots, total


def attributes(widest: int) -> str:
    """Attributes of functions on vectors of so many numbers."""
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
  %entry.e = getelementptr i32, ptr @{name}_slots{output}, i64 %e
  %slot = load i32, ptr %entry.e
  %wide = zext i32 %slot to i64
  %from = getelementptr {real}, ptr %work, i64 %wide
  %x = load {real}, ptr %from, align {align}
  %to = getelementptr {real}, ptr %out, i64 %e
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
        self._alignment = format.bytes * lanes
        self._values: dict[int, str] = {}
        self._bits: dict[int, str] = {}
        self._bases: dict[int, str] = {}
        self._reciprocals: dict[int, str] = {}
        self._kept: set[int] = set()  # values that were stored into their slots

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
            if self.plan.columns is not None:
                for slot in self.plan.columns.seed_slots.get(value, ()):
                    self._store(self._slot(slot), self._value(value), "volatile ")

    def _keep(self, value: int) -> None:
        """Store a value into its slot."""
        # Volatile keeps LLVM from comparing every pair of stores: four times faster.
        self._store(self._slot(self.plan.slots[value]), self._value(value), "volatile ")
        self._kept.add(value)

    def _keep_results(self) -> None:
        """Store the results that no chunk has stored: inputs and constants, usually."""
        earlier = {v for chunk in self.plan.chunks[: self.number] for v in chunk}
        for value in dict.fromkeys(self.plan.tape.results.tolist()):
            if value not in self._kept and value not in earlier:
                self._keep(value)

    def _lower(self, number: int) -> None:
        kind, operands = self.plan.rows[number]
        w = self.w
        if kind in _PARTNER:
            if number not in self._values:
                self._turn(operands[0])
        elif kind in COMPARISONS:
            a, b = (self._value(v) for v in operands)
            self._bits[number] = w.compare(COMPARISONS[kind], a, b)
        elif kind in LOGICAL:
            bits = [self._bit(v) for v in operands]
            if kind == Kind.NOT:
                self._bits[number] = w.negate(bits[0])
            else:
                self._bits[number] = w.combine(kind.label, bits[0], bits[1])
        elif kind == Kind.SELECT:
            condition, x, y = operands
            self._values[number] = w.select(self._bit(condition), self._value(x), self._value(y))
        elif kind == Kind.DIV and self._divisions.get(operands[1], 0) >= SHARED_DIVISIONS:
            a, reciprocal = self._value(operands[0]), self._reciprocal(operands[1])
            self._values[number] = w.model("fmul", a, reciprocal)
        else:
            self._values[number] = RECIPES[kind](w, *(self._value(v) for v in operands))

    @cached_property
    def _divisions(self) -> Counter[int]:
        """How often each value divides another in this chunk."""
        rows = (self.plan.rows[number] for number in self.plan.chunks[self.number])
        return Counter(operands[1] for kind, operands in rows if kind == Kind.DIV)

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
            if kind in _PARTNER:
                turns.setdefault(operands[0], []).append(number)
        return turns

    def _value(self, number: int) -> str:
        """A value as a real, fetched or made from a bit if need be."""
        known = self._values.get(number)
        if known is None:
            known = self._values[number] = self._fetch(number)
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
            for element in range(port.size):
                place = self._element(len(tape.inputs) + k, element)
                self._store(place, values[first + element])
            first += port.size

    def _copy_loop(self, name: str) -> str:
        """A function that copies every result from its slot, one loop per output."""
        tape, slots, real = self.plan.tape, self.plan.slots, self.w.real
        parts, first = [], 0
        for k, port in enumerate(tape.outputs):
            places = [slots[int(v)] for v in tape.results[first : first + port.size]]
            first += port.size
            if not places:
                continue
            listed = ", ".join(f"i32 {place}" for place in places)
            table = f"@{name}_slots{k} = internal constant [{port.size} x i32] [{listed}]\n"
            loop = _COPY.format(
                name=name,
                output=k,
                base=len(tape.inputs) + k,
                size=port.size,
                real=real,
                align=self._alignment,
            )
            parts.append((table, loop, f"  call void @{name}_results{k}(ptr %bases, ptr %work)\n"))
        calls = "".join(call for _, _, call in parts)
        every = f"define internal void @{name}_results(ptr %bases, ptr %work) #0 {{\n{calls}"
        return "".join(table + loop for table, loop, _ in parts) + f"{every}  ret void\n}}\n"

    def _slot(self, slot: int) -> str:
        return self.w.emit(f"getelementptr {self.w.real}, ptr %work, i64 {slot}")

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
