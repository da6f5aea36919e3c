"""Joints: which relative motions of two bodies are free, and what they are called; couplings.

A joint carries no placement: `Mechanism.add_joint` puts it on its two bodies. How it moves stands
in `axode.symbolic.joints`, one file per joint. Couplings are relations between joints, such as
gears, belts, differentials and cams. All are one relation between coordinates (or speeds) of the
tree's joints,

    c_1 q_1 + c_2 q_2 + ... = offset + f(q),

and what adds them only chooses its coefficients; f is zero for all but cams and their like. Every
coordinate is measured from the parent of its own joint: wheels that mesh are joined to the body
that carries their axes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from axode.mechanism.values.expressions import (
    Expression,
    Operation,
    Scalar,
    as_scalar,
    coordinates_in,
    format_scalar,
)
from axode.mechanism.values.geometry import AXES, as_vector, take


def _axis(default: str = "z") -> Any:
    """A unit vector, given as three numbers or as "x", "-y", ...; kept as three numbers."""
    return field(default=AXES[default])


@dataclass(frozen=True)
class AbstractJoint:
    """What every joint has: names for its coordinates and speeds, and directions.

    Attributes:
        coordinate_names, speed_names: Suffixes to the joint's own name; a joint with one coordinate
            gives it its own name. A speed `a_rate` is the rate of the coordinate `a`.
        closure_names: Rows of the joint where it closes a loop: `x`, `y`, `z` for the distance of
            its two origins, `rx`, `ry`, `rz` for the rotation, along the axes of the joint, whose
            own axis is z; or rows of its own.
        has_quaternion: Whether the first four coordinates are a unit quaternion.
        base_coordinates: Coordinates of a moving base: x, y, then yaw or the quaternion.
        base_speeds: Speeds of a moving base, the best independent ones first.
        measures: Kinds of measures that every child of such a joint has.
        picture: What pictures show at the joint.
        plane: How `axis` lies to a plane in which the child moves: across it, along it, or, if
            there is no such plane, "".
    """

    coordinate_names: ClassVar[tuple[str, ...]] = ()
    speed_names: ClassVar[tuple[str, ...]] = ()
    coordinate_units: ClassVar[tuple[str, ...]] = ()
    speed_units: ClassVar[tuple[str, ...]] = ()
    closure_names: ClassVar[tuple[str, ...]] = ()
    has_quaternion: ClassVar[bool] = False
    base_coordinates: ClassVar[tuple[str, ...]] = ()
    base_speeds: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[tuple[str, ...]] = ()
    picture: ClassVar[Literal["pin", "sleeve", "ball", ""]] = "ball"
    plane: ClassVar[Literal["across", "along", ""]] = ""

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

    @property
    def closure_units(self) -> tuple[str, ...]:
        """Units of the rows of a loop: of an angle, or of a distance."""
        angles = ("rx", "ry", "rz", "cross")
        return tuple("rad" if name in angles else "m" for name in self.closure_names)

    @property
    def is_free(self) -> bool:
        """Return whether the joint constrains nothing."""
        return self.dof == 6

    @property
    def carries_base(self) -> bool:
        """Return whether the child is a moving base, such as a vehicle's."""
        return bool(self.base_speeds)

    @property
    def holds_point(self) -> bool:
        """Return whether the joint's two origins always coincide."""
        return {"x", "y", "z"} <= set(self.closure_names)

    def rate_of(self, k: int) -> int | None:
        """Index of the coordinate whose rate is speed `k`; None if there is none."""
        coordinate = self.speed_names[k].removesuffix("rate").removesuffix("_")
        found = coordinate in self.coordinate_names and self.speed_names[k].endswith("rate")
        return self.coordinate_names.index(coordinate) if found else None

    @property
    def speeds_are_rates(self) -> bool:
        """Return whether the speeds are the rates of the coordinates, one for one."""
        rates = [self.rate_of(k) for k in range(self.dof)]
        return rates == list(range(len(self.coordinate_names)))


@dataclass(frozen=True)
class Revolute(AbstractJoint):
    """Turns about `axis` [rad]."""

    axis: Any = _axis()
    coordinate_names: ClassVar = ("",)
    speed_names: ClassVar = ("rate",)
    coordinate_units: ClassVar = ("rad",)
    speed_units: ClassVar = ("rad/s",)
    closure_names: ClassVar = ("rx", "ry", "x", "y", "z")
    picture: ClassVar = "pin"
    plane: ClassVar = "across"


