"""A mechanism as files of other programs hold it: links with the frames of their joints.

A link's frame is that of the joint that holds it, as in URDF. A joint that a format lacks is
several simple ones with massless links between them: a universal joint is two hinges, a planar one
two slides and a hinge. A loop's joint that it lacks carries a link of its own, which is welded to
the loop's other side and has half of its inertia.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from axode.formats.written.written_joints import (
    NO_OFFSET,
    Array,
    FramePose,
    JointStep,
    Z,
    cleaned_numbers,
    joint_values,
    kind_of,
    numbers_of,
    reversed_joint,
    steps_of,
    three_angles,
    turn,
    unit_axis,
)
from axode.mechanism.elements.bodies import GROUND, Body
from axode.mechanism.elements.parts import Connection
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of, speed_meanings, tree_order
from axode.mechanism.values.expressions import numeric
from axode.numerics.rotations import from_quaternions

SINGLE = ("hinge", "slide", "screw")  # kinds with one coordinate


@dataclass
class WrittenLink:
    """A link: mass, mass centre and central inertia in its own frame.

    Attributes:
        body: The body it stands for; None for a massless one between joints.
        place: The body's frame in the link's.
        is_between: Whether it is only a step of a joint that the format lacks.
    """

    name: str
    body: Body | None = None
    place: FramePose = NO_OFFSET
    mass: float = 0.0
    com: Array = field(default_factory=lambda: np.zeros(3))
    tensor: Array = field(default_factory=lambda: np.zeros((3, 3)))
    is_between: bool = False

    @property
    def entries(self) -> tuple[float, ...]:
        """Entries xx, yy, zz, xy, xz, yz of the inertia."""
        return tuple(self.tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist())


@dataclass
class WrittenJoint:
    """A joint between two links; the child's frame is at `place` in the parent's at zero.

    Attributes:
        coordinates, speeds: Names here of what it moves, "" for what has none.
        home: Its coordinates in the home configuration.
    """

    name: str
    kind: str
    parent: str
    child: str
    place: FramePose
    axis: Array = field(default_factory=lambda: Z)
    second: Array = field(default_factory=lambda: Z)
    pitch: float = 0.0
    coordinates: tuple[str, ...] = ()
    speeds: tuple[str, ...] = ()
    home: tuple[float, ...] = ()

    def displaced(self) -> FramePose:
        """Return the pose of the child's frame in the parent's at home."""
        if not any(self.home):
            return self.place
        return self.place @ _motion(self)


class WrittenLoop(NamedTuple):
    """A joint that closes a loop: its frame in two links."""

    name: str
    kind: str
    first: str
    second: str
    at: FramePose
    second_at: FramePose
    axis: Array = Z
    other_axis: Array = Z  # of a universal joint, in the second link
    pitch: float = 0.0


_Term: TypeAlias = tuple[WrittenJoint, float]


class WrittenCoupling(NamedTuple):
    """A linear relation: coefficients times the coordinates of joints add to `offset`."""

    name: str
    terms: tuple[_Term, ...]
    offset: float


class WrittenTree:
    """Links, joints, loops and couplings of a mechanism for one format.

    Args:
        mechanism: Whose parameters have the values that are written.
        native: Kinds of joints that the format has.
        loops: Kinds of joints that it has for loops.
        home: Values of all coordinates by name.
        expanded: Joints that are written as simple ones all the same.
        one_namespace: Whether no link may have the name of a joint, as in SDF.

    Attributes:
        frames: Link of each body, and the body's frame in it.
        left_out: Sentences about what the format cannot express.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        native: frozenset[str],
        loops: frozenset[str],
        home: Mapping[str, float],
        expanded: frozenset[str] = frozenset(),
        *,
        one_namespace: bool = False,
    ) -> None:
        self.mechanism, self.native, self.expanded = mechanism, native, expanded
        self.one_namespace = one_namespace
        self.home = home
        self.left_out: list[str] = []
        self.links: dict[str, WrittenLink] = {}
        self.joints: list[WrittenJoint] = []
        self.loops: list[WrittenLoop] = []
        self.couplings: list[WrittenCoupling] = []
        self.frames: dict[str, tuple[str, FramePose]] = {GROUND.name: (GROUND.name, NO_OFFSET)}
        links = {"world", GROUND.name}
        self._taken = {"link": links, "joint": links if one_namespace else {"world"}}
        self._speeds = speed_meanings(mechanism)
        self.link_names = self._names("link", [body.name for body in mechanism.bodies])
        everything = (*mechanism.connections, *mechanism.loops)
        self.joint_names = self._names("joint", [joint.name for joint in everything])
        bodies = {body.name: body for body in mechanism.bodies}
        for connection in tree_order(mechanism):
            self._add_joint(connection, bodies[connection.child])
        for loop in mechanism.loops:
            self._add_loop(loop, loops)
        self._add_couplings()

    # names ---------------------------------------------------------------------------------------

    def free_name(self, kind: str, name: str) -> str:
        """Return a name that nothing of this kind has yet, and take it."""
        taken = self._taken.setdefault(kind, set())
        if name in taken and self.one_namespace and kind == "joint":
            name += "_joint"
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    def _names(self, kind: str, names: list[str]) -> dict[str, str]:
        """Names in the file by names here; those that it can keep are taken first."""
        taken = self._taken[kind]
        legal = {name: self._legal(name) for name in names}
        found = {name: name for name in names if legal[name] == name not in taken}
        taken |= set(found)
        for name in names:
            if name not in found:
                found[name] = self.free_name(kind, legal[name])
                self.left_out.append(f"{kind} '{name}' is called '{found[name]}' in the file")
        return found

    def _legal(self, name: str) -> str:
        """Return the name that a format of nested names can hold."""
        if not self.one_namespace:
            return name
        name = name.replace("::", "_").strip()
        return f"_{name}" if name.startswith("__") and name.endswith("__") else name or "_"

    # links and joints ----------------------------------------------------------------------------

    def _add_joint(self, connection: Connection, body: Body) -> None:
        own = FramePose.of(connection.child_at, connection.child_rotation).inverse()
        steps, align = steps_of(connection, self._native(connection))
        own = FramePose(align.T, np.zeros(3)) @ own if align is not None else own
        link = _link(self.link_names[body.name], body, own)
        parent, at = self.frames[connection.parent]
        place = at @ FramePose.of(connection.at, connection.rotation)
        if align is not None:
            place = FramePose(place.R @ align, place.p)
        values = [self.home.get(name, 0.0) for name in connection.coordinates]
        self._chain(connection, steps, parent, place, link, values)
        self.frames[body.name] = link.name, own

    def _native(self, connection: Connection) -> frozenset[str]:
        """Kinds of joints that this one may be written as."""
        return self.native if connection.name not in self.expanded else self.native - {"free"}

    def _chain(
        self,
        connection: Connection,
        steps: list[JointStep],
        parent: str,
        place: FramePose,
        link: WrittenLink,
        values: list[float],
    ) -> list[WrittenJoint]:
        """Add simple joints one after the other, and the link at their end."""
        name = self.joint_names[connection.name]
        made: list[WrittenJoint] = []
        for step in steps:
            last = step is steps[-1]
            full = self.free_name("joint", f"{name}.{step.suffix}") if step.suffix else name
            child = link if last else WrittenLink(self.free_name("link", full), is_between=True)
            self.links[child.name] = child
            made.append(
                WrittenJoint(
                    full,
                    step.kind,
                    parent,
                    child.name,
                    NO_OFFSET if made else place,
                    cleaned_numbers(step.axis),
                    coordinates=tuple(connection.coordinates[k] for k in step.coordinates),
                    speeds=tuple("" if k is None else connection.speeds[k] for k in step.speeds),
                    home=tuple(values[k] for k in step.coordinates),
                )
            )
            parent = child.name
        self.joints += made
        self._complete(connection, made, values)
        return made

    def _complete(
        self, connection: Connection, made: list[WrittenJoint], values: list[float]
    ) -> None:
        """Add what is special about the parts of some joints."""
        joint: Any = connection.joint
        kind = kind_of(connection)
        if kind == "universal" and len(made) == 1:
            made[0].second = unit_axis(joint.second)
        if kind == "screw":
            pitch = made[0].pitch = numeric(joint.pitch)
            if len(made) == 2:
                made[1].home = (pitch * values[0],)
                terms = ((made[1], 1.0), (made[0], -pitch))
                self.couplings.append(WrittenCoupling(made[1].name, terms, 0.0))
        if kind == "ball" and len(made) == 3:
            for part, angle in zip(made, three_angles(values), strict=True):
                part.home = (angle,)
            self.left_out.append(
                f"joint '{connection.name}' turns about a point; it is written as three hinges, "
                f"{', '.join(repr(part.name) for part in made)}, which are singular where the "
                "second turns by a right angle"
            )

    # loops ---------------------------------------------------------------------------------------

    def _add_loop(self, loop: Connection, direct: frozenset[str]) -> None:
        kind = kind_of(loop)
        name = self.joint_names[loop.name]
        first, before = self.frames[loop.parent]
        second, after = self.frames[loop.child]
        place = before @ FramePose.of(loop.at, loop.rotation)
        weld_at = after @ FramePose.of(loop.child_at, loop.child_rotation)
        if kind in direct:
            axes = [unit_axis(getattr(loop.joint, field)) for field in loop.joint.directions]
            axis, other, *_ = [*axes, Z, Z]
            pitch = numeric(getattr(loop.joint, "pitch", 0.0))
            made = WrittenLoop(name, kind, first, second, place, weld_at, axis, other, pitch)
            self.loops.append(made)
            return
        if second == GROUND.name or not self.links[second].mass:
            loop, first, second = reversed_joint(loop), second, first
            place, weld_at = weld_at, place
        carried = WrittenLink(self.free_name("link", name))
        steps, align = steps_of(loop, self._native(loop))
        if align is not None:
            place, weld_at = (FramePose(end.R @ align, end.p) for end in (place, weld_at))
        if second != GROUND.name:
            _share(self.links[second], carried, weld_at.inverse())
        relative = (self.pose(first) @ place).inverse() @ self.pose(second) @ weld_at
        values = joint_values(loop, relative)
        for joint in self._chain(loop, steps, first, place, carried, values):
            joint.coordinates, joint.speeds = (), ()
        weld = self.free_name("joint", f"{name}.weld")
        self.loops.append(WrittenLoop(weld, "fixed", carried.name, second, NO_OFFSET, weld_at))

    def pose(self, link: str) -> FramePose:
        """Return the pose of a link at home."""
        found = NO_OFFSET
        holding = {joint.child: joint for joint in self.joints}
        while link != GROUND.name:
            joint = holding[link]
            found = joint.displaced() @ found
            link = joint.parent
        return found

    # couplings and forces ------------------------------------------------------------------------

    def joint_of_coordinate(self, name: str) -> WrittenJoint | None:
        """Return the simple joint that a coordinate belongs to; None if it has several."""
        coordinate = coordinate_of(self.mechanism, name)
        found = (j for j in self.joints if j.coordinates == (coordinate,))
        return next(found, None)

    def joint_of_speed(self, name: str) -> tuple[WrittenJoint, int] | None:
        """Return the joint that has a speed as its rate, and its number there."""
        speed = self._speeds.get(name, name)
        for joint in self.joints:
            if speed in joint.speeds:
                return joint, joint.speeds.index(speed)
        return None

    def connection_of_speed(self, name: str) -> Connection:
        """Return the joint of the mechanism that a speed belongs to."""
        speed = self._speeds.get(name, name)
        return next(c for c in self.mechanism.connections if speed in c.speeds)

    def _add_couplings(self) -> None:
        for coupling in self.mechanism.couplings:
            if coupling.arguments:
                self.left_out.append(f"coupling '{coupling.name}' is not linear")
                continue
            found = [(self.joint_of_coordinate(n), numeric(c)) for n, c in coupling.terms]
            terms = tuple((joint, c) for joint, c in found if joint is not None and c)
            if len(terms) < sum(1 for _, c in found if c) or not terms:
                self.left_out.append(
                    f"coupling '{coupling.name}' relates speeds, or coordinates that the format "
                    "does not have"
                )
                continue
            self.couplings.append(WrittenCoupling(coupling.name, terms, numeric(coupling.offset)))

    def followers(self) -> Iterator[tuple[WrittenCoupling, _Term | None, _Term | None]]:
        """Yield couplings with the term of the joint that follows and of the one that leads.

        A joint with a motor leads if the other has none. Both are None where there are not two
        terms, or both joints follow others already.
        """
        leaders: dict[str, str] = {}
        moved = [self.joint_of_speed(drive.coordinate) for drive in self.mechanism.drives]
        driven = {found[0].name for found in moved if found is not None}
        for coupling in self.couplings:
            pairs = [coupling.terms, coupling.terms[::-1]] if len(coupling.terms) == 2 else []
            pairs.sort(key=lambda pair: pair[0][0].name in driven)
            for follower, leader in pairs:
                root = leader[0].name
                while root in leaders:
                    root = leaders[root]
                if follower[0].name not in leaders and root != follower[0].name:
                    leaders[follower[0].name] = leader[0].name
                    yield coupling, follower, leader
                    break
            else:
                yield coupling, None, None

    def damping(self) -> Iterator[tuple[WrittenJoint, list[float]]]:
        """Yield joints with the damping of each of their speeds; note what has none."""
        total: dict[int, tuple[WrittenJoint, list[float]]] = {}
        for damper in self.mechanism.dampers:
            found, strength = self.joint_of_speed(damper.coordinate), numeric(damper.coefficient)
            if found is None:
                if strength:
                    self.left_out.append(
                        f"damper '{damper.name}' acts on {damper.coordinate}, which is no rate of "
                        "a joint in the file"
                    )
                continue
            joint, k = found
            total.setdefault(id(joint), (joint, [0.0] * len(joint.speeds)))[1][k] += strength
        yield from total.values()

    def stiffness(self) -> Iterator[tuple[WrittenJoint, float, float]]:
        """Yield joints with their stiffness and position at rest; several springs are one."""
        total: dict[int, tuple[WrittenJoint, float, float]] = {}
        for spring in self.mechanism.springs:
            joint, k = self.joint_of_coordinate(spring.coordinate), numeric(spring.stiffness)
            if joint is None:
                self.left_out.append(
                    f"spring '{spring.name}' acts on {spring.coordinate}, which is no coordinate "
                    "of a joint in the file"
                )
                continue
            _, before, rest = total.get(id(joint), (joint, 0.0, 0.0))
            whole = before + k
            at = (
                numeric(spring.rest)
                if not before or not whole
                else ((before * rest + k * numeric(spring.rest)) / whole)
            )
            total[id(joint)] = joint, whole, at
        yield from total.values()


