"""Dormand and Prince's pair of order 5(4), with steps as long as the tolerances allow.

J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", *J. Comput. Appl.
Math.* 6, 1980; the interpolant is L. F. Shampine's, *Math. Comput.* 46, 1986.
"""

from __future__ import annotations

from fractions import Fraction

from axode.codegen.formulas import Formula, Vector, formula_tape, select_tape
from axode.codegen.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.codegen.tape import Tape
from axode.problems.dynamics import Dynamics, to_next_sample
from axode.problems.steps import NOT_FINITE, RUNNING, UNDERFLOW, active, advanced, judged, stage

SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0  # of the step-size control
SHARE = 0.1  # of the tolerance that one step may use, so that many of them stay near it
SHORTEST = 4e-15  # of the time: a shorter step would hardly change it

# Nodes, stages, and the difference of the two solutions.
NODES = (0, Fraction(1, 5), Fraction(3, 10), Fraction(4, 5), Fraction(8, 9), 1, 1)
STAGES: tuple[tuple[Fraction | int, ...], ...] = (
    (),
    (Fraction(1, 5),),
    (Fraction(3, 40), Fraction(9, 40)),
    (Fraction(44, 45), Fraction(-56, 15), Fraction(32, 9)),
    (Fraction(19372, 6561), Fraction(-25360, 2187), Fraction(64448, 6561), Fraction(-212, 729)),
    (Fraction(9017, 3168), Fraction(-355, 33), Fraction(46732, 5247), Fraction(49, 176),
     Fraction(-5103, 18656)),
    (Fraction(35, 384), 0, Fraction(500, 1113), Fraction(125, 192), Fraction(-2187, 6784),
     Fraction(11, 84)),
)  # fmt: skip
ERROR: tuple[Fraction | int, ...] = (
    Fraction(71, 57600), 0, Fraction(-71, 16695), Fraction(71, 1920),
    Fraction(-17253, 339200), Fraction(22, 525), Fraction(-1, 40),
)  # fmt: skip
# Interpolant of order 4: weights of the stages as polynomials, powers 1 to 4.
DENSE: tuple[tuple[Fraction | int, ...], ...] = (
    (1, Fraction(-8048581381, 2820520608), Fraction(8663915743, 2820520608),
     Fraction(-12715105075, 11282082432)),
    (0, 0, 0, 0),
    (0, Fraction(131558114200, 32700410799), Fraction(-68118460800, 10900136933),
     Fraction(87487479700, 32700410799)),
    (0, Fraction(-1754552775, 470086768), Fraction(14199869525, 1410260304),
     Fraction(-10690763975, 1880347072)),
    (0, Fraction(127303824393, 49829197408), Fraction(-318862633887, 49829197408),
     Fraction(701980252875, 199316789632)),
    (0, Fraction(-282668133, 205662961), Fraction(2019193451, 616988883),
     Fraction(-1453857185, 822651844)),
    (0, Fraction(40617522, 29380423), Fraction(-110615467, 29380423),
     Fraction(69997945, 29380423)),
)  # fmt: skip


