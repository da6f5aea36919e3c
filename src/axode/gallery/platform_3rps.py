"""The 3-RPS platform: three legs that lift and tilt it."""

from __future__ import annotations

import math

import axode as ax
from axode.gallery.values import parameters

DEFAULTS = {"Rb": 0.5, "Rp": 0.3, "L1": 0.5, "L2": 0.5, "m1": 1.5, "m2": 1.0, "mp": 6.0, "g": 9.81}
HEIGHT = 0.75  # of the platform at home [m]
THICK = 0.02  # radius of the legs [m]


def platform_3rps(**values: float) -> ax.Mechanism:
    """Three legs on hinges, each a cylinder and a piston with a ball joint at the platform.

    K. H. Hunt, "Structural kinematics of in-parallel-actuated robot-arms", J. Mechanisms,
    Transmissions and Automation in Design 105, 1983. The platform rises and tilts about two axes;
    what else it does follows. For given lengths it has up to sixteen assembly modes. `l1` to `l3`
    are the lengths of the legs, `f1` to `f3` the forces along them.

    Keyword Args:
        Rb: Distance from the middle of the base to the hinges [m].
        Rp: Distance from the middle of the platform to its ball joints [m].
        L1: Length of the cylinders [m].
        L2: Length of the pistons [m].
        m1: Mass of each cylinder, a uniform rod [kg].
        m2: Mass of each piston, a uniform rod [kg].
        mp: Mass of the platform, a uniform disk [kg].
        g: Gravitational acceleration [m/s^2].
    """
    p = parameters("platform_3rps", DEFAULTS, values)
    bot = ax.Mechanism("platform_3rps", gravity=(0, 0, -p.g))
    bot.add_body("platform", mass=p.mp, shape=ax.Cylinder(p.Rp, 2 * THICK))
    out = p.Rb.default - p.Rp.default
    lean, length = math.atan2(-out, HEIGHT), math.hypot(out, HEIGHT)
    for k in (1, 2, 3):
        _add_leg(bot, p, k)
        bot.set_home({f"hinge{k}": lean, f"l{k}": length})
    bot.set_home({"ball1.qw": math.cos(lean / 2), "ball1.qy": -math.sin(lean / 2)})
    bot.measure("tool", "position", body="platform")
    for kind in ("roll", "pitch"):
        bot.measure(kind, kind, body="platform")
    return bot


def _add_leg(bot: ax.Mechanism, p: object, k: int) -> None:
    """Cylinder and piston; the hinge's axis is along the circle of the hinges."""
    v = vars(p)
    turn = (0.0, 0.0, (k - 1) * 2 * math.pi / 3)
    c, s = math.cos(turn[2]), math.sin(turn[2])
    for name, mass, length, side in (
        ("cylinder", v["m1"], v["L1"], 1),
        ("piston", v["m2"], v["L2"], -1),
    ):
        bot.add_body(
            f"{name}{k}",
            mass=mass,
            com=(0, 0, side * length / 2),
            inertia=ax.Inertia.rod(mass, length, "z"),
            shape=ax.Cylinder(
                THICK if side > 0 else 0.7 * THICK, length, "z", (0, 0, side * length / 2)
            ),
        )
    bot.add_joint(
        f"hinge{k}",
        ax.Revolute("y"),
        parent=bot.ground,
        child=f"cylinder{k}",
        at=(v["Rb"] * c, v["Rb"] * s, 0),
        rotation=turn,
    )
    bot.add_joint(
        f"slide{k}",
        ax.Prismatic("z"),
        parent=f"cylinder{k}",
        child=f"piston{k}",
        coordinates=(f"l{k}",),
        speeds=(f"l{k}_dot",),
    )
    bot.add_joint(
        f"ball{k}",
        ax.Spherical(),
        parent=f"piston{k}",
        child="platform",
        child_at=(v["Rp"] * c, v["Rp"] * s, 0),
        child_rotation=turn,
    )
    bot.add_motor(f"drive{k}", f"l{k}", input=f"f{k}")
