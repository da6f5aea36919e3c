"""What joints, loops, wheels and prescribed motions ask of the twists of bodies.

A row is a linear form on the twists: n . w + f . u summed over bodies, equal to a rate. Its rate of
change at given twists is a complex step along the motion: no formula for it is written anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from axode.errors import InvalidArgument
from axode.mechanism.elements.joints import Coupling
from axode.mechanism.elements.wheels import Contact, Mecanum
from axode.mechanism.topology import coordinate_of
from axode.mechanism.values.expressions import Coordinate
from axode.oracle.joint_motions import Placed, constrained_directions, rate_matrix, speed_directions
from axode.oracle.machine import BodyFrames, Machine
from axode.oracle.numbers import (
    Array,
    Jet,
    axes_along,
    cross,
    direction,
    dot,
    jet_of,
    matvec,
    motion_at,
    numbers,
    rate,
)

Form = dict[int, tuple[Array, Array]]  # by body: n and f of n . w + f . u


@dataclass(frozen=True)
class TwistRow:
    """A row by name: its form on twists, and the motion it follows."""

    name: str
    form: Form
    motion: Jet  # the rate it asks for is its first derivative


def between(frames: BodyFrames, first: int, second: int, point: Array, n: Array, f: Array) -> Form:
    """n . w + f . v of the first body relative to the second, v at a point of the world."""
    form: Form = {}
    for body, sign in ((first, 1.0), (second, -1.0)):
        angular = n + cross(point - frames.p[body], f)
        old_n, old_f = form.get(body, (0.0, 0.0))
        form[body] = (old_n + sign * angular, old_f + sign * f)
    return form


def apply(form: Form, w: list[Array], u: list[Array]) -> Array:
    """The value of a form on twists."""
    total = np.asarray(0.0)
    for body, (n, f) in form.items():
        total = total + dot(n, w[body]) + dot(f, u[body])
    return total


def changed(form: Form, w: list[Array], u: list[Array]) -> float:
    """Size of the terms in the rate of a form's value."""
    total = 0.0
    for body, (n, f) in form.items():
        for weight, x in ((n, w[body]), (f, u[body])):
            weight, x = weight + 0j, x + 0j
            total += float(np.linalg.norm(weight.real) * np.linalg.norm(rate(x)))
            total += float(np.linalg.norm(rate(weight)) * np.linalg.norm(x.real))
    return total


def matrix_of(forms: list[Form], bodies: int) -> Array:
    """Forms as rows on the twists of all bodies but the ground, angular before linear."""
    kind = complex if any(np.iscomplexobj(x) for form in forms for x in form.values()) else float
    G = np.zeros((len(forms), 6 * bodies), dtype=kind)
    for r, form in enumerate(forms):
        for body, (n, f) in form.items():
            if body:
                G[r, 6 * body - 6 : 6 * body - 3] += n
                G[r, 6 * body - 3 : 6 * body] += f
    return G


def joint_rows(machine: Machine, frames: BodyFrames, i: int) -> Iterator[TwistRow]:
    """Rows of a joint of the tree, seen from its child."""
    joint = machine.joints[i]
    pairs = constrained_directions(joint, frames.child_axes[i], frames.parent_axes[i], False)
    for name, (n, f) in pairs.items():
        form = between(frames, joint.child, joint.parent, frames.child_origin[i], n, f)
        yield TwistRow(f"{joint.name}.{name}", form, Jet(0.0))


def speed_forms(machine: Machine, frames: BodyFrames) -> list[Form]:
    """The joint speeds as forms on twists."""
    forms = []
    for i, joint in enumerate(machine.joints):
        for n, f in speed_directions(joint, frames.parent_axes[i], frames.child_axes[i]):
            at = frames.child_origin[i]
            forms.append(between(frames, joint.child, joint.parent, at, n, f))
    return forms


def constraint_rows(machine: Machine, frames: BodyFrames, q: Array, t: float) -> list[TwistRow]:
    """All rows beyond the tree's own joints: loops, wheels, relations between speeds."""
    rows = [row for loop in machine.loops for row in _loop_rows(machine, frames, loop)]
    for contact in machine.mechanism.ideal_contacts:
        rows += _contact_rows(machine, frames, contact)
    related = machine.mechanism.couplings or machine.mechanism.prescribed
    speeds = speed_forms(machine, frames) if related else []
    for name, weights, motion in _relations(machine, q, t):
        rows.append(TwistRow(name, _combine(speeds, weights), motion))
    return rows


def _loop_rows(machine: Machine, frames: BodyFrames, loop: Placed) -> Iterator[TwistRow]:
    """Directions are taken on the side deeper in the tree, the child's where both are as deep."""
    sides = [
        (body, frames.R[body] @ turn, frames.p[body] + matvec(frames.R[body], at))
        for body, turn, at in (
            (loop.parent, loop.rotation, loop.at),
            (loop.child, loop.child_rotation, loop.child_at),
        )
    ]
    parent_first = machine.depth[loop.parent] > machine.depth[loop.child]
    (first, axes, point), (second, other, _) = sides if parent_first else sides[::-1]
    for name, (n, f) in constrained_directions(loop, axes, other, parent_first).items():
        form = between(frames, first, second, point, n, f)
        yield TwistRow(f"{loop.name}.{name}", form, Jet(0.0))


