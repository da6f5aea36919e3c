"""Links and joints of a URDF file: numbers, shapes, the tree they make, and who follows whom."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from axode.errors import suggest
from axode.formats.xml.reading import (
    MOMENTS,
    Findings,
    Numbers,
    Owner,
    box,
    exact_angle,
    matrix,
    numbers_in,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.files.wheel_proposals import LinkSolid
from axode.mechanism.values.geometry import ORIGIN
from axode.numerics.rotations import from_quaternions, to_angles

# links ----------------------------------------------------------------------------------------


_SOLIDS = ("sphere", "cylinder", "box", "capsule")


@dataclass(frozen=True)
class UrdfOwner(Owner):
    """The link or joint that elements belong to."""

    def origin(self, element: Element) -> tuple[Numbers, Numbers]:
        """Position [m] and roll, pitch, yaw [rad] of a link's or joint's element."""
        return self.pose(element.first("origin"))

    def pose(self, origin: Element | None, *more: str) -> tuple[Numbers, Numbers]:
        """Position [m] and roll, pitch, yaw [rad] in the attributes of an element."""
        if origin is None:
            return ORIGIN, ORIGIN  # type: ignore[return-value]
        self.only(origin, "xyz", "rpy", "quat_xyzw", *more)
        place = self.numbers(origin, "xyz", (0.0, 0.0, 0.0), required=False)
        known = self.count()
        if "quat_xyzw" in origin.attributes:  # of URDF 1.2, instead of the angles
            return _no_minus(place), self._turned(origin)
        angles = self.numbers(origin, "rpy", (0.0, 0.0, 0.0), required=False)
        if self.count() == known and "rpy" in origin.attributes:
            angles = tuple(map(exact_angle, origin.attributes["rpy"].split()))
        return _no_minus(place), _no_minus(angles)

    def _turned(self, origin: Element) -> Numbers:
        """Roll, pitch and yaw of a quaternion [rad], its scalar part last."""
        x, y, z, w = self.numbers(origin, "quat_xyzw", (0.0, 0.0, 0.0, 1.0))
        length = math.hypot(x, y, z, w)
        if "rpy" in origin.attributes:
            self.report(origin, "origin", "has both rpy and quat_xyzw; leave one of them out")
        elif not 0.0 < length < math.inf:
            self.report(origin, "origin quat_xyzw", "is no rotation; '0 0 0 1' turns nothing")
        else:
            angles = to_angles(from_quaternions(np.array((w, x, y, z)) / length))
            return _no_minus(tuple(exact_angle(repr(float(angle))) for angle in angles))
        return ORIGIN  # type: ignore[return-value]

    def axis(self, joint: Element, tag: str = "axis") -> Numbers | None:
        """Read the unit axis of a joint, x unless the file has another; None for a zero axis."""
        element = joint.first(tag)
        if element is None:
            return (1.0, 0.0, 0.0)
        axis = self.numbers(element, "xyz", (1.0, 0.0, 0.0))
        length = math.hypot(*axis)
        if length == 0.0:
            return None
        if not length < math.inf:
            self.report(element, f"{tag} xyz", "points nowhere; give a direction such as '0 0 1'")
            return (1.0, 0.0, 0.0)
        return _no_minus(tuple(part / length for part in axis))

    def inertial(self, link: Element) -> tuple[float, Numbers, Inertia]:
        """Mass, mass centre and inertia about it in the link's axes; all zero without inertial."""
        element = link.first("inertial")
        nothing = 0.0, ORIGIN, Inertia.point()
        if element is None:
            return nothing  # type: ignore[return-value]
        self.look_for_slips(element, ("origin", "mass", "inertia"))
        com, angles = self.origin(element)
        weight, tensor = element.first("mass"), element.first("inertia")
        if weight is None or "value" not in weight.attributes:
            what = 'has no <mass value="..."/>'
            self.note(element, "inertial", what, "the link is massless")
            return nothing  # type: ignore[return-value]
        self.only(weight, "value")
        mass = self.number(weight, "value", 1.0)
        if tensor is None:
            what = "has no <inertia ixx=... iyy=... izz=.../>"
            self.note(element, "inertial", what, "the link is a point mass")
            return mass, com, Inertia.point()
        self.only(tensor, *MOMENTS)
        known = self.count()
        for moment in MOMENTS[:3]:
            if moment not in tensor.attributes:
                done = "the link is a point mass"
                self.note(tensor, f"inertia {moment}", "is missing", done)
        entries = [self.number(tensor, name, 0.0, required=False) for name in MOMENTS]
        if self.count() > known:
            return mass, com, Inertia.point()
        R = matrix(angles) if any(angles) else None
        return mass, com, self.inertia(weight, tensor, mass, entries, R)

    # pictures ------------------------------------------------------------------------------------

    def shapes(self, link: Element, tag: str, colours: dict[str, Numbers]) -> list[Shape]:
        """All shapes of a link that pictures can show.

        Args:
            link: The element.
            tag: Those of its "visual" or "collision" elements.
            colours: Colours of the whole file, by the names of their materials.
        """
        reader = self.aside("not drawn")
        found: list[Shape] = []
        for element in link.all(tag):
            geometry = element.first("geometry")
            rgba = reader.colour(element.first("material"), colours)
            if rgba[3:] == (0.0,):  # not to be seen
                continue
            for solid in geometry.children if geometry else ():
                known = self.count()
                shapes = reader._solid(solid, *reader.origin(element), rgba[:3] or None)
                if self.count() == known and not any(f for s in shapes for f in s.faults()):
                    found += shapes
        return found

    def colour(self, material: Element | None, colours: dict[str, Numbers]) -> Numbers:
        """Red, green, blue and opacity of a material; nothing where it has none."""
        given = material.first("color") if material else None
        if material is None or given is None:
            return colours.get(material.attributes.get("name", ""), ()) if material else ()
        values = numbers_in(self.words(given, "rgba"))
        if values is None or len(values) not in (3, 4):
            text = given.attributes.get("rgba", "")
            self.note(given, "color rgba", f"expected four numbers, got '{text}'", "ignored")
            return ()
        if not all(map(math.isfinite, values)):
            return ()
        return tuple(min(max(value, 0.0), 1.0) for value in (*values, 1.0)[:4])

    def solids(self, link: Element, body: str) -> list[LinkSolid]:
        """List the boxes, cylinders and spheres of a link, those that touch others first."""
        reader = type(self)(self.kind, self.name, Findings())  # `shapes` reports what is wrong
        found: list[LinkSolid | None] = []
        for element in (*link.all("collision"), *link.all("visual")):
            geometry = element.first("geometry")
            solids = [s for s in geometry.children if s.tag in _SOLIDS] if geometry else []
            if solids:
                place = reader.origin(element)
                shapes = [shape for s in solids for shape in reader._solid(s, *place)]
                found += [LinkSolid.of(body, shape) for shape in shapes]
        return [solid for solid in found if solid] if not reader.findings.faults else []

    def _solid(
        self, solid: Element, at: Numbers, angles: Numbers, colour: Numbers | None = None
    ) -> list[Shape]:
        """Return the shapes of a solid: three of a capsule, whose length is without its caps."""
        if solid.tag == "sphere":
            return [Sphere(self.number(solid, "radius", 1.0), at, colour)]
        if solid.tag in ("cylinder", "capsule"):
            radius, length = (self.number(solid, n, 1.0) for n in ("radius", "length"))
            axis = _no_minus(tuple(matrix(angles)[:, 2].tolist()))
            centre, half = np.array(at), np.multiply(axis, length / 2)
            ends = (centre - half, centre + half) if solid.tag == "capsule" else ()
            caps = [Sphere(radius, _no_minus(tuple(end.tolist())), colour) for end in ends]
            return [Cylinder(radius, length, axis, at, colour), *caps]
        if solid.tag == "box":
            size = self.numbers(solid, "size", (1.0, 1.0, 1.0))
            return [box(size, at, matrix(angles), angles, colour)]
        if solid.tag == "mesh":
            file = solid.attributes.get("filename", "")
            scale = self.numbers(solid, "scale", (1.0, 1.0, 1.0), required=False)
            return [Mesh(file, scale, at, angles, colour)] if file.isprintable() else []
        return []


