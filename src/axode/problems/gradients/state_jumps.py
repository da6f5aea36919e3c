"""Warn of runs in which inputs or running terms jump by the state.

Derivatives of runs are those of the steps that were computed, on the sides that were taken. What
the time of a jump contributes is not in them, and where there is a jump this is as large as the
rest.
"""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.switching import JUMPING, Switches, find_switches
from axode.codegen.tape.tape import Tape
from axode.errors import RequestNotMetWarning, level_outside
from axode.numerics.tolerances import SEVEN_DIGITS
from axode.problems.runs.batch import Batch
from axode.problems.runs.step_log import BatchLog, StepLog, StepSlice
from axode.results.sweep_arrays import as_host

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
STATE = ("t", "q", "nu")
HALVINGS = 60  # of a step, until its parts are as short as numbers allow


class StateJumps:
    """Jumps in logged steps of runs.

    Attributes:
        times: Time of the first jump that was found, by the number of the run.
    """

    def __init__(self, verb: str, runs: int) -> None:
        self._verb, self._runs = verb, runs
        self.times: dict[int, float] = {}
        self._what: dict[str, None] = {}

    def look(self, log: BatchLog, one: StepSlice, rows: Array, running: Tape | None = None) -> None:
        """Look for jumps in the steps of a slice.

        Args:
            log: The log that the slice belongs to.
            one: The slice.
            rows: Its steps.
            running: t, q, nu (p, u) to the rate of a cost, if there is one.
        """
        d = log.batch.dynamics
        tapes = {"the input jumps": d.input, "`running` jumps": running}
        for what, tape in tapes.items():
            if tape is None:
                continue
            kept = tuple(port.name for port in tape.inputs if port.name not in ("q", "nu"))
            switches = find_switches(tape, kept, ("q", "nu"), JUMPING)
            if switches is not None:
                self._look_at(what, tape, switches, log, one, rows)

    def look_through(self, whole: StepLog) -> None:
        """Look for jumps in all steps of a log."""
        for log in whole.batches:
            for one in log.slices:
                if one.counts.any():
                    self.look(log, one, log.steps(one))

    def warn(self) -> None:
        """Warn if there are jumps."""
        if not self.times:
            return
        run = min(self.times)
        where = f"at t = {self.times[run]:.6g} s"
        if self._runs > 1:
            where = f"in {len(self.times)} of {self._runs} runs, as in run {run} {where}"
        warnings.warn(
            f"{self._verb}: {' and '.join(self._what)} by the state, {where}. Derivatives leave "
            "out what a change of that time contributes.\n"
            "  Remedy: a smooth function, such as 0.5 + 0.5 * tanh((x - 0.1) / width) in place of "
            "where(x > 0.1, 1, 0)",
            RequestNotMetWarning,
            stacklevel=level_outside(),
        )

    def _look_at(
        self, what: str, tape: Tape, switches: Switches, log: BatchLog, one: StepSlice, rows: Array
    ) -> None:
        runs, begins, ends = _steps(log, one, as_host(rows))
        whole = np.array(switches.whole)

        def places(x: Array, steps: Numbers) -> Array:
            numbers = _evaluated(switches.tape, log.batch, x, runs[steps])
            made: Array = np.where(whole, np.floor(numbers), numbers < 0)
            return made

        every = np.arange(len(runs))
        before = places(begins, every)
        step, number = np.nonzero(before != places(ends, every))
        if not step.size:
            return
        side = before[step, number]
        low, high = np.zeros((len(step), 1)), np.ones((len(step), 1))

        def along(part: Array) -> Array:
            return begins[step] + part * (ends[step] - begins[step])

        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            now = places(along(middle), step)[np.arange(len(step)), number]
            past = (now != side)[:, np.newaxis]
            low, high = np.where(past, low, middle), np.where(past, middle, high)
        first, last, left, right = (
            _evaluated(tape, log.batch, x, runs[step])
            for x in (begins[step], ends[step], along(low), along(high))
        )
        size = np.maximum(np.abs(first), np.abs(last))
        jumps = (np.abs(right - left) > SEVEN_DIGITS * size).any(axis=1)
        for k in np.flatnonzero(jumps)[::-1]:
            run, time = int(log.batch.members[runs[step[k]]]), float(along(high)[k, 0])
            self.times[run] = min(time, self.times.get(run, np.inf))
            self._what[what] = None


def _changed_by_samples(update: Tape) -> Numbers:
    """Places in nu of what samples change, of the tape that takes them."""
    port = next(k for k, port in enumerate(update.inputs) if port.name == "nu")
    kept = update.kinds[update.results] == Kind.INPUT
    operands = update.operands[update.results]
    same = (operands[:, 0] == port) & (operands[:, 1] == np.arange(len(operands)))
    return np.flatnonzero(~(kept & same))


def _steps(log: BatchLog, one: StepSlice, rows: Array) -> tuple[Numbers, Array, Array]:
    """Run of every step of a slice, and t, q and nu where it begins and ends."""
    d, batch = log.batch.dynamics, log.batch
    if rows.ndim == 4:  # numbers of a group of runs side by side
        groups, steps, width, lanes = rows.shape
        rows = rows.transpose(0, 3, 1, 2).reshape(groups * lanes, steps, width)[: batch.count]
    size = d.n_q + d.n_nu
    time = size * (1 + d.logged_stages)
    rows = rows[:, : one.counts.max()]
    states = np.concatenate([rows[..., time : time + 1], rows[..., :size]], axis=2)
    place = next(k for k, some in enumerate(log.slices) if some is one) + 1
    later = log.slices[place].state if place < len(log.slices) else batch.buffers
    after = np.concatenate([as_host(later[name]) for name in STATE], axis=1)
    ends = np.concatenate([states[:, 1:], after[:, np.newaxis]], axis=1)
    last = np.flatnonzero(one.counts)
    ends[last, one.counts[last] - 1] = after[last]
    if d.update is not None:  # what is sampled changes where a step ends, as it should
        held = 1 + d.n_q + _changed_by_samples(d.update)
        ends[..., held] = states[..., held]
    made = np.arange(rows.shape[1]) < one.counts[:, np.newaxis]
    return np.nonzero(made)[0], states[made], ends[made]


def _evaluated(tape: Tape, batch: Batch, states: Array, runs: Numbers) -> Array:
    """First results of a tape at states (t, q, nu) of some runs of a batch."""
    d = batch.dynamics
    known = dict(zip(STATE, np.split(states, [1, 1 + d.n_q], axis=1), strict=True))
    if any(port.name == "u" for port in tape.inputs):
        if d.input is not None:
            known["u"] = _evaluated(d.input, batch, states, runs)
        else:
            known["u"] = np.zeros((len(runs), d.n_u))  # sampled: jumps do not depend on it
    arrays = []
    for port in tape.inputs:
        if port.name in known:
            array = known[port.name]
        else:
            array = as_host(batch.buffers[port.name])
            array = np.broadcast_to(
                array if array.ndim == 1 else array[runs], (len(runs), port.size)
            )
        arrays.append(array.reshape(len(runs), *port.shape))
    made: Array = np.asarray(tape.evaluate(*arrays)[0]).reshape(len(runs), -1)
    return made
