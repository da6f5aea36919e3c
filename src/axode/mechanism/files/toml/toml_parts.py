"""Parts of a mechanism from the tables of a file, and where each part came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any

from axode.errors import Fault, InvalidArgument
from axode.mechanism.elements.bodies import SHAPES, Inertia
from axode.mechanism.elements.forces import Motor
from axode.mechanism.elements.joints import JOINTS
from axode.mechanism.elements.wheels import WHEELS, Plane
from axode.mechanism.files.toml.toml_schema import (
    BodyTable,
    CasterTable,
    ContactTable,
    Document,
    GroundTable,
    LoopTable,
    MotorNumbers,
    RollTable,
    StrutTable,
    Table,
    WheelTable,
)
from axode.mechanism.mechanism import Mechanism

Report = Callable[[str, str, str, str], None]  # kind, name, key, message

# of each kind of coupling, the keys that name its joints and the one that gives its coefficients
COUPLINGS: dict[str, tuple[tuple[str, ...], str]] = {
    "coupling": ((), "terms"),
    "cam": (("follower", "cam"), "profile"),
    "mimic": (("joint", "of"), "multiplier"),
    "gear": (("joint_a", "joint_b"), "ratio"),
    "belt": (("joint_a", "joint_b"), "ratio"),
    "differential": (("shaft", "left", "right"), "ratio"),
    "rack": (("pinion", "slide"), "radius"),
    "screw": (("turning", "slide"), "pitch"),
}
_MOTOR_KEYS = {key: f"motor.{key}" for key in MotorNumbers.model_fields}


def _keys(kinds: Mapping[str, type[Any]]) -> list[str]:
    """Keys that some of these joints, wheels or shapes have."""
    return list(dict.fromkeys(entry.name for kind in kinds.values() for entry in fields(kind)))


JOINT_KEYS, WHEEL_KEYS, SHAPE_KEYS = _keys(JOINTS), _keys(WHEELS), _keys(SHAPES)


@dataclass(frozen=True)
class TableOrigin:
    """The table of the file that a part was made from.

    `keys` translates the part's fields to the table's keys; `derived` are the fields that were
    made from others.
    """

    kind: str
    name: str
    keys: dict[str, str] = field(default_factory=dict)
    derived: tuple[str, ...] = ()

    def has_fault(self, faults: Sequence[Fault]) -> bool:
        """Return whether any fault of the table is known."""
        return any((fault.kind, fault.name) == (self.kind, self.name) for fault in faults)


class Builder:
    """Adds one part after the other; what cannot be built is reported and left out.

    Bodies come first, then joints, loops, wheels, casters and contacts, each in the order of the
    file: the order of coordinates does not depend on where in the file a table stands.
    """

    def __init__(self, stem: str, report: Report) -> None:
        self.stem = stem
        self.report = report
        self.left_out: list[tuple[str, str]] = []
        self.origins: dict[tuple[str, str], TableOrigin] = {}

    def build(self, document: Document, extended: Mechanism | None = None) -> Mechanism:
        """Make the mechanism of all tables, or add them to the one that the file extends."""
        name = self.stem if document.name is None else document.name
        self.mechanism = Mechanism(name, document.gravity, loop_tolerance=document.loop_tolerance)
        if extended is not None:
            self.mechanism = extended
            for key in {"name", "gravity", "loop_tolerance"} & document.model_fields_set:
                setattr(extended, key, getattr(document, key))
        steps: tuple[tuple[str, Callable[[str, Any], None]], ...] = (
            ("body", self.body),
            *((kind, partial(self.joint, kind)) for kind in ("joint", "loop")),
            ("wheel", self.wheel),
            ("caster", self.caster),
            ("contact", self.contact),
            *((kind, partial(self.coupling, kind)) for kind in COUPLINGS),
            ("motor", partial(self.plain, "motor")),
            *((kind, partial(self.acting, kind)) for kind in ("damper", "spring")),
            *((kind, partial(self.plain, kind)) for kind in ("wrench", "measure")),
        )
        for kind, step in steps:
            for part, table in getattr(document, kind).items():
                try:
                    step(part, table)
                except InvalidArgument as error:
                    self.left_out.append((kind, part))
                    self.report(kind, part, "", str(error))
        for coordinate, motion in document.prescribe.items():
            self.mechanism.prescribe(coordinate, motion)
        self.mechanism.set_home(document.home)
        return self.mechanism

    # one part each -------------------------------------------------------------------------------

    def body(self, name: str, table: BodyTable) -> None:
        shape = self.shapes("body", name, table.shape)
        inertia = table.inertia
        if inertia is None and not shape:
            self.report(
                "body",
                name,
                "inertia",
                'is missing; give three principal moments, "point" '
                "for a point mass, or a shape to take it from",
            )
            inertia = Inertia(1.0, 1.0, 1.0)
        self.mechanism.add_body(name, mass=table.mass, com=table.com, inertia=inertia, shape=shape)
        self.record_origin(("body",), TableOrigin("body", name, derived=_derived(table)), name)

    def joint(self, kind: str, name: str, table: LoopTable) -> None:
        """Add a joint or a loop; a joint whose child is held already is a loop, too."""
        made = self.variant(kind, name, table, JOINTS[table.type], JOINT_KEYS)
        add = self.mechanism.add_joint if kind == "joint" else self.mechanism.add_loop
        add(name, made, **_arguments(table, *JOINT_KEYS))
        kinds = ("joint", "loop") if kind == "joint" else ("loop",)
        self.record_origin(kinds, TableOrigin(kind, name, {"joint": "type"}), name)

    def wheel(self, name: str, table: WheelTable) -> None:
        given = _arguments(table, *WHEEL_KEYS) | {"ground": _ground(table)}
        given["shape"] = self.shapes("wheel", name, table.shape)
        if isinstance(table.motor, MotorNumbers):
            given["motor"] = Motor(**_arguments(table.motor))
        self.mechanism.add_wheel(name, self.wheel_of("wheel", name, table), **given)
        keys = {"parent": "on", "joint": "type", "body": ""}
        origin = TableOrigin("wheel", name, keys, _derived(table))
        self.record_origin(("body", "joint", "loop", "wheel", "contact"), origin, name)
        self.record_origin(
            ("motor",), TableOrigin("wheel", name, {**_MOTOR_KEYS, "joint": "motor"}), name
        )

    def caster(self, name: str, table: CasterTable) -> None:
        given = _arguments(table, *WHEEL_KEYS) | {"ground": _ground(table)}
        self.mechanism.add_caster(name, self.wheel_of("caster", name, table), **given)
        origin = TableOrigin("caster", name, {"at": "trail"}, _derived(table))
        self.record_origin(("body", "joint", "loop", "wheel", "contact"), origin, name)
        bracket = {
            "mass": "bracket_mass",
            "com": "bracket_com",
            "inertia": "bracket_inertia",
            "parent": "on",
            "axis": "pivot_axis",
        }
        origin = TableOrigin("caster", name, bracket, ("com",) if table.bracket_com is None else ())
        self.record_origin(("body", "joint", "loop"), origin, f"{name}_bracket")

    def contact(self, name: str, table: ContactTable) -> None:
        given = _arguments(table, *WHEEL_KEYS) | {"ground": _ground(table)}
        self.mechanism.add_contact(name, self.wheel_of("contact", name, table), **given)
        self.record_origin(("contact", "wheel"), TableOrigin("contact", name), name)

    def coupling(self, kind: str, name: str, table: Table) -> None:
        joints, coefficient = COUPLINGS[kind]
        given = _arguments(table)
        made = getattr(self.mechanism, f"add_{kind}")(name, **given)
        if kind == "coupling":
            keys = {f"coefficients.{joint}": f"terms.{joint}" for joint, _ in made.terms}
        else:
            keys = {f"terms.{given[key]}": key for key in joints}
            keys |= {f"coefficients.{given[key]}": coefficient for key in joints}
            keys["function"] = coefficient
        self.record_origin(("coupling",), TableOrigin(kind, name, keys), name)

    def acting(self, kind: str, name: str, table: StrutTable) -> None:
        """Add a damper or spring, which acts on a joint or between points of two bodies."""
        ends = ("parent", "child", "at", "child_at")
        for key in ends if table.joint is not None else ():
            if key in table.model_fields_set:
                message = f"a {kind} acts on a joint or between two bodies, not both"
                self.report(kind, name, key, message)
        given = _arguments(table, *(ends if table.joint is not None else ()))
        getattr(self.mechanism, f"add_{kind}")(name, **given)
        other, keys = "spring", {"damping": "coefficient"}
        if kind == "spring":
            other, keys = "damper", {"coefficient": "damping"}
        self.record_origin((kind, other), TableOrigin(kind, name, keys), name)

    def plain(self, kind: str, name: str, table: Table) -> None:
        """Add a part whose keys are the arguments of the method that adds it."""
        add = "measure" if kind == "measure" else f"add_{kind}"
        getattr(self.mechanism, add)(name, **_arguments(table))
        self.record_origin((kind,), TableOrigin(kind, name), name)

    # pieces of tables ----------------------------------------------------------------------------

    def record_origin(self, kinds: Sequence[str], origin: TableOrigin, name: str) -> None:
        """Remember the table of a part; the first kind is its own, the others if still free."""
        for kind in kinds:
            if kind == kinds[0]:
                self.origins[kind, name] = origin
            else:
                self.origins.setdefault((kind, name), origin)

    def wheel_of(self, kind: str, name: str, table: RollTable) -> Any:
        return self.variant(kind, name, table, WHEELS[table.type], WHEEL_KEYS)

    def shapes(self, kind: str, name: str, tables: Any) -> Any:
        return [
            self.variant(kind, name, table, SHAPES[table.type], SHAPE_KEYS, "shape.")
            for table in tables or ()
        ]

    def variant(
        self,
        kind: str,
        name: str,
        table: Any,
        made: type[Any],
        keys: Sequence[str],
        prefix: str = "",
    ) -> Any:
        """The joint, wheel or shape of the table's type, from the keys that suit it."""
        suitable = {entry.name: entry for entry in fields(made) if entry.compare}
        given = {key: getattr(table, key) for key in keys if key in table.model_fields_set}
        family = "shape" if prefix else "joint" if kind in ("joint", "loop") else "wheel"
        article = "an" if table.type == "omni" else "a"
        what = f"{article} {table.type} {family}"
        for key in [key for key in given if key not in suitable]:
            others = ", ".join(suitable)
            rest = f"; it has {others}" if others else ""
            self.report(kind, name, prefix + key, f"{what} has no {key}{rest}")
            del given[key]
        for key, entry in suitable.items():
            if entry.default is MISSING and key not in given:
                self.report(kind, name, prefix + key, f"is missing; {what} needs it")
                given[key] = {"size": (1.0, 1.0, 1.0), "file": "-"}.get(key, 1.0)
        return made(**given)


def _arguments(table: Table, *without: str) -> dict[str, Any]:
    """Keys of a table that are arguments of the method that adds its part."""
    keys = type(table).model_fields.keys() - {"type", *without}
    return {key: getattr(table, key) for key in keys}


def _derived(table: BodyTable | WheelTable | CasterTable) -> tuple[str, ...]:
    """Inertia that was made from mass and size."""
    return ("inertia",) if table.inertia is None else ()


def _ground(table: RollTable) -> Any:
    plane = table.ground
    if isinstance(plane, GroundTable):
        return Plane(plane.normal, plane.point, plane.on)
    return plane
