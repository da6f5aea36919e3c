"""Elements that other programs add to URDF: what closes loops, springs, couplings, and the rest.

URDF has no loops. A `<loop_joint>` (Drake's of old, Isaac Sim's), a `<constraint>` (proposed for
ROS) and a `<loop>` (URDF+) name two links and a frame on each; Drake's ball constraint names two
points; a `<joint>` of SDF in a `<gazebo>` block joins its links where they are while all joints are
zero. What affects the motion and is not read is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from axode.errors import suggest
from axode.formats.urdf.urdf_elements import DRIVEN, Joint, UrdfOwner
from axode.formats.xml.reading import Findings, Numbers, Owner, close_to, matrix
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.joints import (
    AbstractJoint,
    Cylindrical,
    Fixed,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from axode.mechanism.values.geometry import ORIGIN
from axode.numerics.rank import singular_vectors
from axode.numerics.tolerances import SUM_ROUNDING

JOINING = ("loop_joint", "constraint", "loop")  # two links, and a frame on each
BALL = "drake:ball_constraint"
SPRING = "drake:linear_spring_damper"
COUPLING = "coupling"
READ = (*JOINING, BALL, SPRING, COUPLING)
NOT_MECHANICAL = (
    "material",
    "gazebo",
    "sensor",
    "frame",
    "ros2_control",
    "drake:collision_filter_group",
)
_FIRST = ("parent", "predecessor", "link1")
_SECOND = ("child", "successor", "link2")
_WITHOUT_AXIS = {
    "fixed": Fixed,
    "link": Fixed,
    "weld": Fixed,
    "spherical": Spherical,
    "ball": Spherical,
}
_WITH_AXIS = {
    "revolute": Revolute,
    "continuous": Revolute,
    "prismatic": Prismatic,
    "cylindrical": Cylindrical,
    "planar": Planar,
    "universal": Universal,
}
TYPES = (*_WITHOUT_AXIS, *_WITH_AXIS)
NOT_READ = "not read"
Frame: TypeAlias = tuple[Any, Any]  # position, and rotation in any form
DIGITS = 15  # of frames computed from others; zeros stay zeros


def loop_elements(robot: Element) -> Iterator[tuple[str, Element]]:
    """Name and element of everything that closes a loop; what has no name gets one."""
    for element in robot.children:
        if element.tag in JOINING or element.tag == BALL:
            ends = [name for name, _ in _ends(element)]
            yield element.attributes.get("name") or "_".join(filter(None, ends)), element
        elif element.tag == "gazebo" and "reference" not in element.attributes:
            for joint in element.all("joint"):
                yield joint.attributes.get("name", ""), joint


@dataclass(frozen=True)
class LoopReader:
    """Reads what closes loops, given the links and where they are while all joints are zero."""

    findings: Findings
    links: Mapping[str, object]
    frames: Mapping[str, np.ndarray]

    def read(self, name: str, element: Element) -> dict[str, Any] | None:
        """Read the joint and its frame on both links; None if it cannot be understood."""
        owner = UrdfOwner("loop", name, self.findings)
        if element.tag == BALL:
            return self._ball(owner, element)
        if element.tag == "joint":
            return self._of_gazebo(owner, element)
        return self._joining(owner, element)

    def _joining(self, owner: UrdfOwner, element: Element) -> dict[str, Any] | None:
        """Read two links with a frame on each, and axes in these frames."""
        ends = _ends(element)
        kind = element.attributes.get("type", "")
        if kind not in TYPES:
            message = f"unknown type '{kind}'. {suggest('type', kind, TYPES)}"
            owner.note(element, "type", message, NOT_READ)
            return None
        frames = [
            owner.pose(_frame_of(element, end, tags), "link")
            for (_, end), tags in zip(ends, (_FIRST, _SECOND), strict=True)
        ]
        self._note_friction(owner, element.first("dynamics"))
        tag = "parent_axis" if element.first("parent_axis") else "axis"
        axis = owner.axis(element, tag)
        other = owner.axis(element, "child_axis") if element.first("child_axis") else None
        return self._close(owner, element, kind, [name for name, _ in ends], frames, axis, other)

    def _ball(self, owner: UrdfOwner, element: Element) -> dict[str, Any] | None:
        points = [_part(element, f"{BALL}_{point}") for point in ("p_AP", "p_BQ")]
        at, child_at = (owner.numbers(p, "value", (0.0, 0.0, 0.0)) for p in points)
        parent, child = (name for name, _ in _ends(element))
        frames = [(at, ORIGIN), (child_at, ORIGIN)]
        return self._close(owner, element, "spherical", [parent, child], frames, None, None)

    def _of_gazebo(self, owner: UrdfOwner, element: Element) -> dict[str, Any] | None:
        """Read a joint of SDF: its frame is given in the child, axes in the joint's frame."""
        kind = element.attributes.get("type", "")
        ends = [_part(element, tag) for tag in ("parent", "child")]
        names = ["" if end is element else end.text for end in ends]
        strange = [part.tag for part in element.children if part.tag in _SDF_ONLY]
        pose = element.first("pose")
        if pose is not None:
            strange += [f"pose {name}" for name, given in pose.attributes.items() if given]
        axes = [_axis_of(element.first(tag)) for tag in ("axis", "axis2")]
        strange += [axis.tag for axis in axes if axis is not None and axis.attributes.get("frame")]
        if kind not in TYPES or strange:
            message = f"a joint of SDF with {', '.join(strange)}"
            if kind not in TYPES:
                message = f"unknown type '{kind}'. {suggest('type', kind, TYPES)}"
            owner.note(element, "type", message, NOT_READ)
            return None
        words = pose.text.split() if pose is not None else ["0"] * 6
        if len(words) != 6:
            owner.report(pose or element, "pose", f"expected six numbers, got '{' '.join(words)}'")
            words = ["0"] * 6
        line = (pose or element).line
        held = Element("pose", {"xyz": " ".join(words[:3]), "rpy": " ".join(words[3:])}, line)
        child = owner.pose(held)
        self._note_friction(owner, _inside(element, "axis", "dynamics"))
        axis = (0.0, 0.0, 1.0) if axes[0] is None else _direction(owner, axes[0])
        frames = [self._seen_from(names, child), child]
        other = _direction(owner, axes[1])
        return self._close(owner, element, kind, names, frames, axis, other)

    def spring(self, element: Element) -> dict[str, Any] | None:
        """Read a spring and damper between points of two links; None if it has no two links."""
        owner = UrdfOwner("spring", element.attributes.get("name", ""), self.findings)
        names = [name for name, _ in _ends(element)]
        read: dict[str, Any] = dict(zip(("parent", "child"), names, strict=True))
        for word, (name, usual) in _SPRING.items():
            values = owner.numbers(_part(element, f"{SPRING}_{word}"), "value", usual)
            read[name] = values if len(values) > 1 else values[0]
        return read if self._know(owner, element, names) else None

    def coupling(
        self, element: Element, holding: Mapping[str, Joint]
    ) -> tuple[str, str, float] | None:
        """Read how many times faster one link turns than another on the same link.

        Returns:
            Joint of the faster link, joint of the other, and the ratio; None if they are not on
            one link.
        """
        owner = UrdfOwner("coupling", element.attributes.get("name", ""), self.findings)
        ratio = owner.number(_part(element, "ratio"), "value", 1.0)
        names = [name for name, _ in _ends(element)]
        if not self._know(owner, element, names):
            return None
        first, second = (holding.get(name) for name in names)
        driven = [joint for joint in (first, second) if joint is not None and joint.type in DRIVEN]
        if len(driven) != 2 or driven[0].parent != driven[1].parent:
            message = "couples links that no two joints of one link turn"
            owner.note(element, "", message, NOT_READ)
            return None
        return driven[1].name, driven[0].name, ratio

    def _seen_from(self, names: list[str], frame: Frame) -> Frame:
        """Place a frame of the child in the parent, while all joints are zero."""
        parent, child = (self.frames.get(name, np.eye(4)) for name in names)
        placed = np.linalg.solve(parent, child @ _transform(*frame)).round(DIGITS) + 0.0
        return tuple(placed[:3, 3].tolist()), tuple(map(tuple, placed[:3, :3].tolist()))

    def _close(
        self,
        owner: UrdfOwner,
        element: Element,
        kind: str,
        names: list[str],
        frames: list[Frame],
        axis: Numbers | None,
        other: Numbers | None,
    ) -> dict[str, Any] | None:
        known = self._know(owner, element, names)
        if kind in _WITH_AXIS and axis is None:
            owner.report(element, "axis xyz", "points nowhere; give a direction such as '0 0 1'")
            known = False
        if not known:
            return None
        (at, rotation), (child_at, child_rotation) = frames
        joint: AbstractJoint
        if kind == "universal":
            joint = Universal(axis, other or (0.0, 1.0, 0.0))
        elif kind in _WITH_AXIS:
            joint = _WITH_AXIS[kind](axis)
            if other is not None:
                turned = matrix(child_rotation) @ _turn(np.array(axis), np.array(other))
                child_rotation = tuple(map(tuple, turned.tolist()))
        else:
            joint = _WITHOUT_AXIS[kind]()
        return {
            "joint": joint,
            "parent": names[0],
            "child": names[1],
            "at": at,
            "rotation": rotation,
            "child_at": child_at,
            "child_rotation": child_rotation,
        }

    def _know(self, owner: UrdfOwner, element: Element, names: list[str]) -> bool:
        for field, name in zip(("parent", "child"), names, strict=True):
            if not name:
                owner.report(element, field, "is missing; a loop names two links")
            elif name not in self.links and name != "world":
                hint = owner.hint("link", name, [*self.links])
                owner.report(element, field, f"unknown link '{name}'. {hint}")
        if names[0] and names[0] == names[1]:
            owner.report(element, "child", "a loop needs two different links")
        return all(n in self.links or n == "world" for n in names) and names[0] != names[1]

    def _note_friction(self, owner: UrdfOwner, dynamics: Element | None) -> None:
        if dynamics is not None:
            owner.note(dynamics, "dynamics", "a joint that closes a loop has no friction", NOT_READ)


