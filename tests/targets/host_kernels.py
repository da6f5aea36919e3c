"""Kernels for the CPU from the IR that a GPU gets, one call a thread."""

from __future__ import annotations

import ctypes

import numpy as np

from axode.codegen.tape.program import ENTRY
from axode.codegen.targets import jit, ptx

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
BEYOND = 3  # threads more than there are runs, which must do nothing


class HostKernel:
    """The kernel of a program; arrays have any strides and the kernel's precision."""

    def __init__(self, program, precision="float64"):
        self.program = program
        ir = ptx.host_module(program, precision)
        identity = f"host thread {precision} {program.digest}"
        self.native = jit.load("thread", identity, ENTRY, lambda: ir)
        self.run = KERNEL(self.native.address)

    def __call__(self, buffers, tables, budget=2**62):
        items = []
        for name in self.program.external:
            a = buffers[name]
            strides = a.strides if a.ndim == 2 else (0, *a.strides)
            items += [a.ctypes.data, *strides]
        for name in self.program.tables:
            a = tables[name]
            strides = a.strides if a.ndim == 3 else (0, *a.strides)
            items += [a.ctypes.data, *strides, a.shape[-2]]
        table = np.array([*items, budget, 0], dtype=np.int64)
        runs = len(buffers[next(iter(self.program.state))])
        for thread in range(runs + BEYOND):
            self.run(table.ctypes.data, runs, thread)


def evaluated(tape, *arrays, precision="float64", order="F"):
    """A tape with one result, each argument (samples, size), by its map kernel."""
    program = ptx.map_program(tape)
    inputs = {
        port.name: np.array(a, dtype=precision, order=order)
        for port, a in zip(tape.inputs, arrays, strict=True)
    }
    (name,) = program.state
    result = np.full((len(arrays[0]), program.state[name]), np.nan, dtype=precision, order=order)
    HostKernel(program, precision)({**inputs, name: result}, {})
    return result
