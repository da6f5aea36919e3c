r"""Quintic splines through waypoints at rest at stops, for many choices of durations at once.

The unknowns are speed and acceleration at every knot; the third and fourth derivatives are
continuous there. Between two knots the spline is the polynomial

.. math:: y = \sum_{k=0}^{5} c_k \tau^k, \qquad \tau = t / h \in [0, 1],

with the values, speeds and accelerations of its ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.motions.waypoints import Waypoints

Array = npt.NDArray[np.float64]
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
