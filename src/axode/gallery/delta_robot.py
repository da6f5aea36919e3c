"""The delta robot: three arms with parallelograms that keep a platform level."""

from __future__ import annotations

import math
from types import SimpleNamespace

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {
    "Rb": 0.2,
    "Rp": 0.06,
    "L": 0.25,
    "l": 0.6,
    "w": 0.1,
    "ma": 0.8,
    "ms": 0.08,
    "mr": 0.1,
    "mp": 0.5,
    "g": 9.81,
}
HOME = 0.4  # of the arms below the horizontal [rad]
THICK = 0.012  # radius of arms, bars and rods [m]


def delta_robot(**values: float) -> ax.Mechanism:
    """Three motors above, three upper arms, three parallelograms, a platform that only translates.

    R. Clavel, "DELTA, a fast robot with parallel geometry", Int. Symp. Industrial Robots, 1988: the
    motors stand on the base, so that little moves and it moves fast. Built of revolute joints
    alone, as here, it is overconstrained: of five loops' 25 rows 13 suffice, and Axode reports the
    others with the forces that they leave open. `theta1` to `theta3` are the arms' angles below the
    horizontal, `tau1` to `tau3` their torques.

    Keyword Args:
        Rb: Distance from the middle of the base to the motors [m].
        Rp: Distance from the middle of the platform to its hinges [m].
        L: Length of the upper arms [m].
        l: Length of the rods of the parallelograms [m].
        w: Distance between the rods of a parallelogram [m].
        ma: Mass of each upper arm, a uniform rod [kg].
        ms: Mass of each bar across a parallelogram, a uniform cylinder [kg].
        mr: Mass of each rod of the parallelograms [kg].
        mp: Mass of the platform with its load [kg].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("delta_robot", DEFAULTS, values)
    bot = ax.Mechanism("delta_robot", gravity=(0, 0, -p.g))
    bot.add_body("platform", mass=p.mp, shape=ax.Cylinder(p.Rp, 2 * THICK))
    out = p.Rb.default + p.L.default * math.cos(HOME) - p.Rp.default
    tilt = math.asin(min(1.0, out / p.l.default))  # of the rods from the vertical
    for k in (1, 2, 3):
        _add_leg(bot, p, k)
        turned = (0.0, 0.0, (k - 1) * 2 * math.pi / 3)
        join = bot.add_joint if k == 1 else bot.add_loop
        c, s = math.cos(turned[2]), math.sin(turned[2])
        join(
            f"hinge{k}",
            ax.Revolute("y"),
            parent=f"lower{k}",
            child="platform",
            child_at=(p.Rp * c, p.Rp * s, 0),
            child_rotation=turned,
        )
        bot.set_home({f"theta{k}": HOME, f"pitch{k}": tilt - HOME})
    bot.set_home({"hinge1": -tilt})
    bot.measure("tool", "position", body="platform")
    return bot


def _add_leg(bot: ax.Mechanism, p: SimpleNamespace, k: int) -> None:
    """Arm, bars and rods; the parallelogram closes between the second rod and the lower bar."""
    turn = (k - 1) * 2 * math.pi / 3
    place = (p.Rb * math.cos(turn), p.Rb * math.sin(turn), 0)
    bot.add_body(
        f"arm{k}",
        mass=p.ma,
        com=(p.L / 2, 0, 0),
        inertia=ax.Inertia.rod(p.ma, p.L),
        shape=ax.Cylinder(2 * THICK, p.L, "x", (p.L / 2, 0, 0)),
    )
    for name in ("upper", "lower"):
        bot.add_body(f"{name}{k}", mass=p.ms, shape=ax.Cylinder(THICK, p.w, "y"))
    bot.add_joint(
        f"shoulder{k}",
        ax.Revolute("y"),
        parent=bot.ground,
        child=f"arm{k}",
        at=place,
        rotation=(0, 0, turn),
        coordinates=(f"theta{k}",),
        speeds=(f"theta{k}_dot",),
    )
    bot.add_motor(f"motor{k}", f"shoulder{k}", input=f"tau{k}")
    bot.add_joint(
        f"pitch{k}", ax.Revolute("y"), parent=f"arm{k}", child=f"upper{k}", at=(p.L, 0, 0)
    )
    for side, y in (("a", p.w / 2), ("b", -p.w / 2)):
        name = f"rod{k}{side}"
        bot.add_body(
            name,
            mass=p.mr,
            com=(0, 0, -p.l / 2),
            inertia=ax.Inertia.rod(p.mr, p.l, "z"),
            shape=ax.Cylinder(THICK, p.l, "z", (0, 0, -p.l / 2)),
        )
        bot.add_joint(name, ax.Revolute("x"), parent=f"upper{k}", child=name, at=(0, y, 0))
        join = bot.add_joint if side == "a" else bot.add_loop
        join(
            f"foot{k}{side}",
            ax.Revolute("x"),
            parent=name,
            child=f"lower{k}",
            at=(0, 0, -p.l),
            child_at=(0, y, 0),
        )
