"""Paths for wheeled robots: where a point of the base goes, how fast, and which way it looks.

A path is a pose over time with its first two derivatives. `follow` finds the rates of the wheels
that drive it, exactly or not at all, and through `inverse` the torques and contact forces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import as_vector
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.problems.arguments import GivenState, read_state, require_model
from axode.problems.inverse.motions import (
    MISFIT,
    GivenMotion,
    PositionRow,
    Rows,
    full_names,
    rows_by_name,
)
from axode.problems.inverse.time_signals import TimeSignal, as_signal
from axode.problems.paths.curves import JoinedLines, formula, law_of, positive, tangent
from axode.problems.paths.steering import (
    GRID_SAMPLES,
    JUMP,
    SMOOTHER,
    Steering,
    largest_jump,
    steering_of,
)

if TYPE_CHECKING:
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
Start = Literal["smooth", "moving"]
SAMPLES = 500
LARGEST = 1e9  # [m] of a path; beyond it, and below its inverse, curvatures overflow
STILL = 1e-6  # [m/s, rad/s] jumps of what is slower do not matter


@dataclass(frozen=True)
class Path:
    """A pose over time.

    Attributes:
        duration: [s]
        pose: Function of times (T,): x, y [m] and heading [rad], each with two derivatives:
            (3, 3, T), quantity first, order of the derivative second.
        name: What messages call it.
    """

    duration: float
    pose: Callable[[Array], Array]
    name: str = "path"

    def __call__(self, times: npt.ArrayLike) -> dict[str, Array]:
        """x, y, heading at some times, and their rates and accelerations by name."""
        found = self.pose(np.atleast_1d(np.asarray(times, dtype=float)))
        return {
            f"{name}{ending}": found[i, order]
            for i, name in enumerate(("x", "y", "heading"))
            for order, ending in enumerate(("", "_rate", "_acceleration"))
        }

    def placed(self, x: float = 0.0, y: float = 0.0, heading: float = 0.0) -> Path:
        """Return the same path turned by `heading` [rad], then moved by x and y [m]."""
        c, s = np.cos(heading), np.sin(heading)
        shift = np.array([x, y, heading])

        def pose(times: Array) -> Array:
            found = self.pose(times)
            east, north = found[0], found[1]
            turned = np.array([c * east - s * north, s * east + c * north, found[2]])
            turned[:, 0] += shift[:, np.newaxis]
            return turned

        return Path(self.duration, pose, self.name)

    def looking(self, heading: float | str | Callable[[Any], Any]) -> Path:
        """Return the same path with a heading of its own, for robots that can move sideways.

        Args:
            heading: [rad] A number, or a formula of t.
        """
        values = formula("heading", heading)

        def pose(times: Array) -> Array:
            found = self.pose(times)
            return np.array([found[0], found[1], values(times)])

        return Path(self.duration, pose, self.name)

    def __repr__(self) -> str:
        return f"Path('{self.name}', {self.duration:g} s)"


# helpers -----------------------------------------------------------------------------------------


def straight(
    length: float,
    duration: float | None = None,
    *,
    speed: float | None = None,
    start: Start = "smooth",
) -> Path:
    """A straight line along x.

    Args:
        length: [m]; negative goes backwards, looking along +x.
        duration, speed: One of the two: [s], or the mean speed [m/s].
        start: "smooth" starts and stops at rest (a quintic in time), "moving" keeps its speed.
    """
    check_arguments(straight, locals())
    way = float(np.sign(length)) or 1.0
    law = law_of(abs(length), duration, speed, start)

    def pose(times: Array) -> Array:
        s = way * law.at(times)
        zero = np.zeros_like(s)
        return np.array([s, zero, zero])

    return Path(law.duration, pose, "straight line")


def circle(
    radius: float,
    duration: float | None = None,
    *,
    speed: float | None = None,
    turns: float = 1.0,
    start: Start = "moving",
) -> Path:
    """A circle through the origin, starting along x.

    Args:
        radius: [m]; positive turns to the left, negative to the right.
        duration, speed: One of the two: [s], or the mean speed [m/s].
        turns: How many times round.
        start: "smooth" starts and stops at rest, "moving" keeps its speed.
    """
    check_arguments(circle, locals())
    positive("turns", turns)
    if not (np.isfinite(radius) and radius != 0):
        raise InvalidArgument(f"circle: radius must be finite and not 0 m, got {radius}")
    law = law_of(2 * np.pi * abs(radius) * turns, duration, speed, start)

    def pose(times: Array) -> Array:
        s, v, a = law.at(times)
        heading, rate, second = s / radius, v / radius, a / radius
        c, n = np.cos(heading), np.sin(heading)
        x = np.array([radius * n, v * c, a * c - v * rate * n])
        y = np.array([radius * (1 - c), v * n, a * n + v * rate * c])
        return np.array([x, y, [heading, rate, second]])

    return Path(law.duration, pose, "circle")


def parallel_lines(
    distance: float,
    length: float,
    duration: float | None = None,
    *,
    speed: float | None = None,
    lead: float | None = None,
    start: Start = "smooth",
) -> Path:
    """Two parallel straight lines along x, joined by a smooth curve.

    The curve is of seventh degree: curvature and its rate are continuous, so that torques are.

    Args:
        distance: Between the lines [m]; positive lies to the left.
        length: Length of the curve along x [m].
        duration, speed: One of the two: [s], or the mean speed [m/s].
        lead: Length of each straight line [m]; that of the curve unless given.
        start: "smooth" starts and stops at rest, "moving" keeps its speed.
    """
    check_arguments(parallel_lines, locals())
    positive("parallel_lines: length", length)
    ends = length if lead is None else float(lead)
    if not (np.isfinite(ends) and ends >= 0):
        raise InvalidArgument(f"parallel_lines: lead must be >= 0 m, got {ends}")
    if not abs(distance) < LARGEST or not 1 / LARGEST < length < LARGEST:
        raise InvalidArgument(
            f"parallel_lines: a distance of {distance:g} m over {length:g} m is out of range"
        )
    curve = JoinedLines(float(distance), float(length), ends)
    law = law_of(curve.total, duration, speed, start)

    def pose(times: Array) -> Array:
        return curve.pose(*law.at(times))

    return Path(law.duration, pose, "parallel lines")


def along(x: Any, y: Any, duration: float, *, heading: Any = "tangent", name: str = "path") -> Path:
    """A path given by formulas of time.

    Args:
        x, y: [m] Formulas of t: text, a number, or a function written with `numpy.sin` and such.
        duration: [s]
        heading: "tangent" looks along the velocity, which must then never vanish; or a formula of
            t [rad].
        name: What messages call it.
    """
    check_arguments(along, locals())
    positive("along: duration", duration)
    fx, fy = formula("x", x, 3), formula("y", y, 3)
    looks_along = isinstance(heading, str) and heading == "tangent"
    turned = None if looks_along else formula("heading", heading)

    def pose(times: Array) -> Array:
        px, py = fx(times), fy(times)
        if turned is not None:
            return np.array([px[:3], py[:3], turned(times)])
        size = np.hypot(px[1], py[1])
        still = size <= 1e-9 * max(float(size.max(initial=0.0)), 1e-9)
        if still.any():
            raise InvalidArgument(
                f"{name}: it stands still at t = {times[int(np.argmax(still))]:g} s, where its "
                "velocity has no direction; give heading=... as a formula of t"
            )
        return np.array([px[:3], py[:3], tangent(px, py)])

    return Path(float(duration), pose, name)


# following ---------------------------------------------------------------------------------------


def follow(
    model: Model,
    path: Path,
    *,
    point: Any = (0.0, 0.0, 0.0),
    forward: Any = "x",
    base: str | None = None,
    others: Mapping[str, Any] | None = None,
    start: Any = None,
    weights: Any = None,
    save_every: float | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Trajectory:
    """Drive a path: rates of all wheels, and through `inverse` torques and contact forces.

    The rates are those whose base twist is the path's, by least squares with zero residual; a path
    that the wheels do not allow (a heading off the path's tangent) is refused. Wheels that steer
    stand as the path's curvature asks. Neither curvature nor velocity may jump: rates of wheels
    would, too.

    Args:
        model: A vehicle, its base joined to the ground by a `Planar` or `Floating` joint.
        path: Where the point goes, in the world's x and y.
        point: The point of the base that follows it: coordinates in the base's frame [m], the name
            of a "position" measure on it, or the base's name for its mass centre.
        forward: The base's direction that the heading of the path means.
        base: Name of the base's body, where there are several.
        others: Further signals by name, as `inverse` takes them, for what the path does not
            determine (the joints of an arm); samples are 501, equally spaced over the duration.
        start: State at the start, as for `inverse`, where the path does not tell it (a caster's
            swivel).
        weights, save_every, parameters: As for `inverse`.

    Returns:
        The trajectory of `inverse`, with the path's own `path.x`, `path.y`, `path.heading` and
        `path.residual`, what is left of its velocity [m/s or rad/s].

    Raises:
        InvalidArgument: if the wheels do not allow the path, with time and size of what is left,
            or if it jumps, with the time.
    """
    check_arguments(follow, locals())
    from axode.problems.inverse.inverse import equal_times, solve_forces

    motion = _path_motion(model, path, point, forward, base, others or {}, parameters)
    times = equal_times(
        np.array([0.0, path.duration]),
        path.duration / SAMPLES if save_every is None else save_every,
    )
    motion.steering.check_jumps(path.name)
    _check_jumps(path)
    samples = motion.solve(times, _start(model, start))
    outside = np.zeros((times.size, len(model.inputs)))
    driven = solve_forces(model, samples, outside, motion.conditions, weights)
    pose = path.pose(times)
    columns = {
        "path.x": pose[0, 0],
        "path.y": pose[1, 0],
        "path.heading": pose[2, 0],
        "path.residual": motion.left,
    }
    return driven.with_columns(
        columns, units={"path.x": "m", "path.y": "m", "path.heading": "rad", "path.residual": "m/s"}
    )


def admissible(
    model: Model,
    path: Path,
    *,
    point: Any = (0.0, 0.0, 0.0),
    forward: Any = "x",
    base: str | None = None,
    others: Mapping[str, Any] | None = None,
    start: Any = None,
    save_every: float | None = None,
    parameters: Mapping[str, float] | None = None,
) -> Array:
    """How far the nearest rates of the wheels miss a path's velocity, over time.

    Arguments are those of `follow`.

    Returns:
        Largest residual at each sample [m/s or rad/s]; zero where the path can be driven.
    """
    check_arguments(admissible, locals())
    from axode.problems.inverse.inverse import equal_times

    motion = _path_motion(model, path, point, forward, base, others or {}, parameters)
    times = equal_times(
        np.array([0.0, path.duration]),
        path.duration / SAMPLES if save_every is None else save_every,
    )
    return _size(motion.residuals(times, _start(model, start)))


def _start(model: Model, start: Any) -> GivenState:
    given = read_state(model, start, "start")
    given.require_one("start")
    return given


def _check_jumps(path: Path) -> None:
    """Stop at a path along which wheels would have to change their rates at once."""
    times = np.linspace(0.0, path.duration, GRID_SAMPLES)
    pose = path.pose(times)
    speed, turn = np.hypot(pose[0, 1], pose[1, 1]).max(), np.abs(pose[2, 1]).max()
    kinds = (
        ("velocity", speed, "m/s"),
        ("velocity", speed, "m/s"),
        ("rate of turning (curvature times speed)", turn, "rad/s"),
    )
    for (_, rates, seconds), (what, size, unit) in zip(pose, kinds, strict=True):
        k, jump = largest_jump(times, rates, seconds)
        if jump > JUMP * max(float(size), STILL):
            raise InvalidArgument(
                f"{path.name}: its {what} jumps at t = {times[k]:.4g} s by "
                f"{rates[k + 1] - rates[k]:.3g} {unit}, which takes torques without bound.\n  "
                f"{SMOOTHER}"
            )


def _size(misfit: Array) -> Array:
    """What is left of a velocity in the plane, or of anything else where that is more."""
    plane = np.hypot(misfit[:, 0], misfit[:, 1])
    return np.maximum(plane, np.abs(misfit[:, 2:]).max(axis=-1))


class _PathMotion(GivenMotion):
    """A motion given by a path; keeps what is left of its velocity."""

    path: Path
    left: Array
    steering: Steering

    def check_misfit(self, misfit: Array, size: Array, times: Array, what: str) -> None:
        worst = _size(misfit)
        if what == "speeds":
            self.left = worst
        allowed = MISFIT[self.exact] * max(1.0, float(np.abs(size).max(initial=0.0)))
        if worst.max(initial=0.0) <= allowed:
            return
        k = int(np.argmax(worst > allowed))
        row = self.rows.names[int(np.argmax(np.abs(misfit[k])))]
        unit = "/s" if what == "speeds" else "/s^2"
        remedy = (
            "Check which point follows it (point=...) and which way is forward (forward=...); a "
            "wheel cannot slide sideways, so that the heading must be tangent at a point of the "
            "axle"
        )
        if not self.exact:
            rough = ", ".join(signal.name for signal in self.signals if not signal.exact)
            remedy += (
                f".\n  Or splines through the samples of {rough} miss the rates at kinks: give a "
                "formula of t, or leave out what steers, which the path determines"
            )
        raise InvalidArgument(
            f"{self.path.name}: the wheels of '{self.model.name}' do not allow it: from t = "
            f"{times[k]:.6g} s on {worst[k]:.3g} (m or rad){unit} of '{row}' is left over, "
            f"{worst.max():.3g} at most.\n  {remedy}"
        )


def _path_motion(
    model: Model,
    path: Path,
    point: Any,
    forward: Any,
    base: str | None,
    others: Mapping[str, Any],
    parameters: Mapping[str, float] | None,
) -> _PathMotion:
    import casadi as ca

    if not isinstance(path, Path):
        raise InvalidArgument(
            f"path: expected a Path such as circle(2.0, speed=1.0), got {shortened(path)}"
        )
    require_model("follow", model)
    equations = model.equations
    body = _base(model, base)
    at = _point(model, body, point)
    pose = equations.poses[body]
    place = pose.point(ca.SX(ca.DM(at)))
    ahead = pose.R @ ca.SX(ca.DM([numeric(x) for x in as_vector(forward)]))
    rows = [
        PositionRow("path.x", place[0], "m"),
        PositionRow("path.y", place[1], "m"),
        PositionRow("path.heading", ca.atan2(ahead[1], ahead[0]), "rad", is_angle=True),
    ]
    names = full_names(model, tuple(others))
    further = rows_by_name(model, names)
    more = [model.speed_names[j] for j in further.speeds]
    conditions = Conditions.of(model, parameters=parameters)
    times = np.linspace(0.0, path.duration, SAMPLES + 1)
    signals = _path_signals(path)
    signals += [
        as_signal(model, name, given, times, parameters or {})
        for name, given in zip(names, others.values(), strict=True)
    ]
    rows += further.positions
    steering = steering_of(
        GivenMotion(model, Rows(model, rows, more), signals, conditions), path.duration
    )
    rows += rows_by_name(model, steering.names).positions
    signals += steering.signals()
    motion = _PathMotion(model, Rows(model, rows, more), signals, conditions)
    motion.path, motion.left, motion.steering = path, np.zeros(0), steering
    return motion


def _path_signals(path: Path) -> list[TimeSignal]:
    """Three signals that share one evaluation of the path."""
    last: dict[str, Any] = {"times": None, "pose": None}

    def part(i: int) -> Callable[[Array], Array]:
        def values(times: Array) -> Array:
            if last["times"] is not times:
                last["times"], last["pose"] = times, path.pose(times)
            found: Array = last["pose"][i]
            return found

        return values

    names = ("path.x", "path.y", "path.heading")
    return [TimeSignal(name, part(i)) for i, name in enumerate(names)]


def _base(model: Model, name: str | None) -> str:
    mechanism = model.equations.system.mechanism
    bases = [c.child for c in mechanism.connections if c.joint.carries_base]
    if name is not None:
        if name not in bases:
            raise UnknownName(f"mechanism '{mechanism.name}'", "base", name, bases)
        return name
    if not bases:
        raise NotApplicable(
            f"'{model.name}' has no base: join the vehicle to the ground by a Planar or Floating "
            "joint to follow a path"
        )
    return str(bases[0])


def _point(model: Model, body: str, point: Any) -> list[float]:
    """A point of the base: coordinates, a measure's, or the mass centre."""
    mechanism = model.equations.system.mechanism
    if isinstance(point, str):
        if point == body:
            com = next(b.com for b in mechanism.bodies if b.name == body)
            return [numeric(x) for x in com]
        points = {m.name: m for m in mechanism.measures if m.kind == "position" and m.body == body}
        if point not in points:
            raise UnknownName(f"base '{body}'", "point", point, (body, *points))
        return [numeric(x) for x in points[point].at]
    try:
        return [numeric(x) for x in as_vector(point)]
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"point: {error}") from None
