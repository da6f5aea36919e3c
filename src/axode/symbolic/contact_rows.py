r"""Rows on which contacts act that slip and lift, joints that rub, and stops (C).

The independent speeds leave them free. A row a of the joint speeds, :math:`v = a\,\Theta \nu
+ a\,s`, is on them

.. math:: J = a\,\Theta, \qquad \dot v = J \dot\nu + a\,\sigma + \beta,              \tag{C16}

with :math:`\sigma` the accelerations of the joints at :math:`\dot\nu = 0` and :math:`\beta` the
row's bias. Impulses act by :math:`\nu_+ = \nu_- + I^{-1} J^T \lambda`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from axode.errors import Fault, MechanismError
from axode.mechanism.checks import kind_of_contact
from axode.mechanism.elements.wheels import Contact, ContactTable, RubbingGroup
from axode.mechanism.mechanism import Connection, Mechanism
from axode.mechanism.values.expressions import Scalar, numeric
from axode.numerics.tolerances import NEGLIGIBLE
from axode.symbolic.algebra.spatial import SX, symbolic_scalar
from axode.symbolic.constraints.system import System
from axode.symbolic.tree.rows import column_of
from axode.symbolic.wheels.contacts import contact_rows, turning_rows

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


@dataclass(frozen=True)
class SymbolicContactRows:
    """Expressions of `RowValues`, of q, nu, t and the parameters."""

    names: tuple[str, ...]
    gap: SX
    J: SX
    drift: SX
    rate: SX
    limits: SX
    kinetic: SX
    restitution: SX

    @property
    def vector(self) -> SX:
        """All of them in one column, J row by row."""
        J = ca.vec(ca.densify(self.J).T)
        return ca.vertcat(
            self.gap, J, self.drift, self.rate, self.limits, self.kinetic, self.restitution
        )


def contact_table(mechanism: Mechanism) -> ContactTable:
    """Return what the contact rows of a mechanism are."""
    rows: list[str] = []
    normals: list[int] = []
    rubbing: list[RubbingGroup] = []
    names: list[str] = []
    owners: list[int] = []
    for part in mechanism.contact_parts:
        place = len(names)
        taken = part.name in names  # a wheel and the joint that it spins on share a name
        names.append(f"{part.name} (joint)" if taken else part.name)
        if isinstance(part, Contact):
            touch = len(rows)
            rows.append(f"{part.name}.touch")
            normals.append(touch)
            owners.append(place)
            for group in _rubbing_rows(part):
                own = tuple(range(len(rows), len(rows) + len(group)))
                rubbing.append(RubbingGroup(own, touch, place))
                rows += [f"{part.name}.{row}" for row in group]
            continue
        if part.friction is not None:
            rubbing.append(RubbingGroup((len(rows),), -1, place))
            rows.append(f"{part.name}.friction")
        for side, _, _ in _stops(part):
            normals.append(len(rows))
            owners.append(place)
            rows.append(f"{part.name}.{side}")
    return ContactTable(tuple(rows), tuple(normals), tuple(rubbing), tuple(names), tuple(owners))


def _rubbing_rows(contact: Contact) -> Iterator[tuple[str, ...]]:
    """Rows of each group of a contact that rubs."""
    wheel = contact.wheel
    if wheel.friction is not None and wheel.rolling_rows:
        yield wheel.rolling_rows
    if wheel.scrub != 0.0:
        yield ("scrub",)
    if wheel.rolling_resistance != 0.0:
        yield ("rolling",) if wheel.has_axis else ("rolling", "rolling_across")


def _stops(joint: Connection) -> Iterator[tuple[str, int, Scalar]]:
    """Each stop, the direction in which its gap grows, and its place."""
    for side, way, place in zip(("low", "high"), (1, -1), joint.stops or (), strict=False):
        if abs(numeric(place)) != float("inf"):
            yield side, way, place


def symbolic_contact_rows(equations: Equations) -> SymbolicContactRows:
    """Write the contact rows of a mechanism."""
    system = equations.system
    rows = list(_rows(system))
    tree = system.tree
    A = SX(len(rows), tree.v.shape[0])
    for r, row in enumerate(rows):
        for j, value in row.entries.items():
            A[r, j] = value
    still = SX.zeros(equations.nu.shape)
    sigma = ca.substitute(equations.accelerations, equations.nu_dot, still)
    bias = system.at_speeds(column_of([row.bias for row in rows]))
    return SymbolicContactRows(
        names=contact_table(system.mechanism).rows,
        gap=column_of([row.gap for row in rows if row.gap is not None]),
        J=ca.densify(A @ equations.Theta),
        drift=ca.densify(ca.substitute(A @ equations.v, equations.nu, still)),
        rate=ca.densify(A @ sigma + bias),  # (C16)
        limits=column_of([row.limit for row in rows]),
        kinetic=column_of([row.kinetic for row in rows]),
        restitution=column_of([row.restitution for row in rows if row.restitution is not None]),
    )


def check_contacts_open(equations: Equations) -> None:
    """Require that the motion opens and closes every contact and every stop.

    Raises:
        MechanismError: naming contacts with friction that bear no load, whatever moves.
    """
    system, tree = equations.system, equations.system.tree
    table = contact_table(system.mechanism)
    if not table.normals:
        return
    normals = [row for row in _rows(system) if row.gap is not None]
    A = SX(len(normals), tree.v.shape[0])
    for r, row in enumerate(normals):
        for j, value in row.entries.items():
            A[r, j] = value
    symbols = [tree.q, tree.t, tree.parameters]
    J = ca.Function("J", symbols, [ca.densify(A @ equations.Theta)])
    found = [abs(J(q, 0.0, system.defaults).full()) for q in (system.home, *system.samples)]
    largest = np.max(found, axis=(0, 2), initial=0.0)  # NaN where a speed is singular
    faults = []
    for place, size in zip(table.normal_contacts, largest.tolist(), strict=True):
        part = system.mechanism.contact_parts[place]
        if size > NEGLIGIBLE or size != size:
            continue
        if isinstance(part, Contact):
            kind, field = kind_of_contact(part), "friction"
            why = (
                "no motion lifts it off its ground or presses it on, so that its load is unknown; "
                "give its base ax.Floating(), and other wheels friction too, or take an ideal "
                "wheel, without friction"
            )
        else:
            kind, field = "joint", "stops"
            why = "no motion that is left free moves the joint; leave them out"
        faults.append(Fault(kind, part.name, field, why))
    if faults:
        raise MechanismError(f"mechanism '{system.mechanism.name}'", list(dict.fromkeys(faults)))


@dataclass(frozen=True)
class _Row:
    entries: dict[int, SX]
    bias: SX
    limit: SX
    kinetic: SX
    gap: SX | None = None
    restitution: SX | None = None


def _rows(system: System) -> Iterator[_Row]:
    """Rows in the order of the table."""
    for part in system.mechanism.contact_parts:
        yield from (
            _of_contact(system, part) if isinstance(part, Contact) else _of_joint(system, part)
        )


def _of_contact(system: System, contact: Contact) -> Iterator[_Row]:
    tree, wheel = system.tree, contact.wheel
    motion = tree.motion(tree.v, None, gravity=False)
    _, u = tree.velocities(tree.v)
    touch, *others = contact_rows(tree, contact, motion, u)
    bounce = symbolic_scalar(wheel.restitution, tree.values)
    none = SX(0)
    yield _Row(touch.entries, touch.bias, none, none, touch.residual, bounce)
    for group in _rubbing_rows(contact):
        if group == wheel.rolling_rows:
            static, kinetic = (symbolic_scalar(x, tree.values) for x in wheel.friction)
            yield from (_Row(row.entries, row.bias, static, kinetic) for row in others)
            continue
        turning = turning_rows(tree, contact)
        given = wheel.scrub if "scrub" in group else wheel.rolling_resistance
        length = symbolic_scalar(given, tree.values)
        for name in group:
            entries = turning[name]
            row = sum((x * tree.v[j] for j, x in entries.items()), SX(0))
            yield _Row(entries, ca.jtimes(row, tree.q, tree.q_dot), length, length)


def _of_joint(system: System, joint: Connection) -> Iterator[_Row]:
    tree = system.tree
    k = tree.coordinate_names.index(joint.coordinates[0])
    N = tree.N[k, :]
    entries = {j: N[j] for j in range(N.shape[1]) if not N[j].is_zero()}
    bias, none = ca.jtimes(N @ tree.v, tree.q, tree.q_dot), SX(0)
    if joint.friction is not None:
        static, kinetic = (symbolic_scalar(x, tree.values) for x in joint.friction)
        yield _Row(entries, bias, static, kinetic)
    bounce = symbolic_scalar(joint.restitution, tree.values)
    for _, way, place in _stops(joint):
        gap = way * (tree.q[k] - symbolic_scalar(place, tree.values))
        own = {j: way * x for j, x in entries.items()}
        yield _Row(own, way * bias, none, none, gap, bounce)
