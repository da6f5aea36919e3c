"""The Gough-Stewart platform of general geometry: six legs between any points."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import axode as ax
from axode.errors import InvalidArgument
from axode.gallery.six_legged_platform import Array, along_leg, roman
from axode.gallery.values import parameters
from axode.mechanism.values.expressions import numeric

BASE = (
    (1.05, 0.17, 0.02),
    (-0.36, 0.92, -0.03),
    (-0.67, 0.8, 0.05),
    (-0.61, -0.75, -0.04),
    (-0.31, -0.97, 0.03),
    (0.96, -0.2, -0.05),
)
PLATFORM = (
    (0.34, 0.37, -0.06),
    (0.15, 0.49, -0.02),
    (-0.5, 0.1, -0.07),
    (-0.47, -0.1, 0.01),
    (0.19, -0.46, -0.05),
    (0.31, -0.4, 0.02),
)
DEFAULTS = {"m1": 1.6, "m2": 1.2, "mp": 12.0, "g": 9.81}


def gough_stewart(
    base: Sequence[Sequence[float]] = BASE,
    platform: Sequence[Sequence[float]] = PLATFORM,
    position: Sequence[float] = (0.0, 0.0, 1.0),
    rpy_zyx: Sequence[float] = (0.0, 0.0, 0.0),
    **values: float,
) -> ax.Mechanism:
    """Six legs, each a universal joint, a driven slide and a ball joint, between general points.

    V. E. Gough and S. G. Whitehall, "Universal tyre test machine", FISITA, 1962; D. Stewart, "A
    platform with six degrees of freedom", Proc. Inst. Mech. Eng., 1965. For given lengths of its
    legs the platform has 40 postures over the complex numbers (M. Raghavan, 1993; F. Ronga and
    T. Vust, 1992), as long as its points are general: those here are in no plane. `l_I` to `l_VI`
    are the lengths, `f_I` to `f_VI` the forces along the legs.

    Args:
        base: Points on the base, one row per leg: `a1x`, `a1y`, `a1z`, `a2x`, `a2y`, `a2z`,
            `a3x`, `a3y`, `a3z`, `a4x`, `a4y`, `a4z`, `a5x`, `a5y`, `a5z`, `a6x`, `a6y`, `a6z` [m].
        platform: Points on the platform, one row per leg: `b1x`, `b1y`, `b1z`, `b2x`, `b2y`,
            `b2z`, `b3x`, `b3y`, `b3z`, `b4x`, `b4y`, `b4z`, `b5x`, `b5y`, `b5z`, `b6x`, `b6y`,
            `b6z` [m].
        position: Position of the platform's origin at home [m].
        rpy_zyx: Roll, pitch and yaw of the platform at home [rad].

    Keyword Args:
        m1: Mass of each cylinder, a uniform rod as long as half of the leg at home [kg].
        m2: Mass of each piston, such a rod too [kg].
        mp: Mass of the platform [kg].
        g: Gravitational acceleration [m/s^2].
    """
    points = [np.asarray(rows, float) for rows in (base, platform)]
    if any(rows.shape != (6, 3) for rows in points):
        raise InvalidArgument(
            f"base, platform: expected six points of three coordinates each, got shapes "
            f"{points[0].shape} and {points[1].shape}"
        )
    named = [
        [
            [ax.Parameter(f"{letter}{k}{axis}", x) for axis, x in zip("xyz", row, strict=True)]
            for k, row in enumerate(rows, start=1)
        ]
        for letter, rows in zip("ab", points, strict=True)
    ]
    pose = np.asarray(position, float), Rotation.from_euler("xyz", rpy_zyx).as_matrix()
    p = parameters("gough_stewart", DEFAULTS, values)
    return on_six_legs("gough_stewart", named, pose, p)


def on_six_legs(
    name: str, named: Sequence[Any], pose: tuple[Array, Array], p: SimpleNamespace
) -> ax.Mechanism:
    """A platform on six legs.

    Args:
        name: What to call it.
        named: Points on the base and on the platform, numbers or parameters.
        pose: Position and rotation of the platform at home.
        p: Parameters m1, m2, mp and g.
    """
    position, R = pose
    points = [np.array([[numeric(x) for x in row] for row in rows]) for rows in named]
    bot = ax.Mechanism(name, gravity=(0, 0, -p.g))
    reach = float(np.linalg.norm(points[1][:, :2], axis=1).mean())
    bot.add_body("platform", mass=p.mp, shape=ax.Cylinder(reach, 0.06 * reach))
    for k in range(6):
        span = position + R @ points[1][k] - points[0][k]
        _add_leg(bot, p, roman(k + 1), (named[0][k], named[1][k]), span, R if k == 0 else None)
    bot.measure("position", "position", body="platform")
    for kind in ("roll", "pitch", "yaw"):
        bot.measure(kind, kind, body="platform")
    return bot


def _add_leg(
    bot: ax.Mechanism,
    p: SimpleNamespace,
    leg: str,
    points: tuple[Any, Any],
    span: Array,
    R: Array | None,
) -> None:
    """Cylinder and piston along a vector; the first leg carries the platform."""
    (first, second, length), along = along_leg(span)
    half = length / 2
    for name, mass, side in (("cylinder", p.m1, 1), ("piston", p.m2, -1)):
        com = (0, 0, side * half / 2)
        bot.add_body(
            f"{name}_{leg}",
            mass=mass,
            com=com,
            inertia=ax.Inertia.rod(mass, half, "z"),
            shape=ax.Cylinder((0.03 if side > 0 else 0.02) * length, half, "z", com),
        )
    bot.add_joint(
        f"cross_{leg}",
        ax.Universal("x", "y"),
        parent=bot.ground,
        child=f"cylinder_{leg}",
        at=points[0],
    )
    bot.add_joint(
        f"slide_{leg}",
        ax.Prismatic("z"),
        parent=f"cylinder_{leg}",
        child=f"piston_{leg}",
        coordinates=(f"l_{leg}",),
        speeds=(f"l_{leg}_dot",),
    )
    bot.add_joint(
        f"ball_{leg}", ax.Spherical(), parent=f"piston_{leg}", child="platform", child_at=points[1]
    )
    bot.add_motor(f"drive_{leg}", f"l_{leg}", input=f"f_{leg}")
    bot.set_home({f"cross_{leg}.first": first, f"cross_{leg}.second": second, f"l_{leg}": length})
    if R is not None:
        names = [f"ball_{leg}.q{part}" for part in "wxyz"]
        ball = np.roll(Rotation.from_matrix(along.T @ R).as_quat(canonical=True), 1)
        bot.set_home(dict(zip(names, ball, strict=True)))
