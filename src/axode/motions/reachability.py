r"""The fastest passage along paths under limits, by reachability.

With the squared rate :math:`x = \dot s^2` and the second rate :math:`u = \ddot s` of the path's
parameter, every limit is a row

.. math:: -1 \le a(s)\, u + b(s)\, x + c(s) \le 1.

Between two points of a grid u is constant, or grows by a given amount about its mean, so that
:math:`x_{i+1} = x_i + 2 \Delta_i u_i`, and rows hold at both ends of an interval. A pass from the
end finds the interval of x at each point from which the end can be reached; a pass from the start
takes the largest u that stays in these intervals. It is the idea of H. Pham and Q.-C. Pham, "A new
approach to time-optimal path parameterization based on reachability analysis", IEEE Trans. Robotics
34, 2018. Eliminating u first leaves one-dimensional problems with closed solutions: what two rows
allow together does not depend on the passes and is found for all points at once; in a pass every
row stands alone. Nothing is divided by a, so that points of zero inertia, where it vanishes, are
like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
SLACK = 1e-10  # of the limits, in the pass from the start: rounding of the pass from the end
ROUNDING = 1e-14  # relative, of differences of products
TINY = 1e-300
UNBOUNDED = 1e30  # squared rate, the parameter from 0 to 1, that stands for no limit


@dataclass(frozen=True)
class PathRows:
    """Limits along paths, each at the points of its own grid.

    Attributes:
        a, b, c: Coefficients of the rows, (paths, points, rows).
        most: Largest squared rates, (paths, points).
    """

    a: Array
    b: Array
    c: Array
    most: Array

    def value(self, second: Array, square: Array) -> Array:
        """Evaluate the rows, (paths, points, rows), at second and squared rates (paths, points)."""
        u, x = second[..., np.newaxis], square[..., np.newaxis]
        return np.asarray(self.a * u + self.b * x + self.c)


@dataclass(frozen=True)
class PathPassage:
    """How fast paths can be passed.

    Attributes:
        squares: Squared rates at the points, (paths, points).
        lowest, highest: From which squared rates the end can be reached, (paths, points).
    """

    squares: Array
    lowest: Array
    highest: Array

    @property
    def empty(self) -> npt.NDArray[np.bool_]:
        """Points from which the end cannot be reached, whatever the rate."""
        return np.asarray(self.lowest > self.highest)


def pass_paths(
    grid: Array, rows: PathRows, first: Array, last: Array, bends: Array | float = 0.0
) -> PathPassage:
    """Find the largest squared rates along paths.

    Args:
        grid: Parameters, ascending, (paths, points).
        rows: The limits.
        first, last: Squared rates at the ends, (paths,).
        bends: How much the second rate grows within each interval, (paths, intervals).

    Returns:
        Squared rates; NaN from where the start cannot be passed.
    """
    a, b, c, steps = _intervals(grid, rows, bends)
    lowest, highest = _pass_back(a, b, c, steps, rows.most, last)
    return PathPassage(_pass_forth(a, b, c, steps, lowest, highest, first), lowest, highest)


def _intervals(
    grid: Array, rows: PathRows, bends: Array | float
) -> tuple[Array, Array, Array, Array]:
    """Rows of both ends of every interval, on u and on x at its start; interval axis first."""
    half = np.broadcast_to(bends, (len(grid), grid.shape[1] - 1)).T[..., np.newaxis] / 2
    steps = np.moveaxis(2 * np.diff(grid), 1, 0)[..., np.newaxis]  # (intervals, paths, 1)
    a, b, c = (np.moveaxis(part, 1, 0) for part in (rows.a, rows.b, rows.c))
    return (
        np.concatenate([a[:-1], a[1:] + steps * b[1:]], axis=-1),
        np.concatenate([b[:-1], b[1:]], axis=-1),
        np.concatenate([c[:-1] - half * a[:-1], c[1:] + half * a[1:]], axis=-1),
        steps,
    )


def _pair_bounds(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Bounds of x within which two rows at a time leave some u."""
    j, k = np.triu_indices(a.shape[-1], 1)
    lowest = np.zeros(a.shape[:-1])
    highest = np.full(a.shape[:-1], np.inf)
    block = max(1, int(2e6 / max(1, j.size * a.shape[1])))
    for i in range(0, len(a), block):
        part = slice(i, i + block)
        aj, ak = a[part][..., j], a[part][..., k]
        first, second = ak * b[part][..., j], aj * b[part][..., k]
        slope = first - second
        size = np.abs(slope) + TINY
        middle = ak * c[part][..., j] - aj * c[part][..., k]
        np.negative(middle, out=middle, where=slope < 0)
        room = np.abs(aj) + np.abs(ak)
        if not room.all():
            room[room == 0] = np.inf  # neither row constrains u
        with np.errstate(over="ignore"):
            highest[part] = ((room - middle) / size).min(axis=-1, initial=np.inf)
            lowest[part] = (-(room + middle) / size).max(axis=-1, initial=0.0)
    return lowest, highest


