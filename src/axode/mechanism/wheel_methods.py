"""The part of a `Mechanism` that adds wheels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axode.mechanism.elements.bodies import Body, Inertia, Shape
from axode.mechanism.elements.forces import Drive, Motor
from axode.mechanism.elements.joints import Revolute
from axode.mechanism.elements.parts import (
    BodyLike,
    Connection,
    MadeWheel,
    as_name,
    body_name,
    convert,
    make_body,
    make_connection,
    make_contact,
    make_wheel,
)
from axode.mechanism.elements.wheels import AbstractWheel, Contact, Plane
from axode.mechanism.values.expressions import as_scalar
from axode.mechanism.values.geometry import ORIGIN, as_vector, minus


class WheelMethods:
    """The part of a `Mechanism` that adds wheels."""

    bodies: list[Body]
    contacts: list[Contact]
    drives: list[Drive]

    def _join(self, connection: Connection) -> Connection:
        raise NotImplementedError

    def add_wheel(
        self,
        name: str,
        wheel: AbstractWheel,
        *,
        on: BodyLike,
        at: Any = ORIGIN,
        axis: Any = "y",
        mass: Any,
        inertia: Any = None,
        motor: Motor | bool | None = None,
        ground: BodyLike | Plane | None = None,
        coordinate: str | None = None,
        speed: str | None = None,
        shape: Shape | Sequence[Shape] | None = None,
    ) -> Body:
        """Add a wheel: its body, the joint it spins on, its contact and perhaps its motor.

        The wheel's frame is at its centre, parallel to the carrier's at zero angle.

        Args:
            name: Name of body, joint, contact and motor alike.
            wheel: `Rolling(radius=0.1)`, `Mecanum(...)`, ...
            on: The body that carries it.
            at, axis: Centre [m] and spin axis in the carrier's frame; a positive rate about +y
                rolls towards +x on ground below.
            mass, inertia: Mass and inertia of the wheel; inertia of a uniform disk (or ball) by
                default.
            motor: `True` or a `Motor`: it turns the wheel and reacts on the carrier.
            ground: What it rolls on: a `Plane`, a body (its z = 0 plane), or the world's z = 0.
            coordinate, speed: Names instead of `name` and `name.rate`.
            shape: What pictures show, one shape or several; left out, a wheel of its radius.
        """
        made = make_wheel(
            name,
            wheel,
            on=on,
            at=at,
            axis=axis,
            mass=mass,
            inertia=inertia,
            motor=motor,
            ground=ground,
            coordinate=coordinate,
            speed=speed,
            shape=shape,
        )
        return self._add_made(made)

    def _add_made(self, made: MadeWheel) -> Body:
        self.bodies.append(made.body)
        self._join(made.connection)
        self.contacts.append(made.contact)
        if made.motor:
            self.drives.append(Drive(made.body.name, made.motor, made.connection.name))
        return made.body

    def add_contact(
        self,
        name: str,
        wheel: AbstractWheel,
        *,
        body: BodyLike,
        at: Any = ORIGIN,
        axis: Any = "y",
        ground: BodyLike | Plane | None = None,
    ) -> Contact:
        """Let a body that exists already roll: a free disk, a ball, a skate on a sleigh.

        Args:
            name: Unique among the contacts.
            wheel: What may not slip.
            body: The body that rolls.
            at, axis: Wheel centre [m] and spin axis in the body's frame.
            ground: As for `add_wheel`.
        """
        contact = make_contact(name, wheel, body, at=at, axis=axis, ground=ground)
        self.contacts.append(contact)
        return contact

    def add_caster(
        self,
        name: str,
        wheel: AbstractWheel,
        *,
        on: BodyLike,
        at: Any,
        trail: Any,
        mass: Any,
        drop: Any = 0.0,
        inertia: Any = None,
        bracket_mass: Any = 0.0,
        bracket_com: Any = None,
        bracket_inertia: Any = None,
        pivot_axis: Any = "z",
        ground: BodyLike | Plane | None = None,
    ) -> Body:
        """Add a caster: a bracket that swivels, carrying a wheel that trails behind its pivot.

        Makes the body and joint `name_bracket` (swivel) and the wheel `name`. At zero swivel the
        wheel stands `trail` behind the pivot along the carrier's -x and spins about its y.

        Args:
            name: Name of the wheel.
            wheel: Usually `Rolling(radius)`.
            on, at: The carrier and the pivot's place on it [m].
            trail: From pivot to wheel centre, horizontally [m].
            mass, inertia: Mass and inertia of the wheel.
            drop: From pivot down to the wheel centre [m].
            bracket_mass, bracket_com, bracket_inertia: Those of the bracket, massless by default.
            pivot_axis: Swivel axis in the carrier's frame.
            ground: As for `add_wheel`.
        """
        owner = f"caster '{as_name('caster', name)}'"
        trail, drop = (
            convert(owner, n, as_scalar, v) for n, v in (("trail", trail), ("drop", drop))
        )
        bracket = make_body(
            f"{name}_bracket",
            bracket_mass,
            (minus(trail / 2.0), 0.0, minus(drop / 2.0)) if bracket_com is None else bracket_com,
            Inertia.point() if bracket_inertia is None else bracket_inertia,
            None,
        )
        axis = convert(owner, "pivot_axis", as_vector, pivot_axis)
        swivel = make_connection(
            bracket.name,
            Revolute(axis),
            body_name(owner, "on", on),
            bracket,
            at=convert(owner, "at", as_vector, at),
        )
        made = make_wheel(
            name,
            wheel,
            on=bracket,
            at=(minus(trail), 0.0, minus(drop)),
            mass=mass,
            inertia=inertia,
            ground=ground,
        )
        self.bodies.append(bracket)
        self._join(swivel)
        return self._add_made(made)
