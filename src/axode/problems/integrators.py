"""Integrators as programs of tapes: fixed Runge-Kutta 4 and adaptive Dormand-Prince 5(4).

A run's state is its coordinates q, speeds nu and the work done on it w (supplied, dissipated). Each
run has a status: it goes on while that is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from axode.codegen.formulas import Formula, Vector, formula_tape
from axode.codegen.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.codegen.tape import Tape

RUNNING, FINISHED, EVENT, NOT_FINITE, UNDERFLOW, SINGULAR = range(6)
SMALLEST_PIVOT = 0.02  # of a solve, relative: nearer to singular the speeds are chosen anew
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0  # of the step-size control

# Dormand & Prince, order 5(4): nodes, stages, and the difference of the two solutions.
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
# Shampine's interpolant of order 4: weights of the stages as polynomials, powers 1 to 4.
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


@dataclass(frozen=True)
class Dynamics:
    """The tapes of one model and its inputs, and the sizes of what they work on.

    Attributes:
        rate: q, nu, u (t, p) to the rates of q, nu and w.
        projection: q (t, p) to the nearest closed q, if anything can open.
        pivots: q (t, p) to numbers that vanish where a solve becomes singular, if they can.
        input: t, q, nu (p) to u; None if u is given.
        events: t, q, nu, u (p) to numbers whose zero crossings count.
        samples: Whether u is read from a table, and how: "hold" or "linear".
    """

    n_q: int
    n_nu: int
    n_u: int
    rate: Tape
    projection: Tape | None = None
    pivots: Tape | None = None
    input: Tape | None = None
    events: Tape | None = None
    samples: str | None = None
    given: dict[str, int] = field(default_factory=dict)  # p and the like

    @property
    def n_k(self) -> int:
        """Length of a rate: q, nu and the two works."""
        return self.n_q + self.n_nu + 2

    @property
    def n_events(self) -> int:
        """How many event functions there are."""
        return 0 if self.events is None else self.events.outputs[0].size

    def evaluate(self, tape: Tape, names: dict[str, str], output: str) -> Evaluate:
        """A tape on the buffers that stand for its arguments now."""
        inputs = tuple(names.get(port.name, port.name) for port in tape.inputs)
        return Evaluate(tape, (*inputs, output))

    def rate_at(self, q: str, nu: str, t: str, k: str) -> list[Operation]:
        """Operations that find the input and the rate at a state."""
        names = {"q": q, "nu": nu, "t": t}
        operations: list[Operation] = []
        if self.samples is not None:
            operations += self._sampled(t)
        elif self.input is not None:
            operations.append(self.evaluate(self.input, names, "u"))
        return [*operations, self.evaluate(self.rate, names, k)]

    def _sampled(self, t: str) -> list[Operation]:
        """Row of the table of inputs that belongs to a time, held or interpolated."""
        place = formula_tape(
            "place", {"t": 1, "start": 1, "period": 1},
            lambda t, start, period: _place(t[0], start[0], period[0]),
        )  # fmt: skip
        buffers = (t, "sample_start", "sample_period", "row", "next_row", "part")
        operations: list[Operation] = [Evaluate(place, buffers)]
        if self.samples == "hold":
            return [*operations, ReadRow("samples", "row", "u")]
        blend = formula_tape(
            "blend", {"part": 1, "a": self.n_u, "b": self.n_u},
            lambda part, a, b: {"u": [x + part[0] * (y - x) for x, y in zip(a, b, strict=True)]},
        )  # fmt: skip
        return [*operations, ReadRow("samples", "row", "u_before"),
                ReadRow("samples", "next_row", "u_after"),
                Evaluate(blend, ("part", "u_before", "u_after", "u"))]  # fmt: skip

    def split(self, x: Sequence[Formula]) -> dict[str, Sequence[Formula]]:
        """A rate or state vector in its three parts."""
        return {"q": x[: self.n_q], "nu": x[self.n_q : self.n_q + self.n_nu],
                "w": x[self.n_q + self.n_nu :]}  # fmt: skip


def _place(t: Formula, start: Formula, period: Formula) -> dict[str, Vector]:
    # a sample holds from its own instant on, rounding of that instant forgiven
    count = (t - start) / period
    row = (count + 1e-9).floor().most(0.0)
    return {"row": [row], "next": [row + 1.0], "part": [(count - row).most(0.0).least(1.0)]}


def _moved(
    d: Dynamics, name: str, stages: int, weights: Sequence[float], node: float
) -> tuple[Tape, tuple[str, ...]]:
    """The tape x + h (weights . k), t + node h, and the buffers it reads."""
    used = [i for i in range(stages) if weights[i] != 0]

    def moved(q: Vector, nu: Vector, t: Vector, h: Vector, **ks: Vector) -> dict[str, Vector]:
        step = [sum((weights[i] * ks[f"k{i}"][j] for i in used), 0.0 * h[0])
                for j in range(d.n_q + d.n_nu)]  # fmt: skip
        x = [a + h[0] * s for a, s in zip([*q, *nu], step, strict=True)]
        return {"q": x[: d.n_q], "nu": x[d.n_q :], "t": [t[0] + node * h[0]]}

    inputs = {"q": d.n_q, "nu": d.n_nu, "t": 1, "h": 1} | {f"k{i}": d.n_k for i in used}
    return formula_tape(name, inputs, moved), tuple(f"k{i + 1}" for i in used)


def _stage(
    d: Dynamics, number: int, weights: Sequence[float], node: float, h: str
) -> list[Operation]:
    """Operations that find rate k(number) of a step."""
    tape, rates = _moved(d, f"stage{number}", len(weights), weights, node)
    move = Evaluate(tape, ("q", "nu", "t", h, *rates, "q_s", "nu_s", "t_s"))
    return [move, *d.rate_at("q_s", "nu_s", "t_s", f"k{number}")]


def rk4_program(d: Dynamics) -> Program:
    """Fixed steps h, from step to n_steps; every save_steps-th state goes to the table `out`."""
    weights = {2: [0.5], 3: [0.0, 0.5], 4: [0.0, 0.0, 1.0]}
    body: list[Operation] = d.rate_at("q", "nu", "t", "k1")
    for number, node in ((2, 0.5), (3, 0.5), (4, 1.0)):
        body += _stage(d, number, weights[number], node, "h")

    def finish(q: Vector, nu: Vector, w: Vector, h: Vector, t0: Vector, step: Vector,
               a: Vector, b: Vector, c: Vector, e: Vector) -> dict[str, Vector]:  # fmt: skip
        x = [y + h[0] / 6.0 * (a[i] + 2.0 * (b[i] + c[i]) + e[i])
             for i, y in enumerate([*q, *nu, *w])]  # fmt: skip
        parts = d.split(x)
        # time by multiplication: a sum of a million steps would drift
        after = t0[0] + (step[0] + 1.0) * h[0]
        return {**{n: list(v) for n, v in parts.items()}, "t": [after], "step": [step[0] + 1.0]}

    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2, "h": 1, "t0": 1, "step": 1,
             "a": d.n_k, "b": d.n_k, "c": d.n_k, "e": d.n_k}  # fmt: skip
    body.append(Evaluate(formula_tape("finish", sizes, finish),
                         ("q", "nu", "w", "h", "t0", "step", "k1", "k2", "k3", "k4",
                          "q_n", "nu_n", "w_n", "t_n", "step_n")))  # fmt: skip
    body += _closing(d)
    body.append(Evaluate(_always(), ("status", "accepted")))
    body += _judged(d, ("step", "step_n"))
    body += _saved_steps(d)
    active = formula_tape("active", {"status": 1, "step": 1, "n": 1},
                          lambda status, step, n: _active(status[0], step[0] >= n[0]))  # fmt: skip
    look = Evaluate(active, ("status", "step", "n_steps", "status", "active"))
    return Program(
        "rk4", state=_state(d) | {"step": 1}, tables=_tables(d),
        given={"h": 1, "t0": 1, "n_steps": 1, "save_steps": 1} | _given(d),
        operations=(*_watched(d, "q", "nu", "t", "g"), look,
                    While("active", (*body, look), counted=True)),
    )  # fmt: skip


def dopri5_program(d: Dynamics) -> Program:
    """Steps as long as rtol and atol allow; states at the table's `times` go to `out`."""
    clip = formula_tape(
        "clip", {"t": 1, "h": 1, "t_end": 1, "way": 1, "longest": 1},
        lambda t, h, t_end, way, longest:
        {"h": [way[0] * h[0].least(longest[0]).least(way[0] * (t_end[0] - t[0]))]},
    )  # fmt: skip
    body: list[Operation] = [Evaluate(clip, ("t", "h", "t_end", "way", "longest", "h_s"))]
    for number in range(2, 8):
        weights = [float(a) for a in STAGES[number - 1]]
        body += _stage(d, number, weights, float(NODES[number - 1]), "h_s")
    ks = [f"k{i}" for i in range(1, 8)]
    body.append(Evaluate(_dopri_finish(d), (
        "q", "nu", "w", "t", "h", "h_s", "t_end", "way", "rtol", "atol", "status", *ks, "q_s",
        "nu_s", "q_n", "nu_n", "w_n", "t_n", "h_n", "accepted", "status")))  # fmt: skip
    body += _closing(d)
    if d.projection is not None:
        body += d.rate_at("q_n", "nu_n", "t_n", "k_n")
    body += _judged(d, ("h", "h_n"), rejected=True)
    body += _saved_times(d, ks)
    last = "k7" if d.projection is None else "k_n"
    keep = formula_tape("keep", {"flag": 1, "yes": d.n_k, "no": d.n_k},
                        lambda flag, yes, no: {"k": [flag[0].then(a, b) for a, b in
                                                     zip(yes, no, strict=True)]})  # fmt: skip
    body.append(Evaluate(keep, ("commit", last, "k1", "k1")))
    active = formula_tape(
        "active", {"status": 1, "t": 1, "t_end": 1, "way": 1},
        lambda status, t, t_end, way:
        _active(status[0], way[0] * (t_end[0] - t[0]) <= 1e-13 * abs(t_end[0]).most(1.0)),
    )  # fmt: skip
    look = Evaluate(active, ("status", "t", "t_end", "way", "status", "active"))
    return Program(
        "dopri5", state=_state(d) | {"h": 1, "steps": 1, "rejected": 1},
        tables=_tables(d) | {"times": 1},
        given=dict.fromkeys(("t_end", "way", "longest", "rtol", "atol", "rows"), 1) | _given(d),
        operations=(*d.rate_at("q", "nu", "t", "k1"), *_watched(d, "q", "nu", "t", "g"), look,
                    While("active", (*body, look), counted=True)),
    )  # fmt: skip


