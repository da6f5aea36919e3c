"""Time-optimal motions along paths, and how much slower a given timing has to be for motors.

A model along its paths has speeds, accelerations and efforts by a parameter, and limits of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.conditions import Conditions
from axode.model.force_deficit import find_deficit, force_size
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import SPEED_KINDS
from axode.motions.path_motion import PathMotion, path_motion
from axode.motions.paths import Path, check_jumps
from axode.motions.planned_motion import PlannedMotion, desired_motion
from axode.motions.time_optimum import LimitRows, PathPassage, TimeOptimum, find_optima
from axode.motions.waypoint_curves import SplineCurve, WaypointCurve, regular_spline
from axode.motions.waypoints import Waypoints, raise_faults, read_limit, read_waypoints
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.arguments import StateArgument, check_parameters, read_state, require_model
from axode.problems.inverse.motions import DesiredMotion, full_names, rows_by_name
from axode.symbolic.algebra.casadi_interrupts import stoppable

Array = npt.NDArray[np.float64]


class PathDynamics:
    """Everything about a model on its paths that depends on the parameter alone.

    The motions' own time is the parameter s of the paths. With the rates of a motion in which s is
    the time, those of any other are

        nu = nu' s_dot,   nu_dot = nu' s_ddot + nu'' s_dot^2.

    Args:
        model: What moves; explicit time must not matter to it.
        motions: The paths, each as a motion of the model in which s is the time.
        grids: Parameters, (paths, points).
        start: State at the start of a path, as for `inverse_dynamics`.
        conditions: Parameters of the model.
        weights: Weights of the motors, as for `inverse_dynamics`.
    """

    def __init__(
        self,
        model: Model,
        motions: Sequence[DesiredMotion],
        grids: Array,
        start: StateArgument,
        conditions: Conditions,
        weights: Any,
    ) -> None:
        self.model, self.conditions, self.weights = model, replace(conditions, t=0.0), weights
        self.shape = grids.shape
        self._require_clockless()
        samples = [motion.solve(s, start) for motion, s in zip(motions, grids, strict=True)]
        self.q, self.nu, self.nu_dot = (
            np.concatenate([getattr(sample, name) for sample in samples])
            for name in ("q", "nu", "nu_dot")
        )
        self._parts = self._described(samples)
        self.v = self._by_model(lambda m, k: m.joint_speeds(self.q[k], self.nu[k], **self._o))
        self.a = self._by_model(
            lambda m, k: m.accelerations(self.q[k], self.nu[k], self.nu_dot[k], **self._o)
        )

    @property
    def _o(self) -> Any:
        return self.conditions.options

    def _described(self, samples: Sequence[Any]) -> list[tuple[Model, npt.NDArray[np.intp]]]:
        """Models that describe the points, where the user's own is singular, and which points."""
        found: dict[Model, list[npt.NDArray[np.intp]]] = {}
        for number, sample in enumerate(samples):
            shift, elsewhere = number * self.shape[1], sample.described.elsewhere
            found.setdefault(self.model, []).append(np.flatnonzero(~elsewhere) + shift)
            for other, (k, *_) in sample.described.others():
                found.setdefault(other, []).append(k + shift)
        return [(model, np.concatenate(k)) for model, k in found.items()]

    def _by_model(self, function: Any) -> Array:
        """Values of a function of a model and of the numbers of points, for all points."""
        if len(self._parts) == 1:
            return np.asarray(function(self.model, slice(None)))
        parts = [(k, function(model, k)) for model, k in self._parts]
        found = np.empty((len(self.q), *parts[0][1].shape[1:]))
        for k, values in parts:
            found[k] = values
        return found

    def _require_clockless(self) -> None:
        """Require that nothing depends on time itself.

        Raises:
            NotApplicable: for constraints or forces that change with time.
        """
        rest = np.zeros(len(self.model.independent))
        now, later = (
            self.model.inverse_dynamics_with_residual(
                self.model.home, rest, rest, **replace(self.conditions, t=t).options
            )
            for t in (0.0, 0.61803)
        )
        same = all(np.array_equal(x, y) for x, y in zip(now, later, strict=True))
        if self.model.equations.system.rheonomic or not same:
            raise NotApplicable(
                f"time_optimal: '{self.model.name}' depends on time itself, so that what a path "
                "takes is not known before its times are"
            )

    # along the paths ---------------------------------------------------------------------------

    def efforts(self, rate: Any, second: Any) -> Array:
        """Inputs of the motors, (paths, points, motors), for rates of the parameter."""
        rate, second = (np.broadcast_to(x, self.shape).reshape(-1, 1) for x in (rate, second))
        nu, nu_dot = self.nu * rate, self.nu * second + self.nu_dot * rate**2

        def solve(model: Model, k: Any) -> Array:
            return model.inverse_dynamics_with_residual(
                self.q[k], nu[k], nu_dot[k], weights=self.weights, **self._o
            )[0]

        motors = facts_of(self.model).motors
        return self._by_model(solve)[:, :motors].reshape(*self.shape, motors)

    def require_motors(self) -> None:
        """Require that the motors can give what any timing of the paths takes.

        Raises:
            InvalidArgument: naming the speed whose force is missing.
        """
        if not self.model.is_underactuated:
            return
        o = self._o
        for rate, second in ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0)):
            nu, nu_dot = self.nu * rate, self.nu * second + self.nu_dot * rate
            u, missing = self.model.inverse_dynamics_with_residual(self.q, nu, nu_dot, **o)
            size = force_size(self.model, self.q, nu, u, missing, o)
            lacking = find_deficit(self.model, missing, size)
            if lacking is not None:
                raise InvalidArgument(
                    f"time_optimal: the motors of '{self.model.name}' cannot give the force on "
                    f"'{lacking[1]}' that the path takes; only some timings, if any, are possible"
                )

    def derivatives(self, names: Sequence[str]) -> tuple[Array, Array]:
        """First and second derivatives by s of coordinates, integrals of speeds, and measures.

        Returns:
            Arrays (paths, points, names).
        """
        model = self.model
        found = np.empty((2, len(self.q), len(names)))
        measures = [n for n in names if n not in model.speed_names]
        rows = rows_by_name(model, measures)
        values = (
            rows.call("rate", self.q, self.conditions, v=self.v),
            rows.call("second", self.q, self.conditions, v=self.v, a=self.a),
        )
        for k, name in enumerate(names):
            if name in model.speed_names:
                j = model.speed_names.index(name)
                found[:, :, k] = self.v[:, j], self.a[:, j]
            else:
                j = measures.index(name)
                found[:, :, k] = values[0][:, j], values[1][:, j]
        first, second = found.reshape(2, *self.shape, -1)
        return first, second

    def standing(self) -> npt.NDArray[np.bool_]:
        """Where nothing moves with the parameter: (paths, points)."""
        size = np.abs(self.v).max(axis=-1).reshape(self.shape)
        return np.asarray(size <= NEGLIGIBLE * size.max(axis=-1, keepdims=True))


