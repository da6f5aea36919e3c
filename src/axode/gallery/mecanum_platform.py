"""A platform on Mecanum wheels: any number, anywhere, any roller angles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import axode as ax
from axode.errors import InvalidArgument
from axode.gallery.values import parameters

CAR = (
    (0.2, 0.15, math.pi / 2, math.pi / 4),
    (0.2, -0.15, math.pi / 2, -math.pi / 4),
    (-0.2, 0.15, math.pi / 2, -math.pi / 4),
    (-0.2, -0.15, math.pi / 2, math.pi / 4),
)


DEFAULTS = {"a": 0.05, "mw": 0.4, "mp": 6.0, "I": 0.0005, "J": 0.0003, "H": 0.12, "c": 0.01}


def mecanum_platform(wheels: Sequence[Sequence[float]] = CAR, **values: float) -> ax.Mechanism:
    """A platform with its mass centre at the origin, carried by wheels with massless rollers.

    In the manner of Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.2, which
    has three wheels with rollers across their axes; any wheels here. Wheel k turns about its axis
    e_k by theta_k; its rollers at the ground lie along g_k = cos(alpha_k) e_k + sin(alpha_k) z x
    e_k. Speeds of the platform are vx, vy in its own axes and omega.

    Args:
        wheels: Position x, y of each wheel on the platform, direction of its axis e_k and roller
            angle alpha_k from e_k; at least three in general position [m, m, rad, rad].

    Keyword Args:
        a: Wheel radius [m].
        mw: Mass of a wheel [kg].
        mp: Mass of the platform [kg].
        I, J: Moments of inertia of a wheel about and across its axis [kg m^2].
        H: Yaw moment of inertia of the platform [kg m^2].
        c: Viscous friction of each wheel [N m s/rad].
    """
    for number, wheel in enumerate(wheels, start=1):
        if len(wheel) != 4:
            raise InvalidArgument(
                f"wheels: expected x, y, axis and roller angle of wheel "
                f"{number}, got {len(wheel)} numbers"
            )
    p = parameters("mecanum_platform", DEFAULTS, values)
    robot = ax.Mechanism("mecanum_platform")
    reach = [
        max((abs(wheel[k]) for wheel in wheels), default=0.0) + 0.2 * p.a.default for k in (0, 1)
    ]
    platform = robot.add_body(
        "platform",
        mass=p.mp,
        inertia=(p.H / 2.0, p.H / 2.0, p.H),
        shape=ax.Box((1.6 * reach[0], 1.6 * reach[1], p.a * 0.8), at=(0, 0, p.a * 0.6)),
    )
    robot.add_joint(
        "base",
        ax.Planar(),
        parent=robot.ground,
        child=platform,
        at=(0, 0, p.a),
        coordinates=("x", "y", "sigma"),
        speeds=("vx", "vy", "omega"),
    )
    for k, (x, y, axis, roller) in enumerate(wheels, start=1):
        e = (math.cos(axis), math.sin(axis), 0.0)
        robot.add_wheel(
            f"wheel{k}",
            ax.Mecanum(radius=p.a, roller_angle=roller),
            on=platform,
            at=(x, y, 0),
            axis=e,
            mass=p.mw,
            inertia=ax.Inertia.axial(p.I, p.J, e),
            coordinate=f"theta{k}",
            speed=f"theta{k}_dot",
            shape=ax.Cylinder(p.a, 0.8 * p.a, e),
        )
        robot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
        robot.add_damper(f"c{k}", f"theta{k}", coefficient=p.c)
    return robot
