"""How the output of a robot moves, and its poses as users give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.mechanism.values.expressions import numeric
from axode.model.model import Model
from axode.numerics.rank import choose_columns, least_squares, rank, singular_vectors
from axode.numerics.rotations import (
    about_axis,
    from_angles,
    from_quaternions,
    perpendiculars,
    to_angles,
)
from axode.numerics.tolerances import ROUNDING, ROW_RANK, SEVEN_DIGITS

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

NAMES = ("x", "y", "z", "roll", "pitch", "yaw")
Kind = Literal["spatial", "planar", "spherical", "translational", "point", "restricted"]
Array = npt.NDArray[np.float64]
EXPECTED = (
    "a dictionary of pose coordinates, 4 x 4 matrices, or (position, rotation) with the rotation "
    "as matrix, quaternion (w, x, y, z) or roll, pitch, yaw"
)


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
        k = self._axis
        if k is None:
            return perpendiculars(self.normal)
        first, second = np.delete(np.eye(3), k, axis=0)
        return first, second

    @property
    def _axis(self) -> int | None:
        """Number of the world's axis that is the normal of planar motions, if one is."""
        k = int(np.argmax(np.abs(self.normal)))
        return k if abs(self.normal[k]) > 1 - ROUNDING else None

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
                k = self._axis
                if k is None:
                    return ("u", "v", "turn")
                return (*(NAMES[j] for j in range(3) if j != k), NAMES[3 + k])
        # the coordinates that the motions at home change most, one after the other; heights and
        # tilts first where others are as good
        preferred = np.array([1.0, 1.0, *[1 + SEVEN_DIGITS] * 3, 1.0])[:, np.newaxis]
        changes = self.twists * preferred
        if self.kind == "point":
            changes[3:] = 0.0
        return tuple(NAMES[k] for k in choose_columns(changes.T, self.freedoms))

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
    freedoms = int(rank(np.array([twists, *sampled]), ROW_RANK).max())
    poses = model.poses(others)[:, body]
    kind, normal, centre = _kind(poses, r, R)
    if freedoms == 6:
        kind = "spatial"
    elif freedoms != 3 or kind == "restricted":
        kind = "point" if rank(twists[:3], ROW_RANK) == freedoms else "restricted"
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


def _kind(poses: Array, r: Array, R: Array) -> tuple[Kind, Array, Array]:
    """Kind of the displacements from home, with normal and centre."""
    size = max(float(np.abs(poses[:, :3, 3] - r).max()), 1e-3)
    turns = poses[:, :3, :3] @ R.T
    shifts = poses[:, :3, 3] - r
    odd = turns - turns.swapaxes(1, 2)
    spins = np.stack([odd[:, 2, 1], odd[:, 0, 2], odd[:, 1, 0]], axis=1)
    sizes = np.linalg.norm(spins, axis=1)
    zero = np.zeros(3)
    if np.abs(turns - np.eye(3)).max() < ROW_RANK:
        return "translational", zero, zero
    _, S, V = singular_vectors(spins)
    if len(S) < 2 or S[1] < ROW_RANK * S[0]:
        normal = _tidy(V[0])
        if np.abs(shifts @ normal).max() < ROW_RANK * size:
            return "planar", normal, zero
        return "restricted", normal, zero
    left = (turns - np.eye(3)).reshape(-1, 3)
    right = -(poses[:, :3, 3] - np.einsum("kij,j->ki", turns, r)).reshape(-1)
    centre = least_squares(left, right)
    if np.abs(left @ centre - right).max() < ROW_RANK * size and sizes.max() > ROW_RANK:
        return "spherical", zero, centre
    return "restricted", zero, zero


def _tidy(normal: Array) -> Array:
    """Point a normal along positive axes, exactly along one if it nearly is."""
    k = int(np.argmax(np.abs(normal)))
    normal = normal * np.sign(normal[k])
    return np.eye(3)[k] if 1 - abs(normal[k]) < ROUNDING else normal


def home_coordinates(motion: OutputMotion) -> dict[str, float]:
    """Pose coordinates at home, by name."""
    return _coordinates(motion, motion.r_home, motion.R_home)


