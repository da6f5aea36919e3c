"""Locate the zero crossings of event functions inside steps, of many runs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.signals import STATE_KINDS
from axode.model.state import signal_values
from axode.numerics.tolerances import TWO_ROUNDINGS
from axode.problems.runs.batch import STATE, Batch
from axode.problems.runs.session import Numbers
from axode.problems.steps.step_acceptance import CROSSED_INSIDE, EVENT, RUNNING

if TYPE_CHECKING:
    from axode.results.columns import Event

Array = npt.NDArray[np.float64]
MAX_ITERATIONS = 200
PARTS = 8  # of a step, between which crossings are looked for
GOLDEN = 0.5 * (3 - 5**0.5)
NARROWINGS = 40  # of the bracket of an extreme


@dataclass(frozen=True)
class Crossings:
    """Crossings that were located, in the order of runs and times.

    Attributes:
        model: Whose states these are.
        event: Number of the event.
        run: Number of the run among all.
        time: When [s].
        q, nu: States there, (crossings, size).
        conditions: Time and parameters there.
    """

    model: Model
    event: Numbers
    run: Numbers
    time: Array
    q: Array
    nu: Array
    conditions: Conditions

    def events(self, watches: Sequence[Event]) -> Iterator[Event]:
        """Make one event per crossing, with all values of its state by name."""
        if not self.time.size:
            return
        values = signal_values(
            self.model, self.q, self.nu, conditions=self.conditions, kinds=STATE_KINDS
        )
        names = self.model.signals.layout(*STATE_KINDS).names
        columns = (self.event, self.time, self.run, values)
        for k, t, run, row in zip(*(column.tolist() for column in columns), strict=True):
            yield watches[k].located(t, run, dict(zip(names, row, strict=True)))


class Probe:
    """The next steps of some runs, repeated to any times inside them."""

    def __init__(self, batch: Batch, runs: Numbers) -> None:
        self.batch, self.runs = batch, runs
        # code for several runs exists already: no other is compiled for one of them
        padded = np.repeat(runs, 2) if len(runs) == 1 < batch.count else runs
        mine: dict[str, Any] = {
            name: np.array(array[padded] if array.ndim > 1 else array)
            for name, array in batch.buffers.items()
        }
        mine["t_end"] = np.zeros((len(padded), 1))
        mine["status"][...], mine["seen"][...] = RUNNING, 1.0
        if "least_pivot" in mine:
            mine["least_pivot"][...] = -1.0
        self.t, self.length = (mine[name][: len(runs), 0].copy() for name in ("t", "h_s"))
        if not batch.settings.adaptive:
            mine["n_steps"][...], mine["step"][...] = 1.0, 0.0
        else:
            mine["longest"][...] = np.inf
            mine["rtol"][...], mine["atol"][...], mine["rows"][...] = 0.0, 1e300, 0.0
        self._start, self.now = mine, {name: array.copy() for name, array in mine.items()}
        tables = {"out": np.zeros((len(padded), 1, batch.dynamics.n_k)), "times": np.zeros((1, 1))}
        if batch.dynamics.log:
            tables["log"] = np.zeros(batch.rollout.table_shape("log", len(padded), 1))
        for name in {"samples", "breaks"} & batch.tables.keys():
            table = batch.tables[name]
            tables[name] = table if table.ndim == 2 else table[padded]
        self._step = batch.rollout.bind(self.now, tables)

    def go_to(self, t: Array) -> None:
        """Go from the start of each step to a time inside it, in one step of the method."""
        now = self.now
        for name, array in self._start.items():
            now[name][...] = array
        now["t_end"][:, 0] = t
        if self.batch.settings.adaptive:
            now["h"][:, 0] = np.abs(t - self.t)
        self._step(1, self.batch.settings.threads)

    def event_values(self) -> Array:
        """Values of the event functions at the present states, (runs, events)."""
        function = self.batch.event_functions
        assert function is not None
        made: Array = function(*(self.now[port.name] for port in function.tape.inputs))
        return made[: len(self.runs)]

    @property
    def state(self) -> Array:
        """q, nu and w at the present states."""
        return np.concatenate([self.now[name][: len(self.runs)] for name in STATE], axis=1)

    def _value(self, k: int, offset: Array) -> Array:
        """Value of an event function at times from the start of each step."""
        self.go_to(self.t + offset)
        return self.event_values()[:, k].copy()

    def crossings(
        self, k: int, direction: int, at_ends: npt.NDArray[np.bool_]
    ) -> tuple[Numbers, Array]:
        """Find the crossings of a function inside the steps.

        Args:
            k: Number of the function.
            direction: That of the crossings: 1 rising, -1 falling, 0 both.
            at_ends: Where the ends of the steps show one.

        Returns:
            Places of the runs, and times from the start of their steps to the crossings.
        """
        nodes = self.length * np.linspace(0.0, 1.0, PARTS + 1)[:, np.newaxis]
        values = np.array([self._value(k, offset) for offset in nodes])
        rows = np.arange(len(self.runs))
        pieces = [
            (rows, nodes[i], values[i], nodes[i + 1], values[i + 1]) for i in range(PARTS)
        ] + self._beside_extremes(k, nodes, values)
        runs, low, f_low, high, f_high = (np.concatenate(x) for x in zip(*pieces, strict=True))
        up, down = (f_low < 0) & (f_high >= 0), (f_low > 0) & (f_high <= 0)
        crosses = up if direction > 0 else down if direction < 0 else up | down
        runs, low, f_low, high, f_high = (x[crosses] for x in (runs, low, f_low, high, f_high))
        if runs.size:
            probe = Probe(self.batch, self.runs[runs])
            closest = TWO_ROUNDINGS * np.maximum(1.0, np.abs(probe.t))
            high = find_zeros(
                lambda offset: probe._value(k, offset), (low, f_low), (high, f_high), closest
            )
        # zero at the end, or within rounding of it
        left = np.setdiff1d(np.flatnonzero(at_ends), runs)
        nearer = np.where(np.abs(values[-1]) <= np.abs(values[0]), self.length, 0.0)
        return np.concatenate([runs, left]), np.concatenate([high, nearer[left]])

    def _beside_extremes(self, k: int, nodes: Array, values: Array) -> list[tuple[Any, ...]]:
        """Find extremes between nodes that lie beyond zero; return the pieces on both sides."""
        before, after = np.maximum(np.arange(PARTS + 1) - 1, 0), np.arange(1, PARTS + 2)
        after = np.minimum(after, PARTS)
        sign, size = np.sign(values), np.abs(values)
        lowest = (size <= size[before]) & (size <= size[after])
        same = (sign == sign[before]) & (sign == sign[after]) & (sign != 0)
        middle, run = np.nonzero(lowest & same)
        if not run.size:
            return []
        first, last, side = before[middle], after[middle], sign[middle, run]
        low, high = nodes[first, run], nodes[last, run]
        f_low, f_high = values[first, run], values[last, run]
        probe = Probe(self.batch, self.runs[run])

        def height(offset: Array) -> Array:
            return side * probe._value(k, offset)

        a, b = low, high
        inner = [a + GOLDEN * (b - a), b - GOLDEN * (b - a)]  # a, one, two, b
        f = [height(x) for x in inner]
        for _ in range(NARROWINGS):
            if all((np.minimum(*f) < 0).tolist()):
                break
            first = f[0] < f[1]
            a, b = np.where(first, a, inner[0]), np.where(first, inner[1], b)
            kept, f_kept = np.where(first, *inner), np.where(first, *f)
            new = np.where(first, a + GOLDEN * (b - a), b - GOLDEN * (b - a))
            f_new = height(new)
            inner = [np.where(first, new, kept), np.where(first, kept, new)]
            f = [np.where(first, f_new, f_kept), np.where(first, f_kept, f_new)]
        top = np.where(f[0] < f[1], *inner)
        f_top = side * np.minimum(*f)
        return [(run, low, f_low, top, f_top), (run, top, f_top, high, f_high)]

    def end_at(self, end: Array, cause: npt.NDArray[np.object_]) -> None:
        """End the runs inside their steps, by events, and save the samples up to there."""
        batch, s, runs = self.batch, self.batch.settings, self.runs
        row = batch.rows_saved[runs]
        while True:
            time = s.times[np.minimum(row, len(s.times) - 1)]
            due = (row < len(s.times)) & (s.direction * (time - end) <= 0)
            if not due.any():
                break
            self.go_to(np.where(due, time, end))
            batch.save(runs[due], row[due], self.state[due])
            row = row + due
        batch.buffers["index"][runs, 0] = row
        self.go_to(end)
        if "inaccuracy" in self.now:
            batch.buffers["inaccuracy"][runs] = self.now["inaccuracy"][: len(runs)]
        batch.resolve(runs, EVENT, cause, self.state, end)


def find_zeros(
    value: Callable[[Array], Array],
    low: tuple[Array, Array],
    high: tuple[Array, Array],
    closest: Array,
) -> Array:
    """Find zeros of many functions of one number, each between two places of opposite signs.

    By inverse quadratic interpolation where that is safe, by bisection elsewhere: T. R.
    Chandrupatla, *A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear
    function without using derivatives*, Advances in Engineering Software 28 (1997).

    Args:
        value: All functions, at a place of each.
        low, high: Places and the values there.
        closest: Distances below which two places are the same.
    """
    (b, f_b), (a, f_a) = low, high
    part = np.full(len(a), 0.5)
    done = ~(f_a * f_b < 0)
    best = a
    with np.errstate(all="ignore"):
        for _ in range(MAX_ITERATIONS):
            x = np.where(done, best, a + part * (b - a))
            f = value(x)
            same = np.sign(f) == np.sign(f_a)
            c, f_c = np.where(same, a, b), np.where(same, f_a, f_b)
            b, f_b = np.where(same, b, a), np.where(same, f_b, f_a)
            a, f_a = x, f
            first = np.abs(f_a) < np.abs(f_b)
            best = np.where(done, best, np.where(first, a, b))
            smallest = (0.5 * closest + 2 * TWO_ROUNDINGS * np.abs(best)) / np.abs(b - a)
            done |= ~(smallest <= 0.5) | (np.where(first, f_a, f_b) == 0)
            if done.all():
                break
            xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
            safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            curved = f_a / (f_b - f_a) * f_c / (f_b - f_c)
            curved += (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
            part = np.clip(np.where(safe, curved, 0.5), smallest, 1 - smallest)
    return best


def locate(batch: Batch, runs: Numbers) -> Crossings:
    """Locate crossings of steps before which runs have stopped, and let these go on or end."""
    crossed = batch.buffers["crossed"][runs]
    which, event, offset = np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0)
    for k in np.flatnonzero(crossed.any(axis=0)).tolist():
        here = np.flatnonzero(crossed[:, k])
        at_ends = crossed[here, k] != CROSSED_INSIDE
        own, found = Probe(batch, runs[here]).crossings(k, batch.watches[k].direction, at_ends)
        which, offset = np.append(which, here[own]), np.append(offset, found)
        event = np.append(event, np.full(len(own), k))
    stops = np.where(np.array([watch.stop for watch in batch.watches])[event], abs(offset), np.inf)
    last = np.full(len(runs), np.inf)
    np.minimum.at(last, which, stops)
    order = np.lexsort((event, np.abs(offset), which))
    order = order[np.abs(offset)[order] <= last[which[order]]]
    which, event, offset, stops = which[order], event[order], offset[order], stops[order]
    goes_on = runs[np.isinf(last)]
    batch.buffers["seen"][goes_on], batch.buffers["status"][goes_on] = 1.0, RUNNING
    times = batch.buffers["t"][runs[which], 0] + offset
    q, nu = (np.zeros((0, batch.buffers[name].shape[1])) for name in ("q", "nu"))
    if which.size:
        probe = Probe(batch, runs[which])
        probe.go_to(times)
        q, nu = (probe.now[name][: len(which)].copy() for name in ("q", "nu"))
    there = batch.conditions(runs[which], times)
    ended, first = np.unique(which[np.isfinite(stops)], return_index=True)
    if ended.size:
        first = np.flatnonzero(np.isfinite(stops))[first]
        names = np.array([watch.name for watch in batch.watches], dtype=object)
        Probe(batch, runs[ended]).end_at(times[first], names[event[first]])
    return Crossings(batch.model, event, batch.members[runs[which]], times, q, nu, there)
