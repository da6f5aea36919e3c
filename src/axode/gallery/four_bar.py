"""The planar four-bar linkage."""

from __future__ import annotations

import math
from types import SimpleNamespace

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"a1": 0.4, "a2": 0.1, "a3": 0.35, "a4": 0.3, "m2": 0.5, "m3": 1.0, "m4": 0.8, "g": 9.81}


def four_bar(theta1: float = 0.7, **values: float) -> ax.Mechanism:
    """Crank, coupler and rocker as a chain of three bars, closed by a hinge on the ground.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.3: the method for holonomic
    loops, on its smallest example. The linkage lies in the plane of x and y, with y up; the crank
    turns about the origin, the rocker about (a1, 0). theta1, theta2, theta3 are the angles of each
    bar from the one before, and the coupler's end lies to the left of the ray from the crank's end
    to the rocker's hinge. The motor tau turns the crank.

    Args:
        theta1: Angle of the crank at home [rad].

    Keyword Args:
        a1, a2, a3, a4: Lengths of ground, crank, coupler and rocker [m].
        m2, m3, m4: Masses of crank, coupler and rocker, uniform rods [kg].
        g: Gravitational acceleration, along -y [m/s^2].
    """
    p = parameters("four_bar", DEFAULTS, values)
    linkage = ax.Mechanism("four_bar", gravity=(0, -p.g, 0))
    parent, at = linkage.ground, (0.0, 0.0, 0.0)
    for k, name in ((1, "crank"), (2, "coupler"), (3, "rocker")):
        mass, length = getattr(p, f"m{k + 1}"), getattr(p, f"a{k + 1}")
        bar = linkage.add_body(
            name,
            mass=mass,
            com=(length / 2.0, 0, 0),
            inertia=ax.Inertia.rod(mass, length),
            shape=ax.Box((length, 0.02, 0.01), at=(length / 2.0, 0, 0.012 * (k - 2))),
        )
        linkage.add_joint(
            f"hinge{k}",
            ax.Revolute("z"),
            parent=parent,
            child=bar,
            at=at,
            coordinates=(f"theta{k}",),
            speeds=(f"theta{k}_dot",),
        )
        parent, at = bar, (length, 0.0, 0.0)  # type: ignore[assignment]
    linkage.add_loop(
        "hinge4",
        ax.Revolute("z"),
        parent=linkage.ground,
        child=parent,
        at=(p.a1, 0, 0),
        child_at=(p.a4, 0, 0),
    )
    linkage.add_motor("motor", "theta1", input="tau")
    linkage.set_home(dict(zip(("theta1", "theta2", "theta3"), closed(p, theta1), strict=True)))
    return linkage


def closed(p: SimpleNamespace, theta1: float) -> tuple[float, ...]:
    """Angles at home for a crank angle: where two circles meet, or are closest."""
    a1, a2, a3, a4 = (length.default for length in (p.a1, p.a2, p.a3, p.a4))
    x, y = a2 * math.cos(theta1), a2 * math.sin(theta1)
    far = math.hypot(a1 - x, y)
    direction = math.atan2(-y, a1 - x)
    along = (far**2 + a3**2 - a4**2) / (2 * far)
    coupler = direction + math.acos(min(1.0, max(-1.0, along / a3)))
    end = (x + a3 * math.cos(coupler), y + a3 * math.sin(coupler))
    rocker = math.atan2(-end[1], a1 - end[0])
    return theta1, coupler - theta1, rocker - coupler
