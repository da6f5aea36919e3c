"""States of which all freedoms are named: what a user leaves out is as at home."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from axode.kinematics.robot_kinematics import Kinematics
from axode.mechanism.mechanism import Mechanism
from axode.mechanism.parameter_values import at_values
from axode.model.model_parts import facts_of
from axode.numerics.tolerances import ROW_RANK
from axode.problems.assemble.assemble import assemble


def complete_at_home(robot: Kinematics, named: Collection[str]) -> dict[str, float]:
    """Return values at home of coordinates and measures that, with the named ones, make a state.

    Closing loops moves whatever is not named. Measures are taken first, then coordinates of the
    joint that carries the output, then driven ones, as far as each adds a freedom at home.

    Args:
        robot: The robot.
        named: Full names of coordinates and measures that are given.
    """
    model = robot.model
    n, q = len(model.independent), model.home
    rates = model.rates(np.tile(q, (n, 1)), np.eye(n)) if n else np.zeros((0, len(q)))
    by_name = dict(zip(model.coordinates, rates.T, strict=True))
    values = dict(zip(model.coordinates, q, strict=True))
    places = [
        k for k, s in enumerate(model.measure_names) if not model.signals.depends_on_speeds(s)
    ]
    if places:
        slopes, found = model.measures_jacobian(q)[:, : len(q)], model.measures(q)
        for k in places:
            by_name[model.measure_names[k]] = rates @ slopes[k]
            values[model.measure_names[k]] = found[k]
    parts = {model.coordinates[k] for four in facts_of(model).quaternions for k in four}
    carrier = next(c for c in robot.mechanism.connections if c.child == robot.output)
    candidates = [model.measure_names[k] for k in places]
    candidates += [name for name in carrier.coordinates if name not in parts]
    basis: list[np.ndarray] = []
    chosen: dict[str, float] = {}
    for name in [*named, *candidates, *robot.driven]:
        row = by_name.get(name)
        if row is None or len(basis) == n:
            continue
        left = row - sum((row @ b) * b for b in basis)
        size = np.linalg.norm(left)
        if size > ROW_RANK * np.linalg.norm(row):
            basis.append(left / size)
            if name not in named:
                chosen[name] = float(values[name])
    return chosen


def described_at(robot: Kinematics, values: Mapping[str, float]) -> Mechanism:
    """Return the description with other values of parameters, the output at home as before."""
    made = at_values(robot.mechanism, values)
    if values:
        home = assemble(robot.model, complete_at_home(robot, ()), parameters=values)
        made.set_home(dict(zip(robot.model.coordinates, home.q.tolist(), strict=True)))
    return made
