"""A scene from a description: the shapes it names, and sensible ones where it names none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.bodies import Body, Box, Cylinder, Mesh, Shape, Sphere
from axode.mechanism.elements.forces import Strut
from axode.mechanism.elements.joints import Coupling
from axode.mechanism.elements.wheels import Contact, Plane
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.scene.scene import (
    GROUND,
    Array,
    Colour,
    Cord,
    Floor,
    Scene,
    Solid,
    Surface,
    Touch,
    Triple,
)
from axode.mechanism.topology import parameters_of, tree_order
from axode.mechanism.values.expressions import Scalar, evaluate
from axode.mechanism.values.geometry import rotation_matrix, unit
from axode.numerics.tolerances import SEVEN_DIGITS, THREE_DIGITS

# solids ----------------------------------------------------------------------------------------


BODIES: tuple[Colour, ...] = (
    (70, 108, 148),
    (214, 128, 60),
    (96, 150, 118),
    (150, 108, 158),
    (190, 160, 84),
    (110, 130, 150),
)
TYRE: Colour = (52, 54, 58)
HUB: Colour = (206, 208, 212)
MARK: Colour = (222, 110, 48)
ROLLER: Colour = (120, 124, 130)
JOINT: Colour = (150, 154, 160)

IDENTITY = np.eye(3)


def solid(
    body: str, kind: str, size: npt.ArrayLike, at: npt.ArrayLike, axes: Array, colour: Colour
) -> Solid:
    """One solid; `axes` has its own axes in its columns."""
    columns = tuple(triple(axes[:, k]) for k in range(3))
    return Solid(body, kind, triple(size), triple(at), columns, colour)  # type: ignore[arg-type]


def rod(body: str, a: Array, b: Array, radius: float, colour: Colour) -> Solid:
    """A cylinder from point to point."""
    span = b - a
    length = float(np.linalg.norm(span))
    return solid(body, "cylinder", (radius, length, 0.0), (a + b) / 2, axes_along(span), colour)


def wheel(body: str, at: Array, axis: Array, radius: float, width: float) -> Iterator[Solid]:
    """A tyre with spokes, one of them marked, so that it is seen to turn."""
    axes = axes_along(axis)
    yield solid(body, "cylinder", (radius, width, 0.0), at, axes, TYRE)
    yield solid(body, "cylinder", (0.22 * radius, 1.24 * width, 0.0), at, axes, HUB)
    for k in range(3):  # bars from rim to rim: six spokes
        turn = axes @ _about_z(k * math.pi / 3)
        size = (1.5 * radius, 0.16 * radius, 1.08 * width)
        yield solid(body, "box", size, at, turn, HUB)
    mark = at + axes[:, 0] * 0.5 * radius
    yield solid(body, "box", (0.52 * radius, 0.2 * radius, 1.14 * width), mark, axes, MARK)


def rollers(
    body: str, at: Array, axis: Array, radius: float, width: float, angle: float
) -> Iterator[Solid]:
    """A hub with free rollers around it, `angle` between a roller's axis and the wheel's."""
    axes = axes_along(axis)
    count = 10
    thick, gap = 0.2 * radius, 2.2 * radius * math.sin(math.pi / count)
    yield solid(body, "cylinder", (radius - 1.7 * thick, 0.9 * width, 0.0), at, axes, HUB)
    for k in range(count):
        outward = axes @ _about_z(2 * math.pi * k / count)
        along = math.cos(angle) * outward[:, 2] + math.sin(angle) * outward[:, 1]
        length = min(gap, width) / max(abs(math.sin(angle)), 0.6)
        centre = at + (radius - thick) * outward[:, 0]
        colour = MARK if k == 0 else TYRE if k % 2 else ROLLER
        yield solid(body, "cylinder", (thick, length, 0.0), centre, axes_along(along), colour)


def ball(body: str, at: Array, radius: float, colour: Colour) -> Iterator[Solid]:
    """A sphere with studs, so that it is seen to turn."""
    yield solid(body, "sphere", (radius, 0.0, 0.0), at, IDENTITY, colour)
    for k in range(3):
        for sign in (-1.0, 1.0):
            stud = at + sign * 0.87 * radius * IDENTITY[k]
            yield solid(body, "sphere", (0.17 * radius, 0.0, 0.0), stud, IDENTITY, MARK)


def equivalent_box(body: str, mass: float, com: Array, inertia: Array, colour: Colour) -> Solid:
    """The box of this mass and inertia."""
    moments, axes = np.linalg.eigh(inertia)
    squares = 6.0 * (moments.sum() - 2.0 * moments) / mass
    edges = np.sqrt(np.maximum(squares, 0.0))
    edges = np.maximum(edges, 0.05 * edges.max())
    if np.linalg.det(axes) < 0:
        axes = axes * np.array([1.0, 1.0, -1.0])
    return solid(body, "box", edges, com, axes, colour)


def axes_along(direction: npt.ArrayLike) -> Array:
    """A right-handed frame whose z is along a direction; x as level as can be."""
    z = np.asarray(direction, float)
    length = np.linalg.norm(z)
    if not length > 0:
        return IDENTITY
    z = z / length
    other = np.array([1.0, 0.0, 0.0]) if abs(z[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    y = np.cross(z, other)
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, z), y, z])


def _about_z(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def triple(value: Any) -> Triple:
    """Three plain numbers."""
    x, y, z = (float(v) for v in value)
    return x, y, z


# scenes ----------------------------------------------------------------------------------------


WIDTH_OF_WHEEL = 0.35  # of its radius, where no shape is given
THIN = 0.022  # radius of a rod, of the mechanism's size


def scene_of(mechanism: Mechanism, parameters: Mapping[str, float] | None = None) -> Scene:
    """What pictures of a mechanism show, at its parameters' defaults or at the values given."""
    return _Shaping(mechanism, parameters or {}).scene()


