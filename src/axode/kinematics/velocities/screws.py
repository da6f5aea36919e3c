"""Twists as screws: axis, pitch, and a description."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
PURE = 1e-6  # of the other part, in the robot's length: less of turning or moving is none
NAMED_WEIGHT = 0.2  # of the largest weight: smaller ones are not named
ROUND_TO_ZERO = 5e-7  # of a coordinate: printed as zero


@dataclass(frozen=True)
class InstantaneousScrew:
    """An instantaneous motion of a body: a turn about an axis and a move along it.

    Attributes:
        direction: Unit vector along the axis, in world axes.
        point: Point of the axis nearest to the body's reference point [m]; NaN for a translation.
        pitch: Move along the axis per turn [m/rad]; infinite for a translation.
        twist: Angular velocity and velocity of the reference point, in world axes, scaled so that
            the screw turns, or moves by the robot's length, at one unit per second.
    """

    direction: Array
    point: Array
    pitch: float
    twist: Array

    @classmethod
    def of(cls, twist: Array, origin: Array, length: float) -> InstantaneousScrew:
        """Find the screw of a twist at a reference point.

        Args:
            twist: Angular velocity and velocity of the reference point.
            origin: The reference point [m].
            length: Length by which turning and moving are compared [m].
        """
        w, v = twist[:3], twist[3:]
        turning, moving = float(np.linalg.norm(w)), float(np.linalg.norm(v)) / length
        if turning <= PURE * moving:
            direction = v / np.linalg.norm(v) if moving else np.zeros(3)
            scale = 1.0 / moving if moving else 1.0
            return cls(_positive(direction), np.full(3, np.nan), np.inf, twist * scale)
        direction, point = w / turning, origin + np.cross(w, v) / turning**2
        return cls(_positive(direction), point, float(w @ v) / turning**2, twist / turning)

    def describe(self, body: str, length: float) -> str:
        """Describe the motion of a body along the screw."""
        along = _vector(self.direction)
        if np.isinf(self.pitch):
            return f"'{body}' moves along {along}"
        text = f"'{body}' turns about the line through {_vector(self.point)} along {along}"
        if abs(self.pitch) <= PURE * length:
            return text
        return f"{text} and moves {abs(self.pitch):.3g} m along it per radian"


def name_largest(names: tuple[str, ...], weights: Array) -> str:
    """Name the largest of several speeds with their ratios."""
    scaled = weights / weights[np.argmax(np.abs(weights))]
    picked = [(n, w) for n, w in zip(names, scaled.tolist(), strict=True) if abs(w) > NAMED_WEIGHT]
    if len(picked) == 1:
        return picked[0][0]
    return ", ".join(f"{name} ({w:+.2g})" for name, w in picked)


def _positive(direction: Array) -> Array:
    """Choose the sense in which the largest component is positive."""
    largest = direction[np.argmax(np.abs(direction))]
    return np.asarray(-direction if largest < 0 else direction)


def _vector(x: Array) -> str:
    cleaned = np.where(np.abs(x) < ROUND_TO_ZERO, 0.0, x)
    return f"({', '.join(f'{value:.3g}' for value in cleaned)})"
