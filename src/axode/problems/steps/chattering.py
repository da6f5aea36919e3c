"""Detect motions that chatter: steps that fail again and again and lead nowhere.

A law such as `sign(v)` that holds a motion at rest makes rates that jump all the time. Each jump is
found by rejected steps, and none of the accepted ones is longer than the tolerance allows between
two of them.
"""

from __future__ import annotations

from axode.codegen.lowering.program import Evaluate
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.problems.steps.step_acceptance import CHATTERING, RUNNING

WINDOW = 4096.0  # steps, rejected ones included, after which progress is looked at
REJECTED = 1 / 3  # share of them that was rejected; stiffness makes a quarter at most
PROGRESS = 5e-4  # of the time that is left: what they must have done at least
MARKS = {"marked_t": 1, "marked_rejected": 1}  # buffers of the state: where the window began


def watch_chattering() -> Evaluate:
    """Stop a run that makes no progress; after the steps have been counted."""

    def watch(**v: Vector) -> dict[str, Vector]:
        status, t, steps, rejected = (v[n][0] for n in ("status", "t", "steps", "rejected"))
        began, before = v["marked_t"][0], v["marked_rejected"][0]
        windows = (steps + rejected) / WINDOW
        due = windows.equals(windows.floor()) & (steps > 0.0)
        slow = abs(t - began) < PROGRESS * abs(v["t_end"][0] - t)
        chatters = due & slow & (rejected - before >= REJECTED * WINDOW)
        running = status.equals(float(RUNNING))
        return {
            "status": [(running & chatters).then(float(CHATTERING), status)],
            "marked_t": [due.then(t, began)],
            "marked_rejected": [due.then(rejected, before)],
        }

    names = ("status", "t", "t_end", "steps", "rejected", *MARKS)
    tape = formula_tape("chattering", dict.fromkeys(names, 1), watch)
    return Evaluate(tape, (*names, "status", *MARKS))
