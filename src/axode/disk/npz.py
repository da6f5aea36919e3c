"""Arrays from NumPy's .npz files, whose declared sizes are checked before anything is read."""

from __future__ import annotations

import math
import struct
import tokenize
import zipfile
import zlib
from typing import IO, Any

import numpy as np
import numpy.typing as npt

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
