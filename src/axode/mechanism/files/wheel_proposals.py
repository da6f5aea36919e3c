"""Links that look like wheels: round solids on an axle that touch the ground.

Files of other programs hold solids and joints, and never which links roll without slipping. Every
reader hands over the solids of its links; what looks like a wheel is proposed here, and nothing
rolls until the user confirms it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, TypeAlias

import numpy as np

from axode.errors import suggest
from axode.mechanism.elements.bodies import Box, Cylinder, Shape, Sphere
from axode.mechanism.elements.parts import Connection
from axode.mechanism.elements.wheels import AbstractWheel, Ball, Plane, Rolling
from axode.mechanism.home_poses import HomePoses, home_poses, matrix, vector
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import unit
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import ROUNDING

Numbers: TypeAlias = tuple[float, ...]
Choice: TypeAlias = Literal["proposed"] | Sequence[str]

PARALLEL = 1e-2  # [rad] between the axes of a wheel and of its joint; files have 1.57 for pi / 2
NEAR = 0.1  # gap to the plane, and distance from the axle, in parts of the radius
UPRIGHT = 0.5  # sine of the camber of a wheel, at most

NO_ROUND_SHAPE = (
    "no link looks like a wheel, which is a cylinder or sphere that turns about its own axis, "
    'touches the ground and hangs on something that moves (base = "floating" or "planar" frees '
    "the root of a URDF file); write contacts out instead"
)


@dataclass(frozen=True)
class LinkSolid:
    """A solid of a link, as far as wheels and the ground are concerned.

    Args:
        body: The name of the link.
        at: The centre in the frame of the link [m].
        radius: That of a sphere or cylinder [m]; zero for a box.
        axis: Unit axis of a cylinder in the frame of the link; none for a sphere or box.
        half_edges: What it extends to both sides of the centre: half the axis of a cylinder, the
            three half edges of a box, each a vector in the frame of the link [m].
    """

    body: str
    at: Numbers
    radius: float = 0.0
    axis: Numbers | None = None
    half_edges: tuple[Numbers, ...] = ()

    @classmethod
    def cylinder(cls, body: str, at: Any, radius: float, length: float, axis: Any) -> LinkSolid:
        """Describe a cylinder about a unit axis; a capsule may pass for one."""
        along = np.asarray(axis, float)
        return cls(body, _numbers(at), radius, _numbers(along), (_numbers(along * length / 2),))

    @classmethod
    def box(cls, body: str, at: Any, size: Any, R: Any = None) -> LinkSolid:
        """Describe a box with edges `size` along the columns of `R`."""
        edges = (np.eye(3) if R is None else np.asarray(R)) * np.asarray(size, float) / 2
        return cls(body, _numbers(at), half_edges=tuple(_numbers(edge) for edge in edges.T))

    @classmethod
    def of(cls, body: str, shape: Shape | None) -> LinkSolid | None:
        """Describe the shape of a body; None for a mesh."""
        if isinstance(shape, Sphere):
            return cls(body, _numbers(vector(shape.at)), numeric(shape.radius))
        if isinstance(shape, Cylinder):
            radius, length = numeric(shape.radius), numeric(shape.length)
            return cls.cylinder(body, vector(shape.at), radius, length, vector(unit(shape.axis)))
        if isinstance(shape, Box):
            return cls.box(body, vector(shape.at), vector(shape.size), matrix(shape.rotation))
        return None

    def depth(self, pose: RigidPose, normal: np.ndarray) -> float:
        """How far it reaches below its centre, against a normal of the world."""
        sine = abs(float(pose.direction(self.axis) @ normal)) if self.axis else 0.0
        edges = sum(abs(float(pose.direction(edge) @ normal)) for edge in self.half_edges)
        return self.radius * math.sqrt(max(1 - sine * sine, 0.0)) + edges


@dataclass
class Geometry:
    """What a reader found of solids, and of planes that they may stand on.

    Attributes:
        solids: Those that touch others come before those that are only for pictures.
        planes: A body, a point and a unit normal in its frame, for each plane of the file.
    """

    solids: list[LinkSolid] = field(default_factory=list)
    planes: list[tuple[str, Numbers, Numbers]] = field(default_factory=list)

    def add_shapes(self, mechanism: Mechanism) -> None:
        """Add the shapes of bodies that nothing is known of."""
        known = {solid.body for solid in self.solids}
        for body in mechanism.bodies:
            if body.name not in known:
                solids = (LinkSolid.of(body.name, shape) for shape in body.shapes)
                self.solids += [solid for solid in solids if solid is not None]


@dataclass(frozen=True)
class ProposedWheel:
    """A contact that would let a body roll; its name is the body's."""

    name: str
    wheel: AbstractWheel
    at: Numbers
    axis: Numbers | None
    plane: Plane

    def add_to(self, mechanism: Mechanism) -> None:
        """Let the body roll."""
        axis: Any = "y" if self.axis is None else self.axis
        mechanism.add_contact(
            self.name, self.wheel, body=self.name, at=self.at, axis=axis, ground=self.plane
        )

    def _fields(self) -> Iterator[tuple[str, Numbers]]:
        if any(self.at):
            yield "at", self.at
        if self.axis is not None:
            yield "axis", self.axis

    def call(self) -> str:
        """Write the call that adds it to a mechanism called robot."""
        given = [f"ax.{type(self.wheel).__name__}({self.wheel.radius!r})", f"body={self.name!r}"]
        given += [f"{key}={_listed(values, '()')}" for key, values in self._fields()]
        if self.plane != Plane():
            point, normal = (_listed(v, "()") for v in (self.plane.point, self.plane.normal))
            given.append(f"ground=ax.Plane(point={point}, normal={normal})")
        return f"robot.add_contact({self.name!r}, {', '.join(given)})"

    def table(self) -> str:
        """Write the table that adds it in a TOML file."""
        lines = [
            f"[contact.{toml_key(self.name)}]",
            f'type = "{type(self.wheel).__name__.lower()}"',
            f"body = {toml_text(self.name)}",
            f"radius = {self.wheel.radius!r}",
            *(f"{key} = {_listed(values, '[]')}" for key, values in self._fields()),
        ]
        if self.plane != Plane():
            point, normal = (_listed(v, "[]") for v in (self.plane.point, self.plane.normal))
            lines.append(f"ground = {{ point = {point}, normal = {normal} }}")
        return "\n".join(lines)


