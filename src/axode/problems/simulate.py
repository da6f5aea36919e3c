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
from axode.problems.assemble import State, assemble
from axode.problems.inputs import Callback, plan_input
from axode.problems.interrupt import Interrupt
from axode.problems.progress import Progress
from axode.problems.record import recorded
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
    threads: int | None = None, progress: bool | None = None,
) -> Trajectory:  # fmt: skip
    """Integrate the motion and record it.

    Args:
        model: What moves.
        duration: How long [s]; negative runs backwards in time.
        start: Coordinates, speeds and measures by name (arrays make a batch of runs), a `State`, or
            arrays `(q, nu)` with any number of runs; home at rest unless given.
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

    Raises:
        SimulationFailed: if a number stops being finite or steps become too short; the error
            carries the trajectory so far, as does SingularConfiguration.
    """
    settings = Settings(method, float(t0), float(duration), step, save_every, float(rtol),
                        float(atol), threads)  # fmt: skip
    watches = checked_watches(events)
    plan = plan_input(model, input)
    p, batch_p = _parameters(model, parameters)
    q, nu, batch = _start(model, start, t0, p, np.broadcast_shapes(batch_p, plan.batch))
    if p is not None and p.ndim == 2:
        p = np.broadcast_to(p.reshape(*batch_p, -1), (*batch, p.shape[1])).reshape(len(q), -1)
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


def _parameters(model: Model, given: Any) -> tuple[Array | None, tuple[int, ...]]:
    """Parameter values, (size,) or (runs, size), and the batch shape they make."""
    if not model.parameters or model.facts.fixed:
        if given:
            raise InvalidArgument(
                "this model's parameters are fixed; compile(parameters='free') to change them"
                if model.parameters else f"model '{model.name}' has no parameters")  # fmt: skip
        return None, ()
    values = model.parameter_vector(given)
    return np.ascontiguousarray(values.reshape(-1, values.shape[-1])
                                if values.ndim > 1 else values), values.shape[:-1]  # fmt: skip


def _start(
    model: Model, start: Any, t0: float, p: Array | None, batch_p: tuple[int, ...]
) -> tuple[Array, Array, tuple[int, ...]]:
    """Coordinates and speeds of all runs, and the shape of the batch."""
    if isinstance(start, State):
        start = (start.q, start.nu)
    if isinstance(start, tuple):
        q, nu = (np.asarray(x, dtype=float) for x in start)
        batch = np.broadcast_shapes(q.shape[:-1], nu.shape[:-1], batch_p)
        q = np.broadcast_to(q, (*batch, len(model.coordinates))).reshape(-1, q.shape[-1])
        nu = np.broadcast_to(nu, (*batch, len(model.independent))).reshape(-1, nu.shape[-1])
        _refuse_open(model, q, t0, p)
        return np.array(q), np.array(nu), batch
    given = dict(start or {})
    arrays = {name: np.asarray(value, dtype=float) for name, value in given.items()}
    batch = np.broadcast_shapes(batch_p, *(a.shape for a in arrays.values()))
    count = int(np.prod(batch, dtype=int))
    flat = {name: np.broadcast_to(a, batch).reshape(count) for name, a in arrays.items()}
    states = []
    for run in range(count):
        own = None if p is None else dict(zip(model.parameters, p if p.ndim == 1 else p[run],
                                              strict=True))  # fmt: skip
        near = {name: float(values[run]) for name, values in flat.items()}
        states.append(assemble(model, near, t=t0, parameters=own))
        if run == 0 and count > 1 and not arrays and (p is None or p.ndim == 1):
            states = states * count
            break
    return (np.array([s.q for s in states]), np.array([s.nu for s in states]), batch)


def _refuse_open(model: Model, q: Array, t0: float, p: Array | None) -> None:
    if not model.residual_rows:
        return
    more: dict[str, Any] = {}
    if p is not None:
        more["parameters"] = dict(zip(model.parameters, p.T, strict=True))
    residual = np.abs(model.residual(q, t=t0, **more))
    if residual.max(initial=0.0) > OPEN:
        row = int(np.argmax(residual.max(axis=0)))
        raise LoopNotClosed(
            model.residual_rows[row], float(residual.max()), "m", {},
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