def _no_minus(values: Numbers) -> Numbers:
    """Remove negative zeros."""
    return tuple(value + 0.0 for value in values)


# joints ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mimic:
    """What a joint follows: its position is multiplier times the leader's, plus offset."""

    element: Element
    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class Joint:
    """A joint of the file with all its numbers."""

    owner: UrdfOwner
    element: Element
    type: str
    parent: str
    child: str
    at: Numbers
    angles: Numbers
    axis: Numbers
    effort: float
    damping: float
    friction: float
    stops: tuple[float, float] | None = None
    mimic: Mimic | None = None

    @property
    def name(self) -> str:
        """Unique among the joints of a sound file."""
        return self.owner.name


def root_of(
    links: dict[str, UrdfOwner],
    elements: dict[str, Element],
    joints: list[Joint],
    *,
    links_named: bool = True,
    joints_named: bool = True,
) -> tuple[str, dict[str, Joint]]:
    """Find the link that no joint holds, and the joint that holds each other link.

    What keeps the file from being a tree is reported; joints that hold a link a second time are
    noted, and not among the holding ones.

    Args:
        links: By name.
        elements: Elements of the links, by name.
        joints: All of them.
        links_named: Whether every link has a name of its own; else names may seem unknown.
        joints_named: Whether every joint has one; else links may seem to hang free.
    """
    known = [_knows_its_links(joint, links, links_named) for joint in joints]
    holding = _holding_joints(joints, links)
    roots = [name for name in links if name not in holding]
    if (
        all(known) and links_named and joints_named
    ):  # else what seems loose may belong to what could not be read
        _report_rings(roots, holding)
        for name in roots[1:]:
            links[name].report(
                elements[name],
                "",
                f"no joint holds it, and none holds '{roots[0]}'; "
                "a robot has one root: make this link the child of a "
                "joint",
            )
    return (roots[0] if roots else ""), holding


