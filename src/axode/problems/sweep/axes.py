"""Axes of a sweep: one per array of values, or one for all arrays together."""

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
    """Axes of a sweep, in order.

    Attributes:
        combine: "grid" gives every array an axis of its own, "zip" pairs equal places.
        values: Values of every axis by name.
    """

    combine: str
    values: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.combine not in COMBINE:
            raise UnknownName("sweep", "combination", self.combine, COMBINE)

    def collect(self, what: str, given: Any) -> None:
        """Add the arrays of a mapping as axes; `what` it is, for error messages."""
        if self.combine == "zip" or not isinstance(given, Mapping):
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
            if array.ndim != 1 or not array.size:
                raise InvalidArgument(
                    f"{what} '{name}': a grid takes a list of values, got shape {array.shape}; use "
                    "combine='zip' for arrays that belong together"
                )
            if name in self.values:
                raise InvalidArgument(
                    f"'{name}' is swept twice, now as {what}; a coordinate and a parameter of one "
                    "name cannot both be swept, rename the parameter"
                )
            self.values[name] = array

    def spread(self, given: Any) -> Any:
        """Mapping with arrays along their axes."""
        if self.combine == "zip" or not isinstance(given, Mapping):
            return given
        shapes = {name: [1] * len(self.values) for name in self.values}
        for k, name in enumerate(self.values):
            shapes[name][k] = -1
        return {
            name: self.values[name].reshape(shapes[name]) if name in self.values else value
            for name, value in given.items()
        }
