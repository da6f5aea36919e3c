r"""Polishing postures that inverse kinematics found: nearest ones, and least errors.

`approach_program` goes along the postures that reach their targets towards a wanted one.
`polish_program` continues by Newton's method with exact second derivatives,

.. math:: \min_q \tfrac12 |R + s|^2 + \tfrac{\varepsilon}{2} |q - q_0|^2, \qquad s \leftarrow s + R,

the method of multipliers: shifts s of rows that must vanish make them do so. Loops close exactly
though targets are out of reach, and of all postures that reach their targets it finds one that is
nearest to :math:`q_0`.
"""

from __future__ import annotations

from axode.codegen.tape.derivatives import forward_tape
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, JacobianColumns, Operation, Program, While, stride
from axode.kinematics.reaching.reach_program import (
    LOOP_WEIGHT,
    ReachTapes,
    gram_and_columns,
    half_square,
    largest_error,
    masked_matrix,
    may_move,
    step_within_limits,
)
from axode.problems.assemble.closure_program import (
    factor_symmetric,
    largest,
    solve_symmetric,
    total,
)

CLOSED = 1e-11  # of the rows' units: what polishing leaves of rows that must vanish
LAST_MOVE = 1e-9  # of the coordinates' units: a Newton step below is the last
REGULARIZATION = 1e-9  # of the trace of J^T J: makes it regular where J has no full rank
MAX_APPROACH = 0.5  # of the coordinates' units: longest step towards a posture
OFF_ZEROS = 1e-2  # of the rows' units: what a step may leave to the next
NEAR_ENOUGH = 1e-6  # of the coordinates' units: a shorter way is left to polishing
SHORT_MOVE = 0.1  # of the coordinates' units: after a Newton step below rows are shifted
POSTURE = 1e-4  # weight of the distance from the wanted posture against the rows


# approaching a posture ----------------------------------------------------------------------------

APPROACH_STATE = {"away": 1, "pace": 1, "count": 1, "active": 1}


def approach_program(tapes: ReachTapes) -> Program:
    """Make the program that moves `x` of each run along its rows' zeros towards `near`.

    A step is the part of the way there that changes no row, and two corrections back to the zeros.
    """
    n = tapes.size
    more = {"lower": n, "upper": n, "units": n, "near": n, "ease": tapes.wanted}
    read = tapes.sizes | more
    begin = formula_tape("approach_begin", read, lambda **v: _approach_begin(v))
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


def _approach_begin(v: dict[str, Vector]) -> dict[str, Vector]:
    zero = 0.0 * v["x"][0]
    one = 1.0 + zero
    away = half_square(_away(v["x"], v), zero)
    return {"away": [away], "pace": [one], "count": [zero], "active": [one]}


def _approach(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    x, n, zero = v["x"], tapes.size, 0.0 * v["x"][0]
    away, pace, count, active = (v[name][0] for name in APPROACH_STATE)
    gram, columns = gram_and_columns(tapes.columns_at(**v), v["units"], zero)
    damping = REGULARIZATION * total([gram[i][i] for i in range(n)])
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
    pace_now = pace.least(MAX_APPROACH / size.most(1e-300))
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
        "active": [active & (size > NEAR_ENOUGH) & (pace > 1e-3)],
    }


# polishing ---------------------------------------------------------------------------------------

POLISH_STATE = {"value": 1, "damping": 1, "count": 1, "active": 1, "slope": 1, "open": 1}


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
    hessian = JacobianColumns(
        (Evaluate(along, (*shifted, "direction", "g_change")),),
        "direction",
        "g_change",
        "hessian",
        stride(n),
    )
    everything = shifted | {"lower": n, "upper": n} | POLISH_STATE
    begin = formula_tape("polish_begin", shifted, lambda **v: _polish_begin(tapes, v))
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
    away = [(a - b) / u for a, b, u in zip(v["x"], v["near"], v["units"], strict=True)]
    return whole + v["pull"][0] * POSTURE * half_square(away, zero), r


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


def _polish_begin(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    zero = 0.0 * v["x"][0]
    value, _ = _value(tapes, v)
    return {
        "value": [value],
        "damping": [zero],
        "count": [zero],
        "active": [1.0 + zero],
        "slope": [zero],
        "open": [zero],
    }


def _must_vanish(tapes: ReachTapes, r: Vector, pull: Formula) -> tuple[Vector, Vector]:
    """Rows that must vanish, in their units, zero for others; and which they are."""
    own = [pull.then(a, 0.0) for a in r[: tapes.wanted]]
    loops = r[tapes.wanted :]
    return [*own, *(a / LOOP_WEIGHT for a in loops)], [*own, *loops]


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
    still = convex & (moved < LAST_MOVE)
    rounding = 1e-15 * value
    helps = active & convex & (better <= value + rounding)
    least = 1e-6 * largest([abs(H[i][i]) for i in range(n)], zero)
    longer = (10.0 * damping).most(least)
    shorter = (damping > least).then(0.1 * damping, 0.0)
    after = [helps.then(a, b) for a, b in zip(trial, x, strict=True)]
    _, r = _value(tapes, {**v, "x": after})
    in_units, vanishing = _must_vanish(tapes, r, v["pull"][0])
    open_ = largest([abs(a) for a in in_units], zero)
    shifts = helps & damping.equals(0.0) & (moved < SHORT_MOVE)
    stuck = ~helps & ((damping > 1e6 * least) | still)
    shift = [shifts.then(a + b, a) for a, b in zip(v["shift"], vanishing, strict=True)]
    again, _ = _value(tapes, {**v, "x": after, "shift": shift})
    return {
        "x": after,
        "shift": shift,
        "value": [again],
        "damping": [helps.then(shorter, longer)],
        "count": [count + active],
        "active": [active & ~(still & (open_ < CLOSED)) & ~stuck],
        "slope": [active.then(largest([abs(a) for a in own], zero), v["slope"][0])],
        "open": [open_],
    }