def _knows_its_links(joint: Joint, links: dict[str, UrdfOwner], links_named: bool) -> bool:
    """Return whether a joint has two links; report why not."""
    report, element = joint.owner.report, joint.element
    for field, name in (("parent", joint.parent), ("child", joint.child)):
        if not name:
            report(element, field, f'is missing; name a link: <{field} link="..."/>')
        elif name not in links and links_named:
            report(
                element.first(field) or element,
                field,
                f"unknown link '{name}'. {joint.owner.hint('link', name, [*links])}",
            )
    if joint.parent and joint.parent == joint.child:
        report(element, "child", "a joint needs two different links")
    return joint.parent in links and joint.child in links and joint.parent != joint.child


def _holding_joints(joints: list[Joint], links: dict[str, UrdfOwner]) -> dict[str, Joint]:
    """The joint that holds each link; note a second one, which closes a loop.

    Of several joints that could hold a link, it is the first in the file that a root leads to.
    """
    leaving: dict[str, list[int]] = {}
    for number, joint in enumerate(joints):
        leaving.setdefault(joint.parent, []).append(number)
    held = {joint.child for joint in joints}
    holding: dict[str, Joint] = {}
    waiting = [number for name in links if name not in held for number in leaving.get(name, ())]
    heapq.heapify(waiting)
    while waiting:
        joint = joints[heapq.heappop(waiting)]
        if joint.child not in holding:
            holding[joint.child] = joint
            for number in leaving.get(joint.child, ()):
                heapq.heappush(waiting, number)
    for joint in joints:
        first = holding.setdefault(joint.child, joint)
        if first is not joint and joint.child:
            already = f"joint '{first.name}' holds link '{joint.child}' already"
            message = f"{already}, and a URDF file is a tree"
            joint.owner.note(joint.element, "child", message, "closes a loop")
    return holding


def _report_rings(roots: list[str], holding: dict[str, Joint]) -> None:
    """Report joints that no root leads to."""
    children: dict[str, list[str]] = {}
    for child, joint in holding.items():
        children.setdefault(joint.parent, []).append(child)
    reached, waiting = set(roots), list(roots)
    while waiting:
        found = children.get(waiting.pop(), [])
        reached.update(found)
        waiting.extend(found)
    for child, joint in holding.items():
        if child not in reached:
            joint.owner.report(
                joint.element,
                "",
                "its links hold each other in a ring and reach no "
                "root; one link is the child of no joint",
            )


TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
DRIVEN = ("revolute", "continuous", "prismatic")  # what one motor can move
FAR = 1e9  # [m or rad]: as files write an end that is none
EXTENSION = "spherical"  # a type that some programs add
X = (1.0, 0.0, 0.0)
BY_ITSELF = "the joint moves by itself"


