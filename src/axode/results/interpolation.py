"""Values between the samples: cubic splines where motion is smooth, straight lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# A spline feels a sample k knots away less than 2^-k as much: beyond these none is felt at all.
REACH = 64


def interpolated(
    time: Array,
    values: Array,
    lengths: npt.NDArray[np.intp],
    at: Array,
    *,
    smooth: npt.NDArray[np.bool_],
    quaternions: Sequence[tuple[int, ...]],
) -> Array:
    """Values at other times; NaN where a run had ended.

    Args:
        time: Times of the samples [s], ascending, shape (T,).
        values: Samples, shape (runs, T, columns).
        lengths: How many samples each run has, shape (runs,).
        at: Times asked for [s], within those of the samples.
        smooth: Columns to join by a cubic spline (not-a-knot ends). The others, and those with NaN
            or infinities in them, are joined by straight lines.
        quaternions: Columns that form unit quaternions, four a group.
    """
    first = max(int(np.searchsorted(time, at.min(), "right")) - 1 - REACH, 0)
    last = int(np.searchsorted(time, at.max())) + 1 + REACH
    time, values = time[first:last], values[:, first:last]
    lengths = np.clip(lengths - first, 0, len(time))
    result = np.full((len(values), len(at), values.shape[-1]), np.nan)
    for length in np.unique(lengths[lengths > 0]):
        runs = np.flatnonzero(lengths == length)
        inside = np.flatnonzero(at <= time[length - 1])
        samples = values[runs, :length]
        joined = _joined(time[:length], samples, at[inside], smooth, quaternions)
        result[np.ix_(runs, inside)] = joined
    return result


def _joined(
    time: Array,
    samples: Array,
    at: Array,
    smooth: npt.NDArray[np.bool_],
    quaternions: Sequence[tuple[int, ...]],
) -> Array:
    from scipy.interpolate import CubicSpline

    turned = samples.copy()
    for group in quaternions:
        turned[..., group] *= _continuous_signs(turned[..., group])
    with np.errstate(over="ignore", invalid="ignore"):
        result = _straight(time, turned, at)
        curved = smooth & np.isfinite(turned).all(axis=(0, 1))
        if len(time) > 1 and curved.any():
            result[..., curved] = CubicSpline(time, turned[..., curved], axis=1)(at)
        for group in quaternions:
            norm = np.linalg.norm(result[..., group], axis=-1, keepdims=True)
            result[..., group] /= np.where(norm > 0, norm, 1.0)
    nearest = np.searchsorted(time, at)
    hit = time[nearest] == at  # a sample asked for is given back as it is, to the bit
    result[:, hit] = samples[:, nearest[hit]]
    return result


def _straight(time: Array, samples: Array, at: Array) -> Array:
    if len(time) == 1:
        return np.repeat(samples, len(at), axis=1)
    left = np.clip(np.searchsorted(time, at, "right") - 1, 0, len(time) - 2)
    weight = ((at - time[left]) / (time[left + 1] - time[left]))[:, np.newaxis]
    here: Array = samples[:, left] + weight * (samples[:, left + 1] - samples[:, left])
    return here


def _continuous_signs(quaternions: Array) -> Array:
    """Signs that keep q from jumping to -q, the same orientation, between two samples."""
    products = np.einsum("rti,rti->rt", quaternions[:, 1:], quaternions[:, :-1])
    signs = np.ones(quaternions.shape[:2])
    signs[:, 1:] = np.cumprod(np.where(products < 0, -1.0, 1.0), axis=1)
    return signs[..., np.newaxis]
