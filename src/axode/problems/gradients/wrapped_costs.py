"""Costs of runs inside PyTorch and JAX: functions of named values, differentiable once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable
from axode.model.wrappers.array_function import as_array
from axode.model.wrappers.jax_function import import_jax, real_array
from axode.model.wrappers.torch_function import (
    call_untraced,
    common_type,
    dense_tensor,
    import_torch,
)
from axode.problems.gradients.gradient import gradient
from axode.problems.gradients.variables import read_variables
from axode.problems.inputs.inputs import Sampled

if TYPE_CHECKING:
    from axode.problems.gradients.cost import Cost

Array = npt.NDArray[np.float64]
SERIAL: Any = {"vmap_method": "sequential"}  # axes of arguments make batches, those of `vmap` none


class WrappedCost:
    """A cost as a function of some of its variables.

    Args:
        cost: The cost.
        by: Names of the variables, in the order of the arguments.
    """

    def __init__(self, cost: Cost, by: str | Sequence[str]) -> None:
        self.cost = cost
        known = read_variables(cost.variables, by)
        self.names = tuple(known)
        sampled = isinstance(cost.input, Sampled)
        # axes of a value behind the batch: samples of an input have one
        self.axes = tuple(int(sampled and v.kind == "input") for v in known.values())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)}) of {self.cost!r}"

    def ordered(self, given: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Values in order, from those given by position and by name.

        Raises:
            InvalidArgument: unless there is one for each name.
        """
        known = dict(zip(self.names, given, strict=False)) | named
        if len(given) + len(named) != len(self.names) or set(known) != set(self.names):
            raise InvalidArgument(f"the cost takes {', '.join(self.names)}, each of them once")
        return [known[name] for name in self.names]

    def value(self, arrays: Sequence[Array]) -> Array:
        """Cost of every run."""
        return np.asarray(self.cost.value(dict(zip(self.names, arrays, strict=True))))

    def derivatives(self, arrays: Sequence[Array]) -> list[Array]:
        """Cost of every run, and its derivatives by each of the variables."""
        found = gradient(self.cost, dict(zip(self.names, arrays, strict=True)), progress=False)
        return [np.asarray(x) for x in (found.value, *(found[name] for name in self.names))]


