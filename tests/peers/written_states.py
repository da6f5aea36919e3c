"""States of a mechanism in the joints of the files written of it, by the joints' names.

Written from the words of the description and the names in the files alone: a universal joint is two
hinges `name.first` and `name.second`, and so on.
"""

from __future__ import annotations

import math

import numpy as np

import axode as ax
from axode.mechanism.elements.joints import AbstractJoint
from axode.mechanism.elements.parts import Connection
from axode.mechanism.topology import tree_order
from axode.mechanism.values.expressions import numeric
from kinematics_by_hand import pose, quaternion_turn, turn
from random_mechanisms import random_coordinates

STEP = 5e-4  # [s] of the five-point formula for rates of rates
Part = tuple[str, np.ndarray, np.ndarray]  # name of a joint in a file, its coordinates, its rates


def random_state(bot: ax.Mechanism, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random coordinates of every joint, by its name."""
    return {c.name: random_coordinates(rng, c.joint) for c in tree_order(bot)}


def moved(joint: AbstractJoint, q: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    """Coordinates after a short time of constant speeds."""
    if isinstance(joint, ax.Planar):
        angle, rate = q[2], v[2]
        ahead = _turned_path(turn(np.eye(3)[2], angle), np.array([0, 0, rate]), v[:2], t)
        return np.array([q[0] + ahead[0], q[1] + ahead[1], angle + rate * t])
    if not joint.has_quaternion:
        return q + v * t
    w, q_new = v[:3], _times(q[:4], _exponential(v[:3] * t))
    if len(q) == 4:
        return q_new
    shift = _turned_path(quaternion_turn(q[:4]), w, v[3:], t)
    return np.concatenate([q_new, q[4:] + shift])


def _turned_path(R: np.ndarray, w: np.ndarray, v: np.ndarray, t: float) -> np.ndarray:
    """Way of an origin whose velocity is constant in axes that turn; Gauss's rule in time."""
    v = np.concatenate([v, np.zeros(3 - len(v))])
    nodes, weights = np.polynomial.legendre.leggauss(6)
    times = t * (nodes + 1) / 2
    return sum(t / 2 * k * R @ _rotation(w * s) @ v for s, k in zip(times, weights, strict=True))


def _rotation(w: np.ndarray) -> np.ndarray:
    return quaternion_turn(_exponential(w))


def _exponential(w: np.ndarray) -> np.ndarray:
    half = np.linalg.norm(w) / 2
    return np.array([math.cos(half), *(0.5 * np.sinc(half / math.pi) * w)])


def _times(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    w = a[0] * b[0] - a[1:] @ b[1:]
    return np.array([w, *(a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:]))])


def parts(connection: Connection, q: np.ndarray, v: np.ndarray, *, whole: set[str]) -> list[Part]:
    """The joints that one is in a file, with coordinates and rates.

    `whole` holds the kinds that the file has: "planar", "ball", "free", "free in the world".
    """
    joint, name = connection.joint, connection.name
    kind = type(joint).__name__.lower()
    if kind == "fixed":
        return []
    if kind in ("revolute", "prismatic") or kind in whole:
        return [(name, q, v)]
    if kind == "screw":
        pitch = numeric(joint.pitch)
        return [(name, q, v), (f"{name}.advance", pitch * q, pitch * v)]
    if kind in ("cylindrical", "universal"):
        suffixes = joint.coordinate_names
        return [(f"{name}.{s}", q[k : k + 1], v[k : k + 1]) for k, s in enumerate(suffixes)]
    if kind == "planar":
        rates = turn(np.eye(3)[2], q[2]) @ [v[0], v[1], 0.0]
        values = (q[0], rates[0]), (q[1], rates[1]), (q[2], v[2])
        return [
            (f"{name}.{s}", np.array([x]), np.array([r]))
            for s, (x, r) in zip(("x", "y", "yaw"), values, strict=True)
        ]
    if kind == "spherical":
        return _three_hinges(name, q, v)
    R = quaternion_turn(q[:4])
    if "free in the world" in whole and connection.parent == "ground":
        at = pose(connection.at, connection.rotation)
        turned = _quaternion(at[:3, :3] @ R)
        place = at[:3, :3] @ q[4:] + at[:3, 3]
        rates = np.concatenate([at[:3, :3] @ R @ v[3:], v[:3]])
        return [(name, np.concatenate([place, turned]), rates)]
    slides = [
        (f"{name}.{s}", q[4 + k : 5 + k], (R @ v[3:])[k : k + 1]) for k, s in enumerate("xyz")
    ]
    return [*slides, (f"{name}.turn", q[:4], v[:3])]


def _three_hinges(name: str, q: np.ndarray, v: np.ndarray) -> list[Part]:
    R = quaternion_turn(q)
    first, second = math.atan2(-R[1, 2], R[2, 2]), math.asin(R[0, 2])
    third = math.atan2(-R[0, 1], R[0, 0])
    after = turn(np.eye(3)[1], second) @ turn(np.eye(3)[2], third)
    axes = np.column_stack([after.T[:, 0], turn(np.eye(3)[2], third).T[:, 1], [0, 0, 1]])
    rates = np.linalg.solve(axes, v)
    return [
        (f"{name}.turn_{s}", np.array([x]), np.array([r]))
        for s, x, r in zip("xyz", (first, second, third), rates, strict=True)
    ]


def _quaternion(R: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    return Rotation.from_matrix(R).as_quat(scalar_first=True)


class SpeedMap:
    """All joints of a file at a state: their coordinates, N of rates N v, and N_dot v."""

    def __init__(
        self, bot: ax.Mechanism, q: dict[str, np.ndarray], v: np.ndarray, whole: set[str]
    ) -> None:
        self.bot, self.whole = bot, whole
        joints = tree_order(bot)
        ends = np.cumsum([0, *(c.joint.dof for c in joints)])
        self.slices = {c.name: slice(a, b) for c, a, b in zip(joints, ends, ends[1:], strict=False)}
        self.coordinates = {name: x for name, x, _ in self._parts(q, v)}
        self.names = list(self.coordinates)
        columns = [self._rates(q, e) for e in np.eye(len(v))]
        self.N = np.column_stack(columns)
        ahead = {
            k: {c.name: moved(c.joint, q[c.name], v[self.slices[c.name]], k * STEP) for c in joints}
            for k in (-2, -1, 1, 2)
        }
        rates = {k: self._rates(x, v) for k, x in ahead.items()}
        self.N_dot_v = (8 * (rates[1] - rates[-1]) - rates[2] + rates[-2]) / (12 * STEP)
        self.rates = self._rates(q, v)

    def _parts(self, q: dict[str, np.ndarray], v: np.ndarray) -> list[Part]:
        found: list[Part] = []
        for c in tree_order(self.bot):
            found += parts(c, q[c.name], v[self.slices[c.name]], whole=self.whole)
        return found

    def _rates(self, q: dict[str, np.ndarray], v: np.ndarray) -> np.ndarray:
        rates = [r for _, _, r in self._parts(q, v)]
        return np.concatenate(rates) if rates else np.zeros(0)

    def widths(self) -> list[int]:
        """How many rates each joint of the file has."""
        size = {4: 3, 7: 6}
        return [size.get(len(x), len(x)) for x in self.coordinates.values()]
