"""Everything that can be wrong with a description, found before anything is derived.

Faults of two kinds: numbers that no part can have, whatever the others are, and relations between
parts, such as names that nothing carries. A file that is partly unreadable still gets the first.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from axode.errors import Fault, NotApplicable, shortened, suggest
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.forces import (
    KINDS,
    JointDamper,
    JointSpring,
    Strut,
    negative_constants,
)
from axode.mechanism.elements.wheels import Contact, friction_faults, restitution_fault
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import (
    coordinate_meanings,
    coordinate_names,
    coordinate_of,
    formulas_in,
    not_in_tree,
    parameters_of,
    quaternion_components,
    speed_meanings,
    speed_names,
    tree_order,
)
from axode.mechanism.values.expressions import (
    Expression,
    Scalar,
    depends_on_time,
    numeric,
    parameters_in,
    shown,
)
from axode.mechanism.values.geometry import axis_fault, rotation_fault, unit
from axode.numerics.tolerances import FIVE_DIGITS, NEGLIGIBLE

if TYPE_CHECKING:
    from axode.mechanism.mechanism import Mechanism

# size -----------------------------------------------------------------------------------


# Code without loops grows with every joint, and a matrix of the speeds with their square: of more,
# neither this machine's compiler nor its memory makes anything within minutes.
MAX_SPEEDS = 1000
MAX_BODIES = 5000  # of a file, those that joints fix to others too


def require_derivable(mechanism: Mechanism) -> None:
    """Raise an error early for what would take hours to derive.

    Raises:
        NotApplicable: saying how many speeds there are.
    """
    count = sum(len(connection.joint.speed_names) for connection in mechanism.connections)
    _check_speeds(f"'{mechanism.name}'", f"{count} speeds", count)


def require_readable(source: str, joints: Iterable[tuple[str, str]]) -> None:
    """Raise an error for a file that describes more than can be derived, before it is checked.

    Args:
        source: What messages call the file.
        joints: Child and type of every joint; several joints of one child close loops.

    Raises:
        NotApplicable: saying how many bodies move.
    """
    held: dict[str, bool] = {}
    for child, kind in joints:
        held[child] = held.get(child, False) or kind == "fixed"
    count = sum(not fixed for fixed in held.values())
    _check_speeds(source, f"{count} bodies that move", count)
    if len(held) > MAX_BODIES:
        raise NotApplicable(
            f"{source} has {len(held)} bodies, and files of at most {MAX_BODIES} are read.\n"
            "  Join bodies that are fixed to each other, or model a part of it."
        )


def joints_of_tables(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Child and type of every joint of a TOML file, as far as it is one."""
    tables = data.get("joint")
    for table in tables.values() if isinstance(tables, dict) else ():
        if isinstance(table, dict):
            yield str(table.get("child")), str(table.get("type"))


def _check_speeds(source: str, what: str, count: int) -> None:
    if count > MAX_SPEEDS:
        raise NotApplicable(
            f"{source} has {what}, and equations are written out for at most {MAX_SPEEDS} speeds: "
            "their code has no loops and would be too large.\n"
            "  Model a part of it, or join bodies that hardly move against each other."
        )


# faults ---------------------------------------------------------------------------------


MAX_LOOP_TOLERANCE = 0.1  # beyond it, rows that hold something are taken for rounding


def faults(mechanism: Mechanism) -> list[Fault]:
    """All faults of a description, in the order its parts are usually written."""
    return list(dict.fromkeys([*value_faults(mechanism), *relation_faults(mechanism)]))


def value_faults(mechanism: Mechanism) -> list[Fault]:
    """Numbers and names that are wrong by themselves."""
    formulas = list(formulas_in(mechanism))
    found = [
        *_parameter_faults(mechanism, formulas),
        *(_time_faults(mechanism) if any(map(depends_on_time, formulas)) else ()),
        *_name_faults(mechanism),
        *_part_faults(mechanism),
        *coupling_faults(mechanism),
        *_acting_faults(mechanism),
    ]
    return list(dict.fromkeys(found))


