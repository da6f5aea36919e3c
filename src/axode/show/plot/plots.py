"""Plots of a trajectory: what is asked for, with labels and units, laid out on a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.names import Names
from axode.show.plot.choice import Panel, choose_panels, overview
from axode.show.plot.panels import (
    DRAWN_RUNS,
    DrawnRuns,
    Legend,
    add_legend,
    draw_panel,
    finish_time,
    mark_events,
    mark_failures,
    plan_legends,
)
from axode.show.plot.path_plot import Track, bases, draw_path, path_height, tracks, wheel_tracks
from axode.show.style import (
    MathLabel,
    Size,
    add_title,
    drawing,
    need_matplotlib,
    new_figure,
    pin_ticks,
    sized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from axode.results.trajectory import Trajectory


DEGREES = {"rad": "deg", "rad/s": "deg/s", "rad/s^2": "deg/s^2"}
NARROW = 5.0  # [in]: a narrower figure has one thing beside nothing
GAP = 0.12  # [in] between panels
SHORTEST = 0.5  # [in]: of a panel on a figure that the user gave
FRAME = 0.8  # [in] that axis and title take besides the panels, with text of 10 points


def shown_unit(unit: str, degrees: bool) -> tuple[str, float]:
    """Unit in which values are shown, and what they are multiplied with."""
    return (DEGREES[unit], float(np.rad2deg(1.0))) if degrees and unit in DEGREES else (unit, 1.0)


def signal_labels(
    trajectory: Trajectory, labels: Mapping[Any, Any], tracks: Sequence[Track] = ()
) -> dict[str, str]:
    """Labels by the full names of columns, and by the names of points of the path.

    Raises:
        InvalidArgument: listing all names that mean nothing and all labels that are no text.
    """
    points = {track.label for track in tracks}
    names = Names(trajectory.column_names.owner, "signal", trajectory.names)
    found, faults = dict[str, str](), list[str]()
    for name, label in labels.items():
        if not isinstance(name, str) or not isinstance(label, str):
            faults.append(f"expected NAME: LABEL, both texts, got {shortened({name: label})}")
            continue
        try:
            meant = name if name in points else names.resolve(name)
        except UnknownName as error:
            faults.append(str(error))
            continue
        found[meant] = MathLabel(label) if _is_mathematics(label) else label
    if faults:
        raise InvalidArgument("\n".join(f"plot, labels: {fault}" for fault in faults))
    return found


def _is_mathematics(label: str) -> bool:
    """Return whether a label holds mathematics between dollar signs that can be set."""
    from matplotlib.mathtext import MathTextParser

    if label.count("$") < 2 or label.count("$") % 2:
        return False
    try:
        MathTextParser("path").parse(label)
    except ValueError:
        return False
    return True


def reword(panel: Panel, labels: Mapping[str, str], degrees: bool) -> Panel:
    """Return a panel with the user's labels, and with angles in degrees if asked."""
    curves = tuple(replace(one, label=labels.get(one.column, one.label)) for one in panel.curves)
    if len(curves) == 1 and curves[0].label != panel.curves[0].label:
        panel = replace(panel, quantity=curves[0].label, brief="")
    unit, factor = shown_unit(panel.unit, degrees)
    if factor != 1.0:
        curves = tuple(
            replace(one, values=factor * one.values, turn=factor * one.turn) for one in curves
        )
    return replace(panel, curves=curves, unit=unit)


def rename_tracks(tracks: Sequence[Track], labels: Mapping[str, str]) -> list[Track]:
    """Return tracks with the user's labels."""
    return [replace(track, label=labels.get(track.label, track.label)) for track in tracks]


def plot(
    trajectory: Trajectory,
    *what: str | Sequence[str],
    size: str = "screen",
    save: str | PathLike[str] | None = None,
    figure: Figure | SubFigure | None = None,
    labels: Sequence[str] | Mapping[str, str] = (),
    degrees: bool = False,
    x: str | Sequence[str] = (),
    y: str | Sequence[str] = (),
) -> Any:
    """Draw a figure of a trajectory; see `Trajectory.plot`."""
    sized(size)
    _check_labels(trajectory, labels)
    path, panels = choose_panels(trajectory, what)
    if not what:
        wheels = wheel_tracks(trajectory)
        free = bases(trajectory) if wheels else []
        path = bool(free)
        named = [name for one in free for name in one.columns] + [wheel.label for wheel in wheels]
        panels = overview(trajectory, without=named if path else [])
    if (x or y) and not path:
        raise InvalidArgument("plot: x and y are for plot('path')")
    ways = tracks(trajectory, x, y) if path else ([], [])
    if isinstance(labels, Mapping):
        need_matplotlib()
        given = signal_labels(trajectory, labels, [*ways[0], *ways[1]])
        ways, labels = (rename_tracks(ways[0], given), rename_tracks(ways[1], given)), ()
    else:
        given = {}
    panels = [reword(panel, given, degrees) for panel in panels]
    with drawing(size, save) as drawn:
        drawn.figure = _draw(trajectory, panels, ways, drawn.measures, figure, labels)
    return drawn.figure


