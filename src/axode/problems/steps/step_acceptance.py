"""Accept or reject a step of any method; statuses of runs.

A run's state is its coordinates q, speeds nu and the work done on it w (supplied, dissipated). Each
run has a status: it goes on while that is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, WriteRow
from axode.numerics.tolerances import GRAZE, SMALL_PIVOT
from axode.problems.steps.rates import Dynamics

NODES = 0.5 + 0.5 * np.array([-1.0, -((3 / 7) ** 0.5), 0.0, (3 / 7) ** 0.5, 1.0])
PARTS = range(len(NODES) - 1)  # of a step, between neighbouring nodes
# from values at the nodes to the coefficients of powers, and to slopes at the nodes
_POWERS = np.linalg.inv(np.vander(NODES, increasing=True))
_SLOPES = np.vander(NODES, 4, increasing=True) @ (np.arange(1.0, 5.0)[:, np.newaxis] * _POWERS[1:])


class NumberInStep:
    """A number inside a step, as a polynomial in the part s of the step.

    Args:
        values: At the nodes.
    """

    def __init__(self, values: Sequence[Formula]) -> None:
        self.values = values
        rises = [value - values[0] for value in values[1:]]  # zero where the number stays the same

        def weighted(row: Sequence[float]) -> Formula:
            terms = [float(w) * rise for w, rise in zip(row[1:], rises, strict=True)]
            return reduce(Formula.__add__, terms)

        self.slopes = [weighted(row) for row in _SLOPES]
        self.powers = [weighted(row) for row in _POWERS[1:]]

    def at(self, s: Formula) -> Formula:
        """Value."""
        a, b, c, d = self.powers
        return self.values[0] + s * (a + s * (b + s * (c + s * d)))

    def slope(self, s: Formula) -> Formula:
        """Derivative by s."""
        a, b, c, d = self.powers
        return a + s * (2.0 * b + s * (3.0 * c + s * (4.0 * d)))

    def bend(self, s: Formula) -> Formula:
        """Second derivative."""
        _, b, c, d = self.powers
        return 2.0 * b + s * (6.0 * c + s * (12.0 * d))

    def turns(self, k: int) -> Formula:
        """Return whether there is an extreme between a node and the next."""
        return self.slopes[k] * self.slopes[k + 1] < 0.0

    def reach(self, k: int) -> Formula:
        """Return how far an extreme between two nodes may be beyond the values there."""
        a, b = abs(self.slopes[k]), abs(self.slopes[k + 1])
        width = 2.0 * float(NODES[k + 1] - NODES[k])  # twice what tangents allow
        return self.turns(k).then(width * a * b / (a + b), 0.0)

    def extreme(self, k: int) -> Formula:
        """Place of the extreme between two nodes."""
        a, b = self.slopes[k], self.slopes[k + 1]
        low, high = float(NODES[k]), float(NODES[k + 1])
        s = low + (high - low) * (a / (a - b))
        for _ in range(2):
            s = (s - self.slope(s) / self.bend(s)).most(low).least(high)
        return s

    def zero(self, k: int) -> Formula:
        """Place of the zero between two nodes with values of opposite signs."""
        a, b = self.values[k], self.values[k + 1]
        low, high = float(NODES[k]), float(NODES[k + 1])
        s = low + (high - low) * (a / (a - b))
        for _ in range(2):
            s = (s - self.at(s) / self.slope(s)).most(low).least(high)
        return s


RUNNING, FINISHED, EVENT, NOT_FINITE, UNDERFLOW, SINGULAR, LEFT, STIFF, UNASSEMBLED = range(9)
INACCURATE = 9  # at its end, with an error in the balance of energy
CHATTERING = 10  # steps are rejected again and again without progress
UNSOLVED = 11  # no impulses were found that meet the laws of contact
WITHIN = ("g_1", "g_2", "g_3")  # values of event functions at the nodes inside a step
CROSSED_INSIDE = 2.0  # value of `crossed` where only the inside of a step shows a crossing
FLIPPED = -1.0  # value of `near` where a pivot changes its sign inside a step


def active(status: Formula, done: Formula) -> dict[str, Vector]:
    """Find whether a run goes on, and its status."""
    running = status.equals(float(RUNNING))
    after = (running & done).then(float(FINISHED), status)
    return {"status": [after], "active": [after.equals(float(RUNNING))]}


def count_saved_row() -> Evaluate:
    """Count a row that was saved."""
    tape = formula_tape(
        "advance", {"index": 1, "due": 1}, lambda index, due: {"index": [index[0] + due[0]]}
    )
    return Evaluate(tape, ("index", "due", "index"))


def log_step(d: Dynamics, rates: Sequence[str]) -> list[Operation]:
    """Write an accepted step to the log, if there is one: its start, rates, time and length."""
    if not d.log:
        return []
    n, kept = d.n_q + d.n_nu, rates[: d.logged_stages]
    sizes = {"q": d.n_q, "nu": d.n_nu, "t": 1, "h": 1, "logged": 1, "commit": 1}
    jumps = d.logged_breaks

    def row(
        q: Vector, nu: Vector, t: Vector, h: Vector, logged: Vector, commit: Vector, **ks: Vector
    ) -> dict[str, Vector]:
        breaks = [x for name in jumps for x in ks.pop(name)]
        return {
            "row": [*q, *nu, *(x for k in ks.values() for x in k[:n]), *t, *h, *breaks],
            "place": logged,
            "logged": [logged[0] + commit[0]],
        }

    tape = formula_tape("log_step", sizes | dict.fromkeys(kept, d.n_k) | jumps, row)
    given = ("q_o", "nu_o", "t_o", "h_s", "logged", "commit", *kept, *jumps)
    return [
        Evaluate(tape, (*given, "log_row", "log_place", "logged")),
        WriteRow("log", "log_place", "log_row", "commit"),
    ]


def accept_step(
    d: Dynamics,
    *counts: str,
    inside: Callable[[str, str], list[Operation]],
    rates: Sequence[str] = (),
) -> list[Operation]:
    """Find the status of the new state, and replace the old one by it if the step is accepted.

    A crossing or a small pivot stops the run before the step, so that it can be located. The
    buffers `counts` are set to those of the same name with _n; accepted steps are logged, with what
    the buffers `rates` hold if the log has rates. `inside` interpolates the state inside the step.
    """
    sizes = {"status": 1, "accepted": 1, "seen": 1, "q_n": d.n_q, "nu_n": d.n_nu}
    made = ["status", "commit", "seen"]
    if d.events is not None:
        sizes |= dict.fromkeys(("g", *WITHIN, "g_n"), d.n_events)
        made.append("crossed")
    if d.pivots is not None:
        sizes |= {"pivots": d.n_pivots, "pivots_n": d.n_pivots, "least_pivot": 1}
        made.append("near")
    if d.leaning:
        made.append("flat")
    found = {name: size for name, size in d.state().items() if name in ("crossed", "near", "flat")}
    sizes |= found  # kept for a run that has stopped, whatever its lane computes after that

    def accept(**v: Vector) -> dict[str, Vector]:
        status, accepted = v["status"][0], v["accepted"][0]
        made: dict[str, Vector] = {}
        after = status
        if d.events is not None:
            columns = zip(v["g"], *(v[name] for name in WITHIN), v["g_n"], strict=True)
            made["crossed"] = [
                _crossed(values, direction)
                for values, direction in zip(columns, d.directions, strict=True)
            ]
            any_crossed = made["crossed"][0]
            for other in made["crossed"][1:]:
                any_crossed = any_crossed | other
            after = (accepted & any_crossed & ~v["seen"][0]).then(float(EVENT), after)
        if d.pivots is not None:
            least, solves = v["least_pivot"][0], d.n_pivots - 2 * d.leaning
            near = _nearest(v["pivots"][:solves], v["pivots_n"][:solves], 1.0 + 0.0 * least)
            made["near"] = [near]
            small = near < least
            if d.leaning:
                flat = _flattest(v["pivots"][solves:], v["pivots_n"][solves:], 1.0 + 0.0 * least)
                made["flat"] = [flat / SMALL_PIVOT]
                small = small | (flat / SMALL_PIVOT < least)
            after = (accepted & small & (least > 0.0)).then(float(SINGULAR), after)
        total = sum((abs(x) for x in (*v["q_n"], *v["nu_n"])), 0.0 * status)
        after = (accepted & ~(total < 1e300)).then(float(NOT_FINITE), after)
        after = status.equals(float(RUNNING)).then(after, status)
        commit = accepted & after.equals(float(RUNNING))
        seen = commit.then(0.0, v["seen"][0])
        running = status.equals(float(RUNNING))
        for name in found:
            pairs = zip(made[name], v[name], strict=True)
            made[name] = [running.then(new, old) for new, old in pairs]
        return {"status": [after], "commit": [commit], "seen": [seen], **made}

    decide = Evaluate(formula_tape("accept", sizes, accept), (*sizes, *made))
    return [
        *d.watched("q_n", "nu_n", "t_n", "_n"),
        *_watch_inside(d, inside),
        decide,
        _commit(d, counts),
        *log_step(d, rates),
    ]


def _watch_inside(d: Dynamics, inside: Callable[[str, str], list[Operation]]) -> list[Operation]:
    """Evaluate event functions at nodes inside the step."""
    if d.events is None:
        return []
    old = {"q": d.n_q, "nu": d.n_nu, "w": 2, "t": 1}
    start = formula_tape("start", old, lambda **v: v)
    made: list[Operation] = [Evaluate(start, (*old, *(f"{name}_o" for name in old)))]
    for name, node in zip(WITHIN, NODES[1:-1].tolist(), strict=True):

        def split(x: Vector, t: Vector, h: Vector, part: Vector) -> dict[str, Vector]:
            return {**d.split(x), "t": [t[0] + part[0] * h[0]]}

        part = formula_tape("node", {"h": 1}, lambda h, s=node: {"part": [h[0].like(s)]})
        tape = formula_tape("inside", {"x": d.n_k, "t": 1, "h": 1, "part": 1}, split)
        made += [
            Evaluate(part, ("h_s", "part_i")),
            *inside("part_i", "x_i"),
            Evaluate(tape, ("x_i", "t", "h_s", "part_i", "q_i", "nu_i", "w_i", "t_i")),
            d.evaluate(d.events, {"q": "q_i", "nu": "nu_i", "t": "t_i"}, name),
        ]
    return made


def _crossed(values: Sequence[Formula], direction: int) -> Formula:
    """Find whether a function crosses 0: 1 if its ends show it, `CROSSED_INSIDE` if its nodes do.

    One that starts at zero does not cross it.
    """
    curve = NumberInStep(values)
    low, high = (reduce(choose, values) for choose in (Formula.least, Formula.most))
    inside = 0.0 * low
    for k in PARTS:
        a, b = values[k], values[k + 1]
        depth = (a < 0.0).then(-1.0, 1.0) * curve.at(curve.extreme(k))
        dips = curve.turns(k) & (a * b > 0.0) & (depth < GRAZE * (high - low))
        inside = inside | _crosses(a, b, direction) | dips
    return _crosses(values[0], values[-1], direction).then(1.0, inside.then(CROSSED_INSIDE, 0.0))


def _crosses(a: Formula, b: Formula, direction: int) -> Formula:
    rising, falling = (a < 0.0) & (b >= 0.0), (a > 0.0) & (b <= 0.0)
    return rising if direction > 0 else falling if direction < 0 else rising | falling


def _nearest(before: Vector, after: Vector, near: Formula) -> Formula:
    """Find the smallest pivot after a step; negative where one changes its sign inside it."""
    for x in after:
        near = near.least(abs(x))
    for a, b in zip(before, after, strict=True):
        near = (((a > 0.0) & (b < 0.0)) | ((a < 0.0) & (b > 0.0))).then(FLIPPED, near)
    return near


def _flattest(before: Vector, after: Vector, near: Formula) -> Formula:
    """Find how near the straight line from a pair to itself after a step comes to zero.

    A wheel that falls over is upright again on its other side after a step: its axis must not be
    seen at the ends of the step only.
    """
    for k in range(0, len(before), 2):
        x, y = before[k], before[k + 1]
        dx, dy = after[k] - x, after[k + 1] - y
        part = (-(x * dx + y * dy) / (dx * dx + dy * dy).most(1e-300)).most(0.0).least(1.0)
        x, y = x + part * dx, y + part * dy
        near = near.least((x * x + y * y) ** 0.5)
    return near


def _commit(d: Dynamics, counts: Sequence[str]) -> Evaluate:
    old = {"q": d.n_q, "nu": d.n_nu, "w": 2, "t": 1}
    moved = old | dict.fromkeys((*counts, *(["segment"] if d.switches else [])), 1)
    if d.events is not None:
        moved["g"] = d.n_events
    if d.quadrature is not None:
        moved["c"] = 1
    if d.pivots is not None:
        moved["pivots"] = d.n_pivots

    def commit(flag: Vector, **v: Vector) -> dict[str, Vector]:
        made = {f"{name}_o": v[name] for name in old}
        for name in moved:
            pairs = zip(v[name], v[f"{name}_n"], strict=True)
            made[name] = [flag[0].then(b, a) for a, b in pairs]
        return made

    sizes = {"flag": 1}
    for name, size in moved.items():
        sizes |= {name: size, f"{name}_n": size}
    tape = formula_tape("commit", sizes, commit)
    return Evaluate(tape, ("commit", *list(sizes)[1:], *(f"{n}_o" for n in old), *moved))
