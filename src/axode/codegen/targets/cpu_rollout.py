"""Programs as machine code: many runs at once, split over threads."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, MutableMapping, Sequence
from concurrent.futures import wait
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.host import host
from axode.codegen.lowering.batch_loop import WORK_ALIGNMENT
from axode.codegen.lowering.program_loop import ProgramModules, program_work_size
from axode.codegen.tape.program import ENTRY, Program
from axode.codegen.tape.rewriting import FusionLimits, fuse
from axode.codegen.targets import jit
from axode.codegen.targets.cpu import address_of, cpu_count, pool, spacing_of
from axode.runtime.launch import STATUSES, Summary

Array = npt.NDArray[np.float64]
_FLOAT64 = np.dtype(np.float64)
BUDGET = -3  # its place in a table of addresses
_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Rollout:
    """A program compiled for single runs and for vectors of runs, each when first needed.

    Args:
        program: What every run does.
        lanes: Runs per vector; as the machine has it unless given.
        alike: Compute a single run as one of a vector too: code for single runs rounds differently.
        limits: How much of it is joined.
    """

    def __init__(
        self,
        program: Program,
        *,
        lanes: int | None = None,
        alike: bool = False,
        limits: FusionLimits | None = None,
    ) -> None:
        self.program, self.alike = fuse(program, limits or FusionLimits()), alike
        self.lanes = lanes or host().lanes
        self._native: dict[int, jit.LoadedCode] = {}
        counts = {tape.digest: tape.n_operations for tape in self.program.tapes}
        self._apart = jit.too_long(counts)
        self._operations = sum(n for tape, n in counts.items() if tape not in self._apart)
        self._quick_seconds = 0.0  # that code has run without being optimised
        self._work_sizes: dict[int, int] = {}

    @property
    def compile_seconds(self) -> dict[int, float]:
        """Seconds to compile or load each width used so far, by lanes."""
        return {lanes: native.seconds for lanes, native in self._native.items()}

    def function(self, lanes: int, *, quick: bool = False) -> jit.LoadedCode:
        """Return machine code for vectors of this many runs.

        Args:
            lanes: How many.
            quick: Whether code that is not optimised does too, until that has run for long.
        """
        quick = quick and self._quick_seconds < jit.OPTIMISING * self._operations
        with jit.LOCK:  # code that two threads load is unloaded under one of them
            known = self._native.get(lanes)
            if known is None or (known.quick and not quick):
                modules = ProgramModules(self.program, lanes, self._apart)
                known = self._native[lanes] = jit.load(
                    self.program.name,
                    f"{self.program.digest} program lanes {lanes}",
                    ENTRY,
                    modules.main,
                    self._operations,
                    quick,
                    modules.further if self._apart else None,
                )
            return known

    def count_quick(self, seconds: float) -> None:
        """Count time for which code has run that is not optimised."""
        self._quick_seconds += max(seconds, jit.LEAST_CALL)

    def work_size(self, lanes: int) -> int:
        """Bytes of the work array that one thread needs."""
        if lanes not in self._work_sizes:
            self._work_sizes[lanes] = program_work_size(self.program, lanes)
        return self._work_sizes[lanes]

    def __call__(
        self,
        buffers: Mapping[str, Array],
        tables: Mapping[str, Array],
        *,
        budget: int,
        threads: int | None = None,
    ) -> None:
        """Advance all runs; state buffers change in place.

        Args:
            buffers: State (runs, size) and given ones, (runs, size) or (size,) if shared.
            tables: Arrays (rows, width) if shared or (runs, rows, width).
            budget: How many iterations a counted loop may make.
            threads: How many threads share the runs.
        """
        self.bind(buffers, tables)(budget, threads)

    def new_state(
        self, runs: int, start: Mapping[str, npt.ArrayLike], *, resident: bool = False
    ) -> MutableMapping[str, Array]:
        """Make buffers of the state.

        Args:
            runs: How many there are.
            start: State to start with, (runs, size) or one number for all; zero unless given.
            resident: Whether they are neither read nor changed between calls of a bound program.
        """
        return new_state(self.program, runs, start)

    def table_shape(self, name: str, runs: int, rows: int) -> tuple[int, ...]:
        """Shape of a table of its own for each run."""
        width = self.program.tables[name]
        if name not in self.program.interleaved:
            return runs, rows, width
        lanes = self.lanes_of(runs)
        return -(-runs // lanes), rows, width, lanes

    def lanes_of(self, runs: int) -> int:
        """How many runs share a vector."""
        return 1 if runs == 1 and not self.alike else self.lanes

    def bind(
        self, buffers: Mapping[str, Array], tables: Mapping[str, Array], *, resident: bool = False
    ) -> BoundRollout:
        """Bind the program to arrays, to be called repeatedly; they stay where they are."""
        return BoundRollout(self, buffers, tables)


def new_state(program: Program, runs: int, start: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Make buffers of a program's state, of NumPy; see `Rollout.new_state`."""
    buffers = {name: np.zeros((runs, size)) for name, size in program.state.items()}
    for name, value in start.items():
        buffers[name][...] = value
    return buffers


