"""Numbers of a motor at the parameters of a run, and the torque that it can give at a speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.forces import Motor
from axode.mechanism.values.expressions import (
    TIME,
    UFUNCS,
    Parameter,
    Scalar,
    evaluate,
    numeric,
    parse_scalar,
)
from axode.model.model import Model
from axode.model.model_parts import facts_of

Array = npt.NDArray[np.float64]
_ON_ARRAYS: dict[str, Any] = {kind: getattr(np, n) for n, kind in UFUNCS.items()}
_ON_ARRAYS["where"] = np.where
# what stands for a number that a motor does not have
ABSENT = {name: np.inf for name in ("limit", "continuous", "no_load_speed", "voltage")}
ABSENT |= {"torque_constant": np.nan, "resistance": np.nan, "inductance": 0.0}


@dataclass(frozen=True)
class Ratings:
    """Numbers of a motor, as in `Motor`: each one number, or one per run of a batch.

    A limit that it does not have is infinite, a constant of a winding that is not known NaN.
    """

    limit: Any
    gear: Any
    rotor_inertia: Any
    continuous: Any
    no_load_speed: Any
    efficiency: Any
    torque_constant: Any
    resistance: Any
    inductance: Any
    voltage: Any

    @classmethod
    def of(cls, motor: Motor, values: Mapping[str, Any] | None = None) -> Ratings:
        """Read the numbers of a motor at values of its parameters, their defaults elsewhere."""
        return cls(**{f.name: _value_of(getattr(motor, f.name), f.name, values) for f in fields(cls)})

    @property
    def free_speed(self) -> Any:
        """Speed at which it has no torque left [rad/s]."""
        by_voltage = self.voltage / self.torque_constant
        return np.fmin(self.no_load_speed, by_voltage)

    @property
    def stall_torque(self) -> Any:
        """Torque at rest on the line to the free speed; its current may not allow so much."""
        stall = self.torque_constant * self.voltage / self.resistance
        return np.where(np.isfinite(stall), stall, self.limit)

    def range_at(self, speed: Any) -> tuple[Any, Any]:
        """Least and largest torque that it can give at a speed, with sign [N m].

        The voltage of the supply bounds both: a motor that is driven backwards brakes with up to
        its limit, beyond the free speed it can only brake.
        """
        limit, stall, free = self.limit, self.stall_torque, self.free_speed
        bounded = np.isfinite(stall) & np.isfinite(free)
        with np.errstate(invalid="ignore"):
            slope = np.where(bounded, stall / free, 0.0) * speed
            line = np.where(bounded, stall, np.inf)
            return np.maximum(-limit, -line - slope), np.minimum(limit, line - slope)


def _value_of(scalar: Scalar | None, name: str, values: Mapping[str, Any] | None) -> Any:
    if scalar is None:
        return ABSENT[name]
    if values is None:
        return numeric(scalar)
    return np.asarray(evaluate(scalar, {TIME: 0.0, **values}, _ON_ARRAYS), dtype=float)


def ratings_of(model: Model, parameters: Mapping[str, Any]) -> tuple[Ratings, ...]:
    """Return the numbers of all motors of a model.

    Args:
        model: Whose motors they are.
        parameters: Values by name instead of the defaults, numbers or arrays.
    """
    facts = facts_of(model)
    known = {name: Parameter(name, default) for name, default in facts.parameters}
    values = {**dict(facts.parameters), **parameters}
    motors = (
        Motor(**{name: parse_scalar(text, known) for name, text in numbers})
        for numbers in facts.motor_numbers
    )
    return tuple(Ratings.of(motor, values) for motor in motors)
