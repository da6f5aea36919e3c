"""Maps: a quantity as colours over two axes, and a named reduction over all further ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.numerics.tolerances import ROUNDING
from axode.show.plot.panels import LegendEntry, add_legend, plan_legends
from axode.show.style import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Size,
    add_title,
    drawing,
    new_figure,
    pin_ticks,
    readable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[np.float64]
# reductions, and the words for them before the name of a quantity
REDUCTIONS = {"min": "smallest", "max": "largest", "mean": "mean", "median": "median"}
LEVELS = 5  # contour lines of an overlaid map
RARE = 0.01  # part of the numbers at either end
FAR = 1.0  # times the range of the others
LINES = ("solid", "dashed", "dotted", "dashdot")  # of overlaid maps
LEAST_SIDE, MOST_SIDE = 0.4, 1.1  # height of a map with equal scales, of its width


def plot_map(
    values: npt.ArrayLike,
    axes: Mapping[str, npt.ArrayLike],
    *,
    label: str,
    over: Sequence[str] = (),
    reduce: str = "max",
    overlay: Mapping[str, npt.ArrayLike] | None = None,
    name: str = "",
    equal: bool | None = None,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
    figure: Any = None,
) -> Any:
    """Draw a quantity on a grid as colours over two of its axes.

    Args:
        values: An array with an axis for each of `axes`; NaN where there is no value.
        axes: Values along each axis, by its label with unit: "x [m]".
        label: The quantity with its unit: "torque [N m]".
        over: Labels of the two axes that are drawn; the first two unless given.
        reduce: "min", "max", "mean" or "median" over all other axes, which the figure names.
        overlay: Further arrays of the same shape by name, drawn as lines of equal value.
        name: Name of what the colours show, where others are drawn over it.
        equal: Whether both axes have the same scale; unless given, if both are in metres.
        size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
        save: A file to write as well, .png, .svg or .pdf.
        figure: A Figure or SubFigure of matplotlib to draw on, instead of a new one.

    Returns:
        The `matplotlib.figure.Figure`.

    Raises:
        UnknownName: for unknown axes and reductions.
        InvalidArgument: for arrays of other shapes.
    """
    grid = {label: np.asarray(at, dtype=float) for label, at in axes.items()}
    drawn_over = _two_axes(grid, over)
    if reduce not in REDUCTIONS:
        raise UnknownName("a map", "reduction", reduce, REDUCTIONS)
    shown = {name or label: values, **(overlay or {})}
    maps = {key: _reduced(array, grid, drawn_over, reduce) for key, array in shown.items()}
    x, y = (grid[one] for one in drawn_over)
    if equal is None:
        equal = all(one.endswith("[m]") for one in drawn_over)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        side = float(np.clip(np.ptp(y) / np.ptp(x), LEAST_SIDE, MOST_SIDE)) if equal else 0.62
        high = side * 0.8 * measures.width + 0.7
        drawn.figure = new_figure(measures.width, high) if figure is None else figure
        space = drawn.figure.add_subplot()
        first, *others = maps.values()
        others_reduced = [one for one in grid if one not in drawn_over]
        word = f"{REDUCTIONS[reduce]} {label}" if others_reduced else label
        draw_colours(space, (cell_edges(x), cell_edges(y)), first, word)
        if others:
            entries = draw_contours(space, x, y, maps, measures)
            add_legend(space, plan_legends(entries, measures, 0.8 * measures.width))
        space.set(xlabel=readable(drawn_over[0]), ylabel=readable(drawn_over[1]))
        if equal:
            space.set_aspect("equal")
        pin_ticks(space)
        add_title(drawn.figure, reduction_notes(REDUCTIONS[reduce], grid, others_reduced), measures)
    return drawn.figure


def _two_axes(grid: Mapping[str, Array], over: Sequence[str]) -> tuple[str, str]:
    if len(grid) < 2 or (over and len(over) != 2):
        raise InvalidArgument(f"a map is over two axes, not over {', '.join(over or grid)}")
    for one in over:
        if one not in grid:
            raise UnknownName("the map", "axis", one, grid)
    for one, at in grid.items():
        if at.ndim != 1 or len(at) < 2 or not np.isfinite(at).all():
            raise InvalidArgument(f"a map's axis '{one}' needs two or more finite values")
    first, second = over or list(grid)[:2]
    return first, second


def _reduced(
    values: npt.ArrayLike, grid: Mapping[str, Array], over: tuple[str, str], reduce: str
) -> Array:
    """Values over two axes."""
    array = np.asarray(values, dtype=float)
    shape = tuple(map(len, grid.values()))
    if array.shape != shape:
        raise InvalidArgument(f"a map over {', '.join(grid)} has shape {shape}, not {array.shape}")
    places = [list(grid).index(one) for one in over]
    flat = np.moveaxis(array, places, (0, 1)).reshape(len(grid[over[0]]), len(grid[over[1]]), -1)
    place = np.repeat(np.arange(flat[..., 0].size), flat.shape[2])
    made = reduce_cells(flat.ravel(), place, flat[..., 0].size, reduce)
    return made.reshape(flat.shape[:2])


def reduce_cells(values: Array, place: npt.NDArray[np.intp], count: int, how: str) -> Array:
    """Reduce the values of each cell to one; NaN where a cell has none.

    Means and medians are those of finite values, where there are some.

    Args:
        values: One per run; NaN is left out.
        place: The cell of each.
        count: How many cells there are.
        how: A key of `REDUCTIONS`.
    """
    known = ~np.isnan(values)
    values, place = values[known], place[known]
    if how in ("mean", "median"):
        finite = np.isfinite(values)
        at_infinity = reduce_cells(values[~finite], place[~finite], count, "min")
        values, place = values[finite], place[finite]
    order = np.lexsort((values, place))
    values, place = values[order], place[order]
    cells, first, runs = np.unique(place, return_index=True, return_counts=True)
    made = np.full(count, np.nan)
    if how == "min":
        made[cells] = values[first]
    elif how == "max":
        made[cells] = values[first + runs - 1]
    elif how == "median":
        made[cells] = 0.5 * (values[first + (runs - 1) // 2] + values[first + runs // 2])
    elif len(cells):
        made[cells] = np.add.reduceat(values, first) / runs
    return made if how in ("min", "max") else np.where(np.isnan(made), at_infinity, made)


def reduction_notes(words: str, grid: Mapping[str, Array], reduced: Sequence[str]) -> list[str]:
    """Words about axes that a map does not show: what of them is drawn, and their values."""
    if not reduced:
        return []
    listed = ", ".join(f"{one}: {_values_in_words(grid[one])}" for one in reduced)
    return [f"{words} over {listed}"]


def _values_in_words(values: Array) -> str:
    if len(values) <= 3:
        return ", ".join(f"{v:.4g}" for v in values)
    return f"{len(values)} values from {values.min():.4g} to {values.max():.4g}"


# drawing -----------------------------------------------------------------------------------------


def cell_edges(at: Array) -> Array:
    """Edges of cells around values in order, half-way between them."""
    middle = 0.5 * (at[1:] + at[:-1])
    return np.r_[2 * at[0] - middle[0], middle, 2 * at[-1] - middle[-1]]


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


def draw_colours(axes: Axes, edges: Any, values: Array, label: str) -> None:
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
        cmap=colour_map(diverging=signed),
        norm=Normalize(low, high),
        rasterized=True,
    )
    axes.grid(False)
    bar = axes.figure.colorbar(mesh, ax=axes, extend=extend, pad=0.02)
    bar.set_label(readable(label))
    bar.outline.set_visible(False)  # type: ignore[operator]


def draw_contours(
    axes: Axes, x: Array, y: Array, maps: Mapping[str, Array], size: Size
) -> list[LegendEntry]:
    """Draw lines of equal value: of zero where signs differ, else of a few levels.

    Returns:
        Entries of the legend.
    """
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    known = np.concatenate([one[np.isfinite(one)] for one in maps.values()])
    low, high = axis_range(known)
    levels = [0.0] if low < 0 < high else list(MaxNLocator(LEVELS).tick_values(low, high))
    entries = []
    for k, (name, values) in enumerate(maps.items()):
        style: dict[str, Any] = {"color": INK, "linestyle": LINES[k % len(LINES)]}
        lines = axes.contour(
            x,
            y,
            np.ma.masked_invalid(values).T,
            levels,
            colors=INK,
            linestyles=style["linestyle"],
            linewidths=size.line,
        )
        lines.set_path_effects([withStroke(linewidth=2.2 * size.line, foreground="white")])
        if levels != [0.0] and k == 0:
            texts = axes.clabel(lines, fontsize=0.75 * size.text, fmt="%.3g")
            for written in texts:
                written.set_path_effects(
                    [withStroke(linewidth=0.25 * size.text, foreground="white")]
                )
        entries.append(LegendEntry(f"{name}: zero" if levels == [0.0] else name, style))
    return entries


def colour_map(*, diverging: bool = False) -> Any:
    """Colours that rise from the least number, or diverge from zero."""
    from matplotlib.colors import LinearSegmentedColormap

    rising = ["#e3eafa", "#86aeff", BLUE, "#0b1c4a"]
    both = ["#7a3206", ORANGE, "white", BLUE, "#0b1c4a"]
    return LinearSegmentedColormap.from_list("runs", both if diverging else rising)


def hatch_cells(
    axes: Axes, edges: Any, which: npt.NDArray[np.bool_], face: str, hatch: str
) -> None:
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
    if face == "none":
        style["zorder"] = 2.5  # over the colours
    axes.add_patch(PathPatch(outline, hatch=hatch, **style))
