"""Mechanisms of the five documents, built from Axode's parts, and how a formula is judged.

Every check compares a printed formula and its correction with numbers of a model that Axode derived
from bodies, joints, wheels and loops; no check compares a formula with another formula alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

import axode as ax
from tests.textbook.closed_forms import quaternion, rotation

HOLDS = 1e-10  # relative: a correct formula and the model differ by rounding
FAILS = 1e-4  # relative: a wrong one is off by much more
SLOPE = 1e-8  # relative: what central differences leave of fifteen digits
G = 9.81
UP = np.array([0.0, 0.0, 1.0])


def error(found: ArrayLike, truth: ArrayLike) -> float:
    """Largest difference, relative to the largest entry of the truth (or 1 if that is zero)."""
    found, truth = np.asarray(found, float), np.asarray(truth, float)
    assert found.shape == truth.shape, f"shape {found.shape}, expected {truth.shape}"
    return float(np.abs(found - truth).max() / (np.abs(truth).max() or 1.0))


def judge(truth: ArrayLike, *, printed: ArrayLike, correct: ArrayLike, within: float = HOLDS):
    """The printed formula fails against the model's numbers, the corrected one holds."""
    assert error(correct, truth) <= within, f"the correction is off by {error(correct, truth):.3g}"
    assert error(printed, truth) >= FAILS, f"the print is right to {error(printed, truth):.3g}"


def holds(truth: ArrayLike, printed: ArrayLike, within: float = HOLDS):
    """A printed formula that is right."""
    assert error(printed, truth) <= within, f"off by {error(printed, truth):.3g}"


def conforms(*shapes: tuple[int, int]) -> bool:
    """Whether matrices of these shapes can be multiplied in this order."""
    return all(left[1] == right[0] for left, right in pairwise(shapes))


def twist_map(model: ax.Model, q: ArrayLike, body: str | None = None) -> np.ndarray:
    """T: twists of all bodies, or of one, for unit independent speeds."""
    columns = [model.twists(q, unit) for unit in np.eye(len(model.independent))]
    if body is None:
        return np.array([column.ravel() for column in columns]).T
    return np.array([column[model.bodies.index(body)] for column in columns]).T


def slope(
    function: Callable[[np.ndarray, np.ndarray], ArrayLike],
    model: ax.Model,
    q: np.ndarray,
    nu: np.ndarray,
    nu_dot: ArrayLike | None = None,
    step: float = 2e-4,
) -> np.ndarray:
    """Time derivative of a function of the state along a motion: two central differences.

    Accelerations are zero unless given. What is left of step^4 and of rounding is below `SLOPE`.
    """
    rates = model.rates(q, nu)
    change = np.zeros(len(nu)) if nu_dot is None else np.asarray(nu_dot)

    def central(h: float) -> np.ndarray:
        ahead = np.asarray(function(q + h * rates, nu + h * change), float)
        return (ahead - np.asarray(function(q - h * rates, nu - h * change), float)) / (2 * h)

    wide, narrow = central(2 * step), central(step)
    return (4 * narrow - wide) / 3


def named(names: tuple[str, ...], values: ArrayLike) -> dict[str, float]:
    return dict(zip(names, np.asarray(values, float), strict=True))


# Angeles, section 12.3: a four-bar ----------------------------------------------------------------

BARS = {"crank": (0.5, 0.1), "coupler": (1.0, 0.35), "rocker": (0.8, 0.3)}  # mass, length
SPAN = 0.4


def bars(closed: bool) -> ax.Model:
    """Three bars in a vertical plane; the last one hinged to the ground again, or hanging free."""
    mechanism = ax.Mechanism("bars", gravity=(0, -G, 0))
    parent, at = mechanism.ground, (0.0, 0.0, 0.0)
    for name, (mass, length) in BARS.items():
        across = mass * length**2 / 12
        body = mechanism.add_body(
            name, mass=mass, com=(length / 2, 0, 0), inertia=(1e-5, across, across)
        )
        mechanism.add_joint(name, ax.Revolute("z"), parent=parent, child=body, at=at)
        parent, at = body, (length, 0.0, 0.0)
    if closed:
        mechanism.add_loop(
            "hinge",
            ax.Revolute("z"),
            parent=mechanism.ground,
            child=parent,
            at=(SPAN, 0, 0),
            child_at=at,
        )
        mechanism.set_home(named(tuple(BARS), bar_angles(1.2)))
    mechanism.add_motor("crank", "crank")
    return mechanism.derive(independent=["crank"] if closed else None).compile("interpreter")


