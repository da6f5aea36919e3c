"""Robots and laws whose runs are differentiated."""

from functools import cache

import axode as ax


@cache
def four_bar() -> ax.Model:
    return ax.gallery.build("four_bar").derive().compile()


@cache
def balancer() -> ax.Model:
    bot = ax.Mechanism("balancer")
    mass, radius = ax.Parameter("mass", 8.0), ax.Parameter("radius", 0.1)
    pole = bot.add_body("pole", mass=mass, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius=radius), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot.derive().compile()


@cache
def pendulum() -> ax.Model:
    bot = ax.Mechanism("pendulum")
    axle = bot.add_body("axle", mass=0.0, inertia=ax.Inertia.point())
    bot.add_joint("base", ax.Planar(), parent=bot.ground, child=axle, at=(0, 0, 0.1))
    mass = ax.Parameter("mass", 8.0)
    pole = bot.add_body("pole", mass=mass, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("pitch", ax.Revolute("y"), parent=axle, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot.derive().compile()


def swing(s, kp, kd):
    torque = kp * s["pitch"] + kd * s["pitch.rate"] + 15.0 * (s["base.surge"] - 0.6)
    return {"left.torque": torque, "right.torque": torque}


def balance(s, kp, kd):
    torque = kp * s["pitch"] + kd * s["pitch_rate"] + 15.0 * (s["surge"] - 0.6)
    return {"left.torque": torque, "right.torque": 0.9 * torque}
