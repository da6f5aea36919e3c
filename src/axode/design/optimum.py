"""The design of least cost: drawn, followed downhill, and compared with the described one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.design.study import described_at
from axode.errors import InvalidArgument, UnknownName, counted, shortened
from axode.mechanism.mechanism import Mechanism
from axode.numerics.tolerances import NEGLIGIBLE, NOTICEABLE, SEVEN_DIGITS
from axode.problems.progress import Progress
from axode.problems.sweep.distributions import sobol_points

if TYPE_CHECKING:
    from axode.design.study import Designs, Study

Array = npt.NDArray[np.float64]
Cost = Callable[["Designs"], Any]
COSTS: dict[str, Cost] = {
    "dexterity": lambda found: -found.dexterity,
    "force": lambda found: found.force,
    "stiffness": lambda found: -found.stiffness,
    "workspace": lambda found: -found.workspace,
}
CHANGE = 1e-4  # of the bounds' range: central differences, whose error is the square of it
STEPS, GENERATIONS = 60, 60
INFEASIBLE = 1e9  # cost of designs that break limits
UNREACHED = 10.0  # times the largest cost known: what a pose costs that is not reached


@dataclass(frozen=True, eq=False, repr=False)
class Optimum:
    """Best design that was found, beside the described one.

    Attributes:
        study: Variables, poses and limits.
        parameters: Its values of the variables by name.
        cost: Its cost; of costs per pose, the worst.
        found: What it does at the poses.
        start: What the described design does there.
        start_cost: Cost of the described design; infinite if it breaks limits.
        evaluations: How many designs were evaluated.
    """

    study: Study
    parameters: dict[str, float]
    cost: float
    found: Designs
    start: Designs
    start_cost: float
    evaluations: int

    @cached_property
    def mechanism(self) -> Mechanism:
        """The description with the design's values as defaults, the output at home as before."""
        return described_at(self.study.robot, self.parameters)

    @property
    def at_bounds(self) -> tuple[str, ...]:
        """Names of variables that end at one of their bounds."""
        variables = self.study.variables.items()
        return tuple(
            name
            for name, (low, high) in variables
            if min(self.parameters[name] - low, high - self.parameters[name])
            <= NOTICEABLE * (high - low)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the values, the cost and the worst of both designs as plain data."""
        return {
            "mechanism": self.study.robot.mechanism.name,
            "parameters": self.parameters,
            "at_bounds": list(self.at_bounds),
            "cost": self.cost,
            "evaluations": self.evaluations,
            **{
                label: {
                    "dexterity": float(designs.dexterity.min()),
                    "force": float(designs.force.max()),
                    "stiffness": float(designs.stiffness.min()),
                    "workspace": float(designs.workspace[0]),
                }
                for label, designs in (("described", self.start), ("optimum", self.found))
            },
        }

    def __repr__(self) -> str:
        lines = [f"Optimum of '{self.study.robot.mechanism.name}', cost {self.cost:.6g}"]
        described = self.study.robot.model.parameters
        width = max(map(len, self.parameters))
        for name, value in self.parameters.items():
            low, high = self.study.variables[name]
            bound = ", at a bound" if name in self.at_bounds else ""
            lines.append(
                f"  {name:<{width}}  {value:.4g}  (described {described[name]:.4g}, "
                f"{low:g} to {high:g}{bound})"
            )
        for label, designs in (("described", self.start), ("optimum", self.found)):
            known = designs.reached.all()
            values = (
                f"smallest dexterity {designs.dexterity.min():.4g}, largest force "
                f"{designs.force.max():.4g}, smallest stiffness {designs.stiffness.min():.4g}, "
                if known
                else ""
            )
            share = f"{float(designs.workspace[0]):.0%} of the poses within limits"
            lines.append(f"  {label:<9}  {values}{share}")
        lines.append(f"  {counted(self.evaluations, 'design')} evaluated")
        return "\n".join(lines)


class _Problem:
    """Costs and constraints of designs, each evaluated once.

    Args:
        study: What varies.
        cost: Cost of designs, per design or per pose.
        constraints: Functions that must not be negative.
        share: Whether poses may be missed, since the cost counts those that are reached.
    """

    def __init__(
        self, study: Study, cost: Cost, constraints: Sequence[Cost], *, share: bool
    ) -> None:
        self.study, self.cost, self.constraints, self.share = study, cost, constraints, share
        self.low, self.high = np.array(list(study.variables.values())).T
        self.evaluations = 0
        self._known: tuple[bytes, Array, Array] | None = None

    def values(self, x: Array) -> tuple[Array, Array]:
        """Costs (designs, any) and constraints (designs, any) at points of the unit cube."""
        found = self.study.evaluate(self.low + x * (self.high - self.low))
        self.evaluations += len(x)
        cost = _columns(self.cost(found), len(x), "cost")
        limits = [_columns(c(found), len(x), "constraints") for c in self.constraints]
        if not self.share:
            limits.append(found.room.reshape(len(x), -1))
            limits.append(np.where(found.reached, 1.0, -1.0))
        held = np.concatenate([np.zeros((len(x), 0)), *limits], axis=1)
        return cost, np.where(np.isnan(held), -1.0, held)

    def worst(self, x: Array) -> tuple[Array, Array]:
        """Worst cost of each point, infinite where unknown, and its most broken constraint."""
        cost, held = self.values(x)
        cost = np.where(np.isnan(cost), np.inf, cost)
        return cost.max(axis=1), held.min(axis=1, initial=np.inf)

    def with_slopes(self, x: Array) -> tuple[Array, Array, Array, Array]:
        """Costs and constraints of one point, and their derivatives, from one batch."""
        n = len(x)
        up, down = np.minimum(x + CHANGE, 1.0), np.maximum(x - CHANGE, 0.0)
        points = np.tile(x, (2 * n + 1, 1))
        points[1 + np.arange(n), np.arange(n)] = up
        points[1 + n + np.arange(n), np.arange(n)] = down
        cost, held = self.values(points)
        cost = _penalized(cost)
        slopes = [
            ((part[1 : n + 1] - part[n + 1 :]) / (up - down)[:, np.newaxis]).T
            for part in (cost, held)
        ]
        return cost[0], held[0], slopes[0], slopes[1]


def _penalized(cost: Array) -> Array:
    """Costs that are finite everywhere."""
    known = np.isfinite(cost)
    most = np.abs(cost[known]).max(initial=1.0)
    return np.where(known, cost, UNREACHED * most)


def _columns(values: Any, count: int, what: str) -> Array:
    """Values of a user's function, (designs, any).

    Raises:
        InvalidArgument: for other shapes.
    """
    array = np.asarray(values, dtype=float)
    if array.ndim not in (1, 2) or len(array) != count:
        raise InvalidArgument(
            f"{what}: expected an array (designs,) or (designs, poses), got shape {array.shape} "
            f"for {counted(count, 'design')}"
        )
    return array.reshape(count, -1)


def optimize(
    study: Study,
    cost: str | Cost,
    constraints: Sequence[Cost],
    method: str | None,
    *,
    starts: int,
    samples: int,
    seed: int,
    progress: bool | None,
) -> Optimum:
    """Find the design of least cost; see `Study.optimize`."""
    if isinstance(cost, str) and cost not in COSTS:
        raise UnknownName("optimize", "cost", cost, COSTS)
    if not isinstance(cost, str) and not callable(cost):
        raise InvalidArgument(
            f"cost: expected one of {', '.join(COSTS)} or a function, got {shortened(cost)}"
        )
    if samples < 1 or starts < 0:
        raise InvalidArgument(
            f"optimize: needs samples >= 1 and starts >= 0, got {samples}, {starts}"
        )
    share = cost == "workspace"
    problem = _Problem(
        study, COSTS[cost] if isinstance(cost, str) else cost, constraints, share=share
    )
    method = method or ("evolution" if share else "descent")
    described = study.evaluate()
    home = np.array([described.parameters[name][0] for name in study.variables])
    home = np.clip((home - problem.low) / (problem.high - problem.low), 0.0, 1.0)
    drawn = np.column_stack(sobol_points(seed, len(home), samples, 0, samples, range(len(home))))
    points = np.concatenate([home[np.newaxis], drawn])
    with Progress(f"optimising {study.robot.mechanism.name}", progress) as bar:
        search = _evolve if method == "evolution" else _descend
        best = search(problem, points, starts, seed, bar)
    values, room = problem.worst(best)
    ok = np.flatnonzero((room >= -SEVEN_DIGITS) & np.isfinite(values))
    if not ok.size:
        raise InvalidArgument(
            f"optimize: none of {counted(problem.evaluations, 'design')} of "
            f"'{study.robot.mechanism.name}' keeps all limits at all poses\n"
            "  Widen the bounds of the variables, loosen limits and margins, or take fewer poses; "
            "study.evaluate(...).room shows what is missing"
        )
    k = ok[np.argmin(values[ok])]
    x = problem.low + best[k] * (problem.high - problem.low)
    parameters = dict(zip(study.variables, x.tolist(), strict=True))
    start = problem.worst(home[np.newaxis])
    return Optimum(
        study,
        parameters,
        float(values[k]),
        study.evaluate(x),
        described,
        float(start[0][0]) if start[1][0] >= -SEVEN_DIGITS else np.inf,
        problem.evaluations,
    )


def _descend(problem: _Problem, points: Array, starts: int, seed: int, bar: Progress) -> Array:
    """Follow the best points downhill; returns all ends and the best point drawn.

    Minimises a level t that no cost may exceed, by sequential quadratic programming.
    """
    from scipy.optimize import minimize

    values, room = problem.worst(points)
    order = np.lexsort([values, -np.minimum(room, 0.0)])  # those that keep limits first
    chosen = list(dict.fromkeys([0, *order[: starts + 1]]))[: starts + 1]
    ends = [points[order[0]]]
    for number, k in enumerate(chosen):
        bar.update(number / len(chosen))
        known: dict[bytes, Any] = {}

        def at(z: Array, known: dict[bytes, Any] = known) -> Any:
            key = z[:-1].tobytes()
            if key not in known:
                known.clear()
                known[key] = problem.with_slopes(np.clip(z[:-1], 0.0, 1.0))
            return known[key]

        first = at(np.append(points[k], 0.0))
        level = float(first[0].max())
        size = max(abs(level), 1e-12)  # the level as an unknown near one

        def rows(z: Array, at: Any = at, size: float = size) -> Array:
            cost, held, _, _ = at(z)
            return np.concatenate([z[-1] - cost / size, held])

        def slopes(z: Array, at: Any = at, size: float = size) -> Array:
            _, _, by_cost, by_held = at(z)
            above = np.column_stack([-by_cost / size, np.ones(len(by_cost))])
            return np.concatenate([above, np.column_stack([by_held, np.zeros(len(by_held))])])

        unit = np.eye(len(points[k]) + 1)[-1]
        made = minimize(
            lambda z: z[-1],
            np.append(points[k], level / size),
            jac=lambda z, unit=unit: unit,
            bounds=[(0.0, 1.0)] * len(points[k]) + [(None, None)],
            constraints={"type": "ineq", "fun": rows, "jac": slopes},
            method="SLSQP",
            options={"maxiter": STEPS, "ftol": NEGLIGIBLE},
        )
        if np.isfinite(made.x).all():
            ends.append(np.clip(made.x[:-1], 0.0, 1.0))
    return np.array(ends)


def _evolve(problem: _Problem, points: Array, starts: int, seed: int, bar: Progress) -> Array:
    """Let the points evolve, those that break constraints at a cost above all others'."""
    from scipy.optimize import differential_evolution

    def cost(x: Array) -> Array:
        values, room = problem.worst(np.ascontiguousarray(x.T))
        return np.where(room >= 0.0, values, INFEASIBLE - np.maximum(room, -INFEASIBLE))

    generation = iter(range(1, GENERATIONS + 2))
    made = differential_evolution(
        cost,
        [(0.0, 1.0)] * points.shape[1],
        init=points if len(points) >= 5 else np.resize(points, (5, points.shape[1])),
        maxiter=GENERATIONS,
        tol=1e-6,
        polish=False,
        vectorized=True,
        updating="deferred",
        seed=seed,
        callback=lambda *_, **__: bar.update(next(generation) / GENERATIONS),
    )
    return np.atleast_2d(made.x)
