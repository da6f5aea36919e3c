"""Runs that differ: what many runs have in common is solved once.

Most batches either have one start for all runs or a different one for each; both are recognised
without sorting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
SAMPLE = 4096  # runs by which the number of different ones is estimated
MOSTLY_DIFFERENT = 0.9  # of the sample: then every run is solved
MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd number without a pattern
SHIFT = np.uint64(29)


def find_distinct(columns: Sequence[Array], count: int) -> tuple[Indices, Indices | None]:
    """Find runs to solve, and the place among them of every run; None if all are solved.

    Equal runs may be left among those to solve, where looking for them costs more than it saves.

    Args:
        columns: What a run depends on, (count,) each.
        count: How many runs.
    """
    varying = [column for column in columns if not _is_constant(column)]
    if not count or (count > SAMPLE and varying and _are_mostly_different(varying, count)):
        return np.arange(count), None
    if not varying:
        return np.zeros(1, dtype=np.intp), np.broadcast_to(np.intp(0), count)
    _, first, which = np.unique(_hash(varying), return_index=True, return_inverse=True)
    which = which.reshape(-1)
    if len(first) == count or any((column != column[first][which]).any() for column in varying):
        return np.arange(count), None
    return first, which


def _is_constant(column: Array) -> bool:
    return not column.size or column.strides == (0,) or bool((column == column[0]).all())


def _are_mostly_different(columns: Sequence[Array], count: int) -> bool:
    """Estimate from runs at random places; evenly spaced ones would miss a pattern."""
    chosen = np.random.default_rng(0).integers(count, size=SAMPLE)
    sample = np.unique(chosen)
    found = np.unique(_hash([column[sample] for column in columns]))
    return len(found) > MOSTLY_DIFFERENT * len(sample)


def _hash(columns: Sequence[Array]) -> npt.NDArray[np.uint64]:
    """One whole number per run, equal for equal runs."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= np.ascontiguousarray(column + 0.0).view(np.uint64)  # the sign of zero is lost
        mixed *= MIXER
        mixed ^= mixed >> SHIFT
    return mixed