class _Shaping:
    """One description with numbers for its parameters."""

    def __init__(self, mechanism: Mechanism, parameters: Mapping[str, float]) -> None:
        self.mechanism = mechanism
        defaults = {name: p.default for name, p in parameters_of(mechanism).items()}
        self.values = defaults | dict(parameters) | {"t": 0.0}
        self.contacts: dict[str, list[Contact]] = {}
        for contact in mechanism.contacts:
            if contact.wheel.picture == "point":
                continue  # of a body that has its own look
            self.contacts.setdefault(contact.body, []).append(contact)
        self.floors = {contact.plane.on: contact.plane for contact in mechanism.contacts}
        self.meshes = {
            body.name for body in mechanism.bodies if any(isinstance(s, Mesh) for s in body.shapes)
        }
        self.anchors = self._anchors()
        self.size = self._size()
        self.colours = self._colours()

    def scene(self) -> Scene:
        """The whole scene."""
        floors: dict[Floor, int] = {}
        touches = [self._touch(contact, floors) for contact in self.mechanism.contacts]
        drawn, stand_ins = self._divided()
        return Scene(
            name=self.mechanism.name,
            bodies=tuple(body.name for body in self.mechanism.bodies),
            solids=tuple(drawn),
            floors=tuple(floors),
            touches=tuple(touches),
            cords=tuple(self._cords()),
            size=self.size,
            up=self._up(),
            centres=tuple(triple(self.vector(body.com)) for body in self.mechanism.bodies),
            surfaces=tuple(self._surfaces()),
            stand_ins=tuple(stand_ins),
            plane=self._plane(),
        )

    def _plane(self) -> tuple[float, ...]:
        """Normal of the plane in which all bodies move; none for what rolls, or moves in space."""
        turned, axes, slides = {GROUND: IDENTITY}, list[Array](), list[Array]()
        if self.mechanism.contacts:
            return ()
        for c in tree_order(self.mechanism):
            at = turned[c.parent] @ self.matrix(c.rotation)
            turned[c.child] = at @ self.matrix(c.child_rotation).T
            if c.joint.dof and not c.joint.plane:
                return ()
            for name in c.joint.directions:
                own = at @ self.vector(unit(getattr(c.joint, name)))
                (slides if c.joint.plane == "along" else axes).append(own)
        if not axes:
            return ()
        normal = axes[0] if axes[0].sum() > 0 else -axes[0]
        is_plane = all(np.linalg.norm(np.cross(normal, axis)) < SEVEN_DIGITS for axis in axes)
        is_plane &= all(abs(normal @ slide) < SEVEN_DIGITS for slide in slides)
        return triple(normal) if is_plane else ()

    def _up(self) -> tuple[float, float, float]:
        """Direction against gravity; z for what rolls on the ground."""
        gravity = self.vector(self.mechanism.gravity)
        strength = float(np.linalg.norm(gravity))
        if self.mechanism.contacts or not strength > 0:
            return 0.0, 0.0, 1.0
        return triple(0.0 - gravity / strength)

    # numbers -----------------------------------------------------------------------------------

    def number(self, scalar: Scalar) -> float:
        """A formula at the parameters' values."""
        return float(evaluate(scalar, self.values))

    def vector(self, scalars: Any) -> Array:
        """Three formulas."""
        return np.array([self.number(s) for s in scalars])

    def matrix(self, rotation: Any) -> Array:
        """Matrix of a rotation."""
        return np.array([self.vector(row) for row in rotation_matrix(rotation)])

    def _anchors(self) -> dict[str, list[Array]]:
        """Where joints, loops and springs hold each body, in its own frame."""
        anchors: dict[str, list[Array]] = {body.name: [] for body in self.mechanism.bodies}
        anchors[GROUND] = []
        joints = (*self.mechanism.connections, *self.mechanism.loops)
        links: tuple[Connection | Strut, ...] = (*joints, *self.mechanism.struts)
        for c in links:
            anchors.setdefault(c.parent, []).append(self.vector(c.at))
            anchors.setdefault(c.child, []).append(self.vector(c.child_at))
        return anchors

    def _size(self) -> float:
        """The largest distance between points of one body, or a wheel's or shape's diameter."""
        spans = [0.0]
        for body in self.mechanism.bodies:
            points = np.array([*self.anchors[body.name], self.vector(body.com)])
            spans.append(float(np.linalg.norm(np.ptp(points, axis=0))))
            spans += [self._span(shape) for shape in body.shapes]
        spans += [2 * self.number(contact.wheel.radius) for contact in self.mechanism.contacts]
        return max(spans) or 1.0

    def _span(self, shape: Shape) -> float:
        if isinstance(shape, Box):
            return float(np.linalg.norm(self.vector(shape.size)))
        if isinstance(shape, Cylinder):
            return max(2 * self.number(shape.radius), self.number(shape.length))
        return 2 * self.number(shape.radius) if isinstance(shape, Sphere) else 0.0

    def _colours(self) -> dict[str, Colour]:
        """Colours of the bodies; those with the same place in equal legs share one.

        They have one mass, are as many joints away from the ground, and are held by the same kinds
        of joints; their lengths may differ.
        """
        away, held = self._joints_from_ground(), dict[str, set[str]]()
        for joint in (*self.mechanism.connections, *self.mechanism.loops):
            if joint.joint.dof:  # what is fixed to a body does not hold it
                for body in (joint.parent, joint.child):
                    held.setdefault(body, set()).add(type(joint.joint).__name__)
        kinds = list[tuple[Any, float]]()
        colours = dict[str, Colour]()
        for one in self.mechanism.bodies:
            shapes = tuple(type(shape).__name__ for shape in one.shapes)
            place = (away.get(one.name), held.get(one.name), shapes)
            mass = self.number(one.mass)
            same = [p == place and math.isclose(m, mass, rel_tol=THREE_DIGITS) for p, m in kinds]
            if not any(same):
                kinds.append((place, mass))
                same.append(True)
            colours[one.name] = BODIES[same.index(True) % len(BODIES)]
        return colours

    def _joints_from_ground(self) -> dict[str, int]:
        """How many joints, those of loops among them, are between each body and the ground."""
        joints = (*self.mechanism.connections, *self.mechanism.loops)
        away, reached = {GROUND: 0}, [GROUND]
        for body in reached:  # grows while it is walked
            for joint in joints:
                for here, there in ((joint.parent, joint.child), (joint.child, joint.parent)):
                    if here == body and there not in away:
                        away[there] = away[body] + 1
                        reached.append(there)
        return away

    # what is drawn -----------------------------------------------------------------------------

    def _divided(self) -> tuple[list[Solid], list[Solid]]:
        """Solids that are always drawn, and those that stand in for surfaces in files.

        Where some bodies have surfaces, those without a shape are frames and the like, and joints
        are seen on the surfaces: pins and rods would only be in the way.
        """
        drawn: list[Solid] = []
        stand_ins: list[Solid] = []
        for body in self.mechanism.bodies:
            colour = self.colours[body.name]
            given = [self._shape(body.name, s, colour) for s in _simple(body)]
            if body.name in self.meshes:
                drawn += given
                stand_ins += self._undescribed(body, colour)
            elif body.name in self.contacts:
                drawn += self._rolling(body, colour)
            elif given:
                drawn += given
            else:
                (stand_ins if self.meshes else drawn).extend(self._from_joints(body, colour))
        for connection in (*self.mechanism.connections, *self.mechanism.loops):
            hidden = self.meshes & {connection.parent, connection.child}
            (stand_ins if hidden else drawn).extend(self._joint(connection))
        return drawn, stand_ins

    def _surfaces(self) -> Iterator[Surface]:
        for body in self.mechanism.bodies:
            for shape in body.shapes:
                if isinstance(shape, Mesh):
                    usual = self.colours[body.name]
                    axes = self.matrix(shape.rotation)
                    yield Surface(
                        body.name,
                        shape.file,
                        triple(self.vector(shape.scale)),
                        triple(self.vector(shape.at)),
                        tuple(triple(axes[:, i]) for i in range(3)),  # type: ignore[arg-type]
                        self._colour(shape, usual),
                        shape.colour is not None,
                        shape.folders,
                    )

    def _colour(self, shape: Shape, usual: Colour) -> Colour:
        if shape.colour is None:
            return usual
        red, green, blue = (round(255 * float(part)) for part in self.vector(shape.colour))
        return red, green, blue

    def _undescribed(self, body: Body, colour: Colour) -> Iterator[Solid]:
        """What a body without a shape looks like."""
        if body.name in self.contacts:
            yield from self._rolling(body, colour)
        else:
            yield from self._from_joints(body, colour)

    def _rolling(self, body: Body, colour: Colour) -> Iterator[Solid]:
        """A body with wheels on it; if it is more than its wheels, the rest of it too."""
        contacts, shapes = self.contacts[body.name], _simple(body)
        for contact in contacts:
            yield from self._wheel(body, contact, colour)
        centre = self.vector(contacts[0].at)
        alone = len(contacts) == 1 and np.allclose(centre, self.vector(body.com))
        if alone and not any(isinstance(shape, Box) for shape in shapes):
            return
        for shape in shapes:
            yield self._shape(body.name, shape, colour)
        if not shapes:
            yield from self._from_joints(body, colour)

    def _wheel(self, body: Body, contact: Contact, colour: Colour) -> Iterator[Solid]:
        kind, at, axis = contact.wheel, self.vector(contact.at), self.vector(contact.axis)
        radius = self.number(kind.radius)
        width = WIDTH_OF_WHEEL * radius
        cylinders = [shape for shape in body.shapes if isinstance(shape, Cylinder)]
        if len(cylinders) == 1 and len(self.contacts[body.name]) == 1:
            width = self.number(cylinders[0].length)
        if kind.picture == "ball":
            yield from ball(body.name, at, radius, colour)
        elif kind.picture == "blade":
            yield self._blade(body.name, contact)
        elif kind.picture == "rollers":
            angle = self.number(kind.roller_angle)  # type: ignore[attr-defined]
            yield from rollers(body.name, at, axis, radius, width, angle)
        else:
            yield from wheel(body.name, at, axis, radius, width)

    def _blade(self, body: str, contact: Contact) -> Solid:
        """A skate: thin sideways, long ahead."""
        sideways = _unit(self.vector(contact.axis))
        normal = _unit(self.vector(contact.plane.normal))
        across = normal - (normal @ sideways) * sideways
        up = _unit(across) if np.linalg.norm(across) > 0.1 else axes_along(sideways)[:, 0]
        axes = np.column_stack([np.cross(sideways, up), sideways, up])
        radius = self.number(contact.wheel.radius) or 0.04 * self.size
        size = (0.25 * self.size, 0.015 * self.size, radius)
        at = self.vector(contact.at) + (0.0 if contact.wheel.radius else 0.5 * radius) * up
        return solid(body, "box", size, at, axes, TYRE)

    def _shape(self, body: str, shape: Box | Cylinder | Sphere, colour: Colour) -> Solid:
        """The shape that the description gives."""
        at, colour = self.vector(shape.at), self._colour(shape, colour)
        if isinstance(shape, Box):
            axes = self.matrix(shape.rotation)
            return solid(body, "box", self.vector(shape.size), at, axes, colour)
        if isinstance(shape, Cylinder):
            size = (self.number(shape.radius), self.number(shape.length), 0.0)
            axes = axes_along(self.vector(shape.axis))
            return solid(body, "cylinder", size, at, axes, colour)
        size = (self.number(shape.radius), 0.0, 0.0)
        return solid(body, "sphere", size, at, np.eye(3), colour)

    def _from_joints(self, body: Body, colour: Colour) -> Iterator[Solid]:
        """Rods between the joints that hold a body, a box of its inertia where there are none."""
        com, mass = self.vector(body.com), self.number(body.mass)
        points = _distinct(self.anchors[body.name], SEVEN_DIGITS * self.size)
        hub = points[0] if len(points) <= 2 else np.mean(points, axis=0)
        thin = THIN * self.size
        if len(points) == 1 and mass > 0:
            points = _distinct([*points, com], SEVEN_DIGITS * self.size)
        for point in points:
            if np.linalg.norm(point - hub) > SEVEN_DIGITS * self.size:
                yield rod(body.name, hub, point, thin, colour)
        xx, yy, zz, xy, xz, yz = (self.number(entry) for entry in body.inertia.entries)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if mass > 0 and inertia.any():
            box = equivalent_box(body.name, mass, com, inertia, colour)
            if body.name in self.floors:  # not in the way of what rolls on it
                yield self._plate(box, self.floors[body.name])
            elif len(points) <= 1 or max(box.size) > 4 * thin:
                yield box
        elif mass > 0:
            size = (2.2 * thin, 0.0, 0.0)
            yield solid(body.name, "sphere", size, com, np.eye(3), colour)

    def _plate(self, box: Solid, plane: Plane) -> Solid:
        """A thin box as wide as another, its top where something rolls."""
        point, normal = self.vector(plane.point), _unit(self.vector(plane.normal))
        wide, thick = max(box.size), 2 * THIN * self.size
        centre = np.array(box.at)
        top = centre + ((point - centre) @ normal) * normal
        axes = axes_along(normal)
        return solid(
            box.body, "box", (wide, wide, thick), top - 0.5 * thick * normal, axes, box.colour
        )

    def _joint(self, connection: Connection) -> Iterator[Solid]:
        """A small pin, sleeve or ball where two bodies are joined."""
        joint = connection.joint
        if not joint.picture or connection.child in self.contacts:
            return
        small = 1.25 * THIN * self.size
        shape, size = {
            "pin": ("cylinder", (small, 3.2 * small, 0.0)),
            "sleeve": ("box", (1.8 * small, 1.8 * small, 3.0 * small)),
            "ball": ("sphere", (1.3 * small, 0.0, 0.0)),
        }[joint.picture]
        axes = np.eye(3)
        if joint.picture != "ball":
            axis = self.vector(joint.axis)  # type: ignore[attr-defined]
            axes = axes_along(self.matrix(connection.rotation) @ axis)
        at = self.vector(connection.at)
        yield solid(connection.parent, shape, size, at, axes, JOINT)

    def _touch(self, contact: Contact, floors: dict[Floor, int]) -> Touch:
        plane = contact.plane
        point, normal = self.vector(plane.point), _unit(self.vector(plane.normal))
        floor = Floor(plane.on, triple(point), triple(normal))
        axis = triple(_unit(self.vector(contact.axis))) if contact.wheel.has_axis else None
        return Touch(
            contact.name,
            contact.body,
            triple(self.vector(contact.at)),
            axis,
            self.number(contact.wheel.radius),
            floors.setdefault(floor, len(floors)),
        )

    def _cords(self) -> Iterator[Cord]:
        for strut in self.mechanism.struts:
            ends = triple(self.vector(strut.at)), triple(self.vector(strut.child_at))
            yield Cord((strut.parent, strut.child), ends)
        for coupling in self.mechanism.couplings if not self.meshes else ():
            yield from self._belts(coupling)

    def _belts(self, coupling: Coupling) -> Iterator[Cord]:
        """Lines from the first joint of a coupling to the others, where these have places."""
        joints = [
            connection
            for name in coupling.joints
            for connection in self.mechanism.connections
            if name in (connection.name, *connection.coordinates, *connection.speeds)
            and not connection.joint.carries_base
        ]
        for other in joints[1:]:
            first = joints[0]
            ends = self.vector(first.at), self.vector(other.at)
            if (
                first.parent != other.parent
                or np.linalg.norm(ends[1] - ends[0]) > SEVEN_DIGITS * self.size
            ):
                yield Cord((first.parent, other.parent), (triple(ends[0]), triple(ends[1])))


def _simple(body: Body) -> list[Box | Cylinder | Sphere]:
    """The shapes that are no files."""
    return [shape for shape in body.shapes if not isinstance(shape, Mesh)]


def _distinct(points: list[Array], near: float) -> list[Array]:
    """Points without those that stand at another's place."""
    kept: list[Array] = []
    for point in points:
        if all(np.linalg.norm(point - other) > near for other in kept):
            kept.append(point)
    return kept


def _unit(v: Array) -> Array:
    scaled: Array = v / np.linalg.norm(v)
    return scaled
