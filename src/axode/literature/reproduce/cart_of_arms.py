"""The two-wheeled cart as its source sees it: each wheel an arm that holds half of the rod.

Built from the spatial operators at one state, so that the source's six steps, its smaller task
space and its pseudo joints can be taken in numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from axode.literature.cooperating_arms import Arm, ArmLink, ArmsOfSource, Lump

Array = npt.NDArray[np.float64]
JOINTS = 4  # of an arm: three at the contact, one at the wheel's centre
PSEUDO = (3, 4, 9, 10)  # joints that are only imagined, of twelve


def cart_of_arms(
    p: Mapping[str, float],
    pitch: float,
    wheels: Sequence[float],
    pitch_rate: float,
    *,
    pseudo: bool = False,
    rolls: bool = True,
) -> ArmsOfSource:
    """Both arms, heading along x.

    Args:
        p: Parameters of the gallery's cart.
        pitch, wheels, pitch_rate: State of the load [rad], of the wheels [rad/s], of the load.
        pseudo: With a lean and a slide at each wheel's centre that do not really move.
        rolls: Whether contacts roll; if not they are pivots, as the source has them.
    """
    x, e, z, none = np.eye(4, 3)
    r, l = p["r"], p["l"]
    yaw_rate = r / l * (wheels[1] - wheels[0])
    c, s = float(np.cos(pitch)), float(np.sin(pitch))
    R = np.column_stack([c * x - s * z, e, s * x + c * z])
    moved = p["Mc"] * p["d"] ** 2
    J = np.diag([p["Jx"] - moved, p["Jy"] - moved, p["Jz"]])
    half = Lump(p["Mc"] / 2, (-p["d"] * s, 0.0, r - p["d"] * c), R @ J @ R.T / 2)
    tensor = np.diag([p["It"], p["Ia"], p["It"]])
    arms = []
    for side, rate in zip((l / 2, -l / 2), wheels, strict=True):
        contact, centre = (0.0, side, 0.0), (0.0, side, r)
        moving = (r * rate, 0.0, 0.0) if rolls else None
        links = [
            ArmLink(
                contact,
                np.eye(6, 3),
                [0.0, rate, yaw_rate],
                [Lump(p["mw"], centre, tensor)],
                rolls_at=moving,
            )
        ]
        if pseudo:
            links += [
                ArmLink(centre, _joint(x, none), [0.0]),
                ArmLink(centre, _joint(none, z), [0.0]),
            ]
        links.append(ArmLink(centre, _joint(e, none), [pitch_rate - rate], [half]))
        arms.append(Arm(links, centre))
    return ArmsOfSource(arms, (0.0, 0.0, r), (0.0, 0.0, -p["g"]))


def _joint(turning: Array, moving: Array) -> Array:
    return np.concatenate([turning, moving])[:, np.newaxis]


def accelerations(
    p: Mapping[str, float],
    pitch: float,
    wheels: Sequence[float],
    pitch_rate: float,
    torques: Sequence[float],
) -> dict[str, Array]:
    """Accelerations of the two driven joints by each of the source's methods."""
    state = (pitch, wheels, pitch_rate)
    arms = cart_of_arms(p, *state)
    real = [0.0, 0.0, 0.0, torques[0], 0.0, 0.0, 0.0, torques[1]]
    with_pseudo = cart_of_arms(p, *state, pseudo=True)
    driven = [JOINTS - 1, 2 * JOINTS - 1]
    twelve = [*[0.0] * 5, torques[0], *[0.0] * 5, torques[1]]
    pivots = cart_of_arms(p, *state, rolls=False)
    return {
        "six steps": arms.six_steps(real).total[driven],
        "reduced order": arms.by_reduced_order(real)[driven],
        "pseudo joints": with_pseudo.pseudo_joints(twelve, PSEUDO).accelerations[driven],
        "contacts as pivots": pivots.six_steps(real).total[driven],
    }
