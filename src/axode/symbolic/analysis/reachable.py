r"""Dimension of what motion reaches, from flows along random inputs (C).

The directions in which a point can be left are spanned by the columns X of N Theta, carried back to
it along any motion: for :math:`\dot q = X(q)\, u(t)`,

.. math:: \dot \Psi = -\Psi\, \frac{\partial (X u)}{\partial q}, \quad \Psi(0) = 1, \qquad
          \operatorname{span}\, \{ \Psi(t)\, X(q(t)) \} .                          \tag{C9}

Generic inputs give the closure of the columns under Lie brackets, without forming a bracket. The
more motions, the farther apart the directions of high order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.mechanism.topology import speed_units
from axode.numerics.rank import singular_values
from axode.symbolic.constraints.system import System

Array = npt.NDArray[np.float64]
SOLID = 1e-11  # of the largest singular value: larger ones are directions, rounding leaves 1e-12,
LEAP = 1e6  # ... or more, far below a last direction that one bracket fewer would give
GAP = 1e4  # between the last direction and the largest rounding error
PRECISION = 1e-13  # of the integration
GROWTH = 1e3  # of fields, and of what carries them back: farther on a pole is near
SUBSTEPS = (2, 4, 6, 8, 10, 12, 14)  # midpoint rules that are extrapolated
SHORTEST = 1e-6  # [s] of steps
DURATION, PARTS, STEPS = 10.0, 200, 5  # of one motion: seconds; parts, and steps per part
WAVES, FASTEST = 6, 6.0  # of each input: how many, and up to which frequency [rad/s]
PACES = (1.0, 0.3, 2.0, 0.3, 2.0)  # of motions, in turn [rad/s, or lengths per second]
AT_LEAST, AT_MOST = 4, 12  # motions, unless all directions are found before
FAINT = 1e-4  # of the largest: rows that are smaller are not enlarged


def reachable_dimension(system: System, most: int) -> tuple[int, bool]:
    """Dimension of the closure of the free directions, and whether it is certain.  (C9)

    Args:
        system: What moves.
        most: An upper bound, from the constraints on positions.

    Returns:
        A lower bound and False where singular values fade into rounding errors without a gap.
    """
    tree = system.tree
    fields = ca.densify(tree.N @ system.complement.Theta_0)
    u = ca.SX.sym("u", fields.shape[1])
    slopes = ca.densify(ca.jacobian(fields @ u, tree.q))
    function = ca.Function("flow", [tree.q, u, tree.t, tree.parameters], [fields, slopes])

    def flow(q: Array, u: Array) -> tuple[Array, Array]:
        X, D = function(q, u, 0.0, system.defaults)
        return X.full(), D.full()

    generator = np.random.default_rng(0)
    start = max(system.samples, key=lambda q: float(np.linalg.norm(q)))
    length = max(1.0, system.assembly.extent)  # so that long machines turn as much as others
    if system.report.units is not None:
        length = float(system.report.units.speeds.min())
    units = [*speed_units(system.mechanism).values()]
    speeds = np.array([length if units[j] == "m/s" else 1.0 for j in system.independent])
    found, directions = 0, flow(start, 0.0 * speeds)[0]
    for count in range(1, AT_MOST + 1):
        pace = PACES[(count - 1) % len(PACES)] * speeds
        for some in _carried_back(flow, start, pace, generator):
            directions = np.hstack([directions, some])
            s = _spectrum(directions)
            found = int(((s > SOLID * s[0]) & (LEAP * s > np.append(s[0], s[:-1]))).cumprod().sum())
            if found >= most:
                return most, True
        if found < len(s) and count >= AT_LEAST and s[found - 1] > GAP * s[found]:
            return found, True
    return found, False


def _carried_back(
    flow: Callable[[Array, Array], tuple[Array, Array]],
    start: Array,
    pace: Array,
    generator: np.random.Generator,
) -> Iterator[Array]:
    """Fields along one random motion, carried back to its start, in columns, some at a time."""
    size, shape = len(start), (len(pace), WAVES)
    height = pace[:, np.newaxis] * generator.normal(size=shape)
    frequency = generator.uniform(0.5, FASTEST, shape)
    phase = generator.uniform(0.0, 2 * np.pi, shape)

    def rate(t: float, y: Array) -> Array:
        u = (height * np.sin(frequency * t + phase)).sum(axis=1)
        X, D = flow(y[:size], u)
        return np.concatenate([X @ u, (-y[size:].reshape(size, size) @ D).ravel()])

    def fields(y: Array) -> tuple[Array, Array]:
        return flow(y[:size], 0.0 * pace)[0], y[size:].reshape(size, size)

    y = np.concatenate([start, np.eye(size).ravel()])
    most = GROWTH * float(np.linalg.norm(fields(y)[0])), GROWTH
    found: list[Array] = []
    for state in islice(_integrate(rate, y), PARTS * STEPS):
        X, back = fields(state)
        if not (np.linalg.norm(X) < most[0] and np.linalg.norm(back) < most[1]):
            break
        found.append(back @ X)
        if len(found) == STEPS:
            yield np.hstack(found)
            found = []
    if found:
        yield np.hstack(found)


def _integrate(rate: Callable[[float, Array], Array], y: Array) -> Iterator[Array]:
    """States after every step of a motion: the midpoint rule, extrapolated to order 14.

    E. Hairer, S. P. Norsett, G. Wanner, *Solving Ordinary Differential Equations I*, section II.9.
    """
    t, h = 0.0, 0.01
    while t < DURATION and h > SHORTEST:
        h, slope = min(h, DURATION - t), rate(t, y)
        row: list[Array] = []
        for j, n in enumerate(SUBSTEPS):
            part, last = h / n, row
            before, now = y, y + h / n * slope
            for k in range(1, n):
                before, now = now, before + 2 * part * rate(t + k * part, now)
            row = [0.5 * (before + now + part * rate(t + h, now))]
            for older, m in zip(last, reversed(SUBSTEPS[:j]), strict=True):
                row.append(row[-1] + (row[-1] - older) / ((n / m) ** 2 - 1))
        error = float(np.max(np.abs(row[-1] - row[-2]) / (1 + np.maximum(abs(y), abs(row[-1])))))
        if error <= PRECISION:
            t, y = t + h, row[-1]
            yield y
        h *= min(max(0.9 * (PRECISION / max(error, 1e-300)) ** (1 / 13), 0.2), 4.0)


def _spectrum(directions: Array) -> Array:
    """Singular values, after the directions and then the rows are brought to one length."""
    columns = directions / np.linalg.norm(directions, axis=0).clip(1e-300)
    rows = np.linalg.norm(columns, axis=1, keepdims=True)
    return singular_values(columns / rows.clip(FAINT * rows.max()))
