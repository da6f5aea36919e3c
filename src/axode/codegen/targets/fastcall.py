"""Calls compiled code without any conversion in between.

Converting four NumPy arrays to pointers in Python costs more than the robot
dynamics they carry. This makes a real CPython function (METH_FASTCALL) from
generated code: it looks at the array objects directly, checks that each is a
C-contiguous float64 array of the expected shape, runs the kernel for a sample
or a small batch and returns 1. Anything else makes it return 0, and the
general path in Python takes over.

The layout of array objects is part of NumPy's binary interface. It is checked
at run time before first use; if it differs, every call takes the general path.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Port, Tape
from axode.codegen.targets import jit

# Offsets in an array object (64-bit): type, data, ndim, dims, descr, flags.
TYPE, DATA, NDIM, DIMS, DESCR, FLAGS = 8, 16, 24, 32, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

METH_FASTCALL, METH_KEYWORDS = 0x80, 0x02

# Words of the context: fixed ones, some per port, the method definition, the work array.
_KERNEL, _WORK, _BATCH_KERNEL, _BATCH_WORK, _BATCH_LIMIT = range(5)
_COUNT, _INPUTS, _ARRAY_TYPE, _FLOAT64, _FROM_LONG, _PORTS = range(5, 11)
_LENGTHS = 4  # axes that a port may have
_PORT_WORDS = 3 + _LENGTHS  # required flags, bytes, ndim, the lengths
_MAX_PORTS = 64  # the table of addresses lies on the stack; more ports take the general path


def word(name: str, index: int | str, kind: str = "i64", base: str = "%context") -> str:
    """IR that loads a word of the context under a name."""
    return (
        f"  %{name}.place = getelementptr i64, ptr {base}, i64 {index}\n"
        f"  %{name} = load {kind}, ptr %{name}.place\n"
    )


def field(name: str, item: str, offset: int, kind: str) -> str:
    """IR that loads a field of an array object under a name, widened to 64 bits."""
    place = f"  %{name}.field = getelementptr i8, ptr {item}, i64 {offset}\n"
    if kind == "i32":
        return (
            f"{place}  %{name}.int = load i32, ptr %{name}.field\n"
            f"  %{name} = zext i32 %{name}.int to i64\n"
        )
    return f"{place}  %{name} = load {kind}, ptr %{name}.field\n"


def _trampoline() -> str:
    """IR of ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count)``.

    ``self`` is the int64 array with the context. The first output has the batch axes;
    the others must have the same ones, an input may have none.
    """
    return _batch_axes() + _layout_checks() + _shape_checks() + _overlaps() + _computation()


def _batch_axes() -> str:
    """Count the arguments and read the batch axes off the first output."""
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %given) nounwind {{
entry:
{field("context", "%self", DATA, "ptr")}
{word("n", _COUNT)}{word("inputs", _INPUTS)}{word("array", _ARRAY_TYPE)}
{word("float64", _FLOAT64)}{word("from_long", _FROM_LONG, "ptr")}{word("limit", _BATCH_LIMIT)}
  %ports = getelementptr i64, ptr %context, i64 {_PORTS}
  %words = shl i64 %n, 1
  %table = alloca [{2 * _MAX_PORTS + 1} x i64]
  %complete = icmp eq i64 %given, %n
  %some = icmp slt i64 %inputs, %n
  %sound = and i1 %complete, %some
  br i1 %sound, label %reference, label %refuse
reference:
  %first.place = getelementptr ptr, ptr %args, i64 %inputs
  %first = load ptr, ptr %first.place
{field("first.type", "%first", TYPE, "i64")}
  %first.is.array = icmp eq i64 %first.type, %array
  br i1 %first.is.array, label %axes, label %refuse
axes:
{field("first.ndim", "%first", NDIM, "i32")}{field("first.dims", "%first", DIMS, "ptr")}
  %first.word = mul i64 %inputs, {_PORT_WORDS}
  %first.port = getelementptr i64, ptr %ports, i64 %first.word
{word("first.need", 2, base="%first.port")}
  %lead = sub i64 %first.ndim, %first.need
  %possible = icmp sge i64 %lead, 0
  br i1 %possible, label %product, label %refuse
product:
  %axis = phi i64 [ 0, %axes ], [ %axis.next, %multiply ]
  %batch = phi i64 [ 1, %axes ], [ %batch.next, %multiply ]
  %counted = icmp eq i64 %axis, %lead
  br i1 %counted, label %next, label %multiply
multiply:
{word("axis.length", "%axis", base="%first.dims")}
  %batch.next = mul i64 %batch, %axis.length
  %axis.next = add i64 %axis, 1
  br label %product
"""


