"""Mechanisms that the tests of linear models know, evaluated without compiling."""

from __future__ import annotations

import functools

import axode as ax
from tests.problems import machines
from tests.problems.machines import G


@functools.cache
def built(name: str, **options) -> ax.Model:
    return ax.gallery.build(name, **options).derive().compile("interpreter")


@functools.cache
def balancer() -> ax.Model:
    bot = ax.Mechanism("balancer")
    pole = bot.add_body("pole", mass=8.0, com=(0, 0, 0.4), inertia=(0.5, 0.4, 0.15))
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=pole)
    for side, y in (("left", 0.2), ("right", -0.2)):
        bot.add_wheel(side, ax.Rolling(radius=0.1), on=pole, at=(0, y, 0), mass=0.5, motor=True)
    return bot.derive().compile("interpreter")


@functools.cache
def pendulum() -> ax.Model:
    """One kilogram on a rod of a metre, with damping and a motor."""
    return interpreted(machines.pendulum(damping=0.2))


def interpreted(model):
    return model.equations.compile("interpreter")


@functools.cache
def cart_pole() -> ax.Model:
    """A mass of 0.3 kg on a rod of 0.5 m, upright on a cart of 1 kg."""
    bot = ax.Mechanism("cart-pole", gravity=(0, 0, -G))
    cart = bot.add_body("cart", mass=1.0, inertia=ax.Inertia.point())
    pole = bot.add_body("pole", mass=0.3, com=(0, 0, 0.5), inertia=ax.Inertia.point())
    bot.add_joint("rail", ax.Prismatic("x"), parent=bot.ground, child=cart)
    bot.add_joint("lean", ax.Revolute("y"), parent=cart, child=pole)
    bot.add_motor("push", "rail", input="push")
    return bot.derive().compile("interpreter")


@functools.cache
def gimbal() -> ax.Model:
    """A top on a ball joint, driven by a moment."""
    bot = ax.Mechanism("top", gravity=(0, 0, -G))
    bot.add_body("top", mass=0.5, com=(0, 0, 0.1), inertia=(0.002, 0.003, 0.001))
    bot.add_joint("ball", ax.Spherical(), parent=bot.ground, child="top")
    bot.add_wrench("hand", "top")
    return bot.derive().compile("interpreter")
