"""Robots whose postures are known: platforms, arms and loops."""

import functools

import numpy as np

import axode as ax
from axode.mechanism.elements.parts import Connection
from axode.mechanism.values.expressions import numeric

BASE = np.array([[0.5, -0.3], [0.1, 0.6], [-0.6, -0.2]])
TOP = np.array([[0.3, -0.1], [-0.05, 0.25], [-0.2, -0.25]])


@functools.cache
def gallery_robot(name, output=None):
    """A robot of the gallery, made once for all tests."""
    return ax.Kinematics(ax.gallery.build(name), output)


def _link(bot, name):
    return bot.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))


def planar_platform(order, unit=1.0):
    """A planar 3-RPR with driven slides, its legs in some order, in metres times a unit."""
    bot = ax.Mechanism("planar")
    _link(bot, "platform")
    turn = 0.3
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    for place, k in enumerate(order):
        span = unit * (np.array([0.05, 0.02]) + R @ TOP[k] - BASE[k])
        angle = float(np.arctan2(span[1], span[0]))
        leg, rod = _link(bot, f"leg{k}"), _link(bot, f"rod{k}")
        bot.add_joint(
            f"pivot{k}", ax.Revolute("z"), parent=bot.ground, child=leg, at=(*unit * BASE[k], 0)
        )
        bot.add_joint(f"l{k}", ax.Prismatic("x"), parent=leg, child=rod)
        bot.add_joint(
            f"top{k}", ax.Revolute("z"), parent=rod, child="platform", child_at=(*unit * TOP[k], 0)
        )
        bot.add_motor(f"motor{k}", f"l{k}")
        bot.set_home({f"pivot{k}": angle, f"l{k}": float(np.linalg.norm(span))})
        if place == 0:
            bot.set_home({f"top{k}": turn - angle})
    return bot


def free_platform():
    """The same robot with a platform that floats, and legs that end on it."""
    bot = ax.Mechanism("free")
    _link(bot, "platform")
    bot.add_joint("base", ax.Floating(), parent=bot.ground, child="platform")
    turn = 0.3
    bot.set_home({"base.x": 0.05, "base.y": 0.02, "base.qz": np.sin(turn / 2)})
    bot.set_home({"base.qw": np.cos(turn / 2)})
    R = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    for k in range(3):
        span = np.array([0.05, 0.02]) + R @ TOP[k] - BASE[k]
        leg, rod = _link(bot, f"leg{k}"), _link(bot, f"rod{k}")
        bot.add_joint(f"pivot{k}", ax.Revolute("z"), parent=bot.ground, child=leg, at=(*BASE[k], 0))
        bot.add_joint(f"l{k}", ax.Prismatic("x"), parent=leg, child=rod)
        bot.add_loop(f"top{k}", ax.Revolute("z"), parent="platform", child=rod, at=(*TOP[k], 0))
        bot.add_motor(f"motor{k}", f"l{k}")
        bot.set_home({f"pivot{k}": float(np.arctan2(span[1], span[0]))})
        bot.set_home({f"l{k}": float(np.linalg.norm(span))})
    return bot


def hexapod(rng, shared):
    """A platform on six legs, at an odd pose; legs may share points on the platform."""
    base, top = rng.normal(size=(6, 3)), 0.5 * rng.normal(size=(6, 3))
    base[:, 2] = top[:, 2] = 0.0
    if shared:
        top[3:] = top[:3]
    return ax.gallery.build(
        "gough_stewart", base=base, platform=top, position=(0.1, 0.2, 1.1), rpy_zyx=(0.2, -0.1, 0.4)
    )


def arm(wrist):
    """A serial arm of six revolutes, in general or with three axes that meet."""
    rng = np.random.default_rng(1)
    bot = ax.Mechanism("arm")
    parent = bot.ground
    for k in range(1, 7):
        body = _link(bot, f"link{k}")
        at, rotation = 0.4 * rng.normal(size=3), rng.normal(size=3)
        if wrist and k > 4:
            at, rotation = np.zeros(3), np.array([np.pi / 2 if k == 5 else -np.pi / 2, 0, 0])
        bot.add_joint(
            f"q{k}", ax.Revolute("z"), parent=parent, child=body, at=at, rotation=rotation
        )
        bot.add_motor(f"motor{k}", f"q{k}")
        parent = body
    bot.set_home({f"q{k}": float(x) for k, x in enumerate(rng.uniform(-1, 1, 6), start=1)})
    return bot


