"""Parallel robots of the literature on singularities, with their joint angles in closed form."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import axode as ax

CRANK, LINK = 0.35, 0.45


def rotation(angle: float) -> np.ndarray:
    """Rotation of the plane."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s], [s, c]])


class PlanarRRR:
    """Three cranks, three links, a platform with three points; any leg may come first.

    Args:
        base: Points of the motors, (3, 2).
        platform: Points of the platform in its own frame, (3, 2).
        home: Pose x, y, angle at which it is described.
        elbows: Side to which each leg bends.
        order: Order in which the legs are added; the tree runs through the first.
        scale: Factor of all lengths.
        turn: Angle by which everything is turned in the world [rad].
    """

    def __init__(
        self,
        base: np.ndarray,
        platform: np.ndarray,
        home: Sequence[float],
        elbows: Sequence[float] = (1, 1, 1),
        order: Sequence[int] = (0, 1, 2),
        scale: float = 1.0,
        turn: float = 0.0,
    ) -> None:
        self.base, self.platform = base * scale, platform * scale
        self.elbows, self.order, self.scale, self.turn = elbows, order, scale, turn
        bot = ax.Mechanism("planar_rrr", gravity=(0, 0, 0))
        l1, l2 = CRANK * scale, LINK * scale
        bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
        for n, k in enumerate(order):
            x, y = rotation(turn) @ self.base[k]
            crank = bot.add_body(f"crank{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
            link = bot.add_body(f"link{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
            bot.add_joint(
                f"theta{k}",
                ax.Revolute("z"),
                parent=bot.ground,
                child=crank,
                at=(x, y, 0),
                rotation=(0, 0, turn),
            )
            bot.add_joint(f"beta{k}", ax.Revolute("z"), parent=crank, child=link, at=(l1, 0, 0))
            px, py = self.platform[k]
            bot.add_joint(
                f"gamma{k}" if n == 0 else f"pin{k}",
                ax.Revolute("z"),
                parent=link,
                child="platform",
                at=(l2, 0, 0),
                child_at=(px, py, 0),
            )
        for k in range(3):
            bot.add_motor(f"motor{k}", f"theta{k}")
        angles = self.angles(home)
        names = {f"theta{k}": angles[k, 0] for k in range(3)}
        names |= {f"beta{k}": angles[k, 1] for k in range(3)}
        first = order[0]
        names[f"gamma{first}"] = home[2] - angles[first].sum()
        bot.set_home(names)
        self.robot = ax.Kinematics(bot, "platform")

    def points(self, pose: Sequence[float]) -> np.ndarray:
        """Points of the platform, before the turn of the world."""
        return np.array(pose[:2]) * self.scale + self.platform @ rotation(pose[2]).T

    def angles(self, pose: Sequence[float]) -> np.ndarray:
        """Angles of cranks and links relative to them, (3, 2)."""
        d = self.points(pose) - self.base
        l1, l2 = CRANK * self.scale, LINK * self.scale
        far = np.linalg.norm(d, axis=1)
        at_base = np.arccos(np.clip((far**2 + l1**2 - l2**2) / (2 * far * l1), -1, 1))
        bend = np.pi - np.arccos(np.clip((l1**2 + l2**2 - far**2) / (2 * l1 * l2), -1, 1))
        theta = np.arctan2(d[:, 1], d[:, 0]) - np.array(self.elbows) * at_base
        return np.stack([theta, np.array(self.elbows) * bend], axis=1)

    def state(self, pose: Sequence[float]) -> np.ndarray:
        """Coordinates at a pose."""
        angles = self.angles(pose)
        first = self.order[0]
        values = {f"theta{k}": angles[k, 0] for k in range(3)}
        values |= {f"beta{k}": angles[k, 1] for k in range(3)}
        values[f"gamma{first}"] = pose[2] - angles[first].sum()
        return np.array([values[name] for name in self.robot.model.coordinates])

    def directions(self, pose: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
        """Unit vectors of the links and vectors of the cranks, before the turn of the world."""
        angles = self.angles(pose)
        crank = angles[:, 0]
        link = angles.sum(axis=1)
        along = np.stack([np.cos(link), np.sin(link)], axis=1)
        arm = CRANK * self.scale * np.stack([np.cos(crank), np.sin(crank)], axis=1)
        return along, arm


CORNERS = 0.15 * np.array([[math.cos(a), math.sin(a)] for a in (-2.4, -0.6, 1.5)])
BENDS = (1.3, -1.1, 1.5)  # [rad] from cranks to links at the singular configurations


@functools.cache
def concurrent(meet: tuple[float, float] | None, **options: Any) -> PlanarRRR:
    """Make a 3-RRR whose links meet in a point at the pose zero, or are parallel without one."""
    ends = CORNERS
    if meet is None:
        along = np.tile([0.6, 0.8], (3, 1)) * np.array([[1.0], [-1.0], [1.0]])
    else:
        along = np.array(meet) - ends
        along /= np.linalg.norm(along, axis=1)[:, np.newaxis]
    elbows = ends - LINK * along
    arms = np.array([rotation(-bend) @ u for bend, u in zip(BENDS, along, strict=True)])
    signs = np.sign(BENDS)
    return PlanarRRR(elbows - CRANK * arms, CORNERS, (0.03, -0.02, 0.12), signs, **options)


@functools.cache
def hexapod() -> ax.Kinematics:
    """The flight simulator."""
    return ax.Kinematics(ax.gallery.build("flight_simulator"), "platform")


@functools.cache
def five_bar() -> ax.Kinematics:
    """The five-bar with its tool."""
    return ax.Kinematics(ax.gallery.build("five_bar"), "tool")


@functools.cache
def translating_upu(radial: bool = False) -> ax.Kinematics:
    """A 3-UPU whose platform translates: outer axes of a leg are parallel, inner ones too.

    L.-W. Tsai, "Kinematics of a three-DOF platform with extensible limbs", 1996. The wrench of
    a leg is a couple along the leg's part across the outer axis.

    Args:
        radial: Outer axes point to the middle instead of along the circle: all couples vertical.
    """
    R, r, height = 0.5, 0.2, 0.4
    bot = ax.Mechanism("upu", gravity=(0, 0, 0))
    bot.add_body("platform", mass=1.0, inertia=(0.1, 0.1, 0.1))
    length, angle = math.hypot(R - r, height), math.atan2(height, R - r)
    for k in range(3):
        turn = 2 * math.pi * k / 3
        c, s = math.cos(turn), math.sin(turn)
        lower = bot.add_body(f"lower{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        upper = bot.add_body(f"upper{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        axes = ("x", "y") if radial else ("y", "z")
        # the leg's frame: x towards the middle, y along the circle; the leg lies along -x at rest
        bot.add_joint(
            f"base{k}",
            ax.Universal(*axes),
            parent=bot.ground,
            child=lower,
            at=(R * c, R * s, 0),
            rotation=(0, 0, turn),
        )
        bot.add_joint(f"l{k}", ax.Prismatic("-x"), parent=lower, child=upper)
        bot.add_joint(
            f"top{k}",
            ax.Universal(axes[1], axes[0]),
            parent=upper,
            child="platform",
            child_at=(r * c, r * s, 0),
            child_rotation=(0, 0, turn),
        )
        bot.add_motor(f"motor{k}", f"l{k}")
        own = (0.0, angle) if radial else (angle, 0.0)
        bot.set_home({f"base{k}.first": own[0], f"base{k}.second": own[1], f"l{k}": length})
    if radial:
        bot.set_home({"top0.first": -angle, "top0.second": 0.0})
    else:
        bot.set_home({"top0.first": 0.0, "top0.second": -angle})
    return ax.Kinematics(bot, "platform")


def upu_state(height: float, R: float = 0.5, r: float = 0.2) -> dict[str, float]:
    """Coordinates of the 3-UPU with the platform above the middle."""
    length, angle = math.hypot(R - r, height), math.atan2(height, R - r)
    state = {"top0.first": 0.0, "top0.second": -angle}
    for k in range(3):
        state |= {f"base{k}.first": angle, f"base{k}.second": 0.0, f"l{k}": length}
    return state


@functools.cache
def agile_eye() -> ax.Kinematics:
    """The agile eye: a spherical 3-RRR all of whose angles are right angles.

    C. Gosselin, J.-F. Hamel, "The agile eye", IEEE Int. Conf. Robotics and Automation, 1994.
    """
    bot = ax.Mechanism("agile_eye", gravity=(0, 0, 0))
    bot.add_body("camera", mass=1.0, inertia=(0.1, 0.1, 0.1))
    axes = np.eye(3)
    for k in range(3):
        u, w, v = axes[k], axes[(k + 1) % 3], -axes[(k + 2) % 3]  # at home
        first = bot.add_body(f"first{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        second = bot.add_body(f"second{k}", mass=1.0, inertia=(0.01, 0.01, 0.01))
        parts = ((bot.ground, first, u), (first, second, w), (second, "camera", v))
        for name, (parent, child, axis) in zip("abc", parts, strict=True):
            bot.add_joint(f"{name}{k}", ax.Revolute(tuple(axis)), parent=parent, child=child)
        bot.add_motor(f"motor{k}", f"a{k}")
    return ax.Kinematics(bot, "camera")
