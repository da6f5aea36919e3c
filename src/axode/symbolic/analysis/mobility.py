"""The mobility report: what a mechanism can do, as numbers and text (C).

Nonholonomic rows forbid velocities, not always configurations. How many configurations the motion
reaches is the dimension of the closure of the columns of N Theta under Lie brackets.  (C9)

Wheels whose axles conflict, so that they keep their vehicle from turning, are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import first_of
from axode.mechanism.elements.wheels import Contact
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.topology import speed_units
from axode.numerics.rank import null_space, singular_values
from axode.numerics.tolerances import (
    MATRIX_ROUNDING,
    NEARLY_SINGULAR,
    NEGLIGIBLE,
    RANK,
    ROUNDING,
    ROW_RANK,
    SHORTEST_STEP,
)
from axode.symbolic.algebra.spatial import ROOT, SX, symbolic_vector
from axode.symbolic.constraints.redundant_rows import rank_of
from axode.symbolic.constraints.system import System

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations


MOST_COUPLINGS = 12  # lines of a report; a hand may have more


@dataclass(frozen=True)
class Mobility:
    """Everything the analysis found; `str` prints it as a page."""

    name: str
    bodies: int
    joints: int
    loops: int  # independent ones, by Euler's formula
    speeds: tuple[str, ...]
    rows: int
    rank: int
    dropped: tuple[str, ...]
    indeterminate: tuple[str, ...]
    configuration_dof: int
    mobility: int
    reachable: int  # dimension of what motion reaches: between mobility and configuration_dof
    reachable_is_certain: bool  # otherwise it is at least that
    rheonomic: bool
    actuation: str
    motors: int
    independent: tuple[str, ...]
    locked: tuple[str, ...]  # speeds that vanish in every motion
    conflicts: tuple[str, ...]
    couplings: tuple[str, ...] = ()  # as equations between coordinates
    weak: tuple[str, ...] = ()  # rows kept though they nearly follow from others
    driven: tuple[str, ...] = ()  # what the rows prescribe that have explicit time
    quasi_velocities: tuple[str, ...] = ()  # each with its formula
    integrals: tuple[str, ...] = ()  # velocity constraints that integrate to sums of coordinates
    level: tuple[str, ...] = ()  # floating bases that contacts keep from tilting, and their axes
    contacts: tuple[str, ...] = ()  # wheels with friction, joints that rub, and stops

    @property
    def integrable(self) -> int:
        """Number of velocity constraints that are integrable to positions."""
        return self.configuration_dof - self.reachable

    @property
    def holonomic(self) -> bool:
        """Return whether every constraint is one on positions, given as such or integrable."""
        return self.reachable == self.mobility

    @property
    def catastatic(self) -> bool:
        """Return whether nothing moves while the independent speeds are zero.

        Otherwise the constraints A v = b have a term b without speeds: the mechanism is
        acatastatic, and its kinetic energy does not vanish with these speeds.
        """
        return not self.driven

    def __str__(self) -> str:
        lines = [f"{self.name}: mobility {self.mobility}, {self.actuation}"]
        lines += [f"  {label:<15}{text}" for label, text in self.entries() if text]
        return "\n".join(lines)

    def entries(self) -> list[tuple[str, str]]:
        """What it says, by label; texts may be empty."""
        kind = "holonomic" if self.holonomic else "nonholonomic"
        time = "rheonomic" if self.rheonomic else "scleronomic"
        rest = "catastatic"
        if self.driven:
            rest = f"acatastatic (time alone gives a speed to {_listed(self.driven)})"
        reach = f"{self.configuration_dof} dof"
        if self.mobility != self.configuration_dof:
            at_least = "" if self.reachable_is_certain else "at least "
            reach += f", {at_least}{self.reachable} reachable"
            if self.integrable and self.reachable_is_certain:
                plural = "s" if self.integrable > 1 else ""
                reach += f" ({self.integrable} velocity constraint{plural} integrable)"
        return [
            ("bodies", f"{self.bodies}, joints {self.joints}, independent loops {self.loops}"),
            ("speeds", f"{len(self.speeds)}: {_listed(self.speeds)}"),
            *(("coupling", coupling) for coupling in self.couplings[:MOST_COUPLINGS]),
            ("coupling", self._more_couplings()),
            ("rows", f"{self.rows}, rank {self.rank}" if self.rows else "none"),
            ("contacts", _listed(self.contacts, "friction, lift-off or stops of ")),
            ("dropped", _listed(self.dropped)),
            ("nearly follow", _listed(self.weak)),
            ("indeterminate", _listed(self.indeterminate, "forces of ")),
            ("configuration", reach),
            *(("integral", text) for text in self.integrals),
            *(("level", text) for text in self.level),
            ("kind", f"{kind}, {time}, {rest}"),
            ("independent", _listed(self.independent)),
            *(("quasi-velocity", text) for text in self.quasi_velocities),
            ("actuation", f"{self.actuation}, {self.motors} motor{'s' * (self.motors != 1)}"),
            ("never move", _listed(self.locked)),
            *(("conflict", conflict) for conflict in self.conflicts),
        ]

    def _more_couplings(self) -> str:
        more = len(self.couplings) - MOST_COUPLINGS
        return f"... ({len(self.couplings)} in all)" if more > 0 else ""


def _listed(names: tuple[str, ...], prefix: str = "") -> str:
    return prefix + first_of(names) if names else ""


def mobility_of(equations: Equations) -> Mobility:
    """Analyse a derived mechanism."""
    system = equations.system
    report, n = system.report, len(equations.independent)
    configuration = configuration_dof(system)
    reach = (n, True) if n in (0, configuration) else reachable_dimension(system, configuration)
    mechanism = system.mechanism
    return Mobility(
        name=equations.name,
        bodies=len(mechanism.bodies),
        joints=len(mechanism.connections) + len(mechanism.loops),
        loops=euler_loops(mechanism),
        speeds=equations.speeds[: system.W.shape[1]],
        rows=len(system.rows) - len(system.definitions),
        rank=len(report.kept) - len(system.definitions),
        dropped=tuple(map(str, report.dropped)),
        indeterminate=report.indeterminate,
        configuration_dof=configuration,
        mobility=n,
        reachable=reach[0],
        reachable_is_certain=reach[1],
        rheonomic=system.rheonomic,
        actuation=equations.actuation,
        motors=system.forces.motors,
        independent=equations.independent,
        locked=_locked(system),
        contacts=tuple(dict.fromkeys(str(part.name) for part in mechanism.contact_parts)),
        conflicts=tuple(turning_conflicts(system)),
        couplings=tuple(map(str, mechanism.couplings)),
        driven=tuple(row.owner for row in system.kept if not row.rate.is_zero()),
        weak=tuple(f"{name} (but for {part:.1g})" for name, part in report.weak),
        quasi_velocities=tuple(_definition(system, k) for k in range(len(system.definitions))),
        level=tuple(map(str, system.level)),
    )


def _definition(system: System, k: int) -> str:
    """A quasi-velocity by its formula; that of a measure as symbols have it."""
    quasi, text = system.mechanism.quasi_velocities[k], ""
    if not isinstance(quasi.definition, str):
        text = str(system.W[k, :] @ system.tree.v[: system.W.shape[1]]).strip("[]()")
    return str(quasi) + f" = {text}" * bool(text)


def configuration_dof(system: System) -> int:
    """Number of coordinates that the constraints on positions leave free."""
    loose = set(system.report.loose)  # they contradict others a little and do not count
    holonomic = [r for r, row in enumerate(system.rows) if row.places and r not in loose]
    ranks = (rank_of(A[holonomic]) for A in system.report.all_matrices)
    kept = sum(row.places for row in system.kept)  # weak ones among them
    return len(system.tree.speed_names) - max(*ranks, kept, 0)


def euler_loops(mechanism: Mechanism) -> int:
    """Independent loops of the graph of bodies and joints: joints - bodies + components.

    A floating joint joins nothing and does not count; the ground does.
    """
    names = ["ground", *(body.name for body in mechanism.bodies)]
    component = {name: name for name in names}

    def root(name: str) -> str:
        while component[name] != name:
            name = component[name]
        return name

    joints = [c for c in (*mechanism.connections, *mechanism.loops) if not c.joint.is_free]
    for connection in joints:
        component[root(connection.parent)] = root(connection.child)
    components = len({root(name) for name in names})
    return len(joints) - len(names) + components


def _locked(system: System) -> tuple[str, ...]:
    """Speeds that no motion has, unless time is explicit."""
    if system.rheonomic:
        return ()
    names = system.tree.speed_names
    return tuple(
        name
        for j, name in enumerate(names)
        if all(np.abs(Z[j]).max(initial=0.0) < NEGLIGIBLE for Z in system.report.null_bases)
        and not any(row.kind == "prescribed" and j in row.entries for row in system.kept)
    )


Array = npt.NDArray[np.float64]
SOLID = 10 * ROUNDING  # of the largest singular value: larger ones are directions
LEAP = 1e6  # down to rounding, at 1e-12 or more: one bracket fewer gives a last direction above
GAP = 1e4  # between the last direction and the largest rounding error
GROWTH = 1e3  # of fields, and of what carries them back: farther on a pole is near
SUBSTEPS = (2, 4, 6, 8, 10, 12, 14)  # midpoint rules that are extrapolated
DURATION, PARTS, STEPS = 10.0, 200, 5  # of one motion: seconds; parts, and steps per part
WAVES, FASTEST = 6, 6.0  # of each input: how many, and up to which frequency [rad/s]
PACES = (1.0, 0.3, 2.0, 0.3, 2.0)  # of motions, in turn [rad/s, or lengths per second]
AT_LEAST, AT_MOST = 4, 12  # motions, unless all directions are found before


def reachable_dimension(system: System, most: int) -> tuple[int, bool]:
    r"""Dimension of the closure of the free directions, and whether it is certain.  (C9)

    The directions in which a point can be left are spanned by the columns X of N Theta, carried
    back to it along any motion: for :math:`\dot q = X(q)\, u(t)`,

    .. math:: \dot \Psi = -\Psi\, \frac{\partial (X u)}{\partial q}, \quad \Psi(0) = 1, \qquad
              \operatorname{span}\, \{ \Psi(t)\, X(q(t)) \} .                          \tag{C9}

    Generic inputs give the closure of the columns under Lie brackets, without forming a bracket.
    The more motions, the farther apart the directions of high order.

    Args:
        system: What moves.
        most: An upper bound, from the constraints on positions.

    Returns:
        A lower bound and False where singular values fade into rounding errors without a gap.
    """
    tree = system.tree
    fields = ca.densify(tree.N @ system.complement.Theta_0)
    u = ca.SX.sym("u", fields.shape[1])
    slopes = ca.densify(ca.jacobian(fields @ u, tree.q))
    function = ca.Function("flow", [tree.q, u, tree.t, tree.parameters], [fields, slopes])

    def flow(q: Array, u: Array) -> tuple[Array, Array]:
        X, D = function(q, u, 0.0, system.defaults)
        return X.full(), D.full()

    generator = np.random.default_rng(0)
    start = max(system.samples, key=lambda q: float(np.linalg.norm(q)))
    length = max(1.0, system.assembly.extent)  # so that long machines turn as much as others
    if system.report.units is not None:
        length = float(system.report.units.speeds.min())
    units = [*speed_units(system.mechanism).values()]
    speeds = np.array([length if units[j] == "m/s" else 1.0 for j in system.independent])
    found, directions = 0, flow(start, 0.0 * speeds)[0]
    for count in range(1, AT_MOST + 1):
        pace = PACES[(count - 1) % len(PACES)] * speeds
        for some in _carried_back(flow, start, pace, generator):
            directions = np.hstack([directions, some])
            s = _spectrum(directions)
            found = int(((s > SOLID * s[0]) & (LEAP * s > np.append(s[0], s[:-1]))).cumprod().sum())
            if found >= most:
                return most, True
        if found < len(s) and count >= AT_LEAST and s[found - 1] > GAP * s[found]:
            return found, True
    return found, False


def _carried_back(
    flow: Callable[[Array, Array], tuple[Array, Array]],
    start: Array,
    pace: Array,
    generator: np.random.Generator,
) -> Iterator[Array]:
    """Fields along one random motion, carried back to its start, in columns, some at a time."""
    size, shape = len(start), (len(pace), WAVES)
    height = pace[:, np.newaxis] * generator.normal(size=shape)
    frequency = generator.uniform(0.5, FASTEST, shape)
    phase = generator.uniform(0.0, 2 * np.pi, shape)

    def rate(t: float, y: Array) -> Array:
        u = (height * np.sin(frequency * t + phase)).sum(axis=1)
        X, D = flow(y[:size], u)
        return np.concatenate([X @ u, (-y[size:].reshape(size, size) @ D).ravel()])

    def fields(y: Array) -> tuple[Array, Array]:
        return flow(y[:size], 0.0 * pace)[0], y[size:].reshape(size, size)

    y = np.concatenate([start, np.eye(size).ravel()])
    most = GROWTH * float(np.linalg.norm(fields(y)[0])), GROWTH
    found: list[Array] = []
    for state in islice(_integrate(rate, y), PARTS * STEPS):
        X, back = fields(state)
        if not (np.linalg.norm(X) < most[0] and np.linalg.norm(back) < most[1]):
            break
        found.append(back @ X)
        if len(found) == STEPS:
            yield np.hstack(found)
            found = []
    if found:
        yield np.hstack(found)


def _integrate(rate: Callable[[float, Array], Array], y: Array) -> Iterator[Array]:
    """States after every step of a motion: the midpoint rule, extrapolated to order 14.

    E. Hairer, S. P. Norsett, G. Wanner, *Solving Ordinary Differential Equations I*, section II.9.
    """
    t, h = 0.0, 0.01
    while t < DURATION and h > SHORTEST_STEP:
        h, slope = min(h, DURATION - t), rate(t, y)
        row: list[Array] = []
        for j, n in enumerate(SUBSTEPS):
            part, last = h / n, row
            before, now = y, y + h / n * slope
            for k in range(1, n):
                before, now = now, before + 2 * part * rate(t + k * part, now)
            row = [0.5 * (before + now + part * rate(t + h, now))]
            for older, m in zip(last, reversed(SUBSTEPS[:j]), strict=True):
                row.append(row[-1] + (row[-1] - older) / ((n / m) ** 2 - 1))
        error = float(np.max(np.abs(row[-1] - row[-2]) / (1 + np.maximum(abs(y), abs(row[-1])))))
        if error <= MATRIX_ROUNDING:
            t, y = t + h, row[-1]
            yield y
        h *= min(max(0.9 * (MATRIX_ROUNDING / max(error, 1e-300)) ** (1 / 13), 0.2), 4.0)


def _spectrum(directions: Array) -> Array:
    """Singular values, after the directions and then the rows are brought to one length."""
    columns = directions / np.linalg.norm(directions, axis=0).clip(1e-300)
    rows = np.linalg.norm(columns, axis=1, keepdims=True)
    return singular_values(columns / rows.clip(NEARLY_SINGULAR * rows.max()))


def turning_conflicts(system: System) -> Iterator[str]:
    """Describe every vehicle whose rigid lateral rows keep it from turning, with the remedy."""
    groups: dict[int, list[Contact]] = {}
    for contact in system.mechanism.ideal_contacts:
        if "lateral" in contact.wheel.rolling_rows and contact.wheel.has_axis:
            groups.setdefault(_carrier(system, contact), []).append(contact)
    for carrier, contacts in groups.items():
        if carrier == ROOT or len(contacts) < 2 or _turns(system, carrier, contacts[0], set()):
            continue
        everyone = [contact for group in groups.values() for contact in group]
        if not _turns(system, carrier, contacts[0], _laterals(everyone)):
            continue  # something else keeps it from turning
        others = [contact for contact in everyone if contact not in contacts]
        alone = not _turns(system, carrier, contacts[0], _laterals(others))
        yield _explanation(system, carrier, contacts if alone else everyone, alone=alone)


def _laterals(contacts: list[Contact]) -> set[str]:
    return {f"{contact.name}.lateral" for contact in contacts}


def _carrier(system: System, contact: Contact) -> int:
    """The link a wheel is mounted on."""
    link = system.tree.body_link[contact.body]
    if link != ROOT and system.tree.links[link].turns_only:
        return system.tree.links[link].parent
    return link


def _turns(system: System, link: int, contact: Contact, without: set[str]) -> bool:
    """Return whether a link can turn about the ground's normal once some rows are taken away."""
    yaw = _yaw_row(system, link, contact)
    loose = system.report.loose  # left out as an effect of rounding: they constrain nothing
    rows = [r for r, row in enumerate(system.rows) if row.name not in without and r not in loose]
    for q, A in zip(system.samples, system.report.all_matrices, strict=True):
        free = null_space(A[rows], RANK)
        if free.shape[1] and np.abs(yaw(q) @ free).max() > ROW_RANK:
            return True
    return False


