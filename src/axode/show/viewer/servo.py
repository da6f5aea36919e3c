"""Speeds and limits of motors, and torques that reach a speed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from axode.errors import NotApplicable
from axode.mechanism.scene.scene import Array
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import least_norm
from axode.problems.inputs.inputs import limit_inputs

SETTLING = 0.08  # [s]: a motor's speed approaches the wanted one with this time constant
TURN_RATE, WHEEL_RATE = 2.0, 8.0  # [rad/s] that a slider reaches, of a joint and of a wheel
SLIDE_RATE = 0.2  # sizes of the mechanism per second
SAME_RATE = 1e-6  # of a rate: less is no difference
RISE = 0.4  # [s] in which the largest torque of a slider reaches the largest speed of one


class Motors:
    """The motors of a model; rates are those that their torques work on, by the power they give."""

    def __init__(self, model: Model, size: float) -> None:
        self.model, self.count = model, facts_of(model).motors
        self.names = model.inputs[: self.count]
        units = facts_of(model).input_units[: self.count]
        self.units = tuple(units)
        self.rate_units = tuple("m/s" if unit == "N" else "rad/s" for unit in units)
        turn = WHEEL_RATE if model.contacts else TURN_RATE
        slide = _round_up(SLIDE_RATE * size)
        self.most_rates = np.array([slide if unit == "N" else turn for unit in units])

    def rates(self, q: Array, nu: Array, options: dict[str, Any]) -> Array:
        """Speeds of all motors [rad/s or m/s]."""
        return self._shares(q, options) @ nu

    def rate_names(self, q: Array, options: dict[str, Any]) -> list[str]:
        """Names of the motors' speeds: those of joints, or numbers for motors between joints."""
        joints = self.model.joint_speeds(q, np.eye(len(self.model.independent)), **options)
        joints = joints - self.model.joint_speeds(q, **options)
        names: list[str] = []
        for k, share in enumerate(self._shares(q, options)):
            missed = np.linalg.norm(joints - share[:, np.newaxis], axis=0)
            place = int(np.argmin(missed))
            found = missed[place] <= SAME_RATE * np.linalg.norm(share)
            names.append(self.model.speed_names[place] if found else f"motor {k + 1}")
        return names

    def torques(self, q: Array, nu: Array, wanted: Array, options: dict[str, Any]) -> Array:
        """Inputs under which the motors approach the wanted rates, limits kept.

        Accelerations are affine in the inputs, so the inputs for wanted ones solve a linear system;
        least squares where motors are too few, least effort where they are too many.
        """
        shares = self._shares(q, options)
        still, gains = self._response(q, nu, shares, options)
        missing = (wanted - shares @ nu) / SETTLING - still
        if not (np.isfinite(gains).all() and np.isfinite(missing).all()):
            raise NotApplicable(f"'{self.model.name}' has accelerations that are not finite")
        u = np.zeros(len(self.model.inputs))
        u[: self.count] = least_norm(gains, missing, 1e-9)
        return limit_inputs(self.model, u)

    def most_torques(self, q: Array, options: dict[str, Any]) -> Array:
        """Return the largest torque of each slider: its limit, or what moves it briskly."""
        nu = np.zeros(len(self.model.independent))
        _, gains = self._response(q, nu, self._shares(q, options), options)
        alone = np.abs(np.diag(gains))
        brisk = np.divide(self.most_rates / RISE, alone, out=np.ones(self.count), where=alone > 0)
        hold = np.abs(self.torques(q, nu, np.zeros(self.count), options)[: self.count])
        limits = [math.inf if x is None else float(x) for x in facts_of(self.model).limits]
        rough = np.maximum(brisk, 2 * hold)
        return np.array(
            [
                bound if math.isfinite(bound) else _round_up(x)
                for x, bound in zip(rough, limits, strict=True)
            ]
        )

    def _shares(self, q: Array, options: dict[str, Any]) -> Array:
        """Rates of the motors for unit independent speeds: the transpose of what torques do."""
        return self.model.input_force(q, self._units(), **options)

    def _units(self) -> Array:
        return np.eye(self.count, len(self.model.inputs))

    def _response(
        self, q: Array, nu: Array, shares: Array, options: dict[str, Any]
    ) -> tuple[Array, Array]:
        """Accelerations of the motors without inputs, and what each input of one adds to each."""
        u = np.concatenate([np.zeros((1, len(self.model.inputs))), self._units()])
        made = self.model.forward_dynamics(q, nu, u, **options) @ shares.T
        return made[0], (made[1:] - made[0]).T


def _round_up(rough: float) -> float:
    """1, 2 or 5 times a power of ten, at least as large."""
    if not (math.isfinite(rough) and rough > 0):
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return float(power * min(step for step in (1.0, 2.0, 5.0, 10.0) if step * power >= rough))
