"""Mechanisms that the simulations of these tests run."""

from __future__ import annotations

import functools
import math

import numpy as np

import axode as ax
import random_mechanisms

G = 9.81


@functools.cache
def pendulum(**options: float) -> ax.Model:
    """A point on a rod of a metre; `damping`, and a motor with a limit."""
    bot = ax.Mechanism("pendulum", gravity=(0, 0, -G))
    rod = bot.add_body("rod", mass=1.0, com=(0, 0, -1.0), inertia=ax.Inertia.point())
    bot.add_joint("pin", ax.Revolute("y"), parent=bot.ground, child=rod)
    bot.add_motor("pin", "pin", motor=ax.Motor(limit=options.get("limit", 100.0)))
    if "damping" in options:
        bot.add_damper("drag", "pin", coefficient=options["damping"])
    bot.measure("tip", "position", body="rod", at=(0, 0, -1.0))
    return bot.derive().compile()


@functools.cache
def slider(limit: float = 100.0) -> ax.Model:
    """One kilogram on a rail without gravity: closed forms for everything."""
    bot = ax.Mechanism("slider", gravity=(0, 0, 0))
    mass = ax.Parameter("mass", 1.0)
    cart = bot.add_body("cart", mass=mass, inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_motor("rail", "rail", motor=ax.Motor(limit=limit))
    return bot.derive().compile(parameters="free")


@functools.cache
def wheeled_pendulum() -> ax.Model:
    """A balancer on a planar base: two rolling wheels and a body that pitches."""
    bot = ax.Mechanism("wheeled pendulum", gravity=(0, 0, -G))
    frame = bot.add_body("frame", mass=1.0, com=(0, 0, 0.1), inertia=(0.02, 0.02, 0.03))
    body = bot.add_body("body", mass=8.0, com=(0, 0, -0.2), inertia=(0.5, 0.4, 0.1))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=frame)
    bot.add_joint("pitch", ax.Revolute("y"), parent=frame, child=body, at=(0, 0, 0.1))
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(
            side, ax.Rolling(0.1), on=frame, at=(0, y, 0.1), mass=0.5, motor=ax.Motor(limit=4.0)
        )
    return bot.derive().compile()


@functools.cache
def rolling_disk() -> ax.Model:
    """A disk that leans and rolls."""
    bot = ax.Mechanism("disk", gravity=(0, 0, -G))
    disk = bot.add_body("disk", mass=2.0, inertia=ax.Inertia.disk(2.0, 0.3, "y"))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=disk)
    bot.add_contact("rim", ax.Rolling(0.3), body=disk)
    bot.set_home({"base.z": 0.3})
    return bot.derive(independent=["base.wx", "base.wy", "base.wz"]).compile()


@functools.cache
def caster_robot() -> ax.Model:
    """Two driven wheels and a heavy caster, without friction."""
    bot = ax.Mechanism("caster robot")
    body = bot.add_body("body", mass=10.0, com=(0.1, 0, 0.1), inertia=(0.3, 0.4, 0.5))
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=body)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=body, at=(0, y, 0.1), mass=0.5, motor=True)
    bot.add_caster(
        "caster",
        ax.Rolling(0.05),
        on=body,
        at=(0.3, 0, 0.12),
        drop=0.07,
        trail=0.06,
        mass=0.4,
        bracket_mass=0.3,
        bracket_inertia=(0.001, 0.001, 0.001),
    )
    return bot.derive().compile()


@functools.cache
def platform(stiffness: float = 3000.0) -> ax.Model:
    """A 6-UPS platform that its legs' springs carry."""
    bot = random_mechanisms.platform(6)
    for k in range(6):
        # longer than at home by what the load shortens it, so that home is near equilibrium
        bot.add_spring(f"coil{k}", f"p{k}", stiffness=stiffness, rest=0.81)
    return bot.derive().compile()


def four_bar_of(
    crank: float, coupler: float, rocker: float, frame: float, name: str
) -> ax.Mechanism:
    """Crank and rocker on the ground, the coupler between them; gravity along -y."""
    bot = ax.Mechanism(name, gravity=(0, -G, 0))
    for link, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        along = length**2 / 12
        bot.add_body(link, mass=1.0, com=(length / 2, 0, 0), inertia=(1e-5, along, along))
    bot.add_joint("crank", ax.Revolute("z"), parent=bot.ground, child="crank")
    bot.add_joint("coupler", ax.Revolute("z"), parent="crank", child="coupler", at=(crank, 0, 0))
    bot.add_joint("rocker", ax.Revolute("z"), parent=bot.ground, child="rocker", at=(frame, 0, 0))
    bot.add_loop(
        "hinge",
        ax.Revolute("z"),
        parent="coupler",
        child="rocker",
        at=(coupler, 0, 0),
        child_at=(rocker, 0, 0),
    )
    bot.add_motor("crank", "crank")
    return bot


@functools.cache
def four_bar(independent: str = "crank") -> ax.Model:
    """A crank-rocker; either joint on the ground may carry the independent speed."""
    bot = four_bar_of(0.1, 0.35, 0.3, 0.4, "four-bar")
    bot.set_home(four_bar_angles(1.2))
    return bot.derive(independent=[f"{independent}.rate"]).compile()


def four_bar_angles(crank: float) -> dict[str, float]:
    """Angles that close it, the hinge above the ground."""
    a, b, c, frame = 0.1, 0.35, 0.3, 0.4
    A = a * np.array([math.cos(crank), math.sin(crank)])
    diagonal = np.array([frame, 0.0]) - A
    length = float(np.linalg.norm(diagonal))
    along = diagonal / length
    x = (length**2 + b**2 - c**2) / (2 * length)
    B = A + x * along + math.sqrt(b**2 - x**2) * np.array([-along[1], along[0]])
    coupler = math.atan2(*(B - A)[::-1])
    rocker = math.atan2(*(B - np.array([frame, 0.0]))[::-1])
    return {"crank": crank, "coupler": coupler - crank, "rocker": rocker}


@functools.cache
def parallelogram() -> ax.Model:
    """Links equal in pairs: stretched out it may become an anti-parallelogram."""
    bot = four_bar_of(0.2, 0.5, 0.2, 0.5, "parallelogram")
    bot.set_home(crank=1.0, coupler=-1.0, rocker=1.0)
    return bot.derive().compile()


@functools.cache
def slider_crank(independent: str = "slide") -> ax.Model:
    """A crank that turns right round; the slider stands still at two dead points a turn."""
    bot = ax.Mechanism("slider-crank", gravity=(0, 0, 0))
    bot.add_body("crank", mass=1.0, com=(0.05, 0, 0), inertia=(0.001, 0.01, 0.01))
    bot.add_body("rod", mass=0.5, com=(0.15, 0, 0), inertia=(0.001, 0.004, 0.004))
    bot.add_body("slider", mass=0.8, inertia=(0.001, 0.001, 0.001))
    bot.add_joint("turn", ax.Revolute("z"), parent=bot.ground, child="crank")
    bot.add_joint("pin", ax.Revolute("z"), parent="crank", child="rod", at=(0.1, 0, 0))
    bot.add_joint("slide", ax.Prismatic("x"), parent=bot.ground, child="slider")
    bot.add_loop("wrist", ax.Revolute("z"), parent="rod", child="slider", at=(0.3, 0, 0))
    bot.add_motor("turn", "turn")
    bot.set_home(turn=1.0, pin=-1.28, slide=0.34)
    return bot.derive(independent=[f"{independent}.rate"]).compile()