# what the elements say ----------------------------------------------------------------------

_SPRING: dict[str, tuple[str, Numbers]] = {
    "p_AP": ("at", (0.0, 0.0, 0.0)),
    "p_BQ": ("child_at", (0.0, 0.0, 0.0)),
    "free_length": ("rest", (0.0,)),
    "stiffness": ("stiffness", (0.0,)),
    "damping": ("damping", (0.0,)),
}
_SDF_ONLY = ("gearbox_ratio", "gearbox_reference_body", "thread_pitch", "screw_thread_pitch")


def _part(element: Element, tag: str) -> Element:
    return element.first(tag) or element


def _ends(element: Element) -> list[tuple[str, Element]]:
    """Names and elements of the two links."""
    if element.tag in (BALL, SPRING):
        bodies = [_part(element, f"{element.tag}_body_{end}") for end in "AB"]
        return [("" if b is element else b.attributes.get("name", ""), b) for b in bodies]
    found = []
    for tags in (_FIRST, _SECOND):
        ends = [part for part in element.children if part.tag in tags]
        found.append(ends[0] if ends else element)
    twice = list(element.all("link1"))
    if len(twice) == 2 and found[1] is element:  # as in the example of Isaac Sim's manual
        found = twice
    return [("" if e is element else e.attributes.get("link", ""), e) for e in found]


