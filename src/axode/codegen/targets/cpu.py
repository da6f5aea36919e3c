"""Tapes as functions of NumPy arrays: scalar, SIMD and threaded batches."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.host import check_threads, host
from axode.codegen.lowering import batch_loop as kernel
from axode.codegen.tape.operations import Array
from axode.codegen.tape.tape import Port, Shape, Tape
from axode.codegen.targets import jit
from axode.codegen.targets.fastcall import DATA, FastCall, layout_is_known
from axode.errors import InvalidArgument

# Below this many operations, a tenth of a millisecond, a second thread costs more than it saves,
# and letting other threads of Python go on meanwhile is not worth looking at the arrays.
OPERATIONS_PER_THREAD = 4_000_000

# Operations that take as long as moving a number from or to memory.
OPERATIONS_PER_NUMBER = 8

_FLOAT64, _word_at = np.dtype(np.float64), ctypes.c_int64.from_address
_KERNEL_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def address_of(array: npt.NDArray[Any]) -> int:
    """Address of the first number of an array."""
    if layout_is_known():  # twenty times as fast as to ask the array
        return _word_at(id(array) + DATA).value
    address: int = array.__array_interface__["data"][0]
    return address


def spacing_of(array: npt.NDArray[Any], axes: int) -> int | None:
    """Bytes from one sample to the next; None unless all follow each other evenly.

    Args:
        array: Samples of float64, behind any leading axes.
        axes: How many axes a sample has; its numbers have to follow each other.
    """
    lead = array.ndim - axes
    size = 8 * (array.shape[-1] if axes == 1 else math.prod(array.shape[lead:]))
    if array.flags.c_contiguous:
        return size
    within, between = 8, None  # strides that the next axis must have
    spacing = size
    for axis in reversed(range(array.ndim)):
        length, stride = array.shape[axis], array.strides[axis]
        if length == 1:
            continue
        if axis >= lead:
            if stride != within:
                return None
            within *= length
        else:
            if between is None:
                spacing = stride
            elif stride != between:
                return None
            between = stride * length
    return spacing


@functools.cache
def pool() -> ThreadPoolExecutor:
    """Threads that share batches, started when first needed."""
    return ThreadPoolExecutor(max_workers=cpu_count(), thread_name_prefix="axode")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # threads do not survive a fork


@functools.cache
def cpu_count() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Kernel:
    """One compiled width of a tape, with its work arrays."""

    def __init__(self, tape: Tape, lanes: int, quick: bool = False) -> None:
        self.lanes = lanes
        identity = f"{tape.digest} lanes {lanes}"
        self.native = jit.load(
            tape.name,
            identity,
            kernel.ENTRY,
            lambda: kernel.module(tape, lanes),
            tape.n_operations,
            quick,
        )
        self.work_size = kernel.work_size(tape, lanes)
        self._run = _KERNEL_TYPE(self.native.address)
        self._table_type = ctypes.c_int64 * (2 * len((*tape.inputs, *tape.outputs)) + 1)
        self._spare: list[tuple[int, npt.NDArray[np.uint8]]] = []

    def new_work(self) -> tuple[int, npt.NDArray[np.uint8]]:
        """An aligned work array of its own, behind its address."""
        raw = np.empty(self.work_size + kernel.WORK_ALIGNMENT, dtype=np.uint8)
        aligned = raw[-address_of(raw) % kernel.WORK_ALIGNMENT :]
        return address_of(aligned), aligned

    def run(self, places: list[int], begin: int, end: int) -> None:
        """Samples begin to end; the interpreter lock is released meanwhile.

        Args:
            places: Address and stride of every input, then of every output.
            begin: First sample.
            end: One past the last sample.
        """
        try:
            work = self._spare.pop()
        except IndexError:
            work = self.new_work()
        self._run(self._table_type(*places, work[0]), begin, end)
        self._spare.append(work)


def _unwrap(results: list[Array]) -> Any:
    """What NumPy users expect: numbers instead of arrays without axes, no tuple of one."""
    if len(results) == 1:
        return results[0] if results[0].ndim else results[0][()]
    return tuple([array if array.ndim else array[()] for array in results])


def _expected(port: Port) -> str:
    return f"(..., {', '.join(map(str, port.shape))})" if port.shape else "a number"


class CompiledFunction:
    """A tape as machine code.

    Called with one array per input, of the input's shape behind any leading batch
    axes; batch axes are broadcast against each other. Returns an array, or a tuple
    of arrays if there are several outputs. NaN and infinity pass through.

    Code is compiled (or loaded from the disk cache) when first needed: for single
    samples and for batches separately. `prepare` does it ahead of time.
    """

    def __init__(self, tape: Tape, *, lanes: int | None = None) -> None:
        """Wrap a tape; compiles nothing yet.

        Args:
            tape: What to compute.
            lanes: Samples per vector in batches: 1, 2, 4, 8; None for what the CPU does best.
        """
        if lanes not in (None, 1, 2, 4, 8):
            raise InvalidArgument(f"lanes is {lanes}, expected 1, 2, 4, 8 or None.")
        self.tape = tape
        self.lanes = lanes or host().lanes
        self._kernels: dict[int, _Kernel] = {}
        self._quick_seconds = 0.0  # that code for batches has run without being optimised
        self._shapes = tuple(port.shape for port in tape.outputs)
        numbers = sum(port.size for port in (*tape.inputs, *tape.outputs))
        self._effort = max(1, tape.n_operations, OPERATIONS_PER_NUMBER * numbers)
        self._fast_call = FastCall(tape, OPERATIONS_PER_THREAD // self._effort)
        self._fast: Callable[..., int] = self._fast_call.call

    def __repr__(self) -> str:
        return f"CompiledFunction of {self.tape!r}, {self.lanes} lanes"

    @property
    def compile_seconds(self) -> dict[int, float]:
        """Seconds to compile or load each width used so far, by lanes."""
        return {lanes: k.native.seconds for lanes, k in self._kernels.items()}

    @property
    def from_cache(self) -> dict[int, bool]:
        """Return whether each width used so far came from the disk cache, by lanes."""
        return {lanes: k.native.cached for lanes, k in self._kernels.items()}

    @property
    def code_bytes(self) -> dict[int, int]:
        """Size of the object code of each width used so far, by lanes."""
        return {lanes: k.native.size for lanes, k in self._kernels.items()}

    def prepare(self, *, single: bool = True, batch: bool = True) -> CompiledFunction:
        """Compile now what calls would compile later."""
        if single:
            self._kernel(1)
        if batch:
            self._kernel(self.lanes)
        return self

    def machine_code(self, lanes: int | None) -> tuple[jit.LoadedCode, int, npt.NDArray[np.uint8]]:
        """Return code for single samples or for batches (None), and a work array of its own."""
        kernel = self._kernel(lanes or self.lanes)
        return kernel.native, *kernel.new_work()

    def __call__(
        self,
        *arrays: npt.ArrayLike,
        out: Array | Sequence[Array] | None = None,
        threads: int | None = None,
    ) -> Any:
        """Evaluate the function.

        Args:
            *arrays: One per input; numbers, lists and other dtypes are converted.
            out: Arrays to write to (one, or one per output): float64 of the exact shape,
                C-contiguous or evenly spaced rows of a wider array. Nothing else is allocated. May
                be an input as a whole; an input that shares only part of its memory is copied
                first.
            threads: How many threads share a batch; None decides by its size.
        """
        if threads is not None:
            check_threads(threads)
        if out is None:
            results = [np.empty(shape) for shape in self._shapes]
            if self._fast(*arrays, *results):
                return _unwrap(results)
            return self._careful(arrays, None, threads)
        if isinstance(out, np.ndarray):
            handled = self._fast(*arrays, out)
        else:
            handled = self._fast(*arrays, *out)
        return out if handled else self._careful(arrays, out, threads)

    def _kernel(self, lanes: int, *, quick: bool = False) -> _Kernel:
        known = self._kernels.get(lanes)
        if known is None or (known.native.quick and not quick):
            with jit.LOCK:
                known = self._kernels.get(lanes)
                if known is None or (known.native.quick and not quick):
                    known = _Kernel(self.tape, lanes, quick)
                    for batch, width in ((False, 1), (True, self.lanes)):
                        if lanes == width and not known.native.quick:  # whose calls are counted
                            work = known.new_work()[1]
                            self._fast_call.use(known.native.address, work, batch=batch)
                    self._kernels[lanes] = known
        return known

    def _careful(
        self,
        arrays: tuple[npt.ArrayLike, ...],
        out: Array | Sequence[Array] | None,
        threads: int | None,
    ) -> Any:
        """Check, convert and broadcast; then run the batch."""
        if out is None and threads is None:
            results = self._small_batch(arrays)
            if results is not None:
                return results
        inputs, batch = self._inputs(arrays)
        outputs = self._outputs(out, batch)
        if out is not None:
            inputs = self._apart(inputs, outputs)
        count = math.prod(batch)
        if count:
            self._run(self._places(inputs, outputs), count, threads)
        if out is not None:
            return out
        return _unwrap(outputs)

    def _small_batch(self, arrays: tuple[npt.ArrayLike, ...]) -> Any:
        """Results of a small batch of plain arrays with equal batch axes, else None."""
        batch: Shape = ()
        for port, array in zip(self.tape.inputs, arrays, strict=False):
            if type(array) is np.ndarray and array.ndim - len(port.shape) > len(batch):
                batch = array.shape[: array.ndim - len(port.shape)]
        if not batch:
            return None
        results = [np.empty(batch + shape) for shape in self._shapes]
        return _unwrap(results) if self._fast(*arrays, *results) else None

    def _inputs(self, arrays: tuple[npt.ArrayLike, ...]) -> tuple[list[Array], Shape]:
        ports = self.tape.inputs
        if len(arrays) != len(ports):
            names = ", ".join(port.name for port in ports)
            raise InvalidArgument(
                f"{self.tape.name} takes {len(ports)} arrays ({names}), got {len(arrays)}."
            )
        inputs = [self._convert(p, a) for p, a in zip(ports, arrays, strict=True)]
        shapes = [a.shape[: a.ndim - len(p.shape)] for p, a in zip(ports, inputs, strict=True)]
        try:
            same = all(shape == shapes[0] for shape in shapes[1:])
            batch = shapes[0] if shapes and same else np.broadcast_shapes(*shapes)
        except ValueError:
            listed = ", ".join(
                f"'{p.name}' {shape}" for p, shape in zip(ports, shapes, strict=True)
            )
            raise InvalidArgument(
                f"{self.tape.name}: the batch axes do not fit together: {listed}."
            ) from None
        return [self._expand(p, a, batch) for p, a in zip(ports, inputs, strict=True)], batch

    def _convert(self, port: Port, value: npt.ArrayLike) -> Array:
        plain = type(value) is np.ndarray and value.dtype is _FLOAT64 and value.flags.aligned
        if plain and spacing_of(value, len(port.shape)) is not None:  # type: ignore[arg-type]
            array: Array = value  # type: ignore[assignment]
        else:
            array = self._as_float64(port, value)
        lead = array.ndim - len(port.shape)
        if lead < 0 or array.shape[lead:] != port.shape:
            raise InvalidArgument(
                f"{self.tape.name}: '{port.name}' has shape {array.shape}, "
                f"expected {_expected(port)}."
            )
        return array

    def _as_float64(self, port: Port, value: npt.ArrayLike) -> Array:
        try:
            array = np.asarray(value)
            if array.dtype.kind not in "fiub":
                raise TypeError
            # require alone would make a number an array of one element
            return np.require(array, np.float64, ["C", "A"]).reshape(array.shape)
        except (TypeError, ValueError):
            held = getattr(value, "dtype", type(value).__name__)
            raise InvalidArgument(
                f"{self.tape.name}: '{port.name}' holds {held}, expected real numbers, "
                f"shape {_expected(port)}."
            ) from None

    @staticmethod
    def _expand(port: Port, array: Array, batch: Shape) -> Array:
        """A whole batch in memory, or a single sample that is read again and again."""
        if array.size == port.size or array.shape == (*batch, *port.shape):
            return array
        return np.ascontiguousarray(np.broadcast_to(array, (*batch, *port.shape)))

    def _outputs(self, out: Array | Sequence[Array] | None, batch: Shape) -> list[Array]:
        ports = self.tape.outputs
        if out is None:
            return [np.empty((*batch, *port.shape)) for port in ports]
        given = [out] if isinstance(out, np.ndarray) else list(out)
        if len(given) != len(ports):
            raise InvalidArgument(
                f"{self.tape.name}: out has {len(given)} arrays, expected {len(ports)}."
            )
        for port, array in zip(ports, given, strict=True):
            shape = (*batch, *port.shape)
            sound = (
                isinstance(array, np.ndarray)
                and array.shape == shape
                and array.dtype == np.float64
                and array.flags.behaved
                and (spacing_of(array, len(port.shape)) or -1) >= 8 * port.size
            )
            if not sound:
                raise InvalidArgument(
                    f"{self.tape.name}: out for '{port.name}' must be a writable C-contiguous "
                    f"float64 array of shape {shape}, or evenly spaced rows of a wider one."
                )
        return given

    def _apart(self, inputs: list[Array], outputs: list[Array]) -> list[Array]:
        """Inputs that nothing is written to before it is read."""
        for k, output in enumerate(outputs):
            if any(np.may_share_memory(output, other) for other in outputs[:k]):
                raise InvalidArgument(f"{self.tape.name}: arrays of out share memory.")

        def copied(port: Port, array: Array) -> bool:
            return any(
                np.may_share_memory(array, output)
                and (address_of(array), array.size, port.size, spacing_of(array, len(port.shape)))
                != (
                    address_of(output),
                    output.size,
                    other.size,
                    spacing_of(output, len(other.shape)),
                )
                for other, output in zip(self.tape.outputs, outputs, strict=True)
            )

        return [
            array.copy() if copied(port, array) else array
            for port, array in zip(self.tape.inputs, inputs, strict=True)
        ]

    def _places(self, inputs: list[Array], outputs: list[Array]) -> list[int]:
        places: list[int] = []
        for port, array in zip(self.tape.inputs, inputs, strict=True):
            shared = array.size == port.size
            places += (address_of(array), 0 if shared else spacing_of(array, len(port.shape)) or 0)
        for port, array in zip(self.tape.outputs, outputs, strict=True):
            places += (address_of(array), spacing_of(array, len(port.shape)) or 0)
        return places

    def _run(self, places: list[int], count: int, threads: int | None) -> None:
        """Run samples; code for batches is optimised once that pays."""
        quick = count > 1 and self._quick_seconds < jit.OPTIMISING * self.tape.n_operations
        code = self._kernel(1 if count == 1 else self.lanes, quick=quick)
        started = time.perf_counter()
        self._spread(code, places, count, threads)
        if code.native.quick:
            self._quick_seconds += max(time.perf_counter() - started, jit.LEAST_CALL)

    def _spread(self, code: _Kernel, places: list[int], count: int, threads: int | None) -> None:
        if threads is None:
            threads = min(cpu_count(), 1 + count * self._effort // OPERATIONS_PER_THREAD)
        # Whole vectors per thread, so that only the last one meets a partial vector.
        share = -(-count // max(1, threads))
        share += -share % code.lanes
        starts = range(0, count, share)
        if len(starts) == 1:
            code.run(places, 0, count)
            return
        futures = [
            pool().submit(code.run, places, start, min(start + share, count))
            for start in starts[1:]
        ]
        code.run(places, 0, share)
        for future in futures:
            future.result()
