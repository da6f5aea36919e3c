"""Breaks: the times at which formulas of inputs and of prescribed motions switch, run by run.

Steps of every method end there, so that no pulse is stepped over. Where a prescribed rate jumps,
the speeds of the other bodies jump with it, by an impulse that keeps the generalized momentum; a
prescribed position cannot jump.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import formula_tape
from axode.codegen.tape.rounding_bounds import rounding_bounds
from axode.codegen.tape.switching import Switches, switching_times
from axode.codegen.targets.jit import check_interrupts
from axode.errors import InvalidArgument, NotApplicable
from axode.model.conditions import MOMENTUM, Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, function_tape, model_on_cpu
from axode.numerics.tolerances import ROUNDING, SUM_ROUNDING
from axode.problems.steps.rates import Dynamics
from axode.problems.steps.switch_search import NEVER
from axode.results.sweep_arrays import as_host

Array = npt.NDArray[np.float64]
ROUNDINGS = 64.0  # of a formula that pieces of one motion may differ by
FURTHER = 1e3  # distances from a break, within which its slope is measured

MAX_BREAKS = 1 << 27  # of all runs of a batch


@dataclass(frozen=True)
class BreakTable:
    """Breaks of some runs.

    Attributes:
        rows: Times in the order in which a run comes to them, and whether speeds jump there; the
            last row is never reached. (breaks, 2) if all runs share it, else (runs, breaks, 2).
        direction: 1 forwards in time, -1 backwards.
    """

    rows: Array
    direction: float

    def past(self, t: npt.ArrayLike) -> Array:
        """Count the breaks that are past at the time of each run, (runs, 1) or (1,)."""
        now = np.asarray(t, dtype=float)
        passed = self.direction * (self.rows[..., 0] - now) <= 0
        return np.asarray(passed.sum(axis=-1, keepdims=True), dtype=float)

    def impulses(self, begin: float, end: Array) -> Array:
        """Return the times of jumps between a time and the end of any run."""
        stops = self.rows[..., 0]
        last = end.max() if self.direction > 0 else end.min()
        ends = last if self.rows.ndim == 2 else end[:, np.newaxis]
        inside = (self.direction * (stops - begin) > 0) & (self.direction * (stops - ends) <= 0)
        return np.unique(stops[inside & (self.rows[..., 1] != 0)])


def break_table(
    model: Model,
    d: Dynamics,
    span: tuple[float, float],
    p: Array | None,
    gains: Array | None,
    *,
    refuse: bool = False,
) -> BreakTable:
    """Find the breaks of all runs.

    Args:
        model: What moves.
        d: Its steps.
        span: Times of their start and end.
        p, gains: What they keep.
        refuse: Whether prescribed rates must not jump either.

    Raises:
        InvalidArgument: if a prescribed position jumps, or a rate that must not, or there are too
            many breaks.
        NotApplicable: if a prescribed rate jumps, and the model was read from a file that lacks
            what that needs.
    """
    direction = 1.0 if span[1] >= span[0] else -1.0
    begin, end = sorted(span)
    known = {"p": p, "gains": gains}
    kept = {name: np.asarray(as_host(x), dtype=float) for name, x in known.items() if x is not None}
    own = [name for some in d.switches for name in some.kept if kept[name].ndim > 1]
    count = len(kept[own[0]]) if own else 1
    runs, times = np.zeros(0, dtype=np.intp), np.zeros(0)
    for some in d.switches:
        given = {name: kept[name] for name in some.kept}
        if d.periods and some == sample_switches(d.periods):
            time = _sample_times(d.periods, begin, end)
            run = np.zeros(len(time), dtype=np.intp)
        else:
            run, time = switching_times(some, begin, end, given, check_interrupts)
        if own and not set(own) & set(some.kept):  # all runs share these
            run, time = np.repeat(np.arange(count), len(time)), np.tile(time, count)
        runs, times = np.concatenate([runs, run]), np.concatenate([times, time])
    if runs.size > MAX_BREAKS:
        raise InvalidArgument(
            f"'{model.name}': formulas of time switch {runs.size} times in {count} runs, and at "
            f"most {MAX_BREAKS} times are kept; simulate fewer runs at a time"
        )
    order = np.lexsort((times, runs))
    runs, times = runs[order], times[order]
    # breaks that differ by rounding are one
    before: Array = np.where(np.diff(runs, prepend=-1) > 0, begin, np.roll(times, 1))
    smallest = 0.5 * d.inwards**2  # of steps: at zero, times have no spacing that counts
    nearest = np.maximum(0.5 * d.inwards * np.maximum(np.abs(before), np.abs(times)), smallest)
    apart = np.flatnonzero(times - before > nearest)
    runs, times = runs[apart], times[apart]
    jumps = _jumps(model, d, times, {n: x[runs] if x.ndim > 1 else x for n, x in kept.items()})
    stops = times
    if direction < 0:
        runs, stops = runs[::-1], np.minimum(np.nextafter(times, -np.inf), times - smallest)[::-1]
        jumps = jumps[::-1]
    if refuse and jumps.any():
        k, speed = np.argwhere(jumps)[0].tolist()
        raise InvalidArgument(
            f"'{model.name}': the prescribed motion makes {model.speed_names[speed]} jump by "
            f"{jumps[k, speed]:.3g} at t = {times[len(times) - 1 - k if direction < 0 else k]:.15g}"
            ' s, and jumps="refuse" allows no impulses; round the corner of the motion, such as by '
            'ax.motions, or take jumps="impulse"'
        )
    counts = np.bincount(runs, minlength=count)
    rows = np.zeros((count, counts.max(initial=0) + 1, 2))
    rows[..., 0] = direction * NEVER
    order = np.argsort(runs, kind="stable")
    place = np.arange(len(runs)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows[runs[order], place, 0] = stops[order]
    rows[runs[order], place, 1] = np.abs(jumps[order]).max(axis=1) > 0
    return BreakTable(rows if own else rows[0], direction)


@lru_cache
def sample_switches(periods: tuple[float, ...]) -> Switches:
    """Collect the samples that a law takes, at whole multiples of its periods."""
    tape = formula_tape("samples", {"t": 1}, lambda t: {"at": [t[0] / x for x in periods]})
    return Switches(tape, (True,) * len(periods))


def _sample_times(periods: Sequence[float], begin: float, end: float) -> Array:
    """Find the multiples of periods after `begin`, up to `end`, and what rounds to that."""
    count = sum((end - begin) / period for period in periods)
    if count > MAX_BREAKS:
        raise InvalidArgument(
            f"a law takes {count:.3g} samples in {end - begin:g} s, and at most {MAX_BREAKS} times "
            "are kept; simulate a shorter time"
        )
    times = [
        period * np.arange(math.floor(begin / period), math.ceil(end / period) + 1)
        for period in periods
    ]
    found = np.unique(np.concatenate(times))
    near = SUM_ROUNDING * max(abs(begin), abs(end))
    return np.minimum(found[(found > begin + near) & (found <= end + near)], end)


def _jumps(model: Model, d: Dynamics, times: Array, kept: dict[str, Array]) -> Array:
    """Jumps of joint speeds at breaks, (breaks, speeds), zero where rounding makes them."""
    if not facts_of(model).driven or not times.size:
        return np.zeros((len(times), 1))
    model, home = model_on_cpu(model), np.array(model.home)
    off = d.inwards * np.maximum(np.abs(times), d.inwards)
    still = np.zeros(len(model.independent))

    def both(function: str) -> tuple[Array, Array]:
        """Values before and after every break."""
        state = {"q": home, "nu": still}
        made = [
            model.evaluate(function, state, Conditions(t, kept.get("p")).options)
            for t in (times - off, times + off)
        ]
        return made[0], made[1]

    before, after = both("residual")
    step: Array = np.abs(after - before)
    bad = step > 0
    some = np.flatnonzero(bad.any(axis=1))
    if some.size:
        p = kept.get("p")
        given = {"q": home, "p": p if p is None or p.ndim == 1 else p[some]}
        bad[some] &= step[some] > _continuous_change(model, times[some], off[some], given)
    if bad.any():
        k, row = (int(i[0]) for i in np.nonzero(bad))
        name = facts_of(model).residual_rows[row].removesuffix(".prescribed")
        raise InvalidArgument(
            f"prescribe '{name}': the motion jumps by {step[k, row]:.3g} at t = {times[k]:.15g} s, "
            "and no finite force moves a body like that; let it move there within some time, such "
            "as by ax.motions"
        )
    before, after = both("joint_speeds")
    jumps: Array = after - before
    jumps[np.abs(jumps) <= ROUNDING * np.maximum(1.0, np.abs(after))] = 0.0
    if jumps.any() and d.jump is None:
        raise NotApplicable(
            f"'{model.name}': prescribed rates jump at t = {times[jumps.any(axis=1)][0]:.15g} s, "
            f"which needs the function '{MOMENTUM}', and the model's file has none.\n"
            "  Save it with the model: model.save(path, functions=[*model.functions, "
            f"'{MOMENTUM}'])"
        )
    return jumps


def _continuous_change(
    model: Model, times: Array, off: Array, given: Mapping[str, Array | None]
) -> Array:
    """Bound what residuals change by across breaks if they do not jump, (breaks, residuals).

    That is their slope on both sides, and the rounding of the formulas.
    """
    tape, count = function_tape(model, "residual"), len(times)

    def sample(t: Array) -> tuple[Array, Array]:
        known = {**given, "t": t[:, np.newaxis]}
        arrays = [
            np.broadcast_to(np.asarray(known[port.name]), (count, port.size)).reshape(
                (count, *port.shape)
            )
            for port in tape.inputs
        ]
        made = rounding_bounds(tape, arrays, "float64")
        return made.results[0], ROUNDINGS * made.bounds[0] + ROUNDING * np.abs(made.results[0])

    change = np.zeros((count, tape.outputs[0].size))
    for side in (-off, off):
        (near, rounding), (far, _) = sample(times + side), sample(times + FURTHER * side)
        change += rounding + 2 * np.abs(far - near) / (FURTHER - 1)
    return change


def refuse_switching_times(
    model: Model, d: Dynamics, of: Mapping[str, Sequence[int]], gains: Sequence[str] = ()
) -> None:
    """Refuse derivatives by what the times of breaks depend on: they leave that part out.

    Args:
        model: What moves.
        d: Its steps.
        of: Buffers by which to differentiate, and the elements of each.
        gains: Names of the elements of the buffer `gains`.

    Raises:
        NotApplicable: naming one.
    """
    names = {"p": tuple(model.parameters), "gains": tuple(gains)}
    for some in d.switches:
        for buffer, element in some.arguments:
            if element in of.get(buffer, ()):
                known = names[buffer]
                what = f"'{known[element]}'" if element < len(known) else "a gain"
                raise NotApplicable(
                    f"'{model.name}': a formula of time switches at times that depend on {what}, "
                    "and derivatives by these are not computed; leave it out and compare runs, or "
                    "use a smooth function, such as 0.5 + 0.5 * tanh((t - t1) / width)"
                )
