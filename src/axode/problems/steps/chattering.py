"""Detect motions that chatter: steps are rejected again and again without progress.

A law such as `sign(v)` that holds a motion at rest makes rates that jump all the time. Each jump is
found by rejected steps, and none of the accepted ones is longer than the tolerance allows between
two of them. Where the jumps of steps that short stay within the tolerance, none is rejected and
none becomes longer.
"""

from __future__ import annotations

from functools import reduce

from axode.codegen.tape.formulas import Formula, Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, While
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.step_acceptance import CHATTERING, RUNNING

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
