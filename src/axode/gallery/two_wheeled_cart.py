"""A load on two wheels, and the same cart as two arms that hold a common load."""

from __future__ import annotations

from types import SimpleNamespace

import axode as ax
from axode.gallery.values import Difference, parameters
from axode.mechanism.values.expressions import Scalar

DEFAULTS = {
    "r": 0.15,
    "l": 0.6,
    "d": 0.0,
    "mw": 1.3,
    "Ia": 0.0146,
    "It": 0.0078,
    "Mc": 4.0,
    "Jx": 0.13,
    "Jy": 0.02,
    "Jz": 0.135,
    "g": 9.81,
}


def two_wheeled_cart(arms: bool = False, **values: float) -> ax.Mechanism:
    """Two wheels, a rod between them, and a motor at each wheel's centre.

    After S. M. Yesiloglu, H. Temeltas and O. Kaynak, "Dynamical modeling of two-wheeled cart:
    cooperating manipulator approach", section V. Platform axes: x forward, y along the axle
    towards wheel 1, z up. The load pitches about +y by `pitch`; `q1` and `q2` are its angles
    relative to the wheels, about +y as well, and `tau1`, `tau2` the torques on the load. The
    measures `wheel1_rate`, `wheel2_rate` are the wheels' spins seen from the platform.

    Args:
        arms: Build it as the source sees it: each wheel is an arm with three freedoms at the ground
            and one at its centre, and each arm carries half of the load until the grip joins them.

    Keyword Args:
        r: Wheel radius [m].
        l: Track [m].
        d: Distance from the axle down to the load's mass centre [m].
        mw: Mass of each wheel [kg].
        Ia, It: Moments of inertia of a wheel about and across its axis [kg m^2].
        Mc: Mass of the load [kg].
        Jx, Jy, Jz: Moments of inertia of the load at the middle of the axle, about the forward
            direction, the axle and the third axis [kg m^2].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("two_wheeled_cart", DEFAULTS, values)
    bot = ax.Mechanism("two_wheeled_cart", gravity=(0, 0, -p.g))
    if arms:
        return _with_arms(bot, p)
    axle = bot.add_body(
        "axle", mass=0.0, inertia=ax.Inertia.point(), shape=ax.Cylinder(p.r / 10, p.l, "y")
    )
    load = bot.add_body(
        "load",
        mass=p.Mc,
        com=(0, 0, -p.d),
        inertia=_at_mass_centre(p),
        shape=ax.Box((p.r, 0.8 * p.l, p.r / 2), (0, 0, -p.d)),
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
    bot.add_joint("pitch", ax.Revolute("y"), parent=axle, child=load, speeds=("pitch_rate",))
    for k, side in ((1, p.l / 2), (2, -p.l / 2)):
        # child of the load, turning about -y: the joint's angle is the load's, seen from the wheel
        bot.add_wheel(
            f"wheel{k}",
            ax.Rolling(radius=p.r),
            on=load,
            at=(0, side, 0),
            axis="-y",
            mass=p.mw,
            inertia=ax.Inertia.axial(p.Ia, p.It, "y"),
            coordinate=f"q{k}",
            speed=f"q{k}_dot",
            shape=ax.Cylinder(p.r, p.r / 5, "y"),
        )
        bot.add_motor(f"motor{k}", f"wheel{k}", input=f"tau{k}")
        bot.measure(f"wheel{k}_rate", Difference("pitch_rate", f"q{k}_dot"), unit="rad/s")
    return bot


def _at_mass_centre(p: SimpleNamespace) -> tuple[Scalar, Scalar, Scalar]:
    """The load's moments, brought from the axle to its mass centre."""
    moved = p.Mc * p.d**2
    return (p.Jx - moved, p.Jy - moved, p.Jz)


def _with_arms(bot: ax.Mechanism, p: SimpleNamespace) -> ax.Mechanism:
    halves = tuple(moment / 2 for moment in _at_mass_centre(p))
    for k, side in ((1, p.l / 2), (2, -p.l / 2)):
        wheel = bot.add_body(
            f"wheel{k}",
            mass=p.mw,
            inertia=ax.Inertia.axial(p.Ia, p.It, "y"),
            shape=ax.Cylinder(p.r, p.r / 5, "y"),
        )
        bot.add_joint(f"ground{k}", ax.Floating(), parent=bot.ground, child=wheel)
        bot.add_contact(f"contact{k}", ax.Rolling(radius=p.r), body=wheel)
        box = ax.Box((p.r, 0.4 * p.l, p.r / 2), (0, -side / 2, -p.d))
        half = bot.add_body(
            f"half{k}", mass=p.Mc / 2, com=(0, -side, -p.d), inertia=halves, shape=box
        )
        bot.add_joint(
            f"arm{k}",
            ax.Revolute("y"),
            parent=wheel,
            child=half,
            coordinates=(f"q{k}",),
            speeds=(f"q{k}_dot",),
        )
        bot.add_motor(f"motor{k}", f"arm{k}", input=f"tau{k}")
        bot.set_home({f"ground{k}.z": p.r.default, f"ground{k}.y": (3 - 2 * k) * p.l.default / 2})
    bot.add_loop("grip", ax.Fixed(), parent="half1", child="half2", at=(0, -p.l, 0))
    return bot
