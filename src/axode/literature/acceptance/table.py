"""Results of a verification: one line per quantity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

TITLES = ("id", "quantity", "equation", "expected", "got", "error", "pass")


@dataclass(frozen=True)
class CaseCheck:
    """One quantity of one case.

    Attributes:
        id, quantity: Which.
        expected, got: Both values; `got` is None where there is none.
        error: Largest difference of any number in it, infinite where shapes differ.
        passed: Whether all of it is within the case's tolerance.
        reason: Why there is no value.
        equation: Its numbers in the source.
    """

    id: str
    quantity: str
    expected: Any
    got: Any
    error: float
    passed: bool
    reason: str = ""
    equation: str = ""

    @property
    def cells(self) -> tuple[str, ...]:
        """The line of the table."""
        got = _first_fault(self.reason) if self.reason else format_value(self.got)
        error = f"{self.error:.1e}" if np.isfinite(self.error) else "-"
        return (
            self.id,
            self.quantity,
            self.equation,
            format_value(self.expected),
            got,
            error,
            "yes" if self.passed else "NO",
        )


@dataclass(frozen=True)
class Verification:
    """All checks of a file; `str` prints them as a table, and so does rich.

    Attributes:
        checks: In the order of the file.
        source: The file's name.
    """

    checks: tuple[CaseCheck, ...]
    source: str = ""

    @property
    def passed(self) -> bool:
        """Return whether there was something to check and all of it holds."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[CaseCheck, ...]:
        """Checks that do not hold."""
        return tuple(check for check in self.checks if not check.passed)

    @property
    def summary(self) -> str:
        """Return the result in one line."""
        cases = len({check.id for check in self.checks})
        good = len(self.checks) - len(self.failures)
        return f"{good} of {len(self.checks)} quantities of {cases} cases agree"

    def __iter__(self) -> Iterator[CaseCheck]:
        return iter(self.checks)

    def __len__(self) -> int:
        return len(self.checks)

    def __str__(self) -> str:
        rows = [TITLES, *(check.cells for check in self.checks)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(TITLES))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        return "\n".join([*(line.rstrip() for line in lines), self.summary])

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=self.source or None, caption=self.summary)
        for title in TITLES:
            table.add_column(title, overflow="fold", no_wrap=title in ("id", "error", "pass"))
        for check in self.checks:
            table.add_row(*check.cells, style=None if check.passed else "bold red")
        return table


def compare(
    id: str, quantity: str, expected: Any, got: Any, rel: float, absolute: float
) -> CaseCheck:
    """Compare every number of a value with the one expected: |got - e| <= abs + rel |e|."""
    wanted, found = list(leaves(expected)), list(leaves(got))
    if [place for place, _ in wanted] != [place for place, _ in found]:
        return CaseCheck(id, quantity, expected, got, np.inf, False)
    error, passed = 0.0, True
    for (_, e), (_, g) in zip(wanted, found, strict=True):
        if isinstance(e, bool | str) or isinstance(g, bool | str):
            same = type(e) is type(g) and e == g
            error, passed = (error if same else np.inf), passed and same
            continue
        difference = abs(g - e)
        error = max(error, difference) if np.isfinite(difference) else np.inf
        passed = passed and bool(difference <= absolute + rel * abs(e))
    return CaseCheck(id, quantity, expected, got, float(error), passed)


def _first_fault(reason: str) -> str:
    """The first line, or the first fault where that line only counts them."""
    first, *rest = reason.splitlines()
    return rest[0].strip() if rest and rest[0].lstrip().startswith("[") else first


def leaves(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number, truth value or text in nested lists and mappings, with its place."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from leaves(value[key], (*place, key))
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0):
        for k, item in enumerate(value):
            yield from leaves(item, (*place, k))
    elif isinstance(value, bool | np.bool_):
        yield place, bool(value)
    elif value is None or isinstance(value, str):
        yield place, str(value)
    else:
        yield place, float(value)


def format_value(value: Any, width: int = 36) -> str:
    """A value as the table shows it, cut to a width."""
    if isinstance(value, Mapping):
        text = ", ".join(f"{key} {format_value(item, width)}" for key, item in value.items())
    elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim > 0):
        text = "[" + ", ".join(format_value(item, width) for item in value) + "]"
    elif isinstance(value, bool | np.bool_ | str) or value is None:
        text = str(value)
    else:
        text = f"{float(value) + 0.0:.9g}"  # no negative zero
    return text if len(text) <= width else text[: width - 3] + "..."
