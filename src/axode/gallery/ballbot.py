"""The ballbot: a body that balances on a ball."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "M": 14.0,
    "h": 0.45,
    "Jx": 1.2,
    "Jy": 1.2,
    "Jz": 0.15,
    "mb": 2.5,
    "Jb": 0.02,
    "r": 0.12,
    "g": 9.81,
}


def ballbot(**values: float) -> ax.Mechanism:
    """A tall body on a single ball that it drives in every direction.

    T. B. Lauwers, G. A. Kantor and R. L. Hollis, "A dynamically stable single-wheeled mobile robot
    with inverse mouse-ball drive", ICRA 2006. The drive turns the body against the ball about the
    three axes of the body: `tau_x`, `tau_y` to balance and travel, `tau_z` to turn.

    Keyword Args:
        M: Mass of the body [kg].
        h: Height of the body's mass centre above the ball's centre [m].
        Jx, Jy, Jz: Moments of inertia of the body at its mass centre [kg m^2].
        mb: Mass of the ball [kg].
        Jb: Moment of inertia of the ball about any axis [kg m^2].
        r: Radius of the ball [m].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("ballbot", DEFAULTS, values)
    bot = ax.Mechanism("ballbot", gravity=(0, 0, -p.g))
    ball = bot.add_body("ball", mass=p.mb, inertia=(p.Jb, p.Jb, p.Jb), shape=ax.Sphere(p.r))
    body = bot.add_body(
        "body",
        mass=p.M,
        com=(0, 0, p.h),
        inertia=(p.Jx, p.Jy, p.Jz),
        shape=ax.Cylinder(p.r, 1.6 * p.h, "z", (0, 0, p.h)),
    )
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child=ball)
    bot.add_contact("floor", ax.Ball(radius=p.r), body=ball)
    bot.add_joint("drive", ax.Spherical(), parent=ball, child=body)
    for axis in "xyz":
        bot.add_motor(f"drive_{axis}", f"drive.w{axis}", input=f"tau_{axis}")
    for kind in ("roll", "pitch"):
        bot.measure(f"body.{kind}", kind, body=body)
    bot.set_home({"base.z": p.r.default})
    return bot
