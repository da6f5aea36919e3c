"""Inverse dynamics of platforms on six legs in two ways of their own.

By Lagrange's equations of the platform's pose: elbows and slides are closed forms of the pose, and
so is the place of every link; nothing is shared with the kinematics of the library: no joint
angles, no loops, no twists of a tree.

By a recursion, link after link and leg beside leg: Angeles evaluates (12.31) with matrices, notes
that this is not recursive, and that a recursion should exist and run on several processors. Here it
is: given the platform's motion, every leg finds its joint rates and accelerations, goes outward
along its links with velocities and inward with forces, and hands its wrench to the platform, whose
balance gives the motors' forces. Legs share nothing but the platform's motion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from axode.codegen.tape.tape import Tape
from axode.gallery import build
from axode.gallery.six_legged_platform import BETA, PI
from axode.literature.reproduce.item import (
    TIME,
    Array,
    ItemResult,
    apart,
    at_most,
    item,
    largest,
    misprinted,
    operations_panel,
    our_curves,
    over_time,
    printed_curves,
    states_of,
    vanishing,
)
from axode.problems.inverse.inverse import inverse_dynamics
from axode.symbolic.algebra.linear import Block
from axode.symbolic.equations import Equations

SX = ca.SX
DURATION, SPACING = 1.0, 0.02  # [s]
PLACES = ("c_M.x", "c_M.y", "c_M.z", "roll", "pitch", "yaw")
REACHED = dict(zip(PLACES, (0.08, -0.06, 0.07, 0.10, -0.08, 0.15), strict=True))  # there and back
HEIGHT = 1.0  # [m] of the mass centre at the start
WEIGHT = 100.0  # [N m] that a motor may hold up of platform and legs
LEGS = ("I", "II", "III", "IV", "V", "VI")
MOTION = {
    name: f"{HEIGHT if name == 'c_M.z' else 0.0} + {size} * (1 - cos(2 * pi * t / {DURATION})) / 2"
    for name, size in REACHED.items()
}
OURS, PRINTED, BOOK, RECURSION = "ours", "as printed", "(12.31), matrices", "leg by leg"
CAPTION = (
    "Elbow torques of a platform that goes there and back in 1 s. The book evaluates (12.31) with "
    "matrices, says that it is not recursive and of order n^3, and that a recursion should exist "
    "and run in parallel. Here it is: each leg takes the platform's pose, twist and acceleration, "
    "goes outward with velocities and inward with forces, and gives the wrench that its motion "
    "asks of the platform and that of a unit torque; the platform's balance is six equations. "
    "Dashed: (12.31) as printed, without weight (A-6); with it, matrices give the same. Lambda is "
    "the identity (A-3), so that nothing is left to solve in it. Operations are counted alike, "
    "equal terms once, data as numbers; with a processor for each leg, those of one leg and of "
    "the platform follow each other. Messages between processors are not counted."
)
Legs = Callable[["Energies", Mapping[str, float], Any, Any, Any], Any]


# Lagrange's equations ----------------------------------------------------------------------------


class Energies:
    """Kinetic and potential energy that add up body by body, of a pose x and its rate."""

    def __init__(self, x: Any, x_dot: Any, g: float) -> None:
        self.x, self.x_dot, self.g = x, x_dot, g
        self.kinetic, self.potential = ca.SX(0), ca.SX(0)

    def rate(self, value: Any) -> Any:
        """Rate of a vector that depends on the pose."""
        return ca.jtimes(value, self.x, self.x_dot)

    def add(self, mass: float, at: Any, frame: Any, moments: Any) -> None:
        """A body: its mass centre, three axes fixed in it, its moments about these."""
        velocity = self.rate(at)
        omega = sum((ca.cross(axis, self.rate(axis)) for axis in frame), start=ca.SX.zeros(3)) / 2
        turning = sum(J * ca.dot(omega, axis) ** 2 for J, axis in zip(moments, frame, strict=True))
        self.kinetic += (mass * ca.dot(velocity, velocity) + turning) / 2
        self.potential += mass * self.g * at[2]


def _unit(vector: Any) -> Any:
    return vector / ca.norm_2(vector)


def hinged_leg(energies: Energies, p: Mapping[str, float], base: Any, top: Any, e6: Any) -> Any:
    """Links of a leg of six revolutes; the angle of its elbow by the cosine rule."""
    span = top - base
    reach = ca.norm_2(span)
    e4 = _unit(ca.cross(span, e6))
    ahead = (p["L1"] ** 2 - p["L2"] ** 2 + reach**2) / (2 * reach)
    aside = ca.sqrt(p["L1"] ** 2 - ahead**2) * ca.cross(e4, span / reach)
    elbow = base + ahead * span / reach + aside
    e1, e3, along = ca.DM([0, 0, 1]), (elbow - base) / p["L1"], (top - elbow) / p["L2"]
    e2 = _unit(ca.cross(e1, e3))

    def frame(first: Any, second: Any) -> tuple[Any, Any, Any]:
        return first, second, ca.cross(first, second)

    energies.add(p["m1"], base, frame(e1, e2), 3 * [p["j1"]])
    energies.add(p["m2"], base, frame(e2, e3), 3 * [p["j2"]])
    energies.add(p["m3"], (base + elbow) / 2, frame(e3, e4), [p["Jx3"], p["Jt3"], p["Jt3"]])
    energies.add(p["m4"], (elbow + top) / 2, frame(along, e4), [p["Jx4"], p["Jt4"], p["Jt4"]])
    energies.add(p["m5"], top, frame(e4, e6), 3 * [p["j5"]])
    bend = ca.acos((p["L1"] ** 2 + p["L2"] ** 2 - reach**2) / (2 * p["L1"] * p["L2"]))
    return bend - ca.pi  # how far the upper link is turned from the lower one, about e4


def sliding_leg(energies: Energies, p: Mapping[str, float], base: Any, top: Any, _: Any) -> Any:
    """Cylinder and piston of a leg on a cross at the base, about x first; its length."""
    length = ca.norm_2(top - base)
    u = (top - base) / length
    second = _unit(ca.cross(u, ca.DM([1, 0, 0])))
    frame = (u, second, ca.cross(u, second))
    energies.add(p["m1"], base + p["L1"] / 2 * u, frame, [p["Jx1"], p["Jt1"], p["Jt1"]])
    energies.add(p["m2"], top - p["L2"] / 2 * u, frame, [p["Jx2"], p["Jt2"], p["Jt2"]])
    return length


def _axes(angles: Iterable[Any]) -> tuple[Any, Any, Any]:
    """Axes of the platform at roll, pitch and yaw."""
    (cr, cp, cy), (sr, sp, sy) = zip(*((ca.cos(x), ca.sin(x)) for x in angles), strict=True)
    first = ca.vertcat(cy * cp, sy * cp, -sp)
    second = ca.vertcat(cy * sp * sr - sy * cr, sy * sp * sr + cy * cr, cp * sr)
    return first, second, ca.cross(first, second)


def forces(
    leg: Legs,
    p: Mapping[str, float],
    angles: tuple[tuple[float, ...], tuple[float, ...]],
    motion: tuple[Array, Array, Array],
) -> Array:
    """Forces of the six motors along a motion, (6, samples).

    Args:
        leg: Adds the bodies of one leg and returns its driven coordinate.
        p: Data of the robot, g among them.
        angles: Directions of the legs' points on the base and on the platform [rad].
        motion: Place of the mass centre and roll, pitch, yaw, with their first and second
            derivatives, (samples, 6) each.
    """
    x, x_dot, x_ddot = ca.SX.sym("x", 6), ca.SX.sym("v", 6), ca.SX.sym("a", 6)
    energies = Energies(x, x_dot, p["g"])
    axes = _axes(ca.vertsplit(x[3:]))
    energies.add(p["mM"], x[:3], axes, [p["IMx"], p["IMy"], p["IMz"]])
    driven = []
    for on_base, on_top in zip(*angles, strict=True):
        base = p["Rb"] * ca.DM([np.cos(on_base), np.sin(on_base), 0.0])
        outward = np.cos(on_top) * axes[0] + np.sin(on_top) * axes[1]
        top = x[:3] + p["Rp"] * outward + p["zp"] * axes[2]
        driven.append(leg(energies, p, base, top, outward))
    momentum = ca.gradient(energies.kinetic, x_dot)
    changing = ca.jtimes(momentum, x, x_dot) + ca.jtimes(momentum, x_dot, x_ddot)
    needed = changing - ca.gradient(energies.kinetic, x) + ca.gradient(energies.potential, x)
    jacobian = ca.jacobian(ca.vertcat(*driven), x)
    function = ca.Function("forces", [x, x_dot, x_ddot], [needed, jacobian])
    found = []
    for state in zip(*motion, strict=True):
        Q, J = (value.full() for value in function(*state))
        found.append(np.linalg.solve(J.T, Q)[:, 0])
    return np.array(found).T


# recursion ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recursion:
    """The two functions of the recursion, and how many scalar operations each takes.

    Attributes:
        leg: Pose, twist and acceleration of the platform and a leg's two points to the wrench that
            its motion asks of the platform, and the one that its motor gives per unit.
        platform: These of all legs to the motors' forces.
    """

    leg: ca.Function
    platform: ca.Function

    @property
    def operations(self) -> tuple[int, int]:
        """Count those of one leg, and of the platform."""
        counts = [Tape.from_casadi(f).n_operations for f in (self.leg, self.platform)]
        return counts[0], counts[1]

    def forces(self, R: Any, c: Any, t: Any, t_dot: Any) -> Array:
        """Motor forces of all legs."""
        found = [
            self.leg(R, c, t, t_dot, [np.cos(b), np.sin(b)], [np.cos(a), np.sin(a)])
            for b, a in zip(BETA, PI, strict=True)
        ]
        wrenches, units = (ca.horzcat(*part) for part in zip(*found, strict=True))
        made: Array = self.platform(R, t, t_dot, wrenches, units).full()[:, 0]
        return made


def recursion(p: Mapping[str, float]) -> Recursion:
    """The recursion for the data of a robot."""
    R, c, t, t_dot = SX.sym("R", 3, 3), SX.sym("c", 3), SX.sym("t", 6), SX.sym("t_dot", 6)
    b, a = SX.sym("b", 2), SX.sym("a", 2)
    leg = ca.Function("leg", [R, c, t, t_dot, b, a], [*_leg(p, R, c, t, t_dot, b, a)])
    wrenches, units = SX.sym("w", 6, 6), SX.sym("y", 6, 6)
    tensor = R @ ca.diag(SX([p["IMx"], p["IMy"], p["IMz"]])) @ R.T
    turning = tensor @ t_dot[:3] + ca.cross(t[:3], tensor @ t[:3])
    lifted = t_dot[3:] + ca.vertcat(0, 0, p["g"])
    needed = ca.vertcat(turning, p["mM"] * lifted) + ca.sum2(wrenches)
    forces = Block.of(ca.densify(units)).solve(ca.densify(needed))
    return Recursion(leg, ca.Function("platform", [R, t, t_dot, wrenches, units], [forces]))


class _ThreeColumns:
    """Three columns by which others are resolved: Cramer's rule, as the book's blocks have it."""

    def __init__(self, *columns: SX) -> None:
        x, y, z = columns
        self.rows = ca.cross(y, z), ca.cross(z, x), ca.cross(x, y)
        self.inverse = 1 / ca.dot(x, self.rows[0])

    def parts(self, vector: SX) -> list[SX]:
        return [ca.dot(row, vector) * self.inverse for row in self.rows]

    def carried(self, parts: Any) -> SX:
        """The transpose: the vector that does the same work as three numbers."""
        return self.inverse * sum((k * row for k, row in zip(parts, self.rows, strict=True)), SX(0))


def _leg(p: Mapping[str, float], R: SX, c: SX, t: SX, t_dot: SX, b: SX, a: SX) -> tuple[SX, SX]:
    """The wrench that a leg's motion asks of the platform, and that of a unit motor force."""
    O = ca.vertcat(p["Rb"] * b, 0)
    e6 = R[:, :2] @ a
    P = c + p["Rp"] * e6 + p["zp"] * R[:, 2]
    span = P - O
    square = ca.dot(span, span)
    normal = ca.cross(span, e6)
    e4 = normal / ca.norm_2(normal)
    ahead = (p["L1"] ** 2 - p["L2"] ** 2 + square) / (2 * square)
    lower = ahead * span + ca.sqrt(p["L1"] ** 2 / square - ahead**2) * ca.cross(e4, span)
    upper = span - lower
    e3, along = lower / p["L1"], upper / p["L2"]
    level = ca.vertcat(-e3[1], e3[0], 0)
    e = [SX([0, 0, 1]), level / ca.norm_2(level), e3, e4, e4, e6]
    arm = O - c
    near = _ThreeColumns(*e[:3])
    far = _ThreeColumns(ca.cross(e4, -lower), ca.cross(e4, -span), ca.cross(e6, -span))

    def rates(twist: SX) -> list[SX]:
        outer = far.parts(twist[3:] + ca.cross(twist[:3], arm))
        turned = twist[:3] - sum((x * y for x, y in zip(e[3:], outer, strict=True)), SX.zeros(3))
        return [*near.parts(turned), *outer]

    theta_dot = rates(t)
    w, still = [SX.zeros(3)], [SX.zeros(3)]  # outward, as if no joint accelerated
    for axis, rate in zip(e, theta_dot, strict=True):
        still.append(still[-1] + rate * ca.cross(w[-1], axis))
        w.append(w[-1] + rate * axis)

    def moved(k: int, alpha: SX, r: SX) -> SX:
        return ca.cross(alpha, r) + ca.cross(w[k], ca.cross(w[k], r))

    top = moved(3, still[3], lower) + moved(4, still[4], upper) + moved(6, still[6], c - P)
    theta_ddot = rates(t_dot - ca.vertcat(still[6], top))
    alpha, more = [SX.zeros(3)], SX.zeros(3)
    for k, (axis, rate) in enumerate(zip(e, theta_ddot, strict=True), start=1):
        more = more + rate * axis
        alpha.append(still[k] + more)
    up = ca.vertcat(0, 0, p["g"])
    elbow = up + moved(3, alpha[3], lower)
    F5 = p["m5"] * (elbow + moved(4, alpha[4], upper))
    F4 = p["m4"] * (elbow + moved(4, alpha[4], upper / 2))
    F3 = p["m3"] * (up + moved(3, alpha[3], lower / 2))

    def rod(k: int, u: SX, axial: float, across: float) -> SX:
        spin = ca.dot(u, alpha[k]) * u + ca.dot(u, w[k]) * ca.cross(w[k], u)
        return across * alpha[k] + (axial - across) * spin

    n5 = p["j5"] * alpha[5]  # inward
    n4 = n5 + rod(4, along, p["Jx4"], p["Jt4"]) + ca.cross(upper, F5 + F4 / 2)
    n3 = n4 + rod(3, e3, p["Jx3"], p["Jt3"]) + ca.cross(lower, F5 + F4 + F3 / 2)
    n2 = n3 + p["j2"] * alpha[2]
    n1 = n2 + p["j1"] * alpha[1]
    tau = [ca.dot(axis, n) for axis, n in zip(e, (n1, n2, n3, n4, n5), strict=False)]
    moment = near.carried(tau[:3])
    outer = [*tau[3:], SX(0)]
    force = far.carried([x - ca.dot(axis, moment) for axis, x in zip(e[3:], outer, strict=True)])
    unit = far.rows[0] * far.inverse
    return (ca.vertcat(moment + ca.cross(arm, force), force), ca.vertcat(ca.cross(arm, unit), unit))


