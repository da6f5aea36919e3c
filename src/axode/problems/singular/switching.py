"""Choose other rows and independent speeds where the present ones become singular."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.function_source import SymbolicLibrary
from axode.model.model import Model
from axode.model.model_parts import facts_of, library_of, row_numbers_of
from axode.numerics.rank import smallest_singular_value
from axode.numerics.tolerances import LIES_FLAT, RANK, SHORTEST_STEP, SMALL_PIVOT
from axode.problems.other_models import (
    GOOD_PIVOT,
    DescribedStates,
    interpret_few_states,
    is_rounded,
    rows_at,
)
from axode.problems.runs.batch import SMALLEST_PIVOT, Batch
from axode.problems.runs.session import CompiledRuns, Numbers
from axode.problems.singular.continuation import CONTINUATION_PIVOT
from axode.problems.singular.pivots import find_flattest_wheel, find_smallest_pivots
from axode.problems.steps.step_acceptance import RUNNING, SINGULAR
from axode.runtime.resident_buffers import read_rows

if TYPE_CHECKING:
    from axode.symbolic.constraints.row_choice import Choice

Array = npt.NDArray[np.float64]
MIN_GAIN = 3.0  # times what the present choice keeps: what another one must keep
MIN_GAIN_ROUNDED = 1.5  # the same where rows contradict each other, the more the less is kept
REGULAR = 0.01  # of rows and speeds: what keeps this is regular, however small its pivots are
RETRY_BELOW = 0.5  # of a pivot that has to do: below this another choice is sought again
RETRY_NEAR_RANK_LOSS = 0.3  # of the present pivot: steps across which it falls by more are too long
PASS_BELOW = 0.9  # of a pivot: where it is less after the next step, a run may pass from there
NEARLY_FLAT = 10.0  # of `flat`: below this a wheel that lies down explains the singularity
MAX_MODELS = 60  # of one mechanism that are kept, those that were used last
NAMED_WEIGHT = 0.2  # of the largest weight: smaller ones are not named


class Choices:
    """Chooses rows and speeds for the user's model, and keeps models that were made on others.

    Which rows are solved for which speeds first may do badly elsewhere. What is chosen depends on
    the configuration, and for a run on what it is on; never on which models are kept.

    Args:
        own: The user's model; it is not referenced here, which would keep it alive.
    """

    def __init__(self, own: Model) -> None:
        from axode.symbolic.constraints.row_choice import Chooser

        numbers = row_numbers_of(own)
        assert numbers is not None
        self.own = numbers.own
        self.chooser = Chooser(numbers)
        self._made: dict[Choice, Model] = {}
        self._on: WeakKeyDictionary[Model, Choice] = WeakKeyDictionary()

    @classmethod
    def of(cls, own: Model) -> Choices:
        """Return those of a model, made once."""
        if own not in _CHOICES:
            _CHOICES[own] = cls(own)
        return _CHOICES[own]

    def model(self, own: Model, choice: Choice) -> Model:
        """Return the model on some rows and speeds; the user's if they are its own."""
        if choice == self.own:
            return own
        made = self._made.pop(choice, None)
        if made is None:
            from axode.model.compile import facts_of_equations

            parent, fixed = library_of(own).row_equations, facts_of(own).fixed
            assert parent is not None
            equations = parent.on(choice)
            facts = replace(facts_of_equations(equations, fixed), home=facts_of(own).home)
            made = Model(facts, SymbolicLibrary(equations, own.target, fixed=fixed))
            self._on[made] = choice
        self._made[choice] = made  # the last one
        for oldest in list(self._made)[:-MAX_MODELS]:
            del self._made[oldest]
        return made

    def of_model(self, model: Model) -> Choice:
        """Return the choice on which a model was made."""
        return self._on.get(model, self.own)


_CHOICES: WeakKeyDictionary[Model, Choices] = WeakKeyDictionary()


def describe_loss(own: Model, q: Array, conditions: Conditions) -> str:
    """Describe what is nearly lost at a configuration."""
    names, weights, free = rows_at(own, q, conditions).weakest
    return (
        f"{_weak(names, weights)}, so that it may also move along "
        f"{_direction(own.speed_names, free)}"
    )


def describe_own_loss(own: Model, q: Array, conditions: Conditions) -> tuple[str, str]:
    """Describe what the user's rows and speeds lack at a configuration, and what would help.

    Their speeds, or the rows that were kept, may be singular where all rows together are not.
    """
    numbers = row_numbers_of(own)
    if numbers is None:
        return "a pivot vanishes", ""
    rows, mine = rows_at(own, q, conditions), numbers.own
    groups = [np.array(speeds, dtype=int) for speeds in (mine.independent, mine.base)]
    shares = [float(rows.kept_by_speeds(speeds)) for speeds in groups]
    kept = float(rows.kept_by_rows(np.array(mine.rows, dtype=int)))
    if rows.lost or float(rows.margin) < min(kept, *shares):
        return describe_loss(own, q, conditions), ""
    if kept < min(shares):
        names = ", ".join(rows.names[k] for k in mine.rows)
        return f"the rows that were kept, {names}, depend on each other there, others do not", ""
    speeds = groups[int(np.argmin(shares))]
    names = ", ".join(own.speed_names[k] for k in speeds)
    better = [own.speed_names[k] for k in rows.independent]
    return (
        f"{'the speeds' if len(speeds) > 1 else 'the speed'} {names} "
        f"{'do' if len(speeds) > 1 else 'does'} not determine the others there",
        f"derive(independent={better!r}) does better there",
    )


