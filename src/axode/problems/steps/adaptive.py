"""Step-size control, shared by all methods with an error estimate.

Detect motions that chatter: steps are rejected again and again without progress.

A law such as `sign(v)` that holds a motion at rest makes rates that jump all the time. Each jump is
found by rejected steps, and none of the accepted ones is longer than the tolerance allows between
two of them. Where the jumps of steps that short stay within the tolerance, none is rejected and
none becomes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from axode.codegen.tape.formulas import Formula, Vector, formula_tape, select_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.numerics.tolerances import MIN_STEP, ON_TIME
from axode.problems.steps.rates import Dynamics, to_next_sample
from axode.problems.steps.step_acceptance import (
    CHATTERING,
    NOT_FINITE,
    RUNNING,
    UNDERFLOW,
    active,
    count_saved_row,
)

WINDOW = 4096.0  # steps, rejected ones included, after which progress is looked at
REJECTED = 1 / 3  # share of them that was rejected; stiffness makes a quarter at most
PROGRESS = 5e-4  # of the time that is left: what they must have done at least
CREEPS = 1e-5  # of the time that is left: what as many steps of the present length would do
STILL = 10.0  # tolerances per step by which a state that chatters moves at most


def chattering_marks(d: Dynamics) -> dict[str, int]:
    """Return the buffers of the state that hold the start of the window, and their sizes."""
    return {"marked_t": 1, "marked_rejected": 1, "marked_x": d.n_q + d.n_nu}


def watch_chattering(d: Dynamics) -> list[Operation]:
    """Stop a run that makes no progress; after the steps have been counted."""

    def count(steps: Vector, rejected: Vector) -> dict[str, Vector]:
        windows = (steps[0] + rejected[0]) / WINDOW
        return {"due": [windows.equals(windows.floor()) & (steps[0] > 0.0)]}

    def watch(q: Vector, nu: Vector, marked_x: Vector, **v: Vector) -> dict[str, Vector]:
        due, status, t, rejected = (v[n][0] for n in ("window_ends", "status", "t", "rejected"))
        began, before, x = v["marked_t"][0], v["marked_rejected"][0], [*q, *nu]
        left = abs(v["t_end"][0] - t)
        slow = abs(t - began) < PROGRESS * left
        # not where breaks or samples cut steps short
        creeps = v["h"][0] * WINDOW < CREEPS * left
        rtol, atol = v["rtol"][0], v["atol"][0]
        moved = [abs(a - b) / (atol + rtol * abs(b)) for a, b in zip(marked_x, x, strict=True)]
        still = reduce(Formula.most, moved, 0.0 * t) < STILL * WINDOW
        chatters = due & slow & ((rejected - before >= REJECTED * WINDOW) | (creeps & still))
        running = status.equals(float(RUNNING))
        return {
            "status": [(running & chatters).then(float(CHATTERING), status)],
            "marked_t": [due.then(t, began)],
            "marked_rejected": [due.then(rejected, before)],
            "marked_x": [due.then(b, a) for a, b in zip(marked_x, x, strict=True)],
            "window_ends": [0.0 * due],
        }

    numbers = ("status", "t", "t_end", "h", "rtol", "atol", "rejected", "window_ends")
    marks, sizes = chattering_marks(d), {"q": d.n_q, "nu": d.n_nu} | dict.fromkeys(numbers, 1)
    tape = formula_tape("chattering", sizes | marks, watch)
    ends = formula_tape("count_window", {"steps": 1, "rejected": 1}, count)
    body = Evaluate(tape, (*sizes, *marks, "status", *marks, "window_ends"))
    return [Evaluate(ends, ("steps", "rejected", "window_ends")), While("window_ends", (body,))]


SAFETY, MIN_FACTOR, MAX_FACTOR = 0.9, 0.2, 5.0  # of the step-size control
ERROR_SHARE = 0.1  # of the tolerance, as `simulate` documents it, that one step may use
MAX_STEPS = 1e7  # of a run whose numbers are gathered, rejected ones included
FIRST_STEP = 0.01  # of the time scale on which a state changes
# what `control` reads
CONTROL = ("t", "h", "h_s", "t_stop", "time_direction", "rtol", "atol", "status")
READ_ONLY = ("t_end", "time_direction", "longest", "rtol", "atol", "rows")


# buffers of a part of the step, 0 to 1, and of the state there: operations that find the latter
Interpolant = Callable[[str, str], list[Operation]]


@dataclass(frozen=True)
class Gathering:
    """Operations of a program that gathers numbers of a run instead of saving its states.

    Attributes:
        first: Before the first step of a run, where the flag `starts` is up.
        each_step: After every step; `commit` is one if it was accepted, from `t_o`, by `h_s`. Made
            from the interpolant of the method.
        state: Further buffers that live between calls.
    """

    first: tuple[Operation, ...]
    each_step: Callable[[Interpolant], Sequence[Operation]]
    state: dict[str, int]

    def begin(
        self, before: Sequence[Operation], within: Sequence[Operation] = ()
    ) -> list[Operation]:
        """Operations before the steps of a call, skipped for runs that have begun.

        Args:
            before: Operations of the method in every call; they may change `h_s`.
            within: Those of a run that starts.
        """
        fresh = formula_tape("starts", {"h": 1}, lambda h: {"starts": [h[0].equals(0.0)]})
        done = formula_tape("started", {"starts": 1}, lambda starts: {"starts": [0.0 * starts[0]]})
        body = (*within, *self.first, Evaluate(done, ("starts", "starts")))
        return [Evaluate(fresh, ("h_s", "starts")), *before, While("starts", body)]


@dataclass(frozen=True)
class RepeatedStep:
    """The step of a method, which is repeated.

    Attributes:
        body: Operations of one step, up to its acceptance.
        inside: Interpolates the state inside a step.
        after: Operations after it; they prepare the next step.
        before_saving: What the interpolant needs, in steps of which states are saved.
        state: Further buffers that live between calls.
        given: Further numbers that the step only reads.
    """

    body: Sequence[Operation]
    inside: Interpolant
    after: Sequence[Operation] = ()
    before_saving: Sequence[Operation] = ()
    state: Mapping[str, int] = field(default_factory=dict)
    given: Sequence[str] = ()


def adaptive_program(
    name: str, d: Dynamics, step: RepeatedStep, gathering: Gathering | None = None
) -> Program:
    """Make a program that repeats a step until the end.

    States at the times of the table `times` go to the table `out`; with a `gathering`, numbers are
    gathered at every step instead and no state is kept.

    Args:
        name: Name of the method.
        d: Tapes of the model.
        step: The step.
        gathering: What is gathered.
    """
    ended = formula_tape(
        "active",
        {"status": 1, "t": 1, "t_end": 1, "time_direction": 1},
        lambda status, t, t_end, time_direction: active(
            status[0], time_direction[0] * (t_end[0] - t[0]) <= 1e-13 * abs(t_end[0]).most(1.0)
        ),
    )
    check = Evaluate(ended, ("status", "t", "t_end", "time_direction", "status", "active"))
    own = {"h": 1, "steps": 1, "rejected": 1, "k1": d.n_k} | chattering_marks(d)
    first = [*first_step(d), *clip_step(d), *d.rate_at("q", "nu", "t", "k1")]
    saved = save_times(d, step.inside, step.before_saving)
    buffers, tables, numbers = d.state() | own, d.tables() | {"times": 1}, [*READ_ONLY, *step.given]
    if gathering is not None:
        keep = Evaluate(select_tape("keep", d.n_k), ("starts", "k_b", "k1", "k1"))
        rate = [*clip_step(d), *d.rate_at("q", "nu", "t", "k_b"), keep]
        first = gathering.begin(first_step(d), rate)
        saved = [*gathering.each_step(step.inside), _limit_steps()]
        buffers |= gathering.state
        del buffers["index"], tables["out"], tables["times"]
        numbers.remove("rows")
    first += [*d.watched("q", "nu", "t"), check]
    return Program(
        name,
        state=buffers | dict(step.state),
        tables=tables,
        given=dict.fromkeys(numbers, 1) | d.givens(),
        interleaved=d.interleaved_tables,
        operations=(
            *first,
            While(
                "active",
                (*step.body, *saved, *step.after, *watch_chattering(d), check),
                counted=True,
            ),
        ),
    )


def _limit_steps() -> Evaluate:
    """End a run after too many steps, which no user can interrupt in a sweep."""

    def limit(status: Vector, steps: Vector, rejected: Vector) -> dict[str, Vector]:
        running = status[0].equals(float(RUNNING))
        many = steps[0] + rejected[0] >= MAX_STEPS
        return {"status": [(running & many).then(float(UNDERFLOW), status[0])]}

    names = ("status", "steps", "rejected")
    return Evaluate(formula_tape("limit_steps", dict.fromkeys(names, 1), limit), (*names, "status"))


def first_step(d: Dynamics) -> list[Operation]:
    """Estimate the first step, where `h` is zero, from how fast the state and its rate change.

    E. Hairer, S. P. Norsett, G. Wanner, *Solving Ordinary Differential Equations I*, section II.4.
    """
    n = d.n_q + d.n_nu
    both = {"rtol": 1, "atol": 1, "t": 1, "t_end": 1, "time_direction": 1}

    def scaled(values: Sequence[Formula], x: Vector, v: Mapping[str, Vector]) -> Formula:
        """Largest of some numbers, relative to the tolerance."""
        rtol, atol = v["rtol"][0], v["atol"][0]
        sizes = [abs(a) / (atol + rtol * abs(b)) for a, b in zip(values, x, strict=True)]
        return reduce(Formula.most, sizes, 0.0 * rtol)

    def probe(h: Vector, t: Vector, t_end: Vector) -> dict[str, Vector]:
        fresh, short = h[0].equals(0.0), (FIRST_STEP * abs(t_end[0] - t[0])).least(1e-3)
        return {"h": [fresh.then(short, h[0])], "fresh": [fresh]}

    def move(q: Vector, nu: Vector, k: Vector, **v: Vector) -> dict[str, Vector]:
        x, t = [*q, *nu], v["t"][0]
        size, speed = scaled(x, x, v), scaled(k[:n], x, v)
        known = (size > 1e-5) & (speed > 1e-5)
        h = known.then(FIRST_STEP * size / known.then(speed, 1.0), 1e-6)
        h = h.least(abs(v["t_end"][0] - t))
        along = v["time_direction"][0] * h
        moved = [a + along * b for a, b in zip(x, k, strict=False)]
        return {"q": moved[: d.n_q], "nu": moved[d.n_q :], "t": [t + along], "h": [h]}

    def choose(q: Vector, nu: Vector, k: Vector, k_s: Vector, **v: Vector) -> dict[str, Vector]:
        x, h, whole = [*q, *nu], v["h_a"][0], abs(v["t_end"][0] - v["t"][0])
        bend = scaled([b - a for a, b in zip(k[:n], k_s[:n], strict=True)], x, v) / h
        fastest = scaled(k[:n], x, v).most(bend)
        longer = (fastest <= 1e-15).then(
            (1e-3 * h).most(1e-6), (FIRST_STEP / fastest.most(1e-300)) ** 0.2
        )
        guess = (100.0 * h).least(longer).least(whole)
        guess = (guess < 1e300).then(guess, 1e-6 * whole)
        fresh = v["fresh"][0]
        return {"h": [fresh.then(guess, v["h"][0])], "fresh": [0.0 * fresh]}

    state = {"q": d.n_q, "nu": d.n_nu, "k": d.n_k}
    end = {"k_s": d.n_k, "h_a": 1, "h": 1, "fresh": 1}
    names = tuple(both)
    body = (
        *clip_step(d),
        *d.rate_at("q", "nu", "t", "k_a"),
        Evaluate(
            formula_tape("first_move", state | both, move),
            ("q", "nu", "k_a", *names, "q_s", "nu_s", "t_s", "h_a"),
        ),
        *d.rate_at("q_s", "nu_s", "t_s", "k_b"),
        Evaluate(
            formula_tape("first_step", state | end | both, choose),
            ("q", "nu", "k_a", "k_b", "h_a", "h", "fresh", *names, "h", "fresh"),
        ),
    )
    begin = formula_tape("first_probe", {"h": 1, "t": 1, "t_end": 1}, probe)
    return [Evaluate(begin, ("h", "t", "t_end", "h", "fresh")), While("fresh", body)]


def clip_step(d: Dynamics) -> list[Operation]:
    """Limit the step, with its sign, to the end, a break, a sample of the input or of the grid.

    `t_stop` is the end or the next break, whichever comes first.
    """
    names = ["t", "h", "t_end", "time_direction", "longest"]
    kinds = ["sample"] * (d.samples is not None) + ["grid"] * d.grid
    names += [f"{kind}_{part}" for kind in kinds for part in ("start", "period", "count")]
    sizes = dict.fromkeys(names, 1)

    def clip(
        t: Vector, h: Vector, t_end: Vector, time_direction: Vector, longest: Vector, **more: Vector
    ) -> dict[str, Vector]:
        stop = t_end[0]
        if "break" in more:
            next_break = more["break"][0]
            stop = (time_direction[0] * (next_break - stop) < 0.0).then(next_break, stop)
        length = h[0].least(longest[0]).least(time_direction[0] * (stop - t[0]))
        for kind in kinds:
            start, period, count = (more[f"{kind}_{p}"][0] for p in ("start", "period", "count"))
            left = to_next_sample(t[0], time_direction[0], start, period, count)
            if "break" in more:  # a break at the time of a sample is that time
                room = time_direction[0] * (stop - t[0])
                left = (abs(left - room) < ON_TIME * period).then(room, left)
            length = length.least(left)
        return {"h": [time_direction[0] * length], "t_stop": [stop]}

    uncut = Evaluate(formula_tape("clip", sizes, clip), (*sizes, "h_s", "t_stop"))
    if not d.switches:
        return [uncut]
    sizes |= {"break": 2}
    cut = Evaluate(formula_tape("clip", sizes, clip), (*sizes, "h_s", "t_stop"))
    return [*d.next_break(uncut), cut]


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
    """Largest error of a step relative to the tolerance; a mean would hide it among idle states."""
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


def save_times(
    d: Dynamics, inside: Interpolant, before: Sequence[Operation] = ()
) -> list[Operation]:
    """Save the state at every requested time inside the step, by the interpolant.

    Args:
        d: Tapes of the model.
        inside: Interpolates the state.
        before: What the interpolant needs; skipped where no run of a group saves anything.
    """

    def due(**v: Vector) -> dict[str, Vector]:
        time_direction = v["time_direction"][0]
        ahead = time_direction * (v["time"][0] - v["t"][0]) <= 0.0
        left = v["index"][0] < v["rows"][0]
        part = (v["time"][0] - v["t_o"][0]) / v["h_s"][0]
        flag = v["commit"][0] & ahead & left
        return {"due": [flag], "part": [flag.then(part.most(0.0).least(1.0), 0.0)]}

    names = ("commit", "time_direction", "time", "t", "t_o", "h_s", "index", "rows")
    tape = formula_tape("due", dict.fromkeys(names, 1), due)
    check: list[Operation] = [
        ReadRow("times", "index", "time"),
        Evaluate(tape, (*names, "due", "part")),
    ]
    dense = inside("part", "x_i")
    if (
        d.jump is not None or d.update is not None or before
    ):  # the interpolant ends before it, or with rounding
        dense.append(_state_at_end(d, "x_i"))
    body = (*dense, WriteRow("out", "index", "x_i", "due"), count_saved_row(), *check)
    if not before:
        return [*check, While("due", body)]
    first = Evaluate(select_tape("wanted", 1), ("due", "due", "due", "wanted"))
    done = Evaluate(
        formula_tape("found", {"due": 1}, lambda due: {"wanted": [0.0 * due[0]]}), ("due", "wanted")
    )
    return [*check, first, While("wanted", (*before, done)), While("due", body)]


def _state_at_end(d: Dynamics, state: str) -> Evaluate:
    """Take the state itself where the time is that of the end of the step."""

    def choose(
        time: Vector, t: Vector, x: Vector, q: Vector, nu: Vector, w: Vector
    ) -> dict[str, Vector]:
        ends = time[0].equals(t[0])
        if d.update is not None:  # samples at that time, by rounding earlier perhaps
            ends = abs(time[0] - t[0]) <= d.inwards * abs(t[0])
        return {"x": [ends.then(b, a) for a, b in zip(x, [*q, *nu, *w], strict=True)]}

    sizes = {"time": 1, "t": 1, "x": d.n_k, "q": d.n_q, "nu": d.n_nu, "w": 2}
    tape = formula_tape("at_end", sizes, choose)
    return Evaluate(tape, ("time", "t", state, "q", "nu", "w", state))