def _coordinates(motion: OutputMotion, r: Array, R: Array) -> dict[str, float]:
    """Pose coordinates of a position and a rotation, by name."""
    known = dict(zip(NAMES, [*r.tolist(), *to_angles(R).tolist()], strict=True))
    if motion.kind == "planar":
        first, second = motion.in_plane
        n = motion.normal
        # the turn about the normal that is nearest to the rotation
        spin = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
        turn = float(np.arctan2(n @ spin, np.trace(R) - n @ R @ n))
        values: list[Any] = [r @ first, r @ second, turn]
        known |= dict(zip(motion.names, map(float, values), strict=True))
    return {name: known[name] for name in (*motion.names, *NAMES) if name in known}


def signal_names(robot: Kinematics, names: Sequence[str]) -> list[str]:
    """Return what each name is called among the signals of a robot.

    A pose coordinate of the output stands for the coordinate or measure that equals it at home and
    at some other states. A name that the model knows, and any other name, is returned as it is.

    Raises:
        UnknownName: for a pose coordinate that no signal equals.
    """
    known = robot.model.signals.state_names
    if not any(name in NAMES and not known.matching(name) for name in names):
        return list(names)
    model, motion = robot.model, output_motion(robot.model, robot.output)
    q = np.array([model.home, *model.equations.system.samples])
    values = np.concatenate([q, model.measures(q)], axis=1)
    own = [_coordinates(motion, T[:3, 3], T[:3, :3]) for T in motion.samples]

    def meant(name: str) -> str:
        if name not in NAMES or known.matching(name):
            return name
        miss = values - np.array([[at[name]] for at in own])
        if name in NAMES[3:]:
            miss = np.arctan2(np.sin(miss), np.cos(miss))
        worst = np.abs(miss).max(axis=0)
        k = int(np.argmin(worst))
        if worst[k] < ROW_RANK:
            return [*model.coordinates, *model.measure_names][k]
        text = f"no coordinate or measure of '{model.name}' equals {name} of '{robot.output}'; "
        text += "give others, or add a measure of it."
        raise UnknownName(f"'{model.name}'", "signal", name, known, text)

    return [meant(name) for name in names]


def by_signals(robot: Kinematics, state: Any) -> Any:
    """Return a state by name with pose coordinates of the output as signals; others as they are.

    Raises:
        InvalidArgument: for a pose coordinate and its signal, both given.
    """
    if not isinstance(state, Mapping):
        return state
    names = signal_names(robot, list(state))
    if names == list(state):
        return state
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InvalidArgument(f"state: '{twice}' is given twice, also as a pose coordinate")
    return dict(zip(names, state.values(), strict=True))


def poses_at(motion: OutputMotion, coordinates: Mapping[str, Any]) -> tuple[Array, Array]:
    """Positions and rotations for pose coordinates, which are broadcast.

    Args:
        motion: How the output moves.
        coordinates: Numbers or arrays by name; what is left out is home.

    Raises:
        UnknownName: for a coordinate that cannot be chosen.
        InvalidArgument: for values that are not numbers or do not fit together.
    """
    for name in coordinates:
        if name not in motion.names:
            raise UnknownName(f"the {motion.kind} output", "pose coordinate", name, motion.names)
    home = home_coordinates(motion)
    names = list(motion.names if motion.kind == "planar" else NAMES)
    try:
        given = [np.asarray(coordinates.get(name, home[name]), float) for name in names]
        values = dict(zip(names, np.broadcast_arrays(*given), strict=True))
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"pose: {error}") from None
    if motion.kind == "planar":
        u, v, _ = (value[..., np.newaxis] for value in values.values())
        first, second = motion.in_plane
        height = motion.normal * (motion.normal @ motion.r_home)
        r = height + u * first + v * second
        R = about_axis(motion.normal, given[2] - home[motion.names[2]])
        return r, np.broadcast_to(R @ motion.R_home, (*r.shape[:-1], 3, 3))
    r = np.stack([values[name] for name in NAMES[:3]], axis=-1)
    if motion.kind in ("translational", "point"):
        return r, np.broadcast_to(motion.R_home, (*r.shape[:-1], 3, 3))
    angles = np.stack(np.broadcast_arrays(*given[3:]), axis=-1)
    # computed once where they are one
    R = np.broadcast_to(from_angles(angles), (*r.shape[:-1], 3, 3))
    if motion.kind == "spherical":
        arm = motion.R_home.T @ (motion.r_home - motion.centre)
        r = motion.centre + R @ arm
    return r, R


