"""What a verb was given, refused early if it is something else."""

from __future__ import annotations

from typing import Any

from axode.codegen.model import Model
from axode.errors import InvalidArgument

STEPS = {"Mechanism": "mechanism.derive().compile()", "Equations": "equations.compile()"}


def refuse_no_model(verb: str, given: Any) -> None:
    """Stop at equations, mechanisms and names where a compiled model is meant.

    Raises:
        InvalidArgument: saying how to make a model of it.
    """
    if isinstance(given, Model):
        return
    kind = type(given).__name__
    remedy = STEPS.get(kind, STEPS["Mechanism"])
    raise InvalidArgument(f"{verb}: a model is needed, got {kind}; make one by {remedy}")


def seconds(name: str, given: Any) -> float:
    """A number of seconds.

    Raises:
        InvalidArgument: if it is no number.
    """
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{name}: expected a number of seconds, got {given!r}") from None
