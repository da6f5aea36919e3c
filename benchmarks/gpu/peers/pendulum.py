"""How well a batch of wheeled pendulums rolls; NumPy alone.

MuJoCo's vectors: place, quaternion and wheel angles; velocity of the axle along the world's axes,
angular velocity along the pole's, wheel speeds against the pole.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Array = np.ndarray
FAR = 0.1  # relative distance between places that would not be the same motion
LOOKS = 100  # during the checked second

State = Callable[[], tuple[Array, Array]]


def starts(q: Array, nu: Array, radius: float, track: float) -> tuple[Array, Array]:
    """States of Axode's model (x, y, yaw, pitch, wheels; surge, yaw rate, pitch rate) as MuJoCo's.

    Yaw and wheel angles are zero.
    """
    count, pitch = len(q), q[:, 3]
    surge, yaw_rate, pitch_rate = nu.T
    qpos, qvel = np.zeros((count, 9)), np.zeros((count, 8))
    qpos[:, 0], qpos[:, 1], qpos[:, 2] = q[:, 0], q[:, 1], radius
    qpos[:, 3], qpos[:, 5] = np.cos(pitch / 2), np.sin(pitch / 2)
    qvel[:, 0] = surge
    qvel[:, 3], qvel[:, 4], qvel[:, 5] = (
        -yaw_rate * np.sin(pitch),
        pitch_rate,
        yaw_rate * np.cos(pitch),
    )
    for column, y in ((6, track / 2), (7, -track / 2)):
        qvel[:, column] = (surge - yaw_rate * y) / radius - pitch_rate
    return qpos, qvel


def slip(qpos: Array, qvel: Array, radius: float, track: float) -> Array:
    """Larger speed of the two wheels' lowest points along the ground [m/s]."""
    w, x, y, z = qpos[:, 3:7].T
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    ).transpose(2, 0, 1)
    speeds = []
    for column, side in ((6, track / 2), (7, -track / 2)):
        centre = np.cross(qvel[:, 3:6], [0.0, side, 0.0])
        turning = qvel[:, 3:6] + qvel[:, column, np.newaxis] * [0.0, 1.0, 0.0]
        velocity = qvel[:, :3] + np.einsum("nij,nj->ni", R, centre)
        velocity = velocity + np.cross(np.einsum("nij,nj->ni", R, turning), [0.0, 0.0, -radius])
        speeds.append(np.hypot(velocity[:, 0], velocity[:, 1]))
    return np.maximum(*speeds)


def rolling(
    advance: Callable[[int], None], state: State, data: dict[str, Array]
) -> dict[str, float]:
    """One second of a batch against its end in Axode; raises AssertionError where it is not."""
    steps, h = int(data["steps"]), float(data["h"])
    count = min(len(data["expected_q"]), len(state()[0]))
    radius, track = float(data["radius"]), float(data["track"])
    crept, worst = np.zeros(count), 0.0
    for _ in range(LOOKS):
        advance(steps // LOOKS)
        qpos, qvel = state()
        now = slip(qpos[:count], qvel[:count], radius, track)
        crept, worst = crept + now * h * (steps // LOOKS), max(worst, float(now[0]))
    wanted = data["expected_q"][:count, :2]
    apart = np.linalg.norm(qpos[:count, :2] - wanted, axis=1)
    relative = apart / np.linalg.norm(wanted, axis=1)
    found = {
        "place apart, first run": float(relative[0]),
        "place apart, median": float(np.median(relative)),
        "crept, first run [m]": float(crept[0]),
        "crept, median [m]": float(np.median(crept)),
        "largest slip, first run [m/s]": worst,
    }
    assert np.isfinite(qpos).all(), f"not finite: {found}"
    assert relative[0] < FAR and np.median(relative) < FAR, f"it went elsewhere: {found}"
    return found
