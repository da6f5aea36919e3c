"""Which joint holds which body and where it is at home, and what a name means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from axode.errors import suggest
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import Expression, Parameter, numeric, parameters_in
from axode.mechanism.values.geometry import AXES, NO_ROTATION, ORIGIN, rotation_matrix, unit
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import ROUNDING

if TYPE_CHECKING:
    from axode.mechanism.elements.parts import Connection
    from axode.mechanism.mechanism import Mechanism


def tree_order(mechanism: Mechanism, roots: Sequence[str] = (GROUND.name,)) -> list[Connection]:
    """The tree's joints, parents before children, otherwise in the order they were added.

    Joints whose parent never reaches the ground are left out; `checks` reports them.
    """
    children: dict[str, list[Connection]] = {}
    for connection in mechanism.connections:
        children.setdefault(connection.parent, []).append(connection)
    ordered: list[Connection] = []
    waiting = [c for root in reversed(roots) for c in reversed(children.pop(root, []))]
    while waiting:
        connection = waiting.pop()
        ordered.append(connection)
        # once per body: joints that form a ring through an unknown body would never end
        waiting.extend(reversed(children.pop(connection.child, [])))
    return ordered


def coordinate_names(mechanism: Mechanism) -> list[str]:
    """Names of all coordinates of the tree, in tree order."""
    return [name for connection in tree_order(mechanism) for name in connection.coordinates]


def speed_names(mechanism: Mechanism) -> list[str]:
    """Names of all speeds of the tree, in tree order."""
    return [name for connection in tree_order(mechanism) for name in connection.speeds]


def speed_units(mechanism: Mechanism) -> dict[str, str]:
    """Units of all speeds by name, in tree order, quasi-velocities last."""
    joints = tree_order(mechanism)
    units = [unit for connection in joints for unit in connection.joint.speed_units]
    quasi = {quasi.name: quasi.unit for quasi in mechanism.quasi_velocities}
    return dict(zip(speed_names(mechanism), units, strict=True)) | quasi


def speed_meanings(mechanism: Mechanism) -> dict[str, str]:
    """Every name that means one speed, and which: of speeds, of joints, of coordinates."""
    meanings: dict[str, str] = {}
    for connection in mechanism.connections:
        speeds = connection.speeds
        named = [*zip(speeds, speeds, strict=True)]
        if len(speeds) == 1:
            named.append((connection.name, speeds[0]))
        if connection.joint.speeds_are_rates:
            named += zip(connection.coordinates, speeds, strict=True)
        for name, speed in named:
            meanings.setdefault(name, speed)
    return meanings | {quasi.name: quasi.name for quasi in mechanism.quasi_velocities}


def coordinate_meanings(mechanism: Mechanism) -> dict[str, str]:
    """Every name that means one coordinate, and which: of coordinates, of joints."""
    meanings: dict[str, str] = {}
    for connection in mechanism.connections:
        for name in connection.coordinates:
            meanings.setdefault(name, name)
        if len(connection.coordinates) == 1:
            meanings.setdefault(connection.name, connection.coordinates[0])
    return meanings


def coordinate_of(mechanism: Mechanism, name: str) -> str | None:
    """The coordinate that a joint or coordinate name means, if it means just one."""
    return coordinate_meanings(mechanism).get(name)


def coupled_by(mechanism: Mechanism, name: str) -> tuple[str | None, str | None]:
    """What a coupling's term means: a coordinate, or a speed, or neither."""
    coordinate = coordinate_of(mechanism, name)
    if coordinate is not None:
        return coordinate, None
    return None, next((name for c in mechanism.connections if name in c.speeds), None)


def not_in_tree(mechanism: Mechanism, name: str, what: str) -> str:
    """Why a name does not mean one speed (or coordinate), with the ones there are."""
    known = (speed_names if what == "speed" else coordinate_names)(mechanism)
    for connection in mechanism.connections:
        if connection.name == name:
            own = connection.speeds if what == "speed" else connection.coordinates
            if not own:
                return f"joint '{name}' is fixed and has no {what}. {suggest(what, name, known)}"
            listed = ", ".join(own)
            return f"joint '{name}' has several {what}s, name one of them: {listed}"
    if any(loop.name == name for loop in mechanism.loops):
        return (
            f"joint '{name}' closes a loop and has no {what} of its own; add it before the "
            "joints that close the loop, or name another one. " + suggest(what, name, known)
        )
    joints = [connection.name for connection in mechanism.connections]
    return f"unknown joint or {what} '{name}'. {suggest(what, name, known, joints)}"


def quaternion_components(mechanism: Mechanism) -> set[str]:
    """Coordinates that are components of quaternions."""
    return {
        name
        for connection in mechanism.connections
        if connection.joint.has_quaternion
        for name in connection.coordinates[:4]
    }


def parameters_of(mechanism: Mechanism) -> dict[str, Parameter]:
    """Every parameter of a mechanism by name, in order of appearance."""
    found: dict[str, Parameter] = {}
    for formula in formulas_in(mechanism):
        for parameter in parameters_in(formula):
            if not found.setdefault(parameter.name, parameter).latex:
                found[parameter.name] = parameter
    return found


