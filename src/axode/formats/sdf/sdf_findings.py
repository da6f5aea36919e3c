"""What a reader of SDF files finds, and what it leaves out, by kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from axode.formats.mjcf.mjcf_findings import (
    DRY_FRICTION,
    FLUID,
    LIMITS,
    PICTURES,
    PLUGINS,
    SENSORS,
    MjcfFindings,
)

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
SPEED_DAMPING = "damping of joints with several speeds (add_damper takes one of them)"

__all__ = ["DRY_FRICTION", "FLUID", "LIMITS", "PICTURES", "PLUGINS", "SENSORS", "SdfFindings"]

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


@dataclass
class SdfFindings(MjcfFindings):
    """What is wrong with a file, what was done about it, and what a mechanism cannot hold."""

    counted: ClassVar = (CONTACTS, SCENERY, SOLVERS, PICTURES)
    refused: ClassVar = "what is listed with its line"
