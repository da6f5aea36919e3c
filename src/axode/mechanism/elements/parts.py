"""Single parts of a mechanism, made from whatever a user passes.

What cannot be understood raises `InvalidArgument`, which names the part and the argument, before
anything is added. Whether a part is physical and fits the others is checked later, all at once, by
`checks`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from axode.errors import InvalidArgument, PlausibilityWarning, shortened, suggest
from axode.mechanism.elements.bodies import GROUND, Body, Inertia, Shape
from axode.mechanism.elements.forces import Motor
from axode.mechanism.elements.joints import AbstractJoint, Revolute, Spherical
from axode.mechanism.elements.wheels import (
    AbstractWheel,
    Contact,
    Friction,
    Plane,
    Stops,
    as_friction,
    as_stops,
)
from axode.mechanism.values.expressions import Expression, Scalar, Time, as_scalar, numeric
from axode.mechanism.values.geometry import (
    NO_ROTATION,
    ORIGIN,
    Rotation,
    Vector,
    as_rotation,
    as_vector,
)

BodyLike = Body | str
T = TypeVar("T")


@dataclass(frozen=True)
class Connection:
    """A joint placed on its two bodies.

    The joint's frame stands at `at`, turned by `rotation`, in the parent, and at `child_at`, turned
    by `child_rotation`, in the child; the two coincide at zero coordinates. Each speed feels
    `armature` besides the inertia of the bodies. With dry friction or stops the coordinate sticks,
    rubs and strikes by the laws of contact.
    """

    name: str
    joint: AbstractJoint
    parent: str
    child: str
    at: Vector = ORIGIN
    rotation: Rotation = NO_ROTATION
    child_at: Vector = ORIGIN
    child_rotation: Rotation = NO_ROTATION
    coordinate_names: tuple[str, ...] = ()  # instead of the joint's own
    speed_names: tuple[str, ...] = ()
    armature: Scalar = 0.0
    friction: Friction = None
    stops: Stops = None
    restitution: Scalar = 0.0

    @property
    def rubs_or_stops(self) -> bool:
        """Return whether it has dry friction or stops."""
        return self.friction is not None or self.stops is not None

    @cached_property
    def coordinates(self) -> tuple[str, ...]:
        """Full names of its coordinates, such as `elbow` or `base.x`."""
        if self.coordinate_names:
            return self.coordinate_names
        return tuple(f"{self.name}.{n}" if n else self.name for n in self.joint.coordinate_names)

    @cached_property
    def speeds(self) -> tuple[str, ...]:
        """Full names of its speeds, such as `elbow.rate` or `base.surge`."""
        if self.speed_names:
            return self.speed_names
        return tuple(f"{self.name}.{n}" for n in self.joint.speed_names)


def convert(owner: str, field: str, conversion: Callable[[Any], T], value: Any) -> T:
    """Convert a value; the error names its owner and field."""
    try:
        return conversion(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{owner}, {field}: {error}") from None


def as_name(kind: str, name: Any) -> str:
    """The name of a new part, which has to be text."""
    if isinstance(name, str):
        return name
    raise InvalidArgument(f"the name of a {kind} is text, got {shortened(name)}")


def body_name(owner: str, field: str, body: Any) -> str:
    """Return the name of a body that is given as an object or by name."""
    if isinstance(body, Body):
        return body.name
    if isinstance(body, str):
        return body
    hint = "; the world is 'ground'" if body is None else ""
    raise InvalidArgument(
        f"{owner}, {field}: expected a body or its name, got {shortened(body)}{hint}"
    )


def make_body(name: Any, mass: Any, com: Any, inertia: Any, shape: Any) -> Body:
    """A body; without inertia, that of a solid of its shape."""
    owner = f"body '{as_name('body', name)}'"
    weight = convert(owner, "mass", as_scalar, mass)
    shape = _as_shape(owner, shape)
    centre = convert(owner, "com", as_vector, com)
    if inertia is None:
        inertia = _of_solid(owner, weight, centre, shape)
    return Body(name, weight, centre, convert(owner, "inertia", Inertia.of, inertia), shape)


def _as_shape(owner: str, shape: Any) -> Shape | tuple[Shape, ...] | None:
    """One shape, several, or none."""
    several = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
    for one in several:
        if one is not None and not isinstance(one, Shape):
            raise InvalidArgument(
                f"{owner}, shape: expected Box, Cylinder, Sphere or Mesh, or several of them, got "
                f"{shortened(one)}"
            )
    kept = tuple(one for one in several if one is not None)
    return kept if len(kept) > 1 else kept[0] if kept else None


def _of_solid(
    owner: str, mass: Scalar, com: Vector, shape: Shape | tuple[Shape, ...] | None
) -> Inertia:
    """Inertia of a solid, with a warning if no such solid has its mass centre there."""
    if isinstance(shape, tuple):
        raise InvalidArgument(
            f"{owner} has {len(shape)} shapes, and it is not known how its mass is divided among "
            "them; give inertia=..."
        )
    if shape is None:
        raise InvalidArgument(
            f"{owner} needs inertia=... (three principal moments, a 3 x 3 tensor, "
            "Inertia.point() for a point mass) or a shape to take it from"
        )
    if shape.outside(com):
        at, beside = (", ".join(f"{numeric(x):.4g}" for x in place) for place in (shape.at, com))
        warnings.warn(
            f"{owner}: com = ({beside}) is not inside the shape that its inertia is taken from; "
            f"com=({at}) is the centre of the shape, or give inertia=...",
            PlausibilityWarning,
            stacklevel=4,
        )
    return shape.inertia(mass)


def make_connection(
    name: Any,
    joint: Any,
    parent: Any,
    child: Any,
    *,
    coordinates: Any = (),
    speeds: Any = (),
    **given: Any,
) -> Connection:
    """A joint on its two bodies; its frames there and its armature may be given."""
    owner = f"joint '{as_name('joint', name)}'"
    if not isinstance(joint, AbstractJoint):
        usual = "Revolute('z')"
        missing = "; write it with parentheses" if isinstance(joint, type) else ""
        raise InvalidArgument(
            f"{owner}: expected a joint such as {usual}, got {shortened(joint)}{missing}"
        )
    return Connection(
        name,
        joint,
        body_name(owner, "parent", parent),
        body_name(owner, "child", child),
        **{key: convert(owner, key, _CONVERSIONS[key], value) for key, value in given.items()},
        coordinate_names=_names(owner, "coordinate", coordinates, len(joint.coordinate_names)),
        speed_names=_names(owner, "speed", speeds, len(joint.speed_names)),
    )


_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "at": as_vector,
    "rotation": as_rotation,
    "child_at": as_vector,
    "child_rotation": as_rotation,
    "armature": as_scalar,
    "friction": as_friction,
    "stops": as_stops,
    "restitution": as_scalar,
}


def _names(owner: str, what: str, given: Any, count: int) -> tuple[str, ...]:
    """Names that replace the usual ones: as many as there are, or none."""
    listed = given is None or isinstance(given, list | tuple)
    names = tuple(given or ()) if listed else (given,)
    for name in names:
        if not isinstance(name, str):
            raise InvalidArgument(f"{owner}: the name of a {what} is text, got {shortened(name)}")
    if names and len(names) != count:
        plural = f"{what} names" if count != 1 else f"{what} name"
        raise InvalidArgument(f"{owner}: expected {count} {plural}, got {len(names)}")
    return names


def make_contact(
    name: Any, wheel: Any, body: Any, *, at: Any = ORIGIN, axis: Any = "y", ground: Any = None
) -> Contact:
    """A wheel on the body that rolls."""
    owner = f"wheel '{as_name('wheel', name)}'"
    if not isinstance(wheel, AbstractWheel):
        missing = "; write it with its radius" if isinstance(wheel, type) else ""
        raise InvalidArgument(
            f"{owner}: expected a wheel such as Rolling(0.1), got {shortened(wheel)}{missing}"
        )
    if not isinstance(ground, Plane):
        ground = Plane(on=body_name(owner, "ground", GROUND if ground is None else ground))
    return Contact(
        name,
        wheel,
        body_name(owner, "body", body),
        convert(owner, "at", as_vector, at),
        convert(owner, "axis", as_vector, axis),
        ground,
    )


class MadeWheel(NamedTuple):
    """What `add_wheel` adds, made as a whole: an error leaves nothing behind."""

    body: Body
    connection: Connection
    contact: Contact
    motor: Motor | None


def make_wheel(
    contact: Contact,
    on: Any,
    at: Any,
    mass: Any,
    inertia: Any,
    *,
    motor: Any = None,
    shape: Any = None,
    **names: Any,
) -> MadeWheel:
    """Make the body, spin joint and motor of a contact; a uniform disk or ball without inertia."""
    name, wheel = contact.name, contact.wheel
    owner = f"wheel '{name}'"
    weight = convert(owner, "mass", as_scalar, mass)
    if inertia is None:
        disk = Inertia.disk(weight, wheel.radius, contact.axis)
        inertia = disk if wheel.has_axis else Inertia.sphere(weight, wheel.radius)
    connection = make_connection(
        name,
        Revolute(contact.axis) if wheel.has_axis else Spherical(),
        body_name(owner, "on", on),
        name,
        at=convert(owner, "at", as_vector, at),
        **names,
    )
    turns = motor is not None and motor is not False
    turned_by = make_motor(f"{owner}, motor", motor, {}) if turns else None
    return MadeWheel(
        make_body(name, weight, ORIGIN, inertia, shape), connection, contact, turned_by
    )


def make_motor(owner: str, motor: Any, given: Mapping[str, Any]) -> Motor:
    """Return a motor that is given as an object, as `True`, or by its numbers."""
    if motor is None or motor is True:
        known = [entry.name for entry in fields(Motor)]
        for name in given:
            if name not in known:
                raise InvalidArgument(f"{owner} has no '{name}'. {suggest('number', name, known)}")
        numbers = {
            name: convert(owner, name, as_scalar, value)
            for name, value in given.items()
            if value is not None
        }
        return Motor(**numbers)
    if not isinstance(motor, Motor):
        raise InvalidArgument(
            f"{owner}: expected True or a Motor(limit=...), got {shortened(motor)}"
        )
    if given:
        raise InvalidArgument(
            f"{owner}: give {', '.join(given)} to the Motor or to add_motor, not to both"
        )
    return motor


def joint_name(owner: str, joint: Any, connections: Sequence[Connection]) -> str:
    """The joint, coordinate or speed that something acts on; of a body, the joint that holds it."""
    if isinstance(joint, str):
        return joint
    if isinstance(joint, Connection):
        return joint.name
    if isinstance(joint, Body):
        for connection in connections:
            if connection.child == joint.name:
                return connection.name
        raise InvalidArgument(f"{owner}: no joint holds body '{joint.name}' yet, name the joint")
    raise InvalidArgument(f"{owner}: expected a joint or its name, got {shortened(joint)}")


def as_motion(coordinate: str, motion: Any) -> Scalar:
    """A function of time as a formula: a callable is called once, with the symbol of time."""
    if isinstance(motion, type) or (callable(motion) and not isinstance(motion, Expression)):
        try:
            motion = motion(Time())
        except TypeError as error:
            raise InvalidArgument(f"prescribe '{coordinate}': {error}") from None
    return convert(f"prescribe '{coordinate}'", "motion", as_scalar, motion)


def as_home(coordinates: Any, more: Mapping[str, Any]) -> dict[str, float]:
    """Values of coordinates by name."""
    if coordinates is not None and not isinstance(coordinates, Mapping):
        expected = 'a mapping such as {"base.z": 0.1}'
        raise InvalidArgument(f"home: expected {expected}, got {shortened(coordinates)}")
    values = {}
    for name, value in {**(coordinates or {}), **more}.items():
        number = convert("home", as_name("coordinate", name), as_scalar, value)
        if isinstance(number, Expression):
            raise InvalidArgument(f"home, {name}: expected a number, got the formula '{number}'")
        values[name] = number
    return values