def _check_labels(trajectory: Trajectory, labels: Any) -> None:
    """Check that labels are a mapping of signals, or a list with one per run."""
    count = len(trajectory.statuses)
    if isinstance(labels, Mapping):
        return
    if not isinstance(labels, Sequence) or isinstance(labels, str) or len(labels) not in (0, count):
        raise InvalidArgument(
            f"plot, labels: a list of {count}, one per run, or {{'NAME': 'LABEL'}} for signals, "
            f"not {shortened(labels)}"
        )


# layout ------------------------------------------------------------------------------------------


@dataclass
class _Part:
    """Axes with their legend, and the height they want for themselves [in]."""

    axes: Axes
    height: float
    legend: Legend | None = None

    @property
    def room(self) -> float:
        """Height of both [in]."""
        if self.legend is None:
            return self.height
        if self.legend.beside:
            return max(self.height, self.legend.height)
        return self.height + self.legend.height + 0.1


def _draw(
    trajectory: Trajectory,
    panels: Sequence[Panel],
    ways: tuple[list[Track], list[Track]],
    size: Size,
    given: Any,
    labels: Sequence[str],
) -> Any:
    """Draw the path, then the panels below each other; in two columns where there is room."""
    figure = new_figure(size.width, size.width) if given is None else given
    whole = figure.canvas.figure
    if whole.get_layout_engine() is None:
        whole.set_layout_engine("constrained")
    path = bool(ways[0] or ways[1])
    if given is not None:
        wide, high = figure.bbox.width / whole.dpi, figure.bbox.height / whole.dpi
        each = (high - FRAME * size.text / 10) / (len(panels) + int(path)) - GAP
        size = replace(size, width=wide, panel=max(each, SHORTEST))
    both = path and bool(panels) and size.width > NARROW
    width = size.width * (0.5 if both else 1.0)
    left = 0  # panels below the path, so that the higher of the two columns is lowest
    if both:
        room, n = path_height(ways, width) + FRAME * size.text / 10, len(panels)
        left = min(range(n), key=lambda k: max(room + k * size.panel, (n - k) * size.panel))
    counts = [int(path) + left, len(panels) - left] if both else [int(path) + len(panels)]
    outer = figure.add_gridspec(1, len(counts))
    grids = [outer[0, column].subgridspec(rows, 1) for column, rows in enumerate(counts)]
    places = [grid[row, 0] for grid, rows in zip(grids, counts, strict=True) for row in range(rows)]
    if both:  # the right column is read before what is left for the place below the path
        places = [places[0], *places[counts[0] :], *places[1 : counts[0]]]
    parts = []
    if path:
        axes = figure.add_subplot(places[0])
        legend = plan_legends(draw_path(axes, *ways, size), size, width)
        parts.append(_Part(axes, path_height(ways, width, legend), legend))
    below = places[int(path) :]
    parts += _draw_panels(figure, below, trajectory, panels, width, size, labels)
    _title(figure, trajectory, size, named=size.title and given is None)
    height = _arrange(figure, grids, parts)
    if given is None:
        figure.set_size_inches(size.width, height + FRAME * size.text / 10)
    return figure


def _draw_panels(
    figure: Any,
    places: Sequence[Any],
    trajectory: Trajectory,
    panels: Sequence[Panel],
    width: float,
    size: Size,
    labels: Sequence[str],
) -> list[_Part]:
    """Draw all panels, each in its place."""
    if not panels:
        return []
    runs = DrawnRuns.of(trajectory, panels, labels)
    every: list[Axes] = []
    found = []
    for place, panel in zip(places, panels, strict=True):
        every.append(figure.add_subplot(place, sharex=every[0] if every else None))
        entries = draw_panel(every[-1], panel, runs, size)
        mark_failures(every[-1], panel, trajectory)
        found.append([] if runs.labels and len(every) > 1 else entries)  # runs: once is enough
    found[0] += mark_events(every, trajectory)
    finish_time(every, trajectory)
    return [
        _Part(axes, size.panel, plan_legends(entries, size, width))
        for axes, entries in zip(every, found, strict=True)
    ]


def _arrange(figure: Any, grids: Sequence[Any], parts: Sequence[_Part]) -> float:
    """Place the legends and set heights with room for them; return the total height [in]."""
    for part in parts:
        add_legend(part.axes, part.legend)
        pin_ticks(part.axes)
    totals = []
    for grid in grids:
        column = [part for part in parts if part.axes.get_gridspec() is grid]
        own = [
            max(part.height, part.legend.height)
            if part.legend and part.legend.beside
            else part.height
            for part in column
        ]
        grid.set_height_ratios(own)
        figure.align_ylabels([part.axes for part in column])
        totals.append(sum(part.room for part in column) + GAP * (len(column) - 1))
    return max(totals)


def _title(figure: Any, trajectory: Trajectory, size: Size, *, named: bool) -> None:
    """Write the model's name on a screen, and always what the lines do not show."""
    notes = [trajectory.name] if trajectory.name and named else []
    count = len(trajectory.statuses)
    if count > DRAWN_RUNS:
        notes.append(f"{DRAWN_RUNS} of {count} runs drawn, the range of all shaded")
    elif count > 1:
        notes.append(f"{count} runs")
    if trajectory.status != "finished":
        notes.append(trajectory.status)
    add_title(figure, notes, size)
