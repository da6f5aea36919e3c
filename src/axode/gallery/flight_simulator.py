"""The flight simulator: a platform on legs that change their length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import axode as ax
from axode.gallery.six_legged_platform import (
    BETA,
    PI,
    Array,
    add_platform,
    leg_angles,
    roman,
    rotation,
)


def flight_simulator(
    beta: Sequence[float] = BETA,
    pi: Sequence[float] = PI,
    Rb: float = 1.0,
    Rp: float = 0.5,
    zp: float = -0.05,
    L1: float = 0.6,
    L2: float = 0.6,
    m1: float = 1.6,
    Jx1: float = 0.002,
    Jt1: float = 0.05,
    m2: float = 1.2,
    Jx2: float = 0.001,
    Jt2: float = 0.04,
    mM: float = 12.0,
    IM: Sequence[float] = (0.9, 0.8, 1.5),
    g: float = 9.81,
    c_M: Sequence[float] = (0.0, 0.0, 1.0),
    rpy_zyx: Sequence[float] = (0.0, 0.0, 0.0),
) -> ax.Mechanism:
    """A platform on legs made of a cylinder and a piston.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.4: the six-legged platform
    with driven prismatic joints. Each leg has a universal joint at the base (about x, then y), a
    slide of length l_I, l_II, ... and a spherical joint at the platform; force f_I pushes along it.
    A wrench w_W acts at the platform's mass centre.

    Args:
        beta, pi: Directions of the attachment points of each leg on base and platform [rad].
        Rb, Rp: Radii of the circles of these points on base and platform [m].
        zp: Height of the platform's points above its mass centre [m].
        L1, L2: Lengths of cylinder and piston, whose mass centres are at their middles [m].
        m1, m2: Masses of cylinder and piston [kg].
        Jx1, Jx2: Moments of inertia of cylinder and piston about the leg's axis [kg m^2].
        Jt1, Jt2: Moments of inertia of cylinder and piston across the leg's axis [kg m^2].
        mM: Mass of the platform [kg].
        IM: Principal moments of inertia of the platform, parameters `IMx`, `IMy`, `IMz` [kg m^2].
        g: Gravitational acceleration [m/s^2].
        c_M: Position of the platform's mass centre at home [m].
        rpy_zyx: Roll, pitch and yaw of the platform at home [rad].
    """
    values = {
        "Rb": Rb,
        "Rp": Rp,
        "zp": zp,
        "L1": L1,
        "L2": L2,
        "m1": m1,
        "Jx1": Jx1,
        "Jt1": Jt1,
        "m2": m2,
        "Jx2": Jx2,
        "Jt2": Jt2,
        "mM": mM,
        "IMx": IM[0],
        "IMy": IM[1],
        "IMz": IM[2],
        "g": g,
    }
    p = {name: ax.Parameter(name, value) for name, value in values.items()}
    robot = ax.Mechanism("flight_simulator", gravity=(0, 0, -p["g"]))
    add_platform(robot, p)
    R, centre = rotation(*rpy_zyx), np.array(c_M, float)
    for number, (base_angle, top_angle) in enumerate(leg_angles(beta, pi), start=1):
        leg = roman(number)
        _add_leg(robot, p, leg, base_angle, top_angle)
        base = Rb * np.array([math.cos(base_angle), math.sin(base_angle), 0.0])
        radial = np.array([math.cos(top_angle), math.sin(top_angle), 0.0])
        span = centre + R @ (Rp * radial + [0.0, 0.0, zp]) - base
        home, along = _leg_home(leg, span)
        robot.set_home(home)
        if number == 1:
            names = [f"ball_{leg}.q{axis}" for axis in "wxyz"]
            robot.set_home(dict(zip(names, quaternion(along.T @ R), strict=True)))
    return robot


def _add_leg(
    robot: ax.Mechanism, p: dict[str, ax.Parameter], leg: str, base: float, top: float
) -> None:
    L1, L2 = p["L1"], p["L2"]
    cylinder = robot.add_body(
        f"cylinder_{leg}",
        mass=p["m1"],
        com=(0, 0, L1 / 2.0),
        inertia=(p["Jt1"], p["Jt1"], p["Jx1"]),
        shape=ax.Cylinder(0.05 * L1, L1, at=(0, 0, L1 / 2.0)),
    )
    piston = robot.add_body(
        f"piston_{leg}",
        mass=p["m2"],
        com=(0, 0, -L2 / 2.0),
        inertia=(p["Jt2"], p["Jt2"], p["Jx2"]),
        shape=ax.Cylinder(0.03 * L2, L2, at=(0, 0, -L2 / 2.0)),
    )
    robot.add_joint(
        f"cross_{leg}",
        ax.Universal("x", "y"),
        parent=robot.ground,
        child=cylinder,
        at=(p["Rb"] * math.cos(base), p["Rb"] * math.sin(base), 0.0),
    )
    robot.add_joint(
        f"slide_{leg}",
        ax.Prismatic("z"),
        parent=cylinder,
        child=piston,
        coordinates=(f"l_{leg}",),
        speeds=(f"l_{leg}_dot",),
    )
    point: Any = (p["Rp"] * math.cos(top), p["Rp"] * math.sin(top), p["zp"])
    robot.add_joint(f"ball_{leg}", ax.Spherical(), parent=piston, child="platform", child_at=point)
    robot.add_motor(f"drive_{leg}", f"l_{leg}", input=f"f_{leg}")


def _leg_home(leg: str, span: Array) -> tuple[dict[str, float], Array]:
    """Coordinates of a leg along a vector, and its axes."""
    length = float(np.linalg.norm(span))
    x, y, z = span / length
    first, second = math.atan2(-y, z), math.asin(x)
    home = {f"cross_{leg}.first": first, f"cross_{leg}.second": second, f"l_{leg}": length}
    return home, rotation(first, 0.0, 0.0) @ rotation(0.0, second, 0.0)


def quaternion(R: Array) -> list[float]:
    """w, x, y, z of a rotation, whichever half turn it may be."""
    K = np.array(
        [
            [R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    vector = np.linalg.eigh(K)[1][:, -1]
    return [float(item) for item in vector * (1.0 if vector[0] >= 0 else -1.0)]
