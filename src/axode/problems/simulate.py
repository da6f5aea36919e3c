"""Simulate: a mechanism's motion from a start, under inputs, with what it costs and does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.model import Model
from axode.errors import (
    InvalidArgument,
    LoopNotClosed,
    SimulationFailed,
    SingularConfiguration,
    UnknownName,
)
from axode.problems.assemble import State, assemble
from axode.problems.inputs import plan_input
from axode.problems.integrators import METHODS, NOT_FINITE, SINGULAR, UNDERFLOW
from axode.problems.progress import Progress
from axode.problems.record import recorded
from axode.problems.runs import Runs, Settings
from axode.problems.watches import Watch
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
    settings = _settings(method, duration, step, rtol, atol, save_every, t0, threads)
    plan = plan_input(model, input)
    p, batch_p = _parameters(model, parameters)
    q, nu, batch = _start(model, start, t0, p, batch_p)
    count = q.shape[0]
    if p is not None and p.ndim == 2 and p.shape[0] != count:
        p = np.ascontiguousarray(np.broadcast_to(p, (count, p.shape[1])))
    runs = Runs(model, plan, settings, tuple(events), q, nu, p)
    started = time.perf_counter()
    interrupted = False
    with Progress(model.name, progress) as bar:
        try:
            runs.advance(bar.update)
        except KeyboardInterrupt:
            interrupted = True
    seconds = time.perf_counter() - started
    trajectory = recorded(runs, batch, interrupted, seconds)
    if not batch:
        _raise_if_failed(runs, trajectory)
    return trajectory


def _settings(
    method: str, duration: float, step: float | None, rtol: float, atol: float,
    save_every: float | None, t0: float, threads: int | None,
) -> Settings:  # fmt: skip
    if method not in METHODS:
        raise UnknownName("simulate", "method", method, METHODS)
    numbers = {"duration": duration, "rtol": rtol, "atol": atol, "t0": t0}
    for name, value in numbers.items():
        if not np.isfinite(value):
            raise InvalidArgument(f"{name}: must be a finite number, got {value}")
    if duration == 0:
        raise InvalidArgument("duration: must not be zero")
    every = abs(duration) / 500 if save_every is None else float(save_every)
    if method == "rk4" and step is None:
        step = min(every, 1e-3)
    length = every if step is None else float(step)
    for name, value in (("rtol", rtol), ("atol", atol), ("save_every", every), ("step", length)):
        if not value > 0:
            raise InvalidArgument(f"{name}: must be > 0, got {value}")
    every = abs(duration) / max(1, round(abs(duration) / every))
    return Settings(method, float(t0), float(duration), length, every, float(rtol), float(atol),
                    threads)  # fmt: skip


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
    outcome = runs.outcomes[0]
    t = outcome.time
    if outcome.status == SINGULAR:
        raise SingularConfiguration(
            f"'{runs.model.name}' reaches a singular configuration at t = {t:.6g} s: its "
            "constraint rows lose rank, so that the motion is no longer determined.\n"
            "  The trajectory so far is in the error's .trajectory.", trajectory, t)  # fmt: skip
    if outcome.status in (NOT_FINITE, UNDERFLOW):
        cause = ("a number stopped being finite" if outcome.status == NOT_FINITE
                 else "steps became too short for the tolerances")  # fmt: skip
        raise SimulationFailed(
            f"'{runs.model.name}' failed at t = {t:.6g} s: {cause}.\n  Check the inputs near that "
            "time, loosen rtol, or watch for the configuration that causes it; the trajectory so "
            "far is in the error's .trajectory.", trajectory, t)  # fmt: skip
