"""Read untrusted files: within a size limit, and without waiting forever."""

from __future__ import annotations

import errno
import os
import select
import stat
import time
from os import PathLike
from typing import IO

from axode.disk.atomic import system_path
from axode.errors import FileError

TIMEOUT = 5.0  # [s] without a byte from a pipe
MAX_STREAM = 32 << 20  # bytes from a pipe or a device, whose size is unknown
_CHUNK = 1 << 20


def read_bounded(path: str | PathLike[str], limit: int, kind: str, start: bytes = b"") -> bytes:
    """Read a file; of one that is too large, nothing where its size is known.

    Args:
        path: The file; a device or a pipe is read too.
        limit: In bytes.
        kind: What no file so large is, for the message.
        start: What the file must begin with: of any other, only as many bytes are read.

    Raises:
        FileError: if it is larger than the limit, or a pipe stays silent.
        OSError: if it cannot be read.
        ValueError: if the path holds a zero byte.
    """
    handle = _open(path)
    try:
        status = os.fstat(handle)
        plain = stat.S_ISREG(status.st_mode)
        limit = limit if plain else min(limit, MAX_STREAM)
        data = b""
        if not plain or status.st_size <= limit:
            data = _read(path, handle, limit, start, waits=not plain)
    finally:
        os.close(handle)
    if len(data) > limit or (plain and status.st_size > limit):
        raise FileError(f"{path} is larger than {limit >> 20} MiB, as no {kind} is.")
    return data


def open_plain(path: str | PathLike[str]) -> IO[bytes]:
    """Open a file whose parts are looked up by their places, as in an archive.

    Raises:
        FileError: if it is a pipe or a device.
        OSError: if it cannot be opened.
        ValueError: if the path holds a zero byte.
    """
    handle = _open(path)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise FileError(
                f"cannot read '{path}': it is a pipe or a device, and this needs a plain file.\n"
                "  Copy it to one first."
            )
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _open(path: str | PathLike[str]) -> int:
    """Open a file, but no folder, which Windows refuses to open as if it were not allowed."""
    place = system_path(path)
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    # without O_NONBLOCK opening waits for the writer of a pipe
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.open(place, flags)


def _read(
    path: str | PathLike[str], handle: int, limit: int, start: bytes, *, waits: bool
) -> bytes:
    parts: list[bytes] = []
    count = 0
    while count <= limit:
        if waits:
            _wait(path, handle)
        wanted = min(_CHUNK, limit + 1 - count) if parts or not start else len(start)
        try:
            part = os.read(handle, wanted)
        except BlockingIOError:
            continue
        parts.append(part)
        count += len(part)
        if not part or (start and count == len(start) and parts[0] != start):
            break
    return b"".join(parts)


def _wait(path: str | PathLike[str], handle: int) -> None:
    """Wait until a pipe or a terminal has something, or its end; on Windows, reading waits."""
    if not hasattr(select, "poll"):
        return
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    end = time.monotonic() + TIMEOUT
    while not poll.poll(max(0.0, end - time.monotonic()) * 1e3):
        if time.monotonic() >= end:
            raise FileError(
                f"cannot read '{os.fspath(path)!s}': nothing came through this pipe within "
                f"{TIMEOUT:g} s.\n  Start the program that fills it first, or name a plain file."
            )
