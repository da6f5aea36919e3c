"""Columns of a sweep as its plots need them: one number per run, with a label and a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.names import Names
from axode.results.sweep_arrays import as_host

if TYPE_CHECKING:
    from axode.results.sweep_result import Sweep

Array = npt.NDArray[np.float64]
RARE = 0.01  # part of the numbers at either end
FAR = 1.0  # times the range of the others
STILL = 1e-12  # of the largest value: a range below is a constant


@dataclass(frozen=True, eq=False)
class SweepColumn:
    """Numbers of all runs.

    Attributes:
        name: Name of an output, or of what was swept.
        label: Name and unit.
        values: One per run.
        swept: Whether it was swept; else it is an output.
        finished: Which runs came to their end.
        grid: Whether it is an axis of a grid.
    """

    name: str
    label: str
    values: Array
    swept: bool
    finished: npt.NDArray[np.bool_]
    grid: bool = False

    @cached_property
    def finite(self) -> npt.NDArray[np.bool_]:
        """Runs that finished with a number."""
        return np.isfinite(self.values) & self.finished

    @cached_property
    def range(self) -> tuple[float, float]:
        """Smallest and largest number that an axis shows, a little apart if they are equal."""
        return axis_range(self.values[self.finite])

    @property
    def missing(self) -> str:
        """Counts of runs that finished without a number, as text."""
        values = self.values[self.finished]
        return _counts(
            {
                "without a value": np.isnan(values),
                "at infinity": np.isposinf(values),
                "at minus infinity": np.isneginf(values),
            }
        )

    @property
    def hidden(self) -> str:
        """Counts of runs beyond the axis, and of those that are missing, as text."""
        known, (low, high) = self.values[self.finite], self.range
        beyond = _counts({"beyond the axis": (known < low) | (known > high)})
        return ", ".join(filter(None, (beyond, self.missing)))


def _counts(found: Mapping[str, npt.NDArray[np.bool_]]) -> str:
    return ", ".join(f"{which.sum():,} {words}" for words, which in found.items() if which.any())


def usual_range(known: Array) -> tuple[float, float]:
    """Range of some numbers without the few that are very far from nearly all others."""
    if not known.size:
        return 0.0, 1.0
    low, high = np.percentile(known, (100 * RARE, 100 - 100 * RARE))
    margin = FAR * (high - low)
    least, most = float(known.min()), float(known.max())
    if margin == 0.0:
        return least, most
    return max(least, float(low - margin)), min(most, float(high + margin))


def axis_range(known: Array) -> tuple[float, float]:
    """Usual range of some numbers, with room around a constant."""
    low, high = usual_range(known)
    if high - low <= STILL * max(abs(low), abs(high)):
        half = 0.5 * max(abs(low), 1e-3)
        return low - half, high + half
    return low, high


class SweepColumns:
    """Outputs and swept values of a sweep by name.

    A swept value with the name of an output gets its group as prefix: `start.pitch`.
    """

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.outputs = tuple(sweep)
        groups = sweep.samples.groups
        self._samples = {
            f"{groups.get(name, 'start')}.{name}" if name in self.outputs else name: name
            for name in sweep.samples
        }
        self.swept = tuple(self._samples)
        self._names = Names("the sweep", "output or swept value", self.outputs, self.swept)
        self._units = sweep.info.get("units", {})
        self._finished = as_host(sweep.finished).reshape(-1)

    @cached_property
    def failed(self) -> npt.NDArray[np.intp]:
        """Numbers of the runs that did not finish."""
        return np.flatnonzero(~self._finished)

    @property
    def grid(self) -> bool:
        """Return whether the swept values are axes of a grid."""
        return bool(self._sweep.axes)

    def resolve(self, names: Sequence[str]) -> list[str]:
        """Full names.

        Raises:
            UnknownName: for one that is neither an output nor swept.
        """
        return [self._names.resolve(name) for name in names]

    def __getitem__(self, name: str) -> SweepColumn:
        own = self._samples.get(name)
        if own is None:
            values = as_host(self._sweep[name]).reshape(-1)
            return SweepColumn(name, self.label(name), values, False, self._finished)
        values = as_host(self._sweep.samples[own]).reshape(-1)
        all_runs, grid = np.ones(values.size, dtype=bool), own in self._sweep.axes
        return SweepColumn(name, self.label(name), values, True, all_runs, grid)

    def label(self, name: str) -> str:
        """Name and unit."""
        unit = self._units.get(name, "")
        return f"{name} [{unit}]" if unit else name
