"""What acts on a mechanism, and what is measured: motors, dampers, springs, wrenches, measures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal

from axode.mechanism.values.expressions import Expression, Scalar, as_scalar, numeric, shown
from axode.mechanism.values.geometry import ORIGIN, Vector, take

# numbers of a motor that are positive where they are given
MOTOR_BOUNDS = (
    "limit",
    "continuous",
    "no_load_speed",
    "torque_constant",
    "resistance",
    "inductance",
    "voltage",
)
MOTOR_NEEDS = {
    "resistance": "torque_constant",
    "inductance": "resistance",
    "voltage": "torque_constant",
}


@dataclass(frozen=True)
class Motor:
    """A motor's own numbers, wherever it is mounted.

    Torques and speeds are those of the motor's own shaft, before the gear. Those of a motor that
    slides its joint are forces [N] and speeds [m/s], where its gear is 1.

    Args:
        limit: Largest torque or force it gives [N m or N]; None for no limit.
        gear: Turns of the motor to one of the joint; the joint sees gear times the torque.
        rotor_inertia: About the motor's own axis [kg m^2]; the joint sees gear^2 times it.
        continuous: Torque that it may give for any length of time, by its heat [N m].
        no_load_speed: Speed at which it has no torque left [rad/s]; the torque it can give falls
            from the limit at rest along a straight line, unless a winding says more.
        efficiency: Part of the power that the gear passes on, in either direction; the equations
            have an ideal gear, `run.motors` and `ax.motors.law` the losses.
        torque_constant: Torque per current [N m/A], and voltage per speed [V s/rad].
        resistance, inductance: Those of the winding [ohm, H].
        voltage: Largest voltage of its supply [V].
    """

    limit: Scalar | None = None
    gear: Scalar = 1.0
    rotor_inertia: Scalar = 0.0
    continuous: Scalar | None = None
    no_load_speed: Scalar | None = None
    efficiency: Scalar = 1.0
    torque_constant: Scalar | None = None
    resistance: Scalar | None = None
    inductance: Scalar | None = None
    voltage: Scalar | None = None

    def __post_init__(self) -> None:
        given = [f.name for f in fields(self) if getattr(self, f.name) is not None]
        take(self, as_scalar, *given)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Field and message of everything wrong."""
        for name in MOTOR_BOUNDS:
            bound = getattr(self, name)
            if bound is not None and not numeric(bound) > 0:
                yield name, f"must be > 0, got {shown(bound)}"
        if not 0 < numeric(self.efficiency) <= 1:
            yield "efficiency", f"must be > 0 and at most 1, got {shown(self.efficiency)}"
        for name, needed in MOTOR_NEEDS.items():
            if getattr(self, name) is not None and getattr(self, needed) is None:
                yield name, f"says nothing without {needed}"
        if not (math.isfinite(numeric(self.gear)) and numeric(self.gear) != 0):
            yield "gear", f"must be a number other than 0, got {shown(self.gear)}"
        if not 0 <= numeric(self.rotor_inertia) < math.inf:
            yield "rotor_inertia", f"must be >= 0 kg m^2, got {shown(self.rotor_inertia)}"


@dataclass(frozen=True)
class Drive:
    """A motor on a joint: torque on the child, reaction on the parent.

    `coordinate` names the joint, or one speed of a joint that has several.
    """

    name: str
    motor: Motor
    coordinate: str
    input: str | None = None  # the name of its input, else motor.torque or motor.force


@dataclass(frozen=True)
class JointDamper:
    """Viscous friction on a joint: -coefficient times its speed [N m s/rad or N s/m]."""

    name: str
    coordinate: str
    coefficient: Scalar


@dataclass(frozen=True)
class JointSpring:
    """A spring on a joint: -stiffness times (coordinate - rest)."""

    name: str
    coordinate: str
    stiffness: Scalar
    rest: Scalar


@dataclass(frozen=True)
class Strut:
    """A massless spring and damper between a point of one body and a point of another."""

    name: str
    parent: str
    child: str
    at: Vector
    child_at: Vector
    stiffness: Scalar
    rest: Scalar
    damping: Scalar


@dataclass(frozen=True)
class Wrench:
    """A moment and a force from outside at a point of a body: six inputs.

    `frame` is the frame of the six components: the world's or the body's.
    """

    name: str
    body: str
    at: Vector
    frame: Literal["world", "body"]

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of its six inputs, moment first, then force."""
        return tuple(f"{self.name}.{c}" for c in ("mx", "my", "mz", "fx", "fy", "fz"))


@dataclass(frozen=True)
class Prescribed:
    """A coordinate that follows a function of time; the force that makes it do so is an output."""

    coordinate: str
    motion: Expression | float


def negative_constants(element: JointDamper | JointSpring | Strut) -> Iterator[tuple[str, str]]:
    """Field and message of every stiffness or damping below zero."""
    for entry in fields(element):
        if entry.name in ("coefficient", "stiffness", "damping", "rest"):
            constant = getattr(element, entry.name)
            value = numeric(constant)
            if not math.isfinite(value):
                yield entry.name, "must be finite"
            elif value < 0 and entry.name != "rest":
                yield entry.name, f"must be >= 0, got {shown(constant)}"


# kind: (suffixes of the names it gives, units, whether it needs speeds)
KINDS: dict[str, tuple[tuple[str, ...], str, bool]] = {
    "position": ((".x", ".y", ".z"), "m", False),
    "velocity": ((".vx", ".vy", ".vz"), "m/s", True),
    "distance": (("",), "m", False),
    "roll": (("",), "rad", False),
    "pitch": (("",), "rad", False),
    "yaw": (("",), "rad", False),
    "roll_rate": (("",), "rad/s", True),
    "pitch_rate": (("",), "rad/s", True),
    "yaw_rate": (("",), "rad/s", True),
    "surge": (("",), "m/s", True),
    "sway": (("",), "m/s", True),
    "heave": (("",), "m/s", True),
}


@dataclass(frozen=True)
class Measure:
    """A named quantity of the state.

    Args:
        name: What it is called; a position is three: `name.x`, `name.y`, `name.z`.
        kind: One of `KINDS`, or "function".
        body, at: The body and the point of it that is meant [m].
        other, other_at: The far end of a distance.
        function: For "function": called once with the state's symbols.
        unit: Unit of a function's value.
    """

    name: str
    kind: str
    body: str = ""
    at: Vector = ORIGIN
    other: str = "ground"
    other_at: Vector = ORIGIN
    function: Callable[[Any], Any] | None = None
    unit: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its components."""
        suffixes = KINDS[self.kind][0] if self.kind in KINDS else ("",)
        return tuple(self.name + suffix for suffix in suffixes)
