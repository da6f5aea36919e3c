"""Derivatives of a model: of functions and dynamics, along directions and against weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.tape.derivatives import TANGENTS
from axode.derivatives.derivative_tables import DIFFERENTIATED, ROWS, TableName
from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.conditions import Options
from axode.model.consistency import table_sizes
from axode.model.direct_functions import table_call
from axode.model.function_products import FunctionProducts
from axode.model.function_source import Entry
from axode.model.model_parts import ModelParts, facts_of, warn_once
from axode.model.named_arguments import SCALARS, as_numbers
from axode.runtime.arrays import is_on_device
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.model.conditions import Options
    from axode.model.metadata import Facts
    from axode.model.model import Model, Values
    from axode.model.named_arguments import NamedArguments
    from axode.model.wrappers.array_function import ArrayFunction
    from axode.model.wrappers.jax_function import JaxFunction
    from axode.model.wrappers.torch_function import TorchFunction


Array = npt.NDArray[np.float64]


class Differentiation(ModelParts, ABC):
    """What a model can differentiate; part of `Model`."""

    _entries: dict[Any, Entry]

    @abstractmethod
    def _evaluate(self, name: Any, values: Mapping[str, Any], options: Options) -> Array:
        """Evaluate a function, arguments by name."""

    @property
    def tangents(self) -> tuple[str, ...]:
        """Speeds along whose displacements derivatives by the configuration are taken."""
        return self._facts.tangents

    def tangent_map(self, q: Values, **options: Unpack[Options]) -> Array:
        """Changes of the coordinates for unit displacements: (..., coordinates, tangents)."""
        return self._evaluate("tangent_map", {"q": q}, options)

    def jacobian(
        self, function: str, by: str, /, *arguments: Values, **options: Unpack[Options]
    ) -> Array:
        """Derivative of a function by one of its arguments.

        Coordinates are taken as free of each other; times `tangent_map(q)`, a Jacobian by "q" is
        that along the tangents.

        Args:
            function: Its name, such as "forward_dynamics".
            by: "q", "nu", "nu_dot", "u", or "p" for free parameters.
            arguments: Those of the function, in its own order; the last ones may be left out.
            options: See `Options`.
        """
        check_arguments(Differentiation.jacobian, locals())

        if by == "p":
            require_free(self._facts)
        key = ("jacobian", function, by)
        if key not in self._entries:
            self._entries[key] = self._library.tape_entry(self._library.jacobian(function, by))
        names = [n for n in self._entries[key].arguments if n not in ("t", "p", "weights")]
        if not 1 <= len(arguments) <= len(names):
            raise InvalidArgument(
                f"{function} takes {', '.join(names)}; got {len(arguments)} arguments"
            )
        return self._evaluate(key, dict(zip(names, arguments, strict=False)), options)

    def derivatives(
        self,
        function: Literal["forward_dynamics", "inverse_dynamics"],
        q: Values,
        nu: Values | None = None,
        u: Values | None = None,
        *,
        nu_dot: Values | None = None,
        weights: Values | None = None,
        by: str | Sequence[str] | None = None,
        multipliers: bool = False,
        **options: Unpack[Options],
    ) -> Derivatives:
        """Value and first derivatives of forward or inverse dynamics, all in one call.

        An entry has the unit of the value per unit of the argument; that of a tangent is the unit
        of its speed times a second.

        Args:
            function: "forward_dynamics" or "inverse_dynamics".
            q, nu, u, nu_dot, weights: Arguments of the function; left out as there.
            by: Names of the arguments to differentiate by: "q" along the tangents, "nu", "u",
                "nu_dot", "p", "t"; all that the function and the model have unless given.
            multipliers: Whether those of constraint forces follow, of forward dynamics.
            options: See `Options`.
        """
        given = {"q": q, "nu": nu, "u": u, "nu_dot": nu_dot, "weights": weights}
        key: Any = function, tuple(by) if type(by) is list else by, multipliers
        try:
            call = self._derivative_calls.get(key)
        except TypeError:  # for lists and the like, which are no names
            call = None
        if call is None:
            check_arguments(Differentiation.derivatives, locals())

            call = DerivativeCall(cast("Model", self), function, by, multipliers)
            self._derivative_calls[key] = call
            warn_once(cast("Model", self), function)
        return call(cast("Model", self), given, options)

    @cached_property
    def _derivative_calls(self) -> dict[Any, DerivativeCall]:
        return {}


@dataclass(frozen=True, repr=False)
class Derivatives:
    """A function's value and its first derivatives, any batch axes first.

    Derivatives have the entries of the value along the axis before the last, those of the argument
    along the last. What was not asked for, or is no argument of the function, is None.

    Attributes:
        value: What the function itself returns.
        by_q: By the configuration, along the tangents: (..., values, tangents). Speeds and
            accelerations that are arguments stay, dependent coordinates and speeds follow.
        by_nu: By the independent speeds.
        by_nu_dot: By the independent accelerations, of inverse dynamics.
        by_u: By the inputs; of inverse dynamics by the wrenches that are given, zero for motors.
        by_p: By the free parameters, the coordinates that the tangents name held and the others
            following, so that loops stay closed.
        by_t: By time, in the same way, where it prescribes a motion: one column.
        multipliers: The same of the constraint forces, in the order of `model.rows`.
    """

    value: Array
    by_q: Array | None = None
    by_nu: Array | None = None
    by_nu_dot: Array | None = None
    by_u: Array | None = None
    by_p: Array | None = None
    by_t: Array | None = None
    multipliers: Derivatives | None = None

    def __repr__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        parts = (
            f"{name} {part!r}" if name == "multipliers" else f"{name} {tuple(part.shape)}"
            for name, part in given.items()
            if part is not None
        )
        return f"Derivatives({', '.join(parts)})"


class DerivativeCall:
    """Derivatives of one function by certain arguments, checked and planned once.

    Args:
        model: What they are of.
        function: Its name.
        by: Names of arguments; all that there are unless given.
        multipliers: Whether those of constraint forces follow.

    Raises:
        UnknownName, InvalidArgument: for unknown functions and arguments.
        NotApplicable: for a model whose file names no tangents.
    """

    def __init__(
        self, model: Model, function: str, by: str | Sequence[str] | None, multipliers: bool
    ) -> None:
        if function not in DIFFERENTIATED:
            raise UnknownName("derivatives", "function", function, DIFFERENTIATED)
        facts = facts_of(model)
        sizes = table_sizes(facts, function)
        if by is not None and "p" in by:
            require_free(facts)
        if not facts.tangents and facts.independent:
            raise NotApplicable(
                f"model '{model.name}' was read from a file that names no tangents; save it again"
            )
        known, parameters = [n for n in DIFFERENTIATED[function] if n in sizes], model.parameters
        chosen = None if by is None else argument_names(function, by, known, parameters)
        table = TableName(function, chosen, multipliers)
        columns, self.function, self.name = table.columns(sizes), function, table.text
        rows = len(getattr(model, {"nu": "independent", "u": "inputs"}[ROWS[function]]))
        self._parts = _places(columns, slice(None, rows))
        self._forces = _places(columns, slice(rows, None)) if multipliers else None
        self._takes: list[str] = []
        self._direct: Callable[..., Array] | None = None

    def __call__(self, model: Model, given: dict[str, Any], options: Options) -> Derivatives:
        """Evaluate them at arguments by name."""
        if self.function != "inverse_dynamics":
            for name in ("nu_dot", "weights"):
                if given[name] is not None:
                    raise InvalidArgument(
                        f"{self.function} does not take {name}; inverse_dynamics does, and "
                        f"{self.function} takes q, nu and u"
                    )
        if options:
            table = model.evaluate(self.name, given, options)
        elif self._direct is None:
            table = model.evaluate(self.name, given)
            self._takes, self._direct = table_call(model, self.name)
        else:
            table = self._direct(*[given[name] for name in self._takes])
        forces = None if self._forces is None else _split_result(table, self._forces)
        return _split_result(table, self._parts, forces)


def require_free(facts: Facts) -> None:
    """Refuse derivatives by parameters that were folded into the functions."""
    if facts.fixed and facts.parameters:
        raise InvalidArgument(
            "this model's parameters are fixed; compile(parameters='free') for derivatives by them"
        )


def argument_names(
    function: str, given: str | Sequence[str], known: Sequence[str], parameters: Collection[str]
) -> tuple[str, ...]:
    """Names of arguments to differentiate by, each once.

    Args:
        function: Name of the function.
        given: What was given: a name or several.
        known: Names of the arguments that there are.
        parameters: Names of the model's parameters, for the remedy.

    Raises:
        InvalidArgument: for anything but names, and for none.
        UnknownName: for other names.
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidArgument(
            f"by takes names of arguments of {function}, {', '.join(known)}; got {shortened(given)}"
        )
    for name in names:
        if name not in known:
            problem = ""
            if name in parameters:
                problem = f"{function}: '{name}' is a parameter; all of them are the argument 'p'."
            elif name == TANGENTS:
                problem = f"derivatives: those by 'q' are along the tangents, see model.{TANGENTS}."
            raise UnknownName(f"function '{function}'", "argument", name, known, problem)
    return tuple(dict.fromkeys(names))


def _places(columns: Mapping[str, slice], rows: slice) -> list[tuple[str, Any]]:
    """Where the parts of a table are, by their names."""
    parts = [("value", (..., rows, 0))]
    return parts + [(f"by_{name}", (..., rows, place)) for name, place in columns.items()]


def _split_result(
    table: Array, places: list[tuple[str, Any]], multipliers: Derivatives | None = None
) -> Derivatives:
    """Parts of a table, as views of it; what there is not is None."""
    made = object.__new__(Derivatives)  # ten times as fast as setting what is frozen
    vars(made).update({name: table[place] for name, place in places})
    if multipliers is not None:
        vars(made)["multipliers"] = multipliers
    return made


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
            warn_once(cast("Model", self), function)
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
    """Gradients by name; those by time and the length of a step have no axis of their own."""
    found, first = {}, 0
    for name, size in sizes.items():
        found[name] = packed[..., first] if name in SCALARS else packed[..., first : first + size]
        first += size
    return found


def _refuse_out(method: str, options: Options) -> None:
    if "out" in options:
        raise InvalidArgument(
            f"{method} takes t, parameters and threads, not out: its gradients are views of one "
            "new array"
        )
