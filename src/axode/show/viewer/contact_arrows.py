"""Contact forces as arrows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.mechanism.scene.scene import Array, Scene, touch_axes, touch_points
from axode.show.viewer.drawing import FORCES

LEAST = 0.02  # usual forces: smaller ones are not drawn
LENGTH = 0.5  # of the mechanism's size, for a usual force ...
ABOVE = 2.6  # ... but at least so many radii of the largest wheel, which would hide it
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
    starts, axes = touch_points(scene, poses), touch_axes(scene, poses)
    known = np.clip(np.nan_to_num(forces) / usual, -LONGEST, LONGEST)
    drawn = np.abs(known) > LEAST
    length = max(LENGTH * scene.size, ABOVE * max(touch.radius for touch in scene.touches))
    tips = starts[:, np.newaxis, :] + length * known[..., np.newaxis] * axes
    points = np.stack([np.broadcast_to(starts[:, np.newaxis, :], tips.shape), tips], axis=2)
    colours = np.broadcast_to(np.array(FORCES, np.uint8), (len(known), 3, 3))
    return points[drawn], colours[drawn]
