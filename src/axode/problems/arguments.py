"""Check what a verb was given, before anything is computed."""

from __future__ import annotations

from typing import Any

from axode.errors import InvalidArgument
from axode.mechanism.mechanism import Mechanism
from axode.model.model import Model

STEPS = {"Mechanism": "mechanism.derive().compile()", "Equations": "equations.compile()"}


def require_model(verb: str, given: Any) -> None:
    """Require a compiled model, not a mechanism, equations or a name.

    Raises:
        InvalidArgument: saying how to make a model of it.
    """
    if isinstance(given, Model):
        return
    kind = type(given).__name__
    remedy = STEPS.get(kind, STEPS["Mechanism"])
    raise InvalidArgument(f"{verb}: a model is needed, got {kind}; make one with {remedy}")


def require_mechanism(verb: str, given: Any) -> None:
    """Require a mechanism, not equations, a model or a name.

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
    """Return a number of seconds.

    Raises:
        InvalidArgument: if it is no number.
    """
    return number(name, given, "a number of seconds")


def number(name: str, given: Any, expected: str = "a number") -> float:
    """Return one number.

    Raises:
        InvalidArgument: if it is none, or larger than any float.
    """
    try:
        return float(given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name}: expected {expected}, got {shortened(given)}") from None


def shortened(given: Any) -> str:
    """Shorten what was given for a message."""
    text = "a whole number of very many digits"
    if not isinstance(given, int) or abs(given) < 1 << 64:
        text = ascii(given) if isinstance(given, str) else repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."
