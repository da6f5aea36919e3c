"""What verbs print and write: tables, JSON, and files that may be replaced."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from axode.errors import FileError
from axode.numerics.tolerances import SUM_ROUNDING


def on_terminal() -> bool:
    """Return whether the output goes to a terminal."""
    return sys.stdout.isatty()


def show_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    title: str = "",
    note: str = "",
    marked: Sequence[int] = (),
) -> None:
    """Print a table.

    Args:
        heads: Names of the columns; one that starts with ">" is aligned to the right.
        rows: Cells as text.
        title: Line above the table.
        note: Line below the table.
        marked: Numbers of the rows to highlight.
    """
    names = [head.lstrip(">") for head in heads]
    right = [head.startswith(">") for head in heads]
    if on_terminal():
        _draw(names, right, rows, title, note, marked)
    else:
        print(plain_table(names, right, rows, title, note))


def plain_table(
    names: Sequence[str],
    right: Sequence[bool],
    rows: Sequence[Sequence[str]],
    title: str = "",
    note: str = "",
) -> str:
    """Return the table as columns of text."""
    everything = [list(names), *map(list, rows)]
    widths = [max(len(row[k]) for row in everything) for k in range(len(names))]
    lines = [title] if title else []
    for row in everything:
        cells = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ]
        lines.append(("  " if title else "") + "  ".join(cells).rstrip())
    return "\n".join([*lines, *([note] if note else [])])


def _draw(
    names: Sequence[str],
    right: Sequence[bool],
    rows: Sequence[Sequence[str]],
    title: str,
    note: str,
    marked: Sequence[int],
) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, flush in zip(names, right, strict=True):
        table.add_column(Text(name), justify="right" if flush else "left", no_wrap=flush)
    for number, row in enumerate(rows):
        cells = (Text(cell) for cell in row)  # a bracket in a name is no markup
        table.add_row(*cells, style="bold red" if number in marked else None)
    console = _console()
    if title:
        console.print(Text(title, style="bold"))
    console.print(table)
    if note:
        console.print(Text(note))


def show_entries(title: str, entries: Sequence[tuple[str, str]], width: int = 15) -> None:
    """Print labelled lines below a title; long ones are wrapped on a terminal."""
    width = max([width, *(len(label) + 1 for label, _ in entries)])
    if not on_terminal():
        print("\n".join([title, *(f"  {label:<{width}}{text}" for label, text in entries)]))
        return
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=width - 2)
    grid.add_column(overflow="fold")
    for label, text in entries:
        grid.add_row(Text(f"  {label}"), Text(text))
    console = _console()
    console.print(Text(title, style="bold"))
    console.print(grid)


def _console() -> Any:
    from rich.console import Console

    return Console(highlight=False)


def format_number(value: float) -> str:
    """Format a number; what rounding leaves of a zero is 0, and NaN is a dash."""
    if value != value:
        return "-"
    return f"{0.0 if abs(value) < SUM_ROUNDING else value:.6g}"


# results ------------------------------------------------------------------------------------------


def print_json(value: Any) -> None:
    """Print JSON; what JSON has no type for is printed as text."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """Return JSON that any program reads: numbers that are not finite are null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # NumPy's
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | bool | int) else str(value)


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Return rows as lines of CSV; numbers are written with all their digits."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write a whole file or leave the old one as it was.

    Raises:
        FileError: if the folder or the disk refuses.
    """
    from axode.disk.atomic import write_atomically

    write_atomically(path, text.encode())


def check_writable(path: Path | None, endings: tuple[str, ...], option: str = "--out") -> None:
    """Check that a file can be written before any work is done for it.

    Raises:
        typer.BadParameter: for an ending that means nothing here.
        FileError: if there is no such folder.
    """
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise typer.BadParameter(
            f"'{path}' should end in {' or '.join(endings)}, which chooses the format",
            param_hint=option,
        )
    if not path.parent.is_dir():
        raise FileError(f"cannot write '{path}': there is no folder '{path.parent}'")
    if path.is_dir():
        raise FileError(f"cannot write '{path}': it is a folder")
    check_replaceable(path, option)


# files that may be replaced -----------------------------------------------------------------------


_LOOKED_AT = 1 << 16  # bytes; every kind shows itself at once
_JSON = re.compile(rb"\s*[\[{]")
# How a file of each ending begins that Axode wrote, or that holds the same kind of thing.
_KINDS = {
    ".json": _JSON,
    ".csv": re.compile(rb"(\xef\xbb\xbf)?\"?(time|row)\b"),
    ".npz": re.compile(rb"PK\x03\x04"),
    ".parquet": re.compile(rb"PAR1"),
    ".axm": re.compile(rb"axode-model\n"),
    ".png": re.compile(rb"\x89PNG"),
    ".pdf": re.compile(rb"%PDF"),
    ".svg": re.compile(rb"\s*<(\?xml|svg)"),
    ".html": re.compile(rb"\s*<!doctype html", re.IGNORECASE),
    ".htm": re.compile(rb"\s*<!doctype html", re.IGNORECASE),
    ".tex": re.compile(rb"% Equations of motion"),
    ".toml": re.compile(rb"# A mechanism for Axode|[\s\S]*?^[ \t]*\[(body|joint)\.", re.M),
    ".c": re.compile(rb'#include ".*\.h"\s+#include <math\.h>'),
    ".h": re.compile(rb"[\s\S]*Generated by Axode"),
    ".ptx": re.compile(rb"//\s+// Generated by LLVM NVPTX"),
}
_BESIDE = {".c": ".h", ".ptx": ".json"}  # what is written along


def check_replaceable(path: Path, option: str) -> None:
    """Check that the content of a file to be overwritten matches its ending.

    Raises:
        FileError: naming the file.
    """
    ending = path.suffix.lower()
    _check_content(path, _KINDS.get(ending, _JSON), option)
    if ending in _BESIDE:
        beside = path.with_suffix(_BESIDE[ending])
        _check_content(beside, _KINDS[_BESIDE[ending]], option)


def check_picture(path: Path | None) -> Path | None:
    """Check that a plot can be written; a callback of --plot."""
    check_writable(path, (".png", ".svg", ".pdf"), "--plot")
    return path


def check_json(path: Path | None) -> Path | None:
    """Check that --out would not put JSON over something else; a callback of the option."""
    if path is not None:
        if path.suffix.lower() in set(_KINDS) - {".json"}:
            raise typer.BadParameter(
                f"'{path}' should end in .json, the format that is written", param_hint="--out"
            )
        _check_content(path, _JSON, "--out")
    return path


def _check_content(path: Path, kind: re.Pattern[bytes], option: str) -> None:
    if not path.is_file():
        return  # nothing is there, or a device that nothing takes the place of
    try:
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT)
    except OSError as error:
        raise FileError(f"cannot write '{path}': {error.strerror or error}") from None
    if start and not kind.match(start):
        raise FileError(
            f"'{path}' is there already and holds something else than {option} would write.\n"
            "  Nothing was changed; name another file, or remove this one first."
        )
