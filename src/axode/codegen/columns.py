"""Derivatives inside programs, column by column.

The columns of a Jacobian are derivatives along unit vectors. Many runs side by side take one column
at a time; a single run has as many columns side by side as a vector has lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from axode.codegen.elimination import Loops, elimination_functions
from axode.codegen.ir import DOUBLE, MODEL_FLAGS, Format

if TYPE_CHECKING:
    from axode.codegen.program import Columns, Combine
    from axode.codegen.program_ir import ProgramWriter


def column_functions(lanes: int, width: int, number: Format = DOUBLE) -> tuple[list[str], set[str]]:
    """IR of everything that `Columns`, `Factor` and `Solve` call, and what it declares.

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


def write_columns(w: ProgramWriter, operation: Columns) -> None:
    """The loop over the columns of a Jacobian."""
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


def write_combination(w: ProgramWriter, operation: Combine) -> None:
    """The loop over the elements of a weighted sum.

    One run has several elements in a vector; what is left over is done one by one.
    """
    size = w.program.size(operation.result)
    bulk = size - size % w.columns
    if bulk:
        _combined(w, operation, "0", str(bulk), w.columns)
    if size > bulk:
        _combined(w, operation, str(bulk), str(size), 1)


def _combined(w: ProgramWriter, operation: Combine, first: str, end: str, step: int) -> None:
    kind = w.real if step == 1 else f"<{step} x {w.number}>"
    align = f"align {w.format.bytes}"
    weights = []
    for k in range(len(operation.vectors)):
        place = w.emit(f"getelementptr {w.real}, ptr {w.places[operation.weights]}, i64 {k}")
        weight = w.emit(f"load {w.real}, ptr {place}, {align}")
        if step > 1:
            one = w.emit(f"insertelement {kind} poison, {w.number} {weight}, i64 0")
            mask = f"<{step} x i32> zeroinitializer"
            weight = w.emit(f"shufflevector {kind} {one}, {kind} poison, {mask}")
        weights.append(weight)
    again, body, after = w.labels("sum", "term", "summed")
    w.line(f"store i64 {first}, ptr {w.turn}")
    w.line(f"br label %{again}")
    w.label(again)
    index = w.emit(f"load i64, ptr {w.turn}")
    w.line(f"br i1 {w.emit(f'icmp slt i64 {index}, {end}')}, label %{body}, label %{after}")
    w.label(body)
    total = ""
    for weight, vector in zip(weights, operation.vectors, strict=True):
        place = w.emit(f"getelementptr {w.real}, ptr {w.places[vector]}, i64 {index}")
        value = w.emit(f"load {kind}, ptr {place}, {align}")
        term = w.emit(f"fmul {MODEL_FLAGS}{kind} {weight}, {value}")
        total = w.emit(f"fadd {MODEL_FLAGS}{kind} {total}, {term}") if total else term
    place = w.emit(f"getelementptr {w.real}, ptr {w.places[operation.result]}, i64 {index}")
    w.line(f"store {kind} {total}, ptr {place}, {align}")
    w.line(f"store i64 {w.emit(f'add i64 {index}, {step}')}, ptr {w.turn}")
    w.line(f"br label %{again}")
    w.label(after)
