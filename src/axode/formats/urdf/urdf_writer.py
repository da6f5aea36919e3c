"""URDF files of mechanisms: links, joints, joints that follow others, efforts, pictures."""

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
    home_values,
    is_constant,
    joint_laws,
    motor_efforts,
    number,
    pictures,
    row,
    unsaid,
    wheels,
    with_parameters,
)
from axode.formats.written.written_joints import FramePose, numbers_of
from axode.formats.written.written_tree import SINGLE, WrittenJoint, WrittenLink, WrittenTree
from axode.formats.xml.reading import MOMENTS
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.files.imported import Surface, with_mesh_addresses
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import numeric

NATIVE = frozenset({"hinge", "slide", "planar", "free", "fixed"})
TYPES = {
    "hinge": "continuous",
    "slide": "prismatic",
    "planar": "planar",
    "free": "floating",
    "fixed": "fixed",
}
LOOPS = frozenset({"hinge", "slide", "cylindrical", "universal", "planar", "ball", "fixed"})
LOOP_TYPES = {**TYPES, "hinge": "revolute", "ball": "spherical"}
USUAL_GRAVITY = (0.0, 0.0, -9.81)
FAR = 1e9  # [m, m/s, N]: slides of URDF have limits, which those of a mechanism have not
WORLD = "world"
SPRING, NAMESPACE = "drake:linear_spring_damper", "http://drake.mit.edu"


def urdf_text(
    mechanism: Mechanism,
    path: str | os.PathLike[str] | None = None,
    parameters: Mapping[str, float] | None = None,
    *,
    strict: bool = False,
) -> MechanismText:
    """Write a mechanism as URDF; see `Mechanism.to_urdf`."""
    found = with_parameters(mechanism, parameters)
    found = with_mesh_addresses(found, None if path is None else Path(path).parent)
    home = home_values(found, closed=False)
    return UrdfWriter(WrittenTree(found, NATIVE, LOOPS, home)).write(path, strict=strict)


