"""Starts of all runs: coordinates, speeds and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, InvalidArgument, LoopNotClosed, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, row_numbers_of
from axode.numerics.tolerances import OPEN, ROUNDING
from axode.problems.arguments import StateArgument
from axode.problems.assemble.assemble import assemble_runs
from axode.problems.assemble.closure import allowed_residual
from axode.problems.assemble.dropped_rows import check_dropped_rows
from axode.problems.assemble.failed_starts import FailedStarts
from axode.problems.other_models import rows_at
from axode.problems.singular.pivots import find_smallest_pivots

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
    """

    q: Array
    nu: Array
    p: Array | None
    batch: tuple[int, ...]
    failed: FailedStarts = field(default_factory=FailedStarts)
    first_error: AxodeError | None = None

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
