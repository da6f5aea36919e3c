"""How a long tape is cut into functions of bounded length, and where values are kept meanwhile.

LLVM's time grows faster than the length of a function, so a long tape becomes
several functions; a value that a later one needs travels through a slot of a
work array. An output may overwrite an input, so results wait in slots until all
inputs have been read; those computed later go to the output at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from axode.codegen.ir import Writer
from axode.codegen.math.elementary import RECIPES
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.operations import ARITY, LEAVES, Kind
from axode.codegen.tape.packing import ColumnSet, Group, last_columns, operation_rows
from axode.codegen.tape.rewriting import share_reciprocals
from axode.codegen.tape.tape import Tape

# One function is fastest to run; beyond this length it takes too long to compile.
LONGEST_FUNCTION = 8000
# The same on vectors of samples: a fifth faster than several, compiled in up to twice the time.
LONGEST_ON_VECTORS = 20_000
# Operations per function of a longer tape: compile time then grows with the length only, and values
# that are used near by stay in registers. Half or twice as many made tables up to a tenth slower.
CHUNK = 1000
# Lines of IR per operation that these limits allow for: a sine is one operation and 43 lines.
LINES_PER_OPERATION = 3
UNCUT = 1_000_000_000  # for what has to be one function, however long

# Columns computed alike get functions of their own from this fraction of the operations on (1/n).
FEWEST_IN_COLUMNS = 5

# More results than this are not stored by the last function.
MOST_STORES = 512

PARTNER = {Kind.SIN: Kind.COS, Kind.COS: Kind.SIN}

Place = tuple[int, int]  # output and element


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
        copied: Whether a loop copies results from their slots.
        columns: Columns that are computed alike, by functions of their own.
        direct: Results that are stored where they are computed, because all inputs have been
            read: output and element of each place.
    """

    tape: Tape
    chunks: tuple[tuple[int, ...], ...]
    slots: dict[int, int]
    n_slots: int
    copied: bool = False
    columns: Columns | None = None
    direct: dict[int, list[Place]] = field(default_factory=dict)

    @cached_property
    def rows(self) -> list[tuple[Kind, tuple[int, ...]]]:
        """Kind and operands of every instruction, as plain Python."""
        return operation_rows(self.tape)


@lru_cache(maxsize=4)
def _prepare(tape: Tape) -> tuple[Tape, list[ColumnSet]]:
    """A tape that several functions compute, and its columns that are computed alike.

    Reciprocals are values of it; otherwise each function would divide again.
    """
    tape = share_reciprocals(tape)
    return tape, last_columns(tape)


@lru_cache(maxsize=8)
def plan_with_columns(tape: Tape, on_vectors: bool = False) -> Plan:
    """Cut a tape into chunks, columns of its result that are computed alike in one of them.

    Args:
        tape: What is compiled.
        on_vectors: Whether it is computed for several samples at once.
    """
    longest = _longest_function(tape, on_vectors)
    plain = _cut(tape, longest, CHUNK)
    sets: list[ColumnSet] = []
    if len(plain) > 1:
        tape, sets = _prepare(tape)
        plain = _cut(tape, longest, CHUNK)
    shared = sum(len(columns.values) for columns in sets)
    if not sets or shared * FEWEST_IN_COLUMNS < tape.n_operations:
        return plan(tape, stores=MOST_STORES, chunks=plain)
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
    direct = _in_columns(sets, cut.direct, own)
    needed = {*slots, *tape.results.tolist()} - direct.keys()
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
    return replace(cut, slots=slots, n_slots=total, columns=kept, direct=direct)


def _in_columns(
    sets: Sequence[ColumnSet], direct: dict[int, list[Place]], own: set[int]
) -> dict[int, list[Place]]:
    """What is stored where it is computed, if columns keep their order: the same for every row."""
    found = {value: places for value, places in direct.items() if value not in own}
    for columns in sets:
        groups = [step.group for step in columns.steps if step.group[0] in direct]
        if all(len(direct.get(value, ())) == 1 for group in groups for value in group):
            steps = {tuple(np.diff([direct[v][0][1] for v in group]).tolist()) for group in groups}
            if len(steps) <= 1:
                found |= {value: direct[value] for group in groups for value in group}
    return found


def _longest_function(tape: Tape, on_vectors: bool) -> int:
    """Operations that one function may have; more on vectors, unless sines make many lines."""
    if not on_vectors or not LONGEST_FUNCTION < tape.n_operations <= LONGEST_ON_VECTORS:
        return LONGEST_FUNCTION
    fits = sum(_order(tape)[1]) <= LINES_PER_OPERATION * LONGEST_FUNCTION
    return LONGEST_ON_VECTORS if fits else LONGEST_FUNCTION


def slots_needed(tape: Tape) -> int:
    """Values that the work array holds for a tape, for one sample at a time or several."""
    return max(plan_with_columns(tape, on_vectors).n_slots for on_vectors in (False, True))


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
    last, reading = home.copy(), -1
    for column in range(3):
        operand = tape.operands[:, column]
        used = (tape.kinds > Kind.CONSTANT) & (operand >= 0)
        np.maximum.at(last, operand[used], home[used])
        reads = used & (tape.kinds[operand] == Kind.INPUT)
        reading = max(reading, int(home[reads].max(initial=-1)))
    computed = tape.kinds > Kind.CONSTANT
    direct = _places(tape, computed & (home > reading)) if copied else {}
    last[[v for v in tape.results.tolist() if v not in direct]] = count if copied else count - 1
    slots, total = _slots(chunks, (last > home) & computed, last)
    if copied:  # inputs and constants among the results too
        for value in dict.fromkeys(tape.results.tolist()):
            if value not in slots and value not in direct:
                slots[value], total = total, total + 1
    return Plan(tape, chunks, slots, total, copied, direct=direct)


def _places(tape: Tape, chosen: npt.NDArray[np.bool_]) -> dict[int, list[Place]]:
    """Outputs and elements that some values are."""
    found: dict[int, list[Place]] = defaultdict(list)
    results = iter(tape.results.tolist())
    for k, port in enumerate(tape.outputs):
        for element in range(port.size):
            value = next(results)
            if chosen[value]:
                found[value].append((k, element))
    return dict(found)


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
    if kind in PARTNER:
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
    turning = {int(kind) for kind in PARTNER}
    for number, kind in enumerate(kinds):
        if not lengths[kind] or number in placed:
            continue
        order.append(number)
        lines.append(lengths[kind])
        if kind in turning:
            partner = turns.get((PARTNER[Kind(kind)], operands[number]))
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
