"""Warn of singularities that a motion comes near, while its results are still accurate.

Three things may be lost: what the given signals say about the motion (type 1), the hold of the
motors on it (type 2), and the rank of the constraints. Each has a margin, a smallest singular
value, which is compared with its usual size at other configurations of the mechanism.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.errors import NearSingularityWarning, level_outside
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, row_numbers_of
from axode.numerics.rank import singular_values
from axode.problems.other_models import interpret_few_states, rows_at

Array = npt.NDArray[np.float64]
NEAR = 0.05  # of the usual margin: forces or speeds are twenty times as large there
SMALL_PIVOT = 0.05  # of the solves behind all speeds: above it no margin is small
MAX_SAMPLES = 64  # of a motion that are looked at closely
USUAL: WeakKeyDictionary[Model, dict[Any, float]] = WeakKeyDictionary()


def warn_of_signals(
    model: Model, names: Sequence[str], margins: Array, times: Array, usual: float
) -> None:
    """Warn if given signals nearly fail to determine the motion, a singularity of type 1.

    Args:
        model: What moves.
        names: Names of the signals.
        margins: Smallest singular value of their rates for unit independent speeds, per sample.
        times: Times of the samples [s].
        usual: The same at other configurations.
    """
    k, near = _nearest(margins, usual)
    if near < NEAR:
        given = ", ".join(names)
        _warn(
            f"'{model.name}' comes near a singularity at t = {times[k]:.6g} s (type 1, {near:.2g} "
            f"of the usual margin): {given} hardly determine the motion there, so that speeds and "
            "forces become large.\n  Keep the motion away from it, or give the motion of the "
            "driven joints instead."
        )


def warn_of_motors(model: Model, q: Array, conditions: Conditions, pivots: Array) -> None:
    """Warn if motors nearly lose their hold on the motion, a singularity of type 2.

    Args:
        model: What moves.
        q: Coordinates of all samples, (samples, size).
        conditions: Time and parameters of each.
        pivots: Smallest pivot of the solves behind all speeds, per sample.
    """
    if model.actuation != "fully actuated" or not model.has_equations or not model.rows:
        return
    driven = _driven_speeds(model)
    if driven is None:
        return
    small = pivots < SMALL_PIVOT if set(driven) == set(model.independent) else pivots < np.inf
    places = _thinned(np.flatnonzero(small), pivots)
    if not places.size:
        return
    usual = _usual(model, ("motors",), lambda x, c: _hold(model, driven, x, c))
    k, near = _nearest(_hold(model, driven, q[places], conditions.at(places)), usual)
    if near < NEAR:
        t = float(np.broadcast_to(conditions.t, pivots.shape)[places[k]])
        _warn(
            f"'{model.name}' comes near a singularity at t = {t:.6g} s (type 2, {near:.2g} of the "
            "usual margin): it can nearly move with all motors locked, so that forces become "
            "large.\n  Keep the motion away from it: ax.Kinematics(mechanism).clearance(run) shows "
            "how near it comes."
        )


@dataclass(frozen=True)
class Approach:
    """A state at which a pivot of the solves behind all speeds was small.

    Attributes:
        time: When [s].
        q: Coordinates.
        p: Free parameters; None for the defaults.
        pivot: The pivot, in the step to come.
    """

    time: float
    q: Array
    p: Array | None
    pivot: float


def warn_of_rows(model: Model, stops: Sequence[Approach]) -> None:
    """Warn if constraints nearly lose rank where runs came near a singular configuration.

    Args:
        model: What moves.
        stops: States at which a pivot was small.
    """
    if not stops or row_numbers_of(model) is None:
        return

    def margin(q: Array, t: float, p: Array | None) -> float:
        rows = rows_at(model, q, Conditions(t, p))
        s = singular_values(rows.scaled)
        return float(s[rows.rank - 1] / s[0]) if rows.rank else np.inf

    def margins(x: Array, c: Conditions) -> Array:
        return np.array([margin(q, 0.0, None) for q in x])

    found = np.array([margin(stop.q, stop.time, stop.p) for stop in stops])
    k, near = _nearest(found, _usual(model, ("rows",), margins))
    if near < NEAR:
        t = stops[k].time
        _warn(
            f"'{model.name}' comes near a singular configuration at t = {t:.6g} s (constraints, "
            f"{near:.2g} of the usual margin): they nearly depend on each other, so that forces of "
            "constraints become large and the motion sensitive.\n  Start or drive it differently, "
            "or stop it before with an event."
        )


def _warn(text: str) -> None:
    warnings.warn(text, NearSingularityWarning, stacklevel=level_outside())


def _nearest(margins: Array, usual: float) -> tuple[int, float]:
    """Find the smallest margin, as a part of its usual size."""
    if not np.isfinite(margins).any() or not usual > 0.0:
        return 0, np.inf
    k = int(np.nanargmin(margins))
    return k, float(margins[k]) / usual


def _usual(model: Model, key: Any, margins: Callable[[Array, Conditions], Array]) -> float:
    """Find the usual size of a margin, at the configurations that the model was derived at."""
    known = USUAL.setdefault(model, {})
    if key not in known:
        known[key] = usual_margin(model, margins)
    return known[key]


def usual_margin(model: Model, margins: Callable[[Array, Conditions], Array]) -> float:
    """Find the median of a margin at the configurations that the model was derived at."""
    numbers = row_numbers_of(model)
    assert numbers is not None
    samples = np.array([*numbers.samples, model.home])
    return float(np.median(margins(samples, Conditions())))


def _driven_speeds(model: Model) -> list[str] | None:
    """Speeds that motors drive, one each; None if a motor drives several."""
    from axode.mechanism.topology import speed_meanings

    mechanism = model.equations.mechanism
    meanings = speed_meanings(mechanism)
    driven = [meanings.get(drive.coordinate) for drive in mechanism.drives]
    return None if None in driven else [name for name in driven if name is not None]


def _hold(model: Model, driven: Sequence[str], q: Array, conditions: Conditions) -> Array:
    """Least motion of driven joints in a motion of unit size, per configuration."""
    evaluated = interpret_few_states(model, len(q))
    numbers = row_numbers_of(model)
    assert numbers is not None
    length = numbers.extent
    units = np.array([length if unit == "m/s" else 1.0 for unit in facts_of(model).speed_units])
    Theta = evaluated.speed_map(np.ascontiguousarray(q), **conditions.options)
    scaled = Theta / units[:, np.newaxis]
    finite = np.isfinite(scaled).all(axis=(-2, -1))
    Z = np.linalg.qr(np.where(finite[:, np.newaxis, np.newaxis], scaled, 0.0))[0]
    rows = [model.speed_names.index(name) for name in driven]
    return np.where(finite, singular_values(Z[:, rows])[:, -1], 0.0)


def _thinned(places: npt.NDArray[np.intp], pivots: Array) -> npt.NDArray[np.intp]:
    """Choose some of many samples, those with the smallest pivots among them."""
    if places.size <= MAX_SAMPLES:
        return places
    lowest = places[np.argsort(pivots[places])[: MAX_SAMPLES // 2]]
    spread = places[np.linspace(0, places.size - 1, MAX_SAMPLES // 2).astype(int)]
    return np.union1d(lowest, spread)
