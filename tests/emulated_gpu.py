"""A GPU that is none: CuPy's interface over NumPy, kernels compiled for the CPU from the same IR.

What a kernel computes, how it is called and what comes back can be tested on any machine; only the
assembler and the driver are missing.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import threading
from types import SimpleNamespace

import numpy as np

from axode.codegen.lowering.gpu_kernel import thread_module
from axode.codegen.targets import jit, ptx

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ASSEMBLED = b"assembled "


class DeviceArray(np.ndarray):
    """An array that says it is on a GPU."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)

    @property
    def device(self):
        return SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self):
        return {"version": 3}


class Function:
    """An entry of a module."""

    def __init__(self, text, entry):
        identity = f"emulated {entry} {hashlib.sha256(text).hexdigest()}"
        ir = text.removeprefix(ASSEMBLED).rstrip(b"\0").decode()
        self._native = jit.load("emulated", identity, entry, lambda: ir)
        self.ptr = self._native.address


class Stream:
    """A stream that remembers being the current one; what goes to it is done at once."""

    def __init__(self, gpu, ptr):
        self._gpu, self.ptr = gpu, ptr

    def __enter__(self):
        self._before, self._gpu.stream = self._gpu.stream, self.ptr

    def __exit__(self, *_):
        self._gpu.stream = self._before

    def synchronize(self):
        self._gpu.waits += 1


class Device:
    """One of the GPUs; the current one, unless numbered."""

    def __init__(self, gpu, number=None):
        self._gpu = gpu
        self.id = gpu.device if number is None else number
        self.compute_capability, self.attributes = gpu.capability, {"MultiProcessorCount": 4}

    def use(self):
        self._gpu.device = self.id

    def __enter__(self):
        self._before = self._gpu.device
        self.use()

    def __exit__(self, *_):
        self._gpu.device = self._before


