"""All postures of a robot whose driven coordinates are given, or of a serial one whose pose is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.host import check_threads
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.kinematics.polynomials.path_tracker import PathStatus
from axode.kinematics.polynomials.polynomial_family import certify_roots, evaluate_at, polish_roots
from axode.kinematics.polynomials.solve_family import FamilyRoots, solve_family
from axode.kinematics.postures.closure_family import ClosureFamily, closure_family
from axode.kinematics.postures.closure_problem import (
    PERTURBATION,
    ClosureProblem,
    LockedState,
    direct_problem,
    inverse_problem,
)
from axode.kinematics.postures.posture_coordinates import (
    CoordinateMap,
    RealRoots,
    centred,
    proper_turns,
    real_roots,
)
from axode.kinematics.workspaces.pose_arguments import as_poses, output_motion
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.model.state import State
from axode.numerics.rotations import to_angles
from axode.numerics.tolerances import (
    NEAR_ROOT,
    NEARLY_REAL,
    NEGLIGIBLE,
    REACHED,
    ROUNDING,
    SAME_ROOT,
)
from axode.problems.arguments import checked_parameters, in_units
from axode.problems.assemble.closure import ClosureSystem
from axode.stages import call_stage

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SolutionCounts:
    """What became of all solutions of every target, (targets,) each.

    Attributes:
        paths: Solutions of a general robot of the same structure, over the complex numbers.
        finite: Regular solutions that this one has, complex ones included.
        singular: Solutions that coincide with others, or belong to a continuum of solutions.
        infinite: Solutions that have gone to infinity.
        lost: Solutions that were not followed to their end; there should be none.
        unreachable: Real solutions for the output that the joints of a leg cannot take.
    """

    paths: int
    finite: Indices
    singular: Indices
    infinite: Indices
    lost: Indices
    unreachable: Indices

    def times(self, factor: int) -> SolutionCounts:
        """Count every solution as many times as the joints can take it."""
        return SolutionCounts(**{name: factor * count for name, count in vars(self).items()})

    def at(self, target: int) -> SolutionCounts:
        """Select the counts of one target."""
        own = {n: c[target : target + 1] for n, c in vars(self).items() if n != "paths"}
        return SolutionCounts(self.paths, **own)


@dataclass(frozen=True, eq=False)
class Postures:
    """All real postures of a robot, for one set of given values or for a batch of them.

    A label such as "+2" names an assembly mode: the sign of the determinant of the direct Jacobian,
    which changes only where the robot is singular, and a number by the distance from home. Postures
    are in the order of targets, signs and numbers. `postures[k]` is a `State`, which `assemble` and
    `simulate` take as a start.

    Attributes:
        model: Model of the robot.
        output: Name of the output body.
        given: What was given, by name, (targets,) or (targets, 4, 4) each.
        shape: Shape of the batch; () for one target.
        q: Coordinates, (postures, size), in the order of `model.coordinates`.
        poses: Poses of the output body, homogeneous matrices: (postures, 4, 4).
        residual: Largest residual of loops, or of the given pose [m or rad], (postures,).
        certified: Whether a proof by interval arithmetic found exactly one solution there.
        determinant: Sign of the direct Jacobian's determinant, (postures,).
        labels: Names of the assembly modes.
        target: Which target each belongs to, counted along the flat batch.
        counts: What became of the solutions that are not real.
        conditions: Parameters, one set or one per target.
    """

    model: Model
    output: str
    given: Mapping[str, Array]
    shape: tuple[int, ...]
    q: Array
    poses: Array
    residual: Array
    certified: Mask
    determinant: Array
    labels: tuple[str, ...]
    target: Indices
    counts: SolutionCounts
    conditions: Conditions

    def __len__(self) -> int:
        return len(self.q)

    def __getitem__(self, posture: int | str) -> State:
        """Return the state of a posture at rest, by number or label."""
        if isinstance(posture, str):
            if posture not in self.labels:
                raise InvalidArgument(
                    f"no posture has the label '{posture}'; there are {', '.join(self.labels)}"
                )
            posture = self.labels.index(posture)
        q, conditions = self.q[posture], self.conditions.at(self.target[posture])
        nu = np.zeros(len(self.model.independent))
        return State(q.copy(), nu, float(self.residual[posture]), self.model, conditions)

    def __iter__(self) -> Iterator[State]:
        return (self[k] for k in range(len(self)))

    @property
    def number(self) -> Any:
        """Number of real postures: of one target, or of each."""
        counted = np.bincount(self.target, minlength=len(self.counts.finite)).reshape(self.shape)
        return counted if self.shape else int(counted)

    @property
    def states(self) -> State:
        """All postures as one batch of states at rest."""
        nu = np.zeros((len(self), len(self.model.independent)))
        worst = float(self.residual.max(initial=0.0))
        return State(self.q, nu, worst, self.model, self.conditions.at(self.target))

    @cached_property
    def nearest(self) -> Any:
        """Number of the posture nearest to home: of one target, or of each; -1 if there is none."""
        first = np.full(len(self.counts.finite), -1)
        ones = [k for k, label in enumerate(self.labels) if label[1:] == "1"]
        distance = home_distance(self.model, self.output, self.poses, self.q)
        for k in sorted(ones, key=lambda k: -distance[k]):
            first[self.target[k]] = k
        return first.reshape(self.shape) if self.shape else int(first[0])

    def of(self, *target: int) -> Postures:
        """Select the postures of one target of a batch, by its place."""
        flat = int(np.ravel_multi_index(target, self.shape)) if self.shape else 0
        rows = np.flatnonzero(self.target == flat)
        arrays = ("q", "poses", "residual", "certified", "determinant")
        return replace(
            self,
            given={name: values[flat : flat + 1] for name, values in self.given.items()},
            shape=(),
            labels=tuple(self.labels[row] for row in rows),
            target=np.zeros(len(rows), dtype=np.intp),
            counts=self.counts.at(flat),
            conditions=self.conditions.at(flat),
            **{name: getattr(self, name)[rows] for name in arrays},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers by name, as lists; `target` counts along the flat batch."""
        counts = self.counts
        columns, rows = self._table()
        return {
            "solutions": counts.paths,
            **{name: count.tolist() for name, count in vars(counts).items() if name != "paths"},
            "postures": [
                {
                    "target": int(self.target[k]),
                    "mode": label,
                    **dict(zip(columns, rows[k].tolist(), strict=True)),
                    "residual": float(self.residual[k]),
                    "certified": bool(self.certified[k]),
                    "q": dict(zip(self.model.coordinates, self.q[k].tolist(), strict=True)),
                }
                for k, label in enumerate(self.labels)
            ],
        }

    def plot(self, *, size: str = "screen", save: str | PathLike[str] | None = None) -> Any:
        """Figure with a picture of every posture of one target, seen by one camera.

        Args:
            size: "screen", or for print "column" (3.5 in wide) or "page" (7.16 in).
            save: A file to write as well, .png, .svg or .pdf.

        Returns:
            The `matplotlib.figure.Figure`, which a notebook shows.

        Raises:
            InvalidArgument: for a batch, of which `of` selects a target, and if there is none.
            FileError: if the file cannot be written.
            NotApplicable: if matplotlib, from the extra `plot`, is not installed.
        """
        return call_stage("plot_postures", self, size=size, save=save)

    def to_pandas(self) -> Any:
        """Return a table with a row per posture (needs the `pandas` extra)."""
        import pandas as pd

        columns = {"target": self.target, "mode": self.labels}
        columns |= {f"{self.output}.{axis}": self.poses[:, k, 3] for k, axis in enumerate("xyz")}
        columns |= dict(zip(self.model.coordinates, self.q.T, strict=True))
        columns |= {"residual": self.residual, "certified": self.certified}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        if self.shape:
            number = self.number
            least, most = (number.min(), number.max()) if number.size else (0, 0)
            each = f"{least} to {most}" if least < most else f"{most}"
            return (
                f"Postures of '{self.model.name}': {len(self)} real postures of {number.size} "
                f"targets, {each} per target"
            )
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Lines that show the postures of one target."""
        counts = self.counts
        plural = "posture" if len(self) == 1 else "postures"
        yield (
            f"'{self.model.name}': {len(self)} real {plural}, {int(counts.finite[0])} over the "
            f"complex numbers (of {counts.paths} in general)"
        )
        others = {
            "singular": counts.singular,
            "at infinity": counts.infinite,
            "lost": counts.lost,
            "out of reach of a leg": counts.unreachable,
        }
        listed = [f"{int(count[0])} {what}" for what, count in others.items() if count[0]]
        if listed:
            yield f"  {', '.join(listed)}"
        if not len(self):
            return
        columns, rows = self._table()
        yield "  mode " + " ".join(f"{name:>10}" for name in columns)
        for k, (label, row) in enumerate(zip(self.labels, rows, strict=True)):
            marks = ["nearest home"] if k == self.nearest else []
            marks += [] if self.certified[k] or not self.certified.any() else ["not certified"]
            end = f"   {', '.join(marks)}" if marks else ""
            yield f"  {label:>4} " + " ".join(f"{value:z10.5f}" for value in row) + end

    def _table(self) -> tuple[list[str], Array]:
        """Return the columns of a table: the output's pose, or all coordinates if it is given."""
        if "pose" in self.given:
            return list(self.model.coordinates), self.q
        angles = to_angles(self.poses[:, :3, :3])
        return ["x", "y", "z", "roll", "pitch", "yaw"], np.hstack([self.poses[:, :3, 3], angles])