# (12.31) with matrices ----------------------------------------------------------------------------


def matrices(e: Equations, *, weight: bool) -> ca.Function:
    """(12.31) with M, N and Lambda formed and a linear solve; without weight as it is printed."""
    legs = e.legs
    needed = legs.inertia() @ e.nu_dot + legs.N @ e.nu
    if weight:
        needed -= legs.gravity()
    forces = Block.of(ca.densify(legs.Lambda)).solve(ca.densify(needed))
    fixed = ca.substitute(e.system.at_speeds(forces), e.p, ca.DM(e.system.defaults))
    return ca.Function("matrices", [e.q, e.nu, e.nu_dot], [fixed])


@item(
    "legs-recursion", "angeles", "inverse dynamics by recursion, legs side by side, after (12.31)"
)
def legs_recursion() -> ItemResult:
    """(12.31) by matrices, and by a recursion that legs evaluate side by side."""
    robot = build("six_legged_platform")
    independent = [f"theta_{leg}4_dot" for leg in LEGS]
    e = robot.derive("legs", independent, self_check=False)
    model = robot.derive(independent=independent, self_check=False).compile(
        "interpreter", parameters="fixed"
    )
    by_leg = recursion(e.parameters)
    book, printed = (matrices(e, weight=weight) for weight in (True, False))
    run = inverse_dynamics(model, MOTION, times=DURATION, save_every=SPACING)
    states = states_of(model, run)
    accelerations = np.asarray(model.forward_dynamics(*states))
    samples = list(zip(*states[:2], accelerations, strict=True))
    pose = _pose()
    values = {
        OURS: np.array([run[f"f_{leg}"] for leg in LEGS]),
        BOOK: np.array([book(*one).full()[:, 0] for one in samples]).T,
        PRINTED: np.array([printed(*one).full()[:, 0] for one in samples]).T,
        RECURSION: np.array([by_leg.forces(*pose(t)) for t in run.time]).T,
    }
    own, shared = by_leg.operations
    counts = {
        BOOK: Tape.from_casadi(book).n_operations,
        "one tree for all legs": model.operations("inverse_dynamics"),
        RECURSION: 6 * own + shared,
        "a processor for each leg": own + shared,
    }
    return _outcome(run.time, values, counts)