def _dopri_finish(d: Dynamics) -> Tape:
    """New state, error against the tolerance, next step, and whether this one counts."""

    def finish(q: Vector, nu: Vector, w: Vector, t: Vector, h: Vector, h_s: Vector, t_end: Vector,
               way: Vector, rtol: Vector, atol: Vector, status: Vector, **more: Vector
               ) -> dict[str, Vector]:  # fmt: skip
        ks = [more[f"k{i}"] for i in range(1, 8)]
        x, x_new = [*q, *nu], [*more["q_s"], *more["nu_s"]]
        zero = 0.0 * h_s[0]
        squares = []
        for j, (a, b) in enumerate(zip(x, x_new, strict=True)):
            error = h_s[0] * sum(
                (float(e) * k[j] for e, k in zip(ERROR, ks, strict=True) if e), zero
            )
            scale = atol[0] + rtol[0] * abs(a).most(abs(b))
            squares.append((error / scale) * (error / scale))
        size = (sum(squares, zero) / float(len(squares))).sqrt()
        weights = STAGES[6]
        w_new = [y + h_s[0] * sum((float(c) * k[d.n_q + d.n_nu + i]
                                   for c, k in zip(weights, ks, strict=False) if c), zero)
                 for i, y in enumerate(w)]  # fmt: skip
        accepted = size <= 1.0  # not for NaN
        factor = (SAFETY * size.most(1e-10) ** -0.2).most(SHRINK).least(GROW)
        factor = (size < 1e300).then(factor, SHRINK)
        full = abs(h_s[0])
        # a step cut short by the end says nothing about how long the next may be
        h_new = accepted.then((full < h[0]).then(h[0].most(full * factor), full * factor),
                              full * factor.least(1.0))  # fmt: skip
        span = abs(t[0]).most(abs(t_end[0]))
        too_short = ~accepted & (h_new < 1e-15 * span.most(1e-3))
        lost = (size < 1e300).then(float(UNDERFLOW), float(NOT_FINITE))
        after = (full >= way[0] * (t_end[0] - t[0])).then(t_end[0], t[0] + h_s[0])
        return {"q": list(more["q_s"]), "nu": list(more["nu_s"]), "w": w_new, "t": [after],
                "h": [h_new], "accepted": [accepted],
                "status": [too_short.then(lost, status[0])]}  # fmt: skip

    one = dict.fromkeys(("t", "h", "h_s", "t_end", "way", "rtol", "atol", "status"), 1)
    sizes = {"q": d.n_q, "nu": d.n_nu, "w": 2} | one | {f"k{i}": d.n_k for i in range(1, 8)}
    return formula_tape("finish", sizes | {"q_s": d.n_q, "nu_s": d.n_nu}, finish)


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


