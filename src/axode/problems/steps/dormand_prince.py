"""Dormand and Prince's pair of order 5(4), with steps as long as the tolerances allow.

J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", *J. Comput. Appl.
Math.* 6, 1980; the interpolant is L. F. Shampine's, *Math. Comput.* 46, 1986.
"""

from __future__ import annotations

from fractions import Fraction

from axode.codegen.lowering.program import Evaluate, Operation, Program
from axode.codegen.tape.formulas import Vector, formula_tape, select_tape
from axode.codegen.tape.tape import Tape
from axode.problems.steps.adaptive import (
    CONTROL,
    adaptive_program,
    clip_step,
    control,
    count_steps,
    error_size,
    save_times,
)
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.stages import judged, stage
from axode.problems.steps.stiffness import count_stiff_steps

# Nodes, stages, and the difference of the two solutions.
NODES = (0, Fraction(1, 5), Fraction(3, 10), Fraction(4, 5), Fraction(8, 9), 1, 1)
STAGES: tuple[tuple[Fraction | int, ...], ...] = (
    (),
    (Fraction(1, 5),),
    (Fraction(3, 40), Fraction(9, 40)),
    (Fraction(44, 45), Fraction(-56, 15), Fraction(32, 9)),
    (Fraction(19372, 6561), Fraction(-25360, 2187), Fraction(64448, 6561), Fraction(-212, 729)),
    (
        Fraction(9017, 3168),
        Fraction(-355, 33),
        Fraction(46732, 5247),
        Fraction(49, 176),
        Fraction(-5103, 18656),
    ),
    (
        Fraction(35, 384),
        0,
        Fraction(500, 1113),
        Fraction(125, 192),
        Fraction(-2187, 6784),
        Fraction(11, 84),
    ),
)
ERROR: tuple[Fraction | int, ...] = (
    Fraction(71, 57600),
    0,
    Fraction(-71, 16695),
    Fraction(71, 1920),
    Fraction(-17253, 339200),
    Fraction(22, 525),
    Fraction(-1, 40),
)
# Interpolant of order 4: weights of the stages as polynomials, powers 1 to 4.
DENSE: tuple[tuple[Fraction | int, ...], ...] = (
    (
        1,
        Fraction(-8048581381, 2820520608),
        Fraction(8663915743, 2820520608),
        Fraction(-12715105075, 11282082432),
    ),
    (0, 0, 0, 0),
    (
        0,
        Fraction(131558114200, 32700410799),
        Fraction(-68118460800, 10900136933),
        Fraction(87487479700, 32700410799),
    ),
    (
        0,
        Fraction(-1754552775, 470086768),
        Fraction(14199869525, 1410260304),
        Fraction(-10690763975, 1880347072),
    ),
    (
        0,
        Fraction(127303824393, 49829197408),
        Fraction(-318862633887, 49829197408),
        Fraction(701980252875, 199316789632),
    ),
    (
        0,
        Fraction(-282668133, 205662961),
        Fraction(2019193451, 616988883),
        Fraction(-1453857185, 822651844),
    ),
    (0, Fraction(40617522, 29380423), Fraction(-110615467, 29380423), Fraction(69997945, 29380423)),
)


def dopri5_program(d: Dynamics) -> Program:
    """Steps as long as rtol and atol allow; states at the table's `times` go to `out`."""
    clip = clip_step(d)
    first: list[Operation] = [clip, *d.rate_at("q", "nu", "t", "k1"), *d.watched("q", "nu", "t")]
    body: list[Operation] = [clip]
    if d.samples == "hold":  # the input may have jumped since the last step ended
        body += d.rate_at("q", "nu", "t", "k1")
    for number in range(2, 8):
        weights = [float(a) for a in STAGES[number - 1]]
        at = "6" if number == 6 and d.stiffness else "s"
        body += stage(d, number, weights, float(NODES[number - 1]), at)
    ks = [f"k{i}" for i in range(1, 8)]
    made = ("t_n", "h_n", "accepted", "status", "q_n", "nu_n", "w_n")
    body.append(Evaluate(_finish(d), ("q", "nu", "w", *CONTROL, *ks, "q_s", "nu_s", *made)))
    body += d.closed()
    if d.projection is not None and d.samples != "hold":
        body += d.rate_at("q_n", "nu_n", "t_n", "k_n")
    dense = Evaluate(dense_tape(d), ("q_o", "nu_o", "w_o", "h_s", "part", *ks, "x"))
    body += [*judged(d), count_steps(), *save_times([dense], "x")]
    last = "k7" if d.projection is None or d.samples == "hold" else "k_n"
    body.append(Evaluate(select_tape("keep", d.n_k), ("commit", last, "k1", "k1")))
    if d.stiffness:
        body.append(count_stiff_steps(d))
    return adaptive_program("dopri5", d, first, body, {})


def _finish(d: Dynamics) -> Tape:
    """New state, error against the tolerance, next step, and whether this one counts."""

    def finish(q: Vector, nu: Vector, w: Vector, **v: Vector) -> dict[str, Vector]:
        ks = [v[f"k{i}"] for i in range(1, 8)]
        h, x, x_new = v["h_s"][0], [*q, *nu], [*v["q_s"], *v["nu_s"]]
        zero = 0.0 * h
        errors = [
            h * sum((float(e) * k[j] for e, k in zip(ERROR, ks, strict=True) if e), zero)
            for j in range(len(x))
        ]
        size = error_size(x, x_new, errors, v["rtol"][0], v["atol"][0])
        w_new = [
            y
            + h
            * sum(
                (float(c) * k[len(x) + i] for c, k in zip(STAGES[6], ks, strict=False) if c), zero
            )
            for i, y in enumerate(w)
        ]
        return {**control(size, v), "q": v["q_s"], "nu": v["nu_s"], "w": w_new}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2} | dict.fromkeys(CONTROL, 1)
    sizes |= {f"k{i}": d.n_k for i in range(1, 8)}
    return formula_tape("finish", sizes | {"q_s": d.n_q, "nu_s": d.n_nu}, finish)


def dense_tape(d: Dynamics) -> Tape:
    """State inside a step: part 0 to 1 of it, from the start and the seven rates."""

    def inside(
        q: Vector, nu: Vector, w: Vector, h: Vector, part: Vector, **ks: Vector
    ) -> dict[str, Vector]:
        s = part[0]
        weights = [
            s * (float(a) + s * (float(b) + s * (float(c) + s * float(e)))) for a, b, c, e in DENSE
        ]
        rates = list(ks.values())
        x = [
            y
            + h[0] * sum((weight * k[j] for weight, k in zip(weights, rates, strict=True)), 0.0 * s)
            for j, y in enumerate([*q, *nu, *w])
        ]
        return {"x": x}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "h": 1, "part": 1}
    return formula_tape("dense", sizes | {f"k{i}": d.n_k for i in range(1, 8)}, inside)
