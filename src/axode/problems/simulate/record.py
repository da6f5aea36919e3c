"""Record runs as a trajectory: consistent states, and all signals that follow from them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.operations import Kind
from axode.codegen.tape.tape import Tape
from axode.errors import RunsFailedWarning
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import SAME_TIME
from axode.problems.inputs.inputs import plan_input
from axode.problems.inputs.tracing import TracedFunction, call_traced
from axode.problems.other_models import (
    GOOD_PIVOT,
    SignalsElsewhere,
    interpret_few_states,
    is_rounded,
    translate_speeds,
)
from axode.problems.runs.batch import Outcomes
from axode.problems.simulate.runs import LAST, Runs
from axode.problems.simulate.saved_states import (
    STATE,
    Correction,
    Places,
    RecordedColumns,
    SavedStates,
)
from axode.problems.singular.pivots import find_smallest_pivots
from axode.problems.steps.audit import warn_of_inaccuracy
from axode.problems.steps.compiled import AUTOMATIC, IMPLICIT, is_audited, tape_of
from axode.problems.steps.step_acceptance import (
    CHATTERING,
    EVENT,
    FINISHED,
    INACCURATE,
    LEFT,
    NOT_FINITE,
    RUNNING,
    SINGULAR,
    UNASSEMBLED,
    UNDERFLOW,
    UNSOLVED,
)
from axode.results.columns import INACCURATE_TEXT, LazyValue, describe_inaccuracy

if TYPE_CHECKING:
    from axode.problems.simulate.continuing import KnownMotion
    from axode.results.columns import Event
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
STATUS_WORDS = {
    FINISHED: "finished",
    RUNNING: "interrupted",
    LEFT: "interrupted",
    EVENT: "stopped by event",
    NOT_FINITE: "failed: not finite",
    UNDERFLOW: "failed: steps too short",
    SINGULAR: "failed: singular configuration",
    UNASSEMBLED: "failed: not assembled",
    CHATTERING: "failed: chattering",
    UNSOLVED: "failed: contact forces not found",
    INACCURATE: INACCURATE_TEXT,
}
FAILED = (NOT_FINITE, UNDERFLOW, SINGULAR, UNASSEMBLED, CHATTERING, UNSOLVED)


def record(
    runs: Runs, batch: tuple[int, ...], seconds: float, motion: KnownMotion | None = None
) -> Trajectory:
    """Make a trajectory of what the runs saved, with all columns that follow from it.

    Args:
        runs: Runs that have ended.
        batch: Shape of their batch.
        seconds: How long they took.
        motion: What computes their motion between the samples, if anything does.
    """
    from axode.results.columns import Origin
    from axode.results.trajectory import Trajectory

    times, out, made_by = _samples(runs)
    saved = saved_states(runs, times, out, made_by)
    names, units, kinds = runs.model.signals.columns
    lengths = runs.lengths if runs.count > 1 else np.array([len(times)])
    if batch:
        _warn_of_failures(runs.outcomes.status)
    warn_of_inaccuracy(runs.outcomes.inaccuracies)
    return Trajectory(
        time=times,
        values=RecordedColumns(saved, (*batch, len(times)), motion=motion),  # type: ignore[arg-type]
        names=names,
        units=units,
        kinds=kinds,
        statuses=_statuses(runs.outcomes),  # type: ignore[arg-type]
        lengths=lengths.reshape(batch),
        events=_events(runs, batch),  # type: ignore[arg-type]
        info=_info(runs, seconds),
        origin=Origin(runs.model, runs.p),
    )


def _samples(runs: Runs) -> tuple[Array, Array, Numbers]:
    """Times, saved states and which model made each; a single run ends where it stopped."""
    times, out, made_by = runs.settings.times, runs.out, runs.made_by
    reached = int(runs.lengths.max())
    if runs.lengths.min() < len(times):
        out[np.arange(len(times)) >= runs.lengths[:, np.newaxis]] = np.nan
    times, made_by = times[:reached], made_by[:, :reached]
    out = np.ascontiguousarray(out[:, :reached])
    t, last = float(runs.outcomes.time[0]), runs.outcomes.last[:1]
    ahead = runs.settings.direction * (t - times[-1])
    if runs.count > 1 or not np.isfinite(last).all() or ahead <= SAME_TIME * max(1.0, abs(t)):
        return times, out, made_by
    return (
        np.append(times, t),
        np.concatenate([out, last[:, np.newaxis]], axis=1),
        np.concatenate([made_by, runs.outcomes.model[:1, np.newaxis]], axis=1),
    )


def saved_states(runs: Runs, times: Array, out: Array, made_by: Numbers) -> SavedStates:
    """Saved states, closed and in the model's own speeds, both in place."""
    model, conditions = runs.model, _conditions(runs, times)
    elsewhere = _elsewhere(runs, out, made_by, conditions)
    saved = SavedStates(model, out, conditions, _inputs(runs, times, out.shape[:2]))
    corrections = [
        _other_signals(runs, number, places, saved) for number, places in elsewhere.items()
    ]
    if runs.passed:
        corrections.append(_passed_signals(runs, saved))
    _close(model, saved.arrays["q"], conditions)
    for correction in corrections:
        for signal in model.signals:
            if signal.function in STATE:
                correction.write(signal, saved.arrays[signal.function], signal.index)
    return replace(saved, corrections=tuple(corrections))


