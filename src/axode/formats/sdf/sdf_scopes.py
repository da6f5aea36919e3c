"""Frames of an SDF file: what names mean in a model, and where frames are in each other.

A model is a scope with frames of its own: its links, joints, frames and nested models. Poses are
resolved within a scope, and models are placed in the scope around them. What the elements are to a
mechanism, and their numbers, switches and poses, stands first.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from axode.formats.xml.reading import (
    FLUID,
    LIMITS,
    PICTURES,
    PLUGINS,
    SENSORS,
    Findings,
    Numbers,
    Owner,
    cleaned,
    close_to,
    exact_angle,
    matrix,
)
from axode.formats.xml.xml_tree import Element
from axode.mechanism.values.geometry import NO_ROTATION, snap
from axode.numerics.rotations import RigidPose
from axode.numerics.tolerances import FOUR_DIGITS, SUM_ROUNDING

# what a mechanism cannot hold
CONTACTS = "contacts of collision shapes (add_contact lets a body roll)"
SOLVERS = "settings and data of other programs"
SCENERY = "scenery: static models, which are part of the ground, and actors"
UNREAD_SURFACE = "friction against turning on the spot, and softness of contacts"
UNKNOWN = "elements that are not understood"
MISSING = "models that are not in the folder (load(..., folder=...) allows another)"
GENERATED = "generated and attached parts, and saved states"
WEIGHTLESS = "links without weight, beside others that have it"
MOVED = "links that other programs move (kinematic)"
BUSHINGS = "bushings and other forces between links (add_spring, add_damper)"
GEARBOXES = "gearboxes that relate no two hinges on their reference body"

# How the elements inside each kind of element are treated: "" for those that are read.
WORLD_PARTS = {
    **dict.fromkeys(("model", "include", "frame", "joint", "gravity", "wind"), ""),
    **dict.fromkeys(("light", "scene", "gui", "audio"), PICTURES),
    **dict.fromkeys(("physics", "atmosphere", "magnetic_field", "spherical_coordinates"), SOLVERS),
    **dict.fromkeys(("actor", "road"), SCENERY),
    **dict.fromkeys(("population", "state"), GENERATED),
    "plugin": PLUGINS,
}
MODEL_PARTS = {
    **dict.fromkeys(("link", "joint", "frame", "model", "include", "pose", "static"), ""),
    **dict.fromkeys(("drake:joint", "drake:ball_constraint"), ""),
    **dict.fromkeys(("self_collide", "allow_auto_disable", "collision_filter"), SOLVERS),
    **dict.fromkeys(("drake:collision_filter_group", "drake:ignored_collision_filter"), CONTACTS),
    "drake:linear_bushing_rpy": BUSHINGS,
    "enable_wind": FLUID,
    "gripper": GENERATED,
    "plugin": PLUGINS,
}
LINK_PARTS = {
    **dict.fromkeys(("pose", "inertial", "visual", "gravity", "kinematic", "velocity_decay"), ""),
    **dict.fromkeys(("light", "projector", "particle_emitter"), PICTURES),
    **dict.fromkeys(("audio_sink", "audio_source", "battery", "must_be_base_link"), SOLVERS),
    **dict.fromkeys(("enable_wind",), FLUID),
    **dict.fromkeys(("collision", "self_collide"), CONTACTS),
    "sensor": SENSORS,
}
JOINT_PARTS = {
    **dict.fromkeys(("parent", "child", "pose", "axis", "axis2", "thread_pitch"), ""),
    **dict.fromkeys(("screw_thread_pitch", "gearbox_ratio", "gearbox_reference_body"), ""),
    **dict.fromkeys(("drake:rotor_inertia", "drake:gear_ratio", "drake:mimic"), ""),
    **dict.fromkeys(("drake:parent", "drake:child", "drake:damping"), ""),
    **dict.fromkeys(("physics", "drake:controller_gains"), SOLVERS),
    "sensor": SENSORS,
}
AXIS_PARTS = dict.fromkeys(("xyz", "dynamics", "limit", "mimic", "use_parent_model_frame"), "")
DYNAMICS_PARTS = dict.fromkeys(("damping", "friction", "spring_reference", "spring_stiffness"), "")
LIMIT_PARTS = {
    **dict.fromkeys(("lower", "upper", "effort", "velocity"), ""),
    **dict.fromkeys(("stiffness", "dissipation"), SOLVERS),
    "drake:acceleration": LIMITS,
}
SWITCHES = ("enable_wind", "self_collide", "allow_auto_disable", "must_be_base_link")

_SWITCHED = {"true": True, "1": True, "false": False, "0": False}
UNLIMITED = 1e16  # as older versions write infinity


IDENTITY = RigidPose(np.eye(3), np.zeros(3))
COUNTED = (CONTACTS, SCENERY, SOLVERS, PICTURES)  # what is left out and is no loss


def position(pose: RigidPose) -> Numbers:
    """Position of a frame, without what rounding leaves of zeros."""
    return cleaned(pose.p, 1.0)


def orientation(pose: RigidPose) -> Any:
    """Rotation of a frame as a mechanism holds it."""
    if np.abs(pose.R - np.eye(3)).max() <= SUM_ROUNDING:
        return NO_ROTATION
    return tuple(tuple(snap(float(x)) + 0.0 for x in row) for row in pose.R)  # type: ignore[operator]


def joint_frame(pose: RigidPose, prefix: str = "") -> dict[str, Any]:
    """Arguments that place a joint's frame in its parent, or, with "child_", in its child."""
    return {f"{prefix}at": position(pose), f"{prefix}rotation": orientation(pose)}