def home_distance(model: Model, output: str, poses: Array, q: Array) -> Array:
    """Distance of postures from home: of the output body, and a little of all coordinates."""
    home = model.poses(model.home)[model.bodies.index(output)]
    shift = np.linalg.norm(poses[:, :3, 3] - home[:3, 3], axis=1) / facts_of(model).length
    cosine = (np.einsum("nij,ij->n", poses[:, :3, :3], home[:3, :3]) - 1) / 2
    turn = np.arccos(np.clip(cosine, -1.0, 1.0))
    rest = np.linalg.norm(q - model.home, axis=1)
    return np.asarray(np.hypot(shift, turn) + 1e-6 * rest)


def label_modes(
    determinant: Array, distance: Array, target: Indices
) -> tuple[Indices, tuple[str, ...]]:
    """Order postures by target, sign and distance, and name their modes."""
    order = np.lexsort((distance, -np.sign(determinant), target))
    labels: list[str] = []
    counted: dict[tuple[int, bool], int] = {}
    for k in order:
        key = int(target[k]), bool(determinant[k] < 0)
        counted[key] = counted.get(key, 0) + 1
        labels.append(f"{'-' if key[1] else '+'}{counted[key]}")
    return order, tuple(labels)


_MAPS: WeakKeyDictionary[ClosureFamily, CoordinateMap] = WeakKeyDictionary()


