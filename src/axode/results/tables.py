"""Trajectories and sweeps as datasets of xarray, as DataFrames, and as tables in notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import require_package
from axode.printing.html import limited_table, notebook
from axode.results.arrow import require_pandas
from axode.results.sweep_arrays import as_host

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep
    from axode.results.trajectory import Trajectory


def require_xarray() -> Any:
    """Import xarray.

    Raises:
        NotApplicable: if it is not installed.
    """
    return require_package("xarray", "to_xarray needs xarray", "data")


def trajectory_dataset(run: Trajectory) -> Any:
    """Convert a trajectory; see `Trajectory.to_xarray`."""
    xarray = require_xarray()
    *runs, time = (free_name(name, run.names) for name in (*run_axes(run), "time"))
    columns = {
        name: ((*runs, time), run[name], {"units": unit, "kind": run.kinds[name]})
        for name, unit in zip(run.names, run.units, strict=True)
    }
    coordinates: dict[str, Any] = {time: (time, run.time, {"units": "s"})}
    coordinates |= {name: np.arange(size) for name, size in zip(runs, run.batch, strict=True)}
    if runs:
        ended = np.array(run.statuses, dtype=str).reshape(run.batch)
        coordinates[free_name("status", run.names)] = (runs, ended)
    attributes = {"model": run.name, "status": run.status} | _plain(run.info)
    return xarray.Dataset(columns, coordinates, attributes)


def sweep_dataset(
    sweep: Sweep, swept: Mapping[str, str], outputs: Mapping[str, str], rows: Any
) -> Any:
    """Convert a sweep; see `Sweep.to_xarray`.

    Args:
        sweep: The sweep.
        swept: Names of the swept values in a table, by name.
        outputs: Names of the outputs there.
        rows: Numbers of the rows.
    """
    xarray = require_xarray()
    grid = bool(sweep.axes) and tuple(map(len, sweep.axes.values())) == sweep.batch
    shape = sweep.batch if grid else (sweep.runs,)
    axes = [swept[name] for name in sweep.axes] if grid else ["row"]
    coordinates: dict[str, Any] = {}
    if grid:
        coordinates |= {swept[name]: np.asarray(along) for name, along in sweep.axes.items()}
    else:
        coordinates["row"] = rows
        for name, called in swept.items():
            coordinates[called] = (axes, as_host(sweep.samples[name]).reshape(shape))
    finished = as_host(sweep.finished).reshape(shape)
    columns = {
        called: (axes, as_host(sweep.arrays[name]).reshape(shape))
        for name, called in outputs.items()
    }
    taken = (*columns, *coordinates)
    return xarray.Dataset(
        columns, coordinates | {free_name("finished", taken): (axes, finished)}, _plain(sweep.info)
    )


def _plain(info: Mapping[str, Any]) -> dict[str, Any]:
    """Convert entries to attributes of a file: numbers and texts unchanged, the rest as JSON."""
    return {
        name: value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in info.items()
    }


def data_frame(trajectory: Trajectory) -> Any:
    """Convert to a DataFrame; see `Trajectory.to_pandas`."""
    pandas = require_pandas()
    there = np.arange(len(trajectory)) < trajectory.lengths[..., np.newaxis]
    *runs, samples = np.nonzero(there)
    times = trajectory.time[samples]
    if runs:
        names = [*run_axes(trajectory), "time"]
        index = pandas.MultiIndex.from_arrays([*runs, times], names=names)
    else:
        index = pandas.Index(times, name="time")
    frame = pandas.DataFrame(trajectory.values[there], index=index, columns=list(trajectory.names))
    frame.attrs = {
        "units": dict(zip(trajectory.names, trajectory.units, strict=True)),
        "kinds": dict(trajectory.kinds),
        "status": trajectory.status,
        "info": dict(trajectory.info),
    }
    return frame


def run_axes(run: Trajectory) -> list[str]:
    """Return names of the axes of a batch."""
    axes = len(run.batch)
    return ["run"] if axes == 1 else [f"run_{axis}" for axis in range(axes)]


def free_name(name: str, taken: tuple[str, ...]) -> str:
    """Return a name with as many underscores behind it as make it a new one."""
    while name in taken:
        name += "_"
    return name


# notebooks ----------------------------------------------------------------------------------------


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
