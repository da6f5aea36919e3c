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
from axode.mechanism.elements.forces import KINDS, Drive, Measure
from axode.mechanism.elements.joints import JOINTS, Coupling
from axode.mechanism.elements.wheels import WHEELS, Contact, Plane
from axode.mechanism.files.toml.toml_schema import (
    BodyTable,
    ContactTable,
    CouplingTable,
    DamperTable,
    JointTable,
    MeasureTable,
    MotorNumbers,
    SpringTable,
    Table,
    WrenchTable,
)
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.topology import parameters_of
from axode.mechanism.values.expressions import Expression, format_scalar
from axode.mechanism.values.geometry import AXES
from axode.numerics.tolerances import LOOP_TOLERANCE

HEADING = (
    "# A mechanism for Axode. Lengths in m, masses in kg, angles in rad, all else in SI units.\n"
)


def text_of(mechanism: Mechanism) -> str:
    """The mechanism as TOML."""
    return HEADING + _short_arrays(tomli_w.dumps(document_of(mechanism)))


def document_of(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism as tables of a file."""
    return {key: value for key, value in _document(mechanism).items() if value != {}}


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
        "damper": {d.name: _table(d, DamperTable, joint="coordinate") for d in mechanism.dampers},
        "spring": {
            **{s.name: _table(s, SpringTable, joint="coordinate") for s in mechanism.springs},
            **{strut.name: _table(strut, SpringTable) for strut in mechanism.struts},
        },
        "wrench": {wrench.name: _table(wrench, WrenchTable) for wrench in mechanism.wrenches},
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


def _table(record: Any, schema: type[Table], **renamed: str) -> dict[str, Any]:
    """The keys of a table, except those that are as usual to the sign of zero.

    Args:
        record: What has their values.
        schema: The table.
        renamed: Attributes of the record by key, where they have other names.
    """
    values = {key: getattr(record, renamed.get(key, key), None) for key in schema.model_fields}
    return _changed(values, {key: entry.default for key, entry in schema.model_fields.items()})


def _changed(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """Values of a file that are not as usual."""
    changed = {
        key: value
        for key, value in values.items()
        if value not in (None, ()) and repr(value) != repr(usual[key])
    }
    if (pair := changed.get("friction")) is not None and repr(pair[0]) == repr(pair[1]):
        changed["friction"] = pair[0]
    named = ("axis", "second")
    return {key: _axis(v) if key in named else _plain(v) for key, v in changed.items()}


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
    return {"type": kind, **_changed({name: getattr(record, name) for name in usual}, usual)}


def _body(body: Body) -> dict[str, Any]:
    table = _table(body, BodyTable) | {"inertia": _inertia(body.inertia)}
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
    joint = _typed(connection.joint, JOINTS)
    ends = {"type": joint["type"], "parent": connection.parent, "child": connection.child}
    own = {"coordinates": "coordinate_names", "speeds": "speed_names"}
    return ends | joint | _table(connection, JointTable, **own)


def _contact(contact: Contact) -> dict[str, Any]:
    wheel, plane = _typed(contact.wheel, WHEELS), contact.plane
    table = {"type": wheel["type"], "body": contact.body} | wheel | _table(contact, ContactTable)
    table["axis"] = _axis(contact.axis)
    if repr(plane) != repr(Plane()):
        normal, point = _axis(plane.normal), _plain(plane.point)
        table["ground"] = {"normal": normal, "point": point, "on": plane.on}
    return table


def _coupling(coupling: Coupling) -> dict[str, Any]:
    terms = {joint: _plain(coefficient) for joint, coefficient in coupling.terms}
    return _table(coupling, CouplingTable) | {"terms": terms}


def _drive(drive: Drive) -> dict[str, Any]:
    own = {"joint": drive.coordinate} | _table(drive.motor, MotorNumbers)
    return own if drive.input is None else own | {"input": drive.input}


def _measure(measure: Measure) -> dict[str, Any]:
    if measure.kind == "function":
        raise InvalidArgument(
            f"measure '{measure.name}' is a Python function, which a file cannot hold; remove it "
            "from mechanism.measures, or measure a " + ", ".join(KINDS)
        )
    return _table(measure, MeasureTable)
