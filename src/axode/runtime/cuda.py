"""Exported kernels on a GPU, with NumPy and CuPy alone.

Arrays of CuPy, PyTorch and JAX are used where they are, without copies, in any layout; runs next to
each other in memory are read fastest: a buffer of shape (runs, size) is best kept as the transpose
of a (size, runs) array, which `soa` makes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from axode.errors import FileError, InvalidArgument, NotApplicable

FORMAT = 1
BLOCK = 128  # threads a block; fewer where a thread needs many registers
MANY_REGISTERS = 128
LOCAL_BYTES, NUM_REGISTERS = 3, 4  # attributes of a function, as the driver numbers them


def cupy() -> Any:
    """CuPy, or an error that says what is missing: the package, the driver or the GPU."""
    try:
        import cupy as module
    except ImportError:
        raise NotApplicable(
            "running on a GPU needs CuPy: pip install 'axode[cuda]' (or the cupy package for your "
            "CUDA version)"
        ) from None
    try:
        if module.cuda.runtime.getDeviceCount() == 0:
            raise NotApplicable("CuPy finds no GPU on this machine")
    except module.cuda.runtime.CUDARuntimeError as error:
        raise NotApplicable(f"CuPy cannot use a GPU here: {error}") from None
    return module


def own_capability() -> str:
    """Compute capability of the current GPU, such as "9.0"."""
    text = str(cupy().cuda.Device().compute_capability)
    return f"{text[:-1]}.{text[-1]}"


def soa(array: Any) -> Any:
    """A (runs, size) array on the GPU whose runs lie next to each other."""
    cp = cupy()
    return cp.ascontiguousarray(cp.asarray(array, dtype=cp.float64).T).T


class GpuKernel:
    """A kernel loaded on the current GPU.

    Args:
        ptx: Its text.
        header: What `axode.codegen.ptx.Kernel` wrote beside it.
    """

    def __init__(self, ptx: str, header: Mapping[str, Any]) -> None:
        cp = cupy()
        if header.get("format") != FORMAT:
            raise FileError(f"the kernel has format {header.get('format')}, expected {FORMAT}")
        self.header = dict(header)
        own = own_capability()
        if float(own) < float(header["capability"]):
            raise NotApplicable(
                f"this GPU has compute capability {own}, the kernel needs {header['capability']}; "
                f"export it with capability='{own}'"
            )
        try:
            module = cp.cuda.function.Module()
            module.load(ptx.encode() + b"\0")
        except cp.cuda.driver.CUDADriverError as error:
            raise NotApplicable(f"the driver refuses the kernel (too old?): {error}") from None
        self._module = module
        self._function = module.get_function(header["entry"])

    @classmethod
    def load(cls, path: str | Path) -> GpuKernel:
        """From `x.ptx` and the `x.json` beside it."""
        place = Path(path)
        try:
            header = json.loads(place.with_suffix(".json").read_text())
            return cls(place.read_text(), header)
        except (OSError, ValueError) as error:
            raise FileError(f"cannot read the kernel '{place}': {error}") from None

    @property
    def registers(self) -> int:
        """Registers a thread uses."""
        return self._attribute(NUM_REGISTERS)

    @property
    def spilled_bytes(self) -> int:
        """Bytes of slow memory a thread needs because registers ran out."""
        return self._attribute(LOCAL_BYTES)

    def _attribute(self, number: int) -> int:
        return int(cupy().cuda.driver.funcGetAttribute(number, self._function.ptr))

    @property
    def block(self) -> int:
        """Threads a block."""
        return BLOCK if self.registers <= MANY_REGISTERS else BLOCK // 2

    def __call__(
        self, buffers: Mapping[str, Any], tables: Mapping[str, Any] | None = None, *,
        budget: int = 2**62, stream: Any = None,
    ) -> None:  # fmt: skip
        """Run every sample or run; state buffers change in place.

        Args:
            buffers: By name: (runs, size), or (size,) for one that all runs share; on the GPU.
            tables: By name: (runs, rows, width), or (rows, width) if shared.
            budget: How often a counted loop may turn.
            stream: CuPy stream to run on; the current one unless given.
        """
        cp = cupy()
        arrays = {name: self._array(cp, name, value, 1) for name, value in buffers.items()}
        more = {name: self._array(cp, name, value, 2) for name, value in (tables or {}).items()}
        runs = self._runs(arrays)
        items: list[int] = []
        for name, size in {**self.header["state"], **self.header["given"]}.items():
            items += self._buffer_entry(name, arrays, size, runs)
        for name, width in self.header["tables"].items():
            items += self._table_entry(name, more, width, runs)
        with stream or cp.cuda.get_current_stream():
            table = cp.asarray(np.array([*items, budget], dtype=np.int64))
            blocks = -(-runs // self.block)
            self._function((blocks,), (self.block,), (table, np.int64(runs)))

    @staticmethod
    def _array(cp: Any, name: str, value: Any, plain: int) -> Any:
        if not (hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__")):
            raise InvalidArgument(f"'{name}' must be an array on the GPU (CuPy, PyTorch, JAX)")
        on_gpu = hasattr(value, "__cuda_array_interface__")
        array = cp.asarray(value) if on_gpu else cp.from_dlpack(value)
        if array.dtype != cp.float64 or array.ndim not in (plain, plain + 1):
            raise InvalidArgument(
                f"'{name}' must be float64 with {plain} or {plain + 1} axes, got {array.dtype} "
                f"{array.shape}"
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
            raise InvalidArgument(f"buffer '{name}' ({size} numbers a run) is missing")
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
