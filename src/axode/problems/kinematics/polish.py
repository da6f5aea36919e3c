"""Newton's method on many roots at once, each at its own parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.problems.kinematics.polynomial_family import PolynomialFamily
from axode.problems.kinematics.tape_algebra import evaluate_rational

STEPS = 4
NumberArray = npt.NDArray[Any]


def polish_roots(
    family: PolynomialFamily, x: npt.ArrayLike, p: npt.ArrayLike
) -> tuple[NumberArray, npt.NDArray[np.float64]]:
    """Improve roots by Newton's method, real ones by real numbers.

    Args:
        family: The polynomials.
        x: Points near roots, (roots, unknowns), real or complex.
        p: Parameters, one row per root.

    Returns:
        The roots, and the size of the last step relative to each; NaN where it is singular.
    """
    points, parameters = np.atleast_2d(np.asarray(x)), np.atleast_2d(np.asarray(p))
    error = np.full(len(points), np.nan)
    for _ in range(STEPS):
        step = _newton_step(family, points, parameters)
        points = points - step
        error = np.linalg.norm(step, axis=1) / np.linalg.norm(points, axis=1).clip(1e-300)
    return points, error


def _newton_step(family: PolynomialFamily, x: NumberArray, p: NumberArray) -> NumberArray:
    n = x.shape[1]
    jacobian = evaluate_at(family.jacobian_tape, x, p).reshape(-1, n, n)
    right = evaluate_at(family.residual_tape, x, p)
    usable = np.asarray(np.isfinite(jacobian).all(axis=(1, 2)))
    usable[usable] = np.abs(np.linalg.det(jacobian[usable])) > 0
    step = np.full_like(right, np.nan)
    step[usable] = np.linalg.solve(jacobian[usable], right[usable][..., np.newaxis])[..., 0]
    return step


def evaluate_at(tape: Tape, x: NumberArray, p: NumberArray) -> NumberArray:
    """Evaluate a tape of a family at points, each with its own parameters: (points, results)."""
    made = evaluate_rational(tape, (list(x.T), list(p.T)), np.float64)
    return np.stack([np.broadcast_to(r, len(x)) for r in made], axis=-1)
