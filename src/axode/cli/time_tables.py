"""Files of named columns over time: results of `simulate` and `inverse`, and motions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.disk.bounded import open_plain
from axode.disk.csv_table import read_csv
from axode.disk.npz import UNREADABLE, NpzFile
from axode.errors import FileError

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
ENDINGS = (".npz", ".csv", ".parquet")
LOGS = {".mcap": "to_mcap", ".rrd": "to_rerun"}  # methods that write the motion for other programs
TIME = ("time", "t")  # what the column of times may be called


def save_columns(run: Trajectory, path: Path) -> None:
    """Write a trajectory in the format that the ending names.

    Raises:
        FileError: if it cannot be written.
    """
    ending = path.suffix.lower()
    if ending in LOGS:
        getattr(run, LOGS[ending])(path, forces=True)
        return
    if ending != ".csv":
        run.save(path)
        return
    from axode.cli.shared import write_text

    lines = [",".join(map(_quote, ("time", *run.names)))]
    table = np.column_stack([run.time, run.values])
    lines += [",".join(map(repr, row)) for row in table.tolist()]
    write_text(path, "\n".join(lines) + "\n")


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if set(name) & set(',;"\n') else name


def load_columns(path: Path) -> Trajectory | dict[str, Array]:
    """Read a trajectory that Axode wrote, or the columns of any table by name.

    Raises:
        FileError: if it cannot be read, with the line.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"'{path}': a motion's file ends in {', '.join(ENDINGS)}")
    try:
        if ending == ".csv":
            return _check_columns(path, read_csv(path, "table of a motion"))
        return _read_binary(path)
    except OSError as error:
        raise FileError(f"cannot read '{path}': {error.strerror or error}") from None


def _read_binary(path: Path) -> Trajectory | dict[str, Array]:
    from axode.results.trajectory import Trajectory

    try:
        return Trajectory.load(path)
    except FileError as refusal:
        if path.suffix.lower() != ".npz" or "not a trajectory" not in str(refusal):
            raise
    try:
        with open_plain(path) as file:
            data = NpzFile(file)
            columns = {name: np.asarray(data.read(name), dtype=float) for name in data.names}
    except FileError as error:
        raise FileError(f"'{path}' cannot be read: {error}") from None
    except UNREADABLE:
        raise FileError(f"'{path}' is not a file of NumPy's that holds arrays of numbers") from None
    return _check_columns(path, columns)


def _check_columns(path: Path, columns: dict[str, Array]) -> dict[str, Array]:
    if not set(TIME) & set(columns):
        raise FileError(f"'{path}' has no column 'time'; it has {', '.join(columns)}")
    lengths = {name: column.shape for name, column in columns.items()}
    if len(set(lengths.values())) > 1 or len(next(iter(lengths.values()))) != 1:
        raise FileError(f"'{path}': the columns differ in length: {lengths}")
    return columns


def as_trajectory(model: Any, columns: dict[str, Array]) -> Trajectory | None:
    """Return a trajectory of the model from columns that hold a whole state, else None."""
    state = (*model.coordinates, *model.independent)
    if not set(state) <= set(columns):
        return None
    from axode.results.trajectory import Trajectory

    known = [name for name in (*state, *model.inputs) if name in columns]
    kinds = (
        dict.fromkeys(model.coordinates, "coordinate")
        | dict.fromkeys(model.independent, "independent")
        | dict.fromkeys(model.inputs, "input")
    )
    return Trajectory(
        time=time_of(columns),
        values=np.column_stack([columns[name] for name in known]),
        names=tuple(known),
        units=("",) * len(known),
        kinds={name: kinds[name] for name in known},
        info={"model": model.name},
    )


def time_of(columns: dict[str, Array]) -> Array:
    """Return the column of times."""
    return columns[next(name for name in TIME if name in columns)]
