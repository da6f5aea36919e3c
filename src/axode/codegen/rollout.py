"""Programs as machine code: many runs at once, split over threads."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from concurrent.futures import wait
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from axode.codegen import jit
from axode.codegen.fusion import fused
from axode.codegen.kernel import WORK_ALIGNMENT
from axode.codegen.llvm import cpu_count, pool
from axode.codegen.program import ENTRY, Program, program_module

Array = npt.NDArray[np.float64]
_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class Rollout:
    """A program compiled for single runs and for vectors of runs, each when first needed."""

    def __init__(self, program: Program, *, lanes: int | None = None) -> None:
        self.program = fused(program)
        self.lanes = lanes or jit.host().lanes
        self._native: dict[int, jit.Native] = {}

    @property
    def compile_seconds(self) -> dict[int, float]:
        """Seconds to compile or load each width used so far, by lanes."""
        return {lanes: native.seconds for lanes, native in self._native.items()}

    def _function(self, lanes: int) -> jit.Native:
        if lanes not in self._native:
            identity = f"{self.program.digest} program lanes {lanes}"
            self._native[lanes] = jit.load(
                self.program.name, identity, ENTRY, lambda: program_module(self.program, lanes)
            )
        return self._native[lanes]

    def __call__(
        self, buffers: Mapping[str, Array], tables: Mapping[str, Array], *, budget: int,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        """Advance all runs; state buffers change in place.

        Args:
            buffers: State (runs, size) and given ones, (runs, size) or (size,) if shared.
            tables: Arrays (rows, width) if shared or (runs, rows, width).
            budget: How often a counted loop may turn.
            threads: How many threads share the runs.
        """
        runs = next(iter(buffers[name] for name in self.program.state)).shape[0]
        lanes = 1 if runs == 1 else self.lanes
        table = self._table(buffers, tables, budget, runs)
        self._function(lanes)  # compiled once, before threads ask for it
        groups = -(-runs // lanes)
        workers = min(threads or cpu_count(), groups)
        if workers <= 1:
            self._run(table, lanes, 0, runs)
            return
        edges = [lanes * (groups * k // workers) for k in range(workers)] + [runs]
        jobs = [pool().submit(self._run, table, lanes, a, b)
                for a, b in pairwise(edges) if a < b]  # fmt: skip
        try:
            wait(jobs)
        finally:
            wait(jobs)  # after Ctrl-C too: the threads write to the caller's arrays
        for job in jobs:
            job.result()

    def _run(self, table: npt.NDArray[np.int64], lanes: int, begin: int, end: int) -> None:
        raw = np.empty(self.program.work_size(lanes) + WORK_ALIGNMENT, dtype=np.uint8)
        work = raw[-raw.ctypes.data % WORK_ALIGNMENT :]
        own = table.copy()
        own[-1] = work.ctypes.data
        _TYPE(self._function(lanes).address)(own.ctypes.data, begin, end)

    def _table(
        self, buffers: Mapping[str, Array], tables: Mapping[str, Array], budget: int, runs: int
    ) -> npt.NDArray[np.int64]:
        items: list[int] = []
        for name, size in self.program.external.items():
            array = self._checked(name, buffers[name])
            shared = array.ndim == 1
            if array.shape[-1] != size or not (shared or array.shape[0] == runs):
                raise ValueError(f"buffer '{name}': shape {array.shape}, expected ({runs}, {size})")
            items += [array.ctypes.data, 0 if shared else 8 * size]
        for name, width in self.program.tables.items():
            array = self._checked(name, tables[name])
            shared = array.ndim == 2
            if array.shape[-1] != width or not (shared or array.shape[0] == runs):
                raise ValueError(
                    f"table '{name}': shape {array.shape}, expected (.., rows, {width})"
                )
            rows = array.shape[-2]
            items += [array.ctypes.data, 0 if shared else 8 * width * rows, rows]
        return np.array([*items, budget, 0], dtype=np.int64)

    @staticmethod
    def _checked(name: str, array: Array) -> Array:
        if array.dtype != np.float64 or not array.flags.c_contiguous:
            raise ValueError(f"'{name}' must be a C-contiguous float64 array")
        return array
