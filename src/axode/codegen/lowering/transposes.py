"""Squares of numbers transposed in registers: samples of row-major arrays to vectors and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

# The number of an element of a sample: known, or a value of the code.
Element = int | str


def blocks(first: int, size: int, widest: int) -> Iterator[tuple[int, int]]:
    """First element and width of blocks that cover a sample from an element on.

    Widths are powers of two.
    """
    width = widest
    while first < size:
        while width > size - first:
            width //= 2
        yield first, width
        first += width


class Transposes:
    """Writes transposes of ``lanes`` samples.

    Args:
        emit: Appends an instruction and names its result.
        lines: Instructions so far.
        lanes: Samples that one vector holds.
    """

    def __init__(self, emit: Callable[[str], str], lines: list[str], lanes: int) -> None:
        self._emit, self._lines, self._lanes = emit, lines, lanes
        self._vector = f"<{lanes} x double>"

    def load_rows(self, rows: list[str], element: Element, width: int) -> list[str]:
        """``width`` elements of every sample; vector i holds samples i, i + width, ..."""
        kind = _vector(width)
        pieces = []
        for row in rows:
            place = self._emit(f"getelementptr double, ptr {row}, i64 {element}")
            pieces.append(self._emit(f"load {kind}, ptr {place}, align 8"))
        return [self._join(pieces[i::width], width) for i in range(width)]

    def store_rows(self, rows: list[str], element: Element, stacked: list[str]) -> None:
        """Store what ``load_rows`` loads."""
        width = len(stacked)
        kind = _vector(width)
        for lane, row in enumerate(rows):
            value = self._part(stacked[lane % width], lane // width, width)
            place = self._emit(f"getelementptr double, ptr {row}, i64 {element}")
            self._lines.append(f"  store {kind} {value}, ptr {place}, align 8")

    def _join(self, pieces: list[str], width: int) -> str:
        """Join pieces of one width in one vector."""
        if width == 1:
            value = "poison"
            for lane, piece in enumerate(pieces):
                value = self._emit(
                    f"insertelement {self._vector} {value}, double {piece}, i64 {lane}"
                )
            return value
        while len(pieces) > 1:
            every = range(2 * width)
            pairs = zip(pieces[::2], pieces[1::2], strict=True)
            pieces = [self._shuffle(a, b, every, width) for a, b in pairs]
            width *= 2
        return pieces[0]

    def _part(self, value: str, number: int, width: int) -> str:
        """Return a piece of a vector."""
        if width == self._lanes:
            return value
        if width == 1:
            return self._emit(f"extractelement {self._vector} {value}, i64 {number}")
        picks = range(number * width, (number + 1) * width)
        return self._shuffle(value, "poison", picks, self._lanes)

    def transpose(self, vectors: list[str]) -> list[str]:
        """Transpose squares of numbers, side by side in as many vectors as a side has.

        It swaps ever larger off-diagonal blocks.
        """
        vectors, block = list(vectors), 1
        lanes = range(self._lanes)
        while block < len(vectors):
            upper = [j if not j & block else self._lanes + j - block for j in lanes]
            lower = [j + block if not j & block else self._lanes + j for j in lanes]
            for i in range(len(vectors)):
                if not i & block:
                    a, b = vectors[i], vectors[i + block]
                    vectors[i] = self._shuffle(a, b, upper, self._lanes)
                    vectors[i + block] = self._shuffle(a, b, lower, self._lanes)
            block *= 2
        return vectors

    def _shuffle(self, a: str, b: str, picks: Sequence[int], width: int) -> str:
        mask = ", ".join(f"i32 {pick}" for pick in picks)
        kind = _vector(width)
        return self._emit(f"shufflevector {kind} {a}, {kind} {b}, <{len(picks)} x i32> <{mask}>")


def _vector(width: int) -> str:
    return "double" if width == 1 else f"<{width} x double>"