def direct(
    robot: Kinematics,
    values: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    certify: bool = True,
    threads: int | None = None,
    target: str = "cpu",
) -> Postures:
    """Find all assembly modes; see `Kinematics.direct`."""
    if threads is not None:
        check_threads(threads)
    given = read_driven(robot, values)
    held, table, shape = _broadcast(robot, given, parameters)
    conditions = Conditions(p=None if parameters is None else table)
    driven = dict(zip(robot.driven, held.T, strict=True))
    if set(robot.driven) == set(robot.model.coordinates):
        return _only_postures(robot, held, shape, driven, conditions)
    closure = direct_closure(robot)
    known = list(robot.model.parameters)
    p = table[:, [known.index(name) for name in robot.graph.values]]
    geometry = closure.geometry_of(held, p)
    found = solve_targets(closure, geometry, threads, target)
    solver = PostureSolver(robot, closure, held, p, geometry, conditions, certify)
    return solver.postures(found, shape, driven)


def _only_postures(
    robot: Kinematics,
    held: Array,
    shape: tuple[int, ...],
    given: Mapping[str, Array],
    conditions: Conditions,
) -> Postures:
    """Postures of a serial robot all of whose coordinates are driven: one of each target."""
    count = len(held)
    q = np.empty((count, len(robot.driven)))
    q[:, [robot.model.coordinates.index(name) for name in robot.driven]] = held
    one, none = np.ones(count), np.zeros(count, dtype=np.intp)
    counts = SolutionCounts(1, none + 1, none, none, none, none)
    solved = q, np.zeros(count), one.astype(bool), one, np.arange(count)
    return arrange(robot, solved, shape, given, counts, conditions)


def direct_closure(robot: Kinematics) -> ClosureFamily:
    """Polynomials of a robot with its driven coordinates locked, made once.

    Raises:
        NotApplicable: if there are more or fewer equations than unknowns.
    """
    if robot.closure is None:
        home = dict(zip(robot.model.coordinates, robot.model.home, strict=True))
        held = np.array([home[name] for name in robot.driven])
        other = held + PERTURBATION * np.arange(1, len(held) + 1) / max(len(held), 1)
        state = locked_state(robot, held, other)
        problem = direct_problem(robot.graph, robot.output, robot.driven, state)
        _check_counts(robot, problem)
        robot.closure = closure_family(problem)
    return robot.closure