@dataclass(frozen=True)
class SdfOwner(Owner):
    """The link, joint, frame or model that elements belong to."""

    def leave_out(self, what: str, element: Element, detail: str = "") -> None:
        """Note an element as something that a mechanism cannot hold."""
        kind = element.tag
        name = element.attributes.get("name", "")
        if kind not in (self.kind, "link", "joint", "model") and self.name:
            detail = detail or (f"(of {self.kind} {self.name})" if self.kind else "")
        self.findings.leave_out(what, element, detail, self.name if kind == self.kind else name)

    def sort(self, element: Element, parts: dict[str, str]) -> None:
        """Leave out what is inside an element and not read, by its kind."""
        for child in element.children:
            what = parts.get(child.tag, UNKNOWN)
            if not what or (child.tag in SWITCHES and not self.flag(child)):
                continue
            detail = ""
            if what == UNKNOWN:
                close = close_to(child.tag, tuple(parts))
                detail = f"(did you mean <{close}>?)" if close else ""
            self.leave_out(what, child, detail)

    # values --------------------------------------------------------------------------------------

    def finite(self, element: Element, usual: Numbers, field: str = "") -> Numbers:
        """Numbers in the text of an element, as many as there usually are."""
        return self.parse(element, field or element.tag, element.text, usual)

    def value(
        self, parent: Element | None, tag: str, usual: float, *, bounded: bool = True
    ) -> float:
        """The number in a child of an element; the usual one if there is none."""
        child = parent.first(tag) if parent else None
        if child is None:
            return usual
        return self.parse(child, tag, child.text, (usual,), bounded=bounded)[0]

    def vector(self, parent: Element | None, tag: str, usual: Numbers) -> Numbers:
        """Three numbers in a child of an element."""
        child = parent.first(tag) if parent else None
        return usual if child is None else self.finite(child, usual)

    def flag(self, element: Element | None) -> bool:
        """Return whether the text of an element switches something on."""
        if element is None:
            return False
        switched = _SWITCHED.get(element.text.lower())
        if switched is None:
            self.report(element, element.tag, f"expected true or false, got '{element.text[:60]}'")
        return bool(switched)

    def read_pose(self, element: Element | None) -> RigidPose:
        """The pose that an element holds; none is the identity."""
        if element is None or not element.text:
            return IDENTITY
        self.only(element, "relative_to", "frame", "degrees", "rotation_format")
        form = element.attributes.get("rotation_format", "euler_rpy")
        degrees = element.attributes.get("degrees", "false").lower()
        if form not in ("euler_rpy", "quat_xyzw") or degrees not in _SWITCHED:
            message = "rotation_format is euler_rpy or quat_xyzw, and degrees is true or false"
            self.report(element, "pose", message)
            return IDENTITY
        known = self.count()
        values = self.finite(element, (0.0,) * (6 if form == "euler_rpy" else 7), "pose")
        if self.count() > known:
            return IDENTITY
        turn = self._quaternion(element, values) if form == "quat_xyzw" else values[3:]
        if form == "euler_rpy":
            turn = tuple(map(exact_angle, element.text.split()[3:]))
            if _SWITCHED[degrees]:
                turn = tuple(math.radians(angle) for angle in values[3:])
        return RigidPose(matrix(turn), np.array(values[:3]))

    def _quaternion(self, element: Element, values: Numbers) -> Numbers:
        """The quaternion w, x, y, z of seven numbers."""
        x, y, z, w = values[3:]
        length = math.hypot(x, y, z, w)
        if not 0.0 < length < math.inf:
            self.report(element, "pose", "the quaternion x, y, z, w must have length 1, got 0")
            return (1.0, 0.0, 0.0, 0.0)
        if abs(length - 1.0) > FOUR_DIGITS:
            self.note(element, "pose", f"its quaternion has length {length:.6g}", "normalized")
        return (w / length, x / length, y / length, z / length)


