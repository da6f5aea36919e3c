"""Mechanisms from URDF files, the robots of ROS.

A URDF file holds a tree of links and joints, and loops in elements of other programs. Its frames
are ours: a link's frame is that of the joint that holds it. Wheels that roll are added after
loading.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from axode.errors import (
    Fault,
    FileDeviationWarning,
    FileError,
    InvalidArgument,
    MechanismError,
    OmissionWarning,
    first_of,
    level_outside,
    shortened,
)
from axode.formats.urdf.urdf_extensions import note_extensions
from axode.formats.urdf.urdf_joints import DRIVEN, JointReader, follow
from axode.formats.urdf.urdf_loops import (
    COUPLING,
    SPRING,
    LoopJoint,
    LoopReader,
    loop_elements,
    note_unread,
    zero_frames,
)
from axode.formats.urdf.urdf_tree import Joint, root_of
from axode.formats.urdf.urdf_values import Owner, UrdfFindings
from axode.formats.xml.xml_tree import Element, parse
from axode.mechanism.checks import name_fault, relation_faults, value_faults
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
from axode.mechanism.files.wheel_proposals import Geometry
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.size import require_readable

Base: TypeAlias = Literal["fixed", "floating", "planar"]

BASES: dict[str, AbstractJoint] = {"fixed": Fixed(), "floating": Floating(), "planar": Planar()}
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
FRICTION = "dry friction of joints (damping is viscous here)"
DAMPING = "damping of joints with several speeds (add_damper takes one of them)"
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


def mechanism_from_urdf(
    text: str,
    source: str,
    stem: str,
    base: Base | None = None,
    *,
    strict: bool = False,
    remarks: list[tuple[int, str, str]] | None = None,
    geometry: Geometry | None = None,
) -> Mechanism:
    """Read the mechanism that the text of a URDF file describes.

    Args:
        text: What the file holds.
        source: What messages call the file.
        stem: The mechanism's name unless the file gives one.
        base: How the root link is held: "fixed" unless given.
        strict: Whether to refuse what can be read only with a warning.
        remarks: Line, message and remedy of what was found when the file was decoded.
        geometry: Where to put the solids of the links.

    Raises:
        FileError: if the text is not URDF.
        MechanismError: listing every fault with its line.

    Warns:
        FileDeviationWarning: once, listing everything that departs from the format or from
            physics, and what was done about it.
    """
    if base is not None and base not in BASES:
        raise InvalidArgument(
            f"base must be 'fixed', 'floating' or 'planar', got {shortened(base)}"
        )
    remarks = [] if remarks is None else remarks
    robot = parse(text, source, remarks)
    _require_robot(robot, source)
    require_readable(source, _children(robot))
    reader = Reader(robot, stem, Geometry() if geometry is None else geometry)
    findings = reader.findings
    for line, message, done in remarks:
        reader.owner.note(Element("", {}, line), "", message, done)
    definitions = _find_macros(robot, source)
    with np.errstate(all="ignore"):  # what is not finite then is a fault that the checks report
        mechanism = reader.build(base, source)
    if definitions and findings.faults:
        raise _macros(definitions[0], source)
    for element in definitions:
        reader.owner.note(element, "", f"<{element.tag}> is left from xacro", "ignored")
    faults = findings.all_faults() if strict else findings.only_faults()
    if faults:
        raise MechanismError(source, faults)
    level = level_outside()
    if findings.deviations:
        warnings.warn(FileDeviationWarning(source, findings.with_remedies()), stacklevel=level)
    for what, joints in reader.left_out.items():
        if joints:
            text = f"{source}: {what} is left out: {first_of(joints)}."
            warnings.warn(OmissionWarning(text, {what: joints}), stacklevel=level)
    return mechanism


def _require_robot(robot: Element, source: str) -> None:
    """Raise an error for files that are XML and no URDF."""
    if robot.tag != "robot":
        raise FileError(
            f"{source} is XML of <{robot.tag}>.\n  Mechanisms are read from TOML, from URDF, whose "
            "outermost element is <robot>, from MJCF, where it is <mujoco>, and from SDF, where "
            "it is <sdf>."
        )


def _children(robot: Element) -> Iterator[tuple[str, str]]:
    """Child and type of every joint of a file, as far as it has them."""
    for joint in robot.all("joint"):
        child = joint.first("child") or joint
        yield child.attributes.get("link", ""), joint.attributes.get("type", "")


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
        f"  Expand them first: xacro {source} > robot.urdf"
    )


class Reader:
    """Reads links and joints and joins them; what is wrong is kept, and replaced or left out."""

    def __init__(self, robot: Element, stem: str, geometry: Geometry) -> None:
        self.robot = robot
        self.geometry = geometry
        self.findings = UrdfFindings()
        self.owner = Owner("robot", "", self.findings)
        self.mechanism = Mechanism(robot.attributes.get("name") or stem)
        self.lines: dict[tuple[str, str, str], int] = {}  # of kind, name, field
        self.names: dict[tuple[str, str], str] = {}  # by kind and name in the file
        self.left_out: dict[str, list[str]] = {FRICTION: [], DAMPING: []}
        self.shapes: dict[str, list[Shape]] = {}
        self.colours = {
            material.attributes.get("name", ""): self.owner.colour(material, {})
            for material in robot.all("material")
        }

    def build(self, base: Base | None, source: str) -> Mechanism:
        """Return the mechanism; `findings` holds the faults of the file."""
        known = ("link", "joint", "transmission")
        self.owner.look_for_slips(self.robot, known)
        note_unread(self.robot, self.owner, known)
        note_extensions(self.robot, self.findings, _JOINT)
        elements = self._named("link")
        links_named = not self.findings.faults
        named = self._named("joint")
        closing = self._closing(named)
        joints_named = links_named and not self.findings.faults
        joints = [JointReader(Owner("joint", n, self.findings)).read(e) for n, e in named.items()]
        if not elements:
            self.owner.report(self.robot, "", "has no <link>")
            return self.mechanism
        self._declare_world(elements, joints)
        links = {name: Owner("link", name, self.findings) for name in elements}
        root, holding = root_of(
            links, elements, joints, links_named=links_named, joints_named=joints_named
        )
        is_world = self._is_world(root, base, elements, joints, source)
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
        reader = LoopReader(self.findings, elements, zero_frames(root, holding))
        self._add_loops(reader, closing, holding)
        self._add_motors(by_name)
        self._keep(value_faults(self.mechanism))
        sound = not self.findings.faults
        found = relation_faults(self.mechanism, joints_known=sound)
        ends = ("parent", "child")  # reported by root_of where something is wrong
        self._keep([x for x in found if sound or (x.kind != "loop" and x.field not in ends)])
        return self.mechanism

    # reading -------------------------------------------------------------------------------------

    def _named(self, kind: str) -> dict[str, Element]:
        """The links or joints by name."""
        found: dict[str, Element] = {}
        for element in self.robot.all(kind):
            name = element.attributes.get("name", "")
            owner = Owner(kind, name, self.findings)
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
                Owner("loop", name, self.findings).report(element, "", message)
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
        self,
        root: str,
        base: Base | None,
        links: dict[str, Element],
        joints: list[Joint],
        source: str,
    ) -> bool:
        """Return whether the root link is the ground; with a base asked for, it is a link."""
        if root not in WORLDS or base in (None, "fixed"):
            return root in WORLDS
        moving = any(joint.parent == root and joint.type != "fixed" for joint in joints)
        if moving and links[root].first("inertial") is None:
            raise InvalidArgument(
                f"base='{base}': the root link of {source} is '{root}', the ground itself.\n  "
                "Leave base out, and let the joint on that link be of type floating or planar."
            )
        return False

    def _rename(self, links: dict[str, Element], joints: dict[str, Element], world: str) -> None:
        """Choose names that a mechanism can have, and remember their lines."""
        for kind, elements in (("link", links), ("joint", joints)):
            for name, element in elements.items():
                fault = name_fault(name)
                if kind == "link" and name == GROUND.name != world:
                    fault = f"'{name}' is the world; choose another name"
                new = name
                if fault:
                    new = "".join(c if c.isprintable() else "_" for c in name)
                    new = f"_{new}" if new.startswith("[") else new
                    while new in elements or new == GROUND.name:
                        new += "_"
                    owner = Owner(kind, repr(name)[1:-1], self.findings)
                    owner.note(element, "", fault, f"called '{new}'")
                self.names[kind, name] = new
                self.lines[kind, new, ""] = element.line
        self.names["link", world] = GROUND.name

    # adding --------------------------------------------------------------------------------------

    def _add_body(self, name: str, owner: Owner, element: Element, *, is_ground: bool) -> None:
        mass, com, inertia = owner.inertial(element)
        inertial = element.first("inertial")
        new = self.names["link", name]
        for part in inertial.children if inertial else ():
            self.lines.setdefault(("link", new, part.tag), part.line)
        shape = self.shapes.get(name)
        if not is_ground:
            self.geometry.solids += owner.solids(element, new)
            self.mechanism.add_body(new, mass=mass, com=com, inertia=inertia, shape=shape)

    def _hold(self, root: str, joint: AbstractJoint) -> None:
        """Hold the root link by a joint that the file does not have."""
        taken = {new for (kind, _), new in self.names.items() if kind == "joint"}
        name = "base"
        while name in taken:
            name += "_"
        self.mechanism.add_joint(name, joint, parent=GROUND, child=self.names["link", root])

    def _add_joint(self, joint: Joint) -> None:
        name = self.names["joint", joint.name]
        self.mechanism.add_joint(
            name, _kind(joint), **self._ends(joint), at=joint.at, rotation=joint.angles
        )
        if joint.friction > 0:
            self.left_out[FRICTION].append(name)
        if joint.damping > 0 and joint.type in DRIVEN:
            self.mechanism.add_damper(name, name, coefficient=joint.damping)
        elif joint.damping > 0 and joint.type != "fixed":
            self.left_out[DAMPING].append(name)
        if joint.mimic:
            self.mechanism.add_mimic(
                name,
                name,
                self.names["joint", joint.mimic.leader],
                multiplier=joint.mimic.multiplier,
                offset=joint.mimic.offset,
            )

    def _ends(self, joint: Joint | LoopJoint) -> dict[str, str]:
        """The bodies of a joint."""
        return {"parent": self._body(joint.parent), "child": self._body(joint.child)}

    def _body(self, link: str) -> str:
        """The body of a link; the world is the ground, also where the file does not declare it."""
        return self.names.get(("link", link), GROUND.name if link in WORLDS else link)

    def _close_with(self, joint: Joint) -> None:
        """Close a loop with a joint whose child another joint holds."""
        given = {"damping": joint.damping, "friction": joint.friction, "mimic": joint.mimic}
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
                self.mechanism.add_loop(
                    self.names["joint", name],
                    loop.joint,
                    **self._ends(loop),
                    at=loop.at,
                    rotation=loop.rotation,
                    child_at=loop.child_at,
                    child_rotation=loop.child_rotation,
                )
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
        owner = Owner("transmission", element.attributes.get("name", ""), self.findings)
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

    def _keep(self, found: list[Fault]) -> None:
        """Keep what every description is checked for, in the words and lines of the file."""
        for fault in found:
            kind = _KINDS.get(fault.kind, fault.kind)
            place = (kind, fault.name, "")
            line = self.lines.get((*place[:2], fault.field), self.lines.get(place, self.robot.line))
            self.findings.faults.append(Fault(kind, fault.name, fault.field, fault.message, line))


def _kind(joint: Joint) -> AbstractJoint:
    """The joint without its place."""
    makers = {
        "revolute": Revolute,
        "continuous": Revolute,
        "prismatic": Prismatic,
        "planar": Planar,
    }
    others = {"floating": Floating(), "spherical": Spherical()}
    if joint.type in makers:
        return makers[joint.type](joint.axis)
    return others.get(joint.type, Fixed())