def locked_state(robot: Kinematics, held: Array, other: Array) -> LockedState:
    """Numbers at home that decide the structure of a locked robot."""
    parameters = np.array([robot.model.parameters[name] for name in robot.graph.values])
    tolerance = robot.mechanism.loop_tolerance
    return LockedState(held, other, parameters, robot.home_poses, tolerance)


def _check_counts(robot: Kinematics, problem: ClosureProblem) -> None:
    """Check that there are as many equations as unknowns."""
    unknowns, equations = problem.unknowns, problem.equations
    if unknowns == equations:
        return
    driven = ", ".join(robot.driven)
    what = (
        f"{unknowns - equations} motions are left: name more driven coordinates"
        if unknowns > equations
        else f"{equations - unknowns} equations too many: name fewer driven coordinates, or "
        "describe joints with the freedoms that they have"
    )
    raise NotApplicable(
        f"postures of '{robot.mechanism.name}' with {driven} held: {unknowns} unknowns and "
        f"{equations} equations.\n  {what[0].upper()}{what[1:]}."
    )


def read_driven(
    robot: Kinematics, values: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None
) -> dict[str, Array]:
    """Values of all driven coordinates by name, those at home where none is given.

    Raises:
        UnknownName: for a name that is no driven coordinate.
        InvalidArgument: for values that are no finite numbers.
    """
    home = dict(zip(robot.model.coordinates, robot.model.home, strict=True))
    found = {name: np.array(home[name]) for name in robot.driven}
    if values is None:
        return found
    if not isinstance(values, Mapping):
        array = as_numbers("values", values)
        if not array.ndim or array.shape[-1] != len(robot.driven):
            raise InvalidArgument(
                f"values: expected one value for each of {', '.join(robot.driven)}, "
                f"got shape {array.shape}"
            )
        values = dict(zip(robot.driven, np.moveaxis(array, -1, 0), strict=True))
    for name, value in values.items():
        try:
            full = robot.model.signals.resolve(name, "coordinate").name
        except UnknownName:
            full = name
        if full not in robot.driven:
            raise UnknownName(f"'{robot.mechanism.name}'", "driven coordinate", name, robot.driven)
        found[full] = as_numbers(f"values '{name}'", value)
    bad = [name for name, value in found.items() if not np.isfinite(value).all()]
    if bad:
        raise InvalidArgument(f"values of {', '.join(bad)}: must be finite")
    return found


def _broadcast(
    robot: Kinematics, given: Mapping[str, Array], parameters: Mapping[str, npt.ArrayLike] | None
) -> tuple[Array, Array, tuple[int, ...]]:
    """Driven values and parameters of every target, (targets, size), and the batch's shape."""
    checked = checked_parameters(robot.model, parameters)
    table = np.zeros(0) if checked is None else checked
    shapes = {name: value.shape for name, value in given.items()} | {"parameters": table.shape[:-1]}
    try:
        shape = np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = ", ".join(f"{name} {s}" for name, s in shapes.items() if s)
        raise InvalidArgument(f"values: shapes do not go together: {listed}") from None
    held = np.stack([np.broadcast_to(v, shape).ravel() for v in given.values()], axis=-1)
    rows = np.broadcast_to(table, (*shape, table.shape[-1])).reshape(len(held), table.shape[-1])
    return held, np.ascontiguousarray(rows), shape


def solve_targets(
    closure: ClosureFamily, geometry: Array, threads: int | None, target: str
) -> FamilyRoots:
    """Roots of the polynomials of all targets, in the charts of the family."""
    parameters = geometry + closure.chart_values
    found = solve_family(closure.family, parameters, threads=threads, target=target)
    improper = found.finished & (proper_turns(closure, found.roots) < NEGLIGIBLE)
    status = np.where(improper, PathStatus.AT_INFINITY, found.status)
    return replace(found, status=status)


