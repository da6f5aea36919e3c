"""Friction and stops of files of other programs: read on request, with a home that meets them.

Readers leave them out unless they are asked for: an ideal mechanism is eliminated from the
equations, differentiated and exported, one whose contacts slip is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from axode.errors import InvalidArgument, shortened, suggest
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.wheels import AbstractWheel, Contact
from axode.mechanism.home_poses import home_poses, matrix, vector
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import unit
from axode.numerics.tolerances import ROUNDING

CONTACTS = ("stops", "friction", "wheels")  # of joints, of joints, of what rolls on the ground


def chosen_contacts(given: Any) -> frozenset[str]:
    """Return what is to be read, from "all", a name, or names.

    Raises:
        InvalidArgument: for anything else.
    """
    if given == "all":
        return frozenset(CONTACTS)
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Sequence | frozenset | set):
        raise InvalidArgument(
            f"contacts must be 'all' or some of {', '.join(CONTACTS)}, got {shortened(given)}"
        )
    for name in names:
        if name not in CONTACTS:
            hint = suggest("contact", str(name), (*CONTACTS, "all"))
            raise InvalidArgument(f"contacts: unknown name {shortened(name)}. {hint}")
    return frozenset(names)


@dataclass(frozen=True)
class Surface:
    """How a solid rubs on the ground, as a file has it.

    Attributes:
        friction: Coefficient of Coulomb's friction.
        scrub, rolling_resistance: Moments per normal force [m].
        restitution: Part of the impulse of an impact that comes back.
    """

    friction: float
    scrub: float = 0.0
    rolling_resistance: float = 0.0
    restitution: float = 0.0

    def on(self, wheel: AbstractWheel) -> AbstractWheel:
        """Return a wheel with this surface, which rubs in the directions that were free."""
        rows = ("longitudinal", "lateral")
        rubbing = {row: "rigid" for row in rows if getattr(wheel, row, "") == "free"}
        return replace(
            wheel,
            friction=self.friction,
            scrub=self.scrub,
            rolling_resistance=self.rolling_resistance,
            restitution=self.restitution,
            **rubbing,  # type: ignore[arg-type]
        )


def settle_home(mechanism: Mechanism) -> Iterator[str]:
    """Put home on the ground and between the stops; yield a sentence for each joint moved.

    What has friction is not eliminated, so that nothing else places it: a floating base rises or
    sinks until its wheels touch, unless its height at home is given and none is in the ground.
    """
    yield from _between_stops(mechanism)
    _on_ground(mechanism)


def _between_stops(mechanism: Mechanism) -> Iterator[str]:
    for connection in mechanism.connections:
        if connection.stops is None or len(connection.coordinates) != 1:
            continue
        (name,) = connection.coordinates
        home = mechanism.home_coordinates.get(name, 0.0)
        low, high = map(numeric, connection.stops)
        if low <= home <= high:
            continue
        nearest = min(max(home, low), high)
        mechanism.set_home({name: nearest})
        yield (
            f"joint '{connection.name}': home at {home:g} is beyond its stops, {low:g} and "
            f"{high:g}; it is at {nearest:g} now (set_home chooses another)"
        )


def _on_ground(mechanism: Mechanism) -> None:
    holding = {connection.child: connection for connection in mechanism.connections}
    poses = home_poses(mechanism).links
    gaps: dict[str, list[tuple[float, np.ndarray]]] = {}
    for contact in mechanism.contacts:
        body = contact.body
        while body in holding and holding[body].parent != GROUND.name:
            body = holding[body].parent
        root = holding.get(body)
        on_ground = contact.plane.on == GROUND.name and not contact.wheel.is_ideal
        if on_ground and root is not None and root.joint.is_free and contact.body in poses:
            gaps.setdefault(root.name, []).append(_gap(contact, poses[contact.body]))
    for name, found in gaps.items():
        root = next(c for c in mechanism.connections if c.name == name)
        gap, normal = min(found, key=lambda pair: pair[0])
        places = root.coordinates[4:]
        is_given = any(place in mechanism.home_coordinates for place in places)
        if abs(gap) <= ROUNDING or (is_given and gap > 0):
            continue
        moved = matrix(root.rotation).T @ (-gap * normal)
        mechanism.set_home(
            {
                place: mechanism.home_coordinates.get(place, 0.0) + float(shift)
                for place, shift in zip(places, moved, strict=True)
                if shift
            }
        )


def _gap(contact: Contact, pose: Any) -> tuple[float, np.ndarray]:
    """Height of the lowest point of a wheel above its plane, and the plane's normal."""
    normal = vector(unit(contact.plane.normal))
    depth = numeric(contact.wheel.radius)
    if contact.wheel.has_axis:
        lean = float(pose.direction(vector(unit(contact.axis))) @ normal)
        depth *= np.sqrt(max(1 - lean * lean, 0.0))
    height = (pose.point(vector(contact.at)) - vector(contact.plane.point)) @ normal
    return float(height) - depth, normal
