"""A tricycle: a steered and driven wheel in front, two behind."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "m": 40.0,
    "I": 4.0,
    "a": 0.4,
    "L": 1.0,
    "b": 0.35,
    "r": 0.15,
    "mw": 2.0,
    "mf": 1.5,
    "If": 0.03,
}


def tricycle(**values: float) -> ax.Mechanism:
    """A body on two free rear wheels, led by a front wheel in a fork that steers.

    The kinematic model behind most forklifts and car-like robots: G. Campion, G. Bastin and
    B. d'Andrea-Novel, "Structural properties and classification of kinematic and dynamic models of
    wheeled mobile robots", IEEE Trans. Robotics and Automation 12(1), 1996. `delta` steers,
    `tau_drive` turns the front wheel.

    Keyword Args:
        m: Mass of the body [kg].
        I: Moment of inertia of the body about the vertical through its mass centre [kg m^2].
        a: Distance from the rear axle forward to the mass centre [m].
        L: Wheelbase [m].
        b: Half of the track [m].
        r: Radius of all wheels [m].
        mw: Mass of each wheel, a uniform disk [kg].
        mf: Mass of the fork [kg].
        If: Moment of inertia of the fork about its own axis [kg m^2].
    """
    p = parameters("tricycle", DEFAULTS, values)
    bot = ax.Mechanism("tricycle")
    body = bot.add_body(
        "body",
        mass=p.m,
        com=(p.a, 0, 0),
        inertia=(p.I, p.I, p.I),
        shape=ax.Box((p.L, p.b, p.r), (p.L / 2, 0, p.r)),
    )
    fork = bot.add_body(
        "fork",
        mass=p.mf,
        inertia=(p.If, p.If, p.If),
        shape=ax.Box((p.r / 4, p.r / 2, 3 * p.r), (0, 0, p.r)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=body,
        at=(0, 0, p.r),
        coordinates=("x", "y", "theta"),
        speeds=("v", "v_lat", "theta_dot"),
    )
    bot.add_joint(
        "steer",
        ax.Revolute("z"),
        parent=body,
        child=fork,
        at=(p.L, 0, 0),
        coordinates=("delta",),
        speeds=("delta_dot",),
    )
    disk = ax.Cylinder(p.r, p.r / 4, "y")
    bot.add_wheel(
        "front",
        ax.Rolling(radius=p.r),
        on=fork,
        mass=p.mw,
        coordinate="phi_F",
        speed="phi_F_dot",
        shape=disk,
    )
    for side, y in (("R", -p.b), ("L", p.b)):
        bot.add_wheel(
            f"rear_{side}",
            ax.Rolling(radius=p.r),
            on=body,
            at=(0, y, 0),
            mass=p.mw,
            coordinate=f"phi_{side}",
            speed=f"phi_{side}_dot",
            shape=disk,
        )
    bot.add_motor("steer", "steer", input="tau_steer")
    bot.add_motor("drive", "front", input="tau_drive")
    return bot
