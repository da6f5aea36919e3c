"""Planned motions: named quantities and poses over time, with exact derivatives.

A motion is a curve by a parameter, and a law of time: how far along the curve it is. All laws are
polynomials between breakpoints: one for the smoothest motion, three for the trapezoid, seven with
limited jerk, one per interval of a grid for time-optimal motions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.motions.waypoint_curves import SplineCurve, StraightCurve, WaypointCurve
from axode.motions.waypoints import Waypoints
from axode.problems.arguments import StateArgument
from axode.problems.inverse.inverse import equal_times
from axode.problems.inverse.motions import (
    DesiredMotion,
    MotionSamples,
    PositionRow,
    Rows,
    TimeSignal,
    check_times,
    full_names,
    rows_by_name,
)

if TYPE_CHECKING:
    from axode.motions.time_optimum import TimeOptimum
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
HUGE = 1e100  # a larger jerk is no limit
# of speed, acceleration and jerk of the quintic from 0 to 1 within a unit of time
PEAKS = 15 / 8, 10 / np.sqrt(3), 60.0


@dataclass(frozen=True)
class TimeLaw:
    """A parameter over time, polynomials between breakpoints.

    Attributes:
        breaks: [s], ascending from zero, (pieces + 1,).
        coefficients: Factors of ascending powers of the time since a piece began, (pieces, powers).
    """

    breaks: Array
    coefficients: Array

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.breaks[-1])

    def at(self, times: Array) -> Array:
        """Parameter, rate and second rate: (3, T); at rest before the start and after the end."""
        times = np.asarray(times, dtype=float)
        inside = (times >= 0.0) & (times <= self.duration)
        clipped = np.clip(times, 0.0, self.duration)
        piece = np.searchsorted(self.breaks, clipped, side="right") - 1
        piece = np.minimum(piece, len(self.coefficients) - 1)
        powers = self.coefficients[piece].T
        value, rate, second = with_rates(powers, clipped - self.breaks[piece])
        return np.array([value, rate * inside, second * inside])

    def scaled(self, factor: float) -> TimeLaw:
        """Return the same law, `factor` times slower."""
        powers = float(factor) ** -np.arange(self.coefficients.shape[1])
        return TimeLaw(self.breaks * factor, self.coefficients * powers)


def with_rates(coefficients: Any, h: Any) -> tuple[Any, Any, Any]:
    """Polynomial and two derivatives by Horner's rule, from factors of ascending powers."""
    value: Any = 0.0
    rate: Any = 0.0
    second: Any = 0.0
    for c in coefficients[::-1]:
        second = second * h + 2 * rate
        rate = rate * h + value
        value = value * h + c
    return value, rate, second


def minimum_jerk_law(duration: float) -> TimeLaw:
    """From 0 to 1 with the least integral of squared jerk, at rest at the ends.

    The quintic of T. Flash and N. Hogan, "The coordination of arm movements", J. Neuroscience 5,
    1985.
    """
    made = TimeLaw(np.array([0.0, 1.0]), np.array([[0.0, 0.0, 0.0, 10.0, -15.0, 6.0]]))
    return made.scaled(duration)


def trapezoidal_law(speed: float, acceleration: float, jerk: float = np.inf) -> TimeLaw:
    """From 0 to 1, at rest at the ends, in the least time under limits of the derivatives.

    With a limit of the jerk: up to seven pieces. Speed and acceleration may be without limit, not
    all three.
    """
    if jerk > HUGE:
        jerk = HUGE if np.isinf(acceleration) else np.inf
    rise, hold = _acceleration_phases(speed, acceleration, jerk)
    peak = jerk * rise * (rise + hold) if rise else acceleration * hold
    cruise = max(1 / peak - (2 * rise + hold), 0.0)
    if rise:
        J = peak / (rise * (rise + hold))  # the jerk itself but for rounding
        jerks = np.array([J, 0.0, -J, 0.0, -J, 0.0, J])
        steps = np.array([rise, hold, rise, cruise, rise, hold, rise])
        jumps = np.zeros(7)
    else:
        A = peak / hold
        jerks = np.zeros(3)
        steps, jumps = np.array([hold, cruise, hold]), np.array([A, -A, -A])
    return _integrate(steps, jerks, jumps)


