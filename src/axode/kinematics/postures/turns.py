"""Rotations in batches: about axes, from one direction to another, and their angles.

Arrays have the batch along their first axis. Directions have length one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.numerics.rotations import to_quaternions

Array = npt.NDArray[np.float64]


def turn_about(axis: Array, angle: Array) -> Array:
    """Rotation matrices about axes: (n, 3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    K = cross_matrix(axis)
    return np.eye(3) + s[:, None, None] * K + (1 - c)[:, None, None] * (K @ K)


def cross_matrix(a: Array) -> Array:
    """Matrices of cross products: (n, 3, 3)."""
    K = np.zeros((len(a), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -a[:, 2], a[:, 1], -a[:, 0]
    K[:, 1, 0], K[:, 2, 0], K[:, 2, 1] = a[:, 2], -a[:, 1], a[:, 0]
    return K


def placed(rotation: Array, point: Array) -> Array:
    """Homogeneous matrices of rotations about points: (n, 4, 4)."""
    made = np.zeros((len(rotation), 4, 4))
    made[:, :3, :3], made[:, 3, 3] = rotation, 1.0
    made[:, :3, 3] = point - apply(rotation, point)
    return made


def shifted(shift: Array) -> Array:
    """Homogeneous matrices of shifts: (n, 4, 4)."""
    made = np.tile(np.eye(4), (len(shift), 1, 1))
    made[:, :3, 3] = shift
    return made


def inverse_pose(T: Array) -> Array:
    """Inverses of homogeneous matrices: (n, 4, 4)."""
    made = np.zeros_like(T)
    made[:, :3, :3], made[:, 3, 3] = T[:, :3, :3].swapaxes(1, 2), 1.0
    made[:, :3, 3] = -apply(made[:, :3, :3], T[:, :3, 3])
    return made


def apply(matrices: Array, vectors: Array) -> Array:
    """Products of matrices, 3 x 3 or homogeneous, with vectors or points: (n, 3)."""
    made = np.einsum("nij,nj->ni", matrices[:, :3, :3], vectors)
    return made + matrices[:, :3, 3] if matrices.shape[1] == 4 else made


def dots(a: Array, b: Array) -> Array:
    """Products of vectors: (n,)."""
    return np.einsum("ni,ni->n", a, b)


def angle_about(axis: Array, start: Array, end: Array) -> Array:
    """Angles by which vectors turn about axes, as far as they are across them: (n,)."""
    u = start - axis * dots(axis, start)[:, None]
    v = end - axis * dots(axis, end)[:, None]
    return np.arctan2(dots(axis, np.cross(u, v)), dots(u, v))


def angle_of(rotation: Array, axis: Array) -> Array:
    """Angles of rotations about given axes: (n,)."""
    q = to_quaternions(rotation)
    return 2 * np.arctan2(dots(q[:, 1:], axis), q[:, 0])


def two_angles(first: Array, second: Array, start: Array, end: Array) -> list[tuple[Array, ...]]:
    """Angles about two axes whose turns, the second one first, take vectors to others.

    Returns:
        Two branches of angle about the first axis, angle about the second, and the square of what
        is missing, where no angles do it: positive there, zero elsewhere.
    """
    c, a, b = dots(first, second), dots(first, end), dots(second, start)
    sine = 1 - c * c
    alpha, beta = (a - c * b) / sine, (b - c * a) / sine
    left = (dots(start, start) - alpha**2 - beta**2 - 2 * alpha * beta * c) / sine
    flat = alpha[:, None] * first + beta[:, None] * second
    made: list[tuple[Array, ...]] = []
    for sign in (1.0, -1.0):
        gamma = sign * np.sqrt(np.maximum(left, 0.0))
        middle = flat + gamma[:, None] * np.cross(first, second)
        angles = angle_about(first, middle, end), angle_about(second, start, middle)
        made.append((*angles, np.maximum(-left, 0.0)))
    return made


def shortest_turn(start: Array, end: Array) -> Array:
    """Rotations that take directions to others by the shortest way: (n, 3, 3)."""
    c = dots(start, end)
    axis = np.cross(start, end)
    K = cross_matrix(axis)
    factor = 1.0 / np.maximum(1.0 + c, 1e-12)
    made = np.eye(3) + K + factor[:, None, None] * (K @ K)
    opposite = c < -1 + 1e-9
    if opposite.any():
        across = np.eye(3)[np.argmin(np.abs(start[opposite]), axis=1)]
        axis = np.cross(start[opposite], across)
        axis /= np.linalg.norm(axis, axis=1)[:, None]
        made[opposite] = turn_about(axis, np.full(len(axis), np.pi))
    return made
