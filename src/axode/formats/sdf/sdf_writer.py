"""SDF files of mechanisms, for Gazebo, Drake and others.

A joint of SDF has one frame, which belongs to both links where the model stands. The links of a
mechanism with loops are therefore placed where its loops are closed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from axode.formats.written.mechanism_text import (
    MechanismText,
    WrittenSolid,
    XmlElement,
    add,
    finish,
    floors,
    home_values,
    is_constant,
    joint_laws,
    motor_efforts,
    number,
    pictures,
    row,
    surface_of,
    unsaid,
    wheels,
    with_parameters,
)
from axode.formats.written.written_joints import Array, FramePose, cleaned_numbers
from axode.formats.written.written_tree import (
    SINGLE,
    WrittenJoint,
    WrittenLink,
    WrittenLoop,
    WrittenTree,
)
from axode.formats.xml.reading import MOMENTS
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.files.imported import Surface, with_mesh_addresses
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import numeric

VERSION = "1.11"  # the first with joints that follow others
NATIVE = frozenset({"hinge", "slide", "screw", "universal", "ball", "free", "fixed"})
LOOPS = frozenset({"hinge", "slide", "screw", "ball", "fixed"})
TYPES = {
    "hinge": "revolute",
    "slide": "prismatic",
    "screw": "screw",
    "universal": "universal",
    "ball": "ball",
    "fixed": "fixed",
}
WORLD = "world"


def sdf_text(
    mechanism: Mechanism,
    path: str | os.PathLike[str] | None = None,
    parameters: Mapping[str, float] | None = None,
    *,
    strict: bool = False,
) -> MechanismText:
    """Write a mechanism as SDF; see `Mechanism.to_sdf`."""
    found = with_parameters(mechanism, parameters)
    found = with_mesh_addresses(found, None if path is None else Path(path).parent)
    placed = bool(found.loops)
    home = home_values(found, closed=placed or bool(found.contacts))
    # where the model stands, the first axis of a universal joint need not be across its second
    native = NATIVE - {"universal"} if placed else NATIVE
    tree = WrittenTree(found, native, LOOPS, home, one_namespace=True)
    return SdfWriter(tree).write(path, strict=strict)


class SdfWriter:
    """Writes one tree."""

    def __init__(self, tree: WrittenTree) -> None:
        self.tree, self.mechanism = tree, tree.mechanism
        self.at_home = bool(self.mechanism.loops)
        self.root = ElementTree.Element("sdf", {"version": VERSION})
        self.world = add(self.root, "world", name="default")
        add(self.world, "gravity", row(map(numeric, self.mechanism.gravity)))
        name = self.mechanism.name.replace("::", "_").strip() or "mechanism"
        self.model = add(self.world, "model", name=name)
        self.links: dict[str, XmlElement] = {}
        self.axes: dict[str, list[XmlElement]] = {}
        self.laws = list(joint_laws(tree))

    def write(self, path: str | os.PathLike[str] | None, *, strict: bool) -> MechanismText:
        """Write links, joints and what acts on them, and note what cannot be."""
        for joint in self.tree.joints:
            self._add_link(self.tree.links[joint.child], joint)
        for name, wheel in wheels(self.tree):
            if name in self.links:
                self._add_solid(self.links[name], "collision", wheel)
            else:
                self.tree.left_out.append(f"the {wheel.kind} of wheel '{wheel.name}' in the world")
        for joint in self.tree.joints:
            self._add_joint(joint)
        for loop in self.tree.loops:
            self._add_loop(loop)
        self._add_efforts()
        self._add_dynamics()
        self._add_mimics()
        self._add_floors()
        self._note()
        left_out = [*self.tree.left_out, *unsaid(self.tree)]
        return finish(self.mechanism, "SDF", self.root, left_out, path, strict=strict)

    # links ---------------------------------------------------------------------------------------

    def _add_link(self, link: WrittenLink, joint: WrittenJoint) -> None:
        element = self.links[link.name] = add(self.model, "link", name=link.name)
        # a free link is placed where it stands at home
        place = joint.displaced() if self.at_home or joint.kind == "free" else joint.place
        relative = "" if joint.parent == GROUND.name else joint.parent
        _add_pose(element, place, relative)
        inertial = add(element, "inertial")  # without it a link has one kilogram
        if link.com.any():
            add(inertial, "pose", f"{row(link.com)} 0 0 0")
        add(inertial, "mass", number(link.mass))
        inertia = add(inertial, "inertia")
        for name, entry in zip(MOMENTS, link.entries, strict=True):
            add(inertia, name, number(entry))
        if not link.mass:
            also = ", or forget its inertia" if any(link.entries) else ""
            self.tree.left_out.append(
                f"link '{link.name}' has no mass, for which some programs that read SDF refuse "
                f"it{also}"
            )
        for solid in pictures(link):
            self._add_solid(element, "visual", solid)

    def _add_solid(self, link: XmlElement, tag: str, solid: WrittenSolid) -> None:
        taken = {child.get("name") for child in link}
        name = solid.name.replace("::", "_")
        while name in taken:
            name += "_"
        element = add(link, tag, name=name)
        _add_pose(element, solid.place)
        geometry = add(add(element, "geometry"), solid.kind)
        if solid.surface is not None:
            self._add_surface(element, solid.surface)
            if solid.surface.scrub or solid.surface.rolling_resistance:
                self.tree.left_out.append(f"scrub and rolling resistance of wheel '{solid.name}'")
        if solid.kind == "box":
            add(geometry, "size", row(solid.size))
        elif solid.kind == "mesh":
            add(geometry, "uri", solid.file)
            add(geometry, "scale", row(solid.size))
        else:
            for field, value in zip(("radius", "length"), solid.size, strict=False):
                add(geometry, field, number(value))

    def _add_surface(self, collision: XmlElement, surface: Surface) -> None:
        element = add(collision, "surface")
        ode = add(add(element, "friction"), "ode")
        for tag in ("mu", "mu2"):
            add(ode, tag, number(surface.friction))
        if surface.restitution:
            bounce = add(element, "bounce")
            add(bounce, "restitution_coefficient", number(surface.restitution))

    # joints --------------------------------------------------------------------------------------

    def _add_joint(self, joint: WrittenJoint) -> None:
        if joint.kind == "free":  # a link without a joint moves freely
            if joint.parent != GROUND.name:
                self.tree.left_out.append(
                    f"joint '{joint.name}': its child is free in the world, not in its parent"
                )
            elif not joint.place.is_identity:
                self.tree.left_out.append(
                    f"joint '{joint.name}' is not at the world's origin, from where the pose of "
                    "its child counts in the file"
                )
            return
        element = self._start(joint.name, joint.kind, joint.parent, joint.child)
        directions = [joint.axis] if joint.kind in SINGLE else []
        if joint.kind == "universal":
            directions = [joint.axis, joint.second]
        self.axes[joint.name] = _add_axes(element, directions)
        if joint.kind == "screw":
            add(element, "screw_thread_pitch", number(2 * math.pi * joint.pitch))

    def _add_loop(self, loop: WrittenLoop) -> None:
        first, second, at = loop.first, loop.second, loop.second_at
        if second == GROUND.name:  # the world is no child
            first, second, at = second, first, loop.at
        element = self._start(loop.name, loop.kind, first, second)
        _add_pose(element, at)
        if loop.kind in SINGLE:
            _add_axes(element, [loop.axis])
        if loop.kind == "screw":
            add(element, "screw_thread_pitch", number(2 * math.pi * loop.pitch))

    def _start(self, name: str, kind: str, parent: str, child: str) -> XmlElement:
        element = add(self.model, "joint", name=name, type=TYPES[kind])
        add(element, "parent", WORLD if parent == GROUND.name else parent)
        add(element, "child", child)
        return element

    def _add_efforts(self) -> None:
        efforts = motor_efforts(self.tree)
        ends = {
            joint.name: tuple(end - self._zero(joint) for end in stops)
            for joint, _, stops in self.laws
            if stops is not None
        }
        for name, axes in self.axes.items():
            for k, axis in enumerate(axes):  # Drake drives every axis that gives no effort
                limit = add(axis, "limit")
                for tag, end in zip(("lower", "upper"), ends.get(name, ()), strict=False):
                    if math.isfinite(end):
                        add(limit, tag, number(end))
                add(limit, "effort", number(efforts.get((name, k), 0.0)))
        for drive in self.mechanism.drives:
            gear, rotor = numeric(drive.motor.gear), numeric(drive.motor.rotor_inertia)
            parts = [f"its gear {gear:.9g}"] if gear != 1.0 else []
            if rotor:
                parts.append(f"its rotor, {rotor * gear * gear:.9g} kg m^2 at the joint")
            what = f", with {' and '.join(parts)}" if parts else ""
            self.tree.left_out.append(
                f"motor '{drive.name}'{what}: SDF holds no motors, only efforts of joints"
            )

    def _add_dynamics(self) -> None:
        found: dict[int, XmlElement] = {}

        def dynamics(axis: XmlElement) -> XmlElement:
            if id(axis) not in found:
                found[id(axis)] = add(axis, "dynamics")
            return found[id(axis)]

        for joint, damping in self.tree.damping():
            axes = self.axes.get(joint.name, [])
            if len(axes) == len(damping):
                for axis, value in zip(axes, damping, strict=True):
                    add(dynamics(axis), "damping", number(value))
            elif any(damping):
                self.tree.left_out.append(f"damping of joint '{joint.name}', which has no axis")
        for joint, friction, _ in self.laws:
            if friction:
                add(dynamics(self.axes[joint.name][0]), "friction", number(friction))
        for joint, stiffness, rest in self.tree.stiffness():
            element = dynamics(self.axes[joint.name][0])
            add(element, "spring_reference", number(rest - self._zero(joint)))
            add(element, "spring_stiffness", number(stiffness))

    def _zero(self, joint: WrittenJoint) -> float:
        """Value here of a joint's coordinate where it is zero in the file."""
        return joint.home[0] if self.at_home and joint.home else 0.0

    def _add_mimics(self) -> None:
        """Let one joint of each coupling follow the other, if it follows none yet."""
        for coupling, follower, leader in self.tree.followers():
            if follower is None or leader is None:
                self.tree.left_out.append(
                    f"coupling '{coupling.name}': a joint of SDF follows one other, and once"
                )
                continue
            (joint, c), (other, d) = follower, leader
            moved = coupling.offset - c * self._zero(joint) - d * self._zero(other)
            mimic = add(self.axes[joint.name][0], "mimic", joint=other.name)
            add(mimic, "multiplier", number(-d / c))
            add(mimic, "offset", number(moved / c))
            add(mimic, "reference", "0")

    def _add_floors(self) -> None:
        for count, floor in enumerate(floors(self.tree)):
            if floor.link != GROUND.name:
                self.tree.left_out.append(f"the plane on link '{floor.link}', which wheels roll on")
                continue
            name = f"ground_{count}" if count else "ground"
            while name == self.model.get("name"):
                name += "_"
            model = add(self.world, "model", name=name)
            add(model, "static", "true")
            link = add(model, "link", name="plane")
            collision = add(link, "collision", name="plane")
            _add_pose(collision, FramePose(np.eye(3), floor.place.p))
            plane = add(add(collision, "geometry"), "plane")
            add(plane, "normal", row(cleaned_numbers(floor.place.R[:, 2])))
            found = [surface_of(contact.wheel) for contact in self.mechanism.contacts]
            surfaces = [surface for surface in found if surface is not None]
            if surfaces:  # of two surfaces the lesser numbers act: those of the wheels
                friction = max(surface.friction for surface in surfaces)
                back = max(surface.restitution for surface in surfaces)
                self._add_surface(collision, Surface(max(friction, 1.0), restitution=back))

    def _note(self) -> None:
        mechanism, lost = self.mechanism, self.tree.left_out
        lost += [f"armature of joint '{c.name}'" for c in mechanism.connections if c.armature]
        home = {c: v for j in self.tree.joints for c, v in zip(j.coordinates, j.home, strict=False)}
        if self.at_home:
            moved = [f"{name} = {value:.9g}" for name, value in home.items() if value]
            lost.append(
                "the links are placed where the loops are closed; coordinates count from there: "
                + ", ".join(moved)
            )
        elif any(v for j in self.tree.joints if j.kind != "free" for v in j.home):
            lost.append("the home configuration")
        lost += [f"spring '{strut.name}' between two points" for strut in mechanism.struts]
        lost += [
            f"coordinate '{p.coordinate}' is held at {numeric(p.motion):.9g} here"
            for p in mechanism.prescribed
            if is_constant(p.motion)
        ]


def _add_axes(joint: XmlElement, directions: list[Array]) -> list[XmlElement]:
    found = []
    for tag, direction in zip(("axis", "axis2"), directions, strict=False):
        axis = add(joint, tag)
        add(axis, "xyz", row(direction))
        found.append(axis)
    return found


def _add_pose(element: XmlElement, place: FramePose, relative_to: str = "") -> None:
    if place.is_identity and not relative_to:
        return
    pose = add(element, "pose", f"{row(place.p)} {row(place.angles)}")
    if relative_to:
        pose.set("relative_to", relative_to)
