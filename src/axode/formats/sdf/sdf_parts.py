"""Links and joints of an SDF file, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from axode.errors import suggest
from axode.formats.sdf.sdf_scopes import (
    AXIS_PARTS,
    DYNAMICS_PARTS,
    JOINT_PARTS,
    LIMIT_PARTS,
    LINK_PARTS,
    MOVED,
    SELF,
    UNKNOWN,
    UNLIMITED,
    UNREAD_SURFACE,
    WORLD,
    FrameResolver,
    ModelScope,
    SdfFrame,
    SdfOwner,
    orientation,
    position,
)
from axode.formats.xml.reading import (
    DRY_FRICTION,
    FLUID,
    LIMITS,
    MOMENTS,
    UNREAD_FRICTION,
    UNREAD_STOPS,
    Findings,
    Numbers,
    box,
    cleaned,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.elements.bodies import GROUND, Cylinder, Inertia, Mesh, Shape, Sphere
from axode.mechanism.elements.joints import (
    AbstractJoint,
    Fixed,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
)
from axode.mechanism.files.imported import Surface
from axode.mechanism.files.wheel_proposals import Geometry, LinkSolid
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import SUM_ROUNDING, TWO_ROUNDINGS

# links ----------------------------------------------------------------------------------


WATER = 1000.0  # [kg/m^3], the density of what has none
_SOLIDS = ("box", "cylinder", "sphere", "capsule", "ellipsoid", "cone")
_DEFAULT = "1 kg and 1 kg m^2 about each axis, the format's default"


@dataclass(frozen=True)
class SdfLink:
    """A link with all its numbers."""

    frame: SdfFrame
    owner: SdfOwner
    mass: float
    com: Numbers
    inertia: Inertia
    shapes: tuple[Shape, ...]
    has_weight: bool


@dataclass(frozen=True)
class LinkReader:
    """Reads one link."""

    frame: SdfFrame
    owner: SdfOwner
    frames: FrameResolver
    is_static: bool

    def read(self) -> SdfLink:
        """Read the link; parts that a mechanism cannot hold are noted."""
        element, owner = self.frame.element, self.owner
        owner.sort(element, LINK_PARTS)
        weight = element.first("gravity")
        if owner.flag(element.first("kinematic")) and not self.is_static:
            owner.leave_out(MOVED, element.first("kinematic") or element)
        decay = element.first("velocity_decay")
        rates = [owner.value(decay, name, 0.0) for name in ("linear", "angular")]
        if decay is not None and any(rates):
            owner.leave_out(FLUID, decay)
        mass, com, inertia = self._inertial(element.first("inertial"))
        has_weight = weight is None or owner.flag(weight)
        return SdfLink(self.frame, owner, mass, com, inertia, self._shapes(), has_weight)

    # inertia -------------------------------------------------------------------------------------

    def _inertial(self, inertial: Element | None) -> tuple[float, Numbers, Inertia]:
        owner = self.owner
        if inertial is None:
            if not self.is_static:
                owner.note(self.frame.element, "", "has no <inertial>", _DEFAULT)
            return 1.0, (0.0, 0.0, 0.0), Inertia(1.0, 1.0, 1.0)
        parts = dict.fromkeys(("pose", "mass", "inertia", "density", "auto_inertia_params"), "")
        owner.sort(inertial, parts | {"fluid_added_mass": FLUID, "frame": UNKNOWN})
        if inertial.attributes.get("auto", "").lower() in ("true", "1"):
            return self._computed(inertial)
        given, tensor = inertial.first("pose"), inertial.first("inertia")
        pose = self.frames.placed(inertial, self.frame, owner) if given else owner.read_pose(None)
        mass = owner.value(inertial, "mass", 1.0)
        missing = [tag for tag in ("mass", "inertia") if inertial.first(tag) is None]
        if missing and not self.is_static:
            message = f"has no <{'> and no <'.join(missing)}>"
            owner.note(inertial, "inertial", message, "1 (SI units), the format's default")
        if tensor is not None:
            owner.sort(tensor, dict.fromkeys(MOMENTS, ""))
        usual = (1.0, 1.0, 1.0, 0.0, 0.0, 0.0)
        values = [owner.value(tensor, n, u) for n, u in zip(MOMENTS, usual, strict=True)]
        weight = inertial.first("mass") or inertial
        inertia = owner.inertia(weight, tensor or inertial, mass, values, pose.R)
        return mass, position(pose), inertia

    def _computed(self, inertial: Element) -> tuple[float, Numbers, Inertia]:
        """Mass, mass centre and inertia of the collision shapes, as solids."""
        owner, usual = self.owner, self.owner.value(inertial, "density", WATER)
        known, parts = owner.count(), []
        for collision in self.frame.element.all("collision"):
            density = owner.value(collision, "density", usual)
            parts += self._solid_inertia(collision, density)
        mass = sum(m for m, _, _ in parts)
        if not mass > 0:
            if owner.count() == known:
                message = 'auto="true" needs collision shapes with a volume'
                owner.report(inertial, "inertial", f"{message}; give <mass> and <inertia>")
            return 1.0, (0.0, 0.0, 0.0), Inertia(1.0, 1.0, 1.0)
        com = np.sum([m * p for m, p, _ in parts], axis=0) / mass
        total = np.zeros((3, 3))
        for m, p, tensor in parts:
            d = p - com
            total += tensor + m * ((d @ d) * np.eye(3) - np.outer(d, d))
        given = owner.value(inertial, "mass", mass)
        total *= given / mass
        xx, yy, zz, xy, xz, yz = total[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist()
        small = SUM_ROUNDING * (xx + yy + zz)
        xy, xz, yz = (0.0 if abs(x) < small else x for x in (xy, xz, yz))
        return given, cleaned(com, 1.0), Inertia(xx, yy, zz, xy, xz, yz)

    def _solid_inertia(
        self, collision: Element, density: float
    ) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Mass, mass centre and inertia of a solid in the link's frame; nothing for no solid."""
        geometry = collision.first("geometry")
        pose = self.frames.placed(collision, self.frame, self.owner)
        found = []
        for solid in geometry.children if geometry else ():
            if solid.tag == "empty":
                continue
            if solid.tag not in _SOLIDS:
                message = (
                    f'auto="true" is not computed for <{solid.tag}>; give <mass> and <inertia>'
                )
                self.owner.report(solid, "inertial", message)
                continue
            sizes = self._sizes(solid)
            volume, moments = _solid(solid.tag, sizes)
            tensor = pose.R @ np.diag(moments) @ pose.R.T * (density * volume)
            below = sizes[1] / 4 if solid.tag == "cone" else 0.0  # its mass centre
            found.append((density * volume, pose.p - pose.R[:, 2] * below, tensor))
        return found

    def _sizes(self, solid: Element) -> Numbers:
        owner = self.owner
        if solid.tag == "box":
            return owner.vector(solid, "size", (1.0, 1.0, 1.0))
        if solid.tag == "ellipsoid":
            return owner.vector(solid, "radii", (1.0, 1.0, 1.0))
        radius = owner.value(solid, "radius", 0.5 if solid.tag == "capsule" else 1.0)
        return radius, 0.0 if solid.tag == "sphere" else owner.value(solid, "length", 1.0)

    # shapes --------------------------------------------------------------------------------------

    def _shapes(self) -> tuple[Shape, ...]:
        """Shapes for pictures: those of the visuals, or else of the collisions."""
        reader = replace(self, owner=self.owner.aside("not drawn"))
        found: list[Shape] = []
        for tag in ("visual", "collision"):
            for element, solid in _solids_in(self.frame.element, tag):
                known = self.owner.count()
                pose = reader.frames.placed(element, self.frame, reader.owner)
                shape = reader._drawn(solid, pose)
                if shape and not any(shape.faults()) and self.owner.count() == known:
                    found.append(replace(shape, colour=reader._colour(element)))
            if found:
                break
        return tuple(found)

    def _colour(self, element: Element) -> Numbers | None:
        """Red, green and blue of what is drawn; None where the file gives none."""
        material = element.first("material")
        diffuse = material.first("diffuse") if material else None
        words = diffuse.text.split()[:3] if diffuse else []
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            return None
        return values if len(values) == 3 and all(0 <= x <= 1 for x in values) else None

    def _drawn(self, solid: Element, pose: RigidPose) -> Shape | None:
        at, R = position(pose), pose.R
        if solid.tag == "mesh":
            uri = solid.first("uri")
            scale = self.owner.vector(solid, "scale", (1.0, 1.0, 1.0))
            file = uri.text if uri else ""
            return Mesh(file, scale, at, orientation(pose)) if file.isprintable() else None
        if solid.tag not in ("box", "sphere", "cylinder", "capsule"):
            return None
        sizes = self._sizes(solid)
        if solid.tag == "sphere":
            return Sphere(sizes[0], at)
        if solid.tag in ("cylinder", "capsule"):
            return Cylinder(sizes[0], sizes[1], cleaned(R[:, 2], 1.0), at)
        return box(sizes, at, R, orientation(pose))

    def add_geometry(
        self, geometry: Geometry, body: str, floor: Surface | None = None, *, rubs: bool = False
    ) -> None:
        """Add the solids of the link, those that touch others first, and its planes.

        Args:
            geometry: Where to put them.
            body: The link's name in the mechanism; the ground's for scenery.
            floor: How the planes of the file rub.
            rubs: Whether to read how solids rub.
        """
        reader = replace(self, owner=replace(self.owner, findings=Findings()))
        reader = replace(reader, frames=replace(self.frames, findings=reader.owner.findings))
        link = self.frame.element
        for element, solid in (*_solids_in(link, "collision"), *_solids_in(link, "visual")):
            pose = reader.frames.placed(element, self.frame, reader.owner)
            if body == GROUND.name:
                pose = self.frames.in_world(self.frame) @ pose
            if solid.tag == "plane":
                normal = np.array(reader.owner.vector(solid, "normal", (0.0, 0.0, 1.0)))
                length = math.hypot(*normal)
                if 0 < length < math.inf:
                    up = cleaned(pose.R @ normal / length, 1.0)
                    geometry.planes.append((body, position(pose), up))
            elif body != GROUND.name:
                shape = reader._drawn(solid, pose)
                described = LinkSolid.of(body, shape) if shape else None
                if described is not None and not any(shape.faults()):  # type: ignore[union-attr]
                    if rubs and element.tag == "collision":
                        surface = self.surface(element)
                        described = replace(described, surface=_lesser(surface, floor))
                    geometry.solids.append(described)

    def surface(self, collision: Element) -> Surface:
        """How a collision rubs and rebounds; note what acts and is not read."""
        owner = self.owner.aside("left out")
        surface = collision.first("surface")
        friction = surface.first("friction") if surface else None
        ode = friction.first("ode") if friction else None
        bounce = surface.first("bounce") if surface else None
        mu, across = (max(owner.value(ode, tag, 1.0), 0.0) for tag in ("mu", "mu2"))
        if ode is not None and ode.first("mu2") is not None and across != mu:
            message = f"mu is {mu:g} and mu2 {across:g}"
            owner.note(ode, "mu2", message, "mu is used in both directions")
        turning = friction.first("torsional") if friction else None
        contact = surface.first("contact") if surface else None
        for part in (turning, contact):
            if part is not None:
                owner.leave_out(UNREAD_SURFACE, part)
        back = owner.value(bounce, "restitution_coefficient", 0.0)
        return Surface(min(mu, MOST_FRICTION), restitution=min(max(back, 0.0), 1.0))


