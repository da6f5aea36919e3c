"""Starts of all runs: coordinates, speeds and parameters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, LoopNotClosed, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.problems.arguments import GivenState, time_moves
from axode.problems.assemble.assemble import assemble_many
from axode.problems.assemble.closure import OPEN, ClosureSystem, allowed_residual
from axode.problems.assemble.dropped_rows import check_dropped_rows
from axode.problems.singular.pivots import find_smallest_pivots

Array = npt.NDArray[np.float64]
SINGULAR_PIVOT = 1e-12  # below it speeds divide by rounding errors


def starts(
    model: Model, start: GivenState, t0: float, p: Array | None, others: tuple[int, ...]
) -> tuple[Array, Array, Array | None, tuple[int, ...]]:
    """Coordinates, speeds and parameters of all runs, and the shape of the batch."""
    batch = shared_batch(others, start.shapes + ([] if p is None else [p.shape[:-1]]))
    count = int(np.prod(batch, dtype=int))
    if p is not None and p.ndim > 1:
        p = np.broadcast_to(p, (*batch, p.shape[-1])).reshape(count, -1)
    if start.q is not None:
        q, nu = (
            np.array(np.broadcast_to(a, (*batch, a.shape[-1])).reshape(count, -1))
            for a in (start.q, start.nu)
            if a is not None
        )
        q = _closed(model, q, Conditions(t0, p), start, batch)
    else:
        flat = {name: np.broadcast_to(a, batch).reshape(count) for name, a in start.named.items()}
        q, nu = assemble_many(model, flat, count, Conditions(t0, p))
    check_dropped_rows(model, q, Conditions(t0, p))
    return q, nu, p, batch


def shared_batch(others: tuple[int, ...], shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Shape to which the batches of start, parameters and inputs are broadcast."""
    try:
        return np.broadcast_shapes(others, *shapes)
    except ValueError:
        raise InvalidArgument(
            f"start, parameters and inputs make batches that do not fit: {[others, *shapes]}"
        ) from None


def check_start_speeds(model: Model, q: Array, t0: float, p: Array | None) -> None:
    """Check that the independent speeds determine the others at the start.

    A little beside such a configuration a run changes to other speeds. Only runs that failed at
    once are checked, because the pivots have to be compiled.

    Raises:
        SingularConfiguration: naming independent speeds that would do.
    """
    if not model.has_equations or "pivots" not in model.functions:
        return
    conditions = Conditions(np.full(len(q), float(t0)), p)
    pivots = find_smallest_pivots(model, q, conditions)
    if not pivots.min(initial=1.0) < SINGULAR_PIVOT:
        return
    from axode.symbolic.constraints.row_choice import rows_at

    run = int(np.argmin(pivots))
    equations = model.equations
    rows = rows_at(equations.system, q[run], t0, model.parameter_vector(conditions.at(run).p))
    if rows.lost:
        return
    better = [equations.speeds[j] for j in rows.independent]
    raise SingularConfiguration(
        f"'{model.name}' starts where its independent speeds {', '.join(model.independent)} do not "
        f"determine the others.\n  Derive it with some that do: derive(independent={better!r})",
        None,
        t0,
    )


def _closed(
    model: Model, q: Array, conditions: Conditions, start: GivenState, batch: tuple[int, ...]
) -> Array:
    """Configurations that are closed, those between samples of a trajectory made so.

    Raises:
        InvalidArgument: for a quaternion that is not of length one.
        LoopNotClosed: for other configurations that are open.
    """
    for four in map(list, model.facts.quaternions):
        if np.abs(np.linalg.norm(q[:, four], axis=1) - 1).max() > OPEN:
            names = ", ".join(model.coordinates[k] for k in four)
            raise InvalidArgument(f"start: the quaternion {names} must have length one")
    if not model.residual_rows:
        return q
    residual = np.abs(model.residual(q, **conditions.options))
    allowed = allowed_residual(model)
    if (residual <= allowed).all():
        return q
    time = None if start.time is None else np.broadcast_to(start.time, batch).reshape(-1)
    if start.interpolated and not time_moves(model, q, time, conditions):
        return ClosureSystem(model, {}, [], conditions).close(q)
    worst, row = np.unravel_index(int(np.argmax(residual / allowed)), residual.shape)
    raise LoopNotClosed(
        model.residual_rows[row],
        float(residual[worst, row]),
        model.facts.residual_units[row],
        dict(zip(model.coordinates, q[worst].tolist(), strict=True)),
        "Call axode.assemble(model, start) first, or give the start by name.",
    )