def _pass_back(
    a: Array, b: Array, c: Array, steps: Array, most: Array, last: Array
) -> tuple[Array, Array]:
    """Intervals of x from which the end can be reached.

    A row on u and x is one on x and the next y = x + 2 delta u: a y + e x + 2 delta c within
    2 delta. It leaves room for an x if it does so for one end of the interval of y.
    """
    below, above = _pair_bounds(a, b, c)
    above = np.minimum(np.minimum(above, most.T[:-1]), UNBOUNDED)
    e = steps * b - a
    sign = np.where(e >= 0, 1.0, -1.0)
    size = np.maximum(np.abs(e), ROUNDING * (np.abs(steps * b) + np.abs(a)) + TINY)
    plus, minus = np.maximum(a, 0.0) / size, np.minimum(a, 0.0) / size
    # bounds by the ends of the next interval: upper ones, then the negatives of lower ones
    by_low, by_high = np.where(e >= 0, -plus, minus), np.where(e >= 0, -minus, plus)
    bounds = np.empty((*a.shape[:2], 2, a.shape[2], 3))
    bounds[:, :, 0, :, 0], bounds[:, :, 1, :, 0] = (
        steps * (1 + side * sign * c) / size for side in (-1, 1)
    )
    bounds[:, :, 0, :, 1], bounds[:, :, 0, :, 2] = by_high, -by_low
    bounds[:, :, 1, :, 1], bounds[:, :, 1, :, 2] = -by_low, by_high
    outer = np.stack([above, -below], axis=-1)
    ends = np.empty((len(a) + 1, most.shape[0], 3, 1))  # one, the highest, minus the lowest
    ends[:, :, 0] = 1.0
    ends[-1, :, 1, 0], ends[-1, :, 2, 0] = np.where(last <= most[:, -1], last, -1.0), -last
    flat = bounds.reshape(len(a), most.shape[0], -1, 3)
    shape = (most.shape[0], 2, a.shape[2])
    backwards = zip(flat[::-1], outer[::-1], ends[:0:-1], ends[-2::-1, :, 1:, 0], strict=True)
    for matrix, limit, after, here in backwards:
        found = np.matmul(matrix, after).reshape(shape)
        np.minimum(np.minimum.reduce(found, axis=-1), limit, out=here)
    ends = ends[:, :, 1:, 0]
    highest, lowest = ends[..., 0].T, np.maximum(-ends[..., 1].T, 0.0)
    # nothing left at a point: none before it can reach the end
    empty = lowest > highest * (1 + SLACK) + TINY
    empty = np.logical_or.accumulate(empty[:, ::-1], axis=1)[:, ::-1]
    return np.where(empty, 0.0, lowest), np.where(empty, -1.0, np.maximum(highest, lowest))


def _pass_forth(
    a: Array, b: Array, c: Array, steps: Array, lowest: Array, highest: Array, first: Array
) -> Array:
    """Squared rates by the largest second rates."""
    sign = np.where(a >= 0, 1.0, -1.0)
    inverse = 1 / np.maximum(np.abs(a), TINY)
    room, slope = steps * (1 + SLACK - sign * c) * inverse, sign * (steps * b - a) * inverse
    bounds = np.stack([room, -slope], axis=-1)
    x = np.ones((len(a) + 1, first.size, 2, 1))  # one, the squared rate
    fits = (first >= lowest[:, 0] * (1 - SLACK)) & (first <= highest[:, 0] * (1 + SLACK))
    x[0, :, 1, 0] = np.where(fits, first, np.nan)
    forwards = zip(bounds, lowest.T[1:], highest.T[1:], x[:-1], x[1:, :, 1, 0], strict=True)
    for matrix, low, high, here, after in forwards:
        up = np.minimum.reduce(np.matmul(matrix, here)[..., 0], axis=-1)
        np.minimum(np.maximum(up, low), high, out=after)
    return x[:, :, 1, 0].T
