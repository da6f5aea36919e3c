"""Check data of files against the types that a dataclass declares, and make the dataclass."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
import unicodedata
from typing import Any, TypeVar

from axode.errors import FileError

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