SELF = "__model__"
WORLD = "world"
BETWEEN = "::"


@dataclass(eq=False)
class SdfFrame:
    """A link, a joint, a frame, or (with kind "model" or "world") the frame of a scope itself."""

    scope: ModelScope
    kind: str
    name: str
    element: Element

    @property
    def is_scope(self) -> bool:
        """Return whether this is the frame of its scope."""
        return self is self.scope.own

    @property
    def full_name(self) -> str:
        """Name with those of the models around it."""
        prefix = self.scope.path
        if self.is_scope:
            return prefix or self.name
        return f"{prefix}{BETWEEN}{self.name}" if prefix else self.name


@dataclass(eq=False)
class ModelScope:
    """A model, or the world.

    Attributes:
        element: Its element.
        parent: The scope around it; None for the outermost.
        placed: The element with its pose: itself, or the `<include>` that brings it.
        version: Version of the file that it stands in.
        static: Whether it is part of the ground.
        merged: Whether its parts belong to the scope around it.
        is_prefix: Whether names of its parts begin with its name.
    """

    element: Element
    name: str
    parent: ModelScope | None
    placed: Element
    version: tuple[int, int]
    static: bool = False
    merged: bool = False
    is_prefix: bool = True
    frames: dict[str, SdfFrame] = field(default_factory=dict)
    scopes: list[ModelScope] = field(default_factory=list)

    def __post_init__(self) -> None:
        kind = "world" if self.parent is None else "model"
        self.own = SdfFrame(self, kind, self.name, self.element)

    @property
    def is_world(self) -> bool:
        """Return whether this is the outermost scope."""
        return self.parent is None

    @property
    def path(self) -> str:
        """Names of the models around the parts of this one."""
        if self.parent is None:
            return ""
        around = self.parent.path
        if self.merged or not self.is_prefix:
            return around
        return f"{around}{BETWEEN}{self.name}" if around else self.name

    def all_scopes(self) -> Iterator[ModelScope]:
        """This scope and those inside it, in the order of the file."""
        waiting = [self]
        while waiting:
            scope = waiting.pop()
            yield scope
            waiting.extend(reversed(scope.scopes))

    def of_kind(self, kind: str) -> Iterator[SdfFrame]:
        """Its own links, joints or frames."""
        return (f for f in self.frames.values() if f.kind == kind and f.scope is self)

    def lookup(self, name: str) -> SdfFrame | None:
        """The frame that a name means here; None if there is none."""
        if name == (WORLD if self.is_world else SELF):
            return self.own
        if name in self.frames:
            return self.frames[name]
        frames, scopes = self._visible
        if name in frames:
            return frames[name]
        at = name.find(BETWEEN)
        while at >= 0:
            for scope in scopes.get(name[:at], ()):
                found = scope.lookup(name[at + len(BETWEEN) :])
                if found:
                    return found
            at = name.find(BETWEEN, at + 1)
        return None

    @cached_property
    def _visible(self) -> tuple[dict[str, SdfFrame], dict[str, list[ModelScope]]]:
        """Frames of merged models by name, and models whose names stand before those inside."""
        frames: dict[str, SdfFrame] = {}
        scopes: dict[str, list[ModelScope]] = {}
        for scope in self.scopes:
            if not scope.merged:
                scopes.setdefault(scope.name, []).append(scope)
                continue
            inner, below = scope._visible
            for name, frame in chain(scope.frames.items(), inner.items()):
                frames.setdefault(name, frame)
            for name, found in below.items():
                scopes.setdefault(name, []).extend(found)
        return frames, scopes

    def known(self) -> list[str]:
        """Names that mean something here."""
        merged = [name for scope in self.scopes if scope.merged for name in scope.known()[1:]]
        return [self.own.name if self.is_world else SELF, *self.frames, *merged]


