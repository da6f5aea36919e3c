"""The parts of a `Mechanism` that add what acts on it, couple its joints, and change its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, TypeVar

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, shortened
from axode.mechanism.elements.bodies import GROUND, Body, Inertia, Shape
from axode.mechanism.elements.forces import (
    Drive,
    JointDamper,
    JointSpring,
    Motor,
    Prescribed,
    Strut,
    Wrench,
)
from axode.mechanism.elements.joints import Coupling
from axode.mechanism.elements.parts import (
    BodyLike,
    Connection,
    as_motion,
    as_name,
    body_name,
    convert,
    joint_name,
    make_body,
    make_connection,
    make_contact,
    make_motor,
)
from axode.mechanism.elements.wheels import AbstractWheel, Contact
from axode.mechanism.values.expressions import (
    Coordinate,
    Expression,
    JointNames,
    Scalar,
    as_scalar,
    numeric,
    parse_scalar,
)
from axode.mechanism.values.geometry import ORIGIN, as_vector, minus

JointLike = str | Connection | Body


class ActionMethods:
    """The part of a `Mechanism` that adds forces, prescribed motions and couplings."""

    connections: list[Connection]
    couplings: list[Coupling]
    drives: list[Drive]
    dampers: list[JointDamper]
    springs: list[JointSpring]
    struts: list[Strut]
    wrenches: list[Wrench]
    prescribed: list[Prescribed]

    def add_motor(
        self,
        name: str,
        joint: JointLike,
        *,
        motor: Motor | None = None,
        input: str | None = None,
        **numbers: Any,
    ) -> Drive:
        """Drive a joint: torque on its child, reaction on its parent.

        Args:
            name: Unique among the motors; its input is `name.torque` or `name.force`.
            joint: The joint, or one coordinate or speed of a joint that has several.
            motor: A `Motor`, instead of its numbers.
            input: A name for the input instead of the usual one.
            numbers: Those of a `Motor`: `limit`, `gear`, `rotor_inertia`, ...
        """
        given = {"name": name, "joint": joint, "motor": motor, "input": input}
        check_arguments(ActionMethods.add_motor, given)
        owner = f"motor '{as_name('motor', name)}'"
        made = make_motor(owner, motor, numbers)
        drive = Drive(name, made, joint_name(owner, joint, self.connections), input)
        self.drives.append(drive)
        return drive

    def add_damper(
        self,
        name: str,
        joint: JointLike | None = None,
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
        return self._strut(owner, name, (parent, child), (at, child_at), 0.0, 0.0, strength)

    def add_spring(
        self,
        name: str,
        joint: JointLike | None = None,
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
            ends, places = (parent, child), (at, child_at)
            return self._strut(owner, name, ends, places, strength, slack, friction)
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
        ends: tuple[Any, Any],
        places: tuple[Any, Any],
        stiffness: Scalar,
        rest: Scalar,
        damping: Scalar,
    ) -> Strut:
        if any(end is None for end in ends):
            raise InvalidArgument(f"{owner}: give the joint it acts on, or parent and child")
        strut = Strut(
            name,
            body_name(owner, "parent", ends[0]),
            body_name(owner, "child", ends[1]),
            convert(owner, "at", as_vector, places[0]),
            convert(owner, "child_at", as_vector, places[1]),
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
        check_arguments(ActionMethods.add_wrench, locals())
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

    # couplings ------------------------------------------------------------------------------------

    def add_coupling(
        self,
        name: str,
        terms: Mapping[Any, Any] | Sequence[tuple[Any, Any]],
        *,
        offset: Any = 0.0,
        function: Callable[[Any], Any] | Scalar | str = 0.0,
    ) -> Coupling:
        """Couple joints: coefficients times coordinates add to `offset` and a function of others.

        Terms that name coordinates (or joints that have one) relate positions, and so speeds. If
        one term names a speed, such as `base.surge` or `left.rate`, the relation is one of speeds:
        the rates of all terms add to zero, and positions are free.

        Args:
            name: Unique among the couplings. The torque or force that it carries is the
                multiplier `name.coupling`; each joint feels its own coefficient times it.
            terms: Coefficients by joint, coordinate or speed: `{"finger2": 1.0, "finger1": -1.0}`.
                The first term sets the unit: the sum, the offset and the multiplier are in [rad]
                and [N m] if it turns, in [m] and [N] if it slides.
            offset: What the terms add to [unit of the first term].
            function: A function of coordinates that is added to the offset, for relations that are
                not linear: text such as "e * sin(cam)" of joints and the mechanism's parameters,
                or a function that is called once with their symbols by name,
                `lambda q: e * np.sin(q["cam"])`. Value and slope must not jump.
        """
        owner = f"coupling '{as_name('coupling', name)}'"
        coupling = Coupling(
            name,
            self._terms(owner, terms),
            convert(owner, "offset", as_scalar, offset),
            self._function(owner, "function", function, JointNames()),
        )
        self.couplings.append(coupling)
        return coupling

    def add_cam(
        self,
        name: str,
        follower: JointLike,
        cam: JointLike,
        profile: Callable[[Any], Any] | Scalar | str,
        *,
        offset: Any = 0.0,
    ) -> Coupling:
        """Let a cam move its follower: follower = profile(cam) + offset.

        The follower stays on the cam whichever way it is pushed, as in a groove; the multiplier
        shows where a spring would have to hold it there.

        Args:
            name: Unique among the couplings; its multiplier is the force or torque on the follower.
            follower: The joint of the follower, which slides or swings.
            cam: The joint of the cam.
            profile: Position of the follower by the cam's angle: a function written with
                `numpy.sin` and the like, called once with a symbol, or a formula, also as text
                such as "e * sin(cam)". Value and slope must not jump.
            offset: Added to the profile [unit of the follower].
        """
        owner = f"coupling '{as_name('coupling', name)}'"
        angle = Coordinate(joint_name(owner, cam, self.connections))
        function = self._function(owner, "profile", profile, angle)
        return self.add_coupling(name, [(follower, 1.0)], offset=offset, function=function)

    def _function(self, owner: str, what: str, function: Any, symbols: Any) -> Scalar:
        """A function of coordinates as a formula: text is read, a callable is called once."""
        from axode.mechanism.topology import parameters_of

        mechanism: Any = self
        try:
            if isinstance(function, str):
                return parse_scalar(function, JointNames(parameters_of(mechanism)))
            if callable(function) and not isinstance(function, Expression):
                function = function(symbols)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"{owner}, {what}: {error}") from None
        except AttributeError as error:
            message = f'{owner}, {what}: {error}; coordinates are read as q["cam"]'
            raise InvalidArgument(message) from None
        return convert(owner, what, as_scalar, function)

    def _terms(self, owner: str, terms: Any) -> tuple[tuple[str, Scalar], ...]:
        pairs = list(terms.items()) if isinstance(terms, Mapping) else terms
        if isinstance(pairs, str) or not isinstance(pairs, Sequence):
            pairs = [None]
        found = []
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise InvalidArgument(
                    f"{owner}, terms: expected coefficients by joint such as "
                    f'{{"finger2": 1.0, "finger1": -1.0}}, got {shortened(terms)}'
                )
            joint = joint_name(owner, pair[0], self.connections)
            found.append((joint, convert(owner, f"terms, {joint}", as_scalar, pair[1])))
        return tuple(found)

    def add_mimic(
        self,
        name: str,
        joint: JointLike,
        of: JointLike,
        *,
        multiplier: Any = 1.0,
        offset: Any = 0.0,
    ) -> Coupling:
        """Let a joint follow another: joint = multiplier * of + offset.

        Args:
            name: Unique among the couplings; its multiplier is what `joint` feels.
            joint: The joint that follows.
            of: The joint that leads.
            multiplier: Motion of `joint` per unit motion of `of`.
            offset: Position of `joint` where `of` is zero [rad or m].
        """
        return self._follow(name, joint, [of], "multiplier", multiplier, offset)

    def add_gear(
        self, name: str, joint_a: JointLike, joint_b: JointLike, ratio: Any, *, offset: Any = 0.0
    ) -> Coupling:
        """Let two wheels mesh: they turn opposite ways, a = -ratio * b + offset.

        Both joints have the body that carries the two axes as parent, and their axes point the same
        way. For a planetary gear, join sun, planets and ring to the carrier.

        Args:
            name: Unique among the couplings; its multiplier is the torque on wheel a.
            joint_a, joint_b: The joints of the two wheels.
            ratio: Turns of a per turn of b: teeth of b over teeth of a. Negative for a ring gear,
                which turns the same way as its pinion.
            offset: Angle of a where b is zero [rad].
        """
        return self._follow(name, joint_a, [joint_b], "ratio", ratio, offset, opposite=True)

    def add_belt(
        self,
        name: str,
        joint_a: JointLike,
        joint_b: JointLike,
        ratio: Any = 1.0,
        *,
        offset: Any = 0.0,
    ) -> Coupling:
        """Join two wheels by a belt or chain: they turn the same way, a = ratio * b + offset.

        Args:
            name: Unique among the couplings; its multiplier is the torque on wheel a.
            joint_a, joint_b: The joints of the two wheels, on one body, axes pointing the same way.
            ratio: Turns of a per turn of b: radius of b over radius of a. Negative if crossed.
            offset: Angle of a where b is zero [rad].
        """
        return self._follow(name, joint_a, [joint_b], "ratio", ratio, offset)

    def add_differential(
        self,
        name: str,
        shaft: JointLike,
        left: JointLike,
        right: JointLike,
        ratio: Any = 1.0,
        *,
        offset: Any = 0.0,
    ) -> Coupling:
        """Drive two joints by one shaft, which turns at their mean: shaft = ratio (left + right)/2.

        Both sides get the same torque, half of `ratio` times the shaft's.

        Args:
            name: Unique among the couplings; its multiplier is the torque on the shaft.
            shaft: The joint of the shaft (or of the differential's cage).
            left, right: The joints of the two sides.
            ratio: Turns of the shaft per turn of the cage; negative if it turns the other way.
            offset: Angle of the shaft where both sides are zero [rad].
        """
        return self._follow(name, shaft, [left, right], "ratio", ratio, offset)

    def add_rack(
        self, name: str, pinion: JointLike, slide: JointLike, radius: Any, *, offset: Any = 0.0
    ) -> Coupling:
        """Let a pinion move a rack: slide = radius * pinion + offset.

        Args:
            name: Unique among the couplings; its multiplier is the force on the rack.
            pinion: The joint that turns.
            slide: The joint of the rack, which slides.
            radius: Radius of the pinion [m]; negative if the rack moves along its -axis.
            offset: Position of the rack where the pinion's angle is zero [m].
        """
        return self._follow(name, slide, [pinion], "radius", radius, offset)

    def add_screw(
        self, name: str, turning: JointLike, slide: JointLike, pitch: Any, *, offset: Any = 0.0
    ) -> Coupling:
        """Let a spindle move its nut: slide = pitch * turning + offset.

        A `Screw` joint does the same in one joint; here spindle and nut keep joints of their own.

        Args:
            name: Unique among the couplings; its multiplier is the force on the nut.
            turning: The joint of the spindle.
            slide: The joint of the nut, which slides.
            pitch: Advance per angle [m/rad], as that of a `Screw` joint.
            offset: Position of the nut where the spindle's angle is zero [m].
        """
        return self._follow(name, slide, [turning], "pitch", pitch, offset)

    def _follow(
        self,
        name: str,
        joint: JointLike,
        leaders: list[JointLike],
        what: str,
        ratio: Any,
        offset: Any,
        *,
        opposite: bool = False,
    ) -> Coupling:
        """Couple a joint to the mean of others: joint = ratio * mean + offset."""
        motion = convert(f"coupling '{as_name('coupling', name)}'", what, as_scalar, ratio)
        if len(leaders) > 1:
            motion = motion / float(len(leaders))
        coefficient = motion if opposite else minus(motion)
        terms = [(joint, 1.0), *((leader, coefficient) for leader in leaders)]
        return self.add_coupling(name, terms, offset=offset)


# changes of parts ---------------------------------------------------------------------------------


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
