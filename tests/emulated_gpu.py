"""A GPU that is none: CuPy's interface over NumPy, kernels compiled for the CPU from the same IR.

What a kernel computes, how it is called and what comes back can be tested on any machine; only the
assembler and the driver are missing.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

from axode.codegen.lowering.gpu_kernel import thread_module
from axode.codegen.targets import jit, ptx

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class DeviceArray(np.ndarray):
    """An array that says it is on a GPU."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    @property
    def __cuda_array_interface__(self):
        return {"version": 3}


class Function:
    """An entry of a module; launches are recorded and done thread by thread."""

    def __init__(self, text, entry):
        identity = f"emulated {entry} {hashlib.sha256(text).hexdigest()}"
        ir = text.rstrip(b"\0").decode()
        self._native = jit.load("emulated", identity, entry, lambda: ir)
        self._run, self.ptr = KERNEL(self._native.address), entry

    def __call__(self, grid, block, arguments):
        table, count = arguments
        gpu = sys.modules["cupy"]  # the present one: compiled steps are kept from test to test
        gpu.launches.append(
            SimpleNamespace(grid=grid[0], block=block[0], runs=int(count), stream=gpu.stream)
        )
        assert grid[0] * block[0] >= count
        for thread in range(min(grid[0] * block[0], int(count) + 3)):
            self._run(table.ctypes.data, int(count), thread)


class Stream:
    """A stream that remembers being the current one."""

    def __init__(self, gpu, ptr):
        self._gpu, self.ptr = gpu, ptr

    def __enter__(self):
        self._before, self._gpu.stream = self._gpu.stream, self.ptr

    def __exit__(self, *_):
        self._gpu.stream = self._before


class EmulatedGpu:
    """Stands for the module `cupy`.

    Attributes:
        launches: What was launched: grid, block, runs, stream.
        free: Bytes of memory that are left.
        registers: That every kernel claims to use a thread.
    """

    float64, float32 = np.float64, np.float32

    def __init__(self, capability="90", driver=13000, free=2**34, registers=64):
        self.launches, self.stream, self.free, self.registers = [], 0, free, registers
        gpu = self

        class Module:
            def load(self, text):
                if gpu.refuses:
                    raise gpu.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_PTX")
                self.text = text

            def get_function(self, entry):
                return Function(self.text, entry)

        self.refuses = False
        attributes = {"MultiProcessorCount": 4}
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDeviceCount=lambda: 1,
                CUDARuntimeError=type("RuntimeError", (Exception,), {}),
                driverGetVersion=lambda: driver,
                memGetInfo=lambda: (gpu.free, 2**36),
            ),
            Device=lambda: SimpleNamespace(compute_capability=capability, attributes=attributes),
            function=SimpleNamespace(Module=Module),
            driver=SimpleNamespace(
                CUDADriverError=type("CUDADriverError", (Exception,), {}),
                funcGetAttribute=lambda number, _: gpu.registers if number == 4 else 0,
            ),
            memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (Exception,), {})),
            ExternalStream=lambda address: Stream(gpu, address),
            get_current_stream=nullcontext,
        )

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: 0)

    @staticmethod
    def asarray(a, dtype=None):
        known = isinstance(a, DeviceArray) and (dtype is None or a.dtype == dtype)
        return a if known else np.array(a, dtype=dtype).view(DeviceArray)

    @staticmethod
    def ascontiguousarray(a):
        return np.ascontiguousarray(a).view(DeviceArray)

    @staticmethod
    def asnumpy(a):
        return np.array(a.view(np.ndarray))

    @staticmethod
    def from_dlpack(a):
        return np.from_dlpack(a).view(DeviceArray)

    @staticmethod
    def broadcast_to(a, shape):
        return np.broadcast_to(a, shape).view(DeviceArray)

    def empty(self, shape, dtype=np.float64):
        return self.full(shape, np.nan, dtype)

    def zeros(self, shape, dtype=np.float64):
        return self.full(shape, 0.0, dtype)

    @staticmethod
    def full(shape, value, dtype=np.float64):
        return np.full(shape, value, dtype=dtype).view(DeviceArray)


def install(patch, **options) -> EmulatedGpu:
    """Put an emulated GPU in the place of CuPy, and kernels for the CPU in the place of PTX."""
    gpu = EmulatedGpu(**options)
    patch.setitem(sys.modules, "cupy", gpu)
    patch.setattr(
        ptx, "thread_module", lambda p, number, *, host: thread_module(p, number, host=True)
    )
    patch.setattr(ptx, "_resources", lambda text, capability: {})
    patch.setattr(ptx, "_emit", lambda ir, capability: f"; .version 7.8\n{ir}")
    return gpu
