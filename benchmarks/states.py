"""Random states, none of them special: consistent where loops must close."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import axode as ax
from benchmarks.mechanisms import PLATFORM_HEIGHT, platform_coordinates

TILT, SHIFT = 0.1, 0.08  # of a platform from home: parts of a quaternion, and [m]
FORCE = 50.0  # [N or N m], of motors


@dataclass(frozen=True)
class States:
    """Samples of a motion: one row a sample, in the model's order."""

    q: np.ndarray
    nu: np.ndarray
    nu_dot: np.ndarray
    u: np.ndarray
    v: np.ndarray  # all joint speeds
    force: np.ndarray  # of the motors, on all joint speeds

    def __len__(self) -> int:
        return len(self.q)

    def first(self, count: int) -> States:
        """Some of them."""
        return States(
            self.q[:count],
            self.nu[:count],
            self.nu_dot[:count],
            self.u[:count],
            self.v[:count],
            self.force[:count],
        )

    def arguments(self, names: tuple[str, ...]) -> list[np.ndarray]:
        """Those that a function takes, contiguous."""
        return [np.ascontiguousarray(getattr(self, name)) for name in names]


def random_states(mechanism: ax.Mechanism, model: ax.Model, count: int, seed: int = 0) -> States:
    """States of a tree of single joints, or of a platform whose legs reach it."""
    rng = np.random.default_rng(seed)
    n, motors = len(model.independent), len(model.inputs)
    if mechanism.loops:
        q = np.array([_platform(mechanism, model, rng) for _ in range(count)])
    else:
        q = rng.uniform(-2, 2, (count, len(model.coordinates)))
    nu, nu_dot = rng.uniform(-1, 1, (2, count, n))
    u = rng.uniform(-FORCE, FORCE, (count, motors))
    v = model.joint_speeds(q, nu)
    force = np.zeros_like(v)
    driven = [model.speed_names.index(f"{drive.coordinate}.rate") for drive in mechanism.drives]
    force[:, driven] = u
    return States(q, nu, nu_dot, u, v, force)


def _platform(mechanism: ax.Mechanism, model: ax.Model, rng: np.random.Generator) -> list[float]:
    quaternion = np.array([1.0, *rng.uniform(-TILT, TILT, 3)])
    position = np.array([0.0, 0.0, PLATFORM_HEIGHT]) + rng.uniform(-SHIFT, SHIFT, 3)
    unit = quaternion / np.linalg.norm(quaternion)
    named = platform_coordinates(len(mechanism.loops), position, unit)
    return [named[name] for name in model.coordinates]
