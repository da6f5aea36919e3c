"""Derivatives, eliminations and weighted sums inside programs, as loops over buffers.

The columns of a Jacobian are derivatives along unit vectors. Many runs side by side take one column
at a time; a single run has as many columns side by side as a vector has lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from axode.codegen.ir import DOUBLE, MODEL_FLAGS, Format

if TYPE_CHECKING:
    from axode.codegen.lowering.program_loop import ProgramWriter
    from axode.codegen.tape.program import JacobianColumns, LargestElement, MaskedCopy, WeightedSum


class Loops:
    """Writes one function of IR, with loops.

    Args:
        lanes: Runs side by side; one run has `columns` numbers of a row in a vector instead.
        columns: Numbers of a row in a vector.
        number: Format of all reals.
    """

    def __init__(self, lanes: int, columns: int, number: Format = DOUBLE) -> None:
        self.lanes, self.number = lanes, number
        self.columns = columns if lanes == 1 else 1
        self.element = number.real if lanes == 1 else f"<{lanes} x {number.real}>"
        width = lanes * self.columns
        self.vector = number.real if width == 1 else f"<{width} x {number.real}>"
        self.lines: list[str] = []
        self.declarations: set[str] = set()
        self._count = 0
        self._block = "entry"

    def emit(self, text: str) -> str:
        self._count += 1
        self.lines.append(f"  %v{self._count} = {text}")
        return f"%v{self._count}"

    def line(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self._block = name

    @contextmanager
    def loop(
        self, first: str, end: str, step: int | str = 1, carry: tuple[str, str] | None = None
    ) -> Iterator[LoopTurn]:
        """Repeat for a counter from `first` up to `end`, with a value carried from turn to turn.

        Args:
            first, end, step: Range of the counter.
            carry: Type of the value and what it is at first.
        """
        self._count += 1
        mark, before = self._count, self._block
        turn = LoopTurn(f"%i{mark}", f"%c{mark}")
        self.line(f"br label %head{mark}")
        self.label(f"head{mark}")
        self.line(f"{turn.index} = phi i64 [ {first}, %{before} ], [ %n{mark}, %next{mark} ]")
        carried = len(self.lines)
        more = self.emit(f"icmp slt i64 {turn.index}, {end}")
        self.line(f"br i1 {more}, label %body{mark}, label %after{mark}")
        self.label(f"body{mark}")
        yield turn
        self.line(f"br label %next{mark}")
        self.label(f"next{mark}")
        self.line(f"%n{mark} = add i64 {turn.index}, {step}")
        self.line(f"br label %head{mark}")
        if carry is not None:
            kind, start = carry
            phi = f"phi {kind} [ {start}, %{before} ], [ {turn.following}, %next{mark} ]"
            self.lines.insert(carried, f"  {turn.value} = {phi}")
        self.label(f"after{mark}")

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """Only where a bit is set."""
        self._count += 1
        mark = self._count
        self.line(f"br i1 {condition}, label %then{mark}, label %past{mark}")
        self.label(f"then{mark}")
        yield
        self.line(f"br label %past{mark}")
        self.label(f"past{mark}")

    # numbers in memory ---------------------------------------------------------------------------

    def place(self, base: str, *indices: str) -> str:
        """Address of an element; indices are added up."""
        index = indices[0]
        for other in indices[1:]:
            index = self.emit(f"add i64 {index}, {other}")
        return self.emit(f"getelementptr {self.element}, ptr {base}, i64 {index}")

    def load(self, address: str, kind: str = "") -> str:
        return self.emit(f"load {kind or self.element}, ptr {address}, align {self.number.bytes}")

    def store(self, value: str, address: str, kind: str = "") -> None:
        self.line(f"store {kind or self.element} {value}, ptr {address}, align {self.number.bytes}")

    def model(self, operation: str, a: str, b: str, kind: str = "") -> str:
        return self.emit(f"{operation} {MODEL_FLAGS}{kind or self.element} {a}, {b}")

    def splat(self, value: str) -> str:
        """An element in every column of a vector."""
        if self.columns == 1:
            return value
        kind = f"<{self.columns} x {self.number.real}>"
        one = self.emit(f"insertelement {kind} poison, {self.number.real} {value}, i64 0")
        mask = f"<{self.columns} x i32> zeroinitializer"
        return self.emit(f"shufflevector {kind} {one}, {kind} poison, {mask}")

    def total(self, value: str) -> str:
        """Sum of a vector's columns."""
        if self.columns == 1:
            return value
        real = self.number.real
        function = f"@llvm.vector.reduce.fadd.v{self.columns}f{self.number.bits}"
        self.declarations.add(f"declare {real} {function}({real}, {self.vector})")
        zero = self.number.literal(-0.0)
        return self.emit(
            f"call {MODEL_FLAGS}{real} {function}({real} {zero}, {self.vector} {value})"
        )

    def constant(self, value: float) -> str:
        """A number in every lane."""
        literal = self.number.literal(value)
        if self.lanes == 1:
            return literal
        return "<" + ", ".join([f"{self.number.real} {literal}"] * self.lanes) + ">"

    def size(self, value: str) -> str:
        """Absolute value of an element."""
        bits = f"f{self.number.bits}"
        function = f"@llvm.fabs.{bits if self.lanes == 1 else f'v{self.lanes}{bits}'}"
        self.declarations.add(f"declare {self.element} {function}({self.element})")
        return self.emit(f"call {self.element} {function}({self.element} {value})")

    def choose(self, condition: str, a: str, b: str) -> str:
        bit = "i1" if self.lanes == 1 else f"<{self.lanes} x i1>"
        return self.emit(f"select {bit} {condition}, {self.element} {a}, {self.element} {b}")

    def whole_in_lanes(self, value: str) -> str:
        """A counter as a real number in every lane."""
        real = self.emit(f"sitofp i64 {value} to {self.number.real}")
        if self.lanes == 1:
            return real
        one = self.emit(f"insertelement {self.element} poison, {self.number.real} {real}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {self.element} {one}, {self.element} poison, {mask}")


