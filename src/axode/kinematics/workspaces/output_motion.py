"""How the output of a robot moves: freely, in a plane, about a point, without turning."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from axode.kinematics.workspaces.serial_legs import perpendiculars
from axode.mechanism.values.expressions import numeric
from axode.model.model import Model
from axode.numerics.rank import least_squares, singular_values, singular_vectors

Array = npt.NDArray[np.float64]
MOVES = 1e-7  # least displacement, relative to the size of the robot, or turn that is no rounding
HOLDS = 1e-7  # speed that is rounding, relative to the largest one
NAMES = ("x", "y", "z", "roll", "pitch", "yaw")
Kind = Literal["spatial", "planar", "spherical", "translational", "point", "restricted"]


@dataclass(frozen=True, eq=False)
class OutputMotion:
    """Motions of the output that the joints allow.

    Attributes:
        kind: "spatial" with six freedoms; "planar", "spherical" and "translational" with the three
            of that kind; "point" where the position of the origin determines the rest near home;
            "restricted" otherwise.
        freedoms: Number of freedoms near home.
        r_home, R_home: Its pose at home.
        normal: Normal of the plane of planar motions.
        centre: Fixed point of spherical motions [m].
        twists: Velocity and angular velocity for independent speeds at home, (6, freedoms).
        samples: Some of its poses, home first, (n, 4, 4).
    """

    kind: Kind
    freedoms: int
    r_home: Array
    R_home: Array
    normal: Array
    centre: Array
    twists: Array
    samples: Array

    @cached_property
    def in_plane(self) -> tuple[Array, Array]:
        """Two unit vectors in the plane of planar motions, along axes of the world if these are."""
        k = int(np.argmax(np.abs(self.normal)))
        if abs(self.normal[k]) > 1 - 1e-12:
            first, second = (np.eye(3)[j] for j in range(3) if j != k)
            return first, second
        return perpendiculars(self.normal)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Pose coordinates that may be chosen freely."""
        match self.kind:
            case "spatial":
                return NAMES
            case "translational":
                return NAMES[:3]
            case "spherical":
                return NAMES[3:]
            case "planar":
                k = int(np.argmax(np.abs(self.normal)))
                if abs(self.normal[k]) > 1 - 1e-12:
                    return (*(NAMES[j] for j in range(3) if j != k), NAMES[3 + k])
                return ("u", "v", "turn")
        return self._chosen

    @cached_property
    def _chosen(self) -> tuple[str, ...]:
        """The coordinates that the motions at home change most, one after the other."""
        left = self.twists / np.linalg.norm(self.twists, axis=1).max()
        if self.kind == "point":
            left = left * np.repeat([1.0, 0.0], 3)[:, np.newaxis]
        found = []
        for _ in range(self.freedoms):
            sizes = np.linalg.norm(left, axis=1)
            sizes[[2, 3, 4]] *= 1 + 1e-6  # heights and tilts first where others are as good
            k = int(np.argmax(sizes))
            found.append(k)
            row = left[k] / np.linalg.norm(left[k])
            left = left - np.outer(left @ row, row)
        return tuple(NAMES[k] for k in sorted(found))

    @cached_property
    def basis(self) -> Array:
        """Velocities and angular velocities, as columns, that do not depend on the pose.

        Those of spherical motions turn about the output's origin.
        """
        if self.kind in ("spatial", "restricted"):
            return np.eye(6)
        made = np.zeros((6, self.freedoms))
        if self.kind == "planar":
            made[:3, 0], made[:3, 1] = self.in_plane
            made[3:, 2] = self.normal
        elif self.kind == "spherical":
            made[3:] = np.eye(3)
        else:
            made[[NAMES.index(name) for name in self.names], range(self.freedoms)] = 1.0
        return made


def output_motion(model: Model, output: str) -> OutputMotion:
    """Find how a body moves: from its speeds at home, and from other configurations."""
    body = list(model.bodies).index(output)
    home = model.home
    pose = model.poses(home)[body]
    r, R = pose[:3, 3].copy(), pose[:3, :3].copy()
    twists = _twists_at(model, home, body)
    others = np.array(model.equations.system.samples)
    sampled = [_twists_at(model, q, body) for q in others]
    freedoms = max([_rank(twists), *map(_rank, sampled)])
    poses = model.poses(others)[:, body]
    kind, normal, centre = _kind(poses, r, R)
    if freedoms == 6:
        kind = "spatial"
    elif freedoms != 3 or kind == "restricted":
        kind = "point" if _rank(twists[:3]) == freedoms else "restricted"
    U, S, _ = singular_vectors(twists)
    strongest = U[:, :freedoms] * S[:freedoms]
    some = np.concatenate([pose[np.newaxis], poses])
    return OutputMotion(kind, freedoms, r, R, normal, centre, strongest, some)


def _twists_at(model: Model, q: Array, body: int) -> Array:
    """Velocity of the output's origin and its angular velocity, for unit independent speeds."""
    n = len(model.independent)
    twists = np.asarray(model.twists(np.broadcast_to(q, (n, len(q))), np.eye(n)))[:, body]
    pose = model.poses(q)[body]
    mechanism = model.equations.system.mechanism
    com = np.array([numeric(x) for x in mechanism.bodies[body].com])
    w, u = twists[:, :3], twists[:, 3:]
    v = u - np.cross(w, pose[:3, :3] @ com)
    return np.concatenate([v, w], axis=1).T


def _rank(twists: Array) -> int:
    sizes = singular_values(twists)
    return int((sizes > HOLDS * max(sizes.max(initial=0.0), 1e-300)).sum())


def _kind(poses: Array, r: Array, R: Array) -> tuple[Kind, Array, Array]:
    """Kind of the displacements from home, with normal and centre."""
    size = max(float(np.abs(poses[:, :3, 3] - r).max()), 1e-3)
    turns = poses[:, :3, :3] @ R.T
    shifts = poses[:, :3, 3] - r
    odd = turns - turns.swapaxes(1, 2)
    spins = np.stack([odd[:, 2, 1], odd[:, 0, 2], odd[:, 1, 0]], axis=1)
    sizes = np.linalg.norm(spins, axis=1)
    zero = np.zeros(3)
    if np.abs(turns - np.eye(3)).max() < MOVES:
        return "translational", zero, zero
    _, S, V = singular_vectors(spins)
    if len(S) < 2 or S[1] < MOVES * S[0]:
        normal = _tidy(V[0])
        if np.abs(shifts @ normal).max() < MOVES * size:
            return "planar", normal, zero
        return "restricted", normal, zero
    left = (turns - np.eye(3)).reshape(-1, 3)
    right = -(poses[:, :3, 3] - np.einsum("kij,j->ki", turns, r)).reshape(-1)
    centre = least_squares(left, right)
    if np.abs(left @ centre - right).max() < MOVES * size and sizes.max() > MOVES:
        return "spherical", zero, centre
    return "restricted", zero, zero


def _tidy(normal: Array) -> Array:
    """Point a normal along positive axes, exactly along one if it nearly is."""
    k = int(np.argmax(np.abs(normal)))
    normal = normal * np.sign(normal[k])
    return np.eye(3)[k] if 1 - abs(normal[k]) < 1e-12 else normal
