"""Legends beside or above what they explain, never on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from axode.show.style import FONTS, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 72.0  # per inch
WIDTH_OF_LETTER = 0.62  # of the size of the text, of most names on average
ROW = 1.42  # height of a row, of the size of the text
SOLID_HANDLE, DASHED_HANDLE = 1.6, 2.4  # the line before a label, of the size of the text
AFTER_HANDLE = 2.2  # the space after it, likewise
BESIDE = 0.34  # of the width of the figure: wider, a legend stands above
AXIS = 0.7  # [in] that numbers and label of an axis take


class MathLabel(str):
    """Label with mathematics between dollar signs, as the user wrote it."""

    __slots__ = ()


@dataclass(frozen=True)
class LegendEntry:
    """A line of a legend: its text and how its line looks."""

    label: str
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Legend:
    """Place and size of a legend [in]."""

    entries: tuple[LegendEntry, ...]
    beside: bool
    columns: int
    width: float
    height: float
    handle: float = SOLID_HANDLE


def plan_legends(entries: Sequence[LegendEntry], size: Size, width: float) -> Legend | None:
    """Plan a legend that fits a panel of this width [in]; return None where none fits.

    It is beside the panel where its words are short and the figure is wide, in as few columns
    as keep it about as high as the panel; else above, in as many columns as there is room for.
    """
    if not entries:
        return None
    text = 0.9 * size.text / POINTS
    dashed = any(entry.style.get("linestyle", "-") not in ("-", "none") for entry in entries)
    line = DASHED_HANDLE if dashed else SOLID_HANDLE
    handle = (line + AFTER_HANDLE) * text
    room = width - AXIS - handle
    texts = shorten([e.label for e in entries], int(room / (WIDTH_OF_LETTER * text)))
    entries = [LegendEntry(label, e.style) for label, e in zip(texts, entries, strict=True)]
    column = max(width_of(e.label, 0.9 * size.text) for e in entries) + handle
    rows_beside = max(int(size.panel * 1.1 / (ROW * text)), 1)
    columns = math.ceil(len(entries) / rows_beside)
    if columns * column > BESIDE * width and column <= BESIDE * width:
        columns = int(BESIDE * width / column)
    beside = width > 5.0 and columns * column <= BESIDE * width
    if not beside:
        columns = min(max(int((width - AXIS) / column), 1), len(entries))
    height = ROW * text * math.ceil(len(entries) / columns)
    return Legend(tuple(entries), beside, columns, columns * column, height, line)


def add_legend(axes: Axes, legend: Legend | None) -> None:
    """Draw a legend where it was planned."""
    from matplotlib.lines import Line2D

    if legend is None:
        return
    handles = [Line2D([], [], **entry.style) for entry in legend.entries]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    if not legend.beside:
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.03)}
    texts = [readable(entry.label) for entry in legend.entries]
    axes.legend(handles, texts, ncols=legend.columns, handlelength=legend.handle, **place)


def readable(label: str) -> str:
    """Return a label that matplotlib shows as written: no mathematics, no leading underscore."""
    if isinstance(label, MathLabel):
        return label
    return (" " if label.startswith("_") else "") + label.replace("$", r"\$")


def shorten(labels: Sequence[str], letters: int) -> list[str]:
    """Shorten labels to a number of letters, what they have in common first."""
    long = [label for label in labels if len(label) > letters]
    if not long:
        return list(labels)
    start = _shared(long)
    end = _shared([label[start:][::-1] for label in long])
    return [
        label if len(label) <= letters else _around(label, start, len(label) - end, letters)
        for label in labels
    ]


def _shared(labels: Sequence[str]) -> int:
    """How many letters all begin with; none for a single label."""
    same = takewhile(lambda letters: len(set(letters)) == 1, zip(*labels, strict=False))
    return sum(1 for _ in same) if len(labels) > 1 else 0


def _around(label: str, start: int, end: int, letters: int) -> str:
    """Return the letters from start to end with as many on both sides as there is room for."""
    spare = max(letters - 6 - (end - start), 0)
    first = max(start - spare // 2, 0)
    last = min(first + letters - 6, len(label))
    first = max(last - (letters - 6), 0)
    return ("..." if first else "") + label[first:last] + ("..." if last < len(label) else "")


def width_of(label: str, text: float) -> float:
    """How wide a text of this size [pt] is [in]."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(family=FONTS, size=text)
    width, _, _ = TextToPath().get_text_width_height_descent(
        label, font, ismath=isinstance(label, MathLabel)
    )
    return float(width) / POINTS
