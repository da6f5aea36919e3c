"""From the tables of a file to a mechanism, or to everything wrong with the file.

Faults come from three places: the schema (unknown keys, wrong types, formulas that are none), the
building of parts, and the checks every description passes. So that one fault does not hide the
others, a table with a wrong key is read without that key, only to look for more faults; the
mechanism made that way is thrown away.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from pydantic import ValidationError

from axode.errors import (
    MAX_LISTED,
    Fault,
    FileError,
    InvalidArgument,
    MechanismError,
    plural,
    suggest,
)
from axode.mechanism.checks import joints_of_tables, relation_faults, require_readable, value_faults
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS
from axode.mechanism.files.imported import lock_joints
from axode.mechanism.files.toml.additions import Extended, start
from axode.mechanism.files.toml.repeats import FLAT, MAX_TABLES, write_out
from axode.mechanism.files.toml.toml_lines import Path
from axode.mechanism.files.toml.toml_parts import (
    COUPLINGS,
    JOINT_KEYS,
    WHEEL_KEYS,
    Builder,
    TableOrigin,
)
from axode.mechanism.files.toml.toml_schema import (
    TABLES,
    TABLES_IN_TABLES,
    Document,
    ExtendsTable,
    Table,
    describe_value,
)
from axode.mechanism.files.wheel_proposals import choose_wheels
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import parameters_of
from axode.mechanism.values.expressions import Parameter

_TOP = ("name", "gravity", "loop_tolerance")  # keys of the whole file
_PLACES = ("body", "joint", "parameters", "home")  # elements that place links
# Keys by which a part names coordinates and speeds of its own.
_OWN_NAMES = ("coordinates", "speeds", "coordinate", "speed")
_HOLDING = ("joint", "wheel", "caster")  # tables that hold a body
# What stands in for a required key that is missing or wrong while other faults are looked for.
_STAND_INS: dict[str, Any] = {
    "mass": 1.0,
    "trail": 1.0,
    "coefficient": 1.0,
    "stiffness": 1.0,
    "at": [0.0, 0.0, 0.0],
    "parent": "ground",
    "child": "",
    "on": "ground",
    "body": "",
    "joint": "",
    "kind": "position",
    "terms": {},
    **{key: "" for keys, _ in COUPLINGS.values() for key in keys},
    "ratio": 1.0,
    "radius": 1.0,
    "pitch": 1.0,
}
_MESSAGES = {
    "string_type": "expected text",
    "bool_type": "expected true or false",
    "list_type": "expected a list of names",
    "model_type": "expected a table",
}


def mechanism_from(
    data: dict[str, Any],
    lines: Mapping[Path, int],
    source: str,
    stem: str,
    extended: Extended | None = None,
) -> Mechanism:
    """Make the mechanism that the data of a file describe.

    Args:
        data: What the file holds.
        lines: Where each key stands.
        source: What messages call the file.
        stem: The mechanism's name unless the file gives one.
        extended: What the file adds to, if it extends another.

    Raises:
        MechanismError: listing every fault with its line.
        FileError: if there are too many entries.
    """
    repeats = write_out(data, lines)
    data, lines = repeats.data, repeats.lines
    count = sum(len(tables) for tables in data.values() if isinstance(tables, dict))
    if count > MAX_TABLES:
        raise FileError(
            f"{source} has {count} entries, and files of at most {MAX_TABLES} are read."
        )
    require_readable(source, joints_of_tables(data))
    findings = Findings(lines, extended.file if extended else "", repeats.faults)
    findings.tables_known = not repeats.faults
    document = findings.document(data, parameters_of(extended.mechanism) if extended else {})
    builder = Builder(stem, findings.add)
    begun = None
    if extended:
        begun = start(extended, document, lines)
        findings.faults += begun.faults
    elif "extends" in data:
        findings.tables_known = False  # without the other file, most names seem unknown
    mechanism = builder.build(document, begun.mechanism if begun else None)
    unread = "extends" in data and extended is None
    found = [x for x in value_faults(mechanism) if not unread or x.kind != "mechanism"]
    findings.note(found, builder.origins)
    for kind, name in builder.left_out:
        findings.lose(kind, name, data[kind][name])
    if findings.tables_known:
        sound = not findings.lost and findings.joints_known
        if extended and sound and not any(fault.kind in _PLACES for fault in found):
            findings.lock_joints(mechanism, extended)
            findings.add_wheels(mechanism, extended)
        findings.note_relations(mechanism, builder.origins, document)
    if findings.faults:
        if extended:
            source = f"{source} (extends {extended.file})"
        unique = dict.fromkeys(findings.faults)
        raise MechanismError(source, sorted(unique, key=lambda fault: fault.line or 0))
    return mechanism


def extends_table(data: dict[str, Any]) -> ExtendsTable | None:
    """Return which file the data extend; None if that cannot be read."""
    try:
        found: ExtendsTable = Document.model_validate({"extends": data["extends"]}).extends
    except ValidationError:
        return None
    return found


@dataclass
class Findings:
    """The faults found so far, each with its line."""

    lines: Mapping[Path, int]
    extended: str = ""  # the file that this one adds to
    faults: list[Fault] = field(default_factory=list)
    broken: set[tuple[str, str, str]] = field(default_factory=set)  # kind, name, key
    lost: set[str] = field(default_factory=set)  # parts that could not be read, and their names
    joints_known: bool = True  # whether the bodies that every joint connects are
    names_known: bool = True  # whether the coordinates and speeds of every joint are
    tables_known: bool = True

    def document(self, data: dict[str, Any], known: Mapping[str, Parameter]) -> Document:
        """Read all formulas of the tables; note what is wrong and leave it out.

        Args:
            data: What the file holds.
            known: Parameters that formulas may use besides those of the file.
        """
        data = copy.deepcopy(data)
        for kind in FLAT:
            self._flatten_lines(kind)
        context = {"parameters": {**known, **self._parameters(data)}}
        for _ in range(5):
            try:
                return Document.model_validate(data, context=context)
            except ValidationError as error:
                found = error.errors(include_url=False)
                for item in found[:MAX_LISTED]:
                    self._schema_fault(item, data)
                if len(found) > MAX_LISTED:
                    message = f"{len(found) - MAX_LISTED} further problems are not listed"
                    self.faults.append(Fault("", "", "", message))
                    break
        self.tables_known = False
        return Document.model_validate({})

    def add(self, kind: str, name: str, key: str, message: str) -> None:
        """Note a fault, unless one of the same key is noted already."""
        if not self.broken.intersection({(kind, name, key), (kind, name, key.split(".")[0])}):
            line = self._line(kind, name, key)
            self.faults.append(Fault(kind, name, key, message, line))

    def note(self, found: list[Fault], origins: Mapping[tuple[str, str], TableOrigin]) -> None:
        """Note faults of the description under the tables of the file that they come from."""
        derived = []
        for fault in found:
            origin = origins.get((fault.kind, fault.name))
            if origin is not None and fault.field in origin.derived:
                derived.append((fault, origin))
            elif origin is not None:
                key = origin.keys.get(fault.field, fault.field)
                self.add(origin.kind, origin.name, key, fault.message)
            elif self.extended and not self._is_here(fault):
                message = f"{fault.message} (in {self.extended})"
                self.faults.append(replace(fault, message=message, line=self.lines["extends",]))
            else:
                kind = "" if fault.kind == "mechanism" else fault.kind
                self.add(kind, fault.name, fault.field, fault.message)
        for fault, origin in derived:  # what was made from a wrong number is wrong too
            if not origin.has_fault(self.faults):
                key = origin.keys.get(fault.field, fault.field)
                self.add(origin.kind, origin.name, key, fault.message)

    def _is_here(self, fault: Fault) -> bool:
        """Return whether the file has the table or key that a fault names."""
        return (fault.kind, fault.name or fault.field) in self.lines or fault.kind == "mechanism"

    def lock_joints(self, mechanism: Mechanism, extended: Extended) -> None:
        """Hold joints where they stand at home."""
        for message in lock_joints(mechanism, extended.table.hold):
            self.add("extends", "", "hold", message)

    def add_wheels(self, mechanism: Mechanism, extended: Extended) -> None:
        """Let the links roll that are confirmed as wheels."""
        choice = extended.table.wheels
        if choice is None:
            return
        wheels, wrong = choose_wheels(choice, mechanism, extended.geometry)
        for message in wrong:
            self.add("extends", "", "wheels", message)
        for wheel in wheels:
            wheel.add_to(mechanism)

    def lose(self, kind: str, name: str, table: Any) -> None:
        """Remember a part that could not be read, and the names that it would have had."""
        self.lost.add(name)
        self.joints_known &= kind not in _HOLDING
        for key in _OWN_NAMES if isinstance(table, dict) else ():
            own = table.get(key, ())
            self.lost.update(map(str, own if isinstance(own, list) else [own]))

    def note_relations(
        self,
        mechanism: Mechanism,
        origins: Mapping[tuple[str, str], TableOrigin],
        document: Document,
    ) -> None:
        """Note names that nothing carries and the like, unless a part that was lost explains it."""
        found = relation_faults(mechanism, joints_known=self.joints_known)
        self.note([x for x in found if not self._explained(x, origins, document)], origins)

    def _explained(
        self, fault: Fault, origins: Mapping[tuple[str, str], TableOrigin], document: Document
    ) -> bool:
        origin = origins.get((fault.kind, fault.name), TableOrigin(fault.kind, fault.name))
        key, _, rest = origin.keys.get(fault.field, fault.field).partition(".")
        named: Any = fault.field
        if origin.kind in TABLES:
            table = getattr(document, origin.kind).get(origin.name)
            value = getattr(table, key, None)
            named = rest or getattr(value, "on", value)  # of a term, of a ground, or the value
        if not isinstance(named, str):
            return False
        of_joint = fault.kind in (*FLAT, "motor", "damper", "spring", "coupling")
        return (of_joint and not self.names_known) or any(
            named == name or named.startswith((f"{name}.", f"{name}_bracket")) for name in self.lost
        )

    def _line(self, kind: str, name: str, key: str) -> int:
        """Return the line of the key, or of the nearest table around it."""
        path: Path = tuple(part for part in (kind, name) if part)
        first, _, rest = key.partition(".")
        if (*path, first, rest) in self.lines:  # a term's joint may have dots in its name
            return self.lines[*path, first, rest]
        path += (key,) if kind in FLAT or not kind else tuple(key.split("."))
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines[path] if path else 1

    def _flatten_lines(self, kind: str) -> None:
        """Let base.z under [home] be found as "base.z"."""
        joined: dict[Path, int] = {
            (kind, ".".join(map(str, path[1:]))): line
            for path, line in self.lines.items()
            if path[0] == kind and len(path) > 2
        }
        self.lines = {**joined, **self.lines}

    def _parameters(self, data: dict[str, Any]) -> dict[str, Parameter]:
        """The parameters by name; those with a wrong value stand in so that formulas still read."""
        table = data.get("parameters")
        found: dict[str, Parameter] = {}
        for name, value in list(table.items()) if isinstance(table, dict) else ():
            try:
                given = Document.model_validate({"parameters": {name: value}}).parameters[name]
            except ValidationError:
                given = 1.0, ""
            try:
                parameter = Parameter(name, *given)
            except InvalidArgument as error:
                self.add("parameters", "", name, str(error))
                continue
            found[parameter.name] = parameter
        return found

    # faults of the schema ------------------------------------------------------------------------

    def _schema_fault(self, item: Any, data: dict[str, Any]) -> None:
        """Note one fault that pydantic found, and remove or replace the faulty key."""
        place = [str(part) for part in item["loc"]]
        message = _message(item, place)
        if place[0] in TABLES and len(place) > 1:
            kind, name, keys = place[0], place[1], place[2:]
        elif place[0] in FLAT and len(place) > 1:
            kind, name, keys = place[0], "", [".".join(place[1:])]
        else:
            kind, name, keys = "", "", place
            if place[0] == "extends" and len(place) > 1:
                kind, keys = place[0], place[1:]
            self.tables_known &= place[0] not in TABLES
            if item["type"] == "extra_forbidden" and isinstance(item["input"], dict):
                for part, table in item["input"].items():  # of a table with a misspelt name
                    self.lose("joint", part, table)
        self.add(kind, name, ".".join(keys), message)
        # a superfluous key in a table within a table leaves the rest of that table readable
        depth = len(keys) if item["type"] == "extra_forbidden" else 1
        self.broken.add((kind, name, ".".join(keys[:depth])))
        if kind in FLAT:
            _pop_flat(data[kind], place[1])
        elif kind in TABLES:
            self._repair(data[kind], kind, name, keys[:depth])
        else:
            data.pop(place[0], None)

    def _repair(self, tables: dict[str, Any], kind: str, name: str, keys: list[str]) -> None:
        """Leave out what is wrong; a required key gets a stand-in."""
        table = tables.get(name)
        if not isinstance(table, dict) or not keys:
            tables.pop(name, None)
            self.lose(kind, name, table)
            return
        top = keys[0]
        if len(keys) > 1 and keys[1] != "type" and isinstance(table.get(top), dict):
            table[top].pop(keys[1], None)
            return
        self.joints_known &= kind not in _HOLDING or top not in ("parent", "child", "on")
        self.names_known &= kind not in _HOLDING or top not in _OWN_NAMES
        wrong = table.pop(top, None)
        model_field = TABLES[kind].model_fields.get(top)
        if top == "type" and model_field is not None:
            self._repair_type(kind, name, table, wrong)
        elif model_field is not None and model_field.is_required():
            table[top] = _STAND_INS[top]

    def _repair_type(self, kind: str, name: str, table: dict[str, Any], wrong: Any) -> None:
        """Read on as the type that was probably meant, else as one that few keys suit."""
        known, keys = (JOINTS, JOINT_KEYS) if kind in ("joint", "loop") else (WHEELS, WHEEL_KEYS)
        meant = difflib.get_close_matches(str(wrong), known, n=1)
        if meant:
            table["type"] = meant[0]
            return
        self.lose(kind, name, table)
        self.joints_known &= {"parent", "child", "on"} & set(table) != set()
        for key in (*keys, *_OWN_NAMES):
            table.pop(key, None)
            self.broken.add((kind, name, key))
        table["type"] = next(reversed(known))


def _pop_flat(table: dict[str, Any], name: str) -> None:
    """Remove "base.z" whether it was written in quotes or not."""
    if name in table:
        del table[name]
        return
    for key, inner in table.items():
        if isinstance(inner, dict) and name.startswith(f"{key}."):
            _pop_flat(inner, name[len(key) + 1 :])


def _message(item: Any, place: list[str]) -> str:
    """What is wrong, in the words of the other messages."""
    kind, value = item["type"], item["input"]
    if kind == "value_error":
        return str(item["ctx"]["error"])
    if kind == "extra_forbidden":
        return _unknown_key(place, value)
    if kind == "missing":
        owner = _model_at(place)
        missing = owner.model_fields[place[-1]] if owner else None
        if missing is None or not missing.description:
            return "is missing"
        about, choices = missing.description, get_args(missing.annotation)
        listed = f". {plural(place[-1]).capitalize()}: {', '.join(choices)}." if choices else ""
        return f"is missing ({about[0].lower()}{about[1:].rstrip('.')}){listed}"
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", item["ctx"]["expected"])
        if place[-1] in ("type", "kind") and isinstance(value, str):
            return f"unknown {place[-1]} '{value}'. {suggest(place[-1], value, options)}"
        return f"must be {item['ctx']['expected']}, got {describe_value(value)}"
    if kind == "dict_type":
        example = f"[{place[0]}.NAME]" if place[0] in TABLES else f"[{place[0]}]"
        return f"expected tables such as {example}, got {describe_value(value)}"
    return f"{_MESSAGES.get(kind, item['msg'])}, got {describe_value(value)}"


def _unknown_key(place: list[str], value: Any) -> str:
    if len(place) == 1 and place[0] in ExtendsTable.model_fields:
        return f"unknown key '{place[0]}'. It stands under [extends], which names the file"
    if len(place) == 1 and place[0] not in TABLES:
        known = list(Document.model_fields)
        what = "table" if isinstance(value, dict) else "key"
        return f"unknown {what} '{place[0]}'. {suggest(what, place[0], known)}"
    owner = _model_at(place)
    message = f"unknown key '{place[-1]}'. "
    if len(place) == 3 and isinstance(value, dict):
        message += f'Names with dots stand in quotes: [{place[0]}."{place[1]}.{place[2]}"]. '
    elif place[-1] in (*_TOP, *FLAT) and len(place) == 3:
        message += "Keys of the whole file stand above the first [table]. "
    return message + suggest("key", place[-1], list(owner.model_fields) if owner else [])


def _model_at(place: list[str]) -> type[Table] | None:
    """The table that holds the last key of a place."""
    if len(place) == 1:
        return Document
    if len(place) == 3:
        return TABLES.get(place[0])
    return TABLES_IN_TABLES.get(place[-2])
