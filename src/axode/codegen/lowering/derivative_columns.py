"""Derivatives inside programs, column by column.

The columns of a Jacobian are derivatives along unit vectors. Many runs side by side take one column
at a time; a single run has as many columns side by side as a vector has lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axode.codegen.ir import DOUBLE, MODEL_FLAGS, Format
from axode.codegen.lowering.elimination import Loops, elimination_functions

if TYPE_CHECKING:
    from axode.codegen.lowering.program_loop import ProgramWriter
    from axode.codegen.tape.program import JacobianColumns, LargestElement, MaskedCopy, WeightedSum


def column_functions(lanes: int, width: int, number: Format = DOUBLE) -> tuple[list[str], set[str]]:
    """IR of what `JacobianColumns`, `FactorMatrix` and `Solve` call, and its declarations.

    Args:
        lanes: Runs side by side.
        width: Columns side by side if there is one run, else the number of runs.
        number: Format of all reals.
    """
    wide = width > lanes
    spread, unit, take = (Loops(width, 1, number) for _ in range(3))
    with spread.loop("0", "%size") as turn:
        one = spread.emit(f"getelementptr {number.real}, ptr %from, i64 {turn.index}")
        value = spread.load(one, number.real)
        spread.store(_everywhere(spread, value), spread.place("%to", turn.index))
    with unit.loop("0", "%size") as turn:
        distance = unit.emit(f"sub i64 {turn.index}, %column")
        unit.store(_one_at(unit, distance, wide), unit.place("%to", turn.index))
    with take.loop("0", "%rows") as turn:
        place = take.emit(f"add i64 {take.emit(f'mul i64 {turn.index}, %s')}, %column")
        kind = number.real if wide else take.element
        to = take.emit(f"getelementptr {kind}, ptr %matrix, i64 {place}")
        take.store(take.load(take.place("%from", turn.index)), to)
    texts, declarations = elimination_functions(lanes, width, number)
    for name, arguments, w in (
        ("spread", "ptr %from, ptr %to, i64 %size", spread),
        ("unit", "ptr %to, i64 %column, i64 %size", unit),
        ("take", "ptr %from, ptr %matrix, i64 %column, i64 %rows, i64 %s", take),
    ):
        body = "\n".join(w.lines)
        texts.append(
            f"define internal void @{name}({arguments}) #0 {{\nentry:\n{body}\n  ret void\n}}\n"
        )
    return texts, declarations


def _everywhere(w: Loops, value: str) -> str:
    if w.lanes == 1:
        return value
    one = w.emit(f"insertelement {w.element} poison, {w.number.real} {value}, i64 0")
    mask = f"<{w.lanes} x i32> zeroinitializer"
    return w.emit(f"shufflevector {w.element} {one}, {w.element} poison, {mask}")


def _one_at(w: Loops, distance: str, wide: bool) -> str:
    """One where a distance is the lane's number, or zero in every lane; else zero."""
    real = w.number.real
    value = "zeroinitializer" if w.lanes > 1 else "0.0"
    for lane in range(w.lanes):
        same = w.emit(f"icmp eq i64 {distance}, {lane if wide else 0}")
        number = w.emit(f"select i1 {same}, {real} {w.number.literal(1.0)}, {real} 0.0")
        if w.lanes == 1:
            return number
        value = w.emit(f"insertelement {w.element} {value}, {real} {number}, i64 {lane}")
    return value


def write_columns(w: ProgramWriter, operation: JacobianColumns) -> None:
    """Write the loop over the columns of a Jacobian."""
    program, wide = w.program, w.wide_places
    places = w.places | wide
    if wide:
        for name in operation.outside:
            size = program.size(name)
            w.line(f"call void @spread(ptr {w.places[name]}, ptr {wide[name]}, i64 {size})")
    directions, rows = program.size(operation.direction), program.size(operation.result)
    again, body, after = w.labels("column", "along", "columns")
    w.line(f"store i64 0, ptr {w.turn}")
    w.line(f"br label %{again}")
    w.label(again)
    column = w.emit(f"load i64, ptr {w.turn}")
    more = w.emit(f"icmp slt i64 {column}, {directions}")
    w.line(f"br i1 {more}, label %{body}, label %{after}")
    w.label(body)
    w.line(f"call void @unit(ptr {places[operation.direction]}, i64 {column}, i64 {directions})")
    for evaluation in operation.body:
        w.evaluate(evaluation, wide=bool(wide))
    w.line(
        f"call void @take(ptr {places[operation.result]}, ptr {w.places[operation.matrix]}, "
        f"i64 {column}, i64 {rows}, i64 {operation.stride})"
    )
    following = w.emit(f"add i64 {column}, {w.width if wide else 1}")
    w.line(f"store i64 {following}, ptr {w.turn}")
    w.line(f"br label %{again}")
    w.label(after)


