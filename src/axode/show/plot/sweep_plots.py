"""Plots of a sweep: histograms, scatter matrices, heat maps and percentile bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.names import Names
from axode.numerics.tolerances import ROUNDING
from axode.results.sweep_arrays import as_host
from axode.show.plot.panels import LegendEntry, add_legend, plan_legends
from axode.show.plot.plots import NARROW
from axode.show.style import (
    COLOURS,
    FAINT,
    GREY,
    INK,
    Size,
    add_title,
    drawing,
    new_figure,
    pin_ticks,
    readable,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from axode.results.sweep_result import Sweep


Array = npt.NDArray[np.float64]
RARE = 0.01  # part of the numbers at either end
FAR = 1.0  # times the range of the others
KINDS = ("histogram", "scatter", "heatmap", "bands")
MAX_PANELS = 12
MAX_MATRIX = 7  # columns of a scatter matrix
MATRIX_OUTPUTS = 4  # of a sweep whose outputs are not named
FRAME = 0.7  # [in] that axis and title take besides the panels, with text of 10 points
BLUE, ORANGE = COLOURS[0], COLOURS[1]
MIN_BINS, MAX_BINS = 8, 80
MAX_DOTS = 3000  # more points are counted in cells instead of drawn
CELLS = 70  # along each side of such a picture
EMPTY_CELL = "#eceef1"  # cells without a run
PERCENTILES = (5.0, 25.0, 50.0, 75.0, 95.0)
MAX_BANDS, LEAST_IN_BAND = 40, 25  # bins of a swept value, and runs in each


@dataclass(frozen=True, eq=False)
class SweepColumn:
    """Numbers of all runs.

    Attributes:
        name: Name of an output, or of what was swept.
        label: Name and unit.
        values: One per run.
        swept: Whether it was swept; else it is an output.
        finished: Which runs came to their end.
        grid: Whether it is an axis of a grid.
    """

    name: str
    label: str
    values: Array
    swept: bool
    finished: npt.NDArray[np.bool_]
    grid: bool = False

    @cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Runs that finished with a number."""
        return np.isfinite(self.values) & self.finished

    @cached_property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number that an axis shows, a little apart if they are equal."""
        return axis_range(self.values[self.finite])

    @property
    def missing(self) -> str:
        """Counts of runs that finished without a number, as text."""
        values = self.values[self.finished]
        return _counts(
            {
                "without a value": np.isnan(values),
                "at infinity": np.isposinf(values),
                "at minus infinity": np.isneginf(values),
            }
        )

    @property
    def hidden(self) -> str:
        """Counts of runs beyond the axis, and of those that are missing, as text."""
        known, (low, high) = self.values[self.finite], self.range
        beyond = _counts({"beyond the axis": (known < low) | (known > high)})
        return ", ".join(filter(None, (beyond, self.missing)))


def _counts(found: Mapping[str, npt.NDArray[np.bool_]]) -> str:
    return ", ".join(f"{which.sum():,} {words}" for words, which in found.items() if which.any())


def usual_range(known: Array) -> tuple[float, float]:
    """Range of some numbers without the few that are very far from nearly all others."""
    if not known.size:
        return 0.0, 1.0
    low, high = np.percentile(known, (100 * RARE, 100 - 100 * RARE))
    margin = FAR * (high - low)
    least, most = float(known.min()), float(known.max())
    if margin == 0.0:
        return least, most
    return max(least, float(low - margin)), min(most, float(high + margin))


def axis_range(known: Array) -> tuple[float, float]:
    """Usual range of some numbers, with room around a constant."""
    low, high = usual_range(known)
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        half = 0.5 * max(abs(low), 1e-3)
        return low - half, high + half
    return low, high


class SweepColumns:
    """Outputs and swept values of a sweep by name.

    A swept value with the name of an output gets its group as prefix: `start.pitch`.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.outputs = tuple(sweep)
        groups = sweep.samples.groups
        self._samples = {
            f"{groups.get(name, 'start')}.{name}" if name in self.outputs else name: name
            for name in sweep.samples
        }
        self.swept = tuple(self._samples)
        self._names = Names("the sweep", "output or swept value", self.outputs, self.swept)
        self._units = sweep.info.get("units", {})
        self._finished = as_host(sweep.finished).reshape(-1)

    @cached_property
    def failed(self) -> npt.NDArray[np.intp]:
        """Numbers of the runs that did not finish."""
        return np.flatnonzero(~self._finished)

    @property
    def grid(self) -> bool:
        """Return whether the swept values are axes of a grid."""
        return bool(self._sweep.axes)

    def resolve(self, names: Sequence[str]) -> list[str]:
        """Full names.

        Raises:
            UnknownName: for one that is neither an output nor swept.
        """
        return [self._names.resolve(name) for name in names]

    def __getitem__(self, name: str) -> SweepColumn:
        own = self._samples.get(name)
        if own is None:
            values = as_host(self._sweep[name]).reshape(-1)
            return SweepColumn(name, self.label(name), values, False, self._finished)
        values = as_host(self._sweep.samples[own]).reshape(-1)
        all_runs, grid = np.ones(values.size, dtype=bool), own in self._sweep.axes
        return SweepColumn(name, self.label(name), values, True, all_runs, grid)

    def label(self, name: str) -> str:
        """Name and unit."""
        unit = self._units.get(name, "")
        return f"{name} [{unit}]" if unit else name