@dataclass(frozen=True)
class Prismatic(AbstractJoint):
    """Slides along `axis` [m]."""

    axis: Any = _axis()
    coordinate_names: ClassVar = ("",)
    speed_names: ClassVar = ("rate",)
    coordinate_units: ClassVar = ("m",)
    speed_units: ClassVar = ("m/s",)
    closure_names: ClassVar = ("rx", "ry", "rz", "x", "y")
    picture: ClassVar = "sleeve"
    plane: ClassVar = "along"


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
    picture: ClassVar = "sleeve"

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


@dataclass(frozen=True)
class Spherical(AbstractJoint):
    """Turns freely about a point; orientation by a unit quaternion, no gimbal lock."""

    coordinate_names: ClassVar = ("qw", "qx", "qy", "qz")
    speed_names: ClassVar = ("wx", "wy", "wz")
    coordinate_units: ClassVar = ("", "", "", "")
    speed_units: ClassVar = ("rad/s", "rad/s", "rad/s")
    closure_names: ClassVar = ("x", "y", "z")
    has_quaternion: ClassVar = True


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
    base_coordinates: ClassVar = ("x", "y", "yaw")
    base_speeds: ClassVar = ("surge", "sway", "yaw_rate")
    picture: ClassVar = ""
    plane: ClassVar = "across"


@dataclass(frozen=True)
class Floating(AbstractJoint):
    """Free in space: a unit quaternion and a position [m].

    The speeds are the child's angular velocity and its origin's velocity in the child's axes.
    """

    coordinate_names: ClassVar = ("qw", "qx", "qy", "qz", "x", "y", "z")
    speed_names: ClassVar = ("wx", "wy", "wz", "vx", "vy", "vz")
    coordinate_units: ClassVar = ("", "", "", "", "m", "m", "m")
    speed_units: ClassVar = ("rad/s", "rad/s", "rad/s", "m/s", "m/s", "m/s")
    has_quaternion: ClassVar = True
    base_coordinates: ClassVar = ("x", "y", "qw", "qx", "qy", "qz")
    base_speeds: ClassVar = ("vx", "wz", "wy", "vy", "vz", "wx")  # surge, yaw, pitch come first
    measures: ClassVar = (
        *("roll", "pitch", "yaw", "roll_rate", "pitch_rate", "yaw_rate"),
        *("surge", "sway", "heave"),
    )
    picture: ClassVar = ""


@dataclass(frozen=True)
class Fixed(AbstractJoint):
    """No relative motion."""

    closure_names: ClassVar = ("rx", "ry", "rz", "x", "y", "z")
    picture: ClassVar = ""


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


@dataclass(frozen=True)
class Coupling:
    """A relation between joints: the terms, coefficient times coordinate, add to `offset`.

    With a function of coordinates, to the offset and that function's value. A term names a joint, a
    coordinate, or a speed. One speed among them makes the relation one of speeds alone, which add
    to zero whatever the positions are. Sum and offset have the unit of the first term. The
    coupling's multiplier is a torque [N m] or force [N] on the first term's joint per unit
    coefficient: every joint feels its own coefficient times it, those of the function the negative
    of its slope times it.
    """

    name: str
    terms: tuple[tuple[str, Scalar], ...]
    offset: Scalar = 0.0
    function: Scalar = 0.0

    @property
    def joints(self) -> tuple[str, ...]:
        """What it names: joints, coordinates or speeds of the terms, then those of the function."""
        return tuple(dict.fromkeys([*(joint for joint, _ in self.terms), *self.arguments]))

    @property
    def arguments(self) -> tuple[str, ...]:
        """Joints and coordinates that the function names."""
        return coordinates_in(self.function)

    def __str__(self) -> str:
        parts = [_term(joint, coefficient) for joint, coefficient in self.terms]
        left = "".join(f" {sign} {text}" for sign, text in parts).removeprefix(" + ")
        right = [x for x in (self.function, self.offset) if isinstance(x, Expression) or x != 0.0]
        shown = " + ".join(map(_shown, right)).replace(" + -", " - ") or "0"
        return f"{self.name}: {left.lstrip()} = {shown}"


def _term(joint: str, coefficient: Scalar) -> tuple[str, str]:
    """Sign and text of a coefficient times a coordinate."""
    if isinstance(coefficient, Operation) and coefficient.kind == "neg":
        return "-", f"({format_scalar(coefficient.operands[0])}) {joint}"
    if isinstance(coefficient, Expression):
        return "+", f"({format_scalar(coefficient)}) {joint}"
    size = "" if abs(coefficient) == 1.0 else f"{abs(coefficient):.12g} "
    return "-" if coefficient < 0.0 else "+", f"{size}{joint}"


def _shown(scalar: Scalar) -> str:
    return format_scalar(scalar) if isinstance(scalar, Expression) else f"{scalar:.12g}"
