"""Derivatives of starts that are assembled, by what was given and by parameters.

Where coordinates and independent speeds are taken as given, the derivative is known. Elsewhere
loops, wheels, measures and quaternions decide about the rest of the state, and where they leave a
choice, the search of `assemble` does. Its results are therefore differentiated as they are, by
central differences of order six, whose errors are those of rounding.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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
STEP = 2e-3  # of a number, or of one: truncation is below rounding
# Weights of the values at 1, 2 and 3 steps, less those at -1, -2 and -3.
WEIGHTS = (45 / 60, -9 / 60, 1 / 60)


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
    """Central differences of assembled starts."""

    def __init__(self, model: Model, named: dict[str, Array], starts: Starts, t0: float) -> None:
        self.model, self.named, self.starts, self.t0 = model, named, starts, t0

    def by_value(self, name: str) -> dict[str, Array]:
        """Derivative by a value of the start."""
        size = STEP * np.maximum(1.0, np.abs(self.named[name]))

        def at(shift: float) -> dict[str, Array]:
            moved = {**self.named, name: self.named[name] + shift * size}
            return self._assemble(moved, self.starts.p, name)

        return _combined(at, size)

    def by_parameter(self, name: str) -> dict[str, Array]:
        """Derivative by a parameter."""
        p, place = self.starts.p, list(self.model.parameters).index(name)
        assert p is not None
        rows = np.array(np.broadcast_to(p, (len(self.starts.q), p.shape[-1])))
        size = STEP * np.where(rows[:, place] == 0.0, 1.0, np.abs(rows[:, place]))

        def at(shift: float) -> dict[str, Array]:
            moved = rows.copy()
            moved[:, place] += shift * size
            return self._assemble(self.named, moved, name)

        return _combined(at, size)

    def _assemble(self, named: dict[str, Array], p: Array | None, name: str) -> dict[str, Array]:
        count = len(self.starts.q)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = assemble_runs(self.model, named, count, Conditions(self.t0, p))
        if made.first_error is not None and len(made.failed) > len(self.starts.failed):
            raise NotApplicable(
                f"start: it cannot be assembled a little beside where it is, along '{name}'; it "
                "has no derivative there. Start elsewhere, or give q and nu"
            ) from made.first_error
        return {"q": made.q, "nu": made.nu}


def _combined(at, size: Array) -> dict[str, Array]:  # type: ignore[no-untyped-def]
    total: dict[str, Array] = {}
    for k, weight in enumerate(WEIGHTS, 1):
        ahead, behind = at(float(k)), at(-float(k))
        for name in ("q", "nu"):
            part = weight * (ahead[name] - behind[name]) / size[:, np.newaxis]
            total[name] = total.get(name, 0.0) + part
    return total
