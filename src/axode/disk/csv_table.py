"""Tables of numbers in text files: a line of names, then a line of cells per row."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt

from axode.disk.bounded import read_bounded
from axode.errors import FileError

Array = npt.NDArray[np.float64]
MAX_CSV = 256 << 20  # bytes


def read_csv(path: Path, kind: str) -> dict[str, Array]:
    """Columns by name; cells are separated by commas, semicolons or tabs.

    Args:
        path: The file.
        kind: What it holds, for the message about one that is too large.

    Raises:
        FileError: if it is not such a table, with the line.
        OSError: if it cannot be read.
    """
    import csv

    try:
        text = read_bounded(path, MAX_CSV, kind).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"'{path}' is not a text file, and .csv is text") from None
    lines = [
        (n, line)
        for n, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        raise FileError(f"'{path}' is empty; its first line should name the columns")
    comma = max(",;\t", key=lines[0][1].count)
    try:
        rows = list(csv.reader((line for _, line in lines), delimiter=comma, strict=True))
    except csv.Error as error:
        raise FileError(f"'{path}' is not a table: {error}") from None
    names = [name.strip() for name in rows[0]]
    numbers = [number for number, _ in lines[1:]]
    values = _as_numbers(path, names, rows[1:], numbers)
    for name, times in Counter(names).items():
        if times > 1:
            raise FileError(f"'{path}' has two columns '{name}'")
    return dict(zip(names, np.ascontiguousarray(values.T), strict=True))


def _as_numbers(path: Path, names: list[str], rows: list[list[str]], lines: list[int]) -> Array:
    if {len(row) for row in rows} <= {len(names)}:
        with contextlib.suppress(ValueError):
            return np.array(rows, dtype=float).reshape(-1, len(names))
    for number, row in zip(lines, rows, strict=False):
        if len(row) != len(names):
            raise FileError(f"'{path}', line {number}: {len(row)} cells for {len(names)} columns")
        for cell, name in zip(row, names, strict=True):
            _check_cell(path, number, cell, name)
    raise FileError(f"'{path}' is not a table of numbers")


def _check_cell(path: Path, line: int, text: str, name: str) -> None:
    try:
        float(text)
    except ValueError:
        raise FileError(
            f"'{path}', line {line}: '{text.strip()}' under '{name}' is not a number"
        ) from None
