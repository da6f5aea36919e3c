"""The flight simulator: a platform on legs that change their length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import axode as ax
from axode.gallery.six_legged_platform import BETA, PI, add_platform, along_leg, leg_angles, roman
from axode.gallery.values import parameters

DEFAULTS = {
    "Rb": 1.0,
    "Rp": 0.5,
    "zp": -0.05,
    "L1": 0.6,
    "L2": 0.6,
    "m1": 1.6,
    "Jx1": 0.002,
    "Jt1": 0.05,
    "m2": 1.2,
    "Jx2": 0.001,
    "Jt2": 0.04,
    "mM": 12.0,
    "g": 9.81,
}


def flight_simulator(
    beta: Sequence[float] = BETA,
    pi: Sequence[float] = PI,
    IM: Sequence[float] = (0.9, 0.8, 1.5),
    c_M: Sequence[float] = (0.0, 0.0, 1.0),
    rpy_zyx: Sequence[float] = (0.0, 0.0, 0.0),
    **values: float,
) -> ax.Mechanism:
    """A platform on legs made of a cylinder and a piston.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.4: the six-legged platform
    with driven prismatic joints. Each leg has a universal joint at the base (about x, then y), a
    slide of length l_I, l_II, ... and a spherical joint at the platform; force f_I pushes along it.
    A wrench w_W acts at the platform's mass centre.

    Args:
        beta, pi: Directions of the attachment points of each leg on base and platform [rad].
        IM: Principal moments of inertia of the platform, parameters `IMx`, `IMy`, `IMz` [kg m^2].
        c_M: Position of the platform's mass centre at home [m].
        rpy_zyx: Roll, pitch and yaw of the platform at home [rad].

    Keyword Args:
        Rb, Rp: Radii of the circles of these points on base and platform [m].
        zp: Height of the platform's points above its mass centre [m].
        L1, L2: Lengths of cylinder and piston, whose mass centres are at their middles [m].
        m1, m2: Masses of cylinder and piston [kg].
        Jx1, Jx2: Moments of inertia of cylinder and piston about the leg's axis [kg m^2].
        Jt1, Jt2: Moments of inertia of cylinder and piston across the leg's axis [kg m^2].
        mM: Mass of the platform [kg].
        g: Gravitational acceleration [m/s^2].
    """
    moments = dict(zip(("IMx", "IMy", "IMz"), IM, strict=True))
    p = parameters("flight_simulator", DEFAULTS | moments, values)
    robot = ax.Mechanism("flight_simulator", gravity=(0, 0, -p.g))
    add_platform(robot, p)
    R, centre = Rotation.from_euler("xyz", rpy_zyx).as_matrix(), np.array(c_M, float)
    for number, (base_angle, top_angle) in enumerate(leg_angles(beta, pi), start=1):
        leg = roman(number)
        _add_leg(robot, p, leg, base_angle, top_angle)
        base = p.Rb.default * np.array([math.cos(base_angle), math.sin(base_angle), 0.0])
        radial = np.array([math.cos(top_angle), math.sin(top_angle), 0.0])
        span = centre + R @ (p.Rp.default * radial + [0.0, 0.0, p.zp.default]) - base
        (first, second, length), along = along_leg(span)
        home = {f"cross_{leg}.first": first, f"cross_{leg}.second": second, f"l_{leg}": length}
        robot.set_home(home)
        if number == 1:
            names = [f"ball_{leg}.q{axis}" for axis in "wxyz"]
            ball = np.roll(Rotation.from_matrix(along.T @ R).as_quat(canonical=True), 1)
            robot.set_home(dict(zip(names, ball, strict=True)))
    return robot


def _add_leg(robot: ax.Mechanism, p: SimpleNamespace, leg: str, base: float, top: float) -> None:
    L1, L2 = p.L1, p.L2
    cylinder = robot.add_body(
        f"cylinder_{leg}",
        mass=p.m1,
        com=(0, 0, L1 / 2.0),
        inertia=(p.Jt1, p.Jt1, p.Jx1),
        shape=ax.Cylinder(0.05 * L1, L1, at=(0, 0, L1 / 2.0)),
    )
    piston = robot.add_body(
        f"piston_{leg}",
        mass=p.m2,
        com=(0, 0, -L2 / 2.0),
        inertia=(p.Jt2, p.Jt2, p.Jx2),
        shape=ax.Cylinder(0.03 * L2, L2, at=(0, 0, -L2 / 2.0)),
    )
    robot.add_joint(
        f"cross_{leg}",
        ax.Universal("x", "y"),
        parent=robot.ground,
        child=cylinder,
        at=(p.Rb * math.cos(base), p.Rb * math.sin(base), 0.0),
    )
    robot.add_joint(
        f"slide_{leg}",
        ax.Prismatic("z"),
        parent=cylinder,
        child=piston,
        coordinates=(f"l_{leg}",),
        speeds=(f"l_{leg}_dot",),
    )
    point: Any = (p.Rp * math.cos(top), p.Rp * math.sin(top), p.zp)
    robot.add_joint(f"ball_{leg}", ax.Spherical(), parent=piston, child="platform", child_at=point)
    robot.add_motor(f"drive_{leg}", f"l_{leg}", input=f"f_{leg}")
