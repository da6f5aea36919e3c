"""The fastest timing of paths under limits of a model, and what limits it where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.problems.motions.path_dynamics import PathDynamics
from axode.problems.motions.path_limits import PathLimits
from axode.problems.motions.reachability import UNBOUNDED, Passage, PathRows, pass_paths
from axode.problems.motions.time_laws import TimeLaw, quadratic_law

Array = npt.NDArray[np.float64]
EXCESS = 1e-4  # relative: limits are exceeded by less between the points of the grid
TIGHTER = 1.2  # times the excess that a limit is tightened by there
ROUNDS = 12  # of tightening, and of linearization
LINEAR = 1e-9  # of the limits: efforts that differ by less from their linearization
SPREAD = 0.01  # relative, of rates between which efforts are differentiated
SLOW = 1e-3  # of the largest rate: a slower one is differentiated at this rate
FREE = 1e-3 * UNBOUNDED


@dataclass(frozen=True, eq=False, repr=False)
class TimeOptimum:
    """How a path is passed in the least time, by points of a grid.

    Attributes:
        places: Parameters of the path, (N,), the path's own.
        rates: Their rates [1/s], (N,).
        second_rates: Their second rates [1/s^2] between the points, (N - 1,).
        labels: Names of the limits.
        usage: Part of each limit that is used, signed, at the start, between and at the end of
            every interval: (N - 1, 3, limits).
        excess: Largest part by which a limit is exceeded, between points too.
    """

    places: Array
    rates: Array
    second_rates: Array
    labels: tuple[str, ...]
    usage: Array
    excess: float

    @cached_property
    def law(self) -> TimeLaw:
        """The parameter over time."""
        return quadratic_law(self.places, self.rates**2)

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
        """The limit that is active in each interval, with its sign: `+tau1`, `-tau2`."""
        largest = np.abs(self.usage).max(axis=1).argmax(axis=1)
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
        return f"TimeOptimum({self.duration:g} s, {len(self.switches)} phases)"


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
        motors = dynamics.model.inputs[: dynamics.model.facts.motors]
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
) -> tuple[list[TimeOptimum], Passage]:
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
    square = np.minimum(rows.most, 1.0)
    tight = np.ones((len(grid), (grid.shape[1] + 1) // 2, len(rows.labels)))
    for _ in range(ROUNDS):
        limited = _tight_rows(rows, rows.linearized(square), tight)
        passage = pass_paths(grid[:, ::2], limited, first, last)
        if not np.isfinite(passage.squares).all() or passage.squares.max() > FREE:
            return [], passage
        square, second = _between(grid, passage.squares)
        values = rows.values(square, second)
        at_grid = limited.value(second[:, ::2], square[:, ::2]) / tight[..., : values.shape[-1]]
        error = float(np.abs(values[:, ::2] - at_grid).max(initial=0.0))
        usage = _usage(rows, values, square, second)
        over = np.abs(usage).max(axis=2) - 1
        if error <= LINEAR:
            if over.max(initial=0.0) <= EXCESS:
                break
            tight = _tightened(tight, over)
    return [
        TimeOptimum(
            grids[k, ::2],
            np.sqrt(passage.squares[k]) * lengths[k],
            second[k, 1::2] * lengths[k],
            rows.labels,
            usage[k],
            float(over[k].max(initial=0.0)),
        )
        for k in range(len(grids))
    ], passage


def _tight_rows(rows: LimitRows, linear: tuple[Array, Array], tight: Array) -> PathRows:
    """Rows at the points of the grid, with limits divided by factors."""
    count = rows.inertia.shape[-1]
    a, b, c = (x[:, ::2] * tight[..., :count] for x in (rows.inertia, *linear))
    fastest = np.abs(rows.speeds[:, ::2] * tight[..., count:]).max(axis=-1, initial=0.0)
    return PathRows(a, b, c, 1 / np.maximum(fastest, UNBOUNDED**-0.5) ** 2)


def _between(grid: Array, squares: Array) -> tuple[Array, Array]:
    """Squared and second rates at all points; at a point of the grid, those of the interval after.

    Within an interval the squared rate is linear in the parameter.
    """
    found, second = np.empty(grid.shape), np.empty(grid.shape)
    found[:, ::2] = squares
    part = (grid[:, 1::2] - grid[:, :-1:2]) / (grid[:, 2::2] - grid[:, :-1:2])
    found[:, 1::2] = squares[:, :-1] + part * np.diff(squares)
    each = np.diff(squares) / (2 * np.diff(grid[:, ::2]))
    second[:, :-1:2] = second[:, 1::2] = each
    second[:, -1] = each[:, -1]
    return found, second


def _usage(rows: LimitRows, values: Array, square: Array, second: Array) -> Array:
    """Parts of all limits at the start, between and at the end of intervals.

    Returns:
        (paths, intervals, 3, limits)
    """
    speeds = rows.speeds * np.sqrt(square)[..., np.newaxis]
    both = np.concatenate([values, speeds], axis=-1)
    ends = both[:, 2::2].copy()
    change = second[:, :-1:2] - second[:, 2::2]  # values there have the next second rate
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
