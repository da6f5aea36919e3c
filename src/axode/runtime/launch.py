"""A kernel with its arguments: what a launch on a stream needs, and its blocks and threads."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

STATUSES = 16  # that a kernel counts
SUMMARY_BYTES = 8 * (STATUSES + 1)
WARP = 32  # runs per group whose first time is added up
_THREAD = threading.local()


class Summary(NamedTuple):
    """Runs after a launch.

    Attributes:
        counts: How many runs have each status, by its number.
        time: Mean time of the runs, of every 32nd one.
    """

    counts: tuple[int, ...]
    time: float

    @property
    def running(self) -> int:
        """Return the number of runs that continue."""
        return self.counts[0]

    @classmethod
    def read(cls, words: Any) -> Summary:
        """Read what a kernel has written."""
        counts = words[:STATUSES].tolist()
        warps = -(-sum(counts) // WARP)
        return cls(tuple(counts), float(words[STATUSES:].view(np.float64)[0]) / max(warps, 1))


def use_device(cp: Any) -> int:
    """Number of the current GPU, made ready for this thread."""
    number = int(cp.cuda.runtime.getDevice())
    if getattr(_THREAD, "ready", None) != number:
        cp.cuda.runtime.free(0)  # makes the context of this GPU the thread's
        _THREAD.ready = number
    return number


class Launch:
    """A prepared launch; calling it costs the launch alone.

    Args:
        cp: The module cupy.
        function: Address of the kernel.
        geometry: Number of blocks, and of threads per block.
        items: The kernel's table.
        runs: Number of runs.
        kept: Arrays that must live as long.
    """

    __slots__ = ("_driver", "_function", "_geometry", "_items", "_parameters", "_stream", "kept")

    def __init__(
        self,
        cp: Any,
        function: int,
        geometry: tuple[int, int],
        items: Sequence[int],
        runs: int,
        kept: Any,
    ) -> None:
        self._driver, self._stream = cp.cuda.driver.launchKernel, cp.cuda.get_current_stream
        self._function, self._geometry, self.kept = function, geometry, kept
        self._items = array("q", [*items, runs])
        address = self._items.buffer_info()[0]
        self._parameters = array("q", [address, address + 8 * len(items)])

    def __call__(self, stream: int | None = None) -> None:
        """Launch on a stream, given by its address, or on CuPy's current one; does not wait."""
        blocks, threads = self._geometry
        if not blocks:
            return
        if stream is None:
            stream = self._stream().ptr
        parameters = self._parameters.buffer_info()[0]
        self._driver(self._function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, 0)

    def set_budget(self, budget: int) -> None:
        """Change how many iterations a counted loop may make."""
        self._items[-3] = budget


# blocks and threads -------------------------------------------------------------------------------


BLOCKS = (64, 128, 256)  # threads per block that are considered
REGISTER_UNIT = 8  # registers per thread are allocated in multiples of this


@dataclass(frozen=True)
class GpuLimits:
    """What a GPU has.

    Attributes:
        multiprocessors: Parts that each work on blocks of their own.
        registers: Registers of each part.
        threads: That each part can hold.
    """

    multiprocessors: int
    registers: int = 65536
    threads: int = 2048


def resident(chip: GpuLimits, registers: int, block: int) -> int:
    """Threads that one multiprocessor holds at once, in blocks of a size."""
    each = -(-max(registers, 1) // REGISTER_UNIT) * REGISTER_UNIT
    warps = min(chip.registers // (each * WARP), chip.threads // WARP)
    return warps * WARP // block * block


def launch_geometry(runs: int, registers: int, chip: GpuLimits) -> tuple[int, int]:
    """Number of blocks, and of threads per block.

    The block that keeps most threads on the chip, the smaller of equals; a batch too small to fill
    it is spread over all multiprocessors in smaller blocks.
    """
    block = max(BLOCKS, key=lambda size: (resident(chip, registers, size), -size))
    share = -(-runs // chip.multiprocessors)
    block = min(block, max(WARP, -(-share // WARP) * WARP))
    return -(-runs // block), block
