"""Metadata of a model: names, sizes, units and defaults, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from axode.disk.bounded import as_dataclass
from axode.errors import NotApplicable
from axode.mechanism.elements.wheels import ContactTable
from axode.mechanism.topology import free_bases, speed_meanings, speed_units, tree_order
from axode.mechanism.values.expressions import format_scalar, numeric
from axode.model.parameter_checks import ParameterChecks

if TYPE_CHECKING:
    from axode.mechanism.elements.forces import Motor
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class Facts:
    """Names, units and defaults of a model."""

    name: str
    formulation: str
    coordinates: tuple[str, ...]
    speeds: tuple[str, ...]
    independent: tuple[str, ...]
    inputs: tuple[str, ...]
    motors: int
    rows: tuple[str, ...]
    residual_rows: tuple[str, ...]
    residual_units: tuple[str, ...]  # "m" or "rad"
    bodies: tuple[str, ...]
    contacts: tuple[str, ...]
    unknown_forces: tuple[tuple[int, int], ...]  # entries of contact_forces left open by statics
    limits: tuple[float | None, ...]  # of the motors, at the parameters' defaults
    measures: tuple[tuple[str, str, bool], ...]  # name, unit, whether it needs speeds
    coordinate_units: tuple[str, ...]
    speed_units: tuple[str, ...]
    input_units: tuple[str, ...]
    row_units: tuple[str, ...]  # "m" or "rad": what the row's force works on
    quaternions: tuple[tuple[int, ...], ...]
    parameters: tuple[tuple[str, float], ...]
    fixed: bool
    actuation: str
    home: tuple[float, ...]
    # joints and coordinates that name a speed too, and which
    speed_aliases: tuple[tuple[str, str], ...] = ()
    # rows that follow from the kept ones at the parameters' defaults, and the parameters on which
    # that depends
    dropped: tuple[str, ...] = ()
    row_parameters: tuple[str, ...] = ()
    leaning: tuple[str, ...] = ()  # wheels that may come to lie flat: the last pairs of pivots
    length: float = 1.0  # [m] in which the mechanism is measured: a metre, or its extent
    bases: tuple[tuple[str, ...], ...] = ()  # bodies over the ground: name, x, y, yaw or quaternion
    # independent speeds and those of bases that starts leave at zero, first those that move least
    rest_first: tuple[str, ...] = ()
    platform: str = ""  # the body that legs carry
    legs: tuple[tuple[str, ...], ...] = ()  # each its name, then its freedoms
    tangents: tuple[str, ...] = ()  # speeds along which the configuration is displaced
    driven: bool = False  # whether time prescribes anything
    parameter_checks: tuple[str, ...] = ()  # what `parameter_faults` checks
    motor_names: tuple[str, ...] = ()  # not of models in files of versions that had no powers
    memory: tuple[str, ...] = ()  # of a law: the last independent speeds, their rates last inputs
    motor_speeds: tuple[str, ...] = ()  # that they drive
    motor_numbers: tuple[tuple[tuple[str, str], ...], ...] = ()  # names and formulas
    contact_table: ContactTable = ContactTable()  # of contacts that slip and lift, and stops

    @classmethod
    def of(cls, equations: Equations, *, fixed: bool) -> Facts:
        """Collect the metadata of a derived mechanism."""
        from axode.symbolic.contact_rows import contact_table
        from axode.symbolic.functions import unknown_contact_forces

        system = equations.system
        return cls(
            name=equations.name,
            formulation=equations.formulation,
            coordinates=equations.coordinates,
            speeds=equations.speeds,
            independent=equations.independent,
            inputs=equations.inputs,
            motors=system.forces.motors,
            motor_names=tuple(drive.name for drive in system.mechanism.drives),
            motor_speeds=tuple(
                speed_meanings(system.mechanism)[drive.coordinate]
                for drive in system.mechanism.drives
            ),
            motor_numbers=tuple(_numbers(drive.motor) for drive in system.mechanism.drives),
            rows=equations.rows,
            contact_table=contact_table(system.mechanism),
            residual_rows=tuple(equations.residuals),
            residual_units=(
                *(row.unit for row in system.rows if row.residual is not None),
                *("rad" for _ in system.level for _ in "xy"),
            ),
            bodies=tuple(body.name for body in system.mechanism.bodies),
            contacts=tuple(contact.name for contact in system.mechanism.ideal_contacts),
            unknown_forces=tuple(unknown_contact_forces(equations)),
            limits=_limits(equations),
            measures=tuple((m.name, m.unit, m.needs_speeds) for m in equations.measures.values()),
            coordinate_units=tuple(
                u for c in tree_order(system.mechanism) for u in c.joint.coordinate_units
            ),
            speed_units=tuple(speed_units(system.mechanism).values()),
            input_units=_input_units(equations),
            row_units=tuple(row.unit for row in system.kept),
            quaternions=system.tree.quaternions,
            parameters=tuple(equations.parameters.items()),
            fixed=fixed,
            actuation=equations.actuation,
            home=tuple(float(x) for x in system.home),
            length=system.assembly.length,
            **_platform(equations),
            bases=free_bases(system.mechanism),
            tangents=tuple(equations.speeds[j] for j in system.tangents.asked),
            driven=system.rheonomic,
            parameter_checks=_checks(equations, fixed),
            rest_first=_rest_first(equations),
            dropped=tuple(str(row) for row in system.report.dropped),
            row_parameters=system.row_parameters,
            leaning=tuple(contact.name for contact in system.leaning),
            speed_aliases=tuple(
                (name, speed)
                for name, speed in speed_meanings(system.mechanism).items()
                if name != speed
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the metadata in JSON's own types."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Facts:
        """Read what `to_json` returned.

        Raises:
            FileError: naming the first entry that is missing, unknown or of another type.
        """
        return as_dataclass(cls, data, "facts")


def _checks(equations: Equations, fixed: bool) -> tuple[str, ...]:
    """Describe the checks of free parameters."""
    names = () if fixed else tuple(equations.parameters)
    return ParameterChecks.of(equations.system.mechanism, names).texts


def _platform(equations: Equations) -> dict[str, Any]:
    """Name the platform and the freedoms of its legs; nothing where there is none."""
    from axode.symbolic.formulations.legs import platform_topology

    try:
        paths = platform_topology(equations.system.tree)
    except NotApplicable:
        return {}
    return {"platform": paths.body, "legs": tuple((leg.name, *leg.speeds) for leg in paths.legs)}


def _rest_first(equations: Equations) -> tuple[str, ...]:
    """Order independent speeds and those of bases, first those that should rest."""
    from axode.symbolic.constraints.system import preference

    system, names = equations.system, list(equations.speeds)
    joints = tree_order(system.mechanism)
    own = [names.index(name) for name in equations.independent]
    bases = {
        names.index(speed): unit
        for c in joints
        if c.joint.carries_base
        for speed, unit in zip(c.speeds, c.joint.speed_units, strict=True)
    }
    wheels = {contact.body for contact in system.mechanism.contacts}
    spins = {names.index(s) for c in joints if c.child in wheels for s in c.speeds} - set(bases)
    last_first = [j for j in preference(system.mechanism, system.tree)[::-1] if j in bases]
    turning = [j for j in last_first if bases[j] == "rad/s"]
    sliding = [j for j in last_first if bases[j] == "m/s" and j in own]
    inner = [j for j in own if j not in bases and j not in spins]
    order = [*inner, *turning, *sliding, *(j for j in own if j in spins)]
    return tuple(names[j] for j in order)


def _input_units(equations: Equations) -> tuple[str, ...]:
    """Units of the inputs: of motors by their joint, of wrenches by the component."""
    mechanism, motors = equations.system.mechanism, equations.system.forces.motors
    units, meanings = speed_units(mechanism), speed_meanings(mechanism)
    moved = (units[meanings[d.coordinate]] for d in mechanism.drives)
    forces = ["N" if unit == "m/s" else "N m" for unit in moved]
    wrenches = equations.inputs[motors:]
    return (*forces, *("N" if n.endswith((".fx", ".fy", ".fz")) else "N m" for n in wrenches))


def _numbers(motor: Motor) -> tuple[tuple[str, str], ...]:
    """Numbers of a motor that are not as usual, as formulas of the parameters."""
    given = ((f.name, getattr(motor, f.name), f.default) for f in fields(motor))
    return tuple((name, format_scalar(x)) for name, x, usual in given if x != usual)


def _limits(equations: Equations) -> tuple[float | None, ...]:
    drives = equations.system.mechanism.drives
    return tuple(None if d.motor.limit is None else numeric(d.motor.limit) for d in drives)
