"""Advances compiled steps from a loop in Python by a C function, which copies and limits inputs.

What `fastcall` does for functions, this does for programs: everything that does not change from
call to call is in a context, and a call looks at two objects of Python.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

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

Array = npt.NDArray[np.float64]
NOT_HANDLED, RUNNING, STOPPED = range(3)  # what a call returns
LAYOUT = C_CONTIGUOUS | ALIGNED
_WORDS = (
    *("kernel", "table", "budget", "runs", "status", "target", "bounds", "size", "ndim", "rows"),
    *("width", "limit", "none", "array", "float64", "whole", "from_long", "as_long"),
)
_POINTERS = ("kernel", "table", "budget", "status", "target", "bounds", "from_long", "as_long")


def _trampoline() -> str:
    """IR of ``PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t count)``.

    The arguments are an array of inputs or None, and a number of steps.
    """
    return _checks() + _computation()


def _checks() -> str:
    """Read the context, the number of steps, and which array to copy."""
    words = "".join(
        word(name, k, "ptr" if name in _POINTERS else "i64") for k, name in enumerate(_WORDS)
    )
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %given) nounwind {{
entry:
{field("context", "%self", DATA, "ptr")}{words}
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


def _computation() -> str:
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


@functools.cache
def _native() -> jit.LoadedCode:
    text = _trampoline()
    return jit.load("step_call", "step_call", "call", lambda: text)


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
    python = ctypes.pythonapi
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
        "as_long": ctypes.cast(python.PyLong_AsLongAndOverflow, ctypes.c_void_p).value,
    }
    kept = (bound, table, work, u, bounds, status)
    return c_function(_native().address, [known[name] or 0 for name in _WORDS], kept)