MOST_FRICTION = 1e3  # files write 1e16 and more for what never slips


def _lesser(surface: Surface, floor: Surface | None) -> Surface:
    """How two surfaces rub on each other in Gazebo: by the lesser of their numbers."""
    if floor is None:
        return surface
    back = min(surface.restitution, floor.restitution)
    return Surface(min(surface.friction, floor.friction), restitution=back)


def _solids_in(link: Element, tag: str) -> Iterator[tuple[Element, Element]]:
    """Every visual or collision of a link with what its geometry holds."""
    for element in link.all(tag):
        geometry = element.first("geometry")
        for solid in geometry.children if geometry else ():
            yield element, solid


def _solid(kind: str, sizes: Numbers) -> tuple[float, Numbers]:
    """Volume of a solid, and its moments of inertia per mass."""
    if kind == "box":
        x, y, z = sizes
        return x * y * z, ((y * y + z * z) / 12, (x * x + z * z) / 12, (x * x + y * y) / 12)
    if kind == "ellipsoid":
        x, y, z = sizes
        volume = 4 / 3 * math.pi * x * y * z
        return volume, ((y * y + z * z) / 5, (x * x + z * z) / 5, (x * x + y * y) / 5)
    r, h = sizes
    if kind == "cone":
        across = 3 / 80 * (4 * r * r + h * h)
        return math.pi * r * r * h / 3, (across, across, 0.3 * r * r)
    tube, ball = math.pi * r * r * h, 4 / 3 * math.pi * r**3
    if kind == "cylinder":
        ball = 0.0
    volume = tube + ball
    if not volume > 0:
        return 0.0, (0.0, 0.0, 0.0)
    along = (tube * r * r / 2 + ball * 0.4 * r * r) / volume
    ends = 0.4 * r * r + h * h / 4 + 3 / 8 * h * r
    across = (tube * (h * h / 12 + r * r / 4) + ball * ends) / volume
    return volume, (across, across, along)


