"""Formulas of the state in text: `input={"left.torque": "60*pitch + 15*pitch_rate"}`.

They are parsed and never executed. Names of signals are replaced by parameters of the formulas that
mechanism files use, and the result is traced as a Python function of the state is.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

from axode.errors import InvalidArgument, UnknownName, suggest
from axode.mechanism.values.expressions import (
    CONSTANTS,
    NAMES,
    TIME,
    Expression,
    Parameter,
    parse_scalar,
)
from axode.model.model import Model
from axode.names import SIGNAL_NAME as NAME


def parse_formula(
    model: Model, text: str, what: str, *, inputs: bool = False
) -> float | Expression | Callable[[Any], Any]:
    """Number, formula of time and parameters, or function of the state that a text means.

    Args:
        model: Owner of the parameters and signals.
        text: The formula.
        what: What it is for, for error messages.
        inputs: Whether it may depend on inputs.

    Raises:
        InvalidArgument: for what is not a formula, and for a name that means nothing.
    """
    names = _signals_in(model, text)
    if not names:
        return _parse(what, text, text, model, {})
    known = model.signals.step_names if inputs else model.signals.state_names
    try:
        signals = {name: known.resolve(name) for name in names}
    except UnknownName as error:
        if len(known.matching(error.name)) > 1:
            raise InvalidArgument(f"{what}: {error}") from None
        others = (*known.known, *model.parameters, TIME, *CONSTANTS, *NAMES)
        raise InvalidArgument(
            f"{what}: '{error.name}' in '{text}' is not known.\n  "
            f"{suggest('name', error.name, others)}"
        ) from None
    stand_ins = {name: stand_in(model, k) for k, name in enumerate(signals)}
    plain = NAME.sub(lambda found: stand_ins.get(found[0], found[0]), text)
    symbols = {word: Parameter(word, 0.0) for word in stand_ins.values()}
    formula = _parse(what, plain, text, model, symbols)
    meanings = {stand_ins[name]: full for name, full in signals.items()}
    return lambda state: state.evaluate(formula, meanings)


def name_or_function(model: Model, given: Any, what: str, *, inputs: bool = False) -> Any:
    """Return a formula in text as a function of the state; names and functions as they are.

    Args:
        model: Owner of the parameters and signals.
        given: Name of a signal, formula or function.
        what: What it is for, for error messages.
        inputs: Whether a formula may depend on inputs.
    """
    if not isinstance(given, str) or model.signals.names().matching(given):
        return given
    alone = (TIME, *model.parameters, *CONSTANTS)
    if NAME.fullmatch(given) and given not in alone:
        return given  # unknown here: who asked has further names, or refuses it
    formula = parse_formula(model, given, what, inputs=inputs)
    return formula if callable(formula) else lambda state: state.evaluate(formula, {})


def stand_in(model: Model, number: int) -> str:
    """Name of a parameter that stands for a signal in a formula."""
    word = f"signal_{number}"
    while word in model.parameters:
        word += "_"
    return word


def _signals_in(model: Model, text: str) -> list[str]:
    """Names in a formula that are neither functions, constants, parameters nor time."""
    known = {*NAMES, *CONSTANTS, *keyword.kwlist, *model.parameters, TIME}
    return list(dict.fromkeys(name for name in NAME.findall(text) if name not in known))


def _parse(
    what: str, plain: str, text: str, model: Model, more: dict[str, Parameter]
) -> float | Expression:
    symbols = {name: Parameter(name, value) for name, value in model.parameters.items()} | more
    try:
        formula = parse_scalar(plain, symbols)
    except ValueError as error:
        raise InvalidArgument(f"{what}: {str(error).replace(plain, text)}") from None
    return formula if isinstance(formula, Expression) else float(formula)
