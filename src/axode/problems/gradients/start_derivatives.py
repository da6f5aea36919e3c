"""Derivatives of starts that are assembled, by what was given and by parameters.

Where coordinates and independent speeds are taken as given, the derivative is known. Elsewhere
loops, wheels, measures and quaternions decide about the rest of the state, and where they leave a
choice, the search of `assemble` does: equations and steps of the search are differentiated
(`start_closures`), or, where these do not suffice, results of `assemble` (`start_differences`).

Differences of starts, where no equations determine how `assemble` moves them.

Its results are differentiated as they are, by central differences of order six, with steps so short
that their errors are those of rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.model.conditions import Conditions
from axode.model.memory import without_memory
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.numerics.tolerances import SUM_ROUNDING
from axode.problems.assemble.assemble import assemble_runs, find_distinct
from axode.problems.assemble.closure import is_always_closed, parameters_of_closure
from axode.problems.gradients.start_closures import ExactStarts, StartGradient
from axode.problems.simulate.starts import Starts

FEW = 256  # states that are assembled at once
STEP = 2e-3  # the longest, of a number or of one
SHORTER, LEVELS = 1 / 8, 8  # steps that are tried: down to 1e-9
EXACT, AGREE = 1e-11, 1e-5  # relative: no shorter step is tried; this is no derivative
SMALL = 0.1  # derivatives of this relative size, and smaller ones, are exact to rounding only
SHIFTS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # in steps, with weights of differences
SIXTH = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60
FOURTH = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12
MIDDLE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0]) / 20  # weights that interpolate the start


@dataclass(frozen=True)
class _Moved:
    """Something by which starts are differentiated: a value by name, or a parameter.

    Attributes:
        name: Its name.
        sizes: How large it is in every run.
        by: Values by name and parameters of all runs, with this one moved by so much each.
    """

    name: str
    sizes: Array
    by: Callable[[Array], tuple[dict[str, Array], Array | None]]


class StartDifferences:
    """Central differences of assembled starts.

    Args:
        model: What moves.
        named: What was given, by full name, (runs,) each.
        starts: The starts.
        t0: Time at the start [s].

    How far a start may be moved depends on the size of the mechanism and on what is near: the ends
    of reach, other ways to close the loops. Steps therefore become shorter until differences of
    order four and six agree and lead back to the start.
    """

    def __init__(self, model: Model, named: dict[str, Array], starts: Starts, t0: float) -> None:
        self.model, self.named, self.starts, self.t0 = model, named, starts, t0
        self._count = len(starts.q)
        self._state = np.concatenate([starts.q, starts.nu], axis=1)
        self._missing = np.isin(np.arange(self._count), starts.failed.runs)

    def value(self, name: str) -> _Moved:
        """A value of the start."""

        def by(amount: Array) -> tuple[dict[str, Array], Array | None]:
            return {**self.named, name: self.named[name] + amount}, self.starts.p

        return _Moved(name, np.maximum(1.0, np.abs(self.named[name])), by)

    def parameter(self, name: str) -> _Moved:
        """A parameter."""
        p, place = self.starts.p, list(self.model.parameters).index(name)
        assert p is not None
        rows = np.broadcast_to(p, (self._count, p.shape[-1]))

        def by(amount: Array) -> tuple[dict[str, Array], Array | None]:
            return self.named, rows + np.outer(amount, np.eye(p.shape[-1])[place])

        present = np.abs(rows[:, place])
        return _Moved(name, np.where(present == 0.0, 1.0, present), by)

    def compute(self, moved: Sequence[_Moved]) -> list[Array]:
        """Derivatives of q and nu by all that is moved, (runs, size) each.

        Raises:
            NotApplicable: naming one along which starts have none.
        """
        found = [np.zeros_like(self._state) for _ in moved]
        misses = [np.where(self._missing, 0.0, np.inf) for _ in moved]
        waiting = list(range(len(moved)))
        for level in range(LEVELS):
            steps = [STEP * SHORTER**level * moved[k].sizes for k in waiting]
            pairs = zip(waiting, steps, strict=True)
            states = self._assemble([moved[k].by(s * h) for k, h in pairs for s in SHIFTS])
            left = []
            for k, h, some in zip(waiting, steps, states, strict=True):
                made, miss = self._difference(some, h, moved[k].sizes)
                better = miss < misses[k]
                found[k][better], misses[k][better] = made[better], miss[better]
                if not ((misses[k] < EXACT) | (~better & (misses[k] < AGREE))).all():
                    left.append(k)
            waiting = left
            if not waiting:
                break
        for k in waiting:
            if not (misses[k] < AGREE).all():
                raise NotApplicable(
                    "start: it cannot be assembled a little beside where it is, along "
                    f"'{moved[k].name}'; it has no derivative there. Start elsewhere, or give q "
                    "and nu"
                )
        return found

    def _difference(self, states: Array, h: Array, sizes: Array) -> tuple[Array, Array]:
        """Difference of states beside the start, and an estimate of its relative error."""
        made, other = (np.tensordot(w, states, 1) / h[:, np.newaxis] for w in (SIXTH, FOURTH))
        aside = np.abs(np.tensordot(MIDDLE, states, 1) - self._state).max(axis=1)
        size = np.abs(self._state).max(axis=1)
        largest = np.maximum(np.abs(made).max(axis=1), SMALL * size / sizes)
        largest[largest == 0.0] = 1.0
        order = (np.abs(made - other).max(axis=1) / largest) ** 1.5
        return made, np.maximum(order, np.maximum(aside / sizes, SUM_ROUNDING * size / h) / largest)

    def _assemble(self, given: Sequence[tuple[dict[str, Array], Array | None]]) -> Array:
        """States of all runs, (variables, shifts, runs, size); NaN where there are none.

        Few are assembled at once, many as the starts were.
        """
        count, made = self._count, []
        together = max(1, FEW // count)
        for k in range(0, len(given), together):
            part = given[k : k + together]
            named = {n: np.concatenate([values[n] for values, _ in part]) for n in self.named}
            rows = [p for _, p in part if p is not None]
            p = rows[0] if rows else None
            if p is not None and len(part) > 1:
                p = np.concatenate([np.broadcast_to(x, (count, x.shape[-1])) for x in rows])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = assemble_runs(self.model, named, count * len(part), Conditions(self.t0, p))
            states = np.concatenate([found.q, found.nu], axis=1)
            states[found.failed.runs] = np.nan
            made.append(states)
        return np.concatenate(made).reshape(-1, len(SHIFTS), *self._state.shape)


Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.intp]
Along = dict[str, dict[str, Array]]  # changes of q and nu of every run, by variable


class StartDerivatives:
    """Derivatives of the starts of runs.

    Args:
        model: What moves.
        named: The start as given by name, each of the shape of a batch; None for arrays.
        starts: The starts.
        t0: Time at the start [s].
        values: Full names of values of the start by which to differentiate.
        parameters: Names of parameters, the same.
    """

    def __init__(
        self,
        model: Model,
        named: Mapping[str, Array] | None,
        starts: Starts,
        t0: float,
        values: Sequence[str],
        parameters: Sequence[str],
    ) -> None:
        whole, self.model, self.t0 = model, without_memory(model), t0
        self._others = len(facts_of(model).memory)  # speeds that a law remembers, the last ones
        model, own = self.model, len(self.model.independent)
        self.starts = starts = replace(starts, nu=starts.nu[:, :own])
        self._count = len(starts.q)
        self._memory: Along = {
            f"start.{name}": _unit(whole, name, self._count)
            for name in values
            if name in facts_of(whole).memory
        }
        self._direct: Along = {}
        self._values: list[str] = []
        self._parameters: list[str] = []
        if named is None:
            return
        full = whole.signals.names(*STATE_KINDS).by_full_name(named)
        full = {name: array for name, array in full.items() if name not in facts_of(whole).memory}
        values = [name for name in values if name in full]
        self._named = {
            n: np.broadcast_to(a, starts.batch).reshape(self._count) for n, a in full.items()
        }
        if is_direct(model, full):
            self._direct = {f"start.{name}": _unit(model, name, self._count) for name in values}
            return
        self._values = list(values)
        numbers = set(_parameters_of_start(model, full)) if parameters else set()
        order = list(model.parameters)
        self._parameters = [name for name in parameters if order.index(name) in numbers]

    def pull_back(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """Gradient of weighted coordinates and speeds of every run, by variable, (runs,) each."""
        found = {key: _weighted(change, weights) for key, change in self._memory.items()}
        own = weights["nu"].shape[1] - self._others
        weights = {**weights, "nu": weights["nu"][:, :own]}
        return found | self._pull_back(weights)

    def _pull_back(self, weights: Mapping[str, Array]) -> dict[str, Array]:
        """Do so for what is not memory of a law."""
        found = {key: _weighted(change, weights) for key, change in self._direct.items()}
        if not self._keys:
            return found
        if len(self._different[0]) * self._size <= self._count:
            return {key: _weighted(change, weights) for key, change in self._along.items()}
        exact, n = self._exact, self.starts.q.shape[1]
        made = self._picked(exact.pull_back(weights))
        rest = np.setdiff1d(np.flatnonzero(~exact.exact), self.starts.failed.runs)
        for key, slope in self._differences(rest).items():
            change = {"q": slope[:, :n], "nu": slope[:, n:]}
            made[key][rest] = _weighted(change, {name: w[rest] for name, w in weights.items()})
        return made

    @cached_property
    def along(self) -> Along:
        """Changes of q and nu of every run along each variable, (runs, size) each."""
        rest = np.zeros((self._count, self._others))
        return self._memory | {
            key: {"q": change["q"], "nu": np.concatenate([change["nu"], rest], axis=1)}
            for key, change in self._along.items()
        }

    @cached_property
    def _along(self) -> Along:
        """Changes of the mechanism's state alone."""
        if not self._keys:
            return self._direct
        first, which = self._different
        exact = self._exact_of(first)
        count, n = len(first), self.starts.q.shape[1]
        slopes = {key: np.zeros((count, self._size)) for key in self._keys}
        for place in range(self._size if exact.exact.any() else 0):
            weights = np.zeros((count, self._size))
            weights[:, place] = 1.0
            found = exact.pull_back({"q": weights[:, :n], "nu": weights[:, n:]})
            for key, values in self._picked(found).items():
                slopes[key][:, place] = values
        rest = np.flatnonzero(~exact.exact & ~np.isin(first, self.starts.failed.runs))
        for key, change in self._differences(first[rest]).items():
            slopes[key][rest] = change
        whole = slice(None) if which is None else which
        return {
            key: {"q": slope[whole, :n], "nu": slope[whole, n:]} for key, slope in slopes.items()
        }

    @property
    def _keys(self) -> list[str]:
        """What moves starts that are assembled."""
        return [f"start.{name}" for name in self._values] + self._parameters

    @property
    def _size(self) -> int:
        return int(self.starts.q.shape[1] + self.starts.nu.shape[1])

    def _picked(self, found: StartGradient) -> dict[str, Array]:
        """Gradients by variable."""
        made = {f"start.{name}": found.values[name] for name in self._values}
        if self._parameters:
            order = list(self.model.parameters)
            made |= {name: found.parameters[:, order.index(name)] for name in self._parameters}
        return made

    @cached_property
    def _different(self) -> tuple[Numbers, Numbers | None]:
        """Runs with starts of their own, and which of them each run shares."""
        columns, p = list(self._named.values()), self.starts.p
        if p is not None and p.ndim > 1:
            columns += [p[:, k] for k in _parameters_of_start(self.model, self._named)]
        return find_distinct(columns, self._count)

    @cached_property
    def _exact(self) -> ExactStarts:
        return self._exact_of(np.arange(self._count))

    def _exact_of(self, runs: Numbers) -> ExactStarts:
        return ExactStarts(self.model, self._named_of(runs), self.starts.part(runs), self.t0)

    def _named_of(self, runs: Numbers) -> dict[str, Array]:
        return {name: values[runs] for name, values in self._named.items()}

    def _differences(self, runs: Numbers) -> dict[str, Array]:
        """Changes of the states of some runs, by differences."""
        if not runs.size:
            return {}
        made = StartDifferences(self.model, self._named_of(runs), self.starts.part(runs), self.t0)
        moved = [made.value(name) for name in self._values]
        moved += [made.parameter(name) for name in self._parameters]
        return dict(zip(self._keys, made.compute(moved), strict=True))


