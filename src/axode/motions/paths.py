"""Paths for wheeled robots: the place, speed and heading of a point of the base over time.

A path is a pose over time with its first two derivatives. `follow` finds the rates of the wheels
that drive it, exactly or not at all, and through `inverse_dynamics` the torques and contact forces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from axode.argument_types import check_arguments
from axode.errors import InvalidArgument, UnknownName, shortened
from axode.model.model import Model
from axode.motions.path_motion import GRID_SAMPLES, SMOOTHER, largest_jump, misfit_size, path_motion
from axode.motions.planned_motion import named_rates, sample_times
from axode.numerics.tolerances import ANGLE_JUMP, NEGLIGIBLE, NO_MOTION
from axode.problems.arguments import StateArgument, read_state
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.motions.time_optimum import TimeOptimum
    from axode.results.trajectory import Trajectory


NODES = 12  # of Gauss's rule, a stretch of a curve
STRETCHES = 512  # of a curve whose length is measured

# quintic from 0 to 1 with no speed and no acceleration at its ends; septic: no jerk either
QUINTIC = np.polynomial.Polynomial([0, 0, 0, 10, -15, 6])
SEPTIC = np.polynomial.Polynomial([0, 0, 0, 0, 35, -84, 70, -20])
Array = npt.NDArray[np.float64]
Start = Literal["smooth", "moving"]
LARGEST = 1e9  # [m] of a path; beyond it, and below its inverse, curvatures overflow


@dataclass(frozen=True)
class ArcLengthLaw:
    """Arc length over time."""

    length: float
    duration: float
    smooth: bool

    def at(self, times: Array) -> Array:
        """Length, speed and acceleration along the path: (3, T)."""
        u, T = np.asarray(times, dtype=float) / self.duration, self.duration
        if not self.smooth:
            return np.array([self.length * u, np.full_like(u, self.length / T), 0.0 * u])
        inside = (u >= 0) & (u <= 1)
        u = np.clip(u, 0.0, 1.0)
        return self.length * np.array(
            [QUINTIC(u), QUINTIC.deriv(1)(u) * inside / T, QUINTIC.deriv(2)(u) * inside / T**2]
        )


def law_of(length: float, duration: float | None, speed: float | None, start: str) -> ArcLengthLaw:
    positive("path: length", length)
    if (duration is None) == (speed is None):
        raise InvalidArgument("path: give either duration or speed")
    if start not in ("smooth", "moving"):
        raise UnknownName("a path", "start", start, ("smooth", "moving"))
    if duration is None:
        assert speed is not None
        positive("path: speed", speed)
        duration = length / float(speed)
    positive("path: duration", duration)
    return ArcLengthLaw(length, float(duration), start == "smooth")


def positive(what: str, value: float) -> None:
    if not (np.isfinite(float(value)) and value > 0):
        raise InvalidArgument(f"{what} must be finite and > 0, got {value}")


class JoinedLines:
    """Line, curve of seventh degree, line: y(x), by arc length."""

    def __init__(self, distance: float, length: float, lead: float) -> None:
        from scipy.interpolate import BPoly

        self.length, self.lead = length, lead
        slope = [SEPTIC, *(SEPTIC.deriv(k) for k in (1, 2, 3))]
        self._y = [distance / length**k * p for k, p in enumerate(slope)]
        x = np.linspace(0.0, length, STRETCHES + 1)
        lengths = np.concatenate([[0.0], np.cumsum(self._arc(x[:-1], x[1:]))])
        self._curved = float(lengths[-1])
        self.total = self._curved + 2 * lead
        y = self._derivatives(x)
        size = np.sqrt(1 + y[1] ** 2)
        # x by arc length, through places, slopes and curvatures: exact to rounding
        nodes = np.stack([x, 1 / size, -y[1] * y[2] / size**4], axis=-1)
        self._place = BPoly.from_derivatives(lengths, nodes)

    def _derivatives(self, x: Array) -> Array:
        """y and three derivatives by x, x counted from the curve's start."""
        u = np.clip(x / self.length, 0.0, 1.0)
        return np.array([p(u) for p in self._y])

    def _arc(self, a: Any, b: Any) -> Any:
        """Length of the curve between two places, by Gauss's rule."""
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        a, b = np.asarray(a)[..., np.newaxis], np.asarray(b)[..., np.newaxis]
        x = (a + b) / 2 + (b - a) / 2 * nodes
        slope = self._derivatives(x)[1]
        return ((b - a)[..., 0] / 2) * (np.sqrt(1 + slope**2) @ weights)

    def pose(self, s: Array, v: Array, a: Array) -> Array:
        """Pose and two derivatives for arc length, speed and acceleration along the path."""
        along = s - self.lead
        inside = (along >= 0) & (along <= self._curved)
        x = np.where(along < 0, along, along - self._curved + self.length)
        x = np.where(inside, self._place(np.clip(along, 0.0, self._curved)), x)
        y = self._derivatives(x)
        one, zero = np.ones_like(x), np.zeros_like(x)
        px, py = np.array([x + self.lead, one, zero, zero]), y
        size = np.hypot(px[1], py[1])
        # along the curve: dx/ds = 1/|r'|, and its rate
        rate = v / size
        second = a / size - v**2 * (px[1] * px[2] + py[1] * py[2]) / size**4
        angle = tangent(px, py)
        return np.array(
            [[p[0], p[1] * rate, p[2] * rate**2 + p[1] * second] for p in (px, py, angle)]
        )


