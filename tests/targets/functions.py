"""SX functions that the targets are tested on: realistic ones and random ones."""

from __future__ import annotations

import casadi as ca
import numpy as np
from hypothesis import strategies as st

UNARY = ("neg", "sin", "cos", "sq", "twice", "fabs", "atan", "tanh")
BINARY = ("add", "sub", "mul", "fmin", "fmax", "copysign", "hypot", "atan2")
WHOLE_UNARY = ("neg", "sq", "twice", "fabs", "sign", "floor", "not")
WHOLE_BINARY = ("add", "sub", "mul", "fmin", "fmax", "lt", "le", "eq", "ne", "and", "or")


def every_operation() -> ca.Function:
    """Each operation that SX has, at least once, well inside its domain."""
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    inside = x / (1 + ca.fabs(x))
    above = 1 + x * x
    results = [
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        x**2,
        2 * x,
        1 / x,
        ca.sqrt(above),
        ca.fabs(x),
        ca.sin(x),
        ca.cos(x),
        ca.tan(x),
        ca.asin(inside),
        ca.acos(inside),
        ca.atan(x),
        ca.atan2(x, y),
        ca.exp(x),
        ca.expm1(x),
        ca.log(above),
        ca.log1p(x * x),
        ca.erf(x),
        ca.sinh(x),
        ca.cosh(x),
        ca.tanh(x),
        ca.asinh(x),
        ca.acosh(above),
        ca.atanh(inside),
        above**y,
        above**1.7,
        x**3,
        x**-2,
        ca.hypot(x, y),
        ca.floor(x),
        ca.ceil(x),
        ca.fmod(x, y),
        ca.remainder(x, y),
        ca.sign(x),
        ca.copysign(x, y),
        ca.fmin(x, y),
        ca.fmax(x, y),
        x < y,
        x <= y,
        x == y,
        x != y,
        ca.logic_not(x < y),
        ca.logic_and(x < 1, y > 0),
        ca.logic_or(x < -1, y > 1),
        ca.if_else(x < y, x, 3 * y),
        ca.if_else(x > 0, x, 0),
        ca.SX.binary(ca.OP_LIFT, x, y),
    ]
    return ca.Function("every_operation", [x, y], [ca.vertcat(*results)], ["x", "y"], ["results"])


def planar_chain(links: int) -> ca.Function:
    """Torques of an open planar chain by Lagrange's equations (dense, trigonometric)."""
    q, v, a = (ca.SX.sym(name, links) for name in "qva")
    lengths = ca.SX.sym("lengths", links)
    position, velocity = ca.SX.zeros(2), ca.SX.zeros(2)
    angle, rate, kinetic, potential = ca.SX(0), ca.SX(0), ca.SX(0), ca.SX(0)
    for k in range(links):
        angle, rate = angle + q[k], rate + v[k]
        arm = lengths[k] * ca.vertcat(ca.cos(angle), ca.sin(angle))
        turned = rate * ca.vertcat(-arm[1], arm[0])
        middle = velocity + turned / 2
        kinetic += ca.dot(middle, middle) / 2 + rate**2 * lengths[k] ** 2 / 24
        potential += 9.81 * (position[1] + arm[1] / 2)
        position, velocity = position + arm, velocity + turned
    momentum = ca.gradient(kinetic, v)
    torque = ca.jtimes(momentum, v, a) + ca.jtimes(momentum, q, v)
    torque -= ca.gradient(kinetic - potential, q)
    mass = ca.jacobian(momentum, v)
    names = ["q", "v", "a", "lengths"]
    return ca.Function("planar", [q, v, a, lengths], [torque, mass], names, ["torque", "mass"])


def _rotation(angle: ca.SX) -> ca.SX:
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, -s, 0), ca.horzcat(s, c, 0), ca.horzcat(0, 0, 1))


def spatial_arm(links: int = 7) -> ca.Function:
    """Torques of an arm in space by recursive Newton-Euler, dense link inertias."""
    rng = np.random.default_rng(links)
    q, v, a = (ca.SX.sym(name, links) for name in "qva")
    axis = ca.DM([0, 0, 1])
    tilts = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(links)]
    places, centres = 0.3 * rng.normal(size=(2, links, 3))
    factors = rng.normal(size=(links, 3, 3))
    inertias = [0.05 * m @ m.T for m in factors]
    w, wd, acc = ca.SX.zeros(3), ca.SX.zeros(3), ca.SX(ca.DM([0, 0, 9.81]))
    frames, forces, moments = [], [], []
    for k in range(links):
        R = ca.mtimes(ca.DM(tilts[k]), _rotation(q[k]))
        p = ca.DM(places[k])
        acc = ca.mtimes(R.T, acc + ca.cross(wd, p) + ca.cross(w, ca.cross(w, p)))
        w_parent = ca.mtimes(R.T, w)
        w = w_parent + axis * v[k]
        wd = ca.mtimes(R.T, wd) + axis * a[k] + ca.cross(w_parent, axis * v[k])
        c, J = ca.DM(centres[k]), ca.DM(inertias[k])
        force = 2.0 * (acc + ca.cross(wd, c) + ca.cross(w, ca.cross(w, c)))
        moment = ca.mtimes(J, wd) + ca.cross(w, ca.mtimes(J, w)) + ca.cross(c, force)
        frames.append((R, p))
        forces.append(force)
        moments.append(moment)
    torque = []
    f, n = ca.SX.zeros(3), ca.SX.zeros(3)
    for k in reversed(range(links)):
        f, n = f + forces[k], n + moments[k]
        torque.insert(0, n[2])
        R, p = frames[k]
        f, n = ca.mtimes(R, f), ca.mtimes(R, n)
        n = n + ca.cross(p, f)
    return ca.Function("arm", [q, v, a], [ca.vertcat(*torque)], ["q", "v", "a"], ["torque"])