def _frame_of(element: Element, end: Element, tags: tuple[str, ...]) -> Element | None:
    """The element with the frame on one link: beside the link, inside it, or itself."""
    beside = [element.first(f"{tag}_origin") for tag in tags]
    inside = end.first("origin") if end is not element else None
    itself = end if end.tag.startswith("link") else None
    return next((frame for frame in (*beside, inside, itself) if frame is not None), None)


def _inside(element: Element | None, *tags: str) -> Element | None:
    for tag in tags:
        element = element.first(tag) if element is not None else None
    return element


def _axis_of(element: Element | None) -> Element | None:
    """A direction of SDF as URDF writes it, with the frame that it is in unless the joint's."""
    xyz = _inside(element, "xyz")
    if element is None or xyz is None:
        return None
    frame = xyz.attributes.get("expressed_in", "")
    old = _inside(element, "use_parent_model_frame")
    if old is not None and old.text in ("1", "true"):
        frame = "model"
    return Element(element.tag, {"xyz": xyz.text, "frame": frame}, xyz.line)


def _direction(owner: UrdfOwner, axis: Element | None) -> Numbers | None:
    return None if axis is None else owner.axis(Element("joint", {}, axis.line, [axis]), axis.tag)


def _transform(at: Numbers, rotation: Numbers) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = matrix(rotation), at
    return T


