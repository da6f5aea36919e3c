"""The mechanism: bodies joined in a tree, joints that close loops, wheels, and what acts on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from axode.argument_types import check_arguments
from axode.errors import MechanismError
from axode.mechanism.action_methods import ActionMethods, PartMethods
from axode.mechanism.elements.bodies import GROUND, Body, Inertia, Shape
from axode.mechanism.elements.forces import (
    Drive,
    JointDamper,
    JointSpring,
    Measure,
    Motor,
    Prescribed,
    Strut,
    Wrench,
)
from axode.mechanism.elements.joints import AbstractJoint, Coupling, Revolute
from axode.mechanism.elements.parts import (
    BodyLike,
    Connection,
    MadeWheel,
    as_home,
    as_name,
    body_name,
    convert,
    make_body,
    make_connection,
    make_contact,
    make_wheel,
)
from axode.mechanism.elements.wheels import AbstractWheel, Contact, Plane
from axode.mechanism.quasi_velocities import Definition, QuasiVelocity
from axode.mechanism.values.expressions import as_scalar
from axode.mechanism.values.geometry import NO_ROTATION, ORIGIN, as_vector, minus
from axode.numerics.tolerances import LOOP_TOLERANCE
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.formats.written.mechanism_text import MechanismText
    from axode.symbolic.equations import Equations


@dataclass
class Mechanism(ActionMethods, PartMethods):
    """A description of a mechanism, grown by its `add_` methods.

    Nothing is checked while it grows; `check` reports all faults at once and `derive` checks first.
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
    quasi_velocities: list[QuasiVelocity] = field(default_factory=list)  # see `derive`

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
        shape: Shape | Sequence[Shape] | None = None,
    ) -> Body:
        """Add a rigid body.

        Args:
            name: Unique among the bodies.
            mass: [kg]
            com: Mass centre in the body's frame [m].
            inertia: About the mass centre in the body's axes [kg m^2]: three principal moments, a
                3 x 3 tensor or an `Inertia`; left out, that of a solid of the given shape about
                its own centre, also where `com` is beside it: a `PlausibilityWarning` says if it is
                not even inside.
            shape: What pictures show: one shape or several.
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
        armature: Any = 0.0,
        friction: Any = None,
        stops: Any = None,
        restitution: Any = 0.0,
    ) -> Connection:
        """Join two bodies; a joint whose child is held by another joint already closes a loop.

        Args:
            name: Unique among joints, loops and wheels.
            joint: What may move: `Revolute("z")`, `Floating()`, ...
            parent, child: The two bodies.
            at, rotation: The joint's frame in the parent [m; roll-pitch-yaw, quaternion or matrix].
            child_at, child_rotation: The joint's frame in the child.
            coordinates, speeds: Names instead of the usual ones (`name`, `name.rate`, ...).
            armature: Inertia that each speed feels besides the bodies', as of a rotor that nothing
                drives [kg m^2, or kg for a speed in m/s].
            friction: Dry friction of a joint with one coordinate, or (static, kinetic) [N m or N].
            stops: Lowest and highest coordinate, None for no stop on a side [rad or m].
            restitution: Part of the impulse that its stops give back, 0 to 1.
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
            armature=armature,
            friction=friction,
            stops=stops,
            restitution=restitution,
        )
        return self._join(connection)

    def _join(self, connection: Connection) -> Connection:
        child = connection.child
        held = child == GROUND.name or any(other.child == child for other in self.connections)
        (self.loops if held else self.connections).append(connection)
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

    # wheels --------------------------------------------------------------------------------------

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
        contact = make_contact(name, wheel, name, axis=axis, ground=ground)
        names = {"coordinates": coordinate, "speeds": speed}
        made = make_wheel(contact, on, at, mass, inertia, motor=motor, shape=shape, **names)
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
        """Let a body that exists already roll or touch: a free disk, a skate on a sleigh, a bumper.

        `Point(friction=0.5)` is a point of the body that may touch the ground.

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
        contact = make_contact(name, wheel, name, ground=ground)
        made = make_wheel(contact, bracket, (minus(trail), 0.0, minus(drop)), mass, inertia)
        self.bodies.append(bracket)
        self._join(swivel)
        return self._add_made(made)

    @property
    def ideal_contacts(self) -> list[Contact]:
        """Contacts that keep touching the ground and never slip."""
        return [contact for contact in self.contacts if contact.wheel.is_ideal]

    @property
    def contact_parts(self) -> list[Contact | Connection]:
        """Contacts with friction, and joints that rub or have stops."""
        return [
            *(contact for contact in self.contacts if not contact.wheel.is_ideal),
            *(joint for joint in self.connections if joint.rubs_or_stops),
        ]

    def ideal(self) -> Mechanism:
        """Return a copy whose wheels never slip nor lift, without stops and dry friction.

        Points that may touch the ground are left out.
        """
        made = self.copy()
        none: dict[str, Any] = {"friction": None, "restitution": 0.0}
        wheel = none | {"rolling_resistance": 0.0, "scrub": 0.0}
        rolling = [replace(c, wheel=replace(c.wheel, **wheel)) for c in self.contacts]
        made.contacts = [contact for contact in rolling if contact.wheel.is_ideal]
        made.connections = [replace(c, stops=None, **none) for c in self.connections]
        return made

    # what is measured, and where it starts ----------------------------------------------------

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
            unit: Unit of a function's value.
        """
        check_arguments(Mechanism.measure, locals())
        owner = f"measure '{name}'"
        function = kind if callable(kind) else None
        measure = Measure(
            as_name("measure", name),
            "function" if function else str(kind),
            "" if isinstance(body, str) and not body else body_name(owner, "body", body),
            convert(owner, "at", as_vector, at),
            body_name(owner, "other", other),
            convert(owner, "other_at", as_vector, other_at),
            function,
            unit,
        )
        self.measures.append(measure)
        return measure

    def set_home(self, coordinates: Mapping[str, float] | None = None, /, **more: float) -> None:
        """Set home, a configuration near which loops close; it picks the branch (elbow up or down).

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
        """Report everything wrong with the description at once.

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
        independent: Sequence[str] | Mapping[str, Definition] | None = None,
        self_check: bool = True,
        reduce: bool = True,
    ) -> Equations:
        """Derive the equations of motion.

        Args:
            formulation: "recursive", "complement", "multipliers", "lagrange", "virtual_work",
                "spatial_operators", "pseudo_joints" or "reduced_order" (loops), or "legs"
                (platforms); all give the same motion.
            independent: Names of the speeds to keep; chosen for you when left out. Combinations of
                speeds may be among them, by formula: `{"v [m/s]": "r / 2 * (left + right)", ...}`
                or `["v [m/s] = ...", ...]`, or the name of a measure that is such a function.
            self_check: Compare the equations with Newton's and Euler's laws of the bodies at two
                states, and each main function when it is built; takes milliseconds.
            reduce: Write floating bases that contacts keep from tilting as bases that only turn
                ("recursive" does). Names and results stay, expressions are far shorter; they hold
                on the side on which home stands. False keeps those of a body free in space.

        Raises:
            MechanismError: if the description is wrong.
            InvalidIndependent: if the speeds named cannot describe the motion.
            SelfCheckFailed: if the equations are not those of the description.
            NotApplicable: if there are more joints than equations written out can serve.
        """
        check_arguments(Mechanism.derive, locals())
        from axode.mechanism.checks import require_derivable

        require_derivable(self)
        return call_stage("derive", self.copy(), formulation, independent, self_check, reduce)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mechanism to a TOML file that `axode.load` reads back exactly."""
        call_stage("save", self, path)

    def to_urdf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as URDF: a tree of links and joints, for ROS and others.

        Universal and cylindrical joints are two joints with a massless link between them, a ball
        joint is three hinges, a screw is a hinge and a slide that follows it.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            NotApplicable: listing everything that URDF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that URDF cannot express.
        """
        check_arguments(Mechanism.to_urdf, locals())
        return call_stage("urdf_text", self, path, parameters, strict=strict)

    def to_mjcf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as MJCF, for MuJoCo.

        Loops and couplings are equality constraints, which MuJoCo holds with stiff springs. The
        home configuration is the keyframe `home`.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            LoopNotClosed: if no configuration near home closes its loops.
            NotApplicable: listing everything that MJCF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that MJCF cannot express.
        """
        check_arguments(Mechanism.to_mjcf, locals())
        return call_stage("mjcf_text", self, path, parameters, strict=strict)

    def to_sdf(
        self,
        path: str | PathLike[str] | None = None,
        *,
        parameters: Mapping[str, float] | None = None,
        strict: bool = False,
    ) -> MechanismText:
        """Write the mechanism as SDF, for Gazebo, Drake and others.

        The links of a mechanism with loops are placed where its loops are closed near home, and
        its coordinates count from there: joints of SDF have one frame and not two.

        Args:
            path: File to write; left out, only the text is returned.
            parameters: Values of parameters by name; their defaults for those left out.
            strict: Raise an error instead of a warning if something cannot be written.

        Raises:
            MechanismError: if the description is wrong.
            LoopNotClosed: if no configuration near home closes its loops.
            NotApplicable: listing everything that SDF cannot express, if `strict`.
            FileError: if the file cannot be written; one that was there is left as it was.

        Warns:
            OmissionWarning: listing everything that SDF cannot express.
        """
        check_arguments(Mechanism.to_sdf, locals())
        return call_stage("sdf_text", self, path, parameters, strict=strict)

    def copy(self) -> Mechanism:
        """Return an independent copy; later `add_` calls on one leave the other alone."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return Mechanism(**{n: copy(v) for n, v in values.items()})

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

    def _repr_html_(self) -> str:
        return call_stage("mechanism_html", self)


__all__ = ["BodyLike", "Connection", "Mechanism"]
