"""Rows that a model left out because they follow from others, at the parameters' defaults.

At other values they may hold something of their own: two wheels on one axle slide sideways
together, two wheels one behind the other do not. Such values ask for another model.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import FIVE_DIGITS

Array = npt.NDArray[np.float64]
NAMED = 4  # rows and parameters that a message names


def check_dropped_rows(model: Model, q: Array, conditions: Conditions) -> None:
    """Require parameters at which the rows that the model left out still follow from others.

    Args:
        model: Whose parameters they are.
        q: Closed coordinates, (size,) or (states, size).
        conditions: Time and parameters, of all states or one per state.

    Raises:
        InvalidArgument: naming the rows and the parameters that differ from their defaults.
    """
    missed = describe_missed_rows(model, q, conditions)
    if missed:
        raise InvalidArgument(missed)


def describe_missed_rows(model: Model, q: Array, conditions: Conditions) -> str | None:
    """Describe constraints that a model lacks at some parameters, and the remedy."""
    facts, p = facts_of(model), conditions.p
    if p is None or not facts.row_parameters or "dropped_rows" not in model.functions:
        return None
    names, defaults = list(model.parameters), model.parameter_vector()
    which = [names.index(name) for name in facts.row_parameters]
    q = np.atleast_2d(q)
    many = p.ndim > 1
    p = np.broadcast_to(p, (len(q), len(names)))
    differs = np.zeros(len(p), dtype=bool)
    for k in which:  # column by column: a million rows of all take longer
        differs |= p[:, k] != defaults[k]
    other = np.flatnonzero(differs)
    other = other[np.isfinite(q[other]).all(axis=1)]
    if not other.size:
        return None
    there = conditions.spread((len(q),)).at(other)
    off = model.evaluate("dropped_rows", {"q": np.ascontiguousarray(q[other])}, there.options)
    worst = np.nanmax(off, axis=1, initial=0.0)
    if worst.max() <= FIVE_DIGITS:
        return None
    run = int(np.argmax(worst))
    rows = [row for row, size in zip(facts.dropped, off[run], strict=True) if size > FIVE_DIGITS]
    values = [
        f"{names[k]} = {p[other[run], k]:.6g} instead of {defaults[k]:.6g}"
        for k in which
        if p[other[run], k] != defaults[k]
    ]
    of = f" (run {other[run]} of {len(p)})" if many else ""
    return (
        f"'{model.name}' with {_listed(values)}{of}: constraints that this model left out, because "
        f"they follow from others at the parameters' defaults, no longer do: {_listed(rows)}.\n"
        "  Build the mechanism with these values as defaults and derive it again."
    )


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return ", ".join(words[:NAMED]) + more
