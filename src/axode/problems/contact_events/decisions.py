"""Decide at an instant which contacts strike, stick, slip and lift, in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.mechanism.elements.wheels import ContactTable, RowValues
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.numerics.rank import least_norm, null_space, rank, singular_values
from axode.numerics.tolerances import HALF_DIGITS, NEGLIGIBLE, POLISHED, RANK, ROUNDING, TINY
from axode.problems.contact_events.mode_model import STARTING, STIFF, STRAIGHT, TURNING, ModeValues
from axode.problems.contact_events.shares import Cone, best_share
from axode.problems.contacts.complementarity import (
    LIMIT,
    OPEN,
    SLIP,
    ContactSolution,
    solve_contacts,
)

Array = npt.NDArray[np.float64]
TOUCHING = NEGLIGIBLE  # [m or rad] of a gap that counts as closed
PLASTIC = 1e-6  # [m/s] of a rebound below which there is none
QUIET = NEGLIGIBLE  # [m/s] of an approach below which an impact is not reported
TRIGGERED = NEGLIGIBLE  # of a limit by which what was reached has been exceeded
STARTS = ROUNDING  # of the accelerations: slip begins with more
AT_REST = ROUNDING  # speeds below which nothing moves
BALANCED = POLISHED  # of the accelerations that forces alone would give: less is none
SOFT = 1e-3  # of the diagonal of G: springs of rows that follow from others, at most
MAYBE = 0.5  # at rest if nothing accelerates
AT_LEISURE = 1e-3  # of the limits: with such a margin forces are shared as by equal springs
TIGHT = 1e-8  # of the limits: with less of a margin what sticks begins to slip
TIGHTER = 1e-6  # of the limits, which are made smaller where nothing else shows what slips
UNLOADED = NEGLIGIBLE  # of the largest force: contacts that bear less are left out of sharing


@dataclass(frozen=True)
class _Group:
    rows: tuple[int, ...]
    normal: int


@dataclass(frozen=True)
class _Part:
    """Some rows of a table as a table of their own."""

    kept: tuple[int, ...]
    normals: tuple[int, ...]
    rubbing: tuple[_Group, ...]
    groups: tuple[int, ...]  # of the whole table

    @classmethod
    def of(cls, table: ContactTable, normals: Sequence[int], *, boxes: bool) -> _Part:
        """Return the rows of some normals and what rubs beneath them, and boxes."""
        groups = [
            g
            for g, group in enumerate(table.rubbing)
            if group.normal in normals or (boxes and group.normal < 0)
        ]
        kept = sorted([*normals, *(r for g in groups for r in table.rubbing[g].rows)])
        place = {row: k for k, row in enumerate(kept)} | {-1: -1}
        return cls(
            tuple(kept),
            tuple(place[row] for row in normals),
            tuple(
                _Group(
                    tuple(place[r] for r in table.rubbing[g].rows), place[table.rubbing[g].normal]
                )
                for g in groups
            ),
            tuple(groups),
        )


@dataclass
class ContactEvent:
    """What happened to a contact.

    Attributes:
        time: When [s].
        contact: Name of the contact, joint or stop.
        what: "strikes", "lands", "lifts", "slips", "sticks".
        impulse: Normal impulse of a strike [N s or N m s].
        speed: Speed at which the gap closed, or at which it slips [m/s or rad/s].
        loss: Energy that a strike took, of all contacts at once [J].
    """

    time: float
    contact: str
    what: str
    impulse: float = 0.0
    speed: float = 0.0
    loss: float = 0.0


VERBS = {"slip": "slips", "stick": "sticks", "open": "lifts", "closed": "lands"}


class Undetermined(Exception):
    """Rigid bodies have no motion, or several, in what was found."""


@dataclass
class Instant:
    """A state at which modes are decided.

    Attributes:
        model: The model without contact forces.
        table: Its contact rows.
        q, nu: The state; both change in place.
        u: Inputs.
        conditions: Time and parameters.
    """

    model: Model
    table: ContactTable
    q: Array
    nu: Array
    u: Array
    conditions: Conditions
    events: list[ContactEvent] = field(default_factory=list)
    lost: float = 0.0  # energy that impacts took
    supplied: float = 0.0  # energy that what is prescribed gave in them
    lifting: tuple[int, ...] = ()  # closed rows whose force has vanished
    largest: float = 0.0  # force of a contact after the decision
    beginning: list[int] = field(default_factory=list)  # rows that slip from rest on

    def __post_init__(self) -> None:
        self.options: Any = self.conditions.options
        self.refresh()

    @property
    def time(self) -> float:
        """Now [s]."""
        return float(self.conditions.t)

    def refresh(self) -> None:
        """Compute rows and inertia of the state."""
        arrays = {"q": self.q, "nu": self.nu}
        n = len(self.nu)
        values = self.model.evaluate("contact_rows", arrays, self.options)
        self.rows: RowValues = self.table.split(values, n)
        M = self.model.evaluate("mass_matrix", {"q": self.q}, self.options)
        self.M = M
        self.X = np.linalg.solve(M, self.rows.J.T)  # of unit impulses
        self.G = self.rows.J @ self.X
        self.G = 0.5 * (self.G + self.G.T)

    @property
    def _diagonal(self) -> Array:
        """Diagonal of G, the largest of each disk: a row of it may move with nothing."""
        made = np.diag(self.G).copy()
        for group in self.table.rubbing:
            made[list(group.rows)] = made[list(group.rows)].max()
        return np.maximum(made, TINY)

    @property
    def v(self) -> Array:
        """Speeds of all rows."""
        return np.asarray(self.rows.J @ self.nu + self.rows.drift)

    def touching(self) -> list[int]:
        """Normal rows whose gap is closed."""
        return [
            row
            for row, gap in zip(self.table.normals, self.rows.gap, strict=True)
            if gap <= TOUCHING
        ]

    # impacts ------------------------------------------------------------------------------------

    def strike(self, slow: float) -> None:
        """Let contacts that approach strike: compression, then what Poisson's law gives back.  (L6)

        Args:
            slow: Speed of slip below which a contact counts as sticking before the impact.
        """
        touching = self.touching()
        v = self.v
        if not any(v[row] < 0 for row in touching):
            return
        part = _Part.of(self.table, touching, boxes=False)
        kept = list(part.kept)
        G = self.G[np.ix_(kept, kept)]
        bounce = dict(zip(self.table.normals, self.rows.restitution, strict=True))
        limits = self.rows.limits[kept].copy()
        for group in part.rubbing:
            rows = list(group.rows)
            if np.linalg.norm(v[[kept[r] for r in rows]]) > slow:
                limits[rows] = self.rows.kinetic[[kept[r] for r in rows]]
        compressed = self._solved(G, v[kept], part, limits)
        least = np.zeros(len(kept))
        for row in part.normals:
            e = float(bounce[kept[row]])
            if e * -v[kept[row]] >= PLASTIC:
                least[row] = e * compressed.impulses[row]
        impulses = compressed.impulses
        if least.any():
            impulses = (
                impulses + self._solved(G, compressed.speeds, part, limits, least=least).impulses
            )
        before, old = self._kinetic(), self.nu
        self.nu = self.nu + self.X[:, kept] @ impulses
        mean = self.rows.J[kept] @ (0.5 * (old + self.nu)) + self.rows.drift[kept]
        loss = -float(impulses @ mean)
        self.lost += loss
        self.supplied += loss + self._kinetic() - before  # by what moves as prescribed
        owners = dict(zip(self.table.normals, self.table.normal_contacts, strict=True))
        for row in part.normals:
            if impulses[row] > 0 and -v[kept[row]] > QUIET:
                name = self.table.names[owners[kept[row]]]
                what = "strikes" if least[row] > 0 else "lands"
                self.events.append(
                    ContactEvent(
                        self.time,
                        name,
                        what,
                        float(impulses[row]),
                        float(-v[kept[row]]),
                        max(loss, 0.0),
                    )
                )

    def _solved(
        self, G: Array, w: Array, part: _Part, limits: Array, **more: Any
    ) -> ContactSolution:
        found = solve_contacts(G, w, part, limits, **more)
        if not found.solved:
            jammed = [self.table.rubbing[part.groups[g]].contact for g in found.jamming]
            names = ", ".join(dict.fromkeys(self.table.names[k] for k in jammed))
            raise Undetermined(names)
        return found

    def _kinetic(self) -> float:
        arrays = {"q": self.q, "nu": self.nu}
        return float(self.model.evaluate("energy", arrays, self.options)[0])

    # modes --------------------------------------------------------------------------------------

    def decide(self, slow: float, before: ModeValues) -> ModeValues:
        """Find the modes that go on from here by (L2), and make speeds and gaps those of them.

        Args:
            slow: Speed of slip below which a contact is at rest [m/s].
            before: The modes until now.
        """
        below = [k for k, gap in enumerate(self.rows.gap) if -TOUCHING <= gap < 0.0]
        if below:
            self._close(below)
        v = self.v
        closed = [row for row in self.touching() if v[row] < PLASTIC]
        part = _Part.of(self.table, closed, boxes=True)
        kept = list(part.kept)
        modes = ModeValues(self.table)
        modes.slowest = slow
        if not kept:
            self._finish(before, modes)
            return modes
        arrays = {"q": self.q, "nu": self.nu, "u": self.u}
        free = self.model.evaluate("forward_dynamics", arrays, self.options)
        w = (self.rows.J @ free + self.rows.rate)[kept]
        G = self.G[np.ix_(kept, kept)]
        scale = max(float(np.abs(w).max()), TINY)
        limits, sliding = self.rows.limits[kept].copy(), np.zeros(len(kept))
        rests: list[int] = []
        for g, group in enumerate(part.rubbing):
            rows, own = list(group.rows), [kept[r] for r in group.rows]
            speed = float(np.linalg.norm(v[own]))
            if self._slides(own, before, speed, slow):
                limits[rows] = self.rows.kinetic[own]
                sliding[rows] = v[own] / speed
            else:
                rests.append(g)
        at_rest = [part.rubbing[g] for g in rests]
        solution, share = self._forces((G, w, scale), part, (limits, sliding), rests)
        impulses = solution.impulses
        boxes = [limits[list(group.rows)] for group in part.rubbing if group.normal < 0]
        self.largest = float(np.abs(np.concatenate([impulses, *boxes])).max())
        for row in part.normals:
            if impulses[row] > 0 or solution.modes[row] != OPEN:
                modes.active[kept[row]] = 1.0
        for group in part.rubbing:
            rows, own = list(group.rows), [kept[r] for r in group.rows]
            is_open = group.normal >= 0 and not modes.active[kept[group.normal]]
            if is_open or limits[rows[0]] == 0.0:
                continue
            if sliding[rows].any():
                modes.direction[own] = sliding[rows]
                modes.coefficient[own] = limits[rows]
                modes.slip[own] = self._manner(own, before, slow, begins=group in at_rest)
            else:
                modes.active[own] = 1.0
        modes.share[kept] = np.where(modes.active[kept] > 0.5, share, 0.0)
        self.keep(modes)
        self._finish(before, modes)
        return modes

    def _finish(self, before: ModeValues, modes: ModeValues) -> None:
        """Note how deep open contacts are, so that they close where they fall deeper."""
        for row, gap in zip(self.table.normals, self.rows.gap, strict=True):
            if not modes.active[row]:
                modes.direction[row] = max(0.0, -float(gap))
        self._note(before, modes)

    def _slides(self, own: list[int], before: ModeValues, speed: float, slow: float) -> bool:
        """Return whether a group slides. Slip ends along a straight line, where it turns back."""
        along = float(self.v[own] @ before.direction[own])
        slid = before.coefficient[own[0]] > 0.0
        manner = before.slip[own[0]] if slid else None
        if len(own) == 1:
            turned_back = slid and -20.0 * slow <= along <= 0.0  # a strike throws it back
            return speed > slow and not turned_back
        if manner == TURNING and speed <= 20.0 * slow:
            return speed > 0.0
        if manner == STRAIGHT and speed <= 20.0 * slow:
            return along > 1e-3 * slow
        return speed > 20.0 * slow

    def _manner(self, own: list[int], before: ModeValues, slow: float, *, begins: bool) -> float:
        """Find how a group slips: where slip begins and ends its direction is kept."""
        speed = float(np.linalg.norm(self.v[own]))
        if begins:
            self.beginning += own
            return STARTING if len(own) > 1 else STRAIGHT
        if len(own) == 1:
            return STRAIGHT
        if speed > 20.0 * slow:
            return TURNING
        ending = before.coefficient[own[0]] > 0.0 and before.slip[own[0]] in (TURNING, STRAIGHT)
        if ending and speed > 1e-3 * slow:
            return STRAIGHT if speed <= 2.0 * slow else TURNING
        return STARTING

    def _forces(
        self,
        system: tuple[Array, Array, float],
        part: _Part,
        laws: tuple[Array, Array],
        rests: list[int],
    ) -> tuple[ContactSolution, Array]:
        """Solve for the forces, and share those of what rests; what begins to slip is entered in
        the laws, with its kinetic friction."""
        (G, w, scale), (limits, sliding) = system, laws
        lifting, kept = w.copy(), list(part.kept)
        for row in part.normals:
            if kept[row] in self.lifting:
                lifting[row] += TRIGGERED * scale
        at_rest = [r for g in rests for r in part.rubbing[g].rows]

        def solved(less: float, **more: Any) -> ContactSolution:
            own = limits.copy()
            own[at_rest] *= 1.0 - less
            return self._solved(G, lifting, part, own, sliding=sliding, **more)

        found = solved(TRIGGERED)
        while True:
            share, margin = self._share(found, (G, w), part, laws, rests)
            if margin > TIGHT:
                return found, share
            begins = _beginning(found, part, rests, scale)
            if not begins and margin > -np.inf:
                begins = _beginning(solved(TIGHTER), part, rests, scale)
            if not begins:
                return found, share
            for g, direction in begins.items():
                rows = list(part.rubbing[g].rows)
                sliding[rows] = direction
                limits[rows] = self.rows.kinetic[[kept[r] for r in rows]]
            rests = [g for g in rests if g not in begins]
            at_rest = [r for g in rests for r in part.rubbing[g].rows]
            found = solved(TRIGGERED, warm=found.impulses)

    def _share(
        self,
        found: ContactSolution,
        system: tuple[Array, Array],
        part: _Part,
        laws: tuple[Array, Array],
        rests: list[int],
    ) -> tuple[Array, float]:
        """Share the forces of rows that follow from others so that what rests stays within its
        limits; the margin is -inf, and the share zero, where there is nothing to choose."""
        (G, w), (limits, sliding), kept = system, laws, list(part.kept)
        share, none = np.zeros(len(kept)), -np.inf
        loaded = UNLOADED * float(np.abs(found.impulses).max())
        normals = [row for row in part.normals if found.impulses[row] > loaded]
        cones = [Cone((), row) for row in normals]
        rows, F, b = list(normals), np.eye(len(kept)), w.copy()
        diagonal = self._diagonal[kept]
        for g, group in enumerate(part.rubbing):
            own, limit = list(group.rows), float(limits[group.rows[0]])
            if (group.normal >= 0 and group.normal not in normals) or limit <= 0.0:
                continue
            if g in rests:
                cones.append(Cone(group.rows, group.normal, limit))
                rows += [r for r in own if G[r, r] > RANK * diagonal[r]]
            elif group.normal >= 0:
                F[own, group.normal] = -limit * sliding[own]
            else:
                b += G[:, own] @ (-limit * sliding[own])
        if not any(cone.rows for cone in cones):
            return share, none
        scales = 1.0 / np.sqrt(diagonal[rows])
        F = F[:, rows] * scales
        null = null_space(np.linalg.cholesky(self.M).T @ self.X[:, kept] @ F, RANK)
        if not null.shape[1]:
            return share, none
        A = (G @ F)[rows] * scales[:, np.newaxis]
        x = found.impulses[rows] / scales  # of equal springs, less what rounding left
        x = x - least_norm(A, A @ x + b[rows] * scales, RANK)
        if np.abs(A @ x + b[rows] * scales).max() > HALF_DIGITS * np.abs(b[rows] * scales).max():
            return share, none
        share[rows] = scales * x
        margin = min(cone.margin(share) / max(cone.bound(share), TINY) for cone in cones)
        if margin < AT_LEISURE:
            free = np.zeros((len(kept), null.shape[1]))
            free[rows] = null * scales[:, np.newaxis]
            share, margin = best_share(share, free, cones)
        return share, margin

    def keep(self, modes: ModeValues) -> None:
        """Make the speeds of active rows zero and close their gaps; find whether all is at rest.

        What begins to slip does so from rest.
        """
        active = np.flatnonzero(modes.active > 0.5)
        stopped = np.union1d(active, self.beginning).astype(np.intp)
        if not stopped.size:
            return
        closed = [k for k, row in enumerate(self.table.normals) if modes.active[row]]
        if closed:
            self._close(closed)
        before = self._kinetic()
        residual = self.rows.J[stopped] @ self.nu + self.rows.drift[stopped]
        self.nu = self.nu - self._least(stopped, residual)
        self.lost += before - self._kinetic()
        held = bool(active.size) and int(rank(self.rows.J[active], RANK)) == len(self.nu)
        modes.springs = self._springs(active) if active.size else STIFF
        if np.abs(self.nu).max(initial=0.0) <= AT_REST and not self.rows.drift.any():
            self.nu = np.zeros_like(self.nu)
            modes.rest = 1.0 if held else MAYBE
        self.refresh()

    def _springs(self, active: npt.NDArray[np.intp]) -> float:
        """Return springs by which active rows share forces: soft against rounding, and so stiff
        that few proximal steps relax them."""
        scale = 1.0 / np.sqrt(self._diagonal[active])
        sizes = singular_values(self.G[np.ix_(active, active)] * np.outer(scale, scale))
        solid = sizes[sizes > RANK * sizes[0]]
        return STIFF if len(solid) == len(sizes) else float(min(SOFT, 0.1 * solid[-1]))

    def _least(self, active: npt.NDArray[np.intp], residual: Array) -> Array:
        """Smallest change of speeds, by kinetic energy, with given speeds of rows."""
        G = self.G[np.ix_(active, active)]
        return np.asarray(self.X[:, active] @ least_norm(G, residual, RANK))

    def _close(self, closed: list[int]) -> None:
        """Move the configuration so that some gaps are zero, by least squares."""
        rows = np.array([self.table.normals[k] for k in closed])
        for _ in range(2):
            gap = self.rows.gap[closed]
            if np.abs(gap).max() == 0.0:
                return
            step = self._least(rows, gap)
            arrays = {"q": self.q, "nu": self.nu - step}
            moved = self.model.evaluate("rates", arrays, self.options)
            still = self.model.evaluate("rates", {"q": self.q, "nu": self.nu}, self.options)
            self.q = self.model.evaluate("projection", {"q": self.q + moved - still}, self.options)
            self.refresh()

    def _note(self, before: ModeValues, after: ModeValues) -> None:
        struck = {e.contact for e in self.events if e.time == self.time}
        old, new = mode_words(self.table, before), mode_words(self.table, after)
        for event in changed_words(self.time, old, new):
            if event.what not in ("lands", "lifts") or event.contact not in struck:
                self.events.append(event)


def mode_words(table: ContactTable, modes: ModeValues) -> dict[str, str]:
    """Return the mode of every contact in a word: that of its friction, or of its gap."""
    made: dict[str, str] = {}
    for row, contact in zip(table.normals, table.normal_contacts, strict=True):
        name = table.names[contact]
        on = "closed" if modes.active[row] else "open"
        if made.get(name, "open") == "open":
            made[name] = on
    for group in table.rubbing:
        name, first = table.names[group.contact], group.rows[0]
        if modes.active[first]:
            word = "stick"
        elif modes.coefficient[first] > 0 or modes.direction[first] != 0:
            word = "slip"
        else:
            continue
        known = made.get(name)
        made[name] = "slip" if "slip" in (word, known) else word
    for name in table.names:
        made.setdefault(name, "open")
    return made


def changed_words(time: float, old: dict[str, str], new: dict[str, str]) -> list[ContactEvent]:
    """Return what happened where modes changed."""
    return [
        ContactEvent(time, name, VERBS[word]) for name, word in new.items() if old[name] != word
    ]


def _beginning(
    found: ContactSolution, part: _Part, rests: Sequence[int], scale: float
) -> dict[int, Array]:
    """Directions of the groups at rest that begin to slip."""
    made = {}
    for g in rests:
        rows = list(part.rubbing[g].rows)
        size = np.linalg.norm(found.impulses[rows])
        moves = np.linalg.norm(found.speeds[rows]) > STARTS * scale
        if found.modes[rows[0]] in (SLIP, LIMIT) and moves and size > 0:
            made[g] = -found.impulses[rows] / size
    return made


def largest_penetration(rows: RowValues) -> float:
    """Depth of the deepest contact below its ground [m or rad]; negative where none touches."""
    return float(-rows.gap.min(initial=np.inf))
