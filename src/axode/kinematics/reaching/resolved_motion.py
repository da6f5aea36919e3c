"""Resolved motion: speeds that move bodies as wanted, at an instant and along paths of targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.tape.derivatives import reads
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.kinematics.reaching.bounded_rates import solve_bounded
from axode.kinematics.reaching.goals import Goal, read_goals
from axode.kinematics.reaching.inverse_kinematics import check_settings, find_postures
from axode.kinematics.reaching.motion_program import motion_program
from axode.kinematics.reaching.posture_search import PostureProblem
from axode.kinematics.reaching.reach_program import ReachTapes
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, model_on_cpu
from axode.model.named_arguments import as_numbers
from axode.model.signal_values import signal_values
from axode.model.signals import STATE_KINDS
from axode.problems.arguments import in_units, require_model
from axode.problems.assemble.assemble import read_states
from axode.problems.inverse.time_signals import check_times
from axode.problems.parameter_arguments import check_parameters
from axode.problems.steps.compiled import Place, compiled, tape_of
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
ATTEMPTS = 10  # starts of the search for the first posture


@dataclass(frozen=True)
class ResolvedRates:
    """Speeds that `resolved_rates` found, with the axes of states and velocities first.

    Attributes:
        nu: Independent speeds, in the order of `model.independent`: (..., size).
        errors: Differences from the wanted velocities, by name: (..., 3), (..., 6) or (...).
        at_limit: Speeds at a limit: (..., size).
        manipulability: Smallest singular value of the map from speeds to the wanted velocities,
            over the largest: (...). Near zero the posture is singular.
    """

    nu: Array
    errors: dict[str, Array]
    at_limit: npt.NDArray[np.bool_]
    manipulability: Array


@stoppable
def resolved_rates(
    model: Model,
    velocities: Mapping[str, npt.ArrayLike],
    state: Any = None,
    *,
    limits: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    damping: float = 0.02,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> ResolvedRates:
    """Find speeds that give bodies, coordinates or measures wanted velocities.

    The speeds are independent ones: wheels roll and loops stay closed. Where many do, the weighted
    sum of their squares is least; where none do, that of the errors.

    Args:
        model: The robot.
        velocities: By name: of a body the velocity of its frame's origin (..., 3) [m/s], or its
            angular velocity and that velocity (..., 6), in world axes; of a coordinate or a
            measure of position its rate.
        state: Posture, in any form of a state; speeds of it are not read. Home unless given.
        limits: Largest independent speeds, by name.
        weights: Weights of the independent speeds, by name; one unless given.
        damping: Singular value, relative to the largest, below which speeds are damped so that
            they stay finite where the posture is singular; zero for none.
        parameters: Values by name instead of the defaults.
    """
    check_arguments(resolved_rates, locals())
    require_model("resolved_rates", model)
    check_parameters(model, parameters)
    if not 0 <= damping < 1:
        raise InvalidArgument(f"damping: must be at least 0 and below 1, got {damping}")
    q, _, _, conditions = read_states(model, state, {"parameters": parameters or {}})
    parts = [_wanted(model, name, given) for name, given in velocities.items()]
    if not parts:
        raise InvalidArgument("velocities: give at least one by name")
    batch = np.broadcast_shapes(q.shape[:-1], *(v.shape[:-1] for _, v in parts))
    q = np.broadcast_to(q, (*batch, q.shape[-1]))
    maps = [_map(model, rows, q, conditions) for rows, _ in parts]
    J = np.concatenate([own for own, _ in maps], axis=-2)
    wanted = np.concatenate(
        [
            np.broadcast_to(v, (*batch, v.shape[-1])) - b
            for (_, v), (_, b) in zip(parts, maps, strict=True)
        ],
        axis=-1,
    )
    scale = _by_speed(model, "weights", weights, 1.0)
    fastest = _by_speed(model, "limits", limits, np.inf)
    nu, s = solve_bounded(J, wanted, fastest, 1 / np.sqrt(scale), damping)
    left = np.einsum("...ij,...j->...i", J, nu) - wanted
    ends = np.cumsum([v.shape[-1] for _, v in parts])[:-1]
    errors = dict(zip(velocities, np.split(left, ends, axis=-1), strict=True))
    errors = {name: e[..., 0] if e.shape[-1] == 1 else e for name, e in errors.items()}
    return ResolvedRates(nu, errors, np.abs(nu) >= fastest, s)


def _wanted(model: Model, name: str, given: Any) -> tuple[tuple[str, int, int], Array]:
    """Kind, number and size of what is wanted, and the value (..., size)."""
    values = as_numbers(f"velocity '{name}'", given)
    if name in model.bodies and values.shape[-1:] in ((3,), (6,)):
        return ("body", model.bodies.index(name), values.shape[-1]), values
    names = model.signals.names("coordinate", "measure")
    if not names.matching(name):
        if name in model.bodies:
            raise InvalidArgument(
                f"velocity '{name}': expected (..., 3), or (..., 6) with the angular velocity "
                f"first, got shape {values.shape}"
            )
        known = [*model.bodies, *names]
        raise UnknownName(f"model '{model.name}'", "body, coordinate or measure", name, known)
    signal = model.signals.resolve(name, "coordinate", "measure")
    if model.signals.depends_on_speeds(signal.name):
        raise InvalidArgument(f"velocity '{name}': it is a speed itself; give a position's rate")
    return (signal.kind, signal.index, 1), values[..., np.newaxis]


def _map(
    model: Model, what: tuple[str, int, int], q: Array, conditions: Conditions
) -> tuple[Array, Array]:
    """Velocity for unit independent speeds, (..., size, speeds), and that of explicit time."""
    (kind, index, size), o = what, conditions.options
    nu = np.zeros((*q.shape[:-1], len(model.independent)))
    rates, drift = model.jacobian("rates", "nu", q, nu, **o), model.rates(q, nu, **o)
    if kind == "coordinate":
        by_q = np.eye(q.shape[-1])[index : index + 1]
    elif kind == "measure":
        by_q = model.measures_jacobian(q, nu, **o)[..., index : index + 1, : q.shape[-1]]
    else:
        by_q = model.jacobian("poses", "q", q, **o)[..., index, :3, 3, :]
    J, b = by_q @ rates, np.einsum("...ij,...j->...i", by_q, drift)
    if size == 6:
        turn = model.jacobian("twists", "nu", q, nu, **o)[..., index, :3, :]
        still = model.twists(q, nu, **o)[..., index, :3]
        J, b = np.concatenate([turn, J], axis=-2), np.concatenate([still, b], axis=-1)
    return J, b


def _by_speed(model: Model, what: str, given: Mapping[str, float] | None, default: float) -> Array:
    values = np.full(len(model.independent), default)
    for name, value in model.signals.names("independent").by_full_name(given or {}).items():
        if not 0 < value <= np.inf:
            raise InvalidArgument(f"{what}, '{name}': must be > 0, got {value}")
        values[model.independent.index(name)] = value
    return values


# along paths -------------------------------------------------------------------------------------


@stoppable
def resolved_motion(
    model: Model,
    targets: Mapping[str, Any],
    times: npt.ArrayLike,
    *,
    start: Any = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
    speed_limits: Mapping[str, float] | None = None,
    weights: Mapping[str, float] | None = None,
    tolerance: float = 1e-9,
    threads: int | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
) -> Trajectory:
    """Find a motion along which bodies, coordinates and measures follow wanted values.

    Each sample follows from the one before by the shortest step of the independent speeds that
    meets its targets: wheels roll, loops stay closed. Where targets cannot be met within the
    limits, errors are least. `inverse_dynamics` finds the forces of the motion.

    Args:
        model: The robot.
        targets: Wanted values by name, as in `inverse_kinematics`, with the samples as the last
            batch axis: positions (..., samples, 3), poses (..., samples, 4, 4), values of
            coordinates (..., samples).
        times: Times of the samples [s].
        start: Posture at the first time, in any form of a state; unless given, one that meets the
            first targets, near home.
        limits: Least and largest value of coordinates whose rates are independent speeds.
        speed_limits: Largest independent speeds, by name.
        weights: Weights of the independent speeds, by name; one unless given.
        tolerance: Error up to which a target is met [rad, or of the mechanism's length].
        threads: Number of threads that share a batch of paths.
        parameters: Values by name instead of the defaults.

    Returns:
        Coordinates, speeds and measures over time. Speeds at the samples are interpolated between
        those of the steps; `info["largest_error"]` is the largest error of any target, in radians
        or parts of the mechanism's length, and `info["missed"]` the number of samples that miss
        theirs.
    """
    check_arguments(resolved_motion, locals())
    require_model("resolved_motion", model)
    check_settings(tolerance, threads)
    check_parameters(model, parameters)
    model, time = model_on_cpu(model), check_times(as_numbers("times", times))
    goals = read_goals(model, targets)
    led = any(row.endswith(".prescribed") for row in model.residual_rows)
    if led or reads(tape_of(model, "rates"), "t"):
        raise NotApplicable(f"'{model.name}' is led by time; resolved motion takes other robots")
    goals = [replace(goal, wanted=_samples(goal, time.size)) for goal in goals]
    stepper = Stepper(model, goals, limits or {}, speed_limits, weights)
    q, _, _, conditions = read_states(model, start, {"parameters": parameters or {}})
    if start is None:
        firsts = [replace(goal, wanted=goal.wanted[..., 0, :]) for goal in goals]
        problem = PostureProblem(model, firsts, limits or {}, (), {})
        found = find_postures(problem, q, conditions, ATTEMPTS, 0, tolerance, threads)
        q = found.q.reshape(*found.batch, found.q.shape[-1])
    try:
        batch = np.broadcast_shapes(q.shape[:-1], *(goal.wanted.shape[:-2] for goal in goals))
    except ValueError:
        raise InvalidArgument("targets, start: their batch axes do not fit together") from None
    wanted = [np.broadcast_to(g.wanted, (*batch, time.size, g.size)) for g in goals]
    path = np.concatenate(wanted, axis=-1).reshape(-1, time.size, sum(g.size for g in goals))
    held = np.array(np.broadcast_to(q, (*batch, q.shape[-1])).reshape(-1, q.shape[-1]))
    out = stepper.run(path, held, time, tolerance, conditions, threads)
    q = np.concatenate([held[:, np.newaxis], out[..., : held.shape[-1]]], axis=1)
    nu = stepper.speeds_at(time, out[..., held.shape[-1] : -1])
    return _record(model, time, (q, nu), out[..., -1], batch, conditions, tolerance)


def _samples(goal: Goal, count: int) -> Array:
    """Wanted values (..., samples, size)."""
    if goal.wanted.ndim < 2:
        return np.broadcast_to(goal.wanted, (count, goal.size))
    if goal.wanted.shape[-2] != count:
        raise InvalidArgument(
            f"target '{goal.name}': {count} samples are needed along its last batch axis, got "
            f"{goal.wanted.shape[-2]}"
        )
    return goal.wanted


class Stepper:
    """Steps of the independent speeds from sample to sample.

    Args:
        model: The robot.
        goals: What is wanted.
        limits: Least and largest value of coordinates, by name.
        speed_limits: Largest independent speeds, by name.
        weights: Weights of the independent speeds, by name.
    """

    def __init__(
        self,
        model: Model,
        goals: list[Goal],
        limits: Mapping[str, Any],
        speed_limits: Mapping[str, float] | None,
        weights: Mapping[str, float] | None,
    ) -> None:
        self.model = model
        self.problem = PostureProblem(model, goals, limits, (), {})
        facts = facts_of(model)
        aliases = {name: speed for name, speed in facts.speed_aliases if name in facts.coordinates}
        own = {speed: facts.coordinates.index(name) for name, speed in aliases.items()}
        self.places = [own.get(speed) for speed in model.independent]
        bounded = np.isfinite(self.problem.lower) | np.isfinite(self.problem.upper)
        others = [n for k, n in enumerate(model.coordinates) if bounded[k] and k not in self.places]
        if others:
            raise InvalidArgument(
                f"limits: the rate of {', '.join(others)} is no independent speed; derive the "
                "mechanism with independent=[...] that has it, or leave the limit out"
            )
        units = in_units(model, [s.unit.removesuffix("/s") for s in self._speeds])
        self.units = units / np.sqrt(_by_speed(model, "weights", weights, 1.0))
        self.fastest = _by_speed(model, "speed_limits", speed_limits, np.inf)

    @property
    def _speeds(self) -> list[Any]:
        return [self.model.signals.resolve(name) for name in self.model.independent]

    @property
    def tapes(self) -> ReachTapes:
        """Rows of the targets, as functions of speeds times a time."""
        model, facts = self.model, facts_of(self.model)
        can_open = bool(facts.residual_rows or facts.quaternions)
        return replace(
            self.problem.tapes,
            residual=None,
            closing=(),
            row_units=(),
            quaternions=(),
            free=(),
            rates=tape_of(model, "rates"),
            projection=tape_of(model, "projection") if can_open else None,
        )

    def run(
        self,
        path: Array,
        held: Array,
        time: Array,
        tolerance: float,
        conditions: Conditions,
        threads: int | None,
    ) -> Array:
        """Follow paths: coordinates, speeds on the way there and error of every further sample."""
        model, tapes = self.model, self.tapes
        key = ("motion", tapes.goals, tuple(self.places))
        rollout = compiled(
            model, key, Place(), lambda: motion_program(tapes, self.places), alike=True
        )
        spread = conditions.spread(held.shape[:1])
        bound = [k if k is not None else 0 for k in self.places]
        given = {
            **self.problem.shared_buffers,
            "t": spread.t[:, np.newaxis],
            "p": model.parameter_vector() if spread.p is None else spread.p,
            "units": self.units,
            "tolerance": np.array([tolerance]),
            "least": self.problem.lower[bound],
            "most": self.problem.upper[bound],
            "fastest": self.fastest,
            "samples": np.array([len(time) - 1.0]),
        }
        given = {
            name: np.ascontiguousarray(given[name], dtype=float) for name in rollout.program.given
        }
        state = rollout.new_state(len(held), {"held": held})
        tables = {
            "path": np.ascontiguousarray(path[:, 1:]),
            "spans": np.diff(time)[:, np.newaxis],
            "out": np.zeros((len(held), len(time) - 1, rollout.program.tables["out"])),
        }
        rollout({**state, **given}, tables, budget=0, threads=threads)
        return tables["out"]

    def speeds_at(self, time: Array, steps: Array) -> Array:
        """Interpolate speeds between samples at the samples, within their limits."""
        from scipy.interpolate import make_interp_spline

        if len(time) == 2:
            return np.repeat(steps, 2, axis=1)
        middle, order = (time[1:] + time[:-1]) / 2, min(3, len(time) - 2)
        nu = make_interp_spline(middle, steps, k=order, axis=1)(time)
        return np.clip(nu, -self.fastest, self.fastest)


def _record(
    model: Model,
    time: Array,
    state: tuple[Array, Array],
    error: Array,
    batch: tuple[int, ...],
    conditions: Conditions,
    tolerance: float,
) -> Trajectory:
    """Make a trajectory of coordinates and speeds."""
    from axode.results.origin import Origin
    from axode.results.trajectory import Trajectory

    signals = model.signals.of_kind(*STATE_KINDS)
    values = signal_values(model, *state, conditions=conditions, kinds=STATE_KINDS)
    return Trajectory(
        time=time,
        values=values.reshape(*batch, len(time), len(signals)),
        names=tuple(signal.name for signal in signals),
        units=tuple(signal.unit for signal in signals),
        kinds={signal.name: signal.kind for signal in signals},
        origin=Origin.of(model, conditions.p),
        info={
            "model": model.name,
            "method": "resolved_motion",
            "largest_error": float(error.max(initial=0.0)),
            "missed": int((error > tolerance).sum()),
            "bases": facts_of(model).bases,
        },
    )
