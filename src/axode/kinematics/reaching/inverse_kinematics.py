"""Inverse kinematics: postures that bring bodies where they are wanted, many at once.

Starts, restarts and polishing of many runs by the programs of `reach_program`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments, renamed_keywords
from axode.codegen.host import check_threads
from axode.codegen.tape.formulas import formula_tape
from axode.errors import InvalidArgument
from axode.kinematics.reaching.goals import UNITS, Goal, read_goals
from axode.kinematics.reaching.reach_program import (
    ReachTapes,
    approach_program,
    polish_program,
    reach_program,
)
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, model_on_cpu
from axode.model.named_arguments import as_numbers
from axode.model.state import State
from axode.names import Names, as_names
from axode.numerics.tolerances import CLOSED, NEGLIGIBLE
from axode.problems.arguments import (
    check_parameters,
    coordinate_units,
    in_units,
    number,
    require_model,
)
from axode.problems.assemble.assemble import read_states
from axode.problems.assemble.closure_program import call_tape, read_elements
from axode.problems.steps.compiled import Place, compiled, tape_of
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
BUDGETS = (10, 60)  # steps of all runs, then of those that are not at their end
APPROACH_STEPS = 15
PULL_STEPS = 40  # of polishing nearest postures
POLISH_STEPS = 150  # of polishing errors that cannot vanish
TURN = 2 * np.pi
SPREAD = np.pi  # of random starts about the wanted posture, in the coordinates' units

_USED: WeakKeyDictionary[Model, dict[Any, set[int]]] = WeakKeyDictionary()


class PostureProblem:
    """What may move, in which limits and for which goals.

    Args:
        model: The robot.
        goals: What is wanted.
        limits: Least and largest value of coordinates, by name.
        hold: Coordinates that keep their value.
        weights: Weights of coordinates in the distance between postures.
    """

    def __init__(
        self,
        model: Model,
        goals: list[Goal],
        limits: Mapping[str, Any],
        hold: tuple[str, ...],
        weights: Mapping[str, float],
    ) -> None:
        self.model, self.goals = model, goals
        names = Names(f"model '{model.name}'", "coordinate", model.coordinates)
        self.lower, self.upper = self._bounds(names.by_full_name(limits))
        self.free = self._find_free({model.coordinates.index(names.resolve(n)) for n in hold})
        scale = np.ones(len(model.coordinates))
        for name, weight in names.by_full_name(weights).items():
            if not 0 < weight < np.inf:
                raise InvalidArgument(f"weights, '{name}': must be finite and > 0, got {weight}")
            scale[model.coordinates.index(name)] = weight
        self.units = coordinate_units(model) / np.sqrt(scale)

    def _bounds(self, limits: Mapping[str, Any]) -> tuple[Array, Array]:
        names = self.model.coordinates
        lower, upper = np.full(len(names), -np.inf), np.full(len(names), np.inf)
        parts = {names[k] for four in facts_of(self.model).quaternions for k in four}
        for name, given in limits.items():
            pair = as_numbers(f"limits, '{name}'", given)
            if pair.shape != (2,) or not pair[0] <= pair[1]:
                raise InvalidArgument(
                    f"limits, '{name}': expected the least and the largest value, got {given}"
                )
            if name in parts:
                raise InvalidArgument(f"limits, '{name}': parts of a quaternion have no limits")
            lower[names.index(name)], upper[names.index(name)] = pair
        return lower, upper

    def _find_free(self, held: set[int]) -> Indices:
        """Coordinates that may move and on which some row depends."""
        for four in map(set, facts_of(self.model).quaternions):
            held |= four if held & four else set()
        known = _USED.setdefault(self.model, {})
        key = tuple(goal.structure for goal in self.goals)
        if key not in known:
            known[key] = self._find_used()
        free = np.array(sorted(known[key] - held), dtype=np.intp)
        if not free.size:
            raise InvalidArgument("targets: no coordinate that may move changes any of them")
        return free

    def _find_used(self) -> set[int]:
        """Coordinates on which some row depends."""
        model = self.model
        used = {goal.index for goal in self.goals if goal.kind == "coordinate"}
        if any(goal.kind in UNITS for goal in self.goals):
            used |= self._read_by_poses()
        if any(goal.kind == "measure" for goal in self.goals):
            used |= read_elements(tape_of(model, "measures"), "q")
        if model.residual_rows:
            used |= read_elements(tape_of(model, "residual"), "q")
        for four in map(set, facts_of(model).quaternions):
            used |= four if used & four else set()
        return used

    def _read_by_poses(self) -> set[int]:
        """Coordinates on which the poses of the wanted bodies depend."""
        tape = tape_of(self.model, "poses")
        bodies = sorted({goal.index for goal in self.goals if goal.kind in UNITS})

        def chosen(**v: Any) -> dict[str, Any]:
            poses = call_tape(tape, v)
            return {"chosen": [x for k in bodies for x in poses[16 * k : 16 * k + 16]]}

        sizes = {port.name: port.size for port in tape.inputs}
        return read_elements(formula_tape("chosen", sizes, chosen), "q")

    @cached_property
    def tapes(self) -> ReachTapes:
        """Rows of the targets and of the loops."""
        model, facts = self.model, facts_of(self.model)
        kinds = {goal.kind for goal in self.goals}
        kept = set(model.rows)
        closing = tuple(k for k, row in enumerate(model.residual_rows) if row in kept)
        units = in_units(model, facts.residual_units)[list(closing)]
        quaternions = [four for four in facts.quaternions if set(four) <= set(self.free.tolist())]
        return ReachTapes(
            tape_of(model, "poses") if kinds & set(UNITS) else None,
            tape_of(model, "measures") if "measure" in kinds else None,
            tape_of(model, "residual") if closing else None,
            goals=tuple(goal.structure for goal in self.goals),
            closing=closing,
            row_units=tuple(units.tolist()),
            quaternions=tuple(map(tuple, quaternions)),
            free=tuple(self.free.tolist()),
            coordinates=len(model.coordinates),
            speeds=len(model.independent),
            parameters=0 if facts.fixed else len(facts.parameters),
        )

    @cached_property
    def shared_buffers(self) -> dict[str, Array]:
        """What the programs read and all runs share, by name."""
        units = [in_units(self.model, [goal.unit])[0] for goal in self.goals]
        counts = [goal.size for goal in self.goals]
        half = [2.0 if goal.kind == "rotation" else 1.0 for goal in self.goals]
        weights = [np.sqrt(g.weight / h) for g, h in zip(self.goals, half, strict=True)]
        points = [[*goal.fixed, 0.0, 0.0, 0.0][:3] for goal in self.goals]
        return {
            "points": np.concatenate(points),
            "weights": np.repeat(np.array(weights) / units, counts),
            "ease": np.repeat(1.0 / np.array(weights), counts),
            "lower": self.lower[self.free],
            "upper": self.upper[self.free],
            "units": self.units[self.free],
        }

    @property
    def has_choice(self) -> bool:
        """Return whether the targets leave coordinates open."""
        tapes = self.tapes
        closing = len(tapes.closing) + len(tapes.quaternions)
        own = sum({"rotation": 3, "direction": 2}.get(g.kind, g.size) for g in self.goals)
        return len(tapes.free) > closing + own

    def program(self, name: str) -> Any:
        """Compile a program, once per model and structure of the goals."""
        tapes = self.tapes
        makers = {"reach": reach_program, "approach": approach_program, "polish": polish_program}
        key, place = (name, tapes.goals, tapes.free), Place()
        return compiled(self.model, key, place, lambda: makers[name](tapes), alike=True)


class PostureSearch:
    """The search for many postures at once.

    Args:
        problem: What may move, and what is wanted.
        wanted: Values of the goals: (runs, size).
        near: Postures to start from: (runs, coordinates).
        conditions: Time and parameters of the runs.
        batch: Axes that the runs are counted through.
        tolerance: Error up to which a target is met.
        threads: Number of threads that share the runs.

    Attributes:
        q: Best coordinates so far: (runs, coordinates).
        cost, error: What is left of all rows, and the largest of them in its unit: (runs,).
        iterations, attempts: Steps of the best attempt, and starts: (runs,).
    """

    def __init__(
        self,
        problem: PostureProblem,
        wanted: Array,
        near: Array,
        conditions: Conditions,
        batch: tuple[int, ...],
        tolerance: float,
        threads: int | None,
    ) -> None:
        self.batch, self.tolerance, self.threads = batch, tolerance, threads
        self.problem, self.model, self.conditions = problem, problem.model, conditions
        self.wanted, self.near = np.ascontiguousarray(wanted), np.array(near)
        self.q = self.near.copy()
        self.cost = np.full(len(near), np.inf)
        self.error = np.full(len(near), np.inf)
        self.iterations = np.zeros(len(near), dtype=int)
        self.attempts = np.ones(len(near), dtype=int)
        runs = np.arange(len(near))
        self._keep(runs, *self._reach(self.near[:, problem.free], runs))

    def retry(self, attempts: int, seed: int) -> None:
        """Search from random postures where targets are not met yet.

        An attempt has the same random numbers for all runs: what one finds does not depend on the
        others.
        """
        if (self.error <= self.tolerance).all():
            return
        generator = np.random.default_rng(seed)
        for _ in range(attempts - 1):
            draws = generator.uniform(size=len(self.problem.free))
            runs = np.flatnonzero(~(self.error <= self.tolerance))
            if not runs.size:
                return
            self.attempts[runs] += 1
            self._keep(runs, *self._reach(self._spread(draws, runs), runs))

    def _spread(self, draws: Array, runs: Indices) -> Array:
        """Postures anywhere within limits, or around the wanted one where there are none."""
        free = self.problem.free
        lower, upper = self.problem.lower[free], self.problem.upper[free]
        spread = SPREAD * coordinate_units(self.model)[free]
        near = self.near[np.ix_(runs, free)]
        low, high = np.maximum(lower, near - spread), np.minimum(upper, near + spread)
        low, high = np.minimum(low, upper), np.maximum(high, lower)
        x = low + (high - low) * draws
        for four in self.problem.tapes.quaternions:
            places = np.searchsorted(free, four)
            x[:, places] = draws[places] - 0.5
        return np.asarray(x)

    def _keep(self, runs: Indices, x: Array, cost: Array, error: Array, count: Array) -> None:
        """Keep what is better: a target that is met, else a lower cost."""
        met, before = error <= self.tolerance, self.error[runs] <= self.tolerance
        better = (met & ~before) | ((met == before) & (cost < self.cost[runs]))
        chosen = runs[better]
        self.q[np.ix_(chosen, self.problem.free)] = x[better]
        self.cost[chosen], self.error[chosen] = cost[better], error[better]
        self.iterations[chosen] = count[better]

    def _run(
        self, name: str, x: Array, runs: Indices, budget: int, **more: Array
    ) -> dict[str, Array]:
        """Run a program from some postures, with further buffers; return its state at the end."""
        rollout = self.problem.program(name)
        state: dict[str, Array] = rollout.new_state(len(runs), {"x": x})
        self._advance(rollout, state, runs, budget, more)
        return state

    def _advance(
        self,
        rollout: Any,
        state: Mapping[str, Array],
        runs: Indices,
        budget: int,
        more: Mapping[str, Array],
    ) -> None:
        everyone = len(runs) == len(self.q)
        there = self.conditions if everyone else self.conditions.at(runs)
        near = self.near if everyone else self.near[runs]
        own = {
            "held": near,
            "t": np.broadcast_to(there.t, runs.shape)[:, np.newaxis],
            "p": self.model.parameter_vector() if there.p is None else there.p,
            "wanted": self.wanted if everyone else self.wanted[runs],
            "near": near[:, self.problem.free],
            "tolerance": np.array([self.tolerance]),
            **self.problem.shared_buffers,
            **more,
        }
        given = {
            name: np.ascontiguousarray(own[name], dtype=float) for name in rollout.program.given
        }
        rollout({**state, **given}, {}, budget=budget, threads=self.threads)

    def _reach(self, x: Array, runs: Indices) -> tuple[Array, Array, Array, Array]:
        """Step from some postures: coordinates that moved, cost, error and steps."""
        state = self._run("reach", x, runs, BUDGETS[0], fresh=np.ones(1))
        rest = np.flatnonzero(state["active"][:, 0])
        if rest.size:
            more = {name: np.ascontiguousarray(a[rest]) for name, a in state.items()}
            rollout = self.problem.program("reach")
            self._advance(rollout, more, runs[rest], BUDGETS[1], {"fresh": np.zeros(1)})
            for name, array in more.items():
                state[name][rest] = array
        cost, error, count = (state[name][:, 0] for name in ("cost", "error", "count"))
        return state["x"], cost, error, count

    def polish(self, nearest: bool) -> None:
        """Make errors least where targets are not met, and distances where there is a choice."""
        met = self.error <= self.tolerance
        missed, runs = np.flatnonzero(~met & np.isfinite(self.cost)), np.flatnonzero(met)
        if missed.size:
            self._polish(missed, pull=False)
            if self.problem.tapes.closing:
                self._close(missed)
        if nearest and runs.size and self.problem.has_choice:
            self._approach(runs)
            self._polish(runs, pull=True)

    def unwind(self) -> None:
        """Take whole turns out of angles, as near to the wanted posture as nothing else changes.

        Couplings and wanted coordinates count turns: what they read may keep its own.
        """
        free = self.problem.free
        angles = np.array([facts_of(self.model).coordinate_units[k] == "rad" for k in free])
        away = (self.q - self.near)[:, free]
        turns = np.where(angles & np.isfinite(away), np.round(away / TURN), 0.0)
        for columns in (slice(None), *np.flatnonzero(turns.any(axis=0))[:, np.newaxis]):
            runs = np.flatnonzero(turns[:, columns].any(axis=1))
            if not runs.size:
                continue
            x = self._moving(runs)
            x[:, columns] -= TURN * turns[np.ix_(runs, np.arange(len(free))[columns])]
            error, cost = self._left(x, runs)
            kept = (self.problem.lower[free] <= x) & (x <= self.problem.upper[free])
            same = np.where(
                self.error[runs] <= self.tolerance,
                error <= self.tolerance,
                cost <= self.cost[runs] * (1 + CLOSED),
            )
            good = same & kept.all(axis=1)
            chosen = runs[good]
            self.q[np.ix_(chosen, free)] = x[good]
            self.cost[chosen], self.error[chosen] = cost[good], error[good]
            turns[np.ix_(chosen, np.arange(len(free))[columns])] = 0.0

    def _moving(self, runs: Indices) -> Array:
        """Coordinates that may move, as they are."""
        return np.asarray(self.q[np.ix_(runs, self.problem.free)])

    def _approach(self, runs: Indices) -> None:
        """Go along the postures that meet the targets towards the wanted one."""
        state = self._run("approach", self._moving(runs), runs, APPROACH_STEPS)
        x, cost, error, _ = self._reach(state["x"], runs)
        self._replace(runs, x, cost, error, state["count"][:, 0])

    def _close(self, runs: Indices) -> None:
        """Close loops exactly where targets are not met, wherever that moves bodies."""
        none = np.zeros_like(self.problem.shared_buffers["weights"])
        x, budget = self._moving(runs), sum(BUDGETS)
        state = self._run("reach", x, runs, budget, fresh=np.ones(1), weights=none)
        self.q[np.ix_(runs, self.problem.free)] = state["x"]
        self.error[runs], self.cost[runs] = self._left(state["x"], runs)

    def _replace(self, runs: Indices, x: Array, cost: Array, error: Array, count: Array) -> None:
        """Replace postures by nearer ones that meet the targets too."""
        q = self.near[runs]
        q[:, self.problem.free] = x
        nearer = self._distance(q, runs) <= self._distance(self.q[runs], runs)
        better = (error <= self.tolerance) & nearer
        self.q[runs[better]] = q[better]
        self.cost[runs[better]], self.error[runs[better]] = cost[better], error[better]
        self.iterations[runs] += count.astype(int)

    def _polish(self, runs: Indices, *, pull: bool) -> None:
        steps = PULL_STEPS if pull else POLISH_STEPS
        state = self._run("polish", self._moving(runs), runs, steps, pull=np.array([float(pull)]))
        error, cost = self._left(state["x"], runs)
        if pull:
            self._replace(runs, state["x"], cost, error, state["count"][:, 0])
            return
        better = (cost <= self.cost[runs] * (1 + NEGLIGIBLE)) | (state["open"][:, 0] < CLOSED)
        self.q[np.ix_(runs[better], self.problem.free)] = state["x"][better]
        self.cost[runs[better]], self.error[runs[better]] = cost[better], error[better]
        self.iterations[runs] += state["count"][:, 0].astype(int)

    def _distance(self, q: Array, runs: Indices) -> Array:
        free = self.problem.free
        away = (q - self.near[runs])[:, free] / self.problem.units[free]
        return np.asarray((away**2).sum(axis=-1))

    def _left(self, x: Array, runs: Indices) -> tuple[Array, Array]:
        """Largest row in its unit, and the cost, of some postures."""
        state = self._run("reach", x, runs, 0, fresh=np.ones(1))
        return state["error"][:, 0], state["cost"][:, 0]


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
    least one that was found. Loops are closed and limits kept in any case, and angles are within
    half a turn of `start` unless limits, couplings or targets ask for more. Wheels are free to
    slip: of a robot that rolls, the place and heading of its base are found, and its wheels keep
    their angles.

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
    require_model("inverse_kinematics", model, contacts=True)
    check_settings(tolerance, threads, attempts)
    check_parameters(model, parameters)
    model = model_on_cpu(model)
    goals = read_goals(model, targets)
    near, _, _, conditions = read_states(model, start, {"parameters": parameters or {}})
    problem = PostureProblem(model, goals, limits or {}, as_names(hold), weights or {})
    search = find_postures(problem, near, conditions, attempts, seed, tolerance, threads)
    search.polish(nearest)
    search.unwind()
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
    conditions = conditions.spread(batch)
    search = PostureSearch(problem, values, begin, conditions, batch, tolerance, threads)
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
    reached, iterations, attempts = (
        x.reshape(batch)[()]
        for x in (search.error <= search.tolerance, search.iterations, search.attempts)
    )
    residual = np.abs(model.residual(q, **o)).max(axis=-1, initial=0.0)
    found: Any = q, reached, residual, errors, met, iterations, attempts
    about: Any = (q <= lower) | (q >= upper), model, conditions
    return InverseKinematicsResult(*found, *about)
