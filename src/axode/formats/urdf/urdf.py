"""Mechanisms from URDF files, the robots of ROS.

A URDF file holds a tree of links and joints, and loops in elements of other programs. Its frames
are ours: a link's frame is that of the joint that holds it. Wheels that roll are added after
loading.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np

from axode.errors import (
    Fault,
    FileError,
    InvalidArgument,
    OmissionWarning,
    first_of,
    install_command,
    level_outside,
)
from axode.formats.urdf.urdf_elements import DRIVEN, Joint, JointReader, UrdfOwner, follow, root_of
from axode.formats.urdf.urdf_extensions import (
    COUPLING,
    SPRING,
    LoopReader,
    loop_elements,
    note_unread,
    zero_frames,
)
from axode.formats.xml.reading import (
    BASES,
    SPEED_DAMPING,
    UNREAD_FRICTION,
    Base,
    Findings,
    PartNames,
    XmlFile,
)
from axode.formats.xml.xml_tree import Element, parse
from axode.mechanism.checks import relation_faults, require_readable, value_faults
from axode.mechanism.elements.bodies import GROUND, Shape
from axode.mechanism.elements.joints import (
    AbstractJoint,
    Fixed,
    Floating,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
)
from axode.mechanism.files.imported import Surface
from axode.mechanism.mechanism import Mechanism

WORLDS = ("world", GROUND.name)  # root links that are the ground itself
_LINK = ("inertial", "visual", "collision")
_JOINT = (
    "origin",
    "parent",
    "child",
    "axis",
    "limit",
    "dynamics",
    "mimic",
    "calibration",
    "safety_controller",
)
FRICTION = "dry friction of joints with several coordinates"
_KINDS = {
    "body": "link",
    "motor": "joint",
    "damper": "joint",
    "loop": "joint",
    "coupling": "joint",
    "mechanism": "robot",
}
_NOT_NEEDED = ("gazebo", "visual", "collision", "material")
_DEFINITIONS = ("xacro:property", "xacro:macro", "xacro:arg")  # they make nothing by themselves


def mechanism_from_urdf(file: XmlFile) -> Mechanism:
    """Read the mechanism that a URDF file describes; the root link is fixed unless it has a base.

    Raises:
        FileError: if the text is not URDF.
        MechanismError: listing every fault with its line.

    Warns:
        FileDeviationWarning: once, listing everything that departs from the format or from
            physics, and what was done about it.
        OmissionWarning: for each kind of what a mechanism cannot hold.
    """
    source = file.source
    robot = parse(file.text, source, file.remarks)
    if robot.tag != "robot":
        raise FileError(
            f"{source} is XML of <{robot.tag}>.\n  Mechanisms are read from TOML, from URDF, whose "
            "outermost element is <robot>, from MJCF, where it is <mujoco>, and from SDF, where "
            "it is <sdf>."
        )
    children = [(joint.first("child") or joint, joint) for joint in robot.all("joint")]
    named = [(c.attributes.get("link", ""), j.attributes.get("type", "")) for c, j in children]
    require_readable(source, named)
    reader = Reader(robot, file)
    findings = reader.findings
    findings.note_remarks("robot", file.remarks)
    definitions = _find_macros(robot, source) if _MACRO.search(file.text) else []
    with np.errstate(all="ignore"):  # what is not finite then is a fault that the checks report
        mechanism = reader.build()
    if definitions and findings.faults:
        raise _macros(definitions[0], source)
    for element in definitions:
        reader.owner.note(element, "", f"<{element.tag}> is left from xacro", "ignored")
    findings.conclude(source, strict=file.strict)
    for what in findings.counted:
        joints = [fault.name for fault in findings.left_out.get(what, ())]
        if joints:
            text = f"{source}: {what} is left out: {first_of(joints)}."
            warnings.warn(OmissionWarning(text, {what: joints}), stacklevel=level_outside())
    return mechanism


_MACRO = re.compile(r"xacro:|[$][{(]|&#")  # or a character that may be one of these


def _find_macros(robot: Element, source: str) -> list[Element]:
    """Find definitions of xacro; whatever makes parts of the robot is refused."""
    waiting, definitions = [robot], []
    while waiting:
        element = waiting.pop()
        if element.tag in _NOT_NEEDED:
            continue
        macros = any("${" in v or "$(" in v for v in element.attributes.values())
        if element.tag in _DEFINITIONS:
            definitions.append(element)
        elif macros or element.tag.startswith("xacro:"):
            raise _macros(element, source)
        else:
            waiting.extend(reversed(element.children))
    return definitions


def _macros(element: Element, source: str) -> FileError:
    return FileError(
        f"{source}, line {element.line}: holds macros of xacro.\n"
        f"  Call the file robot.urdf.xacro, and it is expanded ({install_command('xacro')}), or "
        f"expand it first: xacro {source} > robot.urdf"
    )


class Reader:
    """Reads links and joints and joins them; what is wrong is kept, and replaced or left out."""

    def __init__(self, robot: Element, file: XmlFile) -> None:
        self.robot = robot
        self.file = file
        self.findings = Findings(counted=(FRICTION, UNREAD_FRICTION, SPEED_DAMPING))
        self.owner = UrdfOwner("robot", "", self.findings)
        self.mechanism = Mechanism(robot.attributes.get("name") or file.path.stem)
        self.lines: dict[tuple[str, str, str], int] = {}  # of kind, name, field
        self.part_names = PartNames()
        self.names: dict[tuple[str, str], str] = {}  # by kind and name in the file
        self.shapes: dict[str, list[Shape]] = {}
        self.colours = {
            material.attributes.get("name", ""): self.owner.colour(material, {})
            for material in robot.all("material")
        }

    def build(self) -> Mechanism:
        """Return the mechanism; `findings` holds the faults of the file."""
        base = self.file.base
        known = ("link", "joint", "transmission")
        self.owner.look_for_slips(self.robot, known)
        note_unread(self.robot, self.owner, known, _JOINT)
        elements = self._named("link")
        links_named = not self.findings.faults
        named = self._named("joint")
        closing = self._closing(named)
        joints_named = links_named and not self.findings.faults
        stops = "stops" in self.file.contacts
        joints = [
            JointReader(UrdfOwner("joint", n, self.findings), stops).read(e)
            for n, e in named.items()
        ]
        if not elements:
            self.owner.report(self.robot, "", "has no <link>")
            return self.mechanism
        self._declare_world(elements, joints)
        links = {name: UrdfOwner("link", name, self.findings) for name in elements}
        root, holding = root_of(
            links, elements, joints, links_named=links_named, joints_named=joints_named
        )
        is_world = self._is_world(root, base, elements, joints)
        self._rename(elements, {**named, **closing}, root if is_world else "")
        for tag in ("visual", "collision"):  # the latter only where nothing is to be seen
            if not any(self.shapes.values()):
                self.shapes = {
                    n: o.shapes(elements[n], tag, self.colours) for n, o in links.items()
                }
        for name, owner in links.items():
            self._add_body(name, owner, elements[name], is_ground=is_world and name == root)
        if root and not is_world:
            self._hold(root, BASES[base or "fixed"])
        tree = [joint for joint in joints if holding.get(joint.child, joint) is joint]
        by_name = follow({joint.name: joint for joint in tree})
        for joint in by_name.values():
            self._add_joint(joint)
        for joint in joints:
            if joint.name not in by_name:
                self._close_with(joint)
        frames = zero_frames(root, holding) if closing else {}
        reader = LoopReader(self.findings, elements, frames)
        self._add_loops(reader, closing, holding)
        self._add_motors(by_name)
        self.findings.keep(value_faults(self.mechanism), self._line, _KINDS)
        sound = not self.findings.faults
        found = relation_faults(self.mechanism, joints_known=sound)
        ends = ("parent", "child")  # reported by root_of where something is wrong
        found = [x for x in found if sound or (x.kind != "loop" and x.field not in ends)]
        self.findings.keep(found, self._line, _KINDS)
        return self.mechanism

    # reading -------------------------------------------------------------------------------------

    def _named(self, kind: str) -> dict[str, Element]:
        """The links or joints by name."""
        found: dict[str, Element] = {}
        for element in self.robot.all(kind):
            name = element.attributes.get("name", "")
            owner = UrdfOwner(kind, name, self.findings)
            if not name:
                self.owner.report(element, "", f'a {kind} has no name="..."')
            elif name in found:
                first = found[name].line
                owner.report(element, "", f"line {first} has this name already; names are unique")
            else:
                found[name] = element
                owner.look_for_slips(element, _LINK if kind == "link" else _JOINT)
        return found

    def _closing(self, joints: dict[str, Element]) -> dict[str, Element]:
        """The elements that close loops, by name."""
        found: dict[str, Element] = {}
        for name, element in loop_elements(self.robot):
            known = found.get(name) or joints.get(name)
            if not name:
                self.owner.report(element, "", f'a {element.tag} has no name="..."')
            elif known:
                message = f"line {known.line} has this name already; names are unique"
                UrdfOwner("loop", name, self.findings).report(element, "", message)
            else:
                found[name] = element
        return found

    def _declare_world(self, elements: dict[str, Element], joints: list[Joint]) -> None:
        """Add the link that joints refer to as if every file had it."""
        world = WORLDS[0]
        for joint in joints:
            if joint.parent == world not in elements:
                element = joint.element.first("parent") or joint.element
                message = f"unknown link '{world}'. {joint.owner.hint('link', world, [*elements])}"
                joint.owner.note(element, "parent", message, "it is the ground")
                elements[world] = Element("link", {"name": world}, element.line)

    def _is_world(
        self, root: str, base: Base | None, links: dict[str, Element], joints: list[Joint]
    ) -> bool:
        """Return whether the root link is the ground; with a base asked for, it is a link."""
        if root not in WORLDS or base in (None, "fixed"):
            return root in WORLDS
        moving = any(joint.parent == root and joint.type != "fixed" for joint in joints)
        if moving and links[root].first("inertial") is None:
            raise InvalidArgument(
                f"base='{base}': the root link of {self.file.source} is '{root}', the ground "
                "itself.\n  Leave base out, and let the joint on that link be of type floating or "
                "planar."
            )
        return False

    def _rename(self, links: dict[str, Element], joints: dict[str, Element], world: str) -> None:
        """Choose names that a mechanism can have, and remember their lines."""
        names = self.part_names
        for kind, part, elements in (("link", "body", links), ("joint", "joint", joints)):
            names.reserve(part, elements)
            for name, element in elements.items():
                new = name
                if names.fault(part, name) and not name == world == GROUND.name:
                    new = names.choose(part, name, UrdfOwner(kind, name, self.findings), element)
                self.names[kind, name] = new
                self.lines[kind, new, ""] = element.line
        self.names["link", world] = GROUND.name

    # adding --------------------------------------------------------------------------------------

    def _add_body(self, name: str, owner: UrdfOwner, element: Element, *, is_ground: bool) -> None:
        mass, com, inertia = owner.inertial(element)
        inertial = element.first("inertial")
        new = self.names["link", name]
        for part in inertial.children if inertial else ():
            self.lines.setdefault(("link", new, part.tag), part.line)
        shape = self.shapes.get(name)
        if not is_ground:
            surface = self._surface(name)
            solids = owner.solids(element, new)
            self.file.geometry.solids += [replace(solid, surface=surface) for solid in solids]
            self.mechanism.add_body(new, mass=mass, com=com, inertia=inertia, shape=shape)

    def _surface(self, link: str) -> Surface | None:
        """How a link rubs, as files say it to Gazebo; None where that is not asked for."""
        if "wheels" not in self.file.contacts:
            return None
        found: dict[str, float] = {}
        for element in self.robot.all("gazebo"):
            if element.attributes.get("reference") != link:
                continue
            aside = UrdfOwner("gazebo", link, self.findings).aside("left out")
            for part in (part for tag in ("mu1", "mu2") for part in element.all(tag)):
                text = part.attributes.get("value") or part.text.strip()
                known = aside.count()
                (value,) = aside.parse(part, part.tag, text, (0.0,))
                value = aside.not_negative(part, part.tag, value)
                if aside.count() == known:
                    found[part.tag] = value
            if found.get("mu2", found.get("mu1")) != found.get("mu1", found.get("mu2")):
                message = f"mu1 is {found['mu1']:g} and mu2 {found['mu2']:g}"
                aside.note(element, "mu2", message, "mu1 is used in both directions")
        friction = found.get("mu1", found.get("mu2"))
        return None if friction is None else Surface(friction)

    def _hold(self, root: str, joint: AbstractJoint) -> None:
        """Hold the root link by a joint that the file does not have."""
        name = self.part_names.free("joint", "base")
        self.mechanism.add_joint(name, joint, parent=GROUND, child=self.names["link", root])

    def _add_joint(self, joint: Joint) -> None:
        name = self.names["joint", joint.name]
        rubs = joint.friction > 0 and joint.type in DRIVEN and "friction" in self.file.contacts
        self.mechanism.add_joint(
            name,
            _kind(joint),
            **self._ends(joint),
            at=joint.at,
            rotation=joint.angles,
            friction=joint.friction if rubs else None,
            stops=joint.stops,
        )
        if joint.friction > 0 and not rubs:
            what = UNREAD_FRICTION if joint.type in DRIVEN else FRICTION
            self.findings.leave_out(what, joint.element, name=name)
        if joint.damping > 0 and joint.type in DRIVEN:
            self.mechanism.add_damper(name, name, coefficient=joint.damping)
        elif joint.damping > 0 and joint.type != "fixed":
            self.findings.leave_out(SPEED_DAMPING, joint.element, name=name)
        if joint.mimic:
            self.mechanism.add_mimic(
                name,
                name,
                self.names["joint", joint.mimic.leader],
                multiplier=joint.mimic.multiplier,
                offset=joint.mimic.offset,
            )

    def _ends(self, joint: Joint) -> dict[str, str]:
        """The bodies of a joint."""
        return {"parent": self._body(joint.parent), "child": self._body(joint.child)}

    def _body(self, link: str) -> str:
        """The body of a link; the world is the ground, also where the file does not declare it."""
        return self.names.get(("link", link), GROUND.name if link in WORLDS else link)

    def _close_with(self, joint: Joint) -> None:
        """Close a loop with a joint whose child another joint holds."""
        given: dict[str, object] = {"damping": joint.damping, "friction": joint.friction}
        given |= {"mimic": joint.mimic, "limit": joint.stops}
        for what in (word for word, value in given.items() if value):
            message = f"a joint that closes a loop has no {what}"
            joint.owner.note(joint.element, what, message, "left out")
        self.mechanism.add_loop(
            self.names["joint", joint.name],
            _kind(joint),
            **self._ends(joint),
            at=joint.at,
            rotation=joint.angles,
        )

    def _add_loops(
        self, reader: LoopReader, closing: dict[str, Element], holding: dict[str, Joint]
    ) -> None:
        """Add loops, springs and couplings from elements of other programs."""
        for name, element in closing.items():
            loop = reader.read(name, element)
            if loop:
                loop |= {end: self._body(loop[end]) for end in ("parent", "child")}
                self.mechanism.add_loop(self.names["joint", name], **loop)
        for number, element in enumerate(self.robot.all(SPRING)):
            spring = reader.spring(element)
            if spring:
                spring |= {end: self._body(spring[end]) for end in ("parent", "child")}
                self.mechanism.add_spring(f"spring_{number + 1}", **spring)
        for number, element in enumerate(self.robot.all(COUPLING)):
            found = reader.coupling(element, holding)
            if found:
                name = element.attributes.get("name") or f"coupling_{number + 1}"
                faster, other = (self.names["joint", joint] for joint in found[:2])
                self.mechanism.add_mimic(name, faster, other, multiplier=found[2])

    def _add_motors(self, joints: dict[str, Joint]) -> None:
        """Add motors on the joints of the transmissions; without any, where an effort is given.

        A joint that follows another is moved by its leader, and has a motor only if a transmission
        names it.
        """
        transmissions = list(self.robot.all("transmission"))
        given = [name for name, joint in joints.items() if joint.effort > 0 and not joint.mimic]
        if transmissions:
            named = [(e, j) for e in transmissions for j in e.all("joint")]
            for element, joint in named:
                self._check_driven(element, joint, joints)
            given = [joint.attributes.get("name", "") for _, joint in named]
        for name in dict.fromkeys(given):
            if name in joints and joints[name].type in DRIVEN:
                new = self.names["joint", name]
                self.mechanism.add_motor(new, new, limit=joints[name].effort or None)

    def _check_driven(self, element: Element, joint: Element, joints: dict[str, Joint]) -> None:
        owner = UrdfOwner("transmission", element.attributes.get("name", ""), self.findings)
        name = joint.attributes.get("name", "")
        if name not in joints:
            hint = owner.hint("joint", name, [*joints])
            owner.note(joint, "joint", f"unknown joint '{name}'. {hint}", "ignored")
        elif joints[name].type and joints[name].type not in DRIVEN:
            message = (
                f"joint '{name}' is {joints[name].type}, and a motor moves a joint that turns or "
                "slides"
            )
            owner.note(joint, "joint", message, "ignored")

    def _line(self, fault: Fault) -> int:
        place = (_KINDS.get(fault.kind, fault.kind), fault.name)
        return self.lines.get((*place, fault.field), self.lines.get((*place, ""), self.robot.line))


def _kind(joint: Joint) -> AbstractJoint:
    """The joint without its place."""
    match joint.type:
        case "revolute" | "continuous":
            return Revolute(joint.axis)
        case "prismatic":
            return Prismatic(joint.axis)
        case "planar":
            return Planar(joint.axis)
        case "floating":
            return Floating()
        case "spherical":
            return Spherical()
    return Fixed()