def _acceleration_phases(V: float, A: float, J: float) -> tuple[float, float]:
    """How long the acceleration rises, and how long it is held, on the way to the peak speed."""
    if np.isinf(J):
        return 0.0, min(V / A, np.sqrt(1 / A))
    # speed reached, acceleration reached or not
    rise = min(A / J, np.sqrt(V / J))
    hold = max(V / A - rise, 0.0) if rise >= A / J else 0.0
    if V * (2 * rise + hold) <= 1:
        return rise, hold
    # speed not reached: rise and hold cover half the distance
    rise = min(A / J, np.cbrt(1 / (2 * J)))
    # J rise (rise + hold) (2 rise + hold) = 1
    hold = 0.0
    if rise >= A / J:
        hold = (np.sqrt(rise**2 + 4 / (J * rise)) - 3 * rise) / 2
    return float(rise), max(float(hold), 0.0)


def _integrate(steps: Array, jerks: Array, jumps: Array) -> TimeLaw:
    """Integrate pieces of constant jerk, with jumps of the acceleration before each."""
    kept = steps > 0
    # a piece without duration leaves its jump to the next
    totals = np.cumsum(jumps)
    level = np.diff(totals[kept], prepend=0.0)
    coefficients = np.zeros((int(kept.sum()), 4))
    s = v = a = 0.0
    for k, (h, j, jump) in enumerate(zip(steps[kept], jerks[kept], level, strict=True)):
        a += jump
        coefficients[k] = s, v, a / 2, j / 6
        s, v, a = s + h * (v + h * (a / 2 + h * j / 6)), v + h * (a + h * j / 2), a + h * j
    return TimeLaw(np.concatenate([[0.0], np.cumsum(steps[kept])]), coefficients)


def law_of_rates(parameters: Array, rates: Array, bends: Array) -> TimeLaw:
    """Law of a grid between whose points the second rate is linear in time.

    Args:
        parameters: Ascending, (N,).
        rates: Rates there, (N,), no two neighbours zero.
        bends: How much the second rate grows between them, (N - 1,), little beside itself.
    """
    steps, sums = np.diff(parameters), rates[1:] + rates[:-1]
    # the parameter grows by sums h / 2 - bends h^2 / 12
    h = 12 * steps / (3 * sums + np.sqrt(9 * sums**2 - 12 * steps * bends))
    seconds = np.diff(rates) / h - bends / 2
    coefficients = [parameters[:-1], rates[:-1], seconds / 2, bends / (6 * h)]
    breaks = np.concatenate([[0.0], np.cumsum(h)])
    return TimeLaw(breaks, np.stack(coefficients, axis=-1))


SAMPLES = 500  # of a motion, unless given
MARGIN_SAMPLES = 2001
RATES = {"": "", "m": "m/s", "rad": "rad/s", "m/s": "m/s^2", "rad/s": "rad/s^2"}
SECOND_RATES = {"": "", "m": "m/s^2", "rad": "rad/s^2", "m/s": "m/s^3", "rad/s": "rad/s^3"}
MAX_PIECES = 64  # of a formula


