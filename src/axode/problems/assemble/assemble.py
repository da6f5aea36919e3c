"""Assemble: a configuration that closes the loops, and speeds that keep them closed.

Runs that differ: what many runs have in common is solved once.

Most batches either have one start for all runs or a different one for each; both are recognised
without sorting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, renamed_keywords
from axode.errors import AxodeError, InvalidArgument, LoopNotClosed
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.model.state import State
from axode.names import as_names
from axode.problems.arguments import check_parameters, read_state, require_model, start_time
from axode.problems.assemble.closure import ClosureSystem, is_always_closed, parameters_of_closure
from axode.problems.assemble.start_speeds import consistent_speeds, find_speeds
from axode.problems.assemble.start_warnings import FailedStarts, check_dropped_rows
from axode.symbolic.algebra.casadi_interrupts import stoppable

Indices = npt.NDArray[np.intp]
SAMPLE = 4096  # runs by which the number of different ones is estimated
MOSTLY_DIFFERENT = 0.9  # of the sample: then every run is solved
MIXER = np.uint64(0x9E3779B97F4A7C15)  # an odd number without a pattern
SHIFT = np.uint64(29)


def find_distinct(columns: Sequence[Array], count: int) -> tuple[Indices, Indices | None]:
    """Find runs to solve, and the place among them of every run; None if all are solved.

    Equal runs may be left among those to solve, where looking for them costs more than it saves.

    Args:
        columns: What a run depends on, (count,) each.
        count: How many runs.
    """
    varying = [column for column in columns if not _is_constant(column)]
    if not count or (count > SAMPLE and varying and _are_mostly_different(varying, count)):
        return np.arange(count), None
    if not varying:
        return np.zeros(1, dtype=np.intp), np.broadcast_to(np.intp(0), count)
    _, first, which = np.unique(_hash(varying), return_index=True, return_inverse=True)
    which = which.reshape(-1)
    if len(first) == count or any((column != column[first][which]).any() for column in varying):
        return np.arange(count), None
    return first, which


def _is_constant(column: Array) -> bool:
    return not column.size or column.strides == (0,) or bool((column == column[0]).all())


def _are_mostly_different(columns: Sequence[Array], count: int) -> bool:
    """Estimate from runs at random places; evenly spaced ones would miss a pattern."""
    chosen = np.random.default_rng(0).integers(count, size=SAMPLE)
    sample = np.unique(chosen)
    found = np.unique(_hash([column[sample] for column in columns]))
    return len(found) > MOSTLY_DIFFERENT * len(sample)


def _hash(columns: Sequence[Array]) -> npt.NDArray[np.uint64]:
    """One whole number per run, equal for equal runs."""
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        mixed ^= np.ascontiguousarray(column + 0.0).view(np.uint64)  # the sign of zero is lost
        mixed *= MIXER
        mixed ^= mixed >> SHIFT
    return mixed


Array = npt.NDArray[np.float64]


@renamed_keywords(tries="attempts")
@stoppable
def assemble(
    model: Model,
    start: Any = None,
    *,
    fix: Iterable[str] | Mapping[str, float] = (),
    attempts: int = 1,
    seed: int = 0,
    t: float | None = None,
    parameters: Mapping[str, float] | None = None,
) -> State:
    """Find a state that closes every loop and touches the ground, near a guess.

    Args:
        model: What to assemble.
        start: State to start the search from, by name, as arrays `q` or `(q, nu)`, as a `State`, as
            `run.at(t)`, or a `Trajectory` for its end; home at rest unless given. Measures by name
            are met exactly, coordinates as nearly as the loops allow; a `RequestNotMetWarning`
            names those to which a measure or the ground gives another value.
        fix: Coordinates that must keep their value (or take the given one).
        attempts: Largest number of starts; those after the first are random.
        seed: Seed of the random starts.
        t: Time, where it is explicit [s]; that of `start` or zero unless given.
        parameters: Values by name instead of the defaults.

    Raises:
        LoopNotClosed: naming the worst row, its residual and the best configuration found.
        InvalidArgument: for parameters at which constraints hold that the model left out.
    """
    check_arguments(assemble, locals())
    require_model("assemble", model, contacts=True)
    check_parameters(model, parameters)
    given = read_state(model, start, "start")
    given.require_one("start")
    near = given.named if given.q is None else given.q
    guess, speeds, wanted = _split(model, near)
    if given.nu is not None:
        speeds = dict(zip(model.independent, given.nu.tolist(), strict=True))
    held = _fixed_places(model, fix, guess)
    conditions = Conditions.of(model, start_time(t, given), parameters)
    asked = _named_coordinates(model, near)
    closure = ClosureSystem(model, {n: np.array([v]) for n, v in wanted.items()}, held, conditions)
    guess = guess[np.newaxis]
    q = closure.close(guess, _untied(model, asked), attempts, seed)
    closure.warn_of_overruled(asked, guess, q)
    error = float(np.abs(closure.residual(q, np.arange(1))).max(initial=0.0))
    check_dropped_rows(model, q, conditions)
    nu = consistent_speeds(model, q, {n: np.array([v]) for n, v in speeds.items()}, conditions)
    return State(q[0], nu[0], error, model, conditions)


@dataclass(frozen=True)
class AssembledRuns:
    """States of many runs, and the runs that have none.

    Attributes:
        q, nu: Coordinates and independent speeds, (runs, size) each; NaN where there are none. May
            be one row for all runs, which cannot be written to.
        failed: Runs without a state, and why.
        first_error: Error that `assemble` raises for the first of them.
    """

    q: Array
    nu: Array
    failed: FailedStarts
    first_error: AxodeError | None = None


def assemble_many(
    model: Model, near: Mapping[str, Array], count: int, conditions: Conditions
) -> tuple[Array, Array]:
    """Assemble many states: coordinates and speeds, (count, size) each.

    Args:
        model: What to assemble.
        near: As for `assemble`, with one value per state.
        count: How many states.
        conditions: Time, and parameters of all states or one row per state.

    Raises:
        LoopNotClosed, InvalidArgument: as `assemble`, for the first state that cannot be assembled.
    """
    made = assemble_runs(model, near, count, conditions)
    if made.first_error is not None:
        raise made.first_error
    return made.q, made.nu


def assemble_runs(
    model: Model,
    near: Mapping[str, Array],
    count: int,
    conditions: Conditions,
    *,
    many: bool = False,
    target: str = "cpu",
) -> AssembledRuns:
    """Assemble many states and mark those that cannot be assembled.

    Args:
        model: What to assemble.
        near: As for `assemble`, with one value per state.
        count: How many states.
        conditions: Time, and parameters of all states or one row per state.
        many: Whether more are assembled elsewhere, so that compiling pays for few of them.
        target: Where many are closed, "cpu" or "cuda".
    """
    signals = model.signals
    named = signals.names(*STATE_KINDS).by_full_name(near)
    speeds = {name: value for name, value in named.items() if signals.depends_on_speeds(name)}
    places = {name: value for name, value in named.items() if name not in speeds}
    q = _place_directly(model, places, count)
    failed, error = FailedStarts(), None
    if q is None:
        asked = _named_coordinates(model, near)
        how = {"many": many, "target": target}
        q, failed, error = _close_many(model, places, asked, count, conditions, how)
    if not len(failed):
        nu, excluded, other = find_speeds(model, q, speeds, conditions)
        return AssembledRuns(q, nu, excluded, other)
    nu = np.full((count, len(model.independent)), np.nan)
    closed = np.delete(np.arange(count), failed.runs)
    if closed.size:
        wanted = {name: values[closed] for name, values in speeds.items()}
        nu[closed], excluded, _ = find_speeds(model, q[closed], wanted, conditions.at(closed))
        failed = failed.joined(replace(excluded, runs=closed[excluded.runs]))
    return AssembledRuns(q, nu, failed, error)


def _place_directly(model: Model, places: Mapping[str, Array], count: int) -> Array | None:
    """Take coordinates as given, where nothing ties them to each other."""
    tied = {model.coordinates[k] for four in facts_of(model).quaternions for k in four}
    if not set(places) <= set(model.coordinates) - tied or not is_always_closed(model):
        return None
    if not places:
        return np.broadcast_to(model.home, (count, len(model.home)))
    q = np.empty((count, len(model.home)))
    q[...] = model.home
    for name, values in places.items():
        if np.shape(values) not in ((), (count,)):
            raise InvalidArgument(f"'{name}': expected one number, got shape {np.shape(values)}")
        q[:, model.coordinates.index(name)] = values
    return q


def _close_many(
    model: Model,
    places: Mapping[str, Array],
    asked: Mapping[int, str],
    count: int,
    conditions: Conditions,
    how: Mapping[str, Any],
) -> tuple[Array, FailedStarts, LoopNotClosed | None]:
    """Find closed configurations, all together, those that many runs share once."""
    columns, p = list(places.values()), conditions.p
    if p is not None and p.ndim > 1:
        measured = not set(places) <= set(model.coordinates)
        columns += [p[:, k] for k in parameters_of_closure(model, measured)]
    first, which = find_distinct(columns, count)
    every = which is None
    named = {name: values if every else values[first] for name, values in places.items()}
    guess = np.tile(model.home, (len(first), 1))
    for place in asked:
        guess[:, place] = named.pop(model.coordinates[place])
    there = conditions if every else conditions.at(first)
    closure = ClosureSystem(model, named, [], there, **how)
    q, error = closure.find(guess, _untied(model, asked))
    failed, reason = closure.failures(q, error)
    q[failed.runs] = np.nan
    closure.warn_of_overruled(asked, guess, q)
    if which is None:
        return q, failed, reason
    shared = np.broadcast_to(q[0], (count, q.shape[1])) if len(first) == 1 else q[which]
    return shared, failed.spread(which, len(first)), reason


def _split(model: Model, near: Any) -> tuple[Array, dict[str, float], dict[str, float]]:
    """Split what the user gave into a guess of q, wanted speeds and wanted measures."""
    q: Array = model.home
    if near is None:
        return q, {}, {}
    if not isinstance(near, Mapping):
        return near.copy(), {}, {}
    speeds, wanted = {}, {}
    for name, value in model.signals.names(*STATE_KINDS).by_full_name(near).items():
        if name in model.coordinates:
            q[model.coordinates.index(name)] = float(value)
        elif model.signals.depends_on_speeds(name):
            speeds[name] = float(value)
        else:
            wanted[name] = float(value)
    return q, speeds, wanted


def _fixed_places(model: Model, fix: Any, guess: Array) -> list[int]:
    held = []
    for given in as_names(fix):
        index = model.signals.resolve(given, "coordinate").index
        if isinstance(fix, Mapping):
            guess[index] = float(fix[given])
        held.append(index)
    return held


def _named_coordinates(model: Model, near: Any) -> dict[int, str]:
    """Names of coordinates that the user gave, by the coordinate's place."""
    if not isinstance(near, Mapping):
        return {}
    found = {given: model.signals.resolve(given, *STATE_KINDS) for given in near}
    return {s.index: given for given, s in found.items() if s.kind == "coordinate"}


