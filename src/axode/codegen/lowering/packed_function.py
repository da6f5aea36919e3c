"""A packed tape as one function: numbers and vectors side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from axode.codegen.ir import Writer
from axode.codegen.lowering.chunk_plan import LONGEST_FUNCTION, UNCUT, Plan, plan, plan_with_columns
from axode.codegen.lowering.instructions import ChunkLowering
from axode.codegen.math.elementary import RECIPES
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.equal_columns import ColumnSet, ColumnStep, Group
from axode.codegen.tape.operations import LEAVES, Kind
from axode.codegen.tape.packing import LANES_PER_INSTRUCTION, MISSING, Packing, Vector, best_packing
from axode.codegen.tape.reciprocals import SHARED_DIVISIONS
from axode.codegen.tape.tape import Tape


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
