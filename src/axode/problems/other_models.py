"""States that are described by another model of the same mechanism than the user's.

Where the user's rows or independent speeds become singular, the same state is still well described
by a model on others. Everything named is the same there, except forces of rows that share their
load in a way that statics does not determine: they are given on the user's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of, row_numbers_of
from axode.model.signals import KINDS, SPEED_KINDS
from axode.model.state import signal_values
from axode.numerics.rank import least_norm
from axode.numerics.tolerances import UNBALANCED

if TYPE_CHECKING:
    from axode.model.function_source import Entry
    from axode.model.signals import Signal
    from axode.symbolic.constraints.row_choice import EvaluatedRows

Array = npt.NDArray[np.float64]
GOOD_PIVOT = 0.01  # from which on speeds lose two digits at most
ROUNDED_PIVOT = 0.3  # rows that contradict others do so by its inverse square where it is smaller
GROWTH = 30.0  # of what rows contradict each other by at the configurations that were looked at
CORRECTED = 0.05  # relative: the most by which speeds are corrected where rows change
SPEEDS_AND_PLACES = ("coordinate", *SPEED_KINDS, "memory")  # independent ones are the model's own
FEW = 2000  # states that are evaluated before code would have been compiled

_INTERPRETED: WeakKeyDictionary[Model, Model] = WeakKeyDictionary()
_ROWS: WeakKeyDictionary[Model, Entry] = WeakKeyDictionary()


@dataclass(frozen=True)
class DescribedStates:
    """Which of several models describes each of some states.

    Attributes:
        models: The user's first.
        made_by: Number of the model per state.
    """

    models: tuple[Model, ...]
    made_by: npt.NDArray[np.intp]

    def others(self) -> Iterator[tuple[Model, tuple[npt.NDArray[np.intp], ...]]]:
        """Other models than the user's, and the places of the states that they describe."""
        for number, model in enumerate(self.models):
            places = np.nonzero(self.made_by == number)
            if number and places[0].size:
                yield model, places

    @property
    def elsewhere(self) -> npt.NDArray[np.bool_]:
        """Which states another model describes."""
        return np.asarray(self.made_by > 0)


def is_rounded(model: Model) -> bool:
    """Check whether a model left out rows that contradict those it keeps by rounding errors."""
    numbers = row_numbers_of(model)
    return numbers is not None and numbers.rounded


def measure_disagreement(model: Model) -> float:
    """Measure by how much rounded rows may contradict each other, away from home, too [m or rad].

    A run whose rows changed leaves the user's rows open by as much.
    """
    numbers = row_numbers_of(model)
    return GROWTH * numbers.disagreement if numbers is not None and numbers.rounded else 0.0


def rows_at(
    model: Model, q: Array, conditions: Conditions, ahead: Array | None = None
) -> EvaluatedRows:
    """Evaluate all rows of a mechanism at configurations.

    Args:
        model: One whose rows and speeds can be changed.
        q: Configurations, (..., size).
        conditions: Time and parameters, each one for all or one per configuration.
        ahead: Where the next step leads from each.
    """
    from axode.symbolic.constraints.row_choice import EvaluatedRows

    numbers = row_numbers_of(model)
    assert numbers is not None
    entry = _rows_entry(model)
    given = {
        "q": q,
        "t": np.asarray(conditions.t)[..., np.newaxis],
        "p": model.parameter_vector(conditions.p),
    }
    arrays = (
        np.broadcast_to(given[name], (*q.shape[:-1], given[name].shape[-1]))
        for name in entry.arguments
    )
    return EvaluatedRows(
        numbers.names,
        entry.call(*arrays),
        numbers.scales,
        numbers.own,
        numbers.speed_units,
        numbers.rounded,
        None if ahead is None else rows_at(model, ahead, conditions),
    )


def _rows_entry(model: Model) -> Entry:
    """Return the function that evaluates all rows, the same for models on other rows."""
    if model not in _ROWS:
        _ROWS[model] = library_of(model).on_target("numpy").entry("all_rows")
    return _ROWS[model]


def translate_speeds(
    model: Model, names: Sequence[str], q: Array, nu: Array, conditions: Conditions
) -> Array:
    """Evaluate some of the joint speeds of a model's states, (states, names)."""
    if not len(q):
        return np.zeros((0, len(names)))
    twice, conditions = _never_single(len(q), conditions)
    v = model.joint_speeds(q[twice], nu[twice], **conditions.options)[: len(q)]
    return np.ascontiguousarray(v[:, [model.speed_names.index(name) for name in names]])


def _never_single(count: int, conditions: Conditions) -> tuple[npt.NDArray[np.intp], Conditions]:
    """Repeat a single state: code for one rounds differently from that for several."""
    twice = np.arange(max(count, 2)) % count
    return twice, conditions.spread((count,)).at(twice)