def _elsewhere(
    runs: Runs, out: Array, made_by: Numbers, conditions: Conditions
) -> dict[int, Places]:
    """Find states that the model's own speeds do not describe, by number of the model that does.

    All others are translated into the model's own speeds, in `out`.
    """
    n, found = runs.n_q, {}
    for number in range(1, len(runs.models)):
        run, row = np.nonzero(made_by == number)
        if not run.size:
            continue
        q, nu = out[run, row, :n], out[run, row, n:-2]
        there = conditions.at((run, row))
        poor = find_smallest_pivots(runs.model, q, there) < GOOD_PIVOT
        if is_rounded(runs.model):  # rows that contradict each other do not describe one state
            poor |= runs.models[number].rows != runs.model.rows
        own = translate_speeds(runs.models[number], runs.model.independent, q, nu, there)
        out[run[~poor], row[~poor], n:-2] = own[~poor]
        if poor.any():
            found[number] = (run[poor], row[poor])
    return found


def _other_signals(runs: Runs, number: int, places: Places, saved: SavedStates) -> Correction:
    """Take the signals of some states from the model that made them."""
    count = len(places[0])
    model = interpret_few_states(runs.models[number], count)
    there = saved.conditions.at(places)
    q, nu, w = (saved.arrays[name][places] for name in STATE)
    _close(model, q, there)
    tape = runs.plans[number].tape

    def inputs() -> Array:
        if tape is None:  # the same whatever the speeds
            return saved.u[places]
        made = call_traced(TracedFunction(tape), q, nu, there)
        return np.broadcast_to(made, (count, len(model.inputs)))

    signals = SignalsElsewhere(model, runs.model, q, nu, w, inputs, there)
    return Correction(places, np.arange(count), signals)


def _passed_signals(runs: Runs, saved: SavedStates) -> Correction:
    """Take samples where constraints lose rank from all speeds, without constraint forces."""
    from axode.problems.singular.continuation import remove_constraints

    rows = saved.states.shape[1]
    passed = {
        (run, row if row != LAST else rows - 1): x
        for (run, row), x in runs.passed.items()
        if row != LAST or runs.count == 1
    }
    run, row = np.array(list(passed)).T
    free = remove_constraints(runs.model)
    q, v, w = np.split(np.array(list(passed.values())), [runs.n_q, -2], axis=1)
    there = saved.conditions.at((run, row))
    plan = plan_input(free, runs.given, runs.model.independent, gains=True)
    if plan.tape is None:
        u = saved.u[run, row]
    else:
        made = call_traced(TracedFunction(plan.tape), q, v, there)
        u = np.broadcast_to(made, (len(q), len(free.inputs)))
    signals = SignalsElsewhere(free, runs.model, q, v, w, u, there)
    return Correction((run, row), np.arange(len(q)), signals)


def _conditions(runs: Runs, times: Array) -> Conditions:
    """Time and parameters of all saved states, (runs, times)."""

    def own(array: Array | None) -> Array | None:
        return array if array is None or array.ndim == 1 else array[:, np.newaxis]

    t = np.broadcast_to(times, (runs.count, len(times)))
    return Conditions(t, own(runs.p), own(runs.plan.gains))


def _close(model: Model, q: Array, conditions: Conditions) -> None:
    """Bring interpolated states back onto the holonomic constraints, in place."""
    if not (facts_of(model).residual_rows or facts_of(model).quaternions):
        return
    tape = tape_of(model, "projection")
    elements = np.arange(q.shape[-1])
    if (tape.kinds == Kind.INPUT).all() and (tape.operands[tape.results, 1] == elements).all():
        return  # nothing can open
    model.evaluate("projection", {"q": q}, {**conditions.options, "out": q})


