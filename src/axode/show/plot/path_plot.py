"""The path of a robot from above: its base, the tracks of its wheels, its heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.show.plot.panels import (
    AXIS,
    BUCKETS,
    DRAWN_RUNS,
    LARGEST,
    Legend,
    LegendEntry,
    keep_extremes,
)
from axode.show.style import FAINT, GREY, INK, Size, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]

POSES = 8  # along the way, where the heading is shown
NEAREST = 0.08  # of the width of the picture, between two of them
UPRIGHT = 0.5  # least horizontal part of an axis that has a heading
FLATTEST, TALLEST = 0.4, 0.85  # height of the picture, of its width
SMALLEST = 0.2  # [m] shown at least


@dataclass(frozen=True)
class Track:
    """Path of one point from above, in all runs.

    Attributes:
        label: Name of the point.
        x: Shape (runs, T) [m].
        y: Likewise.
        heading: Direction of the body's first axis [rad], likewise; None if it has none.
        columns: Columns that it was read from.
    """

    label: str
    x: Array
    y: Array
    heading: Array | None = None
    columns: tuple[str, ...] = ()


def bases(trajectory: Trajectory) -> list[Track]:
    """Bodies that are free on the ground, found by `info["bases"]` or else by their coordinates."""
    bases = trajectory.info.get("bases")
    found = (
        [(str(body), list(columns)) for body, *columns in bases] if bases else _by_name(trajectory)
    )
    return [
        _base(trajectory, body, columns)
        for body, columns in found
        if all(name in trajectory for name in columns)
    ]


def _by_name(trajectory: Trajectory) -> list[tuple[str, list[str]]]:
    """Coordinates `a.x` and `a.y`, with the `a.yaw` of a plane or the quaternion of space."""
    found = []
    for x in trajectory.columns("coordinate"):
        stem = x.removesuffix("x")
        if stem == x or (stem and not stem.endswith(".")) or f"{stem}y" not in trajectory:
            continue
        for rest in (("yaw",), ("qw", "qx", "qy", "qz"), ()):
            names = [f"{stem}{part}" for part in rest]
            if all(name in trajectory for name in names):
                found.append((stem.rstrip(".") or "path", [x, f"{stem}y", *names]))
                break
    return found


def _base(trajectory: Trajectory, body: str, columns: Sequence[str]) -> Track:
    x, y, *turn = (_values(trajectory, name) for name in columns)
    heading = None
    if len(turn) == 1:
        heading = turn[0]
    elif len(turn) == 4:
        w, i, j, k = turn
        along, across = 1 - 2 * (j**2 + k**2), 2 * (i * j + w * k)
        flat = np.hypot(along, across)
        if np.fmin.reduce(flat, axis=None, initial=1.0) > UPRIGHT:  # a wheel's own axes turn over
            heading = np.arctan2(across, along)
    return Track(body, x, y, heading, tuple(columns))


def wheel_tracks(trajectory: Trajectory) -> list[Track]:
    """Where the wheels touch the ground."""
    ending = ".contact.x"
    found = []
    for x in trajectory.names:
        wheel = x.removesuffix(ending)
        y = f"{wheel}.contact.y"
        if wheel != x and y in trajectory:
            found.append(Track(wheel, _values(trajectory, x), _values(trajectory, y)))
    return found


def named_tracks(
    trajectory: Trajectory, x: str | Sequence[str], y: str | Sequence[str]
) -> list[Track]:
    """Paths of the points whose columns the user gave."""
    names = [[one] if isinstance(one, str) else list(one) for one in (x, y)]
    if len(names[0]) != len(names[1]):
        raise InvalidArgument(
            f"plot, x and y: {len(names[0])} and {len(names[1])} columns; give as many of both"
        )
    resolve = trajectory.column_names.resolve
    pairs = [(resolve(over), resolve(up)) for over, up in zip(*names, strict=True)]
    label = "{0}" if len({a.rpartition(".")[0] for a, _ in pairs}) < len(pairs) else "{1}"
    return [
        Track(
            label.format(f"{a}, {b}", a.rpartition(".")[0] or a),
            _values(trajectory, a),
            _values(trajectory, b),
        )
        for a, b in pairs
    ]


def tracks(
    trajectory: Trajectory, x: str | Sequence[str], y: str | Sequence[str]
) -> tuple[list[Track], list[Track]]:
    """Paths of bodies and of wheels.

    Raises:
        InvalidArgument: if there is neither, with the remedy.
    """
    if x or y:
        return named_tracks(trajectory, x, y), []
    found = bases(trajectory), wheel_tracks(trajectory)
    if not any(found):
        lengths = [name for name in trajectory.names if trajectory.unit(name) == "m"]
        raise InvalidArgument(
            f"{trajectory.column_names.owner} has no body that moves freely on the ground, and no "
            "wheel.\n"
            "  Remedy: plot('path', x='...', y='...') with columns in metres: "
            f"{', '.join(lengths) or 'there are none; a measure of a position would make them'}"
        )
    return found


def _values(trajectory: Trajectory, name: str) -> Array:
    values = trajectory[name].reshape(-1, len(trajectory.time))
    return np.where(np.abs(values) < LARGEST, values, np.nan)


# drawing -----------------------------------------------------------------------------------------


def draw_path(
    axes: Axes, bodies: Sequence[Track], wheels: Sequence[Track], size: Size
) -> list[LegendEntry]:
    """Draw paths, start and end, headings and footprints; return the legend's entries."""
    entries, colours = [], palette()
    first = len(bodies)
    for k, track in enumerate([*bodies, *wheels]):
        colour = colours[k % len(colours)]
        width = size.line * (1.0 if k < first else 0.6)
        _draw_way(axes, track, colour, width)
        entries.append(LegendEntry(track.label, {"color": colour, "linewidth": width}))
    axes.set_aspect("equal", adjustable="box", anchor="C")
    xlim, ylim = extent([*bodies, *wheels])
    axes.set(xlabel="x [m]", ylabel="y [m]", xlim=xlim, ylim=ylim)
    leading = bodies or wheels
    if len(leading[0].x) == 1:
        for track in bodies or wheels[:1]:
            _draw_headings(axes, track, wheels)
    for track in leading:
        _draw_ends(axes, track, size)
    dot = {"marker": "o", "linestyle": "none", "markeredgecolor": INK, "markersize": 4}
    entries += [
        LegendEntry("start", {**dot, "markerfacecolor": "white"}),
        LegendEntry("end", {**dot, "markerfacecolor": INK}),
    ]
    return entries


