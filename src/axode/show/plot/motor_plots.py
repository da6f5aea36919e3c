"""Torque of motors against their speed, and what they can give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import InvalidArgument
from axode.show.style import (
    COLOURS,
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
    from matplotlib.figure import Figure

    from axode.motors.duty import MotorDuty, MotorReport

DRAWN_RUNS = 40  # of a batch
MOST_PANELS = 12
ROOM = 1.15  # around what is drawn
MOST_ROOM = 8.0  # times what the motion takes, that what the motor can give may take of a picture
UNUSED = 0.15  # of a side that the motion never reaches
WITHIN, BEYOND = COLOURS[0], COLOURS[1]


def plot_motors(
    report: MotorReport,
    motors: Sequence[str],
    *,
    size: str = "screen",
    save: str | PathLike[str] | None = None,
) -> Figure:
    """Draw torque against speed of motors; see `MotorReport.plot`."""
    sized(size)
    duties = [report[name] for name in motors or tuple(report)]
    if len(duties) > MOST_PANELS:
        raise InvalidArgument(
            f"plot: {len(duties)} motors are too many for a picture; name up to {MOST_PANELS}"
        )
    columns = min(3, len(duties))
    rows = math.ceil(len(duties) / columns)
    with drawing(size, save) as drawn:
        measures = drawn.measures
        width = measures.width if columns > 1 else 0.7 * measures.width
        figure = new_figure(width, max(rows * 1.35 * measures.panel, 0.55 * width))
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, duty in zip(panels, duties, strict=False):
            _draw(axes, duty, measures)
        for axes in panels[len(duties) :]:
            axes.set_axis_off()
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=5)
        add_title(figure, [report.name, "motor shafts"] if measures.title else [], measures)
        drawn.figure = figure
    return figure


def _draw(axes: Axes, duty: MotorDuty, size: Size) -> None:
    torque, speed, share = (
        values.reshape(-1, values.shape[-1])[:DRAWN_RUNS]
        for values in (duty.torque, duty.speed, duty.share)
    )
    _draw_ratings(axes, duty, size)
    for k in range(len(torque)):
        label: dict[str, Any] = {"label": "motion"} if k == 0 else {}
        axes.plot(speed[k], torque[k], color=WITHIN, linewidth=size.line, **label)
    over = share > 1 + 1e-9
    if over.any():
        dots: dict[str, Any] = {"s": 2.5 * size.line**2 + 2, "zorder": 4, "linewidths": 0}
        axes.scatter(speed[over], torque[over], color=BEYOND, label="beyond", **dots)
    axes.axhline(0, color=GREY, linewidth=0.5 * size.line, zorder=0)
    axes.axvline(0, color=GREY, linewidth=0.5 * size.line, zorder=0)
    axes.set(xlabel=f"speed [{duty.units[1]}]", ylabel=f"torque [{duty.units[0]}]")
    axes.set_title(readable(duty.name))
    pin_ticks(axes)


def _draw_ratings(axes: Axes, duty: MotorDuty, size: Size) -> None:
    """Draw what the motor can give at each speed; of a batch, its first run."""
    r = duty.ratings
    fastest = float(np.max(duty.peak_speed))
    free = float(np.ravel(r.free_speed)[0])
    ends = ROOM * max(fastest, min(free, MOST_ROOM * fastest) if np.isfinite(free) else 0.0, 1e-9)
    speeds = np.linspace(-ends, ends, 801)
    first = type(r)(**{name: np.ravel(value)[0] for name, value in vars(r).items()})
    low, high = first.range_at(speeds)
    if np.isfinite(high).any():
        usable = high >= low
        axes.fill_between(
            speeds, low, high, where=list(usable), color=GREY, alpha=0.12, linewidth=0,
            label="can give",
        )  # fmt: skip
        axes.plot(speeds, np.where(usable, high, np.nan), color=GREY, linewidth=0.6 * size.line)
        axes.plot(speeds, np.where(usable, low, np.nan), color=GREY, linewidth=0.6 * size.line)
    steady: dict[str, Any] = {"color": INK, "linewidth": 0.7 * size.line}
    if np.isfinite(first.continuous):
        for sign, label in ((1, "continuous"), (-1, "_")):
            axes.plot(
                [-ends, ends], [sign * first.continuous] * 2, linestyle="--", label=label, **steady
            )
    rms = float(np.max(duty.rms_torque))
    axes.plot([-ends, ends], [rms] * 2, linestyle=":", label="root mean square", **steady)
    shown = [v for v in (float(np.max(duty.peak_torque)), rms, first.continuous) if np.isfinite(v)]
    tall = max(shown)
    if np.isfinite(first.limit):
        tall = max(tall, min(float(first.limit), MOST_ROOM * tall))
    tall = ROOM * max(tall, 1e-12)
    axes.set(xlim=_side(duty.speed, ends), ylim=_side(duty.torque, tall))


def _side(values: Any, end: float) -> tuple[float, float]:
    """Ends of an axis, with little of a side that the motion never reaches."""
    reached = 0.01 * float(np.nanmax(np.abs(values)))
    low = end if np.nanmin(values) < -reached else UNUSED * end
    high = end if np.nanmax(values) > reached else UNUSED * end
    return -low, high