@dataclass(frozen=True)
class PathLimits:
    """Limits by full names: of speeds and measures, and of motors by their inputs.

    Attributes:
        speed: By speeds and measures of position [rad/s, m/s].
        acceleration: Likewise [rad/s^2, m/s^2].
        effort: By inputs [N m, N].
        bodies: Limits of the speeds of position and rotation of bodies whose pose is given.
        path: Limit of the speed along a path in the plane [m/s].
    """

    speed: Mapping[str, float]
    acceleration: Mapping[str, float]
    effort: Mapping[str, float]
    bodies: Mapping[str, tuple[float, ...]]
    path: float


def read_path_limits(
    verb: str, model: Model, bodies: Sequence[str], given: Mapping[str, Any]
) -> PathLimits:
    """Read the limits of `time_optimal`.

    Args:
        verb: Function that they were given to, for messages.
        model: Whose names they are.
        bodies: Bodies whose pose the path gives.
        given: The arguments speed, acceleration and torque.

    Raises:
        InvalidArgument: with everything that is wrong with them, and if there are none.
    """
    faults: list[str] = []
    whole = _as_mapping("speed", given["speed"], driven_speeds(model), faults)
    pairs = {name: whole.pop(name) for name in bodies if name in whole}
    path = whole.pop("path", np.inf)
    speed = _by_name(model, "speed", whole, faults)
    whole = _as_mapping("acceleration", given["acceleration"], driven_speeds(model), faults)
    acceleration = _by_name(model, "acceleration", whole, faults)
    motors = model.inputs[: facts_of(model).motors]
    own = {n: x for n, x in zip(motors, facts_of(model).limits, strict=True) if x is not None}
    effort = _as_mapping("torque", given["torque"], motors, faults)
    try:
        effort = own | model.signals.names("input").by_full_name(effort)
    except (UnknownName, InvalidArgument) as error:
        faults.append(str(error).replace("\n", "\n  "))
    outside = [name for name in effort if name in model.inputs and name not in motors]
    faults += [f"torque: '{name}' is no motor but a wrench from outside" for name in outside]
    found = PathLimits(
        {n: _positive(f"speed, '{n}'", x, faults) for n, x in speed.items()},
        {n: _positive(f"acceleration, '{n}'", x, faults) for n, x in acceleration.items()},
        {n: _positive(f"torque, '{n}'", x, faults) for n, x in effort.items()},
        {n: tuple(read_limit(f"speed, '{n}'", x, 2, faults)) for n, x in pairs.items()},
        _positive("speed, 'path'", path, faults),
    )
    speeds = found.speed or pairs or np.isfinite(found.path)
    others = [*found.acceleration.values(), *found.effort.values()]
    if not speeds and not others:
        faults.append(
            "there are no limits: give speed, acceleration or torque, or motors with a limit of "
            "their own"
        )
    elif speeds and np.isinf(others).all():
        faults.append(
            "nothing limits accelerations: give acceleration or torque, too, or motors with a "
            "limit of their own"
        )
    raise_faults(verb, faults)
    return found


