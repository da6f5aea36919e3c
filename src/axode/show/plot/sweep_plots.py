"""Plots of a sweep: histograms, scatter matrices, heat maps and percentile bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.names import Names
from axode.results.columns import INACCURATE_TEXT
from axode.results.sweep_arrays import as_host
from axode.show.plot.maps import (
    LINES,
    REDUCTIONS,
    axis_range,
    cell_edges,
    colour_map,
    draw_colours,
    draw_contours,
    hatch_cells,
    reduce_cells,
    reduction_notes,
    usual_range,
)
from axode.show.plot.panels import LegendEntry, add_legend, plan_legends
from axode.show.plot.plots import NARROW
from axode.show.style import (
    BLUE,
    COLOURS,
    FAINT,
    GREY,
    INK,
    ORANGE,
    Size,
    add_title,
    drawing,
    new_figure,
    palette,
    pin_ticks,
    readable,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from axode.results.sweep_result import Sweep


Array = npt.NDArray[np.float64]
KINDS = ("histogram", "scatter", "heatmap", "bands")
MAX_PANELS = 12
MAX_MATRIX = 7  # columns of a scatter matrix
MATRIX_OUTPUTS = 4  # of a sweep whose outputs are not named
FRAME = 0.7  # [in] that axis and title take besides the panels, with text of 10 points
MIN_BINS, MAX_BINS = 8, 80
MAX_DOTS = 3000  # more points are counted in cells instead of drawn
CELLS = 70  # along each side of such a picture
EMPTY_CELL = "#eceef1"  # cells without a run
PERCENTILES = (5.0, 25.0, 50.0, 75.0, 95.0)
NO_OTHERS: Mapping[str, Any] = MappingProxyType({})
WORST = {"min": "min", "max": "max", "largest": "max"}  # of several, by the kind of an output
MAX_BANDS, LEAST_IN_BAND = 40, 25  # bins of a swept value, and runs in each


@dataclass(frozen=True, eq=False)
class SweepColumn:
    """Numbers of all runs.

    Attributes:
        name: Name of an output, or of what was swept.
        label: Name and unit.
        values: One per run.
        swept: Whether it was swept; else it is an output.
        finished: Which runs came to their end, with inaccurate ones.
        grid: Whether it is an axis of a grid.
        worst: Which number of several is the worst, a key of `REDUCTIONS`; "" if unknown.
    """

    name: str
    label: str
    values: Array
    swept: bool
    finished: npt.NDArray[np.bool_]
    grid: bool = False
    worst: str = ""

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
        self._kinds = sweep.info.get("kinds", {})
        finished = as_host(sweep.finished).reshape(-1)
        doubtful = INACCURATE_TEXT in sweep.statuses
        self.inaccurate = sweep.status.equal(INACCURATE_TEXT) if doubtful else finished & False
        self._finished = finished | self.inaccurate

    @cached_property
    def failed(self) -> npt.NDArray[np.intp]:
        """Numbers of the runs that did not finish."""
        return np.flatnonzero(~self._finished)

    @property
    def grid(self) -> bool:
        """Return whether the swept values are axes of a grid."""
        return bool(self._sweep.axes)

    @property
    def axes(self) -> dict[str, Array]:
        """Values of the axes of a grid that have several, by name and unit."""
        own = {name: full for full, name in self._samples.items()}
        return {
            self.label(own[name]): values
            for name, values in self._sweep.axes.items()
            if len(values) > 1
        }

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
            how = self._kinds.get(name, "min" if name.endswith("margin") else "")
            worst = WORST.get(how, "")
            return SweepColumn(name, self.label(name), values, False, self._finished, worst=worst)
        values = as_host(self._sweep.samples[own]).reshape(-1)
        all_runs, grid = np.ones(values.size, dtype=bool), own in self._sweep.axes
        return SweepColumn(name, self.label(name), values, True, all_runs, grid)

    def label(self, name: str) -> str:
        """Name and unit."""
        unit = self._units.get(name, "")
        return f"{name} [{unit}]" if unit else name


@dataclass(frozen=True)
class Design:
    """How several runs become one number, and other sweeps that are drawn over the first.

    Attributes:
        reduce: A key of `REDUCTIONS`; "" for the worst where it is known.
        label: Name of the first sweep.
        others: The other sweeps by name.
    """

    reduce: str = ""
    label: str = ""
    others: Mapping[str, SweepColumns] = field(default_factory=dict)

    def how(self, column: SweepColumn) -> str:
        """Return the reduction of a column."""
        return self.reduce or column.worst or "mean"


def plot_sweep(
    sweep: Sweep,
    *what: str,
    kind: str | None = None,
    reduce: str | None = None,
    overlay: Mapping[str, Sweep] | None = None,
    label: str = "this sweep",
    size: str = "screen",
    save: str | PathLike[str] | None = None,
    figure: Figure | SubFigure | None = None,
) -> Any:
    """Draw a figure of a sweep; see `Sweep.plot`."""
    sized(size)
    if kind is not None and kind not in KINDS:
        raise UnknownName("plot", "kind", kind, KINDS)
    if reduce is not None and reduce not in REDUCTIONS:
        raise UnknownName("plot", "reduction", reduce, REDUCTIONS)
    columns = SweepColumns(sweep)
    names = columns.resolve(what)
    kind = kind or _default_kind(sweep, columns, names)
    left_out = 0
    if not names or (kind in ("heatmap", "bands") and set(names) <= set(columns.swept)):
        known = [name for name in columns.outputs if sweep.arrays.extremes(name) is not None]
        shown = (known or columns.outputs)[: MATRIX_OUTPUTS if kind == "scatter" else MAX_PANELS]
        names, left_out = [*names, *shown], len(columns.outputs) - len(shown)
    others = {name: SweepColumns(other) for name, other in (overlay or {}).items()}
    design = Design(reduce or "", label, others)
    _check_design(design, kind, names)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        drawn.figure = new_figure(measures.width, measures.width) if figure is None else figure
        whole = drawn.figure.canvas.figure
        if whole.get_layout_engine() is None:
            whole.set_layout_engine("constrained")
        height = _DRAW[kind](drawn.figure, columns, names, measures, design)
        more = _reduced_axes(columns, names, kind, design)
        if left_out:
            more.append(f"{len(columns.outputs) - left_out} of {len(columns.outputs)} outputs")
        named = measures.title and figure is None
        _title(drawn.figure, sweep, measures, more, named=named)
        if figure is None:
            whole.set_size_inches(measures.width, height + FRAME * measures.text / 10)
    return drawn.figure


def _check_design(design: Design, kind: str, names: Sequence[str]) -> None:
    """Refuse reductions and overlays where they mean nothing."""
    if kind == "scatter" and design.others:
        raise InvalidArgument(
            "plot, overlay: a scatter matrix shows one sweep; name an output, and swept values for "
            "bands or a heat map"
        )
    if design.reduce and kind in ("histogram", "scatter"):
        raise InvalidArgument(f"plot, reduce: a {kind} shows all runs; bands and heat maps reduce")
    for title, columns in design.others.items():
        lacking = [name for name in names if name not in (*columns.outputs, *columns.swept)]
        if lacking:
            raise InvalidArgument(f"plot, overlay: '{title}' has no {', '.join(lacking)}")


def _reduced_axes(
    columns: SweepColumns, names: Sequence[str], kind: str, design: Design
) -> list[str]:
    """Words about the axes of a grid that the figure does not show."""
    count = {"heatmap": 2, "bands": 1}.get(kind, 0)
    if not count or not columns.axes:
        return []
    outputs, over = _split(columns, names, kind, count)
    hidden = [one for one in columns.axes if one not in [column.label for column in over]]
    words = "all runs"
    if kind == "heatmap" or design.reduce:
        hows = dict.fromkeys(design.how(columns[name]) for name in outputs)
        words = ", ".join(REDUCTIONS[how] for how in hows)
    return reduction_notes(words, columns.axes, hidden)


def _default_kind(sweep: Sweep, columns: SweepColumns, names: Sequence[str]) -> str:
    swept = [name for name in names if name in columns.swept]
    axes = [name for name, values in sweep.axes.items() if len(values) > 1]
    if names and len(swept) == len(names):
        return "scatter" if len(names) > 1 else "histogram"
    over = len(swept or axes)
    if axes and len(sweep.axes) == len(columns.swept) and (over <= 2 or not swept):
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


def _histograms(
    figure: Any, columns: SweepColumns, names: Sequence[str], size: Size, design: Design
) -> float:
    def draw(axes: Any, column: SweepColumn) -> list[LegendEntry]:
        others = {name: other[column.name] for name, other in design.others.items()}
        entries = draw_histogram(axes, column, others, design.label)
        mark_zero(axes, column, "x")
        axes.set_ylabel("runs")
        return entries

    return _panels(figure, columns, names, size, 1.2, draw)


def _bands(
    figure: Any, columns: SweepColumns, names: Sequence[str], size: Size, design: Design
) -> float:
    outputs, (x,) = _split(columns, names, "bands", 1)

    def draw(axes: Any, column: SweepColumn) -> list[LegendEntry]:
        every = {design.label: (x, column)} | {
            name: (other[x.name], other[column.name]) for name, other in design.others.items()
        }
        entries: list[LegendEntry] = []
        colours = palette()
        for k, (name, pair) in enumerate(every.items()):
            colour = colours[k % len(colours)]
            found = draw_bands(axes, *pair, colour, design.reduce)
            if design.others:
                entries.append(LegendEntry(name, {"color": colour}))
            entries += [one for one in found if not k and one.label != "median"]
            entries[:0] = [one for one in found if not design.others and one.label == "median"]
        _fit_bands(axes)
        mark_zero(axes, column, "y")
        return entries

    return _panels(figure, columns, outputs, size, 1.2, draw)


def _heat_maps(
    figure: Any, columns: SweepColumns, names: Sequence[str], size: Size, design: Design
) -> float:
    outputs, (x, y) = _split(columns, names, "heatmap", 2)

    def draw(axes: Any, column: SweepColumn) -> list[LegendEntry]:
        how = design.how(column)
        entries, shown = draw_heat_map(axes, x, y, column, columns.inaccurate, how)
        if not design.others:
            return entries
        maps, middles = {design.label: shown.values}, shown.middles
        for name, other in design.others.items():
            made = MapCells.of(other[x.name], other[y.name], other[column.name], how)
            if any(not np.array_equal(a, b) for a, b in zip(made.middles, middles, strict=True)):
                raise InvalidArgument(
                    f"plot, overlay: '{name}' has other values of {x.name} and {y.name}"
                )
            maps[name] = made.values
        return [*entries, *draw_contours(axes, *middles, maps, size)]

    return _panels(figure, columns, outputs, size, 1.5, draw)


def _split(
    columns: SweepColumns, names: Sequence[str], kind: str, count: int
) -> tuple[list[str], list[SweepColumn]]:
    """Outputs, and the swept values over which they are drawn."""
    outputs = [name for name in names if name not in columns.swept]
    over = [name for name in names if name in columns.swept]
    if not over and len(columns.swept) >= count and (len(columns.swept) == count or columns.grid):
        axes = [name for name in columns.swept if columns.label(name) in columns.axes]
        over = (axes if len(axes) >= count else list(columns.swept))[:count]
    if len(over) != count:
        wanted = "one swept value" if count == 1 else f"{count} swept values"
        known = ", ".join(columns.swept) or "none"
        raise InvalidArgument(f"plot, kind '{kind}': name {wanted} besides outputs; swept: {known}")
    return outputs, [columns[name] for name in over]


def _matrix(
    figure: Any, columns: SweepColumns, names: Sequence[str], size: Size, design: Design
) -> float:
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
    axes.set_ylabel("" if j else readable(made[i].label) if i else "runs")
    axes.locator_params(nbins=4)


_DRAW: dict[str, Callable[[Any, SweepColumns, Sequence[str], Size, Design], float]] = {
    "histogram": _histograms,
    "scatter": _matrix,
    "heatmap": _heat_maps,
    "bands": _bands,
}


def draw_histogram(
    axes: Axes, column: SweepColumn, others: Mapping[str, SweepColumn] = NO_OTHERS, label: str = ""
) -> list[LegendEntry]:
    """Draw how often a number occurs; runs without one, or far from the others, are counted.

    Other sweeps are outlines over the same bins.
    """
    known = column.values[column.finite]
    bins = int(np.clip(2.0 * known.size ** (1 / 3), MIN_BINS, MAX_BINS))
    ranges = [column.range, *(one.range for one in others.values())]
    whole = min(low for low, _ in ranges), max(high for _, high in ranges)
    counts, edges = np.histogram(known, bins, whole)
    axes.stairs(counts, edges, fill=True, color=BLUE, alpha=0.85)
    entries = [LegendEntry(label, {"color": BLUE, "linewidth": 6.0})] if others else []
    for k, (name, other) in enumerate(others.items(), start=1):
        style: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "linestyle": LINES[k % 4]}
        counts, _ = np.histogram(other.values[other.finite], edges)
        axes.stairs(counts, edges, linewidth=1.6, **style)
        entries.append(LegendEntry(name, style))
    axes.set_xlabel(readable(column.label))
    axes.set_ylim(bottom=0)
    if column.hidden:
        axes.set_title(readable(column.hidden), color=GREY, fontweight="normal")
    return entries


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
        axes.pcolormesh(*edges, shown, cmap=colour_map(), norm=LogNorm(1), rasterized=True)
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


@dataclass(frozen=True, eq=False)
class MapCells:
    """Cells of a heat map over two swept values.

    Cells are the values of a grid; scattered samples are in cells of equal width.

    Attributes:
        edges: Edges of the cells along both axes.
        place: The cell of each run.
        values: A number per cell, (x, y).
        several: Whether a cell has more than one run.
    """

    edges: tuple[Array, Array]
    place: npt.NDArray[np.intp]
    values: Array
    several: bool

    @classmethod
    def of(cls, x: SweepColumn, y: SweepColumn, column: SweepColumn, how: str) -> MapCells:
        """Reduce the runs of each cell to one number."""
        (across, i), (up, j) = _cells(x), _cells(y)
        shape = len(across) - 1, len(up) - 1
        place, count = np.ravel_multi_index((i, j), shape), shape[0] * shape[1]
        known = np.where(column.finished, column.values, np.nan)
        values = reduce_cells(known, place, count, how).reshape(shape)
        return cls((across, up), place, values, bool((np.bincount(place) > 1).any()))

    @property
    def middles(self) -> tuple[Array, Array]:
        """Middles of the cells along both axes."""
        x, y = (0.5 * (edges[1:] + edges[:-1]) for edges in self.edges)
        return x, y

    def any(self, runs: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return whether each cell has one of some runs."""
        found = np.bincount(self.place, runs, minlength=self.values.size) > 0
        return found.reshape(self.values.shape)


