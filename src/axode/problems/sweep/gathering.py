"""Gather outputs during the steps, so that no state is stored: inside the steps, not at their ends.

Inside a step, a number is a polynomial through its values at the nodes of Lobatto's quadrature, for
which the method interpolates the state. Where the polynomial has an extreme that counts, or crosses
zero, the number itself is evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, While
from axode.codegen.tape.reversal import part_of_tape
from axode.codegen.tape.switching import switches_with_state
from axode.codegen.tape.tape import Tape
from axode.model.model import Model
from axode.numerics.tolerances import TWO_ROUNDINGS
from axode.problems.steps.adaptive import Gathering, Interpolant
from axode.problems.steps.number_in_step import NODES, PARTS, NumberInStep
from axode.problems.steps.rates import Dynamics
from axode.problems.sweep.accumulate import AT_ENDS, CROSSINGS, EXTREMES, Output
from axode.problems.sweep.kinks import WEIGHTS, integrate_pieces
from axode.problems.sweep.state_columns import START_ENERGY, Quantity, StateColumns

NEVER = float("nan")
MAX_TURNS = 50.0  # of the search for one crossing
KEPT = ("p", "gains")  # what functions read besides time that stays as it is during a run
STATE = ("q", "nu", "w", "t")  # buffers of a state


def gather_outputs(
    model: Model, d: Dynamics, outputs: Sequence[Output], functions: Tape | None, counter: str
) -> Gathering:
    """Operations that compute the outputs in order, into the buffer `made`.

    Args:
        model: What moves.
        d: Its steps.
        outputs: What to make.
        functions: Functions of the state to which the outputs refer by number.
        counter: Buffer that counts the steps of a run.
    """
    wanted = list(dict.fromkeys(output.what for output in outputs))
    numbers = StateColumns(model, d, wanted, functions)
    looked = [looks_inside(model, output) for output in outputs]
    inner = list(dict.fromkeys(o.what for o, look in zip(outputs, looked, strict=True) if look))
    inside = StateColumns(model, d, inner, functions, "inside")
    places = [inner.index(o.what) if o.what in inner else -1 for o in outputs]
    search = Search(
        [o.how if look else "" for o, look in zip(outputs, looked, strict=True)], places
    )
    n, m = len(inner), len(outputs)
    kinked = [
        (i, o.how, places[i])
        for i, o in enumerate(outputs)
        if looked[i] and o.how not in CROSSINGS and _has_kinks(functions, o.what)
    ]
    by_pieces = {i for i, how, _ in kinked if how == "integral"}
    at_ends = [(o.how, wanted.index(o.what), look) for o, look in zip(outputs, looked, strict=True)]

    def begin(count: Vector, starts: Vector, values: Vector, **v: Vector) -> dict[str, Vector]:
        fresh = starts[0] & count[0].equals(0.0)
        made = [fresh.then(_begin(how, values[k]), v["made"][i]) for i, (how, k, _) in cases]
        y = [starts[0].then(values[wanted.index(w)], y) for w, y in zip(inner, v["y"], strict=True)]
        return {"made": made, "y": y}

    def go_on(commit: Vector, values: Vector, made: Vector, **v: Vector) -> dict[str, Vector]:
        now = v[before[-1]] if d.switches and n else [values[wanted.index(w)] for w in inner]
        curves = [
            NumberInStep([*column, last])
            for *column, last in zip(*(v[b] for b in before[:4]), now, strict=True)
        ]
        after, look = [], 0.0 * commit[0]
        for i, (how, k, inside) in cases:
            new = _better(how, made[i], values[k])
            if inside:
                new = made[i]
                if i not in by_pieces:
                    new = _seen(how, made[i], curves[places[i]], v["h"][0])
                if how in CROSSINGS and two_sided:  # at the start of the step
                    jump = _crosses(how, v["y"][places[i]], v["y_0"][places[i]])
                    new = (jump & ~made[i].equals(made[i])).then(v["t"][0], new)
                look = look | search.wanted(i, curves[places[i]], new)
            after.append(commit[0].then(new, made[i]))
        return {
            "made": after,
            "y": [commit[0].then(b, a) for a, b in zip(v["y"], now, strict=True)],
            "look": [commit[0] & look],
            "skip": [0.0 * commit[0]] * m,
            "nodes": [value for curve in curves for value in curve.values],
        }

    cases = list(enumerate(at_ends))
    # numbers and speeds may differ on the two sides of the end of a step
    two_sided = d.restarts and (inside.needs_input or bool(d.switches))
    parts = NODES[1:].tolist() if d.switches else NODES[1:-1].tolist()
    before = ["y_0" if two_sided else "y", *(f"y_{j + 1}" for j in range(len(parts)))] if n else []

    def each_step(interpolant: Interpolant) -> list[Operation]:
        made: list[Operation] = []
        if two_sided and n:
            made += inside.operations("y_0", {name: f"{name}_o" for name in STATE}, "t_o")
        for j, part in enumerate(parts if n else [], 1):
            node = formula_tape("node", {"h": 1}, lambda h, s=part: {"part": [h[0].like(s)]})
            made.append(Evaluate(node, ("h_s", f"part_{j}")))
            made += _evaluated(d, inside, interpolant, f"{j}")
        made += numbers.operations("values", begin="t_o")
        sizes = {"commit": 1, "t": 1, "h": 1, "values": len(wanted), "made": m, "y": n}
        sizes |= dict.fromkeys(before, n)
        names = ("commit", "t_o", "h_s", *list(sizes)[3:])
        results = ("made", "y", "look", "skip", "nodes")
        made.append(Evaluate(formula_tape("gather_step", sizes, go_on), (*names, *results)))
        if kinked:
            made += integrate_pieces(
                kinked, n, m, lambda ending: _evaluated(d, inside, interpolant, ending), _better
            )
        if search.needed:
            found = _evaluated(d, inside, interpolant, "i")
            made.append(While("look", (search.begin(n), While("waits", (*found, search.turn(n))))))
        return made

    sizes = {"count": 1, "starts": 1, "values": len(wanted), "made": m, "y": n}
    first = formula_tape("begin", sizes, begin)
    energy = numbers.energy_at_start(counter) if numbers.needs_start_energy else []
    names = (counter, "starts", "values", "made", "y")
    return Gathering(
        first=(*energy, *numbers.operations("values"), Evaluate(first, (*names, "made", "y"))),
        each_step=each_step,
        state={"made": m, "y": n} | ({START_ENERGY: 1} if numbers.needs_start_energy else {}),
    )


class Search:
    """Search for extremes and crossings inside a step, each evaluated where it is.

    Attributes:
        hows: Kinds of the outputs; empty for those that need no search.
        places: Numbers of their quantities.
    """

    def __init__(self, hows: Sequence[str], places: Sequence[int]) -> None:
        self.hows, self.places = hows, places

    @property
    def needed(self) -> bool:
        """Return whether any output has extremes or crossings."""
        return any(how in EXTREMES or how in CROSSINGS for how in self.hows)

    def wanted(self, i: int, curve: NumberInStep, made: Formula) -> Formula:
        """Return whether an output may have an extreme that counts, or crosses zero."""
        how, values = self.hows[i], curve.values
        if how in EXTREMES:
            far = [
                _better(how, values[k], values[k + 1]) + _sign(how) * curve.reach(k) for k in PARTS
            ]
            if how == "largest":
                far = [abs(values[k]).most(abs(values[k + 1])) + curve.reach(k) for k in PARTS]
            return reduce(or_, [curve.turns(k) & _beats(how, far[k], made) for k in PARTS])
        if how in CROSSINGS:
            found = [
                _crosses(how, values[k], values[k + 1])
                | (abs(values[k]).least(abs(values[k + 1])) < curve.reach(k))
                for k in PARTS
            ]
            return reduce(or_, found) & ~made.equals(made)
        return 0.0 * made

    def begin(self, n: int) -> Evaluate:
        """Find candidates by the polynomials: where to evaluate each output that waits for it."""

        def begin(
            look: Vector, nodes: Vector, made: Vector, skip: Vector, t: Vector
        ) -> dict[str, Vector]:
            zero = 0.0 * t[0]
            curves = [NumberInStep(nodes[5 * k : 5 * k + 5]) for k in range(n)]
            rows = []
            for i, how in enumerate(self.hows):
                row = [zero] * 7
                if how in EXTREMES:
                    row[:2] = self._extreme(how, curves[self.places[i]], made[i])
                elif how in CROSSINGS:
                    row = self._bracket(how, curves[self.places[i]], made[i], skip[i])
                rows.append([look[0] & row[0], *row[1:]])
            columns = dict(zip(_SEARCH, map(list, zip(*rows, strict=True)), strict=True))
            return columns | self._next(columns) | {"turns": [zero], "look": [zero]}

        m = len(self.hows)
        sizes = {"look": 1, "nodes": 5 * n, "made": m, "skip": m, "t": 1}
        names = ("look", "nodes", "made", "skip", "t_o")
        results = (*_SEARCH, "waits", "part_i", "turns", "look")
        return Evaluate(formula_tape("search", sizes, begin), (*names, *results))

    def turn(self, n: int) -> Evaluate:
        """Use the value of the first output that waits; find where to evaluate next."""

        def turn(
            y: Vector, part: Vector, made: Vector, skip: Vector, **v: Vector
        ) -> dict[str, Vector]:
            t, h, turns = v["t"][0], v["h"][0], v["turns"][0] + 1.0
            columns = {name: list(v[name]) for name in _SEARCH}
            made, skip, taken, look = list(made), list(skip), 0.0 * t, v["look"][0]
            for i, how in enumerate(self.hows):
                if how not in EXTREMES and how not in CROSSINGS:
                    continue
                mine, value = columns["wait"][i] & ~taken, y[self.places[i]]
                taken = taken | columns["wait"][i]
                if how in EXTREMES:
                    made[i] = mine.then(_better(how, made[i], value), made[i])
                    columns["wait"][i] = columns["wait"][i] & ~mine
                    continue
                row = [columns[name][i] for name in _SEARCH]
                changed, missed, found = self._narrowed(how, row, value, t, h, turns)
                for name, old, new in zip(_SEARCH, row, changed, strict=True):
                    columns[name][i] = mine.then(new, old)
                ended = mine & ~columns["wait"][i]
                made[i] = (ended & ~missed).then(t + found * h, made[i])
                skip[i] = (ended & missed).then(row[6], skip[i])
                look = look | (ended & missed)
                turns = ended.then(0.0, turns)
            made_again = {"made": made, "skip": skip, "turns": [turns], "look": [look]}
            return columns | self._next(columns) | made_again

        m = len(self.hows)
        sizes = {"y": n, "part": 1, "made": m, "skip": m, "t": 1, "h": 1, "turns": 1, "look": 1}
        sizes |= dict.fromkeys(_SEARCH, m)
        names = ("y_i", "part_i", "made", "skip", "t_o", "h_s", "turns", "look", *_SEARCH)
        results = (*_SEARCH, "waits", "part_i", "made", "skip", "turns", "look")
        return Evaluate(formula_tape("search_turn", sizes, turn), (*names, *results))

    @staticmethod
    def _next(columns: dict[str, Vector]) -> dict[str, Vector]:
        """Find whether any output waits, and the place for the first that does."""
        part = 0.0 * columns["place"][0]
        for wait, place in reversed(list(zip(columns["wait"], columns["place"], strict=True))):
            part = wait.then(place, part)
        return {"waits": [reduce(or_, columns["wait"])], "part": [part]}

    @staticmethod
    def _extreme(how: str, curve: NumberInStep, made: Formula) -> list[Formula]:
        """Find the best extreme, and whether it is better than what is known."""
        best, place = made, 0.0 * made
        for k in PARTS:
            s = curve.extreme(k)
            value = curve.at(s)
            value = abs(value) if how == "largest" else value
            better = curve.turns(k) & _beats(how, value, best)
            best, place = better.then(value, best), better.then(s, place)
        beyond = abs(best - made) > TWO_ROUNDINGS * abs(made)
        return [_beats(how, best, made) & beyond, place]

    @staticmethod
    def _bracket(how: str, curve: NumberInStep, made: Formula, skip: Formula) -> list[Formula]:
        """Find the first part of the step in which the number crosses zero, or turns beyond it."""
        zero, values = 0.0 * made, curve.values
        row = [zero] * 7
        for k in reversed(PARTS):
            a, b, s = values[k], values[k + 1], curve.extreme(k)
            top = curve.at(s)
            dips = curve.turns(k) & (top * a < 0.0) & (top * b < 0.0) & (skip <= float(k))
            here = dips | (_crosses(how, a, b) & (skip <= float(k)))
            low, high = zero + float(NODES[k]), zero + float(NODES[k + 1])
            flag = dips.then(k + 1.0, 0.0)
            found = [zero + 1.0, dips.then(s, curve.zero(k)), low, a, high, b, flag]
            row = [here.then(new, old) for new, old in zip(found, row, strict=True)]
        return [row[0] & ~made.equals(made), *row[1:]]

    @staticmethod
    def _narrowed(
        how: str, row: Vector, f: Formula, t: Formula, h: Formula, turns: Formula
    ) -> tuple[Vector, Formula, Formula]:
        """Narrow the bracket of a crossing by the value at its place.

        By N. Anderson and A. Bjorck, "A new high order method of regula falsi type for computing a
        root of an equation", BIT 13, 1973. Where the place is an extreme, the crossing is before
        it, after it, or there is none.

        Returns:
            What the search knows of the crossing, whether there is none, and its place.
        """
        _, s, a, fa, b, fb, turned = row
        before = turned & _crosses(how, fa, f)
        after = turned & ~before & _crosses(how, f, fb)
        missed = turned & ~before & ~after
        same = f * fb > 0.0
        share = 1.0 - f / fb
        share = (share > 0.0).then(share, 0.5)
        # the older end and the newer one
        old, f_old = same.then(a, b), same.then(share * fa, fb)
        old, f_old = before.then(a, after.then(b, old)), before.then(fa, after.then(fb, f_old))
        next_ = s - f * (s - old) / (f - f_old)
        exact = f.equals(0.0) & ~after
        next_ = (exact | ~next_.equals(next_)).then(s, next_)
        close = abs((next_ - s) * h) <= TWO_ROUNDINGS * abs(t).most(1.0)
        done = missed | (exact & ~turned) | (close & ~turned) | (turns >= MAX_TURNS)
        wait = done.then(0.0, 1.0 + 0.0 * s)
        return [wait, next_, old, f_old, s, f, 0.0 * s], missed, next_


# what the search knows of an output: does it wait, for an evaluation where, two places and the
# values there, and, if it waits for an extreme that may be beyond zero, the part after that
_SEARCH = ("wait", "place", "low", "f_low", "high", "f_high", "turned")


def _has_kinks(functions: Tape | None, what: Quantity) -> bool:
    """Return whether a function of the state may have kinks or jumps inside steps."""
    return (
        functions is not None
        and isinstance(what, int)
        and switches_with_state(part_of_tape(functions, [what]), KEPT)
    )


def looks_inside(model: Model, output: Output) -> bool:
    """Return whether an output needs values inside steps."""
    if output.how == "last":
        return False
    what = output.what
    is_error = isinstance(what, str) and model.signals.resolve(what).function in AT_ENDS
    return not (is_error and output.how in EXTREMES)


def _evaluated(
    d: Dynamics, inside: StateColumns, interpolant: Interpolant, ending: str
) -> list[Operation]:
    """Evaluate quantities at a part of the step; its buffers, and y of theirs, have an ending.

    What only the outputs read of the state is computed as far as they need it.
    """

    def split(x: Vector, t: Vector, h: Vector, part: Vector) -> dict[str, Vector]:
        return {**d.split(x), "t": [t[0] + part[0] * h[0]]}

    tape = formula_tape("inside", {"x": d.n_k, "t": 1, "h": 1, "part": 1}, split)
    there = {name: f"inside.{name}_{ending}" for name in STATE}
    x, part = f"inside.x_{ending}", f"part_{ending}"
    return [
        *interpolant(part, x),
        Evaluate(tape, (x, "t_o", "h_s", part, *there.values())),
        *inside.operations(f"y_{ending}", there, "t_o"),
    ]


def _begin(how: str, value: Formula) -> Formula:
    if how in CROSSINGS:
        return 0.0 * value + NEVER
    return abs(value) if how == "largest" else 0.0 * value if how == "integral" else value


def _better(how: str, known: Formula, value: Formula) -> Formula:
    """What is known after another value."""
    match how:
        case "min":
            return known.least(value)
        case "max":
            return known.most(value)
        case "largest":
            return known.most(abs(value))
        case "last":
            return value
    return known


def _seen(how: str, known: Formula, curve: NumberInStep, h: Formula) -> Formula:
    """What is known after the values at the nodes of a step."""
    if how == "integral":
        terms = [w * y for w, y in zip(WEIGHTS, curve.values, strict=True)]
        return known + h * reduce(Formula.__add__, terms)
    return reduce(lambda a, b: _better(how, a, b), curve.values, known)


def _sign(how: str) -> float:
    return -1.0 if how == "min" else 1.0


def _beats(how: str, value: Formula, known: Formula) -> Formula:
    return value < known if how == "min" else value > known


def _crosses(how: str, a: Formula, b: Formula) -> Formula:
    """Return whether a value crosses zero; one that starts on it does not."""
    up, down = (a < 0.0) & (b >= 0.0), (a > 0.0) & (b <= 0.0)
    return up | down if how == "crossing" else up if how == "rising" else down
