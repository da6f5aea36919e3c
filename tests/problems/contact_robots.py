"""Mechanisms whose contacts slip and lift, with stops and joints that rub."""

from __future__ import annotations

from typing import Any

import numpy as np

import axode as ax

G = 9.81


def block(friction: Any = 0.5, slope: float = 0.0, restitution: float = 0.0) -> ax.Mechanism:
    """A point mass that slides on an inclined plane; x leads down."""
    m = ax.Mechanism("block", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    body = m.add_body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.add_joint("block", ax.Floating(), parent=m.ground, child=body)
    point = ax.Point(friction=friction, restitution=restitution)
    m.add_contact("foot", point, body=body)
    return m


def sphere(friction: Any = 0.3, restitution: float = 0.0) -> ax.Mechanism:
    """A uniform sphere of radius 0.1 m on the ground."""
    m = ax.Mechanism("sphere")
    body = m.add_body("sphere", mass=1.0, inertia=ax.Inertia.sphere(1.0, 0.1))
    m.add_joint("sphere", ax.Floating(), parent=m.ground, child=body)
    m.add_contact("sole", ax.Ball(0.1, friction=friction, restitution=restitution), body=body)
    m.set_home({"sphere.z": 0.1})
    return m


def rover(friction: Any = 0.8, slope: float = 0.0, **laws: Any) -> ax.Mechanism:
    """A rigid rover on four wheels with motors; x leads down."""
    m = ax.Mechanism("rover", gravity=(G * np.sin(slope), 0.0, -G * np.cos(slope)))
    base = m.add_body("base", mass=10.0, inertia=(0.3, 0.4, 0.5), com=(0.0, 0.0, 0.02))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    for name, x, y in (("fl", 0.3, 0.2), ("fr", 0.3, -0.2), ("rl", -0.3, 0.2), ("rr", -0.3, -0.2)):
        wheel = ax.Rolling(0.1, friction=friction, **laws)
        m.add_wheel(name, wheel, on=base, at=(x, y, 0.0), mass=0.5, motor=True)
    m.set_home({"base.z": 0.1})
    return m


def suspended_rover() -> ax.Mechanism:
    """A rover on four struts with springs, dampers and stops at 3 cm."""
    m = ax.Mechanism("suspended")
    base = m.add_body("base", mass=10.0, inertia=(0.3, 0.4, 0.5))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    places = ((0.3, 0.2), (0.3, -0.2), (-0.3, 0.2), (-0.3, -0.2))
    for k, (x, y) in enumerate(places):
        hub = m.add_body(f"hub{k}", mass=0.5, inertia=(0.002,) * 3)
        strut = ax.Prismatic("z")
        m.add_joint(f"strut{k}", strut, parent=base, child=hub, at=(x, y, 0), stops=(-0.03, 0.03))
        m.add_spring(f"spring{k}", f"strut{k}", stiffness=2000.0)
        m.add_damper(f"damper{k}", f"strut{k}", coefficient=60.0)
        m.add_wheel(f"w{k}", ax.Rolling(0.1, friction=0.7), on=hub, mass=0.5)
    m.set_home({"base.z": 0.1})
    return m


def odd_vehicle() -> ax.Mechanism:
    """Every kind of contact row: on a tilted plane and a moving body, beside an ideal wheel."""
    mu = ax.Parameter("mu", 0.7)
    m = ax.Mechanism("odd")
    platform = m.add_body("platform", mass=30.0, inertia=(3, 3, 5))
    m.add_joint("lift", ax.Prismatic("x"), parent=m.ground, child=platform, friction=(3.0, 2.0))
    base = m.add_body("base", mass=5.0, inertia=(0.2, 0.3, 0.4))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=base)
    slope = ax.Plane(normal=(0.0, 0.6, 0.8), point=(0.1, 0.0, 0.05), on=platform)
    laws = {"friction": (mu, 0.5 * mu), "scrub": 0.02, "rolling_resistance": 0.003}
    m.add_wheel("disk", ax.Rolling(0.1, **laws), on=base, at=(0.3, 0.2, 0), mass=0.5, ground=slope)
    m.add_wheel("ball", ax.Ball(0.08, **laws), on=base, at=(0, -0.3, 0), mass=0.4, ground=slope)
    m.add_wheel("omni", ax.Omni(0.1, friction=mu), on=base, at=(-0.3, 0.2, 0), mass=0.5)
    m.add_wheel("mecanum", ax.Mecanum(0.1, friction=0.4), on=base, at=(-0.3, -0.2, 0), mass=0.5)
    m.add_contact("bumper", ax.Point(0.02, friction=0.2), body=base, at=(0.5, 0.0, 0.1))
    m.add_contact("skate", ax.Skate(friction=0.2), body=base, at=(0.0, 0.0, -0.1))
    arm = m.add_body("arm", mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02))
    stops = {"friction": 0.3, "stops": (-1.0, 2.0), "restitution": 0.5}
    m.add_joint("arm", ax.Revolute("y"), parent=base, child=arm, at=(0, 0, 0.2), **stops)
    m.set_home({"base.z": 0.4})
    return m


def pendulum() -> ax.Mechanism:
    """A point mass on a rod of 1 m, with a stop at -0.3 rad."""
    m = ax.Mechanism("pendulum")
    bob = m.add_body("bob", mass=1.0, com=(0.0, 0.0, -1.0), inertia=ax.Inertia.point())
    stops = {"stops": (-0.3, None), "restitution": 0.7}
    m.add_joint("swing", ax.Revolute("y"), parent=m.ground, child=bob, **stops)
    return m


def tripod(friction: Any = 0.5) -> ax.Mechanism:
    """A box of 2 kg on three points, whose friction statics does not decide."""
    m = ax.Mechanism("tripod")
    box = m.add_body("box", mass=2.0, inertia=(0.02, 0.02, 0.03))
    m.add_joint("base", ax.Floating(), parent=m.ground, child=box)
    for k, at in enumerate(((0.1, 0.1, -0.05), (0.1, -0.1, -0.05), (-0.1, 0.0, -0.05))):
        m.add_contact(f"c{k}", ax.Point(friction=friction), body=box, at=at)
    m.add_wrench("p", box)
    m.set_home({"base.z": 0.05})
    return m


def cart(*slides: str) -> ax.Mechanism:
    """A body on prismatic joints with a foot of friction 0.6 on the ground."""
    m = ax.Mechanism("cart")
    parent = m.ground
    for axis in slides:
        body = m.add_body(axis, mass=1.0, inertia=(0.1, 0.1, 0.1))
        m.add_joint(f"to_{axis}", ax.Prismatic(axis), parent=parent, child=body)
        parent = body
    m.add_contact("foot", ax.Point(friction=0.6), body=parent)
    m.add_wrench("p", parent)
    return m
