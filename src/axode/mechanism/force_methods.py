"""The part of a `Mechanism` that adds what acts on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument
from axode.mechanism.elements.bodies import Body
from axode.mechanism.elements.forces import (
    Drive,
    JointDamper,
    JointSpring,
    Motor,
    Prescribed,
    Strut,
    Wrench,
)
from axode.mechanism.elements.parts import (
    BodyLike,
    Connection,
    as_motion,
    as_name,
    body_name,
    convert,
    joint_name,
    make_motor,
)
from axode.mechanism.values.expressions import Scalar, as_scalar, parse_scalar
from axode.mechanism.values.geometry import ORIGIN, as_vector


class ForceMethods:
    """The part of a `Mechanism` that adds forces and prescribed motions."""

    connections: list[Connection]
    drives: list[Drive]
    dampers: list[JointDamper]
    springs: list[JointSpring]
    struts: list[Strut]
    wrenches: list[Wrench]
    prescribed: list[Prescribed]

    def add_motor(
        self,
        name: str,
        joint: str | Connection | Body,
        *,
        motor: Motor | None = None,
        limit: Any = None,
        gear: Any = 1.0,
        rotor_inertia: Any = 0.0,
        input: str | None = None,
    ) -> Drive:
        """Drive a joint: torque on its child, reaction on its parent.

        Args:
            name: Unique among the motors; its input is `name.torque` or `name.force`.
            joint: The joint, or one coordinate or speed of a joint that has several.
            motor: A `Motor`, instead of the next three.
            limit, gear, rotor_inertia: As in `Motor`.
            input: A name for the input instead of the usual one.
        """
        check_arguments(ForceMethods.add_motor, locals())
        owner = f"motor '{as_name('motor', name)}'"
        made = make_motor(owner, motor, limit, gear, rotor_inertia)
        drive = Drive(name, made, joint_name(owner, joint, self.connections), input)
        self.drives.append(drive)
        return drive

    def add_damper(
        self,
        name: str,
        joint: str | Connection | Body | None = None,
        *,
        coefficient: Any,
        parent: BodyLike | None = None,
        child: BodyLike | None = None,
        at: Any = ORIGIN,
        child_at: Any = ORIGIN,
    ) -> JointDamper | Strut:
        """Add viscous friction to a joint, or a dashpot between points of two bodies.

        Args:
            name: Unique among dampers and springs.
            joint: The joint (or one coordinate of it); left out for a dashpot.
            coefficient: [N m s/rad or N s/m]
            parent, child, at, child_at: The dashpot's two ends [m].
        """
        owner = f"damper '{as_name('damper', name)}'"
        strength = convert(owner, "coefficient", as_scalar, coefficient)
        if joint is not None:
            damper = JointDamper(name, joint_name(owner, joint, self.connections), strength)
            self.dampers.append(damper)
            return damper
        return self._strut(owner, name, parent, child, at, child_at, 0.0, 0.0, strength)

    def add_spring(
        self,
        name: str,
        joint: str | Connection | Body | None = None,
        *,
        stiffness: Any,
        rest: Any = 0.0,
        parent: BodyLike | None = None,
        child: BodyLike | None = None,
        at: Any = ORIGIN,
        child_at: Any = ORIGIN,
        damping: Any = 0.0,
    ) -> JointSpring | Strut:
        """Add a spring to a joint, or one between points of two bodies.

        Args:
            name: Unique among dampers and springs.
            joint: The joint (or one coordinate of it); left out for a spring between points.
            stiffness: [N m/rad or N/m]
            rest: Coordinate [rad or m] or length [m] at which it is slack.
            parent, child, at, child_at: The two ends of a spring between points [m].
            damping: Damping of a spring between points [N s/m].
        """
        owner = f"spring '{as_name('spring', name)}'"
        strength = convert(owner, "stiffness", as_scalar, stiffness)
        slack = convert(owner, "rest", as_scalar, rest)
        friction = convert(owner, "damping", as_scalar, damping)
        if joint is None:
            return self._strut(owner, name, parent, child, at, child_at, strength, slack, friction)
        if friction != 0.0:
            raise InvalidArgument(
                f"{owner}: friction of a joint is added as a damper, with add_damper"
            )
        spring = JointSpring(name, joint_name(owner, joint, self.connections), strength, slack)
        self.springs.append(spring)
        return spring

    def _strut(
        self,
        owner: str,
        name: str,
        parent: Any,
        child: Any,
        at: Any,
        child_at: Any,
        stiffness: Scalar,
        rest: Scalar,
        damping: Scalar,
    ) -> Strut:
        if parent is None or child is None:
            raise InvalidArgument(f"{owner}: give the joint it acts on, or parent and child")
        strut = Strut(
            name,
            body_name(owner, "parent", parent),
            body_name(owner, "child", child),
            convert(owner, "at", as_vector, at),
            convert(owner, "child_at", as_vector, child_at),
            stiffness,
            rest,
            damping,
        )
        self.struts.append(strut)
        return strut

    def add_wrench(
        self,
        name: str,
        body: BodyLike,
        *,
        at: Any = ORIGIN,
        frame: Literal["world", "body"] = "world",
    ) -> Wrench:
        """Let a wrench from outside act at a point of a body; its six numbers are inputs.

        Args:
            name: Unique; the inputs are `name.mx` ... `name.fz` [N m, N].
            body: Where it acts.
            at: The point, in the body's frame [m].
            frame: Whose axes the numbers are in.
        """
        check_arguments(ForceMethods.add_wrench, locals())
        owner = f"wrench '{as_name('wrench', name)}'"
        wrench = Wrench(
            name, body_name(owner, "body", body), convert(owner, "at", as_vector, at), frame
        )
        self.wrenches.append(wrench)
        return wrench

    def prescribe(self, coordinate: str, motion: Callable[[Any], Any] | Scalar | str) -> Prescribed:
        """Make a coordinate follow a function of time; the force that does it is an output.

        Args:
            coordinate: Its name.
            motion: A function of time [s] written with `numpy.sin` and the like (it is called
                once with a symbol), a formula, also as text such as "0.1 * sin(2 * pi * t)" of
                time and the mechanism's parameters, or a number that holds the coordinate still.
        """
        name = as_name("coordinate", coordinate)
        if isinstance(motion, str):
            from axode.mechanism.topology import parameters_of

            mechanism: Any = self
            try:
                motion = parse_scalar(motion, parameters_of(mechanism))
            except ValueError as error:
                raise InvalidArgument(f"prescribe '{name}', motion: {error}") from None
        prescribed = Prescribed(name, as_motion(name, motion))
        self.prescribed.append(prescribed)
        return prescribed
