"""Carry NumPy arrays to the GPU and back, through page-locked memory that is kept.

Every lane has a stream and a buffer of its own and takes one piece after the other: while one
copies into its buffer, the transfers and the kernel of others run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.runtime.arrays import as_array, is_on_device
from axode.runtime.cuda import GpuKernel, cupy
from axode.runtime.launch import use_device

Array = npt.NDArray[Any]
# Bytes that go at once, least and most, and how many threads carry them at most. Measured: a piece
# costs about 0.15 ms that threads do not share, and up to eight or ten threads copy faster.
PIECES = (2**20, 12 * 2**20)
LANES = 10
TO_DEVICE, TO_HOST, BY_ADDRESS = 1, 2, 4  # as the driver numbers directions


class Lane:
    """A stream with a page-locked buffer and one on the GPU.

    Args:
        cp: The module cupy.
        number: Number of the GPU.
    """

    def __init__(self, cp: Any, number: int) -> None:
        self._cp, self._number, self._size = cp, number, 0
        self._stream: Any = None

    def enter(self, size: int) -> None:
        """Make the GPU the thread's, and the buffers large enough."""
        cp = self._cp
        cp.cuda.Device(self._number).use()
        use_device(cp)
        if self._stream is None:
            self._stream = cp.cuda.Stream(non_blocking=True)
        if size > self._size:
            self._memory = cp.cuda.alloc_pinned_memory(size)
            self.host: Array = np.frombuffer(self._memory, dtype=np.uint8, count=size)
            self._there = cp.cuda.alloc(size)
            self.address, self._size = int(self._there.ptr), size

    @property
    def stream(self) -> int:
        """Address of the stream."""
        return int(self._stream.ptr)

    def send(self, there: int, first: int, size: int) -> None:
        """Send bytes of the buffer to an address on the GPU."""
        self._copy(there, self.host.ctypes.data + first, size, TO_DEVICE)

    def receive(self, there: int, first: int, size: int) -> None:
        """Fetch bytes from an address on the GPU into the buffer, and wait for them."""
        self._copy(self.host.ctypes.data + first, there, size, TO_HOST)
        self.wait()

    def wait(self) -> None:
        """Wait for the stream."""
        self._stream.synchronize()

    def _copy(self, to: int, source: int, size: int, direction: int) -> None:
        if size:
            self._cp.cuda.runtime.memcpyAsync(to, source, size, direction, self.stream)


class Lanes:
    """The lanes of one GPU; one call at a time uses them."""

    def __init__(self, cp: Any, number: int) -> None:
        self._lock = threading.Lock()
        self._lanes = [Lane(cp, number) for _ in range(min(LANES, os.cpu_count() or 1))]
        self._pool = ThreadPoolExecutor(len(self._lanes), "axode-staging")

    def run(self, pieces: int, size: int, work: Callable[[Lane, int], None]) -> None:
        """Do every piece on some lane; a single one in this thread.

        Args:
            pieces: How many there are.
            size: Bytes of a buffer.
            work: Does a piece, given by its number.
        """

        left = iter(range(pieces))  # a lane takes the next piece when it is done with one

        def serve(lane: Lane) -> None:
            lane.enter(size)
            for piece in left:
                work(lane, piece)

        count = min(pieces, len(self._lanes))
        with self._lock:
            if count <= 1:
                serve(self._lanes[0])
                return
            jobs = [self._pool.submit(serve, lane) for lane in self._lanes[:count]]
            try:
                wait(jobs)
            finally:
                wait(jobs)  # after Ctrl-C too: they read and write the caller's arrays
        for job in jobs:
            job.result()


