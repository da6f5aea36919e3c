"""The platform on legs with six revolutes each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

import axode as ax
from axode.errors import InvalidArgument
from axode.gallery.values import parameters, turn

Array = npt.NDArray[np.float64]
BETA = tuple(math.radians(angle) for angle in (10, 110, 130, 230, 250, 350))
PI = tuple(math.radians(angle) for angle in (50, 70, 170, 190, 290, 310))


DEFAULTS = {
    "Rb": 1.0,
    "Rp": 0.5,
    "zp": -0.05,
    "L1": 0.7,
    "L2": 0.8,
    "m1": 0.2,
    "j1": 0.001,
    "m2": 0.25,
    "j2": 0.0015,
    "m3": 1.6,
    "Jx3": 0.002,
    "Jt3": 0.066,
    "m4": 1.4,
    "Jx4": 0.0015,
    "Jt4": 0.075,
    "m5": 0.3,
    "j5": 0.0008,
    "mM": 12.0,
    "g": 9.81,
}


def six_legged_platform(
    beta: Sequence[float] = BETA,
    pi: Sequence[float] = PI,
    knee: float = 1.0,
    IM: Sequence[float] = (0.9, 0.8, 1.5),
    c_M: Sequence[float] = (0.0, 0.0, 1.0),
    rpy_zyx: Sequence[float] = (0.0, 0.0, 0.0),
    **values: float,
) -> ax.Mechanism:
    """A platform carried by legs of two links: three hinges at the base, an elbow, two at the top.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.4 and example 12.4.1: the
    first three axes of a leg meet at its base point (a spherical joint made of hinges), the fourth
    is the driven elbow, the last two meet at right angles on the platform. Axis 1 is vertical,
    axis 2 level, axis 3 along the lower link; axes 4 and 5 are parallel, axis 6 is fixed in the
    platform and points away from its middle. Angles are theta_I1 ... theta_VI6, elbow torques
    f_I ... f_VI; a wrench w_W acts at the platform's mass centre.

    Args:
        beta, pi: Directions of the attachment points of each leg on base and platform [rad].
        knee: Side to which the elbows bend at home, 1 or -1 [1].
        IM: Principal moments of inertia of the platform, parameters `IMx`, `IMy`, `IMz` [kg m^2].
        c_M: Position of the platform's mass centre at home [m].
        rpy_zyx: Roll, pitch and yaw of the platform at home [rad].

    Keyword Args:
        Rb, Rp: Radii of the circles of these points on base and platform [m].
        zp: Height of the platform's points above its mass centre [m].
        L1, L2: Lengths of the lower and the upper link of a leg [m].
        m1, m2, m5: Masses of the hinge bodies, two at the base and one at the platform [kg].
        j1, j2, j5: Moments of inertia of these bodies about any axis [kg m^2].
        m3, m4: Masses of the lower and the upper link [kg].
        Jx3, Jx4: Moments of inertia of the links about their own axes [kg m^2].
        Jt3, Jt4: Moments of inertia of the links across their axes [kg m^2].
        mM: Mass of the platform [kg].
        g: Gravitational acceleration [m/s^2].
    """
    moments = dict(zip(("IMx", "IMy", "IMz"), IM, strict=True))
    p = parameters("six_legged_platform", DEFAULTS | moments, values)
    robot = ax.Mechanism("six_legged_platform", gravity=(0, 0, -p.g))
    add_platform(robot, p)
    R, centre = turn("ZYX", *reversed(rpy_zyx)), np.array(c_M, float)
    for number, (base_angle, top_angle) in enumerate(leg_angles(beta, pi), start=1):
        leg = roman(number)
        _add_leg(robot, p, leg, base_angle, top_angle)
        base = p.Rb.default * np.array([math.cos(base_angle), math.sin(base_angle), 0.0])
        radial = np.array([math.cos(top_angle), math.sin(top_angle), 0.0])
        top = centre + R @ (p.Rp.default * radial + [0.0, 0.0, p.zp.default])
        angles = _leg_angles(p, leg, (base, top), R, top_angle, knee)
        robot.set_home({f"theta_{leg}{k}": angle for k, angle in enumerate(angles[:5], start=1)})
        if number == 1:
            robot.set_home({f"theta_{leg}6": angles[5]})
    return robot


def leg_angles(beta: Sequence[float], pi: Sequence[float]) -> list[tuple[float, float]]:
    """Directions of each leg's two points."""
    if len(beta) != len(pi):
        raise InvalidArgument(
            f"beta, pi: expected one angle per leg in both, got {len(beta)} on the "
            f"base and {len(pi)} on the platform"
        )
    return list(zip(beta, pi, strict=True))


def add_platform(robot: ax.Mechanism, p: SimpleNamespace) -> None:
    """The platform with its mass centre at its origin, what is asked of it, and its wrench."""
    platform = robot.add_body(
        "platform",
        mass=p.mM,
        inertia=(p.IMx, p.IMy, p.IMz),
        shape=ax.Cylinder(p.Rp, 0.06 * p.Rp, at=(0, 0, p.zp)),
    )
    robot.add_wrench("w_W", platform)
    robot.measure("c_M", "position", body=platform)
    for kind in ("roll", "pitch", "yaw"):
        robot.measure(kind, kind, body=platform)