def formulas_in(value: object) -> Iterator[Expression]:
    """Every formula inside a description or a part of one, however deep."""
    waiting = [value]
    while waiting:
        part: Any = waiting.pop()
        if isinstance(part, Expression):
            yield part
        elif isinstance(part, (list, tuple)):
            waiting += [item for item in reversed(part) if type(item) not in _PLAIN]
        elif hasattr(part, "__dataclass_fields__"):
            inside = [getattr(part, name) for name in reversed(part.__dataclass_fields__)]
            waiting += [item for item in inside if type(item) not in _PLAIN]


_PLAIN = {float, str, int, bool, type(None)}  # holds no formula


def free_bases(mechanism: Mechanism) -> tuple[tuple[str, ...], ...]:
    """Name of each such base and of its coordinates: x, y, then its yaw or its quaternion.

    A joint that stands elsewhere than at or above the world's origin, or turned, is left out: its
    coordinates count from there.
    """
    found = []
    for connection in mechanism.connections:
        joint = connection.joint
        axes = [tuple(map(numeric, getattr(joint, name))) for name in joint.directions]
        upright = all(axis == AXES["z"] for axis in axes) and connection.rotation == NO_ROTATION
        above = all(numeric(part) == 0.0 for part in connection.at[:2])
        if connection.parent == GROUND.name and joint.carries_base and upright and above:
            names = dict(zip(joint.coordinate_names, connection.coordinates, strict=True))
            found.append((connection.child, *(names[name] for name in joint.base_coordinates)))
    return tuple(found)


# poses at home ------------------------------------------------------------------------------------


_QUATERNION = ("qw", "qx", "qy", "qz")


@dataclass(frozen=True)
class HomePoses:
    """The links at home, and the frame of each joint on its parent."""

    links: dict[str, RigidPose]
    joints: dict[str, RigidPose]


def home_poses(mechanism: Mechanism) -> HomePoses:
    """Place all links that joints connect to the ground; parameters have their defaults."""
    links = {GROUND.name: RigidPose(np.eye(3), np.zeros(3))}
    joints: dict[str, RigidPose] = {}
    for connection in tree_order(mechanism):
        placed = RigidPose(matrix(connection.rotation), vector(connection.at))
        pose = joints[connection.name] = links[connection.parent] @ placed
        if any(name in mechanism.home_coordinates for name in connection.coordinates):
            pose = pose @ RigidPose(*displacement(connection, mechanism.home_coordinates))
        if (connection.child_rotation, connection.child_at) != (NO_ROTATION, ORIGIN):
            on_child = RigidPose(matrix(connection.child_rotation), vector(connection.child_at))
            pose = pose @ on_child.inverse()
        links[connection.child] = pose
    return HomePoses(links, joints)


def vector(values: Any) -> np.ndarray:
    """Return three scalars as numbers; parameters have their defaults."""
    return np.array([numeric(value) for value in values])


def matrix(rotation: Any) -> np.ndarray:
    """Return the matrix of a rotation in numbers; parameters have their defaults."""
    return np.array([[numeric(x) for x in row] for row in rotation_matrix(rotation)])


def displacement(connection: Connection, home: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
    """Turn and shift of a joint at home, coordinate by coordinate."""
    joint = connection.joint
    axis = vector(unit(getattr(joint, "axis", (0.0, 0.0, 1.0))))
    plane = _aligned(axis)  # whose z is the axis
    names = dict(zip(joint.coordinate_names, connection.coordinates, strict=True))
    values = {short: home.get(name, float(short == "qw")) for short, name in names.items()}
    R, p = np.eye(3), np.zeros(3)
    for short, unit_ in zip(joint.coordinate_names, joint.coordinate_units, strict=True):
        value = values[short]
        if short in ("x", "y", "z"):
            p = p + plane[:, "xyz".index(short)] * value
        elif unit_ == "m":
            p = p + axis * value
        elif short not in _QUATERNION:
            turned = vector(unit(joint.second)) if short == "second" else axis  # type: ignore[attr-defined]
            R = R @ _turn(turned, value)
            p = p + axis * numeric(getattr(joint, "pitch", 0.0)) * value
    if joint.has_quaternion:
        quaternion = np.array([values[short] for short in _QUATERNION])
        if quaternion.any():
            R = matrix(tuple(map(float, quaternion / np.linalg.norm(quaternion))))
    return R, p


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    half = angle / 2
    return matrix((float(np.cos(half)), *map(float, np.sin(half) * axis)))


def _aligned(axis: np.ndarray) -> np.ndarray:
    """Return the shortest turn of z to an axis."""
    w = 1.0 + axis[2]
    if w < ROUNDING:
        return np.diag([1.0, -1.0, -1.0])
    quaternion = np.array([w, -axis[1], axis[0], 0.0])
    return matrix(tuple(map(float, quaternion / np.linalg.norm(quaternion))))
