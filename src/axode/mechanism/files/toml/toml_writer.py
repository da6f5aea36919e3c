"""From a mechanism to the text of a file that reads back to the same mechanism.

Wheels are written as the body, joint, contact and motor they are made of, and gears and the like as
the couplings that they are: that form keeps every number and the order of all parts.
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import tomli_w

from axode.errors import InvalidArgument, shortened
from axode.mechanism.elements.bodies import SHAPES, Body, Inertia
from axode.mechanism.elements.forces import (
    KINDS,
    Drive,
    JointDamper,
    JointSpring,
    Measure,
    Motor,
    Strut,
    Wrench,
)
from axode.mechanism.elements.joints import JOINTS, Coupling
from axode.mechanism.elements.wheels import WHEELS, Contact, Plane
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import parameters_of
from axode.mechanism.values.expressions import Expression, format_scalar
from axode.mechanism.values.geometry import AXES, ORIGIN
from axode.numerics.tolerances import LOOP_TOLERANCE

HEADING = (
    "# A mechanism for Axode. Lengths in m, masses in kg, angles in rad, all else in SI units.\n"
)


def text_of(mechanism: Mechanism) -> str:
    """The mechanism as TOML."""
    document = {key: value for key, value in _document(mechanism).items() if value != {}}
    return HEADING + _short_arrays(tomli_w.dumps(document))


def _document(mechanism: Mechanism) -> dict[str, Any]:
    usual = mechanism.loop_tolerance == LOOP_TOLERANCE
    return {
        "name": mechanism.name,
        "gravity": _plain(mechanism.gravity),
        "loop_tolerance": {} if usual else float(mechanism.loop_tolerance),
        "parameters": {
            p.name: {"default": p.default, "latex": p.latex} if p.latex else p.default
            for p in parameters_of(mechanism).values()
        },
        "body": {body.name: _body(body) for body in mechanism.bodies},
        "joint": {joint.name: _connection(joint) for joint in mechanism.connections},
        "loop": {loop.name: _connection(loop) for loop in mechanism.loops},
        "contact": {contact.name: _contact(contact) for contact in mechanism.contacts},
        "coupling": {coupling.name: _coupling(coupling) for coupling in mechanism.couplings},
        "motor": {drive.name: _drive(drive) for drive in mechanism.drives},
        "damper": {damper.name: _damper(damper) for damper in mechanism.dampers},
        "spring": {
            **{spring.name: _spring(spring) for spring in mechanism.springs},
            **{strut.name: _strut(strut) for strut in mechanism.struts},
        },
        "wrench": {wrench.name: _wrench(wrench) for wrench in mechanism.wrenches},
        "measure": {measure.name: _measure(measure) for measure in mechanism.measures},
        "prescribe": {p.coordinate: _plain(p.motion) for p in mechanism.prescribed},
        "home": dict(mechanism.home_coordinates),
    }


def _short_arrays(text: str) -> str:
    """Every array on one line. Line breaks in strings are escaped, so all others are layout."""
    text = re.sub(r"\[\n +", "[", text)
    while (joined := re.sub(r"\[\n +", "[", re.sub(r",\n *\]", "]", text))) != text:
        text = joined
    return re.sub(r",\n +", ", ", text)


def _plain(value: Any) -> Any:
    """Numbers as they are, formulas as text, tuples as lists."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return format_scalar(value) if isinstance(value, Expression) else value


def _entries(record: Any, **usual: Any) -> dict[str, Any]:
    """The named fields of a record, except those that are as usual to the sign of zero."""
    values = {name: getattr(record, name) for name in usual}
    changed = {n: v for n, v in values.items() if v is not None and repr(v) != repr(usual[n])}
    return {n: _axis(v) if n in ("axis", "second") else _plain(v) for n, v in changed.items()}


def _axis(axis: Any) -> Any:
    """x, -y and the like by name."""
    names = (name for name, named in AXES.items() if repr(named) == repr(axis))
    return next(names, _plain(axis))