def _pose() -> ca.Function:
    """The platform's axes, mass centre, twist and acceleration at a time."""
    t = SX.sym("t")
    there = (1 - ca.cos(2 * ca.pi * t / DURATION)) / 2
    x = [size * there for size in REACHED.values()]
    c = ca.vertcat(x[0], x[1], HEIGHT + x[2])
    R = ca.horzcat(*_axes(x[3:]))
    spin = ca.jacobian(ca.vec(R), t).reshape((3, 3)) @ R.T
    twist = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0], ca.jacobian(c, t))
    return ca.Function("pose", [t], [R, c, twist, ca.jacobian(twist, t)])


def _outcome(times: Array, values: dict[str, Array], counts: dict[str, int]) -> ItemResult:
    ours = values[OURS]
    near = 1e-9 * largest(ours)
    checks = [
        vanishing(
            "forces by (12.31) as printed and by the recursion apart by",
            apart(values[PRINTED], values[RECURSION]),
            "N m",
            within=near,
            why="by erratum A-6 the weight of platform and legs is missing",
            explained=WEIGHT,
        ),
        vanishing(
            "forces by (12.31) with the weight and by the recursion apart by",
            apart(values[BOOK], values[RECURSION]),
            "N m",
            within=near,
        ),
        vanishing(
            "our forces and those apart by", apart(ours, values[RECURSION]), "N m", within=near
        ),
        at_most(
            "operations of the recursion beyond those of (12.31) with matrices",
            counts[RECURSION],
            counts[BOOK],
        ),
        at_most(
            "operations with a processor for each leg beyond a third of those with one",
            counts["a processor for each leg"],
            counts[RECURSION] // 3,
        ),
    ]
    curves = [
        *our_curves(times, ours, (f"leg {leg}" for leg in LEGS)),
        *printed_curves(times, values[RECURSION], RECURSION),
        *misprinted(times, values[PRINTED], PRINTED),
    ]
    panels = [
        over_time(r"elbow torques $\phi_J$", "[N m]", curves),
        operations_panel("torques of a motion", counts),
    ]
    table = {TIME: times}
    for name in (RECURSION, BOOK, PRINTED):
        for leg, row in zip(LEGS, values[name], strict=True):
            table[f"f_{leg} {name} [N m]"] = row
    return ItemResult(table, panels, CAPTION, checks)
