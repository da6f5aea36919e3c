"""Formulas of the state in text: `--input "left.torque=60*pitch + 15*pitch_rate"`.

They are read, never executed: names of signals are put in place of parameters of the formulas that
mechanism files use, and what comes out is traced like a Python function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from axode.errors import InvalidArgument, UnknownName, suggest
from axode.mechanism.values.expressions import CONSTANTS, TIME, Expression, Parameter, parse_scalar
from axode.mechanism.values.functions import NAMES

if TYPE_CHECKING:
    from axode.model.model import Model

# a name with dots, and not the exponent of a number such as 1e5
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def inputs_from(model: Model, texts: Mapping[str, str]) -> dict[str, Any] | None:
    """Numbers, formulas of time and functions of the state, as `simulate` takes them.

    Raises:
        InvalidArgument: for what is not a formula.
        UnknownName: for a name that is no signal of the model.
    """
    return {name: _input(model, name, text) for name, text in texts.items()} or None


def signals_in(model: Model, text: str) -> list[str]:
    """Names in a formula that are neither functions, constants, parameters nor time."""
    known = {*NAMES, *CONSTANTS, *model.parameters, TIME}
    return list(dict.fromkeys(name for name in NAME.findall(text) if name not in known))


def _input(model: Model, name: str, text: str) -> Any:
    signals = signals_in(model, text)
    if not signals:
        return _read(f"input '{name}'", text, text, model, {})
    return formula_of_state(model, text, f"input '{name}'")


def formula_of_state(model: Model, text: str, what: str) -> Callable[[Any], Any]:
    """A function of the state's symbols from text."""
    from axode.problems.assemble.assemble import signal_name
    from axode.symbolic.algebra.formula_symbols import symbolic_value

    known = (*model.coordinates, *model.speed_names, *model.measure_names)
    try:
        own = {name: signal_name(model, name, known) for name in signals_in(model, text)}
    except UnknownName as error:
        names = (*known, *model.parameters, TIME, *CONSTANTS, *NAMES)
        raise InvalidArgument(
            f"{what}: '{error.name}' in '{text}' is not known.\n  "
            f"{suggest('name', error.name, names)}"
        ) from None
    stand_ins = {name: f"signal_{number}" for number, name in enumerate(own)}
    while set(stand_ins.values()) & {*model.parameters, *NAMES}:
        stand_ins = {name: f"{word}_" for name, word in stand_ins.items()}
    plain = NAME.sub(lambda found: stand_ins.get(found[0], found[0]), text)
    symbols = {word: Parameter(word, 0.0) for word in stand_ins.values()}
    formula = _read(what, plain, text, model, symbols)

    def of_state(s: Any) -> Any:
        values = {name: s[name] for name in model.parameters}
        values |= {stand_ins[name]: s[signal] for name, signal in own.items()}
        return symbolic_value(formula, values | {TIME: s.t})

    return of_state


def _read(what: str, plain: str, text: str, model: Model, more: dict[str, Parameter]) -> Any:
    symbols = {name: Parameter(name, value) for name, value in model.parameters.items()} | more
    try:
        formula = parse_scalar(plain, symbols)
    except ValueError as error:
        told = str(error).replace(plain, text)
        raise InvalidArgument(f"{what}: {told}") from None
    return formula if isinstance(formula, Expression) else float(formula)
