"""Numbers read off curves, and what the formulations say at the states of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.mechanism.mechanism import Mechanism
from axode.model.model import Model
from axode.results.trajectory import Trajectory
from axode.symbolic.equations import Equations
from axode.symbolic.formulations import FORMULATIONS

Array = npt.NDArray[np.float64]


def largest(values: npt.ArrayLike) -> float:
    """Largest absolute value; NaN if any is."""
    return float(np.abs(values).max(initial=0.0))


def apart(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Largest difference between two curves at the same times."""
    return largest(np.asarray(first) - np.asarray(second))


def farthest(run: Trajectory, names: Iterable[str], rows: Iterable[Array]) -> float:
    """Largest difference between columns of a run and rows, as many as there are rows."""
    return max(apart(run[name], row) for name, row in zip(names, rows, strict=False))


def at(run: Trajectory, name: str, time: float) -> float:
    """A column at a time."""
    return float(run.at(time)[name])


def swing(times: Array, values: Array, since: float) -> float:
    """Largest absolute value from a time on, a parabola through its sample and its neighbours."""
    y = np.abs(values[times >= since])
    k = int(np.clip(np.argmax(y), 1, len(y) - 2))
    left, top, right = y[k - 1 : k + 2]
    bend = left - 2 * top + right
    return float(top - (right - left) ** 2 / (8 * bend)) if bend < 0 else float(top)


def by_formulations(
    mechanism: Mechanism, independent: Sequence[str], run: Trajectory, speeds: Sequence[str]
) -> dict[str, Array]:
    """Accelerations of some joint speeds, (samples, speeds), by all formulations that apply."""
    found = {}
    for name in FORMULATIONS:
        try:
            equations = mechanism.derive(name, independent)
        except NotApplicable:  # made for other mechanisms
            continue
        model = equations.compile("interpreter")
        q, nu, u = states_of(model, run)
        columns = [model.speed_names.index(speed) for speed in speeds]
        found[name] = model.accelerations(q, nu, model.forward_dynamics(q, nu, u))[:, columns]
    return found


def at_states(equations: Equations, run: Trajectory, *expressions: Any) -> list[Array]:
    """Values of expressions of all speeds at the states of a run, (samples, rows, columns)."""
    e = equations
    reduced = [ca.densify(e.system.at_speeds(x)) for x in expressions]
    function = ca.Function("f", [e.q, e.nu, e.u, e.t, e.p], reduced)
    rows = [
        [np.array(x) for x in function.call([q, nu, u, 0.0, e.system.defaults])]
        for q, nu, u in zip(*states_of(e, run), strict=True)
    ]
    return [np.array(values) for values in zip(*rows, strict=True)]


def states_of(owner: Equations | Model, run: Trajectory) -> tuple[Array, Array, Array]:
    """Coordinates, independent speeds and inputs of a run, (samples, number) each."""
    e = owner
    return run[e.coordinates].values, run[e.independent].values, run[e.inputs].values