def factored_solve(size: int = 6) -> ca.Function:
    """Solution of a symmetric system by LDL' without pivoting: many divisions."""
    A, b = ca.SX.sym("A", size, size), ca.SX.sym("b", size)
    M = ca.mtimes(A, A.T) + 3 * ca.SX.eye(size)
    L, D = ca.SX.eye(size), []
    for j in range(size):
        D.append(M[j, j] - sum(L[j, k] ** 2 * D[k] for k in range(j)))
        for i in range(j + 1, size):
            L[i, j] = (M[i, j] - sum(L[i, k] * L[j, k] * D[k] for k in range(j))) / D[j]
    x = [b[i] for i in range(size)]
    for i in range(size):
        x[i] -= sum(L[i, k] * x[k] for k in range(i))
    x = [x[i] / D[i] for i in range(size)]
    for i in reversed(range(size)):
        x[i] -= sum(L[k, i] * x[k] for k in range(i + 1, size))
    return ca.Function("solve", [A, b], [ca.vertcat(*x)], ["A", "b"], ["x"])


def many_sines(count: int) -> ca.Function:
    """A sum of sines, few operations and much code."""
    x = ca.SX.sym("x")
    return ca.Function("f", [x], [sum(ca.sin(k * x) for k in range(1, count + 1))], ["x"], ["y"])


def long_function(operations: int) -> ca.Function:
    """Straight-line code of about the given length, with distant dependencies.

    Every step turns two earlier values by a random angle: results neither die out nor
    blow up, so a value lost or mixed up on the way shows in them.
    """
    rng = np.random.default_rng(operations)
    x = ca.SX.sym("x", 6)
    values = [f(x[i]) for f in (ca.sin, ca.cos) for i in range(6)]
    for _ in range(min(400, operations // 20)):  # many values alive at a time
        i, j = rng.choice(len(values), 2, replace=False)
        values.append(0.8 * values[i] - 0.6 * values[j])
    for k in range(operations // 6):
        i = len(values) - 1 - int(rng.random() ** 4 * len(values))
        j = k % len(values)  # every value is used, most of them long after they were made
        j = j if j != i else (i + 1) % len(values)
        c, s = np.cos(angle := rng.uniform(0, 2 * np.pi)), np.sin(angle)
        a, b = values[i], values[j]
        values[i], values[j] = c * a - s * b, s * a + c * b
        if k % 500 == 499:  # something that is not linear
            values.append(ca.sin(3 * values[i]))
    total = ca.sum1(ca.vertcat(*values))
    return ca.Function("long", [x], [total, ca.vertcat(*values[:4])], ["x"], ["total", "last"])


@st.composite
def random_function(draw: st.DrawFn, *, whole: bool = False) -> ca.Function:
    """A random graph of operations on two vectors.

    Args:
        draw: Hypothesis's source of choices.
        whole: Only operations that are exact on small integers, so that every target
            must give identical results however it groups sums.
    """
    x, y = ca.SX.sym("x", draw(st.integers(1, 4))), ca.SX.sym("y", draw(st.integers(1, 3)))
    values = [*ca.vertsplit(x), *ca.vertsplit(y), ca.SX(draw(st.sampled_from((2.0, -1.0, 3.0))))]
    names = (WHOLE_UNARY + WHOLE_BINARY) if whole else (UNARY + BINARY)
    for _ in range(draw(st.integers(1, 40))):
        pick = st.integers(0, len(values) - 1)
        a, b = values[draw(pick)], values[draw(pick)]
        name = draw(st.sampled_from((*names, "choose")))
        if name == "choose":
            value = ca.if_else(a < b, a, -b)
        elif name in UNARY + WHOLE_UNARY:
            value = ca.SX.unary(getattr(ca, f"OP_{name.upper()}"), a)
        else:
            value = ca.SX.binary(getattr(ca, f"OP_{name.upper()}"), a, b)
        if whole:
            value = ca.fmod(value, 64) if name in ("add", "sub", "mul", "sq", "twice") else value
        elif draw(st.integers(0, 3)) == 0:
            value = ca.tanh(value)
        values.append(value)
    count = draw(st.integers(1, min(6, len(values))))
    result = ca.vertcat(*values[-count:])
    return ca.Function("random", [x, y], [result, values[-1]], ["x", "y"], ["many", "one"])
