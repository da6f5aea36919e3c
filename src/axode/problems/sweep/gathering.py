"""Gather outputs during the steps, so that no state is stored: inside the steps, not at their ends.

Inside a step, a number is a polynomial through its values at the nodes of Lobatto's quadrature, for
which the method interpolates the state. Where the polynomial has an extreme that counts, or crosses
zero, the number itself is evaluated.

Integrate numbers that have kinks or jumps by the state, and find their extremes, inside steps.

Lobatto's quadrature needs smooth numbers. Others are integrated piece by piece: a piece is halved
where the sum of two Lobatto quadratures differs from another rule on it, and the next one is twice
as long. Pieces become as short as 1e-14 of a step at a jump, which is the error that is left there.
The other rule is one-sided: of jumps that lie symmetrically all symmetric rules agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import or_

import numpy as np

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, While
from axode.codegen.tape.reversal import part_of_tape
from axode.codegen.tape.switching import switches_with_state
from axode.codegen.tape.tape import Tape
from axode.model.model import Model
from axode.numerics.tolerances import MATRIX_ROUNDING, TWO_ROUNDINGS
from axode.problems.steps.adaptive import Gathering, Interpolant
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import NODES, PARTS, NumberInStep
from axode.problems.sweep.accumulate import AT_ENDS, CROSSINGS, EXTREMES, Output
from axode.problems.sweep.state_columns import START_ENERGY, Quantity, StateColumns

WEIGHTS = (1 / 20, 49 / 180, 16 / 45, 49 / 180, 1 / 20)  # of Lobatto's quadrature
PLACES = (*(0.5 * NODES[:-1]).tolist(), *(0.5 + 0.5 * NODES).tolist())
LAST = len(PLACES) - 1
HALVES = 0.5 * (np.pad(WEIGHTS, (0, 4)) + np.pad(WEIGHTS, (4, 0)))
SIDED = np.zeros(len(PLACES))  # exact to degree five, and apart from HALVES at any three jumps
SIDED[[0, 1, 2, 3, 5, 8]] = np.linalg.solve(
    np.vander(np.take(PLACES, [0, 1, 2, 3, 5, 8]), increasing=True).T, 1 / np.arange(1, 7)
)
SHORTEST = 2.0**-46  # piece of a step
MOST_HALVED = 3_000.0  # pieces of a step that one quantity may have halved


def integrate_pieces(
    kinked: Sequence[tuple[int, str, int]],
    n: int,
    m: int,
    evaluated: Callable[[str], list[Operation]],
    better: Callable[[str, Formula, Formula], Formula],
) -> list[Operation]:
    """Add the integrals of the last step to `made`, and take extremes at the places of pieces.

    Args:
        kinked: Numbers of outputs in `made`, how each is made, and of which quantity.
        n, m: How many quantities and outputs there are.
        evaluated: Operations that evaluate all quantities at the part `part_<ending>` of the step
            into `y_<ending>`.
        better: The better one of two extremes.
    """
    quantities = sorted({k for _, _, k in kinked})
    own = dict.fromkeys(("low", "width", "place"), 1)
    sums = dict.fromkeys(("halves", "sided", "most", "integral", "halved"), len(quantities))
    buffers = tuple(f"piece_{name}" for name in (*own, *sums))

    def begin(commit: Vector) -> dict[str, Vector]:
        zero = 0.0 * commit[0]
        made = {name: [zero] * size for name, size in (own | sums).items()}
        return made | {"width": [zero + 1.0], "on": [commit[0]], "part": [zero]}

    def go_on(on: Vector, h: Vector, y: Vector, made: Vector, **v: Vector) -> dict[str, Vector]:
        low, width, place = (v[name][0] for name in own)
        first, last = place.equals(0.0), place >= float(LAST)
        found: dict[str, Vector] = {name: [] for name in sums}
        differs = []
        for i, k in enumerate(quantities):
            halves = first.then(0.0, v["halves"][i]) + _select(place, HALVES.tolist()) * y[k]
            sided = first.then(0.0, v["sided"][i]) + _select(place, SIDED.tolist()) * y[k]
            most = v["most"][i].most(abs(y[k]))
            off = abs(h[0] * (halves - sided)) * width
            usual = _usual(((j, how) for j, how, number in kinked if number == k), most, h[0], made)
            wanted = last & (off > MATRIX_ROUNDING * usual) & (v["halved"][i] < MOST_HALVED)
            differs.append(wanted)
            halved = wanted.then(v["halved"][i] + 1.0, v["halved"][i])
            named = {"halves": halves, "sided": sided, "most": most, "halved": halved}
            for name, value in named.items():
                found[name].append(value)
        split = reduce(or_, differs) & (width > SHORTEST)
        done = last & ~split
        for i, halves in enumerate(found["halves"]):
            found["integral"].append(v["integral"][i] + done.then(width * halves, 0.0))
        after = done.then(low + width, low)
        left = 1.0 - after
        next_width = split.then(0.5 * width, done.then((2.0 * width).least(left), width))
        next_place = last.then(0.0, place + 1.0)
        going = on[0] & ~(done & (left < SHORTEST))
        new = {"low": after, "width": next_width, "place": next_place}
        for i, how, k in kinked:
            if how != "integral":
                made = [*made[:i], on[0].then(better(how, made[i], y[k]), made[i]), *made[i + 1 :]]
        kept = {name: [on[0].then(value, v[name][0])] for name, value in new.items()}
        kept |= {
            name: [on[0].then(a, b) for a, b in zip(found[name], v[name], strict=True)]
            for name in sums
        }
        part = (after + next_width * _select(next_place, PLACES)).least(1.0)
        return kept | {"on": [going], "part": [part], "made": made}

    def end(commit: Vector, h: Vector, made: Vector, integral: Vector) -> dict[str, Vector]:
        made = list(made)
        for i, how, k in kinked:
            if how == "integral":
                added = commit[0].then(h[0] * integral[quantities.index(k)], 0.0)
                made[i] = made[i] + added
        return {"made": made}

    turn = formula_tape("pieces", {"on": 1, "h": 1, "y": n, "made": m} | own | sums, go_on)
    ends = {"commit": 1, "h": 1, "made": m, "integral": len(quantities)}
    started = formula_tape("begin_pieces", {"commit": 1}, begin)
    return [
        Evaluate(started, ("commit", *buffers, "piece_on", "part_r")),
        While(
            "piece_on",
            (
                *evaluated("r"),
                Evaluate(
                    turn,
                    (
                        "piece_on",
                        "h_s",
                        "y_r",
                        "made",
                        *buffers,
                        *buffers,
                        "piece_on",
                        "part_r",
                        "made",
                    ),
                ),
            ),
        ),
        Evaluate(
            formula_tape("end_pieces", ends, end),
            ("commit", "h_s", "made", "piece_integral", "made"),
        ),
    ]


def _select(place: Formula, numbers: Sequence[float]) -> Formula:
    """Select the number that belongs to a place."""
    found = 0.0 * place
    for i, number in enumerate(numbers):
        found = place.equals(float(i)).then(float(number), found) if number else found
    return found


def _usual(outputs: Iterable[tuple[int, str]], most: Formula, h: Formula, made: Vector) -> Formula:
    """Size that what is left of a quantity is compared with: what has settled is no longer split.

    Args:
        outputs: Numbers of the outputs in `made`, and how each is made.
        most: Largest value of the step.
        h: Length of the step.
        made: The outputs so far.
    """
    usual = abs(h) * most
    for j, how in outputs:
        so_far = (abs(made[j]) < 1e300).then(abs(made[j]), 0.0)
        usual = usual.most(so_far if how == "integral" else abs(h) * so_far)
    return usual


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
