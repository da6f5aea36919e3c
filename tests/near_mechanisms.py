"""Seeded mechanisms of three kinds: generic, nearly degenerate, and as rounded as files are.

Nearly degenerate: consecutive axes parallel, intersecting or perpendicular, axes along and against
z, lengths zero, masses and inertias tiny, moments equal, each but for 1e-4 ... 1e-15. Rounded:
angles and places with three to nine digits, right angles written as 1.5708 or 3.14159.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

import axode as ax
from axode.mechanism.topology import tree_order
from kinematics_by_hand import matrix, numbers
from random_mechanisms import (
    ALL_JOINTS,
    CLOSURES,
    Rng,
    act_on,
    close_loop,
    random_coordinates,
    random_joint,
    random_loop,
    random_tensor,
    random_tree,
    random_vehicle,
)

KINDS = ("generic", "nearly", "rounded")
SHAPES = ("tree", "loop", "vehicle")
TREE_KINDS = ("revolute", *ALL_JOINTS)
TREE_ODDS = (0.5, *(0.5 / len(ALL_JOINTS),) * len(ALL_JOINTS))


def mechanism_of(kind: str, shape: str, seed: int, size: int = 3) -> ax.Mechanism:
    """The mechanism of a seed: a name is enough to make it again."""
    rng = np.random.default_rng([KINDS.index(kind), SHAPES.index(shape), seed])
    name = f"{kind} {shape} {seed}"
    acted_on = bool(rng.random() < 0.3)
    if kind == "generic":
        make = {
            "tree": lambda: random_tree(rng, int(rng.integers(1, size + 1)), acted_on=acted_on),
            "loop": lambda: random_loop(rng, acted_on=acted_on),
            "vehicle": lambda: random_vehicle(rng, acted_on=acted_on),
        }[shape]
        return replace(make(), name=name)
    near = Near(rng, exact=kind == "rounded")
    bot = {"tree": near_tree, "loop": near_loop, "vehicle": near_vehicle}[shape](near, size)
    bot.name = name
    if acted_on:
        act_on(bot, rng)
    return rounded(bot, rng) if kind == "rounded" else bot


class Near:
    """Draws of special values that are off by a little, or by nothing."""

    def __init__(self, rng: Rng, *, exact: bool) -> None:
        self.rng = rng
        self.exact = exact
        self.e = 0.0 if exact else 10.0 ** -rng.uniform(4.0, 15.0)

    def off(self, values: Any) -> np.ndarray:
        """Values that are off by e, half of the time."""
        values = np.asarray(values, dtype=float)
        if self.rng.random() < 0.5:
            return values
        return values + self.e * self.rng.normal(size=values.shape)

    def axis(self) -> tuple[float, ...]:
        """Nearly along or against a coordinate axis, z more often than others."""
        i = int(self.rng.choice([2, 2, 0, 1]))
        axis = self.off(np.eye(3)[i] * self.rng.choice([-1.0, 1.0]))
        return tuple(axis / np.linalg.norm(axis))

    def angles(self) -> tuple[float, ...]:
        """Roll, pitch and yaw of nearly right angles, now and then any."""
        if self.rng.random() < 0.2:
            return tuple(self.rng.uniform(-math.pi, math.pi, 3))
        right = self.rng.integers(-1, 3, 3) * (self.rng.random(3) < 0.5)
        return tuple(self.off(right * math.pi / 2))

    def point(self) -> tuple[float, ...]:
        """Nearly zero in some directions."""
        return tuple(self.off(self.rng.uniform(-0.4, 0.4, 3) * (self.rng.random(3) < 0.5)))

    def placement(self) -> dict[str, Any]:
        """Where a joint stands on its two bodies; its child is often left as it is."""
        place = {"at": self.point(), "rotation": self.angles()}
        if self.rng.random() < 0.4:
            place |= {"child_at": self.point(), "child_rotation": self.angles()}
        return place

    def joint(self, kind: str) -> Any:
        """A joint with special directions."""
        joint = random_joint(self.rng, kind)
        if joint.directions == ("axis",):
            return replace(joint, axis=self.axis())
        return ax.Universal("x", "y") if isinstance(joint, ax.Universal) else joint

    def body(self, bot: ax.Mechanism, name: str) -> Any:
        """A body whose mass, mass centre and inertia are special or small."""
        rng = self.rng
        mass = rng.uniform(0.5, 3.0)
        if rng.random() < 0.1 and not self.exact:
            mass *= 10.0 ** -rng.uniform(4.0, 12.0)
        tensor = random_tensor(rng, mass)
        form = rng.integers(3)
        if form == 0:
            moments = np.array([1.0, 1.0, rng.choice([0.5, 1.0, 1.7])]) * tensor[0, 0]
            tensor = np.diag(rng.permutation(moments) + self.e * tensor[0, 0] * rng.random(3))
        elif form == 1 and not self.exact:
            tensor = tensor * 10.0 ** -rng.uniform(4.0, 15.0)
        com = self.point()
        return bot.add_body(name, mass=mass, com=com, inertia=tensor)


def near_tree(near: Near, size: int) -> ax.Mechanism:
    """A chain, branching now and then."""
    rng, bot = near.rng, ax.Mechanism("tree")
    for i in range(int(rng.integers(2, size + 1))):
        parent: Any = bot.ground if i == 0 else bot.bodies[-1 if rng.random() < 0.8 else 0]
        body = near.body(bot, f"body{i}")
        kind = str(rng.choice(TREE_KINDS, p=TREE_ODDS))
        bot.add_joint(f"joint{i}", near.joint(kind), parent=parent, child=body, **near.placement())
    return bot


def near_loop(near: Near, size: int) -> ax.Mechanism:
    """Two branches of the ground, closed by a joint of any kind."""
    rng, bot = near.rng, ax.Mechanism("loop")
    closure = near.joint(str(rng.choice(CLOSURES)))
    freedoms = 6 - closure.dof + int(rng.integers(1, 3))
    ends, moving = ["ground", "ground"], 0
    kinds = ("revolute", "prismatic", "cylindrical", "universal", "spherical")
    while moving < freedoms or "ground" in ends:
        joint = near.joint(str(rng.choice(kinds, p=[0.4, 0.1, 0.1, 0.1, 0.3])))
        side = int(rng.integers(2))
        body = near.body(bot, f"link{len(bot.bodies)}")
        name = f"joint{len(bot.bodies) - 1}"
        bot.add_joint(name, joint, parent=ends[side], child=body, **near.placement())
        ends[side], moving = body.name, moving + joint.dof
    home: dict[str, float] = {}
    for connection in tree_order(bot):
        values = random_coordinates(rng, connection.joint)
        home |= dict(zip(connection.coordinates, map(float, values), strict=True))
    close_loop(bot, rng, "closure", closure, ends[0], ends[1], home)
    bot.set_home(home)
    return bot


def near_vehicle(near: Near, size: int) -> ax.Mechanism:
    """A chassis on nearly level ground, wheels nearly upright and nearly along its axes."""
    rng, bot = near.rng, ax.Mechanism("vehicle")
    plane = ax.Plane()
    if rng.random() < 0.3:
        plate = near.body(bot, "plate")
        bot.add_joint(
            "mount", near.joint("revolute"), parent=bot.ground, child=plate, **near.placement()
        )
        plane = ax.Plane(normal=tuple(np.eye(3)[rng.integers(3)] * rng.choice([-1, 1])), on=plate)
    chassis = near.body(bot, "chassis")
    base: Any = ax.Planar() if rng.random() < 0.4 else ax.Floating()
    turn = shortest_matrix(numbers(plane.normal))
    bot.add_joint("base", base, parent=plane.on, child=chassis, rotation=turn)
    upright = isinstance(base, ax.Planar)
    corners = [(0.3, 0.2), (0.3, -0.2), (-0.3, 0.2)]
    radius = round(float(rng.uniform(0.08, 0.15)), 3)
    for k, corner in enumerate(corners[: int(rng.integers(1, 4))]):
        axis = np.array([*np.eye(2)[rng.integers(2)], 0.0])
        if not upright:
            axis = near.off(axis)
            axis /= np.linalg.norm(axis)
        wheels = (
            ax.Rolling(radius),
            ax.Rolling(radius, lateral="free"),
            ax.Omni(radius),
            ax.Mecanum(radius),
            ax.Ball(radius),
            ax.Ball(radius, lateral="free"),
        )
        wheel = wheels[int(rng.integers(len(wheels)))]
        motor = k == 0 and wheel.has_axis
        bot.add_wheel(
            f"wheel{k}",
            wheel,
            on=chassis,
            at=(*near.off(corner), radius),
            axis=tuple(axis),
            mass=0.5,
            ground=plane,
            motor=motor,
        )
    return bot


def shortest_matrix(normal: np.ndarray) -> np.ndarray:
    """Axes whose z is along a coordinate axis, exactly."""
    i = int(np.argmax(np.abs(normal)))
    columns = {0: [2, 1, 0], 1: [0, 2, 1], 2: [0, 1, 2]}[i]
    R = np.zeros((3, 3))
    R[columns, range(3)] = 1.0
    R[:, 2] = normal
    R[:, 0] *= np.linalg.det(R)
    return R


# rounding ----------------------------------------------------------------------------------------


def rounded(bot: ax.Mechanism, rng: Rng) -> ax.Mechanism:
    """The same with its numbers written with a few digits."""
    digits = int(rng.integers(3, 10))

    def short(values: Any) -> tuple[float, ...]:
        return tuple(float(round(x, digits)) for x in numbers(values))

    def place(connection: Any) -> Any:
        turns = {
            name: as_written(getattr(connection, name), digits, rng)
            for name in ("rotation", "child_rotation")
        }
        return replace(
            connection, at=short(connection.at), child_at=short(connection.child_at), **turns
        )

    bodies = []
    for body in bot.bodies:
        entries = [float(f"{x:.{digits}g}") for x in numbers(body.inertia.entries)]
        inertia = ax.Inertia(*entries, ideal=body.inertia.ideal)
        bodies.append(replace(body, com=short(body.com), inertia=inertia))
    bot.bodies = bodies
    bot.connections = [place(connection) for connection in bot.connections]
    bot.loops = [place(loop) for loop in bot.loops]
    return bot


def as_written(rotation: Any, digits: int, rng: Rng) -> Any:
    """A rotation as roll-pitch-yaw, a quaternion or a matrix of so many digits."""
    R = matrix(rotation)
    form = rng.integers(4) if digits >= 7 else 0
    if form == 1:
        return tuple(tuple(float(round(x, digits)) for x in row) for row in R)
    angles = roll_pitch_yaw(R)
    if form == 2:
        (cr, sr), (cp, sp), (cy, sy) = ((math.cos(a / 2), math.sin(a / 2)) for a in angles)
        q = (
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        )
        return tuple(float(round(x, digits)) for x in q)
    return tuple(float(round(x, digits)) for x in angles)


def roll_pitch_yaw(R: np.ndarray) -> tuple[float, float, float]:
    """Angles about fixed x, y, z."""
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if abs(R[2, 0]) > 1 - 1e-12:
        return 0.0, pitch, math.atan2(-R[0, 1], R[1, 1])
    return math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])
