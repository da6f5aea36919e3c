"""Joints: which relative motions of two bodies are free, and what they are called.

A joint carries no placement: `Mechanism.add_joint` puts it on its two bodies. Its symbolic
behaviour stands in `axode.symbolic.tree.kinematics`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from axode.mechanism.values.expressions import Scalar, as_scalar
from axode.mechanism.values.geometry import AXES, as_vector, take


def _axis(default: str = "z") -> Any:
    """A unit vector, given as three numbers or as "x", "-y", ...; kept as three numbers."""
    return field(default=AXES[default])


@dataclass(frozen=True)
class AbstractJoint:
    """What every joint has: names for its coordinates and speeds, and directions.

    `coordinate_names` and `speed_names` are suffixes to the joint's own name; a joint with one
    coordinate gives it its own name.
    """

    coordinate_names: ClassVar[tuple[str, ...]] = ()
    speed_names: ClassVar[tuple[str, ...]] = ()
    coordinate_units: ClassVar[tuple[str, ...]] = ()
    speed_units: ClassVar[tuple[str, ...]] = ()
    closure_names: ClassVar[tuple[str, ...]] = ()
    closure_units: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        take(self, as_vector, *self.directions)

    @property
    def dof(self) -> int:
        """How many relative motions are free."""
        return len(self.speed_names)

    @property
    def directions(self) -> tuple[str, ...]:
        """The fields that are unit vectors."""
        return tuple(n for n in self.__dataclass_fields__ if n in ("axis", "second"))


@dataclass(frozen=True)
class Revolute(AbstractJoint):
    """Turns about `axis` [rad]."""

    axis: Any = _axis()
    coordinate_names: ClassVar = ("",)
    speed_names: ClassVar = ("rate",)
    coordinate_units: ClassVar = ("rad",)
    speed_units: ClassVar = ("rad/s",)
    closure_names: ClassVar = ("rx", "ry", "x", "y", "z")
    closure_units: ClassVar = ("rad", "rad", "m", "m", "m")


@dataclass(frozen=True)
class Prismatic(AbstractJoint):
    """Slides along `axis` [m]."""

    axis: Any = _axis()
    coordinate_names: ClassVar = ("",)
    speed_names: ClassVar = ("rate",)
    coordinate_units: ClassVar = ("m",)
    speed_units: ClassVar = ("m/s",)
    closure_names: ClassVar = ("rx", "ry", "rz", "x", "y")
    closure_units: ClassVar = ("rad", "rad", "rad", "m", "m")


@dataclass(frozen=True)
class Screw(AbstractJoint):
    """Turns about `axis` [rad] and advances by `pitch` [m/rad] times the angle."""

    axis: Any = _axis()
    pitch: Scalar = 0.0
    coordinate_names: ClassVar = ("",)
    speed_names: ClassVar = ("rate",)
    coordinate_units: ClassVar = ("rad",)
    speed_units: ClassVar = ("rad/s",)
    closure_names: ClassVar = ("rx", "ry", "advance", "x", "y")
    closure_units: ClassVar = ("rad", "rad", "m", "m", "m")

    def __post_init__(self) -> None:
        super().__post_init__()
        take(self, as_scalar, "pitch")


@dataclass(frozen=True)
class Cylindrical(AbstractJoint):
    """Turns about and slides along `axis`."""

    axis: Any = _axis()
    coordinate_names: ClassVar = ("angle", "slide")
    speed_names: ClassVar = ("angle_rate", "slide_rate")
    coordinate_units: ClassVar = ("rad", "m")
    speed_units: ClassVar = ("rad/s", "m/s")
    closure_names: ClassVar = ("rx", "ry", "x", "y")
    closure_units: ClassVar = ("rad", "rad", "m", "m")


@dataclass(frozen=True)
class Universal(AbstractJoint):
    """Turns about `axis` (fixed in the parent), then about `second` (fixed in the child)."""

    axis: Any = _axis("x")
    second: Any = _axis("y")
    coordinate_names: ClassVar = ("first", "second")
    speed_names: ClassVar = ("first_rate", "second_rate")
    coordinate_units: ClassVar = ("rad", "rad")
    speed_units: ClassVar = ("rad/s", "rad/s")
    closure_names: ClassVar = ("cross", "x", "y", "z")
    closure_units: ClassVar = ("rad", "m", "m", "m")


@dataclass(frozen=True)
class Spherical(AbstractJoint):
    """Turns freely about a point; orientation by a unit quaternion, no gimbal lock."""

    coordinate_names: ClassVar = ("qw", "qx", "qy", "qz")
    speed_names: ClassVar = ("wx", "wy", "wz")
    coordinate_units: ClassVar = ("", "", "", "")
    speed_units: ClassVar = ("rad/s", "rad/s", "rad/s")
    closure_names: ClassVar = ("x", "y", "z")
    closure_units: ClassVar = ("m", "m", "m")


@dataclass(frozen=True)
class Planar(AbstractJoint):
    """Moves in the plane normal to `axis`: x, y [m] and yaw [rad].

    The speeds are those of the moving body in its own axes: surge, sway and yaw rate.
    """

    axis: Any = _axis()
    coordinate_names: ClassVar = ("x", "y", "yaw")
    speed_names: ClassVar = ("surge", "sway", "yaw_rate")
    coordinate_units: ClassVar = ("m", "m", "rad")
    speed_units: ClassVar = ("m/s", "m/s", "rad/s")
    closure_names: ClassVar = ("rx", "ry", "z")
    closure_units: ClassVar = ("rad", "rad", "m")


@dataclass(frozen=True)
class Floating(AbstractJoint):
    """Free in space: a unit quaternion and a position [m].

    The speeds are the child's angular velocity and its origin's velocity in the child's axes.
    """

    coordinate_names: ClassVar = ("qw", "qx", "qy", "qz", "x", "y", "z")
    speed_names: ClassVar = ("wx", "wy", "wz", "vx", "vy", "vz")
    coordinate_units: ClassVar = ("", "", "", "", "m", "m", "m")
    speed_units: ClassVar = ("rad/s", "rad/s", "rad/s", "m/s", "m/s", "m/s")


@dataclass(frozen=True)
class Fixed(AbstractJoint):
    """No relative motion."""

    closure_names: ClassVar = ("rx", "ry", "rz", "x", "y", "z")
    closure_units: ClassVar = ("rad", "rad", "rad", "m", "m", "m")


JOINTS: dict[str, type[AbstractJoint]] = {
    joint.__name__.lower(): joint
    for joint in (
        Revolute,
        Prismatic,
        Screw,
        Cylindrical,
        Universal,
        Spherical,
        Planar,
        Floating,
        Fixed,
    )
}
