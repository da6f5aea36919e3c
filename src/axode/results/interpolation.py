"""Values between the samples: the motion where it is known, interpolated elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument
from axode.model.named_arguments import as_numbers
from axode.results.columns import TrajectoryColumns, time_range, time_rounding

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]

# A spline feels a sample k knots away less than 2^-k as much: beyond these none is felt at all.
REACH = 64
METHODS = ("interpolate", "cubic", "linear")
CLAIMED = "steps"  # entry of `info` of what claims to be as exact as the steps of a simulation
INTERPOLATED = "interpolated"  # entry of `info` where values between samples are no states
MAY_JUMP = ("input", "residual", "force", "power")  # kinds that are interpolated by straight lines


def resample(run: Trajectory, times: npt.ArrayLike, method: str | None) -> Trajectory:
    """Trajectory at other times; see `Trajectory.resample`."""
    if method not in (None, *METHODS):
        known = ", ".join(f"'{name}'" for name in METHODS)
        raise InvalidArgument(f"method: '{method}' is none of {known}")
    asked = as_numbers("times", times)
    if asked.ndim != 1 or not len(asked):
        raise InvalidArgument(f"times: a list of times is needed, not shape {asked.shape}")
    low, high = sorted((run.time[0], run.time[-1]))
    rounding = time_rounding(run.time)
    outside = asked[~((asked >= low - rounding) & (asked <= high + rounding))]
    if len(outside):
        owner = run.column_names.owner
        raise InvalidArgument(f"{outside[0]:g} s lies outside {owner}; {time_range(run.time)}.")
    at, forward = np.clip(asked, low, high), -1.0 if run.time[-1] < run.time[0] else 1.0
    if (forward * np.diff(asked) <= 0).any():
        raise InvalidArgument(f"times: they have to go one way; {time_range(run.time)}.")
    ends = forward * np.asarray(run.ended)
    lengths = np.array((forward * at <= ends[..., np.newaxis]).sum(axis=-1))
    values = None if method is not None else run.columns_at(at)
    if values is not None:
        return run.changed(time=asked, lengths=lengths, values=values)
    between = at[~np.isin(at, run.time)]
    if method is None and between.size and CLAIMED in run.info:
        owner = run.column_names.owner
        raise InvalidArgument(
            f"{owner}: {between[0]:g} s is between its samples, and what knows the motion there "
            "did not come with it: trajectories from files, copies and those with columns of "
            "others, and runs that a Callback moved, have their samples alone.\n"
            '  Remedy: ask the one that simulate returned, or method="interpolate", which is as '
            "good as the samples are dense"
        )
    info = {**run.info, INTERPOLATED: True} if between.size else run.info
    interpolated = _ResampledColumns(run, forward * at, method)
    return run.changed(time=asked, lengths=lengths, values=interpolated, info=info)


def resample_exact(run: Trajectory, times: npt.ArrayLike) -> Trajectory | None:
    """Trajectory at other times, as exact as its samples; None where it does not know them."""
    try:
        made = resample(run, times, None)
    except InvalidArgument:
        return None
    return None if INTERPOLATED in made.info else made


def resample_picture(run: Trajectory, times: npt.ArrayLike) -> Trajectory:
    """Trajectory at other times, exact where it knows its motion and interpolated elsewhere."""
    exact = resample_exact(run, times)
    return resample(run, times, METHODS[0]) if exact is None else exact


class _ResampledColumns(TrajectoryColumns):
    """Columns at other times, ascending or, for a run backwards, with the opposite sign."""

    def __init__(self, run: Trajectory, at: Array, method: str | None) -> None:
        super().__init__((*run.batch, len(at)))
        time = run.time if run.time[0] <= run.time[-1] else -run.time
        first = max(int(np.searchsorted(time, at.min(), "right")) - 1 - REACH, 0)
        last = int(np.searchsorted(time, at.max())) + 1 + REACH
        self._time, self._at, self._method = time[first:last], at, method
        self._lengths = np.clip(run.lengths.reshape(-1) - first, 0, len(self._time))
        self._kinds, self._quaternions = run.kinds, run.quaternions
        self._window = run.window(first, first + len(self._time))

    def _make(self, name: str) -> Array:
        group = next((group for group in self._quaternions if name in group), (name,))
        return self.stack(group)[..., group.index(name)]

    def stack(self, names: Sequence[str]) -> Array:
        samples = self._window.stack(names)
        smooth = [
            self._method == "cubic"
            or (self._method in (None, METHODS[0]) and self._kinds[name] not in MAY_JUMP)
            for name in names
        ]
        values = interpolate(
            self._time,
            samples.reshape(len(self._lengths), *samples.shape[-2:]),
            self._lengths,
            self._at,
            smooth=np.array(smooth, dtype=bool),
            quaternions=[
                tuple(map(names.index, group))
                for group in self._quaternions
                if set(group) <= set(names)
            ],
        )
        return values.reshape(*self.shape, len(names))


def interpolate(
    time: Array,
    values: Array,
    lengths: npt.NDArray[np.intp],
    at: Array,
    *,
    smooth: npt.NDArray[np.bool_],
    quaternions: Sequence[tuple[int, ...]],
) -> Array:
    """Interpolate values at other times; NaN where a run had ended.

    Args:
        time: Times of the samples [s], ascending, shape (T,).
        values: Samples, shape (runs, T, columns).
        lengths: How many samples each run has, shape (runs,).
        at: Times asked for [s], within those of the samples.
        smooth: Columns to join by a cubic spline (not-a-knot ends). The others, and those with NaN
            or infinities in them, are joined by straight lines.
        quaternions: Columns that form unit quaternions, four per group.
    """
    result = np.full((len(values), len(at), values.shape[-1]), np.nan)
    for length in np.unique(lengths[lengths > 0]):
        runs = np.flatnonzero(lengths == length)
        inside = np.flatnonzero(at <= time[length - 1])
        samples = values[runs, :length]
        found = _interpolate_run(time[:length], samples, at[inside], smooth, quaternions)
        result[np.ix_(runs, inside)] = found
    return result


def _interpolate_run(
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
    hit = time[nearest] == at  # a requested sample is returned unchanged, to the bit
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
