"""Trajectories from runs: states made consistent, and everything that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.codegen.llvm import CompiledFunction
from axode.codegen.model import Model
from axode.problems.inputs import limited
from axode.problems.integrators import EVENT, FINISHED, NOT_FINITE, RUNNING, SINGULAR, UNDERFLOW
from axode.problems.runs import Runs
from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
ENERGY_NAMES = ("kinetic", "potential", "supplied", "dissipated", "error")
STATUS_WORDS = {
    FINISHED: "finished", RUNNING: "interrupted", NOT_FINITE: "failed: not finite",
    UNDERFLOW: "failed: steps too short", SINGULAR: "failed: singular configuration",
}  # fmt: skip


def recorded(runs: Runs, batch: tuple[int, ...], interrupted: bool, seconds: float) -> Trajectory:
    """What the runs saved, with speeds, inputs, energies, residuals and measures."""
    times, out = _samples(runs)
    model, d = runs.model, runs.dynamics
    q, nu, w = np.split(out, [d.n_q, d.n_q + d.n_nu], axis=-1)
    options = _options(runs, times)
    q = _closed(model, q, options)
    nu = _own_speeds(runs, q, nu, options)
    u = _inputs(runs, times, q, nu, options)
    columns = list(_columns(model, q, nu, w, u, options))
    values = np.concatenate([block for _, _, _, block in columns], axis=-1)
    names = tuple(n for ns, _, _, _ in columns for n in ns)
    units = tuple(u for _, us, _, _ in columns for u in us)
    kinds = {n: kind for ns, _, kind, _ in columns for n in ns}
    kinds |= {name: "independent" for name in model.independent}
    keep = ~np.isnan(q).all(axis=(0, 2))
    return Trajectory(
        time=times[keep], values=values[:, keep].reshape(*batch, int(keep.sum()), len(names)),
        names=names, units=units, kinds=kinds, statuses=tuple(_statuses(runs, interrupted)),
        events=tuple(sorted(runs.events, key=lambda e: e.time * np.sign(runs.settings.duration))),
        info=_info(runs, seconds),
    )  # fmt: skip


def _samples(runs: Runs) -> tuple[Array, Array]:
    """Times and saved states; a single run that stopped early ends with where it stopped."""
    times, out = runs.settings.times, runs.out
    outcome = runs.outcomes[0]
    if runs.count > 1 or outcome.status != EVENT or outcome.last is None:
        return times, out
    saved = ~np.isnan(out[0, :, 0])
    if abs(times[saved][-1] - outcome.time) < 1e-12 * max(1.0, abs(outcome.time)):
        return times[saved], out[:, saved]
    rows = np.concatenate([out[:, saved], outcome.last[np.newaxis, np.newaxis]], axis=1)
    return np.append(times[saved], outcome.time), rows


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


def _own_speeds(runs: Runs, q: Array, nu: Array, options: Any) -> Array:
    """Speeds of the model's own choice, also where the run went on with another."""
    model = runs.model
    nu = np.array(nu)
    for run, first, last, other in sorted(runs.switches, key=lambda s: s[1]):
        part = slice(first, min(last, nu.shape[1]))
        own = {"t": options["t"][run, part]}
        if "parameters" in options:
            own["parameters"] = {n: np.broadcast_to(v, options["t"].shape)[run, part]
                                 for n, v in options["parameters"].items()}  # fmt: skip
        v = other.speeds(np.ascontiguousarray(q[run, part]), np.ascontiguousarray(
            runs.out[run, part, q.shape[-1] : q.shape[-1] + nu.shape[-1]]), **own)  # fmt: skip
        picks = [model.speed_names.index(name) for name in model.independent]
        nu[run, part] = v[..., picks]
    return nu


def _inputs(runs: Runs, times: Array, q: Array, nu: Array, options: Any) -> Array:
    """Inputs at the saved times."""
    plan, model = runs.plan, runs.model
    shape = (*q.shape[:-1], len(model.inputs))
    if plan.constant is not None:
        constant = np.asarray(plan.constant)
        return np.array(np.broadcast_to(
            constant[..., np.newaxis, :] if constant.ndim > 1 else constant, shape))  # fmt: skip
    if plan.sampled is not None:
        return _sampled(runs, times, shape)
    if plan.callback is not None:
        return _called(runs, times, shape)
    assert plan.tape is not None
    known = {"t": options["t"][..., np.newaxis], "q": np.ascontiguousarray(q), "nu": nu}
    if runs.p is not None:
        known["p"] = runs.p if runs.p.ndim == 1 else runs.p[:, np.newaxis, :]
    arrays = [np.ascontiguousarray(known[port.name]) for port in plan.tape.inputs]
    made: Array = CompiledFunction(plan.tape)(*arrays)
    return np.array(np.broadcast_to(made, shape))


def _sampled(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array:
    sampled = runs.plan.sampled
    assert sampled is not None
    table = sampled.table(runs.model)
    place = (times - sampled.start) / sampled.period
    row = np.clip(np.floor(place + 1e-9).astype(int), 0, table.shape[-2] - 1)
    values = table[..., row, :]
    if sampled.between == "linear":
        after = table[..., np.minimum(row + 1, table.shape[-2] - 1), :]
        part = np.clip(place - row, 0.0, 1.0)[:, np.newaxis]
        values = values + part * (after - values)
    return np.array(np.broadcast_to(values, shape))


def _called(runs: Runs, times: Array, shape: tuple[int, ...]) -> Array:
    """Inputs that a callback gave, held until it was called again; of a single run only."""
    values = np.full(shape, np.nan)
    if runs.count == 1 and runs.calls:
        called = np.array([t for t, _ in runs.calls])
        given = np.array([u for _, u in runs.calls])
        row = np.clip(np.searchsorted(called, times + 1e-12, side="right") - 1, 0, len(called) - 1)
        values[0] = limited(runs.model, given[row])
    return values


def _columns(
    model: Model, q: Array, nu: Array, w: Array, u: Array, options: Any
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], str, Array]]:
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


def _statuses(runs: Runs, interrupted: bool) -> Iterator[str]:
    for outcome in runs.outcomes:
        if outcome.status == EVENT:
            yield f"stopped by event '{outcome.stopped_by}'"
        else:
            yield STATUS_WORDS[outcome.status]


def _info(runs: Runs, seconds: float) -> dict[str, Any]:
    s, b = runs.settings, runs.buffers
    info: dict[str, Any] = {"model": runs.model.name, "method": s.method, "seconds": seconds,
                            "runs": runs.count}  # fmt: skip
    if s.method == "rk4":
        info |= {"step": float(abs(b["h"][0])), "steps": int(b["step"].sum())}
    else:
        info |= {"rtol": s.rtol, "atol": s.atol, "steps": int(b["steps"].sum()),
                 "rejected": int(b["rejected"].sum())}  # fmt: skip
    if runs.p is not None and runs.p.ndim == 1:
        info["parameters"] = dict(zip(runs.model.parameters, runs.p.tolist(), strict=True))
    if runs.switches:
        info["partitions"] = len({id(m) for *_, m in runs.switches}) + 1
    return info