def by_rows(R: Array) -> Array:
    """Nine numbers per rotation, (..., 9); of rotations that are all the same only one, (9,)."""
    batch = R.shape[:-2]
    if R.size and not any(step for step, n in zip(R.strides[:-2], batch, strict=True) if n > 1):
        return np.ascontiguousarray(R[(0,) * len(batch)]).reshape(9)
    return np.ascontiguousarray(R).reshape(*batch, 9)


def as_poses(motion: OutputMotion, pose: Any) -> tuple[Array, Array]:
    """Positions (..., 3) and rotations (..., 3, 3) of whatever a user gives.

    Raises:
        UnknownName: for a coordinate that cannot be chosen.
        InvalidArgument: for anything that is no pose, and for poses that the output cannot have.
    """
    if isinstance(pose, Mapping):
        return poses_at(motion, pose)
    if isinstance(pose, tuple) and len(pose) == 2:
        r, R = _numbers(pose[0]), _rotation(pose[1])
        if r.shape[-1:] != (3,):
            raise InvalidArgument(f"pose: a position has three numbers, got {shortened(pose[0])}")
    else:
        matrix = _numbers(pose)
        if matrix.shape[-2:] != (4, 4):
            raise InvalidArgument(f"pose: expected {EXPECTED}, got {shortened(pose)}")
        r, R = matrix[..., :3, 3], matrix[..., :3, :3]
    batch = np.broadcast_shapes(r.shape[:-1], R.shape[:-2])
    r, R = np.broadcast_to(r, (*batch, 3)), np.broadcast_to(R, (*batch, 3, 3))
    error = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not error < SEVEN_DIGITS or (np.linalg.det(R) < 0).any():
        raise InvalidArgument(
            f"pose: the rotation is no rotation matrix: R R' differs from one by {error:.2g}"
        )
    _check_motion(motion, r, R)
    return r, R


def _numbers(value: Any) -> Array:
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        text = f"pose: not numbers: {shortened(value)}; expected {EXPECTED}"
        raise InvalidArgument(text) from None


def _rotation(value: Any) -> Array:
    given = _numbers(value)
    if given.shape[-2:] == (3, 3):
        return given
    if given.shape[-1:] == (4,):
        return from_quaternions(given)
    if given.shape[-1:] == (3,):
        return from_angles(given)
    raise InvalidArgument(
        "pose: a rotation is a 3 x 3 matrix, a quaternion (w, x, y, z) or roll, pitch, yaw; "
        f"got {shortened(value)}"
    )


def _check_motion(motion: OutputMotion, r: Array, R: Array) -> None:
    """Check that the output can have these poses, as far as its kind of motion determines it."""
    D = R @ motion.R_home.T
    size = 1.0 + float(np.abs(motion.r_home).max())
    match motion.kind:
        case "planar":
            off = [(r - motion.r_home) @ motion.normal / size, D @ motion.normal - motion.normal]
        case "translational":
            off = [D - np.eye(3)]
        case "spherical":
            arm = motion.r_home - motion.centre
            off = [(r - motion.centre - D @ arm) / size]
        case _:
            return
    worst = max(float(np.abs(part).max(initial=0.0)) for part in off)
    if not worst < SEVEN_DIGITS:
        raise_off_motion(motion, worst)


def raise_off_motion(motion: OutputMotion, worst: float) -> None:
    """Report a pose that the output cannot have, and by how much it is off.

    Raises:
        InvalidArgument: always.
    """
    raise InvalidArgument(
        f"pose: the output's motion is {motion.kind}, and a given pose is off it by "
        f"{worst:.2g}; give it by {', '.join(motion.names)}, as a dictionary"
    )
