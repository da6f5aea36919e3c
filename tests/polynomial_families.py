"""Families of polynomials, written by hand: three legs in the plane, three angles."""

import casadi as ca

from axode.kinematics.polynomials.polynomial_family import PolynomialFamily
from benchmarks.platform_numbers import random_complex
from benchmarks.platforms import evaluate


def planar():
    """Three legs in the plane, 3-RPR: x is (cos, sin) of half the angle and g, in a chart."""
    x, p = ca.SX.sym("x", 4), ca.SX.sym("p", 19)
    a, b, chart = ca.reshape(p[:6], 2, 3), ca.reshape(p[6:12], 2, 3), p[15:]
    c, s, g = x[0], x[1], x[2:]
    rows = []
    for i in range(3):
        apart, both = b[:, i] - a[:, i], b[:, i] + a[:, i]
        vector = g + c * apart + s * ca.vertcat(-both[1], both[0])
        rows.append(ca.sumsqr(vector) - p[12 + i] * (c * c + s * s))
    rows.append(ca.dot(chart, x) - 1)
    residual = ca.Function("planar", [x, p], [ca.vertcat(*rows)], ["x", "p"], ["r"])

    def seed(rng):
        p, root = random_complex(rng, 19), random_complex(rng, 4)
        root /= p[15:] @ root
        p[12:15] = 0.0
        p[12:15] = evaluate(residual, root, p)[:3] / (root[:2] @ root[:2])
        return root, p

    return PolynomialFamily("test planar", residual, 4, 19, seed)


def three_angles():
    """Three angles, any two of which are bound by an equation bilinear in sine and cosine.

    This is 3-RPS with locked legs: 16 roots. x are the tangents of half the angles, in charts.
    """
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 39)
    turned = []
    for i in range(3):
        chart = p[27 + 4 * i : 31 + 4 * i]
        u, v = chart[0] + chart[1] * x[i], chart[2] + chart[3] * x[i]
        turned.append(ca.vertcat(u * u + v * v, u * u - v * v, 2 * u * v))
    rows = [
        ca.bilin(ca.reshape(p[9 * k : 9 * k + 9], 3, 3), turned[i], turned[j])
        for k, (i, j) in enumerate(((0, 1), (1, 2), (2, 0)))
    ]
    residual = ca.Function("angles", [x, p], [ca.vertcat(*rows)], ["x", "p"], ["r"])

    def seed(rng):
        p, root = random_complex(rng, 39), random_complex(rng, 3)
        r = evaluate(residual, root, p)
        for k, i in enumerate((0, 1, 2)):  # the first number multiplies two sums of squares
            j = (i + 1) % 3
            u, v = (p[27 + 4 * n] + p[28 + 4 * n] * root[n] for n in (i, j))
            y, z = (p[29 + 4 * n] + p[30 + 4 * n] * root[n] for n in (i, j))
            p[9 * k] -= r[k] / ((u * u + y * y) * (v * v + z * z))
        return root, p

    return PolynomialFamily("test three angles", residual, 3, 39, seed)


def parabola():
    """One polynomial of degree two."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p", 3)
    residual = ca.Function("parabola", [x, p], [p[0] * x * x + p[1] * x + p[2]])

    def seed(rng):
        root, p = random_complex(rng, 1), random_complex(rng, 3)
        p[2] = -(p[0] * root[0] + p[1]) * root[0]
        return root, p

    return PolynomialFamily("test parabola", residual, 1, 3, seed)
