"""Programs that walk along logged steps: backwards for gradients, forwards for sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.codegen.tape.reversal import forward, needed_evaluations, reverse
from axode.numerics.tolerances import SEVEN_DIGITS
from axode.problems.gradients.steps_of_cost import StepOfCost, add_up

LENGTH = "h"  # differentiated by the length of the step, where a run ends at an event
STATE = ("q", "nu")
SAMPLES = ("samples_begin", "samples_apart", "samples_end", "last_row")


def reverse_program(step: StepOfCost, of: Mapping[str, Sequence[int]]) -> Program:
    """Make a program that takes gradients from after logged steps to before them.

    The state of a run holds `a_q` and `a_nu`, the gradient by its state; `g_<buffer>`, that by what
    all steps share, summed up; `cost`, summed up; `index`, the row of the log that comes next,
    downwards, the same for runs in lockstep: rows beyond a run's `count` are passed over.
    Gradients by samples of the input are added to rows of the table `out`.

    Args:
        step: The step.
        of: Buffers that the steps read, and the elements of each by which to differentiate;
            `u` for all samples of the input, `h` for the length of the last step that is done.
    """
    d, sampled = step.d, step.sampled
    by_samples = bool(sampled) and "u" in of
    samples = list(sampled.items()) if by_samples else []
    sizes = {"q": d.n_q, "nu": d.n_nu}
    wanted: dict[str, Sequence[int]] = {name: range(size) for name, size in sizes.items()}
    wanted |= {name: places for name, places in of.items() if name != "u" or not by_samples}
    if by_samples:
        wanted |= {name: range(d.n_u) for name, _ in samples}
    weights: dict[str, tuple[str | float, ...]] = {"q_n": ("a_q",), "nu_n": ("a_nu",)}
    weights["dc"] = (1.0,)
    backwards, found = reverse(step.evaluations, weights, wanted, step.known_adjoints)
    read = {b for e in backwards for b in e.buffers[: len(e.tape.inputs)]}
    forwards = step.needed(read | {"dc"})
    shared = {name: len(places) for name, places in of.items() if not (by_samples and name == "u")}
    body: list[Operation] = [
        *_fetch(step),
        *forwards,
        *backwards,
        *(o for name, row in samples for o in _add_to_samples(d.n_u, row, found[name])),
        _accumulate(sizes, shared, found),
        _step_back(),
    ]
    state = {f"a_{name}": size for name, size in sizes.items()}
    state |= {f"g_{name}": size for name, size in shared.items()}
    return _walk("gradient", step, body, state, {"out": d.n_u} if by_samples else {})


def value_program(step: StepOfCost) -> Program:
    """Make a program that sums up the cost of logged steps."""
    body = [*_fetch(step), *step.needed({"dc"}), _accumulate({}, {}, {}), _step_back()]
    return _walk("cost", step, body, {}, {})


def tangent_program(step: StepOfCost, of: Sequence[str]) -> Program:
    """Make a program that takes changes of the state from before logged steps to after them.

    The state of a run holds `q~` and `nu~`, and the given buffers `<buffer>~` hold changes of what
    all steps share. After steps that end at samples, both go to rows of the table `out`. Samples
    begin at `samples_begin`, `samples_apart` from each other, and the last of them, row `last_row`,
    is at `samples_end`.

    Args:
        step: The step.
        of: Buffers that the steps read and that change.
    """
    d, n = step.d, step.d.n_q + step.d.n_nu
    names = (*STATE, *of)
    along, known = forward(step.evaluations, {name: f"{name}~" for name in names})
    ends = (known.get("q_n", ""), known.get("nu_n", ""))
    sizes = {"active": 1, "q": d.n_q, "nu": d.n_nu, "q_n": d.n_q, "nu_n": d.n_nu}

    def keep(active: Vector, q: Vector, nu: Vector, q_n: Vector, nu_n: Vector) -> dict[str, Vector]:
        new = [active[0].then(b, a) for a, b in zip([*q, *nu], [*q_n, *nu_n], strict=True)]
        return {"q": new[: d.n_q], "nu": new[d.n_q :], "x": new}

    kept = Evaluate(
        formula_tape("keep", sizes, keep), ("active", "q~", "nu~", *ends, "q~", "nu~", "x")
    )
    read = {b for e in along for b in e.buffers[: len(e.tape.inputs)]}
    body: list[Operation] = [
        *_fetch(step),
        *step.needed(read),
        *needed_evaluations(along, set(ends)),
        kept,
        Evaluate(
            formula_tape("sample", dict.fromkeys(("t", "h", *SAMPLES, "active"), 1), _sample),
            ("t", "h", *SAMPLES, "active", "sample", "saved"),
        ),
        WriteRow("out", "sample", "x", "saved"),
        _advance(),
    ]
    made = _walk("sensitivities", step, body, {"q~": d.n_q, "nu~": d.n_nu}, {"out": n})
    given = {f"{name}~": _size(step, name) for name in of} | dict.fromkeys(SAMPLES, 1)
    return replace(made, given=made.given | given)


def _sample(
    t: Vector,
    h: Vector,
    samples_begin: Vector,
    samples_apart: Vector,
    samples_end: Vector,
    last_row: Vector,
    active: Vector,
) -> dict[str, Vector]:
    """The sample at which a step ends, and whether there is one."""
    end, apart = t[0] + h[0], samples_apart[0]
    place = (end - samples_begin[0]) / apart
    row = (place + 0.5).floor()
    last = abs((end - samples_end[0]) / apart) < SEVEN_DIGITS
    among = (abs(place - row) < SEVEN_DIGITS) & (row < last_row[0])
    return {"sample": [last.then(last_row[0], row)], "saved": [active[0] & (last | among)]}


def _size(step: StepOfCost, name: str) -> int:
    return step.d.givens()[name] if name != LENGTH else 1


def _walk(
    name: str,
    step: StepOfCost,
    body: Sequence[Operation],
    state: dict[str, int],
    written: dict[str, int],
) -> Program:
    """Repeat a body while the index is inside the rows of a run, or will be.

    Backwards only: forwards a run that has ended is never inside again.
    """
    d, backwards = step.d, "q~" not in state

    def find(index: Vector, count: Vector) -> dict[str, Vector]:
        inside = (index[0] >= 0.0) & (index[0] < count[0])
        return {"active": [inside], "going": [index[0] >= 0.0] if backwards else [inside]}

    check = Evaluate(
        formula_tape("inside", {"index": 1, "count": 1}, find),
        ("index", "count", "active", "going"),
    )
    read = {port for o in body if isinstance(o, Evaluate) for port in o.buffers}
    given = {name: size for name, size in d.givens().items() if name in read}
    if step.cost.match is not None:
        given |= {"grid_start": 1, "grid_period": 1, "grid_count": 1}
    tables = {"log": d.log_width} | written
    if d.samples is not None:
        tables["samples"] = d.n_u
    if step.cost.match is not None:
        tables["match"] = step.cost.measured
    return Program(
        name,
        state=state | {"cost": 1, "index": 1},
        given=given | {"count": 1},
        tables=tables,
        interleaved=d.interleaved_tables,
        operations=(check, While("going", (*body, check))),
    )


def _fetch(step: StepOfCost) -> list[Operation]:
    """Read a step from the log, and what tables hold for it."""
    ends = list(accumulate(step.logged.values()))

    def split(row: Vector) -> dict[str, Vector]:
        return {
            name: row[end - size : end]
            for (name, size), end in zip(step.logged.items(), ends, strict=True)
        }

    return [
        ReadRow("log", "index", "row"),
        Evaluate(formula_tape("split", {"row": ends[-1]}, split), ("row", *step.logged)),
        *step.reading(),
    ]


def _advance() -> Evaluate:
    tape = formula_tape(
        "advance",
        {"index": 1, "active": 1},
        lambda index, active: {"index": [index[0] + active[0]]},
    )
    return Evaluate(tape, ("index", "active", "index"))


def _step_back() -> Evaluate:
    tape = formula_tape("step_back", {"index": 1}, lambda index: {"index": [index[0] - 1.0]})
    return Evaluate(tape, ("index", "index"))


def _accumulate(
    replaced: Mapping[str, int], added: Mapping[str, int], found: Mapping[str, Sequence[str]]
) -> Evaluate:
    """Replace gradients by the state, and add to those by what all steps share and to the cost."""
    parts = {name: [f"{name}_{k}" for k in range(len(found[name]))] for name in (*replaced, *added)}
    sizes = {"active": 1, "cost": 1, "dc": 1}
    buffers = ["active", "cost", "dc"]
    for letter, group in (("a", replaced), ("g", added)):
        for name, size in group.items():
            sizes |= {f"{letter}_{name}": size} | dict.fromkeys(parts[name], size)
            buffers += [f"{letter}_{name}", *found[name]]

    def accumulate(active: Vector, cost: Vector, dc: Vector, **v: Vector) -> dict[str, Vector]:
        flag, zero = active[0], 0.0 * active[0]
        made = {"cost": [cost[0] + flag.then(dc[0], 0.0)]}
        for name, size in replaced.items():
            new = add_up([v[part] for part in parts[name]], size, zero)
            made[f"a_{name}"] = [flag.then(b, a) for a, b in zip(v[f"a_{name}"], new, strict=True)]
        for name, size in added.items():
            new = add_up([v[part] for part in parts[name]], size, zero)
            old = v[f"g_{name}"]
            if name == LENGTH:
                made[f"g_{name}"] = [flag.then(b, a) for a, b in zip(old, new, strict=True)]
            else:
                made[f"g_{name}"] = [a + flag.then(b, 0.0) for a, b in zip(old, new, strict=True)]
        return made

    tape = formula_tape("accumulate", sizes, accumulate)
    return Evaluate(tape, (*buffers, *(port.name for port in tape.outputs)))


def _add_to_samples(size: int, row: str, found: Sequence[str]) -> list[Operation]:
    """Add gradients by a sample of the input to its row of the table `out`."""
    if not found:
        return []
    names = [f"part{k}" for k in range(len(found))]
    tape = formula_tape(
        "add_to_sample",
        dict.fromkeys(("known", *names), size),
        lambda known, **v: {"sum": [a + sum(x) for a, *x in zip(known, *v.values(), strict=True)]},
    )
    known, after = f"{row}_known", f"{row}_sum"
    return [
        ReadRow("out", row, known),
        Evaluate(tape, (known, *found, after)),
        WriteRow("out", row, after, "active"),
    ]