class UrdfWriter:
    """Writes one tree."""

    def __init__(self, tree: WrittenTree) -> None:
        self.tree, self.mechanism = tree, tree.mechanism
        self.robot = ElementTree.Element("robot", {"name": self.mechanism.name})
        self.links: dict[str, XmlElement] = {}
        self.joints: dict[str, XmlElement] = {}

    def write(self, path: str | os.PathLike[str] | None, *, strict: bool) -> MechanismText:
        """Write links, joints and what acts on them, and note what cannot be."""
        self.links[GROUND.name] = add(self.robot, "link", name=WORLD)
        for link in self.tree.links.values():
            self._add_link(link)
        for name, wheel in wheels(self.tree):
            self._add_solid(name, "collision", wheel)
            self._add_surface(name, wheel)
        efforts = motor_efforts(self.tree)
        laws = {id(joint): (friction, stops) for joint, friction, stops in joint_laws(self.tree)}
        for joint in self.tree.joints:
            _, stops = laws.get(id(joint), (0.0, None))
            self._add_joint(joint, efforts.get((joint.name, 0)), stops)
        self._add_dynamics({id_: friction for id_, (friction, _) in laws.items() if friction})
        self._add_mimics()
        self._add_transmissions()
        self._add_loops()
        self._add_struts()
        self._note()
        left_out = [*self.tree.left_out, *unsaid(self.tree)]
        return finish(self.mechanism, "URDF", self.robot, left_out, path, strict=strict)

    # links ---------------------------------------------------------------------------------------

    def _add_link(self, link: WrittenLink) -> None:
        element = self.links[link.name] = add(self.robot, "link", name=link.name)
        if link.mass or any(link.entries):
            inertial = add(element, "inertial")
            if link.com.any():
                add(inertial, "origin", xyz=row(link.com))
            add(inertial, "mass", value=number(link.mass))
            entries = map(number, link.entries)
            add(inertial, "inertia", **dict(zip(MOMENTS, entries, strict=True)))
        for solid in pictures(link):
            self._add_solid(link.name, "visual", solid)

    def _add_solid(self, link: str, tag: str, solid: WrittenSolid) -> None:
        element = add(self.links[link], tag)
        if tag == "collision":
            element.set("name", solid.name)
        _add_origin(element, solid.place)
        geometry = add(element, "geometry")
        if solid.kind == "box":
            add(geometry, "box", size=row(solid.size))
        elif solid.kind == "sphere":
            add(geometry, "sphere", radius=number(solid.size[0]))
        elif solid.kind == "cylinder":
            radius, length = map(number, solid.size)
            add(geometry, "cylinder", radius=radius, length=length)
        else:
            add(geometry, "mesh", filename=solid.file, scale=row(solid.size))

    # joints --------------------------------------------------------------------------------------

    def _add_joint(
        self, joint: WrittenJoint, effort: float | None, stops: tuple[float, float] | None
    ) -> None:
        kind = TYPES[joint.kind]
        kind = "revolute" if stops and kind == "continuous" else kind
        element = add(self.robot, "joint", name=joint.name, type=kind)
        self.joints[joint.name] = element
        _add_origin(element, joint.place)
        add(element, "parent", link=WORLD if joint.parent == GROUND.name else joint.parent)
        add(element, "child", link=joint.child)
        if kind not in ("floating", "fixed"):
            add(element, "axis", xyz=row(joint.axis))
        if kind in ("prismatic", "revolute"):
            allowed = 0.0 if effort is None else min(effort, FAR)
            ends = stops or (-FAR, FAR)
            low, high = (number(min(max(end, -FAR), FAR)) for end in ends)
            limit = {"effort": number(allowed), "velocity": number(FAR)}
            add(element, "limit", lower=low, upper=high, **limit)
        elif effort is not None and math.isfinite(effort) and kind == "continuous":
            add(element, "limit", effort=number(effort), velocity=number(FAR))

    def _add_surface(self, link: str, solid: WrittenSolid) -> None:
        """Write the friction of a link as Gazebo reads it; URDF itself has none."""
        surface = solid.surface
        if surface is None:
            return
        if self.robot.find(f"gazebo[@reference='{link}']") is not None:
            self.tree.left_out.append(f"friction of '{solid.name}', a second wheel on its link")
            return
        element = add(self.robot, "gazebo", reference=link)
        for tag in ("mu1", "mu2"):
            add(element, tag, number(surface.friction))
        self.tree.left_out.append(
            f"friction of wheel '{solid.name}' is an element of Gazebo's, which other programs do "
            "not know"
        )
        if surface != Surface(surface.friction):
            self.tree.left_out.append(
                f"scrub, rolling resistance and restitution of wheel '{solid.name}'"
            )

    def _add_dynamics(self, friction: dict[int, float]) -> None:
        for joint in self.tree.joints:
            if id(joint) in friction:
                rubs = number(friction[id(joint)])
                add(self.joints[joint.name], "dynamics", friction=rubs)
        for joint, damping in self.tree.damping():
            if joint.kind in SINGLE:
                element = self.joints[joint.name]
                dynamics = element.find("dynamics")
                dynamics = add(element, "dynamics") if dynamics is None else dynamics
                dynamics.set("damping", number(damping[0]))
            elif any(damping):
                self.tree.left_out.append(
                    f"damping of joint '{joint.name}', which has several speeds"
                )

    def _add_mimics(self) -> None:
        """Let one joint of each coupling follow the other."""
        for coupling, follower, leader in self.tree.followers():
            if follower is None or leader is None:
                self.tree.left_out.append(
                    f"coupling '{coupling.name}': a joint of URDF follows one other, and once"
                )
                continue
            (joint, c), (other, d) = follower, leader
            mimic = add(self.joints[joint.name], "mimic", joint=other.name)
            mimic.set("multiplier", number(-d / c))
            mimic.set("offset", number(coupling.offset / c))

    def _add_transmissions(self) -> None:
        for drive in self.mechanism.drives:
            driven = self.tree.joint_of_speed(drive.coordinate)
            if driven is None or driven[0].kind not in SINGLE:
                self.tree.left_out.append(
                    f"motor '{drive.name}' drives {drive.coordinate}, one of several speeds"
                )
                continue
            element = add(self.robot, "transmission", name=drive.name)
            add(element, "type", "transmission_interface/SimpleTransmission")
            joint = add(element, "joint", name=driven[0].name)
            add(joint, "hardwareInterface", "hardware_interface/EffortJointInterface")
            actuator = add(element, "actuator", name=drive.name)
            gear, rotor = numeric(drive.motor.gear), numeric(drive.motor.rotor_inertia)
            add(actuator, "mechanicalReduction", number(gear))
            if gear != 1.0:
                self.tree.left_out.append(
                    f"gear of motor '{drive.name}': only its transmission says it, and the "
                    "joint's effort is after the gear"
                )
            if rotor:
                self.tree.left_out.append(
                    f"rotor inertia of motor '{drive.name}', {rotor * gear * gear:.9g} kg m^2 "
                    "at the joint"
                )

    # what other programs have added to URDF -------------------------------------------------------

    def _add_loops(self) -> None:
        for loop in self.tree.loops:
            kind = LOOP_TYPES.get(loop.kind, loop.kind)
            element = add(self.robot, "loop", name=loop.name, type=kind)
            ends = (
                ("predecessor", loop.first, loop.at),
                ("successor", loop.second, loop.second_at),
            )
            for tag, link, place in ends:
                end = add(element, tag, link=WORLD if link == GROUND.name else link)
                _add_origin(end, place)
            if loop.kind not in ("ball", "fixed"):
                add(element, "axis", xyz=row(loop.axis))
            if loop.kind == "universal":
                add(element, "child_axis", xyz=row(loop.other_axis))
            self.tree.left_out.append(
                f"loop '{loop.name}' is a <loop>, which few programs that read URDF know"
            )

    def _add_struts(self) -> None:
        for strut in self.mechanism.struts:
            if GROUND.name in (strut.parent, strut.child):
                self.tree.left_out.append(f"spring '{strut.name}' between a point and the world")
                continue
            self.robot.set("xmlns:drake", NAMESPACE)
            element = add(self.robot, SPRING)
            ends = (
                (strut.parent, strut.at, "A", "p_AP"),
                (strut.child, strut.child_at, "B", "p_BQ"),
            )
            for body, at, letter, point in ends:
                link, place = self.tree.frames[body]
                add(element, f"{SPRING}_body_{letter}", name=link)
                placed = place.point(np.array(numbers_of(at), dtype=float))
                add(element, f"{SPRING}_{point}", value=row(placed))
            numbers = {
                "free_length": strut.rest,
                "stiffness": strut.stiffness,
                "damping": strut.damping,
            }
            for word, value in numbers.items():
                add(element, f"{SPRING}_{word}", value=number(numeric(value)))
            self.tree.left_out.append(
                f"spring '{strut.name}' between two points is an element of Drake's, which other "
                "programs do not know"
            )

    def _note(self) -> None:
        mechanism, lost = self.mechanism, self.tree.left_out
        gravity = tuple(map(numeric, mechanism.gravity))
        if gravity != USUAL_GRAVITY:
            lost.append(f"gravity ({row(gravity)}): programs that read URDF have their own")
        if any(mechanism.home_coordinates.values()):
            lost.append("the home configuration")
        lost += [f"armature of joint '{c.name}'" for c in mechanism.connections if c.armature]
        lost += [f"spring '{spring.name}'" for spring in mechanism.springs]
        lost += [
            f"coordinate '{p.coordinate}' is held at {numeric(p.motion):.9g} here"
            for p in mechanism.prescribed
            if is_constant(p.motion)
        ]
        if mechanism.contacts:
            lost.append("the planes that wheels roll on")


def _add_origin(element: XmlElement, place: FramePose) -> None:
    if not place.is_identity:
        add(element, "origin", **_pose(place))


def _pose(place: FramePose) -> dict[str, str]:
    attributes = {"xyz": row(place.p), "rpy": row(place.angles)}
    return {name: value for name, value in attributes.items() if value != "0 0 0"}