@dataclass(frozen=True, eq=False, repr=False)
class PlannedMotion:
    """Coordinates, measures and poses of bodies over time.

    `ax.inverse_dynamics(model, motion)` finds the whole motion of a model, and the forces it needs.
    The motion is at rest before its start and after its end.

    Attributes:
        waypoints: What moves, and where it passes.
        curve: The columns by a parameter.
        law: The parameter by time.
        name: What messages call it.
        limits: By kind ("speed", "acceleration"), the limits it was made for, one per part.
        optimum: What limits a time-optimal motion where; None for others.
    """

    waypoints: Waypoints
    curve: WaypointCurve
    law: TimeLaw
    name: str
    limits: Mapping[str, Array] = field(default_factory=dict)
    optimum: TimeOptimum | None = None

    @property
    def duration(self) -> float:
        """[s]"""
        return self.law.duration

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns; a body has seven, from `<body>.x` to `<body>.qz`."""
        return self.waypoints.names

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the columns; "" where the motion was planned without a model."""
        return self.waypoints.units

    @property
    def times(self) -> Array:
        """Times at which pieces of the motion meet, start and end included [s]."""
        return self.law.breaks

    def values(self, times: npt.ArrayLike) -> Array:
        """Columns, rates and accelerations at some times: (3, T, columns)."""
        s, rate, second = self.law.at(np.atleast_1d(np.asarray(times, dtype=float)))
        y, y1, y2 = self.curve.at(s)
        rate, second = rate[:, np.newaxis], second[:, np.newaxis]
        return np.array([y, y1 * rate, y2 * rate**2 + y1 * second])

    def __call__(self, times: npt.ArrayLike) -> dict[str, Array]:
        """Columns at some times by name, with `_rate` and `_acceleration` of each."""
        return named_rates(self.names, np.moveaxis(self.values(times), -1, 0))

    def formulas(self, t: Any) -> dict[str, Any]:
        """Columns, rates and accelerations by name as formulas of time.

        They are for functions of the state that `simulate` traces: `motion.formulas(s.t)`.

        Args:
            t: Time: a symbol, a formula or a number, whatever adds, multiplies and compares.

        Raises:
            NotApplicable: for poses, time-optimal motions and very many pieces.
        """
        breaks, pieces = _polynomials(self.curve, self.law)
        if pieces is None or len(pieces) > MAX_PIECES:
            raise NotApplicable(
                f"a motion of poses, a time-optimal one or one of more than {MAX_PIECES} pieces is "
                "no formula of time; give its trajectory of ax.inverse_dynamics as input, or "
                "ax.Callback"
            )
        end = float(breaks[-1])
        inside = (t >= 0.0) * (t <= end)
        clipped = t * inside + end * (t > end)
        chosen = [1.0, *(clipped >= float(x) for x in breaks[1:-1])]
        steps = np.diff(breaks, prepend=0)
        h = clipped - sum(on * float(step) for on, step in zip(chosen, steps, strict=False))
        changes = np.diff(pieces, axis=0, prepend=0.0)  # of the coefficients, from piece to piece
        found: dict[str, Any] = {}
        for name, own in zip(self.names, np.moveaxis(changes, -1, 0), strict=True):
            factors = [
                sum(on * float(change) for on, change in zip(chosen, power, strict=True) if change)
                for power in own.T
            ]
            value, rate, second = with_rates(factors, h)
            found |= {name: value, f"{name}_rate": rate * inside}
            found[f"{name}_acceleration"] = second * inside
        return found

    def sampled(self, save_every: float | None = None) -> Trajectory:
        """Samples with names and units, to plot, to save, or to hand to `axode inverse --motion`.

        Args:
            save_every: Time between samples [s]; 1/500 of the duration unless given.
        """
        from axode.results.trajectory import Trajectory

        times = sample_times(self.duration, save_every)
        columns = self(times)
        units = [x for u in self.units for x in (u, RATES.get(u, ""), SECOND_RATES.get(u, ""))]
        kinds = dict.fromkeys(columns, "measure")
        kinds |= {f"{name}_rate": "speed" for name in self.names}
        kinds |= dict.fromkeys(self.names, "coordinate")
        return Trajectory(
            time=times,
            values=np.stack(list(columns.values()), axis=-1),
            names=tuple(columns),
            units=tuple(units),
            kinds=kinds,
            info={"model": self.name, "method": "plan"},
        )

    @property
    def margins(self) -> dict[str, float]:
        """What is left of each limit that the motion was planned with, the tightest first.

        One minus the largest part of the limit that is used, at two thousand times and where pieces
        of the motion meet.
        """
        times = np.union1d(np.linspace(0.0, self.duration, MARGIN_SAMPLES), self.times)
        speeds, accelerations = self.waypoints.magnitudes(self.values(times))
        used = {"speed": speeds, "acceleration": accelerations}
        found = {
            f"{part}, {kind}": 1.0 - float(used[kind][:, k].max()) / float(limit[k])
            for kind, limit in self.limits.items()
            if kind in used
            for k, part in enumerate(self.waypoints.parts)
            if np.isfinite(limit[k])
        }
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def solve_for(
        self,
        model: Model,
        times: Any,
        start: StateArgument,
        save_every: float | None,
        conditions: Conditions,
    ) -> MotionSamples:
        """Solve for the motion of a model, at times of its own unless others are given."""
        own = times is None
        wanted = sample_times(self.duration, save_every) if own else check_times(times)
        return desired_motion(model, self.waypoints, self.values, conditions).solve(wanted, start)

    def __repr__(self) -> str:
        moving = ", ".join(channel.name for channel in self.waypoints.channels)
        return f"PlannedMotion('{self.name}' of {moving}, {self.duration:g} s)"


# what a model makes of it ------------------------------------------------------------------------


