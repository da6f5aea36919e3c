"""Linear models of mechanisms whose contacts may slip and lift: in the modes of one state.

Near a state in which every contact sticks or is open, the mechanism moves as one whose sticking
wheels are ideal, whose open contacts are not there, and whose sticking joints are locked. That
mechanism is linearized; where a mode ends, there is no linear model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import MechanismError, NotApplicable
from axode.mechanism.elements.wheels import Contact, ContactTable
from axode.mechanism.mechanism import Mechanism
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, memory_of
from axode.model.state import State
from axode.numerics.tolerances import NEGLIGIBLE, SEVEN_DIGITS, TINY
from axode.problems.arguments import read_state, start_time
from axode.problems.contact_events.decisions import TOUCHING, Instant, Undetermined, mode_words
from axode.problems.contact_events.mode_model import WATCHED, ModeValues, mode_model
from axode.problems.linearize.linearization import Linearization
from axode.problems.linearize.linearize import linearize
from axode.problems.linearize.operating_point import find_operating_point

Array = npt.NDArray[np.float64]
SIMULATED = "simulate goes on through it; ax.linearize takes a state next to it, or another input"


def linearize_modes(model: Model, state: Any, options: Mapping[str, Any]) -> Linearization:
    """Linearize a model with contacts in the modes that it has at a state.

    Raises:
        NotApplicable: if a contact slips, strikes or is about to change its mode there, naming it.
    """
    if not model.has_equations:
        raise NotApplicable(
            f"linearize: '{model.name}' was read from a file, which holds no mechanism whose "
            "contacts could stick; compile it from the mechanism"
        )
    if options["settle"]:
        raise NotApplicable(
            "linearize(settle=True) knows no contacts that slip and lift: give the equilibrium as "
            "state, such as run.final of a run that came to rest"
        )
    time = start_time(options["t"], read_state(model, state, "state"))
    conditions = Conditions.of(model, time, options["parameters"])
    point = find_operating_point(model, state, conditions)
    modes = _modes_of_motion(model, point)
    fixed = _in_modes(model, point, modes)
    if fixed.coordinates != model.coordinates:
        raise NotApplicable(
            f"linearize: '{model.name}' has other coordinates while its contacts stick; "
            "linearize mechanism.ideal().derive().compile()"
        )
    rates = dict(zip(model.speed_names, _joint_speeds(model, point), strict=True))
    nu = np.array([rates[name] for name in fixed.independent])
    made = linearize(fixed, State(point.q, nu, point.residual, fixed, conditions), **options)
    _require_modes(model, made, modes, conditions)
    return replace(made, modes=modes)


def _joint_speeds(model: Model, point: State) -> list[float]:
    speeds: Array = model.joint_speeds(point.q, point.nu, **point.conditions.options)
    return [float(x) for x in speeds]


def _instant(model: Model, q: Array, nu: Array, u: Array, conditions: Conditions) -> Instant:
    table = facts_of(model).contact_table
    return Instant(model, table, q.copy(), nu.copy(), u, conditions)


def _modes_of_motion(model: Model, point: State) -> dict[str, str]:
    """Find which contacts touch and stick, by gaps and speeds alone.

    Raises:
        NotApplicable: if one slips, strikes, or is in the ground.
    """
    table = facts_of(model).contact_table
    none = np.zeros(len(model.inputs))
    instant = _instant(model, point.q, point.nu, none, point.conditions)
    modes = dict.fromkeys(table.names, "open")
    touches, v = {-1}, instant.v
    for row, gap, owner in zip(table.normals, instant.rows.gap, table.normal_contacts, strict=True):
        if gap > TOUCHING:
            continue
        if gap < -TOUCHING or abs(v[row]) > NEGLIGIBLE:
            what = "is in the ground" if gap < -TOUCHING else "strikes or lifts"
            raise _switch(model, table.names[owner], what)
        touches.add(row)
        modes[table.names[owner]] = "closed"
    for group in table.rubbing:
        rows, name = list(group.rows), table.names[group.contact]
        if group.normal not in touches or not instant.rows.limits[rows].any():
            continue
        if np.abs(v[rows]).max() > NEGLIGIBLE:
            raise _switch(model, name, "slips")
        modes[name] = "stick"
    return modes


def _switch(model: Model, contact: str, what: str) -> NotApplicable:
    return NotApplicable(
        f"linearize: '{contact}' of '{model.name}' {what} there, and has no linear model; "
        f"{SIMULATED}"
    )


def _in_modes(model: Model, point: State, modes: Mapping[str, str]) -> Model:
    """Return the model of a mechanism that keeps its modes, made once for each."""
    mechanism = model.equations.mechanism
    table = facts_of(model).contact_table
    parts = dict(zip(table.names, mechanism.contact_parts, strict=True))
    values = dict(zip(model.coordinates, point.q.tolist(), strict=True))
    held = {
        name: values[part.coordinates[0]]
        for name, part in parts.items()
        if not isinstance(part, Contact) and modes[name] != "open"
    }
    kept = memory_of(model)
    key = ("in modes", tuple(modes.items()), tuple(held.items()))
    if key not in kept:
        made = _mechanism_in_modes(model, mechanism, parts, modes, held)
        try:
            kept[key] = made.derive().compile()
        except MechanismError as error:
            raise NotApplicable(
                f"linearize: while its contacts stick, '{model.name}' is no mechanism that can be "
                f"linearized: {error}"
            ) from None
    found: Model = kept[key]
    return found


def _mechanism_in_modes(
    model: Model,
    mechanism: Mechanism,
    parts: Mapping[str, Any],
    modes: Mapping[str, str],
    held: Mapping[str, float],
) -> Mechanism:
    made = mechanism.ideal()
    ideal = {contact.name for contact in made.contacts}
    for name, part in parts.items():
        if not isinstance(part, Contact):
            continue
        if modes[name] == "open":
            made.contacts = [contact for contact in made.contacts if contact.name != part.name]
        elif part.name not in ideal or part.wheel.scrub or part.wheel.rolling_resistance:
            what = "has scrub or rolling resistance" if part.name in ideal else "is a point"
            raise NotApplicable(
                f"linearize: '{name}' of '{model.name}' touches the ground and {what}, and no "
                "ideal wheel sticks so; linearize the mechanism with an ideal wheel in its place"
            )
        elif modes[name] == "closed" and part.wheel.rolling_rows:
            raise NotApplicable(
                f"linearize: '{name}' of '{model.name}' touches the ground without friction; "
                "linearize the mechanism with its rows set free, such as longitudinal='free'"
            )
    for name, value in held.items():
        made.prescribe(parts[name].coordinates[0], value)
    made.set_home(dict(zip(model.coordinates, model.home.tolist(), strict=True)))
    return made


def _require_modes(
    model: Model, made: Linearization, modes: Mapping[str, str], conditions: Conditions
) -> None:
    """Require that the forces at the operating point keep the modes.

    Raises:
        NotApplicable: naming the contact that does not keep its mode.
    """
    u = np.array([made.held[name] for name in model.inputs])
    point, table = made.point, facts_of(model).contact_table
    rates = dict(zip(point.model.speed_names, _joint_speeds(point.model, point), strict=True))
    nu = np.array([rates[name] for name in model.independent])
    instant = _instant(model, point.q, nu, u, conditions)
    try:
        decided = instant.decide(NEGLIGIBLE, ModeValues(table))
    except Undetermined as error:
        raise _switch(model, str(error), "has no motion that rigid bodies determine") from None
    words = mode_words(table, decided)
    for name, mode in modes.items():
        if words[name] != mode:
            what = {"open": "would lift", "slip": "would slip"}.get(words[name], "would stick")
            raise _switch(model, name, what)
    _require_margins(model, instant, decided, table)


def _require_margins(
    model: Model, instant: Instant, decided: ModeValues, table: ContactTable
) -> None:
    base = mode_model(model)
    own = () if facts_of(model).fixed else model.parameter_vector(instant.conditions.p)
    p = np.concatenate([own, decided.vector])
    arrays = {"q": instant.q, "nu": instant.nu, "u": instant.u}
    watched = base.evaluate(WATCHED, arrays, {"t": instant.time, "parameters": p})
    least = SEVEN_DIGITS * max(instant.largest, TINY)
    for k, (row, owner) in enumerate(zip(table.normals, table.normal_contacts, strict=True)):
        if decided.active[row] and watched[k] < least:
            raise _switch(model, table.names[owner], "is about to lift")
    for k, group in enumerate(table.rubbing, len(table.normals)):
        if decided.active[group.rows[0]] and watched[k] < least:
            raise _switch(model, table.names[group.contact], "is about to slip")
