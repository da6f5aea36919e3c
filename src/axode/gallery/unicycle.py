"""The unicycle: one upright wheel that is driven and steered."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"m": 2.0, "J": 0.05, "mw": 1.0, "r": 0.2}


def unicycle(**values: float) -> ax.Mechanism:
    """A wheel kept upright, with a torque about its axle and one about the vertical.

    The simplest vehicle that cannot move sideways and yet gets anywhere: most planners and
    controllers of mobile robots are first tried on its speeds `v` and `w`. Bloch, *Nonholonomic
    Mechanics and Control*, section 1.4, has it as the vertical rolling disk.

    Keyword Args:
        m: Mass of the fork [kg].
        J: Moment of inertia of the fork about the vertical [kg m^2].
        mw: Mass of the wheel, a uniform disk [kg].
        r: Wheel radius [m].
    """
    p = parameters("unicycle", DEFAULTS, values)
    bot = ax.Mechanism("unicycle")
    fork = bot.add_body(
        "fork",
        mass=p.m,
        inertia=(p.J, p.J, p.J),
        shape=ax.Box((p.r / 5, p.r / 2, 3 * p.r), (0, 0, p.r)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=fork,
        at=(0, 0, p.r),
        coordinates=("x", "y", "theta"),
        speeds=("v", "v_lat", "w"),
    )
    bot.add_wheel(
        "wheel",
        ax.Rolling(radius=p.r),
        on=fork,
        mass=p.mw,
        coordinate="phi",
        speed="phi_dot",
        shape=ax.Cylinder(p.r, p.r / 5, "y"),
    )
    bot.add_motor("drive", "wheel", input="tau_drive")
    bot.add_motor("steer", "w", input="tau_steer")
    return bot