def propose_wheels(mechanism: Mechanism, geometry: Geometry) -> list[ProposedWheel]:
    """Find the bodies that look like wheels at home and do not roll yet.

    A wheel is a sphere or cylinder on a revolute joint along its axis, or a sphere on a spherical
    or floating joint that carries no other wheel. It touches a plane of the file or, if there is
    none, is among the lowest solids; then a floating base stands on z = 0, and any other on a plane
    at the wheel's own height. Its carrier must be able to move.
    """
    with np.errstate(all="ignore"):  # lengths near the largest number touch nothing
        return _search(mechanism, geometry)


def _search(mechanism: Mechanism, geometry: Geometry) -> list[ProposedWheel]:
    rolling = {contact.body for contact in mechanism.contacts}
    holding = {connection.child: connection for connection in mechanism.connections}
    if not any(solid.radius > 0 and _chain(solid.body, holding) for solid in geometry.solids):
        return []
    poses = home_poses(mechanism)
    bodies = [body.name for body in mechanism.bodies]
    known = [s for s in geometry.solids if s.body in poses.links and s.body in bodies]
    placed = [(poses.links[body], p, n) for body, p, n in geometry.planes if body in poses.links]
    planes = [(pose.point(p), pose.direction(n)) for pose, p, n in placed]  # in the world
    floor = _floor(known, poses)
    found: dict[str, ProposedWheel] = {}
    for solid in known:
        if solid.body in rolling or solid.body in found or not solid.radius > 0:
            continue
        axle = _axle(solid, holding, poses)
        if axle is None:
            continue
        plane = _touched(solid, axle, planes, floor, poses)
        if plane is not None:
            found[solid.body] = _proposal(solid, axle, plane, poses)
    carriers = {c.child for name in found for c in _chain(name, holding)[1:]}
    wheels = [wheel for name, wheel in found.items() if name not in carriers]
    return sorted(wheels, key=lambda wheel: bodies.index(wheel.name))


