"""Trajectories from runs: states made consistent, and everything that follows from them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.codegen.llvm import CompiledFunction
from axode.codegen.model import Model
from axode.errors import RunsFailed
from axode.problems.runs import Runs
from axode.problems.steps import EVENT, FINISHED, LEFT, NOT_FINITE, RUNNING, SINGULAR, UNDERFLOW

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
ENERGY_NAMES = ("kinetic", "potential", "supplied", "dissipated", "error")
STATUS_WORDS = {
    FINISHED: "finished", RUNNING: "interrupted", LEFT: "interrupted",
    EVENT: "stopped by event", NOT_FINITE: "failed: not finite",
    UNDERFLOW: "failed: steps too short", SINGULAR: "failed: singular configuration",
}  # fmt: skip
CALLED_AT = 1e-12  # [s]: a sample this close before a call has its inputs
SAME_TIME = 1e-12  # relative: two samples that are nearer are one


def recorded(runs: Runs, batch: tuple[int, ...], seconds: float) -> Trajectory:
    """What the runs saved, with speeds, inputs, energies, residuals and measures."""
    from axode.results.origin import Origin
    from axode.results.trajectory import Trajectory

    times, out = _samples(runs)
    model = runs.model
    q, nu, w = np.split(out, [runs.n_q, out.shape[-1] - 2], axis=-1)
    options = _options(runs, times)
    q, nu = _closed(model, q, options), np.ascontiguousarray(nu)
    u = _inputs(runs, times, q, nu, options)
    columns = list(state_columns(model, q, nu, w, u, options))
    values = np.concatenate([block for _, _, _, block in columns], axis=-1)
    names = tuple(n for ns, _, _, _ in columns for n in ns)
    units = tuple(u for _, us, _, _ in columns for u in us)
    kinds = {n: kind for ns, _, kind, _ in columns for n in ns}
    kinds |= {name: "independent" for name in model.independent}
    lengths = (~np.isnan(out[..., 0])).sum(axis=1)
    values[np.arange(len(times)) >= lengths[:, np.newaxis]] = np.nan  # inputs and constants too
    if batch:
        _warn_of_failures(runs)
    events = [e if batch else replace(e, index_of_run=None) for e in runs.events]
    return Trajectory(
        time=times, values=values.reshape(*batch, len(times), len(names)), names=names,
        units=units, kinds=kinds, statuses=tuple(_statuses(runs)), lengths=lengths.reshape(batch),
        events=tuple(sorted(events, key=lambda e: e.time * runs.settings.way)),
        info=_info(runs, seconds), origin=Origin(model, runs.p),
    )  # fmt: skip


def _samples(runs: Runs) -> tuple[Array, Array]:
    """Times and saved states, as far as any run came; a single run ends with where it stopped."""
    times, out = runs.settings.times, runs.out
    reached = int((~np.isnan(out[..., 0])).sum(axis=1).max())
    times, out = times[:reached], out[:, :reached]
    last = runs.outcomes[0]
    if runs.count > 1 or last.last is None or not np.isfinite(last.last).all():
        return times, out
    ahead = runs.settings.way * (last.time - times[-1])
    if ahead <= SAME_TIME * max(1.0, abs(last.time)):
        return times, out
    return np.append(times, last.time), np.concatenate([out, last.last[np.newaxis, np.newaxis]], 1)


def _options(runs: Runs, times: Array) -> dict[str, Any]:
    options: dict[str, Any] = {"t": np.broadcast_to(times, (runs.count, len(times)))}
    if runs.p is not None:
        columns = runs.p.T if runs.p.ndim == 1 else runs.p.T[:, :, np.newaxis]
        options["parameters"] = dict(zip(runs.model.parameters, columns, strict=True))
    return options


def _closed(model: Model, q: Array, options: Any) -> Array:
    """Interpolated states brought back onto the holonomic rows."""
    if not (model.facts.residual_rows or model.facts.quaternions):
        return q
    return model.evaluate("projection", {"q": np.ascontiguousarray(q)}, options)


def _inputs(runs: Runs, times: Array, q: Array, nu: Array, options: Any) -> Array:
    """Inputs at the saved times."""
    plan, model = runs.plan, runs.model
    shape = (*q.shape[:-1], len(model.inputs))
    if plan.constant is not None:
        constant = np.asarray(plan.constant)
        return np.array(np.broadcast_to(
            constant[..., np.newaxis, :] if constant.ndim > 1 else constant, shape))  # fmt: skip
    if plan.sampled is not None:
        return np.array(np.broadcast_to(plan.sampled.at(times), shape))
    if plan.callback is not None:
        return _called(runs, times, shape)
    assert plan.tape is not None
    known = {"t": options["t"][..., np.newaxis], "q": np.ascontiguousarray(q), "nu": nu}
    if runs.p is not None:
        known["p"] = runs.p if runs.p.ndim == 1 else runs.p[:, np.newaxis, :]
    arrays = [np.ascontiguousarray(known[port.name]) for port in plan.tape.inputs]
    made: Array = CompiledFunction(plan.tape)(*arrays)
    return np.array(np.broadcast_to(made, shape))


def _called(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array:
    """Inputs that a callback gave, held until it was called again."""
    values = np.full(shape, np.nan)
    way = runs.settings.way
    for run in range(runs.count):
        mine = [(t, u) for number, t, u in runs.calls if number == run]
        if mine:
            called = way * np.array([t for t, _ in mine])
            row = np.searchsorted(called, way * times + CALLED_AT, side="right") - 1
            values[run] = np.array([u for _, u in mine])[np.clip(row, 0, len(mine) - 1)]
    return values


def state_columns(
    model: Model, q: Array, nu: Array, w: Array, u: Array, options: Any
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str, Array]]:
    """Names, units, kind and values of everything that follows from states and inputs."""
    q, nu, u = (np.ascontiguousarray(x) for x in (q, nu, u))
    facts = model.facts
    yield model.coordinates, facts.coordinate_units, "coordinate", q
    yield model.speed_names, facts.speed_units, "speed", model.speeds(q, nu, **options)
    if model.inputs:
        yield model.inputs, facts.input_units, "input", u
    kinetic, potential = np.moveaxis(model.energy(q, nu, **options), -1, 0)
    total = kinetic + potential
    error = total - total[:, :1] - w[..., 0] + w[..., 1]
    energy = np.stack([kinetic, potential, w[..., 0], w[..., 1], error], axis=-1)
    yield ENERGY_NAMES, ("J",) * 5, "energy", energy
    if facts.residual_rows:
        worst = np.abs(model.residual(q, **options)).max(axis=-1, keepdims=True)
        yield ("residual",), ("m",), "residual", worst
    if facts.measures:
        units = tuple(unit for _, unit, _ in facts.measures)
        yield model.measure_names, units, "measure", model.measures(q, nu, **options)
    if model.contacts:
        forces = model.contact_forces(q, nu, u, **options)
        names = tuple(f"{c}.{part}" for c in model.contacts
                      for part in ("longitudinal", "lateral", "normal"))  # fmt: skip
        yield names, ("N",) * len(names), "force", forces.reshape(*forces.shape[:-2], -1)
    others = [i for i, row in enumerate(model.rows) if row.rsplit(".", 1)[0] not in model.contacts]
    if others:
        lam = model.multipliers(q, nu, u, **options)[..., others]
        names = tuple(f"{model.rows[i]}.force" for i in others)
        yield (
            names,
            tuple("N m" if facts.row_units[i] == "rad" else "N" for i in others),
            "force",
            lam,
        )


def _statuses(runs: Runs) -> Iterator[str]:
    for outcome in runs.outcomes:
        words = STATUS_WORDS[outcome.status]
        if outcome.status == EVENT:
            words += f" '{outcome.word}'"
        elif outcome.status not in (FINISHED, RUNNING, LEFT):
            words += f" at t = {outcome.time:.6g} s, {outcome.word}"
        yield words


def _warn_of_failures(runs: Runs) -> None:
    """Count the runs of a batch that did not come to their end; a single one raises."""
    words = [STATUS_WORDS[outcome.status] for outcome in runs.outcomes]
    failed = Counter(word for word in words if word.startswith("failed"))
    if failed:
        kinds = ", ".join(f"{count} {word}" for word, count in failed.items())
        warnings.warn(
            f"{failed.total()} of {runs.count} runs failed ({kinds}); they are NaN beyond their "
            "ends. The trajectory's statuses say where and why, its lengths how far each came.",
            RunsFailed,
            stacklevel=4,
        )


def _info(runs: Runs, seconds: float) -> dict[str, Any]:
    s = runs.settings
    info: dict[str, Any] = {"model": runs.model.name, "method": s.method, "seconds": seconds,
                            "runs": runs.count, "steps": int(runs.steps.sum())}  # fmt: skip
    if s.place.target != "cpu":
        info |= {"target": s.place.target, "precision": s.place.precision}
    if s.method == "rk4":
        info |= {"step": s.length}
    else:
        info |= {"rtol": s.rtol, "atol": s.atol, "rejected": int(runs.rejected.sum())}
    if runs.p is not None and runs.p.ndim == 1:
        info["parameters"] = dict(zip(runs.model.parameters, runs.p.tolist(), strict=True))
    if runs.model.facts.bases:
        info["bases"] = runs.model.facts.bases
    if runs.switched:
        info["switches"] = sum(map(len, runs.switched.values()))
    return info
