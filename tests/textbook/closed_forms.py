"""What the textbook tests share: how close is close, and orientations."""

import numpy as np
from numpy.typing import ArrayLike

# A closed form and the derived code differ by rounding alone; a wrong term shows at 1e-3.
TOLERANCE = 1e-10
# Numbers that a source's table gives to about sixteen digits but that passed through other code.
TABLE_TOLERANCE = 1e-8


def assert_close(found: ArrayLike, wanted: ArrayLike, tolerance: float = TOLERANCE) -> None:
    """Equal up to `tolerance` times the largest entry wanted (or 1 if all are zero)."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    assert found.shape == wanted.shape, f"shape {found.shape}, expected {wanted.shape}"
    size = np.abs(wanted).max(initial=0.0) or 1.0
    worst = np.abs(found - wanted).max(initial=0.0) / size
    assert worst <= tolerance, f"differs by {worst:.3g}:\n{found}\nexpected\n{wanted}"


def rotation(axis: str, angle: float) -> np.ndarray:
    """Matrix of a turn about x, y or z."""
    c, s = np.cos(angle), np.sin(angle)
    return {
        "x": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[axis]


def quaternion(*turns: tuple[str, float]) -> np.ndarray:
    """Unit quaternion w, x, y, z of turns about moving axes, one after the other."""
    result = np.array([1.0, 0.0, 0.0, 0.0])
    for axis, angle in turns:
        w, v = np.cos(angle / 2), np.sin(angle / 2) * np.eye(3)["xyz".index(axis)]
        a, b = result[0], result[1:]
        result = np.array([a * w - b @ v, *(a * v + w * b + np.cross(b, v))])
    return result


def skew(x: np.ndarray) -> np.ndarray:
    """The matrix of the cross product x times ..."""
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