def _piece(total: int) -> int:
    """Bytes of a piece: a share for every lane, if that is neither too small nor too large."""
    least, most = PIECES
    return min(max(-(-total // (8 * LANES)) * 8, least), most)


@lru_cache(maxsize=64)
def _lanes(cp: Any, number: int) -> Lanes:
    return Lanes(cp, number)


def lanes(cp: Any) -> Lanes:
    """Lanes of the current GPU."""
    return _lanes(cp, use_device(cp))


def evaluate_staged(kernel: GpuKernel, arrays: Sequence[Array], result: Array) -> None:
    """Evaluate a map kernel for NumPy arrays.

    Args:
        kernel: The kernel, whose only state is the result.
        arrays: (samples, size) or, if all samples share it, (size,).
        result: (samples, size), written.
    """
    number = kernel.dtype.itemsize
    count, size = result.shape
    shared = number * sum(a.size for a in arrays if a.ndim == 1)
    row = number * (size + sum(a.shape[1] for a in arrays if a.ndim == 2))
    rows = min(max(1, (_piece(row * count) - shared) // max(row, 1)), max(count, 1))

    def work(lane: Lane, piece: int) -> None:
        part = slice(piece * rows, min((piece + 1) * rows, count))
        samples, place, items = part.stop - part.start, 0, []
        for a in arrays:
            own = a if a.ndim == 1 else a[part]
            bytes_ = number * own.size
            np.copyto(lane.host[place : place + bytes_].view(kernel.dtype).reshape(own.shape), own)
            step = number * own.shape[-1] if a.ndim == 2 else 0
            items += [lane.address + place, step, number]
            place += bytes_
        lane.send(lane.address, 0, place)
        there = [lane.address + place, number * size, number]
        kernel.launch([*there, *items, 2**62, 0], samples)(lane.stream)
        bytes_ = number * size * samples
        lane.receive(lane.address + place, place, bytes_)
        made = lane.host[place : place + bytes_].view(kernel.dtype)
        result[part] = made.reshape(samples, size)

    lanes(kernel.cupy).run(-(-count // rows), shared + row * rows, work)


def send(cp: Any, array: Array, there: Any) -> None:
    """Copy a NumPy array of any layout into a contiguous array on the GPU of its shape; waits.

    Args:
        cp: The module cupy.
        array: What is copied, converted to the other's type.
        there: Array of CuPy.
    """

    def fill(lane: Lane, rows: Array, address: int) -> None:
        bytes_ = there.dtype.itemsize * rows.size
        np.copyto(lane.host[:bytes_].view(there.dtype).reshape(rows.shape), rows)
        lane.send(address, 0, bytes_)
        lane.wait()

    _by_rows(cp, array, there, fill)


def move(cp: Any, array: Any, there: Any) -> None:
    """Copy an array into a contiguous one on the current GPU; may not wait.

    Args:
        cp: The module cupy.
        array: Array of NumPy, or a contiguous one of CuPy on any GPU, of the other's type.
        there: Array of CuPy.
    """
    if not is_on_device(array):
        send(cp, array, there)
        return
    stream = cp.cuda.get_current_stream().ptr
    cp.cuda.runtime.memcpyAsync(there.data.ptr, array.data.ptr, there.nbytes, BY_ADDRESS, stream)


def receive(cp: Any, there: Any, array: Array) -> None:
    """Copy a contiguous array on the GPU into a NumPy array of its shape; waits.

    Args:
        cp: The module cupy.
        there: Array of CuPy.
        array: Written, converted to its type.
    """

    def take(lane: Lane, rows: Array, address: int) -> None:
        bytes_ = there.dtype.itemsize * rows.size
        lane.receive(address, 0, bytes_)
        np.copyto(rows, lane.host[:bytes_].view(there.dtype).reshape(rows.shape))

    _by_rows(cp, array, there, take)


def _by_rows(cp: Any, array: Array, there: Any, move: Callable[[Lane, Array, int], None]) -> None:
    """Move some rows of an array at a time, given with their address on the GPU."""
    cp.cuda.get_current_stream().synchronize()  # the previous content may still be in use
    if not array.size:
        return
    if array.flags.c_contiguous:
        array = array.reshape(-1)
    count, address = array.shape[0], int(there.data.ptr)
    row = there.dtype.itemsize * (array.size // count)
    step = min(max(1, _piece(row * count) // row), count)

    def work(lane: Lane, piece: int) -> None:
        first = piece * step
        move(lane, array[first : first + step], address + first * row)

    lanes(cp).run(-(-count // step), row * step, work)


def hand_out(array: Any, library: str) -> Any:
    """Return an array as one of a library on the GPU; one of NumPy is copied there."""
    if is_on_device(array):
        return array if library == "cupy" else as_array(array, library)
    cp = cupy()
    there = cp.empty(array.shape, dtype=array.dtype)
    send(cp, array, there)
    return as_array(there, library)
