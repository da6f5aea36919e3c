"""Inverse kinematics: postures that bring bodies where they are wanted, many at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, renamed_keywords
from axode.codegen.host import check_threads
from axode.errors import InvalidArgument
from axode.kinematics.reaching.goals import read_goals
from axode.kinematics.reaching.posture_search import PostureProblem, PostureSearch
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import model_on_cpu
from axode.model.state import State
from axode.problems.arguments import in_units, number, require_model
from axode.problems.assemble.assemble import read_states
from axode.problems.parameter_arguments import check_parameters
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
LARGEST_NORM = 3.0  # of nine entries of which none is above one


@dataclass(frozen=True)
class InverseKinematicsResult:
    """Postures that `inverse_kinematics` found, with the axes of the targets first.

    `found["elbow"]` is a coordinate or a measure by name.

    Attributes:
        q: Coordinates, in the order of `model.coordinates`: (..., size).
        reached: Whether all targets are met and all loops are closed: (...).
        residual: Largest residual of loops and contacts [m or rad]: (...).
        errors: Errors by target and kind, such as `errors["gripper.position"]` [m, rad]: (...).
        met: Whether each of these targets is met: (...).
        iterations: Steps of the attempt that found it: (...).
        attempts: Starts that were tried: (...).
        at_limit: Coordinates that lie at one of their limits: (..., size).
        model: What it is a posture of.
        conditions: Time and parameters.
    """

    q: Array
    reached: Any
    residual: Any
    errors: dict[str, Array]
    met: dict[str, Any]
    iterations: Any
    attempts: Any
    at_limit: Mask
    model: Model
    conditions: Conditions

    def __repr__(self) -> str:
        if self.q.ndim > 1:
            reached = f"{int(np.sum(self.reached))} of {int(np.size(self.reached))}"
            return f"InverseKinematicsResult({reached} postures of '{self.model.name}')"
        errors = ", ".join(f"{name} {float(e):.3g}" for name, e in self.errors.items())
        what = "reached" if self.reached else "not reached"
        limits = f"; at the limits: {', '.join(self.limits)}" if self.limits else ""
        return f"InverseKinematicsResult('{self.model.name}': {what}; errors: {errors}{limits})"

    def __getitem__(self, name: str) -> Any:
        """A coordinate or measure by name."""
        return self.state[name]

    @property
    def limits(self) -> tuple[str, ...]:
        """Names of the coordinates that lie at a limit, in any posture."""
        at = self.at_limit.reshape(-1, len(self.model.coordinates)).any(axis=0)
        return tuple(self.model.coordinates[k] for k in np.flatnonzero(at))

    @cached_property
    def state(self) -> State:
        """The postures at rest, as a `State` that other verbs start from."""
        nu = np.zeros((*self.q.shape[:-1], len(self.model.independent)))
        worst = float(np.max(self.residual, initial=0.0))
        return State(self.q, nu, worst, self.model, self.conditions)


@renamed_keywords(near="start")
@stoppable
def inverse_kinematics(
    model: Model,
    targets: Mapping[str, Any],
    *,
    start: Any = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    hold: Iterable[str] = (),
    weights: Mapping[str, float] | None = None,
    nearest: bool = True,
    attempts: int = 10,
    seed: int = 0,
    tolerance: float = 1e-9,
    threads: int | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> InverseKinematicsResult:
    """Find postures in which bodies, coordinates and measures are where they are wanted.

    Where no attempt meets all targets, the weighted sum of their squared errors is a minimum, the
    least one that was found. Loops are closed and limits kept in any case. Wheels are free to slip:
    of a robot that rolls, the place and heading of its base are found, and its wheels keep their
    angles.

    Args:
        model: The robot.
        targets: What is wanted, by name: of a body a position (..., 3), a pose (..., 4, 4), a
            tuple (position, rotation) or a `Target`; of a coordinate or a measure its
            value. All batch axes are broadcast.
        start: Posture to start from, in any form of a state, also one per target; home unless
            given.
        limits: Least and largest value of coordinates, by name [rad or m].
        hold: Coordinates that keep their value.
        weights: Weights of coordinates in the distance between postures; one unless given.
        nearest: Among the postures around the one that was found, take the nearest to `start`,
            where the targets leave a choice.
        attempts: Most starts; the first is `start`, others are random.
        seed: Seed of these.
        tolerance: Error up to which a target is met [rad, or of the mechanism's length].
        threads: Number of threads that share the targets.
        parameters: Values by name instead of the defaults.

    Raises:
        UnknownName: for a name that the model does not have.
        InvalidArgument: for values of a wrong shape or size, and limits that exclude everything.
    """
    check_arguments(inverse_kinematics, locals())
    require_model("inverse_kinematics", model)
    check_settings(tolerance, threads, attempts)
    check_parameters(model, parameters)
    model = model_on_cpu(model)
    goals = read_goals(model, targets)
    near, _, _, conditions = read_states(model, start, {"parameters": parameters or {}})
    problem = PostureProblem(model, goals, limits or {}, tuple(hold), weights or {})
    search = find_postures(problem, near, conditions, attempts, seed, tolerance, threads)
    search.polish(nearest)
    return _report(search, conditions)


def check_settings(tolerance: float, threads: int | None, attempts: int = 1) -> None:
    """Check numbers that a search for postures is given.

    Raises:
        InvalidArgument: for invalid ones.
    """
    if threads is not None:
        check_threads(threads)
    if not (attempts >= 1 and 0 < number("tolerance", tolerance) < np.inf):
        raise InvalidArgument("attempts, tolerance: at least one attempt, and a tolerance > 0")


def find_postures(
    problem: PostureProblem,
    near: Array,
    conditions: Conditions,
    attempts: int = 1,
    seed: int = 0,
    tolerance: float = 1e-9,
    threads: int | None = None,
) -> PostureSearch:
    """Search for postures that meet goals, each near its own or a common one.

    Raises:
        InvalidArgument: for batch axes of goals and postures that do not fit together.
    """
    goals = problem.goals
    shapes = [goal.wanted.shape[:-1] for goal in goals]
    try:
        batch = np.broadcast_shapes(near.shape[:-1], *shapes)
    except ValueError:
        listed = ", ".join(f"{g.name} {shape}" for g, shape in zip(goals, shapes, strict=True))
        raise InvalidArgument(
            f"targets: the batch axes do not fit together: {listed}, near {near.shape[:-1]}"
        ) from None
    wanted = [np.broadcast_to(g.wanted, (*batch, g.size)).reshape(-1, g.size) for g in goals]
    begin = np.broadcast_to(near, (*batch, near.shape[-1])).reshape(-1, near.shape[-1])
    values = np.concatenate(wanted, axis=-1)
    search = PostureSearch(problem, values, begin, conditions.spread(batch), batch)
    search.start(tolerance, threads)
    search.retry(attempts, seed)
    return search


def _report(search: PostureSearch, conditions: Conditions) -> InverseKinematicsResult:
    model, goals, batch = search.model, search.problem.goals, search.batch
    q = search.q.reshape(*batch, search.q.shape[-1])
    o = conditions.options
    poses = model.poses(q, **o)
    measures = model.measures(q, **o) if model.measure_names else None
    errors = {goal.title: goal.error(poses, q, measures) for goal in goals}
    allowed = LARGEST_NORM * search.tolerance * in_units(model, [goal.unit for goal in goals])
    met = {g.title: errors[g.title] <= a for g, a in zip(goals, allowed, strict=True)}
    lower, upper = search.problem.lower, search.problem.upper
    return InverseKinematicsResult(
        q,
        (search.error <= search.tolerance).reshape(batch)[()],
        np.abs(model.residual(q, **o)).max(axis=-1, initial=0.0),
        errors,
        met,
        search.iterations.reshape(batch)[()],
        search.attempts.reshape(batch)[()],
        (q <= lower) | (q >= upper),
        model,
        conditions,
    )
