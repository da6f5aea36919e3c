"""Map of the margins from singularities over two coordinates or measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, shortened
from axode.kinematics.velocities.singularities import KINDS, Margins, margins_of
from axode.kinematics.velocities.velocity_jacobians import (
    check_length,
    choose_output,
    forward_map,
    read_point,
    robot_velocities,
)
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.signal_values import state_values
from axode.numerics.newton import CLOSED, find_roots, quick_step
from axode.problems.arguments import coordinate_units, number
from axode.problems.assemble.closure import ClosureSystem
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
MAX_POINTS = 4000  # along an axis
MAX_JUMP = 0.7  # [rad, or of the length] between neighbours: what is more is another branch
MAX_JUMP_FROM_HOME = 3.0  # the same for the first state
TRIES = 2  # neighbours from which a state is sought
MAX_STEPS = 25  # of Newton's method from a neighbour


@dataclass(frozen=True)
class SingularityMap:
    """Margins of a robot on a grid of two quantities.

    Attributes:
        robot: Name of the mechanism.
        names: What varies along x and y.
        units: Units of these.
        x, y: Values along the axes.
        margins: Margins of every kind, (y, x) each; NaN where the robot has no such state.
        side: Sign of the determinant of the map from driven to output speeds, (y, x): it changes
            across singularities of type 1 and 2. Zero where that map is not square.
    """

    robot: str
    names: tuple[str, str]
    units: tuple[str, str]
    x: Array
    y: Array
    margins: Margins
    side: Array

    def __repr__(self) -> str:
        size = f"{len(self.x)} x {len(self.y)}"
        return f"SingularityMap of '{self.robot}': {size} states over {' and '.join(self.names)}"

    def signed(self, kind: str) -> Array:
        """Margin of type 1 or 2 with a sign that changes where it vanishes.

        NaN where the other of the two is smaller, of its largest value, since the sign changes with
        that one too.
        """
        other = {"serial": "parallel", "parallel": "serial"}[kind]
        own, its = self.margins[kind], self.margins[other]
        belongs = own * np.nanmax(its) <= its * np.nanmax(own)
        return np.where(belongs, own * self.side, np.nan)

    def plot(
        self,
        kind: str = "parallel",
        *,
        size: str = "screen",
        save: str | PathLike[str] | None = None,
    ) -> Any:
        """Figure of a margin over the two quantities, with the curves on which it vanishes.

        Args:
            kind: "serial", "parallel", "mobility" or "passive".
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Returns:
            The `matplotlib.figure.Figure`.
        """
        if kind not in KINDS:
            raise InvalidArgument(f"kind: expected one of {', '.join(KINDS)}, got '{kind}'")
        return call_stage("plot_singularity_map", self, kind, size=size, save=save)


def map_singularities(
    robot: Kinematics,
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    *,
    points: int = 101,
    state: Mapping[str, float] | None = None,
    components: Sequence[str] | None = None,
    at: Any = None,
    length: float | None = None,
) -> SingularityMap:
    """Evaluate the margins on a grid; see `Kinematics.singularity_map`."""
    output = choose_output(components)
    if not 2 <= points <= MAX_POINTS:
        raise InvalidArgument(f"points: expected 2 to {MAX_POINTS} along an axis, got {points}")
    (x_name, x_low, x_high), (y_name, y_low, y_high) = (
        _read_axis(name, given) for name, given in (("x", x), ("y", y))
    )
    signals = [robot.model.signals.resolve(n, "coordinate", "measure") for n in (x_name, y_name)]
    xs, ys = np.linspace(x_low, x_high, points), np.linspace(y_low, y_high, points)
    wanted = {signals[0].name: np.tile(xs, (points, 1))}
    wanted[signals[1].name] = np.tile(ys[:, np.newaxis], (1, points))
    q = GridStates(robot.model, wanted, state or {}).spread()
    robots = robot_velocities(robot)
    velocities = robots.at(robot.model, q, Conditions(), read_point(at), check_length(length))
    J = forward_map(velocities, output.matrix)
    side = np.zeros(velocities.batch)
    if J.shape[-1] == J.shape[-2]:
        side = np.sign(np.linalg.det(np.nan_to_num(J)))
    return SingularityMap(
        robot.mechanism.name,
        (signals[0].name, signals[1].name),
        (signals[0].unit, signals[1].unit),
        xs,
        ys,
        margins_of(velocities, output),
        side,
    )


class GridStates:
    """States on a grid, each found from a neighbour, so that all belong to one assembly mode.

    Args:
        model: What to assemble.
        wanted: Values of two coordinates or measures by full name, (rows, columns) each.
        state: Other coordinates and measures by name.
    """

    def __init__(self, model: Model, wanted: Mapping[str, Array], state: Mapping[str, Any]) -> None:
        self.model, self.shape = model, next(iter(wanted.values())).shape
        names = model.signals.names("coordinate", "measure").by_full_name(state)
        fixed = {name: number(f"state '{name}'", value) for name, value in names.items()}
        whole = {name: np.full(self.shape, value) for name, value in fixed.items()}
        self.wanted = {name: values.reshape(-1) for name, values in {**whole, **wanted}.items()}
        self._axes = tuple(wanted)

    def spread(self) -> Array:
        """Find the states, (rows, columns, coordinates); NaN where there are none."""
        count = self.shape[0] * self.shape[1]
        q = np.full((count, len(self.model.coordinates)), np.nan)
        tried = np.zeros(count, dtype=int)
        places = np.arange(count).reshape(self.shape)
        seeds = self._seeds()
        q[seeds] = self._close(seeds, np.tile(self.model.home, (len(seeds), 1)), MAX_JUMP_FROM_HOME)
        while True:
            known = np.isfinite(q[:, 0]).reshape(self.shape)
            near = np.full(self.shape, -1)
            for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
                here, there = _shifted(axis, step)
                better = known[there] & (near[here] < 0)
                near[here][better] = places[there][better]
            front = np.flatnonzero((near.reshape(-1) >= 0) & ~known.reshape(-1) & (tried < TRIES))
            if not front.size:
                return q.reshape(*self.shape, -1)
            tried[front] += 1
            q[front] = self._close(front, q[near.reshape(-1)[front]], MAX_JUMP)

    def _seeds(self) -> npt.NDArray[np.intp]:
        """Choose the place on the grid that is nearest to home."""
        home = state_values(self.model, self.model.home, np.zeros(len(self.model.independent)))
        distance = np.zeros(len(self.wanted[self._axes[0]]))
        for name in self._axes:
            values = self.wanted[name]
            distance += ((values - float(home[name])) / np.ptp(values)) ** 2
        return np.array([int(np.argmin(distance))])

    def _close(self, places: npt.NDArray[np.intp], guess: Array, most: float) -> Array:
        """Close states near guesses; NaN where that fails or leads far away."""
        model = self.model
        measured = {n: v[places] for n, v in self.wanted.items() if n not in model.coordinates}
        held = [model.coordinates.index(n) for n in self.wanted if n in model.coordinates]
        start = guess.copy()
        for k in held:
            start[:, k] = self.wanted[model.coordinates[k]][places]
        closure = ClosureSystem(model, measured, held, Conditions())
        q, error = find_roots(
            closure.residual,
            closure.jacobian,
            start,
            rows=closure.rows,
            columns=np.where(closure.fixed, 0.0, closure.columns),
            step=quick_step,
            max_steps=MAX_STEPS,
        )
        moved = np.abs((q - guess) / coordinate_units(model)).max(axis=-1)
        return np.where(((error <= CLOSED) & (moved <= most))[:, np.newaxis], q, np.nan)


def _shifted(axis: int, step: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Parts of a grid that lie beside each other."""
    first, last = slice(1, None), slice(None, -1)
    here, there = (first, last) if step > 0 else (last, first)
    whole = slice(None)
    return ((here, whole), (there, whole)) if axis == 0 else ((whole, here), (whole, there))


def _read_axis(argument: str, given: Any) -> tuple[str, float, float]:
    """Read a name and two numbers.

    Raises:
        InvalidArgument: for anything else.
    """
    if not (isinstance(given, tuple | list) and len(given) == 3 and isinstance(given[0], str)):
        raise InvalidArgument(
            f"{argument}: expected a name and two numbers, such as ('yaw', -1.0, 1.0), got "
            f"{shortened(given)}"
        )
    low, high = (number(f"{argument} '{given[0]}'", value) for value in given[1:])
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidArgument(f"{argument} '{given[0]}': expected two numbers, the smaller first")
    return given[0], low, high