@dataclass(frozen=True)
class JointReader:
    """Reads one joint, and the ends of its motion if they are asked for."""

    owner: UrdfOwner
    reads_stops: bool = False

    def read(self, element: Element) -> Joint:
        """Read the joint with all its numbers."""
        owner = self.owner
        kind = written = self._type(element)
        at, angles = owner.origin(element)
        ends = (element.first("parent"), element.first("child"))
        parent, child = (end.attributes.get("link", "") if end else "" for end in ends)
        axis: Numbers = X
        if kind not in ("fixed", "floating", EXTENSION):
            kind, axis = self._axis(element, kind)
        limit = element.first("limit")
        dynamics = element.first("dynamics") if written != "fixed" else None
        effort = self._not_negative(limit, "effort")
        damping = self._not_negative(dynamics, "damping")
        friction = self._not_negative(dynamics, "friction")
        return Joint(
            owner,
            element,
            kind,
            parent,
            child,
            at,
            angles,
            axis,
            effort,
            damping,
            friction,
            self._stops(limit, kind),
            self._mimic(element),
        )

    def _stops(self, limit: Element | None, kind: str) -> tuple[float, float] | None:
        """Read where the motion ends; None if it does not."""
        if limit is None or kind not in ("revolute", "prismatic") or not self.reads_stops:
            return None
        aside = self.owner.aside("no stops")
        known = aside.count()
        ends = [aside.number(limit, end, 0.0, required=False) for end in ("lower", "upper")]
        low, high = (end if abs(end) < FAR else math.copysign(math.inf, end) for end in ends)
        if aside.count() == known and low >= high:
            message = f"lower {low:g} is not below upper {high:g}, which leaves no motion"
            aside.report(limit, "limit", message)
        if aside.count() > known or (math.isinf(low) and math.isinf(high)):
            return None
        return low, high

    def _not_negative(self, element: Element | None, attribute: str) -> float:
        """A number that is zero unless the file gives a sound one."""
        if element is None or attribute not in element.attributes:
            return 0.0
        aside = self.owner.aside("left out")
        value = aside.number(element, attribute, 0.0, required=False)
        return aside.not_negative(element, f"{element.tag} {attribute}", value)

    def _type(self, element: Element) -> str:
        kind = element.attributes.get("type", "")
        if not kind:
            self.owner.report(element, "type", f"is missing. {suggest('type', '', TYPES)}")
        elif kind == EXTENSION:
            message = f"'{kind}' is no type of URDF. {suggest('type', '', TYPES)}"
            self.owner.note(element, "type", message, "a ball joint, as its name says")
        elif kind not in TYPES:
            hint = suggest("type", kind, TYPES)
            self.owner.report(element, "type", f"unknown type '{kind}'. {hint}")
        return kind

    def _axis(self, element: Element, kind: str) -> tuple[str, Numbers]:
        """Read type and axis; without a direction there is nothing to turn about or slide along."""
        axis = self.owner.axis(element)
        if axis is not None:
            return kind, axis
        place = element.first("axis") or element
        message = "points nowhere; give a direction such as '0 0 1'"
        if kind == "planar":
            self.owner.report(place, "axis xyz", message)
        else:
            self.owner.note(place, "axis xyz", message, "the joint is fixed")
        return "fixed", X

    def _mimic(self, element: Element) -> Mimic | None:
        mimic = element.first("mimic")
        if mimic is None:
            return None
        self.owner.only(mimic, "joint", "multiplier", "offset")
        multiplier = self.owner.number(mimic, "multiplier", 1.0, required=False)
        offset = self.owner.number(mimic, "offset", 0.0, required=False)
        return Mimic(mimic, mimic.attributes.get("joint", ""), multiplier, offset)


def follow(joints: dict[str, Joint]) -> dict[str, Joint]:
    """Resolve what each joint follows.

    A leader that cannot move, and a multiplier of zero, hold a joint at its offset. A leader that
    is unknown or has several coordinates leads nothing.
    """
    return {name: _follow(joint, joints) for name, joint in joints.items()}


def _follow(joint: Joint, joints: dict[str, Joint]) -> Joint:
    mimic = joint.mimic
    if mimic is None:
        return joint
    alone = replace(joint, mimic=None)
    note = joint.owner.note
    if joint.type not in DRIVEN:
        message = f"a joint of type {joint.type} cannot follow another"
        note(mimic.element, "mimic", message, "ignored")
        return alone
    leader, start = joints.get(mimic.leader), joint.name
    if leader is None or mimic.leader == start:
        others = [name for name, other in joints.items() if name != start and other.type in DRIVEN]
        hint = joint.owner.hint("joint", mimic.leader, others)
        message = f"cannot follow joint '{mimic.leader}'. {hint}"
        note(mimic.element, "mimic", message, BY_ITSELF)
        return alone
    if leader.type == "fixed" or mimic.multiplier == 0.0:
        why = f"follows joint '{mimic.leader}', which is fixed"
        if leader.type != "fixed":
            why = f"follows joint '{mimic.leader}' with multiplier 0"
        note(mimic.element, "mimic", why, f"held at {mimic.offset:g}")
        return _hold(alone, mimic.offset)
    if leader.type not in DRIVEN:
        message = f"joint '{mimic.leader}' is {leader.type}, and has no single position to follow"
        note(mimic.element, "mimic", message, BY_ITSELF)
        return alone
    return joint


def _hold(joint: Joint, position: float) -> Joint:
    """Fix a joint where it is."""
    R = matrix(joint.angles)
    axis = np.array(joint.axis)
    at: Any = joint.at
    turned: Any = joint.angles
    if joint.type == "prismatic":
        at = tuple(map(float, np.array(joint.at) + R @ axis * position))
    elif position:
        half = position / 2
        q = (float(np.cos(half)), *map(float, np.sin(half) * axis))
        turned = tuple(tuple(row) for row in (R @ matrix(q)).tolist())
    free = replace(joint, effort=0.0, damping=0.0, friction=0.0, stops=None)
    return replace(free, type="fixed", at=at, angles=turned)
