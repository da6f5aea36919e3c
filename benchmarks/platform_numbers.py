"""Numbers of platforms on six legs: random ones, and Dietmaier's with 40 real postures.

Parameters are six base points, six platform points, six squares of lengths, and the chart.
"""

from __future__ import annotations

import numpy as np

LEGS = 42  # parameters of six legs; those of the chart follow


def random_complex(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Complex numbers of which both parts are normally distributed."""
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def platforms(count: int, rng: np.random.Generator, chart: np.ndarray | None = None) -> np.ndarray:
    """Parameters of random real platforms, in a complex chart unless one is given: (count, 50)."""
    chart = random_complex(np.random.default_rng(5), 8) if chart is None else chart
    made = np.zeros((count, LEGS + 8), dtype=complex)
    made[:, :36] = rng.normal(size=(count, 36))
    made[:, 36:42] = rng.uniform(0.5, 3.0, size=(count, 6)) ** 2
    made[:, LEGS:] = chart
    return made


DIETMAIER_BASE = [
    [0, 0, 0],
    [1.107915, 0, 0],
    [0.549094, 0.756063, 0],
    [0.735077, -0.223935, 0.525991],
    [0.514188, -0.526063, -0.368418],
    [0.590473, 0.094733, -0.205018],
]
DIETMAIER_PLATFORM = [
    [0, 0, 0],
    [0.542805, 0, 0],
    [0.956919, -0.528915, 0],
    [0.665885, -0.353482, 1.402538],
    [0.478359, 1.158742, 0.107672],
    [-0.137087, -0.235121, 0.353913],
]
DIETMAIER_LENGTHS = [1, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071]


def dietmaier(chart: np.ndarray | None = None) -> np.ndarray:
    """Parameters of the platform with 40 real postures: (50,)."""
    p = platforms(1, np.random.default_rng(0), chart)[0]
    p[:18] = np.ravel(DIETMAIER_BASE)
    p[18:36] = np.ravel(DIETMAIER_PLATFORM)
    p[36:42] = np.square(DIETMAIER_LENGTHS)
    return p


def real_in_own_charts(
    roots: np.ndarray, parameters: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Roots of platforms, turned until they are as real as they can be, in charts about themselves.

    A homogeneous root times any complex number is the same root.

    Args:
        roots: Of one platform or of several, (roots, 8).
        parameters: Of the platform, or one row per root.

    Returns:
        Real parts, parameters, and how large the imaginary parts are.
    """
    largest = np.take_along_axis(roots, np.abs(roots).argmax(axis=1)[:, np.newaxis], axis=1)
    turned = roots / largest
    x = turned.real / np.linalg.norm(turned.real, axis=1, keepdims=True)
    p = np.broadcast_to(parameters, (len(roots), LEGS + 8)).real.copy()
    p[:, LEGS:] = x
    return x, p, np.abs(turned.imag).max(axis=1)