class LoopTurn:
    """One turn of a loop: its counter, what is carried into it, and what it hands on."""

    def __init__(self, index: str, value: str) -> None:
        self.index, self.value, self.following = index, value, value


def elimination_functions(
    lanes: int, columns: int, number: Format = DOUBLE
) -> tuple[list[str], set[str]]:
    """IR of `factor` and `solve`, and what they declare.

    Straight-line code of an elimination grows with the cube of its size; loops do not. A matrix
    lies row by row with `stride(n)` places per row. One run works on several columns at once; of
    many runs each has its lane, and its own order of rows.

    ``void factor(ptr J, ptr scale, ptr M, ptr work, i64 n, i64 block, i64 x, i64 s, i64 t)`` makes
    M = scale 1 - J of the first x columns of J and eliminates in place. J has `block` rows of t
    places, M has n of s places: as many as J, or twice as many if the scale is complex. Rows of J
    beyond x stay where they are. ``void solve(ptr M, ptr work, ptr b, i64 n, i64 s)`` solves for b
    in place.
    """
    texts, declarations = [], {f"declare i64 @llvm.fptosi.sat.i64.f{number.bits}({number.real})"}
    for name, arguments, write in (
        (
            "factor",
            "ptr %J, ptr %scale, ptr %M, ptr %work, i64 %n, i64 %block, i64 %x, i64 %s, i64 %t",
            _factor,
        ),
        ("solve", "ptr %M, ptr %work, ptr %b, i64 %n, i64 %s", _solve),
    ):
        w = Loops(lanes, columns, number)
        write(w)
        body = "\n".join(w.lines)
        texts.append(
            f"define internal void @{name}({arguments}) #0 {{\nentry:\n{body}\n  ret void\n}}\n"
        )
        declarations |= w.declarations
    return texts, declarations