def extent(shown: Sequence[Track]) -> list[tuple[float, float]]:
    """Range of x and of y [m] that holds all paths and a margin, in the shape of a picture."""
    ranges = []
    for values in ([t.x for t in shown], [t.y for t in shown]):
        finite = np.concatenate([v[np.isfinite(v)] for v in values])
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
        ranges.append((low, high))
    wide, high = (b - a for a, b in ranges)
    margin = max(0.06 * max(wide, high), 0.5 * SMALLEST)
    wide, high = wide + 2 * margin, high + 2 * margin
    spans = max(wide, high / TALLEST), max(high, wide * FLATTEST)
    return [
        (0.5 * (a + b - span), 0.5 * (a + b + span))
        for (a, b), span in zip(ranges, spans, strict=True)
    ]


def path_height(
    ways: tuple[list[Track], list[Track]], width: float, legend: Legend | None = None
) -> float:
    """Height of the axes that a figure of this width has room for [in]."""
    (left, right), (low, high) = extent([*ways[0], *ways[1]])
    inside = width - AXIS - (legend.width if legend and legend.beside else 0.0)
    return inside * (high - low) / (right - left)


def _draw_way(axes: Axes, track: Track, colour: str, width: float) -> None:
    from matplotlib.collections import LineCollection

    count = len(track.x)
    drawn = np.unique(np.linspace(0, count - 1, min(count, DRAWN_RUNS)).astype(np.intp))
    lines = []
    for run in drawn:
        there = keep_extremes(np.stack([track.x[run], track.y[run]]), BUCKETS)
        lines.append(np.column_stack([track.x[run][there], track.y[run][there]]))
    opacity = 1.0 if count == 1 else float(np.clip(8.0 / len(lines), 0.18, 0.7))
    axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, alpha=opacity))


def _draw_ends(axes: Axes, track: Track, size: Size) -> None:
    there = np.isfinite(track.x) & np.isfinite(track.y)
    runs = np.flatnonzero(there.any(axis=1))
    last = there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    small = 0.42 * size.text if len(runs) == 1 else 0.25 * size.text
    for index, fill in ((there.argmax(axis=1), "white"), (last, INK)):
        axes.plot(
            track.x[runs, index[runs]],
            track.y[runs, index[runs]],
            "o",
            zorder=4,
            markersize=small,
            markerfacecolor=fill,
            markeredgecolor=INK,
            markeredgewidth=0.09 * size.text,
        )


def _draw_headings(axes: Axes, track: Track, wheels: Sequence[Track]) -> None:
    """Draw the heading and the wheels at a few places along the path."""
    left, right = axes.get_xlim()
    poses = _along(track.x[0], track.y[0], NEAREST * (right - left))
    if len(wheels) > 1:
        for sample in poses:
            _draw_footprint(axes, [(w.x[0][sample], w.y[0][sample]) for w in wheels])
    if track.heading is None:
        return
    angle = track.heading[0][poses]
    axes.quiver(
        track.x[0][poses],
        track.y[0][poses],
        np.cos(angle),
        np.sin(angle),
        pivot="tail",
        color=INK,
        scale=22,
        width=0.0045,
        headwidth=4.2,
        headlength=5,
        headaxislength=4.4,
        zorder=3.5,
    )


def _draw_footprint(axes: Axes, corners: Sequence[tuple[float, float]]) -> None:
    points = np.array(corners)
    if not np.isfinite(points).all():
        return
    around = points - points.mean(axis=0)
    points = points[np.argsort(np.arctan2(around[:, 1], around[:, 0]))]
    opacity = 0.22 if len(points) > 2 else 0.6  # an area, or an axle
    axes.fill(*points.T, facecolor=FAINT, edgecolor=GREY, alpha=opacity, linewidth=0.8, zorder=1.2)


def _along(x: Array, y: Array, nearest: float) -> npt.NDArray[Any]:
    """Samples at equal distances along a path, its ends among them, not nearer than this [m]."""
    there = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if not len(there):
        return there
    gone = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x[there]), np.diff(y[there])))])
    count = int(np.clip(gone[-1] / nearest, 0, POSES - 1)) + 1
    wanted = np.linspace(0, gone[-1], count)
    return there[np.unique(np.searchsorted(gone, wanted).clip(0, len(there) - 1))]
