"""Runs modules of WebAssembly in the tests."""

from __future__ import annotations

import ctypes

import numpy as np
import wasmtime

from axode.codegen.tape.tape import Tape
from axode.codegen.targets.wasm import WasmModule


class Machine:
    """An instance of a module, with its arrays."""

    def __init__(self, module: WasmModule) -> None:
        self.data = module.to_bytes()
        self._store = wasmtime.Store()
        compiled = wasmtime.Module(self._store.engine, self.data)
        self._exports = wasmtime.Instance(self._store, compiled, []).exports(self._store)
        self._buffers = module.layout["buffers"]

    def __getitem__(self, name: str) -> np.ndarray:
        """An array in memory; writing to it changes it there."""
        memory = self._exports["memory"]
        start = ctypes.addressof(memory.data_ptr(self._store).contents)
        place = self._buffers[name]
        kind = ctypes.c_double * place["size"]
        return np.ctypeslib.as_array(kind.from_address(start + place["address"]))

    def call(self, name: str, *arguments: int) -> None:
        self._exports[name](self._store, *arguments)


def evaluated(tape: Tape, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Results of a tape, computed by WebAssembly."""
    module = WasmModule()
    inputs = [f"in{k}" for k in range(len(tape.inputs))]
    outputs = [f"out{k}" for k in range(len(tape.outputs))]
    module.add_tape("f", tape, [*inputs, *outputs])
    machine = Machine(module)
    for name, array in zip(inputs, arrays, strict=True):
        machine[name][:] = np.ravel(array)
    machine.call("f")
    return [machine[n].reshape(p.shape).copy() for n, p in zip(outputs, tape.outputs, strict=True)]