def tangent(x: Array, y: Array) -> Array:
    """Heading of a curve and two derivatives, from three derivatives of x and y."""
    size = x[1] ** 2 + y[1] ** 2
    turn = x[1] * y[2] - y[1] * x[2]
    rate = turn / size
    second = (x[1] * y[3] - y[1] * x[3]) / size
    second -= 2 * turn * (x[1] * x[2] + y[1] * y[2]) / size**2
    return np.array([np.unwrap(np.atleast_1d(np.arctan2(y[1], x[1]))), rate, second])


def formula(name: str, given: Any, order: int = 2) -> Callable[[Array], Array]:
    """A formula of time and its derivatives: (order + 1, T)."""
    import casadi as ca

    from axode.mechanism.values.expressions import Expression, Time, parse_scalar
    from axode.symbolic.algebra.formula_symbols import symbolic_value

    t = ca.SX.sym("t")
    try:
        made = parse_scalar(given, {}) if isinstance(given, str) else given
        made = made(Time()) if callable(made) and not isinstance(made, Expression) else made
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"path, {name}: {error}") from None
    try:
        x = [ca.SX(symbolic_value(made, {"t": t}))]
        if not x[0].is_scalar():
            raise ValueError("a vector")
    except (TypeError, ValueError, KeyError, OverflowError, RuntimeError, NotImplementedError):
        raise InvalidArgument(
            f"path, {name}: expected a formula or function of t, got {shortened(given)}"
        ) from None
    for _ in range(order):
        x.append(ca.jacobian(x[-1], t))
    function = ca.Function("path", [t], [ca.densify(ca.vertcat(*x))])

    def values(times: Array) -> Array:
        return np.asarray(np.array(function(np.asarray(times, dtype=float)[np.newaxis]).full()))

    return values


@dataclass(frozen=True)
class Path:
    """A pose over time.

    Attributes:
        duration: [s]
        pose: Function of times (T,): x, y [m] and heading [rad], each with two derivatives:
            (3, 3, T), quantity first, order of the derivative second.
        name: What messages call it.
        steady: The same path without stops, by its length [m] instead of time; None if it is not
            known, or the path does not stop.
        optimum: What limits a time-optimal path where; None for others.
    """

    duration: float
    pose: Callable[[Array], Array]
    name: str = "path"
    steady: Path | None = None
    optimum: TimeOptimum | None = None

    def __call__(self, times: npt.ArrayLike) -> dict[str, Array]:
        """x, y, heading at some times, and their rates and accelerations by name."""
        found = self.pose(np.atleast_1d(np.asarray(times, dtype=float)))
        return named_rates(("x", "y", "heading"), found)

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

        steady = None if self.steady is None else self.steady.placed(x, y, heading)
        return Path(self.duration, pose, self.name, steady)

    def looking(self, heading: float | str | Callable[[Any], Any]) -> Path:
        """Return the same path with a heading of its own, for robots that can move sideways.

        Args:
            heading: [rad] A number, or a formula of t.
        """
        values = formula("heading", heading)

        def pose(times: Array) -> Array:
            return np.array([*self.pose(times)[:2], values(times)])

        constant = isinstance(heading, int | float)
        steady = self.steady.looking(heading) if self.steady is not None and constant else None
        return Path(self.duration, pose, self.name, steady)

    def __repr__(self) -> str:
        return f"Path('{self.name}', {self.duration:g} s)"


