"""Small parallel robots whose workspaces and inverse kinematics are known in closed form."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

import axode as ax

BASES = ((-1.0, -0.6), (1.0, -0.5), (0.1, 1.2))
TOPS = ((-0.2, -0.1), (0.2, -0.1), (0.0, 0.2))


def three_rpr(
    bases=BASES, tops=TOPS, home=(0.0, 0.0, 0.0), order=(0, 1, 2), rotation=None
) -> ax.Mechanism:
    """A platform in a plane on three legs that change their length, `l0` to `l2`."""
    bot = ax.Mechanism("three_rpr", gravity=(0, 0, 0))
    table = bot.ground
    if rotation is not None:
        table = bot.add_body("table", mass=1.0, inertia=(0.1, 0.1, 0.1))
        bot.add_joint("stand", ax.Fixed(), parent=bot.ground, child=table, rotation=rotation)
    bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
    x, y, yaw = home
    for number, k in enumerate(order):
        (a, b), (u, v) = bases[k], tops[k]
        bot.add_body(f"cylinder{k}", mass=0.2, inertia=(0.01, 0.01, 0.01))
        bot.add_body(f"piston{k}", mass=0.2, inertia=(0.01, 0.01, 0.01))
        bot.add_joint(
            f"base{k}", ax.Revolute("z"), parent=table, child=f"cylinder{k}", at=(a, b, 0)
        )
        bot.add_joint(
            f"slide{k}",
            ax.Prismatic("x"),
            parent=f"cylinder{k}",
            child=f"piston{k}",
            coordinates=(f"l{k}",),
        )
        join = bot.add_joint if number == 0 else bot.add_loop
        join(f"top{k}", ax.Revolute("z"), parent=f"piston{k}", child="platform", child_at=(u, v, 0))
        bot.add_motor(f"motor{k}", f"l{k}", input=f"f{k}")
        c, s = math.cos(yaw), math.sin(yaw)
        span = (x + c * u - s * v - a, y + s * u + c * v - b)
        angle = math.atan2(span[1], span[0])
        bot.set_home({f"base{k}": angle, f"l{k}": math.hypot(*span)})
        if number == 0:
            bot.set_home({f"top{k}": yaw - angle})
    return bot


def three_rrr(bases=BASES, tops=TOPS, crank=0.6, rod=0.75) -> ax.Mechanism:
    """A platform in the plane on three driven cranks, `theta0` to `theta2`."""
    bot = ax.Mechanism("three_rrr", gravity=(0, 0, 0))
    bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
    for k, ((a, b), (u, v)) in enumerate(zip(bases, tops, strict=True)):
        for name, length in (("crank", crank), ("rod", rod)):
            bot.add_body(f"{name}{k}", mass=0.2, com=(length / 2, 0, 0), inertia=(0.01, 0.01, 0.01))
        bot.add_joint(
            f"base{k}",
            ax.Revolute("z"),
            parent=bot.ground,
            child=f"crank{k}",
            at=(a, b, 0),
            coordinates=(f"theta{k}",),
        )
        bot.add_joint(
            f"elbow{k}", ax.Revolute("z"), parent=f"crank{k}", child=f"rod{k}", at=(crank, 0, 0)
        )
        join = bot.add_joint if k == 0 else bot.add_loop
        join(
            f"top{k}",
            ax.Revolute("z"),
            parent=f"rod{k}",
            child="platform",
            at=(rod, 0, 0),
            child_at=(u, v, 0),
        )
        bot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
        span = np.array([u - a, v - b])
        reach, angle = float(np.hypot(*span)), math.atan2(span[1], span[0])
        first = angle + math.acos((crank**2 + reach**2 - rod**2) / (2 * crank * reach))
        elbow = np.array([a, b]) + crank * np.array([math.cos(first), math.sin(first)])
        second = math.atan2(v - elbow[1], u - elbow[0])
        bot.set_home({f"theta{k}": first, f"elbow{k}": second - first})
        if k == 0:
            bot.set_home({f"top{k}": -second})
    return bot


def three_rps(base=1.0, top=0.6, height=1.0) -> ax.Mechanism:
    """A platform on three legs in upright planes: it rises and tilts, and the rest follows."""
    bot = ax.Mechanism("three_rps")
    bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
    for k in range(3):
        turn = 2 * math.pi * k / 3 + 0.1
        c, s = math.cos(turn), math.sin(turn)
        bot.add_body(f"cylinder{k}", mass=0.2, inertia=(0.01, 0.01, 0.01))
        bot.add_body(f"piston{k}", mass=0.2, inertia=(0.01, 0.01, 0.01))
        bot.add_joint(
            f"base{k}",
            ax.Revolute("y"),
            parent=bot.ground,
            child=f"cylinder{k}",
            at=(base * c, base * s, 0),
            rotation=(0, 0, turn),
        )
        bot.add_joint(
            f"slide{k}",
            ax.Prismatic("z"),
            parent=f"cylinder{k}",
            child=f"piston{k}",
            coordinates=(f"l{k}",),
        )
        join = bot.add_joint if k == 0 else bot.add_loop
        join(
            f"ball{k}",
            ax.Spherical(),
            parent=f"piston{k}",
            child="platform",
            child_at=(top * c, top * s, 0),
        )
        bot.add_motor(f"motor{k}", f"l{k}", input=f"f{k}")
        lean = math.atan2(top - base, height)
        bot.set_home({f"base{k}": lean, f"l{k}": math.hypot(top - base, height)})
        if k == 0:
            # the ball undoes the leg's turn about z and its lean
            half = [math.cos(turn / 2), 0, 0, math.sin(turn / 2)]
            tilt = [math.cos(lean / 2), 0, math.sin(lean / 2), 0]
            whole = _product(half, tilt)
            names = [f"ball{k}.q{axis}" for axis in "wxyz"]
            inverse = [whole[0], -whole[1], -whole[2], -whole[3]]
            bot.set_home(dict(zip(names, inverse, strict=True)))
    return bot


def _product(a, b):
    w, x, y, z = a
    W, X, Y, Z = b
    return [
        w * W - x * X - y * Y - z * Z,
        w * X + x * W + y * Z - z * Y,
        w * Y - x * Z + y * W + z * X,
        w * Z + x * Y - y * X + z * W,
    ]


def spherical_rrr(proximal=1.2, distal=1.4) -> ax.Mechanism:
    """Legs of three revolutes whose axes all meet at the origin; `theta0` to `theta2`."""
    bot = ax.Mechanism("spherical_rrr", gravity=(0, 0, 0))
    bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
    for k in range(3):
        turn = 2 * math.pi * k / 3
        # driven axes around a cone that opens downwards, platform axes around one that opens up
        base = _about("z", turn) @ _about("y", math.pi - 0.9) @ np.array([0.0, 0.0, 1.0])
        tip = _about("z", turn + 0.3) @ _about("y", 1.1) @ np.array([0.0, 0.0, 1.0])
        middle = _between(base, tip, proximal, distal)
        for name in ("inner", "outer"):
            bot.add_body(f"{name}{k}", mass=0.2, inertia=(0.01, 0.01, 0.01))
        ground = bot.ground
        bot.add_joint(
            f"base{k}",
            ax.Revolute(tuple(base)),
            parent=ground,
            child=f"inner{k}",
            coordinates=(f"theta{k}",),
        )
        bot.add_joint(
            f"elbow{k}", ax.Revolute(tuple(middle)), parent=f"inner{k}", child=f"outer{k}"
        )
        join = bot.add_joint if k == 0 else bot.add_loop
        join(f"top{k}", ax.Revolute(tuple(tip)), parent=f"outer{k}", child="platform")
        bot.add_motor(f"motor{k}", f"theta{k}", input=f"tau{k}")
    return bot


def _about(axis, angle):
    c, s = math.cos(angle), math.sin(angle)
    if axis == "z":
        return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def _between(a, b, first, second):
    """Unit vector at given angles from two others."""
    dot = a @ b
    G = np.array([[1.0, dot], [dot, 1.0]])
    x = np.linalg.solve(G, [math.cos(first), math.cos(second)])
    flat = x[0] * a + x[1] * b
    normal = np.cross(a, b) / np.linalg.norm(np.cross(a, b))
    return flat + math.sqrt(1 - flat @ flat) * normal


def mixed_legs(legs: str, seed: int) -> ax.Mechanism:
    """A platform in space on legs of several kinds, with all coordinates zero at home.

    Args:
        legs: Joints of the legs, such as "UpS RuS"; the driven one is followed by an asterisk.
        seed: Of the directions and points, which are rounded to five digits.
    """
    rng = np.random.default_rng(seed)
    bot = ax.Mechanism("mixed", gravity=(0, 0, 0))
    some = {"mass": 0.1, "inertia": (0.01, 0.01, 0.01)}
    bot.add_body("platform", **some)
    for k, letters in enumerate(legs.split()):
        joints = [letter for letter in letters if letter != "*"]
        driven = letters.index("*") - 1
        turn = 2 * math.pi * k / len(legs.split()) + rng.uniform(-0.2, 0.2)
        base = np.array([math.cos(turn), math.sin(turn), rng.uniform(-0.1, 0.1)])
        top = np.array([0.5 * math.cos(turn + 0.4), 0.5 * math.sin(turn + 0.4), 1.0])
        middle = base + 0.2 * rng.normal(size=3) + [0, 0, 0.4]
        parent = "ground"
        for j, (letter, at) in enumerate(zip(joints, (base, middle, top), strict=True)):
            child = "platform" if j == 2 else bot.add_body(f"link{k}{j}", **some).name
            place, direction = at.round(5), rng.normal(size=3).round(5)
            axis = tuple(direction / np.linalg.norm(direction))
            across = np.cross(axis, rng.normal(size=3))
            kinds = {
                "U": ax.Universal(axis, tuple(across / np.linalg.norm(across))),
                "S": ax.Spherical(),
                "P": ax.Prismatic(axis),
                "R": ax.Revolute(axis),
            }
            join = bot.add_joint if j < 2 or k == 0 else bot.add_loop
            more = {"coordinates": (f"d{k}",)} if j == driven else {}
            shift = (0, 0, 1) if j == 2 else (0, 0, 0)
            join(
                f"{letter}{k}{j}",
                kinds[letter],
                parent=parent,
                child=child,
                at=tuple(place),
                child_at=tuple(place - shift),
                **more,
            )
            parent = child
        bot.add_motor(f"motor{k}", f"d{k}")
    return bot


@cache
def known_robot(name: str) -> ax.Kinematics:
    """A robot that tests share, by the name of its function here or in the gallery."""
    if name == "three_legs_with_knees":
        legs = {"beta": (0.2, 2.3, 4.4), "pi": (0.3, 2.2, 4.3)}
        return ax.Kinematics(ax.gallery.build("six_legged_platform", **legs))
    own = {f.__name__: f for f in (three_rpr, three_rrr, three_rps, spherical_rrr)}
    return ax.Kinematics(own[name]() if name in own else ax.gallery.build(name))