def driven_speeds(model: Model) -> list[str]:
    """Speeds of the joints that motors drive."""
    drives = model.equations.system.mechanism.drives
    names = [model.signals.resolve(drive.coordinate, *SPEED_KINDS).name for drive in drives]
    return list(dict.fromkeys(names))


def _as_mapping(name: str, given: Any, names: Sequence[str], faults: list[str]) -> dict[str, Any]:
    """Limits by name; one number is that of every name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if not names:
        faults.append(f"{name}: there are no motors; give limits by name")
    return dict.fromkeys(names, given)


def _by_name(
    model: Model, kind: str, given: Mapping[str, Any], faults: list[str]
) -> dict[str, Any]:
    """Limits by the full names of speeds and of measures of position."""
    found = {}
    for name, limit in given.items():
        try:
            if model.signals.names(*SPEED_KINDS).accepts(name):
                full = model.signals.resolve(name, *SPEED_KINDS).name
            else:
                (full,) = full_names(model, [name])
        except (UnknownName, InvalidArgument) as error:
            faults.append(f"{kind}: " + str(error).replace("\n", "\n  "))
            continue
        if full in found:
            faults.append(f"{kind}: '{name}' means {full}, which is given twice")
        found[full] = limit
    return found


def _positive(label: str, given: Any, faults: list[str]) -> float:
    return float(read_limit(label, given, 1, faults)[0])


Limits = float | Mapping[str, Any]
POINTS = 1001  # of a path
MAX_POINTS = 100_000  # about a gigabyte
SAMPLES = 100  # of an interval between waypoints


@stoppable
def time_optimal(
    model: Model,
    path: Any,
    *,
    speed: Limits | None = None,
    acceleration: Limits | None = None,
    torque: Limits | None = None,
    points: int = POINTS,
    start: Any = None,
    point: Any = (0.0, 0.0, 0.0),
    forward: Any = "x",
    base: str | None = None,
    weights: Any = None,
    parameters: Mapping[str, float] | None = None,
) -> Any:
    """Follow a path in the least time that the limits of a model allow.

    The limits hold at all points of a grid, and between them to 1e-4 of their size; `optimum` of
    the motion holds what limits it where. Closed loops and wheels are those of the model; with more
    motors than needed, their efforts are those of `inverse_dynamics`.

    Args:
        model: What moves; every joint that the path moves needs a motor.
        path: Waypoints, through which a spline is laid; a motion of this module, or a list of such
            motions; or a path of `ax.paths` for a vehicle. Timings of their own are left out.
        speed: Largest speeds [rad/s, m/s], by the names of speeds, coordinates and measures of
            position, or one number for all joints with motors; a body whose pose is given has a
            pair, for its position and for its rotation; `path` means the point of a vehicle that
            follows its path [m/s].
        acceleration: Largest accelerations [rad/s^2, m/s^2], likewise, but for bodies.
        torque: Largest efforts of motors [N m, N], by their inputs, or one number for all. The
            motors' own limits unless given.
        points: Number of points of the grid.
        start: State at the start, as for `inverse_dynamics`, where the path does not determine it.
        point, forward, base: For a path of a vehicle, as for `ax.paths.follow`.
        weights, parameters: As for `inverse_dynamics`.

    Returns:
        A motion as the others of this module with `optimum`, a `TimeOptimum`; a list of them for a
        list of motions; for a path of a vehicle, a path with another timing and with `optimum`.

    Raises:
        InvalidArgument: with everything that is wrong with the limits; for a path that cannot be
            passed, with the limit, the place and the excess.
    """
    check_arguments(time_optimal, locals())
    verb = "time_optimal"
    require_model(verb, model)
    check_parameters(model, parameters)
    conditions = Conditions.of(model, parameters=parameters)
    state = read_state(model, start, "start")
    state.require_one("start")
    if not 3 <= points <= MAX_POINTS:
        raise InvalidArgument(f"points: expected 3 to {MAX_POINTS}, got {points}")
    given = {"speed": speed, "acceleration": acceleration, "torque": torque}
    if isinstance(path, Path):
        limits = read_path_limits(verb, model, (), given)
        shape = path if path.steady is None else path.steady
        motion = path_motion(model, shape, point, forward, base, {}, parameters)
        return _retimed(motion, shape, limits, points, state, conditions, weights)
    curves, single = _read_paths(verb, path, model)
    bodies = [c.name for c in curves[0][0].channels if c.is_pose]
    limits = read_path_limits(verb, model, bodies, given)
    grids = np.array([_grid(curve.knots, points) for _, curve in curves])
    motions = [desired_motion(model, w, curve.at, conditions) for w, curve in curves]
    dynamics = PathDynamics(model, motions, grids, state, conditions, weights)
    optima = _optima(dynamics, limits, grids, _outline(curves, grids, limits))
    made = [
        PlannedMotion(w, curve, optimum.law, "time-optimal", optimum=optimum)
        for (w, curve), optimum in zip(curves, optima, strict=True)
    ]
    return made[0] if single else made


def _retimed(
    motion: PathMotion,
    shape: Path,
    limits: PathLimits,
    points: int,
    state: StateArgument,
    conditions: Conditions,
    weights: Any,
) -> Path:
    """Give a path of a vehicle the timing in which it is driven in the least time."""
    motion.steering.check_jumps(shape.name)
    check_jumps(shape)
    grids = _grid(np.array([0.0, shape.duration]), points)[np.newaxis]
    dynamics = PathDynamics(motion.model, [motion], grids, state, conditions, weights)
    rates = shape.pose(grids[0])[:2, 1]
    speeds = np.hypot(*rates)[np.newaxis, :, np.newaxis]
    (optimum,) = _optima(dynamics, limits, grids, (speeds, ["path"], np.array([limits.path])))

    def pose(times: Array) -> Array:
        s, rate, second = optimum.law.at(times)
        y, y1, y2 = np.moveaxis(shape.pose(s), 1, 0)
        return np.stack([y, y1 * rate, y2 * rate**2 + y1 * second], axis=1)

    return Path(optimum.duration, pose, shape.name, shape, optimum)


def _read_paths(
    verb: str, path: Any, model: Model
) -> tuple[list[tuple[Waypoints, WaypointCurve]], bool]:
    """Waypoints and regular curves of the paths, and whether there is one that is no list."""
    if isinstance(path, PlannedMotion):
        return [_regular(path)], True
    items = list(path) if isinstance(path, Sequence) else []
    if items and all(isinstance(item, PlannedMotion) for item in items):
        curves = [_regular(item) for item in items]
        if len({w.channels for w, _ in curves}) > 1:
            raise InvalidArgument(f"{verb}: the motions of a list have to move the same")
        return curves, False
    if len(items) < 2 or not all(isinstance(item, Mapping) for item in items):
        raise InvalidArgument(
            f"{verb}: expected two waypoints or more, such as [{{'theta1': 0.0}}, "
            f"{{'theta1': 1.0}}], or a motion of ax.motions, got {shortened(path)}"
        )
    labels = [f"waypoint {k}" for k in range(len(items))]
    return [_spline(verb, read_waypoints(verb, items, labels, model))], True


def _regular(motion: PlannedMotion) -> tuple[Waypoints, WaypointCurve]:
    """The curve of a motion, with a parameter along which it never stands still."""
    if isinstance(motion.curve, SplineCurve) and motion.optimum is None:
        return _spline("time_optimal", motion.waypoints)
    return motion.waypoints, motion.curve


def _spline(verb: str, waypoints: Waypoints) -> tuple[Waypoints, WaypointCurve]:
    """Spline through waypoints by the length of the way between them, parts scaled alike."""
    waypoints, _ = waypoints.without_repeats()
    if len(waypoints.values) < 2:
        raise InvalidArgument(f"{verb}: all waypoints are the same place, so that nothing moves")
    distances = waypoints.distances()
    extent = distances.sum(axis=0)
    scaled = distances[:, extent > 0] / extent[extent > 0]
    lengths = np.sqrt((scaled**2).sum(axis=1))
    parameters = np.concatenate([[0.0], np.cumsum(lengths)])
    return waypoints, regular_spline(waypoints, parameters / parameters[-1])


def _grid(knots: Array, points: int) -> Array:
    """Points of a grid with all knots among them, and the middles between them: 2 points - 1.

    They are dense at both ends, s = (1 - cos(pi w)) / 2 for equal steps of w, because a motion from
    rest takes equal times for them there.
    """
    points = max(points, 2 * knots.size)
    end = knots[-1]
    w = np.arccos(1 - 2 * knots / end) / np.pi
    share = (points - 1) * np.diff(w)
    counts = np.maximum(np.floor(share).astype(int), 1)
    while counts.sum() != points - 1:  # a few times at most: rounding, and short intervals
        more = points - 1 - counts.sum()
        k = np.argsort((share - counts) * np.sign(more))[::-1][: abs(more)]
        counts[k] = np.maximum(counts[k] + np.sign(more), 1)
    places = np.concatenate([[0], np.cumsum(counts)])
    found = np.empty(2 * points - 1)
    found[::2] = end * (1 - np.cos(np.pi * np.interp(np.arange(points), places, w))) / 2
    found[2 * places] = knots
    found[1::2] = (found[:-1:2] + found[2::2]) / 2
    return found


def _outline(
    curves: Sequence[tuple[Waypoints, WaypointCurve]], grids: Array, limits: PathLimits
) -> tuple[Array, list[str], Array]:
    """Speeds of bodies whose poses the paths give, by the parameter, with names and limits."""
    waypoints = curves[0][0]
    names = [f"{name} {part}" for name in limits.bodies for part in ("position", "rotation")]
    bounds = np.array([x for pair in limits.bodies.values() for x in pair])
    columns = [waypoints.parts.index(name) for name in names]
    speeds = [
        w.magnitudes(curve.at(s))[0][:, columns]
        for (w, curve), s in zip(curves, grids, strict=True)
    ]
    return np.array(speeds), names, bounds


def _optima(
    dynamics: PathDynamics,
    limits: PathLimits,
    grids: Array,
    outline: tuple[Array, Sequence[str], Array],
    speeds: tuple[float, float] = (0.0, 0.0),
) -> list[TimeOptimum]:
    """Find the optima, or report why there are none."""
    standing = dynamics.standing()
    if standing.any():
        k, i = (int(x[0]) for x in np.nonzero(standing))
        raise InvalidArgument(
            f"time_optimal: nothing moves with the path's parameter at {grids[k, i]:g}, so that it "
            "does not determine speeds; give a path that does not stand still"
        )
    if limits.effort:
        dynamics.require_motors()
    rows = LimitRows(dynamics, limits, grids[:, -1], outline)
    ends = tuple(np.full(len(grids), speed) for speed in speeds)
    optima, passage = find_optima(rows, grids, (ends[0], ends[1]))
    if not optima:
        _raise_impassable(rows, grids, passage)
    return optima


def _raise_impassable(rows: LimitRows, grids: Array, passage: PathPassage) -> None:
    """Report the limit, the place and the excess at which a path cannot be passed."""
    bad = ~np.isfinite(passage.squares).all(axis=1)
    if not bad.any():
        k = int(np.argmax(passage.squares.max(axis=1)))
        i = int(np.argmax(passage.squares[k]))
        raise InvalidArgument(
            f"time_optimal: nothing limits the motion at {_place(grids[k], i)}; the limits given "
            f"are of {', '.join(rows.labels)}"
        )
    k = int(np.argmax(bad))
    held = np.abs(rows.rest[k, ::2])
    i, j = (int(x) for x in np.unravel_index(int(np.argmax(held)), held.shape))
    model, name, limit = rows.dynamics.model, rows.labels[j], float(rows.strength[j])
    unit = facts_of(model).input_units[model.inputs.index(name)]
    raise InvalidArgument(
        f"time_optimal: '{model.name}' cannot pass the path: at {_place(grids[k], i)} standing "
        f"still takes {rows.rest[k, 2 * i, j] * limit:.4g} {unit} of '{name}', "
        f"{(held[i, j] - 1) * limit:.3g} {unit} more than its limit of {limit:.4g} {unit}.\n  "
        "Raise the limit, or choose another path"
    )


def _place(grid: Array, i: int) -> str:
    """Where the i-th point of a grid is."""
    part = grid[2 * i] / grid[-1]
    return "its start" if part == 0 else "its end" if part == 1 else f"{100 * part:.3g} % of it"


def slower_by(model: Model, curve: SplineCurve, torque: Any, start: Any) -> float:
    """Factor of all times with which motors keep their limits; one if they do so already.

    Efforts are quadratic in the speed of the whole motion: at rest, friction, inertia.

    Args:
        model: What moves.
        curve: The motion, its parameter the time.
        torque: Limits of the motors, as for `time_optimal`.
        start: State at the start, as for `inverse_dynamics`.

    Raises:
        InvalidArgument: if motors cannot even hold the model at rest, with the time and excess.
    """
    given = {"speed": None, "acceleration": None, "torque": torque}
    limits = read_path_limits("through", model, (), given)
    state = read_state(model, start, "start")
    state.require_one("start")
    count = SAMPLES * (curve.knots.size - 1)
    grid = np.interp(np.arange(count + 1) / SAMPLES, np.arange(curve.knots.size), curve.knots)
    conditions = Conditions.of(model)
    motion = desired_motion(model, curve.waypoints, curve.at, conditions)
    dynamics = PathDynamics(model, [motion], grid[np.newaxis], state, conditions, None)
    dynamics.require_motors()
    columns = [model.inputs.index(name) for name in limits.effort]
    strength = np.array(list(limits.effort.values()))
    rest, half, full = (dynamics.efforts(x, 0.0)[0][:, columns] / strength for x in (0, 0.5, 1))
    held = np.abs(rest)
    if held.max() > 1:
        sample, j = np.unravel_index(int(np.argmax(held)), held.shape)
        name = model.inputs[columns[int(j)]]
        raise InvalidArgument(
            f"through: standing still takes {rest[sample, j] * strength[j]:.4g} of '{name}' at t = "
            f"{grid[sample]:.4g} s, {(held[sample, j] - 1) * strength[j]:.3g} more than its limit"
        )
    inertia = 2 * (full - 2 * half + rest)
    friction = full - rest - inertia
    speeds = [_smallest_root(sign * inertia, sign * friction, sign * rest - 1) for sign in (1, -1)]
    return float(1 / min(1.0, *(speed.min() for speed in speeds)))


def _smallest_root(a: Array, b: Array, c: Array) -> Array:
    """Smallest positive root of a x^2 + b x + c for c <= 0; infinity if there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(b * b - 4 * a * c)
        q = -(b + np.where(b >= 0, root, -root)) / 2
        both = np.stack([q / a, c / q])
    both[~(both > 0)] = np.inf
    return np.asarray(both.min(axis=0))
