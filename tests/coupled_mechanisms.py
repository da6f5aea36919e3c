"""Mechanisms whose joints are coupled: in trees, across loops, under vehicles, between speeds."""

from __future__ import annotations

import numpy as np

import axode as ax


def gripper_arm(coupled: bool = True, n: int = 7) -> ax.Mechanism:
    """A serial arm whose two fingers close together."""
    bot = ax.Mechanism("arm with a gripper")
    parent = "ground"
    for i in range(n):
        name = f"link{i}"
        bot.add_body(
            name, mass=4.0 / (1 + 0.2 * i), com=(0.01 * i, 0.03, -0.05), inertia=(0.04, 0.03, 0.02)
        )
        bot.add_joint(
            f"joint{i}",
            ax.Revolute("zyzyzyz"[i % 7]),
            parent=parent,
            child=name,
            at=(0, 0, 0.3 if i % 2 else 0.1),
        )
        bot.add_motor(f"joint{i}", f"joint{i}")
        parent = name
    for side, sign in (("left", 1), ("right", -1)):
        bot.add_body(side, mass=0.1, com=(0, 0.01 * sign, 0.03), inertia=(1e-4, 1e-4, 5e-5))
        bot.add_joint(side, ax.Prismatic((0, sign, 0)), parent=parent, child=side, at=(0, 0, 0.1))
    bot.add_motor("grip", "left")
    if coupled:
        bot.add_mimic("fingers", "right", "left")
    return bot


def coupled_tree() -> ax.Mechanism:
    """Relations between coordinates of all kinds, one of three joints, one of speeds alone."""
    bot = ax.Mechanism("coupled tree", gravity=(1.0, -2.0, -9.0))
    ratio = ax.Parameter("ratio", -2.5)
    joints = {
        "base": (ax.Planar((0.6, 0.0, 0.8)), "ground"),
        "tube": (ax.Cylindrical("x"), "base"),
        "cross": (ax.Universal("y", "z"), "tube"),
        "bolt": (ax.Screw("z", pitch=0.1), "base"),
        "ball": (ax.Spherical(), "bolt"),
        "slide": (ax.Prismatic((0.0, 0.6, 0.8)), "cross"),
        "hinge": (ax.Revolute((0.8, 0.6, 0.0)), "cross"),
    }
    for i, (name, (joint, parent)) in enumerate(joints.items()):
        bot.add_body(
            name,
            mass=1.0 + 0.3 * i,
            com=(0.05, 0.1 - 0.04 * i, 0.02 * i),
            inertia=(0.03, 0.04, 0.05),
        )
        bot.add_joint(
            name,
            joint,
            parent=parent,
            child=name,
            at=(0.2, 0.1 * i, -0.1),
            rotation=(0.3, 0.1 * i, -0.2),
        )
    bot.add_gear("gear", "hinge", "bolt", ratio, offset=0.2)
    bot.add_coupling(
        "three",
        {"tube.slide": 1.0, "cross.first": 0.3, "slide": -0.7},
        offset=0.05,
        function=lambda q: 0.1 * np.sin(q["cross.second"] * ratio) * q["base.x"] + q["slide"] ** 2,
    )
    bot.add_coupling("led", {"tube.angle": 1.0, "base.x": 2.0, "base.yaw": -0.5})
    bot.add_coupling("speeds", {"ball.wz": 0.4, "base.surge": 1.0, "hinge": 0.1})
    bot.add_motor("hinge", "hinge")
    bot.add_motor("slide", "slide")
    bot.add_spring("coil", "slide", stiffness=5.0)
    bot.add_damper("friction", "bolt", coefficient=0.3)
    return bot


def geared_five_bar() -> ax.Mechanism:
    """A five-bar linkage whose cranks mesh: one freedom, a loop and a coupling across it."""
    bot = ax.Mechanism("geared five-bar")
    for name, length in (("a", 0.3), ("b", 0.5), ("c", 0.3), ("d", 0.5)):
        bot.add_body(name, mass=length, com=(length / 2, 0.01, 0.02), inertia=(0.01, 0.02, 0.02))
    bot.add_joint("ja", ax.Revolute("y"), parent="ground", child="a", at=(-0.2, 0, 0.2))
    bot.add_joint("jb", ax.Revolute("y"), parent="a", child="b", at=(0.3, 0, 0))
    bot.add_joint("jc", ax.Revolute("y"), parent="ground", child="c", at=(0.2, 0, 0.2))
    bot.add_joint("jd", ax.Revolute("y"), parent="c", child="d", at=(0.3, 0, 0))
    bot.add_loop(
        "tip", ax.Revolute("y"), parent="b", child="d", at=(0.5, 0, 0), child_at=(0.5, 0, 0)
    )
    bot.add_gear("cranks", "ja", "jc", 1.0, offset=-3.1)
    bot.add_motor("crank", "ja")
    bot.set_home(ja=-1.9, jb=0.9, jc=-1.2, jd=-0.9)
    return bot


def cam_five_bar() -> ax.Mechanism:
    """The geared five-bar with gears that are not round, and a cam that lifts a follower."""
    bot = geared_five_bar()
    bot.name, bot.couplings[:] = "cam five-bar", []
    bot.add_coupling("cranks", {"ja": 1.0, "jc": 1.0}, offset=-3.1, function="0.15 * cos(2 * jc)")
    bot.add_body("follower", mass=0.4, com=(0.01, 0.0, 0.03), inertia=(1e-3, 1e-3, 1e-3))
    bot.add_joint("lift", ax.Prismatic("z"), parent="a", child="follower", at=(0.1, 0, 0.1))
    bot.add_cam("groove", "lift", "jd", lambda angle: 0.05 * np.exp(np.sin(angle)))
    return bot


def differential_car(base: str = "planar") -> ax.Mechanism:
    """An engine shaft, a differential, two rolling rear wheels and two steered front wheels."""
    bot = ax.Mechanism("differential car")
    ratio = ax.Parameter("final_drive", 4.0)
    body = bot.add_body("body", mass=20.0, com=(0.4, 0.02, 0.2), inertia=(1.0, 2.0, 2.5))
    joint = ax.Planar() if base == "planar" else ax.Floating()
    bot.add_joint("base", joint, parent=bot.ground, child=body, at=(0, 0, 0.15))
    for name, y in (("left", 0.3), ("right", -0.3)):
        bot.add_wheel(name, ax.Rolling(0.15), on=body, at=(0, y, 0), mass=1.0)
    fork = bot.add_body("fork", mass=1.0, com=(0.02, 0, 0), inertia=(0.02, 0.02, 0.03))
    bot.add_joint("steer", ax.Revolute("z"), parent=body, child=fork, at=(1.0, 0, 0))
    bot.add_wheel("front", ax.Rolling(0.15), on=fork, mass=1.0)
    shaft = bot.add_body("shaft", mass=0.5, inertia=(2e-3, 1e-3, 1e-3))
    bot.add_joint("shaft", ax.Revolute("x"), parent=body, child=shaft, at=(0.3, 0, 0.05))
    bot.add_differential("axle", "shaft", "left", "right", ratio)
    bot.add_motor("engine", "shaft")
    bot.add_motor("steering", "steer")
    bot.set_home(steer=0.3)
    return bot
