"""The robot with two driven wheels and a caster."""

from __future__ import annotations

import math
from types import SimpleNamespace

import axode as ax
from axode.gallery.values import parameters
from axode.mechanism.values.expressions import Scalar

DEFAULTS = {
    "a": 0.12,
    "b": 0.18,
    "d": 0.06,
    "l": 0.5,
    "r": 0.1,
    "I": 0.006,
    "H": 0.0032,
    "mw": 1.2,
    "mc": 0.6,
    "mb": 0.4,
    "Ib": 0.0008,
    "mp": 15.0,
    "Ip": 0.55,
    "c1": 0.0,
    "c2": 0.0,
    "h": 0.24,
}


def caster_robot(
    X1: float = 0.0, c3: float = 0.0, c4: float = 0.0, **values: float
) -> ax.Mechanism:
    """Two driven wheels on one axle and a caster behind it.

    Angeles, *Fundamentals of Robotic Mechanical Systems*, section 12.5.1. Platform axes: x along
    the axle towards wheel 1, y forward, z up, origin at the axle's midpoint. A driven wheel turns
    about -x, so that positive rates roll forward. The caster's angle psi is measured from where its
    wheel's axis points forward; a caster that trails a robot driving forward has psi = pi/2.

    Args:
        c3, c4: Viscous friction of the caster's wheel and of its pivot [N m s/rad].
        X1: Lateral offset of the pivot [m].

    Keyword Args:
        a: Distance from the axle back to the platform's mass centre [m].
        b: Distance from the mass centre back to the caster's pivot [m].
        d: Trail of the caster [m].
        l: Track width of the driven wheels [m].
        r: Radius of all wheels [m].
        I, H: Moments of inertia of a driven wheel about and across its axis [kg m^2].
        mw: Mass of a driven wheel [kg].
        mc: Mass of the caster's wheel, a uniform disk [kg].
        mb: Mass of the caster's bracket, whose mass centre is halfway along it [kg].
        Ib: Yaw moment of inertia of the bracket about its mass centre [kg m^2].
        mp: Mass of the platform [kg].
        Ip: Yaw moment of inertia of the platform about its mass centre [kg m^2].
        c1, c2: Viscous friction of the driven wheels [N m s/rad].
        h: Height of the pivot above the ground [m].
    """
    robot = ax.Mechanism("caster_robot")
    p = parameters("caster_robot", DEFAULTS, values)
    add_driven_platform(robot, p)
    add_caster(robot, p, "", X1, c3, c4)
    return robot


def add_driven_platform(robot: ax.Mechanism, p: SimpleNamespace) -> None:
    """The platform on its two driven wheels."""
    length = p.a + p.b
    height = p.h - p.r
    platform = robot.add_body(
        "platform",
        mass=p.mp,
        com=(0, -p.a, 0),
        inertia=ax.Inertia(p.Ip / 2.0, p.Ip / 2.0, p.Ip),
        shape=ax.Box((p.l * 1.1, length * 1.5, p.r * 0.4), at=(0, -length / 2.0, height)),
    )
    robot.add_joint(
        "base",
        ax.Planar(),
        parent=robot.ground,
        child=platform,
        at=(0, 0, p.r),
        coordinates=("x", "y", "phi"),
        speeds=("v_i", "v_j", "omega"),
    )
    for k, side in ((1, p.l / 2.0), (2, -p.l / 2.0)):
        robot.add_wheel(
            f"wheel{k}",
            ax.Rolling(radius=p.r),
            on=platform,
            at=(side, 0, 0),
            axis="-x",
            mass=p.mw,
            inertia=ax.Inertia.axial(p.I, p.H, "x"),
            coordinate=f"theta{k}",
            speed=f"theta{k}_dot",
            shape=ax.Cylinder(p.r, p.r * 0.3, "x"),
        )
        robot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
        robot.add_damper(f"c{k}", f"theta{k}", coefficient=getattr(p, f"c{k}"))
    robot.measure("C", "position", body=platform, at=(0, -p.a, 0))


def add_caster(
    robot: ax.Mechanism, p: SimpleNamespace, mark: str, X: float, c3: float, c4: float
) -> None:
    """A caster whose pivot stands X beside the robot's middle; `mark` ends its names."""
    drop = p.h - p.r
    d, r = p.d, p.r
    offset: Scalar = ax.Parameter(f"X{mark or 1}", X)
    bracket = robot.add_body(
        f"bracket{mark}",
        mass=p.mb,
        com=(-d / 2.0, 0, -drop / 2.0),
        inertia=ax.Inertia(p.Ib / 2.0, p.Ib / 2.0, p.Ib),
        shape=ax.Box((r * 0.3, r * 0.12, drop + r * 0.3), at=(-d, r * 0.24, -drop / 2.0)),
    )
    robot.add_joint(
        f"pivot{mark}",
        ax.Revolute("z"),
        parent="platform",
        child=bracket,
        at=(offset, -p.a - p.b, drop),
        coordinates=(f"psi{mark}",),
        speeds=(f"psi{mark}_dot",),
    )
    spin = f"theta3{'_' * bool(mark)}{mark}"
    robot.add_wheel(
        f"caster{mark}",
        ax.Rolling(radius=r),
        on=bracket,
        at=(-d, 0, -drop),
        axis="y",
        mass=p.mc,
        inertia=ax.Inertia.disk(p.mc, r, "y"),
        coordinate=spin,
        speed=f"{spin}_dot",
        shape=ax.Cylinder(r, r * 0.3, "y"),
    )
    robot.add_damper(f"c3{mark}", spin, coefficient=ax.Parameter(f"c3{mark}", c3))
    robot.add_damper(f"c4{mark}", f"psi{mark}", coefficient=ax.Parameter(f"c4{mark}", c4))
    robot.set_home({f"psi{mark}": math.pi / 2})
