"""Simulate: a mechanism's motion from a start, under inputs, with what it costs and does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.model import Model
from axode.errors import (
    InvalidArgument,
    LoopNotClosed,
    SimulationFailed,
    SingularConfiguration,
)
from axode.problems.assemble import State, assembled
from axode.problems.inputs import Callback, plan_input
from axode.problems.interrupt import Interrupt
from axode.problems.progress import Progress
from axode.problems.record import recorded
from axode.problems.rollouts import Place
from axode.problems.runs import Runs
from axode.problems.settings import Settings
from axode.problems.steps import NOT_FINITE, SINGULAR, UNDERFLOW
from axode.problems.watches import Watch, checked_watches

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
OPEN = 1e-6  # [m or rad]: a start that is open by more is refused


def simulate(
    model: Model, duration: float, *, start: Any = None, input: Any = None,
    method: str = "dopri5", step: float | None = None, rtol: float = 1e-8, atol: float = 1e-10,
    save_every: float | None = None, events: Sequence[Watch] = (),
    parameters: Mapping[str, npt.ArrayLike] | None = None, t0: float = 0.0,
    threads: int | None = None, progress: bool | None = None, target: str | None = None,
    precision: str | None = None,
) -> Trajectory:  # fmt: skip
    """Integrate the motion and record it.

    Args:
        model: What moves.
        duration: How long [s]; negative runs backwards in time.
        start: Coordinates, speeds and measures by name (arrays make a batch of runs), a `State`, a
            `Trajectory` to go on from, or arrays `(q, nu)` with any number of runs; home at rest
            unless given.
        input: Numbers or formulas of time by name; a function of the state, traced once;
            `Sampled(...)`; `Callback(...)`. Motor limits are kept.
        method: "dopri5" (adaptive) or "rk4" (fixed steps).
        step: Of rk4 [s].
        rtol, atol: Error a step may make, relative and absolute (dopri5).
        save_every: Time between recorded samples [s]; 1/500 of the duration unless given.
        events: `Watch` objects: crossings to locate, perhaps to stop at.
        parameters: Values by name instead of the defaults; arrays make a batch of runs.
        t0: Time at the start [s].
        threads: How many threads share a batch.
        progress: Show a bar; by itself after a second on a terminal.
        target: Where the steps are computed, "cpu" or "cuda"; where the model's functions run
            unless given.
        precision: Of the steps, "float64" or, on a GPU with rk4, "float32"; the model's unless
            given.

    Raises:
        SimulationFailed: if a number stops being finite or steps become too short; the error
            carries the trajectory so far, as does SingularConfiguration.
    """
    settings = Settings(method, float(t0), float(duration), step, save_every, float(rtol),
                        float(atol), threads, Place.of(model, target, precision))  # fmt: skip
    model = model.on_cpu()  # starts and records are computed there
    watches = checked_watches(events)
    plan = plan_input(model, input)
    q, nu, p, batch = _start(model, start, t0, _parameters(model, parameters), plan.batch)
    started = time.perf_counter()
    with Progress(model.name, progress) as bar, Interrupt() as interrupt:
        if plan.callback is not None:
            plan = replace(plan, callback=Callback(interrupt.users_turn(plan.callback.function)))
        runs = Runs(model, input, plan.spread(batch), settings, watches, q, nu, p)

        def look(share: float) -> None:
            interrupt.check()
            bar.update(share)

        with suppress(KeyboardInterrupt):  # what was computed is returned
            runs.advance(look)
    trajectory = recorded(runs, batch, time.perf_counter() - started)
    if not batch:
        _raise_if_failed(runs, trajectory)
    return trajectory


def _parameters(model: Model, given: Any) -> Array | None:
    """Parameter values, (*batch, size), if the model's are free."""
    if not model.parameters or model.facts.fixed:
        if given:
            raise InvalidArgument(
                "this model's parameters are fixed; compile(parameters='free') to change them"
                if model.parameters else f"model '{model.name}' has no parameters")  # fmt: skip
        return None
    values = model.parameter_vector(given)
    if not np.isfinite(values).all():
        worst = int(np.argmax(~np.isfinite(values).reshape(-1, values.shape[-1]).all(axis=0)))
        raise InvalidArgument(f"parameter '{list(model.parameters)[worst]}': must be finite")
    return values


