"""Functions of CasADi for numbers, without matrices of CasADi in between."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt
from casadi import SX

Array = npt.NDArray[np.float64]


class NumericFunction:
    """A function of vectors that gives matrices, evaluated again and again.

    Args:
        name: Its name.
        arguments: Symbols of its arguments.
        results: What it gives, by name.
    """

    def __init__(self, name: str, arguments: list[SX], results: Mapping[str, SX]) -> None:
        dense = [ca.densify(result) for result in results.values()]
        self._function = ca.Function(name, arguments, dense)
        self._buffer, self._evaluate = self._function.buffer()
        self._given = [np.zeros(symbols.numel()) for symbols in arguments]
        self._made = {n: np.zeros(x.shape[::-1]) for n, x in zip(results, dense, strict=True)}
        for k, array in enumerate(self._given):
            if array.size:
                self._buffer.set_arg(k, array.data)  # type: ignore[call-arg]
        for k, array in enumerate(self._made.values()):
            if array.size:
                self._buffer.set_res(k, array.data)  # type: ignore[call-arg]
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> dict[str, Array]:
        """Evaluate it at numbers."""
        with self._lock:
            for array, value in zip(self._given, arguments, strict=True):
                array[...] = value
            self._evaluate()
            return {name: array.T.copy() for name, array in self._made.items()}
