"""Write files whole or not at all; all of Axode writes files through this module."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from axode.errors import FileError, shortened

Bytes = bytes | bytearray | memoryview


def as_path(path: object) -> Path:
    """Return a path, or raise a `FileError` that shows what was given instead."""
    if isinstance(path, str | PathLike):
        return Path(path)
    raise FileError(f"expected the path of a file, got {shortened(path)}.")


def system_path(path: object) -> Path:
    """Return a path that the system accepts.

    Raises:
        FileError: if it is no path.
        ValueError: if it holds a zero byte, with the same message on every version of Python.
    """
    found = as_path(path)
    if "\0" in str(found):
        raise ValueError("embedded null byte")
    return found


def write_atomically(path: str | PathLike[str], data: Bytes) -> None:
    """Write a file next to its place and rename it.

    Raises:
        FileError: if the disk or the folder refuses; what was there before is still there.
    """
    try:
        replace_file(path, data)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"cannot write '{path}': {reason}") from error


def replace_file(path: str | PathLike[str], data: Bytes) -> None:
    """Write a file next to its place and rename it; an interrupted write leaves nothing behind.

    A link is followed, not replaced. A new file has the mode that the umask leaves, one that was
    there keeps its own. A device or a pipe is written to directly.

    Raises:
        OSError: if the disk or the folder refuses; what was there before is still there.
    """
    with _replaced(path) as file:
        file.write(data)


@contextlib.contextmanager
def stream_atomically(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes its place when the block ends, and is removed if the block fails.

    It can be read back and written at any place, as formats with an index need it.

    Raises:
        FileError: if the disk or the folder refuses; what was there before is still there.
    """
    try:
        system_path(path)
    except ValueError as error:
        raise FileError(f"cannot write '{path}': {error}") from error
    try:
        with _replaced(path) as file:
            yield file
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror or error}") from error


@contextlib.contextmanager
def _replaced(path: str | PathLike[str]) -> Iterator[BinaryIO]:
    target = Path(os.path.realpath(system_path(path)))
    status = target.stat() if target.exists() else None
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if status is not None and not stat.S_ISREG(status.st_mode):
        whole = io.BytesIO()
        yield whole
        _write_to_device(target, whole.getbuffer())
        return
    draft = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.part")
    with _removed_on_failure(draft):
        with _created(draft, 0o666) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if status is not None:
            os.chmod(draft, stat.S_IMODE(status.st_mode))
        os.replace(draft, target)


def replace_private_file(name: str, data: Bytes, folder: int) -> None:
    """Write a file that only this user can read, in a folder that is open; it may be lost.

    It does not wait for the disk: what reads such files must notice damage by itself.

    Raises:
        OSError: if the disk or the folder refuses; what was there before is still there.
    """
    draft = f"{name}.{secrets.token_hex(8)}.part"
    with _removed_on_failure(draft, folder):
        with _created(draft, 0o600, folder) as file:
            file.write(data)
        os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


def _created(path: str | Path, mode: int, folder: int | None = None) -> BinaryIO:
    """Create and open a file that must not exist, not as a link either."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, mode, dir_fd=folder), "w+b")


@contextlib.contextmanager
def _removed_on_failure(path: str | Path, folder: int | None = None) -> Iterator[None]:
    try:
        yield
    except BaseException:  # Ctrl-C too
        with contextlib.suppress(OSError):
            os.unlink(path, dir_fd=folder)
        raise


def _write_to_device(target: Path, data: Bytes) -> None:
    """Write to a device or a pipe; a pipe without a reader is an error."""
    handle = os.open(target, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
