r"""Resolved motion: speeds that move bodies as wanted, at an instant and along paths of targets.

Speeds within limits, for wanted velocities of many postures at once, are

.. math:: \min_\nu |J \nu - w|^2 + \lambda^2 |\nu|^2, \qquad |\nu_j| \le f_j

The damping vanishes unless the smallest singular value of J is small: Y. Nakamura and H. Hanafusa,
"Inverse kinematic solutions with singularity robustness for robot manipulator control", *J. Dyn.
Sys. Meas. Control* 108, 1986.

Along a path the unknowns of a step are the independent speeds times the time to the next sample.
and loops stay closed, for the step is one of the robot's own motion; the steps that find it are
those of `reach_program`, from rest, so that they are about as short as can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.codegen.tape.derivatives import reads
from axode.codegen.tape.formulas import Vector, formula_tape
from axode.codegen.tape.program import Evaluate, Operation, Program, ReadRow, While, WriteRow
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.kinematics.reaching.goals import Goal, read_goals
from axode.kinematics.reaching.inverse_kinematics import (
    PostureProblem,
    check_settings,
    find_postures,
)
from axode.kinematics.reaching.reach_program import STATE, ReachTapes, reach_program
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of, model_on_cpu
from axode.model.named_arguments import as_numbers
from axode.model.signals import STATE_KINDS
from axode.model.state import signal_values
from axode.numerics.rank import singular_values, singular_vectors
from axode.numerics.tolerances import NEGLIGIBLE, ROUNDING
from axode.problems.arguments import check_parameters, in_units, require_model
from axode.problems.assemble.assemble import read_states
from axode.problems.inverse.motions import check_times
from axode.problems.steps.compiled import Place, compiled, tape_of
from axode.symbolic.algebra.casadi_interrupts import stoppable

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
ATTEMPTS = 10  # starts of the search for the first posture


def motion_program(tapes: ReachTapes, coordinates: Sequence[int | None]) -> Program:
    """Make the program that writes a row of `out` for each row of `path` but the first.

    A row has the coordinates, the speeds on the way there, and what is left of the targets.

    Args:
        tapes: Rows of the targets, as functions of speeds times a time.
        coordinates: For each speed, the coordinate whose rate it is.
    """
    n, inner = tapes.size, reach_program(tapes, counted=False)
    bounds = {"least": n, "most": n, "fastest": n}
    read = {"held": tapes.coordinates, "span": 1} | bounds
    begin = formula_tape("motion_begin", read, lambda **v: _begin(coordinates, v))
    there = tapes.sizes | {"span": 1, "error": 1, "index": 1, "samples": 1}
    end = formula_tape("motion_end", there, lambda **v: _end(tapes, v))
    ends = {"index": 1, "samples": 1}
    first = formula_tape("first", ends, lambda index, samples: {"more": [index[0] < samples[0]]})
    body: tuple[Operation, ...] = (
        ReadRow("path", "index", "wanted"),
        ReadRow("spans", "index", "span"),
        Evaluate(begin, (*read, "x", *STATE, "lower", "upper", "fresh")),
        *inner.operations,
        Evaluate(end, (*there, "held", "row", "last", "index", "more")),
        WriteRow("out", "last", "row", "fresh"),
    )
    own = ("x", "held", "wanted", "lower", "upper", "fresh")
    given = {name: size for name, size in inner.given.items() if name not in own}
    tables = {"path": tapes.wanted, "spans": 1, "out": tapes.coordinates + n + 1}
    state, given = {"held": tapes.coordinates, "index": 1}, given | bounds | {"samples": 1}
    operations = (Evaluate(first, ("index", "samples", "more")), While("more", body))
    return Program("motion", state, given, tables, operations)


def _begin(coordinates: Sequence[int | None], v: dict[str, Vector]) -> dict[str, Vector]:
    zero, span = 0.0 * v["span"][0], v["span"][0]
    lower, upper = [], []
    for j, place in enumerate(coordinates):
        far = v["fastest"][j] * span
        low, high = -far, far
        if place is not None:
            low = low.most(v["least"][j] - v["held"][place])
            high = high.least(v["most"][j] - v["held"][place])
        lower.append(low.least(0.0))
        upper.append(high.most(0.0))
    made = {"x": [zero] * len(lower)} | {name: [zero] for name in STATE}
    return made | {"lower": lower, "upper": upper, "fresh": [1.0 + zero]}


def _end(tapes: ReachTapes, v: dict[str, Vector]) -> dict[str, Vector]:
    q, index = tapes.place(v), v["index"][0]
    speeds = [a / v["span"][0] for a in v["x"]]
    return {
        "held": q,
        "row": [*q, *speeds, v["error"][0]],
        "last": [index],
        "index": [index + 1.0],
        "more": [index + 1.0 < v["samples"][0]],
    }


def solve_bounded(
    J: Array, wanted: Array, fastest: Array, scale: Array, damping: float
) -> tuple[Array, Array]:
    """Solve for speeds by least squares within limits, the shortest where many are as good.

    Args:
        J: Velocities for unit speeds: (..., rows, speeds).
        wanted: Velocities: (..., rows).
        fastest: Largest speeds: (speeds,).
        scale: Speeds that count alike: (speeds,).
        damping: Relative singular value below which speeds are damped.

    Returns:
        Speeds (..., speeds), and the smallest singular value over the largest (...).
    """
    A = J * scale
    limit = fastest / scale
    s = singular_values(A)
    top = s.max(axis=-1, initial=0.0)
    relative = s.min(axis=-1, initial=np.inf) / np.where(top > 0, top, 1.0)
    lack = np.clip(1 - (relative / damping) ** 2, 0.0, None) if damping else np.zeros(top.shape)
    extra = lack * (damping * top) ** 2
    y = np.zeros((*np.broadcast_shapes(A.shape[:-2], wanted.shape[:-1]), len(scale)))
    fixed = np.zeros(y.shape, dtype=bool)
    active = np.ones((*y.shape[:-1], 1), dtype=bool)
    for _ in range(4 * y.shape[-1] + 1):  # each turn reaches a limit, or leaves one
        held = np.where(fixed, y, 0.0)
        rest = wanted - np.einsum("...ij,...j->...i", A, held)
        z = held + _least(np.where(fixed[..., np.newaxis, :], 0.0, A), rest, extra)
        z = np.where(fixed, y, z)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(np.abs(z) > limit, (np.copysign(limit, z) - y) / (z - y), np.inf)
        part = room.min(axis=-1, keepdims=True, initial=np.inf)
        hits = active & (part < 1) & (room <= part)
        y = np.where(active, y + np.minimum(part, 1.0) * (z - y), y)
        y = np.where(hits, np.copysign(limit, z), y)
        pulled = np.where(part < 1, 0.0, _wrong_sides(A, wanted, extra, y, fixed))
        weakest = np.argmax(pulled, axis=-1)[..., np.newaxis]
        leaves = np.take_along_axis(pulled, weakest, axis=-1) > 0
        active = active & ((part < 1) | leaves)
        if not active.any():
            break
        fixed = fixed | hits
        stays = ~leaves & np.take_along_axis(fixed, weakest, axis=-1)
        np.put_along_axis(
            fixed, weakest, np.where(part < 1, np.take_along_axis(fixed, weakest, -1), stays), -1
        )
    return np.clip(y, -limit, limit) * scale, relative


def _least(A: Array, b: Array, extra: Array) -> Array:
    """Solve A y = b by damped least squares."""
    U, s, Vt = singular_vectors(A, full=False)
    small = s <= ROUNDING * s.max(axis=-1, keepdims=True, initial=0.0)
    gain = np.where(small, 0.0, s / np.where(small, 1.0, s**2 + extra[..., np.newaxis]))
    return np.asarray(np.einsum("...ji,...j,...kj,...k->...i", Vt, gain, U, b))


def _wrong_sides(A: Array, b: Array, extra: Array, y: Array, fixed: Array) -> Array:
    """How strongly speeds that are held at a limit are pulled back inside."""
    left = np.einsum("...ij,...j->...i", A, y) - b
    slope = np.einsum("...ij,...i->...j", A, left) + extra[..., np.newaxis] * y
    size = np.abs(A).max(axis=(-2, -1), initial=0.0) * np.abs(b).max(axis=-1, initial=0.0)
    pull = slope * np.sign(y)
    return np.where(fixed & (pull > NEGLIGIBLE * size[..., np.newaxis]), pull, 0.0)


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
    drifts = [
        np.broadcast_to(v, (*batch, v.shape[-1])) - b
        for (_, v), (_, b) in zip(parts, maps, strict=True)
    ]
    wanted = np.concatenate(drifts, axis=-1)
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
    from axode.results.columns import Origin
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
