"""Chaplygin's sleigh: a body on a knife edge."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"m": 3.0, "J": 0.2, "a": 0.35}


def chaplygin_sleigh(**values: float) -> ax.Mechanism:
    """A body that slides along a knife edge and never across it.

    Known for losing no energy and yet settling: whatever its start, it ends up sliding straight,
    mass centre ahead. J. I. Neimark and N. A. Fufaev, *Dynamics of Nonholonomic Systems*, 1972;
    A. M. Bloch, *Nonholonomic Mechanics and Control*, section 1.7.

    Keyword Args:
        m: Mass [kg].
        J: Moment of inertia about the vertical through the mass centre [kg m^2].
        a: Distance from the edge forward to the mass centre [m].
    """
    p = parameters("chaplygin_sleigh", DEFAULTS, values)
    bot = ax.Mechanism("chaplygin_sleigh")
    body = bot.add_body(
        "body",
        mass=p.m,
        com=(p.a, 0, 0),
        inertia=(p.J, p.J, p.J),
        shape=ax.Box((3 * p.a, p.a, p.a / 4), (p.a, 0, p.a / 4)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=body,
        coordinates=("x", "y", "theta"),
        speeds=("v", "v_lat", "omega"),
    )
    bot.add_contact("edge", ax.Skate(), body=body)
    return bot
