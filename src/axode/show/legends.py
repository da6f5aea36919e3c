"""Legends beside or above what they explain, never on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from axode.show.style import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 72.0  # an inch
WIDTH_OF_LETTER = 0.6  # of the size of the text, on average
ROW = 1.42  # height of a row, of the size of the text
HANDLE = 3.2  # the line before a label and the space after it, of the size of the text
BESIDE = 0.34  # of the width of the figure: wider, a legend stands above
MOST_LETTERS = 60


@dataclass(frozen=True)
class Entry:
    """A line of a legend: its text and how its line looks."""

    label: str
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Legend:
    """Where a legend stands and what room it takes [in]."""

    entries: tuple[Entry, ...]
    beside: bool
    columns: int
    width: float
    height: float


def planned(entries: Sequence[Entry], size: Size, width: float) -> Legend | None:
    """A legend that fits a panel of this width [in], or none.

    It stands beside the panel where its words are short and the figure is wide, in as few columns
    as keep it about as high as the panel; else above, in as many columns as there is room for.
    """
    if not entries:
        return None
    text = 0.9 * size.text / POINTS
    longest = max(min(len(entry.label), MOST_LETTERS) for entry in entries)
    column = (WIDTH_OF_LETTER * longest + HANDLE) * text
    rows_beside = max(int(size.panel * 1.1 / (ROW * text)), 1)
    columns = math.ceil(len(entries) / rows_beside)
    if columns * column > BESIDE * width and column <= BESIDE * width:
        columns = int(BESIDE * width / column)
    beside = width > 5.0 and columns * column <= BESIDE * width
    if not beside:
        columns = min(max(int(0.9 * width / column), 1), len(entries))
    height = ROW * text * math.ceil(len(entries) / columns)
    return Legend(tuple(entries), beside, columns, columns * column, height)


def add_legend(axes: Axes, legend: Legend | None) -> None:
    """Put it where it was planned."""
    from matplotlib.lines import Line2D

    if legend is None:
        return
    handles = [Line2D([], [], **entry.style) for entry in legend.entries]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1.0)}
    if not legend.beside:
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.03)}
    texts = [readable(entry.label) for entry in legend.entries]
    axes.legend(handles, texts, ncols=legend.columns, **place)


def readable(label: str) -> str:
    """As it is written: without mathematics, and not hidden by a leading underscore."""
    shown = label if len(label) <= MOST_LETTERS else f"{label[: MOST_LETTERS - 3]}..."
    return (" " if shown.startswith("_") else "") + shown.replace("$", r"\$")