def desired_motion(
    model: Model, waypoints: Waypoints, values: Callable[[Array], Array], conditions: Conditions
) -> DesiredMotion:
    """Describe a motion in terms of a model: its rows, and a signal for each.

    A body's pose is given by its position and the nine entries of its rotation matrix, all smooth
    whatever the orientation; they agree with each other, and least squares need no more.

    Args:
        model: The model that moves.
        waypoints: What moves of it.
        values: Columns and two derivatives at times, (3, T, columns).
        conditions: Parameters.

    Raises:
        UnknownName: for a name that is neither coordinate, speed or measure nor a body.
    """
    columns = SharedValues(values)
    numbers = [channel for channel in waypoints.channels if not channel.is_pose]
    names = full_names(model, [channel.name for channel in numbers])
    if len(set(names)) != len(names):
        raise InvalidArgument("motion: a signal is given twice")
    signals = [
        TimeSignal(name, columns.part((..., channel.first)))
        for name, channel in zip(names, numbers, strict=True)
    ]
    own = rows_by_name(model, names)
    rows = list(own.positions)
    for channel in (channel for channel in waypoints.channels if channel.is_pose):
        body, first = channel.name, channel.first
        if body not in facts_of(model).bodies:
            raise UnknownName(f"model '{model.name}'", "body", body, facts_of(model).bodies)
        pose = model.equations.poses[body]
        turn = columns.part((..., slice(first + 3, first + 7)))
        entries = SharedValues(partial(_matrix_entries, turn))
        for k, axis in enumerate("xyz"):
            rows.append(PositionRow(f"{body}.{axis}", pose.p[k], "m"))
            signals.append(TimeSignal(f"{body}.{axis}", columns.part((..., first + k))))
        for k, (i, j) in enumerate(product(range(3), range(3))):
            name = f"{body}.R{i + 1}{j + 1}"
            rows.append(PositionRow(name, pose.R[i, j], "rad"))
            signals.append(TimeSignal(name, entries.part((..., k))))
    speeds = [model.speed_names[j] for j in own.speeds]
    return DesiredMotion(model, Rows(model, rows, speeds, keep=True), signals, conditions)


class SharedValues:
    """Values that several signals share, evaluated once per array of times."""

    def __init__(self, values: Callable[[Array], Array]) -> None:
        self._values, self._times, self._last = values, None, np.zeros(0)

    def at(self, times: Any) -> Array:
        """Return the values at times."""
        if self._times is not times:
            self._times, self._last = times, self._values(times)
        return self._last

    def part(self, index: Any) -> Callable[[Array], Array]:
        """Return a part of the values as a function of times."""
        return lambda times: self.at(times)[index]


def named_rates(names: Sequence[str], values: Array) -> dict[str, Array]:
    """Values, rates and accelerations (names, 3, T) by name, `_rate` and `_acceleration`."""
    endings = ("", "_rate", "_acceleration")
    return {
        f"{name}{ending}": own
        for name, orders in zip(names, values, strict=True)
        for ending, own in zip(endings, orders, strict=True)
    }


def sample_times(duration: float, save_every: float | None) -> Array:
    """Equally spaced times from zero; 500 steps unless a time between them is given."""
    every = duration / SAMPLES if save_every is None else save_every
    return equal_times(np.array([0.0, duration]), every)


def _matrix_entries(quaternions: Callable[[Array], Array], times: Array) -> Array:
    """Entries of rotation matrices row by row, with two derivatives, of quaternions (3, T, 4)."""

    def form(a: Array, b: Array) -> Array:
        return a[:, :, np.newaxis] * b[:, np.newaxis, :]

    y, rate, second = quaternions(times)
    mixed, bent = form(y, rate), form(y, second)
    P = np.array([form(y, y), mixed + np.swapaxes(mixed, 1, 2), bent + np.swapaxes(bent, 1, 2)])
    P[2] += 2 * form(rate, rate)
    ww, xx, yy, zz = (P[..., k, k] for k in range(4))
    wx, wy, wz = (P[..., 0, k] for k in (1, 2, 3))
    xy, xz, yz = P[..., 1, 2], P[..., 1, 3], P[..., 2, 3]
    rows = [
        [ww + xx - yy - zz, 2 * (xy - wz), 2 * (xz + wy)],
        [2 * (xy + wz), ww - xx + yy - zz, 2 * (yz - wx)],
        [2 * (xz - wy), 2 * (yz + wx), ww - xx - yy + zz],
    ]
    return np.stack([entry for row in rows for entry in row], axis=-1)


def _polynomials(curve: WaypointCurve, law: TimeLaw) -> tuple[Array, Array | None]:
    """Breaks and coefficients (pieces, powers, columns) of the columns by time."""
    if isinstance(curve, StraightCurve) and not curve.waypoints.turns:
        first, last = curve.waypoints.values
        pieces = law.coefficients[:, :, np.newaxis] * (last - first)
        pieces[:, 0] += first
        return law.breaks, pieces
    is_timed = law.coefficients.shape == (1, 2) and law.coefficients[0, 1] == 1.0
    if isinstance(curve, SplineCurve) and is_timed and len(curve.polynomials) == 1:
        ((_, spline),) = curve.polynomials
        return spline.x, np.moveaxis(spline.c[::-1], 0, 1)
    return law.breaks, None
