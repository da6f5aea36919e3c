"""Costs as functions of tensors of PyTorch and arrays of JAX, which differentiate through them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.wrappers.jax_function import import_jax
from axode.model.wrappers.torch_function import common_type, import_torch
from axode.problems.gradients.gradient import gradient
from axode.problems.gradients.variables import read_variables

if TYPE_CHECKING:
    from axode.problems.gradients.cost import Cost

Array = npt.NDArray[np.float64]


def _named(names: Sequence[str], arrays: Sequence[Any]) -> dict[str, Array]:
    return {name: np.asarray(x, dtype=float) for name, x in zip(names, arrays, strict=True)}


def _evaluate(cost: Cost, names: Sequence[str], arrays: Sequence[Any]) -> list[Array]:
    """Cost of every run, then its derivatives by the variables."""
    found = gradient(cost, _named(names, arrays), progress=False)
    return [np.asarray(x) for x in (found.value, *(found[name] for name in names))]


class TorchCost:
    """A cost as a function of tensors, in the order of its names; `backward` sees through it.

    Args:
        cost: The cost.
        names: What it is a function of, see `Cost.names`.
    """

    def __init__(self, cost: Cost, names: Sequence[str]) -> None:
        import_torch()
        self.cost, self.names = cost, tuple(read_variables(cost.variables, names))

    def __repr__(self) -> str:
        return f"TorchCost({', '.join(self.names)}) of {self.cost!r}"

    def __call__(self, *values: Any) -> Any:
        """Evaluate the cost of every run; its derivatives too where a tensor asks for them."""
        torch = import_torch()
        like = common_type(torch, values)
        tensors = [torch.as_tensor(value, **like) for value in values]
        if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
            return _torch_cost().apply(self, *tensors)[0]
        value = self.cost.value(_named(self.names, _arrays(tensors)))
        return torch.from_numpy(np.asarray(value)).to(**like)


def _arrays(tensors: Sequence[Any]) -> list[Array]:
    return [x.detach().double().numpy(force=True) for x in tensors]


@cache
def _torch_cost() -> Any:
    """`torch.autograd.Function` of a cost; its derivatives are further results."""
    torch = import_torch()

    def forward(source: TorchCost, *tensors: Any) -> Any:
        found = _evaluate(source.cost, source.names, _arrays(tensors))
        return tuple(torch.from_numpy(x).to(tensors[0]) for x in found)

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.shapes = [x.shape for x in inputs[1:]]
        ctx.mark_non_differentiable(*output[1:])
        ctx.save_for_backward(*output[1:])

    def backward(ctx: Any, weight: Any, *_: Any) -> Any:
        found = []
        for derivative, shape in zip(ctx.saved_tensors, ctx.shapes, strict=True):
            ones = (1,) * (derivative.ndim - weight.ndim)  # samples have an axis of their own
            found.append((weight.reshape((*weight.shape, *ones)) * derivative).sum_to_size(shape))
        return None, *found

    members: dict[str, Any] = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(torch.autograd.function.once_differentiable(backward)),
    }
    return type("Cost", (torch.autograd.Function,), members)


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

        def alone(*arrays: Any) -> Any:
            dtype = jax.numpy.result_type(float)
            shape = self._find_shapes(tuple(array.shape for array in arrays))[0]

            def call(*given: Any) -> Any:
                return np.asarray(cost.value(_named(self.names, given)), dtype=dtype)

            made = jax.ShapeDtypeStruct(shape, dtype)
            return jax.pure_callback(call, made, *arrays, vmap_method="sequential")

        def forward(*arrays: Any) -> Any:
            value, *derivatives = both(*arrays)
            return value, (derivatives, arrays)

        def backward(kept: Any, weight: Any) -> Any:
            derivatives, arrays = kept
            return tuple(self._pull(weight, d, x) for d, x in zip(derivatives, arrays, strict=True))

        self._function = jax.custom_vjp(alone)
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
