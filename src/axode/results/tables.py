"""Trajectories and sweeps as datasets of xarray, as DataFrames, and as tables in notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import check_expansion
from axode.disk.bounded import open_plain
from axode.errors import FileError, InvalidArgument, UnknownName, require_package
from axode.numerics.tolerances import SAME_TIME
from axode.results.columns import LazyValue, TrajectoryColumns, group_quaternions
from axode.results.sweep_arrays import as_host
from axode.results.trajectory import Trajectory

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep
    from axode.results.trajectory import Trajectory


INDEX = "__index_level_0__"  # what pandas calls an index without a name
PAGES = 1 << 16  # bytes that headers of pages may take
MAX_PACKED = 1 << 30  # bytes that any file may unpack to; more, only in proportion to its size


def require_pyarrow(what: str, instead: str = "") -> Any:
    """Import pyarrow and its Parquet module.

    Args:
        what: What needs it, for the message.
        instead: What else would help, for the message.

    Raises:
        NotApplicable: if it is not installed.
    """
    parquet = require_package("pyarrow.parquet", f"{what} needs pyarrow", "data", instead)
    return import_module("pyarrow"), parquet


def require_pandas() -> Any:
    """Import pandas.

    Raises:
        NotApplicable: if it is not installed.
    """
    return require_package("pandas", "to_pandas needs pandas", "data")


def read_number_columns(path: str | PathLike[str]) -> dict[str, Array]:
    """Columns of any Parquet file that holds numbers; missing values are NaN.

    Raises:
        FileError: if it holds anything else, or more than its size allows.
        OSError: if it cannot be read.
    """
    pa, pq = require_pyarrow("to read .parquet")
    with open_plain(path) as file:
        try:
            table = pq.ParquetFile(file)
            kinds = {field.name: field.type for field in table.schema_arrow if field.name != INDEX}
            check_expansion(
                file.seek(0, 2), 8 * table.metadata.num_rows * max(1, len(kinds)), MAX_PACKED
            )
            columns = {
                name: table.read([name]).column(0).to_numpy()
                for name, kind in kinds.items()
                if pa.types.is_integer(kind) or pa.types.is_floating(kind)
            }
        except FileError as error:
            raise FileError(f"'{path}' cannot be read: {error}") from None
        except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise FileError(f"'{path}' is not a Parquet file, or damaged: {reason}") from None
    text = [name for name in kinds if name not in columns]
    if text:
        raise FileError(f"'{path}': columns {', '.join(text)} do not hold numbers")
    return {name: np.asarray(column, dtype=float) for name, column in columns.items()}


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
    from axode.printing.mathml import limited_table, notebook

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
    from axode.printing.mathml import limited_table, notebook

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


# joined runs --------------------------------------------------------------------------------------


ACCUMULATED = ("supplied", "dissipated", "error")  # energies that count from the start of a run


def join(pieces: Sequence[Trajectory], *, shift: bool) -> Trajectory:
    """Join trajectories end to end; see `Trajectory.concatenate`."""
    if not pieces:
        raise InvalidArgument("concatenate: one or more trajectories are needed")
    result = pieces[0]
    for number, piece in enumerate(pieces[1:], start=2):
        try:
            result = _pair(result, piece, shift)
        except InvalidArgument as error:
            raise InvalidArgument(f"trajectory {number} cannot follow: {error}") from None
    return result


def _pair(first: Trajectory, second: Trajectory, shift: bool) -> Trajectory:
    _check_columns(first, second)
    second = second[first.names]
    if shift:
        second = _moved(second, float(first.time[-1] - second.time[0]))
    shared = _find_shared_sample(first, second)
    lengths = _check_ends(first, second, shared)
    went_on = first.lengths.reshape(-1) == len(first)
    earlier, later = (np.array(piece.statuses, dtype=object) for piece in (first, second))
    statuses = tuple(np.where(went_on, later, earlier).tolist())
    status = second.status if statuses == second.statuses else ""
    time = np.concatenate([first.time, second.time[shared:]])
    follow = dict(zip(first.names, second.names, strict=True))

    def compute(name: str) -> Any:
        both = [first[name], _counted_on(first, second, shared, name, follow[name])]
        return np.concatenate(both, axis=-1)

    def resume(times: npt.NDArray[np.float64]) -> TrajectoryColumns | None:
        return _pieces_at(first, second, shared, follow, times)

    return first.changed(
        time=time,
        values=TrajectoryColumns((*first.batch, len(time)), compute, resume),
        events=LazyValue(lambda _: (*first.events, *second.events)),
        status=status,
        statuses=statuses,
        info=_info(first.info, second.info),
        lengths=lengths,
    )


def _check_columns(first: Trajectory, second: Trajectory) -> None:
    lacking = [name for name in first.names if name not in second]
    besides = [name for name in second.names if name not in first]
    if lacking or besides:
        faults = (("it lacks", lacking), ("it alone has", besides))
        texts = (f"{verb} {', '.join(map(repr, names))}" for verb, names in faults if names)
        raise InvalidArgument("; ".join(texts))
    for name in first.names:
        if first.unit(name) != second.unit(name):
            raise InvalidArgument(
                f"'{name}' is in '{second.unit(name)}' here and in '{first.unit(name)}' before"
            )
        if first.kinds[name] != second.kinds[name]:
            raise InvalidArgument(
                f"'{name}' is of kind '{second.kinds[name]}' here and '{first.kinds[name]}' before"
            )
    if first.batch != second.batch:
        raise InvalidArgument(f"its batch is {second.batch}, and before it was {first.batch}")


def _moved(piece: Trajectory, by: float) -> Trajectory:
    events = tuple(replace(event, time=event.time + by) for event in piece.events)
    return replace(piece, time=piece.time + by, events=events)


def _find_shared_sample(first: Trajectory, second: Trajectory) -> bool:
    """Return whether one sample ends the first and starts the second; times must continue."""
    ways = {float(np.sign(piece.time[-1] - piece.time[0])) for piece in (first, second)} - {0.0}
    if len(ways) > 1:
        raise InvalidArgument("its time goes the other way")
    end, start, forward = first.time[-1], second.time[0], max(ways, default=1.0)
    shared = bool(abs(start - end) <= SAME_TIME * max(abs(end), abs(start)))
    if not shared and forward * (start - end) < 0:
        raise InvalidArgument(
            f"it starts at {start:g} s, before the end at {end:g} s.\n"
            "  Remedy: Trajectory.concatenate(..., shift=True), or .between(t0, t1) of either"
        )
    return shared


def _check_ends(first: Trajectory, second: Trajectory, shared: bool) -> Any:
    goes_on = (first.lengths < len(first)) & (second.lengths > shared)
    if goes_on.any():
        run = int(np.flatnonzero(goes_on.reshape(-1))[0])
        ended = np.reshape(first.ended, -1)[run]
        raise InvalidArgument(f"run {run} had ended at {ended:g} s and goes on here")
    return first.lengths + np.maximum(second.lengths - shared, 0)


def _counted_on(
    first: Trajectory, second: Trajectory, shared: bool, name: str, other: str
) -> npt.NDArray[np.float64]:
    """Column of the second without the shared sample; energies count from the first's start."""
    column = second[other]
    if not shared:
        return column
    before = _counted_before(first, second, name, other)
    return (column + before if np.any(before != 0) else column)[..., 1:]


