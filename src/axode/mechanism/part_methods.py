"""The part of a `Mechanism` that looks its parts up by name, and changes their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from axode.errors import InvalidArgument, UnknownName
from axode.mechanism.elements.bodies import GROUND, Body, Inertia, Shape
from axode.mechanism.elements.parts import Connection, make_body, make_connection, make_contact
from axode.mechanism.elements.wheels import AbstractWheel, Contact
from axode.mechanism.values.expressions import numeric

Part = TypeVar("Part", Body, Connection, Contact)

_SCALED = "scaled"


class PartMethods:
    """The part of a `Mechanism` that finds bodies, joints and contacts, and changes them in place.

    Numbers of an imported robot become parameters this way.
    """

    name: str
    bodies: list[Body]
    connections: list[Connection]
    loops: list[Connection]
    contacts: list[Contact]

    def body(self, name: str) -> Body:
        """Return a body by its name.

        Raises:
            UnknownName: if there is none.
        """
        return GROUND if name == GROUND.name else self._found("body", name, self.bodies)

    def joint(self, name: str) -> Connection:
        """Return a joint by its name, also one that closes a loop.

        Raises:
            UnknownName: if there is none.
        """
        return self._found("joint", name, [*self.connections, *self.loops])

    def contact(self, name: str) -> Contact:
        """Return a contact by its name.

        Raises:
            UnknownName: if there is none.
        """
        return self._found("contact", name, self.contacts)

    def change_body(
        self,
        name: str,
        *,
        mass: Any = None,
        com: Any = None,
        inertia: Any = None,
        shape: Shape | Sequence[Shape] | None = None,
    ) -> Body:
        """Change numbers of a body, as of one from a file; what is not given stays.

        `robot.change_body("arm", mass=ax.Parameter("m_arm", 3.2))` lets a sweep vary the mass.

        Args:
            name: The body.
            mass, com, inertia, shape: As for `add_body`. `inertia="scaled"` scales it with the
                mass: the same body of another density.

        Raises:
            UnknownName: if there is no such body.
            InvalidArgument: for values of a wrong kind.
        """
        old = self._found("body", name, self.bodies)
        weight = old.mass if mass is None else mass
        tensor = old.inertia if inertia is None or inertia == _SCALED else inertia
        new = make_body(
            name,
            weight,
            old.com if com is None else com,
            tensor,
            old.shape if shape is None else shape,
        )
        if isinstance(inertia, str) and inertia == _SCALED:
            if not numeric(old.mass) > 0:
                raise InvalidArgument(f"body '{name}' has no mass to scale its inertia by")
            entries = {f.name: getattr(old.inertia, f.name) for f in fields(Inertia)}
            factor = new.mass / old.mass
            entries |= {n: factor * entries[n] for n in ("xx", "yy", "zz", "xy", "xz", "yz")}
            new = replace(new, inertia=Inertia(**entries))
        self.bodies[self.bodies.index(old)] = new
        return new

    def change_joint(
        self,
        name: str,
        *,
        at: Any = None,
        rotation: Any = None,
        child_at: Any = None,
        child_rotation: Any = None,
        armature: Any = None,
        friction: Any = None,
        stops: Any = None,
        restitution: Any = None,
    ) -> Connection:
        """Change where a joint is, its armature, friction or stops; what is not given stays.

        `robot.change_joint("elbow", at=(ax.Parameter("l", 0.4), 0, 0))` lets a sweep vary a length.

        Args:
            name: The joint, which may close a loop.
            at, rotation, child_at, child_rotation, armature, friction, stops, restitution: As for
                `add_joint`.

        Raises:
            UnknownName: if there is no such joint.
            InvalidArgument: for values of a wrong kind.
        """
        old = self.joint(name)
        given = {
            "at": at,
            "rotation": rotation,
            "child_at": child_at,
            "child_rotation": child_rotation,
            "armature": armature,
            "friction": friction,
            "stops": stops,
            "restitution": restitution,
        }
        kept = {key: getattr(old, key) if value is None else value for key, value in given.items()}
        made = make_connection(name, old.joint, old.parent, old.child, **kept)
        new = replace(made, coordinate_names=old.coordinate_names, speed_names=old.speed_names)
        group = self.connections if old in self.connections else self.loops
        group[group.index(old)] = new
        return new

    def change_contact(
        self, name: str, *, wheel: AbstractWheel | None = None, at: Any = None, axis: Any = None
    ) -> Contact:
        """Change the kind or the radius of a wheel, its centre or its axis; the rest stays.

        Args:
            name: The contact; one of an imported robot is called as its link.
            wheel: `Omni(ax.Parameter("r", 0.1))`, ...
            at, axis: As for `add_contact`.

        Raises:
            UnknownName: if there is no such contact.
            InvalidArgument: for values of a wrong kind.
        """
        old = self.contact(name)
        new = make_contact(
            name,
            old.wheel if wheel is None else wheel,
            old.body,
            at=old.at if at is None else at,
            axis=old.axis if axis is None else axis,
            ground=old.plane,
        )
        self.contacts[self.contacts.index(old)] = new
        return new

    def _found(self, kind: str, name: str, parts: Sequence[Part]) -> Part:
        for part in parts:
            if part.name == name:
                return part
        raise UnknownName(f"mechanism '{self.name}'", kind, name, [part.name for part in parts])