def _link(name: str, body: Body, place: FramePose) -> WrittenLink:
    """Return the link of a body whose frame is at a place in the link's."""
    com = np.array(numbers_of(body.com), dtype=float)
    xx, yy, zz, xy, xz, yz = (numeric(entry) for entry in body.inertia.entries)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if not place.is_identity:
        com = cleaned_numbers(place.point(com))
        tensor = place.R @ tensor @ place.R.T
        tensor = cleaned_numbers((tensor + tensor.T) / 2)
    return WrittenLink(name, body, place, numeric(body.mass), com, tensor)


def _share(link: WrittenLink, other: WrittenLink, place: FramePose) -> None:
    """Give half of a link's inertia to one that is welded to it; the link is at `place` in it."""
    link.mass, link.tensor = link.mass / 2, link.tensor / 2
    other.mass, other.com = link.mass, cleaned_numbers(place.point(link.com))
    tensor = place.R @ link.tensor @ place.R.T
    other.tensor = cleaned_numbers((tensor + tensor.T) / 2)


def _motion(joint: WrittenJoint) -> FramePose:
    """Return the motion of the child's frame at home."""
    q, axis = joint.home, joint.axis
    if joint.kind == "slide":
        return FramePose(np.eye(3), axis * q[0])
    if joint.kind == "screw":
        return FramePose(turn(axis, q[0]), axis * (joint.pitch * q[0]))
    if joint.kind == "universal":
        return FramePose(turn(axis, q[0]) @ turn(joint.second, q[1]), np.zeros(3))
    if joint.kind == "planar":
        return FramePose(turn(Z, q[2]), np.array([q[0], q[1], 0.0]))
    if joint.kind in ("ball", "free"):
        p = np.array(q[4:]) if joint.kind == "free" else np.zeros(3)
        return FramePose(from_quaternions(q[:4]), p)
    return FramePose(turn(axis, q[0]), np.zeros(3))
