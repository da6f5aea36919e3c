"""C functions that users call: functions of a model, and steps that a loop in Python advances.

Everything that does not change from call to call is in a context. A direct call takes the first
arguments by position, has an array for every other one, makes the result or writes it to one array,
and hands whatever is not plain to a function of Python. A step call copies and limits inputs, takes
steps, and looks at two objects of Python.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.targets import jit
from axode.codegen.targets.cpu_rollout import BUDGET, BoundRollout
from axode.codegen.targets.fastcall import (
    ALIGNED,
    C_CONTIGUOUS,
    DATA,
    DESCR,
    DIMS,
    FLAGS,
    NDIM,
    TYPE,
    c_function,
    field,
    layout_is_known,
    object_addresses,
    word,
)

if TYPE_CHECKING:
    from axode.codegen.targets.cpu import CompiledFunction

Array = npt.NDArray[np.float64]
LAYOUT = C_CONTIGUOUS | ALIGNED
NOT_HANDLED, RUNNING, STOPPED = range(3)  # what a step call returns
MAX_PORTS, MAX_AXES = 32, 6  # of a function; others are called in the general way
_WORDS = (
    *("kernel", "work", "count", "n", "most", "array", "float64", "none", "empty", "shape", "out"),
    *("out.data", "out.end", "out.bytes", "fallback", "make", "hand.over", "keep"),
)
_STEP_WORDS = (
    *("kernel", "table", "budget", "runs", "status", "target", "bounds", "size", "ndim", "rows"),
    *("width", "limit", "none", "array", "float64", "whole", "from_long", "as_long"),
)
_POINTERS = {
    *("kernel", "empty", "shape", "out", "fallback", "make", "hand.over", "keep"),
    *("table", "budget", "status", "target", "bounds", "from_long", "as_long"),
}
# words of an input: its slot in the table, default, bytes of a sample, axes; then its lengths
_SLOT, _DEFAULT, _BYTES, _NDIM, _LENGTHS = range(5)
_PORT = _LENGTHS + MAX_AXES


def _load(words: Sequence[str]) -> str:
    """IR that loads all words of a context."""
    return "".join(
        word(name, k, "ptr" if name in _POINTERS else "i64") for k, name in enumerate(words)
    )


def _direct_code() -> str:
    """IR of a function with METH_FASTCALL and METH_KEYWORDS.

    After the fixed words the context has those of every input, in the order of the arguments.
    """
    return _fill_defaults() + _read_arguments() + _compute()


def _fill_defaults() -> str:
    """Read the context, and enter the arrays of arguments that are left out."""
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %given, ptr %names) nounwind {{
entry:
{field("context", "%self", DATA, "ptr")}{_load(_WORDS)}
  %ports = getelementptr i64, ptr %context, i64 {len(_WORDS)}
  %table = alloca [{2 * MAX_PORTS + 3} x i64]
  %plain = icmp eq ptr %names, null
  %few = icmp sle i64 %given, %most
  %usual = and i1 %plain, %few
  br i1 %usual, label %fill, label %other
fill:
  %f = phi i64 [ 0, %entry ], [ %f.next, %default ]
  %f.left = icmp slt i64 %f, %n
  br i1 %f.left, label %default, label %next
default:
  %f.word = mul i64 %f, {_PORT}
  %f.port = getelementptr i64, ptr %ports, i64 %f.word
{word("f.slot", _SLOT, base="%f.port")}{word("f.data", _DEFAULT, base="%f.port")}
  %f.address = getelementptr i64, ptr %table, i64 %f.slot
  store i64 %f.data, ptr %f.address
  %f.stride = getelementptr i64, ptr %f.address, i64 1
  store i64 0, ptr %f.stride
  %f.next = add i64 %f, 1
  br label %fill
"""


