"""Panels over one time: lines of one run or of many, what happened meanwhile, and their legends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.numerics.tolerances import NEGLIGIBLE, ROUNDING
from axode.show.plot.choice import Curve, Panel
from axode.show.style import COLOURS, DASHES, GREY, INK, MathLabel, Size, palette, readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from axode.results.trajectory import Trajectory


POINTS = 72.0  # per inch
WIDTH_OF_LETTER = 0.62  # of the size of the text, of most names on average
ROW = 1.42  # height of a row, of the size of the text
SOLID_HANDLE, DASHED_HANDLE = 1.6, 2.4  # the line before a label, of the size of the text
AFTER_HANDLE = 2.2  # the space after it, likewise
BESIDE = 0.34  # of the width of the figure: wider, a legend stands above
AXIS = 0.7  # [in] that numbers and label of an axis take


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

    font = FontProperties(size=text)
    width, _, _ = TextToPath().get_text_width_height_descent(
        label, font, ismath=isinstance(label, MathLabel)
    )
    return float(width) / POINTS


# lines --------------------------------------------------------------------------------------------


Array = npt.NDArray[np.float64]
BUCKETS = 1500  # of a single run; a page in print has about as many dots across
BUCKETS_OF_MANY = 400
DRAWN_RUNS = 100  # a line each; beyond these, a band shows where all of them are
COLOURED_RUNS = len(COLOURS)  # runs that have a colour each
LARGEST = 1e100  # a run that fails may end in any number; axes cannot show them all
ALIKE = 0.01  # of the range of a panel: lines that are nearer cover each other
COMPARED = 400  # samples of each line
STRIPES = 10.0  # period of the stripes of lines on each other, of the width of a line
DECADES = 12  # of a logarithmic axis


def keep_extremes(signals: npt.ArrayLike, buckets: int) -> npt.NDArray[np.intp]:
    """Samples that a picture needs, in their order.

    The samples are cut into buckets, each narrower than a pixel; of each bucket are kept the least
    and the largest sample of every signal, and a NaN if there is one, so that gaps stay. The first
    and the last sample are always among them.

    Args:
        signals: One signal, shape (T,), or several that are drawn together, shape (signals, T).
        buckets: How many there are at most.
    """
    rows = np.atleast_2d(np.asarray(signals, dtype=np.float64))
    samples = rows.shape[-1]
    width = -(-samples // max(buckets, 1))
    if width <= 4:  # nothing to gain
        return np.arange(samples)
    whole = -(-samples // width)
    padded = np.full((len(rows), whole * width), np.nan)
    padded[:, :samples] = rows
    cut = padded.reshape(len(rows), whole, width)
    gap = np.isnan(cut)
    chosen = [
        np.where(gap, np.inf, cut).argmin(axis=-1),
        np.where(gap, -np.inf, cut).argmax(axis=-1),
        gap.argmax(axis=-1),  # the first NaN; without one the first sample
    ]
    starts = width * np.arange(whole)
    found = np.unique(np.concatenate([(starts + one).ravel() for one in chosen]))
    return np.unique(np.concatenate([[0], found[found < samples], [samples - 1]]))


@dataclass(frozen=True)
class DrawnRuns:
    """How the runs of a batch are drawn.

    Attributes:
        time: Times of the samples [s].
        drawn: Runs that have a line.
        count: How many runs there are.
        labels: Labels of runs that have a colour each; none if colours distinguish curves.
    """

    time: Array
    drawn: npt.NDArray[np.intp]
    count: int
    labels: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, trajectory: Trajectory, panels: Sequence[Panel], labels: Sequence[str]
    ) -> DrawnRuns:
        """Distinguish runs by colour where there are few and each panel has a single curve."""
        count = len(trajectory.statuses)
        drawn = np.unique(np.linspace(0, count - 1, min(count, DRAWN_RUNS)).astype(np.intp))
        single = all(len(panel.curves) == 1 for panel in panels)
        own: tuple[str, ...] = ()
        if 1 < count <= COLOURED_RUNS and single:
            own = tuple(labels) or tuple(f"run {run}" for run in range(count))
        elif labels:
            raise InvalidArgument(
                f"plot, labels: colours are for 2 to {COLOURED_RUNS} runs of one signal per panel, "
                f"here are {count} runs, and up to {max(len(p.curves) for p in panels)} signals"
            )
        return cls(trajectory.time, drawn, count, own)


def draw_panel(axes: Axes, panel: Panel, runs: DrawnRuns, size: Size) -> list[LegendEntry]:
    """Draw the lines and the label of a panel; return the entries of its legend."""
    curves = [_drawable(curve, logarithmic=panel.logarithmic) for curve in panel.curves]
    styles = _line_styles(curves, runs, logarithmic=panel.logarithmic)
    entries = []
    for k, curve in enumerate(curves):
        if runs.count == 1 or runs.labels:
            for run in range(runs.count):
                time, values = _unwound(runs.time, curve, run)
                there = keep_extremes(values, BUCKETS)
                alone = np.isfinite(values).sum() == 1  # a line of one sample would not be seen
                marker = "o" if alone else None
                axes.plot(time[there], values[there], **styles[k + run], marker=marker)
        else:
            _draw_runs(axes, curve, runs, styles[k], size)
        entries.append(_entry(curve.label, styles[k]))
    unit = f" [{panel.unit}]" if panel.unit else ""
    brief = bool(panel.brief) and width_of(panel.quantity + unit, size.text) > 1.1 * size.panel
    axes.set_ylabel(readable(panel.brief if brief else panel.quantity) + unit)
    if panel.logarithmic:
        _logarithmic(axes, curves)
    else:
        _steady(axes, curves)
        found = _range(curves)
        if found and found[0] < 0 < found[1]:
            _mark_zero(axes, size)
    if runs.labels:
        return [_entry(text, styles[i]) for i, text in enumerate(runs.labels)]
    if panel.more:
        entries.append(LegendEntry(f"and {panel.more} more", {"linestyle": "none"}))
    return entries if len(entries) > 1 or brief else []


def _entry(label: str, style: dict[str, Any]) -> LegendEntry:
    """Entry of a legend, whose line begins with a dash."""
    dashes = style["linestyle"]
    return LegendEntry(label, style | {"linestyle": dashes if dashes == "-" else (0, dashes[1])})


def _line_styles(
    curves: Sequence[Curve], runs: DrawnRuns, *, logarithmic: bool
) -> list[dict[str, Any]]:
    """Colour and dashes of each line: of the curves, or of the runs of the only curve.

    Lines that cover each other are striped, each in its part of the period, so that all are seen.
    """
    lines = [curve.values[0] for curve in curves]
    if runs.labels:
        lines = list(curves[0].values)
    given = [0 if runs.labels else curves[k].dashes for k in range(len(lines))]
    colours = palette()
    styles: list[dict[str, Any]] = [
        {
            "color": colours[k % len(colours)],
            "linestyle": DASHES[dashes or k // len(colours) % len(DASHES)],
        }
        for k, dashes in enumerate(given)
    ]
    if runs.count > 1 and not runs.labels:
        return styles
    drawn = np.log10(lines) if logarithmic else np.array(lines)
    for group in _covering(drawn):
        part = STRIPES / len(group)
        for place, k in enumerate(group):
            if place and not given[k]:
                styles[k]["linestyle"] = (STRIPES - place * part, (part, STRIPES - part))
    return styles


def _covering(lines: Array) -> list[list[int]]:
    """Groups of lines that cover each other at most of their samples."""
    lines = lines[:, :: max(lines.shape[1] // COMPARED, 1)]
    known = lines[np.isfinite(lines)]
    if not known.size:
        return []
    near = ALIKE * max(float(known.max() - known.min()), ROUNDING * float(np.abs(known).max()))
    groups: list[list[int]] = []
    for k, line in enumerate(lines):
        there = np.isfinite(line)
        for group in groups:
            # NaN is near to nothing
            alike = (np.abs(line - lines[group[0]]) <= near).sum()
            if there.any() and 2 * alike > there.sum():
                group.append(k)
                break
        else:
            groups.append([k])
    return [group for group in groups if len(group) > 1]


def _drawable(curve: Curve, *, logarithmic: bool) -> Curve:
    shown = np.abs(curve.values) < LARGEST
    if logarithmic:
        shown &= curve.values > 0
    return replace(curve, values=np.where(shown, curve.values, np.nan))


def _unwound(time: Array, curve: Curve, run: int) -> tuple[Array, Array]:
    """A run of a curve, with a gap where an angle within half a turn jumps: nothing moved there."""
    values, half = curve.values[run], 0.5 * curve.turn
    if not half or np.nanmax(np.abs(values), initial=0.0) > half * (1 + NEGLIGIBLE):
        return time, values
    jumps = np.flatnonzero(np.abs(np.diff(values)) > half) + 1
    return np.insert(time, jumps, time[jumps]), np.insert(values, jumps, np.nan)


def _draw_runs(
    axes: Axes, curve: Curve, runs: DrawnRuns, style: dict[str, Any], size: Size
) -> None:
    """Faint lines, and a band between the least and the largest of runs that have none."""
    from matplotlib.collections import LineCollection

    lines = []
    for run in runs.drawn:
        time, values = _unwound(runs.time, curve, run)
        there = keep_extremes(values, BUCKETS_OF_MANY)
        lines.append(np.column_stack([time[there], values[there]]))
    opacity = float(np.clip(8.0 / len(lines), 0.18, 0.7))
    axes.add_collection(
        LineCollection(
            lines,
            colors=style["color"],
            linestyles=[style["linestyle"]],
            linewidths=0.6 * size.line,
            alpha=opacity,
        )
    )
    if len(runs.drawn) < runs.count:
        low, high = np.fmin.reduce(curve.values), np.fmax.reduce(curve.values)
        there = keep_extremes(np.stack([low, high]), BUCKETS_OF_MANY)
        axes.fill_between(
            runs.time[there], low[there], high[there], color=style["color"], alpha=0.13, linewidth=0
        )
    axes.autoscale_view()


# axes --------------------------------------------------------------------------------------------


def _range(curves: Sequence[Curve]) -> tuple[float, float] | None:
    finite = [curve.values[np.isfinite(curve.values)] for curve in curves]
    if not any(values.size for values in finite):
        return None
    low = min(float(values.min()) for values in finite if values.size)
    return low, max(float(values.max()) for values in finite if values.size)


def _steady(axes: Axes, curves: Sequence[Curve]) -> None:
    """Widen the axis of a constant, so that its rounding is not magnified."""
    found = _range(curves)
    if found is None:
        _say_nothing(axes)
        return
    low, high = found
    middle = 0.5 * (low + high)
    if high - low <= ROUNDING * max(1.0, abs(middle)):
        reach = 0.1 * abs(middle) if abs(middle) > ROUNDING else 1.0
        axes.set_ylim(middle - reach, middle + reach)


def _mark_zero(axes: Axes, size: Size) -> None:
    """Draw a thin line at zero, across the panel."""
    from matplotlib.collections import LineCollection

    across = axes.get_yaxis_transform()
    style: dict[str, Any] = {"colors": GREY, "linewidths": 0.5 * size.line, "zorder": 1.2}
    axes.add_collection(
        LineCollection([[(0.0, 0.0), (1.0, 0.0)]], transform=across, **style), autolim=False
    )


def _logarithmic(axes: Axes, curves: Sequence[Curve]) -> None:
    """Whole decades, the largest number in the uppermost."""
    from matplotlib.ticker import LogLocator, NullLocator

    found = _range(curves)
    if found is None:
        _say_nothing(axes, "exactly zero" if any(c.values.size for c in curves) else "")
        return
    top = int(np.ceil(np.log10(found[1]) + 0.05))
    bottom = max(int(np.floor(np.log10(found[0]))), top - DECADES)
    axes.set_yscale("log")
    axes.set_ylim(10.0 ** min(bottom, top - 2), 10.0**top)
    axes.yaxis.set_major_locator(LogLocator(numticks=6))
    axes.yaxis.set_minor_locator(NullLocator())


def _say_nothing(axes: Axes, text: str = "no samples") -> None:
    axes.set_yticks([])
    axes.text(
        0.5,
        0.5,
        text or "no samples",
        transform=axes.transAxes,
        ha="center",
        va="center",
        color=GREY,
    )


# what happened -----------------------------------------------------------------------------------


def mark_events(axes: Sequence[Axes], trajectory: Trajectory) -> list[LegendEntry]:
    """Draw vertical lines at events, short ones for several runs; return the legend's entries.

    Entries are left to the legend: a text at the line would cover data.
    """
    found: dict[str, list[float]] = {}
    for event in trajectory.events:
        found.setdefault(event.name, []).append(event.time)
    entries = []
    for k, (name, times) in enumerate(found.items()):
        style: dict[str, Any] = {"color": GREY, "linestyle": DASHES[(2, 3, 1)[k % 3]]}
        bottom = 0.0 if not trajectory.batch else 0.93
        for one in axes:
            for time in times if len(times) <= DRAWN_RUNS else np.percentile(times, range(101)):
                one.axvline(float(time), ymin=bottom, linewidth=0.9, zorder=1.5, **style)
        when = f"{times[0]:.4g} s" if len(times) == 1 else f"{len(times)} times"
        entries.append(LegendEntry(f"{name} ({when})", style))
    return entries


def mark_failures(axes: Axes, panel: Panel, trajectory: Trajectory) -> None:
    """Draw a cross at the last sample of every run that failed."""
    lengths = trajectory.lengths.reshape(-1)
    for run, status in enumerate(trajectory.statuses[: 10 * DRAWN_RUNS]):
        last = int(lengths[run]) - 1
        if status.startswith("failed") and last >= 0:
            ends = [curve.values[run, last] for curve in panel.curves]
            ends = [end for end in ends if abs(end) < LARGEST]
            axes.plot([trajectory.time[last]] * len(ends), ends, "x", color=INK, zorder=3)


def finish_time(axes: Sequence[Axes], trajectory: Trajectory) -> None:
    """Set one time axis below all panels, as long as any run."""
    reached = max(int(trajectory.lengths.max()), 1)
    ends = sorted((float(trajectory.time[0]), float(trajectory.time[reached - 1])))
    if ends[0] < ends[1]:
        margin = 0.01 * (ends[1] - ends[0])
        axes[-1].set_xlim(ends[0] - margin, ends[1] + margin)
    for one in axes:
        lowest = one.get_subplotspec().is_last_row()  # type: ignore[union-attr]
        one.tick_params(labelbottom=lowest)
        if lowest:
            one.set_xlabel("time [s]")
