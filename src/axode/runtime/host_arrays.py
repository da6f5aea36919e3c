"""A kernel on arrays of runs: they go to the GPU, are advanced there, and come back.

Runs that do not fit into the GPU's memory together go one piece after the other; several GPUs take
one piece each at a time. Where all fit, tables and read-only arrays stay there from call to call,
and so does the state of runs between two calls that neither read nor change it. Arrays that are on
the GPU from the start stay there in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import cycle
from typing import Any

import numpy as np

from axode.runtime import device, staging
from axode.runtime.arrays import is_on_device
from axode.runtime.cuda import GpuKernel
from axode.runtime.launch import STATUSES, SUMMARY_BYTES, Launch, Summary, use_device

WRITTEN = "out"  # the table that kernels write to


class BoundKernel:
    """A kernel on the arrays of some runs, to be called repeatedly.

    Args:
        kernel: The loaded kernel.
        buffers: State (runs, size) and given ones, (runs, size) or (size,) if shared; of NumPy, or
            of CuPy on the current GPU and of the kernel's precision.
        tables: Arrays (rows, width) if shared or (runs, rows, width).
        resident: Whether the state stays there until `fetch`; changes that Python makes in between
            are then ignored. Otherwise it is brought back after every call.
        devices: Numbers of the GPUs that share the runs; the current one unless given.
    """

    def __init__(
        self,
        kernel: GpuKernel,
        buffers: Mapping[str, Any],
        tables: Mapping[str, Any],
        *,
        resident: bool = False,
        devices: Sequence[int] = (),
    ) -> None:
        self.kernel, self.buffers, self.tables = kernel, buffers, tables
        self.runs = int(buffers[next(iter(kernel.header["state"]))].shape[0])
        self._devices = tuple(devices) or (use_device(kernel.cupy),)
        piece = min(
            device.piece_of(self.runs, self._bytes_per_run()),
            max(1, -(-self.runs // len(self._devices))),
        )
        parts = [slice(k, min(k + piece, self.runs)) for k in range(0, self.runs, piece)]
        stays = len(parts) <= len(self._devices)
        self._pieces = [
            _Piece(self, number, part, stays=stays, resident=stays and resident)
            for number, part in zip(cycle(self._devices), parts, strict=False)
        ]

    def _bytes_per_run(self) -> int:
        """Compute the bytes per run that are still to be allocated."""
        header = self.kernel.header
        arrays = [(self.buffers[n], 2) for n in (*header["state"], *header["given"])]
        arrays += [(self.tables[n], 3) for n in header["tables"]]
        numbers = sum(
            int(np.prod(a.shape[1:]))
            for a, axes in arrays
            if a.ndim == axes and not is_on_device(a)
        )
        return self.kernel.dtype.itemsize * numbers

    def __call__(self, budget: int, threads: int | None = None) -> None:
        """Advance all runs; state buffers change in place, or when they are fetched."""
        with device.MemoryGuard(f"{self.runs} runs"):
            self._each(lambda piece: piece.advance(budget))

    def summary(self) -> Summary:
        """Count runs by status, which is all that comes back of resident runs after a launch."""
        found = [piece.summary for piece in self._pieces]
        counts = tuple(sum(s.counts[k] for s in found) for k in range(STATUSES))
        time = sum(s.time * sum(s.counts) for s in found) / max(self.runs, 1)
        return Summary(counts, time)

    def fetch(self, names: Sequence[str] | None = None) -> None:
        """Bring back the table that was written and the resident state, all of it unless named."""
        self._each(lambda piece: piece.fetch(names))

    def _each(self, work: Callable[[_Piece], None]) -> None:
        """Run `work` on every piece, each GPU in a thread of its own, unless there is only one."""
        if len(self._pieces) == 1 or len(self._devices) == 1:
            for piece in self._pieces:
                piece.on_its_device(work)
            return

        def serve(number: int) -> None:
            for piece in self._pieces:
                if piece.device == number:
                    piece.on_its_device(work)

        with ThreadPoolExecutor(len(self._devices), "axode-gpu") as pool:
            jobs = [pool.submit(serve, number) for number in self._devices]
            wait(jobs)
        for job in jobs:
            job.result()


class _Piece:
    """Some of the runs, on one GPU.

    Args:
        whole: Arrays of all runs.
        number: Number of the GPU.
        part: Which runs.
        stays: Whether arrays without changes, and the table that is written, stay there.
        resident: Whether all of the state stays there.
    """

    def __init__(
        self, whole: BoundKernel, number: int, part: slice, *, stays: bool, resident: bool
    ) -> None:
        self.whole, self.device, self.part = whole, number, part
        self.stays, self.resident = stays, resident
        self.kernel, self.header = whole.kernel, whole.kernel.header
        self.summary = Summary((0,) * STATUSES, 0.0)
        self._there: dict[str, Any] = {}  # arrays by name
        self._launch: Launch | None = None
        self._words: Any = None

    def on_its_device(self, work: Callable[[_Piece], None]) -> None:
        """Run `work` on the device that holds the piece."""
        cp = self.kernel.cupy
        with cp.cuda.Device(self.device):
            use_device(cp)
            work(self)

    def advance(self, budget: int) -> None:
        """Advance the runs; where state does not stay, it is brought back."""
        cp = self.kernel.cupy
        if self._launch is None or not self.resident:
            self._prepare()
        launch = self._launch
        assert launch is not None
        launch.set_budget(budget)
        stream = cp.cuda.get_current_stream()
        if self.kernel.sums_up:
            cp.cuda.runtime.memsetAsync(self._words.data.ptr, 0, SUMMARY_BYTES, stream.ptr)
        launch(stream.ptr)
        if self.kernel.sums_up:
            self.summary = Summary.read(cp.asnumpy(self._words))  # waits for the launch
        if not self.resident:
            self._bring(self.header["state"])
        if not self.stays:
            self.fetch()
            self._there, self._launch = {}, None

    def fetch(self, names: Sequence[str] | None = None) -> None:
        """Bring back what stayed."""
        if WRITTEN in self.header["tables"] and (names is None or WRITTEN in names):
            self._bring([WRITTEN])
        if self.resident:
            state = self.header["state"]
            self._bring([n for n in state if names is None or n in names])

    def _bring(self, names: Sequence[str]) -> None:
        for name in names:
            own = self._own(name)
            if name in self._there and not is_on_device(own):
                staging.receive(self.kernel.cupy, self._there[name], own)

    def _own(self, name: str) -> Any:
        """The caller's array, or the part of it that this piece has."""
        table = name in self.header["tables"]
        array = self.whole.tables[name] if table else self.whole.buffers[name]
        return array[self.part] if array.ndim == (3 if table else 2) else array

    def _prepare(self) -> None:
        header = self.header
        names = [*header["state"], *header["given"], *header["tables"]]
        for name in names:
            if name not in self._there or not self._keeps(name):
                self._there[name] = self._carry(name)
        if self._words is None and self.kernel.sums_up:
            self._words = self.kernel.cupy.zeros(SUMMARY_BYTES // 8, dtype=np.int64)
        tables = {name: self._there[name] for name in header["tables"]}
        buffers = {name: self._there[name] for name in names if name not in tables}
        address = int(self._words.data.ptr) if self.kernel.sums_up else 0
        self._launch = self.kernel.prepare(buffers, tables, summary=address)

    def _keeps(self, name: str) -> bool:
        """Return whether an array on the device is still valid and need not be copied again."""
        if self.resident or name in self.header["tables"]:
            return True
        array = self.whole.buffers[name]
        return name not in self.header["state"] and not (
            is_on_device(array) or array.flags.writeable
        )

    def _carry(self, name: str) -> Any:
        own = self._own(name)
        if is_on_device(own):
            return own
        there = self._there.get(name)
        if there is None:
            there = self.kernel.cupy.empty(own.shape, dtype=self.kernel.dtype)
        staging.send(self.kernel.cupy, own, there)
        return there