def _active(status: Formula, done: Formula) -> dict[str, Vector]:
    running = status.equals(float(RUNNING))
    after = (running & done).then(float(FINISHED), status)
    return {"status": [after], "active": [after.equals(float(RUNNING))]}


def _always() -> Tape:
    return formula_tape(
        "always", {"status": 1}, lambda status: {"accepted": [0.0 * status[0] + 1.0]}
    )


def _state(d: Dynamics) -> dict[str, int]:
    return {"q": d.n_q, "nu": d.n_nu, "w": 2, "t": 1, "status": 1, "index": 1}


def _given(d: Dynamics) -> dict[str, int]:
    given = dict(d.given)
    if d.samples is not None:
        given |= {"sample_start": 1, "sample_period": 1}
    elif d.input is None:
        given["u"] = d.n_u
    return given


def _tables(d: Dynamics) -> dict[str, int]:
    tables = {"out": d.n_k}
    return tables | {"samples": d.n_u} if d.samples is not None else tables


def _closing(d: Dynamics) -> list[Operation]:
    """Bring the new coordinates back onto the holonomic rows."""
    if d.projection is None:
        return []
    return [d.evaluate(d.projection, {"q": "q_n", "t": "t_n"}, "q_n")]


def _watched(d: Dynamics, q: str, nu: str, t: str, g: str) -> list[Operation]:
    """Event functions at a state."""
    if d.events is None:
        return []
    names = {"q": q, "nu": nu, "t": t}
    operations: list[Operation] = []
    if "u" in {port.name for port in d.events.inputs}:
        operations += d.rate_at(q, nu, t, "k_unused")
    return [*operations, d.evaluate(d.events, names, g)]


