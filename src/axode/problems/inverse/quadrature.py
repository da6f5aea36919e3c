"""Quadrature: coordinates from their rates, many times of an interval at once.

Over an interval of time the rates are a polynomial through Gauss's nodes; its integral gives the
coordinates there, and these give better rates, until nothing changes. Where that takes long, as
with casters, whose swivel falls into line quickly, Newton's method finds the rates: their
derivatives by the coordinates come from differences and serve for the next intervals too. Calls are
few and take all nodes of an interval together, where a Runge-Kutta method asks for one time after
the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from axode.numerics.tolerances import JUMP_WIDTH

Array = npt.NDArray[np.float64]
Rates = Callable[[Array], Array]  # of coordinates (nodes, n), at nodes that are given before
NODES = 12
SWEEPS = 14  # more than that, and shorter intervals are quicker
LONGEST = 1 / 16  # of the duration
SLOW = 0.2  # a change that shrinks by less from sweep to sweep asks for Newton's method
CHANGE = 1e-7  # of a coordinate of size one, for differences
NEWTON_STEPS = 8
_PLACES, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_ORDERS = np.arange(NODES)
# values at the nodes -> coefficients in Legendre's polynomials, by orthogonality
_FIT = np.polynomial.legendre.legvander(_PLACES, NODES - 1).T * _WEIGHTS
_FIT = (_ORDERS[:, np.newaxis] + 0.5) * _FIT


def _integrals(places: Array) -> Array:
    """Integrals from -1 of the polynomials through the nodes: (places, nodes)."""
    values = np.polynomial.legendre.legvander(places, NODES)
    found = np.empty((np.size(places), NODES))
    found[:, 0] = np.asarray(places) + 1
    found[:, 1:] = (values[:, 2:] - values[:, :-2]) / (2 * _ORDERS[1:] + 1)
    return found @ _FIT


_AT_NODES, _AT_END = _integrals(_PLACES), _integrals(np.array([1.0]))[0]


def integrate(
    rates_at: Callable[[Array], Rates], times: Array, start: Array, tolerance: float
) -> tuple[Array, float]:
    """Integrate coordinates over all times from their rates.

    Args:
        rates_at: For times (nodes,), the rates there as a function of the coordinates.
        times: [s], one after the other.
        start: Coordinates at the first of them.
        tolerance: Error of an interval, of coordinates of size one.

    Returns:
        Coordinates (T, n), and the time that was reached: the last unless they grow without bound.
    """
    way, t, q = float(times[-1] - times[0]), float(times[0]), start
    found = np.empty((times.size, start.size))
    found[0] = start
    at, part, done = 1, LONGEST, 0.0  # intervals and what is done are parts of the duration
    slopes = _Slopes()
    while at < times.size:
        part = min(part, 1.0 - done)
        h = way * part
        allowed = tolerance if part > JUMP_WIDTH else np.inf
        rates = _solve_interval(rates_at(t + h * (_PLACES + 1) / 2), q, h, allowed, slopes)
        if rates is None:
            if part <= JUMP_WIDTH:
                return found, t
            part /= 2
            continue
        done = 1.0 if part >= 1.0 - done else done + part
        end = float(times[0]) + way * done
        inside = times[at:][np.abs(times[at:] - times[0]) <= abs(way) * done]
        found[at : at + inside.size] = q + h / 2 * _integrals(2 * (inside - t) / h - 1) @ rates
        at += inside.size
        q, t = q + h / 2 * _AT_END @ rates, end
        part = min(2 * part, LONGEST)
    return found, t


def _solve_interval(
    rates: Rates, q: Array, h: float, tolerance: float, slopes: _Slopes
) -> Array | None:
    """Find rates at the nodes; None where they do not converge or the interval is too long."""
    found = rates(np.broadcast_to(q, (NODES, q.size)))
    allowed = tolerance * (1.0 + np.abs(q))
    converged = 1e-12 if np.isinf(tolerance) else tolerance / 10
    last = np.inf
    for sweep in range(SWEEPS):
        better = rates(q + h / 2 * _AT_NODES @ found)
        change = _size(h * (better - found), q)
        found = better
        if not np.isfinite(change):
            return None
        if change > converged and sweep and change > SLOW * last:
            improved = slopes.solve(rates, q, h, found, converged)
            if improved is None:
                return None
            found, change = improved, 0.0
        if change <= converged:
            # the last coefficients show what polynomials of this degree miss
            tail = np.abs(h / NODES * _FIT[-2:] @ found)
            return found if (tail <= allowed).all() else None
        last = change
    return None


def _size(change: Array, q: Array) -> float:
    """Largest change of a coordinate, of size one; NaN if there is one."""
    return float((np.abs(change) / (1.0 + np.abs(q))).max(initial=0.0))


class _Slopes:
    """Derivatives of the rates by the coordinates, kept from interval to interval."""

    def __init__(self) -> None:
        self._known: Array | None = None  # (n, n), row by rate

    def solve(
        self, rates: Rates, q: Array, h: float, found: Array, converged: float
    ) -> Array | None:
        """Find rates at the nodes by Newton's method, with the last derivatives or new ones."""
        for is_new in (False, True):
            if is_new:
                self._known = _differences(rates, q + h / 2 * _AT_NODES @ found)
            elif self._known is None:
                continue
            assert self._known is not None
            better = _newton(rates, q, h, found, self._known, converged)
            if better is not None:
                return better
        return None


def _differences(rates: Rates, q: Array) -> Array:
    """Derivatives of the rates by each coordinate, of all nodes, means of them."""
    columns = []
    for j in range(q.shape[1]):
        step = CHANGE * (1.0 + np.abs(q[:, j]).max())
        ahead, back = q.copy(), q.copy()
        ahead[:, j] += step
        back[:, j] -= step
        columns.append((rates(ahead) - rates(back)).mean(axis=0) / (2 * step))
    return np.stack(columns, axis=-1)


def _newton(
    rates: Rates, q: Array, h: float, found: Array, slopes: Array, converged: float
) -> Array | None:
    """Rates at the nodes with constant derivatives; None if they do not converge."""
    n = q.size
    matrix = np.eye(NODES * n) - np.kron(h / 2 * _AT_NODES, slopes)
    if not np.isfinite(matrix).all():
        return None
    inverse = np.linalg.inv(matrix)
    last = np.inf
    for _ in range(NEWTON_STEPS):
        misses = rates(q + h / 2 * _AT_NODES @ found) - found
        step = (inverse @ misses.ravel()).reshape(NODES, n)
        size = _size(h * step, q)
        if not size < last:  # also NaN
            return None
        found = found + step
        if size <= converged:
            return found
        last = size
    return None
