"""Record runs as a trajectory: consistent states, and all signals that follow from them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import RunsFailed
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.signal_values import signal_values, update_balance
from axode.problems.simulate.inputs import plan_input
from axode.problems.simulate.runs import LAST, Runs
from axode.problems.singular.other_models import (
    GOOD_PIVOT,
    interpret_few_states,
    is_rounded,
    translate_speeds,
    values_elsewhere,
)
from axode.problems.singular.passing import release_constraints
from axode.problems.singular.pivots import find_smallest_pivots
from axode.problems.steps.methods import AUTOMATIC, IMPLICIT
from axode.problems.steps.step_acceptance import (
    EVENT,
    FINISHED,
    LEFT,
    NOT_FINITE,
    RUNNING,
    SINGULAR,
    UNDERFLOW,
)
from axode.problems.tracing import TracedFunction, call_traced

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
Places = tuple[Numbers, Numbers]  # run and row of some states
STATUS_WORDS = {
    FINISHED: "finished",
    RUNNING: "interrupted",
    LEFT: "interrupted",
    EVENT: "stopped by event",
    NOT_FINITE: "failed: not finite",
    UNDERFLOW: "failed: steps too short",
    SINGULAR: "failed: singular configuration",
}
SAME_CALL = 1e-12  # [s]: a sample this close before a call has its inputs
SAME_TIME = 1e-12  # relative: two samples that are nearer are one


def record(runs: Runs, batch: tuple[int, ...], seconds: float) -> Trajectory:
    """Make a trajectory of what the runs saved, with all columns that follow from it."""
    from axode.results.origin import Origin
    from axode.results.trajectory import Trajectory

    times, out, made_by = _samples(runs)
    model = runs.model
    conditions = _conditions(runs, times)
    elsewhere = _elsewhere(runs, out, made_by, conditions)
    values = _own_values(runs, times, out, conditions)
    for number, places in elsewhere.items():
        values[places] = _other_values(runs, number, places, out, conditions)
    if runs.passed:
        _overwrite_passed(runs, values, conditions)
    if elsewhere or runs.passed:
        update_balance(model, values)
    signals = tuple(model.signals)
    lengths = (~np.isnan(out[..., 0])).sum(axis=1)
    values[np.arange(len(times)) >= lengths[:, np.newaxis]] = np.nan  # inputs and constants too
    if batch:
        _warn_of_failures(runs)
    events = [e if batch else replace(e, index_of_run=None) for e in runs.events]
    return Trajectory(
        time=times,
        values=values.reshape(*batch, len(times), len(signals)),
        names=tuple(signal.name for signal in signals),
        units=tuple(signal.unit for signal in signals),
        kinds={signal.name: signal.kind for signal in signals},
        statuses=tuple(_statuses(runs)),
        lengths=lengths.reshape(batch),
        events=tuple(sorted(events, key=lambda e: e.time * runs.settings.direction)),
        info=_info(runs, seconds),
        origin=Origin(model, runs.p),
    )


def _samples(runs: Runs) -> tuple[Array, Array, Numbers]:
    """Times, saved states and which model made each; a single run ends where it stopped."""
    times, out, made_by = runs.settings.times, runs.out, runs.made_by
    reached = int((~np.isnan(out[..., 0])).sum(axis=1).max())
    times, out, made_by = times[:reached], out[:, :reached], made_by[:, :reached]
    last = runs.outcomes[0]
    if runs.count > 1 or last.last is None or not np.isfinite(last.last).all():
        return times, out, made_by
    ahead = runs.settings.direction * (last.time - times[-1])
    if ahead <= SAME_TIME * max(1.0, abs(last.time)):
        return times, out, made_by
    return (
        np.append(times, last.time),
        np.concatenate([out, last.last[np.newaxis, np.newaxis]], 1),
        np.concatenate([made_by, [[last.model]]], 1),
    )


def _own_values(runs: Runs, times: Array, out: Array, conditions: Conditions) -> Array:
    """Evaluate all signals of states in the model's own speeds."""
    q, nu, w = np.split(out, [runs.n_q, out.shape[-1] - 2], axis=-1)
    q, nu = _close(runs.model, q, conditions), np.ascontiguousarray(nu)
    u = _inputs(runs, times, q, nu, conditions)
    return signal_values(runs.model, q, nu, u, w, conditions=conditions)


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


def _other_values(
    runs: Runs, number: int, places: Places, out: Array, conditions: Conditions
) -> Array:
    """Evaluate all signals of some states by the model that made them."""
    run, row = places
    model = interpret_few_states(runs.models[number], len(run))
    there = conditions.at(places)
    q, nu, w = np.split(out[run, row], [runs.n_q, out.shape[-1] - 2], axis=-1)
    q, nu = _close(model, q, there), np.ascontiguousarray(nu)
    plan = runs.plans[number]
    u = np.zeros((len(run), len(model.inputs)))
    if plan.tape is not None:
        u[...] = call_traced(TracedFunction(plan.tape), q, nu, there)
    else:  # the same whatever the speeds
        u[...] = _inputs(runs, conditions.t[0], out[..., : runs.n_q], out, conditions)[run, row]
    return values_elsewhere(model, runs.model, q, nu, w, u, there)