# joints ---------------------------------------------------------------------------------


AXES = {  # how many axes a joint of a type has
    "revolute": 1,
    "continuous": 1,
    "prismatic": 1,
    "screw": 1,
    "universal": 2,
    "revolute2": 2,
    "gearbox": 2,
    "ball": 0,
    "fixed": 0,
}
TYPES = tuple(AXES)
PLANAR = "planar"  # of a <drake:joint>
HINGES = ("revolute", "continuous")
TURN = 2 * math.pi
Z = (0.0, 0.0, 1.0)
BY_ITSELF = "the joint moves by itself"


@dataclass(frozen=True)
class SdfMimic:
    """What an axis follows: multiplier times the leader's position, plus offset."""

    element: Element
    leader: SdfFrame
    axis: str
    multiplier: float
    offset: float


@dataclass
class SdfAxis:
    """One axis of a joint and what acts on it; directions are in the joint's frame."""

    element: Element
    direction: Numbers
    damping: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    effort: float = 0.0
    friction: float = 0.0
    stops: tuple[float, float] | None = None
    mimic: SdfMimic | None = None
    is_locked: bool = False  # as files of old versions fix a joint
    is_led: bool = False  # whether another joint follows it, or a gearbox relates it

    @property
    def acts(self) -> bool:
        """Return whether something needs its coordinate."""
        forces = self.damping, self.stiffness, self.effort, self.friction
        acts = any(forces) or self.stops is not None
        return acts or self.mimic is not None or self.is_led


