"""Find the next switch inside a step as the program runs, for exports that have no table of breaks.

`fixed_step.h` does the same in C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, While
from axode.codegen.tape.tape import Tape

NEVER = 1e300  # [s]
SAME, TURNED, SWITCHED = 0.0, 1.0, 2.0  # how two times differ


def find_break(places: Tape, inwards: float, *, jumps: bool) -> list[Operation]:
    """Find when something switches first after t, up to the end t + h_s of a step.

    The buffer `break` has this time and whether speeds may jump there. Times at which a place
    differs are bisected to the first one. Where only a slope does, the time at which it changes its
    sign is a candidate.

    Args:
        places: See `places_tape`.
        inwards: Part of the time by which the search goes beyond the end.
        jumps: Whether speeds may jump.
    """
    sizes = {port.name: port.size for port in places.outputs}

    def at(t: str, ending: str) -> Evaluate:
        names = [t if port.name == "t" else port.name for port in places.inputs]
        return Evaluate(places, (*names, *(f"{name}_{ending}" for name in sizes)))

    def compared(a: str, b: str, **numbers: int) -> dict[str, int]:
        both = {f"{name}_{end}": size for end in (a, b) for name, size in sizes.items()}
        return both | numbers

    def difference(v: Mapping[str, Vector], a: str, b: str) -> Formula:
        zero = v["low"][0].like(SAME)

        def differ(name: str) -> Formula:
            pairs = zip(v[f"{name}_{a}"], v[f"{name}_{b}"], strict=True)
            return reduce(Formula.__or__, [(x < y) | (y < x) for x, y in pairs], zero)

        return differ("places").then(SWITCHED, differ("slopes").then(TURNED, SAME))

    def begin(t: Vector, h_s: Vector) -> dict[str, Vector]:
        end = t[0] + h_s[0]
        off = inwards * abs(t[0]).most(abs(end))
        back = h_s[0] < 0.0
        return {
            "low": t,
            "high": [end + back.then(-off, off)],
            "found": [back.then(-NEVER, NEVER)],
            "searching": [~h_s[0].equals(0.0)],
        }

    def compare(**v: Vector) -> dict[str, Vector]:
        how = v["searching"][0].then(difference(v, "a", "b"), SAME)
        return {"how": [how], "searching": [how > SAME], "left": v["low"], "right": v["high"]}

    def halve(low: Vector, left: Vector, right: Vector, how: Vector) -> dict[str, Vector]:
        middle = left[0] + 0.5 * (right[0] - left[0])
        inside = ~(middle.equals(left[0]) | middle.equals(right[0]))
        return {"middle": [middle], "halving": [(how[0] > SAME) & inside]}

    def choose(**v: Vector) -> dict[str, Vector]:
        past, on = difference(v, "a", "m") >= v["how"][0], v["halving"][0]
        middle, left, right = v["middle"][0], v["left"][0], v["right"][0]
        return {
            "left": [(on & ~past).then(middle, left)],
            "right": [(on & past).then(middle, right)],
        }

    def conclude(**v: Vector) -> dict[str, Vector]:
        on, there = v["searching"][0], difference(v, "a", "m").equals(SWITCHED)
        return {
            "low": [(on & ~there).then(v["right"][0], v["low"][0])],
            "high": [(on & there).then(v["left"][0], v["high"][0])],
            "found": [(on & there).then(v["right"][0], v["found"][0])],
        }

    ends = dict.fromkeys(("low", "left", "right", "how"), 1)
    halves = _formula("halve_switches", halve, ends, "middle", "halving")
    inner = compared("a", "m", **ends, middle=1, halving=1)
    outer = compared("a", "m", **dict.fromkeys(("low", "high", "left", "right"), 1))
    outer |= {"found": 1, "searching": 1}
    body = (
        at("high", "b"),
        _formula(
            "compare_places",
            compare,
            compared("a", "b", low=1, high=1, searching=1),
            *("how", "searching", "left", "right"),
        ),
        halves,
        While(
            "halving",
            (at("middle", "m"), _formula("choose_half", choose, inner, "left", "right"), halves),
        ),
        at("right", "m"),
        _formula("conclude_search", conclude, outer, "low", "high", "found"),
        at("low", "a"),
    )
    return [
        _formula("begin_search", begin, {"t": 1, "h_s": 1}, *("low", "high", "found", "searching")),
        at("low", "a"),
        While("searching", body),
        _formula(
            "end_search",
            lambda found: {"break": [found[0], found[0].like(float(jumps))]},
            {"found": 1},
            "break",
        ),
    ]


def _formula(
    name: str, made: Callable[..., Mapping[str, Vector]], inputs: Mapping[str, int], *outputs: str
) -> Evaluate:
    """Evaluate a formula of buffers."""
    return Evaluate(formula_tape(name, inputs, made), (*inputs, *outputs))
