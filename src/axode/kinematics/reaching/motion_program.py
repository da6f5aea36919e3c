"""Resolved motion as compiled code: every run follows its own targets, sample after sample.

The unknowns of a step are the independent speeds times the time to the next sample. Wheels roll
and loops stay closed, for the step is one of the robot's own motion; the steps that find it are
those of `reach_program`, from rest, so that they are about as short as can be.
"""

from __future__ import annotations

from collections.abc import Sequence

from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.kinematics.reaching.reach_program import STATE, ReachTapes, reach_program


def motion_program(tapes: ReachTapes, coordinates: Sequence[int | None]) -> Program:
    """Make the program that writes a row of `out` for each row of `path` but the first.

    A row has the coordinates, the speeds on the way there, and what is left of the targets.

    Args:
        tapes: Rows of the targets, as functions of speeds times a time.
        coordinates: For each speed, the coordinate whose rate it is.
    """
    n, inner = tapes.size, reach_program(tapes, counted=False)
    bounds = {"least": n, "most": n, "fastest": n}
    read = {"held": tapes.coordinates, "span": 1} | bounds
    begin = formula_tape("motion_begin", read, lambda **v: _begin(coordinates, v))
    there = tapes.sizes | {"span": 1, "error": 1, "index": 1, "samples": 1}
    end = formula_tape("motion_end", there, lambda **v: _end(tapes, v))
    first = formula_tape(
        "first",
        {"index": 1, "samples": 1},
        lambda index, samples: {"more": [index[0] < samples[0]]},
    )
    body: tuple[Operation, ...] = (
        ReadRow("path", "index", "wanted"),
        ReadRow("spans", "index", "span"),
        Evaluate(begin, (*read, "x", *STATE, "lower", "upper", "fresh")),
        *inner.operations,
        Evaluate(end, (*there, "held", "row", "last", "index", "more")),
        WriteRow("out", "last", "row", "fresh"),
    )
    own = ("x", "held", "wanted", "lower", "upper", "fresh")
    given = {name: size for name, size in inner.given.items() if name not in own}
    tables = {"path": tapes.wanted, "spans": 1, "out": tapes.coordinates + n + 1}
    operations: tuple[Operation, ...] = (
        Evaluate(first, ("index", "samples", "more")),
        While("more", body),
    )
    return Program(
        "motion",
        {"held": tapes.coordinates, "index": 1},
        given | bounds | {"samples": 1},
        tables,
        operations,
    )


def _begin(coordinates: Sequence[int | None], v: dict[str, Vector]) -> dict[str, Vector]:
    zero, span = 0.0 * v["span"][0], v["span"][0]
    lower, upper = [], []
    for j, place in enumerate(coordinates):
        far = v["fastest"][j] * span
        low, high = -far, far
        if place is not None:
            low = low.most(v["least"][j] - v["held"][place])
            high = high.least(v["most"][j] - v["held"][place])
        lower.append(low.least(0.0))
        upper.append(high.most(0.0))
    made = {"x": [zero] * len(lower)} | {name: [zero] for name in STATE}
    return made | {"lower": lower, "upper": upper, "fresh": [1.0 + zero]}


def _end(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    q, index = tapes.place(v), v["index"][0]
    speeds = [a / v["span"][0] for a in v["x"]]
    return {
        "held": q,
        "row": [*q, *speeds, v["error"][0]],
        "last": [index],
        "index": [index + 1.0],
        "more": [index + 1.0 < v["samples"][0]],
    }
