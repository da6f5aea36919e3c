"""MJCF files of mechanisms, for MuJoCo.

Simple joints that follow one another without a body between them are joints of one body. Loops and
couplings are equality constraints, springs between points are tendons.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    number,
    pictures,
    row,
    unsaid,
    wheels,
    with_parameters,
)
from axode.formats.written.written_joints import (
    NO_OFFSET,
    FramePose,
    cleaned_numbers,
    kind_of,
    numbers_of,
)
from axode.formats.written.written_tree import SINGLE, WrittenJoint, WrittenLink, WrittenTree
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.files.imported import with_mesh_addresses
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of
from axode.mechanism.values.expressions import numeric
from axode.numerics.tolerances import LEAST_INERTIA, ROUNDING, TWO_ROUNDINGS

NATIVE = frozenset({"hinge", "slide", "ball", "free", "fixed"})
LOOPS = frozenset({"hinge", "ball", "fixed"})
ALONG_HINGE = 0.1  # [m] between the two points that a hinge of a loop keeps together
READABLE_MESHES = (".stl", ".obj", ".msh")
HOME = "home"
FAR = 1e9  # [m or rad]: an end of a range that is none


def mjcf_text(
    mechanism: Mechanism,
    path: str | os.PathLike[str] | None = None,
    parameters: Mapping[str, float] | None = None,
    *,
    strict: bool = False,
) -> MechanismText:
    """Write a mechanism as MJCF; see `Mechanism.to_mjcf`."""
    folder = Path() if path is None else Path(path).parent
    found = with_mesh_addresses(with_parameters(mechanism, parameters), folder)
    tied = bool(found.loops or found.contacts or found.couplings or found.prescribed)
    home = home_values(found, closed=tied)
    tree = WrittenTree(found, NATIVE, LOOPS, home, _expanded(found))
    return MjcfWriter(tree, folder).write(path, strict=strict)


def _expanded(mechanism: Mechanism) -> frozenset[str]:
    """Floating joints that must have slides: off the ground, or something acts on a coordinate."""
    used = {spring.coordinate for spring in mechanism.springs}
    used |= {name for coupling in mechanism.couplings for name in coupling.joints}
    used |= {p.coordinate for p in mechanism.prescribed if is_constant(p.motion)}
    coordinates = {coordinate_of(mechanism, name) for name in used}
    return frozenset(
        joint.name
        for joint in mechanism.connections
        if kind_of(joint) == "free"
        and (joint.parent != GROUND.name or coordinates & set(joint.coordinates))
    )


class MjcfWriter:
    """Writes one tree."""

    def __init__(self, tree: WrittenTree, folder: Path) -> None:
        self.tree, self.mechanism, self.folder = tree, tree.mechanism, folder
        self.root = ElementTree.Element("mujoco", {"model": self.mechanism.name})
        add(self.root, "compiler", angle="radian", inertiafromgeom="false")
        gravity = map(numeric, self.mechanism.gravity)
        add(self.root, "option", gravity=row(gravity))
        self.asset = add(self.root, "asset")
        self.bodies = {GROUND.name: add(self.root, "worldbody")}
        self.joints: dict[str, XmlElement] = {}
        self.sections = {
            tag: add(self.root, tag) for tag in ("tendon", "equality", "actuator", "keyframe")
        }

    def write(self, path: str | os.PathLike[str] | None, *, strict: bool) -> MechanismText:
        """Write bodies, joints, constraints and what acts on them, and note what cannot be."""
        self._add_bodies()
        for name, wheel in wheels(self.tree):
            self._add_geom(name, wheel, touches=True)
        self._add_floors()
        self._add_forces()
        self._add_loops()
        self._add_couplings()
        self._add_motors()
        self._add_struts()
        self._add_home()
        for element in [self.asset, *self.sections.values()]:
            if not len(element):
                self.root.remove(element)
        left_out = [*self.tree.left_out, *unsaid(self.tree)]
        return finish(self.mechanism, "MJCF", self.root, left_out, path, strict=strict)

    # bodies --------------------------------------------------------------------------------------

    def _add_bodies(self) -> None:
        inertias = moving_inertias(self.tree)
        waiting: list[WrittenJoint] = []
        for joint in self.tree.joints:
            waiting.append(joint)
            link = self.tree.links[joint.child]
            if link.is_between:
                continue
            first = waiting[0]
            element = add(self.bodies[first.parent], "body", name=link.name)
            _set_pose(element, first.place)
            self.bodies[link.name] = element
            for part in waiting:
                self._add_joint(element, part)
            inertia = inertias[link.name]
            if inertia.mass or any(inertia.moments):
                inertial = add(element, "inertial", pos=row(link.com), mass=number(inertia.mass))
                if any(inertia.quaternion[1:]):
                    inertial.set("quat", row(inertia.quaternion))
                inertial.set("diaginertia", row(inertia.moments))
            for solid in pictures(link):
                self._add_picture(link, solid)
            waiting = []

    def _add_joint(self, body: XmlElement, joint: WrittenJoint) -> None:
        if joint.kind == "fixed":
            return
        if joint.kind == "free":
            self.joints[joint.name] = add(body, "joint", name=joint.name, type="free")
            if not joint.place.is_identity:
                self.tree.left_out.append(
                    f"joint '{joint.name}' is not at the world's origin, from where its "
                    "coordinates count in the file"
                )
            return
        element = add(body, "joint", name=joint.name, type=joint.kind)
        self.joints[joint.name] = element
        if joint.kind != "ball":
            element.set("axis", row(joint.axis))

    def _add_picture(self, link: WrittenLink, solid: WrittenSolid) -> None:
        if solid.kind != "mesh":
            self._add_geom(link.name, solid, touches=False)
            return
        file = self.folder / solid.file
        if file.suffix.lower() not in READABLE_MESHES or not file.is_file():
            self.tree.left_out.append(
                f"the mesh of body '{solid.name}': MuJoCo reads {', '.join(READABLE_MESHES)} "
                f"files that exist, not '{solid.file}'"
            )
            return
        name = self.tree.free_name("mesh", solid.name)
        add(self.asset, "mesh", name=name, file=solid.file, scale=row(solid.size))
        self._add_geom(link.name, replace(solid, file=name), touches=False)

    def _add_geom(self, link: str, solid: WrittenSolid, *, touches: bool) -> None:
        element = add(self.bodies[link], "geom", type=solid.kind)
        if touches:
            element.set("name", self.tree.free_name("geom", solid.name))
        _set_pose(element, solid.place)
        half = {"box": [x / 2 for x in solid.size], "cylinder": [solid.size[0], solid.size[-1] / 2]}
        if solid.kind == "mesh":
            element.set("mesh", solid.file)
        else:
            element.set("size", row(half.get(solid.kind, solid.size)))
        # wheels touch floors, and nothing touches anything else
        if solid.surface is not None:
            surface = solid.surface
            lengths = surface.friction, surface.scrub, surface.rolling_resistance
            element.set("friction", row(lengths))
            rows = 6 if surface.rolling_resistance else 4 if surface.scrub else 3
            element.set("condim", str(rows if surface.friction or rows > 3 else 1))
            element.set("priority", "1")  # its numbers act, not those of the floor
            if surface.restitution:
                self.tree.left_out.append(f"restitution of wheel '{solid.name}'")
        element.set("contype", "1" if touches else "0")
        element.set("conaffinity", "0")
        if not touches:
            element.set("group", "2")

    def _add_floors(self) -> None:
        holding = {joint.child: joint for joint in self.tree.joints}
        for floor in floors(self.tree):
            link = floor.link
            while link != GROUND.name and holding[link].kind == "fixed":
                link = holding[link].parent
            if link != GROUND.name:
                self.tree.left_out.append(
                    f"the plane on body '{floor.link}': planes of MuJoCo do not move"
                )
                continue
            element = add(self.bodies[floor.link], "geom", type="plane", size="0 0 1")
            _set_pose(element, floor.place)
            element.set("contype", "0")
            element.set("conaffinity", "1")

    # joints --------------------------------------------------------------------------------------

    def _add_forces(self) -> None:
        for joint, damping in self.tree.damping():
            width = 6 if joint.kind == "free" else 3 if joint.kind == "ball" else 1
            if len(damping) == width and np.ptp(damping) <= TWO_ROUNDINGS * max(damping):
                self.joints[joint.name].set("damping", number(damping[0]))
            elif any(damping):
                self.tree.left_out.append(
                    f"damping of joint '{joint.name}': one number damps all its speeds in MuJoCo"
                )
        for joint, friction, stops in joint_laws(self.tree):
            if friction:
                self.joints[joint.name].set("frictionloss", number(friction))
            if stops is not None:
                low, high = (min(max(end, -FAR), FAR) for end in stops)
                self.joints[joint.name].set("limited", "true")
                self.joints[joint.name].set("range", row((low, high)))
        for joint, stiffness, rest in self.tree.stiffness():
            self.joints[joint.name].set("stiffness", number(stiffness))
            self.joints[joint.name].set("springref", number(rest))

    def _add_motors(self) -> None:
        armature = self._armature()
        for drive in self.mechanism.drives:
            gear, rotor = numeric(drive.motor.gear), numeric(drive.motor.rotor_inertia)
            driven = self.tree.joint_of_speed(drive.coordinate)
            name = self.tree.free_name("motor", drive.name)
            motor = self._add_motor(name, drive.coordinate, driven, gear)
            if motor is None:
                self.tree.left_out.append(
                    f"motor '{drive.name}' drives {drive.coordinate} between two moving bodies"
                )
            elif drive.motor.limit is not None:
                limit = number(numeric(drive.motor.limit))
                motor.set("ctrllimited", "true")
                motor.set("ctrlrange", f"-{limit} {limit}")
            if rotor and driven is not None and driven[0].kind in SINGLE:
                joint = driven[0].name
                armature[joint] = armature.get(joint, 0.0) + rotor * gear * gear
            elif rotor:
                self.tree.left_out.append(
                    f"rotor inertia of motor '{drive.name}': armature is on all speeds of a joint"
                )
        for joint, inertia in armature.items():
            self.joints[joint].set("armature", number(inertia))

    def _armature(self) -> dict[str, float]:
        """Armature of joints that is not of motors' rotors."""
        found: dict[str, float] = {}
        for connection in self.mechanism.connections:
            armature = numeric(connection.armature)
            for speed in connection.speeds if armature else ():
                written = self.tree.joint_of_speed(speed)
                if written is not None and written[0].kind in (*SINGLE, "ball"):
                    found[written[0].name] = armature
                else:
                    self.tree.left_out.append(f"armature of joint '{connection.name}' on {speed}")
        return found

    def _add_motor(
        self, name: str, coordinate: str, driven: tuple[WrittenJoint, int] | None, gear: float
    ) -> XmlElement | None:
        """Add a motor on a joint, or on the frame of a base; None if it can be neither."""
        section = self.sections["actuator"]
        if driven is not None and driven[0].kind in SINGLE:
            return add(section, "motor", name=name, joint=driven[0].name, gear=number(gear))
        if driven is not None and driven[0].kind == "ball":
            gears = [gear if k == driven[1] else 0.0 for k in range(3)]
            return add(section, "motor", name=name, joint=driven[0].name, gear=row(gears))
        connection = self.tree.connection_of_speed(coordinate)
        if connection.parent != GROUND.name:
            return None
        # a wrench along the axes of the child, at its joint; the world takes the reaction
        speeds = connection.speeds
        speed = speeds.index(coordinate) if coordinate in speeds else 0
        planar = kind_of(connection) == "planar"
        order = (0, 1, 5) if planar else (3, 4, 5, 0, 1, 2)
        gears = [gear if k == order[speed] else 0.0 for k in range(6)]
        link, _ = self.tree.frames[connection.child]
        site = self._add_site(link, NO_OFFSET, f"{name}.site")
        return add(section, "motor", name=name, site=site, gear=row(gears))

    def _add_struts(self) -> None:
        for strut in self.mechanism.struts:
            name = self.tree.free_name("tendon", strut.name)
            tendon = add(self.sections["tendon"], "spatial", name=name)
            tendon.set("stiffness", number(numeric(strut.stiffness)))
            tendon.set("damping", number(numeric(strut.damping)))
            tendon.set("springlength", number(numeric(strut.rest)))
            for body, at, end in (
                (strut.parent, strut.at, "from"),
                (strut.child, strut.child_at, "to"),
            ):
                link, place = self.tree.frames[body]
                point = place @ FramePose.of(numbers_of(at), (0.0, 0.0, 0.0))
                add(tendon, "site", site=self._add_site(link, point, f"{strut.name}.{end}"))

    # constraints ---------------------------------------------------------------------------------

    def _add_site(self, link: str, place: FramePose, name: str) -> str:
        name = self.tree.free_name("site", name)
        element = add(self.bodies[link], "site", name=name)
        _set_pose(element, place)
        return name

    def _add_loops(self) -> None:
        """Weld frames, or keep one point together, or two points along the axis of a hinge."""
        for loop in self.tree.loops:
            tag = "weld" if loop.kind == "fixed" else "connect"
            ends = ((loop.first, loop.at), (loop.second, loop.second_at))
            for k in range(2 if loop.kind == "hinge" else 1):
                name = f"{loop.name}.axis" if k else loop.name
                along = FramePose(np.eye(3), k * ALONG_HINGE * loop.axis)
                sites = [
                    self._add_site(link, at @ along, f"{name}.{end}")
                    for (link, at), end in zip(ends, ("first", "second"), strict=True)
                ]
                element = add(self.sections["equality"], tag)
                element.set("name", self.tree.free_name("equality", name))
                element.set("site1", sites[0])
                element.set("site2", sites[1])

    def _add_couplings(self) -> None:
        section = self.sections["equality"]
        for coupling in self.tree.couplings:
            name = self.tree.free_name("equality", coupling.name)
            if len(coupling.terms) <= 2:
                (joint, c), *others = coupling.terms
                numbers = [coupling.offset / c, *(-d / c for _, d in others)]
                element = add(section, "joint", name=name, joint1=joint.name)
                for other, _ in others:
                    element.set("joint2", other.name)
            else:
                tendon = self.tree.free_name("tendon", coupling.name)
                fixed = add(self.sections["tendon"], "fixed", name=tendon)
                for joint, c in coupling.terms:
                    add(fixed, "joint", joint=joint.name, coef=number(c))
                numbers = [coupling.offset]
                element = add(section, "tendon", name=name, tendon1=tendon)
            element.set("polycoef", row([*numbers, *[0.0] * (5 - len(numbers))]))
        for prescribed in self.mechanism.prescribed:
            if not is_constant(prescribed.motion):
                continue
            held = self.tree.joint_of_coordinate(prescribed.coordinate)
            if held is None:
                self.tree.left_out.append(f"coordinate '{prescribed.coordinate}' is held here")
                continue
            name = self.tree.free_name("equality", prescribed.coordinate)
            element = add(section, "joint", name=name, joint1=held.name)
            element.set("polycoef", row([numeric(prescribed.motion), 0.0, 0.0, 0.0, 0.0]))

    def _add_home(self) -> None:
        """Add the keyframe of the home configuration, in the order of MuJoCo's joints."""
        by_name = {joint.name: joint for joint in self.tree.joints}
        values: list[float] = []
        for element in self.bodies[GROUND.name].iter("joint"):
            joint = by_name[element.attrib["name"]]
            if joint.kind == "free":
                placed = joint.displaced()
                values += [*placed.p.tolist(), *placed.quaternion]
            else:
                values += joint.home or (0.0,)
        if values:
            add(self.sections["keyframe"], "key", name=HOME, qpos=row(values))