def relation_faults(mechanism: Mechanism, *, joints_known: bool = True) -> list[Fault]:
    """List names used twice, names that nothing carries, bodies that nothing holds.

    Args:
        mechanism: The description.
        joints_known: Whether it has all its joints; without some, bodies may seem to hang free.
    """
    found = [
        *_duplicates(mechanism),
        *(_unconnected_bodies(mechanism) if joints_known else ()),
        *_part_relations(mechanism),
        *coupling_relations(mechanism),
        *_acting_relations(mechanism),
    ]
    return list(dict.fromkeys(found))


# values --------------------------------------------------------------------------------


def _parameter_faults(mechanism: Mechanism, formulas: list[Expression]) -> Iterator[Fault]:
    defaults: dict[str, float] = {}
    for parameter in (p for formula in formulas for p in parameters_in(formula)):
        name, second = parameter.name, parameter.default
        first = defaults.setdefault(name, second)
        if not math.isfinite(second):
            yield Fault("parameters", "", name, f"must be finite, got {second}")
        if first != second and not math.isnan(first):
            message = f"has two defaults, {first:g} and {second:g}; "
            remedy = "make the Parameter once and use it in both places"
            yield Fault("parameters", "", name, message + remedy)
    if not _all_finite(mechanism.gravity):
        yield Fault("mechanism", "", "gravity", "must be three finite numbers")
    tolerance: object = mechanism.loop_tolerance
    if not (isinstance(tolerance, int | float) and 0 <= tolerance <= MAX_LOOP_TOLERANCE):
        message = f"must be a number from 0 to {MAX_LOOP_TOLERANCE:g}, got {shortened(tolerance)}"
        yield Fault("mechanism", "", "loop_tolerance", message)
    if not mechanism.bodies:
        yield Fault(
            "mechanism", "", "", "the mechanism has no body; add one and a joint that holds it"
        )


