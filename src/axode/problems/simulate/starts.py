"""Starts of all runs: coordinates, speeds and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, InvalidArgument, LoopNotClosed, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.memory import ModelWithMemory, without_memory
from axode.model.model import Model
from axode.model.model_parts import facts_of, row_numbers_of
from axode.numerics.tolerances import OPEN, ROUNDING
from axode.problems.arguments import StateArgument
from axode.problems.assemble.assemble import assemble_runs
from axode.problems.assemble.closure import allowed_residual
from axode.problems.assemble.start_warnings import FailedStarts, check_dropped_rows
from axode.problems.inputs.inputs import InputPlan
from axode.problems.inputs.tracing import TracedFunction
from axode.problems.other_models import rows_at
from axode.problems.singular.pivots import find_smallest_pivots

DEEPEST = 1e-4  # [m or rad] below the ground or beyond a stop, which long steps may leave behind
Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Starts:
    """Starts of all runs.

    Attributes:
        q, nu: Coordinates and independent speeds, (runs, size) each; NaN where there are none. May
            be one row for all runs, which cannot be written to.
        p: Free parameters, (size,) or (runs, size).
        batch: Shape of the batch.
        failed: Runs without a start, and why.
        first_error: Error of the first of them.
        fresh: Places of speeds that are memory of a law and that the start leaves open.
    """

    q: Array
    nu: Array
    p: Array | None
    batch: tuple[int, ...]
    failed: FailedStarts = field(default_factory=FailedStarts)
    first_error: AxodeError | None = None
    fresh: tuple[int, ...] = ()

    def part(self, runs: Indices) -> Starts:
        """Return those of some runs, in ascending order, of the same batch."""
        p = self.p if self.p is None or self.p.ndim == 1 else self.p[runs]
        failed = self.failed.part(runs)
        return replace(self, q=self.q[runs], nu=self.nu[runs], p=p, failed=failed)

    def require_some(self) -> None:
        """Raise the error of a single run, or of the first one if all failed."""
        if self.first_error is not None and (not self.batch or len(self.failed) == len(self.q)):
            raise self.first_error


def find_starts(
    model: Model,
    start: StateArgument,
    t0: float,
    p: Array | None,
    others: tuple[int, ...],
    *,
    many: bool = False,
    target: str = "cpu",
) -> Starts:
    """Find the starts of all runs, and mark those that have none.

    Args:
        model: What moves.
        start: State to start from, as the user gave it.
        t0: Time at the start [s].
        p: Free parameters, (*batch, size).
        others: Shape of the batch that inputs make.
        many: Whether more runs start elsewhere, so that compiling pays for few of them.
        target: Where many runs are assembled, "cpu" or "cuda".

    Raises:
        InvalidArgument, LoopNotClosed: for arrays that are no closed configurations.
    """
    if isinstance(model, ModelWithMemory):
        return _find_with_memory(model, start, t0, p, others, many=many, target=target)
    batch = shared_batch(others, start.shapes + ([] if p is None else [p.shape[:-1]]))
    count = int(np.prod(batch, dtype=int))
    if p is not None and p.ndim > 1:
        p = np.broadcast_to(p, (*batch, p.shape[-1])).reshape(count, -1)
    conditions = Conditions(t0, p)
    if start.q is not None:
        q, nu = (
            np.array(np.broadcast_to(a, (*batch, a.shape[-1])).reshape(count, -1))
            for a in (start.q, start.nu)
            if a is not None
        )
        made = Starts(_closed(model, q, conditions), nu, p, batch)
    else:
        flat = {name: np.broadcast_to(a, batch).reshape(count) for name, a in start.named.items()}
        found = assemble_runs(model, flat, count, conditions, many=many, target=target)
        made = Starts(found.q, found.nu, p, batch, found.failed, found.first_error)
    check_dropped_rows(model, made.q, conditions)
    return made


def _find_with_memory(
    model: ModelWithMemory,
    start: StateArgument,
    t0: float,
    p: Array | None,
    others: tuple[int, ...],
    **options: Any,
) -> Starts:
    """Find the starts of the mechanism, and begin with what the law remembers."""
    names = {state.name for state in model.memory}
    memory = {n: x for n, x in start.named.items() if n in names} | dict(start.memory)
    named = {n: x for n, x in start.named.items() if n not in names}
    start = replace(start, named=named, memory={})
    shared = shared_batch(others, [np.shape(value) for value in memory.values()])
    begun = find_starts(model.base, start, t0, p, shared, **options)
    count, nu = int(np.prod(begun.batch, dtype=int)), begun.nu
    columns = [
        np.broadcast_to(memory.get(state.name, state.start), begun.batch).reshape(count)
        for state in model.memory
    ]
    nu = np.concatenate(
        [np.broadcast_to(nu, (count, nu.shape[1])), np.stack(columns, axis=1)], axis=1
    )
    first = len(facts_of(model.base).independent)
    fresh = tuple(first + k for k, s in enumerate(model.memory) if s.name not in memory)
    q = np.broadcast_to(begun.q, (count, begun.q.shape[1]))
    return replace(begun, q=np.ascontiguousarray(q), nu=nu, fresh=fresh)


def refuse_sunk(model: Model, starts: Starts, t0: float, deepest: float = DEEPEST) -> Starts:
    """Mark runs that start below the ground or beyond a stop as those that have no start.

    Args:
        model: What moves.
        starts: Where.
        t0: Time at the start [s].
        deepest: Depth that is allowed [m or rad].
    """
    base = without_memory(model)
    table, names = facts_of(base).contact_table, base.coordinates
    if not table.normals:
        return starts
    nu = np.ascontiguousarray(starts.nu[:, : len(base.independent)])
    there = Conditions(np.full(len(nu), float(t0)), starts.p)

    def depth_at(q: Array) -> Array:
        rows = base.evaluate("contact_rows", {"q": q, "nu": nu}, there.options)
        return -table.split(rows, nu.shape[1]).gap

    depth = depth_at(np.ascontiguousarray(starts.q))
    worst = np.argmax(depth, axis=1)
    size = depth[np.arange(len(depth)), worst]
    runs = np.flatnonzero(size > deepest)  # not where a start is NaN
    if not runs.size:
        return starts
    contacts, sides = zip(*(table.rows[r].rsplit(".", 1) for r in table.normals), strict=True)
    causes = tuple(f"'{contact}' is below its ground or beyond its stop" for contact in contacts)
    sunk = FailedStarts(runs, worst[runs], size[runs], causes, ("",) * len(causes))
    first = int(worst[runs[0]])
    lifts = ".z" if sides[first] == "touch" else contacts[first]
    place = next((k for k, n in enumerate(names) if n.endswith(lifts)), 0)
    enough = "..."
    for way in (1, -1):  # up, or to either side of a stop
        q = np.array(starts.q)
        raised = f"{q[runs[0], place] + way * size[runs[0]]:.6g}"
        q[runs[0], place] = float(raised)
        if depth_at(q)[runs[0]].max() <= deepest:
            enough = raised
            break
    moved = f'{{"{names[place]}": {enough}}}'
    error = InvalidArgument(
        f"start: '{contacts[first]}' is {size[runs[0]]:.3g} below its ground or beyond its stop; "
        f"raise it, or begin within the stops.\n  Remedy: set_home({moved}) before derive, or "
        f"start={moved}"
    )
    q = np.array(starts.q)
    q[runs] = np.nan
    failed, reported = starts.failed.joined(sunk), starts.first_error or error
    return replace(starts, q=q, failed=failed, first_error=reported)


def take_first_samples(plan: InputPlan, starts: Starts, t0: float) -> Starts:
    """Let a law take its samples at the start, where the start leaves open what they change."""
    if plan.updates is None or not starts.fresh:
        return starts
    tape = plan.updates.tape
    known: dict[str, Any] = {"t": np.full((len(starts.q), 1), float(t0))}
    known |= {
        "q": starts.q,
        "nu": starts.nu,
        "p": starts.p,
        "gains": plan.gains,
        "due": np.ones(len(plan.updates.periods)),
    }
    arrays = (np.ascontiguousarray(known[port.name]) for port in tape.inputs)
    nu, fresh = np.array(starts.nu), list(starts.fresh)
    nu[:, fresh] = TracedFunction(tape)(*arrays)[:, fresh]
    return replace(starts, nu=nu)


def shared_batch(others: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape to which the batches of start, parameters and inputs are broadcast."""
    try:
        return np.broadcast_shapes(others, *shapes)
    except ValueError:
        raise InvalidArgument(
            f"start, parameters and inputs make batches that do not fit: {[others, *shapes]}"
        ) from None


