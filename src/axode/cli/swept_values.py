"""Values that `axode sweep` varies: NAME=LOW:HIGH:COUNT, lists, and distributions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from axode.cli.shared import pairs, split_at_commas

if TYPE_CHECKING:
    from axode.model.model import Model

OPTION = "--over"
FORMS = "LOW:HIGH:COUNT, [1,2,3], uniform(LOW,HIGH), normal(MEAN,DEVIATION) or loguniform(LOW,HIGH)"
MOST_VALUES = 10**7
_CALL = re.compile(r"(\w+)\s*\((.*)\)")


def read_swept(given: Iterable[str] | None) -> dict[str, Any]:
    """Read lists and distributions by name.

    Raises:
        typer.BadParameter: for anything else.
    """
    return {name: _values(name, text) for name, text in pairs(OPTION, given).items()}


def _values(name: str, text: str) -> Any:
    from axode.problems.sweep.distributions import LogUniform, Normal, Uniform

    kinds = {"uniform": Uniform, "normal": Normal, "loguniform": LogUniform}
    call = _CALL.fullmatch(text)
    if call and call[1].lower() in kinds:
        return kinds[call[1].lower()](*_numbers(name, text, split_at_commas([call[2]]), 2))
    if text.startswith("[") and text.endswith("]"):
        return _numbers(name, text, split_at_commas([text[1:-1]]))
    low, high, count = _numbers(name, text, text.split(":"), 3)
    if count != int(count) or not 1 <= count <= MOST_VALUES:
        raise _wrong(name, text)
    return np.linspace(low, high, int(count))


def _numbers(name: str, text: str, parts: list[str], count: int | None = None) -> list[float]:
    from axode.mechanism.values.expressions import parse_scalar

    try:
        found = [float(parse_scalar(part, {})) for part in parts]  # type: ignore[arg-type]
    except (ValueError, TypeError):
        raise _wrong(name, text) from None
    if not all(map(math.isfinite, found)) or (count is not None and len(found) != count):
        raise _wrong(name, text)
    return found


def _wrong(name: str, text: str) -> typer.BadParameter:
    return typer.BadParameter(
        f"'{name}' needs values such as {FORMS}, and not '{text}'", param_hint=OPTION
    )


def read_outputs(given: Iterable[str] | None) -> dict[str, tuple[str, str]] | None:
    """Read NAME=KIND:QUANTITY; None if nothing is given.

    Raises:
        typer.BadParameter: for anything else.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, text in pairs("--output", given).items():
        how, colon, what = (part.strip() for part in text.partition(":"))
        if not colon or not how or not what:
            raise typer.BadParameter(
                f"'{name}={text}' is not NAME=KIND:QUANTITY, as in --output top=max:pitch",
                param_hint="--output",
            )
        found[name] = (how, what)
    return found or None


def group_values(
    model: Model, shared: dict[str, dict[str, Any]], swept: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Put swept values to the start, the parameters or the inputs, wherever each belongs.

    Args:
        model: Owner of the names.
        shared: Values that all rows share, by "start", "parameter" and "input".
        swept: Values that are swept, by name.
    """
    from axode.problems.sweep.sweep_rows import locate

    groups = {group: dict(values) for group, values in shared.items()}
    for name, values in swept.items():
        own = groups[locate(model, name)]
        if name in own:
            raise typer.BadParameter(
                f"'{name}' is given one value and swept too", param_hint=OPTION
            )
        own[name] = values
    return groups