def _yaw_row(system: System, link: int, contact: Contact) -> Callable[[np.ndarray], np.ndarray]:
    """Yaw rate of a link about the ground's normal, as a row on all speeds."""
    tree = system.tree
    w, _ = tree.velocities(tree.v)
    ground = tree.body_link[contact.plane.on]
    pose = tree.body_pose[contact.plane.on]
    normal = tree.carry(pose.R @ symbolic_vector(contact.plane.normal, tree.values), ground, link)
    relative = w[link] - (tree.carry(w[ground], ground, link) if ground != ROOT else SX.zeros(3))
    row = ca.jacobian(ca.dot(normal, relative), tree.v)
    function = ca.Function("yaw", [tree.q, tree.t, tree.parameters], [ca.densify(row)])
    return lambda q: np.array(function(q, 0.0, system.defaults)).ravel()


def _explanation(system: System, carrier: int, contacts: list[Contact], *, alone: bool) -> str:
    wheels = ", ".join(contact.name for contact in contacts)
    bodies = [body for body, link in system.tree.body_link.items() if link == carrier]
    if alone:
        why, remedy = "their axles do not meet", "steer it, or use casters or omni wheels"
    else:
        why = "their axles meet at special angles only"
        remedy = "or couple what steers so that they always meet (a linkage, or prescribed angles)"
    return (
        f"wheels {wheels} may not slide sideways and {why}, so '{bodies[0]}' cannot turn; let one "
        f"axle slide with lateral='free' (skid steering), {remedy}"
    )
