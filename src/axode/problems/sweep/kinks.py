"""Integrate numbers that have kinks or jumps by the state, and find their extremes, inside steps.

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
from axode.numerics.tolerances import MATRIX_ROUNDING
from axode.problems.steps.number_in_step import NODES

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