@dataclass
class SdfJoint:
    """A joint with all its numbers.

    Attributes:
        parent, child: Its links; None is the ground.
        on_parent, on_child: The joint's frame in each of them.
        world: The joint's frame in the world, as the file places it.
        rotor: Inertia that its motor has, on the joint's side.
        damps_speeds: Whether damping acts on several speeds together.
        must_cut: Whether the file asks that it closes a loop.
    """

    frame: SdfFrame
    owner: SdfOwner
    type: str
    parent: SdfFrame | None
    child: SdfFrame | None
    on_parent: RigidPose
    on_child: RigidPose
    world: RigidPose
    axes: list[SdfAxis]
    pitch: float = 0.0
    rotor: float = 0.0
    must_cut: bool = False
    gear_ratio: float = 1.0
    reference: SdfFrame | None = None
    damps_speeds: bool = False

    @property
    def element(self) -> Element:
        """Its element."""
        return self.frame.element

    @property
    def needs_coordinates(self) -> bool:
        """Return whether something acts on it, which a joint that closes a loop cannot have."""
        return bool(self.rotor) or any(axis.acts for axis in self.axes)

    def kind(self, *, reverse: bool = False) -> AbstractJoint:
        """The joint of a mechanism; from child to parent, its coordinates keep their values."""
        axes = [tuple(-x + 0.0 if reverse else x for x in axis.direction) for axis in self.axes]
        if self.type in HINGES:
            return Revolute(axes[0])
        if self.type == "prismatic":
            return Prismatic(axes[0])
        if self.type == "screw":
            return Screw(axes[0], self.pitch)
        if self.type in ("universal", "revolute2"):
            first, second = reversed(axes) if reverse else axes
            return Universal(first, second)
        if self.type == PLANAR:
            return Planar("-z" if reverse else "z")
        return Spherical() if self.type == "ball" else Fixed()


