"""Values and first derivatives of dynamics, as one call computes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.products import TANGENTS
from axode.derivatives.derivative_names import DIFFERENTIATED, ROWS, TableName
from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.consistency import table_sizes
from axode.model.model_parts import facts_of

if TYPE_CHECKING:
    from axode.model.conditions import Options
    from axode.model.metadata import Facts
    from axode.model.model import Model

Array = npt.NDArray[np.float64]


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


def evaluate_derivatives(
    model: Model,
    function: str,
    arguments: dict[str, Any],
    by: str | Sequence[str] | None,
    multipliers: bool,
    options: Options,
) -> Derivatives:
    """See `Model.derivatives`."""
    if function not in DIFFERENTIATED:
        raise UnknownName("derivatives", "function", function, DIFFERENTIATED)
    _check_used(function, arguments)
    sizes = table_sizes(facts_of(model), function)
    if by is not None and "p" in by:
        require_free(facts_of(model))
    if not facts_of(model).tangents and facts_of(model).independent:
        raise NotApplicable(
            f"model '{model.name}' was read from a file that names no tangents; save it again"
        )
    known, parameters = [n for n in DIFFERENTIATED[function] if n in sizes], model.parameters
    chosen = None if by is None else argument_names(function, by, known, parameters)
    name = TableName(function, chosen, multipliers)
    columns = name.columns(sizes)
    table = model.evaluate(name.text, arguments, options)
    rows = len(getattr(model, {"nu": "independent", "u": "inputs"}[ROWS[function]]))
    forces = _split(table[..., rows:, :], columns) if multipliers else None
    return _split(table[..., :rows, :], columns, forces)


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


def _check_used(function: str, arguments: dict[str, Any]) -> None:
    """Check that nothing was given that the function does not take."""
    if function == "inverse_dynamics":
        return
    for name in ("nu_dot", "weights"):
        if arguments[name] is not None:
            raise InvalidArgument(
                f"{function} does not take {name}; inverse_dynamics does, and {function} takes "
                "q, nu and u"
            )


def _split(
    table: Array, columns: dict[str, slice], multipliers: Derivatives | None = None
) -> Derivatives:
    """The columns of a table, as views of it."""
    parts: dict[str, Any] = {f"by_{name}": table[..., place] for name, place in columns.items()}
    return Derivatives(table[..., 0], multipliers=multipliers, **parts)
