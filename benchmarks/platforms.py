"""Platforms on six legs as a family of polynomials, for tests and measurements."""

from __future__ import annotations

import casadi as ca
import numpy as np

from axode.codegen.tape.tape import Tape
from axode.kinematics.polynomials.polynomial_family import PolynomialFamily, evaluate_rational
from benchmarks.platform_numbers import LEGS, random_complex


def evaluate(function: ca.Function, x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Evaluate a real function at complex numbers, or at arrays of them."""
    tape = Tape.from_casadi(function)
    return np.array(evaluate_rational(tape, (list(x), list(p)), complex))


def gough_stewart() -> PolynomialFamily:
    """Six legs between points: x is a dual quaternion (q, g) in a chart.

    A point b of the platform is at (q b q* + g q*) / |q|^2, if q . g = 0, and its distance to a is
    |q b - a q + g| / |q|. Parameters: six base points, six platform points, squares of lengths,
    and the chart l with l . x = 1.
    """
    x, p = ca.SX.sym("x", 8), ca.SX.sym("p", LEGS + 8)
    a, b = ca.reshape(p[:18], 3, 6), ca.reshape(p[18:36], 3, 6)
    q, g = x[:4], x[4:]
    rows = []
    for i in range(6):
        apart, both = b[:, i] - a[:, i], b[:, i] + a[:, i]
        scalar = g[0] - ca.dot(q[1:], apart)
        vector = g[1:] + q[0] * apart + ca.cross(q[1:], both)
        rows.append(scalar**2 + ca.sumsqr(vector) - p[36 + i] * ca.sumsqr(q))
    rows += [ca.dot(q, g), ca.dot(p[LEGS:], x) - 1]
    residual = ca.Function("platform", [x, p], [ca.vertcat(*rows)], ["x", "p"], ["r"])

    def seed(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        p, q, t = random_complex(rng, LEGS + 8), random_complex(rng, 4), random_complex(rng, 3)
        root = np.concatenate([q, [-t @ q[1:]], t * q[0] + np.cross(t, q[1:])])
        root /= p[LEGS:] @ root
        p[36:42] = 0.0  # the residual is linear in the squares of lengths
        p[36:42] = evaluate(residual, root, p)[:6] / (root[:4] @ root[:4])
        return root, p

    return PolynomialFamily("gough-stewart by hand", residual, 8, LEGS + 8, seed)