def bar_angles(crank: float) -> np.ndarray:
    """Relative angles that close the loop."""
    a, b, c = (length for _, length in BARS.values())
    A = a * np.array([np.cos(crank), np.sin(crank)])
    diagonal = np.array([SPAN, 0.0]) - A
    size = np.linalg.norm(diagonal)
    along = diagonal / size
    x = (size**2 + b**2 - c**2) / (2 * size)
    B = A + x * along + np.sqrt(b**2 - x**2) * np.array([-along[1], along[0]])
    coupler, rocker = (np.arctan2(v[1], v[0]) for v in (B - A, np.array([SPAN, 0.0]) - B))
    return np.array([crank, coupler - crank, rocker - coupler])


# Angeles, section 12.4: a platform on six legs of six revolutes -----------------------------------


class Leg:
    """Where a leg's joints are and where their axes point, in the reference posture."""

    def __init__(self, base_angle: float, platform_angle: float) -> None:
        turn, centre = PLATFORM_TURN, PLATFORM_CENTRE
        self.B = np.array([0.5 * np.cos(base_angle), 0.5 * np.sin(base_angle), 0.0])
        across = np.array([np.cos(platform_angle), np.sin(platform_angle), 0.0])
        self.P = centre + turn @ (0.3 * across + np.array([0.0, 0.0, -0.05]))
        e6 = turn @ across
        e4 = np.cross(self.P - self.B, e6)
        e4 /= np.linalg.norm(e4)
        span = self.P - self.B
        size = np.linalg.norm(span)
        lower, upper = 0.45, 0.4
        x = (lower**2 - upper**2 + size**2) / (2 * size)
        self.E = self.B + x * span / size
        self.E = self.E + np.sqrt(lower**2 - x**2) * np.cross(e4, span / size)
        e3 = (self.E - self.B) / lower
        e2 = np.cross(UP, e3)
        self.axes = np.array([UP, e2 / np.linalg.norm(e2), e3, e4, e4, e6])
        self.points = np.array([self.B, self.B, self.B, self.E, self.P, self.P])


PLATFORM_CENTRE = np.array([0.05, -0.03, 0.6])
PLATFORM_TURN = rotation("z", 0.1) @ rotation("y", 0.15) @ rotation("x", -0.2)
PLATFORM_MASS, PLATFORM_INERTIA = 8.0, np.diag([0.25, 0.3, 0.5])
LEGS = [
    Leg(np.radians(base), np.radians(top))
    for base, top in ((-10, -50), (10, 50), (110, 70), (130, 170), (230, 190), (250, 290))
]


def add_leg(mechanism: ax.Mechanism, leg: Leg, name: str) -> ax.mechanism.bodies.Body:
    """Five links; at zero angles all frames are parallel to the world's."""
    rod3, rod4 = (leg.E - leg.B) / 2, (leg.P - leg.E) / 2
    links = [
        (0.1, np.zeros(3), 1e-3),
        (0.1, np.zeros(3), 1e-3),
        (0.9, rod3, 0.02),
        (0.7, rod4, 0.015),
        (0.2, np.zeros(3), 1e-3),
    ]
    parent, before = mechanism.ground, np.zeros(3)
    for k, (mass, com, inertia) in enumerate(links):
        link = mechanism.add_body(
            f"{name}{k + 1}", mass=mass, com=tuple(com), inertia=(inertia, inertia, inertia)
        )
        mechanism.add_joint(
            f"{name}{k + 1}",
            ax.Revolute(tuple(leg.axes[k])),
            parent=parent,
            child=link,
            at=tuple(leg.points[k] - before),
        )
        parent, before = link, leg.points[k]
    return parent