def _read_arguments() -> str:
    """Look at the arguments: is each None, or an array of doubles of the right shape?"""
    return f"""
next:
  %k = phi i64 [ 0, %fill ], [ %k.next, %object ], [ %k.next, %enter ]
  %done = icmp eq i64 %k, %given
  br i1 %done, label %result, label %object
object:
  %item.place = getelementptr ptr, ptr %args, i64 %k
  %item = load ptr, ptr %item.place
  %item.address = ptrtoint ptr %item to i64
  %k.next = add i64 %k, 1
  %is.none = icmp eq i64 %item.address, %none
  br i1 %is.none, label %next, label %kind
kind:
{field("type", "%item", TYPE, "i64")}
  %is.array = icmp eq i64 %type, %array
  br i1 %is.array, label %layout, label %other
layout:
{field("data", "%item", DATA, "i64")}{field("descr", "%item", DESCR, "i64")}
{field("flags", "%item", FLAGS, "i32")}{field("ndim", "%item", NDIM, "i32")}
{field("dims", "%item", DIMS, "ptr")}
  %port.word = mul i64 %k, {_PORT}
  %port = getelementptr i64, ptr %ports, i64 %port.word
{word("slot", _SLOT, base="%port")}{word("bytes", _BYTES, base="%port")}
{word("ndim.need", _NDIM, base="%port")}
  %is.float64 = icmp eq i64 %descr, %float64
  %have = and i64 %flags, {LAYOUT}
  %is.plain = icmp eq i64 %have, {LAYOUT}
  %is.ndim = icmp eq i64 %ndim, %ndim.need
  %good.0 = and i1 %is.float64, %is.plain
  %good.1 = and i1 %good.0, %is.ndim
  br i1 %good.1, label %lengths, label %other
lengths:
  %d = phi i64 [ 0, %layout ], [ %d.next, %length ]
  %all = icmp eq i64 %d, %ndim
  br i1 %all, label %accept, label %length
length:
{word("dim", "%d", base="%dims")}
  %d.word = add i64 %d, {_LENGTHS}
{word("dim.need", "%d.word", base="%port")}
  %d.next = add i64 %d, 1
  %same = icmp eq i64 %dim, %dim.need
  br i1 %same, label %lengths, label %other
accept:
  %size = mul i64 %bytes, %count
  %end = add i64 %data, %size
  %before = icmp ule i64 %end, %out.data
  %behind = icmp uge i64 %data, %out.end
  %apart = or i1 %before, %behind
  br i1 %apart, label %enter, label %other
enter:
  %address = getelementptr i64, ptr %table, i64 %slot
  store i64 %data, ptr %address
  %stride = getelementptr i64, ptr %address, i64 1
  store i64 %bytes, ptr %stride
  br label %next
"""


def _compute() -> str:
    """Make the result, or take the one array there is, and compute; hand over all else."""
    return f"""
result:
  %last = shl i64 %n, 1
  %out.slot = getelementptr i64, ptr %table, i64 %last
  %bytes.slot = getelementptr i64, ptr %out.slot, i64 1
  store i64 %out.bytes, ptr %bytes.slot
  %work.slot = getelementptr i64, ptr %out.slot, i64 2
  store i64 %work, ptr %work.slot
  %is.new = icmp eq ptr %out, null
  br i1 %is.new, label %new, label %old
new:
  %made = call ptr %make(ptr %empty, ptr %shape)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %error, label %fresh
fresh:
{field("made.data", "%made", DATA, "i64")}
  br label %run
old:
  call void %keep(ptr %out)
  br label %run
run:
  %answer = phi ptr [ %made, %fresh ], [ %out, %old ]
  %answer.data = phi i64 [ %made.data, %fresh ], [ %out.data, %old ]
  store i64 %answer.data, ptr %out.slot
  call void %kernel(ptr %table, i64 0, i64 %count)
  ret ptr %answer
error:
  ret ptr null
other:
  %otherwise = call ptr %hand.over(ptr %fallback, ptr %args, i64 %given, ptr %names)
  ret ptr %otherwise
}}
"""


