"""What notebooks show of trajectories and sweeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.printing.html import limited_table, notebook

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]


def trajectory_html(trajectory: Trajectory) -> str:
    """Columns with units, ends and extremes; extremes only for a batch."""
    one = not trajectory.batch
    heads = ("", "unit", "kind", *(("first", "last") if one else ()), "min", "max")
    final, rows = trajectory.final, []
    for name, unit in zip(trajectory.names, trajectory.units, strict=True):
        values = trajectory[name]
        ends = (_text(values[0]), _text(final[name])) if one else ()
        rows.append((name, unit, trajectory.kinds[name], *ends, *_extremes(values)))
    events = [f"{event.name} at t = {event.time:.6g} s" for event in trajectory.events[:5]]
    events += ["..."] * (len(trajectory.events) > 5)
    return notebook(repr(trajectory), limited_table(heads, rows), more=", ".join(events))


def sweep_html(sweep: Sweep) -> str:
    """Outputs with their extremes, and what was swept; chosen rows one by one."""
    title = repr(sweep).partition("\n")[0]
    if sweep.rows is not None:
        heads = ("row", *sweep.columns)
        columns = [*sweep.samples.values(), *sweep.arrays.values()]
        lines = [
            (str(row), *(_text(column[k]) for column in columns))
            for k, row in enumerate(sweep.rows.tolist())
        ]
        return notebook(title, limited_table(heads, lines))
    units = sweep.info.get("units", {})
    found = {("swept", name): _extremes(array) for name, array in sweep.axes.items()}
    if not found:
        found = {("swept", name): _ends(sweep.samples.extremes(name)) for name in sweep.samples}
    found |= {("output", name): _ends(sweep.arrays.extremes(name)) for name in sweep.arrays}
    rows = [(kind, name, units.get(name, ""), *ends) for (kind, name), ends in found.items()]
    return notebook(title, limited_table(("", "", "unit", "min", "max"), rows))


def _ends(found: tuple[float, float] | None) -> tuple[str, str]:
    return (_text(found[0]), _text(found[1])) if found else ("", "")


def _extremes(values: Array) -> tuple[str, str]:
    known = values[np.isfinite(values)]
    return (_text(known.min()), _text(known.max())) if known.size else ("", "")


def _text(value: float) -> str:
    return f"{value:.6g}" if np.isfinite(value) else ""