def _weighted(change: Mapping[str, Array], weights: Mapping[str, Array]) -> Array:
    """Weighted sum of a change of q and nu, of every run."""
    both = [(weights[name] * array).sum(axis=-1) for name, array in change.items()]
    return np.asarray(both[0] + both[1])


def is_direct(model: Model, names: Mapping[str, Array]) -> bool:
    """Return whether all given values are used unchanged."""
    tied = {model.coordinates[k] for four in facts_of(model).quaternions for k in four}
    own = (set(model.coordinates) - tied) | set(model.independent)
    return set(names) <= own and is_always_closed(model)


def _unit(model: Model, name: str, count: int) -> dict[str, Array]:
    """Change of one coordinate or speed alone."""
    q, nu = (np.zeros((count, len(names))) for names in (model.coordinates, model.independent))
    if name in model.coordinates:
        q[:, model.coordinates.index(name)] = 1.0
    else:
        nu[:, model.independent.index(name)] = 1.0
    return {"q": q, "nu": nu}


def _parameters_of_start(model: Model, names: Mapping[str, Array]) -> list[int]:
    """Numbers of the parameters that decide about an assembled start."""
    own = {*model.coordinates, *model.independent}
    if any(model.signals.depends_on_speeds(n) for n in names if n not in own):
        return list(range(len(model.parameters)))  # speeds follow from all dimensions
    return parameters_of_closure(model, not set(names) <= own)
