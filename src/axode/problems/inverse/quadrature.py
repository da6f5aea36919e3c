"""Quadrature: coordinates from their rates, many times of an interval at once.

Over an interval of time the rates are a polynomial through Gauss's nodes; its integral gives the
coordinates there, and these give better rates, until nothing changes. Calls are few and take all
nodes of an interval together, where a Runge-Kutta method asks for one time after the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Rates = Callable[[Array], Array]  # of coordinates (nodes, n), at nodes that are given before
NODES = 12
SWEEPS = 14  # more than that, and shorter intervals are quicker
LONGEST = 1 / 16  # of the duration
SHORTEST = 1e-10  # of the duration: what jumps is passed in such an interval
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
    while at < times.size:
        part = min(part, 1.0 - done)
        h = way * part
        allowed = tolerance if part > SHORTEST else np.inf
        rates = _solve_interval(rates_at(t + h * (_PLACES + 1) / 2), q, h, allowed)
        if rates is None:
            if part <= SHORTEST:
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


def _solve_interval(rates: Rates, q: Array, h: float, tolerance: float) -> Array | None:
    """Find rates at the nodes; None where they do not converge or the interval is too long."""
    found = rates(np.broadcast_to(q, (NODES, q.size)))
    allowed = tolerance * (1.0 + np.abs(q))
    converged = 1e-12 if np.isinf(tolerance) else tolerance / 10
    for _ in range(SWEEPS):
        better = rates(q + h / 2 * _AT_NODES @ found)
        change = np.abs(h * (better - found)) / (1.0 + np.abs(q))
        found = better
        if not np.isfinite(change).all():
            return None
        if change.max(initial=0.0) <= converged:
            # the last coefficients show what polynomials of this degree miss
            tail = np.abs(h / NODES * _FIT[-2:] @ found)
            return found if (tail <= allowed).all() else None
    return None
