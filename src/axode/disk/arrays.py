"""Arrays from .npz files of NumPy, whose sizes are checked first, and from tables of text."""

from __future__ import annotations

import contextlib
import math
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from axode.disk.bounded import read_bounded
from axode.errors import FileError

# Beyond this size in bytes, content may be at most this many times as large as the file.
MAX_BYTES = 256 << 20
MAX_EXPANSION = 50
# What NumPy and zipfile raise at a file that is not whole.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    KeyError,
    EOFError,
    RuntimeError,
    OSError,
    OverflowError,
    NotImplementedError,
    TypeError,
    SyntaxError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)

AnyArray = npt.NDArray[Any]


class NpzFile:
    """The members of an open file; each is checked when it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0, 2)
        self._size = file.tell()
        file.seek(0)
        self._zip = zipfile.ZipFile(file)
        self._members = {
            info.filename.removesuffix(".npy"): info
            for info in self._zip.infolist()
            if info.filename.endswith(".npy")
        }
        check_expansion(self._size, sum(info.file_size for info in self._members.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return tuple(self._members)

    def read(self, name: str) -> AnyArray:
        """Read one array.

        Raises:
            FileError: if its header, its size and its place in the file contradict each other.
        """
        info = self._members[name]
        with self._zip.open(info) as member:
            version = np.lib.format.read_magic(member)
            if version not in ((1, 0), (2, 0)):
                raise FileError(f"'{name}' has format {version} of NumPy's arrays")
            read_header: Any = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, fortran, dtype = read_header(member)
            count = math.prod(shape)
            if dtype.hasobject:
                raise FileError(f"'{name}': Object arrays cannot be loaded, for they may run code")
            if dtype.kind not in "fiubU":
                raise FileError(f"'{name}' holds {dtype}, not numbers")
            if member.tell() + count * dtype.itemsize != info.file_size:
                raise FileError(f"'{name}' has another size than its header says")
            array = np.frombuffer(member.read(), dtype=dtype, count=count)
        return array.reshape(shape, order="F" if fortran else "C")


def check_expansion(size: int, declared: int, free: int = MAX_BYTES) -> None:
    """Refuse a small file that unpacks to a memory full of numbers.

    Args:
        size: Size of the file in bytes.
        declared: Number of bytes that it claims to hold.
        free: Bytes that a file of any size may hold.

    Raises:
        FileError: saying both sizes.
    """
    if declared > max(free, MAX_EXPANSION * size):
        raise FileError(
            f"its {size >> 10} kB unpack to {declared >> 20} MiB, more than {MAX_EXPANSION} times "
            "as much"
        )


# tables of text -----------------------------------------------------------------------------------


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
            try:
                float(cell)
            except ValueError:
                raise FileError(
                    f"'{path}', line {number}: '{cell.strip()}' under '{name}' is not a number"
                ) from None
    raise FileError(f"'{path}' is not a table of numbers")
