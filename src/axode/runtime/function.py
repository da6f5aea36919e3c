"""A function of a model on the GPU: arrays in, arrays out, batch axes as on the CPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from axode.errors import InvalidArgument
from axode.runtime import device
from axode.runtime.arrays import (
    ArrayView,
    current_stream,
    is_on_device,
    joined_stride,
    signature,
    view,
)
from axode.runtime.cuda import GpuKernel
from axode.runtime.launch import Launch, use_device
from axode.runtime.staging import evaluate_staged

MAX_LAUNCHES = 64  # that are kept ready, by the places of their arrays
MAX_VECTORS = 64  # that are kept on the GPU because calls share them, such as parameters


class GpuFunction:
    """Evaluates a map kernel.

    NumPy arrays are carried to the GPU and back, through page-locked memory and in pieces that
    overlap. Arrays on the device are used in place in any layout, and the result stays there; a
    call on them costs a launch on the caller's stream.

    Args:
        kernel: The loaded kernel.
        shape: Shape of one result.
        arguments: Names of the arguments, in order.
    """

    def __init__(self, kernel: GpuKernel, shape: Sequence[int], arguments: Sequence[str]) -> None:
        self.kernel = kernel
        self.shape = tuple(shape)
        self.arguments = tuple(arguments)
        self._sizes: Mapping[str, int] = kernel.header["given"]
        self._vectors: dict[tuple[int, bytes], Any] = {}
        self._launches: dict[Any, Launch] = {}

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
            stream: Stream of CuPy or PyTorch, or its address; unless given, the current one of
                PyTorch for its tensors and of CuPy for other arrays.
        """
        self._check_number(arrays)
        cp = self.kernel.cupy
        if not (is_on_device(out) or any(map(is_on_device, arrays))):
            with device.MemoryGuard(self.kernel.header["name"]):
                return self._staged(arrays, out)
        address = current_stream(cp, arrays) if stream is None else device.stream_address(stream)
        known = None if out is None else signature(cp, (*arrays, out))
        key = known and (use_device(cp), known)
        launch = self._launches.get(key)
        if launch is not None:
            launch(address)
            return out
        with device.MemoryGuard(self.kernel.header["name"]):
            launch, result = self._prepared(arrays, out, address)
            launch(address)
            if key is not None and result is out:
                self._keep(key, launch, arrays)
            return result if out is None else self._deliver(result, out, address)

    def _keep(self, key: Any, launch: Launch, arrays: tuple[Any, ...]) -> None:
        """Keep a launch for calls on the same places, unless it works on copies.

        The caller's arrays need not live as long: a call with the same key has arrays there.
        """
        owners = [v.owner for v in launch.kept]
        carried = {id(a) for a in self._vectors.values()}
        if len(owners) != len(arrays) or not all(
            owner is a or id(owner) in carried for owner, a in zip(owners, arrays, strict=True)
        ):
            return
        if len(self._launches) >= MAX_LAUNCHES:
            self._launches.clear()
        launch.kept = [owner for owner in owners if id(owner) in carried]
        self._launches[key] = launch

    def prepare(self, *arrays: Any, out: Any) -> Launch:
        """Prepare calls on the same arrays on the GPU; each costs a launch and nothing else.

        Args:
            arrays: As for a call, all on the GPU and of the kernel's precision.
            out: An array of the result's shape to write to.
        """
        self._check_number(arrays)
        launch, result = self._prepared(arrays, out, current_stream(self.kernel.cupy, arrays))
        if result is not out:
            raise InvalidArgument(
                f"out must be a {self.kernel.dtype} array on the GPU with evenly spaced axes"
            )
        launch.kept = (launch.kept, out)
        return launch

    def _check_number(self, arrays: tuple[Any, ...]) -> None:
        if len(arrays) != len(self.arguments):
            raise InvalidArgument(
                f"{self.kernel.header['name']} takes {', '.join(self.arguments)}; got "
                f"{len(arrays)} arrays"
            )

    def _check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        if not shape or shape[-1] != self._sizes[name]:
            raise InvalidArgument(
                f"'{name}' has shape {shape}, expected {self._sizes[name]} numbers along the last "
                "axis"
            )

    # arrays on the GPU -------------------------------------------------------------------------

    def _prepared(self, arrays: tuple[Any, ...], out: Any, stream: int) -> tuple[Launch, Any]:
        """Prepare a launch, and the array it writes: `out` where its layout and type allow."""
        views = [self._view(n, a, stream) for n, a in zip(self.arguments, arrays, strict=True)]
        shapes = {v.shape[:-1] for v in views if len(v.shape) > 1}
        batch = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        runs = math.prod(batch)
        result = out
        places = None if out is None else self._result_entry(out, batch)
        if places is None:
            with device.on_stream(stream):
                result = self.kernel.cupy.empty((*batch, *self.shape), dtype=self.kernel.dtype)
            places = self._result_entry(result, batch)
            assert places is not None
        kept = list(views)
        items = list(places)
        for v in views:
            steps = self._steps(v, batch)
            if steps is None:
                v = self._spread(v, batch, stream)
                kept.append(v)
                steps = v.strides[0]
            items += [v.address, steps, v.strides[-1]]
        return self.kernel.launch([*items, 2**62, 0], runs, kept), result

    def _view(self, name: str, value: Any, stream: int) -> ArrayView:
        kernel = self.kernel
        if is_on_device(value):
            found = view(kernel.cupy, name, value)
            if found.dtype != kernel.dtype:
                with device.on_stream(stream):
                    there = kernel.cupy.asarray(value, dtype=kernel.dtype)
                found = view(kernel.cupy, name, there)
        else:
            found = view(kernel.cupy, name, self._carried(value, stream))
        self._check_shape(name, found.shape)
        return found

    def _carried(self, value: Any, stream: int) -> Any:
        """Carry an array of the CPU; vectors that all samples share stay for the next call."""
        cp, array = self.kernel.cupy, np.asarray(value, dtype=self.kernel.dtype)
        if array.ndim != 1:
            with device.on_stream(stream):
                return cp.asarray(array)
        key = int(cp.cuda.runtime.getDevice()), array.tobytes()
        if key not in self._vectors:
            if len(self._vectors) >= MAX_VECTORS:
                self._vectors.clear()
            self._vectors[key] = cp.asarray(array)
            cp.cuda.get_current_stream().synchronize()  # the next call may come on another one
        return self._vectors[key]

    @staticmethod
    def _steps(v: ArrayView, batch: tuple[int, ...]) -> int | None:
        """Bytes between the samples of an array; None if they are not evenly spaced."""
        if len(v.shape) == 1:
            return 0
        return joined_stride(batch, v.strides[:-1]) if v.shape[:-1] == batch else None

    def _spread(self, v: ArrayView, batch: tuple[int, ...], stream: int) -> ArrayView:
        """Copy an array that is shared by some of the samples, or spaced unevenly."""
        cp = self.kernel.cupy
        with device.on_stream(stream):
            array = cp.asarray(v.owner)
            full = cp.broadcast_to(array, (*batch, v.shape[-1]))
            return view(cp, "", cp.ascontiguousarray(full).reshape(-1, v.shape[-1]))

    def _result_entry(self, out: Any, batch: tuple[int, ...]) -> tuple[int, int, int] | None:
        """Address and strides of the result; None where a kernel cannot write to it."""
        shape = (*batch, *self.shape)
        if tuple(out.shape) != shape:
            raise InvalidArgument(f"out has shape {tuple(out.shape)}, expected {shape}")
        if not is_on_device(out):
            return None
        found = view(self.kernel.cupy, "out", out)
        axes = len(batch)
        runs = joined_stride(shape[:axes], found.strides[:axes])
        elements = joined_stride(shape[axes:], found.strides[axes:])
        if found.dtype != self.kernel.dtype or runs is None or elements is None:
            return None
        return found.address, runs, elements

    def _deliver(self, result: Any, out: Any, stream: int) -> Any:
        """Copy the result to an array of another type or layout, or on the CPU."""
        if result is not out:
            with device.on_stream(stream):
                out[...] = result if is_on_device(out) else self.kernel.cupy.asnumpy(result)
        return out

    # arrays on the CPU -------------------------------------------------------------------------

    def _staged(self, arrays: tuple[Any, ...], out: Any) -> Any:
        given = [np.asarray(a) for a in arrays]
        for name, a in zip(self.arguments, given, strict=True):
            self._check_shape(name, a.shape)
        shapes = {a.shape[:-1] for a in given if a.ndim > 1}
        batch = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
        flat = [a if a.ndim == 1 else _flatten(a, batch) for a in given]
        shape, size = (*batch, *self.shape), math.prod(self.shape)
        if out is not None and out.shape != shape:
            raise InvalidArgument(f"out has shape {out.shape}, expected {shape}")
        direct = out is not None and out.flags.c_contiguous
        result = out if direct else np.empty(shape, dtype=self.kernel.dtype)
        evaluate_staged(self.kernel, flat, result.reshape(math.prod(batch), size))
        if out is None or direct:
            return result
        out[...] = result
        return out


def _flatten(array: Any, batch: tuple[int, ...]) -> Any:
    """Spread an array over the batch, and make one axis of all batch axes."""
    if array.shape[:-1] != batch:
        array = np.broadcast_to(array, (*batch, array.shape[-1]))
    return array.reshape(-1, array.shape[-1])