def dopri5_program(d: Dynamics) -> Program:
    """Steps as long as rtol and atol allow; states at the table's `times` go to `out`."""
    clip = _clipped(d)
    first: list[Operation] = [clip, *d.rate_at("q", "nu", "t", "k1")]
    body: list[Operation] = [clip]
    if d.samples == "hold":  # the input may have jumped since the last step ended
        body += d.rate_at("q", "nu", "t", "k1")
    for number in range(2, 8):
        weights = [float(a) for a in STAGES[number - 1]]
        body += stage(d, number, weights, float(NODES[number - 1]))
    ks = [f"k{i}" for i in range(1, 8)]
    body.append(Evaluate(_finish(d), (
        "q", "nu", "w", "t", "h", "h_s", "t_end", "way", "rtol", "atol", "status", *ks, "q_s",
        "nu_s", "q_n", "nu_n", "w_n", "t_n", "h_n", "accepted", "status")))  # fmt: skip
    body += d.closed()
    if d.projection is not None and d.samples != "hold":
        body += d.rate_at("q_n", "nu_n", "t_n", "k_n")
    body += [*judged(d), _counted(), *_saved_times(d, ks)]
    last = "k7" if d.projection is None or d.samples == "hold" else "k_n"
    body.append(Evaluate(select_tape("keep", d.n_k), ("commit", last, "k1", "k1")))
    ended = formula_tape(
        "active", {"status": 1, "t": 1, "t_end": 1, "way": 1},
        lambda status, t, t_end, way:
        active(status[0], way[0] * (t_end[0] - t[0]) <= 1e-13 * abs(t_end[0]).most(1.0)),
    )  # fmt: skip
    look = Evaluate(ended, ("status", "t", "t_end", "way", "status", "active"))
    given = dict.fromkeys(("t_end", "way", "longest", "rtol", "atol", "rows"), 1)
    return Program(
        "dopri5", state=d.state() | {"h": 1, "steps": 1, "rejected": 1, "k1": d.n_k},
        tables=d.tables() | {"times": 1}, given=given | d.givens(),
        operations=(*first, *d.watched("q", "nu", "t"), look,
                    While("active", (*body, look), counted=True)),
    )  # fmt: skip


def _clipped(d: Dynamics) -> Evaluate:
    """The step with its sign: not past the end, and not past a sample of the input."""
    names = ["t", "h", "t_end", "way", "longest"]
    if d.samples is not None:
        names += ["sample_start", "sample_period", "sample_count"]

    def clip(t: Vector, h: Vector, t_end: Vector, way: Vector, longest: Vector, **more: Vector
             ) -> dict[str, Vector]:  # fmt: skip
        length = h[0].least(longest[0]).least(way[0] * (t_end[0] - t[0]))
        if more:
            start, period, count = (v[0] for v in more.values())
            length = length.least(to_next_sample(t[0], way[0], start, period, count))
        return {"h": [way[0] * length]}

    return Evaluate(formula_tape("clip", dict.fromkeys(names, 1), clip), (*names, "h_s"))


def _finish(d: Dynamics) -> Tape:
    """New state, error against the tolerance, next step, and whether this one counts."""

    def finish(q: Vector, nu: Vector, w: Vector, t: Vector, h: Vector, h_s: Vector, t_end: Vector,
               way: Vector, rtol: Vector, atol: Vector, status: Vector, **more: Vector
               ) -> dict[str, Vector]:  # fmt: skip
        ks = [more[f"k{i}"] for i in range(1, 8)]
        size = _size([*q, *nu], [*more["q_s"], *more["nu_s"]], ks, h_s[0], rtol[0], atol[0])
        zero = 0.0 * h_s[0]
        w_new = [y + h_s[0] * sum((float(c) * k[d.n_q + d.n_nu + i]
                                   for c, k in zip(STAGES[6], ks, strict=False) if c), zero)
                 for i, y in enumerate(w)]  # fmt: skip
        accepted = size <= 1.0  # not for NaN
        factor = (SAFETY * size.most(1e-10) ** -0.2).most(SHRINK).least(GROW)
        factor = (size < 1e300).then(factor, SHRINK)
        full = abs(h_s[0])
        # a step cut short by the end says nothing about how long the next may be
        h_new = accepted.then((full < h[0]).then(h[0].most(full * factor), full * factor),
                              full * factor.least(1.0))  # fmt: skip
        span = abs(t[0]).most(abs(t_end[0]))
        too_short = ~accepted & (h_new < SHORTEST * span.most(1e-3))
        lost = (size < 1e300).then(float(UNDERFLOW), float(NOT_FINITE))
        after = (full >= way[0] * (t_end[0] - t[0])).then(t_end[0], t[0] + h_s[0])
        running = status[0].equals(float(RUNNING))
        return {"q": more["q_s"], "nu": more["nu_s"], "w": w_new, "t": [after],
                "h": [h_new], "accepted": [accepted],
                "status": [(running & too_short).then(lost, status[0])]}  # fmt: skip

    one = dict.fromkeys(("t", "h", "h_s", "t_end", "way", "rtol", "atol", "status"), 1)
    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2} | one | {f"k{i}": d.n_k for i in range(1, 8)}
    return formula_tape("finish", sizes | {"q_s": d.n_q, "nu_s": d.n_nu}, finish)


