"""Mechanisms from URDF files, the robots of ROS.

A URDF file holds a tree of links and joints. Its frames are ours: a link's frame is that of the
joint that holds it. What it cannot hold, wheels that roll and loops, is added after loading.
"""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

from axode.errors import Fault, FileError, InvalidArgument, LeftOut, MechanismError, suggest
from axode.mechanism.bodies import GROUND
from axode.mechanism.checks import relation_faults, value_faults
from axode.mechanism.joints import (
    AbstractJoint,
    Fixed,
    Floating,
    Planar,
    Prismatic,
    Revolute,
)
from axode.mechanism.markup import Element, parse
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.urdf_tree import Joint, root_of
from axode.mechanism.urdf_values import Owner

Base: TypeAlias = Literal["fixed", "floating", "planar"]

BASES: dict[str, AbstractJoint] = {"fixed": Fixed(), "floating": Floating(), "planar": Planar()}
TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
DRIVEN = ("revolute", "continuous", "prismatic")  # what one motor can move
WORLDS = ("world", GROUND.name)  # root links that are the ground itself
_LINK = ("inertial", "visual", "collision")
_JOINT = ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "calibration",
          "safety_controller")  # fmt: skip
FRICTION = "dry friction of joints (damping is viscous here)"
DAMPING = "damping of joints with several speeds (add_damper takes one of them)"
_KINDS = {"body": "link", "motor": "joint", "damper": "joint", "loop": "joint"}
_OTHERS = {"sdf": "SDF", "mujoco": "MJCF", "mujocoinclude": "MJCF"}


def mechanism_from_urdf(text: str, source: str, stem: str, base: Base | None = None) -> Mechanism:
    """The mechanism that the text of a URDF file describes.

    Args:
        text: What the file holds.
        source: What messages call the file.
        stem: The mechanism's name unless the file gives one.
        base: How the root link is held: "fixed" unless given.

    Raises:
        FileError: if the text is not URDF.
        MechanismError: listing every fault with its line.
    """
    if base is not None and base not in BASES:
        raise InvalidArgument(f"base must be 'fixed', 'floating' or 'planar', got {base!r}")
    robot = parse(text, source)
    _refuse_strangers(robot, source)
    reader = Reader(robot, stem)
    mechanism = reader.build(base, source)
    if reader.faults:
        unique = dict.fromkeys(reader.faults)
        raise MechanismError(source, sorted(unique, key=lambda fault: fault.line or 0))
    for what, joints in reader.left_out.items():
        if joints:
            warnings.warn(f"{source}: {what} is left out: {', '.join(joints)}.", LeftOut, 3)
    return mechanism


def _refuse_strangers(robot: Element, source: str) -> None:
    """Files that are XML and no URDF, or not yet."""
    if robot.tag != "robot":
        what = _OTHERS.get(robot.tag, f"XML of <{robot.tag}>")
        raise FileError(
            f"{source} is {what}.\n  Mechanisms are read from TOML and from URDF, whose outermost "
            "element is <robot>."
        )
    waiting = [robot]
    while waiting:
        element = waiting.pop()
        macros = any("${" in v or "$(" in v for v in element.attributes.values())
        if macros or element.tag.startswith("xacro:"):
            raise FileError(
                f"{source}, line {element.line}: holds macros of xacro.\n"
                f"  Expand them first: xacro {source} > robot.urdf"
            )
        if element.tag != "gazebo":  # notes for another program
            waiting.extend(reversed(element.children))


