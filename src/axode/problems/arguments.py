"""What a verb was given, refused early if it is something else."""

from __future__ import annotations

from typing import Any

from axode.errors import InvalidArgument
from axode.mechanism.mechanism import Mechanism
from axode.model.model import Model

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
    raise InvalidArgument(f"{verb}: a model is needed, got {kind}; make one with {remedy}")


def refuse_no_mechanism(verb: str, given: Any) -> None:
    """Stop at equations, models and names where the description itself is meant.

    Raises:
        InvalidArgument: saying where a mechanism comes from.
    """
    if isinstance(given, Mechanism):
        return
    remedy = "ax.load(path) or ax.gallery.build(name) make one"
    if type(given).__name__ in ("Equations", "Model"):
        remedy = f"give {verb} the one that was derived, since it derives by itself"
    raise InvalidArgument(f"{verb}: a mechanism is needed, got {type(given).__name__}; {remedy}")


def seconds(name: str, given: Any) -> float:
    """A number of seconds.

    Raises:
        InvalidArgument: if it is no number.
    """
    return number(name, given, "a number of seconds")


def number(name: str, given: Any, expected: str = "a number") -> float:
    """One number.

    Raises:
        InvalidArgument: if it is none, or larger than any float.
    """
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name}: expected {expected}, got {shortened(given)}") from None


def shortened(given: Any) -> str:
    """What was given, as a message shows it."""
    text = "a whole number of very many digits"
    if not isinstance(given, int) or abs(given) < 1 << 64:
        text = ascii(given) if isinstance(given, str) else repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