def _size(
    x: Vector, x_new: Vector, ks: list[Vector], h: Formula, rtol: Formula, atol: Formula
) -> Formula:
    """Largest error of a step against what it may be; a mean would let idle numbers hide it."""
    size, total = 0.0 * h, 0.0 * h
    for j, (a, b) in enumerate(zip(x, x_new, strict=True)):
        error = h * sum((float(e) * k[j] for e, k in zip(ERROR, ks, strict=True) if e), 0.0 * h)
        share = abs(error) / (SHARE * (atol + rtol * abs(a).most(abs(b))))
        size, total = size.most(share), total + share
    return (total < 1e300).then(size, total)  # a largest number forgets NaN, a sum does not


def dense_tape(d: Dynamics) -> Tape:
    """State inside a step: part 0 to 1 of it, from the start and the seven rates."""

    def inside(q: Vector, nu: Vector, w: Vector, h: Vector, part: Vector, **ks: Vector
               ) -> dict[str, Vector]:  # fmt: skip
        s = part[0]
        weights = [s * (float(a) + s * (float(b) + s * (float(c) + s * float(e))))
                   for a, b, c, e in DENSE]  # fmt: skip
        rates = list(ks.values())
        x = [y + h[0] * sum((weight * k[j] for weight, k in zip(weights, rates, strict=True)),
                            0.0 * s) for j, y in enumerate([*q, *nu, *w])]  # fmt: skip
        return {"x": x}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "h": 1, "part": 1}
    return formula_tape("dense", sizes | {f"k{i}": d.n_k for i in range(1, 8)}, inside)


def _counted() -> Evaluate:
    """Counts of steps and rejections; the next step's length, which a stop must not change."""

    def count(**v: Vector) -> dict[str, Vector]:
        running = v["status"][0].equals(float(RUNNING))
        commit = v["commit"][0]
        return {"h": [running.then(v["h_n"][0], v["h"][0])], "steps": [v["steps"][0] + commit],
                "rejected": [v["rejected"][0] + (running & ~commit)]}  # fmt: skip

    names = ("status", "commit", "h", "h_n", "steps", "rejected")
    tape = formula_tape("count", dict.fromkeys(names, 1), count)
    return Evaluate(tape, (*names, "h", "steps", "rejected"))


def _saved_times(d: Dynamics, ks: list[str]) -> list[Operation]:
    """Every asked time inside the step that was taken, by the interpolant."""

    def due(**v: Vector) -> dict[str, Vector]:
        way = v["way"][0]
        inside = way * (v["time"][0] - v["t"][0]) <= 0.0
        left = v["index"][0] < v["rows"][0]
        part = (v["time"][0] - v["t_o"][0]) / v["h_s"][0]
        flag = v["commit"][0] & inside & left
        return {"due": [flag], "part": [flag.then(part.most(0.0).least(1.0), 0.0)]}

    names = ("commit", "way", "time", "t", "t_o", "h_s", "index", "rows")
    tape = formula_tape("due", dict.fromkeys(names, 1), due)
    look: list[Operation] = [
        ReadRow("times", "index", "time"),
        Evaluate(tape, (*names, "due", "part")),
    ]
    dense = Evaluate(dense_tape(d), ("q_o", "nu_o", "w_o", "h_s", "part", *ks, "x"))
    body = (dense, WriteRow("out", "index", "x", "due"), advanced(), *look)
    return [*look, While("due", body)]
