"""Arrays on a GPU, by address, shape and strides, whichever library they are of."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from axode.errors import InvalidArgument, NotApplicable, UnknownName

LIBRARIES = ("cupy", "torch", "jax")


class ArrayView(NamedTuple):
    """What a kernel must know of an array.

    Attributes:
        address: Place of its first element.
        shape: Length of every axis.
        strides: Bytes between elements along every axis.
        dtype: Type of its elements, as NumPy names it.
        owner: What keeps the memory alive.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    owner: Any


def is_on_device(value: Any) -> bool:
    """Return whether a value is an array on a GPU."""
    kind = type(value)
    if kind is np.ndarray:
        return False
    if kind.__module__ == "cupy":
        return True
    if kind.__module__ == "torch":  # whose interface takes longer to make
        return bool(value.is_cuda)
    return hasattr(value, "__cuda_array_interface__")


def view(cp: Any, name: str, value: Any) -> ArrayView:
    """View an array on the GPU, without a copy.

    Args:
        cp: The module cupy.
        name: Name of the array, for errors.
        value: Array of CuPy, PyTorch or JAX.
    """
    if is_tensor(value) and not value.requires_grad:
        size = value.element_size()
        strides = tuple(size * step for step in value.stride())
        dtype = _dtype_of_tensor(value.dtype)
        return ArrayView(value.data_ptr(), tuple(value.shape), strides, dtype, value)
    array = value if isinstance(value, cp.ndarray) else _as_cupy(cp, name, value)
    return ArrayView(int(array.data.ptr), array.shape, array.strides, array.dtype, array)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of PyTorch on a GPU."""
    return type(value).__module__ == "torch" and bool(value.is_cuda)


@cache
def _dtype_of_tensor(dtype: Any) -> Any:
    return np.dtype(str(dtype).rpartition(".")[2])


def _as_cupy(cp: Any, name: str, value: Any) -> Any:
    if hasattr(value, "__cuda_array_interface__"):
        return cp.asarray(value)
    if hasattr(value, "__dlpack__"):
        return cp.from_dlpack(value)
    raise InvalidArgument(f"'{name}' must be an array on the GPU (CuPy, PyTorch, JAX)")


def joined_stride(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Bytes between successive elements of some axes taken as one; None if they differ."""
    axes = [(n, step) for n, step in zip(shape, strides, strict=True) if n != 1]
    if any(outer != n * inner for (_, outer), (n, inner) in pairwise(axes)):
        return None
    return int(axes[-1][1]) if axes else 0


def signature(cp: Any, values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Collect all that a launch on some arrays depends on; None if that takes too long.

    For arrays of CuPy and PyTorch it is address and layout, for vectors of NumPy their numbers.
    """
    found: list[Any] = []
    for a in values:
        kind = type(a)
        if kind is cp.ndarray:
            found += (a.data.ptr, a.shape, a.strides, a.dtype)
        elif kind is np.ndarray and a.ndim == 1:
            found += (a.dtype, a.tobytes())
        elif kind.__module__ == "torch" and a.is_cuda and not a.requires_grad:
            found += (a.data_ptr(), a.shape, a.stride(), a.dtype)
        else:
            return None
    return tuple(found)


def current_stream(cp: Any, arrays: Sequence[Any]) -> int:
    """Address of the caller's stream: PyTorch's current one for its tensors, else CuPy's."""
    if any(is_tensor(a) for a in arrays):
        return int(sys.modules["torch"].cuda.current_stream().cuda_stream)
    return int(cp.cuda.get_current_stream().ptr)


def as_array(array: Any, library: str) -> Any:
    """Return an array on the GPU as one of another library, without a copy, through DLPack.

    Args:
        array: Array of CuPy or of any library with DLPack.
        library: "cupy", "torch" or "jax".

    Raises:
        UnknownName: for other libraries.
        NotApplicable: if the library is not installed.
    """
    check_library(library)
    modules = {"torch": "torch.utils.dlpack", "jax": "jax.dlpack", "cupy": "cupy"}
    try:
        module: Any = import_module(modules[library])
    except ImportError:
        raise NotApplicable(f"asarray='{library}' needs the package {library}") from None
    return module.from_dlpack(array)


def check_library(library: Any) -> None:
    """Check the name of a library of arrays."""
    if not isinstance(library, str) or library not in LIBRARIES:
        raise UnknownName("asarray", "library", library, LIBRARIES)
