"""Derivatives of a model's functions along directions and against weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.model.conditions import Options
from axode.model.derivative_table import argument_names
from axode.model.differentiation import Differentiation
from axode.model.function_products import FunctionProducts
from axode.model.function_source import Entry
from axode.model.named_arguments import as_numbers
from axode.runtime.arrays import is_on_device
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.model.model import Model, Values
    from axode.model.named_arguments import NamedArguments
    from axode.model.wrappers.array_function import ArrayFunction
    from axode.model.wrappers.jax_function import JaxFunction
    from axode.model.wrappers.torch_function import TorchFunction

Array = npt.NDArray[np.float64]


class DerivativeProducts(Differentiation):
    """Products of every function of a `Model` with its derivatives, of first and second order.

    Arguments are differentiated by their names: "q", "nu", "nu_dot", "u", "weights", "t" and "p",
    the free parameters. "q" takes the coordinates as free of each other; "tangents" takes the
    displacements that loops and contacts leave free, in the order of `Model.tangents`. All other
    arguments are held while one of them changes.
    """

    _arguments: NamedArguments

    def jvp(
        self,
        function: str,
        directions: Mapping[str, Values],
        /,
        *arguments: Values,
        **options: Unpack[Options],
    ) -> Array:
        """Derivative of a function along changes of its arguments: Jacobian times vector.

        Args:
            function: Its name, such as "forward_dynamics".
            directions: Changes by the name of the argument, each in order or by name; what is left
                out stays.
            arguments: Those of the function, in its own order; the last ones may be left out.
            options: See `Options`.
        """
        check_arguments(DerivativeProducts.jvp, locals())
        source = self.products(function)
        along = self._names(source, [*directions]) if directions else ()
        entry = source.jvp(along)
        values = _named(source, arguments) | self._directions(source, directions)
        changed = self._run(("jvp", function, along), entry, values, options)
        if function == "contact_forces":
            for wheel, component in self._facts.unknown_forces:
                changed[..., wheel, component] = np.nan
        return changed

    def vjp(
        self,
        function: str,
        weights: npt.ArrayLike,
        /,
        *arguments: Values,
        by: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> dict[str, Array]:
        """Gradient of a weighted sum of a function's results: weights times Jacobian.

        Args:
            function: Its name, such as "forward_dynamics".
            weights: One per result, in the shape of the result.
            arguments: Those of the function, in its own order; the last ones may be left out.
            by: Names of the arguments to differentiate by; all unless given.
            options: See `Options`; there is no `out`.

        Returns:
            One gradient per argument in `by`, by name.
        """
        check_arguments(DerivativeProducts.vjp, locals())
        source = self.products(function)
        names = self._names(source, by)
        values = _named(source, arguments) | self._weights(source, weights)
        _refuse_out("vjp", options)
        packed = self._run(("vjp", function, names), source.vjp(names), values, options)
        return _split(packed, source.sizes(names))

    def hessian_product(
        self,
        function: str,
        weights: npt.ArrayLike,
        directions: Mapping[str, Values],
        /,
        *arguments: Values,
        by: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> dict[str, Array]:
        """Derivative of what `vjp` gives along changes of the arguments: Hessian times vector.

        Args:
            function: Its name, such as "forward_dynamics".
            weights: One per result, in the shape of the result.
            directions: Changes by the name of the argument, as in `jvp`.
            arguments: Those of the function, in its own order; the last ones may be left out.
            by: Names of the arguments of the gradient; all unless given.
            options: See `Options`; there is no `out`.
        """
        check_arguments(DerivativeProducts.hessian_product, locals())
        source = self.products(function)
        names = self._names(source, by)
        along = self._names(source, [*directions]) if directions else ()
        values = _named(source, arguments) | self._weights(source, weights)
        values |= self._directions(source, directions)
        _refuse_out("hessian_product", options)
        entry = source.second_order(names, along)
        packed = self._run(("second", function, names, along), entry, values, options)
        return _split(packed, source.sizes(names))

    def hessian(
        self,
        function: str,
        weights: npt.ArrayLike,
        /,
        *arguments: Values,
        by: str | Sequence[str] | None = None,
        **options: Unpack[Options],
    ) -> Array:
        """Second derivatives of a weighted sum of a function's results, a symmetric matrix.

        It is what optimal control needs of a Lagrangian, the weights being multipliers. Columns
        that follow from others are not computed. For "tangents" it is the second derivative along
        motions of constant rates of these tangents.

        Args:
            function: Its name, such as "forward_dynamics".
            weights: One per result, in the shape of the result.
            arguments: Those of the function, in its own order; the last ones may be left out.
            by: Names of the arguments whose entries, one after the other, are rows and columns;
                all unless given.
            options: See `Options`.
        """
        check_arguments(DerivativeProducts.hessian, locals())
        source = self.products(function)
        names = self._names(source, by)
        values = _named(source, arguments) | self._weights(source, weights)
        return self._run(("hessian", function, names), source.hessian(names), values, options)

    def torch_function(self, function: str) -> TorchFunction:
        """Function of tensors of PyTorch, which differentiates through it (extra `torch`).

        Args:
            function: Its name, such as "forward_dynamics".
        """
        check_arguments(DerivativeProducts.torch_function, locals())
        return call_stage("TorchFunction", self._array_function(function))

    def jax_function(self, function: str) -> JaxFunction:
        """Function of arrays of JAX, which differentiates through it (extra `jax`).

        Args:
            function: Its name, such as "forward_dynamics".
        """
        check_arguments(DerivativeProducts.jax_function, locals())
        return call_stage("JaxFunction", self._array_function(function))

    def _array_function(self, function: str) -> ArrayFunction:
        return call_stage(
            "ArrayFunction", cast("Model", self), self.products(function), self._arguments
        )

    def products(self, function: str) -> FunctionProducts:
        """Derivatives of a function as functions of arrays, for wrappers."""
        if function not in self._products:
            self._products[function] = FunctionProducts(self._library, function)
        return self._products[function]

    @cached_property
    def _products(self) -> dict[str, FunctionProducts]:
        return {}

    def _run(self, key: Any, entry: Entry, values: Mapping[str, Any], options: Options) -> Array:
        self._entries[key] = entry
        return self._evaluate(key, values, options)

    def _names(self, source: FunctionProducts, by: str | Sequence[str] | None) -> tuple[str, ...]:
        """Arguments to differentiate by; all unless given."""
        if by is None:
            return source.arguments
        return argument_names(source.name, by, source.differentiable, dict(self._facts.parameters))

    def _directions(self, source: FunctionProducts, given: Mapping[str, Values]) -> dict[str, Any]:
        """Changes of arguments by the names of their ports.

        Raises:
            InvalidArgument: for one of another length than the argument.
        """
        found: dict[str, Any] = {}
        for argument, size in source.sizes(tuple(given)).items():
            array = self._arguments.direction(argument, given[argument])
            if not array.ndim or array.shape[-1] != size:
                raise InvalidArgument(
                    f"directions, '{argument}': a change of {size} numbers is needed, by name or "
                    f"in order, got the shape {tuple(array.shape)}"
                )
            found[f"{argument}_direction"] = array
        return found

    def _weights(self, source: FunctionProducts, given: npt.ArrayLike) -> dict[str, Any]:
        """Weights of the results as vectors, by the name of their port."""
        array: Any = given if is_on_device(given) else as_numbers("weights", given)
        axes = len(source.shape)
        lead = tuple(array.shape)[: array.ndim - axes]
        if tuple(array.shape) != (*lead, *source.shape):
            expected = ", ".join(("...", *map(str, source.shape)))
            raise InvalidArgument(
                f"weights of {source.name} have shape {tuple(array.shape)}, expected ({expected})"
            )
        if source.name == "contact_forces" and isinstance(array, np.ndarray):
            for wheel, component in self._facts.unknown_forces:
                if array[..., wheel, component].any():
                    direction = ("longitudinal", "lateral", "normal")[component]
                    raise InvalidArgument(
                        f"weights: the {direction} force on {self._facts.contacts[wheel]} is "
                        "indeterminate, so that it has no derivative; give it the weight 0"
                    )
        flat = array if axes == 1 else array.reshape((*lead, source.size))
        return {f"{source.name}_weight": flat}


def _named(source: FunctionProducts, arguments: Sequence[Any]) -> dict[str, Any]:
    """Arguments of a function by name.

    Raises:
        InvalidArgument: for too many of them, or none.
    """
    names = [name for name in source.arguments if name not in ("t", "p")]
    if not min(1, len(names)) <= len(arguments) <= len(names):
        raise InvalidArgument(
            f"{source.name} takes {', '.join(names)}, by position; got {len(arguments)} arguments"
        )
    return dict(zip(names, arguments, strict=False))


def _split(packed: Any, sizes: Mapping[str, int]) -> dict[str, Array]:
    """Gradients by name; that by time has no axis of its own."""
    found, first = {}, 0
    for name, size in sizes.items():
        found[name] = packed[..., first] if name == "t" else packed[..., first : first + size]
        first += size
    return found


def _refuse_out(method: str, options: Options) -> None:
    if "out" in options:
        raise InvalidArgument(
            f"{method} takes t, parameters and threads, not out: its gradients are views of one "
            "new array"
        )
