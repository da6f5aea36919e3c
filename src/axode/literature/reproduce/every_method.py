"""Accelerations along a run by every formulation, and other numbers at its states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.errors import NotApplicable
from axode.mechanism.mechanism import Mechanism
from axode.results.trajectory import Trajectory
from axode.symbolic.equations import Equations
from axode.symbolic.formulations import FORMULATIONS

Array = npt.NDArray[np.float64]


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
        q, nu, u = _states(equations, run)
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
        for q, nu, u in zip(*_states(e, run), strict=True)
    ]
    return [np.array(values) for values in zip(*rows, strict=True)]


def _states(equations: Equations, run: Trajectory) -> tuple[Array, ...]:
    groups = (equations.coordinates, equations.independent, equations.inputs)
    return tuple(np.stack([run[name] for name in names], axis=-1) for names in groups)
