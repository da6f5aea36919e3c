"""Calls compiled code for one sample without any conversion in between.

Converting four NumPy arrays to pointers in Python costs more than the robot
dynamics they carry. This makes a real CPython function (METH_FASTCALL) from
generated code: it looks at the array objects directly, checks that each is a
C-contiguous float64 array of the expected shape, runs the kernel and returns
1. Anything else makes it return 0, and the careful path in Python takes over.

The layout of array objects is part of NumPy's binary interface. It is checked
at run time before first use; if it is different, everything goes the careful way.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from axode.codegen import jit
from axode.codegen.tape import Port, Tape

# Offsets in an array object (64-bit): type, data, ndim, dims, descr, flags.
TYPE, DATA, NDIM, DIMS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

METH_FASTCALL = 0x80

# Words of the context: fixed ones, then four a port, the method definition, the work array.
_KERNEL, _COUNT, _WORK, _ARRAY_TYPE, _FLOAT64, _FROM_LONG, _PORTS = range(7)
_PORT_WORDS = 4  # required flags, ndim, first and second length

_NAME = ctypes.create_string_buffer(b"call")


def _trampoline() -> str:
    """IR of ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count)``.

    ``self`` is the int64 array with the context.
    """
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %count) nounwind {{
entry:
  %context.place = getelementptr i8, ptr %self, i64 {DATA}
  %context = load ptr, ptr %context.place
  %n.place = getelementptr i64, ptr %context, i64 {_COUNT}
  %n = load i64, ptr %n.place
  %array.place = getelementptr i64, ptr %context, i64 {_ARRAY_TYPE}
  %array = load i64, ptr %array.place
  %float64.place = getelementptr i64, ptr %context, i64 {_FLOAT64}
  %float64 = load i64, ptr %float64.place
  %from_long.place = getelementptr i64, ptr %context, i64 {_FROM_LONG}
  %from_long = load ptr, ptr %from_long.place
  %ports = getelementptr i64, ptr %context, i64 {_PORTS}
  %words = shl i64 %n, 1
  %words.all = add i64 %words, 1
  %table = alloca i64, i64 %words.all
  %complete = icmp eq i64 %count, %n
  br i1 %complete, label %next, label %refuse
next:
  %k = phi i64 [ 0, %entry ], [ %k.next, %accept ]
  %done = icmp eq i64 %k, %n
  br i1 %done, label %run, label %object
object:
  %item.place = getelementptr ptr, ptr %args, i64 %k
  %item = load ptr, ptr %item.place
  %type.place = getelementptr i8, ptr %item, i64 {TYPE}
  %type = load i64, ptr %type.place
  %is.array = icmp eq i64 %type, %array
  br i1 %is.array, label %layout, label %refuse
layout:
  %port.word = mul i64 %k, {_PORT_WORDS}
  %port = getelementptr i64, ptr %ports, i64 %port.word
  %descr.place = getelementptr i8, ptr %item, i64 {DESCR}
  %descr = load i64, ptr %descr.place
  %is.float64 = icmp eq i64 %descr, %float64
  %flags.place = getelementptr i8, ptr %item, i64 {FLAGS}
  %flags.int = load i32, ptr %flags.place
  %flags = zext i32 %flags.int to i64
  %need = load i64, ptr %port
  %have = and i64 %flags, %need
  %is.plain = icmp eq i64 %have, %need
  %ndim.place = getelementptr i8, ptr %item, i64 {NDIM}
  %ndim.int = load i32, ptr %ndim.place
  %ndim = zext i32 %ndim.int to i64
  %ndim.port = getelementptr i64, ptr %port, i64 1
  %ndim.need = load i64, ptr %ndim.port
  %is.ndim = icmp eq i64 %ndim, %ndim.need
  %good.0 = and i1 %is.float64, %is.plain
  %good.1 = and i1 %good.0, %is.ndim
  br i1 %good.1, label %shape, label %refuse
shape:
  %dims.place = getelementptr i8, ptr %item, i64 {DIMS}
  %dims = load ptr, ptr %dims.place
  br label %axis
axis:
  %d = phi i64 [ 0, %shape ], [ %d.next, %length ]
  %all = icmp eq i64 %d, %ndim
  br i1 %all, label %accept, label %length
length:
  %dim.place = getelementptr i64, ptr %dims, i64 %d
  %dim = load i64, ptr %dim.place
  %d.next = add i64 %d, 1
  %need.word = add i64 %d, 2
  %dim.port = getelementptr i64, ptr %port, i64 %need.word
  %dim.need = load i64, ptr %dim.port
  %same = icmp eq i64 %dim, %dim.need
  br i1 %same, label %axis, label %refuse
accept:
  %data.place = getelementptr i8, ptr %item, i64 {DATA}
  %data = load i64, ptr %data.place
  %slot = shl i64 %k, 1
  %table.address = getelementptr i64, ptr %table, i64 %slot
  store i64 %data, ptr %table.address
  %slot.stride = add i64 %slot, 1
  %table.stride = getelementptr i64, ptr %table, i64 %slot.stride
  store i64 0, ptr %table.stride
  %k.next = add i64 %k, 1
  br label %next
run:
  %work.place = getelementptr i64, ptr %context, i64 {_WORK}
  %work = load i64, ptr %work.place
  %table.work = getelementptr i64, ptr %table, i64 %words
  store i64 %work, ptr %table.work
  %kernel = load ptr, ptr %context
  call void %kernel(ptr %table, i64 0, i64 1)
  %one = call ptr %from_long(i64 1)
  ret ptr %one
refuse:
  %zero = call ptr %from_long(i64 0)
  ret ptr %zero
}}
"""


