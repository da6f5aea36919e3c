"""A platform on six driven wheels that steers by skidding."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import axode as ax
from axode.gallery.values import parameters
from axode.mechanism.values.expressions import Scalar

DEFAULTS = {"m": 24.0, "I": 1.1, "I1": 0.03, "r": 0.11, "l": 0.24, "bR": 0.0, "bL": 0.0}
TYRE = (0.2, 0.21, 0.23)
WHEELS = {"mr": 0.5, "x1": 0.2, "x2": 0.0, "x3": -0.2}  # for separate wheels


def six_wheel_platform(separate: bool = False, **values: float) -> ax.Mechanism:
    """Three wheels per side, driven and coupled, as a differential drive.

    After Valencia, Aviles and Mauledoux (see `five_axis_arm`), equations (49) to (69): `x_c`, `y_c`
    and `theta` of the mass centre, which lies on the middle axle; wheel angles `phi_R`, `phi_L`,
    torques `tau_R`, `tau_L`; x forward, y to the left. The wheels of a side are one, without mass
    of its own, and what spins there acts as its motor's rotor; `m` and `I` are those of the whole.
    Pictures show all six.

    Args:
        separate: Give all six wheels bodies, motors and contacts of their own (`phi_R1` to
            `phi_L3`, `tau_R1` to `tau_L3`): all roll along, only `R2` holds sideways, since no two
            axles could turn without skidding. The motion is the same.

    Keyword Args:
        m: Mass of the platform with all its wheels [kg].
        I: Moment of inertia of the whole about the vertical through its mass centre [kg m^2].
        I1: Moment of inertia of the wheels of one side about their axes [kg m^2].
        r: Wheel radius [m].
        l: Half of the track [m].
        bR, bL: Viscous friction of the wheels on the right and on the left [N m s/rad].
        mr: Mass of each wheel; only with `separate` [kg].
        x1, x2, x3: Positions of the axles ahead of the mass centre; only with `separate` [m].
    """
    defaults = {**DEFAULTS, **WHEELS} if separate else DEFAULTS
    p = parameters("six_wheel_platform", defaults, values)
    bot = ax.Mechanism("six_wheel_platform")
    (add_separate if separate else add_platform)(bot, p)
    return bot


def _add_chassis(
    bot: ax.Mechanism, p: SimpleNamespace, mass: Scalar, yaw: Scalar, wheels: Sequence[ax.Cylinder]
) -> None:
    # a box as wide as the track; only the moment about the vertical ever acts
    chassis = bot.add_body(
        "chassis",
        mass=mass,
        inertia=(yaw, yaw, yaw),
        shape=[ax.Box((5 * p.r, 1.6 * p.l, p.r), (0, 0, p.r / 2)), *wheels],
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=chassis,
        at=(0, 0, p.r),
        coordinates=("x_c", "y_c", "theta"),
        speeds=("v", "v_lat", "w"),
    )


def add_platform(bot: ax.Mechanism, p: SimpleNamespace) -> None:
    """The body `chassis` with one wheel for each side; the other four are drawn, no more."""
    drawn = [
        ax.Cylinder(p.r, p.r / 2, "y", at=(x * p.r, y * p.l, 0), colour=TYRE)
        for x in (2.2, -2.2)
        for y in (1, -1)
    ]
    _add_chassis(bot, p, p.m, p.I, drawn)
    for side, y, friction in (("R", -p.l, p.bR), ("L", p.l, p.bL)):
        bot.add_wheel(
            f"wheel_{side}",
            ax.Rolling(radius=p.r),
            on="chassis",
            at=(0, y, 0),
            mass=0.0,
            inertia=ax.Inertia.point(),
            coordinate=f"phi_{side}",
            speed=f"phi_{side}_dot",
            shape=ax.Cylinder(p.r, p.r / 2, "y"),
        )
        bot.add_motor(f"motor_{side}", f"wheel_{side}", input=f"tau_{side}", rotor_inertia=p.I1)
        bot.add_damper(f"friction_{side}", f"wheel_{side}", coefficient=friction)


def add_separate(bot: ax.Mechanism, p: SimpleNamespace) -> None:
    """The body `chassis` with six wheels, which take their share of `m`, `I` and `I1`."""
    spin = p.I1 / 3
    places = (p.x1, p.x2, p.x3)
    turning = sum(2 * (spin / 2 + p.mr * (p.l**2 + x**2)) for x in places)
    _add_chassis(bot, p, p.m - 6 * p.mr, p.I - turning, ())
    for side, y, friction in (("R", -p.l, p.bR), ("L", p.l, p.bL)):
        for k, x in enumerate(places, start=1):
            name = f"{side}{k}"
            free = ax.Rolling(radius=p.r, lateral="free")
            bot.add_wheel(
                f"wheel_{name}",
                ax.Rolling(radius=p.r) if name == "R2" else free,
                on="chassis",
                at=(x, y, 0),
                mass=p.mr,
                inertia=ax.Inertia.axial(spin, spin / 2, "y"),
                coordinate=f"phi_{name}",
                speed=f"phi_{name}_dot",
                shape=ax.Cylinder(p.r, p.r / 2, "y"),
            )
            bot.add_motor(f"motor_{name}", f"wheel_{name}", input=f"tau_{name}")
            bot.add_damper(f"friction_{name}", f"wheel_{name}", coefficient=friction / 3)
