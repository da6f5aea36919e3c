"""CasADi's and NumPy's evaluators as a target: no compilation, first results at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape
    from axode.symbolic.functions import FunctionGraph

Array = npt.NDArray[np.float64]


class InterpretedTape:
    """A tape evaluated by NumPy, with leading batch axes."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def __call__(
        self, *arrays: npt.ArrayLike, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Evaluate the only result of the tape; `threads` is for other targets."""
        (result,) = self._tape.evaluate(*arrays)
        if out is None:
            return result
        out[...] = result
        return out


class InterpretedFunction:
    """One function on CasADi's virtual machine, with leading batch axes."""

    def __init__(self, graph: FunctionGraph) -> None:
        self._graph = graph

    def __call__(
        self, *arrays: npt.ArrayLike, out: Array | None = None, threads: int | None = None
    ) -> Array:
        """Evaluate at arrays whose last axes are the arguments; `threads` is for other targets."""
        graph = self._graph
        vectors = [
            self._check(name, size, array)
            for name, size, array in zip(graph.arguments, graph.sizes, arrays, strict=True)
        ]
        shapes = [v.shape[:-1] for v in vectors]
        try:
            batch = np.broadcast_shapes(*shapes)
        except ValueError:
            listed = ", ".join(f"'{n}' {s}" for n, s in zip(graph.arguments, shapes, strict=True))
            raise InvalidArgument(
                f"{graph.name}: the batch axes do not fit together: {listed}."
            ) from None
        count, size = math.prod(batch), math.prod(graph.shape)
        result = np.zeros((count, size))
        if result.size:
            # one column per sample: CasADi maps over columns
            columns = [
                np.broadcast_to(v, batch + v.shape[-1:]).reshape(count, v.shape[-1]).T
                for v in vectors
            ]
            result = np.array(graph.function(*columns)).reshape(size, count).T
        shaped = np.ascontiguousarray(result).reshape(batch + graph.shape)
        if out is None:
            return shaped
        if out.shape != shaped.shape or out.dtype != np.float64 or not out.flags.behaved:
            raise InvalidArgument(
                f"{graph.name}: out must be a writable float64 array of shape {shaped.shape}."
            )
        out[...] = shaped
        return out

    @staticmethod
    def _check(name: str, size: int, value: npt.ArrayLike) -> Array:
        array = np.asarray(value, dtype=float)
        if array.ndim == 0 or array.shape[-1] != size:
            raise InvalidArgument(
                f"{name} has shape {array.shape}; expected {size} numbers along the last axis"
            )
        return array