@functools.cache
def _layout_is_known() -> bool:
    """Compares the assumed layout of array objects with what NumPy says of one."""
    if ctypes.sizeof(ctypes.c_void_p) != 8 or object.__basicsize__ != DATA:
        return False
    array = np.zeros((3, 5))
    start = id(array)

    def word(offset: int) -> int:
        return ctypes.c_int64.from_address(start + offset).value

    flags = ctypes.c_int32.from_address(start + FLAGS).value
    required = C_CONTIGUOUS | ALIGNED | WRITEABLE
    return (
        word(TYPE) == id(np.ndarray)
        and word(DATA) == array.ctypes.data
        and ctypes.c_int32.from_address(start + NDIM).value == 2
        and ctypes.c_int64.from_address(word(DIMS)).value == 3
        and ctypes.c_int64.from_address(word(DIMS) + 8).value == 5
        and word(DESCR) == id(np.dtype(np.float64))
        and flags & required == required
    )


@functools.cache
def _native_trampoline() -> jit.Native:
    text = _trampoline()
    return jit.load("fastcall", "fastcall", "call", lambda: text)


def _port_words(port: Port, flags: int) -> list[int]:
    lengths = [*port.shape, 0, 0][:2]
    return [C_CONTIGUOUS | ALIGNED | flags, len(port.shape), *lengths]


def fast_call(tape: Tape, kernel: int, work_size: int) -> Callable[..., int]:
    """A function of (inputs..., outputs...) that returns 1 if it ran, 0 if it refused.

    Args:
        tape: Gives the shapes.
        kernel: Address of the scalar ``map``.
        work_size: Bytes of its work array; calls hold the interpreter lock, so one is enough.
    """
    if not _layout_is_known():
        return lambda *arrays: 0
    ports = [_port_words(port, 0) for port in tape.inputs]
    ports += [_port_words(port, WRITEABLE) for port in tape.outputs]
    python = ctypes.pythonapi
    from_long = ctypes.cast(python.PyLong_FromLong, ctypes.c_void_p).value or 0
    name = ctypes.cast(_NAME, ctypes.c_void_p).value or 0
    fixed = [kernel, len(ports), 0, id(np.ndarray), id(np.dtype(np.float64)), from_long]
    method = [name, _native_trampoline().address, METH_FASTCALL, 0]  # a PyMethodDef
    head = [*fixed, *(word for words in ports for word in words), *method]
    # The function owns this array as its `self`: whatever it needs lives in it.
    context = np.zeros(len(head) + work_size // 8, dtype=np.int64)
    context[: len(head)] = head
    context[_WORK] = context.ctypes.data + 8 * len(head)
    make = python.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    definition = context.ctypes.data + 8 * (len(head) - len(method))
    function: Callable[..., int] = make(definition, context, None)
    return function
