"""Laws: functions of the state that give inputs, with gains that have names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.named_arguments import as_numbers

Array = npt.NDArray[np.float64]


class Law:
    """A function of the state that gives inputs, and its gains by name.

    It is an input of `simulate`, `sweep` and `Cost`. Gains are arguments of the compiled steps:
    other numbers need no compiling, arrays of them make a batch of runs, and `gradient`
    differentiates by them.

    Args:
        function: Called with the state's symbols and the gains as keywords; returns inputs by
            name, or all of them.
        **gains: Numbers, or arrays of the shape of a batch.

    Attributes:
        function: The function.
        gains: The gains by name, in the order given.

    Raises:
        InvalidArgument: for gains that are not finite numbers, or that do not fit each other.
        UnknownName: for gains that the function does not take.
    """

    def __init__(self, function: Callable[..., Any], /, **gains: npt.ArrayLike) -> None:
        if not callable(function):
            raise InvalidArgument(
                f"Law: expected a function of the state and of its gains, got {shortened(function)}"
            )
        self.function = function
        self.gains = {name: _checked(name, value) for name, value in gains.items()}
        _check_signature(function, self.gains)
        try:
            self.batch = np.broadcast_shapes(*(gain.shape for gain in self.gains.values()))
        except ValueError:
            shapes = {name: gain.shape for name, gain in self.gains.items()}
            raise InvalidArgument(f"Law: shapes of gains do not fit each other: {shapes}") from None

    def __call__(self, state: Any) -> Any:
        """Inputs at a state.

        Raises:
            InvalidArgument: if a gain is an array.
        """
        several = [name for name, gain in self.gains.items() if gain.ndim]
        if several:
            raise InvalidArgument(
                f"Law: one number is needed for each of {', '.join(several)} here; arrays of gains "
                "make batches of simulate and Cost"
            )
        return self.function(state, **{name: float(gain) for name, gain in self.gains.items()})

    def changed(self, **gains: npt.ArrayLike) -> Law:
        """Return the same law with other values of some gains.

        Raises:
            UnknownName: for gains that it does not have.
        """
        for name in gains:
            if name not in self.gains:
                raise UnknownName("law", "gain", name, tuple(self.gains))
        return Law(self.function, **{**self.gains, **gains})

    def array(self) -> Array:
        """All gains along the last axis, after those of the batch."""
        return np.stack([np.broadcast_to(g, self.batch) for g in self.gains.values()], axis=-1)

    def __repr__(self) -> str:
        listed = (
            f"{name}={float(gain):g}" if not gain.ndim else f"{name}: {gain.shape}"
            for name, gain in self.gains.items()
        )
        return f"Law({', '.join([getattr(self.function, '__name__', 'function'), *listed])})"


def _checked(name: str, value: npt.ArrayLike) -> Array:
    array = as_numbers(f"Law, gain '{name}'", value)
    if not np.isfinite(array).all():
        raise InvalidArgument(f"Law: gain '{name}' must be finite")
    return array


def _check_signature(function: Callable[..., Any], gains: Mapping[str, Any]) -> None:
    """Check that a function takes these gains and no others, where that can be seen."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[1:]
    except (TypeError, ValueError):
        return
    if any(p.kind == p.VAR_KEYWORD for p in parameters):
        return
    taken = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.POSITIONAL_ONLY)]
    for name in gains:
        if name not in taken:
            raise UnknownName("law", "gain", name, tuple(taken))
    missing = [p.name for p in parameters if p.name not in gains and p.default is p.empty]
    if missing:
        raise InvalidArgument(
            f"Law: the function also takes {', '.join(missing)}; give each a value, "
            f"Law(function, {missing[0]}=...)"
        )