def _factor(w: Loops) -> None:
    _set_up(w)
    with w.loop("0", "%n") as step:
        k = step.index
        row = w.emit(f"mul i64 {k}, %s")
        _exchange_rows(w, k, row)
        pivot = w.place("%M", row, k)
        reciprocal = w.model("fdiv", w.constant(1.0), w.load(pivot))
        w.store(reciprocal, pivot)
        after = w.emit(f"add i64 {k}, 1")
        with w.loop(after, "%n") as below:
            other = w.emit(f"mul i64 {below.index}, %s")
            place = w.place("%M", other, k)
            share = w.model("fmul", w.load(place), reciprocal)
            w.store(share, place)
            with w.when(_any(w, share)):  # many are zero
                _subtract_row(w, row, other, after, share)


def _any(w: Loops, value: str) -> str:
    """Return whether an element is not zero in any lane."""
    zero = "0.0" if w.lanes == 1 else "zeroinitializer"
    bits = w.emit(f"fcmp une {w.element} {value}, {zero}")
    if w.lanes == 1:
        return bits
    packed = w.emit(f"bitcast <{w.lanes} x i1> {bits} to i{w.lanes}")
    return w.emit(f"icmp ne i{w.lanes} {packed}, 0")


def _set_up(w: Loops) -> None:
    """The matrix, zero beyond, and the scale of every row in its last place.

    A second block is that of a complex scale, real and imaginary parts one after the other.
    """
    zero = w.constant(0.0)
    with w.loop("0", "%n") as turn:
        row = w.emit(f"mul i64 {turn.index}, %s")
        with w.loop("0", "%s") as column:
            w.store(zero, w.place("%M", row, column.index))
    real = w.load("%scale")
    with w.loop("0", "%n", step="%block") as block, w.loop("0", "%block") as turn:
        row = w.emit(f"mul i64 {w.emit(f'add i64 {block.index}, {turn.index}')}, %s")
        given = w.emit(f"mul i64 {turn.index}, %t")
        with w.loop("0", "%x") as column:
            value = w.load(w.place("%J", given, column.index))
            place = w.place("%M", row, block.index, column.index)
            w.store(w.emit(f"fneg {w.element} {value}"), place)
        diagonal = w.place("%M", row, block.index, turn.index)
        w.store(w.model("fadd", w.load(diagonal), real), diagonal)
        with w.when(w.emit("icmp sgt i64 %n, %block")):
            imaginary = w.load(w.place("%scale", "1"))
            first = w.emit(f"icmp eq i64 {block.index}, 0")
            minus = w.emit(f"fneg {w.element} {imaginary}")
            value = w.emit(f"select i1 {first}, {w.element} {minus}, {w.element} {imaginary}")
            other = w.emit(f"sub i64 %block, {block.index}")
            w.store(value, w.place("%M", row, other, turn.index))
        _scale_row(w, row, turn.index)


def _scale_row(w: Loops, row: str, number: str) -> None:
    """One by the largest number of a row; zero for a row that is not exchanged."""
    with w.loop("0", "%n", carry=(w.element, w.constant(0.0))) as column:
        size = w.size(w.load(w.place("%M", row, column.index)))
        larger = w.emit(f"fcmp ogt {w.element} {size}, {column.value}")
        column.following = w.choose(larger, size, column.value)
    scale = w.model("fdiv", w.constant(1.0), column.value)
    moves = w.emit(f"icmp slt i64 {number}, %x")
    kept = w.emit(f"select i1 {moves}, {w.element} {scale}, {w.element} {w.constant(0.0)}")
    w.store(kept, w.place("%M", row, w.emit("sub i64 %s, 1")))


