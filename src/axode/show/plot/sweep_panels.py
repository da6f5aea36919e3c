"""Panels of a sweep's plots: histograms, pairs of columns, heat maps, percentile bands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.show.plot.legends import LegendEntry, readable
from axode.show.plot.sweep_columns import SweepColumn, axis_range, usual_range
from axode.show.style import COLOURS, FAINT, GREY, INK, Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]
BLUE, ORANGE = COLOURS[0], COLOURS[1]
MIN_BINS, MAX_BINS = 8, 80
MAX_DOTS = 3000  # more points are counted in cells instead of drawn
CELLS = 70  # along each side of such a picture
EMPTY_CELL = "#eceef1"  # cells without a run
PERCENTILES = (5.0, 25.0, 50.0, 75.0, 95.0)
MAX_BANDS, LEAST_IN_BAND = 40, 25  # bins of a swept value, and runs in each


def draw_histogram(axes: Axes, column: SweepColumn) -> None:
    """Draw how often a number occurs; runs without one, or far from the others, are counted."""
    known = column.values[column.finite]
    bins = int(np.clip(2.0 * known.size ** (1 / 3), MIN_BINS, MAX_BINS))
    counts, edges = np.histogram(known, bins, column.range)
    axes.stairs(counts, edges, fill=True, color=BLUE, alpha=0.85)
    axes.set_xlabel(readable(column.label))
    axes.set_ylim(bottom=0)
    if column.hidden:
        axes.set_title(readable(column.hidden), color=GREY, fontweight="normal")


def draw_pair(axes: Axes, x: SweepColumn, y: SweepColumn, size: Size) -> None:
    """Draw two columns against each other: dots, or, of very many runs, how many per cell."""
    there = x.finite & y.finite
    a, b = x.values[there], y.values[there]
    if a.size <= MAX_DOTS:
        opacity = float(np.clip(300.0 / max(a.size, 1), 0.25, 0.8))
        axes.plot(a, b, "o", color=BLUE, alpha=opacity, markersize=0.3 * size.text, mew=0)
    else:
        from matplotlib.colors import LogNorm

        counts, *edges = np.histogram2d(a, b, CELLS, (x.range, y.range))
        shown = np.ma.masked_equal(counts.T, 0)
        axes.pcolormesh(*edges, shown, cmap=_rising(), norm=LogNorm(1), rasterized=True)
    axes.set(xlim=_limits(x), ylim=_limits(y))


def mark_failed(axes: Axes, x: SweepColumn, y: SweepColumn, failed: Array, size: Size) -> None:
    """Draw runs that failed at what was swept; on the edge where the other column is an output."""
    if not failed.size or not (x.swept or y.swept):
        return
    drawn = failed[np.unique(np.linspace(0, failed.size - 1, MAX_DOTS).astype(np.intp))]
    at = [c.values[drawn] if c.swept else np.full(drawn.size, _limits(c)[0]) for c in (x, y)]
    marker = "x" if x.swept and y.swept else "|" if x.swept else "_"
    axes.plot(*at, marker, color=ORANGE, markersize=0.45 * size.text, mew=0.8, clip_on=False)


def _limits(column: SweepColumn) -> tuple[float, float]:
    low, high = column.range
    margin = 0.04 * (high - low)
    return low - margin, high + margin


def draw_heat_map(
    axes: Axes, x: SweepColumn, y: SweepColumn, column: SweepColumn
) -> list[LegendEntry]:
    """Draw a column as colours over two swept values; return the entries of the legend.

    Cells are the values of a grid; of scattered samples, cells of equal width show the mean.
    """
    edges, cells = zip(*(_cells(c) for c in (x, y)), strict=True)
    shape = (len(edges[0]) - 1, len(edges[1]) - 1)
    place, count = np.ravel_multi_index(cells, shape), shape[0] * shape[1]
    runs = np.bincount(place, minlength=count)
    failed = np.bincount(place, ~column.finished, minlength=count)
    known = np.bincount(place, column.finite, minlength=count)
    total = np.bincount(place, np.where(column.finite, column.values, 0.0), minlength=count)
    infinite = _infinite(column, place, count)
    mean = np.where(known > 0, total / np.maximum(known, 1), infinite)
    empty = (runs > 0) & (known == 0) & np.isnan(infinite)
    entries = []
    for which, face, hatch, words in (
        (empty & (failed > 0), FAINT, "////", "not finished"),
        (empty & (failed == 0), "white", "....", "no value"),
        (runs == 0, EMPTY_CELL, "", "no run"),  # not white, which is zero where signs differ
    ):
        if which.any():
            _hatch(axes, edges, which.reshape(shape), face, hatch)
            square = {"linestyle": "none", "marker": "s", "markerfacecolor": face}
            entries.append(LegendEntry(f"{words} ({which.sum():,})", square | {"color": GREY}))
    _draw_colours(axes, edges, mean.reshape(shape), column)
    axes.set_xlabel(readable(x.label))
    axes.set_ylabel(readable(y.label))
    return entries


def _hatch(axes: Axes, edges: Any, which: npt.NDArray[np.bool_], face: str, hatch: str) -> None:
    """Hatch some cells, all as one path: matplotlib redraws the hatching for each path."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    x, y = edges
    changes = np.diff(np.pad(which, ((1, 1), (0, 0))).astype(np.int8), axis=0).T
    row, first = np.nonzero(changes > 0)  # neighbouring cells of a row are one rectangle
    last = np.nonzero(changes < 0)[1]
    left, right, bottom, top = x[first], x[last], y[row], y[row + 1]
    corners = ((left, bottom), (right, bottom), (right, top), (left, top), (left, bottom))
    points = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    outline = Path(points.reshape(-1, 2), np.tile(np.array(codes, Path.code_type), row.size))
    style: dict[str, Any] = {"facecolor": face, "edgecolor": GREY, "linewidth": 0}
    axes.add_patch(PathPatch(outline, hatch=hatch, **style))