def _weak(rows: tuple[str, ...], weights: Array) -> str:
    size = np.abs(weights)
    picked = [n for n, w in zip(rows, size, strict=True) if w > NAMED_WEIGHT * size.max()]
    if len(picked) == 1:
        return f"the row {picked[0]} vanishes there"
    return f"the rows {', '.join(picked)} depend on each other there"


def _direction(names: tuple[str, ...], weights: Array) -> str:
    scaled = weights / weights[np.argmax(np.abs(weights))]
    pairs = zip(names, scaled.tolist(), strict=True)
    return ", ".join(f"{name} {w:+.2g}" for name, w in pairs if abs(w) > NAMED_WEIGHT)


def _min_gain(model: Model) -> float:
    return MIN_GAIN_ROUNDED if is_rounded(model) else MIN_GAIN


def smallest_pivot(model: Model, q: Array, conditions: Conditions) -> float:
    """Find the smallest pivot of all solves behind a model's speeds."""
    return float(find_smallest_pivots(model, q, conditions))


@dataclass(frozen=True)
class Changes:
    """What runs do whose next step has a small pivot.

    Attributes:
        models: Models to change to, each with its runs.
        stay: The other runs.
        least_pivot: How small pivots of each of them may become; NaN where a run must not go on.
    """

    models: list[tuple[Model, Numbers]]
    stay: Numbers
    least_pivot: Array


def find_changes(
    batch: CompiledRuns, runs: Numbers, own: Model, *, can_cross: bool = False, change: bool = True
) -> Changes:
    """Decide how runs continue whose next step has a small pivot.

    A function of each run's state, step and present rows and speeds alone.

    Args:
        batch: Where they run now.
        runs: Their numbers there.
        own: The model the user gave.
        can_cross: Whether runs can be taken across where all rows are nearly dependent.
        change: Whether they may change to another model.
    """
    b, model = batch.buffers, batch.model
    near = read_rows(b, "near", runs)[:, 0]  # negative where a pivot changes its sign in the step
    lies = np.zeros(len(runs), dtype=bool)
    if "flat" in b:
        flat = read_rows(b, "flat", runs)[:, 0]
        lies = flat < np.minimum(near, NEARLY_FLAT)
        near = np.where(lies, flat, near)
    least = np.where(near >= SMALL_PIVOT, RETRY_BELOW * near, np.nan)
    if row_numbers_of(own) is None:  # from a file that lacks them: there is no other choice
        return Changes([], runs, least)
    choices, conditions = Choices.of(own), batch.conditions(runs)
    q, nu, step = (read_rows(b, name, runs) for name in ("q", "nu", "h_s"))
    rates = interpret_few_states(model, len(q)).rates(q, nu, **conditions.options)
    rows = rows_at(own, q, conditions, q + step * rates)
    present = choices.of_model(model)
    found, number, offered = choices.chooser.choose(rows)
    kept = rows.regularity(present.rows, present.independent, present.base)
    better = (near < SMALL_PIVOT) | (offered > _min_gain(own) * kept)
    better &= np.array([choice != present for choice in found])[number]
    better &= (offered > REGULAR) & ~rows.lost & ~lies & change
    if can_cross:
        better &= rows.best_pivot >= SMALLEST_PIVOT
    regular = (near > RANK) & (np.minimum(kept, rows.margin) > REGULAR) & ~lies
    least = np.where(regular, RETRY_BELOW * near, least)
    leaving = [(choice, better & (number == k)) for k, choice in enumerate(found)]
    models = [(choices.model(own, choice), runs[which]) for choice, which in leaving if which.any()]
    return Changes(models, runs[~better], least[~better])


def near_singular(
    batch: Batch, runs: Numbers, own: Model, across: Callable[[Batch, int, str], bool] | None = None
) -> list[tuple[Model, Numbers]]:
    """Decide what to do with runs whose next step has a small pivot.

    They change to a model that does better there, go on as they are, go on beyond, or end, if no
    choice of rows and speeds would do.

    Args:
        batch: Where they run now.
        runs: Their numbers there.
        own: The model the user gave.
        across: Takes a run beyond a configuration at which rows lose rank, if it can; it receives
            what is lost there.

    Returns:
        Models to change to, each with its runs.
    """
    b, model = batch.buffers, batch.model
    changes = find_changes(batch, runs, own, can_cross=across is not None)
    for run, least in zip(changes.stay.tolist(), changes.least_pivot.tolist(), strict=True):
        q, near = b["q"][run], float(b["near"][run, 0])
        if across is not None and row_numbers_of(own) is not None and not _lies(batch, run, near):
            pivot = smallest_pivot(model, q.copy(), batch.conditions(run))
            lost = describe_loss(own, q.copy(), batch.conditions(run))
            if pivot < CONTINUATION_PIVOT and across(batch, run, lost):
                continue
            if near >= max(RETRY_NEAR_RANK_LOSS * pivot, SMALL_PIVOT):
                b["least_pivot"][run], b["status"][run] = PASS_BELOW * near, RUNNING
                continue
            least = np.nan  # the step is too long
        _go_on_or_end(batch, run, least, own)
    return changes.models


