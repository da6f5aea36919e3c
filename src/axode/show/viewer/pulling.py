"""A spring between a point of a body and the pointer that drags it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.mechanism.scene.scene import Array
from axode.model.model import Model

PULL = 200.0  # [m/s2] of what the spring moves, if it is as long as the mechanism
NEAR = 0.1  # of the mechanism's size: the spring suits points at least so far from the mass centre
RIGID = 1e-12  # [1/kg]: a body that responds less does not move


@dataclass(frozen=True)
class Pull:
    """A body that is dragged.

    Attributes:
        body: Its place among the bodies.
        centre: Its mass centre, in its own axes [m].
        point: Where it is held, in its own axes [m].
        target: Where the pointer is, in the world [m].
        size: Size of the mechanism [m].
    """

    body: int
    centre: Array
    point: Array
    target: Array
    size: float


def pulled_speeds(
    model: Model, q: Array, nu: Array, pull: Pull, duration: float, options: dict[str, Any]
) -> Array:
    """Speeds after the impulse of a damped spring over some time.

    The spring suits the least effective mass of points around the mass centre, as far from it as
    the one that is held: critically damped, and as strong for a light part as for a heavy one.
    Where the held point hardly moves, as next to an axis, it is not stronger than that. Its force
    is that at the end of the time (implicit Euler), so that long frames do not make it unstable.

    Args:
        model: What moves.
        q: Coordinates.
        nu: Independent speeds before.
        pull: The body and the pointer.
        duration: Length of time [s].
        options: Time and parameters, as the model's functions take them.

    Returns:
        Independent speeds after.
    """
    pose = model.poses(q, **options)[pull.body]
    arm = pose[:3, :3] @ (pull.point - pull.centre)
    held = pose[:3, :3] @ pull.point + pose[:3, 3]
    still = model.twists(q, np.zeros(len(nu)), **options)[pull.body]
    twists = model.twists(q, np.eye(len(nu)), **options)[:, pull.body] - still
    inertia = model.mass_matrix(q, **options)
    J = _point_jacobian(twists, arm)
    velocity = J @ nu + still[3:] + np.cross(still[:3], arm)
    answer = np.linalg.solve(inertia, J.T)  # speeds per impulse
    response = J @ answer
    around = max(float(np.linalg.norm(arm)), NEAR * pull.size) * np.concatenate(
        [np.eye(3), -np.eye(3)]
    )
    others = [_point_jacobian(twists, other) for other in around]
    responses = [response, *(K @ np.linalg.solve(inertia, K.T) for K in others)]
    softest = float(np.linalg.eigvalsh(np.stack(responses)).max())
    if not softest > RIGID:
        return nu
    frequency = np.sqrt(PULL / pull.size)
    stiffness, damping = frequency**2 / softest, 2 * frequency / softest
    coming = stiffness * (pull.target - held - duration * velocity) - damping * velocity
    weight = duration * damping + duration**2 * stiffness
    force = np.linalg.solve(np.eye(3) + weight * response, coming)
    after: Array = nu + duration * answer @ force
    return after


def _point_jacobian(twists: Array, arm: Array) -> Array:
    """Velocity of a point, so far from the mass centre, for unit independent speeds: (3, n)."""
    jacobian: Array = (twists[:, 3:] + np.cross(twists[:, :3], arm)).T
    return jacobian
