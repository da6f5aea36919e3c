"""The wheeled pendulum Quasimoro: a body that hangs from the axle of two wheels."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import Difference, parameters

DEFAULTS = {
    "m": 0.5,
    "M": 5.0,
    "J1": 0.2,
    "J2": 0.4,
    "J3": 0.4,
    "r": 0.3,
    "d": 0.2,
    "rho": 0.5,
    "g": 9.81,
}


def wheeled_pendulum(**values: float) -> ax.Mechanism:
    """Two wheels with a motor each and a body below their axle: three speeds, two torques.

    After St. Staicu, "Dynamics of the mobile wheeled pendulum", Rev. Roum. Sci. Techn. - Méc.
    Appl. 56(2), 2011, sections 2 to 5. Platform axes: x forward, y along the axle towards wheel 1,
    z up. The wheels turn about +y by `theta1` and `theta2`, seen from the platform; the body swings
    about -y by `theta3`, so that each torque `M1`, `M2` acts with its sign on a wheel and on the
    body alike. The joints between body and wheels carry `phi1` = `theta1` + `theta3` and `phi2`;
    the source's angles are measures of the same names.

    Keyword Args:
        m: Mass of each wheel, a uniform disk [kg].
        M: Mass of the body [kg].
        J1: Moment of inertia of the body about the line from the middle of the axle to its mass
            centre [kg m^2].
        J2: Moment of inertia of the body at the middle of the axle, about the forward
            direction [kg m^2].
        J3: The same about the axle; equal to `J2` unless given [kg m^2].
        r: Wheel radius [m].
        d: Distance from the axle down to the body's mass centre [m].
        rho: Ratio of wheel radius to track [1].
        g: Gravitational acceleration [m/s^2].
    """
    if "J2" in values:
        values = {"J3": values["J2"], **values}
    p = parameters("wheeled_pendulum", DEFAULTS, values)
    track = p.r / p.rho
    bot = ax.Mechanism("wheeled_pendulum", gravity=(0, 0, -p.g))
    axle = bot.add_body(
        "axle", mass=0.0, inertia=ax.Inertia.point(), shape=ax.Cylinder(p.r / 20, track, "y")
    )
    moved = p.M * p.d**2  # from the axle to the mass centre
    body = bot.add_body(
        "body",
        mass=p.M,
        com=(0, 0, -p.d),
        inertia=(p.J2 - moved, p.J3 - moved, p.J1),
        shape=ax.Box((p.r, track / 2, p.r), (0, 0, -p.d)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=axle,
        at=(0, 0, p.r),
        coordinates=("x", "y", "psi"),
        speeds=("surge", "sway", "psi_dot"),
    )
    bot.add_joint(
        "swing",
        ax.Revolute("-y"),
        parent=axle,
        child=body,
        coordinates=("theta3",),
        speeds=("theta3_dot",),
    )
    for k, side in ((1, track / 2), (2, -track / 2)):
        bot.add_wheel(
            f"wheel{k}",
            ax.Rolling(radius=p.r),
            on=body,
            at=(0, side, 0),
            mass=p.m,
            coordinate=f"phi{k}",
            speed=f"phi{k}_dot",
            shape=ax.Cylinder(p.r, p.r / 10, "y"),
        )
        bot.add_motor(f"motor{k}", f"wheel{k}", input=f"M{k}")
        bot.measure(f"theta{k}", Difference(f"phi{k}", "theta3"), unit="rad")
        bot.measure(f"theta{k}_dot", Difference(f"phi{k}_dot", "theta3_dot"), unit="rad/s")
    return bot
