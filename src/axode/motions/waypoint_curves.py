r"""Curves through waypoints: columns of numbers, positions and unit quaternions by a parameter.

Between two poses a body turns about one axis. Through more, the unit quaternions are a spline in
four dimensions, divided by its length,

.. math:: q = z / |z|,

which is as smooth as the spline, passes the waypoints, has no singular orientation, and turns with
the frames that it is described in.

The unknowns of splines of fifth degree are speed and acceleration at every knot; the third and
fourth derivatives are continuous there. Between two knots the spline is the polynomial

.. math:: y = \sum_{k=0}^{5} c_k \tau^k, \qquad \tau = t / h \in [0, 1],

with the values, speeds and accelerations of its ends.

`SegmentTimes` makes the times of waypoints as short as limits allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.motions.waypoints import Waypoints

LONG_TURN = 1.6  # [rad] rotations farther apart get another between them; not a usual angle

# c from y1 - y0, v0 h, v1 h, a0 h^2, a1 h^2
_DIFFERENCE = np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
_SPEEDS = np.array([[0.0, 1.0, 0.0, -6.0, 8.0, -3.0], [0.0, 0.0, 0.0, -4.0, 7.0, -3.0]])
_ACCELERATIONS = np.array([[0.0, 0.0, 0.5, -1.5, 1.5, -0.5], [0.0, 0.0, 0.0, 0.5, -1.0, 0.5]])
# third and fourth derivative by tau at both ends, from c
_AT_ENDS = {
    (3, 0): np.array([0.0, 0.0, 0.0, 6.0, 0.0, 0.0]),
    (3, 1): np.array([0.0, 0.0, 0.0, 6.0, 24.0, 60.0]),
    (4, 0): np.array([0.0, 0.0, 0.0, 0.0, 24.0, 0.0]),
    (4, 1): np.array([0.0, 0.0, 0.0, 0.0, 24.0, 120.0]),
}
Array = npt.NDArray[np.float64]
_POWERS = np.arange(6.0)[:, np.newaxis]
PLACES = np.linspace(0.0, 1.0, 17)  # of an interval while its duration is searched for
FINE_PLACES = np.linspace(0.0, 1.0, 65)
REFINEMENTS = 3  # of the neighbourhood of the largest sample
NORM = 24.0  # of the sum of powers that stands for the largest sample
STEP = 1e-6  # of the logarithm of a duration, for derivatives
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
        """Durations between knots from those between waypoints, (..., intervals)."""
        return np.asarray(given[..., self.interval] * self.part)

    def coefficients(self, given: Array) -> Array:
        """Coefficients c of all intervals: (..., intervals, 6, columns), from (..., intervals)."""
        h = self.durations(given)
        y = self.values
        v, a = _knot_rates(y, h, self.stops)
        h = h[..., np.newaxis, np.newaxis]
        c = _DIFFERENCE[:, np.newaxis] * (y[1:] - y[:-1])[:, np.newaxis, :]
        c = c + np.zeros_like(h)
        c[..., 0, :] += y[:-1]
        for end, at in enumerate((slice(None, -1), slice(1, None))):
            c += _SPEEDS[end][:, np.newaxis] * (h * v[..., at, np.newaxis, :])
            c += _ACCELERATIONS[end][:, np.newaxis] * (h * h * a[..., at, np.newaxis, :])
        return np.asarray(c)

    def sample(self, given: Array, places: Array) -> Array:
        """Values and two derivatives at places between 0 and 1 of every interval of waypoints.

        Returns:
            (3, ..., intervals, places, columns)
        """
        h, c = self.durations(given), self.coefficients(given)
        knots, local = self._local(places)
        powers = np.arange(6)
        found = []
        for order in range(3):
            factor = np.prod([powers - k for k in range(order)], axis=0, initial=1.0)
            basis = factor * local[..., np.newaxis] ** np.maximum(powers - order, 0)
            scale = h[..., knots] ** -order
            found.append(
                np.einsum("...isk,...iskc->...isc", basis, c[..., knots, :, :])
                * scale[..., np.newaxis]
            )
        return np.array(found)

    def _local(self, places: Array) -> tuple[npt.NDArray[np.intp], Array]:
        """Interval between knots, and place there, of places in all intervals of waypoints."""
        count = int(self.interval[-1]) + 1
        first = np.searchsorted(self.interval, np.arange(count))
        halves = self.part[first] < 1.0
        later = halves[:, np.newaxis] & (places > 0.5)
        local = np.where(halves[:, np.newaxis], 2 * places - later, places)
        return first[:, np.newaxis] + later, local


def knot_groups(waypoints: Waypoints, stops: Sequence[int]) -> list[KnotGroup]:
    """Group the columns of waypoints by their knots.

    The straight line between two unit quaternions nears zero as they near half a turn; a knot
    halfway on the great circle keeps their spline away from it.
    """
    values = waypoints.values
    count = len(values) - 1
    stopped = np.zeros(count + 1, dtype=bool)
    stopped[[0, -1, *stops]] = True
    turns = [
        np.arange(channel.first + 3, channel.first + 7)
        for channel in waypoints.channels
        if channel.is_pose
    ]
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


def _knot_rates(y: Array, h: Array, stops: npt.NDArray[np.bool_]) -> tuple[Array, Array]:
    """Solve for speeds and accelerations at the knots: (..., knots, columns) each."""
    n, batch = len(y), h.shape[:-1]
    unit = h.mean(axis=-1)[..., np.newaxis]
    h = h / unit
    A = np.zeros((*batch, n, 2, n, 2))  # knot and derivative; knot, speed or acceleration
    b = np.zeros((*batch, n, 2, y.shape[1]))
    inner = np.arange(1, n - 1)
    for d, order in enumerate((3, 4)):
        weight = np.minimum(h[..., :-1], h[..., 1:]) ** order  # rows of size one
        for end in (1, 0):  # of the interval before the knot, and of the one after it
            step = h[..., :-1] if end else h[..., 1:]
            scale = (1.0 if end else -1.0) * weight / step**order
            first = inner - end  # where the interval starts
            at = _AT_ENDS[order, end]
            for k in (0, 1):
                A[..., inner, d, first + k, 0] += scale * step * (_SPEEDS[k] @ at)
                A[..., inner, d, first + k, 1] += scale * step**2 * (_ACCELERATIONS[k] @ at)
            rise = y[first + 1] - y[first]
            b[..., inner, d, :] -= scale[..., np.newaxis] * (_DIFFERENCE @ at) * rise
    still = np.flatnonzero(stops)
    A[..., still, :, :, :] = 0.0
    b[..., still, :, :] = 0.0
    for k in (0, 1):
        A[..., still, k, still, k] = 1.0
    x = np.linalg.solve(A.reshape(*batch, 2 * n, 2 * n), b.reshape(*batch, 2 * n, y.shape[1]))
    x = x.reshape(*batch, n, 2, y.shape[1])
    unit = unit[..., np.newaxis]
    return x[..., 0, :] / unit, x[..., 1, :] / unit**2


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


class StraightCurve:
    """From one waypoint to another, for parameters from 0 to 1: every part at one rate."""

    def __init__(self, waypoints: Waypoints) -> None:
        self._waypoints = waypoints

    @property
    def ends(self) -> Array:
        """Columns of both waypoints."""
        return self._waypoints.values

    @property
    def has_poses(self) -> bool:
        """Return whether bodies turn, so that some columns are no polynomials."""
        return any(channel.is_pose for channel in self._waypoints.channels)

    @property
    def end(self) -> float:
        """Largest parameter."""
        return 1.0

    @property
    def knots(self) -> Array:
        """Both ends."""
        return np.array([0.0, 1.0])

    def at(self, s: Array) -> Array:
        """Columns and two derivatives: (3, S, columns)."""
        first, last = self._waypoints.values
        s = np.asarray(s, dtype=float)[:, np.newaxis]
        found = np.array(
            [(1 - s) * first + s * last, (last - first) + 0 * s, np.zeros((len(s), first.size))]
        )
        for channel in self._waypoints.channels:
            if channel.is_pose:
                k = slice(channel.first + 3, channel.first + 7)
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
        for channel in self.waypoints.channels:
            if channel.is_pose:
                k = slice(channel.first + 3, channel.first + 7)
                found[..., k] = normalized(found[..., k])
        return found


def normalized(z: Array) -> Array:
    """z / |z| with two derivatives, of (3, S, 4)."""

    def dot(a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)

    size = np.sqrt(dot(z[0], z[0]))
    y = z[0] / size
    growth = dot(y, z[1])
    rate = (z[1] - growth * y) / size
    second = dot(rate, z[1]) + dot(y, z[2])
    return np.array([y, rate, (z[2] - 2 * growth * rate - second * y) / size])


def timed_spline(waypoints: Waypoints, times: Array, stops: Sequence[int]) -> SplineCurve:
    """Quintic spline through waypoints at given times, at rest at both ends and at stops.

    Four derivatives are continuous, at stops two: speed and acceleration vanish there.
    """
    from scipy.interpolate import PPoly

    made = []
    for group in knot_groups(waypoints, stops):
        h = group.durations(np.diff(times))
        scaled = group.coefficients(np.diff(times)) / h[:, np.newaxis, np.newaxis] ** _POWERS
        breaks = times[0] + np.concatenate([[0.0], np.cumsum(h)])
        made.append((group.columns, PPoly(np.moveaxis(scaled, 1, 0)[::-1], breaks)))
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
        guess = np.maximum(distances / self.speed, 2 * np.sqrt(distances / self.acceleration)).max(
            axis=1
        )
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
        """How many times slower the limits would have to be: (..., intervals, places, limits)."""
        batch = durations.shape[:-1]
        shape = (3, *durations.shape, places.size, self.waypoints.values.shape[1])
        y = np.empty(shape)
        for group in self.groups:
            y[..., group.columns] = group.sample(durations, places)
        for channel in self.waypoints.channels:
            if channel.is_pose:
                k = slice(channel.first + 3, channel.first + 7)
                y[..., k] = normalized(y[..., k])
        v, a = self.waypoints.magnitudes(y.reshape(3, -1, shape[-1]))
        both = np.concatenate([v / self.speed, np.sqrt(a / self.acceleration)], axis=-1)
        return both.reshape(*batch, durations.shape[-1], places.size, -1)

    def _slack(self, x: Array) -> Array:
        """Minus the logarithm of a smooth largest factor, in every interval."""
        factors = self.factors(np.exp(x), PLACES).clip(1e-12)
        factors = factors.reshape(*factors.shape[:-2], -1)
        most = factors.max(axis=-1, keepdims=True)
        sums = ((factors / most) ** NORM).sum(axis=-1)
        return np.asarray(-np.log(most[..., 0]) - np.log(sums) / NORM)

    def _slack_jacobian(self, x: Array) -> Array:
        found = self._slack(np.concatenate([x + STEP * np.eye(x.size), x[np.newaxis]]))
        return np.asarray((found[:-1] - found[-1]).T / STEP)

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
