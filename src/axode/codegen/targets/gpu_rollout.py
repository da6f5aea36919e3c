"""Programs on the GPU of this machine, called as `axode.codegen.targets.cpu_rollout.Rollout` is."""

from __future__ import annotations

import threading
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.program import Program
from axode.codegen.targets.cpu_rollout import new_state
from axode.runtime import device
from axode.runtime.cuda import GpuKernel, KernelFile
from axode.runtime.device import assembled, assembler_version, own_capability
from axode.runtime.host_arrays import BoundKernel
from axode.runtime.launch import WARP
from axode.runtime.resident_buffers import ResidentBuffers

Array = npt.NDArray[np.float64]
FEWER_REGISTERS = 168  # of a thread: half as many threads again as with 255
FEW_SPILLS = 32  # bytes of a thread


def load_kernel(program: Program, precision: str = "float64") -> KernelFile:
    """Load the kernel of a program on the current GPU.

    Both its PTX and what the driver assembles of it are kept in the object cache, so that neither
    is made again in another process.
    """
    capability = own_capability()  # before anything is compiled: there may be no GPU
    from axode.codegen.targets.ptx import closest_capability, keep, kernel

    made = kernel(program, closest_capability(capability), precision)
    identity = f"{assembler_version()} {capability} {FEWER_REGISTERS}\n{made.ptx}"
    image = keep(identity, lambda: _assemble(made.ptx, made.header))
    return KernelFile(made.ptx, made.header, image or None)


def _assemble(ptx: str, header: Mapping[str, Any]) -> bytes:
    """Assemble a kernel, of runs with fewer registers if it nearly fits into what there are.

    More threads then hide more of the waiting, at the price of spills that stay in the cache:
    measured 4 to 9 % faster. Kernels that spill anyway become slower by it.
    """
    image = assembled(ptx)
    (name,) = header["kernels"]
    if not image or not header["kernels"][name]["sums_up"]:
        return image
    whole = KernelFile(ptx, header, image)[name]
    if whole.registers <= FEWER_REGISTERS or whole.spilled_bytes > FEW_SPILLS:
        return image
    limit = f")\n.maxnreg {FEWER_REGISTERS}\n{{"
    return assembled(ptx.replace(")\n{", limit)) or image


class KernelRollout:
    """A program as a kernel, made when first needed.

    Args:
        program: What every run does.
        precision: "float64" or "float32"; arrays outside are float64 in any case.
        devices: Numbers of the GPUs that share the runs; the current one unless given.
    """

    lanes = 1 << 14  # runs that are about as fast as one

    def __init__(
        self, program: Program, precision: str = "float64", devices: Sequence[int] = ()
    ) -> None:
        own_capability()  # before anything is compiled: there may be no GPU
        self.program, self.precision, self.devices = program, precision, tuple(devices)
        self._kernel: GpuKernel | None = None
        self._lock = threading.Lock()

    @property
    def kernel(self) -> GpuKernel:
        """The kernel on the current GPU."""
        with self._lock:
            if self._kernel is None:
                self._kernel = load_kernel(self.program, self.precision)[self.program.name]
        return self._kernel

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

    def new_state(
        self, runs: int, start: Mapping[str, npt.ArrayLike], *, resident: bool = False
    ) -> MutableMapping[str, Array]:
        """Make buffers of the state; see `Rollout`. Resident ones are on the GPU."""
        if resident and ResidentBuffers.fit(self.kernel, runs):
            return ResidentBuffers(self.kernel, runs, start)
        return new_state(self.program, runs, start)

    def table_shape(self, name: str, runs: int, rows: int) -> tuple[int, ...]:
        """Shape of a table of its own for each run."""
        return runs, rows, self.program.tables[name]

    def lanes_of(self, runs: int) -> int:
        """Return the number of runs in lockstep."""
        return min(runs, WARP)

    def new_table(self, shape: tuple[int, int, int]) -> Any:
        """Make a table of any numbers on the GPU, (runs, rows, width); runs are side by side."""
        runs, rows, width = shape
        with device.MemoryGuard(f"{runs} runs"):
            return self.kernel.cupy.empty((rows, width, runs), dtype=self.kernel.dtype).transpose(
                2, 0, 1
            )

    def bind(
        self, buffers: Mapping[str, Array], tables: Mapping[str, Array], *, resident: bool = False
    ) -> BoundKernel:
        """Bind the program to arrays, to be called repeatedly; see `BoundKernel`."""
        devices = self.devices
        if isinstance(buffers, ResidentBuffers):
            buffers, devices = buffers.arrays(), ()  # they are on the current one
        for name in self.program.constants:
            places = self.program.varying(name)
            one = len(places) == 1  # the most usual case needs no copy
            varying = buffers[name][..., slice(places[0], places[0] + 1) if one else places]
            varying.setflags(write=False)
            buffers = {**buffers, name: varying}
        return BoundKernel(self.kernel, buffers, tables, resident=resident, devices=devices)
