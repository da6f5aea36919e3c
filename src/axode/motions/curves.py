"""Curves in the plane and laws of time along them, with their derivatives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened

Array = npt.NDArray[np.float64]
NODES = 12  # of Gauss's rule, a stretch of a curve
STRETCHES = 512  # of a curve whose length is measured

# quintic from 0 to 1 with no speed and no acceleration at its ends; septic: no jerk either
QUINTIC = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
SEPTIC = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20])


@dataclass(frozen=True)
class ArcLengthLaw:
    """Arc length over time."""

    length: float
    duration: float
    smooth: bool

    def at(self, times: Array) -> Array:
        """Length, speed and acceleration along the path: (3, T)."""
        u, T = np.asarray(times, dtype=float) / self.duration, self.duration
        if not self.smooth:
            return np.array([self.length * u, np.full_like(u, self.length / T), 0.0 * u])
        inside = (u >= 0) & (u <= 1)
        u = np.clip(u, 0.0, 1.0)
        return self.length * np.array(
            [QUINTIC(u), QUINTIC.deriv(1)(u) * inside / T, QUINTIC.deriv(2)(u) * inside / T**2]
        )


def law_of(length: float, duration: float | None, speed: float | None, start: str) -> ArcLengthLaw:
    positive("path: length", length)
    if (duration is None) == (speed is None):
        raise InvalidArgument("path: give either duration or speed")
    if start not in ("smooth", "moving"):
        raise UnknownName("a path", "start", start, ("smooth", "moving"))
    if duration is None:
        assert speed is not None
        positive("path: speed", speed)
        duration = length / float(speed)
    positive("path: duration", duration)
    return ArcLengthLaw(length, float(duration), start == "smooth")


def positive(what: str, value: float) -> None:
    if not (np.isfinite(float(value)) and value > 0):
        raise InvalidArgument(f"{what} must be finite and > 0, got {value}")


class JoinedLines:
    """Line, curve of seventh degree, line: y(x), by arc length."""

    def __init__(self, distance: float, length: float, lead: float) -> None:
        from scipy.interpolate import BPoly

        self.length, self.lead = length, lead
        slope = [SEPTIC, *(SEPTIC.deriv(k) for k in (1, 2, 3))]
        self._y = [distance / length**k * p for k, p in enumerate(slope)]
        x = np.linspace(0.0, length, STRETCHES + 1)
        lengths = np.concatenate([[0.0], np.cumsum(self._arc(x[:-1], x[1:]))])
        self._curved = float(lengths[-1])
        self.total = self._curved + 2 * lead
        y = self._derivatives(x)
        size = np.sqrt(1 + y[1] ** 2)
        # x by arc length, through places, slopes and curvatures: exact to rounding
        nodes = np.stack([x, 1 / size, -y[1] * y[2] / size**4], axis=-1)
        self._place = BPoly.from_derivatives(lengths, nodes)

    def _derivatives(self, x: Array) -> Array:
        """y and three derivatives by x, x counted from the curve's start."""
        u = np.clip(x / self.length, 0.0, 1.0)
        return np.array([p(u) for p in self._y])

    def _arc(self, a: Any, b: Any) -> Any:
        """Length of the curve between two places, by Gauss's rule."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        a, b = np.asarray(a)[..., np.newaxis], np.asarray(b)[..., np.newaxis]
        x = (a + b) / 2 + (b - a) / 2 * nodes
        slope = self._derivatives(x)[1]
        return ((b - a)[..., 0] / 2) * (np.sqrt(1 + slope**2) @ weights)

    def pose(self, s: Array, v: Array, a: Array) -> Array:
        """Pose and two derivatives for arc length, speed and acceleration along the path."""
        along = s - self.lead
        inside = (along >= 0) & (along <= self._curved)
        x = np.where(along < 0, along, along - self._curved + self.length)
        x = np.where(inside, self._place(np.clip(along, 0.0, self._curved)), x)
        y = self._derivatives(x)
        one, zero = np.ones_like(x), np.zeros_like(x)
        px, py = np.array([x + self.lead, one, zero, zero]), y
        size = np.hypot(px[1], py[1])
        # along the curve: dx/ds = 1/|r'|, and its rate
        rate = v / size
        second = a / size - v**2 * (px[1] * px[2] + py[1] * py[2]) / size**4
        angle = tangent(px, py)
        return np.array(
            [[p[0], p[1] * rate, p[2] * rate**2 + p[1] * second] for p in (px, py, angle)]
        )


def tangent(x: Array, y: Array) -> Array:
    """Heading of a curve and two derivatives, from three derivatives of x and y."""
    size = x[1] ** 2 + y[1] ** 2
    turn = x[1] * y[2] - y[1] * x[2]
    rate = turn / size
    second = (x[1] * y[3] - y[1] * x[3]) / size
    second -= 2 * turn * (x[1] * x[2] + y[1] * y[2]) / size**2
    return np.array([np.unwrap(np.atleast_1d(np.arctan2(y[1], x[1]))), rate, second])


def formula(name: str, given: Any, order: int = 2) -> Callable[[Array], Array]:
    """A formula of time and its derivatives: (order + 1, T)."""
    import casadi as ca

    from axode.mechanism.values.expressions import Expression, Time, parse_scalar
    from axode.symbolic.algebra.formula_symbols import symbolic_value

    t = ca.SX.sym("t")
    try:
        made = parse_scalar(given, {}) if isinstance(given, str) else given
        made = made(Time()) if callable(made) and not isinstance(made, Expression) else made
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"path, {name}: {error}") from None
    try:
        x = [ca.SX(symbolic_value(made, {"t": t}))]
        if not x[0].is_scalar():
            raise ValueError("a vector")
    except (TypeError, ValueError, KeyError, OverflowError, RuntimeError, NotImplementedError):
        raise InvalidArgument(
            f"path, {name}: expected a formula or function of t, got {shortened(given)}"
        ) from None
    for _ in range(order):
        x.append(ca.jacobian(x[-1], t))
    function = ca.Function("path", [t], [ca.densify(ca.vertcat(*x))])

    def values(times: Array) -> Array:
        found: Array = np.array(function(np.asarray(times, dtype=float)[np.newaxis]).full())
        return found

    return values
