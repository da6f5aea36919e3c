"""Plots of a sweep: histograms, scatter matrices, heat maps and percentile bands."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, UnknownName
from axode.show.plot.legends import LegendEntry, add_legend, plan_legends, readable
from axode.show.plot.plots import NARROW, picture_bytes, picture_suffix
from axode.show.plot.sweep_columns import SweepColumn, SweepColumns
from axode.show.plot.sweep_panels import (
    draw_bands,
    draw_heat_map,
    draw_histogram,
    draw_pair,
    mark_failed,
    mark_zero,
)
from axode.show.style import GREY, Size, figure_style, new_figure, pin_ticks, sized

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from axode.results.sweep_result import Sweep

KINDS = ("histogram", "scatter", "heatmap", "bands")
MAX_PANELS = 12
MAX_MATRIX = 7  # columns of a scatter matrix
MATRIX_OUTPUTS = 4  # of a sweep whose outputs are not named
FRAME = 0.7  # [in] that axis and title take besides the panels, with text of 10 points

Draw = Callable[[Any, str, Size], list[LegendEntry]]


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
    suffix = None if save is None else picture_suffix(save)
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
    with figure_style(size) as measures:
        drawn = new_figure(measures.width, measures.width) if figure is None else figure
        if drawn.canvas.figure.get_layout_engine() is None:
            drawn.canvas.figure.set_layout_engine("constrained")
        height = _DRAW[kind](drawn, columns, names, measures)
        more = [f"{len(columns.outputs) - left_out} of {len(columns.outputs)} outputs"]
        named = measures.title and figure is None
        _title(drawn, sweep, measures, more if left_out else [], named=named)
        if figure is None:
            drawn.canvas.figure.set_size_inches(measures.width, height + FRAME * measures.text / 10)
        drawn.canvas.figure.draw_without_rendering()  # ticks take the style, not the user's
        if save is not None and suffix is not None:
            write_atomically(Path(save), picture_bytes(drawn, suffix, measures))
    return drawn


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
    text = shorten(
        " \N{MIDDLE DOT} ".join([*notes, *more]), int(14 * size.width), placeholder=" ..."
    )
    figure.suptitle(
        readable(text), x=0.01, ha="left", color=GREY, fontweight="normal", fontsize=size.text
    )


# kinds -------------------------------------------------------------------------------------------


def _panels(figure: Any, outputs: Sequence[str], size: Size, height: float, draw: Draw) -> float:
    """Draw a panel per output, in two columns where there is room; return their height [in]."""
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
        legend = plan_legends(draw(axes, name, size), size, size.width / across)
        add_legend(axes, legend)
        pin_ticks(axes)
        if legend is not None and not legend.beside:
            legends = max(legends, legend.height)
    return down * (height + legends + FRAME * size.text / 10)


def _histograms(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    def draw(axes: Any, name: str, size: Size) -> list[LegendEntry]:
        column = columns[name]
        draw_histogram(axes, column)
        mark_zero(axes, column, "x")
        axes.set_ylabel("runs")
        return []

    return _panels(figure, names, size, 1.2 * size.panel, draw)


def _bands(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    outputs, (over,) = _split(columns, names, "bands", 1)
    x = columns[over]

    def draw(axes: Any, name: str, size: Size) -> list[LegendEntry]:
        column = columns[name]
        entries = draw_bands(axes, x, column)
        mark_zero(axes, column, "y")
        return entries

    return _panels(figure, outputs, size, 1.2 * size.panel, draw)


def _heat_maps(figure: Any, columns: SweepColumns, names: Sequence[str], size: Size) -> float:
    outputs, over = _split(columns, names, "heatmap", 2)
    x, y = (columns[name] for name in over)

    def draw(axes: Any, name: str, size: Size) -> list[LegendEntry]:
        return draw_heat_map(axes, x, y, columns[name])

    return _panels(figure, outputs, size, 1.5 * size.panel, draw)


def _split(
    columns: SweepColumns, names: Sequence[str], kind: str, count: int
) -> tuple[list[str], list[str]]:
    """Outputs, and the swept values over which they are drawn."""
    outputs = [name for name in names if name not in columns.swept]
    over = [name for name in names if name in columns.swept]
    if not over and len(columns.swept) >= count and (len(columns.swept) == count or columns.grid):
        over = list(columns.swept[:count])
    if len(over) != count:
        wanted = "one swept value" if count == 1 else f"{count} swept values"
        known = ", ".join(columns.swept) or "none"
        raise InvalidArgument(f"plot, kind '{kind}': name {wanted} besides outputs; swept: {known}")
    return outputs, over


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
