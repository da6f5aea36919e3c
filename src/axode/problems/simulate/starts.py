"""Starts of all runs: coordinates, speeds and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, LoopNotClosed, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.named_arguments import as_numbers
from axode.model.state import State
from axode.problems.assemble.assemble import assembled
from axode.problems.assemble.dropped_rows import check_dropped_rows
from axode.problems.singular.other_models import measure_disagreement
from axode.problems.singular.pivots import find_smallest_pivots

Array = npt.NDArray[np.float64]
OPEN = 1e-6  # [m or rad]: a start that is open by more is refused
SINGULAR_PIVOT = 1e-12  # below it speeds divide by rounding errors


def _named_start(start: Any) -> dict[str, Array]:
    if start is not None and not isinstance(start, Mapping):
        raise InvalidArgument(
            "start: expected coordinates, speeds and measures by name, a State of assemble, or "
            f"(q, nu), got {start!r}"
        )
    arrays = {name: as_numbers(f"start '{name}'", value) for name, value in (start or {}).items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InvalidArgument(f"start '{name}': must be finite")
    return arrays


def starts(
    model: Model, start: Any, t0: float, p: Array | None, others: tuple[int, ...]
) -> tuple[Array, Array, Array | None, tuple[int, ...]]:
    """Coordinates, speeds and parameters of all runs, and the shape of the batch."""
    if isinstance(start, State):
        start = (start.q, start.nu)
    elif hasattr(start, "final"):  # a trajectory goes on where it ended
        last = start.final
        start = tuple(
            np.stack([last[name] for name in names], axis=-1)
            for names in (model.coordinates, model.independent)
        )
    given = [np.asarray(x, dtype=float) for x in start] if isinstance(start, tuple) else []
    named = {} if given else _named_start(start)
    shapes = [a.shape[:-1] for a in given] + [a.shape for a in named.values()]
    shapes += [] if p is None else [p.shape[:-1]]
    try:
        batch = np.broadcast_shapes(others, *shapes)
    except ValueError:
        raise InvalidArgument(
            f"start, parameters and inputs make batches that do not fit: {[others, *shapes]}"
        ) from None
    count = int(np.prod(batch, dtype=int))
    if p is not None and p.ndim > 1:
        p = np.broadcast_to(p, (*batch, p.shape[-1])).reshape(count, -1)
    if given:
        q, nu = _flat(model, given, batch)
        _refuse_open(model, q, t0, p)
    else:
        flat = {name: np.broadcast_to(a, batch).reshape(count) for name, a in named.items()}
        q, nu = assembled(model, flat, count, t0, p)
    check_dropped_rows(model, q, t0, p)
    return q, nu, p, batch


def _flat(model: Model, given: list[Array], batch: tuple[int, ...]) -> tuple[Array, Array]:
    sizes = (len(model.coordinates), len(model.independent))
    if len(given) != 2 or any(
        a.ndim == 0 or a.shape[-1] != n for a, n in zip(given, sizes, strict=False)
    ):
        shapes = ", ".join(str(a.shape) for a in given)
        raise InvalidArgument(
            f"start: (q, nu) of sizes {sizes[0]} and {sizes[1]} are needed, got {shapes}"
        )
    q, nu = (
        np.broadcast_to(a, (*batch, n)).reshape(-1, n) for a, n in zip(given, sizes, strict=True)
    )
    if not (np.isfinite(q).all() and np.isfinite(nu).all()):
        raise InvalidArgument("start: every number must be finite")
    return np.array(q), np.array(nu)


def check_singular_start(model: Model, q: Array, t0: float, p: Array | None) -> None:
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


def _refuse_open(model: Model, q: Array, t0: float, p: Array | None) -> None:
    for four in map(list, model.facts.quaternions):
        if np.abs(np.linalg.norm(q[:, four], axis=1) - 1).max() > OPEN:
            names = ", ".join(model.coordinates[k] for k in four)
            raise InvalidArgument(f"start: the quaternion {names} must have length one")
    if not model.residual_rows:
        return
    residual = np.abs(model.residual(q, **Conditions(t0, p).options))
    if not residual.max(initial=0.0) <= max(OPEN, measure_disagreement(model)):
        run, row = np.unravel_index(int(np.argmax(residual)), residual.shape)
        raise LoopNotClosed(
            model.residual_rows[row],
            float(residual[run, row]),
            model.facts.residual_units[row],
            dict(zip(model.coordinates, q[run].tolist(), strict=True)),
            "Call axode.assemble(model, near=...) first, or give the start by name.",
        )
