"""Programs on the GPU of this machine, called as `axode.codegen.targets.cpu_rollout.Rollout` is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.codegen.lowering.program import Program
from axode.runtime.cuda import GpuKernel, KernelFile, own_capability
from axode.runtime.host_arrays import BoundKernel

Array = npt.NDArray[np.float64]


class KernelRollout:
    """A program as a kernel, made when first needed.

    Args:
        program: What every run does.
        precision: "float64" or "float32"; arrays outside are float64 in any case.
    """

    lanes = 1 << 14  # runs that are about as fast as one

    def __init__(self, program: Program, precision: str = "float64") -> None:
        own_capability()  # before anything is compiled: there may be no GPU
        self.program, self.precision = program, precision

    @cached_property
    def kernel(self) -> GpuKernel:
        """The kernel on the current GPU."""
        from axode.codegen.targets.ptx import closest_capability, kernel

        made = kernel(self.program, closest_capability(own_capability()), self.precision)
        return KernelFile(made.ptx, made.header)[self.program.name]

    def __call__(
        self,
        buffers: Mapping[str, Array],
        tables: Mapping[str, Array],
        *,
        budget: int,
        threads: int | None = None,
    ) -> None:
        """Advance all runs; see `Rollout`."""
        bound = self.bind(buffers, tables)
        bound(budget, threads)
        bound.fetch()

    def bind(
        self,
        buffers: Mapping[str, Array],
        tables: Mapping[str, Array],
        watched: Sequence[str] | None = None,
    ) -> BoundKernel:
        """Bind the program to arrays, to be called repeatedly; see `BoundKernel`."""
        return BoundKernel(self.kernel, buffers, tables, watched)
