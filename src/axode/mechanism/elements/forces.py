"""What acts on a mechanism: motors, dampers, springs and wrenches from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Literal

from axode.mechanism.values.expressions import Expression, Scalar, as_scalar, numeric, shown
from axode.mechanism.values.geometry import Vector, take


@dataclass(frozen=True)
class Motor:
    """A motor's own numbers, wherever it is mounted.

    Args:
        limit: Largest torque or force it gives [N m or N]; None for no limit.
        gear: Turns of the motor to one of the joint; the joint sees gear times the torque.
        rotor_inertia: About the motor's own axis [kg m^2]; the joint sees gear^2 times it.
    """

    limit: Scalar | None = None
    gear: Scalar = 1.0
    rotor_inertia: Scalar = 0.0

    def __post_init__(self) -> None:
        take(self, as_scalar, "gear", "rotor_inertia")
        if self.limit is not None:
            take(self, as_scalar, "limit")

    def faults(self) -> Iterator[tuple[str, str]]:
        """Field and message of everything wrong."""
        if self.limit is not None and not numeric(self.limit) > 0:
            yield "limit", f"must be > 0, got {shown(self.limit)}"
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
