r"""Impulses of contacts that stick, slip or open, in NumPy.

Rows move by :math:`v = w + G \lambda`, w without impulses. With projections on the impulses that
each law allows,

.. math:: \lambda_n = \max(e, \lambda_n - r_n (v_n + b)), \qquad
          \lambda_t = P_{\varrho}(\lambda_t - r_t v_t),

:math:`P_\varrho` on the disk of radius :math:`\varrho = \mu \max(e, \lambda_n - r_n (v_n + b))`, or
of a constant radius for dry friction of joints [P. Alart, A. Curnier, *A mixed formulation for
frictional contact problems prone to Newton like solution methods*, 1991]. Newton's method solves a
linear system per mode; damped steps and Gauss-Seidel sweeps follow where it does not converge.

Rows may follow from others, and then G is singular. Therefore contacts are stiff springs first,
:math:`v = w + (G + \varepsilon D) \lambda` with the diagonal D of G, which share forces as equal
wheels do and decide so which of them slips; then the springs are relaxed by proximal steps,
:math:`v = w + G \lambda + \varepsilon D (\lambda - \lambda_{\rm before})`. They start from zero:
from the impulses of the step before, shares would drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from axode.numerics.tolerances import HALF_DIGITS, PRODUCT_ROUNDING, ROUNDING, TINY

Array = npt.NDArray[np.float64]
Modes = npt.NDArray[np.intp]
OPEN, STICK, SLIP, LIMIT = range(4)  # LIMIT: as much friction as there can be, and no slip
PROXIMAL = 1e-6  # of the diagonal of G: what is added to it, and taken back by repeating
REPEATS = 10  # proximal steps
RELAXATIONS = 60  # of them, where modes change while springs are relaxed
SPRUNG = 1e-10  # of the speeds: how well the laws are met on springs
SOFTENED = (1e4, 1e3, 1e2, 10.0)  # compliances of springs that are tried, of the last one
DAMPINGS = (1.0, 0.5, 0.25, 0.1)  # parts of a step of Newton's method that are tried
LOADS = 30  # times that loads are taken as known, and found again
COLD, DAMPED, FEW_SWEEPS, MANY_SWEEPS = 12, 25, 50, 400  # iterations of the cascade


class RubbingGroup(Protocol):
    """Rows whose impulses lie in one disk, beneath a normal row unless that is -1."""

    @property
    def rows(self) -> tuple[int, ...]: ...
    @property
    def normal(self) -> int: ...


class RowLaws(Protocol):
    """Which rows are normal, and which rub, as `ContactTable` has them."""

    @property
    def normals(self) -> tuple[int, ...]: ...
    @property
    def rubbing(self) -> Sequence[RubbingGroup]: ...


@dataclass(frozen=True)
class ContactSolution:
    """Impulses of all rows.

    Attributes:
        impulses: One per row.
        speeds: Speeds of the rows with these impulses.
        residual: How far the laws are missed, in the unit of the speeds.
        solved: Whether that is rounding.
        modes: `OPEN`, `STICK` or closed, `SLIP` or `LIMIT` for each row.
        jamming: Numbers of the rubbing groups whose friction can press their own contact onto the
            ground: there rigid bodies may have no motion or several (Painleve's paradox).
    """

    impulses: Array
    speeds: Array
    residual: float
    solved: bool
    modes: Modes
    jamming: tuple[int, ...]


def solve_contacts(
    G: Array,
    w: Array,
    table: RowLaws,
    limits: Array,
    *,
    warm: Array | None = None,
    approach: Array | None = None,
    least: Array | None = None,
    sliding: Array | None = None,
) -> ContactSolution:
    """Find the impulses of contacts, or their forces if G and w give accelerations.

    Args:
        G: What impulses add to the speeds of the rows, (m, m); it may be singular.
        w: Speeds of the rows without impulses, (m,).
        table: Laws of the rows.
        limits: Coefficient of each rubbing row, (m,): friction, length, or impulse of a box.
        warm: Impulses to start from, such as those of the step before.
        approach: Speed of each normal row that its contact still allows towards the ground, (m,).
        least: Least impulse of each normal row, (m,), such as that of restitution.
        sliding: Directions of rows that slide already, (m,): their friction opposes them. Groups
            whose directions are zero find their own.
    """
    laws = _Laws(G, w, table, limits, approach, least, sliding)
    starts = np.zeros_like(w) if warm is None else np.asarray(warm, dtype=float)
    found = laws.newton(starts, COLD)
    if not laws.is_near(found):
        found = _cascade(laws, found)
    found = laws.without_springs(found)
    residual = laws.residual(found)
    return ContactSolution(
        found,
        laws.speeds(found),
        residual,
        bool(residual <= HALF_DIGITS * laws.scale),
        laws.modes(found),
        laws.jamming(),
    )


def _cascade(laws: _Laws, first: Array) -> Array:
    """Solve what Newton's method from a start does not, by slower and safer means."""
    cold = np.zeros_like(first)
    tries: tuple[Callable[[], Array], ...] = (
        lambda: laws.newton(cold, COLD),
        lambda: laws.newton(cold, DAMPED, damped=True),
        lambda: laws.newton(laws.loaded(first), COLD),
        lambda: laws.newton(laws.loaded(cold), COLD),
        lambda: laws.newton(laws.stiffened(cold), DAMPED, damped=True),
        lambda: laws.newton(laws.sweep(cold, FEW_SWEEPS), DAMPED, damped=True),
        lambda: laws.newton(laws.sweep(cold, MANY_SWEEPS), DAMPED, damped=True),
    )
    best = first
    for attempt in tries:
        found = attempt()
        if not laws.residual(best) <= laws.residual(found):
            best = found
        if laws.is_near(best):
            break
    return best


class _Laws:
    """The laws of all rows, and the residual of impulses."""

    def __init__(
        self,
        G: Array,
        w: Array,
        table: RowLaws,
        limits: Array,
        approach: Array | None,
        least: Array | None,
        sliding: Array | None,
    ) -> None:
        self.G, self.w, self.m = G, w, len(w)
        self.limits = limits
        none = np.zeros(self.m)
        self.approach = none if approach is None else approach
        self.least = none if least is None else least
        self.sliding = none if sliding is None else sliding
        self.normals, self.groups = table.normals, table.rubbing
        diagonal = np.diag(G).copy()
        for group in self.groups:  # one scale per disk
            diagonal[list(group.rows)] = diagonal[list(group.rows)].max()
        self.diagonal = np.maximum(diagonal, ROUNDING * max(diagonal.max(initial=0.0), TINY))
        known = (w, self.approach, G @ self.least)
        self.scale = max(*(np.abs(x).max(initial=0.0) for x in known), TINY)
        self.springs = PROXIMAL * self.diagonal
        self.center = none  # impulses at which the springs are without load
        self.loads: Array | None = None  # normal impulses by which friction is limited, if known

    def speeds(self, impulses: Array) -> Array:
        """Speeds of all rows."""
        return np.asarray(self.w + self.G @ impulses)

    def sprung(self, impulses: Array) -> Array:
        """Speeds of all rows on their springs."""
        return np.asarray(self.speeds(impulses) + self.springs * (impulses - self.center))

    def radius(self, group: RubbingGroup, impulses: Array) -> float:
        """Largest friction of a group of rows beside normal impulses."""
        limit = float(self.limits[group.rows[0]])
        if group.normal < 0:
            return limit
        normal = float((impulses if self.loads is None else self.loads)[group.normal])
        return limit * normal if normal > 0 else 0.0

    def is_sliding(self, group: RubbingGroup) -> bool:
        """Return whether the direction of a group is given."""
        return bool(self.sliding[list(group.rows)].any())

    def wished(self, impulses: Array) -> Array:
        """Impulses less speeds, whose projections the impulses should be."""
        return np.asarray(impulses - (self.sprung(impulses) + self.approach) / self.diagonal)

    def projected(self, impulses: Array) -> Array:
        """Impulses that the laws ask for."""
        wished = self.wished(impulses)
        for row in self.normals:
            wished[row] = max(self.least[row], wished[row])
        for group in self.groups:
            rows, radius = list(group.rows), self.radius(group, wished)
            if self.is_sliding(group):
                wished[rows] = -radius * self.sliding[rows]
                continue
            size = np.linalg.norm(wished[rows])
            if size > radius:
                wished[rows] *= radius / size
        return wished

    def residual(self, impulses: Array) -> float:
        """How far the laws are missed, as a speed."""
        missed = (impulses - self.projected(impulses)) * self.diagonal
        return float(np.abs(missed).max(initial=0.0))

    def is_near(self, impulses: Array) -> bool:
        """Return whether the laws are met so well that the modes are right."""
        return bool(self.residual(impulses) <= SPRUNG * self.scale)

    def modes(self, impulses: Array) -> Modes:
        """Mode of each row."""
        modes = np.full(self.m, OPEN, dtype=np.intp)
        wished, speeds = self.wished(impulses), self.speeds(impulses)
        for row in self.normals:
            if wished[row] > self.least[row]:
                modes[row] = STICK
        for group in self.groups:
            rows, radius = list(group.rows), self.radius(group, wished)
            if group.normal >= 0 and modes[group.normal] == OPEN and radius <= 0:
                continue
            slips = np.linalg.norm(speeds[rows]) > HALF_DIGITS * self.scale
            full = self.is_sliding(group) or np.linalg.norm(wished[rows]) > radius
            modes[rows] = (SLIP if slips else LIMIT) if full else STICK
        return modes

    def jamming(self) -> tuple[int, ...]:
        """Groups whose friction can press their own contact onto the ground."""
        found = []
        for g, group in enumerate(self.groups):
            if group.normal >= 0:
                coupling = np.linalg.norm(self.G[group.normal, list(group.rows)])
                if self.limits[group.rows[0]] * coupling >= self.G[group.normal, group.normal]:
                    found.append(g)
        return tuple(found)

    def linearized(self, impulses: Array) -> tuple[Array, Array, Array]:
        """Matrices B and C and vector f of B (w + G x) + C x = f, in the modes of some impulses."""
        B, C = np.zeros((self.m, self.m)), np.eye(self.m)
        f = self.least.copy()
        wished = self.wished(impulses)
        for row in self.normals:
            if wished[row] > self.least[row]:
                B[row, row], C[row, row], f[row] = 1.0, 0.0, -self.approach[row]
        for group in self.groups:
            self._linearize(group, np.array(group.rows), wished, (B, C, f))
        return B, C, f

    def _linearize(
        self, group: RubbingGroup, rows: Modes, wished: Array, system: tuple[Array, Array, Array]
    ) -> None:
        B, C, f = system
        block = np.ix_(rows, rows)
        given = self.is_sliding(group)
        size, limit = float(np.linalg.norm(wished[rows])), float(self.limits[rows[0]])
        open_below = group.normal >= 0 and B[group.normal, group.normal] == 0.0
        normal = 0.0
        known = self.loads
        if group.normal >= 0:
            normal = self.least[group.normal] if open_below else wished[group.normal]
            normal = normal if known is None else known[group.normal]
        radius = limit if group.normal < 0 else (limit * normal if normal > 0 else 0.0)
        if not given and size <= radius and radius > 0:
            B[block], C[block], f[rows] = np.eye(len(rows)), 0.0, 0.0
            return
        if radius <= 0:
            return
        direction = -self.sliding[rows] if given else wished[rows] / size
        if not given and len(rows) > 1:
            turning = (radius / size) * (np.eye(len(rows)) - np.outer(direction, direction))
            C[block] -= turning
            B[block] = turning / self.diagonal[rows[0]]
        if group.normal < 0 or known is not None:
            f[rows] = radius * direction
        else:
            C[rows, group.normal] = -limit * direction
            f[rows] = 0.0

    def solution(self, impulses: Array) -> Array:
        """Solve in the modes of some impulses."""
        B, C, f = self.linearized(impulses)
        springs = np.diag(self.springs)
        try:
            found = np.linalg.solve(
                B @ (self.G + springs) + C, f - B @ (self.w - self.springs * self.center)
            )
        except np.linalg.LinAlgError:
            return np.full(self.m, np.nan)
        return np.asarray(found)

    def newton(self, impulses: Array, iterations: int, *, damped: bool = False) -> Array:
        """Iterate from some impulses until the laws are met."""
        x = impulses
        for _ in range(iterations):
            step = self.solution(x) - x
            if not np.isfinite(step).all():
                return x
            x = min(
                (x + part * step for part in (DAMPINGS if damped else (1.0,))), key=self.residual
            )
            if self.is_near(x):
                return x
        return x

    def loaded(self, impulses: Array) -> Array:
        """Solve with loads that are known, which has one solution, and take those found next."""
        x = impulses
        for _ in range(LOADS):
            self.loads = x
            found = self.newton(x, DAMPED, damped=True)
            moved, x = float(np.abs((found - x) * self.diagonal).max(initial=0.0)), found
            if moved <= SPRUNG * self.scale:
                break
        self.loads = None
        return x

    def stiffened(self, impulses: Array) -> Array:
        """Solve with softer springs first, which are made stiffer step by step."""
        x, stiff = impulses, self.springs
        for part in SOFTENED:
            self.springs = part * stiff
            x = self.newton(x, DAMPED, damped=True)
        self.springs = stiff
        return x

    def without_springs(self, impulses: Array) -> Array:
        """Leave the springs without load: by few steps in the same modes, or by safer ones."""
        found = self._relaxed(impulses, REPEATS, 2, damped=False)
        if self.residual(found) <= HALF_DIGITS * self.scale:
            return found
        self.springs, self.center = PROXIMAL * self.diagonal, 0.0 * impulses
        return self._relaxed(impulses, RELAXATIONS, DAMPED, damped=True)

    def _relaxed(self, impulses: Array, repeats: int, steps: int, *, damped: bool) -> Array:
        """Take proximal steps until the laws are met; the springs are gone then."""
        x, springs = impulses, self.springs
        rigid = 0.0 * springs
        best, least = x, np.inf
        for _ in range(repeats):
            self.springs = rigid
            if (missed := self.residual(x)) < least:
                best, least = x, missed
            if missed <= PRODUCT_ROUNDING * self.scale:
                break
            self.center, self.springs = x, springs
            found = self.newton(x, steps, damped=damped)
            if not np.isfinite(found).all():
                break
            x = found
        self.springs = rigid
        return x if self.residual(x) < least else best

    def sweep(self, impulses: Array, sweeps: int) -> Array:
        """Solve group by group, in turn (Gauss and Seidel)."""
        x, G = impulses.copy(), self.G + np.diag(self.springs)
        for _ in range(sweeps):
            for row in self.normals:
                speed = self.w[row] + G[row] @ x + self.approach[row]
                x[row] = max(self.least[row], x[row] - speed / self.diagonal[row])
            for group in self.groups:
                rows, radius = list(group.rows), self.radius(group, x)
                if self.is_sliding(group):
                    x[rows] = -radius * self.sliding[rows]
                    continue
                wished = x[rows] - (self.w[rows] + G[rows] @ x) / self.diagonal[rows]
                size = np.linalg.norm(wished)
                x[rows] = wished * (radius / size if size > radius else 1.0)
        return x
