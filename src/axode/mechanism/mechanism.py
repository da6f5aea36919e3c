"""The mechanism: bodies joined in a tree, chords that close it, and what acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from axode.errors import InvalidArgument, MechanismError
from axode.mechanism.elements.bodies import GROUND, Body, Inertia, Shape
from axode.mechanism.elements.couplings import Coupling, CouplingMethods
from axode.mechanism.elements.forces import (
    Drive,
    JointDamper,
    JointSpring,
    Motor,
    Prescribed,
    Strut,
    Wrench,
)
from axode.mechanism.elements.joints import AbstractJoint, Revolute
from axode.mechanism.elements.measures import Measure
from axode.mechanism.elements.parts import (
    BodyLike,
    Connection,
    MadeWheel,
    as_home,
    as_motion,
    as_name,
    body_name,
    convert,
    joint_name,
    make_body,
    make_connection,
    make_contact,
    make_motor,
    make_wheel,
)
from axode.mechanism.elements.wheels import AbstractWheel, Contact, Plane
from axode.mechanism.values.expressions import Scalar, as_scalar
from axode.mechanism.values.geometry import NO_ROTATION, ORIGIN, as_vector, minus

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


LOOP_TOLERANCE = 1e-4  # numbers of five digits close a loop of several links to this


@dataclass
class Mechanism(CouplingMethods):
    """A description of a mechanism, grown by its `add_` methods.

    Nothing is checked while it grows; `check` tells all faults at once and `derive` checks first.
    Positions are in metres, angles in radians, everything else in SI units. Wherever a number may
    stand, a `Parameter` or a formula of parameters may stand too.

    Args:
        name: What messages and files call it.
        gravity: Acceleration of gravity in the world [m/s^2].
        loop_tolerance: How much constraints that follow from others may contradict them, as they
            do where numbers were rounded: radians, and parts of the mechanism's length. They are
            left out and reported; zero refuses them.
    """

    name: str
    gravity: Any = (0.0, 0.0, -9.81)
    bodies: list[Body] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    loops: list[Connection] = field(default_factory=list)
    contacts: list[Contact] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    dampers: list[JointDamper] = field(default_factory=list)
    springs: list[JointSpring] = field(default_factory=list)
    struts: list[Strut] = field(default_factory=list)
    wrenches: list[Wrench] = field(default_factory=list)
    prescribed: list[Prescribed] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    home_coordinates: dict[str, float] = field(default_factory=dict)
    loop_tolerance: float = LOOP_TOLERANCE

    def __post_init__(self) -> None:
        owner = f"mechanism '{as_name('mechanism', self.name)}'"
        self.gravity = convert(owner, "gravity", as_vector, self.gravity)

    @property
    def ground(self) -> Body:
        """The world: it never moves."""
        return GROUND

    # bodies and joints -------------------------------------------------------------------------

    def add_body(
        self,
        name: str,
        *,
        mass: Any,
        com: Any = ORIGIN,
        inertia: Any = None,
        shape: Shape | None = None,
    ) -> Body:
        """Add a rigid body.

        Args:
            name: Unique among the bodies.
            mass: [kg]
            com: Mass centre in the body's frame [m].
            inertia: About the mass centre in the body's axes [kg m^2]: three principal moments, a
                3 x 3 tensor or an `Inertia`; left out, that of a solid of the given shape about
                its own centre, also where `com` is beside it: a `Doubtful` warning says if it is
                not even inside.
            shape: What pictures show.
        """
        body = make_body(name, mass, com, inertia, shape)
        self.bodies.append(body)
        return body

    def add_joint(
        self,
        name: str,
        joint: AbstractJoint,
        *,
        parent: BodyLike,
        child: BodyLike,
        at: Any = ORIGIN,
        rotation: Any = NO_ROTATION,
        child_at: Any = ORIGIN,
        child_rotation: Any = NO_ROTATION,
        coordinates: Sequence[str] = (),
        speeds: Sequence[str] = (),
    ) -> Connection:
        """Join two bodies; a joint whose child is held by another joint already closes a loop.

        Args:
            name: Unique among joints, loops and wheels.
            joint: What may move: `Revolute("z")`, `Floating()`, ...
            parent, child: The two bodies.
            at, rotation: The joint's frame in the parent [m; roll-pitch-yaw, quaternion or matrix].
            child_at, child_rotation: The joint's frame in the child.
            coordinates, speeds: Names instead of the usual ones (`name`, `name.rate`, ...).
        """
        connection = make_connection(
            name,
            joint,
            parent,
            child,
            at=at,
            rotation=rotation,
            child_at=child_at,
            child_rotation=child_rotation,
            coordinates=coordinates,
            speeds=speeds,
        )
        return self._join(connection)

    def _join(self, connection: Connection) -> Connection:
        held = {c.child for c in self.connections} | {GROUND.name}
        (self.loops if connection.child in held else self.connections).append(connection)
        return connection

    def add_loop(
        self,
        name: str,
        joint: AbstractJoint,
        *,
        parent: BodyLike,
        child: BodyLike,
        at: Any = ORIGIN,
        rotation: Any = NO_ROTATION,
        child_at: Any = ORIGIN,
        child_rotation: Any = NO_ROTATION,
    ) -> Connection:
        """Close a loop: like `add_joint` between two bodies that other joints hold already."""
        connection = make_connection(
            name,
            joint,
            parent,
            child,
            at=at,
            rotation=rotation,
            child_at=child_at,
            child_rotation=child_rotation,
        )
        self.loops.append(connection)
        return connection

    # wheels ------------------------------------------------------------------------------------

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
        shape: Shape | None = None,
    ) -> Body:
        """Add a wheel: its body, the joint it spins on, its contact and perhaps its motor.

        The wheel's frame is at its centre, parallel to the carrier's at zero angle.

        Args:
            name: Of body, joint, contact and motor alike.
            wheel: `Rolling(radius=0.1)`, `Mecanum(...)`, ...
            on: The body that carries it.
            at, axis: Centre [m] and spin axis in the carrier's frame; a positive rate about +y
                rolls towards +x on ground below.
            mass, inertia: Of the wheel; left out, inertia is that of a uniform disk (or ball).
            motor: `True` or a `Motor`: it turns the wheel and reacts on the carrier.
            ground: What it rolls on: a `Plane`, a body (its z = 0 plane), or the world's z = 0.
            coordinate, speed: Names instead of `name` and `name.rate`.
            shape: What pictures show; left out, a wheel of its radius.
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
            name: Of the wheel.
            wheel: Usually `Rolling(radius)`.
            on, at: The carrier and the pivot's place on it [m].
            trail: From pivot to wheel centre, horizontally [m].
            mass, inertia: Of the wheel.
            drop: From pivot down to the wheel centre [m].
            bracket_mass, bracket_com, bracket_inertia: Of the bracket, massless unless given.
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

    # forces ------------------------------------------------------------------------------------

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
            damping: Of a spring between points [N s/m].
        """
        owner = f"spring '{as_name('spring', name)}'"
        strength = convert(owner, "stiffness", as_scalar, stiffness)
        slack = convert(owner, "rest", as_scalar, rest)
        friction = convert(owner, "damping", as_scalar, damping)
        if joint is None:
            return self._strut(owner, name, parent, child, at, child_at, strength, slack, friction)
        if friction != 0.0:
            raise InvalidArgument(
                f"{owner}: friction of a joint is a damper of its own, add_damper"
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
        owner = f"wrench '{as_name('wrench', name)}'"
        wrench = Wrench(
            name, body_name(owner, "body", body), convert(owner, "at", as_vector, at), frame
        )
        self.wrenches.append(wrench)
        return wrench

    def prescribe(self, coordinate: str, motion: Callable[[Any], Any] | Scalar) -> Prescribed:
        """Make a coordinate follow a function of time; the force that does it is an output.

        Args:
            coordinate: Its name.
            motion: A function of time [s] written with `numpy.sin` and the like (it is called
                once with a symbol), a formula, or a number that holds the coordinate still.
        """
        name = as_name("coordinate", coordinate)
        prescribed = Prescribed(name, as_motion(name, motion))
        self.prescribed.append(prescribed)
        return prescribed

    def measure(
        self,
        name: str,
        kind: str | Callable[[Any], Any],
        *,
        body: BodyLike = "",
        at: Any = ORIGIN,
        other: BodyLike = GROUND,
        other_at: Any = ORIGIN,
        unit: str = "",
    ) -> Measure:
        """Name a quantity of the state, to be recorded, plotted, started from or waited for.

        Args:
            name: What to call it; "position" gives `name.x`, `name.y`, `name.z`.
            kind: "position", "velocity", "distance", "roll", "pitch", "yaw", their rates
                ("pitch_rate"), "surge", "sway", "heave"; or a function of the state's symbols,
                called once: `lambda s: s["left"] - s["right"]`.
            body, at: The body and the point of it that is meant [m].
            other, other_at: The far end of a distance.
            unit: Of a function's value.
        """
        owner = f"measure '{name}'"
        function = kind if callable(kind) else None
        measure = Measure(
            as_name("measure", name),
            "function" if function else str(kind),
            body_name(owner, "body", body) if body else "",
            convert(owner, "at", as_vector, at),
            body_name(owner, "other", other),
            convert(owner, "other_at", as_vector, other_at),
            function,
            unit,
        )
        self.measures.append(measure)
        return measure

    def home(self, coordinates: Mapping[str, float] | None = None, /, **more: float) -> None:
        """Name a configuration near which loops close; it picks the branch (elbow up or down).

        Args:
            coordinates: Values by name [m or rad].
            more: The same as keywords, for names without dots.
        """
        self.home_coordinates.update(as_home(coordinates, more))

    def chain_from_dh(self, rows: Sequence[Any], **options: Any) -> list[Body]:
        """Add a serial chain given by Denavit-Hartenberg rows: see `axode.chain_from_dh`."""
        from axode.mechanism.dh import add_chain

        return add_chain(self, rows, **options)

    # what it is good for -----------------------------------------------------------------------

    def check(self) -> None:
        """Tell everything wrong with the description at once.

        Raises:
            MechanismError: listing every fault with its remedy.
        """
        from axode.mechanism.checks import faults

        found = faults(self)
        if found:
            name = f"'{self.name}'" if self.name.isprintable() else repr(self.name)
            raise MechanismError(f"mechanism {name}", found)

    def derive(
        self,
        formulation: str = "recursive",
        independent: Sequence[str] | None = None,
        self_check: bool = True,
    ) -> Equations:
        """Derive the equations of motion.

        Args:
            formulation: "recursive", "complement", "multipliers", "lagrange", "virtual_work",
                "spatial_operators" or "legs" (platforms); all give the same motion.
            independent: Names of the speeds to keep; chosen for you when left out.
            self_check: Compare the equations with Newton's and Euler's laws of the bodies at two
                states, and each main function when it is built; takes milliseconds.

        Raises:
            MechanismError: if the description is wrong.
            InvalidIndependent: if the speeds named cannot describe the motion.
            SelfCheckFailed: if the equations are not those of the description.
            NotApplicable: if there are more joints than equations written out can serve.
        """
        from axode.mechanism.size import require_derivable
        from axode.symbolic.equations import derive

        require_derivable(self)
        return derive(self.copy(), formulation, independent, self_check)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mechanism to a TOML file that `axode.load` reads back exactly."""
        from axode.mechanism.files.loading import save

        save(self, path)

    def copy(self) -> Mechanism:
        """An independent copy; later `add_` calls on one leave the other alone."""
        lists = {n: list(getattr(self, n)) for n in _LISTS}
        return Mechanism(
            self.name,
            self.gravity,
            home_coordinates=dict(self.home_coordinates),
            loop_tolerance=self.loop_tolerance,
            **lists,
        )

    def __repr__(self) -> str:
        counted = [(len(self.bodies), "body", "bodies"), (len(self.connections), "joint", "joints")]
        others = (
            ("loop", self.loops),
            ("contact", self.contacts),
            ("coupling", self.couplings),
            ("motor", self.drives),
        )
        counted += [(len(group), what, what + "s") for what, group in others if group]
        parts = [f"{count} {one if count == 1 else many}" for count, one, many in counted]
        return f"Mechanism('{self.name}': {', '.join(parts)})"


_LISTS = (
    "bodies",
    "connections",
    "loops",
    "contacts",
    "couplings",
    "drives",
    "dampers",
    "springs",
    "struts",
    "wrenches",
    "prescribed",
    "measures",
)


__all__ = ["BodyLike", "Connection", "Mechanism"]