def _exchange_rows(w: Loops, k: str, row: str) -> None:
    """The row whose number in column k is largest against its scale becomes row k."""
    best, where = w.emit(f"alloca {w.element}"), w.emit(f"alloca {w.element}")
    # allocations inside a loop would add up: these two belong to the entry
    w.lines[:0] = [w.lines.pop(-2), w.lines.pop(-1)]
    last = w.emit("sub i64 %s, 1")
    w.store(w.whole_in_lanes(k), where)
    size = w.size(w.load(w.place("%M", row, k)))
    w.store(w.model("fmul", size, w.load(w.place("%M", row, last))), best)
    with w.loop(w.emit(f"add i64 {k}, 1"), "%n") as below:
        other = w.emit(f"mul i64 {below.index}, %s")
        size = w.size(w.load(w.place("%M", other, k)))
        share = w.model("fmul", size, w.load(w.place("%M", other, last)))
        known = w.load(best)
        larger = w.emit(f"fcmp ogt {w.element} {share}, {known}")
        w.store(w.choose(larger, share, known), best)
        w.store(w.choose(larger, w.whole_in_lanes(below.index), w.load(where)), where)
    w.store(w.load(where), w.place("%work", k))
    for lane in range(w.lanes):
        chosen = _chosen(w, where, "0", lane)
        with w.when(w.emit(f"icmp ne i64 {chosen}, {k}")):
            other = w.emit(f"mul i64 {chosen}, %s")
            kind, step = (w.vector, w.columns) if w.lanes == 1 else (w.number.real, 1)
            with w.loop("0", "%s", step) as column:
                a, b = (_lane(w, w.place("%M", r, column.index), lane) for r in (row, other))
                x, y = w.load(a, kind), w.load(b, kind)
                w.store(y, a, kind)
                w.store(x, b, kind)


def _lane(w: Loops, address: str, lane: int) -> str:
    if lane == 0:
        return address
    return w.emit(f"getelementptr {w.number.real}, ptr {address}, i64 {lane}")


def _chosen(w: Loops, base: str, index: str, lane: int) -> str:
    """The number of a row that was kept as a real."""
    real = w.load(_lane(w, w.place(base, index), lane), w.number.real)
    return w.emit(f"call i64 @llvm.fptosi.sat.i64.f{w.number.bits}({w.number.real} {real})")


def _subtract_row(w: Loops, row: str, other: str, first: str, share: str) -> None:
    """Take a share of a row from another one, from a column on."""
    shares = w.splat(share)
    with w.loop(first, "%n", w.columns) as column:
        place = w.place("%M", other, column.index)
        taken = w.model(
            "fmul", shares, w.load(w.place("%M", row, column.index), w.vector), w.vector
        )
        w.store(w.model("fsub", w.load(place, w.vector), taken, w.vector), place, w.vector)


def _solve(w: Loops) -> None:
    """Both triangles; what is not known yet is zero, so that vectors may reach beyond."""
    zero = w.constant(0.0)
    middle = w.place("%work", "%s")
    found = w.place("%work", w.emit("mul i64 %s, 2"))
    with w.loop("0", "%s") as turn:
        w.store(zero, w.place(middle, turn.index))
        w.store(zero, w.place(found, turn.index))
    with w.loop("0", "%n") as turn:
        for lane in range(w.lanes):
            chosen = _chosen(w, "%work", turn.index, lane)
            a, b = (_lane(w, w.place("%b", i), lane) for i in (turn.index, chosen))
            x, y = (w.load(place, w.number.real) for place in (a, b))
            w.store(y, a, w.number.real)
            w.store(x, b, w.number.real)
    with w.loop("0", "%n") as turn:
        known = _product(w, turn.index, "0", turn.index, middle)
        rest = w.model("fsub", w.load(w.place("%b", turn.index)), known)
        w.store(rest, w.place(middle, turn.index))
    with w.loop("0", "%n") as turn:
        up = w.emit(f"sub i64 %n, {turn.index}")
        i = w.emit(f"sub i64 {up}, 1")
        known = _product(w, i, up, "%n", found)
        rest = w.model("fsub", w.load(w.place(middle, i)), known)
        row = w.emit(f"mul i64 {i}, %s")
        value = w.model("fmul", rest, w.load(w.place("%M", row, i)))
        w.store(value, w.place(found, i))
        w.store(value, w.place("%b", i))


def _product(w: Loops, i: str, first: str, end: str, vector: str) -> str:
    """Row i of M times a vector, over some columns."""
    row = w.emit(f"mul i64 {i}, %s")
    nothing = "zeroinitializer" if w.vector.startswith("<") else "0.0"
    with w.loop(first, end, w.columns, carry=(w.vector, nothing)) as turn:
        a = w.load(w.place("%M", row, turn.index), w.vector)
        b = w.load(w.place(vector, turn.index), w.vector)
        turn.following = w.model("fadd", w.model("fmul", a, b, w.vector), turn.value, w.vector)
    return w.total(turn.value)


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
