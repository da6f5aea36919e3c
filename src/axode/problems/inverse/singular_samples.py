"""Inverse dynamics of samples at which the user's model is singular, by other models."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.state import update_balance
from axode.numerics.rank import least_norm
from axode.problems.other_models import DescribedStates, SignalsElsewhere

Array = npt.NDArray[np.float64]


def evaluate_power(model: Model, q: Array, nu: Array, u: Array, missing: Array, o: Any) -> Array:
    """Evaluate the power supplied and dissipated [W]."""
    power = model.evaluate("state_rate", {"q": q, "nu": nu, "u": u}, o)[..., -2:].copy()
    power[..., 0] += (missing * nu).sum(axis=-1)
    return power


class SingularSamples:
    """Samples of a motion that other models describe, where the user's is singular."""

    def __init__(
        self,
        own: Model,
        described: DescribedStates | None,
        motion: tuple[Array, Array, Array, Array],
        conditions: Conditions,
        weights: Any,
    ) -> None:
        self.own, self.conditions, self.weights = own, conditions, weights
        self.q, self.nu, self.nu_dot, self.outside = motion
        self.parts = [] if described is None else list(described.others())

    def own_speeds(self) -> tuple[Array, Array]:
        """Give speeds and accelerations of the user's model; NaN where others do better."""
        nu, nu_dot = self.nu.copy(), self.nu_dot.copy()
        for _, k in self.parts:
            nu[k] = nu_dot[k] = np.nan
        return nu, nu_dot

    def solve(self, u: Array, missing: Array, power: Array) -> None:
        """Fill in inputs, missing forces on the user's speeds and powers of these samples."""
        for model, k in self.parts:
            o, q, nu = self.conditions.at(k).options, self.q[k], self.nu[k]
            u[k], short = model.inverse_dynamics_with_residual(
                q, nu, self.nu_dot[k], u=self.outside[k], weights=self.weights, **o
            )
            power[k] = evaluate_power(model, q, nu, u[k], short, o)
            chosen = [model.speed_names.index(name) for name in self.own.independent]
            to_own = np.swapaxes(model.speed_map(q, **o)[:, chosen], 1, 2)
            missing[k] = least_norm(to_own, short)

    def overwrite(self, values: Array, w: Array, u: Array) -> None:
        """Fill in all signals of these samples."""
        for model, k in self.parts:
            there = SignalsElsewhere(
                model, self.own, self.q[k], self.nu[k], w[k], u[k], self.conditions.at(k)
            )
            values[k] = there.values()
        if self.parts:
            update_balance(self.own, values)
