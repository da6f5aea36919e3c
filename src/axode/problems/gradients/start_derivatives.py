"""Derivatives of starts that are assembled, by what was given and by parameters.

Where coordinates and independent speeds are taken as given, the derivative is known. Elsewhere
loops, wheels, measures and quaternions decide about the rest of the state, and where they leave a
choice, the search of `assemble` does. Its results are therefore differentiated as they are, by
central differences of order six, with steps so short that their errors are those of rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.signals import STATE_KINDS
from axode.problems.assemble.assemble import assemble_runs
from axode.problems.assemble.closure import is_always_closed, parameters_of_closure
from axode.problems.simulate.starts import Starts

Array = npt.NDArray[np.float64]
FEW = 256  # states that are assembled at once
STEP = 2e-3  # the longest, of a number or of one
SHORTER, LEVELS = 1 / 8, 8  # steps that are tried: down to 1e-9
EXACT, AGREE = 1e-11, 1e-5  # relative: no shorter step is tried; this is no derivative
SMALL = 0.1  # derivatives of this relative size, and smaller ones, are exact to rounding only
ROUNDING = 1e-15  # of assembled states, relative
SHIFTS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # in steps, with weights of differences
SIXTH = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60
FOURTH = np.array([0.0, 1.0, -8.0, 8.0, -1.0, 0.0]) / 12
MIDDLE = np.array([1.0, -6.0, 15.0, 15.0, -6.0, 1.0]) / 20  # weights that interpolate the start


@dataclass(frozen=True)
class StartDerivatives:
    """Changes of q and nu of every run along each variable, (runs, size) each; none if absent."""

    along: dict[str, dict[str, Array]]


def start_derivatives(
    model: Model,
    named: Mapping[str, Array] | None,
    starts: Starts,
    t0: float,
    values: Sequence[str],
    parameters: Sequence[str],
) -> StartDerivatives:
    """Differentiate the starts of runs.

    Args:
        model: What moves.
        named: The start as given by name, each of the shape of a batch; None for arrays.
        starts: The starts.
        t0: Time at the start [s].
        values: Full names of values of the start by which to differentiate.
        parameters: Names of parameters, the same.
    """
    if named is None:
        return StartDerivatives({})
    full = model.signals.names(*STATE_KINDS).by_full_name(named)
    count = len(starts.q)
    spread = {n: np.broadcast_to(a, starts.batch).reshape(count) for n, a in full.items()}
    along: dict[str, dict[str, Array]] = {}
    moved = []
    for name in values:
        if _is_direct(model, full):
            along[f"start.{name}"] = _unit(model, name, count)
        else:
            moved.append(name)
    numbers = set() if not parameters else set(_parameters_of_start(model, full))
    by_parameters = [n for n in parameters if list(model.parameters).index(n) in numbers]
    if moved or by_parameters:
        differences = _Differences(model, spread, starts, t0)
        every = [differences.value(name) for name in moved]
        every += [differences.parameter(name) for name in by_parameters]
        keys = [f"start.{name}" for name in moved] + by_parameters
        along |= dict(zip(keys, differences.compute(every), strict=True))
    return StartDerivatives(along)


def _is_direct(model: Model, names: Mapping[str, Array]) -> bool:
    """Return whether everything that is given is taken as it is."""
    tied = {model.coordinates[k] for four in model.facts.quaternions for k in four}
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
    if _is_direct(model, names):
        return []
    own = {*model.coordinates, *model.independent}
    if any(model.signals.depends_on_speeds(n) for n in names if n not in own):
        return list(range(len(model.parameters)))  # speeds follow from all dimensions
    return parameters_of_closure(model, not set(names) <= own)


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


class _Differences:
    """Central differences of assembled starts.

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

    def compute(self, moved: Sequence[_Moved]) -> list[dict[str, Array]]:
        """Derivatives by all that is moved.

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
        n = len(self.model.coordinates)
        return [{"q": made[:, :n], "nu": made[:, n:]} for made in found]

    def _difference(self, states: Array, h: Array, sizes: Array) -> tuple[Array, Array]:
        """Difference of states beside the start, and an estimate of its relative error."""
        made, other = (np.tensordot(w, states, 1) / h[:, np.newaxis] for w in (SIXTH, FOURTH))
        aside = np.abs(np.tensordot(MIDDLE, states, 1) - self._state).max(axis=1)
        size = np.abs(self._state).max(axis=1)
        largest = np.maximum(np.abs(made).max(axis=1), SMALL * size / sizes)
        largest[largest == 0.0] = 1.0
        order = (np.abs(made - other).max(axis=1) / largest) ** 1.5
        return made, np.maximum(order, np.maximum(aside / sizes, ROUNDING * size / h) / largest)

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