def _infinite(column: SweepColumn, place: npt.NDArray[np.intp], count: int) -> Array:
    """Infinity of cells whose runs have no other value, NaN elsewhere."""
    found = np.full(count, np.nan)
    for sign in (-np.inf, np.inf):
        found[place[(column.values == sign) & column.finished]] = sign
    return found


def _cells(column: SweepColumn) -> tuple[Array, npt.NDArray[np.intp]]:
    """Edges of cells, and the cell of every run: one per value, or of equal widths."""
    values, place = np.unique(column.values, return_inverse=True)
    if column.grid or values.size <= min(CELLS, place.size // 2):  # most occur more than once
        if values.size == 1:
            return np.array(column.range), place
        middle = 0.5 * (values[1:] + values[:-1])
        return np.r_[2 * values[0] - middle[0], middle, 2 * values[-1] - middle[-1]], place
    count = int(np.clip((column.values.size / 10) ** 0.5, 4, CELLS))
    edges = np.linspace(*column.range, count + 1)
    return edges, np.clip(np.digitize(column.values, edges) - 1, 0, count - 1)


def _draw_colours(axes: Axes, edges: Any, values: Array, column: SweepColumn) -> None:
    """Colour the cells; where numbers have both signs, zero is white."""
    from matplotlib.colors import Normalize

    low, high = axis_range(values[np.isfinite(values)])
    signed = low < 0 < high
    if signed:
        low, high = -max(-low, high), max(-low, high)
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max"}
    extend = ends.get((bool((values < low).any()), bool((values > high).any())), "both")
    shown = np.ma.masked_invalid(np.clip(values, low, high))
    mesh = axes.pcolormesh(
        *edges,
        shown.T,
        cmap=_diverging() if signed else _rising(),
        norm=Normalize(low, high),
        rasterized=True,
    )
    axes.grid(False)
    bar = axes.figure.colorbar(mesh, ax=axes, extend=extend, pad=0.02)
    bar.set_label(readable(column.label))
    bar.outline.set_visible(False)  # type: ignore[operator]


def _rising() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("rising", ["#e3eafa", "#86aeff", BLUE, "#0b1c4a"])


def _diverging() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    colours = ["#7a3206", ORANGE, "white", BLUE, "#0b1c4a"]
    return LinearSegmentedColormap.from_list("diverging", colours)


def draw_bands(axes: Axes, x: SweepColumn, column: SweepColumn) -> list[LegendEntry]:
    """Draw the median and two bands of a column over a swept value; a line for one run each."""
    there = column.finished & ~np.isnan(column.values)
    at, values = x.values[there], column.values[there]
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    groups = _groups(at, x.grid)
    axes.set_xlabel(readable(x.label))
    axes.set_ylabel(readable(column.label))
    missing = [LegendEntry(column.missing, {"linestyle": "none"})] if column.missing else []
    if not groups:
        return missing
    middle = np.array([np.median(at[a:b]) for a, b in groups])
    with np.errstate(invalid="ignore"):  # between two infinities
        found = np.array([np.percentile(values[a:b], PERCENTILES) for a, b in groups]).T
    found = np.where(np.isfinite(found), found, np.nan)
    alone = all(b - a == 1 for a, b in groups)
    axes.plot(middle, found[2], color=BLUE, marker="." if len(groups) < 60 else None)
    if alone:
        return missing
    low, high = usual_range(found[np.isfinite(found)])
    margin = 0.06 * (high - low)
    if high > low:
        axes.set_ylim(low - margin, high + margin)
    style: dict[str, Any] = {"color": BLUE, "linewidth": 0}
    axes.fill_between(middle, found[0], found[4], alpha=0.16, **style)
    axes.fill_between(middle, found[1], found[3], alpha=0.3, **style)
    wide = {"color": BLUE, "linewidth": 6.0, "solid_capstyle": "butt"}
    return [
        LegendEntry("median", {"color": BLUE}),
        LegendEntry("25 to 75 %", wide | {"alpha": 0.46}),
        LegendEntry("5 to 95 %", wide | {"alpha": 0.16}),
        *missing,
    ]


def _groups(at: Array, grid: bool) -> list[tuple[int, int]]:
    """Runs of each value of an axis, or equal groups of runs with neighbouring values."""
    if not at.size:
        return []
    starts = np.flatnonzero(np.r_[True, np.diff(at) > 0])
    if not grid and starts.size > MAX_BANDS:
        count = int(np.clip(at.size // LEAST_IN_BAND, 1, MAX_BANDS))
        starts = np.linspace(0, at.size, count, endpoint=False).astype(int)
    return list(zip(starts.tolist(), [*starts[1:].tolist(), at.size], strict=True))


def mark_zero(axes: Axes, column: SweepColumn, axis: str) -> None:
    """Draw a line at zero where a column has both signs."""
    low, high = column.range
    if low < 0 < high:
        (axes.axvline if axis == "x" else axes.axhline)(0.0, color=INK, linewidth=0.8, zorder=3)
