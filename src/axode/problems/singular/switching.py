"""Choose other rows and independent speeds where the present ones become singular."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.model.conditions import Conditions
from axode.model.function_source import SymbolicLibrary
from axode.model.metadata import Facts
from axode.model.model import Model
from axode.problems.session import Numbers
from axode.problems.simulate.batch import SMALLEST_PIVOT, Batch
from axode.problems.singular.other_models import GOOD_PIVOT, Described, is_rounded
from axode.problems.singular.passing import PASSING_PIVOT
from axode.problems.singular.pivots import LIES_FLAT, find_flattest_wheel, find_smallest_pivots
from axode.problems.steps.step_acceptance import FLAT, RUNNING, SINGULAR
from axode.symbolic.algebra.rank import smallest_singular_value

if TYPE_CHECKING:
    from axode.symbolic.equations import Equations

Array = npt.NDArray[np.float64]
MIN_GAIN = 3.0  # times the present pivot: what another choice must offer
MIN_GAIN_ROUNDED = 1.5  # the same where rows contradict each other, the more the smaller it is
WORTHWHILE_PIVOT = 0.2  # worth a change where the present pivot vanishes within a step
SINGULAR_PIVOT = 1e-3  # a pivot below which the motion is no longer determined
RETRY_BELOW = 0.3  # of a pivot that has to do: below this another choice is sought again
PASS_BELOW = 0.9  # of a pivot: where it is less after the next step, a run may pass from there
NEARLY_FLAT = 10.0  # of `flat`: below this a wheel that lies down explains the singularity
SHORTEST_STEP = 1e-6  # [s]: how near adaptive steps go to a configuration where rank is lost
SAME_CONFIGURATION = 1e-2  # [rad or m]: two models made this near would be the same
MAX_MODELS = 60  # models of one mechanism
UNDETERMINED_PIVOT = 1e-9  # below it a model's speeds do not determine a start
CONSISTENT = 1e-9  # relative: a start that misses its speeds by more is none
NAMED_WEIGHT = 0.2  # of the largest weight: smaller ones are not named


@dataclass(frozen=True)
class Choices:
    """Models of the same mechanism on other rows and independent speeds.

    Which rows are solved for which speeds first is chosen where a model is made, and may do badly
    elsewhere; a model that was made for other configurations may therefore be replaced.
    """

    made: list[tuple[Model, Array]] = field(default_factory=list)  # and where

    def best(
        self, model: Model, own: Model, q: Array, conditions: Conditions, *, passing: bool = False
    ) -> tuple[Model, str]:
        """Find the model that does best at a configuration, and describe what is nearly lost there.

        Args:
            model: The present one.
            own: The one the user gave; it is not kept here, or it would never be forgotten.
            q: The configuration.
            conditions: Time and parameters there.
            passing: Whether the run can be taken across where all rows are nearly dependent.
        """
        from axode.symbolic.constraints.row_choice import repartition, rows_at
        from axode.symbolic.equations import Equations

        equations = model.equations
        system = equations.system
        rows = rows_at(system, q, float(conditions.t), own.parameter_vector(conditions.p))
        names, weights, free = rows.weakest
        description = (
            f"{_weak(names, weights)}, so that it may also move along "
            f"{_direction(equations.speeds, free)}"
        )
        if rows.lost or (passing and rows.best_pivot < SMALLEST_PIVOT):
            return model, description
        present = smallest_pivot(model, q, conditions)
        models = [(own, own.home), *self.made]
        known = max((m for m, _ in models), key=lambda m: smallest_pivot(m, q, conditions))
        enough = smallest_pivot(known, q, conditions) > max(
            _min_gain(own) * present, SINGULAR_PIVOT
        )
        made_here = any(np.abs(at - q).max() < SAME_CONFIGURATION for _, at in models)
        if enough or made_here or len(models) >= MAX_MODELS:
            return known, description
        made = Equations(repartition(system, rows), equations.formulation)
        return self._keep(model, made, q), description

    def _keep(self, model: Model, made: Equations, q: Array) -> Model:
        """Make a model of equations, like another one, and keep it with where it was made."""
        facts = replace(Facts.of(made, fixed=model.facts.fixed), home=model.facts.home)
        library = SymbolicLibrary(made, model.target, fixed=model.facts.fixed)
        self.made.append((Model(facts, library), q.copy()))
        return self.made[-1][0]

    def on_same_speeds(self, own: Model, q: Array, conditions: Conditions) -> Model:
        """Find a model on other rows and the user's independent speeds; the user's if none does."""
        from axode.symbolic.constraints.row_choice import repartition, rows_at
        from axode.symbolic.equations import Equations

        for model, _ in self.made:
            same = model.independent == own.independent
            if same and smallest_pivot(model, q, conditions) > GOOD_PIVOT:
                return model
        equations = own.equations
        p = own.parameter_vector(conditions.p)
        rows = rows_at(equations.system, q, float(conditions.t), p)
        mine = equations.system.independent
        smallest = smallest_singular_value(rows.null_space[list(mine)])
        if rows.lost or smallest < GOOD_PIVOT:
            return own
        system = repartition(equations.system, rows, mine)
        return self._keep(own, Equations(system, equations.formulation), q)


_CHOICES: WeakKeyDictionary[Model, Choices] = WeakKeyDictionary()


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


def count_models(own: Model) -> int:
    """Count the models that describe the same mechanism as the user's, itself included."""
    return 1 + len(_CHOICES.setdefault(own, Choices()).made)


