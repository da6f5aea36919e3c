"""A function of a model on the GPU: arrays in, arrays out, batch axes as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axode.errors import InvalidArgument
from axode.runtime import device
from axode.runtime.cuda import GpuKernel, cupy, soa


class GpuFunction:
    """Evaluates a map kernel.

    NumPy arrays are carried to the GPU and back; arrays that are there already stay there, and so
    does the result.

    Args:
        kernel: The loaded kernel.
        shape: Shape of one result.
        arguments: Names of the arguments, in order.
    """

    def __init__(self, kernel: GpuKernel, shape: Sequence[int], arguments: Sequence[str]) -> None:
        self.kernel = kernel
        self.shape = tuple(shape)
        self.arguments = tuple(arguments)

    def __repr__(self) -> str:
        return f"GpuFunction of {', '.join(self.arguments)}: {self.kernel!r}"

    def __call__(
        self, *arrays: Any, out: Any = None, threads: int | None = None, stream: Any = None
    ) -> Any:
        """Evaluate the function: one array per argument, with any leading batch axes.

        Args:
            arrays: NumPy arrays, or arrays of CuPy, PyTorch or JAX on the GPU.
            out: An array of the result's shape to write to.
            threads: Without meaning here.
            stream: Stream of CuPy or PyTorch, or its address; CuPy's current one unless given.
        """
        if len(arrays) != len(self.arguments):
            raise InvalidArgument(
                f"{self.kernel.header['name']} takes {', '.join(self.arguments)}; got "
                f"{len(arrays)} arrays"
            )
        with device.on_stream(stream), device.enough_memory(self.kernel.header["name"]):
            result = self._result(cupy(), arrays)
        if out is None:
            return result
        out[...] = result
        return out

    def _result(self, cp: Any, arrays: tuple[Any, ...]) -> Any:
        sizes: Mapping[str, int] = self.kernel.header["given"]
        stays = any(hasattr(a, "__cuda_array_interface__") for a in arrays)
        given = [cp.asarray(a, dtype=self.kernel.dtype) for a in arrays]
        for name, a in zip(self.arguments, given, strict=True):
            if a.ndim == 0 or a.shape[-1] != sizes[name]:
                raise InvalidArgument(
                    f"'{name}' has shape {a.shape}, expected {sizes[name]} numbers along the last "
                    "axis"
                )
        batch = np.broadcast_shapes(*(a.shape[:-1] for a in given))
        result = self._evaluate(cp, given, batch)
        return result if stays else cp.asnumpy(result)

    def _evaluate(self, cp: Any, given: list[Any], batch: tuple[int, ...]) -> Any:
        count, size = math.prod(batch), math.prod(self.shape)
        flat = [
            a if a.ndim == 1 else cp.broadcast_to(a, (*batch, a.shape[-1])).reshape(count, -1)
            for a in given
        ]
        dtype = self.kernel.dtype
        result = cp.empty((count, size), dtype=dtype)
        (name,) = self.kernel.header["state"]
        row = dtype.itemsize * (sum(a.shape[-1] for a in flat) + size)
        piece = device.piece_of(count, row)
        for first in range(0, count, piece):
            part = slice(first, min(first + piece, count))
            buffers = {
                n: a if a.ndim == 1 else soa(a[part], dtype)
                for n, a in zip(self.arguments, flat, strict=True)
            }
            there = cp.empty((size, part.stop - part.start), dtype=dtype).T
            self.kernel({**buffers, name: there})
            result[part] = there
        return result.reshape(*batch, *self.shape)
