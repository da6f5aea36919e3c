"""Which motors make a vehicle go ahead, and which make it turn."""

from __future__ import annotations

from typing import Any

import numpy as np

from axode.mechanism.scene.scene import GROUND, Array, Scene
from axode.show.viewer.servo import Motors
from axode.symbolic.algebra.rank import least_norm, null_space

POSSIBLE = 0.5  # of a wanted velocity: a motion that misses more of it is another one
SMALL = 1e-6


def steering(motors: Motors, scene: Scene, q: Array, options: dict[str, Any]) -> dict[str, Array]:
    """Rates of the motors for "ahead" and "turn", the largest one; nothing for what stays.

    Ahead is the axis of the chassis, x before y, along which it goes without turning. What cannot
    turn by its wheels alone turns by the motors that move nothing else, as a steered fork does.
    """
    wheels = {touch.body for touch in scene.touches if scene.floors[touch.floor].body == GROUND}
    if not wheels or not motors.count:
        return {}
    chassis = next((k for k, body in enumerate(scene.bodies) if body not in wheels), 0)
    model = motors.model
    n = len(model.independent)
    pose = model.poses(q, **options)[chassis]
    still = model.twists(q, np.zeros(n), **options)[chassis]
    twists = model.twists(q, np.eye(n), **options)[:, chassis] - still
    axes = pose[:3, :3]
    plane = np.stack([twists[:, 3:] @ axes[:, 0], twists[:, 3:] @ axes[:, 1], twists[:, 2]])
    shares = model.input_force(q, np.eye(motors.count, len(model.inputs)), **options)
    found: dict[str, Array] = {}
    for name, wanted in (("ahead", np.eye(3)[:2]), ("turn", np.eye(3)[2:])):
        for direction in wanted:
            nu = least_norm(plane, direction, 1e-9)
            rates = shares @ nu
            if np.linalg.norm(plane @ nu - direction) < POSSIBLE and np.abs(rates).max() > SMALL:
                found[name] = rates / np.abs(rates).max()
                break
    if "ahead" not in found:
        return {}
    if "turn" not in found:
        Z = null_space(plane, 1e-9)
        idle = shares @ Z @ Z.T
        rates = idle @ np.ones(n)
        if np.abs(rates).max() > SMALL:
            found["turn"] = rates / np.abs(rates).max()
    return found
