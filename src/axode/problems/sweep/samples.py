"""What a sweep varies, row by row: a grid, lists that belong together, a table, or draws.

Rows are numbered, and any of them can be computed without the others: the values of a row do not
depend on the chunk that it is computed in, nor on the process.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.disk.arrays import read_csv
from axode.disk.atomic import as_path
from axode.errors import FileError, InvalidArgument, shortened
from axode.problems.sweep.distributions import OWN, SAMPLERS, describe_distribution, digest_points
from axode.results.tables import read_number_columns

Array = npt.NDArray[np.float64]
Group = Literal["start", "parameter", "gain", "input"]
GROUPS: tuple[Group, ...] = ("start", "parameter", "gain", "input")


@dataclass(frozen=True, eq=False)
class AbstractSamples(ABC):
    """Values of all rows of a sweep.

    Attributes:
        groups: By name, in order: whether it is a value of the start, a parameter or an input.
        shape: Shape of the rows.
    """

    groups: Mapping[str, Group]
    shape: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values that are swept, in order."""
        return tuple(self.groups)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return math.prod(self.shape)

    @property
    def axes(self) -> dict[str, Array]:
        """Values of the axes of a grid by name; empty for anything else."""
        return {}

    @abstractmethod
    def rows(self, first: int, last: int, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Values of the rows `first` ... `last - 1` by name.

        Args:
            first: Number of the first row.
            last: Number after that of the last row.
            names: Which values; all unless given.
        """

    def describe(self) -> dict[str, Any]:
        """Describe the rows in JSON's own types; two studies with equal ones have equal rows."""
        return {"kind": self.kind, "rows": self.count, "groups": dict(self.groups)} | self.details()

    @property
    @abstractmethod
    def kind(self) -> str:
        """How the rows are made, in a word."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What a description of this kind holds besides the names, in JSON's own types."""

    def part(self, first: int, last: int) -> AbstractSamples:
        """Return what is needed for the rows `first` ... `last - 1`, which keep their numbers."""
        return self


@dataclass(frozen=True, eq=False)
class GridSamples(AbstractSamples):
    """Every combination of lists of values; the last name changes fastest.

    Attributes:
        values: List of every axis by name.
    """

    values: Mapping[str, Array]

    @property
    def kind(self) -> str:
        """How the rows are made, in a word."""
        return "grid"

    @property
    def axes(self) -> dict[str, Array]:
        """Values of the axes by name."""
        return dict(self.values)

    def rows(self, first: int, last: int, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Values of the rows `first` ... `last - 1` by name."""
        stride, found = self.count, {}
        for name, values in self.values.items():
            stride //= len(values)
            if names is None or name in names:
                begin, end = first // stride, -(-last // stride)  # each value stands stride times
                each = np.resize(np.roll(values, -(begin % len(values))), end - begin)
                start = first - begin * stride
                found[name] = np.repeat(each, stride)[start : start + last - first]
        return found

    def part(self, first: int, last: int) -> AbstractSamples:
        """Return what is needed for the rows `first` ... `last - 1`: these alone of long axes."""
        if sum(map(len, self.values.values())) <= last - first:
            return self
        return TableSamples(self.groups, self.shape, self.rows(first, last), first)

    def details(self) -> dict[str, Any]:
        """Values of the axes."""
        return {"axes": {name: values.tolist() for name, values in self.values.items()}}


@dataclass(frozen=True, eq=False)
class TableSamples(AbstractSamples):
    """Rows that are given one by one.

    Attributes:
        values: Columns by name; those of a shape are broadcast to that of the rows.
        first: Number of the first row that is here, where a part of a table was taken.
    """

    values: Mapping[str, Array]
    first: int = 0

    @property
    def kind(self) -> str:
        """How the rows are made, in a word."""
        return "table"

    def rows(self, first: int, last: int, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Values of the rows `first` ... `last - 1` by name."""
        wanted = self.names if names is None else names
        return {name: self.values[name][first - self.first : last - self.first] for name in wanted}

    def details(self) -> dict[str, Any]:
        """Digest of the values."""
        digest = hashlib.sha256()
        for name, values in self.values.items():
            digest.update(name.encode() + b"\0")
            digest.update(np.ascontiguousarray(values, dtype="<f8").data)
        return {"shape": list(self.shape), "sha256": digest.hexdigest()}

    def part(self, first: int, last: int) -> AbstractSamples:
        """Return the rows `first` ... `last - 1`, which keep their numbers."""
        return TableSamples(self.groups, self.shape, self.rows(first, last), first)


@dataclass(frozen=True, eq=False)
class DrawnSamples(AbstractSamples):
    """Rows drawn from distributions.

    Attributes:
        distributions: By name.
        sampler: "random", "latin_hypercube" or "sobol".
        seed: Which of all possible draws.
    """

    distributions: Mapping[str, Any]
    sampler: str
    seed: int

    @property
    def kind(self) -> str:
        """How the rows are made, in a word."""
        return self.sampler

    def rows(self, first: int, last: int, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Values of the rows `first` ... `last - 1` by name."""
        wanted = [k for k, name in enumerate(self.names) if names is None or name in names]
        points = SAMPLERS[self.sampler](self.seed, len(self.names), self.count, first, last, wanted)
        return {
            self.names[k]: np.asarray(self.distributions[self.names[k]].ppf(u), dtype=float)
            for k, u in zip(wanted, points, strict=True)
        }

    def part(self, first: int, last: int) -> AbstractSamples:
        """Return the rows as values where other processes may not know the distributions."""
        if all(isinstance(d, OWN) for d in self.distributions.values()):
            return self
        return TableSamples(self.groups, self.shape, self.rows(first, last), first)

    def details(self) -> dict[str, Any]:
        """Distributions, the seed, and a digest of the first points."""
        made = {name: describe_distribution(d) for name, d in self.distributions.items()}
        digest = digest_points(self.sampler, self.seed, len(self.names), self.count)
        return {"seed": self.seed, "distributions": made, "first_points": digest}


# tables of samples --------------------------------------------------------------------------------


ENDINGS = (".csv", ".parquet")


def read_table(samples: Any) -> dict[str, Array]:
    """Columns of a table by name, all of one length.

    Args:
        samples: Arrays by name, a DataFrame of pandas or Polars, a table of Arrow, or the path of a
            file.

    Raises:
        InvalidArgument: listing everything that is wrong with the columns.
        FileError: if a file cannot be read.
    """
    if isinstance(samples, str | PathLike):
        return _check(_read_file(as_path(samples)).items())
    if isinstance(samples, Mapping):
        return _check(samples.items())
    if hasattr(samples, "collect"):
        samples = samples.collect()  # a query of Polars
    names = list(getattr(samples, "column_names", samples.columns))  # Arrow, or a DataFrame
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InvalidArgument(f"samples: the table has two columns {shortened(twice[0])}")
    return _check((name, samples[name]) for name in names)


def _read_file(path: Path) -> dict[str, Array]:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise FileError(f"'{path}': a table of samples ends in {' or '.join(ENDINGS)}")
    try:
        return read_csv(path, "table of samples") if ending == ".csv" else read_number_columns(path)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero byte in it
        raise FileError(f"cannot read '{path}': {getattr(error, 'strerror', error)}") from None


def _check(columns: Iterable[tuple[Any, Any]]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    faults = []
    for name, values in columns:
        if not isinstance(name, str):
            faults.append(f"column {shortened(name)}: its name should be text")
            continue
        try:
            column = np.array(without_mask(values))
            wrong = column.dtype.kind not in "fiu" and not _is_numbers(column)
            column = column if wrong else column.astype(float)
        except (TypeError, ValueError, OverflowError):
            wrong = True
        if wrong:
            listed = getattr(values, "tolist", lambda values=values: values)()  # of pandas, Polars
            faults.append(f"column '{name}': expected numbers, got {shortened(listed)}")
        elif column.ndim != 1:
            faults.append(f"column '{name}': expected a list of numbers, got shape {column.shape}")
        else:
            found[name] = column
    lengths = {name: len(column) for name, column in found.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {length}" for name, length in lengths.items())
        faults.append(f"the columns differ in length: {sizes}")
    elif not faults and not any(lengths.values()):
        faults.append("the table is empty; it needs a column for each swept value, and rows")
    if faults:
        raise InvalidArgument("\n  ".join(["samples: the table cannot be used.", *faults]))
    return found


def without_mask(values: Any) -> Any:
    """Return masked numbers as NaN, and anything else as it is."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(float), np.nan)
    return values


def _is_numbers(column: npt.NDArray[Any]) -> bool:
    """Return whether objects are numbers or missing ones, as DataFrames keep them."""
    return column.dtype == object and all(
        value is None or (isinstance(value, int | float) and not isinstance(value, bool))
        for value in column.tolist()
    )