def require_runs(batch: tuple[int, ...]) -> None:
    """Refuse a batch of no runs."""
    if 0 in batch:
        raise InvalidArgument(
            f"start, parameters and inputs make a batch of no runs, of shape {batch}; give at "
            "least one"
        )


def check_start_speeds(model: Model, q: Array, t0: float, p: Array | None) -> None:
    """Check that the independent speeds determine the others at the start.

    Close to such a configuration a run changes to other speeds. Only runs that failed at
    once are checked, because the pivots have to be compiled.

    Raises:
        SingularConfiguration: naming independent speeds that would do.
    """
    if row_numbers_of(model) is None or "pivots" not in model.functions:
        return
    conditions = Conditions(np.full(len(q), float(t0)), p)
    pivots = find_smallest_pivots(model, q, conditions)
    if not pivots.min(initial=1.0) < ROUNDING:
        return
    run = int(np.argmin(pivots))
    rows = rows_at(model, q[run], conditions.at(run))
    if rows.lost:
        return
    better = [model.speed_names[j] for j in rows.independent]
    raise SingularConfiguration(
        f"'{model.name}' starts where its independent speeds {', '.join(model.independent)} do not "
        f"determine the others.\n  Derive it with some that do: derive(independent={better!r})",
        None,
        t0,
    )


def _closed(model: Model, q: Array, conditions: Conditions) -> Array:
    """Configurations that are closed.

    Raises:
        InvalidArgument: for a quaternion that is not of length one.
        LoopNotClosed: for configurations that are open.
    """
    for four in map(list, facts_of(model).quaternions):
        if np.abs(np.linalg.norm(q[:, four], axis=1) - 1).max() > OPEN:
            names = ", ".join(model.coordinates[k] for k in four)
            raise InvalidArgument(f"start: the quaternion {names} must have length one")
    if not model.residual_rows:
        return q
    residual = np.abs(model.residual(q, **conditions.options))
    allowed = allowed_residual(model)
    if (residual <= allowed).all():
        return q
    worst, row = np.unravel_index(int(np.argmax(residual / allowed)), residual.shape)
    raise LoopNotClosed(
        model.residual_rows[row],
        float(residual[worst, row]),
        facts_of(model).residual_units[row],
        dict(zip(model.coordinates, q[worst].tolist(), strict=True)),
        "Call axode.assemble(model, start) first, or give the start by name.",
    )
