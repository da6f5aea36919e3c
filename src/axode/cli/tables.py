"""Tables: drawn on a terminal, plain columns of text where a program or a file reads them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

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
