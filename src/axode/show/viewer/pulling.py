"""A spring between a point of a body and the pointer that drags it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.mechanism.scene.scene import Array
from axode.model.model import Model

PULL = 200.0  # [m/s2] of what the spring moves, if it is as long as the mechanism
LOOSE = 1e-12  # of the largest response: a point that responds less does not move


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

    The spring suits the effective mass of the point in the direction that moves most easily:
    critically damped, and as strong for a light part as for a heavy one. Its force is that at the
    end of the time (implicit Euler), so that long frames do not make it unstable.

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
    J = (twists[:, 3:] + np.cross(twists[:, :3], arm)).T
    velocity = J @ nu + still[3:] + np.cross(still[:3], arm)
    answer = np.linalg.solve(model.mass_matrix(q, **options), J.T)  # speeds per impulse
    response = J @ answer
    softest = float(np.linalg.eigvalsh(response)[-1])
    if not softest > LOOSE:
        return nu
    frequency = np.sqrt(PULL / pull.size)
    stiffness, damping = frequency**2 / softest, 2 * frequency / softest
    coming = stiffness * (pull.target - held - duration * velocity) - damping * velocity
    weight = duration * damping + duration**2 * stiffness
    force = np.linalg.solve(np.eye(3) + weight * response, coming)
    after: Array = nu + duration * answer @ force
    return after
