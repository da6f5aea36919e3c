"""Derivatives, eliminations and weighted sums inside programs, as loops over buffers.

The columns of a Jacobian are derivatives along unit vectors. Many runs side by side take one column
at a time; a single run has as many columns side by side as a vector has lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from axode.codegen.ir import DOUBLE, MODEL_FLAGS, Format, NumberedLines

if TYPE_CHECKING:
    from axode.codegen.lowering.program_loop import ProgramWriter
    from axode.codegen.tape.program import JacobianColumns, LargestElement, MaskedCopy, WeightedSum

Number = tuple[str, ...]  # its real part, and its imaginary one if it has one


class Loops(NumberedLines):
    """Writes one function of IR, with loops.

    Args:
        lanes: Runs side by side; one run has `columns` numbers of a row in a vector instead.
        columns: Numbers of a row in a vector.
        number: Format of all reals.
        parts: How many reals a number of a matrix has: one, or two if it is complex.
    """

    def __init__(self, lanes: int, columns: int, number: Format = DOUBLE, parts: int = 1) -> None:
        super().__init__()
        self.lanes, self.number, self.parts = lanes, number, parts
        self.columns = columns if lanes == 1 else 1
        self.element = number.real if lanes == 1 else f"<{lanes} x {number.real}>"
        width = lanes * self.columns
        self.vector = number.real if width == 1 else f"<{width} x {number.real}>"
        self.nothing = "zeroinitializer" if width > 1 else "0.0"
        self.declarations: set[str] = set()

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

    def load_first(self, count: str, address: str) -> str:
        """A vector of no more than the first columns; the others are zero."""
        if self.columns == 1:
            return self.load(address, self.vector)
        kind, bits = f"<{self.columns} x i64>", f"<{self.columns} x i1>"
        one = self.emit(f"insertelement {kind} poison, i64 {count}, i64 0")
        mask = f"<{self.columns} x i32> zeroinitializer"
        every = self.emit(f"shufflevector {kind} {one}, {kind} poison, {mask}")
        places = ", ".join(f"i64 {k}" for k in range(self.columns))
        kept = self.emit(f"icmp slt {kind} <{places}>, {every}")
        function = f"@llvm.masked.load.v{self.columns}f{self.number.bits}.p0"
        self.declarations.add(f"declare {self.vector} {function}(ptr, i32, {bits}, {self.vector})")
        align = f"i32 {self.number.bytes}"
        given = f"ptr {address}, {align}, {bits} {kept}, {self.vector} {self.nothing}"
        return self.emit(f"call {self.vector} {function}({given})")

    def get(self, base: str, *indices: str, kind: str = "") -> Number:
        """A number of a matrix or of a vector beside it."""
        address = self.place(base, *indices)
        return tuple(self.load(place, kind) for place in self._parts_at(address))

    def put(self, value: Number, base: str, *indices: str, kind: str = "") -> None:
        address = self.place(base, *indices)
        for part, place in zip(value, self._parts_at(address), strict=True):
            self.store(part, place, kind)

    def _parts_at(self, address: str) -> list[str]:
        return [address] if self.parts == 1 else [address, self.place(address, "%s")]

    def times(self, a: Number, b: Number, kind: str = "") -> Number:
        if self.parts == 1:
            return (self.model("fmul", a[0], b[0], kind),)
        (ar, ai), (br, bi) = a, b
        rr, ii, ri, ir = (
            self.model("fmul", x, y, kind) for x, y in ((ar, br), (ai, bi), (ar, bi), (ai, br))
        )
        return self.model("fsub", rr, ii, kind), self.model("fadd", ri, ir, kind)

    def minus(self, a: Number, b: Number, kind: str = "") -> Number:
        return tuple(self.model("fsub", x, y, kind) for x, y in zip(a, b, strict=True))

    def reciprocal(self, a: Number) -> Number:
        if self.parts == 1:
            return (self.model("fdiv", self.constant(1.0), a[0]),)
        squares = [self.model("fmul", x, x) for x in a]
        scale = self.model("fdiv", self.constant(1.0), self.model("fadd", *squares))
        imaginary = self.model("fmul", a[1], scale)
        return self.model("fmul", a[0], scale), self.emit(f"fneg {self.element} {imaginary}")

    def size_of(self, a: Number) -> str:
        """Sum of the sizes of its parts."""
        sizes = list(map(self.size, a))
        return sizes[0] if self.parts == 1 else self.model("fadd", *sizes)

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
    lanes: int, columns: int, number: Format = DOUBLE, *, pairs: bool = False
) -> tuple[list[str], set[str]]:
    """IR of ``factor`` and ``solve``, and what they declare.

    Straight-line code of an elimination grows with the cube of its size; loops do not. A matrix
    lies row by row; a row has `stride(n)` places, and as many again for its imaginary parts if
    there are any. One run works on several columns at once; of many runs each has its lane, and
    its own order of rows.

    ``void factor(ptr J, ptr scale, ptr M, ptr work, i64 n, i64 x, i64 e, i64 s, i64 t)`` makes
    M = scale 1 - J of the first x columns of J, adds to its first e columns what the e
    unknowns of the next columns of J bring, and eliminates its first x rows in place. J has n rows
    of t places, M has n of s places a part. Unknowns beyond x follow from the others.
    ``void solve(ptr J, ptr M, ptr work, ptr b, i64 n, i64 x, i64 e, i64 s, i64 t)`` solves for
    the first n numbers of b in place, the e further ones being known.

    Args:
        lanes: Runs side by side.
        columns: Columns side by side.
        number: Format of all reals.
        pairs: Make ``factor_pair`` and ``solve_pair`` too, for complex scales.
    """
    texts, declarations = [], {f"declare i64 @llvm.fptosi.sat.i64.f{number.bits}({number.real})"}
    sizes = "i64 %n, i64 %x, i64 %e, i64 %s, i64 %t"
    for parts, suffix in ((1, ""), (2, "_pair"))[: 1 + pairs]:
        for name, arguments, write in (
            ("factor", "ptr %J, ptr %scale, ptr %M, ptr %work", _factor),
            ("solve", "ptr %J, ptr %M, ptr %work, ptr %b", _solve),
        ):
            w = Loops(lanes, columns, number, parts)
            w.line(f"%p = mul i64 %s, {parts}")
            write(w)
            body = "\n".join(w.lines)
            texts.append(
                f"define internal void @{name}{suffix}({arguments}, {sizes}) #0 {{\nentry:\n{body}"
                "\n  ret void\n}\n"
            )
            declarations |= w.declarations
    return texts, declarations


def _factor(w: Loops) -> None:
    _set_up(w)
    with w.loop("0", "%x") as step:
        k = step.index
        row = w.emit(f"mul i64 {k}, %p")
        _exchange_rows(w, k, row)
        reciprocal = w.reciprocal(w.get("%M", row, k))
        w.put(reciprocal, "%M", row, k)
        after = w.emit(f"add i64 {k}, 1")
        with w.loop(after, "%x") as below:
            other = w.emit(f"mul i64 {below.index}, %p")
            share = w.times(w.get("%M", other, k), reciprocal)
            w.put(share, "%M", other, k)
            with w.when(_any(w, share)):  # many are zero
                _subtract_row(w, row, other, after, share)


def _any(w: Loops, values: Number) -> str:
    """Return whether an element is not zero in any lane."""
    zero = "0.0" if w.lanes == 1 else "zeroinitializer"
    bits, *others = [w.emit(f"fcmp une {w.element} {value}, {zero}") for value in values]
    bit = "i1" if w.lanes == 1 else f"<{w.lanes} x i1>"
    for other in others:
        bits = w.emit(f"or {bit} {bits}, {other}")
    if w.lanes == 1:
        return bits
    packed = w.emit(f"bitcast <{w.lanes} x i1> {bits} to i{w.lanes}")
    return w.emit(f"icmp ne i{w.lanes} {packed}, 0")


def _set_up(w: Loops) -> None:
    """The matrix, zero beyond, and the scale of every row in its last place."""
    zero = w.constant(0.0)
    with w.loop("0", w.emit("mul i64 %n, %p")) as turn:
        w.store(zero, w.place("%M", turn.index))
    scale = tuple(w.load(w.place("%scale", str(part))) for part in range(w.parts))
    reciprocal = w.reciprocal(scale)
    with w.loop("0", "%n") as turn:
        row = w.emit(f"mul i64 {turn.index}, %p")
        given = w.emit(f"mul i64 {turn.index}, %t")
        with w.loop("0", "%x") as column:
            value = w.load(w.place("%J", given, column.index))
            w.store(w.emit(f"fneg {w.element} {value}"), w.place("%M", row, column.index))
        further = w.emit(f"add i64 {given}, %x")
        with w.loop("0", "%e") as column:
            value = w.load(w.place("%J", further, column.index))
            brought = tuple(w.model("fmul", value, part) for part in reciprocal)
            w.put(w.minus(w.get("%M", row, column.index), brought), "%M", row, column.index)
        diagonal = w.get("%M", row, turn.index)
        shifted = tuple(w.model("fadd", a, b) for a, b in zip(diagonal, scale, strict=True))
        w.put(shifted, "%M", row, turn.index)
        _scale_row(w, row)
    with w.loop("%x", "%n") as turn:
        row = w.emit(f"mul i64 {turn.index}, %p")
        w.put(reciprocal, "%M", row, turn.index)


def _scale_row(w: Loops, row: str) -> None:
    """One by the largest number of a row."""
    with w.loop("0", "%x", carry=(w.element, w.constant(0.0))) as column:
        size = w.size_of(w.get("%M", row, column.index))
        larger = w.emit(f"fcmp ogt {w.element} {size}, {column.value}")
        column.following = w.choose(larger, size, column.value)
    scale = w.model("fdiv", w.constant(1.0), column.value)
    w.store(scale, w.place("%M", row, w.emit("sub i64 %s, 1")))


def _exchange_rows(w: Loops, k: str, row: str) -> None:
    """The row whose number in column k is largest against its scale becomes row k."""
    best, where = w.emit(f"alloca {w.element}"), w.emit(f"alloca {w.element}")
    # allocations inside a loop would add up: these two belong to the entry
    w.lines[:0] = [w.lines.pop(-2), w.lines.pop(-1)]
    last = w.emit("sub i64 %s, 1")
    w.store(w.whole_in_lanes(k), where)
    size = w.size_of(w.get("%M", row, k))
    w.store(w.model("fmul", size, w.load(w.place("%M", row, last))), best)
    with w.loop(w.emit(f"add i64 {k}, 1"), "%x") as below:
        other = w.emit(f"mul i64 {below.index}, %p")
        size = w.size_of(w.get("%M", other, k))
        share = w.model("fmul", size, w.load(w.place("%M", other, last)))
        known = w.load(best)
        larger = w.emit(f"fcmp ogt {w.element} {share}, {known}")
        w.store(w.choose(larger, share, known), best)
        w.store(w.choose(larger, w.whole_in_lanes(below.index), w.load(where)), where)
    w.store(w.load(where), w.place("%work", k))
    for lane in range(w.lanes):
        chosen = _chosen(w, where, "0", lane)
        with w.when(w.emit(f"icmp ne i64 {chosen}, {k}")):
            other = w.emit(f"mul i64 {chosen}, %p")
            kind, step = (w.vector, w.columns) if w.lanes == 1 else (w.number.real, 1)
            with w.loop("0", "%p", step) as column:
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


def _subtract_row(w: Loops, row: str, other: str, first: str, share: Number) -> None:
    """Take a share of a row from another one, from a column on."""
    shares = tuple(map(w.splat, share))
    with w.loop(first, "%x", w.columns) as column:
        taken = w.times(shares, w.get("%M", row, column.index, kind=w.vector), w.vector)
        known = w.get("%M", other, column.index, kind=w.vector)
        left = w.minus(known, taken, w.vector)
        w.put(left, "%M", other, column.index, kind=w.vector)


def _solve(w: Loops) -> None:
    """Both triangles; what is not known yet is zero, so that vectors may reach beyond."""
    zero, length = w.constant(0.0), w.emit("add i64 %n, %e")
    middle = w.place("%work", "%s")
    found = w.place("%work", "%s", "%p")
    sides = [w.place("%b", w.emit(f"mul i64 {length}, {part}")) for part in range(w.parts)]
    with w.loop("0", "%p") as turn:
        w.store(zero, w.place(middle, turn.index))
        w.store(zero, w.place(found, turn.index))
    with w.when(w.emit("icmp sgt i64 %e, 0")):
        _add_known(w, sides)
    with w.loop("0", "%x") as turn:
        for side in sides:
            for lane in range(w.lanes):
                chosen = _chosen(w, "%work", turn.index, lane)
                a, b = (_lane(w, w.place(side, i), lane) for i in (turn.index, chosen))
                x, y = (w.load(place, w.number.real) for place in (a, b))
                w.store(y, a, w.number.real)
                w.store(x, b, w.number.real)
    with w.loop("0", "%x") as turn:
        known = _product(w, turn.index, "0", turn.index, middle)
        given = tuple(w.load(w.place(side, turn.index)) for side in sides)
        w.put(w.minus(given, known), middle, turn.index)
    with w.loop("0", "%x") as turn:
        up = w.emit(f"sub i64 %x, {turn.index}")
        i = w.emit(f"sub i64 {up}, 1")
        known = _product(w, i, up, "%x", found)
        rest = w.minus(w.get(middle, i), known)
        row = w.emit(f"mul i64 {i}, %p")
        value = w.times(rest, w.get("%M", row, i))
        w.put(value, found, i)
        for side, part in zip(sides, value, strict=True):
            w.store(part, w.place(side, i))
    with w.loop("%x", "%n") as turn:
        known = _product(w, turn.index, "0", "%x", found)
        given = tuple(w.load(w.place(side, turn.index)) for side in sides)
        row = w.emit(f"mul i64 {turn.index}, %p")
        value = w.times(w.minus(given, known), w.get("%M", row, turn.index))
        for side, part in zip(sides, value, strict=True):
            w.store(part, w.place(side, turn.index))


def _add_known(w: Loops, sides: Sequence[str]) -> None:
    """Add what the further unknowns, which come after the others, bring to the right side."""
    with w.loop("0", "%n") as turn:
        row = w.emit(f"add i64 {w.emit(f'mul i64 {turn.index}, %t')}, %x")
        for side in sides:
            with w.loop("0", "%e", w.columns, carry=(w.vector, w.nothing)) as column:
                left = w.emit(f"sub i64 %e, {column.index}")
                a = w.load_first(left, w.place("%J", row, column.index))
                b = w.load_first(left, w.place(side, "%n", column.index))
                product = w.model("fmul", a, b, w.vector)
                column.following = w.model("fadd", product, column.value, w.vector)
            place = w.place(side, turn.index)
            w.store(w.model("fadd", w.load(place), w.total(column.value)), place)


def _product(w: Loops, i: str, first: str, end: str, vector: str) -> Number:
    """Row i of M times a vector, over some columns."""
    row = w.emit(f"mul i64 {i}, %p")
    found = []
    for part in range(w.parts):
        with w.loop(first, end, w.columns, carry=(w.vector, w.nothing)) as turn:
            a = w.get("%M", row, turn.index, kind=w.vector)
            b = w.get(vector, turn.index, kind=w.vector)
            product = w.times(a, b, w.vector)[part]
            turn.following = w.model("fadd", product, turn.value, w.vector)
        found.append(w.total(turn.value))
    return tuple(found)


def column_functions(
    lanes: int, width: int, number: Format = DOUBLE, *, pairs: bool = False
) -> tuple[list[str], set[str]]:
    """IR of what `JacobianColumns`, `FactorMatrix` and `Solve` call, and its declarations.

    Args:
        lanes: Runs side by side.
        width: Columns side by side if there is one run, else the number of runs.
        number: Format of all reals.
        pairs: Whether any system is complex.
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
    texts, declarations = elimination_functions(lanes, width, number, pairs=pairs)
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