def _layout_checks() -> str:
    """Go through the arguments: is it an array, of doubles, contiguous, with enough axes?"""
    return f"""
next:
  %k = phi i64 [ 0, %product ], [ %k.next, %accept ]
  %done = icmp eq i64 %k, %n
  br i1 %done, label %apart, label %object
object:
  %item.place = getelementptr ptr, ptr %args, i64 %k
  %item = load ptr, ptr %item.place
{field("type", "%item", TYPE, "i64")}
  %is.array = icmp eq i64 %type, %array
  br i1 %is.array, label %layout, label %refuse
layout:
{field("descr", "%item", DESCR, "i64")}{field("flags", "%item", FLAGS, "i32")}
{field("ndim", "%item", NDIM, "i32")}{field("dims", "%item", DIMS, "ptr")}
  %port.word = mul i64 %k, {_PORT_WORDS}
  %port = getelementptr i64, ptr %ports, i64 %port.word
{word("flags.need", 0, base="%port")}{word("bytes", 1, base="%port")}
{word("ndim.need", 2, base="%port")}
  %is.float64 = icmp eq i64 %descr, %float64
  %flags.have = and i64 %flags, %flags.need
  %is.plain = icmp eq i64 %flags.have, %flags.need
  %own = sub i64 %ndim, %ndim.need
  %is.batch = icmp eq i64 %own, %lead
  %is.single = icmp eq i64 %own, 0
  %is.input = icmp slt i64 %k, %inputs
  %may.repeat = and i1 %is.single, %is.input
  %is.ndim = or i1 %is.batch, %may.repeat
  %good.0 = and i1 %is.float64, %is.plain
  %good.1 = and i1 %good.0, %is.ndim
  %stride = select i1 %is.single, i64 0, i64 %bytes
  br i1 %good.1, label %shape, label %refuse
"""


def _shape_checks() -> str:
    """Compare every axis, then enter address and stride into the table."""
    return f"""
shape:
  %d = phi i64 [ 0, %layout ], [ %d.next, %length ]
  %all = icmp eq i64 %d, %ndim
  br i1 %all, label %accept, label %length
length:
{word("dim", "%d", base="%dims")}
  %d.next = add i64 %d, 1
  %inner = sub i64 %d, %own
  %is.outer = icmp slt i64 %inner, 0
  %inner.word = add i64 %inner, 3
  %outer.address = getelementptr i64, ptr %first.dims, i64 %d
  %inner.address = getelementptr i64, ptr %port, i64 %inner.word
  %dim.address = select i1 %is.outer, ptr %outer.address, ptr %inner.address
  %dim.need = load i64, ptr %dim.address
  %same = icmp eq i64 %dim, %dim.need
  br i1 %same, label %shape, label %refuse
accept:
{field("data", "%item", DATA, "i64")}
  %slot = shl i64 %k, 1
  %table.address = getelementptr i64, ptr %table, i64 %slot
  store i64 %data, ptr %table.address
  %slot.stride = add i64 %slot, 1
  %table.stride = getelementptr i64, ptr %table, i64 %slot.stride
  store i64 %stride, ptr %table.stride
  %k.next = add i64 %k, 1
  br label %next
"""


def _overlaps() -> str:
    """Refuse outputs that share memory with other arrays, unless with an input as a whole."""
    return f"""
apart:
  br label %written
written:
  %o = phi i64 [ %inputs, %apart ], [ %o.next, %clear ]
  %o.slot = shl i64 %o, 1
  %o.address = getelementptr i64, ptr %table, i64 %o.slot
  %o.begin = load i64, ptr %o.address
  %o.word = mul i64 %o, {_PORT_WORDS}
  %o.port = getelementptr i64, ptr %ports, i64 %o.word
{word("o.bytes", 1, base="%o.port")}
  %o.size = mul i64 %o.bytes, %batch
  %o.end = add i64 %o.begin, %o.size
  br label %other
other:
  %r = phi i64 [ 0, %written ], [ %r.next, %beside ]
  %r.slot = shl i64 %r, 1
  %r.address = getelementptr i64, ptr %table, i64 %r.slot
  %r.begin = load i64, ptr %r.address
  %r.after = add i64 %r.slot, 1
  %r.stride.address = getelementptr i64, ptr %table, i64 %r.after
  %r.stride = load i64, ptr %r.stride.address
  %r.word = mul i64 %r, {_PORT_WORDS}
  %r.port = getelementptr i64, ptr %ports, i64 %r.word
{word("r.bytes", 1, base="%r.port")}
  %r.repeats = icmp eq i64 %r.stride, 0
  %r.count = select i1 %r.repeats, i64 1, i64 %batch
  %r.size = mul i64 %r.bytes, %r.count
  %r.end = add i64 %r.begin, %r.size
  %r.next = add i64 %r, 1
  %self.met = icmp eq i64 %r, %o
  br i1 %self.met, label %clear, label %compare
compare:
  %before = icmp ule i64 %r.end, %o.begin
  %behind = icmp uge i64 %r.begin, %o.end
  %disjoint = or i1 %before, %behind
  %same.begin = icmp eq i64 %r.begin, %o.begin
  %same.bytes = icmp eq i64 %r.bytes, %o.bytes
  %same.size = icmp eq i64 %r.size, %o.size
  %is.read = icmp slt i64 %r, %inputs
  %whole.0 = and i1 %same.begin, %same.bytes
  %whole.1 = and i1 %same.size, %is.read
  %whole = and i1 %whole.0, %whole.1
  %good.2 = or i1 %disjoint, %whole
  br i1 %good.2, label %beside, label %refuse
beside:
  br label %other
clear:
  %o.next = add i64 %o, 1
  %o.done = icmp eq i64 %o.next, %n
  br i1 %o.done, label %run, label %written
"""


