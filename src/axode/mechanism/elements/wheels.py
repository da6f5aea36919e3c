"""Wheels: which velocities of the contact point vanish.

A wheel is geometry (radius, spin axis) and a statement of what may not slip. Directions at the
contact: *longitudinal* is the heading, *lateral* is across it in the ground plane, *touch* is the
ground's normal.

With `friction`, a wheel may slip and lift: then nothing of it is eliminated, and the ground acts on
it by the laws of contact.

Laws of contacts that stick, slip, lift and land, of stops and of joints that rub: plain data.

What has such a law is not eliminated from the equations of motion: the mechanism moves as if it
were not there, and the contact acts by impulses on *rows*, the speeds with which it opens, slides,
turns or rubs.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, PlausibilityWarning, first_of, level_outside, shortened
from axode.mechanism.values.expressions import Scalar, as_scalar, numeric, shown
from axode.mechanism.values.geometry import AXES, ORIGIN, Vector, as_vector, take
from axode.numerics.tolerances import SEVEN_DIGITS

Array: TypeAlias = npt.NDArray[np.float64]
Friction: TypeAlias = "tuple[Scalar, Scalar] | None"
Stops: TypeAlias = "tuple[Scalar, Scalar] | None"


def as_friction(value: Any) -> Friction:
    """Static and kinetic friction, from one number or two; None for a contact that never slips."""
    if value is None:
        return None
    if not isinstance(value, tuple | list):
        one = as_scalar(value)
        return one, one
    if len(value) != 2:
        raise InvalidArgument(f"expected a number or (static, kinetic), got {len(value)} numbers")
    return as_scalar(value[0]), as_scalar(value[1])


def as_stops(value: Any) -> Stops:
    """Lowest and highest coordinate; None among them, or an infinite one, is no stop."""
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidArgument(f"expected (low, high), got {shortened(value)}")
    low, high = value
    return (
        as_scalar(-math.inf if low is None else low),
        as_scalar(math.inf if high is None else high),
    )


def friction_faults(friction: Friction, unit: str = "") -> Iterator[tuple[str, str]]:
    """Field and message of everything wrong with a friction."""
    if friction is None:
        return
    static, kinetic = friction
    for scalar in dict.fromkeys(friction):
        if not 0 <= numeric(scalar) < math.inf:
            yield "friction", f"must be >= 0{unit} and finite, got {shown(scalar)}"
            return
    if numeric(static) < numeric(kinetic):
        message = f"static friction, {shown(static)}, must not be below the kinetic one, "
        yield "friction", message + f"{shown(kinetic)}; give friction=(static, kinetic)"


def restitution_fault(restitution: Scalar) -> Iterator[tuple[str, str]]:
    """Field and message for a restitution that is none."""
    if not 0 <= numeric(restitution) <= 1:
        message = "must be from 0 (plastic) to 1 (elastic), got "
        yield "restitution", message + shown(restitution)


@dataclass(frozen=True)
class RubbingGroup:
    """Rows whose impulses lie in an interval or a disk.

    Attributes:
        rows: One row or two, across each other.
        normal: The row whose impulse times the coefficient is the radius; -1 if the coefficient
            itself is it, as of joints that rub.
        contact: Place of the contact among the names.
    """

    rows: tuple[int, ...]
    normal: int
    contact: int


class RowValues(NamedTuple):
    """Contact rows in numbers, at a state; batch axes first.

    Rows move by v = J nu + drift, and dv/dt = J d(nu)/dt + rate.
    """

    gap: Array  # [m or rad], of the normal rows
    J: Array  # rows x independent speeds
    drift: Array
    rate: Array
    limits: Array  # static coefficients: of friction, length [m], force [N] or torque [N m]
    kinetic: Array
    restitution: Array  # of the normal rows


@dataclass(frozen=True)
class ContactTable:
    """What the contact rows of a model are.

    Attributes:
        rows: Names, such as `left.touch`, `left.longitudinal`, `elbow.friction`, `elbow.low`.
        normals: Rows that open and close, whose impulse is never negative.
        rubbing: Rows that rub, in groups.
        names: Contacts, joints that rub and stops, as reports call them.
        normal_contacts: Place among the names of the contact of each normal row.
    """

    rows: tuple[str, ...] = ()
    normals: tuple[int, ...] = ()
    rubbing: tuple[RubbingGroup, ...] = ()
    names: tuple[str, ...] = ()
    normal_contacts: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)

    def sizes(self, dof: int) -> tuple[int, ...]:
        """Lengths of the parts of what the function `contact_rows` gives, in their order."""
        m, n = len(self.rows), len(self.normals)
        return n, m * dof, m, m, m, m, n

    def split(self, values: Array, dof: int) -> RowValues:
        """Take apart what the function `contact_rows` gives."""
        ends = np.cumsum(self.sizes(dof))
        parts: Sequence[Array] = np.split(values, ends[:-1], axis=-1)
        gap, J, *others = parts
        return RowValues(gap, J.reshape(*J.shape[:-1], len(self.rows), dof), *others)


# functions of a model that give motions or forces, and leave those of its contacts out
WITHOUT_CONTACTS = frozenset(
    {
        "forward_dynamics",
        "inverse_dynamics",
        "inverse_residual",
        "hybrid_dynamics",
        "state_rate",
        "multipliers",
        "contact_forces",
    }
)


def warn_without_contacts(name: str, contacts: Sequence[str], functions: Iterable[str]) -> None:
    """Warn that functions leave the forces of contacts with friction and stops out.

    Args:
        name: The mechanism's.
        contacts: Names of such contacts; without any nothing is missing.
        functions: What is asked for.

    Warns:
        PlausibilityWarning: naming functions and contacts, with what has their forces.
    """
    without = [function for function in functions if function in WITHOUT_CONTACTS]
    if contacts and without:
        warnings.warn(
            f"{first_of(without)} of '{name}': forces of {first_of(list(contacts), 4)} are left "
            "out, as if nothing were touched; simulate has them, and contact_rows is the function "
            "of gaps and rows.\n  With wheels that never slip: mechanism.ideal().derive()",
            PlausibilityWarning,
            stacklevel=level_outside(),
        )


Slip = Literal["rigid", "free"]


@dataclass(frozen=True)
class AbstractWheel:
    """What every wheel has: a radius [m], the names of its constraint rows, and its friction.

    Attributes:
        friction: Coefficient of Coulomb's friction, or (static, kinetic). None: it never slips nor
            lifts.
        restitution: Part of the impulse of an impact that comes back (Poisson), 0 to 1.
        rolling_resistance: Largest moment against rolling, per normal force [m].
        scrub: Largest moment against turning on the spot, per normal force [m].
        has_axis: Whether the wheel spins about an axis of its own; a ball does not.
        needs_radius: Whether its radius must be positive.
        picture: What pictures show of it.
    """

    radius: Scalar
    friction: Any = field(default=None, kw_only=True)
    restitution: Scalar = field(default=0.0, kw_only=True)
    rolling_resistance: Scalar = field(default=0.0, kw_only=True)
    scrub: Scalar = field(default=0.0, kw_only=True)
    has_axis: ClassVar[bool] = True
    needs_radius: ClassVar[bool] = True
    picture: ClassVar[Literal["disk", "ball", "blade", "rollers", "point"]] = "disk"

    def __post_init__(self) -> None:
        take(self, as_scalar, "radius", *_LAWS)
        take(self, as_friction, "friction")

    @property
    def is_ideal(self) -> bool:
        """Return whether it keeps touching the ground and never slips."""
        return self.friction is None

    @property
    def rolling_rows(self) -> tuple[str, ...]:
        """Names of the velocities that vanish, besides the touch row."""
        rows = ("longitudinal", "lateral")
        return tuple(row for row in rows if getattr(self, row, "rigid") == "rigid")

    def faults(self) -> Iterator[tuple[str, str]]:
        """Field and message of everything wrong with the wheel itself."""
        radius = numeric(self.radius)
        if not (radius > 0 or (radius == 0 and not self.needs_radius)) or math.isinf(radius):
            yield "radius", f"must be > 0 m, got {shown(self.radius)}"
        for name in ("longitudinal", "lateral"):
            value = getattr(self, name, "rigid")
            if value not in ("rigid", "free"):
                yield name, f"must be 'rigid' or 'free', got {shortened(value)}"
        yield from friction_faults(self.friction)
        yield from restitution_fault(self.restitution)
        for name in ("rolling_resistance", "scrub"):
            if not 0 <= numeric(getattr(self, name)) < math.inf:
                yield name, f"must be >= 0 m and finite, got {shown(getattr(self, name))}"
        for name in _LAWS if self.is_ideal else ():
            if getattr(self, name) != 0.0:
                yield name, "belongs to contacts that may slip and lift; give friction=0.8 too"


_LAWS = ("restitution", "rolling_resistance", "scrub")


@dataclass(frozen=True)
class Rolling(AbstractWheel):
    """A disk that rolls without slipping, unless a direction is set "free" or friction ends."""

    longitudinal: Slip = "rigid"
    lateral: Slip = "rigid"


@dataclass(frozen=True)
class Ball(AbstractWheel):
    """A sphere that rolls without slipping in both tangents of the ground.

    Longitudinal and lateral are x and y of the ground's body, turned the shortest way into its
    plane.
    """

    longitudinal: Slip = "rigid"
    lateral: Slip = "rigid"
    has_axis: ClassVar = False
    picture: ClassVar = "ball"


@dataclass(frozen=True)
class Skate(AbstractWheel):
    """A knife edge: slides along itself, never sideways. The axis is its sideways direction."""

    radius: Scalar = 0.0
    needs_radius: ClassVar = False
    picture: ClassVar = "blade"

    @property
    def rolling_rows(self) -> tuple[str, ...]:
        """Only the lateral velocity vanishes."""
        return ("lateral",)


@dataclass(frozen=True)
class Mecanum(AbstractWheel):
    """Rollers at `roller_angle` [rad] from the wheel's axis: only the velocity along the roller's
    axis vanishes.

    The angle is measured in the ground plane about its normal, from the wheel's axis.
    """

    roller_angle: Scalar = math.pi / 4
    picture: ClassVar = "rollers"

    def __post_init__(self) -> None:
        super().__post_init__()
        take(self, as_scalar, "roller_angle")

    @property
    def rolling_rows(self) -> tuple[str, ...]:
        """Only the velocity along the roller's axis vanishes."""
        return ("roller",)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Field and message of everything wrong; rollers along the wheel's axis cannot drive."""
        yield from super().faults()
        angle = numeric(self.roller_angle)
        if not math.isfinite(angle):
            yield "roller_angle", "must be finite"
        elif abs(angle) > 2 * math.pi:
            message = f"is in radians and must lie within one turn, got {angle:.6g}"
            yield "roller_angle", message
        elif abs(math.sin(angle)) < SEVEN_DIGITS:
            remedy = "give an angle in radians such as 0.785 (45 degrees), or use a rolling wheel "
            remedy += "with longitudinal 'free'"
            yield "roller_angle", f"rollers along the wheel's axis cannot drive; {remedy}"


