"""Step-size control, shared by all methods with an error estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from axode.codegen.lowering.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.problems.steps.chattering import MARKS, watch_chattering
from axode.problems.steps.rates import ON_TIME, Dynamics, to_next_sample
from axode.problems.steps.step_acceptance import (
    NOT_FINITE,
    RUNNING,
    UNDERFLOW,
    active,
    count_saved_row,
)

SAFETY, MIN_FACTOR, MAX_FACTOR = 0.9, 0.2, 5.0  # of the step-size control
ERROR_SHARE = 0.1  # of the tolerance, as `simulate` documents it, that one step may use
MIN_STEP = 4e-15  # relative to the time: a shorter step would hardly change it
# what `control` reads
CONTROL = ("t", "h", "h_s", "t_stop", "time_direction", "rtol", "atol", "status")
GIVEN = ("t_end", "time_direction", "longest", "rtol", "atol", "rows")


def adaptive_program(
    name: str,
    d: Dynamics,
    first: Sequence[Operation],
    body: Sequence[Operation],
    state: dict[str, int],
    given: Sequence[str] = (),
) -> Program:
    """Make a program that repeats a step until the end.

    Args:
        name: Name of the method.
        d: Tapes of the model.
        first: Operations before the first step of every call.
        body: Operations of one step; they update k1 and the counts of `count_steps`.
        state: Further buffers that live between calls.
        given: Further numbers that the step only reads.
    """
    ended = formula_tape(
        "active",
        {"status": 1, "t": 1, "t_end": 1, "time_direction": 1},
        lambda status, t, t_end, time_direction: active(
            status[0], time_direction[0] * (t_end[0] - t[0]) <= 1e-13 * abs(t_end[0]).most(1.0)
        ),
    )
    check = Evaluate(ended, ("status", "t", "t_end", "time_direction", "status", "active"))
    own = {"h": 1, "steps": 1, "rejected": 1, "k1": d.n_k} | MARKS
    return Program(
        name,
        state=d.state() | own | state,
        tables=d.tables() | {"times": 1},
        given=dict.fromkeys((*GIVEN, *given), 1) | d.givens(),
        interleaved=d.interleaved_tables,
        operations=(
            *first,
            check,
            While("active", (*body, watch_chattering(), check), counted=True),
        ),
    )


def clip_step(d: Dynamics) -> list[Operation]:
    """Limit the step, with its sign, to the end, a break, a sample of the input or of the grid.

    `t_stop` is the end or the next break, whichever comes first.
    """
    names = ["t", "h", "t_end", "time_direction", "longest"]
    kinds = ["sample"] * (d.samples is not None) + ["grid"] * d.grid
    names += [f"{kind}_{part}" for kind in kinds for part in ("start", "period", "count")]
    sizes = dict.fromkeys(names, 1) | ({"break": 2} if d.switches else {})

    def clip(
        t: Vector, h: Vector, t_end: Vector, time_direction: Vector, longest: Vector, **more: Vector
    ) -> dict[str, Vector]:
        stop = t_end[0]
        if d.switches:
            next_break = more["break"][0]
            stop = (time_direction[0] * (next_break - stop) < 0.0).then(next_break, stop)
        length = h[0].least(longest[0]).least(time_direction[0] * (stop - t[0]))
        for kind in kinds:
            start, period, count = (more[f"{kind}_{p}"][0] for p in ("start", "period", "count"))
            left = to_next_sample(t[0], time_direction[0], start, period, count)
            if d.switches:  # a break at the time of a sample is that time
                room = time_direction[0] * (stop - t[0])
                left = (abs(left - room) < ON_TIME * period).then(room, left)
            length = length.least(left)
        return {"h": [time_direction[0] * length], "t_stop": [stop]}

    return [*d.next_break(), Evaluate(formula_tape("clip", sizes, clip), (*sizes, "h_s", "t_stop"))]


def control(size: Formula, v: Mapping[str, Vector], power: float = 0.2) -> dict[str, Vector]:
    """Decide whether a step is accepted; find the next step size, the new time and the status.

    Args:
        size: Error of the step relative to the tolerance.
        v: The buffers of `CONTROL`.
        power: The reciprocal of the power of the step size with which the error grows.
    """
    t, h, h_s, t_end, time_direction = (
        v[name][0] for name in ("t", "h", "h_s", "t_stop", "time_direction")
    )
    status = v["status"][0]
    accepted = size <= 1.0  # not for NaN
    factor = (SAFETY * size.most(1e-10) ** -power).most(MIN_FACTOR).least(MAX_FACTOR)
    factor = (size < 1e300).then(factor, MIN_FACTOR)
    full = abs(h_s)
    # a step cut short by the end says nothing about how long the next may be
    h_new = accepted.then(
        (full < h).then(h.most(full * factor), full * factor), full * factor.least(1.0)
    )
    span = abs(t).most(abs(t_end))
    too_short = ~accepted & (h_new < MIN_STEP * span.most(1e-3))
    lost = (size < 1e300).then(float(UNDERFLOW), float(NOT_FINITE))
    after = (full >= time_direction * (t_end - t)).then(t_end, t + h_s)
    running = status.equals(float(RUNNING))
    return {
        "t": [after],
        "h": [h_new],
        "accepted": [accepted],
        "status": [(running & too_short).then(lost, status)],
    }


def error_size(
    x: Sequence[Formula],
    x_new: Sequence[Formula],
    errors: Sequence[Formula],
    rtol: Formula,
    atol: Formula,
) -> Formula:
    """Largest error of a step relative to the tolerance; a mean would let idle numbers hide it."""
    size, total = 0.0 * rtol, 0.0 * rtol
    for a, b, error in zip(x, x_new, errors, strict=True):
        share = abs(error) / (ERROR_SHARE * (atol + rtol * abs(a).most(abs(b))))
        size, total = size.most(share), total + share
    return (total < 1e300).then(size, total)  # a largest number forgets NaN, a sum does not


def count_steps() -> Evaluate:
    """Count steps and rejections, and set the next step size unless the run has stopped."""

    def count(**v: Vector) -> dict[str, Vector]:
        running = v["status"][0].equals(float(RUNNING))
        commit = v["commit"][0]
        return {
            "h": [running.then(v["h_n"][0], v["h"][0])],
            "steps": [v["steps"][0] + commit],
            "rejected": [v["rejected"][0] + (running & ~commit)],
        }

    names = ("status", "commit", "h", "h_n", "steps", "rejected")
    tape = formula_tape("count", dict.fromkeys(names, 1), count)
    return Evaluate(tape, (*names, "h", "steps", "rejected"))


def save_times(d: Dynamics, dense: Sequence[Operation], state: str) -> list[Operation]:
    """Save the state at every requested time inside the step, by the interpolant.

    Args:
        d: Tapes of the model.
        dense: Operations that find the state at `part`, 0 to 1, of the step.
        state: The buffer they leave it in.
    """

    def due(**v: Vector) -> dict[str, Vector]:
        time_direction = v["time_direction"][0]
        inside = time_direction * (v["time"][0] - v["t"][0]) <= 0.0
        left = v["index"][0] < v["rows"][0]
        part = (v["time"][0] - v["t_o"][0]) / v["h_s"][0]
        flag = v["commit"][0] & inside & left
        return {"due": [flag], "part": [flag.then(part.most(0.0).least(1.0), 0.0)]}

    names = ("commit", "time_direction", "time", "t", "t_o", "h_s", "index", "rows")
    tape = formula_tape("due", dict.fromkeys(names, 1), due)
    check: list[Operation] = [
        ReadRow("times", "index", "time"),
        Evaluate(tape, (*names, "due", "part")),
    ]
    if d.jump is not None:  # the interpolant ends before it
        dense = [*dense, _state_at_end(d, state)]
    body = (*dense, WriteRow("out", "index", state, "due"), count_saved_row(), *check)
    return [*check, While("due", body)]


def _state_at_end(d: Dynamics, state: str) -> Evaluate:
    """Take the state itself where the time is that of the end of the step."""

    def choose(
        time: Vector, t: Vector, x: Vector, q: Vector, nu: Vector, w: Vector
    ) -> dict[str, Vector]:
        ends = time[0].equals(t[0])
        return {"x": [ends.then(b, a) for a, b in zip(x, [*q, *nu, *w], strict=True)]}

    sizes = {"time": 1, "t": 1, "x": d.n_k, "q": d.n_q, "nu": d.n_nu, "w": 2}
    tape = formula_tape("at_end", sizes, choose)
    return Evaluate(tape, ("time", "t", state, "q", "nu", "w", state))
