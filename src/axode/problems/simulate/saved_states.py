"""Columns of a simulation: signals of saved states, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.tape import Tape
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.signals import KINDS
from axode.model.state import evaluate_signals, signal_values, unknown_forces, update_balance
from axode.problems.inputs.tracing import TracedFunction, call_traced
from axode.problems.other_models import SignalsElsewhere
from axode.results.columns import Rows, TrajectoryColumns, pick

if TYPE_CHECKING:
    from axode.model.signals import Signal
    from axode.problems.simulate.continuing import KnownMotion

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
Places = tuple[Numbers, Numbers]  # run and row of some states
STATE = ("q", "nu", "w")
MOST_KEPT = 16  # sets of other times at which states are kept
NEED_INPUTS = ("contact_forces", "multipliers", "motor_powers", "state_rate")


@dataclass(frozen=True)
class Correction:
    """States that another model describes.

    Attributes:
        places: Which of the saved states they are.
        rows: Which of the states of `signals` they are.
        signals: Their signals.
    """

    places: Places
    rows: Numbers
    signals: SignalsElsewhere

    def write(self, signal: Signal, values: Array, k: int) -> None:
        """Write a signal into values of all saved states, (runs, T, size), at index k."""
        values[(*self.places, k)] = self.signals.column(signal)[self.rows]

    def part(self, which: Any, places: Places) -> Correction:
        """Select some of the states, which are at other places."""
        return Correction(places, self.rows[which], self.signals)


@dataclass(frozen=True)
class SavedStates:
    """States that were saved, in the model's own speeds, and what else their signals depend on.

    Attributes:
        model: What moves.
        states: q, nu and w, (runs, T, size); NaN beyond the end of a run.
        conditions: Time, (runs, T), and parameters, (size,), (runs, 1, size) or (runs, T, size).
        inputs: Inputs, (runs, T, size), or the tape of a function of the state.
        corrections: States that another model describes.
    """

    model: Model
    states: Array
    conditions: Conditions
    inputs: Array | Tape
    corrections: tuple[Correction, ...] = ()

    @cached_property
    def beyond(self) -> npt.NDArray[np.bool_] | None:
        """Which samples lie beyond the end of a run, (runs, T); None if none does."""
        if not np.isnan(self.states[:, -1, 0]).any():
            return None
        return np.isnan(self.states[..., 0])

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """States by name."""
        n, x = len(self.model.coordinates), self.states
        return {"q": x[..., :n], "nu": x[..., n:-2], "w": x[..., -2:]}

    @cached_property
    def u(self) -> Array:
        """Inputs, (runs, T, size)."""
        if isinstance(self.inputs, np.ndarray):
            return self.inputs
        q, nu = self.arrays["q"], self.arrays["nu"]
        made = call_traced(TracedFunction(self.inputs), q, nu, self.conditions)
        return np.broadcast_to(made, (*q.shape[:-1], len(self.model.inputs)))

    def evaluate(self, function: str) -> Array:
        """Evaluate a function of signals, (runs, T, size)."""
        if function in STATE:
            return self.arrays[function]
        if function == "u":
            made = self.u
        else:
            arrays = self.arrays | ({"u": self.u} if function in NEED_INPUTS else {})
            made = evaluate_signals(self.model, function, arrays, self.conditions)
        return self._corrected(function, made)

    def _corrected(self, function: str, made: Array) -> Array:
        if not made.flags.writeable and (self.corrections or self.beyond is not None):
            made = made.copy()
        if function == "contact_forces" and self.corrections:
            made[..., unknown_forces(self.model)] = np.nan
        for correction in self.corrections:
            for signal in self.model.signals:
                if signal.function == function:
                    correction.write(signal, made, signal.index)
        if self.beyond is not None:
            made[self.beyond] = np.nan
        return made

    def evaluate_all(self, start_energy: Array | None) -> Array:
        """Evaluate all signals, (runs, T, signals).

        Args:
            start_energy: Energy from which the balance counts, (runs, 1); that of the first
                samples unless given.
        """
        q, nu, w = (self.arrays[name] for name in STATE)
        values = signal_values(self.model, q, nu, self.u, w, conditions=self.conditions)
        for correction in self.corrections:
            for k, signal in enumerate(self.model.signals):
                correction.write(signal, values, k)
        if self.corrections or start_energy is not None:
            update_balance(self.model, values, start=start_energy)
        if self.beyond is not None:
            values[self.beyond] = np.nan
        return values

    def part(self, runs: slice, rows: Rows) -> SavedStates:
        """Select some of the states; by a slice where other models describe some."""
        inputs, there = self.inputs, self.conditions
        count, samples = self.states.shape[:2]
        corrections = []
        for correction in self.corrections:
            run, row = correction.places
            own_run, own_row = (np.full(n, -1) for n in (count, samples))
            own_run[runs] = np.arange(len(own_run[runs]))
            own_row[rows] = np.arange(len(own_row[rows]))
            kept = (own_run[run] >= 0) & (own_row[row] >= 0)
            if kept.any():
                corrections.append(correction.part(kept, (own_run[run[kept]], own_row[row[kept]])))

        def own(array: Array | None) -> Array | None:
            if array is None or array.ndim == 1:
                return array
            return array[runs] if array.shape[1] == 1 else pick(array, runs, rows)

        return replace(
            self,
            states=pick(self.states, runs, rows),
            conditions=Conditions(pick(there.t, runs, rows), own(there.p), own(there.gains)),
            inputs=pick(inputs, runs, rows) if isinstance(inputs, np.ndarray) else inputs,
            corrections=tuple(corrections),
        )


class RecordedColumns(TrajectoryColumns):
    """Signals of saved states; a function of the model is evaluated once for all its signals.

    Args:
        saved: The states.
        shape: Shape of a column.
        first: First samples of the runs, from which the balance of energies counts; those of
            `saved` unless given.
        motion: What computes their motion between the samples, if anything does.
    """

    def __init__(
        self,
        saved: SavedStates,
        shape: Sequence[int],
        first: SavedStates | None = None,
        motion: KnownMotion | None = None,
    ) -> None:
        super().__init__(shape)
        self._saved, self._first, self._motion = saved, first, motion
        self._evaluated: dict[str, Array] = {}
        self._elsewhen: dict[bytes, RecordedColumns] = {}

    def _make(self, name: str) -> Array:
        signal = self._saved.model.signals.resolve(name)
        if signal.function == "energy_balance":
            return self._balance().reshape(self.shape)
        saved, contact = self._saved, signal.function == "contact_forces"
        if contact and not saved.corrections and signal.index in unknown_forces(saved.model):
            return np.broadcast_to(np.nan, self.shape)
        return self._evaluate(signal.function)[..., signal.index].reshape(self.shape)

    def _evaluate(self, function: str) -> Array:
        made = self._evaluated.get(function)
        if made is None:
            made = self._evaluated[function] = self._saved.evaluate(function)
        return made

    def evaluate(self, function: str) -> Array | None:
        made = self._evaluate(function)
        return made.reshape(*self.shape, made.shape[-1])

    def _balance(self) -> Array:
        energy, w = self._evaluate("energy"), self._evaluate("w")
        total = energy[..., 0] + energy[..., 1]
        start = self._start_energy()
        start = total[:, :1] if start is None else start
        return np.asarray(total - start - w[..., 0] + w[..., 1])

    def _start_energy(self) -> Array | None:
        return None if self._first is None else self._first.evaluate("energy").sum(axis=-1)

    def stack(self, names: Sequence[str]) -> Array:
        if tuple(names) != self._saved.model.signals.layout(*KINDS).names:
            return super().stack(names)
        values = self._saved.evaluate_all(self._start_energy())
        return values.reshape(*self.shape, len(names))

    def part(self, runs: slice, rows: Rows, shape: Sequence[int]) -> TrajectoryColumns:
        if not isinstance(rows, slice) and self._saved.corrections:
            return super().part(runs, rows, shape)
        first = (self._first or self._saved).part(runs, slice(0, 1))
        motion = None if self._motion is None else self._motion.part(runs)
        return RecordedColumns(self._saved.part(runs, rows), shape, first, motion)

    def at_times(self, time: Array, lengths: Numbers, times: Array) -> TrajectoryColumns | None:
        saved = self._saved
        if self._motion is None or not np.array_equal(time, saved.conditions.t[0]):
            return None
        key = times.tobytes()
        if key not in self._elsewhen:
            states = self._motion.go_on(saved, lengths.reshape(-1), times)
            first = (self._first or saved).part(slice(None), slice(0, 1))
            made = RecordedColumns(states, (*self.shape[:-1], len(times)), first, self._motion)
            if len(self._elsewhen) == MOST_KEPT:
                self._elsewhen.pop(next(iter(self._elsewhen)))
            self._elsewhen[key] = made
        return self._elsewhen[key]
