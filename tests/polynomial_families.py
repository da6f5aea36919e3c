"""Families of polynomials, written by hand: platforms in space and in the plane, three angles."""

import casadi as ca
import numpy as np

from axode.codegen.tape.tape import Tape
from axode.problems.kinematics.polynomial_family import PolynomialFamily
from axode.problems.kinematics.tape_algebra import evaluate_rational

LEGS = 42  # parameters of six legs; those of the chart follow


def random_complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def evaluate(function, x, p):
    """Evaluate a real function at complex numbers, or at arrays of them."""
    tape = Tape.from_casadi(function)
    return np.array(evaluate_rational(tape, (list(x), list(p)), complex))


def gough_stewart():
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

    def seed(rng):
        p, q, t = random_complex(rng, LEGS + 8), random_complex(rng, 4), random_complex(rng, 3)
        root = np.concatenate([q, [-t @ q[1:]], t * q[0] + np.cross(t, q[1:])])
        root /= p[LEGS:] @ root
        p[36:42] = 0.0  # the residual is linear in the squares of lengths
        p[36:42] = evaluate(residual, root, p)[:6] / (root[:4] @ root[:4])
        return root, p

    return PolynomialFamily("test gough-stewart", residual, 8, LEGS + 8, seed)


def platforms(count, rng, chart=None):
    """Parameters of random real platforms, in a complex chart unless one is given: (count, 50)."""
    chart = random_complex(np.random.default_rng(5), 8) if chart is None else chart
    made = np.zeros((count, LEGS + 8), dtype=complex)
    made[:, :36] = rng.normal(size=(count, 36))
    made[:, 36:42] = rng.uniform(0.5, 3.0, size=(count, 6)) ** 2
    made[:, LEGS:] = chart
    return made


DIETMAIER_BASE = [
    [0, 0, 0],
    [1.107915, 0, 0],
    [0.549094, 0.756063, 0],
    [0.735077, -0.223935, 0.525991],
    [0.514188, -0.526063, -0.368418],
    [0.590473, 0.094733, -0.205018],
]
DIETMAIER_PLATFORM = [
    [0, 0, 0],
    [0.542805, 0, 0],
    [0.956919, -0.528915, 0],
    [0.665885, -0.353482, 1.402538],
    [0.478359, 1.158742, 0.107672],
    [-0.137087, -0.235121, 0.353913],
]
DIETMAIER_LENGTHS = [1, 0.645275, 1.086284, 1.503439, 1.281933, 0.771071]


def dietmaier(chart=None):
    """Parameters of the platform with 40 real postures: (50,)."""
    p = platforms(1, np.random.default_rng(0), chart)[0]
    p[:18] = np.ravel(DIETMAIER_BASE)
    p[18:36] = np.ravel(DIETMAIER_PLATFORM)
    p[36:42] = np.square(DIETMAIER_LENGTHS)
    return p


def real_in_own_charts(roots, parameters):
    """Roots of platforms, turned until they are as real as they can be, in charts about themselves.

    A homogeneous root times any complex number is the same root.

    Returns:
        Real parts, parameters, and how large the imaginary parts are.
    """
    largest = np.take_along_axis(roots, np.abs(roots).argmax(axis=1)[:, np.newaxis], axis=1)
    turned = roots / largest
    x = turned.real / np.linalg.norm(turned.real, axis=1, keepdims=True)
    p = np.broadcast_to(parameters, (len(roots), len(parameters))).real.copy()
    p[:, LEGS:] = x
    return x, p, np.abs(turned.imag).max(axis=1)


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