@cache
def six_legs() -> ax.Model:
    """The platform in the reference posture; elbows driven, their rates the speeds."""
    mechanism = ax.Mechanism("six_legs", gravity=(0, 0, -G))
    platform = mechanism.add_body("platform", mass=PLATFORM_MASS, inertia=PLATFORM_INERTIA)
    mechanism.add_joint("platform", ax.Floating(), parent=mechanism.ground, child=platform)
    for j, leg in enumerate(LEGS):
        last = add_leg(mechanism, leg, f"leg{j}_")
        mechanism.add_loop(
            f"leg{j}_6",
            ax.Revolute(tuple(leg.axes[5])),
            parent=last,
            child=platform,
            child_at=tuple(leg.P - PLATFORM_CENTRE),
        )
        mechanism.add_motor(f"elbow{j}", f"leg{j}_4")
    mechanism.set_home(
        dict(zip(("platform.x", "platform.y", "platform.z"), PLATFORM_CENTRE, strict=True))
    )
    return mechanism.derive(independent=[f"leg{j}_4" for j in range(6)]).compile("interpreter")


@cache
def one_leg(j: int) -> ax.Model:
    """A leg by itself, cut from the platform."""
    mechanism = ax.Mechanism("leg", gravity=(0, 0, -G))
    add_leg(mechanism, LEGS[j], "leg")
    return mechanism.derive().compile("interpreter")


# Angeles, section 12.5.1: two driven wheels and a caster ------------------------------------------


class Caster:
    """Numbers of the caster robot, the model, and the book's entries at a state."""

    a, b, d, l, r = 0.12, 0.18, 0.06, 0.5, 0.1
    spin, turn, mw = 0.006, 0.0032, 1.2
    mc, mb, Ib, mp, Ip = 0.6, 0.4, 0.0008, 15.0, 0.55
    alpha, delta, rho, lam = (a + b) / l, d / l, r / d, a / l

    def __init__(self, psi: float, rates: ArrayLike) -> None:
        c, s = np.cos(psi), np.sin(psi)
        alpha, rho, delta = self.alpha, self.rho, self.delta
        self.model, self.rates = caster_model(), np.asarray(rates, float)
        self.q = np.array([0.0] * len(self.model.coordinates))
        for name, value in (("caster_bracket", psi), ("base.yaw", 0.4), ("caster", 0.9)):
            self.q[self.model.coordinates.index(name)] = value
        self.t1 = np.array([alpha * c + s / 2, -alpha * c + s / 2])
        self.bar = rho * np.array([-alpha * s + c / 2, alpha * s + c / 2])
        self.t2 = self.bar + rho * delta * np.array([-1.0, 1.0])
        self.psi_dot = self.t2 @ self.rates
        self.t1_dot = self.psi_dot * np.array([-alpha * s + c / 2, alpha * s + c / 2])
        self.t2_dot = self.psi_dot * rho * np.array([-alpha * c - s / 2, alpha * c - s / 2])
        self.omega = (self.r / self.l) * (self.rates[0] - self.rates[1])
        turning = self.bar @ self.rates
        self.g1 = self.t2_dot / 2 + rho * turning * self.t1  # c_11, c_21
        self.g2 = turning * self.bar / 2 - rho * self.t1_dot  # c_12, c_22
        yaw = rotation("z", 0.4)
        self.e3, self.f3 = yaw @ [-s, c, 0], yaw @ [-c, -s, 0]

    def coriolis(self, *, platform: bool = True, barred: bool = True) -> np.ndarray:
        """The book's C, with or without what it leaves out."""
        caster = 6 * np.outer(self.t1, self.t1_dot) + np.outer(self.bar, self.t2_dot)
        C = self.mc * self.r**2 / 4 * caster
        C += self.Ib * np.outer(self.bar if barred else self.t2, self.t2_dot)
        bracket = np.outer(self.bar, self.g1) - 2 * self.rho * np.outer(self.t1, self.g2)
        C += self.mb * self.d**2 / 2 * bracket
        if platform:
            C += self.mp * self.r**2 * self.lam * self.omega * np.array([[0.0, -1.0], [1.0, 0.0]])
        return C


