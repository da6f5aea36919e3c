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
Move = Callable[[Array], tuple[dict[str, Array], Array | None]]
FEW = 256  # states that are assembled at once
STEP = 2e-3  # the longest, of a number or of one; in a mechanism of a metre truncation is rounding
SHORTER, LEVELS = 1 / 8, 8  # steps that are tried: down to 1e-9
EXACT, AGREE = 1e-10, 1e-5  # relative: no shorter step is tried; this is no derivative
SMALL = 0.1  # derivatives of this relative size, and smaller ones, are exact to rounding only
SHIFTS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # in steps, with their weights
WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60
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
        along |= {f"start.{name}": differences.by_value(name) for name in moved}
        along |= {name: differences.by_parameter(name) for name in by_parameters}
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


class _Differences:
    """Central differences of assembled starts.

    How far a start may be moved depends on the size of the mechanism and on what is near: the ends
    of reach, other ways to close the loops. Steps therefore become shorter until two of them agree;
    each run has the one at which they agree best.
    """

    def __init__(self, model: Model, named: dict[str, Array], starts: Starts, t0: float) -> None:
        self.model, self.named, self.starts, self.t0 = model, named, starts, t0
        self._count = len(starts.q)
        self._known = np.ones(self._count, dtype=bool)
        self._known[starts.failed.runs] = False
        n = len(model.coordinates)
        self._parts = {"q": slice(0, n), "nu": slice(n, None)}

    def by_value(self, name: str) -> dict[str, Array]:
        """Derivative by a value of the start."""

        def moved(by: Array) -> tuple[dict[str, Array], Array | None]:
            return {**self.named, name: self.named[name] + by}, self.starts.p

        return self._converged(name, moved, np.maximum(1.0, np.abs(self.named[name])))

    def by_parameter(self, name: str) -> dict[str, Array]:
        """Derivative by a parameter."""
        p, place = self.starts.p, list(self.model.parameters).index(name)
        assert p is not None
        rows = np.broadcast_to(p, (self._count, p.shape[-1]))

        def moved(by: Array) -> tuple[dict[str, Array], Array | None]:
            return self.named, rows + np.outer(by, np.eye(p.shape[-1])[place])

        present = np.abs(rows[:, place])
        return self._converged(name, moved, np.where(present == 0.0, 1.0, present))

    def _converged(self, name: str, moved: Move, sizes: Array) -> dict[str, Array]:
        """Differences with steps that are short enough, of every run.

        Args:
            name: What is moved.
            moved: Values by name and parameters of all runs, moved by so much each.
            sizes: Sizes of what is moved, (runs,).
        """
        state = np.concatenate([self.starts.q, self.starts.nu], axis=1)
        small = SMALL * np.abs(state).max(axis=1) / sizes
        best = last = np.full(state.shape, np.nan)
        misses = np.full(self._count, np.inf)
        for level in range(LEVELS):
            h = STEP * SHORTER**level * sizes
            states = self._assemble([moved(shift * h) for shift in SHIFTS])
            found = np.tensordot(WEIGHTS, states, 1) / h[:, np.newaxis]
            beside = np.tensordot(MIDDLE, states, 1) - state
            missed = np.maximum(np.abs(found - last), np.abs(beside) / sizes[:, np.newaxis])
            largest = np.maximum(np.abs(found).max(axis=1), small)
            miss = missed.max(axis=1) / np.where(largest > 0, largest, 1.0)
            better, last = miss < misses, found
            enough = (misses < AGREE) & ~better
            best = np.where(better[:, np.newaxis], found, best)
            misses = np.where(better, miss, misses)
            if (enough | (misses < EXACT) | ~self._known).all():
                break
        if not (misses < AGREE)[self._known].all():
            raise NotApplicable(
                f"start: it cannot be assembled a little beside where it is, along '{name}'; it "
                "has no derivative there. Start elsewhere, or give q and nu"
            )
        return {part: best[:, place] for part, place in self._parts.items()}

    def _assemble(self, given: Sequence[tuple[dict[str, Array], Array | None]]) -> Array:
        """States of all runs for each shift, (shifts, runs, size); NaN where there are none.

        Few runs are assembled all at once, many as their starts were.
        """
        count, together = self._count, len(given) if self._count * len(given) <= FEW else 1
        made = []
        for k in range(0, len(given), together):
            part = given[k : k + together]
            named = {n: np.concatenate([values[n] for values, _ in part]) for n in self.named}
            p = part[0][1]
            if p is not None and together > 1:
                rows = [x for _, x in part if x is not None]
                p = np.concatenate([np.broadcast_to(x, (count, p.shape[-1])) for x in rows])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = assemble_runs(self.model, named, count * together, Conditions(self.t0, p))
            states = np.concatenate([found.q, found.nu], axis=1)
            states[found.failed.runs] = np.nan
            made.append(states.reshape(together, count, -1))
        return np.concatenate(made)
