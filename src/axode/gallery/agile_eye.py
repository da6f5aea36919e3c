"""The agile eye: three motors that turn a camera about a fixed point."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"m1": 0.15, "m2": 0.12, "mp": 0.3, "r": 0.12, "g": 9.81}
ROWS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
INNER = 0.75  # radius of the links at the camera, against that of the others
THICK = 0.006  # of the links in pictures [m]


def agile_eye(**values: float) -> ax.Mechanism:
    """Three legs of two curved links, all axes through one point, at right angles to each other.

    C. M. Gosselin and J.-F. Hamel, "The agile eye: a high-performance three-degree-of-freedom
    camera-orienting device", IEEE Int. Conf. Robotics and Automation, 1994. Every link spans a
    right angle, the motors are along x, y and z. The spherical 3-RRR has up to eight assembly
    modes. `theta1` to `theta3` are the angles of the motors, `phi1` to `phi3` those of the second
    axes.

    Keyword Args:
        m1: Mass of each link on a motor, at its middle [kg].
        m2: Mass of each link at the camera, at its middle [kg].
        mp: Mass of the camera with its frame, a uniform box [kg].
        r: Radius of the links on the motors [m].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("agile_eye", DEFAULTS, values)
    bot = ax.Mechanism("agile_eye", gravity=(0, 0, -p.g))
    bot.add_body("camera", mass=p.mp, shape=ax.Box((0.5 * p.r, 0.3 * p.r, 0.3 * p.r)))
    # axes are written in a frame with the motor along z; the others follow by exchange of x, y, z
    for k in (1, 2, 3):
        turn = tuple(ROWS[(row - k + 1) % 3] for row in range(3))
        # pictures show links as straight rods, from one axis to the other
        for name, mass, radius, start, end in (
            ("arm", p.m1, p.r, (0, 0, 1), (1, 0, 0)),
            ("link", p.m2, INNER * p.r, (1, 0, 0), (0, 1, 0)),
        ):
            middle = tuple(radius * (a + b) / 2 for a, b in zip(start, end, strict=True))
            along = tuple((b - a) * math.sqrt(0.5) for a, b in zip(start, end, strict=True))
            bot.add_body(
                f"{name}{k}",
                mass=mass,
                com=middle,
                inertia=ax.Inertia.sphere(mass, 0.3 * p.r),
                shape=ax.Cylinder(THICK, math.sqrt(2) * radius, along, middle),
            )
        bot.add_joint(
            f"motor{k}",
            ax.Revolute("z"),
            parent=bot.ground,
            child=f"arm{k}",
            rotation=turn,
            coordinates=(f"theta{k}",),
            speeds=(f"theta{k}_dot",),
        )
        bot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
        bot.add_joint(
            f"knee{k}",
            ax.Revolute("x"),
            parent=f"arm{k}",
            child=f"link{k}",
            coordinates=(f"phi{k}",),
            speeds=(f"phi{k}_dot",),
        )
        bot.add_joint(
            f"hinge{k}", ax.Revolute("y"), parent=f"link{k}", child="camera", child_rotation=turn
        )
    for kind in ("roll", "pitch", "yaw"):
        bot.measure(kind, kind, body="camera")
    return bot