def choose_known_models(batch: Batch, runs: Numbers, own: Model) -> list[tuple[Model, Numbers]]:
    """Choose models that were made before for runs before whose next step a pivot becomes small.

    Args:
        batch: Where they run now.
        runs: Their numbers there.
        own: The model the user gave.

    Returns:
        Models that do better, each with its runs; the other runs are left to `near_singular`.
    """
    b, models = (
        batch.buffers,
        [own, *(made for made, _ in _CHOICES.setdefault(own, Choices()).made)],
    )
    if "flat" in b:
        runs = runs[~(b["flat"][runs, 0] < np.minimum(NEARLY_FLAT, b["near"][runs, 0]))]
    q, conditions = b["q"][runs], batch.conditions(runs)
    present = find_smallest_pivots(batch.model, q, conditions)
    offered = np.array([find_smallest_pivots(model, q, conditions) for model in models])
    best = offered.argmax(axis=0)
    enough = offered.max(axis=0) > np.maximum(_min_gain(own) * present, SINGULAR_PIVOT)
    found = ((model, runs[enough & (best == k)]) for k, model in enumerate(models))
    return [(model, which) for model, which in found if which.size and model is not batch.model]


def near_singular(
    batch: Batch, run: int, own: Model, across: Callable[[Batch, int, str], bool] | None = None
) -> Model | None:
    """Decide what to do with a run before whose next step a pivot becomes small.

    It changes to a model that does better there, which is returned; or it goes on as it is; or it
    goes on beyond; or it ends, if no choice of rows and speeds would do.

    Args:
        batch: Where it runs now.
        run: Its number there.
        own: The model the user gave.
        across: Takes a run beyond a configuration at which rows lose rank, if it can; it receives
            what is lost there.
    """
    model, b = batch.model, batch.buffers
    q, conditions = b["q"][run].copy(), batch.conditions(run)
    near = float(b["near"][run, 0])  # in the step to come; negative where a pivot changes its sign
    flat = float(b["flat"][run, 0]) if "flat" in b else 1.0 / FLAT
    lying = find_flattest_wheel(model, q, conditions)[1] if flat < NEARLY_FLAT else ""
    if lying and flat < near:
        return _go_on_or_end(batch, run, flat, lying)
    if not model.has_equations:  # from a file: there is no other choice
        description = (
            f"the independent speeds {', '.join(model.independent)} no longer describe the "
            "motion there; a model compiled from the mechanism changes them"
        )
        return _go_on_or_end(batch, run, near, description)
    choices = _CHOICES.setdefault(own, Choices())
    other, description = choices.best(model, own, q, conditions, passing=across is not None)
    if other is not model:
        present, offered = (smallest_pivot(m, q, conditions) for m in (model, other))
        if offered > max(_min_gain(own) * present, SINGULAR_PIVOT) or (
            near < SINGULAR_PIVOT and offered > WORTHWHILE_PIVOT
        ):
            return other
    if across is not None:
        pivot = smallest_pivot(model, q, conditions)
        if pivot < PASSING_PIVOT and across(batch, run, description):
            return None
        if near >= max(RETRY_BELOW * pivot, SINGULAR_PIVOT):
            b["least_pivot"][run], b["status"][run] = PASS_BELOW * near, RUNNING
            return None
        near = min(near, 0.0)  # the step is too long
    return _go_on_or_end(batch, run, near, lying or description)


