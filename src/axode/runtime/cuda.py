"""Exported kernels on a GPU, with NumPy and CuPy alone.

Arrays of CuPy, PyTorch and JAX are used where they are, without copies, in any layout; runs next to
each other in memory are read fastest: a buffer of shape (runs, size) is best kept as the transpose
of a (size, runs) array, which `soa` makes. A launch waits for nothing and allocates nothing.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from axode.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from axode.runtime import device
from axode.runtime.arrays import ArrayView, as_array, view
from axode.runtime.device import cupy, own_capability
from axode.runtime.device import side_by_side as soa
from axode.runtime.launch import Launch, launch_geometry, use_device

__all__ = ["GpuKernel", "KernelFile", "as_array", "cupy", "load", "own_capability", "soa"]

FORMAT = 3
_LOADING = threading.Lock()  # one module per GPU, whichever threads ask for it first
MAX_GEOMETRIES = 256  # that a kernel remembers
LOCAL_BYTES, NUM_REGISTERS = 3, 4  # attributes of a function, as the driver numbers them


def load(path: str | Path) -> KernelFile:
    """Load the kernels of `x.ptx`, described by `x.json` beside it, on the current GPU."""
    place = Path(path)
    try:
        header = json.loads(place.with_suffix(".json").read_text("utf-8"))
        text = place.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read the kernels '{place}': {error}") from None
    return KernelFile(text, header)


class KernelFile(Mapping[str, "GpuKernel"]):
    """Kernels by name, loaded on the current GPU.

    Args:
        ptx: Their text.
        header: What `axode.codegen.targets.ptx.Kernels` wrote beside it.
        image: The text assembled for this GPU, if that was done before.
    """

    def __init__(self, ptx: str, header: Mapping[str, Any], image: bytes | None = None) -> None:
        if header.get("format") != FORMAT:
            raise FileError(
                f"the kernels have format {header.get('format')}, expected {FORMAT}; export them "
                "again"
            )
        self.header = dict(header)
        self._cupy = cupy()
        device.check_capability(header["capability"], header.get("ptx", ""))
        self._image = ptx.encode() + b"\0" if image is None else image
        self._modules: dict[int, Any] = {}  # by the number of the GPU
        self._made: dict[str, GpuKernel] = {}
        self._module()

    def _module(self) -> Any:
        """Load the kernels on the current GPU, unless they are there."""
        cp = self._cupy
        number = use_device(cp)
        if number not in self._modules:
            module = cp.cuda.function.Module()
            try:
                module.load(self._image)
            except cp.cuda.driver.CUDADriverError as error:
                raise NotApplicable(
                    f"the driver refuses the kernels: {error}; update the driver, or export them "
                    "with an older capability"
                ) from None
            self._modules[number] = module
        return self._modules[number]

    def __getitem__(self, name: str) -> GpuKernel:
        if name not in self.header["kernels"]:
            raise UnknownName("this file", "kernel", name, self.header["kernels"])
        if name not in self._made:
            own = self.header["kernels"][name]
            common = {key: self.header[key] for key in ("capability", "precision")}
            self._made[name] = GpuKernel(
                lambda: self._module().get_function(own["entry"]), {"name": name, **common, **own}
            )
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.header["kernels"])

    def __len__(self) -> int:
        return len(self.header["kernels"])

    def __repr__(self) -> str:
        return "\n".join([f"KernelFile, {self.header['precision']}", *map(repr, self.values())])

    def function(self, name: str) -> Any:
        """Return a map kernel as a function of arrays; see `axode.runtime.function`."""
        from axode.runtime.function import GpuFunction

        kernel = self[name]
        if "shape" not in kernel.header:
            raise InvalidArgument(f"'{name}' is no function; use rollout('{name}')")
        return GpuFunction(kernel, kernel.header["shape"], list(kernel.header["given"]))

    def rollout(self, name: str = "rk4") -> Any:
        """Return a kernel of whole runs as a function of starts; see `axode.runtime.rollout`."""
        from axode.runtime.rollout import GpuRollout

        kernel = self[name]
        if "n_steps" not in kernel.header["given"]:
            raise InvalidArgument(f"'{name}' is not a rollout; use function('{name}')")
        return GpuRollout(kernel, self.header.get("model", {}))


class GpuKernel:
    """One kernel, on whichever GPU is the current one.

    Args:
        function: Returns CuPy's handle of it on the current GPU.
        header: Its name, precision, sizes of buffers and widths of tables.
    """

    def __init__(self, function: Callable[[], Any], header: Mapping[str, Any]) -> None:
        self._find = function
        self.cupy = cupy()
        self._functions: dict[int, Any] = {}
        self._geometries: dict[tuple[int, int], tuple[int, int]] = {}
        self.header = dict(header)
        self.dtype = np.dtype(header["precision"])
        self._function()

    @classmethod
    def load(cls, path: str | Path, name: str | None = None) -> GpuKernel:
        """Load one of the kernels of a file, the only one unless named."""
        kernels = load(path)
        if name is None and len(kernels) != 1:
            raise InvalidArgument(f"the file has several kernels: {', '.join(kernels)}; name one")
        return kernels[next(iter(kernels)) if name is None else name]

    def __repr__(self) -> str:
        return (
            f"GpuKernel '{self.header['name']}', {self.dtype}: {self.registers} registers per "
            f"thread, {self.spilled_bytes} bytes spilled"
        )

    @cached_property
    def registers(self) -> int:
        """Registers per thread."""
        return self._attribute(NUM_REGISTERS)

    @cached_property
    def spilled_bytes(self) -> int:
        """Bytes of slow memory per thread, needed where registers run out."""
        return self._attribute(LOCAL_BYTES)

    def _attribute(self, number: int) -> int:
        return int(self.cupy.cuda.driver.funcGetAttribute(number, self._function().ptr))

    def _function(self) -> Any:
        number = use_device(self.cupy)
        if number not in self._functions:
            with _LOADING:
                if number not in self._functions:
                    self._functions[number] = self._find()
        return self._functions[number]

    @property
    def sums_up(self) -> bool:
        """True if it counts runs by status."""
        return bool(self.header.get("sums_up"))

    def geometry(self, runs: int) -> tuple[int, int]:
        """Number of blocks, and of threads per block, for a number of runs."""
        if not runs:
            return 0, 0
        key = use_device(self.cupy), runs
        known = self._geometries.get(key)
        if known is None:
            if len(self._geometries) >= MAX_GEOMETRIES:
                self._geometries.clear()
            known = self._geometries[key] = launch_geometry(runs, self.registers, device.chip())
        return known

    def __call__(
        self,
        buffers: Mapping[str, Any],
        tables: Mapping[str, Any] | None = None,
        *,
        budget: int = 2**62,
        stream: Any = None,
    ) -> None:
        """Run every sample or run; state buffers change in place.

        Args:
            buffers: By name: (runs, size), or (size,) for one that all runs share; on the GPU.
            tables: By name: (runs, rows, width), or (rows, width) if shared.
            budget: How many iterations a counted loop may make.
            stream: Stream of CuPy or PyTorch, or its address; CuPy's current one unless given.
        """
        with device.on_stream(stream):
            self.prepare(buffers, tables, budget=budget)()

    def prepare(
        self,
        buffers: Mapping[str, Any],
        tables: Mapping[str, Any] | None = None,
        *,
        budget: int = 2**62,
        summary: int = 0,
    ) -> Launch:
        """Prepare a launch on given arrays, checked once, to be called repeatedly.

        It goes to CuPy's current stream and keeps the arrays alive.

        Args:
            buffers: By name, as for a call.
            tables: By name, as for a call.
            budget: How many iterations a counted loop may make.
            summary: Address on the GPU where runs are summed up; nowhere if zero.
        """
        arrays = {name: self._array(name, value, 1) for name, value in buffers.items()}
        more = {name: self._array(name, value, 2) for name, value in (tables or {}).items()}
        runs = self._runs(arrays)
        items: list[int] = []
        for name, size in {**self.header["state"], **self.header["given"]}.items():
            items += self._buffer_entry(name, arrays, size, runs)
        for name, width in self.header["tables"].items():
            items += self._table_entry(name, more, width, runs)
        return self.launch([*items, budget, summary], runs, (arrays, more))

    def launch(self, items: list[int], runs: int, kept: Any = None) -> Launch:
        """Prepare a launch from its table, which is not checked.

        Args:
            items: For every buffer address, bytes between runs and between elements, and so on,
                as `axode.codegen.lowering.gpu_kernel` lays them out.
            runs: Number of runs.
            kept: Arrays that must live as long.
        """
        return Launch(self.cupy, self._function().ptr, self.geometry(runs), items, runs, kept)

    def _array(self, name: str, value: Any, plain: int) -> ArrayView:
        array = view(self.cupy, name, value)
        if array.dtype != self.dtype or len(array.shape) not in (plain, plain + 1):
            raise InvalidArgument(
                f"'{name}' must be {self.dtype} with {plain} or {plain + 1} axes, got "
                f"{array.dtype} {array.shape}"
            )
        return array

    def _runs(self, arrays: Mapping[str, ArrayView]) -> int:
        for name in self.header["state"]:
            if name in arrays:
                return int(arrays[name].shape[0])
        raise InvalidArgument(f"buffers needed: {', '.join(self.header['state'])}")

    @staticmethod
    def _buffer_entry(
        name: str, arrays: Mapping[str, ArrayView], size: int, runs: int
    ) -> list[int]:
        if name not in arrays:
            raise InvalidArgument(f"buffer '{name}' ({size} numbers per run) is missing")
        array = arrays[name]
        if array.shape not in ((size,), (runs, size)):
            raise InvalidArgument(f"'{name}' has shape {array.shape}, expected ({runs}, {size})")
        strides = array.strides if len(array.shape) == 2 else (0, array.strides[0])
        return [array.address, *strides]

    @staticmethod
    def _table_entry(
        name: str, tables: Mapping[str, ArrayView], width: int, runs: int
    ) -> list[int]:
        if name not in tables:
            raise InvalidArgument(f"table '{name}' (rows of {width}) is missing")
        array = tables[name]
        own = len(array.shape) == 3
        if array.shape[-1] != width or (own and array.shape[0] != runs):
            raise InvalidArgument(f"'{name}' has shape {array.shape}, expected rows of {width}")
        strides = array.strides if own else (0, *array.strides)
        return [array.address, *strides, array.shape[-2]]
