"""Exported kernels on a GPU, with NumPy and CuPy alone.

Arrays of CuPy, PyTorch and JAX are used where they are, without copies, in any layout; runs next to
each other in memory are read fastest: a buffer of shape (runs, size) is best kept as the transpose
of a (size, runs) array, which `soa` makes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from axode.errors import FileError, InvalidArgument, NotApplicable, UnknownName
from axode.runtime import device
from axode.runtime.device import cupy, own_capability
from axode.runtime.device import side_by_side as soa
from axode.runtime.launch_geometry import launch_geometry

__all__ = ["GpuKernel", "KernelFile", "cupy", "load", "own_capability", "soa"]

FORMAT = 2
LOCAL_BYTES, NUM_REGISTERS = 3, 4  # attributes of a function, as the driver numbers them


def load(path: str | Path) -> KernelFile:
    """Load the kernels of `x.ptx`, described by `x.json` beside it, on the current GPU."""
    place = Path(path)
    try:
        header = json.loads(place.with_suffix(".json").read_text())
        text = place.read_text()
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read the kernels '{place}': {error}") from None
    return KernelFile(text, header)


class KernelFile(Mapping[str, "GpuKernel"]):
    """Kernels by name, loaded on the current GPU.

    Args:
        ptx: Their text.
        header: What `axode.codegen.targets.ptx.Kernels` wrote beside it.
    """

    def __init__(self, ptx: str, header: Mapping[str, Any]) -> None:
        if header.get("format") != FORMAT:
            raise FileError(
                f"the kernels have format {header.get('format')}, expected {FORMAT}; export them "
                "again"
            )
        self.header = dict(header)
        cp = cupy()
        device.check_capability(header["capability"], header.get("ptx", ""))
        try:
            self._module = cp.cuda.function.Module()
            self._module.load(ptx.encode() + b"\0")
        except cp.cuda.driver.CUDADriverError as error:
            raise NotApplicable(
                f"the driver refuses the kernels: {error}; update the driver, or export them with "
                "an older capability"
            ) from None
        self._made: dict[str, GpuKernel] = {}

    def __getitem__(self, name: str) -> GpuKernel:
        if name not in self.header["kernels"]:
            raise UnknownName("this file", "kernel", name, self.header["kernels"])
        if name not in self._made:
            own = self.header["kernels"][name]
            function = self._module.get_function(own["entry"])
            common = {key: self.header[key] for key in ("capability", "precision")}
            self._made[name] = GpuKernel(function, {"name": name, **common, **own})
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
    """One kernel on the current GPU.

    Args:
        function: CuPy's handle of it.
        header: Its name, precision, sizes of buffers and widths of tables.
    """

    def __init__(self, function: Any, header: Mapping[str, Any]) -> None:
        self._function = function
        self.header = dict(header)
        self.dtype = np.dtype(header["precision"])

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
        return int(cupy().cuda.driver.funcGetAttribute(number, self._function.ptr))

    @cached_property
    def _chip(self) -> Any:
        return device.chip()

    def geometry(self, runs: int) -> tuple[int, int]:
        """Number of blocks, and of threads per block, for a number of runs."""
        return launch_geometry(runs, self.registers, self._chip)

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
            budget: How often a counted loop may turn.
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
    ) -> Callable[[], None]:
        """Prepare a launch on given arrays, checked once, to be called repeatedly.

        It goes to CuPy's current stream and keeps the arrays alive.
        """
        cp = cupy()
        arrays = {name: self._array(name, value, 1) for name, value in buffers.items()}
        more = {name: self._array(name, value, 2) for name, value in (tables or {}).items()}
        runs = self._runs(arrays)
        items: list[int] = []
        for name, size in {**self.header["state"], **self.header["given"]}.items():
            items += self._buffer_entry(name, arrays, size, runs)
        for name, width in self.header["tables"].items():
            items += self._table_entry(name, more, width, runs)
        table = cp.asarray(np.array([*items, budget], dtype=np.int64))
        blocks, threads = self.geometry(runs) if runs else (0, 0)
        kept = (table, np.int64(runs), arrays, more)

        def launch() -> None:
            if blocks:
                self._function((blocks,), (threads,), kept[:2])

        return launch

    def _array(self, name: str, value: Any, plain: int) -> Any:
        array = device.on_gpu(name, value)
        if array.dtype != self.dtype or array.ndim not in (plain, plain + 1):
            raise InvalidArgument(
                f"'{name}' must be {self.dtype} with {plain} or {plain + 1} axes, got "
                f"{array.dtype} {array.shape}"
            )
        return array

    def _runs(self, arrays: Mapping[str, Any]) -> int:
        for name in self.header["state"]:
            if name in arrays:
                return int(arrays[name].shape[0])
        raise InvalidArgument(f"buffers needed: {', '.join(self.header['state'])}")

    @staticmethod
    def _buffer_entry(name: str, arrays: Mapping[str, Any], size: int, runs: int) -> list[int]:
        if name not in arrays:
            raise InvalidArgument(f"buffer '{name}' ({size} numbers per run) is missing")
        array = arrays[name]
        if array.shape not in ((size,), (runs, size)):
            raise InvalidArgument(f"'{name}' has shape {array.shape}, expected ({runs}, {size})")
        strides = array.strides if array.ndim == 2 else (0, array.strides[0])
        return [int(array.data.ptr), *map(int, strides)]

    @staticmethod
    def _table_entry(name: str, tables: Mapping[str, Any], width: int, runs: int) -> list[int]:
        if name not in tables:
            raise InvalidArgument(f"table '{name}' (rows of {width}) is missing")
        array = tables[name]
        if array.shape[-1] != width or (array.ndim == 3 and array.shape[0] != runs):
            raise InvalidArgument(f"'{name}' has shape {array.shape}, expected rows of {width}")
        strides = array.strides if array.ndim == 3 else (0, *array.strides)
        return [int(array.data.ptr), *map(int, strides), int(array.shape[-2])]