@cache
def caster_model() -> ax.Model:
    k = Caster
    mechanism = ax.Mechanism("caster_robot")
    platform = mechanism.add_body(
        "platform", mass=k.mp, com=(0, -k.a, 0.08), inertia=(0.4, 0.3, k.Ip)
    )
    mechanism.add_joint(
        "base", ax.Planar(), parent=mechanism.ground, child=platform, at=(0, 0, k.r)
    )
    for name, side in (("wheel1", k.l / 2), ("wheel2", -k.l / 2)):
        mechanism.add_wheel(
            name,
            ax.Rolling(radius=k.r),
            on=platform,
            at=(side, 0, 0),
            axis="-x",
            mass=k.mw,
            inertia=ax.Inertia.axial(k.spin, k.turn, "x"),
            motor=True,
        )
    mechanism.add_caster(
        "caster",
        ax.Rolling(radius=k.r),
        on=platform,
        at=(0, -k.a - k.b, 0.07),
        trail=k.d,
        drop=0.07,
        mass=k.mc,
        bracket_mass=k.mb,
        bracket_inertia=(0.0005, 0.0006, k.Ib),
    )
    return mechanism.derive(independent=["wheel1", "wheel2"]).compile("interpreter")


# Angeles, section 12.5.2: three omnidirectional wheels --------------------------------------------


class Delta:
    """Numbers of the Delta array, and the book's vectors at a heading."""

    a, r = 0.05, 0.2
    mw, I, J, mp, H = 0.4, 0.0005, 0.0003, 6.0, 0.12
    lam = a / (3 * r)
    across = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    angles = 2 * np.pi * np.arange(3) / 3

    def __init__(self, yaw: float, rates: ArrayLike) -> None:
        self.model, self.rates = delta_model(), np.asarray(rates, float)
        self.q = np.zeros(len(self.model.coordinates))
        self.q[self.model.coordinates.index("base.yaw")] = yaw
        turned = self.angles + yaw
        self.e = np.array([np.cos(turned), np.sin(turned), 0 * turned]).T
        self.f = np.cross(UP, self.e)
        self.omega = -self.lam * self.rates.sum()

    def wheel_inertia(self, i: int) -> np.ndarray:
        """Of wheel i about its centre, in world axes; its spin does not show."""
        ee = np.outer(self.e[i], self.e[i])
        inertia = self.I * ee + self.J * (np.eye(3) - ee)
        return np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), self.mw * np.eye(3)]])


@cache
def delta_model(damping: float = 0.0) -> ax.Model:
    k = Delta
    mechanism = ax.Mechanism("delta")
    platform = mechanism.add_body("platform", mass=k.mp, inertia=(0.07, 0.08, k.H))
    mechanism.add_joint(
        "base", ax.Planar(), parent=mechanism.ground, child=platform, at=(0, 0, k.a)
    )
    for i, angle in enumerate(k.angles):
        e = np.array([np.cos(angle), np.sin(angle), 0.0])
        mechanism.add_wheel(
            f"wheel{i}",
            ax.Omni(radius=k.a),
            on=platform,
            at=tuple(k.r * e),
            axis=tuple(e),
            mass=k.mw,
            motor=True,
            inertia=ax.Inertia.axial(k.I, k.J, tuple(e)),
        )
        mechanism.add_damper(f"hub{i}", f"wheel{i}", coefficient=damping)
    wheels = [f"wheel{i}" for i in range(3)]
    return mechanism.derive(independent=wheels).compile("interpreter")


# Saha and Angeles: a disk, and a wheel on a moving plank ------------------------------------------


class Disk:
    """A thin disk that leans by `lean` about x and has turned about its own axis y."""

    m, R, across, along = 2.0, 0.3, 0.045, 0.09

    def __init__(self, lean: float, omega: ArrayLike, spin: float = 0.8) -> None:
        self.model = disk_model()
        self.turn = rotation("x", lean) @ rotation("y", spin)
        self.q = np.array([*quaternion(("x", lean), ("y", spin)), 0.4, -0.1, self.R * np.cos(lean)])
        self.omega = np.asarray(omega, float)
        self.nu = self.turn.T @ self.omega
        n = self.turn[:, 1]
        self.inertia = self.across * (np.eye(3) - np.outer(n, n)) + self.along * np.outer(n, n)

    def T(self, q: np.ndarray) -> np.ndarray:
        """Twist of the disk for unit angular velocities about the world's axes."""
        return twist_map(self.model, q) @ self.model.poses(q)[0][:3, :3].T

    @property
    def s(self) -> np.ndarray:
        """From the centre to the contact, read off the model's twists: T = [1; s x 1]."""
        return vector_of(self.T(self.q)[3:])

    @property
    def s_dot(self) -> np.ndarray:
        return vector_of(self.T_dot[3:])

    @property
    def T_dot(self) -> np.ndarray:
        return slope(lambda q, _: self.T(q), self.model, self.q, self.nu)


