"""The search for postures: starts, restarts and polishing of many runs by compiled programs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.tape.formulas import formula_tape
from axode.errors import InvalidArgument
from axode.kinematics.reaching.goals import UNITS, Goal
from axode.kinematics.reaching.reach_program import (
    ReachTapes,
    approach_program,
    polish_program,
    reach_program,
)
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.names import Names
from axode.numerics.tolerances import CLOSED
from axode.problems.arguments import coordinate_units, in_units
from axode.problems.assemble.closure_program import call_tape, read_elements
from axode.problems.steps.compiled import Place, compiled, tape_of

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
BUDGETS = (10, 60)  # steps of all runs, then of those that are not at their end
APPROACH_STEPS = 15
PULL_STEPS = 40  # of polishing nearest postures
POLISH_STEPS = 150  # of polishing errors that cannot vanish
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
        return compiled(
            self.model,
            (name, tapes.goals, tapes.free),
            Place(),
            lambda: makers[name](tapes),
            alike=True,
        )


class PostureSearch:
    """The search for many postures at once.

    Args:
        problem: What may move, and what is wanted.
        wanted: Values of the goals: (runs, size).
        near: Postures to start from: (runs, coordinates).
        conditions: Time and parameters of the runs.
        batch: Axes that the runs are counted through.

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
    ) -> None:
        self.batch = batch
        self.problem, self.model, self.conditions = problem, problem.model, conditions
        self.wanted, self.near = np.ascontiguousarray(wanted), np.array(near)
        self.q = self.near.copy()
        self.cost = np.full(len(near), np.inf)
        self.error = np.full(len(near), np.inf)
        self.iterations = np.zeros(len(near), dtype=int)
        self.attempts = np.ones(len(near), dtype=int)
        self.tolerance = 0.0
        self.threads: int | None = None

    def start(self, tolerance: float, threads: int | None) -> None:
        """Search from the wanted postures."""
        self.tolerance, self.threads = tolerance, threads
        runs = np.arange(len(self.q))
        self._keep(runs, *self._reach(self.near[:, self.problem.free], runs))

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

    def _buffers_read(self, runs: Indices, program: Any) -> dict[str, Array]:
        everyone = len(runs) == len(self.q)
        there = self.conditions if everyone else self.conditions.at(runs)
        own = {
            "held": self.near if everyone else self.near[runs],
            "t": np.broadcast_to(there.t, runs.shape)[:, np.newaxis],
            "p": self.model.parameter_vector() if there.p is None else there.p,
            "wanted": self.wanted if everyone else self.wanted[runs],
            "near": self.near[:, self.problem.free]
            if everyone
            else self.near[np.ix_(runs, self.problem.free)],
            "tolerance": np.array([self.tolerance]),
            **self.problem.shared_buffers,
        }
        return {
            name: np.ascontiguousarray(own[name], dtype=float)
            for name in program.given
            if name in own
        }

    def _reach(self, x: Array, runs: Indices) -> tuple[Array, Array, Array, Array]:
        """Step from some postures: coordinates that moved, cost, error and steps."""
        rollout = self.problem.program("reach")
        state = rollout.new_state(len(runs), {"x": x})
        given = self._buffers_read(runs, rollout.program) | {"fresh": np.ones(1)}
        rollout({**state, **given}, {}, budget=BUDGETS[0], threads=self.threads)
        rest = np.flatnonzero(state["active"][:, 0])
        if rest.size:
            more = {name: np.ascontiguousarray(a[rest]) for name, a in state.items()}
            given = self._buffers_read(runs[rest], rollout.program) | {"fresh": np.zeros(1)}
            rollout({**more, **given}, {}, budget=BUDGETS[1], threads=self.threads)
            for name, array in more.items():
                state[name][rest] = array
        return state["x"], *(state[name][:, 0] for name in ("cost", "error", "count"))

    def polish(self, nearest: bool) -> None:
        """Make errors least where targets are not met, and distances where there is a choice."""
        met = self.error <= self.tolerance
        missed = np.flatnonzero(~met & np.isfinite(self.cost))
        self._polish(missed, pull=False)
        if self.problem.tapes.closing:
            self._close(missed)
        if nearest and self.problem.has_choice:
            runs = np.flatnonzero(met)
            self._approach(runs)
            self._polish(runs, pull=True)

    def _approach(self, runs: Indices) -> None:
        """Go along the postures that meet the targets towards the wanted one."""
        if not runs.size:
            return
        problem, rollout = self.problem, self.problem.program("approach")
        state = rollout.new_state(len(runs), {"x": self.q[np.ix_(runs, problem.free)]})
        rollout(
            {**state, **self._buffers_read(runs, rollout.program)},
            {},
            budget=APPROACH_STEPS,
            threads=self.threads,
        )
        x, cost, error, _ = self._reach(state["x"], runs)
        self._replace(runs, x, cost, error, state["count"][:, 0])

    def _close(self, runs: Indices) -> None:
        """Close loops exactly where targets are not met, wherever that moves bodies."""
        if not runs.size:
            return
        rollout = self.problem.program("reach")
        state = rollout.new_state(len(runs), {"x": self.q[np.ix_(runs, self.problem.free)]})
        given = self._buffers_read(runs, rollout.program) | {"fresh": np.ones(1)}
        given["weights"] = np.zeros_like(given["weights"])
        rollout({**state, **given}, {}, budget=sum(BUDGETS), threads=self.threads)
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
        if not runs.size:
            return
        problem, rollout = self.problem, self.problem.program("polish")
        state = rollout.new_state(len(runs), {"x": self.q[np.ix_(runs, problem.free)]})
        given = self._buffers_read(runs, rollout.program) | {"pull": np.array([float(pull)])}
        steps = PULL_STEPS if pull else POLISH_STEPS
        rollout({**state, **given}, {}, budget=steps, threads=self.threads)
        error, cost = self._left(state["x"], runs)
        if pull:
            self._replace(runs, state["x"], cost, error, state["count"][:, 0])
            return
        better = (cost <= self.cost[runs] * (1 + 1e-9)) | (state["open"][:, 0] < CLOSED)
        self.q[np.ix_(runs[better], problem.free)] = state["x"][better]
        self.cost[runs[better]], self.error[runs[better]] = cost[better], error[better]
        self.iterations[runs] += state["count"][:, 0].astype(int)

    def _distance(self, q: Array, runs: Indices) -> Array:
        free = self.problem.free
        away = (q - self.near[runs])[:, free] / self.problem.units[free]
        return np.asarray((away**2).sum(axis=-1))

    def _left(self, x: Array, runs: Indices) -> tuple[Array, Array]:
        """Largest row in its unit, and the cost, of some postures."""
        rollout = self.problem.program("reach")
        state = rollout.new_state(len(runs), {"x": x})
        given = self._buffers_read(runs, rollout.program) | {"fresh": np.ones(1)}
        rollout({**state, **given}, {}, budget=0, threads=self.threads)
        return state["error"][:, 0], state["cost"][:, 0]
