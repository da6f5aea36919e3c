"""What the elements of an SDF file are to a mechanism, and their numbers, switches and poses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from axode.formats.xml.findings import (
    FLUID,
    LIMITS,
    PICTURES,
    PLUGINS,
    SENSORS,
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