@dataclass(frozen=True, eq=False)
class PostureSolver:
    """Makes postures of roots.

    Attributes:
        robot: Whose postures they are.
        closure: Its polynomials.
        held, parameters: What is held and parameters of every target.
        geometry: Real parameters of the polynomials.
        conditions: Parameters of the model, one set or one per target.
        certify: Whether to prove that the real roots exist.
    """

    robot: Kinematics
    closure: ClosureFamily
    held: Array
    parameters: Array
    geometry: Array
    conditions: Conditions
    certify: bool = True

    def postures(
        self, found: FamilyRoots, shape: tuple[int, ...], given: Mapping[str, Array]
    ) -> Postures:
        """Postures of all real roots."""
        robot, model = self.robot, self.robot.model
        roots, rows, certified, sign = self.real(found)
        mapping = coordinate_map(robot, self.closure)
        q, missing = mapping.find(roots, self.held, self.parameters, rows)
        places = [model.coordinates.index(name) for name in robot.driven]
        q[:, places] = self.held[rows]
        q, residual, is_closed = close_postures(model, q, places, self.conditions.at(rows))
        good = is_closed & (missing < NEGLIGIBLE)
        kept = np.flatnonzero(good)
        unreachable = np.bincount(rows[~good], minlength=len(self.held))
        solved = q[kept], residual[kept], certified[kept], sign[kept], rows[kept]
        counts = count_solutions(found, unreachable)
        return arrange(robot, solved, shape, given, counts, self.conditions)

    def real(self, found: FamilyRoots) -> tuple[RealRoots, Indices, Mask, Array]:
        """Real roots, their targets, certificates and signs of determinants."""
        family = self.closure.family
        rows, paths = np.nonzero(found.finished)
        ends = real_roots(self.closure, found.roots[rows, paths], self.closure.chart_values)
        near = np.flatnonzero(ends.imaginary < NEARLY_REAL)
        ends, rows = ends.at(near), rows[near]
        x, p = centred(self.closure, ends, self.geometry[rows])
        doubtful = ends.imaginary > ROUNDING  # the others are polished already
        polished, error = x.copy(), np.zeros(len(x))
        polished[doubtful], error[doubtful] = polish_roots(family, x[doubtful], p[doubtful])
        moved = np.linalg.norm(polished - x, axis=1)
        good = (error < NEGLIGIBLE) & (moved < NEAR_ROOT * (1.0 + np.linalg.norm(x, axis=1)))
        roots = real_roots(self.closure, polished, p)
        kept = np.flatnonzero(good & _first_of_each(roots.features, rows, doubtful))
        x, p = polished[kept], p[kept]
        certified = np.zeros(len(x), dtype=bool)
        if self.certify:
            certified = certify_roots(family, x, p).certified
        n = family.unknowns
        jacobian = evaluate_at(family.jacobian_tape, x, p).reshape(-1, n, n)
        return roots.at(kept), rows[kept], certified, np.linalg.slogdet(jacobian)[0]


def _first_of_each(features: Array, rows: Indices, doubtful: Mask) -> Mask:
    """Mark the first of equal roots of a target; only doubtful ones may equal others."""
    first = np.ones(len(rows), dtype=bool)
    for k in np.flatnonzero(doubtful):
        others = np.flatnonzero((rows == rows[k]) & first)
        others = others[others != k]
        near = np.abs(features[others] - features[k]).max(axis=1, initial=0.0) < SAME_ROOT
        first[k] = not near.any()
    return first


def coordinate_map(robot: Kinematics, closure: ClosureFamily) -> CoordinateMap:
    """Map from roots to coordinates, made once."""
    if closure not in _MAPS:
        _MAPS[closure] = CoordinateMap(closure, robot.model.coordinates, robot.model.home)
    return _MAPS[closure]


def close_postures(
    model: Model, q: Array, fixed: Sequence[int], conditions: Conditions
) -> tuple[Array, Array, Mask]:
    """Close the loops of postures by the model itself.

    Returns:
        Coordinates, what is left open [m or rad], and whether it is no more than rounding.
    """
    if not model.residual_rows or not len(q):
        return q, np.zeros(len(q)), np.ones(len(q), dtype=bool)
    units = in_units(model, facts_of(model).residual_units)
    with np.errstate(all="ignore"):
        closed, _ = ClosureSystem(model, {}, list(fixed), conditions).find(q)
        rows = np.abs(model.residual(closed, **conditions.options))
    residual = rows.max(axis=1)
    is_closed = (rows / units).max(axis=1) < REACHED
    return closed, np.where(np.isfinite(residual), residual, np.inf), is_closed


def count_solutions(found: FamilyRoots, unreachable: Indices) -> SolutionCounts:
    """Count the ends of paths of every target."""
    singular, infinite = (
        (found.status == status).sum(axis=1)
        for status in (PathStatus.SINGULAR, PathStatus.AT_INFINITY)
    )
    paths = found.status.shape[1]
    lost = paths - found.count - singular - infinite
    return SolutionCounts(paths, found.count, singular, infinite, lost, unreachable)


