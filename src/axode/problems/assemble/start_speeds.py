"""Speeds to start with: those that were named, and as few others as the constraints allow.

Rolling wheels move their robot, so a start that names the wheels' speeds determines others.
Where several motions would do, speeds that were not named stay at zero as far as they can: joints
first, then how a base rolls, pitches and turns, last how it moves ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import AxodeError, InvalidArgument, SingularConfiguration
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.numerics.newton import add_in_order
from axode.numerics.rank import singular_values, smallest_singular_value
from axode.numerics.tolerances import FAINT, NEGLIGIBLE, ROW_RANK
from axode.problems.assemble.start_warnings import FailedStarts, warn_of_start

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
SINGULAR_SPEED = 1e9  # speed that a unit independent one may cause: beyond, these are singular
GROWTH = 5.0  # times the smallest speeds that suffice: larger ones do not justify another zero
EXCLUDED = "the constraints do not allow these speeds together"
BLOCK = 1 << 16  # states whose speeds are found together, for the memory of their matrices


def consistent_speeds(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> Array:
    """Find independent speeds that give the wanted ones, one state per row.

    Raises:
        InvalidArgument: for speeds that exclude each other.
        SingularConfiguration: where the independent speeds do not determine the others.
    """
    nu, _, error = find_speeds(model, q, wanted, conditions)
    if error is not None:
        raise error
    return nu


def find_speeds(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> tuple[Array, FailedStarts, AxodeError | None]:
    """Find independent speeds as `consistent_speeds` does, and mark states that have none.

    Returns:
        Speeds, NaN where there are none; these states, and why; the error of the first of them.
    """
    nu = np.zeros((len(q), len(model.independent)))
    if set(wanted) <= set(model.independent):
        for name, values in wanted.items():
            nu[:, model.independent.index(name)] = values
        return nu, FailedStarts(), None
    names = tuple(wanted)
    miss = np.zeros((len(q), len(names)))
    for first in range(0, len(q), BLOCK):
        at = slice(first, first + BLOCK)
        some = {name: values[at] for name, values in wanted.items()}
        there = conditions.at(at)
        system = _speed_system(model, q[at], some, there)
        with np.errstate(all="ignore"):
            nu[at], miss[at], _ = _solve_speeds(model, names, system)
            singular = np.flatnonzero(~(np.abs(system.theta).max(axis=(1, 2)) < SINGULAR_SPEED))
        if singular.size:
            part = {name: values[singular] for name, values in some.items()}
            found, good = _speeds_elsewhere(model, q[at][singular], part, there.at(singular))
            nu[at][singular[good]], miss[at][singular[good]] = found[good], 0.0
    return _marked(model, names, nu, miss)


def _marked(
    model: Model, names: tuple[str, ...], nu: Array, miss: Array
) -> tuple[Array, FailedStarts, AxodeError | None]:
    """Mark states whose wanted speeds are missed: NaN where they are not determined."""
    runs = np.flatnonzero(~(miss == 0.0).all(axis=1))
    if not runs.size:
        return nu, FailedStarts(), None
    nu[runs] = np.nan
    size = miss[runs].max(axis=1)
    undetermined = np.isnan(size)
    worst = np.where(undetermined, len(names), np.argmax(miss[runs], axis=1))
    causes = (
        *(f"{EXCLUDED}: '{name}' misses its value" for name in names),
        "the independent speeds do not determine the others, which differ",
    )
    failed = FailedStarts(runs, worst, size, causes, ("",) * len(causes))
    chosen = ", ".join(model.independent)
    if undetermined[0]:
        singular = SingularConfiguration(
            f"'{model.name}' is where its independent speeds {chosen} do not determine the others; "
            "give these speeds, or other coordinates"
        )
        return nu, failed, singular
    error = InvalidArgument(f"{failed.describe(0)}; give fewer, for instance only {chosen}")
    return nu, failed, error


@dataclass(frozen=True)
class _SpeedSystem:
    """Wanted speeds A nu = b of some states, and all speeds theta nu + base."""

    A: Array
    b: Array
    theta: Array
    base: Array

    @property
    def allowed(self) -> Array:
        """By how much a wanted speed of each state may be missed."""
        return NEGLIGIBLE * np.abs(self.b).max(axis=1, initial=1.0)


def _evaluated(function: Callable[..., Array], conditions: Conditions, *arrays: Array) -> Array:
    """Evaluate a function of a model by the same code for one state as for several."""
    if len(arrays[0]) != 1:
        return function(*arrays, **conditions.options)
    twice = conditions.at(np.zeros(2, dtype=np.intp)) if conditions.shape else conditions
    return function(*(array.repeat(2, axis=0) for array in arrays), **twice.options)[:1]


def _speed_system(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> _SpeedSystem:
    rest = np.zeros((len(q), len(model.independent)))
    theta = _evaluated(model.speed_map, conditions, q)
    base = _evaluated(model.joint_speeds, conditions, q, rest)
    measured = any(name not in model.speed_names for name in wanted)
    if measured:  # measures of velocity are linear in the speeds
        slopes = _evaluated(model.measures_jacobian, conditions, q, rest)[..., q.shape[1] :]
        still = _evaluated(model.measures, conditions, q, rest)
    rows, right = [], []
    for name, values in wanted.items():
        if name in model.speed_names:
            j = model.speed_names.index(name)
            rows.append(theta[:, j])
            right.append(values - base[:, j])
        else:
            j = model.measure_names.index(name)
            rows.append(slopes[:, j])
            right.append(values - still[:, j])
    return _SpeedSystem(np.stack(rows, axis=1), np.stack(right, axis=1), theta, base)


def speed_rows(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> tuple[Array, list[str], Mask]:
    """Rows that determine the independent speeds of states, as `find_speeds` does.

    Returns:
        Speeds for unit independent ones, (states, rows, independent), zero where a row does not
        count; the names of the rows, wanted ones first, then those that stay at zero; whether the
        rows determine all speeds.
    """
    system = _speed_system(model, q, wanted, conditions)
    with np.errstate(all="ignore"):
        nu, miss, resting = _solve_speeds(model, tuple(wanted), system)
    rest = [system.theta[:, j] * taken[:, np.newaxis] for j, taken in resting.items()]
    rows = np.concatenate([system.A, *(row[:, np.newaxis] for row in rest)], axis=1)
    sizes = singular_values(np.nan_to_num(rows))
    determined = (miss == 0.0).all(axis=1) & (rows.shape[1] >= nu.shape[1])
    determined &= sizes[:, -1] > ROW_RANK * sizes[:, 0]
    # without speed all speeds can rest, which others could not
    determined &= (len(wanted) >= nu.shape[1]) | (np.abs(system.b).max(axis=1, initial=0.0) > 0.0)
    return rows, [*wanted, *(model.speed_names[j] for j in resting)], determined


class _ShortestSpeeds:
    """The shortest speeds that satisfy rows, row by row, for many states at once.

    Rows are made orthogonal to those before them; each adds a step along what is new in it.
    """

    def __init__(self, nu: Array) -> None:
        self.nu = nu
        self._directions: list[Array] = []

    def step(self, row: Array, value: Array) -> tuple[Array, Array, Array]:
        """Find the step that satisfies another row, its direction, and what it leaves."""
        new = row
        for _ in range(2):  # the second time for what rounding left
            for direction in self._directions:
                new = new - direction * _dot(new, direction)[:, np.newaxis]
        length = np.sqrt(_dot(new, new))
        is_new = length > FAINT * np.sqrt(_dot(row, row))
        direction = np.where(is_new[:, np.newaxis], new / length[:, np.newaxis], 0.0)
        need = value - _dot(row, self.nu)
        size = np.where(is_new, need / _dot(row, direction), 0.0)
        return direction * size[:, np.newaxis], direction, np.where(is_new, 0.0, need)

    def take(self, step: Array, direction: Array, where: Mask) -> None:
        """Take a step at some states."""
        chosen = where[:, np.newaxis]
        self.nu = self.nu + np.where(chosen, step, 0.0)
        self._directions.append(np.where(chosen, direction, 0.0))


def _dot(a: Array, b: Array) -> Array:
    return add_in_order(a * b)


def _solve_speeds(
    model: Model, names: tuple[str, ...], system: _SpeedSystem
) -> tuple[Array, Array, dict[int, Mask]]:
    """Find speeds, by how much wanted ones miss, NaN where they are not determined, and the others
    that rest."""
    A, b, theta, allowed = system.A, system.b, system.theta, system.allowed
    determined = np.asarray(np.isfinite(A).all(axis=(1, 2)))
    found = _ShortestSpeeds(np.zeros(A[:, 0].shape))
    miss = np.zeros(b.shape)
    for k in range(len(names)):
        step, direction, left = found.step(A[:, k], b[:, k])
        found.take(step, direction, np.ones(len(A), dtype=bool))
        miss[:, k] = np.where(np.abs(left) <= allowed, 0.0, np.abs(left))
    most = GROWTH * np.sqrt(_dot(found.nu, found.nu))
    idle = np.abs(theta).max(axis=2) < NEGLIGIBLE * np.abs(theta).max(axis=(1, 2))[:, np.newaxis]
    moving: dict[int, Mask] = {}
    resting: dict[int, Mask] = {}
    for j in _order(model):
        if model.speed_names[j] in names:
            continue
        step, direction, left = found.step(theta[:, j], -system.base[:, j])
        possible = ~idle[:, j] & (np.abs(left) <= allowed)  # else the wanted speeds move it
        after = found.nu + step
        small = np.sqrt(_dot(after, after)) <= most
        found.take(step, direction, possible & small)
        resting[j], moving[j] = possible & small, possible & ~small
    _warn_of_moving(model, names, system, found.nu, moving)
    miss[~determined] = np.nan
    return found.nu, miss, resting


def _warn_of_moving(
    model: Model,
    names: tuple[str, ...],
    system: _SpeedSystem,
    nu: Array,
    moving: Mapping[int, Mask],
) -> None:
    """Warn of independent speeds that could rest and move, of the first state that has some."""
    moving = {j: at for j, at in moving.items() if model.speed_names[j] in model.independent}
    speeds = {j: _dot(system.theta[:, j], nu) for j, at in moving.items() if at.any()}
    shown = {j: moving[j] & (np.abs(v) > system.allowed) for j, v in speeds.items()}
    states = np.flatnonzero(np.any(list(shown.values()), axis=0)) if shown else np.zeros(0, int)
    if not states.size:
        return
    state = int(states[0])
    listed = ", ".join(
        f"{model.speed_names[j]} = {speeds[j][state]:.4g}" for j, at in shown.items() if at[state]
    )
    warn_of_start(
        f"{', '.join(names)} can be had in several ways, and this one has {listed}, which "
        "was not asked for; name these speeds too, to choose another"
    )


def _speeds_elsewhere(
    model: Model, q: Array, wanted: Mapping[str, Array], conditions: Conditions
) -> tuple[Array, Mask]:
    """Find speeds by other models, where the model's own rows are dependent, and where that did."""
    from axode.problems.singular.switching import choose_models

    nu, good = np.zeros((len(q), len(model.independent))), np.zeros(len(q), dtype=bool)
    conditions = conditions.spread(q.shape[:-1])
    chosen = [model.speed_names.index(name) for name in model.independent]
    for other, (at,) in choose_models(model, q, conditions).others():
        theta = _evaluated(other.speed_map, conditions.at(at), q[at])[:, chosen]
        # elsewhere the user's speeds, not the rows, are what is singular
        at = at[smallest_singular_value(theta) >= 1 / SINGULAR_SPEED]
        if at.size:
            there, own = conditions.at(at), {name: v[at] for name, v in wanted.items()}
            theirs = consistent_speeds(other, q[at], own, there)
            nu[at] = _evaluated(other.joint_speeds, there, q[at], theirs)[:, chosen]
            good[at] = True
    return nu, good


def _order(model: Model) -> list[int]:
    """Order independent speeds and those of bases, first those that should rest."""
    names = list(model.speed_names)
    return [names.index(name) for name in facts_of(model).rest_first or model.independent[::-1]]