def _untied(model: Model, places: Iterable[int]) -> list[int]:
    """Places that are not those of quaternions, whose four parts are tied to each other."""
    tied = {k for four in facts_of(model).quaternions for k in four}
    return [place for place in places if place not in tied]


def read_states(
    model: Model, given: Any, options: Mapping[str, Any]
) -> tuple[Array, Array, Array | None, Conditions]:
    """Read states in any form, with batch axes: q, nu, inputs if known, time and parameters.

    States by name are assembled; those of a `Trajectory` are all of its samples, with its inputs.

    Args:
        model: What they are states of.
        given: The states; home at rest if None.
        options: Time `t` and `parameters`.

    Raises:
        InvalidArgument: for unknown options, and as `read_state`.
    """
    from axode.results.trajectory import Trajectory

    unknown = sorted(set(options) - {"t", "parameters"})
    if unknown:
        raise InvalidArgument(f"unknown keyword {unknown[0]!r}; expected t or parameters")
    if isinstance(given, Trajectory):
        t = np.broadcast_to(given.time, (*given.batch, len(given)))
        names = (model.coordinates, model.independent, model.inputs)
        q, nu, u = (
            np.stack([given[n] for n in group], axis=-1) if group else np.zeros((*t.shape, 0))
            for group in names
        )
        return q, nu, u, Conditions.of(model, t, options.get("parameters"))
    state = read_state(model, given, "state")
    t = options.get("t", 0.0 if state.time is None else state.time)
    conditions = Conditions.of(model, t, options.get("parameters"))
    if state.q is not None and state.nu is not None:
        q, nu = state.q, state.nu
        batch = np.broadcast_shapes(q.shape[:-1], nu.shape[:-1], conditions.shape)
    else:
        batch = np.broadcast_shapes(*state.shapes, conditions.shape)
        flat = {name: np.broadcast_to(a, batch).ravel() for name, a in state.named.items()}
        spread = conditions.spread(batch)
        q, nu = assemble_many(model, flat, len(spread.t), spread)
        q, nu = (a.reshape(*batch, a.shape[-1]) for a in (q, nu))
    q, nu = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, nu))
    return q, nu, None, conditions
