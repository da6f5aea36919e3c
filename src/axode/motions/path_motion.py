"""Paths as motions of vehicles: the pose of the base, and what is left of its velocity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.mechanism.values.expressions import numeric
from axode.mechanism.values.geometry import as_vector
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.motions.steering import Steering, steering_of
from axode.problems.arguments import require_model
from axode.problems.inverse.motion_rows import PositionRow, Rows, full_names, rows_by_name
from axode.problems.inverse.motions import MISFIT, DesiredMotion
from axode.problems.inverse.time_signals import TimeSignal, as_signal

if TYPE_CHECKING:
    from axode.motions.paths import Path

Array = npt.NDArray[np.float64]
SAMPLES = 500  # of further signals


def misfit_size(misfit: Array) -> Array:
    """What is left of a velocity in the plane, or of anything else where that is more."""
    plane = np.hypot(misfit[:, 0], misfit[:, 1])
    return np.maximum(plane, np.abs(misfit[:, 2:]).max(axis=-1))


class PathMotion(DesiredMotion):
    """A motion given by a path; keeps what is left of its velocity."""

    path: Path
    left: Array
    steering: Steering

    def check_misfit(self, misfit: Array, size: Array, times: Array, what: str) -> None:
        worst = misfit_size(misfit)
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


def path_motion(
    model: Model,
    path: Path,
    point: Any,
    forward: Any,
    base: str | None,
    others: Mapping[str, Any],
    parameters: Mapping[str, float] | None,
) -> PathMotion:
    """Describe a path as a motion of a model, with the angles of wheels that steer.

    Args:
        model: The vehicle.
        path: What the point follows.
        point, forward, base, others, parameters: As for `follow`.

    Raises:
        InvalidArgument: for anything else than a path.
    """
    import casadi as ca

    from axode.motions.paths import Path

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
        DesiredMotion(model, Rows(model, rows, more), signals, conditions), path.duration
    )
    rows += rows_by_name(model, steering.names).positions
    signals += steering.signals()
    motion = PathMotion(model, Rows(model, rows, more), signals, conditions)
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
