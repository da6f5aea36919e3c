"""Geoms, bodies and joints of an MJCF file.

By convention, geoms of the groups 0, 1 and 2 are seen, and those of higher groups only touch. A
body of MuJoCo may have several joints, which turn about points of its own and act one after
the other; here massless bodies are between them. A coordinate has the value it has in MuJoCo: a
joint with a reference value is at its zero where MuJoCo's is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from axode.formats.mjcf.mjcf_model import CompiledModel, MeshFile
from axode.formats.mjcf.mjcf_text import (
    DAMPERS,
    FORCE_LIMITS,
    MOCAP,
    NEGATIVE,
    SOFTNESS,
    SPRINGS,
    WEIGHT,
)
from axode.formats.xml.reading import (
    DRY_FRICTION,
    LIMITS,
    UNREAD_FRICTION,
    UNREAD_STOPS,
    Numbers,
    PartNames,
    box,
    cleaned,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import GROUND, Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.elements.joints import Fixed, Floating, Prismatic, Revolute, Spherical
from axode.mechanism.files.imported import Surface
from axode.mechanism.files.wheel_proposals import Geometry, LinkSolid
from axode.mechanism.mechanism import Mechanism
from axode.numerics.rotations import from_quaternions
from axode.numerics.tolerances import NEGLIGIBLE, NOTICEABLE

# geoms ----------------------------------------------------------------------------------------


PLANE, _HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH = range(8)  # MuJoCo's geoms
LAST_SEEN = 2
SOLREF, SOLIMP = (0.02, 1.0), (0.9, 0.95, 0.001, 0.5, 2.0)  # where a file gives none
UNPAINTED = (0.5, 0.5, 0.5, 1.0)  # a geom that the file gives no colour


def shapes_of_geoms(compiled: CompiledModel) -> dict[int, list[Shape]]:
    """List the shapes of all bodies, by the number of the body."""
    model = compiled.model
    bodies = model.geom_bodyid
    moving = [g for g in range(int(model.ngeom)) if bodies[g] > 0 and _colour(model, g)[3] > 0]
    found: dict[int, list[Shape]] = {}
    for highest in (LAST_SEEN, math.inf):
        for geom in moving if not found else ():
            shapes = _shapes(compiled, geom) if model.geom_group[geom] <= highest else []
            if shapes:
                found.setdefault(int(bodies[geom]), []).extend(shapes)
    return found


def _colour(model: Any, geom: int) -> Numbers:
    """Red, green, blue and opacity of a geom or of its material."""
    own = tuple(float(part) for part in model.geom_rgba[geom])
    material = int(model.geom_matid[geom])
    if own == UNPAINTED and material >= 0:
        own = tuple(float(part) for part in model.mat_rgba[material])
    red, green, blue, opacity = (min(max(part, 0.0), 1.0) for part in own)
    return round(red, 6), round(green, 6), round(blue, 6), opacity


def _shapes(compiled: CompiledModel, geom: int) -> list[Shape]:
    model, kind = compiled.model, int(compiled.model.geom_type[geom])
    rgba = _colour(model, geom)
    colour = None if rgba == UNPAINTED else rgba[:3]
    at, quaternion = np.array(model.geom_pos[geom]), np.array(model.geom_quat[geom])
    if geom in compiled.meshes:
        if kind == MESH:  # MuJoCo moved its frame to the mesh's mass centre and principal axes
            mesh = int(model.geom_dataid[geom])
            quaternion = _product(quaternion, model.mesh_quat[mesh] * [1, -1, -1, -1])
            at = at - from_quaternions(quaternion) @ model.mesh_pos[mesh]
        return _mesh(compiled.meshes[geom], at, quaternion, colour)
    R, size = (from_quaternions(quaternion), [float(part) for part in model.geom_size[geom]])
    place = cleaned(at)
    if kind == SPHERE:
        return [Sphere(size[0], place, colour)]
    if kind in (CAPSULE, CYLINDER):
        ends = [cleaned(at + sign * size[1] * R[:, 2]) for sign in (-1, 1) if kind == CAPSULE]
        rod = Cylinder(size[0], 2 * size[1], cleaned(R[:, 2]), place, colour)
        return [rod, *(Sphere(size[0], end, colour) for end in ends)]
    if kind == BOX:
        edges = tuple(2 * part for part in size)
        return [box(edges, place, R, cleaned(quaternion), colour)]
    return []


def _mesh(file: MeshFile, at: np.ndarray, quaternion: np.ndarray, colour: Any) -> list[Shape]:
    """A mesh: a point v of its file is at S R^T (v - p) in the frame of the geom."""
    reference = np.array(file.refquat) / (np.linalg.norm(file.refquat) or 1.0)
    scale = np.array(file.scale)
    turned = not np.allclose(np.abs(reference), [1, 0, 0, 0], atol=NEGLIGIBLE)
    if turned and np.ptp(scale) > NEGLIGIBLE * np.abs(scale).max():
        return []  # a skewed mesh, which no rotation and scale describe
    if turned:
        quaternion = _product(quaternion, reference * [1, -1, -1, -1])
    at = at - from_quaternions(quaternion) @ (scale * np.array(file.refpos))
    made = Mesh(file.file, file.scale, cleaned(at), cleaned(quaternion), colour)
    return [] if any(made.faults()) else [made]


def _product(a: Any, b: Any) -> np.ndarray:
    """Multiply unit quaternions w, x, y, z."""
    u, v = np.array(a[1:]), np.array(b[1:])
    product = np.array([a[0] * b[0] - u @ v, *(a[0] * v + b[0] * u + np.cross(u, v))])
    return product / np.linalg.norm(product)


def add_geoms(geometry: Geometry, compiled: CompiledModel, bodies: list[str]) -> None:
    """Add the planes of a model, and its geoms that touch others.

    Args:
        geometry: Where to add them.
        compiled: The model.
        bodies: The names of its bodies, by number.
    """
    model = compiled.model
    for geom in range(model.ngeom):
        name = bodies[int(model.geom_bodyid[geom])]
        at, R = cleaned(model.geom_pos[geom]), from_quaternions(model.geom_quat[geom])
        if model.geom_type[geom] == PLANE:
            geometry.planes.append((name, at, cleaned(R[:, 2])))
        elif model.geom_contype[geom] or model.geom_conaffinity[geom]:
            solid = _solid(model, geom, name, at, R)
            if "wheels" in compiled.contacts and solid.radius > 0:
                solid = replace(solid, surface=_surface(compiled, geom))
            geometry.solids.append(solid)


def _surface(compiled: CompiledModel, geom: int) -> Surface | None:
    """How a geom rubs on the first plane that it touches, as MuJoCo mixes the numbers of the two.

    The geom of the higher priority decides; of equals, the larger numbers do. `condim` says which
    of the three coefficients act, and an override replaces them. None for a geom that passes
    through all planes.
    """
    model = compiled.model
    part = next(part for part in compiled.spec.geoms if part.id == geom)
    note_softness(compiled, "geom", geom, compiled.element(part), part.name)
    planes = [g for g in range(int(model.ngeom)) if model.geom_type[g] == PLANE]
    touched = [plane for plane in planes if _touch(model, geom, plane)]
    if planes and not touched:
        return None
    pair = [geom, *touched[:1]]
    highest = max(int(model.geom_priority[g]) for g in pair)
    deciding = [g for g in pair if model.geom_priority[g] == highest]
    rows = max(int(model.geom_condim[g]) for g in deciding)
    sliding, turning, rolling = (
        float(max(model.geom_friction[g][k] for g in deciding)) for k in range(3)
    )
    if int(model.opt.enableflags) & int(compiled.mujoco.mjtEnableBit.mjENBL_OVERRIDE):
        sliding, turning, rolling = (float(model.opt.o_friction[k]) for k in (0, 2, 3))
    return Surface(
        sliding if rows >= 3 else 0.0, turning if rows >= 4 else 0.0, rolling if rows >= 6 else 0.0
    )


def _touch(model: Any, one: int, other: int) -> bool:
    """Return whether the masks of two geoms let them touch."""
    types, affinities = model.geom_contype, model.geom_conaffinity
    return bool(types[one] & affinities[other] or types[other] & affinities[one])


def note_softness(
    compiled: CompiledModel, of: str, number: int, element: Element, name: str
) -> None:
    """Note how soft MuJoCo makes a stop, a joint that rubs or a contact; here they are rigid."""
    for what, usual in (("solref", SOLREF), ("solimp", SOLIMP)):
        values = getattr(compiled.model, f"{of}_{what}")[number]
        if not np.allclose(values, usual, rtol=NEGLIGIBLE, atol=0.0):
            detail = f"({what} {' '.join(f'{x:g}' for x in values)})"
            compiled.findings.leave_out(SOFTNESS, element, detail, name)


def _solid(model: Any, geom: int, name: str, at: Any, R: np.ndarray) -> LinkSolid:
    """Describe a geom; one that is neither round nor a box by the box around it."""
    size, kind = np.array(model.geom_size[geom]), int(model.geom_type[geom])
    if kind == SPHERE or (kind == ELLIPSOID and np.ptp(size) <= NOTICEABLE * size[0]):
        return LinkSolid(name, at, float(size[0]))
    if kind in (CAPSULE, CYLINDER):
        return LinkSolid.cylinder(name, at, float(size[0]), 2 * float(size[1]), R[:, 2])
    if kind == ELLIPSOID:
        for k in range(3):
            first, second = np.delete(size, k)
            if abs(first - second) <= NOTICEABLE * first:
                return LinkSolid.cylinder(name, at, float(first), 2 * float(size[k]), R[:, k])
    centre, half = np.split(np.array(model.geom_aabb[geom]), 2)
    return LinkSolid.box(name, np.array(at) + R @ centre, 2 * half, R)


# bodies and joints ----------------------------------------------------------------------------


FREE, BALL, SLIDE, HINGE = range(4)  # MuJoCo's types of joints
_WIDTH = {FREE: 7, BALL: 4, SLIDE: 1, HINGE: 1}
SPEEDS = {FREE: ("wx", "wy", "wz", "vx", "vy", "vz"), BALL: ("wx", "wy", "wz")}
_TURN = ("qw", "qx", "qy", "qz")


@dataclass
class BodyReader:
    """Adds bodies, joints and what acts in joints to a mechanism.

    Attributes:
        bodies, joints: The names here of MuJoCo's bodies and joints, by number.
    """

    compiled: CompiledModel
    mechanism: Mechanism
    bodies: list[str] = field(default_factory=list)
    joints: list[str] = field(default_factory=list)
    names: PartNames = field(default_factory=PartNames)

    def __post_init__(self) -> None:
        self.model = self.compiled.model
        self.findings = self.compiled.findings
        self.shapes = shapes_of_geoms(self.compiled)

    # names ---------------------------------------------------------------------------------------

    def name(self, kind: str, given: str, instead: str, element: Element) -> str:
        """Choose the name of a part: the file's if a mechanism can have it."""
        if not given:
            return self.names.free(kind, instead)
        return self.names.choose(kind, given, self.findings.of(element), element)

    def _name_all(self) -> None:
        """Name bodies and joints: names of the file first, then those of parts without."""
        spec = self.compiled.spec
        kinds = (("body", spec.bodies, self.bodies), ("joint", spec.joints, self.joints))
        for kind, parts, names in kinds:
            self.names.reserve(kind, (part.name for part in parts))
            for number, part in enumerate(parts):
                element = self.compiled.element(part)
                if kind == "body" and number == 0:
                    names.append(GROUND.name)
                elif part.name and not self.names.fault(kind, part.name):
                    names.append(part.name)
                elif kind == "body":
                    names.append(self.name(kind, part.name, f"body{number}", element))
                else:
                    owner = self.bodies[int(self.model.jnt_bodyid[number])]
                    names.append(self.name(kind, part.name, owner, element))

    # adding --------------------------------------------------------------------------------------

    def add_all(self) -> None:
        """Add every body with its joints, in the order of the file."""
        self._name_all()
        for number in range(1, int(self.model.nbody)):
            self._add_body(number)
        for number in range(int(self.model.njnt)):
            self._add_forces(number)

    def _element(self, number: int) -> Element:
        return self.compiled.element(self.compiled.spec.bodies[number])

    def _add_body(self, number: int) -> None:
        model, name = self.model, self.bodies[number]
        parent = self.bodies[int(model.body_parentid[number])]
        first, count = int(model.body_jntadr[number]), int(model.body_jntnum[number])
        at, quaternion = np.array(model.body_pos[number]), np.array(model.body_quat[number])
        if model.body_gravcomp[number]:
            self.findings.leave_out(WEIGHT, self._element(number), name=name)
        if model.body_mocapid[number] >= 0:
            self.findings.leave_out(MOCAP, self._element(number), name=name)
        if not count:
            joint = self.names.free("joint", name)
            self._add_rigid(number)
            self.mechanism.add_joint(
                joint,
                Fixed(),
                parent=parent,
                child=name,
                at=cleaned(at),
                rotation=cleaned(quaternion),
            )
        for k in range(count):
            joint = self.joints[first + k]
            child = name
            if k < count - 1:
                child = self.names.free("body", f"{name}_{joint}")
                self.mechanism.add_body(child, mass=0.0, inertia=Inertia.point())
            else:
                self._add_rigid(number)
            self._add_joint(first + k, parent, child, at, quaternion)
            parent, at, quaternion = child, np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])

    def _add_joint(
        self, number: int, parent: str, child: str, at: np.ndarray, quaternion: np.ndarray
    ) -> None:
        """Add a joint whose frame has the axes of the body at the reference value."""
        model, name = self.model, self.joints[number]
        kind = int(model.jnt_type[number])
        if kind == FREE:
            self.mechanism.add_joint(name, Floating(), parent=parent, child=child)
            return
        point = np.array(model.jnt_pos[number]) if kind != SLIDE else np.zeros(3)
        axis = np.array(cleaned(model.jnt_axis[number]))
        reference = float(model.qpos0[model.jnt_qposadr[number]]) if kind != BALL else 0.0
        placed: dict[str, Any] = {
            "at": cleaned(at + from_quaternions(quaternion) @ point),
            "rotation": cleaned(quaternion),
            "child_at": cleaned(point + axis * reference if kind == SLIDE else point),
        }
        if kind == HINGE and reference:
            half = reference / 2
            placed["child_rotation"] = cleaned([np.cos(half), *(np.sin(half) * axis)])
        makers = {SLIDE: Prismatic, HINGE: Revolute}
        joint = makers[kind](tuple(axis.tolist())) if kind in makers else Spherical()
        self.mechanism.add_joint(name, joint, parent=parent, child=child, **placed)

    def _add_rigid(self, number: int) -> None:
        model, name = self.model, self.bodies[number]
        mass = float(model.body_mass[number])
        R = from_quaternions(model.body_iquat[number])
        tensor = R @ np.diag(model.body_inertia[number]) @ R.T
        size = float(np.abs(tensor).max())
        entries = tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        xx, yy, zz, xy, xz, yz = cleaned(entries, size)
        ideal = bool(min(model.body_inertia[number]) <= 0.0)
        inertia = Inertia(xx, yy, zz, xy, xz, yz, ideal=ideal)
        if inertia.is_point(mass):
            inertia = Inertia.point()
        else:
            element = self._element(number)
            inertia = self.findings.of(element, name).physical(element, inertia)
        com = cleaned(model.body_ipos[number]) if mass else (0.0, 0.0, 0.0)
        shapes = self.shapes.get(number)
        self.mechanism.add_body(name, mass=mass, com=com, inertia=inertia, shape=shapes)

    # what acts in joints -------------------------------------------------------------------------

    def _add_forces(self, number: int) -> None:
        """Add springs and dampers of a joint, and note what it has besides."""
        model, name = self.model, self.joints[number]
        element = self.compiled.element(self.compiled.spec.joints[number])
        kind, dof = int(model.jnt_type[number]), int(model.jnt_dofadr[number])
        address = int(model.jnt_qposadr[number])
        self._add_laws(number, element)
        if model.jnt_actfrclimited[number]:
            self.findings.leave_out(FORCE_LIMITS, element, name=name)
        no_dampers = self.compiled.disabled("DAMPER", "PASSIVE")
        no_springs = self.compiled.disabled("SPRING", "PASSIVE")
        damping = 0.0 if no_dampers else float(model.dof_damping[dof])
        stiffness = 0.0 if no_springs else float(model.jnt_stiffness[number])
        damping = self.not_negative(damping, element, "damping", name)
        stiffness = self.not_negative(stiffness, element, "stiffness", name)
        if is_given(model, "dof_dampingpoly", dof):
            self.findings.leave_out(DAMPERS, element, name=name)
        if damping > 0:
            for speed in SPEEDS.get(kind, ("",)):
                full = f"{name}.{speed}" if speed else name
                damper = self.names.free("spring", full)
                self.mechanism.add_damper(damper, full, coefficient=damping)
        fields = ("jnt_stiffnesspoly", "jnt_springyield")
        if any(is_given(model, field, number) for field in fields) or (
            stiffness > 0 and kind in (FREE, BALL)
        ):
            self.findings.leave_out(SPRINGS, element, name=name)
        elif stiffness > 0:
            rest = float(model.qpos_spring[address])
            spring = self.names.free("spring", f"{name}.spring")
            self.mechanism.add_spring(spring, name, stiffness=stiffness, rest=rest)

    def _add_laws(self, number: int, element: Element) -> None:
        """Add stops and dry friction of a joint where they are asked for, and note the others."""
        model, name, asked = self.model, self.joints[number], self.compiled.contacts
        single = int(model.jnt_type[number]) in (SLIDE, HINGE)
        loss = float(model.dof_frictionloss[int(model.jnt_dofadr[number])])
        if model.jnt_limited[number]:
            low, high = (float(x) for x in model.jnt_range[number])
            if self.compiled.disabled("CONSTRAINT", "LIMIT"):
                self.findings.leave_out(LIMITS, element, "(switched off)", name)
            elif single and "stops" in asked:
                self.mechanism.change_joint(name, stops=(low, high))
                note_softness(self.compiled, "jnt", number, element, name)
            else:
                self.findings.leave_out(UNREAD_STOPS if single else LIMITS, element, name=name)
        if loss > 0:
            if self.compiled.disabled("CONSTRAINT", "FRICTIONLOSS"):
                self.findings.leave_out(DRY_FRICTION, element, "(switched off)", name)
            elif single and "friction" in asked:
                self.mechanism.change_joint(name, friction=loss)
                dof = int(model.jnt_dofadr[number])
                note_softness(self.compiled, "dof", dof, element, name)
            else:
                what = UNREAD_FRICTION if single else DRY_FRICTION
                self.findings.leave_out(what, element, name=name)

    def not_negative(self, value: float, element: Element, what: str, name: str) -> float:
        """Return a number; one below zero is left out, and zero instead of it."""
        if value < 0:
            self.findings.leave_out(NEGATIVE, element, f"({what} {value:g})", name)
        return max(value, 0.0)

    def set_home(self, qpos: np.ndarray) -> None:
        """Set the home configuration to one of MuJoCo's."""
        home: dict[str, float] = {}
        for number, name in enumerate(self.joints):
            kind = int(self.model.jnt_type[number])
            start = int(self.model.jnt_qposadr[number])
            values = [float(x) for x in qpos[start : start + _WIDTH[kind]]]
            if kind in (SLIDE, HINGE):
                if values[0]:
                    home[name] = values[0]
                continue
            turn = np.array(values[-4:])
            turn = turn / (np.linalg.norm(turn) or 1.0)
            if turn.any():
                home |= {f"{name}.{q}": float(x) for q, x in zip(_TURN, turn, strict=True)}
            home |= {f"{name}.{c}": x for c, x in zip("xyz", values[:-4], strict=False)}
        self.mechanism.set_home(home)


def is_given(model: Any, field: str, number: int) -> bool:
    """Return whether a field that only newer versions of MuJoCo have is other than zero."""
    values = getattr(model, field, None)
    return values is not None and bool(np.any(values[number]))
