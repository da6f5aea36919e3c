"""Columns that are computed alike: one function for all of them.

A batch calls it once per column, with as many samples as a vector has lanes. A single sample has
the columns in the lanes instead. Values of one step lie side by side, column after column.
"""

from __future__ import annotations

from itertools import pairwise

from axode.codegen.lowering.chunk_plan import Plan
from axode.codegen.lowering.instructions import ChunkLowering
from axode.codegen.math.elementary import RECIPES
from axode.codegen.tape.equal_columns import ColumnSet, ColumnStep, Group
from axode.codegen.tape.operations import LEAVES, Kind


class _ColumnFunction(ChunkLowering):
    """Writes ``void name(ptr bases, ptr work, i64 column)`` of one set of columns."""

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