def carry_speeds(
    before: Model, after: Model, q: Array, old: Array, conditions: Conditions
) -> Array:
    """Find the speeds of states that go from one model to another, (states, speeds).

    Rows that contradict each other allow slightly different motions. What the change did to the
    kinetic energy would add up from one change to the next: speeds are scaled so that it does
    nothing. Prescribed motions keep their speeds.
    """
    if after is before:
        return old
    new = translate_speeds(before, after.independent, q, old, conditions)
    if not is_rounded(before) or facts_of(before).driven:
        return new
    twice, conditions = _never_single(len(q), conditions)
    kept = before.energy(q[twice], old[twice], **conditions.options)[: len(q), 0]
    made = after.energy(q[twice], new[twice], **conditions.options)[: len(q), 0]
    scale = np.sqrt(np.divide(kept, made, out=np.ones_like(kept), where=made > 0.0))
    near = np.abs(scale - 1.0) < CORRECTED  # what is larger is no rounding
    return np.asarray(np.where(near, scale, 1.0)[:, np.newaxis] * new)


def interpret_few_states(model: Model, count: int) -> Model:
    """Give a model whose functions need no compiling, where there is little to evaluate."""
    if count > FEW:
        return model
    if model not in _INTERPRETED:
        _INTERPRETED[model] = Model(facts_of(model), library_of(model).on_target("numpy"))
    return _INTERPRETED[model]


class SignalsElsewhere:
    """Signals of the user's model at states of another one, computed when they are asked for.

    Args:
        other: The model whose independent speeds `nu` are.
        own: The user's.
        q, nu, w: States, (states, size) each.
        u: Inputs, (states, size), or what computes them.
        conditions: Time and parameters of each.
    """

    def __init__(
        self,
        other: Model,
        own: Model,
        q: Array,
        nu: Array,
        w: Array,
        u: Array | Callable[[], Array],
        conditions: Conditions,
    ) -> None:
        self._models, self._state, self._conditions = (other, own), (q, nu), conditions
        self._u, self.w = u, w
        self._columns: dict[str, Array] = {}

    @cached_property
    def u(self) -> Array:
        """Inputs, (states, size)."""
        return self._u() if callable(self._u) else self._u

    def column(self, signal: Signal) -> Array:
        """Evaluate one of the user's signals, (states,)."""
        if signal.function == "w":
            return self.w[:, signal.index]
        if signal.name not in self._columns:
            kinds = SPEEDS_AND_PLACES if signal.kind in SPEEDS_AND_PLACES else (signal.kind,)
            made = self.values(kinds)
            names = self._models[1].signals.layout(*kinds).names
            self._columns.update(zip(names, made.T, strict=True))
        return self._columns[signal.name]

    def values(self, kinds: tuple[str, ...] = KINDS) -> Array:
        """Evaluate signals of the user's model, (states, signals).

        Args:
            kinds: Which signals, of `KINDS`; those of speeds together.
        """
        (other, own), (q, nu), conditions = self._models, self._state, self._conditions
        made = signal_values(other, q, nu, self.u, self.w, conditions=conditions, kinds=kinds)
        signals, theirs = own.signals.of_kind(*kinds), other.signals.layout(*kinds).names
        if theirs == tuple(signal.name for signal in signals):
            return made
        places = {name: k for k, name in enumerate(theirs)}
        values = np.full((len(q), len(signals)), np.nan)
        for k, signal in enumerate(signals):
            if signal.name in places and (signal.kind != "force" or other.rows):
                values[:, k] = made[:, places[signal.name]]
        rows = own.signals.layout(*kinds).parts.get("multipliers")
        if other.rows != own.rows and rows is not None:
            lam = other.multipliers(np.ascontiguousarray(q), nu, self.u, **conditions.options)
            columns, which = rows
            values[:, columns] = _on_own_rows(other, own, lam, q, conditions)[:, which]
        return values


def _on_own_rows(other: Model, own: Model, lam: Array, q: Array, conditions: Conditions) -> Array:
    """Find forces on the user's rows that do what those on other rows do; NaN where none do."""
    if not other.rows:
        return np.full((len(q), len(own.rows)), np.nan)
    rows, numbers = rows_at(own, q, conditions), row_numbers_of(own)
    assert numbers is not None
    A, names = rows.matrix, list(rows.names)
    theirs, ours = (A[:, [names.index(row) for row in rows]] for rows in (other.rows, own.rows))
    force = np.einsum("trj,tr->tj", theirs, lam)
    # against their usual size: a row that vanishes here carries nothing
    usual = np.abs(np.array(numbers.matrices)).max(axis=(0, 2))
    scale = usual[[names.index(row) for row in own.rows]][np.newaxis, :, np.newaxis]
    found = least_norm(np.swapaxes(ours / scale, 1, 2), force, UNBALANCED)
    missed = np.abs(np.einsum("trj,tr->tj", ours / scale, found) - force).max(axis=1)
    found[missed > UNBALANCED * np.abs(force).max(axis=1).clip(1e-300)] = np.nan
    return found / scale[:, :, 0]
