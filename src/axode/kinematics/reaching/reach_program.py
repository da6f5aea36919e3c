r"""Inverse kinematics as compiled code: every run has its own targets.

The rows R are the errors of the targets, each with its weight, and those of the loops with a large
one. `reach_program` reduces :math:`\tfrac12 |R|^2` within the limits by Levenberg-Marquardt steps,

.. math:: (J^T J + \mu 1)\, d = -J^T R, \qquad \mu = \kappa |R|^2,

in which coordinates stay that lie at a limit and would be pushed beyond it. With damping in
proportion to the squared error, convergence is quadratic also where J has no full rank.

`approach_program` goes along the postures that reach their targets towards a wanted one.
`polish_program` continues by Newton's method with exact second derivatives,

.. math:: \min_q \tfrac12 |R + s|^2 + \tfrac{\varepsilon}{2} |q - q_0|^2, \qquad s \leftarrow s + R,

the method of multipliers: shifts s of rows that must vanish make them do so. Loops close exactly
though targets are out of reach, and of all postures that reach their targets it finds one that is
nearest to :math:`q_0`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from axode.codegen.tape.derivatives import changes_along, forward_tape
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, JacobianColumns, Operation, Program, While, stride
from axode.codegen.tape.tape import Tape
from axode.kinematics.reaching.goals import SIZES
from axode.numerics.tolerances import (
    MATRIX_ROUNDING,
    NEGLIGIBLE,
    POLISHED,
    SEVEN_DIGITS,
    STATIONARY,
    SUM_ROUNDING,
    TINY,
)
from axode.problems.assemble.closure_program import (
    NOT_FINITE,
    call_tape,
    factor_symmetric,
    largest,
    solve_symmetric,
    total,
)

LOOP_WEIGHT = 30.0  # of a loop's row against a target's
MAX_STEPS = 70.0
MAX_STEP = 1.0  # of the coordinates' units
FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-1, 1e-7, 1e9
STATE = {"cost": 1, "error": 1, "damping": 1, "count": 1, "active": 1}
MAX_APPROACH = 0.5  # of the coordinates' units: longest step towards a posture
OFF_ZEROS = 1e-2  # of the rows' units: what a step may leave to the next
SHORT_MOVE = 0.1  # of the coordinates' units: after a Newton step below rows are shifted
POSTURE = 1e-4  # weight of the distance from the wanted posture against the rows
APPROACH_STATE = {"away": 1, "pace": 1, "count": 1, "active": 1}
POLISH_STATE = {"value": 1, "damping": 1, "count": 1, "active": 1, "slope": 1, "open": 1}


@dataclass(frozen=True)
class ReachTapes:
    """What the rows are made of.

    Attributes:
        poses, measures, residual: Tapes of the model; None where no row reads them.
        goals: Kind and number of each.
        closing: Rows of the residual that must vanish.
        row_units: One unit of each of these.
        quaternions: Places of the four parts of each among all coordinates.
        free: Coordinates that move.
        coordinates, speeds, parameters: Numbers of them.
        rates, projection: Where given, what moves are not coordinates but independent speeds times
            a time, by which the robot continues from the coordinates held, and the step back onto
            its loops after that.
    """

    poses: Tape | None
    measures: Tape | None
    residual: Tape | None
    goals: tuple[tuple[str, int], ...]
    closing: tuple[int, ...]
    row_units: tuple[float, ...]
    quaternions: tuple[tuple[int, ...], ...]
    free: tuple[int, ...]
    coordinates: int
    speeds: int
    parameters: int
    rates: Tape | None = None
    projection: Tape | None = None

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return len(self.free) if self.rates is None else self.speeds

    @property
    def wanted(self) -> int:
        """Size of the values that goals want, and of the rows of their errors."""
        return sum(SIZES[kind] for kind, _ in self.goals)

    @property
    def rows(self) -> int:
        """Number of all rows: of goals, loops and quaternions."""
        return self.wanted + len(self.closing) + len(self.quaternions)

    @property
    def sizes(self) -> dict[str, int]:
        """Buffers that rows read: `x` moves, `held` stays, `points` are fixed in bodies."""
        sizes = {"x": self.size, "held": self.coordinates, "t": 1, "p": self.parameters}
        sizes |= {"wanted": self.wanted, "points": 3 * len(self.goals)}
        sizes |= {"weights": self.wanted}
        return {name: size for name, size in sizes.items() if size}

    @cached_property
    def tape(self) -> Tape:
        """All rows as one tape."""
        return formula_tape("rows", self.sizes, lambda **v: {"r": self._rows(v)})

    def rows_at(self, **v: Vector) -> Vector:
        """All rows for some values of the buffers."""
        return call_tape(self.tape, {name: v[name] for name in self.sizes})

    def columns_at(self, **v: Vector) -> list[list[Formula | None]]:
        """Derivatives of all rows by each coordinate that moves; None where there is none."""
        arguments = [v[name] for name in self.sizes]
        one = 1.0 + 0.0 * v["x"][0]
        columns = []
        for j in range(self.size):
            directions: list[list[Formula | None]] = [[None] * len(a) for a in arguments]
            directions[0][j] = one
            columns.append(changes_along(self.tape, arguments, directions))
        return columns

    def normalized(self, x: Vector) -> Vector:
        """Coordinates that move, with unit quaternions."""
        x = list(x)
        for four in ([self.free.index(k) for k in own] for own in self.quaternions):
            length = total([x[k] * x[k] for k in four]).sqrt().most(TINY)
            for k in four:
                x[k] = x[k] / length
        return x

    def place(self, v: Mapping[str, Vector]) -> Vector:
        """All coordinates."""
        q = list(v["held"])
        if self.rates is not None:
            return self._go_on(self.rates, q, v)
        for place, x in zip(self.free, v["x"], strict=True):
            q[place] = x
        return q

    def _go_on(self, rates: Tape, q: Vector, v: Mapping[str, Vector]) -> Vector:
        """Coordinates after one step by the midpoint rule."""
        given = {"nu": v["x"], "t": v["t"], "p": v.get("p", [])}
        half = call_tape(rates, {"q": q, **given})
        middle = [a + 0.5 * b for a, b in zip(q, half, strict=True)]
        whole = call_tape(rates, {"q": middle, **given})
        q = [a + b for a, b in zip(q, whole, strict=True)]
        return q if self.projection is None else call_tape(self.projection, {**given, "q": q})

    def _rows(self, v: dict[str, Vector]) -> Vector:
        q = self.place(v)
        given = {"q": q, "nu": [0.0 * q[0]] * self.speeds, "t": v["t"], "p": v.get("p", [])}
        poses = call_tape(self.poses, given) if self.poses is not None else []
        measures = call_tape(self.measures, given) if self.measures is not None else []
        rows: Vector = []
        for number, (kind, index) in enumerate(self.goals):
            point = v["points"][3 * number : 3 * number + 3]
            size, first = SIZES[kind], len(rows)
            if kind in ("coordinate", "measure"):
                value = [(q if kind == "coordinate" else measures)[index]]
            else:
                value = _pose_value(kind, poses[16 * index : 16 * index + 16], point)
            wanted, weights = (v[name][first : first + size] for name in ("wanted", "weights"))
            rows += [w * (a - b) for a, b, w in zip(value, wanted, weights, strict=True)]
        open_ = call_tape(self.residual, given) if self.residual is not None else []
        units = zip(self.closing, self.row_units, strict=True)
        rows += [(LOOP_WEIGHT / unit) * open_[k] for k, unit in units]
        for four in self.quaternions:
            rows.append(LOOP_WEIGHT * (total([q[k] * q[k] for k in four]) - 1.0))
        return rows


def _pose_value(kind: str, pose: Vector, point: Vector) -> Vector:
    """Position of a point, direction of an axis, or the matrix of an orientation."""
    R = [pose[4 * i : 4 * i + 3] for i in range(3)]
    if kind == "rotation":
        return [entry for row in R for entry in row]
    turned = [total([a * b for a, b in zip(row, point, strict=True)]) for row in R]
    if kind == "direction":
        return turned
    return [turned[i] + pose[4 * i + 3] for i in range(3)]


def gram_and_columns(
    columns: list[list[Formula | None]], units: Vector, zero: Formula
) -> tuple[list[list[Formula]], list[Vector]]:
    """Gram matrix of scaled columns below its diagonal, and the columns with zeros filled in."""
    scaled = [
        [None if a is None else a * unit for a in column]
        for column, unit in zip(columns, units, strict=True)
    ]
    gram: list[list[Formula]] = []
    for i, left in enumerate(scaled):
        row = []
        for right in scaled[: i + 1]:
            both = [
                a * b for a, b in zip(left, right, strict=True) if a is not None and b is not None
            ]
            row.append(total(both, zero))
        gram.append(row)
    return gram, [[zero if a is None else a for a in column] for column in scaled]


def masked_matrix(gram: list[list[Formula]], free: Vector, extra: Formula) -> list[Vector]:
    """Matrix without the coordinates that stay, and `extra` added to its diagonal."""
    return [
        [
            free[i].then(gram[i][i] + extra, 1.0)
            if i == j
            else (free[i] & free[j]).then(gram[i][j], 0.0)
            for j in range(i + 1)
        ]
        for i in range(len(gram))
    ]


def may_move(x: Vector, g: Vector, v: dict[str, Vector]) -> Vector:
    """One for coordinates that may move: not at a limit beyond which the gradient pushes."""
    made = []
    for a, slope, low, high in zip(x, g, v["lower"], v["upper"], strict=True):
        made.append(~(((a <= low) & (slope > 0.0)) | ((a >= high) & (slope < 0.0))))
    return made


def step_within_limits(tapes: ReachTapes, x: Vector, d: Vector, v: dict[str, Vector]) -> Vector:
    """Coordinates after a step, shortened if it is long, within the limits."""
    shorter = MAX_STEP / largest([abs(a) for a in d], 0.0 * x[0]).most(MAX_STEP)
    moved = [a + unit * (shorter * b) for a, unit, b in zip(x, v["units"], d, strict=True)]
    return within_limits(tapes.normalized(moved), v)


def within_limits(x: Vector, v: dict[str, Vector]) -> Vector:
    """Coordinates, or the limits that they are beyond."""
    limits = zip(x, v["lower"], v["upper"], strict=True)
    return [a.most(low).least(high) for a, low, high in limits]


def largest_error(tapes: ReachTapes, r: Vector, v: dict[str, Vector], zero: Formula) -> Formula:
    """Largest row without its weight; not finite if any of them is."""
    own = [abs(a) * w for a, w in zip(r, v["ease"], strict=False)]
    own += [abs(a) / LOOP_WEIGHT for a in r[tapes.wanted :]]
    finite = total([abs(a) for a in r], zero) < NOT_FINITE
    return finite.then(largest(own, zero), NOT_FINITE)


def half_square(r: Sequence[Formula], zero: Formula) -> Formula:
    """Half of the sum of squares."""
    return 0.5 * total([a * a for a in r], zero)


def reach_program(tapes: ReachTapes, *, counted: bool = True) -> Program:
    """Make the program that moves `x` of each run towards its targets.

    If it is counted, it goes as far as the budget.

    `fresh` of a run is one if it starts and zero if it continues; `active` afterwards is one if it
    is not at its end. `ease` is what a row counts for where its error is compared with the
    `tolerance`.
    """
    n = tapes.size
    more = {"lower": n, "upper": n, "units": n, "ease": tapes.wanted, "tolerance": 1}
    read = tapes.sizes | more | STATE
    begin = formula_tape("reach_begin", read | {"fresh": 1}, lambda **v: _begin(tapes, v))
    step = formula_tape("reach_step", read, lambda **v: _step(tapes, v))
    made = ("x", *STATE)
    operations: tuple[Operation, ...] = (
        Evaluate(begin, (*read, "fresh", *made)),
        While("active", (Evaluate(step, (*read, *made)),), counted=counted),
    )
    given = {name: size for name, size in (tapes.sizes | more).items() if name != "x"}
    return Program("reach", {"x": n, **STATE}, given | {"fresh": 1}, {}, operations)


def _begin(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    zero = 0.0 * v["x"][0]
    x = tapes.normalized(within_limits(v["x"], v))
    r = tapes.rows_at(**{**v, "x": x})
    error = largest_error(tapes, r, v, zero)
    started = {
        "x": x,
        "cost": [half_square(r, zero)],
        "error": [error],
        "damping": [FIRST_DAMPING + zero],
        "count": [zero],
        "active": [(error > MATRIX_ROUNDING) & (error < NOT_FINITE)],
    }
    fresh = v["fresh"][0]
    return {
        name: [fresh.then(a, b) for a, b in zip(made, v[name], strict=True)]
        for name, made in started.items()
    }


def _step(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    """Make one step, and keep it where it reduces the cost."""
    x, zero = v["x"], 0.0 * v["x"][0]
    cost, error, damping, count, active = (v[name][0] for name in STATE)
    r = tapes.rows_at(**v)
    gram, columns = gram_and_columns(tapes.columns_at(**v), v["units"], zero)
    g = [total([a * b for a, b in zip(column, r, strict=True)]) for column in columns]
    free = may_move(x, g, v)
    own = [f.then(a, 0.0) for f, a in zip(free, g, strict=True)]
    size = total([gram[i][i] for i in range(len(gram))])
    lower, pivots = factor_symmetric(
        masked_matrix(gram, free, 2.0 * damping * cost + MATRIX_ROUNDING * size)
    )
    d = [-a for a in solve_symmetric(lower, pivots, own)]
    trial = step_within_limits(tapes, x, d, v)
    there = tapes.rows_at(**{**v, "x": trial})
    better = half_square(there, zero)
    moved = [(a - b) / unit for a, b, unit in zip(trial, x, v["units"], strict=True)]
    linear = [
        a + total([column[i] * m for column, m in zip(columns, moved, strict=True)])
        for i, a in enumerate(r)
    ]
    promised = cost - half_square(linear, zero)
    helps = active & (better < cost)
    good, poor = (cost - better) > 0.75 * promised, (cost - better) < 0.25 * promised
    factor = helps.then(good.then(0.1, poor.then(4.0, 1.0)), 8.0)
    damping = active.then((damping * factor).most(LEAST_DAMPING), damping)
    error = helps.then(largest_error(tapes, there, v, zero), error)
    count = count + active
    slope = largest([abs(a) for a in own], zero)
    reached = error <= v["tolerance"][0]
    goes_on = (error > MATRIX_ROUNDING) & (error < NOT_FINITE) & (damping < MOST_DAMPING)
    steep = slope > STATIONARY * (size * (2.0 * cost)).sqrt()
    goes_on = goes_on & (count < MAX_STEPS) & ~(reached & ~helps) & (steep | reached)
    return {
        "x": [helps.then(a, b) for a, b in zip(trial, x, strict=True)],
        "cost": [helps.then(better, cost)],
        "error": [error],
        "damping": [damping],
        "count": [count],
        "active": [active & goes_on],
    }


# approaching a posture ----------------------------------------------------------------------------


def approach_program(tapes: ReachTapes) -> Program:
    """Make the program that moves `x` of each run along its rows' zeros towards `near`.

    A step is the part of the way there that changes no row, and two corrections back to the zeros.
    """
    n = tapes.size
    more = {"lower": n, "upper": n, "units": n, "near": n, "ease": tapes.wanted}
    read = tapes.sizes | more

    def start(**v: Vector) -> dict[str, Vector]:
        zero = 0.0 * v["x"][0]
        away, one = half_square(_away(v["x"], v), zero), 1.0 + zero
        return {"away": [away], "pace": [one], "count": [zero], "active": [one]}

    begin = formula_tape("approach_begin", read, start)
    step = formula_tape("approach_step", read | APPROACH_STATE, lambda **v: _approach(tapes, v))
    body = Evaluate(step, (*read, *APPROACH_STATE, "x", *APPROACH_STATE))
    operations: tuple[Operation, ...] = (
        Evaluate(begin, (*read, *APPROACH_STATE)),
        While("active", (body,), counted=True),
    )
    given = {name: size for name, size in read.items() if name != "x"}
    return Program("approach", {"x": n, **APPROACH_STATE}, given, {}, operations)


def _away(x: Vector, v: dict[str, Vector]) -> Vector:
    return [(a - b) / u for a, b, u in zip(x, v["near"], v["units"], strict=True)]


def _approach(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    x, n, zero = v["x"], tapes.size, 0.0 * v["x"][0]
    away, pace, count, active = (v[name][0] for name in APPROACH_STATE)
    gram, columns = gram_and_columns(tapes.columns_at(**v), v["units"], zero)
    damping = NEGLIGIBLE * total([gram[i][i] for i in range(n)])
    e = _away(x, v)
    everything = [1.0 + zero] * n
    for _ in range(2):  # first to see which limits the way would pass
        moves = [a.equals(1.0) for a in everything]
        lower, pivots = factor_symmetric(masked_matrix(gram, moves, damping))
        own = [f.then(a, 0.0) for f, a in zip(moves, e, strict=True)]
        d = [-damping * a for a in solve_symmetric(lower, pivots, own)]
        d = [f.then(a, 0.0) for f, a in zip(moves, d, strict=True)]
        beyond = may_move(x, [-a for a in d], v)
        everything = [a * b for a, b in zip(everything, beyond, strict=True)]
    size = largest([abs(a) for a in d], zero)
    pace_now = pace.least(MAX_APPROACH / size.most(TINY))
    trial = step_within_limits(tapes, x, [pace_now * a for a in d], v)
    for _ in range(2):
        r = tapes.rows_at(**{**v, "x": trial})
        slope = [total([a * b for a, b in zip(column, r, strict=True)]) for column in columns]
        slope = [f.then(a, 0.0) for f, a in zip(moves, slope, strict=True)]
        trial = step_within_limits(
            tapes, trial, [-a for a in solve_symmetric(lower, pivots, slope)], v
        )
    error = largest_error(tapes, tapes.rows_at(**{**v, "x": trial}), v, zero)
    nearer = half_square(_away(trial, v), zero)
    helps = active & (nearer < away) & (error < OFF_ZEROS)
    pace = helps.then((1.5 * pace).least(1.0), 0.4 * pace)
    return {
        "x": [helps.then(a, b) for a, b in zip(trial, x, strict=True)],
        "away": [helps.then(nearer, away)],
        "pace": [pace],
        "count": [count + active],
        "active": [active & (size > SEVEN_DIGITS) & (pace > 1e-3)],
    }


# polishing ---------------------------------------------------------------------------------------


def polish_program(tapes: ReachTapes) -> Program:
    """Make the program that polishes `x` of each run.

    `pull` of a run is one where its rows must vanish and it is to come as near to `near` as they
    allow; zero where only loops must close and the targets' errors are to be least.
    """
    n, m = tapes.size, tapes.rows
    base = tapes.sizes | {"near": n, "pull": 1, "units": n}
    shifted = base | {"shift": m}
    gradient = formula_tape("gradient", shifted, lambda **v: {"g": _gradient(tapes, v)})
    along = forward_tape(gradient, {"x": ("direction", 0)}, {"direction": n})
    columns = (Evaluate(along, (*shifted, "direction", "g_change")),)
    hessian = JacobianColumns(columns, "direction", "g_change", "hessian", stride(n))
    everything = shifted | {"lower": n, "upper": n} | POLISH_STATE

    def start(**v: Vector) -> dict[str, Vector]:
        made = {name: [0.0 * v["x"][0]] for name in POLISH_STATE}
        return made | {"value": [_value(tapes, v)[0]], "active": [1.0 + 0.0 * v["x"][0]]}

    begin = formula_tape("polish_begin", shifted, start)
    step_sizes = everything | {"g": n, "hessian": n * stride(n)}
    step = formula_tape("polish_step", step_sizes, lambda **v: _polish_step(tapes, v))
    made = ("x", "shift", *POLISH_STATE)
    body: tuple[Operation, ...] = (
        Evaluate(gradient, (*shifted, "g")),
        hessian,
        Evaluate(step, (*step_sizes, *made)),
    )
    given = {k: size for k, size in base.items() if k != "x"} | {"lower": n, "upper": n}
    state = {"x": n, "shift": m, **POLISH_STATE}
    operations: tuple[Operation, ...] = (
        Evaluate(begin, (*shifted, *POLISH_STATE)),
        While("active", body, counted=True),
    )
    return Program("polish", state, given, {}, operations)


def _value(tapes: ReachTapes, v: dict[str, Vector]) -> tuple[Formula, Vector]:
    """What polishing reduces, and the rows."""
    zero = 0.0 * v["x"][0]
    r = tapes.rows_at(**v)
    whole = half_square([a + b for a, b in zip(r, v["shift"], strict=True)], zero)
    return whole + v["pull"][0] * POSTURE * half_square(_away(v["x"], v), zero), r


def _gradient(tapes: ReachTapes, v: dict[str, Vector]) -> Vector:
    zero = 0.0 * v["x"][0]
    shifted = [a + b for a, b in zip(tapes.rows_at(**v), v["shift"], strict=True)]
    made = []
    for j, column in enumerate(tapes.columns_at(**v)):
        unit = v["units"][j]
        terms = [a * b for a, b in zip(column, shifted, strict=True) if a is not None]
        away = (v["x"][j] - v["near"][j]) / unit
        made.append(unit * total(terms, zero) + v["pull"][0] * POSTURE * away)
    return made


def _polish_step(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    """Make one step of Newton's method, and shift the rows that must vanish."""
    x, g, n, zero = v["x"], v["g"], tapes.size, 0.0 * v["x"][0]
    value, damping, count, active = (v[k][0] for k in ("value", "damping", "count", "active"))
    free = may_move(x, g, v)
    own = [f.then(a, 0.0) for f, a in zip(free, g, strict=True)]
    H = [[v["hessian"][i * stride(n) + j] * v["units"][j] for j in range(i + 1)] for i in range(n)]
    lower, pivots = factor_symmetric(masked_matrix(H, free, damping))
    convex = pivots[0] > 0.0
    for pivot in pivots[1:]:
        convex = convex & (pivot > 0.0)
    d = [-a for a in solve_symmetric(lower, pivots, own)]
    trial = step_within_limits(tapes, x, d, v)
    better, _ = _value(tapes, {**v, "x": trial})
    moved = largest([abs(a) for a in d], zero)
    still = convex & (moved < NEGLIGIBLE)
    helps = active & convex & (better <= value + SUM_ROUNDING * value)
    least = SEVEN_DIGITS * largest([abs(H[i][i]) for i in range(n)], zero)
    longer = (10.0 * damping).most(least)
    shorter = (damping > least).then(0.1 * damping, 0.0)
    after = [helps.then(a, b) for a, b in zip(trial, x, strict=True)]
    _, r = _value(tapes, {**v, "x": after})
    wanted, loops = [v["pull"][0].then(a, 0.0) for a in r[: tapes.wanted]], r[tapes.wanted :]
    open_ = largest([abs(a) for a in [*wanted, *(a / LOOP_WEIGHT for a in loops)]], zero)
    shifts = helps & damping.equals(0.0) & (moved < SHORT_MOVE)
    stuck = ~helps & ((damping > 1e6 * least) | still)
    shift = [shifts.then(a + b, a) for a, b in zip(v["shift"], [*wanted, *loops], strict=True)]
    again, _ = _value(tapes, {**v, "x": after, "shift": shift})
    return {
        "x": after,
        "shift": shift,
        "value": [again],
        "damping": [helps.then(shorter, longer)],
        "count": [count + active],
        "active": [active & ~(still & (open_ < POLISHED)) & ~stuck],
        "slope": [active.then(largest([abs(a) for a in own], zero), v["slope"][0])],
        "open": [open_],
    }
