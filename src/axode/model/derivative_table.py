"""Values and first derivatives of dynamics, as one call computes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, shortened
from axode.model.consistency import table_sizes
from axode.symbolic.derivative_names import ROWS, TableName

if TYPE_CHECKING:
    from axode.model.conditions import Options
    from axode.model.model import Model

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
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
        multipliers: The same of the constraint forces, in the order of `model.rows`.
    """

    value: Array
    by_q: Array | None = None
    by_nu: Array | None = None
    by_nu_dot: Array | None = None
    by_u: Array | None = None
    by_p: Array | None = None
    multipliers: Derivatives | None = None


def evaluate_derivatives(
    model: Model,
    function: str,
    arguments: dict[str, Any],
    by: Sequence[str] | None,
    multipliers: bool,
    options: Options,
) -> Derivatives:
    """See `Model.derivatives`."""
    name = TableName(function, _names(by), multipliers)
    sizes = table_sizes(model.facts, function)
    if by is not None and "p" in by and "p" not in sizes and model.facts.parameters:
        raise InvalidArgument(
            "this model's parameters are fixed; compile(parameters='free') for derivatives by them"
        )
    if not model.facts.tangents and model.facts.independent:
        raise NotApplicable(
            f"model '{model.name}' was read from a file that names no tangents; save it again"
        )
    columns = name.columns(sizes)
    table = model.evaluate(name.text, arguments, options)
    rows = len(getattr(model, {"nu": "independent", "u": "inputs"}[ROWS[function]]))
    forces = _split(table[..., rows:, :], columns) if multipliers else None
    return _split(table[..., :rows, :], columns, forces)


def _names(by: Sequence[str] | None) -> tuple[str, ...] | None:
    if by is None:
        return None
    if isinstance(by, str) or not all(isinstance(name, str) for name in by):
        raise InvalidArgument(f"by takes a list of names of arguments, got {shortened(by)}")
    return tuple(dict.fromkeys(by))


def _split(
    table: Array, columns: dict[str, slice], multipliers: Derivatives | None = None
) -> Derivatives:
    """The columns of a table, as views of it."""
    parts: dict[str, Any] = {f"by_{name}": table[..., place] for name, place in columns.items()}
    return Derivatives(table[..., 0], multipliers=multipliers, **parts)
