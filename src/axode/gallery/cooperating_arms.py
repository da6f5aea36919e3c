"""Two planar arms that hold a common load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace

import axode as ax
from axode.gallery.values import parameters

LINKS = ((0.5, 2.0), (0.4, 1.5), (0.2, 0.6))  # length [m] and mass [kg]; the last pair repeats
DEFAULTS = {"base": 1.2, "mc": 3.0, "Jc": 0.05, "lc": 0.15, "g": 9.81}


def cooperating_arms(
    joints: int = 3,
    load: bool = True,
    pose: Sequence[float] = (0.62, 0.55, 0.2),
    elbow: Sequence[int] = (1, -1),
    **values: float,
) -> ax.Mechanism:
    """Two arms with their bases on the x axis, both gripping one load rigidly.

    After S. M. Yesiloglu, H. Temeltas and O. Kaynak, "Dynamical modeling of two-wheeled cart:
    cooperating manipulator approach", sections II to IV. Links are uniform rods in the x-y plane;
    `theta11`, `theta12`, ... are the joint angles of arm 1, each relative to the link before,
    `tau11`, ... their torques. The load's centre is at `X`, `Y`, its direction at the angle `F`;
    arm 1 holds it a length `lc` behind the centre, arm 2 as far ahead, the last links along it.
    The constraint forces of `grip1` and `grip2` are what the load exerts on the arms.

    Args:
        joints: Number of joints of each arm, at least two.
        load: Whether there is a load; without it the arms are free.
        pose: `X`, `Y` and `F` of the load at home [m, m, rad].
        elbow: Side to which each arm bends at home, +1 or -1.

    Keyword Args:
        L1, L2, L3: Lengths of the links of either arm; further links as long as the last [m].
        m1, m2, m3: Masses of the links of either arm, uniform rods; further links as the last [kg].
        base: Distance between the bases of the arms [m].
        mc: Mass of the load [kg].
        Jc: Moment of inertia of the load about its centre [kg m^2].
        lc: Distance from the load's centre to either grip [m].
        g: Gravitational acceleration, along -y [m/s^2].
    """
    links = [LINKS[min(k, len(LINKS) - 1)] for k in range(joints)]
    lengths = {f"L{k}": length for k, (length, _) in enumerate(links, start=1)}
    masses = {f"m{k}": mass for k, (_, mass) in enumerate(links, start=1)}
    p = parameters("cooperating_arms", {**lengths, **masses, **DEFAULTS}, values)
    bot = ax.Mechanism("cooperating_arms", gravity=(0, -p.g, 0))
    tips = [_add_arm(bot, p, arm, joints) for arm in (1, 2)]
    if load:
        _add_load(bot, p, tips)
        bot.set_home({"X": pose[0], "Y": pose[1], "F": pose[2]})
    for arm, way, bend in ((1, -1.0, elbow[0]), (2, 1.0, elbow[1])):
        bot.set_home(_bent(p, arm, joints, pose, way, bend))
    return bot


def _add_arm(bot: ax.Mechanism, p: SimpleNamespace, arm: int, joints: int) -> str:
    """An arm's links and motors; the name of its last link."""
    holder, at = "ground", ((0.0 if arm == 1 else p.base), 0.0, 0.0)
    for k in range(1, joints + 1):
        length, mass, name = getattr(p, f"L{k}"), getattr(p, f"m{k}"), f"link{arm}{k}"
        bot.add_body(
            name,
            mass=mass,
            com=(length / 2, 0, 0),
            inertia=ax.Inertia.rod(mass, length),
            shape=ax.Cylinder(0.02, length, "x", (length / 2, 0, 0)),
        )
        bot.add_joint(
            f"joint{arm}{k}",
            ax.Revolute("z"),
            parent=holder,
            child=name,
            at=at,
            coordinates=(f"theta{arm}{k}",),
            speeds=(f"theta{arm}{k}_dot",),
        )
        bot.add_motor(f"motor{arm}{k}", f"joint{arm}{k}", input=f"tau{arm}{k}")
        holder, at = name, (length, 0.0, 0.0)
    return holder


def _add_load(bot: ax.Mechanism, p: SimpleNamespace, tips: Sequence[str]) -> None:
    """The load, and the grips; a load without mass is allowed."""
    flat = ax.Inertia(p.Jc / 2, p.Jc / 2, p.Jc, ideal=True)
    bot.add_body("load", mass=p.mc, inertia=flat, shape=ax.Box((2 * p.lc, 0.08, 0.08)))
    bot.add_joint(
        "load",
        ax.Planar(),
        parent=bot.ground,
        child="load",
        coordinates=("X", "Y", "F"),
        speeds=("along", "across", "F_dot"),
    )
    for arm, (tip, way) in enumerate(zip(tips, (-1.0, 1.0), strict=True), start=1):
        last = bot.bodies[[body.name for body in bot.bodies].index(tip)]
        end = 2.0 * last.com[0]  # a uniform rod
        bot.add_loop(
            f"grip{arm}",
            ax.Fixed(),
            parent="load",
            child=tip,
            at=(way * p.lc, 0, 0),
            child_at=(end, 0, 0),
        )


def _bent(
    p: SimpleNamespace, arm: int, joints: int, pose: Sequence[float], way: float, bend: int
) -> dict[str, float]:
    """Joint angles at home: the last link lies along the load, the others bend evenly."""
    X, Y, F = pose
    lengths = [getattr(p, f"L{k}").default for k in range(1, joints + 1)]
    back = way * p.lc.default - lengths[-1]  # from the load's centre to the last joint
    x = X + back * math.cos(F) - (0.0 if arm == 1 else p.base.default)
    y = Y + back * math.sin(F)
    first, rest = lengths[0], sum(lengths[1:-1])
    names = [f"theta{arm}{k}" for k in range(1, joints + 1)]
    if joints == 2:
        return dict(zip(names, (math.atan2(y, x), F - math.atan2(y, x)), strict=True))
    cosine = (x * x + y * y - first**2 - rest**2) / (2 * first * rest)
    turn = bend * math.acos(min(1.0, max(-1.0, cosine)))
    start = math.atan2(y, x) - math.atan2(rest * math.sin(turn), first + rest * math.cos(turn))
    angles = [start, turn, *[0.0] * (joints - 3), F - start - turn]
    return dict(zip(names, angles, strict=True))
