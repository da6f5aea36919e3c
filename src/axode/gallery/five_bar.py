"""The five-bar: two cranks that move one point in a plane."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"l1": 0.2, "l2": 0.3, "c": 0.12, "m1": 0.6, "m2": 0.4, "mt": 0.2, "g": 0.0}
HOME = 2.0  # angle of the left crank [rad]; the right one is its mirror image


def five_bar(**values: float) -> ax.Mechanism:
    """Two motors on the ground, four links, and a tip with two freedoms.

    The planar parallel robot of pick-and-place machines and leg mechanisms: J.-P. Merlet,
    *Parallel Robots*, 2006. It lies flat unless `g` is given. `theta1` and `theta2` are the
    cranks' angles from x, `phi1` and `phi2` those of the links relative to them.

    Keyword Args:
        l1: Length of each crank [m].
        l2: Length of each link between crank and tip [m].
        c: Half of the distance between the motors [m].
        m1: Mass of each crank, a uniform rod [kg].
        m2: Mass of each link, a uniform rod [kg].
        mt: Mass of the tool, a point at the tip [kg].
        g: Gravitational acceleration, along -y [m/s^2].
    """
    p = parameters("five_bar", DEFAULTS, values)
    bot = ax.Mechanism("five_bar", gravity=(0, -p.g, 0))
    rod, thick = ax.Inertia.rod, 0.015
    for k, x in ((1, -p.c), (2, p.c)):
        crank = bot.add_body(
            f"crank{k}",
            mass=p.m1,
            com=(p.l1 / 2, 0, 0),
            inertia=rod(p.m1, p.l1),
            shape=ax.Cylinder(thick, p.l1, "x", (p.l1 / 2, 0, 0)),
        )
        link = bot.add_body(
            f"link{k}",
            mass=p.m2,
            com=(p.l2 / 2, 0, 0),
            inertia=rod(p.m2, p.l2),
            shape=ax.Cylinder(thick, p.l2, "x", (p.l2 / 2, 0, 0)),
        )
        bot.add_joint(
            f"shoulder{k}",
            ax.Revolute("z"),
            parent=bot.ground,
            child=crank,
            at=(x, 0, 0),
            coordinates=(f"theta{k}",),
            speeds=(f"theta{k}_dot",),
        )
        bot.add_joint(
            f"elbow{k}",
            ax.Revolute("z"),
            parent=crank,
            child=link,
            at=(p.l1, 0, 0),
            coordinates=(f"phi{k}",),
            speeds=(f"phi{k}_dot",),
        )
        bot.add_motor(f"motor{k}", f"shoulder{k}", input=f"tau{k}")
    tool = bot.add_body("tool", mass=p.mt, inertia=ax.Inertia.point(), shape=ax.Sphere(2 * thick))
    bot.add_joint("tool", ax.Fixed(), parent="link1", child=tool, at=(p.l2, 0, 0))
    bot.add_loop(
        "tip",
        ax.Revolute("z"),
        parent="link1",
        child="link2",
        at=(p.l2, 0, 0),
        child_at=(p.l2, 0, 0),
    )
    bot.measure("tip", "position", body=tool)
    half = p.c.default - p.l1.default * math.cos(HOME)  # from the elbows to the middle
    lean = math.acos(max(-1.0, min(1.0, half / p.l2.default)))
    bot.set_home(theta1=HOME, phi1=lean - HOME, theta2=math.pi - HOME, phi2=HOME - lean)
    return bot
