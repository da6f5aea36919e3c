"""Numbers of the rows of a sweep that stay on the GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from axode.problems.steps.compiled import Place
from axode.problems.steps.step_acceptance import FINISHED, INACCURATE, LEFT, RUNNING
from axode.runtime import staging
from axode.runtime.device import MemoryGuard, cupy
from axode.runtime.launch import STATUSES, Summary
from axode.runtime.resident_buffers import ResidentBuffers


def gpus_of(place: Place) -> tuple[int, ...]:
    """Numbers of the GPUs of a sweep: those that were named, or the current one."""
    return place.devices or (int(cupy().cuda.runtime.getDevice()),)


def numbers_there(
    buffers: ResidentBuffers, summary: Summary | None
) -> tuple[Any, Any, tuple[int, ...]]:
    """Collect the numbers of runs and how each ended, on the GPU, and count the ways.

    Args:
        buffers: State of the runs.
        summary: Counts of the last launch; they hold where Python did not read the status.
    """
    cp, columns = cupy(), buffers.there("made").T
    if summary is None or buffers.was_read("status"):
        here = buffers["status"][:, 0].astype(np.int8)
        counts = tuple(np.bincount(here, minlength=STATUSES).tolist())
    else:
        here, counts = None, summary.counts
    if counts[FINISHED] == columns.shape[1]:
        status = np.broadcast_to(np.int8(FINISHED), columns.shape[1:])
    else:
        status = buffers.there("status")[:, 0].astype(np.int8) if here is None else cp.asarray(here)
        ended = (status == FINISHED) | (status == INACCURATE)
        columns = cp.where(ended, columns, np.nan)
    if columns.dtype != np.float64:
        columns = columns.astype(np.float64)
    cp.cuda.get_current_stream().synchronize()  # they are copied on another one
    return columns.T, status, counts


class GpuRows:
    """Columns of numbers, and the status, of all rows on one GPU.

    Args:
        rows: How many there are.
        columns: How many numbers each has.
        number: Number of the GPU.

    Attributes:
        values: (columns, rows).
        status: How each run ended; `LEFT` for rows that were not computed.
        counts: How many rows have each status, by its code.
    """

    def __init__(self, rows: int, columns: int, number: int) -> None:
        self._cupy = cp = cupy()
        self._number = number
        with cp.cuda.Device(number), MemoryGuard(f"results of {rows} runs"):
            self.values = cp.empty((columns, rows), dtype=np.float64)
            self.status = cp.empty(rows, dtype=np.int8)
            self._fill(self.status, LEFT)
            cp.cuda.get_current_stream().synchronize()  # the memory may still have been in use
        self.counts = np.zeros(STATUSES, dtype=np.int64)
        self.counts[LEFT] = rows

    def add(self, first: int, values: Any, status: Any, counts: Sequence[int]) -> None:
        """Copy the numbers of some rows there, from any GPU or from NumPy's arrays.

        Args:
            first: Number of the first row.
            values: (rows, columns).
            status: By row; one for all if it takes no memory.
            counts: How many of the rows have each status, by its code; counted unless known.
        """
        cp, rows = self._cupy, slice(first, first + len(status))
        if not counts:
            counts = np.bincount(status, minlength=STATUSES).tolist()
        with cp.cuda.Device(self._number):
            for k, there in enumerate(self.values):
                staging.move(cp, values[:, k], there[rows])
            if len(status) and status.strides[0] == 0:
                self._fill(self.status[rows], int(status[0]))
            else:
                staging.move(cp, status, self.status[rows])
            cp.cuda.get_current_stream().synchronize()  # the chunk's memory is used again
        self.counts += np.array(counts)
        self.counts[LEFT] -= len(status)

    def finish(self) -> None:
        """Mark rows that were not computed."""
        cp = self._cupy
        self.counts[LEFT] += self.counts[RUNNING]
        self.counts[RUNNING] = 0
        if self.counts[LEFT]:
            with cp.cuda.Device(self._number):
                self.status = cp.where(self.status == RUNNING, np.int8(LEFT), self.status)
                self.values = cp.where(self.status == LEFT, np.nan, self.values)

    def _fill(self, array: Any, byte: int) -> None:
        cp = self._cupy
        stream = cp.cuda.get_current_stream().ptr
        cp.cuda.runtime.memsetAsync(array.data.ptr, byte, array.nbytes, stream)
