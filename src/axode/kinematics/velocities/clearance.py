"""Clearance of a motion from singularities: margins at its samples, and its closest approaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName
from axode.kinematics.velocities.feasible_velocities import Velocities
from axode.kinematics.velocities.singularities import KINDS, Margins, Singularities, margins_of
from axode.kinematics.velocities.velocity_jacobians import (
    OutputChoice,
    check_length,
    choose_output,
    read_point,
    robot_velocities,
)
from axode.model.conditions import Conditions
from axode.numerics.tolerances import SINGULAR_MARGIN

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.results.trajectory import Trajectory

Array = npt.NDArray[np.float64]
REFINEMENTS = 4  # of the interval between samples in which a margin is smallest
POINTS = 33  # at which each refinement looks


@dataclass(frozen=True)
class ClosestApproach:
    """Where a motion comes nearest to a kind of singularity.

    Attributes:
        kind: "serial", "parallel", "mobility" or "passive".
        margin: Smallest margin, between samples too.
        time: When [s].
        run: Number of the run in a batch.
        text: What becomes singular there, as text.
    """

    kind: str
    margin: float
    time: float
    run: tuple[int, ...]
    text: str


@dataclass(frozen=True)
class Clearance:
    """Margins of a motion from singularities.

    Attributes:
        time: Times of the samples [s].
        margins: Margins at every sample, (..., samples) per kind; NaN where a run had ended.
        closest: Closest approach to every kind that the robot can have.
    """

    time: Array
    margins: Margins
    closest: dict[str, ClosestApproach]

    def __str__(self) -> str:
        lines = [
            f"{one.kind}: {one.margin:.3g} at t = {one.time:.4g} s" for one in self.closest.values()
        ]
        return "\n  ".join(["Closest approach to singularities", *lines])

    __repr__ = __str__


def clearance(
    robot: Kinematics,
    run: Trajectory,
    *,
    components: Sequence[str] | None = None,
    at: Any = None,
    length: float | None = None,
) -> Clearance:
    """Find the margins along a motion; see `Kinematics.clearance`."""
    from axode.results.trajectory import Trajectory

    if not isinstance(run, Trajectory):
        raise InvalidArgument(
            f"run: expected a Trajectory, got {type(run).__name__}; the margins of states are in "
            "singularities(states).margins"
        )
    for name in robot.model.coordinates:
        if name not in run:
            raise UnknownName(
                f"the trajectory, which has to be one of '{robot.mechanism.name}',",
                "column",
                name,
                run.columns("coordinate"),
            )
    measure = _MarginsOfRun(robot, run, choose_output(components), read_point(at), length)
    margins = measure.margins(run)
    closest = {}
    for kind in KINDS:
        values = margins[kind]
        if np.isfinite(values).any():
            place = np.unravel_index(int(np.nanargmin(values)), values.shape)
            closest[kind] = measure.refine(kind, tuple(int(k) for k in place))
    return Clearance(np.array(run.time), margins, closest)


class _MarginsOfRun:
    """Margins of a robot at the samples of a run, and between them."""

    def __init__(
        self,
        robot: Kinematics,
        run: Trajectory,
        output: OutputChoice,
        point: Array | None,
        length: float | None,
    ) -> None:
        self.robot, self.run, self.output = robot, run, output
        self.point, self.length = point, check_length(length)

    def _velocities(self, run: Trajectory) -> tuple[Velocities, npt.NDArray[np.bool_]]:
        """Feasible velocities at the samples that there are, and which these are."""
        model = self.robot.model
        q = np.stack([run[name] for name in model.coordinates], axis=-1)
        there = np.asarray(np.isfinite(q).all(axis=-1))
        known = {n: v for n, v in run.parameters.items() if n in model.parameters}
        time = np.broadcast_to(run.time, q.shape[:-1])
        conditions = (
            Conditions.of(model, time, known).at(there) if known else Conditions(time[there])
        )
        found = robot_velocities(self.robot).at(
            model, q[there], conditions, self.point, self.length
        )
        return found, there

    def margins(self, run: Trajectory) -> Margins:
        """Margins at all samples of a run."""
        velocities, there = self._velocities(run)
        found = margins_of(velocities, self.output)
        filled = [np.full(there.shape, np.nan) for _ in KINDS]
        for values, kind in zip(filled, KINDS, strict=True):
            values[there] = found[kind]
        return Margins(*filled)

    def refine(self, kind: str, place: tuple[int, ...]) -> ClosestApproach:
        """Look between the samples around the smallest one."""
        run = self.run.run(place[:-1]) if place[:-1] else self.run
        last = int(np.max(run.lengths)) - 1
        low, high = (run.time[min(max(place[-1] + k, 0), last)] for k in (-1, 1))
        best, time = np.inf, float(run.time[place[-1]])
        for _ in range(REFINEMENTS):
            if low == high:
                break
            times = np.linspace(low, high, POINTS)
            values = self.margins(run.resample(times))[kind]
            k = int(np.nanargmin(values))
            best, time = float(values[k]), float(times[k])
            low, high = times[max(k - 1, 0)], times[min(k + 1, POINTS - 1)]
        margin, text = self._describe(run, kind, time)
        return ClosestApproach(kind, min(best, margin), time, place[:-1], text)

    def _describe(self, run: Trajectory, kind: str, time: float) -> tuple[float, str]:
        velocities, _ = self._velocities(run.resample([time]) if len(run) > 1 else run)
        velocities = velocities.select(0)
        margins = margins_of(velocities, self.output)
        found = Singularities(
            margins, velocities.length, SINGULAR_MARGIN, self.robot.output, self.output, velocities
        ).describe(kind)
        return found.margin, found.text
