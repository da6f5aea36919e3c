"""An arm with seven axes."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

# from the axis before up to this one [m], which way it turns, mass of the link [kg]
LINKS = (
    (0.16, "z", 3.5),
    (0.20, "y", 3.5),
    (0.20, "z", 2.8),
    (0.20, "-y", 2.7),
    (0.20, "z", 1.9),
    (0.20, "y", 1.8),
    (0.13, "z", 0.5),
)
DEFAULTS = {
    **{f"d{k}": length for k, (length, _, _) in enumerate(LINKS, start=1)},
    **{f"m{k}": mass for k, (_, _, mass) in enumerate(LINKS, start=1)},
    "R": 0.06,
    "g": 9.81,
}
HOME = {"q2": 0.5, "q4": 1.1, "q6": -0.7}  # bent, away from the stretched singularities


def seven_axis_arm(**values: float) -> ax.Mechanism:
    """Shoulder, elbow and wrist like a human arm's: three axes, one, and three.

    One more axis than a pose needs lets the elbow move while the hand stays: the shape of most
    arms that work beside people. J. M. Hollerbach, "Optimum kinematic design for a seven degree of
    freedom manipulator", 1985. The numbers are of the usual size for a load of some kilograms and
    of no particular product. Straight up at zero; `q1` to `q7` and `tau1` to `tau7` count from the
    base.

    Keyword Args:
        d1, d2, d3, d4, d5, d6, d7: Distances of each axis from the one before, the first from the
            ground [m].
        m1, m2, m3, m4, m5, m6, m7: Masses of the links [kg].
        R: Radius of the links, solid cylinders [m].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("seven_axis_arm", DEFAULTS, values)
    bot = ax.Mechanism("seven_axis_arm", gravity=(0, 0, -p.g))
    holder = bot.ground
    for k, (_, axis, _) in enumerate(LINKS, start=1):
        rise, mass = getattr(p, f"d{k}"), getattr(p, f"m{k}")
        reach = getattr(p, f"d{k + 1}") if k < len(LINKS) else p.R
        tube = ax.Cylinder(p.R, reach, "z", (0, 0, reach / 2))
        link = bot.add_body(f"link{k}", mass=mass, com=(0, 0, reach / 2), shape=tube)
        bot.add_joint(
            f"axis{k}",
            ax.Revolute(axis),
            parent=holder,
            child=link,
            at=(0, 0, rise),
            coordinates=(f"q{k}",),
            speeds=(f"q{k}_dot",),
        )
        bot.add_motor(f"motor{k}", f"axis{k}", input=f"tau{k}")
        holder = link
    bot.set_home(HOME)
    return bot
