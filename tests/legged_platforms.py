"""Platforms on legs of many kinds, described from where their axes stand at home.

Every body's frame stands along the world's axes at home, where all joint coordinates are zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import axode as ax

Array = np.ndarray
# geometry and masses of the six-legged platform in the acceptance cases, any others would do
GEOMETRY: dict[str, Any] = {
    "Rb": 1.0,
    "Rp": 0.5,
    "zp": -0.05,
    "L1": 0.7,
    "L2": 0.8,
    "knee": 1.0,
    "beta": [math.radians(a) for a in (10, 110, 130, 230, 250, 350)],
    "pi": [math.radians(a) for a in (50, 70, 170, 190, 290, 310)],
    "m1": 0.2,
    "j1": 0.001,
    "m2": 0.25,
    "j2": 0.0015,
    "m3": 1.6,
    "Jx3": 0.002,
    "Jt3": 0.066,
    "m4": 1.4,
    "Jx4": 0.0015,
    "Jt4": 0.075,
    "m5": 0.3,
    "j5": 0.0008,
    "mM": 12.0,
    "IM": [0.9, 0.8, 1.5],
    "g": 9.81,
}
CENTRE = (0.05, -0.04, 0.95)
ANGLES = (0.08, -0.06, 0.15)


def rotation_zyx(angles: Sequence[float]) -> Array:
    """From roll, pitch and yaw."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a), math.sin(a)) for a in angles)
    yaw = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1.0]])
    pitch = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    return yaw @ pitch @ np.array([[1.0, 0, 0], [0, cr, -sr], [0, sr, cr]])


def unit(x: Array) -> Array:
    """Of length one."""
    return x / np.linalg.norm(x)


def leg_geometry(p: dict[str, Any], number: int, R: Array, centre: Array) -> dict[str, Array]:
    """Points B, E, P and axes e1 ... e6 of one leg."""
    beta, pi = p["beta"][number], p["pi"][number]
    B = p["Rb"] * np.array([math.cos(beta), math.sin(beta), 0.0])
    outward = np.array([math.cos(pi), math.sin(pi), 0.0])
    P = centre + R @ (p["Rp"] * outward + np.array([0, 0, p["zp"]]))
    e6 = R @ outward
    reach = float(np.linalg.norm(P - B))
    u = (P - B) / reach
    e4 = unit(np.cross(P - B, e6))
    x = (p["L1"] ** 2 - p["L2"] ** 2 + reach**2) / (2 * reach)
    E = B + x * u + p["knee"] * math.sqrt(p["L1"] ** 2 - x**2) * np.cross(e4, u)
    e1, e3 = np.array([0, 0, 1.0]), unit(E - B)
    return {
        "B": B,
        "E": E,
        "P": P,
        "e1": e1,
        "e2": unit(np.cross(e1, e3)),
        "e3": e3,
        "e4": e4,
        "e5": e4,
        "e6": e6,
    }


def rod(axial: float, transverse: float, along: Array) -> Array:
    """Inertia of a rod about its middle."""
    along = np.outer(along, along)
    return axial * along + transverse * (np.eye(3) - along)


class Chain:
    """Bodies one after the other, each placed by where its joint stands in the world at home."""

    def __init__(self, bot: ax.Mechanism, start: str = "ground") -> None:
        self.bot, self.body, self.origin = bot, start, np.zeros(3)

    def add(
        self,
        name: str,
        joint: Any,
        at: Array,
        mass: float,
        centre: Array,
        tensor: Array,
        motor: Any = None,
    ) -> None:
        """A body on a joint."""
        self.bot.add_body(name, mass=mass, com=tuple(centre - at), inertia=tensor)
        self.bot.add_joint(
            f"{name}.joint", joint, parent=self.body, child=name, at=tuple(at - self.origin)
        )
        if motor is not None:
            self.bot.add_motor(f"{name}.motor", f"{name}.joint", motor=motor)
        self.body, self.origin = name, at


def platform_body(bot: ax.Mechanism, p: dict[str, Any], at: Array, R: Array) -> None:
    """The platform, its frame at a point and along the world at home."""
    bot.add_body(
        "platform",
        mass=p["mM"],
        com=tuple(np.array(p["centre"]) - at),
        inertia=R @ np.diag(p["IM"]) @ R.T,
    )


