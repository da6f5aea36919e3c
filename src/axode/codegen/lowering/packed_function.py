"""A packed tape as one function: numbers and vectors side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from axode.codegen.ir import Writer
from axode.codegen.lowering.chunk_plan import LONGEST_FUNCTION, UNCUT, plan, plan_with_columns
from axode.codegen.lowering.column_functions import ColumnLowering
from axode.codegen.lowering.instructions import ChunkLowering
from axode.codegen.math.elementary import RECIPES
from axode.codegen.math.trigonometry import sin_cos
from axode.codegen.tape.operations import LEAVES, Kind
from axode.codegen.tape.packing import LANES_PER_INSTRUCTION, MISSING, Packing, Vector, best_packing
from axode.codegen.tape.reciprocals import SHARED_DIVISIONS
from axode.codegen.tape.tape import Tape

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