def _inputs(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array | Tape:
    """Inputs at the saved times, or the tape that computes them from the states."""
    plan, shape = runs.plan, (*shape, len(runs.model.inputs))
    if plan.tape is not None:
        return plan.tape
    if plan.callback is not None:
        return _callback_inputs(runs, times, shape)
    if plan.sampled is not None:
        return np.broadcast_to(plan.sampled.at(times), shape)
    constant = np.asarray(plan.constant)
    return np.broadcast_to(constant[:, np.newaxis] if constant.ndim > 1 else constant, shape)


def _callback_inputs(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array:
    """Inputs that a callback gave, each held until the next call."""
    values = np.full(shape, np.nan)
    direction = runs.settings.direction
    calls: dict[int, list[tuple[float, Array]]] = {}
    for run, t, u in runs.calls:
        calls.setdefault(run, []).append((t, u))
    for run, own in calls.items():
        called = direction * np.array([t for t, _ in own])
        row = np.searchsorted(called, direction * times + SAME_TIME, side="right") - 1
        values[run] = np.array([u for _, u in own])[np.clip(row, 0, len(own) - 1)]
    return values


def _statuses(ended: Outcomes) -> LazyValue:
    """Texts of how each run ended, made when they are first read."""
    status, cause, time, off = ended.status, ended.cause, ended.time, ended.inaccuracies

    def make(_: Trajectory) -> tuple[str, ...]:
        words = np.array([STATUS_WORDS.get(code, "") for code in range(max(STATUS_WORDS) + 1)])
        texts = words.astype(object)[status]
        event = status == EVENT
        texts[event] += " '" + cause[event] + "'"
        doubtful = off > 0
        texts[doubtful & ~event] = ""
        texts[doubtful & event] += ", "
        texts[doubtful] += f"{INACCURATE_TEXT}: " + describe_inaccuracy(off[doubtful])
        failed = np.isin(status, FAILED)
        texts[failed] += np.char.mod(" at t = %.6g s, ", time[failed]) + cause[failed]
        return tuple(texts.tolist())

    return LazyValue(make)


def _events(runs: Runs, batch: tuple[int, ...]) -> LazyValue:
    """Events of all runs in the order of time, made when they are first read."""
    crossings, others, watches = runs.crossings, runs.events, runs.task.events
    direction = runs.settings.direction

    def make(_: Trajectory) -> tuple[Event, ...]:
        found = [*(e for located in crossings for e in located.events(watches)), *others]
        if not batch:
            found = [replace(event, index_of_run=None) for event in found]
        return tuple(sorted(found, key=lambda event: event.time * direction))

    return LazyValue(make)


def _warn_of_failures(status: Numbers) -> None:
    """Warn of runs of a batch that failed; a single one raises."""
    failed = status[np.isin(status, FAILED)]
    if failed.size:
        codes, counts = np.unique(failed, return_counts=True)
        pairs = zip(codes.tolist(), counts.tolist(), strict=True)
        kinds = ", ".join(f"{count} {STATUS_WORDS[code]}" for code, count in pairs)
        warnings.warn(
            f"{failed.size} of {status.size} runs failed ({kinds}); they are NaN beyond their "
            "ends. The trajectory's `statuses` has the reasons, its `lengths` their samples.",
            RunsFailedWarning,
            stacklevel=4,
        )


def _info(runs: Runs, seconds: float) -> dict[str, Any]:
    s = runs.settings
    stiff = runs.stiff.times
    took_over = s.method == AUTOMATIC and stiff.size > 0
    method = f"{s.stepper}, {IMPLICIT}" if took_over else s.stepper
    info: dict[str, Any] = {
        "model": runs.model.name,
        "method": method,
        "seconds": seconds,
        "runs": runs.count,
        "steps": int(runs.steps.sum()),
    }
    info["energy_tolerance"] = s.energy_tolerance if is_audited(runs.model) else None
    if s.place.target != "cpu":
        info |= {"target": s.place.target, "precision": s.place.precision}
    if not s.adaptive:
        info |= {"step": s.step_size}
    else:
        info |= {"rtol": s.rtol, "atol": s.atol, "rejected": int(runs.rejected.sum())}
    if runs.p is not None and runs.p.ndim == 1:
        info["parameters"] = dict(zip(runs.model.parameters, runs.p.tolist(), strict=True))
    if facts_of(runs.model).bases:
        info["bases"] = facts_of(runs.model).bases
    if took_over:
        info["took_over"] = {
            "method": IMPLICIT,
            "runs": stiff.size,
            "first": stiff.min(),
            "last": stiff.max(),
        }
    if runs.contact_work is not None:
        lost = -runs.contact_work
        rows = facts_of(runs.model).contact_table.rows
        info["contact_losses"] = dict(zip(rows, lost[0] if len(lost) == 1 else lost.T, strict=True))
    if runs.impulses:
        info["impulses"] = sorted(runs.impulses)
    if runs.switches:
        info["switches"] = runs.switches
    if runs.passages:
        info["passed"] = [
            {
                "run": passage.run,
                "time": passage.landing.start,
                "until": passage.landing.time,
                "what": passage.description,
                "correction": passage.landing.correction,
                "uncertainty": passage.landing.uncertainty,
            }
            for passage in runs.passages
        ]
    return info