def direct_call(
    function: CompiledFunction,
    arguments: Sequence[str],
    defaults: Mapping[str, Array],
    fallback: Callable[..., Any],
    *,
    batch: tuple[int, ...] = (),
    out: Array | None = None,
    text: str | None = None,
) -> Callable[..., Any]:
    """Make a C function that calls compiled code with arrays, and something else with the rest.

    It holds the interpreter lock. Where there is no such function, `fallback` is returned.

    Args:
        function: The compiled function; it has one result.
        arguments: Names of its inputs that are given by position, up to the first that it lacks.
        defaults: Arrays of single samples for inputs that are left out.
        fallback: Called with what was given unless that is None or plain arrays of one shape each.
        batch: Shape of the batch of all inputs that are given.
        out: Array for all results; a new one for each unless given.
        text: Docstring of the function.
    """
    tape = function.tape
    known = {port.name: k for k, port in enumerate(tape.inputs)}
    given = list(takewhile(known.__contains__, arguments))
    ports = [*given, *(name for name in known if name not in given)]
    (result,) = tape.outputs
    axes = len(batch) + max(len(port.shape) for port in (*tape.inputs, result))
    fits = len(ports) <= MAX_PORTS and axes <= MAX_AXES and known.keys() <= defaults.keys()
    shape = (*batch, *result.shape)
    if not fits or not shape or 0 in batch or not layout_is_known():
        return fallback
    code, work_address, work = function.machine_code(1 if math.prod(batch) == 1 else None)
    python, addresses = ctypes.pythonapi, object_addresses()
    words = {
        "kernel": code.address,
        "work": work_address,
        "count": math.prod(batch),
        "n": len(ports),
        "most": len(given),
        **addresses,
        "empty": id(np.empty),
        "shape": id(shape),
        "out": 0 if out is None else id(out),
        "out.data": 0 if out is None else out.ctypes.data,
        "out.end": 0 if out is None else out.ctypes.data + out.nbytes,
        "out.bytes": 8 * result.size,
        "fallback": id(fallback),
        "make": _place(python.PyObject_CallOneArg),
        "hand.over": _place(python.PyObject_Vectorcall),
        "keep": _place(python.Py_IncRef),
    }
    rows: list[int] = []
    for name in ports:
        port = tape.inputs[known[name]]
        lengths = (*batch, *port.shape)
        padding = (0,) * (MAX_AXES - len(lengths))
        rows += [2 * known[name], defaults[name].ctypes.data, 8 * port.size, len(lengths)]
        rows += [*lengths, *padding]
    kept = (code, work, shape, out, fallback, [defaults[name] for name in ports])
    fixed = [words[name] for name in _WORDS]
    name = getattr(fallback, "__name__", tape.name)
    return c_function(
        _native("direct_call").address, [*fixed, *rows], kept, name=name, text=text, keywords=True
    )


