"""A function of a model on the GPU: arrays in, arrays out, batch axes as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, NotApplicable
from axode.runtime.cuda import GpuKernel, cupy, soa

SHARE_OF_MEMORY = 0.8  # of what is free, for one launch; larger batches go in pieces


class GpuFunction:
    """Evaluates a map kernel.

    NumPy arrays are carried to the GPU and back; arrays that are there already stay there, and so
    does the result.

    Args:
        kernel: The loaded kernel.
        shape: Of one result.
        arguments: Names of the arguments, in order.
    """

    def __init__(self, kernel: GpuKernel, shape: Sequence[int], arguments: Sequence[str]) -> None:
        self.kernel = kernel
        self.shape = tuple(shape)
        self.arguments = tuple(arguments)

    def __call__(self, *arrays: Any, out: Any = None, threads: int | None = None) -> Any:
        """One array an argument, of its size behind any leading batch axes.

        Args:
            arrays: NumPy arrays, or arrays on the GPU.
            out: An array of the result's shape to write to.
            threads: Without meaning here.
        """
        cp = cupy()
        sizes: Mapping[str, int] = self.kernel.header["given"]
        stays = any(hasattr(a, "__cuda_array_interface__") for a in arrays)
        given = [cp.asarray(a, dtype=cp.float64) for a in arrays]
        for name, a in zip(self.arguments, given, strict=True):
            if a.ndim == 0 or a.shape[-1] != sizes[name]:
                raise InvalidArgument(
                    f"'{name}' has shape {a.shape}, expected {sizes[name]} numbers along the last "
                    "axis"
                )
        batch = np.broadcast_shapes(*(a.shape[:-1] for a in given))
        result = self._evaluated(cp, given, batch)
        if not stays:
            result = cp.asnumpy(result)
        if out is None:
            return result
        out[...] = result
        return out

    def _evaluated(self, cp: Any, given: list[Any], batch: tuple[int, ...]) -> Any:
        count, size = math.prod(batch), math.prod(self.shape)
        flat = [a if a.ndim == 1 else cp.broadcast_to(a, (*batch, a.shape[-1])).reshape(count, -1)
                for a in given]  # fmt: skip
        result = cp.empty((count, size))
        (name,) = self.kernel.header["state"]
        piece = self._piece(cp, flat, size, count)
        for first in range(0, count, piece):
            part = slice(first, min(first + piece, count))
            buffers = {n: a if a.ndim == 1 else soa(a[part])
                       for n, a in zip(self.arguments, flat, strict=True)}  # fmt: skip
            there = cp.empty((size, part.stop - part.start)).T
            self.kernel({**buffers, name: there})
            result[part] = there
        return result.reshape(*batch, *self.shape)

    @staticmethod
    def _piece(cp: Any, flat: list[Any], size: int, count: int) -> int:
        """How many samples fit into memory at once."""
        row = 8 * (sum(a.shape[-1] for a in flat) + size)
        free = cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes()
        piece = int(SHARE_OF_MEMORY * free / (2 * row))
        if piece < 1:
            raise NotApplicable(
                f"the GPU has {free / 2**20:.0f} MiB free, one sample needs {row} bytes; free some "
                "memory (cupy.get_default_memory_pool().free_all_blocks())"
            )
        return min(max(count, 1), piece)