def vector_of(cross: np.ndarray) -> np.ndarray:
    """The vector whose cross-product matrix this is."""
    return (
        np.array([cross[2, 1] - cross[1, 2], cross[0, 2] - cross[2, 0], cross[1, 0] - cross[0, 1]])
        / 2
    )


@cache
def disk_model() -> ax.Model:
    k = Disk
    mechanism = ax.Mechanism("disk", gravity=(0, 0, -G))
    disk = mechanism.add_body("disk", mass=k.m, inertia=ax.Inertia.axial(k.along, k.across, "y"))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=disk)
    mechanism.add_contact("rim", ax.Rolling(radius=k.R), body=disk, axis="y")
    mechanism.set_home({"base.z": k.R})
    return mechanism.derive(independent=["base.wx", "base.wy", "base.wz"]).compile("interpreter")


@cache
def wheel_on_a_plank() -> ax.Model:
    """A plank that tilts about y and a ball that rolls on it."""
    mechanism = ax.Mechanism("plank", gravity=(0, 0, -G))
    plank = mechanism.add_body("plank", mass=3.0, com=(0.2, 0.1, -0.1), inertia=(0.1, 0.2, 0.25))
    mechanism.add_joint("plank", ax.Revolute("y"), parent=mechanism.ground, child=plank)
    ball = mechanism.add_body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=ball)
    mechanism.add_contact("touch", ax.Ball(radius=0.1), body=ball, ground=plank)
    mechanism.set_home({"base.x": 0.3, "base.y": 0.05, "base.z": 0.1})
    return mechanism.derive().compile("interpreter")


# Staicu, and Yesiloglu's cart: two wheels and a body between them ---------------------------------


class Pendulum:
    """Numbers of the wheeled pendulum. Moments J are about the middle of the axle."""

    m, M, J1, J2, J3, r, d, rho = 0.5, 5.0, 0.2, 0.4, 0.4, 0.3, 0.2, 0.5
    l = r / rho
    # relative wheel rates and the body's pitch rate from theta_1, theta_2, theta_3
    S = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, -1.0]])

    def __init__(self, psi: float, theta3: float, rates: ArrayLike, J3: float | None = None):
        self.J3 = self.J3 if J3 is None else J3
        self.model = pendulum_model(self.J3)
        self.psi, self.theta3, self.rates = psi, theta3, np.asarray(rates, float)
        self.q = np.array([*quaternion(("z", psi), ("y", -theta3)), 0.2, -0.4, self.r, 0.3, -0.5])
        self.nu = self.S @ self.rates

    def accelerations(self, torque: ArrayLike) -> np.ndarray:
        """Of theta_1, theta_2, theta_3, from the model."""
        return np.linalg.solve(self.S, self.model.forward_dynamics(self.q, self.nu, torque))

    def inertia(self) -> np.ndarray:
        """A_ij of the first three columns, from the model."""
        return self.S.T @ self.model.mass_matrix(self.q) @ self.S


@cache
def pendulum_model(J3: float = Pendulum.J3, target: str = "interpreter") -> ax.Model:
    k = Pendulum
    mechanism = ax.Mechanism("pendulum", gravity=(0, 0, -G))
    own = k.M * k.d**2
    body = mechanism.add_body(
        "body", mass=k.M, com=(0, 0, -k.d), inertia=(k.J2 - own, J3 - own, k.J1)
    )
    mechanism.add_joint("base", ax.Floating(), parent=mechanism.ground, child=body)
    for name, side in (("left", k.l / 2), ("right", -k.l / 2)):
        mechanism.add_wheel(
            name, ax.Rolling(radius=k.r), on=body, at=(0, side, 0), mass=k.m, motor=True
        )
    mechanism.set_home({"base.z": k.r})
    return mechanism.derive(independent=["left.rate", "right.rate", "base.wy"]).compile(target)
