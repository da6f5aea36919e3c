"""Tables of rows to compute: arrays by name, DataFrames, and files of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import read_csv
from axode.disk.atomic import as_path
from axode.errors import FileError, InvalidArgument, shortened
from axode.results.arrow import read_number_columns

Array = npt.NDArray[np.float64]
ENDINGS = (".csv", ".parquet")


def read_table(samples: Any) -> dict[str, Array]:
    """Columns of a table by name, all of one length.

    Args:
        samples: Arrays by name, a DataFrame of pandas or Polars, a table of Arrow, or the path of a
            file.

    Raises:
        InvalidArgument: listing everything that is wrong with the columns.
        FileError: if a file cannot be read.
    """
    if isinstance(samples, str | PathLike):
        return _check(_read_file(as_path(samples)).items())
    if isinstance(samples, Mapping):
        return _check(samples.items())
    if hasattr(samples, "collect"):
        samples = samples.collect()  # a query of Polars
    names = list(getattr(samples, "column_names", samples.columns))  # Arrow, or a DataFrame
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidArgument(f"samples: the table has two columns {shortened(twice[0])}")
    return _check((name, samples[name]) for name in names)


def _read_file(path: Path) -> dict[str, Array]:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"'{path}': a table of samples ends in {' or '.join(ENDINGS)}")
    try:
        return read_csv(path, "table of samples") if ending == ".csv" else read_number_columns(path)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise FileError(f"cannot read '{path}': {getattr(error, 'strerror', error)}") from None


def _check(columns: Iterable[tuple[Any, Any]]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    faults = []
    for name, values in columns:
        if not isinstance(name, str):
            faults.append(f"column {shortened(name)}: its name should be text")
            continue
        try:
            column = np.array(without_mask(values))
            wrong = column.dtype.kind not in "fiu" and not _is_numbers(column)
            column = column if wrong else column.astype(float)
        except (TypeError, ValueError, OverflowError):
            wrong = True
        if wrong:
            listed = getattr(values, "tolist", lambda values=values: values)()  # of pandas, Polars
            faults.append(f"column '{name}': expected numbers, got {shortened(listed)}")
        elif column.ndim != 1:
            faults.append(f"column '{name}': expected a list of numbers, got shape {column.shape}")
        else:
            found[name] = column
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {length}" for name, length in lengths.items())
        faults.append(f"the columns differ in length: {sizes}")
    elif not faults and not any(lengths.values()):
        faults.append("the table is empty; it needs a column for each swept value, and rows")
    if faults:
        raise InvalidArgument("\n  ".join(["samples: the table cannot be used.", *faults]))
    return found


def without_mask(values: Any) -> Any:
    """Return masked numbers as NaN, and anything else as it is."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(float), np.nan)
    return values


def _is_numbers(column: npt.NDArray[Any]) -> bool:
    """Return whether objects are numbers or missing ones, as DataFrames keep them."""
    return column.dtype == object and all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        for value in column.tolist()
    )
