"""Plots of a trajectory: what is asked for, laid out on a figure, and its file."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.codegen.modelfile import write_atomically
from axode.errors import FileError, InvalidArgument
from axode.show.choice import Panel, chosen_panels, overview
from axode.show.legends import Entry, Legend, add_legend, planned, readable
from axode.show.panels import (
    DRAWN_RUNS,
    Runs,
    draw_panel,
    finish_time,
    mark_events,
    mark_failures,
)
from axode.show.path import Track, bases, draw_path, extent, tracks, wheel_tracks
from axode.show.style import GREY, Size, figure_style, new_figure, sized

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from axode.results.trajectory import Trajectory

SUFFIXES = (".png", ".svg", ".pdf")
NARROW = 5.0  # [in]: a narrower figure has one thing beside nothing
FRAME = 0.8  # [in] that axis and title take besides the panels, with text of 10 points


def plot(
    trajectory: Trajectory, *what: str | Sequence[str], size: str = "screen",
    save: str | PathLike[str] | None = None, figure: Figure | SubFigure | None = None,
    labels: Sequence[str] = (), x: str | Sequence[str] = (), y: str | Sequence[str] = (),
) -> Any:  # fmt: skip
    """A figure of a trajectory; see `Trajectory.plot`."""
    sized(size)
    suffix = None if save is None else _suffix(save)
    _check_labels(trajectory, labels)
    if what:
        path, panels = chosen_panels(trajectory, what)
    else:
        free = bases(trajectory) if wheel_tracks(trajectory) else []
        path = bool(free)
        panels = overview(trajectory, without=[name for one in free for name in one.columns])
    if (x or y) and not path:
        raise InvalidArgument("plot: x and y are for plot('path')")
    ways = tracks(trajectory, x, y) if path else ([], [])
    with figure_style(size) as measures:
        drawn = _draw(trajectory, panels, ways, measures, figure, labels)
        if save is not None and suffix is not None:
            write_atomically(Path(save), _picture(drawn, suffix, measures))
    return drawn


def _suffix(path: str | PathLike[str]) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"'{path}': the file of a plot ends in {', '.join(SUFFIXES)}")
    return suffix


def _check_labels(trajectory: Trajectory, labels: Sequence[str]) -> None:
    count = len(trajectory.statuses)
    if isinstance(labels, str) or (labels and len(labels) != count):
        raise InvalidArgument(f"plot, labels: a list of {count}, one a run, not {labels!r}")


def _picture(figure: Figure | SubFigure, suffix: str, size: Size) -> bytes:
    buffer = io.BytesIO()
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    figure.get_figure(root=True).savefig(  # type: ignore[union-attr]
        buffer, format=suffix[1:], dpi=size.dpi, metadata=dates.get(suffix, {})
    )
    return buffer.getvalue()


# layout ------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """Axes with the height they want [in], and the legend that goes with them."""

    axes: Axes
    height: float
    width: float
    entries: list[Entry]

    def legend(self, size: Size) -> Legend | None:
        return planned(self.entries, size, self.width)


def _draw(
    trajectory: Trajectory, panels: Sequence[Panel], ways: tuple[list[Track], list[Track]],
    size: Size, given: Any, labels: Sequence[str],
) -> Any:  # fmt: skip
    """Panels one below the other; the path to their left, or on top where the figure is narrow."""
    path = bool(ways[0] or ways[1])
    aside = path and bool(panels) and size.width > NARROW
    own = given is None
    figure = new_figure(size.width, size.panel) if own else given
    if not own and hasattr(figure, "set_layout_engine") and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    over = int(path and not aside)
    rows = max(len(panels), 1) if aside else len(panels) + over
    grid = figure.add_gridspec(rows, 2 if aside else 1)
    width = size.width * (0.5 if aside else 1.0)
    parts = _draw_panels(figure, grid, trajectory, panels, (over, int(aside)), width, size, labels)
    side = None
    if path:
        axes = figure.add_subplot(grid[:, 0] if aside else grid[0, 0])
        side = _Part(axes, _height(ways, width), width, draw_path(axes, *ways, size))
    _title(figure, trajectory, size)
    height = _arrange(grid, parts, side, size, aside=aside)
    if own:
        figure.set_size_inches(size.width, height)
    figure.get_figure(root=True).draw_without_rendering()  # ticks take the style, not the user's
    return figure


def _draw_panels(
    figure: Any, grid: Any, trajectory: Trajectory, panels: Sequence[Panel],
    corner: tuple[int, int], width: float, size: Size, labels: Sequence[str],
) -> list[_Part]:  # fmt: skip
    """All panels, from a corner of the grid downwards."""
    runs = Runs.of(trajectory, panels, labels)
    parts: list[_Part] = []
    for k, panel in enumerate(panels):
        first = parts[0].axes if parts else None
        axes = figure.add_subplot(grid[k + corner[0], corner[1]], sharex=first)
        entries = draw_panel(axes, panel, runs, size)
        if runs.labels and k:
            entries = []  # the same in all panels
        mark_failures(axes, panel, trajectory)
        parts.append(_Part(axes, size.panel, width, entries))
    if parts:
        every = [part.axes for part in parts]
        parts[0].entries += mark_events(every, trajectory)
        finish_time(every, trajectory)
        figure.align_ylabels(every)
    return parts


def _height(ways: tuple[list[Track], list[Track]], width: float) -> float:
    """Of the axes of a path that is as wide as the figure, neither flat nor beyond a page [in]."""
    (left, right), (low, high) = extent([*ways[0], *ways[1]])
    return width * float(np.clip(0.85 * (high - low) / (right - left), 0.42, 0.8))


def _arrange(
    grid: Any, parts: Sequence[_Part], side: _Part | None, size: Size, *, aside: bool
) -> float:
    """Legends in their places and heights that have room for them; that of the figure [in]."""
    stacked = [*([side] if side and not aside else []), *parts]
    total, heights = 0.0, []
    for part in stacked:
        legend = part.legend(size)
        add_legend(part.axes, legend)
        beside = legend is not None and legend.beside
        heights.append(max(part.height, legend.height if legend and beside else 0.0))
        total += heights[-1] + (legend.height + 0.1 if legend and not beside else 0.0)
    if side and aside:
        add_legend(side.axes, side.legend(size))
        total = max(total, side.height)
    if heights:
        grid.set_height_ratios(heights)
    gaps = 0.12 * max(len(stacked) - 1, 0)
    return total + gaps + FRAME * size.text / 10


def _title(figure: Any, trajectory: Trajectory, size: Size) -> None:
    """The model's name on a screen; and, on all, what the lines cannot tell."""
    notes = [trajectory.name] if trajectory.name and size.title else []
    count = len(trajectory.statuses)
    if count > DRAWN_RUNS:
        notes.append(f"{DRAWN_RUNS} of {count} runs drawn, the range of all shaded")
    elif count > 1:
        notes.append(f"{count} runs")
    if trajectory.status != "finished":
        notes.append(trajectory.status)
    if notes:
        text = shorten(" \N{MIDDLE DOT} ".join(notes), int(14 * size.width), placeholder=" ...")
        figure.suptitle(readable(text), x=0.01, ha="left", color=GREY, fontweight="normal",
                        fontsize=size.text)  # fmt: skip