def _typed(record: Any, known: dict[str, type[Any]]) -> dict[str, Any]:
    """The type of a joint, wheel or shape, and its fields where they are not as usual."""
    kind = type(record).__name__.lower()
    if known.get(kind) is not type(record):
        raise InvalidArgument(
            f"a file cannot hold {shortened(record)}: it is none of {', '.join(known)}"
        )
    usual = {f.name: f.default for f in fields(record) if f.compare}
    return {"type": kind, **_entries(record, **usual)}


def _body(body: Body) -> dict[str, Any]:
    table = {"mass": _plain(body.mass), **_entries(body, com=ORIGIN)}
    table["inertia"] = _inertia(body.inertia)
    shapes = [_typed(shape, SHAPES) for shape in body.shapes]
    if shapes:
        table["shape"] = shapes if len(shapes) > 1 else shapes[0]
    return table


def _inertia(inertia: Inertia) -> Any:
    if repr(inertia) == repr(Inertia.point()):
        return "point"
    simple = Inertia(inertia.xx, inertia.yy, inertia.zz)
    if repr(simple) == repr(inertia):
        return _plain(inertia.entries[:3])
    entries = {f.name: _plain(getattr(inertia, f.name)) for f in fields(Inertia)}
    return {name: value for name, value in entries.items() if value is not False}


def _connection(connection: Connection) -> dict[str, Any]:
    usual = {f.name: f.default for f in fields(Connection)}
    kept = ("at", "rotation", "child_at", "child_rotation", "armature")
    places = {n: usual[n] for n in kept}
    table = _typed(connection.joint, JOINTS)
    table = {
        "type": table.pop("type"),
        "parent": connection.parent,
        "child": connection.child,
        **table,
        **_entries(connection, **places),
    }
    if connection.coordinate_names:
        table["coordinates"] = list(connection.coordinate_names)
    if connection.speed_names:
        table["speeds"] = list(connection.speed_names)
    return table


def _contact(contact: Contact) -> dict[str, Any]:
    table = _typed(contact.wheel, WHEELS)
    table = {
        "type": table.pop("type"),
        "body": contact.body,
        **table,
        **_entries(contact, at=ORIGIN),
        "axis": _axis(contact.axis),
    }
    plane = contact.plane
    if repr(plane) != repr(Plane()):
        table["ground"] = {
            "normal": _axis(plane.normal),
            "point": _plain(plane.point),
            "on": plane.on,
        }
    return table


def _coupling(coupling: Coupling) -> dict[str, Any]:
    terms = {joint: _plain(coefficient) for joint, coefficient in coupling.terms}
    return {**_entries(coupling, offset=0.0, function=0.0), "terms": terms}


def _drive(drive: Drive) -> dict[str, Any]:
    numbers = _entries(drive.motor, **{f.name: f.default for f in fields(Motor)})
    return {"joint": drive.coordinate, **numbers, **_entries(drive, input=None)}


def _damper(damper: JointDamper) -> dict[str, Any]:
    return {"joint": damper.coordinate, "coefficient": _plain(damper.coefficient)}


def _spring(spring: JointSpring) -> dict[str, Any]:
    stiffness = _plain(spring.stiffness)
    return {"joint": spring.coordinate, "stiffness": stiffness, **_entries(spring, rest=0.0)}


def _strut(strut: Strut) -> dict[str, Any]:
    return {
        "parent": strut.parent,
        "child": strut.child,
        **_entries(strut, at=ORIGIN, child_at=ORIGIN),
        "stiffness": _plain(strut.stiffness),
        **_entries(strut, rest=0.0, damping=0.0),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    if measure.kind == "function":
        raise InvalidArgument(
            f"measure '{measure.name}' is a Python function, which a file cannot hold; remove it "
            "from mechanism.measures, or measure a " + ", ".join(KINDS)
        )
    return {
        "kind": measure.kind,
        "body": measure.body,
        **_entries(measure, at=ORIGIN, other="ground", other_at=ORIGIN),
    }


def _wrench(wrench: Wrench) -> dict[str, Any]:
    return {"body": wrench.body, **_entries(wrench, at=ORIGIN, frame="world")}
