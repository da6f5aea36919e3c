"""A box that surely holds the positions which a robot reaches."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from axode.kinematics.workspaces.closed_form import ClosedFormLegs, DrivenLeg
from axode.kinematics.workspaces.pose_limits import PoseLimits

Array = npt.NDArray[np.float64]
SAMPLES = 257  # of a driven coordinate
MARGIN = 0.02  # of the box on every side


def position_box(legs: ClosedFormLegs, limits: PoseLimits, turns: Iterable[Array]) -> Array:
    """Smallest and largest x, y, z of the output's origin, (2, 3); infinite where nothing bounds.

    At given orientation and driven coordinate, a leg holds the origin on a sphere. The box of a leg
    holds all its spheres, and the box of an orientation is what those of all legs share.

    Args:
        legs: The legs.
        limits: Their limits.
        turns: Rotations of the output.
    """
    low, high = np.full(3, math.inf), np.full(3, -math.inf)
    for R in turns:
        boxes = [_leg_box(legs, leg, limits, R) for leg in legs.legs]
        bottom = np.max([box[0] for box in boxes], axis=0)
        top = np.min([box[1] for box in boxes], axis=0)
        low, high = np.minimum(low, bottom), np.maximum(high, top)
    with np.errstate(invalid="ignore"):
        spare = MARGIN * (high - low)
    spare = np.where(np.isfinite(spare), np.maximum(spare, 1e-9 * legs.size), 0.0)
    return np.array([low - spare, high + spare])


def _leg_box(legs: ClosedFormLegs, leg: DrivenLeg, limits: PoseLimits, R: Array) -> Array:
    e, anywhere = leg.equation, np.array([[-math.inf] * 3, [math.inf] * 3])
    if e.drive is None or e.driven is None or not e.drive.distance:
        return anywhere
    low, high = limits.driven.get(leg.coordinate, (-math.inf, math.inf))
    if leg.turns:
        full = not high - low < 2 * math.pi
        x = np.linspace(
            *((-math.pi, math.pi) if full else (low - leg.home, high - leg.home)), SAMPLES
        )
        c, s = np.cos(x), np.sin(x)
    elif math.isfinite(high - low):
        c = np.linspace(low - leg.home, high - leg.home, SAMPLES)
        s = np.zeros(SAMPLES)
    else:
        return anywhere
    # the points of both ends, and their distance, inside the leg at these coordinates
    D = R @ legs.motion.R_home.T
    starts = _moved(leg, e.near.point, c, s, 1.0) if e.place == 0 else e.near.point
    ends = _moved(leg, e.far.point, c, s, -1.0) if e.place == 2 else e.far.point
    inner = _moved(leg, e.far.point, c, s, 1.0) if e.place == 1 else e.far.point
    reach = np.linalg.norm(np.atleast_2d(inner - e.near.point), axis=-1)[:, np.newaxis]
    centres = starts - np.atleast_2d(ends - legs.motion.r_home) @ D.T
    return np.array([(centres - reach).min(axis=0), (centres + reach).max(axis=0)])


def _moved(leg: DrivenLeg, point: Array, c: Array, s: Array, sign: float) -> Array:
    driven = leg.equation.driven
    assert driven is not None
    if not leg.turns:
        return point + sign * np.outer(c, driven.axis)
    arm = point - driven.point
    along = driven.axis * (driven.axis @ arm)
    across, turned = arm - along, sign * np.cross(driven.axis, arm)
    return driven.point + along + np.outer(c, across) + np.outer(s, turned)
