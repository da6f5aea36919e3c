"""The planar 3-RRR: three cranks that move and turn a platform in a plane."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"Rb": 0.5, "Rp": 0.15, "l1": 0.3, "l2": 0.28, "m1": 0.5, "m2": 0.4, "mp": 1.0, "g": 0.0}
TURN = 0.3  # of the platform at home [rad]
MIDDLE = (0.04, -0.03)  # of the platform at home [m]
THICK = 0.015  # radius of cranks and links [m]


def planar_3rrr(**values: float) -> ax.Mechanism:
    """Three motors at the corners of a triangle, a crank and a link each, a platform in the middle.

    C. M. Gosselin and J. Angeles, "The optimum kinematic design of a planar three-degree-of-freedom
    parallel manipulator", J. Mechanisms, Transmissions and Automation in Design 110, 1988. For
    given angles of its cranks it has up to six assembly modes. It lies flat unless `g` is given.
    `theta1` to `theta3` are the angles of the cranks from x, `phi1` to `phi3` those of the links
    relative to them.

    Keyword Args:
        Rb: Distance from the middle of the base to the motors [m].
        Rp: Distance from the middle of the platform to its hinges [m].
        l1: Length of each crank [m].
        l2: Length of each link between crank and platform [m].
        m1: Mass of each crank, a uniform rod [kg].
        m2: Mass of each link, a uniform rod [kg].
        mp: Mass of the platform, a uniform disk [kg].
        g: Gravitational acceleration, along -y [m/s^2].
    """
    p = parameters("planar_3rrr", DEFAULTS, values)
    bot = ax.Mechanism("planar_3rrr", gravity=(0, -p.g, 0))
    bot.add_body("platform", mass=p.mp, shape=ax.Cylinder(p.Rp, 2 * THICK))
    for k in (1, 2, 3):
        angle = math.pi / 2 + (k - 1) * 2 * math.pi / 3
        c, s = math.cos(angle), math.sin(angle)
        for name, mass, length in (("crank", p.m1, p.l1), ("link", p.m2, p.l2)):
            bot.add_body(
                f"{name}{k}",
                mass=mass,
                com=(length / 2, 0, 0),
                inertia=ax.Inertia.rod(mass, length),
                shape=ax.Cylinder(THICK, length, "x", (length / 2, 0, 0)),
            )
        bot.add_joint(
            f"shoulder{k}",
            ax.Revolute("z"),
            parent=bot.ground,
            child=f"crank{k}",
            at=(p.Rb * c, p.Rb * s, 0),
            coordinates=(f"theta{k}",),
            speeds=(f"theta{k}_dot",),
        )
        bot.add_joint(
            f"elbow{k}",
            ax.Revolute("z"),
            parent=f"crank{k}",
            child=f"link{k}",
            at=(p.l1, 0, 0),
            coordinates=(f"phi{k}",),
            speeds=(f"phi{k}_dot",),
        )
        bot.add_joint(
            f"hinge{k}",
            ax.Revolute("z"),
            parent=f"link{k}",
            child="platform",
            at=(p.l2, 0, 0),
            child_at=(p.Rp * c, p.Rp * s, 0),
        )
        bot.add_motor(f"motor{k}", f"shoulder{k}", input=f"tau{k}")
        first, second = _leg_angles({**DEFAULTS, **values}, angle)
        bot.set_home({f"theta{k}": first, f"phi{k}": second})
        if k == 1:
            bot.set_home(hinge1=TURN - first - second)
    bot.measure("tool", "position", body="platform")
    bot.measure("heading", "yaw", body="platform")
    return bot


def _leg_angles(values: dict[str, float], angle: float) -> tuple[float, float]:
    """Angles of a crank and its link, elbow to the right."""
    x = MIDDLE[0] + values["Rp"] * math.cos(angle + TURN) - values["Rb"] * math.cos(angle)
    y = MIDDLE[1] + values["Rp"] * math.sin(angle + TURN) - values["Rb"] * math.sin(angle)
    l1, l2, reach = values["l1"], values["l2"], math.hypot(x, y)
    inner = math.acos(max(-1.0, min(1.0, (l1**2 + reach**2 - l2**2) / (2 * l1 * reach))))
    outer = math.acos(max(-1.0, min(1.0, (l1**2 + l2**2 - reach**2) / (2 * l1 * l2))))
    return math.atan2(y, x) + inner, outer - math.pi
