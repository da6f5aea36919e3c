"""Carts whose wheel loads have closed forms."""

from __future__ import annotations

import axode as ax

M, MW, R, G = 20.0, 0.5, 0.1, 9.81
SPIN = MW * R**2 / 2


def slider(bot: ax.Mechanism, name: str, x: float, y: float, height: float = 0.0) -> None:
    """A support that slides in any direction: it only carries load."""
    free = ax.Ball(R, longitudinal="free", lateral="free")
    bot.add_contact(name, free, body="chassis", at=(x, y, height))


def cart(
    com=(0.15, 0.03, 0.2), *, base="planar", supports=((0.5, 0.0),), half_track=0.25, name="cart"
) -> ax.Mechanism:
    """Two driven wheels on one axle through the origin, and sliding supports elsewhere.

    The base's frame stands at the height of the axle; `com` is that of the chassis, its height
    above the ground.
    """
    bot = ax.Mechanism(name)
    where = (com[0], com[1], com[2] - R)
    chassis = bot.add_body("chassis", mass=M, com=where, inertia=(0.6, 0.9, 1.1))
    joint = ax.Planar() if base == "planar" else ax.Floating()
    at = (0, 0, R) if base == "planar" else (0, 0, 0)
    bot.add_joint("base", joint, parent=bot.ground, child=chassis, at=at)
    for side, y in (("left", half_track), ("right", -half_track)):
        bot.add_wheel(side, ax.Rolling(R), on=chassis, at=(0, y, 0), mass=MW, motor=True)
    for k, (x, y) in enumerate(supports):
        slider(bot, f"support{k}", x, y)
    if base != "planar":
        bot.set_home({"base.z": R})
    return bot