def choose_rows(own: Model, q: Array, conditions: Conditions) -> Model:
    """Find a model on the user's speeds whose rows are regular at a configuration.

    Returns:
        The user's where it is regular, and where its speeds or all rows together are singular.
    """
    if not own.has_equations:
        return own
    if smallest_pivot(own, q, conditions) > GOOD_PIVOT:
        return own
    return _CHOICES.setdefault(own, Choices()).on_same_speeds(own, q, conditions)


def find_start_elsewhere(batch: Batch, run: int, own: Model) -> tuple[Model, Array] | None:
    """Find a model that describes a start at which the user's does not, and its speeds there.

    Returns:
        None where no other is needed or none would do, and where the start does not say how the
        mechanism moves: the user's speeds may be tied to each other there.
    """
    b = batch.buffers
    q, nu, conditions = b["q"][run].copy(), b["nu"][run].copy(), batch.conditions(run)
    if not own.has_equations or smallest_pivot(own, q, conditions) > UNDETERMINED_PIVOT:
        return None
    if find_flattest_wheel(own, q, conditions)[0] < LIES_FLAT:
        return None
    other, _ = _CHOICES.setdefault(own, Choices()).best(own, own, q, conditions)
    if smallest_pivot(other, q, conditions) < SINGULAR_PIVOT:
        return None
    mine = [own.speed_names.index(name) for name in own.independent]
    rest = np.zeros(len(other.independent))
    need = nu - other.joint_speeds(q, rest, **conditions.options)[mine]
    if not np.any(need):
        return other, rest
    Theta = other.speed_map(q, **conditions.options)[mine]
    if not smallest_singular_value(Theta) > CONSISTENT:
        return None
    return other, np.linalg.solve(Theta, need)


def choose_models(
    own: Model, q: Array, conditions: Conditions, below: float = GOOD_PIVOT
) -> Described:
    """Choose models for configurations, where the user's becomes singular at some of them.

    Args:
        own: The model the user gave.
        q: Configurations, (..., size).
        conditions: Time and parameters, each one for all or one per configuration.
        below: Pivot of the user's model below which another one is looked for.
    """
    flat = np.ascontiguousarray(q.reshape(-1, q.shape[-1]))
    known = conditions.spread(q.shape[:-1])
    pivots = find_smallest_pivots(own, flat, known)
    made_by = np.zeros(len(flat), dtype=np.intp)
    waiting = np.flatnonzero(pivots < below)
    models = [own]
    if not own.has_equations:
        waiting = waiting[:0]
    choices = _CHOICES.setdefault(own, Choices()) if waiting.size else Choices()
    while waiting.size:
        k = int(waiting[0])
        other, _ = choices.best(own, own, flat[k], known.at(k))
        offered = find_smallest_pivots(other, flat[waiting], known.at(waiting))
        good = offered > np.maximum(_min_gain(own) * pivots[waiting], SINGULAR_PIVOT)
        good |= (offered > pivots[waiting]) & (offered > WORTHWHILE_PIVOT)
        if other is not own and good.any():
            models += [] if other in models else [other]
            made_by[waiting[good]] = models.index(other)
        waiting = waiting[~good & (waiting != k)]
    return Described(tuple(models), made_by.reshape(q.shape[:-1]))


def _go_on_or_end(batch: Batch, run: int, near: float, description: str) -> Model | None:
    b = batch.buffers
    step = abs(float(b["h_s"][run, 0]))
    if near >= SINGULAR_PIVOT:
        b["least_pivot"][run] = RETRY_BELOW * near
    elif batch.settings.adaptive and step > SHORTEST_STEP:
        b["h"][run] = 0.5 * step  # the long step crosses it, a shorter one may not
    else:
        batch.resolve(run, SINGULAR, description)
        return None
    b["status"][run] = RUNNING
    return None
