"""Arrays of runs that live on the GPU: made there, advanced there, read here when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.runtime import device, staging
from axode.runtime.cuda import GpuKernel

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


class ResidentBuffers(MutableMapping[str, Array]):
    """Buffers by name: state on the GPU, and what the kernel is given, on the CPU.

    State that is read comes as a copy, which is kept until the kernel runs again; numbers written
    to that copy stay on the CPU. The same number of all runs is contiguous.

    Args:
        kernel: What advances the runs.
        runs: How many there are.
        start: State to start with, (runs, size) or one number for all; zero unless given.
    """

    def __init__(self, kernel: GpuKernel, runs: int, start: Mapping[str, npt.ArrayLike]) -> None:
        self._cupy = kernel.cupy
        self._there: dict[str, Any] = {}
        self._here: dict[str, Array] = {}
        with device.MemoryGuard(f"{runs} runs"):
            for name, size in kernel.header["state"].items():
                columns = self._cupy.zeros((size, runs), dtype=kernel.dtype)
                value = np.broadcast_to(start.get(name, 0.0), (runs, size))
                if runs > 1 and value.strides[0] == 0:  # the same for all: spread there
                    if value[0].any():
                        columns.T[...] = self._cupy.asarray(value[0], dtype=kernel.dtype)
                else:
                    staging.send(self._cupy, value.T, columns)
                self._there[name] = columns.T

    @staticmethod
    def fit(kernel: GpuKernel, runs: int) -> bool:
        """Return whether the GPU has the memory for all runs, with as much again for the rest."""
        numbers = 2 * sum(kernel.header["state"].values())
        return device.piece_of(runs, kernel.dtype.itemsize * numbers) >= runs

    def arrays(self) -> dict[str, Any]:
        """State on the GPU, and the rest; what was read before is forgotten."""
        given = {name: a for name, a in self._here.items() if name not in self._there}
        self._here = given
        return self._there | given

    def __getitem__(self, name: str) -> Array:
        if name not in self._here:
            there = self._there[name].T
            columns = np.empty(there.shape)
            staging.receive(self._cupy, there, columns)
            self._here[name] = columns.T
        return self._here[name]

    def there(self, name: str) -> Any:
        """State on the GPU, (runs, size), without what was written to a copy of it."""
        return self._there[name]

    def was_read(self, name: str) -> bool:
        """Return whether state was read since the kernel ran; Python may have changed it."""
        return name in self._here

    def write_rows(self, name: str, rows: Numbers, values: Array) -> None:
        """Write the state of some runs, on the GPU and to the copy if it was read."""
        there, cp = self._there[name], self._cupy
        there[cp.asarray(rows)] = cp.asarray(values, dtype=there.dtype)
        if name in self._here:
            self._here[name][rows] = values

    def read_rows(self, name: str, rows: Numbers) -> Array:
        """Read the state of some runs, and fetch no more than that."""
        if name in self._here:
            return self._here[name][rows]
        some = self._there[name][self._cupy.asarray(rows)]
        return np.asarray(self._cupy.asnumpy(some), dtype=np.float64)

    def __setitem__(self, name: str, value: Array) -> None:
        self._here[name] = value

    def __delitem__(self, name: str) -> None:
        del self._here[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._there | self._here)

    def __len__(self) -> int:
        return len(self._there | self._here)


def write_rows(
    buffers: MutableMapping[str, Array], name: str, rows: Numbers, values: Array
) -> None:
    """Write the state of some runs, wherever the state of all is.

    Args:
        buffers: State of all runs.
        name: Which of it.
        rows: Numbers of the runs.
        values: Their state, (runs, size).
    """
    if isinstance(buffers, ResidentBuffers):
        buffers.write_rows(name, rows, values)
    else:
        buffers[name][rows] = values


def read_rows(buffers: Mapping[str, Array], name: str, rows: Numbers) -> Array:
    """Read the state of some runs, wherever the state of all is.

    Args:
        buffers: State of all runs.
        name: Which of it.
        rows: Numbers of the runs.
    """
    if isinstance(buffers, ResidentBuffers):
        return buffers.read_rows(name, rows)
    return np.asarray(buffers[name][rows])