def choose_wheels(
    choice: Choice, mechanism: Mechanism, geometry: Geometry
) -> tuple[list[ProposedWheel], list[str]]:
    """Return the wheels that are confirmed, and everything wrong with the choice."""
    geometry.add_shapes(mechanism)
    proposals = {wheel.name: wheel for wheel in propose_wheels(mechanism, geometry)}
    if choice == "proposed":
        return list(proposals.values()), [] if proposals else [NO_ROUND_SHAPE]
    rolling = {contact.body: contact.name for contact in mechanism.contacts}
    faults = []
    for name in dict.fromkeys(choice):
        if name in rolling:
            faults.append(f"'{name}' rolls already, by the contact '{rolling[name]}'")
        elif name not in proposals and not proposals:
            faults.append(f"'{name}' is not proposed: {NO_ROUND_SHAPE}")
        elif name not in proposals:
            hint = suggest("proposed wheel", name, list(proposals))
            faults.append(f"'{name}' is not proposed; a contact may still be written out. {hint}")
    return [proposals[name] for name in dict.fromkeys(choice) if name in proposals], faults


def describe_proposals(
    source: str, base: str | None, wheels: Sequence[ProposedWheel], *, extends: bool
) -> str:
    """Say which links look like wheels, and how to let them roll, in TOML and in Python.

    Args:
        source: The file.
        base: How its root link is held, if that was asked for.
        wheels: What looks like wheels.
        extends: Whether the file is TOML and extends another.
    """
    names = ", ".join(toml_text(wheel.name) for wheel in wheels)
    table = [f"wheels = [{names}]"]
    if not extends:
        held = [f'base = "{base}"'] if base else []
        table = ["[extends]", f"file = {toml_text(PurePath(source).name)}", *held, *table]
    lines = [
        f"{source}: these links look like wheels and do not roll: "
        + ", ".join(wheel.name for wheel in wheels),
        'load(..., wheels="proposed"), or --option wheels=proposed, lets them roll and wheels=() '
        + f"leaves them as they are; {'under [extends]' if extends else 'in a TOML file'}:",
        *(f"  {line}" for line in table),
        "one by one, with the mechanism called robot:",
        *(f"  {wheel.call()}" for wheel in wheels),
    ]
    return "\n  ".join(lines)


@dataclass(frozen=True)
class _Axle:
    """Centre and spin axis of a wheel in the world; a ball has no axis."""

    centre: np.ndarray
    axis: np.ndarray | None
    floats: bool  # whether it can rise: its chain begins with a floating joint


def _axle(solid: LinkSolid, holding: dict[str, Connection], poses: HomePoses) -> _Axle | None:
    """Where a solid turns about its own axis; None if it does not."""
    chain = _chain(solid.body, holding)
    if not chain:
        return None
    joint, carriers = chain[0], chain[1:]
    floats = chain[-1].joint.is_free
    frame, centre = poses.joints[joint.name], poses.links[solid.body].point(solid.at)
    if joint.joint.is_free:  # a free ball, and not a support that slides with its carrier
        alone = solid.axis is None and joint.child == solid.body
        return _Axle(centre, None, floats) if alone else None
    if not carriers:
        return None
    if joint.joint.holds_point and joint.joint.dof == 3:
        near = np.linalg.norm(centre - frame.p) <= NEAR * solid.radius
        return _Axle(frame.p, None, floats) if near and solid.axis is None else None
    if not joint.joint.holds_point or joint.joint.dof != 1:
        return None
    axis = frame.direction(vector(unit(joint.joint.axis)))  # type: ignore[attr-defined]
    own = axis if solid.axis is None else poses.links[solid.body].direction(solid.axis)
    along = frame.p + axis * float(axis @ (centre - frame.p))
    aligned = np.linalg.norm(np.cross(axis, own)) <= PARALLEL
    near = np.linalg.norm(centre - along) <= NEAR * solid.radius
    return _Axle(along, axis, floats) if aligned and near else None