def six_legs(
    parameters: dict[str, Any] | None = None,
    centre: Sequence[float] = CENTRE,
    angles: Sequence[float] = ANGLES,
    *,
    base: str = "revolutes",
    knee: str = "revolute",
    tip: str = "revolutes",
    held_by: str = "floating",
    motor: Any = True,
    miss: Any = 0.1,
) -> ax.Mechanism:
    """Legs with a spherical joint at the base, a driven knee and a universal joint at the tip.

    Args:
        parameters: As in the acceptance cases.
        centre: Mass centre of the platform at home.
        angles: Roll, pitch and yaw of the platform at home.
        base: "revolutes", "spherical" or "skew", the last with axes that miss each other.
        knee: "revolute" or "prismatic".
        tip: "revolutes" for a body between the two, or "universal".
        held_by: "floating", or "leg": the tree goes through the first leg.
        motor: Of the knees.
        miss: By how much axes miss each other if they are skew.
    """
    p = dict(GEOMETRY, **(parameters or {}))
    R, c = rotation_zyx(angles), np.asarray(centre, float)
    p["centre"] = c
    bot = ax.Mechanism("six legs", gravity=(0, 0, -p["g"]))
    if held_by == "floating":
        platform_body(bot, p, c, R)
        bot.add_joint("free", ax.Floating(), parent="ground", child="platform", at=tuple(c))
    for number in range(len(p["beta"])):
        g = leg_geometry(p, number, R, c)
        chain = _up_to_the_tip(bot, p, g, str(number), base, knee, motor, miss)
        in_tree = held_by == "leg" and number == 0
        _hold(bot, p, g, chain, str(number), tip, R if in_tree else None)
    bot.set_home({"free.qw": 1.0} if held_by == "floating" else {})
    return bot


def _up_to_the_tip(
    bot: ax.Mechanism,
    p: dict[str, Any],
    g: dict[str, Array],
    name: str,
    base: str,
    knee: str,
    motor: Any,
    miss: Any,
) -> Chain:
    B, E, P = g["B"], g["E"], g["P"]
    chain = Chain(bot)
    lower = rod(p["Jx3"], p["Jt3"], unit(E - B))
    if base == "spherical":
        chain.add(f"lower{name}", ax.Spherical(), B, p["m3"], (B + E) / 2, lower)
    else:
        beside = B
        if base == "skew":
            beside = np.array([b + miss * e for b, e in zip(B, g["e6"], strict=True)])
        chain.add(f"one{name}", ax.Revolute(tuple(g["e1"])), B, p["m1"], B, p["j1"] * np.eye(3))
        chain.add(
            f"two{name}", ax.Revolute(tuple(g["e2"])), beside, p["m2"], B, p["j2"] * np.eye(3)
        )
        chain.add(f"lower{name}", ax.Revolute(tuple(g["e3"])), B, p["m3"], (B + E) / 2, lower)
    joint = ax.Revolute(tuple(g["e4"])) if knee == "revolute" else ax.Prismatic(tuple(unit(E - B)))
    upper = rod(p["Jx4"], p["Jt4"], unit(P - E))
    chain.add(f"upper{name}", joint, E, p["m4"], (E + P) / 2, upper, motor)
    return chain


def _hold(
    bot: ax.Mechanism,
    p: dict[str, Any],
    g: dict[str, Array],
    chain: Chain,
    name: str,
    tip: str,
    R: Array | None,
) -> None:
    """The last joints of a leg; R is given where the platform still has to be made."""
    P = g["P"]
    if tip == "revolutes":
        chain.add(f"five{name}", ax.Revolute(tuple(g["e5"])), P, p["m5"], P, p["j5"] * np.eye(3))
        joint: Any = ax.Revolute(tuple(g["e6"]))
    else:
        joint = ax.Universal(tuple(g["e5"]), tuple(g["e6"]))
    origin = p["centre"]
    if R is not None:
        platform_body(bot, p, P, R)
        bot.add_joint(
            f"tip{name}", joint, parent=chain.body, child="platform", at=tuple(P - chain.origin)
        )
        p["origin"] = P
        return
    bot.add_loop(
        f"tip{name}",
        joint,
        parent=chain.body,
        child="platform",
        at=tuple(P - chain.origin),
        child_at=tuple(P - p.get("origin", origin)),
    )


def hanging_legs() -> ax.Mechanism:
    """Legs that the tree hangs on the platform, each closed by a ball on the ground."""
    R, c = rotation_zyx(ANGLES), np.asarray(CENTRE)
    p = dict(GEOMETRY, centre=c)
    bot = ax.Mechanism("hanging legs", gravity=(0.3, -0.2, -9.81))
    platform_body(bot, p, c, R)
    bot.add_joint("free", ax.Floating(), parent="ground", child="platform", at=tuple(c))
    for number in range(6):
        g = leg_geometry(p, number, R, c)
        chain = Chain(bot, "platform")
        chain.origin = c
        upper = rod(p["Jx4"], p["Jt4"], unit(g["P"] - g["E"]))
        chain.add(
            f"upper{number}",
            ax.Universal(tuple(g["e6"]), tuple(g["e5"])),
            g["P"],
            p["m4"],
            (g["E"] + g["P"]) / 2,
            upper,
        )
        lower = rod(p["Jx3"], p["Jt3"], unit(g["E"] - g["B"]))
        chain.add(
            f"lower{number}",
            ax.Revolute(tuple(g["e4"])),
            g["E"],
            p["m3"],
            (g["B"] + g["E"]) / 2,
            lower,
            ax.Motor(gear=3.0, rotor_inertia=0.01),
        )
        bot.add_loop(
            f"foot{number}",
            ax.Spherical(),
            parent="ground",
            child=chain.body,
            at=tuple(g["B"]),
            child_at=tuple(g["B"] - chain.origin),
        )
    bot.set_home({"free.qw": 1.0})
    return bot
