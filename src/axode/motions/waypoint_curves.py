r"""Curves through waypoints: columns of numbers, positions and unit quaternions by a parameter.

Between two poses a body turns about one axis. Through more, the unit quaternions are a spline in
four dimensions, divided by its length,

.. math:: q = z / |z|,

which is as smooth as the spline, passes the waypoints, has no singular orientation, and turns with
the frames that it is described in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from axode.motions.quintic_splines import knot_groups
from axode.motions.waypoints import Waypoints

Array = npt.NDArray[np.float64]
_POWERS = np.arange(6.0)[:, np.newaxis]


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
