"""Robots of any number of joints, as walking and wheeled ones are built: limbs and hands."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import axode as ax
from axode.mechanism.elements.bodies import Body
from benchmarks.mechanisms import general_inertia

LIMBS, LIMB_JOINTS, FINGER_JOINTS = 4, 7, 4
RODS = 4  # push rods, one per limb
WHEEL_RADIUS, TRACK = 0.1, 0.4  # [m]


def _grow(robot: ax.Mechanism, trunk: Body, joints: int) -> None:
    """Add driven revolute joints: four limbs turn by turn, then fingers on their ends."""
    rng = np.random.default_rng(7)
    parents, lengths = [trunk] * LIMBS, [0] * LIMBS
    hands: dict[int, Body] = {}
    for number in range(joints):
        k = number % LIMBS
        if lengths[k] < LIMB_JOINTS:
            name = f"limb{k}.{lengths[k]}"
            at = (0.15, 0.02, -0.03)
            if lengths[k] == 0:
                at = (0.2 * math.cos(1.6 * k), 0.2 * math.sin(1.6 * k), 0.1)
        else:
            finger, joint = divmod(lengths[k] - LIMB_JOINTS, FINGER_JOINTS)
            if joint == 0:
                parents[k] = hands[k]
            name, at = f"finger{k}.{finger}.{joint}", tuple(rng.uniform(-0.05, 0.05, 3))
        link = robot.add_body(name, **general_inertia(number))
        axis = "zyx"[(number // LIMBS) % 3]
        robot.add_joint(name, ax.Revolute(axis), parent=parents[k], child=link, at=at)
        robot.add_motor(name, name)
        parents[k], lengths[k] = link, lengths[k] + 1
        if lengths[k] == LIMB_JOINTS:
            hands[k] = link


def floating(speeds: int) -> ax.Mechanism:
    """A robot on a floating base, every joint driven."""
    robot = ax.Mechanism(f"floating{speeds}")
    trunk = robot.add_body("trunk", **general_inertia(1000))
    robot.add_joint("base", ax.Floating(), parent=robot.ground, child=trunk)
    _grow(robot, trunk, speeds - 6)
    return robot


def fixed(speeds: int) -> ax.Mechanism:
    """The same limbs on a trunk that turns about a fixed axis."""
    robot = ax.Mechanism(f"fixed{speeds}")
    trunk = robot.add_body("trunk", **general_inertia(1000))
    robot.add_joint("base", ax.Revolute("z"), parent=robot.ground, child=trunk)
    robot.add_motor("base", "base")
    _grow(robot, trunk, speeds - 1)
    return robot


def with_rods(speeds: int) -> ax.Mechanism:
    """A floating robot whose limbs are moved by push rods: four loops, closed by ball joints.

    A rod adds three speeds and its loop takes them again.
    """
    robot = floating(speeds)
    robot.name = f"rods{speeds}"
    for k in range(min(RODS, speeds - 6)):
        sleeve = robot.add_body(f"sleeve{k}", **general_inertia(2000 + k))
        rod = robot.add_body(f"rod{k}", **general_inertia(3000 + k))
        foot = (0.2 * math.cos(1.6 * k), 0.2 * math.sin(1.6 * k), -0.2)
        robot.add_joint(f"pivot{k}", ax.Universal("x", "y"), parent="trunk", child=sleeve, at=foot)
        robot.add_joint(f"rod{k}", ax.Prismatic("z"), parent=sleeve, child=rod)
        robot.add_loop(
            f"ball{k}", ax.Spherical(), parent=rod, child=f"limb{k}.0", child_at=(0.05, 0.0, 0.02)
        )
        robot.add_motor(f"rod{k}", f"rod{k}")
    robot.set_home({f"rod{k}": 0.3 for k in range(min(RODS, speeds - 6))})
    return robot


def on_wheels(speeds: int) -> ax.Mechanism:
    """Limbs on a base that balances on two rolling wheels: three speeds besides the joints'."""
    robot = ax.Mechanism(f"wheels{speeds}")
    trunk = robot.add_body("trunk", **general_inertia(1000))
    robot.add_joint("base", ax.Floating(), parent=robot.ground, child=trunk)
    for side, y in (("left", TRACK / 2), ("right", -TRACK / 2)):
        wheel = ax.Rolling(radius=WHEEL_RADIUS)
        robot.add_wheel(side, wheel, on=trunk, at=(0.0, y, 0.0), mass=0.5, motor=True)
    robot.set_home({"base.z": WHEEL_RADIUS})
    _grow(robot, trunk, speeds - 3)
    return robot


def passive(speeds: int) -> ax.Mechanism:
    """A floating robot, only every fifth joint driven."""
    robot = floating(speeds)
    robot.name = f"passive{speeds}"
    kept = [drive for k, drive in enumerate(robot.drives) if k % 5 == 0]
    robot.drives[:] = kept
    return robot


def snake(speeds: int) -> ax.Mechanism:
    """A floating chain without branches: the longest paths there are."""
    robot = ax.Mechanism(f"snake{speeds}")
    parent = robot.add_body("head", **general_inertia(1000))
    robot.add_joint("base", ax.Floating(), parent=robot.ground, child=parent)
    for number in range(speeds - 6):
        link = robot.add_body(f"link{number}", **general_inertia(number))
        robot.add_joint(
            f"link{number}",
            ax.Revolute("zy"[number % 2]),
            parent=parent,
            child=link,
            at=(0.1, 0.01, 0.0),
        )
        robot.add_motor(f"link{number}", f"link{number}")
        parent = link
    return robot


ROBOTS: dict[str, Callable[[int], ax.Mechanism]] = {
    "floating": floating,
    "fixed": fixed,
    "push rods": with_rods,
    "wheels": on_wheels,
    "few motors": passive,
    "snake": snake,
}