def _set_pose(element: XmlElement, place: FramePose) -> None:
    if place.p.any():
        element.set("pos", row(place.p))
    quaternion = place.quaternion
    if any(quaternion[1:]):
        element.set("quat", row(quaternion))


@dataclass(frozen=True)
class PrincipalInertia:
    """Mass, principal moments and the quaternion of their axes in the link's."""

    mass: float
    moments: tuple[float, ...]
    quaternion: tuple[float, ...]


def moving_inertias(tree: WrittenTree) -> dict[str, PrincipalInertia]:
    """Return the inertia of every link as MuJoCo accepts it; note what had to be changed."""
    found = {name: _principal(link) for name, link in tree.links.items()}
    sound = {
        name: min(inertia.mass, *inertia.moments) >= LEAST_INERTIA
        for name, inertia in found.items()
    }
    for joint in reversed(tree.joints):  # what is welded to a link counts with it
        if joint.kind == "fixed" and sound[joint.child] and joint.parent in sound:
            sound[joint.parent] = True
    for name, inertia in found.items():
        found[name] = _with_possible_moments(tree, name, inertia)
    for joint in tree.joints:
        name = joint.child
        if joint.kind == "fixed" or sound[name] or tree.links[name].is_between:
            continue
        moments = tuple(max(m, LEAST_INERTIA) for m in found[name].moments)
        found[name] = replace(
            found[name], mass=max(found[name].mass, LEAST_INERTIA), moments=moments
        )
        tree.left_out.append(
            f"body '{name}' lacks mass or moments of inertia, which MuJoCo refuses in bodies that "
            f"move; those that vanish are {LEAST_INERTIA:g} in the file"
        )
    return found


