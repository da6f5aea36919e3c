"""Families of polynomials, written by hand: platforms of six legs, planar ones of three, 3-RPS."""

import casadi as ca
import numpy as np

from axode.problems.kinematics.polynomial_family import PolynomialFamily


def random_complex(rng, *shape):
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


def rotation(q):
    """Rotation matrix of a quaternion times its square."""
    w, x, y, z = (q[k] for k in range(4))
    return ca.vertcat(
        ca.horzcat(w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)),
        ca.horzcat(2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)),
        ca.horzcat(2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z),
    )


def gough_stewart():
    """Six legs between points: x is the rotation in a chart and the position.

    Parameters: base points, platform points, squares of lengths, centre and basis of the chart.
    """
    x, p = ca.SX.sym("x", 6), ca.SX.sym("p", 58)
    a, b = ca.reshape(p[:18], 3, 6), ca.reshape(p[18:36], 3, 6)
    q = p[42:46] + ca.mtimes(ca.reshape(p[46:58], 4, 3), x[:3])
    R, square, position = rotation(q), ca.dot(q, q), x[3:]
    rows = [
        square
        * (
            ca.dot(position, position)
            + ca.dot(a[:, i], a[:, i])
            + ca.dot(b[:, i], b[:, i])
            - p[36 + i]
            - 2 * ca.dot(position, a[:, i])
        )
        + 2 * ca.dot(position - a[:, i], ca.mtimes(R, b[:, i]))
        for i in range(6)
    ]
    residual = ca.Function("platform", [x, p], [ca.vertcat(*rows)], ["x", "p"], ["r"])

    def seed(rng):
        root, p = random_complex(rng, 6), random_complex(rng, 58)
        p[36:42] = 0.0
        # the residual is linear in the squares of lengths
        q = p[42:46] + p[46:58].reshape(3, 4).T @ root[:3]
        p[36:42] = evaluate(residual, root, p) / (q @ q)
        return root, p

    return PolynomialFamily("test gough-stewart", residual, 6, 58, seed)


def evaluate(residual, x, p):
    """Evaluate a real function at complex numbers, one member at a time."""
    from axode.codegen.tape.tape import Tape
    from axode.problems.kinematics.tape_algebra import evaluate_rational

    return np.array(evaluate_rational(Tape.from_casadi(residual), (list(x), list(p)), complex))


def platforms(count, rng, chart=None):
    """Parameters of random real platforms: (count, 58)."""
    chart = random_complex(np.random.default_rng(5), 16) if chart is None else chart
    made = np.zeros((count, 58), dtype=complex)
    made[:, :36] = rng.normal(size=(count, 36))
    made[:, 36:42] = rng.uniform(0.5, 3.0, size=(count, 6)) ** 2
    made[:, 42:] = chart
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
    """Parameters of the platform with 40 real postures: (58,)."""
    p = platforms(1, np.random.default_rng(0), chart)[0]
    p[:18] = np.ravel(DIETMAIER_BASE)
    p[18:36] = np.ravel(DIETMAIER_PLATFORM)
    p[36:42] = np.square(DIETMAIER_LENGTHS)
    return p
