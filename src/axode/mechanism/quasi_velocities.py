"""Quasi-velocities: independent speeds that are combinations of the joints' speeds.

`derive(independent={"v": "r / 2 * (left_dot + right_dot)", ...})` reads each by its formula; a name
alone means a speed of the description, or one of its measures that is a function of the state.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from axode.errors import InvalidArgument, shortened
from axode.mechanism.values.expressions import (
    CONSTANTS,
    FUNCTIONS,
    NAMES,
    TIME,
    Expression,
    Parameter,
    depends_on_time,
    evaluate,
    parse_scalar,
)
from axode.names import SIGNAL_NAME, Names

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

Definition = str | Callable[[Any], Any]
HEAD = re.compile(r"\s*(?P<name>[^\s\[=]+)\s*(?:\[(?P<unit>[^\]]*)\])?\s*")


@dataclass(frozen=True)
class QuasiVelocity:
    """A speed w = W(q) v.

    Attributes:
        name: What it is called.
        definition: Formula of coordinates, speeds, measures and parameters; or the function of the
            state that a measure is.
        unit: Its unit; that of the speeds in it if they are only added and subtracted.
    """

    name: str
    definition: Definition
    unit: str = ""

    def __str__(self) -> str:
        if not isinstance(self.definition, str):
            return self.name
        return f"{self.name}{f' [{self.unit}]' if self.unit else ''} = {self.definition}"

    def value(self, state: NamedState) -> Any:
        """Its value at a state: a number, or what the state's symbols make of it."""
        if not isinstance(self.definition, str):
            return self.definition(state)
        formula, signals = _parsed(self.name, self.definition)
        return evaluate(formula, {k: state[n] for k, n in signals.items()}, state.functions)


class NamedState:
    """Values of a state as a formula sees them: `s["left_dot"]`; names may be short.

    Args:
        mechanism: Whose state it is.
        values: Values of coordinates, speeds and parameters, numbers or symbols.
        functions: What the functions of formulas do to such values.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        values: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]] = FUNCTIONS,
    ) -> None:
        self._values, self.functions = values, functions
        self._measures = {m.name: m.function for m in mechanism.measures if m.function}
        own = (name for c in mechanism.connections for name in (*c.coordinates, *c.speeds))
        first = dict.fromkeys((*own, *self._measures))
        kind = "coordinate, speed or parameter"
        self._names = Names(f"mechanism '{mechanism.name}'", kind, first, {**first, **values})

    def __getitem__(self, name: str) -> Any:
        full = self._names.resolve(name)
        measure = None if full in self._values else self._measures[full]
        return self._values[full] if measure is None else measure(self)


def read_independent(
    mechanism: Mechanism, asked: Sequence[str] | Mapping[str, Definition], known: Collection[str]
) -> tuple[list[str], list[QuasiVelocity]]:
    """Names of the independent speeds, and those among them that are quasi-velocities.

    Args:
        mechanism: What they belong to.
        asked: Names, some with a formula after "="; or formulas by name.
        known: Names that mean speeds of joints.

    Raises:
        InvalidArgument: for what is no list of names, no formula, and for names that are taken.
    """
    entries = _entries(asked)
    measures = {measure.name: measure for measure in mechanism.measures if measure.function}
    earlier = {quasi.name: quasi for quasi in mechanism.quasi_velocities}
    names, found = [], []
    for name, unit, definition in entries:
        names.append(name)
        if definition is None or definition == name:
            if name in earlier:
                found.append(earlier[name])
            elif name not in known and name in measures:
                measure = measures[name]
                assert measure.function is not None
                found.append(QuasiVelocity(name, measure.function, unit or measure.unit))
            continue
        _require_free(mechanism, name, [*known, *(quasi.name for quasi in found)])
        if isinstance(definition, str):
            _parsed(name, definition)
        found.append(QuasiVelocity(name, definition, unit))
    return names, found


def _entries(asked: Any) -> list[tuple[str, str, Definition | None]]:
    """Name, unit and definition of each, the latter None where a name stands alone."""
    if isinstance(asked, str):
        raise InvalidArgument(f"independent takes a list of names, got the text '{asked}'")
    try:
        items = list(asked.items() if isinstance(asked, Mapping) else ((x, None) for x in asked))
    except TypeError:
        items = [(None, None)]
    if not all(isinstance(x, str) and (y is None or callable(y) or _text(y)) for x, y in items):
        raise InvalidArgument(
            "independent takes a list of names of speeds, or formulas by name, got "
            f"{shortened(asked)}"
        )
    found: list[tuple[str, str, Definition | None]] = []
    for text, definition in items:
        head, sign, formula = text.partition("=") if definition is None else (text, "", "")
        match = HEAD.fullmatch(head)
        if definition is None and not sign and match is None:  # a name may have blanks in it
            found.append((text, "", None))
            continue
        if match is None or (sign and not formula.strip()):
            raise InvalidArgument(
                f"independent: '{text}' is neither a name nor NAME = FORMULA, as in "
                "'v [m/s] = r / 2 * (left_dot + right_dot)'"
            )
        given = formula.strip() or definition
        found.append((match["name"], match["unit"] or "", given))
    return found


def _text(given: Any) -> bool:
    return isinstance(given, str) and bool(given.strip())


def _require_free(mechanism: Mechanism, name: str, known: Collection[str]) -> None:
    from axode.mechanism.checks import name_fault
    from axode.mechanism.topology import coordinate_names, parameters_of

    drives = [drive.input for drive in mechanism.drives]
    taken = {*known, *coordinate_names(mechanism), *parameters_of(mechanism), *drives, TIME}
    taken |= {one for measure in mechanism.measures for one in measure.names}
    fault = name_fault(name) or (f"'{name}' is taken; choose another name" * (name in taken))
    if fault:
        raise InvalidArgument(f"independent: {fault}")


def _parsed(name: str, text: str) -> tuple[Expression, dict[str, str]]:
    """Formula of stand-ins, and the name that each stands for."""
    own = {*NAMES, *CONSTANTS, *keyword.kwlist, TIME}
    used = dict.fromkeys(name for name in SIGNAL_NAME.findall(text) if name not in own)
    signals = {f"signal_{k}": name for k, name in enumerate(used)}
    stand_ins = {n: k for k, n in signals.items()}
    plain = SIGNAL_NAME.sub(lambda match: stand_ins.get(match[0], match[0]), text)
    try:
        formula = parse_scalar(plain, {k: Parameter(k, 0.0) for k in signals})
    except ValueError as error:
        shown = SIGNAL_NAME.sub(lambda match: signals.get(match[0], match[0]), str(error))
        raise InvalidArgument(f"independent speed '{name}': {shown}") from None
    if not isinstance(formula, Expression) or not signals:
        raise InvalidArgument(f"independent speed '{name}': '{text}' is a formula without speeds")
    if depends_on_time(formula):
        raise InvalidArgument(
            f"independent speed '{name}' = {text} depends on time; a combination of speeds may "
            "depend on coordinates and parameters alone"
        )
    return formula, signals
