"""Workspaces of parallel robots, by compiled evaluation of all limits on a grid of poses."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import numpy.typing as npt

from axode.codegen.host import check_threads
from axode.errors import Interrupted, InvalidArgument, UnknownName, shortened
from axode.kinematics.workspaces.closed_form import ClosedFormLegs, DrivenLeg, pose_tape
from axode.kinematics.workspaces.leg_equations import displaced
from axode.kinematics.workspaces.pose_arguments import by_rows, home_coordinates, poses_at
from axode.kinematics.workspaces.pose_limits import PoseLimits, pose_measures
from axode.kinematics.workspaces.workspace_result import ARRAYS, Workspace
from axode.model.function_source import tape_entry
from axode.numerics.tolerances import NEGLIGIBLE
from axode.problems.progress import Interrupt, Progress

if TYPE_CHECKING:
    from axode.codegen.tape.tape import Tape


SAMPLES = 257  # of a driven coordinate
MARGIN = 0.02  # of the box on every side
Array = npt.NDArray[np.float64]
KINDS = ("constant-orientation", "orientation", "reachable", "dexterous", "pose")
POSITIONS = ("x", "y", "z", "u", "v")
UNCOMPLETED = -1.0  # margin of a pose whose other coordinates cannot be found
CHUNK = 1 << 16  # poses that are evaluated at a time
MAX_CELLS = 100_000  # along an axis
BYTES_PER_POINT = 40  # of what is kept, and of finding the boundary
ANGLES = {"roll": math.pi / 2, "pitch": math.pi / 2}  # bounds of angles, half a turn for others


def position_box(legs: ClosedFormLegs, limits: PoseLimits, turns: Iterable[Array]) -> Array:
    """Smallest and largest x, y, z of the output's origin, (2, 3); infinite where nothing bounds.

    At given orientation and driven coordinate, a leg holds the origin on a sphere. The box of a leg
    holds all its spheres, and the box of an orientation is what those of all legs share.

    Args:
        legs: The legs.
        limits: Their limits.
        turns: Rotations of the output.
    """
    low, high = np.full(3, math.inf), np.full(3, -math.inf)
    for R in turns:
        boxes = [_leg_box(legs, leg, limits, R) for leg in legs.legs]
        bottom = np.max([box[0] for box in boxes], axis=0)
        top = np.min([box[1] for box in boxes], axis=0)
        low, high = np.minimum(low, bottom), np.maximum(high, top)
    with np.errstate(invalid="ignore"):
        spare = MARGIN * (high - low)
    spare = np.where(np.isfinite(spare), np.maximum(spare, NEGLIGIBLE * legs.size), 0.0)
    return np.array([low - spare, high + spare])


def _leg_box(legs: ClosedFormLegs, leg: DrivenLeg, limits: PoseLimits, R: Array) -> Array:
    e, anywhere = leg.equation, np.array([[-math.inf] * 3, [math.inf] * 3])
    if not leg.drive.distance:
        return anywhere
    low, high = limits.driven.get(leg.coordinate, (-math.inf, math.inf))
    if leg.turns:
        some = high - low < 2 * math.pi
        ends = (low - leg.home, high - leg.home) if some else (-math.pi, math.pi)
        x = np.linspace(*ends, SAMPLES)
        c, s = np.cos(x), np.sin(x)
    elif math.isfinite(high - low):
        c = np.linspace(low - leg.home, high - leg.home, SAMPLES)
        s = np.zeros(SAMPLES)
    else:
        return anywhere
    # the points of both ends, and their distance, inside the leg at these coordinates
    D = R @ legs.motion.R_home.T
    ways = (e.near.point, 0, 1.0), (e.far.point, 2, -1.0), (e.far.point, 1, 1.0)
    parts = (displaced(leg.joint if e.place == k else None, x, sign) for x, k, sign in ways)
    starts, ends, inner = (m + np.outer(c, u) + np.outer(s, w) for m, u, w in parts)
    reach = np.linalg.norm(inner - e.near.point, axis=-1)[:, np.newaxis]
    centres = starts - (ends - legs.motion.r_home) @ D.T
    return np.array([(centres - reach).min(axis=0), (centres + reach).max(axis=0)])


class PoseFunctions:
    """Margins and singularities of poses in compiled functions of r, R and the limits' numbers.

    Args:
        legs: The legs of the robot.
        limits: Limits of the same structure as those of all calls.

    Attributes:
        names: Names of the limits; of completed poses, the last one stands for no solution.
        measures: Tape of margin, active limit, determinant, dexterity and error.
        margin: Tape of margin and error.
    """

    def __init__(self, legs: ClosedFormLegs, limits: PoseLimits) -> None:
        made = pose_measures(legs, limits)
        least, active = made.smallest
        every = ca.vertcat(least, active, made.determinant, made.dexterity)
        self.measures = pose_tape(legs, "pose_measures", every, made.numbers)
        self.margin = pose_tape(legs, "pose_margin", least, made.numbers)
        self.names = tuple(made.margins)
        if legs.motion.kind == "restricted":
            self.names += ("pose",)
        self._calls: dict[tuple[str, str], Callable[..., Any]] = {}

    def call(self, tape: Tape, target: str) -> Callable[..., Any]:
        """Return one of the tapes as a function, compiled when it is first called."""
        key = tape.name, target
        if key not in self._calls:
            self._calls[key] = tape_entry(tape, target).call
        return self._calls[key]


class PoseEvaluator:
    """Margins and singularities of poses within given limits.

    Args:
        legs: The legs of the robot.
        limits: Their limits.
        target: "cpu" or "cuda".
        threads: How many threads share a batch; None decides by its size.
    """

    def __init__(
        self,
        legs: ClosedFormLegs,
        limits: PoseLimits,
        target: str = "cpu",
        threads: int | None = None,
    ) -> None:
        if target not in ("cpu", "cuda"):
            raise UnknownName("workspace", "target", target, ("cpu", "cuda"))
        if threads is not None:
            check_threads(threads)
        self.legs, self.limits, self.target, self.threads = legs, limits, target, threads
        if limits.structure not in legs.functions:
            legs.functions[limits.structure] = PoseFunctions(legs, limits)
        self.functions: PoseFunctions = legs.functions[limits.structure]
        self.numbers = np.array(list(limits.numbers.values()))

    def measure(self, r: Array, R: Array) -> Array:
        """Margin, active limit, determinant and dexterity of poses, (n, 4)."""
        made = self._evaluate(self.functions.measures, r, R)
        if self.legs.motion.kind == "restricted":
            made[made[:, 0] == UNCOMPLETED, 1] = len(self.functions.names) - 1
        return made

    def margin(self, r: Array, R: Array) -> Array:
        """Margins of poses."""
        return self._evaluate(self.functions.margin, r, R)[:, 0]

    def _evaluate(self, tape: Tape, r: Array, R: Array) -> Array:
        """Values without the error; poses that could not be completed are outside."""
        function = self.functions.call(tape, self.target)
        made: Array = function(r, R, self.numbers, threads=self.threads)
        if self.legs.motion.kind == "restricted":
            made[~(made[:, -1] < NEGLIGIBLE), 0] = UNCOMPLETED
        return made[:, :-1]


@dataclass(frozen=True, eq=False)
class GridPlan:
    """The poses of a workspace.

    Attributes:
        legs: The legs of the robot.
        kind: Kind of workspace.
        axes: Values along each axis of the grid, by pose coordinate.
        held: Pose coordinates that are the same everywhere.
        turns: Further pose coordinates of each orientation; one without any unless several count.
    """

    legs: ClosedFormLegs
    kind: str
    axes: dict[str, Array]
    held: dict[str, float]
    turns: tuple[dict[str, float], ...] = ({},)

    @property
    def shape(self) -> tuple[int, ...]:
        """Points along each axis."""
        return tuple(len(axis) for axis in self.axes.values())

    def poses(self, points: Array, turn: Mapping[str, float]) -> tuple[Array, Array]:
        """Positions (n, 3) and rotations by rows, (9,) if all are the same, else (n, 9)."""
        values = dict(zip(self.axes, points.T, strict=True))
        r, R = poses_at(self.legs.motion, {**self.held, **turn, **values})
        return np.ascontiguousarray(r), by_rows(R)

    def chunks(self) -> Iterator[tuple[slice, Array]]:
        """Points of the grid, a part at a time."""
        total, axes = math.prod(self.shape), list(self.axes.values())
        for begin in range(0, total, CHUNK):
            end = min(begin + CHUNK, total)
            places = np.unravel_index(np.arange(begin, end), self.shape)
            columns = [axis[k] for axis, k in zip(axes, places, strict=True)]
            yield slice(begin, end), np.stack(columns, axis=-1)

    def combine(self, function: Callable[[Array, Array], Array], points: Array) -> Array:
        """Values at points: of the best or the worst orientation if several count."""
        best: Array | None = None
        for turn in self.turns:
            made = function(*self.poses(points, turn))
            if best is None:
                best = made
                continue
            margin, old = (x if x.ndim == 1 else x[:, 0] for x in (made, best))
            better = margin < old if self.kind == "dexterous" else margin > old
            best[better] = made[better]
        assert best is not None
        return best


@dataclass(frozen=True, eq=False)
class GridFunctions:
    """Values at any points in the coordinates of a grid."""

    plan: GridPlan
    evaluator: PoseEvaluator

    def margin(self, points: Array) -> Array:
        """Margins."""
        return self.plan.combine(self.evaluator.margin, points)

    def measure(self, points: Array) -> Array:
        """Margin, active limit, determinant and dexterity, (n, 4)."""
        return self.plan.combine(self.evaluator.measure, points)


def sample_grid(
    plan: GridPlan, evaluator: PoseEvaluator, progress: bool | None, started: float
) -> Workspace:
    """Evaluate all points of a grid.

    Args:
        plan: The grid.
        evaluator: Margins and singularities of its poses.
        progress: Show a bar; unless given, after a second on a terminal.
        started: When the user's call began, by `time.perf_counter` [s].
    """
    total = math.prod(plan.shape)
    made: dict[str, npt.NDArray[Any]] = {
        name: np.empty(total, dtype=np.int16 if name == "active" else float) for name in ARRAYS
    }
    with Progress("workspace", progress) as bar, Interrupt() as interrupt:
        for part, points in plan.chunks():
            values = plan.combine(evaluator.measure, points)
            for array, column in zip(made.values(), values.T, strict=True):
                array[part] = column
            bar.update(part.stop / total)
            if interrupt.pressed:
                raise Interrupted(None)
    info = {
        "poses": total * len(plan.turns),
        "seconds": time.perf_counter() - started,
        "length": evaluator.limits.length,
        "home": home_coordinates(plan.legs.motion),
    }
    return Workspace(
        name=plan.legs.robot_name,
        kind=plan.kind,
        axes=plan.axes,
        held=plan.held,
        limits=evaluator.functions.names,
        info=info,
        functions=GridFunctions(plan, evaluator),
        **{name: array.reshape(plan.shape) for name, array in made.items()},
    )


def plan_grid(
    legs: ClosedFormLegs,
    limits: PoseLimits,
    kind: str,
    at: Mapping[str, float] | None,
    orientations: Mapping[str, npt.ArrayLike] | None,
    bounds: Mapping[str, Sequence[float]] | None,
    grid: int | Mapping[str, int],
) -> GridPlan:
    """Find the axes of the grid and what is held; see `Kinematics.workspace`."""
    if kind not in KINDS:
        raise UnknownName("workspace", "kind", kind, KINDS)
    motion = legs.motion
    places = [name for name in motion.names if name in POSITIONS]
    angles = [name for name in motion.names if name not in POSITIONS]
    names = {"orientation": angles, "pose": list(motion.names)}.get(kind, places)
    if not 1 <= len(names) <= 3 or (kind in ("reachable", "dexterous") and not angles):
        has = f"{', '.join(motion.names)}"
        raise InvalidArgument(
            f"'{legs.output}' of '{legs.robot_name}' has no workspace of kind '{kind}': its pose "
            f"coordinates are {has}"
        )
    free = [name for name in motion.names if name not in names]
    _require_names("at", at or {}, free)
    _require_names("bounds", bounds or {}, names)
    home = home_coordinates(motion)
    held = {name: float((at or {}).get(name, home[name])) for name in free}
    turns: tuple[dict[str, float], ...] = ({},)
    if kind in ("reachable", "dexterous"):
        turns = _turns(orientations, angles)
        held = {name: value for name, value in held.items() if name not in turns[0]}
    elif orientations is not None:
        raise InvalidArgument(
            f"orientations are for the kinds reachable and dexterous, and not for {kind}"
        )
    ranges = _ranges(legs, limits, names, held, turns, bounds or {})
    cells = {name: _cells(name, grid, names) for name in names}
    _check_memory(cells)
    axes = {name: np.linspace(*ranges[name], cells[name] + 1) for name in names}
    return GridPlan(legs, kind, axes, held, turns)


def _require_names(argument: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise UnknownName(f"'{argument}' of this workspace", "pose coordinate", name, known)


def _turns(
    orientations: Mapping[str, npt.ArrayLike] | None, angles: Sequence[str]
) -> tuple[dict[str, float], ...]:
    if not orientations:
        raise InvalidArgument(
            "reachable and dexterous workspaces need orientations, angles by name: "
            f'orientations={{"{angles[-1]}": [-0.2, 0.0, 0.2]}}'
        )
    _require_names("orientations", orientations, angles)
    values = [np.atleast_1d(np.asarray(v, dtype=float)) for v in orientations.values()]
    if any(v.ndim != 1 or not len(v) or not np.isfinite(v).all() for v in values):
        raise InvalidArgument("orientations: expected lists of finite angles by name")
    table = np.stack([v.ravel() for v in np.meshgrid(*values, indexing="ij")], axis=-1)
    return tuple(dict(zip(orientations, row, strict=True)) for row in table.tolist())


def _ranges(
    legs: ClosedFormLegs,
    limits: PoseLimits,
    names: Sequence[str],
    held: Mapping[str, float],
    turns: Sequence[Mapping[str, float]],
    bounds: Mapping[str, Sequence[float]],
) -> dict[str, tuple[float, float]]:
    """Smallest and largest value along each axis of the grid."""
    found: dict[str, tuple[float, float]] = {}
    home = home_coordinates(legs.motion)
    missing = [name for name in names if name not in bounds and name in POSITIONS]
    box = np.full((2, 3), math.nan)
    if missing:
        box = position_box(legs, limits, _rotations(legs, names, held, turns))
    for name in names:
        if name in bounds:
            low, high = _pair(name, bounds[name])
        elif name in POSITIONS:
            low, high = _extent(legs, name, box)
        else:
            low, high = (home[name] + side * ANGLES.get(name, math.pi) for side in (-1, 1))
        found[name] = (low, high)
    empty = [name for name, (low, high) in found.items() if not math.isfinite(high - low)]
    if empty:
        raise InvalidArgument(
            f'nothing bounds {", ".join(empty)}: give bounds={{"{empty[0]}": (low, high), ...}}'
            + ("" if legs.motion.kind == "restricted" else ", or limits of the driven coordinates")
        )
    return {
        name: (low, high) if low < high else ((low + high) / 2 - 1e-3, (low + high) / 2 + 1e-3)
        for name, (low, high) in found.items()
    }


def _rotations(
    legs: ClosedFormLegs,
    names: Sequence[str],
    held: Mapping[str, float],
    turns: Sequence[Mapping[str, float]],
) -> list[Array]:
    """Rotations that the grid has, sampled where they vary along it."""
    motion = legs.motion
    varied = [name for name in names if name not in POSITIONS]
    if motion.kind == "restricted":
        return []  # what follows of the others is not known here
    home = home_coordinates(motion)
    steps = [np.linspace(home[n] - math.pi, home[n] + math.pi, 13) for n in varied]
    grids = np.meshgrid(*steps, indexing="ij") if steps else []
    extra = {n: g.ravel() for n, g in zip(varied, grids, strict=True)}
    return [
        R
        for turn in turns
        for R in np.reshape(poses_at(motion, {**held, **turn, **extra})[1], (-1, 3, 3))
    ]


def _extent(legs: ClosedFormLegs, name: str, box: Array) -> tuple[float, float]:
    """Range of a position in a box, seen along a direction."""
    motion = legs.motion
    if name in ("u", "v"):
        direction = motion.in_plane[("u", "v").index(name)]
    else:
        direction = np.eye(3)[("x", "y", "z").index(name)]
    with np.errstate(invalid="ignore"):
        ends = np.where(direction == 0, 0.0, box * direction)
    if not np.isfinite(ends).all():
        return -math.inf, math.inf
    return float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())


def _pair(name: str, value: Any) -> tuple[float, float]:
    try:
        low, high = (float(x) for x in value)
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high or not math.isfinite(high - low):
        raise InvalidArgument(f"bounds: '{name}' needs (smallest, largest), got {shortened(value)}")
    return low, high


def _check_memory(cells: Mapping[str, int]) -> None:
    """Check that a grid fits into the memory of this machine.

    Raises:
        InvalidArgument: if it does not.
    """
    points = math.prod(count + 1 for count in cells.values())
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not every system reports it
        return
    if BYTES_PER_POINT * points > memory:
        most = (memory / BYTES_PER_POINT) ** (1 / len(cells))
        raise InvalidArgument(
            f"grid: {points:.3g} points take {BYTES_PER_POINT * points / 1e9:.3g} GB, and this "
            f"machine has {memory / 1e9:.3g} GB; up to {int(most)} cells along each axis fit"
        )


def _cells(name: str, grid: int | Mapping[str, int], names: Sequence[str]) -> int:
    if isinstance(grid, Mapping):
        _require_names("grid", grid, names)
    cells = grid.get(name, 100) if isinstance(grid, Mapping) else grid
    if isinstance(cells, bool) or not isinstance(cells, int) or not 2 <= cells <= MAX_CELLS:
        raise InvalidArgument(
            f"grid: expected 2 to {MAX_CELLS} cells for '{name}', got {shortened(cells)}"
        )
    return cells + -cells % 4  # so that errors can be estimated from coarser grids
