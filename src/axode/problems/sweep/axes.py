"""Axes of a sweep: one per list of values, or one for all lists together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened

Array = npt.NDArray[np.float64]
COMBINE = ("grid", "zip")


@dataclass
class Axes:
    """Values of a sweep, row by row.

    Attributes:
        combine: "grid" gives every list an axis of its own, "zip" pairs equal places.
        values: Values by name.
        groups: What each name is: "start", "parameter" or "input".
        batch: Shape of the rows where arrays without names are zipped too.
    """

    combine: str
    values: dict[str, Array] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    batch: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.combine not in COMBINE:
            raise UnknownName("sweep", "combination", self.combine, COMBINE)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of what is swept, in order."""
        return tuple(self.values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the rows."""
        if self.combine == "grid":
            return tuple(len(values) for values in self.values.values())
        return self.batch

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(np.prod(self.shape, dtype=int))

    def collect(self, what: str, given: Any) -> None:
        """Add the arrays of a mapping; `what` they are, for error messages."""
        if not isinstance(given, Mapping):
            return
        for name, value in given.items():
            if isinstance(value, str) or callable(value) or not np.ndim(value):
                continue
            try:
                array = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                raise InvalidArgument(
                    f"{what} '{name}': expected numbers, got {shortened(value)}"
                ) from None
            if self.combine == "grid" and (array.ndim != 1 or not array.size):
                raise InvalidArgument(
                    f"{what} '{name}': a grid takes a list of values, got shape {array.shape}; use "
                    "combine='zip' for arrays that belong together"
                )
            if name in self.values:
                raise InvalidArgument(
                    f"'{name}' is swept twice, now as {what}; a coordinate and a parameter of one "
                    "name cannot both be swept, rename the parameter"
                )
            self.values[name], self.groups[name] = array, what

    def rows(self, first: int, last: int) -> dict[str, Array]:
        """Values of the rows from `first` to before `last`, by name."""
        if not self.values:
            return {}
        places = np.unravel_index(np.arange(first, last), self.shape)
        if self.combine == "grid":
            pairs = zip(self.values.items(), places, strict=True)
            return {name: values[place] for (name, values), place in pairs}
        return {
            name: np.broadcast_to(values, self.shape)[places]
            for name, values in self.values.items()
        }