def _named_start(start: Any) -> dict[str, Array]:
    if start is not None and not isinstance(start, Mapping):
        raise InvalidArgument(
            "start: expected coordinates, speeds and measures by name, a State of assemble, or "
            f"(q, nu), got {start!r}"
        )
    arrays = {name: np.asarray(value, dtype=float) for name, value in (start or {}).items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise InvalidArgument(f"start '{name}': must be finite")
    return arrays


def _start(
    model: Model, start: Any, t0: float, p: Array | None, others: tuple[int, ...]
) -> tuple[Array, Array, Array | None, tuple[int, ...]]:
    """Coordinates, speeds and parameters of all runs, and the shape of the batch."""
    if isinstance(start, State):
        start = (start.q, start.nu)
    elif hasattr(start, "final"):  # a trajectory goes on where it ended
        last = start.final
        start = tuple(np.stack([last[name] for name in names], axis=-1)
                      for names in (model.coordinates, model.independent))  # fmt: skip
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
        return q, nu, p, batch
    flat = {name: np.broadcast_to(a, batch).reshape(count) for name, a in named.items()}
    q, nu = assembled(model, flat, count, t0, p)
    return q, nu, p, batch


def _flat(model: Model, given: list[Array], batch: tuple[int, ...]) -> tuple[Array, Array]:
    sizes = (len(model.coordinates), len(model.independent))
    if len(given) != 2 or any(a.ndim == 0 or a.shape[-1] != n
                              for a, n in zip(given, sizes, strict=False)):  # fmt: skip
        shapes = ", ".join(str(a.shape) for a in given)
        raise InvalidArgument(
            f"start: (q, nu) of sizes {sizes[0]} and {sizes[1]} are needed, got {shapes}"
        )
    q, nu = (np.broadcast_to(a, (*batch, n)).reshape(-1, n)
             for a, n in zip(given, sizes, strict=True))  # fmt: skip
    if not (np.isfinite(q).all() and np.isfinite(nu).all()):
        raise InvalidArgument("start: every number must be finite")
    return np.array(q), np.array(nu)


def _refuse_open(model: Model, q: Array, t0: float, p: Array | None) -> None:
    for four in map(list, model.facts.quaternions):
        if np.abs(np.linalg.norm(q[:, four], axis=1) - 1).max() > OPEN:
            names = ", ".join(model.coordinates[k] for k in four)
            raise InvalidArgument(f"start: the quaternion {names} must have length one")
    if not model.residual_rows:
        return
    more: dict[str, Any] = {}
    if p is not None:
        more["parameters"] = dict(zip(model.parameters, p.T, strict=True))
    residual = np.abs(model.residual(q, t=np.full(len(q), t0), **more))
    if not residual.max(initial=0.0) <= OPEN:
        run, row = np.unravel_index(int(np.argmax(residual)), residual.shape)
        raise LoopNotClosed(
            model.residual_rows[row], float(residual[run, row]), model.facts.residual_units[row],
            dict(zip(model.coordinates, q[run].tolist(), strict=True)),
            "Call axode.assemble(model, near=...) first, or give the start by name.",
        )  # fmt: skip


def _raise_if_failed(runs: Runs, trajectory: Trajectory) -> None:
    outcome, name = runs.outcomes[0], runs.model.name
    t = outcome.time
    kept = "  The trajectory so far is in the error's .trajectory."
    if outcome.status == SINGULAR:
        raise SingularConfiguration(
            f"'{name}' reaches a singular configuration at t = {t:.6g} s, where the motion is no "
            f"longer determined: {outcome.word}.\n{kept}", trajectory, t)  # fmt: skip
    if outcome.status in (NOT_FINITE, UNDERFLOW):
        remedy = ("Check the inputs and the state at that time." if outcome.status == NOT_FINITE
                  else "Loosen rtol and atol, use method='rk4', or smooth what jumps.")  # fmt: skip
        raise SimulationFailed(
            f"'{name}' failed at t = {t:.6g} s: {outcome.word}.\n  {remedy}\n{kept}",
            trajectory, t)  # fmt: skip