def nut():
    """A crank that moves a nut on a screw by a rod with two ball joints."""
    bot = ax.Mechanism("nut")
    crank, nut, rod = (_link(bot, name) for name in ("crank", "nut", "rod"))
    bot.add_joint("crank", ax.Revolute("z"), parent=bot.ground, child=crank)
    bot.add_joint("thread", ax.Screw("x", 0.1), parent=bot.ground, child=nut, at=(0.6, 0, 0))
    bot.add_joint("pin", ax.Spherical(), parent=crank, child=rod, at=(0.2, 0, 0))
    bot.add_loop("end", ax.Spherical(), parent=rod, child=nut, at=(0.5, 0, 0), child_at=(0, 0.1, 0))
    bot.set_home(crank=0.5)
    return bot


def universal_legs():
    """Three legs with a universal joint at either end."""
    bot = ax.Mechanism("3-UPU")
    _link(bot, "platform")
    lean = float(np.arctan2(-0.3, 0.8))
    for k in range(3):
        turn = 2 * np.pi * k / 3
        place = np.array([np.cos(turn), np.sin(turn), 0.0])
        cylinder, rod = _link(bot, f"cylinder{k}"), _link(bot, f"rod{k}")
        bot.add_joint(
            f"base{k}",
            ax.Universal("y", "x"),
            parent=bot.ground,
            child=cylinder,
            at=0.5 * place,
            rotation=(0, 0, turn),
        )
        bot.add_joint(f"l{k}", ax.Prismatic("z"), parent=cylinder, child=rod)
        bot.add_joint(
            f"top{k}",
            ax.Universal("x", "y"),
            parent=rod,
            child="platform",
            child_at=0.2 * place,
            child_rotation=(0, 0, turn),
        )
        bot.add_motor(f"motor{k}", f"l{k}")
        bot.set_home({f"base{k}.first": lean, f"l{k}": float(np.hypot(0.3, 0.8))})
    bot.set_home({"top0.second": -lean})
    return bot


def spatial_four_bar():
    """A crank and a rocker across it, with a rod between ball joints."""
    bot = ax.Mechanism("RSSR")
    crank, rod, rocker = (_link(bot, name) for name in ("crank", "rod", "rocker"))
    bot.add_joint("crank", ax.Revolute("z"), parent=bot.ground, child=crank)
    bot.add_joint("rocker", ax.Revolute("x"), parent=bot.ground, child=rocker, at=(0.6, 0.1, 0))
    c, s, cr, sr = np.cos(0.5), np.sin(0.5), np.cos(1.2), np.sin(1.2)
    span = np.array([0.65, 0.1 + 0.4 * cr, 0.4 * sr]) - [0.2 * c, 0.2 * s, 0.1]
    length = float(np.linalg.norm(span))
    x, y, z = np.array([c * span[0] + s * span[1], c * span[1] - s * span[0], span[2]]) / length
    bot.add_joint("pin", ax.Spherical(), parent=crank, child=rod, at=(0.2, 0, 0.1))
    end = {"at": (length, 0, 0), "child_at": (0.05, 0.4, 0)}
    bot.add_loop("end", ax.Spherical(), parent=rod, child=rocker, **end)
    half = np.array([1 + x, 0.0, -z, y])  # quaternion of the shortest turn from x
    names = [f"pin.q{part}" for part in "wxyz"]
    half /= np.linalg.norm(half)
    bot.set_home({"crank": 0.5, "rocker": 1.2, **dict(zip(names, half.tolist(), strict=True))})
    return bot


def wedge():
    """Three slides in a plane."""
    bot = ax.Mechanism("wedge")
    below, above = _link(bot, "below"), _link(bot, "above")
    bot.add_joint("push", ax.Prismatic("x"), parent=bot.ground, child=below)
    bot.add_joint("slope", ax.Prismatic((0.6, 0.8, 0)), parent=below, child=above)
    bot.add_loop("lift", ax.Prismatic("y"), parent=bot.ground, child=above)
    return bot


def rounded(mechanism):
    """The same mechanism with positions and rotations of five digits."""
    made = mechanism.copy()
    for joints in (made.connections, made.loops):
        joints[:] = [_rounded(joint) for joint in joints]
    return made


def _rounded(joint: Connection) -> Connection:
    places = {
        name: tuple(round(numeric(x), 5) for x in getattr(joint, name))
        for name in ("at", "child_at")
    }
    return type(joint)(**{**joint.__dict__, **places})