def _lies(batch: Batch, run: int, near: float) -> bool:
    """Return whether a wheel that nearly lies flat is what a run has stopped for."""
    b = batch.buffers
    return "flat" in b and float(b["flat"][run, 0]) < min(near, NEARLY_FLAT)


def _go_on_or_end(batch: Batch, run: int, least_pivot: float, own: Model) -> None:
    """Let a run continue unchanged, with shorter steps, or end."""
    b, step = batch.buffers, abs(float(batch.buffers["h_s"][run, 0]))
    if least_pivot > 0.0:
        b["least_pivot"][run] = least_pivot
    elif batch.settings.adaptive and step > SHORTEST_STEP:
        b["h"][run] = 0.5 * step  # the long step crosses it, a shorter one may not
    else:
        batch.resolve(run, SINGULAR, _describe(batch, run, own))
        return
    b["status"][run] = RUNNING


def _describe(batch: Batch, run: int, own: Model) -> str:
    """Describe what a run lacks that ends near a singular configuration."""
    q, conditions = batch.buffers["q"][run].copy(), batch.conditions(run)
    if "flat" in batch.buffers and float(batch.buffers["flat"][run, 0]) < NEARLY_FLAT:
        return find_flattest_wheel(batch.model, q, conditions)[1]
    if row_numbers_of(own) is not None:
        return describe_loss(own, q, conditions)
    return (
        f"the independent speeds {', '.join(batch.model.independent)} no longer describe the "
        "motion there; a model compiled from the mechanism changes them"
    )


def choose_rows(own: Model, q: Array, conditions: Conditions) -> Model:
    """Find a model on the user's speeds whose rows are regular at a configuration.

    Returns:
        The user's where it is regular, and where its speeds or all rows together are singular.
    """
    if row_numbers_of(own) is None or smallest_pivot(own, q, conditions) > GOOD_PIVOT:
        return own
    choices = Choices.of(own)
    rows = rows_at(own, q[np.newaxis], conditions)
    mine = np.array(choices.own.independent, dtype=int)
    if rows.lost[0] or rows.kept_by_speeds(mine)[0] < GOOD_PIVOT:
        return own
    return choices.model(own, choices.chooser.choose(rows, mine)[0][0])


def find_start_elsewhere(batch: CompiledRuns, run: int, own: Model) -> tuple[Model, Array] | None:
    """Find a model that describes a start at which the user's does not, and its speeds there.

    Returns:
        None where no other is needed or none would do, and where the start does not say how the
        mechanism moves: the user's speeds may be tied to each other there.
    """
    b = batch.buffers
    q, nu, conditions = b["q"][run].copy(), b["nu"][run].copy(), batch.conditions(run)
    if row_numbers_of(own) is None or smallest_pivot(own, q, conditions) > RANK:
        return None
    if find_flattest_wheel(own, q, conditions)[0] < LIES_FLAT:
        return None
    choices = Choices.of(own)
    rows = rows_at(own, q[np.newaxis], conditions)
    found, _, offered = choices.chooser.choose(rows)
    if rows.lost[0] or not offered[0] > REGULAR:
        return None
    other = choices.model(own, found[0])
    mine = [own.speed_names.index(name) for name in own.independent]
    rest = np.zeros(len(other.independent))
    need = nu - other.joint_speeds(q, rest, **conditions.options)[mine]
    if not np.any(need):
        return other, rest
    Theta = other.speed_map(q, **conditions.options)[mine]
    if not smallest_singular_value(Theta) > RANK:
        return None
    return other, np.linalg.solve(Theta, need)


def choose_models(own: Model, q: Array, conditions: Conditions) -> DescribedStates:
    """Choose models for configurations at some of which the user's becomes singular.

    Args:
        own: The model the user gave.
        q: Configurations, (..., size).
        conditions: Time and parameters, each one for all or one per configuration.
    """
    flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
    known = conditions.spread(q.shape[:-1])
    made_by, models = np.zeros(len(flat), dtype=np.intp), [own]
    if row_numbers_of(own) is not None:
        poor = np.flatnonzero(find_smallest_pivots(own, flat, known) < GOOD_PIVOT)
        if poor.size:
            choices = Choices.of(own)
            rows, mine = rows_at(own, flat[poor], known.at(poor)), choices.own
            found, number, offered = choices.chooser.choose(rows)
            kept = rows.regularity(mine.rows, mine.independent, mine.base)
            good = (offered > np.maximum(_min_gain(own) * kept, REGULAR)) & ~rows.lost
            for k in np.unique(number[good]).tolist():
                made_by[poor[good & (number == k)]] = len(models)
                models.append(choices.model(own, found[k]))
    return DescribedStates(tuple(models), made_by.reshape(q.shape[:-1]))
