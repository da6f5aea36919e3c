"""Changes of logged runs along directions: from their starts, step by step, to their ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.reversal import directional_tape, part_of_tape
from axode.codegen.tape.tape import Tape
from axode.problems.gradients.backward import ALL_STEPS, LIMITS
from axode.problems.gradients.ended_runs import EndedRuns
from axode.problems.gradients.reverse_program import LENGTH, SAMPLES, tangent_program
from axode.problems.gradients.steps_of_cost import TABLEAUS, StepOfCost
from axode.problems.inputs.tracing import compile_tape
from axode.problems.runs.batch import Batch
from axode.problems.runs.session import Session
from axode.problems.steps.break_times import refuse_switching_times
from axode.problems.steps.compiled import compiled, tape_of
from axode.problems.steps.step_acceptance import EVENT

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]


def push_forward(
    tape: Tape, known: Mapping[str, Any], changes: Mapping[str, Any], count: int
) -> Array:
    """Changes of a tape's results at states, (states, results).

    Args:
        tape: A function of states.
        known: Its arguments by name, (states, size) or (size,).
        changes: Changes of some of them, the same.
        count: How many states there are.
    """
    moving = tuple(port.name for port in tape.inputs if port.name in changes)
    along = directional_tape(tape, moving)
    arrays = [known[port.name] for port in tape.inputs] + [changes[name] for name in moving]
    full = [
        np.ascontiguousarray(np.broadcast_to(a, (count, port.size))).reshape(count, *port.shape)
        for a, port in zip(arrays, along.inputs, strict=True)
    ]
    return np.asarray(compile_tape(along)(*full)).reshape(count, -1)


class Forward:
    """One pass forwards through logged runs, along one direction of each.

    Args:
        run: The runs and the log of their steps.
        start: Changes of q and nu at the start, (runs, size) each.
        shared: Changes of buffers that all steps share, (runs, size) each: p, gains, u.
        session: The call that this is part of.

    Attributes:
        saved: Changes of saved states in the user's speeds, (runs, rows, coordinates and speeds).
        last: Changes of the states at the ends of runs, those that events stopped with the change
            of the time of their end.
        end: Changes of these times, (runs,).
    """

    def __init__(
        self,
        run: EndedRuns,
        start: Mapping[str, Array],
        shared: Mapping[str, Array],
        session: Session,
    ) -> None:
        self.run, self.shared, self.session = run, dict(shared), session
        self.settings, runs = run.runs.settings, run.runs
        times, model = self.settings.times, run.model
        self.n_q = len(model.coordinates)
        size = self.n_q + len(model.independent)
        self.saved = np.full((runs.count, len(times), size), np.nan)
        self.last, self.end = np.full((runs.count, size), np.nan), np.zeros(runs.count)
        self.saved[:, 0] = np.concatenate([start["q"], start["nu"]], axis=1)
        self._after: dict[Batch, dict[str, Array]] = {}
        of = {n: np.flatnonzero((a != 0).any(axis=0)).tolist() for n, a in self.shared.items()}
        for log in run.log.batches:
            batch = log.batch
            refuse_switching_times(batch.model, batch.dynamics, of)
            if log.parent is None:
                moved = {name: np.array(array) for name, array in start.items()}
            else:
                moved = self._translate(*log.parent, batch.model.independent)
            saved = np.full(
                (batch.count, len(times), batch.dynamics.n_q + batch.dynamics.n_nu), np.nan
            )
            for one in log.slices:
                session.check()
                if one.counts.any():
                    self._walk(batch, log.steps(one), one.counts, moved, saved)
            self._keep(batch, saved)
            self._after[batch] = moved
            self._end(batch, moved)

    def _own(self, batch: Batch, runs: Numbers | None = None) -> dict[str, Array]:
        """Changes of shared buffers, of the runs of a batch."""
        members = batch.members if runs is None else batch.members[runs]
        return {name: np.ascontiguousarray(a[members]) for name, a in self.shared.items()}

    def _walk(
        self,
        batch: Batch,
        rows: Array,
        counts: Numbers,
        moved: dict[str, Array],
        saved: Array,
        runs: Numbers | None = None,
        length: float | None = None,
    ) -> None:
        """Take changes forwards through steps, in place, and write those at samples."""
        d = batch.dynamics
        step = StepOfCost(TABLEAUS[self.settings.stepper], d)
        own = {} if length is not None else self._own(batch, runs)
        names = tuple(own) if length is None else (LENGTH,)
        traced = None if d.input is None else d.input.digest
        key = ("sensitivities", step.method.name, d.samples, *d.breaks_key, traced, names)
        rollout = compiled(
            batch.model,
            key,
            self.settings.place,
            lambda: tangent_program(step, names),
            limits=LIMITS,
        )
        buffers = rollout.new_state(len(counts), {f"{n}~": a for n, a in moved.items()})
        times = self.settings.times
        samples = times[0], times[1] - times[0], times[-1], len(times) - 1.0
        on_grid = dict(zip(SAMPLES, samples, strict=True))
        for name in rollout.program.given:
            if name in on_grid:
                buffers[name] = np.array([on_grid[name]])
            elif name == "count":
                buffers[name] = np.ascontiguousarray(counts[:, np.newaxis], dtype=float)
            elif name.endswith("~"):
                buffers[name] = np.array([length]) if length is not None else own[name[:-1]]
            else:
                array = batch.buffers[name]
                buffers[name] = array if runs is None or array.ndim == 1 else array[runs]
        tables = {"log": rows, "out": saved}
        if "samples" in rollout.program.tables:
            table = batch.tables["samples"]
            tables["samples"] = table if runs is None or table.ndim == 2 else table[runs]
        rollout(buffers, tables, budget=ALL_STEPS, threads=self.settings.threads)
        for name, array in moved.items():
            array[...] = buffers[f"{name}~"]

    def _keep(self, batch: Batch, saved: Array) -> None:
        """Keep changes at samples, in the user's speeds."""
        run, row = np.nonzero(~np.isnan(saved).all(axis=2))
        changes, members = saved[run, row], batch.members[run]
        if batch.model is not self.run.model and run.size:
            times = self.settings.times[row]
            changes = self._in_own_speeds(batch, run, batch.out[run, row], times, changes)
        self.saved[members, row] = changes

    def _in_own_speeds(
        self,
        batch: Batch,
        run: Numbers,
        state: Array,
        t: Array,
        changes: Array,
        later: Array | None = None,
    ) -> Array:
        """Changes of states in the speeds of the user's model; those of their times, if any."""
        d, n, own = batch.dynamics, self.n_q, self.run.model.independent
        known = {"q": state[:, :n], "nu": state[:, n : n + d.n_nu], "t": t[:, np.newaxis]}
        moved = {"q": changes[:, :n], "nu": changes[:, n:]}
        moved |= {} if later is None else {"t": later}
        nu = self._speeds(batch, run, own, known, moved)
        return np.concatenate([changes[:, :n], nu], axis=1)

    def _speeds(
        self,
        batch: Batch,
        run: Numbers,
        names: tuple[str, ...],
        known: dict[str, Array],
        moved: dict[str, Array],
    ) -> Array:
        """Changes of some joint speeds of states of a batch."""
        p = batch.conditions(run).p
        known |= {} if p is None else {"p": p}
        own = self._own(batch, run)
        moved = moved | ({"p": own["p"]} if "p" in own else {})
        model = batch.model
        chosen = [model.speed_names.index(name) for name in names]
        tape = part_of_tape(tape_of(model, "joint_speeds"), chosen)
        return push_forward(tape, known, moved, len(run))

    def _translate(self, parent: Batch, runs: Numbers, names: tuple[str, ...]) -> dict[str, Array]:
        """Changes of runs that left their batch, on other independent speeds."""
        after = {name: array[runs] for name, array in self._after[parent].items()}
        known = {name: parent.buffers[name][runs] for name in ("q", "nu", "t")}
        return {"q": after["q"], "nu": self._speeds(parent, runs, names, known, after)}

    def _end(self, batch: Batch, moved: dict[str, Array]) -> None:
        """Keep changes at the ends of runs; events move the time of the end."""
        members, status, d = batch.members, batch.outcomes.status, batch.dynamics
        changes = np.concatenate([moved["q"], moved["nu"]], axis=1)
        stopped = np.flatnonzero(status == EVENT)
        if stopped.size:
            changes[stopped], self.end[members[stopped]] = self._stop(batch, moved, stopped)
        if batch.model is not self.run.model:
            last = batch.outcomes.last[:, : d.n_q + d.n_nu]
            every = np.arange(batch.count)
            later = self.end[members, np.newaxis]
            changes = self._in_own_speeds(batch, every, last, batch.outcomes.time, changes, later)
        self.last[members] = changes

    def _stop(self, batch: Batch, moved: dict[str, Array], runs: Numbers) -> tuple[Array, Array]:
        """Changes at the end of runs that events stopped, and of its time."""
        d, count, one = batch.dynamics, len(runs), np.ones(len(runs), dtype=np.intp)
        t, end = batch.buffers["t"][runs], batch.outcomes.time[runs, np.newaxis]
        state = [batch.buffers[name][runs] for name in ("q", "nu")]
        rows = np.ascontiguousarray(np.concatenate([*state, t, end - t], axis=1)[:, np.newaxis])
        after = {name: np.array(array[runs]) for name, array in moved.items()}
        still = {name: np.zeros_like(array) for name, array in after.items()}
        unused = np.zeros((count, len(self.settings.times), d.n_q + d.n_nu))
        self._walk(batch, rows, one, after, unused, runs)
        self._walk(batch, rows, one, still, unused, runs, length=1.0)
        fixed, slope = (np.concatenate([x["q"], x["nu"]], axis=1) for x in (after, still))
        last, n = batch.outcomes.last[runs], d.n_q
        known = {"q": last[:, :n], "nu": last[:, n:-2], "t": end}
        known |= {name: batch.buffers[name] for name in d.numbers}
        p, own = batch.conditions(runs).p, self._own(batch, runs)
        known |= {} if p is None else {"p": p}
        more = {"p": own["p"]} if "p" in own else {}
        assert d.events is not None
        names = [event.name for event in batch.watches]
        which = np.array([names.index(cause) for cause in batch.outcomes.cause[runs]])

        def event(changes: Array, others: Mapping[str, Array]) -> Array:
            directions = {"q": changes[:, :n], "nu": changes[:, n:], **others}
            made = push_forward(d.events, known, directions, count)  # type: ignore[arg-type]
            return made[np.arange(count), which]

        with np.errstate(all="ignore"):
            later = -event(fixed, more) / event(slope, {"t": np.ones((count, 1))})
        return fixed + slope * later[:, np.newaxis], later