class Reader:
    """Reads links and joints and joins them; what is wrong is told, and replaced or left out."""

    def __init__(self, robot: Element, stem: str) -> None:
        self.robot = robot
        self.faults: list[Fault] = []
        self.owner = Owner("robot", "", self.faults)
        self.mechanism = Mechanism(robot.attributes.get("name") or stem)
        self.lines: dict[tuple[str, str, str], int] = {}  # of kind, name, field
        self.left_out: dict[str, list[str]] = {FRICTION: [], DAMPING: []}

    def build(self, base: Base | None, source: str) -> Mechanism:
        """The mechanism; `faults` says whether it is worth anything."""
        self.owner.look_for_slips(self.robot, ("link", "joint", "transmission"))
        elements, named = self._named("link"), self._named("joint")
        complete = not self.faults
        joints = [self._joint(name, element) for name, element in named.items()]
        links = {name: Owner("link", name, self.faults) for name in elements}
        if not links:
            self.owner.tell(self.robot, "", "has no <link>")
            return self.mechanism
        known = len(self.faults)
        root = root_of(links, elements, joints)
        if not complete:  # what seems to hang loose may hang on what could not be read
            del self.faults[known:]
        if root in WORLDS and base not in (None, "fixed"):
            raise InvalidArgument(
                f"base='{base}': the root link of {source} is '{root}', the ground itself.\n  "
                "Leave base out, and let the joint on that link be of type floating or planar."
            )
        for name, owner in links.items():
            self._add_body(name, owner, elements[name], is_ground=name == root in WORLDS)
        if root and root not in WORLDS:
            self._hold(root, BASES[base or "fixed"], {joint.name for joint in joints})
        for joint in joints:
            self._add_joint(joint, root)
        self._add_motors({joint.name: joint for joint in joints})
        self._judge(value_faults(self.mechanism))
        if not self.faults:
            self._judge(relation_faults(self.mechanism))
        return self.mechanism

    # reading -------------------------------------------------------------------------------------

    def _named(self, kind: str) -> dict[str, Element]:
        """The links or joints by name."""
        found: dict[str, Element] = {}
        for element in self.robot.all(kind):
            name = element.attributes.get("name", "")
            owner = Owner(kind, name, self.faults)
            if not name:
                self.owner.tell(element, "", f'a {kind} has no name="..."')
            elif name in found:
                first = found[name].line
                owner.tell(element, "", f"line {first} has this name already; names are unique")
            else:
                found[name] = element
                self.lines[kind, name, ""] = element.line
                owner.look_for_slips(element, _LINK if kind == "link" else _JOINT)
        return found

    def _joint(self, name: str, element: Element) -> Joint:
        owner = Owner("joint", name, self.faults)
        kind = element.attributes.get("type", "")
        if not kind:
            owner.tell(element, "type", f"is missing. {suggest('type', '', TYPES)}")
        elif kind not in TYPES:
            owner.tell(element, "type", f"unknown type '{kind}'. {suggest('type', kind, TYPES)}")
        mimic = element.first("mimic")
        if mimic is not None:
            leader = mimic.attributes.get("joint", "")
            owner.tell(mimic, "mimic", f"it follows joint '{leader}', and joints cannot be coupled "
                       "here; remove <mimic> to let it move by itself, or make its type "
                       "fixed")  # fmt: skip
        at, angles = owner.origin(element)
        ends = (element.first("parent"), element.first("child"))
        parent, child = (end.attributes.get("link", "") if end else "" for end in ends)
        axis = (1.0, 0.0, 0.0) if kind in ("fixed", "floating") else owner.axis(element)
        limit, dynamics = element.first("limit"), element.first("dynamics")
        effort = owner.not_negative(limit, "effort") if limit else 0.0
        damping, friction = (
            owner.not_negative(dynamics, n) if dynamics and kind != "fixed" else 0.0
            for n in ("damping", "friction")
        )  # fmt: skip
        return Joint(owner, element, kind, parent, child, at, angles, axis, effort, damping,
                     friction)  # fmt: skip

    # adding --------------------------------------------------------------------------------------

    def _add_body(self, name: str, owner: Owner, element: Element, *, is_ground: bool) -> None:
        mass, com, inertia = owner.inertial(element)
        inertial = element.first("inertial")
        for part in inertial.children if inertial else ():
            self.lines.setdefault(("link", name, part.tag), part.line)
        shape = owner.shape(element)
        if not is_ground:
            self.mechanism.add_body(name, mass=mass, com=com, inertia=inertia, shape=shape)

    def _hold(self, root: str, joint: AbstractJoint, taken: set[str]) -> None:
        """Hold the root link by a joint that the file does not have."""
        name = "base"
        while name in taken:
            name += "_"
        self.mechanism.add_joint(name, joint, parent=GROUND, child=root)

    def _add_joint(self, joint: Joint, root: str) -> None:
        makers = {"revolute": Revolute, "continuous": Revolute, "prismatic": Prismatic,
                  "planar": Planar}  # fmt: skip
        kind = makers[joint.type](joint.axis) if joint.type in makers \
            else Floating() if joint.type == "floating" else Fixed()  # fmt: skip
        parent = GROUND.name if joint.parent == root in WORLDS else joint.parent
        self.mechanism.add_joint(joint.name, kind, parent=parent, child=joint.child,
                                 at=joint.at, rotation=joint.angles)  # fmt: skip
        if joint.friction > 0:
            self.left_out[FRICTION].append(joint.name)
        if joint.damping > 0 and joint.type in DRIVEN:
            self.mechanism.add_damper(joint.name, joint.name, coefficient=joint.damping)
        elif joint.damping > 0:
            self.left_out[DAMPING].append(joint.name)

    def _add_motors(self, joints: dict[str, Joint]) -> None:
        """On the joints of the transmissions; without any, where an effort is given."""
        transmissions = list(self.robot.all("transmission"))
        driven = {name: None for name, joint in joints.items() if joint.effort > 0}
        if transmissions:
            named = [(e, j) for e in transmissions for j in e.all("joint")]
            driven = {j.attributes.get("name", ""): None for e, j in named}
            for element, joint in named:
                self._check_driven(element, joint, joints)
        for name in driven:
            if name in joints and joints[name].type in DRIVEN:
                self.mechanism.add_motor(name, name, limit=joints[name].effort or None)

    def _check_driven(self, element: Element, joint: Element, joints: dict[str, Joint]) -> None:
        owner = Owner("transmission", element.attributes.get("name", ""), self.faults)
        name = joint.attributes.get("name", "")
        if name not in joints:
            hint = suggest("joint", name, list(joints))
            owner.tell(joint, "joint", f"unknown joint '{name}'. {hint}")
        elif joints[name].type in TYPES and joints[name].type not in DRIVEN:
            owner.tell(joint, "joint", f"joint '{name}' is {joints[name].type}, and a motor moves "
                       "a joint that turns or slides")  # fmt: skip

    def _judge(self, found: list[Fault]) -> None:
        """Tell what every description is checked for, in the words and lines of the file."""
        for fault in found:
            kind = _KINDS.get(fault.kind, fault.kind)
            kind = "robot" if kind == "mechanism" else kind
            place = (kind, fault.name, "")
            line = self.lines.get((*place[:2], fault.field), self.lines.get(place, self.robot.line))
            self.faults.append(Fault(kind, fault.name, fault.field, fault.message, line))
