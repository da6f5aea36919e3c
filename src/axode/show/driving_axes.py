"""Which motors make a vehicle go ahead, go sideways and turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.mechanism.scene.scene import GROUND, Array, Scene
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.rank import least_norm, null_space
from axode.numerics.tolerances import NO_MOTION, NOTICEABLE, RANK

POSSIBLE = 0.5  # of a wanted velocity: a motion that misses more of it is another one
TRIAL = 1e-2  # [s] for which steering turns to see where it leads
STEERING_ANGLE = 0.6  # [rad] to either side, of what is steered by an angle


@dataclass(frozen=True)
class DrivingAxis:
    """One thing that a driver can ask for.

    Attributes:
        name: "ahead", "sideways" or "turn".
        rates: Rates of the motors, the largest one.
        coordinates: For steering by an angle, the place of each motor's coordinate, -1 for motors
            that do not steer; empty for what is driven by rates.
    """

    name: str
    rates: tuple[float, ...]
    coordinates: tuple[int, ...] = ()


def driving_axes(
    model: Model, scene: Scene, q: Array, options: dict[str, Any]
) -> tuple[DrivingAxis, ...]:
    """Axes of a vehicle at a configuration; none for what stays where it is.

    Ahead is the axis of the chassis, x before y, along which it goes without turning. What cannot
    turn by its wheels alone turns by the motors that move nothing else, as a steered fork does:
    these are given an angle instead of a rate.
    """
    wheels = {touch.body for touch in scene.touches if scene.floors[touch.floor].body == GROUND}
    motors = facts_of(model).motors
    if not wheels or not motors:
        return ()
    chassis = next((k for k, body in enumerate(scene.bodies) if body not in wheels), 0)
    plane = _velocities(model, chassis, q, options)
    shares = model.input_force(q, np.eye(motors, len(model.inputs)), **options)
    along, across, turning = (_rates(plane, shares, direction) for direction in np.eye(3))
    found = [DrivingAxis("ahead", _largest_one(x)) for x in (along, across) if x is not None][:1]
    if not found:
        return ()
    if along is not None and across is not None and _differ(along, across):
        found.append(DrivingAxis("sideways", _largest_one(across)))
    if turning is not None:
        found.append(DrivingAxis("turn", _largest_one(turning)))
    else:
        found += _steered(model, q, options, plane, shares, chassis)
    return tuple(found)


def _velocities(model: Model, chassis: int, q: Array, options: dict[str, Any]) -> Array:
    """Velocities of the chassis along its x and y and about z, for unit independent speeds."""
    n = len(model.independent)
    axes = model.poses(q, **options)[chassis, :3, :3]
    still = model.twists(q, np.zeros(n), **options)[chassis]
    twists = model.twists(q, np.eye(n), **options)[:, chassis] - still
    return np.stack([twists[:, 3:] @ axes[:, 0], twists[:, 3:] @ axes[:, 1], twists[:, 2]])


def _rates(plane: Array, shares: Array, direction: Array) -> Array | None:
    """Rates of the motors for a velocity of the chassis; None where it cannot have it."""
    nu = least_norm(plane, direction, RANK)
    rates: Array = shares @ nu
    missed = np.linalg.norm(plane @ nu - direction)
    return rates if missed < POSSIBLE and np.abs(rates).max() > NO_MOTION else None


def _differ(a: Array, b: Array) -> bool:
    """Check that rates are not multiples of each other."""
    rest = b - a * (a @ b) / (a @ a)
    return bool(np.linalg.norm(rest) > NOTICEABLE * np.linalg.norm(b))


def _largest_one(rates: Array) -> tuple[float, ...]:
    return tuple((rates / np.abs(rates).max()).tolist())


def _steered(
    model: Model, q: Array, options: dict[str, Any], plane: Array, shares: Array, chassis: int
) -> list[DrivingAxis]:
    """Steering by motors that leave the chassis where it is, to the left for one that goes ahead.

    A fork behind the fixed axle turns the other way, so the vehicle is tried with its fork turned.
    """
    Z = null_space(plane, RANK)
    steering = Z @ Z.T @ np.ones(len(model.independent))
    rates = shares @ steering
    if np.abs(rates).max() <= NO_MOTION:
        return []
    turned = q + TRIAL * model.rates(q, steering, **options)
    after = _velocities(model, chassis, turned, options)
    ahead = next(e for e in np.eye(3)[:2] if np.linalg.norm(plane.T @ e) > NO_MOTION)
    if (after @ least_norm(after, ahead, RANK))[2] < 0.0:
        rates = -rates
    places = [
        place if abs(rate) > NO_MOTION else -1
        for place, rate in zip(motor_coordinates(model, q, options), rates, strict=True)
    ]
    angles = tuple(places) if any(place >= 0 for place in places) else ()
    return [DrivingAxis("turn", _largest_one(rates), angles)]


def motor_coordinates(model: Model, q: Array, options: dict[str, Any]) -> tuple[int, ...]:
    """Place of the coordinate that each motor moves; -1 for a motor whose joint has none."""
    n, motors = len(model.independent), facts_of(model).motors
    moving = model.rates(q, np.eye(n), **options) - model.rates(q, np.zeros(n), **options)
    shares = model.input_force(q, np.eye(motors, len(model.inputs)), **options)
    return tuple(moved_by(moving, share) for share in shares)


def moved_by(moving: Array, share: Array) -> int:
    """Place of the joint or coordinate whose rate is that of a motor; -1 if there is none."""
    missed = np.linalg.norm(moving - share[:, np.newaxis], axis=0)
    place = int(np.argmin(missed))
    return place if missed[place] <= NO_MOTION * np.linalg.norm(share) else -1
