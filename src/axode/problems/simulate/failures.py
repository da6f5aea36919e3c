"""Find out why a run could not go on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from axode.problems.simulate.batch import Array, Batch
from axode.problems.steps.step_acceptance import UNDERFLOW

STAGES = (0.0, 0.5, 1.0)  # parts of the step at which inputs are evaluated


def cause_of(batch: Batch, run: int) -> str:
    """Describe what is wrong with the step that a run could not take."""
    b, model = batch.buffers, batch.model
    t, length = float(b["t"][run, 0]), float(b["h_s"][run, 0])
    if int(b["status"][run, 0]) == UNDERFLOW:
        return f"steps of {abs(length):.1e} s are still too long for the tolerances"
    q, nu = b["q"][run], b["nu"][run]
    rate = np.zeros(len(q) + len(nu) + 2)
    for part in STAGES:  # along the straight line that the step sets out on
        there = t + part * length
        q_there = q + part * length * rate[: len(q)]
        nu_there = nu + part * length * rate[len(q) : -2]
        u = batch.input_at(run, there, q_there, nu_there)
        if not np.isfinite(u).all():
            return f"the input {_first(model.inputs, u)}"
        state = {"q": q_there, "nu": nu_there, "u": u}
        made = model.evaluate("state_rate", state, batch.conditions(run, there).options)
        if not np.isfinite(made).all():
            names = (
                *(f"rate of {n}" for n in (*model.coordinates, *model.independent)),
                "power supplied",
                "power dissipated",
            )
            return f"the {_first(names, made)}"
        rate = made if part == 0.0 else rate
    fastest = model.independent[int(np.argmax(np.abs(rate[len(q) : -2])))] if nu.size else ""
    return f"numbers grow beyond all bounds, {fastest} first"


def _first(names: Sequence[str], values: Array) -> str:
    """Name the first number that is not finite."""
    worst = int(np.argmax(~np.isfinite(values)))
    return f"{names[worst]} is {values[worst]}"