def _add_leg(robot: ax.Mechanism, p: SimpleNamespace, leg: str, base: float, top: float) -> None:
    """Five links on six hinges; the last hinge carries the platform or closes a loop."""
    L1, L2 = p.L1, p.L2
    ball = [(getattr(p, f"j{k}"),) * 3 for k in (1, 2, 5)]
    made = [
        robot.add_body(f"{leg}1", mass=p.m1, inertia=ball[0], shape=ax.Sphere(0.04 * L1)),
        robot.add_body(f"{leg}2", mass=p.m2, inertia=ball[1], shape=ax.Sphere(0.05 * L1)),
        robot.add_body(
            f"{leg}3",
            mass=p.m3,
            com=(L1 / 2.0, 0, 0),
            inertia=ax.Inertia(p.Jx3, p.Jt3, p.Jt3),
            shape=ax.Cylinder(0.03 * L1, L1, "x", at=(L1 / 2.0, 0, 0)),
        ),
        robot.add_body(
            f"{leg}4",
            mass=p.m4,
            com=(L2 / 2.0, 0, 0),
            inertia=ax.Inertia(p.Jx4, p.Jt4, p.Jt4),
            shape=ax.Cylinder(0.025 * L2, L2, "x", at=(L2 / 2.0, 0, 0)),
        ),
        robot.add_body(f"{leg}5", mass=p.m5, inertia=ball[2], shape=ax.Sphere(0.04 * L2)),
    ]
    at: list[Any] = [
        (p.Rb * math.cos(base), p.Rb * math.sin(base), 0.0),
        (0, 0, 0),
        (0, 0, 0),
        (L1, 0, 0),
        (L2, 0, 0),
    ]
    parents = [robot.ground, *made[:-1]]
    for k, axis in enumerate("zyxyy"):
        robot.add_joint(
            f"{leg}{k + 1}",
            ax.Revolute(axis),
            parent=parents[k],
            child=made[k],
            at=at[k],
            coordinates=(f"theta_{leg}{k + 1}",),
            speeds=(f"theta_{leg}{k + 1}_dot",),
        )
    point = (p.Rp * math.cos(top), p.Rp * math.sin(top), p.zp)
    carried = leg == "I"
    robot.add_joint(
        f"{leg}6",
        ax.Revolute("x"),
        parent=made[4],
        child="platform",
        child_at=point,
        child_rotation=(0, 0, top),
        coordinates=(f"theta_{leg}6",) if carried else (),
        speeds=(f"theta_{leg}6_dot",) if carried else (),
    )
    robot.add_motor(f"elbow_{leg}", f"theta_{leg}4", input=f"f_{leg}")


def _leg_angles(
    p: SimpleNamespace, leg: str, ends: tuple[Array, Array], R: Array, direction: float, knee: float
) -> list[float]:
    """All six angles of a leg, in closed form."""
    (base, top), L1, L2 = ends, p.L1.default, p.L2.default
    span = top - base
    reach = float(np.linalg.norm(span))
    if not abs(L1 - L2) < reach < L1 + L2:
        raise InvalidArgument(
            f"leg {leg} cannot reach its point on the platform: {reach:.4g} m from its base, with "
            f"links of {L1:g} m and {L2:g} m; choose c_M and rpy_zyx nearer"
        )
    u = span / reach
    e6 = R @ [math.cos(direction), math.sin(direction), 0.0]
    e4 = np.cross(span, e6)
    e4 /= np.linalg.norm(e4)
    x = (L1**2 - L2**2 + reach**2) / (2 * reach)
    elbow = base + x * u + knee * math.sqrt(L1**2 - x**2) * np.cross(e4, u)
    e3 = (elbow - base) / L1
    first = math.atan2(e3[1], e3[0])
    second = math.atan2(-e3[2], math.hypot(e3[0], e3[1]))
    R2 = turn("ZY", first, second)
    v = R2.T @ e4
    third = math.atan2(v[2], v[1])
    R3 = R2 @ turn("X", third)
    v = R3.T @ (top - elbow)
    fourth = math.atan2(-v[2], v[0])
    R4 = R3 @ turn("Y", fourth)
    v = R4.T @ e6
    fifth = math.atan2(-v[2], v[0])
    N = turn("Y", fifth).T @ R4.T @ R @ turn("Z", direction)
    return [first, second, third, fourth, fifth, math.atan2(N[2, 1], N[1, 1])]


def along_leg(span: Array) -> tuple[tuple[float, float, float], Array]:
    """Angles about x and y and length of a leg along a vector, and its axes."""
    length = float(np.linalg.norm(span))
    x, y, z = span / length
    first, second = math.atan2(-y, z), math.asin(x)
    return (first, second, length), turn("XY", first, second)


def roman(number: int) -> str:
    """I, II, III, IV, ...: how the source counts legs."""
    text = ""
    for value, sign in ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while number >= value:
            text, number = text + sign, number - value
    return text