def plot_sweep(
    sweep: Sweep,
    *what: str,
    kind: str | None = None,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Draw a figure of a sweep; see `Sweep.plot`."""
    sized(size)
    if kind is not None and kind not in KINDS:
        raise UnknownName("plot", "kind", kind, KINDS)
    columns = SweepColumns(sweep)
    names = columns.resolve(what)
    kind = kind or _default_kind(sweep, columns, names)
    left_out = 0
    if not names or (kind in ("heatmap", "bands") and set(names) <= set(columns.swept)):
        known = [name for name in columns.outputs if sweep.arrays.extremes(name) is not None]
        shown = (known or columns.outputs)[: MATRIX_OUTPUTS if kind == "scatter" else MAX_PANELS]
        names, left_out = [*names, *shown], len(columns.outputs) - len(shown)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        drawn.figure = new_figure(measures.width, measures.width) if figure is None else figure
        whole = drawn.figure.canvas.figure
        if whole.get_layout_engine() is None:
            whole.set_layout_engine("constrained")
        height = _DRAW[kind](drawn.figure, columns, names, measures)
        more = [f"{len(columns.outputs) - left_out} of {len(columns.outputs)} outputs"]
        named = measures.title and figure is None
        _title(drawn.figure, sweep, measures, more if left_out else [], named=named)
        if figure is None:
            whole.set_size_inches(measures.width, height + FRAME * measures.text / 10)
    return drawn.figure


def _default_kind(sweep: Sweep, columns: SweepColumns, names: Sequence[str]) -> str:
    swept = [name for name in names if name in columns.swept]
    axes = [name for name, values in sweep.axes.items() if len(values) > 1]
    if names and len(swept) == len(names):
        return "scatter" if len(names) > 1 else "histogram"
    over = len(swept or axes)
    if axes and len(axes) == len(columns.swept) and over <= 2:
        return "bands" if over == 1 else "heatmap"
    outputs = len(names) or len(columns.outputs)
    return "histogram" if outputs == 1 else "scatter"


def _title(figure: Any, sweep: Sweep, size: Size, more: Sequence[str], *, named: bool) -> None:
    """Write the model's name on a screen, and always the counts of runs and of failures."""
    name = sweep.info.get("model", "")
    runs = sweep.runs
    notes = [str(name)] if name and named else []
    notes.append(f"{runs:,} runs" if runs != 1 else "1 run")
    notes += [
        f"{count:,} {words}" for words, count in sweep.statuses.items() if words != "finished"
    ]
    add_title(figure, [*notes, *more], size)


# kinds -------------------------------------------------------------------------------------------


def _panels(
    figure: Any,
    columns: SweepColumns,
    outputs: Sequence[str],
    size: Size,
    height: float,
    draw: Callable[[Any, SweepColumn], list[LegendEntry]],
) -> float:
    """Draw a panel per output, in two columns where there is room; return their height [in].

    Args:
        figure: What is drawn on.
        columns: Columns of the sweep.
        outputs: Names of those that have a panel.
        size: Sizes of the picture.
        height: Height of a panel, in heights of a panel of a trajectory.
        draw: Draws a panel, and returns the entries of its legend.
    """
    if len(outputs) > MAX_PANELS:
        raise InvalidArgument(
            f"plot: {len(outputs)} outputs are too many for one figure, name up to {MAX_PANELS} of "
            f"{', '.join(outputs)}"
        )
    across = 2 if len(outputs) > 1 and size.width > NARROW else 1
    down = math.ceil(len(outputs) / across)
    grid = figure.add_gridspec(down, across)
    legends = 0.0
    for k, name in enumerate(outputs):
        axes = figure.add_subplot(grid[k // across, k % across])
        legend = plan_legends(draw(axes, columns[name]), size, size.width / across)
        add_legend(axes, legend)
        pin_ticks(axes)
        if legend is not None and not legend.beside:
            legends = max(legends, legend.height)
    return down * (height * size.panel + legends + FRAME * size.text / 10)


def _histograms(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    def draw(axes: Any, column: SweepColumn) -> list[LegendEntry]:
        draw_histogram(axes, column)
        mark_zero(axes, column, "x")
        axes.set_ylabel("runs")
        return []

    return _panels(figure, columns, names, size, 1.2, draw)


def _bands(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    outputs, (x,) = _split(columns, names, "bands", 1)

    def draw(axes: Any, column: SweepColumn) -> list[LegendEntry]:
        entries = draw_bands(axes, x, column)
        mark_zero(axes, column, "y")
        return entries

    return _panels(figure, columns, outputs, size, 1.2, draw)


def _heat_maps(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    outputs, (x, y) = _split(columns, names, "heatmap", 2)
    return _panels(
        figure, columns, outputs, size, 1.5, lambda axes, column: draw_heat_map(axes, x, y, column)
    )


def _split(
    columns: SweepColumns, names: Sequence[str], kind: str, count: int
) -> tuple[list[str], list[SweepColumn]]:
    """Outputs, and the swept values over which they are drawn."""
    outputs = [name for name in names if name not in columns.swept]
    over = [name for name in names if name in columns.swept]
    if not over and len(columns.swept) >= count and (len(columns.swept) == count or columns.grid):
        over = list(columns.swept[:count])
    if len(over) != count:
        wanted = "one swept value" if count == 1 else f"{count} swept values"
        known = ", ".join(columns.swept) or "none"
        raise InvalidArgument(f"plot, kind '{kind}': name {wanted} besides outputs; swept: {known}")
    return outputs, [columns[name] for name in over]


def _matrix(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    """Draw all pairs below the diagonal, and histograms on it; return the height [in]."""
    if len(names) > MAX_MATRIX:
        raise InvalidArgument(
            f"plot, kind 'scatter': {len(names)} columns are too many, name up to {MAX_MATRIX}"
        )
    made = [columns[name] for name in names]
    n = len(made)
    grid = figure.add_gridspec(n, n)
    for i in range(n):
        for j in range(i + 1):
            axes = figure.add_subplot(grid[i, j])
            _cell(axes, made, i, j, columns.failed, size)
            pin_ticks(axes)
            axes.tick_params(labelbottom=i == n - 1, labelleft=j == 0 and i > 0)
    return max(size.width * 0.9, 1.1 * size.panel)


def _cell(axes: Any, made: Sequence[SweepColumn], i: int, j: int, failed: Any, size: Size) -> None:
    """Draw one place of a scatter matrix."""
    if i == j:
        draw_histogram(axes, made[i])
        axes.set_yticks([])
        axes.grid(False, axis="y")
        low, high = made[i].range
        axes.set_xlim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    else:
        draw_pair(axes, made[j], made[i], size)
        mark_failed(axes, made[j], made[i], failed, size)
        mark_zero(axes, made[i], "y")
    mark_zero(axes, made[j], "x")
    axes.set_xlabel(readable(made[j].label) if i == len(made) - 1 else "")
    axes.set_ylabel(readable(made[i].label) if j == 0 else "")
    axes.locator_params(nbins=4)


_DRAW: dict[str, Callable[[Any, SweepColumns, Sequence[str], Size], float]] = {
    "histogram": _histograms,
    "scatter": _matrix,
    "heatmap": _heat_maps,
    "bands": _bands,
}


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
        axes.pcolormesh(*edges, shown, cmap=_colour_map(), norm=LogNorm(1), rasterized=True)
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
    axes.set(xlabel=readable(x.label), ylabel=readable(y.label))
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
        cmap=_colour_map(diverging=signed),
        norm=Normalize(low, high),
        rasterized=True,
    )
    axes.grid(False)
    bar = axes.figure.colorbar(mesh, ax=axes, extend=extend, pad=0.02)
    bar.set_label(readable(column.label))
    bar.outline.set_visible(False)  # type: ignore[operator]


def _colour_map(*, diverging: bool = False) -> Any:
    """Colours that rise from the least number, or diverge from zero."""
    from matplotlib.colors import LinearSegmentedColormap

    rising = ["#e3eafa", "#86aeff", BLUE, "#0b1c4a"]
    both = ["#7a3206", ORANGE, "white", BLUE, "#0b1c4a"]
    return LinearSegmentedColormap.from_list("runs", both if diverging else rising)


def draw_bands(axes: Axes, x: SweepColumn, column: SweepColumn) -> list[LegendEntry]:
    """Draw the median and two bands of a column over a swept value; a line for one run each."""
    there = column.finished & ~np.isnan(column.values)
    at, values = x.values[there], column.values[there]
    order = np.argsort(at, kind="stable")
    at, values = at[order], values[order]
    groups = _groups(at, x.grid)
    axes.set(xlabel=readable(x.label), ylabel=readable(column.label))
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
