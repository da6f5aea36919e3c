"""Calls from compiled programs of JAX to Python, on the memory of JAX's own arrays.

XLA hands a function the address of a structure that holds the addresses of arguments and
results, on a GPU its stream as well. Nothing is copied, and nothing comes back from a GPU. Layouts
are those of XLA's foreign function interface, `xla/ffi/api/c_api.h` of jaxlib.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

TARGET = "axode"
METADATA = 1  # kind of an extension: XLA asks for versions
EXECUTE = 3  # stage of a call; those before it need nothing
INTERNAL = 13  # code of an error
TYPES: dict[int, np.dtype[Any]] = {11: np.dtype(np.float32), 12: np.dtype(np.float64)}

Foreign = Callable[[Sequence[Any], Any, int | None], None]  # arguments, result, stream
_HEAD: Any = [("size_of_this", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class _Version(ctypes.Structure):
    _fields_ = [*_HEAD, ("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("size_of_this", ctypes.c_size_t), ("version", _Version)]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("size_of_this", ctypes.c_size_t),
        ("kind", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Api(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("version", _Version),
        ("internal", ctypes.c_void_p),
        ("create_error", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 3),
        ("get_stream", ctypes.c_void_p),
    ]


class _ErrorArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


class _StreamArguments(ctypes.Structure):
    _fields_ = [*_HEAD, ("context", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class _Buffer(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("type", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    ]

    def layout(self) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and type."""
        return tuple(self.shape[k] for k in range(self.rank)), TYPES[self.type]


class _Buffers(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(_Buffer))),
    ]

    def each(self) -> list[_Buffer]:
        """All of them."""
        return [self.items[k].contents for k in range(self.count)]


class _Scalar(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("value", ctypes.POINTER(ctypes.c_int64))]


class _Attributes(ctypes.Structure):
    _fields_ = [
        *_HEAD,
        ("count", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("items", ctypes.POINTER(ctypes.POINTER(_Scalar))),
    ]


class _Frame(ctypes.Structure):
    _fields_ = [
        ("size_of_this", ctypes.c_size_t),
        ("extension", ctypes.POINTER(_Extension)),
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("arguments", _Buffers),
        ("results", _Buffers),
        ("attributes", _Attributes),
    ]


_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
_FUNCTIONS: list[Foreign] = []  # by number; compiled programs hold the numbers


def number_of(function: Foreign) -> int:
    """Number by which compiled programs know a function, for as long as the process lives."""
    _register()
    _FUNCTIONS.append(function)
    return len(_FUNCTIONS) - 1


def foreign_call(number: int, result: Any, arrays: Sequence[Any]) -> Any:
    """Call a function from a program that JAX compiles.

    Args:
        number: Its number.
        result: Shape and type of the result, `jax.ShapeDtypeStruct`.
        arrays: The arguments.
    """
    import jax

    return jax.ffi.ffi_call(TARGET, result)(*arrays, number=np.int64(number))


@cache
def _register() -> None:
    import jax

    for handler, platform in ((_ON_CPU, "cpu"), (_ON_GPU, "CUDA")):
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(handler), platform=platform)


@cache
def _version() -> list[int]:
    """Version of the interface, for a jaxlib that lacks it; all have the structures above."""
    import jax

    text = Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text("utf-8")
    return [int(n) for n in re.findall(r"#define XLA_FFI_API_(?:MAJOR|MINOR) (\d+)", text)]


def _answer(address: Any, call: Callable[[_Frame, Foreign], None]) -> int | None:
    """Execute a request of XLA; returns the address of an error, or none."""
    frame = address.contents
    if frame.extension and frame.extension.contents.kind == METADATA:
        version = frame.extension.contents.metadata.contents.version
        known = frame.api.contents.version if frame.api else None
        version.major, version.minor = (known.major, known.minor) if known else _version()
        return None
    if frame.stage != EXECUTE:
        return None
    try:
        call(frame, _FUNCTIONS[frame.attributes.items[0].contents.value[0]])
    except BaseException as error:  # which ctypes would print, to go on
        return _error(frame, f"{type(error).__name__}: {error}")
    return None


def _error(frame: _Frame, text: str) -> int | None:
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorArguments))(
        frame.api.contents.create_error
    )
    given = _ErrorArguments(ctypes.sizeof(_ErrorArguments), None, text.encode(), INTERNAL)
    made: int | None = create(given)
    return made


def _on_cpu(frame: _Frame, function: Foreign) -> None:
    def view(buffer: _Buffer) -> Any:
        shape, dtype = buffer.layout()
        if not math.prod(shape):
            return np.empty(shape, dtype)
        size = math.prod(shape) * dtype.itemsize
        memory: Any = (ctypes.c_char * size).from_address(buffer.data)
        return np.ndarray(shape, dtype, memory)

    (result,) = map(view, frame.results.each())
    function([view(buffer) for buffer in frame.arguments.each()], result, None)


def _on_gpu(frame: _Frame, function: Foreign) -> None:
    from axode.runtime.device import cupy

    cp = cupy()

    def view(buffer: _Buffer) -> Any:
        shape, dtype = buffer.layout()
        if not math.prod(shape):
            return cp.empty(shape, dtype)
        memory = cp.cuda.UnownedMemory(buffer.data, math.prod(shape) * dtype.itemsize, None)
        return cp.ndarray(shape, dtype, cp.cuda.MemoryPointer(memory, 0))

    get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_StreamArguments))(
        frame.api.contents.get_stream
    )
    asked = _StreamArguments(ctypes.sizeof(_StreamArguments), None, frame.context, None)
    get(asked)
    (result,) = map(view, frame.results.each())
    arguments = [view(buffer) for buffer in frame.arguments.each()]
    with cp.cuda.Device(result.device.id):
        function(arguments, result, asked.stream or 0)


_ON_CPU = _HANDLER(lambda address: _answer(address, _on_cpu))
_ON_GPU = _HANDLER(lambda address: _answer(address, _on_gpu))