def _judged(d: Dynamics, *kept: tuple[str, str], rejected: bool = False) -> list[Operation]:
    """Status of the new state, and its taking the old one's place if it counts.

    A crossing stops the run before the step, so that it can be located inside.
    """
    operations = _watched(d, "q_n", "nu_n", "t_n", "g_n")
    if d.pivots is not None:
        operations.append(d.evaluate(d.pivots, {"q": "q_n", "t": "t_n"}, "pivots"))

    def judge(**v: Vector) -> dict[str, Vector]:
        status, accepted = v["status"][0], v["accepted"][0]
        total = sum((abs(x) for x in (*v["q_n"], *v["nu_n"])), 0.0 * status)
        verdict = status
        if d.events is not None:
            crossings = [(a * b < 0.0) | (~(a.equals(0.0)) & b.equals(0.0))
                         for a, b in zip(v["g"], v["g_n"], strict=True)]  # fmt: skip
            crossed = crossings[0]
            for other in crossings[1:]:
                crossed = crossed | other
            verdict = (accepted & crossed).then(float(EVENT), verdict)
        if d.pivots is not None:
            near = abs(v["pivots"][0])
            for x in v["pivots"][1:]:
                near = near.least(abs(x))
            verdict = (accepted & (near < SMALLEST_PIVOT)).then(float(SINGULAR), verdict)
        finite = total < 1e300
        verdict = (accepted & ~finite).then(float(NOT_FINITE), verdict)
        verdict = status.equals(float(RUNNING)).then(verdict, status)
        commit = accepted & verdict.equals(float(RUNNING))
        return {"status": [verdict], "commit": [commit]}

    sizes = {"status": 1, "accepted": 1, "q_n": d.n_q, "nu_n": d.n_nu}
    if d.events is not None:
        sizes |= {"g": d.n_events, "g_n": d.n_events}
    if d.pivots is not None:
        sizes["pivots"] = d.pivots.outputs[0].size
    judged = Evaluate(formula_tape("judge", sizes, judge), (*sizes, "status", "commit"))
    return [*operations, judged, *_taken(d, kept, rejected)]


