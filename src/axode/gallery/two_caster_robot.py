"""The robot with two driven wheels and two casters."""

from __future__ import annotations

import axode as ax
from axode.gallery.caster_robot import DEFAULTS, add_caster, add_driven_platform
from axode.gallery.values import parameters


def two_caster_robot(
    X1: float = 0.25, X2: float = -0.25, c3: float = 0.0, c4: float = 0.0, **values: float
) -> ax.Mechanism:
    """The robot of `caster_robot` with two equal casters, at X1 and X2 beside its middle.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, exercise 12.5. Axes and signs
    are those of `axode.gallery.caster_robot`; the casters' angles are psi1 and psi2, their wheels'
    theta3_1 and theta3_2.

    Args:
        c3: Viscous friction of the casters' wheels, parameters `c31`, `c32` [N m s/rad].
        c4: Viscous friction of the pivots, parameters `c41`, `c42` [N m s/rad].
        X1, X2: Lateral offsets of the pivots; half the track to either side in the source [m].

    Keyword Args:
        a: Distance from the axle back to the platform's mass centre [m].
        b: Distance from the mass centre back to the pivots [m].
        d: Trail of the casters [m].
        l: Track width of the driven wheels [m].
        r: Radius of all wheels [m].
        I, H: Moments of inertia of a driven wheel about and across its axis [kg m^2].
        mw: Mass of a driven wheel [kg].
        mc: Mass of a caster's wheel, a uniform disk [kg].
        mb: Mass of a caster's bracket, whose mass centre is halfway along it [kg].
        Ib: Yaw moment of inertia of a bracket about its mass centre [kg m^2].
        mp: Mass of the platform [kg].
        Ip: Yaw moment of inertia of the platform about its mass centre [kg m^2].
        c1, c2: Viscous friction of the driven wheels [N m s/rad].
        h: Height of the pivots above the ground [m].
    """
    robot = ax.Mechanism("two_caster_robot")
    p = parameters("two_caster_robot", DEFAULTS, values)
    add_driven_platform(robot, p)
    for mark, X in (("1", X1), ("2", X2)):
        add_caster(robot, p, mark, X, c3, c4)
    return robot
