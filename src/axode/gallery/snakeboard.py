"""The snakeboard: two steered wheelsets and a rider's twisting torso."""

from __future__ import annotations

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"mb": 3.0, "J": 0.016, "mr": 1.0, "Jr": 0.072, "mw": 1.0, "Jw": 0.0013, "l": 0.2}


def snakeboard(**values: float) -> ax.Mechanism:
    """A board on two wheelsets that turn under it, driven by swinging a rotor.

    Known for gaining speed with no wheel driven: a twist of the rotor `psi` in time with the
    wheelsets `phi_f` and `phi_b` moves it forward. J. P. Ostrowski, A. D. Lewis, R. M. Murray and
    J. W. Burdick, "Nonholonomic mechanics and locomotion: the snakeboard example", ICRA 1994.

    Keyword Args:
        mb: Mass of the board [kg].
        J: Moment of inertia of the board about the vertical [kg m^2].
        mr: Mass of the rotor [kg].
        Jr: Moment of inertia of the rotor about the vertical [kg m^2].
        mw: Mass of each wheelset [kg].
        Jw: Moment of inertia of each wheelset about the vertical [kg m^2].
        l: Half of the board's length [m].
    """
    p = parameters("snakeboard", DEFAULTS, values)
    bot = ax.Mechanism("snakeboard")
    board = bot.add_body(
        "board", mass=p.mb, inertia=(p.J, p.J, p.J), shape=ax.Box((2 * p.l, p.l / 3, p.l / 10))
    )
    rotor = bot.add_body(
        "rotor",
        mass=p.mr,
        inertia=(p.Jr, p.Jr, p.Jr),
        shape=ax.Box((p.l / 5, 1.5 * p.l, p.l / 5), (0, 0, p.l / 2)),
    )
    bot.add_joint(
        "base",
        ax.Planar(),
        parent=bot.ground,
        child=board,
        coordinates=("x", "y", "theta"),
        speeds=("v", "v_lat", "theta_dot"),
    )
    bot.add_joint(
        "rotor",
        ax.Revolute("z"),
        parent=board,
        child=rotor,
        coordinates=("psi",),
        speeds=("psi_dot",),
    )
    bot.add_motor("rotor", "rotor", input="tau_psi")
    for end, x in (("b", -p.l), ("f", p.l)):
        truck = bot.add_body(
            f"wheelset_{end}",
            mass=p.mw,
            inertia=(p.Jw, p.Jw, p.Jw),
            shape=ax.Cylinder(p.l / 8, p.l / 2, "y"),
        )
        bot.add_joint(
            f"steer_{end}",
            ax.Revolute("z"),
            parent=board,
            child=truck,
            at=(x, 0, 0),
            coordinates=(f"phi_{end}",),
            speeds=(f"phi_{end}_dot",),
        )
        bot.add_contact(f"wheels_{end}", ax.Skate(), body=truck)
        bot.add_motor(f"steer_{end}", f"steer_{end}", input=f"tau_{end}")
    bot.set_home(phi_f=0.4, phi_b=-0.4)
    return bot