class TorchCost(WrappedCost):
    """A cost on tensors, which `backward` and `torch.func.grad` differentiate.

    Call it with one tensor per name, by position or by name; those with batch axes make a batch of
    runs, and the result has one cost for each. Runs of `vmap` are computed one after the other. It
    is differentiated once.
    """

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluate the cost; its derivatives as well where a tensor needs them."""
        return call_untraced(self._evaluate, values, named)

    def _evaluate(self, *values: Any, **named: Any) -> Any:
        torch = import_torch()
        given = self.ordered(values, named)
        like = common_type(torch, given)
        tensors = [
            as_array(name, value, lambda value: dense_tensor(torch, value, like))
            for name, value in zip(self.names, given, strict=True)
        ]
        differentiated = torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
        return _cost_function().apply(self, differentiated, *tensors)[0]


def _arrays(tensors: Sequence[Any]) -> list[Array]:
    return [x.detach().resolve_neg().double().numpy(force=True) for x in tensors]


@cache
def _cost_function() -> Any:
    """`torch.autograd.Function` of a cost and its derivatives."""
    torch = import_torch()

    class CostFunction(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """Cost of runs, and its derivatives where they are needed."""

        @staticmethod
        def forward(source: WrappedCost, differentiated: bool, *tensors: Any) -> Any:
            arrays = _arrays(tensors)
            found = source.derivatives(arrays) if differentiated else [source.value(arrays)]
            return tuple(torch.from_numpy(x).to(tensors[0]) for x in found)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.source, _, *tensors = inputs
            ctx.mark_non_differentiable(*output[1:])
            ctx.save_for_backward(*tensors, *output[1:])

        @staticmethod
        def backward(ctx: Any, weights: Any, *_: Any) -> Any:
            count = len(ctx.source.names)
            tensors, found = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
            if not found:  # the outermost of several transforms needs them after all
                _, *found = _cost_function().apply(ctx.source, True, *tensors)
            return None, None, *_gradients().apply(ctx.source, weights, *tensors, *found)

        @staticmethod
        def vmap(
            info: Any, dims: Any, source: WrappedCost, differentiated: bool, *tensors: Any
        ) -> Any:
            made = []
            for k in range(info.batch_size):
                one = [
                    x if dim is None else x.select(dim, k)
                    for x, dim in zip(tensors, dims[2:], strict=True)
                ]
                made.append(_cost_function().apply(source, differentiated, *one))
            found = tuple(torch.stack(parts) for parts in zip(*made, strict=True))
            return found, (0,) * len(found)

    return CostFunction


@cache
def _gradients() -> Any:
    """`torch.autograd.Function` of derivatives of a cost times weights."""
    torch = import_torch()

    class Gradients(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """Derivatives of a cost times weights; a function of the variables, to refuse a second."""

        generate_vmap_rule = True

        @staticmethod
        def forward(source: WrappedCost, weights: Any, *tensors: Any) -> Any:
            count, weights = len(source.names), weights.to_dense()
            return tuple(
                (weights.reshape((*weights.shape, *[1] * axes)) * x).sum_to_size(like.shape)
                for like, x, axes in zip(tensors[:count], tensors[count:], source.axes, strict=True)
            )

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.source = inputs[0]

        @staticmethod
        def backward(ctx: Any, *_: Any) -> Any:
            raise NotApplicable("a cost has no second derivatives in PyTorch; the first are there")

    return Gradients


class JaxCost(WrappedCost):
    """A cost on arrays of JAX, which `grad` differentiates, also under `jit`.

    Call it with one array per name, by position or by name; those with batch axes make a batch of
    runs, and the result has one cost for each. Runs of `vmap` are computed one after the other. It
    is differentiated once.
    """

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluate the cost."""
        jnp = import_jax().numpy
        given = [
            as_array(name, value, real_array)
            for name, value in zip(self.names, self.ordered(values, named), strict=True)
        ]
        dtype = jnp.result_type(0.0, *given)
        return self._function(*(array.astype(dtype) for array in given))

    @cached_property
    def _function(self) -> Any:
        jax = import_jax()

        def value(*arrays: Any) -> Any:
            shape = jax.ShapeDtypeStruct(self._batch(arrays), arrays[0].dtype)
            return jax.pure_callback(self._host(self.value, arrays), shape, *arrays, **SERIAL)

        def forward(*arrays: Any) -> Any:
            batch, dtype = self._batch(arrays), arrays[0].dtype
            shapes = [batch]
            for array, axes in zip(arrays, self.axes, strict=True):
                shapes.append((*batch, *array.shape[array.ndim - axes :]))
            structs = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
            evaluate = self._host(self.derivatives, arrays)
            found = jax.pure_callback(evaluate, structs, *arrays, **SERIAL)
            return found[0], (arrays, found[1:])

        def backward(saved: Any, weights: Any) -> Any:
            arrays, derivatives = saved
            made = []
            for array, x, axes in zip(arrays, derivatives, self.axes, strict=True):
                part = weights.reshape(weights.shape + (1,) * axes) * x
                missing = part.ndim - array.ndim
                part = part.sum(axis=tuple(range(missing)))
                shared = tuple(k for k, n in enumerate(array.shape) if n == 1)
                made.append(part.sum(axis=shared, keepdims=True))
            return tuple(made)

        function = jax.custom_vjp(value)
        function.defvjp(forward, backward)
        return function

    @staticmethod
    def _host(evaluate: Any, arrays: Sequence[Any]) -> Any:
        """Evaluate on the CPU, with results of JAX's own type."""
        dtype = arrays[0].dtype

        def call(*given: Any) -> Any:
            found = evaluate([np.asarray(x, dtype=float) for x in given])
            single = isinstance(found, np.ndarray)
            made = [np.asarray(x, dtype=dtype) for x in ([found] if single else found)]
            return made[0] if single else made

        return call

    def _batch(self, arrays: Sequence[Any]) -> tuple[int, ...]:
        """Shape of the batch of runs, those that the other values of the cost make included."""
        own = (a.shape[: a.ndim - axes] for a, axes in zip(arrays, self.axes, strict=True))
        return np.broadcast_shapes(self._others, *own)

    @cached_property
    def _others(self) -> tuple[int, ...]:
        """Shape of the batch that the cost has apart from its variables; takes one run."""
        scalars = [name for name, axes in zip(self.names, self.axes, strict=True) if not axes]
        at = {name: np.ravel(self.cost.present(name))[0] for name in scalars}
        return np.shape(self.cost.value(at))
