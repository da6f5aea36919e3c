"""Read what the caller of a sweep varies, and report everything that is wrong with it at once."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, PlausibilityWarning, UnknownName, shortened
from axode.model.named_arguments import real_array
from axode.problems.sweep.distributions import (
    MAX_ROWS,
    SAMPLERS,
    SOBOL_BITS,
    SOBOL_DIMENSIONS,
    distribution_fault,
    is_distribution,
)
from axode.problems.sweep.samples import (
    AbstractSamples,
    DrawnSamples,
    GridSamples,
    Group,
    TableSamples,
    read_table,
)

Array = npt.NDArray[np.float64]
COMBINE = ("grid", "zip")
SweptArguments = Mapping[Group, Any]


def plan_samples(
    given: SweptArguments,
    *,
    combine: str = "grid",
    samples: Any = None,
    sampler: str = "random",
    seed: int = 0,
    batch: tuple[int, ...] = (),
    locate: Callable[[str], Group] | None = None,
) -> AbstractSamples:
    """Plan the rows of a sweep; values that are neither lists nor distributions are left alone.

    Args:
        given: Values by name that the caller gave for start, parameters and input.
        combine: "grid" gives every list an axis of its own, "zip" pairs equal places.
        samples: How many rows to draw, or a table: columns by name, a DataFrame, a path.
        sampler: How rows are drawn.
        seed: Which of all possible draws.
        batch: Shape of arrays of runs without names, which lists are zipped with.
        locate: Finds what a column of a table is, and raises `UnknownName`.

    Raises:
        InvalidArgument: listing everything that is wrong.
        UnknownName: for a combination or a sampler that does not exist.
        FileError: if a table cannot be read.
    """
    if combine not in COMBINE:
        raise UnknownName("sweep", "combination", combine, COMBINE)
    if sampler not in SAMPLERS:
        raise UnknownName("sweep", "sampler", sampler, SAMPLERS)
    plan = _Plan(given, combine, batch)
    if samples is None or _is_count(samples):
        made = plan.rows(
            None if samples is None else operator.index(samples), sampler, operator.index(seed)
        )
    else:
        made = plan.table(read_table(samples), locate)
    if plan.faults or made is None:
        raise _all_at_once(plan.faults)
    if sampler == "sobol" and isinstance(made, DrawnSamples):
        _warn_of_balance(made.count)
    return made


def _is_count(samples: Any) -> bool:
    if isinstance(samples, str | PathLike | Mapping) or hasattr(type(samples), "columns"):
        return False
    try:
        if isinstance(samples, bool):
            raise TypeError
        operator.index(samples)
    except TypeError:
        raise InvalidArgument(
            "samples: expected how many rows to draw, or a table: arrays by name, a DataFrame, the "
            f"path of a .csv or .parquet file; got {shortened(samples)}"
        ) from None
    return True


def _all_at_once(faults: list[str]) -> InvalidArgument:
    if len(faults) == 1:
        return InvalidArgument(faults[0])
    return InvalidArgument("\n  ".join([f"sweep has {len(faults)} problems.", *faults]))


def _warn_of_balance(count: int) -> None:
    if count & (count - 1):
        below = 1 << (count.bit_length() - 1)
        warnings.warn(
            f"samples={count}: Sobol points are balanced if their number is a power of two.\n"
            f"  Remedy: samples={below} or samples={2 * below}",
            PlausibilityWarning,
            stacklevel=5,
        )


class _Plan:
    """Lists and distributions by name, and what is wrong with them."""

    def __init__(self, given: SweptArguments, combine: str, batch: tuple[int, ...]) -> None:
        self.combine, self.batch = combine, batch
        self.faults: list[str] = []
        self.lists: dict[str, Array] = {}
        self.distributions: dict[str, Any] = {}
        self.groups: dict[str, Group] = {}
        self.constants: dict[str, Group] = {}
        for group, values in given.items():
            if isinstance(values, Mapping):
                for name, value in values.items():
                    self._collect(group, name, value)

    def rows(self, count: int | None, sampler: str, seed: int) -> AbstractSamples | None:
        """Plan a grid, zipped lists, or draws; None if something is wrong."""
        if self.lists and self.distributions:
            self.faults.append(
                f"sweep: {_listed(self.lists)} given as lists and {_listed(self.distributions)} as "
                "distributions; give distributions for all, or every row in a table: samples={...}"
            )
        elif self.distributions:
            return self._draw(count, sampler, seed)
        elif count is not None:
            self.faults.append(
                f"samples={count}: nothing is drawn; give a distribution such as "
                "ax.Uniform(1, 2) for a value, or leave samples out"
            )
        if self.faults:
            return None
        return self._zip() if self.combine == "zip" else self._grid()

    def table(
        self, columns: dict[str, Array], locate: Callable[[str], Group] | None
    ) -> AbstractSamples | None:
        """Plan the rows of a table; None if something is wrong."""
        swept = {**self.lists, **self.distributions}
        if swept:
            self.faults.append(
                f"samples: a table has every swept value, but {_listed(swept)} is swept besides; "
                "make it a column, or give one number"
            )
        for name in set(columns) & (set(self.constants) - set(swept)):
            self.faults.append(
                f"'{name}': given as {self.constants[name]} and as a column of the table; leave "
                "one of them out"
            )
        groups: dict[str, Group] = {
            name: locate(name) if locate else "parameter" for name in columns
        }
        for name, values in columns.items():
            self._check_finite(f"samples, '{name}'", values)
        if self.faults:
            return None
        return TableSamples(groups, (len(next(iter(columns.values()))),), columns)

    def _collect(self, group: Group, name: str, value: Any) -> None:
        if is_distribution(value):
            fault = distribution_fault(value)
            if fault:
                self.faults.append(f"{group} '{name}': {fault}")
            self._add(self.distributions, group, name, value)
        elif isinstance(value, str) or callable(value) or not _ndim(value):
            self.constants[name] = group
        else:
            array = self._as_list(group, name, value)
            if array is not None:
                self._add(self.lists, group, name, array)

    def _as_list(self, group: Group, name: str, value: Any) -> Array | None:
        try:
            array = real_array(value).copy()
        except (TypeError, ValueError, OverflowError):
            self.faults.append(f"{group} '{name}': expected numbers, got {shortened(value)}")
            return None
        if self.combine == "grid" and (array.ndim != 1 or not array.size):
            self.faults.append(
                f"{group} '{name}': a grid takes a list of values, got shape {array.shape}; use "
                "combine='zip' for arrays that belong together"
            )
            return None
        self._check_finite(f"{group} '{name}'", array)
        return array

    def _check_finite(self, where: str, values: Array) -> None:
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            self.faults.append(
                f"{where}: {bad.size} of {values.size} values are not finite, the first in row "
                f"{bad[0]}"
            )

    def _add(self, where: dict[str, Any], group: Group, name: str, value: Any) -> None:
        if name in self.groups:
            self.faults.append(
                f"'{name}' is swept twice, now as {group}; a coordinate and a parameter of one "
                "name cannot both be swept, rename the parameter"
            )
        where[name] = value
        self.groups[name] = group

    def _draw(self, count: int | None, sampler: str, seed: int) -> AbstractSamples | None:
        names = _listed(self.distributions)
        if count is None:
            self.faults.append(f"{names}: a distribution needs samples=N, how many rows to draw")
        elif count < 1:
            self.faults.append(f"samples={count}: draw at least one row")
        elif sampler == "sobol":
            self._check_rows(count, f"samples={count}", 1 << SOBOL_BITS)
            if len(self.distributions) > SOBOL_DIMENSIONS:
                self.faults.append(
                    f"sampler='sobol': {len(self.distributions)} values are swept, it draws "
                    f"{SOBOL_DIMENSIONS} at most; use 'latin_hypercube'"
                )
        else:
            self._check_rows(count, f"samples={count}", MAX_ROWS)
        if self.faults or count is None:
            return None
        return DrawnSamples(self.groups, (count,), self.distributions, sampler, seed)

    def _grid(self) -> AbstractSamples | None:
        shape = tuple(len(values) for values in self.lists.values())
        self._check_rows(math.prod(shape), f"the grid of {_listed(self.lists)}", MAX_ROWS)
        return None if self.faults else GridSamples(self.groups, shape, self.lists)

    def _zip(self) -> AbstractSamples | None:
        shapes = {name: values.shape for name, values in self.lists.items()}
        try:
            shape = np.broadcast_shapes(self.batch, *shapes.values())
        except ValueError:
            unnamed = f", and arrays of {self.batch} runs" if self.batch else ""
            sizes = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            self.faults.append(
                f"combine='zip': lists that belong together have one length; got {sizes}{unnamed}"
            )
            return None
        columns = {
            name: np.broadcast_to(values, shape).reshape(-1) for name, values in self.lists.items()
        }
        return TableSamples(self.groups, shape, columns)

    def _check_rows(self, count: int, what: str, most: int) -> None:
        if count > most:
            self.faults.append(
                f"{what}: {count:.3g} rows, a sweep has {most} at most; sweep in parts"
            )


def _ndim(value: Any) -> int:
    try:
        return int(np.ndim(value))
    except ValueError:  # lists of unequal lengths
        return 1


def _listed(names: Mapping[str, Any]) -> str:
    return ", ".join(names)
