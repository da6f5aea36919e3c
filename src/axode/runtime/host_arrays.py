"""A kernel on arrays of the CPU: they go to the GPU, are advanced there, and come back.

Runs that do not fit into the GPU's memory together go one piece after the other. Where all fit,
tables and read-only arrays stay there from call to call, and so does the state of runs of which
only some arrays are watched in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axode.runtime import device
from axode.runtime.cuda import GpuKernel

WRITTEN = "out"  # the table that kernels write to


class BoundKernel:
    """A kernel on the arrays of some runs, to be called repeatedly.

    Args:
        kernel: The loaded kernel.
        buffers: State (runs, size) and given ones, (runs, size) or (size,) if shared; NumPy's.
        tables: Arrays (rows, width) if shared or (runs, rows, width).
        watched: State that is brought back after every call, the rest by `fetch`; changes that
            Python makes in between are then ignored. All of it unless given.
    """

    def __init__(
        self,
        kernel: GpuKernel,
        buffers: Mapping[str, Any],
        tables: Mapping[str, Any],
        watched: Sequence[str] | None = None,
    ) -> None:
        self.kernel, self.buffers, self.tables = kernel, buffers, tables
        self.runs = int(buffers[next(iter(kernel.header["state"]))].shape[0])
        names = (*kernel.header["state"], *kernel.header["given"])
        numbers = sum(buffers[n].shape[1] for n in names if buffers[n].ndim == 2)
        numbers += sum(
            a.shape[1] * a.shape[2] for n in kernel.header["tables"] if (a := tables[n]).ndim == 3
        )
        piece = device.piece_of(self.runs, kernel.dtype.itemsize * numbers)
        self.pieces = [slice(k, min(k + piece, self.runs)) for k in range(0, self.runs, piece)]
        self._kept: dict[str, Any] | None = None  # tables that stay there, if all runs do
        self._resident: dict[str, Any] = {}  # and arrays that nobody here can change
        self._watched = kernel.header["state"]
        if watched is not None and len(self.pieces) == 1:
            self._watched = {name: self._watched[name] for name in watched}

    def __call__(self, budget: int, threads: int | None = None) -> None:
        """Advance all runs; state buffers change in place, tables when they are fetched."""
        with device.enough_memory(f"{self.runs} runs"):
            for part in self.pieces:
                whole = len(self.pieces) == 1
                tables = self._there(part) if self._kept is None else self._kept
                self._advance(part, tables, budget)
                if whole:
                    self._kept = tables
                else:
                    self._back(part, tables)

    def fetch(self) -> None:
        """Bring back the table that was written, and the state that was not watched."""
        if self._kept is not None:
            self._back(slice(0, self.runs), self._kept)
        for name in self.kernel.header["state"]:
            if name in self._resident:
                self.buffers[name][...] = self._numpy(self._resident[name])

    def _there(self, part: slice) -> dict[str, Any]:
        names = self.kernel.header["tables"]
        return {name: self._move(self.tables[name], 3, part) for name in names}

    def _move(self, array: Any, axes: int, part: slice) -> Any:
        return device.side_by_side(array[part] if array.ndim == axes else array, self.kernel.dtype)

    def _advance(self, part: slice, tables: dict[str, Any], budget: int) -> None:
        header = self.kernel.header
        names = (*header["state"], *header["given"])
        arrays = {name: self._resident.get(name) for name in names}
        for name, there in arrays.items():
            if there is None:
                arrays[name] = self._move(self.buffers[name], 2, part)
                if len(self.pieces) == 1 and self._stays(name):
                    self._resident[name] = arrays[name]
        self.kernel(arrays, tables, budget=budget)
        for name in self._watched:
            self.buffers[name][part] = self._numpy(arrays[name])

    def _stays(self, name: str) -> bool:
        if len(self._watched) < len(self.kernel.header["state"]):
            return True
        return name not in self._watched and not self.buffers[name].flags.writeable

    def _back(self, part: slice, tables: dict[str, Any]) -> None:
        if WRITTEN in tables:
            self.tables[WRITTEN][part] = self._numpy(tables[WRITTEN])

    @staticmethod
    def _numpy(array: Any) -> Any:
        cp = device.cupy()
        return np.asarray(cp.asnumpy(cp.ascontiguousarray(array)))
