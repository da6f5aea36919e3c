"""A model along paths: speeds, accelerations and efforts by a parameter and its rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable
from axode.model.conditions import Conditions
from axode.model.force_deficit import find_deficit, force_size
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.problems.arguments import StateArgument
from axode.problems.inverse.motion_rows import rows_by_name
from axode.problems.inverse.motions import DesiredMotion

Array = npt.NDArray[np.float64]
STANDING = 1e-9  # of the largest speed along a path: slower motion is not resolved by its parameter


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
        return np.asarray(size <= STANDING * size.max(axis=-1, keepdims=True))
