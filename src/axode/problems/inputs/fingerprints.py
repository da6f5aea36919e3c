"""Fingerprints of arguments: equal where a law would be traced, and a start assembled, alike.

A function is known by its code and by all that the code can read: defaults, cells, global names and
what functions it calls read in turn. What may change without being seen has no fingerprint.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from axode.problems.inputs.inputs import Callback
from axode.problems.inputs.laws import Law
from axode.results.columns import Event

MAX_SIZE = 256  # of an array: copies of more numbers cost what is saved
PURE_LIBRARIES = ("numpy", "casadi", "math", "operator")  # functions of these give what they gave
READERS = (  # but these
    *("fromfile", "fromregex", "genfromtxt", "load", "loadtxt", "memmap", "open_memmap"),
)
PURE = (
    *("abs", "all", "any", "bool", "dict", "enumerate", "filter", "float", "int", "isinstance"),
    *("len", "list", "map", "max", "min", "pow", "range", "reversed", "round", "set", "sorted"),
    *("str", "sum", "tuple", "zip"),
)
_PURE = frozenset(id(getattr(builtins, name)) for name in PURE)
_DISPATCHER = type(np.clip)  # of functions of NumPy
_IMPORT = opmap["IMPORT_NAME"]


T = TypeVar("T")
MAX_KEPT = 16  # things made of arguments that are kept of a model, those that were used last


def recall(memory: dict[Any, Any], given: Any, make: Callable[[], T]) -> T:
    """Return what was made of equal arguments before, or make it; see `fingerprint`."""
    try:
        key = _print(given, {})
    except NoFingerprint:
        return make()
    made: T | None = memory.pop(key, None)
    if made is None:
        made = make()
    memory[key] = made  # the last one
    for oldest in list(memory)[:-MAX_KEPT]:
        memory.pop(oldest, None)
    return made


class NoFingerprint(Exception):
    """Raised for what may change without being seen."""


def fingerprint(value: Any) -> Hashable:
    """Return what is equal for values that mean the same in every respect.

    Raises:
        NoFingerprint: for objects of other kinds than those that are listed here.
    """
    return _print(value, {})


def _print(value: Any, seen: dict[Hashable, int]) -> Hashable:
    kind = type(value)
    if value is None or kind in (str, bool, int):
        return kind, value
    if kind is float:
        return kind, value, math.copysign(1.0, value)
    if kind in (tuple, list):
        return kind, tuple(_print(item, seen) for item in value)
    if kind is dict:
        return kind, tuple((_print(k, seen), _print(v, seen)) for k, v in value.items())
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in "fiub":
        if value.size > MAX_SIZE:
            raise NoFingerprint
        return kind, value.shape, value.dtype.str, value.tobytes()
    if kind is Law:
        return kind, _print(value.function, seen), _print(value.gains, seen), value.key
    if kind is Event:
        parts = (value.name, value.function, value.stop, value.direction)
        return kind, _print(parts, seen)
    if kind is Callback and type(value.function) in (FunctionType, MethodType):
        return kind, value.function  # which is called, not read
    if id(value) in _PURE or _is_of_library(value):
        return kind, value
    if kind is FunctionType:
        return _print_function(value, seen)
    raise NoFingerprint


def _is_of_library(value: Any) -> bool:
    """Return whether something is a function or class of a library that keeps no state."""
    if isinstance(value, np.ufunc):  # others are made of functions of Python
        return getattr(np, value.__name__, None) is value
    home = getattr(value, "__module__", None)
    called = isinstance(value, FunctionType | BuiltinFunctionType | type | _DISPATCHER)
    if not called or not isinstance(home, str) or home.startswith("numpy.random"):
        return False
    owner = getattr(value, "__self__", None)
    plain = owner is None or isinstance(owner, ModuleType)
    plain = plain and getattr(value, "__name__", "") not in READERS
    return plain and home.partition(".")[0] in PURE_LIBRARIES


def _print_function(function: FunctionType, seen: dict[Hashable, int]) -> Hashable:
    if id(function) in seen:  # it calls itself
        return "again", seen[id(function)]
    seen[id(function)] = len(seen)
    code, known = function.__code__, function.__globals__
    names = tuple(dict.fromkeys(_names(code)))
    read = [(n, known[n] if n in known else vars(builtins)[n]) for n in names if _is_read(n, known)]
    try:
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:  # one that is still empty
        raise NoFingerprint from None
    return (
        code,
        _print(function.__defaults__, seen),
        _print(function.__kwdefaults__, seen),
        _print(function.__dict__, seen),
        tuple(_print_read(cell, names, seen) for cell in cells),
        tuple((name, _print_read(value, names, seen)) for name, value in read),
    )


def _is_read(name: str, known: Mapping[str, Any]) -> bool:
    """Return whether a name may be a global one; others are of attributes."""
    return name in known or name in vars(builtins)


def _print_read(value: Any, names: tuple[str, ...], seen: dict[Hashable, int]) -> Hashable:
    """Fingerprint of what code reads, of modules only what it may read there."""
    if not isinstance(value, ModuleType):
        return _print(value, seen)
    key = id(value), names  # other code reads other parts of it
    if key in seen:
        return "again", seen[key]
    seen[key] = len(seen)
    parts = [(name, getattr(value, name)) for name in names if hasattr(value, name)]
    return value, tuple((name, _print_read(part, names, seen)) for name, part in parts)


def _names(code: CodeType) -> Iterator[str]:
    """All names that code and the code inside it read, of global things and of attributes.

    Raises:
        NoFingerprint: for code that imports; what it reads there has no name that is known here.
    """
    if _IMPORT in code.co_code[::2]:
        raise NoFingerprint
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