def _turn(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Compute a rotation that turns one unit vector into another."""
    if np.allclose(start, end, rtol=0.0, atol=SUM_ROUNDING):
        return np.eye(3)
    side = singular_vectors(np.array([start, end]))[2][2]  # at right angles to both
    before, after = (np.column_stack([v, side, np.cross(v, side)]) for v in (start, end))
    return after @ before.T


def zero_frames(root: str, joints: Mapping[str, Joint]) -> dict[str, np.ndarray]:
    """Place every link that the root carries while all joints are zero.

    Args:
        root: The link at the origin.
        joints: The joint that holds each link, by the link's name.
    """
    children: dict[str, list[Joint]] = {}
    for joint in joints.values():
        children.setdefault(joint.parent, []).append(joint)
    frames, waiting = {root: np.eye(4), GROUND.name: np.eye(4), "world": np.eye(4)}, [root]
    while waiting:
        parent = waiting.pop()
        for joint in children.get(parent, ()):
            if joint.child not in frames:
                frames[joint.child] = frames[parent] @ _transform(joint.at, joint.angles)
                waiting.append(joint.child)
    return frames


# what is not read --------------------------------------------------------------------------

_ROTORS = ("drake:rotor_inertia", "motorInertia")
# in <gazebo>, and whether it acts if it is on
_FORCES = {
    "springStiffness": True,
    "dampingFactor": True,
    "gravity": False,
    "turnGravityOff": True,
    "kinematic": True,
    "static": True,
}


def note_unread(robot: Element, owner: Owner, known: tuple[str, ...], parts: Sequence[str]) -> None:
    """Note forces, inertia and other elements that are not of URDF and may affect the motion.

    Args:
        robot: The file's outermost element.
        owner: What is wrong with it.
        known: Elements of a robot that are of URDF.
        parts: Those of a joint.
    """
    for element in robot.children:
        of = owner.findings.of(element)
        if element.tag == "gazebo":
            of = replace(of, name=element.attributes.get("reference", ""))
            for part in element.children:
                if part.tag == "link" or part.tag.startswith("joint:"):
                    owner.note(part, "gazebo", f"holds a <{part.tag}>", NOT_READ)
                if part.tag in _FORCES and _is_on(part) == _FORCES[part.tag]:
                    of.note(part, part.tag, f"is {_value(part)}", NOT_READ)
        elif element.tag == "transmission":
            for part in (p for actuator in element.all("actuator") for p in actuator.children):
                if part.tag in _ROTORS and _is_on(part):
                    of.note(part, part.tag, f"is {_value(part)}", NOT_READ)
        elif element.tag == "mujoco":
            for part in element.children:
                if part.tag not in ("compiler", "option", "size"):
                    owner.note(part, "mujoco", f"holds <{part.tag}>", NOT_READ)
        elif element.tag == "joint" and of.name:
            for part in element.children:
                if part.tag == "dynamics":
                    of.only(part, "damping", "friction")
                elif part.tag not in parts and not close_to(part.tag, parts):
                    of.note(part, "", f"<{part.tag}> is not of URDF", NOT_READ)
        elif element.tag in (*known, *READ, *NOT_MECHANICAL) or close_to(element.tag, known):
            continue
        elif not element.tag.startswith("xacro:"):
            owner.note(element, "", f"<{element.tag}> is not of URDF", NOT_READ)


def _value(element: Element) -> str:
    return (element.attributes.get("value") or element.text or "").strip()


def _is_on(element: Element) -> bool:
    """Return whether a switch is on, or a number is not zero."""
    value = _value(element).lower()
    try:
        return float(value) != 0.0
    except ValueError:
        return value not in ("", "false")
