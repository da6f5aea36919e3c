"""Explicit Runge-Kutta steps from a tableau: of fixed length, or as long as tolerances allow."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache, reduce
from itertools import groupby
from operator import add

from axode.codegen.tape.formulas import Formula, Vector, formula_tape, select_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, While, WriteRow
from axode.codegen.tape.tape import Tape
from axode.numerics.tolerances import ON_TIME
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
from axode.problems.steps.many_stages import (
    inner_stages,
    polynomial,
    weighted_finish,
    weighted_interpolant,
    weighted_stages,
)
from axode.problems.steps.rates import Dynamics, to_next_sample
from axode.problems.steps.step_acceptance import accept_step, active, count_saved_row
from axode.problems.steps.stiffness import count_stiff_steps
from axode.problems.steps.tableaus import ButcherTableau

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
