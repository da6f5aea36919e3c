"""Numbers, angles and boxes in files of other programs, whatever their format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np

from axode.mechanism.elements.bodies import Box
from axode.mechanism.values.geometry import rotation_matrix
from axode.numerics.tolerances import MATRIX_ROUNDING, SUM_ROUNDING

Numbers: TypeAlias = tuple[float, ...]

RIGHT_ANGLE = Decimal("1.5707963267948966192313216916397514420986")
LEAST_DIGITS = 10  # of a right angle that is written as one: 1.570796327 is 2e-10 beside it
MANY_TURNS = 100.0  # [rad]


def numbers_in(words: Sequence[str]) -> Numbers | None:
    """Read the numbers that words are; None if one is no number."""
    text = "".join(words)
    if not text.isascii() or "_" in text:  # Python reads digits of all scripts, and 1_000
        return None
    try:
        return tuple(map(float, words))
    except ValueError:
        return None


def exact_angle(text: str) -> float:
    """Read an angle [rad]: a multiple of a right angle where it is written as one.

    That is a decimal number which shows the first digits of the multiple, ten of them rounded, or
    more of them rounded or cut off, or which differs from it as computed numbers do. Zeros then
    stay zeros in the equations. All other numbers are kept as they are written.
    """
    value = float(text)
    turns = round(value / (math.pi / 2)) if abs(value) < MANY_TURNS else 0
    nearest = turns * (math.pi / 2)
    if abs(value - nearest) < MATRIX_ROUNDING:
        return nearest
    if not turns:
        return value
    written, exact = Decimal(text), turns * RIGHT_ANGLE
    places = -int(written.as_tuple().exponent)
    digits = len(written.as_tuple().digits)
    last_digit = Decimal(1).scaleb(-places)
    allowed = last_digit if digits > LEAST_DIGITS else last_digit / 2
    return nearest if digits >= LEAST_DIGITS and abs(written - exact) <= allowed else value


def matrix(rotation: Numbers) -> np.ndarray:
    """Compute the matrix of roll, pitch, yaw or of a quaternion."""
    return np.array(rotation_matrix(rotation), dtype=float)  # type: ignore[arg-type]


def cleaned(values: Any, least: float = 0.0) -> Numbers:
    """Numbers without what rounding leaves of zeros beside the largest, at least `least`."""
    numbers = np.asarray(values, float)
    size = float(np.abs(numbers).max(initial=least))
    return tuple(np.where(np.abs(numbers) <= SUM_ROUNDING * size, 0.0, numbers).tolist())


def box(size: Numbers, at: Numbers, R: np.ndarray, rotation: Any, colour: Any = None) -> Box:
    """Describe a box; one whose edges are along the body's axes needs no rotation."""
    if np.abs(R).max(axis=1).min() > 1 - 1e-6:
        return Box(tuple((np.abs(R) @ np.array(size)).tolist()), at, colour=colour)
    return Box(size, at, rotation, colour)
