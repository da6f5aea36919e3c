"""Checks that names and functions of a model file belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from axode.codegen.tape.tape import Tape
from axode.derivatives.derivative_tables import TableName, derivative_sizes
from axode.errors import FileError, shortened
from axode.mechanism.checks import name_fault
from axode.mechanism.elements.bodies import GROUND
from axode.mechanism.elements.wheels import ContactTable
from axode.model.metadata import Facts

if TYPE_CHECKING:
    from axode.mechanism.scene.scene import Scene

Dimension = str | int
SOLIDS = {"box", "cylinder", "sphere"}  # that pictures can show

# What each function gives, by what it has one entry of; a number stands for itself.
SHAPES: dict[str, tuple[Dimension, ...]] = {
    "forward_dynamics": ("nu",),
    "inverse_dynamics": ("u",),
    "inverse_residual": ("nu",),
    "inverse_solution": ("inverse_solution",),
    "mass_matrix": ("nu", "nu"),
    "coriolis": ("nu", "nu"),
    "bias": ("nu",),
    "potential_force": ("nu",),
    "dissipative_force": ("nu",),
    "input_force": ("nu",),
    "joint_speeds": ("speeds",),
    "rates": ("q",),
    "accelerations": ("speeds",),
    "state_rate": ("state_rate",),
    "state_rate_jacobian": ("state_rate", "state_rate_arguments"),
    "projection": ("q",),
    "multipliers": ("rows",),
    "contact_forces": ("contacts", 3),
    "motor_powers": ("weights",),
    "energy": (2,),
    "residual": ("residual_rows",),
    "residual_jacobian": ("residual_rows", "q"),
    "dropped_rows": ("dropped",),
    "parameter_faults": ("parameter_checks",),
    "measures": ("measures",),
    "measures_jacobian": ("measures", "q_nu"),
    "speed_map": ("speeds", "nu"),
    "tangent_map": ("q", "tangents"),
    "poses": ("bodies", 4, 4),
    "twists": ("bodies", 6),
}
# The same of functions that are made on demand.
FURTHER_SHAPES: dict[str, tuple[Dimension, ...]] = {
    "all_rows": ("all_rows", "speeds"),
    "leg_jacobians": (6, "freedoms"),
    "leg_speed_maps": ("freedoms", "nu"),
    "leg_wrenches": ("legs", 6),
    "platform_twist_map": (6, "nu"),
    "platform_velocities": ("nu", "nu_6"),
    "momentum_speeds": ("nu",),
    "step": ("q_nu",),
    "contact_rows": ("contact_rows",),
    "motor_map": ("nu", "weights"),
    "twist_map": ("twists", "nu"),
    "twist_map_rate": ("twists", "nu"),
    "body_inertias": ("bodies", 6, 6),
}


def disagreements(facts: Facts, tapes: Mapping[str, Tape]) -> Iterator[str]:
    """List the contradictions between names, sizes and functions."""
    sizes = _sizes(facts)
    yield from _name_faults(facts, tapes)
    yield from _among_facts(facts, sizes)
    for name, tape in tapes.items():
        for port in tape.inputs:
            if port.name not in _arguments(facts):
                yield f"function {name} takes '{port.name}', which models do not have"
            elif port.shape != (sizes[port.name],):
                yield (
                    f"function {name} takes {port.shape} for '{port.name}', the names are "
                    f"{sizes[port.name]}"
                )
        table = TableName.read(name)
        expected = (
            table.shape(table_sizes(facts, table.function), sizes) if table else _shape(name, sizes)
        )
        found = [port.shape for port in tape.outputs]
        if len(found) != 1 or (expected is not None and found[0] != expected):
            given = ", ".join(map(str, found))
            yield f"function {name} gives {given}, the names ask for {expected}"
        elif name == "pivots":
            least = 2 * len(facts.leaning)  # and one per solve at most, of rows or for speeds
            most = least + len(facts.rows) + len(facts.speeds)
            if len(found[0]) != 1 or not least <= found[0][0] <= most:
                yield f"function pivots gives {found[0]}, the names ask for {least} to {most}"


def _sizes(facts: Facts) -> dict[str, int]:
    n_q, n_nu = len(facts.coordinates), len(facts.independent)
    return {
        "q": n_q,
        "nu": n_nu,
        "nu_dot": n_nu,
        "u": len(facts.inputs),
        "weights": facts.motors,
        "inverse_solution": len(facts.inputs) + n_nu + 1,
        "t": 1,
        "h": 1,
        "p": len(facts.parameters),
        "q_nu": n_q + n_nu,
        "state_rate": n_q + n_nu + 2,
        "state_rate_arguments": n_q + n_nu + len(facts.inputs) + 1,
        "speeds": len(facts.speeds),
        "rows": len(facts.rows),
        "dropped": len(facts.dropped),
        "all_rows": len(facts.rows) + len(facts.dropped),
        "parameter_checks": len(facts.parameter_checks),
        "residual_rows": len(facts.residual_rows),
        "contacts": len(facts.contacts),
        "bodies": len(facts.bodies),
        "contact_rows": sum(facts.contact_table.sizes(n_nu)),
        "measures": len(facts.measures),
        "twists": 6 * len(facts.bodies),
        "legs": len(facts.legs),
        "freedoms": sum(len(leg) - 1 for leg in facts.legs),
        "nu_6": n_nu + 6,
        "tangents": len(facts.tangents),
    }


def table_sizes(facts: Facts, function: str) -> dict[str, int]:
    """Number of derivatives by each argument of a function."""
    n, tangents = len(facts.independent), len(facts.tangents)
    free = 0 if facts.fixed else len(facts.parameters)
    motors, driven = facts.motors, facts.driven
    return derivative_sizes(function, tangents, n, len(facts.inputs), motors, free, driven)


def _arguments(facts: Facts) -> tuple[str, ...]:
    return ("q", "nu", "nu_dot", "u", "weights", "h", "t", *(() if facts.fixed else ("p",)))


def _shape(name: str, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """Shape of the result of a function or of its derivative, if the name is known."""
    function, _, wrt = name.partition("_by_")
    known = SHAPES | FURTHER_SHAPES
    if function not in known:
        return None
    dimensions = (*known[function], *((wrt,) if wrt else ()))
    return tuple(d if isinstance(d, int) else sizes.get(d, -1) for d in dimensions)


def _among_facts(facts: Facts, sizes: Mapping[str, int]) -> Iterator[str]:
    """Check the lengths of lists, and the numbers that point into them."""
    lengths = {
        "home": (len(facts.home), "q"),
        "coordinate_units": (len(facts.coordinate_units), "q"),
        "speed_units": (len(facts.speed_units), "speeds"),
        "limits": (len(facts.limits), "weights"),
        "input_units": (len(facts.input_units), "u"),
        "row_units": (len(facts.row_units), "rows"),
        "residual_units": (len(facts.residual_units), "residual_rows"),
    }
    for name, (length, dimension) in lengths.items():
        if length != sizes[dimension]:
            yield f"{length} {name} for {sizes[dimension]} names"
    unknown = {*facts.independent, *facts.tangents} - set(facts.speeds)
    if unknown:
        yield f"independent speeds or tangents that are no speeds: {', '.join(sorted(unknown))}"
    if not 0 <= facts.motors <= sizes["u"]:
        yield f"{facts.motors} motors among {sizes['u']} inputs"
    if len(facts.motor_names) not in (0, facts.motors):
        yield f"{len(facts.motor_names)} names of {facts.motors} motors"
    if len(facts.motor_speeds) not in (0, facts.motors) or len(facts.motor_numbers) not in (
        0,
        facts.motors,
    ):
        yield "speeds or numbers of other motors than it has"
    if any(len(four) != 4 for four in facts.quaternions):
        yield "quaternions of other than four numbers"
    places = [k for four in facts.quaternions for k in four]
    if not all(0 <= k < sizes["q"] for k in places) or len({*places}) != len(places):
        yield "quaternions of coordinates that are not there"
    if not all(0 <= i < sizes["contacts"] and 0 <= k < 3 for i, k in facts.unknown_forces):
        yield "unknown forces of contacts that are not there"
    yield from _references(facts)
    yield from _table_faults(facts.contact_table)


def _table_faults(table: ContactTable) -> Iterator[str]:
    """Check the numbers that point to contact rows and names of contacts."""
    groups, rows, names = table.rubbing, range(len(table.rows)), range(len(table.names))
    used = [*table.normals, *(row for group in groups for row in group.rows)]
    owners = [*table.normal_contacts, *(group.contact for group in groups)]
    if sorted(used) != [*rows] or not all(1 <= len(group.rows) <= 2 for group in groups):
        yield "contact rows that are not there, or used twice"
    if not all(group.normal in (-1, *table.normals) for group in groups):
        yield "contacts that rub under rows that do not press"
    if len(table.normal_contacts) != len(table.normals) or not all(k in names for k in owners):
        yield "rows of contacts that are not there"


def _references(facts: Facts) -> Iterator[str]:
    """Check names that must be among others."""
    for base in facts.bases:
        if len(base) not in (4, 7) or base[0] not in facts.bodies:
            yield "a base that is no body with its coordinates"
        elif not set(base[1:]) <= set(facts.coordinates):
            yield "a base of coordinates that are not there"
    if not {*facts.motor_speeds, *(s for _, s in facts.speed_aliases)} <= set(facts.speeds):
        yield "other names of speeds that are not there"
    if not set(facts.rest_first) <= set(facts.speeds):
        yield "speeds to leave at zero that are not there"
    if bool(facts.platform) != bool(facts.legs) or facts.platform not in ("", *facts.bodies):
        yield "legs of a platform that is no body"
    if not all(facts.legs):
        yield "a leg without a name"
    if not set(facts.leaning) <= set(facts.contacts):
        yield "wheels that may lean and are not there"
    if not set(facts.row_parameters) <= {name for name, _ in facts.parameters}:
        yield "rows that depend on parameters that are not there"


def _name_faults(facts: Facts, tapes: Mapping[str, Tape]) -> Iterator[str]:
    """Check that names are valid, as in mechanism files, and unique."""
    named = {
        "coordinate": facts.coordinates,
        "speed": facts.speeds,
        "independent speed": facts.independent,
        "input": facts.inputs,
        "body": facts.bodies,
        "contact": facts.contacts,
        "parameter": tuple(name for name, _ in facts.parameters),
        "measure": tuple(name for name, _, _ in facts.measures),
        "leg": tuple(leg[0] for leg in facts.legs if leg),
        "function": tuple(tapes),
    }
    if not facts.name.isprintable():
        yield f"its name must be printable text, got {shortened(facts.name)}"
    for kind, names in named.items():
        for name in names:
            fault = name_fault(name)
            if fault:
                yield f"{kind}: {fault}"
        if len(set(names)) != len(names):
            yield f"two of its {kind} names are the same"


def check_scene(facts: Facts, scene: Scene) -> None:
    """Check that a scene shows what the model has.

    Raises:
        FileError: for what does not fit.
    """
    bodies = {GROUND.name, *scene.bodies}
    all_solids = (*scene.solids, *scene.stand_ins)
    shown = [solid.body for solid in all_solids] + [floor.body for floor in scene.floors]
    shown += [surface.body for surface in scene.surfaces]
    colours = [solid.colour for solid in all_solids] + [s.colour for s in scene.surfaces]
    shown += [touch.body for touch in scene.touches]
    shown += [body for cord in scene.cords for body in cord.bodies]
    checks = {
        "other bodies than the model": scene.bodies == facts.bodies,
        "parts of bodies that are not there": set(shown) <= bodies,
        "contacts on floors that are not there": all(
            0 <= touch.floor < len(scene.floors) for touch in scene.touches
        ),
        "mass centres for other bodies": len(scene.centres) in (0, len(scene.bodies)),
        "solids of unknown kinds": {solid.kind for solid in all_solids} <= SOLIDS,
        "colours that are none": all(0 <= part <= 255 for rgb in colours for part in rgb),
        "no size": scene.size > 0,
    }
    for fault, sound in checks.items():
        if not sound:
            raise FileError(f"its scene has {fault}")
