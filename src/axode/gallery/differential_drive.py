"""A differential drive whose mass centre lies off its axle."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"m": 12.0, "I": 0.35, "d": 0.08, "mw": 0.8, "r": 0.08, "b": 0.2}


def differential_drive(**values: float) -> ax.Mechanism:
    """Two driven wheels on one axle, the mass centre ahead of it.

    The robot of most laboratories and of a large literature on control; with the mass centre off
    the axle turning and driving are coupled, as in Y. Yamamoto and X. Yun, "Coordinating locomotion
    and manipulation of a mobile manipulator", IEEE Trans. Automatic Control 39(6), 1994.

    Keyword Args:
        m: Mass of the body [kg].
        I: Moment of inertia of the body about the vertical through its mass centre [kg m^2].
        d: Distance from the axle forward to the mass centre [m].
        mw: Mass of each wheel, a uniform disk [kg].
        r: Wheel radius [m].
        b: Half of the track [m].
    """
    p = parameters("differential_drive", DEFAULTS, values)
    bot = ax.Mechanism("differential_drive")
    body = bot.add_body(
        "body",
        mass=p.m,
        com=(p.d, 0, 0),
        inertia=(p.I, p.I, p.I),
        shape=ax.Cylinder(p.b, p.r, "z", (p.d / 2, 0, p.r / 2)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=body,
        at=(0, 0, p.r),
        coordinates=("x", "y", "theta"),
        speeds=("v", "v_lat", "w"),
    )
    for side, y in (("R", -p.b), ("L", p.b)):
        bot.add_wheel(
            f"wheel_{side}",
            ax.Rolling(radius=p.r),
            on=body,
            at=(0, y, 0),
            mass=p.mw,
            coordinate=f"phi_{side}",
            speed=f"phi_{side}_dot",
            shape=ax.Cylinder(p.r, p.r / 3, "y"),
        )
        bot.add_motor(f"motor_{side}", f"wheel_{side}", input=f"tau_{side}")
    return bot
