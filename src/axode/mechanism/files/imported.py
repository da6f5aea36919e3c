"""What is changed in mechanisms of files: where their meshes are, and joints that are locked.

Friction and stops of files of other programs: read on request, with a home that meets them.

Readers leave them out unless they are asked for: an ideal mechanism is eliminated from the
equations, differentiated and exported, one whose contacts slip is not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, shortened, suggest
from axode.mechanism.elements.bodies import GROUND, Mesh
from axode.mechanism.elements.joints import Fixed
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import AbstractWheel, Contact
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import displacement, home_poses, matrix, vector
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import scalars, unit
from axode.numerics.tolerances import ROUNDING

# meshes ------------------------------------------------------------------------------------


def with_mesh_folders(mechanism: Mechanism, home: Path, further: Path | None = None) -> Mechanism:
    """Let the meshes of a mechanism be read from its own folder, and from one more.

    Meshes that know their folders already, as those of a file that another one extends, keep them.

    Args:
        mechanism: The mechanism, whose bodies are replaced.
        home: The folder of its file, which paths are relative to.
        further: A folder that the user allows.
    """
    folders = tuple(str(folder.absolute()) for folder in (home, further) if folder is not None)
    _replace_meshes(
        mechanism, lambda mesh: mesh if mesh.folders else replace(mesh, folders=folders)
    )
    return mechanism


def with_mesh_addresses(mechanism: Mechanism, folder: Path | None) -> Mechanism:
    """Return a mechanism whose meshes have addresses for a file in a folder.

    Only relative paths of existing files change; without a folder, none does.
    """
    if folder is None:
        return mechanism
    target = folder.absolute()
    moved = mechanism.copy()
    _replace_meshes(moved, lambda mesh: replace(mesh, file=_address(mesh, target)))
    return moved


def _address(mesh: Mesh, target: Path) -> str:
    if "://" in mesh.file or Path(mesh.file).is_absolute():
        return mesh.file
    for home in map(Path, mesh.folders or (os.getcwd(),)):
        if (home / mesh.file).is_file():
            try:
                return Path(os.path.relpath(home / mesh.file, target)).as_posix()
            except ValueError:  # on another drive of Windows
                return (home / mesh.file).absolute().as_posix()
    return mesh.file


def _replace_meshes(mechanism: Mechanism, change: Callable[[Mesh], Mesh]) -> None:
    for k, body in enumerate(mechanism.bodies):
        if any(isinstance(shape, Mesh) for shape in body.shapes):
            shapes = tuple(
                change(shape) if isinstance(shape, Mesh) else shape for shape in body.shapes
            )
            one = shapes[0] if len(shapes) == 1 else shapes
            mechanism.bodies[k] = replace(body, shape=one)


# locked joints -----------------------------------------------------------------------------


def lock_joints(mechanism: Mechanism, names: Sequence[str]) -> list[str]:
    """Hold joints of the tree at home, with all that acts on them removed.

    Args:
        mechanism: What has the joints; it is changed.
        names: Names or patterns such as "arm_*"; joints that are fixed already stay as they are.

    Returns:
        What is wrong with the names, if anything; the mechanism is then of no use.
    """
    wrong: list[str] = []
    held: dict[str, Connection] = {}
    for name in names:
        found = [c for c in mechanism.connections if name == c.name or fnmatchcase(c.name, name)]
        if not found:
            known = [connection.name for connection in mechanism.connections]
            wrong.append(f"no joint is called '{name}'. {suggest('joint', name, known)}")
        held |= {c.name: c for c in found if c.speeds}
    meant = {
        meaning: name for name, c in held.items() for meaning in (name, *c.coordinates, *c.speeds)
    }
    wrong += _half_held(mechanism, meant)
    for index, connection in enumerate(mechanism.connections):
        if connection.name in held:
            moved = displacement(connection, mechanism.home_coordinates)
            placed = (*scalars(connection.at), *scalars(connection.rotation))
            is_zero = (moved[0] == np.eye(3)).all() and not moved[1].any()
            if not is_zero and not all(isinstance(x, float | int) for x in placed):
                wrong.append(
                    f"'{connection.name}' is placed by parameters, and is held only where its "
                    "coordinates are zero at home"
                )
            else:
                mechanism.connections[index] = _rigid(connection, moved)
    acting: tuple[list[Any], ...] = (
        mechanism.drives,
        mechanism.dampers,
        mechanism.springs,
        mechanism.prescribed,
    )
    for parts in acting:
        parts[:] = [part for part in parts if part.coordinate not in meant]
    mechanism.couplings[:] = [
        c for c in mechanism.couplings if not all(joint in meant for joint in c.joints)
    ]
    for connection in held.values():
        for coordinate in connection.coordinates:
            mechanism.home_coordinates.pop(coordinate, None)
    return wrong


def _rigid(connection: Connection, moved: tuple[np.ndarray, np.ndarray]) -> Connection:
    """Return a joint with the turn and shift that it has at home, and no freedom."""
    R, p = moved
    fixed = replace(
        connection,
        joint=Fixed(),
        coordinate_names=(),
        speed_names=(),
        armature=0.0,
        friction=None,
        stops=None,
        restitution=0.0,
    )
    if (matrix((0.0, 0.0, 0.0)) == R).all() and not p.any():
        return fixed
    before = matrix(connection.rotation)
    at = tuple(float(x) for x in vector(connection.at) + before @ p)
    rotation = tuple(tuple(float(x) for x in row) for row in before @ R)
    return replace(fixed, at=at, rotation=rotation)  # type: ignore[arg-type]


def _half_held(mechanism: Mechanism, meant: dict[str, str]) -> list[str]:
    """Report couplings between joints that are held and joints that are not."""
    wrong = []
    for coupling in mechanism.couplings:
        still = [joint for joint in coupling.joints if joint in meant]
        free = [joint for joint in coupling.joints if joint not in meant]
        if still and free:
            wrong.append(
                f"'{meant[still[0]]}' is held, and coupling '{coupling.name}' relates it to "
                f"'{free[0]}'; hold both, or remove the coupling"
            )
    return wrong


# friction and stops -------------------------------------------------------------------------------


CONTACTS = ("stops", "friction", "wheels")  # of joints, of joints, of what rolls on the ground


def chosen_contacts(given: Any) -> frozenset[str]:
    """Return what is to be read, from "all", a name, or names.

    Raises:
        InvalidArgument: for anything else.
    """
    if given == "all":
        return frozenset(CONTACTS)
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence | frozenset | set):
        raise InvalidArgument(
            f"contacts must be 'all' or some of {', '.join(CONTACTS)}, got {shortened(given)}"
        )
    for name in names:
        if name not in CONTACTS:
            hint = suggest("contact", str(name), (*CONTACTS, "all"))
            raise InvalidArgument(f"contacts: unknown name {shortened(name)}. {hint}")
    return frozenset(names)


@dataclass(frozen=True)
class Surface:
    """How a solid rubs on the ground, as a file has it.

    Attributes:
        friction: Coefficient of Coulomb's friction.
        scrub, rolling_resistance: Moments per normal force [m].
        restitution: Part of the impulse of an impact that comes back.
    """

    friction: float
    scrub: float = 0.0
    rolling_resistance: float = 0.0
    restitution: float = 0.0

    def on(self, wheel: AbstractWheel) -> AbstractWheel:
        """Return a wheel with this surface, which rubs in the directions that were free."""
        rows = ("longitudinal", "lateral")
        rubbing = {row: "rigid" for row in rows if getattr(wheel, row, "") == "free"}
        return replace(
            wheel,
            friction=self.friction,
            scrub=self.scrub,
            rolling_resistance=self.rolling_resistance,
            restitution=self.restitution,
            **rubbing,  # type: ignore[arg-type]
        )


def settle_home(mechanism: Mechanism) -> Iterator[str]:
    """Put home on the ground and between the stops; yield a sentence for each joint moved.

    What has friction is not eliminated, so that nothing else places it: a floating base rises or
    sinks until its wheels touch, unless its height at home is given and none is in the ground.
    """
    yield from _between_stops(mechanism)
    _on_ground(mechanism)


def _between_stops(mechanism: Mechanism) -> Iterator[str]:
    for connection in mechanism.connections:
        if connection.stops is None or len(connection.coordinates) != 1:
            continue
        (name,) = connection.coordinates
        home = mechanism.home_coordinates.get(name, 0.0)
        low, high = map(numeric, connection.stops)
        if low <= home <= high:
            continue
        nearest = min(max(home, low), high)
        mechanism.set_home({name: nearest})
        yield (
            f"joint '{connection.name}': home at {home:g} is beyond its stops, {low:g} and "
            f"{high:g}; it is at {nearest:g} now (set_home chooses another)"
        )


def _on_ground(mechanism: Mechanism) -> None:
    holding = {connection.child: connection for connection in mechanism.connections}
    poses = home_poses(mechanism).links
    gaps: dict[str, list[tuple[float, np.ndarray]]] = {}
    for contact in mechanism.contacts:
        body = contact.body
        while body in holding and holding[body].parent != GROUND.name:
            body = holding[body].parent
        root = holding.get(body)
        on_ground = contact.plane.on == GROUND.name and not contact.wheel.is_ideal
        if on_ground and root is not None and root.joint.is_free and contact.body in poses:
            gaps.setdefault(root.name, []).append(_gap(contact, poses[contact.body]))
    for name, found in gaps.items():
        root = next(c for c in mechanism.connections if c.name == name)
        gap, normal = min(found, key=lambda pair: pair[0])
        places = root.coordinates[4:]
        is_given = any(place in mechanism.home_coordinates for place in places)
        if abs(gap) <= ROUNDING or (is_given and gap > 0):
            continue
        moved = matrix(root.rotation).T @ (-gap * normal)
        mechanism.set_home(
            {
                place: mechanism.home_coordinates.get(place, 0.0) + float(shift)
                for place, shift in zip(places, moved, strict=True)
                if shift
            }
        )


def _gap(contact: Contact, pose: Any) -> tuple[float, np.ndarray]:
    """Height of the lowest point of a wheel above its plane, and the plane's normal."""
    normal = vector(unit(contact.plane.normal))
    depth = numeric(contact.wheel.radius)
    if contact.wheel.has_axis:
        lean = float(pose.direction(vector(unit(contact.axis))) @ normal)
        depth *= np.sqrt(max(1 - lean * lean, 0.0))
    height = (pose.point(vector(contact.at)) - vector(contact.plane.point)) @ normal
    return float(height) - depth, normal