class BoundRollout:
    """A program on the arrays of some runs."""

    def __init__(
        self, rollout: Rollout, buffers: Mapping[str, Array], tables: Mapping[str, Array]
    ) -> None:
        program = rollout.program
        self.runs = next(iter(buffers[name] for name in program.state)).shape[0]
        self.lanes = rollout.lanes_of(self.runs)
        items: list[int] = []
        for name, size in program.external.items():
            array = buffers[name]
            if array.dtype is _FLOAT64 and array.flags.c_contiguous:  # nearly always
                if array.shape == (self.runs, size):
                    items += address_of(array), 8 * size
                    continue
                if array.shape == (size,):
                    items += address_of(array), 0
                    continue
            items += self._place("buffer", name, array, 1, size)[:2]
        for name, width in program.tables.items():
            if name in program.interleaved:
                items += self._place_interleaved(rollout, name, tables[name])
            else:
                items += self._place("table", name, tables[name], 2, width)
        self._table = np.array([*items, 0, 0, 0], dtype=np.int64)
        self._order = np.arange(self.runs, dtype=np.int64)
        self._rollout, self._buffers = rollout, buffers
        self._kept = rollout.function(self.lanes, quick=True), tables  # as long as their addresses
        self._call = _TYPE(self._kept[0].address)
        self._size = rollout.work_size(self.lanes) + WORK_ALIGNMENT
        self._budget, self._spare = 0, list[Any]()

    @property
    def address(self) -> int:
        """Address of the machine code, which is optimised: calls of it are not counted."""
        self._load(quick=False)
        return self._kept[0].address

    def _load(self, *, quick: bool) -> None:
        """Load optimised code where it is asked for, or where it pays."""
        if self._kept[0].quick:
            self._kept = self._rollout.function(self.lanes, quick=quick), self._kept[1]
            self._call = _TYPE(self._kept[0].address)

    def own_table(self) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """Make a table of addresses for one thread: its own address, it, and its work array."""
        raw = np.empty(self._size, dtype=np.uint8)
        own = self._table.copy()
        work = address_of(raw)
        own[-2:] = work + -work % WORK_ALIGNMENT, address_of(self._order)
        return address_of(own), own, raw

    def __call__(self, budget: int, threads: int | None = None) -> None:
        """Advance all runs; see `Rollout`."""
        self._load(quick=True)
        quick = self._kept[0].quick
        started = time.perf_counter() if quick else 0.0
        self._advance(budget, threads)
        if quick:
            self._rollout.count_quick(time.perf_counter() - started)

    def _advance(self, budget: int, threads: int | None) -> None:
        self._budget = budget
        count = len(self._order)
        groups = -(-count // self.lanes)
        workers = 1 if groups == 1 else min(threads or cpu_count(), groups)
        if workers <= 1:
            self._run(0, count)
            return
        edges = [self.lanes * (groups * k // workers) for k in range(workers)] + [count]
        jobs = [pool().submit(self._run, a, b) for a, b in pairwise(edges) if a < b]
        try:
            wait(jobs)
        finally:
            wait(jobs)  # after Ctrl-C too: the threads write to the caller's arrays
        for job in jobs:
            job.result()

    def summary(self) -> Summary:
        """Count runs by status, and find their mean time."""
        buffers = self._buffers
        codes = np.bincount(buffers["status"][:, 0].astype(np.intp), minlength=STATUSES)
        return Summary(tuple(codes.tolist()), float(buffers["t"].mean()))

    def regroup(self) -> None:
        """Continue with the runs that go on, those with about as many steps left side by side.

        Lanes of a vector then end together; what a run computes does not depend on its neighbours.
        """
        t, h, status = (self._buffers[name][:, 0] for name in ("t", "h", "status"))
        left = np.flatnonzero(status == 0)
        steps = np.abs(self._buffers["t_end"][0] - t[left]) / np.maximum(h[left], 1e-300)
        self._order = left[np.argsort(steps, kind="stable")].astype(np.int64)
        self._spare = []  # they point to the former order

    def fetch(self, names: Sequence[str] | None = None) -> None:
        """Nothing is elsewhere: the steps work on the caller's arrays."""

    def _run(self, begin: int, end: int) -> None:
        try:
            table = self._spare.pop()
        except IndexError:
            table = self.own_table()
        table[1][BUDGET] = self._budget
        self._call(table[0], begin, end)
        self._spare.append(table)

    def _place_interleaved(self, rollout: Rollout, name: str, array: Array) -> list[int]:
        """Address, bytes per run, and rows of a table whose runs lie side by side."""
        rows = array.shape[1]
        expected = rollout.table_shape(name, self.runs, rows)
        if array.dtype != np.float64 or array.shape != expected or not array.flags.c_contiguous:
            raise ValueError(f"table '{name}': shape {array.shape}, expected {expected}")
        return [address_of(array), 8 * rows * array.shape[2], rows]

    def _place(self, kind: str, name: str, array: Array, own_axes: int, width: int) -> list[int]:
        """Address, bytes between runs, and rows of an array."""
        spacing, shape = spacing_of(array, own_axes), array.shape
        if (array.dtype is not _FLOAT64 and array.dtype != _FLOAT64) or spacing is None:
            raise ValueError(f"'{name}' must be a float64 array with evenly spaced rows")
        shared = len(shape) == own_axes
        if shape[-1] != width or not (shared or shape[0] == self.runs):
            raise ValueError(
                f"{kind} '{name}': shape {shape}, expected {self.runs} runs of width {width}"
            )
        rows = shape[-2] if own_axes == 2 else 1
        return [address_of(array), 0 if shared else spacing, rows]
