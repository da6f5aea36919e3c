"""A model along paths: speeds, accelerations and efforts by a parameter, and limits of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable, UnknownName, shortened
from axode.model.conditions import Conditions
from axode.model.force_deficit import find_deficit, force_size
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.signals import SPEED_KINDS
from axode.motions.waypoints import raise_faults
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.arguments import StateArgument
from axode.problems.inverse.motion_rows import full_names, rows_by_name
from axode.problems.inverse.motions import DesiredMotion

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
    bodies: Mapping[str, tuple[float, float]]
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
    acceleration = _by_name(
        model,
        "acceleration",
        _as_mapping("acceleration", given["acceleration"], driven_speeds(model), faults),
        faults,
    )
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
        {n: _pair(f"speed, '{n}'", x, faults) for n, x in pairs.items()},
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
    try:
        limit = float(given)
    except (TypeError, ValueError, OverflowError):
        limit = np.nan
    if not limit > 0:
        faults.append(f"{label}: expected a number > 0, got {shortened(given)}")
        return np.inf
    return limit


def _pair(label: str, given: Any, faults: list[str]) -> tuple[float, float]:
    if not isinstance(given, Sequence | np.ndarray) or len(given) != 2:
        faults.append(f"{label}: expected two numbers > 0, for position and rotation")
        return np.inf, np.inf
    return _positive(label, given[0], faults), _positive(label, given[1], faults)