class _Loop:
    """Writes a loop over elements of buffers; one run has several of them in a vector."""

    def __init__(self, w: ProgramWriter, step: int) -> None:
        self.w, self.step = w, step
        self.kind = w.real if step == 1 else f"<{step} x {w.number}>"
        self.index = ""

    def open(self, first: int, end: int) -> None:
        w = self.w
        again, body, self._after = w.labels("again", "element", "past")
        self._again = again
        w.line(f"store i64 {first}, ptr {w.turn}")
        w.line(f"br label %{again}")
        w.label(again)
        self.index = w.emit(f"load i64, ptr {w.turn}")
        more = w.emit(f"icmp slt i64 {self.index}, {end}")
        w.line(f"br i1 {more}, label %{body}, label %{self._after}")
        w.label(body)

    def close(self) -> None:
        w = self.w
        w.line(f"store i64 {w.emit(f'add i64 {self.index}, {self.step}')}, ptr {w.turn}")
        w.line(f"br label %{self._again}")
        w.label(self._after)

    def address(self, buffer: str, place: int = 0) -> str:
        w = self.w
        base = w.emit(f"getelementptr {w.real}, ptr {w.places[buffer]}, i64 {place}")
        return w.emit(f"getelementptr {w.real}, ptr {base}, i64 {self.index}")

    def load(self, buffer: str, place: int = 0) -> str:
        address = self.address(buffer, place)
        return self.w.emit(f"load {self.kind}, ptr {address}, align {self.w.format.bytes}")

    def store(self, value: str, buffer: str, place: int = 0) -> None:
        address = self.address(buffer, place)
        self.w.line(f"store {self.kind} {value}, ptr {address}, align {self.w.format.bytes}")

    def one(self, buffer: str, place: int = 0) -> str:
        """An element in every column."""
        w = self.w
        address = w.emit(f"getelementptr {w.real}, ptr {w.places[buffer]}, i64 {place}")
        value = w.emit(f"load {w.real}, ptr {address}, align {w.format.bytes}")
        if self.step == 1:
            return value
        single = w.emit(f"insertelement {self.kind} poison, {w.number} {value}, i64 0")
        mask = f"<{self.step} x i32> zeroinitializer"
        return w.emit(f"shufflevector {self.kind} {single}, {self.kind} poison, {mask}")


def _pieces(w: ProgramWriter, size: int) -> list[tuple[int, int, int]]:
    """First element, end and step: whole vectors, then what is left over one by one."""
    bulk = size - size % w.columns
    pieces = [(0, bulk, w.columns), (bulk, size, 1)]
    return [piece for piece in pieces if piece[0] < piece[1]]


def write_combination(w: ProgramWriter, operation: WeightedSum) -> None:
    """Write the loop over the elements of a weighted sum."""
    name, first = operation.weights
    for begin, end, step in _pieces(w, operation.size):
        loop = _Loop(w, step)
        weights = [loop.one(name, first + k) for k in range(len(operation.vectors))]
        loop.open(begin, end)
        total = ""
        for weight, vector in zip(weights, operation.vectors, strict=True):
            value = loop.load(*vector)
            term = w.emit(f"fmul {MODEL_FLAGS}{loop.kind} {weight}, {value}")
            total = w.emit(f"fadd {MODEL_FLAGS}{loop.kind} {total}, {term}") if total else term
        loop.store(total, *operation.result)
        loop.close()


def write_keeping(w: ProgramWriter, operation: MaskedCopy) -> None:
    """Write the loop that copies a buffer where a flag is set."""
    for begin, end, step in _pieces(w, w.program.size(operation.buffer)):
        loop = _Loop(w, step)
        flag = loop.one(operation.flag)
        loop.open(begin, end)
        zero = "zeroinitializer" if loop.kind.startswith("<") else "0.0"
        up = w.emit(f"fcmp une {loop.kind} {flag}, {zero}")
        lanes = loop.kind.partition(" x ")[0]
        bit = f"{lanes} x i1>" if lanes.startswith("<") else "i1"
        new, old = loop.load(operation.buffer), loop.load(operation.kept)
        loop.store(
            w.emit(f"select {bit} {up}, {loop.kind} {new}, {loop.kind} {old}"), operation.kept
        )
        loop.close()


def write_largest(w: ProgramWriter, operation: LargestElement) -> None:
    """Write the loop that finds the largest element, one by one."""
    result = w.places[operation.result]
    align = f"align {w.format.bytes}"
    zero = "zeroinitializer" if w.lanes > 1 else "0.0"
    bits = f"f{w.format.bits}" if w.lanes == 1 else f"v{w.lanes}f{w.format.bits}"
    bit = "i1" if w.lanes == 1 else f"<{w.lanes} x i1>"
    w.line(f"store {w.real} {zero}, ptr {result}, {align}")
    loop = _Loop(w, 1)
    loop.open(0, operation.size)
    weight = loop.load(operation.weights)
    for vector in operation.vectors:
        size = w.emit(f"call {w.real} @llvm.fabs.{bits}({w.real} {loop.load(*vector)})")
        share = w.emit(f"fmul {w.real} {size}, {weight}")
        known = w.emit(f"load {w.real}, ptr {result}, {align}")
        larger = w.emit(f"fcmp ogt {w.real} {share}, {known}")
        lost = w.emit(f"fcmp uno {w.real} {share}, {share}")
        take = w.emit(f"or {bit} {larger}, {lost}")
        best = w.emit(f"select {bit} {take}, {w.real} {share}, {w.real} {known}")
        w.line(f"store {w.real} {best}, ptr {result}, {align}")
    loop.close()
