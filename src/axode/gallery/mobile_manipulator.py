"""The five-axis arm on the six-wheel platform, coupled."""

from __future__ import annotations

import axode as ax
from axode.gallery import five_axis_arm, six_wheel_platform
from axode.gallery.values import parameters

DEFAULTS = {**six_wheel_platform.DEFAULTS, **five_axis_arm.DEFAULTS, "xa": 0.1, "za": 0.15}
HOME = {"theta2": 1.0, "theta3": -1.2, "theta4": -0.4}  # raised, clear of the platform


def mobile_manipulator(separate: bool = False, **values: float) -> ax.Mechanism:
    """Platform and arm as one: eight degrees of freedom, three of the platform, five of the arm.

    Valencia, Aviles and Mauledoux (see `five_axis_arm` and `six_wheel_platform`) model the two
    apart; here the arm's motion pushes the platform and the platform carries the arm. Names are
    theirs. The platform has two speeds, for it does not move sideways: with the arm's five,
    gripper included, seven move the eight.

    Args:
        separate: Give all six wheels bodies, motors and contacts of their own, as in
            `six_wheel_platform`.
        values: Also the parameters of `six_wheel_platform` and `five_axis_arm`.

    Keyword Args:
        xa, za: Position of the arm's base, ahead of and above the platform's axle [m].
    """
    defaults = {**DEFAULTS, **six_wheel_platform.WHEELS} if separate else DEFAULTS
    p = parameters("mobile_manipulator", defaults, values)
    bot = ax.Mechanism("mobile_manipulator", gravity=(0, 0, -p.g))
    (six_wheel_platform.add_separate if separate else six_wheel_platform.add_platform)(bot, p)
    five_axis_arm.add_arm(bot, "chassis", p, at=(p.xa, 0, p.za))
    bot.set_home(HOME)
    return bot
