"""An eccentric cam with a flat-faced follower."""

from __future__ import annotations

import numpy as np

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"e": 0.02, "R": 0.05, "m_c": 1.2, "m_f": 0.5, "k": 800.0, "preload": 0.02, "g": 9.81}


def cam_follower(**values: float) -> ax.Mechanism:
    """A disk that turns about a point beside its centre, and a follower that it lifts.

    Saha and Angeles, *Dynamics of Nonholonomic Mechanical Systems Using a Natural Orthogonal
    Complement*, section 3.1, name cam and follower among the holonomic couplings: the smallest
    mechanism whose constraint is a function of an angle, y = e sin(theta). The follower has a flat
    face, so that this is its law whatever the radius is, and a spring presses it down. The force
    on it, `lift.coupling.force`, is the cam's: where it would be negative, the follower leaves.

    Keyword Args:
        e: From the axle to the centre of the disk [m].
        R: Radius of the disk, which the law does not feel [m].
        m_c: Mass of the disk, which is uniform [kg].
        m_f: Mass of the follower [kg].
        k: Stiffness of the spring [N/m].
        preload: How far the spring is pressed together where theta is zero [m].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("cam_follower", DEFAULTS, values)
    bot = ax.Mechanism("cam_follower", gravity=(0, 0, -p.g))
    across = p.m_c * p.R**2 / 4
    disk = bot.add_body(
        "cam",
        mass=p.m_c,
        com=(p.e, 0, 0),
        inertia=(across, 2 * across, across),
        shape=ax.Cylinder(p.R, p.R / 4, "y", at=(p.e, 0, 0)),
    )
    bot.add_joint(
        "axle",
        ax.Revolute((0, -1, 0)),
        parent=bot.ground,
        child=disk,
        coordinates=("theta",),
        speeds=("theta_dot",),
    )
    stem = ax.Box((p.R / 5, p.R / 5, 3 * p.R), at=(0, 0, 8 * p.R / 5))
    face = ax.Box((3 * p.R, p.R / 4, p.R / 10), at=(0, 0, p.R / 20))
    follower = bot.add_body("follower", mass=p.m_f, inertia=ax.Inertia.point(), shape=[face, stem])
    bot.add_joint(
        "guide",
        ax.Prismatic("z"),
        parent=bot.ground,
        child=follower,
        at=(0, 0, p.R),
        coordinates=("y",),
        speeds=("y_dot",),
    )
    bot.add_cam("lift", "guide", "axle", lambda theta: p.e * np.sin(theta))
    bot.add_spring("coil", "guide", stiffness=p.k, rest=-p.preload)
    bot.add_motor("motor", "axle", input="tau")
    bot.set_home(theta=0.5)
    return bot