def _place(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _step_code() -> str:
    """IR of ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count)``.

    The arguments are an array of inputs or None, and a number of steps.
    """
    return _read_step_arguments() + _take_steps()


def _read_step_arguments() -> str:
    """Read the context, the number of steps, and which array to copy."""
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %given) nounwind {{
entry:
{field("context", "%self", DATA, "ptr")}{_load(_STEP_WORDS)}
  %overflow = alloca i32
  %two = icmp eq i64 %given, 2
  br i1 %two, label %counted, label %refuse
counted:
  %steps.place = getelementptr ptr, ptr %args, i64 1
  %steps.item = load ptr, ptr %steps.place
{field("steps.type", "%steps.item", TYPE, "i64")}
  %is.whole = icmp eq i64 %steps.type, %whole
  br i1 %is.whole, label %number, label %refuse
number:
  %steps = call i64 %as_long(ptr %steps.item, ptr %overflow)
  %some = icmp sge i64 %steps, 1
  %few = icmp sle i64 %steps, %limit
  %sound = and i1 %some, %few
  br i1 %sound, label %input, label %refuse
input:
  %u = load ptr, ptr %args
  %u.address = ptrtoint ptr %u to i64
  %is.none = icmp eq i64 %u.address, %none
  br i1 %is.none, label %copy, label %kind
kind:
{field("u.type", "%u", TYPE, "i64")}
  %is.array = icmp eq i64 %u.type, %array
  br i1 %is.array, label %layout, label %refuse
layout:
{field("u.data", "%u", DATA, "ptr")}{field("u.descr", "%u", DESCR, "i64")}
{field("u.flags", "%u", FLAGS, "i32")}{field("u.ndim", "%u", NDIM, "i32")}
{field("u.dims", "%u", DIMS, "ptr")}
  %is.float64 = icmp eq i64 %u.descr, %float64
  %u.have = and i64 %u.flags, {LAYOUT}
  %is.plain = icmp eq i64 %u.have, {LAYOUT}
  %is.ndim = icmp eq i64 %u.ndim, %ndim
  %good.0 = and i1 %is.float64, %is.plain
  %good.1 = and i1 %good.0, %is.ndim
  br i1 %good.1, label %last, label %refuse
last:
  %last.axis = sub i64 %ndim, 1
{word("u.width", "%last.axis", base="%u.dims")}
  %is.width = icmp eq i64 %u.width, %width
  %single = icmp eq i64 %ndim, 1
  br i1 %is.width, label %first, label %refuse
first:
  br i1 %single, label %copy, label %row
row:
{word("u.rows", 0, base="%u.dims")}
  %is.rows = icmp eq i64 %u.rows, %rows
  br i1 %is.rows, label %copy, label %refuse
"""


def _take_steps() -> str:
    """Copy and limit the inputs, take the steps and look at the statuses of the runs."""
    return f"""
copy:
  %source = phi ptr [ %target, %input ], [ %u.data, %first ], [ %u.data, %row ]
  br label %more
more:
  %e = phi i64 [ 0, %copy ], [ %e.next, %limited ]
  %left = icmp slt i64 %e, %size
  br i1 %left, label %limited, label %advance
limited:
  %x.place = getelementptr double, ptr %source, i64 %e
  %x = load double, ptr %x.place
  %limit.there = getelementptr double, ptr %bounds, i64 %e
  %bound = load double, ptr %limit.there
  %under = fneg double %bound
  %above = fcmp ogt double %x, %bound
  %high = select i1 %above, double %bound, double %x
  %below = fcmp olt double %high, %under
  %inside = select i1 %below, double %under, double %high
  %y.place = getelementptr double, ptr %target, i64 %e
  store double %inside, ptr %y.place
  %e.next = add i64 %e, 1
  br label %more
advance:
  store i64 %steps, ptr %budget
  call void %kernel(ptr %table, i64 0, i64 %runs)
  br label %look
look:
  %r = phi i64 [ 0, %advance ], [ %r.next, %examine ]
  %r.left = icmp slt i64 %r, %runs
  br i1 %r.left, label %examine, label %done
examine:
  %code.place = getelementptr double, ptr %status, i64 %r
  %code = load double, ptr %code.place
  %runs.on = fcmp oeq double %code, 0.0
  %r.next = add i64 %r, 1
  br i1 %runs.on, label %look, label %done
done:
  %answer = phi i64 [ {RUNNING}, %look ], [ {STOPPED}, %examine ]
  %yes = call ptr %from_long(i64 %answer)
  ret ptr %yes
refuse:
  %no = call ptr %from_long(i64 {NOT_HANDLED})
  ret ptr %no
}}
"""


def step_call(
    bound: BoundRollout, u: Array, bounds: Array, ndim: int, status: Array, limit: int
) -> Callable[[Any, int], int]:
    """Make a function of inputs, or None, and a number of steps that advances all runs.

    It returns `NOT_HANDLED` for other objects, having done nothing, else `RUNNING` while all runs
    go on or `STOPPED`. It holds the interpreter lock.

    Args:
        bound: The steps on their arrays.
        u: Array of the inputs, (runs, size) or (size,), which the steps read.
        bounds: Largest absolute value of each of its numbers, of the same shape.
        ndim: Axes that arrays of inputs have; -1 if only None is taken.
        status: Statuses of the runs, (runs, 1).
        limit: Most steps of one call.
    """
    if not layout_is_known():
        return lambda given, steps: NOT_HANDLED
    address, table, work = bound.own_table()
    known = {
        "kernel": bound.address,
        "table": address,
        "budget": table[BUDGET:].ctypes.data,
        "runs": bound.runs,
        "status": status.ctypes.data,
        "target": u.ctypes.data,
        "bounds": bounds.ctypes.data,
        "size": u.size,
        "ndim": ndim,
        "rows": u.size // max(u.shape[-1], 1),
        "width": u.shape[-1],
        "limit": limit,
        **object_addresses(),
        "as_long": _place(ctypes.pythonapi.PyLong_AsLongLongAndOverflow),
    }
    kept = (bound, table, work, u, bounds, status)
    return c_function(_native("step_call").address, [known[name] for name in _STEP_WORDS], kept)


@functools.cache
def _native(name: str) -> jit.LoadedCode:
    text = _direct_code() if name == "direct_call" else _step_code()
    return jit.load(name, name, "call", lambda: text)
