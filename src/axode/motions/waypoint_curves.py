r"""Curves through waypoints: columns of numbers, positions and unit quaternions by a parameter.

Between two poses a body turns about one axis. Through more, the unit quaternions are a spline in
four dimensions, divided by its length,

.. math:: q = z / |z|,

which is as smooth as the spline, passes the waypoints, has no singular orientation, and turns with
the frames that it is described in.

Splines in time are of fifth degree: four derivatives are continuous at the knots.

`SegmentTimes` makes the times of waypoints as short as limits allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import factorial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.motions.waypoints import Waypoints
from axode.numerics.tolerances import LOGARITHM_STEP, ROUNDING

LONG_TURN = 1.6  # [rad] rotations farther apart get another between them; not a usual angle

Array = npt.NDArray[np.float64]
PLACES = np.linspace(0.0, 1.0, 17)  # of an interval while its duration is searched for
FINE_PLACES = np.linspace(0.0, 1.0, 65)
REFINEMENTS = 3  # of the neighbourhood of the largest sample
NORM = 24.0  # of the sum of powers that stands for the largest sample
ITERATIONS = 60
SHORTEST = 0.05  # of the mean duration, at first


@dataclass(frozen=True)
class KnotGroup:
    """Columns that share their knots.

    Attributes:
        columns: Which columns of the waypoints.
        values: At the knots, (knots, columns).
        interval: Interval between waypoints that each interval between knots belongs to.
        part: The part of its duration.
        stops: Knots with neither speed nor acceleration, ends included.
    """

    columns: npt.NDArray[np.intp]
    values: Array
    interval: npt.NDArray[np.intp]
    part: Array
    stops: npt.NDArray[np.bool_]

    def durations(self, given: Array) -> Array:
        """Durations between knots from those between waypoints."""
        return np.asarray(given[self.interval] * self.part)

    def spline(self, given: Array, start: float = 0.0) -> Any:
        """Polynomials of fifth degree between the knots, at rest at stops, by time.

        Args:
            given: Durations between waypoints, (intervals,).
            start: Time of the first.
        """
        from scipy.interpolate import PPoly, make_interp_spline

        times = start + np.concatenate([[0.0], np.cumsum(self.durations(given))])
        none = np.zeros(self.values.shape[1])
        rest = [(1, none), (2, none)]
        pieces = []
        for first, last in pairwise(np.flatnonzero(self.stops)):
            own = slice(first, last + 1)
            made = make_interp_spline(times[own], self.values[own], k=5, bc_type=(rest, rest))
            pieces.append([made(times[first:last], k) / factorial(k) for k in range(5, -1, -1)])
        return PPoly(np.concatenate(pieces, axis=1), times)

    def sample(self, given: Array, places: Array) -> Array:
        """Values and two derivatives at places between 0 and 1 of every interval of waypoints.

        Returns:
            (3, intervals, places, columns)
        """
        starts = np.concatenate([[0.0], np.cumsum(given)[:-1]])[:, np.newaxis]
        spline, times = self.spline(given), starts + given[:, np.newaxis] * places
        return np.array([spline(times, order) for order in range(3)])


def knot_groups(waypoints: Waypoints, stops: Sequence[int]) -> list[KnotGroup]:
    """Group the columns of waypoints by their knots.

    The straight line between two unit quaternions nears zero as they near half a turn; a knot
    halfway on the great circle keeps their spline away from it.
    """
    values = waypoints.values
    count = len(values) - 1
    stopped = np.zeros(count + 1, dtype=bool)
    stopped[[0, -1, *stops]] = True
    turns = [np.arange(k.start, k.stop) for k in waypoints.turns]
    plain = np.setdiff1d(np.arange(values.shape[1]), np.concatenate([np.zeros(0, int), *turns]))
    every = np.arange(count), np.ones(count)
    groups = [KnotGroup(plain, values[:, plain], *every, stopped)] if plain.size else []
    for k in turns:
        q = values[:, k]
        far = np.flatnonzero((q[1:] * q[:-1]).sum(axis=-1) < np.cos(LONG_TURN / 2))
        middle = q[far] + q[far + 1]
        middle /= np.linalg.norm(middle, axis=-1, keepdims=True)
        part = np.ones(count)
        part[far] = 0.5
        groups.append(
            KnotGroup(
                k,
                np.insert(q, far + 1, middle, axis=0),
                np.insert(every[0], far, far),
                np.insert(part, far, 0.5),
                np.insert(stopped, far + 1, False),
            )
        )
    return groups


class WaypointCurve(Protocol):
    """Columns by a parameter."""

    @property
    def end(self) -> float:
        """Largest parameter; the smallest is zero."""

    @property
    def knots(self) -> Array:
        """Parameters at which third derivatives may jump, ends included."""

    def at(self, s: Array) -> Array:
        """Columns and two derivatives: (3, S, columns)."""


@dataclass(frozen=True)
class StraightCurve:
    """From one waypoint to another, for parameters from 0 to 1: every part at one rate."""

    waypoints: Waypoints
    end: float = 1.0

    @property
    def knots(self) -> Array:
        """Both ends."""
        return np.array([0.0, 1.0])

    def at(self, s: Array) -> Array:
        """Columns and two derivatives: (3, S, columns)."""
        first, last = self.waypoints.values
        s = np.asarray(s, dtype=float)[:, np.newaxis]
        found = np.array(
            [(1 - s) * first + s * last, (last - first) + 0 * s, np.zeros((len(s), first.size))]
        )
        for k in self.waypoints.turns:
            found[..., k] = _great_circle(first[k], last[k], s)
        return found


def _great_circle(first: Array, last: Array, s: Array) -> Array:
    """Unit quaternions from one to another at one rate, with two derivatives."""
    half = 2 * np.arctan2(np.linalg.norm(last - first), np.linalg.norm(last + first))
    # sin(x half) / sin(half), also where the angle vanishes
    ratio = np.sinc(half / np.pi)
    ahead = s * np.sinc(s * half / np.pi) / ratio
    back = (1 - s) * np.sinc((1 - s) * half / np.pi) / ratio
    y = back * first + ahead * last
    rate = (np.cos(s * half) * last - np.cos((1 - s) * half) * first) / ratio
    return np.array([y, rate, -(half**2) * y])


@dataclass(frozen=True)
class SplineCurve:
    """A spline through waypoints.

    Attributes:
        waypoints: What it passes.
        parameters: Parameters of the waypoints.
        polynomials: Columns, and their piecewise polynomials; quaternions are not of unit length.
    """

    waypoints: Waypoints
    parameters: Array
    polynomials: Sequence[tuple[npt.NDArray[np.intp], Any]]

    @property
    def knots(self) -> Array:
        """Parameters of the waypoints."""
        return self.parameters

    @property
    def end(self) -> float:
        """Largest parameter."""
        return float(self.knots[-1])

    def at(self, s: Array) -> Array:
        """Columns and two derivatives: (3, S, columns)."""
        s = np.clip(np.asarray(s, dtype=float), 0.0, self.end)
        found = np.empty((3, s.size, self.waypoints.values.shape[1]))
        for columns, polynomials in self.polynomials:
            for order in range(3):
                found[order][:, columns] = polynomials(s, order)
        self.waypoints.normalize(found)
        return found


def timed_spline(waypoints: Waypoints, times: Array, stops: Sequence[int]) -> SplineCurve:
    """Quintic spline through waypoints at given times, at rest at both ends and at stops.

    Four derivatives are continuous, at stops two: speed and acceleration vanish there.
    """
    groups = knot_groups(waypoints, stops)
    made = [(group.columns, group.spline(np.diff(times), times[0])) for group in groups]
    return SplineCurve(waypoints, times, made)


def regular_spline(waypoints: Waypoints, parameters: Array) -> SplineCurve:
    """Natural cubic spline through waypoints: a geometric path with two continuous derivatives."""
    from scipy.interpolate import CubicSpline

    made = []
    for group in knot_groups(waypoints, ()):
        s = np.concatenate([[0.0], np.cumsum(group.durations(np.diff(parameters)))])
        made.append((group.columns, CubicSpline(s, group.values, bc_type="natural")))
    return SplineCurve(waypoints, parameters, made)


class SegmentTimes:
    """Durations between waypoints under limits of the parts' speeds and accelerations.

    Args:
        waypoints: Two or more, no two neighbours alike.
        stops: Numbers of those to stop at.
        speed, acceleration: Limits of the parts; infinity for none.
    """

    def __init__(
        self, waypoints: Waypoints, stops: Sequence[int], speed: Array, acceleration: Array
    ) -> None:
        self.waypoints, self.speed, self.acceleration = waypoints, speed, acceleration
        self.groups: list[KnotGroup] = knot_groups(waypoints, stops)

    def shortest(self) -> Array:
        """Find times of the waypoints whose last is least, at least near the guess.

        The sum of the durations is minimized with the largest part of a limit in every interval as
        a constraint, by sequential quadratic programming in the logarithms of the durations.
        """
        from scipy.optimize import minimize

        distances = self.waypoints.distances()
        accelerated = 2 * np.sqrt(distances / self.acceleration)
        guess = np.maximum(distances / self.speed, accelerated).max(axis=1)
        guess = np.maximum(guess, SHORTEST * guess.mean())
        guess = guess * self.factors(guess, PLACES).max()
        if guess.size > 1:
            found = minimize(
                lambda x: np.log(np.exp(x).sum()),
                np.log(guess),
                jac=lambda x: np.exp(x) / np.exp(x).sum(),
                constraints={"type": "ineq", "fun": self._slack, "jac": self._slack_jacobian},
                method="SLSQP",
                options={"maxiter": ITERATIONS, "ftol": 1e-5},
            )
            if np.isfinite(found.x).all():
                better = np.exp(found.x)
                better = better * self.factors(better, PLACES).max()
                guess = better if better.sum() < guess.sum() else guess
        return np.concatenate([[0.0], np.cumsum(guess)]) * self._largest(guess)

    def factors(self, durations: Array, places: Array) -> Array:
        """How many times slower the limits would have to be: (intervals, places, limits)."""
        shape = (3, durations.size, places.size, self.waypoints.values.shape[1])
        y = np.empty(shape)
        for group in self.groups:
            y[..., group.columns] = group.sample(durations, places)
        self.waypoints.normalize(y)
        v, a = self.waypoints.magnitudes(y.reshape(3, -1, shape[-1]))
        both = np.concatenate([v / self.speed, np.sqrt(a / self.acceleration)], axis=-1)
        return both.reshape(*shape[1:3], -1)

    def _slack(self, x: Array) -> Array:
        """Minus the logarithm of a smooth largest factor, in every interval."""
        factors = self.factors(np.exp(x), PLACES).clip(ROUNDING).reshape(x.size, -1)
        most = factors.max(axis=-1)
        sums = ((factors / most[:, np.newaxis]) ** NORM).sum(axis=-1)
        return np.asarray(-np.log(most) - np.log(sums) / NORM)

    def _slack_jacobian(self, x: Array) -> Array:
        here = self._slack(x)
        changed = [self._slack(x + off) - here for off in LOGARITHM_STEP * np.eye(x.size)]
        return np.stack(changed, axis=1) / LOGARITHM_STEP

    def _largest(self, durations: Array) -> float:
        """Largest factor anywhere, to rounding: samples, then more around the largest of each."""
        found = self.factors(durations, FINE_PLACES)
        most, width = float(found.max()), FINE_PLACES[1]
        # the interval and the place of the largest sample of every limit
        flat = found.reshape(-1, found.shape[-1]).argmax(axis=0)
        at = FINE_PLACES[flat % FINE_PLACES.size]
        for _ in range(REFINEMENTS):
            near = np.clip(at[:, np.newaxis] + width * (2 * FINE_PLACES - 1), 0.0, 1.0)
            found = self.factors(durations, near.ravel())
            found = found.reshape(found.shape[0], *near.shape, -1).max(axis=0)
            own = found[np.arange(at.size), :, np.arange(at.size)]
            most = max(most, float(own.max()))
            at = near[np.arange(at.size), own.argmax(axis=1)]
            width *= 2 * FINE_PLACES[1]
        return most
