"""Additions of a TOML file to the mechanism of another file, which it extends: read and written.

Parts are named by the table that would hold them, as in "motor.left". What the other file has
already is never changed in silence: it is removed by name, or the addition is refused.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from axode.errors import Fault, suggest
from axode.mechanism.checks import kind_of_strut
from axode.mechanism.files.toml.toml_lines import Path
from axode.mechanism.files.toml.toml_parts import COUPLINGS
from axode.mechanism.files.toml.toml_schema import Document, ExtendsTable
from axode.mechanism.files.wheel_proposals import Geometry, ProposedWheel, toml_text
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import coordinate_of, parameters_of, speed_meanings

# reading -----------------------------------------------------------------------------------


ALL = "*"
# of each kind of table, the lists of a mechanism in which its part is
_LISTS: dict[str, tuple[str, ...]] = {
    "body": ("bodies",),
    "joint": ("connections", "loops"),
    "loop": ("loops",),
    "wheel": ("bodies", "connections", "contacts", "drives"),
    "caster": ("bodies", "connections", "contacts"),
    "contact": ("contacts",),
    **dict.fromkeys(COUPLINGS, ("couplings",)),
    "motor": ("drives",),
    "damper": ("dampers", "struts"),
    "spring": ("springs", "struts"),
    "wrench": ("wrenches",),
    "measure": ("measures",),
    "prescribe": ("prescribed",),
}
# what shares its names, and the table that messages name for each list
_NAMESPACES: tuple[dict[str, str], ...] = (
    {"bodies": "body"},
    {"connections": "joint", "loops": "loop"},
    {"contacts": "contact"},
    {"couplings": "coupling"},
    {"drives": "motor"},
    {"dampers": "damper", "springs": "spring", "struts": "spring"},
    {"wrenches": "wrench"},
    {"measures": "measure"},
)
_TABLES = {name: kind for space in _NAMESPACES for name, kind in space.items()}


@dataclass
class Extended:
    """The mechanism that a file adds to.

    Attributes:
        file: What messages call the file that it comes from.
        mechanism: What it describes.
        table: How the other file names and reads it.
        geometry: The solids of its links.
    """

    file: str
    mechanism: Mechanism
    table: ExtendsTable
    geometry: Geometry = field(default_factory=Geometry)


@dataclass(frozen=True)
class Additions:
    """What a file adds to another and removes from it, as names such as "motor.left"."""

    file: str
    added: tuple[str, ...]
    removed: tuple[str, ...]


def compare(file: str, before: Mechanism, after: Mechanism) -> Additions:
    """List the parts that one mechanism has and another has not, or has otherwise."""
    old, new = dict(_parts(before)), dict(_parts(after))
    added = tuple(name for name, part in new.items() if name not in old or old[name] != part)
    removed = tuple(name for name, part in old.items() if name not in new or new[name] != part)
    return Additions(file, added, removed)


def _parts(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    for name, kind in _TABLES.items():
        for part in getattr(mechanism, name):
            own = kind_of_strut(part) if name == "struts" else kind
            yield f"{own}.{part.name}", part
    for motion in mechanism.prescribed:
        yield f"prescribe.{motion.coordinate}", motion
    for coordinate, value in mechanism.home_coordinates.items():
        yield f"home.{coordinate}", value
    for key in ("gravity", "loop_tolerance"):
        yield key, getattr(mechanism, key)


# removing ---------------------------------------------------------------------------------


def start(extended: Extended, document: Document, lines: Mapping[Path, int]) -> _Start:
    """Remove what is to be removed from the imported mechanism, and find what is in the way."""
    mechanism = extended.mechanism.copy()
    faults = []
    for index, entry in enumerate(extended.table.remove):
        message = _remove(mechanism, entry, extended)
        if message:
            line = lines.get(("extends", "remove", index))
            faults.append(Fault("extends", "", "remove", message, line))
    for kind, name, message in _conflicts(mechanism, document, extended.file):
        line = lines.get((kind, name), lines.get((kind,)))
        faults.append(Fault(kind, "" if kind == "parameters" else name, "", message, line))
    return _Start(mechanism, faults)


@dataclass
class _Start:
    """The mechanism to add to, and everything that speaks against it."""

    mechanism: Mechanism
    faults: list[Fault]


def _remove(mechanism: Mechanism, entry: str, extended: Extended) -> str:
    """Remove the parts of one entry; return what is wrong with it."""
    kind, dot, name = entry.partition(".")
    if not dot or not name:
        return f"expected a table and a name such as \"motor.left\", got '{entry}'"
    if kind == "home":
        found = mechanism.home_coordinates.pop(name, None)
        if name == ALL:
            mechanism.home_coordinates.clear()
        elif found is None:
            return _missing(kind, name, extended, extended.mechanism.home_coordinates)
        return ""
    if kind not in _LISTS:
        return f"unknown table '{kind}'. {suggest('table', kind, [*_LISTS, 'home'])}"
    names = {name, f"{name}_bracket"} if kind == "caster" else {name}
    removed = False
    for own in _LISTS[kind]:
        parts = getattr(mechanism, own)
        every = [p for p in parts if own != "struts" or kind_of_strut(p) == kind]
        gone = every if name == ALL else [part for part in parts if _name(part) in names]
        for coordinate in (c for part in gone for c in getattr(part, "coordinates", ())):
            mechanism.home_coordinates.pop(coordinate, None)
        parts[:] = [part for part in parts if part not in gone]
        removed |= bool(gone)
    if removed:
        return ""
    known = [_name(part) for own in _LISTS[kind] for part in getattr(extended.mechanism, own)]
    return _missing(kind, name, extended, dict.fromkeys(known))


def _missing(kind: str, name: str, extended: Extended, known: Mapping[str, Any]) -> str:
    if name in known:
        return f"{kind} '{name}' is removed already by another entry"
    shown = "" if name == ALL else f" '{name}'"
    return f"{extended.file} has no {kind}{shown}. {suggest(kind, name, list(known))}"


def _name(part: Any) -> str:
    return str(getattr(part, "name", "") or part.coordinate)


# what is in the way -----------------------------------------------------------------------


def _conflicts(
    mechanism: Mechanism, document: Document, file: str
) -> Iterator[tuple[str, str, str]]:
    """Report additions that the imported mechanism leaves no room for, as table, name, message.

    Imported parts whose name an addition takes are removed, so that no other check stumbles over
    them.
    """
    yield from _second_actions(mechanism, document, file)
    for name in document.parameters:
        if name in parameters_of(mechanism):
            message = f"'{name}' is a parameter of {file} already; formulas may use it without this"
            yield "parameters", name, message
    for kind, own in _LISTS.items():
        for name in getattr(document, kind) if kind != "prescribe" else ():
            found = _in_the_way(mechanism, own, name)
            if kind == "caster":
                found += _in_the_way(mechanism, own, f"{name}_bracket")
            if found:
                verb = " and ".join(dict.fromkeys(found))
                yield kind, name, f"{file} has {verb} already; {_remedy(found)}"


def _in_the_way(mechanism: Mechanism, lists: tuple[str, ...], name: str) -> list[str]:
    """Take the parts out of a mechanism that have this name, and list them."""
    found: list[str] = []
    for space in _NAMESPACES:
        if not space.keys() & set(lists):
            continue
        for own, kind in space.items():
            parts = getattr(mechanism, own)
            for part in [part for part in parts if part.name == name]:
                parts.remove(part)
                found.append(f"{kind} '{name}'")
    return found


def _remedy(found: list[str]) -> str:
    entries = ", ".join(f'"{item.replace(" ", ".", 1).replace(chr(39), "")}"' for item in found)
    return f"choose another name, or remove = [{entries}] under [extends] takes it out"


def _second_actions(
    mechanism: Mechanism, document: Document, file: str
) -> Iterator[tuple[str, str, str]]:
    """Report motors, dampers and springs on joints that have one already."""
    speeds = speed_meanings(mechanism)
    meanings: dict[str, Callable[[str], str | None]] = {
        "motor": speeds.get,
        "damper": speeds.get,
        "spring": lambda name: coordinate_of(mechanism, name),
    }
    for kind, meaning in meanings.items():
        acting = {meaning(part.coordinate): part for part in getattr(mechanism, _LISTS[kind][0])}
        for name, table in getattr(document, kind).items():
            part = acting.get(meaning(table.joint)) if table.joint else None
            if part is not None and part.name != name:
                remedy = f'remove = ["{kind}.{part.name}"] under [extends] takes it out'
                message = f"joint '{table.joint}' has the {kind} '{part.name}' of {file} already"
                yield kind, name, f"{message}; {remedy}"


# writing -----------------------------------------------------------------------------------


WIDTH = 120  # of comments

_EXAMPLES = """\
[contact.NAME]  # a link that rolls or slides; axis: its spin axis
type = "rolling"  # or omni, mecanum, skate, ball
body = "LINK"
radius = 0.1
axis = "y"

