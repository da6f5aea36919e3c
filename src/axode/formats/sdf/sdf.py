"""Mechanisms from SDF files, the robots and worlds of Gazebo.

SDF joins links in any graph: joints beyond a spanning tree close loops here. What a mechanism
cannot hold is listed, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from axode.errors import Fault, FileError, InvalidArgument
from axode.formats.sdf.sdf_files import ModelFiles
from axode.formats.sdf.sdf_parts import (
    BY_ITSELF,
    HINGES,
    LinkReader,
    SdfAxis,
    SdfJoint,
    SdfJointReader,
    SdfLink,
)
from axode.formats.sdf.sdf_scopes import (
    COUNTED,
    GEARBOXES,
    MISSING,
    SCENERY,
    WEIGHTLESS,
    FrameResolver,
    ModelScope,
    SdfFrame,
    SdfOwner,
    joint_frame,
    position,
)
from axode.formats.xml.reading import BASES, FLUID, SPEED_DAMPING, Findings, PartNames, XmlFile
from axode.formats.xml.xml_tree import Element, parse
from axode.mechanism.checks import relation_faults, require_readable, value_faults
from axode.mechanism.elements.bodies import GROUND, Inertia
from axode.mechanism.elements.joints import Fixed, Spherical
from axode.mechanism.files.imported import Surface
from axode.mechanism.mechanism import Mechanism
from axode.numerics.rotations import RigidPose, to_quaternions
from axode.numerics.tolerances import SEVEN_DIGITS

# building --------------------------------------------------------------------------------


_AXIS_NAMES = ("first", "second")


@dataclass
class SdfBuilder:
    """Adds bodies, joints, loops and what acts on them to a mechanism.

    Attributes:
        names: Names of links and joints in the mechanism, by their frames.
        lines: Elements by kind and name in the mechanism.
    """

    mechanism: Mechanism
    findings: Findings
    frames: FrameResolver
    links: list[SdfLink]
    joints: list[SdfJoint]
    names: dict[SdfFrame, str] = field(default_factory=dict)
    lines: dict[tuple[str, str], Element] = field(default_factory=dict)
    part_names: PartNames = field(default_factory=PartNames)

    def build(self, base: str | None) -> None:
        """Build the mechanism; a part that no joint holds is free unless `base` is given."""
        self._name_all()
        by_frame = {joint.frame: joint for joint in self.joints}
        self._lead(by_frame)
        gears = [joint for joint in self.joints if joint.type == "gearbox"]
        hinges = [self._gearbox_hinges(joint) for joint in gears]
        for link in self.links:
            self._add_body(link)
        static = [link.frame for link in self.links if link.frame.scope.static]
        joints = [joint for joint in self.joints if joint.type != "gearbox"]
        tree = self._choose(static, joints)
        self._hold_roots(tree, base)
        for frame in static:  # a link of a static model is fixed to the ground
            body = self.names[frame]
            name, place = self.part_names.free("joint", body), self.frames.in_world(frame)
            self.mechanism.add_joint(name, Fixed(), parent=GROUND, child=body, **joint_frame(place))
        for number, joint in enumerate(joints):
            self._add_joint(joint, tree.forward.get(number + len(static)))
        for joint in joints:
            self._add_forces(joint)
        for joint in joints:
            self._add_mimics(joint, by_frame)
        for joint, found in zip(gears, hinges, strict=True):
            self._add_gearbox(joint, found)

    # names ---------------------------------------------------------------------------------------

    def _name_all(self) -> None:
        """Name links and joints: names that a mechanism can have first, then the others."""
        frames = [("body", link.frame) for link in self.links]
        frames += [("joint", joint.frame) for joint in self.joints]
        for kind in ("body", "joint"):
            self.part_names.reserve(kind, (f.full_name for k, f in frames if k == kind))
        for kind, frame in frames:
            name = frame.full_name
            if self.part_names.fault(kind, name):
                owner = SdfOwner(frame.kind, name, self.findings)
                name = self.part_names.choose(kind, name, owner, frame.element)
            self.names[frame] = name
            self.lines[kind, name] = frame.element

    def body(self, link: SdfFrame | None) -> str:
        """The body of a link; the ground for none."""
        return GROUND.name if link is None else self.names[link]

    # bodies and the tree -------------------------------------------------------------------------

    def _add_body(self, link: SdfLink) -> None:
        self.mechanism.add_body(
            self.names[link.frame],
            mass=link.mass,
            com=link.com,
            inertia=link.inertia,
            shape=link.shapes or None,
        )

    def _choose(self, static: list[SdfFrame], joints: list[SdfJoint]) -> SpanningTree:
        edges = [GraphEdge(GROUND.name, self.names[frame], (-1,)) for frame in static]
        for joint in joints:
            dof = joint.kind().dof
            group = 3 if joint.must_cut else 0 if not dof else 1 if joint.needs_coordinates else 2
            cost = (group, dof if group == 2 else 0)
            edges.append(GraphEdge(self.body(joint.parent), self.body(joint.child), cost))
        children = {edge.child for edge in edges}
        first = {self.body(self.frames.canonical(s)) for s in self._tops()}

        def root_of(bodies: list[str]) -> str:
            roots = set(bodies) - children
            free = [body for body in self.names.values() if body in roots]
            return next((b for b in free if b in first), (free or bodies)[0])

        return choose_tree([self.names[link.frame] for link in self.links], edges, root_of)

    def _tops(self) -> list[ModelScope]:
        """The outermost models of the links."""
        found: dict[ModelScope, None] = {}
        for link in self.links:
            scope = link.frame.scope
            while scope.parent is not None and not scope.parent.is_world:
                scope = scope.parent
            found[scope] = None
        return list(found)

    def _hold_roots(self, tree: SpanningTree, base: str | None) -> None:
        """Hold free parts: by a floating joint with the pose that the file gives, or as asked."""
        frames = {name: frame for frame, name in self.names.items() if frame.kind == "link"}
        for root in tree.roots:
            name = self.part_names.free("joint", "base" if len(tree.roots) == 1 else root)
            pose = self.frames.in_world(frames[root])
            joint = BASES[base or "floating"]
            self.lines["joint", name] = frames[root].element
            if joint.is_free:
                self.mechanism.add_joint(name, joint, parent=GROUND, child=root)
                self.mechanism.set_home(_home(name, pose))
            else:
                self.mechanism.add_joint(
                    name, joint, parent=GROUND, child=root, **joint_frame(pose)
                )

    def _add_joint(self, joint: SdfJoint, forward: bool | None) -> None:
        """Add a joint to the tree, in either direction, or close a loop with it."""
        name = self.names[joint.frame]
        parent, child = self.body(joint.parent), self.body(joint.child)
        ends = [joint.on_parent, joint.on_child]
        if forward is None:
            self._close(joint, name, parent, child)
            return
        options = {}
        kind = joint.kind(reverse=not forward)
        if not forward:
            parent, child = child, parent
            ends.reverse()
            if len(joint.axes) == 2:
                options["coordinates"] = [f"{name}.{a}" for a in reversed(_AXIS_NAMES)]
                options["speeds"] = [f"{name}.{a}_rate" for a in reversed(_AXIS_NAMES)]
        self.mechanism.add_joint(
            name,
            kind,
            parent=parent,
            child=child,
            **joint_frame(ends[0]),
            **joint_frame(ends[1], "child_"),
            **options,
        )

    def _close(self, joint: SdfJoint, name: str, parent: str, child: str) -> None:
        """Close a loop; if something acts on the joint, a massless copy of its child has it."""
        placed = joint_frame(joint.on_parent) | joint_frame(joint.on_child, "child_")
        if not joint.needs_coordinates:
            self.mechanism.add_loop(name, joint.kind(), parent=parent, child=child, **placed)
            return
        copy = self.part_names.free("body", f"{child}_{name}")
        closing = self.part_names.free("joint", f"{name}_closure")
        self.lines["body", copy] = self.lines["joint", closing] = joint.element
        self.mechanism.add_body(copy, mass=0.0, inertia=Inertia.point())
        self.mechanism.add_joint(name, joint.kind(), parent=parent, child=copy, **placed)
        self.mechanism.add_loop(closing, Fixed(), parent=copy, child=child)

    # what acts -----------------------------------------------------------------------------------

    def _coordinates(self, joint: SdfJoint) -> list[tuple[str, SdfAxis]]:
        """The coordinate of each axis."""
        name = self.names[joint.frame]
        if len(joint.axes) == 2:
            return [(f"{name}.{a}", axis) for a, axis in zip(_AXIS_NAMES, joint.axes, strict=True)]
        return [(name, axis) for axis in joint.axes]

    def _add_forces(self, joint: SdfJoint) -> None:
        mechanism = self.mechanism
        if joint.damps_speeds:
            joint.owner.leave_out(SPEED_DAMPING, joint.element)
        for number, (coordinate, axis) in enumerate(self._coordinates(joint)):
            if axis.damping > 0:
                damper = self.part_names.free("damper", coordinate)
                mechanism.add_damper(damper, coordinate, coefficient=axis.damping)
            if axis.friction > 0:
                mechanism.change_joint(coordinate, friction=axis.friction)
            if axis.stops is not None:
                mechanism.change_joint(coordinate, stops=axis.stops)
            if axis.stiffness > 0:
                spring = self.part_names.free("damper", f"{coordinate}.spring")
                mechanism.add_spring(spring, coordinate, stiffness=axis.stiffness, rest=axis.rest)
            rotor = joint.rotor if number == 0 else 0.0
            if (axis.effort > 0 and axis.mimic is None) or rotor > 0:
                limit = axis.effort if 0 < axis.effort < math.inf else None
                motor = self.part_names.free("motor", coordinate)
                mechanism.add_motor(motor, coordinate, limit=limit, rotor_inertia=rotor)

    # couplings -----------------------------------------------------------------------------------

    def _lead(self, joints: dict[SdfFrame, SdfJoint]) -> None:
        """Mark the axes that others follow; a joint without such an axis moves independently."""
        for joint in self.joints:
            for axis in joint.axes:
                mimic = axis.mimic
                if mimic is None:
                    continue
                leader = joints.get(mimic.leader)
                number = 1 if mimic.axis == "axis2" else 0
                if leader is None or leader.type == "gearbox" or number >= len(leader.axes):
                    message = f"joint '{mimic.leader.full_name}' has no such axis to follow"
                    joint.owner.note(mimic.element, "mimic", message, BY_ITSELF)
                    axis.mimic = None
                else:
                    leader.axes[number].is_led = True

    def _add_mimics(self, joint: SdfJoint, joints: dict[SdfFrame, SdfJoint]) -> None:
        for coordinate, axis in self._coordinates(joint):
            mimic = axis.mimic
            if mimic is None:
                continue
            if mimic.multiplier == 0.0:
                self.mechanism.prescribe(coordinate, mimic.offset)
                continue
            number = 1 if mimic.axis == "axis2" else 0
            leader = self._coordinates(joints[mimic.leader])[number][0]
            self.mechanism.add_mimic(
                self.part_names.free("coupling", coordinate),
                coordinate,
                leader,
                multiplier=mimic.multiplier,
                offset=mimic.offset,
            )

    def _gearbox_hinges(self, gearbox: SdfJoint) -> list[tuple[SdfJoint, float]]:
        """The hinges of the two links of a gearbox on its reference body, with their signs."""
        found = []
        for link, axis in zip((gearbox.parent, gearbox.child), gearbox.axes, strict=True):
            direction = gearbox.world.R @ axis.direction
            for joint in self.joints:
                forward = (joint.parent, joint.child) == (gearbox.reference, link)
                backward = (joint.child, joint.parent) == (gearbox.reference, link)
                if joint.type in HINGES and (forward or backward):
                    own = joint.world.R @ joint.axes[0].direction
                    if np.linalg.norm(np.cross(own, direction)) < SEVEN_DIGITS:
                        sign = math.copysign(1.0, float(own @ direction))
                        found.append((joint, sign if forward else -sign))
                        break
        if len(found) != 2 or found[0][0] is found[1][0]:
            return []
        for joint, _ in found:
            joint.axes[0].is_led = True
        return found

    def _add_gearbox(self, gearbox: SdfJoint, hinges: list[tuple[SdfJoint, float]]) -> None:
        """Couple two hinges: the child's angle is minus the ratio times the parent's."""
        if not hinges or gearbox.gear_ratio == 0.0:
            gearbox.owner.leave_out(GEARBOXES, gearbox.element)
            return
        (first, s1), (second, s2) = hinges
        name = self.part_names.free("coupling", self.names[gearbox.frame])
        self.lines["coupling", name] = gearbox.element
        terms = {self.names[second.frame]: s2, self.names[first.frame]: gearbox.gear_ratio * s1}
        self.mechanism.add_coupling(name, terms)

    def add_ball(
        self, frame_a: SdfFrame, frame_b: SdfFrame, points: list[RigidPose], element: Element
    ) -> None:
        """Close a loop with a ball joint between two points, each given in a frame."""
        bodies, places = [], []
        for frame, point in zip((frame_a, frame_b), points, strict=True):
            link = self.frames.link_of(frame)
            world = self.frames.in_world(frame) @ point
            bodies.append(self.body(link))
            on = world if link is None else self.frames.in_world(link).inverse() @ world
            places.append(position(on))
        name = self.part_names.free("joint", "_".join(bodies))
        self.lines["loop", name] = element
        self.mechanism.add_loop(
            name, Spherical(), parent=bodies[0], child=bodies[1], at=places[0], child_at=places[1]
        )


def _home(name: str, pose: RigidPose) -> dict[str, float]:
    """Coordinates of a floating joint, those that are not zero."""
    values = dict(zip(("qw", "qx", "qy", "qz"), to_quaternions(pose.R).tolist(), strict=True))
    values |= dict(zip("xyz", position(pose), strict=True))
    at_zero = values["qw"] == 1.0
    return {f"{name}.{k}": v for k, v in values.items() if v and not (k == "qw" and at_zero)}


@dataclass(frozen=True)
class GraphEdge:
    """A joint between two bodies, by their names.

    Attributes:
        cost: What is cut last, first; joints with equal costs are cut from the end of the file.
    """

    parent: str
    child: str
    cost: tuple[int, ...]


@dataclass
class SpanningTree:
    """The tree that was chosen.

    Attributes:
        forward: By the number of an edge in the tree, whether it leads from parent to child.
        roots: Bodies that no joint connects to the ground, one per free part.
    """

    forward: dict[int, bool]
    roots: list[str]


def choose_tree(
    bodies: Sequence[str], edges: Sequence[GraphEdge], root_of: Callable[[list[str]], str]
) -> SpanningTree:
    """Choose a spanning tree.

    Args:
        bodies: All bodies but the ground.
        edges: All joints.
        root_of: Chooses the root among the bodies of a part that nothing connects to the ground.
    """
    kept = _spanning_edges([GROUND.name, *bodies], edges)
    beside: dict[str, list[int]] = {}
    for number in kept:
        for end in (edges[number].parent, edges[number].child):
            beside.setdefault(end, []).append(number)
    forward: dict[int, bool] = {}
    reached: set[str] = set()

    def spread(root: str) -> None:
        reached.add(root)
        waiting = [root]
        while waiting:
            body = waiting.pop(0)
            for number in beside.get(body, ()):
                edge = edges[number]
                if number not in forward:
                    forward[number] = edge.parent == body
                    other = edge.child if edge.parent == body else edge.parent
                    reached.add(other)
                    waiting.append(other)

    spread(GROUND.name)
    roots = []
    for body in bodies:
        if body not in reached:
            roots.append(root_of(_part(body, beside, edges)))
            spread(roots[-1])
    return SpanningTree(forward, roots)


def _spanning_edges(bodies: list[str], edges: Sequence[GraphEdge]) -> list[int]:
    """Numbers of edges without a ring, the cheapest first."""
    above = {body: body for body in bodies}

    def top(body: str) -> str:
        while above[body] != body:
            above[body] = above[above[body]]
            body = above[body]
        return body

    kept = []
    for number in sorted(range(len(edges)), key=lambda n: (edges[n].cost, n)):
        first, second = top(edges[number].parent), top(edges[number].child)
        if first != second:
            above[second] = first
            kept.append(number)
    return sorted(kept)


def _part(body: str, beside: dict[str, list[int]], edges: Sequence[GraphEdge]) -> list[str]:
    """All bodies that the tree joins to one."""
    found, waiting = {body: None}, [body]
    while waiting:
        for number in beside.get(waiting.pop(), ()):
            for end in (edges[number].parent, edges[number].child):
                if end not in found:
                    found[end] = None
                    waiting.append(end)
    return list(found)


# reading ---------------------------------------------------------------------------------


GRAVITY = (0.0, 0.0, -9.8)  # of a world that gives none
_BALL = "drake:ball_constraint"
MAX_FRAMES = 10_000  # of models, links, joints and frames
_KINDS = {"body": "link", "motor": "joint", "damper": "joint", "loop": "joint"}


def mechanism_from_sdf(file: XmlFile) -> Mechanism:
    """Read the mechanism that an SDF file describes; models float unless the file has a base.

    Raises:
        FileError: if the text is not SDF.
        MechanismError: listing every fault with its line.
        NotApplicable: if there are too many bodies.

    Warns:
        FileDeviationWarning: once, listing everything that departs from the format or from
            physics, and what was done about it.
        OmissionWarning: once, listing everything that a mechanism cannot hold.
    """
    source, findings = file.source, Findings(COUNTED, "what is listed with its line")
    root = parse(file.text, source, file.remarks)
    findings.note_remarks("sdf", file.remarks)
    world = ModelFiles(source, file.folder, findings).world(root)
    reader = WorldReader(world, findings, file)
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is reported
        mechanism = reader.build()
    findings.conclude(source, strict=file.strict)
    findings.warn_left_out(source)
    return mechanism


class WorldReader:
    """Reads the links and joints of all models of a world."""

    def __init__(self, world: ModelScope, findings: Findings, file: XmlFile) -> None:
        self.world = world
        self.findings = findings
        self.file = file
        self.frames = FrameResolver(findings)

    def build(self) -> Mechanism:
        """Return the mechanism; `findings` holds the faults of the file."""
        count = sum(1 + len(scope.frames) for scope in self.world.all_scopes())
        if count > MAX_FRAMES:
            raise FileError(
                f"{self.file.source} has {count} models, links, joints and frames, and files of "
                f"at most {MAX_FRAMES} are read."
            )
        kept = self._kept_models()
        if len(kept) == 1:
            kept[0].is_prefix = False
        scopes = [scope for model in kept for scope in model.all_scopes()]
        named = self.world.element.attributes.get("name")
        name = kept[0].name if len(kept) == 1 else named
        mechanism = Mechanism(name or self.file.path.stem)
        links = self._links(scopes)
        joints = list(self._joints([self.world, *scopes]))
        if not links:
            if not self.findings.faults:
                owner = SdfOwner("sdf", "", self.findings)
                owner.report(self.world.element, "", "has no <model> with a <link>")
            self.findings.faults += self.findings.left_out.get(MISSING, [])
            return mechanism
        self._require_base(joints)
        require_readable(self.file.source, [(link.frame.full_name, "") for link in links])
        mechanism.gravity = self._gravity(mechanism.gravity, links)
        sound = not self.findings.faults
        builder = SdfBuilder(mechanism, self.findings, self.frames, links, joints)
        builder.build(self.file.base)
        self._add_constraints(scopes, builder)
        rubs = "wheels" in self.file.contacts
        floor = self._floor() if rubs else None
        for link in links:
            body = builder.names[link.frame]
            self._reader(link.frame).add_geometry(self.file.geometry, body, floor, rubs=rubs)

        def line(fault: Fault) -> int:
            kind = "body" if fault.kind == "body" else "joint"
            lines, name = builder.lines, fault.name
            return (
                lines.get((kind, name)) or lines.get((fault.kind, name)) or self.world.element
            ).line

        self.findings.keep(value_faults(mechanism), line, _KINDS)
        if sound and not self.findings.faults:
            self.findings.keep(relation_faults(mechanism), line, _KINDS)
        return mechanism

    def _kept_models(self) -> list[ModelScope]:
        """The models that are read: all, but for scenery that nothing is joined to."""
        models = self.world.scopes
        joined = list(self.world.of_kind("joint"))
        moving = [model for model in models if not model.static]
        if joined or not moving:
            return models
        for model in models:
            if model.static:
                SdfOwner("world", "", self.findings).leave_out(SCENERY, model.placed)
                for frame in (f for scope in model.all_scopes() for f in scope.of_kind("link")):
                    self._reader(frame).add_geometry(self.file.geometry, GROUND.name)
        return moving

    def _floor(self) -> Surface | None:
        """How the first plane of scenery rubs."""
        for model in self.world.scopes:
            for frame in (f for scope in model.all_scopes() for f in scope.of_kind("link")):
                for element in frame.element.all("collision") if model.static else ():
                    geometry = element.first("geometry")
                    if geometry is not None and geometry.first("plane") is not None:
                        return self._reader(frame).surface(element)
        return None

    def _links(self, scopes: list[ModelScope]) -> list[SdfLink]:
        found = []
        for scope in scopes:
            found += [self._reader(frame).read() for frame in scope.of_kind("link")]
        return found

    def _reader(self, frame: SdfFrame) -> LinkReader:
        return LinkReader(frame, self.frames.owner(frame), self.frames, frame.scope.static)

    def _joints(self, scopes: list[ModelScope]) -> Iterator[SdfJoint]:
        for scope in scopes:
            for frame in scope.of_kind("joint"):
                if scope.static:
                    SdfOwner("joint", frame.full_name, self.findings).leave_out(
                        SCENERY, frame.element
                    )
                    continue
                reader = SdfJointReader(self.frames, frame, self.file.contacts)
                joint = reader.read()
                if joint is not None:
                    reader.read_mimics(joint)
                    yield joint
            for frame in scope.of_kind("frame"):
                self.frames.in_world(frame)
                self.frames.link_of(frame)

    def _require_base(self, joints: list[SdfJoint]) -> None:
        """Raise an error if a base is asked for and the file holds the robot itself."""
        base = self.file.base
        held = [j for j in joints if j.parent is None or j.child is None]
        if base in (None, "fixed") or not held:
            return
        raise InvalidArgument(
            f"base='{base}': joint '{held[0].frame.full_name}' of {self.file.source} joins the "
            "robot to the world.\n  Leave base out, or remove this joint from the file."
        )

    def _gravity(self, usual: object, links: list[SdfLink]) -> tuple[float, ...]:
        """Gravity of the world; nothing if no link has weight."""
        element, owner = self.world.element, SdfOwner("world", "", self.findings)
        wind = element.first("wind")
        if any(owner.vector(wind, "linear_velocity", (0.0, 0.0, 0.0))):
            owner.leave_out(FLUID, wind or element)
        default = GRAVITY if "name" in element.attributes else usual
        gravity = owner.vector(element, "gravity", default)  # type: ignore[arg-type]
        moving = [link for link in links if not link.frame.scope.static and link.mass]
        without = [link for link in moving if not link.has_weight]
        if without and len(without) == len(moving):
            return (0.0, 0.0, 0.0)
        for link in without:
            link.owner.leave_out(WEIGHTLESS, link.frame.element)
        return gravity

    def _add_constraints(self, scopes: list[ModelScope], builder: SdfBuilder) -> None:
        for scope in scopes:
            for element in scope.element.all(_BALL):
                owner = SdfOwner(_BALL, "", self.findings)
                frames, points = [], []
                for body, point in (("body_A", "p_AP"), ("body_B", "p_BQ")):
                    given = element.first(f"{_BALL}_{body}")
                    name = given.text if given else ""
                    frames.append(self.frames.find(scope, name, owner, given or element, body))
                    place = owner.vector(element, f"{_BALL}_{point}", (0.0, 0.0, 0.0))
                    points.append(RigidPose(np.eye(3), np.array(place)))
                builder.add_ball(frames[0], frames[1], points, element)
