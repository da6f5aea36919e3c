"""Modes of contacts over time, as strips, with what the contacts did."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from axode.errors import InvalidArgument
from axode.show.contact_marks import MODES
from axode.show.style import INK, add_title, drawing, new_figure, readable, sized

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from axode.results.trajectory import Trajectory

HIGH = 0.62  # of the distance between two strips
STRUCK = ("strikes", "lands")


def plot_modes(
    run: Trajectory, *, size: str = "screen", save: str | PathLike[str] | None = None
) -> Figure:
    """Draw when each contact sticks, slips and is open; see `Trajectory.plot_modes`.

    Raises:
        InvalidArgument: for a run without modes.
    """
    sized(size)
    modes = run.modes
    if not modes:
        raise InvalidArgument(
            "plot_modes: the run has no modes; simulate a mechanism with friction or stops from "
            'event to event, contacts="events"'
        )
    with drawing(size, save) as drawn:
        measures = drawn.measures
        figure = new_figure(measures.width, (0.32 * len(modes) + 0.8) * measures.panel / 1.6)
        axes = figure.subplots()
        end = float(run.time[-1])
        shown: dict[str, Any] = {}
        for k, spans in enumerate(modes.values()):
            for (begin, mode), (until, _) in zip(spans, [*spans[1:], (end, "")], strict=True):
                if mode in MODES and until > begin:
                    (shown[mode],) = axes.barh(
                        k, until - begin, HIGH, begin, color=MODES[mode], linewidth=0
                    )
        places = {name: k for k, name in enumerate(modes)}
        struck = [e for e in run.contact_events if e["what"] in STRUCK]
        if struck:
            times, rows = [e["time"] for e in struck], [places[e["contact"]] for e in struck]
            marks: dict[str, Any] = {"marker": "|", "color": INK, "s": 40 * measures.line}
            shown["impact"] = axes.scatter(times, rows, zorder=3, **marks)
        axes.set(xlim=(float(run.time[0]), end), ylim=(len(modes) - 0.5, -0.5), xlabel="time [s]")
        axes.set_yticks(range(len(modes)), [readable(name) for name in modes])
        axes.tick_params(axis="y", length=0)
        figure.legend(shown.values(), shown.keys(), loc="outside lower left", ncols=4)
        add_title(figure, [run.name, "contacts"] if measures.title else [], measures)
        drawn.figure = figure
    return figure
