"""A run as logs need it: ascending times, poses and velocities of all bodies, contact forces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from axode.errors import InvalidArgument
from axode.mechanism.scene.scene import touch_axes, touch_points
from axode.mechanism.topology import speed_meanings
from axode.mechanism.values.expressions import evaluate
from axode.model.model_parts import facts_of, model_on_cpu
from axode.model.signals import CONTACT_FORCES
from axode.names import as_names
from axode.numerics.tolerances import SAME_TIME
from axode.results.interpolation import resample_picture
from axode.show.motion import RunPoses, scene_with

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
MOST_SAMPLES = 10**8
# columns that are no motion and no force
OTHER_KINDS = ("input", "energy", "residual", "measure", "power")


class LoggedRun:
    """One run at the samples of a log.

    Args:
        run: The run.
        model: What made it, for one from a file.
        rate: Samples per second; those of the run unless given.

    Attributes:
        time: Times of the samples [s], ascending.
        poses: Poses of all bodies: (samples, bodies, 4, 4).
        scene: Return what pictures of the model show.

    Raises:
        NotApplicable: if nothing knows the model.
        InvalidArgument: for a batch of runs, a rate that is not positive, or a missing column.
    """

    def __init__(self, run: Trajectory, model: Model | None, rate: float | None) -> None:
        if run.batch:
            raise InvalidArgument(
                f"a log holds one run, and the trajectory has {run.count}.\n"
                "  Remedy: choose one with run.run(0), or write a file for each"
            )
        run = run if rate is None else resample_picture(run, _times(run, rate))
        moving = RunPoses(run, model)
        self._run, self.model = run, model_on_cpu(moving.model)
        self._order = 1 if run.time[-1] >= run.time[0] else -1
        self._q = np.ascontiguousarray(moving.q)
        self._options = moving.options(moving.time)
        self.time: Array = moving.time
        self.poses: Array = self.model.poses(self._q, **self._options)
        self.scene = scene_with(self.model, run.parameters)

    @property
    def parameters(self) -> dict[str, float]:
        """Values of all parameters."""
        return self.model.parameters | self._run.parameters

    def column(self, name: str) -> Array:
        """Column of a name: (samples,)."""
        return self._run[name][:: self._order]

    def unit(self, name: str) -> str:
        """Unit of a column."""
        return self._run.unit(name)

    def signals(self, asked: Sequence[str] | None, *, forces: bool) -> tuple[str, ...]:
        """Full names of the columns that are logged as numbers.

        Args:
            asked: Their names; what is neither motion nor contact force unless given.
            forces: Whether forces of constraints other than contacts are among them.
        """
        run = self._run
        if asked is not None:
            return tuple(dict.fromkeys(run.column_names.resolve(name) for name in as_names(asked)))
        contacts = {name for names in self._contact_columns for name in names}
        kinds = (*OTHER_KINDS, "force") if forces else OTHER_KINDS
        return tuple(n for n in run.names if run.kinds[n] in kinds and n not in contacts)

    # joints --------------------------------------------------------------------------------------

    @cached_property
    def joint_coordinates(self) -> tuple[str, ...]:
        """Coordinates of joints: without those of bases over the ground and without quaternions."""
        facts = facts_of(self.model)
        others = {facts.coordinates[k] for four in facts.quaternions for k in four}
        for _, *places in facts.bases:
            others |= set(places)
            if len(places) > 3:  # a quaternion: the height follows y
                others.add(facts.coordinates[facts.coordinates.index(places[1]) + 1])
        return tuple(name for name in facts.coordinates if name not in others)

    def joint_columns(self) -> tuple[Array, Array, Array]:
        """Positions, velocities and efforts of `joint_coordinates`: (samples, joints).

        An effort is that of the joint's motors behind their gears. A model from a file does not
        know the gears: no effort at all.
        """
        chosen = [self.model.coordinates.index(name) for name in self.joint_coordinates]
        rates = self.model.rates(self._q, self._nu, **self._options)
        if not self.model.has_equations:
            return self._q[:, chosen], rates[:, chosen], np.empty((len(self._q), 0))
        mechanism = self.model.equations.system.mechanism
        meanings = speed_meanings(mechanism)
        values = self.parameters | {"t": 0.0}
        effort = np.zeros((len(self._q), len(chosen)))
        for drive, name in zip(mechanism.drives, self.model.inputs, strict=False):
            for k, joint in enumerate(self.joint_coordinates):
                if meanings.get(joint) == meanings[drive.coordinate]:
                    effort[:, k] += float(evaluate(drive.motor.gear, values)) * self.column(name)
        return self._q[:, chosen], rates[:, chosen], effort

    @cached_property
    def _nu(self) -> Array:
        missing = [name for name in self.model.independent if name not in self._run]
        if missing:
            raise InvalidArgument(
                f"the trajectory has no column {', '.join(missing[:5])}, which model "
                f"'{self.model.name}' needs for the velocities of its bodies and joints"
            )
        columns = [self.column(name) for name in self.model.independent]
        return np.column_stack([np.empty((len(self.time), 0)), *columns])

    # bodies --------------------------------------------------------------------------------------

    @cached_property
    def positions(self) -> Array:
        """Origins of all bodies in the world [m]: (samples, bodies, 3)."""
        return np.ascontiguousarray(self.poses[..., :3, 3])

    @cached_property
    def quaternions(self) -> Array:
        """Orientations of all bodies, x, y, z, w: (samples, bodies, 4); none jumps in sign."""
        return quaternions(self.poses[..., :3, :3])

    def body_velocities(self, body: str) -> tuple[Array, Array]:
        """Velocity of a body's origin and its angular velocity, in its own axes: (samples, 3)."""
        k = self.model.bodies.index(body)
        twist = self.model.twists(self._q, self._nu, **self._options)[:, k]
        R = self.poses[:, k, :3, :3]
        angular, centre = twist[:, :3], R @ np.array(self.scene.centres[k])
        linear = twist[:, 3:] - np.cross(angular, centre)
        inward = np.swapaxes(R, -1, -2)
        return (
            (inward @ linear[..., np.newaxis])[..., 0],
            (inward @ angular[..., np.newaxis])[..., 0],
        )

    # contacts ------------------------------------------------------------------------------------

    @cached_property
    def contacts(self) -> dict[str, int]:
        """Contacts whose forces the run has, and their places among those of the scene."""
        return {
            touch.name: k
            for k, touch in enumerate(self.scene.touches)
            if all(f"{touch.name}.{part}" in self._run for part in CONTACT_FORCES)
        }

    @property
    def _contact_columns(self) -> list[tuple[str, ...]]:
        return [tuple(f"{name}.{part}" for part in CONTACT_FORCES) for name in self.contacts]

    @property
    def contact_forces(self) -> Array:
        """Longitudinal, lateral and normal force on each contact [N]: (samples, contacts, 3).

        NaN where statics does not determine them.
        """
        columns = [self.column(name) for names in self._contact_columns for name in names]
        stacked = np.column_stack([np.empty((len(self.time), 0)), *columns])
        return stacked.reshape(len(self.time), -1, 3)

    @cached_property
    def contact_points(self) -> Array:
        """Where the wheels touch their floors [m]: (samples, contacts, 3)."""
        return touch_points(self.scene, self.poses)[:, list(self.contacts.values())]

    @cached_property
    def contact_axes(self) -> Array:
        """Longitudinal, lateral and normal directions as columns: (samples, contacts, 3, 3).

        Axes of the world where a wheel lies flat and has no direction ahead.
        """
        chosen = touch_axes(self.scene, self.poses)[:, list(self.contacts.values())]
        axes = np.swapaxes(chosen, -1, -2)
        flat = np.linalg.norm(axes[..., 0], axis=-1) < 0.5
        return np.where(flat[..., np.newaxis, np.newaxis], np.eye(3), axes)


def quaternions(matrices: Array) -> Array:
    """Unit quaternions x, y, z, w of rotations over time; of the two signs, the nearer to the last.

    Args:
        matrices: Rotations: (samples, frames, 3, 3).
    """
    found = Rotation.from_matrix(matrices.reshape(-1, 3, 3)).as_quat()
    found = found.reshape(*matrices.shape[:2], 4)
    turned = np.sum(found[1:] * found[:-1], axis=-1) < 0
    signs = np.cumprod(np.where(turned, -1.0, 1.0), axis=0)
    found[1:] *= signs[..., np.newaxis]
    return found


def _times(run: Trajectory, rate: float) -> Array:
    """Times of a run at a rate [1/s], from its start."""
    span = abs(float(run.time[-1] - run.time[0]))
    if not 0 < rate * max(span, 1.0) < MOST_SAMPLES:
        raise InvalidArgument(
            f"rate: expected samples per second, a positive number that makes fewer than "
            f"{MOST_SAMPLES:.0e} samples of {span:g} s, got {rate:g}"
        )
    count = int(np.floor(span * rate * (1 + SAME_TIME))) + 1
    return run.time[0] + np.copysign(1.0, run.time[-1] - run.time[0]) * np.arange(count) / rate