def arrange(
    robot: Kinematics,
    solved: tuple[Array, Array, Mask, Array, Indices],
    shape: tuple[int, ...],
    given: Mapping[str, Array],
    counts: SolutionCounts,
    conditions: Conditions,
) -> Postures:
    """Sort postures and name their modes.

    Args:
        robot: Whose they are.
        solved: Coordinates, residuals, certificates, signs of determinants and targets.
        shape: Shape of the batch.
        given: What was given, by name.
        counts: What became of other solutions.
        conditions: Parameters.
    """
    model = robot.model
    q, residual, certified, sign, rows = solved
    options = conditions.at(rows).options
    body = model.bodies.index(robot.output)
    poses = model.poses(q, **options)[:, body] if len(q) else np.zeros((0, 4, 4))
    distance = home_distance(model, robot.output, poses, q)
    order, labels = label_modes(sign, distance, rows)
    found: Any = [part[order] for part in (q, poses, residual, certified, sign)]
    about: Any = labels, rows[order], counts, conditions
    return Postures(model, robot.output, given, shape, *found, *about)


def inverse_postures(
    robot: Kinematics, pose: Any, threads: int | None = None, target: str = "cpu"
) -> Postures:
    """Find all configurations; see `Kinematics.all_inverse`."""
    if threads is not None:
        check_threads(threads)
    r, R = as_poses(output_motion(robot.model, robot.output), pose)
    shape = r.shape[:-1]
    matrices = np.concatenate([R, r[..., np.newaxis]], axis=-1).reshape(-1, 3, 4)
    held = np.ascontiguousarray(matrices.reshape(-1, 12))
    closure = inverse_closure(robot)
    parameters = np.array([robot.model.parameters[name] for name in robot.graph.values])
    p = np.tile(parameters, (len(held), 1))
    geometry = closure.geometry_of(held, p)
    found = solve_targets(closure, geometry, threads, target)
    solver = PostureSolver(robot, closure, held, p, geometry, Conditions())
    roots, rows, certified, sign = solver.real(found)
    model = robot.model
    mapping = coordinate_map(robot, closure)
    parts, branches = [], mapping.branches(closure.problem.chains[0])
    for branch in range(branches):
        q, missing = mapping.find(roots, held, p, rows, [branch])
        reached = model.poses(q)[:, model.bodies.index(robot.output), :3] - matrices[rows]
        error = np.abs(reached).max(axis=(1, 2), initial=0.0)
        near = error < REACHED * (1.0 + facts_of(model).length)
        kept = np.flatnonzero((missing < NEGLIGIBLE) & near)
        parts.append((q[kept], error[kept], certified[kept], sign[kept], rows[kept]))
    solved: Any = tuple(np.concatenate(items) for items in zip(*parts, strict=True))
    reachable = np.bincount(parts[0][-1], minlength=len(held))
    unreachable = np.bincount(rows, minlength=len(held)) - reachable
    counts = count_solutions(found, unreachable).times(branches)
    return arrange(robot, solved, shape, {"pose": matrices}, counts, Conditions())


def inverse_closure(robot: Kinematics) -> ClosureFamily:
    """Polynomials of a serial robot with its output body held, made once.

    Raises:
        NotApplicable: if the robot is not serial, or has not as many joints as the pose needs.
    """
    if robot.inverse_polynomials is not None:
        return robot.inverse_polynomials
    if robot.mechanism.loops:
        raise NotApplicable(
            f"'{robot.mechanism.name}' has loops; all_inverse takes serial robots.\n"
            "  robot.inverse(pose, branch='all') solves the legs of a parallel one."
        )
    held = robot.home_poses[robot.output][:3].ravel()
    problem = inverse_problem(robot.graph, robot.output, locked_state(robot, held, held))
    unknowns, equations = problem.unknowns, problem.equations
    if unknowns != equations or len(problem.chains) != 1:
        motions = "more joints than a pose needs" if unknowns > equations else "too few joints"
        raise NotApplicable(
            f"'{robot.mechanism.name}' has {motions} to reach a pose in finitely many ways: "
            f"{unknowns} unknowns, {equations} equations.\n  axode.inverse_kinematics finds one "
            "configuration, near a start and within limits."
        )
    robot.inverse_polynomials = closure_family(problem)
    return robot.inverse_polynomials