def _named_records(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    """Every part and the kind of thing a user calls it."""
    groups: dict[str, Sequence[Any]] = {
        "body": mechanism.bodies,
        "joint": mechanism.connections,
        "loop": mechanism.loops,
        "contact": mechanism.contacts,
        "coupling": mechanism.couplings,
        "motor": mechanism.drives,
        "damper": mechanism.dampers,
        "spring": mechanism.springs,
        "strut": mechanism.struts,
        "wrench": mechanism.wrenches,
        "measure": mechanism.measures,
    }
    for kind, records in groups.items():
        for record in records:
            if kind == "contact":
                yield kind_of_contact(record), record
            else:
                yield kind_of_strut(record) if kind == "strut" else kind, record


def kind_of_contact(contact: Contact) -> str:
    """What the user added: `add_wheel` gives body and contact one name."""
    return "wheel" if contact.body == contact.name else "contact"


def kind_of_strut(strut: Strut) -> str:
    """What the user added: a dashpot has no stiffness."""
    return "damper" if strut.stiffness == 0.0 and strut.rest == 0.0 else "spring"


def _time_faults(mechanism: Mechanism) -> Iterator[Fault]:
    message = "time may stand only in a prescribed motion"
    if any(map(depends_on_time, formulas_in(mechanism.gravity))):
        yield Fault("mechanism", "", "gravity", message)
    for kind, record in _named_records(mechanism):
        if any(map(depends_on_time, formulas_in(record))):
            for field in record.__dataclass_fields__:
                if any(map(depends_on_time, formulas_in(getattr(record, field)))):
                    yield Fault(kind, record.name, field, message)


def _name_faults(mechanism: Mechanism) -> Iterator[Fault]:
    if not mechanism.name.isprintable():
        yield Fault(
            "mechanism", "", "name", f"must be printable text, got {shortened(mechanism.name)}"
        )
    for kind, record in _named_records(mechanism):
        name = record.name
        own = [*getattr(record, "coordinate_names", ()), *getattr(record, "speed_names", ())]
        for text in (name, *own, getattr(record, "input", None) or name):
            fault = name_fault(text)
            if fault:
                yield Fault(kind, repr(name)[1:-1], "", fault)


def name_fault(name: str) -> str | None:
    """Why nothing can have this name, or None; every reader of files asks this."""
    if not name or not name.isprintable():
        return f"a name must be printable text, got {shortened(name)}"
    if name.startswith("["):  # symbols of such names would be taken for lists of symbols
        return f"a name must not begin with a bracket, got '{name}'"
    return None


def _part_faults(mechanism: Mechanism) -> Iterator[Fault]:
    """Numbers of bodies, joints and contacts."""
    for body in mechanism.bodies:
        for field, message in body.faults():
            yield Fault("body", body.name, field, message)
    for kind, group in (("joint", mechanism.connections), ("loop", mechanism.loops)):
        for connection in group:
            yield from _placement_faults(kind, connection)
    spins = {c.name: getattr(c.joint, "axis", None) for c in mechanism.connections}
    for contact in mechanism.contacts:
        kind, name = kind_of_contact(contact), contact.name
        for field, message in contact.wheel.faults():
            yield Fault(kind, name, field, message)
        fault = axis_fault(contact.axis)
        if fault and spins.get(name) != contact.axis:  # else reported for the joint already
            yield Fault(kind, name, "axis", fault)
        fault = axis_fault(contact.plane.normal)
        if fault:
            yield Fault(kind, name, "ground", f"normal {fault}")
        if not _all_finite(contact.plane.point):
            yield Fault(kind, name, "ground", "point must be finite")
        yield from _finite(kind, name, contact, ("at",))


def _placement_faults(kind: str, connection: Connection) -> Iterator[Fault]:
    name, joint = connection.name, connection.joint
    for field in joint.directions:
        fault = axis_fault(getattr(joint, field))
        if fault:
            yield Fault(kind, name, field, fault)
    if joint.directions == ("axis", "second"):
        first, second = unit(joint.axis), unit(joint.second)  # type: ignore[attr-defined]
        cosine = sum(numeric(a) * numeric(b) for a, b in zip(first, second, strict=True))
        if 1 - NEGLIGIBLE < abs(cosine) < 1 + FIVE_DIGITS:
            yield Fault(kind, name, "second", "must not be parallel to the first axis")
    if not math.isfinite(numeric(getattr(joint, "pitch", 0.0))):
        yield Fault(kind, name, "pitch", "must be finite")
    for field in ("rotation", "child_rotation"):
        fault = rotation_fault(getattr(connection, field))
        if fault:
            yield Fault(kind, name, field, fault)
    if not 0 <= numeric(connection.armature) < math.inf:
        message = f"must be >= 0 kg m^2, got {shown(connection.armature)}"
        yield Fault(kind, name, "armature", message)
    elif kind == "loop" and connection.armature != 0.0:
        yield Fault(kind, name, "armature", "a joint that closes a loop has no speeds to feel it")
    for field, message in _rubbing_faults(kind, connection):
        yield Fault(kind, name, field, message)
    yield from _finite(kind, name, connection, ("at", "child_at"))


def _rubbing_faults(kind: str, connection: Connection) -> Iterator[tuple[str, str]]:
    """Fields and messages of dry friction and stops."""
    given = {"friction": connection.friction, "stops": connection.stops}
    for field, value in given.items():
        if value is None:
            continue
        if kind == "loop":
            message = "a joint that closes a loop has no coordinate of its own; "
            yield field, message + "give it to a joint of the tree"
        elif len(connection.joint.coordinate_names) != 1:
            count = len(connection.joint.coordinate_names)
            yield field, f"is for joints with one coordinate, and this one has {count}"
    yield from friction_faults(connection.friction, " N m")
    yield from restitution_fault(connection.restitution)
    if connection.stops is None:
        if connection.restitution != 0.0:
            yield "restitution", "is that of stops; give stops=(low, high) too"
        return
    low, high = map(numeric, connection.stops)
    if math.isnan(low) or math.isnan(high) or low == math.inf or high == -math.inf:
        yield "stops", f"must be numbers, got ({low:g}, {high:g})"
    elif low >= high:
        yield "stops", f"the lower stop, {low:g}, must be below the upper one, {high:g}"


def _finite(kind: str, name: str, record: object, fields: tuple[str, ...]) -> Iterator[Fault]:
    for field in fields:
        if not _all_finite(getattr(record, field)):
            yield Fault(kind, name, field, "must be finite")


def _all_finite(values: tuple[Scalar, ...]) -> bool:
    return all([math.isfinite(numeric(value)) for value in values])


def _acting_faults(mechanism: Mechanism) -> Iterator[Fault]:
    """Numbers of what acts on the mechanism, holds it or is measured."""
    for drive in mechanism.drives:
        for field, message in drive.motor.faults():
            yield Fault("motor", drive.name, field, message)
    elements: list[tuple[str, JointDamper | JointSpring | Strut]] = [
        *(("damper", damper) for damper in mechanism.dampers),
        *(("spring", spring) for spring in mechanism.springs),
        *((kind_of_strut(strut), strut) for strut in mechanism.struts),
    ]
    for kind, element in elements:
        for field, message in negative_constants(element):
            dashpot = kind == "damper" and field == "damping"
            yield Fault(kind, element.name, "coefficient" if dashpot else field, message)
    for strut in mechanism.struts:
        yield from _finite(kind_of_strut(strut), strut.name, strut, ("at", "child_at"))
    for wrench in mechanism.wrenches:
        yield from _finite("wrench", wrench.name, wrench, ("at",))
        if wrench.frame not in ("world", "body"):
            message = f"must be 'world' or 'body', got {shortened(wrench.frame)}"
            yield Fault("wrench", wrench.name, "frame", message)
    for prescribed in mechanism.prescribed:
        motion = prescribed.motion
        if not depends_on_time(motion) and not math.isfinite(numeric(motion)):
            message = f"must be finite, got {shown(motion)}"
            yield Fault("prescribe", "", prescribed.coordinate, message)
    for name, value in mechanism.home_coordinates.items():
        if not math.isfinite(value):
            yield Fault("home", "", name, "must be finite")
    for measure in mechanism.measures:
        if measure.kind not in (*KINDS, "function"):
            message = f"unknown kind '{measure.kind}'. {suggest('kind', measure.kind, [*KINDS])}"
            yield Fault("measure", measure.name, "kind", message)
        yield from _finite("measure", measure.name, measure, ("at", "other_at"))


# relations -----------------------------------------------------------------------------


def _duplicates(mechanism: Mechanism) -> Iterator[Fault]:
    groups: dict[str, Iterable[str]] = {
        "body": [b.name for b in mechanism.bodies],
        "joint": [c.name for c in [*mechanism.connections, *mechanism.loops]],
        "contact": [c.name for c in mechanism.contacts],
        "coupling": [c.name for c in mechanism.couplings],
        "motor": [d.name for d in mechanism.drives],
        "damper": [f.name for f in mechanism.dampers],
        "wrench": [w.name for w in mechanism.wrenches],
        "measure": [m.name for m in mechanism.measures],
    }
    groups["damper"] = [
        *groups["damper"],
        *(s.name for s in mechanism.springs),
        *(s.name for s in mechanism.struts),
    ]
    for kind, names in groups.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield Fault(kind, name, "", f"the name is used {count} times; names are unique")
    if any(body.name == GROUND.name for body in mechanism.bodies):
        yield Fault("body", GROUND.name, "", "'ground' is the world; choose another name")
    joints = {c.name: c for c in tree_order(mechanism)}.values()  # one of each name
    signals = Counter(name for c in joints for name in (*c.coordinates, *c.speeds))
    for name, count in signals.items():
        if count > 1:
            yield Fault("joint", name, "", f"{count} coordinates or speeds have this name")
    taken = Counter(name for wrench in mechanism.wrenches for name in wrench.input_names)
    for drive in mechanism.drives:
        usual = (f"{drive.name}.torque", f"{drive.name}.force")
        taken.update((drive.input,) if drive.input else usual)
    for drive in mechanism.drives:
        if drive.input and taken[drive.input] > 1:
            yield Fault("motor", drive.name, "input", f"another input is called '{drive.input}'")


def _unconnected_bodies(mechanism: Mechanism) -> Iterator[Fault]:
    held = {c.child for c in mechanism.connections}
    reached = {c.child for c in tree_order(mechanism)}
    unknown = {c.parent for c in mechanism.connections}.difference(_known_bodies(mechanism))
    reported = {c.child for c in tree_order(mechanism, tuple(unknown))}  # they hang on an unknown
    alone = "make it the child of a joint, of a Floating joint on the ground if it is free"
    adrift = "join one body of this chain to the ground, by a Floating joint if it is free"
    for body in mechanism.bodies:
        if body.name == GROUND.name:
            continue
        if body.name not in held:
            yield Fault("body", body.name, "", f"no joint holds it; {alone}")
        elif body.name not in reached and body.name not in reported:
            yield Fault("body", body.name, "", f"its joints never reach the ground; {adrift}")


def _known_bodies(mechanism: Mechanism) -> dict[str, None]:
    return dict.fromkeys([GROUND.name, *(body.name for body in mechanism.bodies)])


def _known_body(
    known: dict[str, None], kind: str, name: str, field: str, body: str
) -> Iterator[Fault]:
    if body not in known:
        message = f"unknown body '{body}'. {suggest('body', body, list(known))}"
        yield Fault(kind, name, field, message)


def _part_relations(mechanism: Mechanism) -> Iterator[Fault]:
    """Bodies of joints and contacts."""
    known = _known_bodies(mechanism)
    for kind, group in (("joint", mechanism.connections), ("loop", mechanism.loops)):
        for connection in group:
            name = connection.name
            yield from _known_body(known, kind, name, "parent", connection.parent)
            yield from _known_body(known, kind, name, "child", connection.child)
            if connection.parent == connection.child:
                yield Fault(kind, name, "child", "a joint needs two different bodies")
    for loop in mechanism.loops:
        if loop.joint.dof == 6:
            yield Fault(
                "loop",
                loop.name,
                "joint",
                "a floating loop closes nothing; leave it out or choose another joint",
            )
        for field in ("coordinate", "speed"):
            if getattr(loop, f"{field}_names"):
                yield Fault(
                    "loop",
                    loop.name,
                    f"{field}s",
                    f"a joint that closes a loop has no "
                    f"{field}s; name those of the joints in the tree",
                )
    for contact in mechanism.contacts:
        kind, name = kind_of_contact(contact), contact.name
        yield from _known_body(known, kind, name, "body", contact.body)
        yield from _known_body(known, kind, name, "ground", contact.plane.on)
        if contact.body == contact.plane.on:
            yield Fault(kind, name, "ground", "a wheel cannot roll on itself")


def _acting_relations(mechanism: Mechanism) -> Iterator[Fault]:
    """What motors, springs, wrenches, measures and prescribed motions name."""
    known = _known_bodies(mechanism)
    meanings = speed_meanings(mechanism)
    for kind, parts in (("motor", mechanism.drives), ("damper", mechanism.dampers)):
        for part in parts:
            if part.coordinate not in meanings:
                message = not_in_tree(mechanism, part.coordinate, "speed")
                yield Fault(kind, part.name, "joint", message)
    for spring in mechanism.springs:
        if coordinate_of(mechanism, spring.coordinate) is None:
            message = not_in_tree(mechanism, spring.coordinate, "coordinate")
            yield Fault("spring", spring.name, "joint", message)
    for strut in mechanism.struts:
        kind = kind_of_strut(strut)
        yield from _known_body(known, kind, strut.name, "parent", strut.parent)
        yield from _known_body(known, kind, strut.name, "child", strut.child)
        if strut.parent == strut.child:
            yield Fault(kind, strut.name, "child", "it needs two different bodies")
    for wrench in mechanism.wrenches:
        yield from _known_body(known, "wrench", wrench.name, "body", wrench.body)
    for measure in mechanism.measures:
        if measure.kind != "function":
            yield from _known_body(known, "measure", measure.name, "body", measure.body)
            yield from _known_body(known, "measure", measure.name, "other", measure.other)
    own = {name for connection in mechanism.connections for name in connection.coordinates}
    named = [("prescribe", p.coordinate) for p in mechanism.prescribed]
    for (kind, name), count in Counter(named).items():
        if count > 1:
            yield Fault(kind, "", name, f"prescribed {count} times; once is enough")
    named += [("home", name) for name in mechanism.home_coordinates]
    for kind, name in named:
        if name not in own:
            hint = suggest("coordinate", name, coordinate_names(mechanism))
            message = f"unknown coordinate '{name}'. {hint}"
            yield Fault(kind, "", name, message)
        elif kind == "prescribe" and name in quaternion_components(mechanism):
            yield Fault(
                kind,
                "",
                name,
                "a quaternion's component cannot be prescribed alone; "
                "use Revolute or Universal joints instead",
            )


# couplings ------------------------------------------------------------------------------


def coupling_faults(mechanism: Mechanism) -> Iterator[Fault]:
    """Numbers that no coupling can have."""
    for coupling in mechanism.couplings:
        name = coupling.name
        if len(coupling.terms) + len(coupling.arguments) < 2 or not coupling.terms:
            message = "has a function and no term that follows it; give the joint that does"
            if coupling.terms or not coupling.arguments:
                count = len(coupling.terms)
                message = f"a coupling relates at least two joints, got {count}; add the others, "
                message += "or hold a single joint with prescribe"
            yield Fault("coupling", name, "terms", message)
        for joint, coefficient in coupling.terms:
            value = numeric(coefficient)
            if not math.isfinite(value) or value == 0.0:
                message = f"must be a finite number other than 0, got {shown(coefficient)}"
                yield Fault("coupling", name, f"coefficients.{joint}", message)
        if not math.isfinite(numeric(coupling.offset)):
            yield Fault("coupling", name, "offset", "must be finite")


def coupling_relations(mechanism: Mechanism) -> Iterator[Fault]:
    """Terms that name nothing, several things, the same thing twice, or a quaternion."""
    components = quaternion_components(mechanism)
    coordinates = coordinate_meanings(mechanism)
    moved: dict[str, str] = {}  # by speed, the coordinate whose rate it is, or itself
    for connection in mechanism.connections:
        for k, speed in enumerate(connection.speeds):
            rate = connection.joint.rate_of(k)
            moved.setdefault(speed, speed if rate is None else connection.coordinates[rate])
    for coupling in mechanism.couplings:
        meant: dict[str, str] = {}
        for joint, _ in coupling.terms:
            field, message = f"terms.{joint}", ""
            motion = coordinates.get(joint) or moved.get(joint)
            if coordinates.get(joint) in components:
                message = _quaternion(mechanism, joint)
            elif motion is None:
                message = _unknown(mechanism, joint)
            elif motion in meant:
                message = f"is the same motion as '{meant[motion]}'; name each motion once"
            if message:
                yield Fault("coupling", coupling.name, field, message)
            if motion is not None and motion not in components:
                meant[motion] = joint
        speeds = [name for name, _ in coupling.terms if name in moved and name not in coordinates]
        given = {"offset": numeric(coupling.offset) != 0.0, "function": coupling.arguments}
        for field in (field for field in given if given[field] and speeds):
            message = (
                f"'{speeds[0]}' is a speed, so that the terms relate speeds and have no {field}"
            )
            remedy = f"name coordinates instead, or leave the {field} out"
            yield Fault("coupling", coupling.name, field, f"{message}; {remedy}")
        for name in coupling.arguments:
            if name in parameters_of(mechanism):
                message = f"'{name}' is a joint and a parameter; rename one of them"
            elif coordinates.get(name) in components:
                message = _quaternion(mechanism, name)
            elif name in coordinates:
                continue
            elif name in moved:
                known = ", ".join(coordinate_names(mechanism))
                message = f"'{name}' is a speed, and a function takes coordinates: {known}"
            else:
                known = ", ".join(parameters_of(mechanism)) or "none yet"
                message = f"{not_in_tree(mechanism, name, 'coordinate')} Parameters: {known}."
            yield Fault("coupling", coupling.name, "function", message)


def _unknown(mechanism: Mechanism, name: str) -> str:
    """Explain why a term means nothing; a name with a dot may be meant for a speed."""
    if "." not in name:
        return not_in_tree(mechanism, name, "coordinate")
    coordinates, speeds = coordinate_names(mechanism), speed_names(mechanism)
    return f"unknown joint, coordinate or speed '{name}'. Speeds: {', '.join(speeds)}. " + suggest(
        "coordinate", name, coordinates, speeds
    )


def _quaternion(mechanism: Mechanism, name: str) -> str:
    speeds = next(c.speeds for c in mechanism.connections if name in c.coordinates)
    return (
        "a quaternion's component cannot be coupled; name one of the joint's speeds, "
        f"{', '.join(speeds)}, or use Revolute or Universal joints"
    )