[loop.NAME]  # a joint that closes a loop between two links
type = "revolute"
parent = "LINK"
child = "LINK"
axis = "z"
at = [0, 0, 0]
child_at = [0, 0, 0]

[motor.NAME]
joint = "JOINT"
limit = 4.0

[damper.NAME]
joint = "JOINT"
coefficient = 0.01

[mimic.NAME]
joint = "JOINT"
of = "JOINT"
multiplier = 1.0

[measure.NAME]
kind = "position"
body = "LINK"

[home]
JOINT = 0.0
"""


def additions_text(
    mechanism: Mechanism, file: str, base: str | None, wheels: Iterable[ProposedWheel]
) -> str:
    """Write a file that extends another: what it may name, and what it may add, in comments.

    Args:
        mechanism: What the other file describes.
        file: Its path, as the new file gives it.
        base: How its root link is held, if that was asked for.
        wheels: Links that look like wheels; they roll.
    """
    motor = next((drive.name for drive in mechanism.drives), "NAME")
    names = ", ".join(toml_text(body) for body in dict.fromkeys(w.body for w in wheels))
    lines = [
        f"# Additions to {file}. Lengths in m, masses in kg, angles in rad, all else in SI units.",
        "",
        "[extends]",
        f"file = {toml_text(file)}",
        *([f'base = "{base}"'] if base else []),
        f"wheels = [{names}]" + ("  # links that look like wheels" if names else ""),
        'hold = []  # joints that stay as they are at home, such as "arm_*"',
        f"remove = []  # parts of that file, such as {toml_text(f'motor.{motor}')}",
        "",
        *_listed("links", (body.name for body in mechanism.bodies)),
        *_listed("joints", (f"{c.name} ({_kind(c.joint)})" for c in mechanism.connections)),
        *_listed("loops", (f"{c.name} ({_kind(c.joint)})" for c in mechanism.loops)),
        *_listed("couplings", (coupling.name for coupling in mechanism.couplings)),
        *_listed("motors", (drive.name for drive in mechanism.drives)),
        *_listed("dampers", (damper.name for damper in mechanism.dampers)),
        *_listed("springs", (spring.name for spring in mechanism.springs)),
        *_listed("springs between links", (strut.name for strut in mechanism.struts)),
        "",
        "# What can be added, among others; remove the signs in front of what you fill in.",
        "#",
        *(f"# {line}".rstrip() for line in _EXAMPLES.splitlines()),
    ]
    return "\n".join(lines) + "\n"


def _kind(joint: object) -> str:
    return type(joint).__name__.lower()


def _listed(what: str, names: Iterable[str]) -> list[str]:
    listed = ", ".join(names)
    wrapped = textwrap.wrap(
        f"# {what}: {listed}",
        WIDTH,
        subsequent_indent="#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapped if listed else []