def _taken(d: Dynamics, kept: Sequence[tuple[str, str]], rejected: bool) -> list[Operation]:
    pairs = [("q", "q_n", d.n_q), ("nu", "nu_n", d.n_nu), ("w", "w_n", 2), ("t", "t_n", 1)]
    pairs += [("g", "g_n", d.n_events)] if d.events is not None else []
    always = {"h"}  # the next step's length counts after a rejection too
    pairs += [(old, new, 1) for old, new in kept if old not in always]
    keep_old = [("q", "q_o", d.n_q), ("nu", "nu_o", d.n_nu), ("w", "w_o", 2), ("t", "t_o", 1)]

    def take(flag: Vector, **v: Vector) -> dict[str, Vector]:
        taken = {f"{old}_o": list(v[old]) for old, _, _ in keep_old}
        for old, new, _ in pairs:
            taken[old] = [flag[0].then(b, a) for a, b in zip(v[old], v[new], strict=True)]
        return taken

    sizes = {"flag": 1}
    for old, new, size in pairs:
        sizes |= {old: size, new: size}
    names = ["commit", *(n for old, new, _ in pairs for n in (old, new))]
    outputs = [*(o for _, o, _ in keep_old), *(old for old, _, _ in pairs)]
    operations: list[Operation] = [Evaluate(formula_tape("take", sizes, take), (*names, *outputs))]
    if rejected:
        operations.append(_counted())
    return operations


def _counted() -> Evaluate:
    """Counts of steps and rejections; the next step's length, which an event must not change."""

    def count(**v: Vector) -> dict[str, Vector]:
        running = v["status"][0].equals(float(RUNNING))
        commit = v["commit"][0]
        return {"h": [running.then(v["h_n"][0], v["h"][0])], "steps": [v["steps"][0] + commit],
                "rejected": [v["rejected"][0] + (running & ~commit)]}  # fmt: skip

    names = ("status", "commit", "h", "h_n", "steps", "rejected")
    tape = formula_tape("count", dict.fromkeys(names, 1), count)
    return Evaluate(tape, (*names, "h", "steps", "rejected"))


def _saved_steps(d: Dynamics) -> list[Operation]:
    def due(**v: Vector) -> dict[str, Vector]:
        ratio = v["step"][0] / v["save_steps"][0]
        flag = v["commit"][0] & ratio.equals(ratio.floor())
        x = [*v["q"], *v["nu"], *v["w"]]
        return {"due": [flag], "x": x}

    sizes = {"commit": 1, "step": 1, "save_steps": 1, "q": d.n_q, "nu": d.n_nu, "w": 2}
    look = Evaluate(formula_tape("due", sizes, due), (*sizes, "due", "x"))
    return [look, WriteRow("out", "index", "x", "due"), _advance()]


def _advance() -> Evaluate:
    tape = formula_tape("advance", {"index": 1, "due": 1},
                        lambda index, due: {"index": [index[0] + due[0]]})  # fmt: skip
    return Evaluate(tape, ("index", "due", "index"))


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
    body = (dense, WriteRow("out", "index", "x", "due"), _advance(), *look)
    return [*look, While("due", body)]


Builder = Callable[[Dynamics], Program]
METHODS: dict[str, Builder] = {"rk4": rk4_program, "dopri5": dopri5_program}
