"""Explicit Runge-Kutta steps from a tableau: of fixed length, or as long as tolerances allow.

Detect explicit steps that are short because of stability, not accuracy.

Between the last two stages of the methods of Dormand and Prince, which share their time, lies a
direction along which the rate's slope is seen; steps that are as long as stability allows have a
slope times length of about 3.3, of order eight of about 6.1. The rule of counting is that of
E. Hairer and G. Wanner, *Solving Ordinary Differential Equations II*, section IV.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import groupby
from operator import add

from axode.codegen.tape.formulas import Formula, Vector, formula_tape, select_tape
from axode.codegen.tape.program import (
    Evaluate,
    Operation,
    Program,
    WeightedSum,
    While,
    WriteRow,
    slices,
)
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import ON_TIME, TINY
from axode.problems.steps.adaptive import (
    CONTROL,
    Gathering,
    Interpolant,
    RepeatedStep,
    adaptive_program,
    clip_step,
    control,
    count_steps,
    error_size,
)
from axode.problems.steps.rates import Dynamics, to_next_sample
from axode.problems.steps.step_acceptance import (
    RUNNING,
    STIFF,
    accept_step,
    active,
    count_saved_row,
)
from axode.problems.steps.tableaus import DOPRI5, EXPLICIT_METHODS, ButcherTableau


def weighted_stages(method: ButcherTableau, d: Dynamics) -> list[Operation]:
    """Find the rates of all stages but the first; the last one is at x_s, q_s, nu_s and t_s.

    Where stiffness is looked for, the state of the last stage but one is kept as well. Times and
    weights of all stages are found together, so that the stages share their code.
    """
    count, rows = len(method.stages), (*method.stages, *method.inner)

    def begin(q: Vector, nu: Vector, w: Vector, t: Vector, h: Vector) -> dict[str, Vector]:
        times = {_time(method, n): [t[0] + float(method.nodes[n - 1]) * h[0]] for n in _later(rows)}
        weights = [x for n in _later(rows) for x in _times(h[0], _used(method, rows[n - 1])[1])]
        return {"x": [*q, *nu, *w], "weights": weights, **times}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "t": 1, "h": 1}
    made = ("x", "weights", *(_time(method, n) for n in _later(rows)))
    operations: list[Operation] = [
        Evaluate(formula_tape("begin", sizes, begin), ("q", "nu", "w", "t", "h_s", *made))
    ]
    for number in range(2, count + 1):
        at = f"{number}" if d.stiffness and number == count - 1 else "s"
        operations += _compact_stage(method, d, number, at)
    return operations


def inner_stages(method: ButcherTableau, d: Dynamics, begun: str) -> list[Operation]:
    """Find the rates that the interpolant alone needs, of a step from the state x.

    Args:
        method: The coefficients.
        d: Tapes of the model.
        begun: Name of the time when the step began.
    """
    numbers = range(len(method.stages) + 1, len(method.rates) + 1)
    return [x for number in numbers for x in _compact_stage(method, d, number, "d", begun)]


def _compact_stage(
    method: ButcherTableau, d: Dynamics, number: int, at: str, begun: str = "t"
) -> list[Operation]:
    """Find rate k(number); the state of the stage is x, q and nu with the ending `at`."""
    rows = (*method.stages, *method.inner)
    rates, _ = _used(method, rows[number - 1])
    first = sum(1 + len(_used(method, row)[0]) for row in rows[1 : number - 1])

    def split(x: Vector) -> dict[str, Vector]:
        return {"q": x[: d.n_q], "nu": x[d.n_q : d.n_q + d.n_nu]}

    split_tape = formula_tape("split", {"x": d.n_k}, split)
    time = _time(method, number)
    return [
        WeightedSum(("weights", first), slices("x", *rates), (f"x_{at}", 0), d.n_k),
        Evaluate(split_tape, (f"x_{at}", f"q_{at}", f"nu_{at}")),
        *d.rate_at(f"q_{at}", f"nu_{at}", time, f"k{number}", begun),
    ]


def _later(rows: Sequence[Sequence[Fraction]]) -> range:
    """Numbers of all stages but the first."""
    return range(2, len(rows) + 1)


def _time(method: ButcherTableau, number: int) -> str:
    """Name of the time of a stage."""
    return "t_s" if number == len(method.stages) else f"t_{number}"


def weighted_finish(method: ButcherTableau, d: Dynamics, made: Sequence[str]) -> list[Operation]:
    """Find the new state, its error, the next step size, and whether the step is accepted."""
    n = d.n_q + d.n_nu
    estimates = {"e": method.error, "c": method.coarse}
    used = {name: _used(method, row) for name, row in estimates.items()}

    def weigh(h: Vector) -> dict[str, Vector]:
        return {name: [h[0] * w for w in weights] for name, (_, weights) in used.items()}

    def finish(x: Vector, x_n: Vector, e: Vector, c: Vector, **v: Vector) -> dict[str, Vector]:
        fine, coarse = (
            error_size(x[:n], x_n[:n], errors[:n], v["rtol"][0], v["atol"][0]) for errors in (e, c)
        )
        # E. Hairer and others, section II.10
        both = fine * fine + 0.01 * coarse * coarse
        size = (both > TINY).then(fine * fine / both.most(TINY).sqrt(), fine)
        return {**control(size, v, 1.0 / method.error_order), **d.split(x_n)}

    sizes = dict.fromkeys(("x", "x_n", "e", "c"), d.n_k) | dict.fromkeys(CONTROL, 1)
    given = ("x", "x_s", "x_e", "x_c", *CONTROL)
    sums = [
        WeightedSum((f"{name}_w", 0), slices(*rates), (f"x_{name}", 0), d.n_k)
        for name, (rates, _) in used.items()
    ]
    return [
        Evaluate(formula_tape("estimates", {"h": 1}, weigh), ("h_s", "e_w", "c_w")),
        *sums,
        Evaluate(formula_tape("finish", sizes, finish), (*given, *made)),
    ]


def weighted_interpolant(method: ButcherTableau, d: Dynamics) -> Interpolant:
    """Interpolate the state inside the step that was accepted last, which began at x."""
    rows = {rate: row for rate, row in zip(method.rates, method.dense, strict=True) if any(row)}

    def weigh(part: Vector, h: Vector) -> dict[str, Vector]:
        return {"weights": _times(h[0], [polynomial(part[0], row) for row in rows.values()])}

    tape = formula_tape("dense_weights", {"part": 1, "h": 1}, weigh)
    return lambda part, x: [
        Evaluate(tape, (part, "h_s", "dense_w")),
        WeightedSum(("dense_w", 0), slices("x", *rows), (x, 0), d.n_k),
    ]


def polynomial(s: Formula, row: Sequence[Fraction]) -> Formula:
    """Evaluate a polynomial without a constant by its coefficients."""
    value = 0.0 * s
    for coefficient in reversed(row):
        value = float(coefficient) + s * value
    return s * value


def _used(method: ButcherTableau, row: Sequence[Fraction]) -> tuple[list[str], list[float]]:
    """Names of the rates that a row weighs, and their weights."""
    pairs = [(k, float(a)) for k, a in zip(method.rates, row, strict=False) if a]
    return [k for k, _ in pairs], [a for _, a in pairs]


def _times(h: Formula, weights: Sequence[float | Formula]) -> list[Formula]:
    """Weights of a state, one, and of rates."""
    return [1.0 + 0.0 * h, *(h * w for w in weights)]


SMOOTH_SLOPE = 30.0  # times the fifth root of the tolerance: what a smooth motion stays below
CALM_STEPS = 6  # steps below the limit in a row that reset the count


def stiff_slope(tolerance: float, stepper: str) -> float:
    """Slope times step size above which a step counts as stiff.

    A motion without fast parts has steps of a slope times length that is far below one if the
    tolerance is small.

    Args:
        tolerance: Relative error that a step may make.
        stepper: Name of an explicit method; of others nothing is counted.
    """
    method = EXPLICIT_METHODS.get(stepper, DOPRI5)
    smooth = SMOOTH_SLOPE * tolerance ** (1.0 / method.error_order)
    return min(method.stability, max(1.0, smooth))


def count_stiff_steps(d: Dynamics, stages: int) -> Evaluate:
    """Count steps at the limit of stability; the run stops at `stiff_limit` of them.

    The last stage is at q_s, nu_s, the one before at q and nu with its number.
    """
    n = d.n_q + d.n_nu
    q, nu, k, k_s = f"q_{stages - 1}", f"nu_{stages - 1}", f"k{stages - 1}", f"k{stages}"

    def count(**v: Vector) -> dict[str, Vector]:
        status, commit, h = (v[name][0] for name in ("status", "commit", "h_s"))
        before, after = [*v[q], *v[nu]], [*v["q_s"], *v["nu_s"]]
        zero = 0.0 * h
        bend = sum(((b - a) * (b - a) for a, b in zip(v[k][:n], v[k_s][:n], strict=True)), zero)
        move = sum(((b - a) * (b - a) for a, b in zip(before, after, strict=True)), zero)
        slope = v["stiff_slope"][0]
        at_limit = h * h * bend > slope * slope * move
        calm = at_limit.then(0.0, v["calm"][0] + 1.0)
        stiff = v["stiff"][0] + at_limit
        stiff = (calm >= float(CALM_STEPS)).then(0.0, stiff)
        stiff, calm = (
            commit.then(new, v[name][0]) for new, name in ((stiff, "stiff"), (calm, "calm"))
        )
        asks = commit & status.equals(float(RUNNING)) & (stiff >= v["stiff_limit"][0])
        return {"stiff": [stiff], "calm": [calm], "status": [asks.then(float(STIFF), status)]}

    sizes = {q: d.n_q, nu: d.n_nu, "q_s": d.n_q, "nu_s": d.n_nu, k: d.n_k, k_s: d.n_k}
    sizes |= dict.fromkeys(
        ("h_s", "commit", "status", "stiff", "calm", "stiff_limit", "stiff_slope"), 1
    )
    return Evaluate(formula_tape("stiff", sizes, count), (*sizes, "stiff", "calm", "status"))


MANY = 8  # stages beyond which their formulas are not written out


def fixed_step_program(
    method: ButcherTableau, d: Dynamics, gathering: Gathering | None = None
) -> Program:
    """Make a program of n_steps steps of length h, the last one ending at t_end.

    Every save_steps-th state and the last one go to the table `out`; with a `gathering`, numbers
    are gathered at every step instead and no state is kept.
    """
    body = [*d.rate_at("q", "nu", "t", "k1"), *_stages(method, d), _step(method, d)]
    return equal_steps(method.name, d, body, interpolant(method, d), _rates(method), gathering)


def equal_steps(
    name: str,
    d: Dynamics,
    body: Sequence[Operation],
    inside: Interpolant,
    rates: Sequence[str],
    gathering: Gathering | None,
    after: Sequence[Operation] = (),
) -> Program:
    """Make a program of steps of one length around what they do.

    Args:
        name: Name of the method.
        d: Tapes of the model.
        body: Makes the state at the end of a step, `step_n` and whether the step is `accepted`.
        inside: Interpolates the state inside a step.
        rates: Buffers of rates that a log may keep.
        gathering: What is gathered.
        after: Operations after a step was accepted or not.
    """
    body = [*_length(d), *body]
    saved = _saved_steps(d) if gathering is None else gathering.each_step(inside)
    body += [*d.closed(), *accept_step(d, "step", inside=inside, rates=rates), *after, *saved]
    ended = formula_tape(
        "active",
        {"status": 1, "step": 1, "n": 1},
        lambda status, step, n: active(status[0], step[0] >= n[0]),
    )
    check = Evaluate(ended, ("status", "step", "n_steps", "status", "active"))
    given = dict.fromkeys(("h", "t0", "t_end", "n_steps", "save_steps"), 1)
    first = [*d.watched("q", "nu", "t"), check]
    state, tables = d.state() | {"step": 1}, d.tables()
    if gathering is not None:
        first = [*gathering.begin((), _length(d)), *first]
        state |= gathering.state
        del tables["out"], given["save_steps"], state["index"]
    return Program(
        name,
        state=state,
        tables=tables,
        given=given | d.givens(),
        interleaved=d.interleaved_tables,
        operations=(*first, While("active", (*body, check), counted=True)),
    )


def adaptive_explicit_program(
    method: ButcherTableau, d: Dynamics, gathering: Gathering | None = None
) -> Program:
    """Make a program of steps as long as rtol and atol allow; see `adaptive_program`.

    The last stage of the method must be the end of the step. Of many stages weighted sums are
    loops.
    """
    many = len(method.stages) > MANY
    ks = _rates(method)
    inside = weighted_interpolant(method, d) if many else interpolant(method, d)
    always = gathering is not None or d.events is not None  # the interpolant is used in every step
    body: list[Operation] = clip_step(d)
    if d.restarts:  # the rate may have jumped since the last step ended
        body += d.rate_at("q", "nu", "t", "k1")
    elif d.quadrature is not None:
        body += d.input_at("q", "nu", "t")
    body += d.quadrature_at("q", "nu", "t", "c1")
    made = ("t_n", "h_n", "accepted", "status", "q_n", "nu_n", "w_n")
    if many:
        body += [*weighted_stages(method, d), *weighted_finish(method, d, made), *d.closed()]
    else:
        summed = [f"c{i + 1}" for i in range(len(ks))] if d.quadrature is not None else []
        extra = ["c", *summed] if summed else []
        read = ("q", "nu", "w", *CONTROL, *ks, "q_s", "nu_s", *extra, *made)
        finish = Evaluate(_finish(method, d), (*read, "c_n") if summed else read)
        body += [*_stages(method, d), finish, *d.closed()]
    last = ks[-1]
    if d.projection is not None and not d.restarts:
        last = "k_n"
        body += d.rate_at("q_n", "nu_n", "t_n", last)
    body += inner_stages(method, d, "t") if always else []
    body += [*accept_step(d, inside=inside, rates=ks), count_steps()]
    after: list[Operation] = [Evaluate(select_tape("keep", d.n_k), ("commit", last, "k1", "k1"))]
    if d.stiffness:
        after.append(count_stiff_steps(d, len(ks)))
    before = [] if always else inner_stages(method, d, "t_o")
    return adaptive_program(method.name, d, RepeatedStep(body, inside, after, before), gathering)


def increment(h: Formula, weights: Sequence[Fraction], rates: Sequence[Formula]) -> Formula:
    """Multiply h by a weighted sum of rates, in few operations.

    Weights of zero are skipped, one that divides all others multiplies h, and neighbours of equal
    weight are added first.
    """
    multiply, divide, groups = _factored(tuple(weights))
    total = 0.0 * h
    for factor, places in groups:
        total = total + factor * reduce(add, (rates[i] for i in places))
    return multiply * h / divide * total


@cache
def _factored(weights: tuple[Fraction, ...]) -> tuple[float, float, list[tuple[float, list[int]]]]:
    """Common factor of weights as a product and a quotient, then factors and their places."""
    used = [i for i, weight in enumerate(weights) if weight]
    unit = min((abs(weights[i]) for i in used), default=Fraction(1))
    if any((weights[i] / unit).denominator != 1 for i in used):
        unit = Fraction(1)
    factors = (float(unit), 1.0) if unit.numerator != 1 else (1.0, float(unit.denominator))
    groups = [
        (float(weight / unit), list(places))
        for weight, places in groupby(used, lambda i: weights[i])
    ]
    return *factors, groups


def _rates(method: ButcherTableau) -> tuple[str, ...]:
    return method.rates[: len(method.stages)]


def _stages(method: ButcherTableau, d: Dynamics) -> list[Operation]:
    """Find the rates of all stages but the first; the last one is at q_s, nu_s and t_s.

    Where stiffness is looked for, those of the last but one are kept as well.
    """
    operations: list[Operation] = []
    count = len(method.stages)
    for number in range(2, count + 1):
        at = f"{number}" if d.stiffness and number == count - 1 else "s"
        operations += _stage(method, d, number, at)
    return operations


def _stage(method: ButcherTableau, d: Dynamics, number: int, at: str) -> list[Operation]:
    """Find rate k(number); the state and time of the stage are q, nu and t with the ending `at`."""
    row, node = method.stages[number - 1], float(method.nodes[number - 1])
    used = [i for i, weight in enumerate(row) if weight]
    rates = [f"k{i + 1}" for i in used]

    def moved(q: Vector, nu: Vector, t: Vector, h: Vector, **ks: Vector) -> dict[str, Vector]:
        x = [
            y + increment(h[0], [row[i] for i in used], [k[j] for k in ks.values()])
            for j, y in enumerate([*q, *nu])
        ]
        return {"q": x[: d.n_q], "nu": x[d.n_q :], "t": [t[0] + node * h[0]]}

    inputs = {"q": d.n_q, "nu": d.n_nu, "t": 1, "h": 1} | dict.fromkeys(rates, d.n_k)
    tape = formula_tape(f"stage{number}", inputs, moved)
    there = (f"q_{at}", f"nu_{at}", f"t_{at}")
    move = Evaluate(tape, ("q", "nu", "t", "h_s", *rates, *there))
    return [move, *d.rate_at(*there, f"k{number}"), *d.quadrature_at(*there, f"c{number}")]


def _step(method: ButcherTableau, d: Dynamics) -> Evaluate:
    """Find the state after a step of fixed length."""

    def step(
        q: Vector, nu: Vector, w: Vector, h: Vector, step: Vector, whole: Vector, **ks: Vector
    ) -> dict[str, Vector]:
        x = [
            y + increment(h[0], method.weights, [k[j] for k in ks.values()])
            for j, y in enumerate([*q, *nu, *w])
        ]
        return {**d.split(x), "step": [step[0] + whole[0]], "accepted": [0.0 * step[0] + 1.0]}

    ks = _rates(method)
    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "h": 1, "step": 1, "whole": 1}
    tape = formula_tape("step", sizes | dict.fromkeys(ks, d.n_k), step)
    made = ("q_n", "nu_n", "w_n", "step_n", "accepted")
    return Evaluate(tape, ("q", "nu", "w", "h_s", "step", "whole", *ks, *made))


def _finish(method: ButcherTableau, d: Dynamics) -> Tape:
    """Find the new state, its error, the next step size, and whether the step is accepted."""
    names, n = _rates(method), d.n_q + d.n_nu
    summands = [] if d.quadrature is None else [f"c{i + 1}" for i in range(len(names))]

    def finish(q: Vector, nu: Vector, w: Vector, **v: Vector) -> dict[str, Vector]:
        ks = [v[name] for name in names]
        h, x, x_new = v["h_s"][0], [*q, *nu], [*v["q_s"], *v["nu_s"]]
        errors = [increment(h, method.error, [k[j] for k in ks]) for j in range(len(x))]
        summed: dict[str, Vector] = {}
        if d.quadrature is not None:
            cs = [v[name][0] for name in summands]
            added, error = (increment(h, row, cs) for row in (method.weights, method.error))
            finite = abs(added) + abs(error) < 1e300  # NaN is reported with the result
            summed["c"] = [v["c"][0] + finite.then(added, 0.0)]
            x, x_new = [*x, *v["c"]], [*x_new, *summed["c"]]
            errors.append(finite.then(error, 0.0))
        size = error_size(x, x_new, errors, v["rtol"][0], v["atol"][0])
        w_new = [y + increment(h, method.weights, [k[n + i] for k in ks]) for i, y in enumerate(w)]
        power = 1.0 / method.error_order
        return {**control(size, v, power), "q": v["q_s"], "nu": v["nu_s"], "w": w_new, **summed}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2} | dict.fromkeys(CONTROL, 1)
    sizes |= dict.fromkeys(names, d.n_k) | {"q_s": d.n_q, "nu_s": d.n_nu}
    sizes |= dict.fromkeys(["c", *summands] if summands else [], 1)
    return formula_tape("finish", sizes, finish)


def interpolant(method: ButcherTableau, d: Dynamics) -> Interpolant:
    """Interpolate the state inside the step that was accepted last."""
    tape, ks = dense_tape(method, d), method.rates
    return lambda part, x: [Evaluate(tape, ("q_o", "nu_o", "w_o", "h_s", part, *ks, x))]


def dense_tape(method: ButcherTableau, d: Dynamics) -> Tape:
    """Interpolate the state at a part 0 to 1 of the step, from its start and the stages' rates."""

    def inside(
        q: Vector, nu: Vector, w: Vector, h: Vector, part: Vector, **ks: Vector
    ) -> dict[str, Vector]:
        s = part[0]
        rows = zip(method.dense, ks.values(), strict=True)
        pairs = [(polynomial(s, row), k) for row, k in rows if any(row)]
        x = [
            y + h[0] * sum((b * k[j] for b, k in pairs), 0.0 * s)
            for j, y in enumerate([*q, *nu, *w])
        ]
        return {"x": x}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "h": 1, "part": 1}
    return formula_tape("dense", sizes | dict.fromkeys(method.rates, d.n_k), inside)


