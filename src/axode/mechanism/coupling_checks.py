"""What can be wrong with couplings: with their numbers, and with what they name."""

from __future__ import annotations

import math
from collections.abc import Iterator

from axode.errors import Fault, suggest
from axode.mechanism.elements.couplings import Coupling
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import (
    coordinate_names,
    coupled_by,
    not_in_tree,
    parameters_of,
    quaternion_components,
    speed_names,
)
from axode.mechanism.values.expressions import numeric, shown


def coupling_faults(mechanism: Mechanism) -> Iterator[Fault]:
    """Numbers that no coupling can have."""
    for coupling in mechanism.couplings:
        name = coupling.name
        if len(coupling.terms) + len(coupling.arguments) < 2 or not coupling.terms:
            yield Fault("coupling", name, "terms", _too_few(coupling))
        for joint, coefficient in coupling.terms:
            value = numeric(coefficient)
            if not math.isfinite(value) or value == 0.0:
                message = f"must be a finite number other than 0, got {shown(coefficient)}"
                yield Fault("coupling", name, f"coefficients.{joint}", message)
        if not math.isfinite(numeric(coupling.offset)):
            yield Fault("coupling", name, "offset", "must be finite")


def _too_few(coupling: Coupling) -> str:
    if coupling.arguments and not coupling.terms:
        return "has a function and no term that follows it; give the joint that does"
    remedy = "add the others, or hold a single joint with prescribe"
    return f"a coupling relates at least two joints, got {len(coupling.terms)}; {remedy}"


def coupling_relations(mechanism: Mechanism) -> Iterator[Fault]:
    """Terms that name nothing, several things, the same thing twice, or a quaternion."""
    components = quaternion_components(mechanism)
    for coupling in mechanism.couplings:
        meant: dict[str, str] = {}
        for joint, _ in coupling.terms:
            coordinate, speed = coupled_by(mechanism, joint)
            field = f"terms.{joint}"
            if coordinate in components:
                yield Fault("coupling", coupling.name, field, _quaternion(mechanism, joint))
            elif coordinate is None and speed is None:
                message = _unknown(mechanism, joint)
                yield Fault("coupling", coupling.name, field, message)
            else:
                motion = _motion(mechanism, coordinate, speed)
                if motion in meant:
                    message = f"is the same motion as '{meant[motion]}'; name each motion once"
                    yield Fault("coupling", coupling.name, field, message)
                meant[motion] = joint
        yield from _offset_of_speeds(mechanism, coupling)
        for name in coupling.arguments:
            message = _argument_fault(mechanism, name, components)
            if message:
                yield Fault("coupling", coupling.name, "function", message)


def _argument_fault(mechanism: Mechanism, name: str, components: set[str]) -> str:
    """What keeps a name from being an argument of a function; empty if nothing does."""
    coordinate, speed = coupled_by(mechanism, name)
    if name in parameters_of(mechanism):
        return f"'{name}' is a joint and a parameter; rename one of them"
    if coordinate in components:
        return _quaternion(mechanism, name)
    if speed is not None:
        known = ", ".join(coordinate_names(mechanism))
        return f"'{name}' is a speed, and a function takes coordinates: {known}"
    if coordinate is None:
        known = ", ".join(parameters_of(mechanism)) or "none yet"
        return f"{not_in_tree(mechanism, name, 'coordinate')} Parameters: {known}."
    return ""


def _unknown(mechanism: Mechanism, name: str) -> str:
    """Explain why a term means nothing; a name with a dot may be meant for a speed."""
    if "." not in name:
        return not_in_tree(mechanism, name, "coordinate")
    coordinates, speeds = coordinate_names(mechanism), speed_names(mechanism)
    return f"unknown joint, coordinate or speed '{name}'. Speeds: {', '.join(speeds)}. " + suggest(
        "coordinate", name, coordinates, speeds
    )


def _motion(mechanism: Mechanism, coordinate: str | None, speed: str | None) -> str:
    """The coordinate that a term moves, or the speed that is no coordinate's rate."""
    for connection in mechanism.connections:
        if speed in connection.speeds:
            k = connection.joint.rate_of(connection.speeds.index(speed or ""))
            if k is not None:
                return connection.coordinates[k]
    return coordinate or speed or ""


def _quaternion(mechanism: Mechanism, name: str) -> str:
    speeds = next(c.speeds for c in mechanism.connections if name in c.coordinates)
    return (
        "a quaternion's component cannot be coupled; name one of the joint's speeds, "
        f"{', '.join(speeds)}, or use Revolute or Universal joints"
    )


def _offset_of_speeds(mechanism: Mechanism, coupling: Coupling) -> Iterator[Fault]:
    speeds = [name for name, _ in coupling.terms if coupled_by(mechanism, name)[1]]
    given = {"offset": numeric(coupling.offset) != 0.0, "function": coupling.arguments}
    for field in (field for field in given if given[field] and speeds):
        yield Fault(
            "coupling",
            coupling.name,
            field,
            f"'{speeds[0]}' is a speed, so that the terms relate speeds and have no {field}; name "
            f"coordinates instead, or leave the {field} out",
        )
