r"""Newton's method on many nonlinear systems at once, by damped steps of least norm.

Every run solves :math:`r(x) = 0` for its own x. With one unit of each row in :math:`R` and one of
each unknown in :math:`C`, a step is

.. math:: \Delta x = -C \tilde J^T (\tilde J \tilde J^T + \mu \sigma 1)^{-1} R^{-1} r, \qquad
          \tilde J = R^{-1} J C,

:math:`\sigma` the mean squared row length. The damping :math:`\mu` of a run grows tenfold where a
step does not reduce the residual and shrinks tenfold where it does. Rows may be redundant.
Convergence is measured in the same units.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from axode.numerics.rank import singular_vectors
from axode.numerics.tolerances import CLOSED, NEGLIGIBLE, ONE_ROUNDING, PART_OF_TOLERANCE, RANK

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Function = Callable[[Array, Indices], Array]  # of unknowns (runs, n), and the numbers of the runs
Step = Callable[[Array, Array, Array], Array]  # of J (runs, m, n), r (runs, m), damping (runs,)

MAX_NEWTON_STEP = 1.0  # of the unknowns' units: on a circle a longer one never helps
MAX_STEPS = 200
MIN_DAMPING, MAX_DAMPING = 1e-13, 1e6  # of the mean squared row length
METRE = (0.1, 1.0)  # [m]: sizes of mechanisms whose lengths are measured in metres


def unit_length(extent: float) -> float:
    """Unit of length [m] in which a mechanism of some extent is measured: a metre, or the extent.

    Newton's method compares lengths with radians: a machine of micrometres and one of kilometres
    close to the same relative accuracy.
    """
    return 1.0 if METRE[0] <= extent <= METRE[1] else extent


def find_roots(
    residual: Function,
    jacobian: Function,
    x: Array,
    *,
    rows: Array | float = 1.0,
    columns: Array | float = 1.0,
    step: Step | None = None,
    retract: Callable[[Array], Array] | None = None,
    tolerance: float = CLOSED,
    last_step: float = NEGLIGIBLE,
    max_step: float = MAX_NEWTON_STEP,
    max_steps: int = MAX_STEPS,
) -> tuple[Array, Array]:
    """Solve residual(x) = 0 for every run, each near its guess.

    Args:
        residual: Residuals of some runs, (runs, m).
        jacobian: Their derivatives by the unknowns, (runs, m, n).
        x: Guesses, (runs, n).
        rows: One unit of each residual.
        columns: One unit of each unknown; zero holds an unknown at its guess.
        step: Solver of the linear systems instead of `truncated_step`.
        retract: Brings unknowns back to where they must be after a step, as unit quaternions.
        tolerance: Residual at which a run is solved, of the rows' units.
        last_step: Length of an undamped step after which a run ends, of the unknowns' units.
        max_step: Longest change of an unknown in one step, of its unit.
        max_steps: Steps, those included that did not help.

    Returns:
        The best unknowns of every run, (runs, n), and what is left of their residuals, of the rows'
        units, (runs,).
    """
    x = np.array(x, dtype=float) if retract is None else retract(np.array(x, dtype=float))
    units = np.asarray(rows, dtype=float)
    inverse = 1 / units
    step = truncated_step if step is None else step
    r = residual(x, np.arange(len(x))) * inverse
    error = residual_size(r, units)
    damping = np.zeros(len(x))
    active = np.arange(len(x))
    for _ in range(max_steps):
        left = error[active]
        runs_on = (left > PART_OF_TOLERANCE * tolerance) & np.isfinite(left)
        active = active[runs_on & (damping[active] <= MAX_DAMPING)]
        if not active.size:
            break
        J = jacobian(x[active], active) * (columns / units[..., np.newaxis])
        y = step(J, r[active], damping[active])
        length = np.abs(y).max(axis=-1, initial=0.0)
        is_last = (length < last_step) & (damping[active] == 0.0)
        shorter = max_step / length.clip(max_step)
        trial = x[active] - columns * shorter[:, np.newaxis] * y
        trial = trial if retract is None else retract(trial)
        there = residual(trial, active) * inverse
        helps = add_in_order(there * there) < add_in_order(r[active] * r[active])
        better = active[helps]
        x[better], r[better] = trial[helps], there[helps]
        error[better] = residual_size(there[helps], units)
        more = (10 * damping[active]).clip(MIN_DAMPING)
        less = np.where(damping[active] > MIN_DAMPING, damping[active] / 10, 0.0)
        damping[active] = np.where(is_last, np.inf, np.where(helps, less, more))
    return x, error


def difference_jacobian(residual: Function, change: float) -> Function:
    """Derivatives of residuals by central differences.

    Args:
        residual: Residuals of some runs, (runs, m).
        change: Change of each unknown.
    """

    def jacobian(x: Array, runs: Indices) -> Array:
        columns = []
        for off in change * np.eye(x.shape[1]):
            columns.append((residual(x + off, runs) - residual(x - off, runs)) / (2 * change))
        return np.stack(columns, axis=-1)

    return jacobian


def residual_size(r: Array, units: Array | float) -> Array:
    """Largest residual of every run, of the rows' units, without what rounding leaves."""
    beyond: Array = (np.abs(r) - ONE_ROUNDING / np.asarray(units)).clip(0.0)
    return np.asarray(beyond.max(axis=-1, initial=0.0))


