"""Everything that can be wrong with a description, found before anything is derived."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator

from axode.errors import Fault, suggest
from axode.mechanism.bodies import GROUND
from axode.mechanism.expressions import numeric
from axode.mechanism.forces import negative_constants
from axode.mechanism.geometry import axis_fault, rotation_fault, scalars
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import (
    conflicting_parameters,
    coordinate_names,
    coordinate_of,
    speed_names,
    speed_of,
    tree_order,
)


def faults(mechanism: Mechanism) -> list[Fault]:
    """All faults of a description, in the order its parts are usually written."""
    found = [
        *_parameter_faults(mechanism),
        *_duplicates(mechanism),
        *_body_faults(mechanism),
        *_connection_faults(mechanism),
        *_contact_faults(mechanism),
        *_force_faults(mechanism),
        *_motion_faults(mechanism),
    ]
    return list(dict.fromkeys(found))


def _parameter_faults(mechanism: Mechanism) -> Iterator[Fault]:
    for name, first, second in conflicting_parameters(mechanism):
        yield Fault("parameters", "", name, f"has two defaults, {first:g} and {second:g}; "
                    "make the Parameter once and use it in both places")  # fmt: skip
    if not all(math.isfinite(numeric(g)) for g in mechanism.gravity):
        yield Fault("mechanism", "", "gravity", "must be three finite numbers")


def _duplicates(mechanism: Mechanism) -> Iterator[Fault]:
    groups: dict[str, Iterable[str]] = {
        "body": [GROUND.name, *(b.name for b in mechanism.bodies)],
        "joint": [c.name for c in [*mechanism.connections, *mechanism.loops]],
        "contact": [c.name for c in mechanism.contacts],
        "motor": [d.name for d in mechanism.drives],
        "force": [f.name for f in [*mechanism.dampers, *mechanism.springs, *mechanism.struts]],
        "wrench": [w.name for w in mechanism.wrenches],
    }
    for kind, names in groups.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield Fault(kind, name, "", f"the name is used {count} times; names are unique")
    signals = Counter([*coordinate_names(mechanism), *speed_names(mechanism)])
    for name, count in signals.items():
        if count > 1:
            yield Fault("joint", name, "", f"{count} coordinates or speeds have this name")


def _body_faults(mechanism: Mechanism) -> Iterator[Fault]:
    held = {c.child for c in mechanism.connections}
    reached = {c.child for c in tree_order(mechanism)}
    for body in mechanism.bodies:
        for field, message in body.faults():
            yield Fault("body", body.name, field, message)
        if body.name not in held:
            yield Fault("body", body.name, "", "no joint holds it; add_joint(..., Floating(), "
                        f"parent=ground, child='{body.name}') lets it move freely")  # fmt: skip
        elif body.name not in reached:
            yield Fault("body", body.name, "", "its joints never reach the ground; join one body "
                        "of this chain to the ground, with Floating() if it is free")  # fmt: skip


def _known_body(mechanism: Mechanism, kind: str, name: str, field: str, body: str) -> Iterator[Fault]:
    known = [GROUND.name, *(b.name for b in mechanism.bodies)]
    if body not in known:
        message = f"unknown body '{body}'. {suggest('body', body, known)}"
        yield Fault(kind, name, field, message)


def _connection_faults(mechanism: Mechanism) -> Iterator[Fault]:
    for kind, group in (("joint", mechanism.connections), ("loop", mechanism.loops)):
        for connection in group:
            yield from _placement_faults(mechanism, kind, connection)
            if kind == "loop" and connection.joint.dof == 6:
                yield Fault(kind, connection.name, "joint", "a floating loop closes nothing; leave "
                            "it out or choose another joint")  # fmt: skip


def _placement_faults(mechanism: Mechanism, kind: str, connection: Connection) -> Iterator[Fault]:
    name = connection.name
    yield from _known_body(mechanism, kind, name, "parent", connection.parent)
    yield from _known_body(mechanism, kind, name, "child", connection.child)
    if connection.parent == connection.child:
        yield Fault(kind, name, "child", "a joint needs two different bodies")
    for field in connection.joint.directions:
        fault = axis_fault(getattr(connection.joint, field))
        if fault:
            yield Fault(kind, name, field, fault)
    if connection.joint.directions == ("axis", "second"):
        first, second = connection.joint.axis, connection.joint.second  # type: ignore[attr-defined]
        product = sum(numeric(a) * numeric(b) for a, b in zip(first, second, strict=True))
        if abs(product) > 1 - 1e-9:
            yield Fault(kind, name, "second", "must not be parallel to the first axis")
    for field in ("rotation", "child_rotation"):
        fault = rotation_fault(getattr(connection, field))
        if fault:
            yield Fault(kind, name, field, fault)
    yield from _finite(kind, name, connection, ("at", "child_at"))


def _finite(kind: str, name: str, record: object, fields: tuple[str, ...]) -> Iterator[Fault]:
    for field in fields:
        if not all(math.isfinite(numeric(s)) for s in scalars(getattr(record, field))):
            yield Fault(kind, name, field, "must be finite")


def _contact_faults(mechanism: Mechanism) -> Iterator[Fault]:
    for contact in mechanism.contacts:
        name = contact.name
        for field, message in contact.wheel.faults():
            yield Fault("wheel", name, field, message)
        yield from _known_body(mechanism, "wheel", name, "body", contact.body)
        yield from _known_body(mechanism, "wheel", name, "ground", contact.plane.on)
        if contact.body == contact.plane.on:
            yield Fault("wheel", name, "ground", "a wheel cannot roll on itself")
        for field, axis in (("axis", contact.axis), ("ground", contact.plane.normal)):
            fault = axis_fault(axis)
            if fault:
                yield Fault("wheel", name, field, fault)
        yield from _finite("wheel", name, contact, ("at",))


def _force_faults(mechanism: Mechanism) -> Iterator[Fault]:
    speeds = speed_names(mechanism)
    for drive in mechanism.drives:
        yield from _known_speed(mechanism, "motor", drive.name, drive.coordinate, speeds)
        for field, message in drive.motor.faults():
            yield Fault("motor", drive.name, field, message)
    for damper in mechanism.dampers:
        yield from _known_speed(mechanism, "damper", damper.name, damper.coordinate, speeds)
    for spring in mechanism.springs:
        if coordinate_of(mechanism, spring.coordinate) is None:
            known = coordinate_names(mechanism)
            message = f"unknown joint or coordinate '{spring.coordinate}'. "
            yield Fault("spring", spring.name, "joint",
                        message + suggest("coordinate", spring.coordinate, known))  # fmt: skip
    for strut in mechanism.struts:
        yield from _known_body(mechanism, "spring", strut.name, "parent", strut.parent)
        yield from _known_body(mechanism, "spring", strut.name, "child", strut.child)
        yield from _finite("spring", strut.name, strut, ("at", "child_at"))
    for element in (*mechanism.dampers, *mechanism.springs, *mechanism.struts):
        for field, message in negative_constants(element):
            yield Fault("force", element.name, field, message)
    for wrench in mechanism.wrenches:
        yield from _known_body(mechanism, "wrench", wrench.name, "body", wrench.body)
        if wrench.frame not in ("world", "body"):
            yield Fault("wrench", wrench.name, "frame", "must be 'world' or 'body'")


def _known_speed(
    mechanism: Mechanism, kind: str, name: str, coordinate: str, speeds: list[str]
) -> Iterator[Fault]:
    if speed_of(mechanism, coordinate) is None:
        message = f"unknown joint or speed '{coordinate}'"
        if any(c.name == coordinate for c in mechanism.connections):
            message = f"joint '{coordinate}' has several speeds, name one of them"
        yield Fault(kind, name, "joint", f"{message}. {suggest('speed', coordinate, speeds)}")


def _motion_faults(mechanism: Mechanism) -> Iterator[Fault]:
    known = coordinate_names(mechanism)
    named = [("prescribed", p.coordinate) for p in mechanism.prescribed]
    named += [("home", name) for name in mechanism.home_coordinates]
    for kind, name in named:
        if name not in known:
            message = f"unknown coordinate '{name}'. {suggest('coordinate', name, known)}"
            yield Fault(kind, "", name, message)
        elif kind == "prescribed" and name.rsplit(".", 1)[-1] in ("qw", "qx", "qy", "qz"):
            yield Fault(kind, "", name, "a quaternion's component cannot be prescribed alone; "
                        "use Revolute or Universal joints instead")  # fmt: skip
    for name, value in mechanism.home_coordinates.items():
        if not math.isfinite(value):
            yield Fault("home", "", name, "must be finite")