@dataclass
class SdfJointReader:
    """Reads one joint; joints that cannot be read are reported, and are None."""

    frames: FrameResolver
    frame: SdfFrame
    contacts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.owner = self.frames.owner(self.frame)
        self.scope: ModelScope = self.frame.scope

    def read(self) -> SdfJoint | None:
        """Read the joint with all its numbers."""
        element, owner = self.frame.element, self.owner
        owner.sort(element, JOINT_PARTS)
        kind = self._type()
        ends = [self._end(tag) for tag in ("parent", "child")]
        if not kind or any(end is None for end in ends):
            for axis in (*element.all("axis"), *element.all("axis2")):
                self._unit_vector(axis)
            return None
        parent, child = (self.frames.link_of(end) for end in ends if end)
        if parent is child:
            owner.report(element, "child", "a joint needs two different links")
            return None
        # Drake puts its own joints between the two frames, wherever these are
        own = [end for end in ends if end] if kind == PLANAR else [self.frame] * 2
        worlds = [self.frames.in_world(frame) for frame in own]
        axes = self._axes(kind)
        if any(axis.is_locked for axis in axes):
            kind, axes = "fixed", []
        joint = SdfJoint(
            self.frame,
            owner,
            kind,
            parent,
            child,
            self._in(parent, worlds[0]),
            self._in(child, worlds[1]),
            worlds[0],
            axes,
        )
        self._read_more(joint)
        return joint

    def _read_more(self, joint: SdfJoint) -> None:
        element, owner = self.frame.element, self.owner
        if joint.type == "screw":
            joint.pitch = self._pitch()
        if joint.type == "gearbox":
            joint.gear_ratio = owner.value(element, "gearbox_ratio", 1.0)
            body = element.first("gearbox_reference_body")
            name = body.text if body else ""
            at = body or element
            found = self.frames.find(self.scope, name, owner, at, "gearbox_reference_body")
            joint.reference = self.frames.link_of(found)
        gear = owner.value(element, "drake:gear_ratio", 1.0)
        joint.rotor = owner.value(element, "drake:rotor_inertia", 0.0) * gear * gear
        dampings = owner.vector(element, "drake:damping", (0.0, 0.0, 0.0))
        if joint.type == "ball":
            axes = [axis.first("dynamics") for axis in element.all("axis")]
            dampings = tuple(self._not_negative(dynamics, "damping") for dynamics in axes)
        joint.damps_speeds = joint.type in ("ball", PLANAR) and any(dampings)
        physics = element.first("physics")
        simbody = physics.first("simbody") if physics else None
        joint.must_cut = owner.flag(simbody.first("must_be_loop_joint")) if simbody else False

    def _in(self, link: SdfFrame | None, world: RigidPose) -> RigidPose:
        """The joint's frame in a link."""
        return world if link is None else self.frames.in_world(link).inverse() @ world

    def _type(self) -> str:
        kind = self.frame.element.attributes.get("type", "").lower()
        known = (PLANAR,) if self.frame.element.tag == "drake:joint" else TYPES
        if kind in known:
            return kind
        message = f"unknown type '{kind}'" if kind else "is missing"
        hint = suggest("type", kind, known)
        self.owner.report(self.frame.element, "type", f"{message}. {hint}")
        return ""

    def _end(self, tag: str) -> SdfFrame | None:
        """The frame of the parent or child; None if the file gives none that exists."""
        element, owner = self.frame.element, self.owner
        given = element.first(tag) or element.first(f"drake:{tag}")
        if given is None or not given.text:
            owner.report(given or element, tag, f"is missing; name a link: <{tag}>...</{tag}>")
            return None
        if given.text == WORLD:
            outermost = self.scope
            while outermost.parent is not None:
                outermost = outermost.parent
            if tag == "parent" or self.scope.is_world:
                return outermost.own
        faults = len(owner.findings.faults)
        found = self.frames.find(self.scope, given.text, owner, given, tag)
        if found.is_scope and found is self.scope.own and given.text not in (SELF, WORLD):
            return None  # reported as unknown
        return found if len(owner.findings.faults) == faults else None

    def _pitch(self) -> float:
        """Advance per angle [m/rad]; the older element has turned sign and is its inverse."""
        element, owner = self.frame.element, self.owner
        if element.first("screw_thread_pitch") is not None:
            return owner.value(element, "screw_thread_pitch", 1.0) / TURN
        old = element.first("thread_pitch")
        if old is None:
            owner.note(element, "", "has no <screw_thread_pitch>", "1 m per turn")
            return 1.0 / TURN
        value = owner.value(element, "thread_pitch", 1.0)
        if value == 0.0:
            owner.report(
                old, "thread_pitch", "must not be 0; <screw_thread_pitch> is in m per turn"
            )
            return 1.0
        return -1.0 / value

    # axes ----------------------------------------------------------------------------------------

    def _axes(self, kind: str) -> list[SdfAxis]:
        tags = ("axis", "axis2")[: AXES.get(kind, 0)]
        axes = []
        second = self.frame.element.first("axis2")
        if second is not None and len(tags) == 1:
            self.owner.leave_out(UNKNOWN, second)
        for tag in tags:
            element = self.frame.element.first(tag)
            if element is None:
                self.owner.note(self.frame.element, tag, f"has no <{tag}>", "0 0 1")
                element = Element(tag, {}, self.frame.element.line)
            axes.append(self._axis(element, kind))
        return axes

    def _axis(self, element: Element, kind: str) -> SdfAxis:
        owner = self.owner
        owner.sort(element, AXIS_PARTS)
        axis = SdfAxis(element, self._direction(element))
        dynamics, limit = element.first("dynamics"), element.first("limit")
        for part, known in ((dynamics, DYNAMICS_PARTS), (limit, LIMIT_PARTS)):
            if part is not None:
                owner.sort(part, known)
        axis.damping = self._not_negative(dynamics, "damping")
        axis.stiffness = self._not_negative(dynamics, "spring_stiffness")
        axis.rest = owner.value(dynamics, "spring_reference", 0.0)
        axis.friction = self._not_negative(dynamics, "friction")
        single = AXES[kind] == 1
        if axis.friction > 0 and not (single and "friction" in self.contacts):
            axis.friction = 0.0
            owner.leave_out(UNREAD_FRICTION if single else DRY_FRICTION, self.frame.element)
        aside = owner.aside("left out")
        effort = aside.value(limit, "effort", 0.0, bounded=False)
        axis.effort = math.inf if effort >= UNLIMITED else max(effort, 0.0)
        ends = [aside.value(limit, tag, math.inf, bounded=False) for tag in ("lower", "upper")]
        speed = aside.value(limit, "velocity", math.inf, bounded=False)
        limited = any(abs(x) < UNLIMITED for x in ends) and kind != "continuous"
        if limited and ends == [0.0, 0.0] and AXES[kind] == 1:
            axis.is_locked = True
            owner.note(limit or element, "limit", "leaves no motion", "the joint is fixed")
            return axis
        is_slow = 0 <= speed < UNLIMITED
        if limited and single and "stops" in self.contacts:
            low, high = (x if abs(x) < UNLIMITED else math.copysign(math.inf, x) for x in ends)
            low = -math.inf if limit is None or limit.first("lower") is None else low
            axis.stops = (low, high)
            limited = False
            if not low < high:
                axis.stops = None
                message = f"lower {low:g} is not below upper {high:g}, which leaves no motion"
                owner.note(limit or element, "limit", message, "no stops")
        elif limited and single and not is_slow:
            owner.leave_out(UNREAD_STOPS, self.frame.element)
            return axis
        if limited or is_slow:
            what = " and ".join(["positions"] * limited + ["speeds"] * is_slow)
            owner.leave_out(LIMITS, self.frame.element, f"({what})")
        return axis

    def _not_negative(self, parent: Element | None, tag: str) -> float:
        if parent is None:
            return 0.0
        value = self.owner.aside("left out").value(parent, tag, 0.0)
        return self.owner.not_negative(parent.first(tag) or parent, tag, value)

    def _direction(self, axis: Element) -> Numbers:
        """Unit vector in the joint's frame."""
        values = self._unit_vector(axis)
        base = self._expressed_in(axis, axis.first("xyz"))
        if base is not None:
            R = self.frames.in_world(self.frame).R.T @ self.frames.in_world(base).R
            values = R @ values
        return cleaned(values + 0.0, 1.0)

    def _unit_vector(self, axis: Element) -> np.ndarray:
        """Unit vector as the file gives it."""
        element = axis.first("xyz")
        if element is None:
            return np.array(Z)
        self.owner.only(element, "expressed_in")
        values = np.array(self.owner.finite(element, Z, f"{axis.tag} xyz"))
        length = math.hypot(*values)
        if not 0.0 < length < math.inf:
            message = "points nowhere; give a direction such as 0 0 1"
            self.owner.report(element, f"{axis.tag} xyz", message)
            return np.array(Z)
        return values / length if abs(length - 1.0) > TWO_ROUNDINGS else values

    def _expressed_in(self, axis: Element, xyz: Element | None) -> SdfFrame | None:
        """The frame whose axes a direction is in; None for the joint's own.

        Until version 1.4 this was the model's. Until 1.6 a switch decides where it is given.
        """
        name = xyz.attributes.get("expressed_in", "") if xyz else ""
        if name and xyz is not None:
            return self.frames.find(self.scope, name, self.owner, xyz, "expressed_in")
        switch = axis.first("use_parent_model_frame")
        version = self.scope.version
        if version > (1, 6):
            if switch is not None:
                self.owner.leave_out(UNKNOWN, switch)
            return None
        in_model = version <= (1, 4) if switch is None else self.owner.flag(switch)
        return self.scope.own if in_model else None

    # what follows --------------------------------------------------------------------------------

    def read_mimics(self, joint: SdfJoint) -> None:
        """Read what the axes of a joint follow."""
        for axis in joint.axes:
            given = axis.element.first("mimic")
            if given is not None:
                axis.mimic = self._mimic(given)
        given = self.frame.element.first("drake:mimic")
        if given is not None and joint.axes and joint.axes[0].mimic is None:
            joint.axes[0].mimic = self._mimic_of_drake(given)

    def _leader(self, element: Element) -> SdfFrame | None:
        name = element.attributes.get("joint", "")
        joints = [key for key, f in self.scope.frames.items() if f.kind == "joint"]
        found = self.scope.lookup(f"{name} joint") or self.scope.lookup(name)
        if found is None or found.kind != "joint" or found is self.frame:
            message = f"cannot follow joint '{name}'. {self.owner.hint('joint', name, joints)}"
            self.owner.note(element, "mimic", message, BY_ITSELF)
            return None
        return found

    def _mimic(self, element: Element) -> SdfMimic | None:
        leader, owner = self._leader(element), self.owner
        multiplier = owner.value(element, "multiplier", 1.0)
        offset = owner.value(element, "offset", 0.0)
        reference = owner.value(element, "reference", 0.0)
        if leader is None:
            return None
        which = element.attributes.get("axis", "axis")
        return SdfMimic(element, leader, which, multiplier, offset - multiplier * reference)

    def _mimic_of_drake(self, element: Element) -> SdfMimic | None:
        leader = self._leader(element)
        number = {n: self.owner.number(element, n, u, required=False) for n, u in _DRAKE_MIMIC}
        if leader is None:
            return None
        return SdfMimic(element, leader, "axis", number["multiplier"], number["offset"])


_DRAKE_MIMIC = (("multiplier", 1.0), ("offset", 0.0))