def _by_law(pose: Callable[[Array], Array], law: ArcLengthLaw, name: str) -> Path:
    """Make a path of poses for a length with two derivatives (3, T), and a law of time."""

    def steady(s: Array) -> Array:
        return pose(np.array([s, np.ones_like(s), np.zeros_like(s)]))

    without_stops = Path(law.length, steady, name) if law.smooth else None
    return Path(law.duration, lambda times: pose(law.at(times)), name, without_stops)


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

    def pose(along: Array) -> Array:
        zero = np.zeros_like(along)
        return np.array([way * along, zero, zero])

    return _by_law(pose, law, "straight line")


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

    def pose(along: Array) -> Array:
        s, v, a = along
        heading, rate, second = s / radius, v / radius, a / radius
        c, n = np.cos(heading), np.sin(heading)
        x = np.array([radius * n, v * c, a * c - v * rate * n])
        y = np.array([radius * (1 - c), v * n, a * n + v * rate * c])
        return np.array([x, y, [heading, rate, second]])

    return _by_law(pose, law, "circle")


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
    return _by_law(lambda along: curve.pose(*along), law, "parallel lines")


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
        still = size <= NEGLIGIBLE * max(float(size.max(initial=0.0)), NEGLIGIBLE)
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
    """Drive a path: rates of all wheels, and through `inverse_dynamics` torques and contact forces.

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
        others: Further signals by name, as for `inverse_dynamics`, for what the path does not
            determine (the joints of an arm); samples are 501, equally spaced over the duration.
        start: State at the start, as for `inverse_dynamics`, where the path does not determine it
            (a caster's swivel).
        weights, save_every, parameters: As for `inverse_dynamics`.

    Returns:
        The trajectory of `inverse_dynamics`, with the path's own `path.x`, `path.y`, `path.heading`
        and `path.residual`, what is left of its velocity [m/s or rad/s].

    Raises:
        InvalidArgument: if the wheels do not allow the path, with time and size of what is left,
            or if it jumps, with the time.
    """
    check_arguments(follow, locals())
    from axode.problems.inverse.inverse import solve_forces

    motion = path_motion(model, path, point, forward, base, others or {}, parameters)
    times = sample_times(path.duration, save_every)
    motion.steering.check_jumps(path.name)
    check_jumps(path)
    samples = motion.solve(times, _start(model, start))
    outside = np.zeros((times.size, len(model.inputs)))
    driven = solve_forces(model, samples, outside, motion.conditions, weights)
    units = {"path.x": "m", "path.y": "m", "path.heading": "rad", "path.residual": "m/s"}
    columns = dict(zip(units, (*path.pose(times)[:, 0], motion.left), strict=True))
    call_stage("warn_of_motor_limits", driven)
    return driven.with_columns(columns, units=units)


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
    motion = path_motion(model, path, point, forward, base, others or {}, parameters)
    times = sample_times(path.duration, save_every)
    return misfit_size(motion.residuals(times, _start(model, start)))


def _start(model: Model, start: Any) -> StateArgument:
    given = read_state(model, start, "start")
    given.require_one("start")
    return given


def check_jumps(path: Path) -> None:
    """Require a path along which wheels need not change their rates at once.

    Raises:
        InvalidArgument: with the time and the size of the jump.
    """
    times = np.linspace(0.0, path.duration, GRID_SAMPLES)
    pose = path.pose(times)
    speed, turn = np.hypot(pose[0, 1], pose[1, 1]).max(), np.abs(pose[2, 1]).max()
    moving = "velocity", speed, "m/s"
    kinds = (moving, moving, ("rate of turning (curvature times speed)", turn, "rad/s"))
    for (_, rates, seconds), (what, size, unit) in zip(pose, kinds, strict=True):
        k, jump = largest_jump(times, rates, seconds)
        if jump > ANGLE_JUMP * max(float(size), NO_MOTION):
            raise InvalidArgument(
                f"{path.name}: its {what} jumps at t = {times[k]:.4g} s by "
                f"{rates[k + 1] - rates[k]:.3g} {unit}, which takes torques without bound.\n  "
                f"{SMOOTHER}"
            )
