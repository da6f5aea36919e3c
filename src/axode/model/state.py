"""A consistent state of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.signal_values import state_values
from axode.names import NamedValues

if TYPE_CHECKING:
    from axode.model.model import Model

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A consistent state of a model, as `assemble` finds it, or a batch of them.

    Attributes:
        q: Coordinates, (..., size), in the order of `model.coordinates`.
        nu: Independent speeds, (..., size), in the order of `model.independent`.
        residual: Largest residual of loops and contacts [m or rad].
        model: What it is a state of.
        conditions: Time and parameters it was found for.
    """

    q: Array
    nu: Array
    residual: float
    model: Model
    conditions: Conditions = field(default_factory=Conditions)

    def __getitem__(self, name: str) -> Any:
        """A coordinate, any joint speed, a measure or an energy by name."""
        signals = self.model.signals
        full = signals.state_names.resolve(name)
        signal = signals.resolve(full)
        if signal.function == "energy":
            return self.model.energy(self.q, self.nu, **self.conditions.options)[..., signal.index]
        return self.as_dict()[full]

    def __repr__(self) -> str:
        if self.q.ndim > 1:
            return f"State(batch of shape {self.q.shape[:-1]} of '{self.model.name}')"
        named = {**dict(zip(self.model.coordinates, self.q, strict=True))}
        named |= zip(self.model.independent, self.nu, strict=True)
        values = ", ".join(f"{name}={value:.6g}" for name, value in named.items())
        return f"State of '{self.model.name}': {values}"

    def vectors(self, model: Model) -> tuple[Array, Array]:
        """q and nu in the order of a model, which may have other independent speeds."""
        own = (self.model.coordinates, self.model.independent)
        if own == (model.coordinates, model.independent):
            return self.q, self.nu
        values = self.as_dict()
        q, nu = ([values[n] for n in names] for names in (model.coordinates, model.independent))
        return np.moveaxis(np.array(q), 0, -1), np.moveaxis(np.array(nu), 0, -1)

    def as_dict(self) -> NamedValues:
        """Coordinates, all joint speeds and measures by name."""
        return state_values(self.model, self.q, self.nu, self.conditions)