def truncated_step(J: Array, r: Array, damping: Array, tolerance: float | Array = RANK) -> Array:
    """Solve J y = r by the shortest y from singular values: also where rows contradict each other.

    Args:
        J: (runs, m, n).
        r: (runs, m).
        damping: Damping as a part of the mean squared row length, (runs,).
        tolerance: Smaller singular values are left out, relative to the largest.
    """
    U, s, Vt = singular_vectors(J, full=False)
    solid = s > tolerance * s.max(axis=-1, keepdims=True, initial=0.0)
    mean = (s * s).sum(axis=-1, keepdims=True) / max(r.shape[-1], 1)
    squares = np.where(solid, s * s + damping[:, np.newaxis] * mean, 1.0)
    along = (np.swapaxes(U, 1, 2) @ r[..., np.newaxis])[..., 0]
    y = np.swapaxes(Vt, 1, 2) @ (np.where(solid, s / squares, 0.0) * along)[..., np.newaxis]
    return np.asarray(y[..., 0])


def quick_step(J: Array, r: Array, damping: Array) -> Array:
    """Solve J y = r by the shortest y of rows that agree with each other, for many runs.

    Without damping, the least there must be for redundant rows is taken out again by a correction.
    Every sum is in the order of the compiled `least_norm_step`, which therefore has the same bits.
    """
    m = r.shape[-1]
    if not m:
        return np.zeros((len(r), J.shape[-1]))
    J, r = np.ascontiguousarray(np.moveaxis(J, 0, -1)), r.T  # runs side by side
    gram = np.zeros((m, m, r.shape[1]))
    for column in np.moveaxis(J, 1, 0):
        gram += column[:, np.newaxis] * column
    size = (_total(gram[range(m), range(m)]) / m).clip(1e-12)
    gram[range(m), range(m)] += damping.clip(MIN_DAMPING) * size
    lower, pivots = _factor(gram)

    def shortest(right: Array) -> Array:
        return _total(J * _solve(lower, pivots, right)[:, np.newaxis])

    y = shortest(r)
    left = r - _total(np.moveaxis(J * y, 1, 0))
    return np.asarray((y + shortest(np.where(damping == 0.0, left, 0.0))).T)


def add_in_order(terms: Array) -> Array:
    """Sum along the last axis, from its first term to its last."""
    return np.asarray(terms.cumsum(axis=-1)[..., -1])


def _total(terms: Array) -> Array:
    """Sum along the first axis, from its first term to its last."""
    total = np.zeros(terms.shape[1:])
    for term in terms:
        total += term
    return total


def _factor(gram: Array) -> tuple[Array, Array]:
    """Factor symmetric matrices into L D L^T: L below its diagonal, and reciprocals of D."""
    lower, taken, pivots = np.zeros_like(gram), np.zeros_like(gram), np.zeros(gram.shape[1:])
    for k in range(len(gram)):
        share = gram[k:, k] - taken[k:, k]
        pivots[k] = 1.0 / share[0]
        own = lower[k + 1 :, k] = share[1:] * pivots[k]
        taken[k + 1 :, k + 1 :] += share[1:, np.newaxis] * own
    return lower, pivots


def _solve(lower: Array, pivots: Array, right: Array) -> Array:
    """Solve systems that `_factor` has factored."""
    x, taken = np.zeros_like(right), np.zeros_like(right)
    for k in range(len(x)):
        x[k] = right[k] - taken[k]
        taken[k + 1 :] += lower[k + 1 :, k] * x[k]
    x, taken = x * pivots, np.zeros_like(right)
    for k in reversed(range(len(x))):
        x[k] -= taken[k]
        taken[:k] += lower[k, :k] * x[k]
    return x
