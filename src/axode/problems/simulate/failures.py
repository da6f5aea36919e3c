"""Find out why runs could not go on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from axode.problems.runs.batch import Array, Batch
from axode.problems.runs.session import Numbers
from axode.problems.steps.step_acceptance import CHATTERING, UNDERFLOW, UNSOLVED

STAGES = (0.0, 0.5, 1.0)  # parts of the step at which inputs are evaluated
TOO_SHORT = "steps of %.1e s are still too long for the tolerances"
CHATTERS = "rates jump back and forth, so that thousands of steps lead nowhere"
NO_IMPULSES = "no impulses were found that meet the laws of friction and contact"
Texts = npt.NDArray[np.object_]


def find_causes(batch: Batch, runs: Numbers) -> Texts:
    """Describe what is wrong with the steps that some runs could not take, one text per run."""
    b, model = batch.buffers, batch.model
    t, length = b["t"][runs, 0], b["h_s"][runs, 0]
    causes: Texts = np.full(len(runs), "", dtype=object)
    short = b["status"][runs, 0] == UNDERFLOW
    causes[short] = np.char.mod(TOO_SHORT, np.abs(length[short]))
    causes[b["status"][runs, 0] == CHATTERING] = CHATTERS
    causes[b["status"][runs, 0] == UNSOLVED] = NO_IMPULSES
    q, nu = b["q"][runs], b["nu"][runs]
    rate = np.zeros((len(runs), q.shape[1] + nu.shape[1] + 2))
    rates = (
        *(f"rate of {n}" for n in (*model.coordinates, *model.independent)),
        "power supplied",
        "power dissipated",
    )
    for part in STAGES:  # along the straight line that the step sets out on
        left = np.flatnonzero(causes == "")
        if not left.size:
            break
        h = part * length[left, np.newaxis]
        there = t[left] + h[:, 0]
        q_there = q[left] + h * rate[left, : q.shape[1]]
        nu_there = nu[left] + h * rate[left, q.shape[1] : -2]
        u = batch.input_at(runs[left], there, q_there, nu_there)
        u = np.broadcast_to(u, (len(left), len(model.inputs)))
        state = {"q": q_there, "nu": nu_there, "u": u}
        options = batch.conditions(runs[left], there).options
        made = model.evaluate("state_rate", state, options)
        found = _first_not_finite("the input", model.inputs, u)
        causes[left] = np.where(found == "", _first_not_finite("the", rates, made), found)
        if part == 0.0:
            rate[left] = made
    left = np.flatnonzero(causes == "")
    fastest = np.argmax(np.abs(rate[left, q.shape[1] : -2]), axis=1) if nu.size else 0
    names = np.array(model.independent or ("",), dtype=object)
    causes[left] = "numbers grow beyond all bounds, " + names[fastest] + " first"
    return causes


def _first_not_finite(what: str, names: Sequence[str], values: Array) -> Texts:
    """Name the first number of each row that is not finite; an empty text if all are."""
    bad = ~np.isfinite(values)
    if not bad.any():
        return np.full(len(values), "", dtype=object)
    words = [[f"{what} {name} is {word}" for word in ("nan", "inf", "-inf")] for name in names]
    column = bad.argmax(axis=1)
    worst = values[np.arange(len(values)), column]
    word = np.where(np.isnan(worst), 0, np.where(worst > 0, 1, 2))
    found: Texts = np.where(bad.any(axis=1), np.array(words, dtype=object)[column, word], "")
    return found
