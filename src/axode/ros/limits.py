"""Limits of speed and acceleration that wheels, friction and motors allow, for Nav2.

At given velocities the ground's forces and the motors' torques are linear in the accelerations of
the base, and what friction, loads and motors allow is convex: a box of accelerations is possible if
its corners are. So all corners of speeds and accelerations are evaluated together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, NotApplicable
from axode.mechanism.topology import speed_meanings
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.motors.duty import ratings_of, shaft_torque
from axode.numerics.rank import pseudo_inverse
from axode.numerics.tolerances import RANK, SEVEN_DIGITS
from axode.problems.arguments import number
from axode.problems.feasible.feasible import friction_shares
from axode.problems.feasible.loads import DrivenMotion, GroundForces, by_contact, ground_forces
from axode.ros.controllers import base_velocities, real, rolling_model

Array = npt.NDArray[np.float64]
HALVINGS = 20
MOST = 1e4  # [m/s^2, rad/s^2]: nothing limits what is still possible here


@dataclass(frozen=True)
class VelocityLimits:
    """Limits of a robot that may be used together.

    Attributes:
        speed, turn: Largest speed [m/s] and turn rate [rad/s], as asked for.
        acceleration, deceleration: While speeding up and slowing down [m/s²].
        turn_acceleration: Rate of change of the turn rate, either way [rad/s²].
        share: Part of friction, load and torque that they use at most.
    """

    speed: float
    turn: float
    acceleration: float
    deceleration: float
    turn_acceleration: float
    share: float

    def nav2(self) -> str:
        """Return the parameters of Nav2's velocity smoother as YAML."""

        def vector(x: float, turn: float) -> str:
            return f"[{real(x)}, 0.0, {real(turn)}]"

        return "\n".join(
            [
                "velocity_smoother:",
                "  ros__parameters:",
                f"    max_velocity: {vector(self.speed, self.turn)}",
                f"    min_velocity: {vector(-self.speed, -self.turn)}",
                f"    max_accel: {vector(self.acceleration, self.turn_acceleration)}",
                f"    max_decel: {vector(-self.deceleration, -self.turn_acceleration)}",
                "",
            ]
        )


def velocity_limits(
    model: Model,
    speed: float,
    turn: float,
    friction: float | Mapping[str, float],
    *,
    share: float = 0.8,
    parameters: Mapping[str, float] | None = None,
) -> VelocityLimits:
    """Find accelerations that wheels and motors can give at all speeds up to the given ones.

    Args:
        model: A robot on wheels, on level ground, that drives along and turns. Wheels with friction
            are taken to roll, and must not slip.
        speed: Largest speed, forwards and backwards [m/s].
        turn: Largest turn rate, to both sides, at any of these speeds [rad/s].
        friction: Coefficient of friction, one or by wheel.
        share: Part of friction, wheel load and motor torque that may be used.
        parameters: Values by name instead of the defaults.

    Raises:
        NotApplicable: for robots that do not move so.
        InvalidArgument: if not even the speeds are possible, with what is in the way.
    """
    check_arguments(velocity_limits, locals())
    model = rolling_model("velocity_limits", model)
    speed, turn, share = (
        number(name, value) for name, value in (("speed", speed), ("turn", turn), ("share", share))
    )
    if not (0 < speed < np.inf and 0 < turn < np.inf and 0 < share <= 1):
        raise InvalidArgument(
            "velocity_limits: speed and turn must be > 0 and finite, share above 0 and up to 1; "
            f"got {speed:g}, {turn:g}, {share:g}"
        )
    base = _Base(model, by_contact(model, "friction", friction, 1.0), parameters)
    corners = np.array([(v, w) for v in (-speed, 0.0, speed) for w in (-turn, 0.0, turn)])
    used, why = base.used(corners, np.zeros_like(corners))
    if not (used <= share).all():
        k = int(np.argmax(used))
        v, w = corners[k]
        part = f"{used[k]:.0%}" if np.isfinite(used[k]) else "more than all"
        raise InvalidArgument(
            f"velocity_limits: at {v:g} m/s and {w:g} rad/s '{model.name}' uses {part} of "
            f"{why[k]}, and may use {share:.0%}: lower speed or turn"
        )

    def possible(faster: float, slower: float, turning: float) -> bool:
        states, rates = [], []
        for v, w in corners:
            ahead = (
                (faster, -slower) if v > 0 else (slower, -faster) if v < 0 else (faster, -faster)
            )
            for a in ahead:
                for b in (-turning, turning):
                    states.append((v, w))
                    rates.append((a, b))
        return bool((base.used(np.array(states), np.array(rates))[0] <= share).all())

    alone = [
        _largest(lambda x, k=k: possible(*(x * (np.arange(3) == k))), MOST)  # type: ignore[misc]
        for k in range(3)
    ]
    if max(alone) >= MOST:
        raise NotApplicable(
            f"velocity_limits: nothing limits '{model.name}'; give its motors limits, "
            "add_motor(..., limit=...)"
        )
    together = _largest(lambda x: possible(*(x * np.array(alone))), 1.0)
    a, d, b = (float(together * x) for x in alone)
    return VelocityLimits(speed, turn, a, d, b, share)