def _overwrite_passed(runs: Runs, values: Array, conditions: Conditions) -> None:
    """Fill in samples where constraints lose rank: from all speeds, without constraint forces."""
    rows = values.shape[1]
    passed = {
        (run, row if row != LAST else rows - 1): x
        for (run, row), x in runs.passed.items()
        if row != LAST or runs.count == 1
    }
    places = tuple(np.array(list(passed)).T)
    free = release_constraints(runs.model)
    q, v, w = np.split(np.array(list(passed.values())), [runs.n_q, -2], axis=1)
    there = conditions.at(places)
    plan = plan_input(free, runs.given, runs.model.independent)
    if plan.tape is None:
        inputs = [k for k, signal in enumerate(runs.model.signals) if signal.kind == "input"]
        u = values[places][:, inputs]
    else:
        made = call_traced(TracedFunction(plan.tape), q, v, there)
        u = np.broadcast_to(made, (len(q), len(free.inputs)))
    values[places] = values_elsewhere(free, runs.model, q, v, w, u, there)


def _conditions(runs: Runs, times: Array) -> Conditions:
    """Time and parameters of all saved states, (runs, times)."""
    p = runs.p if runs.p is None or runs.p.ndim == 1 else runs.p[:, np.newaxis]
    return Conditions(np.broadcast_to(times, (runs.count, len(times))), p)


def _close(model: Model, q: Array, conditions: Conditions) -> Array:
    """Bring interpolated states back onto the holonomic constraints."""
    if not (model.facts.residual_rows or model.facts.quaternions):
        return q
    return model.evaluate("projection", {"q": np.ascontiguousarray(q)}, conditions.options)


def _inputs(runs: Runs, times: Array, q: Array, nu: Array, conditions: Conditions) -> Array:
    """Inputs at the saved times."""
    plan, model = runs.plan, runs.model
    shape = (*q.shape[:-1], len(model.inputs))
    if plan.constant is not None:
        constant = np.asarray(plan.constant)
        return np.array(
            np.broadcast_to(constant[..., np.newaxis, :] if constant.ndim > 1 else constant, shape)
        )
    if plan.sampled is not None:
        return np.array(np.broadcast_to(plan.sampled.at(times), shape))
    if plan.callback is not None:
        return _callback_inputs(runs, times, shape)
    assert plan.tape is not None
    made = call_traced(TracedFunction(plan.tape), q, nu, conditions)
    return np.array(np.broadcast_to(made, shape))


def _callback_inputs(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array:
    """Inputs that a callback gave, each held until the next call."""
    values = np.full(shape, np.nan)
    direction = runs.settings.direction
    for run in range(runs.count):
        mine = [(t, u) for number, t, u in runs.calls if number == run]
        if mine:
            called = direction * np.array([t for t, _ in mine])
            row = np.searchsorted(called, direction * times + SAME_CALL, side="right") - 1
            values[run] = np.array([u for _, u in mine])[np.clip(row, 0, len(mine) - 1)]
    return values


def _statuses(runs: Runs) -> Iterator[str]:
    for outcome in runs.outcomes:
        words = STATUS_WORDS[outcome.status]
        if outcome.status == EVENT:
            words += f" '{outcome.cause}'"
        elif outcome.status not in (FINISHED, RUNNING, LEFT):
            words += f" at t = {outcome.time:.6g} s, {outcome.cause}"
        yield words


def _warn_of_failures(runs: Runs) -> None:
    """Warn of runs of a batch that failed; a single one raises."""
    words = [STATUS_WORDS[outcome.status] for outcome in runs.outcomes]
    failed = Counter(word for word in words if word.startswith("failed"))
    if failed:
        kinds = ", ".join(f"{count} {word}" for word, count in failed.items())
        warnings.warn(
            f"{failed.total()} of {runs.count} runs failed ({kinds}); they are NaN beyond their "
            "ends. The trajectory's `statuses` tells why, its `lengths` how many samples each has.",
            RunsFailed,
            stacklevel=4,
        )


def _info(runs: Runs, seconds: float) -> dict[str, Any]:
    s = runs.settings
    took_over = s.method == AUTOMATIC and runs.stiff
    method = f"{s.stepper}, {IMPLICIT}" if took_over else s.stepper
    info: dict[str, Any] = {
        "model": runs.model.name,
        "method": method,
        "seconds": seconds,
        "runs": runs.count,
        "steps": int(runs.steps.sum()),
    }
    if s.place.target != "cpu":
        info |= {"target": s.place.target, "precision": s.place.precision}
    if s.method == "rk4":
        info |= {"step": s.step_size}
    else:
        info |= {"rtol": s.rtol, "atol": s.atol, "rejected": int(runs.rejected.sum())}
    if runs.p is not None and runs.p.ndim == 1:
        info["parameters"] = dict(zip(runs.model.parameters, runs.p.tolist(), strict=True))
    if runs.model.facts.bases:
        info["bases"] = runs.model.facts.bases
    if took_over:
        times = [item.time for item in runs.stiff.values()]
        info["took_over"] = {
            "method": IMPLICIT,
            "runs": len(times),
            "first": min(times),
            "last": max(times),
        }
    if runs.switched:
        info["switches"] = sum(map(len, runs.switched.values()))
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