def _principal(link: WrittenLink) -> PrincipalInertia:
    tensor = link.tensor
    if np.array_equal(tensor, np.diag(np.diag(tensor))):
        return PrincipalInertia(link.mass, tuple(np.diag(tensor).tolist()), (1.0, 0.0, 0.0, 0.0))
    moments, axes = np.linalg.eigh(tensor)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    quaternion = FramePose(axes, np.zeros(3)).quaternion
    return PrincipalInertia(link.mass, tuple(cleaned_numbers(moments).tolist()), quaternion)


def _with_possible_moments(
    tree: WrittenTree, name: str, inertia: PrincipalInertia
) -> PrincipalInertia:
    """Raise the smallest moment until no moment is larger than the sum of the others."""
    moments = [max(m, 0.0) for m in inertia.moments]
    order = sorted(range(3), key=lambda k: moments[k])
    small, middle, large = order
    moments[small] = max(moments[small], moments[large] - moments[middle])
    while moments[small] + moments[middle] < moments[large]:
        moments[small] = float(np.nextafter(moments[small], np.inf))
    change = max(abs(m - n) for m, n in zip(moments, inertia.moments, strict=True))
    if change > ROUNDING * moments[large]:
        tree.left_out.append(
            f"body '{name}' has moments of inertia that no rigid body has, which MuJoCo refuses; "
            f"the smallest, {inertia.moments[small]:.9g}, is {moments[small]:.9g} in the "
            "file"
        )
    return replace(inertia, moments=tuple(moments))
