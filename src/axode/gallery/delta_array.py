"""Three omni wheels in a Delta array."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "a": 0.05,
    "r": 0.2,
    "mw": 0.4,
    "mp": 6.0,
    "I": 0.0005,
    "J": 0.0003,
    "H": 0.12,
    "c": 0.01,
}


def delta_array(**values: float) -> ax.Mechanism:
    """A platform on three wheels with rollers across their axes, 120 degrees apart.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.2. Wheel i stands at r e_i
    from the platform's mass centre and turns about e_i; e_1 is the platform's x, e_2 and e_3 follow
    counter-clockwise. The rollers are massless. Speeds of the platform are vx, vy in its own axes
    and omega; its heading is sigma.

    Keyword Args:
        a: Wheel radius [m].
        r: Distance of the wheels from the platform's mass centre [m].
        mw: Mass of a wheel [kg].
        mp: Mass of the platform [kg].
        I, J: Moments of inertia of a wheel about and across its axis [kg m^2].
        H: Yaw moment of inertia of the platform [kg m^2].
        c: Viscous friction of each wheel [N m s/rad].
    """
    p = parameters("delta_array", DEFAULTS, values)
    robot = ax.Mechanism("delta_array")
    platform = robot.add_body(
        "platform",
        mass=p.mp,
        inertia=(p.H / 2.0, p.H / 2.0, p.H),
        shape=ax.Cylinder(0.9 * p.r, 0.6 * p.a, at=(0, 0, 0.6 * p.a)),
    )
    robot.add_joint(
        "base",
        ax.Planar(),
        parent=robot.ground,
        child=platform,
        at=(0, 0, p.a),
        coordinates=("x", "y", "sigma"),
        speeds=("vx", "vy", "omega"),
    )
    for k in (1, 2, 3):
        angle = 2 * math.pi * (k - 1) / 3
        e = (math.cos(angle), math.sin(angle), 0.0)
        robot.add_wheel(
            f"wheel{k}",
            ax.Omni(radius=p.a),
            on=platform,
            at=(p.r * e[0], p.r * e[1], 0),
            axis=e,
            mass=p.mw,
            inertia=ax.Inertia.axial(p.I, p.J, e),
            coordinate=f"theta{k}",
            speed=f"theta{k}_dot",
            shape=ax.Cylinder(p.a, 0.5 * p.a, e),
        )
        robot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
        robot.add_damper(f"c{k}", f"theta{k}", coefficient=p.c)
    return robot
