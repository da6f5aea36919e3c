"""Read untrusted files: within a size limit, without waiting forever, and their types checked."""

from __future__ import annotations

import dataclasses
import errno
import functools
import json
import math
import os
import select
import stat
import time
import types
import typing
import unicodedata
from os import PathLike
from typing import IO, Any, TypeVar

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


# types --------------------------------------------------------------------------------------------


T = TypeVar("T")
_SHOWN = 60  # characters of a wrong value that a message shows
_WORDS = {
    str: "printable text",
    int: "a whole number",
    float: "a finite number",
    bool: "true or false",
    dict: "a table",
}


def parse_json(text: str | bytes) -> Any:
    """Read JSON that may be anything.

    Raises:
        FileError: if it is not JSON, or nested too deeply.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"its description is not JSON: {_shorten(str(error))}") from None


def as_dataclass(kind: type[T], data: Any, where: str) -> T:
    """Make a dataclass from the keys and values of a file.

    Args:
        kind: The dataclass; its fields are text, numbers, tuples of fields or other dataclasses.
        data: What a file holds for it.
        where: What messages call it.

    Raises:
        FileError: naming the first entry that is missing, unknown or of another type.
    """
    if not isinstance(data, dict):
        raise _wrong(where, "a table", data)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(set(data) - set(fields))
    if unknown:
        raise FileError(f"{where} has an unknown entry {_shorten(repr(unknown[0]))}")
    hints, values = _hints(typing.cast(Any, kind)), {}
    for name, field in fields.items():
        if name in data:
            values[name] = as_type(hints[name], data[name], f"{where}.{name}")
        elif field.default is dataclasses.MISSING:
            raise FileError(f"{where}.{name} is missing")
    return kind(**values)


def as_type(hint: Any, value: Any, where: str) -> Any:
    """Convert JSON's own types according to a type hint, or raise a `FileError`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (rest,) = (kind for kind in arguments if kind is not type(None))
        return as_type(rest, value, where)
    if origin is tuple:
        return _as_tuple(arguments, value, where)
    if dataclasses.is_dataclass(hint):
        return as_dataclass(typing.cast(type[Any], hint), value, where)
    return _as_plain(hint, value, where)


def _as_tuple(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(where, "a list", value)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(value) != len(arguments):
        raise FileError(f"{where}: expected {len(arguments)} entries, got {len(value)}")
    return tuple(
        as_type(kind, item, f"{where}[{place}]")
        for place, (kind, item) in enumerate(zip(arguments, value, strict=True))
    )


def _as_plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float and type(value) in (int, float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    elif type(value) is hint and (
        hint is not str  # no control characters, surrogates or reversed lines in texts
        or value.isprintable()
        or all(c.isprintable() or unicodedata.category(c) == "Zs" for c in value)
    ):
        return value
    raise _wrong(where, _WORDS[hint], value)


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _wrong(where: str, expected: str, value: Any) -> FileError:
    return FileError(f"{where}: expected {expected}, got {_shorten(_describe(value))}")


def _describe(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return f"{len(value)} entries"
    return ascii(value[:_SHOWN]) if isinstance(value, str) else ascii(value)


def _shorten(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
