"""Numbers that vanish where a model's equations become singular."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import RANK
from axode.problems.steps.compiled import tape_of

Array = npt.NDArray[np.float64]
FLAT_WHEEL = "lies flat on the ground"  # in messages


def evaluate_pivots(model: Model, q: Array, conditions: Conditions) -> tuple[Array, Array]:
    """Evaluate pivots of the solves, (..., solves), and what of each leaning wheel's axis lies in
    the ground plane, (..., wheels, 2)."""
    if "pivots" not in model.functions or not tape_of(model, "pivots").outputs[0].size:
        return np.ones((*q.shape[:-1], 0)), np.ones((*q.shape[:-1], 0, 2))
    found = model.evaluate("pivots", {"q": np.ascontiguousarray(q)}, conditions.options)
    wheels = len(facts_of(model).leaning)
    solves = found.shape[-1] - 2 * wheels
    pairs = found[..., solves:].reshape(*found.shape[:-1], wheels, 2)
    return np.abs(found[..., :solves]), pairs


def find_smallest_pivots(model: Model, q: Array, conditions: Conditions) -> Array:
    """Find the smallest pivot of all solves behind a model's speeds, one number per state."""
    return np.asarray(evaluate_pivots(model, q, conditions)[0].min(axis=-1, initial=1.0))


def has_lost_pivots(model: Model, q: Array, conditions: Conditions) -> npt.NDArray[np.bool_]:
    """Find states at which a pivot vanishes, or has no value because one before it does."""
    pivots = evaluate_pivots(model, q, conditions)[0]
    lost = np.isfinite(q).all(axis=-1) & ~(pivots > RANK).all(axis=-1)
    return np.asarray(lost)


def find_flattest_wheel(model: Model, q: Array, conditions: Conditions) -> tuple[float, str]:
    """Find the wheel nearest to lying flat: how far it is from that [rad], and what is wrong."""
    flat, causes = find_flattest_wheels(model, q, conditions)
    worst = int(np.argmin(flat))
    return float(flat.flat[worst]), str(causes.flat[worst])


def find_flattest_wheels(
    model: Model, q: Array, conditions: Conditions
) -> tuple[Array, npt.NDArray[np.object_]]:
    """Find the same for each of several states."""
    pairs = evaluate_pivots(model, q, conditions)[1]
    if not pairs.size:
        return np.ones(q.shape[:-1]), np.full(q.shape[:-1], "", dtype=object)
    flat = np.nan_to_num(np.linalg.norm(pairs, axis=-1), nan=1.0)
    causes = [
        f"the wheel '{wheel}' {FLAT_WHEEL} there, so that no point "
        "of its rim is the lowest; end the run earlier with an event on its lean, or continue with "
        "a mechanism without this contact"
        for wheel in facts_of(model).leaning
    ]
    worst = np.asarray(flat.argmin(axis=-1))
    return np.asarray(flat.min(axis=-1)), np.asarray(np.take(causes, worst), dtype=object)


def measure_lean_between(pairs: Array) -> Array:
    """Measure how near wheels come to lying flat from sample to sample, (..., T, wheels) [rad].

    Along the straight line between them: samples before and after a fall may both be upright.
    """
    before, after = pairs, np.concatenate([pairs[..., 1:, :, :], pairs[..., -1:, :, :]], axis=-3)
    direction = after - before
    length = (direction * direction).sum(axis=-1)
    part = -(before * direction).sum(axis=-1) / np.where(length > 0, length, 1.0)
    nearest = before + np.clip(part, 0.0, 1.0)[..., np.newaxis] * direction
    distance: Array = np.fmin(np.linalg.norm(nearest, axis=-1), np.linalg.norm(before, axis=-1))
    return distance