def _counted_before(first: Trajectory, second: Trajectory, name: str, other: str) -> Any:
    """What the first has counted more than the second at their shared sample."""
    if first.kinds[name] == "energy" and name.rpartition(".")[2] in ACCUMULATED:
        return first[name][..., -1:] - second[other][..., :1]
    return 0.0


def _pieces_at(
    first: Trajectory,
    second: Trajectory,
    shared: bool,
    follow: Mapping[str, str],
    times: npt.NDArray[np.float64],
) -> TrajectoryColumns | None:
    """Columns at other times, of the part in which each lies; None where one has no such column."""
    forward = np.sign(second.time[-1] - first.time[0])
    early = forward * times <= forward * first.time[-1]
    if not shared and (forward * times[~early] < forward * second.time[0]).any():
        return None
    made = []
    for piece, part in ((first, times[early]), (second, times[~early])):
        columns = piece.columns_at(part) if part.size else None
        if part.size and columns is None:
            return None
        made.append(columns)

    def compute(name: str) -> Any:
        parts = [] if made[0] is None else [made[0].get(name)]
        if made[1] is not None:
            counted = _counted_before(first, second, name, follow[name]) if shared else 0.0
            parts.append(made[1].get(follow[name]) + counted)
        return np.concatenate(parts, axis=-1)

    return TrajectoryColumns((*first.batch, len(times)), compute)


def _info(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    shared = {key: value for key, value in first.items() if second.get(key, ...) == value}
    pieces = [one for info in (first, second) for one in info.get("pieces", [dict(info)])]
    return {**shared, "pieces": pieces}


def widened(
    trajectory: Trajectory,
    columns: Mapping[str, npt.ArrayLike],
    units: Mapping[str, str],
    kind: str,
) -> Trajectory:
    """A trajectory with more columns; see `Trajectory.with_columns`."""
    shape = (*trajectory.batch, len(trajectory))
    for name in units:
        if name not in columns:
            raise UnknownName("with_columns", "column", name, tuple(columns))
    added = {}
    beyond = np.arange(len(trajectory)) >= trajectory.lengths[..., np.newaxis]
    for name, column in columns.items():
        try:
            added[name] = np.empty(shape)
            added[name][...] = column
        except ValueError as error:
            raise InvalidArgument(
                f"'{name}' has shape {np.shape(column)}; (*batch, T) is {shape}"
            ) from error
        added[name][beyond] = np.nan
    return trajectory.changed(
        values=TrajectoryColumns(shape, lambda n: added[n] if n in added else trajectory[n]),
        names=(*trajectory.names, *columns),
        units=(*trajectory.units, *(units.get(name, "") for name in columns)),
        kinds={**trajectory.kinds, **dict.fromkeys(columns, kind)},
        quaternions=(*trajectory.quaternions, *group_quaternions(columns)),
    )