def _chain(body: str, holding: dict[str, Connection]) -> list[Connection]:
    """List the joints that move between a body and the ground, its own first."""
    found: list[Connection] = []
    seen: set[str] = set()
    while body in holding and body not in seen:
        seen.add(body)
        connection = holding[body]
        if connection.joint.dof:
            found.append(connection)
        body = connection.parent
    return found


def _floor(solids: list[LinkSolid], poses: HomePoses) -> float:
    """Return the height of the lowest point of all solids."""
    up = np.array([0.0, 0.0, 1.0])
    links = poses.links
    bottoms = [links[s.body].point(s.at)[2] - s.depth(links[s.body], up) for s in solids]
    return float(min(bottoms, default=0.0))


def _touched(
    solid: LinkSolid,
    axle: _Axle,
    planes: list[tuple[np.ndarray, np.ndarray]],
    floor: float,
    poses: HomePoses,
) -> Plane | None:
    """Find the plane that a wheel stands on."""
    up = np.array([0.0, 0.0, 1.0])
    for point, normal in planes or [(floor * up, up)]:
        sine = 0.0 if axle.axis is None else abs(float(axle.axis @ normal))
        if not sine <= UPRIGHT:
            continue
        depth = solid.radius * (math.sqrt(1 - sine * sine) if solid.axis else 1.0)
        height = float(normal @ (axle.centre - point))
        if not abs(height - depth) <= NEAR * solid.radius:
            continue
        if planes:
            return _plane(point, normal)
        return Plane() if axle.floats else _plane((axle.centre[2] - depth) * up, up)
    return None


def _plane(point: np.ndarray, normal: np.ndarray) -> Plane:
    """Return a plane in round numbers; one at z = 0 is the ground itself."""
    n = np.array(_numbers(normal))
    if np.abs(n - (0.0, 0.0, 1.0)).max() <= ROUNDING and abs(point[2]) <= ROUNDING:
        return Plane()
    if np.abs(n - (0.0, 0.0, 1.0)).max() <= ROUNDING:
        return Plane(point=_numbers((0.0, 0.0, point[2])))
    return Plane(_numbers(n), _numbers(point))


def _proposal(solid: LinkSolid, axle: _Axle, plane: Plane, poses: HomePoses) -> ProposedWheel:
    link = poses.links[solid.body]
    at = _numbers(link.R.T @ (axle.centre - link.p), scale=solid.radius)
    axis = None if axle.axis is None else _numbers(link.R.T @ axle.axis)
    # a sphere touches below its centre, however its axis is inclined
    inclined = axle.axis is not None and abs(axle.axis @ vector(plane.normal)) > PARALLEL
    is_ball = axis is None or (solid.axis is None and inclined)
    wheel = Ball(solid.radius) if is_ball else Rolling(solid.radius)
    return ProposedWheel(solid.body, wheel, at, None if is_ball else axis, plane)


def _numbers(values: Any, scale: float = 1.0) -> Numbers:
    """Return numbers without what rounding adds to short ones: at most twelve digits.

    Directions are as long as one and places as long as `scale`; smaller parts are zero.
    """
    found = np.asarray(values, float)
    size = max(scale, float(np.abs(found).max(initial=0.0)))
    digits = 12 - math.ceil(math.log10(size)) if size > 0 else 12
    return tuple(float(round(float(x), digits)) + 0.0 for x in found)


def _listed(values: Any, brackets: str) -> str:
    return brackets[0] + ", ".join(f"{x:.12g}" for x in values) + brackets[1]


def toml_key(name: str) -> str:
    """Return a name as TOML writes it between dots."""
    bare = name.isascii() and name.replace("-", "a").replace("_", "a").isalnum()
    return name if bare else toml_text(name)


def toml_text(text: str) -> str:
    """Return text as TOML writes it, in quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