def _computation() -> str:
    """Call the kernel for a sample or a batch; every refusal ends here as well."""
    return f"""
run:
  %one = icmp eq i64 %batch, 1
  %small = icmp sle i64 %batch, %limit
  %fits = or i1 %one, %small
  %kernel.word = select i1 %one, i64 {_KERNEL}, i64 {_BATCH_KERNEL}
  %work.word = select i1 %one, i64 {_WORK}, i64 {_BATCH_WORK}
{word("kernel", "%kernel.word", "ptr")}{word("work", "%work.word")}
  %table.work = getelementptr i64, ptr %table, i64 %words
  store i64 %work, ptr %table.work
  %ready = icmp ne ptr %kernel, null
  %go = and i1 %fits, %ready
  br i1 %go, label %compute, label %refuse
compute:
  call void %kernel(ptr %table, i64 0, i64 %batch)
  %yes = call ptr %from_long(i64 1)
  ret ptr %yes
refuse:
  %no = call ptr %from_long(i64 0)
  ret ptr %no
}}
"""


@functools.cache
def layout_is_known() -> bool:
    """Compare the assumed layout of array objects with what NumPy says of one."""
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
def _native_trampoline() -> jit.LoadedCode:
    text = _trampoline()
    return jit.load("fastcall", "fastcall", "call", lambda: text)


def _port_words(port: Port, flags: int) -> list[int]:
    lengths = [*port.shape, *(0,) * (_LENGTHS - len(port.shape))]
    return [C_CONTIGUOUS | ALIGNED | flags, 8 * port.size, len(port.shape), *lengths]


class _Context(np.ndarray):
    """Words that a C function reads as its `self`, with all that their addresses point into."""

    kept: Any


def c_function(
    address: int,
    words: Sequence[int],
    kept: Any = None,
    *,
    name: str = "call",
    text: str | None = None,
    keywords: bool = False,
) -> Callable[..., Any]:
    """Make a function of CPython (METH_FASTCALL) from machine code.

    Args:
        address: Where the code is.
        words: What the code finds in the array that is its `self`, `function.__self__`.
        kept: What lives as long as the function.
        name, text: Its name and docstring.
        keywords: Whether the code takes keywords.
    """
    texts = [None if t is None else ctypes.create_string_buffer(t.encode()) for t in (name, text)]
    places = [0 if t is None else ctypes.addressof(t) for t in texts]
    flags = METH_FASTCALL | (METH_KEYWORDS if keywords else 0)
    method = [places[0], address, flags, places[1]]  # a PyMethodDef
    context = np.array([*words, *method], dtype=np.int64).view(_Context)
    context.kept = kept, texts
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    made: Callable[..., Any] = make(context.ctypes.data + 8 * len(words), context, None)
    return made


def object_addresses() -> dict[str, int]:
    """Addresses of what code recognises arguments by and makes results with."""
    # of 64 bits everywhere: a `long` of Windows has 32
    from_long = ctypes.cast(ctypes.pythonapi.PyLong_FromLongLong, ctypes.c_void_p).value or 0
    known = {"none": None, "array": np.ndarray, "float64": np.dtype(np.float64), "whole": int}
    return {name: id(thing) for name, thing in known.items()} | {"from_long": from_long}


class FastCall:
    """Makes ``call``, a function of (inputs..., outputs...) that returns 1 if it ran, else 0.

    Calls hold the interpreter lock, so one work array per kernel is enough; batches are
    therefore limited to what takes a tenth of a millisecond.
    """

    def __init__(self, tape: Tape, batch_limit: int) -> None:
        """A function that refuses everything until it is given kernels."""
        self.call: Callable[..., int] = lambda *arrays: 0
        self._works: list[npt.NDArray[np.uint8]] = []
        every = (*tape.inputs, *tape.outputs)
        fits = len(every) <= _MAX_PORTS and all(len(port.shape) <= _LENGTHS for port in every)
        self._context: npt.NDArray[np.int64] | None = None
        if not fits or not layout_is_known():
            return
        ports = [_port_words(port, 0) for port in tape.inputs]
        ports += [_port_words(port, WRITEABLE) for port in tape.outputs]
        known = object_addresses()
        fixed = [0, 0, 0, 0, batch_limit, len(ports), len(tape.inputs)]
        fixed += [known["array"], known["float64"], known["from_long"]]
        words = [*fixed, *(word for port in ports for word in port)]
        self.call = c_function(_native_trampoline().address, words)
        self._context = self.call.__self__  # type: ignore[attr-defined]

    def use(self, kernel: int, work: npt.NDArray[np.uint8], *, batch: bool) -> None:
        """Serve single samples or batches with a kernel from now on."""
        if self._context is None:
            return
        self._works.append(work)
        self._context[_BATCH_WORK if batch else _WORK] = work.ctypes.data
        self._context[_BATCH_KERNEL if batch else _KERNEL] = kernel
