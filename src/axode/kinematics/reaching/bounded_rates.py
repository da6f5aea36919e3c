r"""Speeds within limits for wanted velocities, of many postures at once.

.. math:: \min_\nu |J \nu - w|^2 + \lambda^2 |\nu|^2, \qquad |\nu_j| \le f_j

The damping vanishes unless the smallest singular value of J is small: Y. Nakamura and H. Hanafusa,
"Inverse kinematic solutions with singularity robustness for robot manipulator control", *J. Dyn.
Sys. Meas. Control* 108, 1986.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.numerics.rank import singular_values, singular_vectors

Array = npt.NDArray[np.float64]
RANK = 1e-12  # relative singular value that is rounding


def solve_bounded(
    J: Array, wanted: Array, fastest: Array, scale: Array, damping: float
) -> tuple[Array, Array]:
    """Solve for speeds by least squares within limits, the shortest where many are as good.

    Args:
        J: Velocities for unit speeds: (..., rows, speeds).
        wanted: Velocities: (..., rows).
        fastest: Largest speeds: (speeds,).
        scale: Speeds that count alike: (speeds,).
        damping: Relative singular value below which speeds are damped.

    Returns:
        Speeds (..., speeds), and the smallest singular value over the largest (...).
    """
    A = J * scale
    limit = fastest / scale
    s = singular_values(A)
    top = s.max(axis=-1, initial=0.0)
    relative = s.min(axis=-1, initial=np.inf) / np.where(top > 0, top, 1.0)
    lack = np.clip(1 - (relative / damping) ** 2, 0.0, None) if damping else np.zeros(top.shape)
    extra = lack * (damping * top) ** 2
    y = np.zeros((*np.broadcast_shapes(A.shape[:-2], wanted.shape[:-1]), len(scale)))
    fixed = np.zeros(y.shape, dtype=bool)
    active = np.ones((*y.shape[:-1], 1), dtype=bool)
    for _ in range(4 * y.shape[-1] + 1):  # each turn reaches a limit, or leaves one
        held = np.where(fixed, y, 0.0)
        rest = wanted - np.einsum("...ij,...j->...i", A, held)
        z = held + _least(np.where(fixed[..., np.newaxis, :], 0.0, A), rest, extra)
        z = np.where(fixed, y, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(np.abs(z) > limit, (np.copysign(limit, z) - y) / (z - y), np.inf)
        part = room.min(axis=-1, keepdims=True, initial=np.inf)
        hits = active & (part < 1) & (room <= part)
        y = np.where(active, y + np.minimum(part, 1.0) * (z - y), y)
        y = np.where(hits, np.copysign(limit, z), y)
        pulled = np.where(part < 1, 0.0, _wrong_sides(A, wanted, extra, y, fixed))
        weakest = np.argmax(pulled, axis=-1)[..., np.newaxis]
        leaves = np.take_along_axis(pulled, weakest, axis=-1) > 0
        active = active & ((part < 1) | leaves)
        if not active.any():
            break
        fixed = fixed | hits
        stays = ~leaves & np.take_along_axis(fixed, weakest, axis=-1)
        np.put_along_axis(
            fixed, weakest, np.where(part < 1, np.take_along_axis(fixed, weakest, -1), stays), -1
        )
    return np.clip(y, -limit, limit) * scale, relative


def _least(A: Array, b: Array, extra: Array) -> Array:
    """Solve A y = b by damped least squares."""
    U, s, Vt = singular_vectors(A, full=False)
    small = s <= RANK * s.max(axis=-1, keepdims=True, initial=0.0)
    gain = np.where(small, 0.0, s / np.where(small, 1.0, s**2 + extra[..., np.newaxis]))
    return np.asarray(np.einsum("...ji,...j,...kj,...k->...i", Vt, gain, U, b))


def _wrong_sides(A: Array, b: Array, extra: Array, y: Array, fixed: Array) -> Array:
    """How strongly speeds that are held at a limit are pulled back inside."""
    left = np.einsum("...ij,...j->...i", A, y) - b
    slope = np.einsum("...ij,...i->...j", A, left) + extra[..., np.newaxis] * y
    size = np.abs(A).max(axis=(-2, -1), initial=0.0) * np.abs(b).max(axis=-1, initial=0.0)
    pull = slope * np.sign(y)
    return np.where(fixed & (pull > 1e-9 * size[..., np.newaxis]), pull, 0.0)