def _length(d: Dynamics) -> list[Operation]:
    """Find length and end of the step, by multiplication: a sum of a million steps would drift.

    A step in which something switches ends there, and another one completes it.
    """
    names = ["t", "h", "t0", "t_end", "step", "n_steps"]
    names += ["sample_start", "sample_period", "sample_count"] if d.samples is not None else []
    sizes = dict.fromkeys(names, 1)

    def length(
        t: Vector, h: Vector, t0: Vector, t_end: Vector, step: Vector, n_steps: Vector, **v: Vector
    ) -> dict[str, Vector]:
        last = step[0] + 1.0 >= n_steps[0]
        end = last.then(t_end[0], t0[0] + (step[0] + 1.0) * h[0])
        whole = t[0].like(1.0)
        if not v:
            return {"h_s": [last.then(t_end[0] - t[0], h[0])], "t_n": [end], "whole": [whole]}
        direction = (h[0] < 0.0).then(-1.0, whole)
        if d.samples is not None:
            start, period, count = (v[f"sample_{part}"][0] for part in ("start", "period", "count"))
            left = to_next_sample(t[0], direction, start, period, count)
            whole = ~(left < direction * (end - t[0]) - ON_TIME * abs(h[0]))
            end = whole.then(end, t[0] + direction * left)
        if "break" in v:
            stop = v["break"][0]
            beyond = direction * (end - stop)
            near = (beyond >= 0.0) & (beyond <= ON_TIME * abs(h[0]))  # samples there are after it
            whole = whole & ((beyond <= 0.0) | (near & ~last))
            end = (near | (beyond > 0.0)).then(stop, end)
        return {"h_s": [end - t[0]], "t_n": [end], "whole": [whole]}

    made = ("h_s", "t_n", "whole")
    uncut = Evaluate(formula_tape("length", sizes, length), (*sizes, *made))
    if not d.switches:
        return [uncut]
    sizes |= {"break": 2}
    return [*d.next_break(uncut), Evaluate(formula_tape("length", sizes, length), (*sizes, *made))]


def _saved_steps(d: Dynamics) -> list[Operation]:
    def due(**v: Vector) -> dict[str, Vector]:
        ratio = v["step"][0] / v["save_steps"][0]
        flag = v["commit"][0] & v["whole"][0]
        flag = flag & (ratio.equals(ratio.floor()) | (v["step"][0] >= v["n_steps"][0]))
        return {"due": [flag], "x": [*v["q"], *v["nu"], *v["w"]]}

    sizes = dict.fromkeys(("commit", "whole", "step", "save_steps", "n_steps"), 1)
    sizes |= {"q": d.n_q, "nu": d.n_nu, "w": 2}
    check = Evaluate(formula_tape("due", sizes, due), (*sizes, "due", "x"))
    return [check, WriteRow("out", "index", "x", "due"), count_saved_row()]
