"""Trajectories in files, NumPy's and Parquet. Data only, never code."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import UNREADABLE, NpzFile, check_expansion
from axode.disk.atomic import as_path, write_atomically
from axode.disk.bounded import as_type, open_plain, parse_json
from axode.errors import AxodeError, FileError
from axode.results.columns import Event
from axode.results.tables import MAX_PACKED, PAGES, free_name, require_pyarrow, run_axes
from axode.results.trajectory import Trajectory

FORMAT = 1
KEY = "axode.trajectory"
DIGEST = "axode.sha256"
NPZ = ", or a file that ends in .npz"  # what a trajectory can be saved to without an extra
_FIELDS = ("names", "units", "status", "statuses", "info", "quaternions")
_EVENT = ("name", "time", "index_of_run", "state")  # what is kept of an event

Array = npt.NDArray[np.float64]


def save(trajectory: Trajectory, path: str | PathLike[str]) -> None:
    """Write a trajectory in the format that the ending of the path names."""
    encode, _ = _format(path)
    write_atomically(Path(path), encode(trajectory))


def load(path: str | PathLike[str]) -> Trajectory:
    """Read a trajectory in the format that the ending of the path names."""
    _, decode = _format(path)
    if decode is None:
        raise FileError(
            f"'{path}': a .csv file has no units and no kinds of columns, and is not read back.\n"
            "  Remedy: save to .npz or .parquet; pandas.read_csv reads the numbers"
        )
    try:
        with open_plain(path) as file:
            start = file.read(4)
            file.seek(0)
            return cast(Trajectory, decode(file, start))
    except _Foreign as error:
        raise FileError(
            f"'{path}' is not a trajectory of Axode; write one with trajectory.save(...)."
        ) from error
    except _OtherFormat as error:
        raise FileError(
            f"'{path}' has format {error}; this Axode reads format {FORMAT}.\n"
            "  Remedy: read it with the version of Axode that wrote it, or a newer one"
        ) from error
    except _Damaged as error:
        raise FileError(
            f"'{path}' is truncated or damaged: {error}.\n  Remedy: save the trajectory again"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot read '{path}': {reason}") from error


class _Foreign(Exception):
    """A file that something else wrote."""


class _OtherFormat(Exception):
    """A trajectory in a format of another version."""


class _Damaged(Exception):
    """A trajectory that is not whole."""


def _format(path: str | PathLike[str]) -> Any:
    formats = {
        ".npz": (_to_npz, _from_npz),
        ".parquet": (_to_parquet, _from_parquet),
        ".csv": (_to_csv, None),
    }
    suffix = as_path(path).suffix.lower()
    if suffix not in formats:
        raise FileError(
            f"'{path}': a trajectory's file ends in .npz, .parquet or .csv.\n"
            "  For other formats: trajectory.to_pandas() or .to_xarray(), and what these write"
        )
    return formats[suffix]


def _to_csv(trajectory: Trajectory) -> bytes:
    """Write a table of the samples that runs have: indices of the run, the time, all columns."""
    there = np.arange(len(trajectory)) < trajectory.lengths[..., np.newaxis]
    *runs, samples = np.nonzero(there)
    axes = [free_name(axis, trajectory.names) for axis in run_axes(trajectory) if runs]
    rows = np.column_stack([trajectory.time[samples], trajectory.values[there]]).tolist()
    numbers = np.reshape(runs, (len(axes), len(rows))).T.tolist()
    file = io.StringIO(newline="")
    table = csv.writer(file, lineterminator="\n")
    table.writerow([*axes, "time", *trajectory.names])
    table.writerows([*run, *row] for run, row in zip(numbers, rows, strict=True))
    return file.getvalue().encode()


# what is not a number ----------------------------------------------------------------------------


def _check_start(start: bytes, magic: bytes) -> None:
    if start != magic:
        raise _Damaged("it is too short") if magic.startswith(start) else _Foreign


def _header(trajectory: Trajectory) -> str:
    header = {name: getattr(trajectory, name) for name in _FIELDS}
    header["kinds"] = [trajectory.kinds[name] for name in trajectory.names]
    header["events"] = [
        {name: getattr(event, name) for name in _EVENT} for event in trajectory.events
    ]
    header["shape"] = (*trajectory.batch, len(trajectory), len(trajectory.names))
    header["lengths"] = trajectory.lengths.tolist()
    return json.dumps({"format": FORMAT, **header})


# Types of what a description holds; `info` may be anything that JSON has.
_TYPES = {
    "names": tuple[str, ...],
    "units": tuple[str, ...],
    "kinds": tuple[str, ...],
    "status": str,
    "statuses": tuple[str, ...],
    "quaternions": tuple[tuple[str, ...], ...],
    "shape": tuple[int, ...],
}


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        header = parse_json(text)
        version = header["format"]
    except (FileError, KeyError, TypeError) as error:
        raise _Damaged("its description cannot be read") from error
    if version != FORMAT:
        raise _OtherFormat(ascii(version)[:20])
    try:
        header |= {key: as_type(hint, header[key], key) for key, hint in _TYPES.items()}
        if not isinstance(header["info"], dict) or len(header["shape"]) < 2:
            raise FileError("its description has another structure")
        as_type(str, header["info"].get("model", ""), "model")
    except KeyError as error:
        raise _Damaged(f"its description has no entry {error}") from error
    except FileError as error:
        raise _Damaged(str(error)) from error
    return cast(dict[str, Any], header)


def _trajectory(header: dict[str, Any], time: Array, values: Array) -> Trajectory:
    try:
        fields = {name: header[name] for name in _FIELDS}
        events = tuple(
            Event(**{name: event[name] for name in _EVENT}) for event in header["events"]
        )
        for event in events:
            as_type(str, event.name, "the name of an event")
        kinds = dict(zip(header["names"], header["kinds"], strict=True))
        lengths = np.array(header["lengths"], dtype=np.intp)
        return Trajectory(
            time=time,
            values=values.reshape(header["shape"]),
            kinds=kinds,
            events=events,
            lengths=lengths,
            **fields,
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, AxodeError) as error:
        raise _Damaged(str(error)) from error


# NumPy -------------------------------------------------------------------------------------------


def _to_npz(trajectory: Trajectory) -> bytes:
    file = io.BytesIO()
    header = {KEY: np.array(_header(trajectory))}
    np.savez(file, time=trajectory.time, values=trajectory.values, **header)  # type: ignore[arg-type]
    return cast(bytes, file.getbuffer())  # what can be written; getvalue() would copy it all


def _from_npz(file: IO[bytes], start: bytes) -> Trajectory:
    _check_start(start, b"PK\x03\x04")
    try:
        data = NpzFile(file)
        if KEY not in data:
            raise _Foreign
        header = _parsed(str(data.read(KEY)))
        time, values = (_numbers(data.read(name)) for name in ("time", "values"))
    except (*UNREADABLE, FileError) as error:
        raise _Damaged(str(error).rstrip(".") or "it is too short") from error
    return _trajectory(header, time, values)


def _numbers(array: npt.NDArray[Any]) -> Array:
    """Doubles as they were written, without a copy."""
    if array.dtype != np.float64:
        raise _Damaged(f"it holds {array.dtype} instead of float64")
    return cast(Array, array)


# Parquet -----------------------------------------------------------------------------------------


def _to_parquet(trajectory: Trajectory) -> bytes:
    pa, pq = require_pyarrow("to write .parquet", NPZ)
    *batch, samples, width = trajectory.values.shape
    values = trajectory.values.reshape(trajectory.count * samples, width)
    indices = np.indices((*batch, samples)).reshape(-1, len(values))
    axes = [free_name(name, trajectory.names) for name in (*run_axes(trajectory), "time")]
    columns = [*indices[:-1], trajectory.time[indices[-1]], *values.T]
    units = (*("" for _ in indices[:-1]), "s", *trajectory.units)
    arrays = [pa.array(np.ascontiguousarray(column)) for column in columns]
    fields = [
        pa.field(name, array.type, nullable=False, metadata={"unit": unit})
        for name, array, unit in zip((*axes, *trajectory.names), arrays, units, strict=True)
    ]
    header = _header(trajectory)
    digest = _digest(header.encode(), trajectory.time, trajectory.values)
    schema = pa.schema(fields, metadata={KEY: header, DIGEST: digest})
    file = io.BytesIO()
    # Numbers of a motion hardly repeat: a dictionary of them would save nothing.
    pq.write_table(
        pa.Table.from_arrays(arrays, schema=schema), file, compression="zstd", use_dictionary=False
    )
    return cast(bytes, file.getbuffer())


def _from_parquet(file: IO[bytes], start: bytes) -> Trajectory:
    pa, pq = require_pyarrow("to read .parquet", NPZ)
    _check_start(start, b"PAR1")
    try:
        table = pq.ParquetFile(file)
        metadata = table.schema_arrow.metadata or {}
        if KEY.encode() not in metadata:
            raise _Foreign
        header = _parsed(metadata[KEY.encode()])
        _check_columns(table.metadata, header["shape"])
        check_expansion(file.seek(0, 2), 8 * math.prod(header["shape"]), MAX_PACKED)
        columns = [column.to_numpy() for column in table.read().columns]
    except (pa.ArrowException, ValueError, TypeError, OSError, MemoryError, FileError) as error:
        raise _Damaged(str(error).partition("\n")[0].rstrip(".")) from error
    *batch, samples, _ = header["shape"]
    time, values = columns[len(batch)][:samples], columns[len(batch) + 1 :]
    if any(column.dtype != np.float64 for column in (time, *values)):
        raise _Damaged("it holds other numbers than float64")
    stacked = np.stack(values, axis=-1) if values else np.empty((len(columns[0]), 0))
    result = _trajectory(header, time, stacked)
    if metadata.get(DIGEST.encode()) != _digest(metadata[KEY.encode()], time, stacked):
        raise _Damaged("its checksum does not match")
    return result


def _check_columns(found: Any, shape: tuple[int, ...]) -> None:
    """Compare what a file's footer declares with its description, before anything is unpacked."""
    *batch, samples, width = shape
    rows = math.prod(batch) * samples
    if min(shape) < 0 or (found.num_rows, found.num_columns) != (rows, len(batch) + 1 + width):
        raise _Damaged(
            f"{found.num_rows} rows of {found.num_columns} columns instead of {rows} of "
            f"{len(batch) + 1 + width}"
        )
    groups = [found.row_group(k) for k in range(found.num_row_groups)]
    if sum(group.num_rows for group in groups) != rows:
        raise _Damaged("its parts have other numbers of rows than the whole")
    for group in groups:
        for column in (group.column(k) for k in range(group.num_columns)):
            bound = 16 * group.num_rows + PAGES
            sound = column.physical_type in ("DOUBLE", "INT64") and not column.has_dictionary_page
            if not sound or column.num_values != group.num_rows:
                raise _Damaged(f"column '{column.path_in_schema}' is not one of plain numbers")
            if column.total_uncompressed_size > bound:
                raise _Damaged(f"column '{column.path_in_schema}' has more bytes than numbers")


def _digest(header: bytes, time: Array, values: Array) -> bytes:
    """Digest of all that is read back: Parquet has checksums of its pages, not of its footer."""
    digest = hashlib.sha256(header)
    for array in (time, values):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest().encode()