def _largest(possible: Callable[[float], bool], most: float) -> float:
    """Largest number up to `most` that is possible, if smaller ones are: doubled, then halved."""
    low, high = 0.0, min(1.0, most)
    while possible(high):
        if high >= most:
            return most
        low, high = high, min(2 * high, most)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if possible(middle) else (low, middle)
    return low


class _Base:
    """What motions of a base use of friction, loads and motors.

    Args:
        model: The robot.
        friction: Coefficient of friction by wheel.
        parameters: Values by name instead of the defaults.
    """

    def __init__(
        self, model: Model, friction: Mapping[str, float], parameters: Mapping[str, float] | None
    ) -> None:
        self.model, self.conditions = model, Conditions.of(model, parameters=parameters)
        self.mu = np.array([friction[name] for name in model.contacts])
        self.ratings = ratings_of(model, self.conditions.named(model))
        mechanism = model.equations.system.mechanism
        meanings = speed_meanings(mechanism)
        self.joints = [
            model.speed_names.index(meanings[drive.coordinate]) for drive in mechanism.drives
        ]
        forward = base_velocities(model)
        straight = pseudo_inverse(forward, tolerance=RANK)[:, [0, 2]]
        if np.abs(forward @ straight - np.eye(3)[:, [0, 2]]).max() > SEVEN_DIGITS:
            straight = pseudo_inverse(forward[[0, 2]], tolerance=RANK)  # its frame swings out
        self.inverse = straight
        if np.abs(forward[[0, 2]] @ self.inverse - np.eye(2)).max() > SEVEN_DIGITS:
            raise NotApplicable(
                f"velocity_limits: '{model.name}' cannot drive along and turn at will"
            )
        rest = self._forces(np.zeros((1, 2)), np.zeros((1, 2)))[0].evenness
        if not rest[0] > 0.0:
            raise InvalidArgument(
                f"velocity_limits: '{model.name}' does not stand on its wheels: {min(rest):.2g} of "
                "the mean load on the least loaded one"
            )
        self.standing = float(rest[0])

    def used(self, velocities: Array, accelerations: Array) -> tuple[Array, list[str]]:
        """Return the largest part that is used of anything, per state, and of what.

        Args:
            velocities: Speed and turn rate, (states, 2).
            accelerations: Their rates, (states, 2).
        """
        model = self.model
        found, u, v, v_dot = self._forces(velocities, accelerations)
        columns = [
            friction_shares(found, self.mu).max(axis=-1),
            1.0 - found.evenness / self.standing,
        ]
        names = ["friction", "the loads that keep it upright"]
        for k, (motor, joint) in enumerate(zip(self.ratings, self.joints, strict=True)):
            rate, change = (motor.gear * x[:, joint, np.newaxis] for x in (v, v_dot))
            torque = shaft_torque(motor, u[:, k, np.newaxis], rate, change)[:, 0]
            low, high = motor.range_at(rate[:, 0])
            allowed = np.where(torque > 0, high, -low)
            with np.errstate(divide="ignore", invalid="ignore"):
                part = np.where(allowed > 0, np.abs(torque) / allowed, np.inf)
            columns.append(np.where(torque == 0.0, 0.0, part))
            names.append(f"motor '{model.inputs[k].rpartition('.')[0] or model.inputs[k]}'")
        table = np.stack(columns, axis=-1)
        return table.max(axis=-1), [names[k] for k in table.argmax(axis=-1)]

    def _forces(
        self, velocities: Array, accelerations: Array
    ) -> tuple[GroundForces, Array, Array, Array]:
        """Find forces of the ground and the motors, joint speeds and their rates."""
        model, o = self.model, self.conditions.options
        q = np.tile(model.home, (len(velocities), 1))
        nu, nu_dot = velocities @ self.inverse.T, accelerations @ self.inverse.T
        u, missing = model.inverse_dynamics_with_residual(q, nu, nu_dot, **o)
        v, v_dot = model.joint_speeds(q, nu, **o), model.accelerations(q, nu, nu_dot, **o)
        extra = np.zeros_like(v)
        extra[:, [model.speed_names.index(name) for name in model.independent]] = missing
        stiffness = dict.fromkeys(model.contacts, 1.0)
        conditions = Conditions(np.zeros(len(q)), self.conditions.p)
        motion = DrivenMotion(q, v, v_dot, u, extra)
        found = ground_forces(model, motion, stiffness, conditions)
        return found, u, v, v_dot
