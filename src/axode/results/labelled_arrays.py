"""Trajectories and sweeps as datasets of xarray: arrays with named axes, coordinates and units."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import NotApplicable
from axode.results.sweep_arrays import as_host

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep
    from axode.results.trajectory import Trajectory


def require_xarray() -> Any:
    """Import xarray.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import xarray
    except ModuleNotFoundError as missing:
        raise NotApplicable(
            "to_xarray needs xarray, which is not installed.\n  Remedy: pip install 'axode[data]'"
        ) from missing
    return xarray


def trajectory_dataset(run: Trajectory) -> Any:
    """Convert a trajectory; see `Trajectory.to_xarray`."""
    xarray = require_xarray()
    axes = len(run.batch)
    runs = ["run"] if axes == 1 else [f"run_{axis}" for axis in range(axes)]
    *runs, time = (_free(name, run.names) for name in (*runs, "time"))
    columns = {
        name: ((*runs, time), run[name], {"units": unit, "kind": run.kinds[name]})
        for name, unit in zip(run.names, run.units, strict=True)
    }
    coordinates: dict[str, Any] = {time: (time, run.time, {"units": "s"})}
    coordinates |= {name: np.arange(size) for name, size in zip(runs, run.batch, strict=True)}
    if runs:
        ended = np.array(run.statuses, dtype=str).reshape(run.batch)
        coordinates[_free("status", run.names)] = (runs, ended)
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
        columns, coordinates | {_free("finished", taken): (axes, finished)}, _plain(sweep.info)
    )


def _plain(info: Mapping[str, Any]) -> dict[str, Any]:
    """Convert entries to attributes of a file: numbers and texts unchanged, the rest as JSON."""
    return {
        name: value if isinstance(value, str | int | float) else json.dumps(value)
        for name, value in info.items()
    }


def _free(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name
