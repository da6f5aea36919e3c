"""What a cost can be differentiated by: parameters, gains, inputs and values of the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.names import Names
from axode.problems.inputs.inputs import Callback, Sampled
from axode.problems.inputs.laws import Law, ambiguous_gain

Array = npt.NDArray[np.float64]
Kind = Literal["parameter", "gain", "input", "start"]
START = "start."


@dataclass(frozen=True)
class Variable:
    """A number, or samples, by which a run is differentiated.

    Attributes:
        kind: What it is.
        name: Its full name there; of a start, without the prefix.
        place: Its number among the parameters, gains or inputs; -1 for a value of the start.
    """

    kind: Kind
    name: str
    place: int


class Variables:
    """All variables of a run, by name.

    Args:
        model: What moves.
        input: Its input, as `simulate` takes it.
        start: Values of the start by name; None if it is given otherwise.
    """

    def __init__(self, model: Model, input: Any, start: Mapping[str, Any] | None) -> None:
        self._owner = f"the run of '{model.name}'"
        self._parameters = () if facts_of(model).fixed else tuple(model.parameters)
        self._fixed = tuple(model.parameters) if facts_of(model).fixed else ()
        self._gains = tuple(input.gains) if isinstance(input, Law) else ()
        self._inputs = model.inputs if _holds_numbers(input) else ()
        self._all_inputs = model.inputs
        self._start = (
            () if start is None else tuple(model.signals.names(*STATE_KINDS).by_full_name(start))
        )
        twice = set(self._gains) & {*self._parameters, *self._inputs}
        if twice:
            raise ambiguous_gain(min(twice))
        self._names = Names(
            self._owner, "variable", (*self._gains, *self._parameters, *self._inputs)
        )

    @property
    def known(self) -> tuple[str, ...]:
        """All names."""
        return (*self._names, *(START + name for name in self._start))

    def resolve(self, name: Any) -> Variable:
        """Find a variable by its full or short name.

        Raises:
            UnknownName: listing the known names, with a remedy where there is one.
        """
        if isinstance(name, str) and name.startswith(START):
            names = Names(self._owner, "value of the start", self._start)
            found = names.matching(name[len(START) :])
            if len(found) == 1:
                return Variable("start", found[0], -1)
        elif isinstance(name, str) and self._names.accepts(name):
            return self._own(self._names.resolve(name))
        raise UnknownName(self._owner, "variable", name, self.known, self._problem(name))

    def _own(self, full: str) -> Variable:
        if full in self._gains:
            return Variable("gain", full, self._gains.index(full))
        if full in self._parameters:
            return Variable("parameter", full, self._parameters.index(full))
        return Variable("input", full, self._inputs.index(full))

    def _problem(self, name: Any) -> str:
        """What is wrong with a name, where there is a remedy."""
        if not isinstance(name, str):
            return f"{self._owner}: a name is needed, not {shortened(name)}."
        if name.startswith(START):
            return (
                f"{self._owner}: '{name[len(START) :]}' is not among what `start` gives by name; "
                "name it there."
            )
        if len(self._names.matching(name)) > 1:
            return f"{self._owner}: '{name}' may mean several variables."
        if Names("", "", self._fixed).accepts(name):
            return (
                f"{self._owner}: '{name}' is fixed in the code; use "
                "compile(parameters='free') to differentiate by it."
            )
        if Names("", "", self._all_inputs).accepts(name):
            return (
                f"{self._owner}: '{name}' is computed by a function; give it gains, "
                "Law(function, kp=...), and differentiate by these."
            )
        return ""


def _holds_numbers(input: Any) -> bool:
    """Return whether inputs are numbers or samples, not functions."""
    if input is None or isinstance(input, Sampled):
        return True
    if isinstance(input, Law | Callback) or callable(input):
        return False
    if isinstance(input, Mapping):
        return all(not isinstance(v, str) and _is_number(v) for v in input.values())
    return _is_number(input)


def _is_number(value: Any) -> bool:
    try:
        np.asarray(value, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


def read_variables(variables: Variables, by: Any, what: str = "by") -> dict[str, Variable]:
    """Variables by the names that were given.

    Raises:
        InvalidArgument: if one is given twice.
        UnknownName: for unknown names.
    """
    if isinstance(by, str):
        by = [by]
    if not isinstance(by, Iterable):
        raise InvalidArgument(
            f"{what}: expected names, or values by name, got {shortened(by)}; there are "
            f"{', '.join(variables.known)}"
        )
    found: dict[str, Variable] = {}
    for name in by:
        variable = variables.resolve(name)
        if variable in found.values():
            raise InvalidArgument(f"{what}: '{name}' is given twice")
        found[name] = variable
    return found
