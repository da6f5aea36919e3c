"""Arrays of runs that live on the GPU: made there, advanced there, read here when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.runtime import device, staging
from axode.runtime.cuda import GpuKernel

Array = npt.NDArray[np.float64]


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

    def __setitem__(self, name: str, value: Array) -> None:
        self._here[name] = value

    def __delitem__(self, name: str) -> None:
        del self._here[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._there | self._here)

    def __len__(self) -> int:
        return len(self._there | self._here)