def draw_heat_map(
    axes: Axes,
    x: SweepColumn,
    y: SweepColumn,
    column: SweepColumn,
    inaccurate: npt.NDArray[np.bool_],
    how: str,
) -> tuple[list[LegendEntry], MapCells]:
    """Draw a column as colours over two swept values; return legend entries and the cells."""
    cells = MapCells.of(x, y, column, how)
    empty, every = np.isnan(cells.values), np.ones(column.values.size, dtype=bool)
    failed = cells.any(~column.finished)
    entries = []
    for which, face, hatch, words in (
        (empty & failed, FAINT, "////", "not finished"),
        (~empty & failed, "none", "////", "some not finished"),
        (empty & ~failed & cells.any(every), "white", "....", "no value"),
        (~cells.any(every), EMPTY_CELL, "", "no run"),  # not white: zero is where signs differ
        (~empty & cells.any(inaccurate), "none", "..", "inaccurate"),
    ):
        if which.any():
            hatch_cells(axes, cells.edges, which, face, hatch)
            square = {"linestyle": "none", "marker": "s", "markerfacecolor": face}
            entries.append(LegendEntry(f"{words} ({which.sum():,})", square | {"color": GREY}))
    word = f"{REDUCTIONS[how]} {column.label}" if cells.several else column.label
    draw_colours(axes, cells.edges, cells.values, word)
    axes.set(xlabel=readable(x.label), ylabel=readable(y.label))
    return entries, cells


