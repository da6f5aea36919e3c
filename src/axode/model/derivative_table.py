"""Values and first derivatives of dynamics, as one call computes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.products import TANGENTS
from axode.derivatives.derivative_names import DIFFERENTIATED, ROWS, TableName
from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.consistency import table_sizes
from axode.model.direct_functions import table_call
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
        forces = None if self._forces is None else _split(table, self._forces)
        return _split(table, self._parts, forces)


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


def _split(
    table: Array, places: list[tuple[str, Any]], multipliers: Derivatives | None = None
) -> Derivatives:
    """Parts of a table, as views of it; what there is not is None."""
    made = object.__new__(Derivatives)  # ten times as fast as setting what is frozen
    vars(made).update({name: table[place] for name, place in places})
    if multipliers is not None:
        vars(made)["multipliers"] = multipliers
    return made
