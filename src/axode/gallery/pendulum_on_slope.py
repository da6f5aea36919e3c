"""A wheeled inverted pendulum on a slope."""

from __future__ import annotations

import numpy as np

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "slope": 0.15,
    "M": 8.0,
    "h": 0.4,
    "Jx": 0.5,
    "Jy": 0.4,
    "Jz": 0.15,
    "m": 0.5,
    "r": 0.1,
    "l": 0.4,
    "g": 9.81,
}


def pendulum_on_slope(**values: float) -> ax.Mechanism:
    """A balancing robot on two wheels, on ground that rises.

    To stand on a slope it has to lean into it. D. S. Nasrallah, J. Angeles and H. Michalska,
    "Position and orientation control of a mobile wheeled pendulum moving on an inclined plane",
    IEEE Int. Conf. Mechatronics, 2006. The body floats; the wheels alone tie it to the tilted
    plane.

    Keyword Args:
        slope: Rise of the ground towards +x [rad].
        M: Mass of the body [kg].
        h: Height of the body's mass centre above the axle [m].
        Jx, Jy, Jz: Moments of inertia of the body at its mass centre [kg m^2].
        m: Mass of each wheel, a uniform disk [kg].
        r: Wheel radius [m].
        l: Track [m].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("pendulum_on_slope", DEFAULTS, values)
    bot = ax.Mechanism("pendulum_on_slope", gravity=(0, 0, -p.g))
    body = bot.add_body(
        "body",
        mass=p.M,
        com=(0, 0, p.h),
        inertia=(p.Jx, p.Jy, p.Jz),
        shape=ax.Box((p.r, 0.7 * p.l, 2 * p.h), (0, 0, p.h)),
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=body)
    ground = ax.Plane(normal=(-np.sin(p.slope), 0, np.cos(p.slope)))
    for side, y in (("L", p.l / 2), ("R", -p.l / 2)):
        bot.add_wheel(
            f"wheel_{side}",
            ax.Rolling(radius=p.r),
            on=body,
            at=(0, y, 0),
            mass=p.m,
            ground=ground,
            coordinate=f"phi_{side}",
            speed=f"phi_{side}_dot",
            shape=ax.Cylinder(p.r, p.r / 3, "y"),
        )
        bot.add_motor(f"motor_{side}", f"wheel_{side}", input=f"tau_{side}")
    bot.set_home({"base.z": p.r.default / float(np.cos(p.slope.default))})
    return bot
