"""Derivatives of a model's functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.model.conditions import Options
from axode.model.function_source import Entry
from axode.model.model_parts import ModelParts

if TYPE_CHECKING:
    from axode.model.derivative_table import DerivativeCall, Derivatives
    from axode.model.model import Model, Values

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
        from axode.model.derivative_table import require_free

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
            from axode.model.derivative_table import DerivativeCall

            call = DerivativeCall(cast("Model", self), function, by, multipliers)
            self._derivative_calls[key] = call
        return call(cast("Model", self), given, options)

    @cached_property
    def _derivative_calls(self) -> dict[Any, DerivativeCall]:
        return {}
