"""An arm of five axes made of point masses."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "l1": 0.3,
    "l2": 0.25,
    "l3": 0.15,
    "m1": 1.2,
    "m2": 0.9,
    "m3": 0.5,
    "mc": 0.3,
    "Ib": 0.0064,
    "Ig": 0.0002,
    "b1": 0.0,
    "b2": 0.0,
    "b3": 0.0,
    "b4": 0.0,
    "b5": 0.0,
    "g": 9.81,
}
HOME = {"theta2": -0.6, "theta3": 0.8, "theta4": 0.5}  # bent, where no axis is singular


def five_axis_arm(**values: float) -> ax.Mechanism:
    """A turning base, three links in a vertical plane and a gripper.

    After A. J. Valencia, O. F. Aviles and M. F. Mauledoux, "Dynamics of a mobile manipulator of 8
    degrees of freedom for inspection tasks", 2017, equations (1) to (48). The world's y points up.
    `theta1` turns the base about it, `theta2` to `theta4` pitch the links one against another, and
    `theta5` turns the gripper about the last link; `tau1` to `tau5` are the torques. Masses are
    points: links at their middles, the gripper at the tip. The gripper's turning has no dynamics
    in the source; here its motor turns a rotor, which the other axes do not feel.

    Keyword Args:
        l1, l2, l3: Lengths of the links [m].
        m1, m2, m3: Masses of the links, points at their middles [kg].
        mc: Mass of the gripper, a point at the tip [kg].
        Ib: Moment of inertia of the base about the vertical [kg m^2].
        Ig: Moment of inertia of the gripper's rotor about the gripper's axis [kg m^2].
        b1, b2, b3, b4, b5: Viscous friction of the axes [N m s/rad].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("five_axis_arm", DEFAULTS, values)
    bot = ax.Mechanism("five_axis_arm", gravity=(0, -p.g, 0))
    add_arm(bot, bot.ground, p)
    bot.set_home(HOME)
    return bot


def add_arm(bot: ax.Mechanism, parent: Any, p: SimpleNamespace, at: Any = (0, 0, 0)) -> None:
    """Mount the arm; its base turns about the y axis of the joint's frame.

    Args:
        bot: The mechanism that gets it.
        parent, at: Where it stands [m]; on the ground y is up, on anything else z.
        p: The parameters of `DEFAULTS`.
    """
    turned = (0, 0, 0) if parent is bot.ground else (math.pi / 2, 0, 0)
    thick = p.l1 / 8
    # a body needs all moments; only the one about the vertical ever acts
    base = bot.add_body(
        "base",
        mass=0.0,
        inertia=ax.Inertia(p.Ib / 2, p.Ib, p.Ib / 2, ideal=True),
        shape=ax.Cylinder(2 * thick, thick, "y"),
    )
    bot.add_joint(
        "axis1",
        ax.Revolute("y"),
        parent=parent,
        child=base,
        at=at,
        rotation=turned,
        coordinates=("theta1",),
        speeds=("theta1_dot",),
    )
    holder, end = base, (0.0, 0.0, 0.0)
    for k, (mass, length) in enumerate(((p.m1, p.l1), (p.m2, p.l2), (p.m3, p.l3)), start=2):
        link = bot.add_body(
            f"link{k - 1}",
            mass=mass,
            com=(length / 2, 0, 0),
            inertia=ax.Inertia.point(),
            shape=ax.Box((length, thick, thick), (length / 2, 0, 0)),
        )
        bot.add_joint(
            f"axis{k}",
            ax.Revolute("z"),
            parent=holder,
            child=link,
            at=end,
            coordinates=(f"theta{k}",),
            speeds=(f"theta{k}_dot",),
        )
        holder, end = link, (length, 0.0, 0.0)
    hand = bot.add_body("gripper", mass=p.mc, inertia=ax.Inertia.point(), shape=ax.Sphere(thick))
    bot.add_joint(
        "axis5",
        ax.Revolute("x"),
        parent=holder,
        child=hand,
        at=end,
        coordinates=("theta5",),
        speeds=("theta5_dot",),
    )
    for k, friction in enumerate((p.b1, p.b2, p.b3, p.b4, p.b5), start=1):
        rotor = p.Ig if k == 5 else 0.0
        bot.add_motor(f"motor{k}", f"axis{k}", input=f"tau{k}", rotor_inertia=rotor)
        bot.add_damper(f"friction{k}", f"axis{k}", coefficient=friction)