def _contact_rows(machine: Machine, frames: BodyFrames, contact: Contact) -> Iterator[TwistRow]:
    """Velocities of a wheel's lowest point over the ground that vanish."""
    body, ground = machine.number[contact.body], machine.number[contact.plane.on]
    point, directions = wheel_directions(machine, frames, contact)
    for name in ("touch", *contact.wheel.rolling_rows):
        form = between(frames, body, ground, point, np.zeros(3), directions[name])
        yield TwistRow(f"{contact.name}.{name}", form, Jet(0.0))


def wheel_directions(
    machine: Machine, frames: BodyFrames, contact: Contact
) -> tuple[Array, dict[str, Array]]:
    """Where a wheel touches, and the directions of its rows, in the world."""
    values = machine.parameters
    body, ground = machine.number[contact.body], machine.number[contact.plane.on]
    centre = frames.p[body] + matvec(frames.R[body], numbers(contact.at, values))
    upright = direction(contact.plane.normal, values)
    normal = matvec(frames.R[ground], upright)
    radius = machine.value(contact.wheel.radius)
    if not contact.wheel.has_axis:
        along = matvec(frames.R[ground], axes_along(contact.plane.normal, values)[:, 0])
        tangents = {"longitudinal": along, "lateral": cross(normal, along)}
        return centre - radius * normal, {"touch": normal, **tangents}
    axis = matvec(frames.R[body], direction(contact.axis, values))
    along = cross(axis, normal)
    along = along / np.sqrt(dot(along, along))[..., np.newaxis]
    across = cross(normal, along)
    directions = {"touch": normal, "longitudinal": along, "lateral": across}
    if isinstance(contact.wheel, Mecanum):
        angle = machine.value(contact.wheel.roller_angle)
        directions["roller"] = np.cos(angle) * across - np.sin(angle) * along
    # the lowest point of the disk lies across both its axis and the heading
    return centre + radius * cross(axis, along), directions


def _relations(machine: Machine, q: Array, t: float) -> Iterator[tuple[str, dict[int, Array], Jet]]:
    """Linear relations between joint speeds: name, weights by speed, and the motion they follow.

    Couplings add coefficients times rates to zero, less the rate of their function; a prescribed
    coordinate has a rate given.
    """
    for coupling in machine.mechanism.couplings:
        total: dict[int, Array] = {}
        for name, coefficient in coupling.terms:
            for j, weight in _rate_of(machine, q, name).items():
                total[j] = total.get(j, np.asarray(0.0)) + machine.value(coefficient) * weight
        along = {name: _place_of(machine, name) for name in coupling.arguments}
        bend = Jet(0.0)
        for name in along:
            slope = _function_along(machine, coupling, q, {name: 1.0}).d
            for j, weight in _rate_of(machine, q, name).items():
                total[j] = total.get(j, np.asarray(0.0)) - slope * weight
        if along and np.iscomplexobj(q):
            rates = {name: float(rate(q[k])) for name, k in along.items()}
            bend = Jet(0.0, 0.0, _function_along(machine, coupling, q, rates).dd)
        yield f"{coupling.name}.coupling", total, bend
    for prescribed in machine.mechanism.prescribed:
        weights = _rate_of(machine, q, prescribed.coordinate)
        try:
            motion = motion_at(prescribed.motion, machine.parameters, t)
        except ZeroDivisionError:
            raise InvalidArgument(
                f"prescribe '{prescribed.coordinate}': the motion '{prescribed.motion}' divides by "
                f"zero at t = {t:.6g} s; keep what it divides by away from zero"
            ) from None
        yield f"{prescribed.coordinate}.prescribed", weights, motion


def _function_along(machine: Machine, coupling: Coupling, q: Array, rates: dict[str, float]) -> Jet:
    """A coupling's function and its derivatives, coordinates moving at constant rates."""
    values = {
        str(Coordinate(name)): Jet(float(q[_place_of(machine, name)].real), rates.get(name, 0.0))
        for name in coupling.arguments
    }
    return jet_of(coupling.function, {**machine.parameters, **values})


def _place_of(machine: Machine, name: str) -> int:
    return machine.coordinates.index(str(coordinate_of(machine.mechanism, name)))


def _rate_of(machine: Machine, q: Array, name: str) -> dict[int, Array]:
    """The rate of a coordinate or joint as weights on the speeds, or just the speed it names."""
    coordinate = coordinate_of(machine.mechanism, name)
    if coordinate is None:
        return {machine.speeds.index(machine.meanings[name]): np.asarray(1.0)}
    k = machine.coordinates.index(coordinate)
    joint = next(j for j in machine.joints if j.q.start <= k < j.q.stop)
    N = rate_matrix(joint, q[..., joint.q])[..., k - joint.q.start, :]
    return {j: N[..., j - joint.v.start] for j in range(joint.v.start, joint.v.stop)}


def _combine(forms: list[Form], weights: dict[int, Array]) -> Form:
    total: Form = {}
    for j, weight in weights.items():
        scale = np.asarray(weight)[..., np.newaxis]
        for body, (n, f) in forms[j].items():
            old_n, old_f = total.get(body, (0.0, 0.0))
            total[body] = (old_n + scale * n, old_f + scale * f)
    return total
