"""Logs of steps: what every accepted step began with, or enough to compute it again.

Runs are advanced in slices. The state at the beginning of each slice is kept; the steps inside it
are kept while they fit into memory, and computed again from that state where they do not: the same
code on the same numbers takes the same steps. Slices become longer one by one, so that neither
their number nor the steps of one of them grow faster than the square root of all steps. On a GPU
they are as long as its memory allows: between slices states come back from there.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.runtime import device

if TYPE_CHECKING:
    from axode.problems.runs.batch import Batch

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
FIRST_SLICE = 1024  # steps of the first slice, and by how much later ones are longer
MIN_FIRST_SLICE = 16  # the same of very many runs
SLICE_BYTES = 1 << 24  # of the log of the first slice
ALIGNED = 8  # numbers in a line of the cache
COARSE = 20  # memory for steps comes in powers of two, beyond this one in multiples of it
KEPT_BYTES = 1 << 28  # of steps that are kept, and of memory that is kept for the next call
KEPT_ON_GPU, SLICE_ON_GPU = 0.5, 0.125  # of the GPU's free memory, the same there
LONGEST_ON_GPU = 0.25  # the same of the longest slice: a slice that is computed again must fit too


class _Memory:
    """Reused memory for steps: allocating it takes longer than filling it."""

    def __init__(self) -> None:
        self._free: list[Array] = []
        self._lock = threading.Lock()

    def take(self, shape: tuple[int, ...]) -> Array:
        """Return an array of any numbers."""
        size = math.prod(shape) + ALIGNED
        with self._lock:
            fits = [k for k, array in enumerate(self._free) if array.size >= size]
            if fits:
                flat = self._free.pop(min(fits, key=lambda k: self._free[k].size))
                return _aligned(flat, shape)
        coarse = 1 << min((size - 1).bit_length(), COARSE)  # arrays of nearly this size fit, too
        return _aligned(np.empty(-(-size // coarse) * coarse), shape)

    def give(self, array: Array) -> None:
        """Keep the memory of an array for the next one."""
        flat = array.base if array.base is not None else array
        with self._lock:
            if flat.nbytes + sum(a.nbytes for a in self._free) <= KEPT_BYTES:
                self._free.append(flat)


def _aligned(flat: Array, shape: tuple[int, ...]) -> Array:
    """Part of some memory that begins with a line of the cache."""
    first = -(flat.ctypes.data // flat.itemsize) % ALIGNED
    return flat[first : first + math.prod(shape)].reshape(shape)


_MEMORY = _Memory()


@dataclass(frozen=True)
class Grid:
    """Equally spaced times at which steps end."""

    start: float
    period: float
    count: int

    def numbers(self) -> dict[str, float]:
        """Numbers that steps read, by the names of their buffers."""
        return {
            "grid_start": self.start,
            "grid_period": self.period,
            "grid_count": float(self.count),
        }


@dataclass
class StepSlice:
    """Some steps of all runs of a batch.

    Attributes:
        budget: Steps that were tried at most.
        state: Buffers at its beginning, by name.
        rows: Accepted steps, (runs, rows, size): q, nu, t and length; None if they are not kept.
        counts: Number of accepted steps of each run.
    """

    budget: int
    state: dict[str, Array]
    rows: Array | None = None
    counts: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.intp))


class BatchLog:
    """Steps of the runs of one batch.

    Attributes:
        batch: The runs.
        parent: The batch from which they came, and their numbers there; None if they began here.
        slices: Their steps, in order.
    """

    def __init__(self, whole: StepLog, batch: Batch) -> None:
        self._whole, self.batch = whole, batch
        self.parent: tuple[Batch, Numbers] | None = None
        self.slices: list[StepSlice] = []
        step = 8 * batch.rollout.program.tables["log"] * max(batch.count, 1)
        self._first = int(min(max(whole.slice_bytes // step, MIN_FIRST_SLICE), whole.first))
        self._longest = int(max(whole.longest_bytes // step, MIN_FIRST_SLICE))

    def begin(self) -> int:
        """Begin a slice; returns how many steps it may try."""
        batch = self.batch
        budget = min(self._first * (len(self.slices) + 1), self._longest)
        if not batch.settings.adaptive:
            budget = min(budget, batch.settings.n_steps)
        state = {name: array.copy() for name, array in batch.buffers.items() if _changes(array)}
        state["logged"][...] = batch.buffers["logged"][...] = 0.0
        self.slices.append(StepSlice(budget, state))
        batch.tables["log"] = self._table(budget)
        return budget

    def end(self) -> None:
        """End a slice; its steps are kept if they fit."""
        last, batch = self.slices[-1], self.batch
        last.counts = batch.buffers["logged"][:, 0].astype(np.intp)
        rows = batch.tables["log"]
        if self._whole.kept + rows.nbytes <= self._whole.kept_bytes:
            self._whole.kept += rows.nbytes
            last.rows = rows
        else:
            self.release(rows)

    def steps(self, one: StepSlice) -> Array:
        """Return the steps of a slice, computed again if they were not kept."""
        if one.rows is not None:
            return one.rows
        batch = self.batch
        buffers = {**batch.buffers, **{name: a.copy() for name, a in one.state.items()}}
        rows = self._table(one.budget)
        out = np.zeros((batch.count, 1, batch.dynamics.n_k))
        batch.rollout(
            buffers,
            {**batch.tables, "log": rows, "out": out},
            budget=one.budget,
            threads=batch.settings.threads,
        )
        return rows

    @staticmethod
    def release(rows: Array) -> None:
        """Give back the memory of steps that are not read any more."""
        if type(rows) is np.ndarray:  # memory of a GPU is kept by CuPy
            _MEMORY.give(rows)

    def _table(self, budget: int) -> Array:
        batch = self.batch
        shape = batch.rollout.table_shape("log", batch.count, budget)
        if batch.settings.place.target == "cuda":
            there: Array = batch.rollout.new_table(shape)
            return there
        return _MEMORY.take(shape)


def _changes(array: Array) -> bool:
    return array.ndim > 1 and array.flags.writeable


class StepLog:
    """Steps of all runs of a simulation.

    Args:
        grid: Times at which steps end; those of the method alone unless given.
        backwards: Whether steps alone read it, on their way back: rates of stages are logged, too,
            where it pays, and numbers of a group of runs lie side by side.
        first: Steps of the first slice.
        kept_bytes: Memory for steps; those beyond it are computed again.
        target: Where the steps are computed.

    Attributes:
        batches: Logs of batches of runs, in the order in which they began.
        kept: Bytes of the steps that are kept.
    """

    def __init__(
        self,
        grid: Grid | None = None,
        *,
        backwards: bool = False,
        first: int = FIRST_SLICE,
        kept_bytes: int | None = None,
        target: str = "cpu",
    ) -> None:
        self.grid, self.backwards, self.first = grid, backwards, first
        usual, self.slice_bytes, self.longest_bytes = KEPT_BYTES, SLICE_BYTES, 1 << 62
        if target == "cuda":
            free = device.free_bytes()
            shares = KEPT_ON_GPU, SLICE_ON_GPU, LONGEST_ON_GPU
            usual, self.slice_bytes, self.longest_bytes = (int(share * free) for share in shares)
        self.kept_bytes = usual if kept_bytes is None else kept_bytes
        self.batches: list[BatchLog] = []
        self.kept = 0

    def add(self, batch: Batch) -> BatchLog:
        """Begin the log of a batch."""
        self.batches.append(BatchLog(self, batch))
        return self.batches[-1]