_Key: TypeAlias = SdfFrame | ModelScope


@dataclass
class FrameResolver:
    """Resolves poses and attachments; what cannot be resolved is reported once.

    Attributes:
        poses: Frames in their scope, and scopes in the scope around them.
    """

    findings: Findings
    poses: dict[_Key, RigidPose] = field(default_factory=dict)
    attached: dict[SdfFrame, SdfFrame | None] = field(default_factory=dict)
    reported: set[tuple[int, str]] = field(default_factory=set)

    def owner(self, frame: SdfFrame) -> SdfOwner:
        """Where faults of a frame are kept."""
        return SdfOwner(frame.element.tag, frame.full_name, self.findings)

    def find(
        self, scope: ModelScope, name: str, owner: SdfOwner, element: Element, field: str
    ) -> SdfFrame:
        """The frame of a name; an unknown one is reported, and is the scope's own."""
        found = scope.lookup(name)
        if found is None:
            if (id(element), field) not in self.reported:
                self.reported.add((id(element), field))
                hint = owner.hint("name", name, scope.known())
                owner.report(element, field, f"unknown frame '{name}'. {hint}")
            return scope.own
        return found

    # poses ---------------------------------------------------------------------------------------

    def in_world(self, frame: SdfFrame) -> RigidPose:
        """Where a frame is in the world, as the file places it."""
        return self._within(frame, None)

    def relative(self, frame: SdfFrame, other: SdfFrame) -> RigidPose:
        """Where a frame is in another."""
        return self.in_world(other).inverse() @ self.in_world(frame)

    def placed(self, element: Element, frame: SdfFrame, owner: SdfOwner) -> RigidPose:
        """Pose in a link's frame of something with a `<pose>` that may name another frame."""
        given = element.first("pose")
        pose = owner.read_pose(given)
        name = _named_base(given)
        if given is None or not name:
            return pose
        base = self.find(frame.scope, name, owner, given, "relative_to")
        return self.relative(base, frame) @ pose

    def _within(self, frame: SdfFrame, scope: ModelScope | None) -> RigidPose:
        """A frame in a scope around it; in the world for None."""
        total = IDENTITY
        for key in self._chain(frame, scope):
            self._resolve(key)
            total = self.poses[key] @ total
        return total

    def _chain(self, frame: SdfFrame, scope: ModelScope | None) -> list[_Key]:
        """What must be known of a frame in a scope, from the inside out."""
        keys: list[_Key] = [] if frame.is_scope else [frame]
        around: ModelScope | None = frame.scope
        while around is not None and around is not scope and around.parent is not None:
            keys.append(around)
            around = around.parent
        return keys

    def _resolve(self, key: _Key) -> None:
        """Compute a pose after those that it needs, without recursion."""
        waiting, under_way = [key], {key}
        while waiting:
            top = waiting[-1]
            if top in self.poses:
                under_way.discard(waiting.pop())
                continue
            missing = [k for k in self._needed(top) if k not in self.poses]
            ring = [k for k in missing if k in under_way]
            if ring:
                self._report_ring(top, waiting[waiting.index(ring[0]) :])
                self.poses[top] = IDENTITY
            elif missing:
                waiting.append(missing[0])
                under_way.add(missing[0])
            else:
                self.poses[top] = self._pose(top)

    def _report_ring(self, key: _Key, ring: list[_Key]) -> None:
        frame = key.own if isinstance(key, ModelScope) else key
        names = [(k.own if isinstance(k, ModelScope) else k).full_name for k in ring]
        listed = ", ".join(dict.fromkeys(names[:10])) + (", ..." if len(names) > 10 else "")
        message = f"poses are relative to each other in a ring: {listed}"
        self.owner(frame).report(frame.element, "relative_to", message)

    def _base(self, key: _Key) -> tuple[SdfFrame, ModelScope, Element | None]:
        """The frame that a pose is relative to, the scope of names, and the pose's element."""
        if isinstance(key, ModelScope):
            scope, frame = key.parent, key.own
            given = key.placed.first("pose") or key.element.first("pose")
            usual = ""
        else:
            scope, frame = key.scope, key
            given = key.element.first("pose")
            usual = _usual_base(key)
        assert scope is not None
        name = _named_base(given) or usual
        if not name or (name == WORLD and scope.is_world):
            return scope.own, scope, given
        base = self.find(scope, name, self.owner(frame), given or frame.element, "relative_to")
        return base, scope, given

    def _needed(self, key: _Key) -> list[_Key]:
        base, scope, _ = self._base(key)
        needed = self._chain(base, scope)
        if isinstance(key, ModelScope):
            needed += self._chain(self._placement(key), key)
        return needed

    def _placement(self, scope: ModelScope) -> SdfFrame:
        """The frame of a model that its pose places, its own unless given."""
        element = scope.placed.first("placement_frame")
        name = element.text if element else scope.element.attributes.get("placement_frame", "")
        if not name:
            return scope.own
        owner = self.owner(scope.own)
        return self.find(scope, name, owner, element or scope.element, "placement_frame")

    def _pose(self, key: _Key) -> RigidPose:
        base, scope, given = self._base(key)
        frame = key.own if isinstance(key, ModelScope) else key
        pose = self._within(base, scope) @ self.owner(frame).read_pose(given)
        if isinstance(key, ModelScope):
            placed = self._placement(key)
            if placed is not key.own:
                pose = pose @ self._within(placed, key).inverse()
        return pose

    # attachments ---------------------------------------------------------------------------------

    def link_of(self, frame: SdfFrame) -> SdfFrame | None:
        """The link that a frame moves with; None for the ground, or if there is none."""
        seen: list[SdfFrame] = []
        at: SdfFrame | None = frame
        while at is not None and at.kind != "link" and at not in self.attached:
            if at in seen:
                names = ", ".join(f.full_name for f in seen[seen.index(at) :][:10])
                message = f"frames are attached to each other in a ring: {names}"
                self.owner(at).report(at.element, "attached_to", message)
                at = None
                break
            seen.append(at)
            at = self._carrier(at)
        link = self.attached.get(at, at) if at is not None else None
        self.attached |= dict.fromkeys(seen, link)
        return link

    def _carrier(self, frame: SdfFrame) -> SdfFrame | None:
        """What a frame is attached to directly."""
        scope, element = frame.scope, frame.element
        if frame.is_scope:
            return None if scope.is_world else self.canonical(scope)
        owner = self.owner(frame)
        if frame.kind == "joint":
            child = element.first("child")
            return self.find(scope, child.text if child else "", owner, child or element, "child")
        name = element.attributes.get("attached_to", "")
        return self.find(scope, name, owner, element, "attached_to") if name else scope.own

    def canonical(self, scope: ModelScope) -> SdfFrame | None:
        """The link that a model's frame moves with: the named one, or the first."""
        name = scope.element.attributes.get("canonical_link", "")
        if name:
            owner = self.owner(scope.own)
            found = self.find(scope, name, owner, scope.element, "canonical_link")
            if found.kind == "link":
                return found
        for inner in scope.all_scopes():
            first = next(inner.of_kind("link"), None)
            if first is not None:
                return first
        return None


def _named_base(pose: Element | None) -> str:
    """The frame that a pose names; version 1.6 and older call the attribute `frame`."""
    if pose is None:
        return ""
    return pose.attributes.get("relative_to") or pose.attributes.get("frame", "")


def _usual_base(frame: SdfFrame) -> str:
    """The frame that a pose is relative to unless it names one."""
    if frame.kind == "frame":
        return frame.element.attributes.get("attached_to", "")
    if frame.kind == "joint":
        child = frame.element.first("child") or frame.element.first("drake:child")
        return child.text if child else ""
    return ""
