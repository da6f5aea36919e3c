"""Derivatives of starts that are assembled, by what was given and by parameters.

Where coordinates and independent speeds are taken as given, the derivative is known. Elsewhere
loops, wheels, measures and quaternions decide about the rest of the state, and where they leave a
choice, the search of `assemble` does: equations and steps of the search are differentiated
(`start_closures`), or, where these do not suffice, results of `assemble` (`start_differences`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from axode.model.memory import without_memory
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import STATE_KINDS
from axode.problems.assemble.closure import is_always_closed, parameters_of_closure
from axode.problems.assemble.distinct_runs import find_distinct
from axode.problems.gradients.start_closures import ExactStarts, StartGradient
from axode.problems.gradients.start_differences import StartDifferences
from axode.problems.simulate.starts import Starts

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
