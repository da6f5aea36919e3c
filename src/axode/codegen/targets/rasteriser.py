"""Triangles to pixels, as machine code: into a depth buffer, and its mean over a floor.

Rows of pixels are as long as a multiple of `LANES`, so that every vector of them is whole. A
colour is one integer: red, green and blue in its low bytes, and one in the highest if a triangle
covers the pixel.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.ir import DOUBLE, SINGLE, Writer
from axode.codegen.lowering.instructions import attributes
from axode.codegen.targets.jit import load
from axode.numerics.tolerances import ROUNDING

LANES = 8
VERTEX = 6  # numbers of a vertex: x, y, nearness, red, green, blue
OUTSIDE = 2e-5  # of a triangle: pixels so near to its edge belong to it, so that none is left out
BEHIND = 1e6  # nearness of what is behind the eye

# The numbers that `resolve` needs, in their order.
VIEW = (
    "x0", "y0", "step",  # of the rays through pixels
    "down_x", "down_y", "down", "gap",  # of the rays against the floor's normal
    "u_x", "u_y", "u_0", "u_eye", "v_x", "v_y", "v_0", "v_eye",  # on the floor, in its spacing
    "line", "fade", "shadow",
    "sky_r", "sky_g", "sky_b", "floor_r", "floor_g", "floor_b", "line_r", "line_g", "line_b",
)  # fmt: skip


def triangles_module() -> str:
    """Write `void triangles(vertices, corners, count, nearness, colours, width, height)`.

    Vertices are `VERTEX` floats each; a triangle is three numbers of vertices and whether its back
    is drawn too. What is nearer, by one over its depth, replaces what is farther.
    """
    w = Writer(1, DOUBLE)
    body = "\n".join([_triangle(w), _rows(w)])
    p = w.alongside(LANES, SINGLE)
    p.lines = w.lines = []
    inside = _span(p)
    return "\n".join(
        [
            *sorted(w.declarations | p.declarations),
            "define void @triangles(ptr %vertices, ptr %corners, i64 %count, ptr %nearness, "
            "ptr %colours, i64 %width, i64 %height) #0 {",
            "entry:",
            "  %wide = sitofp i64 %width to double",
            "  %tall = sitofp i64 %height to double",
            "  br label %triangle",
            body,
            inside,
            "done:",
            "  ret void",
            "}",
            attributes(LANES),
        ]
    )


def _triangle(w: Writer) -> str:
    """One triangle: its corners, its area, the rows that it touches."""
    w.lines = [
        "triangle:",
        "  %i = phi i64 [ 0, %entry ], [ %i.next, %advance ]",
        "  %more = icmp slt i64 %i, %count",
        "  br i1 %more, label %setup, label %done",
        "setup:",
        "  %which = shl i64 %i, 2",
    ]
    _load_corners(w)
    for name in "bc":
        w.lines += [f"  %{name}{p} = fsub double %{name}.{p}, %a.{p}" for p in "xynrgb"]
    area = w.sub(w.mul("%bx", "%cy"), w.mul("%cx", "%by"))
    w.lines.append(f"  %inverse = fdiv double {w.constant(1.0)}, {area}")
    # rows go down, so what goes round leftwards in the world has a negative area here
    front = w.combine("or", "%both", w.compare("olt", area, w.constant(0.0)))
    large = w.compare("oge", w.fabs(area), w.constant(ROUNDING))
    nearest = _extreme(w, "maxnum", "n")
    ahead = w.compare("ole", nearest, w.constant(BEHIND))
    half, one = w.constant(0.5), w.constant(1.0)
    zero = w.constant(0.0)
    for axis, size in (("x", "%wide"), ("y", "%tall")):
        low = w.intrinsic("ceil", w.sub(_extreme(w, "minnum", axis), w.constant(0.501)))
        high = w.intrinsic("floor", w.sub(_extreme(w, "maxnum", axis), w.constant(0.499)))
        w.lines += [
            f"  %low.{axis} = fadd double {_clamp(w, low, zero, size)}, {zero}",
            f"  %high.{axis} = fadd double {_clamp(w, high, w.neg(one), w.sub(size, one))}, {zero}",
        ]
    crossed = w.combine(
        "and", w.compare("ole", "%low.x", "%high.x"), w.compare("ole", "%low.y", "%high.y")
    )
    drawn = w.combine("and", w.combine("and", front, large), w.combine("and", ahead, crossed))
    # weights of corners b and c, and hence a, per pixel to the right and down
    w.lines += [
        "  %b.right = fmul double %cy, %inverse",
        f"  %b.down = fmul double {w.neg('%cx')}, %inverse",
        f"  %c.right = fmul double {w.neg('%by')}, %inverse",
        "  %c.down = fmul double %bx, %inverse",
    ]
    w.lines.append(f"  %a.right = fneg double {w.add('%b.right', '%c.right')}")
    for name in "abc":
        w.lines.append(f"  %{name}.per = fdiv double {w.constant(1.0)}, %{name}.right")
    w.lines += [
        f"  %start.x = fsub double {half}, %a.x",
        f"  %start.y = fsub double {half}, %a.y",
        "  %row.first = fptosi double %low.y to i64",
        "  %row.last = fptosi double %high.y to i64",
        f"  br i1 {drawn}, label %row, label %advance",
    ]
    return "\n".join(w.lines)


def _load_corners(w: Writer) -> None:
    """Everything that the corners of a triangle have, and whether its back is drawn."""
    for k, name in enumerate("abc"):
        w.lines += [
            f"  %{name}.at = add i64 %which, {k}",
            f"  %{name}.place = getelementptr i32, ptr %corners, i64 %{name}.at",
            f"  %{name}.index = load i32, ptr %{name}.place",
            f"  %{name}.wide = sext i32 %{name}.index to i64",
            f"  %{name}.first = mul i64 %{name}.wide, {VERTEX}",
        ]
        for j, part in enumerate("xynrgb"):
            w.lines += [
                f"  %{name}.{part}.at = add i64 %{name}.first, {j}",
                f"  %{name}.{part}.place = getelementptr float, ptr %vertices, "
                f"i64 %{name}.{part}.at",
                f"  %{name}.{part}.single = load float, ptr %{name}.{part}.place",
                f"  %{name}.{part} = fpext float %{name}.{part}.single to double",
            ]
    w.lines += [
        "  %back.at = add i64 %which, 3",
        "  %back.place = getelementptr i32, ptr %corners, i64 %back.at",
        "  %back = load i32, ptr %back.place",
        "  %both = icmp ne i32 %back, 0",
    ]


def _extreme(w: Writer, which: str, part: str) -> str:
    return w.intrinsic(which, w.intrinsic(which, f"%a.{part}", f"%b.{part}"), f"%c.{part}")


def _clamp(w: Writer, value: str, low: str, high: str) -> str:
    return w.intrinsic("minnum", w.intrinsic("maxnum", value, low), high)


def _rows(w: Writer) -> str:
    """One row of a triangle: where its edges cross it."""
    w.lines = [
        "row:",
        "  %y = phi i64 [ %row.first, %setup ], [ %y.next, %row.end ]",
        "  %y.real = sitofp i64 %y to double",
    ]
    down = w.add("%y.real", "%start.y")
    for name in "bc":
        w.lines.append(
            f"  %{name}.row = fadd double {w.mul(f'%{name}.right', '%start.x')}, "
            f"{w.mul(f'%{name}.down', down)}"
        )
    rest = w.sub(w.constant(1.0), w.add("%b.row", "%c.row"))
    low, high, zero = "%low.x", "%high.x", w.constant(0.0)
    for name, at_left in (("a", rest), ("b", "%b.row"), ("c", "%c.row")):
        crossing = w.mul(w.sub(w.constant(-OUTSIDE), at_left), f"%{name}.per")
        rises = w.compare("ogt", f"%{name}.right", zero)
        falls = w.compare("olt", f"%{name}.right", zero)
        # one pixel more on either side: the pixels themselves are compared exactly
        from_here = w.select(rises, w.sub(crossing, w.constant(1.0)), low)
        to_here = w.select(falls, w.add(crossing, w.constant(1.0)), high)
        low, high = w.intrinsic("maxnum", low, from_here), w.intrinsic("minnum", high, to_here)
    some = w.compare("ole", low, high)
    first = w.emit(f"fptosi double {w.select(some, low, zero)} to i64")
    last = w.emit(f"fptosi double {w.select(some, high, zero)} to i64")
    w.lines += [
        f"  %first = and i64 {first}, {-LANES}",
        f"  %last = add i64 {last}, 0",
        "  %row.pixels = mul i64 %y, %width",
        f"  br i1 {some}, label %span, label %row.end",
        "row.end:",
        "  %y.next = add i64 %y, 1",
        "  %rows = icmp sle i64 %y.next, %row.last",
        "  br i1 %rows, label %row, label %advance",
        "advance:",
        "  %i.next = add i64 %i, 1",
        "  br label %triangle",
    ]
    return "\n".join(w.lines)


def _span(p: Writer) -> str:
    """The pixels of a row, `LANES` at a time."""
    p.lines = [
        "span:",
        "  %x = phi i64 [ %first, %row ], [ %x.next, %span.end ]",
        "  %x.real = sitofp i64 %x to double",
    ]
    lanes = p.constants(range(LANES))
    single: dict[str, str] = {}
    for name in "bc":
        step = p.emit(f"fptrunc double %{name}.right to float")
        left = p.emit(f"fmul double %{name}.right, %x.real")
        left = p.emit(f"fadd double %{name}.row, {left}")
        left = p.emit(f"fptrunc double {left} to float")
        single[name] = p.add(p.mul(lanes, p.gather([step] * LANES)), p.gather([left] * LANES))
    b, c = single["b"], single["c"]
    rest = p.sub(p.sub(p.constant(1.0), b), c)
    edge = p.constant(-OUTSIDE)
    inside = p.compare("oge", b, edge)
    for weight in (c, rest):
        inside = p.combine("and", inside, p.compare("oge", weight, edge))
    nearness = _between(p, "n", b, c)
    p.lines += [
        "  %pixel = add i64 %row.pixels, %x",
        "  %near.place = getelementptr float, ptr %nearness, i64 %pixel",
        f"  %near.old = load {p.real}, ptr %near.place, align 32",
    ]
    seen = p.combine("and", inside, p.compare("ogt", nearness, "%near.old"))
    any_seen = p.emit(f"bitcast {p.bit} {seen} to i{LANES}")
    none = p.emit(f"icmp eq i{LANES} {any_seen}, 0")
    p.lines += [f"  br i1 {none}, label %span.end, label %paint", "paint:"]
    p.lines.append(
        f"  store {p.real} {p.select(seen, nearness, '%near.old')}, ptr %near.place, align 32"
    )
    colour = p.whole(1 << 24)
    for k, part in enumerate("rgb"):
        value = p.add(_between(p, part, b, c), p.constant(0.5))
        whole = p.emit(f"fptosi {p.real} {value} to {p.integer}")
        if k:
            whole = p.whole_operation("shl", whole, p.whole(8 * k))
        colour = p.whole_operation("or", colour, whole)
    p.lines += [
        "  %colour.place = getelementptr i32, ptr %colours, i64 %pixel",
        f"  %colour.old = load {p.integer}, ptr %colour.place, align 32",
        f"  %colour.new = select {p.bit} {seen}, {p.integer} {colour}, {p.integer} %colour.old",
        f"  store {p.integer} %colour.new, ptr %colour.place, align 32",
        "  br label %span.end",
        "span.end:",
        f"  %x.next = add i64 %x, {LANES}",
        "  %go.on = icmp sle i64 %x.next, %last",
        "  br i1 %go.on, label %span, label %row.end",
    ]
    return "\n".join(p.lines)


def _between(p: Writer, part: str, b: str, c: str) -> str:
    """What a corner has, between the corners."""
    numbers = [p.emit(f"fptrunc double %{name} to float") for name in (f"b{part}", f"c{part}")]
    towards_b, towards_c = (p.gather([number] * LANES) for number in numbers)
    at_a = p.gather([f"%a.{part}.single"] * LANES)
    return p.add(at_a, p.add(p.mul(b, towards_b), p.mul(c, towards_c)))


def resolve_module() -> str:
    """Write `void resolve(colours, shade, view, result, width, height)`.

    Each pixel of the result is the mean of four colours; where no triangle covers these, a floor
    with lines is seen, and the sky beyond. `shade` is how far the sun is hidden from the floor, 0
    to 1, and `view` has the numbers of `VIEW`.
    """
    p = Writer(LANES, SINGLE)
    numbers = {}
    for k, name in enumerate(VIEW):
        place = p.emit(f"getelementptr float, ptr %view, i64 {k}")
        numbers[name] = p.gather([p.emit(f"load float, ptr {place}")] * LANES)
    head, p.lines = p.lines, []
    sums = _four_colours(p)
    floor = _floor(p, numbers)
    packed = p.whole(255 << 24)
    free = p.sub(p.constant(4.0), sums[3])
    for k in range(3):
        total = p.add(sums[k], p.mul(free, floor[k]))
        mean = p.add(p.mul(total, p.constant(0.25)), p.constant(0.5))
        whole = p.emit(f"fptosi {p.real} {mean} to {p.integer}")
        packed = p.whole_operation(
            "or", packed, p.whole_operation("shl", whole, p.whole(8 * k)) if k else whole
        )
    return "\n".join(
        [
            *sorted(p.declarations),
            "define void @resolve(ptr %colours, ptr %shade, ptr %view, ptr %result, "
            "i64 %width, i64 %height) #0 {",
            "entry:",
            *head,
            "  br label %row",
            "row:",
            "  %y = phi i64 [ 0, %entry ], [ %y.next, %row.end ]",
            "  %rows = icmp slt i64 %y, %height",
            "  br i1 %rows, label %pixels, label %done",
            "pixels:",
            "  %x = phi i64 [ 0, %row ], [ %x.next, %pixels ]",
            *p.lines,
            "  %result.place = getelementptr i32, ptr %result, i64 %pixel",
            f"  store {p.integer} {packed}, ptr %result.place, align 32",
            f"  %x.next = add i64 %x, {LANES}",
            "  %go.on = icmp slt i64 %x.next, %width",
            "  br i1 %go.on, label %pixels, label %row.end",
            "row.end:",
            "  %y.next = add i64 %y, 1",
            "  br label %row",
            "done:",
            "  ret void",
            "}",
            attributes(LANES),
        ]
    )


def _four_colours(p: Writer) -> list[str]:
    """Sums of red, green, blue and of the number of covered pixels, over four pixels each."""
    p.lines += [
        "  %row.first = mul i64 %y, %width",
        "  %pixel = add i64 %row.first, %x",
        "  %upper = shl i64 %row.first, 2",
        "  %twice = shl i64 %x, 1",
        "  %upper.at = add i64 %upper, %twice",
        "  %fine = shl i64 %width, 1",
        "  %lower.at = add i64 %upper.at, %fine",
    ]
    pairs = f"<{2 * LANES} x i32>"

    def splat(value: int) -> str:
        return "<" + ", ".join([f"i32 {value}"] * (2 * LANES)) + ">"

    parts: list[list[str]] = [[], []]
    for row in ("upper", "lower"):
        place = p.emit(f"getelementptr i32, ptr %colours, i64 %{row}.at")
        both = p.emit(f"load {pairs}, ptr {place}, align 32")
        parts[0].append(p.emit(f"and {pairs} {both}, {splat(0x00FF00FF)}"))
        shifted = p.emit(f"lshr {pairs} {both}, {splat(8)}")
        parts[1].append(p.emit(f"and {pairs} {shifted}, {splat(0x00FF00FF)}"))
    sums = []
    for upper, lower in parts:
        column = p.emit(f"add {pairs} {upper}, {lower}")
        halves = []
        for first in (0, 1):
            picks = ", ".join(f"i32 {2 * k + first}" for k in range(LANES))
            halves.append(
                p.emit(f"shufflevector {pairs} {column}, {pairs} poison, <{LANES} x i32> <{picks}>")
            )
        total = p.whole_operation("add", *halves)
        low = p.whole_operation("and", total, p.whole(0xFFFF))
        high = p.whole_operation("lshr", total, p.whole(16))
        sums.append([p.emit(f"uitofp {p.integer} {part} to {p.real}") for part in (low, high)])
    (red, blue), (green, covered) = sums
    return [red, green, blue, covered]


def _floor(p: Writer, view: dict[str, str]) -> list[str]:
    """Colours of the floor, or of the sky, where the pixels look."""
    zero, one = p.constant(0.0), p.constant(1.0)

    def limited(value: str) -> str:
        return p.intrinsic("minnum", p.intrinsic("maxnum", value, zero), one)

    column = p.gather([p.emit("sitofp i64 %x to float")] * LANES)
    row = p.gather([p.emit("sitofp i64 %y to float")] * LANES)
    column = p.add(column, p.constants(range(LANES)))
    x = p.add(view["x0"], p.mul(column, view["step"]))
    y = p.sub(view["y0"], p.mul(row, view["step"]))

    def along(name: str) -> str:
        return p.add(p.add(p.mul(x, view[f"{name}_x"]), p.mul(y, view[f"{name}_y"])), view[name])

    downward = along("down")
    depth = p.div(view["gap"], downward)
    hit = p.combine("and", p.compare("ogt", depth, zero), p.compare("olt", depth, p.constant(1e12)))
    depth = p.select(hit, depth, one)
    steep = p.intrinsic("maxnum", p.fabs(downward), p.constant(0.08))
    blur = p.intrinsic("maxnum", p.div(p.mul(depth, view["line"]), steep), p.constant(1e-9))
    lines = zero
    half = p.constant(0.5)
    for name in "uv":
        slope = p.add(p.mul(x, view[f"{name}_x"]), p.mul(y, view[f"{name}_y"]))
        slope = p.add(slope, view[f"{name}_0"])
        at = p.add(p.add(view[f"{name}_eye"], p.mul(depth, slope)), half)
        away = p.fabs(p.sub(p.sub(at, p.intrinsic("floor", at)), half))
        line = limited(p.sub(p.constant(1.6), p.div(away, blur)))
        lines = p.intrinsic("maxnum", lines, line)
    strength = p.mul(lines, limited(p.div(p.constant(0.25), blur)))
    fade = p.select(hit, limited(p.sub(one, p.mul(depth, view["fade"]))), zero)
    p.lines += [
        "  %shade.place = getelementptr float, ptr %shade, i64 %pixel",
        f"  %shade.here = load {p.real}, ptr %shade.place, align 32",
    ]
    dark = p.select(hit, p.mul(view["shadow"], "%shade.here"), zero)
    light = p.sub(one, dark)
    colours = []
    for part in "rgb":
        sky, plain = view[f"sky_{part}"], view[f"floor_{part}"]
        tint = p.add(plain, p.mul(p.sub(view[f"line_{part}"], plain), strength))
        colours.append(p.mul(light, p.add(sky, p.mul(p.sub(tint, sky), fade))))
    return colours


Floats = npt.NDArray[np.float32]
Colours = npt.NDArray[np.uint32]
ALIGNMENT = 64  # bytes


class PixelBuffer:
    """Colours and nearness of pixels, in rows that are whole vectors.

    Attributes:
        width, height: In pixels, `width` rounded up to whole vectors.
        nearness: One over the depth of what is seen; zero where nothing is: (height, width).
        colours: Red, green and blue in the low bytes, one in the highest where something is seen.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = whole_vectors(width), height
        self.nearness: Floats = aligned((height, self.width), np.float32)
        self.colours: Colours = aligned((height, self.width), np.uint32)

    def clear(self) -> None:
        """Clear the picture."""
        self.nearness.fill(0.0)
        self.colours.fill(0)

    def draw(self, vertices: Floats, corners: npt.NDArray[np.int32]) -> None:
        """Draw triangles, hidden by what is nearer.

        Args:
            vertices: Column and row in pixels, nearness, red, green and blue from 0 to 255: (n, 6).
            corners: Three vertices of each triangle, and whether its back is drawn too: (m, 4).
        """
        vertices = np.ascontiguousarray(vertices, np.float32).reshape(-1, VERTEX)
        corners = np.ascontiguousarray(corners, np.int32).reshape(-1, 4)
        if not len(corners):
            return
        lowest, highest = corners[:, :3].min(), corners[:, :3].max()
        if lowest < 0 or highest >= len(vertices):
            raise IndexError(f"corners {lowest} to {highest} of {len(vertices)} vertices")
        _compiled("triangles")(
            vertices.ctypes.data, corners.ctypes.data, len(corners), self.nearness.ctypes.data,
            self.colours.ctypes.data, self.width, self.height,
        )  # fmt: skip


