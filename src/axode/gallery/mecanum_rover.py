"""A rover on four Mecanum wheels."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"m": 20.0, "I": 0.9, "mw": 1.2, "r": 0.1, "a": 0.25, "b": 0.2}


def mecanum_rover(**values: float) -> ax.Mechanism:
    """A body that drives forward, sideways and round with four wheels along it.

    The rollers of each wheel stand at 45 degrees, seen from above along the diagonals of the body
    (B. E. Ilon's wheel; P. F. Muir and C. P. Neuman, "Kinematic modeling for feedback control of an
    omnidirectional wheeled mobile robot", ICRA 1987). Four motors drive three freedoms, so that one
    combination of torques only strains the wheels against each other. Numbered front left, front
    right, rear left, rear right.

    Keyword Args:
        m: Mass of the body [kg].
        I: Moment of inertia of the body about the vertical [kg m^2].
        mw: Mass of each wheel, a uniform disk [kg].
        r: Wheel radius [m].
        a: Half of the wheelbase [m].
        b: Half of the track [m].
    """
    p = parameters("mecanum_rover", DEFAULTS, values)
    bot = ax.Mechanism("mecanum_rover")
    body = bot.add_body(
        "body",
        mass=p.m,
        inertia=(p.I, p.I, p.I),
        shape=ax.Box((2.4 * p.a, 1.4 * p.b, p.r), (0, 0, p.r / 2)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=body,
        at=(0, 0, p.r),
        coordinates=("x", "y", "theta"),
        speeds=("vx", "vy", "w"),
    )
    places = ((p.a, p.b, 1), (p.a, -p.b, -1), (-p.a, p.b, -1), (-p.a, -p.b, 1))
    for k, (x, y, way) in enumerate(places, start=1):
        bot.add_wheel(
            f"wheel{k}",
            ax.Mecanum(radius=p.r, roller_angle=way * math.pi / 4),
            on=body,
            at=(x, y, 0),
            mass=p.mw,
            coordinate=f"phi{k}",
            speed=f"phi{k}_dot",
            shape=ax.Cylinder(p.r, p.r / 2, "y"),
        )
        bot.add_motor(f"motor{k}", f"wheel{k}", input=f"tau{k}")
    return bot
