"""Figures of reproductions: panels in the source's order, our curves and the source's numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from axode.literature.reproduce.item import FigureCurve, FigurePanel, ItemResult
from axode.numerics.tolerances import ONE_ROUNDING
from axode.show.style import COLOURS, FAINT, INK, figure_style, new_figure, png

HEIGHT, LINE = 2.3, 0.2  # [in] of a row of panels, and more for a line of a legend
DPI = 110
BROAD = 5.0  # [pt] of the source's curves, beneath ours, so that both are seen where they agree
DOTS = (0, (1, 1.5))  # its numbers
TITLE, ABOVE = 5.0, 14.5  # [pt] from the axes to the title, and more for a line of a legend
FITS = ((8, 4), (11, 3))  # letters of the longest label, and how many such fit in a line
MOST = 6  # labels in a line below all panels
LEAST_SHARE = 0.25  # of a path's length: a narrower one fills its panel, in unequal units
INSET = (0.52, 0.56, 0.46, 0.42)  # of the panel: left, bottom, width, height
BAR, ROOM = 0.6, 1.15  # height of a bar, and room for its number beyond the longest
TICKS = 7  # at most, of a length on the horizontal axis: their labels are long
NEAR, HIDDEN = 0.005, 0.25  # of the height: as near as a line is broad; of the length: too much
COVERING = (0, (4, 3))  # dashes through which what lies beneath is seen


def draw(outcome: ItemResult) -> bytes:
    """The figure of an outcome as the bytes of a PNG."""
    panels, across = list(outcome.panels), outcome.across
    rows = [panels[k : k + across] for k in range(0, len(panels), across)]
    shared = _share_colours(panels)
    heights = [HEIGHT + (0 if shared else LINE * max(map(_lines, row))) for row in rows]
    with figure_style() as size:
        figure = new_figure(size.width, sum(heights) + LINE)
        grid: Any = figure.subplots(len(rows), across, squeeze=False, height_ratios=heights).ravel()
        for axes, panel in zip(grid, panels, strict=False):
            _draw(axes, panel)
            if not shared:
                _legend_above(axes, panel)
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        if shared:
            _legend_below(figure, grid)
        return png(figure, DPI)


def _draw(axes: Any, panel: FigurePanel) -> None:
    _draw_curves(axes, panel)
    axes.set_title(_title(panel))
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.window:
        axes.set_xlim(*panel.window)
    if panel.heights:
        axes.set_ylim(*panel.heights)
    if panel.equal and _share(panel) > LEAST_SHARE:
        axes.set_aspect("equal", adjustable="datalim")
    if panel.equal:
        axes.locator_params(axis="x", nbins=TICKS)
    if panel.dots:
        _draw_dots(axes, panel)
    if panel.bars:
        _draw_bars(axes, panel)
    if panel.inset:
        part = axes.inset_axes(INSET)
        _draw_curves(part, panel)
        part.set_xlim(*panel.inset[0])
        part.set_ylim(*panel.inset[1])
        part.set_xticks([])
        part.locator_params(axis="y", nbins=3)
        part.tick_params(labelsize="x-small")
        axes.indicate_inset_zoom(part, edgecolor=INK)


def _draw_curves(axes: Any, panel: FigurePanel) -> None:
    ours = _ours(panel)
    for k, curve in enumerate(ours):
        style: Any = COVERING if any(_covers(curve, other) for other in ours[:k]) else "-"
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(curve.x, curve.y, color=colour, linestyle=style, label=curve.label)
    for curve in panel.curves:
        if curve.role == "printed":
            axes.plot(curve.x, curve.y, color=FAINT, linewidth=BROAD, label=curve.label, zorder=1.5)
        elif curve.role == "misprint":
            colour = INK if curve.like is None else COLOURS[curve.like % len(COLOURS)]
            axes.plot(
                curve.x, curve.y, color=colour, linewidth=1, linestyle="--", label=curve.label
            )
    for level in panel.levels:
        axes.axhline(level.value, color=INK, linestyle=DOTS, linewidth=1.2, label=level.label)


def _draw_dots(axes: Any, panel: FigurePanel) -> None:
    """One dot for each name, from top to bottom."""
    names, values = zip(*panel.dots, strict=True)
    places = range(len(names))
    axes.plot([max(value, ONE_ROUNDING) for value in values], places, "o", color=COLOURS[0])
    axes.set_xscale("log")
    axes.set_xlim(ONE_ROUNDING / 10, 1e3 * max(*values, ONE_ROUNDING))
    axes.set_yticks(places, names)
    axes.invert_yaxis()


def _draw_bars(axes: Any, panel: FigurePanel) -> None:
    """One bar for each name, from top to bottom, with its number at the end."""
    names, values = zip(*panel.bars, strict=True)
    places = range(len(names))
    axes.bar_label(axes.barh(places, values, BAR, color=COLOURS[0]), fmt="%g", padding=3)
    axes.set_xlim(0.0, ROOM * max(values))
    axes.set_yticks(places, names)
    axes.grid(visible=False, axis="y")
    axes.invert_yaxis()


def _covers(curve: FigureCurve, other: FigureCurve) -> bool:
    """Return whether a curve hides much of another one, over time or as a path."""
    sides = [
        max(np.nanmax(a) - np.nanmin(a), np.nanmax(b) - np.nanmin(b)) or 1.0
        for a, b in ((curve.x, other.x), (curve.y, other.y))
    ]
    if curve.x.shape == other.x.shape and (curve.x == other.x).all():
        near = np.abs(curve.y - other.y) <= NEAR * sides[1]
    else:
        over, beneath = (
            _spread(one, sides, points) for one, points in ((curve, 3000), (other, 300))
        )
        near = np.array([np.abs(over - point).min() <= NEAR for point in beneath])
    return bool(near.mean() > HIDDEN)


def _spread(curve: FigureCurve, sides: Sequence[float], points: int) -> Any:
    """Points along a curve as complex numbers, in units of the sides of the panel."""
    places = np.linspace(0, len(curve.x) - 1, points)
    line = curve.x / sides[0] + 1j * curve.y / sides[1]
    return np.interp(places, np.arange(len(line)), line)


def _title(panel: FigurePanel) -> str:
    narrow = panel.equal and _share(panel) <= LEAST_SHARE
    return f"{panel.title} (unequal scales)" if narrow else panel.title


def _share(panel: FigurePanel) -> float:
    """Shorter side of what is drawn, over the longer one."""
    sides = [
        max(values.max() for values in axis) - min(values.min() for values in axis)
        for axis in ([c.x for c in panel.curves], [c.y for c in panel.curves])
    ]
    return float(min(sides) / max(max(sides), 1e-300))


def _ours(panel: FigurePanel) -> list[FigureCurve]:
    return [curve for curve in panel.curves if curve.role == "ours"]


# legends -----------------------------------------------------------------------------------------


def _share_colours(panels: Sequence[FigurePanel]) -> bool:
    """Return whether one legend serves all panels: each repeats curves of the fullest one."""
    ours = [[curve.label for curve in _ours(panel)] for panel in panels]
    fullest = max(ours, key=len)
    repeated = sum(any(labels) for labels in ours) > 1
    return repeated and all(labels == fullest[: len(labels)] for labels in ours)


def _legend_below(figure: Any, grid: Sequence[Any]) -> None:
    """One legend for all panels, whose curves have the same names."""
    entries: dict[str, Any] = {}
    for axes in grid:
        handles, labels = axes.get_legend_handles_labels()
        entries |= dict(zip(labels, handles, strict=True))
    if entries:
        figure.legend(
            entries.values(),
            entries.keys(),
            loc="outside lower center",
            ncols=min(len(entries), MOST),
        )


def _legend_above(axes: Any, panel: FigurePanel) -> None:
    """A legend between title and curves."""
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        axes.set_title(_title(panel), pad=TITLE + ABOVE * _lines(panel))
        axes.legend(
            handles,
            labels,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=_columns(labels),
            borderpad=0.1,
        )


def _labels(panel: FigurePanel) -> list[str]:
    labels = [curve.label for curve in panel.curves] + [level.label for level in panel.levels]
    return [label for label in labels if label]


def _lines(panel: FigurePanel) -> int:
    """Lines that the legend of a panel takes."""
    labels = _labels(panel)
    return -(-len(labels) // _columns(labels)) if labels else 0


def _columns(labels: Sequence[str]) -> int:
    longest = max(len(re.sub(r"\$.*?\$", "xx", label)) for label in labels)
    fit = next((number for letters, number in FITS if longest <= letters), 2)
    return min(len(labels), fit)
