"""Values given to parameters later: the checks of a description, at these values.

A mass of two kilograms may be a parameter, and minus two kilograms may be given for it when the
equations are long derived. Many runs are checked at once; the first that fails is reported with
the words that its description would have got.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import Fault
from axode.mechanism.checks import value_faults
from axode.mechanism.elements.bodies import Inertia
from axode.mechanism.elements.forces import MOTOR_BOUNDS
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import formulas_in
from axode.mechanism.values.expressions import (
    TIME,
    UFUNCS,
    Expression,
    Operation,
    Parameter,
    evaluate,
)
from axode.numerics.tolerances import NEGLIGIBLE, SEVEN_DIGITS, THREE_DIGITS

Array = npt.NDArray[np.float64]
LOOKED_AT = 20  # runs suspected of one fault and looked at closely; if they pass, all do
Runs = npt.NDArray[np.bool_]
Kinds = npt.NDArray[np.intp]
_VALUE = re.compile(", got .*", re.DOTALL)  # end of a fault's text that differs from run to run


# the functions of formulas on arrays, one value per run
_ON_ARRAYS: dict[str, Callable[..., Any]] = {kind: getattr(np, n) for n, kind in UFUNCS.items()}
_ON_ARRAYS["where"] = np.where


def faults_of_values(
    mechanism: Mechanism, values: Mapping[str, Array]
) -> tuple[int, list[Fault]] | None:
    """The first run whose parameters no mechanism can have, and its faults.

    Args:
        mechanism: Whose parameters they are.
        values: Values of all parameters by name, (runs,) each.
    """
    kinds, _ = find_impossible(mechanism, values)
    if not kinds.any():
        return None
    run = int(np.argmax(kinds > 0))
    return run, _faults_of(mechanism, values, run)


def find_impossible(
    mechanism: Mechanism, values: Mapping[str, Array]
) -> tuple[Kinds, dict[int, str]]:
    """Find runs whose parameters no mechanism can have.

    Args:
        mechanism: Whose parameters they are.
        values: Values of all parameters by name, (runs,) each.

    Returns:
        By run, zero or the number of what is wrong with it; and what that is, by number.
    """
    count = len(next(iter(values.values()), ()))
    kinds = np.ones(1, dtype=np.intp) if count == 1 else _suspect(mechanism, values, count)
    texts: dict[int, str] = {}
    for kind in np.unique(kinds[kinds > 0]).tolist():
        shared: list[str] | None = None  # what is wrong with all that are looked at
        suspects = np.flatnonzero(kinds == kind)
        for run in suspects[:LOOKED_AT].tolist():
            found = [_VALUE.sub("", str(f)) for f in _faults_of(mechanism, values, run)]
            if not found:
                kinds[run] = 0
            else:
                shared = found if shared is None else [f for f in shared if f in found] or shared
        if shared is None:
            kinds[suspects] = 0
        else:
            texts[kind] = shared[0]
    return kinds, texts


def _faults_of(mechanism: Mechanism, values: Mapping[str, Array], run: int) -> list[Fault]:
    own = {name: float(column[run]) for name, column in values.items()}
    return value_faults(at_values(mechanism, own))


def at_values(mechanism: Mechanism, values: Mapping[str, float]) -> Mechanism:
    """Return the description with other defaults of its parameters."""
    made = mechanism.copy()
    for entry in fields(made):
        setattr(made, entry.name, _replaced(getattr(made, entry.name), values))
    return made


def _replaced(part: Any, values: Mapping[str, float]) -> Any:
    if isinstance(part, Parameter):
        return replace(part, default=values.get(part.name, part.default))
    if isinstance(part, Operation):
        return replace(part, operands=tuple(_replaced(x, values) for x in part.operands))
    if isinstance(part, (list, tuple)):
        return type(part)(_replaced(x, values) for x in part)
    if is_dataclass(part) and not isinstance(part, (type, Expression)):
        if next(formulas_in(part), None) is None:
            return part
        changed = {f.name: _replaced(getattr(part, f.name), values) for f in fields(part) if f.init}
        return replace(part, **changed)
    return part


# many runs at once ----------------------------------------------------------------------------


def _suspect(mechanism: Mechanism, values: Mapping[str, Array], count: int) -> Kinds:
    """Number of the first check that each run fails, zero if it passes all."""
    columns: dict[str, Any] = {TIME: 0.0}
    columns |= {name: np.asarray(v, dtype=float) for name, v in values.items()}
    kinds = np.zeros(count, dtype=np.intp)
    checks = itertools.count(1)

    def note(bad: Runs) -> None:
        kinds[bad & (kinds == 0)] = next(checks)

    def numbers(scalar: Any) -> Array:
        return np.broadcast_to(
            np.asarray(evaluate(scalar, columns, _ON_ARRAYS), dtype=float), (count,)
        )

    with np.errstate(all="ignore"):
        masses = [("", not body.inertia.ideal, body.mass) for body in mechanism.bodies]
        for _, strict, scalar in (*masses, *bounded_values(mechanism)):
            if isinstance(scalar, Expression):
                x = numbers(scalar)
                note(~np.isfinite(x) | ((x <= 0) if strict else (x < 0)))
        for inertia in (body.inertia for body in mechanism.bodies):
            if next(formulas_in(inertia), None) is not None:
                note(_unphysical(inertia, [numbers(entry) for entry in inertia.entries]))
        for _, axis in directions(mechanism):
            if next(formulas_in(axis), None) is not None:
                length = np.sqrt(sum(numbers(a) ** 2 for a in axis))
                note(~(np.abs(length - 1) <= SEVEN_DIGITS))
    return kinds


def bounded_values(mechanism: Mechanism) -> Iterator[tuple[str, bool, Any]]:
    """What may not be negative besides masses: what it is, whether it must be > 0, its value."""
    for contact in mechanism.contacts:
        wheel = contact.wheel
        yield f"radius of '{contact.name}'", wheel.needs_radius, wheel.radius
        for law in ("rolling_resistance", "scrub"):
            yield f"{law} of '{contact.name}'", False, getattr(wheel, law)
        yield from _contact_bounds(f"of '{contact.name}'", wheel)
    for connection in mechanism.connections:
        yield f"armature of joint '{connection.name}'", False, connection.armature
        yield from _contact_bounds(f"of joint '{connection.name}'", connection)
        if connection.stops is not None and not any(x in _NO_STOPS for x in connection.stops):
            low, high = connection.stops
            yield f"distance of the stops of joint '{connection.name}'", True, high - low
    for drive in mechanism.drives:
        yield f"rotor inertia of motor '{drive.name}'", False, drive.motor.rotor_inertia
        for name in MOTOR_BOUNDS:
            yield f"{name} of motor '{drive.name}'", True, getattr(drive.motor, name)
    elements: tuple[Any, ...] = (*mechanism.dampers, *mechanism.springs, *mechanism.struts)
    for element in elements:
        for name in ("coefficient", "stiffness", "damping"):
            yield f"{name} of '{element.name}'", False, getattr(element, name, 0.0)


_NO_STOPS = (-math.inf, math.inf)


def _contact_bounds(of: str, part: Any) -> Iterator[tuple[str, bool, Any]]:
    """Bounds of friction and restitution."""
    yield f"restitution {of}", False, part.restitution
    yield f"one less the restitution {of}", False, 1.0 - part.restitution
    if part.friction is not None:
        static, kinetic = part.friction
        yield f"kinetic friction {of}", False, kinetic
        yield f"static less kinetic friction {of}", False, static - kinetic


def _unphysical(inertia: Inertia, entries: list[Array]) -> Runs:
    """Runs in which moments are negative or break the triangle."""
    xx, yy, zz, xy, xz, yz = entries
    rows = ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
    tensors: Array = np.stack([np.stack(row, axis=-1) for row in rows], axis=-1)
    finite = np.atleast_1d(np.isfinite(tensors).all(axis=(1, 2)))
    moments = np.linalg.eigvalsh(np.where(finite[:, np.newaxis, np.newaxis], tensors, 0.0))
    scale = np.abs(moments).max(axis=1)
    low = moments[:, 0] < -NEGLIGIBLE * scale
    if not inertia.ideal:
        low |= moments[:, 0] <= 0
    broken = moments[:, 0] + moments[:, 1] < moments[:, 2] * (1 - THREE_DIGITS)
    return np.asarray(~finite | low | broken)


def directions(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    """What has length one: what it is, and its three numbers."""
    for connection in (*mechanism.connections, *mechanism.loops):
        for name in connection.joint.directions:
            yield f"{name} of joint '{connection.name}'", getattr(connection.joint, name)
    for contact in mechanism.contacts:
        yield f"axis of '{contact.name}'", contact.axis
        yield f"normal of the ground of '{contact.name}'", contact.plane.normal