class EmulatedGpu:
    """Stands for the module `cupy`.

    Attributes:
        launches: What was launched: grid, block, runs, stream, device.
        copies: Bytes of every copy between the CPU and the GPU.
        fetched: Bytes of those from the GPU.
        allocated: Numbers of every array that was made.
        waits: How often the CPU waited.
        assembled: How often a text was assembled.
        free: Bytes of memory that are left.
        registers: That every kernel claims to use a thread.
    """

    float64, float32, ndarray = np.float64, np.float32, DeviceArray

    def __init__(self, capability="90", driver=13000, free=2**34, registers=64, devices=1):
        self.launches, self.copies, self.fetched, self.allocated = [], [], [], []
        self.free, self.registers = free, registers
        self.capability, self.waits, self.assembled, self.refuses = capability, 0, 0, False
        self._thread = threading.local()
        gpu = self

        class Module:
            def load(self, text):
                if gpu.refuses:
                    raise gpu.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_PTX")
                self.text = text

            def get_function(self, entry):
                return Function(self.text, entry)

        class LinkState:
            def add_ptr_data(self, text, name):
                if gpu.refuses:
                    raise gpu.cuda.driver.CUDADriverError("CUDA_ERROR_INVALID_PTX")
                self._text = text

            def complete(self):
                gpu.assembled += 1
                return ASSEMBLED + self._text

        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDeviceCount=lambda: devices,
                getDevice=lambda: gpu.device,
                CUDARuntimeError=type("RuntimeError", (Exception,), {}),
                driverGetVersion=lambda: driver,
                runtimeGetVersion=lambda: driver,
                memGetInfo=lambda: (gpu.free, 2**36),
                memcpyAsync=self._copy,
                memsetAsync=lambda address, value, size, stream: ctypes.memset(
                    address, value, size
                ),
                free=lambda address: None,
            ),
            Device=lambda number=None: Device(gpu, number),
            function=SimpleNamespace(Module=Module, LinkState=LinkState),
            driver=SimpleNamespace(
                CUDADriverError=type("CUDADriverError", (Exception,), {}),
                funcGetAttribute=lambda number, _: gpu.registers if number == 4 else 0,
                launchKernel=self._launch,
            ),
            memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (Exception,), {})),
            ExternalStream=lambda address: Stream(gpu, address),
            Stream=lambda non_blocking=False: Stream(gpu, 7),
            get_current_stream=lambda: Stream(gpu, gpu.stream),
            alloc_pinned_memory=bytearray,
            UnownedMemory=lambda address, size, owner: (ctypes.c_char * size).from_address(address),
            MemoryPointer=lambda memory, offset: memory,
            alloc=lambda size: SimpleNamespace(
                ptr=(a := gpu.zeros(size, np.uint8)).data.ptr, own=a
            ),
        )

    @property
    def device(self):
        """Number of this thread's GPU."""
        return getattr(self._thread, "device", 0)

    @device.setter
    def device(self, number):
        self._thread.device = number

    @property
    def stream(self):
        """Address of this thread's current stream."""
        return getattr(self._thread, "stream", 0)

    @stream.setter
    def stream(self, address):
        self._thread.stream = address

    def _copy(self, to, source, size, direction, stream):
        if direction != 4:  # between GPUs, or on one
            self.copies.append(size)
        if direction == 2:
            self.fetched.append(size)
        ctypes.memmove(to, source, size)

    def _launch(self, function, blocks, _, __, threads, *others):
        stream, parameters = others[3], others[4]
        table, count = (ctypes.c_void_p * 2).from_address(parameters)
        runs = ctypes.c_int64.from_address(count).value
        self.launches.append(
            SimpleNamespace(
                grid=blocks, block=threads, runs=runs, stream=stream, device=self.device
            )
        )
        assert blocks * threads >= runs
        run = KERNEL(function)
        for thread in range(min(blocks * threads, runs + 3)):
            run(table, runs, thread)

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: 0)

    @staticmethod
    def asarray(a, dtype=None):
        known = isinstance(a, DeviceArray) and (dtype is None or a.dtype == dtype)
        return a if known else np.array(a, dtype=dtype).view(DeviceArray)

    @staticmethod
    def ascontiguousarray(a):
        return np.ascontiguousarray(a).view(DeviceArray)

    def asnumpy(self, a):
        self.copies.append(a.nbytes)
        self.fetched.append(a.nbytes)
        return np.array(a.view(np.ndarray))

    @staticmethod
    def from_dlpack(a):
        return np.from_dlpack(a).view(DeviceArray)

    @staticmethod
    def where(condition, a, b):
        return np.where(condition, a, b).view(DeviceArray)

    @staticmethod
    def broadcast_to(a, shape):
        return np.broadcast_to(a, shape).view(DeviceArray)

    def empty(self, shape, dtype=np.float64):
        return self.full(shape, 0 if np.dtype(dtype).kind in "iu" else np.nan, dtype)

    def zeros(self, shape, dtype=np.float64):
        return self.full(shape, 0, dtype)

    def full(self, shape, value, dtype=np.float64):
        made = np.full(shape, value, dtype=dtype).view(DeviceArray)
        self.allocated.append(made.size)
        return made


GPU = EmulatedGpu()  # always the same: compiled steps, which know it, are kept from test to test


def install(patch, **options) -> EmulatedGpu:
    """Put an emulated GPU in the place of CuPy, and kernels for the CPU in the place of PTX."""
    gpu = GPU
    gpu.__dict__.clear()
    gpu.__init__(**options)
    patch.setitem(sys.modules, "cupy", gpu)
    patch.setattr(
        ptx, "thread_module", lambda p, number, *, host: thread_module(p, number, host=True)
    )
    patch.setattr(ptx, "KIND", "emulated ptx")
    patch.setattr(ptx, "_resources", lambda text, capability: {})
    patch.setattr(ptx, "_emit", lambda ir, capability: f"; .version 7.8\n{ir}")
    return gpu
