r"""The laws of contacts as programs of tapes: the solver of `complementarity`, without branches.

Every lane has modes of its own: a row that is open or slips is a row of the same linear system,
and lanes that have converged keep what they have. Newton's method starts from the impulses of the
step before, then from zero; lanes that it does not solve take damped steps, on softer springs and
after sweeps of Gauss and Seidel. Springs are relaxed in the same modes with the same factors,
:math:`x_{k+1} = x_1 + A^{-1} \varepsilon T x_k`, and by proximal steps where modes change by that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, While
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import HALF_DIGITS, ROUNDING, TINY
from axode.problems.contacts.complementarity import (
    COLD,
    DAMPED,
    DAMPINGS,
    FEW_SWEEPS,
    MANY_SWEEPS,
    REPEATS,
    SPRUNG,
    RowLaws,
)

STIFF = 1e-9  # of the diagonal of G: compliance of springs, which shares forces
SOFTENED = (
    1e7,
    1e6,
    1e5,
    1e4,
    1e3,
    1e2,
    10.0,
)  # compliances of springs that are tried, of that one
POLISHED_FROM = 1e3  # compliance from which springs are relaxed step by step
YIELDING = 1e-5  # of the speeds: how far the laws may be missed where nothing better is found
WARM = 8  # iterations from the impulses of the step before
PASSES = 3  # relaxations of the springs in the same modes
# attempts of damped steps: compliance of the springs, sweeps before, whether it starts from zero
ATTEMPTS = (
    (1.0, 0, True),
    *((soft, 0, soft == SOFTENED[0]) for soft in SOFTENED),
    (1.0, 0, False),
    (1e3, 0, True),
    (1.0, 0, False),
    (1e3, FEW_SWEEPS, True),
    (1.0, 0, False),
    (1e3, MANY_SWEEPS, True),
    (1.0, 0, False),
)
PROBLEM = ("G", "free", "approach", "least", "limits")  # buffers that a problem consists of


def solve_operations(table: RowLaws, m: int) -> list[Operation]:
    """Solve problems where the flag `solving` is up, from the impulses `impulses`.

    Buffers are those of `PROBLEM`: G row by row, and m numbers each. `solved` is one where the laws
    are met; `impulses` are the best that were found elsewhere.
    """
    begin = formula_tape(
        "contacts_begin",
        {"solving": 1, "solved": 1},
        lambda solving, solved: {
            "center": [0.0 * solving[0]] * m,
            "progress": [0.0 * solving[0]] * 4,
            "solved": [solving[0].then(0.0, solved[0])],  # others keep what they had
            "rescuing": [0.0 * solving[0]],
            "soft": [solving[0].like(1.0)],
        },
    )
    fast = While("solving", (_newton(table, m),))
    sweep = While("sweeping", (_sweep(table, m),))
    slow = While("rescuing", (_attempt(m), sweep, _damped(table, m)))
    made = ("center", "progress", "solved", "rescuing", "soft")
    return [Evaluate(begin, ("solving", "solved", *made)), fast, slow, fast]


@dataclass(frozen=True)
class _Laws:
    """The laws of all rows at one problem, as formulas."""

    table: RowLaws
    G: Sequence[Vector]
    w: Vector
    approach: Vector
    least: Vector
    limits: Vector
    diagonal: Vector
    scale: Formula

    @classmethod
    def of(cls, table: RowLaws, m: int, v: dict[str, Vector]) -> _Laws:
        """Read the buffers of a problem."""
        G = [v["G"][i * m : (i + 1) * m] for i in range(m)]
        diagonal = [G[i][i] for i in range(m)]
        for group in table.rubbing:
            largest = reduce(Formula.most, [diagonal[r] for r in group.rows])
            for row in group.rows:
                diagonal[row] = largest
        floor = ROUNDING * reduce(Formula.most, diagonal).most(TINY)
        diagonal = [x.most(floor) for x in diagonal]
        # wide gaps do not count: what is open needs no impulse
        scale = reduce(Formula.most, map(abs, v["free"])).most(TINY)
        free, approach, least, limits = (v[name] for name in PROBLEM[1:])
        return cls(table, G, free, approach, least, limits, diagonal, scale)

    @property
    def zero(self) -> Formula:
        return self.w[0].like(0.0)

    def speeds(self, x: Vector) -> Vector:
        """Speeds of the rows."""
        return [
            a + reduce(Formula.__add__, (g * y for g, y in zip(row, x, strict=True)))
            for a, row in zip(self.w, self.G, strict=True)
        ]

    def wished(self, x: Vector, center: Vector | None, soft: Formula | float = 1.0) -> Vector:
        """Impulses less speeds; on springs without load at `center`, if there is one."""
        made = []
        for i, v in enumerate(self.speeds(x)):
            away = (v + self.approach[i]) / self.diagonal[i]
            if center is not None:
                away = away + STIFF * soft * (x[i] - center[i])
            made.append(x[i] - away)
        return made

    def projected(self, wished: Vector) -> Vector:
        """Impulses that the laws ask for."""
        made = list(wished)
        for row in self.table.normals:
            made[row] = self.least[row].most(made[row])
        for group in self.table.rubbing:
            radius, size = self._disk(group.rows, group.normal, made)
            inside = size <= radius
            part = inside.then(1.0, radius / inside.then(1.0, size))
            for row in group.rows:
                made[row] = part * wished[row]
        return made

    def residual(self, x: Vector, center: Vector | None, soft: Formula | float = 1.0) -> Formula:
        """How far the laws are missed, as a speed; NaN if any number is."""
        asked = self.projected(self.wished(x, center, soft))
        missed = [abs(a - b) * d for a, b, d in zip(x, asked, self.diagonal, strict=True)]
        total = reduce(Formula.__add__, missed)
        return (total < 1e300).then(reduce(Formula.most, missed), 1e300)

    def _disk(self, rows: Sequence[int], normal: int, x: Vector) -> tuple[Formula, Formula]:
        """Radius of a disk of friction beside some impulses, and their distance from its center."""
        limit = self.limits[rows[0]]
        radius = limit if normal < 0 else limit * x[normal].most(0.0)
        if len(rows) == 1:
            return radius, abs(x[rows[0]])
        return radius, sum((x[r] * x[r] for r in rows[1:]), x[rows[0]] * x[rows[0]]).sqrt()

    def linearized(
        self, x: Vector, center: Vector, soft: Formula | float = 1.0
    ) -> tuple[list[Vector], Vector, list[list[tuple[int, Formula]]]]:
        """Matrix and right side in the modes of some impulses, and T: which rows hold."""
        m, one = len(self.w), self.zero.like(1.0)
        wished, eps = self.wished(x, center, soft), STIFF * soft
        T: list[list[tuple[int, Formula]]] = [[] for _ in range(m)]
        A: list[Vector] = [[self.zero] * m for _ in range(m)]
        f = [self.zero] * m
        for row in self.table.normals:
            holds = wished[row] > self.least[row]
            T[row] = [(row, holds)]
            f[row] = holds.then(-self.approach[row] / self.diagonal[row], self.least[row])
        for group in self.table.rubbing:
            rows = list(group.rows)
            known = list(wished)
            if group.normal >= 0:
                known[group.normal] = wished[group.normal].most(self.least[group.normal])
            radius, size = self._disk(rows, group.normal, known)
            slides = ~((size <= radius) & (radius > 0.0))
            on = slides & (radius > 0.0)
            away = (size > 0.0).then(size, 1.0)
            for i in rows:
                s = wished[i] / away
                for j in rows:
                    same = one if i == j else self.zero
                    turning = radius / away * (same - s * (wished[j] / away))
                    if len(rows) == 1:
                        turning = self.zero
                    T[i].append((j, slides.then(turning, same)))
                pull = on.then(self.limits[i] * s, 0.0)
                if group.normal < 0:
                    f[i] = pull
                else:
                    A[i][group.normal] = -pull
        for i in range(m):
            A[i][i] = A[i][i] + 1.0
            for k, t in T[i]:
                part = t / self.diagonal[k]
                f[i] = f[i] - part * self.w[k] + eps * t * center[k]
                for j in range(m):
                    A[i][j] = A[i][j] + part * self.G[k][j]
                A[i][k] = A[i][k] + (eps - 1.0) * t
        return A, f, T


def factored(A: list[Vector], symmetric: bool = False) -> list[Vector]:
    """Eliminate without exchanging rows; gives both factors in one matrix, pivots inverted."""
    n, made = len(A), [list(row) for row in A]
    for k in range(n):
        made[k][k] = 1.0 / made[k][k]
        for i in range(k + 1, n):
            made[i][k] = (made[k][i] if symmetric else made[i][k]) * made[k][k]
            if made[i][k].is_zero():
                continue
            for j in range(i if symmetric else k + 1, n):
                made[i][j] = made[i][j] - made[i][k] * made[k][j]
    return made


def substituted(factors: list[Vector], b: Vector) -> Vector:
    """Solve a system that was eliminated."""
    x = list(b)
    for i in range(len(x)):
        for j in range(i):
            x[i] = x[i] - factors[i][j] * x[j]
    for i in reversed(range(len(x))):
        for j in range(i + 1, len(x)):
            x[i] = x[i] - factors[i][j] * x[j]
        x[i] = x[i] * factors[i][i]
    return x


def _chosen(flag: Formula, yes: Sequence[Formula], no: Sequence[Formula]) -> Vector:
    return [flag.then(a, b) for a, b in zip(yes, no, strict=True)]


def _sizes(m: int) -> dict[str, int]:
    return {"G": m * m} | dict.fromkeys(PROBLEM[1:], m)


def _newton(table: RowLaws, m: int) -> Evaluate:
    """One iteration of Newton's method, and the decision what follows.

    `progress` counts iterations, and marks whether proximal steps are under way and whether damped
    steps have been tried.
    """

    def iterate(**v: Vector) -> dict[str, Vector]:
        laws = _Laws.of(table, m, v)
        on, x, center = v["solving"][0], v["impulses"], v["center"]
        count, polishing, rescued, best = v["progress"]
        soft = v["soft"][0]
        A, f, T = laws.linearized(x, center, soft)
        factors = factored(A)
        sprung = substituted(factors, f)
        rigid = sprung
        for _ in range(PASSES):
            moved = [a - b for a, b in zip(rigid, center, strict=True)]
            pull = [
                STIFF * soft * sum((t * moved[k] for k, t in row[1:]), row[0][1] * moved[row[0][0]])
                for row in T
            ]
            change = substituted(factors, pull)
            rigid = [a + b for a, b in zip(sprung, change, strict=True)]
        missed, stretched = laws.residual(rigid, None), laws.residual(sprung, None)
        met = missed <= ROUNDING * laws.scale
        near = laws.residual(sprung, center, soft) <= SPRUNG * laws.scale
        finite = missed < 1e300
        begins = ~polishing & near & ~met
        closest = missed.least(stretched)
        better = begins | (polishing & near & (closest < best))
        found = _chosen(stretched < missed, sprung, rigid)
        kept = better.then(closest, best)
        last = polishing & ((count + 1.0 >= float(2 * REPEATS)) | (near & ~better))
        enough = rescued.then(YIELDING, HALF_DIGITS)
        nearly = last & (kept <= enough * laws.scale)
        cold = (~polishing & ~met & ~near) & (
            (count + 1.0).equals(float(WARM)) | (~finite & (count < float(WARM)))
        )
        spent = ~polishing & ~near & ((count + 1.0 >= float(WARM + COLD)) | (~finite & ~cold))
        ends = met | last | spent
        kept_center = _chosen(better & ~met, found, center)
        x_new = _chosen(begins | last | (polishing & near), kept_center, sprung)
        x_new = _chosen(met, rigid, _chosen(cold | (~finite & ~polishing), [laws.zero] * m, x_new))
        counted = begins.then(0.0, cold.then(float(WARM), count + 1.0))
        solved = met | nearly
        return {
            "impulses": _chosen(on, x_new, x),
            "center": _chosen(on, kept_center, center),
            "progress": [
                on.then(counted, count),
                on.then(polishing | begins, polishing),
                rescued,
                on.then(kept, best),
            ],
            "solving": [on & ~ends],
            "solved": [on.then(solved, v["solved"][0])],
            "rescuing": [(on & ends & ~solved & ~rescued) | v["rescuing"][0]],
        }

    own = {"impulses": m, "center": m, "progress": 4, "solving": 1, "solved": 1, "rescuing": 1}
    tape = formula_tape("contacts_newton", _sizes(m) | own | {"soft": 1}, iterate)
    return Evaluate(tape, (*PROBLEM, *own, "soft", *own))


def _attempt(m: int) -> Evaluate:
    """Begin the attempts of damped steps, and choose springs and sweeps of each."""

    def begin(
        rescuing: Vector, impulses: Vector, progress: Vector, soft: Vector
    ) -> dict[str, Vector]:
        on, (count, polishing, rescued, best) = rescuing[0], progress
        count = (on & ~rescued).then(0.0, count)
        place = count / float(DAMPED)
        number, compliant, sweeps, zero = place.floor(), soft[0], 0.0 * count, 0.0 * count
        for k, (compliance, before, fresh) in enumerate(ATTEMPTS):
            here = number.equals(float(k))
            compliant = (on & here).then(compliance, compliant)
            first = here & place.equals(number)
            sweeps = first.then(float(before), sweeps)
            zero = (first & zero.like(float(fresh))) | zero
        return {
            "impulses": [(on & zero).then(0.0, x) for x in impulses],
            "progress": [
                count,
                on.then(0.0, polishing),
                on.then(1.0, rescued),
                (on & ~rescued).then(1e300, best),
            ],
            "soft": [compliant],
            "sweeping": [on.then(sweeps, 0.0)],
        }

    sizes = {"rescuing": 1, "impulses": m, "progress": 4, "soft": 1}
    tape = formula_tape("contacts_attempt", sizes, begin)
    return Evaluate(tape, (*sizes, "impulses", "progress", "soft", "sweeping"))


def _damped(table: RowLaws, m: int) -> Evaluate:
    """One damped step on springs; where they are stiff and the laws are met, Newton goes on."""

    def iterate(**v: Vector) -> dict[str, Vector]:
        laws = _Laws.of(table, m, v)
        on, x, soft = v["rescuing"][0], v["impulses"], v["soft"][0]
        count, polishing, rescued, kept = v["progress"]
        none = [laws.zero] * m
        A, f, _ = laws.linearized(x, none, soft)
        found = substituted(factored(A), f)
        best, least = x, laws.zero.like(1e300)
        for part in DAMPINGS:
            tried = [a + part * (b - a) for a, b in zip(x, found, strict=True)]
            missed = laws.residual(tried, none, soft)
            better = missed < least
            best, least = _chosen(better, tried, best), better.then(missed, least)
        near = least <= SPRUNG * laws.scale
        done, each = near & (soft <= POLISHED_FROM), float(DAMPED)
        counted = near.then(((count / each).floor() + 1.0) * each, count + 1.0)
        goes_on = ~done & (counted < each * len(ATTEMPTS))
        missed = laws.residual(best, None)
        better = missed < kept
        kept = on.then(better.then(missed, kept), kept)
        center = _chosen(on & better, best, v["center"])
        yields = kept <= YIELDING * laws.scale
        return {
            "impulses": _chosen(on, _chosen(goes_on | done, best, center), x),
            "center": center,
            "progress": [
                on.then(done.then(0.0, counted), count),
                on.then(done, polishing),
                rescued,
                kept,
            ],
            "rescuing": [on & goes_on],
            "solving": [(on & done) | v["solving"][0]],
            "solved": [(on & ~goes_on).then(yields, v["solved"][0])],
        }

    own = {"impulses": m, "center": m, "progress": 4, "rescuing": 1, "solving": 1, "solved": 1}
    tape = formula_tape("contacts_damped", _sizes(m) | own | {"soft": 1}, iterate)
    return Evaluate(tape, (*PROBLEM, *own, "soft", *own))


def _sweep(table: RowLaws, m: int) -> Evaluate:
    """Solve group by group, in turn (Gauss and Seidel)."""

    def sweep(**v: Vector) -> dict[str, Vector]:
        laws = _Laws.of(table, m, v)
        x, left = list(v["impulses"]), v["sweeping"][0]

        def speed(i: int) -> Formula:
            moved = sum((g * y for g, y in zip(laws.G[i], x, strict=True)), laws.w[i])
            return moved + STIFF * laws.diagonal[i] * x[i]

        for row in table.normals:
            wish = x[row] - (speed(row) + laws.approach[row]) / laws.diagonal[row]
            x[row] = laws.least[row].most(wish)
        for group in table.rubbing:
            wished = {i: x[i] - speed(i) / laws.diagonal[i] for i in group.rows}
            for i, wish in wished.items():
                x[i] = wish
            radius, size = laws._disk(group.rows, group.normal, x)
            inside = size <= radius
            part = inside.then(1.0, radius / inside.then(1.0, size))
            for i in group.rows:
                x[i] = part * x[i]
        return {
            "impulses": _chosen(left > 0.0, x, v["impulses"]),
            "sweeping": [(left - 1.0).most(0.0)],
        }

    own = {"impulses": m, "sweeping": 1}
    tape = formula_tape("contacts_sweep", _sizes(m) | own, sweep)
    return Evaluate(tape, (*PROBLEM, *own, *own))


def laws_tapes(table: RowLaws, m: int) -> tuple[Tape, ...]:
    """Return the tapes of the solver, for those who count operations."""
    return tuple(e.tape for e in (_newton(table, m), _damped(table, m), _sweep(table, m)))
