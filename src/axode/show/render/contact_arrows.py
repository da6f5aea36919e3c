"""Contact forces as arrows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Scene, touch_axes, touch_points

FORCES = ((26, 71, 186), (208, 95, 22), (19, 143, 97))  # longitudinal, lateral, normal
LEAST = 0.02  # usual forces: smaller ones are not drawn
LENGTH = 0.5  # of the mechanism's size, for a usual force ...
ABOVE = 2.6  # ... but at least this many radii of the largest wheel, which would hide it
LONGEST = 2.0  # usual forces: larger ones are drawn no longer


def force_arrows(
    scene: Scene, poses: Array, forces: Array, usual: float
) -> tuple[Array, npt.NDArray[np.uint8]]:
    """Draw the forces of the ground on the wheels as arrows, with their colours.

    Args:
        scene: What is drawn.
        poses: Poses of all bodies.
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN is not drawn.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Starts and tips (n, 2, 3) in the world, red, green and blue (n, 3).
    """
    if not usual > 0 or not scene.touches:
        return np.zeros((0, 2, 3)), np.zeros((0, 3), np.uint8)
    starts, vectors = force_vectors(scene, poses, forces, usual)
    tips = starts[:, np.newaxis, :] + vectors
    drawn = np.abs(np.nan_to_num(forces)) > LEAST * usual
    points = np.stack([np.broadcast_to(starts[:, np.newaxis, :], tips.shape), tips], axis=2)
    colours = np.broadcast_to(np.array(FORCES, np.uint8), (len(vectors), 3, 3))
    return points[drawn], colours[drawn]


def force_vectors(scene: Scene, poses: Array, forces: Array, usual: float) -> tuple[Array, Array]:
    """Points of contact and, from there, arrows of the forces, for any number of instants.

    Args:
        scene: What is drawn; it has contacts.
        poses: Poses of all bodies: (..., bodies, 4, 4).
        forces: Longitudinal, lateral and normal force on each contact [N]; NaN has length zero.
        usual: A force that is drawn half as long as the mechanism, or more than a wheel high [N].

    Returns:
        Points (..., contacts, 3) and arrows (..., contacts, 3 forces, 3) in the world [m].
    """
    axes = touch_axes(scene, poses)
    known = np.nan_to_num(forces) / usual if usual > 0 else np.zeros(forces.shape)
    length = max(LENGTH * scene.size, ABOVE * max(touch.radius for touch in scene.touches))
    arrows = length * np.clip(known, -LONGEST, LONGEST)[..., np.newaxis] * axes
    return touch_points(scene, poses), arrows
