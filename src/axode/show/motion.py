"""A recorded run as a motion: coordinates, poses and forces at any of its times."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, NotApplicable
from axode.mechanism.scene.scene import Array, Scene
from axode.mechanism.scene.shaping import scene_of
from axode.model.model_parts import facts_of
from axode.model.signals import CONTACT_FORCES

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory


def scene_with(model: Model, parameters: Mapping[str, float]) -> Scene:
    """Return a model's scene at other values of its parameters; one from a file has only one."""
    if not model.has_equations or not parameters or parameters == model.parameters:
        return model.scene
    return scene_of(model.equations.system.mechanism, parameters)


def usual_force(forces: Array) -> float:
    """Return the ninetieth percentile of the largest contact forces [N]; zero if unknown.

    Args:
        forces: Forces on the contacts, NaN where unknown [N]: (samples, contacts, 3).
    """
    if not forces.size:
        return 0.0
    return float(np.percentile(np.nan_to_num(np.abs(forces)).max(axis=(1, 2)), 90))


class RunPoses:
    """One run and the model that made it.

    Coordinates are interpolated linearly between samples.
    """

    def __init__(self, run: Trajectory, model: Model | None = None) -> None:
        model = run.model if model is None else model
        if model is None:
            raise NotApplicable(
                "a trajectory from a file does not know the model that made it, and only that "
                "knows where the bodies are.\n  Remedy: pass it as model=..., as in view(model=...)"
            )
        missing = [name for name in model.coordinates if name not in run]
        if missing:
            raise InvalidArgument(
                f"the trajectory{f' of {run.name!r}' if run.name else ''} has no column "
                f"{', '.join(missing[:5])}, which model '{model.name}' needs to place its bodies"
            )
        self.run, self.model = run, model
        order = 1 if run.time[-1] >= run.time[0] else -1
        self.time = run.time[::order]
        self.q = np.stack([run[name] for name in model.coordinates], axis=-1)[::order]
        self._order = order
        self._quaternions = [list(four) for four in facts_of(model).quaternions]
        self._parameters = run.parameters

    def coordinates(self, t: npt.ArrayLike) -> Array:
        """All coordinates at a time, or at many [s]: (..., coordinates)."""
        times = np.asarray(t, float)
        if len(self.time) == 1:
            return np.broadcast_to(self.q[0], (*times.shape, self.q.shape[1])).copy()
        after = np.clip(np.searchsorted(self.time, times), 1, len(self.time) - 1)
        t0, t1 = self.time[after - 1], self.time[after]
        share = np.clip((times - t0) / (t1 - t0), 0.0, 1.0)
        first, second = self.q[after - 1], self.q[after].copy()
        for four in self._quaternions:  # q and -q are one rotation: the shorter way between
            along = np.sum(first[..., four] * second[..., four], axis=-1, keepdims=True)
            second[..., four] *= np.copysign(1.0, along)
        q: Array = first + share[..., None] * (second - first)
        for four in self._quaternions:
            q[..., four] /= np.linalg.norm(q[..., four], axis=-1, keepdims=True)
        return q

    def poses(self, t: npt.ArrayLike) -> Array:
        """Poses of all bodies at a time, or at many [s]: (..., bodies, 4, 4)."""
        return self.model.poses(np.ascontiguousarray(self.coordinates(t)), **self.options(t))

    def all_poses(self, count: int) -> tuple[Array, Array]:
        """Times, about `count` of them over the whole run, and the poses then."""
        stride = max(1, len(self.time) // count)
        chosen = np.unique(np.append(np.arange(0, len(self.time), stride), len(self.time) - 1))
        times, q = self.time[chosen], np.ascontiguousarray(self.q[chosen])
        return times, self.model.poses(q, **self.options(times))

    @cached_property
    def contact_forces(self) -> Array:
        """Longitudinal, lateral and normal force on each contact [N]: (samples, contacts, 3).

        NaN where statics does not determine them, or the run has no such column.
        """
        touches = self.model.scene.touches  # wheels with friction too
        names = [f"{touch.name}.{part}" for touch in touches for part in CONTACT_FORCES]
        found = np.full((len(self.time), len(names)), np.nan)
        for k, name in enumerate(names):
            if name in self.run:
                found[:, k] = self.run[name][:: self._order]
        return found.reshape(len(self.time), -1, 3)

    def forces(self, t: npt.ArrayLike) -> Array:
        """Forces on the contacts at a time, or at many, NaN where unknown [N].

        Longitudinal, lateral and normal: (..., contacts, 3).
        """
        times = np.asarray(t, float)
        after = np.clip(np.searchsorted(self.time, times), 1, max(len(self.time) - 1, 1))
        before = self.time[after - 1]
        last = self.time[np.minimum(after, len(self.time) - 1)]
        row = np.where(times - before <= last - times, after - 1, after)
        row = np.minimum(row, len(self.time) - 1)
        return self.contact_forces[row]

    def options(self, t: Any) -> dict[str, Any]:
        """Time and parameters, as the model's functions take them."""
        known: dict[str, Any] = {"t": t}
        if self._parameters and not facts_of(self.model).fixed:
            known["parameters"] = self._parameters
        return known
