"""Runs without a consistent start: which, and why, in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from axode.results.sweep_arrays import NO_TEXT, RowTexts

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


def _no_numbers() -> Indices:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True)
class FailedStarts:
    """Runs of a batch that could not be assembled; texts are made when they are asked for.

    Attributes:
        runs: Their numbers, in ascending order.
        cause: Number of each one's cause among `causes`.
        size: By how much it fails, in the cause's unit.
        causes: Different causes, a few.
        units: Their units.
    """

    runs: Indices = field(default_factory=_no_numbers)
    cause: Indices = field(default_factory=_no_numbers)
    size: Array = field(default_factory=lambda: np.zeros(0))
    causes: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.runs)

    def part(self, runs: Indices) -> FailedStarts:
        """Return those of some runs, in ascending order, which are numbered from zero."""
        at = np.isin(self.runs, runs)
        places = np.searchsorted(runs, self.runs[at])
        return replace(self, runs=places, cause=self.cause[at], size=self.size[at])

    def describe(self, place: int) -> str:
        """Describe why a run failed, by its place among those that did."""
        one = slice(place, place + 1)
        return str(replace(self, cause=self.cause[one], size=self.size[one]).texts()[0])

    def texts(self) -> npt.NDArray[np.object_]:
        """Descriptions of all, as objects."""
        causes = np.array([f"{cause} by " for cause in self.causes], dtype=object)
        units = np.array([f" {unit}" if unit else "" for unit in self.units], dtype=object)
        sizes = np.char.mod("%.3g", self.size).astype(object)
        return np.asarray(causes[self.cause] + sizes + units[self.cause])

    def reasons(self, count: int) -> RowTexts:
        """Causes by run, without sizes: a few texts for a number of runs."""
        used, code = np.unique(self.cause, return_inverse=True)
        codes = np.full(count, NO_TEXT, dtype=np.int32)
        codes[self.runs] = code
        return RowTexts(codes, tuple(self.causes[k] for k in used))

    def joined(self, other: FailedStarts) -> FailedStarts:
        """Failures of both, of different runs."""
        if not len(self) or not len(other):
            return self if len(self) else other
        runs = np.concatenate([self.runs, other.runs])
        order = np.argsort(runs)
        cause = np.concatenate([self.cause, other.cause + len(self.causes)])
        return FailedStarts(
            runs[order],
            cause[order],
            np.concatenate([self.size, other.size])[order],
            self.causes + other.causes,
            self.units + other.units,
        )

    def spread(self, which: Indices | None, count: int) -> FailedStarts:
        """Failures of all runs, from those of the runs that were solved.

        Args:
            which: Place of every run among those that were solved; None if all were.
            count: How many were solved.
        """
        if which is None or not len(self):
            return self
        place = np.full(count, -1)
        place[self.runs] = np.arange(len(self))
        runs = np.flatnonzero(place[which] >= 0)
        of = place[which[runs]]
        return FailedStarts(runs, self.cause[of], self.size[of], self.causes, self.units)


def open_rows(names: Sequence[str]) -> tuple[str, ...]:
    """Causes of runs whose rows stay open."""
    return tuple(f"'{name}' is open" for name in names)
