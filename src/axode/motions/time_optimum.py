r"""The fastest timing of paths under limits of a model, and what limits it where.

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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from axode.errors import counted
from axode.model.model_parts import facts_of
from axode.motions.planned_motion import TimeLaw, law_of_rates
from axode.numerics.tolerances import EXCESS, FAINT, NEGLIGIBLE, PRODUCT_ROUNDING, SETTLED, TINY

if TYPE_CHECKING:
    from axode.motions.time_optimal import PathDynamics, PathLimits

UNBOUNDED = 1e30  # squared rate, the parameter from 0 to 1, that stands for no limit
Array = npt.NDArray[np.float64]
TIGHTER = 1.2  # times the excess that a limit is tightened by there
ROUNDS = 12  # of tightening, and of linearization
SPREAD = 0.01  # relative, of rates between which efforts are differentiated
SLOW = 1e-3  # of the largest rate: a slower one is differentiated at this rate
TYPICAL = 0.15  # of a limit, that speeds take at the first rates
ATTEMPTS = 20  # at such rates
FREE = 1e-3 * UNBOUNDED


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
    size = np.maximum(np.abs(e), PRODUCT_ROUNDING * (np.abs(steps * b) + np.abs(a)) + TINY)
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
    empty = lowest > highest * (1 + FAINT) + TINY
    empty = np.logical_or.accumulate(empty[:, ::-1], axis=1)[:, ::-1]
    return np.where(empty, 0.0, lowest), np.where(empty, -1.0, np.maximum(highest, lowest))


def _pass_forth(
    a: Array, b: Array, c: Array, steps: Array, lowest: Array, highest: Array, first: Array
) -> Array:
    """Squared rates by the largest second rates."""
    sign = np.where(a >= 0, 1.0, -1.0)
    inverse = 1 / np.maximum(np.abs(a), TINY)
    room, slope = steps * (1 + FAINT - sign * c) * inverse, sign * (steps * b - a) * inverse
    bounds = np.stack([room, -slope], axis=-1)
    x = np.ones((len(a) + 1, first.size, 2, 1))  # one, the squared rate
    fits = (first >= lowest[:, 0] * (1 - FAINT)) & (first <= highest[:, 0] * (1 + FAINT))
    x[0, :, 1, 0] = np.where(fits, first, np.nan)
    forwards = zip(bounds, lowest.T[1:], highest.T[1:], x[:-1], x[1:, :, 1, 0], strict=True)
    for matrix, low, high, here, after in forwards:
        up = np.minimum.reduce(np.matmul(matrix, here)[..., 0], axis=-1)
        np.minimum(np.maximum(up, low), high, out=after)
    return x[:, :, 1, 0].T


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimum:
    """How a path is passed in the least time, by points of a grid.

    Attributes:
        places: Parameters of the path, (N,), the path's own.
        rates: Their rates [1/s], (N,).
        second_rates: Their second rates [1/s^2], means between the points, (N - 1,).
        bends: How much the second rates grow between the points, (N - 1,).
        labels: Names of the limits.
        usage: Part of each limit that is used, signed, at the start, between and at the end of
            every interval: (N - 1, 3, limits).
        excess: Largest part by which a limit is exceeded, between points too.
    """

    places: Array
    rates: Array
    second_rates: Array
    bends: Array
    labels: tuple[str, ...]
    usage: Array
    excess: float

    @cached_property
    def law(self) -> TimeLaw:
        """The parameter over time."""
        return law_of_rates(self.places, self.rates, self.bends)

    @property
    def duration(self) -> float:
        """[s]"""
        return self.law.duration

    @property
    def times(self) -> Array:
        """Times at the points [s]: (N,)."""
        return self.law.breaks

    @property
    def saturation(self) -> Array:
        """Part of its limit that the active one uses, in every interval: (N - 1,)."""
        return np.asarray(np.abs(self.usage).max(axis=(1, 2)))

    @property
    def active(self) -> list[str]:
        """The limit that is active in each interval, with its sign: `+tau1`, `-tau2`.

        Where several are used to 1e-4, it is the first of them.
        """
        largest = np.minimum(np.abs(self.usage).max(axis=1), 1 - EXCESS).argmax(axis=1)
        middle = self.usage[np.arange(largest.size), 1, largest]
        signs = np.where(middle < 0, "-", "+")
        return [f"{sign}{self.labels[j]}" for sign, j in zip(signs, largest, strict=True)]

    @property
    def switches(self) -> list[tuple[float, str]]:
        """Times at which another limit becomes active [s], and which."""
        active = self.active
        return [
            (float(self.times[k]), name)
            for k, name in enumerate(active)
            if k == 0 or name != active[k - 1]
        ]

    def __repr__(self) -> str:
        return f"TimeOptimum({self.duration:g} s, {counted(len(self.switches), 'phase')})"


class LimitRows:
    """Rows of all limits at points of paths, as functions of the rates; parameters from 0 to 1.

    Args:
        dynamics: The model at the points.
        limits: Its limits.
        lengths: Largest parameters of the paths, (paths,).
        outline: Speeds by the parameter of what only the path knows, (paths, points, names), with
            their names and limits.
    """

    def __init__(
        self,
        dynamics: PathDynamics,
        limits: PathLimits,
        lengths: Array,
        outline: tuple[Array, Sequence[str], Array],
    ) -> None:
        self.dynamics, self._length = dynamics, lengths[:, np.newaxis]
        unit = self._length[..., np.newaxis]
        motors = dynamics.model.inputs[: facts_of(dynamics.model).motors]
        self._motors = [motors.index(name) for name in limits.effort]
        self.strength = np.array(list(limits.effort.values()))
        first, second = dynamics.derivatives(list(limits.acceleration))
        bound = np.array(list(limits.acceleration.values()))
        self._first, self._second = first * unit / bound, second * unit**2 / bound
        speeds = np.concatenate([dynamics.derivatives(list(limits.speed))[0], outline[0]], axis=-1)
        self.speeds = speeds * unit / np.concatenate([list(limits.speed.values()), outline[2]])
        self.labels = (
            *limits.effort,
            *(f"{name} acceleration" for name in limits.acceleration),
            *(f"{name} speed" for name in (*limits.speed, *outline[1])),
        )
        zero, one = np.zeros(dynamics.shape), np.ones(dynamics.shape)
        self.rest = self._efforts(zero, zero)
        self.inertia = np.concatenate([self._efforts(zero, one) - self.rest, self._first], axis=-1)
        fastest = np.abs(self.speeds).max(axis=-1, initial=0.0)
        self.most = 1 / np.maximum(fastest, UNBOUNDED**-0.5) ** 2

    def _efforts(self, rate: Array, second: Array) -> Array:
        found = self.dynamics.efforts(rate * self._length, second * self._length)
        return np.asarray(found[..., self._motors] / self.strength)

    def values(self, square: Array, second: Array) -> Array:
        """Parts of efforts and accelerations that are used: (paths, points, rows)."""
        efforts = self._efforts(np.sqrt(square), second)
        u, x = second[..., np.newaxis], square[..., np.newaxis]
        return np.concatenate([efforts, self._first * u + self._second * x], axis=-1)

    def typical_squares(self) -> Array:
        """Squared rates at which speeds take a good part of some effort, but not all of it."""
        rate = np.ones((self.dynamics.shape[0], 1))
        zero = np.zeros(self.dynamics.shape)
        for _ in range(ATTEMPTS):
            part = np.abs(self._efforts(rate + zero, zero) - self.rest)
            most = part.max(axis=(1, 2), initial=0.0)[:, np.newaxis]
            wrong = (most > 0) & ((most < TYPICAL / 3) | (most > TYPICAL * 3))
            if not wrong.any():
                break
            change = np.sqrt(TYPICAL / np.where(wrong, most, TYPICAL))
            rate = rate * np.clip(change, 1e-3, 1e3)
        return np.minimum(self.most, rate**2)

    def linearized(self, square: Array) -> tuple[Array, Array]:
        """Coefficients b and c of rows that touch the limits at given squared rates.

        Without friction efforts are linear in squared rates, and any of these serve.
        """
        rate = np.sqrt(square)
        near = np.maximum(rate, SLOW * rate.max(axis=-1, keepdims=True))
        ahead, back = (1 + SPREAD) * near, (1 - SPREAD) * near
        zero = np.zeros(rate.shape)
        slope = self._efforts(ahead, zero) - self._efforts(back, zero)
        slope /= (ahead**2 - back**2)[..., np.newaxis]
        at = self._efforts(rate, zero) - slope * square[..., np.newaxis]
        return (
            np.concatenate([slope, self._second], axis=-1),
            np.concatenate([at, 0 * self._second], axis=-1),
        )


def find_optima(
    rows: LimitRows, grids: Array, ends: tuple[Array, Array]
) -> tuple[list[TimeOptimum], PathPassage]:
    """Find the least times of paths.

    Args:
        rows: The limits, at the points of the grids and between them: every second point is one of
            the grid, the others are tested.
        grids: Parameters of all these points, (paths, 2 N - 1).
        ends: Rates of the parameters at start and end, (paths,) each.

    Returns:
        The fastest passages, and the passage that they come from; where this is not finite, a path
        cannot be passed.
    """
    lengths = grids[:, -1:]
    grid = grids / lengths
    first, last = ((rate / lengths[:, 0]) ** 2 for rate in ends)
    square = rows.typical_squares()
    tight = np.ones((len(grid), (grid.shape[1] + 1) // 2, len(rows.labels)))
    bends, may_bend = np.zeros((len(grid), tight.shape[1] - 1)), True
    best: _Timing | None = None
    for _ in range(ROUNDS):
        limited = _tight_rows(rows, rows.linearized(square), tight)
        passage = pass_paths(grid[:, ::2], limited, first, last, bends)
        if not np.isfinite(passage.squares).all() or passage.squares.max() > FREE:
            if best is None:
                return [], passage
            if not may_bend:
                break
            bends, may_bend = np.zeros_like(bends), False  # they leave no room where motors hold
            continue
        timing = _Timing.of(rows, grid, passage.squares, bends)
        error = timing.error(limited, tight)
        settled = False
        if error <= NEGLIGIBLE and best is not None:
            change = np.abs(timing.durations - best.durations)
            settled = bool((change <= SETTLED * timing.durations).all())
        best, square = timing, timing.square
        if settled and timing.excess <= EXCESS:
            break
        if settled or (tight > 1).any():
            tight = _tightened(tight, timing.over)
        elif may_bend:
            bends = _bends(timing.second[:, 1::2])
    assert best is not None
    return best.optima(rows.labels, grids), passage


@dataclass(frozen=True)
class _Timing:
    """Rates at all points of paths, those between points of the grid included.

    Attributes:
        grid: Parameters, from 0 to 1.
        square, second: Squared and second rates at all points.
        bends: How much the second rate grows within intervals.
        values: Parts of the limits that are used at all points, without speeds.
        usage: Parts of all limits at the start, between and at the end of intervals.
    """

    grid: Array
    square: Array
    second: Array
    bends: Array
    values: Array
    usage: Array

    @classmethod
    def of(cls, rows: LimitRows, grid: Array, squares: Array, bends: Array) -> _Timing:
        square, second = _between(grid, squares, bends)
        values = rows.values(square, second)
        usage = _usage(rows, values, square, second, bends)
        return cls(grid, square, second, bends, values, usage)

    @cached_property
    def over(self) -> Array:
        """By how much limits are exceeded: (paths, intervals, limits)."""
        return np.asarray(np.abs(self.usage).max(axis=2) - 1)

    @property
    def excess(self) -> float:
        return float(self.over.max(initial=0.0))

    def error(self, limited: PathRows, tight: Array) -> float:
        """By how much efforts differ from the rows that stand for them."""
        found = limited.value(self.second[:, ::2], self.square[:, ::2])
        found = found / tight[..., : found.shape[-1]]
        return float(np.abs(self.values[:, ::2] - found).max(initial=0.0))

    @cached_property
    def durations(self) -> Array:
        """Durations of the paths."""
        rates = np.sqrt(self.square[:, ::2])
        times = np.diff(self.grid[:, ::2]) / (rates[:, 1:] + rates[:, :-1])
        return np.asarray(times.sum(axis=-1))

    def optima(self, labels: tuple[str, ...], grids: Array) -> list[TimeOptimum]:
        length = grids[:, -1:]
        rates, second = np.sqrt(self.square[:, ::2]) * length, self.second[:, 1::2] * length
        parts = grids[:, ::2], rates, second, self.bends * length, self.usage, self.over
        return [
            TimeOptimum(s, rate, second, bends, labels, usage, float(over.max(initial=0.0)))
            for s, rate, second, bends, usage, over in zip(*parts, strict=True)
        ]


def _tight_rows(rows: LimitRows, linear: tuple[Array, Array], tight: Array) -> PathRows:
    """Rows at the points of the grid, with limits divided by factors."""
    count = rows.inertia.shape[-1]
    a, b, c = (x[:, ::2] * tight[..., :count] for x in (rows.inertia, *linear))
    fastest = np.abs(rows.speeds[:, ::2] * tight[..., count:]).max(axis=-1, initial=0.0)
    return PathRows(a, b, c, 1 / np.maximum(fastest, UNBOUNDED**-0.5) ** 2)


def _bends(second: Array) -> Array:
    """How much second rates grow within intervals, from their means; zero where limits change.

    Of the differences to both neighbours the smaller is taken, none if they differ in sign.
    """
    if second.shape[1] < 3:
        return np.zeros_like(second)
    steps = np.diff(second)
    back, ahead = steps[:, :-1], steps[:, 1:]
    inner = np.where(back * ahead > 0, np.sign(back) * np.minimum(np.abs(back), np.abs(ahead)), 0)
    found = np.concatenate([inner[:, :1], inner, inner[:, -1:]], axis=1)
    return np.asarray(np.clip(found, -np.abs(second) / 4, np.abs(second) / 4))


def _between(grid: Array, squares: Array, bends: Array) -> tuple[Array, Array]:
    """Squared and second rates at all points; at a point of the grid, those of the interval after.

    Within an interval the second rate is linear, and the squared rate its integral.
    """
    found, second = np.empty(grid.shape), np.empty(grid.shape)
    found[:, ::2] = squares
    steps = np.diff(grid[:, ::2])
    mean = (squares[:, :-1] + squares[:, 1:]) / 2
    found[:, 1::2] = np.maximum(mean - steps * bends / 4, 0.0)
    each = np.diff(squares) / (2 * steps)
    second[:, :-1:2], second[:, 1::2] = each - bends / 2, each
    second[:, -1] = each[:, -1] - bends[:, -1] / 2
    return found, second


def _usage(rows: LimitRows, values: Array, square: Array, second: Array, bends: Array) -> Array:
    """Parts of all limits at the start, between and at the end of intervals.

    Returns:
        (paths, intervals, 3, limits)
    """
    speeds = rows.speeds * np.sqrt(square)[..., np.newaxis]
    both = np.concatenate([values, speeds], axis=-1)
    ends = both[:, 2::2].copy()
    # values there have the second rate of the next interval
    change = second[:, :-1:2] + bends - second[:, 2::2]
    ends[..., : values.shape[-1]] += rows.inertia[:, 2::2] * change[..., np.newaxis]
    return np.stack([both[:, :-1:2], both[:, 1::2], ends], axis=2)


def _tightened(tight: Array, over: Array) -> Array:
    """Tighten limits at both ends of intervals in which they are exceeded."""
    more = 1 + TIGHTER * over.clip(0.0)
    more[over <= EXCESS / 2] = 1.0
    found = tight.copy()
    found[:, :-1] *= more
    found[:, 1:] = np.maximum(found[:, 1:], tight[:, 1:] * more)
    return found
