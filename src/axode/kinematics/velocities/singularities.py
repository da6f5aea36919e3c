r"""Singularities of a robot: margins that vanish there, and the motions that appear or are lost.

Feasible velocities of output and driven joints are :math:`(t, \dot\theta) = Q c` with orthonormal
columns, scaled by a length. The margins are smallest singular values:

- serial (type 1, B singular): of the output's rows of Q, zero where the output can stand while
  driven joints move, so that it cannot move in some direction;
- parallel (type 2, A singular): of the driven rows of Q, zero where the output moves though all
  driven joints are locked;
- mobility: of the legs' rows, zero where the legs' wrenches become dependent and a freedom is
  gained, a constraint singularity;
- passive: of the columns of passive joints, zero where some of these move by themselves.

C. Gosselin, J. Angeles, "Singularity analysis of closed-loop kinematic chains", IEEE Trans.
Robotics and Automation 6, 1990, have the first two; D. Zlatanov, R. G. Fenton, B. Benhabib, "A
unifying framework for classification and interpretation of mechanism singularities", ASME J.
Mechanical Design 117, 1995, the others.

`map_singularities` evaluates the margins over two coordinates or measures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from axode.errors import InvalidArgument, UnknownName, shortened
from axode.kinematics.velocities.feasible_velocities import TWIST, Velocities, speed_scales
from axode.kinematics.velocities.velocity_jacobians import (
    UNITS,
    OutputChoice,
    check_length,
    forward_map,
    read_point,
    robot_velocities,
)
from axode.kinematics.workspaces.pose_arguments import by_signals, signal_names
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.state import state_values
from axode.numerics.newton import find_roots, quick_step
from axode.numerics.rank import singular_values, singular_vectors
from axode.numerics.tolerances import CLOSED, HALF_DIGITS, NO_MOTION, SEVEN_DIGITS
from axode.problems.arguments import coordinate_units, number
from axode.problems.assemble.closure import ClosureSystem
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics
    from axode.results.trajectory import Trajectory

NAMED_WEIGHT = 0.2  # of the largest weight: smaller ones are not named
Array = npt.NDArray[np.float64]
KINDS = ("serial", "parallel", "mobility", "passive")
MAX_POINTS = 4000  # along an axis
MAX_JUMP = 0.7  # [rad, or of the length] between neighbours: what is more is another branch
MAX_JUMP_FROM_HOME = 3.0  # the same for the first state
TRIES = 2  # neighbours from which a state is sought
MAX_STEPS = 25  # of Newton's method from a neighbour


@dataclass(frozen=True)
class InstantaneousScrew:
    """An instantaneous motion of a body: a turn about an axis and a move along it.

    Attributes:
        direction: Unit vector along the axis, in world axes.
        point: Point of the axis nearest to the body's reference point [m]; NaN for a translation.
        pitch: Move along the axis per turn [m/rad]; infinite for a translation.
        twist: Angular velocity and velocity of the reference point, in world axes, scaled so that
            the screw turns, or moves by the robot's length, at one unit per second.
    """

    direction: Array
    point: Array
    pitch: float
    twist: Array

    @classmethod
    def of(cls, twist: Array, origin: Array, length: float) -> InstantaneousScrew:
        """Find the screw of a twist at a reference point.

        Args:
            twist: Angular velocity and velocity of the reference point.
            origin: The reference point [m].
            length: Length by which turning and moving are compared [m].
        """
        w, v = twist[:3], twist[3:]
        turning, moving = float(np.linalg.norm(w)), float(np.linalg.norm(v)) / length
        if turning <= SEVEN_DIGITS * moving:
            direction = v / np.linalg.norm(v) if moving else np.zeros(3)
            scale = 1.0 / moving if moving else 1.0
            return cls(_positive(direction), np.full(3, np.nan), np.inf, twist * scale)
        direction, point = w / turning, origin + np.cross(w, v) / turning**2
        return cls(_positive(direction), point, float(w @ v) / turning**2, twist / turning)

    def describe(self, body: str, length: float) -> str:
        """Describe the motion of a body along the screw."""
        along = _vector(self.direction)
        if np.isinf(self.pitch):
            return f"'{body}' moves along {along}"
        text = f"'{body}' turns about the line through {_vector(self.point)} along {along}"
        if abs(self.pitch) <= SEVEN_DIGITS * length:
            return text
        return f"{text} and moves {abs(self.pitch):.3g} m along it per radian"


def name_largest(names: tuple[str, ...], weights: Array) -> str:
    """Name the largest of several speeds with their ratios."""
    scaled = weights / weights[np.argmax(np.abs(weights))]
    picked = [(n, w) for n, w in zip(names, scaled.tolist(), strict=True) if abs(w) > NAMED_WEIGHT]
    if len(picked) == 1:
        return picked[0][0]
    return ", ".join(f"{name} ({w:+.2g})" for name, w in picked)


def _positive(direction: Array) -> Array:
    """Choose the sense in which the largest component is positive."""
    largest = direction[np.argmax(np.abs(direction))]
    return np.asarray(-direction if largest < 0 else direction)


def _vector(x: Array) -> str:
    cleaned = np.where(np.abs(x) < SEVEN_DIGITS, 0.0, x)
    return f"({', '.join(f'{value:.3g}' for value in cleaned)})"


@dataclass(frozen=True)
class Margins:
    """Distances from singularities at a state or a batch of states, one array per kind.

    Smallest singular values without unit, at most one for the first two; infinite for what a
    robot cannot have, NaN where no state was found.

    Attributes:
        serial, parallel, mobility, passive: See the names of kinds in `Singularities`.
    """

    serial: Array
    parallel: Array
    mobility: Array
    passive: Array

    def __getitem__(self, kind: str) -> Array:
        """Margin of a kind."""
        return np.asarray(vars(self)[kind])

    @property
    def smallest(self) -> Array:
        """Smallest margin of all kinds."""
        return np.asarray(np.min([self[kind] for kind in KINDS], axis=0))


def margins_of(velocities: Velocities, output: OutputChoice) -> Margins:
    """Evaluate the margins of feasible velocities."""
    Q, passive, m = velocities.basis(), velocities.passive_margin, len(output.names)
    moves = velocities.output_rank(output.matrix)
    if not output.is_whole and Q.shape[-1]:  # what else the output does is passive
        counts = np.concatenate([output.matrix @ Q[..., :TWIST, :], Q[..., TWIST:, :]], axis=-2)
        Q, s, _ = singular_vectors(counts, full=False)
        if Q.shape[-1] == velocities.freedoms:
            passive = np.minimum(passive, s[..., -1])
    found = (
        _smallest(Q[..., :m, :], moves),
        _smallest(Q[..., m:, :], Q.shape[-1]),
        velocities.mobility_margin,
        passive,
    )
    return Margins(*map(velocities.fill, found))


def _smallest(part: Array, count: int) -> Array:
    """Last of the singular values that count; infinite if there are none."""
    count = min(count, *part.shape[-2:])
    if not count:
        return np.full(part.shape[:-2], np.inf)
    return np.asarray(singular_values(part)[..., count - 1])


@dataclass(frozen=True)
class Singularity:
    """A singularity at a state, and what is singular about it.

    Attributes:
        kind: "serial" (type 1), "parallel" (type 2), "mobility" (a constraint singularity if the
            output gains the freedom) or "passive".
        margin: Smallest singular value that belongs to it.
        motion: Screw of the output in the motion that is free or, of a serial singularity, in the
            velocity that the output cannot have; None where the output stands.
        driven: Driven speeds in that motion by name.
        text: The same as text.
    """

    kind: str
    margin: float
    motion: InstantaneousScrew | None
    driven: dict[str, float]
    text: str


@dataclass(frozen=True)
class Singularities:
    """What is singular, or nearly so, at a state or a batch of states.

    Attributes:
        margins: Distance from each kind of singularity.
        length: Length by which turning and moving are compared [m].
        tolerance: Margin below which a state is called singular.
    """

    margins: Margins
    length: float
    tolerance: float
    _output: str
    _choice: OutputChoice
    _velocities: Velocities

    @property
    def is_singular(self) -> Any:
        """Return whether a state is singular in any way."""
        return self.margins.smallest < self.tolerance

    @property
    def type(self) -> Any:
        """Type after Gosselin and Angeles: 1, 2, or 3 for both; 0 for none of these."""
        serial, parallel = (self.margins[kind] < self.tolerance for kind in KINDS[:2])
        return 1 * serial + 2 * parallel

    @cached_property
    def found(self) -> tuple[Singularity, ...]:
        """Singularities of the state, those of a batch at `self[k].found`."""
        if self._velocities.batch:
            raise InvalidArgument(
                f"found: these are {self._velocities.batch} states; choose one with [k]"
            )
        return tuple(self.describe(kind) for kind in KINDS if self.margins[kind] < self.tolerance)

    def __getitem__(self, k: Any) -> Singularities:
        """Singularities of some states of a batch."""
        margins = Margins(*(np.asarray(self.margins[kind][k]) for kind in KINDS))
        return replace(self, margins=margins, _velocities=self._velocities.select(k))

    def describe(self, kind: str) -> Singularity:
        """Describe the motion that belongs to a kind, at a state that may only be near it."""
        describers = (self._serial, self._parallel, self._mobility, self._passive)
        if kind not in KINDS:
            raise InvalidArgument(f"kind: expected one of {', '.join(KINDS)}, got '{kind}'")
        margin = float(self.margins[kind])
        if np.isinf(margin):
            text = f"'{self._output}' has no singularity of this kind"
            return Singularity(kind, margin, None, {}, text)
        return Singularity(kind, margin, *describers[KINDS.index(kind)]())

    def __str__(self) -> str:
        if self._velocities.batch:
            count = int(np.sum(self.is_singular))
            return f"Singularities: {count} of {np.size(self.is_singular)} states are singular"
        head = ", ".join(f"{kind} {float(self.margins[kind]):.3g}" for kind in KINDS)
        lines = [f"{one.kind} singularity: {one.text}" for one in self.found]
        return "\n  ".join([f"Margins: {head}", *(lines or ["regular"])])

    __repr__ = __str__

    # motions -----------------------------------------------------------------------------------

    def _motion(self, velocity: Array) -> tuple[InstantaneousScrew | None, dict[str, float]]:
        """InstantaneousScrew of the output and driven speeds of a scaled feasible velocity."""
        rows, length = self._velocities.rows, self._velocities.length
        twist = velocity[:TWIST] * speed_scales(UNITS, length)
        driven = velocity[TWIST:] * speed_scales(rows.units, length)
        size = float(np.abs(velocity).max())
        screw = None
        if np.abs(velocity[:TWIST]).max() > NO_MOTION * size:
            screw = InstantaneousScrew.of(twist, self._velocities.origin, length)
        return screw, dict(zip(rows.driven, driven.tolist(), strict=True))

    def _serial(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        Q = self._velocities.basis()
        U, _, Vt = singular_vectors(self._choice.matrix @ Q[:TWIST])
        least = self._velocities.output_rank(self._choice.matrix) - 1
        moving = Q @ Vt[least]
        _, driven = self._motion(moving)
        impossible = np.zeros(len(moving))
        impossible[:TWIST] = self._choice.matrix.T @ U[:, least]
        blocked, _ = self._motion(impossible)
        rows = self._velocities.rows
        shares = np.array(list(driven.values())) / speed_scales(rows.units, self.length)
        what = "chosen velocities" if not self._choice.is_whole else "motion"
        text = f"it can move with the {what} of '{self._output}' at rest"
        if np.abs(shares).max(initial=0.0) > NO_MOTION:
            text = f"{name_largest(rows.driven, shares)} can move while '{self._output}' stands"
        if blocked is not None:
            lost = blocked.describe(self._output, self.length)
            text += f"; no motor gives the velocity in which {lost}"
        return blocked, driven, text

    def _parallel(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        Q = self._velocities.basis()
        Vt = singular_vectors(Q[TWIST:])[2]
        screw, driven = self._motion(Q @ Vt[min(Q.shape[0] - TWIST, Q.shape[1]) - 1])
        return screw, driven, f"with all driven joints locked, {self._moves(screw)}"

    def _mobility(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        leg = min(self._velocities.legs, key=lambda leg: float(leg.row_margin))
        if float(leg.row_margin) <= float(self.margins.mobility):
            speeds = self._velocities.rows.speeds
            own = ", ".join(speeds[k] for k in (*leg.part.driven, *leg.part.passive))
            return None, {}, f"the rows of the leg with {own} depend on each other"
        Q = self._velocities.basis(1)
        Vt = singular_vectors(Q[TWIST:])[2]
        screw, driven = self._motion(Q @ Vt[-1])
        gained = "the legs' wrenches depend on each other, so that also"
        return screw, driven, f"{gained} {self._moves(screw)}"

    def _passive(self) -> tuple[InstantaneousScrew | None, dict[str, float], str]:
        leg = min(self._velocities.legs, key=lambda leg: float(leg.passive_margin))
        if float(leg.passive_margin) > float(self.margins.passive):
            Q = self._velocities.basis()
            both = np.concatenate([self._choice.matrix @ Q[:TWIST], Q[TWIST:]])
            screw, driven = self._motion(Q @ singular_vectors(both)[2][-1])
            chosen = f"with {', '.join(self._choice.names)} and all driven joints at rest"
            return screw, driven, f"{chosen}, {self._moves(screw)}"
        names = tuple(self._velocities.rows.speeds[k] for k in leg.part.passive)
        return None, {}, f"passive joints can move alone: {name_largest(names, leg.passive_motion)}"

    def _moves(self, screw: InstantaneousScrew | None) -> str:
        return screw.describe(self._output, self.length) if screw else "passive joints move"


def singularities_of(
    velocities: Velocities, output: OutputChoice, body: str, tolerance: float = HALF_DIGITS
) -> Singularities:
    """Find what is singular about feasible velocities, given the name of the output body."""
    margins = margins_of(velocities, output)
    return Singularities(margins, velocities.length, tolerance, body, output, velocities)


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
    axes: Sequence[tuple[str, Any]],
    points: int,
    state: Mapping[str, float],
    output: OutputChoice,
    reference: tuple[Any, float | None],
) -> SingularityMap:
    """Evaluate the margins on a grid.

    Args:
        robot: The robot.
        axes: For x and y, what messages call the argument, and what varies from where to where.
        points: Number of values along each axis.
        state: Other coordinates and measures by name.
        output: What of the output's motion counts.
        reference: Reference point of the output [m], and the length that lengths are measured in.
    """
    if not 2 <= points <= MAX_POINTS:
        raise InvalidArgument(f"points: expected 2 to {MAX_POINTS} along an axis, got {points}")
    (x_name, x_range), (y_name, y_range) = (read_axis(*axis) for axis in axes)
    meant = signal_names(robot, (x_name, y_name))
    signals = [robot.model.signals.resolve(n, "coordinate", "measure") for n in meant]
    names = signals[0].name, signals[1].name
    xs, ys = np.linspace(*x_range, points), np.linspace(*y_range, points)
    wanted = dict(zip(names, np.meshgrid(xs, ys), strict=True))
    q = GridStates(robot.model, wanted, by_signals(robot, state)).spread()
    point, length = read_point(reference[0]), check_length(reference[1])
    velocities = robot_velocities(robot).at(robot.model, q, Conditions(), point, length)
    J, side = forward_map(velocities, output.matrix), np.zeros(velocities.batch)
    if J.shape[-1] == J.shape[-2]:
        side = np.sign(np.linalg.det(np.nan_to_num(J)))
    units, margins = (signals[0].unit, signals[1].unit), margins_of(velocities, output)
    return SingularityMap(robot.mechanism.name, names, units, xs, ys, margins, side)


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
        seed = np.array([self._seed()])
        q[seed] = self._close(seed, self.model.home[np.newaxis], MAX_JUMP_FROM_HOME)
        while True:
            known = np.isfinite(q[:, 0]).reshape(self.shape)
            near = np.full(self.shape, -1)
            for axis, step in ((0, 1), (0, -1), (1, 1), (1, -1)):
                beside = [slice(1, None), slice(None, -1)][::step]
                here, there = ((slice(None),) * axis + (part,) for part in beside)
                better = known[there] & (near[here] < 0)
                near[here][better] = places[there][better]
            front = np.flatnonzero((near.reshape(-1) >= 0) & ~known.reshape(-1) & (tried < TRIES))
            if not front.size:
                return q.reshape(*self.shape, -1)
            tried[front] += 1
            q[front] = self._close(front, q[near.reshape(-1)[front]], MAX_JUMP)

    def _seed(self) -> int:
        """Choose the place on the grid that is nearest to home."""
        home = state_values(self.model, self.model.home, np.zeros(len(self.model.independent)))
        axes = [(self.wanted[name], float(home[name])) for name in self._axes]
        return int(np.argmin(sum(((x - at) / np.ptp(x)) ** 2 for x, at in axes)))

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
        followed = ~closure.fixed  # those that are asked for jump with the grid
        moved = np.abs((q - guess) / coordinate_units(model))[:, followed].max(axis=-1, initial=0.0)
        return np.where(((error <= CLOSED) & (moved <= most))[:, np.newaxis], q, np.nan)


def read_axis(argument: str, given: Any) -> tuple[str, tuple[float, float]]:
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
    return given[0], (low, high)


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
        found = self.closest.values()
        lines = [f"{one.kind}: {one.margin:.3g} at t = {one.time:.4g} s" for one in found]
        return "\n  ".join(["Closest approach to singularities", *lines])

    __repr__ = __str__


def find_clearance(
    robot: Kinematics, run: Trajectory, output: OutputChoice, point: Any, length: float | None
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
            who = f"the trajectory, which has to be one of '{robot.mechanism.name}',"
            raise UnknownName(who, "column", name, run.columns("coordinate"))
    measure = _MarginsOfRun(robot, run, output, read_point(point), check_length(length))
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
        self.point, self.length = point, length

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
        filled = {kind: np.full(there.shape, np.nan) for kind in KINDS}
        for kind, values in filled.items():
            values[there] = found[kind]
        return Margins(**filled)

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
        velocities, _ = self._velocities(run.resample([time]) if len(run) > 1 else run)
        there = singularities_of(velocities.select(0), self.output, self.robot.output)
        found = there.describe(kind)
        return ClosestApproach(kind, min(best, found.margin), time, place[:-1], found.text)
