"""Parquet files and pandas: the libraries that read them, and columns of numbers in any file."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import check_expansion
from axode.disk.bounded import open_plain
from axode.errors import FileError, require_package

Array = npt.NDArray[np.float64]
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
