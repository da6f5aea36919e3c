"""Holding: motors that keep coordinates or measures where they are.

A motor that holds something need not act on it alone: the one that keeps a wheel of a pendulum from
turning pushes the body as well. Its effort is therefore solved for from the equations of motion,
so that what is held does not accelerate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.values.expressions import Scalar
from axode.numerics.tolerances import MISSED
from axode.symbolic.algebra.formula_symbols import symbolic_value
from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Hold:
    """A coordinate or measure kept at a value until a time, and the input that does so."""

    name: str
    value: float
    until: float
    input: str


class Holding:
    """Inputs that hold some things, as expressions of the state and the other inputs."""

    def __init__(self, equations: Equations, holds: tuple[Hold, ...]) -> None:
        self.equations, self.holds = equations, holds
        e = equations
        self.positions = [e.inputs.index(hold.input) for hold in holds]
        held = ca.vertcat(*[_symbol(e, hold.name) for hold in holds])
        rate = ca.jtimes(held, e.q, e.q_dot) + ca.jtimes(held, e.t, 1)
        acceleration = ca.jtimes(rate, e.q, e.q_dot) + ca.jtimes(rate, e.t, 1)
        acceleration += ca.jtimes(rate, e.nu, e.forward_dynamics)
        unknown = e.u[self.positions]
        effect = ca.jacobian(acceleration, unknown)
        without = ca.substitute(acceleration, unknown, ca.SX.zeros(unknown.shape))
        self.efforts = ca.solve(effect, -without)
        self._state = ca.Function("state", [e.q, e.nu, e.t, e.p], [held, rate])

    def formulas(self, others: Mapping[str, Scalar]) -> dict[str, Any]:
        """All inputs, those that hold in terms of the state."""
        e = self.equations
        known = [symbolic_value(others.get(name, 0.0), {"t": e.t}) for name in e.inputs]
        efforts = ca.substitute(self.efforts, e.u, ca.vertcat(*known))
        return dict(others) | {hold.input: efforts[k] for k, hold in enumerate(self.holds)}

    @cached_property
    def _function(self) -> Any:
        e = self.equations
        return ca.Function("efforts", [e.q, e.nu, e.u, e.t, e.p], [self.efforts])

    def inputs(self, q: Array, nu: Array, u: Array, t: float) -> Array:
        """All inputs at a state, those that hold put in."""
        full = np.array(u, dtype=float)
        parameters = list(self.equations.parameters.values())
        full[self.positions] = np.array(self._function(q, nu, u, t, parameters)).ravel()
        return full

    def check(self, q: Array, nu: Array, t: float) -> None:
        """Refuse to hold what is elsewhere or moves.

        Raises:
            InvalidArgument: naming it.
        """
        parameters = list(self.equations.parameters.values())
        values, rates = (np.array(x).ravel() for x in self._state(q, nu, t, parameters))
        for hold, value, rate in zip(self.holds, values, rates, strict=True):
            if abs(value - hold.value) > MISSED or abs(rate) > MISSED:
                raise InvalidArgument(
                    f"hold: '{hold.name}' is to be kept at {hold.value:g} and is at {value:g}, "
                    f"moving at {rate:g}"
                )


def _symbol(e: Equations, name: str) -> Any:
    if name in e.coordinates:
        return e.q[e.coordinates.index(name)]
    if name in e.measures:
        return e.measures[name].expression
    raise UnknownName(f"model '{e.name}'", "coordinate", name, (*e.coordinates, *e.measures))


def read_holds(given: Any, equations: Equations, holders: Mapping[str, str]) -> tuple[Hold, ...]:
    """What a case holds: {name: value, "until": T}.

    Args:
        given: The case's entry for it.
        equations: Equations of the mechanism.
        holders: Inputs that hold things on which no motor acts directly, by the things' names.

    Raises:
        InvalidArgument: if it is no such thing, or no motor can hold it.
    """
    if not given:
        return ()
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"hold: expected {{name: value, 'until': T}}, got {given!r}")
    until = float(given.get("until", np.inf))
    return tuple(
        Hold(name, float(value), until, holders.get(name) or _motor(equations, name))
        for name, value in given.items()
        if name != "until"
    )


def _motor(equations: Equations, name: str) -> str:
    """The input of the motor that acts on a coordinate."""
    _symbol(equations, name)
    mechanism = equations.system.mechanism
    for connection in mechanism.connections:
        if name in connection.coordinates:
            speed = connection.speeds[
                min(connection.coordinates.index(name), len(connection.speeds) - 1)
            ]
            for drive, input in zip(mechanism.drives, equations.inputs, strict=False):
                if drive.coordinate in (connection.name, name, speed):
                    return input
    raise InvalidArgument(f"hold: no motor acts on '{name}', so that none can hold it")
