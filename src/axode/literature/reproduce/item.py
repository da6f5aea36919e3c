"""Items: what a source shows, how Axode computes it, and what comes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from axode.literature.reproduce.verdict import Check, Verdict

Array = npt.NDArray[np.float64]
Role = Literal["ours", "printed", "misprint"]


@dataclass(frozen=True)
class FigureCurve:
    """A line of a figure.

    Attributes:
        x, y: Its points.
        label: In the legend; "" leaves it out.
        role: Whether Axode computed it, it is what that is compared with, such as the source's
            own equations, put right where need be, or it is another one, such as their misprint.
        like: Number of the curve of ours whose colour another one has; black unless given.
    """

    x: Array
    y: Array
    label: str = ""
    role: Role = "ours"
    like: int | None = None


@dataclass(frozen=True)
class Level:
    """A number that a source prints, as a level line."""

    value: float
    label: str = ""


@dataclass(frozen=True)
class FigurePanel:
    """One figure of the source, or one quantity of it.

    Attributes:
        title: With the figure's number, where there is one.
        x, y: What is on the axes, with units.
        curves, levels: What is drawn.
        window: Range of x that is shown; all of it by default.
        heights: Range of y; all of it by default.
        equal: Whether a metre is as long on both axes, unless that leaves the panel empty and
            the title marks unequal scales.
        inset: Ranges of x and y of a part that is drawn larger, in a corner.
        dots: Values by name, drawn as one dot each over powers of ten of x, instead of curves.
        bars: Values by name, drawn as one bar each from zero, with the number, instead of curves.
    """

    title: str
    x: str
    y: str
    curves: tuple[FigureCurve, ...]
    levels: tuple[Level, ...] = ()
    window: tuple[float, float] | None = None
    heights: tuple[float, float] | None = None
    equal: bool = False
    inset: tuple[tuple[float, float], tuple[float, float]] | None = None
    dots: tuple[tuple[str, float], ...] = ()
    bars: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class ItemResult:
    """Result of an item.

    Attributes:
        table: Columns of its CSV file, units in the heads, all of one length.
        panels: Panels of its figure, in the order of the source, row by row.
        caption: What the figure shows and the data behind it.
        checks: Numbers compared.
        across: Panels in a row.
    """

    table: Mapping[str, Array]
    panels: Sequence[FigurePanel]
    caption: str
    checks: Sequence[Check]
    across: int = 2

    @property
    def verdict(self) -> Verdict:
        """What the checks come to."""
        return Verdict(tuple(self.checks))


@dataclass(frozen=True)
class Item:
    """Something that a source shows.

    Attributes:
        id: What the command line calls it.
        source: Key of the source.
        shows: What it is, in a line, with the source's figures.
        compute: Computes it.
    """

    id: str
    source: str
    shows: str
    compute: Callable[[], ItemResult]