def _cells(column: SweepColumn) -> tuple[Array, npt.NDArray[np.intp]]:
    """Edges of cells, and the cell of every run: one per value, or of equal widths."""
    values, place = np.unique(column.values, return_inverse=True)
    if column.grid or values.size <= min(CELLS, place.size // 2):  # most occur more than once
        return np.array(column.range) if values.size == 1 else cell_edges(values), place
    count = int(np.clip((column.values.size / 10) ** 0.5, 4, CELLS))
    edges = np.linspace(*column.range, count + 1)
    return edges, np.clip(np.digitize(column.values, edges) - 1, 0, count - 1)


def draw_bands(
    axes: Axes, x: SweepColumn, column: SweepColumn, colour: str = BLUE, reduce: str = ""
) -> list[LegendEntry]:
    """Draw the median and two bands of a column over a swept value; a line for one run each.

    With a reduction, its line alone; without one, the worst of each group too where it is known.
    """
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
    alone = all(b - a == 1 for a, b in groups)
    place = np.repeat(np.arange(len(groups)), [b - a for a, b in groups])
    line: dict[str, Any] = {"color": colour, "marker": "." if len(groups) < 60 else None}
    if reduce and not alone:
        axes.plot(middle, reduce_cells(values, place, len(groups), reduce), **line)
        return [LegendEntry(REDUCTIONS[reduce], {"color": colour}), *missing]
    with np.errstate(invalid="ignore"):  # between two infinities
        found = np.array([np.percentile(values[a:b], PERCENTILES) for a, b in groups]).T
    found = np.where(np.isfinite(found), found, np.nan)
    axes.plot(middle, found[2], **line)
    if alone:
        return missing
    style: dict[str, Any] = {"color": colour, "linewidth": 0}
    axes.fill_between(middle, found[0], found[4], alpha=0.16, **style)
    axes.fill_between(middle, found[1], found[3], alpha=0.3, **style)
    wide = {"color": colour, "linewidth": 6.0, "solid_capstyle": "butt"}
    worst = []
    if column.worst:
        dashed: dict[str, Any] = {"color": colour, "linestyle": "--"}
        axes.plot(middle, reduce_cells(values, place, len(groups), column.worst), **dashed)
        worst = [LegendEntry(REDUCTIONS[column.worst], dashed)]
    return [
        LegendEntry("median", {"color": colour}),
        LegendEntry("25 to 75 %", wide | {"alpha": 0.46}),
        LegendEntry("5 to 95 %", wide | {"alpha": 0.16}),
        *worst,
        *missing,
    ]


def _fit_bands(axes: Axes) -> None:
    """Limit an axis with bands to the usual range of what is drawn."""
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in axes.lines]
    drawn += [np.ravel(path.vertices)[1::2] for c in axes.collections for path in c.get_paths()]
    found = np.concatenate(drawn) if axes.collections else np.empty(0)
    low, high = usual_range(found[np.isfinite(found)])
    margin = 0.06 * (high - low)
    if axes.collections and high > low:
        axes.set_ylim(low - margin, high + margin)


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
