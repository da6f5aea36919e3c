"""All postures of a robot whose driven coordinates are given, or of a serial one whose pose is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from axode.codegen.host import check_threads
from axode.errors import InvalidArgument, NotApplicable, UnknownName
from axode.kinematics.polynomials.certificates import certify_roots
from axode.kinematics.polynomials.path_tracker import PathStatus
from axode.kinematics.polynomials.polynomial_family import evaluate_at, polish_roots
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
from axode.kinematics.postures.postures import Postures, SolutionCounts, home_distance, label_modes
from axode.kinematics.workspaces.pose_arguments import as_poses, output_motion
from axode.model.conditions import Conditions
from axode.model.model import Model
from axode.model.model_parts import facts_of
from axode.model.named_arguments import as_numbers
from axode.numerics.tolerances import (
    LAST_STEP,
    NEAR_ROOT,
    NEARLY_REAL,
    NEGLIGIBLE,
    REACHED,
    ROUNDING,
    SAME_ROOT,
)
from axode.problems.arguments import in_units
from axode.problems.assemble.closure import ClosureSystem
from axode.problems.parameter_arguments import checked_parameters

if TYPE_CHECKING:
    from axode.kinematics.robot_kinematics import Kinematics


Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
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
    p = geometry_parameters(robot, table, len(held))
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
        full = _driven_name(robot, name)
        found[full] = as_numbers(f"values '{name}'", value)
    bad = [name for name, value in found.items() if not np.isfinite(value).all()]
    if bad:
        raise InvalidArgument(f"values of {', '.join(bad)}: must be finite")
    return found


def _driven_name(robot: Kinematics, name: str) -> str:
    """Full name of a driven coordinate."""
    try:
        full = robot.model.signals.resolve(name, "coordinate").name
    except UnknownName:
        full = name
    if full in robot.driven:
        return full
    raise UnknownName(f"'{robot.mechanism.name}'", "driven coordinate", name, robot.driven)


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


def geometry_parameters(robot: Kinematics, table: Array, count: int) -> Array:
    """Parameters in the order of the graph's, of every target, from those of the model."""
    names, known = list(robot.graph.values), list(robot.model.parameters)
    if not names:
        return np.zeros((count, 0))
    return table[:, [known.index(name) for name in names]]


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
        return arrange(
            robot,
            (q[kept], residual[kept], certified[kept], sign[kept], rows[kept]),
            shape,
            given,
            count_solutions(found, unreachable),
            self.conditions,
        )

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
        good = (error < LAST_STEP) & (moved < NEAR_ROOT * (1.0 + np.linalg.norm(x, axis=1)))
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
    return Postures(
        model,
        robot.output,
        given,
        shape,
        q[order],
        poses[order],
        residual[order],
        certified[order],
        sign[order],
        labels,
        rows[order],
        counts,
        conditions,
    )


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
        kept = np.flatnonzero(
            (missing < NEGLIGIBLE) & (error < REACHED * (1.0 + facts_of(model).length))
        )
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