@dataclass(frozen=True)
class Omni(AbstractWheel):
    """Rollers across the wheel's axis: free sideways, no slip along the heading."""

    roller_angle: ClassVar = math.pi / 2
    picture: ClassVar = "rollers"

    @property
    def rolling_rows(self) -> tuple[str, ...]:
        """Only the longitudinal velocity vanishes."""
        return ("longitudinal",)


@dataclass(frozen=True)
class Point(AbstractWheel):
    """A point of a body, or a sphere about one, that may touch the ground: a bumper, a foot.

    It is never ideal: without friction it slides freely.
    """

    radius: Scalar = 0.0
    has_axis: ClassVar = False
    needs_radius: ClassVar = False
    picture: ClassVar = "point"
    is_ideal: ClassVar = False  # type: ignore[assignment]


@dataclass(frozen=True)
class Plane:
    """The ground: a plane through `point` with unit `normal`, fixed to the body `on`."""

    normal: Any = AXES["z"]
    point: Any = ORIGIN
    on: Any = "ground"

    def __post_init__(self) -> None:
        take(self, as_vector, "normal", "point")
        object.__setattr__(self, "on", getattr(self.on, "name", self.on))


@dataclass(frozen=True)
class Contact:
    """A wheel placed on a body: its centre and spin axis there, and the ground it touches."""

    name: str
    wheel: AbstractWheel
    body: str
    at: Vector
    axis: Vector
    plane: Plane

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of its constraint rows, the holonomic touch row first."""
        return tuple(f"{self.name}.{row}" for row in ("touch", *self.wheel.rolling_rows))

    @property
    def slip_rows(self) -> tuple[str, ...]:
        """Names of the velocities that friction opposes; none of an ideal wheel."""
        rows = () if self.wheel.is_ideal else self.wheel.rolling_rows
        return tuple(f"{self.name}.{row}" for row in rows)


WHEELS: dict[str, type[AbstractWheel]] = {
    wheel.__name__.lower(): wheel for wheel in (Rolling, Omni, Mecanum, Skate, Ball, Point)
}
