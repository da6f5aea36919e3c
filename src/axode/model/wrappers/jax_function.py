"""Functions of models on arrays of JAX, which differentiates through them twice."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from axode.errors import NotApplicable
from axode.model.wrappers.array_function import ArrayFunction, Names


def import_jax() -> Any:
    """Import JAX.

    Raises:
        NotApplicable: if it is not installed.
    """
    try:
        import jax
    except ImportError:
        raise NotApplicable("arrays of JAX need the package: pip install 'axode[jax]'") from None
    return jax


class JaxFunction:
    """A function of a model on arrays of JAX.

    Call it with the function's arguments: arrays with any leading batch axes, values by name, or
    None for the default; `t` and `parameters` are keywords. It works under `jit`, `vmap`, `grad`
    and `jacrev`, once or twice; `jacfwd` is refused by JAX. Compiled programs of JAX call back to
    the model's functions, on the CPU.
    """

    def __init__(self, source: ArrayFunction) -> None:
        self._jax = import_jax()
        self.source = source

    def __repr__(self) -> str:
        return f"JaxFunction {self.source!r}"

    def __call__(self, *arguments: Any, t: Any = None, parameters: Any = None) -> Any:
        """Evaluate the function.

        Args:
            arguments: Those of the function, in its own order; the last ones may be left out.
            t: Time, where it is explicit.
            parameters: Free parameters, in order or by name.
        """
        jnp, source = self._jax.numpy, self.source

        def stack(values: list[Any]) -> Any:
            return jnp.stack(jnp.broadcast_arrays(*values), axis=-1)

        given = source.ordered(arguments, t, parameters)
        arrays = [
            source.vector(name, value, jnp.asarray, stack)
            for name, value in zip(source.arguments, given, strict=True)
        ]
        dtype = jnp.result_type(0.0, *arrays)
        result = self._value(*(array.astype(dtype) for array in arrays))
        if source.name == "contact_forces":
            for wheel, component in source.model.facts.unknown_forces:
                result = result.at[..., wheel, component].set(np.nan)
        return result

    @cached_property
    def _value(self) -> Any:
        """The function with its gradient, as `jax.custom_vjp`."""
        source, of = self.source, self.source.arguments

        def value(*arrays: Any) -> Any:
            return self._call("value", (), arrays)

        def forward(*arrays: Any) -> Any:
            return function(*arrays), arrays

        def backward(arrays: Any, weights: Any) -> Any:
            packed = self._gradient(*arrays, source.flat(weights))
            return tuple(_summed(self._split(packed, of), arrays))

        function = self._jax.custom_vjp(value)
        function.defvjp(forward, backward)
        return function

    @cached_property
    def _gradient(self) -> Any:
        """Gradients by all arguments with their own derivatives, as `jax.custom_vjp`."""
        source, of = self.source, self.source.arguments

        def gradient(*arrays: Any) -> Any:
            return self._call("vjp", (of,), arrays)

        def forward(*arrays: Any) -> Any:
            return function(*arrays), arrays

        def backward(arrays: Any, moves: Any) -> Any:
            packed = self._call("second", (of, of), [*arrays, *self._split(moves, of)])
            parts = self._split(packed[..., source.size :], of)
            return tuple(_summed([*parts, packed[..., : source.size]], arrays))

        function = self._jax.custom_vjp(gradient)
        function.defvjp(forward, backward)
        return function

    def _call(self, kind: str, names: tuple[Names, ...], arrays: Sequence[Any]) -> Any:
        """Call back to the model's function; `vmap` adds an axis in front of all others."""
        jax, source = self._jax, self.source
        axes = max(array.ndim for array in arrays)
        alike = [array.reshape((1,) * (axes - array.ndim) + array.shape) for array in arrays]
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in alike))
        dtype = alike[0].dtype

        def evaluate(*given: Any) -> Any:
            found = source.call(kind, names, [np.asarray(x, dtype=float) for x in given])
            return np.asarray(found, dtype=dtype)

        shape = jax.ShapeDtypeStruct((*batch, *source.result_shape(kind, names)), dtype)
        return jax.pure_callback(evaluate, shape, *alike, vmap_method="expand_dims")

    def _split(self, packed: Any, of: Names) -> list[Any]:
        ends = np.cumsum(self.source.widths(of))[:-1]
        return [*self._jax.numpy.split(packed, ends, axis=-1)]


def _summed(parts: Sequence[Any], arrays: Sequence[Any]) -> list[Any]:
    """Sums of gradients over the samples that share an argument."""
    made = []
    for part, array in zip(parts, arrays, strict=True):
        missing = part.ndim - array.ndim
        shared = tuple(
            axis
            for axis in range(part.ndim)
            if axis < missing or (array.shape[axis - missing] == 1 and part.shape[axis] != 1)
        )
        made.append(part.sum(axis=shared).reshape(array.shape))
    return made
