"""Costs as functions of tensors of PyTorch and arrays of JAX, which differentiate through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.wrappers.jax_function import import_jax
from axode.model.wrappers.torch_function import import_torch
from axode.problems.gradients.gradient import gradient
from axode.problems.gradients.variables import read_variables

if TYPE_CHECKING:
    from axode.problems.gradients.cost import Cost

Array = npt.NDArray[np.float64]


def _evaluate(cost: Cost, names: Sequence[str], arrays: Sequence[Any]) -> list[Array]:
    """Cost of every run, then its derivatives by the variables."""
    values = {name: np.asarray(x, dtype=float) for name, x in zip(names, arrays, strict=True)}
    found = gradient(cost, values, progress=False)
    return [found.value, *(found[name] for name in names)]


def _pull(weight: Array, derivative: Array, shape: tuple[int, ...]) -> Array:
    """Gradient by an argument of some shape, from the weights of the costs of all runs."""
    full = weight.reshape(weight.shape + (1,) * (derivative.ndim - weight.ndim)) * derivative
    extra = full.ndim - len(shape)
    full = full.sum(axis=tuple(range(extra)))
    axes = tuple(k for k, size in enumerate(shape) if size == 1 and full.shape[k] != 1)
    return np.asarray(full.sum(axis=axes, keepdims=True)).reshape(shape)


class TorchCost:
    """A cost as a function of tensors, in the order of its names; `backward` sees through it.

    Args:
        cost: The cost.
        names: What it is a function of, see `Cost.names`.
    """

    def __init__(self, cost: Cost, names: Sequence[str]) -> None:
        torch = import_torch()
        self.cost, self.names = cost, tuple(read_variables(cost.variables, names))

        def forward(ctx: Any, *tensors: Any) -> Any:
            arrays = [x.detach().cpu().numpy() for x in tensors]
            value, *derivatives = _evaluate(cost, self.names, arrays)
            ctx.derivatives, ctx.tensors = derivatives, tensors
            return tensors[0].new_tensor(value) if tensors else torch.as_tensor(value)

        def backward(ctx: Any, weight: Any) -> Any:
            given = weight.detach().cpu().numpy()
            pairs = zip(ctx.derivatives, ctx.tensors, strict=True)
            return tuple(x.new_tensor(_pull(given, d, tuple(x.shape))) for d, x in pairs)

        members: dict[str, Any] = {
            "forward": staticmethod(forward),
            "backward": staticmethod(torch.autograd.function.once_differentiable(backward)),
        }
        self._function = type("Cost", (torch.autograd.Function,), members)

    def __repr__(self) -> str:
        return f"TorchCost({', '.join(self.names)}) of {self.cost!r}"

    def __call__(self, *tensors: Any) -> Any:
        """Evaluate the cost of every run."""
        torch = import_torch()
        made = [
            x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=torch.float64)
            for x in tensors
        ]
        return self._function.apply(*made)  # type: ignore[attr-defined]


class JaxCost:
    """A cost as a function of arrays of JAX, in the order of its names; `grad` sees through it.

    Args:
        cost: The cost.
        names: What it is a function of, see `Cost.names`.
    """

    def __init__(self, cost: Cost, names: Sequence[str]) -> None:
        self._jax = jax = import_jax()
        self.cost, self.names = cost, tuple(read_variables(cost.variables, names))
        self._shapes: dict[tuple[tuple[int, ...], ...], list[tuple[int, ...]]] = {}

        def both(*arrays: Any) -> Any:
            dtype = jax.numpy.result_type(float)
            shapes = self._find_shapes(tuple(array.shape for array in arrays))
            made = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]

            def call(*given: Any) -> Any:
                return [np.asarray(x, dtype=dtype) for x in _evaluate(cost, self.names, given)]

            return jax.pure_callback(call, made, *arrays, vmap_method="sequential")

        def forward(*arrays: Any) -> Any:
            value, *derivatives = both(*arrays)
            return value, (derivatives, arrays)

        def backward(kept: Any, weight: Any) -> Any:
            derivatives, arrays = kept
            return tuple(self._pull(weight, d, x) for d, x in zip(derivatives, arrays, strict=True))

        self._function = jax.custom_vjp(lambda *arrays: both(*arrays)[0])
        self._function.defvjp(forward, backward)

    def __repr__(self) -> str:
        return f"JaxCost({', '.join(self.names)}) of {self.cost!r}"

    def __call__(self, *arrays: Any) -> Any:
        """Evaluate the cost of every run."""
        return self._function(*(self._jax.numpy.asarray(x, dtype=float) for x in arrays))

    def _find_shapes(self, given: tuple[tuple[int, ...], ...]) -> list[tuple[int, ...]]:
        """Shapes of the costs and of their derivatives, found by evaluating them once."""
        if given not in self._shapes:
            named = zip(self.names, given, strict=True)
            present = [np.broadcast_to(self.cost.present(name), shape) for name, shape in named]
            made = _evaluate(self.cost, self.names, present)
            self._shapes[given] = [array.shape for array in made]
        return self._shapes[given]

    def _pull(self, weight: Any, derivative: Any, array: Any) -> Any:
        jnp = self._jax.numpy
        full = weight.reshape(weight.shape + (1,) * (derivative.ndim - weight.ndim)) * derivative
        full = full.sum(axis=tuple(range(full.ndim - array.ndim)))
        axes = tuple(k for k, n in enumerate(array.shape) if n == 1 and full.shape[k] != 1)
        return jnp.asarray(full.sum(axis=axes, keepdims=True)).reshape(array.shape)