def resolve(
    fine: PixelBuffer, shade: Floats, view: Mapping[str, float], result: Colours
) -> Colours:
    """Average four pixels to one, over a floor with lines and the sky.

    Args:
        fine: Twice as wide and high as the result.
        shade: How far the sun is hidden from the floor, 0 to 1, as large as the result.
        view: The numbers of `VIEW`.
        result: Colours, as of a `PixelBuffer`; changed.
    """
    height, width = result.shape
    if (fine.height, fine.width) != (2 * height, 2 * width) or shade.shape != result.shape:
        raise ValueError(f"{fine.height} x {fine.width} pixels are not twice {height} x {width}")
    numbers = np.array([view[name] for name in VIEW], np.float32)
    _compiled("resolve")(
        fine.colours.ctypes.data, shade.ctypes.data, numbers.ctypes.data, result.ctypes.data,
        width, height,
    )  # fmt: skip
    return result


def whole_vectors(width: int) -> int:
    """Round a number of pixels up to whole vectors."""
    return -(-width // LANES) * LANES


def aligned(shape: tuple[int, int], kind: Any) -> npt.NDArray[Any]:
    """Make an array of zeros that starts where vectors can be loaded."""
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    first = -memory.ctypes.data % ALIGNMENT
    return memory[first : first + size].view(kind).reshape(shape)


_SIGNATURES = {"triangles": (triangles_module, "ppippii"), "resolve": (resolve_module, "ppppii")}
_TYPES = {"p": ctypes.c_void_p, "i": ctypes.c_int64}


@functools.cache
def _compiled(entry: str) -> Callable[..., None]:
    """The machine code of one of the functions; it runs without Python's lock."""
    write, letters = _SIGNATURES[entry]
    code = load(f"raster {entry}", f"raster {entry}", entry, write)
    call = ctypes.CFUNCTYPE(None, *(_TYPES[letter] for letter in letters))(code.address)
    call.code = code  # type: ignore[attr-defined]  # as long as it may be called
    return call
